//! A cursor over the rows of a table: it seeks, moves both ways and lends the row at which it stands. It steps to the
//! next row as a range does (`range/rows.rs`). A seek or a change of direction gives that range new bounds. This
//! module does not know how rows are found.
//!
//! ```text
//!     the start    a    b    c    d    the end        seek("bb") goes to c, seek_back("bb") to b
//!         |        |    |    |    |       |           next at d goes to the end, prev there to d
//! ```
//!
//! * The cursor is at the start, at a row, or at the end. A forward move that finds no row ends at the end, and a
//!   backward one at the start.
//! * The place changes only when a move is done: after a try that would fault, or after a dropped future, the cursor
//!   is where it was. But it no longer lends its row, because it releases the row's pages before it waits for others.
//! * Between two moves the cursor keeps what a range keeps. It keeps the merges of both directions, but only the one
//!   that found its row pins pages. It also keeps the bytes of its row, in the same way as a [`Value`] keeps its bytes.

use super::Tried;
use super::content::Content;
use super::range::RangeRows;
use super::row::RowRef;
use crate::base::bounds;
use crate::base::error::{Error, Result};
use crate::memtable::MemRow;
use crate::view::cover::comes_before;
use crate::view::found::{FoundRow, Spot};
use crate::view::value::{Parts, Value};
use pages::Stop;
use sst::Direction;
use std::fmt;
use std::ops::Bound;

/// A movable place among the rows of a table, as of one version. It moves to a key, to the next row and to the
/// previous row. The row at which it stands is lent, not copied.
///
/// `V` is [`Value`] in a cursor over a [`Table`](crate::Table). In a cursor over a [`Selection`](crate::Selection)
/// it is [`Parts`], and the cursor is called [`PartCursor`](crate::rows::PartCursor).
///
/// A cursor is at the start, at a row, or at the end, and begins at the start. Each move says whether it came to a
/// row. If not, the cursor is at the end after a move forward, and at the start after a move backward. From the end,
/// [`Cursor::prev`] goes to the last row, and [`Cursor::next`] stays there. From the start, [`Cursor::next`] goes to
/// the first row, and [`Cursor::prev`] stays there. In an empty table every move ends at the start or at the end.
///
/// The cursor shows the rows as of the moment at which it was made, or those of its snapshot, whatever is written in
/// the meantime. It holds on to the same things as a range; see [`Table::range`](crate::Reader::range). A move in the
/// same direction as the last move costs as much as one row of a range. A seek or a change of direction costs less
/// than the first row of a new range, and usually allocates nothing.
///
/// The key and the value are lent until the cursor moves. A move also loads the values or parts that lie outside
/// their pages, so reading them afterwards never blocks. To see only keys, select no column group: then no value is
/// loaded.
///
/// As with other reads, each move has three forms:
///
/// * [`Cursor::next`] waits for pages.
/// * [`Cursor::try_next`] reads nothing from disk. If a page is missing, the cursor stays where it was.
/// * [`Cursor::next_async`] is a future. If it is dropped before it is done, the cursor stays where it was.
///
/// If a try misses a page or a future is dropped, the cursor lends no row until the next move. [`Cursor::next`] and
/// [`Cursor::prev`] then start from the row at which the cursor stood.
///
/// In a [`Transaction`](crate::Transaction) a cursor also sees the writes that the transaction made before the
/// cursor. The transaction depends on all keys over which the cursor has moved. While the cursor lives, it also
/// depends on the keys that the cursor could still reach, so drop the cursor before the commit.
///
/// After an error the cursor has failed: every further move returns this error.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let fruit = db.table("fruit")?;
/// for (name, colour) in [("apple", "red"), ("banana", "yellow"), ("cherry", "black")] {
///     fruit.insert(name, colour)?;
/// }
/// let mut cursor = fruit.cursor();
/// assert!(cursor.seek("b")?);
/// assert_eq!(cursor.key(), Some(&b"banana"[..]));
/// assert_eq!(cursor.value(), Some(&b"yellow"[..]));
/// assert!(cursor.prev()?);
/// assert_eq!(cursor.key(), Some(&b"apple"[..]));
///
/// // There is no row before the first one.
/// assert!(!cursor.prev()?);
/// assert!(cursor.key().is_none());
/// while cursor.next()? {
///     let (key, value) = cursor.key_value().expect("it is at a row");
///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a cursor reads nothing until it is moved"]
pub struct Cursor<V = Value> {
    rows: RangeRows,
    /// The bounds of the keys among which the cursor moves.
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    place: Place,
    /// The key of the place, if the place is [`Place::Key`].
    key: Vec<u8>,
    /// The direction in which `rows` continues from the place. `None` if `rows` got new bounds and has not reached
    /// its first row in them.
    course: Option<Direction>,
    row: Standing<V>,
}

/// Where a cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first row of the bounds.
    Start,
    /// At the row that `rows` gave last.
    Given,
    /// At the row whose key is in the cursor's field `key`.
    Key,
    /// After the last row of the bounds.
    End,
}

/// The row at which a cursor stands.
enum Standing<V> {
    /// The cursor lends no row: it is at the start or the end, or its last move did not finish.
    Nowhere,
    /// The row is the last one that the range followed, in its page or in a copy of its bytes.
    Followed,
    /// A row of a memtable.
    Memory(MemRow),
    /// The loaded content of the row. Its key is the last key of `rows`.
    Loaded(V),
}

/// Where a move goes.
#[derive(Clone, Copy)]
enum To<'k> {
    /// To the next row from the place.
    Step,
    /// To the first row at or after this key, in the direction of the move.
    Key(&'k [u8]),
    /// To the first row in the direction of the move.
    Edge,
}

impl<V: Content> Cursor<V> {
    /// A cursor over `rows`, which must span the bounds.
    pub(crate) fn new(rows: RangeRows, (low, high): bounds::Owned) -> Self {
        let (place, course, row) = (Place::Start, Some(Direction::Forward), Standing::Nowhere);
        Self { rows, low, high, place, key: Vec::new(), course, row }
    }

    /// A cursor whose moves all fail with `error`.
    pub(crate) fn failed(self, error: Error) -> Self {
        Self { rows: self.rows.failed(error), ..self }
    }

    /// The key of the row at which the cursor stands.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        match &self.row {
            Standing::Nowhere => None,
            Standing::Followed => Some(self.rows.followed_key()),
            Standing::Memory(row) => Some(row.key()),
            Standing::Loaded(_) => Some(self.rows.last_key(self.course.expect("a row was given on the way"))),
        }
    }

    /// Part `i` of the row at which the cursor stands.
    #[inline]
    fn part_of_row(&self, i: usize) -> Option<&[u8]> {
        match &self.row {
            Standing::Nowhere => None,
            Standing::Followed => Some(self.part_of_followed(i, self.rows.followed_main().1)),
            Standing::Memory(row) => Some(&row.value()[self.rows.wanted().place(i, row.value())]),
            Standing::Loaded(content) => Some(content.part(i)),
        }
    }

    /// Part `i` of the followed row, whose part in the main group is at `spot`.
    #[inline]
    fn part_of_followed<'r>(&'r self, i: usize, spot: Spot<'r>) -> &'r [u8] {
        let wanted = self.rows.wanted();
        match spot {
            Spot::InPage(page, place) if wanted.group(i) == 0 => &page[place],
            Spot::InPage(..) => self.part_beside_main(i),
            Spot::Copied(value) => &value[wanted.place(i, value)],
            Spot::Found(_) => unreachable!("a row that is followed needed no search"),
        }
    }

    #[inline(never)]
    fn part_beside_main(&self, i: usize) -> &[u8] {
        let wanted = self.rows.wanted();
        let part = wanted.beside(wanted.group(i), self.rows.followed().beside_main).inline();
        part.expect("rows with parts outside their pages are not followed")
    }

    /// Goes to the first row whose key is `key` or after it.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.go(Direction::Forward, To::Key(key.as_ref()))
    }

    /// As [`Cursor::seek`], but only with what is in memory.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub fn try_seek(&mut self, key: impl AsRef<[u8]>) -> Result<Tried<bool>> {
        self.try_go(Direction::Forward, To::Key(key.as_ref()))
    }

    /// As [`Cursor::seek`], as a future. It can be dropped at any time.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub async fn seek_async(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.go_async(Direction::Forward, To::Key(key.as_ref())).await
    }

    /// Goes to the last row whose key is `key` or before it, as `SeekForPrev` of RocksDB does.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.insert("cherry", "black")?;
    /// let mut cursor = fruit.cursor();
    /// assert!(cursor.seek_back("banana")?);
    /// assert_eq!(cursor.key(), Some(&b"apple"[..]));
    /// assert!(!cursor.seek_back("a")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub fn seek_back(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.go(Direction::Backward, To::Key(key.as_ref()))
    }

    /// As [`Cursor::seek_back`], but only with what is in memory.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub fn try_seek_back(&mut self, key: impl AsRef<[u8]>) -> Result<Tried<bool>> {
        self.try_go(Direction::Backward, To::Key(key.as_ref()))
    }

    /// As [`Cursor::seek_back`], as a future. It can be dropped at any time.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub async fn seek_back_async(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.go_async(Direction::Backward, To::Key(key.as_ref())).await
    }

    /// Goes to the first row.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub fn first(&mut self) -> Result<bool> {
        self.go(Direction::Forward, To::Edge)
    }

    /// As [`Cursor::first`], but only with what is in memory.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub fn try_first(&mut self) -> Result<Tried<bool>> {
        self.try_go(Direction::Forward, To::Edge)
    }

    /// As [`Cursor::first`], as a future. It can be dropped at any time.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub async fn first_async(&mut self) -> Result<bool> {
        self.go_async(Direction::Forward, To::Edge).await
    }

    /// Goes to the last row.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub fn last(&mut self) -> Result<bool> {
        self.go(Direction::Backward, To::Edge)
    }

    /// As [`Cursor::last`], but only with what is in memory.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub fn try_last(&mut self) -> Result<Tried<bool>> {
        self.try_go(Direction::Backward, To::Edge)
    }

    /// As [`Cursor::last`], as a future. It can be dropped at any time.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub async fn last_async(&mut self) -> Result<bool> {
        self.go_async(Direction::Backward, To::Edge).await
    }

    /// Goes to the next row; from the start, to the first one.
    ///
    /// # Errors
    ///
    /// The errors of [`Table::get`](crate::Reader::get), and [`Error::ForeignTable`](crate::Error::ForeignTable) if
    /// the cursor was made for a table of another database. After an error, the cursor has failed.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not lend its rows")]
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        if self.follow(Direction::Forward) {
            return Ok(true);
        }
        self.go(Direction::Forward, To::Step)
    }

    /// As [`Cursor::next`], but only with what is in memory.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let mut cursor = fruit.cursor();
    /// let is_at_row = match cursor.try_next()? {
    ///     larch::rows::Tried::Ready(is_at_row) => is_at_row,
    ///     // Another thread could wait in place of this one.
    ///     larch::rows::Tried::WouldFault => cursor.next()?,
    /// };
    /// assert!(is_at_row);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    #[inline]
    pub fn try_next(&mut self) -> Result<Tried<bool>> {
        if self.follow(Direction::Forward) {
            return Ok(Tried::Ready(true));
        }
        self.try_go(Direction::Forward, To::Step)
    }

    /// As [`Cursor::next`], as a future. It can be dropped at any time.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { smol::block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.insert("banana", "yellow")?;
    /// let mut cursor = fruit.cursor();
    /// while cursor.next_async().await? {
    ///     println!("{}", cursor.key().expect("it is at a row").escape_ascii());
    /// }
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub async fn next_async(&mut self) -> Result<bool> {
        if self.follow(Direction::Forward) {
            return Ok(true);
        }
        self.go_async(Direction::Forward, To::Step).await
    }

    /// Goes to the previous row; from the end, to the last one.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        if self.follow(Direction::Backward) {
            return Ok(true);
        }
        self.go(Direction::Backward, To::Step)
    }

    /// As [`Cursor::prev`], but only with what is in memory.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    #[inline]
    pub fn try_prev(&mut self) -> Result<Tried<bool>> {
        if self.follow(Direction::Backward) {
            return Ok(Tried::Ready(true));
        }
        self.try_go(Direction::Backward, To::Step)
    }

    /// As [`Cursor::prev`], as a future. It can be dropped at any time.
    ///
    /// # Errors
    ///
    /// As [`Cursor::next`].
    pub async fn prev_async(&mut self) -> Result<bool> {
        if self.follow(Direction::Backward) {
            return Ok(true);
        }
        self.go_async(Direction::Backward, To::Step).await
    }

    /// Steps to the next row in `direction` without a search, if it can.
    #[inline]
    fn follow(&mut self, direction: Direction) -> bool {
        let is_at_row = self.rows.step_followed(direction);
        if is_at_row && !matches!(self.row, Standing::Followed) {
            self.row = Standing::Followed;
        }
        is_at_row
    }

    /// Makes a move, and blocks for pages.
    fn go(&mut self, direction: Direction, to: To<'_>) -> Result<bool> {
        if !self.depart(direction, to)? {
            return Ok(false);
        }
        let Self { rows, row, .. } = self;
        let found = rows.wait(direction, |found| stand(row, found))?;
        Ok(self.arrive(direction, found.is_some()))
    }

    /// Makes a move with the pages that are in memory. If a page is missing, the place stays as it was.
    fn try_go(&mut self, direction: Direction, to: To<'_>) -> Result<Tried<bool>> {
        self.note_place();
        if !self.depart(direction, to)? {
            return Ok(Tried::Ready(false));
        }
        let Self { rows, row, .. } = self;
        let found = rows.try_once(direction, |found| stand(row, found))?;
        Ok(found.map(|found| self.arrive(direction, found.is_some())))
    }

    /// Makes a move, as a future. If the future is dropped, the place stays as it was.
    async fn go_async(&mut self, direction: Direction, to: To<'_>) -> Result<bool> {
        self.note_place();
        if !self.depart(direction, to)? {
            return Ok(false);
        }
        let Self { rows, row, .. } = self;
        let found = rows.wait_async(direction, |found| stand(row, found)).await?;
        Ok(self.arrive(direction, found.is_some()))
    }

    /// Copies the key of the current row, before `rows` gets new bounds or drops the row.
    fn note_place(&mut self) {
        if self.place == Place::Given {
            let course = self.course.expect("a row was given on the way");
            self.rows.read_last_key(course, &mut self.key);
            self.place = Place::Key;
        }
    }

    /// Begins a move: releases the current row and, unless `rows` can simply go on, gives it the bounds at which the
    /// move begins. Returns false if the cursor already stands at the end to which a step would go.
    fn depart(&mut self, direction: Direction, to: To<'_>) -> Result<bool> {
        self.row = Standing::Nowhere;
        let is_step = matches!(to, To::Step);
        if is_step && self.place == edge(direction) {
            return self.rows.check().map(|()| false);
        }
        if is_step && self.course == Some(direction) {
            return Ok(true);
        }
        if is_step {
            self.note_place();
        } else if self.place == Place::Given {
            // A move that waits leaves its place for good: if it fails, the cursor has failed. The other moves have
            // noted the place.
            self.place = Place::Start;
        }
        self.course = None;
        let (low, high) = (self.low.as_ref().map(Vec::as_slice), self.high.as_ref().map(Vec::as_slice));
        let (edge, far) = direction.near_far((low, high));
        let near = match to {
            To::Step if self.place == Place::Key => Bound::Excluded(self.key.as_slice()),
            To::Step | To::Edge => edge,
            // A key outside the cursor's bounds is replaced by the bound.
            To::Key(key) if comes_before(key, &edge, opposite(direction)) => Bound::Included(key),
            To::Key(_) => edge,
        };
        let (low, high) = direction.near_far((near, far));
        self.rows.restart(low, high);
        Ok(true)
    }

    /// Ends a move. Returns `is_at_row`: whether the cursor came to a row.
    fn arrive(&mut self, direction: Direction, is_at_row: bool) -> bool {
        self.course = Some(direction);
        self.place = if is_at_row { Place::Given } else { edge(direction) };
        is_at_row
    }
}

impl Cursor {
    /// The value of the row at which the cursor stands.
    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        self.part_of_row(0)
    }

    /// The key and the value of the row at which the cursor stands.
    #[inline]
    pub fn key_value(&self) -> Option<(&[u8], &[u8])> {
        if matches!(self.row, Standing::Followed) {
            let (key, spot) = self.rows.followed_main();
            return Some((key, self.part_of_followed(0, spot)));
        }
        self.key().zip(self.value())
    }
}

impl Cursor<Parts> {
    /// The number of parts of each row, which is the number of groups in the selection.
    pub fn part_count(&self) -> usize {
        self.rows.wanted().len()
    }

    /// Part `i` of the row at which the cursor stands. Parts are counted from 0 in the order of the selection.
    ///
    /// # Panics
    ///
    /// If the selection has fewer groups.
    #[inline]
    pub fn part(&self, i: usize) -> Option<&[u8]> {
        assert!(i < self.part_count(), "part {i} of a row of {} parts", self.part_count());
        self.part_of_row(i)
    }
}

/// The place where a walk in `direction` ends.
fn edge(direction: Direction) -> Place {
    match direction {
        Direction::Forward => Place::End,
        Direction::Backward => Place::Start,
    }
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Forward => Direction::Backward,
        Direction::Backward => Direction::Forward,
    }
}

/// Stores a found row in `standing`, with all wanted parts. A step.
fn stand<V: Content>(standing: &mut Standing<V>, row: RowRef<'_>) -> Result<(), Stop> {
    *standing = match row.spot {
        Spot::InPage(..) | Spot::Copied(_) => Standing::Followed,
        Spot::Found(FoundRow::Memory(found)) if found.may_be_kept() => Standing::Memory(found),
        Spot::Found(_) => Standing::Loaded(V::load(&row)?),
    };
    Ok(())
}

impl<V> fmt::Debug for Cursor<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.describe("Cursor", f)
    }
}

const _: () = {
    const fn sent<T: Send>() {}
    sent::<Cursor>();
    sent::<Cursor<Parts>>();
};
