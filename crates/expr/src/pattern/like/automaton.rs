//! Patterns as automata, for storage that has no texts but what stands for them.

use super::{LikePattern, Matcher};
use crate::tree::Expr;
use basalt_types::automaton::{Automaton, Part};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

/// A condition on one column of texts: whether they are in a set, or are not. Null is no pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Sought {
    pub texts: Arc<Automaton>,
    pub negated: bool,
}

impl Sought {
    /// What a comparison or pattern with a constant asks of the column beside it; `None` for others.
    pub fn of(expr: &Expr) -> Option<Sought> {
        let Expr::Call { function, args, .. } = expr else { return None };
        let [text, Expr::Const { value: Datum::Bytes(wanted), .. }] = args.as_slice() else { return None };
        is_column(text).then_some(())?;
        let wanted = std::str::from_utf8(wanted).ok()?;
        let (texts, negated) = match function.name.as_str() {
            "textlike" => (LikePattern::new(wanted, Some('\\'), false).automaton()?, false),
            "textnlike" => (LikePattern::new(wanted, Some('\\'), false).automaton()?, true),
            "texteq" => (Automaton::new(&[Part::Bytes(wanted.as_bytes())])?, false),
            "textne" => (Automaton::new(&[Part::Bytes(wanted.as_bytes())])?, true),
            _ => return None,
        };
        Some(Sought { texts: Arc::new(texts), negated })
    }
}

/// A column whose bytes are those of the text.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column { ty, .. } => matches!(ty, DataType::Text | DataType::Varchar(_)),
        Expr::Cast { expr, to: DataType::Text, .. } => {
            matches!(&**expr, Expr::Column { ty: DataType::Text | DataType::Varchar(_), .. })
        }
        _ => false,
    }
}

impl LikePattern {
    /// `None` if a character of any kind, or any case, is among what it asks for, or it is too long.
    fn automaton(&self) -> Option<Automaton> {
        if self.insensitive {
            return None;
        }
        match &self.matcher {
            Matcher::Exact(text) => Automaton::new(&[Part::Bytes(text.as_bytes())]),
            Matcher::Prefix(prefix) => Automaton::new(&[Part::Bytes(prefix.as_bytes()), Part::Any]),
            Matcher::Suffix(suffix) => Automaton::new(&[Part::Any, Part::Bytes(suffix.as_bytes())]),
            Matcher::Contains(finder) => Automaton::new(&[Part::Any, Part::Bytes(finder.needle()), Part::Any]),
            Matcher::Pieces { prefix, middle, suffix } => {
                let mut parts = vec![Part::Bytes(prefix.as_bytes()), Part::Any];
                middle.iter().for_each(|finder| parts.extend([Part::Bytes(finder.needle()), Part::Any]));
                parts.push(Part::Bytes(suffix.as_bytes()));
                Automaton::new(&parts)
            }
            Matcher::General(_) => None,
        }
    }
}
