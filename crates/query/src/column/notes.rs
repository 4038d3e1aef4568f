//! What EXPLAIN says of a plan's operators: in words of the query, with the rows that the optimizer expects.
//!
//! Only a plan that is told has notes, so others do not pay for texts. An operator and its note have the same number
//! ([`basalt_exec::plan::Plan::Noted`]).

use crate::explain::words::words_of;
use crate::optimize::node::{JoinKind, Key, Node, Op};
use crate::plan::{AggregateCall, ColId, Query, SetColumn, SortKey, WindowCall, WindowFunction};
use crate::session::names::quote_identifier;
use crate::system::SystemContext;
use ahash::{AHashMap, AHashSet};
use basalt_expr::tree::Expr;
use basalt_expr::window::{Edge, Ranking};
use basalt_types::{ColumnId, DataType, TableDef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is said of one operator.
pub(crate) struct Note {
    /// Expected; `None`: nobody said.
    pub rows: Option<f64>,
    pub what: What,
}

pub(crate) enum What {
    Scan { relation: String },
    Filter { conditions: Vec<String> },
    Join { keys: Vec<KeyText>, residual: Vec<String> },
    Aggregate { groups: Vec<String>, results: Vec<String> },
    Sort { keys: Vec<String> },
    Window { calls: Vec<String> },
    Sets { calls: Vec<String> },
    Limit,
    Values,
    Union,
    Recursion,
}

/// What a join compares.
pub(crate) struct KeyText {
    pub left: String,
    pub right: String,
    pub null_safe: bool,
}

impl KeyText {
    pub fn condition(&self) -> String {
        let KeyText { left, right, null_safe } = self;
        format!("{left} {} {right}", if *null_safe { "IS NOT DISTINCT FROM" } else { "=" })
    }
}

/// Names of columns as they come about, and the notes so far.
pub(crate) struct Notes {
    system: Arc<SystemContext>,
    notes: Vec<Note>,
    names: AHashMap<ColId, String>,
    /// What the text calls tables, by their columns.
    aliases: BTreeMap<ColId, Arc<str>>,
    /// What each scan is called by the first of its columns, and all that is called so.
    relations: AHashMap<ColId, String>,
    named: AHashSet<String>,
    /// Columns so far that say whether a row has a partner.
    marks: usize,
    /// Whether columns are called by their relation's name, too.
    qualified: bool,
}

impl Notes {
    pub fn new(node: &Node, query: &Query, system: &Arc<SystemContext>) -> Notes {
        let mut notes = Notes {
            system: system.clone(),
            aliases: query.aliases.clone(),
            notes: Vec::new(),
            names: AHashMap::new(),
            relations: AHashMap::new(),
            named: AHashSet::new(),
            marks: 0,
            qualified: scans(node) > 1,
        };
        // In the order of the text, in which columns are numbered.
        let mut tables = Vec::new();
        each_op(node, &mut |op| {
            if let Op::Scan { table, columns, .. } = op {
                tables.extend(columns.first().map(|(id, _)| (*id, table.name.as_str())));
            }
        });
        tables.sort_unstable();
        tables.dedup();
        for (id, table) in tables {
            let name = notes.new_name(id, table);
            notes.relations.insert(id, name);
        }
        notes
    }

    /// What a table is called by the text, or by its own name; with a number if that is another's already.
    fn new_name(&mut self, id: ColId, table: &str) -> String {
        let given = self.aliases.get(&id).map_or(table, |alias| alias);
        let names = std::iter::once(given.to_string()).chain((1..).map(|number| format!("{given}_{number}")));
        let name = names.into_iter().find(|name| !self.named.contains(name)).unwrap_or_default();
        self.named.insert(name.clone());
        quote_identifier(&name)
    }

    pub fn get(&self, note: usize) -> Option<&Note> {
        self.notes.get(note)
    }

    /// Takes a note; its number.
    pub fn take(&mut self, rows: Option<f64>, what: What) -> usize {
        self.notes.push(Note { rows, what });
        self.notes.len() - 1
    }

    /// A table that is read: another time under another name, as PostgreSQL tells them apart.
    pub fn scan(&mut self, table: &TableDef, columns: &[(ColId, ColumnId)]) -> What {
        let known = columns.first().and_then(|(id, _)| self.relations.get(id)).cloned();
        let first = columns.first().map_or(ColId::MAX, |(id, _)| *id);
        let alias = known.unwrap_or_else(|| self.new_name(first, &table.name));
        for (id, column) in columns {
            let own = quote_identifier(&table.column(*column).name);
            self.names.insert(*id, if self.qualified { format!("{alias}.{own}") } else { own });
        }
        if let Some((id, _)) = columns.first() {
            self.relations.insert(*id, alias.clone());
        }
        let name = quote_identifier(&table.name);
        What::Scan { relation: if alias == name { name } else { format!("{name} {alias}") } }
    }

    /// Columns by the expressions that they are.
    pub fn name(&mut self, exprs: &[(ColId, Expr)]) {
        for (id, expr) in exprs {
            let text = self.text(expr);
            self.names.insert(*id, in_parens(text));
        }
    }

    /// Rows of constants, whose columns are called as PostgreSQL calls them.
    pub fn values(&mut self, columns: &[(ColId, DataType)]) -> What {
        let prefix = if self.qualified { "\"*VALUES*\"." } else { "" };
        self.number(prefix, columns.iter().map(|(id, _)| *id));
        What::Values
    }

    pub fn recursion(&mut self, columns: &[SetColumn]) -> What {
        self.number("recursive.", columns.iter().map(|column| column.id));
        What::Recursion
    }

    /// The rows of a recursion that came last.
    pub fn working(&mut self, columns: &[(ColId, DataType)]) {
        self.number("working.", columns.iter().map(|(id, _)| *id));
    }

    /// Columns that have but numbers.
    fn number(&mut self, prefix: &str, ids: impl Iterator<Item = ColId>) {
        self.names.extend(ids.enumerate().map(|(at, id)| (id, format!("{prefix}column{}", at + 1))));
    }

    /// Columns are called as those of the left side, unless it has but nulls for them.
    pub fn union(&mut self, columns: &[&SetColumn]) -> What {
        for column in columns {
            let name = |id: &ColId| self.names.get(id).filter(|name| !name.starts_with("NULL::"));
            if let Some(name) = name(&column.left).or_else(|| name(&column.right)).cloned() {
                self.names.insert(column.id, name);
            }
        }
        What::Union
    }

    pub fn filter(&self, conditions: &[Expr]) -> What {
        What::Filter { conditions: self.texts(conditions) }
    }

    /// A column that says whether there is a partner is called by its number among such.
    pub fn join(&mut self, kind: JoinKind, keys: &[Key], residual: &[Expr]) -> What {
        let key = |key: &Key| {
            let (left, right) = (self.text(&key.left), self.text(&key.right));
            KeyText { left, right, null_safe: key.null_safe }
        };
        let what = What::Join { keys: keys.iter().map(key).collect(), residual: self.texts(residual) };
        if let JoinKind::Mark { id, .. } = kind {
            self.marks += 1;
            self.names.insert(id, format!("mark {}", self.marks));
        }
        what
    }

    pub fn aggregate(&mut self, groups: &[(ColId, Expr)], calls: &[(ColId, AggregateCall)]) -> What {
        let results: Vec<(ColId, String)> = calls.iter().map(|(id, call)| (*id, self.call(call))).collect();
        let what = What::Aggregate {
            groups: groups.iter().map(|(_, group)| self.text(group)).collect(),
            results: results.iter().map(|(_, text)| text.clone()).collect(),
        };
        self.name(groups);
        self.names.extend(results);
        what
    }

    pub fn sort(&self, keys: &[SortKey]) -> What {
        let key = |key: &SortKey| {
            let nulls = match (key.descending, key.nulls_first) {
                (false, true) => " NULLS FIRST",
                (true, false) => " NULLS LAST",
                _ => "",
            };
            format!("{}{}{nulls}", self.text(&key.expr), if key.descending { " DESC" } else { "" })
        };
        What::Sort { keys: keys.iter().map(key).collect() }
    }

    /// Each call with what it is over; so are its results called.
    pub fn window(&mut self, calls: &[&(ColId, WindowCall)]) -> What {
        let text = |call: &WindowCall| {
            let partition = self.texts(&call.partition_by).join(", ");
            let What::Sort { keys } = self.sort(&call.order_by) else { return String::new() };
            let parts = [("PARTITION BY ", partition), ("ORDER BY ", keys.join(", "))];
            let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
            let over: Vec<String> = parts.map(|(word, text)| format!("{word}{text}")).collect();
            format!("{} OVER ({})", self.window_function(&call.function), over.join(" "))
        };
        let texts: Vec<(ColId, String)> = calls.iter().map(|(id, call)| (*id, text(call))).collect();
        let what = What::Window { calls: texts.iter().map(|(_, text)| text.clone()).collect() };
        self.names.extend(texts);
        what
    }

    /// Columns of values are called by what gives them.
    pub fn sets(&mut self, sets: &[(ColId, Expr)], ordinality: Option<ColId>) -> What {
        let texts: Vec<(ColId, String)> = sets.iter().map(|(id, call)| (*id, self.text(call))).collect();
        let what = What::Sets { calls: texts.iter().map(|(_, text)| text.clone()).collect() };
        self.names.extend(texts);
        self.names.extend(ordinality.map(|id| (id, "ordinality".to_string())));
        what
    }

    fn window_function(&self, function: &WindowFunction) -> String {
        match function {
            WindowFunction::Ranking(ranking) => match ranking {
                Ranking::RowNumber => "row_number()".to_string(),
                Ranking::Rank => "rank()".to_string(),
                Ranking::DenseRank => "dense_rank()".to_string(),
                Ranking::PercentRank => "percent_rank()".to_string(),
                Ranking::CumeDist => "cume_dist()".to_string(),
            },
            WindowFunction::Ntile(buckets) => format!("ntile({})", self.text(buckets)),
            WindowFunction::Lag { value, offset, default, lead } => {
                let args = self.texts([value].into_iter().chain(offset).chain(default)).join(", ");
                format!("{}({args})", if *lead { "lead" } else { "lag" })
            }
            WindowFunction::Edge(Edge::First, value) => format!("first_value({})", self.text(value)),
            WindowFunction::Edge(Edge::Last, value) => format!("last_value({})", self.text(value)),
            WindowFunction::NthValue(value, nth) => format!("nth_value({}, {})", self.text(value), self.text(nth)),
            WindowFunction::Aggregate(call) => self.call(call),
        }
    }

    pub fn texts<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<String> {
        exprs.into_iter().map(|expr| self.text(expr)).collect()
    }

    fn call(&self, call: &AggregateCall) -> String {
        // Of WITHIN GROUP, the last ones are those that are ordered by.
        let direct = call.args.len() - call.resolved.orders.len();
        let args = match call.args.is_empty() {
            true => "*".to_string(),
            false => self.texts(&call.args[..direct]).join(", "),
        };
        let within = match self.sort(&call.order_by) {
            What::Sort { keys } if !call.resolved.orders.is_empty() => {
                format!(" WITHIN GROUP (ORDER BY {})", keys.join(", "))
            }
            _ => String::new(),
        };
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let filter = call.filter.as_ref().map(|filter| format!(" FILTER (WHERE {})", self.text(filter)));
        format!("{}({distinct}{args}){within}{}", call.resolved.aggregate.name, filter.unwrap_or_default())
    }

    /// As PostgreSQL would write it; what has no text of its own by the columns that it is made of.
    fn text(&self, expr: &Expr) -> String {
        let mut names = Vec::new();
        let placed = expr.clone().rewrite(&mut |node| match node {
            Expr::Hole { id, ty } => {
                names.push(self.names.get(&id).cloned().unwrap_or_else(|| format!("column {id}")));
                Expr::Column { index: names.len() - 1, ty }
            }
            other => other,
        });
        words_of(&self.system, &names, &placed)
    }
}

fn scans(node: &Node) -> usize {
    let mut count = 0;
    each_op(node, &mut |op| {
        count += usize::from(match op {
            Op::Scan { .. } => true,
            Op::Values { columns, .. } => !columns.is_empty(),
            _ => false,
        });
    });
    count
}

/// Every operator below, those of what is shared and of recursions included.
fn each_op<'n>(node: &'n Node, each: &mut impl FnMut(&'n Op)) {
    each(&node.op);
    match &node.op {
        Op::Shared { plan, .. } => each_op(plan, each),
        Op::Recursive { base, step, .. } => [base, step].into_iter().for_each(|part| each_op(part, each)),
        _ => {}
    }
    node.inputs().into_iter().for_each(|input| each_op(input, each));
}

/// An operation, so that it can stand in another.
fn in_parens(text: String) -> String {
    let is_call = text.ends_with(')') && !text.split('(').next().unwrap_or_default().contains(' ');
    if text.contains(' ') && !is_call { format!("({text})") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_stand_in_parentheses_and_calls_do_not() {
        assert_eq!(in_parens("a + b".into()), "(a + b)");
        assert_eq!(in_parens("sum(a + b)".into()), "sum(a + b)");
        assert_eq!(in_parens("a + f(b)".into()), "(a + f(b))");
        assert_eq!(in_parens("t.a".into()), "t.a");
    }
}
