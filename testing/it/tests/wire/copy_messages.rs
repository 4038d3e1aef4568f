//! COPY in messages: what stands in each, and which bytes are refused how. The expectations are PostgreSQL 15's.

use anyhow::{Result, ensure};
use basalt_it::servers::Basalt;
use basalt_it::wire::Wire;

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The bodies of the CopyData messages of a COPY TO.
fn copy_out(wire: &mut Wire, sql: &str) -> Result<Vec<Vec<u8>>> {
    wire.send_simple(sql)?;
    let mut bodies = Vec::new();
    loop {
        match wire.receive()? {
            (b'd', body) => bodies.push(body),
            (b'Z', _) => return Ok(bodies),
            (b'E', body) => ensure!(false, "{}", body.escape_ascii()),
            _ => {}
        }
    }
}

#[test]
fn every_row_is_a_message_of_its_own() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    let two = "COPY (SELECT i, 'x' FROM generate_series(1, 2) i) TO STDOUT";
    let row = |number: u8| [&b"\0\x02\0\0\0\x04\0\0\0"[..], &[number], b"\0\0\0\x01x"].concat();
    let binary = copy_out(&mut wire, &format!("{two} BINARY"))?;
    assert_eq!(binary, [[HEADER, &row(1)].concat(), row(2), b"\xff\xff".to_vec()]);
    let none = copy_out(&mut wire, "COPY (SELECT 1 WHERE false) TO STDOUT BINARY")?;
    assert_eq!(none, [[HEADER, b"\xff\xff"].concat()]);
    assert_eq!(copy_out(&mut wire, two)?, [b"1\tx\n", b"2\tx\n"]);
    let csv = copy_out(&mut wire, &format!("{two} (FORMAT csv, HEADER)"))?;
    assert_eq!(csv, [&b"i,?column?\n"[..], b"1,x\n", b"2,x\n"]);
    Ok(())
}

#[test]
fn fields_of_a_wrong_length_are_refused_as_postgresql_refuses_them() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (a int PRIMARY KEY, b text, c smallint)")?;
    let row = |fields: [&[u8]; 3]| {
        let fields = fields.iter().flat_map(|field| [&(field.len() as i32).to_be_bytes()[..], field].concat());
        [HEADER, b"\0\x03"].concat().into_iter().chain(fields).collect::<Vec<u8>>()
    };
    let whole = row([b"\0\0\0\x01", b"x", b"\0\x01"]);
    for (bytes, sqlstate) in [
        (row([b"\0\0", b"x", b"\0\x01"]), Some("08P01")),
        (row([b"", b"x", b"\0\x01"]), Some("08P01")),
        (row([b"\0\0\0\0\x01", b"x", b"\0\x01"]), Some("22P03")),
        (row([b"\0\0\0\x01", b"x", b"\0"]), Some("08P01")),
        (row([b"\0\0\0\x01", b"\xff", b"\0\x01"]), Some("22021")),
        (whole[..whole.len() - 1].to_vec(), Some("22P04")),
        ([HEADER, b"\0\x03\xff\xff\xff\xfb"].concat(), Some("22P04")),
        ([&whole[..], b"\xff\xffjunk"].concat(), Some("22P04")),
        (whole, None),
    ] {
        let answer = wire.simple("COPY t FROM STDIN BINARY", Some(&bytes))?;
        assert_eq!(answer.sqlstate(), sqlstate, "{}", bytes.escape_ascii());
        assert_eq!(answer.status, b'I', "the connection goes on");
    }
    assert_eq!(wire.run("SELECT a, b, c FROM t")?.rows.len(), 1);
    Ok(())
}
