//! COPY's three formats, both ways: bytes to column blocks, and batches to bytes.
//!
//! Reading keeps what came of an unfinished row and takes up the rest with the next bytes; fields go
//! straight from the buffer into typed builders. Nothing is allocated per field.

mod binary;
mod csv;
mod lines;
pub(crate) mod reader;
mod text;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
