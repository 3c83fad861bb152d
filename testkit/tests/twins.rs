//! Trees and flat indexes of the same files give the same answers. `cargo x sim` runs more seeds.

use larch::stats::PageKind;
use testkit::options::TinyOptions;
use testkit::touched::Touched;
use testkit::twins::read_both_ways;

const STEPS: usize = 397;

const SEEDS: u64 = 30;

/// Seeds for the test of mixed files: many, because the files of one table seldom have different indexes.
const MIXED_SEEDS: u64 = 45;

#[test]
fn trees_and_flat_indexes_give_the_same_bytes() {
    let mut all = [Touched::default(); 2];
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let readings = read_both_ways(seed, STEPS, &TinyOptions::of(seed).with_both_indexes());
        all.iter_mut().zip(readings).for_each(|(all, reading)| *all += reading.touched);
    }
    println!("{all:?}");
    let [by_tree, by_flat] = all;
    // Every file has both kinds of index, and each database must read only its own kind.
    assert_eq!((by_tree.of(PageKind::Flat).all(), by_flat.of(PageKind::Index).all()), (0, 0));
    let (nodes, flat) = (by_tree.of(PageKind::Index), by_flat.of(PageKind::Flat));
    assert!(nodes.all() > 10_000 && flat.all() > 10_000 && nodes.reads > 1000 && flat.reads > 1000);
}

#[test]
fn tables_altered_from_index_to_index_give_the_same_bytes() {
    let mut mixed = [0, 0];
    for seed in 0..MIXED_SEEDS {
        println!("seed {seed}");
        let mut options = TinyOptions::of(seed);
        // Pages are small, so that even small files have an index.
        options.tables.iter_mut().for_each(|table| table.page_bytes = 256);
        let readings = read_both_ways(seed, STEPS, &options);
        mixed.iter_mut().zip(readings).for_each(|(mixed, reading)| *mixed += reading.mixed_tables);
    }
    // Both databases must have read many tables whose files have different indexes.
    println!("tables with mixed files, read by trees and by flat indexes: {mixed:?}");
    assert!(mixed.iter().all(|&tables| tables > 10), "{mixed:?}");
}
