//! Items: what a path walks over.

use super::datetime::DateTime;
use crate::error::Result;
use crate::io::json::{DEPTH_MAX, too_deep, write_string};
use crate::numeric::Numeric;
use basalt_types::jsonb::{self, Kind};
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Item<'a> {
    Json(Part<'a>),
    DateTime(DateTime),
}

/// A part of a canonical text.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    source: Source<'a>,
    start: usize,
    end: usize,
}

#[derive(Clone, Debug)]
enum Source<'a> {
    Given(&'a str),
    /// Made on the way: `.keyvalue()`, arithmetic.
    Made(Arc<str>),
}

impl<'a> Part<'a> {
    pub fn given(text: &'a str) -> Part<'a> {
        Part { source: Source::Given(text), start: 0, end: text.len() }
    }

    pub fn made(text: String) -> Part<'a> {
        Part { start: 0, end: text.len(), source: Source::Made(text.into()) }
    }

    /// All of the text that this is a part of.
    pub fn whole(&self) -> &str {
        match &self.source {
            Source::Given(text) => text,
            Source::Made(text) => text,
        }
    }

    pub fn text(&self) -> &str {
        &self.whole()[self.start..self.end]
    }

    /// Where the part stands in the whole.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The part that `slice`, a slice of this one's text, is.
    fn inner(&self, slice: &str) -> Part<'a> {
        let start = slice.as_ptr() as usize - self.whole().as_ptr() as usize;
        Part { source: self.source.clone(), start, end: start + slice.len() }
    }

    pub fn member(&self, key: &str) -> Option<Part<'a>> {
        jsonb::member(self.text(), key).map(|value| self.inner(value))
    }

    pub fn elements(&self) -> impl Iterator<Item = Part<'a>> {
        jsonb::elements(self.text()).map(|element| self.inner(element))
    }

    /// Elements of an array, values of an object.
    pub fn children(&self) -> impl Iterator<Item = Part<'a>> {
        let values = jsonb::members(self.text()).map(|(_, value)| self.inner(value));
        self.elements().chain(values)
    }

    /// Quoted keys and values.
    pub fn members(&self) -> impl Iterator<Item = (&str, Part<'a>)> {
        jsonb::members(self.text()).map(|(key, value)| (key, self.inner(value)))
    }
}

impl<'a> Item<'a> {
    pub fn null() -> Item<'a> {
        Item::Json(Part::given("null"))
    }

    pub fn bool(value: bool) -> Item<'a> {
        Item::Json(Part::given(if value { "true" } else { "false" }))
    }

    pub fn number(value: &Numeric) -> Item<'a> {
        let mut out = Vec::new();
        value.write_text(&mut out);
        Item::Json(Part::made(String::from_utf8_lossy(&out).into_owned()))
    }

    pub fn string(text: &str) -> Item<'a> {
        let mut out = Vec::with_capacity(text.len() + 2);
        write_string(text, &mut out);
        Item::Json(Part::made(String::from_utf8_lossy(&out).into_owned()))
    }

    /// `None` for dates and times, which are no JSON.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Item::Json(part) => Some(jsonb::kind(part.text())),
            Item::DateTime(_) => None,
        }
    }

    pub fn is(&self, kind: Kind) -> bool {
        self.kind() == Some(kind)
    }

    pub fn part(&self) -> Option<&Part<'a>> {
        match self {
            Item::Json(part) => Some(part),
            Item::DateTime(_) => None,
        }
    }

    pub fn as_number(&self) -> Option<Numeric> {
        let part = self.part().filter(|_| self.is(Kind::Number))?;
        Numeric::parse(part.text()).ok()
    }

    pub fn as_string(&self) -> Option<Cow<'_, str>> {
        let part = self.part().filter(|_| self.is(Kind::String))?;
        Some(jsonb::unquote(part.text()))
    }

    pub fn elements_count(&self) -> Option<usize> {
        let part = self.part().filter(|_| self.is(Kind::Array))?;
        Some(jsonb::elements(part.text()).count())
    }

    /// As `.type()` names it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Item::Json(part) => jsonb::kind(part.text()).name(),
            Item::DateTime(value) => value.type_name(),
        }
    }
}

/// Where PostgreSQL keeps the container that begins at `target`, in bytes behind the beginning of the container
/// `text`: `.keyvalue()` tells objects apart by it. (A container is a header and an entry of four bytes for each
/// key, value or element; then keys, then values; numbers and containers begin at multiples of four.)
/// 54001 if `text` is nested too deep.
pub fn binary_offset(text: &str, target: usize) -> Result<i64> {
    let mut layout = Layout { base: text.as_ptr() as usize, target, found: None, depth: 0 };
    layout.container(text, 0)?;
    Ok(layout.found.unwrap_or(0))
}

struct Layout {
    base: usize,
    target: usize,
    found: Option<i64>,
    /// Of the containers around.
    depth: usize,
}

impl Layout {
    /// The place behind a container that is kept at `at`.
    fn container(&mut self, text: &str, at: i64) -> Result<i64> {
        if text.as_ptr() as usize - self.base == self.target {
            self.found = Some(at);
            return Ok(at);
        }
        if self.depth >= DEPTH_MAX {
            return Err(too_deep());
        }
        self.depth += 1;
        let entries = match jsonb::kind(text) {
            Kind::Object => jsonb::members(text).count() * 2,
            _ => jsonb::elements(text).count(),
        };
        let mut at = at + 4 + 4 * entries as i64;
        for (key, _) in jsonb::members(text) {
            at += jsonb::unquote(key).len() as i64;
        }
        let values = jsonb::members(text).map(|(_, value)| value);
        for value in jsonb::elements(text).chain(values) {
            at = self.value(value, at)?;
            if self.found.is_some() {
                break;
            }
        }
        self.depth -= 1;
        Ok(at)
    }

    fn value(&mut self, text: &str, at: i64) -> Result<i64> {
        let aligned = (at + 3) / 4 * 4;
        Ok(match jsonb::kind(text) {
            Kind::Null | Kind::Bool => at,
            Kind::String => at + jsonb::unquote(text).len() as i64,
            Kind::Number => aligned + numeric_bytes(text),
            Kind::Array | Kind::Object => self.container(text, aligned)?,
        })
    }
}

/// The size of a numeric in PostgreSQL: a length, a header of two or four bytes, two bytes for four digits.
fn numeric_bytes(text: &str) -> i64 {
    let digits = text.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole_digits = whole.trim_start_matches('0');
    let groups_before = whole_digits.len().div_ceil(4) as i64;
    // Positions of the first and last group that is not zero, counted from the point.
    let padded = format!("{:0>width$}", whole_digits, width = groups_before as usize * 4);
    let fraction = format!("{:0<width$}", fraction, width = fraction.len().div_ceil(4) * 4);
    let all: Vec<u8> = padded.bytes().chain(fraction.bytes()).collect();
    let is_set = |group: &[u8]| group.iter().any(|digit| *digit != b'0');
    let first = all.chunks(4).position(is_set);
    let last = all.chunks(4).rposition(is_set);
    let (count, weight) = match (first, last) {
        (Some(first), Some(last)) => ((last - first + 1) as i64, groups_before - 1 - first as i64),
        _ => (0, 0),
    };
    let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let is_short = scale <= 63 && (-64..=63).contains(&weight);
    4 + if is_short { 2 } else { 4 } + 2 * count
}
