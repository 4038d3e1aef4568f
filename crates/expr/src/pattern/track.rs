//! Regular expressions with back references or look-around (manual 9.7.3.3), which no automaton takes alone.
//!
//! As PostgreSQL does, a match is found in two steps. Where parts of the expression may end is computed for each
//! place where they may start, a back reference taken for whatever its group matches ([`Search::ends`]). Then the text
//! is divided among the parts, in the order that their greediness prefers, until the back references hold
//! ([`Search::divide`]). Every step counts against [`STEPS_MAX`]: some expressions take exponential time.

use super::are::{Flags, bracket, escape, invalid};
use super::span::{Groups, Preference, linear};
use crate::error::Result;
use regex_automata::{Anchored, Input, meta, util::syntax};
use std::collections::HashMap;
use std::iter::Peekable;
use std::rc::Rc;
use std::str::Chars;

/// Places looked at in one search.
const STEPS_MAX: usize = 8 << 20;
/// Parts of an expression: its tree is walked by recursion.
const NODES_MAX: usize = 1000;
/// As PostgreSQL's.
const REPETITIONS_MAX: u32 = 255;

type NodeId = usize;

enum Node {
    Empty,
    Char(char),
    /// One character of a set.
    Set(CharSet),
    /// A place between characters.
    Place(meta::Regex),
    Pair(NodeId, NodeId),
    Either(Vec<NodeId>),
    Repeat {
        part: NodeId,
        min: u32,
        max: Option<u32>,
        preference: Preference,
    },
    Group(NodeId, usize),
    Back(usize),
    Look {
        part: NodeId,
        ahead: bool,
        negated: bool,
    },
}

struct CharSet {
    /// Bit `n` is for the character of code `n`.
    ascii: u128,
    regex: meta::Regex,
}

impl CharSet {
    fn new(regex: meta::Regex) -> CharSet {
        let mut set = CharSet { ascii: 0, regex };
        for code in 0..128u8 {
            if set.holds(char::from(code).encode_utf8(&mut [0; 4])) {
                set.ascii |= 1 << code;
            }
        }
        set
    }

    fn holds(&self, char: &str) -> bool {
        self.regex.is_match(Input::new(char).anchored(Anchored::Yes))
    }

    fn contains(&self, char: char) -> bool {
        match char.is_ascii() {
            true => self.ascii >> u32::from(char) & 1 == 1,
            false => self.holds(char.encode_utf8(&mut [0; 4])),
        }
    }
}

/// A compiled expression.
pub struct Tree {
    nodes: Vec<Node>,
    /// How much each node prefers to take.
    preferences: Vec<Preference>,
    root: NodeId,
    /// The node within each group, from group 1 on.
    groups: Vec<NodeId>,
    insensitive: bool,
}

/// Whether the groups of a match may be others than the `regex` crate says: it prefers alternatives in their order
/// and keeps what a group matched in an earlier repetition.
pub fn divides_otherwise(pattern: &str) -> bool {
    let mut chars = pattern.chars().peekable();
    let (mut has_groups, mut is_other) = (false, false);
    // Of each open parenthesis, whether what it holds so far has one length: there or not is all that it can be.
    let mut is_fixed: Vec<bool> = Vec::new();
    while let Some(char) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            '[' => super::preference::skip_bracket(&mut chars),
            '(' => {
                is_fixed.iter_mut().for_each(|fixed| *fixed = false);
                is_fixed.push(true);
                match chars.next_if_eq(&'?') {
                    Some(_) => drop(chars.next()),
                    None => has_groups = true,
                }
            }
            '|' => is_other = true,
            ')' => {
                let fixed = is_fixed.pop().unwrap_or(false);
                is_other |= match chars.peek() {
                    Some('?') => !fixed,
                    Some('*' | '+' | '{') => true,
                    _ => false,
                };
            }
            '*' | '+' | '?' | '}' => {
                is_fixed.iter_mut().for_each(|fixed| *fixed = false);
                is_other |= chars.peek() == Some(&'?');
            }
            _ => {}
        }
    }
    has_groups && is_other
}

/// Whether what stands behind a match may say whether it is one: ends of lines and words.
pub fn looks_at_ends(pattern: &str) -> bool {
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '$' => return true,
            '\\' if chars.next().is_some_and(|next| matches!(next, 'm' | 'M' | 'y' | 'Y' | 'Z')) => return true,
            '[' => super::preference::skip_bracket(&mut chars),
            _ => {}
        }
    }
    false
}

/// More than [`STEPS_MAX`] places were looked at.
pub struct TooComplex;

/// Whether an expression needs this module: back references or look-around outside of brackets.
pub fn is_needed(pattern: &str) -> bool {
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' if chars.next().is_some_and(|next| ('1'..='9').contains(&next)) => return true,
            '[' => super::preference::skip_bracket(&mut chars),
            '(' if chars.next_if_eq(&'?').is_some()
                && chars.peek().is_some_and(|next| matches!(next, '=' | '!' | '<')) =>
            {
                return true;
            }
            _ => {}
        }
    }
    false
}

struct Parser<'a> {
    chars: Peekable<Chars<'a>>,
    flags: Flags,
    config: syntax::Config,
    nodes: Vec<Node>,
    preferences: Vec<Preference>,
    groups: Vec<Option<NodeId>>,
    /// Inside of look-around parentheses are no groups.
    looking: usize,
}

pub fn compile(pattern: &str, flags: Flags, config: syntax::Config) -> Result<Tree> {
    let chars = pattern.chars().peekable();
    let mut parser =
        Parser { chars, flags, config, nodes: Vec::new(), preferences: Vec::new(), groups: Vec::new(), looking: 0 };
    let root = parser.alternatives()?;
    if parser.chars.peek().is_some() {
        return Err(invalid("parentheses () not balanced"));
    }
    let groups = parser.groups.into_iter().map(|group| group.unwrap_or(root)).collect();
    Ok(Tree { nodes: parser.nodes, preferences: parser.preferences, root, groups, insensitive: flags.insensitive })
}

impl Parser<'_> {
    fn add(&mut self, node: Node, preference: Preference) -> Result<NodeId> {
        if self.nodes.len() == NODES_MAX {
            return Err(invalid("regular expression is too complex"));
        }
        self.nodes.push(node);
        self.preferences.push(preference);
        Ok(self.nodes.len() - 1)
    }

    fn regex(&self, translated: &str) -> Result<meta::Regex> {
        linear(translated, self.config).map_err(|message| invalid(super::are::reason(&message)))
    }

    /// Up to the end, or a parenthesis that closes.
    fn alternatives(&mut self) -> Result<NodeId> {
        let mut branches = vec![self.branch()?];
        while self.chars.next_if_eq(&'|').is_some() {
            branches.push(self.branch()?);
        }
        match branches.as_slice() {
            [only] => Ok(*only),
            _ => self.add(Node::Either(branches), Preference::Longest),
        }
    }

    fn branch(&mut self) -> Result<NodeId> {
        let mut parts = Vec::new();
        while let Some(char) = self.next_char() {
            parts.push(self.piece(char)?);
        }
        let Some(mut whole) = parts.pop() else { return self.add(Node::Empty, Preference::None) };
        while let Some(part) = parts.pop() {
            let preference = match self.preferences[part] {
                Preference::None => self.preferences[whole],
                own => own,
            };
            whole = self.add(Node::Pair(part, whole), preference)?;
        }
        Ok(whole)
    }

    /// The next character that is of the branch.
    fn next_char(&mut self) -> Option<char> {
        self.chars.next_if(|char| !matches!(char, '|' | ')'))
    }

    /// An atom or a constraint, and the quantifier of an atom.
    fn piece(&mut self, char: char) -> Result<NodeId> {
        let (atom, is_constraint) = self.atom(char)?;
        let Some((min, max)) = self.quantifier()? else { return Ok(atom) };
        if is_constraint {
            return Err(invalid("quantifier operand invalid"));
        }
        let lazy = self.chars.next_if_eq(&'?').is_some();
        if self.chars.peek().is_some_and(|next| matches!(next, '*' | '+' | '?')) {
            return Err(invalid("quantifier operand invalid"));
        }
        let preference = match (Some(min) == max, lazy) {
            (true, _) => self.preferences[atom],
            (false, true) => Preference::Shortest,
            (false, false) => Preference::Longest,
        };
        self.add(Node::Repeat { part: atom, min, max, preference }, preference)
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>> {
        let range = match self.chars.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counts(),
            _ => return Ok(None),
        };
        self.chars.next();
        Ok(Some(range))
    }

    /// `{m}`, `{m,}` or `{m,n}`; any other brace is a character.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>> {
        let mut ahead = self.chars.clone();
        ahead.next();
        if !ahead.peek().is_some_and(char::is_ascii_digit) {
            return Ok(None);
        }
        self.chars = ahead;
        let bad = || invalid("invalid repetition count(s)");
        let min = self.number().ok_or_else(bad)?;
        let max = match self.chars.next_if_eq(&',') {
            None => Some(min),
            Some(_) if self.chars.peek() == Some(&'}') => None,
            Some(_) => Some(self.number().ok_or_else(bad)?),
        };
        if self.chars.next_if_eq(&'}').is_none() || max.is_some_and(|max| max < min) {
            return Err(bad());
        }
        Ok(Some((min, max)))
    }

    fn number(&mut self) -> Option<u32> {
        let mut digits = String::new();
        while let Some(digit) = self.chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse().ok().filter(|number| *number <= REPETITIONS_MAX)
    }

    /// The node, and whether it is a constraint, which no quantifier may follow.
    fn atom(&mut self, char: char) -> Result<(NodeId, bool)> {
        let node = match char {
            '(' => return self.parenthesis(),
            '*' | '+' | '?' => return Err(invalid("quantifier operand invalid")),
            '{' if self.chars.peek().is_some_and(char::is_ascii_digit) => {
                return Err(invalid("quantifier operand invalid"));
            }
            '^' | '$' => {
                let anchor = match (char, self.flags.line_anchors) {
                    (char, true) => char.to_string(),
                    ('^', _) => "\\A".to_string(),
                    _ => "\\z".to_string(),
                };
                let place = Node::Place(self.regex(&anchor)?);
                return Ok((self.add(place, Preference::None)?, true));
            }
            '.' => Node::Set(CharSet::new(self.regex(".")?)),
            '[' => {
                let mut set = String::new();
                bracket(&mut self.chars, self.flags, &mut set)?;
                Node::Set(CharSet::new(self.regex(&set)?))
            }
            '\\' => {
                if let Some(group) = self.back_reference()? {
                    return Ok((self.add(Node::Back(group), Preference::None)?, false));
                }
                let is_place = self.chars.peek().is_some_and(|next| matches!(next, 'm' | 'M' | 'y' | 'Y' | 'A' | 'Z'));
                let mut sequence = String::new();
                escape(&mut self.chars, &mut sequence)?;
                let regex = self.regex(&sequence)?;
                let node = if is_place { Node::Place(regex) } else { Node::Set(CharSet::new(regex)) };
                return Ok((self.add(node, Preference::None)?, is_place));
            }
            char => Node::Char(char),
        };
        Ok((self.add(node, Preference::None)?, false))
    }

    /// `\1` and so on, of groups that are closed. Inside of look-around there are none.
    fn back_reference(&mut self) -> Result<Option<usize>> {
        if !self.chars.peek().is_some_and(|next| ('1'..='9').contains(next)) {
            return Ok(None);
        }
        let mut number = 0usize;
        while let Some(digit) = self.chars.peek().and_then(|next| next.to_digit(10))
            && (number == 0 || number * 10 + digit as usize <= self.groups.len())
        {
            number = number * 10 + digit as usize;
            self.chars.next();
        }
        match self.groups.get(number - 1) {
            Some(Some(_)) if self.looking == 0 => Ok(Some(number)),
            _ => Err(invalid("invalid backreference number")),
        }
    }

    fn parenthesis(&mut self) -> Result<(NodeId, bool)> {
        let look = match self.chars.next_if_eq(&'?') {
            None if self.looking > 0 => None,
            None => {
                let group = self.groups.len();
                self.groups.push(None);
                let part = self.alternatives()?;
                self.close()?;
                self.groups[group] = Some(part);
                let preference = self.preferences[part];
                return Ok((self.add(Node::Group(part, group + 1), preference)?, false));
            }
            Some(_) => match self.chars.next() {
                Some(':') => None,
                Some('#') => {
                    while self.chars.next_if(|char| *char != ')').is_some() {}
                    self.close()?;
                    return Ok((self.add(Node::Empty, Preference::None)?, true));
                }
                Some('=') => Some((true, false)),
                Some('!') => Some((true, true)),
                Some('<') => match self.chars.next() {
                    Some('=') => Some((false, false)),
                    Some('!') => Some((false, true)),
                    _ => return Err(invalid("quantifier operand invalid")),
                },
                _ => return Err(invalid("quantifier operand invalid")),
            },
        };
        self.looking += usize::from(look.is_some());
        let part = self.alternatives()?;
        self.close()?;
        self.looking -= usize::from(look.is_some());
        match look {
            None => Ok((part, false)),
            Some((ahead, negated)) => Ok((self.add(Node::Look { part, ahead, negated }, Preference::None)?, true)),
        }
    }

    fn close(&mut self) -> Result<()> {
        match self.chars.next() {
            Some(')') => Ok(()),
            _ => Err(invalid("parentheses () not balanced")),
        }
    }
}

impl Tree {
    /// The groups of a match that is known. `None` if that is too much work.
    pub fn groups_of(&self, text: &str, range: std::ops::Range<usize>) -> Option<Groups> {
        let mut search = Search { tree: self, text, limit: range.end, ends: HashMap::new(), steps: 0 };
        let mut groups = vec![None; self.groups.len() + 1];
        let divided = search.divide(self.root, range.start, range.end, &mut groups);
        groups[0] = Some(range);
        matches!(divided, Ok(true)).then_some(groups)
    }

    /// Numbers of the groups in a node.
    fn groups_in(&self, id: NodeId) -> Vec<usize> {
        let (mut open, mut found) = (vec![id], Vec::new());
        while let Some(id) = open.pop() {
            match &self.nodes[id] {
                Node::Pair(first, second) => open.extend([*first, *second]),
                Node::Either(branches) => open.extend(branches),
                Node::Repeat { part, .. } => open.push(*part),
                Node::Group(part, group) => {
                    found.push(*group);
                    open.push(*part);
                }
                _ => {}
            }
        }
        found
    }

    /// The first match from a byte position on.
    pub fn find_at(&self, text: &str, from: usize) -> std::result::Result<Option<Groups>, TooComplex> {
        let mut search = Search { tree: self, text, limit: text.len(), ends: HashMap::new(), steps: 0 };
        let mut start = Some(from);
        while let Some(at) = start {
            let ends = search.ordered(self.root, at)?;
            for end in ends {
                let mut groups = vec![None; self.groups.len() + 1];
                if search.divide(self.root, at, end, &mut groups)? {
                    groups[0] = Some(at..end);
                    return Ok(Some(groups));
                }
            }
            start = text[at..].chars().next().map(|char| at + char.len_utf8());
        }
        Ok(None)
    }
}

struct Search<'a> {
    tree: &'a Tree,
    text: &'a str,
    /// No match goes beyond.
    limit: usize,
    /// Where each node may end, by where it starts; of repetitions also those of any number.
    ends: HashMap<(NodeId, usize, bool), Rc<[usize]>>,
    steps: usize,
}

type Found<T> = std::result::Result<T, TooComplex>;

impl Search<'_> {
    fn count(&mut self, steps: usize) -> Found<()> {
        self.steps += steps;
        if self.steps > STEPS_MAX { Err(TooComplex) } else { Ok(()) }
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    fn same(&self, a: &str, b: &str) -> bool {
        a == b || (self.tree.insensitive && a.to_lowercase() == b.to_lowercase())
    }

    /// Where a node may end that starts here, ascending.
    fn ends(&mut self, id: NodeId, at: usize) -> Found<Rc<[usize]>> {
        if let Some(known) = self.ends.get(&(id, at, false)) {
            return Ok(known.clone());
        }
        let tree = self.tree;
        let mut found: Vec<usize> = match &tree.nodes[id] {
            Node::Empty => vec![at],
            Node::Char(char) => {
                let same = |found: &char| {
                    let (mut wanted, mut have) = ([0; 4], [0; 4]);
                    self.same(char.encode_utf8(&mut wanted), found.encode_utf8(&mut have))
                };
                self.char_at(at).filter(same).map(|found| at + found.len_utf8()).into_iter().collect()
            }
            Node::Set(set) => {
                let holds = |found: &char| set.contains(*found);
                self.char_at(at).filter(holds).map(|found| at + found.len_utf8()).into_iter().collect()
            }
            Node::Place(place) => {
                let input = Input::new(self.text).span(at..at).anchored(Anchored::Yes);
                place.is_match(input).then_some(at).into_iter().collect()
            }
            Node::Pair(first, second) => {
                let mut found = Vec::new();
                for middle in self.ends(*first, at)?.iter() {
                    found.extend_from_slice(&self.ends(*second, *middle)?);
                }
                found
            }
            Node::Either(branches) => {
                let mut found = Vec::new();
                for branch in branches {
                    found.extend_from_slice(&self.ends(*branch, at)?);
                }
                found
            }
            Node::Repeat { part, min, max, .. } => self.repeated(*part, at, *min, *max)?,
            Node::Group(part, _) => self.ends(*part, at)?.to_vec(),
            // Whatever is taken for the group, and for any other text of its length in another case.
            Node::Back(group) => self.ends(tree.groups[*group - 1], at)?.to_vec(),
            Node::Look { part, ahead, negated } => {
                let holds = match ahead {
                    true => !self.ends(*part, at)?.is_empty(),
                    false => self.is_behind(*part, at)?,
                };
                if holds != *negated { vec![at] } else { Vec::new() }
            }
        };
        found.sort_unstable();
        found.dedup();
        found.truncate(found.partition_point(|end| *end <= self.limit));
        self.count(1 + found.len())?;
        let found: Rc<[usize]> = found.into();
        self.ends.insert((id, at, false), found.clone());
        Ok(found)
    }

    fn is_behind(&mut self, part: NodeId, at: usize) -> Found<bool> {
        for start in (0..=at).rev().filter(|start| self.text.is_char_boundary(*start)).collect::<Vec<_>>() {
            if self.ends(part, start)?.contains(&at) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn repeated(&mut self, part: NodeId, at: usize, min: u32, max: Option<u32>) -> Found<Vec<usize>> {
        let mut level = vec![at];
        for _ in 0..min {
            level = self.step(part, &level)?;
        }
        let mut found = level.clone();
        let mut times = min;
        while !level.is_empty() && max.is_none_or(|max| times < max) {
            let next = self.step(part, &level)?;
            level = next.into_iter().filter(|end| found.binary_search(end).is_err()).collect();
            found.extend_from_slice(&level);
            found.sort_unstable();
            times += 1;
        }
        Ok(found)
    }

    /// Where the part may end that starts at one of these places.
    fn step(&mut self, part: NodeId, starts: &[usize]) -> Found<Vec<usize>> {
        let mut next = Vec::new();
        for start in starts {
            next.extend_from_slice(&self.ends(part, *start)?);
        }
        next.sort_unstable();
        next.dedup();
        self.count(next.len())?;
        Ok(next)
    }

    /// As [`Search::ends`] of any number of repetitions of the part.
    fn closure(&mut self, part: NodeId, at: usize) -> Found<Rc<[usize]>> {
        if let Some(known) = self.ends.get(&(part, at, true)) {
            return Ok(known.clone());
        }
        let found: Rc<[usize]> = self.repeated(part, at, 0, None)?.into();
        self.ends.insert((part, at, true), found.clone());
        Ok(found)
    }

    /// The same ends in the order in which the node prefers them.
    fn ordered(&mut self, id: NodeId, at: usize) -> Found<Vec<usize>> {
        let mut ends = self.ends(id, at)?.to_vec();
        if self.tree.preferences[id] != Preference::Shortest {
            ends.reverse();
        }
        Ok(ends)
    }

    /// Divides exactly this text among the parts of a node; false if back references do not allow it.
    fn divide(&mut self, id: NodeId, start: usize, end: usize, groups: &mut Groups) -> Found<bool> {
        self.count(1)?;
        let tree = self.tree;
        match &tree.nodes[id] {
            Node::Pair(first, second) => {
                let before = groups.clone();
                for middle in self.ordered(*first, start)? {
                    if middle > end || !self.ends(*second, middle)?.contains(&end) {
                        continue;
                    }
                    if self.divide(*first, start, middle, groups)? && self.divide(*second, middle, end, groups)? {
                        return Ok(true);
                    }
                    groups.clone_from(&before);
                }
                Ok(false)
            }
            Node::Either(branches) => {
                let before = groups.clone();
                for branch in branches {
                    if self.ends(*branch, start)?.contains(&end) && self.divide(*branch, start, end, groups)? {
                        return Ok(true);
                    }
                    groups.clone_from(&before);
                }
                Ok(false)
            }
            Node::Repeat { part, min, max, preference } => {
                self.divide_repeat(*part, (*min, *max), *preference, start..end, groups)
            }
            Node::Group(part, group) => {
                let divided = self.divide(*part, start, end, groups)?;
                if divided {
                    groups[*group] = Some(start..end);
                }
                Ok(divided)
            }
            Node::Back(group) => Ok(match groups[*group].clone() {
                Some(range) => self.same(&self.text[range], &self.text[start..end]),
                None => false,
            }),
            // Their ends say all.
            Node::Empty | Node::Char(_) | Node::Set(_) | Node::Place(_) | Node::Look { .. } => Ok(true),
        }
    }

    /// Divides text among repetitions, each as long or short as it can be, without recursion over their number.
    fn divide_repeat(
        &mut self,
        part: NodeId,
        (min, max): (u32, Option<u32>),
        preference: Preference,
        range: std::ops::Range<usize>,
        groups: &mut Groups,
    ) -> Found<bool> {
        if min == 0 && range.is_empty() {
            // Once, if the part can be nothing, for its groups match nothing then; else not at all.
            let before = groups.clone();
            let once = self.ends(part, range.start)?.contains(&range.end);
            if !once || !self.divide(part, range.start, range.end, groups)? {
                groups.clone_from(&before);
            }
            return Ok(true);
        }
        let inner = self.tree.groups_in(part);
        // Of each repetition where it starts, its ends that were not tried, the last first, and the groups before it.
        let mut open: Vec<(usize, Vec<usize>, Groups)> = Vec::new();
        let mut at = range.start;
        loop {
            let times = open.len() as u32;
            if times > 0 && at == range.end && times >= min {
                return Ok(true);
            }
            let mut ends = Vec::new();
            if max.is_none_or(|max| times < max) {
                for end in self.ends(part, at)?.iter().copied() {
                    // A repetition of nothing is for the sake of the least number only.
                    let is_useful = end > at || times < min;
                    if is_useful && end <= range.end && self.closure(part, end)?.contains(&range.end) {
                        ends.push(end);
                    }
                }
            }
            if preference == Preference::Shortest {
                ends.reverse();
            }
            open.push((at, ends, groups.clone()));
            loop {
                let Some((from, ends, before)) = open.last_mut() else { return Ok(false) };
                groups.clone_from(before);
                // What a group matched in an earlier repetition is forgotten.
                inner.iter().for_each(|group| groups[*group] = None);
                let from = *from;
                let Some(end) = ends.pop() else {
                    open.pop();
                    continue;
                };
                if self.divide(part, from, end, groups)? {
                    at = end;
                    break;
                }
            }
        }
    }
}
