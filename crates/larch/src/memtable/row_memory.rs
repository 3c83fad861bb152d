//! The memory for the rows of one database. It gives chunks to arenas, and counts the memory that only values keep.
//! This module does not know rows.
//!
//! Large chunks come from a pool on huge pages. After a flush, the pool takes chunks back and gives them to the
//! next memtables, so the system need not zero their memory again. (A search follows about 25 pointers to as many
//! pages, and with pages of 4 KiB the processor would have to look most of them up.) A database that never had many
//! rows in memory has no pool.
//!
//! A value that was read from a memtable borrows its bytes from the arena. So the value keeps the whole arena in
//! memory, even when the rows of the arena are in files. A program may keep such values as long as it likes. While
//! such values keep more than a certain part of the write buffer, further values are copies. So values never keep
//! more than this part plus the arenas that were in use when they exceeded it. These arenas take at most one write
//! buffer.
//!
//! Thread safe.

use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, OnceLock};
use os::{Arena as Pool, Buffer};

/// Chunks of this size come from the pool. It is half of a huge page, which is the longest run that the pool has.
pub(super) const POOL_CHUNK_BYTES: usize = 1 << 20;

/// The memory for the rows of one database. By default there is no pool, and values borrow bytes until some flushed
/// arena is kept.
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
        // The pool may be empty while values keep flushed rows.
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

    /// The memory of arenas whose rows are in files, in bytes.
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
