//! Queries, of columns named `o0`, `o1`, ….

use super::kinds::Kind;
use super::{Column, Generator, Scope, Table};
use crate::generate::node::{Node, Role};
use rand::Rng;
use rand::seq::IndexedRandom;

pub struct Select {
    pub node: Node,
    pub kinds: Vec<Kind>,
    /// About.
    pub rows: u64,
}

/// Rows that one answer may have, about.
const ANSWER_ROWS_MAX: u64 = 6_000;

impl Generator {
    /// A whole statement, and whether the order of its rows is told.
    pub fn statement(&mut self) -> (Node, bool) {
        self.aliases = 0;
        let tables = self.tables.len();
        let (mut head, mut names) = (Node::new(Role::Fixed), 0);
        while names < 2 && self.rng.random_ratio(1, 6) {
            head = head.node(self.with(names));
            names += 1;
        }
        let select = self.select(3);
        self.tables.truncate(tables);
        let few = select.rows <= ANSWER_ROWS_MAX;
        let node = head.node(select.node);
        if few && self.rng.random() {
            return (node, false);
        }
        let keys = self.all_keys(select.kinds.len());
        let node = node.text(format!(" ORDER BY {keys}"));
        if few && self.rng.random() {
            return (node, true);
        }
        (node.node(self.limit()), true)
    }

    /// Positions of all columns in any order: nothing ties but what is equal.
    fn all_keys(&mut self, columns: usize) -> String {
        let mut positions: Vec<usize> = (1..=columns).collect();
        let first = self.rng.random_range(0..columns);
        positions.swap(0, first);
        let keys = positions.iter().map(|position| format!("{position}{}", self.direction()));
        keys.collect::<Vec<_>>().join(", ")
    }

    fn limit(&mut self) -> Node {
        let limit = *[0, 1, 2, 7, 30, 300].choose(&mut self.rng).expect("some");
        let text = match self.rng.random_range(0..4) {
            0 => format!(" OFFSET {} LIMIT {limit}", self.rng.random_range(0..40)),
            1 => format!(" FETCH FIRST {limit} ROWS WITH TIES"),
            _ => format!(" LIMIT {limit}"),
        };
        Node::fixed(text)
    }

    fn with(&mut self, number: usize) -> Node {
        let word = if number == 0 { "WITH RECURSIVE " } else { ", " };
        if self.rng.random_ratio(1, 3)
            && let Some(node) = self.recursion(number, word)
        {
            return node;
        }
        let select = self.select(2);
        let kept = *["", "", "MATERIALIZED ", "NOT MATERIALIZED "].choose(&mut self.rng).expect("some");
        let node = Node::fixed(format!("{word}w{number} AS {kept}(")).node(select.node).text(") ");
        let columns = select.kinds.iter().enumerate();
        let columns = columns.map(|(number, kind)| Column { sql: format!("o{number}"), kind: *kind }).collect();
        let table = Table { name: format!("w{number}"), columns, rows: select.rows, has_identity: false };
        // Often, so that it is read more than once.
        self.tables.extend([table.clone(), table.clone(), table]);
        node
    }

    /// Keys that are reached from some by way of a small table, and in how many steps.
    fn recursion(&mut self, number: usize, word: &str) -> Option<Node> {
        const ROWS_MAX: u64 = 4_000;
        let integers = |table: &Table| {
            let columns = table.columns.iter().filter(|column| column.kind == Kind::Int4);
            columns.map(|column| column.sql.clone()).collect::<Vec<_>>()
        };
        let small: Vec<(Table, Vec<String>)> = self
            .tables
            .iter()
            .filter(|table| table.rows <= ROWS_MAX)
            .map(|table| (table.clone(), integers(table)))
            .filter(|(_, columns)| !columns.is_empty())
            .collect();
        let (Table { name, rows, .. }, columns) = small.choose(&mut self.rng)?.clone();
        let (other, columns_of_other) = small.choose(&mut self.rng)?.clone();
        let [first, from, to] = std::array::from_fn(|_| columns.choose(&mut self.rng).expect("some").clone());
        let asked = columns_of_other.choose(&mut self.rng).expect("some");
        // Rows that are told apart end in as many steps as there are, and do not multiply.
        let (op, distinct) = if self.rng.random() { ("UNION", "") } else { ("UNION ALL", "DISTINCT ") };
        let also = match self.rng.random_range(0..4) {
            0 => format!(" AND NOT EXISTS (SELECT 1 FROM {} c WHERE c.{asked} = b.{to} + r.o1)", other.name),
            1 => format!(" AND b.{to} IN (SELECT c.{asked} FROM {} c WHERE c.{asked} % 3 > 0)", other.name),
            2 => format!(" AND b.{to} <> (SELECT min(c.{asked}) FROM {} c)", other.name),
            _ => String::new(),
        };
        let (rest, steps) = (self.rng.random_range(0..9), self.rng.random_range(1..5));
        let node = Node::fixed(format!(
            "{word}w{number} AS (SELECT a.{first} AS o0, 1 AS o1 FROM {name} a WHERE a.{first} % 9 = {rest} {op} \
             SELECT {distinct}b.{to}, r.o1 + 1 FROM w{number} r JOIN {name} b ON b.{from} = r.o0 \
             WHERE r.o1 < {steps}{also}) "
        ));
        let column = |at: usize| Column { sql: format!("o{at}"), kind: Kind::Int4 };
        let table = Table {
            name: format!("w{number}"),
            columns: vec![column(0), column(1)],
            rows: rows * 2,
            has_identity: false,
        };
        self.tables.extend([table.clone(), table.clone(), table]);
        Some(node)
    }

    pub fn select(&mut self, depth: u32) -> Select {
        match self.rng.random_range(0..23) {
            20..=22 => self.scanned(),
            0..=6 => self.grouped(depth),
            7..=9 if depth > 0 => self.set_operation(depth),
            10 => self.distinct_on(depth),
            11 if depth > 0 => self.cut(depth),
            _ => self.plain(depth),
        }
    }

    pub fn optional_where(&mut self, scope: &Scope, depth: u32) -> Node {
        let mut node = Node::new(Role::Fixed);
        for number in 0..self.rng.random_range(0..3) {
            let word = if number == 0 { " WHERE " } else { " AND " };
            let condition = self.condition(scope, &Scope::new(), depth.min(2));
            node = match number {
                0 => node.text(word).node(condition),
                _ => node.node(Node::optional(word).node(condition)),
            };
        }
        node
    }

    fn plain(&mut self, depth: u32) -> Select {
        let from = self.from(5, depth, 60_000);
        let mut items = Vec::new();
        let mut kinds = Vec::new();
        for number in 0..self.rng.random_range(1..6) {
            let (value, kind) = match self.rng.random_range(0..12) {
                0 | 1 => {
                    let window = self.rows_window(&from.scope, &from.identity);
                    (Node::expr(window.kind.ty()).text(window.sql), window.kind)
                }
                2 if depth > 0 => self.scalar_subquery(&from.scope, depth - 1),
                3 if depth > 0 => {
                    let condition = self.condition(&from.scope, &Scope::new(), depth);
                    (condition, Kind::Bool)
                }
                _ => {
                    let kind = self.kind_in(&from.scope);
                    (self.expr(kind, &from.scope, depth.min(2)), kind)
                }
            };
            items.push(Node::new(Role::Fixed).node(value).text(format!(" AS o{number}")));
            kinds.push(kind);
        }
        let head = if self.rng.random_ratio(1, 6) { "SELECT DISTINCT " } else { "SELECT " };
        let filter = self.optional_where(&from.scope, depth);
        let node = Node::fixed(head).shrinking_list(items, ", ").text(" FROM ").node(from.node).node(filter);
        Select { node, kinds, rows: from.rows }
    }

    /// Its rows are told apart by all that it shows.
    fn distinct_on(&mut self, depth: u32) -> Select {
        let from = self.from(3, depth, 60_000);
        let columns: Vec<Column> = (0..self.rng.random_range(1..4))
            .map(|_| from.scope.choose(&mut self.rng).expect("columns").clone())
            .collect();
        let on = &columns[0].sql;
        let items = columns.iter().enumerate().map(|(number, column)| format!("{} AS o{number}", column.sql));
        let items = items.collect::<Vec<_>>().join(", ");
        let keys: Vec<String> = columns.iter().map(|column| format!("{}{}", column.sql, self.direction())).collect();
        let filter = self.optional_where(&from.scope, depth);
        let node = Node::fixed(format!("(SELECT DISTINCT ON ({on}) {items} FROM ")).node(from.node).node(filter);
        let node = node.text(format!(" ORDER BY {})", keys.join(", ")));
        let node = Node::fixed("SELECT * FROM ").node(node).text(format!(" d{}", self.aliases));
        Select { node, kinds: columns.iter().map(|column| column.kind).collect(), rows: from.rows / 2 + 1 }
    }

    /// The first rows of a query.
    fn cut(&mut self, depth: u32) -> Select {
        let inner = self.select(depth - 1);
        let keys = self.all_keys(inner.kinds.len());
        let node = Node::fixed("SELECT * FROM (").node(inner.node).text(format!(" ORDER BY {keys}"));
        let node = node.node(self.limit()).text(format!(") l{}", self.aliases));
        Select { node, kinds: inner.kinds, rows: inner.rows.min(300) }
    }

    fn set_operation(&mut self, depth: u32) -> Select {
        let first = self.plain(depth - 1);
        let from = self.from(3, depth - 1, 60_000);
        let items: Vec<Node> = first
            .kinds
            .iter()
            .enumerate()
            .map(|(number, kind)| {
                Node::new(Role::Fixed).node(self.expr(*kind, &from.scope, 1)).text(format!(" AS o{number}"))
            })
            .collect();
        let filter = self.optional_where(&from.scope, depth - 1);
        let second = Node::fixed("SELECT ").list(items, ", ").text(" FROM ").node(from.node).node(filter);
        let op = *["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]
            .choose(&mut self.rng)
            .expect("some");
        let node = Node::fixed("(").node(first.node).text(format!(") {op} (")).node(second).text(")");
        Select { node, kinds: first.kinds, rows: first.rows + from.rows }
    }
}
