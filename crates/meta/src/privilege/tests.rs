//! Default privileges: which databases they reach, and those of programs that wrote none.

use super::*;
use crate::catalog::{DEFAULT_DATABASE, PUBLIC, SUPERUSER};
use crate::{CatalogEdit, Database, Namespace, edit};
use basalt_types::{Revision, TableDef};
use std::sync::Arc;

const OTHER: ObjectId = ObjectId(20_000);
const OTHER_PUBLIC: ObjectId = ObjectId(20_001);

/// A second database with a schema of its own.
fn two_databases() -> Catalog {
    let (owner, comment) = ("basalt".to_string(), None);
    let (name, revision) = ("public".into(), Revision::NEW);
    let schema = Namespace { id: OTHER_PUBLIC, database: OTHER, name, owner: owner.clone(), comment, revision };
    let edits = [
        CatalogEdit::PutDatabase(Database { id: OTHER, name: "other".into(), owner, revision }),
        CatalogEdit::PutNamespace(schema),
    ];
    Catalog::initial().apply(&edits).unwrap()
}

fn key(database: ObjectId, schema: Option<ObjectId>) -> DefaultKey {
    DefaultKey { database, role: SUPERUSER, schema, class: ObjectClass::Table }
}

fn everybody_reads() -> Vec<AclItem> {
    vec![AclItem { grantee: None, grantor: SUPERUSER, privileges: SELECT, grantable: 0 }]
}

/// What a new table in a schema begins with.
fn made_in(catalog: &Catalog, schema: ObjectId) -> Option<Vec<AclItem>> {
    let id = ObjectId(30_000);
    let table = TableDef { owner: "basalt".into(), ..TableDef::new(id, schema, "t") };
    let after = catalog.apply(&[CatalogEdit::PutTable(Arc::new(table))]).unwrap();
    after.acls.get(AclKey::of(ObjectClass::Table, id)).cloned()
}

#[test]
fn defaults_reach_the_tables_of_their_database_alone() {
    let items = Some(everybody_reads());
    for schema in [None, Some(PUBLIC)] {
        let edit = CatalogEdit::SetDefaultAcl { key: key(DEFAULT_DATABASE, schema), items: items.clone() };
        let catalog = two_databases().apply(&[edit]).unwrap();
        assert!(made_in(&catalog, PUBLIC).is_some_and(|made| made.contains(&everybody_reads()[0])));
        assert_eq!(made_in(&catalog, OTHER_PUBLIC), None);
        // A schema of a new database is none of this one's.
        assert!(catalog.acls.get(AclKey::of(ObjectClass::Schema, OTHER_PUBLIC)).is_none());
    }
}

#[test]
fn defaults_go_with_their_database() {
    let edit = CatalogEdit::SetDefaultAcl { key: key(OTHER, None), items: Some(everybody_reads()) };
    let catalog = two_databases().apply(&[edit]).unwrap();
    let gone = [CatalogEdit::DropNamespace(OTHER_PUBLIC), CatalogEdit::DropDatabase(OTHER)];
    assert_eq!(catalog.apply(&gone).unwrap().acls.defaults().count(), 0);
}

/// Records and checkpoints of programs before keys had a database.
#[test]
fn defaults_without_a_database_are_those_of_the_schema_or_of_each_database() {
    let old = |schema: &str| {
        let item = r#"{"grantee":null,"grantor":10,"privileges":2,"grantable":0}"#;
        (format!(r#"{{"role":10,"schema":{schema},"class":"Table"}}"#), format!("[{item}]"))
    };
    for (schema, expected) in [
        ("null", vec![key(DEFAULT_DATABASE, None), key(OTHER, None)]),
        ("20001", vec![key(OTHER, Some(OTHER_PUBLIC))]),
        ("2200", vec![key(DEFAULT_DATABASE, Some(PUBLIC))]),
    ] {
        let (key, items) = old(schema);
        let record = format!(r#"[{{"SetDefaultAcl":{{"key":{key},"items":{items}}}}}]"#);
        let from_record = two_databases().apply(&edit::decode(record.as_bytes()).unwrap()).unwrap();
        let mut checkpoint = serde_json::to_value(two_databases()).unwrap();
        let entry = format!("[[{key},{items}]]");
        checkpoint["acls"]["defaults"] = serde_json::from_str(&entry).unwrap();
        let mut from_checkpoint: Catalog = serde_json::from_value(checkpoint).unwrap();
        from_checkpoint.index();
        for catalog in [from_record, from_checkpoint] {
            let found: Vec<DefaultKey> = catalog.acls.defaults().map(|(key, _)| *key).collect();
            assert_eq!(found, expected, "{schema}");
            assert!(catalog.acls.defaults().all(|(_, items)| *items == everybody_reads()));
        }
    }
}

#[test]
fn items_that_nothing_was_changed_of_are_no_entry() {
    assert_eq!(key(OTHER, Some(OTHER_PUBLIC)).entry(Vec::new()), None);
    assert_eq!(key(OTHER, None).entry(default_acl(ObjectClass::Table, SUPERUSER, false)), None);
    assert_eq!(key(OTHER, None).entry(Vec::new()), Some(Vec::new()));
}
