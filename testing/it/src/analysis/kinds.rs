//! Types of columns, and for each a value for every number: tables of different sizes share values, so joins meet.

use crate::generate::types::Ty;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Numeric,
    Float4,
    Float8,
    Text,
    Varchar,
    Char,
    Bytea,
    Date,
    Timestamp,
    Timestamptz,
    Time,
    Interval,
    Uuid,
    Mood,
    Oid,
    Money,
}

/// With how often a column has it, in the order of the variants.
pub const KINDS: [(Kind, u32); 20] = [
    (Kind::Bool, 2),
    (Kind::Int2, 3),
    (Kind::Int4, 8),
    (Kind::Int8, 6),
    (Kind::Numeric, 6),
    (Kind::Float4, 2),
    (Kind::Float8, 4),
    (Kind::Text, 8),
    (Kind::Varchar, 1),
    (Kind::Char, 2),
    (Kind::Bytea, 2),
    (Kind::Date, 4),
    (Kind::Timestamp, 2),
    (Kind::Timestamptz, 2),
    (Kind::Time, 1),
    (Kind::Interval, 1),
    (Kind::Uuid, 2),
    (Kind::Mood, 2),
    (Kind::Oid, 1),
    (Kind::Money, 1),
];

/// What texts have in common that differ behind it.
pub const LONG: &str = "https://example.com/a/long/beginning?number=";

pub const INTEGERS: [Kind; 3] = [Kind::Int2, Kind::Int4, Kind::Int8];
pub const NUMBERS: [Kind; 6] = [Kind::Int2, Kind::Int4, Kind::Int8, Kind::Numeric, Kind::Float4, Kind::Float8];

impl Kind {
    /// As expressions that shrink know it.
    pub fn ty(self) -> Ty {
        Ty(self as usize)
    }

    pub fn of(ty: Ty) -> Kind {
        KINDS[ty.0].0
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Int2 => "int2",
            Kind::Int4 => "int4",
            Kind::Int8 => "int8",
            Kind::Numeric => "numeric",
            Kind::Float4 => "float4",
            Kind::Float8 => "float8",
            Kind::Text => "text",
            Kind::Varchar => "varchar",
            Kind::Char => "bpchar",
            Kind::Bytea => "bytea",
            Kind::Date => "date",
            Kind::Timestamp => "timestamp",
            Kind::Timestamptz => "timestamptz",
            Kind::Time => "time",
            Kind::Interval => "interval",
            Kind::Uuid => "uuid",
            Kind::Mood => "mood",
            Kind::Oid => "oid",
            Kind::Money => "money",
        }
    }

    /// How columns may be declared.
    pub fn declarations(self) -> &'static [&'static str] {
        match self {
            Kind::Numeric => {
                &["numeric(12,2)", "numeric(12,2)", "numeric(30,10)", "numeric(38,2)", "numeric(8,0)", "numeric"]
            }
            Kind::Varchar => &["varchar(120)"],
            Kind::Char => &["char(8)", "char(12)"],
            _ => &[],
        }
    }

    /// Values at the edge, as literals.
    pub fn edges(self) -> &'static [&'static str] {
        match self {
            Kind::Int2 => &["-32768", "32767", "0"],
            Kind::Int4 => &["-2147483648", "2147483647", "0"],
            Kind::Int8 => &["-9223372036854775808", "9223372036854775807", "0"],
            Kind::Numeric => &["9999999.00", "-9999999.00", "0.00"],
            Kind::Float4 => &["NaN", "-0", "0", "Infinity", "-Infinity"],
            Kind::Float8 => &["NaN", "-0", "0", "Infinity", "-Infinity", "1e300"],
            Kind::Text | Kind::Varchar => &[
                "",
                " ",
                "é",
                "Straße",
                "a",
                "ab",
                "k%_",
                "日本語",
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ],
            Kind::Char => &["", "a", "b ", "é"],
            Kind::Bytea => &["\\x", "\\x00", "\\xff", "\\x0000"],
            Kind::Date => &["infinity", "-infinity", "0044-03-15 BC", "1970-01-01"],
            Kind::Timestamp | Kind::Timestamptz => &["infinity", "-infinity", "1969-12-31 23:59:59.999999"],
            Kind::Time => &["00:00", "24:00", "23:59:59.999999"],
            Kind::Interval => &["0", "1 month", "30 days", "-1 day"],
            Kind::Uuid => &["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
            Kind::Oid => &["0", "4294967295"],
            Kind::Money => &["-1.50", "0"],
            Kind::Bool | Kind::Mood => &[],
        }
    }

    /// An expression for the value of number `h`, itself an expression from 0 on.
    pub fn value(self, h: &str) -> String {
        match self {
            Kind::Bool => format!("({h}) % 2 = 0"),
            Kind::Int2 => format!("(({h}) % 300 - 20)::int2"),
            Kind::Int4 => format!("(({h}) - 50)::int4"),
            Kind::Int8 => format!("(({h}) - 50)::int8"),
            Kind::Numeric => format!("(({h}) - 50)::numeric * 0.25"),
            Kind::Float4 => format!("((({h}) % 4000) * 0.25 - 5)::float4"),
            Kind::Float8 => format!("((({h})) * 0.25 - 5)::float8"),
            Kind::Text | Kind::Varchar => format!("'k' || ({h})"),
            Kind::Char => format!("'c' || (({h}) % 5000)"),
            Kind::Bytea => format!("decode(lpad(to_hex({h}), 6, '0'), 'hex')"),
            Kind::Date => format!("date '2000-01-01' + (({h}) % 4000)::int4"),
            Kind::Timestamp => format!("timestamp '2000-01-01' + ({h}) * interval '1 hour 7 seconds'"),
            Kind::Timestamptz => format!("timestamptz '2000-01-01 00:00+00' + ({h}) * interval '5 hours 1 second'"),
            Kind::Time => format!("time '00:00' + (({h}) % 200) * interval '7 minutes'"),
            Kind::Interval => format!("(({h}) % 500) * interval '1 hour'"),
            Kind::Uuid => {
                format!("(lpad(to_hex(({h}) % 16), 8, '0') || '-0000-0000-0000-' || lpad(to_hex({h}), 12, '0'))::uuid")
            }
            Kind::Mood => format!("(ARRAY['sad', 'ok', 'happy', 'Very happy'])[({h}) % 4 + 1]::mood"),
            Kind::Oid => format!("({h})::oid"),
            Kind::Money => format!("(({h}) % 1000)::int::money"),
        }
    }

    /// The value of a number as a literal.
    pub fn literal(self, h: u32) -> String {
        let edges = self.edges();
        if h % 5 == 4 && !edges.is_empty() {
            return format!("'{}'::{}", edges[(h / 5) as usize % edges.len()], self.name());
        }
        let number = i64::from(h);
        match self {
            Kind::Bool => (if h.is_multiple_of(2) { "true" } else { "false" }).into(),
            Kind::Int4 => format!("({})", number - 50),
            Kind::Int2 | Kind::Int8 => format!("({})::{}", number % 300 - 20, self.name()),
            Kind::Numeric => format!("({:.2})", (number - 50) as f64 * 0.25),
            Kind::Float4 | Kind::Float8 => format!("({:.2})::{}", (number % 4000) as f64 * 0.25 - 5.0, self.name()),
            Kind::Text | Kind::Varchar if h % 5 == 3 => format!("'{LONG}{h}'::{}", self.name()),
            Kind::Text | Kind::Varchar => format!("'k{h}'::{}", self.name()),
            Kind::Char => format!("'c{}'::bpchar", h % 5000),
            Kind::Mood => format!("'{}'::mood", ["sad", "ok", "happy", "Very happy"][h as usize % 4]),
            Kind::Oid => format!("'{h}'::oid"),
            Kind::Money => format!("'{}'::money", h % 1000),
            Kind::Date => format!("(date '2000-01-01' + {})", h % 4000),
            _ => format!("({})", self.value(&h.to_string())),
        }
    }

    pub fn is_number(self) -> bool {
        NUMBERS.contains(&self)
    }

    pub fn is_text(self) -> bool {
        matches!(self, Kind::Text | Kind::Varchar)
    }
}
