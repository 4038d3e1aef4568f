//! Rows on their way through a pipeline: columns that come about when they are asked for, and a mask of those rows that
//! still count.
//!
//! A column that nobody asks for is never decoded; one that is asked for after most rows have fallen out is decoded for
//! the others alone (late materialization, Krypton 4.3). While more than half of the rows count they stay where they
//! are, since kernels are faster than gathering.

mod part;

use crate::aggregate::Finished;
use crate::domain::Domains;
use crate::error::{Error, Result};
use crate::join::Table;
use crate::kernels::arithmetic::{Operand, apply};
use crate::kernels::{compare, floats, mask};
use crate::program::{Arg, ArrayPart, Condition, Def, Field, General, Place, Program};
use ahash::AHashMap;
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray};
use arrow_buffer::NullBuffer;
use basalt_engine::Block;
use basalt_expr::context::EvalContext;
use basalt_expr::pattern::Sought;
use basalt_types::ColumnBuilder;
use basalt_types::span::Span;
use basalt_types::text::LengthUnit;
use basalt_types::vector::{ArrayElements, Codes, IntValues, Ints, Vector};
use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Once fewer rows than one in so many count, the others are left behind.
const DENSE_MIN: usize = 2;
/// Where a block has so few of its rows to see, these are listed without a mask.
const SPARSE: usize = 16;
/// The same between the conditions of one filter, where little has been decoded yet.
const DENSE_BETWEEN_MIN: usize = 4;

/// Texts that are few enough to be decided for a whole block, whichever of its rows count.
const ENTRIES_FEW_MAX: usize = 64;

/// The partner of a row that has none.
pub const NO_ROW: u32 = u32::MAX;
/// What stands for a partner where it only matters whether there is one; [`NO_ROW`] says that there is none.
pub const MET: u32 = 0;
pub const UNKNOWN: u32 = u32::MAX - 1;

/// What workers share, held so that one of them clones it without a write where the others' clones are counted, which
/// would have processors wait for each other with each batch.
// The outer count is what is written.
#[allow(clippy::redundant_allocation)]
pub struct Own<T>(Arc<Arc<T>>);

impl<T> Clone for Own<T> {
    fn clone(&self) -> Own<T> {
        Own(self.0.clone())
    }
}

impl<T> From<Arc<T>> for Own<T> {
    fn from(shared: Arc<T>) -> Own<T> {
        Own(Arc::new(shared))
    }
}

impl<T> Deref for Own<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What one worker knows while it runs a pipeline.
pub struct Work {
    pub program: Own<Program>,
    pub ctx: Arc<EvalContext>,
    /// The built sides of its joins.
    pub tables: Vec<Own<Table>>,
    /// What conditions decided about the entries of the dictionary that came last, by the
    /// condition's address, which lives as long as the program.
    decided: AHashMap<usize, Decided>,
    domains: Domains,
}

struct Decided {
    dictionary: Arc<BinaryViewArray>,
    passes: Vec<u8>,
    null_passes: bool,
}

/// Where given columns come from.
pub enum Source<'b> {
    Block(Block<'b>),
    Held(&'b [Vector]),
    Groups(&'b Finished, Range<usize>),
}

pub struct Batch<'b> {
    source: Source<'b>,
    /// Which rows of the source these are; `None`: all.
    at: Option<Vec<u32>>,
    columns: Vec<Option<Vector>>,
    /// The partner of each row in a join, by join; of rows that do not count any.
    matches: Vec<Option<Vec<u32>>>,
    rows: usize,
    /// Which rows count; `None`: all.
    mask: Option<Vec<u8>>,
}

impl Work {
    pub fn new(program: Arc<Program>, ctx: Arc<EvalContext>, tables: Vec<Arc<Table>>) -> Work {
        let tables = tables.into_iter().map(Own::from).collect();
        Work { program: program.into(), ctx, tables, decided: AHashMap::new(), domains: Domains::default() }
    }
}

impl<'b> Batch<'b> {
    /// All rows that a reader sees of a block.
    pub fn of_block(block: Block<'b>, work: &Work) -> Batch<'b> {
        let rows = block.rows();
        let Some(visible) = block.visible() else { return Batch::new(Source::Block(block), rows, work) };
        if visible.count_set_bits() * SPARSE < rows {
            let visible: Vec<u32> = visible.set_indices_u32().collect();
            let mut batch = Batch::new(Source::Block(block), rows, work);
            batch.choose(&visible);
            return batch;
        }
        let mut mask = mask::all(rows);
        mask::clear_unset(visible, &mut mask);
        let mut batch = Batch::new(Source::Block(block), rows, work);
        batch.narrow(Some(mask), DENSE_MIN);
        batch
    }

    /// Of each of the scan's predicates, whether all rows satisfy it; `None`: nothing is known.
    pub fn told(&self) -> Option<&[bool]> {
        match &self.source {
            Source::Block(block) => block.told(),
            _ => None,
        }
    }

    pub fn of_vectors(vectors: &'b [Vector], rows: usize, work: &Work) -> Batch<'b> {
        Batch::new(Source::Held(vectors), rows, work)
    }

    /// Some groups.
    pub fn of_groups(groups: &'b Finished, some: Range<usize>, work: &Work) -> Batch<'b> {
        let rows = some.len();
        Batch::new(Source::Groups(groups, some), rows, work)
    }

    /// Rows that went another way for a while, with what later columns are computed from.
    pub fn of_places(places: &[Place], vectors: &[Vector], rows: usize, work: &Work) -> Batch<'b> {
        let mut batch = Batch::new(Source::Held(&[]), rows, work);
        places.iter().zip(vectors).for_each(|(place, vector)| batch.columns[*place] = Some(vector.clone()));
        batch
    }

    fn new(source: Source<'b>, rows: usize, work: &Work) -> Batch<'b> {
        let (columns, matches) = (vec![None; work.program.defs.len()], vec![None; work.tables.len()]);
        Batch { source, at: None, columns, matches, rows, mask: None }
    }

    /// Rows in each column, whether they count or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn mask(&self) -> Option<&[u8]> {
        self.mask.as_deref()
    }

    /// How many rows count.
    pub fn count(&self) -> usize {
        self.mask.as_deref().map_or(self.rows, mask::count)
    }

    /// Leaves behind the rows that do not count.
    pub fn compact(&mut self) {
        if let Some(mask) = self.mask.take() {
            self.keep(&mask::rows(&mask));
        }
    }

    fn keep(&mut self, rows: &[u32]) {
        for column in self.columns.iter_mut().flatten() {
            *column = column.take(rows);
        }
        for matches in self.matches.iter_mut().flatten() {
            *matches = rows.iter().map(|row| matches[*row as usize]).collect();
        }
        self.at = Some(match self.at.take() {
            None => rows.to_vec(),
            Some(at) => rows.iter().map(|row| at[*row as usize]).collect(),
        });
        self.rows = rows.len();
    }

    /// Leaves these rows, which ascend.
    pub fn choose(&mut self, rows: &[u32]) {
        self.mask = None;
        self.keep(rows);
    }

    /// Takes a mask over, and leaves rows behind if it lets few pass.
    fn narrow(&mut self, mask: Option<Vec<u8>>, dense_min: usize) {
        let Some(mask) = mask else { return };
        let count = mask::count(&mask);
        self.mask = (count < self.rows).then_some(mask);
        if count * dense_min < self.rows {
            self.compact();
        }
    }

    /// Lets rows be cleared from the mask.
    pub fn clear(&mut self, clear: impl FnOnce(&mut [u8])) {
        let mut mask = self.mask.take().unwrap_or_else(|| mask::all(self.rows));
        clear(&mut mask);
        self.narrow(Some(mask), DENSE_BETWEEN_MIN);
    }

    /// Of the rows that count, those that have a number, or those that have none (0), still count.
    pub fn retain_numbered(&mut self, numbers: &[u32], numbered: bool) {
        let mut mask = self.mask.take().unwrap_or_else(|| mask::all(self.rows));
        match numbered {
            true => mask::clear_zeros(&mut mask, numbers),
            false => mask::keep_zeros(&mut mask, numbers),
        }
        self.narrow(Some(mask), DENSE_BETWEEN_MIN);
    }

    /// Of the rows that count, those for which `keep` says so still count.
    pub fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut mask = self.mask.take().unwrap_or_else(|| mask::all(self.rows));
        mask.iter_mut().enumerate().for_each(|(row, counts)| *counts &= u8::from(keep(row)));
        self.narrow(Some(mask), DENSE_BETWEEN_MIN);
    }

    /// Gives each row its partner.
    pub fn set_matches(&mut self, join: usize, partners: Vec<u32>) {
        self.matches[join] = Some(partners);
    }

    /// Leaves these rows, which ascend and may come several times, each with its partner.
    pub fn pair(&mut self, join: usize, rows: &[u32], partners: Vec<u32>) {
        self.repeat(rows);
        self.matches[join] = Some(partners);
    }

    /// The rows that count, in their order.
    pub fn counted(&self) -> Vec<u32> {
        self.mask.as_deref().map_or_else(|| (0..self.rows as u32).collect(), mask::rows)
    }

    /// Leaves these rows, which ascend and may come several times.
    pub fn repeat(&mut self, rows: &[u32]) {
        self.mask = None;
        self.keep(rows);
    }

    /// Gives the rows a column that nothing here computes.
    pub fn give(&mut self, place: Place, column: Vector) {
        self.columns[place] = Some(column);
    }

    /// Which pairs of a row and its partner pass; `read` are the columns of rows that the conditions ask for.
    pub fn decide_pairs(
        &mut self,
        conditions: &[Condition],
        read: &[Place],
        join: usize,
        (rows, partners): (&[u32], &[u32]),
        work: &mut Work,
    ) -> Result<Vec<u8>> {
        let mut pairs = Batch::new(Source::Held(&[]), rows.len(), work);
        for place in read {
            pairs.columns[*place] = Some(self.vector(*place, work)?.take(rows));
        }
        for (own, matches) in pairs.matches.iter_mut().zip(&self.matches) {
            *own = matches.as_ref().map(|matches| rows.iter().map(|row| matches[*row as usize]).collect());
        }
        pairs.matches[join] = Some(partners.to_vec());
        let mut mask = mask::all(rows.len());
        for condition in conditions {
            pairs.decide(condition, &mut mask, work)?;
            if mask::count(&mask) == 0 {
                break;
            }
            pairs.mask = Some(mask.clone());
        }
        Ok(mask)
    }

    /// Rows of a block in which a column that rests does not lie within the span count no more, if that is found without
    /// decoding it.
    pub fn rule_out(&mut self, column: usize, span: Span) -> Result<()> {
        let (Source::Block(block), None) = (&mut self.source, &self.at) else { return Ok(()) };
        let mut mask = self.mask.clone().unwrap_or_else(|| mask::all(self.rows));
        if block.test(column, span, &mut mask)? {
            self.narrow(Some(mask), DENSE_BETWEEN_MIN);
        }
        Ok(())
    }

    /// Rows for which all conditions hold still count. What an earlier condition rules out, a later one is not asked;
    /// those that storage can tell without decoding anything come first.
    pub fn filter(&mut self, conditions: &[Condition], work: &mut Work) -> Result<()> {
        self.filter_rest(conditions, vec![false; conditions.len()], work)
    }

    /// The same, where some are told to hold for all rows.
    pub fn filter_rest(&mut self, conditions: &[Condition], mut told: Vec<bool>, work: &mut Work) -> Result<()> {
        if self.at.is_none() && matches!(self.source, Source::Block(_)) {
            let mut mask = self.mask.take().unwrap_or_else(|| mask::all(self.rows));
            // Texts take longest, and those of rows that are out are not looked at.
            for texts in [false, true] {
                for (condition, told) in conditions.iter().zip(&mut told) {
                    // No page of texts is fetched for rows that are all out.
                    if !*told && texts == matches!(condition, Condition::Text(_)) && (!texts || mask::count(&mask) > 0)
                    {
                        *told = self.test(condition, &mut mask, work)?;
                    }
                }
            }
            self.narrow(Some(mask), DENSE_BETWEEN_MIN);
        }
        for (condition, told) in conditions.iter().zip(told) {
            if self.rows == 0 {
                return Ok(());
            }
            if told {
                continue;
            }
            // What is computed meanwhile is computed for the rows that count so far.
            let mut mask = self.mask.clone().unwrap_or_else(|| mask::all(self.rows));
            self.decide(condition, &mut mask, work)?;
            self.narrow(Some(mask), DENSE_BETWEEN_MIN);
        }
        let mask = self.mask.take();
        self.narrow(mask, DENSE_MIN);
        Ok(())
    }

    /// Decides a condition where the block's column rests, if that is possible and takes little.
    fn test(&mut self, condition: &Condition, mask: &mut [u8], work: &mut Work) -> Result<bool> {
        let Source::Block(block) = &mut self.source else { return Ok(false) };
        let program = work.program.clone();
        let given = |place: Place| match &program.defs[place] {
            Def::Given(column) if self.columns[place].is_none() => Some(*column),
            _ => None,
        };
        match condition {
            Condition::Within(place, span) => match given(*place) {
                Some(column) => Ok(block.test(column, *span, mask)?),
                None => Ok(false),
            },
            Condition::Text(general) => {
                let Some(column) = given(general.places[0]) else { return Ok(false) };
                if block.dictionary_len(column)?.is_none_or(|entries| entries > ENTRIES_FEW_MAX) {
                    let Some(Sought { texts, negated }) = general.sought() else { return Ok(false) };
                    return Ok(block.search(column, texts, *negated, mask)?);
                }
                match block.vector(column)? {
                    Vector::Codes(codes) => self.decide_codes(general, &codes, mask, work).map(|()| true),
                    Vector::Flat(_) | Vector::Ints(_) => Ok(false),
                }
            }
            _ => Ok(false),
        }
    }

    /// A column over all rows; what it holds for rows that do not count means nothing.
    pub fn vector(&mut self, place: Place, work: &mut Work) -> Result<Vector> {
        if let Some(vector) = &self.columns[place] {
            return Ok(vector.clone());
        }
        let program = work.program.clone();
        let vector = match &program.defs[place] {
            Def::Given(column) => match (&mut self.source, &self.at) {
                (Source::Block(block), None) => block.vector(*column)?,
                (Source::Block(block), Some(at)) => block.vector_at(*column, at)?,
                (Source::Held(vectors), None) => vectors[*column].clone(),
                (Source::Held(vectors), Some(at)) => vectors[*column].take(at),
                (Source::Groups(groups, some), None) => groups.column(*column, some.clone())?,
                (Source::Groups(groups, some), Some(at)) => groups.column_at(*column, some.start, at)?,
            },
            Def::Arithmetic { op, left, right, limits, general } => {
                let (left, right) = (self.operand(*left, work)?, self.operand(*right, work)?);
                match apply(*op, &left, &right, *limits) {
                    Some(ints) => Vector::Ints(ints),
                    None if program.fields[place].scale.is_some() => {
                        return Err(Error::Beyond("numerics beyond 128 bits"));
                    }
                    None => self.general(general, work)?,
                }
            }
            Def::Part { part, of } => Vector::Ints(part::of(*part, &self.ints(*of, work)?)?),
            Def::Length { unit, of, general } => match self.stored_lengths(*unit, *of, &program)? {
                Some(lengths) => Vector::Ints(lengths),
                None => self.general(general, work)?,
            },
            Def::OfArray { part, of, general } => match self.stored_part(part, *of, work)? {
                Some(values) => values,
                None => self.general(general, work)?,
            },
            Def::Case { branches, otherwise } => Vector::Ints(self.case(branches, *otherwise, work)?),
            Def::General(general) => self.general(general, work)?,
            Def::Element { .. } => panic!("sets come before what asks for their values"),
            Def::Mark { join } => {
                let partners = self.matches[*join].as_deref().expect("joins come before what asks for their marks");
                of_marks(partners)
            }
            Def::Payload { join, column } => {
                let partners = self.matches[*join].as_deref().expect("joins come before what asks for their columns");
                of_partners(&work.tables[*join].payload[*column], partners, &program.fields[place])
            }
        };
        self.columns[place] = Some(vector.clone());
        Ok(vector)
    }

    /// How long texts are that nobody has asked for, if the block tells.
    fn stored_lengths(&mut self, unit: LengthUnit, of: Place, program: &Program) -> Result<Option<Ints>> {
        match (&mut self.source, &program.defs[of], &self.columns[of]) {
            (Source::Block(block), Def::Given(column), None) => Ok(block.lengths(*column, unit, self.at.as_deref())?),
            _ => Ok(None),
        }
    }

    /// What is asked of given arrays, if the block tells.
    fn stored_part(&mut self, part: &ArrayPart, of: Place, work: &mut Work) -> Result<Option<Vector>> {
        let program = work.program.clone();
        let (Source::Block(block), Def::Given(column)) = (&mut self.source, &program.defs[of]) else { return Ok(None) };
        let at = self.at.as_deref();
        Ok(match part {
            ArrayPart::Element(place) => block.element(*column, *place, at)?,
            ArrayPart::Count => block.counts(*column, at)?.map(Vector::Ints),
            ArrayPart::Length => block.counts(*column, at)?.map(|counts| {
                let some = (0..counts.values.len()).map(|row| counts.values.get(row) > 0).collect();
                Vector::Ints(counts).with_nulls(&some)
            }),
            // What fails may do so for an element that need not be asked.
            ArrayPart::Test(test) => match self.stored_elements(of, None, &program)? {
                Some(elements) => test.of_rows(&elements, &work.ctx).ok().map(Vector::Flat),
                None => None,
            },
        })
    }

    /// All elements of a column's arrays, of the batch's rows or of some, which ascend; if the block tells.
    pub fn stored_elements(
        &mut self,
        of: Place,
        rows: Option<&[u32]>,
        program: &Program,
    ) -> Result<Option<ArrayElements>> {
        let (Source::Block(block), Def::Given(column)) = (&mut self.source, &program.defs[of]) else { return Ok(None) };
        let some = rows.filter(|rows| rows.len() < self.rows);
        let at: Option<Cow<'_, [u32]>> = match (some, &self.at) {
            (Some(rows), Some(at)) => Some(rows.iter().map(|row| at[*row as usize]).collect()),
            (some, at) => some.or(at.as_deref()).map(Cow::Borrowed),
        };
        // Behind a join a row may come several times.
        match at.as_deref().is_none_or(|at| at.is_sorted_by(|a, b| a < b)) {
            true => Ok(block.elements(*column, at.as_deref())?),
            false => Ok(None),
        }
    }

    /// The mask bytes of a condition alone, over the rows that count.
    pub fn decided(&mut self, condition: &Condition, work: &mut Work) -> Result<Vec<u8>> {
        let mut mask = self.mask.clone().unwrap_or_else(|| mask::all(self.rows));
        self.decide(condition, &mut mask, work)?;
        Ok(mask)
    }

    fn ints(&mut self, place: Place, work: &mut Work) -> Result<Ints> {
        match self.vector(place, work)? {
            Vector::Ints(ints) => Ok(ints),
            Vector::Flat(_) | Vector::Codes(_) => Err(Error::Beyond("integers in another form")),
        }
    }

    fn operand(&mut self, arg: Arg, work: &mut Work) -> Result<Operand> {
        Ok(match arg {
            Arg::Column(place) => Operand::Column(self.ints(place, work)?),
            Arg::Const(value) => Operand::Const(value),
        })
    }

    /// Evaluated for the rows that count alone, for others may fail.
    fn general(&mut self, general: &General, work: &mut Work) -> Result<Vector> {
        let columns = self.vectors(&general.places, work)?;
        if let [column] = columns.as_slice()
            && let Some(values) = work.domains.values(general, column, &work.ctx)
        {
            return Ok(values);
        }
        let Some(mask) = &self.mask else {
            return general.eval(&columns.iter().collect::<Vec<_>>(), self.rows, &work.ctx);
        };
        let rows = mask::rows(mask);
        if rows.is_empty() {
            return Err(Error::Beyond("a batch of which no row counts"));
        }
        let taken: Vec<Vector> = columns.iter().map(|column| column.take(&rows)).collect();
        let values = general.eval(&taken.iter().collect::<Vec<_>>(), rows.len(), &work.ctx)?;
        // Back to where they belong; rows that do not count get any value.
        let mut of = vec![0; self.rows];
        rows.iter().enumerate().for_each(|(at, row)| of[*row as usize] = at as u32);
        Ok(values.take(&of))
    }

    fn vectors(&mut self, places: &[Place], work: &mut Work) -> Result<Vec<Vector>> {
        places.iter().map(|place| self.vector(*place, work)).collect()
    }

    /// Clears the rows of the mask for which a condition is not true.
    fn decide(&mut self, condition: &Condition, mask: &mut [u8], work: &mut Work) -> Result<()> {
        match condition {
            Condition::Within(place, span) => compare::within(&self.ints(*place, work)?, *span, mask),
            Condition::CompareColumns(op, left, right) => {
                compare::columns(*op, &self.ints(*left, work)?, &self.ints(*right, work)?, mask);
            }
            Condition::Null(place, null) => match (self.vector(*place, work)?.nulls(), null) {
                (None, true) => mask.fill(0),
                (None, false) => {}
                (Some(nulls), true) => mask::clear_unset(&!nulls.inner(), mask),
                (Some(nulls), false) => mask::clear_unset(nulls.inner(), mask),
            },
            Condition::Text(general) => match self.vector(general.places[0], work)? {
                Vector::Codes(codes) => self.decide_codes(general, &codes, mask, work)?,
                Vector::Flat(_) | Vector::Ints(_) => self.decide_generally(general, mask, work)?,
            },
            Condition::All(conditions) => {
                conditions.iter().try_for_each(|condition| self.decide(condition, mask, work))?;
            }
            Condition::Any(conditions) => {
                let mut passed = vec![0; mask.len()];
                for condition in conditions {
                    // Rows that have passed are not asked again.
                    let mut open = mask.to_vec();
                    open.iter_mut().zip(&passed).for_each(|(open, passed)| *open &= passed ^ 1);
                    self.decide(condition, &mut open, work)?;
                    mask::or(&mut passed, &open);
                }
                mask::and(mask, &passed);
            }
            Condition::General(general) => self.decide_generally(general, mask, work)?,
        }
        Ok(())
    }

    /// Of the rows that count.
    fn decide_generally(&mut self, general: &General, mask: &mut [u8], work: &mut Work) -> Result<()> {
        if mask::count(mask) == 0 {
            return Ok(());
        }
        if let Some(span) = general.floats()
            && let Vector::Flat(values) = self.vector(general.places[0], work)?
            && floats::within(&values, span, mask)
        {
            return Ok(());
        }
        let rows = mask::rows(mask);
        let columns = self.vectors(&general.places, work)?;
        let all = rows.len() == mask.len();
        let taken = |column: &Vector| if all { column.clone() } else { column.take(&rows) };
        let taken: Vec<Vector> = columns.iter().map(taken).collect();
        let passed = general.filter(&taken.iter().collect::<Vec<_>>(), rows.len(), &work.ctx)?;
        mask.fill(0);
        passed.iter().for_each(|at| mask[rows[*at as usize] as usize] = 1);
        Ok(())
    }

    fn decide_codes(&mut self, general: &Arc<General>, codes: &Codes, mask: &mut [u8], work: &mut Work) -> Result<()> {
        let key = Arc::as_ptr(general) as usize;
        let known = work.decided.get(&key).is_some_and(|known| Arc::ptr_eq(&known.dictionary, &codes.dictionary));
        if !known {
            // A large dictionary is not worth it for a few rows. What fails may fail for an entry that no row has.
            let dear = codes.dictionary.len() > codes.codes.len();
            let Some(decided) = (!dear).then(|| decide_entries(general, &codes.dictionary, &work.ctx)).flatten() else {
                return self.decide_generally(general, mask, work);
            };
            work.decided.insert(key, decided);
        }
        let decided = &work.decided[&key];
        if codes.dictionary.is_empty() {
            if !decided.null_passes {
                mask.fill(0);
            }
            return Ok(());
        }
        let nulls = codes.nulls.as_ref().filter(|nulls| nulls.null_count() > 0);
        let of_nulls: Vec<(usize, u8)> = match nulls {
            Some(nulls) if decided.null_passes => {
                (0..mask.len()).filter(|row| nulls.is_null(*row)).map(|row| (row, mask[row])).collect()
            }
            _ => Vec::new(),
        };
        mask::lookup(mask, &codes.codes, &decided.passes);
        mask::clear_nulls(nulls, mask);
        of_nulls.into_iter().for_each(|(row, counts)| mask[row] = counts);
        Ok(())
    }

    fn case(&mut self, branches: &[(Condition, Arg)], otherwise: Option<Arg>, work: &mut Work) -> Result<Ints> {
        let mut open = self.mask.clone().unwrap_or_else(|| mask::all(self.rows));
        // Which value each row takes: by its place among `values`, 0 for none.
        let mut chosen = vec![0u8; self.rows];
        let mut values = Vec::with_capacity(branches.len() + 1);
        for (at, (condition, value)) in branches.iter().enumerate() {
            let mut taken = open.clone();
            self.decide(condition, &mut taken, work)?;
            open.iter_mut().zip(&taken).for_each(|(open, taken)| *open &= taken ^ 1);
            chosen.iter_mut().zip(&taken).for_each(|(chosen, taken)| *chosen += taken * (at as u8 + 1));
            values.push(self.operand(*value, work)?);
        }
        if let Some(otherwise) = otherwise {
            let last = branches.len() as u8 + 1;
            chosen.iter_mut().zip(&open).for_each(|(chosen, open)| *chosen += open * last);
            values.push(self.operand(otherwise, work)?);
        }
        Ok(choose(&chosen, &values))
    }
}

fn of_marks(marks: &[u32]) -> Vector {
    let values = marks.iter().map(|mark| *mark == MET).collect();
    let valid = marks.contains(&UNKNOWN).then(|| marks.iter().map(|mark| *mark != UNKNOWN).collect());
    Vector::Flat(Arc::new(BooleanArray::new(values, valid)))
}

/// A column of partners; null for rows without one.
fn of_partners(values: &Vector, partners: &[u32], field: &Field) -> Vector {
    let lonely = partners.contains(&NO_ROW);
    if values.is_empty() {
        let ty = field.held().phys().expect("columns are storable");
        let mut builder = ColumnBuilder::new(ty, partners.len());
        partners.iter().for_each(|_| builder.push_null());
        return Vector::measured(builder.finish());
    }
    if !lonely {
        return values.take(partners);
    }
    let at: Vec<u32> = partners.iter().map(|partner| if *partner == NO_ROW { 0 } else { *partner }).collect();
    let valid: NullBuffer = partners.iter().map(|partner| *partner != NO_ROW).collect();
    values.take(&at).with_nulls(&valid)
}

/// The value of each row by its number among operands, counted from 1; null for 0.
fn choose(chosen: &[u8], values: &[Operand]) -> Ints {
    let bounds = values.iter().map(|value| match value {
        Operand::Column(ints) => (ints.min, ints.max),
        Operand::Const(value) => (*value, *value),
    });
    // 0 is what rows without a value hold.
    let (min, max) = bounds.fold((0, 0), |(min, max), (low, high)| (low.min(min), high.max(max)));
    let valid = |row: usize, at: u8| match at.checked_sub(1).map(|at| &values[usize::from(at)]) {
        None => false,
        Some(Operand::Const(_)) => true,
        Some(Operand::Column(ints)) => ints.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)),
    };
    let may_lack = chosen.contains(&0)
        || values.iter().any(|value| matches!(value, Operand::Column(ints) if ints.nulls.is_some()));
    let nulls = may_lack.then(|| chosen.iter().enumerate().map(|(row, at)| valid(row, *at)).collect());
    macro_rules! in_width {
        ($native:ty) => {{
            let mut out = vec![0 as $native; chosen.len()];
            for (at, value) in values.iter().enumerate() {
                let own = at as u8 + 1;
                let rows = out.iter_mut().zip(chosen);
                match value {
                    Operand::Const(value) => {
                        let value = *value as $native;
                        rows.for_each(|(out, chosen)| *out = if *chosen == own { value } else { *out });
                    }
                    Operand::Column(Ints { values, .. }) => match values {
                        IntValues::I32(values) => rows.zip(values.iter()).for_each(|((out, chosen), value)| {
                            *out = if *chosen == own { *value as $native } else { *out };
                        }),
                        IntValues::I64(values) => rows.zip(values.iter()).for_each(|((out, chosen), value)| {
                            *out = if *chosen == own { *value as $native } else { *out };
                        }),
                        IntValues::I128(values) => rows.zip(values.iter()).for_each(|((out, chosen), value)| {
                            *out = if *chosen == own { *value as $native } else { *out };
                        }),
                    },
                }
            }
            out
        }};
    }
    let fits = |low: i128, high: i128| min >= low && max <= high;
    let values = if fits(i32::MIN.into(), i32::MAX.into()) {
        IntValues::I32(in_width!(i32).into())
    } else if fits(i64::MIN.into(), i64::MAX.into()) {
        IntValues::I64(in_width!(i64).into())
    } else {
        IntValues::I128(in_width!(i128).into())
    };
    Ints { values, nulls, min, max }
}

/// `None` if it fails for an entry.
fn decide_entries(general: &General, dictionary: &Arc<BinaryViewArray>, ctx: &EvalContext) -> Option<Decided> {
    let entries: ArrayRef = dictionary.clone();
    let mut passes = vec![0; dictionary.len()];
    general.filter_values(&entries, ctx).ok()?.into_iter().for_each(|entry| passes[entry as usize] = 1);
    let null: ArrayRef = Arc::new(BinaryViewArray::new_null(1));
    let null_passes = !general.filter_values(&null, ctx).ok()?.is_empty();
    Some(Decided { dictionary: dictionary.clone(), passes, null_passes })
}

#[cfg(test)]
mod tests;
