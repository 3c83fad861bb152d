//! What the policy promises. The tests use an owner that counts its pages in the simplest way.

use super::*;
use crate::flaky::SplitMix;
use std::collections::HashMap;

const LOOK: usize = 64;

/// A cache without content: pages are numbers, with made-up lengths.
struct Owner {
    budget: u64,
    policy: Policy<u32>,
    resident: HashMap<u32, Resident>,
    /// The most looks that any eviction took.
    most_looks: u64,
}

struct Resident {
    place: PolicyPlace,
    bytes: u64,
    uses: u8,
    pinned: bool,
}

impl Owner {
    fn new(budget: u64) -> Self {
        let policy = Policy::new(Tuning::DEFAULT);
        Self { budget, policy, resident: HashMap::new(), most_looks: 0 }
    }

    fn used(&self) -> u64 {
        self.resident.values().map(|page| page.bytes).sum()
    }

    fn has(&self, page: u32) -> bool {
        self.resident.contains_key(&page)
    }

    fn evict(&mut self, look: usize) -> Option<u32> {
        let before = self.policy.counts().looks;
        let resident = &mut self.resident;
        let gone = self.policy.evict(look, |page, _| {
            let page = resident.get_mut(&page).expect("only resident pages are looked at");
            match page.pinned {
                true => Use::Pinned,
                false => Use::Times(std::mem::take(&mut page.uses)),
            }
        });
        self.most_looks = self.most_looks.max(self.policy.counts().looks - before);
        let (page, bytes) = gone?;
        let known = self.resident.remove(&page).expect("only a resident page goes");
        assert_eq!(bytes, known.bytes, "page {page}");
        assert!(!known.pinned, "page {page} is pinned");
        Some(page)
    }

    fn admit(&mut self, page: u32, class: Class, bytes: u64, asked: bool) {
        while self.used() + bytes > self.budget && self.evict(LOOK).is_some() {}
        let place = self.policy.admit(page, key(page), class, bytes, asked);
        let before = self.resident.insert(page, Resident { place, bytes, uses: 0, pinned: false });
        assert!(before.is_none(), "page {page} is resident");
    }

    /// Uses a page of one byte, and admits it if it is missing. Returns whether it was in memory.
    fn ask(&mut self, page: u32, class: Class) -> bool {
        match self.resident.get_mut(&page) {
            Some(page) => page.uses = (page.uses + 1).min(3),
            None => {
                self.admit(page, class, 1, true);
                return false;
            }
        }
        true
    }

    fn remove(&mut self, page: u32) {
        let known = self.resident.remove(&page).expect("the page is resident");
        self.policy.remove(known.place);
    }

    fn of(&self, pages: std::ops::Range<u32>) -> usize {
        pages.filter(|&page| self.has(page)).count()
    }
}

/// A hash as good as the cache's.
fn key(page: u32) -> u64 {
    SplitMix(page.into()).next()
}

/// A cache of a thousand pages, 500 of which are hot, that is, used again and again; 50 of these are nodes.
fn warmed() -> Owner {
    let mut owner = Owner::new(1000);
    for _ in 0..10 {
        for page in 0..500 {
            owner.ask(page, if page < 50 { Class::Index } else { Class::Data });
        }
        // Let other pages come and go, so that pages are evicted and the hot ones become proven.
        for _ in 0..1000 {
            let page = 1_000_000 + owner.policy.counts().admitted as u32;
            owner.ask(page, Class::Data);
        }
    }
    assert_eq!(owner.of(0..500), 500, "the hot pages are there");
    owner
}

#[test]
fn a_scan_of_a_hundred_caches_leaves_the_hot_pages_even_if_nobody_reads_their_data_meanwhile() {
    for asked in [true, false] {
        let mut owner = warmed();
        for page in 2_000_000..2_100_000 {
            // Between two uses of a node, a whole cache of other pages passes by.
            if page % 1000 == 0 {
                (0..50).for_each(|node| assert!(owner.ask(node, Class::Index), "asked {asked}, node {node}"));
            }
            if page % 100 == 0 {
                owner.admit(page + 1_000_000, Class::Index, 1, asked);
            }
            // Use the node above each data page, and then the data page for some of its rows.
            owner.ask(page - page % 100 + 1_000_000, Class::Index);
            owner.admit(page, Class::Data, 1, asked);
            owner.ask(page, Class::Data);
        }
        assert_eq!(owner.of(0..500), 500, "asked {asked}");
    }
}

#[test]
fn a_page_used_twice_among_the_newcomers_outlives_thousands_of_newcomers() {
    let mut owner = Owner::new(1000);
    for page in 0..2000 {
        owner.ask(page, Class::Data);
        if page >= 1000 && page % 10 == 0 {
            owner.ask(page, Class::Data);
            owner.ask(page, Class::Data);
        }
    }
    for page in 2000..10_000 {
        owner.ask(page, Class::Data);
    }
    let twice = (1000..2000).step_by(10).filter(|&page| owner.has(page)).count();
    assert_eq!((twice, owner.of(1000..2000)), (100, 100));
}

#[test]
fn a_page_that_went_and_is_asked_for_again_is_proven() {
    let mut owner = Owner::new(100);
    for page in 0..150 {
        owner.ask(page, Class::Data);
    }
    assert!(!owner.has(20));
    assert!(!owner.ask(20, Class::Data));
    assert_eq!(owner.policy.counts().remembered, 1);
    for page in 1000..2000 {
        owner.ask(page, Class::Data);
    }
    assert!(owner.has(20), "newcomers do not push out a proven page");
}

#[test]
fn it_remembers_about_as_many_as_are_resident_and_no_more() {
    let mut owner = Owner::new(1000);
    for page in 0..10_000 {
        owner.ask(page, Class::Data);
    }
    // 1,000 pages are resident. The pages evicted last are asked for first, so the remembered pages include some
    // that these requests themselves push out.
    for page in (7000..9000).rev() {
        owner.ask(page, Class::Data);
    }
    let remembered = owner.policy.counts().remembered;
    assert!((400..=1000).contains(&remembered), "{remembered}");
}

#[test]
fn what_was_read_ahead_in_vain_goes_and_is_not_remembered() {
    let mut owner = Owner::new(100);
    for page in 0..50 {
        owner.admit(page, Class::Data, 1, false);
        owner.admit(100 + page, Class::Index, 1, false);
    }
    for page in 1000..5000 {
        owner.ask(page, Class::Data);
    }
    let nodes = owner.of(100..150);
    assert!(owner.of(0..50) == 0 && nodes <= 10, "{nodes} nodes, of which the line has room for 10");
    for page in 0..40 {
        owner.ask(page, Class::Data);
        owner.ask(100 + page, Class::Index);
    }
    assert_eq!(owner.policy.counts().remembered, 0);
}

#[test]
fn what_is_read_ahead_waits_for_its_use_however_many_newcomers_come_and_then_goes_first() {
    let mut owner = Owner::new(1000);
    let mut scan = 0;
    for round in 0..50 {
        // The readahead window is an eighth of the cache, and all its pages are in memory when the scan comes to
        // it.
        for page in scan..scan + 120 {
            owner.admit(page, Class::Data, 1, false);
        }
        for page in 0..1000 {
            owner.ask(1_000_000 + 1000 * round + page, Class::Data);
        }
        for page in scan..scan + 120 {
            assert!(owner.ask(page, Class::Data), "page {page} of the scan");
        }
        scan += 120;
    }
    assert!(owner.of(0..scan) <= 151, "{}", owner.of(0..scan));
    assert_eq!(owner.policy.counts().promoted, 0);
    let before = owner.of(1_000_000..1_050_000);
    for page in 5_000_000..5_000_100 {
        owner.admit(page, Class::Data, 1, false);
    }
    let after = owner.of(1_000_000..1_050_000);
    assert!(after >= before - 100 + 40, "{before} before, {after} after");
}

#[test]
fn nodes_that_serve_many_pages_stay_where_each_data_page_is_used_once() {
    // 40 nodes lie above 4,000 data pages, and the cache has room for 100 pages. What matters is that the nodes
    // stay.
    let seed = 1;
    println!("seed {seed}");
    let mut random = SplitMix(seed);
    let mut owner = Owner::new(100);
    let mut hits = 0;
    for read in 0..20_000 {
        let page = (random.next() % 4000) as u32;
        let hit = owner.ask(1_000_000 + page / 100, Class::Index);
        owner.ask(page, Class::Data);
        hits += u32::from(read >= 10_000 && hit);
    }
    assert!(hits > 9_950, "{hits} of 10,000");
}

#[test]
fn nodes_that_nobody_uses_again_make_room_for_data_that_is_used() {
    let mut owner = Owner::new(100);
    for page in 0..100 {
        owner.ask(1_000_000 + page, Class::Index);
    }
    for _ in 0..50 {
        for page in 0..60 {
            owner.ask(page, Class::Data);
        }
        for _ in 0..10 {
            let admitted = owner.policy.counts().admitted as u32;
            owner.ask(1_000_000 + admitted, Class::Index);
        }
    }
    assert_eq!(owner.of(0..60), 60);
}

#[test]
fn an_eviction_looks_at_no_more_pages_than_it_is_told() {
    let mut owner = warmed();
    for look in [1, 2, 7, 64] {
        for page in owner.resident.values_mut() {
            page.uses = 3;
        }
        owner.most_looks = 0;
        assert!(owner.evict(look).is_some(), "the coldest goes if all of them are hot");
        assert!(owner.most_looks <= look as u64, "{} of {look}", owner.most_looks);
    }
}

#[test]
fn pinned_pages_stay_and_hide_no_others() {
    let mut owner = warmed();
    for page in owner.resident.values_mut() {
        page.pinned = true;
    }
    assert_eq!(owner.evict(LOOK), None);
    assert!(owner.most_looks <= LOOK as u64);
    // The only evictable page is in the middle of a line, and some evictions do not reach it.
    owner.resident.get_mut(&300).expect("it is hot").pinned = false;
    assert!((0..1000).any(|_| owner.evict(LOOK) == Some(300)));
    // All newcomers are pinned. The policy finds one of the other pages in only four looks.
    for (&page, known) in &mut owner.resident {
        known.pinned = page >= 500;
    }
    assert!(owner.evict(4).is_some());
}

#[test]
fn a_pinned_page_keeps_its_uses_and_its_place_among_the_proven() {
    let mut owner = warmed();
    owner.resident.get_mut(&100).expect("it is hot").pinned = true;
    let uses = owner.resident[&100].uses;
    for page in 5_000_000..5_010_000 {
        owner.ask(page, Class::Data);
    }
    assert_eq!(owner.resident[&100].uses, uses);
    owner.resident.get_mut(&100).expect("it is pinned").pinned = false;
    for page in 6_000_000..6_010_000 {
        owner.ask(page, Class::Data);
    }
    assert!(owner.has(100));
}

#[test]
fn an_empty_policy_has_nothing_to_give() {
    let mut owner = Owner::new(10);
    assert_eq!(owner.evict(LOOK), None);
    owner.ask(1, Class::Data);
    assert_eq!(owner.evict(0), None);
    assert_eq!(owner.evict(1), Some(1));
    assert_eq!(owner.evict(usize::MAX), None);
}

#[test]
fn bytes_are_exact_and_pages_are_removed_in_any_state() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut random = SplitMix(seed);
        let mut owner = Owner::new(20_000);
        for step in 0..20_000 {
            let page = ((random.next() % 400) * (random.next() % 400) / 100) as u32;
            match random.next() % 10 {
                0 => {
                    let victim = owner.resident.keys().copied().min_by_key(|&resident| resident.abs_diff(page));
                    victim.into_iter().for_each(|victim| owner.remove(victim));
                }
                1 => {
                    owner.evict((random.next() % 6) as usize);
                }
                2 => {
                    owner.resident.get_mut(&page).into_iter().for_each(|page| page.pinned = !page.pinned);
                }
                _ if owner.has(page) => {
                    owner.ask(page, Class::Data);
                }
                asked => {
                    let class = if page.is_multiple_of(5) { Class::Index } else { Class::Data };
                    owner.admit(page, class, 1 + random.next() % 500, asked > 4);
                }
            }
            if step % 50 == 0 {
                owner.policy.check();
            }
            assert_eq!(owner.policy.bytes(), owner.used(), "step {step}");
            assert_eq!(owner.policy.pages(), owner.resident.len(), "step {step}");
        }
        let counts = owner.policy.counts();
        assert!(counts.promoted > 0 && counts.remembered > 0 && counts.pinned > 0, "{counts:?}");
        assert!(owner.most_looks <= LOOK as u64);
        // All remaining pages can be evicted.
        owner.resident.values_mut().for_each(|page| page.pinned = false);
        while owner.evict(usize::MAX).is_some() {}
        assert_eq!((owner.policy.bytes(), owner.resident.len()), (0, 0));
    }
}

#[test]
fn memory_is_forty_bytes_a_page_at_worst() {
    let mut owner = Owner::new(5000);
    for page in 0..20_000 {
        owner.ask(page, Class::Data);
    }
    assert_eq!(size_of::<PolicyNode<u32>>(), 24);
    let a_page = owner.policy.memory_bytes() as f64 / owner.policy.pages() as f64;
    assert!((32.0..=40.1).contains(&a_page), "{a_page} bytes a page");
}

impl<T: Copy> Policy<T> {
    /// Checks that each line links its oldest page to its newest and back, and that its byte count is right.
    fn check(&self) {
        let mut pages = 0;
        for (number, line) in self.lines.iter().enumerate() {
            let (mut before, mut bytes) = (NONE, 0);
            let mut place = line.oldest;
            while place != NONE {
                let node = &self.nodes[place as usize];
                assert_eq!((node.older, self.line_of(place)), (before, number));
                bytes += u64::from(node.bytes);
                pages += 1;
                (before, place) = (place, node.newer);
            }
            assert_eq!((line.newest, line.bytes), (before, bytes));
        }
        let mut free = 0;
        let mut place = self.free;
        while place != NONE {
            free += 1;
            place = self.nodes[place as usize].newer;
        }
        assert_eq!((pages, pages + free), (self.pages, self.nodes.len()));
    }
}

#[test]
fn kept_pages_go_when_there_is_nothing_else() {
    let mut owner = Owner::new(1000);
    for page in 0..400 {
        owner.admit(page, if page < 50 { Class::Index } else { Class::Data }, 1, page % 2 == 0);
        let place = owner.resident[&page].place;
        owner.policy.keep(place);
        assert!(owner.policy.is_kept(place));
    }
    // Nobody uses the kept pages, while other pages come, are used, and stay.
    for page in 1_000..10_000 {
        owner.ask(page, Class::Data);
        owner.ask(page - page % 7, Class::Data);
    }
    assert_eq!((owner.of(0..400), owner.policy.kept_bytes()), (400, 400));
    // All other pages are pinned.
    let others: Vec<u32> = owner.resident.keys().copied().filter(|&page| page >= 400).collect();
    for page in &others {
        owner.resident.get_mut(page).expect("it is resident").pinned = true;
    }
    while owner.of(0..400) > 300 {
        assert!(owner.evict(10 * others.len()).is_some_and(|page| (50..400).contains(&page)), "data goes first");
    }
    for page in &others {
        owner.resident.get_mut(page).expect("it is resident").pinned = false;
    }
    // A page that is no longer kept becomes proven, and is evicted when its turn comes.
    assert_eq!(owner.policy.keep_less(Class::Index), Some(1));
    assert_eq!(owner.policy.kept_bytes(), 299);
    while owner.of(400..10_000) > 0 || owner.of(0..50) == 50 {
        assert!(owner.evict(LOOK).is_some());
        assert!(owner.of(0..400) >= 299);
    }
    assert_eq!((owner.of(0..400), owner.of(0..50)), (299, 49));
    while owner.evict(LOOK).is_some() {}
    assert_eq!((owner.policy.pages(), owner.policy.bytes(), owner.policy.kept_bytes()), (0, 0, 0));
    assert_eq!((owner.policy.keep_less(Class::Index), owner.policy.keep_less(Class::Data)), (None, None));
}

#[test]
fn a_page_that_was_proven_elsewhere_outlives_newcomers() {
    let mut owner = Owner::new(1000);
    for page in 0..300 {
        owner.admit(page, Class::Data, 1, false);
        owner.policy.prove(owner.resident[&page].place, 1);
        assert_eq!(owner.policy.chances(owner.resident[&page].place), Some(1));
    }
    for page in 1_000..20_000 {
        owner.ask(page, Class::Data);
    }
    assert_eq!(owner.of(0..300), 300);
}
