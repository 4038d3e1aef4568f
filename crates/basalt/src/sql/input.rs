//! Cuts text into statements at semicolons that stand outside of quotes, comments and dollar quotes.

use std::iter::Peekable;
use std::str::CharIndices;

/// Text that arrives in pieces; iterating gives the statements that are complete.
#[derive(Default)]
pub struct Statements {
    text: String,
}

impl Statements {
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Whether a statement has begun.
    pub fn is_pending(&self) -> bool {
        !is_blank(&self.text)
    }

    /// What is left without a semicolon.
    pub fn rest(self) -> Option<String> {
        self.is_pending().then_some(self.text)
    }
}

impl Iterator for Statements {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let end = end_of_statement(&self.text)?;
            let rest = self.text.split_off(end);
            let statement = std::mem::replace(&mut self.text, rest);
            if !is_blank(&statement) {
                return Some(statement);
            }
        }
    }
}

/// Only blanks, comments and semicolons.
fn is_blank(text: &str) -> bool {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            ';' => {}
            c if c.is_whitespace() => {}
            '-' | '/' if skip_comment(text, at, &mut chars) => {}
            _ => return false,
        }
    }
    true
}

/// Just behind the first semicolon that ends a statement.
fn end_of_statement(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = chars.next() {
        match c {
            ';' => return Some(at + 1),
            '\'' => {
                let escapes = matches!(before, 'e' | 'E');
                skip_quoted(&mut chars, '\'', escapes)?;
            }
            '"' => skip_quoted(&mut chars, '"', false)?,
            '-' | '/' => {
                skip_comment(text, at, &mut chars);
            }
            '$' if !before.is_alphanumeric() && before != '_' => skip_dollar_quoted(text, at, &mut chars)?,
            _ => {}
        }
        before = c;
    }
    None
}

/// To the closing quote; `None` if it is still open. A doubled quote is two strings side by side here.
fn skip_quoted(chars: &mut Peekable<CharIndices<'_>>, quote: char, escapes: bool) -> Option<()> {
    while let Some((_, c)) = chars.next() {
        match c {
            '\\' if escapes => {
                chars.next();
            }
            c if c == quote => return Some(()),
            _ => {}
        }
    }
    None
}

/// If a comment begins at `at`, goes behind it.
fn skip_comment(text: &str, at: usize, chars: &mut Peekable<CharIndices<'_>>) -> bool {
    let rest = &text[at..];
    if rest.starts_with("--") {
        while chars.next_if(|(_, c)| *c != '\n').is_some() {}
        return true;
    }
    if !rest.starts_with("/*") {
        return false;
    }
    chars.next();
    let (mut depth, mut before) = (1, ' ');
    for (_, c) in chars.by_ref() {
        match (before, c) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                before = c;
                continue;
            }
        }
        if depth == 0 {
            break;
        }
        before = ' ';
    }
    true
}

/// `$tag$ … $tag$`; a `$` that begins no tag (as in `$1`) is passed over.
fn skip_dollar_quoted(text: &str, at: usize, chars: &mut Peekable<CharIndices<'_>>) -> Option<()> {
    let rest = &text[at + 1..];
    let Some(len) = rest.find('$') else { return Some(()) };
    let tag = &rest[..len];
    if tag.starts_with(|c: char| c.is_ascii_digit()) || !tag.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Some(());
    }
    let fence = &text[at..at + len + 2];
    let body = at + fence.len();
    let end = body + text[body..].find(fence)? + fence.len();
    while chars.next_if(|(position, _)| *position < end).is_some() {}
    Some(())
}

/// Which way the data of a COPY goes that is not about a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyData {
    In,
    Out,
}

/// If the statement is a COPY with this client at its other end.
pub fn copy_data(sql: &str) -> Option<CopyData> {
    let words = words(sql);
    if words.first().is_none_or(|word| word != "copy") {
        return None;
    }
    words.windows(2).find_map(|pair| match (pair[0].as_str(), pair[1].as_str()) {
        ("from", "stdin") => Some(CopyData::In),
        ("to", "stdout") => Some(CopyData::Out),
        _ => None,
    })
}

/// The words of a statement in lower case, without what is quoted, in comments or in parentheses.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut depth) = (Vec::new(), String::new(), 0);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c.is_alphanumeric() || c == '_' {
            word.extend(c.to_lowercase());
            continue;
        }
        let escapes = word == "e";
        if !word.is_empty() && depth == 0 {
            words.push(std::mem::take(&mut word));
        }
        word.clear();
        // An open quote goes to the end of the text.
        match c {
            '\'' => _ = skip_quoted(&mut chars, '\'', escapes),
            '"' => _ = skip_quoted(&mut chars, '"', false),
            '-' | '/' => _ = skip_comment(text, at, &mut chars),
            '$' => _ = skip_dollar_quoted(text, at, &mut chars),
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if matches!(c, '\'' | '"' | '$') && depth == 0 {
            words.push(String::new());
        }
    }
    words.extend((!word.is_empty() && depth == 0).then_some(word));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_says_which_way_its_data_goes() {
        for (sql, expected) in [
            ("copy t from stdin;", Some(CopyData::In)),
            ("-- x\nCOPY \"a b\".t (a, b)\nFROM STDIN (FORMAT csv);", Some(CopyData::In)),
            ("COPY (SELECT 'from stdin' FROM t) TO STDOUT", Some(CopyData::Out)),
            ("COPY (COPY t FROM STDIN) TO '/tmp/x'", None),
            ("COPY t FROM 'stdin'", None),
            ("COPY t FROM \"x\" STDIN", None),
            ("SELECT copy FROM stdin", None),
        ] {
            assert_eq!(copy_data(sql), expected, "{sql}");
        }
    }

    fn cut(text: &str) -> (Vec<String>, Option<String>) {
        let mut statements = Statements::default();
        statements.push(text);
        let complete = statements.by_ref().collect();
        (complete, statements.rest())
    }

    #[test]
    fn semicolons_inside_of_quotes_and_comments_do_not_count() {
        for whole in [
            "SELECT ';';",
            "SELECT 'it''s;';",
            r"SELECT E'\';';",
            "SELECT \"a;b\";",
            "SELECT 1 -- no; really\n;",
            "SELECT /* a; /* b; */ c; */ 1;",
            "DO $$ BEGIN; END $$;",
            "DO $x$ $$; $x$;",
            "SELECT $1;",
        ] {
            assert_eq!(cut(whole), (vec![whole.to_string()], None), "{whole}");
        }
    }

    #[test]
    fn statements_come_as_they_are_complete() {
        let (complete, rest) = cut("SELECT 1; ; SELECT 2;\n-- done\nSELECT 3");
        assert_eq!(complete, ["SELECT 1;", " SELECT 2;"]);
        assert_eq!(rest.as_deref(), Some("\n-- done\nSELECT 3"));
        assert_eq!(cut("  -- nothing\n;"), (vec![], None));
    }

    #[test]
    fn open_quotes_wait() {
        for open in ["SELECT 'a;", "SELECT $$;", "SELECT /* ;", "SELECT \"a;"] {
            assert_eq!(cut(open), (vec![], Some(open.to_string())), "{open}");
        }
    }
}
