//! The allocator, and how long it keeps memory that nobody uses.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// mimalloc's `purge_delay`, in milliseconds (options.c of its version 3, where the default is a second).
const PURGE_DELAY: c_int = 15;

/// Queries free what they held when they end, and the next one asks for as much: given back to the system in between, it
/// comes as pages that are empty and cleared, which took up to a third of a query's time.
const KEPT: Duration = Duration::from_secs(10);
/// Where the server may have no more than [`MEMORY_SMALL`], what it does not use counts more than time.
const KEPT_OF_LITTLE: Duration = Duration::from_millis(100);
const MEMORY_SMALL: u64 = 4 << 30;

unsafe extern "C" {
    fn mi_option_set_default(option: c_int, value: c_long);
    #[cfg(test)]
    fn mi_option_get(option: c_int) -> c_long;
}

/// Keeps freed memory for the next query, of a server that may take so many bytes. What the environment says of it (`MIMALLOC_PURGE_DELAY`) counts.
pub fn keep_freed_memory(bytes_max: u64) {
    let kept = if bytes_max < MEMORY_SMALL { KEPT_OF_LITTLE } else { KEPT };
    // SAFETY: the option is one of the allocator's, which is linked into this binary.
    unsafe { mi_option_set_default(PURGE_DELAY, kept.as_millis() as c_long) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: as above.
        let of = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(of(), 1000, "as it is documented");
        keep_freed_memory(8 << 30);
        assert_eq!(of(), 10_000);
        keep_freed_memory(1 << 30);
        assert_eq!(of(), 100);
    }
}
