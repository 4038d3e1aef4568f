//! Groups: keys, aggregates with DISTINCT and FILTER, grouping sets, HAVING.

use super::from::From;
use super::kinds::{INTEGERS, Kind};
use super::query::Select;
use super::{Column, Generator, Scope};
use crate::generate::node::{Node, Role};
use rand::Rng;
use rand::seq::IndexedRandom;

/// Without min and max (PostgreSQL 15).
const UNORDERED: [Kind; 3] = [Kind::Bool, Kind::Bytea, Kind::Uuid];

impl Generator {
    /// An aggregate over a FROM clause's rows, and the kind of its result.
    pub fn aggregate(&mut self, scope: &Scope, depth: u32) -> (Node, Kind) {
        let pick = self.rng.random_range(0..11);
        let (head, argument, kind) = match pick {
            0 => ("count(", Node::fixed("*"), Kind::Int8),
            1 | 2 => {
                let of = self.kind_in(scope);
                ("count(", self.expr(of, scope, depth), Kind::Int8)
            }
            3 | 4 => {
                let of = *[Kind::Int2, Kind::Int4, Kind::Int8, Kind::Numeric].choose(&mut self.rng).expect("some");
                let kind = if matches!(of, Kind::Int2 | Kind::Int4) { Kind::Int8 } else { Kind::Numeric };
                ("sum(", self.expr(of, scope, depth), kind)
            }
            5 => {
                let of = *[Kind::Int4, Kind::Int8, Kind::Numeric].choose(&mut self.rng).expect("some");
                ("avg(", self.expr(of, scope, depth), Kind::Numeric)
            }
            6 => {
                let call = *["sum(", "avg(", "min(", "max("].choose(&mut self.rng).expect("some");
                (call, self.expr(Kind::Float8, scope, 0), Kind::Float8)
            }
            7 => {
                let call = *["bool_and(", "bool_or(", "every("].choose(&mut self.rng).expect("some");
                (call, self.expr(Kind::Bool, scope, depth), Kind::Bool)
            }
            8 => {
                let kinds = [Kind::Int2, Kind::Int4, Kind::Int8, Kind::Date, Kind::Timestamp, Kind::Text];
                let of = *kinds.choose(&mut self.rng).expect("some");
                let calls = [
                    "percentile_disc(0.4) WITHIN GROUP (ORDER BY ",
                    "percentile_disc(0.99) WITHIN GROUP (ORDER BY ",
                    "mode() WITHIN GROUP (ORDER BY ",
                ];
                let call = *calls.choose(&mut self.rng).expect("some");
                (call, self.expr(of, scope, depth), of)
            }
            _ => {
                let of = self.kind_in(scope);
                let of = if UNORDERED.contains(&of) { Kind::Int4 } else { of };
                let call = *["min(", "max("].choose(&mut self.rng).expect("some");
                // A varchar's least is a text.
                let kind = if of == Kind::Varchar { Kind::Text } else { of };
                (call, self.expr(of, scope, depth), kind)
            }
        };
        let distinct = pick > 0 && pick != 8 && self.rng.random_ratio(1, 4);
        let mut node = Node::expr(kind.ty()).text(head);
        if distinct {
            node = node.node(Node::optional("DISTINCT "));
        }
        node = node.node(argument).text(")");
        if self.rng.random_ratio(1, 6) {
            let condition = self.condition(scope, &Scope::new(), 0);
            node = node.node(Node::optional(" FILTER (WHERE ").node(condition).text(")"));
        }
        (node, kind)
    }

    pub fn grouped(&mut self, depth: u32) -> Select {
        let from = self.from(4, depth, 400_000);
        self.grouped_from(from, depth)
    }

    /// One table alone, by few conditions.
    pub fn scanned(&mut self) -> Select {
        let table = self.tables.iter().max_by_key(|table| table.rows).expect("tables").clone();
        let from = self.named(&table);
        self.grouped_from(from, 1)
    }

    fn grouped_from(&mut self, from: From, depth: u32) -> Select {
        let keys = self.keys(&from);
        let sets = keys.len() > 1 && self.rng.random_ratio(1, 3);
        let mut leaves: Scope = keys.clone();
        for _ in 0..self.rng.random_range(1..5) {
            let (call, kind) = self.aggregate(&from.scope, depth.min(2));
            leaves.push(Column { sql: call.sql(), kind });
        }
        if sets {
            let list = keys.iter().map(|key| key.sql.as_str()).collect::<Vec<_>>().join(", ");
            leaves.push(Column { sql: format!("GROUPING({list})"), kind: Kind::Int4 });
        }
        let mut columns: Scope = leaves.clone();
        columns.extend(self.over_groups(&leaves));
        let items: Vec<Node> = columns
            .iter()
            .enumerate()
            .map(|(number, column)| {
                let value = match self.rng.random_ratio(1, 8) {
                    true if !column.sql.contains(" OVER ") => self.expr(column.kind, &leaves, 1),
                    _ => Node::expr(column.kind.ty()).text(column.sql.clone()),
                };
                Node::new(Role::Fixed).node(value).text(format!(" AS o{number}"))
            })
            .collect();
        let filter = self.optional_where(&from.scope, depth);
        let mut node = Node::fixed("SELECT ").shrinking_list(items, ", ").text(" FROM ").node(from.node).node(filter);
        if !keys.is_empty() {
            node = node.text(format!(" GROUP BY {}", self.grouping(&keys, sets)));
        }
        if self.rng.random_ratio(1, 5) {
            // In a subquery PostgreSQL knows no group again that is an expression.
            let is_plain = keys.iter().all(|key| !key.sql.contains('('));
            let having = self.condition(&leaves, &Scope::new(), u32::from(is_plain));
            node = node.node(Node::optional(" HAVING ").node(having));
        }
        Select { node, kinds: columns.iter().map(|column| column.kind).collect(), rows: from.rows / 3 + 1 }
    }

    /// What groups are made by: columns, or expressions that stand in the select list as they are.
    fn keys(&mut self, from: &From) -> Vec<Column> {
        let mut keys: Vec<Column> = Vec::new();
        for _ in 0..*[0, 1, 1, 1, 2, 2, 3, 4].choose(&mut self.rng).expect("some") {
            let column = from.scope.choose(&mut self.rng).expect("columns").clone();
            let key = match column.kind {
                kind if INTEGERS.contains(&kind) && self.rng.random_ratio(1, 4) => Column {
                    sql: format!("({} % 7)", column.sql),
                    kind: if kind == Kind::Int2 { Kind::Int4 } else { kind },
                },
                Kind::Timestamp if self.rng.random() => {
                    Column { sql: format!("date_trunc('month', {})", column.sql), kind: Kind::Timestamp }
                }
                Kind::Text if self.rng.random_ratio(1, 4) => {
                    Column { sql: format!("substring({}, 1, 2)", column.sql), kind: Kind::Text }
                }
                _ => column,
            };
            if keys.iter().all(|other| other.sql != key.sql) {
                keys.push(key);
            }
        }
        keys
    }

    fn grouping(&mut self, keys: &[Column], sets: bool) -> String {
        let list = keys.iter().map(|key| key.sql.as_str()).collect::<Vec<_>>().join(", ");
        if !sets {
            return list;
        }
        let (first, rest) = (&keys[0].sql, &keys[1].sql);
        match self.rng.random_range(0..6) {
            0 | 1 => format!("ROLLUP ({list})"),
            2 => format!("CUBE ({list})"),
            3 => format!("GROUPING SETS (({list}), ({first}), ({rest}), ())"),
            4 => format!("GROUPING SETS (({first}), ({rest}))").replace("))", &format!("), ({list}))")),
            _ => format!("{list}, ROLLUP ({rest})"),
        }
    }

    /// Windows over the groups.
    fn over_groups(&mut self, leaves: &Scope) -> Scope {
        let count = *[0, 0, 0, 1, 2].choose(&mut self.rng).expect("some");
        (0..count).map(|_| self.peers_window(leaves)).collect()
    }
}
