//! Statements of simple queries; of a query whose text is known nothing is parsed or bound again
//! ([`crate::plans::queries`]).

use super::interrupt::guard;
use super::outcome::Outcome;
use super::prepared::Bound;
use super::{Session, TOLD_BYTES_MAX};
use crate::bind::ParamTypes;
use crate::error::{Result, SqlError};
use crate::plans::queries::{Coming, KnownQuery};
use crate::syntax::{Parsed, Statement};
use basalt_engine::Txn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One statement of a text.
pub struct SimpleStatement {
    parsed: Arc<Parsed>,
    known: Known,
}

enum Known {
    No,
    /// The whole message has come before: it is kept if it may be.
    Again(Box<str>),
    Yes(Arc<KnownQuery>),
}

impl SimpleStatement {
    pub fn statement(&self) -> &Statement {
        &self.parsed.statement
    }
}

impl Session {
    /// Splits and parses a simple query, or finds it. On a syntax error call [`Session::finish_simple`] too.
    pub fn parse_simple(&mut self, sql: &str) -> Result<Vec<SimpleStatement>> {
        // A simple query takes the place of the unnamed portal.
        self.portals.remove("");
        let again = match self.coming(sql) {
            Coming::Known(known) => {
                return Ok(vec![SimpleStatement { parsed: known.parsed.clone(), known: Known::Yes(known) }]);
            }
            Coming::Again => true,
            Coming::First => false,
        };
        let parsed = crate::syntax::parse(sql).inspect_err(|error| self.never_ran(sql, error))?;
        let again = again && parsed.len() == 1;
        let statement = |parsed| {
            let known = if again { Known::Again(sql.into()) } else { Known::No };
            SimpleStatement { parsed: Arc::new(parsed), known }
        };
        Ok(parsed.into_iter().map(statement).collect())
    }

    fn coming(&mut self, sql: &str) -> Coming {
        if self.settings.effective().plans_anew || self.block.txn.as_ref().is_some_and(Txn::edits_catalog) {
            return Coming::First;
        }
        // Privileges are those of who the session is now.
        self.follow_roles();
        let catalog = self.db.engine().catalog();
        let around = self.surroundings(&catalog);
        self.db.queries().look_up(sql, &around.words, catalog.version)
    }

    /// A text that fails before it is a statement that could run.
    pub(super) fn never_ran(&mut self, sql: &str, error: &SqlError) {
        self.statement_begins(&Arc::from(&sql[..sql.floor_char_boundary(TOLD_BYTES_MAX)]));
        self.statement_failed(error);
    }

    /// Runs one statement; several of one message form one implicit transaction. After an error skip the
    /// rest and call [`Session::finish_simple`].
    pub async fn run_simple(&mut self, simple: &SimpleStatement) -> Result<Outcome> {
        let Parsed { sql, statement } = &*simple.parsed;
        self.statement_begins(sql);
        let result = match (&simple.known, statement) {
            (Known::Yes(known), _) => self.dispatch_known(known).await,
            (Known::Again(text), Statement::Query(_)) => self.dispatch_again(&simple.parsed, text).await,
            _ => self.dispatch(statement, sql).await,
        };
        self.note_end(result)
    }

    async fn dispatch_known(&mut self, known: &Arc<KnownQuery>) -> Result<Outcome> {
        self.runs(&known.parsed.statement);
        self.refuse_if_failed()?;
        self.ensure_block();
        let (interrupt, deadline) = (self.interrupt.clone(), self.deadline);
        guard(&interrupt, deadline, pin!(self.run_known(known))).await
    }

    async fn run_known(&mut self, known: &Arc<KnownQuery>) -> Result<Outcome> {
        self.next_statement()?;
        let bound = Bound::Query(known.query.clone());
        if let Some(catalog) = self.take_up(&bound, known.catalog_version).await? {
            let eval = self.eval_context(Vec::new(), &catalog);
            // A transaction may have gone on to another catalog than the text was looked up with.
            if self.surroundings(&catalog).words == known.around {
                return self.run_bound(&bound, &eval).await;
            }
        }
        let Parsed { sql, statement } = &*known.parsed;
        let (bound, eval, _) = self.plan(statement, sql, Vec::new(), ParamTypes::none()).await?;
        self.run_bound(&bound, &eval).await
    }

    async fn dispatch_again(&mut self, parsed: &Arc<Parsed>, text: &str) -> Result<Outcome> {
        self.runs(&parsed.statement);
        self.refuse_if_failed()?;
        self.ensure_block();
        let (interrupt, deadline) = (self.interrupt.clone(), self.deadline);
        guard(&interrupt, deadline, pin!(self.run_and_keep(parsed, text))).await
    }

    async fn run_and_keep(&mut self, parsed: &Arc<Parsed>, text: &str) -> Result<Outcome> {
        let Parsed { sql, statement } = &**parsed;
        self.check_writes(statement)?;
        self.next_statement()?;
        self.asked_moment.store(false, Ordering::Relaxed);
        let (bound, eval, catalog) = self.plan(statement, sql, Vec::new(), ParamTypes::none()).await?;
        let lasts = !self.asked_moment.load(Ordering::Relaxed) && self.bind_warnings.lock().is_empty();
        let txn = self.txn()?;
        if let Bound::Query(query) = &bound
            && lasts
            && query.row_locks.is_empty()
            && txn.sees(&catalog)
            && !txn.edits_catalog()
        {
            self.db.queries().keep(KnownQuery {
                text: text.into(),
                around: self.surroundings(&catalog).words.clone(),
                catalog_version: catalog.version,
                parsed: parsed.clone(),
                query: query.clone(),
            });
        }
        self.run_bound(&bound, &eval).await
    }
}
