//! Tokens of a path.

use crate::error::{Error, Result};

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    /// A quoted string.
    String(String),
    /// A bare word: a key, a keyword or a method.
    Word {
        text: String,
        /// It was written with escapes, and is no keyword.
        plain: bool,
    },
    Variable(String),
    Integer(String),
    Number(String),
    /// `&&`, `**`, `(` and so on.
    Symbol(&'static str),
    End,
}

/// A token and where it stands, for messages.
pub(super) struct Spanned {
    pub token: Token,
    pub start: usize,
    pub end: usize,
}

/// Longest first.
const SYMBOLS: [&str; 31] = [
    "&&", "||", "**", "<=", "==", "<>", "!=", ">=", "<", ">", "!", "?", "%", "$", ".", "[", "]", "{", "}", "(", ")",
    "|", "&", "=", "@", "#", ",", "*", ":", "-", "+",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Spanned>> {
    let mut lexer = Lexer { text, at: 0 };
    let mut out = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let start = lexer.at;
        let token = lexer.token()?;
        let is_end = token == Token::End;
        out.push(Spanned { token, start, end: lexer.at });
        if is_end {
            return Ok(out);
        }
    }
}

/// 42601 with the text that could not be read.
pub(super) fn syntax_error(message: &str, near: &str) -> Error {
    let message = match near {
        "" => format!("{message} at end of jsonpath input"),
        near => format!("{message} at or near \"{near}\" of jsonpath input"),
    };
    Error::new("42601", message)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

/// Characters that stand for themselves in words.
fn is_word(c: char) -> bool {
    !is_blank(c) && !"?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(c)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            while self.peek().is_some_and(is_blank) {
                self.take();
            }
            if !self.rest().starts_with("/*") {
                return Ok(());
            }
            match self.rest()[2..].find("*/") {
                Some(end) => self.at += 2 + end + 2,
                None => return Err(syntax_error("unexpected end of comment", "")),
            }
        }
    }

    fn token(&mut self) -> Result<Token> {
        let Some(c) = self.peek() else { return Ok(Token::End) };
        let second = self.rest()[c.len_utf8()..].chars().next();
        match c {
            '"' => {
                self.take();
                self.quoted().map(Token::String)
            }
            '$' if second == Some('"') => {
                self.at += 2;
                self.quoted().map(Token::Variable)
            }
            '$' if second.is_some_and(is_word) => {
                self.take();
                let start = self.at;
                while self.peek().is_some_and(is_word) {
                    self.take();
                }
                Ok(Token::Variable(self.text[start..self.at].to_string()))
            }
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|digit| digit.is_ascii_digit()) => self.number(),
            '/' => {
                self.take();
                Ok(Token::Symbol("/"))
            }
            c if is_word(c) || c == '\\' => self.word(),
            _ => {
                let symbol = SYMBOLS.into_iter().find(|symbol| self.rest().starts_with(symbol));
                let symbol = symbol.ok_or_else(|| syntax_error("syntax error", &c.to_string()))?;
                self.at += symbol.len();
                Ok(Token::Symbol(symbol))
            }
        }
    }

    fn word(&mut self) -> Result<Token> {
        let mut text = String::new();
        let mut plain = true;
        while let Some(c) = self.peek() {
            if c == '\\' {
                self.take();
                plain = false;
                self.escape(&mut text)?;
            } else if is_word(c) {
                self.take();
                text.push(c);
            } else {
                break;
            }
        }
        Ok(Token::Word { text, plain })
    }

    fn quoted(&mut self) -> Result<String> {
        let mut out = String::new();
        loop {
            match self.take() {
                Some('"') => return Ok(out),
                Some('\\') => self.escape(&mut out)?,
                Some(c) => out.push(c),
                None => return Err(syntax_error("unterminated quoted string", "")),
            }
        }
    }

    /// Behind a backslash.
    fn escape(&mut self, out: &mut String) -> Result<()> {
        let Some(c) = self.take() else { return Err(syntax_error("unexpected end after backslash", "")) };
        match c {
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\x0b'),
            'x' => {
                let code = self.hex(2).ok_or_else(|| self.bad_escape("invalid hexadecimal character sequence"))?;
                push_code(code, out)?;
            }
            'u' => {
                let first = self.unicode()?;
                let code = match first {
                    0xd800..0xdc00 => {
                        if !self.rest().starts_with("\\u") {
                            return Err(lone_surrogate());
                        }
                        self.at += 2;
                        match self.unicode()? {
                            second @ 0xdc00..0xe000 => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                            0xd800..0xdc00 => {
                                return Err(surrogate("Unicode high surrogate must not follow a high surrogate."));
                            }
                            _ => return Err(surrogate("Unicode low surrogate must follow a high surrogate.")),
                        }
                    }
                    0xdc00..0xe000 => return Err(lone_surrogate()),
                    code => code,
                };
                push_code(code, out)?;
            }
            other => out.push(other),
        }
        Ok(())
    }

    /// The digits behind `\u`: four, or up to six in braces.
    fn unicode(&mut self) -> Result<u32> {
        let invalid = "invalid Unicode escape sequence";
        if self.peek() == Some('{') {
            let digits = self.rest()[1..].split_once('}').map(|(digits, _)| digits.to_string());
            let digits = digits.filter(|digits| (1..=6).contains(&digits.len()));
            let code = digits.as_ref().and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let code = code.ok_or_else(|| self.bad_escape(invalid))?;
            self.at += digits.map_or(0, |digits| digits.len()) + 2;
            return Ok(code);
        }
        self.hex(4).ok_or_else(|| self.bad_escape(invalid))
    }

    fn hex(&mut self, count: usize) -> Option<u32> {
        let digits = self.rest().get(..count)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let code = u32::from_str_radix(digits, 16).ok();
        self.at += count;
        code
    }

    fn bad_escape(&self, message: &str) -> Error {
        let start = self.text[..self.at].rfind('\\').unwrap_or(self.at);
        syntax_error(message, &self.text[start..self.at])
    }

    /// `1`, `1.`, `.1`, `1.5e3`.
    fn number(&mut self) -> Result<Token> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        // An integer has no leading zeros: 01 is 0 with something behind it.
        let mut end = if bytes[start] == b'0' { start + 1 } else { digits(start) };
        let mut is_integer = true;
        if bytes.get(end) == Some(&b'.') {
            is_integer = false;
            end = digits(end + 1);
        }
        if let Some(b'e' | b'E') = bytes.get(end) {
            let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + signed);
            if exponent > end + 1 + signed {
                is_integer = false;
                end = exponent;
            } else if signed == 1 {
                return Err(syntax_error("invalid numeric literal", &self.text[start..end + 2]));
            }
        }
        if let Some(junk) = self.text[end..].chars().next().filter(|c| is_word(*c) || *c == '\\') {
            let shown = &self.text[start..end + junk.len_utf8()];
            return Err(syntax_error("trailing junk after numeric literal", shown));
        }
        self.at = end;
        let text = self.text[start..end].to_string();
        Ok(if is_integer { Token::Integer(text) } else { Token::Number(text) })
    }
}

fn push_code(code: u32, out: &mut String) -> Result<()> {
    match char::from_u32(code) {
        Some('\0') => Err(Error::new("22P05", "unsupported Unicode escape sequence")
            .with_detail("\\u0000 cannot be converted to text.")),
        Some(c) => {
            out.push(c);
            Ok(())
        }
        None => Err(Error::new("42601", "could not convert Unicode to server encoding")),
    }
}

fn lone_surrogate() -> Error {
    surrogate("Unicode low surrogate must follow a high surrogate.")
}

fn surrogate(detail: &str) -> Error {
    Error::new("22P02", "invalid input syntax for type jsonpath").with_detail(detail)
}
