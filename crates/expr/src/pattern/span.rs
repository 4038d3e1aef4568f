//! Which part of a text a regular expression matches, by PostgreSQL's rules (manual 9.7.3.5).
//!
//! Among the matches that start first PostgreSQL takes the longest one, or the shortest where the expression as a
//! whole is not greedy; the `regex` crate takes the one that its alternatives prefer. So a match is found in three
//! steps: where it starts, how long it may be, and what its groups are within exactly that part. Whoever asks for no
//! groups spares the third, which costs most. A pattern belongs to one thread, and keeps the memory of its searches.

use super::track::{TooComplex, Tree};
use regex_automata::hybrid::dfa::{self as lazy, DFA};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::util::captures::Captures;
use regex_automata::{Anchored, Input, MatchKind, meta, nfa::thompson, util::syntax};
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;

/// Byte ranges of a match: the whole, then the groups.
pub type Groups = Vec<Option<Range<usize>>>;

/// Whether an expression as a whole takes as much as it can; fixed ones have no preference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preference {
    None,
    Longest,
    Shortest,
}

/// A compiled expression.
pub struct Pattern {
    engine: Engine,
    /// A search was too long.
    gave_up: Cell<bool>,
}

enum Engine {
    Linear(Box<Linear>),
    Tree(Tree),
}

pub type MakeTree = dyn Fn() -> Option<Tree>;

/// Makes what tells the groups of a match, where `regex` may find others.
pub struct Divider {
    pub make: Box<MakeTree>,
    /// In every match, and not only in those that `regex` would not have found.
    pub always: bool,
}

/// An expression that the `regex` crate searches for.
struct Linear {
    finder: meta::Regex,
    captures: RefCell<Captures>,
    preference: Preference,
    /// The expression in the `regex` crate's language, and its options.
    translated: String,
    config: syntax::Config,
    spans: OnceCell<Option<Spans>>,
    divider: Option<Divider>,
    tree: OnceCell<Option<Tree>>,
}

struct Spans {
    /// All ends of matches from one start, where that is told byte by byte.
    quick: Option<(DFA, RefCell<lazy::Cache>)>,
    /// The same where it is not: word boundaries beside letters beyond ASCII, too many states.
    ends: PikeVM,
    cache: RefCell<pikevm::Cache>,
    /// The expression up to the end of the text.
    whole: meta::Regex,
}

/// A DFA whose memory has been cleared so often, and took fewer bytes of text for each state since, is no help.
const CACHE_CLEARS_MAX: usize = 3;
const BYTES_PER_STATE_MIN: usize = 10;

/// Memory of one compiled expression.
const PROGRAM_BYTES_MAX: usize = 16 << 20;

impl Pattern {
    /// The reason if the expression is none.
    pub fn new(
        translated: String,
        config: syntax::Config,
        preference: Preference,
        divider: Option<Divider>,
    ) -> std::result::Result<Pattern, String> {
        let finder = linear(&translated, config)?;
        let captures = RefCell::new(finder.create_captures());
        let (spans, tree) = (OnceCell::new(), OnceCell::new());
        let linear = Linear { finder, captures, preference, translated, config, spans, divider, tree };
        Ok(Pattern { engine: Engine::Linear(Box::new(linear)), gave_up: Cell::new(false) })
    }

    pub fn of_tree(tree: Tree) -> Pattern {
        Pattern { engine: Engine::Tree(tree), gave_up: Cell::new(false) }
    }

    /// Whether a search since the last call took too long; nothing that was found counts then.
    pub fn gave_up(&self) -> bool {
        self.gave_up.take()
    }

    pub fn is_match(&self, text: &str) -> bool {
        match &self.engine {
            Engine::Linear(linear) => linear.finder.is_match(text),
            Engine::Tree(_) => self.find_at(text, 0).is_some(),
        }
    }

    /// Whether a match has groups beside the whole.
    pub fn has_groups(&self) -> bool {
        match &self.engine {
            Engine::Linear(linear) => linear.finder.captures_len() > 1,
            Engine::Tree(_) => true,
        }
    }

    /// The first match from a byte position on, without its groups.
    pub fn span_at(&self, text: &str, from: usize) -> Option<Range<usize>> {
        match &self.engine {
            Engine::Linear(linear) if from <= text.len() => linear.span_at(text, from),
            _ => self.find_at(text, from)?.first().cloned().flatten(),
        }
    }

    /// The first match from a byte position on.
    pub fn find_at(&self, text: &str, from: usize) -> Option<Groups> {
        if from > text.len() {
            return None;
        }
        match &self.engine {
            Engine::Linear(linear) => linear.groups_at(text, from),
            Engine::Tree(tree) => tree.find_at(text, from).unwrap_or_else(|TooComplex| {
                self.gave_up.set(true);
                None
            }),
        }
    }
}

impl Linear {
    /// The first match from a byte position on, without groups.
    fn span_at(&self, text: &str, from: usize) -> Option<Range<usize>> {
        let first = self.finder.search(&Input::new(text).span(from..text.len()))?;
        Some(self.preferred(text, first.range()))
    }

    /// Of the matches that start where one was found, the one that PostgreSQL takes.
    fn preferred(&self, text: &str, first: Range<usize>) -> Range<usize> {
        if self.preference == Preference::None {
            return first;
        }
        let end = self.spans().and_then(|spans| spans.end(text, first.start, self.preference));
        first.start..end.unwrap_or(first.end)
    }

    fn groups_at(&self, text: &str, from: usize) -> Option<Groups> {
        let mut captures = self.captures.borrow_mut();
        self.finder.search_captures(&Input::new(text).span(from..text.len()), &mut captures);
        let first = captures.get_match()?.range();
        let found = self.preferred(text, first.clone());
        if captures.group_len() == 1 {
            return Some(vec![Some(found)]);
        }
        let is_other = found != first;
        if let Some(Divider { make, always }) = &self.divider
            && (*always || is_other)
            && let Some(tree) = self.tree.get_or_init(make)
            && let Some(groups) = tree.groups_of(text, found.clone())
        {
            return Some(groups);
        }
        let exact = is_other.then(|| self.spans()).flatten().and_then(|spans| spans.exact(text, &found));
        let captures = exact.as_ref().unwrap_or(&captures);
        let range = |group| captures.get_group(group).map(|span| span.start..span.end);
        Some((0..captures.group_len()).map(range).collect())
    }

    fn spans(&self) -> Option<&Spans> {
        let made = self.spans.get_or_init(|| {
            let ends = PikeVM::builder()
                .syntax(self.config)
                .thompson(thompson::Config::new().nfa_size_limit(Some(PROGRAM_BYTES_MAX)))
                .configure(PikeVM::config().match_kind(MatchKind::All))
                .build(&self.translated)
                .ok()?;
            let cache = RefCell::new(ends.create_cache());
            let whole = linear(&format!("(?:{})\\z", self.translated), self.config).ok()?;
            let quick = self.lazy().map(|dfa| {
                let cache = RefCell::new(dfa.create_cache());
                (dfa, cache)
            });
            Some(Spans { quick, ends, cache, whole })
        });
        made.as_ref()
    }

    /// All matches from one start by a DFA whose states are made as they are met. `None`: it would be too large.
    fn lazy(&self) -> Option<DFA> {
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .unicode_word_boundary(true)
            .minimum_cache_clear_count(Some(CACHE_CLEARS_MAX))
            .minimum_bytes_per_state(Some(BYTES_PER_STATE_MIN));
        DFA::builder()
            .syntax(self.config)
            .thompson(thompson::Config::new().nfa_size_limit(Some(PROGRAM_BYTES_MAX)))
            .configure(config)
            .build(&self.translated)
            .ok()
    }
}

pub(super) fn linear(pattern: &str, config: syntax::Config) -> std::result::Result<meta::Regex, String> {
    let limits = meta::Config::new().nfa_size_limit(Some(PROGRAM_BYTES_MAX));
    meta::Regex::builder().syntax(config).configure(limits).build(pattern).map_err(|error| match error.syntax_error() {
        Some(error) => error.to_string(),
        None => "too complex".to_string(),
    })
}

impl Spans {
    /// Where the longest, or shortest, match ends that starts at `start`.
    fn end(&self, text: &str, start: usize, preference: Preference) -> Option<usize> {
        let input = Spans::input(text, start, preference);
        self.by_states(&input).unwrap_or_else(|| self.by_threads(&input))
    }

    fn input<'t>(text: &'t str, start: usize, preference: Preference) -> Input<'t> {
        let is_shortest = preference == Preference::Shortest;
        Input::new(text).span(start..text.len()).anchored(Anchored::Yes).earliest(is_shortest)
    }

    /// `None`: the DFA does not know.
    fn by_states(&self, input: &Input<'_>) -> Option<Option<usize>> {
        let (dfa, cache) = self.quick.as_ref()?;
        let found = dfa.try_search_fwd(&mut cache.borrow_mut(), input).ok()?;
        Some(found.map(|found| found.offset()))
    }

    fn by_threads(&self, input: &Input<'_>) -> Option<usize> {
        let mut slots = [None, None];
        self.ends.search_slots(&mut self.cache.borrow_mut(), input, &mut slots);
        slots[1].map(|end| end.get())
    }

    /// The groups of a match that is exactly this part, whatever stands behind it.
    fn exact(&self, text: &str, part: &Range<usize>) -> Option<Captures> {
        let input = Input::new(&text[..part.end]).span(part.clone()).anchored(Anchored::Yes);
        let mut captures = self.whole.create_captures();
        self.whole.search_captures(&input, &mut captures);
        captures.is_match().then_some(captures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the DFA says, and what the slow way says of the same; the DFA may say that it does not know.
    #[test]
    fn ends_are_the_same_by_states_and_by_threads() {
        let patterns = [
            "a+",
            "a|ab|abc",
            "a*?",
            "(?:a|b)*c?",
            r"\w+\b",
            r"\bé|a.",
            "(?:ab){2,3}",
            "",
            "[^a]*",
            r"a$|a",
            "(?s:.)*b",
        ];
        let texts = ["", "a", "aaab", "abc abab", "éa bé", "ab\nabababab", "Ωa a"];
        let mut known = 0;
        for pattern in patterns {
            for preference in [Preference::Longest, Preference::Shortest] {
                let config = syntax::Config::new();
                let compiled = Pattern::new(pattern.into(), config, preference, None).unwrap();
                let Engine::Linear(linear) = &compiled.engine else { panic!("it is linear") };
                let spans = linear.spans().unwrap();
                for text in texts {
                    for start in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                        let input = Spans::input(text, start, preference);
                        let slow = spans.by_threads(&input);
                        if let Some(quick) = spans.by_states(&input) {
                            assert_eq!(quick, slow, "{pattern:?} in {text:?} from {start}, {preference:?}");
                            known += 1;
                        }
                        assert_eq!(spans.end(text, start, preference), slow);
                    }
                }
            }
        }
        assert!(known > 500, "{known}");
    }
}
