//! Nodes hold what was added, find a child by key and by row, and refuse malformed bytes.

use super::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};

fn random_node(rng: &mut StdRng) -> (Vec<Vec<u8>>, Vec<Child>) {
    let most = if rng.random_bool(0.3) { 300 } else { 60 };
    let count = rng.random_range(1..most);
    let fixed = rng.random_bool(0.3).then(|| rng.random_range(2..9));
    let mut separators = std::collections::BTreeSet::new();
    let prefix = vec![b'p'; rng.random_range(0..5)];
    while separators.len() < count - 1 {
        let mut separator = prefix.clone();
        let len = fixed.unwrap_or_else(|| rng.random_range(1..9));
        separator.extend((0..len).map(|_| [0u8, 1, b'a', b'b', b'c', 0xff][rng.random_range(0..6)]));
        separators.insert(separator);
        // Few separators are short.
        if fixed == Some(2) && separators.len() == 20 || fixed == Some(3) && separators.len() == 100 {
            break;
        }
    }
    let mut totals = Totals::default();
    let mut offset = 0;
    let children = (0..=separators.len())
        .map(|_| {
            let bytes = rng.random_range(1..5) * 64;
            totals.rows += rng.random_range(1..200);
            totals.bytes += u64::from(bytes);
            totals.group_bytes += rng.random_range(0..2) * 100_000;
            totals.erased += rng.random_range(0..3);
            let address = Address { offset, bytes, crc: rng.random() };
            offset = address.end();
            Child { address, totals }
        })
        .collect();
    (separators.into_iter().collect(), children)
}

/// Builds a node, with samples if it is large enough.
fn build(separators: &[Vec<u8>], children: &[Child]) -> Vec<u8> {
    build_by(NodeBuilder::sampled(), separators, children)
}

fn build_by(mut builder: NodeBuilder, separators: &[Vec<u8>], children: &[Child]) -> Vec<u8> {
    for (i, child) in children.iter().enumerate() {
        builder.add(if i == 0 { b"" } else { &separators[i - 1] }, *child);
    }
    let bytes = builder.bytes(children.len());
    let (mut page, mut rest) = (Vec::new(), vec![1]);
    builder.finish(children.len(), &mut page, &mut rest);
    assert_eq!(page.len(), bytes);
    assert!(rest.is_empty());
    page
}

#[test]
fn children_come_back_and_searches_agree_with_linear_ones() {
    for seed in 0..500 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (separators, children) = random_node(&mut rng);
        let page = build(&separators, &children);
        validate(&page).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let node = IndexNode::new(&page);
        assert_eq!(node.children(), children.len());
        for (i, child) in children.iter().enumerate() {
            assert_eq!(node.child(i), *child, "seed {seed}");
            let begin = if i == 0 { 0 } else { children[i - 1].totals.rows };
            assert_eq!(node.search_row(begin), i, "seed {seed}");
            assert_eq!(node.search_row(child.totals.rows - 1), i, "seed {seed}");
        }
        for (i, expected) in separators.iter().enumerate() {
            let mut separator = Vec::new();
            node.separator(i, &mut separator);
            assert_eq!(&separator, expected);
            assert_eq!(node.search(expected), i + 1, "seed {seed}: a key equal to a separator lies to its right");
        }
        for _ in 0..50 {
            let len = rng.random_range(0..10);
            let wanted: Vec<u8> = (0..len).map(|_| [0u8, 1, b'a', b'p', 0xff][rng.random_range(0..5)]).collect();
            assert_eq!(node.search(&wanted), separators.iter().filter(|s| **s <= wanted).count(), "seed {seed}");
        }
    }
}

#[test]
fn the_first_children_can_leave_and_the_rest_stays_whole() {
    let mut rng = StdRng::seed_from_u64(9);
    for _ in 0..200 {
        let (separators, children) = random_node(&mut rng);
        if children.len() < 2 {
            continue;
        }
        let mut builder = NodeBuilder::sampled();
        for (i, child) in children.iter().enumerate() {
            builder.add(if i == 0 { b"ignored" } else { &separators[i - 1] }, *child);
        }
        let count = rng.random_range(1..children.len());
        let (mut page, mut between) = (Vec::new(), Vec::new());
        builder.finish(count, &mut page, &mut between);
        assert_eq!(between, separators[count - 1]);
        assert_eq!(page, build(&separators[..count - 1], &children[..count]));
        let mut rest = Vec::new();
        builder.finish(children.len() - count, &mut rest, &mut between);
        assert_eq!(rest, build(&separators[count..], &children[count..]));
    }
}

/// A hundred children between separators of eight bytes.
fn hundred() -> (Vec<Vec<u8>>, Vec<Child>) {
    let separators = (0..99u64).map(|i| i.to_be_bytes().to_vec()).collect();
    let child = |i: u64| Child {
        address: Address { offset: i * 4096, bytes: 4096, crc: 0 },
        totals: Totals { rows: (i + 1) * 10, bytes: (i + 1) * 4096, ..Totals::default() },
    };
    (separators, (0..100).map(child).collect())
}

#[test]
fn equal_lengths_choose_the_fixed_form_by_themselves() {
    let (separators, children) = hundred();
    let page = build_by(NodeBuilder::default(), &separators, &children);
    assert!(IndexNode::new(&page).is_fixed());
    assert_eq!(page.len(), HEAD_END + 100 * 4 + 99 * 4 + 7, "a checksum and a head a child, one prefix, no tails");
    let with_samples = build(&separators, &children);
    assert_eq!(with_samples.len(), page.len() + 99 / 16 * 4, "every sixteenth head");
}

#[test]
fn samples_that_are_not_those_of_the_heads_are_refused() {
    let (separators, children) = hundred();
    let mut page = build(&separators, &children);
    assert_eq!(validate(&page), Ok(()));
    page[HEAD_END] ^= 1;
    assert_eq!(validate(&page), Err("the samples are not those of the heads".to_owned()));
}

#[test]
fn malformed_nodes_are_refused_and_never_panic() {
    for seed in 0..500 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (separators, children) = random_node(&mut rng);
        let mut page = build(&separators, &children);
        for cut in 0..page.len() {
            assert!(validate(&page[..cut]).is_err());
        }
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(HEADER_BYTES..page.len());
            page[at] = rng.random();
        }
        if validate(&page).is_ok() {
            let node = IndexNode::new(&page);
            let mut separator = Vec::new();
            for i in 0..node.children() {
                let child = node.child(i);
                node.search_row(child.totals.rows);
                if i > 0 {
                    separator.clear();
                    node.separator(i - 1, &mut separator);
                    assert_eq!(node.search(&separator), i, "seed {seed}");
                }
            }
        }
    }
}
