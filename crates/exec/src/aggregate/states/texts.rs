//! The least or the greatest text of each group.
//!
//! Most rows are told from the best one by their first eight bytes, which lie side by side for all groups; entries of a
//! dictionary have theirs computed once.

use crate::error::{Error, Result};
use crate::kernels::sums::Groups;
use crate::stop::pieces;
use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray};
use basalt_types::vector::{Codes, Vector};
use std::cmp::Ordering;
use std::sync::Arc;

pub struct TextExtreme {
    greatest: bool,
    /// The first bytes of each group's best text. Without one nothing is worse.
    prefixes: Vec<u64>,
    best: Vec<Option<Box<[u8]>>>,
    /// Bytes of all texts.
    bytes: usize,
    /// The dictionary that came last, and the first bytes of its entries.
    last: Option<(Arc<BinaryViewArray>, Vec<u64>)>,
}

impl TextExtreme {
    pub fn new(greatest: bool) -> TextExtreme {
        TextExtreme { greatest, prefixes: Vec::new(), best: Vec::new(), bytes: 0, last: None }
    }

    pub fn bytes(&self) -> usize {
        self.prefixes.capacity() * 8 + self.best.capacity() * 16 + self.bytes
    }

    pub fn resize(&mut self, len: usize) {
        self.prefixes.resize(len, if self.greatest { 0 } else { u64::MAX });
        self.best.resize(len, None);
    }

    /// Takes in the text of each row that has a group. Groups are below `len`.
    pub fn add(&mut self, values: &Vector, groups: Groups<'_>, len: usize) -> Result<()> {
        self.resize(len);
        let nulls = values.nulls();
        let groups = groups.of_rows(values.len());
        let group = |row: usize| if nulls.is_some_and(|nulls| nulls.is_null(row)) { 0 } else { groups[row] };
        match values {
            Vector::Codes(codes) => self.add_codes(codes, group),
            Vector::Flat(values) => {
                let values = values.as_binary_view_opt().ok_or(Error::Beyond("texts in another form"))?;
                for row in 0..values.len() {
                    let group = group(row);
                    if group != 0 {
                        let text = values.value(row);
                        self.take(group as usize, prefix(text), || text);
                    }
                }
            }
            Vector::Ints(_) => return Err(Error::Beyond("texts in another form")),
        }
        Ok(())
    }

    fn add_codes(&mut self, codes: &Codes, group: impl Fn(usize) -> u32) {
        let dictionary = &codes.dictionary;
        if dictionary.is_empty() {
            return;
        }
        let prefixes = match self.last.take() {
            Some((known, prefixes)) if Arc::ptr_eq(&known, dictionary) => prefixes,
            _ => (0..dictionary.len()).map(|code| prefix(dictionary.value(code))).collect(),
        };
        for (row, code) in codes.codes.iter().enumerate() {
            let group = group(row);
            if group != 0 {
                self.take(group as usize, prefixes[*code as usize], || dictionary.value(*code as usize));
            }
        }
        self.last = Some((dictionary.clone(), prefixes));
    }

    #[inline]
    fn take<'t>(&mut self, group: usize, prefix: u64, text: impl Fn() -> &'t [u8]) {
        let order = prefix.cmp(&self.prefixes[group]);
        let (better, worse) = match self.greatest {
            true => (Ordering::Greater, Ordering::Less),
            false => (Ordering::Less, Ordering::Greater),
        };
        if order == worse {
            return;
        }
        let text = text();
        let known = &mut self.best[group];
        if order == better || known.as_ref().is_none_or(|known| compare(text, known) == better) {
            self.bytes += text.len();
            self.bytes -= known.replace(text.into()).map_or(0, |known| known.len());
            self.prefixes[group] = prefix;
        }
    }

    /// Takes in the groups `from..` of another: the one at `from + i` is `groups[i]` here.
    pub fn merge(&mut self, other: &mut TextExtreme, groups: &[u32], from: usize, len: usize) -> Result<()> {
        self.resize(len);
        other.resize(from + groups.len());
        for piece in pieces(groups.len()) {
            for at in piece? {
                if let Some(text) = other.best[from + at].take() {
                    self.take(groups[at] as usize, other.prefixes[from + at], || &text);
                }
            }
        }
        Ok(())
    }

    /// The texts of some groups, null where a group had none.
    pub fn values(&self, groups: impl Iterator<Item = usize>) -> ArrayRef {
        let mut builder = BinaryViewBuilder::with_capacity(groups.size_hint().0);
        groups.for_each(|group| builder.append_option(self.best.get(group).and_then(Option::as_deref)));
        Arc::new(builder.finish())
    }
}

/// Where one of two is empty their lengths say all. (An empty box leads nowhere, and libc's comparison in wide vectors takes
/// a hundred times as long there.)
#[inline]
fn compare(text: &[u8], known: &[u8]) -> Ordering {
    match text.is_empty() || known.is_empty() {
        true => text.len().cmp(&known.len()),
        false => text.cmp(known),
    }
}

/// The first eight bytes, which are in the order of the texts where they differ.
#[inline]
fn prefix(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..text.len()].copy_from_slice(text);
            u64::from_be_bytes(first)
        }
    }
}

#[cfg(test)]
mod tests;
