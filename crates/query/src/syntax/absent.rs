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

/// DROP's tag and ALTER's, of the same kind.
type Tags = [&'static str; 2];
const DROP: usize = 0;
const ALTER: usize = 1;

macro_rules! tags {
    ($kind:literal) => {
        [concat!("DROP ", $kind), concat!("ALTER ", $kind)]
    };
}

/// Words, tags, and how messages call one.
const PLAIN: [(&[&str], Tags, &str, &str); 16] = [
    (&["extension"], tags!("EXTENSION"), "extension", "42704"),
    (&["procedural", "language"], tags!("LANGUAGE"), "language", "42704"),
    (&["language"], tags!("LANGUAGE"), "language", "42704"),
    (&["foreign", "table"], tags!("FOREIGN TABLE"), "foreign table", "42P01"),
    (&["foreign", "data", "wrapper"], tags!("FOREIGN DATA WRAPPER"), "foreign-data wrapper", "42704"),
    (&["server"], tags!("SERVER"), "server", "42704"),
    (&["publication"], tags!("PUBLICATION"), "publication", "42704"),
    (&["subscription"], tags!("SUBSCRIPTION"), "subscription", "42704"),
    (&["event", "trigger"], tags!("EVENT TRIGGER"), "event trigger", "42704"),
    (&["statistics"], tags!("STATISTICS"), "statistics object", "42704"),
    (&["conversion"], tags!("CONVERSION"), "conversion", "42704"),
    (&["tablespace"], tags!("TABLESPACE"), "tablespace", "42704"),
    (&["text", "search", "configuration"], tags!("TEXT SEARCH CONFIGURATION"), "text search configuration", "42704"),
    (&["text", "search", "dictionary"], tags!("TEXT SEARCH DICTIONARY"), "text search dictionary", "42704"),
    (&["text", "search", "parser"], tags!("TEXT SEARCH PARSER"), "text search parser", "42704"),
    (&["text", "search", "template"], tags!("TEXT SEARCH TEMPLATE"), "text search template", "42704"),
];
const OF_TABLES: [(&str, Tags); 3] =
    [("trigger", tags!("TRIGGER")), ("rule", tags!("RULE")), ("policy", tags!("POLICY"))];
const CALLED: [(&str, Tags); 4] = [
    ("function", tags!("FUNCTION")),
    ("procedure", tags!("PROCEDURE")),
    ("routine", tags!("ROUTINE")),
    ("aggregate", tags!("AGGREGATE")),
];

/// Behind ALTER, if such a kind follows. What should become of the object is passed over.
pub(super) fn alter(reader: &mut Reader<'_>) -> Result<Option<Absent>> {
    let found = read(reader, ALTER)?;
    if found.is_some() {
        while !reader.at_end() {
            reader.take_token();
        }
    }
    Ok(found)
}

/// Behind DROP, if such a kind follows.
pub(super) fn drop(reader: &mut Reader<'_>) -> Result<Option<Absent>> {
    let found = read(reader, DROP)?;
    if found.is_some() {
        super::ddl::cascade(reader);
    }
    Ok(found)
}

/// DROP takes several names, ALTER one.
fn read(reader: &mut Reader<'_>, verb: usize) -> Result<Option<Absent>> {
    for (words, tags, kind, sqlstate) in PLAIN {
        if reader.words(words) {
            let if_exists = reader.if_exists();
            let names = names(reader, verb, Reader::other_name)?;
            // ALTER FOREIGN TABLE looks among all relations.
            let kind = if verb == ALTER && sqlstate == "42P01" { "relation" } else { kind };
            let objects = names.iter().map(|name| format!("{kind} \"{name}\"")).collect();
            return Ok(Some(Absent { tag: tags[verb], if_exists, sqlstate, objects, functions: Vec::new() }));
        }
    }
    for (word, tags) in OF_TABLES {
        if reader.word(word) {
            let if_exists = verb == DROP && reader.if_exists();
            let name = reader.ident()?;
            reader.expect_word("on")?;
            let of = if word == "rule" || if_exists { "relation" } else { "table" };
            let objects = vec![format!("{word} \"{name}\" for {of} \"{}\"", reader.object_name()?)];
            let sqlstate = "42704";
            return Ok(Some(Absent { tag: tags[verb], if_exists, sqlstate, objects, functions: Vec::new() }));
        }
    }
    for (word, tags) in CALLED {
        if reader.word(word) {
            let if_exists = verb == DROP && reader.if_exists();
            let called = names(reader, verb, |reader| {
                let name = reader.other_name()?;
                Ok((format!("{word} {name}({})", arguments(reader)?), name.name))
            })?;
            let (objects, functions) = called.into_iter().unzip();
            return Ok(Some(Absent { tag: tags[verb], if_exists, sqlstate: "42883", objects, functions }));
        }
    }
    Ok(None)
}

fn names<'t, T>(
    reader: &mut Reader<'t>,
    verb: usize,
    mut one: impl FnMut(&mut Reader<'t>) -> Result<T>,
) -> Result<Vec<T>> {
    match verb {
        DROP => reader.list(one),
        _ => Ok(vec![one(reader)?]),
    }
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
