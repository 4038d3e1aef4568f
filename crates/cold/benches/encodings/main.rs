//! How fast segments give back what they hold: every encoding decoded from the block cache, columns of packed integers,
//! of decimals and of plain floats summed on all threads beside what memory can deliver, and single rows of a wide table
//! by their ordinals; and how long that table takes to be written.
//!
//! The bars are for a release build: the sum of packed integers takes in decoded bytes at least half of the memory's read
//! bandwidth as measured in the same run, and a row of 16 columns less than 5 µs. Times are the best of many short rounds,
//! since others may share the machine. A table goes to standard error, JSON to standard output.
//!
//! `cargo bench -p basalt -p basalt-cold --bench encodings`, or `bench/run.sh encodings`
#![allow(clippy::disallowed_methods)]

mod fixture;
mod shapes;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use basalt_cold::{PAGE_ROWS, Segment};
use basalt_types::vector::{IntValues, Ints, Vector};
use basalt_types::{ColumnId, widest};
use fixture::Fixture;
use shapes::{Shape, lineitem};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long one figure is looked for.
const MEASURED: Duration = Duration::from_millis(700);
/// Far more than any processor's cache, read in pieces, of which each has left the cache when its turn comes again.
const BANDWIDTH_BYTES: usize = 512 << 20;
const PIECES: usize = 128;
const LOOKUPS_PER_ROUND: u64 = 1000;
/// Of the memory's read bandwidth.
const SUM_PART_MIN: f64 = 0.5;
/// A row of 16 columns, by its ordinal.
const ROW_MICROS_MAX: f64 = 5.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // What is asked for, by parts of names.
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_asked = |name: &str| asked.is_empty() || asked.iter().any(|part| name.contains(part.as_str()));
    let fixture = Fixture::new()?;
    let bandwidths = [bandwidth(1), bandwidth(2)];
    eprintln!("{:20} {:8.1} GB/s on one thread {:8.1} on two", "memory read", bandwidths[0], bandwidths[1]);
    let mut json = format!("{{\"memory_gb_s\": {}", pair(bandwidths));
    for shape in shapes::all().into_iter().filter(|shape| is_asked(&shape.name)) {
        let segment = fixture.segment(&shape.column(), shape.chunks(), shape.is_compressed())?;
        let bits = segment.column_bytes(ColumnId(1))? as f64 * 8.0 / f64::from(segment.rows());
        let speeds = [1, 2].map(|threads| decode_speed(&segment, &shape, threads));
        eprintln!("{:20} {:8.1} GB/s {:22.1}        {bits:7.2} bits/value", shape.name, speeds[0], speeds[1]);
        json += &format!(", \"{}\": {}", shape.name, pair(speeds));
    }
    let mut missed = false;
    if is_asked("sum of packed int4") {
        let summed = sum_speed(&fixture, &Shape::large("packed in 12"))?;
        let part = summed / bandwidths[1];
        eprintln!(
            "sum of packed int4   {summed:8.1} GB/s on two threads: {part:.2} of the memory's (bar {SUM_PART_MIN})"
        );
        json += &format!(", \"sum_of_packed_int4_gb_s\": {summed:.1}");
        missed |= part < SUM_PART_MIN;
    }
    for (of, name) in [("float8 of cents", "sum_of_decimals_gb_s"), ("float8, any bits", "sum_of_plain_float8_gb_s")] {
        if is_asked(&format!("sum of {of}")) {
            let summed = sum_speed(&fixture, &Shape::large(of))?;
            eprintln!("{:24} {summed:4.1} GB/s on two threads", format!("sum of {of}"));
            json += &format!(", \"{name}\": {summed:.1}");
        }
    }
    if is_asked("row by ordinal") {
        let micros = row_micros(&fixture)?;
        eprintln!("row by ordinal       {micros:8.2} µs for 16 columns (bar {ROW_MICROS_MAX})");
        json += &format!(", \"row_by_ordinal_us\": {micros:.2}");
        missed |= micros > ROW_MICROS_MAX;
    }
    if is_asked("write of lineitem") {
        let nanos = write_nanos(&fixture)?;
        eprintln!("write of lineitem    {nanos:8.0} ns for a row of 16 columns");
        json += &format!(", \"write_of_lineitem_ns_per_row\": {nanos:.0}");
    }
    println!("{json}}}");
    if missed && !cfg!(debug_assertions) { Err("a bar was missed".into()) } else { Ok(()) }
}

fn pair([one, two]: [f64; 2]) -> String {
    format!("[{one:.1}, {two:.1}]")
}

/// The least seconds in which so many threads are done with a round of work, which is given its number and the thread's.
/// Threads are started once: to start one would take longer than some rounds.
fn least_seconds(threads: usize, work: impl Fn(usize, usize) + Sync) -> f64 {
    const OVER: usize = usize::MAX;
    let (begun, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let follow = |thread: usize| {
        let mut last = 0;
        loop {
            match begun.load(SeqCst) {
                OVER => break,
                round if round == last => std::thread::yield_now(),
                round => {
                    work(round, thread);
                    last = round;
                    done.fetch_add(1, SeqCst);
                }
            }
        }
    };
    let (started, mut least) = (Instant::now(), f64::INFINITY);
    std::thread::scope(|scope| {
        let follow = &follow;
        (1..threads).for_each(|thread| drop(scope.spawn(move || follow(thread))));
        for round in 1.. {
            let start = Instant::now();
            begun.store(round, SeqCst);
            work(round, 0);
            while done.load(SeqCst) < round * (threads - 1) {
                std::thread::yield_now();
            }
            least = start.elapsed().as_secs_f64().min(least);
            if started.elapsed() >= MEASURED {
                break;
            }
        }
        begun.store(OVER, SeqCst);
    });
    least
}

fn gb_s(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / seconds / 1e9
}

fn bandwidth(threads: usize) -> f64 {
    let words = vec![1u64; BANDWIDTH_BYTES / size_of::<u64>()];
    let pieces: Vec<&[u64]> = words.chunks(words.len() / PIECES).collect();
    let seconds = least_seconds(threads, |round, thread| {
        let piece = pieces[round % PIECES];
        let part = piece.len() / threads;
        black_box(total_words(&piece[thread * part..][..part]));
    });
    gb_s((BANDWIDTH_BYTES / PIECES) as u64, seconds)
}

widest! {
    fn total_words(words: &[u64]) -> u64 {
        words.iter().copied().fold(0, u64::wrapping_add)
    }
}

widest! {
    fn total_ints(values: &[i32]) -> i64 {
        values.iter().map(|value| i64::from(*value)).fold(0, i64::wrapping_add)
    }
}

/// The pages of a row group.
fn each_page(segment: &Segment, row_group: usize, mut sink: impl FnMut(Vector)) {
    let all = 0..segment.row_groups()[row_group].rows;
    let pages = all.end.div_ceil(PAGE_ROWS) as usize;
    let mut chunk = segment.chunk(row_group, ColumnId(1), &[all]).expect("directory").expect("the column");
    for page in 0..pages {
        sink(chunk.vector(segment, page, None).expect("page"));
    }
}

fn decode_speed(segment: &Segment, shape: &Shape, threads: usize) -> f64 {
    let seconds = least_seconds(threads, |_, thread| {
        for row_group in (thread..segment.row_groups().len()).step_by(threads) {
            each_page(segment, row_group, |vector| {
                black_box(vector);
            });
        }
    });
    gb_s(shape.decoded_bytes(), seconds)
}

widest! {
    fn total_doubles(values: &[f64]) -> f64 {
        let (rows, rest) = values.as_chunks::<32>();
        let mut totals = [0.0; 32];
        for row in rows {
            for (total, value) in totals.iter_mut().zip(row) {
                *total += value;
            }
        }
        totals.iter().chain(rest).sum()
    }
}

/// Of a column that is larger than the processor's caches, part by part.
fn sum_speed(fixture: &Fixture, shape: &Shape) -> Result<f64, Box<dyn std::error::Error>> {
    let segment = fixture.segment(&shape.column(), shape.chunks(), shape.is_compressed())?;
    let sum = |row_group| {
        each_page(&segment, row_group, |vector| match vector {
            Vector::Ints(Ints { values: IntValues::I32(values), .. }) => _ = black_box(total_ints(&values)),
            Vector::Flat(values) => _ = black_box(total_doubles(values.as_primitive::<Float64Type>().values())),
            _ => unreachable!("int4 or float8"),
        });
    };
    (0..segment.row_groups().len()).for_each(sum);
    let part = segment.row_groups().len() / PIECES;
    let seconds = least_seconds(2, |round, thread| {
        let first = round % PIECES * part;
        (first + thread..first + part).step_by(2).for_each(sum);
    });
    Ok(gb_s(shape.decoded_bytes() / PIECES as u64, seconds))
}

/// On one thread, synced to disk.
fn write_nanos(fixture: &Fixture) -> Result<f64, Box<dyn std::error::Error>> {
    let (columns, chunks) = lineitem();
    let chunks: Vec<_> = chunks.take(8).collect();
    let mut least = f64::INFINITY;
    for _ in 0..6 {
        let start = Instant::now();
        let rows = fixture.segment(&columns, chunks.iter().cloned(), false)?.rows();
        least = least.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(rows));
    }
    Ok(least)
}

fn row_micros(fixture: &Fixture) -> Result<f64, Box<dyn std::error::Error>> {
    let (columns, chunks) = lineitem();
    let segment = fixture.segment(&columns, chunks, false)?;
    let ids: Vec<ColumnId> = columns.iter().map(|column| column.id).collect();
    let read = |lookup: u64| {
        let ordinal = shapes::scatter(lookup) % u64::from(segment.rows());
        black_box(segment.row_at(ordinal as u32, &ids).expect("row"));
    };
    // Rows of every page, so that all are in the cache.
    (0..200 * LOOKUPS_PER_ROUND).for_each(read);
    let seconds = least_seconds(1, |round, _| {
        let first = round as u64 * LOOKUPS_PER_ROUND;
        (first..first + LOOKUPS_PER_ROUND).for_each(read);
    });
    Ok(seconds * 1e6 / LOOKUPS_PER_ROUND as f64)
}
