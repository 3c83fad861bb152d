//! Tests which compaction is picked for which files, above all for files with erased rows.

mod beside;
mod model;

use super::*;
use crate::base::options::TableOptions;
use crate::base::table::TableId;
use crate::manifest::db_file::FileOpener;
use crate::manifest::directory::leftovers::Leftovers;
use crate::manifest::file_set::tests::meta;
use crate::manifest::{Edit, FileSet, NewFile};
use os::Machine;
use pages::PageCache;
use sst::Meta;
use sst::format::meta::{Root, Tree};
use sst::format::node::Totals;

/// A file: its level, its lowest and highest key, its number of rows, how many of the rows are erased, and its
/// newest version. Files get numbers from 1 on, in the order in which they are given.
pub type Described = (u8, &'static str, &'static str, u64, u64, u64);

/// A table without files, and the opener that makes files for it.
fn empty_table() -> (FileSet, FileOpener) {
    let (machine, _) = Machine::simulated(1);
    let cache = PageCache::new(0, 1, sst::validate);
    let opener = FileOpener {
        directory: "db".into(),
        leftovers: Leftovers::new(machine.disk.clone()),
        machine,
        cache,
        prefer_flat: false,
        early: Default::default(),
        known: Default::default(),
    };
    let mut set = FileSet::default();
    let table = Edit::Table { id: TableId(1), name: "t".to_owned(), options: TableOptions::default() };
    set.apply(&table, &opener, &mut Vec::new()).expect("it is the first");
    (set, opener)
}

/// The meta of a file with these rows.
fn described(file_bytes: u64, rows: u64, erased: u64, low: Vec<u8>, high: Vec<u8>) -> Meta {
    let totals = Totals { rows, bytes: file_bytes, group_bytes: 0, erased };
    let root = Root { address: pages::Address::default(), height: 0, index_bytes: 0 };
    let main = Tree { totals, data_pages: 1, btree: Some(root), flat: None };
    Meta { file_bytes, main: Some(main), bounds: KeyBounds { low, high: Some(high) }, ..meta(1) }
}

fn added(level: u8, number: u64, meta: Meta) -> Edit {
    Edit::AddFile(NewFile { table: TableId(1), level, number, epoch: 1, version_offset: 0, meta })
}

/// A table with these files.
pub fn table(files: &[Described]) -> TableFiles {
    table_of(files, |_, meta| meta)
}

/// A table with these files, whose descriptions `change` changes. It gets their numbers.
pub fn table_of(files: &[Described], change: impl Fn(u64, Meta) -> Meta) -> TableFiles {
    let (mut set, opener) = empty_table();
    for (number, &(level, low, high, rows, erased, newest)) in (1..).zip(files) {
        let meta = described(100 * rows, rows, erased, low.into(), high.into());
        let edit = added(level, number, change(number, Meta { newest: Version(newest), ..meta }));
        set.apply(&edit, &opener, &mut Vec::new()).expect("numbers grow");
    }
    set.tables[&TableId(1)].clone()
}

const AT_REST: Level0Use = Level0Use { is_at_rest: true, looks: 0 };

/// Level and number of each input, and the level into which they are merged.
type Merged = (Vec<(usize, u64)>, usize);

#[track_caller]
fn check(files: &[Described], seen: u64, expected: Option<Merged>) {
    let picked = match pick(&table(files), &LevelOptions::default(), Version(seen), Level0Use::default(), &[]) {
        Pick::Nothing => None,
        Pick::Merge { inputs, to, .. } => Some((inputs, to)),
        choice @ (Pick::Move { .. } | Pick::Drop { .. }) => panic!("{choice:?} takes no erased row away"),
    };
    assert_eq!(picked, expected);
}

#[test]
fn a_file_of_erased_rows_goes_to_where_nothing_lies_below_and_there_they_go() {
    // First, only a file from a flush. Second, the same file over one with the rows that it erases.
    check(&[(0, "a", "z", 100_000, 100_000, 5)], 5, Some((vec![(0, 1)], 6)));
    let over = [(6, "a", "z", 100_000, 0, 3), (0, "a", "z", 100_000, 100_000, 5)];
    check(&over, 5, Some((vec![(0, 2), (6, 1)], 6)));
    // A file in a deeper level goes down to the next level with keys in its range. If there is none, it is
    // rewritten in place.
    let large = (6, "x", "z", 100_000_000, 0, 3);
    let deeper = [(4, "a", "m", 1000, 900, 5), (6, "a", "k", 5000, 0, 3), (6, "l", "n", 3000, 0, 3), large];
    check(&deeper, 5, Some((vec![(4, 1), (6, 2), (6, 3)], 6)));
    check(&[(4, "a", "m", 1000, 900, 5), large], 5, Some((vec![(4, 1)], 4)));
    check(&[(6, "a", "m", 1000, 900, 5), (6, "n", "z", 5000, 0, 3)], 5, Some((vec![(6, 1)], 6)));
}

/// Checks the targets of the levels in MiB, from the base down. The deepest level of the table has `mebibytes` MiB.
fn check_targets(mebibytes: u64, expected: &[u64]) {
    let rows = (mebibytes << 20) / 100;
    let (base, targets) = targets(&table(&[(6, "a", "z", rows, 0, 1)]), &LevelOptions::default());
    let found: Vec<u64> = targets[base..].iter().map(|target| (target + (1 << 19)) >> 20).collect();
    assert_eq!(found, expected, "of {mebibytes} MiB");
}

#[test]
fn levels_are_few_and_grow_evenly_from_a_base_of_about_its_size() {
    check_targets(10, &[256]);
    check_targets(500, &[500]);
    check_targets(520, &[130, 520]);
    check_targets(1200, &[256, 1200]);
    check_targets(2500, &[256, 2500]);
    check_targets(3000, &[188, 750, 3000]);
    check_targets(20_000, &[256, 2263, 20_000]);
    check_targets(2_000_000, &[256, 2407, 22_627, 212_732, 2_000_000]);
}

#[test]
fn of_several_files_the_one_with_most_erased_rows_is_first() {
    check(&[(6, "a", "b", 1000, 300, 5), (6, "c", "d", 1000, 900, 5)], 5, Some((vec![(6, 2)], 6)));
}

#[test]
fn erased_rows_that_somebody_may_see_through_are_left_alone() {
    let files = [(6, "a", "z", 100_000, 0, 3), (0, "a", "z", 100_000, 100_000, 5)];
    check(&files, 4, None);
    check(&files, 5, Some((vec![(0, 2), (6, 1)], 6)));
}

#[test]
fn few_erased_rows_are_not_worth_many_others() {
    check(&[(6, "a", "z", 1000, 255, 5)], 5, None);
    check(&[(6, "a", "z", 2560, 256, 5)], 5, Some((vec![(6, 1)], 6)));
    check(&[(6, "a", "z", 2561, 256, 5)], 5, None);
    check(&[(0, "a", "z", 1000, 1000, 5), (6, "a", "z", 9001, 0, 3)], 5, None);
}

#[test]
fn levels_that_are_too_large_come_first() {
    let files = [(0, "a", "c", 10, 0, 5), (0, "a", "c", 10, 0, 6), (0, "a", "c", 10, 0, 7), (0, "a", "c", 10, 0, 8)];
    let erased = (6, "m", "z", 1000, 900, 2);
    let all: Vec<Described> = files.into_iter().chain([erased]).collect();
    let Pick::Merge { inputs, .. } = pick(&table(&all), &LevelOptions::default(), Version(9), AT_REST, &[]) else {
        panic!("level 0 is full");
    };
    assert!(inputs.iter().all(|(level, _)| *level == 0), "{inputs:?}");
}

#[test]
fn the_level_that_is_cheapest_to_empty_comes_first_until_level_0_is_urgent() {
    // Below level 0, all cases have 2 GB in the deepest level, and 1 GB in the level above it, whose target is 256
    // MiB.
    let deeper = [
        (5, "a", "m", 5_000_000, 0, 2),
        (5, "n", "z", 5_000_000, 0, 2),
        (6, "a", "m", 10_000_000, 0, 1),
        (6, "n", "z", 10_000_000, 0, 1),
    ];
    let reason = |level0_files: usize, rows: u64| {
        let level0 = std::iter::repeat_n((0, "a", "z", rows, 0, 3), level0_files);
        let all: Vec<Described> = deeper.into_iter().chain(level0).collect();
        match pick(&table(&all), &LevelOptions::default(), Version(9), AT_REST, &[]) {
            Pick::Merge { reason, to, score, .. } => (reason, to, score >= URGENT_SCORE),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason(4, 1000), (CompactionReason::LevelSize, 6, false));
    assert_eq!(reason(4, 5_000_000), (CompactionReason::Level0, 5, false));
    assert_eq!(reason(24, 1000), (CompactionReason::Level0, 5, true));
}

#[test]
fn level_0_waits_for_more_files_unless_the_table_is_at_rest_or_reads_have_paid_for_a_merge() {
    // Each file has 1 MB, and the level below has 6 MB.
    let is_due = |files: usize, level0: Level0Use| {
        let level0_files = std::iter::repeat_n((0, "a", "z", 10_000, 0, 3), files);
        let all: Vec<Described> = [(6, "a", "z", 60_000, 0, 1)].into_iter().chain(level0_files).collect();
        pick(&table(&all), &LevelOptions::default(), Version(9), level0, &[]) != Pick::Nothing
    };
    let read = |looks| Level0Use { is_at_rest: false, looks };
    assert_eq!((is_due(11, read(0)), is_due(12, read(0))), (false, true));
    assert_eq!((is_due(3, AT_REST), is_due(4, AT_REST)), (false, true));
    assert_eq!((is_due(4, read(99_999)), is_due(4, read(100_000))), (false, true));
    assert_eq!((is_due(9, read(100_000)), is_due(9, read(150_000))), (false, true), "a larger merge costs more looks");
    assert!(!is_due(3, read(u64::MAX)), "few files stay");
}

#[test]
fn compactions_have_to_be_fast_before_writes_stop_even_if_writes_are_never_slowed_down() {
    let is_behind = |files: usize, slow_files: usize| {
        let level0: Vec<Described> = std::iter::repeat_n((0, "a", "z", 10_000, 0, 3), files).collect();
        super::is_behind(&table(&level0), &LevelOptions { slow_files, ..LevelOptions::default() })
    };
    assert_eq!((is_behind(30, 20), is_behind(31, 20)), (false, true));
    assert_eq!((is_behind(36, usize::MAX), is_behind(37, usize::MAX)), (false, true));
}
