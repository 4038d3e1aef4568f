//! The send buffer of a connection, and the messages that go into it (PostgreSQL manual 55.7).
//!
//! Messages are written in place: a frame begins with a placeholder for its length, which is set when it
//! ends. Nothing is sent until [`Output::flush`]; whoever fills the buffer in a loop flushes when
//! [`Output::is_full`], so that a slow client holds one buffer and no more.

use basalt_query::{Notification, ResultColumn, RowSink, Severity, SqlError, TransactionStatus};
use basalt_types::DataType;
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// A buffer past this size is sent.
const FLUSH_BYTES: usize = 64 << 10;
/// A buffer that one huge row made larger than this is given back.
const KEEP_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub struct Output {
    buf: Vec<u8>,
    /// How much of `buf` the wire has taken: a dropped flush goes on where it stopped.
    sent: usize,
    /// Where the lengths of the row that is being written, and of its cell, stand.
    row_at: usize,
    cell_at: usize,
    /// Whether a client may wait for what is not sent yet.
    answers: bool,
}

/// The length of a null.
const NULL: i32 = -1;

/// An open message: where its length stands.
#[must_use]
pub struct Frame {
    at: usize,
}

impl Output {
    pub fn is_full(&self) -> bool {
        self.buf.len() >= FLUSH_BYTES
    }

    pub async fn flush(&mut self, wire: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        while self.sent < self.buf.len() {
            match wire.write(&self.buf[self.sent..]).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => self.sent += count,
            }
        }
        wire.flush().await?;
        self.sent = 0;
        self.answers = false;
        self.buf.clear();
        if self.buf.capacity() > KEEP_BYTES_MAX {
            self.buf.shrink_to(FLUSH_BYTES);
        }
        Ok(())
    }

    /// Whether the end of an answer is not sent yet.
    pub fn holds_answer(&self) -> bool {
        self.answers
    }

    /// Makes a null of the cell that was begun.
    pub fn drop_cell(&mut self) {
        self.buf.truncate(self.cell_at + 4);
    }

    /// What is not sent yet.
    pub fn bytes_ref(&self) -> &[u8] {
        &self.buf[self.sent..]
    }

    pub fn begin(&mut self, tag: u8) -> Frame {
        self.buf.push(tag);
        let at = self.buf.len();
        self.buf.extend_from_slice(&[0; 4]);
        Frame { at }
    }

    /// Sets the length. False if the message is longer than the protocol can say; it is taken back then.
    #[must_use]
    pub fn end_checked(&mut self, frame: Frame) -> bool {
        match i32::try_from(self.buf.len() - frame.at) {
            Ok(len) => {
                self.buf[frame.at..frame.at + 4].copy_from_slice(&len.to_be_bytes());
                true
            }
            Err(_) => {
                self.take_back(frame);
                false
            }
        }
    }

    fn end(&mut self, frame: Frame) {
        let fits = self.end_checked(frame);
        debug_assert!(fits, "only rows and copied data can be that long");
    }

    /// Removes an open message, as if it had not begun.
    pub fn take_back(&mut self, frame: Frame) {
        self.buf.truncate(frame.at - 1);
    }

    fn i16(&mut self, value: i16) {
        self.buf.extend_from_slice(&value.to_be_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.buf.extend_from_slice(&value.to_be_bytes());
    }

    /// Text and a zero byte. A zero inside would end it early: it is left out.
    fn text(&mut self, text: &str) {
        self.buf.extend(text.bytes().filter(|byte| *byte != 0));
        self.buf.push(0);
    }

    fn bare(&mut self, tag: u8) {
        let frame = self.begin(tag);
        self.end(frame);
    }

    /// A single byte outside of any message: the answer to SSLRequest.
    pub fn raw(&mut self, byte: u8) {
        self.buf.push(byte);
    }

    pub fn authentication_ok(&mut self) {
        let frame = self.begin(b'R');
        self.i32(0);
        self.end(frame);
    }

    pub fn authentication_sasl(&mut self, mechanism: &str) {
        let frame = self.begin(b'R');
        self.i32(10);
        self.text(mechanism);
        self.buf.push(0);
        self.end(frame);
    }

    /// The server's messages inside the SASL exchange: 11 to continue, 12 at its end.
    pub fn authentication_sasl_data(&mut self, kind: i32, data: &str) {
        let frame = self.begin(b'R');
        self.i32(kind);
        self.buf.extend_from_slice(data.as_bytes());
        self.end(frame);
    }

    /// We speak 3.0; `options` are the `_pq_.` options that the client asked for.
    pub fn negotiate_protocol_version(&mut self, options: &[&str]) {
        let frame = self.begin(b'v');
        self.i32(0);
        self.i32(options.len() as i32);
        for option in options {
            self.text(option);
        }
        self.end(frame);
    }

    pub fn parameter_status(&mut self, name: &str, value: &str) {
        let frame = self.begin(b'S');
        self.text(name);
        self.text(value);
        self.end(frame);
    }

    pub fn notification(&mut self, notification: &Notification) {
        let frame = self.begin(b'A');
        self.i32(notification.pid);
        self.text(&notification.channel);
        self.text(&notification.payload);
        self.end(frame);
    }

    pub fn backend_key(&mut self, pid: i32, secret: i32) {
        let frame = self.begin(b'K');
        self.i32(pid);
        self.i32(secret);
        self.end(frame);
    }

    pub fn ready(&mut self, status: TransactionStatus) {
        self.answers = true;
        let frame = self.begin(b'Z');
        self.buf.push(match status {
            TransactionStatus::Idle => b'I',
            TransactionStatus::InTransaction => b'T',
            TransactionStatus::Failed => b'E',
        });
        self.end(frame);
    }

    /// ErrorResponse or NoticeResponse, by severity.
    pub fn error(&mut self, error: &SqlError) {
        let frame = self.begin(if error.severity >= Severity::Error { b'E' } else { b'N' });
        let position = error.position.map(|position| position.to_string());
        let object = error.object.as_deref();
        let fields = [
            (b'S', Some(error.severity.name())),
            (b'V', Some(error.severity.name())),
            (b'C', Some(error.sqlstate)),
            (b'M', Some(error.message.as_str())),
            (b'D', error.detail.as_deref()),
            (b'H', error.hint.as_deref()),
            (b'P', position.as_deref()),
            (b'W', error.context.as_deref()),
            (b's', object.and_then(|object| object.schema.as_deref())),
            (b't', object.and_then(|object| object.table.as_deref())),
            (b'c', object.and_then(|object| object.column.as_deref())),
            (b'd', object.and_then(|object| object.datatype.as_deref())),
            (b'n', object.and_then(|object| object.constraint.as_deref())),
            (b'R', error.routine),
        ];
        for (code, value) in fields {
            if let Some(value) = value {
                self.buf.push(code);
                self.text(value);
            }
        }
        self.buf.push(0);
        self.end(frame);
    }

    pub fn parse_complete(&mut self) {
        self.bare(b'1');
    }

    pub fn bind_complete(&mut self) {
        self.bare(b'2');
    }

    pub fn close_complete(&mut self) {
        self.bare(b'3');
    }

    pub fn no_data(&mut self) {
        self.bare(b'n');
    }

    pub fn empty_query(&mut self) {
        self.bare(b'I');
    }

    pub fn portal_suspended(&mut self) {
        self.bare(b's');
    }

    pub fn copy_done(&mut self) {
        self.bare(b'c');
    }

    /// `SELECT 7`.
    pub fn command_complete_rows(&mut self, verb: &str, rows: u64) {
        let frame = self.begin(b'C');
        self.buf.extend_from_slice(verb.as_bytes());
        self.buf.push(b' ');
        self.buf.extend_from_slice(itoa::Buffer::new().format(rows).as_bytes());
        self.buf.push(0);
        self.end(frame);
    }

    pub fn command_complete(&mut self, tag: &str) {
        let frame = self.begin(b'C');
        self.text(tag);
        self.end(frame);
    }

    pub fn parameter_description(&mut self, types: &[DataType]) {
        let frame = self.begin(b't');
        self.i16(types.len() as i16);
        for ty in types {
            self.i32(ty.oid() as i32);
        }
        self.end(frame);
    }

    pub fn row_description(&mut self, columns: &[ResultColumn]) {
        let frame = self.begin(b'T');
        self.i16(columns.len() as i16);
        for column in columns {
            self.text(&column.name);
            self.i32(column.table_oid as i32);
            self.i16(column.column_no);
            // A domain shows as what it is over.
            let ty = if column.ty.is_vector() { &column.ty } else { column.ty.underlying() };
            self.i32(ty.oid() as i32);
            self.i16(ty.pg_len());
            self.i32(if *ty == column.ty { column.typmod } else { ty.typmod() });
            self.i16(column.format);
        }
        self.end(frame);
    }

    /// CopyInResponse (`G`) or CopyOutResponse (`H`): one format for all columns.
    pub fn copy_response(&mut self, tag: u8, format: i16, columns: usize) {
        let frame = self.begin(tag);
        self.buf.push(format as u8);
        self.i16(columns as i16);
        for _ in 0..columns {
            self.i16(format);
        }
        self.end(frame);
    }

    pub fn copy_data(&mut self, bytes: &[u8]) {
        let frame = self.begin(b'd');
        self.buf.extend_from_slice(bytes);
        self.end(frame);
    }
}

/// `'D' | length i32 | cells i16 | per cell: length i32 (-1: null), value`.
impl RowSink for Output {
    fn describe(&mut self, columns: &[ResultColumn]) {
        self.row_description(columns);
    }

    fn mark(&self) -> usize {
        self.buf.len()
    }

    /// Nothing is sent in between.
    fn back_to(&mut self, mark: usize) {
        self.buf.truncate(mark);
    }

    fn begin_row(&mut self, cells: usize) {
        self.row_at = self.begin(b'D').at;
        self.i16(cells as i16);
    }

    fn begin_cell(&mut self) -> &mut Vec<u8> {
        self.cell_at = self.buf.len();
        self.i32(NULL);
        &mut self.buf
    }

    fn end_cell(&mut self) -> Result<(), SqlError> {
        let at = self.cell_at;
        let len = i32::try_from(self.buf.len() - at - 4)
            .map_err(|_| SqlError::new("54000", "a value is longer than 2147483647 bytes"))?;
        self.buf[at..at + 4].copy_from_slice(&len.to_be_bytes());
        Ok(())
    }

    fn null(&mut self) {
        self.i32(NULL);
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        match self.end_checked(Frame { at: self.row_at }) {
            true => Ok(()),
            false => Err(SqlError::new("54000", "a result row is longer than 2147483647 bytes")),
        }
    }

    fn drop_row(&mut self) {
        self.take_back(Frame { at: self.row_at });
    }
}

#[cfg(test)]
mod tests;
