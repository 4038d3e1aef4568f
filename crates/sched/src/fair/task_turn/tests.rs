use super::*;
use crate::fair::Scheduler;
use crate::fair::tests::{Flag, UNLIMITED};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

const STEP: Duration = Duration::from_millis(1);

impl Flag {
    fn is_woken(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

fn scheduler(slots: usize) -> Arc<Scheduler> {
    Scheduler::new(slots, &[("small".into(), 20), ("large".into(), 80)], UNLIMITED)
}

fn free(scheduler: &Scheduler) -> usize {
    scheduler.state.lock().free
}

/// One slot, the turn of a task, and whether the task was woken.
fn one() -> (Arc<Scheduler>, TaskTurn, Arc<Flag>) {
    let scheduler = scheduler(1);
    let turn = TaskTurn::new(&scheduler.statement("large"));
    (scheduler, turn, Arc::default())
}

/// What an executor polls in the simulation: it computes for a step, and has more to do.
trait Task {
    fn of(statement: &Arc<Statement>) -> Self;
    /// Whether it holds a slot now.
    fn begin(&mut self, cx: &mut Context<'_>) -> bool;
    fn end(&mut self, task: &Waker);
}

/// Stands in line when it is polled.
struct WhenPolled(Turn);

impl Task for WhenPolled {
    fn of(statement: &Arc<Statement>) -> WhenPolled {
        WhenPolled(statement.turn())
    }

    fn begin(&mut self, cx: &mut Context<'_>) -> bool {
        self.0.poll_ready(cx).is_ready()
    }

    fn end(&mut self, task: &Waker) {
        self.0.spent(STEP);
        self.0.rest();
        task.wake_by_ref();
    }
}

/// Stands in line when it is woken.
struct WhenWoken(TaskTurn, Option<Turn>);

impl Task for WhenWoken {
    fn of(statement: &Arc<Statement>) -> WhenWoken {
        WhenWoken(TaskTurn::new(statement), None)
    }

    fn begin(&mut self, cx: &mut Context<'_>) -> bool {
        let Poll::Ready(turn) = self.0.place.begin(cx) else { return false };
        self.1 = Some(turn);
        true
    }

    fn end(&mut self, task: &Waker) {
        let mut turn = self.1.take().expect("it has begun");
        // It yields.
        self.0.waker.wake_by_ref();
        turn.spent(STEP);
        self.0.place.end(turn, true, task);
    }
}

/// The part of the small group's time on an executor that has a queue, as many threads as slots, and no idea of shares.
fn part<T: Task>(threads: usize, tasks: usize) -> f64 {
    let scheduler = scheduler(threads);
    let task = |at: usize| (T::of(&scheduler.statement(["small", "large"][at % 2])), Arc::<Flag>::default());
    let mut tasks: Vec<(T, Arc<Flag>)> = (0..tasks).map(task).collect();
    let mut queue: VecDeque<usize> = (0..tasks.len()).collect();
    let (mut parked, mut had) = (Vec::new(), [0u32; 2]);
    for _ in 0..20_000 {
        let running: Vec<usize> = (0..threads).filter_map(|_| queue.pop_front()).collect();
        assert!(!running.is_empty(), "somebody is to be polled");
        let mut computing = Vec::new();
        for at in running {
            let (task, flag) = &mut tasks[at];
            flag.is_woken();
            if task.begin(&mut Context::from_waker(&Waker::from(flag.clone()))) {
                computing.push(at);
            }
            parked.push(at);
        }
        for at in computing {
            let (task, flag) = &mut tasks[at];
            task.end(&Waker::from(flag.clone()));
            had[at % 2] += 1;
        }
        let (woken, still): (Vec<usize>, Vec<usize>) = parked.into_iter().partition(|at| tasks[*at].1.is_woken());
        queue.extend(woken);
        parked = still;
    }
    f64::from(had[0]) / f64::from(had[0] + had[1])
}

#[test]
fn groups_get_their_shares_of_an_executor_that_knows_none() {
    for (threads, tasks) in [(1, 2), (1, 4), (2, 4), (2, 8), (2, 16), (4, 16)] {
        let got = part::<WhenWoken>(threads, tasks);
        assert!((got - 0.2).abs() < 0.03, "{threads} threads, {tasks} tasks: {got}");
        let control = part::<WhenPolled>(threads, tasks);
        assert!(control > 0.4, "{threads} threads, {tasks} tasks: {control}");
    }
}

#[test]
fn a_task_is_told_when_it_has_a_slot_and_not_before() {
    let (scheduler, mut turn, flag) = one();
    let task = Waker::from(flag.clone());
    let mut heard = None;
    let mut poll = |turn: &mut TaskTurn| {
        let work = |cx: &mut Context<'_>| {
            heard = Some(cx.waker().clone());
            Poll::<()>::Pending
        };
        (turn.poll(&mut Context::from_waker(&task), work), heard.take())
    };
    let waker = poll(&mut turn).1.expect("a slot was free");
    assert_eq!(free(&scheduler), 1);
    let mut other = scheduler.statement("small").turn();
    assert!(other.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready());
    waker.wake_by_ref();
    waker.wake_by_ref();
    assert!(!flag.is_woken() && scheduler.is_waited_for());
    // Polled by its task all the same, it waits.
    assert!(poll(&mut turn).1.is_none());
    other.rest();
    assert!(flag.is_woken() && free(&scheduler) == 0 && !scheduler.is_waited_for());
    // Once.
    waker.wake();
    assert!(!flag.is_woken());
    assert!(poll(&mut turn).1.is_some());
    assert_eq!(free(&scheduler), 1);
}

#[test]
fn wakers_of_what_has_an_answer_or_is_gone_take_no_slot() {
    let (scheduler, mut turn, flag) = one();
    let task = Waker::from(flag.clone());
    let mut cx = Context::from_waker(&task);
    let mut kept = None;
    let ready = |cx: &mut Context<'_>| {
        cx.waker().wake_by_ref();
        kept = Some(cx.waker().clone());
        Poll::Ready(())
    };
    assert!(turn.poll(&mut cx, ready).is_ready());
    let kept = kept.expect("it was polled");
    kept.wake_by_ref();
    assert!(free(&scheduler) == 1 && !flag.is_woken());
    // Within other work it has no slot of its own, nor does it wait for one any more.
    assert!(turn.poll(&mut cx, |_| Poll::<()>::Pending).is_pending());
    let mut outer = scheduler.statement("small").turn();
    assert!(outer.poll_ready(&mut cx).is_ready());
    kept.wake_by_ref();
    assert!(scheduler.is_waited_for());
    outer.compute(|| assert!(turn.poll(&mut cx, |_| Poll::Ready(())).is_ready()));
    assert!(!scheduler.is_waited_for());
    outer.rest();
    assert!(turn.poll(&mut cx, |_| Poll::<()>::Pending).is_pending());
    // The slot that it was given when it was woken goes with it.
    kept.wake_by_ref();
    assert!(free(&scheduler) == 0 && flag.is_woken());
    drop(turn);
    kept.wake();
    assert!(free(&scheduler) == 1 && !flag.is_woken());
}

#[test]
fn what_was_woken_while_it_was_polled_stands_in_line_at_once() {
    let (scheduler, mut turn, flag) = one();
    let task = Waker::from(flag.clone());
    let yields = |cx: &mut Context<'_>| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    };
    assert!(turn.poll(&mut Context::from_waker(&task), yields).is_pending());
    // Nobody else waits: it has its slot back, and its task knows.
    assert!(flag.is_woken() && free(&scheduler) == 0);
    // A panic gives it back.
    let panics = |_: &mut Context<'_>| -> Poll<()> { panic!("on purpose") };
    let polled = std::panic::AssertUnwindSafe(|| turn.poll(&mut Context::from_waker(&task), panics));
    assert!(std::panic::catch_unwind(polled).is_err());
    assert!(free(&scheduler) == 1 && !is_computing());
}

#[test]
fn tasks_that_wait_for_each_other_leave_all_slots_free() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let scheduler = scheduler(3);
    let ended = runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for pair in 0..60u64 {
            let statement = scheduler.statement(["small", "large"][pair as usize % 2]);
            let (sender, mut receiver) = tokio::sync::mpsc::channel::<u64>(1 + pair as usize % 3);
            let mut in_turns = |mut work: std::pin::Pin<Box<dyn Future<Output = u64> + Send>>| {
                let mut turn = TaskTurn::new(&statement);
                tasks.spawn(std::future::poll_fn(move |cx| turn.poll(cx, |cx| work.as_mut().poll(cx))))
            };
            let sends = in_turns(Box::pin(async move {
                for number in 0..500 {
                    if number % 7 == 0 {
                        tokio::task::yield_now().await;
                    }
                    if sender.send(number).await.is_err() {
                        break;
                    }
                }
                0
            }));
            in_turns(Box::pin(async move {
                let mut sum = 0;
                while let Some(number) = receiver.recv().await {
                    sum += number;
                }
                sum
            }));
            if pair % 5 == 4 {
                sends.abort();
            }
        }
        let mut sums = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            sums.extend(ended.ok().filter(|sum| *sum == 500 * 499 / 2));
        }
        sums.len()
    });
    assert!(ended >= 48, "{ended}");
    let state = scheduler.state.lock();
    assert_eq!((state.free, state.statements.len(), state.ready.len(), state.active.len()), (3, 0, 0, 0));
    assert!(!scheduler.is_waited_for());
}
