//! What evaluation may ask of its surroundings: parameters, the transaction's clock, the session's
//! formats. Nothing here is global, so that one expression can run for many sessions at once.

use crate::Error;
use crate::datetime::TimeZone;
use crate::domain::DomainConditions;
use crate::random::Generator;
use basalt_types::{DataType, Datum, DomainDef};
use std::any::Any;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// `DateStyle`'s output half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateFormat {
    #[default]
    Iso,
    Sql,
    Postgres,
    German,
}

/// `DateStyle`'s input half: how `1/2/2003` is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateOrder {
    #[default]
    Mdy,
    Dmy,
    Ymd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IntervalStyle {
    #[default]
    Postgres,
    PostgresVerbose,
    SqlStandard,
    Iso8601,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ByteaOutput {
    #[default]
    Hex,
    Escape,
}

/// Names of catalog objects, for `regclass` and its kin. Without it they read and print numbers.
pub trait CatalogNames: Send + Sync {
    /// The object that text names, or PostgreSQL's error that it does not exist.
    fn oid_of(&self, ty: &DataType, name: &str) -> Result<u32, Error>;
    /// As PostgreSQL prints it: quoted and qualified where needed.
    fn name_of(&self, ty: &DataType, oid: u32) -> Option<String>;
    /// The conditions of a domain's own CHECKs, bound.
    fn domain_conditions(&self, domain: &DomainDef) -> Result<DomainConditions, Error>;
}

/// Fills all of a buffer.
pub type FillRandom = dyn Fn(&mut [u8]) + Send + Sync;

/// What a literal that ends with a NUL and a number was read as.
#[derive(Clone, PartialEq, Debug)]
pub struct LiteralNote {
    pub number: usize,
    pub ty: DataType,
    pub value: Datum,
}

/// What the text of a moment or an interval is read by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LiteralStyle {
    pub timezone: TimeZone,
    pub date_order: DateOrder,
    pub interval_style: IntervalStyle,
}

/// Everything that a value may depend on besides its arguments.
#[derive(Clone)]
pub struct EvalContext {
    pub params: Vec<Datum>,
    pub timezone: TimeZone,
    /// Start of the transaction: `now()`. Microseconds since 1970-01-01 UTC, as the two below.
    pub now_micros: i64,
    /// `statement_timestamp()`.
    pub statement_micros: i64,
    /// `clock_timestamp()`, read at each call.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Fills bytes with randomness.
    pub random: Arc<FillRandom>,
    /// What the session's `setseed` started, if it was called.
    pub generator: Arc<Mutex<Option<Generator>>>,
    pub date_format: DateFormat,
    pub date_order: DateOrder,
    pub interval_style: IntervalStyle,
    pub bytea_output: ByteaOutput,
    /// 1 and more: shortest text that reads back as the same float; otherwise 15 (or 6) digits plus this.
    pub extra_float_digits: i32,
    pub names: Option<Arc<dyn CatalogNames>>,
    /// What functions that another crate registered ask for; only they know its type.
    pub system: Option<Arc<dyn Any + Send + Sync>>,
    /// Where literals that bear a number are noted as they are read.
    pub literals: Option<Arc<Mutex<Vec<LiteralNote>>>>,
    /// What literals of a statement are read by that was prepared under other settings.
    pub literal_style: Option<LiteralStyle>,
    /// Whether somebody has asked for the moment: of what was computed without, the next moment makes the same.
    pub asked_moment: Option<Arc<AtomicBool>>,
}

impl EvalContext {
    /// Default settings at a fixed moment: clock and randomness are constant until replaced.
    pub fn at(now_micros: i64) -> EvalContext {
        EvalContext {
            params: Vec::new(),
            timezone: TimeZone::UTC,
            now_micros,
            statement_micros: now_micros,
            clock: Arc::new(move || now_micros),
            random: Arc::new(|bytes| bytes.fill(0)),
            generator: Arc::default(),
            date_format: DateFormat::Iso,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            bytea_output: ByteaOutput::Hex,
            extra_float_digits: 1,
            names: None,
            system: None,
            literals: None,
            literal_style: None,
            asked_moment: None,
        }
    }

    /// [`EvalContext::now_micros`], for whoever computes a value of it.
    pub fn now(&self) -> i64 {
        // Many threads may ask; that it is set already, they only read.
        if let Some(asked) = self.asked_moment.as_ref().filter(|asked| !asked.load(Ordering::Relaxed)) {
            asked.store(true, Ordering::Relaxed);
        }
        self.now_micros
    }

    /// What texts are read by now.
    pub fn style(&self) -> LiteralStyle {
        LiteralStyle { timezone: self.timezone, date_order: self.date_order, interval_style: self.interval_style }
    }

    /// The context that literals are read in: this one, unless they have a style of their own.
    pub fn of_literals(&self) -> Cow<'_, EvalContext> {
        match self.literal_style {
            None => Cow::Borrowed(self),
            Some(LiteralStyle { timezone, date_order, interval_style }) => {
                Cow::Owned(EvalContext { timezone, date_order, interval_style, literal_style: None, ..self.clone() })
            }
        }
    }

    /// A literal's text without its number, and the number.
    pub fn numbered<'t>(&self, text: &'t str) -> (&'t str, Option<usize>) {
        match text.rsplit_once('\0').filter(|_| self.literals.is_some()) {
            Some((text, number)) => (text, number.parse().ok()),
            None => (text, None),
        }
    }

    /// Notes what a literal was read as.
    pub fn note_literal(&self, number: usize, ty: &DataType, value: &Datum) {
        if let Some(notes) = &self.literals {
            let note = LiteralNote { number, ty: ty.clone(), value: value.clone() };
            notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        }
    }

    /// `random()`: uniform in [0, 1).
    pub fn random_unit(&self) -> f64 {
        let mut seeded = self.generator.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(generator) = seeded.as_mut() {
            return generator.unit();
        }
        let mut bytes = [0; 8];
        (self.random)(&mut bytes);
        (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// `setseed`: what `random` gives from now on follows from the seed.
    pub fn seed_random(&self, seed: f64) {
        *self.generator.lock().unwrap_or_else(PoisonError::into_inner) = Some(Generator::seeded(seed));
    }
}
