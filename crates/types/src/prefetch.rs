//! Bytes asked of memory before they are needed.
//!
//! Processors foresee what lies ahead in one run of bytes. Columns come in pages of a few kilobytes, so that each page is
//! a new run, whose first lines would be waited for.

/// Of more bytes the processor finds the rest.
const BYTES_MAX: usize = 16 << 10;

#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Begins to bring one item close to the processor, if there is such an item.
#[inline]
#[allow(unsafe_code)]
pub fn prefetch_item<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = items.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 machine has the instruction, which changes nothing and reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = items.get(at);
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
