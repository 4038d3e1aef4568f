//! Aggregates over the few rows of a row plan, without groups.

use crate::error::Result;
use crate::plan::{AggregateCall, ColId, SortKey};
use ahash::AHashSet;
use arrow_array::ArrayRef;
use basalt_expr::EvalContext;
use basalt_expr::aggregates::ResolvedAggregate;
use basalt_expr::eval::vector::{VectorBuilder, value_at};
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum, key};

/// Those that are the same whatever the order of their values, so that each is added once however it is found.
const DISTINCT: [&str; 5] = ["count", "sum", "avg", "min", "max"];

#[derive(PartialEq, Debug)]
pub(super) struct Totals {
    calls: Vec<Call>,
    /// Over the results of the calls.
    outputs: Vec<Expr>,
    pub types: Vec<DataType>,
    /// Rows come in the order of the only call: the first value is the result ([`extreme`]).
    pub first_is_all: bool,
}

/// The order in which the first value that is not null is the result of all these calls.
pub(super) fn extreme(calls: &[(ColId, AggregateCall)]) -> Option<SortKey> {
    let [(_, AggregateCall { resolved, args, filter: None, .. })] = calls else { return None };
    let [arg] = args.as_slice() else { return None };
    let descending = match resolved.aggregate.name.as_str() {
        "max" => true,
        "min" => false,
        _ => return None,
    };
    Some(SortKey { expr: arg.clone(), descending, nulls_first: descending })
}

#[derive(PartialEq, Debug)]
struct Call {
    resolved: ResolvedAggregate,
    args: Vec<Expr>,
    filter: Option<Expr>,
    distinct: bool,
}

/// Values on their way into aggregates.
pub(super) struct Adding {
    calls: Vec<Values>,
}

struct Values {
    args: Vec<VectorBuilder>,
    rows: usize,
    seen: AHashSet<Vec<u8>>,
}

impl Totals {
    /// `None`: a call heeds the order of its values, or is too much for here.
    pub fn of(
        calls: Vec<(ColId, AggregateCall)>,
        outputs: Vec<Expr>,
        resolve: &dyn Fn(Expr) -> Option<Expr>,
    ) -> Option<Totals> {
        let calls = calls.into_iter().map(|(_, call)| {
            let AggregateCall { resolved, args, distinct, filter, order_by } = call;
            let once = args.len() == 1 && DISTINCT.contains(&resolved.aggregate.name.as_str());
            if !order_by.is_empty() || !resolved.orders.is_empty() || distinct && !once {
                return None;
            }
            let filter = match filter {
                Some(filter) => Some(resolve(filter)?),
                None => None,
            };
            let args = args.into_iter().map(resolve).collect::<Option<_>>()?;
            Some(Call { resolved, args, filter, distinct })
        });
        let types = outputs.iter().map(Expr::ty).collect();
        Some(Totals { calls: calls.collect::<Option<_>>()?, outputs, types, first_is_all: false })
    }

    /// What is looked at of rows.
    pub fn arguments(&self) -> impl Iterator<Item = &Expr> {
        self.calls.iter().flat_map(|call| call.args.iter().chain(&call.filter))
    }

    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.calls.iter().flat_map(|call| call.args.iter().chain(&call.filter)).chain(&self.outputs)
    }

    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let calls = self.calls.iter_mut().flat_map(|call| call.args.iter_mut().chain(&mut call.filter));
        calls.chain(&mut self.outputs)
    }

    pub fn begin(&self) -> Adding {
        let values = |call: &Call| Values {
            args: call.resolved.arg_types.iter().map(|ty| VectorBuilder::new(ty, 0)).collect(),
            rows: 0,
            seen: AHashSet::new(),
        };
        Adding { calls: self.calls.iter().map(values).collect() }
    }

    /// False: more rows change nothing.
    pub fn add(&self, adding: &mut Adding, frame: &[Datum], eval: &EvalContext) -> Result<bool> {
        let mut shown = false;
        for (call, values) in self.calls.iter().zip(&mut adding.calls) {
            if let Some(filter) = &call.filter
                && filter.eval_scalar(frame, eval)? != Datum::Bool(true)
            {
                continue;
            }
            let args = call.args.iter().map(|arg| Ok(arg.eval_scalar(frame, eval)?)).collect::<Result<Vec<Datum>>>()?;
            if call.distinct {
                let mut bytes = Vec::new();
                match &args[0] {
                    Datum::Null => continue,
                    value => key::encode_column(&call.resolved.arg_types[0], value, &mut bytes),
                }
                if !values.seen.insert(bytes) {
                    continue;
                }
            }
            values.rows += 1;
            for (builder, value) in values.args.iter_mut().zip(&args) {
                builder.push(value)?;
                shown |= !value.is_null();
            }
        }
        Ok(!(shown && self.first_is_all))
    }

    /// The result.
    pub fn end(&self, adding: Adding, eval: &EvalContext) -> Result<Vec<Datum>> {
        let results = self.calls.iter().zip(adding.calls).map(|(call, values)| {
            let args = values.args.into_iter().map(VectorBuilder::finish);
            let args = args.collect::<basalt_expr::Result<Vec<ArrayRef>>>()?;
            let mut accumulator = call.resolved.accumulator();
            accumulator.update(&vec![0; values.rows], &args, None, 1)?;
            Ok(value_at(&call.resolved.ty, &accumulator.evaluate()?, 0))
        });
        let results = results.collect::<Result<Vec<Datum>>>()?;
        self.outputs.iter().map(|output| Ok(output.eval_scalar(&results, eval)?)).collect()
    }
}
