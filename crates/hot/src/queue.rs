//! The pages that wait for a sweep, each once. A round visits those that waited when it began.
//!
//! Pages are known by number only: one that was dropped meanwhile has nothing to sweep when its turn comes.

use std::collections::VecDeque;

#[derive(Default)]
pub struct Queue {
    order: VecDeque<u32>,
    /// By page number.
    waits: Vec<bool>,
    round_left: usize,
}

impl Queue {
    pub fn push(&mut self, page: u32) {
        let at = page as usize;
        if at >= self.waits.len() {
            self.waits.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.waits[at], true) {
            self.order.push_back(page);
        }
    }

    /// Begins a round unless one is under way.
    pub fn begin_round(&mut self) {
        if self.round_left == 0 {
            self.round_left = self.order.len();
        }
    }

    /// The next page of the round.
    pub fn pop(&mut self) -> Option<u32> {
        self.round_left = self.round_left.checked_sub(1)?;
        let page = self.order.pop_front().expect("a round never has more pages than wait");
        self.waits[page as usize] = false;
        Some(page)
    }

    pub fn round_is_over(&self) -> bool {
        self.round_left == 0
    }

    pub fn bytes(&self) -> usize {
        self.order.capacity() * size_of::<u32>() + self.waits.capacity()
    }
}
