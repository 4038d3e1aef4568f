//! What is expected of a node's rows: how many, how many values their columns have, what tells them apart.
//!
//! Without statistics: a key has as many values as its table rows, a boolean two, a bounded integer or date no more
//! than fit between its bounds, anything else a tenth of the rows.

use super::columns::ColSet;
use super::facts::Statistics;
use super::keys::keys_of;
use crate::plan::ColId;
use ahash::AHashMap;
use basalt_expr::Numeric;
use basalt_types::{ColumnId, DataType, Datum, TableDef};

/// Values of a column that nothing is known of, as a share of the rows.
const DISTINCT_SHARE: f64 = 0.1;
const DISTINCT_MIN: f64 = 100.0;

#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub rows: f64,
    pub columns: AHashMap<ColId, ColumnProfile>,
    /// Columns that tell the rows apart.
    pub keys: Vec<UniqueKey>,
    pub dependencies: Vec<Dependency>,
}

#[derive(Clone, Debug)]
pub struct ColumnProfile {
    /// Values in the whole table, whatever of its rows is left.
    pub distinct: f64,
    /// Whether that is more than a guess.
    pub known: bool,
    pub bounds: Option<(f64, f64)>,
    /// Share of nulls.
    pub nulls: f64,
}

#[derive(Clone, Debug)]
pub struct UniqueKey {
    pub columns: Vec<ColId>,
    /// How many there are in the whole table.
    pub rows: f64,
}

/// Rows that agree in the first columns agree in the others.
#[derive(Clone, Debug)]
pub struct Dependency {
    pub determinant: Vec<ColId>,
    pub dependent: Vec<ColId>,
}

impl ColumnProfile {
    pub fn guessed(distinct: f64) -> ColumnProfile {
        ColumnProfile { distinct: distinct.max(1.0), known: false, bounds: None, nulls: 0.0 }
    }
}

impl Profile {
    pub fn of_table(table: &TableDef, columns: &[(ColId, ColumnId)], statistics: &Statistics) -> Profile {
        let rows = statistics.rows(table.id);
        let mut profile = Profile { rows, ..Profile::default() };
        for (id, column) in columns {
            profile.columns.insert(*id, column_of_table(table, *column, rows, statistics));
        }
        let id_of = |column: &ColumnId| columns.iter().find(|(_, own)| own == column).map(|(id, _)| *id);
        for key in keys_of(table) {
            let Some(ids) = key.iter().map(id_of).collect::<Option<Vec<ColId>>>() else { continue };
            let never_null = |column: &ColumnId| {
                table.column(*column).not_null
                    || table.primary_key.as_ref().is_some_and(|key| key.columns.contains(column))
            };
            if key.iter().all(never_null) {
                let dependent = columns.iter().map(|(id, _)| *id).collect();
                profile.dependencies.push(Dependency { determinant: ids.clone(), dependent });
            }
            profile.keys.push(UniqueKey { columns: ids, rows });
        }
        profile
    }

    /// Values of a column among the rows that are left.
    pub fn distinct(&self, id: ColId) -> f64 {
        let known = self.columns.get(&id).map_or(DISTINCT_MIN, |column| column.distinct);
        known.min(self.rows).max(1.0)
    }

    /// The combinations of these columns' values, no more than there are rows.
    pub fn combinations(&self, columns: impl Iterator<Item = f64>) -> f64 {
        columns.fold(1.0, |product: f64, distinct| product * distinct.max(1.0)).min(self.rows).max(1.0)
    }

    /// Two columns are the same in every row.
    pub fn equate(&mut self, a: ColId, b: ColId) {
        let pairs = [(a, b), (b, a)];
        self.dependencies.extend(pairs.map(|(from, to)| Dependency { determinant: vec![from], dependent: vec![to] }));
    }

    /// All columns that these decide.
    pub fn closure(&self, columns: ColSet) -> ColSet {
        let mut known = columns;
        loop {
            let before = known.len();
            for dependency in &self.dependencies {
                if dependency.determinant.iter().all(|id| known.contains(id)) {
                    known.extend(&dependency.dependent);
                }
            }
            if known.len() == before {
                return known;
            }
        }
    }
}

fn column_of_table(table: &TableDef, column: ColumnId, rows: f64, statistics: &Statistics) -> ColumnProfile {
    let facts = statistics.column(table.id, column);
    let ty = &table.column(column).ty;
    let bounds = facts.and_then(|facts| facts.bounds.as_ref());
    let bounds = bounds.and_then(|(least, greatest)| Some((number(ty, least)?, number(ty, greatest)?)));
    let fit = match (ty, bounds) {
        (DataType::Bool, _) => 2.0,
        (DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Date, Some((least, greatest))) => {
            greatest - least + 1.0
        }
        _ => f64::INFINITY,
    };
    let is_key = keys_of(table).iter().any(|key| *key == [column]);
    let distinct = match facts.and_then(|facts| facts.distinct) {
        _ if is_key => rows,
        Some(distinct) => distinct,
        None => (rows * DISTINCT_SHARE).max(DISTINCT_MIN).min(fit),
    };
    let known = is_key || facts.is_some_and(|facts| facts.distinct.is_some()) || fit < rows * DISTINCT_SHARE;
    let nulls = facts.and_then(|facts| facts.nulls).unwrap_or(0.0);
    ColumnProfile { distinct: distinct.min(rows).max(1.0), known, bounds, nulls }
}

/// A value on a line, if its type has one.
pub fn number(ty: &DataType, value: &Datum) -> Option<f64> {
    let scaled = |value: f64| match ty.underlying() {
        DataType::Numeric(Some((_, scale))) => value / 10f64.powi(i32::from(*scale)),
        _ => value,
    };
    match value {
        Datum::Bool(value) => Some(f64::from(u8::from(*value))),
        Datum::I16(value) => Some(scaled(f64::from(*value))),
        Datum::I32(value) => Some(scaled(f64::from(*value))),
        Datum::I64(value) => Some(scaled(*value as f64)),
        Datum::I128(value) => Some(scaled(*value as f64)),
        Datum::F32(value) => Some(f64::from(*value)),
        Datum::F64(value) => Some(*value),
        Datum::Bytes(digits) if matches!(ty.underlying(), DataType::Numeric(None)) => {
            Numeric::decode(digits).ok()?.to_f64().ok()
        }
        Datum::Null | Datum::Bytes(_) | Datum::Fixed16(_) => None,
    }
}
