//! The memory for the rows of one database. This module gives chunks to arenas, and counts the memory of flushed rows
//! that only the values held by the program keep alive. It knows nothing of rows.
//!
//! Large chunks come from a pool on huge pages. After a flush they go back to the pool and from there to the next
//! memtables, so the system need not zero their memory again. Huge pages matter because a search follows about 25
//! pointers to as many pages: with pages of 4 KiB, most of them would miss the processor's TLB. A database that never
//! has many rows in memory has no pool.
//!
//! A value that was read from a memtable borrows its bytes from the arena. So it keeps the whole arena alive, even
//! when the arena's rows are in files, and a program may hold such values as long as it likes. Once they keep more
//! than a quarter of the write buffer, further values are copied. So they never keep more than this quarter plus the
//! arenas that were in use when it was exceeded, which take at most one write buffer.
//!
//! A value that merges have made for a reader lies in an arena of its own. It keeps nothing else alive, so a copy of it
//! would save nothing. Such arenas are counted apart, and may always be kept.
//!
//! Thread-safe.

use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, OnceLock};
use os::{Arena as Pool, Buffer};

/// The size of the chunks that come from the pool: half of a huge page, and the longest run of memory that the pool
/// gives out.
pub(super) const POOL_CHUNK_BYTES: usize = 1 << 20;

/// The memory for the rows of one database. The default has no pool, and lends bytes to values only until they keep
/// some flushed arena alive.
#[derive(Debug, Default)]
pub struct RowMemory {
    pool: OnceLock<Arc<Pool>>,
    pool_bytes: u64,
    kept_bytes: AtomicU64,
    /// The bytes of arenas of one piece.
    alone_bytes: AtomicU64,
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
        // The pool may have run out because values keep many chunks of flushed rows.
        pooled.unwrap_or_else(|| Buffer::zeroed(bytes))
    }

    /// Returns the pool's unused memory to the system.
    pub fn give_back(&self) {
        if let Some(pool) = self.pool.get() {
            pool.set_limit(0);
            pool.set_limit(self.pool_bytes);
        }
    }

    /// The bytes of row memory except for the arenas whose rows are not in files yet.
    pub fn other_bytes(&self) -> u64 {
        let spare = |pool: &Arc<Pool>| pool.backed_bytes().saturating_sub(pool.used_bytes()) + pool.overhead_bytes();
        let alone = self.alone_bytes.load(Ordering::Relaxed);
        self.kept_bytes() + alone + self.pool.get().map_or(0, spare)
    }

    /// The bytes of the arenas that are kept although their rows are in files.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes.load(Ordering::Relaxed)
    }

    /// Whether values may keep further arenas of memtables alive.
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

    /// Counts an arena of one piece.
    pub(super) fn keep_alone(&self, bytes: u64) {
        self.alone_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn free_alone(&self, bytes: u64) {
        self.alone_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
