//! Which entries of a dictionary are in a set of strings, so that pages of codes are tested as they rest.

use super::dictionary::Shared;
use super::ints::Ints;
use super::search::{Kept, Sought};
use super::{Damage, Decoded, first_where};
use basalt_types::automaton::{Automaton, Run};
use basalt_types::span::Span;
use basalt_types::widest;
use std::cmp::Ordering;
use std::sync::Arc;

/// The entries of one dictionary that are sought; `None` where its form is not searched.
pub(crate) type Entries = Kept<Option<Chosen>>;

/// The entries that are in a set.
pub(crate) struct Chosen {
    /// A byte per entry.
    entries: Vec<u8>,
    /// The same of their codes: ascending entries that begin alike lie side by side, and one lies alone.
    span: Option<Span>,
}

impl Chosen {
    /// `None`: the dictionary has a form that is not searched.
    pub fn among(dictionary: &Shared, texts: &Arc<Automaton>) -> Decoded<Option<Chosen>> {
        if let Some(runs) = texts.runs() {
            return Chosen::within(dictionary, runs).map(Some);
        }
        let mut entries = vec![1; dictionary.count];
        let searched = dictionary.strings()?.search((texts, false), &mut Sought::default(), &mut entries)?;
        Ok(searched.then(|| Chosen::new(entries)))
    }

    /// Entries ascend, so that a few of them tell where a run of them is.
    fn within(dictionary: &Shared, runs: &[Run]) -> Decoded<Chosen> {
        let strings = dictionary.strings()?;
        let mut entries = vec![0; dictionary.count];
        for run in runs {
            let place = |entry: usize| strings.get(entry).map(|entry| run.place(&entry));
            let from = first_where(dictionary.count, |entry| place(entry).map(Ordering::is_ge))?;
            let to = first_where(dictionary.count, |entry| place(entry).map(Ordering::is_gt))?;
            // Of entries that do not ascend, which nobody has written, any are chosen.
            entries.get_mut(from..to).into_iter().for_each(|run| run.fill(1));
        }
        Ok(Chosen::new(entries))
    }

    fn new(entries: Vec<u8>) -> Chosen {
        let run = |chosen: u8| {
            let from = entries.iter().position(|entry| *entry == chosen)?;
            let to = entries.iter().rposition(|entry| *entry == chosen)?;
            let is_run = entries[from..=to].iter().all(|entry| *entry == chosen);
            is_run.then_some(Span { low: from as i128, high: to as i128, inside: chosen == 1 })
        };
        let span = run(1).or_else(|| run(0));
        Chosen { entries, span }
    }

    /// Clears the mask where a code's entry is not in the set, or where it is if that is `negated`.
    pub fn test(&self, codes: &Ints<'_>, negated: bool, mask: &mut [u8]) -> Decoded<()> {
        if let Some(span) = self.span
            && codes.test(Span { inside: span.inside != negated, ..span }, mask)?
        {
            return Ok(());
        }
        let mut each = Vec::<u32>::with_capacity(mask.len());
        codes.decode(&mut each)?;
        if each.iter().any(|code| *code as usize >= self.entries.len()) {
            return Err(Damage("a code beyond its dictionary"));
        }
        look_up(&each, &self.entries, u8::from(negated), mask);
        Ok(())
    }
}

widest! {
    fn look_up(codes: &[u32], entries: &[u8], negated: u8, mask: &mut [u8]) {
        mask.iter_mut().zip(codes).for_each(|(mask, code)| *mask &= entries[*code as usize] ^ negated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::dictionary::{self, SharedKind};
    use crate::encoding::ints;

    #[test]
    fn codes_are_tested_in_each_form_as_one_by_one() {
        let patterns = [vec![0, 1, 1, 0, 0], vec![1, 0, 0, 0, 1], vec![1, 0, 1, 0, 1], vec![0; 5], vec![1; 5]];
        // A frame, and runs.
        let frame: Vec<i64> = (0..500).map(|at| at * 7919 % 5).collect();
        let runs: Vec<i64> = (0..500).map(|at| at / 50 % 5).collect();
        let pages = [frame, runs];
        for entries in patterns {
            let chosen = Chosen::new(entries.clone());
            assert_eq!(chosen.span.is_some(), entries != [1, 0, 1, 0, 1]);
            for (codes, negated) in pages.iter().flat_map(|codes| [(codes, false), (codes, true)]) {
                let mut encoded = Vec::new();
                ints::encode(codes, &mut encoded);
                let page = Ints::parse(&mut encoded.as_slice(), codes.len()).unwrap();
                let mut mask: Vec<u8> = (0..codes.len()).map(|at| u8::from(at % 3 > 0)).collect();
                let expected: Vec<u8> = std::iter::zip(&mask, codes)
                    .map(|(mask, code)| mask & (entries[*code as usize] ^ u8::from(negated)))
                    .collect();
                chosen.test(&page, negated, &mut mask).unwrap();
                assert_eq!(mask, expected, "{entries:?} negated: {negated}");
            }
        }
    }

    #[test]
    fn codes_that_ascend_are_tested_as_others() {
        let codes: Vec<i64> = (0..4096).collect();
        let mut encoded = Vec::new();
        ints::encode(&codes, &mut encoded);
        let page = Ints::parse(&mut encoded.as_slice(), codes.len()).unwrap();
        assert!(matches!(page, Ints::Delta { .. }));
        for (from, to) in [(0, 100), (100, 4096), (7, 8)] {
            let entries: Vec<u8> = (0..codes.len()).map(|entry| u8::from((from..to).contains(&entry))).collect();
            let chosen = Chosen::new(entries.clone());
            let (mut mask, mut without) = (vec![1; codes.len()], vec![1; codes.len()]);
            chosen.test(&page, false, &mut mask).unwrap();
            chosen.test(&page, true, &mut without).unwrap();
            assert_eq!(mask, entries);
            assert!(mask.iter().zip(&without).all(|(mask, without)| mask + without == 1));
        }
    }

    /// Runs of ascending entries are found by a few of them, as by a search through all.
    #[test]
    fn runs_of_entries_are_those_that_are_in_the_set() {
        use basalt_types::automaton::Part::{Any, Bytes};
        let mut texts: Vec<String> = (0..4000).map(|at| format!("{}-{at}", ["a", "ab", "b", "bb"][at % 4])).collect();
        texts.extend(["", "ab", "b"].map(String::from));
        texts.sort();
        let strings: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        for strings in [&strings, &strings[..7].to_vec(), &Vec::new()] {
            let mut block = Vec::new();
            dictionary::encode_strings(strings, &mut block);
            let shared = Shared::parse(SharedKind::Strings, block.into()).unwrap();
            let prefix = |bytes| vec![Bytes(bytes), Any];
            let sets = [
                vec![vec![]],
                vec![prefix(b"ab")],
                vec![prefix(b"")],
                vec![prefix(b"c")],
                vec![vec![Bytes(b"ab")]],
                vec![vec![Bytes(b"ab"), Bytes(b"-1")]],
                vec![vec![Bytes(b"ab")], vec![Bytes(b"zz")], prefix(b"b-1"), prefix(b"")],
                vec![vec![Bytes(b"b")], prefix(b"bb-2"), vec![]],
            ];
            for patterns in sets {
                let automaton = Arc::new(Automaton::any_of(&patterns).unwrap());
                assert!(automaton.runs().is_some());
                let chosen = Chosen::among(&shared, &automaton).unwrap().unwrap();
                let expected: Vec<u8> = strings.iter().map(|string| u8::from(automaton.matches(string))).collect();
                assert_eq!(chosen.entries, expected, "{patterns:?}");
            }
        }
        let asks_for_more = [vec![Any, Bytes(b"a")], vec![Bytes(b"a"), Any, Bytes(b"b")]];
        asks_for_more.iter().for_each(|pattern| assert!(Automaton::new(pattern).unwrap().runs().is_none()));
    }

    #[test]
    fn a_code_beyond_the_dictionary_is_damage() {
        let mut encoded = Vec::new();
        ints::encode(&[0, 1, 2, 3, 9], &mut encoded);
        let page = Ints::parse(&mut encoded.as_slice(), 5).unwrap();
        assert!(Chosen::new(vec![1, 0, 1, 0]).test(&page, false, &mut [1; 5]).is_err());
    }
}
