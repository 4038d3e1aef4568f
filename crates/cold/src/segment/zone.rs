//! Zone maps: bounds and null count of a run of values.

use basalt_types::Datum;

#[derive(Clone, PartialEq, Debug)]
pub enum Bound {
    Unbounded,
    At(Datum),
}

#[derive(Clone, PartialEq, Debug)]
pub struct ZoneMap {
    pub rows: u32,
    pub nulls: u32,
    pub min: Bound,
    pub max: Bound,
}
