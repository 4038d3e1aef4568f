//! Two transactions that edit one catalog, the second of which knows nothing of the first.

use crate::catalog::{PUBLIC, SUPERUSER};
use crate::privilege::{AclItem, AclKey, ObjectClass};
use crate::{Catalog, CatalogEdit, Error, Membership, Namespace, Role};
use basalt_types::schema::PrimaryKey;
use basalt_types::{ObjectId, Revision, TableDef};
use std::slice::from_ref;
use std::sync::Arc;

const TABLE: ObjectId = ObjectId(20_000);
const ROLE: ObjectId = ObjectId(20_001);
const SCHEMA: ObjectId = ObjectId(20_002);

fn put(def: &TableDef, name: &str) -> CatalogEdit {
    CatalogEdit::PutTable(Arc::new(TableDef { name: name.into(), ..def.clone() }))
}

fn owned(def: TableDef, owner: &str) -> CatalogEdit {
    CatalogEdit::PutTable(Arc::new(TableDef { owner: owner.into(), ..def }))
}

fn begun() -> Catalog {
    let namespace = Namespace {
        id: SCHEMA,
        database: crate::catalog::DEFAULT_DATABASE,
        name: "s".into(),
        owner: "basalt".into(),
        comment: None,
        revision: Revision::NEW,
    };
    let edits = [
        put(&TableDef::new(TABLE, PUBLIC, ""), "t"),
        CatalogEdit::PutRole(Role::new(ROLE, "r")),
        CatalogEdit::PutNamespace(namespace),
    ];
    Catalog::initial().succeed(&edits).unwrap()
}

fn is_changed(result: crate::Result<Catalog>) -> bool {
    matches!(result, Err(Error::Changed { .. }))
}

#[test]
fn no_definition_is_put_over_one_that_its_maker_has_not_seen() {
    let begun = begun();
    let seen = begun.table(TABLE).unwrap().clone();
    let renamed = begun.succeed(&[put(&seen, "other")]).unwrap();
    assert!(is_changed(renamed.succeed(&[put(&seen, "mine")])));
    assert!(is_changed(renamed.succeed(&[put(&TableDef::new(TABLE, PUBLIC, ""), "made twice")])));
    let again = renamed.succeed(&[put(renamed.table(TABLE).unwrap(), "mine")]).unwrap();
    assert_eq!(again.table(TABLE).unwrap().name, "mine");
    // Several edits of one transaction follow from one another, or from the same.
    again.succeed(&[put(again.table(TABLE).unwrap(), "one"), put(again.table(TABLE).unwrap(), "two")]).unwrap();
}

#[test]
fn changes_of_a_part_or_of_the_owners_name_count() {
    let begun = begun();
    let given = begun.succeed(&[owned(TableDef::clone(begun.table(TABLE).unwrap()), "r")]).unwrap();
    let seen = given.table(TABLE).unwrap();
    let role = Role { name: "q".into(), ..Role::clone(&given.roles[&ROLE]) };
    let renamed = given.succeed(&[CatalogEdit::PutRole(role)]).unwrap();
    assert_eq!(renamed.table(TABLE).unwrap().owner, "q");
    assert!(is_changed(renamed.succeed(&[put(seen, "mine")])));
    let gone = CatalogEdit::DropForeignKey { table: TABLE, key: ObjectId(1) };
    assert!(is_changed(given.succeed(&[gone]).unwrap().succeed(&[put(seen, "mine")])));
    // What has not changed keeps its revision.
    let other = put(&TableDef::new(ObjectId(20_003), PUBLIC, ""), "other");
    given.succeed(&[other]).unwrap().succeed(&[put(seen, "mine")]).unwrap();
}

#[test]
fn what_was_dropped_does_not_come_back() {
    let begun = begun();
    let dropped = begun.succeed(&[CatalogEdit::DropTable(TABLE)]).unwrap();
    assert!(is_changed(dropped.succeed(&[put(begun.table(TABLE).unwrap(), "mine")])));
    assert!(matches!(dropped.succeed(&[CatalogEdit::DropTable(TABLE)]), Err(Error::Stale(TABLE))));
}

#[test]
fn what_is_read_from_disk_can_be_changed_and_does_not_come_back() {
    let bytes = crate::edit::encode(&[CatalogEdit::PutTable(begun().table(TABLE).unwrap().clone())]);
    let read = Catalog::initial().apply(&crate::edit::decode(&bytes).unwrap()).unwrap();
    let seen = read.table(TABLE).unwrap();
    read.succeed(&[put(seen, "mine")]).unwrap();
    assert!(is_changed(read.succeed(&[CatalogEdit::DropTable(TABLE)]).unwrap().succeed(&[put(seen, "mine")])));
}

#[test]
fn nothing_is_left_without_owner_or_schema() {
    let begun = begun();
    let new = TableDef::new(ObjectId(20_003), SCHEMA, "");
    let is_orphan = |result: crate::Result<Catalog>, left: &'static str| matches!(result, Err(Error::Orphan { of, what: "table", .. }) if of == left);
    let no_role = begun.succeed(&[CatalogEdit::DropRole(ROLE)]).unwrap();
    assert!(is_orphan(no_role.succeed(&[owned(new.clone(), "r")]), "owner"));
    assert!(is_orphan(no_role.succeed(&[owned(TableDef::clone(begun.table(TABLE).unwrap()), "r")]), "owner"));
    let no_schema = begun.succeed(&[CatalogEdit::DropNamespace(SCHEMA)]).unwrap();
    assert!(is_orphan(no_schema.succeed(&[put(&new, "n")]), "schema"));
    let made = begun.succeed(&[owned(TableDef { name: "n".into(), ..new }, "r")]).unwrap();
    assert!(is_orphan(made.succeed(&[CatalogEdit::DropNamespace(SCHEMA)]), "schema"));
    assert!(is_orphan(made.succeed(&[CatalogEdit::DropRole(ROLE)]), "owner"));
    let both =
        [CatalogEdit::DropTable(ObjectId(20_003)), CatalogEdit::DropNamespace(SCHEMA), CatalogEdit::DropRole(ROLE)];
    assert!(made.succeed(&both).unwrap().roles.contains_key(&SUPERUSER));
}

/// Within one transaction everything may come and go in any order.
#[test]
fn what_goes_again_needs_nothing() {
    let begun = begun();
    let new = TableDef { name: "n".into(), ..TableDef::new(ObjectId(20_003), SCHEMA, "") };
    let drops = [CatalogEdit::DropTable(new.id), CatalogEdit::DropNamespace(SCHEMA), CatalogEdit::DropRole(ROLE)];
    begun.succeed(&[&[owned(new.clone(), "r")][..], &drops].concat()).unwrap();
    // Given away, or moved, before it goes.
    let moved = owned(TableDef { namespace: PUBLIC, ..new.clone() }, "basalt");
    begun.succeed(&[&[owned(new.clone(), "r"), moved][..], &drops[1..]].concat()).unwrap();
    // Its owner gets another name, and then it goes.
    let role = |id, name: &str, revision| CatalogEdit::PutRole(Role { revision, ..Role::new(id, name) });
    let renamed = role(ROLE, "q", begun.roles[&ROLE].revision);
    let given = begun.succeed(&[owned(new.clone(), "r"), renamed.clone()]).unwrap();
    assert_eq!(given.table(new.id).unwrap().owner, "q");
    // Another has made something for the role of the old name meanwhile.
    let made = begun.succeed(&[owned(new.clone(), "r")]).unwrap();
    let lost = made.succeed(&[renamed.clone(), CatalogEdit::DropRole(ROLE)]);
    assert!(matches!(lost, Err(Error::Orphan { of: "owner", .. })), "{lost:?}");
    // Another role of the old name has it now.
    let other = role(ObjectId(20_004), "r", Revision::NEW);
    let kept = owned(TableDef { revision: made.table(new.id).unwrap().revision, ..new }, "r");
    made.succeed(&[renamed, other, kept, CatalogEdit::DropRole(ROLE)]).unwrap();
}

/// As servers before this check may have left it.
#[test]
fn what_was_left_alone_before_is_in_nobodys_way() {
    let new = TableDef { name: "n".into(), owner: "nobody".into(), ..TableDef::new(ObjectId(20_003), ObjectId(9), "") };
    let orphaned = begun().apply(&[CatalogEdit::PutTable(Arc::new(new))]).unwrap();
    orphaned.succeed(&[CatalogEdit::DropRole(ROLE), CatalogEdit::DropNamespace(SCHEMA)]).unwrap();
    orphaned.succeed(&[put(orphaned.table(ObjectId(20_003)).unwrap(), "named")]).unwrap();
}

#[test]
fn names_are_given_once() {
    let begun = begun();
    let role = |id: u32, name: &str| CatalogEdit::PutRole(Role::new(ObjectId(id), name));
    let schema = |id: u32, name: &str| {
        let (id, name, revision) = (ObjectId(id), name.to_string(), Revision::NEW);
        CatalogEdit::PutNamespace(Namespace { id, name, revision, ..Namespace::clone(&begun.namespaces[&SCHEMA]) })
    };
    for (edit, what) in [(role(30_000, "r"), "role"), (schema(30_000, "s"), "schema")] {
        let refused = begun.succeed(from_ref(&edit));
        assert!(matches!(&refused, Err(Error::Exists { what: of, .. }) if *of == what), "{refused:?}");
        // As it was left by servers before this check: nobody can name it, and nobody is in its way.
        let twice = begun.apply(&[edit]).unwrap();
        twice.succeed(&[CatalogEdit::PutRole(Role { login: true, ..Role::clone(&twice.roles[&ROLE]) })]).unwrap();
    }
    begun.succeed(&[CatalogEdit::DropRole(ROLE), role(30_000, "r")]).unwrap();
    begun.succeed(&[role(30_000, "q"), schema(30_001, "q")]).unwrap();
}

#[test]
fn grants_are_those_of_roles_that_are_there() {
    let begun = begun();
    let key = AclKey::of(ObjectClass::Table, TABLE);
    let item = AclItem { grantee: Some(ROLE), grantor: SUPERUSER, privileges: 1, grantable: 0 };
    let (grant, dropped) = (CatalogEdit::SetAcl { key, items: Some(vec![item]) }, CatalogEdit::DropRole(ROLE));
    let is_orphan = |result: crate::Result<Catalog>| matches!(result, Err(Error::Orphan { of: "role", .. }));
    assert!(is_orphan(begun.succeed(from_ref(&dropped)).unwrap().succeed(from_ref(&grant))));
    let granted = begun.succeed(from_ref(&grant)).unwrap();
    assert!(is_orphan(granted.succeed(from_ref(&dropped))));
    granted.succeed(&[CatalogEdit::SetAcl { key, items: None }, dropped.clone()]).unwrap();
    // Given, taken back and dropped in one transaction.
    begun.succeed(&[grant.clone(), CatalogEdit::SetAcl { key, items: None }, dropped.clone()]).unwrap();
    let member_of = vec![Membership { role: ROLE, admin: false, grantor: SUPERUSER }];
    let member = CatalogEdit::PutRole(Role { member_of, ..Role::new(ObjectId(30_000), "member") });
    assert!(is_orphan(begun.succeed(from_ref(&dropped)).unwrap().succeed(from_ref(&member))));
    begun.succeed(&[member, dropped.clone()]).unwrap();
    // What was left by servers before this check is in nobody's way.
    let left = begun.apply(&[dropped, grant.clone()]).unwrap();
    left.succeed(&[grant]).unwrap();
}

/// Commits edits that were made over one catalog on top of another.
fn beside(made_over: &Catalog, committed: &Catalog, edits: &[CatalogEdit]) -> crate::Result<Catalog> {
    let over: Vec<_> = edits.iter().map(|edit| made_over.over(edit)).collect();
    committed.check_over(edits, &over)?;
    committed.succeed(edits)
}

#[test]
fn nothing_is_taken_away_that_has_changed_since() {
    let begun = begun();
    let dropped = [CatalogEdit::DropNamespace(SCHEMA)];
    let renamed = Namespace { name: "kept".into(), ..Namespace::clone(&begun.namespaces[&SCHEMA]) };
    let renamed = begun.succeed(&[CatalogEdit::PutNamespace(renamed)]).unwrap();
    assert!(is_changed(beside(&begun, &renamed, &dropped)));
    beside(&renamed, &renamed, &dropped).unwrap();
    // Of others' changes it is independent, and so is what the same transaction has made.
    let other = begun.succeed(&[put(begun.table(TABLE).unwrap(), "other")]).unwrap();
    beside(&begun, &other, &dropped).unwrap();
    let role = CatalogEdit::PutRole(Role::new(ObjectId(30_000), "new"));
    beside(&begun, &other, &[role, CatalogEdit::DropRole(ObjectId(30_000))]).unwrap();
}

#[test]
fn what_is_said_of_an_object_is_put_over_what_its_maker_has_seen() {
    let begun = begun();
    let key = AclKey::of(ObjectClass::Table, TABLE);
    let item = |privileges| AclItem { grantee: Some(ROLE), grantor: SUPERUSER, privileges, grantable: 0 };
    let granted = |privileges| CatalogEdit::SetAcl { key, items: Some(vec![item(privileges)]) };
    let first = begun.succeed(&[granted(1)]).unwrap();
    // Both gave something: the second would take away what the first gave.
    assert!(is_changed(beside(&begun, &first, &[granted(2)])));
    beside(&first, &first, &[granted(3), granted(2)]).unwrap();
    // A change of the object is no matter, its end is.
    let other = begun.succeed(&[put(begun.table(TABLE).unwrap(), "other")]).unwrap();
    beside(&begun, &other, &[granted(1)]).unwrap();
    let gone = begun.succeed(&[CatalogEdit::DropTable(TABLE)]).unwrap();
    let comment = |object| CatalogEdit::SetComment {
        key: crate::CommentKey { class: 0, object, part: 0 },
        text: Some("said".into()),
    };
    assert!(is_changed(beside(&begun, &gone, &[granted(1)])));
    assert!(is_changed(beside(&begun, &gone, &[comment(TABLE)])));
    beside(&begun, &gone, &[comment(SCHEMA)]).unwrap();
    // Of what nobody ever saw, nothing is asked.
    beside(&gone, &gone, &[granted(1)]).unwrap();
}

#[test]
fn primary_keys_have_their_names_among_relations() {
    let begun = begun();
    let keyed = |id: u32, name: &str, key: &str| {
        let constraint_name = key.to_string();
        let key =
            PrimaryKey { constraint_id: ObjectId(id + 1), constraint_name, columns: Vec::new(), include: Vec::new() };
        let table = TableDef::new(ObjectId(id), PUBLIC, name);
        CatalogEdit::PutTable(Arc::new(TableDef { name: name.into(), primary_key: Some(key), ..table }))
    };
    let is_taken = |result: crate::Result<Catalog>| matches!(result, Err(Error::Exists { what: "relation", .. }));
    let named = begun.succeed(&[keyed(31_000, "a", "k")]).unwrap();
    assert!(named.relation_exists(PUBLIC, "k") && named.table_named(PUBLIC, "k").is_none());
    assert!(is_taken(named.succeed(&[keyed(32_000, "k", "other")])));
    assert!(is_taken(named.succeed(&[keyed(32_000, "b", "k")])));
    assert!(is_taken(begun.succeed(&[keyed(32_000, "b", "t")])));
    named.succeed(&[keyed(32_000, "b", "other"), CatalogEdit::DropTable(ObjectId(31_000))]).unwrap();
    // What was so before this was asked is in nobody's way.
    let twice = named.apply(&[keyed(32_000, "b", "k")]).unwrap();
    twice.succeed(&[put(twice.table(ObjectId(31_000)).unwrap(), "renamed")]).unwrap();
}
