//! A scan block by block, for whoever looks at some columns before it asks for the others.
//!
//! A block is a page of a segment, or up to as many rows in row format. Of a page nothing is decoded until it is asked
//! for, and of a column asked for at some rows only those.

use super::cold_scan::ColdScan;
use super::{Part, Shared, TabletScan};
use crate::Result;
use arrow_array::Array;
use arrow_buffer::BooleanBuffer;
use basalt_types::automaton::Automaton;
use basalt_types::span::{Span, Verdict};
use basalt_types::text::LengthUnit;
use basalt_types::vector::{ArrayElements, Ints, Vector};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a scan that follow each other.
pub struct Block<'s> {
    rows: usize,
    visible: Option<BooleanBuffer>,
    told: Option<Arc<[bool]>>,
    source: Source<'s>,
}

enum Source<'s> {
    /// Rows of a row group.
    Page(&'s mut ColdScan, Range<u32>),
    Decoded(Vec<Vector>),
}

impl Block<'_> {
    /// At least one.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Which rows the reader sees; `None`: all. Values of others mean nothing.
    pub fn visible(&self) -> Option<&BooleanBuffer> {
        self.visible.as_ref()
    }

    /// Of each of the scan's predicates, whether all rows that the reader sees satisfy it, and all others that it would see
    /// do not; `None`: of none.
    pub fn told(&self) -> Option<&[bool]> {
        self.told.as_deref()
    }

    /// A column by its place in the scan's list.
    pub fn vector(&mut self, column: usize) -> Result<Vector> {
        match &mut self.source {
            Source::Page(scan, rows) => scan.vector(column, rows, None),
            Source::Decoded(vectors) => Ok(vectors[column].clone()),
        }
    }

    /// How many texts a column's codes stand for, if codes are what it is given as.
    pub fn dictionary_len(&mut self, column: usize) -> Result<Option<usize>> {
        match &mut self.source {
            Source::Page(scan, rows) => scan.dictionary_len(column, rows),
            Source::Decoded(vectors) => Ok(match &vectors[column] {
                Vector::Codes(codes) => Some(codes.dictionary.len()),
                Vector::Ints(_) | Vector::Flat(_) => None,
            }),
        }
    }

    /// Clears the mask where a column is null or not within the span; whether it was possible without decoding it.
    pub fn test(&mut self, column: usize, span: Span, mask: &mut [u8]) -> Result<bool> {
        match &mut self.source {
            Source::Page(scan, rows) => scan.test(column, rows, span, mask),
            Source::Decoded(vectors) => Ok(match &vectors[column] {
                Vector::Ints(ints) if vectors[column].nulls().is_none() => match span.verdict((ints.min, ints.max)) {
                    Verdict::All => true,
                    Verdict::None => {
                        mask.fill(0);
                        true
                    }
                    Verdict::Depends => false,
                },
                _ => false,
            }),
        }
    }

    /// Clears the mask where a column is null or not in a set of texts, or is in it if that is `negated`; whether it was
    /// possible without decoding it.
    pub fn search(&mut self, column: usize, texts: &Arc<Automaton>, negated: bool, mask: &mut [u8]) -> Result<bool> {
        match &mut self.source {
            Source::Page(scan, rows) => scan.search(column, rows, (texts, negated), mask),
            Source::Decoded(_) => Ok(false),
        }
    }

    /// How long a column's texts are, at some rows, which ascend, if `at` says so; `None` if that is not known without them.
    pub fn lengths(&mut self, column: usize, unit: LengthUnit, at: Option<&[u32]>) -> Result<Option<Ints>> {
        match &mut self.source {
            Source::Page(scan, rows) => scan.lengths(column, rows, unit, at),
            Source::Decoded(_) => Ok(None),
        }
    }

    /// The element at a place, counted from 0, of each of a column's arrays, null where there is none; at some rows, which
    /// ascend, if `at` says so. `None` if elements do not lie side by side.
    pub fn element(&mut self, column: usize, place: u32, at: Option<&[u32]>) -> Result<Option<Vector>> {
        match &mut self.source {
            Source::Page(scan, rows) => scan.element(column, rows, place, at),
            Source::Decoded(_) => Ok(None),
        }
    }

    /// How many elements each of a column's arrays has; as above.
    pub fn counts(&mut self, column: usize, at: Option<&[u32]>) -> Result<Option<Ints>> {
        match &mut self.source {
            Source::Page(scan, rows) => scan.counts(column, rows, at),
            Source::Decoded(_) => Ok(None),
        }
    }

    /// All elements of a column's arrays, at some rows, of which none comes twice; as above.
    pub fn elements(&mut self, column: usize, at: Option<&[u32]>) -> Result<Option<ArrayElements>> {
        match &mut self.source {
            Source::Page(scan, rows) => scan.elements(column, rows, at),
            Source::Decoded(_) => Ok(None),
        }
    }

    /// A column at some rows, which ascend.
    pub fn vector_at(&mut self, column: usize, at: &[u32]) -> Result<Vector> {
        match &mut self.source {
            Source::Page(scan, rows) => scan.vector(column, rows, Some(at)),
            Source::Decoded(vectors) => Ok(vectors[column].take(at)),
        }
    }
}

impl TabletScan {
    fn shared(&self) -> &Shared {
        match &self.part {
            Part::Cold(scan) => scan.shared(),
            Part::RowFile(scan) => scan.shared(),
            Part::Hot(scan) => scan.shared(),
        }
    }

    /// The next rows, `None` at the end. Of scans without identity.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>> {
        debug_assert!(!self.shared().spec.with_identity, "blocks have no identity");
        // Whoever reads asks afterwards: what was before may have gone meanwhile.
        let decoded = match &mut self.part {
            Part::Cold(scan) => {
                let page = scan.next_page();
                scan.shared().read.check_age()?;
                let Some((rows, visible)) = page? else { return Ok(None) };
                let told = scan.told().cloned();
                return Ok(Some(Block { rows: rows.len(), visible, told, source: Source::Page(scan, rows) }));
            }
            Part::RowFile(scan) => {
                let vectors = scan.next_vectors();
                scan.shared().read.check_age()?;
                vectors?
            }
            Part::Hot(scan) => {
                let vectors = scan.next_vectors();
                scan.shared().read.check_age()?;
                vectors?
            }
        };
        Ok(decoded.map(|(rows, vectors)| Block { rows, visible: None, told: None, source: Source::Decoded(vectors) }))
    }
}
