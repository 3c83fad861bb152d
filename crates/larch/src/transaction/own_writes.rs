//! The writes of a transaction, which its own reads see before they are committed. It does not know how rows are read.
//!
//! The writes are the operations of one batch, in order. When a read of their table needs them, they are also put into a memtable of
//! their own, which lies over all other memtables. There the operation number `i` has the version `base + 1 + i`, newer than
//! everything that the transaction can see. So a range goes on seeing what was written when it began.
//!
//! Going back to a savepoint cuts the operations off. The memtable cannot lose rows, so it is left, and another one is filled when it
//! is needed.

use crate::manifest::{TableId, TableInfo};
use crate::memtable::Memtable;
use crate::write::batch::{BatchMark, BatchOps, Op};
use os::sync::{Arc, Mutex};
use sst::{RowKind, Version};

/// The writes of a transaction.
#[derive(Debug)]
pub struct OwnWrites {
    ops: BatchOps,
    /// The version that the transaction reads.
    base: Version,
    /// The tables that are written to, sorted by their ids.
    tables: Vec<Arc<TableInfo>>,
    filled: Mutex<Vec<FilledTable>>,
}

/// A memtable of own writes to a table.
#[derive(Debug)]
struct FilledTable {
    table: TableId,
    memtable: Arc<Memtable>,
    /// The operations of which it has those of its table.
    to: BatchMark,
}

/// The rows that a transaction has written to a table, up to one of its operations. They lie over all other rows.
#[derive(Clone, Debug)]
pub struct OwnRows {
    /// The rows.
    pub memtable: Arc<Memtable>,
    /// The version up to which they count.
    pub at: Version,
}

/// A read of one key looks through so many operations before a memtable is made.
const SEARCHED_OPS: u32 = 16;

impl OwnWrites {
    /// No writes, of a transaction that reads at `base`.
    pub fn new(base: Version) -> Self {
        Self { ops: BatchOps::new(), base, tables: Vec::new(), filled: Mutex::default() }
    }

    /// The operations.
    pub fn ops(&self) -> &BatchOps {
        &self.ops
    }

    /// The operations and the tables that they write to, sorted by their ids.
    pub fn parts_mut(&mut self) -> (&mut BatchOps, &[Arc<TableInfo>]) {
        (&mut self.ops, &self.tables)
    }

    /// What adds a write to `table`.
    pub fn write_to(&mut self, table: &Arc<TableInfo>) -> &mut BatchOps {
        if let Err(place) = self.tables.binary_search_by_key(&table.id, |table| table.id) {
            self.tables.insert(place, table.clone());
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

    /// Where it is now.
    pub fn mark(&self) -> BatchMark {
        self.ops.mark()
    }

    /// Takes back all writes after `mark`.
    pub fn rewind(&mut self, mark: &BatchMark) {
        self.ops.rewind(mark);
        self.filled.get_mut().retain(|filled| filled.to <= *mark);
        let ops = &self.ops;
        self.tables.retain(|table| ops.iter().any(|(of, _)| of == table.id.0));
    }

    /// The transaction reads at `base` from now on. It has no writes.
    pub fn rebase(&mut self, base: Version) {
        assert!(self.ops.is_empty(), "the versions of own writes follow the base");
        self.base = base;
    }

    /// The rows that lie over `table`, if there are any.
    #[inline]
    pub fn rows(&self, table: TableId) -> Option<OwnRows> {
        let is_written = self.tables.iter().any(|written| written.id == table);
        if is_written && !self.ops.is_empty() { Some(self.fill(table)) } else { None }
    }

    /// As [`OwnWrites::rows`], for a read of `key` alone.
    #[inline]
    pub fn rows_for(&self, table: TableId, key: &[u8]) -> Option<OwnRows> {
        if self.ops.count() <= SEARCHED_OPS && !self.ops.iter().any(|(of, op)| of == table.0 && op.writes_to(key)) {
            return None;
        }
        self.rows(table)
    }

    /// Brings the memtable of `table` up to date.
    #[cold]
    fn fill(&self, table: TableId) -> OwnRows {
        let mut all = self.filled.lock();
        let place = all.iter().position(|filled| filled.table == table).unwrap_or_else(|| {
            all.push(FilledTable { table, memtable: Arc::new(Memtable::new()), to: BatchMark::default() });
            all.len() - 1
        });
        let FilledTable { memtable, to, .. } = &mut all[place];
        let first = u64::from(to.count());
        for (version, (of, op)) in (self.base.0 + 1 + first..).map(Version).zip(self.ops.iter_from(to)) {
            if of != table.0 {
                continue;
            }
            match op {
                Op::Put { key, value } => memtable.batch().apply(key, version, RowKind::Put, value),
                Op::Erase { key } => memtable.batch().apply(key, version, RowKind::Erase, &[]),
                Op::RangeErase { start, end } => drop(memtable.remove_range(start, end, version)),
            }
        }
        *to = self.ops.mark();
        OwnRows { memtable: memtable.clone(), at: Version(self.base.0 + u64::from(self.ops.count())) }
    }
}
