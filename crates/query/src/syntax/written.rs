//! Kept queries as PostgreSQL reads them: what was brought to forms that sqlparser reads (`forms`, `clauses`,
//! `column_lists`, `recursion`, `locking`, `spelling`) goes back to what it was. Works on text, with literals out of the
//! way.

use super::forms::{ROWS_FROM, USING_ALIAS, VARIADIC};
use super::whole_rows::WHOLE_ROW;

/// Stands around the number of a literal that is out of the way.
const HELD: char = '\u{2}';

/// A query's text in PostgreSQL's syntax.
pub fn as_written(sql: &str) -> String {
    let (mut text, literals) = without_literals(sql);
    for (marked, plain) in [
        (format!("\"{ROWS_FROM}\"("), "ROWS FROM("),
        (format!("\"{VARIADIC}\" => "), "VARIADIC "),
        ("AS \"\u{1}columns\" (".to_string(), "AS ("),
        (" BETWEEN !!".to_string(), " BETWEEN SYMMETRIC "),
        (".\"*\"".to_string(), ".*"),
        (format!(".\"{WHOLE_ROW}\""), ".*"),
        ("\"grouping sets\"(".to_string(), "GROUPING SETS ("),
        ("\"empty grouping set\"()".to_string(), "()"),
        ("\"group by distinct\"(), ".to_string(), "DISTINCT "),
    ] {
        text = text.replace(&marked, plain);
    }
    text = using_aliases(text);
    text = recursion(text);
    text = exclusions(text);
    text = ties(text);
    text = samples(text, &literals);
    text = locks(text);
    with_literals(&text, &literals)
}

fn without_literals(sql: &str) -> (String, Vec<String>) {
    let (mut text, mut literals) = (String::with_capacity(sql.len()), Vec::new());
    let mut chars = sql.char_indices().peekable();
    let mut in_name = false;
    while let Some((at, c)) = chars.next() {
        if c == '"' {
            in_name = !in_name;
        }
        if c != '\'' || in_name {
            text.push(c);
            continue;
        }
        let escapes = text.ends_with(['E', 'e']);
        let mut end = sql.len();
        while let Some((next, c)) = chars.next() {
            match c {
                '\\' if escapes => {
                    chars.next();
                }
                '\'' if chars.peek().is_some_and(|(_, after)| *after == '\'') => {
                    chars.next();
                }
                '\'' => {
                    end = next + 1;
                    break;
                }
                _ => {}
            }
        }
        text.push_str(&format!("{HELD}{}{HELD}", literals.len()));
        literals.push(sql[at..end].to_string());
    }
    (text, literals)
}

fn with_literals(text: &str, literals: &[String]) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, part) in text.split(HELD).enumerate() {
        match part.parse::<usize>().ok().filter(|_| at % 2 == 1).and_then(|number| literals.get(number)) {
            Some(literal) => out.push_str(literal),
            None => out.push_str(part),
        }
    }
    out
}

/// Where the parenthesis that is open at the beginning of a text is shut.
fn shut(text: &str) -> Option<usize> {
    let (mut depth, mut in_name) = (0usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => in_name = !in_name,
            '(' if !in_name => depth += 1,
            ')' if !in_name && depth == 0 => return Some(at),
            ')' if !in_name => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Rewrites what stands from each occurrence of `mark` on: gives the new text and how much of the old one it is for.
fn each(text: String, mark: &str, rewrite: impl Fn(&str) -> Option<(String, usize)>) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.as_str());
    while let Some(at) = rest.find(mark) {
        let behind = &rest[at + mark.len()..];
        out.push_str(&rest[..at]);
        match rewrite(behind) {
            Some((new, taken)) => {
                out.push_str(&new);
                rest = &behind[taken..];
            }
            None => {
                out.push_str(mark);
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

/// `USING(a, "␁as".j)`.
fn using_aliases(text: String) -> String {
    each(text, &format!(", \"{USING_ALIAS}\"."), |behind| {
        let end = shut(behind)?;
        Some((format!(") AS {}", &behind[..end]), end + 1))
    })
}

/// `(…) FROM "␁search …"`.
fn recursion(text: String) -> String {
    each(text, " FROM \"\u{1}", |behind| {
        let bytes = behind.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match (bytes[at], bytes.get(at + 1)) {
                (b'"', Some(b'"')) => at += 2,
                (b'"', _) => return Some((format!(" {}", behind[..at].replace("\"\"", "\"")), at + 1)),
                _ => at += 1,
            }
        }
        None
    })
}

/// `ORDER BY a, "exclude ties"() ROWS …`: behind the frame.
fn exclusions(mut text: String) -> String {
    for what in ["current row", "group", "ties", "no others"] {
        let mark = format!("\"exclude {what}\"() ");
        while let Some(at) = text.find(&mark) {
            let Some(end) = shut(&text[at..]) else { break };
            let behind = text[at + mark.len()..at + end].to_string();
            let before = text[..at].strip_suffix(", ").map(|before| format!("{before} "));
            let before = before.or_else(|| text[..at].strip_suffix("ORDER BY ").map(str::to_string));
            let before = before.unwrap_or_else(|| text[..at].to_string());
            text = format!("{before}{behind} EXCLUDE {}{}", what.to_uppercase(), &text[at + end..]);
        }
    }
    text
}

/// `LIMIT "with ties"(n)`.
fn ties(text: String) -> String {
    each(text, "LIMIT \"with ties\"(", |behind| {
        let end = shut(behind)?;
        Some((format!("FETCH FIRST ({}) ROWS WITH TIES", &behind[..end]), end + 1))
    })
}

/// `TABLESAMPLE BERNOULLI ("tablesample"('m', p, "repeatable"(s)))`.
fn samples(text: String, literals: &[String]) -> String {
    each(text, "TABLESAMPLE BERNOULLI (\"tablesample\"(", |behind| {
        let end = shut(behind)?;
        let (method, arguments) = behind[..end].split_once(", ")?;
        let method = with_literals(method, literals);
        let (arguments, seed) = match arguments.split_once(", \"repeatable\"(") {
            Some((arguments, seed)) => (arguments, Some(seed.strip_suffix(')')?)),
            None => (arguments, None),
        };
        let seed = seed.map(|seed| format!(" REPEATABLE ({seed})")).unwrap_or_default();
        Some((format!("TABLESAMPLE {} ({arguments}){seed}", method.trim_matches('\'')), end + 2))
    })
}

/// `FOR UPDATE OF "for share".a.b`.
fn locks(mut text: String) -> String {
    for strength in ["for no key update", "for update", "for key share", "for share"] {
        text = each(text, &format!("FOR UPDATE OF \"{strength}\""), |behind| {
            let end = behind.find([' ', ')', ';']).unwrap_or(behind.len());
            let tables = behind[..end].trim_start_matches('.').replace('.', ", ");
            let of = if tables.is_empty() { String::new() } else { format!(" OF {tables}") };
            Some((format!("{}{of}", strength.to_uppercase()), end))
        });
    }
    text
}

#[cfg(test)]
mod tests;
