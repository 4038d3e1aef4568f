//! Errors as a PostgreSQL client sees them: SQLSTATE, message, detail, hint.
//!
//! Wording follows PostgreSQL 15, because drivers and people match on it.

use basalt_types::ErrorKind;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an expression has no value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Five characters, PostgreSQL's appendix A.
    pub sqlstate: &'static str,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// The domain that refused a value.
    pub refused_by: Option<Box<RefusedBy>>,
}

/// A domain, and the constraint of it that a value does not satisfy: none for NOT NULL, which has no name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedBy {
    pub schema: String,
    pub domain: String,
    pub constraint: Option<String>,
}

impl Error {
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Error {
        Error { sqlstate, message: message.into(), detail: None, hint: None, refused_by: None }
    }

    pub fn with_detail(mut self, detail: impl Into<String>) -> Error {
        self.detail = Some(detail.into());
        self
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    pub fn kind(&self) -> ErrorKind {
        match &self.sqlstate[..2] {
            "XX" => ErrorKind::Internal,
            "53" | "54" => ErrorKind::Limit,
            _ => ErrorKind::Invalid,
        }
    }

    /// 22P02: text that is no value of the type.
    #[cold]
    pub fn invalid_text(type_name: &str, text: &str) -> Error {
        Error::new("22P02", format!("invalid input syntax for type {type_name}: \"{text}\""))
    }

    /// 22003: well-formed text beyond the type's range.
    #[cold]
    pub fn text_out_of_range(type_name: &str, text: &str) -> Error {
        Error::new("22003", format!("value \"{text}\" is out of range for type {type_name}"))
    }

    /// 22003: a result beyond the type's range, as in `integer out of range`.
    #[cold]
    pub fn out_of_range(type_name: &str) -> Error {
        Error::new("22003", format!("{type_name} out of range"))
    }

    /// 22012.
    #[cold]
    pub fn division_by_zero() -> Error {
        Error::new("22012", "division by zero")
    }

    /// 22001: an assignment to `varchar(n)` or `char(n)`.
    #[cold]
    pub fn string_too_long(type_name: &str) -> Error {
        Error::new("22001", format!("value too long for type {type_name}"))
    }

    /// 22003 with the field's limits in the detail.
    #[cold]
    pub fn numeric_field_overflow(detail: impl Into<String>) -> Error {
        Error::new("22003", "numeric field overflow").with_detail(detail)
    }

    /// 22003: more digits than the numeric format has.
    #[cold]
    pub fn numeric_overflow() -> Error {
        Error::new("22003", "value overflows numeric format")
    }

    /// 22007: text that is no date or time.
    #[cold]
    pub fn invalid_datetime(type_name: &str, text: &str) -> Error {
        Error::new("22007", format!("invalid input syntax for type {type_name}: \"{text}\""))
    }

    /// 22008: a field of a date or time beyond its range.
    #[cold]
    pub fn datetime_field_overflow(text: &str) -> Error {
        Error::new("22008", format!("date/time field value out of range: \"{text}\""))
    }

    /// 22008: a date or time beyond its type's range, as in `timestamp out of range`.
    #[cold]
    pub fn datetime_out_of_range(type_name: &str) -> Error {
        Error::new("22008", format!("{type_name} out of range"))
    }

    /// 22P03: bytes from the wire that are no value of the type.
    #[cold]
    pub fn invalid_binary(message: impl Into<String>) -> Error {
        Error::new("22P03", message)
    }

    /// 08P01: fewer bytes from the wire than a value of the type has.
    #[cold]
    pub fn short_binary() -> Error {
        Error::new("08P01", "insufficient data left in message")
    }

    /// 22021: text from a client that is not UTF-8.
    #[cold]
    pub fn invalid_utf8(bytes: &[u8], valid_up_to: usize) -> Error {
        let shown: Vec<String> =
            bytes[valid_up_to..].iter().take(4).map(|byte| format!("0x{byte:02x}")).take(1).collect();
        Error::new("22021", format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")))
    }

    /// 42846: no such cast.
    #[cold]
    pub fn cannot_cast(from: &str, to: &str) -> Error {
        Error::new("42846", format!("cannot cast type {from} to {to}"))
    }

    /// 22023.
    #[cold]
    pub fn invalid_parameter(message: impl Into<String>) -> Error {
        Error::new("22023", message)
    }

    /// 0A000.
    #[cold]
    pub fn not_supported(message: impl Into<String>) -> Error {
        Error::new("0A000", message)
    }

    /// XX000: a broken invariant.
    #[cold]
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new("XX000", message)
    }
}
