//! LISTEN, UNLISTEN and NOTIFY: what the transaction will have asked for and said when it commits (`crate::notify`).

use crate::error::Result;
use crate::notify::{Change, Notification, Speaker};
use crate::session::{Scope, Session};
use std::future::Future;
use std::sync::Arc;

impl Session {
    pub(crate) fn listen(&self, channel: &str) {
        self.outgoing.change(Change::Listen(channel.to_string()));
    }

    /// `None`: all channels.
    pub(crate) fn unlisten(&self, channel: Option<&str>) {
        self.outgoing.change(match channel {
            Some(channel) => Change::Unlisten(channel.to_string()),
            None => Change::UnlistenAll,
        });
    }

    pub(crate) fn say(&self, channel: &str, payload: &str) -> Result<()> {
        self.outgoing.say(Notification::new(self.backend_key().0, channel, payload)?)
    }

    pub(crate) fn speaker(&self) -> Speaker {
        Speaker {
            pid: self.backend_key().0,
            database: self.database.id,
            arrival: self.arrival.clone(),
            interrupt: self.interrupt.clone(),
        }
    }

    /// What others said on the channels that this session listens to; nothing inside of a transaction.
    pub fn take_notifications(&mut self) -> Vec<Arc<Notification>> {
        match self.block.scope {
            Scope::None if self.arrival.is_there() => self.db.notifications().take(self.backend_key().0),
            _ => Vec::new(),
        }
    }

    /// Waits until there is something to take. Inside of a transaction there never is.
    pub fn notified(&self) -> impl Future<Output = ()> + Send + use<> {
        let arrival = self.arrival.clone();
        let waits = self.block.scope == Scope::None;
        async move {
            match waits {
                true => arrival.wait().await,
                false => std::future::pending().await,
            }
        }
    }
}
