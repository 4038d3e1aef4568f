//! Enum functions (manual 9.10). Only the type of their arguments matters where the values are null.

use super::arg::*;
use super::{CallInfo, Kernel};
use crate::array_value;
use crate::error::{Error, Result};
use basalt_types::{DataType, Datum, EnumDef};

pub(super) fn bind(name: &str, _args: &str) -> Option<Kernel> {
    Some(match name {
        "enum_first" => scalar!(|_, info| end(info, definition(info)?.labels.first())),
        "enum_last" => scalar!(|_, info| end(info, definition(info)?.labels.last())),
        "enum_range" => scalar!(|args, info| {
            let definition = definition(info)?;
            let bound = |at: usize| match args.get(at) {
                Some(Datum::F64(bound)) if args.len() == 2 => Some(*bound),
                _ => None,
            };
            let (least, greatest) = (bound(0).unwrap_or(f64::NEG_INFINITY), bound(1).unwrap_or(f64::INFINITY));
            let inside = definition.labels.iter().map(|label| label.position);
            let inside: Vec<Datum> = inside.filter(|at| (least..=greatest).contains(at)).map(Datum::F64).collect();
            array_value::encode(&info.arg_types[0], &inside)
        }),
        _ => return None,
    })
}

fn definition<'a>(info: &'a CallInfo) -> Result<&'a EnumDef> {
    match info.arg_types[0].underlying() {
        DataType::Enum(definition) => Ok(definition),
        _ => Err(Error::new("0A000", "could not determine actual enum type")),
    }
}

fn end(info: &CallInfo, label: Option<&basalt_types::EnumLabel>) -> Result<Datum> {
    match label {
        Some(label) => Ok(Datum::F64(label.position)),
        None => Err(Error::new("55000", format!("enum {} contains no values", info.arg_types[0].sql_name()))),
    }
}
