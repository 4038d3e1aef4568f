//! How rows of a table are reached: by its primary key or an index, whole keys or ranges of them.

use crate::bind::key_values::{Fit, fit};
use crate::error::{Result, SqlError};
use basalt_engine::{Direction, KeyRange, behind_prefix};
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::array::ArrayValue;
use basalt_types::schema::{IndexDef, encode_present, encode_values, prefix_key};
use basalt_types::{DataType, Datum, key};
use std::sync::Arc;

/// A key column's value, of the column's type or of one that [fits](crate::bind::key_values::fitting).
#[derive(PartialEq, Debug)]
pub(super) struct KeyPart {
    pub value: Expr,
    /// Of the column.
    pub ty: DataType,
}

/// Several values of a key column.
#[derive(PartialEq, Debug)]
pub(super) struct KeyList {
    pub values: ListValues,
    pub ty: DataType,
}

#[derive(PartialEq, Debug)]
pub(super) enum ListValues {
    /// Each of the column's type, or one that fits.
    Each(Vec<Expr>),
    /// An array whose elements are of this type, likewise.
    Array(Expr, DataType),
}

#[derive(PartialEq, Debug)]
pub(super) enum Part {
    One(KeyPart),
    Many(KeyList),
}

/// An end of a range.
#[derive(PartialEq, Debug)]
pub(super) struct Edge {
    pub part: KeyPart,
    pub inclusive: bool,
}

#[derive(PartialEq, Debug)]
pub(super) struct Access {
    /// `None`: the primary key.
    pub index: Option<Arc<IndexDef>>,
    /// What the first columns of the key are.
    pub prefix: Vec<Part>,
    /// All of it: one row at most, by one look.
    pub whole: bool,
    /// Of the column behind the prefix.
    pub lower: Option<Edge>,
    pub upper: Option<Edge>,
    pub direction: Direction,
}

/// Where to look.
pub(super) enum Places {
    Keys(Vec<Vec<u8>>),
    Ranges(Vec<KeyRange>),
    TooMany,
}

/// A longer array is not looked into.
const ARRAY_BYTES_MAX: usize = 256 << 10;

impl Access {
    /// Values of expressions come from `frame`. Keys ascend, and none comes twice. At most `most`, and each value of a
    /// list takes one of them.
    pub fn places(&self, frame: &[Datum], eval: &EvalContext, most: &mut usize) -> Result<Places> {
        let mut prefixes = vec![Vec::with_capacity(24)];
        for (at, part) in self.prefix.iter().enumerate() {
            match part {
                Part::One(part) => {
                    let value = part.value(frame, eval)?;
                    if value.is_null() {
                        return Ok(Places::Keys(Vec::new()));
                    }
                    prefixes.iter_mut().for_each(|prefix| self.put(at, &part.ty, &value, prefix));
                }
                Part::Many(list) => {
                    let Some(values) = list.values(frame, eval)? else { return Ok(Places::TooMany) };
                    let Some(left) = most.checked_sub(values.len().saturating_mul(prefixes.len())) else {
                        return Ok(Places::TooMany);
                    };
                    *most = left;
                    let grown = prefixes.iter().flat_map(|prefix| {
                        values.iter().map(|value| {
                            let mut grown = prefix.clone();
                            self.put(at, &list.ty, value, &mut grown);
                            grown
                        })
                    });
                    prefixes = grown.collect();
                    prefixes.sort_unstable();
                    prefixes.dedup();
                }
            }
        }
        if self.whole {
            let whole = |prefix: Vec<u8>| match &self.index {
                None => prefix,
                Some(_) => prefix_key(&prefix, true).0.into_vec(),
            };
            return Ok(Places::Keys(prefixes.into_iter().map(whole).collect()));
        }
        let Some(lower) = self.edge(self.lower.as_ref(), true, frame, eval)? else {
            return Ok(Places::Keys(Vec::new()));
        };
        let Some(upper) = self.edge(self.upper.as_ref(), false, frame, eval)? else {
            return Ok(Places::Keys(Vec::new()));
        };
        let ranges = prefixes.iter().filter_map(|prefix| self.range(prefix, &lower, &upper));
        Ok(Places::Ranges(ranges.collect()))
    }

    /// Appends the value of key column `at`.
    fn put(&self, at: usize, ty: &DataType, value: &Datum, out: &mut Vec<u8>) {
        match &self.index {
            None => key::encode_column(ty, value, out),
            Some(index) => {
                out.extend(encode_values(&index.columns[at..at + 1], std::slice::from_ref(value)));
            }
        }
    }

    /// `None`: nothing is on this side of it, or it is null, so that nothing compares with it.
    fn edge(
        &self,
        edge: Option<&Edge>,
        is_lower: bool,
        frame: &[Datum],
        eval: &EvalContext,
    ) -> Result<Option<EncodedEdge>> {
        let Some(Edge { part: KeyPart { value: expr, ty }, inclusive }) = edge else {
            return Ok(Some(EncodedEdge::Open));
        };
        let value = expr.eval_scalar(frame, eval)?;
        if value.is_null() {
            return Ok(None);
        }
        let (value, inclusive) = match (fit(value, &expr.ty(), ty)?, is_lower) {
            (Fit::At(value), _) => (value, *inclusive),
            // What is greater than this one is greater than the edge.
            (Fit::Behind(value), is_lower) => (value, !is_lower),
            (Fit::BelowAll, true) | (Fit::AboveAll, false) => return Ok(Some(EncodedEdge::Open)),
            (Fit::BelowAll, false) | (Fit::AboveAll, true) => return Ok(None),
        };
        let mut bytes = Vec::new();
        self.put(self.prefix.len(), ty, &value, &mut bytes);
        Ok(Some(EncodedEdge::At { bytes, inclusive }))
    }

    /// `None`: nothing is in it.
    fn range(&self, prefix: &[u8], lower: &EncodedEdge, upper: &EncodedEdge) -> Option<KeyRange> {
        let mut within = prefix.to_vec();
        if self.index.is_some() && (self.lower.is_some() || self.upper.is_some()) {
            // Nulls have entries, too.
            encode_present(&mut within);
        }
        let bytes = |bytes: &[u8]| match &self.index {
            None => bytes.to_vec(),
            Some(_) => prefix_key(bytes, false).0.into_vec(),
        };
        let at = |edge: &[u8]| bytes(&[prefix, edge].concat());
        let from = match lower {
            EncodedEdge::Open => bytes(&within),
            EncodedEdge::At { bytes, inclusive: true } => at(bytes),
            EncodedEdge::At { bytes, inclusive: false } => behind_prefix(&at(bytes))?,
        };
        let to = match upper {
            EncodedEdge::Open => behind_prefix(&bytes(&within)),
            EncodedEdge::At { bytes, inclusive: true } => behind_prefix(&at(bytes)),
            EncodedEdge::At { bytes, inclusive: false } => Some(at(bytes)),
        };
        Some(KeyRange { from, to })
    }

    pub fn exprs(&self) -> Vec<&Expr> {
        let mut out = Vec::new();
        for part in &self.prefix {
            match part {
                Part::One(part) => out.push(&part.value),
                Part::Many(KeyList { values: ListValues::Each(each), .. }) => out.extend(each),
                Part::Many(KeyList { values: ListValues::Array(array, _), .. }) => out.push(array),
            }
        }
        out.extend(self.lower.iter().chain(&self.upper).map(|edge| &edge.part.value));
        out
    }

    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        let mut out = Vec::new();
        for part in &mut self.prefix {
            match part {
                Part::One(part) => out.push(&mut part.value),
                Part::Many(KeyList { values: ListValues::Each(each), .. }) => out.extend(each),
                Part::Many(KeyList { values: ListValues::Array(array, _), .. }) => out.push(array),
            }
        }
        out.extend(self.lower.iter_mut().chain(&mut self.upper).map(|edge| &mut edge.part.value));
        out
    }

    /// What is known of the key columns' order: how many come first with one value each, and whether the rest is in
    /// order.
    pub fn fixed_columns(&self) -> Option<usize> {
        let all_one = self.prefix.iter().all(|part| matches!(part, Part::One(_)));
        all_one.then_some(self.prefix.len())
    }
}

enum EncodedEdge {
    Open,
    At { bytes: Vec<u8>, inclusive: bool },
}

impl KeyPart {
    /// Null, too, where the column's type has no such value.
    fn value(&self, frame: &[Datum], eval: &EvalContext) -> Result<Datum> {
        equal(self.value.eval_scalar(frame, eval)?, &self.value.ty(), &self.ty)
    }

    /// False: null, which no key is.
    pub fn encode(&self, frame: &[Datum], eval: &EvalContext, out: &mut Vec<u8>) -> Result<bool> {
        let computed;
        let value = match &self.value {
            Expr::Param { index, ty } if *ty == self.ty => eval.params.get(*index).unwrap_or(&Datum::Null),
            Expr::Const { value, ty } if *ty == self.ty => value,
            _ => {
                computed = self.value(frame, eval)?;
                &computed
            }
        };
        if value.is_null() {
            return Ok(false);
        }
        key::encode_column(&self.ty, value, out);
        Ok(true)
    }
}

impl KeyList {
    /// Those that are not null, and that the column's type has. `None`: too many.
    fn values(&self, frame: &[Datum], eval: &EvalContext) -> Result<Option<Vec<Datum>>> {
        let values = match &self.values {
            ListValues::Each(each) => {
                let value = |value: &Expr| equal(value.eval_scalar(frame, eval)?, &value.ty(), &self.ty);
                each.iter().map(value).collect::<Result<Vec<Datum>>>()?
            }
            ListValues::Array(array, element) => match array.eval_scalar(frame, eval)? {
                Datum::Bytes(bytes) if bytes.len() > ARRAY_BYTES_MAX => return Ok(None),
                Datum::Bytes(bytes) => {
                    let decoded = element.phys().and_then(|phys| ArrayValue::decode(phys, &bytes));
                    let elements = decoded.ok_or_else(|| SqlError::internal("an array has another form"))?.elements;
                    let value = |value: Datum| equal(value, element, &self.ty);
                    elements.into_iter().map(value).collect::<Result<Vec<Datum>>>()?
                }
                _ => Vec::new(),
            },
        };
        Ok(Some(values.into_iter().filter(|value| !value.is_null()).collect()))
    }
}

/// The column's value that equals a value of another type; null if there is none.
fn equal(value: Datum, from: &DataType, column: &DataType) -> Result<Datum> {
    if value.is_null() {
        return Ok(value);
    }
    Ok(match fit(value, from, column)? {
        Fit::At(value) => value,
        Fit::Behind(_) | Fit::BelowAll | Fit::AboveAll => Datum::Null,
    })
}
