//! Statements that need not wait for anybody: run on the spot, their rows straight into the client's buffer.

use super::outcome::Columns;
use super::prepared::{Body, KnownText, Prepared};
use super::{Scope, Session};
use crate::database::Stats;
use crate::error::{Result, SqlError};
use crate::plans::text::{Literals, parametrize};
use crate::plans::{self, Advice, Known, KnownPlan, PlanKey, TEXT_BYTES_MAX};
use crate::row::{Cells, RowOut, RowPlan, RowRun, RowSink, Tried};
use basalt_engine::{Catalog, ReadSet, Reading, TableLock, Txn};
use basalt_expr::EvalContext;
use basalt_types::ReadAt;
use smallvec::SmallVec;
use std::sync::Arc;

/// Texts that a session keeps at hand.
pub(super) const RECENT_TEXTS: usize = 16;

/// How a statement may read at once.
struct Admitted {
    at: ReadAt,
    /// Of a serializable transaction.
    noted: Option<Arc<ReadSet>>,
    catalog: Arc<Catalog>,
    /// Outside of a transaction.
    alone: bool,
}

/// How a statement ended, as its client is told.
pub struct Ended {
    pub verb: &'static str,
    /// If they are told.
    pub rows: Option<u64>,
}

/// A simple query that was run at once.
pub struct AtOnceQuery {
    pub ended: Result<Ended>,
    /// Its transaction is to be ended ([`Session::finish_simple`]) before the client hears how it ended.
    pub commits: bool,
}

/// What became of a run.
enum Ran {
    Done(u64),
    Failed(SqlError),
    /// It has to be begun again.
    Void,
}

impl Session {
    /// Runs a portal to its end, if the row engine has a plan for it and nobody is in the way. `None`: it takes
    /// [`Session::execute`], and nothing has happened.
    pub fn execute_inline(&mut self, portal: &str, sink: &mut dyn RowSink) -> Option<Result<Ended>> {
        let found = self.portals.get(portal)?;
        if found.rows.is_some() || found.done || found.cursor.is_some() {
            return None;
        }
        let (prepared, columns) = (found.prepared.clone(), found.columns.clone());
        if let Body::Known(text) = &prepared.body {
            let ended = self.execute_known(&prepared.sql, text, columns.as_ref(), sink)?;
            if let Some(found) = self.portals.get_mut(portal) {
                found.done = true;
            }
            Stats::add(&self.db.stats().plan_cache_hits, 1);
            return Some(ended);
        }
        let Some((plan, version)) = self.row_plan(&prepared) else {
            return self.execute_at_once(portal, &prepared, sink);
        };
        let columns = columns?;
        let admitted = self.admit_inline(&plan, version)?;
        let found = self.portals.get_mut(portal)?;
        found.done = true;
        let params = std::mem::take(&mut found.params);
        let formats: SmallVec<[i16; 16]> = columns.iter().map(|column| column.format).collect();
        self.statement_begins(&prepared.sql);
        self.runs_bound();
        let eval = self.eval_context(params, &admitted.catalog);
        match self.run_inline(&plan, &admitted, &eval, &formats, sink) {
            Ran::Done(rows) => {
                self.inline_done(rows, &admitted);
                Some(Ok(Ended { verb: "SELECT", rows: Some(rows) }))
            }
            Ran::Failed(error) => {
                self.statement_failed(&error);
                Some(Err(error))
            }
            Ran::Void => {
                self.give_up();
                if let Some(found) = self.portals.get_mut(portal) {
                    (found.done, found.params) = (false, eval.params.clone());
                }
                None
            }
        }
    }

    /// `None`: the text has to be parsed and run, by who tells its errors, too; nothing has happened.
    fn execute_known(
        &mut self,
        sql: &Arc<str>,
        KnownText { known, values }: &KnownText,
        columns: Option<&Columns>,
        sink: &mut dyn RowSink,
    ) -> Option<Result<Ended>> {
        let around = self.surroundings(&self.db.engine().catalog());
        if !known.is_around(&around.words) {
            return None;
        }
        let formats = columns.into_iter().flat_map(|columns| columns.iter()).map(|column| column.format);
        let formats: SmallVec<[i16; 16]> = formats.collect();
        let version = known.catalog_version;
        let plan = match &known.plan {
            KnownPlan::Read(plan) => plan,
            KnownPlan::AtOnce { at_once, bound } => {
                let values = |_: &EvalContext| Some(values.clone());
                return self.write_known(sql, version, (at_once, bound), values, &formats, sink);
            }
        };
        let admitted = self.admit_inline(plan, version)?;
        self.statement_begins(sql);
        self.runs_bound();
        let eval = self.eval_context(values.clone(), &admitted.catalog);
        match self.run_inline(plan, &admitted, &eval, &formats, sink) {
            Ran::Done(rows) => {
                self.inline_done(rows, &admitted);
                Some(Ok(Ended { verb: "SELECT", rows: Some(rows) }))
            }
            Ran::Failed(_) | Ran::Void => {
                self.give_up();
                None
            }
        }
    }

    /// Runs the one statement of a simple query, if the plan cache knows its text but for the literals; describes its
    /// rows. `None`: it takes the ordinary path, and nothing has happened.
    pub fn query_inline(&mut self, sql: &str, sink: &mut dyn RowSink) -> Option<AtOnceQuery> {
        let enabled = self.settings.effective().row_engine;
        if !enabled || sql.len() > TEXT_BYTES_MAX || self.block.scope == Scope::Implicit {
            return None;
        }
        self.portals.remove("");
        // Privileges are those of who the session is now.
        self.follow_roles();
        let mut text = std::mem::take(&mut self.text);
        let mut literals = Literals::new();
        let done = match parametrize(sql, &mut text, &mut literals) {
            true => self.query_known(sql, &text, &literals, sink),
            false => None,
        };
        self.text = text;
        Stats::add(&self.db.stats().plan_cache_hits, u64::from(done.is_some()));
        done
    }

    fn query_known(
        &mut self,
        sql: &str,
        text: &[u8],
        literals: &Literals<'_>,
        sink: &mut dyn RowSink,
    ) -> Option<AtOnceQuery> {
        let catalog = self.db.engine().catalog();
        let around = self.surroundings(&catalog);
        let known = self.known(sql, text, literals, &catalog, &around.words)?;
        let (plan, columns) = match &known.plan {
            KnownPlan::Read(plan) => (plan, known.columns.as_ref()?),
            KnownPlan::AtOnce { at_once, bound } => {
                let mark = sink.mark();
                let columns = known.columns.as_deref();
                columns.into_iter().for_each(|columns| sink.describe(columns));
                let formats: SmallVec<[i16; 16]> = SmallVec::from_elem(0, columns.map_or(0, <[_]>::len));
                let values = |eval: &EvalContext| plans::values(literals, &known.types, eval);
                let plan = (at_once, bound);
                let ended = self.write_known(&sql.into(), known.catalog_version, plan, values, &formats, sink);
                if ended.is_none() {
                    sink.back_to(mark);
                }
                let ended = ended?;
                let commits = ended.is_err() || self.block.scope == Scope::Implicit;
                return Some(AtOnceQuery { ended, commits });
            }
        };
        // The statement is about to begin.
        let statement_micros = self.db.os().clock.unix_micros();
        let now_micros = if self.block.scope == Scope::None { statement_micros } else { self.block.now_micros };
        let eval = EvalContext { now_micros, statement_micros, ..around.eval.clone() };
        let params = plans::values(literals, &known.types, &eval)?;
        let admitted = self.admit_inline(plan, known.catalog_version)?;
        let formats: SmallVec<[i16; 16]> = SmallVec::from_elem(0, columns.len());
        self.statement_begins(&Arc::from(sql));
        self.runs_bound();
        let mark = sink.mark();
        sink.describe(columns);
        let eval = self.eval_context(params, &admitted.catalog);
        match self.run_inline(plan, &admitted, &eval, &formats, sink) {
            Ran::Done(rows) => {
                self.inline_done(rows, &admitted);
                if self.block.scope == Scope::None {
                    self.portals.retain(|portal| portal.hold);
                }
                Some(AtOnceQuery { ended: Ok(Ended { verb: "SELECT", rows: Some(rows) }), commits: false })
            }
            // An error is told by who runs it again.
            Ran::Failed(_) | Ran::Void => {
                sink.back_to(mark);
                self.give_up();
                None
            }
        }
    }

    /// The statement is begun again on the ordinary path.
    pub(super) fn give_up(&mut self) {
        self.interrupt.stop();
        self.forget_told();
        self.running = None;
    }

    /// What is known of a text, if it is worth knowing.
    pub(super) fn known(
        &mut self,
        sql: &str,
        text: &[u8],
        literals: &Literals<'_>,
        catalog: &Arc<Catalog>,
        around: &Arc<str>,
    ) -> Option<Arc<Known>> {
        let slot = self.text_hasher.hash_one(text) as usize % RECENT_TEXTS;
        let is_this = |known: &Arc<Known>| {
            known.catalog_version == catalog.version && *known.key.text == *text && known.is_around(around)
        };
        if let Some(known) = self.recent.get(slot).and_then(Option::as_ref).filter(|known| is_this(known)) {
            self.db.plans().note_use(known);
            return Some(known.clone());
        }
        let key = PlanKey { text: text.into(), around: around.clone() };
        let known = match self.db.plans().advise(&key, catalog.version) {
            Advice::Known(known) => known,
            Advice::Leave => return None,
            Advice::Learn => {
                let known = plans::learn(self, catalog, sql, &key, literals);
                self.db.plans().tell(key, catalog.version, known.clone());
                known?
            }
        };
        if self.recent.is_empty() {
            self.recent.resize(RECENT_TEXTS, None);
        }
        self.recent[slot] = Some(known.clone());
        Some(known)
    }

    fn inline_done(&mut self, rows: u64, admitted: &Admitted) {
        let stats = self.db.stats();
        Stats::add(&stats.rows_returned, rows);
        Stats::add(&stats.commits, u64::from(admitted.alone));
        self.note_rows(rows);
        self.statement_done();
    }

    /// The plan, and the version of the catalog that it is for.
    fn row_plan(&self, prepared: &Prepared) -> Option<(Arc<RowPlan>, u64)> {
        let cached = prepared.plan.lock();
        let cached = cached.as_ref().filter(|plan| Arc::ptr_eq(&plan.settings, self.settings.effective()))?;
        Some((cached.row.clone()?, cached.catalog_version))
    }

    /// The snapshot comes first, then the catalog, which is at least as new. A statement outside of transactions takes
    /// no lock: who has a table alone is seen, and whoever takes it later is not seen by this snapshot.
    fn admit_inline(&mut self, plan: &RowPlan, version: u64) -> Option<Admitted> {
        if !plan.is_promising() {
            return None;
        }
        let engine = self.db.engine();
        if self.block.scope == Scope::None {
            let effective = self.settings.effective();
            if !plan.timeless || engine.is_table_excluded() {
                return None;
            }
            // Commits of the session's own that it did not wait for: it has to now.
            if effective.synchronous_commit && self.version > engine.published() {
                return None;
            }
            let at = self.snapshot.begin(self.version);
            let catalog = engine.catalog();
            if catalog.version != version || catalog.committed > at.snapshot {
                self.snapshot.end();
                return None;
            }
            return Some(Admitted { at, noted: None, catalog, alone: true });
        }
        if self.block.is_busy() {
            return None;
        }
        if self.block.txn.as_ref().is_some_and(Txn::edits_catalog) {
            return None;
        }
        self.next_statement().ok()?;
        let engine = self.db.engine();
        let catalog = engine.catalog();
        let txn = self.block.txn.as_mut()?;
        if catalog.version != version || !txn.sees(&catalog) || plan.indexed && !txn.sees_indexes(&catalog) {
            return None;
        }
        let mut tables = plan.tables.iter();
        let locked = tables.all(|table| matches!(txn.try_lock_table(*table, TableLock::AccessShare), Ok(true)));
        // Whoever had a table before may have changed it.
        let stays = locked && engine.catalog_at_hand().version == version;
        stays.then(|| Admitted { at: txn.read_at(), noted: txn.reads(), catalog, alone: false })
    }

    fn run_inline(
        &mut self,
        plan: &RowPlan,
        admitted: &Admitted,
        eval: &EvalContext,
        formats: &[i16],
        sink: &mut dyn RowSink,
    ) -> Ran {
        let engine = self.db.engine();
        let reading = Reading { at: admitted.at, noted: admitted.noted.as_deref() };
        let run = RowRun { engine, reading, eval, scratch: &mut self.scratch };
        let mark = sink.mark();
        let result = plan.run(run, &mut RowOut::Cells(Cells { sink, formats }));
        let result = result.and_then(|rows| self.check_age().map(|()| rows));
        // Without a lock tables may have been changed or dropped meanwhile: what was read then is nothing.
        let void = admitted.alone && engine.catalog_at_hand().version != admitted.catalog.version;
        if admitted.alone {
            self.snapshot.end();
        }
        self.took_too_much = matches!(result, Ok(Tried::TooMuch));
        match result {
            Ok(Tried::Done(rows)) if !void => Ran::Done(rows),
            Err(error) if !void => Ran::Failed(error),
            _ => {
                sink.back_to(mark);
                Ran::Void
            }
        }
    }
}
