//! DROP of what cannot be there: kinds of objects that nothing here makes (PostgreSQL manual, DROP FUNCTION and others).
//! With IF EXISTS it is passed over with a notice, as scripts that set up a database anew expect.

use super::Reader;
use crate::error::Result;
use sqlparser::tokenizer::Token;

/// Objects of a kind that do not exist.
#[derive(Clone, Debug)]
pub struct DropAbsent {
    /// As command tags have it: `DROP TRIGGER`.
    pub tag: &'static str,
    pub if_exists: bool,
    pub sqlstate: &'static str,
    /// What does not exist, one by one: `trigger "t" for relation "x"`.
    pub objects: Vec<String>,
    /// Names of functions: some are built in.
    pub functions: Vec<String>,
}

/// Words, tag, and how messages call one.
const PLAIN: [(&[&str], &str, &str, &str); 10] = [
    (&["extension"], "DROP EXTENSION", "extension", "42704"),
    (&["procedural", "language"], "DROP LANGUAGE", "language", "42704"),
    (&["language"], "DROP LANGUAGE", "language", "42704"),
    (&["foreign", "table"], "DROP FOREIGN TABLE", "foreign table", "42P01"),
    (&["foreign", "data", "wrapper"], "DROP FOREIGN DATA WRAPPER", "foreign-data wrapper", "42704"),
    (&["server"], "DROP SERVER", "server", "42704"),
    (&["publication"], "DROP PUBLICATION", "publication", "42704"),
    (&["subscription"], "DROP SUBSCRIPTION", "subscription", "42704"),
    (&["event", "trigger"], "DROP EVENT TRIGGER", "event trigger", "42704"),
    (&["statistics"], "DROP STATISTICS", "statistics object", "42704"),
];
const OF_TABLES: [(&str, &str); 3] = [("trigger", "DROP TRIGGER"), ("rule", "DROP RULE"), ("policy", "DROP POLICY")];
const CALLED: [(&str, &str); 4] = [
    ("function", "DROP FUNCTION"),
    ("procedure", "DROP PROCEDURE"),
    ("routine", "DROP ROUTINE"),
    ("aggregate", "DROP AGGREGATE"),
];

/// Behind DROP, if such a kind follows.
pub(super) fn drop(reader: &mut Reader<'_>) -> Result<Option<DropAbsent>> {
    let (mut objects, mut functions) = (Vec::new(), Vec::new());
    for (words, tag, kind, sqlstate) in PLAIN {
        if reader.words(words) {
            let if_exists = reader.if_exists();
            for name in reader.list(Reader::object_name)? {
                objects.push(format!("{kind} \"{name}\""));
            }
            super::ddl::cascade(reader);
            return Ok(Some(DropAbsent { tag, if_exists, sqlstate, objects, functions }));
        }
    }
    for (word, tag) in OF_TABLES {
        if reader.word(word) {
            let if_exists = reader.if_exists();
            let name = reader.ident()?;
            reader.expect_word("on")?;
            let table = reader.object_name()?;
            super::ddl::cascade(reader);
            let of = if word == "rule" || if_exists { "relation" } else { "table" };
            objects.push(format!("{word} \"{name}\" for {of} \"{table}\""));
            return Ok(Some(DropAbsent { tag, if_exists, sqlstate: "42704", objects, functions }));
        }
    }
    for (word, tag) in CALLED {
        if reader.word(word) {
            let if_exists = reader.if_exists();
            let called = reader.list(|reader| {
                let name = reader.object_name()?;
                Ok((arguments(reader)?, name))
            })?;
            for (arguments, name) in called {
                functions.push(name.name.clone());
                objects.push(format!("{word} {name}({arguments})"));
            }
            super::ddl::cascade(reader);
            return Ok(Some(DropAbsent { tag, if_exists, sqlstate: "42883", objects, functions }));
        }
    }
    Ok(None)
}

/// The types in parentheses, as far as they are written; none without them.
fn arguments(reader: &mut Reader<'_>) -> Result<String> {
    let mut text = String::new();
    if !reader.token(&Token::LParen) {
        return Ok(text);
    }
    let mut depth = 1;
    loop {
        match reader.peek() {
            Token::EOF => return Err(reader.error_here()),
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let token = reader.take_token();
        if depth == 0 {
            return Ok(text);
        }
        if !text.is_empty() && token != Token::Comma {
            text.push(' ');
        }
        text.push_str(&token.to_string());
    }
}
