//! Frames off the wire: `tag u8 | length i32 (itself included) | body`, the first packet without a tag.
//!
//! The buffer grows with what has arrived, never with what a length claims, so a hostile length costs
//! nothing. Every read can be dropped at its await: what has arrived stays in the buffer.

use super::Fault;
use super::frontend::{body_bytes_max, malformed};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

const READ_BYTES: usize = 16 << 10;
/// Tag and length of a message.
const HEADER: usize = 5;
/// Largest first packet, as PostgreSQL's MAX_STARTUP_PACKET_LENGTH.
const STARTUP_BYTES_MAX: usize = 10_000;

pub struct Message {
    pub tag: u8,
    pub body: Bytes,
}

pub struct Input {
    buf: BytesMut,
    /// Longest body of a message that may be large.
    pub large_bytes_max: usize,
}

impl Input {
    pub fn new(large_bytes_max: usize) -> Input {
        Input { buf: BytesMut::new(), large_bytes_max }
    }

    /// Bytes that have arrived and were not taken yet.
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    /// The first packet of a connection, without its length. [`Fault::Closed`] if none comes.
    pub async fn startup(&mut self, wire: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, Fault> {
        self.fill(wire, 4).await?;
        let len = u32::from_be_bytes([self.buf[0], self.buf[1], self.buf[2], self.buf[3]]) as usize;
        if !(8..=STARTUP_BYTES_MAX).contains(&len) {
            return Err(malformed("invalid length of startup packet").into());
        }
        self.fill(wire, len).await?;
        self.buf.advance(4);
        Ok(self.buf.split_to(len - 4).freeze())
    }

    /// The next message. [`Fault::Closed`] if the client has gone, between messages or inside of one.
    pub async fn message(&mut self, wire: &mut (impl AsyncRead + Unpin)) -> Result<Message, Fault> {
        self.fill(wire, HEADER).await?;
        let (_, len) = self.header()?;
        self.fill(wire, HEADER + len).await?;
        self.take()
    }

    /// Tag and body of the next message, if all of it has arrived. It stays until [`Input::pass`] or
    /// [`Input::message`].
    pub fn peek(&self) -> Result<Option<(u8, &[u8])>, Fault> {
        if self.buf.len() < HEADER {
            return Ok(None);
        }
        let (tag, len) = self.header()?;
        Ok(self.buf.get(HEADER..HEADER + len).map(|body| (tag, body)))
    }

    /// Passes over a message with a body of so many bytes.
    pub fn pass(&mut self, body_bytes: usize) {
        self.buf.advance(HEADER + body_bytes);
    }

    /// The next message, all of which has arrived.
    pub fn take(&mut self) -> Result<Message, Fault> {
        let (tag, len) = self.header()?;
        self.buf.advance(HEADER);
        Ok(Message { tag, body: self.buf.split_to(len).freeze() })
    }

    /// Tag and length of the body of the message that begins the buffer.
    fn header(&self) -> Result<(u8, usize), Fault> {
        let tag = self.buf[0];
        let Some(max) = body_bytes_max(tag, self.large_bytes_max) else {
            return Err(malformed(format!("invalid frontend message type {tag}")).into());
        };
        let len = u32::from_be_bytes([self.buf[1], self.buf[2], self.buf[3], self.buf[4]]) as usize;
        if len < 4 || len - 4 > max {
            return Err(
                malformed(format!("invalid message length {len} of message type \"{}\"", tag.escape_ascii())).into()
            );
        }
        Ok((tag, len - 4))
    }

    /// Reads what comes next. [`Fault::Closed`] if nothing will.
    pub async fn more(&mut self, wire: &mut (impl AsyncRead + Unpin)) -> Result<(), Fault> {
        // At least to the end of the message that has begun.
        let missing = match self.buf.len() < HEADER {
            true => 0,
            false => (HEADER + self.header()?.1).saturating_sub(self.buf.len()),
        };
        self.read(wire, missing).await
    }

    /// Reads once, with room for what is missing at least.
    async fn read(&mut self, wire: &mut (impl AsyncRead + Unpin), missing: usize) -> Result<(), Fault> {
        // Grows by doubling, as bytes arrive.
        self.buf.reserve(missing.min(self.buf.len()).max(READ_BYTES));
        match wire.read_buf(&mut self.buf).await? {
            0 => Err(Fault::Closed),
            _ => Ok(()),
        }
    }

    /// Reads until `count` bytes are there.
    async fn fill(&mut self, wire: &mut (impl AsyncRead + Unpin), count: usize) -> Result<(), Fault> {
        while self.buf.len() < count {
            self.read(wire, count - self.buf.len()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
