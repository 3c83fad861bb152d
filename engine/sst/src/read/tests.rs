//! Every read of a file must give the answer that a sorted map gives, through every kind of page source. No read
//! may restart more often than its bound allows.

mod counts;
mod edges;
mod scan;
mod streaks;
mod values;

use super::*;
use crate::fixture::{Built, Content, Reader, Written, part, shapes, tiny};
use crate::format::meta::{PageIndexKind, TreeKind};
use crate::row::{RowKind, Version};
use crate::write::{BuildOptions, Compression};
use crate::{Direction, KeyRange};
use os::sync::Arc;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::ops::{Bound, RangeBounds};

/// The most rounds that a step may take if it arrives at the right page at once.
fn exact(sst: &Sst, kind: TreeKind) -> u64 {
    let tree = sst.meta.trees().find(|(of, _)| *of == kind);
    tree.map_or(0, |(_, tree)| u64::from(tree.root(sst.prefer_flat).height) + 1)
}

/// The most rounds that a step may take if it can arrive one page too early.
fn near(sst: &Sst, kind: TreeKind) -> u64 {
    2 * exact(sst, kind)
}

/// The keys of `content`, and strings just before and after these keys.
fn probes(content: &Content) -> Vec<Vec<u8>> {
    let mut probes = vec![vec![], vec![0], vec![0xff; 9]];
    for key in content.rows.keys().chain(content.range_erases.iter().map(|erase| &erase.keys.start)) {
        probes.push(key.clone());
        probes.push([key.as_slice(), &[0]].concat());
        if let Some((&last, rest)) = key.split_last() {
            probes.push(rest.to_vec());
            probes.push([rest, &[last.wrapping_sub(1), 0xff]].concat());
        }
    }
    probes.sort_unstable();
    probes.dedup();
    probes
}

/// Some versions, among them those just before, at and after changes in `content`.
fn moments(content: &Content) -> Vec<u64> {
    let mut moments = vec![0, 50, u64::MAX];
    for written in content.rows.values().filter(|written| written.len() > 1).take(5) {
        moments.extend(written.iter().flat_map(|(version, ..)| [version - 1, *version, version + 1]));
    }
    moments.sort_unstable();
    moments.dedup();
    moments
}

fn loaded(reader: &Reader<'_>, row: &Row) -> Written {
    let value = reader.step(1, |source| row.value.load(source, &reader.sst.file));
    assert_eq!(row.value.len(), value.as_bytes().len() as u64);
    assert_eq!(row.value.is_empty(), value.as_bytes().is_empty());
    if let Some(inline) = row.value.inline() {
        assert_eq!(inline, value.as_bytes());
    }
    let written = (row.version.0 - reader.sst.version_offset, row.kind, value.as_bytes().to_vec());
    for group in 1..=reader.sst.meta.groups.len() {
        let kind = match row.place {
            RowPlace::Newest(_) => TreeKind::Group(group as u8),
            RowPlace::Older(_) => TreeKind::GroupHistory(group as u8),
        };
        let stored = reader.step(exact(&reader.sst, kind), |source| reader.sst.part(source, group, row.place));
        let loaded = reader.step(1, |source| stored.load(source, &reader.sst.file));
        assert_eq!(loaded.as_bytes(), part(&written, group), "group {group} of {written:?}");
    }
    written
}

/// Everything that can be read.
fn check(content: &Content, built: &Built) {
    built.on_every_source(|reader| {
        check_gets(content, reader);
        check_seeks(content, reader);
        check_walks(content, reader);
        check_row_seeks(content, reader);
        check_range_erases(content, reader);
        check_erase_cursors(content, reader);
    });
}

fn check_gets(content: &Content, reader: &Reader<'_>) {
    let sst = &reader.sst;
    let bound = exact(sst, TreeKind::Main) + near(sst, TreeKind::History);
    for key in probes(content) {
        for at in moments(content) {
            let shifted = Version(at.saturating_add(sst.version_offset));
            let found = reader.step(bound, |source| sst.get(source, &key, shifted));
            let found = found.map(|row| loaded(reader, &row));
            assert_eq!(found.as_ref(), content.get(&key, at), "get {key:?} at {at}");
            // From one run to the next, the sought key remembers which data page was missing.
            let sought = SoughtKey::new(&key);
            let found = reader.step(bound, |source| sst.get_filtered(source, &sought, shifted));
            let found = found.map(|row| loaded(reader, &row));
            assert_eq!(found.as_ref(), content.get(&key, at), "get {key:?} at {at} by what was missing");
        }
        // A reader of the newest version never opens the history.
        reader.step(exact(sst, TreeKind::Main), |source| sst.get(source, &key, Version::MAX));
    }
}

fn check_seeks(content: &Content, reader: &Reader<'_>) {
    let sst = &reader.sst;
    let keys: Vec<&Vec<u8>> = content.rows.keys().collect();
    let mut cursor = SstCursor::new(Arc::clone(sst));
    let place = |cursor: &SstCursor| cursor.is_somewhere().then(|| cursor.key().to_vec());
    for key in probes(content) {
        let below = keys.partition_point(|other| **other < key);
        let through = keys.partition_point(|other| **other <= key);
        for seek in [Seek::Exact, Seek::Lower, Seek::Upper] {
            let (forward, backward) = match seek {
                Seek::Exact => (keys[below..through].first(), keys[below..through].first()),
                Seek::Lower => (keys.get(below), keys[..through].last()),
                Seek::Upper => (keys.get(through), keys[..below].last()),
            };
            let bound = if seek == Seek::Exact { exact(sst, TreeKind::Main) } else { near(sst, TreeKind::Main) };
            let there = reader.step(bound, |source| cursor.seek(source, &key, seek));
            assert_eq!(place(&cursor).as_ref(), forward.copied(), "{seek:?} {key:?}");
            assert_eq!(there, forward.is_some());
            let there = reader.step(bound, |source| cursor.seek_back(source, &key, seek));
            assert_eq!(place(&cursor).as_ref(), backward.copied(), "{seek:?} back {key:?}");
            assert_eq!(there, backward.is_some());
        }
    }
    let there = reader.step(exact(sst, TreeKind::Main), |source| cursor.seek_first(source));
    assert_eq!((there, place(&cursor).as_ref()), (!keys.is_empty(), keys.first().copied()));
    let there = reader.step(exact(sst, TreeKind::Main), |source| cursor.seek_last(source));
    assert_eq!((there, place(&cursor).as_ref()), (!keys.is_empty(), keys.last().copied()));
}

/// Walks from every row over the next rows, in both directions, and checks their versions.
fn check_walks(content: &Content, reader: &Reader<'_>) {
    let sst = &reader.sst;
    let rows: Vec<(&Vec<u8>, &Vec<Written>)> = content.rows.iter().collect();
    let bound = near(sst, TreeKind::Main);
    let mut cursor = SstCursor::new(Arc::clone(sst));
    assert!(cursor.newest().is_none() && !cursor.is_somewhere());
    for start in 0..rows.len() {
        let steps = if start.is_multiple_of(7) { rows.len() } else { 3 };
        reader.step(bound, |source| cursor.seek(source, rows[start].0, Seek::Exact));
        check_versions(reader, &mut cursor, rows[start].1);
        for i in (start + 1..=rows.len()).take(steps) {
            let there = reader.step(bound, |source| cursor.next(source));
            assert_eq!((there, cursor.is_somewhere()), (i < rows.len(), i < rows.len()));
            if there {
                assert_eq!(cursor.key(), rows[i].0);
            }
        }
        reader.step(bound, |source| cursor.seek_back(source, rows[start].0, Seek::Lower));
        for i in (0..start).rev().map(Some).chain([None]).take(steps) {
            let there = reader.step(bound, |source| cursor.prev(source));
            assert_eq!((there, cursor.is_somewhere()), (i.is_some(), i.is_some()));
            if let Some(i) = i {
                assert_eq!(cursor.key(), rows[i].0);
            }
        }
    }
}

/// Checks the parts of `row` in all groups, which the cursor reads in one step.
fn check_parts(reader: &Reader<'_>, cursor: &mut SstCursor, row: &Row, written: &Written) {
    let sst = &reader.sst;
    let count = sst.meta.groups.len();
    let tallest = sst.meta.trees().filter(|(kind, _)| kind.is_by_row()).map(|(kind, _)| exact(sst, kind)).max();
    for groups in [Groups::first(count + 1), Groups::NONE.with(count), Groups::MAIN] {
        let mut parts = Vec::new();
        reader.step(tallest.unwrap_or(0), |source| cursor.parts(source, groups, row.place, &mut parts));
        let wanted: Vec<usize> = groups.beside_main().collect();
        assert_eq!(parts.len(), wanted.len());
        for (stored, group) in parts.iter().zip(wanted) {
            let loaded = reader.step(1, |source| stored.load(source, &sst.file));
            assert_eq!(loaded.as_bytes(), part(written, group), "group {group} of {written:?}");
        }
    }
}

fn check_versions(reader: &Reader<'_>, cursor: &mut SstCursor, written: &[Written]) {
    let sst = &reader.sst;
    let (newest, older) = written.split_first().expect("a row has a version");
    let row = cursor.newest().expect("it is at a row");
    assert_eq!(&loaded(reader, &row), newest);
    check_parts(reader, cursor, &row, newest);
    for at in written.iter().flat_map(|(version, ..)| [version - 1, *version]) {
        let shifted = Version(at + sst.version_offset);
        let row = reader.step(near(sst, TreeKind::History), |source| cursor.visible(source, shifted));
        let row = row.map(|row| loaded(reader, &row));
        assert_eq!(row.as_ref(), written.iter().find(|(version, ..)| *version <= at));
    }
    let bound = near(sst, TreeKind::History);
    let mut there = reader.step(bound, |source| cursor.first_older(source));
    for expected in older {
        assert!(there, "version {} is missing", expected.0);
        let row = cursor.older().expect("it is at a version");
        assert_eq!(&loaded(reader, &row), expected);
        check_parts(reader, cursor, &row, expected);
        there = reader.step(bound, |source| cursor.next_older(source));
    }
    assert!(!there, "there are more versions than were written");
}

/// Checks cursors that are bounded by row ids: they seek rows by id and by key.
fn check_row_seeks(content: &Content, reader: &Reader<'_>) {
    let sst = &reader.sst;
    let Some(tree) = sst.meta.main else { return };
    let keys: Vec<&Vec<u8>> = content.rows.keys().collect();
    let rows = keys.len() as u64;
    let (some, most) = (rows / 3, rows - rows / 4);
    for bounds in [0..rows, 0..u64::MAX, some..most, some..some, most..rows, 0..1] {
        let end = bounds.end.min(rows);
        let within = |row: Option<u64>| row.filter(|row| bounds.contains(row) && *row < rows);
        let mut cursor = TreeCursor::new(&sst.file, TreeKind::Main, tree, sst.prefer_flat, bounds.clone());
        let mut key = Vec::new();
        for row in 0..=rows {
            let there = reader.step(exact(sst, TreeKind::Main), |source| cursor.seek_row(source, row));
            assert_eq!((there, cursor.row()), (within(Some(row)).is_some(), within(Some(row))), "{bounds:?}");
            if there {
                cursor.read(&mut key);
                assert_eq!(&key, keys[row as usize]);
            }
            assert_eq!(
                (cursor.is_first(), cursor.is_last()),
                (!there || row == bounds.start, !there || row + 1 == end)
            );
        }
        let bound = near(sst, TreeKind::Main);
        let first = (bounds.start < end).then_some(bounds.start);
        let last = (bounds.start < end).then(|| end - 1);
        reader.step(bound, |source| cursor.seek_first(source));
        assert_eq!(cursor.row(), first);
        reader.step(bound, |source| cursor.prev(source));
        assert_eq!(cursor.row(), None);
        reader.step(bound, |source| cursor.seek_last(source));
        assert_eq!(cursor.row(), last);
        reader.step(bound, |source| cursor.next(source));
        assert_eq!(cursor.row(), None);
        for probe in probes(content) {
            let below = keys.partition_point(|other| **other < probe) as u64;
            let through = keys.partition_point(|other| **other <= probe) as u64;
            let exactly = within((below < through).then_some(below));
            let forward = |row: u64| within(Some(row.max(bounds.start)));
            let backward = |rows: u64| within(rows.min(end).checked_sub(1));
            for (seek, ahead, back) in [
                (Seek::Exact, exactly, exactly),
                (Seek::Lower, forward(below), backward(through)),
                (Seek::Upper, forward(through), backward(below)),
            ] {
                let bound = if seek == Seek::Exact { exact(sst, TreeKind::Main) } else { bound };
                reader.step(bound, |source| cursor.seek(source, &probe, seek));
                assert_eq!(cursor.row(), ahead, "{seek:?} {probe:?} in {bounds:?}");
                reader.step(bound, |source| cursor.seek_back(source, &probe, seek));
                assert_eq!(cursor.row(), back, "{seek:?} back {probe:?} in {bounds:?}");
            }
        }
    }
}

/// Checks that a cursor over range erases gives them in order. Wherever it stood before, it must also tell rightly
/// what they say about each key and its neighbours.
fn check_erase_cursors(content: &Content, reader: &Reader<'_>) {
    let sst = &reader.sst;
    let shift = |version: &Version| Version(version.0 + sst.version_offset);
    let erases = content.range_erases.iter();
    let erases: Vec<RangeErase> = erases
        .map(|erase| RangeErase { versions: erase.versions.iter().map(shift).collect(), ..erase.clone() })
        .collect();
    let bound = near(sst, TreeKind::RangeErases) + exact(sst, TreeKind::RangeErases);
    for readahead in [Readahead::NONE, Readahead::full(1 << 10)] {
        let mut cursor = EraseCursor::new(sst.clone()).with_readahead(readahead);
        let mut found: Vec<RangeErase> = reader.step(bound, |source| cursor.seek_first(source)).into_iter().collect();
        while let Some(erase) = reader.step(bound, |source| cursor.next(source)) {
            found.push(erase);
        }
        assert_eq!(found, erases);
    }
    let mut cursor = EraseCursor::new(sst.clone());
    let probes = probes(content);
    // First the keys one after the other in both directions, then keys that lie further apart.
    for key in probes.iter().chain(probes.iter().rev()).chain(probes.iter().step_by(7)) {
        let following = reader.step(bound, |source| cursor.seek(source, key));
        assert_eq!(following.as_ref(), erases.iter().find(|erase| erase.keys.ends_after(key)));
        let preceding = reader.step(bound, |source| cursor.seek_back(source, key));
        assert_eq!(preceding.as_ref(), erases.iter().rev().find(|erase| erase.keys.start <= *key));
        let at = Version(50 + sst.version_offset);
        let cover =
            |key: &[u8]| erases.iter().find(|erase| erase.keys.contains(key)).and_then(|erase| erase.newest(at));
        for direction in [Direction::Forward, Direction::Backward] {
            match reader.step(bound, |source| cursor.around(source, key, at, direction)) {
                Some(CoverAround { cover: found, edge }) => {
                    assert_eq!(found, cover(key), "{key:?}");
                    let range = match direction {
                        Direction::Forward => (Bound::Included(key), edge.as_ref()),
                        Direction::Backward => (edge.as_ref(), Bound::Included(key)),
                    };
                    let other = probes.iter().find(|other| range.contains(other) && cover(other) != cover(key));
                    assert_eq!(other, None, "{key:?} {direction:?} to {edge:?}");
                }
                None if direction == Direction::Forward => assert_eq!(following, None),
                None => assert_eq!(preceding, None),
            }
        }
    }
}

fn check_range_erases(content: &Content, reader: &Reader<'_>) {
    let sst = &reader.sst;
    let shifted: Vec<RangeErase> = content
        .range_erases
        .iter()
        .map(|erase| RangeErase {
            versions: erase.versions.iter().map(|version| Version(version.0 + sst.version_offset)).collect(),
            ..erase.clone()
        })
        .collect();
    let bound = near(sst, TreeKind::RangeErases);
    for key in probes(content) {
        let expected = shifted.iter().find(|erase| erase.keys.contains(&key));
        let found = reader.step(bound, |source| sst.range_erase(source, &key));
        assert_eq!(found.as_ref(), expected, "{key:?}");
        for at in moments(content) {
            let at = Version(at.saturating_add(sst.version_offset));
            let newest = expected.and_then(|erase| erase.versions.iter().copied().find(|version| *version <= at));
            assert_eq!(reader.step(bound, |source| sst.cover(source, &key, at)), newest, "{key:?} at {at:?}");
        }
    }
    for i in 0..=shifted.len() {
        let found = reader.step(exact(sst, TreeKind::RangeErases), |source| sst.nth_range_erase(source, i as u64));
        assert_eq!(found.as_ref(), shifted.get(i));
    }
}

#[test]
fn random_files_answer_as_a_map_in_every_shape_through_every_source() {
    for seed in 0..6 {
        for (i, options) in shapes().into_iter().enumerate() {
            println!("seed {seed}, shape {i}");
            let mut rng = StdRng::seed_from_u64(seed * 100 + i as u64);
            let keys = [1, 2, 7, 20, 40, 60][seed as usize];
            let mut content = Content::random(&mut rng, keys);
            content.groups = [0, 1, 2, 0, 3, 2][seed as usize];
            let mut built = content.build(options);
            built.version_offset = [0, 1_000][rng.random_range(0..2)];
            check(&content, &built);
        }
    }
}

#[test]
fn a_file_without_rows_has_none() {
    for options in shapes() {
        let content = Content::default();
        let built = content.build(options);
        assert_eq!((built.meta.trees().count(), built.meta.rows()), (0, 0));
        check(&content, &built);
    }
}

#[test]
fn a_file_of_one_row_has_no_index() {
    for options in shapes() {
        let content = Content::of_keys(["only"]);
        let built = content.build(options);
        let tree = built.meta.main.expect("it has a row");
        assert_eq!((tree.root(false).height, tree.root(true).height, built.meta.index_bytes()), (0, 0, 0));
        check(&content, &built);
    }
}

#[test]
fn a_file_of_range_erases_alone_answers() {
    for options in shapes() {
        let range = |start: &str, end: Option<&str>, versions: &[u64]| RangeErase {
            keys: KeyRange { start: start.into(), end: end.map(Into::into) },
            versions: versions.iter().map(|&version| Version(version)).collect(),
        };
        let content = Content {
            range_erases: vec![
                range("", Some("b"), &[9]),
                range("b", Some("c"), &[9, 8, 3]),
                range("c\0", Some("d"), &[4]),
                range("dd", Some("de"), &[70, 60]),
                range("x", None, &[2, 1]),
            ],
            ..Content::default()
        };
        check(&content, &content.build(options));
    }
}

#[test]
fn both_indexes_give_the_same_answers_as_each_alone() {
    let mut rng = StdRng::seed_from_u64(77);
    let mut content = Content::random(&mut rng, 50);
    content.groups = 2;
    for index in [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both] {
        for compression in [Compression::None, Compression::Lz4, Compression::ZSTD] {
            let built = content.build(BuildOptions { index, compression, ..tiny() });
            let tree = built.meta.main.expect("it has rows");
            assert_eq!((tree.btree.is_some(), tree.flat.is_some()), (index.has_btree(), index.has_flat()));
            assert!(!index.has_btree() || tree.root(false).height >= 3, "the tree is tall enough to be a test");
            check(&content, &built);
        }
    }
}
