//! Moves of a cursor over a table, each mirrored by a move among the rows of a model. Others decide when moves are
//! made.

use super::reader::{AnyCursor, Reader};
use crate::model::KeyRange;
use larch::rows::{Content, Tried};
use larch::{Cursor, Result};
use rand::{Rng, RngExt};

/// A row that a reader should see: its key and its parts.
type SeenRow = (Vec<u8>, Vec<Vec<u8>>);

/// Where a cursor goes.
#[derive(Clone, Debug)]
pub enum Move {
    /// To the first row at or after a key.
    Seek(Vec<u8>),
    /// To the last row at or before a key.
    SeekBack(Vec<u8>),
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// To the next row.
    Next,
    /// To the row before.
    Prev,
}

impl Move {
    /// Draws a move, mostly to a neighbouring row.
    pub fn any(rng: &mut impl Rng, key: Vec<u8>) -> Self {
        match rng.random_range(0..12) {
            0 | 1 => Self::Seek(key),
            2 => Self::SeekBack(key),
            3 => Self::First,
            4 => Self::Last,
            5..9 => Self::Next,
            _ => Self::Prev,
        }
    }

    fn go<V: Content>(&self, cursor: &mut Cursor<V>) -> Result<bool> {
        match self {
            Self::Seek(key) => cursor.seek(key),
            Self::SeekBack(key) => cursor.seek_back(key),
            Self::First => cursor.first(),
            Self::Last => cursor.last(),
            Self::Next => cursor.next(),
            Self::Prev => cursor.prev(),
        }
    }

    fn try_go<V: Content>(&self, cursor: &mut Cursor<V>) -> Result<Tried<bool>> {
        match self {
            Self::Seek(key) => cursor.try_seek(key),
            Self::SeekBack(key) => cursor.try_seek_back(key),
            Self::First => cursor.try_first(),
            Self::Last => cursor.try_last(),
            Self::Next => cursor.try_next(),
            Self::Prev => cursor.try_prev(),
        }
    }

    async fn go_async<V: Content>(&self, cursor: &mut Cursor<V>) -> Result<bool> {
        match self {
            Self::Seek(key) => cursor.seek_async(key).await,
            Self::SeekBack(key) => cursor.seek_back_async(key).await,
            Self::First => cursor.first_async().await,
            Self::Last => cursor.last_async().await,
            Self::Next => cursor.next_async().await,
            Self::Prev => cursor.prev_async().await,
        }
    }

    /// The place in `rows` to which this move leads from `place`. Place 0 is before the first row, place 1 is at the
    /// first row, and so on.
    fn in_rows(&self, rows: &[SeenRow], place: usize) -> usize {
        match self {
            Self::Seek(key) => 1 + rows.partition_point(|(row, _)| row < key),
            Self::SeekBack(key) => rows.partition_point(|(row, _)| row <= key),
            Self::First => 1,
            Self::Last => rows.len(),
            Self::Next => (place + 1).min(rows.len() + 1),
            Self::Prev => place.saturating_sub(1),
        }
    }
}

/// A cursor, and the rows among which it should move.
#[derive(Debug)]
pub struct Moved {
    /// For messages.
    what: String,
    cursor: AnyCursor,
    rows: Vec<SeenRow>,
    place: usize,
}

impl Moved {
    /// A cursor of `reader` over `range` of the table `name`, which has the rows `expected` in this range.
    pub fn new<'m>(
        reader: &Reader,
        name: &str,
        range: KeyRange,
        expected: impl Iterator<Item = (&'m [u8], &'m [u8])>,
    ) -> Self {
        let what = format!("a cursor over {range:?} of {name:?} read by {reader:?}");
        let parts = |value| reader.of(value).into_iter().map(<[u8]>::to_vec).collect();
        let rows = expected.map(|(key, value)| (key.to_vec(), parts(value))).collect();
        Self { what, cursor: reader.cursor(range), rows, place: 0 }
    }

    /// Makes a move, and compares the row that the cursor shows then.
    pub fn go(&mut self, to: &Move) -> Result<()> {
        let is_at_row = match &mut self.cursor {
            AnyCursor::Whole(cursor) => to.go(cursor)?,
            AnyCursor::Parts(cursor) => to.go(cursor)?,
        };
        self.compare(to, is_at_row);
        Ok(())
    }

    /// Tries the move with the pages in memory. If they do not suffice, moves one row back instead.
    pub fn try_go(&mut self, to: &Move) -> Result<()> {
        let tried = match &mut self.cursor {
            AnyCursor::Whole(cursor) => to.try_go(cursor)?,
            AnyCursor::Parts(cursor) => to.try_go(cursor)?,
        };
        match tried {
            Tried::Ready(is_at_row) => self.compare(to, is_at_row),
            // The cursor has not moved.
            Tried::WouldFault => self.go(&Move::Prev)?,
        }
        Ok(())
    }

    /// The same as [`Moved::go`], but as a future, so no thread waits.
    pub async fn go_async(&mut self, to: &Move) -> Result<()> {
        let is_at_row = match &mut self.cursor {
            AnyCursor::Whole(cursor) => to.go_async(cursor).await?,
            AnyCursor::Parts(cursor) => to.go_async(cursor).await?,
        };
        self.compare(to, is_at_row);
        Ok(())
    }

    fn compare(&mut self, to: &Move, is_at_row: bool) {
        self.place = to.in_rows(&self.rows, self.place);
        let expected = self.place.checked_sub(1).and_then(|at| self.rows.get(at));
        let lent: Option<(&[u8], Vec<&[u8]>)> = match &self.cursor {
            AnyCursor::Whole(cursor) => cursor.key_value().map(|(key, value)| (key, vec![value])),
            AnyCursor::Parts(cursor) => {
                let parts = (0..cursor.part_count()).filter_map(|i| cursor.part(i));
                cursor.key().map(|key| (key, parts.collect()))
            }
        };
        let is_same = match (&lent, expected) {
            (Some((key, parts)), Some((expected, row))) => *key == expected.as_slice() && parts == row,
            (lent, expected) => lent.is_none() && expected.is_none(),
        };
        assert!(is_same && is_at_row == lent.is_some(), "{}: {to:?} came to {lent:?}, not {expected:?}", self.what);
    }
}
