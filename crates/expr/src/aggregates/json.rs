//! `json_agg`, `jsonb_agg`, `json_object_agg`, `jsonb_object_agg` (manual table 9.57).
//!
//! Values are written as they come. Those whose text depends on the session come written already: the builder of
//! the call puts [`item`] around such arguments, and [`key`] around keys.

use super::{Binding, GroupsAccumulator};
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::eval::vector::{VectorBuilder, value_at};
use crate::functions::arg::scalar;
use crate::functions::json::build::{MembersOut, document};
use crate::functions::json::convert::JsonWriter;
use crate::functions::{Kernel, Registry, Volatility};
use crate::tree::Expr;
use arrow_array::{ArrayRef, BooleanArray};
use basalt_types::{DataType, Datum};

pub(super) fn bind(name: &str) -> Option<Binding> {
    Some(match name {
        "json_agg" | "jsonb_agg" => (
            |args, ty| Box::new(Elements { ty: ty.clone(), element: args[0].clone(), kept: Vec::new() }),
            |_, ty| vec![ty.clone()],
        ),
        "json_object_agg" | "jsonb_object_agg" => (
            |args, ty| Box::new(Members { ty: ty.clone(), types: args.to_vec(), kept: Vec::new() }),
            |_, _| vec![DataType::Array(Box::new(DataType::Text)), DataType::Array(Box::new(DataType::Text))],
        ),
        _ => return None,
    })
}

/// What stands before an element that is itself of several parts. PostgreSQL writes it between elements only.
const STRUCTURED: &str = "\n ";

fn is_structured(ty: &DataType) -> bool {
    matches!(ty.underlying(), DataType::Array(_) | DataType::Record | DataType::Composite(_))
}

/// Whether values of a type print in one way whatever the session's settings.
fn is_fixed(ty: &DataType) -> bool {
    use DataType::*;
    match ty {
        Bool | Int2 | Int4 | Int8 | Numeric(_) | Text | Varchar(_) | Bpchar(_) | Name | Date | Time | Timestamp
        | Uuid | Json | Jsonb => true,
        Array(element) => is_fixed(element),
        _ => false,
    }
}

/// The arguments of such a call as the accumulators take them, where that takes the session's settings.
pub(crate) fn prepare(registry: &Registry, name: &str, args: Vec<Expr>) -> Vec<Expr> {
    let result = match name {
        "json_agg" | "json_object_agg" => DataType::Json,
        "jsonb_agg" | "jsonb_object_agg" => DataType::Jsonb,
        _ => return args,
    };
    let has_keys = name.ends_with("object_agg");
    let wrap = |function: &str, arg: Expr, ty: DataType| match registry.functions(function) {
        [function] => Expr::Call { function, args: vec![arg], ty },
        _ => arg,
    };
    args.into_iter()
        .enumerate()
        .map(|(at, arg)| match has_keys && at == 0 {
            true if arg.ty() == DataType::Text => arg,
            true => wrap(KEY, arg, DataType::Text),
            false if is_fixed(&arg.ty()) => arg,
            // An element of unknown type is refused as such.
            false if !has_keys && arg.ty() == DataType::Unknown => arg,
            false => wrap(ITEM, arg, result.clone()),
        })
        .collect()
}

/// An argument before [`prepare`] had it written.
pub fn unwritten(arg: &Expr) -> &Expr {
    match arg {
        Expr::Call { function, args, .. } if matches!(function.name.as_str(), ITEM | KEY) => &args[0],
        arg => arg,
    }
}

const ITEM: &str = "basalt json item";
const KEY: &str = "basalt json key";

/// The functions that [`prepare`] calls.
pub(crate) fn functions() -> Vec<crate::functions::Function> {
    let function = |name: &str, kernel: Kernel| crate::functions::Function {
        oid: 0,
        name: name.to_string(),
        args: vec![crate::functions::TypePattern::Any],
        variadic: false,
        optional: 0,
        ret: crate::functions::TypePattern::Exact(DataType::Text),
        returns_set: false,
        strict: true,
        volatility: Volatility::Stable,
        kernel,
    };
    let item = scalar!(|args, info| {
        let mut out = Vec::new();
        if is_structured(&info.arg_types[0]) && *info.ty == DataType::Json {
            out.extend_from_slice(STRUCTURED.as_bytes());
        }
        JsonWriter::new(info.ty, info.ctx).write(&args[0], &info.arg_types[0], &mut out)?;
        Ok(Datum::Bytes(out.into()))
    });
    let key = scalar!(|args, info| {
        Ok(Datum::text(&JsonWriter::new(&DataType::Json, info.ctx).key(&args[0], &info.arg_types[0])?))
    });
    vec![function(ITEM, item), function(KEY, key)]
}

fn counted_rows<'a>(
    groups: &'a [u32],
    filter: Option<&BooleanArray>,
) -> impl Iterator<Item = (usize, usize)> + use<'a> {
    let filter = filter.map(crate::eval::is_true);
    groups
        .iter()
        .enumerate()
        .filter(move |(row, _)| filter.as_ref().is_none_or(|filter| filter.value(*row)))
        .map(|(row, group)| (row, *group as usize))
}

/// The elements of an array so far, without brackets; `None` before the first.
struct Elements {
    ty: DataType,
    element: DataType,
    kept: Vec<Option<Vec<u8>>>,
}

impl Elements {
    /// Where the next element of a group is written.
    fn next(&mut self, group: usize) -> &mut Vec<u8> {
        let kept = &mut self.kept[group];
        if let Some(text) = kept {
            text.extend_from_slice(b", ");
        }
        kept.get_or_insert_with(Vec::new)
    }

    fn texts(&self, show: impl Fn(&[u8]) -> Result<Datum>) -> Result<ArrayRef> {
        let mut builder = VectorBuilder::new(&self.ty, self.kept.len());
        for kept in &self.kept {
            match kept {
                Some(text) => builder.push(&show(text)?)?,
                None => builder.skip(),
            }
        }
        builder.finish()
    }
}

impl GroupsAccumulator for Elements {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.kept.resize(total_groups, None);
        let ctx = EvalContext::at(0);
        let (ty, element) = (self.ty.clone(), self.element.clone());
        let writer = JsonWriter::new(&ty, &ctx);
        let marked = is_structured(&element) && ty == DataType::Json;
        for (row, group) in counted_rows(groups, filter) {
            let value = value_at(&element, args[0].as_ref(), row);
            let out = self.next(group);
            if marked && !value.is_null() {
                out.extend_from_slice(STRUCTURED.as_bytes());
            }
            writer.write(&value, &element, out)?;
        }
        Ok(())
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.kept.resize(total_groups, None);
        for (row, group) in groups.iter().enumerate() {
            if let Datum::Bytes(text) = value_at(&self.ty, states[0].as_ref(), row) {
                self.next(*group as usize).extend_from_slice(&text);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let states = self.texts(|text| Ok(Datum::Bytes(text.into())))?;
        self.kept.clear();
        Ok(vec![states])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        self.texts(|text| {
            let text = text.strip_prefix(STRUCTURED.as_bytes()).unwrap_or(text);
            document([b"[", text, b"]"].concat())
        })
    }

    fn size_bytes(&self) -> usize {
        let texts = self.kept.iter().flatten().map(Vec::capacity).sum::<usize>();
        texts + self.kept.capacity() * size_of::<Option<Vec<u8>>>()
    }
}

/// Keys and written values.
type Pairs = Vec<(String, Vec<u8>)>;

struct Members {
    ty: DataType,
    types: Vec<DataType>,
    kept: Vec<Option<Pairs>>,
}

impl GroupsAccumulator for Members {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.kept.resize(total_groups, None);
        let ctx = EvalContext::at(0);
        let writer = JsonWriter::new(&self.ty, &ctx);
        for (row, group) in counted_rows(groups, filter) {
            let key = value_at(&self.types[0], args[0].as_ref(), row);
            if key.is_null() {
                return Err(Error::invalid_parameter("field name must not be null"));
            }
            let key = writer.key(&key, &self.types[0])?;
            let mut value = Vec::new();
            let given = value_at(&self.types[1], args[1].as_ref(), row);
            writer.write(&given, &self.types[1], &mut value)?;
            let value = value.strip_prefix(STRUCTURED.as_bytes()).map(<[u8]>::to_vec).unwrap_or(value);
            self.kept[group].get_or_insert_with(Vec::new).push((key, value));
        }
        Ok(())
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.kept.resize(total_groups, None);
        let texts = DataType::Array(Box::new(DataType::Text));
        let column = |at: usize, row: usize| -> Result<Option<Vec<Datum>>> {
            match value_at(&texts, states[at].as_ref(), row) {
                Datum::Bytes(bytes) => Ok(Some(crate::array_value::elements(&DataType::Text, &bytes)?)),
                _ => Ok(None),
            }
        };
        for (row, group) in groups.iter().enumerate() {
            let (Some(keys), Some(values)) = (column(0, row)?, column(1, row)?) else { continue };
            let pairs = self.kept[*group as usize].get_or_insert_with(Vec::new);
            for (key, value) in keys.into_iter().zip(values) {
                if let (Datum::Bytes(key), Datum::Bytes(value)) = (key, value) {
                    pairs.push((String::from_utf8_lossy(&key).into_owned(), value.to_vec()));
                }
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let kept = std::mem::take(&mut self.kept);
        let texts = DataType::Array(Box::new(DataType::Text));
        let mut keys = VectorBuilder::new(&texts, kept.len());
        let mut values = VectorBuilder::new(&texts, kept.len());
        for pairs in &kept {
            let Some(pairs) = pairs else {
                keys.skip();
                values.skip();
                continue;
            };
            let all: Vec<Datum> = pairs.iter().map(|(key, _)| Datum::text(key)).collect();
            keys.push(&crate::array_value::encode(&DataType::Text, &all)?)?;
            let all: Vec<Datum> = pairs.iter().map(|(_, value)| Datum::Bytes(value.as_slice().into())).collect();
            values.push(&crate::array_value::encode(&DataType::Text, &all)?)?;
        }
        Ok(vec![keys.finish()?, values.finish()?])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut builder = VectorBuilder::new(&self.ty, self.kept.len());
        for pairs in &self.kept {
            let Some(pairs) = pairs else {
                builder.skip();
                continue;
            };
            let mut members = MembersOut::new(&self.ty);
            pairs.iter().for_each(|(key, value)| members.push(key.clone(), value.clone()));
            builder.push(&members.finish("{ ", " }")?)?;
        }
        builder.finish()
    }

    fn size_bytes(&self) -> usize {
        let pairs = self.kept.iter().flatten().flatten();
        let heap = pairs.map(|(key, value)| key.capacity() + value.capacity() + size_of::<(String, Vec<u8>)>());
        heap.sum::<usize>() + self.kept.capacity() * size_of::<Option<Pairs>>()
    }
}
