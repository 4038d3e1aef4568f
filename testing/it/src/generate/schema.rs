//! Tables with random columns, and their first rows.

use super::Generator;
use super::expr::{Scope, ScopeColumn};
use super::literals::{quoted, value};
use super::types::Ty;
use rand::Rng;
use rand::seq::IndexedRandom;

/// What users make. The enum is a type like any other, the domain stands for some columns' own.
const TYPES: [&str; 2] = [
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'Very happy')",
    "CREATE DOMAIN small AS int CHECK (VALUE BETWEEN -1000 AND 100000)",
];
pub const MOODS: [&str; 4] = ["sad", "ok", "happy", "Very happy"];

/// A table, or a view over one: `id` is unique in it.
#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<TableColumn>,
    pub writable: bool,
}

#[derive(Clone, Debug)]
pub struct TableColumn {
    pub name: String,
    pub ty: Ty,
    /// As DDL spells it: with length or precision.
    pub declared: String,
}

impl Table {
    pub fn scope(&self, alias: &str) -> Scope {
        let columns = self.columns.iter();
        Scope {
            columns: columns
                .map(|column| ScopeColumn { sql: format!("{alias}.{}", column.name), ty: column.ty })
                .collect(),
        }
    }
}

impl Generator<'_> {
    /// Statements that make and fill a new set of tables.
    pub fn new_schema(&mut self) -> Vec<String> {
        self.tables.clear();
        let mut statements: Vec<String> = TYPES.iter().map(ToString::to_string).collect();
        for number in 0..self.rng.random_range(2..5) {
            let table = self.new_table(&format!("t{number}"));
            let columns = table.columns.iter().map(|column| match column.name.as_str() {
                "id" => "id int PRIMARY KEY".to_string(),
                name => format!("{name} {}", column.declared),
            });
            let columns = columns.collect::<Vec<_>>().join(", ");
            statements.push(format!("CREATE TABLE {} ({columns})", table.name));
            let rows = match self.rng.random_range(0..8) {
                0 => 0,
                1 => 250,
                _ => self.rng.random_range(5..50),
            };
            if rows > 0 {
                statements.push(self.rows(&table, 0, rows));
            }
            self.next_id.insert(table.name.clone(), rows);
            statements.extend(self.constraint(&table));
            statements.extend(self.index(&table));
            self.tables.push(table);
        }
        statements
    }

    /// A constraint that most rows keep; those that are there need not.
    fn constraint(&mut self, table: &Table) -> Option<String> {
        let column = table.columns[1..].choose(&mut self.rng)?;
        let name = &column.name;
        let constraint = match (self.types.name(column.ty), self.rng.random_range(0..4)) {
            ("int4" | "int8" | "numeric" | "float8", 0) => format!("CHECK ({name} > -50)"),
            ("text" | "varchar", 0) => format!("CHECK (length({name}) < 40 AND {name} <> 'cold')"),
            ("int4", _) => {
                let parent = self.tables.iter().find(|table| table.writable)?;
                let action = *["", " ON DELETE CASCADE", " ON DELETE SET NULL", " DEFERRABLE INITIALLY DEFERRED"]
                    .choose(&mut self.rng)?;
                format!("FOREIGN KEY ({name}) REFERENCES {} (id){action}", parent.name)
            }
            _ => return None,
        };
        Some(format!("ALTER TABLE {} ADD {constraint} NOT VALID", table.name))
    }

    /// An index over some column with an order, so that few rows are found by keys of its type; it may have all that is
    /// asked for.
    fn index(&mut self, table: &Table) -> Option<String> {
        const ORDERED: [&str; 18] = [
            "bool",
            "int2",
            "int4",
            "int8",
            "numeric",
            "float4",
            "float8",
            "text",
            "varchar",
            "bpchar",
            "bytea",
            "date",
            "time",
            "timestamp",
            "timestamptz",
            "interval",
            "uuid",
            "mood",
        ];
        let column = table.columns[1..].choose(&mut self.rng)?;
        if !ORDERED.contains(&self.types.name(column.ty)) {
            return None;
        }
        let others = table.columns.iter().filter(|other| other.name != column.name);
        let included: Vec<&str> = others.filter(|_| self.rng.random()).map(|other| other.name.as_str()).collect();
        let include = if included.is_empty() { String::new() } else { format!(" INCLUDE ({})", included.join(", ")) };
        Some(format!("CREATE INDEX ON {} ({}){include}", table.name, column.name))
    }

    fn new_table(&mut self, name: &str) -> Table {
        let int4 = self.types.named("int4").expect("int4 is a type");
        let mut columns = vec![TableColumn { name: "id".into(), ty: int4, declared: "int".into() }];
        for number in 0..self.rng.random_range(3..9) {
            let ty = self.any_type(false);
            let declared = self.declared(ty);
            columns.push(TableColumn { name: format!("c{number}"), ty, declared });
        }
        Table { name: name.into(), columns, writable: true }
    }

    /// A column's type, now and then with a modifier that all values fit.
    pub fn declared(&mut self, ty: Ty) -> String {
        let name = self.types.name(ty);
        match name {
            "numeric" if self.rng.random_bool(0.6) => format!("numeric({},5)", self.rng.random_range(10..37)),
            "varchar" if self.rng.random() => format!("varchar({})", self.rng.random_range(10..40)),
            "bpchar" => format!("char({})", self.rng.random_range(8..12)),
            "int4" if self.rng.random_ratio(1, 12) => "small".to_string(),
            "timestamp" | "timestamptz" | "time" if self.rng.random_ratio(1, 5) => format!("{name}(6)"),
            _ => name.to_string(),
        }
    }

    /// An INSERT of rows numbered from `first`.
    fn rows(&mut self, table: &Table, first: usize, count: usize) -> String {
        let rows = (first..first + count).map(|id| {
            let values = table.columns.iter().map(|column| self.stored(column, id));
            format!("({})", values.collect::<Vec<_>>().join(", "))
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        format!("INSERT INTO {} VALUES {rows}", table.name)
    }

    /// A value that its column takes.
    pub fn stored(&mut self, column: &TableColumn, id: usize) -> String {
        if column.name == "id" {
            return id.to_string();
        }
        if self.rng.random_ratio(1, 9) {
            return "NULL".into();
        }
        loop {
            let text = value(self.types, column.ty, &mut self.rng);
            let fits = match column.declared.as_str() {
                "small" => text.len() < 3,
                declared if declared.starts_with("numeric(") => text.len() < 8 && text != "NaN",
                _ => true,
            };
            if fits {
                return quoted(&text);
            }
        }
    }
}
