//! FROM clauses: tables, subqueries, WITH queries and constants, joined in every way.

use super::kinds::{INTEGERS, Kind, NUMBERS};
use super::{Column, Generator, Scope, Table};
use crate::generate::node::{Node, Role};
use rand::Rng;
use rand::seq::IndexedRandom;

pub struct From {
    pub node: Node,
    pub scope: Scope,
    /// Expressions that together tell its rows apart; none if nothing does.
    pub identity: Vec<String>,
    /// About.
    pub rows: u64,
}

impl Generator {
    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("a{}", self.aliases)
    }

    /// Up to so many relations; results of more rows than `rows_max` are not expected.
    pub fn from(&mut self, most: usize, depth: u32, rows_max: u64) -> From {
        let mut from = self.relation(depth);
        for _ in 0..self.rng.random_range(0..most) {
            from = self.join(from, depth, rows_max);
        }
        from
    }

    fn relation(&mut self, depth: u32) -> From {
        match self.rng.random_range(0..16) {
            0..=1 if depth > 0 => self.derived(depth - 1),
            2 => self.constants(),
            _ => {
                let largest = self.tables.iter().max_by_key(|table| table.rows).filter(|_| self.rng.random_ratio(1, 4));
                let table = largest.or(self.tables.choose(&mut self.rng)).expect("tables").clone();
                self.named(&table)
            }
        }
    }

    pub fn named(&mut self, table: &Table) -> From {
        let alias = self.alias();
        let columns = table.columns.iter();
        let scope: Scope = columns.map(|c| Column { sql: format!("{alias}.{}", c.sql), kind: c.kind }).collect();
        let identity = if table.has_identity { vec![scope[0].sql.clone()] } else { Vec::new() };
        From { node: Node::fixed(format!("{} {alias}", table.name)), scope, identity, rows: table.rows.max(1) }
    }

    fn derived(&mut self, depth: u32) -> From {
        let inner = self.select(depth);
        let alias = self.alias();
        let columns = inner.kinds.iter().enumerate();
        let scope = columns.map(|(number, kind)| Column { sql: format!("{alias}.o{number}"), kind: *kind }).collect();
        let node = Node::fixed("(").node(inner.node).text(format!(") {alias}"));
        From { node, scope, identity: Vec::new(), rows: inner.rows }
    }

    fn constants(&mut self) -> From {
        let alias = self.alias();
        let kinds: Vec<Kind> = (0..self.rng.random_range(1..4)).map(|_| self.any_kind()).collect();
        let rows: Vec<Node> = (0..self.rng.random_range(1..6))
            .map(|_| {
                let values: Vec<Node> = kinds.iter().map(|kind| self.literal(*kind)).collect();
                Node::fixed("(").list(values, ", ").text(")")
            })
            .collect();
        let count = rows.len() as u64;
        let names = (0..kinds.len()).map(|number| format!("v{number}")).collect::<Vec<_>>().join(", ");
        let node = Node::fixed("(VALUES ").shrinking_list(rows, ", ").text(format!(") {alias}({names})"));
        let scope = kinds.iter().enumerate().map(|(n, kind)| Column { sql: format!("{alias}.v{n}"), kind: *kind });
        From { node, scope: scope.collect(), identity: Vec::new(), rows: count }
    }

    fn join(&mut self, left: From, depth: u32, rows_max: u64) -> From {
        let right = self.relation(depth);
        let pairs = pairs(&left.scope, &right.scope);
        let few = left.rows.saturating_mul(right.rows) <= rows_max.min(30_000);
        let kind = *["JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]
            .choose(&mut self.rng)
            .expect("some");
        if !few && (kind == "CROSS JOIN" || pairs.is_empty()) {
            return left;
        }
        let (condition, rows) = match pairs.choose(&mut self.rng).cloned() {
            _ if kind == "CROSS JOIN" => (Node::new(Role::Fixed), left.rows * right.rows),
            None if kind == "FULL JOIN" => return left,
            None => {
                let mut both = left.scope.clone();
                both.extend(right.scope.clone());
                (Node::fixed(" ON ").node(self.condition(&both, &Scope::new(), 0)), left.rows * right.rows)
            }
            Some(pair) => {
                let identical = left.identity.contains(&pair.0) || right.identity.contains(&pair.1);
                let rows = if identical { left.rows.max(right.rows) } else { left.rows * right.rows / 40 + left.rows };
                if rows > rows_max {
                    return left;
                }
                (Node::fixed(" ON ").node(self.on(&pair, &left, &right, kind, depth)), rows)
            }
        };
        let mut scope = left.scope;
        scope.extend(right.scope);
        let known = !left.identity.is_empty() && !right.identity.is_empty();
        let identity = if known { [left.identity, right.identity].concat() } else { Vec::new() };
        let joined = Node::optional(format!(" {kind} ")).node(right.node).node(condition);
        From { node: left.node.node(joined), scope, identity, rows }
    }

    fn on(&mut self, pair: &(String, String), left: &From, right: &From, kind: &str, depth: u32) -> Node {
        let bool = Kind::Bool.ty();
        let op = if self.rng.random_ratio(1, 8) { "IS NOT DISTINCT FROM" } else { "=" };
        // PostgreSQL has no full join by anything but equality.
        let op = if kind == "FULL JOIN" { "=" } else { op };
        let mut node = Node::new(Role::Fixed).node(Node::expr(bool).text(format!("{} {op} {}", pair.0, pair.1)));
        if self.rng.random_ratio(1, 4)
            && let Some((a, b)) = pairs(&left.scope, &right.scope).choose(&mut self.rng)
        {
            node = node.node(Node::optional(" AND ").node(Node::expr(bool).text(format!("{a} = {b}"))));
        }
        if kind != "FULL JOIN" && self.rng.random_ratio(1, 4) {
            let mut both = left.scope.clone();
            both.extend(right.scope.clone());
            let more = self.condition(&both, &Scope::new(), depth.min(1));
            node = node.node(Node::optional(" AND ").node(more));
        }
        node
    }
}

/// Columns of either side that can be compared.
fn pairs(left: &Scope, right: &Scope) -> Vec<(String, String)> {
    let comparable = |a: Kind, b: Kind| {
        a == b && a != Kind::Bool
            || INTEGERS.contains(&a) && INTEGERS.contains(&b)
            || NUMBERS.contains(&a) && NUMBERS.contains(&b) && (a == Kind::Numeric || b == Kind::Numeric)
    };
    let all = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
    all.filter(|(a, b)| comparable(a.kind, b.kind)).map(|(a, b)| (a.sql.clone(), b.sql.clone())).collect()
}
