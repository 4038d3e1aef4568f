//! TABLESAMPLE: a filter that keeps a row by the hash of its place and the seed. So the same seed chooses the
//! same rows as long as they stay, wherever they rest meanwhile.
//!
//! SYSTEM chooses rows as BERNOULLI does: tables have no pages that stay.

use super::{Lowerer, udf};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, Plan};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, BooleanArray};
use arrow_schema::DataType as ArrowType;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};
use datafusion::logical_expr::{
    ColumnarValue, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

impl Lowerer<'_> {
    pub(super) fn sample(
        &mut self,
        input: &Plan,
        identity: [ColId; 3],
        percent: &Expr,
        seed: Option<&Expr>,
    ) -> Result<LogicalPlan> {
        let percent = match self.one_value(percent)? {
            Datum::F32(percent) if (0.0..=100.0).contains(&percent) => f64::from(percent),
            Datum::Null => return Err(SqlError::new("2202H", "TABLESAMPLE parameter cannot be null")),
            _ => return Err(SqlError::new("2202H", "sample percentage must be between 0 and 100")),
        };
        let seed = match seed.map(|seed| self.one_value(seed)).transpose()? {
            Some(Datum::F64(seed)) => (seed + 0.0).to_bits(),
            Some(_) => return Err(SqlError::new("2202G", "TABLESAMPLE REPEATABLE parameter cannot be null")),
            None => {
                let mut bytes = [0; 8];
                (self.ctx.eval.random)(&mut bytes);
                u64::from_le_bytes(bytes)
            }
        };
        let columns = input.columns();
        let input = self.plan(input)?;
        let [tablet, key, _] = identity;
        let args = vec![self.column(tablet, &DataType::Int8)?, self.column(key, &DataType::Bytea)?];
        let signature = udf::any_types(args.len(), Volatility::Immutable);
        let chosen = ScalarUDF::new_from_impl(SampleUdf { share_bits: (percent / 100.0).to_bits(), seed, signature });
        let filtered = LogicalPlanBuilder::from(input).filter(chosen.call(args))?;
        let kept = columns.iter().filter(|(id, _)| !identity.contains(id));
        let kept = kept.map(|(id, ty)| self.column(*id, ty)).collect::<Result<Vec<_>>>()?;
        Ok(filtered.project(kept)?.build()?)
    }
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct SampleUdf {
    /// A float between 0 and 1.
    share_bits: u64,
    seed: u64,
    signature: Signature,
}

impl ScalarUDFImpl for SampleUdf {
    fn name(&self) -> &str {
        "tablesample"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[ArrowType]) -> datafusion::error::Result<ArrowType> {
        Ok(ArrowType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> datafusion::error::Result<ColumnarValue> {
        let tablets = args.args[0].to_array(args.number_rows)?;
        let keys = args.args[1].to_array(args.number_rows)?;
        let (tablets, keys) = (tablets.as_primitive::<Int64Type>(), keys.as_binary_view());
        let share = f64::from_bits(self.share_bits);
        let chosen = |row: usize| {
            let hash = place_hash(self.seed, tablets.value(row), keys.value(row));
            Some((hash >> 11) as f64 / ((1u64 << 53) as f64) < share)
        };
        let kept: BooleanArray = (0..keys.len()).map(chosen).collect();
        Ok(ColumnarValue::Array(Arc::new(kept)))
    }
}

/// FNV-1a over the place, mixed as by splitmix64: the same in every process.
fn place_hash(seed: u64, tablet: i64, key: &[u8]) -> u64 {
    let start = seed ^ 0xcbf2_9ce4_8422_2325;
    let bytes = tablet.to_le_bytes();
    let folded =
        bytes.iter().chain(key).fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let mut mixed = folded.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
