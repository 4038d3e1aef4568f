use crate::directory::live_files;
use crate::fault_fs::*;
use crate::format::PAGE_BYTES;
use crate::{Error, Flaw};
use basalt_types::Lsn;
use std::path::Path;
use std::sync::Arc;

const PAGE: usize = PAGE_BYTES as usize;

/// Three commits of one page each, then one of three pages with five records.
fn four_commits() -> (Arc<FaultFs>, Vec<Vec<u8>>, usize) {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    let mut written = Vec::new();
    for i in 0..3u8 {
        written.push(vec![i + 1; 50]);
        commit(&log, &written[usize::from(i)]);
    }
    let last_block = PAGE + log.durable().0 as usize;
    let mut end = Lsn(0);
    for i in 0..5u8 {
        written.push(vec![i + 100; 2000]);
        end = log.append(&[&written[3 + usize::from(i)]]).unwrap().end;
    }
    log.wait_durable_blocking(end).unwrap();
    log.close().unwrap();
    (fs.after_power_cut(), written, last_block)
}

#[test]
fn tail_torn_at_any_byte_ends_the_log_before_the_block() {
    let (fs, written, last_block) = four_commits();
    let bytes = fs.bytes(&path_of(1));
    let content_end = last_block + 40 + 5 * 2008;
    for cut in (last_block..content_end).chain([content_end]) {
        let torn = fs.snapshot();
        let mut damaged = bytes.clone();
        damaged[cut..].fill(0);
        torn.put(&path_of(1), damaged);
        let whole = cut == content_end;
        let (records, end) = read(&torn);
        assert_eq!(records.len(), if whole { 8 } else { 3 }, "cut at {cut}");
        assert_eq!(end.end.0 as usize, if whole { last_block + 3 * PAGE } else { last_block } - PAGE);
        if cut % 97 == 0 || whole {
            let log = open_log(&torn, 2, end.end);
            commit(&log, b"after");
            drop(log);
            let mut expected = written[..records.len()].to_vec();
            expected.push(b"after".to_vec());
            assert_eq!(payloads(&torn.after_power_cut()), expected, "cut at {cut}");
        }
    }
}

#[test]
fn any_bit_flipped_below_the_durable_lsn_is_corruption_with_its_place() {
    let (fs, _, last_block) = four_commits();
    let bytes = fs.bytes(&path_of(1));
    for block in (PAGE..last_block).step_by(PAGE) {
        for at in block..block + 40 + 8 + 50 {
            let damaged_fs = fs.snapshot();
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            damaged_fs.put(&path_of(1), damaged);
            match try_read(&damaged_fs, Lsn(0)) {
                Err(Error::Corrupt { path, offset, .. }) => {
                    assert_eq!((path, offset as usize), (path_of(1), block), "byte {at}");
                }
                other => panic!("byte {at}: {other:?}"),
            }
        }
    }
}

#[test]
fn sound_blocks_behind_a_torn_one_never_come_back() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    let first = commit(&log, b"kept");
    drop(log);
    // Two blocks of one flush at the file's end: the first is lost, the second arrives.
    let log = open_log(&fs, 2, read(&fs).1.end);
    let filler = vec![1; 60_000];
    let lost = log.append(&[&filler]).unwrap();
    let arrived = log.append(&[b"never acknowledged"]).unwrap();
    log.wait_durable_blocking(arrived.end).unwrap();
    drop(log);
    assert_eq!(payloads(&fs).len(), 3);

    let mut bytes = fs.bytes(&path_of(2));
    bytes[PAGE + 5000] ^= 1;
    fs.put(&path_of(2), bytes);
    let (records, end) = read(&fs);
    assert_eq!(records.len(), 1);
    assert!(end.torn_bytes > 60_000 && end.end < lost.start && end.end > first.end, "{end:?}");

    for epoch in 3..6 {
        let log = open_log(&fs, epoch, read(&fs).1.end);
        let mut same_length = filler.clone();
        same_length[0] = epoch as u8;
        commit(&log, &same_length);
        drop(log);
        let seen = payloads(&fs);
        assert_eq!(seen.len(), epoch as usize - 1);
        assert!(seen.iter().all(|payload| payload != b"never acknowledged"));
    }
}

#[test]
fn record_cut_by_a_crash_is_dropped_and_the_log_goes_on() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    commit(&log, b"first");
    let long = log.append(&[&vec![9; 150_000]]).unwrap();
    log.wait_durable_blocking(long.end).unwrap();
    drop(log);
    // The second file of the record is lost: its first was durable on its own.
    let mut bytes = fs.bytes(&path_of(3));
    bytes[PAGE..].fill(0);
    fs.put(&path_of(3), bytes);
    let (records, end) = read(&fs);
    assert_eq!(records.len(), 1);
    assert!(end.torn_bytes > 100_000);
    let log = open_log(&fs, 2, end.end);
    commit(&log, b"second");
    drop(log);
    assert_eq!(payloads(&fs), [b"first".to_vec(), b"second".to_vec()]);
}

#[test]
fn missing_files_are_noticed() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    for _ in 0..20 {
        commit(&log, &[5; 20_000]);
    }
    let end = log.end();
    drop(log);
    let without = |sequence: u64| {
        let copy = fs.snapshot();
        copy.os().fs.remove(&path_of(sequence)).unwrap();
        copy
    };
    assert!(matches!(try_read(&without(1), Lsn(0)), Err(Error::Missing { .. })));
    let error = try_read(&without(3), Lsn(0)).unwrap_err();
    assert!(matches!(&error, Error::BrokenChain { path, .. } if *path == path_of(4)), "{error}");
    assert!(matches!(try_read(&fs, end), Ok((records, _)) if records.is_empty()));
    assert!(matches!(try_read(&fs, Lsn(end.0 + 1)), Err(Error::EndsEarly { .. })));
    assert!(matches!(try_read(&FaultFs::new(), end), Err(Error::EndsEarly { .. })));
}

#[test]
fn lost_middle_of_the_log_is_never_taken_for_its_tail() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    for _ in 0..10 {
        commit(&log, &[5; 20_000]);
    }
    drop(log);
    let mut bytes = fs.bytes(&path_of(2));
    bytes[PAGE..].fill(0);
    fs.put(&path_of(2), bytes);
    let error = try_read(&fs, Lsn(0)).unwrap_err();
    assert!(matches!(error, Error::Corrupt { flaw: Flaw::BlockMagic { found: 0 }, .. }), "{error}");
}

#[test]
fn replay_starts_at_any_record_and_skips_what_began_before() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    for i in 0..40u8 {
        commit(&log, &vec![i; usize::from(i) * 700]);
    }
    drop(log);
    let (all, _) = read(&fs);
    assert!(live_files(&fs.os(), Path::new(DIR)).unwrap().len() > 5);
    for (i, (lsn, _)) in all.iter().enumerate() {
        assert_eq!(try_read(&fs, *lsn).unwrap().0, all[i..]);
        assert_eq!(try_read(&fs, Lsn(lsn.0 + 1)).unwrap().0, all[i + 1..]);
    }
}

#[test]
fn first_error_of_the_visitor_ends_replay() {
    let (fs, _, _) = four_commits();
    let mut visited = 0;
    let result = super::replay(&fs.os(), Path::new(DIR), Lsn(0), &mut |_| {}, &mut |_, _| {
        visited += 1;
        Err(Error::Closed)
    });
    assert!(matches!(result, Err(Error::Closed)));
    assert_eq!(visited, 1);
}

#[test]
fn verify_counts_what_is_there() {
    let (fs, written, _) = four_commits();
    let verified = super::verify(&fs.os(), Path::new(DIR), &mut |_| {}).unwrap();
    assert_eq!((verified.records, verified.first, verified.torn_bytes), (written.len() as u64, Lsn(0), 0));
}
