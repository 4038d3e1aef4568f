//! `inet` and `cidr` (manual 8.9): an address of IPv4 or IPv6 and how many of its bits name the network.
//!
//! A value rests as bytes that compare as PostgreSQL compares values: the family (4 or 6), the address with the bits of
//! the host cleared, the number of bits of the network, and, unless it is zero, the part of the host in as many bytes
//! as the address has. So a network comes before all that it contains, and before hosts that have its length.

mod input;
mod output;
#[cfg(test)]
mod tests;

pub use input::{parse_cidr, parse_inet};

use crate::error::{Error, Result};
use std::net::IpAddr;

const FORM_V4: u8 = 4;
const FORM_V6: u8 = 6;
/// The families in PostgreSQL's binary form.
const WIRE_V4: u8 = 2;
const WIRE_V6: u8 = 3;

/// An address with the length of its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inet {
    /// Of IPv4 the last 32 bits, the others are 0.
    address: u128,
    /// At most [`Inet::width`].
    bits: u8,
    v6: bool,
}

impl Inet {
    /// A host.
    pub fn of_ip(ip: IpAddr) -> Inet {
        match ip {
            IpAddr::V4(ip) => Inet { address: u128::from(u32::from(ip)), bits: 32, v6: false },
            IpAddr::V6(ip) => Inet { address: u128::from(ip), bits: 128, v6: true },
        }
    }

    fn from_octets(octets: &[u8], bits: u8, v6: bool) -> Inet {
        Inet { address: octets.iter().fold(0, |address, octet| address << 8 | u128::from(*octet)), bits, v6 }
    }

    /// Bits of the address.
    pub fn width(self) -> u8 {
        if self.v6 { 128 } else { 32 }
    }

    fn octets(self) -> Vec<u8> {
        self.address.to_be_bytes()[16 - usize::from(self.width() / 8)..].to_vec()
    }

    /// All bits that an address of the family has.
    fn all(self) -> u128 {
        u128::MAX >> (128 - u32::from(self.width()))
    }

    /// The bits of the host.
    fn host_mask(self) -> u128 {
        self.all().checked_shr(u32::from(self.bits)).unwrap_or(0)
    }

    /// Whether no bit of the host is set, as `cidr` asks.
    pub fn is_network(self) -> bool {
        self.address & self.host_mask() == 0
    }

    /// As it rests.
    pub fn encode(self) -> Vec<u8> {
        let mask = self.host_mask();
        let mut out = vec![if self.v6 { FORM_V6 } else { FORM_V4 }];
        out.extend(Inet { address: self.address & !mask, ..self }.octets());
        out.push(self.bits);
        if !self.is_network() {
            out.extend(Inet { address: self.address & mask, ..self }.octets());
        }
        out
    }

    /// The inverse of [`Inet::encode`]; XX001 for bytes that are none.
    pub fn decode(bytes: &[u8]) -> Result<Inet> {
        let damaged = || Error::new("XX001", format!("stored bytes are no network address: {bytes:02x?}"));
        let (family, rest) = bytes.split_first().ok_or_else(damaged)?;
        let v6 = match *family {
            FORM_V4 => false,
            FORM_V6 => true,
            _ => return Err(damaged()),
        };
        let length = if v6 { 16 } else { 4 };
        let (network, rest) = rest.split_at_checked(length).ok_or_else(damaged)?;
        let (bits, host) = rest.split_first().ok_or_else(damaged)?;
        if usize::from(*bits) > length * 8 || !(host.is_empty() || host.len() == length) {
            return Err(damaged());
        }
        let network = Inet::from_octets(network, *bits, v6);
        Ok(Inet { address: network.address | Inet::from_octets(host, *bits, v6).address, ..network })
    }

    /// PostgreSQL's binary form.
    pub fn write_binary(self, is_cidr: bool, out: &mut Vec<u8>) {
        let family = if self.v6 { WIRE_V6 } else { WIRE_V4 };
        out.extend([family, self.bits, u8::from(is_cidr), self.width() / 8]);
        out.extend(self.octets());
    }

    /// The inverse of [`Inet::write_binary`]; 22P03 for what is no address, or no network where `is_cidr`.
    pub fn read_binary(bytes: &[u8], is_cidr: bool) -> Result<Inet> {
        let name = if is_cidr { "cidr" } else { "inet" };
        let invalid = |what: &str| Error::invalid_binary(format!("invalid {what} in external \"{name}\" value"));
        let (family, rest) = bytes.split_first().ok_or_else(Error::short_binary)?;
        let v6 = match *family {
            WIRE_V4 => false,
            WIRE_V6 => true,
            _ => return Err(invalid("address family")),
        };
        let (bits, rest) = rest.split_first().ok_or_else(Error::short_binary)?;
        let length = if v6 { 16 } else { 4 };
        if usize::from(*bits) > length * 8 {
            return Err(invalid("bits"));
        }
        let ([_, told], octets) = rest.split_first_chunk::<2>().ok_or_else(Error::short_binary)?;
        if usize::from(*told) != length {
            return Err(invalid("length"));
        }
        match octets.len().cmp(&length) {
            std::cmp::Ordering::Less => return Err(Error::short_binary()),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => return Err(Error::invalid_binary("incorrect binary data format")),
        }
        let address = Inet::from_octets(octets, *bits, v6);
        if is_cidr && !address.is_network() {
            return Err(Error::invalid_binary("invalid external \"cidr\" value")
                .with_detail("Value has bits set to right of mask."));
        }
        Ok(address)
    }

    /// What PostgreSQL hashes: the family, the length of the network, the address.
    pub fn hash_bytes(self) -> Vec<u8> {
        let mut out = vec![if self.v6 { WIRE_V6 } else { WIRE_V4 }, self.bits];
        out.extend(self.octets());
        out
    }

    /// 4 or 6.
    pub fn family(self) -> i32 {
        if self.v6 { 6 } else { 4 }
    }

    pub fn bits(self) -> i32 {
        i32::from(self.bits)
    }

    pub fn network(self) -> Inet {
        Inet { address: self.address & !self.host_mask(), ..self }
    }

    /// The last address of the network.
    pub fn broadcast(self) -> Inet {
        Inet { address: self.address | self.host_mask(), ..self }
    }

    pub fn netmask(self) -> Inet {
        Inet { address: self.all() & !self.host_mask(), bits: self.width(), ..self }
    }

    pub fn hostmask(self) -> Inet {
        Inet { address: self.host_mask(), bits: self.width(), ..self }
    }

    /// With another length of the network, -1 for that of a host. 22023 for one that the family does not have.
    pub fn with_bits(self, bits: i32) -> Result<Inet> {
        let bits = if bits == -1 { i32::from(self.width()) } else { bits };
        match u8::try_from(bits) {
            Ok(bits) if bits <= self.width() => Ok(Inet { bits, ..self }),
            _ => Err(Error::invalid_parameter(format!("invalid mask length: {bits}"))),
        }
    }

    pub fn same_family(self, other: Inet) -> bool {
        self.v6 == other.v6
    }

    /// Whether both have the same first `bits` bits.
    fn shares(self, other: Inet, bits: u8) -> bool {
        self.v6 == other.v6 && self.common_bits(other) >= u32::from(bits)
    }

    /// How many bits of two addresses of one family are the same from the left.
    fn common_bits(self, other: Inet) -> u32 {
        (self.address ^ other.address).leading_zeros() - (128 - u32::from(self.width()))
    }

    /// How PostgreSQL's `network_cmp` compares: by family, by the bits that both networks have, by their lengths, by the
    /// whole address. Less than, equal to or greater than 0.
    pub fn compare(self, other: Inet) -> i32 {
        if self.v6 != other.v6 {
            return self.family().cmp(&other.family()) as i32;
        }
        let of_network = self.compare_bits(other, self.bits.min(other.bits));
        if of_network != 0 {
            return of_network;
        }
        match self.bits() - other.bits() {
            0 => self.compare_bits(other, self.width()),
            longer => longer,
        }
    }

    /// The difference of the first whole byte that is another, or the order of the bits behind.
    fn compare_bits(self, other: Inet, bits: u8) -> i32 {
        let whole = usize::from(bits / 8);
        let (a, b) = (self.octets(), other.octets());
        if let Some((a, b)) = a.iter().zip(&b).take(whole).find(|(a, b)| a != b) {
            return i32::from(*a) - i32::from(*b);
        }
        let first = |octets: &[u8]| octets.get(whole).map_or(0, |octet| u32::from(*octet) >> (8 - bits % 8));
        first(&a).cmp(&first(&b)) as i32
    }

    /// Whether all addresses of the other network are in this one (`>>=`).
    pub fn contains(self, other: Inet) -> bool {
        self.bits <= other.bits && self.shares(other, self.bits)
    }

    /// [`Inet::contains`], and the other network is smaller (`>>`).
    pub fn strictly_contains(self, other: Inet) -> bool {
        self.bits < other.bits && self.shares(other, self.bits)
    }

    pub fn overlaps(self, other: Inet) -> bool {
        self.shares(other, self.bits.min(other.bits))
    }

    /// The smallest network with both; 22023 for two families.
    pub fn merge(self, other: Inet) -> Result<Inet> {
        if self.v6 != other.v6 {
            return Err(Error::invalid_parameter("cannot merge addresses from different families"));
        }
        let shared = self.common_bits(other).min(u32::from(self.bits)).min(u32::from(other.bits));
        Ok(Inet { bits: shared as u8, ..self }.network())
    }

    /// Bit by bit; 22023 for two families.
    pub fn combine(self, other: Inet, what: &str, op: impl Fn(u128, u128) -> u128) -> Result<Inet> {
        if self.v6 != other.v6 {
            return Err(Error::invalid_parameter(format!("cannot {what} inet values of different sizes")));
        }
        Ok(Inet { address: op(self.address, other.address), bits: self.bits.max(other.bits), ..self })
    }

    pub fn invert(self) -> Inet {
        Inet { address: !self.address & self.all(), ..self }
    }

    /// The address so many further on; 22003 beyond the family's last.
    pub fn plus(self, count: i128) -> Result<Inet> {
        let sum = match u128::try_from(count) {
            Ok(count) => self.address.checked_add(count),
            Err(_) => self.address.checked_sub(count.unsigned_abs()),
        };
        let address = sum.filter(|address| *address <= self.all()).ok_or_else(out_of_range)?;
        Ok(Inet { address, ..self })
    }

    /// How many addresses lie between two; 22003 where that is no bigint.
    pub fn distance(self, other: Inet) -> Result<i64> {
        if self.v6 != other.v6 {
            return Err(Error::invalid_parameter("cannot subtract inet values of different sizes"));
        }
        let apart = match self.address.checked_sub(other.address) {
            Some(apart) => i128::try_from(apart).ok(),
            None => i128::try_from(other.address - self.address).ok().map(|apart| -apart),
        };
        apart.and_then(|apart| i64::try_from(apart).ok()).ok_or_else(out_of_range)
    }
}

fn out_of_range() -> Error {
    Error::new("22003", "result is out of range")
}
