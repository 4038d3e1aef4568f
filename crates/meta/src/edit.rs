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

/// Levels of JSON that one object may take. Readers stop at 128, and what holds the object takes some.
const DEPTH_MAX: usize = 96;

/// Refuses what could not be read again: a log or a checkpoint with it would not open.
pub fn check(edits: &[CatalogEdit]) -> Result<()> {
    let bytes = encode(edits);
    if depth(&bytes) > DEPTH_MAX {
        return Err(Error::TooDeep);
    }
    // Some types are equal if only their ids are: their text is not.
    match encode(&decode(&bytes)?) == bytes {
        true => Ok(()),
        false => Err(Error::BadEdit("it reads as another".into())),
    }
}

/// How deep JSON nests.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth -= 1,
            _ => {}
        }
    }
    deepest
}

pub fn decode(bytes: &[u8]) -> Result<Vec<CatalogEdit>> {
    serde_json::from_slice(bytes).map_err(|error| Error::BadEdit(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TypeKind;
    use basalt_types::{DataType, Revision};

    fn nested(levels: usize) -> CatalogEdit {
        let base = (0..levels).fold(DataType::Int4, |element, _| DataType::Array(Box::new(element)));
        let kind = TypeKind::Domain { base, not_null: false, checks: Vec::new(), default: None, time_modifier: None };
        let (id, namespace, revision) = (ObjectId(70000), ObjectId(2200), Revision::NEW);
        CatalogEdit::PutType(Arc::new(TypeDef {
            id,
            namespace,
            name: "d".into(),
            owner: "basalt".into(),
            kind,
            revision,
        }))
    }

    #[test]
    fn what_could_not_be_read_again_is_refused() {
        assert_eq!(check(&[nested(20)]), Ok(()));
        assert_eq!(check(&[nested(200)]), Err(Error::TooDeep));
        assert!(decode(&encode(&[nested(200)])).is_err(), "nothing has to be refused");
    }

    #[test]
    fn depth_counts_brackets_outside_of_texts() {
        for (json, levels) in [("1", 0), ("[]", 1), (r#"[{"a": [1]}, [2]]"#, 3), (r#"["[[\"[[", {}]"#, 2)] {
            assert_eq!(depth(json.as_bytes()), levels, "{json}");
        }
    }
}
