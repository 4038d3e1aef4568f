//! `range_agg` and `range_intersect_agg` (manual 9.21): unions and intersections of ranges and multiranges.

use super::{Binding, GroupsAccumulator, for_each_row};
use crate::error::Result;
use crate::eval::vector::{VectorBuilder, value_at};
use crate::functions::ranges::kind_of;
use crate::range_value::{Pair, normalized, spans};
use arrow_array::{ArrayRef, BooleanArray};
use basalt_types::range::{RangeKind, Span, encode_multirange, encode_range};
use basalt_types::{DataType, Datum};

pub(super) fn bind(name: &str) -> Option<Binding> {
    let make: super::MakeAccumulator = match name {
        "range_agg" => |args, ty| make(args, ty, false),
        "range_intersect_agg" => |args, ty| make(args, ty, true),
        _ => return None,
    };
    Some((make, |_, ty| vec![ty.clone()]))
}

fn make(args: &[DataType], ty: &DataType, intersects: bool) -> Box<dyn GroupsAccumulator> {
    Box::new(Ranges { arg: args[0].clone(), ty: ty.clone(), intersects, kept: Vec::new() })
}

/// Ranges added to a group before they are joined anew, at least.
const JOIN_AFTER: usize = 1024;

struct Ranges {
    arg: DataType,
    ty: DataType,
    intersects: bool,
    /// `None` before the first value.
    kept: Vec<Option<Group>>,
}

#[derive(Default)]
struct Group {
    spans: Vec<Span>,
    /// How many of them are in order and apart: those that were joined last.
    joined: usize,
}

impl Ranges {
    fn add(&mut self, ty: &DataType, groups: &[u32], values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<()> {
        let kind = kind_of(ty)?;
        for_each_row(groups, values, filter, |row, group| {
            let spans = spans(ty, &value_at(ty, values[0].as_ref(), row))?;
            let Some(kept) = &mut self.kept[group] else {
                self.kept[group] = Some(Group { joined: spans.len(), spans });
                return Ok(());
            };
            if self.intersects {
                kept.spans = Pair { kind, left: &kept.spans, right: &spans }.intersection()?;
            } else {
                kept.spans.extend(spans);
                if kept.spans.len() > 2 * kept.joined + JOIN_AFTER {
                    kept.spans = normalized(kind, std::mem::take(&mut kept.spans));
                    kept.joined = kept.spans.len();
                }
            }
            Ok(())
        })
    }

    fn result(&self, kind: RangeKind, group: &Group) -> Datum {
        match self.ty {
            DataType::Range(_) => encode_range(kind, &group.spans.first().cloned()),
            _ => encode_multirange(kind, &normalized(kind, group.spans.clone())),
        }
    }
}

impl GroupsAccumulator for Ranges {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.kept.resize_with(total_groups, || None);
        let ty = self.arg.clone();
        self.add(&ty, groups, args, filter)
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.kept.resize_with(total_groups, || None);
        let ty = self.ty.clone();
        self.add(&ty, groups, states, None)
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let states = self.evaluate()?;
        self.kept = Vec::new();
        Ok(vec![states])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let kind = kind_of(&self.ty)?;
        let mut builder = VectorBuilder::new(&self.ty, self.kept.len());
        for group in &self.kept {
            match group {
                Some(group) => builder.push(&self.result(kind, group))?,
                None => builder.skip(),
            }
        }
        builder.finish()
    }

    fn size_bytes(&self) -> usize {
        let spans: usize = self.kept.iter().flatten().map(|group| group.spans.capacity()).sum();
        self.kept.capacity() * size_of::<Option<Group>>() + spans * size_of::<Span>()
    }
}
