//! Bytes that no client sends must cost their connection at most.

use anyhow::Result;
use basalt_it::servers::Basalt;
use basalt_it::wire::{Wire, put_message};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn throw(server: &Basalt, bytes: &[u8]) -> Result<()> {
    let mut stream = TcpStream::connect(server.addr)?;
    stream.set_read_timeout(Some(Duration::from_millis(20)))?;
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes);
    let _ = stream.read(&mut [0; 512]);
    Ok(())
}

fn still_serves(server: &mut Basalt, evidence: &str) -> Result<()> {
    assert!(server.is_running(), "the server died of {evidence}:\n{}", server.log_tail());
    assert_eq!(server.connect()?.run("SELECT 1")?.text(0, 0), Some("1"), "{evidence}");
    Ok(())
}

#[test]
fn garbage_before_login_is_survived() -> Result<()> {
    let mut server = Basalt::start()?;
    let seed = 20_240_229;
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..200 {
        let mut bytes = vec![0; random.random_range(0..200)];
        random.fill(&mut bytes[..]);
        throw(&server, &bytes)?;
        if round % 50 == 49 {
            still_serves(&mut server, &format!("seed {seed}, round {round}"))?;
        }
    }
    for length in [0_u32, 1, 4, 7, 8, 9, 10_000, 10_001, 1 << 30, u32::MAX] {
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend([0, 3, 0, 0, b'u', b's']);
        throw(&server, &bytes)?;
    }
    // Codes of startup with nothing or nonsense behind them.
    for code in [80_877_102_u32, 80_877_103, 80_877_104, 131_072, 196_608, 196_609, 999_999] {
        let mut bytes = 8_u32.to_be_bytes().to_vec();
        bytes.extend(code.to_be_bytes());
        bytes.extend(b"no such thing");
        throw(&server, &bytes)?;
    }
    throw(&server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")?;
    still_serves(&mut server, "startup packets")
}

#[test]
fn garbage_after_login_is_survived() -> Result<()> {
    let mut server = Basalt::start()?;
    let seed = 7;
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..150 {
        let mut wire = server.connect()?;
        wire.set_read_timeout(Duration::from_millis(10))?;
        for _ in 0..random.random_range(1..5) {
            let mut body = vec![0; random.random_range(0..60)];
            random.fill(&mut body[..]);
            let kinds = b"QPBDECSHdcfFpXxz\0\xff";
            let kind = kinds[random.random_range(0..kinds.len())];
            let mut frame = Vec::new();
            put_message(&mut frame, kind, &body);
            if random.random_range(0..4) == 0 {
                let length: u32 = random.random();
                frame[1..5].copy_from_slice(&length.to_be_bytes());
            }
            frame.truncate(random.random_range(1..=frame.len()));
            if wire.send_raw(&frame).is_err() {
                break;
            }
        }
        let _ = wire.receive();
        if round % 30 == 29 {
            still_serves(&mut server, &format!("seed {seed}, round {round}"))?;
        }
    }
    still_serves(&mut server, "garbage")
}

#[test]
fn lengths_and_counts_that_lie_give_a_protocol_error() -> Result<()> {
    let mut server = Basalt::start()?;
    let bodies: [(u8, &[u8]); 8] = [
        (b'Q', b"SELECT 1"),
        (b'Q', b"SELECT '\xff\xfe'\0"),
        (b'P', b"\0SELECT 1\0\x7f\xff"),
        (b'P', b"name without end"),
        (b'B', b"\0\0\x7f\xff\0\0"),
        (b'B', b"\0nosuch\0\0\0\0\0\0\0"),
        (b'E', b"\0"),
        (b'D', b"?\0"),
    ];
    for (kind, body) in bodies {
        let mut wire = server.connect()?;
        wire.set_read_timeout(Duration::from_secs(5))?;
        wire.send(kind, body)?;
        wire.send(b'S', &[])?;
        let (answer, fields) = wire.receive()?;
        assert_eq!(answer, b'E', "{:?} {body:02x?}", char::from(kind));
        let state = basalt_it::wire::fields(&fields)?.sqlstate().to_string();
        assert!(["08P01", "22021", "26000"].contains(&state.as_str()), "{:?} {body:02x?}: {state}", char::from(kind));
    }
    // A length word alone reserves nothing: many such connections at once leave room for others.
    let mut held = Vec::new();
    for _ in 0..50 {
        let mut wire = server.connect()?;
        let mut frame = vec![b'Q'];
        frame.extend(0x3fff_ffff_u32.to_be_bytes());
        // Refusing it at once is as good as waiting for it.
        let _ = wire.send_raw(&frame);
        held.push(wire);
    }
    still_serves(&mut server, "lengths of a gigabyte")
}

/// A client that asks and does not read must not make the server's memory grow with the answer.
#[test]
fn a_client_that_does_not_read_costs_little_memory() -> Result<()> {
    let server = Basalt::start()?;
    let pid = server.process_id().expect("it runs");
    let mut clients: Vec<Wire> = (0..4).map(|_| server.connect()).collect::<Result<_>>()?;
    let before = resident_bytes(pid)?;
    for wire in &mut clients {
        wire.send_simple("SELECT repeat('x', 1000) FROM generate_series(1, 1000000)")?;
    }
    std::thread::sleep(Duration::from_secs(3));
    let grown = resident_bytes(pid)?.saturating_sub(before);
    assert!(grown < 400 << 20, "grew by {grown} bytes");
    Ok(())
}

fn resident_bytes(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap_or("0").parse()?;
    Ok(kilobytes << 10)
}
