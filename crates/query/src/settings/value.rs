//! Reading and printing the values of settings.

use super::definitions::{Definition, Kind, Unit};
use crate::error::{Result, SqlError};
use crate::query_groups;
use basalt_expr::context::{DateFormat, DateOrder};
use basalt_expr::datetime::TimeZone;
use basalt_types::names::names_of;

/// Checks a value and gives the one form in which it is kept: numbers in the setting's unit, booleans as
/// `on` and `off`, words in lower case. 22023 otherwise.
pub fn canonical(definition: &Definition, text: &str) -> Result<String> {
    let text = text.trim();
    match definition.kind {
        Kind::Bool => match bool_of(text) {
            Some(true) => Ok("on".to_string()),
            Some(false) if definition.name == "standard_conforming_strings" => {
                Err(SqlError::not_supported("backslashes in '…' are always themselves")
                    .with_hint("Write E'…' for strings with escapes."))
            }
            Some(false) => Ok("off".to_string()),
            None => Err(SqlError::new("22023", format!("parameter \"{}\" requires a Boolean value", definition.name))),
        },
        Kind::Int { min, max, unit } => {
            let value = int_of(text, unit).ok_or_else(|| invalid(definition, text))?;
            if value < min || value > max {
                let unit = unit_name(unit).map(|unit| format!(" {unit}")).unwrap_or_default();
                return Err(SqlError::new(
                    "22023",
                    format!(
                        "{value}{unit} is outside the valid range for parameter \"{}\" ({min} .. {max})",
                        definition.name
                    ),
                ));
            }
            Ok(value.to_string())
        }
        Kind::Real { min, max } => match text.parse::<f64>() {
            Ok(value) if value >= min && value <= max => Ok(value.to_string()),
            Ok(value) => Err(SqlError::new(
                "22023",
                format!("{value} is outside the valid range for parameter \"{}\" ({min} .. {max})", definition.name),
            )),
            Err(_) => Err(invalid(definition, text)),
        },
        Kind::Enum(words) => canonical_word(definition, words, text),
        Kind::Text if definition.name == "basalt.query_group" => Ok(query_groups::name_of(text)),
        Kind::Text => Ok(text.to_string()),
        Kind::QueryGroups => query_groups::canonical(text),
        Kind::DateStyle => canonical_date_style(definition, text, (DateFormat::Iso, DateOrder::Mdy)),
        Kind::TimeZone => {
            let name = text.trim_matches('\'');
            match name.to_ascii_lowercase().as_str() {
                "default" | "local" => Ok("UTC".to_string()),
                _ => time_zone(name).unwrap_or_else(|| Err(invalid(definition, text))),
            }
        }
        Kind::ClientEncoding => {
            let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
            match plain.to_ascii_lowercase().as_str() {
                "utf8" | "unicode" => Ok("UTF8".to_string()),
                _ => Err(invalid(definition, text).with_hint("Basalt speaks UTF8 with every client.")),
            }
        }
        Kind::Names => names_of(text).map(|names| join_names(&names)).ok_or_else(|| invalid(definition, text)),
    }
}

/// A time zone as it is shown; `None` if there is none of the name.
fn time_zone(name: &str) -> Option<Result<String>> {
    Some(match TimeZone::parse(name)? {
        zone @ TimeZone::Named(_) => Ok(zone.name()),
        zone if name.trim().parse::<f64>().is_ok() => Ok(zone.name()),
        TimeZone::Fixed(east) if east % 60 != 0 && !name.starts_with('<') => {
            let message = format!("time zone \"{name}\" appears to use leap seconds");
            Err(SqlError::new("22023", message).with_detail("PostgreSQL does not support leap seconds."))
        }
        TimeZone::Fixed(_) => Ok(name.to_ascii_uppercase()),
    })
}

/// `DateStyle` where `before` was the value.
pub fn canonical_date_style(definition: &Definition, text: &str, before: (DateFormat, DateOrder)) -> Result<String> {
    let (format, order) = date_style(text, before).ok_or_else(|| invalid(definition, text))?;
    Ok(date_style_text(format, order))
}

#[cold]
fn invalid(definition: &Definition, text: &str) -> SqlError {
    let error = SqlError::new("22023", format!("invalid value for parameter \"{}\": \"{text}\"", definition.name));
    match definition.kind {
        Kind::Int { unit: Unit::Bytes | Unit::Kilobytes | Unit::Blocks, .. } => {
            error.with_hint("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".")
        }
        Kind::Int { unit: Unit::Milliseconds | Unit::Seconds | Unit::Minutes, .. } => {
            error.with_hint("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".")
        }
        _ => error,
    }
}

fn canonical_word(definition: &Definition, words: &[&'static str], text: &str) -> Result<String> {
    if let Some(word) = words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
        return Ok((*word).to_string());
    }
    if words.contains(&"on")
        && let Some(value) = bool_of(text)
    {
        return Ok(if value { "on" } else { "off" }.to_string());
    }
    Err(invalid(definition, text).with_hint(format!("Available values: {}.", words.join(", "))))
}

/// PostgreSQL's booleans: prefixes of true, false, yes and no, `on`, `of`, `off`, 1 and 0.
pub fn bool_of(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let prefix = |word: &str| !text.is_empty() && word.starts_with(&text);
    if text == "on" || text == "1" || prefix("true") || prefix("yes") {
        Some(true)
    } else if text == "off" || text == "of" || text == "0" || prefix("false") || prefix("no") {
        Some(false)
    } else {
        None
    }
}

fn unit_name(unit: Unit) -> Option<&'static str> {
    Some(match unit {
        Unit::None => return None,
        Unit::Bytes => "B",
        Unit::Kilobytes => "kB",
        Unit::Blocks => "8kB",
        Unit::Milliseconds => "ms",
        Unit::Seconds => "s",
        Unit::Minutes => "min",
    })
}

/// `pg_settings.unit`.
pub fn unit_of(definition: &Definition) -> Option<&'static str> {
    match definition.kind {
        Kind::Int { unit, .. } => unit_name(unit),
        _ => None,
    }
}

const SIZES: &[(&str, i128)] = &[("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];
/// In microseconds.
const TIMES: &[(&str, i128)] =
    &[("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];

/// A unit as so many of the least unit of its dimension, and the words for others.
fn dimension(unit: Unit) -> Option<(i128, &'static [(&'static str, i128)])> {
    Some(match unit {
        Unit::None => return None,
        Unit::Bytes => (1, SIZES),
        Unit::Kilobytes => (1 << 10, SIZES),
        Unit::Blocks => (8 << 10, SIZES),
        Unit::Milliseconds => (1_000, TIMES),
        Unit::Seconds => (1_000_000, TIMES),
        Unit::Minutes => (60_000_000, TIMES),
    })
}

fn int_of(text: &str, unit: Unit) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(text.len());
    let (number, word) = (text[..digits].trim(), text[digits..].trim());
    let factor = match (word, dimension(unit)) {
        ("", _) => return number.parse().ok().or_else(|| rounded(number.parse().ok()?)),
        (_, None) => return None,
        (word, Some((own, words))) => (words.iter().find(|(name, _)| *name == word)?.1, own),
    };
    match number.parse::<i64>() {
        Ok(number) => {
            let least = i128::from(number).checked_mul(factor.0)?;
            i64::try_from((least + least.signum() * factor.1 / 2) / factor.1).ok()
        }
        Err(_) => rounded(number.parse::<f64>().ok()? * factor.0 as f64 / factor.1 as f64),
    }
}

fn rounded(value: f64) -> Option<i64> {
    (value.is_finite() && value.abs() < 9e18).then(|| value.round() as i64)
}

/// As `SHOW` prints it: numbers in the greatest unit that divides them.
pub fn shown(definition: &Definition, value: &str) -> String {
    let Kind::Int { unit, .. } = definition.kind else { return value.to_string() };
    let (Some((own, words)), Ok(number)) = (dimension(unit), value.parse::<i128>()) else {
        return value.to_string();
    };
    if number <= 0 {
        return value.to_string();
    }
    let least = number * own;
    match words.iter().find(|(_, factor)| least % factor == 0) {
        Some((name, factor)) => format!("{}{name}", least / factor),
        None => value.to_string(),
    }
}

/// Reads `DateStyle`; what a value does not say stays as in `before`.
pub fn date_style(text: &str, before: (DateFormat, DateOrder)) -> Option<(DateFormat, DateOrder)> {
    let (mut format, mut order) = before;
    for word in text.split(',').map(|word| word.trim().to_ascii_lowercase()) {
        match word.as_str() {
            "iso" => format = DateFormat::Iso,
            "sql" => format = DateFormat::Sql,
            "german" => {
                format = DateFormat::German;
                order = DateOrder::Dmy;
            }
            "mdy" | "us" | "noneuro" | "noneuropean" => order = DateOrder::Mdy,
            "dmy" | "euro" | "european" => order = DateOrder::Dmy,
            "ymd" => order = DateOrder::Ymd,
            "default" => (format, order) = (DateFormat::Iso, DateOrder::Mdy),
            word if word.starts_with("postgres") => format = DateFormat::Postgres,
            _ => return None,
        }
    }
    Some((format, order))
}

fn date_style_text(format: DateFormat, order: DateOrder) -> String {
    let format = match format {
        DateFormat::Iso => "ISO",
        DateFormat::Sql => "SQL",
        DateFormat::Postgres => "Postgres",
        DateFormat::German => "German",
    };
    let order = match order {
        DateOrder::Mdy => "MDY",
        DateOrder::Dmy => "DMY",
        DateOrder::Ymd => "YMD",
    };
    format!("{format}, {order}")
}

fn join_names(names: &[String]) -> String {
    names.iter().map(|name| crate::session::names::quote_identifier(name)).collect::<Vec<_>>().join(", ")
}
