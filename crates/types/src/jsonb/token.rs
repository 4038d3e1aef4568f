//! JSON text as a flat run of tokens, for work on whole documents: one pass, whatever the depth.

use super::{after_blanks, after_string, after_word};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Token<'a> {
    BeginObject,
    EndObject,
    BeginArray,
    EndArray,
    /// A member's key, quoted; its value follows.
    Key(&'a str),
    /// A string with its quotes, a number, `true`, `false` or `null`.
    Scalar(&'a str),
}

pub struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

pub fn tokens(text: &str) -> Tokens<'_> {
    Tokens { text, at: 0 }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':')) {
            self.at += 1;
        }
        let start = self.at;
        let simple = match bytes.get(start)? {
            b'{' => Token::BeginObject,
            b'}' => Token::EndObject,
            b'[' => Token::BeginArray,
            b']' => Token::EndArray,
            b'"' => {
                let end = after_string(bytes, start);
                let next = after_blanks(bytes, end);
                self.at = next;
                let quoted = self.text.get(start..end)?;
                return Some(match bytes.get(next) {
                    Some(b':') => Token::Key(quoted),
                    _ => Token::Scalar(quoted),
                });
            }
            _ => {
                self.at = after_word(bytes, start);
                return Some(Token::Scalar(self.text.get(start..self.at)?));
            }
        };
        self.at += 1;
        Some(simple)
    }
}
