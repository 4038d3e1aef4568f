//! A PostgreSQL protocol client that hides nothing: one blocking socket, replies as they came.
//!
//! Drivers turn types and errors into their own; here column types, SQLSTATE, notices and tags stay visible
//! (PostgreSQL manual, chapter "Message Formats").

use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A server that is silent for this long has failed the test.
const READ_TIMEOUT: Duration = Duration::from_secs(90);
const MESSAGE_BYTES_MAX: usize = 1 << 28;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    pub name: String,
    pub type_oid: u32,
    pub format: i16,
}

/// The fields of an ErrorResponse or NoticeResponse, by their letter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fields(pub Vec<(u8, String)>);

impl Fields {
    pub fn get(&self, letter: u8) -> &str {
        self.0.iter().find(|(name, _)| *name == letter).map_or("", |(_, value)| value)
    }

    pub fn sqlstate(&self) -> &str {
        self.get(b'C')
    }

    pub fn message(&self) -> &str {
        self.get(b'M')
    }
}

/// What another session said, or this one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notified {
    pub pid: i32,
    pub own: bool,
    pub channel: String,
    pub payload: String,
}

/// What came back for one statement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reply {
    pub columns: Option<Vec<Column>>,
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// Format of COPY (in either direction) and the bytes of COPY TO.
    pub copy: Option<(u8, Vec<u8>)>,
    pub tag: Option<String>,
    pub error: Option<Fields>,
    pub notices: Vec<Fields>,
    pub notifications: Vec<Notified>,
}

impl Reply {
    /// A value of the only row as text.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        let value = self.rows.get(row)?.get(column)?.as_deref()?;
        std::str::from_utf8(value).ok()
    }

    pub fn sqlstate(&self) -> Option<&str> {
        self.error.as_ref().map(Fields::sqlstate)
    }
}

/// Replies up to ReadyForQuery, and the transaction status that it told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub replies: Vec<Reply>,
    pub status: u8,
}

impl Answer {
    pub fn last(&self) -> &Reply {
        self.replies.last().expect("an answer has a reply")
    }

    pub fn error(&self) -> Option<&Fields> {
        self.replies.iter().find_map(|reply| reply.error.as_ref())
    }

    pub fn sqlstate(&self) -> Option<&str> {
        self.error().map(Fields::sqlstate)
    }
}

pub struct Wire {
    stream: TcpStream,
    pub parameters: Vec<(String, String)>,
    /// Process id and secret, for a cancel request.
    pub key: (i32, i32),
    /// The error that refused the connection is not an I/O error: callers look at it.
    pub refused: Option<Fields>,
}

impl Wire {
    /// Connects and logs in without a password.
    pub fn connect(addr: SocketAddr, user: &str, database: &str) -> Result<Wire> {
        let wire = Wire::try_connect(addr, user, database)?;
        if let Some(error) = &wire.refused {
            bail!("{addr} refused the connection: {} {}", error.sqlstate(), error.message());
        }
        Ok(wire)
    }

    /// As `connect`; a refusal by the server is left in `refused`.
    pub fn try_connect(addr: SocketAddr, user: &str, database: &str) -> Result<Wire> {
        let stream = TcpStream::connect_timeout(&addr, Duration::from_secs(10)).with_context(|| format!("{addr}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        let mut wire = Wire { stream, parameters: Vec::new(), key: (0, 0), refused: None };
        let mut body = 196_608_i32.to_be_bytes().to_vec();
        for (name, value) in [("user", user), ("database", database)] {
            put_text(&mut body, name);
            put_text(&mut body, value);
        }
        body.push(0);
        let mut frame = (body.len() as i32 + 4).to_be_bytes().to_vec();
        frame.extend(body);
        wire.stream.write_all(&frame)?;
        loop {
            let (kind, body) = wire.receive()?;
            match kind {
                b'R' => ensure!(body == [0; 4], "the server asks for authentication {body:?}"),
                b'S' => {
                    let mut body = Body(&body);
                    let name = body.text()?;
                    wire.parameters.push((name, body.text()?));
                }
                b'K' => {
                    let mut body = Body(&body);
                    wire.key = (body.i32()?, body.i32()?);
                }
                b'Z' => return Ok(wire),
                b'E' => {
                    wire.refused = Some(fields(&body)?);
                    return Ok(wire);
                }
                b'N' => {}
                other => bail!("message {:?} during login", char::from(other)),
            }
        }
    }

    pub fn set_read_timeout(&mut self, timeout: Duration) -> Result<()> {
        Ok(self.stream.set_read_timeout(Some(timeout))?)
    }

    /// A second handle on the socket, to write while another thread reads.
    pub fn try_clone(&self) -> Result<Wire> {
        Ok(Wire { stream: self.stream.try_clone()?, parameters: Vec::new(), key: self.key, refused: None })
    }

    /// One message to the server.
    pub fn send(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        let mut frame = Vec::with_capacity(body.len() + 5);
        put_message(&mut frame, kind, body);
        self.send_raw(&frame)
    }

    /// Bytes as they are, well-formed or not.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// One message from the server.
    pub fn receive(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).context("reading a message")?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        ensure!((4..MESSAGE_BYTES_MAX).contains(&length), "message {:?} of {length} bytes", char::from(head[0]));
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).context("reading a message")?;
        Ok((head[0], body))
    }

    /// Simple protocol. `copy_data` is what a COPY FROM STDIN in `sql` gets.
    pub fn simple(&mut self, sql: &str, copy_data: Option<&[u8]>) -> Result<Answer> {
        self.send_simple(sql)?;
        self.answer(copy_data)
    }

    pub fn send_simple(&mut self, sql: &str) -> Result<()> {
        let mut body = Vec::new();
        put_text(&mut body, sql);
        self.send(b'Q', &body)
    }

    /// One statement that must succeed, in the simple protocol.
    pub fn run(&mut self, sql: &str) -> Result<Reply> {
        let mut answer = self.simple(sql, None)?;
        if let Some(error) = answer.error() {
            bail!("{sql}: {} {}", error.sqlstate(), error.message());
        }
        answer.replies.pop().context("no reply")
    }

    /// Extended protocol without parameters: parse, bind, describe, execute, sync in one flight.
    pub fn extended(&mut self, sql: &str, binary: bool) -> Result<Answer> {
        let mut frame = Vec::new();
        let mut parse = vec![0];
        put_text(&mut parse, sql);
        parse.extend([0, 0]);
        put_message(&mut frame, b'P', &parse);
        let bind: &[u8] = if binary { &[0, 0, 0, 0, 0, 0, 0, 1, 0, 1] } else { &[0, 0, 0, 0, 0, 0, 0, 0] };
        put_message(&mut frame, b'B', bind);
        put_message(&mut frame, b'D', b"P\0");
        put_message(&mut frame, b'E', &[0, 0, 0, 0, 0]);
        put_message(&mut frame, b'S', &[]);
        self.send_raw(&frame)?;
        self.answer(None)
    }

    /// Makes `sql` the prepared statement of this name; parameters get the types that the server finds.
    pub fn prepare(&mut self, name: &str, sql: &str) -> Result<Answer> {
        let mut frame = Vec::new();
        put_message(&mut frame, b'P', &parse_body(name, sql));
        put_message(&mut frame, b'S', &[]);
        self.send_raw(&frame)?;
        self.answer(None)
    }

    /// Runs a prepared statement with values as text.
    pub fn execute(&mut self, name: &str, values: &[String]) -> Result<Answer> {
        self.send_execute(name, values)?;
        self.answer(None)
    }

    pub fn send_execute(&mut self, name: &str, values: &[String]) -> Result<()> {
        let mut frame = Vec::new();
        put_bound(&mut frame, name, values);
        self.send_raw(&frame)
    }

    /// Runs `sql` as the unnamed statement in one flight, with values as text.
    pub fn with_values(&mut self, sql: &str, values: &[String]) -> Result<Answer> {
        let mut frame = Vec::new();
        put_message(&mut frame, b'P', &parse_body("", sql));
        put_bound(&mut frame, "", values);
        self.send_raw(&frame)?;
        self.answer(None)
    }

    /// Reads up to ReadyForQuery.
    pub fn answer(&mut self, copy_data: Option<&[u8]>) -> Result<Answer> {
        let mut replies = Vec::new();
        let mut open = Reply::default();
        loop {
            let (kind, body) = self.receive()?;
            match kind {
                b'T' => open.columns = Some(columns(&body)?),
                b'D' => open.rows.push(values(&body)?),
                b'C' | b'I' | b's' => {
                    open.tag = Some(match kind {
                        b'C' => Body(&body).text()?,
                        b'I' => "(empty)".into(),
                        _ => "(suspended)".into(),
                    });
                    replies.push(std::mem::take(&mut open));
                }
                b'E' => {
                    open.error = Some(fields(&body)?);
                    replies.push(std::mem::take(&mut open));
                }
                b'N' => open.notices.push(fields(&body)?),
                b'A' => open.notifications.push(self.notified(&body)?),
                b'S' => {
                    let mut body = Body(&body);
                    let name = body.text()?;
                    self.parameters.push((name, body.text()?));
                }
                b'G' => {
                    open.copy = Some((body.first().copied().unwrap_or_default(), Vec::new()));
                    match copy_data {
                        Some(data) => self.send_copy(data)?,
                        None => self.send(b'f', b"the test has no data for it\0")?,
                    }
                }
                b'H' => open.copy = Some((body.first().copied().unwrap_or_default(), Vec::new())),
                b'd' => match &mut open.copy {
                    Some((_, data)) => data.extend(body),
                    None => bail!("CopyData outside COPY"),
                },
                b'c' | b'1' | b'2' | b'3' | b'n' | b't' => {}
                b'Z' => {
                    if !open.notices.is_empty() || !open.notifications.is_empty() || open.columns.is_some() {
                        replies.push(open);
                    }
                    return Ok(Answer { replies, status: body.first().copied().unwrap_or_default() });
                }
                other => bail!("unexpected message {:?}", char::from(other)),
            }
        }
    }

    /// What a message of tag `A` says.
    fn notified(&self, body: &[u8]) -> Result<Notified> {
        let mut body = Body(body);
        let pid = body.i32()?;
        Ok(Notified { pid, own: pid == self.key.0, channel: body.text()?, payload: body.text()? })
    }

    /// Waits for a notification while nothing runs.
    pub fn next_notified(&mut self) -> Result<Notified> {
        match self.receive()? {
            (b'A', body) => self.notified(&body),
            (other, _) => bail!("message {:?} instead of a notification", char::from(other)),
        }
    }

    fn send_copy(&mut self, data: &[u8]) -> Result<()> {
        for chunk in data.chunks(64 << 10) {
            self.send(b'd', chunk)?;
        }
        self.send(b'c', &[])
    }

    /// Asks the server to end what this session runs.
    pub fn cancel(addr: SocketAddr, key: (i32, i32)) -> Result<()> {
        let mut stream = TcpStream::connect(addr)?;
        let mut frame = 16_i32.to_be_bytes().to_vec();
        for word in [80_877_102, key.0, key.1] {
            frame.extend(word.to_be_bytes());
        }
        Ok(stream.write_all(&frame)?)
    }
}

pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.as_bytes());
    out.push(0);
}

pub fn put_message(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend((body.len() as u32 + 4).to_be_bytes());
    out.extend(body);
}

fn parse_body(name: &str, sql: &str) -> Vec<u8> {
    let mut body = Vec::new();
    put_text(&mut body, name);
    put_text(&mut body, sql);
    body.extend([0, 0]);
    body
}

/// Bind, describe, execute, sync.
fn put_bound(frame: &mut Vec<u8>, name: &str, values: &[String]) {
    let mut bind = vec![0];
    put_text(&mut bind, name);
    bind.extend([0, 0]);
    bind.extend((values.len() as u16).to_be_bytes());
    for value in values {
        bind.extend((value.len() as u32).to_be_bytes());
        bind.extend(value.as_bytes());
    }
    bind.extend([0, 0]);
    put_message(frame, b'B', &bind);
    put_message(frame, b'D', b"P\0");
    put_message(frame, b'E', &[0, 0, 0, 0, 0]);
    put_message(frame, b'S', &[]);
}

struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8]> {
        ensure!(self.0.len() >= count, "message too short");
        let (head, tail) = self.0.split_at(count);
        self.0 = tail;
        Ok(head)
    }

    fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.take(2)?.try_into()?))
    }

    fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.take(4)?.try_into()?))
    }

    fn text(&mut self) -> Result<String> {
        let end = self.0.iter().position(|byte| *byte == 0).context("text without an end")?;
        // PostgreSQL cuts characters in some of its messages.
        let text = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.u8()?;
        Ok(text)
    }
}

fn columns(body: &[u8]) -> Result<Vec<Column>> {
    let mut body = Body(body);
    let count = body.i16()?;
    let mut columns = Vec::new();
    for _ in 0..count {
        let name = body.text()?;
        let (_table, _number) = (body.i32()?, body.i16()?);
        let type_oid = body.i32()? as u32;
        let (_length, _modifier) = (body.i16()?, body.i32()?);
        columns.push(Column { name, type_oid, format: body.i16()? });
    }
    Ok(columns)
}

fn values(body: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
    let mut body = Body(body);
    let count = body.i16()?;
    let mut values = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let length = body.i32()?;
        values.push(if length < 0 { None } else { Some(body.take(length as usize)?.to_vec()) });
    }
    Ok(values)
}

pub fn fields(body: &[u8]) -> Result<Fields> {
    let mut body = Body(body);
    let mut found = Vec::new();
    loop {
        match body.u8()? {
            0 => return Ok(Fields(found)),
            letter => found.push((letter, body.text()?)),
        }
    }
}
