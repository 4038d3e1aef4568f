//! Few large batches for sorting. A sort holds all of its input's batches and looks at every one of them for each that
//! it gives, so small ones, as joins without an equality and LATERAL give them, would cost the square of their number.

use super::node::Operator;
use super::stage::{self, Batches, Stage, Work};
use arrow::compute::BatchCoalescer;
use arrow_array::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use futures::StreamExt;
use std::sync::Arc;

/// What EXPLAIN leaves out.
pub(crate) const WHOLE: &str = "WholeBatches";

/// Puts [`Whole`] below each sort that keeps all rows. Has to run once all sorts are in their places.
#[derive(Debug)]
pub(super) struct WholeBatches;

impl PhysicalOptimizerRule for WholeBatches {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let changed = plan.transform_up(|node| {
            if node.downcast_ref::<SortExec>().is_none_or(|sort| sort.fetch().is_some()) {
                return Ok(Transformed::no(node));
            }
            let inputs = node.children().into_iter();
            let inputs = inputs.map(|input| stage::over(Arc::new(Whole), Vec::new(), input.clone()));
            let inputs = inputs.collect::<Result<Vec<_>>>()?;
            Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?))
        })?;
        Ok(changed.data)
    }

    fn name(&self) -> &'static str {
        WHOLE
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Its input's rows in batches of the usual size. Batches of half of that pass as they are.
struct Whole;

impl Operator for Whole {
    fn name(&self) -> &'static str {
        WHOLE
    }
}

impl Stage for Whole {
    fn is_counted(&self) -> bool {
        false
    }

    fn run(&self, Work { input, schema, context, .. }: Work) -> Result<SendableRecordBatchStream> {
        let rows = context.session_config().batch_size();
        let joined = BatchCoalescer::new(schema.clone(), rows).with_biggest_coalesce_batch_size(Some(rows / 2));
        Ok(stage::stream_of(Joined { input, joined, ended: false }, schema))
    }
}

struct Joined {
    input: SendableRecordBatchStream,
    joined: BatchCoalescer,
    ended: bool,
}

impl Batches for Joined {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.joined.next_completed_batch() {
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            match self.input.next().await {
                Some(batch) => self.joined.push_batch(batch?)?,
                None => {
                    self.ended = true;
                    self.joined.finish_buffered_batch()?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Int32Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_schema::{DataType, Field, Schema};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use datafusion::prelude::SessionContext;

    #[tokio::test]
    async fn small_batches_become_few_and_large_ones_pass() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, true)]));
        let sizes = (0..1000).map(|_| 20).chain([5000, 1, 0]);
        let mut next = 0;
        let batches: Vec<RecordBatch> = sizes
            .map(|size| {
                let values = Int32Array::from_iter_values(next..next + size);
                next += size;
                RecordBatch::try_new(schema.clone(), vec![Arc::new(values)]).unwrap()
            })
            .collect();
        let input = RecordBatchStreamAdapter::new(schema.clone(), futures::stream::iter(batches.into_iter().map(Ok)));
        let context = SessionContext::new().task_ctx();
        let elapsed = datafusion::physical_plan::metrics::Time::new();
        let work = Work { input: Box::pin(input), args: Vec::new(), schema, context, elapsed };
        let mut output = Whole.run(work).unwrap();
        let (mut seen, mut sizes) = (Vec::new(), Vec::new());
        while let Some(batch) = output.next().await {
            let batch = batch.unwrap();
            sizes.push(batch.num_rows());
            seen.extend(batch.column(0).as_primitive::<Int32Type>().iter().flatten());
        }
        assert_eq!(seen, (0..next).collect::<Vec<i32>>());
        assert!(sizes.len() <= 6, "{sizes:?}");
    }
}
