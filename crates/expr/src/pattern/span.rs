//! Which part of a text a regular expression matches, by PostgreSQL's rules (manual 9.7.3.5).
//!
//! Among the matches that start first PostgreSQL takes the longest one, or the shortest where the expression as a
//! whole is not greedy; the `regex` crate takes the one that its alternatives prefer. So a match is found in three
//! steps: where it starts, how long it may be, and what its groups are within exactly that part.

use super::track::{TooComplex, Tree};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::{Anchored, Input, MatchKind, meta, nfa::thompson, util::syntax};
use std::cell::{Cell, OnceCell};

/// Byte ranges of a match: the whole, then the groups.
pub type Groups = Vec<Option<std::ops::Range<usize>>>;

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

/// An expression that the `regex` crate searches for.
struct Linear {
    finder: meta::Regex,
    preference: Preference,
    /// The expression in the `regex` crate's language, and its options.
    translated: String,
    config: syntax::Config,
    spans: OnceCell<Option<Spans>>,
    /// Makes what tells the groups of a match, where `regex` may find others.
    divider: Option<Box<MakeTree>>,
    tree: OnceCell<Option<Tree>>,
}

struct Spans {
    /// All ends of matches from one start.
    ends: PikeVM,
    /// The expression up to the end of the text.
    whole: meta::Regex,
}

/// Memory of one compiled expression.
const PROGRAM_BYTES_MAX: usize = 16 << 20;

impl Pattern {
    /// The reason if the expression is none.
    pub fn new(
        translated: String,
        config: syntax::Config,
        preference: Preference,
        divider: Option<Box<MakeTree>>,
    ) -> std::result::Result<Pattern, String> {
        let finder = linear(&translated, config)?;
        let linear =
            Linear { finder, preference, translated, config, spans: OnceCell::new(), divider, tree: OnceCell::new() };
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

    /// The first match from a byte position on.
    pub fn find_at(&self, text: &str, from: usize) -> Option<Groups> {
        if from > text.len() {
            return None;
        }
        match &self.engine {
            Engine::Linear(linear) => linear.find_at(text, from),
            Engine::Tree(tree) => tree.find_at(text, from).unwrap_or_else(|TooComplex| {
                self.gave_up.set(true);
                None
            }),
        }
    }
}

impl Linear {
    fn find_at(&self, text: &str, from: usize) -> Option<Groups> {
        let regex = &self.finder;
        let mut captures = regex.create_captures();
        regex.search_captures(&Input::new(text).span(from..text.len()), &mut captures);
        if self.preference != Preference::None
            && let Some(first) = captures.get_match()
            && let Some(spans) = self.spans()
            && let Some(end) = spans.end(text, first.start(), self.preference)
            && end != first.end()
        {
            let input = Input::new(&text[..end]).span(first.start()..end).anchored(Anchored::Yes);
            let mut exact = spans.whole.create_captures();
            spans.whole.search_captures(&input, &mut exact);
            if exact.is_match() {
                captures = exact;
            }
        }
        if !captures.is_match() {
            return None;
        }
        if let (Some(make), Some(found)) = (&self.divider, captures.get_match())
            && let Some(tree) = self.tree.get_or_init(make)
            && let Some(groups) = tree.groups_of(text, found.range())
        {
            return Some(groups);
        }
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
            let whole = linear(&format!("(?:{})\\z", self.translated), self.config).ok()?;
            Some(Spans { ends, whole })
        });
        made.as_ref()
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
        let input = Input::new(text)
            .span(start..text.len())
            .anchored(Anchored::Yes)
            .earliest(preference == Preference::Shortest);
        let mut cache = self.ends.create_cache();
        let mut slots = [None, None];
        self.ends.search_slots(&mut cache, &input, &mut slots);
        slots[1].map(|end| end.get())
    }
}
