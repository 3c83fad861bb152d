//! Keys and values at the edges of what a file takes.

use super::*;
use crate::format::MAX_NODE_BYTES;
use crate::format::node::IndexNode;
use crate::row::MAX_KEY_BYTES;
use pages::PageKind;

#[test]
fn keys_that_are_prefixes_of_each_other_are_told_apart() {
    let mut keys: Vec<Vec<u8>> = (0..12).map(|len| vec![b'a'; len]).collect();
    keys.extend((0..12).map(|len| vec![0; len]));
    keys.extend((0..12).map(|len| vec![0xff; len]));
    keys.extend((0..6).map(|len| [vec![b'a'; 5], vec![0; len]].concat()));
    keys.extend((0..6).map(|len| [vec![b'a'; 5], vec![0xff; len]].concat()));
    for options in shapes() {
        let content = Content::of_keys(keys.clone());
        assert!(content.rows.contains_key(&Vec::new()), "the empty key is one of them");
        check(&content, &content.build(options));
    }
}

/// Keys of the greatest length that differ in their last bytes only.
fn huge_keys(count: u64) -> Content {
    Content::of_keys((0..count).map(|i| {
        let mut key = vec![b'k'; MAX_KEY_BYTES];
        let at = MAX_KEY_BYTES - 1024;
        key[at..at + 8].copy_from_slice(&i.to_be_bytes());
        key
    }))
}

#[test]
fn huge_keys_make_nodes_of_bounded_length_with_two_children_or_more() {
    for (count, max_node_children) in [(2, 3), (5, 3), (11, 3), (23, 1000), (24, 5)] {
        let content = huge_keys(count);
        let options = BuildOptions { index: PageIndexKind::Both, max_node_children, ..tiny() };
        let options = BuildOptions { max_page_rows: 1, ..options };
        let built = content.build(options);
        for node in built.nodes().iter().filter(|node| node.kind == PageKind::Index) {
            let children = IndexNode::new(&node.page).children();
            assert!(node.page.len() <= MAX_NODE_BYTES, "{count} keys: a node of {} bytes", node.page.len());
            assert!(children >= 2, "{count} keys: a node of {children} children");
        }
        let sst = built.sst();
        let tree = built.meta.main.expect("it has rows");
        assert_eq!(tree.data_pages, count);
        let source = pages::Resident::new(crate::format::validate);
        for (key, written) in &content.rows {
            let row = pages::retry(&source, || sst.get(&source, key, Version::MAX)).expect("the file is whole");
            let row = row.expect("the key was written");
            assert_eq!((row.version.0, row.value.inline()), (written[0].0, Some(written[0].2.as_slice())));
        }
    }
}

#[test]
fn huge_keys_are_found_through_every_source() {
    let content = huge_keys(9);
    for compression in [Compression::None, Compression::Lz4, Compression::ZSTD] {
        let built = content.build(BuildOptions { max_page_rows: 2, index: PageIndexKind::Both, compression, ..tiny() });
        check(&content, &built);
    }
}

#[test]
fn separators_of_many_huge_lengths_keep_nodes_bounded() {
    // The keys have no common prefix, so a node stores every separator as a whole.
    let content = Content::of_keys((1..=255u8).step_by(5).map(|i| vec![i; MAX_KEY_BYTES - usize::from(i)]).flat_map(
        |mut key| {
            let first = key.clone();
            let last = key.last_mut().expect("it is long");
            *last += 1;
            [first, key]
        },
    ));
    let built = content.build(BuildOptions { max_page_rows: 1, node_bytes: 4096, ..BuildOptions::default() });
    let nodes = built.nodes();
    assert!(nodes.iter().any(|node| node.page.len() > MAX_NODE_BYTES / 2), "no node was large enough to be a test");
    for node in &nodes {
        let children = IndexNode::new(&node.page).children();
        assert!(node.page.len() <= MAX_NODE_BYTES && children >= 2, "{} bytes, {children} children", node.page.len());
    }
    let (sst, source) = (built.sst(), pages::Resident::new(crate::format::validate));
    for key in content.rows.keys() {
        assert!(pages::retry(&source, || sst.get(&source, key, Version::MAX)).expect("the file is whole").is_some());
    }
}

#[test]
fn values_come_back_from_their_page_from_outside_and_from_many_chunks() {
    let mut rng = StdRng::seed_from_u64(5);
    for compression in [Compression::None, Compression::Lz4, Compression::ZSTD] {
        let options = BuildOptions { page_bytes: 1024, compression, ..tiny() };
        let inline = options.inline_bytes();
        let mut content = Content::default();
        let lengths =
            [0, 1, inline - 1, inline, inline + 1, 4096, 4080, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 19];
        for (i, len) in lengths.into_iter().enumerate() {
            // Some values can be compressed and some cannot.
            let value: Vec<u8> = if i % 2 == 0 { vec![b'v'; len] } else { (0..len).map(|_| rng.random()).collect() };
            let older: Vec<u8> = value.iter().rev().copied().collect();
            content.rows.insert(vec![b'k', i as u8], vec![(2, RowKind::Put, value), (1, RowKind::Put, older)]);
        }
        let built = content.build(options);
        assert!(built.meta.value_bytes > 4 << 20 || compression != Compression::None);
        built.on_every_source(|reader| {
            for (key, written) in &content.rows {
                for expected in written {
                    let row = reader.step(20, |source| reader.sst.get(source, key, Version(expected.0)));
                    let row = row.expect("the version was written");
                    assert_eq!(row.value.inline().is_some(), expected.2.len() <= inline, "{} bytes", expected.2.len());
                    // Not `assert_eq`, which would print a megabyte.
                    assert!(
                        loaded(reader, &row) == *expected,
                        "a value of {} bytes came back otherwise",
                        row.value.len()
                    );
                }
            }
        });
    }
}

#[test]
fn a_cursor_within_some_rows_shows_them_with_their_versions_and_reads_no_page_of_others() {
    let mut rng = StdRng::seed_from_u64(31);
    let mut content = Content::random(&mut rng, 60);
    content.groups = 1;
    let rows: Vec<(&Vec<u8>, &Vec<Written>)> = content.rows.iter().collect();
    let built = content.build(BuildOptions { index: PageIndexKind::Both, ..tiny() });
    for (start, end) in [(0, rows.len()), (7, 20), (8, 9), (20, 20), (33, rows.len()), (0, 1)] {
        let read = |reader: &Reader<'_>| {
            let bound = near(&reader.sst, TreeKind::Main);
            let mut cursor = SstCursor::within(Arc::clone(&reader.sst), start as u64..end as u64);
            let mut there = reader.step(bound, |source| cursor.seek_first(source));
            for (key, written) in &rows[start..end] {
                assert!(there);
                assert_eq!(cursor.key(), key.as_slice());
                super::check_versions(reader, &mut cursor, written);
                there = reader.step(bound, |source| cursor.next(source));
            }
            assert!(!there);
            for (key, _) in &rows {
                let within = rows[start..end].iter().any(|(other, _)| other == key);
                assert_eq!(reader.step(bound, |source| cursor.seek(source, key, Seek::Exact)), within);
                reader.step(bound, |source| cursor.seek_back(source, key, Seek::Lower));
                let expected = rows[start..end].iter().rev().find(|(other, _)| other <= key);
                assert_eq!(cursor.is_somewhere().then(|| cursor.key()), expected.map(|(key, _)| key.as_slice()));
            }
        };
        if start < end {
            built.on_every_source(read);
        }
        // Each page has two rows. Whatever key is sought, the cursor may read only the pages of the rows from
        // `start` to `end`.
        let (sst, source) = (built.sst(), pages::Resident::new(crate::format::validate));
        let mut cursor = SstCursor::within(sst, start as u64..end as u64);
        for (key, _) in &rows {
            cursor.seek(&source, key, Seek::Lower).expect("nothing faults");
            cursor.seek_back(&source, key, Seek::Upper).expect("nothing faults");
        }
        let nodes =
            built.nodes().iter().filter(|node| node.tree == TreeKind::Main && node.kind == PageKind::Index).count();
        let most = if start < end { nodes + end.div_ceil(2) - start / 2 } else { 0 };
        assert!(source.pages_read() <= most as u64, "{} pages for rows {start} to {end}", source.pages_read());
    }
}

#[test]
fn a_file_from_outside_takes_its_place_in_the_order_of_commits() {
    let content = Content {
        rows: [(b"k".to_vec(), vec![(7, RowKind::Put, b"new".to_vec()), (3, RowKind::Put, b"old".to_vec())])].into(),
        range_erases: vec![RangeErase {
            keys: KeyRange { start: b"a".to_vec(), end: None },
            versions: vec![Version(5)],
        }],
        groups: 0,
        origin: Vec::new(),
        ..Content::default()
    };
    let mut built = content.build(tiny());
    built.version_offset = 100;
    let (sst, source) = (built.sst(), pages::Resident::new(crate::format::validate));
    let get = |at: u64| sst.get(&source, b"k", Version(at)).expect("nothing faults").map(|row| row.version.0);
    assert_eq!(
        [get(7), get(99), get(102), get(103), get(106), get(107)],
        [None, None, None, Some(103), Some(103), Some(107)]
    );
    let cover = |at: u64| sst.cover(&source, b"k", Version(at)).expect("nothing faults");
    assert_eq!([cover(104), cover(105)], [None, Some(Version(105))]);
}

#[test]
fn the_rest_of_a_page_begins_at_the_next_row_and_has_the_rows_after_it_in_their_order() {
    let mut rng = StdRng::seed_from_u64(47);
    let mut contents = vec![Content::default(), huge_keys(9)];
    contents.extend((0..3).map(|_| Content::random(&mut rng, 60)));
    for content in &contents {
        for options in shapes() {
            let built = content.build(BuildOptions { groups: content.groups, ..options });
            let (sst, source) = (built.sst(), pages::Resident::new(crate::format::validate));
            let probes = super::probes(content);
            let bounds = probes.iter().flat_map(|key| [Bound::Included(key), Bound::Excluded(key)]);
            for start in bounds.chain([Bound::Unbounded]) {
                for direction in [Direction::Forward, Direction::Backward] {
                    let (low, high) = direction.near_far((start, Bound::Unbounded));
                    let mut keys: Vec<&Vec<u8>> =
                        content.rows.range::<Vec<u8>, _>((low, high)).map(|row| row.0).collect();
                    if !direction.is_forward() {
                        keys.reverse();
                    }
                    let start = start.map(Vec::as_slice);
                    let mut given = 0;
                    match sst.rest_of_page(&source, start, direction, Version::MAX, &mut Vec::new()) {
                        RestOfPage::Nothing => {}
                        RestOfPage::Rows(mut rows) => {
                            while rows.read().is_some() {
                                assert_eq!(Some(rows.key()), keys.get(given).map(|key| key.as_slice()));
                                given += 1;
                                rows.advance();
                            }
                        }
                        RestOfPage::Unknown => unreachable!("all pages are in memory"),
                    }
                    assert_eq!(given > 0, !keys.is_empty(), "{start:?}, {direction:?}");
                }
            }
        }
    }
}
