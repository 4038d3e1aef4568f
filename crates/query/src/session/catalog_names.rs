//! Names behind `regclass`, `regtype`, `regnamespace` and `regrole`.

use crate::bind::{self, BindContext};
use crate::pgcatalog::names::{self, Scope};
use ahash::AHashMap;
use basalt_engine::Catalog;
use basalt_expr::context::CatalogNames;
use basalt_expr::domain::DomainConditions;
use basalt_expr::functions::Registry;
use basalt_expr::{EvalContext, Result};
use basalt_types::{DataType, DomainDef, ObjectId};
use parking_lot::Mutex;
use std::sync::Arc;

/// The catalog as one statement sees it.
pub(crate) struct SessionNames {
    pub catalog: Arc<Catalog>,
    pub database: ObjectId,
    pub search_path: Vec<String>,
    pub registry: Arc<Registry>,
    /// Conditions of domains that the statement has met.
    pub domains: Mutex<AHashMap<u32, DomainConditions>>,
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

    fn domain_conditions(&self, domain: &DomainDef) -> Result<DomainConditions> {
        if let Some(known) = self.domains.lock().get(&domain.oid) {
            return Ok(known.clone());
        }
        // Conditions see the catalog as the statement does, not its parameters.
        let names = SessionNames {
            catalog: self.catalog.clone(),
            database: self.database,
            search_path: self.search_path.clone(),
            registry: self.registry.clone(),
            domains: Mutex::default(),
        };
        let ctx = BindContext {
            catalog: self.catalog.clone(),
            database: self.database,
            search_path: self.search_path.clone(),
            registry: self.registry.clone(),
            eval: Arc::new(EvalContext { names: Some(Arc::new(names)), ..EvalContext::at(0) }),
            sql: Arc::from(""),
            warnings: Arc::default(),
            needs: None,
            fields: None,
            current: None,
        };
        let bound = bind::bind_domain_conditions(&ctx, domain)?;
        let bound = Arc::new(bound);
        self.domains.lock().insert(domain.oid, bound.clone());
        Ok(bound)
    }
}
