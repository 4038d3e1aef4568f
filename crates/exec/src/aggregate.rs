//! Aggregation: rows into groups, each worker for itself, and the workers' groups into one.

mod combined;
mod distinct;
mod early;
pub(crate) mod keys;
mod linear;
pub(crate) mod rows;
pub(crate) mod spill;
mod stages;
mod states;
mod strands;
pub(crate) mod table;
pub(crate) mod texts;

use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::join::concat::concat;
use crate::kernels::floats;
use crate::kernels::sums::{self, Groups};
use crate::program::{Condition, Field, Kind, Place, Program, logical};
use crate::spill::SPILL_BYTES_MIN;
use crate::stop::{check, pieces};
use arrow_array::{Array, ArrayRef, BooleanArray, Float32Array, Float64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use basalt_expr::Numeric;
use basalt_expr::aggregates::{GroupsAccumulator, ResolvedAggregate};
use basalt_expr::numeric::power_of_ten;
use basalt_types::batch::{bytes_of, to_stored};
use basalt_types::floats::of_word;
use basalt_types::vector::{IntValues, Ints, Vector};
use basalt_types::{ColumnBuilder, DataType, PhysType};
use distinct::Distinct;
use early::Early;
pub use early::Having;
use keys::{Form, Keys, Seeds};
use linear::{Guard, Linear};
use rows::Yield;
pub(crate) use stages::Stages;
use states::{Extreme, FloatSum, State, Sum, TextExtreme, without_nulls};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What is aggregated by what, in places of a program.
#[derive(Clone, Debug)]
pub struct Spec {
    groups: Vec<Place>,
    /// Of the group columns.
    keys: Vec<Field>,
    forms: Vec<Form>,
    /// Columns that the group columns decide, and how they are held.
    decided: Vec<(Place, Field)>,
    /// The order in which both leave.
    leaving: Vec<Leaving>,
    filters: Vec<Condition>,
    /// Values of which each counts once per group.
    sets: Vec<Set>,
    units: Vec<Unit>,
    /// Columns of which units take in what they are computed from.
    guards: Vec<Guard>,
    results: Vec<Outcome>,
    /// Of the hashes of all workers' keys.
    seeds: Seeds,
    /// What groups have to meet in the end, if they may leave once it is known that they do not.
    having: Option<Having>,
    /// Whether results show in which order rows came.
    heeds_order: bool,
}

/// The distinct values of a column, of rows that pass a filter.
#[derive(Clone, PartialEq, Debug)]
struct Set {
    place: Place,
    field: Field,
    form: Form,
    filter: Option<usize>,
}

/// Whose rows a unit takes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    All,
    /// Those that pass one of the filters.
    Filtered(usize),
    /// One for each value of one of the sets.
    Distinct(usize),
}

#[derive(Clone, Copy, Debug)]
enum Leaving {
    Key(usize),
    Decided(usize),
}

/// One call as it comes from a plan.
#[derive(Clone, Debug)]
pub struct Call {
    pub resolved: ResolvedAggregate,
    pub args: Vec<Place>,
    /// Of a sum or an average, how many digits behind the point its values print, if that differs.
    pub digits: Option<Place>,
    pub filter: Option<Condition>,
    /// Each value of its only argument counts once.
    pub distinct: bool,
    /// Where rows are groups themselves, of a count or an average: how many values each of them had.
    pub counts: Option<Place>,
}

/// What is kept per group. Calls that need the same share it.
#[derive(Clone, Debug)]
struct Unit {
    kind: UnitKind,
    of: Of,
}

#[derive(Clone, Debug)]
enum UnitKind {
    Rows,
    /// Rows that have a value.
    Values(Place),
    /// Rows of those groups that rows are.
    Counted(Place),
    Sum(Place),
    /// Of floats, rounded to single precision or not.
    FloatSum(Place, bool),
    Extreme(Place, bool),
    FloatExtreme(Place, bool),
    TextExtreme(Place, bool),
    General {
        resolved: ResolvedAggregate,
        args: Vec<(Place, DataType)>,
    },
}

/// How a result comes from units.
#[derive(Clone, Debug)]
enum Outcome {
    Count(usize),
    /// Null where the count is 0.
    Sum {
        sum: usize,
        count: usize,
        value: Linear,
        field: Field,
    },
    /// Numerics, each with as many digits as it prints.
    Numeric {
        sum: Digits,
        count: usize,
        average: bool,
    },
    /// Or the average. Null where the count is 0.
    FloatSum {
        sum: usize,
        count: usize,
        average: bool,
        ty: DataType,
    },
    Extreme {
        extreme: usize,
        count: usize,
        field: Field,
    },
    FloatExtreme {
        extreme: usize,
        count: usize,
        ty: DataType,
    },
    /// Null where there was no text.
    TextExtreme {
        unit: usize,
        ty: DataType,
    },
    General {
        unit: usize,
        ty: DataType,
    },
}

/// A sum of numerics, and how many digits behind the point it prints.
#[derive(Clone, Debug)]
struct Digits {
    sum: usize,
    value: Linear,
    scale: u8,
    /// Where that differs: the most digits that a value printed.
    most: Option<usize>,
}

impl Spec {
    /// The columns that it asks for.
    pub fn places(&self) -> Vec<Place> {
        let decided = self.decided.iter().map(|(place, _)| *place);
        let filters = self.filters.iter().flat_map(Condition::places);
        let sets = self.sets.iter().map(|set| set.place);
        let units = self.units.iter().flat_map(|unit| unit.kind.places());
        let guards = self.guards.iter().map(|guard| guard.place);
        self.groups.iter().copied().chain(decided).chain(filters).chain(sets).chain(units).chain(guards).collect()
    }

    /// `dependent`: of the groups those that the others decide. `None` if the keys, or values that count once, are of a
    /// type whose equality is not that of its stored form.
    pub fn new(program: &Program, all: &[Place], dependent: &[usize], calls: Vec<Call>) -> Option<Spec> {
        let (mut groups, mut decided, mut leaving) = (Vec::new(), Vec::new(), Vec::new());
        for (at, place) in all.iter().enumerate() {
            if dependent.contains(&at) {
                leaving.push(Leaving::Decided(decided.len()));
                decided.push((*place, program.fields[*place].clone()));
            } else {
                leaving.push(Leaving::Key(groups.len()));
                groups.push(*place);
            }
        }
        let keys: Vec<Field> = groups.iter().map(|place| program.fields[*place].clone()).collect();
        let forms = keys.iter().map(Form::of).collect::<Option<Vec<Form>>>()?;
        decided.iter().all(|(_, field)| field.held().phys().is_some()).then_some(())?;
        let mut spec = Spec {
            groups,
            keys,
            forms,
            decided,
            leaving,
            filters: Vec::new(),
            sets: Vec::new(),
            units: Vec::new(),
            guards: Vec::new(),
            results: Vec::new(),
            seeds: Seeds::new(),
            having: None,
            heeds_order: false,
        };
        for call in calls {
            let of = spec.rows_of(program, &call)?;
            let outcome = spec.outcome(program, call, of);
            spec.results.push(outcome);
        }
        Some(spec)
    }

    /// Says that results show in which order rows come: one worker takes them all.
    pub fn heed_order(&mut self) {
        self.heeds_order = true;
    }

    pub fn has_float_keys(&self) -> bool {
        self.forms.iter().any(|form| matches!(form, Form::Floats { .. }))
    }

    pub fn heeds_order(&self) -> bool {
        self.heeds_order
    }

    fn rows_of(&mut self, program: &Program, call: &Call) -> Option<Of> {
        let filter = call.filter.as_ref().map(|filter| {
            let known = self.filters.iter().position(|known| known == filter);
            known.unwrap_or_else(|| {
                self.filters.push(filter.clone());
                self.filters.len() - 1
            })
        });
        if !call.distinct {
            return Some(filter.map_or(Of::All, Of::Filtered));
        }
        // The digits of a value that stands for several would be those of any of them.
        let (&[place], None) = (call.args.as_slice(), call.digits) else { return None };
        let field = program.fields[place].clone();
        let set = Set { place, form: Form::of(&field)?, field, filter };
        Some(Of::Distinct(self.sets.iter().position(|known| *known == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        })))
    }

    fn unit(&mut self, kind: UnitKind, of: Of) -> usize {
        let same = |unit: &Unit| {
            unit.of == of
                && match (&unit.kind, &kind) {
                    (UnitKind::Rows, UnitKind::Rows) => true,
                    (UnitKind::Values(a), UnitKind::Values(b))
                    | (UnitKind::Counted(a), UnitKind::Counted(b))
                    | (UnitKind::Sum(a), UnitKind::Sum(b)) => a == b,
                    (UnitKind::FloatSum(a, single), UnitKind::FloatSum(b, other)) => a == b && single == other,
                    (UnitKind::Extreme(a, max), UnitKind::Extreme(b, other))
                    | (UnitKind::FloatExtreme(a, max), UnitKind::FloatExtreme(b, other))
                    | (UnitKind::TextExtreme(a, max), UnitKind::TextExtreme(b, other)) => a == b && max == other,
                    _ => false,
                }
        };
        self.units.iter().position(same).unwrap_or_else(|| {
            self.units.push(Unit { kind, of });
            self.units.len() - 1
        })
    }

    /// How many rows have a value.
    fn count_of(&mut self, program: &Program, place: Place, of: Of) -> usize {
        // Null is none of the distinct values.
        let valued = !program.fields[place].nullable || matches!(of, Of::Distinct(_));
        self.unit(if valued { UnitKind::Rows } else { UnitKind::Values(place) }, of)
    }

    fn outcome(&mut self, program: &Program, call: Call, of: Of) -> Outcome {
        let Call { resolved, args, digits, counts, .. } = call;
        let args = args.as_slice();
        let kind = args.first().and_then(|place| program.fields[*place].kind());
        match (resolved.aggregate.name.as_str(), args, kind) {
            ("count", ..) if let Some(counts) = counts => Outcome::Count(self.unit(UnitKind::Counted(counts), of)),
            ("count", [], _) => Outcome::Count(self.unit(UnitKind::Rows, of)),
            // What may fail for a row has to be computed for it.
            ("count", [place], _) if !program.is_total(*place) => {
                Outcome::Count(self.unit(UnitKind::Values(*place), of))
            }
            ("count", [place], _) => Outcome::Count(self.count_of(program, *place, of)),
            ("sum" | "avg", [place], Some(Kind::Whole | Kind::Scaled(_))) => {
                let scale = if let Some(Kind::Scaled(scale)) = kind { scale } else { 0 };
                // Each of several distinct values may be what the sum is of, and digits are those of values.
                let (value, guards) = match (of, digits) {
                    (Of::All | Of::Filtered(_), None) => Linear::of(program, *place),
                    _ => (Linear::column(*place), Vec::new()),
                };
                guards.into_iter().for_each(|guard| {
                    if !self.guards.contains(&guard) {
                        self.guards.push(guard);
                    }
                });
                let sum = self.unit(UnitKind::Sum(value.base), of);
                let count = match counts {
                    Some(counts) => self.unit(UnitKind::Counted(counts), of),
                    None => self.count_of(program, value.base, of),
                };
                let average = resolved.aggregate.name == "avg";
                if average || digits.is_some() {
                    let most = digits.map(|digits| self.unit(UnitKind::Extreme(digits, true), of));
                    return Outcome::Numeric { sum: Digits { sum, value, scale, most }, count, average };
                }
                let scale = (resolved.ty == DataType::Numeric(None)).then_some(scale);
                Outcome::Sum { sum, count, value, field: Field { ty: resolved.ty, scale, nullable: true } }
            }
            ("sum" | "avg", [place], None) if is_float(&program.fields[*place].ty) => {
                let average = resolved.aggregate.name == "avg";
                let single = !average && resolved.ty == DataType::Float4;
                let count = self.count_of(program, *place, of);
                let sum = self.unit(UnitKind::FloatSum(*place, single), of);
                Outcome::FloatSum { sum, count, average, ty: resolved.ty }
            }
            ("min" | "max", [place], None) if is_float(&program.fields[*place].ty) => {
                let count = self.count_of(program, *place, of);
                let extreme = self.unit(UnitKind::FloatExtreme(*place, resolved.aggregate.name == "max"), of);
                Outcome::FloatExtreme { extreme, count, ty: resolved.ty }
            }
            ("min" | "max", [place], Some(_)) => {
                let max = resolved.aggregate.name == "max";
                let count = self.count_of(program, *place, of);
                let extreme = self.unit(UnitKind::Extreme(*place, max), of);
                let field = Field { nullable: true, ..program.fields[*place].clone() };
                Outcome::Extreme { extreme, count, field }
            }
            ("min" | "max", [place], None) if keys::is_text(program.fields[*place].ty.underlying()) => {
                let greatest = resolved.aggregate.name == "max";
                let unit = self.unit(UnitKind::TextExtreme(*place, greatest), of);
                Outcome::TextExtreme { unit, ty: resolved.ty }
            }
            _ => {
                let args = args.iter().map(|place| (*place, program.fields[*place].held())).collect();
                let ty = resolved.ty.clone();
                let unit = self.unit(UnitKind::General { resolved, args }, of);
                Outcome::General { unit, ty }
            }
        }
    }

    /// The columns of the result: keys, then calls.
    pub fn fields(&self) -> Vec<Field> {
        let of_result = |result: &Outcome| match result {
            Outcome::Count(_) => Field::new(DataType::Int8, false),
            Outcome::Sum { field, .. } | Outcome::Extreme { field, .. } => field.clone(),
            Outcome::Numeric { .. } => Field::new(DataType::Numeric(None), true),
            Outcome::FloatSum { ty, .. } | Outcome::FloatExtreme { ty, .. } => Field::new(ty.clone(), true),
            Outcome::TextExtreme { ty, .. } | Outcome::General { ty, .. } => Field::new(ty.clone(), true),
        };
        let leaving = self.leaving.iter().map(|leaving| match leaving {
            Leaving::Key(at) => self.keys[*at].clone(),
            Leaving::Decided(at) => self.decided[*at].1.clone(),
        });
        leaving.chain(self.results.iter().map(of_result)).collect()
    }
}

/// The groups of one worker.
pub struct Aggregation {
    spec: Arc<Spec>,
    keys: Keys,
    states: Vec<State>,
    sets: Vec<Distinct>,
    /// Of the columns that keys decide, the values of each group's first row: batch by batch those of new groups.
    decided: Vec<Vec<Vector>>,
    decided_bytes: usize,
    /// What it takes without any group.
    base_bytes: usize,
    /// Whether a batch has come: states know of no group before.
    begun: bool,
    early: Option<Box<Early>>,
    /// Groups that left early, as long as that was worth it.
    left: usize,
    fruit: Yield,
    /// Groups of rows whose keys ascended, before others came that ascend from further in front: a key may be here and there.
    strands: Vec<Aggregation>,
}

impl Aggregation {
    pub fn new(spec: &Arc<Spec>) -> Aggregation {
        let state = |unit: &Unit| match &unit.kind {
            UnitKind::Rows | UnitKind::Values(_) | UnitKind::Counted(_) => State::Count(Vec::new()),
            UnitKind::Sum(_) => State::Sum(Sum::default()),
            UnitKind::FloatSum(_, single) => State::FloatSum(FloatSum::new(*single)),
            UnitKind::Extreme(_, greatest) | UnitKind::FloatExtreme(_, greatest) => {
                State::Extreme(Extreme::new(*greatest))
            }
            UnitKind::TextExtreme(_, greatest) => State::TextExtreme(TextExtreme::new(*greatest)),
            UnitKind::General { resolved, .. } => State::General(resolved.accumulator()),
        };
        let states = spec.units.iter().map(state).collect();
        let decided = vec![Vec::new(); spec.decided.len()];
        let keys = Keys::new(&spec.forms, &spec.seeds);
        let sets = spec.sets.iter().map(|set| Distinct::new(set.form, spec.groups.is_empty(), &spec.seeds)).collect();
        let empty = Aggregation {
            spec: spec.clone(),
            keys,
            states,
            sets,
            decided,
            decided_bytes: 0,
            base_bytes: 0,
            begun: false,
            early: None,
            left: 0,
            fruit: Yield::default(),
            strands: Vec::new(),
        };
        Aggregation { base_bytes: empty.bytes(), ..empty }
    }

    /// Groups so far, the one of rows that do not count among them.
    fn len(&self) -> usize {
        // Without keys there is one group, even of no rows.
        if self.spec.groups.is_empty() { 2 } else { self.keys.len() }
    }

    pub fn bytes(&self) -> usize {
        let of_sets = self.sets.iter().map(Distinct::bytes).sum::<usize>();
        let own =
            self.decided_bytes + self.keys.bytes() + of_sets + self.states.iter().map(State::bytes).sum::<usize>();
        own + self.strands.iter().map(Aggregation::bytes).sum::<usize>()
    }

    /// Whether it is not worth it to have it on disk.
    pub fn is_small(&self) -> bool {
        self.bytes() < self.base_bytes + SPILL_BYTES_MIN
    }

    /// What [`Aggregation::finish`] takes beside it.
    pub fn finish_bytes(&self) -> usize {
        let general = self.states.iter().filter(|state| matches!(state, State::General(_)));
        self.decided_bytes + general.map(State::bytes).sum::<usize>() + self.gathering_bytes()
    }

    pub fn add(&mut self, batch: &mut Batch<'_>, work: &mut Work) -> Result<()> {
        self.begun = true;
        self.fruit.add(batch.count());
        let spec = self.spec.clone();
        let assigned;
        let own: Vec<u32>;
        let groups = if !spec.groups.is_empty() {
            let keys: Vec<Vector> =
                spec.groups.iter().map(|place| batch.vector(*place, work)).collect::<Result<_>>()?;
            if self.keys.falls_back(&keys, batch.mask()) && self.may_begin_anew() {
                self.begin_anew();
            }
            let before = self.keys.len();
            assigned = self.keys.assigned(&keys, batch.rows(), batch.mask())?;
            let groups = assigned.groups();
            if !spec.decided.is_empty() && self.keys.len() > before {
                let first = first_rows(&groups.of_rows(batch.rows()), before)?;
                for (at, (place, _)) in spec.decided.iter().enumerate() {
                    self.keep_decided(at, batch.vector(*place, work)?.take(&first));
                }
            }
            groups
        } else if let Some(mask) = batch.mask() {
            own = mask.iter().map(|counts| u32::from(*counts)).collect();
            Groups::Each(&own)
        } else {
            Groups::One(1)
        };
        let filtered: Vec<Vec<u32>> = (spec.filters.iter())
            .map(|filter| Ok(masked(groups, &batch.decided(filter, work)?)))
            .collect::<Result<_>>()?;
        for (set, values) in spec.sets.iter().zip(&mut self.sets) {
            let groups = set.filter.map_or(groups, |filter| Groups::Each(&filtered[filter]));
            values.add(groups, batch.vector(set.place, work)?, batch.rows())?;
        }
        spec.guards.iter().try_for_each(|guard| guard.check(batch, work))?;
        for (at, unit) in spec.units.iter().enumerate() {
            let groups = match unit.of {
                Of::All => groups,
                Of::Filtered(filter) => Groups::Each(&filtered[filter]),
                // When all are known.
                Of::Distinct(_) => continue,
            };
            let places = unit.kind.places();
            let values = places.iter().map(|place| batch.vector(*place, work)).collect::<Result<Vec<_>>>()?;
            self.update(at, &unit.kind, groups, &values, batch.rows())?;
        }
        self.leave()
    }

    /// Values of new groups.
    fn keep_decided(&mut self, at: usize, first: Vector) {
        let first = match first {
            // Texts share buffers with rows that are not held.
            Vector::Flat(values) => Vector::Flat(basalt_types::batch::own(values)),
            other => other,
        };
        self.decided_bytes += match &first {
            Vector::Flat(values) => bytes_of(std::slice::from_ref(values)),
            other => other.len() * size_of::<u64>(),
        };
        self.decided[at].push(first);
    }

    fn update(&mut self, at: usize, kind: &UnitKind, groups: Groups<'_>, values: &[Vector], rows: usize) -> Result<()> {
        check()?;
        let len = self.len();
        let valued = |nulls: Option<&NullBuffer>| nulls.map(|nulls| without_nulls(groups, nulls));
        match (kind, &mut self.states[at], values) {
            (UnitKind::Rows, State::Count(counts), _) => {
                counts.resize(len, 0);
                sums::count(groups, rows, counts);
            }
            (UnitKind::Values(_), State::Count(counts), [values]) => {
                let own = valued(values.nulls());
                counts.resize(len, 0);
                sums::count(own.as_deref().map_or(groups, Groups::Each), rows, counts);
            }
            (UnitKind::Counted(_), State::Count(counts), [values]) => {
                add_counts(counts, integers(values)?, groups, len);
            }
            (UnitKind::Sum(_), State::Sum(sum), [values]) => {
                let ints = integers(values)?;
                let own = valued(ints.nulls.as_ref());
                sum.add(ints, own.as_deref().map_or(groups, Groups::Each), len)?;
            }
            (UnitKind::Extreme(..), State::Extreme(extreme), [values]) => {
                let ints = integers(values)?;
                let own = valued(ints.nulls.as_ref());
                extreme.add(ints, own.as_deref().map_or(groups, Groups::Each), len)?;
            }
            (UnitKind::FloatSum(..), State::FloatSum(sum), [values]) => {
                let own = valued(values.nulls());
                sum.add(&floats_of(values)?, own.as_deref().map_or(groups, Groups::Each), len)?;
            }
            (UnitKind::FloatExtreme(..), State::Extreme(extreme), [Vector::Flat(values)]) => {
                let own = valued(values.nulls());
                let words = floats::words(values).ok_or(FLOATS)?;
                extreme.add_words(&words, own.as_deref().map_or(groups, Groups::Each), len);
            }
            (UnitKind::TextExtreme(..), State::TextExtreme(extreme), [values]) => extreme.add(values, groups, len)?,
            (UnitKind::General { args, .. }, State::General(accumulator), values) => {
                let arrays: Vec<ArrayRef> =
                    values.iter().zip(args).map(|(values, (_, held))| logical(values, held)).collect();
                update_generally(&mut **accumulator, groups, &arrays, rows, len)?;
            }
            _ => panic!("states are made for their units"),
        }
        Ok(())
    }

    /// Gives what aggregates distinct values all of them.
    fn take_in_sets(&mut self) -> Result<()> {
        let spec = self.spec.clone();
        for (at, mut set) in std::mem::take(&mut self.sets).into_iter().enumerate() {
            set.seal();
            for pairs in set.parts() {
                check()?;
                let (groups, values) = set.pairs(pairs);
                for (unit, Unit { kind, .. }) in
                    spec.units.iter().enumerate().filter(|(_, unit)| unit.of == Of::Distinct(at))
                {
                    let values = if kind.places().is_empty() { &[] } else { std::slice::from_ref(&values) };
                    self.update(unit, kind, Groups::Each(&groups), values, groups.len())?;
                }
            }
        }
        Ok(())
    }

    /// How many groups there are, some of them perhaps twice.
    pub fn groups(&self) -> usize {
        self.len() - 1 + self.strands.iter().map(Aggregation::groups).sum::<usize>()
    }

    /// Computes what is computed of all groups at once.
    pub fn finish(self) -> Result<Finished> {
        let mut all = self.gathered()?;
        all.take_in_sets()?;
        all.keys.seal();
        let len = all.len();
        let Aggregation { spec, keys, states, decided, .. } = all;
        let decided = decided.iter().zip(&spec.decided);
        let decided = decided.map(|(parts, (_, field))| concat(&parts.iter().collect::<Vec<_>>(), field));
        let decided = decided.collect::<Result<Vec<_>>>()?;
        let mut done = Vec::with_capacity(states.len());
        for (state, unit) in states.into_iter().zip(&spec.units) {
            done.push(match state {
                State::Count(counts) => Done::Count(counts),
                State::Sum(sum) => Done::Sum(sum),
                State::FloatSum(sum) => Done::FloatSum(sum),
                State::Extreme(extreme) => Done::Extreme(extreme),
                State::TextExtreme(extreme) => Done::TextExtreme(extreme),
                State::General(mut accumulator) => {
                    // Groups that never had a row are told of.
                    accumulator.update(&[], &unit.no_args(), None, len)?;
                    Done::General(unit.stored(&accumulator.evaluate()?))
                }
            });
        }
        Ok(Finished { spec, keys, decided, groups: len - 1, done })
    }
}

impl Unit {
    /// The arguments of no rows.
    fn no_args(&self) -> Vec<ArrayRef> {
        match &self.kind {
            UnitKind::General { args, .. } => {
                args.iter().map(|(_, held)| arrow_array::new_empty_array(&held.to_arrow())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Results that an accumulator of `expr` has given.
    fn stored(&self, results: &ArrayRef) -> ArrayRef {
        match &self.kind {
            UnitKind::General { resolved, .. } => to_stored(&resolved.ty, results),
            _ => results.clone(),
        }
    }
}

impl UnitKind {
    /// Whether all groups take the same: a number or two.
    fn is_small(&self) -> bool {
        match self {
            UnitKind::Rows | UnitKind::Values(_) | UnitKind::Counted(_) => true,
            UnitKind::Sum(_) | UnitKind::FloatSum(..) => true,
            UnitKind::Extreme(..) | UnitKind::FloatExtreme(..) => true,
            UnitKind::TextExtreme(..) | UnitKind::General { .. } => false,
        }
    }

    /// The columns that it takes in.
    fn places(&self) -> Vec<Place> {
        match self {
            UnitKind::Rows => Vec::new(),
            UnitKind::Values(place) | UnitKind::Counted(place) | UnitKind::Sum(place) => vec![*place],
            UnitKind::FloatSum(place, _) | UnitKind::FloatExtreme(place, _) => vec![*place],
            UnitKind::Extreme(place, _) | UnitKind::TextExtreme(place, _) => vec![*place],
            UnitKind::General { args, .. } => args.iter().map(|(place, _)| *place).collect(),
        }
    }
}

/// All groups with their results.
pub struct Finished {
    spec: Arc<Spec>,
    keys: Keys,
    decided: Vec<Vector>,
    groups: usize,
    done: Vec<Done>,
}

/// A [`State`] to which nothing comes any more.
enum Done {
    Count(Vec<i64>),
    Sum(Sum),
    FloatSum(FloatSum),
    Extreme(Extreme),
    TextExtreme(TextExtreme),
    /// In stored form.
    General(ArrayRef),
}

impl Finished {
    pub fn bytes(&self) -> usize {
        let done = self.done.iter().map(|done| match done {
            Done::Count(counts) => counts.capacity() * size_of::<i64>(),
            Done::Sum(sum) => sum.bytes(),
            Done::FloatSum(sum) => sum.bytes(),
            Done::Extreme(extreme) => extreme.bytes(),
            Done::TextExtreme(extreme) => extreme.bytes(),
            Done::General(values) => bytes_of(std::slice::from_ref(values)),
        });
        self.keys.bytes() + self.decided.iter().map(crate::spill::bytes_of).sum::<usize>() + done.sum::<usize>()
    }

    pub fn groups(&self) -> usize {
        self.groups
    }

    /// A column of [`Spec::fields`] for some groups, counted from 0.
    pub fn column(&self, at: usize, groups: Range<usize>) -> Result<Vector> {
        self.column_of(at, &Chosen::All(groups.start + 1..groups.end + 1))
    }

    /// The same for those at `rows` of the groups that begin with number `from`.
    pub fn column_at(&self, at: usize, from: usize, rows: &[u32]) -> Result<Vector> {
        let numbers: Vec<u32> = rows.iter().map(|row| row + from as u32 + 1).collect();
        self.column_of(at, &Chosen::These(&numbers))
    }

    fn column_of(&self, at: usize, groups: &Chosen<'_>) -> Result<Vector> {
        match self.spec.leaving.get(at) {
            Some(Leaving::Key(key)) => Ok(self.keys.vector(*key, groups)),
            Some(Leaving::Decided(decided)) => Ok(self.decided[*decided].take(&groups.rows())),
            None => Results(&self.done).result(&self.spec.results[at - self.spec.leaving.len()], groups),
        }
    }
}

/// Some groups by their numbers, which are counted from 1.
#[derive(Clone)]
pub(crate) enum Chosen<'n> {
    All(Range<usize>),
    These(&'n [u32]),
}

impl Chosen<'_> {
    fn len(&self) -> usize {
        match self {
            Chosen::All(groups) => groups.len(),
            Chosen::These(groups) => groups.len(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let (range, list) = match self {
            Chosen::All(groups) => (groups.clone(), [].as_slice()),
            Chosen::These(groups) => (0..0, *groups),
        };
        range.chain(list.iter().map(|group| *group as usize))
    }

    /// The same counted from 0.
    fn rows(&self) -> Vec<u32> {
        self.iter().map(|group| group as u32 - 1).collect()
    }
}

/// What is known of groups, unit by unit.
struct Results<'d>(&'d [Done]);

impl Results<'_> {
    fn count(&self, unit: usize, group: usize) -> i64 {
        match &self.0[unit] {
            Done::Count(counts) => counts.get(group).copied().unwrap_or(0),
            _ => panic!("unit {unit} counts"),
        }
    }

    /// Those of groups that lie side by side.
    fn counts(&self, unit: usize, groups: &Chosen<'_>) -> Option<&[i64]> {
        match (&self.0[unit], groups) {
            (Done::Count(counts), Chosen::All(groups)) => counts.get(groups.clone()),
            _ => None,
        }
    }

    fn total(&self, unit: usize, group: usize) -> Result<i128> {
        match &self.0[unit] {
            Done::Sum(sum) => sum.total(group),
            _ => panic!("unit {unit} sums"),
        }
    }

    /// Of so many values.
    fn numeric(&self, Digits { sum, value, scale, most }: &Digits, group: usize, values: i64) -> Result<Numeric> {
        let total = value.total(self.total(*sum, group)?, values)?;
        let printed = match most.map(|most| &self.0[most]) {
            Some(Done::Extreme(most)) => most.value(group).clamp(0, i64::from(*scale)) as u8,
            _ => *scale,
        };
        // All values have that many digits, and so has their sum.
        let unit = power_of_ten(u32::from(scale - printed)).expect("scales are small");
        Ok(Numeric::from_scaled(total / unit, u16::from(printed)))
    }

    fn valued(&self, count: usize, groups: &Chosen<'_>) -> Option<NullBuffer> {
        // Nearly always all of them.
        if self.counts(count, groups).is_some_and(|counts| counts.iter().all(|count| *count > 0)) {
            return None;
        }
        let valid: NullBuffer = groups.iter().map(|group| self.count(count, group) > 0).collect();
        Some(valid).filter(|valid| valid.null_count() > 0)
    }

    /// Null where the count is 0.
    fn floats(&self, groups: &Chosen<'_>, count: usize, ty: &DataType, value: impl Fn(usize) -> f64) -> Vector {
        let values = groups.iter().map(|group| (self.count(count, group) > 0).then(|| value(group)));
        Vector::Flat(match ty {
            DataType::Float4 => Arc::new(values.map(|value| value.map(|value| value as f32)).collect::<Float32Array>()),
            _ => Arc::new(values.collect::<Float64Array>()),
        })
    }

    fn result(&self, result: &Outcome, groups: &Chosen<'_>) -> Result<Vector> {
        Ok(match result {
            Outcome::Count(unit) => {
                let counts = match self.counts(*unit, groups) {
                    Some(counts) => counts.to_vec().into(),
                    None => groups.iter().map(|group| self.count(*unit, group)).collect(),
                };
                Vector::Ints(Ints::measured(IntValues::I64(counts), None))
            }
            Outcome::Sum { sum, count, value, field } => {
                let Done::Sum(of) = &self.0[*sum] else { panic!("unit {sum} sums") };
                let narrow = match groups {
                    Chosen::All(groups) if value.is_column() => of.narrow(groups.clone()),
                    _ => None,
                };
                let totals = match narrow {
                    Some(totals) => IntValues::I64(totals.to_vec().into()),
                    None => {
                        let total = |group: usize| value.total(of.total(group)?, self.count(*count, group));
                        IntValues::I128(groups.iter().map(total).collect::<Result<Vec<i128>>>()?.into())
                    }
                };
                let ints = Ints::measured(totals, self.valued(*count, groups));
                match narrowed(ints) {
                    Ints { values: IntValues::I128(_), .. } if field.ty == DataType::Int8 => {
                        return Err(Error::Beyond("a sum beyond bigint"));
                    }
                    ints => Vector::Ints(ints),
                }
            }
            Outcome::Numeric { sum, count, average } => {
                let mut builder = ColumnBuilder::new(PhysType::Bytes, groups.len());
                for group in groups.iter() {
                    let rows = self.count(*count, group);
                    let sum = self.numeric(sum, group, rows)?;
                    match rows {
                        0 => builder.push_null(),
                        _ => {
                            let value = if *average { sum.div(&Numeric::from(rows as u64))? } else { sum };
                            let fits = builder.push_bytes(&value.encoded());
                            assert!(fits, "numerics are bytes");
                        }
                    }
                }
                Vector::Flat(builder.finish())
            }
            Outcome::Extreme { extreme, count, .. } => {
                let Done::Extreme(of) = &self.0[*extreme] else { panic!("unit {extreme} finds extremes") };
                let nulls = self.valued(*count, groups);
                let value = |group: usize| if self.count(*count, group) > 0 { of.value(group) } else { 0 };
                Vector::Ints(Ints::measured(IntValues::I64(groups.iter().map(value).collect()), nulls))
            }
            Outcome::FloatSum { sum, count, average, ty } => {
                let Done::FloatSum(of) = &self.0[*sum] else { panic!("unit {sum} sums floats") };
                if *average {
                    of.check_squares()?;
                }
                let value = |group: usize| match average {
                    true => of.total(group) / self.count(*count, group) as f64,
                    false => of.total(group),
                };
                self.floats(groups, *count, ty, value)
            }
            Outcome::FloatExtreme { extreme, count, ty } => {
                let Done::Extreme(of) = &self.0[*extreme] else { panic!("unit {extreme} finds extremes") };
                self.floats(groups, *count, ty, |group| of_word(of.value(group)))
            }
            Outcome::TextExtreme { unit, .. } => {
                let Done::TextExtreme(of) = &self.0[*unit] else { panic!("unit {unit} finds extremes") };
                Vector::Flat(of.values(groups.iter()))
            }
            Outcome::General { unit, .. } => {
                let Done::General(values) = &self.0[*unit] else { panic!("unit {unit} is of `expr`") };
                Vector::measured(match groups {
                    Chosen::All(groups) => values.slice(groups.start, groups.len()),
                    Chosen::These(groups) => basalt_types::vector::take(values, groups),
                })
            }
        })
    }
}

/// The first row of each group from number `from` on; groups are numbered as they come.
fn first_rows(groups: &[u32], from: usize) -> Result<Vec<u32>> {
    let mut first = Vec::new();
    for piece in pieces(groups.len()) {
        for row in piece? {
            if groups[row] as usize == from + first.len() {
                first.push(row as u32);
            }
        }
    }
    Ok(first)
}

/// In 64 bits, if they hold all.
fn narrowed(ints: Ints) -> Ints {
    match &ints.values {
        IntValues::I128(values) if i64::try_from(ints.min).is_ok() && i64::try_from(ints.max).is_ok() => {
            Ints { values: IntValues::I64(values.iter().map(|value| *value as i64).collect()), ..ints }
        }
        _ => ints,
    }
}

/// Adds what each row counts as to its group.
fn add_counts(counts: &mut Vec<i64>, more: &Ints, groups: Groups<'_>, len: usize) {
    counts.resize(len, 0);
    match &more.values {
        IntValues::I32(more) => sums::add(more, groups, counts),
        IntValues::I64(more) => sums::add(more, groups, counts),
        IntValues::I128(more) => {
            let more: Vec<i64> = more.iter().map(|more| *more as i64).collect();
            sums::add(&more, groups, counts);
        }
    }
}

/// The groups of rows that a mask lets pass.
fn masked(groups: Groups<'_>, mask: &[u8]) -> Vec<u32> {
    match groups {
        Groups::One(group) => mask.iter().map(|counts| group * u32::from(*counts)).collect(),
        Groups::Each(groups) => groups.iter().zip(mask).map(|(group, counts)| group * u32::from(*counts)).collect(),
        Groups::Runs(runs) => masked(Groups::Each(&runs.each()), mask),
    }
}

fn update_generally(
    accumulator: &mut dyn GroupsAccumulator,
    groups: Groups<'_>,
    args: &[ArrayRef],
    rows: usize,
    len: usize,
) -> Result<()> {
    match groups {
        Groups::One(_) | Groups::Runs(_) => accumulator.update(&groups.of_rows(rows), args, None, len)?,
        Groups::Each(groups) => {
            let counts = || BooleanBuffer::collect_bool(groups.len(), |row| groups[row] != 0);
            let counts = groups.contains(&0).then(|| BooleanArray::from(counts()));
            accumulator.update(groups, args, counts.as_ref(), len)?;
        }
    }
    Ok(())
}

const FLOATS: Error = Error::Beyond("floats in another form");

fn floats_of(vector: &Vector) -> Result<Cow<'_, [f64]>> {
    match vector {
        Vector::Flat(values) => floats::values(values).ok_or(FLOATS),
        Vector::Ints(_) | Vector::Codes(_) => Err(FLOATS),
    }
}

fn is_float(ty: &DataType) -> bool {
    matches!(ty.underlying(), DataType::Float4 | DataType::Float8)
}

fn integers(vector: &Vector) -> Result<&Ints> {
    match vector {
        Vector::Ints(ints) => Ok(ints),
        Vector::Flat(_) | Vector::Codes(_) => Err(Error::Beyond("integers in another form")),
    }
}

#[cfg(test)]
mod tests;
