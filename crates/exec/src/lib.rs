//! The column engine: what runs over a snapshot's columns, morsel by morsel.
//!
//! Today it is the scan: a pinned table cut into morsels that any number of workers take from one queue until
//! they have it all or are told to stop. It knows columns; it never knows SQL text, sessions or protocols.

pub mod scan;
pub mod stop;

pub use scan::{Scan, ScanError, Worker};
pub use stop::Stop;
