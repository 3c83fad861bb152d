//! Memory for the pages of a cache, under a limit that is never exceeded, not even by one block. This module does not
//! know what a page is.
//!
//! A general-purpose allocator keeps freed memory for the same thread and for allocations of the same size. So a
//! process whose pages come and go in many threads ends up with several times the memory that it uses. An [`Arena`]
//! tracks for each block whether it is *backed*, which means that the arena has asked the system for its memory. It
//! never asks for more than the limit, whatever buffers come and go.
//!
//! Memory comes in slabs of 2 MiB, aligned to 2 MiB, so that one huge page fits under each slab. A buffer is a run of
//! 4 KiB blocks within a slab, and takes at most half of the slab. A block is in a buffer, or spare, or free:
//!
//! * When a buffer is dropped, its run becomes spare: it goes on the list of runs of its length, still backed. The
//!   next buffer of that length takes it. This is the usual case in a full cache of pages of one size, and costs a
//!   lock and a pop.
//! * If no spare run has the length of a new buffer, the buffer takes backed free blocks of the first slab that has a
//!   long enough run of them. If no slab has one, all spare runs become free, which joins free neighbours, and the
//!   slabs are searched again.
//! * If that fails too, new blocks are backed, in a new slab or in a hole of an old slab. If the limit is reached,
//!   other free blocks are given back to the system first. So a buffer is refused only if the buffers alone would
//!   exceed the limit, and never because free memory is fragmented. Addresses are plentiful.
//!
//! A new slab gets a huge page if the limit has room for the whole slab and some more. All of it then counts as
//! backed, because the system backs a huge page when its first byte is touched. Random accesses to huge pages cost a
//! third less, and a disk reads a buffer that is one piece of memory faster than one of scattered pages. All other slabs
//! refuse huge pages, and are backed block by block. Arenas with a limit below [`HUGE_LIMIT_BYTES`] use no huge pages,
//! because one slab would be most of their limit. When blocks of a huge page are given back, the system splits the
//! page, and the slab becomes an ordinary slab. So these blocks are given back last. A slab without a backed block is
//! unmapped.
//!
//! The arena itself takes 144 bytes for each slab (the address, and two bits for each block), 12 bytes for each slab
//! in the three trees that find slabs, and 8 bytes for each spare run. For 24 GiB (12,288 slabs), this is 1.9 MiB
//! without the spare runs. If all spare memory is single blocks, the spare runs take 0.2 % of it
//! ([`Arena::overhead_bytes`]).
//!
//! Invariants between any two calls: `used <= backed`; `backed <= max(limit, used)`, except during a call of
//! [`Arena::set_limit`]; no two buffers share a byte. Systems other than Linux, and systems whose pages are not
//! 4 KiB, cannot take back single blocks. There a slab is backed and given back only as a whole. If memory is locked
//! (`mlockall`), only whole slabs can be given back, too, and buffers may be refused earlier.
//!
//! Thread safe, with one lock. The lock is held while the system maps or takes back memory, at most 4 MiB at a time.

mod buffer;
mod give;
mod longest;
mod prefetch;
mod slab;
mod system;

pub use buffer::{Buffer, MAPPED_BYTES};
pub use prefetch::prefetch;

use crate::BLOCK_BYTES;
use crate::sync::{Arc, Mutex};
use longest::Longest;
use slab::{Blocks, SLAB_BLOCKS};
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use system::{HugePages, map, unmap};

const SLAB_BYTES: usize = SLAB_BLOCKS * BLOCK_BYTES;

/// The longest run of a buffer. Two such runs fit into a slab. Longer ones would leave large parts of slabs unused.
const LONGEST_BLOCKS: usize = SLAB_BLOCKS / 2;

/// Arenas with at least this limit use huge pages. It is two huge pages, so that an arena with a few buffers takes at
/// most half of its limit.
pub const HUGE_LIMIT_BYTES: u64 = 4 << 20;

/// The last 1/`LOOSE_SHARE` of the limit is never backed by a whole slab. A cache pays for what it knows of its pages
/// from the same budget, so it does not fill its arena, and a whole slab at the end would be memory that no page uses.
const LOOSE_SHARE: usize = 32;

/// How many blocks [`Arena::set_limit`] gives back before it lets other threads take the lock.
const STEP_BLOCKS: usize = 2 * SLAB_BLOCKS;

/// The backed bytes of all living arenas. All accesses are relaxed, because the number is a statistic and orders no
/// other memory access. It is an atomic of `std`, because it must outlive each model that a model checker runs.
static BACKED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Memory for buffers, up to a limit.
pub struct Arena {
    state: Mutex<ArenaState>,
}

impl Arena {
    /// An arena for `limit_bytes`. It takes no memory yet.
    pub fn new(limit_bytes: u64) -> Arc<Arena> {
        Self::with(limit_bytes, system::discards_blocks())
    }

    fn with(limit_bytes: u64, discards_blocks: bool) -> Arc<Arena> {
        Arc::new(Arena { state: Mutex::new(ArenaState::new(limit_bytes, discards_blocks)) })
    }

    /// Takes back the run of a buffer.
    ///
    /// # Safety
    /// The run lies in this slab. It was given to a buffer, and the buffer does not use the run after this call.
    pub(crate) unsafe fn release(&self, start: NonNull<u8>, capacity: usize, slab: u32) {
        let first = (start.addr().get() % SLAB_BYTES / BLOCK_BYTES) as u16;
        self.state.lock().release(RunStart { slab, first }, capacity / BLOCK_BYTES);
    }

    /// Changes the limit. On return, the arena has given back all memory above the limit, except memory of buffers,
    /// which it gives back when they are dropped. A caller that drops buffers for a lower limit should drop them
    /// before this call, so that memory is given back in large pieces.
    pub fn set_limit(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.limit_bytes = bytes;
        while state.shrink() {
            drop(state);
            state = self.state.lock();
        }
    }

    /// The limit. Only whole blocks of it are used.
    pub fn limit_bytes(&self) -> u64 {
        self.state.lock().limit_bytes
    }

    /// The bytes that the arena has asked the system for and not given back, in buffers or not.
    pub fn backed_bytes(&self) -> u64 {
        (self.state.lock().backed * BLOCK_BYTES) as u64
    }

    /// The backed bytes of all living arenas of the process.
    pub fn all_backed_bytes() -> usize {
        BACKED_BYTES.load(Ordering::Relaxed)
    }

    /// The bytes in buffers, in whole blocks.
    pub fn used_bytes(&self) -> u64 {
        (self.state.lock().used * BLOCK_BYTES) as u64
    }

    /// The heap memory of the arena's own data.
    pub fn overhead_bytes(&self) -> u64 {
        (size_of::<Arena>() + self.state.lock().memory_bytes()) as u64
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Arena")
            .field("limit_bytes", &state.limit_bytes)
            .field("backed_bytes", &(state.backed * BLOCK_BYTES))
            .field("used_bytes", &(state.used * BLOCK_BYTES))
            .finish_non_exhaustive()
    }
}

/// Where a run begins.
#[derive(Clone, Copy, Debug)]
struct RunStart {
    slab: u32,
    first: u16,
}

struct Slab {
    /// The start of the mapping; `None` if no slab with this number is mapped.
    start: Option<NonNull<u8>>,
    /// Blocks that are neither in a buffer nor spare.
    free: Blocks,
    /// Every block that is not free is backed.
    backed: Blocks,
    /// Whether all of the slab is backed, by a huge page if the system had one.
    huge: bool,
}

struct ArenaState {
    limit_bytes: u64,
    /// Whether the system takes back single blocks.
    discards_blocks: bool,
    /// Blocks in buffers.
    used: usize,
    /// Backed blocks.
    backed: usize,
    slabs: Vec<Slab>,
    /// Numbers of slabs that are not mapped.
    vacant: Vec<u32>,
    /// Spare runs: a stack for each length in blocks.
    spare: Vec<Vec<RunStart>>,
    /// For each slab, the length of its longest run of free blocks.
    free_runs: Longest,
    /// For each slab, the length of its longest run of free blocks that are backed.
    backed_runs: Longest,
    /// For each slab, the length of its longest run of free blocks that are backed and not in a huge page.
    loose_runs: Longest,
    /// How often no spare run was found.
    #[cfg(test)]
    searches: usize,
}

// SAFETY: the addresses in `ArenaState` point to memory that belongs to the arena and its buffers, not to a thread.
unsafe impl Send for ArenaState {}

impl ArenaState {
    fn new(limit_bytes: u64, discards_blocks: bool) -> ArenaState {
        ArenaState {
            limit_bytes,
            discards_blocks,
            used: 0,
            backed: 0,
            slabs: Vec::new(),
            vacant: Vec::new(),
            spare: vec![Vec::new(); LONGEST_BLOCKS + 1],
            free_runs: Longest::default(),
            backed_runs: Longest::default(),
            loose_runs: Longest::default(),
            #[cfg(test)]
            searches: 0,
        }
    }

    fn set_backed(&mut self, blocks: usize) {
        let more = blocks.wrapping_sub(self.backed).wrapping_mul(BLOCK_BYTES);
        BACKED_BYTES.fetch_add(more, Ordering::Relaxed);
        self.backed = blocks;
    }

    /// The limit in blocks.
    fn limit(&self) -> usize {
        usize::try_from(self.limit_bytes / BLOCK_BYTES as u64).unwrap_or(usize::MAX)
    }

    fn memory_bytes(&self) -> usize {
        self.slabs.capacity() * size_of::<Slab>()
            + self.vacant.capacity() * size_of::<u32>()
            + self.spare.capacity() * size_of::<Vec<RunStart>>()
            + self.spare.iter().map(|runs| runs.capacity() * size_of::<RunStart>()).sum::<usize>()
            + [&self.free_runs, &self.backed_runs, &self.loose_runs].map(Longest::memory_bytes).iter().sum::<usize>()
    }

    fn address(&self, place: RunStart) -> NonNull<u8> {
        let start = self.slabs[place.slab as usize].start.expect("runs are of slabs that are mapped");
        // SAFETY: a slab is `SLAB_BLOCKS` blocks long, and a run begins at one of them.
        unsafe { start.add(usize::from(place.first) * BLOCK_BYTES) }
    }

    /// A run for a buffer.
    fn take(&mut self, blocks: usize) -> Option<RunStart> {
        if self.used + blocks > self.limit() {
            return None;
        }
        let place = match self.spare[blocks].pop() {
            Some(place) => place,
            None => {
                #[cfg(test)]
                {
                    self.searches += 1;
                }
                let backed = self.take_backed(blocks).or_else(|| {
                    self.join_spare();
                    self.take_backed(blocks)
                });
                backed.or_else(|| self.take_new(blocks))?
            }
        };
        self.used += blocks;
        Some(place)
    }

    /// Takes a run of free blocks that are backed.
    fn take_backed(&mut self, blocks: usize) -> Option<RunStart> {
        let number = self.backed_runs.first(blocks as u16)?;
        let slab = &mut self.slabs[number];
        let run = (slab.free & slab.backed).find(blocks).expect("the tree knows how long the runs of a slab are");
        slab.free.remove(run.clone());
        self.note(number);
        Some(RunStart { slab: number as u32, first: run.start as u16 })
    }

    /// Takes a run of free blocks, and backs them. No run may be spare.
    fn take_new(&mut self, blocks: usize) -> Option<RunStart> {
        let number = self.slab_for(blocks)?;
        let slab = &mut self.slabs[number];
        let run = slab.free.find(blocks).expect("the tree knows how long the runs of a slab are");
        slab.free.remove(run.clone());
        let missing = blocks - slab.backed.count_in(run.clone());
        self.note(number);
        let excess = (self.backed + missing).saturating_sub(self.limit());
        if self.give_back(excess) < excess {
            self.slabs[number].free.insert(run);
            self.note(number);
            self.close_if_empty(number);
            return None;
        }
        self.slabs[number].backed.insert(run.clone());
        self.set_backed(self.backed + missing);
        Some(RunStart { slab: number as u32, first: run.start as u16 })
    }

    /// A slab with a free run of `blocks` blocks: a new slab, all of it backed, if the arena uses huge pages and the
    /// limit has room for a whole slab and some more; otherwise the first slab with a long enough hole, or a new slab
    /// without backed blocks. If the system takes back only whole slabs, always a new slab, all of it backed.
    fn slab_for(&mut self, blocks: usize) -> Option<usize> {
        let room = self.limit().saturating_sub(self.backed);
        if !self.discards_blocks {
            let excess = SLAB_BLOCKS.saturating_sub(room);
            return (self.give_back(excess) >= excess).then(|| self.open(true)).flatten();
        }
        let huge = self.limit_bytes >= HUGE_LIMIT_BYTES && room >= SLAB_BLOCKS + self.limit() / LOOSE_SHARE;
        let whole = if huge { self.open(true) } else { None };
        whole.or_else(|| self.free_runs.first(blocks as u16)).or_else(|| self.open(false))
    }

    /// Maps a slab, and backs all of it or nothing.
    fn open(&mut self, whole: bool) -> Option<usize> {
        let start = map(SLAB_BYTES, SLAB_BYTES)?;
        let huge_pages = if whole { HugePages::Wanted } else { HugePages::Refused };
        // SAFETY: the range was just mapped.
        unsafe { system::advise(start, SLAB_BYTES, huge_pages) };
        let backed = if whole { Blocks::ALL } else { Blocks::NONE };
        let slab = Slab { start: Some(start), free: Blocks::ALL, backed, huge: whole };
        let number = match self.vacant.pop() {
            Some(number) => number as usize,
            None => self.slabs.len(),
        };
        if number < self.slabs.len() {
            self.slabs[number] = slab;
        } else {
            self.slabs.push(slab);
        }
        self.set_backed(self.backed + if whole { SLAB_BLOCKS } else { 0 });
        self.note(number);
        Some(number)
    }

    /// Takes back the run of a buffer.
    fn release(&mut self, place: RunStart, blocks: usize) {
        self.used -= blocks;
        let excess = self.backed.saturating_sub(self.limit());
        if excess == 0 {
            self.spare[blocks].push(place);
            return;
        }
        let number = place.slab as usize;
        let first = usize::from(place.first);
        self.slabs[number].free.insert(first..first + blocks);
        self.note(number);
        self.give_back(excess.min(blocks));
    }

    /// Makes all spare runs free.
    fn join_spare(&mut self) {
        let mut changed = Vec::new();
        for (blocks, runs) in self.spare.iter_mut().enumerate() {
            for RunStart { slab, first } in runs.drain(..) {
                self.slabs[slab as usize].free.insert(usize::from(first)..usize::from(first) + blocks);
                changed.push(slab);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        for number in changed {
            self.note(number as usize);
        }
    }

    /// Takes one step towards the limit. Returns false when nothing is left to do.
    fn shrink(&mut self) -> bool {
        let excess = self.backed.saturating_sub(self.limit());
        if excess == 0 {
            return false;
        }
        self.join_spare();
        self.spare.iter_mut().for_each(Vec::shrink_to_fit);
        self.give_back(excess.min(STEP_BLOCKS)) > 0
    }

    /// Gives back `blocks` free blocks, or more if the system takes back only whole slabs. Gives back fewer only if no
    /// more are free, or if the system does not take them.
    fn give_back(&mut self, blocks: usize) -> usize {
        let mut given = 0;
        while given < blocks {
            match self.give_back_run(blocks - given) {
                0 => break,
                some => given += some,
            }
        }
        given
    }

    /// Gives back a free slab if `most` is at least a slab, and otherwise a run of at most `most` blocks. The longest
    /// run goes first, because each run costs a system call. Runs of huge pages go last.
    fn give_back_run(&mut self, most: usize) -> usize {
        let whole = most >= SLAB_BLOCKS || !self.discards_blocks;
        if whole && let Some(number) = self.backed_runs.first(SLAB_BLOCKS as u16) {
            self.set_backed(self.backed - SLAB_BLOCKS);
            self.slabs[number].backed = Blocks::NONE;
            self.close_if_empty(number);
            return SLAB_BLOCKS;
        }
        if self.discards_blocks { self.discard_run(most) } else { 0 }
    }

    /// Gives back up to `most` blocks from the start of the longest run.
    fn discard_run(&mut self, most: usize) -> usize {
        let runs = if self.loose_runs.greatest() > 0 { &self.loose_runs } else { &self.backed_runs };
        let longest = runs.greatest();
        if longest == 0 {
            return 0;
        }
        let number = runs.first(longest).expect("some slab has the greatest number");
        let slab = &mut self.slabs[number];
        let start = slab.start.expect("slabs with free blocks are mapped");
        let was_huge = slab.huge;
        if was_huge {
            // Otherwise the system might join the remaining blocks into a huge page again.
            // SAFETY: the slab is mapped.
            unsafe { system::advise(start, SLAB_BYTES, HugePages::Refused) };
            slab.huge = false;
        }
        let run = (slab.free & slab.backed).longest();
        let run: Range<usize> = run.start..run.end.min(run.start + most);
        if was_huge {
            // SAFETY: as below.
            unsafe { system::split(start.add(run.start * BLOCK_BYTES), run.len() * BLOCK_BYTES) };
        }
        // SAFETY: the run is within the slab, which is mapped. The run is free, so no buffer uses it.
        if !unsafe { system::discard(start.add(run.start * BLOCK_BYTES), run.len() * BLOCK_BYTES) } {
            self.note(number);
            return 0;
        }
        slab.backed.remove(run.clone());
        self.set_backed(self.backed - run.len());
        self.note(number);
        self.close_if_empty(number);
        run.len()
    }

    /// Unmaps a slab that has neither a buffer nor a backed block.
    fn close_if_empty(&mut self, number: usize) {
        let slab = &mut self.slabs[number];
        if slab.free != Blocks::ALL || slab.backed != Blocks::NONE {
            return;
        }
        let start = slab.start.take().expect("a slab is unmapped once");
        // SAFETY: `open` mapped the slab in this way. All its blocks are free, so no buffer uses it.
        unsafe { unmap(start, SLAB_BYTES, SLAB_BYTES) };
        slab.free = Blocks::NONE;
        self.vacant.push(number as u32);
        self.note(number);
    }

    /// Updates the three trees after the bits of a slab have changed.
    fn note(&mut self, number: usize) {
        let slab = &self.slabs[number];
        let free = slab.free.longest().len() as u16;
        let backed = if slab.huge { free } else { (slab.free & slab.backed).longest().len() as u16 };
        self.free_runs.set(number, free);
        self.backed_runs.set(number, backed);
        self.loose_runs.set(number, if slab.huge { 0 } else { backed });
    }
}

impl Drop for ArenaState {
    fn drop(&mut self) {
        self.set_backed(0);
        for start in self.slabs.iter().filter_map(|slab| slab.start) {
            // SAFETY: `open` mapped the slab in this way. Every buffer keeps the arena alive, so no buffer is left.
            unsafe { unmap(start, SLAB_BYTES, SLAB_BYTES) };
        }
    }
}

#[cfg(test)]
mod tests;
