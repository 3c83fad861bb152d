//! Reads the rows of one partition and makes batches of them, on a thread that may wait for the disk. It does not know what
//! a query does with the batches.
//!
//! ```text
//! thread that reads:   pages of rows -> arrays -> batch -> channel of one batch        stream: channel -> query
//! ```
//!
//! The memory of a batch counts in DataFusion's pool from its first row until the query has taken it. When the stream is
//! dropped, the channel closes, and the thread ends at the end of the batch that it makes, which has a bounded number of
//! rows and bytes.

use crate::error::{BadRow, external};
use crate::fill::{BadField, Filler};
use crate::key_set::KeyRange;
use crate::table::TableSource;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::metrics::BaselineMetrics;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use larch::{Content, Direction, Range, Readable, RowRef};
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A batch ends with the row with which it has so many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// After so many rows the pool is asked for the memory that they took.
const ROWS_BETWEEN_REQUESTS: usize = 1024;

/// What a partition reads.
pub struct Work {
    pub source: Arc<TableSource>,
    /// Numbers of the columns.
    pub projection: Vec<usize>,
    /// Of these columns.
    pub schema: SchemaRef,
    /// In the order of the keys.
    pub ranges: Vec<KeyRange>,
    pub direction: Direction,
    /// The most rows that are given.
    pub rows: u64,
    pub batch_rows: usize,
}

/// A batch and the memory that it has of the pool.
type Sent = Result<(RecordBatch, MemoryReservation)>;

/// The batches of a partition.
pub fn stream(work: Work, memory: MemoryReservation, metrics: BaselineMetrics) -> SendableRecordBatchStream {
    let schema = work.schema.clone();
    let (batches, receiver) = mpsc::channel(1);
    let reader = SpawnedTask::spawn_blocking({
        let metrics = metrics.clone();
        move || {
            let _timer = metrics.elapsed_compute().timer();
            let failed = Reading { batches: batches.clone(), memory }.run(&work).err();
            if let Some(error) = failed
                && batches.blocking_send(Err(error)).is_err()
            {
                // Nobody waits for the rows any more, nor for the error.
            }
        }
    });
    let batches = stream::unfold((receiver, Some(reader)), async move |(mut receiver, mut reader)| {
        if let Some(sent) = receiver.recv().await {
            return Some((sent, (receiver, reader)));
        }
        // The thread has ended. If it panicked, so does the query.
        let joined = reader.take()?.join_unwind().await;
        joined.err().map(|error| (Err(external(error)), (receiver, None)))
    });
    let batches = batches.map(move |sent: Sent| {
        let (batch, memory) = sent?;
        drop(memory);
        metrics.output_rows().add(batch.num_rows());
        Ok(batch)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// The thread's side.
struct Reading {
    batches: mpsc::Sender<Sent>,
    memory: MemoryReservation,
}

/// Why rows are read no further.
enum End {
    /// The limit is reached, or nobody takes batches any more.
    Done,
    Failed(DataFusionError),
}

impl Reading {
    fn run(&mut self, work: &Work) -> Result<()> {
        let groups = work.source.columns.groups_of(&work.projection);
        let capacity = work.batch_rows.min(usize::try_from(work.rows).unwrap_or(usize::MAX));
        let mut filler = Filler::new(&work.source.columns, &work.projection, &groups, capacity);
        let mut left = work.rows;
        let mut end = if left == 0 { Some(End::Done) } else { None };
        let mut ranges: Vec<&KeyRange> = work.ranges.iter().collect();
        if work.direction == Direction::Backward {
            ranges.reverse();
        }
        let mut ranges = ranges.into_iter();
        while end.is_none()
            && let Some(range) = ranges.next()
        {
            end = self.range(work, &groups, range, &mut filler, &mut left)?;
        }
        match end {
            Some(End::Failed(error)) => Err(error),
            Some(End::Done) | None => {
                if filler.rows() > 0 {
                    // Whether somebody takes it, it is the last one.
                    self.send(work, &mut filler)?;
                }
                Ok(())
            }
        }
    }

    /// Reads a range of keys; gives what ends the work, if something does.
    fn range(
        &mut self,
        work: &Work,
        groups: &[usize],
        range: &KeyRange,
        filler: &mut Filler,
        left: &mut u64,
    ) -> Result<Option<End>> {
        let TableSource { table, snapshot, .. } = &*work.source;
        let names = table.options().groups;
        if names.is_empty() && !groups.is_empty() {
            return self.rows(work, snapshot.range(table, range.bounds()), filler, left);
        }
        let selection = table.select(groups.iter().filter_map(|group| names.get(*group))).map_err(external)?;
        let rows = snapshot.select(&selection).map_err(external)?.range(range.bounds());
        self.rows(work, rows, filler, left)
    }

    fn rows<V: Content>(
        &mut self,
        work: &Work,
        rows: Range<V>,
        filler: &mut Filler,
        left: &mut u64,
    ) -> Result<Option<End>> {
        let mut rows = if *left < u64::MAX { rows.limit(*left) } else { rows };
        let each = |row: RowRef<'_>| {
            if let Err(error) = push(&work.source, &row, filler) {
                return ControlFlow::Break(End::Failed(error));
            }
            *left -= 1;
            let is_full = filler.rows() >= work.batch_rows;
            if is_full || filler.rows().is_multiple_of(ROWS_BETWEEN_REQUESTS) || row.part_count() > 0 && is_long(&row) {
                let bytes = filler.bytes();
                if is_full || bytes >= BATCH_BYTES {
                    match self.send(work, filler) {
                        Ok(true) => {}
                        Ok(false) => return ControlFlow::Break(End::Done),
                        Err(error) => return ControlFlow::Break(End::Failed(error)),
                    }
                } else if let Err(error) = self.memory.try_resize(bytes) {
                    return ControlFlow::Break(End::Failed(error));
                }
            }
            if *left == 0 { ControlFlow::Break(End::Done) } else { ControlFlow::Continue(()) }
        };
        let read = match work.direction {
            Direction::Forward => rows.for_each_row(each),
            Direction::Backward => rows.for_each_row_back(each),
        };
        Ok(read.map_err(external)?.break_value())
    }

    /// Sends what the arrays have; false if nobody takes it.
    fn send(&mut self, work: &Work, filler: &mut Filler) -> Result<bool> {
        let rows = RecordBatchOptions::new().with_row_count(Some(filler.rows()));
        let batch = RecordBatch::try_new_with_options(work.schema.clone(), filler.take(), &rows)?;
        self.memory.try_resize(batch.get_array_memory_size())?;
        Ok(self.batches.blocking_send(Ok((batch, self.memory.take()))).is_ok())
    }
}

/// Whether a row alone may be much of a batch.
fn is_long(row: &RowRef<'_>) -> bool {
    (0..row.part_count()).any(|part| row.part_len(part) >= (BATCH_BYTES / ROWS_BETWEEN_REQUESTS) as u64)
}

/// Appends a row. Parts that lie outside their pages are loaded together.
#[inline]
fn push(source: &TableSource, row: &RowRef<'_>, filler: &mut Filler) -> Result<()> {
    let is_inline = (0..row.part_count()).all(|part| row.inline_part(part).is_some());
    let pushed = if is_inline {
        filler.push(row.key(), |part| row.inline_part(part).expect("all parts were looked at"))
    } else {
        let parts = row.parts().map_err(external)?;
        filler.push(row.key(), |part| &parts[part])
    };
    pushed.map_err(|bad| bad_row(source, row.key(), bad))
}

#[cold]
fn bad_row(source: &TableSource, key: &[u8], bad: BadField) -> DataFusionError {
    let column = bad.column.map(|column| source.schema.field(column).name().clone());
    let (table, key) = (source.table.name().to_owned(), source.columns.show_key(key));
    external(BadRow { table, key, column, what: bad.what })
}
