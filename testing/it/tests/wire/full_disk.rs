//! A full disk: writes give 53100, reads go on, writes go on when there is room again.

use anyhow::{Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use std::path::Path;
use std::process::Command;

/// A file system of this size, gone with the test. Only root can make one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(megabytes: u32) -> Result<Option<SmallDisk>> {
        let dir = tempfile::tempdir()?;
        let options = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(dir.path()).output()?;
        if !mounted.status.success() {
            println!("not tested, no tmpfs: {}", String::from_utf8_lossy(&mounted.stderr).trim());
            return Ok(None);
        }
        Ok(Some(SmallDisk(dir)))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Letters without a pattern.
fn incompressible(seed: u64, letters: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..letters).map(|_| letter()).collect()
}

#[test]
fn a_full_disk_refuses_writes_and_serves_reads() -> Result<()> {
    let Some(disk) = SmallDisk::new(400)? else { return Ok(()) };
    let outside = tempfile::tempdir()?;
    let options = BasaltOptions::default();
    let mut server = Basalt::start_on(&disk.path().join("data"), &outside.path().join("log"), options)?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, x text)")?;
    wire.run("INSERT INTO t VALUES (0, 'first')")?;
    let ballast = disk.path().join("ballast");
    let _ = std::fs::write(&ballast, vec![1; 200 << 20]);
    let mut acknowledged = 1;
    let mut refused = 0;
    for id in 1..4000 {
        let answer = wire.simple(&format!("INSERT INTO t VALUES ({id}, repeat(md5('{id}'), 3000))"), None)?;
        match answer.sqlstate() {
            None => acknowledged += 1,
            Some(state) => {
                assert_eq!(state, "53100", "{:?}", answer.error());
                refused += 1;
            }
        }
        if refused > 20 {
            break;
        }
    }
    ensure!(refused > 0, "the disk never filled");
    let count = |wire: &mut basalt_it::wire::Wire| -> Result<usize> {
        Ok(wire.run("SELECT count(*) FROM t")?.text(0, 0).unwrap_or_default().parse()?)
    };
    assert_eq!(count(&mut wire)?, acknowledged);
    // So are files that a statement writes itself.
    let wide = (0..3000).map(|i| format!("{}\t{}\n", 10_000 + i, incompressible(i, 20_000))).collect::<String>();
    for _ in 0..5 {
        let answer = wire.simple("COPY t FROM STDIN", Some(wide.as_bytes()))?;
        assert_eq!(answer.sqlstate(), Some("53100"), "{:?}", answer.error());
    }
    assert_eq!(count(&mut wire)?, acknowledged);
    std::fs::remove_file(&ballast)?;
    // The server finds out by itself that there is room again.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let answer = wire.simple("INSERT INTO t VALUES (100000, 'after')", None)?;
        match answer.sqlstate() {
            None => break,
            Some(state) => assert_eq!(state, "53100"),
        }
        ensure!(std::time::Instant::now() < until, "writes do not go on:\n{}", server.log_tail());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(count(&mut wire)?, acknowledged + 1);
    server.kill_and_start()?;
    assert_eq!(count(&mut server.connect()?)?, acknowledged + 1);
    Ok(())
}
