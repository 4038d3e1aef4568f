//! Prometheus' text format over the counters of database and engine.

use crate::listen::Shared;
use basalt_sched::fair::GroupReport;
use std::fmt::Write;

pub fn render(Shared { db, reactors, .. }: &Shared) -> String {
    let mut page = Page::default();
    page.gauge("basalt_connections", "Sessions open now.", db.session_count() as u64);
    page.gauge("basalt_connections_max", "Sessions that may be open at once.", db.config().connections_max as u64);
    let moves = "Connections that went on at another reactor thread since start.";
    page.counter("basalt_connection_moves_total", moves, reactors.moves());
    for (name, value) in db.stats().list() {
        page.counter(&format!("basalt_{name}_total"), &format!("{} since start.", name.replace('_', " ")), value);
    }
    let groups = db.query_group_list();
    let of = |value: fn(&GroupReport) -> String| groups.iter().map(move |group| (&*group.name, value(group)));
    let name = "basalt_query_group_share";
    page.labelled("gauge", name, "Share of the query threads.", of(|group| group.share.to_string()));
    let name = "basalt_query_group_statements";
    page.labelled("gauge", name, "Statements that run or are open.", of(|group| group.statements.to_string()));
    let name = "basalt_query_group_active";
    page.labelled("gauge", name, "Queries that were admitted and run.", of(|group| group.admission.active.to_string()));
    let name = "basalt_query_group_queued";
    page.labelled("gauge", name, "Queries that wait to be admitted.", of(|group| group.admission.queued.to_string()));
    let name = "basalt_query_group_refused_total";
    let help = "Queries that found the queue full since start.";
    page.labelled("counter", name, help, of(|group| group.admission.refused.to_string()));
    let name = "basalt_query_group_cpu_seconds_total";
    page.labelled("counter", name, "Processor time spent.", of(|group| format!("{:.6}", group.spent.as_secs_f64())));
    let engine = db.engine().stats();
    page.gauge("basalt_published_version", "The greatest durable version.", engine.published.0);
    page.gauge("basalt_tablets", "Tablets of all tables.", engine.tablets);
    page.gauge("basalt_hot_rows", "Rows in memory.", engine.hot_rows);
    page.gauge("basalt_hot_bytes", "Bytes of rows in memory.", engine.hot_bytes);
    page.gauge("basalt_undo_versions", "Older versions kept for open snapshots.", engine.undo_versions);
    page.gauge("basalt_cold_rows", "Rows in files.", engine.cold_rows);
    page.gauge("basalt_files", "Files that hold rows.", engine.files);
    page.gauge("basalt_file_bytes", "Bytes of these files.", engine.file_bytes);
    page.gauge("basalt_pins", "Snapshots that are pinned.", engine.pins);
    page.gauge("basalt_active_writers", "Transactions that have written and are not decided.", engine.active_writers);
    page.gauge("basalt_locks_held", "Row locks held.", engine.locks_held);
    page.counter("basalt_lock_waits_total", "Waits for a lock since start.", engine.lock_waits);
    page.counter("basalt_log_records_total", "Log records since start.", engine.log.records);
    page.counter("basalt_log_written_bytes_total", "Bytes written to the log since start.", engine.log.written_bytes);
    page.counter("basalt_log_syncs_total", "Syncs of the log since start.", engine.log.syncs);
    page.counter("basalt_log_commits_total", "Commits that waited for a sync since start.", engine.log.commits);
    let background = db.engine().background().status();
    page.gauge(
        "basalt_log_failed",
        "1 once the log has stopped: a restart is needed.",
        u64::from(db.engine().failure().is_some()),
    );
    page.counter("basalt_background_errors_total", "Background work that failed since start.", background.errors);
    page.counter("basalt_background_panics_total", "Background work that panicked since start.", background.panics);
    let failing = background.failing.len() as u64;
    page.gauge("basalt_background_failing", "Background work whose latest try failed.", failing);
    let behind = engine.log_end.0.saturating_sub(engine.checkpoint_lsn.0);
    page.gauge("basalt_log_behind_checkpoint_bytes", "Log that a restart would replay.", behind);
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.metric("gauge", name, help, value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.metric("counter", name, help, value);
    }

    /// One value for each query group.
    fn labelled<'a>(&mut self, kind: &str, name: &str, help: &str, values: impl Iterator<Item = (&'a str, String)>) {
        write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n").expect("a String takes all");
        for (group, value) in values {
            // Names have no characters that need an escape.
            writeln!(self.text, "{name}{{group=\"{group}\"}} {value}").expect("a String takes all");
        }
    }

    fn metric(&mut self, kind: &str, name: &str, help: &str, value: u64) {
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}").expect("a String takes all");
    }
}
