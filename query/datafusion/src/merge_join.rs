//! Makes the filters of outer merge joins work for rows without a partner.
//!
//! `SortMergeJoinExec` of DataFusion 55.2 evaluates the filter of an outer join even for rows whose keys have no
//! match, although it does not use the result. For such a row, the columns of the other side are NULL. But the
//! filter's schema says that they never are, so the query ends with `Column 'y' is declared as non-nullable but
//! contains null values`:
//!
//! ```text
//! SELECT * FROM a LEFT JOIN b ON a.x = b.x AND a.y < b.y       a: (1, 5)  b: (2, 9)       filter: 5 < NULL
//! ```

use datafusion::arrow::datatypes::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::SortMergeJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use std::sync::Arc;

/// A rule that makes each column of a merge join's filter nullable. It must run after DataFusion's own rules.
#[derive(Debug)]
pub struct MergeJoinFilters;

impl PhysicalOptimizerRule for MergeJoinFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(with_null).data()
    }

    fn name(&self) -> &str {
        "MergeJoinFilters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn with_null(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some((join, filter)) =
        plan.downcast_ref::<SortMergeJoinExec>().and_then(|join| Some((join, join.filter().as_ref()?)))
    else {
        return Ok(Transformed::no(plan));
    };
    let schema = filter.schema();
    if schema.fields().iter().all(|field| field.is_nullable()) {
        return Ok(Transformed::no(plan));
    }
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
    let filter = JoinFilter::new(filter.expression().clone(), filter.column_indices().to_vec(), Arc::new(schema));
    let join = SortMergeJoinExec::try_new(
        join.left().clone(),
        join.right().clone(),
        join.on().to_vec(),
        Some(filter),
        join.join_type(),
        join.sort_options().to_vec(),
        join.null_equality(),
    )?;
    Ok(Transformed::yes(Arc::new(join)))
}
