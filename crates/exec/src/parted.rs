//! Sorting in parts, between which the stop flag is looked at: rows are parted by a pivot until the parts are small, and
//! those are sorted by the standard library, as are parts that pivots do not make smaller.

use crate::error::Result;
use crate::stop::{check, pieces};
use std::cmp::Ordering;

/// Rows that are sorted at once: even where comparing two of them takes long, all of them take some milliseconds.
const ROWS_MAX: usize = 4096;
/// Rows of which the pivot is the middle one.
const SAMPLE: usize = 25;

/// Sorts rows of which no two are equal.
pub fn sort<T: Copy>(rows: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> Result<()> {
    if follow(rows, &|a, b| compare(a, b).is_lt())? {
        return Ok(());
    }
    if follow(rows, &|a, b| compare(a, b).is_gt())? {
        return reverse(rows);
    }
    let levels = 2 * rows.len().max(1).ilog2();
    part(rows, compare, levels)
}

/// Puts the first `count` rows before the others, in any order.
pub fn select<T: Copy>(rows: &mut [T], count: usize, compare: &impl Fn(&T, &T) -> Ordering) -> Result<()> {
    let (mut from, mut to) = (0, rows.len());
    let mut levels = 2 * rows.len().max(1).ilog2();
    while to - from > ROWS_MAX && levels > 0 {
        let at = from + below_pivot(&mut rows[from..to], compare)?;
        levels -= 1;
        match at.cmp(&count) {
            Ordering::Equal => return Ok(()),
            Ordering::Less => from = at,
            Ordering::Greater => to = at,
        }
    }
    check()?;
    if count > from && count < to {
        rows[from..to].select_nth_unstable_by(count - from - 1, compare);
    }
    Ok(())
}

fn part<T: Copy>(mut rows: &mut [T], compare: &impl Fn(&T, &T) -> Ordering, mut levels: u32) -> Result<()> {
    while rows.len() > ROWS_MAX && levels > 0 {
        let at = below_pivot(rows, compare)?;
        levels -= 1;
        let (below, above) = std::mem::take(&mut rows).split_at_mut(at);
        let (smaller, larger) = if below.len() < above.len() { (below, above) } else { (above, below) };
        part(smaller, compare, levels)?;
        rows = larger;
    }
    check()?;
    rows.sort_unstable_by(compare);
    Ok(())
}

/// Puts the rows before a pivot first, and says how many they are: neither none nor all of more than a few.
fn below_pivot<T: Copy>(rows: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> Result<usize> {
    let mut sample = [rows[0]; SAMPLE];
    for (at, row) in sample.iter_mut().enumerate() {
        *row = rows[at * (rows.len() - 1) / (SAMPLE - 1)];
    }
    sample.sort_unstable_by(compare);
    let pivot = sample[SAMPLE / 2];
    let mut below = 0;
    for piece in pieces(rows.len()) {
        for at in piece? {
            // Without a branch, which would be foreseen every second time.
            let is_below = compare(&rows[at], &pivot).is_lt();
            rows.swap(below, at);
            below += usize::from(is_below);
        }
    }
    Ok(below)
}

/// Whether each two neighbours do.
fn follow<T>(rows: &[T], does: &impl Fn(&T, &T) -> bool) -> Result<bool> {
    for piece in pieces(rows.len().saturating_sub(1)) {
        let mut neighbours = piece?;
        if !neighbours.all(|at| does(&rows[at], &rows[at + 1])) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn reverse<T>(rows: &mut [T]) -> Result<()> {
    for piece in pieces(rows.len() / 2) {
        piece?.for_each(|at| rows.swap(at, rows.len() - 1 - at));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
