//! What EXPLAIN says of a row plan: each step takes the rows of the next ones.

use super::access::{Access, Edge, KeyList, ListValues, Part};
use super::nested::{Nested, Step, Top};
use super::shape::Shape;
use super::{Body, RowPlan};
use crate::explain::words::{shortened, words_of};
use crate::explain::{Fact, Step as Told};
use crate::pgcatalog::index_text;
use crate::session::names::quote_identifier;
use crate::system::SystemContext;
use basalt_expr::operators::SortOrder;
use basalt_expr::tree::Expr;
use basalt_types::schema::IndexSource;
use basalt_types::{ColumnId, TableDef};

impl RowPlan {
    pub fn explained(&self, system: &SystemContext) -> Told {
        match &self.body {
            Body::Get(get) => {
                let Shape { lens, filter, .. } = &get.shape;
                let key: Vec<&Expr> = get.key.iter().map(|part| &part.value).collect();
                point_get(&lens.table, &key, filter.as_ref(), system)
            }
            Body::Nested(nested) => of_nested(nested, system),
        }
    }
}

fn of_nested(nested: &Nested, system: &SystemContext) -> Told {
    let words = Words::of(nested, system);
    let mut steps: Vec<Told> = (0..nested.steps.len()).map(|at| words.step(at)).collect();
    let mut plan = match steps.len() {
        0 => Told::new("Result"),
        1 => steps.remove(0),
        _ => Told::over("Nested Loop", steps),
    };
    match &nested.top {
        Top::Direct(shape) => {
            let filter = shape.filter.as_ref();
            plan = filtered(plan, filter.map(|filter| conditions_of(filter, &names_of(&shape.lens.table), system)));
        }
        Top::Rows { keys, orders, .. } if !keys.is_empty() => {
            let keys = keys.iter().zip(orders).map(|(key, order)| ordered(&words.text(key), order)).collect();
            plan = Told::over("Sort", vec![plan]).with("Sort Key", Fact::Texts(keys));
        }
        Top::Totals(_) => plan = Told::over("Aggregate", vec![plan]),
        Top::Rows { .. } => {}
    }
    match nested.limit.is_some() || nested.offset.is_some() {
        true => Told::over("Limit", vec![plan]),
        false => plan,
    }
}

/// A look for one row by its whole primary key. The filter is over the table's row.
pub(crate) fn point_get(table: &TableDef, key: &[&Expr], filter: Option<&Expr>, system: &SystemContext) -> Told {
    let columns = table.primary_key.iter().flat_map(|key| &key.columns);
    let name = |id: &ColumnId| quote_identifier(&table.column(*id).name);
    let conditions = columns.zip(key).map(|(id, value)| equals(&name(id), &words_of(system, &[], value)));
    let told =
        Told::new(format!("Point Get on {}", table.name)).with("Index Cond", Fact::Conditions(conditions.collect()));
    filtered(told, filter.map(|filter| conditions_of(filter, &names_of(table), system)))
}

fn names_of(table: &TableDef) -> Vec<String> {
    table.columns.iter().map(|column| quote_identifier(&column.name)).collect()
}

/// Those that all have to be true.
fn conditions_of(filter: &Expr, names: &[String], system: &SystemContext) -> Vec<String> {
    filter.clone().split_and().iter().map(|condition| words_of(system, names, condition)).collect()
}

/// With a filter, but what is known of the rows by how they are reached.
fn filtered(told: Told, conditions: Option<Vec<String>>) -> Told {
    let is_known = |condition: &String| {
        told.facts.iter().any(|(_, fact)| matches!(fact, Fact::Conditions(known) if known.contains(condition)))
    };
    let conditions: Vec<String> = conditions.into_iter().flatten().filter(|condition| !is_known(condition)).collect();
    told.with("Filter", Fact::Conditions(conditions))
}

fn equals(name: &str, value: &str) -> String {
    shortened(&format!("{name} = {value}"))
}

fn ordered(key: &str, order: &SortOrder) -> String {
    let direction = if order.descending { " DESC" } else { "" };
    let nulls = match (order.nulls_first, order.descending) {
        (true, false) => " NULLS FIRST",
        (false, true) => " NULLS LAST",
        _ => "",
    };
    format!("{key}{direction}{nulls}")
}

/// What the registers of a frame are called.
struct Words<'a> {
    nested: &'a Nested,
    system: &'a SystemContext,
    /// Of the steps' tables: a table's own name, or with a number behind it where it comes again.
    tables: Vec<String>,
    registers: Vec<String>,
}

impl<'a> Words<'a> {
    fn of(nested: &'a Nested, system: &'a SystemContext) -> Words<'a> {
        let mut tables: Vec<String> = Vec::new();
        for step in &nested.steps {
            let name = &step.lens.table.name;
            let again = (1..).map(|number| format!("{name}_{number}"));
            let fresh = std::iter::once(name.clone()).chain(again).find(|name| !tables.contains(name));
            tables.extend(fresh);
        }
        let mut registers = vec!["row".to_string(); nested.registers];
        let mut words = Words { nested, system, tables, registers: Vec::new() };
        for (at, step) in nested.steps.iter().enumerate() {
            for (column, register) in step.lens.columns.iter().zip(&mut registers[step.base..]) {
                *register = words.qualified(at, &step.lens.table.column(*column).name);
            }
        }
        words.registers = registers;
        words
    }

    fn qualified(&self, at: usize, column: &str) -> String {
        let column = quote_identifier(column);
        match self.nested.steps.len() {
            1 => column,
            _ => format!("{}.{column}", quote_identifier(&self.tables[at])),
        }
    }

    fn text(&self, expr: &Expr) -> String {
        words_of(self.system, &self.registers, expr)
    }

    fn step(&self, at: usize) -> Told {
        let step = &self.nested.steps[at];
        let table = &step.lens.table;
        let alias = (self.tables[at] != table.name).then(|| format!(" {}", self.tables[at]));
        let title = title(step, &alias.unwrap_or_default());
        let conditions = |expr: &Expr| conditions_of(expr, &self.registers, self.system);
        let told = Told::new(title).with("Index Cond", Fact::Conditions(self.access(at, &step.access, table)));
        let told = filtered(told, step.passes.as_ref().map(conditions));
        told.with("Join Filter", Fact::Conditions(step.matches.as_ref().map(conditions).unwrap_or_default()))
    }

    fn access(&self, at: usize, access: &Access, table: &TableDef) -> Vec<String> {
        let name = |number: usize| match &access.index {
            None => {
                let column = table.primary_key.as_ref().and_then(|key| key.columns.get(number));
                column.map_or("row".to_string(), |column| self.qualified(at, &table.column(*column).name))
            }
            Some(index) => match &index.columns[number].source {
                IndexSource::Column(column) => self.qualified(at, &table.column(*column).name),
                _ => index_text(self.system, index.id.0, number as i32 + 1, true)
                    .unwrap_or_else(|| quote_identifier(&index.columns[number].name)),
            },
        };
        let mut conditions: Vec<String> = Vec::new();
        for (number, part) in access.prefix.iter().enumerate() {
            let name = name(number);
            conditions.push(match part {
                Part::One(part) => equals(&name, &self.text(&part.value)),
                Part::Many(KeyList { values: ListValues::Each(values), .. }) => {
                    let values: Vec<String> = values.iter().map(|value| self.text(value)).collect();
                    shortened(&format!("{name} IN ({})", values.join(", ")))
                }
                Part::Many(KeyList { values: ListValues::Array(array, _), .. }) => {
                    equals(&name, &format!("ANY ({})", self.text(array)))
                }
            });
        }
        let edge = |edge: &Edge, sign: &str| {
            let or_equal = if edge.inclusive { "=" } else { "" };
            shortened(&format!("{} {sign}{or_equal} {}", name(access.prefix.len()), self.text(&edge.part.value)))
        };
        conditions.extend(access.lower.iter().map(|lower| edge(lower, ">")));
        conditions.extend(access.upper.iter().map(|upper| edge(upper, "<")));
        conditions
    }
}

fn title(step: &Step, alias: &str) -> String {
    let Access { index, prefix, whole, direction, .. } = &step.access;
    let only = if step.is_covered() { "Index Only " } else { "" };
    let table = &step.lens.table.name;
    let by = index.as_ref().map_or(String::new(), |index| format!(" by {}", index.name));
    let backwards = if *direction == basalt_engine::Direction::Descending { " Backward" } else { "" };
    let many = prefix.iter().any(|part| matches!(part, Part::Many(_)));
    match (whole, many) {
        (true, false) => format!("{only}Point Get on {table}{alias}{by}"),
        (true, true) => format!("{only}Point Gets on {table}{alias}{by}"),
        (false, _) => format!("{only}Key Range{backwards} on {table}{alias}{by}"),
    }
}
