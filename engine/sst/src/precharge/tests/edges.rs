//! Files whose totals lie, ranges larger than the memory, and reads at old versions.

use super::*;
use crate::KeyRange;
use crate::fixture::{ID, PATH};
use crate::format::node::{IndexNode, NodeBuilder};
use crate::read::SstCursor;
use os::{Access, Disk};
use pages::{Admit, Compression, Error, Packing, PageCache, PageKind, Reason, Session, encode_page, retry};
use std::path::Path;

fn options() -> BuildOptions {
    BuildOptions { page_bytes: 4096, node_bytes: 4096, max_page_rows: 2, max_node_children: 1000, ..tiny() }
}

/// Each page has two rows. The values lie outside the pages.
fn with_large_values(groups: usize, history: bool) -> Content {
    let mut content = content(groups, history);
    for (_, kind, value) in content.rows.values_mut().flatten() {
        if *kind == RowKind::Put {
            *value = vec![b'L'; 2100];
        }
    }
    content
}

fn sst_with(built: &Built, change: impl FnOnce(&mut Sst)) -> Sst {
    let mut sst = std::sync::Arc::into_inner(built.sst()).expect("it was made just now");
    change(&mut sst);
    sst
}

#[test]
fn nodes_that_lie_about_erased_rows_are_an_error() {
    let built = content(1, false).build(options());
    let root = built.nodes().into_iter().find(|node| node.tree == TreeKind::Main).expect("it has a node");
    let (node, mut forged) = (IndexNode::new(&root.page), NodeBuilder::default());
    for i in 0..node.children() {
        let (mut child, mut separator) = (node.child(i), Vec::new());
        // The last child keeps the right sum, so that the meta need not change.
        if i + 1 < node.children() {
            child.totals.erased = 0;
        }
        if i > 0 {
            node.separator(i - 1, &mut separator);
        }
        forged.add(&separator, child);
    }
    let mut page = Vec::new();
    forged.finish(node.children(), &mut page, &mut Vec::new());
    let at = encode_page(&mut page, (PageKind::Index, 1), Compression::None, Packing::Block, ID, root.at.offset);
    let file = built.disk.open(Path::new(PATH), Access::Write).expect("the file is there");
    file.write_at(&page, at.offset).expect("there is room");
    let sst = sst_with(&built, |sst| {
        let root = sst.meta.main.as_mut().and_then(|tree| tree.btree.as_mut()).expect("it has a tree");
        root.address = at;
    });
    let mut errors = 0;
    for direction in DIRECTIONS {
        for limit in 1..40 {
            let reading =
                ReadPlan { limits: AtMost::rows(limit), direction, groups: Groups::first(2), ..ReadPlan::ALL };
            match charge(&Touch::new(&built), &sst, 20, &reading) {
                Ok(_) => {}
                Err(Error::Corrupt { why, .. }) => {
                    assert!(why.contains("are erased"), "{why}");
                    errors += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(errors > 10, "{errors} limits came to a page that is not what its parent says");
}

#[test]
fn a_meta_that_lies_about_groups_or_rows_asks_for_what_there_is() {
    let built = with_large_values(2, true).build(options());
    type Lie = fn(&mut Sst);
    let lies: [Lie; 4] = [
        |sst| sst.meta.groups[0].newest = None,
        |sst| sst.meta.groups[1].older = None,
        |sst| sst.meta.history = None.into(),
        |sst| {
            let group = sst.meta.groups[0].newest.as_mut().expect("it has rows");
            group.totals.rows = 3;
        },
    ];
    for lie in lies {
        let sst = sst_with(&built, lie);
        for at in [60, 1000] {
            let reading = ReadPlan { groups: Groups::first(3), at: Version(at), ..ReadPlan::ALL };
            // The precharge must end, whatever it finds in the damaged file. The reader learns what is wrong with
            // the file.
            drop(charge(&Touch::new(&built), &sst, 20, &reading));
        }
    }
    let built = with_large_values(1, false).build(BuildOptions { max_page_rows: 1000, ..options() });
    let sst = sst_with(&built, |sst| {
        sst.meta.main.as_mut().expect("it has rows").totals.rows = 1 << 60;
    });
    drop(charge(&Touch::new(&built), &sst, 20, &ReadPlan { groups: Groups::first(2), ..ReadPlan::ALL }));
}

#[test]
fn a_version_that_overflows_with_its_offset_is_the_newest_there_is() {
    let mut content = Content::of_keys(["a", "b"]);
    content.rows.insert(b"c".to_vec(), vec![(u64::MAX - 1, RowKind::Put, vec![b'L'; 3000])]);
    let built = content.build(options());
    let sst = sst_with(&built, |sst| sst.version_offset = 5);
    for at in [Version(3), Version(7), Version::MAX] {
        charge(&Touch::new(&built), &sst, 20, &ReadPlan { at, ..ReadPlan::ALL }).expect("nothing is damaged");
    }
}

#[test]
fn more_pages_than_one_round_takes_come_nearest_first() {
    let content = Content::of_keys((0..5_000_u32).map(|i| i.to_be_bytes().to_vec()));
    let built = content.build(BuildOptions { max_page_rows: 1, max_node_children: 100_000, ..options() });
    for direction in DIRECTIONS {
        let cache = PageCache::new(1 << 30, 4, crate::format::validate);
        let sst = built.sst_in(&cache, false);
        let session = Session::new(&cache, Reason::Precharge, Admit::Keep);
        let reading = ReadPlan { direction, ..ReadPlan::ALL };
        let found = charge(&session, &sst, rounds_at_most(&sst, &reading), &reading).expect("nothing is damaged");
        assert!(!found.noted && !found.missing);
        let pages = built.meta.main.expect("it has rows").data_pages;
        assert!(pages > 2 * PASS_PAGES as u64);
        assert!(session.rounds() <= rounds_at_most(&sst, &reading) + pages / PASS_PAGES as u64);
        assert_eq!(session.reads_of(PageKind::Data), pages, "each page once");
        let reader = Session::new(&cache, Reason::Scan, Admit::Keep);
        let mut cursor = SstCursor::new(sst);
        let mut there = retry(&reader, || cursor.seek_first(&reader)).expect("the disk works");
        while there {
            there = retry(&reader, || cursor.next(&reader)).expect("the disk works");
        }
        assert_eq!(reader.page_reads(), 0);
    }
}

#[test]
fn rows_erased_later_count_for_those_who_read_before() {
    let mut content = Content::default();
    for i in 0..200_u32 {
        let written = vec![(500, RowKind::Erase, Vec::new()), (10, RowKind::Put, b"v".to_vec())];
        content.rows.insert(i.to_be_bytes().to_vec(), written);
    }
    let built = content.build(options());
    let (sst, source) = (built.sst(), Touch::new(&built));
    let reading = ReadPlan { at: Version(100), limits: AtMost::rows(3), ..ReadPlan::ALL };
    charge(&source, &sst, rounds_at_most(&sst, &reading), &reading).expect("nothing is damaged");
    assert_eq!(source.asked_rows().len(), 4, "three rows are in two pages, their older versions as well");
}

#[test]
fn history_has_its_share_and_is_not_pinned() {
    let mut content = Content { groups: 1, ..Content::default() };
    for i in 0..2_000_u32 {
        let written = vec![(500, RowKind::Put, vec![b'v'; 4]), (10, RowKind::Put, vec![b'o'; 900])];
        content.rows.insert(i.to_be_bytes().to_vec(), written);
    }
    let built = content.build(BuildOptions { page_bytes: 4096, node_bytes: 4096, ..BuildOptions::default() });
    for (bytes, memory) in [(16 << 10, u64::MAX), (u64::MAX, 24 << 10)] {
        let cache = PageCache::new(1 << 20, 1, crate::format::validate);
        let sst = built.sst_in(&cache, false);
        let session = Session::new(&cache, Reason::Precharge, Admit::Keep);
        let reading = ReadPlan { at: Version(100), groups: Groups::first(2), ..ReadPlan::ALL };
        let mut pinned = 0;
        let found = run(&session, rounds_at_most(&sst, &reading), |asked| {
            let found = pass(&sst, &session, &reading, &mut Shares::new(bytes, memory), asked);
            pinned = pinned.max(cache.usage().pinned_bytes);
            found
        });
        assert!(found.expect("nothing is damaged").is_cut);
        for kind in [PageKind::Data, PageKind::History, PageKind::GroupHistory] {
            assert!((1..=6).contains(&session.reads_of(kind)), "{} {} pages", session.reads_of(kind), kind.name());
        }
        assert!(pinned <= 64 << 10, "{pinned} bytes are pinned");
    }
}

#[test]
fn under_a_limit_of_bytes_range_erases_come_from_where_the_reader_starts() {
    let mut content = content(0, false);
    for i in 0..60_u8 {
        let (start, end) = (vec![0, 0, 0, 3 * i], Some(vec![0, 0, 0, 3 * i + 1]));
        content.range_erases.push(crate::RangeErase { keys: KeyRange { start, end }, versions: vec![Version(500)] });
    }
    let built = content.build(options());
    let (sst, source) = (built.sst(), Touch::new(&built));
    let keys: Vec<&Vec<u8>> = content.rows.keys().collect();
    let (first, last) = (keys[0], keys[keys.len() - 1]);
    for (direction, near) in [(Direction::Forward, first), (Direction::Backward, last)] {
        source.start(&BTreeSet::new());
        let (low, high) = (Bound::Included(first.as_slice()), Bound::Included(last.as_slice()));
        let reading = ReadPlan { low, high, limits: AtMost::bytes(3 * 4096), direction, ..ReadPlan::ALL };
        charge(&source, &sst, 20, &reading).expect("nothing is damaged");
        source.forbid_faults();
        sst.cover(&source, near, Version::MAX).expect("no fault");
    }
}

#[test]
fn values_of_rows_that_nobody_sees_stay_where_they_are() {
    let mut content = Content { groups: 1, ..Content::default() };
    for i in 0..10_u32 {
        content.rows.insert(i.to_be_bytes().to_vec(), vec![(503, RowKind::Put, vec![b'L'; 3000])]);
    }
    let built = content.build(options());
    let (sst, source) = (built.sst(), Touch::new(&built));
    let reading = ReadPlan { at: Version(100), groups: Groups::first(2), ..ReadPlan::ALL };
    charge(&source, &sst, 20, &reading).expect("nothing is damaged");
    assert!(source.asked_rows().iter().all(|(kind, _)| *kind == PageKind::Data), "{:?}", source.asked_rows());
}
