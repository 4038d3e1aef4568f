//! Basalt's expressions as DataFusion functions: each call carries its typed tree.

use super::keys;
use crate::error::SqlError;
use crate::run::RunContext;
use arrow::compute::take;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array, new_empty_array, new_null_array};
use arrow_schema::DataType as ArrowType;
use basalt_exec::Stop;
use basalt_expr::context::EvalContext;
use basalt_expr::functions::Volatility as ExprVolatility;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr as DfExpr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Volatile calls made so far.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// What a call computes over its arguments, which are `Expr::Column` 0, 1, … in its trees.
#[derive(Clone, Debug, PartialEq)]
enum Body {
    /// One value per row.
    Value(Expr),
    /// The key of the only argument ([`keys`]).
    Key(DataType),
    /// The only argument, of which plans think that it may be null.
    Nullable,
    /// The value of a subquery's only row: the argument is a value and how many rows there were.
    OnlyRow(DataType),
}

pub(super) struct EvalUdf {
    body: Body,
    name: String,
    ty: ArrowType,
    signature: Signature,
    eval: Arc<EvalContext>,
    /// Set when the query is dropped: a join that finds no row would go on for long before its next await.
    stop: Stop,
    hash: u64,
}

impl std::fmt::Debug for EvalUdf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)
    }
}

impl PartialEq for EvalUdf {
    fn eq(&self, other: &EvalUdf) -> bool {
        self.hash == other.hash && self.body == other.body && Arc::ptr_eq(&self.eval, &other.eval)
    }
}

impl Eq for EvalUdf {}

impl Hash for EvalUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl EvalUdf {
    fn call(body: Body, name: String, ty: ArrowType, ctx: &RunContext, args: Vec<DfExpr>, fixed: bool) -> DfExpr {
        let mut hasher = ahash::AHasher::default();
        format!("{body:?}").hash(&mut hasher);
        if !fixed {
            // Each volatile call is its own: `SELECT nextval('s'), nextval('s')` gives two values.
            CALLS.fetch_add(1, Ordering::Relaxed).hash(&mut hasher);
        }
        // A call without arguments would be computed while planning, where its error does not belong.
        let volatility = if args.is_empty() || !fixed { Volatility::Volatile } else { Volatility::Immutable };
        let signature = any_types(args.len(), volatility);
        let udf = EvalUdf {
            body,
            name,
            ty,
            signature,
            eval: ctx.eval.clone(),
            stop: ctx.stop.clone(),
            hash: hasher.finish(),
        };
        ScalarUDF::new_from_impl(udf).call(args)
    }

    /// `template` over `args`.
    pub fn value(template: Expr, ctx: &RunContext, args: Vec<DfExpr>) -> DfExpr {
        let fixed = template.volatility() < ExprVolatility::Volatile;
        let ty = template.ty().to_arrow();
        Self::call(Body::Value(template.clone()), label(&template), ty, ctx, args, fixed)
    }

    pub fn key(ty: &DataType, key_type: ArrowType, ctx: &RunContext, arg: DfExpr) -> DfExpr {
        Self::call(Body::Key(ty.clone()), "key".into(), key_type, ctx, vec![arg], true)
    }

    /// The same value, said to be null perhaps. A constant stays a call.
    pub fn nullable(ty: ArrowType, ctx: &RunContext, arg: DfExpr) -> DfExpr {
        Self::call(Body::Nullable, "nullable".into(), ty, ctx, vec![arg], false)
    }

    /// The value of what [`super::aggregate::counted_value`] gives; 21000 where it comes of several rows.
    pub fn only_row(ty: &DataType, ctx: &RunContext, counted: DfExpr) -> DfExpr {
        Self::call(Body::OnlyRow(ty.clone()), "only_row".into(), ty.to_arrow(), ctx, vec![counted], true)
    }

    /// The call behind a function of DataFusion's, if it is one of these.
    pub fn of(function: &ScalarUDF) -> Option<&EvalUdf> {
        function.inner().downcast_ref()
    }

    /// See [`Expr::cost`]: of the call alone.
    pub fn cost(&self) -> f64 {
        match &self.body {
            Body::Value(expr) => expr.cost(),
            Body::Key(_) | Body::Nullable | Body::OnlyRow(_) => 0.0,
        }
    }

    /// See [`Expr::is_harmless`]: the call alone.
    pub fn is_harmless(&self) -> bool {
        match &self.body {
            Body::Value(expr) => expr.is_harmless(),
            Body::Key(_) | Body::Nullable => true,
            Body::OnlyRow(_) => false,
        }
    }

    /// Whether it is computed anew for each row.
    pub fn is_volatile(&self) -> bool {
        matches!(&self.body, Body::Value(expr) if expr.volatility() == ExprVolatility::Volatile)
    }

    fn argument_type(&self, index: usize) -> Option<ArrowType> {
        let template = match &self.body {
            Body::Key(ty) => return Some(ty.to_arrow()),
            Body::Nullable => return Some(self.ty.clone()),
            Body::OnlyRow(ty) => return Some(super::aggregate::counted_type(ty)),
            Body::Value(template) => template,
        };
        let mut found = None;
        template.walk(&mut |node| {
            if let Expr::Column { index: own, ty } = node
                && *own == index
            {
                found = Some(ty.to_arrow());
            }
            found.is_none()
        });
        found
    }

    fn compute(&self, args: &[ArrayRef], rows: usize) -> std::result::Result<ArrayRef, SqlError> {
        match &self.body {
            // All rows share it.
            Body::Value(constant @ Expr::Const { .. }) => {
                let one = constant.eval(&[], 1, &self.eval)?;
                let rows = UInt32Array::from(vec![0; rows]);
                take(&one, &rows, None).map_err(|error| SqlError::internal(error.to_string()))
            }
            Body::Value(expr) => Ok(expr.eval(args, rows, &self.eval)?),
            Body::Key(ty) => keys::key_array(ty, &args[0]),
            Body::Nullable => Ok(args[0].clone()),
            Body::OnlyRow(_) => only_row(&args[0]),
        }
    }
}

fn only_row(counted: &ArrayRef) -> std::result::Result<ArrayRef, SqlError> {
    let counted = counted.as_struct();
    let rows = counted.column(1).as_primitive::<Int64Type>();
    let several = (0..counted.len()).any(|row| counted.is_valid(row) && rows.is_valid(row) && rows.value(row) > 1);
    if several {
        let message = "more than one row returned by a subquery used as an expression";
        return Err(SqlError::new("21000", message));
    }
    let values = counted.column(0);
    match counted.nulls() {
        // An outer join has put nulls in the place of values that are there still.
        Some(nulls) => {
            let missing = BooleanArray::new(!nulls.inner(), None);
            arrow::compute::nullif(values, &missing).map_err(|error| SqlError::internal(error.to_string()))
        }
        None => Ok(values.clone()),
    }
}

/// Arguments of any types, as many as there are; DataFusion has another word for none.
pub(super) fn any_types(count: usize, volatility: Volatility) -> Signature {
    if count == 0 { Signature::nullary(volatility) } else { Signature::any(count, volatility) }
}

/// What plans call it.
fn label(expr: &Expr) -> String {
    match expr {
        Expr::Call { function, .. } => function.name.clone(),
        Expr::Cast { to, .. } => format!("cast_{}", crate::bind::typname(to)),
        Expr::Case { .. } => "case".into(),
        Expr::Coalesce { .. } => "coalesce".into(),
        Expr::Extreme { greatest, .. } => if *greatest { "greatest" } else { "least" }.into(),
        Expr::InList { .. } => "in".into(),
        Expr::AnyAll { .. } => "any".into(),
        _ => "expr".into(),
    }
}

impl ScalarUDFImpl for EvalUdf {
    fn name(&self) -> &str {
        &self.name
    }

    /// Plans tell results apart by this name, so constants inside the call must show in it.
    fn schema_name(&self, args: &[DfExpr]) -> Result<String> {
        let mut name = format!("{}#{:x}(", self.name, self.hash);
        for (index, arg) in args.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            name.push_str(&format!("{comma}{}", arg.schema_name()));
        }
        Ok(name + ")")
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.ty.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.stop.is_set() {
            return Err(SqlError::canceled().into());
        }
        let rows = args.number_rows;
        if rows == 0 {
            // Not even constants are computed.
            return Ok(ColumnarValue::Array(new_empty_array(&self.ty)));
        }
        let mut columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        for (index, column) in columns.iter_mut().enumerate() {
            // To see what becomes of nulls, the optimizer gives nulls of no type.
            if column.data_type() == &ArrowType::Null
                && let Some(ty) = self.argument_type(index)
            {
                *column = new_null_array(&ty, rows);
            }
        }
        Ok(ColumnarValue::Array(self.compute(&columns, rows)?))
    }
}
