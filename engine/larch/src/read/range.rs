//! Iterates over a range of keys from both ends. This file has the public type; `rows` has what is behind it.

mod followed;
mod lent;
mod limit;
mod rest;
mod rows;
mod search;

pub(crate) use rows::RangeRows;

use super::content::{self, Content};
use super::forms::Tried;
use super::row::RowRef;
use super::row_batch::RowBatch;
use crate::base::error::{Error, Result};
use crate::view::value::{Key, Value};
use pages::Stop;
use sst::Direction;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// Rows of a key range in order, as of one version: a double-ended iterator over `Result<(Key, V)>`.
///
/// `V` is [`Value`] in a range of a [`Table`](crate::Table). In a range of a [`Selection`](crate::Selection) it is
/// [`Parts`](crate::Parts), and the range is called [`PartRange`](crate::rows::PartRange). After an error the range
/// has failed: every further call returns this error. [`Table::range`](crate::Reader::range) describes what a range
/// holds on to.
#[must_use = "a range reads nothing until it is iterated"]
pub struct Range<V = Value> {
    rows: RangeRows,
    content: PhantomData<fn() -> V>,
}

impl<V: Content> Range<V> {
    pub(crate) fn new(rows: RangeRows) -> Self {
        Self { rows, content: PhantomData }
    }

    /// A range whose calls all fail with `error`.
    pub(crate) fn failed(self, error: Error) -> Self {
        Self::new(self.rows.failed(error))
    }

    pub(super) fn into_rows(self) -> RangeRows {
        self.rows
    }

    /// Passes the next row to `take` and returns the result. It blocks for pages.
    #[inline]
    pub(crate) fn next_with<T>(
        &mut self,
        direction: Direction,
        mut take: impl FnMut(RowRef<'_>) -> Result<T, Stop>,
    ) -> Option<Result<T>> {
        // Calls `take` here, because passing the result up through further functions would copy it each time.
        if self.rows.reach_followed(direction)
            && let Ok(row) = take(self.rows.followed())
        {
            self.rows.give_followed();
            return Some(Ok(row));
        }
        self.rows.wait(direction, take).transpose()
    }

    /// Limits the range to `rows` rows, counted from both ends together. A limited range knows how far it will be
    /// read: as soon as one page is missing, all missing pages are read from disk together, one index level per
    /// round.
    pub fn limit(self, rows: u64) -> Self {
        Self::new(self.rows.limit(rows))
    }

    /// Splits the rest of the range into at most `parts` ranges with about the same number of stored bytes, in key
    /// order. Each row is in exactly one of them. They see the same version as this range, and each can be read by a
    /// thread of its own. There are fewer ranges if this range has too few pages, and only one if it has a limit.
    /// Splitting reads only index nodes.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.insert("banana", "yellow")?;
    /// let parts = fruit.range(..).split(4)?;
    /// assert_eq!(parts.into_iter().map(Iterator::count).sum::<usize>(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Page`] if a node cannot be read. If the range has failed, its first error.
    pub fn split(self, parts: usize) -> Result<Vec<Self>> {
        Ok(self.rows.split(parts)?.into_iter().map(Self::new).collect())
    }

    /// The next row from the front, borrowed. It allocates nothing, and loads no parts that lie outside their pages.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let mut rows = fruit.iter();
    /// while let Some(row) = rows.next_row()? {
    ///     println!("{} has {} bytes", row.key().escape_ascii(), row.value_len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Page`] if a page cannot be read or is damaged; otherwise as [`Table::range`](crate::Reader::range).
    /// After an error, the range has failed.
    pub fn next_row(&mut self) -> Result<Option<RowRef<'_>>> {
        self.rows.next(Direction::Forward)
    }

    /// As [`Range::next_row`], from the back.
    ///
    /// # Errors
    ///
    /// As [`Range::next_row`].
    pub fn next_row_back(&mut self) -> Result<Option<RowRef<'_>>> {
        self.rows.next(Direction::Backward)
    }

    /// Calls `each` with the rows from the front until `each` breaks or no row is left. It is equivalent to a loop
    /// over [`Range::next_row`], but it is the fastest way to read many whole rows, because the rows of one page are
    /// handed over in an inner loop. The row at which `each` breaks counts as given: the range goes on after it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use std::ops::ControlFlow;
    ///
    /// fruit.insert("apple", "red")?;
    /// fruit.insert("banana", "yellow")?;
    /// let long = fruit.iter().for_each_row(|row| match row.value_len() {
    ///     6.. => ControlFlow::Break(row.key().to_vec()),
    ///     _ => ControlFlow::Continue(()),
    /// })?;
    /// assert_eq!(long.break_value(), Some(b"banana".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Range::next_row`].
    #[inline]
    pub fn for_each_row<B>(&mut self, each: impl FnMut(RowRef<'_>) -> ControlFlow<B>) -> Result<ControlFlow<B>> {
        self.rows.for_each(Direction::Forward, each)
    }

    /// As [`Range::for_each_row`], from the back.
    ///
    /// # Errors
    ///
    /// As [`Range::next_row`].
    #[inline]
    pub fn for_each_row_back<B>(&mut self, each: impl FnMut(RowRef<'_>) -> ControlFlow<B>) -> Result<ControlFlow<B>> {
        self.rows.for_each(Direction::Backward, each)
    }

    /// The next rows from the front: rows that lie together in a page, at most `most` and at most 1024, or a single
    /// row. `None` if no row is left. This is the fastest way to read one part of many rows, because a loop over the
    /// parts of a batch only looks up where each part lies. To read whole rows, use [`Range::for_each_row`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.insert("banana", "yellow")?;
    /// let (mut rows, mut bytes) = (fruit.iter(), 0);
    /// while let Some(batch) = rows.next_batch(1000)? {
    ///     bytes += match batch.inline_parts(0) {
    ///         Some(values) => values.map(<[u8]>::len).sum(),
    ///         None => batch.row().expect("a value outside its page comes alone").value()?.len(),
    ///     };
    /// }
    /// assert_eq!(bytes, "redyellow".len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Range::next_row`].
    pub fn next_batch(&mut self, most: usize) -> Result<Option<RowBatch<'_>>> {
        self.rows.next_batch(Direction::Forward, most)
    }

    /// As [`Range::next_batch`], from the back: the rows of a batch come in descending order of their keys.
    ///
    /// # Errors
    ///
    /// As [`Range::next_row`].
    pub fn next_batch_back(&mut self, most: usize) -> Result<Option<RowBatch<'_>>> {
        self.rows.next_batch(Direction::Backward, most)
    }

    /// The next row from the front, if all its pages are in memory. It never reads from disk and never blocks. If a
    /// page is missing, the range stays where it is.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let mut rows = fruit.iter();
    /// let row = match rows.try_next()? {
    ///     larch::rows::Tried::Ready(row) => row,
    ///     // Another thread could wait in place of this one.
    ///     larch::rows::Tried::WouldFault => rows.next().transpose()?,
    /// };
    /// assert_eq!(row.expect("there is one").0[..], *b"apple");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Range::next_row`].
    pub fn try_next(&mut self) -> Result<Tried<Option<(Key, V)>>> {
        self.rows.try_once(Direction::Forward, content::owned)
    }

    /// As [`Range::try_next`], from the back.
    ///
    /// # Errors
    ///
    /// As [`Range::next_row`].
    pub fn try_next_back(&mut self) -> Result<Tried<Option<(Key, V)>>> {
        self.rows.try_once(Direction::Backward, content::owned)
    }
}

impl<V: Content> Iterator for Range<V> {
    type Item = Result<(Key, V)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_with(Direction::Forward, content::owned)
    }
}

impl<V: Content> DoubleEndedIterator for Range<V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_with(Direction::Backward, content::owned)
    }
}

impl<V> fmt::Debug for Range<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.describe("Range", f)
    }
}
