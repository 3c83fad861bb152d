//! Memory that is handed out in pieces and freed as a whole. This module does not know what is in a piece.
//!
//! ```text
//! chunk    4 KiB | 4 KiB | … | an eighth of what there is | … | 1 MiB | 1 MiB      and one for each large piece
//!                                                                  ▲ current: pieces come from here, one after the other
//! ```
//!
//! A new chunk is an eighth of the size of all chunks before it, but at least 4 KiB. Once this eighth would be 256
//! KiB or more, new chunks have 1 MiB. So a thousand small arenas stay small, and a large arena has few chunks. A
//! piece larger than a quarter of a new chunk gets a chunk of its own, so that little is lost at the ends of chunks.
//!
//! Invariants:
//! - A piece does not move while the arena lives, and no two pieces share a byte.
//! - Two arenas from which one thread allocates the same sizes in the same order use the same number of bytes. So a
//!   simulated run can be repeated exactly.
//!
//! Thread-safe. A piece costs one atomic addition, and a chunk takes a lock.

use super::row_memory::{POOL_CHUNK_BYTES, RowMemory};
use os::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use os::sync::{Arc, Mutex};
use os::{BLOCK_BYTES, Buffer};
use std::ptr::{self, NonNull};

/// Pieces begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;

/// When an eighth of the arena is at least this large, new chunks have [`POOL_CHUNK_BYTES`].
const LARGE_CHUNK: usize = 256 << 10;

/// Memory for pieces.
#[derive(Debug)]
pub struct Arena {
    /// The chunk from which pieces are taken. Null before the first piece.
    current: AtomicPtr<Chunk>,
    /// The bytes of all chunks.
    bytes: AtomicU64,
    /// All chunks, made by `Box::leak`. Locked while a chunk is added.
    chunks: Mutex<Vec<NonNull<Chunk>>>,
    origin: Origin,
    is_flushed: AtomicBool,
}

/// Where the chunks of an arena come from, and where their bytes are counted.
#[derive(Debug)]
enum Origin {
    /// From this memory, for the rows of a memory set. They are counted there once the rows are flushed.
    Set(Arc<RowMemory>),
    /// From the allocator, as the only chunk of an arena of one piece. It is counted here, if it is counted.
    Alone(Option<Arc<RowMemory>>),
}

/// A buffer whose bytes are handed out in order, from its first byte to its last.
#[derive(Debug)]
struct Chunk {
    /// The start of the memory, aligned to [`ALIGNMENT`].
    start: NonNull<u8>,
    capacity: usize,
    /// How many bytes were requested from this chunk. Exceeds `capacity` after a request that found no room.
    asked: AtomicUsize,
    /// Owns the memory of the chunk. It is only there to be dropped.
    #[expect(dead_code, reason = "it frees the memory when it is dropped")]
    owner: Owner,
}

/// The owner of a chunk's memory.
#[derive(Debug)]
#[expect(dead_code, reason = "they free the memory when they are dropped")]
enum Owner {
    Buffer(Buffer),
    /// The memory of an arena for one piece.
    Words(Vec<u64>),
}

// SAFETY: the arena owns the chunks. Nothing in a chunk changes except its atomic counter, and the arena hands out
// each byte only once.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena without chunks, which it will get from `memory`.
    pub fn new(memory: Arc<RowMemory>) -> Self {
        Self::with(Origin::Set(memory), Vec::new())
    }

    fn with(origin: Origin, chunks: Vec<NonNull<Chunk>>) -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
            bytes: AtomicU64::new(0),
            chunks: Mutex::new(chunks),
            origin,
            is_flushed: AtomicBool::new(false),
        }
    }

    /// An arena that belongs to no memtable, with one piece of `bytes` bytes, and the piece. The arena takes about as
    /// much memory as the piece, which is counted in `memory` while the arena lives, if there is one. Nobody asks it
    /// for further pieces.
    pub(super) fn of_one(memory: Option<Arc<RowMemory>>, bytes: usize) -> (Self, NonNull<u8>) {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        if let Some(memory) = &memory {
            memory.keep_alone(bytes as u64);
        }
        let arena = Self::with(Origin::Alone(memory), Vec::with_capacity(1));
        let chunk = arena.add(&mut arena.chunks.lock(), Chunk::of_words(bytes / ALIGNMENT));
        // SAFETY: the chunk was just made and lives as long as the arena.
        let piece = unsafe { chunk.as_ref() }.take(bytes).expect("the chunk is as long as the piece");
        (arena, piece)
    }

    /// A piece of `bytes` bytes with undefined content, aligned to [`ALIGNMENT`]. The caller owns it while the arena
    /// lives.
    #[inline]
    pub(super) fn allocate(&self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        loop {
            let seen = self.current.load(Ordering::Acquire);
            // SAFETY: `current` is null or leads to a chunk that `add` has made. The chunk was complete before the
            // release store that made it the current one, and it lives as long as the arena.
            let chunk = unsafe { seen.as_ref() };
            if let Some(chunk) = chunk.filter(|chunk| bytes <= chunk.capacity / 4)
                && let Some(piece) = chunk.take(bytes)
            {
                return piece;
            }
            if let Some(piece) = self.grow(seen, bytes) {
                return piece;
            }
        }
    }

    /// Adds a new current chunk, if `seen` is still the current one. If a piece of `bytes` bytes needs a chunk of its
    /// own, adds that chunk instead and returns the piece.
    #[cold]
    fn grow(&self, seen: *mut Chunk, bytes: usize) -> Option<NonNull<u8>> {
        let mut chunks = self.chunks.lock();
        if self.current.load(Ordering::Acquire) != seen {
            return None;
        }
        let eighth = (self.bytes.load(Ordering::Relaxed) / 8) as usize;
        let capacity = if eighth < LARGE_CHUNK { eighth.max(BLOCK_BYTES) } else { POOL_CHUNK_BYTES };
        if bytes > capacity / 4 {
            // SAFETY: the chunk was just made and lives as long as the arena.
            return unsafe { self.add(&mut chunks, self.chunk(bytes)).as_ref() }.take(bytes);
        }
        let chunk = self.add(&mut chunks, self.chunk(capacity));
        self.current.store(chunk.as_ptr(), Ordering::Release);
        None
    }

    /// A chunk of at least `bytes` bytes.
    fn chunk(&self, bytes: usize) -> Chunk {
        let Origin::Set(memory) = &self.origin else { unreachable!("nobody asks for a second piece") };
        Chunk::new(memory.chunk(bytes.next_multiple_of(BLOCK_BYTES)))
    }

    /// Adds a chunk.
    fn add(&self, chunks: &mut Vec<NonNull<Chunk>>, chunk: Chunk) -> NonNull<Chunk> {
        self.bytes.fetch_add(chunk.capacity as u64, Ordering::Relaxed);
        let chunk = NonNull::from(Box::leak(Box::new(chunk)));
        chunks.push(chunk);
        chunk
    }

    /// The bytes of all chunks.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The bytes of all chunks without the unused rest of the current one. Grows with every piece.
    pub fn used_bytes(&self) -> u64 {
        // SAFETY: as in `allocate`.
        let chunk = unsafe { self.current.load(Ordering::Acquire).as_ref() };
        let rest = chunk.map_or(0, |chunk| chunk.capacity.saturating_sub(chunk.asked.load(Ordering::Relaxed)));
        // `bytes` grows before the new chunk becomes the current one, so it is at least `rest`.
        self.bytes() - rest as u64
    }

    /// Called when the rows were flushed and no view has them any more, so that only readers keep the arena alive.
    /// Nobody asks for pieces after this call.
    pub(super) fn note_flushed(&self) {
        if let Origin::Set(memory) = &self.origin
            && !self.is_flushed.swap(true, Ordering::Relaxed)
        {
            memory.keep(self.bytes());
        }
    }

    /// Whether a value may keep the arena alive for an unlimited time. A value alone in its arena keeps only itself.
    #[inline]
    pub(super) fn may_be_kept(&self) -> bool {
        match &self.origin {
            Origin::Set(memory) => memory.may_lend(),
            Origin::Alone(_) => true,
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        match &self.origin {
            Origin::Set(memory) if self.is_flushed.load(Ordering::Relaxed) => memory.free(self.bytes()),
            Origin::Alone(Some(memory)) => memory.free_alone(self.bytes()),
            Origin::Set(_) | Origin::Alone(None) => {}
        }
        for chunk in self.chunks.get_mut().drain(..) {
            // SAFETY: `add` has leaked the chunk, and the arena is being dropped, so nothing else refers to the
            // chunk.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}

impl Chunk {
    fn new(mut buffer: Buffer) -> Self {
        let (start, capacity) = (NonNull::from(&mut *buffer).cast(), buffer.len());
        Self { start, capacity, asked: AtomicUsize::new(0), owner: Owner::Buffer(buffer) }
    }

    /// A chunk of this many words, each of [`ALIGNMENT`] bytes.
    fn of_words(words: usize) -> Self {
        const { assert!(size_of::<u64>() == ALIGNMENT && align_of::<u64>() >= ALIGNMENT) }
        let mut memory = vec![0u64; words];
        let start = NonNull::from(memory.as_mut_slice()).cast();
        Self { start, capacity: words * ALIGNMENT, asked: AtomicUsize::new(0), owner: Owner::Words(memory) }
    }

    /// The next `bytes` bytes, if the chunk has that many left. `bytes` is a multiple of [`ALIGNMENT`].
    #[inline]
    fn take(&self, bytes: usize) -> Option<NonNull<u8>> {
        // Relaxed: each thread gets the bytes after the number that `fetch_add` returns to it, so no other order
        // matters.
        let before = self.asked.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.capacity {
            return None;
        }
        // SAFETY: `before + bytes` is at most `capacity`, and the buffer has `capacity` bytes from `start` on.
        Some(unsafe { self.start.add(before) })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
