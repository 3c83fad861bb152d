//! What an arena promises. `tests/arena.rs` checks that the memory of the process follows the limit of the arena.

use super::longest::Longest;
use super::slab::{Blocks, SLAB_BLOCKS};
use super::{Arena, ArenaState, HUGE_LIMIT_BYTES, SLAB_BYTES};
use crate::sync::Arc;
use crate::{BLOCK_BYTES, Buffer};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Miri takes a thousand times as long.
fn times(usual: usize) -> usize {
    if cfg!(miri) { usual.div_ceil(300) } else { usual }
}

const SEEDS: u64 = if cfg!(miri) { 1 } else { 4 };

/// Living buffers. Each has a number of its own, which is written at both ends of each of its blocks.
#[derive(Default)]
struct Live {
    buffers: Vec<(Buffer, u64)>,
    /// The address where each buffer begins, and the address where it ends.
    ranges: BTreeMap<usize, usize>,
    next: u64,
}

impl Live {
    fn add(&mut self, mut buffer: Buffer) {
        let start = buffer.as_ptr().addr();
        let end = start + buffer.capacity();
        assert!(start.is_multiple_of(BLOCK_BYTES));
        let before = self.ranges.range(..end).next_back();
        assert!(before.is_none_or(|(_, &before)| before <= start), "two buffers at {start:#x}");
        self.ranges.insert(start, end);
        self.next += 1;
        for block in buffer.chunks_mut(BLOCK_BYTES) {
            block[..8].copy_from_slice(&self.next.to_le_bytes());
            block[BLOCK_BYTES - 8..].copy_from_slice(&self.next.to_le_bytes());
        }
        self.buffers.push((buffer, self.next));
    }

    fn remove(&mut self, at: usize) {
        let (buffer, number) = self.buffers.swap_remove(at);
        check_contents(&buffer, number);
        self.ranges.remove(&buffer.as_ptr().addr());
    }

    fn used_bytes(&self) -> u64 {
        self.buffers.iter().map(|(buffer, _)| buffer.capacity() as u64).sum()
    }
}

fn check_contents(buffer: &Buffer, number: u64) {
    for block in buffer.chunks(BLOCK_BYTES) {
        assert_eq!(block[..8], number.to_le_bytes(), "of a buffer's first bytes");
        assert_eq!(block[BLOCK_BYTES - 8..], number.to_le_bytes(), "of a buffer's last bytes");
    }
}

/// Checks that the parts of the state agree with each other.
fn check_state(state: &ArenaState) {
    let (mut backed, mut taken) = (0, 0);
    for (number, slab) in state.slabs.iter().enumerate() {
        let all = 0..SLAB_BLOCKS;
        let free_backed = slab.free & slab.backed;
        match slab.start {
            Some(_) => {
                let not_free = SLAB_BLOCKS - slab.free.count_in(all.clone());
                assert_eq!(slab.backed.count_in(all.clone()), not_free + free_backed.count_in(all), "slab {number}");
                assert!(!slab.huge || slab.backed == Blocks::ALL);
                assert!(slab.free != Blocks::ALL || slab.backed != Blocks::NONE, "slab {number} is of no use");
                taken += not_free;
            }
            None => {
                assert!(state.vacant.contains(&(number as u32)));
                assert_eq!((slab.free, slab.backed), (Blocks::NONE, Blocks::NONE));
            }
        }
        backed += slab.backed.count_in(0..SLAB_BLOCKS);
        let longest = |blocks: Blocks| blocks.longest().len() as u16;
        assert_eq!(state.free_runs.get(number), longest(slab.free));
        assert_eq!(state.backed_runs.get(number), longest(free_backed));
        assert_eq!(state.loose_runs.get(number), if slab.huge { 0 } else { longest(free_backed) });
    }
    let spare: usize = state.spare.iter().enumerate().map(|(blocks, runs)| blocks * runs.len()).sum();
    assert_eq!((state.backed, state.used + spare), (backed, taken));
}

/// Takes and drops buffers of many lengths, and changes the limit. If `exact`, the arena gives back single blocks, and
/// must refuse a buffer only if it would exceed the limit.
fn check_random(seed: u64, limits: Range<u64>, operations: usize, exact: bool) {
    println!("seed {seed}, limits {limits:?}, exact {exact}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut live = Live::default();
    let arena = Arena::with(random.random_range(limits.clone()), exact);
    let mut usual_blocks = 4;
    for _ in 0..operations {
        match random.random_range(0..1000) {
            0..3 => {
                arena.set_limit(random.random_range(limits.clone()));
                assert_eq!(arena.used_bytes(), live.used_bytes());
            }
            3..6 => usual_blocks = random.random_range(1..20),
            6..10 => {
                for _ in 0..live.buffers.len() / 2 {
                    live.remove(random.random_range(0..live.buffers.len()));
                }
            }
            10..400 if !live.buffers.is_empty() => live.remove(random.random_range(0..live.buffers.len())),
            choice => {
                let bytes = match choice {
                    0..900 => usual_blocks * BLOCK_BYTES,
                    900..980 => random.random_range(1..10) * BLOCK_BYTES,
                    _ => random.random_range(1..=SLAB_BLOCKS / 2) * BLOCK_BYTES,
                };
                match arena.buffer(bytes) {
                    Some(buffer) => live.add(buffer),
                    None => {
                        let would_be_used = arena.used_bytes() + bytes as u64;
                        assert!(!exact || would_be_used / BLOCK > arena.limit_bytes() / BLOCK, "{arena:?}");
                        if !live.buffers.is_empty() {
                            live.remove(random.random_range(0..live.buffers.len()));
                        }
                    }
                }
            }
        }
        assert_eq!(arena.used_bytes(), live.used_bytes());
        assert!(arena.used_bytes() <= arena.backed_bytes());
        if exact {
            assert!(arena.backed_bytes() <= arena.limit_bytes().max(arena.used_bytes()), "{arena:?}");
        }
        if random.random_range(0..20) == 0 {
            check_state(&arena.state.lock());
        }
    }
    while !live.buffers.is_empty() {
        live.remove(live.buffers.len() - 1);
    }
    check_state(&arena.state.lock());
    arena.set_limit(0);
    assert_eq!((arena.used_bytes(), arena.backed_bytes()), (0, 0));
    assert!(arena.state.lock().slabs.iter().all(|slab| slab.start.is_none()));
}

#[test]
fn memory_stays_within_the_limit_whatever_comes_and_goes() {
    for seed in 0..SEEDS {
        check_random(seed, 0..HUGE_LIMIT_BYTES, times(30_000), true);
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn memory_stays_within_the_limit_with_huge_pages() {
    for seed in 0..SEEDS {
        check_random(seed, HUGE_LIMIT_BYTES / 2..16 * HUGE_LIMIT_BYTES, 30_000, true);
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn slabs_go_as_a_whole_where_the_system_takes_no_blocks() {
    for seed in 0..SEEDS {
        check_random(seed, 0..9 << 20, times(10_000), false);
    }
}

#[test]
fn a_run_is_reused_without_a_search() {
    let arena = Arena::new(8 << 20);
    let addresses = |buffers: &[Buffer]| buffers.iter().map(|buffer| buffer.as_ptr().addr()).collect::<Vec<_>>();
    let mut buffers: Vec<_> = (0..100).map(|_| arena.buffer(16 << 10).expect("within the limit")).collect();
    let mut before = addresses(&buffers);
    let searches = arena.state.lock().searches;
    for _ in 0..3 {
        buffers.clear();
        buffers.extend((0..100).map(|_| arena.buffer(16 << 10).expect("within the limit")));
        // The run of the buffer that was dropped last is taken first.
        before.reverse();
        assert_eq!(addresses(&buffers), before);
    }
    assert_eq!(arena.state.lock().searches, searches);
}

#[test]
fn neighbours_that_went_make_room_for_a_longer_buffer() {
    let arena = Arena::new(1 << 20);
    let small: Vec<_> = (0..256).map(|_| arena.buffer(BLOCK_BYTES).expect("within the limit")).collect();
    assert!(arena.buffer(1).is_none());
    let start = small.iter().map(|buffer| buffer.as_ptr().addr()).min();
    drop(small);
    let large = arena.buffer(1 << 20).expect("all of it is free");
    assert_eq!(Some(large.as_ptr().addr()), start);
    assert_eq!(arena.backed_bytes(), 1 << 20);
}

#[test]
fn holes_do_not_count_against_the_limit() {
    let arena = Arena::new(1 << 20);
    let mut small: Vec<_> = (0..256).map(|_| arena.buffer(BLOCK_BYTES)).collect();
    small.iter_mut().step_by(2).for_each(|buffer| *buffer = None);
    // Half of the limit is free, in single blocks.
    let large = arena.buffer(512 << 10).expect("half of the limit is free");
    assert_eq!((arena.used_bytes(), arena.backed_bytes()), (1 << 20, 1 << 20));
    assert!(arena.buffer(1).is_none());
    drop(large);
}

#[test]
fn lengths_are_kept_and_room_is_in_blocks() {
    let arena = Arena::new(1 << 20);
    let buffer = arena.buffer(BLOCK_BYTES + 1).expect("within the limit");
    assert_eq!((buffer.len(), buffer.capacity()), (BLOCK_BYTES + 1, 2 * BLOCK_BYTES));
    assert!(buffer.iter().all(|&byte| byte == 0), "of a first buffer");
    assert_eq!(arena.used_bytes(), 2 * BLOCK);
    assert_eq!(arena.buffer(0).map(|buffer| buffer.capacity()), Some(0));
    assert!(arena.buffer((1 << 20) + 1).is_none());
    assert!(Arena::new(u64::MAX).buffer((1 << 20) + 1).is_none());
}

#[test]
fn a_buffer_outlives_its_arena_and_other_limits() {
    let arena = Arena::new(1 << 20);
    let mut buffer = arena.buffer(100_000).expect("within the limit");
    buffer.fill(7);
    let other = arena.buffer(100_000).expect("within the limit");
    arena.set_limit(0);
    assert_eq!(arena.backed_bytes(), arena.used_bytes());
    drop(other);
    assert_eq!(arena.backed_bytes(), buffer.capacity() as u64);
    let weak = Arc::downgrade(&arena);
    drop(arena);
    assert!(buffer.iter().all(|&byte| byte == 7));
    drop(buffer);
    assert!(weak.upgrade().is_none());
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "under Miri slabs are small things of an allocator")]
fn room_for_a_slab_is_taken_as_a_whole_from_two_slabs_on() {
    let large = Arena::new(HUGE_LIMIT_BYTES);
    let small = Arena::new(HUGE_LIMIT_BYTES - 1);
    let (_first, _second) = (large.buffer(1), small.buffer(1));
    assert_eq!(large.backed_bytes(), SLAB_BYTES as u64);
    assert_eq!(small.backed_bytes(), BLOCK);
    large.set_limit(BLOCK);
    assert_eq!(large.backed_bytes(), BLOCK);
}

#[test]
fn threads_share_an_arena() {
    let limit = 2 * HUGE_LIMIT_BYTES;
    let arena = Arena::new(limit);
    let refused = thread::scope(|scope| {
        let threads: Vec<_> = (0..SEEDS.max(2))
            .map(|seed| {
                let arena = &arena;
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed);
                    let mut buffers: Vec<(Buffer, u64)> = Vec::new();
                    let mut refused = 0;
                    for number in 0..times(20_000) as u64 {
                        match arena.buffer(random.random_range(1..8) * BLOCK_BYTES) {
                            Some(mut buffer) => {
                                let number = number << 8 | seed;
                                for block in buffer.chunks_mut(BLOCK_BYTES) {
                                    block[..8].copy_from_slice(&number.to_le_bytes());
                                    block[BLOCK_BYTES - 8..].copy_from_slice(&number.to_le_bytes());
                                }
                                buffers.push((buffer, number));
                            }
                            None => refused += 1,
                        }
                        if random.random_range(0..100) < 45 && !buffers.is_empty() {
                            let (buffer, number) = buffers.swap_remove(random.random_range(0..buffers.len()));
                            check_contents(&buffer, number);
                        }
                        if random.random_range(0..1000) == 0 {
                            arena.set_limit(random.random_range(limit / 2..limit));
                        }
                    }
                    buffers.iter().for_each(|(buffer, number)| check_contents(buffer, *number));
                    refused
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no check failed")).sum::<usize>()
    });
    assert!(cfg!(miri) || refused > 0, "the limit was never reached");
    check_state(&arena.state.lock());
    assert_eq!(arena.used_bytes(), 0);
    assert!(arena.backed_bytes() <= arena.limit_bytes());
}

#[test]
fn blocks_are_a_set_of_numbers() {
    let seed = 3;
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut blocks = Blocks::NONE;
    let mut model = [false; SLAB_BLOCKS];
    for _ in 0..times(3000) {
        let start = random.random_range(0..=SLAB_BLOCKS);
        let range = start..random.random_range(start..=SLAB_BLOCKS.min(start + 100));
        let insert = random.random();
        if insert {
            blocks.insert(range.clone())
        } else {
            blocks.remove(range.clone())
        }
        model[range].fill(insert);
        let range = random.random_range(0..100)..random.random_range(100..=SLAB_BLOCKS);
        assert_eq!(blocks.count_in(range.clone()), model[range].iter().filter(|&&set| set).count());
        let runs: Vec<&[bool]> = model.split(|&set| !set).collect();
        let longest = runs.iter().map(|run| run.len()).max().unwrap_or(0);
        assert_eq!(blocks.longest().len(), longest);
        assert!(model[blocks.longest()].iter().all(|&set| set));
        let first =
            |length: usize| (0..=SLAB_BLOCKS - length).find(|&at| model[at..at + length].iter().all(|&set| set));
        let length = random.random_range(1..=longest + 1).min(SLAB_BLOCKS);
        assert_eq!(blocks.find(length), first(length).map(|at| at..at + length));
    }
    assert_eq!(Blocks::ALL.find(SLAB_BLOCKS), Some(0..SLAB_BLOCKS));
}

#[test]
fn the_first_slab_with_a_number_large_enough_is_found() {
    let seed = 5;
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut tree = Longest::default();
    let mut model = vec![0; 300];
    assert_eq!((tree.first(1), tree.greatest()), (None, 0));
    for round in 0..times(3000) {
        let slab = random.random_range(0..=(round / 10).min(299));
        let number = random.random_range(0..20);
        tree.set(slab, number);
        model[slab] = number;
        let least = random.random_range(1..20);
        assert_eq!(tree.first(least), model.iter().position(|&number| number >= least));
        assert_eq!(Some(tree.greatest()), model.iter().copied().max());
    }
}
