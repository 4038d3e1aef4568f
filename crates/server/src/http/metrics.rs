//! Prometheus' text format over what the server counts.

use crate::listen::Shared;
use basalt_query::counters::{self, Kind};
use basalt_sched::fair::GroupReport;
use std::fmt::Write;

pub fn render(Shared { db, reactors, .. }: &Shared) -> String {
    let mut page = Page::default();
    for counter in counters::list(db) {
        let suffix = if counter.kind == Kind::Counter { "_total" } else { "" };
        page.metric(
            counter.kind.name(),
            &format!("basalt_{}{suffix}", counter.name),
            counter.description,
            counter.value,
        );
    }
    let moves = "Connections that went on at another reactor thread.";
    page.metric("counter", "basalt_connection_moves_total", moves, reactors.moves());
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
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
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
