//! Recursion: some pipelines run in rounds, over the rows of the round before, until a round brings none.
//!
//! Of the pipelines between the base's last and the step's last, those run in every round that depend on its rows; the
//! others (tables that rows are joined with) once. What a round brought takes the place of what the base made, where the
//! next one reads it. Whoever gives the rows of the whole plan does so round by round: an endless recursion gives rows, too.

use super::explain::Recursion;
use super::held::Held;
use super::{Execution, HELD_ROWS, Pipeline};
use crate::aggregate::Finished;
use crate::aggregate::keys::{Form, Keys, Seeds};
use crate::error::{Error, Result};
use crate::join::concat::concat;
use crate::memory::{Account, Reservation};
use crate::program::Field;
use crate::spill::{SPILL_BYTES_MIN, bytes_of};
use crate::stop::check;
use basalt_types::vector::Vector;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

const NO_ROOM: Error = Error::Beyond("more rows of a recursion than memory holds");
/// Rounds of few rows whose rows are put together.
const SMALL_ROUNDS: usize = 1024;

/// The pipelines of one recursion.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    /// Makes the first rows. What reads it reads, later on, those of the last round.
    base: usize,
    /// Makes those of a round. What reads it reads those of all rounds.
    last: usize,
    /// Those between them that run in each round.
    varying: BTreeSet<usize>,
    /// Whether the pipeline behind it takes each round's rows when they are there.
    pub streams: bool,
    fields: Vec<Field>,
    /// What rows are told apart by, if none may come twice.
    distinct: Option<Vec<Form>>,
}

impl Loop {
    /// `all`: the pipelines so far, the step's last one behind all others.
    pub fn new(all: &[Pipeline], base: usize, fields: Vec<Field>, distinct: Option<Vec<Form>>) -> Loop {
        let last = all.len() - 1;
        let mut varying = BTreeSet::from([last]);
        for (at, pipeline) in all.iter().enumerate().skip(base + 1) {
            if pipeline.reads().iter().any(|by| *by == base || varying.contains(by)) {
                varying.insert(at);
            }
        }
        Loop { base, last, varying, streams: false, fields, distinct }
    }

    pub fn gives(&self, pipeline: usize) -> bool {
        self.last == pipeline
    }

    /// Whether what a pipeline made changes from round to round.
    pub fn varies(&self, pipeline: usize) -> bool {
        pipeline == self.base || self.varying.contains(&pipeline)
    }

    /// Behind which nothing of it runs any more.
    fn exit(&self) -> usize {
        self.last + usize::from(self.streams)
    }

    fn all(&self) -> RangeInclusive<usize> {
        self.base..=self.exit()
    }

    fn is_again(&self, at: usize) -> bool {
        self.varying.contains(&at) || self.streams && at == self.exit()
    }

    /// Of the pipelines that run in each round the one behind another.
    fn next_of_round(&self, at: usize) -> usize {
        *self.varying.range(at + 1..).next().expect("the last one is among them")
    }

    /// What is made once and read outside of the rounds, and what it is made of.
    fn wanted(&self, pipelines: &[Arc<Pipeline>]) -> BTreeSet<usize> {
        let mut wanted = BTreeSet::new();
        for at in (self.base + 1..self.last).rev().filter(|at| !self.is_again(*at)) {
            let reads = |reader: &usize| pipelines[*reader].reads().contains(&at);
            if (self.last + 1..pipelines.len()).any(|reader| reads(&reader)) || wanted.iter().any(reads) {
                wanted.insert(at);
            }
        }
        wanted
    }

    /// Keeps what is made once for as long as rounds read it.
    pub fn keep(&self, pipelines: &[Arc<Pipeline>], last_readers: &mut [usize], reads: &mut [usize]) {
        let readers = self.all().filter(|at| self.is_again(*at));
        for by in readers.flat_map(|at| pipelines[at].reads()).filter(|by| !self.is_again(*by)) {
            last_readers[by] = last_readers[by].max(self.exit());
            reads[by] += 1;
        }
        // What a round brought is looked at as it is.
        reads[self.base] += 2;
        reads[self.last] += 2;
    }
}

/// How far a recursion is.
pub(super) struct Rounds {
    /// Those whose rows have been taken in, the base's not among them.
    done: usize,
    /// Whether the last one brought nothing.
    over: bool,
    /// Whether that runs which is made once.
    once: bool,
    /// Of it what others read, whether there are rounds or not.
    wanted: BTreeSet<usize>,
    seen: Option<Seen>,
    /// All rows so far, unless they have been given.
    all: Vec<Arc<Held>>,
    /// The last of them that are few.
    small: Vec<Arc<Held>>,
    small_rows: usize,
    /// What all of them take.
    bytes: usize,
    held: Reservation,
}

/// The rows that have come.
struct Seen {
    keys: Keys,
    held: Reservation,
}

impl Rounds {
    pub fn new(of: &Loop, pipelines: &[Arc<Pipeline>], account: &Arc<Account>) -> Rounds {
        let seen = |forms: &Vec<Form>| Seen { keys: Keys::new(forms, &Seeds::new()), held: Reservation::new(account) };
        let seen = of.distinct.as_ref().map(seen);
        let (all, small, held) = (Vec::new(), Vec::new(), Reservation::new(account));
        let wanted = of.wanted(pipelines);
        Rounds { done: 0, over: false, once: false, wanted, seen, all, small, small_rows: 0, bytes: 0, held }
    }

    /// Of what a round made, what is new.
    fn new_of(&mut self, of: &Loop, made: Made) -> Result<Made> {
        let Some(seen) = &mut self.seen else { return Ok(made) };
        let (held, mut reservation) = made;
        let groups = match &*held {
            Held::Nothing => return Ok((held, reservation)),
            Held::Groups(groups) => groups,
            _ => return Err(NO_ROOM),
        };
        let (columns, rows) = seen.new_of(groups, &of.fields)?;
        let bytes = columns.iter().map(bytes_of).sum::<usize>();
        hold(&mut seen.held, seen.keys.bytes())?;
        hold(&mut reservation, groups.bytes() + bytes)?;
        drop(held);
        reservation.shrink_to(bytes);
        Ok((Arc::new(Held::Columns(columns, rows)), reservation))
    }

    /// Keeps the rows of a round for those who read all.
    fn add(&mut self, of: &Loop, held: &Arc<Held>, reservation: Reservation) -> Result<()> {
        drop(reservation);
        self.bytes += held.bytes();
        hold(&mut self.held, self.bytes)?;
        if held.rows() >= HELD_ROWS || held.columns().is_none() {
            self.gather(of)?;
            self.all.push(held.clone());
        } else if held.rows() > 0 {
            self.small.push(held.clone());
            self.small_rows += held.rows();
            if self.small.len() == SMALL_ROUNDS || self.small_rows >= HELD_ROWS {
                self.gather(of)?;
            }
        }
        Ok(())
    }

    /// Puts together what is small: readers look at each part's owner.
    fn gather(&mut self, of: &Loop) -> Result<()> {
        let (small, rows) = (std::mem::take(&mut self.small), std::mem::take(&mut self.small_rows));
        match small.as_slice() {
            [] => {}
            [one] => self.all.push(one.clone()),
            several => {
                let column = |(at, field)| {
                    let parts: Vec<&Vector> = several.iter().filter_map(|held| Some(&held.columns()?[at])).collect();
                    concat(&parts, field)
                };
                let columns = of.fields.iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
                let held = Held::Columns(columns, rows);
                self.bytes += held.bytes();
                self.bytes -= several.iter().map(|held| held.bytes()).sum::<usize>();
                self.all.push(Arc::new(held));
            }
        }
        Ok(())
    }
}

impl Seen {
    /// Those groups that have not come before; now they have.
    fn new_of(&mut self, groups: &Finished, fields: &[Field]) -> Result<(Vec<Vector>, usize)> {
        let (mut parts, mut rows) = (vec![Vec::new(); fields.len()], 0);
        for from in (0..groups.groups()).step_by(HELD_ROWS) {
            check()?;
            let part = from..groups.groups().min(from + HELD_ROWS);
            let columns = (0..fields.len()).map(|at| groups.column(at, part.clone())).collect::<Result<Vec<_>>>()?;
            let known = self.keys.len() as u32;
            let numbers = self.keys.assign(&columns, part.len(), None)?;
            let is_new = |(row, number): (usize, &u32)| (*number >= known).then_some(row as u32);
            let new: Vec<u32> = numbers.iter().enumerate().filter_map(is_new).collect();
            if new.is_empty() {
                continue;
            }
            rows += new.len();
            parts.iter_mut().zip(&columns).for_each(|(parts, column)| parts.push(column.take(&new)));
        }
        let column = |(parts, field): (&Vec<Vector>, &Field)| concat(&parts.iter().collect::<Vec<_>>(), field);
        Ok((parts.iter().zip(fields).map(column).collect::<Result<_>>()?, rows))
    }
}

/// As pipelines do: a little needs no room.
fn hold(held: &mut Reservation, bytes: usize) -> Result<()> {
    if held.reach(bytes) || bytes < SPILL_BYTES_MIN { Ok(()) } else { Err(NO_ROOM) }
}

/// Rows, and what was asked for them.
type Made = (Arc<Held>, Reservation);

impl Execution {
    /// Goes on to the pipeline that comes next, once one has ended.
    pub(super) fn advance(&mut self, at: usize) -> Result<()> {
        let loops = self.pipelines.loops.clone();
        let Some((number, turn)) = loops.iter().enumerate().find(|(_, turn)| turn.all().contains(&at)) else {
            self.release(at);
            self.at = at + 1;
            return Ok(());
        };
        if at == turn.base || at == turn.last {
            self.round(number, turn, at)?;
        } else if at < turn.last {
            self.release(at);
        }
        let rounds = &mut self.rounds[number];
        if rounds.once {
            // What is made once comes first: if it fails, no row has left.
            let is_wanted = |at: &usize| if rounds.over { rounds.wanted.contains(at) } else { !turn.is_again(*at) };
            if let Some(next) = (at + 1..turn.last).find(is_wanted) {
                self.at = next;
                return Ok(());
            }
            rounds.once = false;
        } else if at < turn.last {
            self.at = turn.next_of_round(at);
            return Ok(());
        }
        self.at = match rounds.over {
            _ if turn.streams && at != turn.exit() => turn.exit(),
            true => {
                self.end(number, turn)?;
                turn.exit() + 1
            }
            false => turn.next_of_round(turn.base),
        };
        Ok(())
    }

    /// Takes in what the base or a round has brought.
    fn round(&mut self, number: usize, turn: &Loop, at: usize) -> Result<()> {
        if at == turn.base {
            self.release(at);
        }
        let nothing = (Arc::new(Held::Nothing), Reservation::new(&self.account));
        let made = std::mem::replace(&mut self.made[at], nothing);
        let rounds = &mut self.rounds[number];
        let (held, reservation) = rounds.new_of(turn, made)?;
        rounds.done += usize::from(at == turn.last);
        rounds.over = held.rows() == 0;
        rounds.once = at == turn.base;
        if turn.streams {
            self.made[turn.last] = (held.clone(), reservation);
        } else {
            rounds.add(turn, &held, reservation)?;
        }
        self.made[turn.base] = (held, Reservation::new(&self.account));
        Ok(())
    }

    /// Leaves what all rounds brought to those who read it.
    fn end(&mut self, number: usize, turn: &Loop) -> Result<()> {
        if !turn.streams {
            let rounds = &mut self.rounds[number];
            rounds.gather(turn)?;
            let held = std::mem::replace(&mut rounds.held, Reservation::new(&self.account));
            self.made[turn.last] = (Arc::new(Held::Rounds(std::mem::take(&mut rounds.all))), held);
        }
        self.rounds[number].seen = None;
        (turn.base..=turn.exit()).for_each(|after| self.release(after));
        Ok(())
    }

    /// Of pipelines that make the rows of a recursion's rounds: whose base they go on from, and how many rounds there were.
    pub(super) fn recursion(&self, at: usize) -> Option<Recursion> {
        let mut all = self.pipelines.loops.iter().zip(&self.rounds);
        let own = all.find(|(turn, _)| turn.last == at);
        own.map(|(turn, rounds)| Recursion { base: turn.base, rounds: rounds.done, distinct: turn.distinct.is_some() })
    }

    /// Whether a pipeline runs once more.
    pub(super) fn is_again(&self, at: usize) -> bool {
        let within = |(turn, rounds): (&Loop, &Rounds)| rounds.done > 0 && turn.is_again(at);
        self.pipelines.loops.iter().zip(&self.rounds).any(within)
    }
}

impl Held {
    /// Rows in columns.
    fn columns(&self) -> Option<&[Vector]> {
        match self {
            Held::Table(table) => Some(&table.payload),
            Held::Columns(columns, _) => Some(columns),
            Held::Nothing => Some(&[]),
            _ => None,
        }
    }
}
