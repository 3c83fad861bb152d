//! The wheel must give the same clients as a sorted set.

use super::*;
use std::collections::BTreeSet;

const TICK: u64 = 1 << TICK_BITS;
const REVOLUTION: u64 = TICK * SLOTS as u64;

#[derive(Default)]
struct One {
    due: u64,
    next: Link,
}

impl Waiter for One {
    fn due(&self) -> u64 {
        self.due
    }

    fn next(&mut self) -> &mut Link {
        &mut self.next
    }
}

/// A wheel, and the set of clients that it should have.
struct Both {
    waiters: Vec<One>,
    wheel: Wheel,
    model: BTreeSet<(u64, u32)>,
}

impl Both {
    fn new(now: u64, count: usize) -> Self {
        let waiters = (0..count).map(|_| One::default()).collect();
        Self { waiters, wheel: Wheel::new(now), model: BTreeSet::new() }
    }

    fn add(&mut self, index: u32, due: u64) {
        self.waiters[index as usize].due = due;
        self.wheel.add(&mut self.waiters, index);
        self.model.insert((due, index));
    }

    /// Takes all clients whose time has come, and returns their number.
    fn take_all(&mut self, now: u64) -> usize {
        let mut taken = 0;
        loop {
            let expected = self.model.first().filter(|(due, _)| *due <= now).copied();
            assert_eq!(self.wheel.take(&mut self.waiters, now), expected.map(|(_, index)| index), "at {now}");
            let Some(expected) = expected else { return taken };
            self.model.remove(&expected);
            taken += 1;
        }
    }

    /// The next time of the wheel. The time is not later than the time of the client that is due first. The two
    /// times are equal if all clients are due within one revolution.
    fn next(&mut self, now: u64) -> u64 {
        let next = self.wheel.next(&mut self.waiters);
        let first = self.model.first().map_or(u64::MAX, |(due, _)| *due);
        assert!(next <= first, "{next} is later than {first}");
        assert_eq!(self.wheel.is_empty(), self.model.is_empty());
        let last = self.model.last().map_or(u64::MAX, |(due, _)| *due);
        if self.model.is_empty() || last < now + REVOLUTION - TICK {
            assert_eq!(next, first, "at {now}");
        }
        next
    }
}

/// The generator xorshift64*. Only its high bits are used.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound
    }
}

#[test]
fn random_times_come_in_the_order_of_a_sorted_set() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in seed.map_or(1..21_u64, |seed| seed..seed + 1) {
        println!("to run this again: SEED={seed} cargo test -p larch-bench-harness sorted_set");
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut now = random.below(10 * REVOLUTION);
        let count = 1 + random.below(300) as u32;
        let mut both = Both::new(now, count as usize);
        let mut idle: Vec<u32> = (0..count).collect();
        for _ in 0..2_000 {
            let adds = random.below(20);
            for _ in 0..adds {
                if idle.is_empty() {
                    break;
                }
                let index = idle.swap_remove(random.below(idle.len() as u64) as usize);
                let due = match random.below(20) {
                    0 => now.saturating_sub(random.below(2 * REVOLUTION)),
                    1 => now,
                    2 => u64::MAX - random.below(2),
                    3..6 => now + random.below(4 * REVOLUTION),
                    6..10 => now + random.below(1_000),
                    // Many clients get the same time.
                    10..13 => (now / TICK + 5) * TICK,
                    _ => now + random.below(50 * TICK),
                };
                both.add(index, due);
            }
            let next = both.next(now);
            now = match random.below(50) {
                0 => now + random.below(3 * REVOLUTION),
                1..20 => now.max(next.min(now + REVOLUTION)),
                _ => now + random.below(10 * TICK),
            };
            both.take_all(now);
            idle = (0..count).filter(|index| both.model.iter().all(|(_, waits)| waits != index)).collect();
        }
        let mut left: Vec<u32> = Vec::new();
        both.wheel.drain(&mut both.waiters, |index| left.push(index));
        left.sort();
        let mut expected: Vec<u32> = both.model.iter().map(|(_, index)| *index).collect();
        expected.sort();
        assert_eq!(left, expected, "those who waited in the end");
        both.model.clear();
        assert_eq!(both.next(now), u64::MAX);
        both.add(0, now + 7);
        assert_eq!((both.take_all(now + 6), both.take_all(now + 7)), (0, 1), "it is used again");
    }
}

#[test]
fn a_time_comes_at_its_nanosecond() {
    for due in [TICK - 1, TICK, TICK + 1, 5 * TICK, REVOLUTION - 1, REVOLUTION, REVOLUTION + 12_345, 3 * REVOLUTION] {
        let mut both = Both::new(0, 1);
        both.add(0, due);
        assert_eq!(both.take_all(due - 1), 0, "{due}");
        assert_eq!(both.take_all(due), 1, "{due}");
    }
}

#[test]
fn who_waits_for_more_than_a_revolution_is_not_given_with_others_of_the_slot() {
    let mut both = Both::new(0, 3);
    for (index, revolutions) in [(0, 2), (1, 0), (2, 1)] {
        both.add(index, 7 * TICK + revolutions * REVOLUTION);
    }
    for revolution in 0..3 {
        let now = 7 * TICK + revolution * REVOLUTION;
        assert_eq!((both.take_all(now - 1), both.take_all(now)), (0, 1), "revolution {revolution}");
    }
}

#[test]
fn following_the_next_time_comes_to_the_first_one_in_few_steps_however_far_it_is() {
    let mut both = Both::new(0, 2);
    both.add(0, 100 * REVOLUTION + 3);
    both.add(1, u64::MAX);
    let (mut now, mut steps) = (0, 0);
    while both.take_all(now) == 0 {
        let next = both.next(now);
        assert!(next > now, "a time that has passed would be waited for again and again");
        (now, steps) = (next, steps + 1);
    }
    assert_eq!(now, 100 * REVOLUTION + 3);
    // Each of the two slots is visited once per revolution.
    assert!(steps <= 202, "{steps} steps");
}

#[test]
fn nobody_waits_for_times_that_have_passed() {
    let mut both = Both::new(50 * REVOLUTION, 100);
    for index in 0..100 {
        both.add(index, u64::from(index % 7) * REVOLUTION);
    }
    assert_eq!(both.next(50 * REVOLUTION), 0);
    assert_eq!(both.take_all(6 * REVOLUTION), 100);
}

#[test]
fn a_wheel_takes_4_bytes_a_slot_and_a_bit() {
    let wheel = Wheel::new(0);
    assert_eq!(size_of_val(&wheel.slots[..]) + size_of_val(&wheel.filled[..]), SLOTS * 4 + SLOTS / 8);
}
