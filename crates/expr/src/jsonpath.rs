//! The SQL/JSON path language (manual 9.16.2): type `jsonpath`, its text both ways, and what a path finds in a
//! document.
//!
//! [`parse`] reads a path into the tree below, [`print`] writes it as PostgreSQL does, [`exec`] runs it over
//! canonical `jsonb` text without making a tree of the document. A path rests as its printed text.

mod compare;
mod datetime;
pub mod exec;
mod lex;
mod parse;
mod print;
mod template;
mod value;

pub use exec::{Execution, Found};

use crate::error::Result;
use crate::numeric::Numeric;

/// A path.
#[derive(Clone, Debug)]
pub struct JsonPath {
    /// Structural errors are ignored, arrays are unwrapped and wrapped as needed.
    pub lax: bool,
    pub expr: Expr,
}

/// Something that gives items, and the steps taken from each of them.
#[derive(Clone, Debug)]
pub struct Expr {
    pub head: Head,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub enum Head {
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    /// `$name`
    Variable(String),
    Negate(Box<Expr>),
    /// Unary plus.
    Plus(Box<Expr>),
    Arithmetic(ArithmeticOp, Box<Expr>, Box<Expr>),
    /// A condition as a value: true, false or null.
    Predicate(Box<Predicate>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArithmeticOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

impl ArithmeticOp {
    pub fn symbol(self) -> &'static str {
        match self {
            ArithmeticOp::Add => "+",
            ArithmeticOp::Sub => "-",
            ArithmeticOp::Mul => "*",
            ArithmeticOp::Div => "/",
            ArithmeticOp::Mod => "%",
        }
    }
}

#[derive(Clone, Debug)]
pub enum Step {
    /// `.key`
    Key(String),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyElement,
    /// `[1, 2 to last]`
    Elements(Vec<(Expr, Option<Expr>)>),
    /// `.**{from to to}`; `None` is `last`.
    Descendants {
        from: Option<u32>,
        to: Option<u32>,
    },
    /// `?(…)`
    Filter(Predicate),
    Method(Method),
    /// `.datetime(template)`
    DateTime(Option<String>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    Type,
    Size,
    Abs,
    Floor,
    Ceiling,
    Double,
    KeyValue,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Type => "type",
            Method::Size => "size",
            Method::Abs => "abs",
            Method::Floor => "floor",
            Method::Ceiling => "ceiling",
            Method::Double => "double",
            Method::KeyValue => "keyvalue",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompareOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl CompareOp {
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Equal => "==",
            CompareOp::NotEqual => "!=",
            CompareOp::Less => "<",
            CompareOp::LessOrEqual => "<=",
            CompareOp::Greater => ">",
            CompareOp::GreaterOrEqual => ">=",
        }
    }
}

#[derive(Clone, Debug)]
pub enum Predicate {
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
    Not(Box<Predicate>),
    IsUnknown(Box<Predicate>),
    Compare(CompareOp, Expr, Expr),
    StartsWith(Expr, Expr),
    LikeRegex(Expr, Pattern),
    Exists(Expr),
}

/// The right side of `like_regex`.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub text: String,
    /// `i`: letters of both cases are one.
    pub insensitive: bool,
    /// `s`: the dot matches line ends.
    pub dot_all: bool,
    /// `m`: anchors match at lines.
    pub multi_line: bool,
    /// `x`, which only goes along with `q`.
    pub expanded: bool,
    /// `q`: the text is no pattern.
    pub literal: bool,
}

/// Reads a path. 22P02 for an empty text, 42601 for one that is no path.
pub fn parse(text: &str) -> Result<JsonPath> {
    parse::path(text)
}

/// The path's text as PostgreSQL prints it.
pub fn canonical(text: &str) -> Result<String> {
    Ok(print::path(&parse(text)?))
}

#[cfg(test)]
mod tests;
