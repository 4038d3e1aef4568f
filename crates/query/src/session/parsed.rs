//! Unnamed statements that come again: drivers that prepare nothing send Parse with every execution, with parameters or
//! with literals.
//!
//! A session keeps the last texts with what came of them, and takes that again as long as nothing has changed that
//! parsing or binding looks at. A text that differs in its literals alone is asked of the plan cache ([`crate::plans`]),
//! as simple queries are: then Parse takes out the literals, and Execute runs the plan that all such texts share. Where that
//! plan does not serve (it would have to wait, it fails, rows are asked for in parts, the catalog, a setting or the role
//! has changed since), the text is parsed after all, and runs as any statement does.

use super::inline::RECENT_TEXTS;
use super::prepared::{Body, KnownText, Prepared};
use super::surroundings::Surroundings;
use super::{Scope, Session};
use crate::error::{Result, SqlError};
use crate::plans::text::{Literals, parametrize};
use crate::plans::{self, Known, KnownPlan, TEXT_BYTES_MAX};
use crate::syntax::Statement;
use basalt_engine::{Catalog, Txn};
use basalt_expr::EvalContext;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
        if !name.is_empty() || self.edits_catalog() {
            return None;
        }
        // Privileges are those of who the session is now.
        self.follow_roles();
        let catalog = self.db.engine().catalog();
        let around = self.surroundings(&catalog);
        let prepared = match self.parsed_before(sql, param_oids, &around) {
            Some(prepared) => prepared,
            None if param_oids.is_empty() => self.known_text(sql, &catalog, &around)?,
            None => return None,
        };
        let result = self.refuse_if_failed();
        match result {
            Ok(()) => drop(self.statements.insert(String::new(), prepared)),
            Err(_) => drop(self.statements.remove("")),
        }
        Some(self.extended(result, sql))
    }

    fn parsed_before(&self, sql: &str, param_oids: &[u32], around: &Arc<Surroundings>) -> Option<Arc<Prepared>> {
        let before = self.parsed.get(self.parsed_slot(sql))?.as_ref()?;
        let same = *before.text == *sql && *before.param_oids == *param_oids && Arc::ptr_eq(&before.around, around);
        same.then(|| before.prepared.clone())
    }

    /// A text without parameters that the plan cache knows but for its literals, which are read now.
    fn known_text(&mut self, sql: &str, catalog: &Arc<Catalog>, around: &Surroundings) -> Option<Arc<Prepared>> {
        if !self.settings.effective().row_engine || sql.len() > TEXT_BYTES_MAX || self.block.failed {
            return None;
        }
        let mut text = std::mem::take(&mut self.text);
        let mut literals = Literals::new();
        let known = match parametrize(sql, &mut text, &mut literals) {
            true => self.known(sql, &text, &literals, catalog, &around.words),
            false => None,
        };
        self.text = text;
        let known = known?;
        let alone = self.block.scope == Scope::None;
        // Those would be refused by whoever executes them, and parsed after all.
        if matches!(&known.plan, KnownPlan::Read(plan) if !plan.is_promising() || alone && !plan.timeless) {
            return None;
        }
        let made_micros = self.db.os().clock.unix_micros();
        let now_micros = if alone { made_micros } else { self.block.now_micros };
        let eval = EvalContext { now_micros, statement_micros: made_micros, ..around.eval.clone() };
        self.asked_moment.store(false, Ordering::Relaxed);
        let values = plans::values(&literals, &known.types, &eval)?;
        // The moment is that of the execution, which is not known yet.
        if self.asked_moment.load(Ordering::Relaxed) {
            return None;
        }
        Some(Arc::new(Prepared {
            name: String::new(),
            sql: sql.into(),
            types: Vec::new(),
            style: Some(self.literal_style()),
            columns: known.columns.clone(),
            body: Body::Known(KnownText { known, values }),
            plan: Mutex::new(None),
            types_of: None,
            from_sql: false,
            made_micros,
        }))
    }

    /// Parses a text that the plan cache knew: it is to run where its plan does not serve. Its literals mean what they meant,
    /// and its columns are those that the client was told, or whoever binds it refuses it.
    pub(super) fn parse_known(&mut self, portal: &str, prepared: &Arc<Prepared>) -> Result<Arc<Prepared>> {
        let parsed = crate::syntax::parse(&prepared.sql)?.pop();
        let parsed = parsed.ok_or_else(|| SqlError::internal("a text that was known is empty"))?;
        let parsed = Arc::new(Prepared {
            name: String::new(),
            sql: parsed.sql,
            types: Vec::new(),
            style: prepared.style,
            columns: prepared.columns.clone(),
            body: Body::Parsed(parsed.statement),
            plan: Mutex::new(None),
            types_of: None,
            from_sql: false,
            made_micros: prepared.made_micros,
        });
        if let Some(unnamed) = self.statements.get_mut("").filter(|unnamed| Arc::ptr_eq(unnamed, prepared)) {
            *unnamed = parsed.clone();
        }
        if let Some(portal) = self.portals.get_mut(portal) {
            portal.prepared = parsed.clone();
        }
        Ok(parsed)
    }

    /// Notes a text that was parsed after all and has run, if what it was known for is still so.
    pub(super) fn note_known(&mut self, known: &Known, parsed: &Arc<Prepared>, sql: &str, around: Arc<Surroundings>) {
        let is_unnamed = self.statements.get("").is_some_and(|unnamed| Arc::ptr_eq(unnamed, parsed));
        if is_unnamed && around.catalog_version() == known.catalog_version && known.is_around(&around.words) {
            self.note_parsed(sql, &[], around);
        }
    }

    /// Notes what came of a text, if the same would come of it another time. `around`: from before it was bound.
    pub(super) fn note_parsed(&mut self, sql: &str, param_oids: &[u32], around: Arc<Surroundings>) {
        let Some(prepared) = self.statements.get("").cloned() else { return };
        // A string may be a moment (`date 'today'`), which is read when the statement is bound.
        let lasts = prepared.statement().is_some_and(Statement::has_plan) && !sql.contains('\'');
        let told = !self.notices.is_empty() || !self.bind_warnings.lock().is_empty();
        if !lasts || told || sql.contains("$$") || sql.len() > TEXT_BYTES_MAX || self.edits_catalog() {
            return;
        }
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

    pub(super) fn edits_catalog(&self) -> bool {
        self.block.txn.as_ref().is_some_and(Txn::edits_catalog)
    }
}
