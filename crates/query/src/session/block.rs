//! The transaction that a session is in: begun by BEGIN, or implicitly around one message's statements.

use super::constraints::Constraints;
use super::interrupt::{Deadline, guard};
use super::offload::{Lent, Undoing};
use super::{Session, TransactionStatus};
use crate::database::Stats;
use crate::error::{Result, Severity, SqlError};
use crate::notify::{Mark, Outgoing};
use crate::settings::SettingsMark;
use crate::statement::index;
use crate::syntax::{Isolation, TransactionModes, TransactionVerb};
use basalt_engine::{Savepoint, Txn, TxnOptions};
use basalt_types::{ObjectId, Version};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// Between transactions.
    #[default]
    None,
    /// Ends with the message (simple) or at Sync (extended).
    Implicit,
    /// Between BEGIN and COMMIT.
    Explicit,
}

struct NamedSavepoint {
    name: String,
    at: Savepoint,
    settings: SettingsMark,
    constraints: Constraints,
    /// How many advisory locks the transaction had.
    advisory: usize,
    /// What the transaction had said.
    outgoing: Mark,
}

/// State of the current transaction.
pub struct Block {
    pub scope: Scope,
    /// An error happened: nothing but ROLLBACK (TO) is taken.
    pub failed: bool,
    /// Made at the first statement that reads or writes; `lent` or `undoing` has it while a task owns it.
    pub(crate) txn: Option<Txn>,
    pub isolation: Isolation,
    pub read_only: bool,
    /// `now()`, microseconds since 1970-01-01.
    pub now_micros: i64,
    savepoints: Vec<NamedSavepoint>,
    mark: Option<SettingsMark>,
    /// At work for the running statement.
    pub(crate) lent: Option<Lent>,
    /// On its way back, after an error or for ROLLBACK.
    pub(crate) undoing: Option<Undoing>,
    pub(crate) constraints: Constraints,
    /// Tables that have got an index that rests in files, each with when its statement must have ended. Those of an implicit
    /// block are renewed before it is answered.
    pub(crate) renewed: Vec<(ObjectId, Deadline)>,
}

impl Default for Block {
    fn default() -> Block {
        Block {
            scope: Scope::None,
            failed: false,
            txn: None,
            isolation: Isolation::ReadCommitted,
            read_only: false,
            now_micros: 0,
            savepoints: Vec::new(),
            mark: None,
            lent: None,
            undoing: None,
            constraints: Constraints::default(),
            renewed: Vec::new(),
        }
    }
}

impl Block {
    /// Whether a statement has to be refused, or to wait for what is still done with the transaction.
    pub(super) fn is_busy(&self) -> bool {
        self.failed || self.lent.is_some() || self.undoing.is_some()
    }

    /// Who only reads has its place among serializable transactions at its snapshot, whatever it reads.
    fn engine_isolation(&self) -> Isolation {
        match self.isolation {
            Isolation::Serializable if self.read_only => Isolation::RepeatableRead,
            isolation => isolation,
        }
    }

    pub(crate) fn savepoint_count(&self) -> usize {
        self.savepoints.len()
    }
}

fn no_transaction(severity: Severity) -> SqlError {
    SqlError::notice(severity, "25P01", "there is no transaction in progress")
}

fn only_in_block(verb: &str) -> SqlError {
    SqlError::new("25P01", format!("{verb} can only be used in transaction blocks"))
}

impl Session {
    pub fn status(&self) -> TransactionStatus {
        match (self.block.scope, self.block.failed) {
            (Scope::Explicit, false) => TransactionStatus::InTransaction,
            (Scope::Explicit, true) => TransactionStatus::Failed,
            _ => TransactionStatus::Idle,
        }
    }

    /// 25P02 in a failed transaction.
    pub(crate) fn refuse_if_failed(&self) -> Result<()> {
        if self.block.failed {
            return Err(SqlError::new(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
            ));
        }
        Ok(())
    }

    /// 25006 in a read-only transaction.
    pub(crate) fn refuse_if_read_only(&self, verb: &str) -> Result<()> {
        if self.block.read_only {
            return Err(SqlError::new("25006", format!("cannot execute {verb} in a read-only transaction")));
        }
        Ok(())
    }

    /// 25001 for statements that are transactions by themselves.
    pub(crate) fn refuse_in_block(&self, verb: &str) -> Result<()> {
        let written = self.block.txn.as_ref().is_some_and(Txn::has_writes);
        if self.block.scope == Scope::Explicit || written {
            return Err(SqlError::new("25001", format!("{verb} cannot run inside a transaction block")));
        }
        Ok(())
    }

    /// The same for statements that are several transactions. What these see is what is committed meanwhile.
    pub(crate) fn begin_alone(&mut self, verb: &str) -> Result<()> {
        if self.block.scope == Scope::Explicit || self.block.txn.is_some() {
            return Err(SqlError::new("25001", format!("{verb} cannot run inside a transaction block")));
        }
        self.block.isolation = Isolation::ReadCommitted;
        self.next_statement().map(|_| ())
    }

    /// Commits what such a statement has come to.
    pub(crate) async fn commit_alone(&mut self) -> Result<()> {
        let version = self.take_txn()?.commit().await?;
        self.version = self.version.max(version);
        Ok(())
    }

    /// Opens an implicit transaction if there is none.
    pub(crate) fn ensure_block(&mut self) {
        if self.block.scope == Scope::None {
            self.open_block(Scope::Implicit, TransactionModes::default());
        }
    }

    fn open_block(&mut self, scope: Scope, modes: TransactionModes) {
        // As its first statement did.
        let now_micros = match self.statement_micros {
            0 => self.db.os().clock.unix_micros(),
            began => began,
        };
        let effective = self.settings.effective();
        self.block = Block {
            scope,
            isolation: modes.isolation.unwrap_or(effective.default_isolation),
            read_only: modes.read_only.unwrap_or(effective.default_read_only),
            now_micros,
            mark: Some(self.settings.mark()),
            ..Block::default()
        };
        self.info.lock().transaction_micros = Some(self.block.now_micros);
    }

    /// Of the transaction, or of the next one.
    pub(crate) fn isolation(&self) -> Isolation {
        match self.block.scope {
            Scope::None => self.settings.effective().default_isolation,
            _ => self.block.isolation,
        }
    }

    /// Of the transaction, or of the next one.
    pub(crate) fn is_read_only(&self) -> bool {
        match self.block.scope {
            Scope::None => self.settings.effective().default_read_only,
            _ => self.block.read_only,
        }
    }

    /// The transaction of the engine, begun if needed, at a new statement.
    pub(crate) fn next_statement(&mut self) -> Result<&mut Txn> {
        self.reads = true;
        let txn = self.begun()?;
        txn.next_statement();
        txn.check_age()?;
        Ok(txn)
    }

    /// The same for what reads no rows, and so needs no snapshot.
    pub(crate) fn next_command(&mut self) -> Result<&mut Txn> {
        let txn = self.begun()?;
        txn.next_command();
        Ok(txn)
    }

    fn begun(&mut self) -> Result<&mut Txn> {
        if self.block.txn.is_none() {
            self.block.txn = Some(self.db.engine().begin(TxnOptions {
                isolation: self.block.engine_isolation(),
                synchronous_commit: self.settings.effective().synchronous_commit,
                session_version: self.version,
                session: self.pid,
            }));
        }
        let timeout = self.settings.effective().lock_timeout;
        let txn = self.txn()?;
        txn.set_lock_timeout(timeout);
        Ok(txn)
    }

    pub(crate) fn txn(&mut self) -> Result<&mut Txn> {
        self.block.txn.as_mut().ok_or_else(|| SqlError::internal("no transaction is open"))
    }

    pub(crate) fn take_txn(&mut self) -> Result<Txn> {
        self.block.txn.take().ok_or_else(|| SqlError::internal("no transaction is open"))
    }

    /// After an error: starts to undo what PostgreSQL undoes at once, up to the last savepoint or all of it.
    /// [`Session::settle`] waits for it.
    pub(crate) fn fail_block(&mut self) {
        if self.block.scope == Scope::None {
            return;
        }
        self.block.failed = true;
        let last = self.block.savepoints.last().map(|savepoint| savepoint.at);
        self.db.advisory().release_since(self.pid, self.block.savepoints.last().map_or(0, |last| last.advisory));
        // What was declared before the last savepoint outlives the error.
        let depth = self.block.savepoints.len();
        self.portals.retain(|portal| portal.hold || portal.savepoints < depth);
        self.note_told();
        self.undo(last);
    }

    /// What an error of the transaction may rest on.
    fn note_told(&mut self) {
        self.answers = self.block.txn.as_ref().map_or(self.answers, |txn| self.answers.max(txn.told()));
    }

    /// Ends an implicit transaction. Of an explicit one that has failed, waits until it is undone: nobody is told
    /// to go on while rows and locks of the failed statement are in the way.
    pub(crate) async fn end_implicit(&mut self) -> Result<()> {
        match (self.block.scope, self.block.failed) {
            (Scope::Implicit, false) => {
                let renewed = std::mem::take(&mut self.block.renewed);
                self.commit_block().await?;
                index::in_files::renew(self, renewed).await;
                Ok(())
            }
            (Scope::Implicit, true) => {
                self.rollback_block().await;
                Ok(())
            }
            _ => {
                self.settle().await;
                Ok(())
            }
        }
    }

    async fn commit_block(&mut self) -> Result<()> {
        let committed = self.commit_work().await;
        self.db.advisory().release_since(self.pid, 0);
        committed
    }

    async fn commit_work(&mut self) -> Result<()> {
        let interrupt = self.interrupt.clone();
        // The message that ends an implicit transaction is no statement of its own.
        let began = interrupt.start_if_idle();
        let checked = guard(&interrupt, Deadline::default(), self.before_commit()).await;
        if began {
            interrupt.stop();
        }
        if let Err(error) = checked {
            self.note_told();
            self.rollback_block().await;
            return Err(error);
        }
        if let Err(error) = self.temp_at_commit() {
            self.rollback_block().await;
            return Err(error);
        }
        if let Err(error) = self.read_held().await {
            self.rollback_block().await;
            return Err(error);
        }
        let logged = self.sequences.take_logged();
        let synchronous = self.settings.effective().synchronous_commit;
        let txn = self.block.txn.take();
        let mark = self.block.mark.take();
        let outgoing = self.outgoing.take();
        self.leave_block();
        if !outgoing.is_empty() && txn.is_none() {
            let _turn = self.db.notifications().turn().await;
            self.db.notifications().publish(&self.speaker(), &outgoing);
        } else if let Some(txn) = txn {
            // Whether it commits or not: of what it was told the session has to see what follows.
            self.version = self.version.max(txn.met());
            let committed = match txn.is_long() || !outgoing.is_empty() {
                true => self.commit_elsewhere(txn, outgoing).await,
                false => txn.commit().await.map_err(SqlError::from),
            };
            match committed {
                Ok(version) => self.version = self.version.max(version),
                Err(error) => {
                    // It may have failed for any of them; who tries again must not fail for the same.
                    let decided = self.db.engine().decided();
                    (self.version, self.answers) = (self.version.max(decided), self.answers.max(decided));
                    if let Some(mark) = mark {
                        self.settings.restore(mark);
                        self.refresh_identity();
                    }
                    Stats::add(&self.db.stats().rollbacks, 1);
                    self.portals.retain(|portal| portal.cursor.as_ref().is_none_or(|cursor| cursor.committed));
                    if synchronous {
                        self.db.engine().wait_logged(logged).await?;
                    }
                    return Err(error);
                }
            }
            Stats::add(&self.db.stats().commits, 1);
        }
        for portal in self.portals.values_mut() {
            portal.savepoints = 0;
            if let Some(cursor) = &mut portal.cursor {
                cursor.committed = true;
            }
        }
        // Before anything that may fail: the transaction has ended.
        if self.settings.end_local() {
            self.refresh_identity();
        }
        if synchronous {
            // Values of sequences that the client was told of are not given again after a crash.
            self.db.engine().wait_logged(logged).await?;
        }
        Ok(())
    }

    /// Cursors that outlive a transaction that has written what they read come to their end before it commits: what it
    /// wrote, and what of it came after a cursor, is told by its being the transaction's own.
    async fn read_held(&mut self) -> Result<()> {
        let Some(txn) = &self.block.txn else { return Ok(()) };
        let runtime = self.db.runtime().clone();
        for portal in self.portals.values_mut().filter(|portal| portal.hold) {
            let is_concerned = portal.cursor.as_ref().is_some_and(|cursor| cursor.sees_writes_of(txn));
            if let Some(rows) = portal.rows.as_mut().filter(|_| is_concerned) {
                let memory = runtime.reservation("rows of a cursor WITH HOLD");
                guard(&self.interrupt, self.deadline, rows.read_all(memory)).await?;
            }
        }
        Ok(())
    }

    /// Restamps many rows in one go, which neither connections nor plans shall wait for, and tells what the
    /// transaction said. Goes on if nobody waits for it any more.
    async fn commit_elsewhere(&self, txn: Txn, outgoing: Outgoing) -> Result<Version> {
        let (handle, db, speaker) = (self.db.runtime().handle().clone(), self.db.clone(), self.speaker());
        let long = txn.is_long();
        let commit = async move {
            if outgoing.is_empty() {
                return txn.commit().await;
            }
            let _turn = db.notifications().turn().await;
            let version = txn.commit().await?;
            db.notifications().publish(&speaker, &outgoing);
            Ok(version)
        };
        let handle_of_blocking = handle.clone();
        let task = match long {
            true => handle.spawn_blocking(move || handle_of_blocking.block_on(commit)),
            false => handle.spawn(commit),
        };
        match task.await {
            Ok(committed) => Ok(committed?),
            Err(error) => Err(SqlError::internal(format!("a commit ended: {error}"))),
        }
    }

    /// Returns when rows and locks are free.
    pub(crate) async fn rollback_block(&mut self) {
        self.settle().await;
        self.undo(None);
        self.settle().await;
        // Values of sequences are not taken back: what the client was told of is not given again either.
        let logged = self.sequences.take_logged();
        if self.settings.effective().synchronous_commit
            && let Err(error) = self.db.engine().wait_logged(logged).await
        {
            tracing::warn!(%error, "values of sequences may be given again: their record is not durable");
        }
        if let Some(mark) = self.block.mark.take()
            && self.settings.restore(mark)
        {
            self.refresh_identity();
        }
        Stats::add(&self.db.stats().rollbacks, 1);
        self.db.advisory().release_since(self.pid, 0);
        self.portals.retain(|portal| portal.cursor.as_ref().is_none_or(|cursor| cursor.committed));
        self.leave_block();
    }

    fn leave_block(&mut self) {
        self.outgoing.take();
        self.block = Block::default();
        self.portals.retain(|portal| portal.hold);
        self.info.lock().transaction_micros = None;
    }

    /// BEGIN, COMMIT, ROLLBACK, savepoints, SET TRANSACTION. Returns the command tag.
    pub(crate) async fn run_transaction(&mut self, verb: &TransactionVerb) -> Result<&'static str> {
        match verb {
            TransactionVerb::Begin { modes, .. } => {
                self.refuse_if_failed()?;
                self.begin(*modes)?;
            }
            TransactionVerb::Commit { chain } => return self.commit(*chain).await,
            TransactionVerb::Rollback { chain } => self.rollback(*chain).await?,
            TransactionVerb::Savepoint(name) => {
                self.refuse_if_failed()?;
                self.in_block("SAVEPOINT")?;
                let at = match self.block.txn.is_some() {
                    true => self.txn()?.savepoint(),
                    false => self.next_command()?.savepoint(),
                };
                let settings = self.settings.mark();
                let constraints = self.block.constraints.clone();
                let advisory = self.db.advisory().mark(self.pid);
                let outgoing = self.outgoing.mark();
                let name = name.clone();
                self.block.savepoints.push(NamedSavepoint { name, at, settings, constraints, advisory, outgoing });
            }
            TransactionVerb::Release(name) => {
                self.refuse_if_failed()?;
                self.in_block("RELEASE SAVEPOINT")?;
                let index = self.savepoint_index(name)?;
                self.block.savepoints.truncate(index);
                // What was declared since belongs to the savepoint before.
                self.portals.values_mut().for_each(|portal| portal.savepoints = portal.savepoints.min(index));
            }
            TransactionVerb::RollbackTo(name) => {
                self.in_block("ROLLBACK TO SAVEPOINT")?;
                let index = self.savepoint_index(name)?;
                self.settle().await;
                // Before the locks under which they read.
                self.portals.retain(|portal| portal.savepoints <= index);
                let savepoint = &self.block.savepoints[index];
                let (at, settings) = (savepoint.at, savepoint.settings.clone());
                let constraints = savepoint.constraints.clone();
                match self.txn()?.is_long() {
                    true => self.off_thread(move |txn| Box::pin(async move { Ok(txn.rollback_to(at)?) })).await?,
                    false => self.txn()?.rollback_to(at)?,
                }
                if self.settings.restore(settings) {
                    self.refresh_identity();
                }
                self.db.advisory().release_since(self.pid, self.block.savepoints[index].advisory);
                self.outgoing.back_to(self.block.savepoints[index].outgoing);
                self.block.constraints = constraints;
                self.block.savepoints.truncate(index + 1);
                self.block.failed = false;
            }
            TransactionVerb::SetModes { modes, session } => {
                self.refuse_if_failed()?;
                self.set_modes(*modes, *session)?;
            }
        }
        Ok(verb.tag())
    }

    fn in_block(&self, verb: &str) -> Result<()> {
        if self.block.scope == Scope::Explicit { Ok(()) } else { Err(only_in_block(verb)) }
    }

    fn savepoint_index(&self, name: &str) -> Result<usize> {
        let found = self.block.savepoints.iter().rposition(|savepoint| savepoint.name == *name);
        found.ok_or_else(|| SqlError::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }

    pub(super) fn begin(&mut self, modes: TransactionModes) -> Result<()> {
        match self.block.scope {
            Scope::Explicit => {
                let warning = "there is already a transaction in progress";
                self.notice(SqlError::notice(Severity::Warning, "25001", warning));
                self.apply_modes(modes)
            }
            // Statements before BEGIN in the same message belong to the block, as in PostgreSQL.
            Scope::Implicit => {
                self.block.scope = Scope::Explicit;
                self.apply_modes(modes)
            }
            Scope::None => {
                self.open_block(Scope::Explicit, modes);
                Ok(())
            }
        }
    }

    fn apply_modes(&mut self, modes: TransactionModes) -> Result<()> {
        if let Some(isolation) = modes.isolation
            && isolation != self.block.isolation
        {
            if self.block.txn.is_some() {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(SqlError::new("25001", message));
            }
            self.block.isolation = isolation;
        }
        match modes.read_only {
            Some(false) if self.block.read_only && self.block.txn.is_some() => {
                Err(SqlError::new("25001", "transaction read-write mode must be set before any query"))
            }
            Some(read_only) => {
                self.block.read_only = read_only;
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn commit(&mut self, chain: bool) -> Result<&'static str> {
        if self.block.scope != Scope::Explicit {
            if chain {
                return Err(only_in_block("COMMIT AND CHAIN"));
            }
            self.notice(no_transaction(Severity::Warning));
        }
        let modes = self.chained_modes();
        let tag = if self.block.failed {
            self.rollback_block().await;
            "ROLLBACK"
        } else {
            self.commit_block().await?;
            "COMMIT"
        };
        if chain {
            self.open_block(Scope::Explicit, modes);
        }
        Ok(tag)
    }

    async fn rollback(&mut self, chain: bool) -> Result<()> {
        if self.block.scope != Scope::Explicit {
            if chain {
                return Err(only_in_block("ROLLBACK AND CHAIN"));
            }
            self.notice(no_transaction(Severity::Warning));
        }
        let modes = self.chained_modes();
        self.rollback_block().await;
        if chain {
            self.open_block(Scope::Explicit, modes);
        }
        Ok(())
    }

    fn chained_modes(&self) -> TransactionModes {
        TransactionModes { isolation: Some(self.block.isolation), read_only: Some(self.block.read_only) }
    }

    fn set_modes(&mut self, modes: TransactionModes, session: bool) -> Result<()> {
        if session {
            if let Some(isolation) = modes.isolation {
                self.settings.set("default_transaction_isolation", isolation.name(), false, false)?;
            }
            if let Some(read_only) = modes.read_only {
                let value = if read_only { "on" } else { "off" };
                self.settings.set("default_transaction_read_only", value, false, false)?;
            }
            return Ok(());
        }
        self.set_transaction_modes(modes)
    }

    /// SET TRANSACTION, and SET of the two settings that mean the same.
    pub(crate) fn set_transaction_modes(&mut self, modes: TransactionModes) -> Result<()> {
        if self.block.scope != Scope::Explicit {
            let warning = "SET TRANSACTION can only be used in transaction blocks";
            self.notice(SqlError::notice(Severity::Warning, "25P01", warning));
            return Ok(());
        }
        self.apply_modes(modes)
    }
}
