//! One connection from its first byte to its last.

use super::frontend::{self, Frontend};
use super::inline::Arrived;
use super::input::{Input, Message};
use super::{Client, Fault, Output, Peer, login};
use crate::listen::{Shared, Stage, reached};
use crate::reactors::Habit;
use crate::wire::{Socket, Wire};
use basalt_query::{Session, SqlError};
use futures::future::BoxFuture;
use std::pin::pin;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub struct Connection {
    pub(super) client: Client,
    pub(super) session: Session,
    /// An extended-protocol message failed: everything up to Sync is skipped.
    pub(super) skipping: bool,
    /// The reactor that serves it.
    at: usize,
    habit: Habit,
}

/// A connection between two reactors.
struct Moving {
    socket: Socket,
    input: Input,
    out: Output,
    session: Session,
    habit: Habit,
    /// Where it shall go on.
    to: usize,
}

/// A message that takes long to read.
pub(super) const LONG_BYTES: usize = 16 << 10;

/// Serves one client, on one reactor after the other. `half_open` is given back at login.
/// `alive` is dropped when nothing of it runs any more.
pub async fn serve(
    wire: Wire,
    peer: Peer,
    shared: Arc<Shared>,
    half_open: OwnedSemaphorePermit,
    alive: mpsc::Sender<()>,
) {
    let Ok(socket) = wire.release() else { return };
    let mut at = shared.reactors.enter();
    let mut next: BoxFuture<'static, Option<Moving>> = Box::pin(begin(socket, peer, at, shared.clone(), half_open));
    loop {
        // Ends its task when it is dropped.
        let (mut here, alive) = (JoinSet::new(), alive.clone());
        let step = async move {
            let next = next.await;
            drop(alive);
            next
        };
        here.spawn_on(step, shared.reactors.handle(at));
        match here.join_next().await {
            Some(Ok(Some(moving))) => {
                shared.reactors.change(at, moving.to);
                at = moving.to;
                next = Box::pin(go_on(moving, peer, shared.clone()));
            }
            Some(Ok(None) | Err(_)) | None => break,
        }
    }
    shared.reactors.leave(at);
}

async fn begin(
    socket: Socket,
    peer: Peer,
    at: usize,
    shared: Arc<Shared>,
    half_open: OwnedSemaphorePermit,
) -> Option<Moving> {
    let wire = match socket.adopt() {
        Ok(wire) => wire,
        Err(error) => {
            tracing::warn!(?peer, "cannot serve a connection: {error}");
            return None;
        }
    };
    let login = login::log_in(Client::new(wire), peer, &shared);
    let mut stage = shared.stage.clone();
    let login = tokio::select! {
        login = timeout(shared.config.authentication_timeout, login) => login,
        _ = reached(&mut stage, Stage::Draining) => return None,
    };
    drop(half_open);
    match login {
        Ok(Ok((client, session))) => {
            let habit = Habit::default();
            return Connection { client, session, skipping: false, at, habit }.run(&shared, peer).await;
        }
        Ok(Err((client, fault))) => say_goodbye(client, fault, peer).await,
        Err(_) => tracing::debug!(?peer, "client did not log in in time"),
    }
    None
}

async fn go_on(moving: Moving, peer: Peer, shared: Arc<Shared>) -> Option<Moving> {
    let Moving { socket, input, out, session, habit, to } = moving;
    match socket.adopt() {
        Ok(wire) => {
            let client = Client { wire, input, out };
            Connection { client, session, skipping: false, at: to, habit }.run(&shared, peer).await
        }
        Err(error) => {
            tracing::warn!(?peer, "connection lost: {error}");
            None
        }
    }
}

/// Reports what ended a connection, and hangs up.
async fn say_goodbye(mut client: Client, fault: Fault, peer: Peer) {
    match fault {
        Fault::Fatal(error) | Fault::Statement(error) => {
            tracing::debug!(?peer, sqlstate = error.sqlstate, "connection ends: {}", error.message);
            client.out.error(&error);
            client.hang_up().await;
        }
        Fault::Closed => {}
        Fault::Io(error) => tracing::debug!(?peer, "connection lost: {error}"),
    }
}

/// What ends a connection from outside. Each is asked again and again: it keeps its place among those that wait.
struct Ends {
    terminated: BoxFuture<'static, SqlError>,
    draining: BoxFuture<'static, ()>,
    stopped: BoxFuture<'static, ()>,
}

impl Ends {
    fn of(session: &Session, shared: &Shared) -> Ends {
        let stage = |least| {
            let mut stage = shared.stage.clone();
            async move { reached(&mut stage, least).await }
        };
        Ends {
            terminated: Box::pin(session.terminated()),
            draining: Box::pin(stage(Stage::Draining)),
            stopped: Box::pin(stage(Stage::Stopped)),
        }
    }

    /// Does a client's work to its end, unless the session or the server ends before.
    async fn or_done<T>(&mut self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            result = work => result,
            error = &mut self.terminated => Err(Fault::Fatal(error)),
            () = &mut self.stopped => Err(shutting_down()),
        }
    }

    /// Waits for a client that need not say anything; it ends as soon as the server wants to.
    async fn or_heard<T>(&mut self, words: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            error = &mut self.terminated => Err(Fault::Fatal(error)),
            result = words => result,
            () = &mut self.draining => Err(shutting_down()),
        }
    }
}

/// A text that takes long to parse and bind, or long values: another thread does the reactor's work meanwhile. There
/// are only so many.
fn long_text<'s>(message: &Message, shared: &'s Shared) -> Option<SemaphorePermit<'s>> {
    let is_long = matches!(message.tag, b'Q' | b'P' | b'B') && message.body.len() >= LONG_BYTES;
    is_long.then(|| shared.long_texts.try_acquire().ok()).flatten()
}

impl Connection {
    async fn run(mut self, shared: &Shared, peer: Peer) -> Option<Moving> {
        let mut ends = Ends::of(&self.session, shared);
        let fault = loop {
            let step = match self.serve_arrived() {
                // Pinned here: a future is large, and is not to be moved from hand to hand.
                Ok(Arrived::Message(message)) => match long_text(&message, shared) {
                    Some(_permit) => shared
                        .reactors
                        .relieved(self.at, || Handle::current().block_on(ends.or_done(pin!(self.step_apart(message))))),
                    None => ends.or_done(pin!(self.step_apart(message))).await,
                },
                Ok(Arrived::Commit(ended)) => ends.or_done(pin!(self.commit_query(ended))).await,
                Ok(Arrived::Nothing) => match ends.or_done(self.flushed()).await {
                    Ok(()) => match self.better(shared, peer) {
                        Some(to) => return self.leave(to, peer),
                        None => ends.or_heard(self.listen()).await,
                    },
                    Err(fault) => Err(fault),
                },
                Err(fault) => Err(fault),
            };
            if let Err(fault) = step {
                break fault;
            }
        };
        let Connection { client, session, .. } = self;
        drop(ends);
        // Ends the transaction and gives its locks back before the client hears of it.
        drop(session);
        say_goodbye(client, fault, peer).await;
        None
    }

    /// The reactor where it were better served. A connection moves between two messages, with nothing unsent.
    fn better(&mut self, shared: &Shared, peer: Peer) -> Option<usize> {
        let local = if peer.is_local() { self.client.wire.tcp() } else { None };
        let can_move = self.client.input.is_empty() && !self.skipping && self.client.wire.is_movable();
        let now = || shared.db.os().clock.monotonic();
        shared.reactors.better(self.at, &mut self.habit, can_move, local, now)
    }

    fn leave(self, to: usize, peer: Peer) -> Option<Moving> {
        let Connection { client: Client { wire, input, out }, session, habit, .. } = self;
        match wire.release() {
            Ok(socket) => Some(Moving { socket, input, out, session, habit, to }),
            Err(error) => {
                tracing::warn!(?peer, "connection lost: {error}");
                None
            }
        }
    }

    pub(super) async fn flushed(&mut self) -> Result<(), Fault> {
        self.session.settle_answers().await;
        Ok(self.client.flush().await?)
    }

    /// Waits for the client, at most as long as its transaction may be idle.
    async fn listen(&mut self) -> Result<(), Fault> {
        match self.session.idle_timeout() {
            None => self.listen_between_notifications().await,
            Some(limit) => timeout(limit.after, self.listen_between_notifications())
                .await
                .unwrap_or(Err(Fault::Fatal(limit.error))),
        }
    }

    /// Waits for the client, and tells it meanwhile what it listens to.
    async fn listen_between_notifications(&mut self) -> Result<(), Fault> {
        loop {
            if self.notifications() {
                self.client.flush().await?;
            }
            tokio::select! {
                biased;
                more = self.client.input.more(&mut self.client.wire) => return more,
                () = self.session.notified() => {}
            }
        }
    }

    /// A message that may have to wait. Who waits for an answer to one before does not wait for this.
    async fn step_apart(&mut self, message: Message) -> Result<(), Fault> {
        if self.client.out.holds_answer() {
            self.flushed().await?;
        }
        self.step(message).await
    }

    async fn step(&mut self, message: Message) -> Result<(), Fault> {
        let parsed = frontend::parse(message.tag, &message.body);
        if self.skipping && !matches!(parsed, Ok(Frontend::Sync | Frontend::Terminate)) {
            return match parsed {
                Err(error) => Fault::from(error).unless_statement(),
                Ok(_) => Ok(()),
            };
        }
        match parsed {
            Ok(Frontend::Query { sql }) => self.simple_query(Ok(sql)).await,
            Ok(Frontend::FunctionCall) => {
                let error = SqlError::not_supported("function calls by the fast-path protocol are not supported")
                    .with_hint("Call the function with SELECT.");
                self.simple_query(Err(error)).await
            }
            Ok(Frontend::Sync) => self.sync().await,
            Ok(Frontend::Flush) => self.flushed().await,
            Ok(Frontend::Terminate) => Err(Fault::Closed),
            // What a client still sends after its COPY failed.
            Ok(Frontend::CopyData | Frontend::CopyDone | Frontend::CopyFail { .. }) => Ok(()),
            Ok(message) => self.extended(Ok(message)).await,
            Err(error) if message.tag == b'Q' => self.simple_query(Err(error)).await,
            Err(error) => self.extended(Err(error)).await,
        }
    }

    /// Ends an answer: changed settings, the state of the transaction. Everything goes out when nothing more is to be
    /// answered.
    pub(super) fn ready(&mut self) {
        for (name, value) in self.session.take_parameter_changes() {
            self.client.out.parameter_status(&name, &value);
        }
        self.notices();
        self.notifications();
        self.client.out.ready(self.session.status());
    }

    pub(super) fn notices(&mut self) {
        self.client.out.notices(&mut self.session);
    }

    /// What has come on the channels that the session listens to; whether anything has.
    fn notifications(&mut self) -> bool {
        let notifications = self.session.take_notifications();
        for notification in &notifications {
            self.client.out.notification(notification);
        }
        !notifications.is_empty()
    }

    pub(super) fn report(&mut self, error: &SqlError) {
        self.notices();
        self.client.out.error(error);
    }
}

impl Fault {
    /// Swallows what only a statement would be told.
    fn unless_statement(self) -> Result<(), Fault> {
        match self {
            Fault::Statement(_) => Ok(()),
            fault => Err(fault),
        }
    }
}

fn shutting_down() -> Fault {
    Fault::Fatal(SqlError::fatal("57P01", "terminating connection due to administrator command"))
}
