//! Whether a regular expression takes the longest or the shortest match (manual 9.7.3.5): most atoms have no
//! preference, a quantified one that of its quantifier, a branch that of the first atom that has one, and several
//! branches together are greedy.

use super::span::Preference;
use std::iter::Peekable;
use std::str::Chars;

/// Of an expression, from its text.
pub(super) fn of(pattern: &str) -> Preference {
    alternatives(&mut pattern.chars().peekable())
}

/// Up to the end, or the parenthesis that closes it.
fn alternatives(chars: &mut Peekable<Chars>) -> Preference {
    let (mut branches, mut first) = (1, Preference::None);
    loop {
        let found = match chars.next() {
            None | Some(')') => break,
            Some('|') => {
                branches += 1;
                continue;
            }
            Some(char) => piece(char, chars),
        };
        if first == Preference::None {
            first = found;
        }
    }
    if branches > 1 { Preference::Longest } else { first }
}

/// An atom with its quantifier.
fn piece(char: char, chars: &mut Peekable<Chars>) -> Preference {
    let own = match char {
        '\\' => {
            chars.next();
            Preference::None
        }
        '[' => {
            skip_bracket(chars);
            Preference::None
        }
        '(' => {
            if chars.next_if_eq(&'?').is_some() {
                while chars.next_if(|char| matches!(char, ':' | '=' | '!' | '<')).is_some() {}
            }
            alternatives(chars)
        }
        _ => Preference::None,
    };
    let Some(quantifier) = chars.next_if(|char| matches!(char, '*' | '+' | '?' | '{')) else { return own };
    let mut fixed = false;
    if quantifier == '{' {
        fixed = true;
        for char in chars.by_ref() {
            match char {
                '}' => break,
                ',' => fixed = false,
                _ => {}
            }
        }
    }
    let lazy = chars.next_if_eq(&'?').is_some();
    match (fixed, lazy) {
        (true, _) => own,
        (false, true) => Preference::Shortest,
        (false, false) => Preference::Longest,
    }
}

pub(super) fn skip_bracket(chars: &mut Peekable<Chars>) {
    chars.next_if_eq(&'^');
    chars.next_if_eq(&']');
    while let Some(char) = chars.next() {
        match char {
            ']' => return,
            '\\' => {
                chars.next();
            }
            '[' => {
                if let Some(kind) = chars.next_if(|char| matches!(char, ':' | '.' | '=')) {
                    while let Some(char) = chars.next() {
                        if char == kind && chars.next_if_eq(&']').is_some() {
                            break;
                        }
                    }
                }
            }
            _ => {}
        }
    }
}
