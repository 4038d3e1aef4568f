//! LISTEN and NOTIFY (PostgreSQL manual, under these names): messages from transactions that committed to the sessions
//! of their database that listen.
//!
//! What a transaction says rests with its session ([`Pending`]) until it has committed; then it is put into the inbox
//! of every listener ([`Notifications::publish`]). Transactions that have something to say commit one after the other,
//! so messages come in the order of commits. Whoever serves a session takes what is in its inbox between statements.
//! Nobody who commits waits for a listener: one whose inbox is full is disconnected, for it would miss messages.

use crate::error::{Result, SqlError};
use crate::session::interrupt::Interrupt;
use basalt_types::ObjectId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// As PostgreSQL's: payloads are shorter.
const PAYLOAD_BYTES_MAX: usize = 8000;
/// As PostgreSQL's: names of channels are shorter.
const CHANNEL_BYTES_MAX: usize = 64;
/// Of messages that wait for one session, and of those of one transaction.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// What a message takes beside its text.
const MESSAGE_BYTES: usize = 64;

/// What a listener is told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Notification {
    /// Process id of the session that said it.
    pub pid: i32,
    pub channel: String,
    pub payload: String,
}

impl Notification {
    /// 22023 for a channel or a payload that is none.
    pub fn new(pid: i32, channel: &str, payload: &str) -> Result<Notification> {
        if channel.is_empty() {
            return Err(SqlError::new("22023", "channel name cannot be empty"));
        }
        if channel.len() >= CHANNEL_BYTES_MAX {
            return Err(SqlError::new("22023", "channel name too long"));
        }
        if payload.len() >= PAYLOAD_BYTES_MAX {
            return Err(SqlError::new("22023", "payload string too long"));
        }
        Ok(Notification { pid, channel: channel.to_string(), payload: payload.to_string() })
    }

    fn bytes(&self) -> usize {
        self.channel.len() + self.payload.len() + MESSAGE_BYTES
    }
}

/// What LISTEN and UNLISTEN change when the transaction commits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    Listen(String),
    Unlisten(String),
    UnlistenAll,
}

/// What a transaction has said and asked for so far.
#[derive(Default, Debug)]
pub struct Outgoing {
    pub changes: Vec<Change>,
    said: Vec<Arc<Notification>>,
    /// The same, to find those that are said again.
    known: HashSet<Arc<Notification>>,
    bytes: usize,
}

impl Outgoing {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.said.is_empty()
    }
}

/// [`Outgoing`] of a session's transaction, which functions of its statements add to.
#[derive(Default, Debug)]
pub struct Pending(Mutex<Outgoing>);

/// A place in [`Pending`] to go back to.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mark {
    changes: usize,
    said: usize,
}

impl Pending {
    /// What is said twice in a transaction is told once. 54000 beyond what may wait.
    pub fn say(&self, notification: Notification) -> Result<()> {
        let mut outgoing = self.0.lock();
        let bytes = notification.bytes();
        if outgoing.bytes + bytes > WAITING_BYTES_MAX {
            return Err(SqlError::new("54000", "too many notifications in the NOTIFY queue")
                .with_detail(format!("A transaction may say {WAITING_BYTES_MAX} bytes.")));
        }
        let notification = Arc::new(notification);
        if outgoing.known.insert(notification.clone()) {
            outgoing.said.push(notification);
            outgoing.bytes += bytes;
        }
        Ok(())
    }

    pub fn change(&self, change: Change) {
        self.0.lock().changes.push(change);
    }

    pub fn mark(&self) -> Mark {
        let outgoing = self.0.lock();
        Mark { changes: outgoing.changes.len(), said: outgoing.said.len() }
    }

    pub fn back_to(&self, mark: Mark) {
        let mut outgoing = self.0.lock();
        outgoing.changes.truncate(mark.changes);
        let kept = mark.said.min(outgoing.said.len());
        let gone = outgoing.said.split_off(kept);
        for notification in gone {
            outgoing.bytes -= notification.bytes();
            outgoing.known.remove(&notification);
        }
    }

    /// All of it; nothing is left.
    pub fn take(&self) -> Outgoing {
        std::mem::take(&mut self.0.lock())
    }
}

/// Tells a session that something waits for it, without a look into its inbox.
#[derive(Default, Debug)]
pub struct Arrival {
    waits: AtomicBool,
    /// The session has ended; what it asked for may be decided later.
    left: AtomicBool,
    told: Notify,
}

impl Arrival {
    pub fn is_there(&self) -> bool {
        self.waits.load(Ordering::Acquire)
    }

    /// Returns when something waits.
    pub async fn wait(&self) {
        loop {
            let told = self.told.notified();
            if self.is_there() {
                return;
            }
            told.await;
        }
    }

    fn tell(&self) {
        self.waits.store(true, Ordering::Release);
        self.told.notify_waiters();
    }
}

/// What waits for one session.
struct Inbox {
    database: ObjectId,
    /// In the order of LISTEN.
    channels: Vec<String>,
    waiting: VecDeque<Arc<Notification>>,
    bytes: usize,
    arrival: Arc<Arrival>,
    interrupt: Arc<Interrupt>,
}

impl Inbox {
    fn put(&mut self, notification: &Arc<Notification>) {
        let bytes = self.bytes + notification.bytes();
        if bytes > WAITING_BYTES_MAX {
            let message = "terminating connection because it does not take its notifications";
            let detail = format!("More than {WAITING_BYTES_MAX} bytes of them wait.");
            self.interrupt.terminate_because(SqlError::fatal("53400", message).with_detail(detail));
            return;
        }
        self.bytes = bytes;
        self.waiting.push_back(notification.clone());
        self.arrival.tell();
    }
}

/// Inboxes of all sessions that listen, by process id.
#[derive(Default)]
pub struct Notifications {
    inboxes: Mutex<BTreeMap<i32, Inbox>>,
    /// Held while a transaction that has something to say commits.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// Who says or asks.
#[derive(Clone)]
pub struct Speaker {
    pub pid: i32,
    pub database: ObjectId,
    pub arrival: Arc<Arrival>,
    pub interrupt: Arc<Interrupt>,
}

impl Notifications {
    /// The order of commits that are told of.
    pub async fn turn(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.turn.clone().lock_owned().await
    }

    /// What a transaction that has committed asked for and said, in its turn.
    pub fn publish(&self, speaker: &Speaker, outgoing: &Outgoing) {
        let mut inboxes = self.inboxes.lock();
        for change in &outgoing.changes {
            apply(&mut inboxes, speaker, change);
        }
        for inbox in inboxes.values_mut().filter(|inbox| inbox.database == speaker.database) {
            for notification in &outgoing.said {
                if inbox.channels.contains(&notification.channel) {
                    inbox.put(notification);
                }
            }
        }
    }

    /// What has come for a session since it was asked for last.
    pub fn take(&self, pid: i32) -> Vec<Arc<Notification>> {
        let mut inboxes = self.inboxes.lock();
        let Some(inbox) = inboxes.get_mut(&pid) else { return Vec::new() };
        inbox.bytes = 0;
        inbox.arrival.waits.store(false, Ordering::Release);
        let waiting = std::mem::take(&mut inbox.waiting).into_iter();
        // It may have stopped listening meanwhile.
        waiting.filter(|one| inbox.channels.contains(&one.channel)).collect()
    }

    pub fn channels(&self, pid: i32) -> Vec<String> {
        self.inboxes.lock().get(&pid).map(|inbox| inbox.channels.clone()).unwrap_or_default()
    }

    /// How full the fullest inbox is, up to 1.
    pub fn usage(&self) -> f64 {
        let fullest = self.inboxes.lock().values().map(|inbox| inbox.bytes).max().unwrap_or(0);
        fullest as f64 / WAITING_BYTES_MAX as f64
    }

    pub fn leave(&self, speaker: &Speaker) {
        let mut inboxes = self.inboxes.lock();
        speaker.arrival.left.store(true, Ordering::Release);
        inboxes.remove(&speaker.pid);
    }
}

fn apply(inboxes: &mut BTreeMap<i32, Inbox>, speaker: &Speaker, change: &Change) {
    match change {
        Change::Listen(_) if speaker.arrival.left.load(Ordering::Acquire) => {}
        Change::Listen(channel) => {
            let inbox = inboxes.entry(speaker.pid).or_insert_with(|| Inbox {
                database: speaker.database,
                channels: Vec::new(),
                waiting: VecDeque::new(),
                bytes: 0,
                arrival: speaker.arrival.clone(),
                interrupt: speaker.interrupt.clone(),
            });
            if !inbox.channels.contains(channel) {
                inbox.channels.push(channel.clone());
            }
        }
        Change::Unlisten(channel) => {
            if let Some(inbox) = inboxes.get_mut(&speaker.pid) {
                inbox.channels.retain(|known| known != channel);
            }
        }
        Change::UnlistenAll => {
            if let Some(inbox) = inboxes.get_mut(&speaker.pid) {
                inbox.channels.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests;
