//! Maintains indexes: adds to each write of a table the changes of the table's indexes. This module does not know how
//! the changes are committed.
//!
//! A write to a table with indexes is always part of a transaction. The transaction reads the old row, which it may
//! have written itself, erases the entries that only the old row has, and puts those that only the new row has. It
//! depends on the old row: if another commit changes that row, the transaction conflicts. For a unique index, it also
//! depends on all entries with the new index key.
//!
//! A *duplicate* is a row whose key in a unique index already belongs to another row. Since all writes of a
//! transaction take effect together, two rows may share a unique key for a while, if only one of them is left at
//! the commit. So a write that puts a second entry under a key of a unique index only notes the key as *doubtful*,
//! and the commit checks that no two entries are left under a doubtful key.
//!
//! Invariant: if a call returns an error, the transaction has the same writes as before the call. The exception is
//! an erase of a range: if it fails, the caller has to undo the writes.

use super::entry::{self, IndexEntry};
use crate::base::error::{Error, Result};
use crate::base::ops::BatchOps;
use crate::base::parts;
use crate::base::table::{IndexState, TableId, TableInfo};
use crate::conflicts::read_set::ReadSet;
use crate::core::handle::{DatabaseHandle, TableHandle};
use crate::core::registry::{LiveIndex, TableIndexes};
use crate::core::snapshots::PinnedVersion;
use crate::read::work::Work;
use crate::read::{Range, Reader, Scan};
use crate::view::part_list::PartList;
use crate::view::value::{Key, Parts, Value};
use os::sync::Arc;
use sst::{KeyRange, MAX_KEY_BYTES, Until};
use std::ops::Bound;

/// Adds writes to tables with indexes to a transaction.
pub struct IndexedWrites<'t> {
    /// The database.
    pub handle: &'t Arc<DatabaseHandle>,
    /// The version at which the transaction reads.
    pub pin: &'t Arc<PinnedVersion>,
    /// What the transaction has read and written.
    pub work: &'t mut Work,
}

/// The changes of one row, by the place of the index among the table's indexes.
#[derive(Default)]
struct Changes {
    /// Stored keys of entries.
    erased: Vec<(usize, Vec<u8>)>,
    /// Index keys.
    put: Vec<(usize, Vec<u8>)>,
}

/// An erase of a range erases the entries of at most `ERASED_TOGETHER` rows, or of `ERASED_BYTES` bytes, before the
/// transaction checks how much memory its writes take.
const ERASED_TOGETHER: usize = 256;
const ERASED_BYTES: usize = 64 << 10;

/// What one call of [`IndexedWrites::fill`] has done.
#[derive(Debug)]
pub struct Filled {
    /// The number of rows whose entries were put.
    pub rows: u64,
    /// The key of the last of these rows; `None` if no rows are left.
    pub last: Option<Vec<u8>>,
}

impl IndexedWrites<'_> {
    /// Adds a write of `key` in `table` to the transaction, with the changes of the table's `indexes`. `value` is
    /// in the form of the log, or `None` to erase the row. `before` is the old row from
    /// [`IndexedWrites::rows_before`], if the caller has read it.
    ///
    /// # Errors
    ///
    /// [`Error::NoExtractor`] or [`Error::NoClosure`] if an extractor or a closure is missing; [`Error::BadRow`] if a
    /// row does not fit an index; [`Error::IndexKeyTooLong`] if an entry would be too long; an error if a row or an
    /// entry cannot be read.
    pub fn write(
        &mut self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        (key, value, until): (&[u8], Option<&[u8]>, Option<Until>),
        before: Option<Option<Parts>>,
    ) -> Result<()> {
        indexes.check_registered(table)?;
        let changes = self.row_changes((table, indexes), (key, value, until), before)?;
        let ops = self.work.write_to(table);
        match value {
            Some(value) => ops.put_until(table.id.0, key, value, until),
            None => ops.erase(table.id.0, key),
        }
        for (place, entry) in changes.erased {
            self.erase(&indexes.all[place], &entry);
        }
        for (place, index_key) in changes.put {
            self.put(&indexes.all[place], &index_key, key, until);
        }
        Ok(())
    }

    /// Reads the rows of the first of the `keys`, as many as fit in one round, but at least one. They are the
    /// committed rows, without the writes of the transaction, and do not go into its read set.
    ///
    /// # Errors
    ///
    /// An error if a row cannot be read.
    pub fn rows_before(
        &self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Parts>>> {
        let handle = TableHandle::new(self.handle.clone(), table.clone());
        Reader::new(&handle, Some(self.pin), indexes.parts(table)).multi_get_some(keys)
    }

    /// As [`IndexedWrites::rows_before`], but returns a future, and reads the rows of all `keys`.
    ///
    /// # Errors
    ///
    /// An error if a row cannot be read.
    pub async fn rows_before_async(
        &self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Parts>>> {
        let handle = TableHandle::new(self.handle.clone(), table.clone());
        Reader::new(&handle, Some(self.pin), indexes.parts(table)).multi_get_async(keys).await
    }

    /// Loads the pages of unique indexes in which [`IndexedWrites::write`] will look for duplicates of the row with
    /// `key` and `value`, which is in the form of the log.
    ///
    /// # Errors
    ///
    /// [`Error::NoExtractor`] or [`Error::NoClosure`] if an extractor or a closure is missing; [`Error::BadRow`] if
    /// the row does not fit an index; an error if an entry cannot be read.
    pub async fn load_unique_async(
        &self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        (key, value): (&[u8], &[u8]),
    ) -> Result<()> {
        for index in indexes.all.iter().filter(|index| index.info().is_unique) {
            let index_keys = index.keys_of(table, key, &|group| part_in(table, value, group))?;
            let handle = TableHandle::new(self.handle.clone(), index.entries.clone());
            let entries = Reader::<Value>::new(&handle, Some(self.pin), PartList::whole());
            for index_key in index_keys {
                match Scan::from(entries.range_within(entry::bounds_under(&index_key))).next().await {
                    // If the index was dropped meanwhile, the write will notice that itself.
                    None | Some(Ok(_) | Err(Error::TableDropped(_))) => {}
                    Some(Err(error)) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn erase(&mut self, index: &LiveIndex, entry: &[u8]) {
        self.work.write_to(&index.entries).erase(index.entries.id.0, entry);
    }

    /// Puts an entry of a row that is there until `until`. The entry has the same time, so it expires with its row.
    fn put(&mut self, index: &LiveIndex, index_key: &[u8], row_key: &[u8], until: Option<Until>) {
        let ops: &mut BatchOps = self.work.write_to(&index.entries);
        ops.put_until(index.entries.id.0, &entry::key(index_key, row_key), &[], until);
    }

    /// The entries that a write of `key` erases and puts. `new` is the new value, or `None` for an erase.
    fn row_changes(
        &mut self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        (key, new, until): (&[u8], Option<&[u8]>, Option<Until>),
        before: Option<Option<Parts>>,
    ) -> Result<Changes> {
        let parts = indexes.parts(table);
        self.work.depend_on_read_key(table.id, key);
        let has_times = self.handle.core().env.row_clock.has_times();
        let known = before.filter(|_| !has_times && self.work.read_key(table.id, key).is_none());
        // Only if the times of both are the same, the entries of the old row can stay.
        let mut is_same_time = true;
        let old: Option<Parts> = match known {
            Some(old) => old,
            None if has_times => {
                // The entries of a row that has expired are erased like those of another row. If the clock goes back
                // while the database is closed, they would be there again, and no row would belong to them.
                let handle = TableHandle::new(self.handle.clone(), table.clone());
                let old = Reader::new(&handle, Some(self.pin), parts).within(self.work).get_expired(key)?;
                is_same_time = old.as_ref().is_none_or(|(_, time)| *time == until);
                old.map(|(parts, _)| parts)
            }
            None => {
                let handle = TableHandle::new(self.handle.clone(), table.clone());
                Reader::new(&handle, Some(self.pin), parts).within(self.work).get(key)?
            }
        };
        let mut changes = Changes::default();
        for (place, index) in indexes.all.iter().enumerate() {
            let before = match &old {
                Some(old) => keys_before(index, table, key, &|group| part_of(&parts, old, group))?,
                None => Vec::new(),
            };
            let after = match new {
                Some(value) => index.keys_of(table, key, &|group| part_in(table, value, group))?,
                None => Vec::new(),
            };
            for index_key in before.iter().filter(|key| after.binary_search(key).is_err()) {
                changes.erased.push((place, entry::key(index_key, key)));
            }
            let is_new = |key: &Vec<u8>| !is_same_time || before.binary_search(key).is_err();
            for index_key in after.into_iter().filter(is_new) {
                if let Some((_, keys)) = self.check_new(table, index, &index_key, key)? {
                    self.work.doubt(index.entries.id, keys);
                }
                changes.put.push((place, index_key));
            }
        }
        Ok(changes)
    }

    /// Begins an erase of the rows of `table` from `start` to before `end`, or to the last key if `end` is empty.
    /// Returns these rows. The transaction depends on the range.
    ///
    /// # Errors
    ///
    /// [`Error::NoExtractor`] or [`Error::NoClosure`] if an extractor or a closure is missing.
    pub fn begin_erase(
        &mut self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        start: &[u8],
        end: &[u8],
    ) -> Result<Range<Parts>> {
        indexes.check_registered(table)?;
        let handle = TableHandle::new(self.handle.clone(), table.clone());
        let high = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(end) };
        self.work.depend_on_read_range(table.id, KeyRange::between(Bound::Included(start), high));
        let range = (Bound::Included(start.to_vec()), high.map(<[u8]>::to_vec));
        Ok(Reader::new(&handle, Some(self.pin), indexes.parts(table)).within(self.work).range_within(range))
    }

    /// Erases the entries of the next of the `rows` that [`IndexedWrites::begin_erase`] has returned. Returns whether
    /// more rows may follow.
    ///
    /// # Errors
    ///
    /// [`Error::BadRow`] if a row does not fit an index; an error if a row cannot be read.
    pub fn erase_entries(
        &mut self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        rows: &mut Range<Parts>,
    ) -> Result<bool> {
        let (parts, mut bytes) = (indexes.parts(table), 0);
        for _ in 0..ERASED_TOGETHER {
            let Some(row) = rows.next() else { return Ok(false) };
            let (key, old) = row?;
            for index in &indexes.all {
                for index_key in keys_before(index, table, &key, &|group| part_of(&parts, &old, group))? {
                    let entry = entry::key(&index_key, &key);
                    bytes += entry.len();
                    self.erase(index, &entry);
                }
            }
            if bytes >= ERASED_BYTES {
                break;
            }
        }
        Ok(true)
    }

    /// Checks a new entry. If the index is unique and has an entry of another row with the same index key, returns
    /// that entry, and the range of all entries with this index key. Fails if the new entry is too long.
    fn check_new(
        &mut self,
        table: &TableInfo,
        index: &LiveIndex,
        index_key: &[u8],
        row_key: &[u8],
    ) -> Result<Option<(IndexEntry, KeyRange)>> {
        let bytes = entry::key_bytes(index_key, row_key);
        let names = || (table.name.as_str().into(), index.info().name.as_str().into());
        if bytes > MAX_KEY_BYTES {
            let ((table, index), max) = (names(), MAX_KEY_BYTES);
            return Err(Error::IndexKeyTooLong { table, index, key: row_key.into(), bytes, max });
        }
        if !index.info().is_unique {
            return Ok(None);
        }
        let same = entry::bounds_under(index_key);
        let keys = KeyRange::between(same.0.as_ref().map(Vec::as_slice), same.1.as_ref().map(Vec::as_slice));
        self.work.depend_on_read_range(index.entries.id, keys.clone());
        let handle = TableHandle::new(self.handle.clone(), index.entries.clone());
        let entries = Reader::<Value>::new(&handle, Some(self.pin), PartList::whole()).within(self.work);
        for entry in entries.range_within(same) {
            let (entry, value) = match entry {
                // The index was dropped meanwhile. The commit will notice that, and the write runs again without it.
                Err(Error::TableDropped(_)) if self.is_gone(table, index) => return Ok(None),
                entry => entry?,
            };
            if let Some(found) = IndexEntry::of(&entry, &value).filter(|found| found.row_key() != row_key) {
                return Ok(keys.map(|keys| (found, keys)));
            }
        }
        Ok(None)
    }

    /// The ranges of the `doubtful` entries, each with the table of entries of its index.
    fn entries_in_doubt(&self, doubtful: &ReadSet) -> Vec<(Arc<TableInfo>, Range<Value>)> {
        let entries = |(id, keys): &(TableId, KeyRange)| {
            // An index that was dropped meanwhile is left out. The commit will notice the drop.
            let info = self.handle.core().views.table_info(*id)?;
            let handle = TableHandle::new(self.handle.clone(), info.clone());
            let high = keys.end.clone().map_or(Bound::Unbounded, Bound::Excluded);
            let entries = Reader::<Value>::new(&handle, Some(self.pin), PartList::whole()).within(self.work);
            Some((info, entries.range((Bound::Included(keys.start.clone()), high))))
        };
        doubtful.ranges().filter_map(entries).collect()
    }

    /// Checks that no two of the `doubtful` entries have the same index key.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] if two have; an error if an entry cannot be read.
    pub fn check_unique(&self, doubtful: &ReadSet) -> Result<()> {
        for (info, entries) in self.entries_in_doubt(doubtful) {
            let mut last = None;
            for entry in entries {
                match entry {
                    Err(Error::TableDropped(_)) => break,
                    entry => self.check_neighbours(&info, &mut last, entry?)?,
                }
            }
        }
        Ok(())
    }

    /// As [`IndexedWrites::check_unique`], but returns a future.
    ///
    /// # Errors
    ///
    /// The errors of [`IndexedWrites::check_unique`].
    pub async fn check_unique_async(&self, doubtful: &ReadSet) -> Result<()> {
        for (info, entries) in self.entries_in_doubt(doubtful) {
            let (mut last, mut entries) = (None, Scan::from(entries));
            while let Some(entry) = entries.next().await {
                match entry {
                    Err(Error::TableDropped(_)) => break,
                    entry => self.check_neighbours(&info, &mut last, entry?)?,
                }
            }
        }
        Ok(())
    }

    /// Compares the next row of the table of entries `info` with `last`, the entry before it, and replaces `last`.
    /// Fails if both have the same index key.
    fn check_neighbours(
        &self,
        info: &Arc<TableInfo>,
        last: &mut Option<IndexEntry>,
        (key, value): (Key, Value),
    ) -> Result<()> {
        let Some(entry) = IndexEntry::of(&key, &value) else { return Ok(()) };
        match last.replace(entry.clone()) {
            Some(last) if last.index_key() == entry.index_key() => Err(self.duplicate(info, [last, entry])?),
            _ => Ok(()),
        }
    }

    /// The error that two rows have the same index key. It names the row that had this key before the transaction, if
    /// one of the two did.
    fn duplicate(&self, info: &Arc<TableInfo>, [first, second]: [IndexEntry; 2]) -> Result<Error> {
        let core = self.handle.core();
        let index = info.index.as_ref().expect("only unique indexes are doubted");
        let table = core.views.table_info(index.table).map_or_else(|| "?".into(), |table| table.name.as_str().into());
        let handle = TableHandle::new(self.handle.clone(), info.clone());
        let before = Reader::<Value>::new(&handle, Some(self.pin), PartList::whole());
        let has_second = before.contains_key(entry::key(second.index_key(), second.row_key()))?;
        let row = if has_second { second } else { first };
        let (key, row) = (row.index_key().into(), row.row_key().into());
        Ok(Error::Duplicate { table, index: index.name.as_str().into(), key, row })
    }

    fn is_gone(&self, table: &TableInfo, index: &LiveIndex) -> bool {
        self.handle.core().indexes.index(table.id, index.entries.id).is_none()
    }

    /// Puts the entries of `index` for the rows of `table` after the key `after` and up to and including `through`.
    /// Stops after `most_rows` rows, or after about `most_bytes` bytes of rows and entries.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] if two rows have the same key in a unique index; otherwise the errors of
    /// [`IndexedWrites::write`].
    pub fn fill(
        &mut self,
        table: &Arc<TableInfo>,
        index: &LiveIndex,
        (after, through): (Option<&[u8]>, &[u8]),
        (most_rows, most_bytes): (usize, usize),
    ) -> Result<Filled> {
        let handle = TableHandle::new(self.handle.clone(), table.clone());
        let parts = index.parts(table);
        let low = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.to_vec()));
        // The transaction depends on each of these rows, but not on the range: another commit that writes a new row
        // in it also writes the entries of that row.
        let rows =
            Reader::<Parts>::new(&handle, Some(self.pin), parts).range_within((low, Bound::Included(through.to_vec())));
        let has_times = self.handle.core().env.row_clock.has_times();
        let (whole_row, no_part) = (PartList::whole(), PartList::nothing(1));
        let (mut filled, mut bytes) = (Filled { rows: 0, last: None }, 0);
        for row in rows.limit(most_rows as u64) {
            let (key, mut row) = row?;
            self.work.depend_on(table.id, &key);
            let (mut until, mut in_row) = (None, &parts);
            if has_times {
                // Only values without column groups can be merged into.
                let is_whole = table.options.groups.len() < 2;
                let of_row = if is_whole { &whole_row } else { &no_part };
                let whole = Reader::<Parts>::new(&handle, Some(self.pin), *of_row);
                // It may have expired since the range found it, and then a flush may have dropped it.
                let Some((whole, time)) = whole.get_expired(&key)? else { continue };
                until = time;
                if is_whole {
                    if until.is_some() {
                        // If the value was merged into one with a time, it is written as a whole, so that both have one
                        // time.
                        self.work.write_to(table).put_until(table.id.0, &key, &whole[0], until);
                    }
                    // If a part of it has expired since the range found it, it is another value.
                    (row, in_row) = (whole, of_row);
                }
            }
            bytes += key.len() + row.iter().map(|part| part.len()).sum::<usize>();
            for index_key in index.keys_of(table, &key, &|group| part_of(in_row, &row, group))? {
                if let Some((found, _)) = self.check_new(table, index, &index_key, &key)? {
                    let (table, index) = (table.name.as_str().into(), index.info().name.as_str().into());
                    return Err(Error::Duplicate { table, index, key: index_key.into(), row: found.row_key().into() });
                }
                bytes += index_key.len() + key.len();
                self.put(index, &index_key, &key, until);
            }
            filled = Filled { rows: filled.rows + 1, last: Some(key.into()) };
            if bytes >= most_bytes {
                break;
            }
        }
        Ok(filled)
    }
}

/// The index keys under which the old row has entries, without keys that are too long for an entry. While the index
/// is being built, an old row that does not fit the declaration has no entries: the build has not come to it yet,
/// and fails if the row still exists when it does.
fn keys_before<'r>(
    index: &LiveIndex,
    table: &TableInfo,
    key: &'r [u8],
    part: &dyn Fn(usize) -> Option<&'r [u8]>,
) -> Result<Vec<Vec<u8>>> {
    match index.keys_of(table, key, part) {
        Ok(mut keys) => {
            keys.retain(|index_key| entry::key_bytes(index_key, key) <= MAX_KEY_BYTES);
            Ok(keys)
        }
        Err(Error::BadRow { .. }) if index.info().state == IndexState::Building => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The part of `row` that is in column group `group`. `parts` says which parts were read into `row`.
pub fn part_of<'p>(parts: &PartList, row: &'p Parts, group: usize) -> Option<&'p [u8]> {
    (0..parts.len()).find(|&i| parts.group(i) == group).map(|i| &row[i][..])
}

/// The part of `value` that is in column group `group`. `value` is in the form of the log.
fn part_in<'v>(table: &TableInfo, value: &'v [u8], group: usize) -> Option<&'v [u8]> {
    let count = table.options.groups.len().max(1);
    parts::find(value, count, group).filter(|_| group < count).map(|place| &value[place])
}
