//! Aggregation: Basalt's accumulators as DataFusion's, and the node that groups.

use super::{Lowerer, name_of};
use crate::error::{Result, SqlError};
use crate::plan::{AggregateCall, ColId, Plan};
use arrow::compute::{SortOptions, cast, concat, take};
use arrow::row::{RowConverter, Rows as EncodedRows, SortField};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, StructArray, UInt32Array, new_empty_array};
use arrow_schema::{DataType as ArrowType, Field, FieldRef, Fields};
use basalt_expr::aggregates::{GroupsAccumulator as BasaltGroups, ResolvedAggregate, unwritten};
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use basalt_types::batch::bytes_of;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, Expr as DfExpr, GroupsAccumulator, LogicalPlan,
    LogicalPlanBuilder, Signature, Volatility,
};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};
use parking_lot::Mutex;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What is accumulated.
#[derive(Clone, Debug, PartialEq)]
enum Body {
    Call(ResolvedAggregate),
    /// Any value of the group: all are equal by their keys.
    First(DataType),
    /// A value of the group, and how many rows it has.
    Counted(DataType),
}

#[derive(Debug, PartialEq)]
pub(super) struct AggregateUdf {
    body: Body,
    name: String,
    /// DISTINCT decided by keys inside the accumulator.
    distinct: bool,
    /// For DISTINCT those are equal whose sort keys are, whatever the arguments were written as.
    by_sort_keys: bool,
    /// ORDER BY inside the call: these arguments follow the call's own.
    sort: Vec<SortOptions>,
    /// An argument may turn out not to fit: [`first_row_is_safe`].
    narrowed: bool,
    signature: Signature,
}

impl Eq for AggregateUdf {}

impl Hash for AggregateUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        format!("{:?}", self.body).hash(state);
    }
}

impl AggregateUdf {
    fn make(body: Body, name: &str, distinct: bool, sort: Vec<SortOptions>) -> Arc<AggregateUDF> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        let by_sort_keys = false;
        AggregateUdf { body, name: name.to_string(), distinct, by_sort_keys, sort, narrowed: false, signature }.shared()
    }

    fn shared(self) -> Arc<AggregateUDF> {
        Arc::new(AggregateUDF::new_from_impl(self))
    }

    fn result(&self) -> ArrowType {
        match &self.body {
            Body::Call(resolved) => resolved.ty.to_arrow(),
            Body::First(ty) => ty.to_arrow(),
            Body::Counted(ty) => counted_type(ty),
        }
    }

    fn collects(&self, is_distinct: bool) -> bool {
        matches!(self.body, Body::Call(_)) && (self.distinct || is_distinct || !self.sort.is_empty())
    }
}

/// An aggregate that gives a scalar subquery's value and how many rows it has: more than one are an error for whoever
/// asks for the value ([`super::udf::EvalUdf::only_row`]).
pub(super) fn counted_value(ty: &DataType, arg: DfExpr) -> DfExpr {
    let udf = AggregateUdf::make(Body::Counted(ty.clone()), "counted_value", false, Vec::new());
    aggregate_expr(udf, vec![arg], false, None)
}

/// What [`counted_value`] gives.
pub(super) fn counted_type(ty: &DataType) -> ArrowType {
    ArrowType::Struct(counted_fields(&ty.to_arrow()))
}

fn counted_fields(ty: &ArrowType) -> Fields {
    Fields::from(vec![Field::new("value", ty.clone(), true), Field::new("rows", ArrowType::Int64, true)])
}

fn aggregate_expr(udf: Arc<AggregateUDF>, args: Vec<DfExpr>, distinct: bool, filter: Option<DfExpr>) -> DfExpr {
    DfExpr::AggregateFunction(AggregateFunction::new_udf(udf, args, distinct, filter.map(Box::new), Vec::new(), None))
}

impl AggregateUDFImpl for AggregateUdf {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[ArrowType]) -> DfResult<ArrowType> {
        Ok(self.result())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> DfResult<Vec<FieldRef>> {
        let types: Vec<ArrowType> = match &self.body {
            Body::Call(_) if self.collects(args.is_distinct) => args
                .input_fields
                .iter()
                .map(|field| ArrowType::List(Arc::new(Field::new("item", of_state(field.data_type()), true))))
                .collect(),
            Body::Call(resolved) => resolved.state_types().iter().map(DataType::to_arrow).collect(),
            Body::First(ty) | Body::Counted(ty) => vec![ty.to_arrow(), ArrowType::Int64],
        };
        let named = types
            .into_iter()
            .enumerate()
            .map(|(index, ty)| Arc::new(Field::new(format_state_name(args.name, &format!("state{index}")), ty, true)));
        Ok(named.collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> DfResult<Box<dyn Accumulator>> {
        Ok(match &self.body {
            Body::Call(resolved) if self.collects(args.is_distinct) => Box::new(Collect {
                resolved: resolved.clone(),
                distinct: self.distinct || args.is_distinct,
                by_sort_keys: self.by_sort_keys,
                sort: self.sort.clone(),
                columns: args.expr_fields.iter().map(|field| vec![new_empty_array(field.data_type())]).collect(),
                bytes: 0,
                rows_ahead: DISTINCT_ROWS,
            }),
            Body::Call(resolved) => Box::new(OneGroup::new(resolved)?),
            Body::First(ty) => Box::new(First { value: None, rank: i64::MAX, ty: ty.to_arrow() }),
            Body::Counted(ty) => Box::new(Counted { value: None, rows: 0, ty: ty.to_arrow() }),
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        matches!(self.body, Body::Call(_)) && !self.collects(args.is_distinct)
    }

    fn create_groups_accumulator(&self, _args: AccumulatorArgs) -> DfResult<Box<dyn GroupsAccumulator>> {
        match &self.body {
            Body::Call(resolved) => Ok(Box::new(Groups::new(resolved))),
            _ => Err(SqlError::internal(format!("{} accumulates one group at a time", self.name)).into()),
        }
    }

    fn default_value(&self, _data_type: &ArrowType) -> DfResult<ScalarValue> {
        match &self.body {
            Body::Call(resolved) => OneGroup::new(resolved)?.evaluate(),
            _ => ScalarValue::try_from(&self.result()),
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Whether a plan with narrowed arguments fails, if it does, before its first row: not if an aggregate gives
/// groups while it still reads, as those over ordered input do.
pub(crate) fn first_row_is_safe(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let (mut narrowed, mut ordered) = (false, false);
    let mut plans = vec![plan];
    while let Some(plan) = plans.pop() {
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            let is_narrowed =
                |call: &AggregateUDF| call.inner().downcast_ref::<AggregateUdf>().is_some_and(|udf| udf.narrowed);
            narrowed |= aggregate.aggr_expr().iter().any(|call| is_narrowed(call.fun()));
            ordered |= *aggregate.input_order_mode() != InputOrderMode::Linear;
        }
        plans.extend(plan.children());
    }
    !(narrowed && ordered)
}

/// All groups of one call.
struct Groups {
    resolved: ResolvedAggregate,
    inner: Box<dyn BasaltGroups>,
    /// Group numbers as Basalt takes them.
    numbers: Vec<u32>,
}

impl Groups {
    fn new(resolved: &ResolvedAggregate) -> Groups {
        Groups { resolved: resolved.clone(), inner: resolved.accumulator(), numbers: Vec::new() }
    }

    fn number(&mut self, groups: &[usize]) {
        self.numbers.clear();
        self.numbers.extend(groups.iter().map(|group| *group as u32));
    }

    /// Keeps the groups from `first` on, renumbered from 0.
    fn drop_front(&mut self, states: &[ArrayRef], first: usize) -> Result<()> {
        self.inner = self.resolved.accumulator();
        let rest: Vec<ArrayRef> = states.iter().map(|state| state.slice(first, state.len() - first)).collect();
        let count = rest.first().map_or(0, |state| state.len());
        let numbers: Vec<u32> = (0..count as u32).collect();
        Ok(self.inner.merge(&numbers, &rest, count)?)
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> DfResult<()> {
        self.number(group_indices);
        let args = &values[..self.resolved.arg_types.len()];
        Ok(self.inner.update(&self.numbers, args, opt_filter, total_num_groups).map_err(SqlError::from)?)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> DfResult<ArrayRef> {
        let all = self.inner.evaluate().map_err(SqlError::from)?;
        match emit_to {
            EmitTo::All => {
                self.inner = self.resolved.accumulator();
                Ok(all)
            }
            EmitTo::First(count) => {
                let states = self.inner.state().map_err(SqlError::from)?;
                self.drop_front(&states, count)?;
                Ok(all.slice(0, count))
            }
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> DfResult<Vec<ArrayRef>> {
        let states = self.inner.state().map_err(SqlError::from)?;
        match emit_to {
            EmitTo::All => {
                self.inner = self.resolved.accumulator();
                Ok(states)
            }
            EmitTo::First(count) => {
                self.drop_front(&states, count)?;
                Ok(states.iter().map(|state| state.slice(0, count)).collect())
            }
        }
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> DfResult<()> {
        self.number(group_indices);
        Ok(self.inner.merge(&self.numbers, values, total_num_groups).map_err(SqlError::from)?)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> DfResult<Vec<ArrayRef>> {
        let rows = values.first().map_or(0, |column| column.len());
        let numbers: Vec<u32> = (0..rows as u32).collect();
        let mut each = self.resolved.accumulator();
        let args = &values[..self.resolved.arg_types.len()];
        each.update(&numbers, args, opt_filter, rows).map_err(SqlError::from)?;
        Ok(each.state().map_err(SqlError::from)?)
    }

    fn size(&self) -> usize {
        self.inner.size_bytes() + self.numbers.capacity() * 4
    }
}

/// The only group of an ungrouped (or window) aggregate.
struct OneGroup {
    arguments: usize,
    inner: Mutex<Box<dyn BasaltGroups>>,
}

impl std::fmt::Debug for OneGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "one group")
    }
}

impl OneGroup {
    fn new(resolved: &ResolvedAggregate) -> Result<OneGroup> {
        let mut inner = resolved.accumulator();
        let empty: Vec<ArrayRef> = resolved.arg_types.iter().map(|ty| new_empty_array(&ty.to_arrow())).collect();
        inner.update(&[], &empty, None, 1)?;
        Ok(OneGroup { arguments: resolved.arg_types.len(), inner: Mutex::new(inner) })
    }
}

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        let rows = values.first().map_or(0, |column| column.len());
        let args = &values[..self.arguments];
        Ok(self.inner.get_mut().update(&vec![0; rows], args, None, 1).map_err(SqlError::from)?)
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let value = self.inner.get_mut().evaluate().map_err(SqlError::from)?;
        ScalarValue::try_from_array(&value, 0)
    }

    fn size(&self) -> usize {
        self.inner.lock().size_bytes()
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        let states = self.inner.get_mut().state().map_err(SqlError::from)?;
        states.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        let rows = states.first().map_or(0, |column| column.len());
        Ok(self.inner.get_mut().merge(&vec![0; rows], states, 1).map_err(SqlError::from)?)
    }
}

/// Keeps all rows of a group until the end, for DISTINCT and ORDER BY inside a call.
#[derive(Debug)]
struct Collect {
    resolved: ResolvedAggregate,
    distinct: bool,
    by_sort_keys: bool,
    sort: Vec<SortOptions>,
    /// Pieces of each argument.
    columns: Vec<Vec<ArrayRef>>,
    /// What they take. They are slices of batches that other groups share: each counts its own part.
    bytes: usize,
    /// With DISTINCT: how many rows may come until equal ones are left out.
    rows_ahead: usize,
}

/// How the values of a column travel between partial states. Views carry a list of buffers with every slice, and the
/// states of many groups put together one that is as long as they are many.
fn of_state(ty: &ArrowType) -> ArrowType {
    match ty {
        ArrowType::Utf8View => ArrowType::LargeUtf8,
        ArrowType::BinaryView => ArrowType::LargeBinary,
        other => other.clone(),
    }
}

/// Rows of a DISTINCT that are kept at least before equal ones are left out.
const DISTINCT_ROWS: usize = 1024;

impl Collect {
    fn add(&mut self, pieces: Vec<ArrayRef>) -> DfResult<()> {
        let rows = pieces.first().map_or(0, |piece| piece.len());
        self.bytes += bytes_of(&pieces) + pieces.len() * size_of::<ArrayRef>();
        self.columns.iter_mut().zip(pieces).for_each(|(kept, piece)| kept.push(piece));
        if !self.distinct || rows < self.rows_ahead {
            self.rows_ahead = self.rows_ahead.saturating_sub(rows);
            return Ok(());
        }
        let columns = self.whole()?;
        let kept = self.kept(&columns)?;
        let columns = columns.iter().map(|column| take(column, &kept, None)).collect::<Result<Vec<_>, _>>()?;
        self.bytes = bytes_of(&columns) + columns.len() * size_of::<ArrayRef>();
        self.columns = columns.into_iter().map(|column| vec![column]).collect();
        self.rows_ahead = DISTINCT_ROWS.max(kept.len());
        Ok(())
    }

    fn whole(&self) -> DfResult<Vec<ArrayRef>> {
        let join = |pieces: &Vec<ArrayRef>| {
            let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| piece.as_ref()).collect();
            Ok(concat(&pieces)?)
        };
        self.columns.iter().map(join).collect()
    }

    /// Rows in order, the later ones of equal arguments left out. With DISTINCT the arguments order rows behind the
    /// keys of ORDER BY, as PostgreSQL sorts to find equal ones.
    fn kept(&self, columns: &[ArrayRef]) -> DfResult<UInt32Array> {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut order: Vec<u32> = (0..rows as u32).collect();
        let keys = &columns[columns.len() - self.sort.len()..];
        let mut sorted: Vec<(ArrayRef, SortOptions)> = keys.iter().cloned().zip(self.sort.iter().copied()).collect();
        let mut arguments = Vec::new();
        if self.by_sort_keys {
            arguments.extend(keys.iter().cloned());
        } else if self.distinct {
            let nulls_last = SortOptions { descending: false, nulls_first: false };
            for (ty, column) in self.resolved.arg_types.iter().zip(columns) {
                arguments.push(match super::keys::key_type(ty) {
                    Some(_) => super::keys::key_array(ty, column)?,
                    None => column.clone(),
                });
            }
            sorted.extend(arguments.iter().map(|argument| (argument.clone(), nulls_last)));
        }
        if sorted.is_empty() {
            return Ok(order.into());
        }
        let encode = |keys: Vec<(ArrayRef, SortOptions)>| -> DfResult<EncodedRows> {
            let field = |(key, options): &(ArrayRef, SortOptions)| {
                SortField::new_with_options(key.data_type().clone(), *options)
            };
            let fields = keys.iter().map(field).collect();
            let keys: Vec<ArrayRef> = keys.into_iter().map(|(key, _)| key).collect();
            Ok(RowConverter::new(fields)?.convert_columns(&keys)?)
        };
        let encoded = encode(sorted)?;
        order.sort_by(|a, b| encoded.row(*a as usize).cmp(&encoded.row(*b as usize)));
        if self.distinct {
            let options = SortOptions::default();
            let encoded = encode(arguments.into_iter().map(|argument| (argument, options)).collect())?;
            order.dedup_by(|later, earlier| encoded.row(*later as usize) == encoded.row(*earlier as usize));
        }
        Ok(order.into())
    }
}

impl Accumulator for Collect {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.add(values[..self.columns.len()].to_vec())
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let columns = self.whole()?;
        let kept = self.kept(&columns)?;
        let mut args = Vec::with_capacity(columns.len());
        for column in &columns[..self.resolved.arg_types.len()] {
            args.push(take(column, &kept, None)?);
        }
        let mut inner = OneGroup::new(&self.resolved)?;
        if args.is_empty() {
            args.push(Arc::new(kept));
        }
        inner.update_batch(&args)?;
        inner.evaluate()
    }

    fn size(&self) -> usize {
        size_of::<Collect>() + self.bytes
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        let list = |column: ArrayRef| {
            let column = cast(&column, &of_state(column.data_type()))?;
            Ok(SingleRowListArrayBuilder::new(column).build_list_scalar())
        };
        self.whole()?.into_iter().map(list).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        let lists: Vec<_> = states.iter().map(|state| state.as_list::<i32>()).collect();
        for row in 0..lists.first().map_or(0, |list| list.len()) {
            if lists.iter().all(|list| list.is_valid(row)) {
                let pieces =
                    lists.iter().zip(&self.columns).map(|(list, own)| cast(&list.value(row), own[0].data_type()));
                self.add(pieces.collect::<Result<_, _>>()?)?;
            }
        }
        Ok(())
    }
}

/// The value of least rank, which is the second argument; of values of one rank, and without ranks, any.
#[derive(Debug)]
struct First {
    value: Option<ScalarValue>,
    rank: i64,
    ty: ArrowType,
}

impl First {
    fn offer(&mut self, values: &ArrayRef, row: usize, rank: i64) -> DfResult<()> {
        if self.value.is_none() || rank < self.rank {
            self.value = Some(ScalarValue::try_from_array(values, row)?);
            self.rank = rank;
        }
        Ok(())
    }
}

impl Accumulator for First {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        let Some(ranks) = values.get(1) else {
            return if values[0].is_empty() { Ok(()) } else { self.offer(&values[0], 0, 0) };
        };
        let ranks = ranks.as_primitive::<arrow_array::types::Int64Type>();
        let least = ranks.values().iter().enumerate().min_by_key(|(_, rank)| **rank);
        least.map_or(Ok(()), |(row, rank)| self.offer(&values[0], row, *rank))
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        self.value.clone().map_or_else(|| ScalarValue::try_from(&self.ty), Ok)
    }

    fn size(&self) -> usize {
        std::mem::size_of::<First>() + self.value.as_ref().map_or(0, ScalarValue::size)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?, ScalarValue::Int64(self.value.is_some().then_some(self.rank))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        let ranks = states[1].as_primitive::<arrow_array::types::Int64Type>();
        for (row, rank) in ranks.iter().enumerate() {
            if let Some(rank) = rank {
                self.offer(&states[0], row, rank)?;
            }
        }
        Ok(())
    }
}

/// The first value, and how many there were.
#[derive(Debug)]
struct Counted {
    value: Option<ScalarValue>,
    rows: i64,
    ty: ArrowType,
}

impl Counted {
    fn value(&self) -> DfResult<ScalarValue> {
        self.value.clone().map_or_else(|| ScalarValue::try_from(&self.ty), Ok)
    }
}

impl Accumulator for Counted {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        if !values[0].is_empty() && self.value.is_none() {
            self.value = Some(ScalarValue::try_from_array(&values[0], 0)?);
        }
        self.rows += values[0].len() as i64;
        Ok(())
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let (value, rows) = (self.value()?.to_array()?, Int64Array::from(vec![self.rows]));
        let counted = StructArray::try_new(counted_fields(&self.ty), vec![value, Arc::new(rows)], None)?;
        Ok(ScalarValue::Struct(Arc::new(counted)))
    }

    fn size(&self) -> usize {
        std::mem::size_of::<Counted>() + self.value.as_ref().map_or(0, ScalarValue::size)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Ok(vec![self.value()?, ScalarValue::Int64(Some(self.rows))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        let counts = states[1].as_primitive::<arrow_array::types::Int64Type>();
        for (row, count) in counts.values().iter().enumerate() {
            if *count > 0 && self.value.is_none() {
                self.value = Some(ScalarValue::try_from_array(&states[0], row)?);
            }
            self.rows += count;
        }
        Ok(())
    }
}

impl Lowerer<'_> {
    pub(super) fn aggregate(
        &mut self,
        input: &Plan,
        groups: &[(ColId, Expr)],
        aggregates: &[(ColId, AggregateCall)],
    ) -> Result<LogicalPlan> {
        let input = self.plan(input)?;
        if groups.is_empty() && aggregates.is_empty() {
            // One group, of which nothing is asked (HAVING alone).
            return Ok(LogicalPlanBuilder::empty(true).build()?);
        }
        self.grouped(input, groups, aggregates, None)
    }

    /// Groups by keys; a value whose key is not itself is taken from the row of its group whose column `rank` is
    /// least, else from any.
    pub(super) fn grouped(
        &mut self,
        input: LogicalPlan,
        groups: &[(ColId, Expr)],
        aggregates: &[(ColId, AggregateCall)],
        rank: Option<&str>,
    ) -> Result<LogicalPlan> {
        let mut keys = Vec::with_capacity(groups.len());
        let mut results = Vec::with_capacity(aggregates.len());
        let mut firsts = Vec::new();
        for (id, expr) in groups {
            keys.push(self.keyed(expr)?);
            if Self::needs_key(&expr.ty()) {
                let udf = AggregateUdf::make(Body::First(expr.ty()), "first", false, Vec::new());
                let mut args = vec![self.expr(expr)?];
                args.extend(rank.map(|rank| DfExpr::Column(Column::new_unqualified(rank))));
                firsts.push((*id, aggregate_expr(udf, args, false, None)));
            }
        }
        for (id, call) in aggregates {
            results.push(self.aggregate_call(call)?.alias(name_of(*id)));
        }
        results.extend(firsts.iter().map(|(id, expr)| expr.clone().alias(format!("first{id}"))));
        let grouped = LogicalPlanBuilder::from(input).aggregate(keys, results)?.build()?;
        let mut outputs = Vec::with_capacity(groups.len() + aggregates.len());
        for (index, (id, expr)) in groups.iter().enumerate() {
            let column = match firsts.iter().any(|(known, _)| known == id) {
                true => Column::new_unqualified(format!("first{id}")),
                false => Column::from(grouped.schema().qualified_field(index)),
            };
            outputs.push(DfExpr::Column(column).alias(name_of(*id)));
            let ty = expr.ty();
            self.define(*id, &ty);
        }
        for (id, call) in aggregates {
            self.define(*id, &call.resolved.ty);
            outputs.push(DfExpr::Column(Column::new_unqualified(name_of(*id))));
        }
        Ok(LogicalPlanBuilder::from(grouped).project(outputs)?.build()?)
    }

    pub(super) fn aggregate_call(&mut self, call: &AggregateCall) -> Result<DfExpr> {
        let filter = call.filter.as_ref().map(|filter| self.expr(filter)).transpose()?;
        let (udf, args, distinct) = self.aggregate_udf(call)?;
        Ok(aggregate_expr(udf, args, distinct, filter))
    }

    /// An argument as it is computed: for the rows alone that FILTER lets through, if it may fail for others.
    pub(super) fn fed(&self, arg: &Expr, filter: Option<&Expr>) -> Expr {
        let subquery = |expr: &Expr| {
            expr.any(&mut |node| matches!(node, Expr::Hole { id, .. } if self.query.subqueries.contains_key(id)))
        };
        match filter {
            Some(filter) if !matches!(arg, Expr::Hole { .. } | Expr::Const { .. }) && !subquery(filter) => {
                Expr::Case { branches: vec![(filter.clone(), arg.clone())], otherwise: None, ty: arg.ty() }
            }
            _ => arg.clone(),
        }
    }

    /// The function, its arguments, and whether DataFusion is told of DISTINCT.
    pub(super) fn aggregate_udf(&mut self, call: &AggregateCall) -> Result<(Arc<AggregateUDF>, Vec<DfExpr>, bool)> {
        let keyed = call.args.iter().any(|arg| Self::needs_key(&arg.ty()));
        let counts = call.resolved.aggregate.name == "count";
        let sums = matches!(call.resolved.aggregate.name.as_str(), "sum" | "avg");
        let mut args = Vec::with_capacity(call.args.len() + call.order_by.len());
        let mut resolved = call.resolved.clone();
        let guarded: Vec<Expr> = call.args.iter().map(|arg| self.fed(arg, call.filter.as_ref())).collect();
        for (index, arg) in guarded.iter().enumerate() {
            let narrowed = (self.narrows && sums && !call.distinct).then(|| arg.narrow()).flatten();
            args.push(match &narrowed {
                Some(narrowed) => self.expr(narrowed)?,
                None if call.distinct && counts => self.keyed(arg)?,
                None => self.expr(arg)?,
            });
            if let Some(narrowed) = narrowed {
                resolved.arg_types[index] = narrowed.ty();
            }
        }
        // Where the order of values shows in the result, they come sorted.
        let ordered = !matches!(call.resolved.ty, DataType::Int8 | DataType::Bool | DataType::Numeric(_));
        let own_distinct = call.distinct && ((keyed && !counts) || ordered || !call.order_by.is_empty());
        let order_by = if call.resolved.is_indifferent_to_order() { &[] } else { &call.order_by[..] };
        let mut sort = Vec::with_capacity(order_by.len());
        for key in order_by {
            args.push(self.keyed(&key.expr)?);
            sort.push(SortOptions { descending: key.descending, nulls_first: key.nulls_first });
        }
        // What is written as json is told apart, and ordered, by what it was.
        let by_sort_keys = call.distinct && call.args.iter().any(|arg| unwritten(arg) != arg);
        if by_sort_keys {
            for arg in &call.args {
                args.push(self.keyed(&self.fed(unwritten(arg), call.filter.as_ref()))?);
                sort.push(SortOptions { descending: false, nulls_first: false });
            }
        }
        if args.is_empty() {
            // Batches of no columns have no length to count.
            args.push(DfExpr::Literal(ScalarValue::Int32(Some(1)), None));
        }
        // DataFusion takes two calls for one where their names and arguments are equal: orders show in the name.
        let order = sort.iter().map(|key| match (key.descending, key.nulls_first) {
            (false, false) => "_asc",
            (false, true) => "_asc_nulls_first",
            (true, false) => "_desc_nulls_last",
            (true, true) => "_desc",
        });
        let within = if sort.is_empty() { &call.resolved.orders[..] } else { &[] };
        let within = within.iter().map(|order| if order.descending { "_within_desc" } else { "_within_asc" });
        let order: String = order.chain(within).collect();
        let name = format!("pg_{}{order}", call.resolved.aggregate.name);
        if call.distinct && counts && keyed {
            resolved.arg_types = vec![DataType::Bytea];
        }
        let signature = Signature::variadic_any(Volatility::Immutable);
        let narrowed = resolved.arg_types != call.resolved.arg_types && sums;
        let body = Body::Call(resolved);
        let udf = AggregateUdf { body, name, distinct: own_distinct, by_sort_keys, sort, narrowed, signature };
        Ok((udf.shared(), args, call.distinct && !own_distinct))
    }
}
