//! Character sets of `convert` and its kin (manual 24.3): UTF8, the ISO 8859 and Windows families of one byte
//! a character by their tables, SQL_ASCII as it is.

use crate::error::{Error, Result};

/// A character set that text converts to and from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    Utf8,
    /// Bytes without meaning.
    SqlAscii,
    Latin1,
    Latin9,
    Win1252,
}

impl Encoding {
    /// As PostgreSQL reads names: letters and digits count, case does not.
    pub(crate) fn named(name: &str) -> Option<Encoding> {
        let plain: String =
            name.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()).collect();
        Some(match plain.as_str() {
            "utf8" | "unicode" => Encoding::Utf8,
            "sqlascii" => Encoding::SqlAscii,
            "latin1" | "iso88591" => Encoding::Latin1,
            "latin9" | "iso885915" => Encoding::Latin9,
            "win1252" | "windows1252" => Encoding::Win1252,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF8",
            Encoding::SqlAscii => "SQL_ASCII",
            Encoding::Latin1 => "LATIN1",
            Encoding::Latin9 => "LATIN9",
            Encoding::Win1252 => "WIN1252",
        }
    }

    /// The character of a byte from 0x80 on.
    fn char_of(self, byte: u8) -> Option<char> {
        match self {
            Encoding::Win1252 if (0x80..0xa0).contains(&byte) => {
                Some(WIN1252[usize::from(byte) - 0x80]).filter(|char| *char != '\0')
            }
            Encoding::Latin9 => Some(match byte {
                0xa4 => '€',
                0xa6 => 'Š',
                0xa8 => 'š',
                0xb4 => 'Ž',
                0xb8 => 'ž',
                0xbc => 'Œ',
                0xbd => 'œ',
                0xbe => 'Ÿ',
                byte => char::from(byte),
            }),
            _ => Some(char::from(byte)),
        }
    }
}

const WIN1252: [char; 32] = [
    '€', '\0', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\0', 'Ž', '\0', '\0', '‘', '’', '“', '”', '•',
    '–', '—', '˜', '™', 'š', '›', 'œ', '\0', 'ž', 'Ÿ',
];

const KNOWN: &str = " euc_jp euc_cn euc_kr euc_tw euc_jis_2004 mule_internal latin2 latin3 latin4 latin5 latin6 latin7 \
latin8 latin10 win1256 win1258 win866 win874 koi8r koi8u win1251 win1250 win1253 win1254 win1255 win1257 iso_8859_5 \
iso_8859_6 iso_8859_7 iso_8859_8 sjis big5 gbk uhc gb18030 johab shift_jis_2004 ";

fn find(name: &str, which: &str) -> Result<Encoding> {
    match Encoding::named(name) {
        Some(encoding) => Ok(encoding),
        None if KNOWN.contains(&format!(" {} ", name.to_ascii_lowercase())) => {
            Err(Error::not_supported(format!("encoding {name} is not supported"))
                .with_hint("Supported are UTF8, LATIN1, LATIN9, WIN1252 and SQL_ASCII."))
        }
        None => Err(Error::invalid_parameter(format!("invalid {which} encoding name \"{name}\""))),
    }
}

/// 22023 if there is no encoding of the name.
pub(crate) fn source(name: &str) -> Result<Encoding> {
    find(name, "source")
}

/// As [`source`], with the other word in the message.
pub(crate) fn destination(name: &str) -> Result<Encoding> {
    find(name, "destination")
}

/// Bytes to text; 22021 for bytes that are no text of the encoding, 22P05 for ones without a character.
pub(crate) fn decode(bytes: &[u8], encoding: Encoding) -> Result<String> {
    if let Encoding::Utf8 | Encoding::SqlAscii = encoding {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return Err(Error::invalid_utf8(bytes, error.valid_up_to())),
        };
        if text.contains('\0') {
            return Err(Error::new(
                "22021",
                format!("invalid byte sequence for encoding \"{}\": 0x00", encoding.name()),
            ));
        }
        return Ok(text.to_string());
    }
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0 => {
                let message = format!("invalid byte sequence for encoding \"{}\": 0x00", encoding.name());
                return Err(Error::new("22021", message));
            }
            0x01..0x80 => out.push(char::from(*byte)),
            byte => out.push(encoding.char_of(*byte).ok_or_else(|| {
                let name = encoding.name();
                Error::new(
                    "22P05",
                    format!(
                        "character with byte sequence 0x{byte:02x} in encoding \"{name}\" has no equivalent in encoding \
                         \"UTF8\""
                    ),
                )
            })?),
        }
    }
    Ok(out)
}

/// Text to bytes; 22P05 for characters that the encoding does not have.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Result<Vec<u8>> {
    if let Encoding::Utf8 | Encoding::SqlAscii = encoding {
        return Ok(text.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(text.len());
    for char in text.chars() {
        if char.is_ascii() {
            out.push(char as u8);
            continue;
        }
        let found = (0x80..=0xff).find(|byte| encoding.char_of(*byte) == Some(char));
        out.push(found.ok_or_else(|| {
            let mut utf8 = [0; 4];
            let shown: Vec<String> = char.encode_utf8(&mut utf8).bytes().map(|byte| format!("0x{byte:02x}")).collect();
            Error::new(
                "22P05",
                format!(
                    "character with byte sequence {} in encoding \"UTF8\" has no equivalent in encoding \"{}\"",
                    shown.join(" "),
                    encoding.name()
                ),
            )
        })?);
    }
    Ok(out)
}
