//! Which tables have indexes, and which extractor or closure makes the keys of each index. This module does not know
//! rows.
//!
//! The registry mirrors the indexes in the manifest. An install that changes indexes also changes the registry,
//! under the writer's lock. A commit holds this lock, too, so it sees all indexes that it has to update.
//!
//! This module is thread-safe. A lookup in a table without indexes usually costs one atomic load, of a bit mask with
//! a bit for each table id modulo 64. Tables that share a bit may cause a futile lookup.

use crate::base::error::{Error, Result};
use crate::base::extractors::{BY_CLOSURE, Extractors, IndexKeys};
use crate::base::table::{IndexInfo, TableId, TableInfo};
use crate::manifest::FileSet;
use crate::view::part_list::PartList;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The indexes of one open database.
#[derive(Default)]
pub struct Registry {
    /// Bit `id % 64` is set if a table with this id has an index.
    mask: AtomicU64,
    /// Grows with every change of indexes.
    generation: AtomicU64,
    tables: RwLock<HashMap<TableId, Arc<TableIndexes>>>,
    /// The closures that make keys, by index id.
    closures: Mutex<HashMap<TableId, Arc<dyn IndexKeys>>>,
    /// Indexes whose build was ended early and that could not be dropped yet.
    abandoned: Mutex<Vec<TableId>>,
}

/// The indexes of one table.
#[derive(Debug)]
pub struct TableIndexes {
    /// The indexes, ordered by id.
    pub all: Vec<LiveIndex>,
}

/// An index that writes update.
#[derive(Clone)]
pub struct LiveIndex {
    /// The table that holds the entries of the index.
    pub entries: Arc<TableInfo>,
    /// What makes the keys of the index, or why nothing does.
    made: Result<Arc<dyn IndexKeys>, String>,
}

fn bit(table: TableId) -> u64 {
    1 << (table.0 % 64)
}

impl Registry {
    /// A registry of the indexes in `files`.
    pub fn new(files: &FileSet, extractors: &Extractors) -> Self {
        let registry = Self::default();
        registry.renew(files, extractors);
        registry
    }

    /// Replaces all indexes of the registry with those of `files`.
    pub fn renew(&self, files: &FileSet, extractors: &Extractors) {
        let mut tables = self.tables.write();
        if tables.is_empty() && files.tables.indexes().next().is_none() {
            return;
        }
        let mut known: HashMap<TableId, LiveIndex> =
            tables.values().flat_map(|indexes| &indexes.all).map(|index| (index.entries.id, index.clone())).collect();
        let mut all: HashMap<TableId, Vec<LiveIndex>> = HashMap::new();
        for entries in files.tables.indexes().map(|files| &files.info) {
            let info = entries.index.as_ref().expect("it is one of the indexes");
            let made = known.remove(&entries.id).map_or_else(|| self.make(info, extractors), |known| known.made);
            all.entry(info.table).or_default().push(LiveIndex { entries: entries.clone(), made });
        }
        let ids = |tables: &HashMap<TableId, Arc<TableIndexes>>| {
            let all =
                tables.iter().flat_map(|(table, indexes)| indexes.all.iter().map(|index| (*table, index.entries.id)));
            all.collect::<HashSet<_>>()
        };
        let before = ids(&tables);
        self.mask.store(all.keys().fold(0, |mask, table| mask | bit(*table)), Ordering::Release);
        *tables = all.into_iter().map(|(table, all)| (table, Arc::new(TableIndexes { all }))).collect();
        if ids(&tables) != before {
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// Returns the extractor or closure that makes the keys of an index, or the reason why there is none.
    fn make(&self, index: &IndexInfo, extractors: &Extractors) -> Result<Arc<dyn IndexKeys>, String> {
        // The declaration decides whether an index has a closure. A closure in `closures` may be left from an index
        // whose creation failed, and another index may have the same id now.
        let closures = self.closures.lock();
        match closures.get(&index.id).filter(|_| index.declaration == BY_CLOSURE) {
            Some(keys) => Ok(keys.clone()),
            None => {
                drop(closures);
                extractors.make(&index.declaration)
            }
        }
    }

    /// Makes `keys` the closure of index `id`, which the caller installs next. No other thread changes tables
    /// meanwhile. Removes the closures of dropped indexes.
    pub fn give_closure(&self, id: TableId, keys: Arc<dyn IndexKeys>) {
        let tables = self.tables.read();
        let live: HashSet<TableId> =
            tables.values().flat_map(|indexes| &indexes.all).map(|index| index.entries.id).collect();
        let mut closures = self.closures.lock();
        closures.retain(|id, _| live.contains(id));
        closures.insert(id, keys);
    }

    /// Makes `keys` the closure of index `id` of `table`, if nothing makes the keys of this index yet.
    pub fn register(&self, table: TableId, id: TableId, keys: &Arc<dyn IndexKeys>) {
        let mut tables = self.tables.write();
        let Some(indexes) = tables.get_mut(&table) else { return };
        let mut all = indexes.all.clone();
        for index in all.iter_mut().filter(|index| index.entries.id == id && index.made.is_err()) {
            index.made = Ok(keys.clone());
            self.closures.lock().insert(id, keys.clone());
            self.generation.fetch_add(1, Ordering::Release);
        }
        *indexes = Arc::new(TableIndexes { all });
    }

    /// The index whose entries are in the table `entries`, for a caller that only reads it.
    pub fn read_only(&self, entries: Arc<TableInfo>, extractors: &Extractors) -> LiveIndex {
        let index = entries.index.as_ref().expect("it is the table of an index");
        let made = self.make(index, extractors);
        LiveIndex { entries, made }
    }

    /// Notes that an index should be dropped as soon as possible.
    pub fn note_abandoned(&self, id: TableId) {
        self.abandoned.lock().push(id);
    }

    /// An index that should be dropped, if there is one.
    pub fn abandoned(&self) -> Option<TableId> {
        self.abandoned.lock().last().copied()
    }

    /// Notes that an index was dropped, so that nobody tries again.
    pub fn forget_abandoned(&self, id: TableId) {
        self.abandoned.lock().retain(|abandoned| *abandoned != id);
    }

    /// A number that changes whenever a table may have gained or lost an index.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether `table` has an index.
    #[inline]
    pub fn has(&self, table: TableId) -> bool {
        self.mask.load(Ordering::Acquire) & bit(table) != 0 && self.tables.read().contains_key(&table)
    }

    /// The indexes of `table`, if it has any.
    #[inline]
    pub fn of(&self, table: TableId) -> Option<Arc<TableIndexes>> {
        if self.mask.load(Ordering::Acquire) & bit(table) == 0 { None } else { self.tables.read().get(&table).cloned() }
    }

    /// The index of `table` whose entries are in the table with this id, if the index still exists.
    pub fn index(&self, table: TableId, id: TableId) -> Option<LiveIndex> {
        self.of(table)?.all.iter().find(|live| live.entries.id == id).cloned()
    }
}

impl TableIndexes {
    /// Refuses writes to `table` if nothing makes the keys of one of its indexes.
    ///
    /// # Errors
    ///
    /// [`Error::NoExtractor`] or [`Error::NoClosure`] if the extractor or the closure of an index is missing.
    pub fn check_registered(&self, table: &TableInfo) -> Result<()> {
        self.all.iter().try_for_each(|index| index.made(table).map(drop))
    }

    /// The parts of a row of `table` that the keys of all its indexes are made from.
    pub fn parts(&self, table: &TableInfo) -> PartList {
        parts_of(table, self.all.iter().filter_map(|index| index.made.as_deref().ok()))
    }
}

/// The parts of a row of `table` that `keys` need.
fn parts_of<'k>(table: &TableInfo, keys: impl Iterator<Item = &'k dyn IndexKeys>) -> PartList {
    let row_parts = table.options.groups.len().max(1);
    let wanted = keys.flat_map(|keys| keys.groups()).filter(|group| **group < row_parts);
    wanted.fold(PartList::nothing(row_parts), |list, group| list.with(*group).unwrap_or(list))
}

impl LiveIndex {
    /// The description of the index in the manifest.
    pub fn info(&self) -> &IndexInfo {
        self.entries.index.as_ref().expect("a live index is one")
    }

    /// The parts of a row of `table` that the keys of this index are made from.
    pub fn parts(&self, table: &TableInfo) -> PartList {
        parts_of(table, self.made.as_deref().ok().into_iter())
    }

    /// What makes the keys of this index.
    ///
    /// # Errors
    ///
    /// [`Error::NoExtractor`] or [`Error::NoClosure`] if the extractor or the closure is missing.
    pub fn made(&self, table: &TableInfo) -> Result<&dyn IndexKeys> {
        self.made.as_deref().map_err(|why| no_extractor(table, self.info(), why))
    }

    /// The keys of a row in this index, sorted and without duplicates.
    ///
    /// # Errors
    ///
    /// [`Error::BadRow`] if the extractor or the closure refuses the row; otherwise the errors of
    /// [`LiveIndex::made`].
    pub fn keys_of<'r>(
        &self,
        table: &TableInfo,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
    ) -> Result<Vec<Vec<u8>>> {
        let made = self.made(table)?;
        let mut keys = Vec::new();
        // A closure gets only the column groups that it has named. Otherwise it would get other groups of new rows
        // but not of old rows.
        let part = &|group| if made.groups().contains(&group) { part(group) } else { None };
        made.index_keys(key, part, &mut |index_key| keys.push(index_key.to_vec())).map_err(|why| Error::BadRow {
            table: table.name.as_str().into(),
            index: Some(self.info().name.as_str().into()),
            key: key.into(),
            why,
        })?;
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }
}

/// The error for an index whose keys cannot be made.
pub fn no_extractor(table: &TableInfo, index: &IndexInfo, why: &str) -> Error {
    if index.declaration == BY_CLOSURE {
        return Error::NoClosure { table: table.name.as_str().into(), index: index.name.as_str().into() };
    }
    Error::NoExtractor {
        table: table.name.as_str().into(),
        index: index.name.as_str().into(),
        declaration: index.declaration.as_slice().into(),
        why: why.to_owned(),
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("tables", &*self.tables.read()).finish_non_exhaustive()
    }
}

impl fmt::Debug for LiveIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, registered: {}", self.info(), self.made.is_ok())
    }
}
