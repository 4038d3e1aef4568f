//! Writes, locks and BEGIN, done where their message is read ([`crate::statement::at_once`]).

use super::inline::Ended;
use super::prepared::{Bound, Prepared};
use super::{Scope, Session};
use crate::database::Stats;
use crate::error::{Result, SqlError};
use crate::row::{Cells, RowSink};
use crate::statement::at_once::{self, AtOnce};
use crate::syntax::{Statement, TransactionVerb};
use basalt_engine::{Catalog, Position};
use basalt_expr::EvalContext;
use basalt_types::Datum;
use smallvec::SmallVec;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

impl Session {
    /// As [`Session::execute_inline`], for a portal that is not begun.
    pub(super) fn execute_at_once(
        &mut self,
        portal: &str,
        prepared: &Arc<Prepared>,
        sink: &mut dyn RowSink,
    ) -> Option<Result<Ended>> {
        let statement = prepared.statement()?;
        if let Statement::Transaction(verb @ TransactionVerb::Begin { modes, .. }) = statement {
            if self.block.scope != Scope::None {
                return None;
            }
            self.portals.get_mut(portal)?.done = true;
            self.statement_begins(&prepared.sql);
            return Some(match self.begin(*modes) {
                Ok(()) => {
                    self.statement_done();
                    Ok(Ended { verb: verb.tag(), rows: None })
                }
                Err(error) => {
                    self.statement_failed(&error);
                    Err(error)
                }
            });
        }
        let (at_once, bound, version) = {
            let cached = prepared.plan.lock();
            let is_current = |settings| Arc::ptr_eq(settings, self.settings.effective());
            let cached = cached.as_ref().filter(|plan| is_current(&plan.settings))?;
            (cached.at_once.clone()?, cached.bound.clone(), cached.catalog_version)
        };
        let catalog = self.begin_at_once(&prepared.sql, &at_once, version)?;
        let found = self.portals.get_mut(portal)?;
        found.done = true;
        let formats = found.columns.iter().flat_map(|columns| columns.iter()).map(|column| column.format);
        let formats: SmallVec<[i16; 16]> = formats.collect();
        let params = std::mem::take(&mut found.params);
        let eval = self.eval_context(params, &catalog);
        match self.poll_at_once(&at_once, &bound, &eval, &formats, sink) {
            Polled::Done(ended) => Some(Ok(ended)),
            Polled::Failed(error, _) => {
                self.statement_failed(&error);
                Some(Err(error))
            }
            Polled::Waits => {
                self.give_up();
                let found = self.portals.get_mut(portal)?;
                found.done = false;
                found.params = eval.params.clone();
                None
            }
        }
    }

    /// The same for a text that the plan cache knows, with the values of its literals. `None`: nothing has happened, and who
    /// runs it again tells its errors. An error is one that could not be undone.
    pub(super) fn write_known(
        &mut self,
        sql: &Arc<str>,
        version: u64,
        (at_once, bound): (&AtOnce, &Bound),
        values: impl FnOnce(&EvalContext) -> Option<Vec<Datum>>,
        formats: &[i16],
        sink: &mut dyn RowSink,
    ) -> Option<Result<Ended>> {
        let catalog = self.begin_at_once(sql, at_once, version)?;
        let eval = self.eval_context(Vec::new(), &catalog);
        let Some(params) = values(&eval) else {
            self.give_up();
            return None;
        };
        drop(eval);
        let eval = self.eval_context(params, &catalog);
        match self.poll_at_once(at_once, bound, &eval, formats, sink) {
            Polled::Done(ended) => return Some(Ok(ended)),
            Polled::Failed(error, before) => {
                let back = before.ok_or(error).and_then(|before| self.undo_to(before));
                match back {
                    Ok(()) => self.give_up(),
                    Err(error) => {
                        self.statement_failed(&error);
                        return Some(Err(error));
                    }
                }
            }
            Polled::Waits => self.give_up(),
        }
        None
    }

    /// Begins a statement and takes its locks. `None`: it takes the ordinary path.
    fn begin_at_once(&mut self, sql: &Arc<str>, at_once: &AtOnce, version: u64) -> Option<Arc<Catalog>> {
        if self.block.is_busy() || self.block.read_only || self.db.engine().catalog_at_hand().version != version {
            return None;
        }
        self.statement_begins(sql);
        self.runs_bound();
        self.ensure_block();
        let admitted = self.admit_at_once(at_once, version);
        if admitted.is_none() {
            self.give_up();
        }
        admitted
    }

    /// Takes its locks, if nobody is in the way and the plan is still good.
    fn admit_at_once(&mut self, at_once: &AtOnce, version: u64) -> Option<Arc<Catalog>> {
        if self.block.read_only {
            return None;
        }
        let txn = self.next_statement().ok()?;
        let catalog = txn.catalog();
        if txn.edits_catalog() || !txn.sees(&catalog) || catalog.version != version {
            return None;
        }
        let mut locks = at_once.locks.iter();
        let locked = locks.all(|(table, mode)| matches!(txn.try_lock_table(*table, *mode), Ok(true)));
        // Whoever had a table before may have changed it.
        (locked && txn.catalog_version() == version).then_some(catalog)
    }

    fn poll_at_once(
        &mut self,
        at_once: &AtOnce,
        bound: &Bound,
        eval: &Arc<EvalContext>,
        formats: &[i16],
        sink: &mut dyn RowSink,
    ) -> Polled {
        let before = match self.txn() {
            Ok(txn) => txn.position(),
            Err(error) => return Polled::Failed(error, None),
        };
        let mark = sink.mark();
        let polled = {
            let cells = Cells { sink: &mut *sink, formats };
            let run = pin!(at_once::run(self, at_once, bound, eval, cells));
            run.poll(&mut Context::from_waker(Waker::noop()))
        };
        let checked = polled.map(|ended| ended.and_then(|ended| self.check_age().map(|()| ended)));
        let result = match checked {
            Poll::Ready(Ok((verb, rows))) => {
                if !at_once.types.is_empty() {
                    Stats::add(&self.db.stats().rows_returned, rows);
                }
                self.note_rows(rows);
                self.statement_done();
                return Polled::Done(Ended { verb, rows: Some(rows) });
            }
            Poll::Ready(Err(error)) => Polled::Failed(error, Some(before)),
            // It has to wait: it has not happened.
            Poll::Pending => match self.undo_to(before) {
                Ok(()) => Polled::Waits,
                Err(error) => Polled::Failed(error, None),
            },
        };
        sink.back_to(mark);
        result
    }

    /// Undoes what a statement has done that will begin again.
    fn undo_to(&mut self, to: Position) -> Result<()> {
        self.forget_told();
        Ok(self.txn()?.undo_to(to)?)
    }
}

enum Polled {
    Done(Ended),
    /// With the place that its transaction may go back to, if it can.
    Failed(SqlError, Option<Position>),
    /// For others: nothing has happened.
    Waits,
}
