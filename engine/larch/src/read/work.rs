//! What a transaction shares with its reads: its own writes, and the read sets in which its reads record their keys.

use crate::base::bounds;
use crate::base::ops::{BatchOps, Op};
use crate::base::table::{TableId, TableInfo};
use crate::conflicts::read_set::{OpenRead, ReadSet};
use crate::conflicts::recent::Running;
use crate::view::own_writes::{OwnRows, OwnWrites};
use os::sync::{Arc, Mutex, OnceLock};
use sst::{KeyRange, Version};

/// The work of a transaction so far.
#[derive(Debug)]
pub struct Work {
    /// What the transaction has written.
    pub writes: OwnWrites,
    /// Registers the transaction as running, with the tables that it has read or written.
    pub running: Running,
    keys: Mutex<ReadSet>,
    /// The ranges that were read, and the keys that scans of indexes look up later. Open ranges share this set. Created
    /// on first use.
    ranges: OnceLock<Arc<Mutex<ReadSet>>>,
    /// About how many bytes each of these sets may take.
    most_bytes: usize,
    /// Entries of unique indexes that may share their index key with other entries. Created on first use.
    doubtful: Option<Box<ReadSet>>,
    /// Whether every read is recorded, as serializable transactions need.
    notes_reads: bool,
}

impl Work {
    /// The work of a transaction that has not read or written yet, and reads at `base`. If `notes_reads`, all its
    /// reads are recorded, in about `most_bytes`.
    pub fn new(running: Running, base: Version, notes_reads: bool, most_bytes: usize) -> Self {
        let (writes, most_bytes) = (OwnWrites::new(base), most_bytes / 2);
        Self {
            writes,
            running,
            keys: Mutex::new(ReadSet::new(most_bytes)),
            ranges: OnceLock::new(),
            most_bytes,
            doubtful: None,
            notes_reads,
        }
    }

    /// Whether the transaction has certainly read nothing.
    pub fn has_read_nothing(&mut self) -> bool {
        self.notes_reads && self.keys.get_mut().is_empty() && self.ranges.get().is_none_or(|set| set.lock().is_empty())
    }

    /// Returns the operations, so that the caller can add a write to `table`.
    pub fn write_to(&mut self, table: &Arc<TableInfo>) -> &mut BatchOps {
        self.running.note(table.id);
        self.writes.write_to(table)
    }

    /// Adds `ops`, which write to `tables`.
    pub fn append(&mut self, ops: &BatchOps, tables: &[Arc<TableInfo>]) {
        tables.iter().for_each(|table| self.running.note(table.id));
        self.writes.append(ops, tables);
    }

    /// Makes the transaction depend on `key`, even if its reads are not recorded.
    pub fn depend_on(&mut self, table: TableId, key: &[u8]) {
        self.running.note(table);
        self.keys.get_mut().add_key(table, key);
    }

    /// Makes the transaction depend on `key`, which it also reads. Does nothing if reads are recorded, because then
    /// the read itself records the key.
    pub fn depend_on_read_key(&mut self, table: TableId, key: &[u8]) {
        if !self.notes_reads {
            self.depend_on(table, key);
        }
    }

    /// As [`Work::depend_on_read_key`], for a range.
    pub fn depend_on_read_range(&mut self, table: TableId, keys: Option<KeyRange>) {
        if let Some(keys) = keys.filter(|_| !self.notes_reads) {
            self.running.note(table);
            self.keys.get_mut().add_range(table, keys);
        }
    }

    /// Notes that two of the entries `keys` of the table `entries` may have the same index key, although it must be
    /// unique. Later writes may still resolve this, so the commit checks it.
    pub fn doubt(&mut self, entries: TableId, keys: KeyRange) {
        let most_bytes = self.most_bytes;
        self.doubtful.get_or_insert_with(|| Box::new(ReadSet::new(most_bytes))).add_range(entries, keys);
    }

    /// Takes the [doubtful](Work::doubt) entries.
    pub fn take_doubtful(&mut self) -> Option<Box<ReadSet>> {
        self.doubtful.take()
    }

    /// The set in which reads of `table` record the keys that they learn later. `None` if reads are not recorded.
    pub fn later_reads(&self, table: TableId) -> Option<Arc<Mutex<ReadSet>>> {
        self.notes_reads.then(|| {
            self.running.note(table);
            self.shared_reads().clone()
        })
    }

    fn shared_reads(&self) -> &Arc<Mutex<ReadSet>> {
        self.ranges.get_or_init(|| Arc::new(Mutex::new(ReadSet::new(self.most_bytes))))
    }

    /// Makes the transaction depend on the keys of its writes in memory, because `writes` forgets these keys when it
    /// moves the writes into files. Does nothing if reads are recorded.
    pub fn depend_on_writes(&mut self) {
        if self.notes_reads {
            return;
        }
        let keys = self.keys.get_mut();
        for (table, op) in self.writes.ops() {
            match op {
                Op::Put { key, .. } | Op::Merge { key, .. } | Op::Erase { key } => keys.add_key(TableId(table), key),
                Op::RangeErase { start, end } => {
                    let end = Some(end).filter(|end| !end.is_empty()).map(<[u8]>::to_vec);
                    keys.add_range(TableId(table), KeyRange { start: start.to_vec(), end });
                }
            }
        }
    }

    /// The keys of single-key reads.
    #[cfg(test)]
    pub fn keys(&mut self) -> &ReadSet {
        self.keys.get_mut()
    }

    /// Ends the transaction's work: returns the writes, the keys of single-key reads, and the other reads, for
    /// validation.
    pub fn finish(&mut self) -> (&mut OwnWrites, &ReadSet, Option<ReadSet>) {
        let take = |set: &Arc<Mutex<ReadSet>>| std::mem::replace(&mut *set.lock(), ReadSet::new(self.most_bytes));
        let ranges = self.ranges.get().map(take);
        (&mut self.writes, self.keys.get_mut(), ranges)
    }

    /// Begins a read of `key`: records it, and returns the transaction's own rows if they may decide about `key`.
    #[inline]
    pub fn read_key(&self, table: TableId, key: &[u8]) -> Option<OwnRows> {
        if self.notes_reads {
            self.running.note(table);
            self.keys.lock().add_key(table, key);
        }
        self.writes.rows_for(table, key)
    }

    /// Begins a read of `keys`: records them, and returns the transaction's own rows in the table.
    pub fn read_keys<K: AsRef<[u8]>>(&self, table: TableId, keys: &[K]) -> Option<OwnRows> {
        if self.notes_reads {
            self.running.note(table);
            let mut noted = self.keys.lock();
            keys.iter().for_each(|key| noted.add_key(table, key.as_ref()));
        }
        self.writes.rows(table)
    }

    /// Begins a read of a range. Returns the transaction's own rows in the table and the open record of the read,
    /// which the range closes when it is dropped.
    pub fn read_range(&self, table: TableId, (low, high): &bounds::Owned) -> (Option<OwnRows>, Option<OpenRead>) {
        let (low, high) = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
        let keys = KeyRange::between(low, high).filter(|_| self.notes_reads);
        let open = keys.map(|keys| {
            self.running.note(table);
            OpenRead::begin(self.shared_reads(), table, keys)
        });
        (self.writes.rows(table), open)
    }
}
