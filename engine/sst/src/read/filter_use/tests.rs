//! A filter is read only where enough look-ups find nothing. Reading it never costs more page reads than it saves.

use super::*;
use crate::format::filter::FilterForm;
use crate::format::node::Totals;

#[test]
fn a_filter_is_of_use_where_more_than_one_look_up_in_eight_finds_nothing() {
    let after = |outcomes: &str| {
        outcomes.chars().fold(Looks::default(), |looks, outcome| match outcome {
            '+' => looks.found(),
            '-' => looks.found_none(),
            'd' => looks.denied(),
            _ => unreachable!("no such outcome"),
        })
    };
    assert!(!after(&"-".repeat(23)).is_filter_of_use());
    assert!(after(&"-".repeat(24)).is_filter_of_use());
    assert!(after(&"d".repeat(300)).is_filter_of_use());
    assert!(!after(&"-+++++++".repeat(50)).is_filter_of_use(), "one in eight");
    assert!(after(&"-++++++".repeat(50)).is_filter_of_use());
    assert!(!after(&format!("{}{}", "-".repeat(300), "+".repeat(72))).is_filter_of_use(), "times change");
    assert_eq!(after(&"+".repeat(300)), Looks::default(), "where all is found nothing is written");
    let full = after(&"-".repeat(300));
    assert_eq!(full, full.found_none(), "nor where nothing is");
    assert_eq!(full, full.denied(), "however it is known");
    for word in [0, u64::MAX, 0x0123_4567_89ab_cdef] {
        assert_eq!(Looks::of(word).word(), word);
    }
}

#[test]
fn every_page_of_a_filter_is_paid_for_by_pages_read_for_absent_keys() {
    let zone = ZoneSize { data_pages: 20, partitions: 2, nodes: 1 };
    let full = (0..300).fold(Looks::default(), |looks, _| looks.found_none());
    let mut looks = full;
    assert!(!looks.may_ask(zone), "nothing was read for absent keys");
    // How many pages of rows are read for absent keys before the next page of the filter is asked for.
    let mut next = |is_node: bool| {
        let mut read = 0;
        while !looks.may_ask(zone) {
            looks = looks.read_for_none();
            read += 1;
        }
        looks = looks.asked(zone, is_node);
        read
    };
    let asked: Vec<u32> = [true, false, false].map(&mut next).into_iter().chain((0..6).map(|_| next(false))).collect();
    assert_eq!(asked, [21, 0, 0, 81, 0, 321, 0, 321, 0]);
    let mut lost = Looks { read: 21, doubt: 0, ..full }.asked(zone, true);
    assert!(lost.may_ask(zone) && lost.has_lost_node(zone), "the only node is asked for once");
    lost = full.asked(ZoneSize { nodes: 2, ..zone }, true);
    assert!(!lost.has_lost_node(ZoneSize { nodes: 2, ..zone }), "there is another");
    for _ in 0..128 {
        looks = looks.denied();
    }
    looks.read = 21;
    assert!(looks.may_ask(zone), "it was of use");
    let one_in = |looks: Looks, count: usize| {
        let found = (1..count).fold(looks, |looks, i| if i % 2 == 0 { looks.found() } else { looks.found_none() });
        found.read_for_none()
    };
    looks = Looks { read: 0, left: 0, ..looks };
    for _ in 0..1_000 {
        looks = one_in(looks, 30);
    }
    assert!(looks.is_filter_of_use() && !looks.may_ask(zone), "one page in 30 looks is no reason");
    for _ in 0..1_000 {
        looks = one_in(looks, 15);
    }
    assert!(looks.may_ask(zone), "one in 15 is, some time");
    looks.read = u32::MAX;
    assert_eq!(full.read_for_none().read, 1);
    assert_eq!(Looks { read: u32::MAX, ..full }.read_for_none().read, u32::MAX);
    let huge = ZoneSize { data_pages: u32::MAX, partitions: u8::MAX, nodes: u8::MAX };
    assert!(Looks { left: 0, ..looks }.may_ask(huge), "and counters hold it");
}

#[test]
fn a_page_of_a_filter_for_many_pages_of_rows_is_asked_for_before_all_of_these_were_read() {
    let full = (0..300).fold(Looks::default(), |looks, _| looks.found_none());
    let asks_after = |zone: ZoneSize, doubt: u8| {
        let looks = Looks { doubt, ..full };
        (0..).find(|read| Looks { read: *read, ..looks }.may_ask(zone)).expect("some time")
    };
    let zone = ZoneSize { data_pages: 300, partitions: 1, nodes: 1 };
    assert_eq!(asks_after(zone, 0), 2 * READS_FOR_A_PAGE + 1);
    assert_eq!(asks_after(zone, MAX_DOUBT), 2 * READS_FOR_A_PAGE * 16 + 1, "it was evicted again and again");
    assert_eq!(asks_after(ZoneSize { data_pages: 50, ..zone }, 0), 51, "a small zone");
}

#[test]
fn the_summary_says_what_the_zones_do() {
    let tree = |pages: u64| FilterTree {
        tree: Tree { totals: Totals::default(), data_pages: pages, btree: None, flat: None },
        partition_rows: 1,
        prefix_bytes: 0,
        form: FilterForm::Blocks,
    };
    let filter_use = FilterUse::default();
    let summary = || filter_use.summary();
    assert!(summary().is_all_found() && !summary().asks_first() && !summary().is_all_denied(&tree(1)));
    filter_use.count(0, Looks::found_none);
    assert!(!summary().is_all_found() && !summary().asks_first());
    for zone in 0..3 {
        (0..24).for_each(|_| filter_use.count(zone, Looks::denied));
        assert!(summary().asks_first());
        assert_eq!((summary().is_all_denied(&tree(zone as u64 + 1)), summary().is_all_denied(&tree(4))), (true, false));
    }
    (0..400).for_each(|i| filter_use.count(i % 3, Looks::found));
    assert!(summary().is_all_found() && !summary().asks_first() && !summary().is_all_denied(&tree(1)));
    (0..3).for_each(|zone| assert_eq!(summary(), Summary::of(filter_use.of(zone), zone)));
}

#[test]
fn a_summary_that_two_threads_left_wrong_is_put_right_by_the_next_look_up() {
    for wrong in [0, u64::MAX] {
        let filter_use = FilterUse::default();
        (0..40).for_each(|_| filter_use.count(3, Looks::found_none));
        let right = filter_use.summary();
        assert!(right.asks_first() && !right.is_all_found());
        filter_use.summary.store(wrong, Ordering::Relaxed);
        filter_use.count(3, Looks::found_none);
        assert_eq!(filter_use.summary().of_zone(3), right.of_zone(3));
    }
}
