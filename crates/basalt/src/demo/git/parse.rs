//! The bytes of `git log --numstat -z` with [`FORMAT`], commit by commit.
//!
//! All is split at NUL, the only byte that can be in neither a path nor a name. A commit is a token that starts
//! with [`MARK`], five more fields, then its files (git-log(1), "--numstat"): `added TAB deleted TAB path`, or,
//! for a rename, `added TAB deleted TAB` and two more tokens, the old path and the new. A binary file has `-` for
//! both counts. Counts begin with a digit or `-`, so that no file is taken for a commit, whatever its path.
//! The first file's token begins with the newline that ends the commit's header; empty tokens separate.

use super::{Change, Commit};
use std::io::{BufRead, Error, ErrorKind, Result};

const MARK: u8 = 0x02;
/// Sha, parents, author, author time, commit time, subject.
pub const FORMAT: &str = "%x02%H%x00%P%x00%an%x00%at%x00%ct%x00%s%x00";

pub struct Parser<R> {
    input: R,
    /// A commit's first token, read while looking for the end of the one before.
    ahead: Option<Vec<u8>>,
}

impl<R: BufRead> Parser<R> {
    pub fn new(input: R) -> Parser<R> {
        Parser { input, ahead: None }
    }

    pub fn next(&mut self) -> Result<Option<Commit>> {
        let Some(head) = self.head()? else { return Ok(None) };
        let sha = text(&head[1..]);
        let parents = self.field("parents", &sha)?.split(|byte| *byte == b' ').filter(|sha| !sha.is_empty()).count();
        let author = text(&self.field("author", &sha)?);
        let authored_at = time(&self.field("author time", &sha)?);
        let committed_at = time(&self.field("commit time", &sha)?);
        let subject = text(&self.field("subject", &sha)?);
        let mut changes = Vec::new();
        while let Some(token) = self.token()? {
            if token.first() == Some(&MARK) {
                self.ahead = Some(token);
                break;
            }
            let token = token.strip_prefix(b"\n").unwrap_or(&token);
            if !token.is_empty() {
                changes.push(self.change(token, &sha)?);
            }
        }
        Ok(Some(Commit { sha, author, committed_at, authored_at, parents, subject, changes }))
    }

    fn head(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        while let Some(token) = self.token()? {
            match token.first() {
                Some(&MARK) => return Ok(Some(token)),
                None | Some(b'\n') if token.len() <= 1 => {}
                _ => return Err(invalid(format!("expected a commit, found {:?}", text(&token)))),
            }
        }
        Ok(None)
    }

    fn change(&mut self, token: &[u8], sha: &str) -> Result<Change> {
        let mut parts = token.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(deleted), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(invalid(format!("commit {sha}: expected a file's counts, found {:?}", text(token))));
        };
        let (added, deleted) = (count(added, sha)?, count(deleted, sha)?);
        let path = match path {
            b"" => {
                self.field("path before a rename", sha)?;
                self.field("path after a rename", sha)?
            }
            path => path.to_vec(),
        };
        Ok(Change { path: text(&path), added, deleted })
    }

    fn field(&mut self, what: &str, sha: &str) -> Result<Vec<u8>> {
        self.token()?
            .ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, format!("commit {sha} ends before its {what}")))
    }

    fn token(&mut self) -> Result<Option<Vec<u8>>> {
        let mut token = Vec::new();
        if self.input.read_until(0, &mut token)? == 0 {
            return Ok(None);
        }
        if token.last() == Some(&0) {
            token.pop();
        }
        Ok(Some(token))
    }
}

/// Bytes that are not UTF-8 become U+FFFD.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn count(bytes: &[u8], sha: &str) -> Result<Option<i32>> {
    if bytes == b"-" {
        return Ok(None);
    }
    let number = std::str::from_utf8(bytes).ok().and_then(|digits| digits.parse::<u64>().ok());
    let number =
        number.ok_or_else(|| invalid(format!("commit {sha}: expected a count of lines, found {:?}", text(bytes))))?;
    Ok(Some(i32::try_from(number).unwrap_or(i32::MAX)))
}

/// Broken commits have times of any size, or none: those are of 1970.
fn time(bytes: &[u8]) -> i64 {
    const YEAR_9999: i64 = 253_402_300_799;
    let seconds = std::str::from_utf8(bytes).ok().and_then(|digits| digits.trim().parse::<i64>().ok()).unwrap_or(0);
    seconds.clamp(0, YEAR_9999)
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidData, message)
}
