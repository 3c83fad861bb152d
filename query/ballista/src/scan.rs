//! A scan of a table of Larch for plans that Ballista divides. Beneath it in the plan is a small table with a row
//! for each of its partitions.
//!
//! Ballista gives each task its partitions by changing the leaves of the plan, but only leaves of its own and
//! DataFusion's kinds. Each task would read a leaf of another kind as a whole. Therefore the key ranges of the
//! partitions are in a leaf of a known kind, a table in memory, and the scan reads the ranges that it finds there:
//!
//! ```text
//! planned                                a task for partitions 2 and 3
//!   PlacedScan: table=t                    PlacedScan: table=t
//!     DataSourceExec: partitions=4           DataSourceExec: partitions=2
//!       [a to d] [d to k] [k to s] [s to z]    [k to s] [s to z]
//! ```

use crate::failure::{external, to_be_sent};
use crate::table::{PlacedTable, TableSpec};
use datafusion::arrow::array::{Array, BinaryArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err, plan_err};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::sort_pushdown::SortOrderPushdownResult;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::TryStreamExt as _;
use larch_datafusion::{Columns, KeyRange, LarchScan, ScanSpec};
use os::sync::Arc;
use os::sync::atomic::Ordering;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;

/// A scan of a table that other processes can find, above a leaf with its partitions.
#[derive(Clone, Debug)]
pub struct PlacedScan {
    table: PlacedTable,
    /// Its partitions are those in the leaf.
    scan: LarchScan,
    leaf: Arc<dyn ExecutionPlan>,
}

/// The form in which a scan is sent to another process, without its partitions, which are sent in the leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedSpec {
    table: TableSpec,
    scan: ScanSpec,
}

impl PlacedScan {
    /// A planned scan with all its partitions.
    ///
    /// # Errors
    ///
    /// Returns the errors of making a table in memory.
    pub fn new(table: PlacedTable, scan: LarchScan) -> Result<Self> {
        let leaf = leaf_of(&scan.spec().partitions)?;
        Ok(Self { table, scan, leaf })
    }

    /// Makes the scan that another process has sent.
    ///
    /// # Errors
    ///
    /// Fails if `spec` is of another table than `table`, or if the leaf has no key ranges.
    pub fn of_spec(table: PlacedTable, spec: PlacedSpec, leaf: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let partitions = partitions_of(&leaf)?;
        let scan = table.table().scan_of(ScanSpec { partitions, ..spec.scan })?;
        Ok(Self { table, scan, leaf })
    }

    /// What is sent of the scan beside the leaf.
    pub fn spec(&self) -> PlacedSpec {
        let scan = ScanSpec { partitions: Vec::new(), ..self.scan.spec().clone() };
        PlacedSpec { table: self.table.spec(), scan }
    }

    /// This scan with `scan`, which has the same partitions, in place of its own.
    fn with(&self, scan: &LarchScan) -> Self {
        Self { scan: scan.clone(), ..self.clone() }
    }
}

impl PlacedSpec {
    /// The table that is read.
    pub fn table(&self) -> &TableSpec {
        &self.table
    }

    /// The columns that are read, which are known without the database.
    ///
    /// # Errors
    ///
    /// Fails if the specification does not have the columns.
    pub fn schema(&self) -> Result<SchemaRef> {
        let columns: Columns = self.table.columns.parse().map_err(external)?;
        Ok(Arc::new(columns.schema().project(&self.scan.projection)?))
    }
}

fn leaf_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("ranges", DataType::Binary, false)]))
}

/// A leaf with a row for each partition.
fn leaf_of(partitions: &[Vec<KeyRange>]) -> Result<Arc<dyn ExecutionPlan>> {
    let rows = partitions.iter().map(|ranges| {
        let ranges = serde_json::to_vec(ranges).expect("ranges are plain values");
        let column = Arc::new(BinaryArray::from_iter_values([ranges]));
        Ok(vec![RecordBatch::try_new(leaf_schema(), vec![column])?])
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    Ok(MemorySourceConfig::try_new_exec(&rows, leaf_schema(), None)?)
}

/// The ranges of each partition in a leaf.
fn partitions_of(leaf: &Arc<dyn ExecutionPlan>) -> Result<Vec<Vec<KeyRange>>> {
    let source: Option<&dyn Any> = leaf.downcast_ref::<DataSourceExec>().map(|leaf| leaf.data_source().as_ref() as _);
    let Some(source) = source.and_then(|source| source.downcast_ref::<MemorySourceConfig>()) else {
        return plan_err!("the ranges of keys that a scan of Larch reads are rows in memory, and not {}", leaf.name());
    };
    let ranges = |batch: &RecordBatch| {
        let column = batch.columns().first().and_then(|column| column.as_any().downcast_ref::<BinaryArray>());
        let Some(column) = column.filter(|column| column.null_count() == 0) else {
            return plan_err!("the ranges of keys that a scan of Larch reads are in no column of bytes");
        };
        let rows = column.iter().flatten().map(|text| serde_json::from_slice(text).map_err(external));
        rows.collect::<Result<Vec<Vec<KeyRange>>>>()
    };
    let partition = |batches: &Vec<RecordBatch>| {
        let rows = batches.iter().map(ranges).collect::<Result<Vec<_>>>()?;
        Ok(rows.into_iter().flatten().flatten().collect())
    };
    source.partitions().iter().map(partition).collect()
}

impl DisplayAs for PlacedScan {
    fn fmt_as(&self, kind: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.table.place();
        write!(out, "PlacedScan: database={}, version={}, ", place.database, place.version)?;
        self.scan.fmt_as(kind, out)
    }
}

impl ExecutionPlan for PlacedScan {
    fn name(&self) -> &str {
        "PlacedScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.scan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.leaf]
    }

    /// The leaf's rows must not be spread over more readers: each is a partition of this scan.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [leaf] = &children[..] else { return internal_err!("a scan of Larch has one child") };
        let partitions = partitions_of(leaf)?;
        // With the same partitions, what is known about the rows still holds.
        let is_same = partitions == self.scan.spec().partitions;
        let scan = if is_same { self.scan.clone() } else { self.scan.with_partitions(partitions) };
        Ok(Arc::new(Self { table: self.table.clone(), scan, leaf: leaf.clone() }))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if let Some(shown) = self.table.shown() {
            shown.partitions.fetch_add(1, Ordering::Relaxed);
        }
        let rows = self.scan.execute(partition, context)?.map_err(to_be_sent);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.scan.metrics()
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        self.scan.statistics_from_inputs(&[], args)
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let scan = self.scan.with_fetch(fetch)?;
        Some(Arc::new(self.with(scan.downcast_ref()?)))
    }

    fn fetch(&self) -> Option<usize> {
        self.scan.fetch()
    }

    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        let of_scan = self.scan.try_pushdown_sort(order)?;
        let placed = |scan: &Arc<dyn ExecutionPlan>| {
            scan.downcast_ref().map(|scan| Arc::new(self.with(scan)) as Arc<dyn ExecutionPlan>)
        };
        Ok(match of_scan {
            SortOrderPushdownResult::Exact { inner } => match placed(&inner) {
                Some(inner) => SortOrderPushdownResult::Exact { inner },
                None => SortOrderPushdownResult::Unsupported,
            },
            _ => SortOrderPushdownResult::Unsupported,
        })
    }
}
