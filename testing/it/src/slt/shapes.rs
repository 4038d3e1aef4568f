//! The shape of a statement: its text without literals and names, so that statements can be counted by what they
//! are rather than by what they say.
//!
//! Keywords, functions, types and operators make a shape; literals, and the names of tables and columns, do not,
//! nor does how often a member of a list is repeated.

use crate::wire::Wire;
use anyhow::Result;
use std::collections::HashSet;

pub struct Words {
    kept: HashSet<String>,
}

impl Words {
    /// Keywords, and the types and functions of the catalog.
    pub fn load(postgres: &mut Wire) -> Result<Words> {
        let reply = postgres.run(
            "SELECT word FROM pg_get_keywords() UNION SELECT typname::text FROM pg_type
             UNION SELECT proname::text FROM pg_proc",
        )?;
        let kept = (0..reply.rows.len()).filter_map(|row| reply.text(row, 0)).map(str::to_string);
        Ok(Words { kept: kept.filter(|word| word.len() > 1).collect() })
    }

    pub fn shape(&self, sql: &str) -> String {
        let mut out: Vec<String> = Vec::new();
        let mut rest = sql;
        while let Some(c) = rest.chars().next() {
            let (token, len) = self.token(c, rest);
            rest = &rest[len..];
            let Some(token) = token else { continue };
            out.push(token);
            // `n, n` is `n`, `(n), (n)` is `(n)`.
            for width in [1, 3, 4, 5, 6, 7, 8, 9] {
                let end = out.len();
                let repeated = end > 2 * width
                    && out[end - width - 1] == ","
                    && out[end - width..] == out[end - 2 * width - 1..end - width - 1];
                if repeated && (width == 1 || out[end - width] == "(" || width == 3) {
                    out.truncate(end - width - 1);
                }
            }
        }
        out.join(" ")
    }

    /// The next token and its length in bytes; nothing for what does not count.
    fn token(&self, first: char, rest: &str) -> (Option<String>, usize) {
        let while_true = |from: usize, test: fn(char) -> bool| {
            rest[from..].find(|c: char| !test(c)).map_or(rest.len(), |at| from + at)
        };
        match first {
            c if c.is_whitespace() => (None, while_true(0, char::is_whitespace)),
            '-' if rest.starts_with("--") => (None, rest.find('\n').unwrap_or(rest.len())),
            '\'' => (Some("?".into()), quoted(rest, '\'')),
            '"' => (Some("n".into()), quoted(rest, '"')),
            '$' => (Some("?".into()), dollar(rest)),
            c if c.is_ascii_digit() => {
                (Some("?".into()), while_true(0, |c| c.is_ascii_alphanumeric() || c == '.' || c == '_'))
            }
            c if c.is_alphabetic() || c == '_' => {
                let end = while_true(0, |c| c.is_alphanumeric() || c == '_');
                let word = rest[..end].to_lowercase();
                // E'…', B'…' and their kin.
                if word.len() <= 1 && rest[end..].starts_with('\'') {
                    return (Some("?".into()), end + quoted(&rest[end..], '\''));
                }
                (Some(if self.kept.contains(&word) { word } else { "n".into() }), end)
            }
            c if "+-*/<>=~!@#%^&|`?:".contains(c) => {
                let end = while_true(0, |c| "+*/<>=~!@#%^&|`?:".contains(c) || c == '-');
                (Some(rest[..end].to_string()), end)
            }
            c => (Some(c.to_string()), c.len_utf8()),
        }
    }
}

/// Length of a text between quotes, doubled ones included.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            match chars.peek() {
                Some((_, next)) if *next == quote => {
                    chars.next();
                }
                _ => return at + 1,
            }
        }
    }
    text.len()
}

/// Length of `$1`, or of a text between dollar quotes.
fn dollar(text: &str) -> usize {
    let tag = text[1..].find(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(text.len(), |at| at + 1);
    if !text[tag..].starts_with('$') {
        return tag;
    }
    let mark = &text[..=tag];
    text[tag + 1..].find(mark).map_or(text.len(), |at| tag + 1 + at + mark.len())
}

#[cfg(test)]
mod tests;
