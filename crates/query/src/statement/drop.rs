//! DROP TABLE, VIEW, SEQUENCE and SCHEMA, and what depends on what (PostgreSQL manual 5.14).
//!
//! A view depends on whatever its text needs to bind. An edit breaks a view if it binds before and not
//! after: that is one rule for drops and dropped columns alike. A default depends on the sequences that its
//! text names by oid. Sequences that a column owns go with it. Columns go with their types, as ALTER TABLE … DROP
//! COLUMN has it: with their indexes, constraints and what is computed from them.

use super::alter_table::narrowed::{self, Narrowed};
use super::cursor;
use super::define::skipped;
use super::index;
use super::resolve::{self, Relation, no_relation};
use super::type_users;
use crate::bind::{self, ParamTypes, pinned};
use crate::error::{Result, Severity, SqlError};
use crate::session::Session;
use crate::session::temp;
use crate::syntax::{Name, ObjectKind, parse_query_text};
use basalt_engine::{Catalog, CatalogEdit, SequenceDef, TableLock, ViewDef};
use basalt_types::usertype::row_type_oid;
use basalt_types::{DataType, ObjectId, TableDef};
use std::sync::Arc;

mod expressions;

const CASCADE_HINT: &str = "Use DROP ... CASCADE to drop the dependent objects too.";

pub(crate) async fn run(
    session: &mut Session,
    kind: ObjectKind,
    names: &[Name],
    if_exists: bool,
    cascade: bool,
) -> Result<()> {
    let asked = |session: &mut Session, catalog: &Arc<Catalog>| {
        let mut asked = Asked::default();
        let mut targets = Vec::new();
        for name in names {
            let is_there = match kind {
                ObjectKind::Schema => asked.schema(session, catalog, &name.name, if_exists, cascade)?,
                ObjectKind::Index => match index::to_drop(session, catalog, name, if_exists, &mut asked.notices)? {
                    Some((table, index)) => {
                        asked.first.push(table.id);
                        asked.add(CatalogEdit::DropIndex { table: table.id, index: index.id });
                        true
                    }
                    None => false,
                },
                _ => match find(session, catalog, kind, name, if_exists, &mut asked.notices)? {
                    Some(found) => {
                        asked.relation(session, catalog, kind, found, name)?;
                        true
                    }
                    None => false,
                },
            };
            if is_there {
                targets.push(name.to_string());
            }
        }
        asked.what = match targets.as_slice() {
            [one] => format!("drop {} {one}", kind.word()),
            _ => "drop desired object(s)".to_string(),
        };
        Ok(asked)
    };
    apply_asked(session, Some(cascade), asked).await
}

/// What a statement asks for, as the catalog is at some moment.
#[derive(Default)]
pub(super) struct Asked {
    pub edits: Vec<CatalogEdit>,
    /// What it names is locked first, in this order.
    pub first: Vec<ObjectId>,
    /// What goes along anyway, as messages name it.
    pub along: Vec<String>,
    /// For errors: what cannot be done because something depends on it.
    pub what: String,
    /// Told behind the locks: those who are waited for may take away what is in the way.
    pub refusal: Option<SqlError>,
    pub notices: Vec<SqlError>,
}

impl Asked {
    pub fn add(&mut self, edit: CatalogEdit) {
        if !self.edits.contains(&edit) {
            self.edits.push(edit);
        }
    }

    /// False: there is no such schema, and that is no error.
    fn schema(
        &mut self,
        session: &mut Session,
        catalog: &Catalog,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<bool> {
        let Some(namespace) = catalog.namespace_named(session.database.id, name) else {
            let message = format!("schema \"{name}\" does not exist");
            if if_exists {
                self.notices.push(skipped("00000", &message));
                return Ok(false);
            }
            return Err(SqlError::new("3F000", message));
        };
        if resolve::is_system(namespace) {
            return Err(SqlError::new(
                "2BP01",
                format!("cannot drop schema {name} because it is required by the database system"),
            ));
        }
        resolve::require_owner(session, "schema", name, &namespace.owner)?;
        let inside = listed(session, catalog, namespace.id);
        if !cascade && !inside.is_empty() && self.refusal.is_none() {
            let details: Vec<String> =
                inside.iter().map(|object| format!("{object} depends on schema {name}")).collect();
            let message = format!("cannot drop schema {name} because other objects depend on it");
            let refusal = SqlError::new("2BP01", message).with_detail(details.join("\n"));
            self.refusal = Some(refusal.with_hint(CASCADE_HINT));
        }
        self.along.extend(inside);
        temp::contents(catalog, namespace.id).into_iter().for_each(|edit| self.add(edit));
        self.add(CatalogEdit::DropNamespace(namespace.id));
        Ok(true)
    }

    /// A relation that the statement calls by this kind: with the sequences that columns of a table own.
    fn relation(
        &mut self,
        session: &mut Session,
        catalog: &Catalog,
        kind: ObjectKind,
        found: Relation,
        name: &Name,
    ) -> Result<()> {
        let what = kind.word();
        match (found, kind) {
            (Relation::View(view), ObjectKind::View) => {
                resolve::require_owner(session, what, &view.name, &view.owner)?;
                self.first.push(view.id);
                self.add(CatalogEdit::DropView(view.id));
            }
            (Relation::Sequence(sequence), ObjectKind::Sequence) => {
                resolve::require_owner(session, what, &sequence.name, &sequence.owner)?;
                refuse_internal(catalog, &sequence)?;
                self.first.push(sequence.id);
                self.add(CatalogEdit::DropSequence(sequence.id));
            }
            (Relation::Table(table), ObjectKind::Table | ObjectKind::MaterializedView)
                if table.materialized.is_some() == (kind == ObjectKind::MaterializedView) =>
            {
                resolve::require_owner(session, what, &table.name, &table.owner)?;
                self.first.push(table.id);
                // Constraints of others go with it.
                self.first.extend(catalog.references_to(table.id).map(|(child, _)| child.id));
                let owned = catalog.sequences_of(table.id).map(|sequence| CatalogEdit::DropSequence(sequence.id));
                owned.for_each(|edit| self.add(edit));
                self.add(CatalogEdit::DropTable(table.id));
            }
            (found, _) => {
                let other = match found {
                    Relation::Table(table) if table.materialized.is_some() => {
                        "MATERIALIZED VIEW to remove a materialized view"
                    }
                    Relation::Table(_) => "TABLE to remove a table",
                    Relation::View(_) => "VIEW to remove a view",
                    Relation::Sequence(_) => "SEQUENCE to remove a sequence",
                };
                let article = format!("\"{}\" is not a {what}", name.name);
                return Err(SqlError::new("42809", article).with_hint(format!("Use DROP {other}.")));
            }
        }
        Ok(())
    }
}

/// What a name stands for; nothing where there is no such thing and that is no error.
fn find(
    session: &mut Session,
    catalog: &Arc<Catalog>,
    kind: ObjectKind,
    name: &Name,
    if_exists: bool,
    notices: &mut Vec<SqlError>,
) -> Result<Option<Relation>> {
    let what = kind.word();
    if let Some(schema) = &name.schema
        && let Err(error) = resolve::namespace(session, catalog, schema)
    {
        if !if_exists {
            return Err(error);
        }
        notices.push(skipped("00000", &format!("schema \"{schema}\" does not exist")));
        return Ok(None);
    }
    match resolve::find(session, catalog, name)? {
        Some(found) => Ok(Some(found)),
        None if index::find(session, catalog, name)?.is_some() => {
            Err(SqlError::new("42809", format!("\"{}\" is not a {what}", name.name))
                .with_hint("Use DROP INDEX to remove an index."))
        }
        None if if_exists => {
            notices.push(skipped("00000", &format!("{what} \"{}\" does not exist", name.name)));
            Ok(None)
        }
        None => Err(no_relation(what, name)),
    }
}

/// 2BP01: an identity column's sequence goes with the column alone.
fn refuse_internal(catalog: &Catalog, sequence: &SequenceDef) -> Result<()> {
    let Some(owner) = sequence.owned_by.filter(|owner| owner.internal) else { return Ok(()) };
    let Some(table) = catalog.table(owner.table) else { return Ok(()) };
    let column = format!("column {} of table {}", table.column(owner.column).name, table.name);
    let message = format!("cannot drop sequence {} because {column} requires it", sequence.name);
    Err(SqlError::new("2BP01", message).with_hint(format!("You can drop {column} instead.")))
}

/// What a schema holds, as messages name it, in the order of making; sequences that go with a column are not told.
fn listed(session: &Session, catalog: &Catalog, namespace: ObjectId) -> Vec<String> {
    let tables = catalog.tables.values().filter(|table| table.namespace == namespace);
    let views = catalog.views.values().filter(|view| view.namespace == namespace);
    let sequences = catalog.sequences.values();
    let sequences = sequences.filter(|sequence| sequence.namespace == namespace && sequence.owned_by.is_none());
    let types = catalog.types.values().filter(|def| def.namespace == namespace);
    let name = |name: &str| shown(session, catalog, namespace, name);
    let mut all: Vec<(ObjectId, String)> = tables
        .map(|table| (table.id, format!("{} {}", table.kind_word(), name(&table.name))))
        .chain(views.map(|view| (view.id, format!("view {}", name(&view.name)))))
        .chain(sequences.map(|sequence| (sequence.id, format!("sequence {}", name(&sequence.name)))))
        .chain(types.map(|def| (def.id, format!("type {}", name(&def.name)))))
        .collect();
    all.sort();
    all.into_iter().map(|(_, text)| text).collect()
}

/// A relation's name, qualified unless its schema is searched.
pub(crate) fn shown(session: &Session, catalog: &Catalog, namespace: ObjectId, name: &str) -> String {
    let name = crate::session::names::quote_identifier(name);
    match catalog.namespaces.get(&namespace) {
        Some(schema) if !session.lookup_path(catalog).contains(&schema.name) => {
            format!("{}.{name}", crate::session::names::quote_identifier(&schema.name))
        }
        _ => name,
    }
}

/// The notice of CASCADE.
fn tell_cascade(session: &mut Session, objects: &[String]) {
    let notice = |message: String| SqlError::notice(Severity::Notice, "00000", message);
    match objects {
        [] => {}
        [one] => session.notice(notice(format!("drop cascades to {one}"))),
        several => {
            let details: Vec<String> = several.iter().map(|object| format!("drop cascades to {object}")).collect();
            let message = format!("drop cascades to {} other objects", several.len());
            session.notice(notice(message).with_detail(details.join("\n")));
        }
    }
}

/// Something that an edit would break: what it is, and on what it depends.
struct Dependent {
    what: String,
    on: String,
    /// What CASCADE does to it.
    edits: Vec<CatalogEdit>,
}

/// What edits do to all that is made of what they take away.
struct Plan {
    /// With what goes because its type does.
    edits: Vec<CatalogEdit>,
    /// As of these edits.
    after: Arc<Catalog>,
    /// Tables without columns whose types go.
    narrowed: Vec<Narrowed>,
    broken: Vec<Dependent>,
}

impl Plan {
    fn new(session: &mut Session, before: &Arc<Catalog>, given: &[CatalogEdit], cascade: bool) -> Result<Plan> {
        let mut edits = given.to_vec();
        let mut views: Vec<Dependent> = Vec::new();
        loop {
            let mut plan = Plan::of_drops(session, before, edits.clone(), cascade)?;
            // Columns may be of a broken view's rows.
            let is_type = |dependent: &Dependent| match dependent.edits.as_slice() {
                [CatalogEdit::DropView(id) | CatalogEdit::DropTable(id)] => {
                    !before.users_of(row_type_oid(*id)).is_empty()
                }
                _ => false,
            };
            let (types, others) = std::mem::take(&mut plan.broken).into_iter().partition::<Vec<_>, _>(is_type);
            if types.is_empty() {
                plan.broken = views.into_iter().chain(others).collect();
                return Ok(plan);
            }
            for mut view in types {
                edits.append(&mut view.edits);
                views.push(view);
            }
        }
    }

    fn of_drops(
        session: &mut Session,
        before: &Arc<Catalog>,
        mut edits: Vec<CatalogEdit>,
        cascade: bool,
    ) -> Result<Plan> {
        let type_users::Along { edits: along, mut columns, names } = type_users::cascade(before, &edits);
        let dependent = |what: String, on: &str| Dependent { what, on: on.to_string(), edits: Vec::new() };
        let mut broken: Vec<Dependent> = names.into_iter().map(|what| dependent(what, "the type")).collect();
        edits.extend(along);
        let mut after = Arc::new(before.apply(&edits).map_err(basalt_engine::Error::from)?);
        for (table, column, dependent) in expressions::generated(session, before, &after) {
            if !columns.contains(&(table, column)) {
                columns.push((table, column));
                broken.push(dependent);
            }
        }
        let narrowed = match narrowed::all(session, before, &columns, &edits) {
            // Without CASCADE it is refused for the columns' sake, whatever else there is.
            Err(_) if !cascade => Vec::new(),
            narrowed => narrowed?,
        };
        for table in &narrowed {
            let named = |what: &str| broken.iter().any(|known| known.what == what);
            let along = table.along.iter().filter(|what| !named(what)).cloned().collect::<Vec<_>>();
            broken.extend(along.into_iter().map(|what| dependent(what, "another column")));
            for edit in &table.edits {
                if !edits.contains(edit) {
                    edits.push(edit.clone());
                }
            }
        }
        if !narrowed.is_empty() {
            after = Arc::new(before.apply(&edits).map_err(basalt_engine::Error::from)?);
        }
        broken.extend(expressions::left(session, before, &after));
        broken.extend(references_left(session, before, &after));
        broken.extend(all_broken_views(session, before, &after)?);
        Ok(Plan { edits, after, narrowed, broken })
    }

    /// Tables, views and sequences whose definitions it edits.
    fn relations(&self) -> impl Iterator<Item = ObjectId> {
        self.edits.iter().chain(self.broken.iter().flat_map(|dependent| &dependent.edits)).filter_map(relation_of)
    }

    /// 2BP01 if something breaks, unless CASCADE (where the statement has such a word) takes that away too.
    fn check(&self, what: &str, cascade: Option<bool>) -> Result<()> {
        if cascade == Some(true) {
            return self.check_keys();
        }
        if self.broken.is_empty() {
            return Ok(());
        }
        let details: Vec<String> =
            self.broken.iter().map(|dependent| format!("{} depends on {}", dependent.what, dependent.on)).collect();
        let them = if what.ends_with("(s)") { "them" } else { "it" };
        let what = what.replacen("drop domain ", "drop type ", 1);
        let error = SqlError::new("2BP01", format!("cannot {what} because other objects depend on {them}"))
            .with_detail(details.join("\n"));
        Err(match cascade {
            Some(_) => error.with_hint(CASCADE_HINT),
            None => error.with_hint("Drop the views first, and create them anew."),
        })
    }

    /// 0A000 while keys hold rows of what has fewer columns or attributes afterwards.
    fn check_keys(&self) -> Result<()> {
        for table in &self.narrowed {
            let what = format!("table \"{}\"", table.before.name);
            type_users::check_keys(&self.after, row_type_oid(table.before.id), &what)?;
        }
        for edit in &self.edits {
            if let CatalogEdit::PutType(def) = edit {
                type_users::check_keys(&self.after, def.id.0, &format!("type \"{}\"", def.name))?;
            }
        }
        Ok(())
    }
}

/// The table whose definition an edit makes, changes or takes away.
fn table_of(edit: &CatalogEdit) -> Option<ObjectId> {
    match edit {
        CatalogEdit::PutTable(table) => Some(table.id),
        CatalogEdit::DropTable(id) => Some(*id),
        CatalogEdit::DropForeignKey { table, .. }
        | CatalogEdit::PutIndex { table, .. }
        | CatalogEdit::DropIndex { table, .. } => Some(*table),
        _ => None,
    }
}

/// The same of tables, views and sequences.
fn relation_of(edit: &CatalogEdit) -> Option<ObjectId> {
    match edit {
        CatalogEdit::PutView(view) => Some(view.id),
        CatalogEdit::PutSequence(sequence) => Some(sequence.id),
        CatalogEdit::DropView(id) | CatalogEdit::DropSequence(id) => Some(*id),
        edit => table_of(edit),
    }
}

/// Makes edits, unless they would break something. `cascade` (where the statement has such a word) takes that away too;
/// otherwise 2BP01.
pub(crate) async fn apply(
    session: &mut Session,
    edits: Vec<CatalogEdit>,
    what: &str,
    cascade: Option<bool>,
) -> Result<()> {
    apply_along(session, edits, what, cascade, Vec::new()).await
}

/// [`apply`], with what goes along anyway.
pub(super) async fn apply_along(
    session: &mut Session,
    edits: Vec<CatalogEdit>,
    what: &str,
    cascade: Option<bool>,
    along: Vec<String>,
) -> Result<()> {
    let asked = |_: &mut Session, _: &Arc<Catalog>| {
        let (edits, along, what) = (edits.clone(), along.clone(), what.to_string());
        Ok(Asked { edits, along, what, ..Asked::default() })
    };
    apply_asked(session, cascade, asked).await
}

/// The same of what `asked` gives, with nobody else at the relations that it changes or takes away, nor at those that
/// refer to one whose columns go. Tables that it changes are locked by whoever asks, in the mode that he needs. 2BP01 for
/// what breaks comes last: those who are waited for may have taken it away.
pub(super) async fn apply_asked(
    session: &mut Session,
    cascade: Option<bool>,
    asked: impl Fn(&mut Session, &Arc<Catalog>) -> Result<Asked>,
) -> Result<()> {
    let plan = |session: &mut Session, before: &Arc<Catalog>| {
        let asked = asked(session, before)?;
        let mut wanted = asked.first.clone();
        if asked.edits.is_empty() {
            return Ok(((asked, None), wanted));
        }
        for edit in &asked.edits {
            if let CatalogEdit::DropTable(id) = edit
                && let Some(table) = before.table(*id)
            {
                cursor::refuse_in_use(session, table, "DROP TABLE")?;
            }
        }
        let plan = Plan::new(session, before, &asked.edits, cascade == Some(true))?;
        let is_change = |edit: &&CatalogEdit| !matches!(edit, CatalogEdit::DropTable(_));
        let changed: Vec<ObjectId> = asked.edits.iter().filter(is_change).filter_map(table_of).collect();
        let mut others: Vec<ObjectId> = plan.relations().filter(|id| !changed.contains(id)).collect();
        for table in plan.narrowed.iter().map(|table| table.before.id) {
            others.push(table);
            others.extend(before.references_to(table).map(|(child, _)| child.id));
        }
        // In one order for all who come this way.
        others.sort_unstable();
        wanted.extend(others);
        Ok(((asked, Some((before.clone(), plan))), wanted))
    };
    let (asked, planned) = session.lock_planned(TableLock::AccessExclusive, plan).await?;
    let Asked { mut along, what, refusal, notices, .. } = asked;
    notices.into_iter().for_each(|notice| session.notice(notice));
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let Some((before, plan)) = planned else { return Ok(()) };
    plan.check(&what, cascade)?;
    let Plan { mut edits, narrowed, broken, .. } = plan;
    along.extend(broken.iter().map(|dependent| dependent.what.clone()));
    tell_cascade(session, &along);
    edits.extend(broken.into_iter().flat_map(|dependent| dependent.edits));
    let rows = narrowed::sources(session, &narrowed)?;
    session.txn()?.edit_catalog_over(&before, edits)?;
    narrowed::move_rows(session, rows).await
}

/// Puts a definition in the place of another, unless that breaks something: 2BP01.
pub(crate) fn replace(session: &mut Session, edit: CatalogEdit, what: &str) -> Result<()> {
    let before = session.txn()?.catalog();
    let plan = Plan::new(session, &before, &[edit], false)?;
    plan.check(what, None)?;
    session.txn()?.edit_catalog(plan.edits)?;
    Ok(())
}

/// Broken views. Those that read a materialized view break when it goes.
fn all_broken_views(session: &Session, before: &Arc<Catalog>, after: &Arc<Catalog>) -> Result<Vec<Dependent>> {
    let mut broken = broken_views(session, before, after);
    let mut after = after.clone();
    let mut seen = 0;
    while seen < broken.len() {
        let edits = broken[seen..].iter().flat_map(|dependent| &dependent.edits);
        let tables: Vec<CatalogEdit> =
            edits.filter(|edit| matches!(edit, CatalogEdit::DropTable(_))).cloned().collect();
        seen = broken.len();
        if tables.is_empty() {
            break;
        }
        after = Arc::new(after.apply(&tables).map_err(basalt_engine::Error::from)?);
        for dependent in broken_views(session, before, &after) {
            if !broken.iter().any(|known| known.edits == dependent.edits) {
                broken.push(dependent);
            }
        }
    }
    Ok(broken)
}

/// Views that gave something before that they do not give after.
fn broken_ids(session: &Session, before: &Arc<Catalog>, after: &Arc<Catalog>) -> Vec<ObjectId> {
    let gone: Vec<u32> =
        before.sequences.keys().filter(|id| !after.sequences.contains_key(id)).map(|id| id.0).collect();
    let broken = after.kept_queries().filter(|view| {
        if gone.iter().any(|oid| pinned::names_object(&view.sql, *oid)) {
            return true;
        }
        let was = shape(session, before, view);
        was.is_some() && was != shape(session, after, view)
    });
    broken.map(|view| view.id).collect()
}

/// Types and sources of a view's columns; `None` if its text does not bind or no longer gives them.
fn shape(session: &Session, catalog: &Arc<Catalog>, view: &ViewDef) -> Option<Vec<(DataType, u32, i16)>> {
    let query = parse_query_text(&view.sql).ok()?;
    let eval = session.eval_context(Vec::new(), catalog);
    let ctx = session.bind_context(catalog, &Arc::from(view.sql.as_str()), &eval);
    let bound = bind::bind_query(&ctx, &query, &mut ParamTypes::none()).ok()?;
    let text = |ty: DataType| if ty == DataType::Unknown { DataType::Text } else { ty };
    let mut shape: Vec<(DataType, u32, i16)> =
        bound.columns.into_iter().map(|column| (text(column.ty), column.table_oid, column.column_no)).collect();
    shape.truncate(view.columns.len());
    (shape.len() == view.columns.len()).then_some(shape)
}

/// Foreign keys whose referenced table, columns or unique index go.
fn references_left(session: &Session, before: &Catalog, after: &Catalog) -> Vec<Dependent> {
    let mut dependents = Vec::new();
    for table in after.tables.values() {
        for key in &table.foreign_keys {
            let Some(parent) = before.table(key.parent) else { continue };
            let parent_name = shown(session, before, parent.namespace, &parent.name);
            let on = match after.table(key.parent) {
                None => format!("table {parent_name}"),
                Some(now) => {
                    let gone = key.parent_columns.iter().find(|id| now.column(**id).dropped);
                    let has_key =
                        now.primary_key.as_ref().is_some_and(|primary| primary.constraint_id == key.parent_index);
                    match gone {
                        Some(id) => format!("column {} of table {parent_name}", parent.column(*id).name),
                        None if has_key || now.index(key.parent_index).is_some() => continue,
                        None => format!("index {}", key_name(parent, key.parent_index)),
                    }
                }
            };
            let table_name = shown(session, after, table.namespace, &table.name);
            dependents.push(Dependent {
                what: format!("constraint {} on table {table_name}", key.name),
                on,
                edits: vec![CatalogEdit::DropForeignKey { table: table.id, key: key.id }],
            });
        }
    }
    dependents
}

fn key_name(table: &TableDef, id: ObjectId) -> String {
    let index = table.index(id).map(|index| index.name.clone());
    index.or(table.primary_key.as_ref().map(|key| key.constraint_name.clone())).unwrap_or_default()
}

fn broken_views(session: &Session, before: &Arc<Catalog>, after: &Arc<Catalog>) -> Vec<Dependent> {
    let ids = broken_ids(session, before, after);
    let broken = after.kept_queries().filter(|view| ids.contains(&view.id));
    let dependents = broken.map(|view| {
        let (kind, edit) = match after.table(view.id) {
            Some(_) => ("materialized view", CatalogEdit::DropTable(view.id)),
            None => ("view", CatalogEdit::DropView(view.id)),
        };
        Dependent {
            what: format!("{kind} {}", shown(session, after, view.namespace, &view.name)),
            on: first_cause(session, before, after, &view, &ids),
            edits: vec![edit],
        }
    });
    dependents.collect()
}

/// The object that a broken view reads directly and that changed, or another broken view.
fn first_cause(session: &Session, before: &Catalog, after: &Catalog, view: &ViewDef, broken: &[ObjectId]) -> String {
    let name = |namespace, name: &str| shown(session, before, namespace, name);
    let read = relations_of(before, &view.sql);
    for relation in &read {
        match relation {
            Relation::Table(table) if after.tables.get(&table.id) != Some(table) => {
                let gone = table.live_columns().find(|column| {
                    let now = after.tables.get(&table.id).map(|now| now.column(column.id));
                    now.is_some_and(|now| now.dropped || now.name != column.name)
                });
                let of = format!("{} {}", table.kind_word(), name(table.namespace, &table.name));
                return gone.map_or(of.clone(), |column| format!("column {} of {of}", column.name));
            }
            Relation::View(other) if broken.contains(&other.id) || after.views.get(&other.id) != Some(other) => {
                return format!("view {}", name(other.namespace, &other.name));
            }
            Relation::Sequence(sequence) if !after.sequences.contains_key(&sequence.id) => {
                return format!("sequence {}", name(sequence.namespace, &sequence.name));
            }
            _ => {}
        }
    }
    "it".to_string()
}

/// What a view's text reads.
fn relations_of(catalog: &Catalog, sql: &str) -> Vec<Relation> {
    let Ok(query) = parse_query_text(sql) else { return Vec::new() };
    let ids = pinned::relations_in(&query).into_iter();
    let table = |id| catalog.table(id).cloned().map(Relation::Table);
    let view = |id| catalog.views.get(&id).cloned().map(Relation::View);
    let sequence = |id| catalog.sequences.get(&id).cloned().map(Relation::Sequence);
    ids.filter_map(|id| table(id).or_else(|| view(id)).or_else(|| sequence(id))).collect()
}

/// How many columns a view's text gives; `None` if it does not bind.
pub(crate) fn width(session: &Session, catalog: &Arc<Catalog>, view: &ViewDef) -> Option<usize> {
    let query = parse_query_text(&view.sql).ok()?;
    let eval = session.eval_context(Vec::new(), catalog);
    let ctx = session.bind_context(catalog, &Arc::from(view.sql.as_str()), &eval);
    let bound = bind::bind_query(&ctx, &query, &mut ParamTypes::none()).ok()?;
    Some(bound.columns.len())
}
