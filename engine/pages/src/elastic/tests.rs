//! What the size of an elastic budget promises: to those who want memory, to other caches, and to its own.

use super::{BLIND_READINGS, Elastic, LONG_STALL, MIB, MOST_MAPPED_BYTES, RESTING_READINGS, Steering, headroom};
use crate::flaky::SplitMix;
use os::{MemoryReading, ScopeMemory};
use std::time::Duration;

const GIB: u64 = 1 << 30;

const BOUNDS: Elastic = Elastic { least_bytes: 64 * MIB, most_bytes: u64::MAX };

fn scope(total_bytes: u64, available_bytes: u64) -> ScopeMemory {
    ScopeMemory { total_bytes, available_bytes, free_bytes: available_bytes }
}

fn reading(scopes: &[ScopeMemory]) -> MemoryReading {
    MemoryReading { scopes: scopes.to_vec(), ..MemoryReading::default() }
}

/// A machine on which other programs take memory beside some caches. Each cache fills its limit at once.
struct SharedMachine {
    total_bytes: u64,
    others_bytes: u64,
    caches: Vec<(Steering, u64)>,
}

impl SharedMachine {
    fn new(total_bytes: u64, others_bytes: u64) -> Self {
        Self { total_bytes, others_bytes, caches: Vec::new() }
    }

    fn add_cache(&mut self) {
        self.caches.push((Steering::new(BOUNDS), BOUNDS.least_bytes));
    }

    fn available(&self) -> u64 {
        let used = self.others_bytes + self.caches.iter().map(|(_, limit)| limit).sum::<u64>();
        self.total_bytes.checked_sub(used).expect("the memory is enough for all that was given")
    }

    /// The caches take a reading, all of them before the first one moves.
    fn step(&mut self) {
        let reading = reading(&[scope(self.total_bytes, self.available())]);
        for (steering, limit) in &mut self.caches {
            *limit = steering.next(*limit, *limit, Some(&reading));
        }
    }

    fn steps(&mut self, count: usize) {
        (0..count).for_each(|_| self.step());
    }

    fn limit(&self, cache: usize) -> u64 {
        self.caches[cache].1
    }
}

#[test]
fn the_headroom_is_a_part_of_all_memory() {
    for (total, expected) in
        [(0, 0), (64, 16), (512, 128), (1024, 256), (4096, 256), (5120, 256), (20_480, 1024), (1 << 20, 52_428)]
    {
        assert_eq!(headroom(&scope(total * MIB, 0)) / MIB, expected, "of {total} MiB");
    }
}

#[test]
fn after_any_reading_the_limit_leaves_the_headroom_free() {
    for seed in 0..200 {
        let mut random = SplitMix(seed);
        // Numbers of all magnitudes, up to 32 GiB.
        let mut bytes = |most: u64| random.next() % (most >> (random.next() % 20)).max(1);
        let least_bytes = bytes(GIB);
        let elastic = Elastic { least_bytes, most_bytes: least_bytes + bytes(32 * GIB) };
        let mut steering = Steering::new(elastic);
        let (mut limit, mut stalled) = (least_bytes, Duration::ZERO);
        for _ in 0..200 {
            let total = bytes(32 * GIB);
            let scopes = [total, bytes(32 * GIB)].map(|total| {
                let available = bytes(total.max(1));
                ScopeMemory { total_bytes: total, available_bytes: available, free_bytes: bytes(available.max(1)) }
            });
            stalled += Duration::from_micros(bytes(10_000));
            let backed = bytes(limit + 1);
            limit = steering.next(
                limit,
                backed,
                Some(&MemoryReading { scopes: scopes.to_vec(), stalled, swapped_bytes: 0 }),
            );
            let fits = scopes.iter().map(|scope| (backed + scope.available_bytes).saturating_sub(headroom(scope)));
            let fits = fits.min().expect("there are two");
            assert!(limit <= fits.max(least_bytes), "seed {seed}: {limit} is more than {fits} of {scopes:?}");
            assert!((least_bytes..=elastic.most_bytes).contains(&limit), "seed {seed}: {limit} with {elastic:?}");
        }
    }
}

#[test]
fn a_cache_alone_grows_slowly_to_what_is_free_and_then_rests() {
    let mut machine = SharedMachine::new(24 * GIB, 4 * GIB);
    machine.add_cache();
    let mut before = machine.limit(0);
    for _ in 0..1000 {
        machine.step();
        let limit = machine.limit(0);
        assert!(limit >= before && limit - before <= 24 * MIB, "{before} {limit}");
        before = limit;
    }
    let free = 20 * GIB - headroom(&scope(24 * GIB, 0));
    assert!(before > free / 16 * 15 - free / 64 && before < free, "{before} of {free}");
    machine.steps(1000);
    assert_eq!(machine.limit(0), before);
}

#[test]
fn small_changes_of_the_machine_do_not_move_the_limit() {
    let mut machine = SharedMachine::new(24 * GIB, 4 * GIB);
    machine.add_cache();
    machine.steps(1000);
    let (limit, mut random) = (machine.limit(0), SplitMix(7));
    for _ in 0..1000 {
        machine.others_bytes = 4 * GIB + random.next() % (64 * MIB);
        machine.step();
        assert_eq!(machine.limit(0), limit);
    }
}

#[test]
fn what_others_want_is_given_back_at_the_next_reading_and_taken_again_later() {
    let mut machine = SharedMachine::new(24 * GIB, 4 * GIB);
    machine.add_cache();
    machine.steps(1000);
    let alone = machine.limit(0);
    // The neighbour takes what it finds, so nothing is left; then the cache gives it the whole headroom back.
    let headroom_bytes = headroom(&scope(24 * GIB, 0));
    machine.others_bytes += machine.available();
    machine.step();
    assert_eq!(machine.limit(0), alone - headroom_bytes);
    for _ in 0..100 {
        machine.others_bytes += machine.available();
        machine.step();
    }
    assert_eq!(machine.limit(0), BOUNDS.least_bytes);
    machine.others_bytes = 4 * GIB;
    machine.steps(1000);
    assert_eq!(machine.limit(0), alone);
}

#[test]
fn caches_that_know_nothing_of_each_other_share_what_is_free() {
    for caches in [2, 3, 8, 20] {
        let mut machine = SharedMachine::new(24 * GIB, 4 * GIB);
        machine.add_cache();
        machine.steps(1000);
        (1..caches).for_each(|_| machine.add_cache());
        machine.steps(4000);
        let limits: Vec<u64> = (0..caches).map(|cache| machine.limit(cache)).collect();
        let (least, most) = (limits.iter().min().expect("some"), limits.iter().max().expect("some"));
        assert!(*least > most / 2, "{caches} caches: {limits:?}");
        let free = 20 * GIB - headroom(&scope(24 * GIB, 0));
        assert!(limits.iter().sum::<u64>() > free / 8 * 7, "{caches} caches: {limits:?}");
    }
}

#[test]
fn fifty_caches_that_begin_together_never_take_more_than_there_is() {
    let mut machine = SharedMachine::new(24 * GIB, 4 * GIB);
    (0..50).for_each(|_| machine.add_cache());
    // Each step asserts that the memory is enough.
    machine.steps(2000);
}

#[test]
fn the_tightest_scope_decides() {
    let scopes = [scope(24 * GIB, 20 * GIB), scope(GIB, 300 * MIB)];
    let next = Steering::new(BOUNDS).next(100 * MIB, 100 * MIB, Some(&reading(&scopes)));
    // 400 MiB without the headroom of 256 MiB.
    assert!(next > 100 * MIB && next <= 144 * MIB, "{next}");
    let scopes = [scope(24 * GIB, 20 * GIB), scope(GIB, 200 * MIB)];
    assert_eq!(Steering::new(BOUNDS).next(500 * MIB, 500 * MIB, Some(&reading(&scopes))), 444 * MIB);
}

#[test]
fn when_threads_wait_for_files_in_memory_the_cache_shrinks_and_rests() {
    let cached = ScopeMemory { total_bytes: 24 * GIB, available_bytes: 10 * GIB, free_bytes: 100 * MIB };
    let mut steering = Steering::new(BOUNDS);
    let mut stalled = Duration::from_secs(1000);
    let mut limit = 8 * GIB;
    let mut step = |limit: u64, waited: Duration| {
        stalled += waited;
        steering.next(limit, limit, Some(&MemoryReading { scopes: vec![cached], stalled, swapped_bytes: 0 }))
    };
    // The first reading has none before it to compare with.
    limit = step(limit, LONG_STALL);
    assert_eq!(limit, 8 * GIB + 24 * MIB);
    limit = step(limit, LONG_STALL / 2);
    assert_eq!(limit, 8 * GIB + 48 * MIB);
    let shrunk = step(limit, LONG_STALL);
    assert_eq!(shrunk, limit - limit / 16);
    for _ in 1..RESTING_READINGS {
        assert_eq!(step(shrunk, Duration::ZERO), shrunk);
    }
    assert!(step(shrunk, Duration::ZERO) > shrunk);
}

#[test]
fn threads_that_wait_while_memory_is_free_wait_for_something_else() {
    let mut steering = Steering::new(BOUNDS);
    let free =
        |millis| MemoryReading { stalled: Duration::from_millis(millis), ..reading(&[scope(24 * GIB, 10 * GIB)]) };
    let mut limit = 8 * GIB;
    for millis in 0..10 {
        let next = steering.next(limit, limit, Some(&free(millis * 20)));
        assert!(next > limit);
        limit = next;
    }
}

#[test]
fn a_cache_that_does_not_fill_its_limit_gives_up_the_rest_when_others_take_it() {
    let next = Steering::new(BOUNDS).next(10 * GIB, GIB, Some(&reading(&[scope(20 * GIB, 2 * GIB)])));
    assert_eq!(next, 2 * GIB);
}

#[test]
fn a_cache_that_cannot_read_what_is_free_becomes_small() {
    let mut steering = Steering::new(BOUNDS);
    for _ in 1..BLIND_READINGS {
        assert_eq!(steering.next(GIB, GIB, None), GIB);
    }
    assert_eq!(steering.next(GIB, GIB, None), BOUNDS.least_bytes);
    let all = reading(&[scope(24 * GIB, 20 * GIB)]);
    assert!(steering.next(BOUNDS.least_bytes, BOUNDS.least_bytes, Some(&all)) > BOUNDS.least_bytes);
    // One reading that succeeds begins the count again.
    assert_eq!(steering.next(GIB, GIB, None), GIB);
    // A reading without scopes says nothing, too.
    assert_eq!(steering.next(GIB, GIB, Some(&reading(&[]))), BOUNDS.least_bytes);
}

#[test]
fn what_the_system_has_written_to_swap_is_no_room_to_grow() {
    let mut steering = Steering::new(BOUNDS);
    let (mut limit, total) = (10 * GIB, 16 * GIB);
    // The cache fills the limit, and the system swaps its cold pages, which makes as much available.
    let headroom = headroom(&scope(total, 0));
    for swapped_bytes in (0..8 * GIB).step_by(256 << 20) {
        let free = scope(total, headroom + swapped_bytes);
        limit = steering.next(limit, 10 * GIB, Some(&MemoryReading { swapped_bytes, ..reading(&[free]) }));
        assert!(limit <= 10 * GIB, "{limit} with {swapped_bytes} in swap");
    }
}

#[test]
fn a_limit_stays_below_what_a_process_can_map() {
    let mut steering = Steering::new(BOUNDS);
    let mut limit = BOUNDS.least_bytes;
    for _ in 0..4096 {
        limit = steering.next(limit, limit, Some(&reading(&[scope(1024 * GIB, 1024 * GIB - limit)])));
    }
    assert!(limit > MOST_MAPPED_BYTES / 10 * 9 && limit <= MOST_MAPPED_BYTES, "{limit}");
    let mut steering = Steering::new(Elastic { least_bytes: 200 * GIB, ..BOUNDS });
    let at_will = steering.next(200 * GIB, 0, Some(&reading(&[scope(1024 * GIB, 1024 * GIB)])));
    assert_eq!(at_will, 200 * GIB, "the least size is at the caller's risk");
}
