//! Tests what an arena promises about its pieces and about its size.

#![allow(clippy::disallowed_methods, reason = "threads that allocate at the same time are what is tested")]

use super::*;
use crate::base::record::tests::seeds;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::thread;

/// Allocates pieces of random sizes, and fills each piece with the byte `mark`.
fn fill(arena: &Arena, pieces: usize, mark: u8, random: &mut StdRng) -> Vec<(NonNull<u8>, usize)> {
    let all = (0..pieces).map(|_| {
        let bytes = if random.random_bool(0.02) { random.random_range(1..9000) } else { random.random_range(1..300) };
        let piece = arena.allocate(bytes);
        assert_eq!(piece.as_ptr() as usize % ALIGNMENT, 0);
        // SAFETY: the piece has this length and belongs to this thread.
        unsafe { piece.write_bytes(mark, bytes) };
        (piece, bytes)
    });
    all.collect()
}

fn check(pieces: &[(NonNull<u8>, usize)], mark: u8) {
    for &(piece, bytes) in pieces {
        // SAFETY: the arena lives, and the piece was filled.
        let bytes = unsafe { std::slice::from_raw_parts(piece.as_ptr(), bytes) };
        assert!(bytes.iter().all(|&byte| byte == mark));
    }
}

fn arena() -> Arena {
    Arena::new(Arc::default())
}

#[test]
fn pieces_do_not_overlap_and_stay_whichever_thread_asks() {
    let pieces = if cfg!(miri) { 60 } else { 2000 };
    for seed in seeds(if cfg!(miri) { 2 } else { 20 }) {
        let arena = arena();
        thread::scope(|scope| {
            for mark in 0..3 {
                let arena = &arena;
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed * 10 + u64::from(mark));
                    let first = fill(arena, pieces, mark, &mut random);
                    let second = fill(arena, pieces, mark + 10, &mut random);
                    check(&first, mark);
                    check(&second, mark + 10);
                });
            }
        });
    }
}

#[test]
fn a_small_part_of_the_memory_is_not_used_yet() {
    for seed in seeds(if cfg!(miri) { 1 } else { 20 }) {
        let (arena, mut random) = (arena(), StdRng::seed_from_u64(seed));
        assert_eq!((arena.bytes(), arena.used_bytes()), (0, 0));
        let mut before = 0;
        for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
            fill(&arena, 1, 1, &mut random);
            let (bytes, used) = (arena.bytes(), arena.used_bytes());
            assert!(used > before, "seed {seed}: {used} after {before}");
            let most = if bytes < 3 << 20 { bytes / 8 + BLOCK_BYTES as u64 } else { POOL_CHUNK_BYTES as u64 };
            assert!(bytes - used <= most, "seed {seed}: {used} of {bytes}");
            before = used;
        }
    }
}

#[test]
fn what_is_asked_for_is_most_of_what_is_used() {
    for bytes in [40, 160, 1000, 10_000, 100_000, 300_000] {
        if cfg!(miri) && bytes > 1000 {
            break;
        }
        let arena = arena();
        let pieces = (if cfg!(miri) { 100_000 } else { 20 << 20 }) / bytes;
        for _ in 0..pieces {
            arena.allocate(bytes);
        }
        let asked = (pieces * bytes) as f64;
        assert!(arena.used_bytes() as f64 <= asked * 1.15, "{} for pieces of {bytes}", arena.used_bytes());
    }
}

#[test]
fn memory_counts_as_kept_from_the_flush_until_the_arena_goes() {
    let kept = Arc::new(RowMemory::new(40_000));
    let (first, second) = (Arena::new(kept.clone()), Arena::new(kept.clone()));
    first.allocate(100);
    second.allocate(10_000);
    assert!(kept.kept_bytes() == 0 && first.may_be_kept());
    first.note_flushed();
    first.note_flushed();
    assert_eq!(kept.kept_bytes(), first.bytes());
    assert!(second.may_be_kept(), "{} bytes are kept", kept.kept_bytes());
    second.note_flushed();
    assert!(!second.may_be_kept() && !first.may_be_kept());
    drop(second);
    assert!(first.may_be_kept());
    drop(first);
    assert_eq!(kept.kept_bytes(), 0);
}

#[test]
fn an_arena_for_one_piece_has_as_many_bytes_as_the_piece_and_may_always_be_kept() {
    // Lends only until some flushed arena is kept.
    let memory = Arc::new(RowMemory::default());
    let of_set = Arena::new(memory.clone());
    of_set.allocate(100);
    for bytes in [1, 100, 5000] {
        let (arena, piece) = Arena::of_one(Some(memory.clone()), bytes);
        assert_eq!(piece.as_ptr() as usize % ALIGNMENT, 0);
        // SAFETY: the piece has this length and belongs to this thread.
        unsafe { piece.write_bytes(7, bytes) };
        check(&[(piece, bytes)], 7);
        assert_eq!((arena.bytes(), memory.other_bytes()), (bytes.next_multiple_of(ALIGNMENT) as u64, arena.bytes()));
        assert!(of_set.may_be_kept(), "values in arenas of their own do not use up what may be lent");
        drop(arena);
        assert_eq!(memory.other_bytes(), 0);
    }
    of_set.note_flushed();
    let (uncounted, _) = Arena::of_one(None, 100);
    assert_eq!(memory.other_bytes(), of_set.bytes());
    assert!(uncounted.may_be_kept() && !of_set.may_be_kept());
}
