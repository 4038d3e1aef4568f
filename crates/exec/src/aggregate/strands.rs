//! Groups of several workers, and of one whose keys began anew, put together.
//!
//! Keys that ascend are found by nothing (`keys/ascending.rs`). Where rows come that ascend from further in front, hot ones
//! behind those of files, a worker begins groups of its own for them: a strand. A key may then be in several, and is put
//! together when all rows have come, as that of several workers is.

use super::{Aggregation, Of, Unit, UnitKind, first_rows};
use crate::error::Result;
use crate::gather::taken;
use crate::join::concat::concat;
use std::cmp::Reverse;

/// How often a worker begins anew where its keys fall back to the front; then its groups are found by their keys.
pub(super) const STRANDS_MAX: usize = 3;

impl Aggregation {
    /// Whether it is nobody's business in which order rows come, and groups are put together by a number or two of each.
    pub(super) fn may_begin_anew(&self) -> bool {
        let is_plain = |unit: &Unit| unit.kind.is_small() && !matches!(unit.kind, UnitKind::FloatSum(..));
        let spec = &self.spec;
        self.early.is_none()
            && self.strands.len() < STRANDS_MAX
            && spec.sets.is_empty()
            && !spec.heeds_order
            && spec.units.iter().all(is_plain)
    }

    pub(super) fn begin_anew(&mut self) {
        let mut next = Aggregation::new(&self.spec);
        (next.begun, next.strands, next.fruit) =
            (true, std::mem::take(&mut self.strands), std::mem::take(&mut self.fruit));
        let before = std::mem::replace(self, next);
        self.strands.push(before);
    }

    /// What putting strands together takes beside them: the longest grows by the others.
    pub(super) fn gathering_bytes(&self) -> usize {
        let (all, of_strands) = (self.bytes(), self.strands.iter().map(Aggregation::bytes));
        let own = all - of_strands.clone().sum::<usize>();
        all - of_strands.fold(own, usize::max)
    }

    /// All groups with each key once.
    pub(super) fn gathered(mut self) -> Result<Aggregation> {
        let mut strands = std::mem::take(&mut self.strands);
        strands.push(self);
        // The longest take in the others.
        strands.sort_by_key(|strand| Reverse(strand.keys.len()));
        let mut strands = strands.into_iter();
        let mut all = strands.next().expect("one has been put in");
        strands.try_for_each(|strand| all.take_in_worker(strand))?;
        Ok(all)
    }

    /// Takes in the groups of another worker.
    pub fn merge(&mut self, mut other: Aggregation) -> Result<()> {
        if !other.begun {
            return Ok(());
        }
        if self.strands.is_empty() && other.strands.is_empty() {
            return self.take_in_worker(other);
        }
        // They are put together when all have come.
        self.begun = true;
        self.strands.append(&mut other.strands);
        self.strands.push(other);
        Ok(())
    }

    fn take_in_worker(&mut self, mut other: Aggregation) -> Result<()> {
        self.begun = true;
        let before = self.keys.len();
        let groups = if self.spec.groups.is_empty() { vec![1] } else { self.keys.merge(&mut other.keys)? };
        let first = first_rows(&groups, before)?;
        for ((own, other), (_, field)) in self.decided.iter_mut().zip(&other.decided).zip(&self.spec.decided) {
            own.push(taken(&concat(&other.iter().collect::<Vec<_>>(), field)?, &first)?);
        }
        let len = self.len();
        for ((own, other), unit) in self.states.iter_mut().zip(&mut other.states).zip(&self.spec.units) {
            // Of distinct values nothing has been aggregated yet.
            if !matches!(unit.of, Of::Distinct(_)) {
                own.merge(other, &groups, 1, len)?;
            }
        }
        for (own, other) in self.sets.iter_mut().zip(other.sets) {
            own.merge(other, &groups)?;
        }
        Ok(())
    }
}
