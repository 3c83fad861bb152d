//! Reads by an index: its entries, and rows in the order of the index. This module does not know who reads, or where
//! entries and rows are stored.
//!
//! The entries are read as a range of the table of entries, and their rows are fetched in batches: a *round*
//! gathers the next entries, and then looks up all their rows at the same time. The first rounds are small, because
//! the reader may need only a few rows. If the gathered keys or the fetched rows take much memory, a round ends
//! early, and the next one goes on with the remaining entries.
//!
//! Entries and rows are read at the same version. In a transaction, both include the transaction's own writes.

use super::entry::{self, EntryList, IndexEntry};
use crate::base::bounds;
use crate::base::error::{Error, Result};
use crate::base::table::TableInfo;
use crate::core::handle::TableHandle;
use crate::read::{Content, LaterReader, Range, Reader, RowRef, Scan};
use crate::view::value::{Key, Value};
use os::sync::Arc;
use pages::Stop;
use sst::Direction;
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;

/// The first round fetches `FIRST_ROUND` rows, and each later one up to twice as many as the one before, but at most
/// `MOST_IN_ROUND`.
const FIRST_ROUND: usize = 16;
pub const MOST_IN_ROUND: usize = 128;

/// A round gathers no more entries once their keys take this many bytes.
const MOST_KEY_BYTES: usize = 512 << 10;

/// Decodes rows of the table of entries. The table and the index are there for error messages.
#[derive(Clone, Debug)]
struct EntryTable {
    table: Arc<TableInfo>,
    index: Arc<TableInfo>,
}

impl EntryTable {
    fn new(table: &TableHandle, index: &TableHandle) -> Self {
        Self { table: table.identity.clone(), index: index.identity.clone() }
    }

    /// The next entry.
    fn next(&self, range: &mut Range, direction: Direction) -> Option<Result<IndexEntry>> {
        range.next_with(direction, entry_of).map(|entry| self.checked(entry?))
    }

    /// As [`EntryTable::next`], but returns a future.
    async fn next_async(&self, scan: &mut Scan, direction: Direction) -> Option<Result<IndexEntry>> {
        scan.next_with(direction, entry_of).await.map(|entry| self.checked(entry?))
    }

    fn checked(&self, entry: Result<IndexEntry, Key>) -> Result<IndexEntry> {
        entry.map_err(|key| self.bad_entry(key, "it is no entry"))
    }

    fn bad_entry(&self, entry: Key, why: &'static str) -> Error {
        let index = self.index.index.as_ref().map_or("?", |index| &index.name).into();
        Error::BadEntry { table: self.table.name.as_str().into(), index, entry: entry.into(), why }
    }
}

/// Decodes a row of the table of entries. If it is not an entry, the inner error is the key of the row. The value
/// of an entry is empty, so it is always in the same page as the key.
fn entry_of(row: RowRef<'_>) -> Result<Result<IndexEntry, Key>, Stop> {
    let entry = row.inline_part(0).and_then(|value| IndexEntry::of(row.key(), value));
    Ok(entry.ok_or_else(|| row.key().into()))
}

/// The entries of an index in order, at one version: a double-ended iterator over `Result<IndexEntry>`. It does not
/// read the rows of the table.
#[must_use = "it reads nothing until it is iterated"]
pub struct Entries {
    range: Range,
    entry_table: EntryTable,
}

impl Entries {
    /// The entries of `index` whose index keys are within `keys`, at the version of `rows`, and with the same own
    /// writes of a transaction.
    pub(crate) fn new<V>(rows: &Reader<'_, V>, index: &TableHandle, keys: bounds::Owned) -> Self {
        let entry_table = EntryTable::new(rows.handle(), index);
        Self { range: rows.of(index).range_within(entry::bounds_of(&keys)), entry_table }
    }

    /// Makes every call return `error`.
    pub(crate) fn failed(self, error: Error) -> Self {
        Self { range: self.range.failed(error), ..self }
    }
}

impl Iterator for Entries {
    type Item = Result<IndexEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.entry_table.next(&mut self.range, Direction::Forward)
    }
}

impl DoubleEndedIterator for Entries {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.entry_table.next(&mut self.range, Direction::Backward)
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entries({:?})", self.range)
    }
}

/// One of the two ends of a read in the order of an index.
struct End<V> {
    /// The next entries from this end: first those whose rows were fetched, then the gathered ones, whose rows were
    /// not fetched yet.
    entries: VecDeque<IndexEntry>,
    /// The fetched rows of the first entries. `None` if an entry has no row.
    rows: VecDeque<Option<V>>,
    /// The bytes of the keys of the gathered entries.
    gathered_bytes: usize,
}

impl<V> End<V> {
    /// The entries whose rows were not fetched yet.
    fn gathered(&self) -> impl ExactSizeIterator<Item = &IndexEntry> {
        self.entries.range(self.rows.len()..)
    }

    fn count_gathered(&mut self) {
        self.gathered_bytes = self.gathered().map(|entry| entry.index_key().len() + entry.row_key().len()).sum();
    }

    /// Leaves out the entries that have no row. A row may expire after its entry was read.
    fn leave_out_missing(&mut self) {
        if self.rows.iter().all(Option::is_some) {
            return;
        }
        let gathered = self.entries.split_off(self.rows.len());
        let pairs = std::mem::take(&mut self.entries).into_iter().zip(std::mem::take(&mut self.rows));
        (self.entries, self.rows) = pairs.filter(|(_, row)| row.is_some()).unzip();
        self.entries.extend(gathered);
    }

    /// Puts the entries of `list` from number `first` on back at the front of `entries`, as gathered entries. The
    /// caller has given all fetched rows to the reader.
    fn take_back(&mut self, list: &EntryList, first: usize) {
        let entries: Vec<IndexEntry> = list.entries_from(first).collect();
        entries.into_iter().rev().for_each(|entry| self.entries.push_front(entry));
        self.count_gathered();
    }
}

/// The state of a read in the order of an index, except for the range that the entries come from.
struct Rounds<V> {
    rows: LaterReader,
    entry_table: EntryTable,
    front: End<V>,
    back: End<V>,
    /// The number of rows that the next round fetches.
    size: usize,
    /// How many more rows the read may return.
    left: u64,
    failed: Option<Error>,
}

impl<V: Content> Rounds<V> {
    fn new(rows: LaterReader, entry_table: EntryTable) -> Self {
        let end = || End { entries: VecDeque::new(), rows: VecDeque::new(), gathered_bytes: 0 };
        Self { rows, entry_table, front: end(), back: end(), size: FIRST_ROUND, left: u64::MAX, failed: None }
    }

    fn end(&mut self, direction: Direction) -> &mut End<V> {
        match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        }
    }

    /// Whether the next round has room for one more entry from this end.
    fn has_room(&mut self, direction: Direction) -> bool {
        let most = self.left.min(self.size as u64);
        let end = self.end(direction);
        (end.gathered().len() as u64) < most && end.gathered_bytes < MOST_KEY_BYTES
    }

    /// Adds the next entry from this end to the gathered entries.
    fn gather(&mut self, direction: Direction, entry: Result<IndexEntry>) -> Result<()> {
        let (end, entry) = (self.end(direction), entry?);
        end.gathered_bytes += entry.index_key().len() + entry.row_key().len();
        end.entries.push_back(entry);
        Ok(())
    }

    /// The end for which the next round fetches rows: `direction` if it has gathered entries, otherwise the opposite
    /// end if it has any.
    fn round(&mut self, direction: Direction) -> Option<Direction> {
        [direction, direction.reversed()].into_iter().find(|end| self.end(*end).gathered().len() > 0)
    }

    /// The keys of the rows that the next round fetches.
    fn keys(&self, from: Direction) -> Vec<&[u8]> {
        let end = match from {
            Direction::Forward => &self.front,
            Direction::Backward => &self.back,
        };
        end.gathered().take(self.size).map(IndexEntry::row_key).collect()
    }

    /// Takes the rows that a round of `asked` entries from the end `from` has fetched.
    fn fetched(&mut self, from: Direction, asked: usize, rows: Vec<Option<V>>) {
        self.note_round(asked, rows.len());
        let may_expire = self.rows.may_expire();
        let end = self.end(from);
        match end.rows.is_empty() {
            true => end.rows = rows.into(),
            false => end.rows.extend(rows),
        }
        if may_expire {
            end.leave_out_missing();
        }
        end.count_gathered();
    }

    /// Sets the size of the next round after a round that has asked for `asked` rows and got `got`. A round that got
    /// fewer, because they take much memory, is followed by one of that size. Otherwise the size doubles, up to
    /// [`MOST_IN_ROUND`].
    fn note_round(&mut self, asked: usize, got: usize) {
        self.size = if got < asked { got.max(1) } else { (self.size * 2).min(MOST_IN_ROUND) };
    }

    /// What the read returns from now on, if it is over because of an error or of its limit. `None` if it is not
    /// over.
    fn over(&self) -> Option<Option<Result<(IndexEntry, V)>>> {
        match &self.failed {
            Some(error) => Some(Some(Err(error.clone()))),
            None => (self.left == 0).then_some(None),
        }
    }

    /// The next row from this end, if it was fetched.
    fn ready(&mut self, direction: Direction) -> Option<Result<(IndexEntry, V)>> {
        let end = self.end(direction);
        let row = end.rows.pop_front()?;
        let entry = end.entries.pop_front().expect("each row has an entry");
        Some(self.give(entry, row))
    }

    /// The next row from the end `direction`, when the only rows left were fetched for the opposite end, and
    /// nothing is left to gather or fetch.
    fn rest(&mut self, direction: Direction) -> Option<Result<(IndexEntry, V)>> {
        let end = self.end(direction.reversed());
        let row = end.rows.pop_back()?;
        let entry = end.entries.pop_back().expect("each row has an entry");
        Some(self.give(entry, row))
    }

    /// Counts a row that is returned to the reader.
    #[inline]
    fn give(&mut self, entry: IndexEntry, row: Option<V>) -> Result<(IndexEntry, V)> {
        match row {
            Some(row) => {
                self.left -= 1;
                Ok((entry, row))
            }
            None => Err(self.no_row(&entry)),
        }
    }

    #[cold]
    fn no_row(&mut self, entry: &IndexEntry) -> Error {
        let key = entry::key(entry.index_key(), entry.row_key());
        self.failed.insert(self.entry_table.bad_entry(key.into(), "its row is not there")).clone()
    }

    fn fail(&mut self, error: Error) -> Option<Result<(IndexEntry, V)>> {
        self.failed = Some(error.clone());
        Some(Err(error))
    }
}

/// Rows in the order of an index, at one version: a double-ended iterator over `Result<(IndexEntry, V)>`, with `V` as
/// in [`Range`]. After an error, every call returns this error.
#[must_use = "it reads nothing until it is iterated"]
pub struct RangeBy<V = Value> {
    entries: Range,
    rounds: Rounds<V>,
}

impl<V: Content> RangeBy<V> {
    /// The rows that `rows` reads and whose keys in `index` are within `keys`.
    pub(crate) fn new(rows: &Reader<'_, V>, index: &TableHandle, keys: bounds::Owned) -> Self {
        let pin = rows.pin();
        let entry_table = EntryTable::new(rows.handle(), index);
        let entries = rows.pinned(&pin).of(index).range_within(entry::bounds_of(&keys));
        Self { entries, rounds: Rounds::new(rows.later(&pin), entry_table) }
    }

    /// Makes every call return `error`.
    pub(crate) fn failed(mut self, error: Error) -> Self {
        self.rounds.failed = Some(error);
        self
    }

    /// Returns and fetches at most `rows` rows, from both ends together.
    pub fn limit(mut self, rows: u64) -> Self {
        self.rounds.left = self.rounds.left.min(rows);
        self
    }

    /// Gathers the entries of the next round from the front into `list`, and fetches their rows. Returns the rows, in
    /// the order of the entries, and whether more entries may follow.
    fn fetch_list(&mut self, list: &mut EntryList) -> Result<(Vec<Option<V>>, bool)> {
        let has_more = self.gather_list(list)?;
        let keys: Vec<&[u8]> = list.iter().map(|(_, row_key)| row_key).collect();
        Ok((self.rounds.rows.multi_get_some(&keys)?, has_more))
    }

    /// Gathers the entries of the next round from the front into `list`: first those that were gathered before, then
    /// new ones until the round is full. Returns whether more entries may follow.
    fn gather_list(&mut self, list: &mut EntryList) -> Result<bool> {
        list.clear();
        let most = self.rounds.left.min(self.rounds.size as u64) as usize;
        let front = &mut self.rounds.front;
        let first = front.rows.len();
        let end = front.entries.len().min(first + most);
        front.entries.drain(first..end).for_each(|entry| list.push(&entry));
        front.count_gathered();
        let is_full = |list: &EntryList| list.len() >= most || list.key_bytes() >= MOST_KEY_BYTES;
        if is_full(list) {
            return Ok(true);
        }
        let gathered = self.entries.for_each_row(|row| {
            match row.inline_part(0).and_then(|value| list.push_row(row.key(), value)) {
                None => ControlFlow::Break(Err(Key::from(row.key()))),
                Some(()) if is_full(list) => ControlFlow::Break(Ok(())),
                Some(()) => ControlFlow::Continue(()),
            }
        })?;
        match gathered {
            ControlFlow::Break(Err(key)) => Err(self.rounds.entry_table.bad_entry(key, "it is no entry")),
            ControlFlow::Break(Ok(())) => Ok(true),
            ControlFlow::Continue(()) => Ok(false),
        }
    }

    /// Reads all rows, each with the key of the row.
    pub(crate) async fn all_async(self) -> Result<Vec<(Key, V)>> {
        let (mut rows, mut all) = (ScanBy::from(self), Vec::new());
        while let Some(row) = rows.next().await {
            let (entry, content) = row?;
            all.push((entry.row_key().into(), content));
        }
        Ok(all)
    }

    fn take(&mut self, direction: Direction) -> Option<Result<(IndexEntry, V)>> {
        if let Some(end) = self.rounds.over() {
            return end;
        }
        loop {
            if let Some(row) = self.rounds.ready(direction) {
                return Some(row);
            }
            while self.rounds.has_room(direction) {
                let next = self.rounds.entry_table.next(&mut self.entries, direction);
                let Some(entry) = next else { break };
                if let Err(error) = self.rounds.gather(direction, entry) {
                    return self.rounds.fail(error);
                }
            }
            let Some(from) = self.rounds.round(direction) else { return self.rounds.rest(direction) };
            let keys = self.rounds.keys(from);
            match self.rounds.rows.multi_get_some(&keys) {
                Ok(rows) => self.rounds.fetched(from, keys.len(), rows),
                Err(error) => return self.rounds.fail(error),
            }
            if from != direction
                && let Some(row) = self.rounds.rest(direction)
            {
                return Some(row);
            }
        }
    }
}

impl RangeBy {
    /// Calls `each` with each row, from the front, until it returns a break or no row is left. This is the fastest
    /// way to read many rows by an index, because the rows are borrowed and need no allocations. The next read goes
    /// on after the last row that `each` got.
    ///
    /// ```
    /// # use larch::Database;
    /// # use larch::index::{IndexKeys, IndexOptions};
    /// # struct FirstByte;
    /// # impl IndexKeys for FirstByte {
    /// #     fn groups(&self) -> &[usize] { &[0] }
    /// #     fn index_keys<'r>(
    /// #         &self,
    /// #         _: &'r [u8],
    /// #         part: &dyn Fn(usize) -> Option<&'r [u8]>,
    /// #         emit: &mut dyn FnMut(&[u8]),
    /// #     ) -> Result<(), String> {
    /// #         part(0).and_then(|value| value.get(..1)).map(emit);
    /// #         Ok(())
    /// #     }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = Database::builder(&directory).extractors(|_| Ok(Box::new(FirstByte))).open()?;
    /// # let fruit = db.table("fruit")?;
    /// # let by_letter = fruit.create_index("by_letter", "first byte", &IndexOptions::default(), |_| {})?;
    /// use std::ops::ControlFlow;
    ///
    /// fruit.insert("1", "pear")?;
    /// fruit.insert("2", "apple")?;
    /// let mut values = Vec::new();
    /// let end = by_letter.range_by(..).for_each_row(|row| {
    ///     values.push(row.value().to_vec());
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert!(end.is_continue() && values == [b"apple".to_vec(), b"pear".to_vec()]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Index::range_by`](crate::Index::range_by).
    pub fn for_each_row<B>(&mut self, mut each: impl FnMut(IndexRow<'_>) -> ControlFlow<B>) -> Result<ControlFlow<B>> {
        let (mut list, mut has_more) = (EntryList::default(), true);
        loop {
            if let Some(end) = self.rounds.over() {
                return end.transpose().map(|_| ControlFlow::Continue(()));
            }
            if let Some(row) = self.rounds.ready(Direction::Forward) {
                let (entry, value) = row?;
                if let ControlFlow::Break(end) = each(IndexRow::of(&entry, &value)) {
                    return Ok(ControlFlow::Break(end));
                }
                continue;
            }
            let rows = match has_more.then(|| self.fetch_list(&mut list)).transpose() {
                Ok(None) => Vec::new(),
                Ok(Some((rows, more))) => {
                    has_more = more;
                    rows
                }
                Err(error) => {
                    self.rounds.failed = Some(error.clone());
                    return Err(error);
                }
            };
            if rows.is_empty() {
                // The only entries left were gathered by reads from the back.
                let Some(row) = self.take(Direction::Forward) else { return Ok(ControlFlow::Continue(())) };
                let (entry, value) = row?;
                if let ControlFlow::Break(end) = each(IndexRow::of(&entry, &value)) {
                    return Ok(ControlFlow::Break(end));
                }
                continue;
            }
            self.rounds.note_round(list.len(), rows.len());
            for (i, ((index_key, row_key), row)) in list.iter().zip(&rows).enumerate() {
                if self.rounds.left == 0 {
                    break;
                }
                let Some(value) = row else {
                    // A row may expire after its entry was read.
                    if self.rounds.rows.may_expire() {
                        continue;
                    }
                    return Err(self.rounds.no_row(&IndexEntry::new(index_key, row_key)));
                };
                self.rounds.left -= 1;
                if let ControlFlow::Break(end) = each(IndexRow { index_key, row_key, value }) {
                    self.rounds.front.take_back(&list, i + 1);
                    self.rounds.front.rows.extend(rows.into_iter().skip(i + 1));
                    if self.rounds.rows.may_expire() {
                        self.rounds.front.leave_out_missing();
                        self.rounds.front.count_gathered();
                    }
                    return Ok(ControlFlow::Break(end));
                }
            }
            if rows.len() < list.len() {
                self.rounds.front.take_back(&list, rows.len());
            }
            has_more |= self.rounds.front.gathered().len() > 0;
        }
    }
}

/// A borrowed row that was found by an index.
#[derive(Clone, Copy)]
pub struct IndexRow<'r> {
    index_key: &'r [u8],
    row_key: &'r [u8],
    value: &'r Value,
}

impl<'r> IndexRow<'r> {
    fn of(entry: &'r IndexEntry, value: &'r Value) -> Self {
        Self { index_key: entry.index_key(), row_key: entry.row_key(), value }
    }

    /// The index key of the row.
    #[inline]
    pub fn index_key(&self) -> &'r [u8] {
        self.index_key
    }

    /// The key of the row.
    #[inline]
    pub fn row_key(&self) -> &'r [u8] {
        self.row_key
    }

    /// The value of the row.
    #[inline]
    pub fn value(&self) -> &'r [u8] {
        self.value
    }
}

impl fmt::Debug for IndexRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index_key, row_key, value } = self;
        let [index_key, row_key, value] = [index_key, row_key, &***value].map(|bytes| bytes.escape_ascii());
        write!(f, "{index_key} -> {row_key}: {value}")
    }
}

impl<V: Content> Iterator for RangeBy<V> {
    type Item = Result<(IndexEntry, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(Direction::Forward)
    }
}

impl<V: Content> DoubleEndedIterator for RangeBy<V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(Direction::Backward)
    }
}

impl<V> fmt::Debug for RangeBy<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RangeBy({:?})", self.entries)
    }
}

/// The asynchronous form of a [`RangeBy`], made from one with `into`. No row is lost if a future is dropped.
#[must_use = "it reads nothing until it is polled"]
pub struct ScanBy<V = Value> {
    entries: Scan,
    rounds: Rounds<V>,
}

impl<V: Content> ScanBy<V> {
    /// Returns at most `rows` rows, see [`RangeBy::limit`].
    pub fn limit(mut self, rows: u64) -> Self {
        self.rounds.left = self.rounds.left.min(rows);
        self
    }

    /// The next row from the front.
    ///
    /// # Errors
    ///
    /// The errors of [`Index::range_by`](crate::Index::range_by).
    pub async fn next(&mut self) -> Option<Result<(IndexEntry, V)>> {
        self.take(Direction::Forward).await
    }

    /// The next row from the back.
    ///
    /// # Errors
    ///
    /// The errors of [`Index::range_by`](crate::Index::range_by).
    pub async fn next_back(&mut self) -> Option<Result<(IndexEntry, V)>> {
        self.take(Direction::Backward).await
    }

    async fn take(&mut self, direction: Direction) -> Option<Result<(IndexEntry, V)>> {
        if let Some(end) = self.rounds.over() {
            return end;
        }
        loop {
            if let Some(row) = self.rounds.ready(direction) {
                return Some(row);
            }
            while self.rounds.has_room(direction) {
                let next = self.rounds.entry_table.next_async(&mut self.entries, direction).await;
                let Some(entry) = next else { break };
                if let Err(error) = self.rounds.gather(direction, entry) {
                    return self.rounds.fail(error);
                }
            }
            let Some(from) = self.rounds.round(direction) else { return self.rounds.rest(direction) };
            let keys = self.rounds.keys(from);
            match self.rounds.rows.multi_get_some_async(&keys).await {
                Ok(rows) => self.rounds.fetched(from, keys.len(), rows),
                Err(error) => return self.rounds.fail(error),
            }
            if from != direction
                && let Some(row) = self.rounds.rest(direction)
            {
                return Some(row);
            }
        }
    }
}

impl<V: Content> From<RangeBy<V>> for ScanBy<V> {
    fn from(range: RangeBy<V>) -> Self {
        Self { entries: range.entries.into(), rounds: range.rounds }
    }
}

impl<V> fmt::Debug for ScanBy<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScanBy({:?})", self.entries)
    }
}

const _: () = {
    const fn sent<T: Send>() {}
    sent::<ScanBy>();
    sent::<ScanBy<crate::view::value::Parts>>();
};
