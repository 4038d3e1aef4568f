//! Names behind `regclass`, `regtype`, `regnamespace` and `regrole`.

use crate::pgcatalog::names::{self, Scope};
use basalt_engine::Catalog;
use basalt_expr::Result;
use basalt_expr::context::CatalogNames;
use basalt_types::{DataType, ObjectId};
use std::sync::Arc;

/// The catalog as one statement sees it.
pub(crate) struct SessionNames {
    pub catalog: Arc<Catalog>,
    pub database: ObjectId,
    pub search_path: Vec<String>,
}

impl SessionNames {
    fn scope(&self) -> Scope<'_> {
        Scope { catalog: &self.catalog, database: self.database, search_path: &self.search_path }
    }
}

impl CatalogNames for SessionNames {
    fn oid_of(&self, ty: &DataType, name: &str) -> Result<u32> {
        names::oid_of(self.scope(), ty, name)
    }

    fn name_of(&self, ty: &DataType, oid: u32) -> Option<String> {
        names::name_of(self.scope(), ty, oid)
    }
}
