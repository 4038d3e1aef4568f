//! Loops over integers, floats and masks: no types of SQL, no nulls, no errors.
//!
//! A mask is one byte per row, 1 where the row counts: bytes are what compilers vectorize.

pub(crate) mod arithmetic;
pub(crate) mod compare;
pub(crate) mod floats;
pub(crate) mod mask;
pub(crate) mod occur;
pub(crate) mod runs;
pub(crate) mod sums;
