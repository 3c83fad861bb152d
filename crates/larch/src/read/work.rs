//! What a transaction gives to its reads: its own writes, and the sets in which its reads note what they have read.

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
    /// The tables that the transaction has read or written.
    pub running: Running,
    keys: Mutex<ReadSet>,
    /// The ranges that were read, and what reads note later. Open ranges share this set. It is made when it is first
    /// needed.
    ranges: OnceLock<Arc<Mutex<ReadSet>>>,
    /// About how many bytes each of these sets may take.
    most_bytes: usize,
    /// Entries of unique indexes beside which there may be other entries with the same key. The set is made for the
    /// first such entry.
    doubtful: Option<Box<ReadSet>>,
    /// Whether every read is noted.
    notes_reads: bool,
}

impl Work {
    /// The work of a transaction that has done nothing yet, is `running` and reads at `base`. If it `notes_reads`,
    /// all its reads are noted, in about `most_bytes`.
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

    /// Whether it is certain that the transaction has read nothing.
    pub fn has_read_nothing(&mut self) -> bool {
        self.notes_reads && self.keys.get_mut().is_empty() && self.ranges.get().is_none_or(|set| set.lock().is_empty())
    }

    /// The place where a write to `table` is added.
    pub fn write_to(&mut self, table: &Arc<TableInfo>) -> &mut BatchOps {
        self.running.note(table.id);
        self.writes.write_to(table)
    }

    /// Adds the writes `ops` to `tables`.
    pub fn append(&mut self, ops: &BatchOps, tables: &[Arc<TableInfo>]) {
        tables.iter().for_each(|table| self.running.note(table.id));
        self.writes.append(ops, tables);
    }

    /// Notes that the transaction depends on `key`, even if its reads are not noted.
    pub fn depend_on(&mut self, table: TableId, key: &[u8]) {
        self.running.note(table);
        self.keys.get_mut().add_key(table, key);
    }

    /// Notes that the transaction depends on `key`, which it reads. If reads are noted, the read itself notes this,
    /// so nothing is done.
    pub fn depend_on_read_key(&mut self, table: TableId, key: &[u8]) {
        if !self.notes_reads {
            self.depend_on(table, key);
        }
    }

    /// As [`Work::depend_on_read_key`], for a range that is read.
    pub fn depend_on_read_range(&mut self, table: TableId, keys: Option<KeyRange>) {
        if let Some(keys) = keys.filter(|_| !self.notes_reads) {
            self.running.note(table);
            self.keys.get_mut().add_range(table, keys);
        }
    }

    /// Notes that two of the entries `keys` in the table `entries` may have the same index key, which is unique.
    /// Writes that are still to come decide whether they have the same key at the end.
    pub fn doubt(&mut self, entries: TableId, keys: KeyRange) {
        let most_bytes = self.most_bytes;
        self.doubtful.get_or_insert_with(|| Box::new(ReadSet::new(most_bytes))).add_range(entries, keys);
    }

    /// What was [doubted](Work::doubt).
    pub fn take_doubtful(&mut self) -> Option<Box<ReadSet>> {
        self.doubtful.take()
    }

    /// Where reads of `table` that go on later note their keys. `None` if reads are not noted.
    pub fn later_reads(&self, table: TableId) -> Option<Arc<Mutex<ReadSet>>> {
        self.notes_reads.then(|| {
            self.running.note(table);
            self.shared_reads().clone()
        })
    }

    fn shared_reads(&self) -> &Arc<Mutex<ReadSet>> {
        self.ranges.get_or_init(|| Arc::new(Mutex::new(ReadSet::new(self.most_bytes))))
    }

    /// If reads are not noted, notes that the transaction depends on its writes in memory: `writes` forgets their
    /// keys when they move into files. If reads are noted, it does nothing.
    pub fn depend_on_writes(&mut self) {
        if self.notes_reads {
            return;
        }
        let keys = self.keys.get_mut();
        for (table, op) in self.writes.ops() {
            match op {
                Op::Put { key, .. } | Op::Erase { key } => keys.add_key(TableId(table), key),
                Op::RangeErase { start, end } => {
                    let end = Some(end).filter(|end| !end.is_empty()).map(<[u8]>::to_vec);
                    keys.add_range(TableId(table), KeyRange { start: start.to_vec(), end });
                }
            }
        }
    }

    /// The keys that were read one by one.
    #[cfg(test)]
    pub fn keys(&mut self) -> &ReadSet {
        self.keys.get_mut()
    }

    /// The writes, the keys that were read one by one, and the other reads. No more reads are noted.
    pub fn finish(&mut self) -> (&mut OwnWrites, &ReadSet, Option<ReadSet>) {
        let take = |set: &Arc<Mutex<ReadSet>>| std::mem::replace(&mut *set.lock(), ReadSet::new(self.most_bytes));
        let ranges = self.ranges.get().map(take);
        (&mut self.writes, self.keys.get_mut(), ranges)
    }

    /// A read of `key` begins. Returns the transaction's own rows that lie over `key`.
    #[inline]
    pub fn read_key(&self, table: TableId, key: &[u8]) -> Option<OwnRows> {
        if self.notes_reads {
            self.running.note(table);
            self.keys.lock().add_key(table, key);
        }
        self.writes.rows_for(table, key)
    }

    /// A read of `keys` begins. Returns the transaction's own rows that lie over the table.
    pub fn read_keys<K: AsRef<[u8]>>(&self, table: TableId, keys: &[K]) -> Option<OwnRows> {
        if self.notes_reads {
            self.running.note(table);
            let mut noted = self.keys.lock();
            keys.iter().for_each(|key| noted.add_key(table, key.as_ref()));
        }
        self.writes.rows(table)
    }

    /// A read of a range begins. Returns the transaction's own rows that lie over the table, and the note of the
    /// read. The range closes this note when it is dropped.
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
