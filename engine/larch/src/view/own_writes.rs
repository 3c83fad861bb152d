//! The writes of a transaction, which its own reads see before they are committed. This module does not know how rows
//! are read.
//!
//! The writes are the operations of one batch, in order. If the transaction reads a table that it has written to, its
//! writes to this table are also put into a memtable of their own, which counts as newer than all others. In it,
//! operation `i` has the version `base + 1 + i`, which is newer than every other version that the transaction can
//! see. A range reads at the version of the last write before it began, so it never sees later writes.
//!
//! Writes that take too much memory are spilled to files, called [runs](Run). A run counts as older than the
//! transaction's own memtable, and as newer than all other memtables.
//!
//! Rolling back to a savepoint removes the operations after it from the batch. Rows cannot be removed from a
//! memtable, so the memtable is dropped and filled again when it is needed. Doing that for each savepoint would take
//! quadratic time. So if only few operations come after the newest savepoint, a read of one key puts only the
//! operations before it into the memtable, and looks through those after it one by one.

use super::run::Run;
use crate::base::operand::MergeFunctions;
use crate::base::ops::{BatchMark, BatchOps, Op};
use crate::base::table::{TableId, TableInfo};
use crate::manifest::{DbFile, Level};
use crate::memtable::Memtable;
use crate::memtable::set::MemSet;
use os::sync::{Arc, Mutex};
use sst::{RowKind, Version};

/// The writes of a transaction.
#[derive(Debug)]
pub struct OwnWrites {
    /// The operations that are in no run.
    ops: BatchOps,
    /// The operations that are in runs, if there are any. Boxed, to keep a small transaction small.
    spilled: Option<Box<Spilled>>,
    /// The version at which the transaction reads.
    base: Version,
    /// The tables that the transaction has written to, sorted by id.
    tables: Vec<Arc<TableInfo>>,
    /// For each of these tables, the number of writes before its first one.
    first_writes: Vec<u64>,
    /// The newest savepoint, if there is one. The transaction may go back to it.
    kept_to: Option<WriteMark>,
    #[cfg(test)]
    applied: os::sync::atomic::AtomicU64,
    filled: Mutex<Vec<FilledTable>>,
}

/// The writes that are in files.
#[derive(Debug)]
struct Spilled {
    /// The runs, oldest first. There is at least one.
    runs: Vec<Run>,
    /// For each table, the files of the runs, newest first.
    files: Vec<(TableId, Arc<[Level]>)>,
}

/// A position between two writes.
#[derive(Clone, Copy, Debug)]
pub struct WriteMark {
    /// The number of writes before it.
    count: u64,
    /// When the mark was made, `in_runs` of the writes before it were in runs. The others were in memory, before
    /// `in_memory`.
    in_runs: u64,
    in_memory: BatchMark,
}

/// A memtable with the transaction's writes to one table.
#[derive(Debug)]
struct FilledTable {
    table: TableId,
    memtable: Arc<Memtable>,
    /// The memtable has all writes to its table before this mark.
    to: BatchMark,
}

/// The rows that a transaction has written to a table, up to one of its operations. They count as newer than all
/// other rows.
#[derive(Clone, Debug)]
pub struct OwnRows {
    /// The newest rows.
    pub memtable: Arc<Memtable>,
    /// A reader sees the rows up to this version.
    pub at: Version,
    files: Option<Arc<[Level]>>,
}

impl WriteMark {
    /// The number of writes before this mark.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl OwnRows {
    /// Files with older rows, newest first, each as a level of its own.
    pub fn files(&self) -> &[Level] {
        self.files.as_deref().unwrap_or_default()
    }

    /// The files that may have `key` according to their bounds, newest first.
    pub fn files_with_key(&self, key: &[u8]) -> impl Iterator<Item = &DbFile> {
        self.files().iter().flat_map(|level| level.iter()).filter(|file| file.may_contain(key)).map(|file| &**file)
    }
}

/// In a transaction of at most this many operations, a read of one key first looks through all of them. If none of
/// them writes to the key, it needs no memtable.
const SEARCHED_OPS: u32 = 16;

/// If at most this many operations come after the newest savepoint, a read of one key looks through them. If there
/// are more, it puts them into the memtable.
const SEARCHED_OPS_KEPT: u32 = 64;

impl OwnWrites {
    /// No writes yet, in a transaction that reads at `base`.
    pub fn new(base: Version) -> Self {
        Self {
            ops: BatchOps::new(),
            spilled: None,
            base,
            tables: Vec::new(),
            first_writes: Vec::new(),
            kept_to: None,
            #[cfg(test)]
            applied: Default::default(),
            filled: Mutex::default(),
        }
    }

    /// The number of writes.
    pub fn count(&self) -> u64 {
        self.in_runs() + u64::from(self.ops.count())
    }

    /// Whether the transaction has no writes.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// How many of the writes are in runs.
    pub fn in_runs(&self) -> u64 {
        self.runs().last().map_or(0, |run| run.through)
    }

    /// The version of the `count`-th write, counted from 1.
    pub fn version(&self, count: u64) -> Version {
        Version(self.base.0 + count)
    }

    /// Whether all writes are erases.
    pub fn is_erases_only(&self) -> bool {
        self.runs().iter().all(|run| run.is_erases_only) && self.ops.is_erases_only()
    }

    /// The tables that the writes go to, sorted by id.
    pub fn tables(&self) -> &[Arc<TableInfo>] {
        &self.tables
    }

    /// The writes in files, oldest first.
    pub fn runs(&self) -> &[Run] {
        self.spilled.as_deref().map_or(&[], |spilled| &spilled.runs)
    }

    fn files(&self) -> &[(TableId, Arc<[Level]>)] {
        self.spilled.as_deref().map_or(&[], |spilled| &spilled.files)
    }

    /// Replaces the runs from index `from` on with `run`.
    pub fn replace_runs(&mut self, from: usize, run: Option<Run>) {
        let mut runs = self.spilled.take().map_or_else(Vec::new, |spilled| spilled.runs);
        runs.truncate(from);
        runs.extend(run);
        if runs.is_empty() {
            return;
        }
        let mut files: Vec<(TableId, Vec<Level>)> = Vec::new();
        for (table, file) in runs.iter().rev().flat_map(|run| &run.files) {
            let level = Arc::new(vec![file.clone()]);
            match files.iter_mut().find(|(of, _)| of == table) {
                Some((_, levels)) => levels.push(level),
                None => files.push((*table, vec![level])),
            }
        }
        let files = files.into_iter().map(|(table, levels)| (table, levels.into())).collect();
        self.spilled = Some(Box::new(Spilled { runs, files }));
    }

    /// Adds `run`, which must contain all writes that were in no run.
    pub fn moved_into(&mut self, run: Run) {
        let runs = self.runs().len();
        self.replace_runs(runs, Some(run));
        self.clear_memory();
    }

    /// Forgets all writes that are in no run.
    pub fn clear_memory(&mut self) {
        self.ops.clear();
        self.filled.get_mut().clear();
    }

    /// Makes memtables of the writes that are in no run.
    pub fn memtables(&self) -> MemSet {
        let rows = MemSet::new(0, Arc::default());
        self.apply(&BatchMark::default(), &self.ops.mark(), |table| Some(rows.table_or_new(table)));
        rows
    }

    /// Puts the writes between the marks `from` and `to`, which must be in no run, into memtables. If `memtable`
    /// returns `None` for a table, its writes are left out.
    fn apply<'m>(&self, from: &BatchMark, to: &BatchMark, memtable: impl Fn(TableId) -> Option<&'m Arc<Memtable>>) {
        let first = self.in_runs() + u64::from(from.count());
        let versions = (self.base.0 + 1 + first..).map(Version);
        let ops = self.ops.iter_from(from).take((to.count() - from.count()) as usize);
        for (version, (table, op)) in versions.zip(ops) {
            #[cfg(test)]
            self.applied.fetch_add(1, os::sync::atomic::Ordering::Relaxed);
            let Some(memtable) = memtable(TableId(table)) else { continue };
            match op {
                Op::Put { key, value, until: None } => memtable.batch().apply(key, version, RowKind::Put, value),
                Op::Put { key, value, until: Some(until) } => memtable.batch().apply_until(key, version, until, value),
                // A function is called when the value is read.
                Op::Merge { key, operand } => {
                    memtable.batch().merge(key, version, operand, &MergeFunctions::default());
                }
                Op::Erase { key } => memtable.batch().apply(key, version, RowKind::Erase, &[]),
                Op::RangeErase { start, end } => drop(memtable.remove_range(start, end, version)),
            }
        }
    }

    /// The operations that are in no run.
    pub fn ops(&self) -> &BatchOps {
        &self.ops
    }

    /// The operations that are in no run, and the tables that all writes go to, sorted by id.
    pub fn parts_mut(&mut self) -> (&mut BatchOps, &[Arc<TableInfo>]) {
        (&mut self.ops, &self.tables)
    }

    /// Returns the operations, so that the caller can add a write to `table`.
    pub fn write_to(&mut self, table: &Arc<TableInfo>) -> &mut BatchOps {
        if let Err(place) = self.tables.binary_search_by_key(&table.id, |table| table.id) {
            self.tables.insert(place, table.clone());
            self.first_writes.insert(place, self.count());
        }
        &mut self.ops
    }

    /// Adds `ops`, which write to `tables`.
    pub fn append(&mut self, ops: &BatchOps, tables: &[Arc<TableInfo>]) {
        for table in tables {
            self.write_to(table);
        }
        self.ops.append(ops);
    }

    /// The position after the last write.
    pub fn mark(&self) -> WriteMark {
        WriteMark { count: self.count(), in_runs: self.in_runs(), in_memory: self.ops.mark() }
    }

    /// Takes back all writes after `mark`, none of which may be in a run.
    pub fn rewind(&mut self, mark: &WriteMark) {
        let in_memory = match mark.in_runs == self.in_runs() {
            true => mark.in_memory,
            false => self.ops.mark_after((mark.count - self.in_runs()) as u32),
        };
        self.ops.rewind(&in_memory);
        self.filled.get_mut().retain(|filled| filled.to <= in_memory);
        let mut first_writes = self.first_writes.iter();
        self.tables.retain(|_| first_writes.next().is_some_and(|first| *first < mark.count));
        self.first_writes.retain(|first| *first < mark.count);
    }

    /// Sets the newest savepoint.
    pub fn keep_to(&mut self, newest: Option<WriteMark>) {
        self.kept_to = newest;
    }

    /// The newest savepoint as a position among the writes in memory. If writes were spilled after it was set, this
    /// is the start of the writes in memory.
    fn kept_in_memory(&self) -> Option<BatchMark> {
        let kept = self.kept_to?;
        Some(if kept.in_runs == self.in_runs() { kept.in_memory } else { BatchMark::default() })
    }

    /// Makes the transaction read at `base` from now on. It must have no writes.
    pub fn rebase(&mut self, base: Version) {
        assert!(self.is_empty(), "the versions of own writes follow the base");
        self.base = base;
    }

    /// The rows that the transaction has written to `table`, if there are any.
    #[inline]
    pub fn rows(&self, table: TableId) -> Option<OwnRows> {
        if self.is_written(table) { Some(self.fill(table, &self.ops.mark())) } else { None }
    }

    fn is_written(&self, table: TableId) -> bool {
        self.tables.iter().any(|written| written.id == table) && !self.is_empty()
    }

    /// As [`OwnWrites::rows`], for a read of `key` only. `None` also if the transaction surely has not written to the
    /// key.
    #[inline]
    pub fn rows_for(&self, table: TableId, key: &[u8]) -> Option<OwnRows> {
        if self.spilled.is_none()
            && self.ops.count() <= SEARCHED_OPS
            && !self.ops.iter().any(|(of, op)| of == table.0 && op.writes_to(key))
        {
            return None;
        }
        match self.kept_in_memory() {
            Some(kept) if self.ops.count() - kept.count() <= SEARCHED_OPS_KEPT => self.rows_kept_for(&kept, table, key),
            _ => self.rows(table),
        }
    }

    /// As [`OwnWrites::rows_for`]. It puts no operation after `kept` into the memtable of `table`, so the memtable
    /// remains usable if the transaction goes back to `kept`.
    #[cold]
    fn rows_kept_for(&self, kept: &BatchMark, table: TableId, key: &[u8]) -> Option<OwnRows> {
        if !self.is_written(table) {
            return None;
        }
        let mut later = self.ops.iter_from(kept).filter(|(of, op)| *of == table.0 && op.writes_to(key)).peekable();
        if later.peek().is_none() {
            return Some(self.fill(table, kept));
        }
        if later.any(|(_, op)| matches!(op, Op::Merge { .. })) {
            // A merge needs the writes before it.
            return self.rows(table);
        }
        // An operation after `kept` writes to the key, so earlier ones do not matter.
        let memtable = Arc::new(Memtable::new());
        self.apply(kept, &self.ops.mark(), |of| (of == table).then_some(&memtable));
        Some(OwnRows { memtable, at: self.version(self.count()), files: None })
    }

    /// How many writes were put into memtables so far.
    #[cfg(test)]
    pub fn applied(&self) -> u64 {
        self.applied.load(os::sync::atomic::Ordering::Relaxed)
    }

    /// Fills the memtable of `table` up to `end`.
    #[cold]
    fn fill(&self, table: TableId, end: &BatchMark) -> OwnRows {
        let mut all = self.filled.lock();
        let place = all.iter().position(|filled| filled.table == table).unwrap_or_else(|| {
            all.push(FilledTable { table, memtable: Arc::new(Memtable::new()), to: BatchMark::default() });
            all.len() - 1
        });
        let FilledTable { memtable, to, .. } = &mut all[place];
        if *to < *end {
            self.apply(to, end, |of| (of == table).then_some(&*memtable));
            *to = *end;
        }
        let files = self.files().iter().find(|(of, _)| *of == table).map(|(_, files)| files.clone());
        OwnRows { memtable: memtable.clone(), at: self.version(self.count()), files }
    }
}
