//! Expressions in a plan's text.

use crate::pgcatalog::expression_text;
use crate::system::SystemContext;
use basalt_expr::tree::Expr;

/// A longer text is cut.
const TEXT_CHARS_MAX: usize = 300;

/// An expression as PostgreSQL would write it; what has no text of its own by the columns that it is made of. `columns`:
/// what those are called.
pub(crate) fn words_of(system: &SystemContext, columns: &[String], expr: &Expr) -> String {
    let mut words = columns.to_vec();
    let mut met = Vec::new();
    let placed = expr.clone().rewrite(&mut |node| match node {
        Expr::Column { index, ty } => {
            met.extend(columns.get(index).cloned());
            Expr::Column { index, ty }
        }
        Expr::Param { index, ty } => {
            words.push(format!("${}", index + 1));
            Expr::Column { index: words.len() - 1, ty }
        }
        other => other,
    });
    match expression_text(system, &words, &placed) {
        Some(text) => shortened(&text),
        None => format!("expression of {}", met.join(", ")),
    }
}

/// On one line, and not longer than anybody reads.
pub(crate) fn shortened(text: &str) -> String {
    let line = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let line = line.trim();
    match line.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_stand_on_one_line() {
        assert_eq!(shortened("\nCASE\n    WHEN a THEN b\nEND"), "CASE WHEN a THEN b END");
        assert_eq!(shortened(&"ä".repeat(1000)).chars().count(), TEXT_CHARS_MAX + 1);
    }
}
