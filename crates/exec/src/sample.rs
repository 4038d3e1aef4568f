//! The share of a table's rows for which conditions hold, found out with some of them.

use crate::batch::{Batch, Work};
use crate::error::Result;
use crate::kernels::mask;
use crate::program::{Condition, Field, Program, fused};
use basalt_engine::{ReadContext, ScanSpec};
use basalt_expr::context::EvalContext;
use basalt_expr::tree::Expr;
use std::sync::Arc;

/// Pages that are looked at.
const PAGES: usize = 4;
/// Of a page every so manyth row, where rows are looked at one by one.
const STEP: usize = 16;

/// How many rows were looked at, and for how many of them all conditions held; `None` if there are no pages to look at.
/// Conditions name columns by their places in the scan's list.
pub fn passing(
    read: &ReadContext,
    spec: ScanSpec,
    conditions: &[Expr],
    ctx: &Arc<EvalContext>,
) -> Result<Option<(usize, usize)>> {
    let field = |id| {
        let column = spec.table.column(id);
        Field::new(column.ty.clone(), !column.not_null)
    };
    let mut program = Program::new(spec.columns.iter().map(|id| field(*id)).collect());
    let conditions: Vec<Condition> = conditions.iter().map(|condition| program.condition(condition, ctx)).collect();
    let conditions = fused(conditions);
    let in_place = conditions.iter().all(|condition| matches!(condition, Condition::Within(..)));
    let mut work = Work::new(Arc::new(program), ctx.clone(), Vec::new());
    let (mut looked, mut passed) = (0, 0);
    for mut scan in read.sample(spec, PAGES)? {
        while let Some(block) = scan.next_block()? {
            let mut batch = Batch::of_block(block, &work);
            if !in_place {
                let some: Vec<u8> = (0..batch.rows()).map(|row| u8::from(row % STEP == 0)).collect();
                batch.retain(|row| some[row] == 1);
                batch.compact();
            }
            looked += batch.count();
            batch.filter(&conditions, &mut work)?;
            passed += batch.mask().map_or(batch.rows(), mask::count);
        }
    }
    Ok((looked > 0).then_some((looked, passed)))
}
