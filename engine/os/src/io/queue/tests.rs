//! What the queue promises.

use super::super::{ReadLoad, Urgency};
use super::{Begun, Counted, PATIENCE, Queue, QueueLimits, Queued};
use crate::sim::SimDisk;
use crate::{Access, BLOCK_BYTES, Buffer, Disk, ReadRequest};
use Urgency::{Ahead, Background, Needed};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::path::Path;

/// A read of `bytes` bytes, with the given ticket.
#[derive(Debug)]
struct Item {
    ticket: u64,
    bytes: usize,
}

impl Queued for Item {
    fn load(&self) -> ReadLoad {
        ReadLoad { reads: 1, bytes: self.bytes }
    }

    fn tickets(&self) -> impl Iterator<Item = u64> {
        [self.ticket].into_iter()
    }
}

const LIMITS: QueueLimits =
    QueueLimits { depth: 8, unneeded: 4, bytes: [1000, 100, 50], strained_bytes: [1000, 40, 20], calm_bytes: 200 };

fn queue(items: &[(Urgency, u64, usize)]) -> Queue<Item> {
    let mut queue = Queue::new(LIMITS);
    for &(urgency, ticket, bytes) in items {
        queue.push(Item { ticket, bytes }, urgency);
    }
    queue
}

/// Begins every item that the limits allow.
fn begin(queue: &mut Queue<Item>) -> Vec<Begun<Item>> {
    std::iter::from_fn(|| queue.next()).collect()
}

fn end(queue: &mut Queue<Item>, begun: Begun<Item>) {
    queue.over(begun);
}

fn tickets(begun: &[Begun<Item>]) -> Vec<u64> {
    begun.iter().map(|begun| begun.item.ticket).collect()
}

#[test]
fn the_most_urgent_goes_first_and_equals_in_turn() {
    let mut queue = queue(&[
        (Background, 1, 10),
        (Ahead, 2, 10),
        (Needed, 3, 10),
        (Background, 4, 10),
        (Ahead, 5, 10),
        (Needed, 6, 10),
    ]);
    assert_eq!(tickets(&begin(&mut queue)), [3, 6, 2, 5, 1, 4]);
    assert!(!queue.has_next());
}

#[test]
fn what_nobody_waits_for_leaves_room_for_what_somebody_does() {
    let mut queue = queue(&[(Ahead, 1, 10), (Ahead, 2, 10), (Ahead, 3, 10), (Background, 4, 10), (Background, 5, 10)]);
    let begun = begin(&mut queue);
    assert_eq!(tickets(&begun), [1, 2, 3, 4]);
    for ticket in 10..20 {
        queue.push(Item { ticket, bytes: 1 }, Needed);
    }
    let needed = begin(&mut queue);
    assert_eq!(tickets(&needed), [10, 11, 12, 13], "up to the depth");
    for begun in needed {
        queue.over(begun);
    }
    assert_eq!(tickets(&begin(&mut queue)), [14, 15, 16, 17]);
}

#[test]
fn bytes_are_bounded_by_urgency_and_what_is_over_makes_room() {
    let mut queue = queue(&[(Background, 1, 30), (Background, 2, 30), (Background, 3, 20), (Ahead, 4, 100)]);
    let mut begun = begin(&mut queue);
    assert_eq!(tickets(&begun), [4, 1], "the second is next in its line, though the third would fit");
    assert_eq!(queue.usage().under_way.map(|load| load.bytes), [0, 100, 30]);
    assert_eq!(queue.usage().queued.map(|load| load.reads), [0, 0, 2]);
    queue.over(begun.pop().expect("two were begun"));
    assert_eq!(tickets(&begin(&mut queue)), [2, 3]);
}

#[test]
fn what_is_larger_than_its_bound_goes_alone() {
    let mut queue = queue(&[(Background, 1, 10), (Background, 2, 500), (Background, 3, 10)]);
    for ticket in [1, 2, 3] {
        let begun = begin(&mut queue);
        assert_eq!(tickets(&begun), [ticket]);
        begun.into_iter().for_each(|begun| end(&mut queue, begun));
    }
}

#[test]
fn bounds_are_narrow_while_somebody_waits_for_reads_and_some_time_after() {
    let mut queue = queue(&[(Needed, 0, 1), (Background, 1, 20), (Background, 2, 20)]);
    let mut begun = begin(&mut queue);
    assert_eq!(tickets(&begun), [0, 1]);
    queue.over(begun.remove(0));
    assert!(!queue.has_next(), "the next that is needed may come at once");
    let mut ticket = 2;
    let mut bytes = 20;
    while bytes < LIMITS.calm_bytes {
        queue.over(begun.pop().expect("one is under way"));
        ticket += 1;
        queue.push(Item { ticket, bytes: 20 }, Background);
        begun = begin(&mut queue);
        bytes += 20;
        assert_eq!(begun.len(), if bytes < LIMITS.calm_bytes { 1 } else { 2 }, "after {bytes} bytes");
    }
}

#[test]
fn needed_reads_made_elsewhere_strain_as_those_that_are_begun_here() {
    let items = [(Background, 1, 20), (Background, 2, 20)];
    let read = |urgency| {
        let file = SimDisk::new(1).open(Path::new("file"), Access::Create).expect("an empty disk has room");
        ReadRequest {
            source: file,
            offset: 0,
            buffer: Buffer::zeroed(BLOCK_BYTES),
            urgency,
            ticket: 9,
            done: Box::new(|_, _| {}),
        }
    };
    let mut idle = queue(&items);
    idle.elsewhere().make(read(Background));
    assert_eq!(tickets(&begin(&mut idle)), [1, 2], "nobody waits");
    let mut queue = queue(&items);
    queue.elsewhere().make(read(Needed));
    let mut begun = begin(&mut queue);
    assert_eq!(tickets(&begun), [1], "somebody did");
    assert!(!queue.has_next());
    end(&mut queue, begun.pop().expect("one was begun"));
    assert_eq!(tickets(&begin(&mut queue)), [2]);
}

#[test]
fn nothing_is_calm_while_a_needed_read_is_made_elsewhere() {
    let items = [(Background, 1, LIMITS.calm_bytes), (Background, 2, 20), (Background, 3, 20)];
    let mut queue = queue(&items);
    let elsewhere = queue.elsewhere();
    let under_way = Counted::new(&elsewhere);
    let mut begun = begin(&mut queue);
    assert_eq!(tickets(&begun), [1]);
    end(&mut queue, begun.pop().expect("one was begun"));
    let mut begun = begin(&mut queue);
    assert_eq!(tickets(&begun), [2], "as many bytes were begun as make it calm");
    drop(under_way);
    begun.extend(begin(&mut queue));
    assert_eq!(tickets(&begun), [2, 3]);
}

#[test]
fn nobody_waits_forever() {
    let mut queue = queue(&[(Background, 1, 1), (Ahead, 2, 1)]);
    let mut last = Vec::new();
    let mut begun_at = [0; 3];
    for turn in 1..=4 * PATIENCE {
        queue.push(Item { ticket: 100, bytes: 1 }, Needed);
        queue.push(Item { ticket: 100, bytes: 1 }, Needed);
        let next = queue.next().expect("there is room for one");
        begun_at[usize::try_from(next.item.ticket.min(3) % 3).expect("small")] = turn;
        last.push(queue.over(next).ticket);
    }
    assert_eq!(last.iter().filter(|&&ticket| ticket < 100).count(), 2);
    assert!(begun_at[1] <= PATIENCE + 2 && begun_at[2] <= PATIENCE + 2, "{begun_at:?}");
}

#[test]
fn a_raised_one_goes_with_those_that_are_needed_and_counts_as_one() {
    let mut queue = queue(&[(Ahead, 1, 90), (Ahead, 2, 90), (Ahead, 3, 90), (Background, 4, 90), (Background, 5, 90)]);
    let first = begin(&mut queue);
    assert_eq!(tickets(&first), [1, 4]);
    for (ticket, is_moved) in [(3, true), (5, true), (1, false), (3, false), (77, false)] {
        assert_eq!(queue.raise(ticket), is_moved, "{ticket}");
    }
    let raised = begin(&mut queue);
    assert_eq!(tickets(&raised), [3, 5]);
    assert_eq!(queue.usage().under_way.map(|load| load.bytes), [180, 90, 90]);
    raised.into_iter().chain(first).for_each(|begun| end(&mut queue, begun));
    assert_eq!(tickets(&begin(&mut queue)), [2], "the hole behind it is gone");
    assert!(queue.usage().queued.iter().all(|load| *load == ReadLoad::default()));
}

#[test]
fn clearing_gives_back_all_that_waits_and_the_queue_goes_on() {
    let mut queue = queue(&[(Background, 1, 60), (Background, 2, 60), (Ahead, 3, 60), (Ahead, 4, 60), (Ahead, 5, 60)]);
    let begun = begin(&mut queue);
    assert!(queue.raise(5));
    let mut cleared: Vec<_> = queue.clear().into_iter().map(|item| item.ticket).collect();
    cleared.sort_unstable();
    assert_eq!(cleared, [2, 4, 5]);
    assert!(!queue.is_quiet());
    begun.into_iter().for_each(|begun| end(&mut queue, begun));
    assert!(queue.is_quiet());
    assert!(!queue.raise(2));
    queue.push(Item { ticket: 6, bytes: 60 }, Ahead);
    assert!(queue.raise(6));
    assert_eq!(tickets(&begin(&mut queue)), [6]);
}

/// In a random run, every item is begun once, the counts agree with the items, and no limit is exceeded.
#[test]
fn every_item_is_begun_once_within_the_limits() {
    for seed in 0..200 {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut queue = Queue::new(LIMITS);
        let mut waiting = BTreeSet::new();
        let mut under_way: Vec<Begun<Item>> = Vec::new();
        for ticket in 0..500 {
            let urgency = Urgency::ALL[rng.random_range(0..3)];
            queue.push(Item { ticket, bytes: rng.random_range(1..=60) }, urgency);
            waiting.insert(ticket);
            if rng.random_range(0..4) == 0 {
                queue.raise(rng.random_range(0..=ticket));
            }
            for begun in begin(&mut queue) {
                assert!(waiting.remove(&begun.item.ticket), "begun once");
                under_way.push(begun);
            }
            assert!(under_way.len() <= LIMITS.depth);
            for urgency in [Ahead, Background] {
                let load = queue.usage().under_way[urgency as usize];
                assert!(load.reads <= 1 || load.bytes <= LIMITS.bytes[urgency as usize], "{load:?}");
            }
            assert_eq!(queue.usage().queued.iter().map(|load| load.reads).sum::<usize>(), waiting.len());
            assert_eq!(queue.usage().under_way.iter().map(|load| load.reads).sum::<usize>(), under_way.len());
            while !under_way.is_empty() && rng.random_range(0..3) > 0 {
                let ended = rng.random_range(0..under_way.len());
                end(&mut queue, under_way.swap_remove(ended));
            }
        }
        while !under_way.is_empty() || queue.has_next() {
            under_way.drain(..).for_each(|begun| end(&mut queue, begun));
            under_way = begin(&mut queue);
            under_way.iter().for_each(|begun| assert!(waiting.remove(&begun.item.ticket)));
        }
        assert!(waiting.is_empty() && queue.is_quiet());
    }
}
