//! What one reader is promised: how many rounds it takes, what it pins, and what it leaves in the cache.

mod flying;
mod parked;

use super::ahead::{GIVEN_UP_ROUNDS, MAX_HINTS};
use super::*;
use crate::flaky::SplitMix;
use crate::numbered::{BLOCK_COST, Numbered, PATH, accept};
use crate::{Compression, Error, Packing, PagedFile, Resident, retry};

fn setup(numbered: &Numbered, budget_pages: u64) -> (Arc<PageCache>, Arc<PagedFile>) {
    let cache = PageCache::new(budget_pages * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    (cache, file)
}

/// A composite step: asks for all pages before it gives up.
fn all_of(session: &Session, numbered: &Numbered, file: &Arc<PagedFile>, pages: &[usize]) -> Result<usize> {
    let mut runs = 0;
    retry(session, || {
        runs += 1;
        let outcomes: Vec<_> = pages.iter().map(|number| numbered.page(session, file, *number)).collect();
        outcomes.into_iter().collect::<Result<Vec<_>, Stop>>().map(drop)
    })
    .map(|()| runs)
}

/// A session that does not keep pages reads page 0. `meanwhile` is called before the page lands.
fn read_by_another(cache: &Arc<PageCache>, numbered: &Numbered, file: &Arc<PagedFile>, meanwhile: impl FnOnce()) {
    let charge = cache.try_reserve(BLOCK_COST).expect("the cache is empty");
    let PageLookup::Claimed(claim) = cache.claim(numbered.key(file, 0), 0, false, Demand::Reader) else {
        panic!("it is missing")
    };
    meanwhile();
    let (kind, at) = numbered.pages[0];
    let stored = file.read(&at, kind).expect("no faults");
    let decoded = crate::page::adopt_page(stored.buffer, kind, &at, file.id(), cache.unpacker(), os::Buffer::zeroed);
    let decoded = decoded.expect("the page is whole");
    let made = cache.make_page(numbered.key(file, 0), decoded, at, charge, true).expect("its structure is right");
    claim.land(file.state(), Ok(made));
}

#[test]
fn pages_that_fault_together_come_in_one_round() {
    for admit in [Admit::Keep, Admit::Nodes, Admit::Pass] {
        let numbered = Numbered::blocks(20);
        let (cache, file) = setup(&numbered, 100);
        let session = Session::new(&cache, Reason::Scan, admit);
        assert_eq!(all_of(&session, &numbered, &file, &[3, 17, 5, 5, 0, 3]).expect("no faults"), 2);
        assert_eq!((session.rounds(), session.page_reads()), (1, 4));
        assert_eq!(numbered.disk.counts().reads, 4);
        assert_eq!(cache.usage().frames, if admit == Admit::Keep { 4 } else { 0 });
    }
}

#[test]
fn a_page_asked_for_twice_takes_the_room_of_one() {
    let numbered = Numbered::blocks(1);
    let (cache, file) = setup(&numbered, 1);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    numbered.ahead(&session, &file, 0);
    all_of(&session, &numbered, &file, &[0, 0]).expect("no faults");
    assert!(numbered.is_resident(&cache, &file, 0), "it fits the budget");
}

#[test]
fn a_path_takes_one_round_a_page_however_small_the_cache() {
    for (budget_pages, admit) in [(100, Admit::Keep), (1, Admit::Keep), (0, Admit::Pass)] {
        let numbered = Numbered::blocks(20);
        let (cache, file) = setup(&numbered, budget_pages);
        let session = Session::new(&cache, Reason::Point, admit);
        retry(&session, || [9, 4, 15, 1].iter().try_for_each(|page| numbered.page(&session, &file, *page).map(drop)))
            .expect("no faults");
        assert_eq!((session.rounds(), session.page_reads()), (4, 4));
    }
}

#[test]
fn a_damaged_page_among_others_read_with_it_fails_alone() {
    let numbered = Numbered::blocks(8);
    numbered.disk.flip_bit(PATH, 3 * 4096 + 77, 0);
    let (cache, file) = setup(&numbered, 1000);
    let session = Session::new(&cache, Reason::Scan, Admit::Keep);
    let error = all_of(&session, &numbered, &file, &[0, 1, 2, 3, 4, 5]).expect_err("page 3 is damaged");
    assert!(matches!(error, Error::Corrupt { offset: 12288, .. }), "{error}");
    assert!([0, 1, 2, 4, 5].iter().all(|number| numbered.is_resident(&cache, &file, *number)));
    assert!(!numbered.is_resident(&cache, &file, 3));

    // A damaged page that is only asked for ahead gives no step an error.
    session.ahead(file.at(&numbered.pages[3].1, PageKind::Data));
    all_of(&session, &numbered, &file, &[7]).expect("page 7 is whole");
    assert_eq!(cache.usage().in_flight_bytes, 0);
}

#[test]
fn a_step_is_told_once_of_each_page_that_it_had_to_read() {
    let numbered = Numbered::blocks(8);
    let (cache, file) = setup(&numbered, 10);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    let told = |number: usize| session.take_read(file.at(&numbered.pages[number].1, PageKind::Data));
    let step = |numbers: &[usize]| {
        retry(&session, || {
            for &number in numbers {
                numbered.page(&session, &file, number)?;
            }
            Ok(numbers.iter().map(|&number| [told(number), told(number)]).collect::<Vec<_>>())
        })
        .expect("the disk works")
    };
    numbered.ahead(&session, &file, 2);
    assert_eq!(step(&[0, 1]), [[true, false], [true, false]]);
    assert!(!told(0), "the step is done");
    assert_eq!(step(&[0, 2, 3]), [[false, false], [false, false], [true, false]], "read before, ahead, and now");
}

#[test]
fn a_failed_read_is_said_once_and_tried_again_later() {
    let numbered = Numbered::blocks(2);
    let (cache, file) = setup(&numbered, 10);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    numbered.disk.fail_operation(2, std::io::ErrorKind::TimedOut);
    let error = all_of(&session, &numbered, &file, &[0]).expect_err("opened, but not read");
    assert!(matches!(error, Error::Io { action: "read", .. }), "{error}");
    all_of(&session, &numbered, &file, &[0]).expect("the disk is well again");
    assert_eq!(cache.usage().used_bytes, BLOCK_COST);
}

#[test]
fn a_page_asked_for_with_another_address_is_corrupt_though_it_is_resident() {
    let numbered = Numbered::blocks(2);
    let (cache, file) = setup(&numbered, 10);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    all_of(&session, &numbered, &file, &[0]).expect("no faults");
    let (kind, at) = numbered.pages[0];
    for (kind, at) in [(kind, Address { crc: !at.crc, ..at }), (PageKind::Index, at)] {
        let outcome = session.page(file.at(&at, kind));
        assert!(matches!(outcome, Err(Stop::Failed(error)) if matches!(*error, Error::Corrupt { .. })));
    }
}

#[test]
fn an_address_that_can_be_none_is_corrupt_and_reserves_nothing() {
    let numbered = Numbered::blocks(1);
    let (cache, file) = setup(&numbered, 10);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    for at in [(u64::MAX - 63, 64), (u64::MAX - 4095, 4096), (0, u32::MAX), (0, 0), (32, 64)] {
        let at = Address { offset: at.0, bytes: at.1, crc: 0 };
        session.ahead(file.at(&at, PageKind::Data));
        let outcome = retry(&session, || session.page(file.at(&at, PageKind::Data)));
        assert!(matches!(outcome, Err(Error::Corrupt { .. })), "{at:?}");
    }
    assert_eq!((session.rounds(), numbered.disk.counts().reads), (0, 0));
}

#[test]
fn a_page_whose_structure_is_wrong_is_corrupt() {
    let numbered = Numbered::blocks(1);
    let cache = PageCache::new(1 << 20, 8, |_, _| Err("keys out of order".into()));
    let file = numbered.register(&cache);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    let error = all_of(&session, &numbered, &file, &[0]).expect_err("nothing is right");
    assert!(error.to_string().contains("data page at offset 0: keys out of order"), "{error}");
    assert_eq!(cache.usage().used_bytes, 0);
}

#[test]
fn pages_read_ahead_come_in_the_round_of_the_next_fault() {
    for admit in [Admit::Keep, Admit::Nodes, Admit::Pass] {
        let numbered = Numbered::blocks(20);
        let (cache, file) = setup(&numbered, 1000);
        let session = Session::new(&cache, Reason::Scan, admit);
        for number in 1..8 {
            numbered.ahead(&session, &file, number);
            numbered.ahead(&session, &file, number);
        }
        assert_eq!(session.page_reads(), 0, "nobody waits for a hint");
        for number in 0..8 {
            all_of(&session, &numbered, &file, &[number]).expect("no faults");
        }
        assert_eq!((session.rounds(), session.page_reads()), (1, 8), "{admit:?}");
        assert_eq!(cache.usage().frames, if admit == Admit::Keep { 8 } else { 0 });
    }
}

#[test]
fn pages_read_ahead_take_a_bounded_share_of_memory() {
    let numbered = Numbered::blocks(100);
    let (cache, file) = setup(&numbered, 160);
    let session = Session::new(&cache, Reason::Scan, Admit::Pass);
    (1..100).for_each(|number| assert!(numbered.ahead(&session, &file, number)));
    all_of(&session, &numbered, &file, &[0]).expect("no faults");
    assert_eq!((session.page_reads(), cache.usage().used_bytes), (11, 10 * BLOCK_COST));
    // While no step takes one of these ten pages, other pages that are asked for ahead have no room. After
    // [`GIVEN_UP_ROUNDS`] rounds, the ten pages make room for them. All of them go with the session.
    for round in 1..=GIVEN_UP_ROUNDS as usize {
        (50..100).for_each(|number| assert!(numbered.ahead(&session, &file, number)));
        all_of(&session, &numbered, &file, &[39 + round]).expect("no faults");
        let reads = if round < GIVEN_UP_ROUNDS as usize { 11 + round } else { 21 + round };
        assert_eq!((session.page_reads(), cache.usage().used_bytes), (reads as u64, 10 * BLOCK_COST));
    }
    drop(session);
    assert_eq!(cache.usage().used_bytes, 0);
}

#[test]
fn a_session_with_memory_of_its_own_waits_for_no_room_in_the_cache_and_takes_none() {
    let numbered = Numbered::blocks(60);
    let (cache, file) = setup(&numbered, 4);
    // The session `pinning` has the threads' turn. Another session that needs room in the cache would wait for this
    // turn, and on this thread it would wait forever.
    let pinning = Session::new(&cache, Reason::Point, Admit::Keep);
    (0..6).for_each(|number| assert!(numbered.page(&pinning, &file, number).is_err()));
    pinning.fetch().expect("no faults");
    let before = cache.usage();
    assert!(before.used_bytes > before.budget_bytes);

    let memory = OwnMemory::new(10 * BLOCK_COST);
    let session =
        Session::new(&cache, Reason::Compaction, Admit::Pass).with_own_memory(&memory).with_ahead_bytes(8 * BLOCK_COST);
    assert_eq!(all_of(&session, &numbered, &file, &[10, 11, 12]).expect("no faults"), 2);
    assert_eq!(session.page_reads(), 3);
    assert_eq!(memory.used_bytes(), 0, "a step that is done keeps nothing");
    (20..50).for_each(|number| _ = numbered.ahead(&session, &file, number));
    assert_eq!(all_of(&session, &numbered, &file, &[13]).expect("no faults"), 2);
    assert_eq!(memory.used_bytes(), 8 * BLOCK_COST, "what is read ahead has its bound");
    all_of(&session, &numbered, &file, &(20..28).collect::<Vec<_>>()).expect("no faults");
    assert_eq!(session.page_reads(), 12, "each page is read once");
    assert_eq!(cache.usage(), before);
    drop(session);
    assert_eq!(memory.used_bytes(), 0);
}

#[test]
fn what_was_asked_for_first_is_read_and_kept_where_there_is_no_room_for_all() {
    for (admit, backward) in [Admit::Keep, Admit::Pass].into_iter().flat_map(|admit| [(admit, false), (admit, true)]) {
        let numbered = Numbered::blocks(100);
        let (cache, file) = setup(&numbered, if admit == Admit::Keep { 11 } else { 160 });
        let session = Session::new(&cache, Reason::Scan, admit);
        let place = |number: usize| if backward { 99 - number } else { number };
        (1..100).for_each(|number| assert!(numbered.ahead(&session, &file, place(number))));
        all_of(&session, &numbered, &file, &[place(0)]).expect("no faults");
        assert_eq!(session.page_reads(), 11, "{admit:?}");
        assert!((1..11).all(|number| numbered.peek(&session, &file, place(number)).is_some()), "the nearest came");
        if admit == Admit::Pass {
            // Steps need five of the ten pages. More pages are asked for ahead, but they do not push out the other
            // five.
            for number in 1..6 {
                all_of(&session, &numbered, &file, &[place(number)]).expect("no faults");
            }
            (11..100).for_each(|number| assert!(numbered.ahead(&session, &file, place(number))));
            all_of(&session, &numbered, &file, &[place(99)]).expect("no faults");
            assert!((6..16).all(|number| numbered.peek(&session, &file, place(number)).is_some()));
            assert_eq!((session.rounds(), session.page_reads()), (2, 17));
        }
    }
}

#[test]
fn a_reader_that_asks_for_more_than_there_is_room_for_reads_each_page_once() {
    let numbered = Numbered::blocks(200);
    for room_pages in [0, 1, 2, 3, 10] {
        let (cache, file) = setup(&numbered, 1000);
        let session = Session::new(&cache, Reason::Scan, Admit::Pass).with_ahead_bytes(room_pages * BLOCK_COST);
        for number in 0..200 {
            for next in (number + 1..200).take(20) {
                numbered.ahead(&session, &file, next);
            }
            all_of(&session, &numbered, &file, &[number]).expect("no faults");
        }
        assert_eq!((session.page_reads(), session.rounds()), (200, 200u64.div_ceil(room_pages + 1)));
    }
}

#[test]
fn of_many_hints_the_newest_are_followed_and_the_others_forgotten() {
    const PAGES: usize = 3 * MAX_HINTS;
    let numbered = Numbered::write(&[PageKind::Data; PAGES], 48, Compression::None, Packing::Tight);
    let check = |hints: &[usize], expected: &[usize]| {
        let (cache, file) = setup(&numbered, 10 * PAGES as u64);
        let session = Session::new(&cache, Reason::Scan, Admit::Keep);
        assert!(hints.iter().all(|number| numbered.ahead(&session, &file, *number)), "none is in memory");
        assert!(session.step().read_ahead.hints() <= 2 * MAX_HINTS);
        session.fetch().expect("no faults of the disk");
        let brought: Vec<usize> = (0..PAGES).filter(|number| numbered.is_resident(&cache, &file, *number)).collect();
        assert!(brought == expected, "{} hints brought {} pages", hints.len(), brought.len());
        assert_eq!(session.page_reads(), expected.len() as u64);
    };
    let range = |range: std::ops::Range<usize>| range.collect::<Vec<_>>();
    check(&range(0..MAX_HINTS), &range(0..MAX_HINTS));
    check(&range(0..MAX_HINTS + 1), &range(1..MAX_HINTS + 1));
    check(&range(0..PAGES), &range(PAGES - MAX_HINTS..PAGES));
    // Several hints for one page count as one, as old as the last of them.
    check(&[vec![7; PAGES], range(10..MAX_HINTS + 9)].concat(), &[vec![7], range(10..MAX_HINTS + 9)].concat());
    check(&[range(0..MAX_HINTS), vec![0; PAGES], vec![PAGES - 1]].concat(), &{
        let newest = [vec![0], range(2..MAX_HINTS), vec![PAGES - 1]];
        newest.concat()
    });
}

#[test]
fn a_peek_finds_what_is_in_the_cache_or_pinned_or_read_ahead_and_notes_nothing() {
    for admit in [Admit::Keep, Admit::Pass] {
        let numbered = Numbered::blocks(20);
        let (cache, file) = setup(&numbered, 1000);
        let session = Session::new(&cache, Reason::Scan, admit);
        assert!((0..20).all(|number| numbered.peek(&session, &file, number).is_none()));
        session.fetch().expect("there is nothing to fetch");
        assert_eq!((session.rounds(), session.page_reads(), numbered.disk.counts().reads), (0, 0, 0));

        let point = Session::new(&cache, Reason::Point, Admit::Keep);
        all_of(&point, &numbered, &file, &[0]).expect("no faults");
        numbered.ahead(&session, &file, 1);
        assert!(numbered.page(&session, &file, 2).is_err());
        session.fetch().expect("no faults of the disk");
        let there = || (0..20).filter(|number| numbered.peek(&session, &file, *number).is_some()).collect::<Vec<_>>();
        assert_eq!((there(), there()), (vec![0, 1, 2], vec![0, 1, 2]));
        session.release();
        // A page that was fetched for the step is dropped at the end of the step. A page that was read ahead stays
        // until a step needs it.
        assert_eq!(there(), if admit == Admit::Keep { vec![0, 1, 2] } else { vec![0, 1] });
        all_of(&session, &numbered, &file, &[1]).expect("no faults");
        assert_eq!((session.rounds(), session.page_reads()), (1, 2));
    }
}

#[test]
fn a_peek_counts_what_it_finds_in_the_cache_and_nothing_else() {
    let numbered = Numbered::blocks(2);
    let (cache, file) = setup(&numbered, 10);
    let point = Session::new(&cache, Reason::Point, Admit::Keep);
    all_of(&point, &numbered, &file, &[0]).expect("no faults");
    let scan = Session::new(&cache, Reason::Scan, Admit::Keep);
    assert!(numbered.peek(&scan, &file, 0).is_some());
    assert!(numbered.peek(&scan, &file, 1).is_none());
    drop(scan);
    let counted = cache.counters().snapshot().of_reason(Reason::Scan);
    assert_eq!((counted.hits, counted.faults, counted.read_bytes), (1, 0, 0));
}

#[test]
fn a_peek_is_not_answered_with_another_page() {
    let numbered = Numbered::blocks(2);
    let file = numbered.alone();
    let resident = Resident::new(accept);
    assert!(numbered.peek(&resident, &file, 0).is_some(), "it reads what it is asked for");
    let (cache, registered) = setup(&numbered, 10);
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    all_of(&session, &numbered, &registered, &[0]).expect("no faults");
    let (kind, at) = numbered.pages[0];
    let others = [
        (kind, Address { crc: !at.crc, ..at }),
        (kind, Address { offset: at.offset + 32, ..at }),
        (kind, Address { bytes: 0, ..at }),
        (PageKind::Index, at),
    ];
    for (kind, at) in others {
        assert!(session.peek(registered.at(&at, kind)).is_none());
        assert!(resident.peek(file.at(&at, kind)).is_none());
    }
}

#[test]
fn a_hint_says_whether_it_was_noted() {
    for admit in [Admit::Keep, Admit::Pass] {
        let numbered = Numbered::blocks(20);
        let (cache, file) = setup(&numbered, 1000);
        let session = Session::new(&cache, Reason::Scan, admit);
        assert!(numbered.ahead(&session, &file, 1), "it is missing");
        assert!(numbered.ahead(&session, &file, 1), "it still is");
        assert!(numbered.page(&session, &file, 0).is_err());
        session.fetch().expect("no faults of the disk");
        assert_eq!(session.page_reads(), 2);
        assert!(!numbered.ahead(&session, &file, 0), "it is pinned");
        assert!(!numbered.ahead(&session, &file, 1), "it was read ahead");
        session.release();
        assert_eq!(numbered.ahead(&session, &file, 0), admit == Admit::Pass, "it is in the cache or nowhere");

        let flight = cache.claim(numbered.key(&file, 2), 0, false, Demand::Reader);
        assert!(!numbered.ahead(&session, &file, 2), "somebody else reads it");
        drop(flight);
        assert!(numbered.ahead(&session, &file, 2), "nobody does any more");
        let impossible = Address { offset: 32, bytes: 64, crc: 0 };
        assert!(!session.ahead(file.at(&impossible, PageKind::Data)));
    }
}

#[test]
fn a_page_hinted_at_while_it_is_read_is_kept_for_who_keeps_pages() {
    for admit in [Admit::Keep, Admit::Pass] {
        let numbered = Numbered::blocks(1);
        let (cache, file) = setup(&numbered, 10);
        let session = Session::new(&cache, Reason::Scan, admit);
        read_by_another(&cache, &numbered, &file, || {
            assert!(!numbered.ahead(&session, &file, 0));
        });
        assert_eq!(numbered.is_resident(&cache, &file, 0), admit == Admit::Keep);
    }
}

#[test]
fn hot_pages_survive_a_scan_that_passes_through() {
    let mut kinds = vec![PageKind::Data; 500];
    kinds[0] = PageKind::Index;
    let numbered = Numbered::of_kinds(&kinds);
    let (cache, file) = setup(&numbered, 20);
    let point = Session::new(&cache, Reason::Point, Admit::Keep);
    all_of(&point, &numbered, &file, &[0]).expect("no faults");
    for number in 1..11 {
        all_of(&point, &numbered, &file, &[number]).expect("no faults");
    }
    let scan = Session::new(&cache, Reason::Scan, Admit::Pass);
    for number in 0..500 {
        for next in (number + 1..500).take(4) {
            numbered.ahead(&scan, &file, next);
        }
        all_of(&scan, &numbered, &file, &[number]).expect("no faults");
    }
    assert!((0..11).all(|number| numbered.is_resident(&cache, &file, number)));
    assert_eq!(cache.usage().frames, 11 + scan.step().read_ahead.pages() as u64);
    assert_eq!(scan.page_reads(), 489);
}

#[test]
fn where_only_nodes_are_kept_the_pages_that_lead_to_rows_stay_and_rows_pass_through() {
    let numbered = Numbered::of_kinds(&PageKind::ALL);
    let stays = |number: usize| {
        matches!(PageKind::ALL[number], PageKind::Index | PageKind::Flat | PageKind::Filter | PageKind::RangeErase)
    };
    let all: Vec<usize> = (0..PageKind::ALL.len()).collect();
    // Pages that are needed, read ahead, or both.
    for hinted in [&[][..], &all, &all[..4]] {
        let (cache, file) = setup(&numbered, 1000);
        let session = Session::new(&cache, Reason::Scan, Admit::Nodes);
        hinted.iter().for_each(|number| assert!(numbered.ahead(&session, &file, *number)));
        for number in &all {
            all_of(&session, &numbered, &file, &[*number]).expect("no faults");
        }
        assert_eq!(session.page_reads(), 10, "each once");
        drop(session);
        all.iter().for_each(|number| assert_eq!(numbered.is_resident(&cache, &file, *number), stays(*number)));
        // The next reader finds the pages that stayed, and reads the others again.
        let next = Session::new(&cache, Reason::Scan, Admit::Nodes);
        all_of(&next, &numbered, &file, &all).expect("no faults");
        assert_eq!((next.rounds(), next.page_reads()), (1, 6));
    }
}

#[test]
fn rows_that_pass_through_have_their_room_beside_nodes_that_stay() {
    let kinds: Vec<PageKind> = [PageKind::Data, PageKind::Index].into_iter().cycle().take(100).collect();
    let numbered = Numbered::of_kinds(&kinds);
    let (cache, file) = setup(&numbered, 160);
    let session = Session::new(&cache, Reason::Scan, Admit::Nodes);
    (1..100).for_each(|number| assert!(numbered.ahead(&session, &file, number)));
    all_of(&session, &numbered, &file, &[0]).expect("no faults");
    // Ten data pages are kept for later, as in `pages_read_ahead_take_a_bounded_share_of_memory`. The nodes before
    // these pages and between them are kept in addition.
    let here =
        |parity: usize| (1..100).filter(|n| n % 2 == parity && numbered.peek(&session, &file, *n).is_some()).count();
    assert_eq!((here(0), here(1)), (10, 11));
    assert_eq!(cache.usage().frames, 21);
    drop(session);
    assert_eq!(cache.usage().frames, 11);
}

#[test]
fn a_page_passing_through_is_kept_if_another_session_waits_to_keep_it() {
    let numbered = Numbered::blocks(1);
    let (cache, file) = setup(&numbered, 10);
    read_by_another(&cache, &numbered, &file, || {
        assert!(matches!(cache.look(numbered.key(&file, 0), true), PageLookup::InFlight(_)));
    });
    assert!(numbered.is_resident(&cache, &file, 0));
}

#[test]
fn reading_through_a_cache_of_any_size_gives_what_the_disk_has() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut random = SplitMix(seed);
        let compressions = [Compression::None, Compression::Lz4, Compression::ZSTD];
        let compression = compressions[random.next() as usize % compressions.len()];
        let packing = if random.next().is_multiple_of(2) { Packing::Block } else { Packing::Tight };
        let kinds: Vec<_> = (0..60).map(|_| PageKind::ALL[random.next() as usize % PageKind::ALL.len()]).collect();
        let numbered = Numbered::write(&kinds, 500 + random.next() as usize % 20_000, compression, packing);
        let (cache, file) = setup(&numbered, random.next() % 40);
        let resident = Resident::new(accept);
        let admits = [Admit::Keep, Admit::Nodes, Admit::Pass];
        let sessions = admits.map(|admit| Session::new(&cache, Reason::Scan, admit));
        for _ in 0..300 {
            let session = &sessions[random.next() as usize % admits.len()];
            let pages: Vec<usize> = (0..random.next() % 5).map(|_| random.next() as usize % 60).collect();
            for _ in 0..random.next() % 3 {
                numbered.ahead(session, &file, random.next() as usize % 60);
            }
            all_of(session, &numbered, &file, &pages).expect("no faults");
            for number in pages {
                numbered.page(&resident, &file, number).expect("no faults");
            }
        }
        drop(sessions);
        drop(file);
        assert_eq!(cache.usage().used_bytes, 0);
    }
}

#[test]
fn what_sessions_did_is_counted_by_reason_and_kind() {
    let numbered = Numbered::of_kinds(&[PageKind::Index, PageKind::Data, PageKind::Value, PageKind::Filter]);
    let (cache, file) = setup(&numbered, 10);
    let before = cache.counters().snapshot();
    for reason in [Reason::Point, Reason::Scan] {
        let session = Session::new(&cache, reason, Admit::Keep);
        all_of(&session, &numbered, &file, &[0, 1, 2, 3]).expect("no faults");
        let read = u64::from(reason == Reason::Point);
        assert_eq!((session.reads_of(PageKind::Value), session.page_reads()), (read, 4 * read));
        assert_eq!(session.reads_of(PageKind::History), 0);
    }
    let counted = cache.counters().snapshot().since(&before);
    assert_eq!((counted.index_reads(), counted.data_reads()), (1, 2));
    assert_eq!((counted.rounds(Reason::Point), counted.rounds(Reason::Scan), counted.all_rounds()), (1, 0, 1));
    let point = counted.of_reason(Reason::Point);
    assert_eq!((point.hits, point.faults, point.read_bytes), (0, 4, 4 * 4096));
    let scan = counted.of_reason(Reason::Scan);
    assert_eq!((scan.hits, scan.faults, scan.read_bytes), (4, 0, 0));
    assert_eq!(counted.pages(Reason::Point, PageKind::Filter).faults, 1);
    assert_eq!(counted.total().faults, 4);
    assert_eq!(cache.usage().bytes_of(PageKind::Filter), BLOCK_COST);
}
