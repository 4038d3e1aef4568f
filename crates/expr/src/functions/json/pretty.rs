//! `jsonb_pretty`: a value per line, four blanks a level.

use super::text_from;
use crate::error::Result;
use crate::eval::room::check_longer;
use crate::functions::Kernel;
use crate::functions::arg::*;
use basalt_types::jsonb::{self, Token};

pub(super) fn bind(name: &str) -> Option<Kernel> {
    match name {
        "jsonb_pretty" => Some(kernel!(|json: Txt| -> Txt { pretty(json) })),
        _ => None,
    }
}

fn pretty(json: &str) -> Result<String> {
    let mut out: Vec<u8> = Vec::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let (mut is_first, mut after_key) = (true, false);
    let new_line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 4));
    };
    for token in jsonb::tokens(json) {
        // Blanks are many times the document's length where it is deep.
        check_longer(out.len(), depth * 4)?;
        if let Token::EndObject | Token::EndArray = token {
            depth = depth.saturating_sub(1);
            new_line(&mut out, depth);
            out.push(if token == Token::EndObject { b'}' } else { b']' });
            is_first = false;
            continue;
        }
        if !std::mem::take(&mut after_key) && depth > 0 {
            if !is_first {
                out.push(b',');
            }
            new_line(&mut out, depth);
        }
        is_first = false;
        match token {
            Token::BeginObject | Token::BeginArray => {
                out.push(if token == Token::BeginObject { b'{' } else { b'[' });
                depth += 1;
                is_first = true;
            }
            Token::Key(quoted) => {
                out.extend_from_slice(quoted.as_bytes());
                out.extend_from_slice(b": ");
                after_key = true;
            }
            Token::Scalar(text) => out.extend_from_slice(text.as_bytes()),
            Token::EndObject | Token::EndArray => {}
        }
    }
    text_from(out)
}
