//! What a demonstration shows: tables, a stream of rows for them, and queries over the same rows.

use anyhow::Result;
use bytes::Bytes;

/// Some rows, ready to be sent; they become visible together.
pub struct Batch {
    /// In the order in which they are sent.
    pub copies: Vec<Copy>,
    /// The key of one of its rows: see [`Scene::probe`].
    pub key: i64,
    /// How often the source has begun again.
    pub round: u64,
}

pub struct Copy {
    pub sql: &'static str,
    pub rows: u64,
    /// PostgreSQL's text format, or what `sql` says.
    pub bytes: Bytes,
}

impl Batch {
    pub fn rows(&self) -> u64 {
        self.copies.iter().map(|copy| copy.rows).sum()
    }
}

/// An endless stream of rows. It may block (a process, a computation): it runs on a thread of its own.
pub trait Source: Send {
    /// At least one row, about `rows` if there is no reason for more.
    fn next_batch(&mut self, rows: u64) -> Result<Batch>;
}

pub struct Scene {
    /// What is streamed, for people.
    pub title: String,
    /// Gives one row if `$1` (bigint) is a key that is visible.
    pub probe: &'static str,
    pub queries: Vec<Query>,
    pub source: Box<dyn Source>,
}

pub struct Query {
    /// One word, for the status line.
    pub name: &'static str,
    pub title: &'static str,
    /// `{key}` stands for a key that is visible, another one each time.
    pub sql: String,
}

/// A text field of COPY's text format (PostgreSQL manual, COPY, "Text Format").
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            // Cannot be in PostgreSQL's text.
            0 => {}
            byte => out.push(byte),
        }
    }
}
