//! A pattern over a column: where its texts lie side by side in one buffer, as those of a page do, what a match has to
//! contain is sought in all of them at once, and only texts that have it are looked at.

use super::{LikePattern, Matcher};
use arrow_array::{Array, StringViewArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use basalt_types::text::INLINE_BYTES_MAX;
use memchr::memmem::Finder;

/// A buffer is worth seeking through if texts have at least one in so many of its bytes.
const SPARSE_MAX: usize = 2;

/// Where a view's bytes are, if they are in a buffer.
fn place(view: u128) -> Option<(usize, usize)> {
    let (length, from) = (view as u32 as usize, (view >> 96) as usize);
    (length > INLINE_BYTES_MAX).then_some((from, from + length))
}

impl LikePattern {
    /// Which texts match; those of nulls may. For patterns that do not fail.
    pub fn matching(&self, texts: &StringViewArray) -> BooleanBuffer {
        let matches = |row| self.found(texts.value(row)) == Some(true);
        let one_by_one = || BooleanBuffer::collect_bool(texts.len(), matches);
        let ([buffer], Some(sought)) = (texts.data_buffers(), self.sought()) else { return one_by_one() };
        if !is_worth_seeking(texts, buffer.len()) {
            return one_by_one();
        }
        let mut found = BooleanBufferBuilder::new(texts.len());
        found.append_n(texts.len(), false);
        // The first place from here on, and the hit that comes next.
        let mut hit = sought.find(buffer);
        for (row, view) in texts.views().iter().enumerate() {
            let Some((from, to)) = place(*view) else {
                found.set_bit(row, matches(row));
                continue;
            };
            // Hits between texts, or across their ends, are of nobody.
            while let Some(at) = hit.filter(|at| *at < from) {
                hit = sought.find(&buffer[at + 1..]).map(|next| next + at + 1);
            }
            if hit.is_some_and(|at| at + sought.needle().len() <= to) {
                found.set_bit(row, matches(row));
                hit = sought.find(&buffer[to..]).map(|next| next + to);
            }
        }
        found.finish()
    }

    /// What every match contains, if it is not sought best where it has to be.
    fn sought(&self) -> Option<&Finder<'static>> {
        match &self.matcher {
            _ if self.insensitive => None,
            Matcher::Contains(finder) => Some(&**finder),
            Matcher::Pieces { prefix, middle, .. } if prefix.is_empty() => {
                middle.iter().max_by_key(|finder| finder.needle().len())
            }
            _ => None,
        }
        .filter(|finder| !finder.needle().is_empty())
    }
}

/// Whether texts follow each other in the buffer, and have most of it.
fn is_worth_seeking(texts: &StringViewArray, bytes: usize) -> bool {
    let (mut end, mut shown) = (0, 0);
    for (from, to) in texts.views().iter().filter_map(|view| place(*view)) {
        if from < end {
            return false;
        }
        end = to;
        shown += to - from;
    }
    shown * SPARSE_MAX >= bytes
}

#[cfg(test)]
mod tests;
