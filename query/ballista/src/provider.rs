//! Lets DataFusion plan over tables that other processes can find, with scans that can be sent to them.

use crate::scan::PlacedScan;
use crate::table::PlacedTable;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use larch_datafusion::LarchScan;
use os::sync::Arc;

#[async_trait]
impl TableProvider for PlacedTable {
    fn schema(&self) -> SchemaRef {
        self.table().schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table().supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = self.table().scan(state, projection, filters, limit).await?;
        let Some(scan) = scan.downcast_ref::<LarchScan>() else {
            return internal_err!("a table of Larch is read by {}", scan.name());
        };
        Ok(Arc::new(PlacedScan::new(self.clone(), scan.clone())?))
    }
}
