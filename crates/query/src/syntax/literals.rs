//! String constants that take more than one token: `'a'` continued on the next line, `U&'…'` and `U&"…"` with
//! UESCAPE (PostgreSQL manual 4.1.1 and 4.1.2.2 to 4.1.2.3).

use super::reader::{is_word, position_of};
use crate::error::{Result, SqlError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Whitespace};

/// The tokens of a text, white space included, with every constant in one token.
pub(super) fn joined(tokens: Vec<TokenWithSpan>, sql: &str) -> Result<Vec<TokenWithSpan>> {
    if !(0..tokens.len()).any(|at| is_string(&tokens[at].token) || opens_unicode_name(&tokens, at)) {
        return Ok(tokens);
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        if let Token::UnicodeStringLiteral(_) = &token.token {
            let (escape, next) = escape_character(&tokens, at + 1, sql)?;
            let source = source(sql, token.span);
            let raw = source.get(3..source.len().saturating_sub(1)).unwrap_or_default().replace("''", "'");
            let text = decoded(&raw, escape).map_err(|error| error.at(place(sql, token.span.start)))?;
            out.push(TokenWithSpan::new(Token::SingleQuotedString(text), token.span));
            at = next;
        } else if opens_unicode_name(&tokens, at) {
            let Token::Word(word) = &tokens[at + 2].token else { return Err(SqlError::internal("a name is a word")) };
            let (escape, next) = escape_character(&tokens, at + 3, sql)?;
            let text = decoded(&word.value, escape).map_err(|error| error.at(place(sql, token.span.start)))?;
            out.push(TokenWithSpan::new(Token::make_word(&text, Some('"')), token.span));
            at = next;
        } else if let Some((last, joined)) = continued(&tokens, at, sql)? {
            out.push(TokenWithSpan::new(joined, Span::new(token.span.start, tokens[last].span.end)));
            at = last + 1;
        } else {
            out.push(token.clone());
            at += 1;
        }
    }
    Ok(out)
}

/// 42601 for a number that a name follows without a space: `123abc`, `1_000`, `0x1F`.
pub(super) fn check_numbers(tokens: &[TokenWithSpan], sql: &str) -> Result<()> {
    for (at, token) in tokens.iter().enumerate() {
        let junk = match &token.token {
            Token::Number(_, long) => {
                let next = tokens.get(at + 1).filter(|next| next.span.start == token.span.end);
                *long || next.is_some_and(|next| matches!(&next.token, Token::Word(word) if word.quote_style.is_none()))
            }
            // `X'…'` is one, `0x…` is none.
            Token::HexStringLiteral(_) => source(sql, token.span).starts_with('0'),
            _ => false,
        };
        if junk {
            let start =
                source(sql, Span::new(token.span.start, tokens.last().map_or(token.span.end, |last| last.span.end)));
            let digits = start.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(start.len());
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
            let junk = start[digits..].find(|c: char| !is_part(c)).unwrap_or(start.len() - digits);
            let shown = &start[..digits + junk];
            let message = format!("trailing junk after numeric literal at or near \"{shown}\"");
            return Err(SqlError::new("42601", message).at(place(sql, token.span.start)));
        }
    }
    Ok(())
}

fn is_string(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::NationalStringLiteral(_)
    )
}

/// `U&"…"`, which comes as three tokens without space between them.
fn opens_unicode_name(tokens: &[TokenWithSpan], at: usize) -> bool {
    let [Some(letter), Some(ampersand), Some(name)] = [tokens.get(at), tokens.get(at + 1), tokens.get(at + 2)] else {
        return false;
    };
    is_word(&letter.token, "u")
        && ampersand.token == Token::Ampersand
        && matches!(&name.token, Token::Word(word) if word.quote_style == Some('"'))
        && letter.span.end == ampersand.span.start
        && ampersand.span.end == name.span.start
}

/// What UESCAPE says, and the token behind it.
fn escape_character(tokens: &[TokenWithSpan], after: usize, sql: &str) -> Result<(char, usize)> {
    let spaces =
        |from: usize| tokens[from.min(tokens.len())..].iter().take_while(|token| is_space(&token.token)).count();
    let word = after + spaces(after);
    if !tokens.get(word).is_some_and(|token| is_word(&token.token, "uescape")) {
        return Ok(('\\', after));
    }
    let value = word + 1 + spaces(word + 1);
    let bad = |message: &str| SqlError::syntax(message).at(tokens.get(value).and_then(|at| place(sql, at.span.start)));
    let Some(Token::SingleQuotedString(text)) = tokens.get(value).map(|token| &token.token) else {
        return Err(bad("UESCAPE must be followed by a simple string literal"));
    };
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(escape), None)
            if !escape.is_ascii_hexdigit() && !matches!(escape, '+' | '\'' | '"') && !escape.is_whitespace() =>
        {
            Ok((escape, value + 1))
        }
        _ => Err(bad("invalid Unicode escape character")),
    }
}

/// Decodes `\XXXX` and `\+XXXXXX`, with surrogate pairs.
fn decoded(raw: &str, escape: char) -> Result<String> {
    let invalid =
        || SqlError::syntax("invalid Unicode escape").with_hint("Unicode escapes must be \\XXXX or \\+XXXXXX.");
    let bad_pair = || SqlError::syntax("invalid Unicode surrogate pair");
    let chars: Vec<char> = raw.chars().collect();
    let mut out = String::with_capacity(raw.len());
    let mut high: Option<u32> = None;
    let mut at = 0;
    while at < chars.len() {
        if chars[at] != escape {
            if high.is_some() {
                return Err(bad_pair());
            }
            out.push(chars[at]);
            at += 1;
            continue;
        }
        if chars.get(at + 1) == Some(&escape) {
            if high.is_some() {
                return Err(bad_pair());
            }
            out.push(escape);
            at += 2;
            continue;
        }
        let (from, digits) = if chars.get(at + 1) == Some(&'+') { (at + 2, 6) } else { (at + 1, 4) };
        let hex: String = chars.get(from..from + digits).ok_or_else(invalid)?.iter().collect();
        if !hex.chars().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        let code = u32::from_str_radix(&hex, 16).map_err(|_| invalid())?;
        at = from + digits;
        match (high.take(), code) {
            (None, 0xD800..=0xDBFF) => high = Some(code),
            (Some(high), 0xDC00..=0xDFFF) => {
                let pair = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00);
                out.push(char::from_u32(pair).ok_or_else(bad_pair)?);
            }
            (None, 0xDC00..=0xDFFF) | (Some(_), _) => return Err(bad_pair()),
            (None, 0) => return Err(SqlError::syntax("invalid Unicode escape value")),
            (None, code) => {
                out.push(char::from_u32(code).ok_or_else(|| SqlError::syntax("invalid Unicode escape value"))?);
            }
        }
    }
    if high.is_some() { Err(bad_pair()) } else { Ok(out) }
}

fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

/// A constant that goes on behind white space with a line break in it: its last token, and all of it as one.
fn continued(tokens: &[TokenWithSpan], at: usize, sql: &str) -> Result<Option<(usize, Token)>> {
    let mut parts: Vec<String> = Vec::new();
    let mut last = at;
    if !is_string(&tokens[at].token) {
        return Ok(None);
    }
    loop {
        let mut next = last + 1;
        let mut breaks = false;
        while let Some(Token::Whitespace(space)) = tokens.get(next).map(|token| &token.token) {
            match space {
                Whitespace::Newline | Whitespace::SingleLineComment { .. } => breaks = true,
                Whitespace::MultiLineComment(_) => return finish(tokens, at, last, parts),
                _ => {}
            }
            next += 1;
        }
        match tokens.get(next).map(|token| &token.token) {
            Some(Token::SingleQuotedString(text)) if breaks => {
                parts.push(match &tokens[at].token {
                    Token::EscapedStringLiteral(_) => unescaped(source(sql, tokens[next].span))?,
                    _ => text.clone(),
                });
                last = next;
            }
            _ => return finish(tokens, at, last, parts),
        }
    }
}

fn finish(tokens: &[TokenWithSpan], first: usize, last: usize, parts: Vec<String>) -> Result<Option<(usize, Token)>> {
    if first == last {
        return Ok(None);
    }
    let rest = parts.concat();
    Ok(match &tokens[first].token {
        Token::SingleQuotedString(text) => Some((last, Token::SingleQuotedString(format!("{text}{rest}")))),
        Token::NationalStringLiteral(text) => Some((last, Token::NationalStringLiteral(format!("{text}{rest}")))),
        Token::EscapedStringLiteral(text) => Some((last, Token::EscapedStringLiteral(format!("{text}{rest}")))),
        _ => None,
    })
}

/// A further part of `E'…'`, quotes included, by the rules of its first.
fn unescaped(source: &str) -> Result<String> {
    let text = format!("E{source}");
    match super::tokens(&text)?.into_iter().next().map(|token| token.token) {
        Some(Token::EscapedStringLiteral(text)) => Ok(text),
        _ => Err(SqlError::syntax("invalid escape string")),
    }
}

/// The part of the text that a token was made of.
fn source(sql: &str, span: Span) -> &str {
    let byte = |location: Location| {
        let characters = place(sql, location).map_or(0, |place| place as usize - 1);
        sql.char_indices().nth(characters).map_or(sql.len(), |(byte, _)| byte)
    };
    sql.get(byte(span.start)..byte(span.end)).unwrap_or_default()
}

fn place(sql: &str, location: Location) -> Option<u32> {
    position_of(sql, location)
}
