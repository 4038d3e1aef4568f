use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn is_granted(permit: &Permit, flag: &Arc<Flag>) -> bool {
    let waker = Waker::from(flag.clone());
    permit.poll_granted(&mut Context::from_waker(&waker)).is_ready()
}

fn report(active: usize, queued: usize, refused: u64) -> Report {
    Report { active, queued, refused }
}

#[test]
fn who_comes_first_runs_first_and_who_is_too_many_is_told_at_once() {
    let limits = Limits { active_max: 2, queued_max: 2 };
    let admission = Admission::new(limits);
    let mut permits: Vec<Permit> = (0..4).map(|_| admission.enter().ok().unwrap()).collect();
    assert_eq!(admission.enter().err(), Some(QueueFull(limits)));
    assert_eq!(admission.report(), report(2, 2, 1));
    let flags: Vec<Arc<Flag>> = (0..4).map(|_| Arc::default()).collect();
    let granted: Vec<bool> = permits.iter().zip(&flags).map(|(permit, flag)| is_granted(permit, flag)).collect();
    assert_eq!(granted, [true, true, false, false]);
    drop(permits.remove(1));
    assert!(flags[2].0.load(Ordering::SeqCst) && permits[1].is_granted() && !permits[2].is_granted());
    assert!(!flags[3].0.load(Ordering::SeqCst));
    assert_eq!(admission.report(), report(2, 1, 1));
    permits.clear();
    assert_eq!(admission.report(), report(0, 0, 1));
}

#[test]
fn who_leaves_the_queue_gives_up_the_place_alone() {
    let admission = Admission::new(Limits { active_max: 1, queued_max: 3 });
    let first = admission.enter().ok().unwrap();
    let mut waiting: Vec<Permit> = (0..3).map(|_| admission.enter().ok().unwrap()).collect();
    drop(waiting.remove(0));
    assert_eq!(admission.report(), report(1, 2, 0));
    drop(first);
    assert!(waiting[0].is_granted() && !waiting[1].is_granted());
    assert_eq!(admission.report(), report(1, 1, 0));
}

#[test]
fn without_a_queue_nobody_waits() {
    let admission = Admission::new(Limits { active_max: 1, queued_max: 0 });
    let only = admission.enter().ok().unwrap();
    assert!(admission.enter().is_err());
    drop(only);
    assert!(admission.enter().is_ok_and(|permit| permit.is_granted()));
}

/// Against a list of who came when: grants in order, never too many, none left over.
#[test]
fn random_arrivals_and_departures_keep_the_order() {
    for seed in 0..50 {
        let mut rng = StdRng::seed_from_u64(seed);
        let limits = Limits { active_max: rng.random_range(1..5), queued_max: rng.random_range(0..6) };
        let admission = Admission::new(limits);
        let (mut active, mut queued, mut refused) = (Vec::new(), VecDeque::new(), 0);
        for _ in 0..400 {
            match rng.random_range(0..4) {
                0 | 1 => match admission.enter() {
                    Err(_) => refused += 1,
                    Ok(permit) if active.len() < limits.active_max => active.push((permit, Arc::default())),
                    Ok(permit) => {
                        let flag = Arc::default();
                        assert!(!is_granted(&permit, &flag), "seed {seed}");
                        queued.push_back((permit, flag));
                    }
                },
                2 if !active.is_empty() => {
                    drop(active.swap_remove(rng.random_range(0..active.len())));
                    if let Some((permit, flag)) = queued.pop_front() {
                        assert!(flag.0.load(Ordering::SeqCst), "seed {seed}: it was not woken");
                        active.push((permit, flag));
                    }
                }
                3 if !queued.is_empty() => drop(queued.remove(rng.random_range(0..queued.len()))),
                _ => {}
            }
            assert_eq!(admission.report(), report(active.len(), queued.len(), refused), "seed {seed}");
            assert!(active.iter().all(|(permit, _)| permit.is_granted()), "seed {seed}");
            assert!(queued.iter().all(|(permit, _)| !permit.is_granted()), "seed {seed}");
        }
    }
}
