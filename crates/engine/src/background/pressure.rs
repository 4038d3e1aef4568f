//! Memory pressure: which rows leave hot, and as what (DESIGN 5, Hot; `docs/decisions/0004-eviction.md`).
//!
//! Freeze follows temperature, not pressure. When hot rows take more than their share, most of what was
//! written since the last relief leaves: as a segment if it has cooled, as a row file if it is warm. The
//! youngest rows, which are the likeliest to change again, stay. Commit versions tell young from old: a
//! quarter of the versions since the tablet's last relief is what stays. If that does not free enough, the next
//! round takes three quarters of the rest, and so on.

use super::Background;
use crate::tablet::Tablet;
use crate::{Engine, Result};
use basalt_types::Version;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Hot rows may take this part of the memory limit before they leave.
const PRESSURE: f64 = 0.30;
/// Above this part writers wait until enough has left.
const THROTTLE: f64 = 0.45;
/// What only older readers need does not count there; writers wait for those only when, with caches and
/// locators, this part is in use.
const THROTTLE_KEPT: f64 = 0.95;

/// Rows of a tablet stamped up to this version leave.
fn leaving(tablet: &Tablet, published: Version) -> Version {
    let from = tablet.relieved_upto.load(Ordering::Relaxed).min(published.0);
    Version(from + (published.0 - from) * 3 / 4)
}

/// Bytes of hot rows above which writers wait: without and with what only older readers need.
pub(super) fn throttle_bytes(engine: &Engine) -> (u64, u64) {
    let part = |part: f64| (engine.config.memory_bytes_max as f64 * part) as u64;
    let caches = crate::recovery::cache_bytes(&engine.config) + engine.config.row_cache_bytes();
    let elsewhere = caches + engine.locators.bytes_max() + engine.mirrors.bytes_max();
    (part(THROTTLE), part(THROTTLE_KEPT).saturating_sub(elsewhere).max(part(THROTTLE)))
}

/// Bytes of hot rows above which rows leave.
fn pressure_bytes(engine: &Engine) -> u64 {
    (engine.config.memory_bytes_max as f64 * PRESSURE) as u64
}

impl Engine {
    /// Whether this tablet's rows should leave for want of memory. Not where it would free little: tablets
    /// far below the average, and those whose rows have left already and stay for older readers alone.
    pub(super) fn is_pressed(&self, tablet: &Tablet, hot_bytes: u64, tablets: usize) -> bool {
        let pressed = hot_bytes > pressure_bytes(self);
        let large = tablet.hot.bytes() as u64 * 4 * tablets as u64 >= hot_bytes;
        pressed && large && tablet.hot.rows() * 4 > tablet.hot.keys()
    }

    /// Frees hot memory of a tablet.
    pub(super) fn relieve(self: &Arc<Self>, tablet: &Arc<Tablet>, cool: Version) -> Result<()> {
        let background = &self.background;
        let published = self.published();
        let relieved = |upto: Version| tablet.relieved_upto.fetch_max(upto.0, Ordering::Relaxed);
        let mut upto = leaving(tablet, published);
        if cool >= upto {
            let frozen = self.freeze(tablet, cool)?;
            background.count_frozen(frozen);
            relieved(cool);
            if frozen > 0 {
                return Ok(());
            }
        }
        loop {
            let evicted = self.evict(tablet, upto)?;
            relieved(upto);
            background.count_evicted(evicted);
            if evicted > 0 || upto == published {
                return Ok(());
            }
            // What was written since has left by itself up to there.
            upto = match leaving(tablet, published) {
                further if further > upto => further,
                _ => published,
            };
        }
    }
}

impl Background {
    /// A writer has put so many bytes into hot: counted until the mover measures again, so that neither it
    /// nor those who must wait learn of the pressure a round too late.
    pub(crate) fn note_written(&self, engine: &Engine, bytes: usize) {
        let before = self.hot_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let limit = pressure_bytes(engine);
        if before <= limit && before + bytes as u64 > limit {
            self.wakes.notify_all();
        }
    }

    /// Whether hot rows take half of what makes them leave.
    pub(crate) fn is_half_pressed(&self, engine: &Engine) -> bool {
        self.hot_bytes.load(Ordering::Relaxed) > pressure_bytes(engine) / 2
    }

    /// How much memory there is for rows that need not leave: 1 up to half of what makes rows leave, and from there less,
    /// to 0 at three quarters.
    pub(super) fn room(&self, engine: &Engine) -> f64 {
        let part = self.hot_bytes.load(Ordering::Relaxed) as f64 / pressure_bytes(engine).max(1) as f64;
        ((0.75 - part) / 0.25).clamp(0.0, 1.0)
    }

    fn count_evicted(&self, rows: u64) {
        self.counters.evicted_rows.fetch_add(rows, Ordering::Relaxed);
    }

    pub(super) fn count_frozen(&self, rows: u64) {
        self.counters.frozen_rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Rows that have left hot since the start.
    pub(super) fn moved_rows(&self) -> u64 {
        self.counters.frozen_rows.load(Ordering::Relaxed) + self.counters.evicted_rows.load(Ordering::Relaxed)
    }
}
