//! What an error says of a name that means nothing here: what was perhaps meant, or why it cannot be reached.
//! PostgreSQL's rules: among all columns of the statement's relations, those at the least distance, if that is at
//! most 3 and half of the name, and if they are no more than two; a qualifier's distance counts, too.

use super::binder::Binder;
use super::scope::{Scope, ScopeRelation};
use crate::error::SqlError;
use crate::plan::ColId;
use sqlparser::ast::{Ident, ObjectName};

const DISTANCE_MAX: usize = 3;

/// The nearest columns so far, as `relation.column`.
struct Nearest {
    distance: usize,
    first: Option<String>,
    second: Option<String>,
}

impl Nearest {
    fn meet(&mut self, distance: usize, name: impl FnOnce() -> String) {
        if distance < self.distance {
            *self = Nearest { distance, first: Some(name()), second: None };
        } else if distance == self.distance {
            match (&self.first, &self.second) {
                // Three are too many: only something nearer will do.
                (_, Some(_)) => *self = Nearest { distance: distance.wrapping_sub(1), first: None, second: None },
                (Some(_), None) => self.second = Some(name()),
                (None, None) if self.distance <= DISTANCE_MAX => self.first = Some(name()),
                (None, None) => {}
            }
        }
    }
}

/// The relations of a level in the order in which it names them, whether or not they can be referred to.
fn entries(scope: &Scope) -> Vec<&ScopeRelation> {
    let mut found = scope.behind.as_deref().map(entries).unwrap_or_default();
    found.extend(scope.out_of_sight.iter().chain(&scope.relations));
    found
}

/// Whether a relation only gives other names to the columns of joined ones.
fn is_join(relation: &ScopeRelation, all: &[&ScopeRelation]) -> bool {
    let elsewhere = |id: ColId| {
        let mut others = all.iter().filter(|other| !std::ptr::eq(**other, relation));
        others.any(|other| other.hidden && other.columns.iter().any(|column| column.id == id))
    };
    !relation.hidden && !relation.columns.is_empty() && relation.columns.iter().all(|column| elsewhere(column.id))
}

impl Binder<'_> {
    /// 42703 for a column that is not there.
    #[cold]
    pub(super) fn no_such_column(&self, qualifier: Option<&str>, name: &str) -> SqlError {
        let error = match qualifier {
            Some(relation) => SqlError::new("42703", format!("column {relation}.{name} does not exist")),
            None => SqlError::new("42703", format!("column \"{name}\" does not exist")),
        };
        let mut nearest = Nearest { distance: DISTANCE_MAX + 1, first: None, second: None };
        for scope in self.scopes.iter().rev() {
            let entries = entries(scope);
            for relation in entries.iter().filter(|relation| !is_join(relation, &entries)) {
                let penalty = qualifier.map_or(0, |given| distance(given, &relation.name));
                for column in &relation.columns {
                    let apart = distance(&column.name, name);
                    if penalty == 0 && apart == 0 {
                        return error.with_hint(format!(
                            "There is a column named \"{name}\" in table \"{}\", but it cannot be referenced from this \
                             part of the query.",
                            relation.name
                        ));
                    }
                    if penalty <= nearest.distance && apart <= name.len() / 2 {
                        nearest.meet(apart + penalty, || format!("{}.{}", relation.name, column.name));
                    }
                }
            }
        }
        match (nearest.first, nearest.second) {
            (Some(one), None) => error.with_hint(format!("Perhaps you meant to reference the column \"{one}\".")),
            (Some(one), Some(other)) => error
                .with_hint(format!("Perhaps you meant to reference the column \"{one}\" or the column \"{other}\".")),
            _ => error,
        }
    }

    /// 42P01 for a relation that is not there, or out of reach.
    #[cold]
    pub(super) fn no_such_entry(&self, schema: Option<&str>, name: &str) -> SqlError {
        let parts = schema.into_iter().chain([name]).map(|part| Ident::with_quote('"', part)).collect::<Vec<_>>();
        let meant = self.ctx.relation(&ObjectName::from(parts)).ok().map(|relation| relation.oid());
        for scope in self.scopes.iter().rev() {
            let entries = entries(scope);
            let same = |entry: &&ScopeRelation| {
                meant.is_some_and(|meant| entry.oid == meant) || (schema.is_none() && entry.name == name)
            };
            let Some(entry) = entries.into_iter().find(same) else { continue };
            let is_visible = |scope: &Scope| {
                scope.relations.iter().any(|other| other.name == entry.name && other.oid == entry.oid && !other.hidden)
            };
            let hint = match entry.name != name && self.scopes.iter().any(is_visible) {
                true => format!("Perhaps you meant to reference the table alias \"{}\".", entry.name),
                false => out_of_reach(&entry.name),
            };
            return invalid_reference("42P01", name).with_hint(hint);
        }
        SqlError::new("42P01", format!("missing FROM-clause entry for table \"{name}\""))
    }
}

/// The hint for what is part of the statement, but not here.
pub(super) fn out_of_reach(name: &str) -> String {
    format!("There is an entry for table \"{name}\", but it cannot be referenced from this part of the query.")
}

pub(super) fn invalid_reference(sqlstate: &'static str, name: &str) -> SqlError {
    SqlError::new(sqlstate, format!("invalid reference to FROM-clause entry for table \"{name}\""))
}

/// How many characters are to be added, left out or changed between two names.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
