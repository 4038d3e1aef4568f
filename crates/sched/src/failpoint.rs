//! Named places where a test can have the process die, as `kill -9` would, at exactly that step.
//!
//! Armed once at start (the binary takes `BASALT_FAILPOINT=name[:hit]` from its environment); unarmed, a
//! place costs two relaxed loads. Names in use are listed where they are hit; `docs/testing.md` has the list.
//! A test inside a process may instead have its own thread panic there, or do something in between.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

struct Armed {
    name: String,
    /// Hits still to let pass.
    left: AtomicU64,
}

static ARMED: OnceLock<Armed> = OnceLock::new();
static WEAKENED: OnceLock<String> = OnceLock::new();
/// Some thread has armed a call.
static CALLS: AtomicBool = AtomicBool::new(false);

/// A place, and what is done there.
type Call = (&'static str, Box<dyn FnOnce()>);

thread_local! {
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

/// Has this thread panic, once, at its next hit of a place.
pub fn panic_at(name: &'static str) {
    call_at(name, move || panic!("failpoint {name}"));
}

/// Has this thread do something, once, at its next hit of a place: what others may do just then.
pub fn call_at(name: &'static str, what: impl FnOnce() + 'static) {
    CALL.set(Some((name, Box::new(what))));
    CALLS.store(true, Ordering::Relaxed);
}

/// Arms one place: `name` dies at its first hit, `name:5` at its fifth. False if one is armed already or
/// the count cannot be read.
pub fn arm(spec: &str) -> bool {
    let (name, hits) = match spec.split_once(':') {
        None => (spec, 1),
        Some((name, hits)) => match hits.parse::<u64>() {
            Ok(hits) if hits > 0 => (name, hits),
            _ => return false,
        },
    };
    ARMED.set(Armed { name: name.to_string(), left: AtomicU64::new(hits) }).is_ok()
}

/// What [`weaken`] can leave out.
pub const CHECKS: [&str; 9] = [
    "snapshot",
    "statement-snapshot",
    "first-updater",
    "re-check",
    "validation",
    "validation-keys",
    "validation-ranges",
    "validation-scans",
    "validation-batches",
];

/// Leaves a check out, so that a test can show that it would notice (a control). Once, at start (the binary takes
/// `BASALT_WEAKEN=check` from its environment). False if there is no such check.
pub fn weaken(check: &str) -> bool {
    CHECKS.contains(&check) && WEAKENED.set(check.to_string()).is_ok()
}

/// Whether a check is left out.
pub fn is_weakened(check: &str) -> bool {
    WEAKENED.get().is_some_and(|weakened| weakened == check)
}

/// Dies here if this place is armed and its turn has come: no destructor runs, nothing is flushed. Does what this thread
/// was to do here ([`call_at`]).
pub fn hit(name: &str) {
    if let Some(armed) = ARMED.get()
        && armed.name == name
        && armed.left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        std::process::abort();
    }
    if CALLS.load(Ordering::Relaxed)
        && let Some((_, what)) = CALL.with_borrow_mut(|armed| armed.take_if(|(at, _)| *at == name))
    {
        what();
    }
}
