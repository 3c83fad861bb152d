//! What a cache with an elastic budget promises.

use crate::elastic::Elastic;
use crate::numbered::{BLOCK_COST, Numbered, accept, wait_until};
use crate::{Admit, HEADER_BYTES, PageCache, PageLender, PagedFile, Reason, Session, retry};
use os::real::ThreadPool;
use os::sim::{SimClock, SimFreeMemory, SimThreads};
use os::sync::Arc;
use os::{MemoryReading, ScopeMemory, Worker};

const MIB: u64 = 1 << 20;

const PAGES: usize = 4096;

const BOUNDS: Elastic = Elastic { least_bytes: MIB, most_bytes: 12 * MIB };

/// A machine on which `bytes` more can be taken, beside the headroom.
fn available(bytes: u64) -> Option<MemoryReading> {
    // A quarter of a machine of 16 MiB is its headroom.
    let scope = ScopeMemory { total_bytes: 16 * MIB, available_bytes: 4 * MIB + bytes, free_bytes: 0 };
    Some(MemoryReading { scopes: vec![scope], ..MemoryReading::default() })
}

/// A cache whose readings are taken when the test says.
struct Governed {
    cache: Arc<PageCache>,
    memory: Arc<SimFreeMemory>,
    clock: Arc<SimClock>,
}

impl Governed {
    fn new(elastic: Elastic) -> Self {
        let (memory, clock) = (Arc::new(SimFreeMemory::default()), Arc::new(SimClock::new()));
        let cache = PageCache::growing(elastic.least_bytes, elastic.most_bytes, 8, accept);
        cache.set_elastic(elastic, memory.clone(), Arc::new(SimThreads::new(clock.clone())));
        Self { cache, memory, clock }
    }

    fn worker(&self) -> Arc<dyn Worker> {
        self.cache.governor.lock().as_ref().expect("the budget is elastic").worker()
    }

    /// Takes `count` readings.
    fn govern(&self, count: u32) {
        for _ in 0..count {
            self.clock.advance(crate::cache::governor::PERIOD);
            self.worker().drive();
        }
    }
}

fn read_all(session: &Session, numbered: &Numbered, file: &Arc<PagedFile>) {
    for number in 0..PAGES {
        retry(session, || numbered.page(session, file, number).map(drop)).expect("no faults of the disk");
    }
}

#[test]
fn the_budget_grows_while_memory_is_free_and_falls_when_it_is_wanted() {
    let numbered = Numbered::blocks(PAGES);
    let governed = Governed::new(BOUNDS);
    let (cache, memory) = (&governed.cache, &governed.memory);
    assert_eq!(cache.budget_bytes(), BOUNDS.least_bytes);
    let file = numbered.register(cache);
    let session = Session::new(cache, Reason::Point, Admit::Keep);
    memory.set(available(20 * MIB));
    governed.govern(2000);
    assert_eq!(cache.budget_bytes(), BOUNDS.most_bytes);
    read_all(&session, &numbered, &file);
    let full = cache.usage();
    assert!(full.used_bytes > 11 * MIB && full.backed_bytes > 11 * MIB, "{full:?}");

    // Others take what was free, and 4 MiB of the headroom. The cache gives as much back at the next reading, while
    // readers have pages pinned.
    let pinned: Vec<_> = (PAGES - 100..PAGES)
        .map(|number| retry(&session, || numbered.page(&session, &file, number)).expect("no faults of the disk"))
        .collect();
    let scope = ScopeMemory { total_bytes: 16 * MIB, available_bytes: 0, free_bytes: 0 };
    memory.set(Some(MemoryReading { scopes: vec![scope], ..MemoryReading::default() }));
    governed.govern(1);
    let shrunk = cache.usage();
    assert_eq!(shrunk.budget_bytes, full.backed_bytes - 4 * MIB);
    assert!(shrunk.used_bytes <= shrunk.budget_bytes && shrunk.backed_bytes <= shrunk.budget_bytes, "{shrunk:?}");

    // Nothing is left for the cache but its least size.
    governed.govern(2);
    let least = cache.usage();
    assert_eq!(least.budget_bytes, BOUNDS.least_bytes);
    assert!(least.used_bytes <= least.budget_bytes && least.backed_bytes <= least.budget_bytes, "{least:?}");
    assert_eq!(least.pinned_bytes, 100 * BLOCK_COST);
    pinned.iter().enumerate().for_each(|(i, page)| numbered.check(PAGES - 100 + i, &page[HEADER_BYTES..]));
}

#[test]
fn pages_that_were_pinned_when_the_budget_fell_go_once_they_are_free() {
    let numbered = Numbered::blocks(PAGES);
    let governed = Governed::new(BOUNDS);
    let (cache, memory) = (&governed.cache, &governed.memory);
    let file = numbered.register(cache);
    let session = Session::new(cache, Reason::Point, Admit::Keep);
    memory.set(available(20 * MIB));
    governed.govern(2000);
    let page = |number| retry(&session, || numbered.page(&session, &file, number)).expect("no faults of the disk");
    let pinned: Vec<_> = (0..PAGES / 2).map(page).collect();
    session.release();
    memory.set(Some(MemoryReading {
        scopes: vec![ScopeMemory { total_bytes: 16 * MIB, available_bytes: 0, free_bytes: 0 }],
        ..MemoryReading::default()
    }));
    governed.govern(10);
    assert!(cache.used_bytes() > cache.budget_bytes(), "they are pinned");
    drop(pinned);
    governed.govern(1);
    assert!(cache.used_bytes() <= cache.budget_bytes(), "{:?}", cache.usage());
}

#[test]
fn callers_hold_a_part_of_the_least_size_only() {
    let numbered = Numbered::blocks(PAGES);
    let governed = Governed::new(BOUNDS);
    let file = numbered.register(&governed.cache);
    let session = Session::new(&governed.cache, Reason::Point, Admit::Keep);
    governed.memory.set(available(20 * MIB));
    governed.govern(2000);
    assert_eq!(governed.cache.budget_bytes(), BOUNDS.most_bytes);
    let page = |number| retry(&session, || numbered.page(&session, &file, number)).expect("no faults of the disk");
    let held: Vec<_> = (0..PAGES).map_while(|number| governed.cache.hold(page(number))).collect();
    assert_eq!(held.len() as u64, BOUNDS.least_bytes / 4 / BLOCK_COST);
    // With a budget that does not fall by itself, they hold more.
    governed.cache.set_budget(BOUNDS.most_bytes);
    assert!(governed.cache.hold(page(PAGES - 1)).is_some());
}

#[test]
fn a_number_ends_the_governor() {
    let governed = Governed::new(BOUNDS);
    let worker = governed.worker();
    assert!(governed.cache.is_elastic());
    governed.cache.set_budget(3 * MIB);
    assert!(!governed.cache.is_elastic());
    governed.memory.set(available(20 * MIB));
    worker.wake();
    worker.drive();
    assert_eq!(governed.cache.budget_bytes(), 3 * MIB);
    assert_eq!(governed.cache.least_bytes(), 3 * MIB);
    drop(worker);
    assert_eq!(Arc::strong_count(&governed.memory), 1);
}

#[test]
fn new_bounds_take_the_place_of_old_ones() {
    let governed = Governed::new(BOUNDS);
    let old = governed.worker();
    governed.cache.set_budget(8 * MIB);
    let narrow = Elastic { least_bytes: 2 * MIB, most_bytes: 4 * MIB };
    governed.cache.set_elastic(narrow, governed.memory.clone(), Arc::new(SimThreads::new(governed.clock.clone())));
    assert_eq!((governed.cache.budget_bytes(), governed.cache.least_bytes()), (4 * MIB, 2 * MIB));
    governed.memory.set(available(0));
    old.drive();
    assert_eq!(governed.cache.budget_bytes(), 4 * MIB);
    governed.govern(500);
    assert_eq!(governed.cache.budget_bytes(), 2 * MIB);
}

#[test]
fn where_the_system_says_nothing_the_budget_stays_the_least() {
    let governed = Governed::new(BOUNDS);
    governed.govern(100);
    assert_eq!(governed.cache.budget_bytes(), BOUNDS.least_bytes);
}

#[test]
fn the_last_handle_ends_the_governor_and_its_thread() {
    let memory = Arc::new(SimFreeMemory::default());
    memory.set(available(20 * MIB));
    let pool = ThreadPool::new(2);
    let cache = PageCache::growing(BOUNDS.least_bytes, BOUNDS.most_bytes, 8, accept);
    cache.set_elastic(BOUNDS, memory.clone(), pool.clone());
    wait_until(|| cache.budget_bytes() > BOUNDS.least_bytes);
    assert!(pool.running_threads() > 0);
    drop(cache);
    wait_until(|| Arc::strong_count(&memory) == 1 && Arc::strong_count(&pool) == 1);
}
