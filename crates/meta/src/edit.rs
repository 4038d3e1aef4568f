//! Changes to the catalog, as commit records and checkpoints carry them: JSON of whole objects.
//!
//! Catalog edits are rare and small, and readers of a newer version must understand older ones:
//! self-describing text is worth its bytes here. Row data never travels this way.

use crate::catalog::{Database, Namespace, ViewDef};
use crate::privilege::{AclItem, AclKey, DefaultKey};
use crate::{CommentKey, Error, Result, Role, RoleSetting, SequenceDef, TypeDef};
use basalt_types::schema::IndexDef;
use basalt_types::{ObjectId, TableDef};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum CatalogEdit {
    PutDatabase(Database),
    DropDatabase(ObjectId),
    PutNamespace(Namespace),
    DropNamespace(ObjectId),
    /// Creates or replaces. Tablets that the earlier definition had and this one lacks are dropped.
    PutTable(Arc<TableDef>),
    DropTable(ObjectId),
    /// Adds an index to a table, or replaces it: two may be made side by side, so neither carries the whole table.
    PutIndex {
        table: ObjectId,
        index: Arc<IndexDef>,
    },
    DropIndex {
        table: ObjectId,
        index: ObjectId,
    },
    /// Of the referencing table.
    DropForeignKey {
        table: ObjectId,
        key: ObjectId,
    },
    PutView(ViewDef),
    DropView(ObjectId),
    PutRole(Role),
    DropRole(ObjectId),
    SetSetting {
        name: String,
        value: Option<String>,
    },
    PutType(Arc<TypeDef>),
    DropType(ObjectId),
    PutSequence(SequenceDef),
    DropSequence(ObjectId),
    /// `None`: there is no comment any more.
    SetComment {
        key: CommentKey,
        text: Option<String>,
    },
    /// `None`: what the object began with.
    SetAcl {
        key: AclKey,
        items: Option<Vec<AclItem>>,
    },
    SetDefaultAcl {
        key: DefaultKey,
        items: Option<Vec<AclItem>>,
    },
    /// In place of an earlier value, or (`remove`) nothing in its place.
    SetRoleSetting {
        setting: RoleSetting,
        remove: bool,
    },
}

pub fn encode(edits: &[CatalogEdit]) -> Vec<u8> {
    serde_json::to_vec(edits).expect("catalog edits are plain data")
}

pub fn decode(bytes: &[u8]) -> Result<Vec<CatalogEdit>> {
    serde_json::from_slice(bytes).map_err(|error| Error::BadEdit(error.to_string()))
}
