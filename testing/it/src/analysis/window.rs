//! Window functions whose answer does not depend on the order of equal rows.

use super::kinds::Kind;
use super::{Column, Generator, Scope};
use rand::Rng;
use rand::seq::IndexedRandom;

impl Generator {
    pub fn direction(&mut self) -> &'static str {
        ["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST"].choose(&mut self.rng).expect("some")
    }

    fn partition(&mut self, scope: &Scope) -> String {
        match self.rng.random_range(0..4) {
            0 => String::new(),
            1 => {
                let (a, b) =
                    (scope.choose(&mut self.rng).expect("columns"), scope.choose(&mut self.rng).expect("columns"));
                format!("PARTITION BY {}, {} ", a.sql, b.sql)
            }
            _ => format!("PARTITION BY {} ", scope.choose(&mut self.rng).expect("columns").sql),
        }
    }

    /// One that gives peers the same.
    pub fn peers_window(&mut self, scope: &Scope) -> Column {
        let partition = self.partition(scope);
        let key = scope.choose(&mut self.rng).expect("columns").sql.clone();
        let order = format!("ORDER BY {key}{}", self.direction());
        let exact: Vec<&Column> = scope
            .iter()
            .filter(|column| matches!(column.kind, Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Numeric))
            .collect();
        let of = exact.choose(&mut self.rng).map(|column| (column.sql.clone(), column.kind));
        let (call, kind) = match (self.rng.random_range(0..7), of) {
            (0, _) => ("rank()".to_string(), Kind::Int8),
            (1, _) => ("dense_rank()".to_string(), Kind::Int8),
            (2, _) => ("cume_dist()".to_string(), Kind::Float8),
            (3, Some((of, kind))) => {
                let kind = if matches!(kind, Kind::Int2 | Kind::Int4) { Kind::Int8 } else { Kind::Numeric };
                (format!("sum({of})"), kind)
            }
            (4, Some((of, _))) => (format!("avg({of})"), Kind::Numeric),
            (5, Some((of, kind))) => (format!("max({of})"), kind),
            _ => (format!("count({key})"), Kind::Int8),
        };
        let own_frame = call.starts_with(['s', 'a', 'm']) || call.starts_with("count");
        let window = match self.rng.random_range(0..6) {
            0 if own_frame => partition,
            1 if own_frame => {
                format!("{partition}{order} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING")
            }
            3 if own_frame && let Some(key) = exact.choose(&mut self.rng) => {
                let order = format!("ORDER BY {}{}", key.sql, self.direction());
                let (before, after) = (self.rng.random_range(0..30), self.rng.random_range(0..5));
                let end = *["CURRENT ROW", "UNBOUNDED FOLLOWING"].choose(&mut self.rng).expect("some");
                let end = if self.rng.random() { end.to_string() } else { format!("{after} FOLLOWING") };
                format!("{partition}{order} RANGE BETWEEN {before} PRECEDING AND {end}")
            }
            2 if own_frame => format!("{partition}{order} GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
            _ => format!("{partition}{order}"),
        };
        Column { sql: format!("{call} OVER ({window})"), kind }
    }

    /// One over rows that `identity` tells apart.
    pub fn rows_window(&mut self, scope: &Scope, identity: &[String]) -> Column {
        if identity.is_empty() || self.rng.random_ratio(1, 3) {
            return self.peers_window(scope);
        }
        let partition = self.partition(scope);
        let key = scope.choose(&mut self.rng).expect("columns").sql.clone();
        let order = format!("ORDER BY {key}{}, {}", self.direction(), identity.join(", "));
        let of = scope.choose(&mut self.rng).expect("columns").clone();
        let (sql, number) = (of.sql, self.rng.random_range(1..4));
        let (call, kind) = match self.rng.random_range(0..9) {
            0 | 1 => ("row_number()".to_string(), Kind::Int8),
            2 => (format!("ntile({number})"), Kind::Int4),
            3 => (format!("lag({sql}, {number})"), of.kind),
            4 => (format!("lead({sql})"), of.kind),
            5 => (format!("first_value({sql})"), of.kind),
            6 => (format!("last_value({sql})"), of.kind),
            7 => (format!("nth_value({sql}, {number})"), of.kind),
            _ => (format!("count({sql})"), Kind::Int8),
        };
        let frame = match self.rng.random_range(0..5) {
            0 => " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
            1 => " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            2 => " ROWS UNBOUNDED PRECEDING",
            3 => " ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING",
            _ => "",
        };
        // Of varchar, what is the first value is a varchar still; of unknown length, as lag's.
        Column { sql: format!("{call} OVER ({partition}{order}{frame})"), kind }
    }
}
