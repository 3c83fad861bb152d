//! How much waits in memory while a tree grows.

use super::*;
use crate::fixture::{ID, NullFile, PATH};
use crate::row::{MAX_KEY_BYTES, RowKind, Version};
use crate::write::rows::{KeyedRows, StoredBytes};
use std::sync::Arc;

/// Adds rows with these keys, each in a page of its own. Returns the most bytes of closed nodes that waited at any
/// time, the most bytes of children that waited on one level, and the tree.
fn grow(keys: impl Iterator<Item = Vec<u8>>, options: &BuildOptions) -> (usize, usize, Tree) {
    let mut writer = FileWriter::new(Arc::new(NullFile::default()), PATH.into(), ID);
    let mut rows = KeyedRows::new(TreeKind::Main, options);
    let (mut closed, mut waiting) = (0, 0);
    for key in keys {
        let value = StoredBytes::inline(b"");
        rows.add(&mut writer, options, &key, Version(1), RowKind::Put, value).expect("nothing is written");
        let tree = rows.tree();
        let sum = tree.closed.iter().map(|node| node.page.len() + node.separator.len()).sum::<usize>();
        assert_eq!(tree.closed_bytes, sum);
        closed = closed.max(tree.closed_bytes);
        for level in tree.levels.iter().filter(|level| level.waiting.children() > 0) {
            // The separators wait in full length, so they take more room here than in a node.
            waiting = waiting.max(level.waiting.entries().map(|(separator, _)| separator.len() + 60).sum());
        }
    }
    rows.finish_pages(&mut writer, options).expect("nothing is written");
    let described = rows.finish_index(&mut writer, options).expect("nothing is written").expect("it has rows");
    (closed, waiting, described)
}

#[test]
fn at_most_a_megabyte_of_nodes_waits_for_its_extent() {
    let options = BuildOptions { max_page_rows: 1, ..BuildOptions::default() };
    let (closed, waiting, tree) = grow((0..120_000_u32).map(|i| i.to_be_bytes().to_vec()), &options);
    assert!(tree.index_bytes() > 1 << 20, "{} bytes of index make no extent", tree.index_bytes());
    assert!(closed <= EXTENT_BYTES + options.node_bytes as usize, "{closed} bytes waited");
    assert!(closed > EXTENT_BYTES / 2, "{closed} bytes waited: an extent is written when it is worth it");
    assert!(waiting <= 20 * options.node_bytes as usize, "{waiting} bytes of children waited on one level");
}

/// Keys of `len` bytes. Every other key has a separator as long as the key itself.
fn huge_keys(alike: bool, len: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..400_u16).flat_map(move |i| {
        let mut key = vec![if alike { b'k' } else { (i / 2 + 1) as u8 }; len];
        key[len - 3..len - 1].copy_from_slice(&i.to_be_bytes());
        *key.last_mut().expect("it is long") = 0;
        let mut next = key.clone();
        *next.last_mut().expect("it is long") = 1;
        [key, next]
    })
}

#[test]
fn huge_separators_do_not_make_more_wait() {
    // A node with a common prefix longer than the node's target length has few children for this reason alone. The
    // last of these cases has a shorter prefix.
    for (alike, len) in [(false, MAX_KEY_BYTES), (true, MAX_KEY_BYTES), (true, 8 << 10)] {
        // The first keys are short, so the builder expects that the next keys are short as well.
        let keys = (0..300_u16).map(|i| [&[0], i.to_be_bytes().as_slice()].concat()).chain(huge_keys(alike, len));
        let options = BuildOptions { max_page_rows: 1, ..BuildOptions::default() };
        let (closed, waiting, tree) = grow(keys, &options);
        assert!(alike || tree.index_bytes() > 4 << 20, "{} bytes of index are not many", tree.index_bytes());
        assert!(closed <= EXTENT_BYTES + MAX_NODE_BYTES + MAX_KEY_BYTES, "{closed} bytes waited");
        assert!(
            waiting <= 2 * MAX_SEPARATOR_BYTES + MAX_NODE_BYTES,
            "{waiting} bytes of children waited on one level, alike: {alike}, {len} bytes"
        );
    }
}

#[test]
fn a_list_that_outgrows_its_page_becomes_a_tree() {
    for index in [crate::PageIndexKind::Flat, crate::PageIndexKind::Both] {
        let options = BuildOptions { max_page_rows: 1, index, ..BuildOptions::default() };
        let keys = (0..110_000_u32).map(|i| i.to_be_bytes().to_vec());
        let (_, _, tree) = grow(keys, &options);
        assert_eq!((tree.flat, tree.data_pages), (None, 110_000));
        assert!(tree.btree.is_some_and(|root| root.height >= 2));
    }
}
