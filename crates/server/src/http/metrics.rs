//! Prometheus' text format over the database's counters.

use basalt_query::Database;
use std::fmt::Write;

pub fn render(db: &Database) -> String {
    let mut page = Page::default();
    page.gauge("basalt_connections", "Sessions open now.", db.session_count() as u64);
    page.gauge("basalt_connections_max", "Sessions that may be open at once.", db.config().connections_max as u64);
    page.gauge("basalt_published_version", "The greatest durable version.", db.engine().published().0);
    for (name, value) in db.stats().list() {
        page.counter(&format!("basalt_{name}_total"), &format!("{} since start.", name.replace('_', " ")), value);
    }
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

    fn metric(&mut self, kind: &str, name: &str, help: &str, value: u64) {
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}").expect("a String takes all");
    }
}
