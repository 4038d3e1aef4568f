use super::*;
use crate::fault_fs::*;
use crate::zeros::{self, Blank};
use basalt_sched::OpenMode;
use basalt_sched::os::{Load, UnknownLoad};
use std::path::Path;
use std::sync::atomic::AtomicUsize;

/// Repeats its numbers for a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn concurrent_appenders_are_acknowledged_in_one_order_and_nothing_acknowledged_is_lost() {
    let fs = FaultFs::new();
    fs.faults.sync_micros.store(300, Ordering::SeqCst);
    let log = open_log(&fs, 1, Lsn(0));
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let log = &log;
            scope.spawn(move || {
                let mut last = Lsn(0);
                for i in 0..50u64 {
                    let appended = log.append(&[&thread.to_le_bytes(), &i.to_le_bytes()]).unwrap();
                    assert!(appended.start > last && appended.end > appended.start);
                    last = appended.start;
                    log.wait_durable_blocking(appended.end).unwrap();
                    assert!(log.durable() >= appended.end);
                }
            });
        }
    });
    let records = payloads(&fs.after_power_cut());
    assert_eq!(records.len(), 400);
    for thread in 0..8u64 {
        let of_thread: Vec<&[u8]> =
            records.iter().filter(|r| r[..8] == thread.to_le_bytes()).map(|r| &r[8..]).collect();
        assert!(of_thread.iter().enumerate().all(|(i, r)| **r == (i as u64).to_le_bytes()));
    }
    let stats = log.stats();
    assert_eq!((stats.records, stats.payload_bytes), (400, 6400));
    assert!(stats.syncs < 250, "commits are grouped: {stats:?}");
}

/// Appends, syncs, loses power with sectors of the last flush torn at random, starts again; many times.
#[test]
fn torn_power_cuts_keep_what_was_durable_and_a_prefix_of_the_rest() {
    for seed in 1..=40u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut fs = FaultFs::new();
        let mut written: Vec<(Lsn, Vec<u8>)> = Vec::new();
        let mut start = Lsn(0);
        for epoch in 1..=6u32 {
            let log = open_log(&fs, epoch, start);
            let mut durable = log.durable();
            for i in 0..dice.below(30) {
                let bytes = if dice.below(6) == 0 { dice.below(150_000) } else { dice.below(3000) };
                let payload = vec![(seed + i) as u8 ^ epoch as u8; bytes as usize];
                let appended = log.append(&[&payload]).unwrap();
                written.push((appended.start, payload));
                if dice.below(3) == 0 {
                    log.wait_durable_blocking(appended.end).unwrap();
                }
                durable = log.durable();
            }
            let odds = dice.below(5);
            let cut = if dice.below(2) == 0 {
                // Everything appended so far is written, but the disk lies about the sync.
                fs.faults.fail_syncs.store(true, Ordering::SeqCst);
                let _ = log.wait_durable_blocking(log.end());
                fs.after_torn_power_cut(&mut || dice.below(5) >= odds)
            } else {
                fs.after_torn_power_cut(&mut || dice.below(5) >= odds)
            };
            let (records, end) = try_read(&cut, Lsn(0)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(end.end >= durable, "seed {seed} epoch {epoch}: durable {durable}, {end:?}");
            assert_eq!(records[..], written[..records.len()], "seed {seed} epoch {epoch}");
            written.truncate(records.len());
            (fs, start) = (cut, end.end);
        }
    }
}

/// Starts, fills files, releases and recycles them, three times over; every sync, rename and removal is
/// followed by a power cut of a copy, which must replay and start.
#[test]
fn power_cut_after_any_operation_leaves_a_log_that_starts() {
    let fs = FaultFs::new();
    *fs.faults.cuts.lock() = Some(Vec::new());
    let mut start = Lsn(0);
    let mut written: Vec<(Lsn, Vec<u8>)> = Vec::new();
    let small = LogConfig { file_bytes: crate::format::FILE_BYTES_MIN, recycle_files_max: 2, ..config() };
    for epoch in 1..=3u32 {
        let faults = fs.faults.clone();
        let on_durable: OnDurable = Box::new(move |lsn| faults.acknowledged.store(lsn.0, Ordering::SeqCst));
        let log = Log::open(fs.os(), small.clone(), Epoch(epoch), start, on_durable).unwrap();
        for i in 0..24u8 {
            let payload = vec![i ^ epoch as u8; usize::from(i) * 300];
            written.push((commit(&log, &payload).start, payload));
            if i % 8 == 7 {
                fs.faults.released.store(log.durable().0, Ordering::SeqCst);
                log.release_before(log.durable()).unwrap();
            }
        }
        log.close().unwrap();
        start = log.durable();
    }
    let cuts = fs.faults.cuts.lock().take().unwrap();
    assert!(cuts.len() > 300, "{}", cuts.len());
    for (i, cut) in cuts.iter().enumerate() {
        let (records, end) = match try_read(&cut.fs, cut.released) {
            Ok(read) => read,
            Err(error) => panic!("cut {i}, needed from {}: {error}; {:?}", cut.released, cut.fs.names()),
        };
        assert!(end.end >= cut.acknowledged, "cut {i}: {} of {}", end.end, cut.acknowledged);
        let needed = written.iter().skip_while(|(lsn, _)| *lsn < cut.released);
        assert!(records.iter().eq(needed.take(records.len())), "cut {i}");
        let log = Log::open(cut.fs.os(), small.clone(), Epoch(9), end.end, Box::new(|_| {})).unwrap();
        log.append(&[b"next"]).unwrap();
        log.close().unwrap();
        assert_eq!(try_read(&cut.fs.after_power_cut(), cut.released).unwrap().0.len(), records.len() + 1, "cut {i}");
    }
}

#[test]
fn failed_sync_stops_the_log_and_acknowledges_nothing() {
    let fs = FaultFs::new();
    let announced = Arc::new(AtomicU64::new(0));
    let seen = announced.clone();
    let on_durable: OnDurable = Box::new(move |lsn| seen.store(lsn.0, Ordering::SeqCst));
    let log = Log::open(fs.os(), config(), Epoch(1), Lsn(0), on_durable).unwrap();
    let kept = commit(&log, b"kept");
    let durable = log.durable();
    assert!(announced.load(Ordering::SeqCst) >= kept.end.0, "announced before the waiter was woken");
    fs.faults.fail_syncs.store(true, Ordering::SeqCst);
    let lost = log.append(&[b"lost"]).unwrap();
    let error = log.wait_durable_blocking(lost.end).unwrap_err();
    assert!(error.to_string().contains("injected sync error"), "{error}");
    fs.faults.fail_syncs.store(false, Ordering::SeqCst);
    assert!(matches!(log.append(&[b"more"]), Err(Error::Poisoned { .. })));
    assert!(matches!(log.wait_durable_blocking(lost.end), Err(Error::Poisoned { .. })));
    assert!(matches!(block_on(log.admit()), Err(Error::Poisoned { .. })));
    assert!(matches!(log.release_before(durable), Err(Error::Poisoned { .. })));
    assert!(matches!(log.close(), Err(Error::Poisoned { .. })));
    log.wait_durable_blocking(kept.end).unwrap();
    assert_eq!((log.durable(), announced.load(Ordering::SeqCst)), (durable, durable.0));
    assert_eq!(payloads(&fs.after_power_cut()), [b"kept".to_vec()]);
}

#[test]
fn failed_write_stops_the_log() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    fs.faults.fail_writes.store(true, Ordering::SeqCst);
    let lost = log.append(&[b"lost"]).unwrap();
    let error = log.wait_durable_blocking(lost.end).unwrap_err();
    assert!(error.to_string().contains("injected write error"), "{error}");
    assert_eq!(log.durable(), Lsn(0));
}

#[test]
fn panic_in_the_callback_stops_the_log_instead_of_hanging_it() {
    let log = Log::open(FaultFs::new().os(), config(), Epoch(1), Lsn(0), Box::new(|_| panic!("expected"))).unwrap();
    let appended = log.append(&[b"x"]).unwrap();
    // The sync itself succeeded, so this wait may be served either way; the next one may not.
    let _ = log.wait_durable_blocking(appended.end);
    assert!(matches!(log.close(), Err(Error::Poisoned { .. })));
    assert!(matches!(log.append(&[b"y"]), Err(Error::Poisoned { .. })));
}

#[test]
fn full_disk_refuses_records_before_accepting_them_and_recovers() {
    let fs = FaultFs::new();
    fs.faults.room_bytes.store(2 * FILE_BYTES, Ordering::SeqCst);
    let log = open_log(&fs, 1, Lsn(0));
    let mut accepted = 0;
    let error = loop {
        match log.append(&[&[1; 10_000]]) {
            Ok(appended) => log.wait_durable_blocking(appended.end).unwrap(),
            Err(error) => break error,
        }
        accepted += 1;
    };
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert_eq!(error.kind(), basalt_types::ErrorKind::Limit);
    assert!((9..=11).contains(&accepted), "{accepted}");
    assert!(matches!(log.append(&[&[1; 10_000]]), Err(Error::NoSpace { .. })));
    fs.faults.room_bytes.store(u64::MAX, Ordering::SeqCst);
    let is_taken = || match log.append(&[&[2; 10_000]]) {
        Ok(_) => true,
        Err(Error::NoSpace { .. }) => false,
        Err(error) => panic!("{error}"),
    };
    assert!(comes(&fs, Duration::from_secs(5), is_taken));
    commit(&log, b"end");
    assert_eq!(payloads(&fs.after_power_cut()).len(), accepted + 2);
}

#[test]
fn released_files_are_recycled_and_their_past_stays_dead() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    for i in 0..60u32 {
        commit(&log, &[i as u8; 10_000]);
        if i % 20 == 19 {
            log.release_before(log.durable()).unwrap();
        }
    }
    assert!(log.first_lsn() > Lsn(300_000) && log.first_lsn() <= log.durable());
    let first = log.first_lsn();
    let spares = fs.names().iter().filter(|name| name.ends_with(".spare")).count();
    assert!(spares >= 1, "{:?}", fs.names());
    drop(log);
    let fs = fs.after_power_cut();
    let (records, end) = try_read(&fs, first).unwrap();
    assert!(records.iter().all(|(_, payload)| payload[0] >= 39), "only what was not released");
    assert!(matches!(try_read(&fs, Lsn(0)), Err(Error::Missing { .. })));
    let log = open_log(&fs, 2, end.end);
    log.release_before(Lsn(u64::MAX)).unwrap();
    assert_eq!(log.first_lsn(), end.end);
    commit(&log, b"on");
    assert_eq!(try_read(&fs.after_power_cut(), end.end).unwrap().0.len(), 1);
}

/// A process that is killed behind a rename leaves a spare whose old name a power cut brings back.
#[test]
fn spares_of_a_killed_process_are_written_to_when_their_old_names_are_durably_gone() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    for i in 0..20u8 {
        commit(&log, &[i; 10_000]);
    }
    let released = log.shared.state.lock().files[1].first;
    log.close().unwrap();
    let end = log.durable();
    drop(log);
    fs.os().fs.rename(&path_of(1), &Path::new(DIR).join(crate::format::spare_name(77))).unwrap();
    *fs.faults.cuts.lock() = Some(Vec::new());
    drop(open_log(&fs, 2, end));
    let cuts = fs.faults.cuts.lock().take().unwrap();
    assert!(!cuts.is_empty());
    for cut in cuts {
        let found = try_read(&cut.fs, Lsn(released)).unwrap_or_else(|error| panic!("{error}; {:?}", cut.fs.names()));
        assert_eq!(found.1.end, end);
    }
}

/// Until it is so, or for so long.
fn comes(fs: &Arc<FaultFs>, within: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let clock = fs.os().clock;
    let give_up = clock.monotonic() + within;
    loop {
        if is_so() {
            return true;
        }
        if clock.monotonic() >= give_up {
            return false;
        }
        clock.sleep(Duration::from_millis(1));
    }
}

/// A log with files of a size, the first of which has so many bytes, or little more, in such commits. The next one is there.
fn log_with(fs: &Arc<FaultFs>, file_bytes: u64, bytes: u64, payload: &[u8]) -> Arc<Log> {
    let config = LogConfig { file_bytes, ..config() };
    let log = Log::open(fs.os(), config, Epoch(1), Lsn(0), Box::new(|_| {})).unwrap();
    assert!(comes(fs, Duration::from_secs(5), || log.shared.state.lock().blank.is_some()));
    while log.end().0 < bytes {
        commit(&log, payload);
    }
    log
}

#[test]
fn zeros_come_before_small_syncs() {
    let fs = FaultFs::new();
    let log = log_with(&fs, 4 << 20, 1 << 20, b"small");
    assert!(comes(&fs, Duration::from_secs(5), || fs.written(&path_of(2)) == Some(4 << 20)));
    // On into the second file, over the zeros.
    let mut commits = payloads(&fs.after_power_cut()).len();
    while log.end().0 < 6 << 20 {
        commit(&log, b"small");
        commits += 1;
    }
    let mut coin = 1u32;
    let mut pick = || {
        coin = coin.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        coin >> 31 == 1
    };
    for cut in [fs.after_power_cut(), fs.after_torn_power_cut(&mut pick), fs.snapshot()] {
        assert_eq!(payloads(&cut).len(), commits);
    }
}

#[test]
fn no_zeros_before_large_syncs() {
    let fs = FaultFs::new();
    let _log = log_with(&fs, 64 << 20, 20 << 20, &[7; 100_000]);
    assert!(!comes(&fs, Duration::from_millis(200), || fs.written(&path_of(2)) != Some(4096)));
    assert_eq!(zeros::pay(100 * (64 << 10) - 100, 100), Some(true));
    assert_eq!(zeros::pay(100 * (64 << 10), 100), Some(false));
    assert_eq!(zeros::pay(10 * 4096, 10), None, "too few to tell");
}

#[test]
fn zeros_that_cannot_be_synced_stop_the_log() {
    let fs = FaultFs::new();
    let log = log_with(&fs, 4 << 20, 480 << 10, b"small");
    fs.faults.fail_syncs.store(true, Ordering::SeqCst);
    // Nobody waits for it, so that only zeros are synced.
    log.append(&[&[1; 100_000]]).unwrap();
    assert!(comes(&fs, Duration::from_secs(5), || log.stopped().is_some()));
    let error = log.stopped().unwrap().to_string();
    assert!(error.contains("zeros") && error.contains("injected sync error"), "{error}");
}

/// Zeros are being written when the log comes to the file.
#[test]
fn no_zeros_over_records() {
    let fs = FaultFs::new();
    fs.faults.hold_zeros.store(true, Ordering::SeqCst);
    let log = log_with(&fs, 4 << 20, 1 << 20, b"small");
    assert!(comes(&fs, Duration::from_secs(5), || fs.faults.holds_zeros.load(Ordering::SeqCst)));
    let mut last = log.append(&[&[8; 60_000]]).unwrap();
    while last.end.0 < 6 << 20 {
        last = log.append(&[&[8; 60_000]]).unwrap();
    }
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| log.wait_durable_blocking(last.end).unwrap());
        // What can be written is written.
        let file_is_full = comes(&fs, Duration::from_secs(5), || log.durable().0 > 3 << 20);
        let is_early = comes(&fs, Duration::from_millis(50), || log.durable() >= last.end);
        fs.faults.hold_zeros.store(false, Ordering::SeqCst);
        assert!(file_is_full && !is_early, "{file_is_full} {is_early}");
        waits.join().unwrap();
    });
    log.close().unwrap();
    let (records, end) = read(&fs.after_power_cut());
    assert!(end.end >= last.end, "{} of {}", end.end, last.end);
    assert!(records.iter().all(|(_, payload)| payload == b"small" || *payload == [8; 60_000]));
}

#[test]
fn a_file_whose_zeros_cannot_be_synced_is_not_written_to() {
    let fs = FaultFs::new();
    let file = fs.os().fs.open(&path_of(1), OpenMode::CreateNew).unwrap();
    file.allocate(4 << 20).unwrap();
    let mut blank = Blank::new(file, 4 << 20);
    let begun = blank.begun();
    assert!(blank.write_piece().unwrap());
    fs.faults.fail_syncs.store(true, Ordering::SeqCst);
    assert!(blank.write_piece().is_err());
    fs.faults.fail_syncs.store(false, Ordering::SeqCst);
    assert!(begun.begin().is_err());
    assert!(!blank.write_piece().unwrap());
}

#[test]
fn no_zeros_over_what_has_begun() {
    let fs = FaultFs::new();
    let file = fs.os().fs.open(&path_of(1), OpenMode::CreateNew).unwrap();
    file.allocate(4 << 20).unwrap();
    let mut blank = Blank::new(file.clone(), 4 << 20);
    assert!(blank.write_piece().unwrap());
    blank.begun().begin().unwrap();
    file.write_at(&[1; 4096], 4096 + (512 << 10)).unwrap();
    assert!(!blank.write_piece().unwrap());
    assert!(fs.bytes(&path_of(1))[4096 + (512 << 10)..][..4096].iter().all(|byte| *byte == 1));
}

#[test]
fn as_many_spares_are_kept_as_are_used() {
    let fs = FaultFs::new();
    let config = LogConfig { recycle_files_max: 8, ..config() };
    let log = Log::open(fs.os(), config, Epoch(1), Lsn(0), Box::new(|_| {})).unwrap();
    let spares = || fs.names().iter().filter(|name| name.ends_with(".spare")).count();
    let use_and_release = |files: usize| {
        let from = log.first_lsn();
        while (log.end().0 - from.0) / FILE_BYTES <= files as u64 {
            commit(&log, &[1; 10_000]);
        }
        log.release_before(log.durable()).unwrap();
    };
    let until = |is_so: &dyn Fn() -> bool| {
        assert!(comes(&fs, Duration::from_secs(10), is_so), "{:?}", fs.names());
    };
    // The limit, whatever was used; the rest by and by.
    use_and_release(20);
    assert!(spares() > 12, "{:?}", fs.names());
    until(&|| spares() <= 8);
    assert!(spares() >= 7, "{:?}", fs.names());
    // Slowly fewer while less is used.
    for _ in 0..12 {
        use_and_release(2);
    }
    until(&|| spares() <= 8);
    assert!(spares() >= 3, "{:?}", fs.names());
    for _ in 0..30 {
        use_and_release(2);
    }
    until(&|| (2..=4).contains(&spares()));
    // None to speak of when others need the room.
    use_and_release(8);
    assert!(spares() > 4, "{:?}", fs.names());
    log.give_up_spares();
    until(&|| spares() <= 2);
}

#[test]
fn greatest_record_spans_files() {
    let fs = FaultFs::new();
    let config = LogConfig { file_bytes: 16 << 20, ..config() };
    let log = Log::open(fs.os(), config, Epoch(1), Lsn(0), Box::new(|_| {})).unwrap();
    let payload: Vec<u8> = (0..RECORD_BYTES_MAX).map(|i| (i / 1000) as u8).collect();
    commit(&log, b"before");
    let appended = log.append(&[&payload[..1000], &payload[1000..]]).unwrap();
    log.append(&[b"after"]).unwrap();
    assert!(matches!(log.append(&[&payload, b"x"]), Err(Error::TooLarge { .. })));
    block_on(log.admit()).unwrap();
    log.close().unwrap();
    let (records, _) = read(&fs.after_power_cut());
    assert_eq!(records.len(), 3);
    assert_eq!(records[1].0, appended.start);
    assert!(records[1].1 == payload && records[2].1 == b"after");
}

#[test]
fn flush_soon_flushes_without_a_waiter_and_append_alone_does_not() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    let appended = log.append(&[b"x"]).unwrap();
    fs.os().clock.sleep(Duration::from_millis(30));
    assert!(log.durable() < appended.end);
    log.flush_soon();
    assert!(comes(&fs, Duration::from_secs(2), || log.durable() >= appended.end));
}

#[test]
fn admit_waits_until_the_buffer_has_drained() {
    let fs = FaultFs::new();
    fs.faults.sync_micros.store(5000, Ordering::SeqCst);
    let config = LogConfig { buffer_bytes_max: 20_000, ..config() };
    let log = Log::open(fs.os(), config, Epoch(1), Lsn(0), Box::new(|_| {})).unwrap();
    block_on(log.admit()).unwrap();
    let appended = log.append(&[&[1; 30_000]]).unwrap();
    block_on(log.admit()).unwrap();
    assert!(log.durable() >= appended.end);
}

#[test]
fn close_and_drop_flush_what_was_appended() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    log.append(&[b"closed"]).unwrap();
    log.close().unwrap();
    assert!(matches!(log.append(&[b"late"]), Err(Error::Closed)));
    drop(log);
    let log = open_log(&fs, 2, read(&fs).1.end);
    log.append(&[b"dropped"]).unwrap();
    drop(log);
    assert_eq!(payloads(&fs.after_power_cut()), [b"closed".to_vec(), b"dropped".to_vec()]);
}

#[test]
fn cancelled_wait_leaves_the_list_and_wait_beyond_the_end_is_refused() {
    let fs = FaultFs::new();
    fs.faults.sync_micros.store(20_000, Ordering::SeqCst);
    let log = open_log(&fs, 1, Lsn(0));
    let appended = log.append(&[b"x"]).unwrap();
    assert!(matches!(log.wait_durable_blocking(Lsn(appended.end.0 + 1)), Err(Error::BeyondEnd { .. })));
    {
        let mut wait = pin!(log.wait_durable(appended.end));
        let mut context = Context::from_waker(Waker::noop());
        assert!(wait.as_mut().poll(&mut context).is_pending());
        assert_eq!(log.shared.waiters.count(), 1);
    }
    assert_eq!(log.shared.waiters.count(), 0);
}

#[test]
fn start_refuses_a_wrong_end_and_a_used_epoch() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 3, Lsn(0));
    commit(&log, b"x");
    drop(log);
    let end = read(&fs).1.end;
    let open = |epoch, start| Log::open(fs.os(), config(), Epoch(epoch), start, Box::new(|_| {})).map(drop);
    assert!(matches!(open(3, end), Err(Error::StaleEpoch { .. })));
    assert!(matches!(open(4, Lsn(0)), Err(Error::WrongStart { .. })));
    assert!(matches!(open(4, Lsn(end.0 + 4096)), Err(Error::WrongStart { .. })));
    open(4, end).unwrap();
    open(5, end).unwrap();
    open(6, end).unwrap();
    // The file with the record, the one of epoch 6 and perhaps one prepared: empty ones do not pile up.
    let live = fs.names().iter().filter(|name| name.ends_with(".log")).count();
    assert!((2..=3).contains(&live), "{:?}", fs.names());
}

#[test]
fn start_writes_again_what_a_failed_sync_left_in_the_cache() {
    let fs = FaultFs::new();
    let log = open_log(&fs, 1, Lsn(0));
    commit(&log, b"durable");
    fs.faults.fail_syncs.store(true, Ordering::SeqCst);
    let unsynced = log.append(&[b"cached"]).unwrap();
    assert!(log.wait_durable_blocking(unsynced.end).is_err());
    drop(log);
    fs.faults.fail_syncs.store(false, Ordering::SeqCst);
    let (records, end) = read(&fs);
    assert_eq!(records.len(), 2);
    let log = open_log(&fs, 2, end.end);
    assert_eq!(payloads(&fs.after_power_cut()).len(), 2);
    drop(log);
}

#[test]
fn works_on_the_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig { file_bytes: FILE_BYTES, ..LogConfig::new(dir.path().join("log")) };
    let os = Os::real();
    for epoch in 1..4u32 {
        let mut seen = 0u32;
        let end = crate::replay(&os, &config.dir, Lsn(0), &mut |_| {}, &mut |_, payload: &[u8]| {
            assert_eq!(payload[..4], seen.to_le_bytes());
            seen += 1;
            Ok::<(), Error>(())
        })
        .unwrap();
        assert_eq!(seen, (epoch - 1) * 10);
        let log = Log::open(os.clone(), config.clone(), Epoch(epoch), end.end, Box::new(|_| {})).unwrap();
        for i in 0..10 {
            log.append(&[&(seen + i).to_le_bytes(), &[0; 20_000]]).unwrap();
        }
        log.wait_durable_blocking(log.end()).unwrap();
    }
    crate::verify(&os, Path::new(&config.dir), &mut |_| {}).unwrap();
}

/// Commits of `threads` that do something else for a while between two; the machine is always full, or nobody knows.
fn committed(threads: u64, load: Arc<dyn Load>) -> Stats {
    let commits = 40;
    let fs = FaultFs::new();
    fs.faults.sync_micros.store(1000, Ordering::SeqCst);
    let os = Os { load, ..fs.os() };
    let config = LogConfig { gather_max: Duration::from_millis(20), ..config() };
    let log = Log::open(os.clone(), config, Epoch(1), Lsn(0), Box::new(|_| {})).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (log, os) = (&log, &os);
            scope.spawn(move || {
                for i in 0..commits {
                    os.clock.sleep(Duration::from_micros(2000 + 500 * ((thread + i) % 5)));
                    commit(log, b"x");
                }
            });
        }
    });
    assert_eq!(payloads(&fs.after_power_cut()).len() as u64, commits * threads);
    // The writer counts a commit after it has woken who waits for it.
    log.close().unwrap();
    log.stats()
}

/// The machine is full when it is asked the first so many times.
struct FullFor {
    times: usize,
    asked: AtomicUsize,
}

impl FullFor {
    fn new(times: usize) -> Arc<FullFor> {
        Arc::new(FullFor { times, asked: AtomicUsize::new(0) })
    }

    fn always() -> Arc<FullFor> {
        FullFor::new(usize::MAX)
    }

    /// How often it was asked since it was looked last.
    fn take_asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }
}

impl Load for FullFor {
    fn is_full(&self) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst) < self.times
    }
}

#[test]
fn busy_processors_have_more_committers_gathered() {
    // Where the test itself has to wait for a processor, all come together anyway.
    let mut tries = (0..5).map(|_| (committed(8, FullFor::always()), committed(8, Arc::new(UnknownLoad))));
    let more = |(full, unknown): &(Stats, Stats)| full.average_group > unknown.average_group * 1.2;
    assert!(
        tries.any(|pair| more(&pair)),
        "{:?}",
        (committed(8, FullFor::always()), committed(8, Arc::new(UnknownLoad)))
    );
}

const CROWD: usize = 4;

/// A log whose last sync, of so long, served a crowd.
fn behind_a_crowd(sync: Duration, gather_max: Duration, load: Arc<dyn Load>) -> Arc<Log> {
    let fs = FaultFs::new();
    fs.faults.sync_micros.store(sync.as_micros() as u64, Ordering::SeqCst);
    let config = LogConfig { gather_max, ..config() };
    let log = Log::open(Os { load, ..fs.os() }, config, Epoch(1), Lsn(0), Box::new(|_| {})).unwrap();
    let end = (0..CROWD).map(|_| log.append(&[b"x"]).unwrap().end).next_back().unwrap();
    let mut crowd: Vec<_> = (0..CROWD).map(|_| Box::pin(log.wait_durable(end))).collect();
    let mut context = Context::from_waker(Waker::noop());
    for wait in &mut crowd {
        // Ready if this thread had to wait for a processor as long as a sync takes: then the crowd is smaller.
        let _ = wait.as_mut().poll(&mut context);
    }
    log.wait_durable_blocking(end).unwrap();
    drop(crowd);
    log
}

/// How long it takes to commit behind a crowd, and how often the machine is asked meanwhile.
fn late(times: usize, sync: Duration, gather_max: Duration) -> (Duration, usize) {
    let load = FullFor::new(times);
    let log = behind_a_crowd(sync, gather_max, load.clone());
    let before = load.asked.load(Ordering::SeqCst);
    let clock = Os::real().clock;
    let begin = clock.monotonic();
    commit(&log, b"behind");
    (clock.monotonic() - begin, load.asked.load(Ordering::SeqCst) - before)
}

#[test]
fn gathering_ends_when_processors_have_nothing_to_do() {
    const SYNC: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(10);
    // A test that has to wait for a processor itself sees fewer steps.
    let tries = || 0..5;
    assert!(tries().any(|_| late(0, SYNC, LONG).1 == 1));
    // Up to 8 times the time of a sync, and a sync.
    let half = |(took, asked)| asked == 2 && took > SYNC * 7 && took < SYNC * 12;
    assert!(tries().any(|_| half(late(1, SYNC, LONG))));
    let full = |(took, asked)| asked == 2 && took > SYNC * 15;
    assert!(tries().any(|_| full(late(usize::MAX, SYNC, LONG))));
    let bounded = |(took, asked)| asked == 2 && took > SYNC * 3 && took < SYNC * 8;
    assert!(tries().any(|_| bounded(late(usize::MAX, SYNC, SYNC * 4))));
}

#[test]
fn gathering_in_vain_is_not_repeated_at_once() {
    const SYNC: Duration = Duration::from_millis(5);
    let is_left_out = || {
        let load = FullFor::always();
        let log = behind_a_crowd(SYNC, Duration::from_secs(10), load.clone());
        load.take_asked();
        // In vain, left out, in vain.
        let times = [0; 3].map(|_| {
            commit(&log, b"behind");
            load.take_asked()
        });
        times == [2, 0, 2]
    };
    assert!((0..5).any(|_| is_left_out()));
}

/// Commits behind a crowd and, while the writer gathers, does something. How long that commit took, in syncs; `None` if
/// nothing was gathered, since this thread had to wait for a processor.
fn while_gathering(load: Arc<dyn Load>, act: impl FnOnce(&Log, Lsn)) -> Option<f64> {
    const SYNC: Duration = Duration::from_millis(50);
    let log = behind_a_crowd(SYNC, Duration::from_secs(10), load);
    let end = log.append(&[b"behind"]).unwrap().end;
    let mut wait = std::pin::pin!(log.wait_durable(end));
    let mut context = Context::from_waker(Waker::noop());
    let clock = Os::real().clock;
    let begin = clock.monotonic();
    while wait.as_mut().poll(&mut context).is_pending() {
        if matches!(log.shared.state.lock().writer, WriterState::Gathering(_)) {
            act(&log, end);
            log.wait_durable_blocking(end).unwrap();
            return Some((clock.monotonic() - begin).as_secs_f64() / SYNC.as_secs_f64());
        }
        clock.sleep(Duration::from_millis(1));
    }
    None
}

#[test]
fn gathering_ends_with_the_log() {
    let took = (0..5).find_map(|_| while_gathering(FullFor::always(), |log, _| log.close().unwrap()));
    assert!(took.is_some_and(|syncs| syncs < 6.0), "{took:?}");
}

#[test]
fn gathering_ends_when_all_are_there() {
    let took = (0..5).find_map(|_| {
        let load = FullFor::always();
        while_gathering(load.clone(), |log, end| {
            load.take_asked();
            let mut others: Vec<_> = (1..CROWD).map(|_| Box::pin(log.wait_durable(end))).collect();
            let mut context = Context::from_waker(Waker::noop());
            for wait in &mut others {
                // Ready if the crowd was smaller.
                let _ = wait.as_mut().poll(&mut context);
            }
            log.wait_durable_blocking(end).unwrap();
            assert_eq!(load.take_asked(), 0);
        })
    });
    assert!(took.is_some_and(|syncs| syncs < 6.0), "{took:?}");
}

/// What was not waited for did not fail.
#[test]
fn commits_that_come_late_are_no_gathering() {
    let fs = FaultFs::new();
    fs.faults.sync_micros.store(500, Ordering::SeqCst);
    let (log, clock) = (open_log(&fs, 1, Lsn(0)), fs.os().clock);
    for _ in 0..10 {
        let ends: Vec<Lsn> = (0..3).map(|_| log.append(&[b"x"]).unwrap().end).collect();
        std::thread::scope(|scope| {
            for end in ends {
                let log = &log;
                scope.spawn(move || log.wait_durable_blocking(end).unwrap());
            }
        });
        let before = log.stats().gathers;
        clock.sleep(Duration::from_millis(5));
        commit(&log, b"late");
        assert_eq!(log.stats().gathers, before);
    }
}

#[test]
fn one_committer_waits_for_nobody() {
    for load in [FullFor::always() as Arc<dyn Load>, Arc::new(UnknownLoad)] {
        let stats = committed(1, load);
        assert_eq!((stats.gathers, stats.commits), (0, 40));
    }
}
