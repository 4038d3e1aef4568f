//! The metakeeper's state: catalog, commit order, transaction table, file lists, pins (DESIGN 2, 4, 5).
//!
//! State only: `engine` writes the log records that carry these edits and the checkpoints that hold them.
//! This crate never opens a file, and never knows what a row or a page is.

pub mod catalog;
pub mod comments;
pub mod edit;
pub mod error;
pub mod filelist;
pub mod order;
pub mod pins;
pub mod privilege;
pub mod role;
pub mod sequence;
mod succession;
pub mod txns;
pub mod types;

pub use catalog::{Catalog, CheckOption, Database, Namespace, ViewDef};
pub use comments::{CommentKey, Comments};
pub use edit::CatalogEdit;
pub use error::{Error, Result};
pub use filelist::{FileInfo, FileKind, FileStamps};
pub use order::CommitOrder;
pub use pins::{Pin, PinReason, PinTable};
pub use role::{Membership, Role, RoleSetting};
pub use sequence::{SequenceDef, SequenceOwner, SequenceValue};
pub use succession::Over;
pub use txns::TxnTable;
pub use types::{TypeDef, TypeKind, TypeUser, is_defined};
