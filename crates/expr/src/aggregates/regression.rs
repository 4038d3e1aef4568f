//! Correlation, covariance and linear regression of pairs (PostgreSQL manual table 9.61).
//!
//! Sums of squared deviations by the updating method of Youngs and Cramer, step for step as PostgreSQL
//! takes them, so that the last digits agree.

use super::{Binding, GroupsAccumulator, for_each_row};
use crate::error::{Error, Result};
use crate::eval::vector::VectorBuilder;
use crate::functions::arg::{Arg, F8};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, BooleanArray, Float64Array};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

#[derive(Clone, Copy)]
enum Kind {
    Count,
    Sxx,
    Syy,
    Sxy,
    AvgX,
    AvgY,
    R2,
    Slope,
    Intercept,
    Corr,
    CovarPop,
    CovarSamp,
}

pub(super) fn bind(name: &str, args: &str) -> Option<Binding> {
    macro_rules! make {
        ($kind:ident) => {
            |_, _| Box::new(Pairs { kind: Kind::$kind, states: Vec::new() })
        };
    }
    let make: super::MakeAccumulator = match (name, args) {
        ("regr_count", "float8,float8") => make!(Count),
        ("regr_sxx", "float8,float8") => make!(Sxx),
        ("regr_syy", "float8,float8") => make!(Syy),
        ("regr_sxy", "float8,float8") => make!(Sxy),
        ("regr_avgx", "float8,float8") => make!(AvgX),
        ("regr_avgy", "float8,float8") => make!(AvgY),
        ("regr_r2", "float8,float8") => make!(R2),
        ("regr_slope", "float8,float8") => make!(Slope),
        ("regr_intercept", "float8,float8") => make!(Intercept),
        ("corr", "float8,float8") => make!(Corr),
        ("covar_pop", "float8,float8") => make!(CovarPop),
        ("covar_samp", "float8,float8") => make!(CovarSamp),
        _ => return None,
    };
    Some((make, |_, _| vec![DataType::Float8; 6]))
}

/// Count, sum of X and of its squared deviations, the same of Y, sum of products of deviations.
#[derive(Clone, Copy, Default)]
struct State {
    n: f64,
    sx: f64,
    sxx: f64,
    sy: f64,
    syy: f64,
    sxy: f64,
}

impl State {
    fn take_in(&mut self, y: f64, x: f64) -> Result<()> {
        let before = *self;
        self.n += 1.0;
        self.sx += x;
        self.sy += y;
        if before.n > 0.0 {
            let (dx, dy) = (x * self.n - self.sx, y * self.n - self.sy);
            let scale = 1.0 / (self.n * before.n);
            self.sxx += dx * dx * scale;
            self.syy += dy * dy * scale;
            self.sxy += dx * dy * scale;
            let x_finite = !before.sx.is_infinite() && !x.is_infinite();
            let y_finite = !before.sy.is_infinite() && !y.is_infinite();
            self.settle(x_finite, y_finite)?;
        } else {
            // What depends on a first value that is no number is none.
            if !x.is_finite() {
                (self.sxx, self.sxy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.syy, self.sxy) = (f64::NAN, f64::NAN);
            }
        }
        Ok(())
    }

    /// 22003 where finite values lead to infinite sums; sums over infinite values are no numbers.
    fn settle(&mut self, x_finite: bool, y_finite: bool) -> Result<()> {
        let x_overflows = (self.sx.is_infinite() || self.sxx.is_infinite()) && x_finite;
        let y_overflows = (self.sy.is_infinite() || self.syy.is_infinite()) && y_finite;
        if x_overflows || y_overflows || (self.sxy.is_infinite() && x_finite && y_finite) {
            return Err(Error::new("22003", "value out of range: overflow"));
        }
        for sum in [&mut self.sxx, &mut self.syy, &mut self.sxy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: State) -> Result<()> {
        if self.n == 0.0 || other.n == 0.0 {
            if self.n == 0.0 {
                *self = other;
            }
            return Ok(());
        }
        let (a, b) = (*self, other);
        self.n = a.n + b.n;
        self.sx = a.sx + b.sx;
        self.sy = a.sy + b.sy;
        let (dx, dy) = (a.sx / a.n - b.sx / b.n, a.sy / a.n - b.sy / b.n);
        self.sxx = a.sxx + b.sxx + a.n * b.n * dx * dx / self.n;
        self.syy = a.syy + b.syy + a.n * b.n * dy * dy / self.n;
        self.sxy = a.sxy + b.sxy + a.n * b.n * dx * dy / self.n;
        let finite = |a: f64, b: f64| !a.is_infinite() && !b.is_infinite();
        self.settle(finite(a.sx, b.sx), finite(a.sy, b.sy))
    }
}

struct Pairs {
    kind: Kind,
    states: Vec<State>,
}

impl Pairs {
    fn result(&self, State { n, sx, sxx, sy, syy, sxy }: State) -> Option<f64> {
        let least = if matches!(self.kind, Kind::CovarSamp) { 2.0 } else { 1.0 };
        if n < least {
            return None;
        }
        match self.kind {
            Kind::Count => Some(n),
            Kind::Sxx => Some(sxx),
            Kind::Syy => Some(syy),
            Kind::Sxy => Some(sxy),
            Kind::AvgX => Some(sx / n),
            Kind::AvgY => Some(sy / n),
            Kind::R2 if sxx == 0.0 => None,
            Kind::R2 if syy == 0.0 => Some(1.0),
            Kind::R2 => Some((sxy * sxy) / (sxx * syy)),
            Kind::Slope if sxx == 0.0 => None,
            Kind::Slope => Some(sxy / sxx),
            Kind::Intercept if sxx == 0.0 => None,
            Kind::Intercept => Some((sy - sx * sxy / sxx) / n),
            Kind::Corr if sxx == 0.0 || syy == 0.0 => None,
            Kind::Corr => Some(sxy / (sxx * syy).sqrt()),
            Kind::CovarPop => Some(sxy / n),
            Kind::CovarSamp => Some(sxy / (n - 1.0)),
        }
    }
}

impl GroupsAccumulator for Pairs {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.states.resize(total_groups, State::default());
        let (y, x) = (F8::column(&args[0], &DataType::Float8)?, F8::column(&args[1], &DataType::Float8)?);
        for_each_row(groups, args, filter, |row, group| self.states[group].take_in(y[row], x[row]))
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.states.resize(total_groups, State::default());
        let columns: Vec<&Float64Array> = states.iter().map(|column| column.as_primitive::<Float64Type>()).collect();
        for (row, group) in groups.iter().enumerate() {
            let [n, sx, sxx, sy, syy, sxy] = [0, 1, 2, 3, 4, 5].map(|column: usize| columns[column].value(row));
            self.states[*group as usize].merge(State { n, sx, sxx, sy, syy, sxy })?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let states = std::mem::take(&mut self.states);
        let fields: [fn(&State) -> f64; 6] = [
            |state| state.n,
            |state| state.sx,
            |state| state.sxx,
            |state| state.sy,
            |state| state.syy,
            |state| state.sxy,
        ];
        let columns = fields.map(|field| -> ArrayRef { Arc::new(states.iter().map(field).collect::<Float64Array>()) });
        Ok(columns.to_vec())
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        if let Kind::Count = self.kind {
            let counts = self.states.iter().map(|state| state.n as i64);
            return Ok(Arc::new(counts.collect::<arrow_array::Int64Array>()));
        }
        let mut out = VectorBuilder::new(&DataType::Float8, self.states.len());
        self.states.iter().try_for_each(|state| out.push(&self.result(*state).map_or(Datum::Null, Datum::F64)))?;
        out.finish()
    }

    fn size_bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}
