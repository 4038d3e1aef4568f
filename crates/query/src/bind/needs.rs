//! What the relations of a statement have to be allowed for (PostgreSQL manual 5.7): noted while names are bound,
//! checked by `statement::allowed` before the statement runs. Relations inside of a view are needed by the view's
//! owner, all others by the session's user.

use super::binder::Binder;
use crate::error::{Result, SqlError};
use crate::plan::ColId;
use ahash::AHashSet;
use basalt_engine::ViewDef;
use basalt_engine::privilege::{self, AclKey, ObjectClass, Privileges};
use basalt_types::ObjectId;
use std::sync::Arc;

/// A column as one level of a statement reads it: the statement itself, or the body of a view, which may pass a column
/// on under the same id.
pub type Reading = (u32, ColId);

/// One mention of a relation.
#[derive(Clone, Debug)]
pub struct Need {
    pub relation: ObjectId,
    /// 0: the statement names it; otherwise the body of a view.
    pub level: u32,
    /// A view's owner.
    pub acting: Option<Arc<str>>,
    /// On the relation, or on each of the columns that are meant.
    pub wanted: Privileges,
    /// What a command changes: a number for those of one command, a table and the views of it that lead there, the
    /// one that was named last. SELECT is needed of all if one of its columns is read.
    pub target: Option<usize>,
    /// Columns and their numbers.
    pub columns: Vec<(Reading, i16)>,
    /// Columns that are written, by INSERT or by UPDATE: numbers.
    pub written: Vec<(Privileges, i16)>,
    /// Columns that are read without being named.
    pub read: Vec<i16>,
    /// Of a target that is a view: numbers of the table's columns, and of its own that they are.
    of_base: Vec<(i16, i16)>,
}

impl Need {
    fn own_number(&self, base: i16) -> i16 {
        self.of_base.iter().find(|(known, _)| *known == base).map_or(base, |(_, own)| *own)
    }

    /// Numbers of the columns that are read.
    pub fn columns_read(&self, used: &AHashSet<Reading>) -> Vec<i16> {
        let named = self.columns.iter().filter(|(reading, _)| used.contains(reading)).map(|(_, number)| *number);
        named.chain(self.read.iter().copied()).collect()
    }
}

/// What one statement needs.
#[derive(Debug, Default)]
pub struct Needs {
    /// Of a superuser, only what is needed by owners of views.
    pub superuser: bool,
    pub user: String,
    pub list: Vec<Need>,
    /// Commands' targets so far.
    targets: usize,
    /// Columns that the statement reads.
    pub used: AHashSet<Reading>,
}

impl Needs {
    pub fn of(superuser: bool, user: &str) -> Needs {
        Needs { superuser, user: user.to_string(), ..Needs::default() }
    }
}

impl Binder<'_> {
    /// Notes a relation that the statement names.
    pub(super) fn need(&mut self, relation: ObjectId, wanted: Privileges, columns: impl Iterator<Item = (ColId, i16)>) {
        self.note_need(relation, wanted, None, columns, Vec::new());
    }

    /// Notes what a command changes; `of_base`: which of its columns are which of the table's.
    pub(super) fn need_of_command(
        &mut self,
        relation: ObjectId,
        wanted: Privileges,
        columns: impl Iterator<Item = (ColId, i16)>,
        of_base: Vec<(i16, i16)>,
    ) {
        let target = self.ctx.needs.as_ref().map(|needs| needs.lock().targets);
        self.note_need(relation, wanted, target, columns, of_base);
    }

    fn note_need(
        &mut self,
        relation: ObjectId,
        wanted: Privileges,
        target: Option<usize>,
        columns: impl Iterator<Item = (ColId, i16)>,
        of_base: Vec<(i16, i16)>,
    ) {
        let Some(needs) = &self.ctx.needs else { return };
        let mut needs = needs.lock();
        if needs.superuser && self.acting.is_none() {
            return;
        }
        let acting = self.acting.clone();
        let columns = columns.map(|(id, number)| ((self.level, id), number)).collect();
        needs.list.push(Need {
            relation,
            level: self.level,
            acting,
            wanted,
            target,
            columns,
            written: Vec::new(),
            read: Vec::new(),
            of_base,
        });
    }

    /// A target is bound next: what is said of one afterwards is said of it.
    pub(super) fn needs_of_next_target(&mut self) {
        if let Some(needs) = &self.ctx.needs {
            needs.lock().targets += 1;
        }
    }

    /// 42501 for a schema that the statement names and the user may not use.
    pub(super) fn check_schema(&self, parts: &[String], place: Option<u32>) -> Result<()> {
        let Some(needs) = self.ctx.needs.as_ref().filter(|_| self.acting.is_none()) else { return Ok(()) };
        let [.., schema, _] = parts else { return Ok(()) };
        let Some(namespace) = self.ctx.namespace(schema) else { return Ok(()) };
        let key = AclKey::of(ObjectClass::Schema, namespace.id);
        let user = needs.lock().user.clone();
        match self.ctx.catalog.privileges(&user, key, &namespace.owner).0 & privilege::USAGE {
            0 if !namespace.name.starts_with(crate::session::names::TEMP_PREFIX) => {
                Err(SqlError::new("42501", format!("permission denied for schema {}", namespace.name)).at(place))
            }
            _ => Ok(()),
        }
    }

    /// More of what the command does to its target, and to which columns of the table.
    pub(super) fn need_more(&mut self, wanted: Privileges, written: impl Iterator<Item = i16>) {
        self.need_more_of(self.command(), wanted, written);
    }

    /// The command whose target was named last.
    pub(super) fn command(&self) -> usize {
        self.ctx.needs.as_ref().map_or(0, |needs| needs.lock().targets)
    }

    /// [`Binder::need_more`] of a command, behind commands within it.
    pub(super) fn need_more_of(&mut self, command: usize, wanted: Privileges, written: impl Iterator<Item = i16>) {
        let Some(needs) = &self.ctx.needs else { return };
        let mut needs = needs.lock();
        let written: Vec<i16> = written.collect();
        let target = Some(command);
        for need in needs.list.iter_mut().filter(|need| need.target == target) {
            need.wanted |= wanted;
            let own: Vec<(Privileges, i16)> = written.iter().map(|column| (wanted, need.own_number(*column))).collect();
            need.written.extend(own);
        }
    }

    /// Columns of the command's table that it reads without naming them.
    pub(super) fn need_to_read(&mut self, columns: impl Iterator<Item = i16>) {
        let Some(needs) = &self.ctx.needs else { return };
        let mut needs = needs.lock();
        let columns: Vec<i16> = columns.collect();
        let target = Some(needs.targets);
        for need in needs.list.iter_mut().filter(|need| need.target == target) {
            let own: Vec<i16> = columns.iter().map(|column| need.own_number(*column)).collect();
            need.read.extend(own);
        }
    }

    /// Other ids under which a target's columns are read.
    pub(super) fn need_again(&mut self, relation: ObjectId, columns: impl Iterator<Item = (ColId, i16)>) {
        let Some(needs) = &self.ctx.needs else { return };
        let mut needs = needs.lock();
        let target = Some(needs.targets);
        if let Some(need) = needs.list.iter_mut().rev().find(|need| need.target == target && need.relation == relation)
        {
            need.columns.extend(columns.map(|(id, number)| ((self.level, id), number)));
        }
    }

    pub(super) fn note_used(&self, id: ColId) {
        if let Some(needs) = &self.ctx.needs {
            let mut needs = needs.lock();
            if needs.targets > 0 || !needs.list.is_empty() {
                needs.used.insert((self.level, id));
            }
        }
    }

    /// Binds what a view is made of, as its owner unless it asks as whoever reads it.
    pub(super) fn inside_view<T>(&mut self, view: &ViewDef, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (scopes, ctes) = (std::mem::take(&mut self.scopes), std::mem::take(&mut self.ctes));
        let acting = if view.asks_as_invoker() { self.acting.clone() } else { Some(Arc::from(view.owner.as_str())) };
        let acting = std::mem::replace(&mut self.acting, acting);
        self.levels += 1;
        let level = std::mem::replace(&mut self.level, self.levels);
        let result = self.deeper(work);
        (self.scopes, self.ctes, self.acting, self.level) = (scopes, ctes, acting, level);
        result
    }
}
