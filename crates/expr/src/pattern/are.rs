//! PostgreSQL's advanced regular expressions (manual 9.7.3) in terms of the `regex` crate.
//!
//! Differences bridged here: `\m \M \y \Y \A \Z` anchors, `\s \d \w` inside brackets, embedded options
//! `(?i)` and directors `***:` `***=`, `.` and brackets that match newlines unless told otherwise,
//! bracket lists that need escaping. [`super::span`] chooses among matches as PostgreSQL does. Back
//! references and look-around, which linear running time does not allow, are [`super::track`]'s.

use super::preference;
use super::span::{Divider, MakeTree, Pattern, Preference};
use super::track;
use crate::error::{Error, Result};
use regex_automata::util::syntax;
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

/// Options of `regexp_…` functions and embedded ones.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags {
    pub insensitive: bool,
    pub global: bool,
    /// `n`, `m`, `p`: `.` and `[^…]` stop at newlines.
    pub newline: bool,
    /// `n`, `m`, `w`: `^` and `$` match at lines.
    pub line_anchors: bool,
    /// `b`: a basic regular expression.
    pub basic: bool,
    /// `x`.
    pub expanded: bool,
    /// `q`.
    pub literal: bool,
}

impl Flags {
    /// 22023 for an option that does not exist.
    pub fn parse(options: &str) -> Result<Flags> {
        let mut flags = Flags::default();
        for option in options.chars() {
            flags
                .set(option)
                .map_err(|()| Error::invalid_parameter(format!("invalid regular expression option: \"{option}\"")))?;
        }
        Ok(flags)
    }

    fn set(&mut self, option: char) -> Result<(), ()> {
        match option {
            'i' => self.insensitive = true,
            'c' => self.insensitive = false,
            'g' => self.global = true,
            'n' | 'm' => (self.newline, self.line_anchors) = (true, true),
            'p' => (self.newline, self.line_anchors) = (true, false),
            'w' => (self.newline, self.line_anchors) = (false, true),
            's' => (self.newline, self.line_anchors) = (false, false),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'e' => self.basic = false,
            'b' => self.basic = true,
            _ => return Err(()),
        }
        Ok(())
    }
}

pub(super) fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::new("2201B", format!("invalid regular expression: {reason}"))
}

/// Compiles a pattern. 2201B if it is none.
pub fn compile(pattern: &str, mut flags: Flags) -> Result<Pattern> {
    let mut rest = pattern;
    if let Some(literal) = rest.strip_prefix("***=") {
        flags.literal = true;
        rest = literal;
    } else if let Some(advanced) = rest.strip_prefix("***:") {
        rest = advanced;
    }
    if !flags.literal
        && let Some((options, after)) = rest.strip_prefix("(?").and_then(|inner| inner.split_once(')'))
        && !options.is_empty()
        && options.bytes().all(|byte| byte.is_ascii_lowercase())
    {
        for option in options.chars() {
            flags.set(option).map_err(|()| invalid("invalid embedded option"))?;
        }
        rest = after;
    }
    if flags.literal {
        return build(regex::escape(rest), flags, Preference::None, None);
    }
    let compact = flags.expanded.then(|| compacted(rest));
    flags.expanded = false;
    let of_parts = config(flags);
    let rest = &*with_escapes(compact.as_deref().unwrap_or(rest));
    if track::is_needed(rest) && !flags.basic {
        return Ok(Pattern::of_tree(track::compile(rest, flags, of_parts)?));
    }
    let translated = translate(rest, flags)?;
    // What is wrong with an expression the linear one says.
    let (always, at_ends) = (track::divides_otherwise(rest), track::looks_at_ends(rest));
    let divider = (always || at_ends).then(|| {
        let rest = rest.to_string();
        let make = Box::new(move || track::compile(&rest, flags, of_parts).ok()) as Box<MakeTree>;
        Divider { make, always }
    });
    build(translated, flags, preference::of(rest), divider)
}

/// `[[:<:]]` and `[[:>:]]` are old spellings of `\m` and `\M`.
fn with_escapes(pattern: &str) -> Cow<'_, str> {
    match pattern.contains("[[:<:]]") || pattern.contains("[[:>:]]") {
        true => Cow::Owned(pattern.replace("[[:<:]]", "\\m").replace("[[:>:]]", "\\M")),
        false => Cow::Borrowed(pattern),
    }
}

/// A pattern in expanded syntax without what that ignores: white space and comments, unless they are escaped or in
/// brackets (manual 9.7.3.4).
fn compacted(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => {
                out.push(char);
                out.extend(chars.next());
            }
            '[' => {
                out.push(char);
                copy_bracket(&mut chars, &mut out);
            }
            '#' if !out.ends_with("(?") => while chars.next_if(|char| *char != '\n').is_some() {},
            // What stands in a comment of the other kind is no syntax.
            '#' => {
                out.push(char);
                for char in chars.by_ref() {
                    out.push(char);
                    if char == ')' {
                        break;
                    }
                }
            }
            char if char.is_whitespace() => {}
            char => out.push(char),
        }
    }
    out
}

/// The rest of a bracket expression as it is.
fn copy_bracket(chars: &mut Chars, out: &mut String) {
    out.extend(chars.next_if_eq(&'^'));
    out.extend(chars.next_if_eq(&']'));
    while let Some(char) = chars.next() {
        out.push(char);
        match char {
            ']' => return,
            '\\' => out.extend(chars.next()),
            '[' => {
                let Some(kind) = chars.next_if(|next| matches!(next, ':' | '.' | '=')) else { continue };
                out.push(kind);
                while let Some(char) = chars.next() {
                    out.push(char);
                    if char == kind && chars.peek() == Some(&']') {
                        out.extend(chars.next());
                        break;
                    }
                }
            }
            _ => {}
        }
    }
}

fn config(flags: Flags) -> syntax::Config {
    syntax::Config::new()
        .case_insensitive(flags.insensitive)
        .multi_line(flags.line_anchors)
        .dot_matches_new_line(!flags.newline)
}

fn build(translated: String, flags: Flags, preference: Preference, divider: Option<Divider>) -> Result<Pattern> {
    let config = config(flags);
    Pattern::new(translated, config, preference, divider).map_err(|message| match message.as_str() {
        "too complex" => invalid("regular expression is too complex"),
        message => invalid(reason(message)),
    })
}

/// PostgreSQL's wording for the usual mistakes.
pub(super) fn reason(message: &str) -> &'static str {
    if message.contains("unclosed group") || message.contains("unopened group") {
        "parentheses () not balanced"
    } else if message.contains("unclosed character class") {
        "brackets [] not balanced"
    } else if message.contains("repetition operator missing") || message.contains("missing expression") {
        "quantifier operand invalid"
    } else if message.contains("repetition") {
        "invalid repetition count(s)"
    } else if message.contains("range") {
        "invalid character range"
    } else {
        "invalid escape \\ sequence"
    }
}

/// What stands before a place in a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    None,
    Greedy,
    /// With the `?` that makes it so.
    Lazy,
}

fn translate(pattern: &str, flags: Flags) -> Result<String> {
    if flags.basic {
        return Err(Error::not_supported("basic regular expressions (option \"b\") are not supported"));
    }
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars().peekable();
    let mut after = Quantifier::None;
    while let Some(char) = chars.next() {
        let before = std::mem::replace(&mut after, Quantifier::None);
        match char {
            '\\' => escape(&mut chars, &mut out)?,
            '[' => bracket(&mut chars, flags, &mut out)?,
            '(' if chars.peek() == Some(&'?') => {
                chars.next();
                match chars.next() {
                    Some(':') => out.push_str("(?:"),
                    Some('#') => {
                        while chars.next_if(|char| *char != ')').is_some() {}
                        if chars.next().is_none() {
                            return Err(invalid("parentheses () not balanced"));
                        }
                    }
                    _ => return Err(invalid("quantifier operand invalid")),
                }
            }
            // The regex crate reads a brace that opens no bound as an error.
            '{' if !chars.peek().is_some_and(char::is_ascii_digit) => out.push_str("\\{"),
            '}' if !open_bound(&out) => out.push_str("\\}"),
            // Bounds end at 255, and a quantifier has none of its own but the `?` that makes it lazy.
            '{' => {
                let inside: String = chars.clone().take_while(|char| *char != '}').collect();
                let too_many =
                    |count: &str| !count.is_empty() && count.parse::<u32>().map_or(true, |count| count > 255);
                if inside.split(',').any(too_many) {
                    return Err(invalid("invalid repetition count(s)"));
                }
                if before != Quantifier::None {
                    return Err(invalid("quantifier operand invalid"));
                }
                out.push('{');
            }
            '}' => {
                after = Quantifier::Greedy;
                out.push('}');
            }
            '*' | '+' if before != Quantifier::None => return Err(invalid("quantifier operand invalid")),
            '?' if before == Quantifier::Lazy => return Err(invalid("quantifier operand invalid")),
            '*' | '+' | '?' => {
                after = if before == Quantifier::None { Quantifier::Greedy } else { Quantifier::Lazy };
                out.push(char);
            }
            '$' if !flags.line_anchors => out.push_str("\\z"),
            '^' if !flags.line_anchors => out.push_str("\\A"),
            char => out.push(char),
        }
    }
    Ok(out)
}

/// Whether the text so far ends inside a `{m,n}`.
fn open_bound(out: &str) -> bool {
    match out.rfind('{') {
        Some(at) if !out[..at].ends_with('\\') => {
            out[at + 1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
        }
        _ => false,
    }
}

pub(super) type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

pub(super) fn escape(chars: &mut Chars, out: &mut String) -> Result<()> {
    let Some(char) = chars.next() else { return Err(invalid("invalid escape \\ sequence")) };
    match char {
        'm' => out.push_str(r"\b{start}"),
        'M' => out.push_str(r"\b{end}"),
        'y' => out.push_str(r"\b"),
        'Y' => out.push_str(r"\B"),
        'A' => out.push_str(r"\A"),
        'Z' => out.push_str(r"\z"),
        'd' | 'D' | 's' | 'S' | 'w' | 'W' | 't' | 'n' | 'r' | 'f' | 'v' | 'a' => {
            out.push('\\');
            out.push(char);
        }
        'b' => out.push_str(r"\x08"),
        'B' => out.push_str(r"\\"),
        'e' => out.push_str(r"\x1b"),
        '0' => out.push_str(r"\x00"),
        'x' | 'u' | 'U' => code_point(char, chars, out)?,
        char if char.is_alphanumeric() => return Err(invalid("invalid escape \\ sequence")),
        char => out.push_str(&regex::escape(char.encode_utf8(&mut [0; 4]))),
    }
    Ok(())
}

/// `\xhhh` of any length, `\uhhhh`, `\Uhhhhhhhh` (manual table 9.20).
fn code_point(kind: char, chars: &mut Chars, out: &mut String) -> Result<()> {
    let (digits_min, digits_max) = match kind {
        'u' => (4, 4),
        'U' => (8, 8),
        _ => (1, 255),
    };
    let (mut digits, mut code) = (0, 0u32);
    while digits < digits_max
        && let Some(digit) = chars.peek().and_then(|char| char.to_digit(16))
    {
        chars.next();
        digits += 1;
        code = code.wrapping_mul(16).wrapping_add(digit);
    }
    if digits < digits_min || code > CODE_MAX {
        return Err(invalid("invalid escape \\ sequence"));
    }
    match char::from_u32(code) {
        Some(char) => out.push_str(&format!("\\x{{{:x}}}", u32::from(char))),
        // No text has such a character.
        None => out.push_str(r"[^\s\S]"),
    }
    Ok(())
}

/// The greatest code that patterns may name.
const CODE_MAX: u32 = 0x7fff_fffe;

/// A bracket expression: classes and ranges stay, everything that the regex crate would take for an
/// operator is escaped.
pub(super) fn bracket(chars: &mut Chars, flags: Flags, out: &mut String) -> Result<()> {
    out.push('[');
    let negated = chars.next_if_eq(&'^').is_some();
    if negated {
        out.push('^');
        if flags.newline {
            out.push_str("\\n");
        }
    }
    let mut first = true;
    loop {
        let Some(char) = chars.next() else { return Err(invalid("brackets [] not balanced")) };
        match char {
            ']' if !first => {
                out.push(']');
                return Ok(());
            }
            '[' if matches!(chars.peek(), Some(':' | '.' | '=')) => class(chars, out)?,
            '\\' => escape_in_bracket(chars, out)?,
            '-' if first || chars.peek() == Some(&']') => out.push_str("\\-"),
            '[' | ']' | '&' | '~' | '^' => {
                out.push('\\');
                out.push(char);
            }
            char => out.push(char),
        }
        first = false;
    }
}

fn escape_in_bracket(chars: &mut Chars, out: &mut String) -> Result<()> {
    match chars.peek() {
        Some('m' | 'M' | 'y' | 'Y' | 'A' | 'Z' | '1'..='9') => Err(invalid("invalid escape \\ sequence")),
        _ => escape(chars, out),
    }
}

/// `[:name:]`, or a collating element of one character.
fn class(chars: &mut Chars, out: &mut String) -> Result<()> {
    let kind = chars.next().unwrap_or(':');
    let mut name = String::new();
    loop {
        match chars.next() {
            Some(char) if char == kind && chars.peek() == Some(&']') => break,
            Some(char) => name.push(char),
            None => return Err(invalid("brackets [] not balanced")),
        }
    }
    chars.next();
    if kind != ':' {
        if name.chars().count() != 1 {
            return Err(invalid("invalid collating element"));
        }
        out.push_str(&regex::escape(&name));
        return Ok(());
    }
    let unicode = match name.as_str() {
        "alpha" => r"\p{Alphabetic}",
        "digit" => r"\d",
        "alnum" => r"\p{Alphabetic}\p{N}",
        "upper" => r"\p{Lu}",
        "lower" => r"\p{Ll}",
        "space" => r"\s",
        "word" => r"\w",
        "blank" | "cntrl" | "graph" | "print" | "punct" | "xdigit" | "ascii" => {
            out.push_str(&format!("[:{name}:]"));
            return Ok(());
        }
        _ => return Err(invalid("invalid character class")),
    };
    out.push_str(unicode);
    Ok(())
}

/// Compiled expressions kept per thread.
const CACHE_ENTRIES: usize = 16;

thread_local! {
    static CACHE: RefCell<Vec<(String, Flags, Rc<Pattern>)>> = const { RefCell::new(Vec::new()) };
}

/// Runs `with` on the compiled pattern.
pub fn cached<T>(pattern: &str, flags: Flags, with: impl FnOnce(&Pattern) -> T) -> Result<T> {
    let found = CACHE.with_borrow_mut(|cache| {
        let at = cache.iter().position(|(text, its_flags, _)| text == pattern && *its_flags == flags)?;
        cache.swap(0, at);
        Some(Rc::clone(&cache[0].2))
    });
    let regex = match found {
        Some(regex) => regex,
        None => {
            let regex = Rc::new(compile(pattern, flags)?);
            CACHE.with_borrow_mut(|cache| {
                cache.truncate(CACHE_ENTRIES - 1);
                cache.insert(0, (pattern.to_string(), flags, Rc::clone(&regex)));
            });
            regex
        }
    };
    let found = with(&regex);
    if regex.gave_up() {
        return Err(invalid("regular expression is too complex"));
    }
    Ok(found)
}
