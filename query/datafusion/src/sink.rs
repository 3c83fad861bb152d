//! `COPY … TO … STORED AS LARCH`: writes the rows of a query as built files, which `larch ingest` takes into a
//! table.
//!
//! ```sql
//! COPY (SELECT city, number, people FROM cities) TO 'shards' STORED AS LARCH
//! OPTIONS ('columns' 'key.tuple(city string, number u32), value.tuple(people u64)')
//! ```
//!
//! Each partition of the query becomes a shard: a directory below the one that the statement names. Shards are built
//! in parallel, and finished only after all rows have been written, so a failed query leaves no shard that could be
//! ingested.

use crate::columns::Columns;
use crate::error::external;
use crate::write::{RowWriter, Unwritable};
use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{GetExt, Statistics, internal_err, not_impl_err, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{ArrowSource, FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::physical_expr::{EquivalenceProperties, LexRequirement, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PlanProperties,
    SendableRecordBatchStream,
};
use futures::{StreamExt, stream};
use larch::bulk::FileBuilder;
use larch::machine::Machine;
use larch::{Database, TableOptions};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// DataFusion passes the options of a statement on with this prefix.
const PREFIX: &str = "format.";

/// The names of the options, without the prefix.
const COLUMNS: &str = "columns";
const GROUPS: &str = "groups";

/// The least memory that a shard gets to sort its rows.
const MIN_SORT_BYTES: u64 = 4 << 20;

/// The memory that all shards share to sort their rows.
const SORT_BYTES: u64 = 64 << 20;

/// Lets a session write `COPY … STORED AS LARCH`: register this type as a file format.
#[derive(Debug, Default)]
pub struct BuiltFormat;

impl GetExt for BuiltFormat {
    fn get_ext(&self) -> String {
        crate::FORMAT.to_lowercase()
    }
}

impl FileFormatFactory for BuiltFormat {
    fn create(&self, _: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        let mut built = BuiltFiles::default();
        for (name, value) in options {
            match name.strip_prefix(PREFIX).unwrap_or(name) {
                COLUMNS => built.columns = Some(value.parse().map_err(external)?),
                GROUPS => built.groups = value.split(',').map(|group| group.trim().to_owned()).collect(),
                other => return plan_err!("files of Larch have no option {other}; there are 'columns' and 'groups'"),
            }
        }
        Ok(Arc::new(built))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(BuiltFiles::default())
    }
}

/// The format of built files for a table with these columns.
#[derive(Clone, Debug, Default)]
struct BuiltFiles {
    columns: Option<Columns>,
    /// The names of the column groups.
    groups: Vec<String>,
}

#[async_trait]
impl FileFormat for BuiltFiles {
    fn get_ext(&self) -> String {
        crate::FORMAT.to_lowercase()
    }

    fn get_ext_with_compression(&self, _: &FileCompressionType) -> Result<String> {
        Ok(self.get_ext())
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(&self, _: &dyn Session, _: &Arc<dyn ObjectStore>, _: &[ObjectMeta]) -> Result<SchemaRef> {
        not_impl_err!("built files are read after larch ingest has taken them into a table")
    }

    async fn infer_stats(
        &self,
        _: &dyn Session,
        _: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        _: &ObjectMeta,
    ) -> Result<Statistics> {
        Ok(Statistics::new_unknown(&schema))
    }

    async fn create_physical_plan(&self, _: &dyn Session, _: FileScanConfig) -> Result<Arc<dyn ExecutionPlan>> {
        not_impl_err!("built files are read after larch ingest has taken them into a table")
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _: &dyn Session,
        sink: FileSinkConfig,
        _: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(columns) = &self.columns else {
            return plan_err!(
                "COPY … STORED AS LARCH wants the columns of the table, as in OPTIONS ('columns' 'key.tuple(number u32), …')"
            );
        };
        if !sink.table_partition_cols.is_empty() {
            return plan_err!("files of Larch are sorted by their keys; leave PARTITIONED BY out");
        }
        let path = sink.table_paths.first().and_then(|url| url.get_url().to_file_path().ok());
        let Some(directory) = path else {
            return plan_err!(
                "files of Larch are built in a directory of this machine, and not at {}",
                sink.original_url
            );
        };
        // Without the trailing slash that DataFusion adds to the path of a directory that exists.
        let directory = directory.components().collect();
        let writer = RowWriter::new(columns, &input.schema()).map_err(external)?;
        let groups = match (writer.parts(), &self.groups[..]) {
            (1, []) => Vec::new(),
            (parts, []) => (0..parts).map(|part| format!("part_{part}")).collect(),
            (parts, groups) if groups.len() == parts => groups.to_vec(),
            (parts, groups) => {
                return plan_err!("the columns are in {parts} parts of a value, and 'groups' names {}", groups.len());
            }
        };
        let metadata = writer.key().map_or_else(Vec::new, |key| key.to_bytes());
        let table = TableOptions { groups, metadata, ..TableOptions::default() };
        Ok(Arc::new(BuildExec::new(input, writer, table, directory)))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        // Required by the trait but never used: these files are only written, and a plan that would read them fails
        // earlier.
        Arc::new(ArrowSource::new_file_source(schema))
    }
}

/// Builds one shard from each partition of a query, and returns the number of rows.
#[derive(Debug)]
struct BuildExec {
    input: Arc<dyn ExecutionPlan>,
    writer: Arc<RowWriter>,
    table: TableOptions,
    directory: PathBuf,
    properties: Arc<PlanProperties>,
}

impl BuildExec {
    fn new(input: Arc<dyn ExecutionPlan>, writer: RowWriter, table: TableOptions, directory: PathBuf) -> Self {
        let schema = Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { input, writer: Arc::new(writer), table, directory, properties: Arc::new(properties) }
    }
}

impl DisplayAs for BuildExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shards = self.input.output_partitioning().partition_count();
        write!(out, "BuildExec: directory={}, shards={shards}", self.directory.display())
    }
}

impl ExecutionPlan for BuildExec {
    fn name(&self) -> &str {
        "BuildExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// DataFusion must not redistribute the rows: they may be sorted already, and rows of one key range stay
    /// together.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = &children[..] else { return internal_err!("what builds files has one input") };
        let Self { writer, table, directory, properties, .. } = &*self;
        Ok(Arc::new(Self {
            input: input.clone(),
            writer: writer.clone(),
            table: table.clone(),
            directory: directory.clone(),
            properties: properties.clone(),
        }))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("what builds files has one partition, and number {partition} was asked for");
        }
        let Self { input, writer, table, directory, .. } = self;
        let shards = input.output_partitioning().partition_count();
        let rows = (0..shards).map(|shard| input.execute(shard, context.clone())).collect::<Result<Vec<_>>>()?;
        let work = build(rows, writer.clone(), table.clone(), directory.clone());
        let schema = self.schema();
        let counted = {
            let schema = schema.clone();
            async move { Ok(RecordBatch::try_new(schema, vec![Arc::new(UInt64Array::from(vec![work.await?]))])?) }
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::once(counted))))
    }
}

/// Builds a shard from each stream, all in parallel. Returns the number of rows.
async fn build(
    shards: Vec<SendableRecordBatchStream>,
    writer: Arc<RowWriter>,
    table: TableOptions,
    directory: PathBuf,
) -> Result<u64> {
    let count = shards.len();
    let made = directory.clone();
    wait(move || claim(&made)).await?;
    let mut adding = JoinSet::new();
    for (number, rows) in shards.into_iter().enumerate() {
        let (writer, table) = (writer.clone(), table.clone());
        let shard = directory.join(shard_name(number));
        adding.spawn(async move {
            let sort_bytes = (SORT_BYTES / count as u64).max(MIN_SORT_BYTES);
            let begun = wait(move || {
                let builder = Database::builder(&shard).write_buffer_bytes(sort_bytes);
                builder.build_files(table).map_err(external)
            });
            add(begun.await?, rows, writer).await
        });
    }
    let mut added = Vec::with_capacity(count);
    while let Some(shard) = adding.join_next().await {
        added.push(shard.map_err(external)??);
    }
    let total = added.iter().map(|(_, rows)| rows).sum();
    // One thread finishes all shards. It goes on even if the query is cancelled, so that never only some are
    // finished.
    wait(move || {
        for (files, rows) in added {
            // A shard without rows is removed when its builder is dropped.
            let finished = if rows > 0 { files.finish(|_| {}).map_err(external).map(drop) } else { Ok(()) };
            if let Err(error) = finished {
                take_back(&directory, count);
                return Err(error);
            }
        }
        Ok(())
    })
    .await?;
    Ok(total)
}

/// Removes all finished shards after one shard could not be finished.
fn take_back(directory: &Path, shards: usize) {
    for shard in 0..shards {
        // For an unfinished shard, which is not a directory of built files, this does nothing. Its directory may
        // remain; the error of the query says that it is not a result.
        larch::bulk::BuiltFiles::at(directory.join(shard_name(shard))).and_then(|files| files.remove()).ok();
    }
}

fn shard_name(number: usize) -> String {
    format!("{number:05}")
}

/// Creates the directory, or checks that it is empty if it exists.
fn claim(directory: &Path) -> Result<()> {
    let disk = Machine::real().disk;
    disk.create_dir(directory).map_err(external)?;
    if disk.list(directory).map_err(external)?.is_empty() {
        return Ok(());
    }
    plan_err!("{} is not empty; name a directory that does not exist", directory.display())
}

/// Adds the rows of a stream to a shard, and counts them.
async fn add(
    mut files: FileBuilder,
    mut rows: SendableRecordBatchStream,
    writer: Arc<RowWriter>,
) -> Result<(FileBuilder, u64)> {
    let mut count = 0;
    while let Some(batch) = rows.next().await.transpose()? {
        count += batch.num_rows() as u64;
        let writer = writer.clone();
        files = wait(move || {
            writer.write(&batch, |key, parts| {
                let added = match parts {
                    [value] => files.add(key, value),
                    parts => files.add_parts(key, parts),
                };
                added.map_err(external)
            })?;
            Ok(files)
        })
        .await?;
    }
    Ok((files, count))
}

/// Runs work that may block on the disk, on a thread that may block.
async fn wait<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    SpawnedTask::spawn_blocking(work).join_unwind().await.map_err(external)?
}

impl From<Unwritable> for DataFusionError {
    fn from(bad: Unwritable) -> Self {
        external(bad)
    }
}
