//! Running a path over a document (manual 9.16.2).
//!
//! Every item that an expression gives is handed on to the steps behind it at once, so that a search that needs
//! one item stops at the first. Without a list to fill, a path only says whether it finds anything.
//!
//! In lax mode structural errors are ignored, arrays are unwrapped before steps that take no arrays, and single
//! items are taken for arrays of one. Errors that a condition meets make it unknown.

use super::compare::{compare, like_regex, starts_with};
use super::value::binary_offset;
use super::*;
use crate::context::EvalContext;
use crate::error::Error;
use crate::io::json::check_depth;
use basalt_types::jsonb::{self, Kind};

pub use super::datetime::DateTime;
pub use super::value::{Item, Part};

/// Steps that are taken inside of one another beyond this are refused (54001). Members of members are not.
const DEPTH_MAX: usize = 100;

/// Ids of `.keyvalue()` tell objects of different documents apart by multiples of this.
const DOCUMENT_IDS: i64 = 10_000_000_000;

/// What a path is run with.
pub struct Execution<'a> {
    pub document: &'a str,
    /// A `jsonb` object with the path's variables.
    pub vars: Option<&'a str>,
    /// Whether the session's time zone may be used, as by the functions with `_tz`.
    pub use_zone: bool,
    pub ctx: &'a EvalContext,
}

/// What was found before the path ended or failed.
pub struct Found<'a> {
    pub items: Vec<Item<'a>>,
    /// An error that `silent` suppresses.
    pub error: Option<Error>,
}

/// Why a path stops.
pub(super) enum Failure {
    /// Suppressed by `silent`, and unknown to a condition.
    Soft(Error),
    Hard(Error),
}

type Outcome<T> = std::result::Result<T, Failure>;

/// Three-valued truth; `None` is unknown.
pub(super) type Truth = Option<bool>;

/// Whether anything was found.
type IsFound = bool;

impl<'a> Execution<'a> {
    /// All that the path finds. 22023 if the variables are no object; other errors that `silent` does not
    /// suppress.
    pub fn query(&self, path: &JsonPath) -> Result<Found<'a>> {
        let mut items = Vec::new();
        let outcome = self.run(path, &mut Some(&mut items))?;
        Ok(Found { items, error: outcome.err() })
    }

    /// Whether the path finds anything; in the inner place an error that `silent` suppresses.
    pub fn exists(&self, path: &JsonPath) -> Result<Result<bool>> {
        if path.lax {
            return self.run(path, &mut None);
        }
        // Strict mode looks at everything, to see that there are no errors.
        let found = self.query(path)?;
        Ok(found.error.map_or(Ok(!found.items.is_empty()), Err))
    }

    fn run(&self, path: &JsonPath, found: &mut List<'_, 'a>) -> Result<Result<bool>> {
        if self.vars.is_some_and(|vars| jsonb::kind(vars) != Kind::Object) {
            return Err(Error::invalid_parameter("\"vars\" argument is not an object")
                .with_detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object."));
        }
        let root = Item::Json(Part::given(self.document));
        let mut runner = Runner {
            execution: self,
            lax: path.lax,
            ignores_structure: path.lax,
            current: root.clone(),
            root: root.clone(),
            array_size: None,
            base: Base { id: 0, start: 0 },
            next_id: if self.vars.is_some() { 2 } else { 1 },
            depth: 0,
        };
        match runner.expr(&path.expr, &root, found) {
            Ok(is_found) => Ok(Ok(is_found)),
            Err(Failure::Soft(error)) => Ok(Err(error)),
            Err(Failure::Hard(error)) => Err(error),
        }
    }
}

/// Where items go; nowhere if it only matters whether there are any.
type List<'l, 'a> = Option<&'l mut Vec<Item<'a>>>;

/// The container that ids of `.keyvalue()` count from.
#[derive(Clone, Copy)]
struct Base {
    id: i64,
    start: usize,
}

struct Runner<'r, 'a> {
    execution: &'r Execution<'a>,
    lax: bool,
    ignores_structure: bool,
    root: Item<'a>,
    current: Item<'a>,
    /// Of the innermost subscripted array, for `last`.
    array_size: Option<i64>,
    base: Base,
    next_id: i64,
    depth: usize,
}

fn soft<T>(sqlstate: &'static str, message: impl Into<String>) -> Outcome<T> {
    Err(Failure::Soft(Error::new(sqlstate, message)))
}

const NO_ARRAY: &str = "22039";
const NO_OBJECT: &str = "2203C";
const NO_MEMBER: &str = "2203A";
const NO_NUMBER: &str = "2203B";
const NOT_NUMERIC: &str = "22036";
const NOT_SINGLE: &str = "22038";
const BAD_SUBSCRIPT: &str = "22033";

impl<'a> Runner<'_, 'a> {
    fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Failure::Hard(Error::new("54001", "stack depth limit exceeded")));
        }
        let outcome = run(self);
        self.depth -= 1;
        outcome
    }

    /// The items of an expression, each followed by the expression's steps.
    fn expr(&mut self, expr: &Expr, item: &Item<'a>, found: &mut List<'_, 'a>) -> Outcome<IsFound> {
        let steps = expr.steps.as_slice();
        let literal = match &expr.head {
            Head::Root => {
                let base = std::mem::replace(&mut self.base, Base { id: 0, start: 0 });
                let outcome = self.next(steps, self.root.clone(), found);
                self.base = base;
                return outcome;
            }
            Head::Current => return self.next(steps, self.current.clone(), found),
            Head::Predicate(predicate) => {
                let truth = self.deeper(|runner| runner.predicate(predicate, item))?;
                truth.map_or_else(Item::null, Item::bool)
            }
            Head::Arithmetic(op, left, right) => return self.arithmetic(*op, left, right, steps, item, found),
            Head::Negate(operand) => return self.sign(operand, true, steps, item, found),
            Head::Plus(operand) => return self.sign(operand, false, steps, item, found),
            Head::Last => match self.array_size {
                Some(size) => Item::number(&Numeric::from(size - 1)),
                None => {
                    return Err(Failure::Hard(Error::internal("evaluating jsonpath LAST outside of array subscript")));
                }
            },
            Head::Null => Item::null(),
            Head::Bool(value) => Item::bool(*value),
            Head::Number(value) => Item::number(value),
            Head::String(text) => Item::string(text),
            // Without variables, as for the operators, each is null.
            Head::Variable(_) if self.execution.vars.is_none() => Item::null(),
            Head::Variable(name) => {
                let value = self.variable(name)?;
                let base = self.base;
                self.base = Base { id: 1, start: 0 };
                let outcome = self.next(steps, Item::Json(value), found);
                self.base = base;
                return outcome;
            }
        };
        self.next(steps, literal, found)
    }

    fn variable(&self, name: &str) -> Outcome<Part<'a>> {
        self.execution
            .vars
            .and_then(|vars| Part::given(vars).member(name))
            .ok_or_else(|| Failure::Hard(Error::new("42704", format!("could not find jsonpath variable \"{name}\""))))
    }

    /// An item that is found, unless there are more steps to take from it.
    fn next(&mut self, steps: &[Step], item: Item<'a>, found: &mut List<'_, 'a>) -> Outcome<IsFound> {
        if !steps.is_empty() {
            return self.deeper(|runner| runner.step(steps, item, found, runner.lax));
        }
        if let Some(list) = found {
            list.push(item);
        }
        Ok(true)
    }

    /// Takes the first step from an item, which is unwrapped if it is an array that the step does not take.
    fn step(
        &mut self,
        steps: &[Step],
        mut item: Item<'a>,
        found: &mut List<'_, 'a>,
        mut unwraps: bool,
    ) -> Outcome<IsFound> {
        let mut steps = steps;
        // Members of members are one walk.
        while let [Step::Key(key), rest @ ..] = steps {
            if unwraps && item.is(Kind::Array) {
                return self.unwrapped(steps, &item, found, false);
            }
            match self.member(key, &item)? {
                Some(member) => item = member,
                None => return Ok(false),
            }
            steps = rest;
            unwraps = self.lax;
        }
        let [step, rest @ ..] = steps else { return self.next(steps, item, found) };
        let takes_arrays = matches!(
            step,
            Step::AnyElement | Step::Elements(_) | Step::Descendants { .. } | Step::Method(Method::Type | Method::Size)
        );
        if unwraps && !takes_arrays && item.is(Kind::Array) {
            return self.unwrapped(steps, &item, found, false);
        }
        match step {
            Step::Key(_) => Ok(false),
            Step::AnyKey if item.is(Kind::Object) => self.children(rest, &item, found, 1..=1, false),
            Step::AnyKey => {
                self.structural(NO_OBJECT, "jsonpath wildcard member accessor can only be applied to an object")
            }
            Step::AnyElement if item.is(Kind::Array) => self.unwrapped(rest, &item, found, self.lax),
            Step::AnyElement if self.lax => self.next(rest, item, found),
            Step::AnyElement => {
                self.structural(NO_ARRAY, "jsonpath wildcard array accessor can only be applied to an array")
            }
            Step::Elements(list) => self.elements(list, rest, &item, found),
            Step::Descendants { from, to } => self.descendants(*from, *to, rest, item, found),
            Step::Filter(filter) => {
                let outer = std::mem::replace(&mut self.current, item.clone());
                let truth = self.predicate(filter, &item);
                self.current = outer;
                if truth? == Some(true) { self.next(rest, item, found) } else { Ok(false) }
            }
            Step::Method(method) => self.method(*method, rest, item, found),
            Step::DateTime(template) => {
                let Some(text) = item.as_string() else {
                    return soft("22031", "jsonpath item method .datetime() can only be applied to a string");
                };
                let value = DateTime::parse(&text, template.as_deref())?;
                self.next(rest, Item::DateTime(value), found)
            }
        }
    }

    /// An error of the document's structure, which lax mode ignores.
    fn structural(&self, sqlstate: &'static str, message: &str) -> Outcome<IsFound> {
        if self.ignores_structure { Ok(false) } else { soft(sqlstate, message) }
    }

    fn member(&self, key: &str, item: &Item<'a>) -> Outcome<Option<Item<'a>>> {
        let Some(part) = item.part().filter(|_| item.is(Kind::Object)) else {
            return self
                .structural(NO_MEMBER, "jsonpath member accessor can only be applied to an object")
                .map(|_| None);
        };
        match part.member(key) {
            Some(member) => Ok(Some(Item::Json(member))),
            None if self.ignores_structure => Ok(None),
            None => soft(NO_MEMBER, format!("JSON object does not contain key \"{key}\"")),
        }
    }

    /// The steps from each element of an array.
    fn unwrapped(
        &mut self,
        steps: &[Step],
        item: &Item<'a>,
        found: &mut List<'_, 'a>,
        unwraps: bool,
    ) -> Outcome<IsFound> {
        let mut any = false;
        for element in item.part().into_iter().flat_map(Part::elements) {
            any |= self.at_child(steps, Item::Json(element), found, unwraps)?;
            if any && found.is_none() {
                break;
            }
        }
        Ok(any)
    }

    fn at_child(
        &mut self,
        steps: &[Step],
        item: Item<'a>,
        found: &mut List<'_, 'a>,
        unwraps: bool,
    ) -> Outcome<IsFound> {
        match steps {
            [] => self.next(steps, item, found),
            steps => self.deeper(|runner| runner.step(steps, item, found, unwraps)),
        }
    }

    /// The steps from everything within a container between two depths, where 1 is its own children.
    /// `leaves`: from scalars only, at any depth.
    fn children(
        &mut self,
        steps: &[Step],
        item: &Item<'a>,
        found: &mut List<'_, 'a>,
        levels: std::ops::RangeInclusive<u32>,
        leaves: bool,
    ) -> Outcome<IsFound> {
        let of = |item: &Item<'a>| -> std::vec::IntoIter<Part<'a>> {
            item.part().map(|part| part.children().collect::<Vec<_>>()).unwrap_or_default().into_iter()
        };
        if *levels.end() == 0 {
            return Ok(false);
        }
        // The containers that are open, outermost first.
        let mut open = vec![of(item)];
        let mut any = false;
        while let Some(last) = open.last_mut() {
            let Some(child) = last.next() else {
                open.pop();
                continue;
            };
            let level = u32::try_from(open.len()).unwrap_or(u32::MAX);
            let child = Item::Json(child);
            let is_scalar = child.kind().is_none_or(Kind::is_scalar);
            if !is_scalar && level < *levels.end() {
                open.push(of(&child));
            }
            if level >= *levels.start() || (leaves && is_scalar) {
                any |= self.at_child(steps, child, found, self.lax)?;
            }
            if any && found.is_none() {
                break;
            }
        }
        Ok(any)
    }

    fn descendants(
        &mut self,
        from: Option<u32>,
        to: Option<u32>,
        steps: &[Step],
        item: Item<'a>,
        found: &mut List<'_, 'a>,
    ) -> Outcome<IsFound> {
        let outer = std::mem::replace(&mut self.ignores_structure, true);
        let outcome = (|| {
            let mut any = false;
            if from == Some(0) {
                any = self.next(steps, item.clone(), found)?;
                if any && found.is_none() {
                    return Ok(true);
                }
            }
            let levels = from.unwrap_or(u32::MAX)..=to.unwrap_or(u32::MAX);
            any |= self.children(steps, &item, found, levels, from.is_none() && to.is_none())?;
            Ok(any)
        })();
        self.ignores_structure = outer;
        outcome
    }

    fn elements(
        &mut self,
        list: &[(Expr, Option<Expr>)],
        steps: &[Step],
        item: &Item<'a>,
        found: &mut List<'_, 'a>,
    ) -> Outcome<IsFound> {
        let elements: Option<Vec<Item<'a>>> =
            item.part().filter(|_| item.is(Kind::Array)).map(|part| part.elements().map(Item::Json).collect());
        let elements = match elements {
            Some(elements) => elements,
            None if self.lax => vec![item.clone()],
            None => return self.structural(NO_ARRAY, "jsonpath array accessor can only be applied to an array"),
        };
        let size = elements.len() as i64;
        let outer = self.array_size.replace(size);
        let outcome = self.subscripted(list, steps, item, &elements, found);
        self.array_size = outer;
        outcome
    }

    fn subscripted(
        &mut self,
        list: &[(Expr, Option<Expr>)],
        steps: &[Step],
        item: &Item<'a>,
        elements: &[Item<'a>],
        found: &mut List<'_, 'a>,
    ) -> Outcome<IsFound> {
        let size = elements.len() as i64;
        let mut any = false;
        for (from, to) in list {
            let first = self.subscript(from, item)?;
            let last = match to {
                Some(to) => self.subscript(to, item)?,
                None => first,
            };
            if !self.ignores_structure && (first < 0 || first > last || last >= size) {
                return soft(BAD_SUBSCRIPT, "jsonpath array subscript is out of bounds");
            }
            for index in first.max(0)..=last.min(size - 1) {
                any |= self.next(steps, elements[index as usize].clone(), found)?;
                if any && found.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(any)
    }

    fn subscript(&mut self, index: &Expr, item: &Item<'a>) -> Outcome<i64> {
        let mut found = Vec::new();
        self.deeper(|runner| runner.expr(index, item, &mut Some(&mut found)))?;
        let number = match found.as_slice() {
            [one] => one.as_number(),
            _ => None,
        };
        let Some(number) = number else {
            return soft(BAD_SUBSCRIPT, "jsonpath array subscript is not a single numeric value");
        };
        match number.trunc(0).and_then(|whole| whole.to_i32()) {
            Ok(index) => Ok(i64::from(index)),
            Err(_) => soft(BAD_SUBSCRIPT, "jsonpath array subscript is out of integer range"),
        }
    }

    /// The items of an operand, in lax mode with arrays unwrapped if `unwraps`.
    fn operand(&mut self, expr: &Expr, item: &Item<'a>, unwraps: bool) -> Outcome<Vec<Item<'a>>> {
        let mut items = Vec::new();
        self.deeper(|runner| runner.expr(expr, item, &mut Some(&mut items)))?;
        if !(unwraps && self.lax && items.iter().any(|item| item.is(Kind::Array))) {
            return Ok(items);
        }
        let mut unwrapped = Vec::with_capacity(items.len());
        for item in items {
            match item.part().filter(|_| item.is(Kind::Array)) {
                Some(part) => unwrapped.extend(part.elements().map(Item::Json)),
                None => unwrapped.push(item),
            }
        }
        Ok(unwrapped)
    }

    fn arithmetic(
        &mut self,
        op: ArithmeticOp,
        left: &Expr,
        right: &Expr,
        steps: &[Step],
        item: &Item<'a>,
        found: &mut List<'_, 'a>,
    ) -> Outcome<IsFound> {
        let left = self.operand(left, item, true)?;
        let right = self.operand(right, item, true)?;
        let single = |items: &[Item<'a>], side: &str| {
            match items {
                [one] => one.as_number().ok_or(()),
                _ => Err(()),
            }
            .or_else(|()| {
                let message =
                    format!("{side} operand of jsonpath operator {} is not a single numeric value", op.symbol());
                soft(NOT_SINGLE, message)
            })
        };
        let (left, right) = (single(&left, "left")?, single(&right, "right")?);
        let value = match op {
            ArithmeticOp::Add => left.add(&right),
            ArithmeticOp::Sub => left.sub(&right),
            ArithmeticOp::Mul => left.mul(&right),
            ArithmeticOp::Div => left.div(&right),
            ArithmeticOp::Mod => left.rem(&right),
        };
        self.next(steps, Item::number(&value.map_err(Failure::Soft)?), found)
    }

    fn sign(
        &mut self,
        operand: &Expr,
        negative: bool,
        steps: &[Step],
        item: &Item<'a>,
        found: &mut List<'_, 'a>,
    ) -> Outcome<IsFound> {
        let is_last = steps.is_empty() && found.is_none();
        let mut any = false;
        for operand in self.operand(operand, item, true)? {
            let Some(number) = operand.as_number() else {
                if is_last {
                    continue;
                }
                let symbol = if negative { "-" } else { "+" };
                let message = format!("operand of unary jsonpath operator {symbol} is not a numeric value");
                return soft(NO_NUMBER, message);
            };
            if is_last {
                return Ok(true);
            }
            let number = if negative { -number } else { number };
            any |= self.next(steps, Item::number(&number), found)?;
            if any && found.is_none() {
                break;
            }
        }
        Ok(any)
    }

    fn method(&mut self, method: Method, steps: &[Step], item: Item<'a>, found: &mut List<'_, 'a>) -> Outcome<IsFound> {
        let name = method.name();
        match method {
            Method::Type => self.next(steps, Item::string(item.type_name()), found),
            Method::Size => match item.elements_count() {
                Some(count) => self.next(steps, Item::number(&Numeric::from(count as i64)), found),
                None if self.lax => self.next(steps, Item::number(&Numeric::ONE), found),
                None => self.structural(NO_ARRAY, "jsonpath item method .size() can only be applied to an array"),
            },
            Method::Abs | Method::Floor | Method::Ceiling => {
                let Some(number) = item.as_number() else {
                    let message = format!("jsonpath item method .{name}() can only be applied to a numeric value");
                    return soft(NOT_NUMERIC, message);
                };
                let value = match method {
                    Method::Abs => Ok(number.abs()),
                    Method::Floor => number.floor(),
                    _ => number.ceil(),
                };
                self.next(steps, Item::number(&value.map_err(Failure::Soft)?), found)
            }
            Method::Double => {
                let value = double(&item)?;
                self.next(steps, value.unwrap_or(item), found)
            }
            Method::KeyValue => self.key_values(steps, &item, found),
        }
    }

    fn key_values(&mut self, steps: &[Step], item: &Item<'a>, found: &mut List<'_, 'a>) -> Outcome<IsFound> {
        let Some(part) = item.part().filter(|_| item.is(Kind::Object)) else {
            return soft(NO_OBJECT, "jsonpath item method .keyvalue() can only be applied to an object");
        };
        let base = self.base;
        let offset = match part.start().checked_sub(base.start) {
            Some(target) => binary_offset(&part.whole()[base.start..], target).map_err(Failure::Hard)?,
            None => 0,
        };
        let id = base.id * DOCUMENT_IDS + offset;
        let mut any = false;
        for (key, value) in part.members() {
            if steps.is_empty() && found.is_none() {
                return Ok(true);
            }
            let pair = format!("{{\"id\": {id}, \"key\": {key}, \"value\": {}}}", value.text());
            check_depth(pair.as_bytes()).map_err(Failure::Hard)?;
            let pair = Part::made(pair);
            self.base = Base { id: self.next_id, start: 0 };
            self.next_id += 1;
            let outcome = self.next(steps, Item::Json(pair), found);
            self.base = base;
            any |= outcome?;
            if any && found.is_none() {
                break;
            }
        }
        Ok(any)
    }

    fn predicate(&mut self, predicate: &Predicate, item: &Item<'a>) -> Outcome<Truth> {
        match predicate {
            Predicate::And(left, right) => {
                let left = self.deeper(|runner| runner.predicate(left, item))?;
                if left == Some(false) {
                    return Ok(Some(false));
                }
                let right = self.deeper(|runner| runner.predicate(right, item))?;
                Ok(if right == Some(true) { left } else { right })
            }
            Predicate::Or(left, right) => {
                let left = self.deeper(|runner| runner.predicate(left, item))?;
                if left == Some(true) {
                    return Ok(Some(true));
                }
                let right = self.deeper(|runner| runner.predicate(right, item))?;
                Ok(if right == Some(false) { left } else { right })
            }
            Predicate::Not(inner) => Ok(self.deeper(|runner| runner.predicate(inner, item))?.map(|truth| !truth)),
            Predicate::IsUnknown(inner) => Ok(Some(self.deeper(|runner| runner.predicate(inner, item))?.is_none())),
            Predicate::Compare(op, left, right) => {
                let Some(left) = quiet(self.operand(left, item, true))? else { return Ok(None) };
                let Some(right) = quiet(self.operand(right, item, true))? else { return Ok(None) };
                let execution = self.execution;
                self.any_pair(&left, &right, |left, right| compare(*op, left, right, execution))
            }
            Predicate::StartsWith(left, right) => {
                let Some(left) = quiet(self.operand(left, item, true))? else { return Ok(None) };
                let Some(right) = quiet(self.operand(right, item, false))? else { return Ok(None) };
                self.any_pair(&left, &right, |left, right| Ok(starts_with(left, right)))
            }
            Predicate::LikeRegex(operand, pattern) => {
                let Some(items) = quiet(self.operand(operand, item, true))? else { return Ok(None) };
                self.any_pair(&items, &[Item::null()], |item, _| like_regex(item, pattern))
            }
            Predicate::Exists(operand) => {
                // Strict mode looks at everything, to see that there are no errors.
                let mut items = Vec::new();
                let mut list = if self.lax { None } else { Some(&mut items) };
                let outcome = self.deeper(|runner| runner.expr(operand, item, &mut list));
                Ok(quiet(outcome)?)
            }
        }
    }

    /// Whether a test holds for any pair: in lax mode the first that holds decides, in strict mode the first
    /// that is unknown does.
    fn any_pair(
        &self,
        left: &[Item<'a>],
        right: &[Item<'a>],
        mut holds: impl FnMut(&Item<'a>, &Item<'a>) -> Outcome<Truth>,
    ) -> Outcome<Truth> {
        let (mut found, mut unknown) = (false, false);
        for left in left {
            for right in right {
                match holds(left, right)? {
                    None if !self.lax => return Ok(None),
                    None => unknown = true,
                    Some(true) if self.lax => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(if found || !unknown { Some(found) } else { None })
    }
}

/// An error that a condition may meet makes it unknown.
fn quiet<T>(outcome: Outcome<T>) -> Outcome<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Soft(_)) => Ok(None),
        Err(hard) => Err(hard),
    }
}

/// A string as a number; `None` for a number, which stays as it is.
fn double<'a>(item: &Item<'a>) -> Outcome<Option<Item<'a>>> {
    let finite = |text: &str| crate::io::parse_f64(text.as_bytes()).ok().filter(|value| value.is_finite());
    match (item.kind(), item.part()) {
        (Some(Kind::Number), Some(part)) => match finite(part.text()) {
            Some(_) => Ok(None),
            None => soft(
                NOT_NUMERIC,
                "numeric argument of jsonpath item method .double() is out of range for type double precision",
            ),
        },
        (Some(Kind::String), Some(part)) => match finite(&jsonb::unquote(part.text())) {
            Some(value) => Ok(Some(Item::number(&Numeric::from_f64(value)))),
            None => soft(
                NOT_NUMERIC,
                "string argument of jsonpath item method .double() is not a valid representation of a double precision number",
            ),
        },
        _ => soft(NOT_NUMERIC, "jsonpath item method .double() can only be applied to a string or numeric value"),
    }
}
