//! Sorting: rows of several workers by keys, of which a limit may ask for the first ones alone.

mod packed;

use super::{HELD_ROWS, window};
use crate::aggregate::texts::{Equality, key_of};
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::gather::joined;
use crate::kernels::{floats, mask};
use crate::parted;
use crate::program::{Field, Place, Program};
use crate::spill::SpillFile;
use crate::spill::scatter::Rows;
use crate::stop::{ROWS, check, pieces};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray};
use arrow_buffer::NullBuffer;
use arrow_select::interleave::interleave;
use basalt_expr::operators::compare_arrays;
use basalt_types::batch::{bytes_of, own};
use basalt_types::span::Span;
use basalt_types::vector::{Codes, IntValues, Vector};
use basalt_types::{CompareOp, DataType, PhysType, widest};
use packed::Packing;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Rows beyond what is kept that are worth sorting them out.
const SURPLUS_ROWS_MIN: usize = 512;
/// Rows that are worth parts, and a part of their own.
const PARTED_MIN: usize = if cfg!(test) { 1 << 10 } else { 2 * ROWS };
const PART_ROWS: usize = if cfg!(test) { 1 << 8 } else { 1 << 13 };
/// First bits of keys that parts are told apart by, at most.
const PART_BITS: u32 = 16;
/// So few are sorted out as soon as they are there, for the sake of the bound.
const FEW_ROWS_MAX: usize = HELD_ROWS;

#[derive(Debug)]
pub(super) struct Order {
    pub keys: Vec<Key>,
    /// How the sorted columns are held.
    pub fields: Vec<Field>,
    /// Rows that are passed over, and then given.
    pub offset: usize,
    pub limit: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub place: Place,
    /// Which of the sorted columns it is, if it is one.
    pub column: Option<usize>,
    pub descending: bool,
    pub nulls_first: bool,
    pub form: Form,
}

/// How values of a key compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Integers,
    Bools,
    /// As integers of the same order.
    Floats,
    /// What of the bytes is compared.
    Bytes(Equality),
    Fixed,
    /// Of elements that are stored so.
    Arrays(PhysType),
}

impl Form {
    /// How values of a key are put on disk.
    pub fn stored(self) -> PhysType {
        match self {
            Form::Integers => PhysType::I128,
            Form::Bools => PhysType::Bool,
            // As integers already.
            Form::Floats => PhysType::I128,
            Form::Bytes(_) | Form::Arrays(_) => PhysType::Bytes,
            Form::Fixed => PhysType::Fixed16,
        }
    }

    /// `None` if the order of a type is not that of its stored form.
    pub fn of(field: &Field) -> Option<Form> {
        match field.ty.underlying() {
            _ if field.kind().is_some() => Some(Form::Integers),
            DataType::Oid | DataType::Money => Some(Form::Integers),
            DataType::Bool => Some(Form::Bools),
            DataType::Float4 | DataType::Float8 | DataType::Enum(_) => Some(Form::Floats),
            DataType::Text | DataType::Varchar(_) | DataType::Bytea => Some(Form::Bytes(Equality::Bytes)),
            DataType::Bpchar(_) => Some(Form::Bytes(Equality::Padded)),
            ty @ DataType::Numeric(_) if ty.decimal().is_none() => Some(Form::Bytes(Equality::Numerics)),
            DataType::Uuid => Some(Form::Fixed),
            DataType::Array(element) if element.is_one_by_bytes() => element.phys().map(Form::Arrays),
            _ => None,
        }
    }
}

/// Rows in their order, which are brought together when they are read.
pub(super) struct Sorted {
    /// Columns of rows as they came.
    batches: Vec<Vec<ArrayRef>>,
    order: Vec<Packed>,
    columns: usize,
    /// Of the batches.
    bytes: usize,
}

impl Sorted {
    pub fn rows(&self) -> usize {
        self.order.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes + self.order.capacity() * size_of::<Packed>()
    }

    /// The columns of some rows.
    pub fn columns(&self, rows: Range<usize>) -> Result<Vec<Vector>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let rows = &self.order[rows];
        let column = |at: usize| {
            let values: Vec<&dyn Array> = self.batches.iter().map(|columns| &*columns[at]).collect();
            gathered(&values, rows).map(Vector::measured)
        };
        (0..self.columns).map(column).collect()
    }
}

/// The rows of one worker.
pub(super) struct Sorting {
    order: Arc<Order>,
    batches: Vec<Kept>,
    rows: usize,
    bytes: usize,
    /// Whether the first batch has all rows that are kept so far, in order: what is not before the last of them is not
    /// wanted.
    bounded: bool,
    /// The scan's column that is the first key, if rows may be ruled out by it before anything is computed of them.
    scanned: Option<usize>,
}

struct Kept {
    columns: Vec<ArrayRef>,
    keys: Vec<KeyValues>,
    count: usize,
}

#[derive(Debug)]
pub(super) enum KeyValues {
    Integers(IntValues, Option<NullBuffer>),
    Bools(BooleanArray),
    Bytes(BinaryViewArray, Equality),
    /// The same by their places in a dictionary.
    Codes(Codes, Equality),
    Fixed(FixedSizeBinaryArray),
    /// Beside a type whose elements are stored and ordered as theirs.
    Arrays(BinaryViewArray, DataType),
}

impl KeyValues {
    pub fn of(vector: Vector, form: Form) -> Result<KeyValues> {
        Ok(match (vector, form) {
            (Vector::Ints(ints), Form::Integers) => KeyValues::Integers(ints.values, ints.nulls),
            (Vector::Flat(values), Form::Bools) => KeyValues::Bools(values.as_boolean().clone()),
            // As they were made of floats.
            (Vector::Ints(ints), Form::Floats) => KeyValues::Integers(ints.values, ints.nulls),
            (Vector::Flat(values), Form::Floats) => KeyValues::Integers(
                IntValues::I64(floats::in_order(&values).ok_or(Error::Beyond("floats in another form"))?),
                values.nulls().cloned(),
            ),
            (Vector::Flat(values), Form::Fixed) => KeyValues::Fixed(values.as_fixed_size_binary().clone()),
            (Vector::Codes(codes), Form::Bytes(equality)) => KeyValues::Codes(codes, equality),
            (Vector::Flat(values), Form::Bytes(equality)) => {
                KeyValues::Bytes(values.as_binary_view().clone(), equality)
            }
            (vector @ (Vector::Codes(_) | Vector::Flat(_)), Form::Arrays(element)) => {
                let arrays = vector.to_array(PhysType::Bytes).as_binary_view().clone();
                KeyValues::Arrays(arrays, ordered_as(element))
            }
            _ => return Err(Error::Beyond("a sort key in another form")),
        })
    }

    /// Whether two rows have the same value, or none.
    pub fn is_same(&self, row: usize, other: usize) -> bool {
        match (self.is_null(row), self.is_null(other)) {
            (false, false) => self.compare(row, self, other) == Ordering::Equal,
            (one, another) => one == another,
        }
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            KeyValues::Integers(_, nulls) => nulls.as_ref(),
            KeyValues::Bools(values) => values.nulls(),
            KeyValues::Bytes(values, _) => values.nulls(),
            KeyValues::Codes(codes, _) => codes.nulls.as_ref(),
            KeyValues::Fixed(values) => values.nulls(),
            KeyValues::Arrays(values, _) => values.nulls(),
        }
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls().is_some_and(|nulls| nulls.is_null(row))
    }

    fn compare(&self, row: usize, other: &KeyValues, other_row: usize) -> Ordering {
        match (self, other) {
            (KeyValues::Integers(a, _), KeyValues::Integers(b, _)) => a.get(row).cmp(&b.get(other_row)),
            (KeyValues::Bools(a), KeyValues::Bools(b)) => a.value(row).cmp(&b.value(other_row)),
            (KeyValues::Fixed(a), KeyValues::Fixed(b)) => a.value(row).cmp(b.value(other_row)),
            (KeyValues::Arrays(a, element), KeyValues::Arrays(b, _)) => {
                compare_arrays(element, a.value(row), b.value(other_row))
            }
            _ => self.text(row).cmp(other.text(other_row)),
        }
    }

    /// What of a row's bytes is compared.
    fn text(&self, row: usize) -> &[u8] {
        match self {
            KeyValues::Bytes(values, equality) => key_of(*equality, values.value(row)),
            KeyValues::Codes(codes, equality) => key_of(*equality, codes.dictionary.value(codes.codes[row] as usize)),
            _ => panic!("values of one key are of one form"),
        }
    }

    fn array(&self) -> ArrayRef {
        match self {
            KeyValues::Integers(values, nulls) => {
                let wide = (0..values.len()).map(|row| values.get(row)).collect();
                Arc::new(Decimal128Array::new(wide, nulls.clone()))
            }
            KeyValues::Bools(values) => Arc::new(values.clone()),
            KeyValues::Bytes(values, _) => Arc::new(values.clone()),
            KeyValues::Codes(codes, _) => Vector::Codes(codes.clone()).to_array(PhysType::Bytes),
            KeyValues::Fixed(values) => Arc::new(values.clone()),
            KeyValues::Arrays(values, _) => Arc::new(values.clone()),
        }
    }
}

/// Of the types whose arrays are one where their bytes are, one that is stored so: they are ordered alike.
fn ordered_as(element: PhysType) -> DataType {
    match element {
        PhysType::Bool => DataType::Bool,
        PhysType::I16 => DataType::Int2,
        PhysType::I32 => DataType::Int4,
        PhysType::I64 => DataType::Int8,
        PhysType::Fixed16 => DataType::Uuid,
        _ => DataType::Bytea,
    }
}

/// Rows of a run's block, of which so many in all take so many bytes.
pub(super) fn run_rows(bytes: usize, rows: usize) -> usize {
    const BLOCK_BYTES: usize = 64 << 10;
    (BLOCK_BYTES / (bytes / rows.max(1)).max(1)).clamp(64, 8192)
}

/// A batch and a row in it.
pub(super) type At = (usize, usize);

/// A row by its packed keys.
type Packed = (u128, u32, u32);

impl Sorting {
    pub fn new(order: &Arc<Order>) -> Sorting {
        let (batches, rows, bytes, bounded, scanned) = (Vec::new(), 0, 0, false, None);
        Sorting { order: order.clone(), batches, rows, bytes, bounded, scanned }
    }

    /// Rows may be ruled out as soon as the first key is known, which is this column of a scan.
    pub fn rule_out_by(&mut self, column: usize) {
        self.scanned = Some(column);
    }

    /// Where a scan's column lies in all rows that may still be wanted, if that is known.
    pub fn wanted(&self) -> Option<(usize, Span)> {
        let column = self.scanned.filter(|_| self.bounded)?;
        let Kept { keys, count, .. } = self.batches.first()?;
        let (first, last) = (self.order.keys.first()?, count - 1);
        match keys.first()? {
            // A null is behind all that comes.
            KeyValues::Integers(values, nulls) if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(last)) => {
                let op = if first.descending { CompareOp::GtEq } else { CompareOp::LtEq };
                Some((column, Span::compared(op, values.get(last))))
            }
            _ => None,
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What [`Sorting::finish`] takes beside it.
    pub fn finish_bytes(&self) -> usize {
        self.bytes / 2 + self.rows * size_of::<Packed>()
    }

    /// Writes all rows as a run, and begins anew.
    pub fn flush(&mut self, file: &Arc<SpillFile>) -> Result<Rows> {
        let next = Sorting { scanned: self.scanned, ..Sorting::new(&self.order) };
        let own = std::mem::replace(self, next);
        let first = own.first(own.kept())?;
        let mut run = Rows::new(file);
        for rows in first.chunks(run_rows(own.bytes / 2, own.rows)) {
            check()?;
            let mut columns: Vec<Vector> = own.gathered(rows)?.into_iter().map(Vector::measured).collect();
            for (at, _) in own.order.keys_beside() {
                columns.push(Vector::measured(own.gathered_key_array(at, rows)?));
            }
            run.write(&columns, rows.len())?;
        }
        Ok(run)
    }

    /// All rows of a batch.
    pub fn add(&mut self, batch: &mut Batch<'_>, columns: &[Place], work: &mut Work) -> Result<()> {
        let order = self.order.clone();
        // Keys are asked for of all rows.
        let is_key = |place: &Place| order.keys.iter().any(|key| key.place == *place);
        if columns.iter().all(|place| is_key(place) || work.program.is_total(*place)) {
            self.screen(batch, work)?;
        }
        let mut stored = Vec::with_capacity(columns.len());
        for (place, field) in columns.iter().zip(&order.fields) {
            // Texts share buffers with rows that are long gone.
            stored.push(own(batch.vector(*place, work)?.to_array(field.held().phys().expect("columns are storable"))));
        }
        let keys = order.values(batch, work)?;
        self.push(Kept { columns: stored, keys, count: batch.rows() });
        match self.kept() {
            Some(kept) if self.rows > kept.saturating_mul(2).max(SURPLUS_ROWS_MIN) => self.cut(kept),
            Some(kept) if !self.bounded && kept <= FEW_ROWS_MAX && self.rows >= kept => self.cut(kept),
            _ => Ok(()),
        }
    }

    /// Leaves of a batch the rows that may be among the first, before anything but keys is asked for.
    fn screen(&self, batch: &mut Batch<'_>, work: &mut Work) -> Result<()> {
        let Some(kept) = self.kept() else { return Ok(()) };
        self.screen_by_first(batch, work)?;
        let keys = self.order.values(batch, work)?;
        let mut rows = match self.batches.first().filter(|_| self.bounded) {
            Some(Kept { keys: known, count, .. }) => self.order.rows_before(&keys, batch.rows(), (known, count - 1)),
            None => (0..batch.rows() as u32).collect(),
        };
        if kept == 0 {
            rows.clear();
        } else if rows.len() > kept {
            let compare =
                |a: &u32, b: &u32| self.order.compare((&keys, *a as usize), (&keys, *b as usize)).then(a.cmp(b));
            rows.select_nth_unstable_by(kept - 1, compare);
            rows.truncate(kept);
            rows.sort_unstable();
        }
        if rows.len() < batch.rows() {
            batch.choose(&rows);
        }
        Ok(())
    }

    /// The same by the first key alone: other keys are not asked for of rows that come behind.
    fn screen_by_first(&self, batch: &mut Batch<'_>, work: &mut Work) -> Result<()> {
        let (Some(Kept { keys: known, count, .. }), [first, _, ..]) = (self.batches.first(), &self.order.keys[..])
        else {
            return Ok(());
        };
        let KeyValues::Integers(known, None) = &known[0] else { return Ok(()) };
        // What fails has to fail for any row.
        let are_total = self.order.keys[1..].iter().all(|key| work.program.is_total(key.place));
        if !self.bounded || !are_total {
            return Ok(());
        }
        let KeyValues::Integers(values, None) = KeyValues::of(batch.vector(first.place, work)?, first.form)? else {
            return Ok(());
        };
        let rows = not_behind(&values, known.get(count - 1), first.descending);
        if rows.len() < batch.rows() {
            batch.choose(&rows);
        }
        Ok(())
    }

    fn push(&mut self, rows: Kept) {
        self.rows += rows.count;
        // Keys are among the columns, as a rule.
        self.bytes += bytes_of(&rows.columns) * 2;
        self.batches.push(rows);
    }

    /// How many rows can be wanted.
    fn kept(&self) -> Option<usize> {
        self.order.limit.map(|limit| limit.saturating_add(self.order.offset))
    }

    pub fn merge(&mut self, other: Sorting) {
        // Behind the first batch, which stays bounded.
        other.batches.into_iter().for_each(|rows| self.push(rows));
    }

    /// The keys of all rows.
    fn keys(&self) -> Vec<packed::Columns<'_>> {
        self.batches.iter().map(|rows| (rows.keys.as_slice(), rows.count)).collect()
    }

    /// How two rows compare; those that are equal as they came.
    fn compare(&self, exact: bool) -> impl Fn(&Packed, &Packed) -> Ordering {
        let of = |(_, batch, row): &Packed| (self.batches[*batch as usize].keys.as_slice(), *row as usize);
        move |a: &Packed, b: &Packed| match a.0.cmp(&b.0) {
            Ordering::Equal if !exact => self.order.compare(of(a), of(b)).then(a.cmp(b)),
            Ordering::Equal => a.cmp(b),
            order => order,
        }
    }

    /// The first rows in order.
    fn first(&self, kept: Option<usize>) -> Result<Vec<Packed>> {
        let keys = self.keys();
        let packing = Packing::of(&self.order.keys, &keys)?;
        let mut all: Vec<Packed> = Vec::with_capacity(self.rows);
        for (batch, keys) in keys.iter().enumerate() {
            check()?;
            let rows = packing.numbers(*keys).into_iter().enumerate();
            all.extend(rows.map(|(row, number)| (number, batch as u32, row as u32)));
        }
        let compare = self.compare(packing.exact);
        match kept {
            Some(0) => return Ok(Vec::new()),
            Some(kept) if kept < all.len() => {
                parted::select(&mut all, kept, &compare)?;
                all.truncate(kept);
            }
            _ => {}
        }
        parted::sort(&mut all, &compare)?;
        Ok(all)
    }

    /// Forgets the rows that a limit rules out.
    fn cut(&mut self, kept: usize) -> Result<()> {
        let first = self.first(Some(kept))?;
        let columns = self.gathered(&first)?;
        let order = self.order.clone();
        let keys = order.keys.iter().enumerate().map(|(at, key)| self.gathered_key(at, key, &first));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        self.batches.clear();
        (self.rows, self.bytes) = (0, 0);
        self.bounded = first.len() == kept && kept > 0;
        self.push(Kept { columns, keys, count: first.len() });
        Ok(())
    }

    fn gathered_key(&self, at: usize, key: &Key, rows: &[Packed]) -> Result<KeyValues> {
        KeyValues::of(Vector::measured(self.gathered_key_array(at, rows)?), key.form)
    }

    fn gathered_key_array(&self, at: usize, rows: &[Packed]) -> Result<ArrayRef> {
        let values: Vec<ArrayRef> = self.batches.iter().map(|rows| rows.keys[at].array()).collect();
        gathered(&values.iter().map(|values| &**values).collect::<Vec<_>>(), rows)
    }

    fn gathered(&self, rows: &[Packed]) -> Result<Vec<ArrayRef>> {
        let column = |at: usize| {
            let values: Vec<&dyn Array> = self.batches.iter().map(|rows| &*rows.columns[at]).collect();
            gathered(&values, rows)
        };
        (0..self.order.fields.len()).map(column).collect()
    }

    /// The rows that are wanted, in order.
    pub fn finish(self) -> Result<Sorted> {
        let mut order = self.first(self.kept())?;
        order.drain(..self.order.offset.min(order.len()));
        let columns = self.order.fields.len();
        let batches = self.batches.into_iter().map(|rows| rows.columns).collect();
        Ok(Sorted { batches, order, columns, bytes: self.bytes / 2 })
    }

    /// What a window computes of all rows: whole partitions, some at a time.
    pub fn finish_window(self, window: &window::Spec) -> Result<Windowed> {
        let rows = self.first(None)?;
        self.windowed(&rows, window)
    }

    /// The same of rows in order, which are whole partitions.
    fn windowed(&self, rows: &[Packed], window: &window::Spec) -> Result<Windowed> {
        let mut windowed = Windowed::default();
        let mut from = 0;
        while from < rows.len() {
            let to = self.partition_end(rows, from + ROWS, window.partition.len())?;
            let columns = self.gathered(&rows[from..to])?.into_iter().map(Vector::measured).collect();
            windowed.push(window.apply(columns, to - from)?, to - from);
            from = to;
        }
        Ok(windowed)
    }

    /// The same in parts of whole partitions, which are computed when they are read.
    pub fn into_parts(self, window: &Arc<window::Spec>) -> Result<PartedWindow> {
        let keys = self.keys();
        let packing = Packing::of(&self.order.keys, &keys)?;
        let mut numbers = Vec::with_capacity(keys.len());
        for keys in keys {
            check()?;
            numbers.push(packing.numbers(keys));
        }
        // Of the bits in which numbers differ the first ones, as far as they are those of partitions.
        let all = || numbers.iter().flatten();
        let (some, every) = all().fold((0, u128::MAX), |(some, every), number| (some | number, every & number));
        let differs = some ^ every;
        let below = u128::BITS.saturating_sub(differs.leading_zeros() + PART_BITS);
        let shift = packing.shift_of(window.partition.len()).max(below).min(u128::BITS - 1);
        let slot = |number: u128| (number >> shift) as usize & ((1 << PART_BITS) - 1);
        let mut counts = vec![0usize; 1 << PART_BITS];
        all().for_each(|number| counts[slot(*number)] += 1);
        // Neighbours are one part as long as they are few.
        let (mut part_of, mut bounds, mut rows) = (vec![0u32; counts.len()], vec![0], 0);
        for (slot, count) in counts.into_iter().enumerate() {
            part_of[slot] = bounds.len() as u32 - 1;
            rows += count;
            if rows - bounds[bounds.len() - 1] >= PART_ROWS {
                bounds.push(rows);
            }
        }
        if bounds[bounds.len() - 1] < rows {
            bounds.push(rows);
        }
        let (mut next, mut all) = (bounds.clone(), vec![(0, 0, 0); rows]);
        for (batch, numbers) in numbers.into_iter().enumerate() {
            check()?;
            for (row, number) in numbers.into_iter().enumerate() {
                let next = &mut next[part_of[slot(number)] as usize];
                all[*next] = (number, batch as u32, row as u32);
                *next += 1;
            }
        }
        Ok(PartedWindow { exact: packing.exact, rows: self, window: window.clone(), all, bounds })
    }

    /// Whether windows of its rows are worth it to be computed part by part.
    pub fn is_worth_parting(&self, window: &window::Spec) -> bool {
        self.rows >= PARTED_MIN && !window.partition.is_empty()
    }

    /// What [`Sorting::into_parts`] takes beside [`Sorting::finish_bytes`].
    pub fn parting_bytes(&self) -> usize {
        self.rows * size_of::<u128>()
    }

    /// Where the partition ends that a row is in, which is told apart by so many of the first keys.
    fn partition_end(&self, rows: &[Packed], near: usize, keys: usize) -> Result<usize> {
        let of = |(_, batch, row): Packed| (self.batches[batch as usize].keys.as_slice(), row as usize);
        let is_same = |at: usize| self.order.is_same(of(rows[at - 1]), of(rows[at]), keys);
        for piece in pieces(rows.len().saturating_sub(near)) {
            if let Some(end) = piece?.map(|beyond| near + beyond).find(|at| !is_same(*at)) {
                return Ok(end);
            }
        }
        Ok(rows.len())
    }
}

widest! {
    fn mark_not_behind[T: Copy + Ord](values: &[T], bound: T, descending: bool, mask: &mut [u8]) {
        let rows = mask.iter_mut().zip(values);
        match descending {
            true => rows.for_each(|(mask, value)| *mask = u8::from(*value >= bound)),
            false => rows.for_each(|(mask, value)| *mask = u8::from(*value <= bound)),
        }
    }
}

/// The rows whose value does not come behind another.
fn not_behind(values: &IntValues, bound: i128, descending: bool) -> Vec<u32> {
    let mut mask = vec![0; values.len()];
    match (values, i32::try_from(bound), i64::try_from(bound)) {
        (IntValues::I32(values), Ok(bound), _) => mark_not_behind(values, bound, descending, &mut mask),
        (IntValues::I64(values), _, Ok(bound)) => mark_not_behind(values, bound, descending, &mut mask),
        (IntValues::I128(values), ..) => mark_not_behind(values, bound, descending, &mut mask),
        // All values are less than a bound beyond them, or greater.
        (IntValues::I32(_) | IntValues::I64(_), ..) => mask.fill(u8::from((bound > 0) != descending)),
    }
    mask::rows(&mask)
}

/// Rows of which a window computes something, in parts that follow one another: each is sorted and computed when it is read,
/// by whoever reads it. All rows stay until the last part is read.
pub(super) struct PartedWindow {
    rows: Sorting,
    window: Arc<window::Spec>,
    /// Part by part, in any order.
    all: Vec<Packed>,
    /// Where each part begins, and where the last one ends.
    bounds: Vec<usize>,
    /// Whether keys are no more than their numbers.
    exact: bool,
}

impl PartedWindow {
    pub fn parts(&self) -> usize {
        self.bounds.len() - 1
    }

    pub fn rows(&self) -> usize {
        self.all.len()
    }

    pub fn bytes(&self) -> usize {
        self.rows.bytes + self.all.capacity() * size_of::<Packed>()
    }

    /// What so many parts take that are open at once.
    pub fn open_bytes(&self, open: usize) -> usize {
        let largest = self.bounds.windows(2).map(|part| part[1] - part[0]).max().unwrap_or(0);
        let results = self.window.calls.len() * size_of::<u128>();
        open * largest * (self.rows.bytes / self.all.len().max(1) + size_of::<Packed>() + results)
    }

    /// All parts.
    pub fn whole(self) -> Result<Windowed> {
        let mut all = Windowed::default();
        for part in 0..self.parts() {
            all.append(self.open(part)?);
        }
        Ok(all)
    }

    pub fn open(&self, part: usize) -> Result<Windowed> {
        let mut rows = self.all[self.bounds[part]..self.bounds[part + 1]].to_vec();
        parted::sort(&mut rows, &self.rows.compare(self.exact))?;
        self.rows.windowed(&rows, &self.window)
    }
}

/// What a window computed, in pieces.
#[derive(Default)]
pub(super) struct Windowed {
    pieces: Vec<Vec<Vector>>,
    /// Of each part that is read at once, the piece and the rows of it.
    parts: Vec<(usize, Range<usize>)>,
    pub rows: usize,
}

impl Windowed {
    fn push(&mut self, piece: Vec<Vector>, rows: usize) {
        let parts = (0..rows).step_by(HELD_ROWS).map(|from| (self.pieces.len(), from..rows.min(from + HELD_ROWS)));
        self.parts.extend(parts);
        self.pieces.push(piece);
        self.rows += rows;
    }

    /// Takes in what was computed of the rows behind.
    fn append(&mut self, other: Windowed) {
        let before = self.pieces.len();
        self.pieces.extend(other.pieces);
        self.parts.extend(other.parts.into_iter().map(|(piece, rows)| (before + piece, rows)));
        self.rows += other.rows;
    }

    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Columns of a part, and how many rows it has.
    pub fn part(&self, at: usize) -> (Vec<Vector>, usize) {
        let (piece, range) = &self.parts[at];
        let rows: Vec<u32> = (range.start as u32..range.end as u32).collect();
        (self.pieces[*piece].iter().map(|column| column.take(&rows)).collect(), rows.len())
    }

    pub fn bytes(&self) -> usize {
        self.pieces.iter().flatten().map(crate::spill::bytes_of).sum()
    }
}

/// The values of rows in several batches.
fn gathered(values: &[&dyn Array], rows: &[Packed]) -> Result<ArrayRef> {
    let of = |rows: &[Packed]| {
        let rows: Vec<At> = rows.iter().map(|(_, batch, row)| (*batch as usize, *row as usize)).collect();
        interleaved(values, &rows)
    };
    if rows.len() <= ROWS {
        return of(rows);
    }
    let parts = pieces(rows.len()).map(|piece| of(&rows[piece?])).collect::<Result<Vec<ArrayRef>>>()?;
    joined(&parts)
}

pub(super) fn interleaved(values: &[&dyn Array], rows: &[At]) -> Result<ArrayRef> {
    match rows.is_empty() {
        true => Ok(arrow_array::new_empty_array(values[0].data_type())),
        false => interleave(values, rows).map(own).map_err(|_| Error::Beyond("sorted columns in two forms")),
    }
}

impl Order {
    /// Keys that are none of the sorted columns, by number.
    pub fn keys_beside(&self) -> impl Iterator<Item = (usize, &Key)> {
        self.keys.iter().enumerate().filter(|(_, key)| key.column.is_none())
    }

    /// Whether rows are the same in so many of the first keys.
    pub fn is_same(&self, left: (&[KeyValues], usize), right: (&[KeyValues], usize), keys: usize) -> bool {
        self.compare_by(&self.keys[..keys], left, right) == Ordering::Equal
    }

    fn values(&self, batch: &mut Batch<'_>, work: &mut Work) -> Result<Vec<KeyValues>> {
        self.keys.iter().map(|key| KeyValues::of(batch.vector(key.place, work)?, key.form)).collect()
    }

    pub fn compare(&self, left: (&[KeyValues], usize), right: (&[KeyValues], usize)) -> Ordering {
        self.compare_by(&self.keys, left, right)
    }

    /// The rows that come before one, ascending.
    fn rows_before(&self, keys: &[KeyValues], rows: usize, bound: (&[KeyValues], usize)) -> Vec<u32> {
        let mut before = match (self.keys.first(), keys.first(), bound.0.first()) {
            (Some(key), Some(KeyValues::Integers(values, None)), Some(KeyValues::Integers(known, None))) => {
                not_behind(values, known.get(bound.1), key.descending)
            }
            _ => (0..rows as u32).collect(),
        };
        before.retain(|row| self.compare((keys, *row as usize), bound) == Ordering::Less);
        before
    }

    fn compare_by(
        &self,
        keys: &[Key],
        (left, a): (&[KeyValues], usize),
        (right, b): (&[KeyValues], usize),
    ) -> Ordering {
        for (key, (left, right)) in keys.iter().zip(left.iter().zip(right)) {
            let order = match (left.is_null(a), right.is_null(b)) {
                (true, true) => Ordering::Equal,
                (false, false) => {
                    let order = left.compare(a, right, b);
                    if key.descending { order.reverse() } else { order }
                }
                (left_is_null, _) if left_is_null == key.nulls_first => Ordering::Less,
                _ => Ordering::Greater,
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }

    pub fn fields(program: &Program, columns: &[Place]) -> Vec<Field> {
        columns.iter().map(|place| program.fields[*place].clone()).collect()
    }
}
