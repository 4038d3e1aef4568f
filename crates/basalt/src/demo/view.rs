//! The live view, and the same as one line per second.

use super::figures::{Answer, Figures, Shared, bytes, count, latency};
use anyhow::{Context, Result};
use basalt_sched::Os;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table, Wrap};
use std::io::Write;
use std::time::Duration;

const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
const LINE_INTERVAL: Duration = Duration::from_secs(1);
const WAIT_POLL: Duration = Duration::from_millis(20);
/// Wider columns are cut.
const COLUMN_CHARS_MAX: usize = 60;

/// What does not change while it runs.
pub struct About {
    pub title: String,
    pub url: String,
    /// Names and titles of the queries.
    pub queries: Vec<(&'static str, &'static str)>,
    pub rate: u64,
    /// Monotonic.
    pub began: Duration,
    pub ends: Option<Duration>,
}

impl About {
    fn over(&self, os: &Os, shared: &Shared) -> bool {
        shared.stopped() || self.ends.is_some_and(|ends| os.clock.monotonic() >= ends)
    }
}

/// Draws until q, until it is over, or until something fails.
pub fn live(os: &Os, shared: &Shared, about: &About) -> Result<()> {
    let mut terminal = ratatui::try_init().context("cannot draw on this terminal (--plain does not draw)")?;
    let result = live_on(os, shared, about, &mut terminal);
    ratatui::restore();
    result
}

fn live_on(os: &Os, shared: &Shared, about: &About, terminal: &mut ratatui::DefaultTerminal) -> Result<()> {
    while !about.over(os, shared) {
        let figures = shared.figures().clone();
        let elapsed = os.clock.monotonic() - about.began;
        let paused = shared.paused();
        terminal.draw(|frame| draw(frame, about, &figures, elapsed, paused))?;
        if !event::poll(REDRAW_INTERVAL)? {
            continue;
        }
        let Event::Key(key) = event::read()? else { continue };
        if key.kind != KeyEventKind::Press {
            continue;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
            KeyCode::Char('p') | KeyCode::Char(' ') => shared.toggle_pause(),
            _ => {}
        }
    }
    Ok(())
}

/// Lines of the rates' block: its border, three figures, and the curve.
const FLOW_HEIGHT: u16 = 7;
/// The same without the curve.
const FLOW_HEIGHT_MIN: u16 = 5;
/// Border and header of an answer.
const ANSWER_FRAME: u16 = 3;
const ANSWER_ROWS_MAX: u16 = 5;

/// How the height is shared out.
#[derive(PartialEq, Eq, Debug)]
struct Heights {
    title: u16,
    flow: u16,
    /// With border and header.
    answers: Vec<u16>,
    footer: u16,
}

impl Heights {
    /// On a low terminal answers show fewer rows, the longest first, and the curve goes.
    fn of(height: u16, answers: &[Answer]) -> Heights {
        let mut rows: Vec<u16> =
            answers.iter().map(|answer| (answer.rows.len() as u16).clamp(1, ANSWER_ROWS_MAX)).collect();
        let footer = 2;
        let total = |title: u16, flow: u16, rows: &[u16]| {
            title + flow + footer + rows.iter().map(|rows| rows + ANSWER_FRAME).sum::<u16>()
        };
        let (mut title, mut flow) = (2, FLOW_HEIGHT);
        if total(title, flow, &rows) > height {
            (title, flow) = (1, FLOW_HEIGHT_MIN);
        }
        while total(title, flow, &rows) > height
            && let Some(longest) = rows.iter_mut().max()
            && *longest > 1
        {
            *longest -= 1;
        }
        Heights { title, flow, answers: rows.into_iter().map(|rows| rows + ANSWER_FRAME).collect(), footer }
    }
}

fn draw(frame: &mut Frame, about: &About, figures: &Figures, elapsed: Duration, paused: bool) {
    let heights = Heights::of(frame.area().height, &figures.answers);
    let mut constraints = vec![Constraint::Length(heights.title), Constraint::Length(heights.flow)];
    constraints.extend(heights.answers.into_iter().map(Constraint::Length));
    constraints.extend([Constraint::Fill(1), Constraint::Length(heights.footer)]);
    let areas = Layout::vertical(constraints).split(frame.area());
    let seconds = elapsed.as_secs();
    let state = if paused { " PAUSED ".black().on_yellow() } else { " running ".black().on_green() };
    let title = Line::from(vec![
        " Basalt ".black().on_white().bold(),
        state,
        format!(" {}{}   {}:{:02}", about.title, again(figures), seconds / 60, seconds % 60).into(),
    ]);
    frame.render_widget(title, areas[0]);
    draw_flow(frame, areas[1], about, figures);
    for ((answer, (_, title)), area) in figures.answers.iter().zip(&about.queries).zip(&areas[2..]) {
        draw_answer(frame, *area, title, answer);
    }
    let footer = vec![
        Line::from(vec!["query it: ".dim(), format!("psql {}", about.url).into()]),
        Line::from(vec![
            " q ".black().on_gray(),
            " quit  ".into(),
            " p ".black().on_gray(),
            " pause the stream".into(),
        ]),
    ];
    frame.render_widget(Paragraph::new(footer), areas[areas.len() - 1]);
}

fn draw_flow(frame: &mut Frame, area: Rect, about: &About, figures: &Figures) {
    let [left, right] = Layout::horizontal([Constraint::Percentage(55), Constraint::Percentage(45)]).areas(area);
    let asked = if about.rate == 0 { "as many as go".to_string() } else { format!("{} asked for", count(about.rate)) };
    let block = Block::bordered().title(" rows in ");
    let inner = block.inner(left);
    frame.render_widget(block, left);
    let [lines, spark] = Layout::vertical([Constraint::Length(3), Constraint::Fill(1)]).areas(inner);
    let text = vec![
        pair("rows", format!("{} in {} transactions", count(figures.rows_in), count(figures.transactions))),
        pair("rows/s", format!("{} ({asked})", count(figures.rate()))),
        pair("freshness", freshness(figures).unwrap_or_else(|| "not measured yet".into())),
    ];
    frame.render_widget(Paragraph::new(text), lines);
    let shown: Vec<u64> = figures.rates.iter().rev().take(spark.width.into()).rev().copied().collect();
    frame.render_widget(Sparkline::default().data(shown).style(Style::new().fg(Color::Cyan)), spark);

    let storage = figures.storage;
    let text = vec![
        pair("hot", format!("{} rows, {}", count(storage.hot_rows), bytes(storage.hot_bytes))),
        pair("cold", format!("{} rows, {}", count(storage.cold_rows), bytes(storage.file_bytes))),
        pair("files", count(storage.files)),
        pair("cold part", format!("{:.0} %", cold_percent(figures))),
    ];
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title(" where rows rest ")), right);
}

/// A short source is replayed.
fn again(figures: &Figures) -> String {
    match figures.round {
        0 => String::new(),
        round => format!(", replayed: round {}", round + 1),
    }
}

fn pair(name: &str, value: String) -> Line<'static> {
    Line::from(vec![Span::from(format!("{name:<10}")).dim(), value.into()])
}

fn freshness(figures: &Figures) -> Option<String> {
    let (median, worst) = figures.freshness()?;
    Some(format!("{}, worst {}", latency(median), latency(worst)))
}

fn cold_percent(figures: &Figures) -> f64 {
    let storage = figures.storage;
    let rows = storage.hot_rows + storage.cold_rows;
    storage.cold_rows as f64 * 100.0 / rows.max(1) as f64
}

fn draw_answer(frame: &mut Frame, area: Rect, title: &str, answer: &Answer) {
    let block = Block::bordered().title(Line::from(vec![
        format!(" {title} ").into(),
        answer.latency.map(|took| format!("{} ", latency(took))).unwrap_or_default().green().bold(),
    ]));
    if let Some(error) = &answer.error {
        frame.render_widget(Paragraph::new(error.clone().red()).wrap(Wrap { trim: true }).block(block), area);
        return;
    }
    let widths: Vec<Constraint> = (0..answer.columns.len())
        .map(|at| {
            let of_rows = answer.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            let width = of_rows.chain([answer.columns[at].chars().count()]).max().unwrap_or(0);
            Constraint::Length(width.min(COLUMN_CHARS_MAX) as u16)
        })
        .collect();
    let rows = answer.rows.iter().map(|row| Row::new(row.iter().map(|cell| printable(cell)).collect::<Vec<_>>()));
    let header = Row::new(answer.columns.clone()).dim();
    frame.render_widget(Table::new(rows, widths).header(header).column_spacing(2).block(block), area);
}

/// Paths and subjects may hold anything, escape sequences for the terminal too.
fn printable(cell: &str) -> String {
    cell.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// One line per second until it is over or something fails.
pub fn plain(os: &Os, shared: &Shared, about: &About) -> Result<()> {
    let mut out = std::io::stdout();
    let mut next = about.began + LINE_INTERVAL;
    while !about.over(os, shared) {
        os.clock.sleep(WAIT_POLL);
        if os.clock.monotonic() >= next {
            next += LINE_INTERVAL;
            let seconds = (os.clock.monotonic() - about.began).as_secs();
            let line = status_line(about, &shared.figures(), seconds);
            // Whoever reads has gone: then it is over.
            if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn status_line(about: &About, figures: &Figures, seconds: u64) -> String {
    let mut line = format!("{seconds:>4} s  {} rows  {} rows/s", count(figures.rows_in), count(figures.rate()));
    if let Some(freshness) = freshness(figures) {
        line.push_str(&format!("  fresh {freshness}"));
    }
    let storage = figures.storage;
    line.push_str(&format!(
        "  hot {}  cold {} in {} files ({})",
        count(storage.hot_rows),
        count(storage.cold_rows),
        storage.files,
        bytes(storage.file_bytes)
    ));
    line.push_str(&again(figures));
    for ((name, _), answer) in about.queries.iter().zip(&figures.answers) {
        match (answer.latency, &answer.error) {
            (_, Some(_)) => line.push_str(&format!("  {name} FAILED")),
            (Some(took), _) => line.push_str(&format!("  {name} {}", latency(took))),
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests;
