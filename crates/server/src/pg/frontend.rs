//! What clients send (PostgreSQL manual 55.7, "Message Formats"), taken apart in place.
//!
//! Names, statement text and parameters borrow from the message. A body that does not fit its message
//! type is 08P01; text that is not UTF-8 is 22021.

use basalt_query::SqlError;
use smallvec::SmallVec;

/// `Describe` and `Close` name either.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Statement,
    Portal,
}

#[derive(PartialEq, Debug)]
pub enum Frontend<'a> {
    Query { sql: &'a str },
    Parse { statement: &'a str, sql: &'a str, param_oids: Vec<u32> },
    Bind(Bind<'a>),
    Describe { target: Target, name: &'a str },
    Execute { portal: &'a str, max_rows: usize },
    Close { target: Target, name: &'a str },
    Flush,
    Sync,
    Terminate,
    FunctionCall,
    CopyData,
    CopyDone,
    CopyFail { message: &'a str },
}

/// Formats of values: 0 text, 1 binary.
pub type Formats = SmallVec<[i16; 8]>;

#[derive(PartialEq, Debug)]
pub struct Bind<'a> {
    pub portal: &'a str,
    pub statement: &'a str,
    pub param_formats: Formats,
    pub params: SmallVec<[Option<&'a [u8]>; 8]>,
    pub result_formats: Formats,
}

/// The longest body that a message type may have; `None` for an unknown type.
///
/// Only messages that carry a user's text or data may be large.
pub fn body_bytes_max(tag: u8, large: usize) -> Option<usize> {
    const SMALL: usize = 10_000;
    match tag {
        b'Q' | b'P' | b'B' | b'd' | b'f' | b'F' => Some(large),
        b'D' | b'E' | b'C' | b'H' | b'S' | b'X' | b'c' => Some(SMALL),
        // SASL tokens may be longer than other small messages.
        b'p' => Some(65_535),
        _ => None,
    }
}

pub fn parse(tag: u8, body: &[u8]) -> Result<Frontend<'_>, SqlError> {
    let mut body = Body { rest: body };
    let message = match tag {
        b'Q' => Frontend::Query { sql: body.text()? },
        b'P' => {
            let (statement, sql) = (body.text()?, body.text()?);
            let count = body.count()?;
            let param_oids = (0..count).map(|_| body.u32()).collect::<Result<_, _>>()?;
            Frontend::Parse { statement, sql, param_oids }
        }
        b'B' => Frontend::Bind(body.bind()?),
        b'D' => Frontend::Describe { target: body.target()?, name: body.text()? },
        b'E' => {
            let portal = body.text()?;
            // Zero and less mean no limit.
            let max_rows = usize::try_from(body.u32()? as i32).unwrap_or(0);
            Frontend::Execute { portal, max_rows }
        }
        b'C' => Frontend::Close { target: body.target()?, name: body.text()? },
        b'H' => Frontend::Flush,
        b'S' => Frontend::Sync,
        b'X' => return Ok(Frontend::Terminate),
        b'F' => return Ok(Frontend::FunctionCall),
        b'd' => return Ok(Frontend::CopyData),
        b'c' => Frontend::CopyDone,
        b'f' => Frontend::CopyFail { message: body.text()? },
        _ => return Err(malformed(format!("invalid frontend message type {tag}"))),
    };
    match body.rest {
        [] => Ok(message),
        _ => Err(malformed("invalid message format")),
    }
}

/// 08P01: bytes that are not the protocol. The connection ends: what follows cannot be trusted.
#[cold]
pub fn malformed(message: impl Into<String>) -> SqlError {
    SqlError::fatal("08P01", message)
}

/// What is left of a body.
pub struct Body<'a> {
    pub rest: &'a [u8],
}

impl<'a> Body<'a> {
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], SqlError> {
        match self.rest.split_at_checked(count) {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => Err(malformed("insufficient data left in message")),
        }
    }

    pub fn u32(&mut self) -> Result<u32, SqlError> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn i16(&mut self) -> Result<i16, SqlError> {
        let bytes = self.bytes(2)?;
        Ok(i16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// The protocol's counts are 16 bits; drivers use the upper half too.
    fn count(&mut self) -> Result<usize, SqlError> {
        Ok(usize::from(self.i16()? as u16))
    }

    /// Text up to a zero byte.
    pub fn text(&mut self) -> Result<&'a str, SqlError> {
        let end = memchr::memchr(0, self.rest).ok_or_else(|| malformed("invalid string in message"))?;
        let (text, rest) = (&self.rest[..end], &self.rest[end + 1..]);
        self.rest = rest;
        std::str::from_utf8(text).map_err(|error| {
            let byte = text[error.valid_up_to()];
            SqlError::new("22021", format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}"))
        })
    }

    fn target(&mut self) -> Result<Target, SqlError> {
        match self.bytes(1)? {
            b"S" => Ok(Target::Statement),
            b"P" => Ok(Target::Portal),
            other => Err(malformed(format!("invalid DESCRIBE or CLOSE message subtype {}", other[0]))),
        }
    }

    fn formats(&mut self) -> Result<Formats, SqlError> {
        let count = self.count()?;
        let (formats, _) = self.bytes(count.saturating_mul(2))?.as_chunks();
        Ok(formats.iter().map(|bytes| i16::from_be_bytes(*bytes)).collect())
    }

    fn bind(&mut self) -> Result<Bind<'a>, SqlError> {
        let (portal, statement) = (self.text()?, self.text()?);
        let param_formats = self.formats()?;
        let count = self.count()?;
        let mut params = SmallVec::with_capacity(count.min(self.rest.len() / 4));
        for _ in 0..count {
            params.push(match self.u32()? as i32 {
                -1 => None,
                len => {
                    let len = usize::try_from(len).map_err(|_| malformed("invalid parameter length in Bind"))?;
                    Some(self.bytes(len)?)
                }
            });
        }
        let result_formats = self.formats()?;
        Ok(Bind { portal, statement, param_formats, params, result_formats })
    }
}

#[cfg(test)]
mod tests;
