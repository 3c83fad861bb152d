//! What a finished file looks like: where its index lies, how large the index is, how full the nodes are, and what
//! the totals say.

mod copied;

use super::*;
use crate::KeyRange;
use crate::fixture::{Built, Content, ID, NullFile, PATH, shapes, tiny};
use crate::format::data_page::Layout;
use crate::format::meta::{Meta, PageIndexKind, TreeKind};
use crate::format::node::{IndexNode, Totals};
use crate::format::{PageRows, validate};
use crate::row::{RowKind, Version};
use os::BLOCK_BYTES;
use pages::{PageKind, PageLender, Resident};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::sync::Arc;

/// For each level of the main tree, the number of children of each node. The level of the root comes first.
fn levels(built: &Built) -> Vec<Vec<usize>> {
    let mut levels = Vec::new();
    for node in built.nodes().iter().filter(|node| node.tree == TreeKind::Main && node.kind == PageKind::Index) {
        let depth = usize::from(node.depth);
        levels.resize(levels.len().max(depth + 1), Vec::new());
        levels[depth].push(IndexNode::new(&node.page).children());
    }
    levels
}

#[test]
fn the_last_nodes_of_a_level_share_evenly() {
    for max_node_children in 3..=9 {
        for rows in 2..140_u32 {
            let content = Content::of_keys((0..rows).map(|i| i.to_be_bytes()));
            let built = content.build(crate::BuildOptions { max_page_rows: 1, max_node_children, ..tiny() });
            let levels = levels(&built);
            assert_eq!(levels.last().map(|leaves| leaves.iter().sum()), Some(rows as usize));
            for (depth, nodes) in levels.iter().enumerate() {
                let what = format!("{rows} pages, at most {max_node_children} children, depth {depth}: {nodes:?}");
                assert!(nodes.iter().all(|&children| (2..=max_node_children).contains(&children)), "{what}");
                assert!(depth > 0 || nodes.len() == 1, "{what}: the root is alone");
                if let [full @ .., before, last] = nodes.as_slice() {
                    assert!(2 * last.min(before) >= max_node_children - 1, "{what}");
                    assert!(full.iter().all(|&children| 2 * children >= max_node_children), "{what}");
                }
            }
        }
    }
}

#[test]
fn the_index_lies_together_at_the_tail() {
    let mut rng = StdRng::seed_from_u64(11);
    for options in shapes() {
        let built = Content::random(&mut rng, 80).build(options);
        let mut nodes = built.nodes();
        nodes.sort_by_key(|node| node.at.offset);
        let mut end = nodes[0].at.offset;
        for node in &nodes {
            assert_eq!(node.at.offset, end, "nothing lies between nodes");
            end = node.at.end();
        }
        assert_eq!(end + BLOCK_BYTES as u64, built.meta.file_bytes, "only the footer follows");
    }
}

/// Builds a file, returns its meta, and throws the file away.
fn measure(keys: impl Iterator<Item = [u8; 24]>, value_bytes: usize) -> Meta {
    let mut builder = SstBuilder::new(Arc::new(NullFile::default()), PATH.into(), ID, BuildOptions::default());
    let value = vec![b'v'; value_bytes];
    for (i, key) in keys.enumerate() {
        builder.add(&key, Version(i as u64 / 100 + 1), RowKind::Put, &[&value]).expect("nothing is written");
    }
    builder.finish().expect("nothing is written")
}

fn decimal_keys(rows: u64) -> impl Iterator<Item = [u8; 24]> {
    (0..rows).map(|i| format!("user{i:020}").into_bytes().try_into().expect("24 bytes"))
}

fn hex_keys(rows: u64) -> impl Iterator<Item = [u8; 24]> {
    let mut rng = StdRng::seed_from_u64(3);
    let mut numbers: Vec<u128> = (0..rows).map(|_| rng.random::<u128>() >> 32).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().map(|number| format!("{number:024x}").into_bytes().try_into().expect("24 bytes"))
}

#[test]
fn an_index_is_a_thousandth_of_its_data() {
    for (rows, value_bytes) in [(400_000, 150), (1_500_000, 100)] {
        let metas =
            [("decimal", measure(decimal_keys(rows), value_bytes)), ("hex", measure(hex_keys(rows), value_bytes))];
        for (keys, meta) in metas {
            let tree = meta.main.expect("it has rows");
            let share = 100.0 * meta.index_bytes() as f64 / tree.totals.bytes as f64;
            println!(
                "{rows} rows of 24-byte {keys} keys and {value_bytes}-byte values: {} data pages, height {}, {} index bytes, {share:.4} %",
                tree.data_pages,
                tree.root(false).height,
                meta.index_bytes(),
            );
            assert_eq!(tree.totals.rows, rows);
            assert!(share <= 0.15, "{keys} keys: the index is {share} % of the data");
        }
    }
}

#[test]
fn totals_say_what_lies_in_the_pages() {
    for seed in 0..10 {
        for options in shapes() {
            println!("seed {seed}");
            let mut rng = StdRng::seed_from_u64(seed);
            let content = Content::random(&mut rng, 50);
            let built = content.build(options);
            check_totals(&content, &built);
        }
    }
}

fn check_totals(content: &Content, built: &Built) {
    let newest = content.rows.values().map(|written| &written[0]);
    let erased = newest.filter(|(_, kind, _)| *kind == RowKind::Erase).count() as u64;
    let older = content.rows.values().map(|written| written.len() as u64 - 1).sum::<u64>();
    let main = built.meta.main.expect("it has rows").totals;
    assert_eq!((main.rows, main.erased), (content.rows.len() as u64, erased));
    let history = built.meta.history.get().map_or(Totals::default(), |tree| tree.totals);
    assert_eq!(history.rows, older);
    assert_eq!(main.group_bytes, built.meta.value_bytes + history.bytes);
    assert_eq!(built.meta.range_erases.get().map_or(0, |tree| tree.totals.rows), content.range_erases.len() as u64);

    let (sst, source) = (built.sst(), Resident::new(validate));
    for (kind, tree) in built.meta.trees() {
        for index in [PageKind::Index, PageKind::Flat] {
            let mut found = Totals::default();
            let nodes: Vec<_> =
                built.nodes().into_iter().filter(|node| node.tree == kind && node.kind == index).collect();
            let height = if index == PageKind::Flat { tree.flat } else { tree.btree }.map_or(0, |root| root.height);
            for node in nodes.iter().filter(|node| node.depth + 1 == height) {
                let node = IndexNode::new(&node.page);
                for i in 0..node.children() {
                    let child = node.child(i);
                    let page = source.page(sst.file.at(&child.address, kind.page_kind())).expect("the file is whole");
                    let layout = Layout::of(&page);
                    assert_eq!(layout.first_row(), found.rows);
                    let erases = (0..layout.rows()).filter(|&i| layout.record(&page, i).kind == RowKind::Erase);
                    found.rows += layout.rows() as u64;
                    found.bytes += u64::from(child.address.bytes);
                    found.erased += erases.count() as u64;
                    found.group_bytes = child.totals.group_bytes;
                    assert_eq!(child.totals, found);
                }
            }
            assert!(nodes.is_empty() || found == tree.totals, "{found:?} in the pages, {:?} in the meta", tree.totals);
            for node in &nodes {
                let node = IndexNode::new(&node.page);
                for i in 0..node.children() {
                    let child = node.child(i);
                    if let Some(below) = nodes.iter().find(|below| below.at == child.address) {
                        let below = IndexNode::new(&below.page);
                        assert_eq!(below.child(below.children() - 1).totals, child.totals);
                    }
                }
            }
        }
    }
}

#[test]
fn a_large_value_counts_with_its_own_row() {
    let mut content = Content::default();
    for i in 0..9_u8 {
        content.rows.insert(vec![i], vec![(1, RowKind::Put, vec![i; 150 + 200 * usize::from(i % 4)])]);
    }
    let options = crate::BuildOptions { max_page_rows: 1, index: PageIndexKind::Flat, ..tiny() };
    let built = content.build(options);
    let list = built.nodes().pop().expect("there is a list");
    let mut expected = 0;
    for (i, written) in content.rows.values().enumerate() {
        let stored = (written[0].2.len() + pages::HEADER_BYTES).next_multiple_of(64);
        expected += stored as u64;
        assert_eq!(IndexNode::new(&list.page).child(i).totals.group_bytes, expected, "through row {i}");
    }
    assert_eq!(expected, built.meta.value_bytes);
}

#[test]
fn the_length_of_an_unfinished_file_is_known_to_a_few_pages() {
    let mut builder = SstBuilder::new(Arc::new(NullFile::default()), PATH.into(), ID, BuildOptions::default());
    for key in decimal_keys(50_000) {
        builder.add(&key, Version(1), RowKind::Put, &[&[b'v'; 100]]).expect("nothing is written");
    }
    let estimate = builder.file_bytes();
    let bytes = builder.finish().expect("nothing is written").file_bytes;
    assert!(estimate.abs_diff(bytes) <= 4 * (16 << 10), "{estimate} expected, {bytes} written");
}

#[test]
#[should_panic(expected = "keys arrive in order")]
fn keys_out_of_order_are_refused() {
    let mut builder = SstBuilder::new(Arc::new(NullFile::default()), PATH.into(), ID, tiny());
    for key in ["b", "a"] {
        builder.add(key.as_bytes(), Version(1), RowKind::Put, &[b""]).expect("nothing is written");
    }
}

#[test]
#[should_panic(expected = "newest first")]
fn versions_out_of_order_are_refused() {
    let mut builder = SstBuilder::new(Arc::new(NullFile::default()), PATH.into(), ID, tiny());
    for version in [5, 7] {
        builder.add(b"a", Version(version), RowKind::Put, &[b""]).expect("nothing is written");
    }
}

#[test]
#[should_panic(expected = "an erase has no value")]
fn an_erase_with_a_part_is_refused() {
    let options = crate::BuildOptions { groups: 1, ..tiny() };
    let mut builder = SstBuilder::new(Arc::new(NullFile::default()), PATH.into(), ID, options);
    builder.add(b"a", Version(1), RowKind::Erase, &[b"", b"part"]).expect("nothing is written");
}

#[test]
#[should_panic(expected = "in order, apart")]
fn overlapping_range_erases_are_refused() {
    let mut builder = SstBuilder::new(Arc::new(NullFile::default()), PATH.into(), ID, tiny());
    for (start, end) in [(b"a", b"c"), (b"b", b"d")] {
        builder.add_range_erase(&KeyRange { start, end: Some(end) }, &[Version(1)]).expect("nothing is written");
    }
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    use os::{Access, Disk};
    let disk = os::sim::SimDisk::new(1);
    disk.set_capacity(100_000);
    let file = disk.open(std::path::Path::new(PATH), Access::Create).expect("the disk is empty");
    let mut builder = SstBuilder::new(file, PATH.into(), ID, tiny());
    let mut write = || -> pages::Result<()> {
        for i in 0..1_000_000_u32 {
            builder.add(&i.to_be_bytes(), Version(1), RowKind::Put, &[&[7; 40]])?;
        }
        Ok(())
    };
    let error = write().expect_err("the disk is full").to_string();
    assert!(error.contains("write") && error.contains(PATH), "{error}");
}
