//! `LIKE` patterns (manual 9.7.1): `%` any run, `_` one character, an escape before either.

mod automaton;
mod column;

pub use automaton::Sought;

use crate::error::{Error, Result};
use memchr::memmem::Finder;
use std::cell::RefCell;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct LikePattern {
    matcher: Matcher,
    insensitive: bool,
    /// It ends in the escape character: texts that match up to there fail.
    breaks: bool,
}

#[derive(Clone, Debug)]
enum Matcher {
    Exact(String),
    Prefix(String),
    Suffix(String),
    Contains(Box<Finder<'static>>),
    /// Literal runs with `%` between and no `_`: prefix, middle pieces in order, suffix.
    Pieces {
        prefix: String,
        middle: Vec<Finder<'static>>,
        suffix: String,
    },
    General(Vec<Token>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Char(char),
    One,
    Any,
    /// An escape character with nothing behind it.
    Broken,
}

impl LikePattern {
    pub fn new(pattern: &str, escape: Option<char>, insensitive: bool) -> LikePattern {
        let folded;
        let pattern = if insensitive {
            folded = pattern.to_lowercase();
            &folded
        } else {
            pattern
        };
        let tokens = tokens(pattern, escape);
        let breaks = tokens.last() == Some(&Token::Broken);
        LikePattern { matcher: Matcher::new(tokens), insensitive, breaks }
    }

    /// Whether it ends in the escape character, so that it may fail.
    pub fn breaks(&self) -> bool {
        self.breaks
    }

    /// 22025 where a text is looked at up to an escape character that ends the pattern.
    pub fn matches(&self, text: &str) -> Result<bool> {
        self.found(text).ok_or_else(ends_in_escape)
    }

    /// `None`: it fails.
    fn found(&self, text: &str) -> Option<bool> {
        if self.insensitive { self.matcher.matches(&text.to_lowercase()) } else { self.matcher.matches(text) }
    }

    /// What every match begins with, and what may follow it.
    pub fn prefix(&self) -> Option<(String, Rest)> {
        if self.insensitive {
            return None;
        }
        let (prefix, rest) = match &self.matcher {
            Matcher::Exact(text) => (text.clone(), Rest::Nothing),
            Matcher::Prefix(text) => (text.clone(), Rest::Anything),
            Matcher::Pieces { prefix, .. } => (prefix.clone(), Rest::Something),
            Matcher::General(tokens) => {
                let literals = tokens.iter().take_while(|token| matches!(token, Token::Char(_))).count();
                let rest = match tokens.get(literals) {
                    Some(Token::Broken) => Rest::Failure,
                    _ => Rest::Something,
                };
                (literal(&tokens[..literals]), rest)
            }
            Matcher::Suffix(_) | Matcher::Contains(_) => return None,
        };
        (!prefix.is_empty() || matches!(rest, Rest::Nothing | Rest::Failure)).then_some((prefix, rest))
    }
}

/// What follows the beginning of a match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    Nothing,
    /// Whatever there is.
    Anything,
    /// What the pattern goes on with.
    Something,
    /// Nothing is matched: the pattern ends in its escape character, on which longer texts fail.
    Failure,
}

/// What texts begin with for which a function of a text and a constant holds, and what may follow it.
pub fn beginning_of(function: &str, constant: &str) -> Option<(String, Rest)> {
    match function {
        "textlike" => LikePattern::new(constant, Some('\\'), false).prefix(),
        "starts_with" if !constant.is_empty() => Some((constant.to_string(), Rest::Anything)),
        _ => None,
    }
}

/// The least text that is greater than all that begin like this, by their bytes.
pub fn next_beginning(beginning: &str) -> Option<String> {
    let mut behind = beginning.to_string();
    while let Some(last) = behind.pop() {
        // Between them lies what is no character.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            behind.push(next);
            return Some(behind);
        }
    }
    None
}

/// What is said of a pattern that ends in the escape character.
pub(crate) fn ends_in_escape() -> Error {
    Error::new("22025", "LIKE pattern must not end with escape character")
}

fn tokens(pattern: &str, escape: Option<char>) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        tokens.push(match char {
            char if Some(char) == escape => chars.next().map_or(Token::Broken, Token::Char),
            '%' if tokens.last() == Some(&Token::Any) => continue,
            '%' => Token::Any,
            '_' => Token::One,
            char => Token::Char(char),
        });
    }
    tokens
}

fn literal(tokens: &[Token]) -> String {
    tokens
        .iter()
        .filter_map(|token| match token {
            Token::Char(char) => Some(*char),
            _ => None,
        })
        .collect()
}

impl Matcher {
    fn new(tokens: Vec<Token>) -> Matcher {
        if tokens.contains(&Token::One) || tokens.contains(&Token::Broken) {
            return Matcher::General(tokens);
        }
        let pieces: Vec<String> = tokens.split(|token| *token == Token::Any).map(literal).collect();
        match pieces.as_slice() {
            [text] => Matcher::Exact(text.clone()),
            [prefix, suffix] if suffix.is_empty() => Matcher::Prefix(prefix.clone()),
            [prefix, suffix] if prefix.is_empty() => Matcher::Suffix(suffix.clone()),
            [prefix, middle, suffix] if prefix.is_empty() && suffix.is_empty() => {
                Matcher::Contains(Box::new(Finder::new(middle).into_owned()))
            }
            [prefix, middle @ .., suffix] => Matcher::Pieces {
                prefix: prefix.clone(),
                middle: middle.iter().map(|piece| Finder::new(piece).into_owned()).collect(),
                suffix: suffix.clone(),
            },
            [] => Matcher::Exact(String::new()),
        }
    }

    /// `None`: it fails.
    #[inline]
    fn matches(&self, text: &str) -> Option<bool> {
        Some(match self {
            Matcher::Exact(wanted) => text == wanted,
            Matcher::Prefix(prefix) => text.as_bytes().starts_with(prefix.as_bytes()),
            Matcher::Suffix(suffix) => text.as_bytes().ends_with(suffix.as_bytes()),
            Matcher::Contains(finder) => finder.find(text.as_bytes()).is_some(),
            Matcher::Pieces { prefix, middle, suffix } => pieces(text.as_bytes(), prefix, middle, suffix),
            Matcher::General(tokens) => return general(text, tokens),
        })
    }
}

fn pieces(text: &[u8], prefix: &str, middle: &[Finder], suffix: &str) -> bool {
    // Nothing is not compared: `memcmp` of glibc loads what it compares by a mask, and where the address of nothing is on
    // no page, as that of an empty string is, the processor takes a hundred nanoseconds to find that no byte is wanted.
    let mut rest = text;
    if !prefix.is_empty() {
        match rest.strip_prefix(prefix.as_bytes()) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    if !suffix.is_empty() {
        match rest.strip_suffix(suffix.as_bytes()) {
            Some(before) => rest = before,
            None => return false,
        }
    }
    middle.iter().all(|finder| match finder.find(rest) {
        Some(at) => {
            rest = &rest[at + finder.needle().len()..];
            true
        }
        None => false,
    })
}

/// Greedy with one point of return: on a mismatch the latest `%` takes one more character. `None` where PostgreSQL looks
/// at what is broken: with text left, or behind a `%` that it met with text left.
fn general(text: &str, tokens: &[Token]) -> Option<bool> {
    let mut chars = text.chars();
    let mut at = 0;
    let mut retry: Option<(usize, std::str::Chars)> = None;
    loop {
        match tokens.get(at) {
            Some(Token::Any) => {
                if is_broken_behind(&tokens[at..], chars.as_str()) {
                    return None;
                }
                at += 1;
                retry = Some((at, chars.clone()));
                continue;
            }
            None if chars.as_str().is_empty() => return Some(true),
            Some(Token::Broken) if !chars.as_str().is_empty() => return None,
            Some(token) => {
                let mut next = chars.clone();
                let fits = match (next.next(), token) {
                    (Some(found), Token::Char(wanted)) => found == *wanted,
                    (Some(_), _) => true,
                    (None, _) => return Some(false),
                };
                if fits {
                    chars = next;
                    at += 1;
                    continue;
                }
            }
            None => {}
        }
        let Some((token, from)) = &mut retry else { return Some(false) };
        if from.next().is_none() {
            return Some(false);
        }
        at = *token;
        chars = from.clone();
    }
}

/// Whether nothing but wildcards, for which there is enough text, stands between a `%` and what is broken.
fn is_broken_behind(tokens: &[Token], text: &str) -> bool {
    let Some((Token::Broken, wild)) = tokens.split_last() else { return false };
    let ones = wild.iter().filter(|token| **token == Token::One).count();
    wild.iter().all(|token| matches!(token, Token::Any | Token::One))
        && text.chars().take(ones.max(1)).count() >= ones.max(1)
}

/// The pattern that this thread compiled last, with what it was made from.
struct Cached {
    text: String,
    escape: Option<char>,
    insensitive: bool,
    compiled: LikePattern,
}

thread_local! {
    static CACHE: RefCell<Option<Cached>> = const { RefCell::new(None) };
}

/// Runs `with` on the compiled pattern, which is kept for the next call on this thread.
pub fn cached<T>(pattern: &str, escape: Option<char>, insensitive: bool, with: impl FnOnce(&LikePattern) -> T) -> T {
    CACHE.with_borrow_mut(|slot| {
        if let Some(cached) = slot
            && (cached.text.as_str(), cached.escape, cached.insensitive) == (pattern, escape, insensitive)
        {
            return with(&cached.compiled);
        }
        let compiled = LikePattern::new(pattern, escape, insensitive);
        let result = with(&compiled);
        *slot = Some(Cached { text: pattern.to_string(), escape, insensitive, compiled });
        result
    })
}
