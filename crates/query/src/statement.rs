//! What each verb does: one file per verb (or family of verbs).

pub(crate) mod alter_table;
pub(crate) mod batch;
pub(crate) mod comment;
pub(crate) mod copy;
pub(crate) mod copy_in;
pub(crate) mod create_table;
pub(crate) mod cursor;
pub(crate) mod database;
pub(crate) mod define;
pub(crate) mod drop;
pub(crate) mod explain;
pub(crate) mod insert;
pub(crate) mod lock_rows;
pub(crate) mod modify;
pub(crate) mod point_get;
pub(crate) mod resolve;
pub(crate) mod role;
pub(crate) mod row_path;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod set;
pub(crate) mod table_options;
pub(crate) mod truncate;
pub(crate) mod utility;
pub(crate) mod vacuum;
pub(crate) mod view;
