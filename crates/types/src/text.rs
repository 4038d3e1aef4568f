//! Stored texts as texts.
//!
//! They were checked when they were written, and what reads files checks their sums; but the type of a text says that it
//! is UTF-8, so it is checked again, all bytes at once where they lie side by side: bytes below 128 alone are texts
//! wherever they are cut. And views that were valid in an array are valid in any other over the same buffers. The two
//! things that are unsafe are to say so without a second look.

mod slices;
mod view;

pub use slices::Slices;
pub use view::view;

use arrow_array::{Array, BinaryViewArray, StringViewArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};

/// Up to this length a view has all bytes in itself, and zeros behind them.
pub const INLINE_BYTES_MAX: usize = 12;
/// Buffers are looked at as a whole if the values have at least one byte in so many of theirs.
const SPARSE_MAX: usize = 4;

/// In what the length of a text is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LengthUnit {
    Bytes,
    Chars,
}

impl LengthUnit {
    /// How much of a text begins in some of its bytes: of all parts of a text together, its length.
    #[inline]
    pub fn count(self, bytes: &[u8]) -> usize {
        match self {
            LengthUnit::Bytes => bytes.len(),
            // Bytes that go on with a character are 10xxxxxx.
            LengthUnit::Chars => bytes.iter().filter(|byte| **byte as i8 >= -0x40).count(),
        }
    }
}

/// The same values as texts.
///
/// # Panics
/// If a value is not UTF-8.
pub fn texts(bytes: &BinaryViewArray) -> StringViewArray {
    let bytes = bytes.clone();
    match is_ascii(&bytes) {
        #[allow(unsafe_code)]
        // SAFETY: every byte that a view may show is below 128.
        true => unsafe { bytes.to_string_view_unchecked() },
        false => bytes.to_string_view().expect("text was checked when it was written"),
    }
}

/// The values at some positions, in their order; empty ones if there are none at all.
///
/// # Panics
/// If there are values, and a position is not below their number.
pub fn take(values: &BinaryViewArray, rows: &[u32], nulls: Option<NullBuffer>) -> BinaryViewArray {
    let from = values.views();
    let views: ScalarBuffer<u128> = match from.is_empty() {
        true => vec![0; rows.len()].into(),
        false => rows.iter().map(|row| from[*row as usize]).collect(),
    };
    assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == rows.len()), "a bit for each row");
    #[allow(unsafe_code)]
    // SAFETY: each view is one of `values` or that of no bytes, the buffers are the same, and the lengths agree.
    unsafe {
        BinaryViewArray::new_unchecked(views, values.data_buffers().to_vec(), nulls)
    }
}

/// Whether all bytes are found to be below 128, in buffers and views alike.
fn is_ascii(values: &BinaryViewArray) -> bool {
    let held: usize = values.data_buffers().iter().map(|buffer| buffer.len()).sum();
    let (mut shown, mut bits) = (0, 0u128);
    for view in values.views().iter() {
        let length = *view as u32;
        let inline = length as usize <= INLINE_BYTES_MAX;
        shown += if inline { 0 } else { length as usize };
        bits |= if inline { *view } else { 0 };
    }
    let inline_is_ascii = (bits >> 32) & (u128::MAX / 255 * 128) == 0;
    // Buffers that show little are not looked at as a whole.
    inline_is_ascii
        && match held <= shown.saturating_mul(SPARSE_MAX) {
            true => values.data_buffers().iter().all(|buffer| buffer.is_ascii()),
            false => shown == 0 || (0..values.len()).all(|row| values.value(row).is_ascii()),
        }
}

#[cfg(test)]
mod tests;
