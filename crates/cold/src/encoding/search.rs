//! Which strings are in a set, without decoding any: an automaton over bytes becomes one over codes for each table of
//! symbols. A string costs one load per code, which waits for the one before it, so several strings go on side by side;
//! and only those are looked at that have one of the few codes without which there is no match.

use super::fsst::{ESCAPE, Symbols};
use super::{Damage, Decoded};
use basalt_types::automaton::{Automaton, STATES_MAX};
use memchr::memchr3;
use std::ops::Range;
use std::sync::Arc;

/// Two for each of an automaton's, numbered by a byte.
const CODE_STATES: usize = 256;
const _: () = assert!(2 * STATES_MAX <= CODE_STATES);

/// An automaton over codes.
pub(crate) struct CodeAutomaton {
    /// As many as a byte has values, so that no index is checked; most are never touched.
    steps: Box<[[u8; 256]; CODE_STATES]>,
    accepts: [bool; CODE_STATES],
    /// Where the next byte stands for itself, from here on: one for each state without that.
    escaped: u8,
    /// States that nothing leads out of, if most strings are out with their first codes.
    finals: Option<Box<[bool; CODE_STATES]>>,
    /// Codes of which every string in the set has one, if they are few and most strings have none.
    telling: Option<Vec<u8>>,
}

/// Codes that are sought at once, by vectors of them.
const TELLING_MAX: usize = 6;
/// They are worth it where no more than one in so many codes is one of them.
const TELLING_SPARSE_MIN: usize = 48;
/// Codes that are counted to know how often they come.
const SAMPLE: usize = 4096;

impl CodeAutomaton {
    /// `sample`: strings of the table of symbols, as codes. Without a table codes are bytes.
    pub fn new(texts: &Automaton, symbols: Option<&Symbols>, sample: &[u8]) -> CodeAutomaton {
        let states = texts.states();
        let mut steps: Box<[[u8; 256]; CODE_STATES]> =
            vec![[0; 256]; CODE_STATES].into_boxed_slice().try_into().expect("as many as there are");
        let (mut accepts, mut finals) = ([false; CODE_STATES], Box::new([false; CODE_STATES]));
        for state in 0..states {
            let own = state as u8;
            let of_bytes: [u8; 256] = std::array::from_fn(|byte| texts.step(own, byte as u8));
            match symbols {
                None => steps[state] = of_bytes,
                Some(symbols) => {
                    for (code, to) in steps[state].iter_mut().enumerate() {
                        let (bytes, length) = symbols.symbol(code as u8);
                        *to = bytes[..length].iter().fold(own, |state, byte| texts.step(state, *byte));
                    }
                    steps[state][usize::from(ESCAPE)] = (states + state) as u8;
                    steps[states + state] = of_bytes;
                }
            }
            (accepts[state], finals[state]) = (texts.accepts(own), texts.is_final(own));
        }
        // One that begins in another way is out at once.
        let is_out = |state: u8| finals[usize::from(state)] && !accepts[usize::from(state)];
        let ends_soon = steps[0].iter().any(|to| is_out(*to));
        let finals = ends_soon.then_some(finals);
        let telling = symbols.filter(|_| finals.is_none());
        let telling = telling.and_then(|symbols| telling_of(texts, symbols, &sample[..sample.len().min(SAMPLE)]));
        CodeAutomaton { steps, accepts, escaped: states as u8, finals, telling }
    }

    /// Whether most strings are decided by their first codes.
    pub fn ends_soon(&self) -> bool {
        self.finals.is_some()
    }

    /// Whether what codes stand for is in the set, for strings that lie in `data` one after the other, each in as many codes
    /// as `lengths` says. Of each whose mask is not 0 the mask is set.
    ///
    /// # Panics
    /// If the mask is shorter than the lengths.
    pub fn search(&self, data: &[u8], lengths: &[i64], negated: bool, mask: &mut [u8]) -> Decoded<()> {
        let mut together = Together::default();
        let mut at = 0;
        let mut hits = self.telling.as_ref().map(|telling| Hits::new(telling, data));
        for (row, length) in lengths.iter().enumerate() {
            let length = usize::try_from(*length).map_err(|_| Damage("a negative length"))?;
            let codes = data.get(at..).and_then(|rest| rest.get(..length)).ok_or(BEYOND)?;
            at += length;
            if mask[row] == 0 {
                continue;
            }
            if hits.as_mut().is_some_and(|hits| !hits.has_any(at - length..at)) {
                mask[row] = u8::from(negated);
                continue;
            }
            if self.finals.is_some() {
                mask[row] = u8::from(self.matches(codes)? != negated);
                continue;
            }
            together.add(row, at - length, length);
            if together.count == LANES {
                self.decide(data, &mut together, negated, mask)?;
            }
        }
        self.decide(data, &mut together, negated, mask)
    }

    fn decide(&self, data: &[u8], together: &mut Together, negated: bool, mask: &mut [u8]) -> Decoded<()> {
        let Together { rows, starts, lengths, count } = std::mem::take(together);
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let lanes = starts.map(|start| data.get(start..start + longest));
        // At the end of a page not all of them have as many codes before them.
        let [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f), Some(g), Some(h)] = lanes else {
            for lane in 0..count {
                let codes = &data[starts[lane]..starts[lane] + lengths[lane]];
                mask[rows[lane]] = u8::from(self.matches(codes)? != negated);
            }
            return Ok(());
        };
        let states = self.states(&[a, b, c, d, e, f, g, h], &lengths, longest);
        for (row, state) in rows.iter().zip(&states).take(count) {
            mask[*row] = u8::from(self.ends(*state)? != negated);
        }
        Ok(())
    }

    /// The states behind several strings, which go on side by side up to the end of the longest: a step waits for the one
    /// before it, and where each ends cannot be foreseen.
    fn states(&self, lanes: &[&[u8]; LANES], lengths: &[usize; LANES], longest: usize) -> [u8; LANES] {
        let lanes = lanes.map(|codes| &codes[..longest]);
        let mut states = [0; LANES];
        for at in 0..longest {
            for ((state, codes), length) in states.iter_mut().zip(&lanes).zip(lengths) {
                let next = self.steps[usize::from(*state)][usize::from(codes[at])];
                *state = if at < *length { next } else { *state };
            }
        }
        states
    }

    /// Whether what codes stand for is in the set.
    fn matches(&self, codes: &[u8]) -> Decoded<bool> {
        let mut state = 0u8;
        for code in codes {
            if let Some(finals) = &self.finals
                && finals[usize::from(state)]
            {
                break;
            }
            state = self.steps[usize::from(state)][usize::from(*code)];
        }
        self.ends(state)
    }

    fn ends(&self, state: u8) -> Decoded<bool> {
        match state < self.escaped {
            true => Ok(self.accepts[usize::from(state)]),
            false => Err(Damage("a compressed string ends in an escape")),
        }
    }
}

/// What was made of the sets that are sought, by set.
pub(crate) struct Kept<T>(Vec<(Arc<Automaton>, T)>);

/// What is sought in the strings of one table of symbols.
pub(crate) type Sought = Kept<CodeAutomaton>;

/// A scan seldom asks for more at once; the others are made anew for each page.
const SOUGHT_MAX: usize = 16;

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept(Vec::new())
    }
}

impl<T> Kept<T> {
    pub fn knows(&self, texts: &Arc<Automaton>) -> bool {
        self.place(texts).is_some()
    }

    fn place(&self, texts: &Arc<Automaton>) -> Option<usize> {
        self.0.iter().position(|(known, _)| Arc::ptr_eq(known, texts))
    }

    /// `make` is asked for the first time.
    pub fn of(&mut self, texts: &Arc<Automaton>, make: impl FnOnce() -> Decoded<T>) -> Decoded<&T> {
        let at = match self.place(texts) {
            Some(at) => at,
            None => {
                let made = make()?;
                self.0.truncate(SOUGHT_MAX - 1);
                self.0.push((texts.clone(), made));
                self.0.len() - 1
            }
        };
        Ok(&self.0[at].1)
    }
}

/// The codes that the place of a piece may lie in, of that place for which they come least often.
fn telling_of(texts: &Automaton, symbols: &Symbols, sample: &[u8]) -> Option<Vec<u8>> {
    let mut counts = [0; 256];
    sample.iter().for_each(|code| counts[usize::from(*code)] += 1);
    let often = |codes: &Vec<u8>| codes.iter().map(|code| counts[usize::from(*code)]).sum::<usize>();
    let places = texts.pieces().flat_map(|piece| (0..piece.len()).map(move |place| (piece, place)));
    let of_places = places.map(|(piece, place)| {
        // A byte that stands for itself may be any.
        let codes = (0..=u8::MAX).filter(|code| *code == ESCAPE || may_cover(symbols.symbol(*code), piece, place));
        codes.collect::<Vec<u8>>()
    });
    let few = of_places.filter(|codes| codes.len() <= TELLING_MAX).min_by_key(often)?;
    (often(&few) * TELLING_SPARSE_MIN <= sample.len()).then_some(few)
}

/// Whether a place of a piece may lie in a symbol: all that both have of each other is the same.
fn may_cover((bytes, length): ([u8; 8], usize), piece: &[u8], place: usize) -> bool {
    (0..length).any(|of_place| {
        bytes[..length].iter().enumerate().all(|(at, byte)| {
            let in_piece = (place + at).checked_sub(of_place).and_then(|at| piece.get(at));
            in_piece.is_none_or(|wanted| wanted == byte)
        })
    })
}

/// Where some codes are, in ascending order.
struct Hits<'d> {
    few: Seeker<'d>,
    others: Option<Seeker<'d>>,
}

struct Seeker<'d> {
    codes: [u8; 3],
    data: &'d [u8],
    /// The next place, or the end.
    next: usize,
}

impl<'d> Hits<'d> {
    fn new(codes: &[u8], data: &'d [u8]) -> Hits<'d> {
        let (few, others) = codes.split_at(codes.len().min(3));
        Hits { few: Seeker::new(few, data), others: (!others.is_empty()).then(|| Seeker::new(others, data)) }
    }

    /// Whether there is one in a range; ranges ascend.
    fn has_any(&mut self, range: Range<usize>) -> bool {
        self.few.has_any(&range) || self.others.as_mut().is_some_and(|others| others.has_any(&range))
    }
}

impl<'d> Seeker<'d> {
    /// Of one to three codes.
    fn new(codes: &[u8], data: &'d [u8]) -> Seeker<'d> {
        let codes = [0, 1, 2].map(|at| codes[at % codes.len()]);
        let mut seeker = Seeker { codes, data, next: 0 };
        seeker.seek(0);
        seeker
    }

    fn seek(&mut self, from: usize) {
        let [a, b, c] = self.codes;
        self.next = memchr3(a, b, c, &self.data[from..]).map_or(self.data.len(), |at| from + at);
    }

    #[inline]
    fn has_any(&mut self, range: &Range<usize>) -> bool {
        if self.next < range.start {
            self.seek(range.start);
        }
        self.next < range.end
    }
}

/// Strings that go on side by side.
const LANES: usize = 8;
const BEYOND: Damage = Damage("strings beyond their page");

#[derive(Default)]
struct Together {
    rows: [usize; LANES],
    starts: [usize; LANES],
    lengths: [usize; LANES],
    count: usize,
}

impl Together {
    fn add(&mut self, row: usize, start: usize, length: usize) {
        (self.rows[self.count], self.starts[self.count], self.lengths[self.count]) = (row, start, length);
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::fsst::{Symbols, put_symbols};
    use super::CodeAutomaton;
    use basalt_types::automaton::{Automaton, Part};
    use fsst::Compressor;

    /// Texts of few letters, some of which no symbol stands for.
    fn texts() -> Vec<String> {
        let words = ["spec", "special", "requests", "re", "quests", "ü", "", "x\u{1}y"];
        (0..3000usize)
            .map(|at| (0..at % 9).map(|word| words[(at / 7 + word * word * at) % words.len()]).collect())
            .collect()
    }

    #[test]
    fn strings_are_found_without_being_decoded() {
        let texts = texts();
        let strings: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let compressor = Compressor::train(&strings[..40].to_vec());
        let (mut codes, mut lengths, mut table) = (Vec::new(), Vec::new(), Vec::new());
        for string in &strings {
            let compressed = compressor.compress(string);
            lengths.push(compressed.len() as i64);
            codes.extend(compressed);
        }
        put_symbols(&compressor, &mut table);
        let symbols = Symbols::parse(&mut table.as_slice()).unwrap();
        assert!(codes.contains(&super::ESCAPE), "letters that nobody has seen");
        use Part::{Any, Bytes};
        let patterns: &[&[Part]] = &[
            &[Any, Bytes(b"special"), Any, Bytes(b"requests"), Any],
            &[Any, Bytes("ü".as_bytes()), Any],
            &[Bytes(b"spec"), Any],
            &[Any, Bytes(b"quests")],
            &[Bytes(b"re"), Any, Bytes(b"y")],
            &[Bytes(b"special")],
            &[],
            &[Any],
        ];
        for parts in patterns {
            let automaton = Automaton::new(parts).unwrap();
            let over_codes = CodeAutomaton::new(&automaton, Some(&symbols), &codes);
            for negated in [false, true] {
                let mut mask: Vec<u8> = (0..strings.len()).map(|row| u8::from(row % 5 != 3)).collect();
                over_codes.search(&codes, &lengths, negated, &mut mask).unwrap();
                for (row, string) in strings.iter().enumerate() {
                    let expected = row % 5 != 3 && automaton.matches(string) != negated;
                    assert_eq!(mask[row] == 1, expected, "{:?} in {parts:?}, {negated}", texts[row]);
                }
            }
        }
    }

    #[test]
    fn damage_is_told() {
        let compressor = Compressor::train(&vec![b"special requests".as_slice(); 50]);
        let mut table = Vec::new();
        put_symbols(&compressor, &mut table);
        let symbols = Symbols::parse(&mut table.as_slice()).unwrap();
        let automaton = Automaton::new(&[Part::Any, Part::Bytes(b"s"), Part::Any]).unwrap();
        let over_codes = CodeAutomaton::new(&automaton, Some(&symbols), &[]);
        let searched =
            |data: &[u8], lengths: &[i64]| over_codes.search(data, lengths, false, &mut [1; 9][..lengths.len()]);
        assert!(searched(&[0, 0, 255, 65], &[2, 2]).is_ok());
        assert!(searched(&[0, 0, 65, 255], &[2, 2]).is_err(), "an escape at the end");
        assert!(searched(&[0, 255, 65, 0, 0, 0, 0, 0, 0, 0], &[2, 1, 1, 1, 1, 1, 1, 1, 1]).is_err(), "among others");
        assert!(searched(&[0, 0], &[2, 1]).is_err(), "beyond the page");
        assert!(searched(&[0, 0], &[-1, 3]).is_err(), "a negative length");
    }
}
