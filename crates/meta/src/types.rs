//! Types of users: composite types, enums and domains, and how they stand in the definitions that use them.
//!
//! Definitions carry the types of their columns whole ([`basalt_types::usertype`]). What they carry is brought up
//! to date when a catalog is made or read: an edit of a type is an edit of whatever uses it.

use crate::catalog::Catalog;
use crate::{Error, Result};
use basalt_types::usertype::{element_oid, table_of_row_type};
use basalt_types::{
    Attribute, CompositeDef, DataType, DomainCheck, DomainDef, EnumDef, EnumLabel, ObjectId, Revision, TableDef,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a type is, beside its name.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum TypeKind {
    /// All attributes that ever were.
    Composite(Vec<Attribute>),
    /// In order.
    Enum(Vec<EnumLabel>),
    Domain {
        base: DataType,
        not_null: bool,
        checks: Vec<DomainCheck>,
        default: Option<String>,
        /// Of a base that is a date or time type.
        #[serde(default)]
        time_modifier: Option<i32>,
    },
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TypeDef {
    /// Its `pg_type.oid`.
    pub id: ObjectId,
    pub namespace: ObjectId,
    pub name: String,
    pub owner: String,
    pub kind: TypeKind,
    #[serde(skip, default = "Revision::kept")]
    pub revision: Revision,
}

impl TypeDef {
    /// Its own, and those of its constraints or labels.
    pub fn object_ids(&self) -> impl Iterator<Item = ObjectId> {
        let (checks, labels) = match &self.kind {
            TypeKind::Composite(_) => (&[][..], &[][..]),
            TypeKind::Enum(labels) => (&[][..], &labels[..]),
            TypeKind::Domain { checks, .. } => (&checks[..], &[][..]),
        };
        let parts = checks.iter().map(|check| check.oid).chain(labels.iter().map(|label| label.oid));
        std::iter::once(self.id).chain(parts.map(ObjectId))
    }
}

/// What uses a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeUser {
    /// A table's column, by its position.
    Column(ObjectId, usize),
    /// A composite type's attribute, by its position.
    Attribute(ObjectId, usize),
    Domain(ObjectId),
}

/// How deep types may be made of types.
const DEPTH_MAX: usize = 32;

impl Catalog {
    /// The type that a definition defines.
    pub fn data_type(&self, def: &TypeDef) -> DataType {
        let schema = self.namespaces.get(&def.namespace).map(|namespace| namespace.name.clone()).unwrap_or_default();
        let (oid, name) = (def.id.0, def.name.clone());
        match &def.kind {
            TypeKind::Composite(attributes) => {
                DataType::Composite(Arc::new(CompositeDef { oid, schema, name, attributes: attributes.clone() }))
            }
            TypeKind::Enum(labels) => DataType::Enum(Arc::new(EnumDef { oid, schema, name, labels: labels.clone() })),
            TypeKind::Domain { base, not_null, checks, default, time_modifier } => {
                DataType::Domain(Arc::new(DomainDef {
                    oid,
                    schema,
                    name,
                    base: base.clone(),
                    not_null: *not_null,
                    checks: checks.clone(),
                    default: default.clone(),
                    time_modifier: *time_modifier,
                }))
            }
        }
    }

    /// The type with this oid, built-in or not, without modifier; `None` if there is none, or only a pseudo-type.
    pub fn type_of_oid(&self, oid: u32) -> Option<DataType> {
        if let Some(element) = element_oid(oid) {
            return Some(DataType::Array(Box::new(self.type_of_oid(element)?)));
        }
        if let Some(id) = table_of_row_type(oid) {
            let table = self.tables.get(&id).map(|table| self.row_type(table));
            let row = table.or_else(|| self.views.get(&id).map(|view| self.view_row_type(view)));
            return row.map(DataType::Composite);
        }
        match self.types.get(&ObjectId(oid)) {
            Some(def) => Some(self.data_type(def)),
            None => DataType::from_oid(oid),
        }
    }

    /// The type of this name in a schema: a user's, or the row type of a table or view.
    pub fn type_named(&self, namespace: ObjectId, name: &str) -> Option<DataType> {
        if let Some(def) = self.type_def_named(namespace, name) {
            return Some(self.data_type(def));
        }
        if let Some(table) = self.table_named(namespace, name) {
            return Some(DataType::Composite(self.row_type(table)));
        }
        if let Some(view) = self.view_named(namespace, name) {
            return Some(DataType::Composite(self.view_row_type(view)));
        }
        // `_name` are the arrays of `name`.
        let element = self.type_named(namespace, name.strip_prefix('_')?)?;
        Some(DataType::Array(Box::new(element)))
    }

    pub fn type_def_named(&self, namespace: ObjectId, name: &str) -> Option<&Arc<TypeDef>> {
        self.types.get(self.type_names().get(&(namespace, name.to_string()))?)
    }

    /// Whether a type is, or is made of, the type with this oid.
    pub fn mentions(ty: &DataType, oid: u32) -> bool {
        match ty {
            DataType::Array(element) => Catalog::mentions(element, oid),
            DataType::Composite(composite) => {
                composite.oid == oid || composite.live().any(|(_, attribute)| Catalog::mentions(&attribute.ty, oid))
            }
            DataType::Domain(domain) => domain.oid == oid || Catalog::mentions(&domain.base, oid),
            DataType::Enum(definition) => definition.oid == oid,
            _ => false,
        }
    }

    /// What is declared of the type with this oid, or of its arrays.
    pub fn users_of(&self, oid: u32) -> Vec<TypeUser> {
        let declared = |ty: &DataType| {
            let ty = if let DataType::Array(element) = ty { element } else { ty };
            ty.oid() == oid
        };
        let mut users = Vec::new();
        for table in self.tables.values() {
            for (at, column) in table.columns.iter().enumerate() {
                if !column.dropped && declared(&column.ty) {
                    users.push(TypeUser::Column(table.id, at));
                }
            }
        }
        for def in self.types.values() {
            match &def.kind {
                TypeKind::Composite(attributes) => {
                    for (at, attribute) in attributes.iter().enumerate() {
                        if !attribute.dropped && declared(&attribute.ty) {
                            users.push(TypeUser::Attribute(def.id, at));
                        }
                    }
                }
                TypeKind::Domain { base, .. } if declared(base) => users.push(TypeUser::Domain(def.id)),
                _ => {}
            }
        }
        users
    }

    /// Brings the types that definitions carry up to date.
    pub(crate) fn refresh_types(&mut self) {
        let types: Vec<Arc<TypeDef>> = self.types.values().cloned().collect();
        for def in types {
            let mut fresh = TypeDef::clone(&def);
            match &mut fresh.kind {
                TypeKind::Composite(attributes) => {
                    attributes.iter_mut().for_each(|attribute| self.refresh(&mut attribute.ty, 0));
                }
                TypeKind::Domain { base, .. } => self.refresh(base, 0),
                TypeKind::Enum(_) => continue,
            }
            self.types.insert(def.id, Arc::new(fresh));
        }
        let tables: Vec<Arc<TableDef>> = self.tables.values().cloned().collect();
        for table in tables {
            if !table.columns.iter().any(|column| is_defined(&column.ty)) {
                continue;
            }
            let mut fresh = TableDef::clone(&table);
            fresh.columns.iter_mut().for_each(|column| self.refresh(&mut column.ty, 0));
            self.tables.insert(table.id, Arc::new(fresh));
        }
        let views: Vec<_> = self.views.values().cloned().collect();
        for view in views {
            if !view.columns.iter().any(|(_, ty)| is_defined(ty)) {
                continue;
            }
            let mut fresh = crate::catalog::ViewDef::clone(&view);
            fresh.columns.iter_mut().for_each(|(_, ty)| self.refresh(ty, 0));
            self.views.insert(view.id, Arc::new(fresh));
        }
    }

    /// Types carry those that they are made of, and some that were made apart may have met: what nests too deeply would
    /// be written into a checkpoint that cannot be read ([`crate::edit`]).
    pub(crate) fn check_depth(&self) -> Result<()> {
        let of_types = self.types.values().flat_map(|def| match &def.kind {
            TypeKind::Composite(attributes) => attributes.iter().map(|attribute| &attribute.ty).collect(),
            TypeKind::Domain { base, .. } => vec![base],
            TypeKind::Enum(_) => Vec::new(),
        });
        let of_tables = self.tables.values().flat_map(|table| table.columns.iter().map(|column| &column.ty));
        let of_views = self.views.values().flat_map(|view| view.columns.iter().map(|(_, ty)| ty));
        match of_types.chain(of_tables).chain(of_views).all(|ty| levels(ty) <= LEVELS_MAX) {
            true => Ok(()),
            false => Err(Error::TooDeep),
        }
    }

    /// Brings what a type says of itself up to date.
    pub fn redefine(&self, ty: &mut DataType) {
        self.refresh(ty, 0);
    }

    /// A type that is gone stays as it was: dropped columns still have one.
    fn refresh(&self, ty: &mut DataType, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        let fresh = match ty {
            DataType::Array(element) => return self.refresh(element, depth),
            DataType::Composite(composite) if composite.is_anonymous() => {
                let mut fresh = CompositeDef::clone(composite);
                fresh.attributes.iter_mut().for_each(|attribute| self.refresh(&mut attribute.ty, depth + 1));
                *ty = DataType::Composite(Arc::new(fresh));
                return;
            }
            DataType::Composite(_) | DataType::Enum(_) | DataType::Domain(_) => self.type_of_oid(ty.oid()),
            _ => return,
        };
        let Some(mut fresh) = fresh else { return };
        match &mut fresh {
            DataType::Composite(composite) => {
                let composite = Arc::make_mut(composite);
                composite.attributes.iter_mut().for_each(|attribute| self.refresh(&mut attribute.ty, depth + 1));
            }
            DataType::Domain(domain) => self.refresh(&mut Arc::make_mut(domain).base, depth + 1),
            _ => {}
        }
        *ty = fresh;
    }
}

impl TypeDef {
    /// A domain's constraints, which may bear comments of their own.
    pub(crate) fn checks(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let checks = match &self.kind {
            TypeKind::Domain { checks, .. } => checks.as_slice(),
            _ => &[],
        };
        checks.iter().map(|check| ObjectId(check.oid))
    }
}

/// Levels of JSON that a type may take: readers stop at 128, and a table's index takes some fifteen around it.
const LEVELS_MAX: usize = 96;

/// How many levels of JSON a type takes.
fn levels(ty: &DataType) -> usize {
    match ty {
        DataType::Array(element) => 1 + levels(element),
        DataType::Composite(composite) => {
            4 + composite.attributes.iter().map(|attribute| levels(&attribute.ty)).max().unwrap_or(0)
        }
        DataType::Domain(domain) => 2 + levels(&domain.base),
        DataType::Enum(_) => 4,
        _ => 1,
    }
}

/// Whether a catalog says what a type is, or its elements are.
pub fn is_defined(ty: &DataType) -> bool {
    match ty {
        DataType::Array(element) => is_defined(element),
        DataType::Composite(_) | DataType::Enum(_) | DataType::Domain(_) => true,
        _ => false,
    }
}
