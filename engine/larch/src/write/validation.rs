//! Looks for conflicts: compares the keys on which a transaction depends with all commits since it began. This
//! module does not know how a commit gets its version.
//!
//! A transaction is compared twice: first, without a lock, with the commits that are visible then; and again, under
//! the writer's lock, with the few commits that came since. The lock keeps other commits from coming between the
//! second comparison and the transaction's own commit.

use crate::base::conflict::Conflict;
use crate::base::ops::{CommitOps, Op};
use crate::base::table::TableId;
use crate::conflicts::read_set::ReadSet;
use crate::conflicts::recent::{FlushedKeys, Recent, Tables};
use crate::conflicts::signature::{LatestKeys, Signature};
use crate::memtable::Memtable;
use crate::memtable::set::MemSet;
use crate::view::View;
use os::sync::Arc;
use sst::{KeyRange, Version};

/// The keys on which a transaction depends, and how far it was compared with other commits.
#[derive(Debug)]
pub struct Validation<'t> {
    began: Version,
    reads: [Option<&'t ReadSet>; 2],
    /// The tables that the transaction has read or to which it has written.
    tables: Tables,
    /// Whether the transaction depends on the keys that it writes, so that another commit to these keys is a
    /// conflict.
    guards_writes: bool,
    /// The transaction was compared with all commits up to this version.
    compared: Version,
}

/// What recent commits have written: the rows in memory, and the keys of rows that were flushed.
struct Commits<'v> {
    memory: &'v [Arc<MemSet>],
    flushed: FlushedKeys,
}

impl<'t> Validation<'t> {
    /// A validation for a transaction that began at the version `began` and has read or written `tables`. `reads`
    /// are up to two sets of keys that it has read. With `guards_writes`, it also depends on the keys that it
    /// writes.
    pub fn new(began: Version, tables: Tables, reads: [Option<&'t ReadSet>; 2], guards_writes: bool) -> Self {
        let reads = reads.map(|set| set.filter(|set| !set.is_empty()));
        Self { began, reads, tables, guards_writes, compared: began }
    }

    /// Whether the transaction depends on nothing.
    fn is_trivial(&self) -> bool {
        self.reads.iter().all(Option::is_none) && !self.guards_writes
    }

    /// Whether the transaction has yet to be compared with some commit up to `to`.
    pub fn is_behind(&self, to: Version) -> bool {
        to > self.compared && !self.is_trivial()
    }

    /// The signature of the keys on which the transaction depends. `ops` are its writes.
    pub fn keys(&self, ops: CommitOps<'_>) -> Signature {
        let mut keys = if self.guards_writes { Signature::of_ops(ops) } else { Signature::NONE };
        for reads in self.reads.into_iter().flatten() {
            if reads.ranges().next().is_some() {
                return Signature::ANY;
            }
            reads.keys().for_each(|(table, key)| keys.add(table, key));
        }
        keys
    }

    /// Whether one of `keys` may have been changed by a commit up to `to` with which the transaction was not
    /// compared yet, judging by the signatures in `commits`. If not, the transaction counts as compared up to `to`.
    pub fn may_be_changed(&mut self, commits: &LatestKeys, keys: Signature, to: Version) -> bool {
        let may_be = commits.may_have(keys, self.compared, to);
        if !may_be {
            self.compared = to;
        }
        may_be
    }

    /// Compares the transaction with the commits up to `to` with which it was not compared yet. All commits up to
    /// `to` must be in the memory or the files of `view`.
    ///
    /// # Errors
    ///
    /// [`Conflict::Changed`] if one of them has changed a key on which the transaction depends;
    /// [`Conflict::TooOld`] if the keys of some of them are no longer known.
    pub fn compare(&mut self, view: &View, recent: &Recent, ops: CommitOps<'_>, to: Version) -> Result<(), Conflict> {
        if !self.is_behind(to) {
            return Ok(());
        }
        let too_old = |oldest| Conflict::TooOld { began: self.began, oldest };
        let flushed = recent.commits(self.compared, self.tables).map_err(too_old)?;
        let commits = Commits { memory: &view.memory, flushed };
        if let Some((table, key)) = self.changed(&commits, ops) {
            let name =
                view.files.tables.get(&table).map_or_else(|| "(dropped)".to_owned(), |files| files.info.name.clone());
            return Err(Conflict::Changed { table: name, key: key.into() });
        }
        self.compared = to;
        Ok(())
    }

    /// A key on which the transaction depends and which one of `commits` has changed.
    fn changed(&self, commits: &Commits<'_>, ops: CommitOps<'_>) -> Option<(TableId, Vec<u8>)> {
        let since = self.compared;
        let key = |(table, key): (TableId, &[u8])| commits.changed_key(table, key, since);
        let range = |(table, range): (TableId, KeyRange<&[u8]>)| commits.changed_range(table, &range, since);
        for reads in self.reads.into_iter().flatten() {
            let ranges = reads.ranges().map(|(table, keys)| (*table, borrowed(keys)));
            if let Some(found) = reads.keys().find_map(key).or_else(|| { ranges }.find_map(range)) {
                return Some(found);
            }
        }
        let mut written = ops.iter().filter(|_| self.guards_writes);
        written.find_map(|(table, op)| match op {
            Op::Put { key: written, .. } | Op::Erase { key: written } => key((TableId(table), written)),
            // A merge takes effect after those of other commits.
            Op::Merge { .. } => None,
            Op::RangeErase { start, end } => {
                let keys = KeyRange { start, end: Some(end).filter(|end| !end.is_empty()) };
                range((TableId(table), keys))
            }
        })
    }
}

fn borrowed(range: &KeyRange) -> KeyRange<&[u8]> {
    KeyRange { start: range.start.as_slice(), end: range.end.as_deref() }
}

impl Commits<'_> {
    /// The memtables of `table` that may have rows of commits after `since`.
    fn memtables(&self, table: TableId, since: Version) -> impl Iterator<Item = &Arc<Memtable>> {
        let sets = self.memory.iter().filter(move |set| set.newest() > since);
        sets.filter_map(move |set| set.table(table)).chain(self.flushed.of(table, since))
    }

    fn changed_key(&self, table: TableId, key: &[u8], since: Version) -> Option<(TableId, Vec<u8>)> {
        let is_changed = self.memtables(table, since).any(|memtable| memtable.has_changed(key, since));
        is_changed.then(|| (table, key.to_vec()))
    }

    fn changed_range(&self, table: TableId, keys: &KeyRange<&[u8]>, since: Version) -> Option<(TableId, Vec<u8>)> {
        let mut found = self.memtables(table, since).filter_map(|memtable| memtable.changed_key(keys, since));
        found.next().map(|key| (table, key))
    }
}
