use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn about() -> About {
    About {
        title: "git history of here".into(),
        url: "postgresql://basalt@127.0.0.1:5433/basalt".into(),
        queries: vec![("lookup", "a commit by its key"), ("top", "the paths that change most")],
        rate: 20_000,
        began: Duration::ZERO,
        ends: None,
    }
}

fn figures() -> Figures {
    let mut figures = Figures::default();
    figures.rows_in = 1_234_567;
    figures.transactions = 60;
    figures.end_of_second();
    figures.add_freshness(Duration::from_millis(12));
    figures.storage.hot_rows = 1000;
    figures.storage.cold_rows = 3000;
    figures.storage.files = 2;
    let row = vec!["7".to_string(), "esc\u{1b}[2Jape".to_string()];
    let columns = vec!["commit_id".to_string(), "subject".to_string()];
    let answer = Answer { latency: Some(Duration::from_micros(420)), columns, rows: vec![row], error: None };
    let failed = Answer { error: Some("ERROR:  relation does not exist (42P01)".into()), ..Answer::default() };
    figures.answers = vec![answer, failed];
    figures
}

/// What the view shows, line by line.
fn drawn(width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &about(), &figures(), Duration::from_secs(75), true)).unwrap();
    let cells = terminal.backend().buffer().content();
    let lines = cells.chunks(width.into()).map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_view_shows_rows_freshness_storage_and_answers() {
    let text = drawn(110, 30);
    for expected in [
        "PAUSED",
        "git history of here   1:15",
        "1,234,567 in 60 transactions",
        "20,000 asked for",
        "12.0 ms, worst 12.0 ms",
        "3,000 rows",
        "75 %",
        "a commit by its key 0.42 ms",
        "esc\u{fffd}[2Jape",
        "ERROR:  relation does not exist (42P01)",
        "psql postgresql://basalt@127.0.0.1:5433/basalt",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}

#[test]
fn a_terminal_of_24_lines_shows_all_figures() {
    let answer = |rows: usize| Answer { rows: vec![vec!["x".into()]; rows], ..Answer::default() };
    let heights = Heights::of(24, &[answer(1), answer(8), answer(5)]);
    assert_eq!(heights, Heights { title: 1, flow: 5, answers: vec![4, 6, 6], footer: 2 });
    // Two answers and the curve take one more.
    let text = drawn(80, 18);
    for expected in ["1,234,567 in 60", "12.0 ms, worst 12.0 ms", "a commit by its key", "psql postgresql://"] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}

#[test]
fn a_small_terminal_is_survived() {
    for (width, height) in [(1, 1), (20, 5), (40, 12)] {
        drawn(width, height);
    }
}

#[test]
fn a_status_line_names_each_query() {
    let line = status_line(&about(), &figures(), 5);
    assert_eq!(
        line,
        "   5 s  1,234,567 rows  1,234,567 rows/s  fresh 12.0 ms, worst 12.0 ms  \
         hot 1,000  cold 3,000 in 2 files (0 B)  lookup 0.42 ms  top FAILED"
    );
}
