//! Data from elsewhere, made ready to be loaded: files of CSV and Parquet.
//!
//! A file says which columns it has and gives its rows as bytes of a COPY: CSV goes as it is, Parquet is
//! encoded into COPY's binary form. Nothing here talks to a server; whoever loads sends the bytes.

pub mod column;
pub mod copy_binary;
pub mod csv;
pub mod error;
pub mod parquet_file;

pub use column::FileColumn;
pub use copy_binary::CopyEncoder;
pub use csv::{CsvFile, CsvOptions};
pub use error::{Error, Result};
pub use parquet_file::ParquetFile;
