//! The scan of a table in a physical plan: the keys and columns that it reads, their order, and what is known about
//! its rows. Nothing is read until a partition is executed (see [`crate::read`]).

use crate::key_set::KeyRange;
use crate::outline::Outline;
use crate::read::{self, Work};
use crate::table_source::TableSource;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_expr::equivalence::{ConstExpr, EquivalenceProperties};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::sort_pushdown::SortOrderPushdownResult;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use larch::rows::Direction;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A scan of some key ranges of a table.
#[derive(Clone, Debug)]
pub struct LarchScan {
    source: Arc<TableSource>,
    spec: ScanSpec,
    /// The schema of the columns that are read.
    schema: SchemaRef,
    /// The statistics of the columns that are read.
    statistics: Arc<Statistics>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What a scan reads, as plain values that can be sent to another process with the same rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanSpec {
    /// The name of the table.
    pub table: String,
    /// The columns of the table, as [`crate::Columns`] writes them.
    pub columns: String,
    /// The numbers of the columns that are read, in the order of the output.
    pub projection: Vec<usize>,
    /// For each partition, the ranges of keys that it reads, in the order of keys.
    pub partitions: Vec<Vec<KeyRange>>,
    /// How many leading fields of the key have a single value in all rows.
    pub pinned: usize,
    /// The most rows that each partition returns.
    pub fetch: Option<usize>,
    /// Whether each partition returns its rows from the last key to the first.
    pub is_reversed: bool,
}

impl LarchScan {
    /// A scan of these columns.
    pub fn new(source: Arc<TableSource>, projection: Vec<usize>, outline: Outline, fetch: Option<usize>) -> Self {
        let Outline { partitions, pinned, statistics } = outline;
        let spec = ScanSpec {
            table: source.table.name().to_owned(),
            columns: source.columns.to_string(),
            projection,
            partitions,
            pinned,
            fetch,
            is_reversed: false,
        };
        let schema = source.schema.project(&spec.projection).expect("the columns are some of the table");
        let schema = Arc::new(schema);
        let statistics = Arc::new(statistics.project(Some(&spec.projection)));
        let properties = Arc::new(properties(&source, &spec, &schema));
        Self { source, spec, schema, statistics, properties, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// Makes the scan that another process has planned.
    ///
    /// # Errors
    ///
    /// Fails if the scan is of another table or has other columns.
    pub fn of_spec(source: Arc<TableSource>, spec: ScanSpec) -> Result<Self> {
        let (table, columns) = (source.table.name(), source.columns.to_string());
        if (&*spec.table, &spec.columns) != (table, &columns) {
            return plan_err!(
                "the scan is of table {} with {}, and this is {table} with {columns}",
                spec.table,
                spec.columns
            );
        }
        if spec.projection.iter().any(|column| *column >= source.schema.fields().len()) {
            return plan_err!("the scan of table {table} has columns that the table does not have");
        }
        let outline = Outline::planned(spec.partitions.clone(), spec.pinned, &source.schema);
        Ok(Self::new(source, spec.projection.clone(), outline, None).with(spec))
    }

    /// What the scan reads.
    pub fn spec(&self) -> &ScanSpec {
        &self.spec
    }

    /// The scan with other partitions, for example with only some of its own. It drops what is known about the rows,
    /// which may not hold for other partitions.
    pub fn with_partitions(&self, partitions: Vec<Vec<KeyRange>>) -> Self {
        let statistics = Arc::new(Statistics::new_unknown(&self.schema));
        Self { statistics, ..self.with(ScanSpec { partitions, ..self.spec.clone() }) }
    }

    /// The same scan with another specification, such as another order or fewer rows.
    fn with(&self, spec: ScanSpec) -> Self {
        let properties = Arc::new(properties(&self.source, &spec, &self.schema));
        Self { spec, properties, metrics: ExecutionPlanMetricsSet::new(), ..self.clone() }
    }
}

/// What is known about the rows of a scan: their order, and their division into partitions.
fn properties(source: &TableSource, spec: &ScanSpec, schema: &SchemaRef) -> PlanProperties {
    let mut order = Vec::new();
    let mut constants = Vec::new();
    let is_reversed = spec.is_reversed;
    let fields = source.columns.key().map_or(&[][..], |key| &key.fields);
    for (at, (field, number)) in fields.iter().zip(source.columns.key_columns()).enumerate() {
        let place = number.and_then(|number| spec.projection.iter().position(|column| *column == number));
        let column =
            place.map(|place| Arc::new(Column::new(schema.field(place).name(), place)) as Arc<dyn PhysicalExpr>);
        match (column, at < spec.pinned) {
            (Some(column), true) => constants.push(ConstExpr::from(column)),
            // A field with a single value does not affect the order.
            (None, true) => {}
            (Some(column), false) => {
                let descending = field.field_type.is_descending != is_reversed;
                // In a key, NULL comes first in ascending order.
                order.push(PhysicalSortExpr::new(column, SortOptions { descending, nulls_first: !descending }));
            }
            (None, false) => break,
        }
    }
    let orders = if order.is_empty() { Vec::new() } else { vec![order] };
    let mut equivalence = EquivalenceProperties::new_with_orderings(schema.clone(), orders);
    equivalence.add_constants(constants).expect("constant columns contradict no order");
    PlanProperties::new(
        equivalence,
        Partitioning::UnknownPartitioning(spec.partitions.len()),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
    // While a task waits for the thread that reads, other tasks can run.
    .with_scheduling_type(SchedulingType::Cooperative)
}

impl DisplayAs for LarchScan {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, spec, schema, .. } = self;
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(out, "LarchScan: table={}, columns=[{}]", spec.table, names.join(", "))?;
        let groups = source.table.options().groups;
        if !groups.is_empty() {
            let read = source.columns.groups_of(&spec.projection);
            let read: Vec<&str> = read.iter().map(|group| groups[*group].as_str()).collect();
            write!(out, ", groups=[{}]", read.join(", "))?;
        }
        let ranges: Vec<&KeyRange> = spec.partitions.iter().flatten().collect();
        let bound = |key: &Vec<u8>| source.columns.show_key(key);
        match (ranges.first(), ranges.last()) {
            (Some(first), Some(last)) if first.low.is_empty() && last.high.is_none() => write!(out, ", keys=all")?,
            (Some(first), Some(last)) => {
                let high = last.high.as_ref().map_or_else(|| "the last".to_owned(), bound);
                write!(out, ", keys=[{} to {high}", bound(&first.low))?;
                if ranges.len() > spec.partitions.len() {
                    write!(out, ", {} ranges", ranges.len())?;
                }
                write!(out, "]")?;
            }
            _ => write!(out, ", keys=none")?,
        }
        write!(out, ", partitions={}", spec.partitions.len())?;
        if spec.is_reversed {
            write!(out, ", backwards")?;
        }
        spec.fetch.map_or(Ok(()), |fetch| write!(out, ", fetch={fetch}"))
    }
}

impl ExecutionPlan for LarchScan {
    fn name(&self) -> &str {
        "LarchScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan has no children") }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let ScanSpec { projection, partitions, fetch, is_reversed, .. } = &self.spec;
        let Some(ranges) = partitions.get(partition) else {
            return internal_err!("the scan has {} partitions, and number {partition} was asked for", partitions.len());
        };
        let memory = MemoryConsumer::new(format!("LarchScan[{partition}]")).register(context.memory_pool());
        let work = Work {
            source: self.source.clone(),
            projection: projection.clone(),
            schema: self.schema.clone(),
            ranges: ranges.clone(),
            direction: if *is_reversed { Direction::Backward } else { Direction::Forward },
            rows: fetch.map_or(u64::MAX, |fetch| fetch as u64),
            batch_rows: context.session_config().batch_size(),
        };
        Ok(read::stream(work, memory, BaselineMetrics::new(&self.metrics, partition)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let is_whole = args.partition().is_none() || self.spec.partitions.len() == 1;
        match (is_whole, self.spec.fetch) {
            (true, None) => Ok(self.statistics.clone()),
            // With a limit, the least and greatest values may differ from those of all rows.
            (true, Some(fetch)) => {
                let mut statistics = Statistics::new_unknown(&self.schema);
                let most = fetch.saturating_mul(self.spec.partitions.len());
                statistics.num_rows = match self.statistics.num_rows {
                    Precision::Exact(rows) if self.spec.partitions.len() == 1 => Precision::Exact(rows.min(fetch)),
                    Precision::Exact(rows) | Precision::Inexact(rows) => Precision::Inexact(rows.min(most)),
                    Precision::Absent => Precision::Absent,
                };
                Ok(Arc::new(statistics))
            }
            (false, _) => Ok(Arc::new(Statistics::new_unknown(&self.schema))),
        }
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.with(ScanSpec { fetch, ..self.spec.clone() })))
    }

    fn fetch(&self) -> Option<usize> {
        self.spec.fetch
    }

    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        // A scan with a limit must return the first rows, so its order cannot be reversed.
        if self.spec.fetch.is_some() {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let reversed = self.with(ScanSpec { is_reversed: !self.spec.is_reversed, ..self.spec.clone() });
        for scan in [self.clone(), reversed] {
            if scan.properties.equivalence_properties().ordering_satisfy(order.to_vec())? {
                return Ok(SortOrderPushdownResult::Exact { inner: Arc::new(scan) });
            }
        }
        Ok(SortOrderPushdownResult::Unsupported)
    }
}
