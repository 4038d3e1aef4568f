//! Unicode: escapes, normal forms (manual 9.4 and 9.4.1), and `parse_ident`.

use super::{DataType, Datum};
use crate::array_value;
use crate::error::{Error, Result};
use crate::functions::Kernel;
use crate::functions::arg::*;
use unicode_normalization::UnicodeNormalization;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("unistr", "text") => kernel!(|text: Txt| -> Txt { unistr(text) }),
        ("normalize", "text,text") => scalar!(|args, info| {
            let form = match args.get(1) {
                Some(_) => Txt::of(&args[1], &info.arg_types[1])?,
                None => "NFC",
            };
            Ok(Datum::text(&normalized(Txt::of(&args[0], &info.arg_types[0])?, form)?))
        }),
        ("is_normalized", "text,text") => scalar!(|args, info| {
            let form = match args.get(1) {
                Some(_) => Txt::of(&args[1], &info.arg_types[1])?,
                None => "NFC",
            };
            let text = Txt::of(&args[0], &info.arg_types[0])?;
            Ok(Datum::Bool(normalized(text, form)? == text))
        }),
        ("parse_ident", "text,bool") => scalar!(|args, info| {
            let strict = !matches!(args.get(1), Some(Datum::Bool(false)));
            let parts = parse_ident(Txt::of(&args[0], &info.arg_types[0])?, strict)?;
            let parts: Vec<Datum> = parts.iter().map(|part| Datum::text(part)).collect();
            array_value::encode(&DataType::Text, &parts)
        }),
        ("to_ascii", "text") => kernel!(|text: Txt| -> Txt { to_ascii(text, "UTF8") }),
        ("to_ascii", "text,name") => kernel!(|text: Txt, encoding: Txt| -> Txt { to_ascii(text, encoding) }),
        ("to_ascii", "text,int4") => kernel!(|text: Txt, encoding: I4| -> Txt {
            match usize::try_from(encoding).ok().and_then(|code| ENCODINGS.get(code)) {
                Some(name) => to_ascii(text, name),
                None => Err(Error::new("42704", format!("{encoding} is not a valid encoding code"))),
            }
        }),
        _ => return None,
    })
}

fn normalized(text: &str, form: &str) -> Result<String> {
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => text.nfc().collect(),
        "NFD" => text.nfd().collect(),
        "NFKC" => text.nfkc().collect(),
        "NFKD" => text.nfkd().collect(),
        _ => return Err(Error::invalid_parameter(format!("invalid normalization form: {form}"))),
    })
}

fn bad_escape() -> Error {
    Error::new("42601", "invalid Unicode escape")
        .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
}

/// The digits of one escape, after its backslash: code and length.
fn escape(rest: &str) -> Option<(u32, usize)> {
    let (prefix, digits) = match rest.as_bytes().first()? {
        b'+' => (1, 6),
        b'u' => (1, 4),
        b'U' => (1, 8),
        _ => (0, 4),
    };
    let hex = rest.get(prefix..prefix + digits)?;
    hex.bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| Some((u32::from_str_radix(hex, 16).ok()?, prefix + digits)))?
}

/// `unistr`: escapes stand for characters, surrogate pairs included.
fn unistr(text: &str) -> Result<String> {
    let pair_error = || Error::new("42601", "invalid Unicode surrogate pair");
    let mut out = String::with_capacity(text.len());
    let mut high: Option<u32> = None;
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        if char != '\\' || rest.starts_with('\\') {
            if high.is_some() {
                return Err(pair_error());
            }
            rest = if char == '\\' { &rest[1..] } else { rest };
            out.push(char);
            continue;
        }
        let (code, used) = escape(rest).ok_or_else(bad_escape)?;
        rest = &rest[used..];
        if code == 0 || code > 0x10_ffff {
            return Err(Error::invalid_parameter(format!("invalid Unicode code point: {code:04X}")));
        }
        match (high.take(), code) {
            (Some(first), 0xdc00..=0xdfff) => {
                let joined = 0x10000 + ((first - 0xd800) << 10) + (code - 0xdc00);
                out.extend(char::from_u32(joined));
            }
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(pair_error()),
            (None, 0xd800..=0xdbff) => high = Some(code),
            (None, code) => out.extend(char::from_u32(code)),
        }
    }
    if high.is_some() { Err(pair_error()) } else { Ok(out) }
}

fn is_ident_start(char: char) -> bool {
    char == '_' || char.is_ascii_alphabetic() || !char.is_ascii()
}

fn is_ident_part(char: char) -> bool {
    is_ident_start(char) || char.is_ascii_digit() || char == '$'
}

/// The parts of a qualified name. Not strict: what follows the last one is ignored.
fn parse_ident(text: &str, strict: bool) -> Result<Vec<String>> {
    let invalid = || Error::invalid_parameter(format!("string is not a valid identifier: \"{text}\""));
    let is_space = |char: char| matches!(char, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    let mut after_dot = false;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut body = quoted;
            loop {
                let end = body.find('"').ok_or_else(|| invalid().with_detail("String has unclosed double quotes."))?;
                name.push_str(&body[..end]);
                body = &body[end + 1..];
                match body.strip_prefix('"') {
                    Some(more) => {
                        name.push('"');
                        body = more;
                    }
                    None => break,
                }
            }
            if name.is_empty() {
                return Err(invalid().with_detail("Quoted identifier must not be empty."));
            }
            parts.push(name);
            rest = body;
        } else if rest.starts_with(is_ident_start) {
            let end = rest.find(|char| !is_ident_part(char)).unwrap_or(rest.len());
            parts.push(rest[..end].to_ascii_lowercase());
            rest = &rest[end..];
        } else if rest.starts_with('.') {
            return Err(invalid().with_detail("No valid identifier before \".\"."));
        } else if after_dot {
            return Err(invalid().with_detail("No valid identifier after \".\"."));
        } else {
            return Err(invalid());
        }
        rest = rest.trim_start_matches(is_space);
        match rest.strip_prefix('.') {
            Some(after) => {
                rest = after.trim_start_matches(is_space);
                after_dot = true;
            }
            None if rest.is_empty() || !strict => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

/// What the bytes from 128 on look most like, in the encodings for which PostgreSQL says so. Those that no UTF-8 text holds
/// (C0, C1, F5 to FF) are blank.
const ASCII_OF: [(&str, &[u8; 128]); 4] = [
    (
        "LATIN1",
        b"                                  cL Y  \"Ca  -R     'u .,      ?  AAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooo           ",
    ),
    (
        "LATIN2",
        b"                                 A L LS \"SSTZ-ZZ a,l'ls ,sstz\"zz  AAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoo           ",
    ),
    (
        "LATIN9",
        b"                                  cL YS sCa  -R     Zu .z   EeY?  AAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooo           ",
    ),
    (
        "WIN1250",
        b"  ' \"    %S<STZZ `'\"\".--  s>stzz   L A  \"CS  -RZ  ,l'u .,as L\"lz  AAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoo           ",
    ),
];

/// PostgreSQL's encodings by their numbers.
const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// `to_ascii`: the text's bytes are taken to be of the encoding.
fn to_ascii(text: &str, encoding: &str) -> Result<String> {
    let encoding = encoding.to_ascii_uppercase();
    if let Some((_, ascii)) = ASCII_OF.iter().find(|(name, _)| *name == encoding) {
        let letter = |byte: u8| if byte < 128 { byte } else { ascii[usize::from(byte) - 128] };
        return Ok(text.bytes().map(|byte| char::from(letter(byte))).collect());
    }
    match encoding.as_str() {
        "UNICODE" | "UTF-8" => to_ascii(text, "UTF8"),
        known if ENCODINGS.contains(&known) => {
            Err(Error::not_supported(format!("encoding conversion from {known} to ASCII not supported")))
        }
        _ => Err(Error::new("42704", format!("{encoding} is not a valid encoding name"))),
    }
}
