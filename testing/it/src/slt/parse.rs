//! A script's text into its steps.

use anyhow::{Context, Result, bail};

/// Who runs a statement, and what its answer is compared with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Against {
    #[default]
    Both,
    OnlyBasalt,
    OnlyPostgres,
    /// Documented in docs/compatibility.md.
    Differs(String),
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Statement {
    pub sql: String,
    pub against: Against,
    pub shape_only: bool,
    pub text_only: bool,
    pub binary_copy: bool,
    /// The answer tells which engine the planner has chosen.
    pub tells_engine: bool,
    /// Sent on this session, and not waited for.
    pub send: Option<String>,
    /// What follows `----`.
    pub tail: Option<Vec<String>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    Statement(Box<Statement>),
    Connection(String),
    Blocked(String),
    Wait(String),
    Freeze,
    Compact,
    Restart,
    SleepMs(u64),
    /// What is below is repeated in every state that rows can rest in.
    States,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// From 1.
    pub line: usize,
    pub action: Action,
}

pub fn parse(text: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut open = Paragraph::default();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() {
            open.close(&mut steps)?;
            open = Paragraph::default();
        } else if open.statement.tail.is_none() && line.starts_with('#') {
        } else if let Some(tail) = &mut open.statement.tail {
            tail.push(line.to_string());
        } else if line == "----" {
            open.statement.tail = Some(Vec::new());
        } else if let Some(directive) = line.strip_prefix('@') {
            let standing = open.directive(directive).with_context(|| format!("line {number}: {line}"))?;
            steps.extend(standing.map(|action| Step { line: number, action }));
        } else {
            open.line = if open.sql.is_empty() { number } else { open.line };
            open.sql.push(line);
        }
    }
    open.close(&mut steps)?;
    Ok(steps)
}

#[derive(Default)]
struct Paragraph<'a> {
    line: usize,
    sql: Vec<&'a str>,
    statement: Statement,
}

impl Paragraph<'_> {
    /// An action that stands alone, or `None` for what is said about the paragraph's statement.
    fn directive(&mut self, text: &str) -> Result<Option<Action>> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        match (word, rest) {
            ("only", "basalt") => self.statement.against = Against::OnlyBasalt,
            ("only", "postgres") => self.statement.against = Against::OnlyPostgres,
            ("differs", reason) if reason.len() > 2 => {
                self.statement.against = Against::Differs(reason.trim_matches('"').to_string());
            }
            ("shape", "") => self.statement.shape_only = true,
            ("text", "") => self.statement.text_only = true,
            ("binary", "COPY") => self.statement.binary_copy = true,
            ("engines", "chosen") => self.statement.tells_engine = true,
            ("send", name) => self.statement.send = Some(name.to_string()),
            ("connection", name) => return Ok(Some(Action::Connection(name.to_string()))),
            ("blocked", name) => return Ok(Some(Action::Blocked(name.to_string()))),
            ("wait", name) => return Ok(Some(Action::Wait(name.to_string()))),
            ("freeze", "") => return Ok(Some(Action::Freeze)),
            ("compact", "") => return Ok(Some(Action::Compact)),
            ("restart", "") => return Ok(Some(Action::Restart)),
            ("states", "") => return Ok(Some(Action::States)),
            ("sleep", ms) => return Ok(Some(Action::SleepMs(ms.parse()?))),
            _ => bail!("no such directive"),
        }
        Ok(None)
    }

    fn close(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        if self.sql.is_empty() {
            if self.statement != Statement::default() {
                bail!("directives without a statement before line {}", self.line);
            }
            return Ok(());
        }
        self.statement.sql = self.sql.join("\n");
        let statement = Box::new(std::mem::take(&mut self.statement));
        steps.push(Step { line: self.line, action: Action::Statement(statement) });
        Ok(())
    }
}

impl Statement {
    /// Whether its answer is that of engines which the planner has chosen: plans that Basalt has to tell, too.
    pub fn is_of_chosen_engines(&self) -> bool {
        let tells_plan = || self.sql.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("explain"));
        self.tells_engine || matches!(self.against, Against::OnlyBasalt | Against::Differs(_)) && tells_plan()
    }

    /// A single query, which can be sent once more without changing anything.
    pub fn is_query(&self) -> bool {
        let sql = self.sql.trim_end().trim_end_matches(';');
        let word = sql.trim_start_matches(['(', ' ', '\n']).split_whitespace().next().unwrap_or_default();
        let is_query = ["select", "values", "table", "with", "show"].iter().any(|verb| word.eq_ignore_ascii_case(verb));
        let lower = sql.to_ascii_lowercase();
        // Row locks and changes inside WITH stay out.
        is_query
            && !sql.contains(';')
            && ![" for update", " for share", "returning", "pg_sleep"].iter().any(|w| lower.contains(w))
    }

    /// An ORDER BY outside of all parentheses and quotes.
    pub fn is_ordered(&self) -> bool {
        let mut depth = 0;
        let mut quoted = false;
        let lower = self.sql.to_ascii_lowercase();
        for (index, byte) in lower.bytes().enumerate() {
            match byte {
                b'\'' => quoted = !quoted,
                b'(' if !quoted => depth += 1,
                b')' if !quoted => depth -= 1,
                b'o' if !quoted && depth == 0 && lower[index..].starts_with("order") => {
                    let mut words = lower[index..].split_whitespace();
                    if words.next() == Some("order") && words.next() == Some("by") {
                        return true;
                    }
                }
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_become_steps() {
        let steps = parse("# c\nselect 1\nfrom t\n\n@only basalt\nshow x\n----\na\nb\n\n@freeze\n@wait B\n").unwrap();
        let statement = |sql: &str| Statement { sql: sql.into(), ..Statement::default() };
        let second =
            Statement { against: Against::OnlyBasalt, tail: Some(vec!["a".into(), "b".into()]), ..statement("show x") };
        let expected = [
            (2, Action::Statement(Box::new(statement("select 1\nfrom t")))),
            (6, Action::Statement(Box::new(second))),
            (11, Action::Freeze),
            (12, Action::Wait("B".into())),
        ];
        assert_eq!(steps, expected.map(|(line, action)| Step { line, action }));
    }

    #[test]
    fn an_order_by_inside_parentheses_orders_nothing() {
        let ordered = |sql: &str| Statement { sql: sql.into(), ..Statement::default() }.is_ordered();
        assert!(ordered("select a from t ORDER  BY a"));
        assert!(!ordered("select array_agg(a order by a) from t"));
        assert!(!ordered("select 'order by'"));
        assert!(!ordered("select border by_"));
    }
}
