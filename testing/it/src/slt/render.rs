//! Answers as lines of text, so that comparing is comparing lines and a difference can be read.

use super::parse::Statement;
use crate::wire::{Answer, Fields, Reply};
use std::fmt::Write;

/// Everything that is compared.
pub fn render(answer: &Answer, statement: &Statement) -> Vec<String> {
    let mut lines = Vec::new();
    for reply in &answer.replies {
        notices(reply, &mut lines);
        notifications(reply, &mut lines);
        if let Some(error) = &reply.error {
            // What came before the error depends on when it was met.
            lines.push(format!("ERROR {}", error.sqlstate()));
            continue;
        }
        if let Some(columns) = &reply.columns {
            let names = columns.iter().map(|column| format!("{}:{}", column.name, type_name(column.type_oid)));
            lines.push(names.collect::<Vec<_>>().join("|"));
        }
        body(reply, statement, &mut lines);
        lines.extend(reply.tag.clone());
    }
    if answer.status != b'I' {
        lines.push(format!("status {}", char::from(answer.status)));
    }
    lines
}

/// What an expected answer is compared with: as [`render`], without types and status.
pub fn render_expected(answer: &Answer, statement: &Statement) -> Vec<String> {
    let mut lines = Vec::new();
    for reply in &answer.replies {
        notices(reply, &mut lines);
        notifications(reply, &mut lines);
        if let Some(error) = &reply.error {
            lines.push(format!("ERROR {}", error.sqlstate()));
            continue;
        }
        if let Some(columns) = &reply.columns {
            lines.push(columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join("|"));
        }
        body(reply, statement, &mut lines);
        lines.extend(reply.tag.clone());
    }
    lines
}

fn notices(reply: &Reply, lines: &mut Vec<String>) {
    lines.extend(reply.notices.iter().map(|notice: &Fields| format!("{} {}", notice.get(b'V'), notice.sqlstate())));
}

fn notifications(reply: &Reply, lines: &mut Vec<String>) {
    let from = |own| if own { "itself" } else { "another" };
    let told = reply.notifications.iter();
    lines.extend(told.map(|one| format!("NOTIFIED {} '{}' by {}", one.channel, one.payload, from(one.own))));
}

fn body(reply: &Reply, statement: &Statement, lines: &mut Vec<String>) {
    if statement.shape_only {
        lines.push(format!("{} rows", reply.rows.len()));
        return;
    }
    let binary = reply.columns.iter().flatten().any(|column| column.format == 1);
    let structured: Vec<bool> = reply.columns.iter().flatten().map(|column| is_structured(column.type_oid)).collect();
    let mut rows: Vec<String> = reply.rows.iter().map(|row| show_row(row, binary, &structured)).collect();
    if !statement.is_ordered() {
        rows.sort();
    }
    lines.extend(rows);
    if let Some((format, data)) = &reply.copy {
        if *format == 1 || statement.binary_copy {
            lines.push(hex(data));
        } else {
            let mut copied: Vec<String> = String::from_utf8_lossy(data).lines().map(str::to_string).collect();
            if !statement.is_ordered() && !statement.sql.to_ascii_lowercase().contains("order by") {
                copied.sort();
            }
            lines.extend(copied);
        }
    }
}

/// First oid of what users define: which ones they are given differs from server to server.
const FIRST_USER_OID: u32 = 16384;

/// Records, their arrays, names of types and relations, and all types of users: their binary form has oids.
fn is_structured(oid: u32) -> bool {
    matches!(oid, 2205 | 2206 | 2249 | 2287) || oid >= FIRST_USER_OID
}

/// The bytes with the oids of users' types made alike: first Basalt's of arrays and of tables' rows, whose first
/// byte tells them, then those that both servers count upwards, among the bytes that are left.
fn without_user_oids(bytes: &[u8]) -> Vec<u8> {
    let derived = |oid: &[u8]| matches!(oid, [0x20 | 0x40 | 0x60, 0, middle, _] if *middle >= 0x40);
    let counted = |oid: &[u8]| matches!(oid, [0, 0, middle, _] if (0x40..0xa0).contains(middle));
    let mut out = bytes.to_vec();
    let mut alike = vec![false; bytes.len()];
    replace_oids(&mut out, &mut alike, derived);
    replace_oids(&mut out, &mut alike, counted);
    out
}

fn replace_oids(bytes: &mut [u8], alike: &mut [bool], is_oid: impl Fn(&[u8]) -> bool) {
    for at in 0..bytes.len().saturating_sub(3) {
        let oid = at..at + 4;
        if !alike[oid.clone()].contains(&true) && is_oid(&bytes[oid.clone()]) {
            bytes[oid.clone()].copy_from_slice(b"user");
            alike[oid].fill(true);
        }
    }
}

fn show_row(row: &[Option<Vec<u8>>], binary: bool, structured: &[bool]) -> String {
    let values = row.iter().enumerate().map(|(at, value)| match value {
        None => "NULL".to_string(),
        Some(bytes) if binary && structured.get(at) == Some(&true) => format!("x{}", hex(&without_user_oids(bytes))),
        Some(bytes) if binary => format!("x{}", hex(bytes)),
        Some(bytes) => match String::from_utf8_lossy(bytes).replace('\\', "\\\\").replace('\n', "\\n") {
            text if text.is_empty() || text == "NULL" => format!("\"{text}\""),
            text => text,
        },
    });
    values.collect::<Vec<_>>().join("|")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Names for the oids of `pg_type` that tests meet most; others are shown as numbers.
fn type_name(oid: u32) -> String {
    let name = match oid {
        16 => "bool",
        17 => "bytea",
        18 => "char",
        19 => "name",
        20 => "int8",
        21 => "int2",
        23 => "int4",
        25 => "text",
        26 => "oid",
        114 => "json",
        700 => "float4",
        701 => "float8",
        1042 => "bpchar",
        1043 => "varchar",
        1082 => "date",
        1083 => "time",
        1114 => "timestamp",
        1184 => "timestamptz",
        1186 => "interval",
        1700 => "numeric",
        2950 => "uuid",
        3802 => "jsonb",
        FIRST_USER_OID.. => "user",
        other => return other.to_string(),
    };
    name.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oids(oids: &[u32]) -> Vec<u8> {
        oids.iter().flat_map(|oid| oid.to_be_bytes()).collect()
    }

    #[test]
    fn oids_of_users_are_alike_and_built_in_ones_stay() {
        let alike = oids(&[23, u32::from_be_bytes(*b"user"), 2206]);
        // 0x7573 reads "us", as an oid does that was made alike behind two zeros.
        for oid in [16384, 0x7573, 0x7575, 40_000, 0x2000_4000, 0x4000_7573] {
            assert_eq!(without_user_oids(&oids(&[23, oid, 2206])), alike, "{oid:#x}");
        }
    }

    #[test]
    fn what_was_made_alike_is_no_part_of_another_oid() {
        let two = oids(&[u32::from_be_bytes(*b"user"), u32::from_be_bytes(*b"user")]);
        assert_eq!(without_user_oids(&oids(&[0x4000_4000, 16384])), two);
        let behind_zeros = [&[0; 2][..], &0x2000_4000_u32.to_be_bytes()].concat();
        assert_eq!(without_user_oids(&behind_zeros), *b"\0\0user");
    }
}
