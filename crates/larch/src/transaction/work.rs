//! What a transaction gives to its reads: its own writes, and where they note what they have read.

use super::own_writes::{OwnRows, OwnWrites};
use super::read_set::{OpenRead, ReadSet};
use crate::bounds;
use crate::manifest::TableId;
use os::sync::{Arc, Mutex};
use sst::KeyRange;

/// The work of a transaction so far.
#[derive(Debug)]
pub struct Work {
    /// What it has written.
    pub writes: OwnWrites,
    /// What it has read.
    pub reads: Arc<Mutex<ReadSet>>,
    /// Whether every read is noted.
    pub notes_reads: bool,
}

impl Work {
    /// A read of `key` begins. The rows that lie over it.
    #[inline]
    pub fn read_key(&self, table: TableId, key: &[u8]) -> Option<OwnRows> {
        if self.notes_reads {
            self.reads.lock().add_key(table, key);
        }
        self.writes.rows_for(table, key)
    }

    /// A read of `keys` begins. The rows that lie over the table.
    pub fn read_keys<K: AsRef<[u8]>>(&self, table: TableId, keys: &[K]) -> Option<OwnRows> {
        if self.notes_reads {
            let mut reads = self.reads.lock();
            keys.iter().for_each(|key| reads.add_key(table, key.as_ref()));
        }
        self.writes.rows(table)
    }

    /// A read of a range begins. The rows that lie over the table, and what the range ends when it is dropped.
    pub fn read_range(&self, table: TableId, (low, high): &bounds::Owned) -> (Option<OwnRows>, Option<OpenRead>) {
        let (low, high) = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
        let keys = KeyRange::between(low, high).filter(|_| self.notes_reads);
        (self.writes.rows(table), keys.map(|keys| OpenRead::begin(&self.reads, table, keys)))
    }
}
