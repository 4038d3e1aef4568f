//! Functions and operators of network addresses (manual 9.12).

use super::Kernel;
use super::arg::*;
use crate::error::Result;
use crate::eval::vector::VectorBuilder;
use crate::inet::Inet;
use crate::macaddr;
use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use basalt_types::{DataType, Datum};

/// `inet` and `cidr`.
struct Net;

impl Arg for Net {
    type Value<'a> = Inet;
    type Column<'a> = <Byt as Arg>::Column<'a>;

    fn of(value: &Datum, ty: &DataType) -> Result<Inet> {
        Inet::decode(Byt::of(value, ty)?)
    }

    fn column<'a>(array: &'a ArrayRef, ty: &DataType) -> Result<Self::Column<'a>> {
        Byt::column(array, ty)
    }

    fn at<'a: 'a>(column: &Self::Column<'a>, index: usize) -> Result<Inet> {
        Inet::decode(column.value(index))
    }
}

impl Out for Net {
    type Value<'v> = Inet;
    type Builder = VectorBuilder;

    fn datum(value: Inet, ty: &DataType) -> Result<Datum> {
        Byt::datum(value.encode(), ty)
    }

    fn builder(ty: &DataType, rows: usize) -> VectorBuilder {
        VectorBuilder::of_batch(ty, rows)
    }

    fn push(builder: &mut VectorBuilder, value: Inet, ty: &DataType) -> Result<()> {
        Byt::push(builder, value.encode(), ty)
    }

    fn skip(builder: &mut VectorBuilder) {
        builder.skip();
    }

    fn finish(builder: VectorBuilder, _: Option<NullBuffer>, _: &DataType) -> Result<ArrayRef> {
        builder.finish()
    }
}

/// Functions of `pg_proc`, by name and argument types.
pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("abbrev", "inet") => kernel!(|a: Net| -> Txt { Ok(a.print()) }),
        ("abbrev", "cidr") => kernel!(|a: Net| -> Txt { Ok(a.abbreviated()) }),
        ("host", "inet") => kernel!(|a: Net| -> Txt { Ok(a.host()) }),
        ("text", "inet") => kernel!(|a: Net| -> Txt { Ok(a.with_length()) }),
        ("broadcast", "inet") => kernel!(|a: Net| -> Net { Ok(a.broadcast()) }),
        ("network", "inet") => kernel!(|a: Net| -> Net { Ok(a.network()) }),
        ("netmask", "inet") => kernel!(|a: Net| -> Net { Ok(a.netmask()) }),
        ("hostmask", "inet") => kernel!(|a: Net| -> Net { Ok(a.hostmask()) }),
        ("family", "inet") => kernel!(|a: Net| -> I4 { Ok(a.family()) }),
        ("masklen", "inet") => kernel!(|a: Net| -> I4 { Ok(a.bits()) }),
        ("set_masklen", "inet,int4") => kernel!(|a: Net, bits: I4| -> Net { a.with_bits(bits) }),
        ("set_masklen", "cidr,int4") => {
            kernel!(|a: Net, bits: I4| -> Net { a.with_bits(bits).map(Inet::network) })
        }
        ("inet_merge", "inet,inet") => kernel!(|a: Net, b: Net| -> Net { a.merge(b) }),
        ("network_cmp", "inet,inet") => kernel!(|a: Net, b: Net| -> I4 { Ok(a.compare(b)) }),
        ("inet_same_family", "inet,inet") => kernel!(|a: Net, b: Net| -> Bit { Ok(a.same_family(b)) }),
        ("trunc", "macaddr") => kernel!(|a: I8| -> I8 { Ok(a & !0xff_ffff) }),
        ("trunc", "macaddr8") => kernel!(|a: I8| -> I8 { Ok(a & !0xff_ffff_ffff) }),
        // The second lowest bit of the first byte says that the address is made up.
        ("macaddr8_set7bit", "macaddr8") => kernel!(|a: I8| -> I8 { Ok(a | 2 << 56) }),
        _ => return None,
    })
}

/// What an operator's function does.
pub(crate) fn operator(function: &str) -> Option<Kernel> {
    Some(match function {
        "network_sub" => kernel!(|a: Net, b: Net| -> Bit { Ok(b.strictly_contains(a)) }),
        "network_subeq" => kernel!(|a: Net, b: Net| -> Bit { Ok(b.contains(a)) }),
        "network_sup" => kernel!(|a: Net, b: Net| -> Bit { Ok(a.strictly_contains(b)) }),
        "network_supeq" => kernel!(|a: Net, b: Net| -> Bit { Ok(a.contains(b)) }),
        "network_overlap" => kernel!(|a: Net, b: Net| -> Bit { Ok(a.overlaps(b)) }),
        "inetnot" => kernel!(|a: Net| -> Net { Ok(a.invert()) }),
        "inetand" => kernel!(|a: Net, b: Net| -> Net { a.combine(b, "AND", |a, b| a & b) }),
        "inetor" => kernel!(|a: Net, b: Net| -> Net { a.combine(b, "OR", |a, b| a | b) }),
        "inetpl" => kernel!(|a: Net, count: I8| -> Net { a.plus(i128::from(count)) }),
        "int8pl_inet" => kernel!(|count: I8, a: Net| -> Net { a.plus(i128::from(count)) }),
        "inetmi_int8" => kernel!(|a: Net, count: I8| -> Net { a.plus(-i128::from(count)) }),
        "inetmi" => kernel!(|a: Net, b: Net| -> I8 { a.distance(b) }),
        "macaddr_not" => kernel!(|a: I8| -> I8 { Ok(!a & 0xffff_ffff_ffff) }),
        "macaddr_and" => kernel!(|a: I8, b: I8| -> I8 { Ok(a & b) }),
        "macaddr_or" => kernel!(|a: I8, b: I8| -> I8 { Ok(a | b) }),
        "macaddr8_not" => kernel!(|a: I8| -> I8 { Ok(bitwise(a, a, |a, _| !a)) }),
        "macaddr8_and" => kernel!(|a: I8, b: I8| -> I8 { Ok(bitwise(a, b, |a, b| a & b)) }),
        "macaddr8_or" => kernel!(|a: I8, b: I8| -> I8 { Ok(bitwise(a, b, |a, b| a | b)) }),
        _ => return None,
    })
}

/// On the bits of addresses of eight bytes.
fn bitwise(a: i64, b: i64, op: impl Fn(u64, u64) -> u64) -> i64 {
    let bits = |value| u64::from_be_bytes(macaddr::eight(value));
    macaddr::of_eight(op(bits(a), bits(b)).to_be_bytes())
}
