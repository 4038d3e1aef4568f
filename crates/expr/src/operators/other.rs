//! Concatenation, JSON and array operators.

use crate::error::Result;
use crate::eval::room::check_longer;
use crate::functions::arg::*;
use crate::functions::{CallInfo, Kernel, arrays, json};
use basalt_types::{DataType, Datum};

pub(super) fn bind(function: &str, right: &str) -> Option<Kernel> {
    Some(match function {
        "textcat" => written!(|a: Txt, b: Txt; out| {
            check_longer(a.len(), b.len())?;
            out.push_str(a);
            out.push_str(b);
            Ok(())
        }),
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

/// As the cast to text prints: booleans in full, addresses with their length.
pub(crate) fn printed(value: &Datum, at: usize, info: &CallInfo) -> Result<String> {
    let text = crate::cast::cast_datum(&info.arg_types[at], &DataType::Text, value, true, info.ctx)?;
    Ok(Txt::of(&text, &DataType::Text)?.to_string())
}
