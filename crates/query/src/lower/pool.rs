//! What running queries may hold together. Whoever can write to disk instead gets an equal part, as in DataFusion's own
//! `FairSpillPool`; but not all of it where others are about that cannot: a sort that holds everything would leave
//! nothing to those who merge what it has sorted, and the query would fail with its rows already in order.

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is left to those that cannot spill is one part in so many.
const LEFT: usize = 2;

#[derive(Debug)]
pub(super) struct Pool {
    bytes_max: usize,
    taken: Mutex<Taken>,
}

#[derive(Default, Debug)]
struct Taken {
    spillers: usize,
    others: usize,
    /// By either.
    spillable: usize,
    unspillable: usize,
}

impl Pool {
    pub fn new(bytes_max: usize) -> Pool {
        Pool { bytes_max, taken: Mutex::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// How many bytes of its own a consumer may have, beyond those that it has.
    fn room(&self, bytes_max: usize, reservation: &MemoryReservation) -> usize {
        if !reservation.consumer().can_spill() {
            return bytes_max.saturating_sub(self.unspillable + self.spillable);
        }
        let left = if self.others > 0 { bytes_max / LEFT } else { 0 };
        let all = bytes_max.saturating_sub(self.unspillable.max(left));
        (all / self.spillers.max(1)).saturating_sub(reservation.size())
    }

    fn of(&mut self, consumer: &MemoryConsumer) -> (&mut usize, &mut usize) {
        match consumer.can_spill() {
            true => (&mut self.spillers, &mut self.spillable),
            false => (&mut self.others, &mut self.unspillable),
        }
    }
}

impl MemoryPool for Pool {
    fn name(&self) -> &str {
        "query memory"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        *self.taken().of(consumer).0 += 1;
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        *self.taken().of(consumer).0 -= 1;
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.taken().of(reservation.consumer()).1 += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        *self.taken().of(reservation.consumer()).1 -= shrink;
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut taken = self.taken();
        let room = taken.room(self.bytes_max, reservation);
        if room < additional {
            let [wanted, held, room, all] =
                [additional, reservation.size(), room, self.bytes_max].map(human_readable_size);
            let who = reservation.consumer().name();
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{who} holds {held} and needs {wanted} more, of which {room} are left of basalt.query_memory_limit ({all})"
            )));
        }
        *taken.of(reservation.consumer()).1 += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        let taken = self.taken();
        taken.spillable + taken.unspillable
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes_max)
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} of {}", self.name(), human_readable_size(self.bytes_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn something_is_left_to_those_that_cannot_spill() {
        let pool: Arc<dyn MemoryPool> = Arc::new(Pool::new(1000));
        let spiller = |name: &str| MemoryConsumer::new(name).with_can_spill(true).register(&pool);
        let one = spiller("one");
        one.try_grow(1000).unwrap();
        one.shrink(1000);
        let other = spiller("other");
        assert!(one.try_grow(501).is_err() && one.try_grow(500).is_ok() && other.try_grow(500).is_ok());
        other.shrink(500);
        one.shrink(500);
        let merge = MemoryConsumer::new("merge").register(&pool);
        assert!(one.try_grow(251).is_err() && one.try_grow(250).is_ok() && other.try_grow(250).is_ok());
        let error = merge.try_grow(501).unwrap_err().to_string();
        assert!(error.contains("merge holds 0.0 B and needs 501.0 B more, of which 500.0 B are left"), "{error}");
        merge.try_grow(500).unwrap();
        assert_eq!(pool.reserved(), 1000);
        drop((other, merge));
        assert_eq!(pool.reserved(), 250);
        assert!(one.try_grow(750).is_ok());
    }
}
