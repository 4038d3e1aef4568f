//! Groups that a condition on their results rules out, left as soon as no row of theirs can come any more.
//!
//! Pages of a table that is in the order of what it is grouped by overlap at their ends at most. A key that is no page's
//! least or greatest is in one page alone, so that its group is whole once that page is taken in. If few groups pass,
//! few are ever held, and nothing grows.

use super::states::keep;
use super::{Aggregation, Chosen, Done, Leaving, Results, Spec, State};
use crate::batch::{Batch, Work};
use crate::error::Result;
use crate::kernels::mask;
use crate::program::{Condition, Place, Program};
use basalt_expr::context::EvalContext;
use basalt_types::vector::Vector;
use std::ops::Range;
use std::sync::Arc;

/// What groups have to meet, over the columns that leave.
#[derive(Clone, Debug)]
pub struct Having {
    program: Arc<Program>,
    condition: Condition,
}

/// Groups that are looked at before it is known whether it is worth it, and how many of them may pass.
const LOOKED_MIN: usize = 1 << 15;
const PASSING_SHARE: usize = 2;

pub(super) struct Early {
    /// Keys that may be in several pages, ascending.
    shared: Arc<[i64]>,
    condition: Condition,
    work: Work,
    /// Groups up to this number stay, whatever they are.
    settled: usize,
    looked: usize,
    left: usize,
}

impl Spec {
    /// Says what groups have to meet in the end: conditions over a program whose columns are [`Spec::fields`].
    pub fn have(&mut self, program: &Program, conditions: &[Condition]) {
        let is_plain = self.units.iter().all(|unit| unit.kind.is_small());
        let by_integer = matches!(self.leaving.as_slice(), [Leaving::Key(0)]) && self.sets.is_empty();
        // They are asked of groups that are not whole, too.
        let places = || conditions.iter().flat_map(Condition::places);
        let are_total = conditions.iter().all(Condition::is_total) && places().all(|place| program.is_total(place));
        if by_integer && is_plain && are_total {
            let condition = Condition::All(conditions.to_vec());
            self.having = Some(Having { program: Arc::new(program.clone()), condition });
        }
    }

    /// The only column that is grouped by, if groups may leave early.
    pub fn leaving_early(&self) -> Option<Place> {
        self.having.as_ref().and(self.groups.first().copied())
    }
}

impl Aggregation {
    /// Before any row comes: rows come page by page, and of the keys of a page only these may be in another, too.
    pub fn leave_early(&mut self, shared: Arc<[i64]>, ctx: &Arc<EvalContext>) {
        if let Some(Having { program, condition }) = &self.spec.having {
            let (work, condition) = (Work::new(program.clone(), ctx.clone(), Vec::new()), condition.clone());
            self.early = Some(Box::new(Early { shared, condition, work, settled: 0, looked: 0, left: 0 }));
        }
    }

    /// Groups that have left.
    pub fn left_early(&self) -> usize {
        self.early.as_ref().map_or(self.left, |early| early.left)
            + self.strands.iter().map(Aggregation::left_early).sum::<usize>()
    }

    /// Leaves groups of a page that was taken in, if that is worth it at all.
    pub(super) fn leave(&mut self) -> Result<()> {
        if let Some(mut early) = self.early.take() {
            match self.leave_by(&mut early)? {
                true => self.early = Some(early),
                false => self.left = early.left,
            }
        }
        Ok(())
    }

    fn leave_by(&mut self, early: &mut Early) -> Result<bool> {
        // The last key goes on in the next page, or does not.
        let (groups, known) = (early.settled + 1..self.keys.len() - 1, self.keys.len());
        let Some(words) = self.keys.ascending() else { return Ok(false) };
        if groups.is_empty() {
            return Ok(true);
        }
        let keys = &words[groups.clone()];
        let least = keys[0] as i64;
        let mut stays = Vec::new();
        for key in &early.shared[early.shared.partition_point(|key| *key < least)..] {
            match keys.binary_search_by(|word| (*word as i64).cmp(key)) {
                Ok(at) => stays.push(at),
                Err(at) if at == keys.len() => break,
                Err(_) => {}
            }
        }
        let Some(columns) = self.columns_so_far(groups.clone())? else { return Ok(false) };
        let mut batch = Batch::of_vectors(&columns, groups.len(), &early.work);
        let mut passes = batch.decided(&early.condition, &mut early.work)?;
        stays.into_iter().for_each(|at| passes[at] = 1);
        let kept = mask::rows(&passes);
        early.looked += groups.len();
        early.left += groups.len() - kept.len();
        if kept.len() < groups.len() {
            self.keep(groups.start, &kept, known);
        }
        early.settled += kept.len();
        let passing = early.looked - early.left;
        Ok(early.looked < LOOKED_MIN || passing * PASSING_SHARE < early.looked)
    }

    /// The columns that leave, of some groups; `None` if their sums are wide.
    fn columns_so_far(&mut self, groups: Range<usize>) -> Result<Option<Vec<Vector>>> {
        if self.states.iter().any(|state| matches!(state, State::Sum(sum) if sum.narrow(groups.clone()).is_none())) {
            return Ok(None);
        }
        let mut columns = self.keys.vectors(groups.clone());
        let done: Vec<Done> = self.states.iter_mut().map(Done::lent).collect();
        let results = Results(&done);
        let groups = Chosen::All(groups);
        let computed = self.spec.results.iter().map(|result| results.result(result, &groups));
        let computed = computed.collect::<Result<Vec<_>>>();
        self.states.iter_mut().zip(done).for_each(|(state, done)| done.give_back(state));
        columns.extend(computed?);
        Ok(Some(columns))
    }

    /// Of the groups from `first` on, but for the last of all, those at these places stay.
    fn keep(&mut self, first: usize, kept: &[u32], known: usize) {
        let places: Vec<usize> = kept.iter().map(|at| first + *at as usize).chain([known - 1]).collect();
        self.keys.keep(first, &places);
        for state in &mut self.states {
            match state {
                State::Count(counts) => keep(counts, first, &places),
                State::Sum(sum) => sum.keep(first, &places),
                State::FloatSum(sum) => sum.keep(first, &places),
                State::Extreme(extreme) => extreme.keep(first, &places),
                State::TextExtreme(_) | State::General(_) => panic!("their groups stay"),
            }
        }
    }
}

impl Done {
    /// What a state holds, for a look at it.
    fn lent(state: &mut State) -> Done {
        match state {
            State::Count(counts) => Done::Count(std::mem::take(counts)),
            State::Sum(sum) => Done::Sum(std::mem::take(sum)),
            State::FloatSum(sum) => Done::FloatSum(std::mem::take(sum)),
            State::Extreme(extreme) => Done::Extreme(extreme.lent()),
            State::TextExtreme(_) | State::General(_) => panic!("their groups stay"),
        }
    }

    fn give_back(self, state: &mut State) {
        *state = match self {
            Done::Count(counts) => State::Count(counts),
            Done::Sum(sum) => State::Sum(sum),
            Done::FloatSum(sum) => State::FloatSum(sum),
            Done::Extreme(extreme) => State::Extreme(extreme),
            Done::TextExtreme(_) | Done::General(_) => panic!("their groups stay"),
        };
    }
}
