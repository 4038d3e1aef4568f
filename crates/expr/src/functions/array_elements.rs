//! Conditions on arrays that are asked of all elements of a column side by side: `ANY`, `ALL`, `@>`, `<@`, `&&`.

use super::arg::{mismatch, union_nulls};
use super::set_columns::{SetColumn, elements_of};
use super::{CallInfo, Function};
use crate::array_value;
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::eval::vector::{Vector, from_arrow};
use crate::eval::{self, bools, rows};
use crate::order::is_comparison;
use crate::tree::Expr;
use arrow::compute::take;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer, ScalarBuffer};
use basalt_types::batch::to_logical;
use basalt_types::vector::{self, ArrayElements};
use basalt_types::{DataType, Datum};
use std::ops::Range;

/// So many elements of a constant are looked for one by one.
const WANTED_MAX: usize = 16;

/// The elements of a column of arrays, those of a row after those of the row before.
struct Elements {
    /// How many each row has; none where there is no array.
    counts: Vec<u32>,
    /// In the Arrow form of their type.
    values: ArrayRef,
    /// Where several elements are the same value, which one each is.
    codes: Option<Codes>,
}

struct Codes {
    codes: ScalarBuffer<u32>,
    nulls: Option<NullBuffer>,
}

impl Elements {
    fn of(arrays: &ArrayRef, element: &DataType) -> Result<Elements> {
        let bytes = arrays.as_binary_view_opt().ok_or_else(|| mismatch(element, arrays))?;
        let SetColumn { counts, values } = elements_of(bytes, element, 0..bytes.len() as u32)?;
        Ok(Elements { counts, values: to_logical(element, &values), codes: None })
    }

    fn taken_apart(elements: &ArrayElements, element: &DataType) -> Result<Elements> {
        let stored = array_value::element_phys(element)?;
        let (values, codes) = match &elements.values {
            vector::Vector::Codes(codes) => {
                let nulls = codes.nulls.clone().filter(|nulls| nulls.null_count() > 0);
                let dictionary: ArrayRef = codes.dictionary.clone();
                (dictionary, Some(Codes { codes: codes.codes.clone(), nulls }))
            }
            values => (values.to_array(stored), None),
        };
        Ok(Elements { counts: elements.counts.clone(), values: to_logical(element, &values), codes })
    }

    /// The row of each element.
    fn rows(&self) -> UInt32Array {
        let mut rows = Vec::with_capacity(self.values.len());
        for (row, count) in (0..).zip(&self.counts) {
            rows.extend(std::iter::repeat_n(row, *count as usize));
        }
        rows.into()
    }

    /// Rows that have an element whose value is one for which this holds.
    fn any(&self, holds: &BooleanBuffer) -> BooleanBuffer {
        if let Some(codes) = &self.codes {
            let holds: Vec<bool> = holds.iter().collect();
            return match &codes.nulls {
                None => self.any_place(|at| holds[codes.codes[at] as usize]),
                Some(nulls) => self.any_place(|at| nulls.is_valid(at) && holds[codes.codes[at] as usize]),
            };
        }
        let mut found = holds.set_indices().peekable();
        let mut end = 0;
        BooleanBuffer::collect_bool(self.counts.len(), |row| {
            end += self.counts[row] as usize;
            let mut any = false;
            while found.next_if(|at| *at < end).is_some() {
                any = true;
            }
            any
        })
    }
}

impl Elements {
    /// Rows that have an element at such a place.
    fn any_place(&self, is_one: impl Fn(usize) -> bool) -> BooleanBuffer {
        let mut at = 0;
        BooleanBuffer::collect_bool(self.counts.len(), |row| {
            let elements = at..at + self.counts[row] as usize;
            at = elements.end;
            elements.into_iter().any(&is_one)
        })
    }

    /// Rows that have a null among their elements, which is none of the values; `None` if that is not so for any.
    fn any_null(&self) -> Option<BooleanBuffer> {
        let nulls = self.codes.as_ref()?.nulls.as_ref()?;
        Some(self.any_place(|at| nulls.is_null(at)))
    }
}

/// Rows whose arrays take so much together are looked at at once: their elements lie side by side meanwhile.
const PIECE_BYTES: usize = if cfg!(test) { 1 << 8 } else { 1 << 22 };

/// What is asked of rows of arrays, some rows at a time.
fn in_pieces(
    arrays: &ArrayRef,
    element: &DataType,
    mut ask: impl FnMut(&Elements, Range<usize>) -> Result<BooleanBuffer>,
) -> Result<BooleanBuffer> {
    let bytes = arrays.as_binary_view_opt().ok_or_else(|| mismatch(element, arrays))?;
    let mut found = BooleanBufferBuilder::new(bytes.len());
    let (mut from, mut held) = (0, 0);
    for row in 0..bytes.len() {
        held += bytes.views()[row] as u32 as usize;
        if held >= PIECE_BYTES || row + 1 == bytes.len() {
            let some = from..row + 1;
            let elements = Elements::of(&arrays.slice(some.start, some.len()), element)?;
            found.append_buffer(&ask(&elements, some)?);
            (from, held) = (row + 1, 0);
        }
    }
    Ok(found.finish())
}

/// `left function ANY (arrays)`, or ALL of them: all elements of some rows are compared at once, also those that come
/// after one that decides, so that an error may be none.
pub(crate) fn against_any(
    left: &Vector,
    left_ty: &DataType,
    arrays: &ArrayRef,
    element: &DataType,
    how: (&'static Function, bool),
    ctx: &EvalContext,
) -> Result<Vector> {
    let mut known = BooleanBufferBuilder::new(arrays.len());
    let found = in_pieces(arrays, element, |elements, rows| {
        let probe = match left {
            Vector::Array(column) => {
                let own = column.slice(rows.start, rows.len());
                Vector::Array(take(&own, &elements.rows(), None).map_err(from_arrow)?)
            }
            constant => constant.clone(),
        };
        let (found, own) = some_against_any(probe, left_ty, elements, element, how, ctx)?;
        known.append_buffer(&own);
        Ok(found)
    })?;
    let known = NullBuffer::new(known.finish());
    let nulls = NullBuffer::union(Some(&known), arrays.logical_nulls().as_ref());
    Ok(bools(found, nulls.filter(|nulls| nulls.null_count() > 0)))
}

/// The same of some rows, with the left value beside each element; and of which rows it is known.
fn some_against_any(
    probe: Vector,
    left_ty: &DataType,
    elements: &Elements,
    element: &DataType,
    (function, all): (&'static Function, bool),
    ctx: &EvalContext,
) -> Result<(BooleanBuffer, BooleanBuffer)> {
    let (compared, count) = (Vector::Array(elements.values.clone()), elements.values.len());
    let types = [left_ty.clone(), element.clone()];
    let votes = eval::call(function, &[probe, compared], &types, &DataType::Bool, count, ctx)?;
    let votes = votes.into_array(&DataType::Bool, count)?;
    let votes = votes.as_boolean();
    let decides = if all { eval::is_false(votes) } else { eval::is_true(votes) };
    let decided = elements.any(&decides);
    let unknown = votes.nulls().map(|nulls| elements.any(&!nulls.inner()));
    let known = match unknown.into_iter().chain(elements.any_null()).reduce(|a, b| &a | &b) {
        Some(unknown) => &decided | &!&unknown,
        None => BooleanBuffer::new_set(elements.counts.len()),
    };
    Ok((if all { !&decided } else { decided }, known))
}

/// `left @> right`.
pub(super) fn contains(args: &[Vector], count: usize, info: &CallInfo) -> Result<Vector> {
    match args {
        [Vector::Array(arrays), Vector::Const(wanted)] => beside(arrays, wanted, Test::HasAll, args, count, info),
        [Vector::Const(known), Vector::Array(arrays)] => beside(arrays, known, Test::IsWithin, args, count, info),
        _ => rows::call(info.function, args, count, info),
    }
}

/// `left <@ right`.
pub(super) fn contained(args: &[Vector], count: usize, info: &CallInfo) -> Result<Vector> {
    match args {
        [Vector::Array(arrays), Vector::Const(known)] => beside(arrays, known, Test::IsWithin, args, count, info),
        [Vector::Const(wanted), Vector::Array(arrays)] => beside(arrays, wanted, Test::HasAll, args, count, info),
        _ => rows::call(info.function, args, count, info),
    }
}

/// `left && right`.
pub(super) fn overlaps(args: &[Vector], count: usize, info: &CallInfo) -> Result<Vector> {
    match args {
        [Vector::Array(arrays), Vector::Const(other)] | [Vector::Const(other), Vector::Array(arrays)] => {
            beside(arrays, other, Test::HasAny, args, count, info)
        }
        _ => rows::call(info.function, args, count, info),
    }
}

/// What is asked of an array, beside a constant one. Nulls equal nothing.
#[derive(Clone, Copy, Debug)]
enum Test {
    HasAll,
    HasAny,
    IsWithin,
}

fn beside(
    arrays: &ArrayRef,
    constant: &Datum,
    test: Test,
    args: &[Vector],
    count: usize,
    info: &CallInfo,
) -> Result<Vector> {
    let ty = info.arg_types[0].element();
    let Some((ty, wanted)) = ty.and_then(|ty| Some((ty, Wanted::of(constant, ty, test)?))) else {
        return rows::call(info.function, args, count, info);
    };
    let holds = in_pieces(arrays, ty, |elements, _| wanted.held_by(elements, ty))?;
    Ok(bools(holds, union_nulls(args)))
}

/// The elements of a constant array that others are asked for.
#[derive(Clone, Debug)]
struct Wanted {
    values: Vec<Datum>,
    has_null: bool,
    test: Test,
}

impl Wanted {
    /// `None` if elements are better compared row by row.
    fn of(constant: &Datum, element: &DataType, test: Test) -> Option<Wanted> {
        let Datum::Bytes(bytes) = constant else { return None };
        let mut values = array_value::elements(element, bytes).ok()?;
        let has_null = values.iter().any(Datum::is_null);
        values.retain(|value| !value.is_null());
        let too_many = matches!(test, Test::HasAll) && values.len() > WANTED_MAX;
        (!too_many && rows::is_set_of_bytes(element)).then_some(Wanted { values, has_null, test })
    }

    fn held_by(&self, elements: &Elements, ty: &DataType) -> Result<BooleanBuffer> {
        let among = |wanted: &[Datum]| match rows::among(&elements.values, ty, wanted) {
            Some(found) => Ok(valid(found, &elements.values)),
            None => Err(Error::internal("elements that are no set of bytes")),
        };
        let rows = elements.counts.len();
        match self.test {
            Test::HasAll if self.has_null => Ok(BooleanBuffer::new_unset(rows)),
            Test::HasAll => self
                .values
                .chunks(1)
                .try_fold(BooleanBuffer::new_set(rows), |all, one| Ok(&all & &elements.any(&among(one)?))),
            Test::HasAny => Ok(elements.any(&among(&self.values)?)),
            Test::IsWithin => {
                let outside = elements.any(&!&among(&self.values)?);
                Ok(!&elements.any_null().map_or(outside.clone(), |null| &outside | &null))
            }
        }
    }
}

/// A condition on one column of arrays beside a constant, as what it asks of their elements.
#[derive(Clone, Debug)]
pub struct ElementTest {
    element: DataType,
    asked: Asked,
}

#[derive(Clone, Debug)]
enum Asked {
    /// A value that is compared with any of them, or with all.
    Compared {
        left: Datum,
        left_ty: DataType,
        function: &'static Function,
        all: bool,
    },
    Wanted(Wanted),
}

impl ElementTest {
    /// What an expression asks of a column, and of which; `None` if it is no such condition.
    pub fn of(expr: &Expr) -> Option<(ElementTest, usize)> {
        let array = |expr: &Expr| match expr {
            Expr::Column { index, ty: DataType::Array(element) } => Some((*index, (**element).clone())),
            _ => None,
        };
        match expr {
            Expr::AnyAll { left, function, array: of, all } => {
                let (Expr::Const { value: left, ty }, (index, element)) = (&**left, array(of)?) else { return None };
                let asked = Asked::Compared { left: left.clone(), left_ty: ty.clone(), function, all: *all };
                (!left.is_null()).then_some((ElementTest { element, asked }, index))
            }
            Expr::Call { function, args, .. } => {
                let [left, right] = args.as_slice() else { return None };
                let (Expr::Const { value, .. }, of, is_left) = (match left {
                    Expr::Const { .. } => (left, right, false),
                    _ => (right, left, true),
                }) else {
                    return None;
                };
                let test = match (function.name.as_str(), is_left) {
                    ("arraycontains", true) | ("arraycontained", false) => Test::HasAll,
                    ("arraycontains", false) | ("arraycontained", true) => Test::IsWithin,
                    ("arrayoverlap", _) => Test::HasAny,
                    _ => return None,
                };
                let (index, element) = array(of)?;
                let asked = Asked::Wanted(Wanted::of(value, &element, test)?);
                Some((ElementTest { element, asked }, index))
            }
            _ => None,
        }
    }

    /// Whether it fails for no value of an element.
    pub fn is_total(&self) -> bool {
        match &self.asked {
            Asked::Wanted(_) => true,
            Asked::Compared { function, .. } => is_comparison(function),
        }
    }

    /// The condition of each row, null for those without an array. It may fail for an element behind one that decides.
    pub fn of_rows(&self, elements: &ArrayElements, ctx: &EvalContext) -> Result<ArrayRef> {
        let nulls = elements.nulls.as_ref();
        let elements = Elements::taken_apart(elements, &self.element)?;
        let (found, nulls) = match &self.asked {
            Asked::Wanted(wanted) => (wanted.held_by(&elements, &self.element)?, nulls.cloned()),
            Asked::Compared { left, left_ty, function, all } => {
                let probe = Vector::Const(left.clone());
                let how = (*function, *all);
                let (found, known) = some_against_any(probe, left_ty, &elements, &self.element, how, ctx)?;
                (found, NullBuffer::union(Some(&NullBuffer::new(known)), nulls))
            }
        };
        bools(found, nulls.filter(|nulls| nulls.null_count() > 0)).into_array(&DataType::Bool, elements.counts.len())
    }
}

/// Those of values that are there.
fn valid(found: BooleanBuffer, values: &ArrayRef) -> BooleanBuffer {
    match values.nulls() {
        Some(nulls) => &found & nulls.inner(),
        None => found,
    }
}
