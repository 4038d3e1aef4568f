//! `basalt sql` as its users run it: scripts, arguments, pipes.

use anyhow::{Context, Result, ensure};
use basalt_it::servers::Basalt;
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn shell(server: &Basalt, args: &[&str], input: &str) -> Result<Output> {
    let mut command = Command::new(Basalt::binary()?);
    command.arg("sql").args(["--url", &format!("postgresql://basalt@{}/basalt", server.addr)]).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // The shell may end before it has read everything.
    let _ = child.stdin.take().context("no pipe")?.write_all(input.as_bytes());
    Ok(child.wait_with_output()?)
}

/// What it prints; it must succeed.
fn printed(server: &Basalt, args: &[&str], input: &str) -> Result<String> {
    let output = shell(server, args, input)?;
    let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    ensure!(output.status.success() && err.is_empty(), "{args:?} {input:?}: {}\n{out}\n{err}", output.status);
    Ok(out)
}

/// What it complains of; it must fail.
fn refused(server: &Basalt, args: &[&str], input: &str) -> Result<String> {
    let output = shell(server, args, input)?;
    ensure!(output.status.code() == Some(1), "{args:?} {input:?}: {}", output.status);
    ensure!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    Ok(String::from_utf8(output.stderr)?)
}

#[test]
fn copy_takes_its_data_from_scripts_arguments_and_pipes() -> Result<()> {
    let server = Basalt::start()?;
    let script = "CREATE TABLE t (id int PRIMARY KEY, name text);\n\
                  COPY t FROM STDIN (FORMAT csv); -- data\n1,one\n2,\"two;\"\n\\.\nSELECT count(*) FROM t;\n\
                  COPY (SELECT * FROM t ORDER BY id) TO STDOUT;";
    let out = printed(&server, &[], script)?;
    assert_eq!(out, "CREATE TABLE\nCOPY 2\n count\n-------\n     2\n(1 row)\n\n1\tone\n2\ttwo;\n");
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), "COPY t FROM STDIN;\n3\tthree\n\\.\nDELETE FROM t WHERE id = 1;")?;
    assert_eq!(printed(&server, &["-f", &file.path().display().to_string()], "")?, "COPY 1\nDELETE 1\n");
    // Data of an argument is in the argument or, if nothing follows, on standard input.
    assert_eq!(printed(&server, &["-c", "COPY t FROM STDIN;\n4\tfour\n\\."], "")?, "COPY 1\n");
    assert_eq!(printed(&server, &["-c", "copy t from stdin"], "5\tfive\n")?, "COPY 1\n");
    // In a block that is the user's it neither begins nor ends one.
    printed(&server, &["-c", "BEGIN", "-c", "COPY t FROM STDIN", "-c", "ROLLBACK"], "6\tsix\n")?;
    assert_eq!(printed(&server, &["--csv", "-c", "SELECT max(id) FROM t"], "")?, "max\n5\n");
    Ok(())
}

#[test]
fn a_copy_that_fails_leaves_nothing_and_no_data_is_run() -> Result<()> {
    let server = Basalt::start()?;
    server.connect()?.run("CREATE TABLE t (id int PRIMARY KEY)")?;
    let said = refused(&server, &[], "COPY t FROM STDIN;\n1\nDROP TABLE t;\n\\.\n")?;
    ensure!(said.contains("22P02") && said.contains("line 2"), "{said}");
    assert_eq!(printed(&server, &["--csv", "-c", "SELECT count(*) FROM t"], "")?, "count\n0\n");
    let said = refused(&server, &["-c", "COPY nosuch FROM STDIN"], "1\n")?;
    ensure!(said.contains("42P01"), "{said}");
    Ok(())
}

#[test]
fn errors_point_into_the_statement() -> Result<()> {
    let server = Basalt::start()?;
    let said = refused(&server, &["-c", "SELECT 1,\n  nosuch"], "")?;
    assert_eq!(said, "basalt: ERROR:  column \"nosuch\" does not exist (42703)\nLINE 2:   nosuch\n          ^\n");
    // No header of a table whose rows never came.
    refused(&server, &["-c", "SELECT 1 / (a - a) FROM generate_series(1, 3) a"], "")?;
    let said = refused(&server, &["-c", "\\d nosuch"], "")?;
    assert_eq!(said, "basalt: ERROR:  relation \"nosuch\" does not exist (42P01)\n");
    ensure!(refused(&server, &["-c", "\\foo"], "")?.contains("invalid command \\foo"));
    Ok(())
}

#[test]
fn tables_are_described_with_their_types_in_full() -> Result<()> {
    let server = Basalt::start()?;
    server.connect()?.run("CREATE TABLE t (id int PRIMARY KEY, value numeric(8,2) DEFAULT 1)")?;
    let out = printed(&server, &["--csv"], "\\d t\nquit\nSELECT 'not reached';\n")?;
    assert_eq!(out, "column,type,nullable,default\nid,integer,not null,\nvalue,\"numeric(8,2)\",,1\n");
    Ok(())
}
