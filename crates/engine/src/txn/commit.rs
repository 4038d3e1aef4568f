//! The end of a transaction that succeeds.

use super::{Change, Txn};
use crate::record;
use crate::{CatalogEdit, Engine, Error, Result};
use basalt_meta::Over;
use basalt_types::{Lsn, TxnId, Version};
use std::sync::Arc;

/// Which locks outlive a commit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Nothing,
    Tables,
}

impl Txn {
    /// Commits and waits until it is durable (unless `synchronous_commit` is off). Returns the version, or
    /// the greatest version met if nothing was written.
    ///
    /// An error before the record is in the log rolls the transaction back; an error after it
    /// ([`Error::LogFailed`]) leaves the outcome open until the restart that must follow.
    pub async fn commit(mut self) -> Result<Version> {
        let synchronous = self.options.synchronous_commit;
        let engine = self.engine.clone();
        let Some((version, end)) = self.decide(Keep::Nothing)? else {
            let (met, seen_later) = (self.met.max(self.pin.version()), self.met());
            self.end_unsuccessfully();
            if synchronous {
                engine.wait_published(met).await?;
            }
            return Ok(met.max(seen_later));
        };
        match synchronous {
            true => engine.wait_durable(end).await?,
            false => engine.log.flush_soon(),
        }
        basalt_sched::failpoint::hit("commit-durable");
        Ok(version)
    }

    /// Everything of commit but the wait. `None`: there was nothing to commit.
    pub(super) fn decide(&mut self, keep: Keep) -> Result<Option<(Version, Lsn)>> {
        let Some(id) = self.id else { return Ok(None) };
        self.is_whole()?;
        let edits = self.edits();
        if self.operations == 0 && edits.is_empty() {
            return Ok(None);
        }
        let engine = self.engine.clone();
        let running = self.running.take();
        let looked = running.as_ref().map(|running| running.look_ahead(&self.pin)).transpose();
        let looked = match looked {
            Ok(looked) => looked,
            Err(error) => {
                self.catalog_edits = edits.catalog;
                return Err(error);
            }
        };
        let _whole = engine.whole("commit");
        let files = record::file_edits(&edits.files);
        let last_look = || match (&running, &looked) {
            (Some(running), Some(looked)) => running.look_last(looked, &self.pin).map(|()| files),
            _ => Ok(files),
        };
        // Once the record may be in the log, nothing is undone any more.
        self.ended = true;
        let noted = if self.unread { &[] } else { self.writes.changes() };
        let decided = engine.append_commit(Some((id, noted)), (&edits.catalog, &self.edits_over), last_look);
        let (version, end) = match decided {
            Ok(decided) => decided,
            Err(error) => {
                (self.ended, self.catalog_edits) = (false, edits.catalog);
                return Err(error);
            }
        };
        drop(running);
        basalt_sched::failpoint::hit("commit-appended");
        let changes = self.writes.split_off(0);
        let restamped = engine.restamp(id, version, &changes);
        engine.order.settle(version);
        if !edits.catalog.is_empty() {
            engine.drop_passing(&changes);
        }
        match keep {
            Keep::Nothing => engine.locks.release_all(self.owner),
            Keep::Tables => engine.locks.release_all_but_tables(self.owner),
        }
        // A mark that still bears the id would be an aborted one's if nobody knew it.
        if restamped {
            engine.txns.retire(id);
        }
        Ok(Some((version, end)))
    }
}

impl Engine {
    /// Appends a commit record in its turn: the one place where versions are given and catalogs change.
    /// `writer`: a transaction, and what of its changes is noted for validation. `files`, encoded file edits, are asked
    /// for in the turn, when no other commit is under way; nothing is appended if that fails. The work there must be
    /// bounded: everybody's commits wait.
    pub(crate) fn append_commit(
        self: &Arc<Self>,
        writer: Option<(TxnId, &[Change])>,
        (catalog, over): (&[CatalogEdit], &[Option<Over>]),
        files: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<(Version, Lsn)> {
        let mut turn = self.order.take_turn();
        let _whole = self.whole("commit");
        let files = files()?;
        let next_catalog = match catalog.is_empty() {
            true => None,
            false => {
                let committed = self.catalog();
                committed.check_over(catalog, over)?;
                let mut next = committed.succeed(catalog)?;
                next.committed = turn.next();
                Some(next)
            }
        };
        let mut bytes = Vec::with_capacity(64);
        record::commit(&mut bytes, writer.map(|(txn, _)| txn), turn.next(), catalog);
        let end = self.append_settled(catalog, || self.append_parts(&[&bytes, &files]))?;
        let version = turn.commit(end);
        if let Some((txn, changes)) = writer {
            self.txns.commit(txn, version);
            self.recent.note(version, changes);
        }
        if let Some(next) = next_catalog {
            self.install_catalog(next);
        }
        Ok((version, end))
    }

    /// Waits until everything below `lsn` is durable.
    pub(crate) async fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        Ok(self.log.wait_durable(lsn).await?)
    }

    /// Waits until a version that somebody has met is durable.
    pub async fn wait_published(&self, version: Version) -> Result<()> {
        if version <= self.order.published() {
            return Ok(());
        }
        let Some(end) = self.order.end_of(version) else { return Ok(()) };
        self.wait_durable(end).await
    }
}

impl From<basalt_wal::Error> for Error {
    fn from(error: basalt_wal::Error) -> Error {
        match error {
            basalt_wal::Error::NoSpace { .. } => Error::NoSpace { what: "log" },
            basalt_wal::Error::TooLarge { .. } => Error::TooLarge(error.to_string()),
            basalt_wal::Error::Closed => Error::ShuttingDown,
            basalt_wal::Error::Poisoned { .. } => Error::LogFailed(error.to_string()),
            other if other.kind() == basalt_types::ErrorKind::Corrupt => Error::Corrupt(other.to_string()),
            other => Error::Io(other.to_string()),
        }
    }
}

impl From<basalt_cold::Error> for Error {
    fn from(error: basalt_cold::Error) -> Error {
        match error.kind() {
            _ if error.is_no_space() => Error::NoSpace { what: "data files" },
            basalt_types::ErrorKind::Corrupt => Error::Corrupt(error.to_string()),
            basalt_types::ErrorKind::Limit => Error::TooLarge(error.to_string()),
            _ => Error::Io(error.to_string()),
        }
    }
}
