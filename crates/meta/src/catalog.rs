//! What exists: databases, schemas, tables, views, roles. Immutable; an edit makes the next one.
//!
//! The whole catalog is a few maps of `Arc`s, so a new version shares all that did not change, and a
//! statement that holds one sees one state of it.

use crate::privilege::{ANY_DATABASE, AclKey, Acls, DefaultKey, ObjectClass, default_acl};
use crate::{CatalogEdit, Comments, Error, FileKind, Result, Role, RoleSetting, SequenceDef, TypeDef};
use basalt_types::schema::{ForeignKey, IndexDef, Orientation};
use basalt_types::usertype::row_type_oid;
use basalt_types::{Attribute, CompositeDef, ObjectId, Revision, TableDef, TabletId, Version};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
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
    #[serde(skip, default = "Revision::kept")]
    pub revision: Revision,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Namespace {
    pub id: ObjectId,
    pub database: ObjectId,
    pub name: String,
    pub owner: String,
    pub comment: Option<String>,
    #[serde(skip, default = "Revision::kept")]
    pub revision: Revision,
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
    #[serde(default)]
    pub check_option: CheckOption,
    /// Modifiers of columns of date and time types, by the column's position.
    #[serde(default)]
    pub time_modifiers: Vec<(usize, i32)>,
    /// `WITH (…)`, as given.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    #[serde(skip, default = "Revision::kept")]
    pub revision: Revision,
}

impl ViewDef {
    /// Whether what it reads is asked of whoever reads it, not of its owner (`security_invoker`).
    pub fn asks_as_invoker(&self) -> bool {
        self.has_option("security_invoker")
    }

    /// `security_barrier`: conditions of whoever reads it see no rows but its own.
    pub fn is_barrier(&self) -> bool {
        self.has_option("security_barrier")
    }

    fn has_option(&self, option: &str) -> bool {
        let value = self.options.iter().find(|(name, _)| name == option).map(|(_, value)| value.to_ascii_lowercase());
        // As PostgreSQL reads truth: short forms, too.
        let is_short = |value: &str| !value.is_empty() && ("true".starts_with(value) || "yes".starts_with(value));
        value.is_some_and(|value| ["on", "1"].contains(&value.as_str()) || is_short(&value))
    }

    /// The query that a materialized view keeps, as a view; `None` for other tables.
    pub fn of_materialized(table: &TableDef) -> Option<ViewDef> {
        let kept = table.materialized.as_ref()?;
        let columns = table.live_columns().map(|column| (column.name.clone(), column.ty.clone()));
        let modifiers = table.live_columns().enumerate();
        let modifiers = modifiers.filter_map(|(at, column)| Some((at, column.time_modifier?)));
        Some(ViewDef {
            id: table.id,
            namespace: table.namespace,
            name: table.name.clone(),
            owner: table.owner.clone(),
            sql: kept.sql.clone(),
            columns: columns.collect(),
            comment: table.comment.clone(),
            check_option: CheckOption::None,
            time_modifiers: modifiers.collect(),
            options: Vec::new(),
            revision: table.revision,
        })
    }

    /// The modifier of the column at a position, if it has one that is not in its type.
    pub fn time_modifier(&self, at: usize) -> Option<i32> {
        self.time_modifiers.iter().find(|(column, _)| *column == at).map(|(_, modifier)| *modifier)
    }
}

/// Whether rows that are written through a view must be rows of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum CheckOption {
    #[default]
    None,
    /// Of it, and of views below that say so themselves.
    Local,
    /// Of it and of all views below.
    Cascaded,
}

/// One immutable state of the catalog.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Catalog {
    /// Grows by one with every commit that edits: plans are valid for one version.
    pub version: u64,
    /// The commit that made it. Snapshots before it do not hold what its tables hold.
    #[serde(skip)]
    pub committed: Version,
    pub databases: BTreeMap<ObjectId, Arc<Database>>,
    pub namespaces: BTreeMap<ObjectId, Arc<Namespace>>,
    pub tables: BTreeMap<ObjectId, Arc<TableDef>>,
    pub views: BTreeMap<ObjectId, Arc<ViewDef>>,
    pub roles: BTreeMap<ObjectId, Arc<Role>>,
    /// `ALTER SYSTEM SET`.
    pub settings: BTreeMap<String, String>,
    #[serde(default)]
    pub sequences: BTreeMap<ObjectId, Arc<SequenceDef>>,
    #[serde(default)]
    pub comments: Arc<Comments>,
    /// `ALTER ROLE … SET` and `ALTER DATABASE … SET`.
    #[serde(default)]
    pub role_settings: Arc<Vec<RoleSetting>>,
    #[serde(default)]
    pub types: BTreeMap<ObjectId, Arc<TypeDef>>,
    /// GRANT and REVOKE.
    #[serde(default)]
    pub acls: Arc<Acls>,
    /// (namespace, name) of types. Derived.
    #[serde(skip)]
    by_type_name: Arc<BTreeMap<(ObjectId, String), ObjectId>>,
    /// Tablet to the table that owns it, or to an index's hidden table. Derived.
    #[serde(skip)]
    by_tablet: Arc<BTreeMap<TabletId, Arc<TableDef>>>,
    /// Index to its table. Derived.
    #[serde(skip)]
    by_index: Arc<BTreeMap<ObjectId, ObjectId>>,
    /// Table to the tables whose foreign keys refer to it. Derived.
    #[serde(skip)]
    referencing: Arc<BTreeMap<ObjectId, Vec<ObjectId>>>,
    /// (namespace, name) of relations (tables, views, sequences, indexes), which share one name space. Derived.
    #[serde(skip)]
    by_name: Arc<BTreeMap<(ObjectId, String), ObjectId>>,
    /// Primary keys that no index of its own keeps have their names among relations, too.
    #[serde(skip)]
    key_names: Arc<BTreeSet<(ObjectId, String)>>,
}

impl Catalog {
    /// What a first start makes: database and superuser `basalt`, schemas `public`, `pg_catalog`,
    /// `information_schema`, `basalt`.
    pub fn initial() -> Catalog {
        let owner = "basalt".to_string();
        let (name, revision) = ("basalt".into(), Revision::kept());
        let database = Database { id: DEFAULT_DATABASE, name, owner: owner.clone(), revision };
        let namespaces = [
            (PG_CATALOG, "pg_catalog"),
            (PUBLIC, "public"),
            (INFORMATION_SCHEMA, "information_schema"),
            (BASALT_SCHEMA, "basalt"),
        ];
        let role = Role { superuser: true, login: true, revision, ..Role::new(SUPERUSER, &owner) };
        let mut catalog = Catalog {
            version: 1,
            committed: Version::ZERO,
            databases: BTreeMap::from([(database.id, Arc::new(database))]),
            namespaces: BTreeMap::new(),
            tables: BTreeMap::new(),
            views: BTreeMap::new(),
            roles: BTreeMap::from([(role.id, Arc::new(role))]),
            settings: BTreeMap::new(),
            sequences: BTreeMap::new(),
            comments: Arc::default(),
            role_settings: Arc::default(),
            types: BTreeMap::new(),
            acls: Arc::default(),
            by_type_name: Arc::default(),
            by_tablet: Arc::default(),
            by_index: Arc::default(),
            referencing: Arc::default(),
            by_name: Arc::default(),
            key_names: Arc::default(),
        };
        for (id, name) in namespaces {
            let namespace = Namespace {
                id,
                database: DEFAULT_DATABASE,
                name: name.into(),
                owner: owner.clone(),
                comment: (id == PUBLIC).then(|| "standard public schema".to_string()),
                revision,
            };
            catalog.namespaces.insert(id, Arc::new(namespace));
        }
        catalog
    }

    /// Rebuilds what is derived, after reading a catalog from bytes.
    pub fn index(&mut self) {
        self.place_defaults();
        let types = self.types.values().map(|def| ((def.namespace, def.name.clone()), def.id));
        self.by_type_name = Arc::new(types.collect());
        self.refresh_types();
        let stored = self.stored_tables();
        let tablets = stored.flat_map(|table| table.tablets().map(|tablet| (tablet, table.clone())));
        self.by_tablet = Arc::new(tablets.collect());
        let indexes = self.tables.values().flat_map(|table| table.indexes.iter().map(|index| (index.id, table.id)));
        self.by_index = Arc::new(indexes.collect());
        let mut referencing: BTreeMap<ObjectId, Vec<ObjectId>> = BTreeMap::new();
        for table in self.tables.values() {
            for key in &table.foreign_keys {
                let children = referencing.entry(key.parent).or_default();
                if !children.contains(&table.id) {
                    children.push(table.id);
                }
            }
        }
        self.referencing = Arc::new(referencing);
        let names = self.relations().map(|(namespace, name, id)| ((namespace, name.to_string()), id));
        self.by_name = Arc::new(names.collect());
        let keys = self.tables.values().filter_map(|table| Some((table.namespace, table.primary_key.as_ref()?)));
        self.key_names = Arc::new(keys.map(|(namespace, key)| (namespace, key.constraint_name.clone())).collect());
    }

    /// Default privileges of programs that knew of no database hold in the schema's, or in each that is there.
    fn place_defaults(&mut self) {
        if !self.acls.defaults().any(|(key, _)| key.database == ANY_DATABASE) {
            return;
        }
        let older = self.acls.defaults().filter(|(key, _)| key.database == ANY_DATABASE);
        let older: Vec<_> = older.map(|(key, items)| (*key, items.clone())).collect();
        for (key, items) in older {
            let keys = self.default_keys(key);
            let acls = Arc::make_mut(&mut self.acls);
            acls.set_default(key, None);
            keys.into_iter().for_each(|key| acls.set_default(key, Some(items.clone())));
        }
    }

    fn default_keys(&self, key: DefaultKey) -> Vec<DefaultKey> {
        let databases: Vec<ObjectId> = match key.schema {
            _ if key.database != ANY_DATABASE => vec![key.database],
            Some(schema) => self.namespaces.get(&schema).map(|schema| schema.database).into_iter().collect(),
            None => self.databases.keys().copied().collect(),
        };
        databases.into_iter().map(|database| DefaultKey { database, ..key }).collect()
    }

    /// Namespace, name and id of everything in the name space that tables share with others.
    fn relations(&self) -> impl Iterator<Item = (ObjectId, &str, ObjectId)> {
        let tables = self.tables.values().map(|table| (table.namespace, table.name.as_str(), table.id));
        let views = self.views.values().map(|view| (view.namespace, view.name.as_str(), view.id));
        let sequences = self.sequences.values();
        let sequences = sequences.map(|sequence| (sequence.namespace, sequence.name.as_str(), sequence.id));
        let indexes = self
            .tables
            .values()
            .flat_map(|table| table.indexes.iter().map(|index| (table.namespace, index.name.as_str(), index.id)));
        tables.chain(views).chain(sequences).chain(indexes)
    }

    /// Every table that has tablets: tables, and the hidden tables of their indexes.
    pub fn stored_tables(&self) -> impl Iterator<Item = &Arc<TableDef>> {
        self.tables.values().flat_map(|table| table.stored())
    }

    /// An index, with its table.
    pub fn index_of(&self, id: ObjectId) -> Option<(&Arc<TableDef>, &Arc<IndexDef>)> {
        let table = self.tables.get(self.by_index.get(&id)?)?;
        Some((table, table.index(id)?))
    }

    pub fn index_named(&self, namespace: ObjectId, name: &str) -> Option<(&Arc<TableDef>, &Arc<IndexDef>)> {
        self.index_of(*self.by_name.get(&(namespace, name.to_string()))?)
    }

    /// Foreign keys that refer to a table, each with the table that has it.
    pub fn references_to(&self, parent: ObjectId) -> impl Iterator<Item = (&Arc<TableDef>, &Arc<ForeignKey>)> {
        let children = self.referencing.get(&parent).into_iter().flatten();
        let tables = children.filter_map(|child| self.tables.get(child));
        tables.flat_map(move |table| {
            table.foreign_keys.iter().filter(move |key| key.parent == parent).map(move |key| (table, key))
        })
    }

    pub fn is_referenced(&self, table: ObjectId) -> bool {
        self.referencing.contains_key(&table)
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

    /// Views and materialized views: what keeps a query.
    pub fn kept_queries(&self) -> impl Iterator<Item = Arc<ViewDef>> {
        let materialized = self.tables.values().filter_map(|table| ViewDef::of_materialized(table).map(Arc::new));
        self.views.values().cloned().chain(materialized)
    }

    pub fn sequence_named(&self, namespace: ObjectId, name: &str) -> Option<&Arc<SequenceDef>> {
        self.sequences.get(self.by_name.get(&(namespace, name.to_string()))?)
    }

    /// Sequences that are dropped with a table.
    pub fn sequences_of(&self, table: ObjectId) -> impl Iterator<Item = &Arc<SequenceDef>> {
        let owned = move |sequence: &&Arc<SequenceDef>| sequence.owned_by.is_some_and(|owner| owner.table == table);
        self.sequences.values().filter(owned)
    }

    /// Whatever has this name in the name space of tables.
    pub fn relation_named(&self, namespace: ObjectId, name: &str) -> Option<ObjectId> {
        self.by_name.get(&(namespace, name.to_string())).copied()
    }

    pub fn relation_exists(&self, namespace: ObjectId, name: &str) -> bool {
        let name = (namespace, name.to_string());
        self.by_name.contains_key(&name) || self.key_names.contains(&name)
    }

    pub(crate) fn type_names(&self) -> &BTreeMap<(ObjectId, String), ObjectId> {
        &self.by_type_name
    }

    /// The type of a table's rows.
    pub fn row_type(&self, table: &TableDef) -> Arc<CompositeDef> {
        let attributes = table.columns.iter().map(|column| Attribute {
            name: column.name.clone(),
            ty: column.ty.clone(),
            dropped: column.dropped,
            time_modifier: column.time_modifier,
        });
        self.relation_type(table.id, table.namespace, &table.name, attributes.collect())
    }

    /// The type of a view's rows.
    pub fn view_row_type(&self, view: &ViewDef) -> Arc<CompositeDef> {
        let attributes = view.columns.iter().enumerate().map(|(at, (name, ty))| Attribute {
            time_modifier: view.time_modifier(at),
            ..Attribute::new(name.clone(), ty.clone())
        });
        self.relation_type(view.id, view.namespace, &view.name, attributes.collect())
    }

    fn relation_type(
        &self,
        id: ObjectId,
        namespace: ObjectId,
        name: &str,
        attributes: Vec<Attribute>,
    ) -> Arc<CompositeDef> {
        let schema = self.namespaces.get(&namespace).map(|namespace| namespace.name.clone()).unwrap_or_default();
        Arc::new(CompositeDef { oid: row_type_oid(id), schema, name: name.to_string(), attributes })
    }

    pub fn table_of(&self, tablet: TabletId) -> Option<&Arc<TableDef>> {
        self.by_tablet.get(&tablet)
    }

    /// What holds the cold rows of a table; those of an index are never scanned for their columns' sake.
    pub fn file_kind(&self, stored: &TableDef) -> FileKind {
        match self.index_of(stored.id) {
            Some((table, _)) if table.orientation() == Orientation::Column => FileKind::Segment,
            Some(_) => FileKind::RowFile,
            None => FileKind::of(stored.orientation()),
        }
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
        let mut next = self.edited(edits)?;
        next.finish()?;
        Ok(next)
    }

    /// The same without what is derived.
    pub(crate) fn edited(&self, edits: &[CatalogEdit]) -> Result<Catalog> {
        let mut next = self.clone();
        for edit in edits {
            next.apply_one(edit)?;
        }
        next.version += 1;
        Ok(next)
    }

    pub(crate) fn finish(&mut self) -> Result<()> {
        self.index();
        self.check_names()?;
        self.check_depth()
    }

    /// Two transactions may have made relations of one name side by side: the second to commit loses.
    fn check_names(&self) -> Result<()> {
        if self.by_type_name.len() != self.types.len() {
            let shadowed = self
                .types
                .values()
                .find(|def| self.by_type_name.get(&(def.namespace, def.name.clone())) != Some(&def.id));
            return Err(Error::Exists { what: "type", name: shadowed.map(|def| def.name.clone()).unwrap_or_default() });
        }
        if self.by_name.len() == self.relations().count() {
            return Ok(());
        }
        let shadowed = self
            .relations()
            .find(|(namespace, name, id)| self.by_name.get(&(*namespace, name.to_string())) != Some(id));
        let name = shadowed.map(|(_, name, _)| name.to_string()).unwrap_or_default();
        Err(Error::Exists { what: "relation", name })
    }

    /// An object is about to be made, or to have another owner: privileges go along.
    fn note_owners(&mut self, edit: &CatalogEdit) {
        let (class, id, schema, before, now) = match edit {
            CatalogEdit::PutDatabase(now) => (
                ObjectClass::Database,
                now.id,
                None,
                self.databases.get(&now.id).map(|it| it.owner.clone()),
                &now.owner,
            ),
            CatalogEdit::PutNamespace(now) => {
                (ObjectClass::Schema, now.id, None, self.namespaces.get(&now.id).map(|it| it.owner.clone()), &now.owner)
            }
            CatalogEdit::PutTable(now) => {
                let before = self.tables.get(&now.id).map(|it| it.owner.clone());
                (ObjectClass::Table, now.id, Some(now.namespace), before, &now.owner)
            }
            CatalogEdit::PutView(now) => {
                let before = self.views.get(&now.id).map(|it| it.owner.clone());
                (ObjectClass::Table, now.id, Some(now.namespace), before, &now.owner)
            }
            CatalogEdit::PutType(now) => {
                let before = self.types.get(&now.id).map(|it| it.owner.clone());
                (ObjectClass::Type, now.id, Some(now.namespace), before, &now.owner)
            }
            CatalogEdit::PutSequence(now) => {
                let before = self.sequences.get(&now.id).map(|it| it.owner.clone());
                (ObjectClass::Sequence, now.id, Some(now.namespace), before, &now.owner)
            }
            _ => return,
        };
        match before {
            Some(before) if before != *now && self.acls.knows(id) => {
                if let (Some(before), Some(now)) = (self.role_named(&before), self.role_named(now)) {
                    let (before, now) = (before.id, now.id);
                    Arc::make_mut(&mut self.acls).change_owner(id, before, now);
                }
            }
            Some(_) => {}
            None => {
                let database = match edit {
                    CatalogEdit::PutNamespace(made) => Some(made.database),
                    _ => schema.and_then(|schema| self.namespaces.get(&schema)).map(|schema| schema.database),
                };
                if let Some(database) = database {
                    self.begin_with_defaults(AclKey::of(class, id), database, schema, now);
                }
            }
        }
    }

    /// ALTER DEFAULT PRIVILEGES of the maker of a new object.
    fn begin_with_defaults(&mut self, key: AclKey, database: ObjectId, schema: Option<ObjectId>, owner: &str) {
        let Some(owner) = self.role_named(owner).map(|role| role.id) else { return };
        let of = |schema| self.acls.default_of(DefaultKey { database, role: owner, schema, class: key.class });
        let (everywhere, here) = (of(None), schema.and_then(|schema| of(Some(schema))));
        if everywhere.is_none() && here.is_none() {
            return;
        }
        let mut items = everywhere.cloned().unwrap_or_else(|| default_acl(key.class, owner, false));
        for item in here.into_iter().flatten() {
            match items.iter_mut().find(|known| (known.grantee, known.grantor) == (item.grantee, item.grantor)) {
                Some(known) => {
                    known.privileges |= item.privileges;
                    known.grantable |= item.grantable;
                }
                None => items.push(item.clone()),
            }
        }
        Arc::make_mut(&mut self.acls).set(key, Some(items));
    }

    fn apply_one(&mut self, edit: &CatalogEdit) -> Result<()> {
        self.note_owners(edit);
        match edit {
            CatalogEdit::SetAcl { key, items } => Arc::make_mut(&mut self.acls).set(*key, items.clone()),
            CatalogEdit::SetDefaultAcl { key, items } => {
                for key in self.default_keys(*key) {
                    Arc::make_mut(&mut self.acls).set_default(key, items.clone());
                }
            }
            CatalogEdit::PutDatabase(database) => {
                self.databases.insert(database.id, Arc::new(database.clone()));
            }
            CatalogEdit::DropDatabase(id) => {
                self.databases.remove(id).ok_or(Error::Stale(*id))?;
                self.forget_comments(*id);
                self.forget_settings(|setting| setting.database == Some(*id));
            }
            CatalogEdit::PutNamespace(namespace) => {
                self.namespaces.insert(namespace.id, Arc::new(namespace.clone()));
            }
            CatalogEdit::DropNamespace(id) => {
                self.namespaces.remove(id).ok_or(Error::Stale(*id))?;
                self.forget_comments(*id);
            }
            CatalogEdit::PutTable(table) => {
                if let Some(before) = self.tables.insert(table.id, table.clone()) {
                    let kept: Vec<ObjectId> = parts(table).collect();
                    parts(&before).filter(|id| !kept.contains(id)).for_each(|id| self.forget_comments(id));
                }
            }
            CatalogEdit::DropTable(id) => {
                let table = self.tables.remove(id).ok_or(Error::Stale(*id))?;
                parts(&table).chain([*id]).for_each(|id| self.forget_comments(id));
            }
            CatalogEdit::PutType(def) => {
                if let Some(before) = self.types.insert(def.id, def.clone()) {
                    let kept: Vec<ObjectId> = def.checks().collect();
                    before.checks().filter(|id| !kept.contains(id)).for_each(|id| self.forget_comments(id));
                }
            }
            CatalogEdit::DropType(id) => {
                let def = self.types.remove(id).ok_or(Error::Stale(*id))?;
                def.checks().chain([*id]).for_each(|id| self.forget_comments(id));
            }
            CatalogEdit::PutSequence(sequence) => {
                self.sequences.insert(sequence.id, Arc::new(sequence.clone()));
            }
            CatalogEdit::DropSequence(id) => {
                self.sequences.remove(id).ok_or(Error::Stale(*id))?;
                self.forget_comments(*id);
            }
            CatalogEdit::SetComment { key, text } => Arc::make_mut(&mut self.comments).set(*key, text.clone()),
            CatalogEdit::SetRoleSetting { setting, remove } => {
                let all = Arc::make_mut(&mut self.role_settings);
                all.retain(|other| !other.is_same(setting));
                if !remove {
                    all.push(setting.clone());
                }
            }
            CatalogEdit::PutIndex { table, index } => {
                let table = self.tables.get_mut(table).ok_or(Error::Stale(*table))?;
                let table = Arc::make_mut(table);
                match table.indexes.iter_mut().find(|other| other.id == index.id) {
                    Some(other) => *other = index.clone(),
                    None => table.indexes.push(index.clone()),
                }
            }
            CatalogEdit::DropIndex { table, index } => {
                let table = self.tables.get_mut(table).ok_or(Error::Stale(*table))?;
                Arc::make_mut(table).indexes.retain(|other| other.id != *index);
                self.forget_comments(*index);
            }
            CatalogEdit::DropForeignKey { table, key } => {
                let table = self.tables.get_mut(table).ok_or(Error::Stale(*table))?;
                Arc::make_mut(table).foreign_keys.retain(|other| other.id != *key);
                self.forget_comments(*key);
            }
            CatalogEdit::PutView(view) => {
                self.views.insert(view.id, Arc::new(view.clone()));
            }
            CatalogEdit::DropView(id) => {
                self.views.remove(id).ok_or(Error::Stale(*id))?;
                self.forget_comments(*id);
            }
            CatalogEdit::PutRole(role) => {
                let before = self.roles.insert(role.id, Arc::new(role.clone()));
                if let Some(before) = before.filter(|before| before.name != role.name) {
                    self.rename_owner(&before.name, &role.name);
                }
            }
            CatalogEdit::DropRole(id) => {
                self.roles.remove(id).ok_or(Error::Stale(*id))?;
                self.forget_comments(*id);
                self.forget_settings(|setting| setting.role == Some(*id));
                for role in self.roles.values_mut().filter(|role| role.member_of.iter().any(|of| of.role == *id)) {
                    Arc::make_mut(role).member_of.retain(|of| of.role != *id);
                }
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

    /// What was said of an object that is gone: comments and privileges.
    fn forget_comments(&mut self, object: ObjectId) {
        if self.acls.knows(object) {
            Arc::make_mut(&mut self.acls).forget(object);
        }
        if self.comments.iter().any(|(key, _)| key.object == object) {
            Arc::make_mut(&mut self.comments).forget(object);
        }
    }

    /// A role has another name, and so what it owns has another owner's.
    fn rename_owner(&mut self, from: &str, to: &str) {
        self.databases.values_mut().filter(|it| it.owner == from).for_each(|it| Arc::make_mut(it).owner = to.into());
        self.namespaces.values_mut().filter(|it| it.owner == from).for_each(|it| Arc::make_mut(it).owner = to.into());
        self.tables.values_mut().filter(|it| it.owner == from).for_each(|it| Arc::make_mut(it).owner = to.into());
        self.views.values_mut().filter(|it| it.owner == from).for_each(|it| Arc::make_mut(it).owner = to.into());
        self.sequences.values_mut().filter(|it| it.owner == from).for_each(|it| Arc::make_mut(it).owner = to.into());
        self.types.values_mut().filter(|it| it.owner == from).for_each(|it| Arc::make_mut(it).owner = to.into());
    }

    fn forget_settings(&mut self, of: impl Fn(&RoleSetting) -> bool) {
        Arc::make_mut(&mut self.role_settings).retain(|setting| !of(setting));
    }
}

/// Constraints and indexes of a table: what may bear a comment of its own.
pub(crate) fn parts(table: &TableDef) -> impl Iterator<Item = ObjectId> + '_ {
    let checks = table.checks.iter().map(|check| check.id);
    let foreign_keys = table.foreign_keys.iter().map(|key| key.id);
    let indexes = table
        .indexes
        .iter()
        .flat_map(|index| std::iter::once(index.id).chain(index.constraint.map(|constraint| constraint.id)));
    let key = table.primary_key.iter().map(|key| key.constraint_id);
    checks.chain(foreign_keys).chain(indexes).chain(key)
}
