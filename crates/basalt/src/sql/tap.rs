//! What the driver does not tell: command tags, and the state of the transaction.
//!
//! The bytes that the server sends pass through a [`Tap`] on their way to the driver. It follows the framing
//! (a kind, a length, a body: PostgreSQL manual, "Message Formats") and reads two kinds of messages,
//! CommandComplete and ReadyForQuery. The driver sees every message after the tap has.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A command tag is far shorter; longer bodies are passed over.
const BODY_BYTES_MAX: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    #[default]
    Idle,
    InTransaction,
    Failed,
}

#[derive(Default, Debug)]
struct Told {
    tag: String,
    state: State,
}

/// What has passed through a tap so far.
#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<Told>>);

impl Heard {
    /// The tag of the last command that was completed.
    pub fn tag(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tag.clone()
    }

    /// As of the last ReadyForQuery.
    pub fn state(&self) -> State {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).state
    }

    fn message(&self, kind: u8, body: &[u8]) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (kind, body) {
            (b'C', [tag @ .., 0]) => told.tag = String::from_utf8_lossy(tag).into_owned(),
            (b'Z', [b'T']) => told.state = State::InTransaction,
            (b'Z', [b'E']) => told.state = State::Failed,
            (b'Z', _) => told.state = State::Idle,
            _ => {}
        }
    }
}

/// Where in the stream of messages the tap is.
#[derive(Default)]
struct Framing {
    /// Kind and length, as far as they have come.
    head: Vec<u8>,
    /// Of the body.
    bytes_left: usize,
    body: Vec<u8>,
}

impl Framing {
    const HEAD_BYTES: usize = 5;

    fn feed(&mut self, mut bytes: &[u8], heard: &Heard) {
        while !bytes.is_empty() {
            if self.head.len() < Framing::HEAD_BYTES {
                let (head, rest) = bytes.split_at(bytes.len().min(Framing::HEAD_BYTES - self.head.len()));
                self.head.extend_from_slice(head);
                bytes = rest;
                let Some(len) = self.head.get(1..).and_then(|len| len.try_into().ok()) else { continue };
                // The length counts itself.
                self.bytes_left = (u32::from_be_bytes(len) as usize).saturating_sub(4);
            } else {
                let (body, rest) = bytes.split_at(bytes.len().min(self.bytes_left));
                if matches!(self.head[0], b'C' | b'Z') && self.body.len() + body.len() <= BODY_BYTES_MAX {
                    self.body.extend_from_slice(body);
                }
                self.bytes_left -= body.len();
                bytes = rest;
            }
            if self.head.len() == Framing::HEAD_BYTES && self.bytes_left == 0 {
                heard.message(self.head[0], &self.body);
                self.head.clear();
                self.body.clear();
            }
        }
    }
}

pub struct Tap<S> {
    stream: S,
    framing: Framing,
    heard: Heard,
}

impl<S> Tap<S> {
    pub fn new(stream: S, heard: Heard) -> Tap<S> {
        Tap { stream, framing: Framing::default(), heard }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tap<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let Tap { framing, heard, .. } = &mut *self;
        framing.feed(&buf.filled()[before..], heard);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tap<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_states_are_heard_however_the_bytes_come() {
        let mut bytes = vec![b'D', 0, 0, 0, 14];
        bytes.extend_from_slice(b"C\0\0\0\x05Z\0\0\0\x05");
        bytes.extend_from_slice(b"C\0\0\0\x0dROLLBACK\0");
        bytes.extend_from_slice(b"Z\0\0\0\x05E");
        for piece in [1, 2, 3, 7, bytes.len()] {
            let (heard, mut framing) = (Heard::default(), Framing::default());
            bytes.chunks(piece).for_each(|bytes| framing.feed(bytes, &heard));
            assert_eq!((heard.tag().as_str(), heard.state()), ("ROLLBACK", State::Failed), "in pieces of {piece}");
        }
    }
}
