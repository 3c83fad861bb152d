//! Finds what a write to a table changes in the indexes of the table. This module does not know how the changes are
//! committed.
//!
//! A write to a table with indexes is always part of a transaction. The transaction reads the old row, which it
//! may have written itself. It compares the index keys of the old row with those of the new row. The transaction
//! also erases entries that only the old row has, and puts entries that only the new row has. The transaction
//! depends on the old row: if another commit changes this row, the transaction conflicts. If an index is unique,
//! the transaction also depends on all entries with the same index key. If another commit changes one of these
//! entries, the transaction conflicts, too.
//!
//! A *duplicate* is a row whose key in a unique index belongs to another row. All writes of a transaction take
//! effect together, so two rows may have the same key in a unique index for a while, as long as the commit leaves
//! only one of them. If a write puts a second entry with the same index key into a unique index, it notes this
//! index key as doubtful. The commit then checks whether two entries with a doubtful key are left.
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
use sst::{KeyRange, MAX_KEY_BYTES};
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

/// The entries that a write erases, and the entries that it puts. The number beside an entry says which of the
/// table's indexes it belongs to.
#[derive(Default)]
struct Changes {
    erased: Vec<(usize, Vec<u8>)>,
    put: Vec<(usize, Vec<u8>)>,
}

/// An erase of a range erases the entries of some rows, and then the transaction checks how much memory its writes
/// take. This is done again for the next rows. `ERASED_TOGETHER` is the greatest number of rows each time. If the
/// erased entries reach [`ERASED_BYTES`] bytes, it is fewer rows.
const ERASED_TOGETHER: usize = 256;
const ERASED_BYTES: usize = 64 << 10;

/// The rows whose entries one call of [`IndexedWrites::fill`] has put.
#[derive(Debug)]
pub struct Filled {
    /// The number of rows.
    pub rows: u64,
    /// The key of the last row whose entries were put; `None` if no rows are left.
    pub last: Option<Vec<u8>>,
}

impl IndexedWrites<'_> {
    /// Adds a write of `key` in `table` to the transaction. `indexes` are the indexes of `table`, and the changes
    /// of their entries are added, too. `value` is in the form of the log. If `value` is `None`, the row is
    /// erased. `before` is the old row, from [`IndexedWrites::rows_before`].
    ///
    /// # Errors
    ///
    /// [`Error::NoExtractor`], [`Error::BadRow`], [`Error::IndexKeyTooLong`]; an error if a row cannot be read.
    pub fn write(
        &mut self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        (key, value): (&[u8], Option<&[u8]>),
        before: Option<Option<Parts>>,
    ) -> Result<()> {
        indexes.check_registered(table)?;
        let changes = self.row_changes((table, indexes), (key, value), before)?;
        let ops = self.work.write_to(table);
        match value {
            Some(value) => ops.put(table.id.0, key, value),
            None => ops.erase(table.id.0, key),
        }
        for (place, entry) in changes.erased {
            self.erase(&indexes.all[place], &entry);
        }
        for (place, index_key) in changes.put {
            self.put(&indexes.all[place], &index_key, key);
        }
        Ok(())
    }

    /// Reads the rows of the first `keys` in one round. Returns as many rows as a round can read, at least one.
    /// The rows are those that were committed, without the writes of the transaction. The transaction does not
    /// note that it has read them.
    ///
    /// # Errors
    ///
    /// Fails if a row cannot be read.
    pub fn rows_before(
        &self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Parts>>> {
        let handle = TableHandle::new(self.handle.clone(), table.clone());
        Reader::new(&handle, Some(self.pin), indexes.parts(table)).multi_get_some(keys)
    }

    /// Does the same as [`IndexedWrites::rows_before`], but returns a future, and reads the rows of all `keys`.
    ///
    /// # Errors
    ///
    /// Fails if a row cannot be read.
    pub async fn rows_before_async(
        &self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Parts>>> {
        let handle = TableHandle::new(self.handle.clone(), table.clone());
        Reader::new(&handle, Some(self.pin), indexes.parts(table)).multi_get_async(keys).await
    }

    /// Loads pages that [`IndexedWrites::write`] will need for the row with `key` and `value`. `value` is in the
    /// form of the log. The write will look into these pages to see whether other rows have the same keys in
    /// unique indexes.
    ///
    /// # Errors
    ///
    /// [`Error::NoExtractor`], [`Error::BadRow`]; an error if an entry cannot be read.
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
                    // If the index was dropped meanwhile, nothing is loaded. The write will notice the drop
                    // itself.
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

    fn put(&mut self, index: &LiveIndex, index_key: &[u8], row_key: &[u8]) {
        let ops: &mut BatchOps = self.work.write_to(&index.entries);
        ops.put(index.entries.id.0, &entry::key(index_key, row_key), &[]);
    }

    /// Finds out which entries a write of `key` erases and puts. `new` is the new value, or `None` for an erase.
    fn row_changes(
        &mut self,
        (table, indexes): (&Arc<TableInfo>, &TableIndexes),
        (key, new): (&[u8], Option<&[u8]>),
        before: Option<Option<Parts>>,
    ) -> Result<Changes> {
        let parts = indexes.parts(table);
        self.work.depend_on_read_key(table.id, key);
        let old: Option<Parts> = match before.filter(|_| self.work.read_key(table.id, key).is_none()) {
            Some(old) => old,
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
            for index_key in after.into_iter().filter(|key| before.binary_search(key).is_err()) {
                if let Some((_, keys)) = self.check_new(table, index, &index_key, key)? {
                    self.work.doubt(index.entries.id, keys);
                }
                changes.put.push((place, index_key));
            }
        }
        Ok(changes)
    }

    /// The rows of `table` with keys from `start` to before `end`. The transaction is going to erase them.
    ///
    /// # Errors
    ///
    /// [`Error::NoExtractor`].
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

    /// Takes the next rows from `rows`, and erases their entries. [`IndexedWrites::begin_erase`] has made `rows`.
    /// Returns whether there may be more rows.
    ///
    /// # Errors
    ///
    /// [`Error::BadRow`]; an error if a row cannot be read.
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

    /// Refuses an entry that the index cannot have. If the index is unique, it may have an entry of another row
    /// with the same index key. Then this function returns the key of the other row, and the bounds of all entries
    /// with this index key.
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
                // The index was dropped meanwhile. The commit will notice this, and the write runs again without
                // the index.
                Err(Error::TableDropped(_)) if self.is_gone(table, index) => return Ok(None),
                entry => entry?,
            };
            if let Some(found) = IndexEntry::of(&entry, &value).filter(|found| found.row_key() != row_key) {
                return Ok(keys.map(|keys| (found, keys)));
            }
        }
        Ok(None)
    }

    /// The ranges of the `doubtful` entries. Each item is the table of entries of an index, and a range in this
    /// table.
    fn entries_in_doubt(&self, doubtful: &ReadSet) -> Vec<(Arc<TableInfo>, Range<Value>)> {
        let entries = |(id, keys): &(TableId, KeyRange)| {
            // If the index was dropped meanwhile, it is left out here, and the commit will notice the drop.
            let info = self.handle.core().views.table_info(*id)?;
            let handle = TableHandle::new(self.handle.clone(), info.clone());
            let high = keys.end.clone().map_or(Bound::Unbounded, Bound::Excluded);
            let entries = Reader::<Value>::new(&handle, Some(self.pin), PartList::whole()).within(self.work);
            Some((info, entries.range((Bound::Included(keys.start.clone()), high))))
        };
        doubtful.ranges().filter_map(entries).collect()
    }

    /// Fails if two of the `doubtful` entries have the same index key.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`]; an error if an entry cannot be read.
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

    /// Does the same as [`IndexedWrites::check_unique`], but returns a future.
    ///
    /// # Errors
    ///
    /// Fails as [`IndexedWrites::check_unique`] does.
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

    /// `info` is the table of entries of an index, and `key` and `value` are the next row of this table. Fails if
    /// this entry has the same index key as `last`, the entry before it. Otherwise this entry becomes the new
    /// `last`.
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

    /// The error that two rows have the same index key. If one of the two rows had this index key before the
    /// transaction, the error names that row.
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

    /// Puts the entries of `index` for some rows of `table`: the next rows after the key `after`, up to the key
    /// `through`. Takes at most `most_rows` rows, which have about `most_bytes` bytes together.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`], and the errors of [`IndexedWrites::write`].
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
        // The transaction depends on each of these rows, but not on the range in which they lie. If another commit
        // writes a new row in this range, that commit also writes the entries of the new row.
        let rows =
            Reader::<Parts>::new(&handle, Some(self.pin), parts).range_within((low, Bound::Included(through.to_vec())));
        let (mut filled, mut bytes) = (Filled { rows: 0, last: None }, 0);
        for row in rows.limit(most_rows as u64) {
            let (key, row) = row?;
            self.work.depend_on(table.id, &key);
            bytes += key.len() + row.iter().map(|part| part.len()).sum::<usize>();
            for index_key in index.keys_of(table, &key, &|group| part_of(&parts, &row, group))? {
                if let Some((found, _)) = self.check_new(table, index, &index_key, &key)? {
                    let (table, index) = (table.name.as_str().into(), index.info().name.as_str().into());
                    return Err(Error::Duplicate { table, index, key: index_key.into(), row: found.row_key().into() });
                }
                bytes += index_key.len() + key.len();
                self.put(index, &index_key, &key);
            }
            filled = Filled { rows: filled.rows + 1, last: Some(key.into()) };
            if bytes >= most_bytes {
                break;
            }
        }
        Ok(filled)
    }
}

/// The keys in `index` under which the old row has entries. A key that is too long for an entry is left out. While
/// the index is being built, the old row may not fit the declaration of the index. Then it has no entries, because
/// the build has not come to this row yet. If such a row still exists when the build comes to it, the build fails.
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

/// The part of `row` that is in `group`. `parts` says which parts of the row were read.
pub fn part_of<'p>(parts: &PartList, row: &'p Parts, group: usize) -> Option<&'p [u8]> {
    (0..parts.len()).find(|&i| parts.group(i) == group).map(|i| &row[i][..])
}

/// Finds the part of column group `group` in `value`, which is in the form of the log.
fn part_in<'v>(table: &TableInfo, value: &'v [u8], group: usize) -> Option<&'v [u8]> {
    let count = table.options.groups.len().max(1);
    parts::find(value, count, group).filter(|_| group < count).map(|place| &value[place])
}
