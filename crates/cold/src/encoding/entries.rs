//! Which entries of a dictionary are in a set of strings, so that pages of codes are tested as they rest.

use super::dictionary::Shared;
use super::ints::Ints;
use super::search::Sought;
use super::{Damage, Decoded};
use basalt_types::automaton::Automaton;
use basalt_types::span::Span;
use basalt_types::widest;
use std::sync::Arc;

/// The codes of entries that are in a set.
pub(crate) enum Chosen {
    /// Ascending entries that begin alike lie side by side, and one lies alone.
    Span(Span),
    /// A byte per entry.
    Each(Vec<u8>),
}

impl Chosen {
    fn of(entries: Vec<u8>) -> Chosen {
        let first = |chosen: u8| entries.iter().position(|entry| *entry == chosen);
        let run = |chosen: u8| {
            let from = first(chosen)?;
            let to = entries.iter().rposition(|entry| *entry == chosen)?;
            let is_run = entries[from..=to].iter().all(|entry| *entry == chosen);
            is_run.then_some(Span { low: from as i128, high: to as i128, inside: chosen == 1 })
        };
        match run(1).or_else(|| run(0)) {
            Some(span) => Chosen::Span(span),
            None => Chosen::Each(entries),
        }
    }

    /// Clears the mask where a code's entry is not in the set, or where it is if that is `negated`.
    pub fn test(&self, codes: &Ints<'_>, negated: bool, mask: &mut [u8]) -> Decoded<()> {
        if let Chosen::Span(span) = self
            && codes.test(Span { inside: span.inside != negated, ..*span }, mask)?
        {
            return Ok(());
        }
        let mut each = Vec::<u32>::with_capacity(mask.len());
        codes.decode(&mut each)?;
        match self {
            Chosen::Span(span) => {
                let within = |code: u32| (i128::from(code) >= span.low && i128::from(code) <= span.high) == span.inside;
                each.iter().zip(mask).for_each(|(code, mask)| *mask &= u8::from(within(*code) != negated));
            }
            Chosen::Each(entries) => {
                if each.iter().any(|code| *code as usize >= entries.len()) {
                    return Err(Damage("a code beyond its dictionary"));
                }
                look_up(&each, entries, u8::from(negated), mask);
            }
        }
        Ok(())
    }
}

widest! {
    fn look_up(codes: &[u32], entries: &[u8], negated: u8, mask: &mut [u8]) {
        mask.iter_mut().zip(codes).for_each(|(mask, code)| *mask &= entries[*code as usize] ^ negated);
    }
}

/// What is sought in one dictionary.
#[derive(Default)]
pub(crate) struct Entries(Vec<(Arc<Automaton>, Option<Chosen>)>);

/// A scan seldom asks for more at once; the others are made anew for each page.
const SOUGHT_MAX: usize = 16;

impl Entries {
    pub fn knows(&self, texts: &Arc<Automaton>) -> bool {
        self.place(texts).is_some()
    }

    fn place(&self, texts: &Arc<Automaton>) -> Option<usize> {
        self.0.iter().position(|(known, _)| Arc::ptr_eq(known, texts))
    }

    /// `None`: the dictionary has a form that is not searched.
    pub fn of(&mut self, dictionary: &Shared, texts: &Arc<Automaton>) -> Decoded<Option<&Chosen>> {
        let at = match self.place(texts) {
            Some(at) => at,
            None => {
                let mut entries = vec![1; dictionary.count];
                let searched = dictionary.strings()?.search((texts, false), &mut Sought::default(), &mut entries)?;
                self.0.truncate(SOUGHT_MAX - 1);
                self.0.push((texts.clone(), searched.then(|| Chosen::of(entries))));
                self.0.len() - 1
            }
        };
        Ok(self.0[at].1.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::ints;

    #[test]
    fn codes_are_tested_in_each_form_as_one_by_one() {
        let patterns = [vec![0, 1, 1, 0, 0], vec![1, 0, 0, 0, 1], vec![1, 0, 1, 0, 1], vec![0; 5], vec![1; 5]];
        // A frame, runs, and deltas.
        let frame: Vec<i64> = (0..500).map(|at| at * 7919 % 5).collect();
        let runs: Vec<i64> = (0..500).map(|at| at / 50 % 5).collect();
        let pages = [frame, runs];
        for entries in patterns {
            let chosen = Chosen::of(entries.clone());
            assert_eq!(matches!(chosen, Chosen::Span(_)), entries != [1, 0, 1, 0, 1]);
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
    fn a_code_beyond_the_dictionary_is_damage() {
        let mut encoded = Vec::new();
        ints::encode(&[0, 1, 2, 3, 9], &mut encoded);
        let page = Ints::parse(&mut encoded.as_slice(), 5).unwrap();
        assert!(Chosen::of(vec![1, 0, 1, 0]).test(&page, false, &mut [1; 5]).is_err());
    }
}
