//! What the relations of a statement have to be allowed for (PostgreSQL manual 5.7): noted while names are bound,
//! checked by `statement::allowed` before the statement runs. Relations inside of a view are needed by the view's
//! owner, all others by the session's user.

use super::binder::Binder;
use crate::error::{Result, SqlError};
use crate::plan::ColId;
use ahash::AHashSet;
use basalt_engine::privilege::{self, AclKey, ObjectClass, Privileges};
use basalt_types::ObjectId;
use std::sync::Arc;

/// One mention of a relation.
#[derive(Clone, Debug)]
pub struct Need {
    pub relation: ObjectId,
    /// A view's owner.
    pub acting: Option<Arc<str>>,
    /// On the relation, or on each of the columns that are meant.
    pub wanted: Privileges,
    /// SELECT is needed too if one of its columns is read.
    pub is_target: bool,
    /// Columns and their numbers.
    pub columns: Vec<(ColId, i16)>,
    /// Columns that are written, by INSERT or by UPDATE: numbers.
    pub written: Vec<(Privileges, i16)>,
}

/// What one statement needs.
#[derive(Debug, Default)]
pub struct Needs {
    /// Of a superuser, only what is needed by owners of views.
    pub superuser: bool,
    pub user: String,
    pub list: Vec<Need>,
    /// Where those of the command's target begin.
    target: usize,
    /// Columns that the statement reads.
    pub used: AHashSet<ColId>,
}

impl Needs {
    pub fn of(superuser: bool, user: &str) -> Needs {
        Needs { superuser, user: user.to_string(), ..Needs::default() }
    }
}

impl Binder<'_> {
    /// Notes a relation that the statement names.
    pub(super) fn need(
        &mut self,
        relation: ObjectId,
        wanted: Privileges,
        is_target: bool,
        columns: impl Iterator<Item = (ColId, i16)>,
    ) {
        let Some(needs) = &self.ctx.needs else { return };
        let mut needs = needs.lock();
        if needs.superuser && self.acting.is_none() {
            return;
        }
        let acting = self.acting.clone();
        let columns = columns.collect();
        needs.list.push(Need { relation, acting, wanted, is_target, columns, written: Vec::new() });
    }

    /// A target is bound next: what is said of one afterwards is said of it.
    pub(super) fn needs_of_next_target(&mut self) {
        if let Some(needs) = &self.ctx.needs {
            let mut needs = needs.lock();
            needs.target = needs.list.len();
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
        let Some(needs) = &self.ctx.needs else { return };
        let mut needs = needs.lock();
        let written: Vec<(Privileges, i16)> = written.map(|column| (wanted, column)).collect();
        let first = needs.target;
        for need in needs.list.iter_mut().skip(first).filter(|need| need.is_target) {
            need.wanted |= wanted;
            need.written.extend(&written);
        }
    }

    /// Other ids under which a target's columns are read.
    pub(super) fn need_again(&mut self, relation: ObjectId, columns: impl Iterator<Item = (ColId, i16)>) {
        let Some(needs) = self.ctx.needs.as_ref().filter(|_| !self.unneeded) else { return };
        let mut needs = needs.lock();
        if let Some(need) = needs.list.iter_mut().rev().find(|need| need.is_target && need.relation == relation) {
            need.columns.extend(columns);
        }
    }

    /// Binds something whose columns need no privilege.
    pub(super) fn beyond_needs<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.unneeded, true);
        let result = work(self);
        self.unneeded = outer;
        result
    }

    pub(super) fn note_used(&self, id: ColId) {
        if let Some(needs) = &self.ctx.needs {
            let mut needs = needs.lock();
            if !needs.list.is_empty() {
                needs.used.insert(id);
            }
        }
    }
}
