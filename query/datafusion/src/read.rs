//! Reads the rows of one partition as a stream of batches.
//!
//! ```text
//! stream:    asks for batch 1    gives batch 1, asks for 2    gives 2, asks for 3
//! a thread   reads batch 1       reads batch 2                …
//! ```
//!
//! Each batch is read by a call on a thread that may block. Between two calls, no thread is occupied, so a query
//! with many partitions does not run out of threads, whichever partition it waits for. One batch is read ahead. When
//! the stream is dropped, no further call is made, and a running one ends with its batch, whose size is limited.
//!
//! Here a *batch* is one of DataFusion and not a row batch of the engine. Its memory is reserved in DataFusion's
//! pool from its first rows until the query takes it.

use crate::error::{BadRow, external};
use crate::fill::{BadField, Filler};
use crate::key_set::KeyRange;
use crate::table_source::TableSource;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::metrics::BaselineMetrics;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;
use larch::rows::{Content, Direction, RowBatch, RowRef};
use larch::{Parts, Range, Readable, Value};
use smallvec::SmallVec;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A batch ends when it is found to have this many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// After this many rows, the reader measures the arrays and reserves their memory in the pool.
const ROWS_BETWEEN_REQUESTS: usize = 1024;

/// After rows with a part of at least this many bytes, the reader measures the arrays at once.
const LONG_BYTES: usize = BATCH_BYTES / ROWS_BETWEEN_REQUESTS;

/// What a partition has to read.
pub struct Work {
    pub source: Arc<TableSource>,
    /// The numbers of the columns that the stream returns.
    pub projection: Vec<usize>,
    /// The schema of these columns.
    pub schema: SchemaRef,
    /// The ranges that are read, in key order.
    pub ranges: Vec<KeyRange>,
    pub direction: Direction,
    /// The most rows to return.
    pub rows: u64,
    pub batch_rows: usize,
}

/// The batches of a partition, as a stream.
pub fn stream(work: Work, memory: MemoryReservation, metrics: BaselineMetrics) -> SendableRecordBatchStream {
    let schema = work.schema.clone();
    let first = Next::Begin(Box::new(Reading::new(work, memory)));
    let batches = stream::unfold(first, move |next| {
        let metrics = metrics.clone();
        async move {
            let call = match next {
                Next::Begin(reading) => call(reading),
                Next::Called(call) => call,
                Next::End => return None,
            };
            match call.join_unwind().await {
                Ok((reading, Ok(Some((batch, memory))))) => {
                    drop(memory);
                    metrics.output_rows().add(batch.num_rows());
                    let next = if reading.is_done() { Next::End } else { Next::Called(self::call(reading)) };
                    Some((Ok(batch), next))
                }
                Ok((_, Ok(None))) => None,
                Ok((_, Err(error))) => Some((Err(error), Next::End)),
                Err(error) => Some((Err(external(error)), Next::End)),
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// What a stream does next when a batch is asked for.
enum Next {
    Begin(Box<Reading>),
    Called(Call),
    End,
}

/// A call on another thread, which returns a batch and the state for the next one.
type Call = SpawnedTask<(Box<Reading>, Read)>;

/// A batch with its reservation in the pool; `None` if no row is left.
type Read = Result<Option<(RecordBatch, MemoryReservation)>>;

fn call(mut reading: Box<Reading>) -> Call {
    SpawnedTask::spawn_blocking(move || {
        let read = reading.batch();
        (reading, read)
    })
}

/// The state of the work on a partition.
struct Reading {
    work: Work,
    /// The numbers of the column groups that are read.
    groups: Vec<usize>,
    memory: MemoryReservation,
    filler: Filler,
    /// The remaining rows of the current range.
    rows: Option<Rows>,
    /// The number of ranges that were begun.
    begun: usize,
    /// How many rows may still be returned; `u64::MAX` if there is no limit.
    left: u64,
    /// The rows appended since the arrays were last measured.
    unmeasured: usize,
}

/// The rows of a range, with whole values or with their parts in some column groups.
enum Rows {
    Whole(Range<Value>),
    Parts(Range<Parts>),
}

/// The batch is full, and the range may have more rows.
struct Full;

impl Reading {
    fn new(work: Work, memory: MemoryReservation) -> Self {
        let groups = work.source.columns.groups_of(&work.projection);
        let capacity = work.batch_rows.min(usize::try_from(work.rows).unwrap_or(usize::MAX));
        let filler = Filler::new(&work.source.columns, &work.projection, &groups, capacity);
        Self { groups, memory, filler, rows: None, begun: 0, left: work.rows, unmeasured: 0, work }
    }

    /// Whether it is certain that no rows are left to read.
    fn is_done(&self) -> bool {
        self.left == 0 || self.rows.is_none() && self.begun == self.work.ranges.len()
    }

    /// Reads the next batch. Blocks while pages are read.
    fn batch(&mut self) -> Read {
        while !self.is_done() {
            let mut rows = match self.rows.take() {
                Some(rows) => rows,
                None => self.begin()?,
            };
            let paused = match &mut rows {
                Rows::Whole(rows) => self.fill(rows)?,
                Rows::Parts(rows) => self.fill(rows)?,
            };
            match paused {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(Full) => {
                    self.rows = Some(rows);
                    return self.take().map(Some);
                }
            }
        }
        if self.filler.rows() > 0 { self.take().map(Some) } else { Ok(None) }
    }

    /// Begins the next range.
    fn begin(&mut self) -> Result<Rows> {
        let Work { source, ranges, direction, .. } = &self.work;
        let number = match direction {
            Direction::Forward => self.begun,
            Direction::Backward => ranges.len() - 1 - self.begun,
        };
        let range = ranges[number].bounds();
        self.begun += 1;
        let names = source.table.options().groups;
        if names.is_empty() && !self.groups.is_empty() {
            let rows = source.snapshot.range(&source.table, range);
            return Ok(Rows::Whole(if self.left < u64::MAX { rows.limit(self.left) } else { rows }));
        }
        let groups = self.groups.iter().filter_map(|group| names.get(*group));
        let selection = source.table.select(groups).map_err(external)?;
        let rows = source.snapshot.select(&selection).map_err(external)?.range(range);
        Ok(Rows::Parts(if self.left < u64::MAX { rows.limit(self.left) } else { rows }))
    }

    /// Appends rows to the arrays until the batch is full or the range has no more rows.
    fn fill<V: Content>(&mut self, rows: &mut Range<V>) -> Result<ControlFlow<Full>> {
        let Self { work, memory, filler, left, unmeasured, .. } = self;
        loop {
            let room = work.batch_rows - filler.rows();
            let most = room.min(ROWS_BETWEEN_REQUESTS).min(usize::try_from(*left).unwrap_or(usize::MAX));
            let read = match work.direction {
                Direction::Forward => rows.next_batch(most),
                Direction::Backward => rows.next_batch_back(most),
            };
            let Some(rows) = read.map_err(external)? else { return Ok(ControlFlow::Continue(())) };
            let is_long = push(&work.source, &rows, filler)?;
            if work.rows < u64::MAX {
                *left -= rows.len() as u64;
            }
            *unmeasured += rows.len();
            if filler.rows() >= work.batch_rows || *left == 0 {
                return Ok(ControlFlow::Break(Full));
            }
            if *unmeasured >= ROWS_BETWEEN_REQUESTS || is_long {
                *unmeasured = 0;
                let bytes = filler.bytes();
                if bytes >= BATCH_BYTES {
                    return Ok(ControlFlow::Break(Full));
                }
                memory.try_resize(bytes)?;
            }
        }
    }

    /// Makes a batch of the rows in the arrays.
    fn take(&mut self) -> Result<(RecordBatch, MemoryReservation)> {
        let rows = RecordBatchOptions::new().with_row_count(Some(self.filler.rows()));
        let batch = RecordBatch::try_new_with_options(self.work.schema.clone(), self.filler.take(), &rows)?;
        self.unmeasured = 0;
        self.memory.try_resize(batch.get_array_memory_size())?;
        Ok((batch, self.memory.take()))
    }
}

/// Appends rows to the arrays. Returns whether one of the rows has a long part.
fn push(source: &TableSource, rows: &RowBatch<'_>, filler: &mut Filler) -> Result<bool> {
    if let Some(row) = rows.row() {
        return push_row(source, row, filler);
    }
    let parts = (0..rows.part_count()).map(|part| {
        let inline = rows.inline_parts(part).expect("a row with a part outside its page comes alone");
        let mut parts = Vec::with_capacity(inline.len());
        inline.for_each(|part| parts.push(part));
        parts
    });
    let parts: SmallVec<[Vec<&[u8]>; 4]> = parts.collect();
    let pushed = filler.push_rows(|each| rows.for_each_key(each), &parts, rows.len());
    pushed.map_err(|(row, bad)| {
        let mut keys = Vec::new();
        rows.for_each_key(|key| keys.push(key.to_vec()));
        bad_row(source, &keys[row], bad)
    })?;
    Ok(parts.iter().flatten().any(|part| part.len() >= LONG_BYTES))
}

/// The same as [`push`] for a single row. Parts that are stored outside of its page are loaded together.
fn push_row(source: &TableSource, row: &RowRef<'_>, filler: &mut Filler) -> Result<bool> {
    let parts = (0..row.part_count()).map(|part| row.inline_part(part));
    if let Some(parts) = parts.collect::<Option<SmallVec<[&[u8]; 4]>>>() {
        return push_parts(source, row.key(), &parts, filler);
    }
    let loaded = row.parts().map_err(external)?;
    let parts: SmallVec<[&[u8]; 4]> = (0..row.part_count()).map(|part| &*loaded[part]).collect();
    push_parts(source, row.key(), &parts, filler)
}

fn push_parts(source: &TableSource, key: &[u8], parts: &[&[u8]], filler: &mut Filler) -> Result<bool> {
    filler.push(key, parts).map_err(|bad| bad_row(source, key, bad))?;
    Ok(parts.iter().any(|part| part.len() >= LONG_BYTES))
}

#[cold]
fn bad_row(source: &TableSource, key: &[u8], bad: BadField) -> DataFusionError {
    let column = bad.column.map(|column| source.schema.field(column).name().clone());
    let (table, key) = (source.table.name().to_owned(), source.columns.show_key(key));
    external(BadRow { table, key, column, what: bad.what })
}
