//! What system tables and system functions can ask for.

use basalt_engine::{Catalog, Engine};
use std::sync::Arc;

/// The database and one session of it, as they are at the start of a statement.
#[derive(Clone)]
pub struct SystemContext {
    pub catalog: Arc<Catalog>,
    pub engine: Arc<Engine>,
    pub user: String,
    pub database: String,
    /// Schemas searched for unqualified names, in order.
    pub search_path: Vec<String>,
    pub backend_pid: i32,
    /// Name, value and description of every setting.
    pub settings: Vec<(String, String, String)>,
}
