//! What a pipeline computes: columns defined by storage or by earlier columns, and conditions over them.
//!
//! Expressions are taken apart into [`Def`]s, equal ones into one, so that each is computed at most once per batch, when
//! it is first asked for ([`crate::batch::Batch`]). Integers, dates and scaled numerics have kernels here; whatever else
//! an expression is goes to `expr` as it is ([`Def::General`]), over the same columns.

mod arrays;
mod condition;
mod general;
mod kinds;

pub(crate) use arrays::ArrayPart;
pub use condition::{Condition, fuse, fused};
pub(crate) use general::{General, logical};
pub(crate) use kinds::{Kind, comparable_to};

use crate::kernels::arithmetic::Op;
use basalt_expr::Numeric;
use basalt_expr::context::EvalContext;
use basalt_expr::datetime::Part;
use basalt_expr::tree::Expr;
use basalt_types::text::LengthUnit;
use basalt_types::{DataType, Datum};
use std::sync::Arc;

/// Branches of a CASE that are told apart by a byte per row.
const BRANCHES_MAX: usize = 200;

/// Of microseconds.
const SECOND_DIGITS: u8 = 6;

/// A column's place in a program.
pub type Place = usize;

/// How a column comes about.
#[derive(Clone, Debug)]
pub(crate) enum Def {
    /// By its place in the scan's list, or in batches that an earlier pipeline made.
    Given(usize),
    Arithmetic {
        op: Op,
        left: Arg,
        right: Arg,
        /// Between which results have to lie, if the type is narrower than i128.
        limits: Option<(i128, i128)>,
        /// What tells where bounds do not.
        general: General,
    },
    /// A field of a timestamp.
    Part {
        part: Part,
        of: Place,
    },
    /// How long a given text is, which storage may know without it.
    Length {
        unit: LengthUnit,
        of: Place,
        general: General,
    },
    /// Something of each of a given column's arrays, which storage may know without them.
    OfArray {
        part: ArrayPart,
        of: Place,
        general: General,
    },
    /// The value of the first branch whose condition is true.
    Case {
        branches: Vec<(Condition, Arg)>,
        otherwise: Option<Arg>,
    },
    General(General),
    /// Of the partners that a join found.
    Payload {
        join: usize,
        column: usize,
    },
    /// Whether a join found a partner.
    Mark {
        join: usize,
    },
    /// A value of a set-returning call, or its number, which a step of the pipeline gives.
    Element {
        step: usize,
    },
}

/// An integer operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Arg {
    Column(Place),
    Const(i128),
}

impl Def {
    /// The columns that it is computed from.
    pub fn places(&self) -> Vec<Place> {
        let of = |arg: &Arg| if let Arg::Column(place) = arg { Some(*place) } else { None };
        match self {
            Def::Given(_) | Def::Payload { .. } | Def::Mark { .. } | Def::Element { .. } => Vec::new(),
            Def::Arithmetic { left, right, general, .. } => {
                of(left).into_iter().chain(of(right)).chain(general.places.iter().copied()).collect()
            }
            Def::Case { branches, otherwise } => {
                let args = branches.iter().map(|(_, value)| value).chain(otherwise).filter_map(of);
                args.chain(branches.iter().flat_map(|(condition, _)| condition.places())).collect()
            }
            Def::Part { of, .. } | Def::Length { of, .. } | Def::OfArray { of, .. } => vec![*of],
            Def::General(general) => general.places.clone(),
        }
    }

    /// Whether it fails for no value.
    fn is_total(&self) -> bool {
        match self {
            Def::Given(_) | Def::Payload { .. } | Def::Mark { .. } | Def::Element { .. } | Def::Part { .. } => true,
            Def::Length { .. } => true,
            // A constant above 0 divides any integer, and makes none greater.
            Def::Arithmetic { op, .. } => matches!(op, Op::Div | Op::Rem),
            Def::Case { branches, .. } => branches.iter().all(|(condition, _)| condition.is_total()),
            Def::OfArray { general, .. } | Def::General(general) => general.is_total(),
        }
    }
}

/// How the values of a column are held.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    pub ty: DataType,
    /// Of a numeric without modifier that is held in integers all the same: its scale.
    pub scale: Option<u8>,
    pub nullable: bool,
}

impl Field {
    pub fn new(ty: DataType, nullable: bool) -> Field {
        Field { ty, scale: None, nullable }
    }

    /// The type in whose stored form values are.
    pub fn held(&self) -> DataType {
        match self.scale {
            Some(scale) => DataType::Numeric(Some((38, i16::from(scale)))),
            None => self.ty.clone(),
        }
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        Kind::of(&self.held())
    }
}

/// The columns of a pipeline, each defined by those before it.
#[derive(Clone, Default, Debug)]
pub struct Program {
    pub(crate) defs: Vec<Def>,
    pub fields: Vec<Field>,
    /// What was defined for an expression.
    known: Vec<(Expr, Typed)>,
}

/// An integer operand with what its integers mean.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Typed {
    arg: Arg,
    kind: Kind,
    nullable: bool,
    /// Of numerics that print fewer digits behind the point than their kind has, some more and some less: a column of
    /// how many.
    digits: Option<Place>,
}

impl Program {
    /// The columns that come in, in order.
    pub fn new(fields: Vec<Field>) -> Program {
        Program { defs: (0..fields.len()).map(Def::Given).collect(), fields, known: Vec::new() }
    }

    /// The same for what is summed, and a column of how many digits behind the point each value prints, if that
    /// differs: a sum prints as many as the value that prints most.
    pub fn define_summand(&mut self, expr: &Expr, ctx: &EvalContext) -> (Place, Option<Place>) {
        let expr = self.folded(expr, ctx);
        match self.integer(&expr) {
            Some(Typed { arg: Arg::Column(place), digits: Some(digits), .. }) => (place, Some(digits)),
            _ => (self.column(&expr), None),
        }
    }

    /// A column of the partners that a join finds.
    pub fn payload(&mut self, join: usize, column: usize, field: Field) -> Place {
        self.push(Def::Payload { join, column }, field)
    }

    /// Whether a join finds partners.
    pub fn mark(&mut self, join: usize, nullable: bool) -> Place {
        self.push(Def::Mark { join }, Field::new(DataType::Bool, nullable))
    }

    /// A column that a step gives.
    pub fn element(&mut self, step: usize, field: Field) -> Place {
        self.push(Def::Element { step }, field)
    }

    /// A column in the stored form of its own type.
    pub fn plain_of(&mut self, place: Place) -> Place {
        let field = &self.fields[place];
        match field.scale {
            None => place,
            Some(_) => self.general(&Expr::Column { index: place, ty: field.ty.clone() }),
        }
    }

    /// What the constants of its columns take.
    pub fn constant_bytes(&self) -> usize {
        let of_def = |def: &Def| match def {
            Def::Given(_) | Def::Payload { .. } | Def::Mark { .. } | Def::Element { .. } | Def::Part { .. } => 0,
            Def::Arithmetic { general, .. } | Def::Length { general, .. } => general.constant_bytes(),
            Def::OfArray { general, .. } | Def::General(general) => general.constant_bytes(),
            Def::Case { branches, .. } => branches.iter().map(|(condition, _)| condition.constant_bytes()).sum(),
        };
        self.defs.iter().map(of_def).sum()
    }

    /// Whether no column fails for some row.
    pub fn never_fails(&self) -> bool {
        self.defs.iter().all(Def::is_total)
    }

    /// Whether a column is computed from what a join finds.
    pub fn asks_partners(&self, place: Place, join: usize) -> bool {
        match &self.defs[place] {
            Def::Payload { join: of, .. } | Def::Mark { join: of } => *of == join,
            def => def.places().into_iter().any(|place| self.asks_partners(place, join)),
        }
    }

    /// Whether a column can be computed for every row without failing.
    pub fn is_total(&self, place: Place) -> bool {
        let def = &self.defs[place];
        def.is_total() && def.places().into_iter().all(|place| self.is_total(place))
    }

    /// The column of an expression over columns of this program. Parameters and what is constant are computed now.
    pub fn define(&mut self, expr: &Expr, ctx: &EvalContext) -> Place {
        let expr = self.folded(expr, ctx);
        self.column(&expr)
    }

    fn column(&mut self, expr: &Expr) -> Place {
        if let Expr::Column { index, .. } = expr {
            return *index;
        }
        match self.integer(expr) {
            Some(Typed { arg: Arg::Column(place), kind, digits: None, .. }) => self.as_type(place, kind, expr),
            // A constant for every row is no matter of kernels; nor are values of which each prints in its own way.
            Some(_) | None => self.general(expr),
        }
    }

    /// A column of integers as one of the expression's own type, which may differ from that of the column in what does
    /// not change its integers (`int4` as `int8`).
    fn as_type(&mut self, place: Place, kind: Kind, expr: &Expr) -> Place {
        let field =
            Field { ty: expr.ty(), scale: scale_beside(&expr.ty(), kind), nullable: self.fields[place].nullable };
        if self.fields[place] == field {
            return place;
        }
        let known = self.defs.iter().zip(&self.fields).position(|(def, other)| {
            *other == field && matches!(def, Def::Arithmetic { op: Op::Add, left: Arg::Column(of), right: Arg::Const(0), .. } if *of == place)
        });
        known.unwrap_or_else(|| self.arithmetic(Op::Add, Arg::Column(place), Arg::Const(0), None, field, expr))
    }

    fn push(&mut self, def: Def, field: Field) -> Place {
        self.defs.push(def);
        self.fields.push(field);
        self.defs.len() - 1
    }

    fn general(&mut self, expr: &Expr) -> Place {
        let general = General::new(expr, &self.fields);
        let same = |def: &Def| matches!(def, Def::General(other) if *other == general);
        match self.defs.iter().position(same) {
            Some(place) => place,
            None => self.push(Def::General(general), Field::new(expr.ty(), true)),
        }
    }

    fn arithmetic(
        &mut self,
        op: Op,
        left: Arg,
        right: Arg,
        limits: Option<(i128, i128)>,
        field: Field,
        expr: &Expr,
    ) -> Place {
        let general = General::new(expr, &self.fields);
        self.push(Def::Arithmetic { op, left, right, limits, general }, field)
    }

    /// An expression whose values are integers of a kind, and have kernels all the way down.
    fn integer(&mut self, expr: &Expr) -> Option<Typed> {
        if let Some((_, typed)) = self.known.iter().find(|(known, _)| known == expr) {
            return Some(*typed);
        }
        let typed = self.integer_anew(expr)?;
        self.known.push((expr.clone(), typed));
        Some(typed)
    }

    fn integer_anew(&mut self, expr: &Expr) -> Option<Typed> {
        match expr {
            Expr::Column { index, .. } => {
                let field = &self.fields[*index];
                let nullable = field.nullable;
                Some(Typed { arg: Arg::Column(*index), kind: field.kind()?, nullable, digits: None })
            }
            Expr::Const { value, ty } => {
                let (value, kind) = match ty {
                    DataType::Numeric(None) => {
                        let (value, scale) = Numeric::from_datum(value, ty).ok()?.as_scaled()?;
                        (value, Kind::Scaled(u8::try_from(scale).ok().filter(|scale| *scale <= kinds::SCALE_MAX)?))
                    }
                    _ => (int_of(value)?, Kind::of(ty)?),
                };
                Some(Typed { arg: Arg::Const(value), kind, nullable: false, digits: None })
            }
            Expr::Cast { expr: inner, to, .. } => {
                let from = self.integer(inner)?;
                let kind = kinds::widened(from.kind, &inner.ty(), to)?;
                Some(Typed { kind, ..from })
            }
            Expr::Call { function, args, ty } => {
                if let [of] = args.as_slice() {
                    return self.length(kinds::length_unit(function, &of.ty())?, of, expr);
                }
                let [left, right] = args.as_slice() else { return None };
                if function.name == "extract" {
                    return self.part(left, right, expr);
                }
                if let Some((at, micros)) = kinds::shift(function, [left, right]) {
                    return self.shifted([left, right][at], micros, ty, expr);
                }
                let op = kinds::operation(function)?;
                let (left, right) = (self.integer(left)?, self.integer(right)?);
                self.combined(op, left, right, ty, expr)
            }
            Expr::Case { branches, otherwise, ty } => self.case(branches, otherwise.as_deref(), ty),
            _ => None,
        }
    }

    /// The length of a text as storage gives it.
    fn length(&mut self, unit: LengthUnit, of: &Expr, expr: &Expr) -> Option<Typed> {
        let Expr::Column { index: of, .. } = *of else { return None };
        matches!(self.defs[of], Def::Given(_)).then_some(())?;
        let (nullable, general) = (self.fields[of].nullable, General::new(expr, &self.fields));
        let place = self.push(Def::Length { unit, of, general }, Field::new(expr.ty(), nullable));
        Some(Typed { arg: Arg::Column(place), kind: Kind::Whole, nullable, digits: None })
    }

    /// `extract` of a timestamp.
    fn part(&mut self, name: &Expr, of: &Expr, expr: &Expr) -> Option<Typed> {
        let Expr::Const { value: Datum::Bytes(name), .. } = name else { return None };
        let name = std::str::from_utf8(name).ok()?;
        if let (true, Expr::Call { function, args, .. }) = (name.eq_ignore_ascii_case("epoch"), of)
            && let ("timestamp_mi" | "timestamptz_mi", [later, earlier]) = (function.name.as_str(), args.as_slice())
        {
            return self.elapsed(later, earlier, expr);
        }
        let part = Part::parse(name)?;
        let Typed { arg: Arg::Column(of), kind: Kind::Timestamp, nullable, .. } = self.integer(of)? else {
            return None;
        };
        // Infinite timestamps have no minute.
        let (scale, nullable) = (part.scale(), nullable || !part.is_endless());
        let place =
            self.push(Def::Part { part, of }, Field { ty: DataType::Numeric(None), scale: Some(scale), nullable });
        Some(Typed { arg: Arg::Column(place), kind: Kind::Scaled(scale), nullable, digits: None })
    }

    /// The seconds between two timestamps, which have six digits behind the point.
    fn elapsed(&mut self, later: &Expr, earlier: &Expr, expr: &Expr) -> Option<Typed> {
        let (later, earlier) = (self.integer(later)?, self.integer(earlier)?);
        let is_time = |kind: Kind| matches!(kind, Kind::Timestamp | Kind::TimestampTz);
        if later.kind != earlier.kind || !is_time(later.kind) {
            return None;
        }
        if let (Arg::Const(_), Arg::Const(_)) = (later.arg, earlier.arg) {
            return None;
        }
        let nullable = later.nullable || earlier.nullable;
        let field = Field { ty: DataType::Numeric(None), scale: Some(SECOND_DIGITS), nullable };
        let limits = kinds::limits(&DataType::Int8);
        let place = self.arithmetic(Op::Elapsed, later.arg, earlier.arg, limits, field, expr);
        Some(Typed { arg: Arg::Column(place), kind: Kind::Scaled(SECOND_DIGITS), nullable, digits: None })
    }

    /// A time moved by some microseconds.
    fn shifted(&mut self, time: &Expr, micros: i128, ty: &DataType, expr: &Expr) -> Option<Typed> {
        let Typed { arg: Arg::Column(of), kind, nullable, .. } = self.integer(time)? else { return None };
        let field = Field::new(ty.clone(), nullable);
        if field.kind() != Some(kind) {
            return None;
        }
        // What is infinite stays so, which the general way sees to.
        let limits = Some(kinds::limits_of_shifted(micros));
        let place = self.arithmetic(Op::Add, Arg::Column(of), Arg::Const(micros), limits, field, expr);
        Some(Typed { arg: Arg::Column(place), kind, nullable, digits: None })
    }

    fn combined(&mut self, op: Op, left: Typed, right: Typed, ty: &DataType, expr: &Expr) -> Option<Typed> {
        if left.digits.is_some() || right.digits.is_some() {
            return None;
        }
        let (kind, left, right) = match (left.kind, right.kind) {
            (Kind::Whole, Kind::Whole) => (Kind::of(ty)?, left, right),
            (Kind::Scaled(a), Kind::Scaled(b)) if op == Op::Mul => (Kind::Scaled(a.checked_add(b)?), left, right),
            (Kind::Scaled(a), Kind::Scaled(b)) => {
                let scale = a.max(b);
                (Kind::Scaled(scale), self.rescaled(left, scale)?, self.rescaled(right, scale)?)
            }
            _ => return None,
        };
        match (op, left.arg, right.arg) {
            (_, Arg::Const(_), Arg::Const(_)) => return None,
            (Op::Div | Op::Rem, Arg::Column(_), Arg::Const(by)) if by > 0 && kind == Kind::Whole => {}
            // Nothing is divided by 0, and the least number not by -1.
            (Op::Div | Op::Rem, ..) => return None,
            _ => {}
        }
        // PostgreSQL keeps as many digits; beyond them the general way tells.
        if matches!(kind, Kind::Scaled(scale) if scale > kinds::SCALE_MAX) {
            return None;
        }
        let nullable = left.nullable || right.nullable;
        let field = Field { ty: ty.clone(), scale: scale_beside(ty, kind), nullable };
        if field.kind() != Some(kind) {
            return None;
        }
        let place = self.arithmetic(op, left.arg, right.arg, kinds::limits(ty), field, expr);
        Some(Typed { arg: Arg::Column(place), kind, nullable, digits: None })
    }

    /// The same value at a greater scale.
    fn rescaled(&mut self, value: Typed, scale: u8) -> Option<Typed> {
        let Kind::Scaled(from) = value.kind else { return None };
        if from == scale {
            return Some(value);
        }
        let factor = basalt_expr::numeric::power_of_ten(u32::from(scale.checked_sub(from)?))?;
        let arg = match value.arg {
            Arg::Const(constant) => Arg::Const(constant.checked_mul(factor)?),
            Arg::Column(place) => {
                let own = Expr::Column { index: place, ty: self.fields[place].ty.clone() };
                let field = Field { ty: DataType::Numeric(None), scale: Some(scale), nullable: value.nullable };
                Arg::Column(self.arithmetic(Op::Mul, Arg::Column(place), Arg::Const(factor), None, field, &own))
            }
        };
        Some(Typed { arg, kind: Kind::Scaled(scale), ..value })
    }

    /// CASE whose values are integers: none can fail, so all may be computed for all rows.
    fn case(&mut self, branches: &[(Expr, Expr)], otherwise: Option<&Expr>, ty: &DataType) -> Option<Typed> {
        if branches.len() > BRANCHES_MAX {
            return None;
        }
        let mut values = Vec::with_capacity(branches.len() + 1);
        for value in branches.iter().map(|(_, value)| value).chain(otherwise) {
            values.push(match value.is_null_const() {
                true => None,
                false => Some(self.integer(value)?),
            });
        }
        let kinds: Vec<Kind> = values.iter().flatten().map(|value| value.kind).collect();
        let kind = kinds.iter().copied().reduce(|a, b| if b > a { b } else { a })?;
        if !kinds.iter().all(|other| matches!((other, kind), (Kind::Scaled(_), Kind::Scaled(_))) || *other == kind) {
            return None;
        }
        // A null that is chosen ends the search as a value does; it is simplest where it comes last.
        let last = values.len() - 1;
        if values.iter().enumerate().any(|(at, value)| value.is_none() && (at < last || otherwise.is_none())) {
            return None;
        }
        if values.iter().flatten().any(|value| value.digits.is_some()) {
            return None;
        }
        let mut args = Vec::with_capacity(values.len());
        for value in values.iter().flatten() {
            args.push(match kind {
                Kind::Scaled(scale) => self.rescaled(*value, scale)?.arg,
                _ => value.arg,
            });
        }
        let conditions: Vec<Condition> =
            branches.iter().map(|(condition, _)| self.condition_of(condition)).collect::<Option<_>>()?;
        // What may fail must not be asked of rows that an earlier branch has taken: those are masked out.
        let nullable = args.len() == branches.len() || values.iter().flatten().any(|value| value.nullable);
        let otherwise = args.get(branches.len()).copied();
        let field = Field { ty: ty.clone(), scale: scale_beside(ty, kind), nullable };
        if field.kind() != Some(kind) {
            return None;
        }
        let digits = self.digits_of_case(&conditions, values.iter().flatten().map(|value| value.kind), nullable)?;
        let branches = conditions.into_iter().zip(args).collect();
        let place = self.push(Def::Case { branches, otherwise }, field);
        Some(Typed { arg: Arg::Column(place), kind, nullable, digits })
    }

    /// How many digits behind the point the values of a CASE print, if that differs; the outer `None` if nulls stand
    /// between them.
    fn digits_of_case(
        &mut self,
        conditions: &[Condition],
        kinds: impl Iterator<Item = Kind>,
        nullable: bool,
    ) -> Option<Option<Place>> {
        let scale = |kind: Kind| if let Kind::Scaled(scale) = kind { scale } else { 0 };
        let scales: Vec<i128> = kinds.map(|kind| i128::from(scale(kind))).collect();
        if scales.iter().all(|scale| *scale == scales[0]) {
            return Some(None);
        }
        (!nullable).then_some(())?;
        let branches = conditions.iter().cloned().zip(scales.iter().map(|scale| Arg::Const(*scale))).collect();
        let otherwise = scales.get(conditions.len()).map(|scale| Arg::Const(*scale));
        let field = Field::new(DataType::Int4, false);
        Some(Some(self.push(Def::Case { branches, otherwise }, field)))
    }

    /// The condition that an expression over columns of this program is. Parameters and what is constant are computed
    /// now.
    pub fn condition(&mut self, expr: &Expr, ctx: &EvalContext) -> Condition {
        let expr = self.folded(expr, ctx);
        self.condition_of(&expr).unwrap_or_else(|| Condition::General(Arc::new(General::new(&expr, &self.fields))))
    }
}

/// Of a kind's scale, what the type itself does not say.
fn scale_beside(ty: &DataType, kind: Kind) -> Option<u8> {
    match (kind, ty.decimal()) {
        (Kind::Scaled(scale), Some((_, own))) if own as u8 == scale => None,
        (Kind::Scaled(scale), _) => Some(scale),
        _ => None,
    }
}

pub(crate) fn int_of(value: &Datum) -> Option<i128> {
    match value {
        Datum::I16(value) => Some(i128::from(*value)),
        Datum::I32(value) => Some(i128::from(*value)),
        Datum::I64(value) => Some(i128::from(*value)),
        Datum::I128(value) => Some(*value),
        _ => None,
    }
}
