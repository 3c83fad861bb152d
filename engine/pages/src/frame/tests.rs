//! What frames promise: a page stays as long as anyone holds it, it leaves only once, and it is never mistaken for
//! another page.
#![allow(clippy::disallowed_methods, reason = "these tests are about threads that meet in a frame")]

use super::*;
#[cfg(not(loom))]
use crate::budget::Budget;
use crate::{Codec, HEADER_BYTES};
#[cfg(loom)]
use os::sync::loom::{model, thread};
#[cfg(not(loom))]
use std::thread;

/// Runs a test whose threads run in any order; under loom, in every order.
#[cfg(not(loom))]
fn model(test: impl Fn() + Send + Sync + 'static) {
    let times = if cfg!(miri) { 20 } else { 2000 };
    (0..times).for_each(|_| test());
}

fn key(number: u64) -> PageKey {
    PageKey { slot: 1, unit: number }
}

/// A page full of its number.
fn page(frames: &Arc<Frames>, number: u64) -> PageRef {
    let bytes = HEADER_BYTES + 8;
    let mut buffer = Buffer::zeroed(bytes);
    buffer.fill(number as u8);
    let (memory_bytes, stored_bytes) = (bytes as u32, bytes as u32);
    let header = PageHeader { kind: PageKind::Data, codec: Codec::None, level: 0, memory_bytes, stored_bytes };
    let at = Address { offset: number * 64, bytes: bytes as u32, crc: 0 };
    PageRef::charged(frames, key(number), buffer, &header, &at, Charge::none())
}

fn check(page: &PageRef, number: u64) {
    check_bytes(page, number);
}

fn check_bytes(page: &impl Page, number: u64) {
    assert!(page.iter().all(|&byte| byte == number as u8) && page.address().offset == number * 64);
}

#[test]
fn a_page_found_while_it_is_evicted_is_whole_or_not_found() {
    model(|| {
        let frames = Frames::new(Hazards::new());
        let first = page(&frames, 7);
        first.give_to_cache();
        let number = first.number();
        drop(first);
        let finder = {
            let frames = Arc::clone(&frames);
            thread::spawn(move || {
                let found = frames.get(number).expect("it was made").find(key(7));
                found.as_ref().inspect(|page| check(page, 7));
                found.is_some()
            })
        };
        let frame = frames.get(number).expect("it was made");
        let evicted = frame.evict(frames.hazards()).is_some();
        // The frame may get another page while the searching thread looks at it.
        let next = evicted.then(|| page(&frames, 8));
        let found = finder.join().expect("no panic");
        assert!(evicted || found, "a page that nobody found is evicted");
        if let Some(next) = next {
            assert_eq!(next.number(), number, "frames are used again");
            check(&next, 8);
            drop(next);
            assert_eq!(frames.free.lock().numbers, [number]);
        } else {
            assert!(frame.evict(frames.hazards()).is_some(), "whoever found it let it go");
        }
    });
}

#[test]
fn a_page_that_the_cache_gives_up_goes_with_its_last_reference_whoever_has_it() {
    model(|| {
        let frames = Frames::new(Hazards::new());
        let first = page(&frames, 7);
        first.give_to_cache();
        let number = first.number();
        let holder = thread::spawn(move || {
            check(&first, 7);
            drop(first);
        });
        let finder = {
            let frames = Arc::clone(&frames);
            thread::spawn(move || {
                drop(frames.get(number).expect("it was made").find(key(7)).inspect(|page| check(page, 7)))
            })
        };
        drop(frames.get(number).expect("it was made").forget(&frames));
        holder.join().expect("no panic");
        finder.join().expect("no panic");
        assert_eq!(frames.free.lock().numbers, [number]);
        assert!(frames.get(number).expect("it was made").find(key(7)).is_none());
        assert_eq!(Arc::strong_count(&frames), 1);
    });
}

/// Looks at the page with a number, if it is lent to this thread. Returns whether it was.
fn look(frames: &Frames, hazards: &Arc<Hazards>, number: u32) -> bool {
    let lease = hazards.lease();
    let lent = frames.get(number).expect("it was made").lend(key(7), &lease);
    lent.inspect(|page| check_bytes(page, 7)).is_some()
}

#[test]
fn a_page_that_is_lent_while_it_is_evicted_is_whole_or_not_lent() {
    model(|| {
        let hazards = Hazards::new();
        let frames = Frames::new(Arc::clone(&hazards));
        let first = page(&frames, 7);
        first.give_to_cache();
        let number = first.number();
        drop(first);
        let reader = {
            let frames = Arc::clone(&frames);
            thread::spawn(move || look(&frames, &hazards, number))
        };
        let frame = frames.get(number).expect("it was made");
        let evicted = frame.evict(frames.hazards()).is_some();
        // The frame may get another page while the reader looks at it.
        let next = evicted.then(|| page(&frames, 8));
        let was_lent = reader.join().expect("no panic");
        next.inspect(|next| check(next, 8));
        assert!(evicted || frame.evict(frames.hazards()).is_some(), "it is lent to nobody any more");
        assert!(evicted || was_lent || cfg!(loom), "the reader has not come so far, and protects the frame");
        assert_eq!(frames.free.lock().numbers, [number]);
    });
}

#[test]
fn a_lent_page_that_the_cache_gives_up_goes_once_it_is_lent_to_nobody() {
    model(|| {
        let hazards = Hazards::new();
        let frames = Frames::new(Arc::clone(&hazards));
        let first = page(&frames, 7);
        first.give_to_cache();
        let number = first.number();
        let holder = thread::spawn(move || {
            check(&first, 7);
            drop(first);
        });
        let reader = {
            let frames = Arc::clone(&frames);
            thread::spawn(move || look(&frames, &hazards, number))
        };
        drop(frames.get(number).expect("it was made").forget(&frames));
        holder.join().expect("no panic");
        reader.join().expect("no panic");
        drop(frames.take_retired());
        assert!(!frames.has_retired());
        assert_eq!(frames.free.lock().numbers, [number]);
        assert_eq!(Arc::strong_count(&frames), 1);
    });
}

#[cfg(not(loom))]
#[test]
fn a_lent_page_stays_until_it_is_given_back_and_costs_until_then() {
    let hazards = Hazards::new();
    let (frames, budget) = (Frames::new(Arc::clone(&hazards)), Arc::new(Budget::new(18_000)));
    let paid = paid_page(&frames, &budget, PageKind::Data);
    paid.give_to_cache();
    let frame = frames.get(paid.number()).expect("it was made");
    drop(paid);
    let lease = hazards.lease();
    let lent = frame.lend(key(2), &lease).expect("the cache has it");
    assert!(frame.evict(frames.hazards()).is_none(), "it is lent");
    let kept = lent.keep().expect("it is whole");
    assert!(frame.forget(&frames).is_none() && frame.lend(key(2), &lease).is_none() && frame.find(key(2)).is_none());
    drop(kept);
    assert!(frames.has_retired() && frames.take_retired().is_empty() && budget.used() > 0, "it is still lent");
    assert_eq!((lent.len(), lent.address().offset, lent.keep().is_none()), (4096, 128, true));
    drop(lent);
    assert_eq!(frames.take_retired().len(), 1);
    assert_eq!((budget.used(), frames.has_retired(), frames.take_retired().len()), (0, false, 0));
}

#[test]
fn a_page_outlives_the_frames_it_came_from() {
    model(|| {
        let first = page(&Frames::new(Hazards::new()), 3);
        let second = first.clone();
        let other = thread::spawn(move || check(&second, 3));
        check(&first, 3);
        drop(first);
        other.join().expect("no panic");
    });
}

#[cfg(not(loom))]
#[test]
fn a_page_of_another_name_is_not_found() {
    let frames = Frames::new(Hazards::new());
    let first = page(&frames, 5);
    let frame = frames.get(first.number()).expect("it was made");
    assert!(frame.find(key(5)).is_none(), "the cache does not have it");
    first.give_to_cache();
    assert!(frame.find(key(6)).is_none() && frame.find(PageKey { slot: 2, unit: 5 }).is_none());
    assert!(frame.find(key(5)).is_some());
    assert!(frame.evict(frames.hazards()).is_none(), "it is pinned");
    assert!(first.is_last());
    drop(first);
    assert!(frame.evict(frames.hazards()).is_some(), "nobody has it any more");
}

#[cfg(not(loom))]
#[test]
fn a_frame_gets_no_other_page_before_it_has_left_its_chain() {
    let frames = Frames::new(Hazards::new());
    let first = page(&frames, 5);
    first.give_to_cache();
    let number = first.number();
    drop(first);
    let evicted = frames.get(number).expect("it was made").evict(frames.hazards()).expect("it is not pinned");
    // If another page got this frame now, it would change the frame's link in the chain, under another lock.
    let second = page(&frames, 6);
    assert_ne!(second.number(), number);
    drop(evicted);
    assert_eq!(page(&frames, 7).number(), number);
}

#[cfg(not(loom))]
#[test]
fn references_that_nobody_lets_go_do_not_become_marks() {
    let frames = Frames::new(Hazards::new());
    let first = page(&frames, 5);
    first.give_to_cache();
    let word = &first.frame().word;
    word.fetch_add(MAX_PINS - 1, Ordering::Relaxed);
    let second = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| first.clone()));
    assert!(second.is_err() && first.frame().find(key(5)).is_none());
    assert_eq!(word.load(Ordering::Relaxed), LIVE | CACHED | MAX_PINS);
    word.fetch_sub(MAX_PINS - 1, Ordering::Relaxed);
    drop(first.clone());
    drop(first);
    assert!(frames.get(1).expect("it was made").evict(frames.hazards()).is_some());
}

#[cfg(not(loom))]
#[test]
fn frames_are_numbered_from_one_without_gaps_and_stay_where_they_are() {
    let frames = Frames::new(Hazards::new());
    let pages: Vec<PageRef> = (0..300).map(|number| page(&frames, number)).collect();
    for (i, page) in pages.iter().enumerate() {
        assert_eq!(page.number(), i as u32 + 1);
        assert!(std::ptr::eq(frames.get(page.number()).expect("it was made"), page.frame()));
        check(page, i as u64);
    }
    assert!(frames.get(0).is_none() && frames.get(u32::MAX).is_none());
    let (frame_bytes, rest_bytes) = (size_of::<Frame>() as u64, size_of::<RestCell>() as u64);
    assert_eq!(frames.bytes(), (64 + 128 + 256) * (frame_bytes + rest_bytes));
    assert!(frame_bytes == 64 && rest_bytes <= 136, "what a page is said to cost counts on it: {rest_bytes}");
}

/// A page of the given kind, charged to `budget`.
#[cfg(not(loom))]
fn paid_page(frames: &Arc<Frames>, budget: &Arc<Budget>, kind: PageKind) -> PageRef {
    let header = PageHeader { kind, codec: Codec::None, level: 1, memory_bytes: 4096, stored_bytes: 4096 };
    let at = Address { offset: 128, bytes: 4096, crc: 0 };
    let cost = cost_bytes(4096);
    let charge = budget.try_charge(cost).expect("there is room").convert_to_page(cost, kind);
    PageRef::charged(frames, key(2), Buffer::zeroed(4096), &header, &at, charge)
}

#[cfg(not(loom))]
#[test]
fn children_are_remembered_where_there_are_any_while_there_is_room() {
    let (frames, budget) = (Frames::new(Hazards::new()), Arc::new(Budget::new(18_000)));
    let child = page(&frames, 1);
    let data = paid_page(&frames, &budget, PageKind::Data);
    data.live().set_hint(3, child.live());
    assert_eq!(data.live().hint(3).number(), 0, "rows have no children");
    let node = paid_page(&frames, &budget, PageKind::Index);
    let alone = budget.used();
    node.live().set_hint(3, child.live());
    assert_eq!((node.live().hint(3).number(), budget.used()), (0, alone), "the cache does not keep it");
    node.give_to_cache();
    assert_eq!(node.live().hint(3).number(), 0);
    node.live().set_hint(3, child.live());
    assert_eq!((node.live().hint(3).number(), node.live().hint(4).number()), (child.number(), 0));
    let hint_bytes = hint_bytes(4096, PageKind::Index);
    assert_eq!(
        node.live().hint(3 + hint_bytes as usize / 8),
        node.live().hint(3),
        "more children than hints share them"
    );
    assert_eq!(node.memory_bytes(), node.cost_bytes() + hint_bytes);
    assert_eq!(budget.of_kind(PageKind::Index), node.memory_bytes());
    let second = paid_page(&frames, &budget, PageKind::Index);
    let used = budget.used();
    assert!(used + hint_bytes > budget.limit());
    second.give_to_cache();
    second.live().set_hint(3, child.live());
    assert_eq!((second.live().hint(3).number(), budget.used()), (0, used));
    let kept = [node.number(), second.number()];
    drop((data, node, second));
    for number in kept {
        assert!(frames.get(number).expect("it was made").evict(frames.hazards()).is_some());
    }
    assert_eq!((budget.used(), budget.of_kind(PageKind::Index), budget.frames()), (0, 0, 0));
}

#[cfg(not(loom))]
#[test]
fn a_page_that_belongs_to_no_cache_goes_with_its_last_reference() {
    let header = PageHeader { kind: PageKind::Data, codec: Codec::None, level: 0, memory_bytes: 20, stored_bytes: 20 };
    let at = Address { offset: 64, bytes: 64, crc: 0 };
    let page = PageRef::detached(Buffer::zeroed(20), &header, at);
    let second = page.clone();
    drop(page);
    assert_eq!((second.len(), second.address()), (20, at));
}
