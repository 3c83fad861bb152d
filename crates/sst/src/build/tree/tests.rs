//! What waits in memory while a tree grows.

use super::*;
use crate::fixture::{ID, NullFile, PATH};
use crate::row::MAX_KEY_BYTES;
use std::sync::Arc;

/// Adds rows with these keys, each in a page of its own, and returns how many bytes of closed nodes waited at most, how
/// many bytes of children waited at most on one level, and the tree.
fn grow(keys: impl Iterator<Item = Vec<u8>>, options: &BuildOptions) -> (usize, usize, Tree) {
    let mut writer = FileWriter::new(Arc::new(NullFile::default()), PATH.into(), ID);
    let mut tree = TreeBuilder::new(TreeKind::Main, options);
    let (mut closed, mut waiting) = (0, 0);
    for key in keys {
        tree.add(&mut writer, options, &key, Version(1), RowKind::Put, false, b"", 0).expect("nothing is written");
        assert_eq!(tree.closed_bytes, tree.closed.iter().map(|node| node.page.len()).sum::<usize>());
        closed = closed.max(tree.closed_bytes);
        for level in tree.levels.iter().filter(|level| level.waiting.children() > 0) {
            // Stored whole, separators take more room here than in a node.
            waiting = waiting.max(level.waiting.entries().map(|(separator, _)| separator.len() + 60).sum());
        }
    }
    tree.finish_pages(&mut writer, options, 0).expect("nothing is written");
    let described = tree.finish_index(&mut writer, options).expect("nothing is written").expect("it has rows");
    (closed, waiting, described)
}

use crate::row::Version;

#[test]
fn at_most_a_megabyte_of_nodes_waits_for_its_extent() {
    let options = BuildOptions { max_page_rows: 1, ..BuildOptions::default() };
    let (closed, waiting, tree) = grow((0..120_000_u32).map(|i| i.to_be_bytes().to_vec()), &options);
    assert!(tree.index_bytes() > 1 << 20, "{} bytes of index make no extent", tree.index_bytes());
    assert!(closed <= EXTENT_BYTES + options.node_bytes as usize, "{closed} bytes waited");
    assert!(closed > EXTENT_BYTES / 2, "{closed} bytes waited: an extent is written when it is worth it");
    assert!(waiting <= 20 * options.node_bytes as usize, "{waiting} bytes of children waited on one level");
}

#[test]
fn huge_separators_do_not_make_more_wait() {
    let options = BuildOptions { max_page_rows: 1, ..BuildOptions::default() };
    let keys = (0..200_u8).flat_map(|i| {
        // Pairs that part in their last byte: one separator of each pair is as long as a key.
        let mut key = vec![i; MAX_KEY_BYTES];
        *key.last_mut().expect("it is long") = 0;
        [key.clone(), vec![i; MAX_KEY_BYTES - 1].into_iter().chain([255]).collect()]
    });
    let (closed, waiting, tree) = grow(keys, &options);
    assert!(tree.index_bytes() > 4 << 20);
    assert!(closed <= EXTENT_BYTES + MAX_NODE_BYTES, "{closed} bytes waited");
    assert!(waiting <= 3 * MAX_NODE_BYTES, "{waiting} bytes of children waited on one level");
}

#[test]
fn a_list_that_outgrows_its_page_becomes_a_tree() {
    for index in [crate::IndexKind::Flat, crate::IndexKind::Both] {
        let options = BuildOptions { max_page_rows: 1, index, ..BuildOptions::default() };
        let keys = (0..110_000_u32).map(|i| i.to_be_bytes().to_vec());
        let (_, _, tree) = grow(keys, &options);
        assert_eq!((tree.flat, tree.data_pages), (None, 110_000));
        assert!(tree.btree.is_some_and(|root| root.height >= 2));
    }
}
