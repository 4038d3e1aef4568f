//! A plan as EXPLAIN tells it: steps with what they are expected to do and what they did, as indented lines or as values
//! of the structured formats.

use super::document::{Object, Value};

/// A step of a plan, and what belongs to it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Step {
    pub what: String,
    /// Rows that the optimizer expects it to give.
    pub estimate: Option<f64>,
    /// Rows that it gave, where it has run.
    pub rows: Option<usize>,
    pub millis: Option<f64>,
    pub facts: Vec<(&'static str, Fact)>,
    pub parts: Vec<Step>,
    pub parts_are: Parts,
}

/// What the parts of a step are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parts {
    /// What it reads.
    #[default]
    Inputs,
    /// What runs one after the other.
    Pipelines,
    /// What each row passes, first to last.
    Steps,
}

/// What else there is to know of a step.
#[derive(Clone, PartialEq, Debug)]
pub enum Fact {
    Text(String),
    Texts(Vec<String>),
    /// All of them have to be true.
    Conditions(Vec<String>),
    Count(u64),
    Bytes(u64),
    Millis(f64),
    /// How many were ruled out, of how many.
    Pruned {
        pruned: u64,
        total: u64,
    },
}

/// What of it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown {
    /// Expected rows.
    pub costs: bool,
    pub timing: bool,
}

impl Step {
    pub fn new(what: impl Into<String>) -> Step {
        Step { what: what.into(), ..Step::default() }
    }

    /// One that reads these.
    pub fn over(what: impl Into<String>, inputs: Vec<Step>) -> Step {
        Step { parts: inputs, ..Step::new(what) }
    }

    /// With a fact, unless it is an empty list.
    pub fn with(mut self, label: &'static str, fact: Fact) -> Step {
        let empty = matches!(&fact, Fact::Texts(texts) | Fact::Conditions(texts) if texts.is_empty());
        if !empty {
            self.facts.push((label, fact));
        }
        self
    }

    /// Text as PostgreSQL's plans are indented; `output`: the columns of the whole.
    pub fn lines(&self, shown: Shown, output: &[String], out: &mut Vec<String>) {
        let root = match output.is_empty() {
            true => self.clone(),
            false => {
                let mut root = self.clone();
                root.facts.insert(0, ("Output", Fact::Texts(output.to_vec())));
                root
            }
        };
        root.lines_at(0, false, shown, out);
    }

    fn lines_at(&self, indent: usize, arrow: bool, shown: Shown, out: &mut Vec<String>) {
        let (start, below) = if arrow { ("->  ", indent + 6) } else { ("", indent + 2) };
        let mut line = format!("{}{start}{}", " ".repeat(indent), self.what);
        if let Some(estimate) = self.estimate.filter(|_| shown.costs) {
            line.push_str(&format!("  (rows={})", whole(estimate)));
        }
        let time = self.millis.filter(|_| shown.timing).map(|millis| format!("time={millis:.3} ms"));
        let did: Vec<String> = self.rows.map(|rows| format!("rows={rows}")).into_iter().chain(time).collect();
        if !did.is_empty() {
            line.push_str(&format!("  (actual {})", did.join(" ")));
        }
        out.push(line);
        for (label, fact) in self.facts.iter().filter(|(_, fact)| shown.timing || !matches!(fact, Fact::Millis(_))) {
            out.push(format!("{}{label}: {}", " ".repeat(below), fact.text()));
        }
        let arrow = self.parts_are == Parts::Inputs;
        self.parts.iter().for_each(|part| part.lines_at(below, arrow, shown, out));
    }

    pub fn object(&self, shown: Shown) -> Object {
        let mut object: Object = vec![("Node Type".into(), Value::Text(self.what.clone()))];
        if let Some(estimate) = self.estimate.filter(|_| shown.costs) {
            object.push(("Plan Rows".into(), Value::count(whole(estimate))));
        }
        if let Some(rows) = self.rows {
            object.push(("Actual Rows".into(), Value::count(rows as u64)));
        }
        if let Some(millis) = self.millis.filter(|_| shown.timing) {
            object.push(("Actual Total Time".into(), Value::millis(millis)));
        }
        for (label, fact) in self.facts.iter().filter(|(_, fact)| shown.timing || !matches!(fact, Fact::Millis(_))) {
            fact.add_to(&mut object, label);
        }
        if !self.parts.is_empty() {
            let (key, name) = match self.parts_are {
                Parts::Inputs => ("Plans", "Plan"),
                Parts::Pipelines => ("Pipelines", "Pipeline"),
                Parts::Steps => ("Steps", "Step"),
            };
            let parts = self.parts.iter().map(|part| part.object(shown)).collect();
            object.push((key.into(), Value::Objects(name, parts)));
        }
        object
    }
}

impl Fact {
    fn text(&self) -> String {
        match self {
            Fact::Text(text) => text.clone(),
            Fact::Texts(texts) => texts.join(", "),
            Fact::Conditions(conditions) => {
                let several = conditions.len() > 1;
                let in_parens = |text: &String| several && text.contains(" OR ");
                let each = |text: &String| if in_parens(text) { format!("({text})") } else { text.clone() };
                conditions.iter().map(each).collect::<Vec<_>>().join(" AND ")
            }
            Fact::Count(count) => count.to_string(),
            // As PostgreSQL tells memory.
            Fact::Bytes(bytes) => format!("{}kB", bytes.div_ceil(1024)),
            Fact::Millis(millis) => format!("{millis:.3} ms"),
            Fact::Pruned { pruned, total } => format!("{pruned} of {total} pruned"),
        }
    }

    fn add_to(&self, object: &mut Object, label: &str) {
        match self {
            Fact::Text(text) => object.push((label.into(), Value::Text(text.clone()))),
            Fact::Texts(texts) => object.push((label.into(), Value::Texts(texts.clone()))),
            Fact::Conditions(_) => object.push((label.into(), Value::Text(self.text()))),
            Fact::Count(count) => object.push((label.into(), Value::count(*count))),
            Fact::Bytes(bytes) => object.push((label.into(), Value::count(*bytes))),
            Fact::Millis(millis) => object.push((label.into(), Value::millis(*millis))),
            Fact::Pruned { pruned, total } => {
                object.push((label.into(), Value::count(*total)));
                object.push((format!("{label} Pruned"), Value::count(*pruned)));
            }
        }
    }
}

/// Rows are whole, and at least one is expected.
fn whole(rows: f64) -> u64 {
    rows.round().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Shown = Shown { costs: true, timing: true };

    fn lines(step: &Step, shown: Shown) -> String {
        let mut out = Vec::new();
        step.lines(shown, &[], &mut out);
        out.join("\n")
    }

    #[test]
    fn inputs_stand_behind_arrows_and_facts_below_their_step() {
        let scan = Step { rows: Some(7), millis: Some(0.5), estimate: Some(9.6), ..Step::new("Scan") };
        let sort = Step::over("Sort", vec![scan.with("Columns", Fact::Texts(vec!["a".into(), "b".into()]))]);
        let top = Step::over("Limit", vec![sort.with("Sort Key", Fact::Text("a".into()))]);
        let expected = "\
Limit
  ->  Sort
        Sort Key: a
        ->  Scan  (rows=10)  (actual rows=7 time=0.500 ms)
              Columns: a, b";
        assert_eq!(lines(&top, ALL), expected);
    }

    #[test]
    fn steps_of_a_pipeline_stand_one_below_the_other() {
        let steps = vec![Step::new("Scan"), Step::new("Filter").with("Filter", Fact::Conditions(vec!["a > 1".into()]))];
        let pipeline = Step { parts: steps, parts_are: Parts::Steps, ..Step::new("Pipeline 1") };
        let root = Step { parts: vec![pipeline], parts_are: Parts::Pipelines, ..Step::new("Column Engine") };
        let expected = "\
Column Engine
  Pipeline 1
    Scan
    Filter
      Filter: a > 1";
        assert_eq!(lines(&root, ALL), expected);
    }

    #[test]
    fn what_is_not_asked_for_is_not_shown() {
        let scan = Step { rows: Some(7), millis: Some(0.5), estimate: Some(9.6), ..Step::new("Scan") };
        let scan = scan.with("Worker Time", Fact::Millis(1.0));
        assert_eq!(lines(&scan, Shown { costs: false, timing: false }), "Scan  (actual rows=7)");
        let object = scan.object(Shown { costs: false, timing: false });
        assert_eq!(object.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["Node Type", "Actual Rows"]);
    }
}
