//! What exists: databases, schemas, tables, views, roles. Immutable; an edit makes the next one.
//!
//! The whole catalog is a few maps of `Arc`s, so a new version shares all that did not change, and a
//! statement that holds one sees one state of it.

use crate::{CatalogEdit, Error, Result};
use basalt_types::{ObjectId, TableDef, TabletId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// First id of user objects, as in PostgreSQL.
pub const FIRST_USER_ID: u32 = 16384;
/// PostgreSQL's oids of what every cluster has.
pub const PG_CATALOG: ObjectId = ObjectId(11);
pub const PUBLIC: ObjectId = ObjectId(2200);
pub const INFORMATION_SCHEMA: ObjectId = ObjectId(13000);
/// Schema of Basalt's system views.
pub const BASALT_SCHEMA: ObjectId = ObjectId(13001);
pub const DEFAULT_DATABASE: ObjectId = ObjectId(5);
pub const SUPERUSER: ObjectId = ObjectId(10);

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Database {
    pub id: ObjectId,
    pub name: String,
    pub owner: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Namespace {
    pub id: ObjectId,
    pub database: ObjectId,
    pub name: String,
    pub owner: String,
    pub comment: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ViewDef {
    pub id: ObjectId,
    pub namespace: ObjectId,
    pub name: String,
    pub owner: String,
    /// SQL of the body, names qualified when it was created.
    pub sql: String,
    pub columns: Vec<(String, basalt_types::DataType)>,
    pub comment: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Role {
    pub id: ObjectId,
    pub name: String,
    pub superuser: bool,
    pub login: bool,
    /// SCRAM-SHA-256 verifier in PostgreSQL's text form; `None`: no password.
    pub password: Option<String>,
}

/// One immutable state of the catalog.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Catalog {
    /// Grows by one with every commit that edits: plans are valid for one version.
    pub version: u64,
    pub databases: BTreeMap<ObjectId, Arc<Database>>,
    pub namespaces: BTreeMap<ObjectId, Arc<Namespace>>,
    pub tables: BTreeMap<ObjectId, Arc<TableDef>>,
    pub views: BTreeMap<ObjectId, Arc<ViewDef>>,
    pub roles: BTreeMap<ObjectId, Arc<Role>>,
    /// `ALTER SYSTEM SET`.
    pub settings: BTreeMap<String, String>,
    /// Tablet to the table that owns it. Derived.
    #[serde(skip)]
    by_tablet: Arc<BTreeMap<TabletId, ObjectId>>,
    /// (namespace, name) of tables and views, which share one name space. Derived.
    #[serde(skip)]
    by_name: Arc<BTreeMap<(ObjectId, String), ObjectId>>,
}

impl Catalog {
    /// What a first start makes: database and superuser `basalt`, schemas `public`, `pg_catalog`,
    /// `information_schema`, `basalt`.
    pub fn initial() -> Catalog {
        let owner = "basalt".to_string();
        let database = Database { id: DEFAULT_DATABASE, name: "basalt".into(), owner: owner.clone() };
        let namespaces = [
            (PG_CATALOG, "pg_catalog"),
            (PUBLIC, "public"),
            (INFORMATION_SCHEMA, "information_schema"),
            (BASALT_SCHEMA, "basalt"),
        ];
        let role = Role { id: SUPERUSER, name: owner.clone(), superuser: true, login: true, password: None };
        let mut catalog = Catalog {
            version: 1,
            databases: BTreeMap::from([(database.id, Arc::new(database))]),
            namespaces: BTreeMap::new(),
            tables: BTreeMap::new(),
            views: BTreeMap::new(),
            roles: BTreeMap::from([(role.id, Arc::new(role))]),
            settings: BTreeMap::new(),
            by_tablet: Arc::default(),
            by_name: Arc::default(),
        };
        for (id, name) in namespaces {
            let namespace = Namespace {
                id,
                database: DEFAULT_DATABASE,
                name: name.into(),
                owner: owner.clone(),
                comment: (id == PUBLIC).then(|| "standard public schema".to_string()),
            };
            catalog.namespaces.insert(id, Arc::new(namespace));
        }
        catalog
    }

    /// Rebuilds what is derived, after reading a catalog from bytes.
    pub fn index(&mut self) {
        let tablets = self.tables.values().flat_map(|table| table.tablets().map(|tablet| (tablet, table.id)));
        self.by_tablet = Arc::new(tablets.collect());
        let tables = self.tables.values().map(|table| ((table.namespace, table.name.clone()), table.id));
        let views = self.views.values().map(|view| ((view.namespace, view.name.clone()), view.id));
        self.by_name = Arc::new(tables.chain(views).collect());
    }

    pub fn table(&self, id: ObjectId) -> Option<&Arc<TableDef>> {
        self.tables.get(&id)
    }

    pub fn table_named(&self, namespace: ObjectId, name: &str) -> Option<&Arc<TableDef>> {
        self.tables.get(self.by_name.get(&(namespace, name.to_string()))?)
    }

    pub fn view_named(&self, namespace: ObjectId, name: &str) -> Option<&Arc<ViewDef>> {
        self.views.get(self.by_name.get(&(namespace, name.to_string()))?)
    }

    pub fn relation_exists(&self, namespace: ObjectId, name: &str) -> bool {
        self.by_name.contains_key(&(namespace, name.to_string()))
    }

    pub fn table_of(&self, tablet: TabletId) -> Option<&Arc<TableDef>> {
        self.tables.get(self.by_tablet.get(&tablet)?)
    }

    pub fn namespace_named(&self, database: ObjectId, name: &str) -> Option<&Arc<Namespace>> {
        self.namespaces.values().find(|namespace| namespace.database == database && namespace.name == name)
    }

    pub fn database_named(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.values().find(|database| database.name == name)
    }

    pub fn role_named(&self, name: &str) -> Option<&Arc<Role>> {
        self.roles.values().find(|role| role.name == name)
    }

    /// The catalog after these edits, one version later. Edits carry whole objects, so applying one
    /// twice gives the same catalog.
    pub fn apply(&self, edits: &[CatalogEdit]) -> Result<Catalog> {
        let mut next = self.clone();
        for edit in edits {
            next.apply_one(edit)?;
        }
        next.version += 1;
        next.index();
        next.check_names()?;
        Ok(next)
    }

    /// Two transactions may have made relations of one name side by side: the second to commit loses.
    fn check_names(&self) -> Result<()> {
        let relations = self.tables.len() + self.views.len();
        if self.by_name.len() == relations {
            return Ok(());
        }
        let names = self.tables.values().map(|table| (table.namespace, &table.name, table.id));
        let names = names.chain(self.views.values().map(|view| (view.namespace, &view.name, view.id)));
        let shadowed = names
            .into_iter()
            .find(|(namespace, name, id)| self.by_name.get(&(*namespace, name.to_string())) != Some(id));
        let name = shadowed.map(|(_, name, _)| name.clone()).unwrap_or_default();
        Err(Error::Exists { what: "relation", name })
    }

    fn apply_one(&mut self, edit: &CatalogEdit) -> Result<()> {
        match edit {
            CatalogEdit::PutDatabase(database) => {
                self.databases.insert(database.id, Arc::new(database.clone()));
            }
            CatalogEdit::DropDatabase(id) => {
                self.databases.remove(id).ok_or(Error::Stale(*id))?;
            }
            CatalogEdit::PutNamespace(namespace) => {
                self.namespaces.insert(namespace.id, Arc::new(namespace.clone()));
            }
            CatalogEdit::DropNamespace(id) => {
                self.namespaces.remove(id).ok_or(Error::Stale(*id))?;
            }
            CatalogEdit::PutTable(table) => {
                self.tables.insert(table.id, table.clone());
            }
            CatalogEdit::DropTable(id) => {
                self.tables.remove(id).ok_or(Error::Stale(*id))?;
            }
            CatalogEdit::PutView(view) => {
                self.views.insert(view.id, Arc::new(view.clone()));
            }
            CatalogEdit::DropView(id) => {
                self.views.remove(id).ok_or(Error::Stale(*id))?;
            }
            CatalogEdit::PutRole(role) => {
                self.roles.insert(role.id, Arc::new(role.clone()));
            }
            CatalogEdit::DropRole(id) => {
                self.roles.remove(id).ok_or(Error::Stale(*id))?;
            }
            CatalogEdit::SetSetting { name, value: Some(value) } => {
                self.settings.insert(name.clone(), value.clone());
            }
            CatalogEdit::SetSetting { name, value: None } => {
                self.settings.remove(name);
            }
        }
        Ok(())
    }
}
