//! The row section of a tablet: pages of rows in memory, the newest version in place, before-images in
//! undo (DESIGN 5, Hot; Colibri's hot section).
//!
//! [`HotTablet`] is the only door. What it holds, from the outside in:
//!
//! ```text
//! tablet   latch and doors
//!  └ store    pages + index + undo; changes here, reads in `read`, removal in `sweep`
//!     ├ index    B+-tree: separators → page
//!     ├ page     records in key order: version header | key | row
//!     │  └ heads    common prefix and eight-byte heads, for searching sorted keys
//!     ├ queue    pages that have something to sweep
//!     └ slab     numbered items in chunks: pages, tree nodes, undo versions
//! ```

mod heads;
mod index;
mod page;
mod queue;
mod read;
mod rows;
mod slab;
mod store;
mod sweep;
mod tablet;
mod version;

pub use rows::{HotRow, Rows};
pub use tablet::HotTablet;
pub use version::{Change, Found, Lookup, Newest, RangeState, Reader, Spot, Swept};
