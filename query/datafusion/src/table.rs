//! A table of a database at one version, for DataFusion. It plans scans and reads no rows itself.

use crate::columns::{BadColumns, Columns};
use crate::error::external;
use crate::narrow::{Fit, narrow};
use crate::outline::Outline;
use crate::scan::{LarchScan, ScanSpec};
use crate::table_source::TableSource;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use larch::{Database, Snapshot, Table, Version};
use rows::Declaration;
use std::sync::Arc;

/// A table of Larch for DataFusion, as a snapshot shows it. Cloning is cheap. It holds the snapshot until it is
/// deregistered. To see later rows, register the table again with a new snapshot.
///
/// A query reads only the keys that pass its filters, and only the column groups of its columns.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use datafusion::prelude::SessionContext;
/// use larch_datafusion::LarchTable;
/// use rows::Tuple;
/// use std::sync::Arc;
///
/// # let directory = kit::Scratch::new("doc");
/// # let directory = directory.path();
/// let db = larch::Database::open(directory)?;
/// let cities = db.table("cities")?;
/// cities.insert((17_u32,).to_key(), br#"{"name": "Bonn", "people": 330000}"#)?;
///
/// let columns = "key.tuple(number u32), value.json(name string, people u64)".parse()?;
/// let context = SessionContext::new();
/// context.register_table("cities", Arc::new(LarchTable::new(&db.snapshot(), &cities, columns)?))?;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let rows = context.sql("SELECT name FROM cities WHERE number BETWEEN 10 AND 20").await?.collect().await?;
/// assert_eq!(rows[0].num_rows(), 1);
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LarchTable {
    source: Arc<TableSource>,
}

impl LarchTable {
    /// A table with the columns `columns` and the rows of the snapshot.
    ///
    /// # Errors
    ///
    /// Fails if a column is in a column group that the table does not have.
    pub fn new(snapshot: &Snapshot, table: &Table, columns: Columns) -> Result<Self, BadColumns> {
        columns.check_groups(table.name(), &table.options().groups)?;
        let schema = columns.schema();
        Ok(Self { source: Arc::new(TableSource { table: table.clone(), snapshot: snapshot.clone(), columns, schema }) })
    }

    /// A table with the columns that its metadata declares. If the metadata declares the fields of the key (see
    /// `docs/format/tuple.md`), their columns are `key_0`, `key_1`, …; otherwise the key is one column, `key`. The
    /// value is one column, `value`, or a column for each column group.
    pub fn of(snapshot: &Snapshot, table: &Table) -> Self {
        let options = table.options();
        let columns = match Declaration::from_bytes(&options.metadata) {
            Ok(key) => Columns::of_tuples(&key, &options.groups),
            Err(_) => Columns::raw(&options.groups),
        };
        Self::new(snapshot, table, columns).expect("the groups are those of the table")
    }

    /// The columns.
    pub fn columns(&self) -> &Columns {
        &self.source.columns
    }

    /// The ids of the database and of the table in it. Names may be reused, but no two tables ever have the same two
    /// ids.
    pub fn identity(&self) -> (u64, u32) {
        (self.source.table.database_id(), self.source.table.number())
    }

    /// The name of the table in the database.
    pub fn name(&self) -> &str {
        self.source.table.name()
    }

    /// The version that queries see.
    pub fn version(&self) -> Version {
        self.source.snapshot.version()
    }

    /// The scan that a specification describes, which another process with the same rows may have planned.
    ///
    /// # Errors
    ///
    /// Fails if the specification is of another table, or has other columns than this table.
    pub fn scan_of(&self, spec: ScanSpec) -> Result<LarchScan> {
        LarchScan::of_spec(self.source.clone(), spec)
    }

    /// All tables of a database as `snapshot` shows them, with their names and the columns that they declare.
    ///
    /// # Errors
    ///
    /// The errors of [`Database::existing_table`]. A table that is dropped during this call is left out.
    pub fn all(database: &Database, snapshot: &Snapshot) -> larch::Result<Vec<(String, Self)>> {
        let table = |name: String| Ok(database.existing_table(&name)?.map(|table| (name, Self::of(snapshot, &table))));
        database.tables().into_iter().filter_map(|name| table(name).transpose()).collect()
    }
}

#[async_trait]
impl TableProvider for LarchTable {
    fn schema(&self) -> SchemaRef {
        self.source.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let of_fit = |fit| match fit {
            Fit::Unused => TableProviderFilterPushDown::Unsupported,
            Fit::Inexact => TableProviderFilterPushDown::Inexact,
            Fit::Exact => TableProviderFilterPushDown::Exact,
        };
        Ok(narrow(&self.source.columns, filters).fits.into_iter().map(of_fit).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let narrowed = narrow(&self.source.columns, &filters.iter().collect::<Vec<_>>());
        let projection = projection.cloned().unwrap_or_else(|| (0..self.source.schema.fields().len()).collect());
        let options = &state.config_options().execution;
        let (partitions, rows) = (options.target_partitions, options.batch_size.get());
        // A query for a few rows needs only one reader, so only one partition.
        let partitions = if limit.is_some_and(|limit| limit <= rows) { 1 } else { partitions };
        let source = self.source.clone();
        let columns = projection.clone();
        // The outline reads index pages and may block, so it is made on another thread.
        let outline = move || Outline::of(&source, narrowed.keys, narrowed.pinned, &columns, partitions);
        let outline = SpawnedTask::spawn_blocking(outline).join_unwind().await.map_err(external)?.map_err(external)?;
        Ok(Arc::new(LarchScan::new(self.source.clone(), projection, outline, limit)))
    }
}
