//! Unnamed statements that come again: drivers that prepare nothing send Parse with every execution.
//!
//! A session keeps the last texts with what came of them, and takes that again as long as nothing has changed that
//! parsing or binding looks at.

use super::Session;
use super::inline::RECENT_TEXTS;
use super::prepared::Prepared;
use super::surroundings::Surroundings;
use crate::error::Result;
use crate::plans::TEXT_BYTES_MAX;
use crate::syntax::Statement;
use basalt_engine::Txn;
use std::sync::Arc;

pub(super) struct Parsed {
    text: Box<str>,
    param_oids: Box<[u32]>,
    around: Arc<Surroundings>,
    prepared: Arc<Prepared>,
}

impl Session {
    /// Parse of the unnamed statement, if its text is known; then nothing is waited for. `None`: it takes
    /// [`Session::prepare`], and nothing has happened.
    pub fn prepare_known(&mut self, name: &str, sql: &str, param_oids: &[u32]) -> Option<Result<()>> {
        if !name.is_empty() || self.parsed.is_empty() || self.edits_catalog() {
            return None;
        }
        // Privileges are those of who the session is now.
        self.follow_roles();
        let around = self.surroundings(&self.db.engine().catalog());
        let known = self.parsed[self.parsed_slot(sql)].as_ref()?;
        let same = *known.text == *sql && *known.param_oids == *param_oids && Arc::ptr_eq(&known.around, &around);
        let prepared = same.then(|| known.prepared.clone())?;
        let result = self.refuse_if_failed();
        if result.is_ok() {
            self.statements.insert(String::new(), prepared);
        }
        Some(self.extended(result, sql))
    }

    /// Notes what came of a text, if the same would come of it another time.
    pub(super) fn note_parsed(&mut self, sql: &str, param_oids: &[u32]) {
        let Some(prepared) = self.statements.get("").cloned() else { return };
        // A string may be a moment (`date 'today'`), which is read when the statement is bound.
        let lasts = prepared.statement.as_ref().is_some_and(Statement::has_plan) && !sql.contains('\'');
        let told = !self.notices.is_empty() || !self.bind_warnings.lock().is_empty();
        if !lasts || told || sql.contains("$$") || sql.len() > TEXT_BYTES_MAX || self.edits_catalog() {
            return;
        }
        let around = self.surroundings(&self.db.engine().catalog());
        let slot = self.parsed_slot(sql);
        if self.parsed.is_empty() {
            self.parsed.resize_with(RECENT_TEXTS, || None);
        }
        self.parsed[slot] = Some(Parsed { text: sql.into(), param_oids: param_oids.into(), around, prepared });
    }

    /// DISCARD PLANS.
    pub(crate) fn forget_plans(&mut self) {
        self.statements.values().for_each(|prepared| *prepared.plan.lock() = None);
        self.parsed.clear();
    }

    fn parsed_slot(&self, sql: &str) -> usize {
        self.text_hasher.hash_one(sql) as usize % RECENT_TEXTS
    }

    fn edits_catalog(&self) -> bool {
        self.block.txn.as_ref().is_some_and(Txn::edits_catalog)
    }
}
