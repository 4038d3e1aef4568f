//! Bytes asked of memory before they are needed.
//!
//! Processors foresee what lies ahead in one run of bytes. Columns come in pages of a few kilobytes, so that each page is
//! a new run, whose first lines would be waited for.

/// Of more bytes the processor finds the rest.
const BYTES_MAX: usize = 32 << 10;

const LINE: usize = 64;

/// Begins to bring one item close to the processor, if there is such an item.
#[inline]
pub fn prefetch_item<T>(items: &[T], at: usize) {
    if let Some(item) = items.get(at) {
        prefetch_at(item);
    }
}

/// Begins to bring what lies at a place close to the processor, if anything does.
#[inline]
#[allow(unsafe_code)]
pub fn prefetch_at<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 machine has the instruction, which changes nothing, reads nothing and takes any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Begins to bring bytes close to the processor; nothing else comes of it.
#[inline]
#[allow(unsafe_code)]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes[..bytes.len().min(BYTES_MAX)].chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: every x86-64 machine has the instruction, which changes nothing and reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = &bytes[..bytes.len().min(BYTES_MAX)];
}

/// Bytes that will be needed next. They are asked for in parts while something else is computed: memory takes some lines
/// at once, and whoever asks for more waits.
#[derive(Clone, Copy, Default)]
pub struct Ahead<'a>(&'a [u8]);

impl<'a> Ahead<'a> {
    pub fn new(bytes: &'a [u8]) -> Ahead<'a> {
        Ahead(&bytes[..bytes.len().min(BYTES_MAX)])
    }

    /// Asks for one of so many parts.
    #[inline]
    pub fn part(self, at: usize, parts: usize) {
        if !self.0.is_empty() {
            let bytes = self.0.len().div_ceil(parts).next_multiple_of(LINE);
            let from = (at * bytes).min(self.0.len());
            prefetch(&self.0[from..self.0.len().min(from + bytes)]);
        }
    }
}
