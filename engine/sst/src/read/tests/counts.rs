//! How many pages a read takes from the disk.

use super::*;
use crate::format::PageRows;
use crate::format::node::IndexNode;
use pages::{Admit, PageCache, PageKind, PageLender, Reason, Session, retry};

fn session(cache: &os::sync::Arc<PageCache>) -> Session {
    Session::new(cache, Reason::Point, Admit::Keep)
}

fn tall() -> (Content, Built) {
    let content = Content::of_keys((0..500).map(|i| format!("key {i:05}")));
    let built = content.build(BuildOptions { index: PageIndexKind::Both, max_node_children: 5, ..tiny() });
    (content, built)
}

#[test]
fn opening_a_file_reads_nothing() {
    let (_, built) = tall();
    let before = built.disk.counts();
    let operations = built.disk.operation_count();
    let cache = PageCache::new(1 << 20, 2, crate::format::validate);
    let sst = built.sst_in(&cache, false);
    let cursor = SstCursor::new(sst);
    assert!(!cursor.is_somewhere());
    assert_eq!((built.disk.counts(), built.disk.operation_count()), (before, operations));
}

#[test]
fn a_cold_get_reads_a_page_for_each_level_and_one() {
    let (content, built) = tall();
    for prefer_flat in [false, true] {
        let height = u64::from(built.meta.main.expect("it has rows").root(prefer_flat).height);
        assert_eq!(height, if prefer_flat { 1 } else { 4 });
        for key in content.rows.keys().step_by(37) {
            let cache = PageCache::new(8 << 20, 2, crate::format::validate);
            let (sst, session) = (built.sst_in(&cache, prefer_flat), session(&cache));
            let before = built.disk.counts().reads;
            let row = retry(&session, || sst.get(&session, key, Version::MAX)).expect("the disk works");
            assert!(row.is_some());
            assert_eq!(session.page_reads(), height + 1);
            assert_eq!(built.disk.counts().reads - before, height + 1);
        }
    }
}

#[test]
fn with_a_warm_index_a_get_reads_one_page() {
    let (content, built) = tall();
    for prefer_flat in [false, true] {
        let cache = PageCache::new(64 << 20, 2, crate::format::validate);
        let sst = built.sst_in(&cache, prefer_flat);
        let warm = session(&cache);
        for node in built.nodes() {
            retry(&warm, || warm.page(sst.file.at(&node.at, node.kind))).expect("the disk works");
        }
        let mut last_page = None;
        let resident = pages::Resident::new(crate::format::validate);
        for key in content.rows.keys() {
            let outside = built.sst();
            let descent = outside.descent(TreeKind::Main).expect("it has rows");
            let (_, layout) = descent.page_of_key(&resident, key).expect("nothing faults");
            if last_page.replace(layout.first_row()) == Some(layout.first_row()) {
                continue;
            }
            let reader = session(&cache);
            assert!(retry(&reader, || sst.get(&reader, key, Version::MAX)).expect("the disk works").is_some());
            assert_eq!(reader.page_reads(), 1);
        }
    }
}

#[test]
fn a_cached_get_reads_nothing() {
    let (content, built) = tall();
    let cache = PageCache::new(64 << 20, 2, crate::format::validate);
    let (sst, first, second) = (built.sst_in(&cache, false), session(&cache), session(&cache));
    for session in [&first, &second] {
        for key in content.rows.keys() {
            retry(session, || sst.get(session, key, Version::MAX)).expect("the disk works");
        }
    }
    assert!(first.page_reads() > 250);
    assert_eq!((second.page_reads(), second.rounds()), (0, 0));
}

#[test]
fn a_scan_reads_each_data_page_once() {
    let (content, built) = tall();
    let cache = PageCache::new(64 << 20, 2, crate::format::validate);
    let (sst, session) = (built.sst_in(&cache, false), session(&cache));
    let mut cursor = SstCursor::new(Arc::clone(&sst));
    let mut rows = 0;
    let mut there = retry(&session, || cursor.seek_first(&session)).expect("the disk works");
    while there {
        rows += 1;
        there = retry(&session, || cursor.next(&session)).expect("the disk works");
    }
    let nodes = built.nodes().iter().filter(|node| node.kind == PageKind::Index).count() as u64;
    assert_eq!((rows, session.page_reads()), (content.rows.len(), built.meta.main.expect("rows").data_pages + nodes));
}

#[test]
fn a_row_that_starts_the_next_page_costs_a_second_descent_and_no_third() {
    let (_, built) = tall();
    let sst = built.sst();
    // A separator may be shorter than the first key of the page after it. A key between the two leads to that
    // page, and its lower bound is the first row there. A key just below the separator leads to the end of the
    // page before.
    let leaf = built.nodes().into_iter().find(|node| node.kind == PageKind::Flat).expect("there is a list");
    let mut separator = Vec::new();
    IndexNode::new(&leaf.page).separator(100, &mut separator);
    let resident = pages::Resident::new(crate::format::validate);
    let flaky = pages::Flaky::once(pages::Resident::new(crate::format::validate));
    let rounds = crate::fixture::Rounds::new(&flaky);
    let mut below = separator.clone();
    *below.last_mut().expect("a separator is not empty") -= 1;
    below.push(0xff);
    let tree = built.meta.main.expect("it has rows");
    let (page, layout) =
        Descent::new(&sst.file, TreeKind::Main, &tree, false).page_of_key(&resident, &below).expect("nothing faults");
    assert_eq!(layout.search(&page, &below), Err(layout.rows()), "the key lies after the last row of its page");
    let mut cursor = TreeCursor::new(&sst.file, TreeKind::Main, tree, false, 0..u64::MAX);
    assert!(retry(&rounds, || cursor.seek(&rounds, &below, Seek::Lower)).expect("nothing breaks"));
    let height = u64::from(tree.root(false).height);
    assert!(rounds.rounds() > height + 1 && rounds.rounds() <= 2 * (height + 1), "{} rounds", rounds.rounds());
    // If the cursor's bounds begin later, the search goes to the first row of the bounds without a detour.
    let rounds = crate::fixture::Rounds::new(&flaky);
    let mut cursor = TreeCursor::new(&sst.file, TreeKind::Main, tree, false, 400..u64::MAX);
    assert!(retry(&rounds, || cursor.seek(&rounds, &below, Seek::Lower)).expect("nothing breaks"));
    assert_eq!(cursor.row(), Some(400));
    assert!(rounds.rounds() <= 2 * (height + 1), "{} rounds", rounds.rounds());
}

#[test]
fn readahead_reads_no_page_twice_and_waits_less_often() {
    let (content, built) = tall();
    let nodes = built.nodes().iter().filter(|node| node.kind == PageKind::Index).count() as u64;
    let pages = built.meta.main.expect("it has rows").data_pages + nodes;
    let keys: Vec<&Vec<u8>> = content.rows.keys().collect();
    let scan = |readahead: Readahead, forward: bool| {
        let cache = PageCache::new(64 << 20, 2, crate::format::validate);
        let (sst, session) = (built.sst_in(&cache, false), session(&cache));
        let mut cursor = SstCursor::new(sst).with_readahead(readahead);
        let mut found = Vec::new();
        let mut there = retry(&session, || match forward {
            true => cursor.seek_first(&session),
            false => cursor.seek_last(&session),
        });
        while there.expect("the disk works") {
            found.push(cursor.key().to_vec());
            there = retry(&session, || if forward { cursor.next(&session) } else { cursor.prev(&session) });
        }
        if !forward {
            found.reverse();
        }
        assert_eq!(found.iter().collect::<Vec<_>>(), keys);
        assert_eq!(session.page_reads(), pages);
        session.rounds()
    };
    for forward in [true, false] {
        let without = scan(Readahead::NONE, forward);
        assert_eq!(without, pages, "each page is waited for");
        let growing = scan(Readahead::growing(1 << 20), forward);
        let full = scan(Readahead::full(1 << 20), forward);
        assert!(full <= growing && growing < without, "{full} rounds, {growing} growing, {without} without");
        // All pages of a node come together.
        assert!(full <= nodes + nodes, "{full} rounds for {nodes} nodes");
    }
}
