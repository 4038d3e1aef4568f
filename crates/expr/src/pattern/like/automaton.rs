//! Patterns as automata, for storage that has no texts but what stands for them.

use super::{LikePattern, Matcher};
use crate::tree::Expr;
use basalt_types::automaton::{Automaton, Part, STATES_MAX};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

/// A condition on one column of texts: whether they are in a set, or are not. Null is no pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Sought {
    pub texts: Arc<Automaton>,
    pub negated: bool,
}

/// Characters of prefixes that are compared as patterns.
const PREFIX_CHARS_MAX: i32 = 64;

impl Sought {
    /// What comparisons and patterns with constants ask of the column beside them; `None` for others.
    pub fn of(expr: &Expr) -> Option<Sought> {
        let Patterns { patterns, negated } = Patterns::of(expr)?;
        let patterns: Vec<Vec<Part<'_>>> =
            patterns.iter().map(|parts| parts.iter().map(Owned::part).collect()).collect();
        Some(Sought { texts: Arc::new(Automaton::any_of(&patterns)?), negated })
    }
}

/// A text is one of several patterns, or is none of them.
struct Patterns {
    patterns: Vec<Vec<Owned>>,
    negated: bool,
}

/// A [`Part`] that holds its bytes.
enum Owned {
    Text(String),
    Any,
}

impl Owned {
    fn part(&self) -> Part<'_> {
        match self {
            Owned::Text(text) => Part::Bytes(text.as_bytes()),
            Owned::Any => Part::Any,
        }
    }
}

/// What is compared.
#[derive(Clone, Copy)]
enum Compared {
    Text,
    /// Its first characters, so many.
    Prefix(usize),
}

impl Patterns {
    fn of(expr: &Expr) -> Option<Patterns> {
        match expr {
            Expr::Call { function, args, .. } => {
                let [text, wanted] = args.as_slice() else { return None };
                let (compared, wanted) = (compared(text)?, text_of(wanted)?);
                let is_like = matches!(compared, Compared::Text);
                let like = || Some(vec![LikePattern::new(wanted, Some('\\'), false).parts()?]);
                let equal = || compared.equal_to(wanted).into_iter().collect();
                let (patterns, negated) = match function.name.as_str() {
                    "textlike" if is_like => (like()?, false),
                    "textnlike" if is_like => (like()?, true),
                    "texteq" => (equal(), false),
                    "textne" => (equal(), true),
                    _ => return None,
                };
                Some(Patterns { patterns, negated })
            }
            Expr::InList { expr, list, equal, negated } if equal.name == "texteq" => {
                let compared = compared(expr)?;
                let wanted = list.iter().map(text_of).collect::<Option<Vec<&str>>>()?;
                let patterns = wanted.into_iter().filter_map(|wanted| compared.equal_to(wanted)).collect();
                Some(Patterns { patterns, negated: *negated })
            }
            _ => None,
        }
    }
}

impl Compared {
    /// The texts of which this is equal to something; `None`: there are none.
    fn equal_to(self, wanted: &str) -> Option<Vec<Owned>> {
        let text = Owned::Text(wanted.to_string());
        match self {
            Compared::Text => Some(vec![text]),
            Compared::Prefix(chars) => match wanted.chars().count() {
                count if count == chars => Some(vec![text, Owned::Any]),
                count if count < chars => Some(vec![text]),
                _ => None,
            },
        }
    }
}

/// Of a constant that is short enough to be part of a pattern.
fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Const { value: Datum::Bytes(text), .. } if text.len() <= STATES_MAX => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

/// A column of texts, or its prefix.
fn compared(expr: &Expr) -> Option<Compared> {
    let count = |expr: &Expr| match expr {
        Expr::Const { value: Datum::I32(count @ 0..=PREFIX_CHARS_MAX), .. } => Some(*count as usize),
        _ => None,
    };
    match expr {
        Expr::Call { function, args, .. } => match (function.name.as_str(), args.as_slice()) {
            ("substring" | "substr", [text, start, length]) if is_column(text) && count(start) == Some(1) => {
                count(length).map(Compared::Prefix)
            }
            ("left", [text, length]) if is_column(text) => count(length).map(Compared::Prefix),
            _ => None,
        },
        _ => is_column(expr).then_some(Compared::Text),
    }
}

/// A column whose bytes are those of the text.
fn is_column(expr: &Expr) -> bool {
    let is_text = |expr: &Expr| matches!(expr, Expr::Column { ty: DataType::Text | DataType::Varchar(_), .. });
    match expr {
        Expr::Cast { expr, to: DataType::Text, .. } => is_text(expr),
        expr => is_text(expr),
    }
}

impl LikePattern {
    /// `None` if a character of any kind, or any case, is among what it asks for.
    fn parts(&self) -> Option<Vec<Owned>> {
        let text = |bytes: &[u8]| Some(Owned::Text(std::str::from_utf8(bytes).ok()?.to_string()));
        if self.insensitive {
            return None;
        }
        match &self.matcher {
            Matcher::Exact(wanted) => Some(vec![text(wanted.as_bytes())?]),
            Matcher::Prefix(prefix) => Some(vec![text(prefix.as_bytes())?, Owned::Any]),
            Matcher::Suffix(suffix) => Some(vec![Owned::Any, text(suffix.as_bytes())?]),
            Matcher::Contains(finder) => Some(vec![Owned::Any, text(finder.needle())?, Owned::Any]),
            Matcher::Pieces { prefix, middle, suffix } => {
                let mut parts = vec![text(prefix.as_bytes())?, Owned::Any];
                for finder in middle {
                    parts.extend([text(finder.needle())?, Owned::Any]);
                }
                parts.push(text(suffix.as_bytes())?);
                Some(parts)
            }
            Matcher::General(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
