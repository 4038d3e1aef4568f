//! PostgreSQL 15's key words (manual, appendix C): what each may name without quotes.

use std::sync::LazyLock;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Unreserved,
    /// Names columns and tables, but no functions and types.
    Column,
    /// Names functions and types, but no columns and tables.
    Function,
    Reserved,
}

#[derive(Clone, Copy, Debug)]
pub struct KeyWord {
    pub word: &'static str,
    pub class: Class,
    /// Whether it names an output without AS.
    pub bare_label: bool,
}

impl KeyWord {
    /// Whether it names columns, tables and whatever else has a name of its own.
    pub fn names_column(&self) -> bool {
        matches!(self.class, Class::Unreserved | Class::Column)
    }
}

static WORDS: LazyLock<Vec<KeyWord>> = LazyLock::new(|| include_str!("words.txt").lines().filter_map(read).collect());

/// A word, the letter of `pg_get_keywords`, and `as` if it names outputs behind AS only.
fn read(line: &'static str) -> Option<KeyWord> {
    let mut parts = line.split(' ');
    let word = parts.next()?;
    let class = match parts.next()? {
        "U" => Class::Unreserved,
        "C" => Class::Column,
        "T" => Class::Function,
        "R" => Class::Reserved,
        _ => return None,
    };
    Some(KeyWord { word, class, bare_label: parts.next().is_none() })
}

/// All of them, sorted.
pub fn all() -> &'static [KeyWord] {
    &WORDS
}

/// The key word that an unquoted word is, in whatever case.
pub fn find(word: &str) -> Option<&'static KeyWord> {
    let folded = || word.bytes().map(|byte| byte.to_ascii_lowercase());
    WORDS.binary_search_by(|known| known.word.bytes().cmp(folded())).ok().map(|at| &WORDS[at])
}

/// Whether an unquoted word may name neither column nor table.
pub fn is_reserved(word: &str) -> bool {
    find(word).is_some_and(|known| !known.names_column())
}

/// As PostgreSQL prints a name: quoted unless it is a plain lower-case word that may name anything.
pub fn quote_ident(name: &str) -> String {
    let mut bytes = name.bytes();
    let plain = bytes.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain && find(name).is_none_or(|known| known.class == Class::Unreserved) {
        return name.to_string();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_case() {
        assert_eq!(all().len(), 460);
        assert!(all().windows(2).all(|pair| pair[0].word < pair[1].word));
        assert_eq!(find("SELECT").map(|known| known.class), Some(Class::Reserved));
        assert!(find("selects").is_none());
        assert!(find("day").is_some_and(|known| !known.bare_label));
        for (word, names) in [("user", false), ("Left", false), ("bigint", true), ("start", true), ("a1", true)] {
            assert_eq!(!is_reserved(word), names, "{word}");
        }
    }

    #[test]
    fn names_are_quoted_where_needed() {
        for (name, quoted) in
            [("a_1", "a_1"), ("A", "\"A\""), ("select", "\"select\""), ("a\"b", "\"a\"\"b\""), ("", "\"\"")]
        {
            assert_eq!(quote_ident(name), quoted);
        }
        assert_eq!(quote_ident("1a"), "\"1a\"");
        assert_eq!(quote_ident("start"), "start");
    }
}
