//! Writes rows as files with typed columns, which are those of `larch sql`: Arrow files, and Parquet files with the
//! cargo feature `parquet`.

use crate::args::ScanFormat;
use crate::failure::{CommandFailure, Result};
use crate::layout::{Layout, columns};
use crate::output::Output;
use crate::portion::{Columns, Keys};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan as _;
use futures::StreamExt as _;
use larch::{Snapshot, Table};
use larch_datafusion::{BadRow, KeyRange, LarchTable, ScanSpec};
use std::io::{self, IsTerminal as _};
use std::ops::Bound;
use std::sync::Arc;

/// The failure if this binary cannot write files of a format.
pub fn check(format: ScanFormat) -> Result<()> {
    match format {
        #[cfg(not(feature = "parquet"))]
        ScanFormat::Parquet => Err(CommandFailure::not_built("--format parquet", "parquet")),
        _ => Ok(()),
    }
}

/// Writes rows as they are in `snapshot`, and returns their number.
pub fn write(
    snapshot: &Snapshot,
    table: &Table,
    layout: &Layout,
    keys: &Keys,
    asked: &Columns<'_>,
    format: ScanFormat,
    output: &mut Output,
) -> Result<u64> {
    if output.is_stdout() && io::stdout().is_terminal() {
        return Err(CommandFailure::Usage(
            "such a file is not for a terminal; name one with --out, or send the output elsewhere".to_owned(),
        ));
    }
    let groups = table.options().groups;
    let table = of(snapshot, table, layout)?;
    let projection = projection(&table, &groups, asked);
    let ranges = keys.ranges.iter().filter_map(key_range);
    let spec = ScanSpec {
        table: table.name().to_owned(),
        columns: table.columns().to_string(),
        projection,
        partitions: vec![ranges.collect()],
        pinned: 0,
        fetch: usize::try_from(keys.limit).ok(),
        is_reversed: keys.reverse,
    };
    let scan = table.scan_of(spec).map_err(failure)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime
        .map_err(|error| CommandFailure::Input(format!("cannot start a thread that reads: {error}; try again")))?;
    runtime.block_on(async {
        let mut batches = scan.execute(0, Arc::new(TaskContext::default())).map_err(failure)?;
        let mut writer = Writer::new(format, &batches.schema(), output)?;
        let mut rows = 0;
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(failure)?;
            rows += batch.num_rows() as u64;
            writer.write(&batch)?;
        }
        writer.finish()?;
        Ok(rows)
    })
}

/// The table with its columns.
fn of(snapshot: &Snapshot, table: &Table, layout: &Layout) -> Result<LarchTable> {
    let Some(schema) = layout.schema() else {
        return Ok(match layout.tuple() {
            // The types may be those of the command line.
            Some(fields) => {
                let columns = larch_datafusion::Columns::of_tuples(fields, &table.options().groups);
                LarchTable::new(snapshot, table, columns).map_err(|bad| CommandFailure::Input(bad.to_string()))?
            }
            None => LarchTable::of(snapshot, table),
        });
    };
    let name = table.name();
    let of_import = |bad: larch_datafusion::BadColumns| CommandFailure::Input(format!("table {name}: {bad}"));
    let columns = columns::declared(schema).parse().map_err(of_import)?;
    LarchTable::new(snapshot, table, columns).map_err(of_import)
}

/// The numbers of the columns that were asked for.
fn projection(table: &LarchTable, groups: &[String], asked: &Columns<'_>) -> Vec<usize> {
    let columns = table.columns();
    let of_key: Vec<usize> = columns.key_columns().into_iter().flatten().collect();
    let asked_groups = asked.groups.iter().map(|name| groups.iter().position(|group| group == name));
    let asked_groups: Vec<Option<usize>> = asked_groups.collect();
    let is_asked = |column: &usize| {
        let of = columns.groups_of(&[*column]);
        of_key.contains(column)
            || !asked.keys && (asked.groups.is_empty() || of.iter().any(|group| asked_groups.contains(&Some(*group))))
    };
    (0..columns.schema().fields().len()).filter(is_asked).collect()
}

/// The same range of keys as a query has it, or `None` if it has no key.
fn key_range((low, high): &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Option<KeyRange> {
    // The least key after `key` is the same key with a zero byte behind it.
    let after = |key: &[u8]| [key, &[0]].concat();
    let low = match low {
        Bound::Unbounded => Vec::new(),
        Bound::Included(key) => key.clone(),
        Bound::Excluded(key) => after(key),
    };
    let high = match high {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(after(key)),
        Bound::Excluded(key) => Some(key.clone()),
    };
    high.as_ref().is_none_or(|high| low < *high).then_some(KeyRange { low, high })
}

/// Writes batches of rows.
enum Writer<'o> {
    Arrow(Box<FileWriter<&'o mut Output>>),
    /// The writer can be sent to other threads, and standard output cannot. So it writes to memory, from where the bytes
    /// go on.
    #[cfg(feature = "parquet")]
    Parquet {
        writer: Box<datafusion::parquet::arrow::ArrowWriter<Vec<u8>>>,
        output: &'o mut Output,
    },
}

impl<'o> Writer<'o> {
    fn new(format: ScanFormat, schema: &SchemaRef, output: &'o mut Output) -> Result<Self> {
        match format {
            #[cfg(feature = "parquet")]
            ScanFormat::Parquet => {
                let writer = datafusion::parquet::arrow::ArrowWriter::try_new(Vec::new(), schema.clone(), None);
                Ok(Self::Parquet { writer: Box::new(writer.map_err(of_parquet)?), output })
            }
            _ => Ok(Self::Arrow(Box::new(FileWriter::try_new(output, schema).map_err(unwritable)?))),
        }
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Arrow(writer) => writer.write(batch).map_err(unwritable),
            #[cfg(feature = "parquet")]
            Self::Parquet { writer, output } => {
                writer.write(batch).map_err(of_parquet)?;
                output.write(|bytes| bytes.append(writer.inner_mut()))
            }
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::Arrow(mut writer) => writer.finish().map_err(unwritable),
            #[cfg(feature = "parquet")]
            Self::Parquet { writer, output } => {
                let mut last = writer.into_inner().map_err(of_parquet)?;
                output.write(|bytes| bytes.append(&mut last))
            }
        }
    }
}

/// The failure to write a file of Arrow.
fn unwritable(error: ArrowError) -> CommandFailure {
    match error {
        ArrowError::IoError(_, error) => CommandFailure::Output(error),
        other => CommandFailure::Input(format!("the rows cannot be written: {other}; choose another --format")),
    }
}

/// The failure to make a file of Parquet.
#[cfg(feature = "parquet")]
fn of_parquet(error: datafusion::parquet::errors::ParquetError) -> CommandFailure {
    CommandFailure::Input(format!("the rows cannot be written: {error}; choose another --format"))
}

/// The failure to read a row.
fn failure(error: DataFusionError) -> CommandFailure {
    let root = error.find_root();
    if let DataFusionError::External(external) = root {
        if let Some(error) = external.downcast_ref::<larch::Error>() {
            return CommandFailure::Engine(error.clone());
        }
        if let Some(bad) = external.downcast_ref::<BadRow>() {
            return CommandFailure::Input(format!("{bad}; csv, tsv and jsonl can hold it"));
        }
    }
    CommandFailure::Input(root.strip_backtrace())
}
