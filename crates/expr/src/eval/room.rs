//! How many bytes the values of one batch may take, and one value alone.
//!
//! Who collects a batch holds all of it before anybody else accounts for it, so that it is counted here.

use crate::error::{Error, Result};

/// The longest value that functions make.
pub(crate) const VALUE_BYTES_MAX: usize = (1 << 30) - 1;
/// One value of the greatest length has room among short ones; two have not.
const BATCH_BYTES_MAX: usize = VALUE_BYTES_MAX + (64 << 20);

/// What the values of a vector take, and may take.
pub(crate) struct Room {
    taken: usize,
    bytes_max: usize,
}

impl Room {
    pub fn of_batch() -> Room {
        Room::new(BATCH_BYTES_MAX)
    }

    pub fn unlimited() -> Room {
        Room::new(usize::MAX)
    }

    pub fn new(bytes_max: usize) -> Room {
        Room { taken: 0, bytes_max }
    }

    /// Counts one more value. 53200 if there is no room for it.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        self.taken = self.taken.saturating_add(bytes);
        if self.taken > self.bytes_max { Err(self.full()) } else { Ok(()) }
    }

    #[cold]
    fn full(&self) -> Error {
        Error::new("53200", "out of memory")
            .with_detail(format!(
                "The values of one batch of rows take {} bytes; they may take {}.",
                self.taken, self.bytes_max
            ))
            .with_hint("Take fewer rows or shorter values at a time.")
    }
}

/// 54000 if a value of `bytes` bytes would become too long with `more`; asked before they are written.
#[inline]
pub(crate) fn check_longer(bytes: usize, more: usize) -> Result<()> {
    if bytes.saturating_add(more) > VALUE_BYTES_MAX { Err(too_long(bytes, more)) } else { Ok(()) }
}

/// As PostgreSQL says it of its string buffers.
#[cold]
fn too_long(bytes: usize, more: usize) -> Error {
    Error::new("54000", "out of memory")
        .with_detail(format!("Cannot enlarge string buffer containing {bytes} bytes by {more} more bytes."))
}

#[cfg(test)]
mod tests;
