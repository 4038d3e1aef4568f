//! How values become bytes inside a page, and back (`docs/format/segment.md`, "Values").
//!
//! Every form gives one value at bounded cost: [`linear`] in O(1), [`ints`] in O(log runs) or one restart of
//! 128 deltas, [`floats`] as these and O(log exceptions), [`bytes`] with a walk over at most 127 lengths, [`blocks`] with one
//! block of at most 16 KiB.
//! Parsing checks all lengths, so that damaged bytes end in [`Damage`], never in a panic; checksums were
//! verified before.

pub(crate) mod bits;
pub(crate) mod blocks;
pub(crate) mod bytes;
pub(crate) mod dictionary;
pub(crate) mod entries;
pub(crate) mod floats;
pub(crate) mod fsst;
pub(crate) mod ints;
pub(crate) mod linear;
pub(crate) mod search;
pub(crate) mod spans;

#[cfg(test)]
mod tests;

/// Which structure did not hold. The reader adds file and position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Damage(pub &'static str);

pub(crate) type Decoded<T> = std::result::Result<T, Damage>;

/// Values between two restarts of a delta sequence or of string offsets.
pub(crate) const RESTART: usize = 128;

pub(crate) fn take<'a>(input: &mut &'a [u8], count: usize, what: &'static str) -> Decoded<&'a [u8]> {
    basalt_types::varint::take_bytes(input, count).ok_or(Damage(what))
}

pub(crate) fn take_array<const N: usize>(input: &mut &[u8], what: &'static str) -> Decoded<[u8; N]> {
    Ok(take(input, N, what)?.try_into().expect("exactly N bytes"))
}

/// The first of so many places where something is true, as it is from there on; their number if it is nowhere.
pub(crate) fn first_where(places: usize, mut is_true: impl FnMut(usize) -> Decoded<bool>) -> Decoded<usize> {
    let (mut from, mut to) = (0, places);
    while from < to {
        let middle = from.midpoint(to);
        if is_true(middle)? { to = middle } else { from = middle + 1 }
    }
    Ok(from)
}

pub(crate) fn take_varint(input: &mut &[u8], what: &'static str) -> Decoded<u64> {
    basalt_types::varint::take(input).ok_or(Damage(what))
}
