//! Which processors threads run on, and what they take of them.

#![allow(unsafe_code)]

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

/// The processors that this process may use, in order: those of the first thread that asks.
pub fn cpus() -> io::Result<&'static [usize]> {
    static CPUS: OnceLock<Vec<usize>> = OnceLock::new();
    if let Some(cpus) = CPUS.get() {
        return Ok(cpus);
    }
    let cpus = own_cpus()?;
    Ok(CPUS.get_or_init(|| cpus))
}

fn own_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Lets the calling thread run wherever the process may: threads begin with what the thread had that started them.
pub fn keep_nowhere() {
    // Where the system does not say which they are, nobody was kept anywhere.
    if let Ok(Err(error)) = cpus().map(keep_to) {
        tracing::debug!("a thread stays where it is: {error}");
    }
}

/// Keeps the calling thread on some processors.
pub fn keep_to(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// How long a thread that serves may run before another one gets its turn.
const SERVING_SLICE: Duration = Duration::from_micros(100);

/// Has the system give the calling thread a processor soon after it was woken, and only for short (EEVDF: a request for
/// less time is due earlier, and needs not wait for the end of another thread's slice). It takes no more than its share
/// by that, and gets no less. Systems before Linux 6.12 do as before.
pub fn serve_promptly() -> io::Result<()> {
    set_slice(SERVING_SLICE)
}

#[cfg(target_os = "linux")]
fn set_slice(slice: Duration) -> io::Result<()> {
    // SAFETY: zeros are a value of this structure of integers.
    let mut wanted: libc::sched_attr = unsafe { std::mem::zeroed() };
    wanted.size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: the kernel writes no more than the size that it is given, into a structure that lives during the call.
    if unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut wanted, wanted.size, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Policy and niceness stay as the user chose them.
    wanted.sched_runtime = slice.as_nanos() as u64;
    // SAFETY: the kernel reads one structure, which lives during the call.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn set_slice(_: Duration) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Time on a processor that the calling thread has taken since it began; zero where the system does not say.
pub fn spent() -> Duration {
    time_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Time that passes, from any beginning; read without a call into the kernel.
pub fn now() -> Duration {
    time_of(libc::CLOCK_MONOTONIC)
}

fn time_of(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills one structure, which lives during the call.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
        _ => Duration::ZERO,
    }
}

/// How long the processors that this process may use have had nothing to do, all together, since the machine started
/// (proc_stat(5): idle and waiting for disks, in units of 10 ms); `None` where the system does not say.
pub fn idle() -> Option<Duration> {
    let cpus = cpus().ok()?;
    idle_of(&std::fs::read_to_string("/proc/stat").ok()?, cpus)
}

fn idle_of(stat: &str, cpus: &[usize]) -> Option<Duration> {
    const TICK: Duration = Duration::from_millis(10);
    let each = stat.lines().filter_map(|line| line.strip_prefix("cpu")?.split_once(' '));
    let mut ticks = None;
    for (cpu, times) in each {
        if cpu.parse().is_ok_and(|cpu| cpus.contains(&cpu)) {
            let idle = times.split_ascii_whitespace().skip(3).take(2).map(|time| time.parse::<u64>());
            *ticks.get_or_insert(0) += idle.sum::<Result<u64, _>>().ok()?;
        }
    }
    Some(TICK.mul_f64(ticks? as f64))
}

/// How often a thread that computes for long is to [`let_in`] others.
pub const LET_IN_EVERY: Duration = Duration::from_micros(100);

/// Lets in who waits for this processor and is due before the calling thread.
///
/// A thread that serves ([`serve_promptly`]) comes before one that computes at once, if it has had no more than its share
/// so far. If it has had some microseconds more when it is woken, because it has just served somebody else, Linux looks again
/// at the next tick, up to 10 ms later; or when it brings the time of the thread that runs up to date, which is what reading
/// it does. If nobody is due before it, the thread goes on.
pub fn let_in() {
    spent();
}

/// The same for who has no time at hand: to be called often, it does something every [`LET_IN_EVERY`].
pub fn give_way() {
    thread_local! {
        static GAVE_WAY: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }
    let now = now();
    if now.saturating_sub(GAVE_WAY.get()) >= LET_IN_EVERY {
        GAVE_WAY.set(now);
        let_in();
    }
}

/// What a thread has taken since it began.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    /// Time on a processor.
    pub spent: Duration,
    /// How often it gave the processor up because it had nothing to do.
    pub rests: u64,
}

/// What the calling thread has taken.
pub fn usage() -> io::Result<Usage> {
    // SAFETY: zeros are a value of this structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills one structure, which lives during the call.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Ok(Usage { spent: time(usage.ru_utime) + time(usage.ru_stime), rests: usage.ru_nvcsw as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_to_its_processors() {
        let all = cpus().unwrap();
        let last = *all.last().unwrap();
        let run = move || {
            keep_to(&[last]).unwrap();
            let kept = own_cpus().unwrap();
            keep_nowhere();
            (kept, own_cpus().unwrap())
        };
        let (kept, free) = std::thread::spawn(run).join().unwrap();
        assert_eq!((kept.as_slice(), free.as_slice()), ([last].as_slice(), all));
        assert_eq!(own_cpus().unwrap(), all);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_that_serves_keeps_its_policy_and_niceness() {
        let attributes = || {
            // SAFETY: zeros are a value of this structure of integers.
            let mut now: libc::sched_attr = unsafe { std::mem::zeroed() };
            let size = size_of::<libc::sched_attr>() as u32;
            // SAFETY: the kernel writes no more than `size` bytes.
            assert_eq!(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut now, size, 0) }, 0);
            (now.sched_policy, now.sched_nice, now.sched_runtime)
        };
        let run = move || {
            let before = attributes();
            serve_promptly().unwrap();
            (before, attributes())
        };
        let (before, after) = std::thread::spawn(run).join().unwrap();
        assert_eq!((before.0, before.1), (after.0, after.1));
        // Systems that know no slices tell none.
        assert!(after.2 == 0 || after.2 == SERVING_SLICE.as_nanos() as u64, "{after:?}");
    }

    #[test]
    fn processors_of_others_do_not_count_as_idle() {
        let stat = "cpu  9 9 9 900 90 9\ncpu0 1 0 1 100 5 0\ncpu1 1 0 1 200 0 0\ncpu10 1 0 1 400 0 0\nintr 7 8\n";
        assert_eq!(idle_of(stat, &[0, 1]), Some(Duration::from_millis(3050)));
        assert_eq!(idle_of(stat, &[10]), Some(Duration::from_secs(4)));
        assert_eq!(idle_of(stat, &[2]), None);
        assert_eq!(idle_of("cpu0 1 2 3", &[0]), Some(Duration::ZERO));
        assert_eq!(idle_of("cpu0 1 2 3 x", &[0]), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_machine_tells_how_long_it_was_idle() {
        let before = idle().unwrap();
        assert!(idle().unwrap() >= before);
    }

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn work_takes_time_and_rest_takes_none() {
        let (rested, worked) = std::thread::spawn(|| {
            let before = usage().unwrap();
            (0..20).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
            let between = usage().unwrap();
            let mut sum = 0u64;
            while usage().unwrap().spent < between.spent + Duration::from_millis(20) {
                sum = (0..10_000).fold(sum, |sum, i| std::hint::black_box(sum ^ i));
            }
            (between.rests - before.rests, usage().unwrap().spent - between.spent)
        })
        .join()
        .unwrap();
        assert!(rested >= 10, "{rested}");
        assert!(worked >= Duration::from_millis(20), "{worked:?}");
    }
}
