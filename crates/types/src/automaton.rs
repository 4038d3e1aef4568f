//! Sets of strings as deterministic automata over bytes: what `LIKE` asks, in a form that storage runs on strings as they
//! rest, compressed ones included.

use std::cmp::Ordering;
use std::fmt;

/// States beyond which none is made: an automaton over compressed strings needs two for each, numbered by a byte.
pub const STATES_MAX: usize = 127;

/// A part of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part<'p> {
    Bytes(&'p [u8]),
    /// Any run of bytes, an empty one, too.
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Byte(u8),
    Any,
    /// Behind a pattern.
    End,
}

/// A deterministic automaton; its first state is 0.
#[derive(Clone, PartialEq, Eq)]
pub struct Automaton {
    steps: Vec<[u8; 256]>,
    accepts: Vec<bool>,
    pieces: Vec<Vec<u8>>,
    runs: Option<Vec<Run>>,
}

/// Strings that lie side by side among ascending ones.
#[derive(Clone, PartialEq, Eq)]
pub struct Run {
    bytes: Vec<u8>,
    is_prefix: bool,
}

impl Run {
    /// What a pattern asks of; `None` if it asks for more than how strings begin.
    fn of(pattern: &[Part<'_>]) -> Option<Run> {
        let (parts, is_prefix) = match pattern {
            [parts @ .., Part::Any] => (parts, true),
            parts => (parts, false),
        };
        let mut bytes = Vec::new();
        for part in parts {
            let Part::Bytes(of_part) = part else { return None };
            bytes.extend_from_slice(of_part);
        }
        Some(Run { bytes, is_prefix })
    }

    /// Whether a string comes before all of the run (less), is in it (equal), or comes behind it (greater).
    pub fn place(&self, string: &[u8]) -> Ordering {
        match self.is_prefix && string.starts_with(&self.bytes) {
            true => Ordering::Equal,
            false => string.cmp(&self.bytes),
        }
    }
}

impl fmt::Debug for Automaton {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an automaton of {} states", self.steps.len())
    }
}

impl Automaton {
    /// The strings that consist of these parts. `None`: it would have too many states.
    pub fn new(parts: &[Part<'_>]) -> Option<Automaton> {
        Automaton::any_of(&[parts.to_vec()])
    }

    /// The strings that consist of the parts of one of these patterns.
    pub fn any_of(patterns: &[Vec<Part<'_>>]) -> Option<Automaton> {
        let mut tokens = Vec::new();
        let mut starts = 0;
        for pattern in patterns {
            starts |= 1u128.checked_shl(tokens.len() as u32)?;
            for part in pattern {
                match part {
                    Part::Bytes(bytes) => tokens.extend(bytes.iter().map(|byte| Token::Byte(*byte))),
                    Part::Any => tokens.push(Token::Any),
                }
            }
            tokens.push(Token::End);
        }
        // A set of places in the patterns is a word.
        (tokens.len() <= u128::BITS as usize).then_some(())?;
        let asked = |byte: u8| tokens.contains(&Token::Byte(byte));
        let asked: Vec<u8> = (0..=u8::MAX).filter(|byte| asked(*byte)).collect();
        // All bytes that nothing asks for lead to the same state.
        let other = (0..=u8::MAX).find(|byte| !asked.contains(byte));
        let mut sets = vec![closed(&tokens, starts)];
        let mut steps = Vec::new();
        while let Some(set) = sets.get(steps.len()).copied() {
            let mut to = |byte: u8| {
                let next = closed(&tokens, moved(&tokens, set, byte));
                let known = sets.iter().position(|known| *known == next).unwrap_or_else(|| {
                    sets.push(next);
                    sets.len() - 1
                });
                u8::try_from(known).ok()
            };
            let mut of_bytes = [other.map_or(Some(0), &mut to)?; 256];
            for byte in &asked {
                of_bytes[usize::from(*byte)] = to(*byte)?;
            }
            steps.push(of_bytes);
            (sets.len() <= STATES_MAX).then_some(())?;
        }
        let ends = tokens.iter().enumerate().filter(|(_, token)| **token == Token::End);
        let ends = ends.fold(0, |ends, (at, _)| ends | 1u128 << at);
        let accepts = sets.iter().map(|set| set & ends != 0).collect();
        let piece = |part: &Part<'_>| match part {
            Part::Bytes(bytes) if !bytes.is_empty() => Some(bytes.to_vec()),
            _ => None,
        };
        let pieces = match patterns {
            [only] => only.iter().filter_map(piece).collect(),
            _ => Vec::new(),
        };
        let runs = patterns.iter().map(|pattern| Run::of(pattern)).collect();
        Some(Automaton { steps, accepts, pieces, runs })
    }

    /// What every string contains.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(Vec::as_slice)
    }

    /// The strings as runs of ascending ones; `None` if how they begin does not decide.
    pub fn runs(&self) -> Option<&[Run]> {
        self.runs.as_deref()
    }

    pub fn states(&self) -> usize {
        self.steps.len()
    }

    /// The state behind a byte.
    pub fn step(&self, state: u8, byte: u8) -> u8 {
        self.steps[usize::from(state)][usize::from(byte)]
    }

    /// Whether strings that end in a state are in the set.
    pub fn accepts(&self, state: u8) -> bool {
        self.accepts[usize::from(state)]
    }

    /// Whether nothing leads out of a state.
    pub fn is_final(&self, state: u8) -> bool {
        self.steps[usize::from(state)].iter().all(|to| *to == state)
    }

    pub fn matches(&self, string: &[u8]) -> bool {
        self.accepts(string.iter().fold(0, |state, byte| self.step(state, *byte)))
    }
}

/// The places that a byte leads to.
fn moved(tokens: &[Token], set: u128, byte: u8) -> u128 {
    tokens.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1).fold(0, |next, (at, token)| match token {
        Token::Any => next | 1 << at,
        Token::Byte(wanted) if *wanted == byte => next | 1 << (at + 1),
        Token::Byte(_) | Token::End => next,
    })
}

/// With the places that an empty run leads to, and without those of a pattern that lie before its last run: whatever is
/// found from there is found from the run, too.
fn closed(tokens: &[Token], mut set: u128) -> u128 {
    let mut before = 0u128;
    for (at, token) in tokens.iter().enumerate() {
        if *token == Token::Any && set >> at & 1 == 1 {
            set = (set | 1 << (at + 1)) & !before;
        }
        before = if *token == Token::End { 0 } else { before | 1 << at };
    }
    set
}

#[cfg(test)]
mod tests {
    use super::{Automaton, Part, STATES_MAX};

    /// By trying every place.
    fn is_made_of(string: &[u8], parts: &[Part<'_>]) -> bool {
        match parts.split_first() {
            None => string.is_empty(),
            Some((Part::Bytes(bytes), rest)) => {
                string.strip_prefix(*bytes).is_some_and(|behind| is_made_of(behind, rest))
            }
            Some((Part::Any, rest)) => (0..=string.len()).any(|at| is_made_of(&string[at..], rest)),
        }
    }

    fn strings(letters: usize) -> impl Iterator<Item = Vec<u8>> {
        (0..=letters).flat_map(|length| {
            (0..3usize.pow(length as u32))
                .map(move |number| (0..length).map(|at| b'a' + (number / 3usize.pow(at as u32) % 3) as u8).collect())
        })
    }

    #[test]
    fn automata_accept_what_consists_of_their_parts() {
        use Part::{Any, Bytes};
        let cases: &[&[Part]] = &[
            &[],
            &[Any],
            &[Bytes(b"ab")],
            &[Bytes(b"a"), Any],
            &[Any, Bytes(b"ab")],
            &[Any, Bytes(b"aab"), Any],
            &[Any, Bytes(b"aba"), Any, Bytes(b"ba"), Any],
            &[Bytes(b"a"), Any, Bytes(b"a")],
            &[Bytes(b"ab"), Any, Any, Bytes(b"bca"), Any, Bytes(b"ca")],
        ];
        for parts in cases {
            let automaton = Automaton::new(parts).unwrap();
            for string in strings(7) {
                assert_eq!(automaton.matches(&string), is_made_of(&string, parts), "{string:?} of {parts:?}");
            }
        }
    }

    #[test]
    fn one_of_several_patterns_is_enough() {
        use Part::{Any, Bytes};
        let patterns: &[Vec<Part>] =
            &[vec![Bytes(b"ab"), Any], vec![Any, Bytes(b"cc"), Any, Bytes(b"a")], vec![], vec![Bytes(b"ca")]];
        let automaton = Automaton::any_of(patterns).unwrap();
        for string in strings(7) {
            let expected = patterns.iter().any(|parts| is_made_of(&string, parts));
            assert_eq!(automaton.matches(&string), expected, "{string:?}");
        }
        let none = Automaton::any_of(&[]).unwrap();
        assert!(strings(3).all(|string| !none.matches(&string)));
    }

    #[test]
    fn patterns_that_are_too_long_have_none() {
        let long = [b'a'; STATES_MAX + 1];
        assert!(Automaton::new(&[Part::Any, Part::Bytes(&long[4..]), Part::Any]).is_some());
        assert!(Automaton::new(&[Part::Any, Part::Bytes(&long), Part::Any]).is_none());
    }

    #[test]
    fn final_states_are_those_that_nothing_leaves() {
        let automaton = Automaton::new(&[Part::Bytes(b"a"), Part::Any]).unwrap();
        let (yes, no) = (automaton.step(0, b'a'), automaton.step(0, b'b'));
        assert!(automaton.is_final(yes) && automaton.is_final(no) && !automaton.is_final(0));
        assert!(automaton.accepts(yes) && !automaton.accepts(no));
    }
}
