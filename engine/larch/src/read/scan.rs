//! Iterates over a range of keys with futures, so that no thread blocks for pages. It works with any executor.
//!
//! A row counts as given when a future or a stream has returned it. A future that is dropped earlier loses no row,
//! leaves nothing pinned and stops waiting for pages.

use super::content::{self, Content};
use super::range::{Range, RangeRows};
use super::row::RowRef;
use crate::base::error::Result;
use crate::view::value::{Key, Value};
use futures_core::Stream;
use pages::Stop;
use sst::Direction;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Rows of a key range in order, as of one version, for futures. [`Table::scan_async`](crate::Reader::scan_async)
/// makes one, and any [`Range`] can be turned into one. It reads ahead as a range does, and returns rows from both
/// ends. After an error the scan has failed: every further call returns this error.
///
/// A scan is also a [`Stream`] of the rows from the front.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> { smol::block_on(async {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let fruit = db.table("fruit")?;
/// for name in ["apple", "banana", "cherry"] {
///     fruit.insert(name, "ripe")?;
/// }
/// let snapshot = db.snapshot();
/// let mut rows = larch::Scan::from(larch::Readable::range(&snapshot, &fruit, "b"..));
/// while let Some(row) = rows.next_back().await {
///     let (key, value) = row?;
///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
/// }
/// # Ok(()) }) }
/// ```
#[must_use = "a scan reads nothing until it is polled"]
pub struct Scan<V = Value> {
    rows: RangeRows,
    content: PhantomData<fn() -> V>,
}

impl<V: Content> Scan<V> {
    /// Limits the scan to `rows` rows, counted from both ends together; see [`Range::limit`].
    pub fn limit(self, rows: u64) -> Self {
        Self { rows: self.rows.limit(rows), ..self }
    }

    /// The next row from the front. The future can be dropped at any time without losing a row.
    ///
    /// # Errors
    ///
    /// As [`Table::range`](crate::Reader::range).
    pub async fn next(&mut self) -> Option<Result<(Key, V)>> {
        self.next_with(Direction::Forward, content::owned).await
    }

    /// The next row from the back.
    ///
    /// # Errors
    ///
    /// As [`Scan::next`].
    pub async fn next_back(&mut self) -> Option<Result<(Key, V)>> {
        self.next_with(Direction::Backward, content::owned).await
    }

    /// Passes the next row to `take` and returns the result.
    pub(crate) async fn next_with<T>(
        &mut self,
        direction: Direction,
        take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Option<Result<T>> {
        self.rows.wait_async(direction, take).await.transpose()
    }
}

impl<V: Content> Stream for Scan<V> {
    type Item = Result<(Key, V)>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.rows.poll(context, Direction::Forward, content::owned).map(Result::transpose)
    }
}

impl<V: Content> From<Range<V>> for Scan<V> {
    fn from(range: Range<V>) -> Self {
        Self { rows: range.into_rows(), content: PhantomData }
    }
}

/// A blocking range over the rows that the scan has not returned yet.
impl<V: Content> From<Scan<V>> for Range<V> {
    fn from(mut scan: Scan<V>) -> Self {
        scan.rows.abandon();
        Self::new(scan.rows)
    }
}

impl<V> fmt::Debug for Scan<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.describe("Scan", f)
    }
}

const _: () = {
    const fn sent<T: Send>() {}
    sent::<Scan>();
    sent::<Scan<crate::view::value::Parts>>();
};
