//! How many of a crowd of committers the writer waits for: all, half of them, or nobody.
//!
//! One sync for all is the cheapest, but while it runs nobody works. Half of them make two groups, one of which works
//! while the other's sync runs. And whoever waits for nobody has the next sync begin when the last one ends. Which of them
//! gets most done hangs on how long a sync takes, how long committers work between their commits, and what else the
//! processors have to do; so where processors were idle while all were waited for, each is tried for a while, and the best
//! one stays for some time (docs/decisions/0031).

use basalt_sched::ProcessorTimes;
use std::time::Duration;

#[cfg(test)]
mod tests;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Portion {
    All,
    Half,
    Nobody,
}

/// In the order of their syncs, fewest first.
const PORTIONS: [Portion; 3] = [Portion::All, Portion::Half, Portion::Nobody];

#[derive(Default)]
pub struct Portions {
    /// When the present look began, what processors had done by then, and who was served since.
    since: Option<(Duration, ProcessorTimes)>,
    served: usize,
    state: State,
    /// How many looks All stays for when it is chosen: longer each time.
    stay: u32,
    /// The processors' times are not to be had.
    is_blind: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// All are waited for, and processors were idle in so many of the last looks.
    Calm { idle: u32 },
    /// In turn, one look each. `half`: of the crowd that was counted before, since fewer are seen at once in parts.
    Trial { half: usize, looks: u32, found: [Found; PORTIONS.len()] },
    /// For so many more looks.
    Chosen { half: usize, portion: Portion, looks: u32 },
}

impl Default for State {
    fn default() -> State {
        State::Calm { idle: 0 }
    }
}

/// What got done in the looks of a portion.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Found {
    commits: usize,
    seconds: f64,
}

impl Found {
    fn rate(self) -> f64 {
        self.commits as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }
}

impl Portions {
    /// So long is looked at: processors' times are told in hundredths of a second.
    const LOOK_EVERY: Duration = Duration::from_millis(200);
    /// Behind a longer pause nobody knows what was idle when, or who will come.
    const LOOK_MAX: Duration = Duration::from_millis(400);
    /// Processors are idle where they are for at least so much of the time, in so many looks one after the other.
    const IDLE_MIN: f64 = 0.15;
    const IDLE_LOOKS: u32 = 2;
    /// Fewer have no parts.
    const CROWD_MIN: usize = 3;
    /// Looks of a trial, for all portions together: a second for each.
    const TRIAL_LOOKS: u32 = 5 * PORTIONS.len() as u32;
    /// More syncs must be worth so much more.
    const GAIN_MIN: f64 = 1.03;
    /// How long a choice stays. All stays for up to [`Self::STAY_MAX`], as every trial of something worse costs.
    const STAY: u32 = 50;
    const STAY_MAX: u32 = 800;

    fn portion(&self) -> (Portion, usize) {
        match self.state {
            State::Calm { .. } => (Portion::All, 0),
            State::Trial { half, looks, .. } => (PORTIONS[looks as usize % PORTIONS.len()], half),
            State::Chosen { half, portion, .. } => (portion, half),
        }
    }

    /// How many of a crowd to wait for.
    pub fn part_of(&self, crowd: usize) -> usize {
        match self.portion() {
            (Portion::All, _) => crowd,
            (Portion::Half, half) => half.max(crowd / 2).min(crowd),
            (Portion::Nobody, _) => crowd.min(1),
        }
    }

    /// At the end of a sync that served so many. Whether another portion is to be waited for from now on.
    pub fn look(
        &mut self,
        now: Duration,
        served: usize,
        crowd: usize,
        times: impl FnOnce() -> Option<ProcessorTimes>,
    ) -> bool {
        self.served += served;
        let is_early = self.since.is_some_and(|(begin, _)| now < begin + Self::LOOK_EVERY);
        // Those who are seen at once are few where nobody is waited for.
        let has_no_crowd = crowd < 2 && self.state == State::default();
        if is_early || self.is_blind || has_no_crowd {
            return false;
        }
        let was = self.portion();
        let Some(times) = times() else {
            *self = Portions { is_blind: true, ..Portions::default() };
            return was.0 != Portion::All;
        };
        let served = std::mem::take(&mut self.served);
        let Some((begin, before)) = self.since.replace((now, times)) else { return false };
        let took = now.saturating_sub(begin);
        match took <= Self::LOOK_MAX && served > 0 {
            true => {
                self.decide(Found { commits: served, seconds: took.as_secs_f64() }, crowd, times.idle_since(before))
            }
            // Those who come now need not be those who came before.
            false => self.state = State::default(),
        }
        self.portion() != was
    }

    fn decide(&mut self, found_now: Found, crowd: usize, idle_now: f64) {
        self.state = match self.state {
            State::Calm { idle } if crowd >= Self::CROWD_MIN && idle_now >= Self::IDLE_MIN => {
                match idle + 1 < Self::IDLE_LOOKS {
                    true => State::Calm { idle: idle + 1 },
                    false => State::Trial { half: crowd.div_ceil(2), looks: 0, found: Default::default() },
                }
            }
            State::Calm { .. } => State::default(),
            State::Trial { half, looks, mut found } => {
                let mine = &mut found[looks as usize % PORTIONS.len()];
                mine.commits += found_now.commits;
                mine.seconds += found_now.seconds;
                match looks + 1 < Self::TRIAL_LOOKS {
                    true => State::Trial { half, looks: looks + 1, found },
                    false => self.chosen(half, found),
                }
            }
            State::Chosen { looks: 0, .. } => State::default(),
            State::Chosen { half, portion, looks } => State::Chosen { half, portion, looks: looks - 1 },
        };
    }

    fn chosen(&mut self, half: usize, found: [Found; PORTIONS.len()]) -> State {
        let mut best = 0;
        for i in 1..PORTIONS.len() {
            if found[i].rate() > found[best].rate() * Self::GAIN_MIN {
                best = i;
            }
        }
        let longer = (self.stay * 2).clamp(Self::STAY, Self::STAY_MAX);
        self.stay = if best == 0 { longer } else { 0 };
        State::Chosen { half, portion: PORTIONS[best], looks: self.stay.max(Self::STAY) - 1 }
    }
}
