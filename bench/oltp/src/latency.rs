//! Latencies in buckets whose width is at most a 32nd of what they hold, so that millions cost a few kilobytes.

/// Buckets per doubling.
const STEPS: u64 = 32;

#[derive(Clone, Default)]
pub struct Latencies {
    counts: Vec<u32>,
    count: u64,
    sum_us: u64,
    max_us: u64,
}

impl Latencies {
    pub fn add(&mut self, us: u64) {
        let bucket = bucket_of(us);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum_us += us;
        self.max_us = self.max_us.max(us);
    }

    pub fn merge(&mut self, other: &Latencies) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
        self.count += other.count;
        self.sum_us += other.sum_us;
        self.max_us = self.max_us.max(other.max_us);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn mean_ms(&self) -> f64 {
        self.sum_us as f64 / self.count.max(1) as f64 / 1000.0
    }

    pub fn max_ms(&self) -> f64 {
        self.max_us as f64 / 1000.0
    }

    /// The upper end of the bucket in which that share of all latencies has been met.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted {
                return (end_of(bucket).min(self.max_us)) as f64 / 1000.0;
            }
        }
        0.0
    }
}

fn bucket_of(us: u64) -> usize {
    if us < STEPS {
        return us as usize;
    }
    let doublings = u64::from(us.ilog2() - STEPS.ilog2());
    (doublings * STEPS + (us >> doublings)) as usize
}

fn end_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * STEPS {
        return bucket;
    }
    let doublings = bucket / STEPS - 1;
    ((bucket - doublings * STEPS + 1) << doublings) - 1
}

#[cfg(test)]
mod tests;
