//! A document with one place changed: what jsonb_set, jsonb_insert, `#-` and assignments to subscripts do to
//! the place that a path names. What lies beside the path is copied as it stands.

use super::{List, invalid, step_index, text_from};
use crate::error::{Error, Result};
use crate::io::json::{DEPTH_MAX, check_depth, too_deep, write_string};
use basalt_types::jsonb::{self, Kind};
use std::borrow::Cow;
use std::cmp::Ordering;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// jsonb_set: the last step is made where it is missing.
    Create,
    /// jsonb_set without create_if_missing.
    Replace,
    Delete,
    InsertBefore,
    InsertAfter,
    /// A subscript: every missing step is made, gaps in arrays are filled with nulls.
    Assign,
}

impl Change {
    fn creates(self) -> bool {
        matches!(self, Change::Create | Change::InsertBefore | Change::InsertAfter | Change::Assign)
    }
}

/// Nulls that one change puts before elements; PostgreSQL's arrays have no more elements.
const ELEMENTS_MAX: i64 = 33_554_431;

/// The document with `new` at the path, which is not empty. 54001 if it becomes nested too deep, 54000 if it gets
/// too many elements.
pub(super) fn set_path(json: &str, path: &[Option<String>], new: &str, change: Change) -> Result<String> {
    let changed = Setter { path, new, change }.value(json, 0)?;
    check_depth(changed.as_bytes())?;
    Ok(changed.into_owned())
}

fn check_elements(count: i64) -> Result<()> {
    if count <= ELEMENTS_MAX {
        return Ok(());
    }
    Err(Error::new("54000", format!("number of jsonb array elements exceeds the maximum allowed ({ELEMENTS_MAX})")))
}

struct Setter<'a> {
    path: &'a [Option<String>],
    new: &'a str,
    change: Change,
}

impl Setter<'_> {
    fn value<'v>(&self, json: &'v str, level: usize) -> Result<Cow<'v, str>> {
        // No document is so deep, unless it was made before that was checked.
        if level >= DEPTH_MAX {
            return Err(too_deep());
        }
        let Some(step) = &self.path[level] else {
            return Err(Error::new("22004", format!("path element at position {} is null", level + 1)));
        };
        match jsonb::kind(json) {
            Kind::Array => self.array(json, step, level).map(Cow::Owned),
            Kind::Object => self.object(json, step, level).map(Cow::Owned),
            _ if self.change == Change::Assign => Err(invalid("cannot replace existing key")
                .with_detail("The path assumes key is a composite object, but it is a scalar value.")),
            _ => Ok(Cow::Borrowed(json)),
        }
    }

    fn is_last(&self, level: usize) -> bool {
        level + 1 == self.path.len()
    }

    fn object(&self, json: &str, step: &str, level: usize) -> Result<String> {
        let mut list = List::object(json.len() + self.new.len() + step.len() + 8);
        let mut quoted = Vec::new();
        write_string(step, &mut quoted);
        let quoted = text_from(quoted)?;
        let mut done = false;
        for (key, value) in jsonb::members(json) {
            let order = jsonb::compare_keys(&jsonb::unquote(key), step);
            if !done && order == Ordering::Greater {
                self.new_member(&mut list, &quoted, level)?;
                done = true;
            }
            if order != Ordering::Equal {
                list.member(key, value);
                continue;
            }
            done = true;
            if !self.is_last(level) {
                list.member(key, &self.value(value, level + 1)?);
                continue;
            }
            match self.change {
                Change::InsertBefore | Change::InsertAfter => {
                    return Err(invalid("cannot replace existing key")
                        .with_hint("Try using the function jsonb_set to replace key value."));
                }
                Change::Delete => {}
                _ => list.member(key, self.new),
            }
        }
        if !done {
            self.new_member(&mut list, &quoted, level)?;
        }
        list.finish()
    }

    /// The member that the path misses here, if this change makes it.
    fn new_member(&self, list: &mut List, quoted: &str, level: usize) -> Result<()> {
        if self.is_last(level) && self.change.creates() {
            list.member(quoted, self.new);
        } else if self.change == Change::Assign {
            list.member(quoted, &self.chain(level + 1)?);
        }
        Ok(())
    }

    /// Containers for the steps from `level` on, with the new value inside: arrays for numbers, else objects.
    fn chain(&self, level: usize) -> Result<String> {
        if self.path.len() > DEPTH_MAX {
            return Err(too_deep());
        }
        let indexes = self.path[level..].iter().flatten().filter_map(|step| step_index(step));
        check_elements(indexes.map(|index| i64::from(index.max(0))).sum())?;
        let mut out = String::new();
        let mut close = Vec::new();
        for step in self.path[level..].iter().flatten() {
            match step_index(step) {
                Some(index) => {
                    out.push('[');
                    (0..index).for_each(|_| out.push_str("null, "));
                    close.push(']');
                }
                None => {
                    out.push('{');
                    let mut quoted = Vec::new();
                    write_string(step, &mut quoted);
                    out.push_str(&String::from_utf8_lossy(&quoted));
                    out.push_str(": ");
                    close.push('}');
                }
            }
        }
        out.push_str(self.new);
        out.extend(close.into_iter().rev());
        Ok(out)
    }

    fn array(&self, json: &str, step: &str, level: usize) -> Result<String> {
        let count = jsonb::elements(json).count() as i64;
        let given = step_index(step).ok_or_else(|| {
            let message = format!("path element at position {} is not an integer: \"{step}\"", level + 1);
            Error::new("22P02", message)
        })?;
        let assigns = self.change == Change::Assign;
        let given = i64::from(given);
        // Before the first element where it counts from the end beyond it.
        let index = if given < 0 { given + count } else { given };
        if index < 0 && assigns {
            let message = format!("path element at position {} is out of range: {given}", level + 1);
            return Err(invalid(message));
        }
        let index = if assigns { index } else { index.min(count) };
        let mut list = List::array(json.len() + self.new.len() + 2);
        let creates_here = self.is_last(level) && self.change.creates();
        let mut done = false;
        if creates_here && (index < 0 || count == 0) {
            self.fill(&mut list, index)?;
            list.element(self.new);
            done = true;
        }
        for (at, element) in jsonb::elements(json).enumerate() {
            if at as i64 != index {
                list.element(element);
                continue;
            }
            done = true;
            if !self.is_last(level) {
                list.element(&self.value(element, level + 1)?);
                continue;
            }
            match self.change {
                Change::Delete => {}
                Change::InsertBefore => {
                    list.element(self.new);
                    list.element(element);
                }
                Change::InsertAfter => {
                    list.element(element);
                    list.element(self.new);
                }
                Change::Create | Change::Replace | Change::Assign => list.element(self.new),
            }
        }
        if !done && (creates_here || assigns) {
            self.fill(&mut list, index - count)?;
            if creates_here {
                list.element(self.new);
            } else {
                list.element(&self.chain(level + 1)?);
            }
        }
        list.finish()
    }

    /// Nulls before an element that is assigned behind the end.
    fn fill(&self, list: &mut List, count: i64) -> Result<()> {
        if self.change == Change::Assign {
            check_elements(count)?;
            (0..count).for_each(|_| list.element("null"));
        }
        Ok(())
    }
}
