//! Concatenation, JSON and array operators.

use crate::functions::arg::*;
use crate::functions::strings::text_of;
use crate::functions::{Kernel, arrays, json};

pub(super) fn bind(function: &str, right: &str) -> Option<Kernel> {
    Some(match function {
        "textcat" => kernel!(|a: Txt, b: Txt| -> Txt { Ok([a, b].concat()) }),
        "byteacat" => kernel!(|a: Byt, b: Byt| -> Byt { Ok([a, b].concat()) }),
        "textanycat" => kernel!(|a: Txt, b: Val; info| -> Txt { Ok([a, &printed(&b, 1, info)?].concat()) }),
        "anytextcat" => kernel!(|a: Val, b: Txt; info| -> Txt { Ok([&printed(&a, 0, info)?, b].concat()) }),
        "starts_with" => kernel!(|text: Txt, prefix: Txt| -> Bit { Ok(text.starts_with(prefix)) }),
        "jsonb_delete" => json::deletion(right),
        name if name.starts_with("json") => return json::bind(name, ""),
        name if name.starts_with("array") => return arrays::bind(name, ""),
        _ => return None,
    })
}

/// As the cast to text prints: booleans in full.
fn printed(value: &basalt_types::Datum, at: usize, info: &crate::functions::CallInfo) -> crate::error::Result<String> {
    match value {
        basalt_types::Datum::Bool(value) => Ok(value.to_string()),
        value => Ok(text_of(value, at, info)?.into_owned()),
    }
}
