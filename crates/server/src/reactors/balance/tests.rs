use super::*;

/// Connections that ask as often as each other, each with the processor of its client and its reactor.
struct Load {
    /// Of an answer.
    cost: Duration,
    balance: Balance,
    homes: Vec<Option<usize>>,
    at: Vec<usize>,
    now: Duration,
    idle_processors: f64,
    idle: Duration,
    moved: usize,
}

/// Answers of a connection per second.
const RATE: u32 = 8_000;
const STEPS: u32 = 20;
/// So many windows that one reactor less is tried seldom.
const SETTLED: usize = 400;

impl Load {
    fn new(places: usize, homes: &[Option<usize>]) -> Load {
        let at = (0..homes.len()).map(|connection| connection % places).collect();
        Load {
            cost: Duration::from_micros(15),
            balance: Balance::new(places),
            homes: homes.to_vec(),
            at,
            now: Duration::ZERO,
            idle_processors: 0.0,
            idle: Duration::ZERO,
            moved: 0,
        }
    }

    /// Windows in which each connection asks twenty times where it should be.
    fn run(&mut self, windows: usize) {
        self.moved = 0;
        for _ in 0..windows * STEPS as usize {
            self.now += WINDOW / STEPS;
            self.idle += (WINDOW / STEPS).mul_f64(self.idle_processors);
            for connection in 0..self.at.len() {
                let (at, home) = (self.at[connection], self.homes[connection]);
                let (answers, taken) = self.answered(at);
                self.balance.note(at, home, answers, taken, self.now, || Some(self.idle));
                let own = Rate::of(answers, WINDOW / STEPS);
                if let Some(to) = self.balance.better(at, home, own) {
                    self.balance.moves(at, to, own);
                    self.at[connection] = to;
                    self.moved += 1;
                }
            }
        }
    }

    /// What a connection gets of its reactor in a step, and what that takes: one with too much to do never rests.
    fn answered(&self, at: usize) -> (u32, Usage) {
        let step = WINDOW / STEPS;
        let (wanted, most) = (RATE / 400, (step.as_nanos() / self.cost.as_nanos()) as u32 / self.served(at) as u32);
        let answers = wanted.min(most);
        (answers, Usage { spent: answers * self.cost, rests: if wanted < most { 5 } else { 0 } })
    }

    fn served(&self, place: usize) -> usize {
        self.at.iter().filter(|at| **at == place).count()
    }

    fn at_home(&self) -> usize {
        (0..self.at.len()).filter(|at| Some(self.at[*at]) == self.homes[*at]).count()
    }
}

#[test]
fn clients_on_all_processors_are_served_at_home_and_stay() {
    // Connections of two threads, given to the reactors in turn: half of them at the wrong one.
    let homes: Vec<_> = (0..16).map(|connection| Some(connection / 8)).collect();
    let mut load = Load::new(2, &homes);
    load.run(SETTLED);
    assert!(load.at_home() >= 14, "{:?}", load.at);
    load.run(20);
    assert!(load.moved <= 2, "{} moves of what was settled", load.moved);
}

#[test]
fn one_that_asks_for_many_is_served_by_one() {
    let mut load = Load::new(2, &[Some(0); 16]);
    load.run(60);
    assert!(load.served(0) == 16 || load.served(1) == 16, "{:?}", load.at);
    // Wherever it goes.
    for home in [1, 0] {
        load.homes.fill(Some(home));
        load.run(10);
        assert_eq!(load.moved, 0);
    }
    // Until another one asks, too.
    load.homes[..8].fill(Some(1));
    load.run(60);
    assert!(load.at_home() >= 14, "{:?}", load.at);
}

#[test]
fn where_processors_are_idle_beside_a_busy_reactor_another_one_helps() {
    // Two threads of clients that the system has put on one processor.
    let mut load = Load::new(2, &[Some(1); 16]);
    load.run(SETTLED);
    assert!(load.served(0) == 16 || load.served(1) == 16, "{:?}", load.at);
    let apart = load.at.clone();
    load.idle_processors = 0.4;
    load.run(60);
    assert_ne!(load.at, apart, "nobody helps");
    // There is more to do than one processor can: the system moves a thread.
    load.homes[..8].fill(Some(0));
    load.idle_processors = 0.05;
    load.run(60);
    assert!(load.at_home() >= 14, "{:?}", load.at);
}

#[test]
fn one_that_asks_for_much_is_served_on_the_other_processor() {
    let mut load = Load::new(2, &[Some(0); 16]);
    load.cost = 2 * LIGHT;
    load.run(SETTLED);
    assert!(load.served(1) >= 12, "{:?}", load.at);
    load.run(20);
    assert!(load.moved <= 2, "{} moves of what was settled", load.moved);
}

#[test]
fn one_that_waits_for_each_answer_is_followed() {
    let mut load = Load::new(2, &[Some(0)]);
    for home in [1, 0, 1] {
        load.homes[0] = Some(home);
        load.run(10);
        assert_eq!(load.at[0], home);
    }
}

#[test]
fn clients_that_change_places_are_followed() {
    let mut load = Load::new(2, &(0..16).map(|connection| Some(connection / 8)).collect::<Vec<_>>());
    load.run(60);
    load.homes.reverse();
    load.run(40);
    assert!(load.at_home() >= 14, "{:?}", load.at);
}

#[test]
fn clients_elsewhere_are_shared_evenly() {
    let mut load = Load::new(4, &[None; 32]);
    load.at = vec![0; 32];
    load.run(200);
    assert!((0..4).all(|place| (5..=11).contains(&load.served(place))), "{:?}", load.at);
    load.run(20);
    assert!(load.moved <= 4, "{} moves of what was settled", load.moved);
}

#[test]
fn what_one_can_do_one_does() {
    let mut load = Load::new(4, &(0..32).map(|connection| Some(connection % 4)).collect::<Vec<_>>());
    load.cost = Duration::from_micros(2);
    load.run(40);
    assert_eq!(load.served(0), 32, "{:?}", load.at);
    // Now it is too much for two.
    load.cost = Duration::from_micros(9);
    load.run(200);
    assert!(load.served(0) < 16 && load.served(2) > 4, "{:?}", load.at);
    load.cost = Duration::from_micros(1);
    load.run(80);
    assert_eq!(load.served(0), 32, "{:?}", load.at);
}

#[test]
fn heavy_answers_are_given_by_all() {
    let mut load = Load::new(4, &[None; 8]);
    load.cost = Duration::from_micros(400);
    load.run(SETTLED);
    assert!((0..4).all(|place| load.served(place) == 2) && load.moved == 0, "{:?}", load.at);
}

#[test]
fn one_less_is_tried_ever_more_seldom() {
    let mut load = Load::new(2, &(0..16).map(|connection| Some(connection / 8)).collect::<Vec<_>>());
    let (mut active, mut tries, mut half) = (1, 0, 0);
    for window in 0..2400 {
        load.run(1);
        let now = load.balance.active();
        tries += usize::from(now < active);
        active = now;
        if window == 1200 {
            half = tries;
        }
    }
    assert!((2..=7).contains(&half) && tries - half <= 2, "{half} tries, then {}", tries - half);
}

#[test]
fn one_that_nobody_can_help_does_not_make_others_come_and_go() {
    // A connection that cannot move, on a machine with idle processors.
    let balance = Balance::new(4);
    let (mut active, mut changes) = (balance.active(), 0);
    for window in 1..=400 {
        let now = WINDOW * window;
        for at in 0..4 {
            let spent = Duration::from_millis(if at == 0 { 45 } else { 2 });
            balance.note(at, None, 1000, Usage { spent, rests: 100 }, now, || Some(2 * now));
        }
        changes += usize::from(balance.active() != active);
        active = balance.active();
    }
    assert!((1..=12).contains(&changes), "{changes} changes in 20 s");
}

#[test]
fn few_answers_move_nobody() {
    let balance = Balance::new(2);
    for step in 0..100 {
        balance.note(0, Some(1), 32, Usage::default(), WINDOW * step, || None);
        assert_eq!(balance.better(0, Some(1), Rate(640)), None);
    }
}
