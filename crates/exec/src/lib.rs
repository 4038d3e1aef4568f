//! The column engine: what runs over a snapshot's columns, morsel by morsel.
//!
//! Today it is the scan: a pinned table cut into morsels that any number of workers take from one queue,
//! skip by zone map, and filter with `expr` before anything else touches the rows. It knows expressions and
//! columns; it never knows SQL text, sessions or protocols.

pub mod scan;
pub mod stop;

pub use scan::{Filter, Scan, ScanError};
pub use stop::Stop;
