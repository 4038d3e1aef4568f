//! Expressions and conditions over the columns of a FROM clause.

use super::kinds::{INTEGERS, KINDS, Kind, NUMBERS};
use super::{Column, Generator, Scope};
use crate::generate::node::{Node, Role};
use rand::Rng;
use rand::seq::IndexedRandom;

/// What may fail for some rows.
const ARITHMETIC: &str = "arithmetic";
/// The same in conditions, of which nobody promises which one a row meets first.
pub const MAY_FAIL: &str = "may fail";
/// What a parameter can stand for.
pub const LITERAL: &str = "literal";
const COMPARISONS: [&str; 9] = ["=", "=", "=", "<", "<=", ">", ">=", "<>", "IS DISTINCT FROM"];
const PATTERNS: [&str; 22] = [
    "k1%",
    "%1",
    "%1%",
    "k_",
    "k_2%",
    "%",
    "",
    "é%",
    "%k%1%",
    "k\\%\\_",
    "a_",
    "%日本%",
    "https://%",
    "%number=1%",
    "%=_7",
    "%ab",
    "%abab%",
    "%ff%",
    "_1%b",
    "%e%e%e%",
    "https://example.com/a/long/beginning?number=12",
    "%c_",
];

impl Generator {
    pub fn any_kind(&mut self) -> Kind {
        KINDS.choose_weighted(&mut self.rng, |(_, weight)| *weight).expect("kinds").0
    }

    /// A kind that a column has, mostly.
    pub fn kind_in(&mut self, scope: &Scope) -> Kind {
        match scope.choose(&mut self.rng) {
            Some(column) if self.rng.random_ratio(5, 6) => column.kind,
            _ => self.any_kind(),
        }
    }

    pub fn literal(&mut self, kind: Kind) -> Node {
        let most = *[10, 60, 300, 5000].choose(&mut self.rng).expect("some");
        let number = self.rng.random_range(0..most);
        match self.rng.random_ratio(1, 25) {
            true => Node::expr(kind.ty()).text(format!("NULL::{}", kind.name())),
            false => Node::expr(kind.ty()).text(kind.literal(number)).uses(LITERAL),
        }
    }

    pub fn column(&mut self, kind: Kind, scope: &Scope) -> Option<Node> {
        let fitting: Vec<&Column> = scope.iter().filter(|column| column.kind == kind).collect();
        fitting.choose(&mut self.rng).map(|column| Node::expr(kind.ty()).text(column.sql.clone()))
    }

    pub fn expr(&mut self, kind: Kind, scope: &Scope, depth: u32) -> Node {
        if (depth == 0 || self.rng.random_ratio(3, 5))
            && let Some(column) = self.column(kind, scope)
        {
            return column;
        }
        if depth == 0 {
            return self.literal(kind);
        }
        match self.rng.random_range(0..12) {
            0 => self.literal(kind),
            1 | 2 => self.case(kind, scope, depth),
            3 => {
                let (a, b) = (self.expr(kind, scope, depth - 1), self.expr(kind, scope, depth - 1));
                let call =
                    *["coalesce", "coalesce", "nullif", "greatest", "least"].choose(&mut self.rng).expect("some");
                Node::expr(kind.ty()).text(format!("{call}(")).node(a).text(", ").node(b).text(")")
            }
            _ => self.computed(kind, scope, depth),
        }
    }

    fn case(&mut self, kind: Kind, scope: &Scope, depth: u32) -> Node {
        let condition = self.condition(scope, &Scope::new(), depth - 1);
        let (yes, no) = (self.expr(kind, scope, depth - 1), self.expr(kind, scope, depth - 1));
        let node = Node::expr(kind.ty()).text("CASE WHEN ").node(condition).text(" THEN ").node(yes);
        match self.rng.random_ratio(3, 4) {
            true => node.text(" ELSE ").node(no).text(" END"),
            false => node.text(" END"),
        }
    }

    /// What the operators and functions of a kind give.
    fn computed(&mut self, kind: Kind, scope: &Scope, depth: u32) -> Node {
        let node = Node::expr(kind.ty());
        let pick = self.rng.random_range(0..4);
        match kind {
            Kind::Bool => node.text("(").node(self.condition(scope, &Scope::new(), depth - 1)).text(")"),
            kind if kind.is_number() => self.number(kind, scope, depth),
            Kind::Text | Kind::Varchar if pick == 0 => {
                let other = self.expr(Kind::Int4, scope, depth - 1);
                node.text("(").node(other).text(format!(")::{}", kind.name()))
            }
            Kind::Text | Kind::Varchar => {
                let inner = self.expr(kind, scope, depth - 1);
                let (before, after) = *[
                    ("upper(", ")"),
                    ("substring(", ", 1, 2)"),
                    ("(", " || 'z')"),
                    ("replace(", ", '1', '22')"),
                    ("left(", ", 2)"),
                    ("trim(", ")"),
                ]
                .choose(&mut self.rng)
                .expect("some");
                node.text(before).node(inner).text(format!("{after}::{}", kind.name()))
            }
            Kind::Date if pick < 2 => {
                let inner = self.expr(Kind::Date, scope, depth - 1);
                node.text("(").node(inner).text(format!(" + {})", self.rng.random_range(-40..40)))
            }
            Kind::Timestamp if pick < 2 => {
                let inner = self.expr(Kind::Timestamp, scope, depth - 1);
                let unit = *["year", "month", "day", "hour"].choose(&mut self.rng).expect("some");
                node.text(format!("date_trunc('{unit}', ")).node(inner).text(")")
            }
            Kind::Timestamp if pick == 2 => {
                node.text("(").node(self.expr(Kind::Date, scope, depth - 1)).text(")::timestamp")
            }
            Kind::Char => node.text("(").node(self.expr(Kind::Text, scope, depth - 1)).text(")::char(8)"),
            _ => self.expr(kind, scope, 0),
        }
    }

    fn number(&mut self, kind: Kind, scope: &Scope, depth: u32) -> Node {
        let node = Node::expr(kind.ty());
        match self.rng.random_range(0..9) {
            0..=3 => {
                let (a, b) = (self.expr(kind, scope, depth - 1), self.expr(kind, scope, depth - 1));
                let op = *["+", "-", "*"].choose(&mut self.rng).expect("some");
                node.text("(").node(a).text(format!(" {op} ")).node(b).text(")").uses(ARITHMETIC)
            }
            4 => {
                let (a, b) = (self.expr(kind, scope, depth - 1), self.expr(kind, scope, depth - 1));
                let zero = if self.rng.random_ratio(1, 3) { ("", "") } else { ("nullif(", ", 0)") };
                let op = if matches!(kind, Kind::Float4 | Kind::Float8) || self.rng.random() { "/" } else { "%" };
                let node = node.text("(").node(a).text(format!(" {op} {}", zero.0)).node(b);
                node.text(format!("{})", zero.1)).uses(ARITHMETIC)
            }
            5 => node.text("abs(").node(self.expr(kind, scope, depth - 1)).text(")").uses(ARITHMETIC),
            6 => node.text("(- ").node(self.expr(kind, scope, depth - 1)).text(")").uses(ARITHMETIC),
            7 if kind == Kind::Int4 => {
                let inner = self.expr(Kind::Text, scope, depth - 1);
                node.text("length(").node(inner).text(")")
            }
            7 if kind == Kind::Numeric => {
                let inner = self.expr(Kind::Date, scope, depth - 1);
                let unit = *["year", "month", "dow", "epoch"].choose(&mut self.rng).expect("some");
                node.text(format!("extract({unit} FROM ")).node(inner).text(")").uses(ARITHMETIC)
            }
            _ => {
                let other = *NUMBERS.choose(&mut self.rng).expect("some");
                let inner = self.expr(other, scope, depth - 1);
                node.text("(").node(inner).text(format!(")::{}", kind.name())).uses(ARITHMETIC)
            }
        }
    }

    /// A condition over a FROM clause's columns and, now and then, over those of a query around it.
    pub fn condition(&mut self, scope: &Scope, outer: &Scope, depth: u32) -> Node {
        let node = self.any_condition(scope, outer, depth);
        if node.all_uses().contains(&ARITHMETIC) { node.uses(MAY_FAIL) } else { node }
    }

    fn any_condition(&mut self, scope: &Scope, outer: &Scope, depth: u32) -> Node {
        let bool = Kind::Bool.ty();
        match self.rng.random_range(0..if depth > 0 { 26 } else { 16 }) {
            0..=6 => self.comparison(scope, outer, depth),
            7 => {
                let kind = self.kind_in(scope);
                let inner = self.expr(kind, scope, 0);
                let not = *["", "NOT "].choose(&mut self.rng).expect("some");
                Node::expr(bool).text("(").node(inner).text(format!(" IS {not}NULL)"))
            }
            8 | 9 => {
                let kind = self.kind_in(scope);
                let inner = self.expr(kind, scope, 0);
                let count = self.rng.random_range(1..6);
                let values: Vec<Node> = (0..count).map(|_| self.literal(kind)).collect();
                let not = *["", "", "NOT "].choose(&mut self.rng).expect("some");
                Node::expr(bool).node(inner).text(format!(" {not}IN (")).shrinking_list(values, ", ").text(")")
            }
            10 | 11 => {
                let kind = self.kind_in(scope);
                let (inner, low, high) = (self.expr(kind, scope, 0), self.literal(kind), self.literal(kind));
                let not = *["", "", "NOT "].choose(&mut self.rng).expect("some");
                Node::expr(bool)
                    .text("(")
                    .node(inner)
                    .text(format!(" {not}BETWEEN "))
                    .node(low)
                    .text(" AND ")
                    .node(high)
                    .text(")")
            }
            12 | 13 => {
                let inner = self.expr(Kind::Text, scope, depth.min(1));
                let pattern = PATTERNS.choose(&mut self.rng).expect("some");
                let not = *["", "", "NOT "].choose(&mut self.rng).expect("some");
                let like = *["LIKE", "LIKE", "LIKE", "ILIKE"].choose(&mut self.rng).expect("some");
                Node::expr(bool).node(inner).text(format!(" {not}{like} '{pattern}'"))
            }
            14 => {
                let inner = self.expr(Kind::Bool, scope, 0);
                let test = *["", " IS TRUE", " IS NOT TRUE", " IS UNKNOWN"].choose(&mut self.rng).expect("some");
                Node::expr(bool).text("(").node(inner).text(format!("{test})"))
            }
            15 => Node::expr(bool).text("(NOT ").node(self.condition(scope, outer, depth.saturating_sub(1))).text(")"),
            16..=19 => {
                let (a, b) = (self.condition(scope, outer, depth - 1), self.condition(scope, outer, depth - 1));
                let op = *["AND", "OR", "OR"].choose(&mut self.rng).expect("some");
                Node::expr(bool).text("(").node(a).text(format!(" {op} ")).node(b).text(")")
            }
            _ => self.asked(scope, depth),
        }
    }

    fn comparison(&mut self, scope: &Scope, outer: &Scope, depth: u32) -> Node {
        let kind = self.kind_in(scope);
        let a = self.expr(kind, scope, depth.min(1));
        let op = *COMPARISONS.choose(&mut self.rng).expect("some");
        let other = match self.rng.random_ratio(1, 5) {
            true if INTEGERS.contains(&kind) => *INTEGERS.choose(&mut self.rng).expect("some"),
            true if kind.is_number() => *NUMBERS.choose(&mut self.rng).expect("some"),
            _ => kind,
        };
        let from_outer = if self.rng.random_ratio(1, 2) { self.column(kind, outer) } else { None };
        let b = match from_outer {
            Some(column) => column,
            None if self.rng.random() => self.literal(other),
            None => self.expr(other, scope, depth.min(1)),
        };
        Node::expr(Kind::Bool.ty()).text("(").node(a).text(format!(" {op} ")).node(b).text(")")
    }

    /// A subquery that gives a truth value.
    fn asked(&mut self, scope: &Scope, depth: u32) -> Node {
        let bool = Node::expr(Kind::Bool.ty());
        let not = *["", "NOT "].choose(&mut self.rng).expect("some");
        match self.rng.random_range(0..6) {
            0 | 1 => bool.text(format!("{not}EXISTS (")).node(self.subquery(None, scope, depth - 1)).text(")"),
            2 | 3 => {
                let kind = self.kind_in(scope);
                let value = self.expr(kind, scope, 0);
                bool.node(value).text(format!(" {not}IN (")).node(self.subquery(Some(kind), scope, depth - 1)).text(")")
            }
            4 => {
                let kind = self.kind_in(scope);
                let value = self.expr(kind, scope, 0);
                let op = *["=", "<", ">=", "<>"].choose(&mut self.rng).expect("some");
                let which = *["ANY", "ALL"].choose(&mut self.rng).expect("some");
                let inner = self.subquery(Some(kind), scope, depth - 1);
                bool.text("(").node(value).text(format!(" {op} {which} (")).node(inner).text("))")
            }
            _ => {
                let (value, kind) = self.scalar_subquery(scope, depth - 1);
                let own = self.expr(kind, scope, 0);
                let op = *["=", "<", ">=", "<>"].choose(&mut self.rng).expect("some");
                bool.text("(").node(own).text(format!(" {op} ")).node(value).text(")")
            }
        }
    }

    /// `SELECT … FROM …` of one column of this kind, or of a constant, that may look at the query around it.
    fn subquery(&mut self, kind: Option<Kind>, outer: &Scope, depth: u32) -> Node {
        let from = self.from(2, depth, 20_000);
        let output = match kind {
            None => Node::fixed("1"),
            Some(kind) => self.expr(kind, &from.scope, 0),
        };
        let head = if kind.is_some() && self.rng.random_ratio(1, 8) { "SELECT DISTINCT " } else { "SELECT " };
        let filter = self.correlated(&from.scope, outer, depth);
        Node::fixed(head).node(output).text(" FROM ").node(from.node).node(filter)
    }

    /// A subquery of one row, and the kind of its value.
    pub fn scalar_subquery(&mut self, outer: &Scope, depth: u32) -> (Node, Kind) {
        let from = self.from(2, depth, 20_000);
        let (call, kind) = self.aggregate(&from.scope, 1);
        let filter = self.correlated(&from.scope, outer, depth);
        let node =
            Node::expr(kind.ty()).text("(SELECT ").node(call).text(" FROM ").node(from.node).node(filter).text(")");
        (node, kind)
    }

    fn correlated(&mut self, scope: &Scope, outer: &Scope, depth: u32) -> Node {
        let pairs: Vec<(String, String)> = scope
            .iter()
            .flat_map(|own| outer.iter().map(move |other| (own, other)))
            .filter(|(own, other)| own.kind == other.kind && own.kind != Kind::Bool)
            .map(|(own, other)| (own.sql.clone(), other.sql.clone()))
            .collect();
        let mut node = Node::new(Role::Fixed);
        let pair = pairs.choose(&mut self.rng).filter(|_| self.rng.random_ratio(3, 4));
        let correlates = pair.is_some();
        if let Some((own, other)) = pair {
            node = node.text(" WHERE ").node(Node::expr(Kind::Bool.ty()).text(format!("{own} = {other}")));
        }
        if self.rng.random_ratio(1, 2) {
            let none = Scope::new();
            let visible = if correlates { outer } else { &none };
            let more = self.condition(scope, visible, depth.min(1));
            let word = if correlates { " AND " } else { " WHERE " };
            node = node.node(Node::optional(word).node(more));
        }
        node
    }
}
