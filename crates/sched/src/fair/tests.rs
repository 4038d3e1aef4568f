use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::AtomicBool;
use std::task::Wake;

#[derive(Default)]
pub(super) struct Flag(pub AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A worker of the simulation: always has something to do.
struct Worker {
    turn: Turn,
    woken: Arc<Flag>,
    /// Nanoseconds of the simulated clock: when its step ends, and how long it takes.
    until: Option<u64>,
    step: u64,
    /// Until then it has nothing to do.
    rests_until: Option<u64>,
    asked_at: Option<u64>,
    had: u64,
    waited_max: u64,
}

/// Slots that compute in simulated time.
struct Sim {
    scheduler: Arc<Scheduler>,
    workers: Vec<Worker>,
    now: u64,
    rng: StdRng,
    /// Bounds of a step.
    step: std::ops::Range<u64>,
}

pub(super) const UNLIMITED: Limits = Limits { active_max: usize::MAX, queued_max: 0 };
const MS: u64 = 1_000_000;

impl Sim {
    fn new(seed: u64, slots: usize, groups: &[(&str, u32)]) -> Sim {
        println!("seed {seed}");
        let groups: Vec<_> = groups.iter().map(|(name, share)| (name.to_string(), *share)).collect();
        let (scheduler, rng) = (Scheduler::new(slots, &groups, UNLIMITED), StdRng::seed_from_u64(seed));
        Sim { scheduler, workers: Vec::new(), now: 0, rng, step: MS / 5..2 * MS }
    }

    /// Where the workers of a new statement are.
    fn statement(&mut self, group: &str, workers: usize) -> std::ops::Range<usize> {
        let statement = self.scheduler.statement(group);
        let from = self.workers.len();
        self.workers.extend((0..workers).map(|_| Worker {
            turn: statement.turn(),
            woken: Arc::default(),
            until: None,
            step: 0,
            rests_until: None,
            asked_at: None,
            had: 0,
            waited_max: 0,
        }));
        from..self.workers.len()
    }

    fn ask(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        let since = *worker.asked_at.get_or_insert(self.now);
        let waker = Waker::from(worker.woken.clone());
        if worker.turn.poll_ready(&mut Context::from_waker(&waker)).is_ready() {
            worker.waited_max = worker.waited_max.max(self.now - since);
            worker.asked_at = None;
            worker.step = self.rng.random_range(self.step.clone());
            worker.until = Some(self.now + worker.step);
        }
    }

    fn run(&mut self, nanos: u64) {
        let end = self.now + nanos;
        loop {
            for at in 0..self.workers.len() {
                let worker = &self.workers[at];
                let is_idle = worker.until.is_none() && worker.rests_until.is_none();
                if is_idle && (worker.asked_at.is_none() || worker.woken.0.swap(false, Ordering::SeqCst)) {
                    self.ask(at);
                }
            }
            let event = |worker: &Worker| worker.until.or(worker.rests_until);
            let next = (0..self.workers.len()).filter_map(|at| Some((event(&self.workers[at])?, at))).min();
            let (until, at) = next.expect("somebody computes or comes back");
            if until > end {
                self.now = end;
                return;
            }
            self.now = until;
            let worker = &mut self.workers[at];
            if worker.rests_until.take().is_none() {
                worker.had += worker.step;
                worker.until = None;
                worker.turn.spent(Duration::from_nanos(worker.step));
            }
            self.ask(at);
        }
    }

    /// Workers have nothing to do for a while.
    fn rest(&mut self, workers: std::ops::Range<usize>, nanos: u64) {
        for worker in &mut self.workers[workers] {
            worker.turn.rest();
            (worker.until, worker.asked_at, worker.rests_until) = (None, None, Some(self.now + nanos));
        }
    }

    fn had(&self, workers: std::ops::Range<usize>) -> u64 {
        self.workers[workers].iter().map(|worker| worker.had).sum()
    }
}

fn share(of: u64, and: u64) -> f64 {
    of as f64 / (of + and) as f64
}

#[test]
fn groups_get_their_shares_whatever_their_statements_are() {
    for seed in 0..40 {
        let mut rng = StdRng::seed_from_u64(seed);
        let slots = rng.random_range(1..5);
        let mut sim = Sim::new(seed, slots, &[("few", 20), ("much", 80)]);
        let mut of = |group: &str, sim: &mut Sim| {
            let statements = rng.random_range(1..9);
            let parts: Vec<_> = (0..statements).map(|_| sim.statement(group, slots + rng.random_range(0..3))).collect();
            parts[0].start..parts[statements - 1].end
        };
        let (few, much) = (of("few", &mut sim), of("much", &mut sim));
        sim.run(4000 * MS);
        let got = share(sim.had(few), sim.had(much));
        assert!((0.17..0.23).contains(&got), "seed {seed}: {got}");
    }
}

#[test]
fn what_a_group_does_not_use_is_lent_and_not_owed() {
    for seed in 0..20 {
        let mut sim = Sim::new(seed, 2, &[("few", 20), ("much", 80)]);
        let few = sim.statement("few", 2);
        sim.run(5000 * MS);
        assert!(sim.had(few.clone()) > 9900 * MS, "the other's share lies idle");
        let much = sim.statement("much", 2);
        let (few_before, much_before) = (sim.had(few.clone()), sim.had(much.clone()));
        sim.run(200 * MS);
        let got = share(sim.had(few.clone()) - few_before, sim.had(much.clone()) - much_before);
        assert!((0.14..0.26).contains(&got), "seed {seed}: {got}");
        // And the other way about.
        sim.workers.truncate(much.start);
        let before = sim.had(few.clone());
        sim.run(100 * MS);
        assert!(sim.had(few) - before > 190 * MS, "seed {seed}");
    }
}

#[test]
fn a_group_that_comes_back_after_each_rest_has_little_credit_from_its_rests() {
    let mut sim = Sim::new(7, 1, &[("steady", 50), ("now and then", 50)]);
    let steady = sim.statement("steady", 1);
    for _ in 0..20 {
        sim.run(500 * MS);
        let before = sim.had(steady.clone());
        let others = sim.statement("now and then", 1);
        sim.run(100 * MS);
        let got = sim.had(steady.clone()) - before;
        assert!(got > 41 * MS, "only {got} of 100 ms");
        sim.workers.truncate(others.start);
    }
}

/// Such as between two queries of its client.
#[test]
fn a_group_keeps_its_share_over_moments_in_which_it_has_nothing_to_do() {
    for seed in 0..10 {
        let mut sim = Sim::new(seed, 2, &[("few", 20), ("much", 80)]);
        let (few, much) = (sim.statement("few", 4), sim.statement("much", 4));
        for _ in 0..200 {
            sim.run(10 * MS);
            sim.rest(much.clone(), MS);
        }
        let got = share(sim.had(few), sim.had(much));
        assert!((0.18..0.22).contains(&got), "seed {seed}: {got}");
    }
}

#[test]
fn nobody_starves() {
    for seed in 0..10 {
        let mut sim = Sim::new(seed, 2, &[("one", 1), ("most", 99)]);
        let one = sim.statement("one", 1);
        for _ in 0..10 {
            sim.statement("most", 2);
        }
        sim.run(20_000 * MS);
        assert!(sim.had(one.clone()) > 300 * MS, "seed {seed}: {}", sim.had(one));
        let longest = sim.workers.iter().map(|worker| worker.waited_max).max().unwrap();
        assert!(longest < 600 * MS, "seed {seed}: waited {longest} ns");
    }
}

#[test]
fn a_long_statement_does_not_starve_behind_short_ones() {
    for seed in 0..10 {
        let mut sim = Sim::new(seed, 1, &[("all", 100)]);
        let long = sim.statement("all", 1);
        sim.run(100 * MS);
        // There are two of them at any time.
        sim.statement("all", 1);
        for _ in 0..400 {
            sim.statement("all", 1);
            sim.run(4 * MS);
            sim.workers.remove(long.end);
        }
        let got = (sim.had(long) - 100 * MS) as f64 / (sim.now - 100 * MS) as f64;
        assert!(got > 0.2, "seed {seed}: {got}");
    }
}

#[test]
fn a_statement_with_many_workers_gets_no_more_than_one_with_few() {
    for seed in 0..10 {
        let mut sim = Sim::new(seed, 2, &[("all", 100)]);
        let (many, few) = (sim.statement("all", 16), sim.statement("all", 2));
        sim.run(3000 * MS);
        let got = share(sim.had(many), sim.had(few));
        assert!((0.48..0.52).contains(&got), "seed {seed}: {got}");
    }
}

#[test]
fn a_statement_that_begins_does_not_wait_behind_those_that_run() {
    for seed in 0..20 {
        let mut sim = Sim::new(seed, 2, &[("all", 100)]);
        for _ in 0..16 {
            sim.statement("all", 2);
        }
        sim.run(1000 * MS);
        let short = sim.statement("all", 1);
        // Two steps until a slot changes hands, and its own.
        sim.run(6 * MS);
        assert!(sim.had(short) > 0, "seed {seed}");
    }
}

#[test]
fn groups_can_be_changed_while_their_statements_run() {
    let mut sim = Sim::new(3, 2, &[("one", 50), ("other", 50)]);
    let (one, other) = (sim.statement("one", 2), sim.statement("other", 2));
    sim.run(1000 * MS);
    sim.scheduler.set_groups(&[("one".into(), 90), ("third".into(), 10)]);
    assert!(!sim.scheduler.has_group("other"));
    let before = (sim.had(one.clone()), sim.had(other.clone()));
    sim.run(2000 * MS);
    // The one that is gone keeps its share as long as its statements run.
    let got = share(sim.had(one.clone()) - before.0, sim.had(other.clone()) - before.1);
    assert!((0.61..0.67).contains(&got), "{got}");
    sim.workers.truncate(other.start);
    assert_eq!(sim.scheduler.state.lock().groups.len(), 2);
    let report = sim.scheduler.report();
    let told: Vec<_> = report.iter().map(|group| (&*group.name, group.share, group.statements)).collect();
    assert_eq!(told, [("one", 90, 1), ("third", 10, 0)]);
    assert_eq!(report[0].spent.as_nanos() as u64, sim.had(one));
}

/// One actor of the model: what it does next, and what it knows.
struct Actor {
    turn: Option<Turn>,
    woken: Arc<Flag>,
    holds: bool,
    waits: bool,
}

/// What an actor does, one thing after the other. Asking is done again and again until there is a slot.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Act {
    Ask,
    Spend,
    Rest,
    Drop,
}

fn replay(scripts: &[&[Act]], order: &[usize]) {
    let scheduler = Scheduler::new(1, &[("a".into(), 10), ("b".into(), 90)], UNLIMITED);
    let actor = |at: usize| Actor {
        turn: Some(scheduler.statement(["a", "b"][at % 2]).turn()),
        woken: Arc::default(),
        holds: false,
        waits: false,
    };
    let mut actors: Vec<Actor> = (0..scripts.len()).map(actor).collect();
    let mut at = vec![0; scripts.len()];
    for who in order {
        let act = scripts[*who][at[*who]];
        at[*who] += 1;
        let actor = &mut actors[*who];
        let waker = Waker::from(actor.woken.clone());
        let Some(turn) = &mut actor.turn else { continue };
        match act {
            Act::Ask if !actor.holds => {
                let ready = turn.poll_ready(&mut Context::from_waker(&waker)).is_ready();
                let woken_for_nothing = !ready && actor.waits && actor.woken.0.load(Ordering::SeqCst);
                assert!(!woken_for_nothing, "{order:?}");
                (actor.holds, actor.waits) = (ready, !ready);
                actor.woken.0.store(false, Ordering::SeqCst);
            }
            Act::Ask => {}
            Act::Spend if actor.holds => {
                turn.spent(Duration::from_millis(2));
                actor.holds = turn.ticket.is_some();
            }
            Act::Spend => {}
            Act::Rest => {
                turn.rest();
                (actor.holds, actor.waits) = (false, false);
            }
            Act::Drop => {
                actor.turn = None;
                (actor.holds, actor.waits) = (false, false);
            }
        }
        let state = scheduler.state.lock();
        let has_slot = |actor: &Actor| actor.holds || actor.waits && actor.woken.0.load(Ordering::SeqCst);
        let (held, waiting) = (actors.iter().filter(|actor| has_slot(actor)).count(), scheduler.is_waited_for());
        assert_eq!(held + state.free, 1, "{order:?}: a slot is lost or given twice, or somebody is not woken");
        assert!(state.free == 0 || !waiting, "{order:?}: a slot lies idle while somebody waits");
        let computing: usize = state.statements.values().map(|entry| entry.computing).sum();
        assert_eq!(computing, held, "{order:?}");
    }
}

/// All orders in which the actors can do what they do.
fn orders(left: &mut [usize], order: &mut Vec<usize>, check: &mut impl FnMut(&[usize])) {
    if left.iter().all(|left| *left == 0) {
        return check(order);
    }
    for who in 0..left.len() {
        if left[who] > 0 {
            left[who] -= 1;
            order.push(who);
            orders(left, order, check);
            order.pop();
            left[who] += 1;
        }
    }
}

#[test]
fn no_order_of_events_loses_a_slot_or_a_wake_up() {
    use Act::*;
    let scripts: [&[Act]; 4] = [&[Ask, Spend, Ask, Drop], &[Ask, Ask, Rest], &[Ask, Drop], &[Ask, Spend, Drop]];
    let mut left = scripts.map(<[Act]>::len);
    let mut count = 0;
    orders(&mut left, &mut Vec::new(), &mut |order| {
        count += 1;
        replay(&scripts, order);
    });
    // 12! / (4! 3! 2! 3!)
    assert_eq!(count, 277_200);
}

#[test]
fn threads_that_come_and_go_leave_all_slots_free() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let scheduler = Scheduler::new(3, &[("a".into(), 10), ("b".into(), 90)], UNLIMITED);
    let done = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for seed in 0..200u64 {
            let statement = scheduler.statement(["a", "b"][seed as usize % 2]);
            let work = async move {
                let mut rng = StdRng::seed_from_u64(seed);
                let mut turn = statement.turn();
                for _ in 0..50 {
                    turn.ready().await;
                    turn.spent(Duration::from_micros(rng.random_range(0..3000)));
                    if rng.random_bool(0.1) {
                        turn.rest();
                    }
                    tokio::task::yield_now().await;
                }
            };
            let task = tasks.spawn(work);
            if seed % 3 == 0 {
                task.abort();
            }
        }
        let mut done = 0;
        while let Some(ended) = tasks.join_next().await {
            done += usize::from(ended.is_ok());
        }
        done
    });
    assert!(done >= 133, "{done}");
    let state = scheduler.state.lock();
    assert_eq!((state.free, state.statements.len(), state.ready.len(), state.active.len()), (3, 0, 0, 0));
    assert!(!scheduler.is_waited_for());
}

#[test]
fn who_waits_in_the_middle_of_its_work_has_no_slot_meanwhile() {
    let scheduler = Scheduler::new(1, &[("a".into(), 1)], UNLIMITED);
    let (one, other) = (scheduler.statement("a"), scheduler.statement("a"));
    let waker = Waker::from(Arc::new(Flag::default()));
    let mut cx = Context::from_waker(&waker);
    let (mut turn, mut second) = (one.turn(), other.turn());
    assert!(turn.poll_ready(&mut cx).is_ready());
    assert!(second.poll_ready(&mut cx).is_pending());
    turn.compute(|| {
        assert!(is_computing());
        pause(|| {
            assert!(!is_computing());
            // The other one computes where this one waits for it.
            assert!(second.poll_ready(&mut cx).is_ready());
            second.compute(|| assert!(is_computing()));
        });
        assert!(is_computing() && is_overdue(), "it goes on without a slot, to the end of its step");
    });
    assert!(!is_computing() && turn.ticket.is_none());
    assert!(turn.poll_ready(&mut cx).is_pending());
    second.rest();
    assert!(turn.poll_ready(&mut cx).is_ready());
    // A panic gives the slot back as well.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| turn.compute(|| panic!("on purpose"))));
    assert!(panicked.is_err() && !is_computing());
    assert!(second.poll_ready(&mut cx).is_ready());
}

#[test]
fn time_that_is_computed_is_noted() {
    let scheduler = Scheduler::new(1, &[("a".into(), 1)], UNLIMITED);
    let waker = Waker::from(Arc::new(Flag::default()));
    let mut turn = scheduler.statement("a").turn();
    assert!(turn.poll_ready(&mut Context::from_waker(&waker)).is_ready());
    let until = crate::threads::spent() + Duration::from_millis(4);
    turn.compute(|| while crate::threads::spent() < until {});
    assert!(turn.ticket.is_some(), "nobody waits");
    let spent = scheduler.report()[0].spent;
    assert!((Duration::from_millis(3)..Duration::from_millis(30)).contains(&spent), "{spent:?}");
}

#[test]
fn time_of_work_within_a_pause_is_noted_once() {
    let scheduler = Scheduler::new(1, &[("a".into(), 1)], UNLIMITED);
    let waker = Waker::from(Arc::new(Flag::default()));
    let statement = scheduler.statement("a");
    let mut turn = statement.turn();
    assert!(turn.poll_ready(&mut Context::from_waker(&waker)).is_ready());
    let compute = |millis| {
        let until = crate::threads::spent() + Duration::from_millis(millis);
        while crate::threads::spent() < until {}
    };
    let before = crate::threads::spent();
    turn.compute(|| {
        compute(2);
        pause(|| {
            let mut inner = statement.turn();
            assert!(inner.poll_ready(&mut Context::from_waker(&waker)).is_ready());
            inner.compute(|| compute(10));
        });
        compute(2);
    });
    let (spent, all) = (scheduler.report()[0].spent, crate::threads::spent() - before);
    assert!(spent >= Duration::from_millis(13) && spent <= all, "{spent:?} of {all:?}");
}

/// One that waits for somebody must not keep from running whom it waits for.
#[test]
fn who_waits_in_the_middle_of_its_work_has_no_permit_afterwards() {
    let limits = Limits { active_max: 1, queued_max: 1 };
    let scheduler = Scheduler::new(1, &[("a".into(), 1), ("b".into(), 1)], limits);
    let [first, second, other] = ["a", "a", "b"].map(|group| scheduler.statement(group));
    // Groups do not wait for each other.
    assert_eq!([&first, &second, &other].map(|statement| statement.enter()), [Ok(true), Ok(false), Ok(true)]);
    assert!(scheduler.statement("a").enter().is_err());
    let mut turn = first.turn();
    let _ = turn.poll_ready(&mut Context::from_waker(Waker::noop()));
    turn.compute(|| {
        let active = || scheduler.report()[0].admission;
        pause(|| assert_eq!(active().queued, 1));
        wait(|| assert_eq!((active().active, active().queued, active().refused), (1, 0, 1)));
    });
    drop(second);
    drop(turn);
    assert_eq!(scheduler.report()[0].admission.active, 0);
}
