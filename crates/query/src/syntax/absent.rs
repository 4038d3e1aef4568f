//! DROP and ALTER of what cannot be there: kinds of objects that nothing here makes (PostgreSQL manual, DROP FUNCTION and others).
//! With IF EXISTS it is passed over with a notice, as scripts that set up a database anew expect.

use super::Reader;
use crate::error::Result;
use sqlparser::tokenizer::Token;

/// Objects of a kind that do not exist.
#[derive(Clone, Debug)]
pub struct Absent {
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

/// As [`PLAIN`], for ALTER.
const ALTERED: [(&[&str], &str, &str, &str); 16] = [
    (&["extension"], "ALTER EXTENSION", "extension", "42704"),
    (&["procedural", "language"], "ALTER LANGUAGE", "language", "42704"),
    (&["language"], "ALTER LANGUAGE", "language", "42704"),
    (&["foreign", "table"], "ALTER FOREIGN TABLE", "relation", "42P01"),
    (&["foreign", "data", "wrapper"], "ALTER FOREIGN DATA WRAPPER", "foreign-data wrapper", "42704"),
    (&["server"], "ALTER SERVER", "server", "42704"),
    (&["publication"], "ALTER PUBLICATION", "publication", "42704"),
    (&["subscription"], "ALTER SUBSCRIPTION", "subscription", "42704"),
    (&["event", "trigger"], "ALTER EVENT TRIGGER", "event trigger", "42704"),
    (&["statistics"], "ALTER STATISTICS", "statistics object", "42704"),
    (&["conversion"], "ALTER CONVERSION", "conversion", "42704"),
    (&["tablespace"], "ALTER TABLESPACE", "tablespace", "42704"),
    (&["text", "search", "configuration"], "ALTER TEXT SEARCH CONFIGURATION", "text search configuration", "42704"),
    (&["text", "search", "dictionary"], "ALTER TEXT SEARCH DICTIONARY", "text search dictionary", "42704"),
    (&["text", "search", "parser"], "ALTER TEXT SEARCH PARSER", "text search parser", "42704"),
    (&["text", "search", "template"], "ALTER TEXT SEARCH TEMPLATE", "text search template", "42704"),
];
const OF_TABLES_ALTERED: [(&str, &str); 3] =
    [("trigger", "ALTER TRIGGER"), ("rule", "ALTER RULE"), ("policy", "ALTER POLICY")];
const CALLED_ALTERED: [(&str, &str); 4] = [
    ("function", "ALTER FUNCTION"),
    ("procedure", "ALTER PROCEDURE"),
    ("routine", "ALTER ROUTINE"),
    ("aggregate", "ALTER AGGREGATE"),
];

/// Behind ALTER, if such a kind follows. What should become of the object is passed over.
pub(super) fn alter(reader: &mut Reader<'_>) -> Result<Option<Absent>> {
    let found = altered(reader)?;
    if found.is_some() {
        while !reader.at_end() {
            reader.take_token();
        }
    }
    Ok(found)
}

fn altered(reader: &mut Reader<'_>) -> Result<Option<Absent>> {
    for (words, tag, kind, sqlstate) in ALTERED {
        if reader.words(words) {
            let if_exists = reader.if_exists();
            let objects = vec![format!("{kind} \"{}\"", reader.object_name()?)];
            return Ok(Some(Absent { tag, if_exists, sqlstate, objects, functions: Vec::new() }));
        }
    }
    for (word, tag) in OF_TABLES_ALTERED {
        if reader.word(word) {
            let name = reader.ident()?;
            reader.expect_word("on")?;
            let of = if word == "rule" { "relation" } else { "table" };
            let objects = vec![format!("{word} \"{name}\" for {of} \"{}\"", reader.object_name()?)];
            return Ok(Some(Absent { tag, if_exists: false, sqlstate: "42704", objects, functions: Vec::new() }));
        }
    }
    for (word, tag) in CALLED_ALTERED {
        if reader.word(word) {
            let name = reader.object_name()?;
            let objects = vec![format!("{word} {name}({})", arguments(reader)?)];
            let functions = vec![name.name];
            return Ok(Some(Absent { tag, if_exists: false, sqlstate: "42883", objects, functions }));
        }
    }
    Ok(None)
}

/// Behind DROP, if such a kind follows.
pub(super) fn drop(reader: &mut Reader<'_>) -> Result<Option<Absent>> {
    let (mut objects, mut functions) = (Vec::new(), Vec::new());
    for (words, tag, kind, sqlstate) in PLAIN {
        if reader.words(words) {
            let if_exists = reader.if_exists();
            for name in reader.list(Reader::object_name)? {
                objects.push(format!("{kind} \"{name}\""));
            }
            super::ddl::cascade(reader);
            return Ok(Some(Absent { tag, if_exists, sqlstate, objects, functions }));
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
            return Ok(Some(Absent { tag, if_exists, sqlstate: "42704", objects, functions }));
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
            return Ok(Some(Absent { tag, if_exists, sqlstate: "42883", objects, functions }));
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
