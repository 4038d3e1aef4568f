//! The client's side of PostgreSQL's protocol 3.0 (manual, chapter 55), as little of it as the workloads need.
//!
//! Statements are prepared when a connection is made and known by their number. One is run by Bind, Execute and Sync in
//! one write; its reply is read into a buffer that is used again, and rows are looked at where they lie. Integers and
//! times are sent in binary, everything else as text, and rows come as text. Several may go out together, with one Sync.
//!
//! A connection is the same in both modes. While it blocks (loading, checking), a reply is there when its future is
//! first polled. Afterwards the future waits until the loop in `terminals` has seen the socket become readable.

use crate::address::{Address, Socket};
use crate::latency::Latencies;
use anyhow::{Context as _, Result, bail};
use std::future::Future;
use std::io::{ErrorKind, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

/// What the server said of a statement that failed.
#[derive(Debug, thiserror::Error)]
#[error("{sqlstate}: {message} ({sql})")]
pub struct ServerError {
    pub sqlstate: String,
    pub message: String,
    pub sql: String,
}

impl ServerError {
    /// Whether the same transaction may well succeed when it is tried once more.
    pub fn is_conflict(&self) -> bool {
        matches!(self.sqlstate.as_str(), "40001" | "40P01")
    }
}

/// Its SQL, and a letter for the type of each parameter: `i` integer, `n` numeric, `s` whatever the server infers
/// for text, `t` timestamp.
pub struct Statement {
    pub sql: String,
    pub types: &'static str,
}

pub fn statement(sql: impl Into<String>, types: &'static str) -> Statement {
    Statement { sql: sql.into(), types }
}

#[derive(Clone, Copy)]
pub enum Param<'a> {
    Int(i32),
    /// Hundredths, for numeric.
    Cents(i64),
    Text(&'a [u8]),
    /// Microseconds since 2000-01-01.
    Time(i64),
}

pub struct Connection {
    stream: Socket,
    blocking: bool,
    /// By number, for the messages of errors.
    statements: Vec<String>,
    /// Of each statement, if asked for.
    timings: Option<Vec<Latencies>>,
    /// What is asked, for the same.
    asked: String,
    /// Numbers of the statements that have been sent together.
    running: Vec<usize>,
    request: Vec<u8>,
    reply: Vec<u8>,
    /// Of `reply`, what has been received, and how far messages are complete.
    received: usize,
    complete: usize,
    /// Where in `reply` the error is.
    error: Option<usize>,
    /// Of the last ReadyForQuery: `I` outside of a transaction, `T` in one, `E` in a failed one.
    status: u8,
}

const REPLY_BYTES_MIN: usize = 16 * 1024;

impl Connection {
    pub fn open(address: &Address) -> Result<Connection> {
        let mut connection = Connection {
            stream: Socket::connect(address)?,
            blocking: true,
            statements: Vec::new(),
            timings: None,
            asked: "startup".to_string(),
            running: Vec::new(),
            request: Vec::new(),
            reply: vec![0; REPLY_BYTES_MIN],
            received: 0,
            complete: 0,
            error: None,
            status: b'I',
        };
        let mut body = 196_608i32.to_be_bytes().to_vec();
        for part in ["user", &address.user, "database", &address.database, "application_name", "basalt-bench", ""] {
            body.extend_from_slice(part.as_bytes());
            body.push(0);
        }
        connection.request.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
        connection.request.extend_from_slice(&body);
        connection.converse()?;
        Ok(connection)
    }

    /// Runs SQL as it is, several statements if it has several; the rows are those of all of them.
    pub fn simple(&mut self, sql: &str) -> Result<Rows<'_>> {
        self.asked = sql.to_string();
        let begin = self.begin(b'Q');
        self.text(sql.as_bytes());
        self.end(begin);
        self.converse()
    }

    /// Prepares the statements, which are from now on known by their places in the list.
    pub fn prepare(&mut self, statements: &[Statement]) -> Result<()> {
        for (number, statement) in statements.iter().enumerate() {
            self.asked = statement.sql.clone();
            let begin = self.begin(b'P');
            self.text(format!("s{number}").as_bytes());
            self.text(statement.sql.as_bytes());
            self.request.extend_from_slice(&(statement.types.len() as i16).to_be_bytes());
            for letter in statement.types.bytes() {
                let oid: i32 = match letter {
                    b'i' => 23,
                    b'n' => 1700,
                    b't' => 1114,
                    _ => 0,
                };
                self.request.extend_from_slice(&oid.to_be_bytes());
            }
            self.end(begin);
            self.sync();
            self.converse()?;
            self.statements.push(statement.sql.clone());
        }
        Ok(())
    }

    /// From now on replies are waited for by polling: whoever polls must see when the socket becomes readable.
    pub fn stop_blocking(&mut self) -> Result<()> {
        self.blocking = false;
        Ok(self.stream.set_nonblocking()?)
    }

    /// From now on each statement's latency is kept.
    pub fn time_statements(&mut self) {
        self.timings = Some(vec![Latencies::default(); self.statements.len()]);
    }

    /// By the statements' numbers; nothing if they were not timed.
    pub fn timings(&self) -> &[Latencies] {
        self.timings.as_deref().unwrap_or_default()
    }

    pub fn socket(&self) -> &Socket {
        &self.stream
    }

    pub fn in_transaction(&self) -> bool {
        self.status != b'I'
    }

    /// Runs a prepared statement: the request is written when the reply is first polled.
    pub fn run(&mut self, number: usize, params: &[Param]) -> Reply<'_> {
        self.batch().add(number, params).send()
    }

    /// Statements that go out together, as drivers that pipeline send them: none after one that fails is run.
    pub fn batch(&mut self) -> Batch<'_> {
        self.asked.clear();
        self.running.clear();
        Batch { connection: self }
    }

    fn execute(&mut self, number: usize, params: &[Param]) {
        let begin = self.begin(b'B');
        self.request.push(0);
        self.request.push(b's');
        self.decimal(number as u64);
        self.request.push(0);
        self.request.extend_from_slice(&(params.len() as i16).to_be_bytes());
        for param in params {
            let binary = matches!(param, Param::Int(_) | Param::Time(_));
            self.request.extend_from_slice(&i16::from(binary).to_be_bytes());
        }
        self.request.extend_from_slice(&(params.len() as i16).to_be_bytes());
        for param in params {
            self.param(*param);
        }
        self.request.extend_from_slice(&[0, 0]);
        self.end(begin);
        // Execute of the unnamed portal, all rows.
        self.request.extend_from_slice(&[b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0]);
        self.running.push(number);
    }

    fn param(&mut self, param: Param) {
        match param {
            Param::Int(value) => {
                self.request.extend_from_slice(&[0, 0, 0, 4]);
                self.request.extend_from_slice(&value.to_be_bytes());
            }
            Param::Time(value) => {
                self.request.extend_from_slice(&[0, 0, 0, 8]);
                self.request.extend_from_slice(&value.to_be_bytes());
            }
            Param::Text(value) => {
                self.request.extend_from_slice(&(value.len() as i32).to_be_bytes());
                self.request.extend_from_slice(value);
            }
            Param::Cents(value) => {
                let begin = self.request.len();
                self.request.extend_from_slice(&[0; 4]);
                write_cents(value, &mut self.request);
                let length = (self.request.len() - begin - 4) as i32;
                self.request[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    fn decimal(&mut self, value: u64) {
        write_decimal(value, &mut self.request);
    }

    fn begin(&mut self, tag: u8) -> usize {
        self.request.push(tag);
        self.request.extend_from_slice(&[0; 4]);
        self.request.len() - 4
    }

    fn end(&mut self, begin: usize) {
        let length = (self.request.len() - begin) as i32;
        self.request[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.request.extend_from_slice(text);
        self.request.push(0);
    }

    fn sync(&mut self) {
        self.request.extend_from_slice(&[b'S', 0, 0, 0, 4]);
    }

    /// Writes the request and forgets the reply before. No request is larger than the socket's buffer, and none is
    /// written before the reply to the one before is there: a socket that does not block takes it whole.
    fn write(&mut self) -> Result<()> {
        self.received = 0;
        self.complete = 0;
        self.error = None;
        self.stream.write_all(&self.request)?;
        self.request.clear();
        Ok(())
    }

    /// Reads what is there until the reply is complete.
    fn read(&mut self) -> Poll<Result<()>> {
        loop {
            if self.received == self.reply.len() {
                self.reply.resize(2 * self.received, 0);
            }
            let room = self.reply.len() - self.received;
            match self.stream.read(&mut self.reply[self.received..]) {
                Ok(0) => bail_ready("the server closed the connection")?,
                Ok(count) => {
                    self.received += count;
                    if self.is_complete()? {
                        return Poll::Ready(Ok(()));
                    }
                    // What comes after this makes the socket readable anew, but not the end of a connection that has
                    // come with the server's last words.
                    if count < room && !self.blocking && self.error.is_none() {
                        return Poll::Pending;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Whether the server waits for us: after ReadyForQuery, or for rows of COPY.
    fn is_complete(&mut self) -> Result<bool> {
        while let Some((tag, body)) = message(&self.reply[..self.received], self.complete) {
            let begin = self.complete;
            self.complete += 5 + body.len();
            match tag {
                b'Z' => {
                    self.status = *body.first().context("ReadyForQuery without a status")?;
                    return Ok(true);
                }
                b'G' => return Ok(true),
                b'E' if self.error.is_none() => self.error = Some(begin),
                b'R' if body != [0; 4] => bail!("the server asks for a password: let it trust this machine"),
                _ => {}
            }
        }
        // A connection that is refused ends without ReadyForQuery.
        if self.error.is_some() && self.asked == "startup" {
            return Ok(true);
        }
        Ok(false)
    }

    fn converse(&mut self) -> Result<Rows<'_>> {
        self.write()?;
        match self.read() {
            Poll::Ready(result) => result?,
            Poll::Pending => bail!("a socket that blocks would block"),
        }
        self.rows()
    }

    fn rows(&self) -> Result<Rows<'_>> {
        match self.error {
            None => Ok(Rows { messages: &self.reply[..self.complete] }),
            Some(begin) => {
                let (_, body) = message(&self.reply[..self.received], begin).context("half an error")?;
                Err(server_error(body, &self.asked).into())
            }
        }
    }

    /// Begins COPY … FROM STDIN.
    pub fn copy(&mut self, sql: &str) -> Result<Copy<'_>> {
        self.simple(sql)?;
        let begin = self.begin(b'd');
        Ok(Copy { connection: self, begin, row_begins: true })
    }
}

fn bail_ready(what: &str) -> Result<()> {
    bail!("{what}")
}

/// Tag and body of the message at `offset`, if all of it is there.
fn message(bytes: &[u8], offset: usize) -> Option<(u8, &[u8])> {
    let header = bytes.get(offset..offset + 5)?;
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    Some((header[0], bytes.get(offset + 5..offset + 1 + length.max(4))?))
}

fn server_error(body: &[u8], sql: &str) -> ServerError {
    let mut error = ServerError { sqlstate: String::new(), message: String::new(), sql: sql.to_string() };
    for field in body.split(|byte| *byte == 0) {
        let text = || String::from_utf8_lossy(&field[1..]).into_owned();
        match field.first() {
            Some(b'C') => error.sqlstate = text(),
            Some(b'M') => error.message = text(),
            _ => {}
        }
    }
    error
}

/// See [`Connection::batch`].
pub struct Batch<'c> {
    connection: &'c mut Connection,
}

impl<'c> Batch<'c> {
    pub fn add(self, number: usize, params: &[Param]) -> Batch<'c> {
        self.connection.execute(number, params);
        self
    }

    pub fn send(self) -> Reply<'c> {
        self.connection.sync();
        let began = self.connection.timings.is_some().then(Instant::now);
        Reply { connection: Some(self.connection), written: false, began }
    }
}

/// The reply to prepared statements that were sent together.
pub struct Reply<'c> {
    connection: Option<&'c mut Connection>,
    written: bool,
    began: Option<Instant>,
}

impl<'c> Future for Reply<'c> {
    type Output = Result<Rows<'c>>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context) -> Poll<Self::Output> {
        let this = &mut *self;
        let connection = this.connection.take().expect("polled after it was ready");
        // Right after the request the reply cannot be there yet: trying would be a call in vain.
        let try_now = this.written || connection.blocking;
        if !this.written {
            connection.write()?;
            this.written = true;
        }
        if !try_now || connection.read()?.is_pending() {
            this.connection = Some(connection);
            return Poll::Pending;
        }
        // What each one of several took nobody knows.
        if let (Some(timings), Some(began), [number]) = (&mut connection.timings, this.began, &connection.running[..]) {
            timings[*number].add(began.elapsed().as_micros() as u64);
        }
        if let Some(error) = connection.error {
            let done = Rows { messages: &connection.reply[..error] }.sets().count();
            let failed = connection.running.get(done).and_then(|number| connection.statements.get(*number));
            connection.asked = failed.cloned().unwrap_or_default();
        }
        Poll::Ready(connection.rows())
    }
}

/// The messages of a reply.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    messages: &'a [u8],
}

impl<'a> Rows<'a> {
    pub fn iter(self) -> impl Iterator<Item = Row<'a>> {
        let mut offset = 0;
        std::iter::from_fn(move || {
            loop {
                let (tag, body) = message(self.messages, offset)?;
                offset += 5 + body.len();
                if tag == b'D' {
                    return Some(Row(body));
                }
            }
        })
    }

    /// Those of each statement that was sent.
    pub fn sets(self) -> Sets<'a> {
        Sets { messages: self.messages }
    }

    pub fn first(self) -> Option<Row<'a>> {
        self.iter().next()
    }

    /// The only row, or the first one of several.
    pub fn one(self) -> Result<Row<'a>> {
        self.first().context("no row where there must be one")
    }

    /// How many rows the statement says that it has returned or changed.
    pub fn affected(self) -> u64 {
        let mut offset = 0;
        while let Some((tag, body)) = message(self.messages, offset) {
            offset += 5 + body.len();
            if tag == b'C' {
                let tag = body.strip_suffix(&[0]).unwrap_or(body);
                let number = tag.rsplit(|byte| *byte == b' ').next();
                return number.and_then(|number| str::from_utf8(number).ok()?.parse().ok()).unwrap_or(0);
            }
        }
        0
    }
}

/// See [`Rows::sets`].
pub struct Sets<'a> {
    messages: &'a [u8],
}

impl<'a> Sets<'a> {
    /// That of the next statement, which there must be.
    pub fn another(&mut self) -> Result<Rows<'a>> {
        self.next().context("fewer answers than statements")
    }
}

impl<'a> Iterator for Sets<'a> {
    type Item = Rows<'a>;

    fn next(&mut self) -> Option<Rows<'a>> {
        let mut end = 0;
        loop {
            let (tag, body) = message(self.messages, end)?;
            end += 5 + body.len();
            if tag == b'C' {
                let (messages, rest) = self.messages.split_at(end);
                self.messages = rest;
                return Some(Rows { messages });
            }
        }
    }
}

/// The body of a DataRow: how many columns, then length and bytes of each.
#[derive(Clone, Copy)]
pub struct Row<'a>(&'a [u8]);

impl<'a> Row<'a> {
    /// Nothing for NULL and where there is no such column.
    pub fn get(self, column: usize) -> Option<&'a str> {
        let mut rest = self.0.get(2..)?;
        for _ in 0..column {
            let length = length_of(rest)?;
            rest = rest.get(4 + length.unwrap_or(0)..)?;
        }
        str::from_utf8(rest.get(4..4 + length_of(rest)??)?).ok()
    }

    pub fn int(self, column: usize) -> Result<i32> {
        let text = self.get(column).with_context(|| format!("column {column} is null"))?;
        text.parse().with_context(|| format!("column {column} is {text:?}"))
    }

    /// A numeric with two decimals, in hundredths.
    pub fn cents(self, column: usize) -> Result<i64> {
        let text = self.get(column).with_context(|| format!("column {column} is null"))?;
        let (whole, hundredths) = text.split_once('.').unwrap_or((text, "00"));
        let digits = format!("{whole}{hundredths:0<2}");
        digits.parse().with_context(|| format!("column {column} is {text:?}"))
    }
}

fn length_of(field: &[u8]) -> Option<Option<usize>> {
    let length = i32::from_be_bytes(field.get(..4)?.try_into().ok()?);
    Some(usize::try_from(length).ok())
}

/// Rows on their way into a table, in COPY's text format, sent 64 KB at a time.
pub struct Copy<'c> {
    connection: &'c mut Connection,
    begin: usize,
    row_begins: bool,
}

const COPY_BYTES: usize = 64 * 1024;

impl Copy<'_> {
    /// Begins the next column: a tab before all but the first.
    fn column(&mut self) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.row_begins) {
            self.connection.request.push(b'\t');
        }
        &mut self.connection.request
    }

    pub fn int(&mut self, value: i64) -> &mut Self {
        let out = self.column();
        if value < 0 {
            out.push(b'-');
        }
        write_decimal(value.unsigned_abs(), out);
        self
    }

    pub fn cents(&mut self, value: i64) -> &mut Self {
        write_cents(value, self.column());
        self
    }

    /// Has no tab, line end or backslash in it.
    pub fn text(&mut self, value: impl AsRef<[u8]>) -> &mut Self {
        self.column().extend_from_slice(value.as_ref());
        self
    }

    pub fn fill(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        write(self.column());
        self
    }

    pub fn null(&mut self) -> &mut Self {
        self.text(b"\\N")
    }

    pub fn end_row(&mut self) -> Result<()> {
        self.connection.request.push(b'\n');
        self.row_begins = true;
        if self.connection.request.len() > COPY_BYTES {
            self.flush()?;
            self.begin = self.connection.begin(b'd');
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.connection.end(self.begin);
        self.connection.stream.write_all(&self.connection.request)?;
        self.connection.request.clear();
        Ok(())
    }

    /// How many rows the server has taken.
    pub fn finish(mut self) -> Result<u64> {
        self.flush()?;
        self.connection.request.extend_from_slice(&[b'c', 0, 0, 0, 4]);
        Ok(self.connection.converse()?.affected())
    }
}

pub fn write_decimal(value: u64, out: &mut Vec<u8>) {
    let begin = out.len();
    let mut left = value;
    loop {
        out.push(b'0' + (left % 10) as u8);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out[begin..].reverse();
}

pub fn write_cents(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let hundredths = value.unsigned_abs();
    write_decimal(hundredths / 100, out);
    out.extend_from_slice(&[b'.', b'0' + (hundredths / 10 % 10) as u8, b'0' + (hundredths % 10) as u8]);
}
