//! Addresses as text.

use super::Inet;
use std::fmt::Write;

impl Inet {
    /// The address without a length.
    pub fn host(self) -> String {
        let octets = self.octets();
        if self.v6 { v6_text(&words_of(&octets)) } else { dotted(&octets) }
    }

    /// The address and its length (`text`, and what a `cidr` prints).
    pub fn with_length(self) -> String {
        format!("{}/{}", self.host(), self.bits)
    }

    /// What an `inet` prints: the length unless it is a host's.
    pub fn print(self) -> String {
        if self.bits == self.width() { self.host() } else { self.with_length() }
    }

    /// `abbrev(cidr)`: only as much of the address as the network takes.
    pub fn abbreviated(self) -> String {
        let mut out = match (self.v6, self.bits) {
            (false, 0) => "0".to_string(),
            (true, 0) => "::".to_string(),
            (false, bits) => dotted(&self.network().octets()[..usize::from(bits.div_ceil(8))]),
            (true, bits) => v6_short(&self.network().octets(), bits),
        };
        write!(out, "/{}", self.bits).ok();
        out
    }
}

fn dotted(octets: &[u8]) -> String {
    octets.iter().map(u8::to_string).collect::<Vec<_>>().join(".")
}

fn words_of(octets: &[u8]) -> Vec<u16> {
    octets.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
}

/// The first of the longest runs of two zeros or more is left out; addresses of IPv4 inside have dots.
fn v6_text(words: &[u16]) -> String {
    let (mut start, mut length) = (0, 0);
    let mut at = 0;
    while at < words.len() {
        let run = words[at..].iter().take_while(|word| **word == 0).count();
        if run > length.max(1) {
            (start, length) = (at, run);
        }
        at += run.max(1);
    }
    let holds_v4 = length > 0 && start == 0 && (length == 6 || (length == 5 && words[5] == 0xffff));
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        if length > 0 && (start..start + length).contains(&at) {
            if at == start {
                out.push(':');
            }
            continue;
        }
        if at != 0 {
            out.push(':');
        }
        if holds_v4 && at == 6 {
            let octets: Vec<u8> = words[6..].iter().flat_map(|word| word.to_be_bytes()).collect();
            out.push_str(&dotted(&octets));
            return out;
        }
        write!(out, "{word:x}").ok();
    }
    if length > 0 && start + length == words.len() {
        out.push(':');
    }
    out
}

/// The words of a network of IPv6 (at least two), with the longest run of zeros left out. Where a run is no longer than
/// one before it, PostgreSQL counts the next on top of it; so does this.
fn v6_short(octets: &[u8], bits: u8) -> String {
    let count = usize::from(bits.div_ceil(16)).max(2);
    let words = &words_of(octets)[..count];
    let (mut start, mut length) = (0, 0);
    let (mut run_start, mut run) = (0, 0);
    for (at, word) in words.iter().enumerate() {
        if *word == 0 {
            if run == 0 {
                run_start = at;
            }
            run += 1;
        } else if length < run {
            (start, length) = (run_start, run);
            run = 0;
        }
    }
    if length < run {
        (start, length) = (run_start, run);
    }
    let is_mapped = length == 5 && octets[10] == 0xff && octets[11] == 0xff;
    let is_low = length == 7 && octets[14] != 0 && octets[15] != 1;
    let holds_v4 = length != count && start == 0 && (length == 6 || is_mapped || is_low);
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        if length > 0 && (start..start + length).contains(&at) {
            if at == start {
                out.push(':');
            }
            if at == count - 1 {
                out.push(':');
            }
            continue;
        }
        if holds_v4 && at > 5 {
            out.push(if at == 6 { ':' } else { '.' });
            let [first, second] = word.to_be_bytes();
            write!(out, "{first}").ok();
            // The last octet may be no part of the network.
            if at != 7 || bits > 120 {
                write!(out, ".{second}").ok();
            }
            continue;
        }
        if !out.is_empty() {
            out.push(':');
        }
        write!(out, "{word:x}").ok();
    }
    out
}
