//! Tables of all sizes whose rows follow from their numbers, so that one statement fills both servers alike.

use super::kinds::{KINDS, Kind, LONG};
use super::{Column, Generator, Table};
use rand::Rng;
use rand::seq::IndexedRandom;

pub const MOOD: &str = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'Very happy')";
/// Rows of each table of a schema; the last one has more than a row group.
const SIZES: [&[u64]; 6] = [&[0, 1, 2], &[7, 50], &[50, 300], &[1000, 5000], &[5000, 9000], &[70_000, 140_000]];

impl Generator {
    /// DDL and rows for so many new tables: the sixth has several row groups.
    pub fn new_schema(&mut self, tables: usize) -> Vec<String> {
        let mut statements = vec![MOOD.to_string()];
        self.tables.clear();
        for (number, sizes) in SIZES.iter().enumerate().take(tables) {
            let rows = *sizes.choose(&mut self.rng).expect("sizes");
            let table = self.new_table(format!("t{number}"), rows);
            let declared: Vec<&str> = table.columns[1..].iter().map(|column| self.declared(column.kind)).collect();
            statements.push(self.definition(&table, &declared));
            statements.extend(self.filled(&table, &declared));
            self.tables.push(table);
        }
        statements
    }

    fn new_table(&mut self, name: String, rows: u64) -> Table {
        let id = if self.rng.random_ratio(1, 4) { Kind::Int8 } else { Kind::Int4 };
        let mut columns = vec![Column { sql: "id".into(), kind: id }];
        for number in 0..self.rng.random_range(4..10) {
            let kind = KINDS.choose_weighted(&mut self.rng, |(_, weight)| *weight).expect("kinds").0;
            columns.push(Column { sql: format!("c{number}"), kind });
        }
        Table { name, columns, rows, has_identity: true }
    }

    fn declared(&mut self, kind: Kind) -> &'static str {
        kind.declarations().choose(&mut self.rng).copied().unwrap_or(kind.name())
    }

    fn definition(&mut self, table: &Table, declared: &[&str]) -> String {
        let key = if self.rng.random_ratio(3, 4) { " PRIMARY KEY" } else { " NOT NULL" };
        let mut parts = vec![format!("id {}{key}", table.columns[0].kind.name())];
        parts.extend(table.columns[1..].iter().zip(declared).map(|(column, of)| format!("{} {of}", column.sql)));
        let rests = match self.rng.random_range(0..10) {
            0 => "/*basalt WITH (orientation = 'row')*/",
            1 => "/*basalt WITH (orientation = 'row,column')*/",
            2 => "/*basalt WITH (tablets = 3, distribution_key = 'id')*/",
            3 => "/*basalt WITH (clustering_key = 'c0')*/",
            4 => "/*basalt WITH (clustering_key = 'c2,c1', tablets = 2, distribution_key = 'id')*/",
            _ => "",
        };
        format!("CREATE TABLE {} ({}) {rests}", table.name, parts.join(", "))
    }

    /// Rows that come in portions, cold ones first, then what is deleted and changed of them.
    fn filled(&mut self, table: &Table, declared: &[&str]) -> Vec<String> {
        if table.rows == 0 {
            return Vec::new();
        }
        let columns = &table.columns[1..];
        let values: Vec<String> =
            columns.iter().zip(declared).map(|(column, of)| self.filling(column.kind, of, table.rows)).collect();
        let portion = |from: u64, to: u64| {
            let values = values.join(", ");
            format!("INSERT INTO {} SELECT i, {values} FROM generate_series({from}, {to}) i", table.name)
        };
        let cold = match self.rng.random_range(0..4) {
            0 => 0,
            1 => table.rows / 2,
            2 => table.rows * 9 / 10,
            _ => table.rows,
        };
        let mut statements = Vec::new();
        if cold > 0 {
            statements.extend([portion(1, cold), "/*basalt VACUUM FULL*/".into()]);
        }
        // A column that rows lack which rest already.
        if self.rng.random_ratio(1, 6) {
            let last = columns.len();
            let default = columns[last - 1].kind.literal(self.rng.random_range(0..100));
            let (name, column) = (&table.name, &columns[last - 1].sql);
            statements.push(format!("ALTER TABLE {name} DROP COLUMN {column}"));
            statements.push(format!("ALTER TABLE {name} ADD COLUMN {column} {} DEFAULT {default}", declared[last - 1]));
        }
        if self.rng.random_ratio(1, 3) {
            let column = columns.choose(&mut self.rng).expect("columns");
            statements.push(format!("CREATE INDEX ON {} ({})", table.name, column.sql));
        }
        if cold < table.rows {
            statements.push(portion(cold + 1, table.rows));
        }
        if table.rows > 2 && self.rng.random() {
            statements.extend(self.change(table));
            if self.rng.random_ratio(1, 4) {
                statements.push("/*basalt VACUUM FULL*/".into());
                statements.extend(self.change(table));
            }
        }
        statements
    }

    /// What a column has in row `i`.
    fn filling(&mut self, kind: Kind, declared: &str, rows: u64) -> String {
        let salt = self.rng.random_range(0..1000);
        let few = *[1, 2, 5, 20, 100].choose(&mut self.rng).expect("some");
        let many = rows.max(10) / *[1, 2, 10].choose(&mut self.rng).expect("some");
        let h = match self.rng.random_range(0..8) {
            0 => "i".to_string(),
            1 => format!("i / {few}"),
            2 => format!("(i::int8 * 7919 + {salt}) % {few}"),
            3 => format!("i * 10 / {}", rows.max(1) + 1),
            4 => format!("((i::int8 * i + {salt}) % 1009) % {few}"),
            5 => format!("CASE WHEN i % 10 < 8 THEN 3 ELSE (i::int8 * 7919 + {salt}) % {many} END"),
            _ => format!("(i::int8 * 7919 + {salt}) % {many}"),
        };
        let mut value = format!("({})", kind.value(&h));
        if kind.is_text() {
            value = match self.rng.random_range(0..6) {
                0 => format!("('{LONG}' || ({h}))"),
                1 => format!("md5(({h})::text)"),
                2 => format!("(({h})::text || repeat('ab', (({h}) % 40)::int))"),
                _ => value,
            };
        }
        if kind == Kind::Int8 && self.rng.random_ratio(1, 3) {
            value = format!("({value} * 1000000000039)");
        }
        if kind == Kind::Numeric && declared.starts_with("numeric(38") {
            value = format!("({value} + 10000000000000000000000000)");
        }
        let edges = kind.edges();
        if !edges.is_empty() && self.rng.random_ratio(2, 5) {
            let list = edges.iter().map(|edge| format!("'{edge}'")).collect::<Vec<_>>().join(", ");
            let rare = *[3, 11, 101].choose(&mut self.rng).expect("some");
            let edge = format!("(ARRAY[{list}])[i / {rare} % {} + 1]::{}", edges.len(), kind.name());
            value = format!("CASE WHEN i % {rare} = 1 THEN {edge} ELSE {value} END");
        }
        match self.rng.random_range(0..5) {
            0 | 1 => value,
            2 => format!("CASE WHEN i % 7 = {} THEN NULL ELSE {value} END", salt % 7),
            3 => format!("CASE WHEN i % 100 < {} THEN NULL ELSE {value} END", salt % 97),
            _ if self.rng.random_ratio(1, 5) => "NULL".into(),
            _ => value,
        }
    }

    /// Deletes, updates and inserts of some rows.
    pub fn change(&mut self, table: &Table) -> Vec<String> {
        let (step, rest) = (self.rng.random_range(3..30), self.rng.random_range(0..3));
        let some = format!("WHERE id % {step} = {rest}");
        let Table { name, .. } = table;
        let mut statements = Vec::new();
        if self.rng.random_ratio(2, 3) {
            let column = table.columns[1..].choose(&mut self.rng).expect("columns");
            let value = match self.rng.random_range(0..3) {
                0 => "NULL".to_string(),
                1 => column.sql.clone(),
                _ => column.kind.literal(self.rng.random_range(0..100)),
            };
            statements.push(format!("UPDATE {name} SET {} = {value} {some}", column.sql));
        }
        if self.rng.random_ratio(1, 2) {
            statements.push(format!("DELETE FROM {name} WHERE id % {} = {rest}", step * 2 + 1));
        }
        statements
    }
}
