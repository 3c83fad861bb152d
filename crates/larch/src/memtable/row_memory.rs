//! The memory for the rows of one database. This module gives chunks to arenas. It counts the memory of flushed
//! rows that stays only because values of the program use it. This module does not know rows.
//!
//! Large chunks come from a pool on huge pages. After a flush, the pool takes the chunks back and gives them to
//! the next memtables, so the system need not zero their memory again. The pages are huge because a search follows
//! about 25 pointers to as many pages. With pages of 4 KiB, the processor would have to look most of these pages
//! up. A database that never had many rows in memory has no pool.
//!
//! A value that was read from a memtable borrows its bytes from the arena. So the value keeps the whole arena in
//! memory, even when the rows of the arena are in files. A program may keep such values as long as it likes. When
//! such values keep more than a quarter of the write buffer, values that are read after that are copies. So values
//! never keep more than this quarter and, in addition, the arenas that were in use when the quarter was exceeded.
//! The arenas in use take at most one write buffer.
//!
//! Thread safe.

use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, OnceLock};
use os::{Arena as Pool, Buffer};

/// Chunks of this size come from the pool. It is half of a huge page, and the longest run of memory that the pool
/// gives out.
pub(super) const POOL_CHUNK_BYTES: usize = 1 << 20;

/// The memory for the rows of one database. The default value has no pool. With it, values borrow bytes until some
/// value keeps a flushed arena in memory.
#[derive(Debug, Default)]
pub struct RowMemory {
    pool: OnceLock<Arc<Pool>>,
    pool_bytes: u64,
    kept_bytes: AtomicU64,
    lending_bytes: u64,
}

impl RowMemory {
    /// The memory for a database with a write buffer of `write_buffer_bytes` bytes.
    pub fn new(write_buffer_bytes: u64) -> Self {
        Self { pool_bytes: write_buffer_bytes, lending_bytes: write_buffer_bytes / 4, ..Self::default() }
    }

    /// A buffer of at least `bytes` bytes.
    pub(super) fn chunk(&self, bytes: usize) -> Buffer {
        let is_pooled = bytes == POOL_CHUNK_BYTES && self.pool_bytes > 0;
        let pooled = is_pooled.then(|| self.pool.get_or_init(|| Pool::new(self.pool_bytes)).buffer(bytes)).flatten();
        // If values keep many chunks with flushed rows, the pool may have no chunk left.
        pooled.unwrap_or_else(|| Buffer::zeroed(bytes))
    }

    /// Returns pool memory that no arena uses to the system.
    pub fn give_back(&self) {
        if let Some(pool) = self.pool.get() {
            pool.set_limit(0);
            pool.set_limit(self.pool_bytes);
        }
    }

    /// The row memory of the database in bytes, without the arenas whose rows are not in files yet.
    pub fn other_bytes(&self) -> u64 {
        let spare = |pool: &Arc<Pool>| pool.backed_bytes().saturating_sub(pool.used_bytes()) + pool.overhead_bytes();
        self.kept_bytes() + self.pool.get().map_or(0, spare)
    }

    /// The memory of the arenas that are still kept although their rows are in files, in bytes.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes.load(Ordering::Relaxed)
    }

    /// Whether values may keep more memory.
    #[inline]
    pub(super) fn may_lend(&self) -> bool {
        self.kept_bytes() <= self.lending_bytes
    }

    pub(super) fn keep(&self, bytes: u64) {
        self.kept_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn free(&self, bytes: u64) {
        self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
