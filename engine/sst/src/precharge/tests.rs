//! A precharge asks for exactly the pages that a reader will touch.
//!
//! The oracle lists the pages of every tree. It walks the rows one by one, like a reader that has no index. A
//! precharge must ask for exactly the oracle's pages, whatever is in memory already, and must keep within its bound
//! of rounds. Afterwards the real cursors meet no fault.

mod edges;
mod model;
mod touch;

use super::*;
use crate::KeyRange;
use crate::fixture::{Built, Content, tiny};
use crate::format::meta::PageIndexKind;
use crate::read::Groups;
use crate::row::{RowKind, Version};
use crate::write::BuildOptions;
use model::{Oracle, Pages};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::BTreeSet;
use touch::Touch;

const ROWS: usize = 40;

/// Each key consists of two numbers, and both numbers have gaps. There are four rows for each first number. Every
/// seventh row is erased.
fn content(groups: usize, history: bool) -> Content {
    let mut content = Content { groups, ..Content::default() };
    for i in 0..ROWS as u32 {
        let key = [(i / 4 * 3 + 2).to_be_bytes(), (i % 4 * 2 + 1).to_be_bytes()].concat();
        let newest = 100 + u64::from(i);
        let written = |version: u64| {
            let kind = if i % 7 == 3 && version == newest { RowKind::Erase } else { RowKind::Put };
            let value = if kind == RowKind::Erase { Vec::new() } else { vec![b'v'; (i % 5) as usize * 9] };
            (version, kind, value)
        };
        let older =
            if history { (0..u64::from(i) % 5).rev().map(|n| written(10 + n * 10)).collect() } else { Vec::new() };
        content.rows.insert(key, std::iter::once(written(newest)).chain(older).collect());
    }
    content
}

/// Build options for trees of no level, of one level and of three levels. Each file is walked by its B-tree and by
/// its flat index.
fn shapes() -> Vec<(BuildOptions, u8)> {
    let shape = |max_page_rows: usize, max_node_children: usize| BuildOptions {
        page_bytes: 4096,
        node_bytes: 4096,
        index: PageIndexKind::Both,
        max_page_rows,
        max_node_children,
        ..tiny()
    };
    vec![(shape(1000, 1000), 0), (shape(2, 1000), 1), (shape(2, 3), 3)]
}

/// A file, its oracle, and the way it is read.
struct Case {
    built: Built,
    oracle: Oracle,
    prefer_flat: bool,
    name: String,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (options, height) in shapes() {
        for (groups, history) in [(0, false), (2, false), (0, true), (2, true)] {
            for prefer_flat in [false, true] {
                let built = content(groups, history).build(options);
                let main = built.meta.main.expect("it has rows");
                assert_eq!(main.btree.expect("both were asked for").height, height);
                let oracle = Oracle::new(&built);
                let index = if prefer_flat { "flat" } else { "B-tree" };
                let name = format!("{height} levels, {groups} groups, history {history}, {index}");
                cases.push(Case { built, oracle, prefer_flat, name });
            }
        }
    }
    cases
}

/// A whole precharge of one file.
fn charge<S: PageSource + ?Sized>(source: &S, sst: &Sst, rounds: u64, reading: &ReadPlan<'_>) -> Result<Pass> {
    run(source, rounds, |asked| {
        let mut shares = Shares::new(reading.limits.bytes, u64::MAX);
        pass(sst, source, reading, &mut shares, asked)
    })
}

impl Case {
    fn sst(&self) -> Sst {
        let mut sst = std::sync::Arc::into_inner(self.built.sst()).expect("it was made just now");
        sst.prefer_flat = self.prefer_flat;
        sst
    }

    fn has_groups(&self) -> bool {
        !self.built.meta.groups.is_empty()
    }

    fn groups(&self) -> Groups {
        Groups::first(1 + self.built.meta.groups.len())
    }

    /// Precharges while the pages `resident` are in memory, compares the result with the oracle's pages, and then
    /// reads.
    fn check(&self, source: &Touch, sst: &Sst, wanted: &ReadPlan<'_>, resident: &BTreeSet<u64>) {
        source.start(resident);
        let bound = rounds_at_most(sst, wanted);
        let found = charge(source, sst, bound, wanted).expect("nothing is damaged");
        let say = || format!("{}: {wanted:?}", self.name);
        assert!(!found.missing && !found.noted, "{}: it was not done after {bound} rounds", say());
        let expected = self.oracle.read(wanted);
        let asked: Pages = source.asked_rows();
        let missing: Pages = expected.pages.iter().filter(|(_, offset)| !resident.contains(offset)).copied().collect();
        assert_eq!(asked, missing, "{}", say());
        let nodes = self.oracle.nodes_above(self.prefer_flat, &expected.touched);
        let vain: Vec<u64> = source.asked_nodes().difference(&nodes).copied().collect();
        assert!(vain.is_empty() || wanted.limits.bytes < u64::MAX, "{}: nodes at {vain:?} in vain", say());
        if wanted.limits.rows > 0 {
            assert_eq!(found.overshot, expected.overshot, "{}", say());
        }
        if wanted.needs_rows(sst) && wanted.limits.rows > 0 && wanted.limits.bytes == u64::MAX {
            assert_eq!(found.rows.clone().count(), expected.rows.clone().count(), "{}", say());
            assert!(found.rows.is_empty() || found.rows == expected.rows, "{}", say());
        }
        if wanted.limits.rows < u64::MAX && wanted.limits.bytes == u64::MAX {
            assert_eq!(found.items, expected.items, "{}", say());
        }
        if wanted.limits.bytes == u64::MAX {
            source.forbid_faults();
            model::read(&std::sync::Arc::new(self.sst()), source, wanted);
        }
    }
}

fn limits() -> [u64; 9] {
    let rows = ROWS as u64;
    [0, 1, 2, 5, 13, 19, rows - 2, rows - 1, u64::MAX]
}

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

#[test]
fn every_range_of_row_ids_asks_for_its_pages() {
    for case in cases() {
        println!("{}", case.name);
        let (sst, source) = (case.sst(), Touch::new(&case.built));
        for start in 0..=ROWS as u64 {
            for end in start..=ROWS as u64 + 1 {
                for limit in limits() {
                    for direction in DIRECTIONS {
                        let wanted = ReadPlan {
                            rows: start..end,
                            direction,
                            limits: AtMost::rows(limit),
                            groups: case.groups(),
                            ..ReadPlan::ALL
                        };
                        case.check(&source, &sst, &wanted, &BTreeSet::new());
                    }
                }
            }
        }
    }
}

/// Keys of rows, keys between rows, keys of a first number alone, and the empty key.
fn keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = vec![Vec::new(), vec![0], vec![0xff; 9]];
    for key in content(0, false).rows.keys() {
        keys.push(key.clone());
        keys.push(key[..4].to_vec());
        keys.push([&key[..7], &[key[7] + 1]].concat());
    }
    keys.sort();
    keys.dedup();
    keys
}

fn bounds(keys: &[Vec<u8>]) -> Vec<Bound<&[u8]>> {
    let mut bounds = vec![Bound::Unbounded];
    for key in keys {
        bounds.push(Bound::Included(key.as_slice()));
        bounds.push(Bound::Excluded(key.as_slice()));
    }
    bounds
}

/// Tries all pairs of keys as a range that includes the lower key and excludes the higher key, each with all
/// limits. A pair with other kinds of bounds, or with the flat index, is tried with only one limit. There the
/// limits take turns.
#[test]
fn every_range_of_keys_asks_for_its_pages() {
    let keys = keys();
    let bounds = bounds(&keys);
    for (turn, case) in cases().into_iter().enumerate() {
        println!("{}", case.name);
        let (sst, source) = (case.sst(), Touch::new(&case.built));
        for (i, &low) in bounds.iter().enumerate() {
            for (k, &high) in bounds.iter().enumerate().skip(i.saturating_sub(2)) {
                if is_empty(&low, &high) {
                    continue;
                }
                for direction in DIRECTIONS {
                    let is_plain = !case.prefer_flat && matches!((low, high), (Bound::Included(_), Bound::Excluded(_)));
                    for n in 0..if is_plain { 9 } else { 1 } {
                        let limit = limits()[(i + k + turn + n) % 9];
                        let limits = AtMost::rows(limit);
                        let wanted = ReadPlan { low, high, direction, limits, groups: case.groups(), ..ReadPlan::ALL };
                        case.check(&source, &sst, &wanted, &BTreeSet::new());
                    }
                }
            }
        }
    }
}

#[test]
fn every_limit_of_bytes_gives_a_beginning_of_what_is_wanted() {
    for case in cases() {
        let (sst, source) = (case.sst(), Touch::new(&case.built));
        let bytes = case.built.meta.main.expect("it has rows").totals.bytes;
        let keys = keys();
        for direction in DIRECTIONS {
            for step in 0..=bytes / 4096 {
                for limit in [step * 4096, (step * 4096).saturating_sub(1), step * 4096 + 1] {
                    for (low, high) in [
                        (Bound::Unbounded, Bound::Unbounded),
                        (Bound::Included(keys[9].as_slice()), Bound::Excluded(keys[60].as_slice())),
                        (Bound::Excluded(keys[30].as_slice()), Bound::Unbounded),
                    ] {
                        let limits = AtMost::bytes(limit);
                        let wanted = ReadPlan { low, high, direction, limits, groups: case.groups(), ..ReadPlan::ALL };
                        case.check(&source, &sst, &wanted, &BTreeSet::new());
                    }
                }
            }
        }
    }
}

#[test]
fn older_versions_are_asked_for_where_they_are_read() {
    let keys = keys();
    for case in cases().into_iter().filter(|case| case.built.meta.history.is_some()) {
        println!("{}", case.name);
        let (sst, source) = (case.sst(), Touch::new(&case.built));
        for at in [0, 5, 10, 25, 50, 99, 100, 117, 138, 139, u64::MAX] {
            for (i, low) in keys.iter().enumerate().step_by(3) {
                for (k, high) in keys.iter().enumerate().skip(i).step_by(4) {
                    for direction in DIRECTIONS {
                        let wanted = ReadPlan {
                            low: Bound::Included(low.as_slice()),
                            high: Bound::Excluded(high.as_slice()),
                            direction,
                            limits: AtMost::rows(limits()[(i + k) % 9]),
                            groups: case.groups(),
                            at: Version(at),
                            ..ReadPlan::ALL
                        };
                        if !is_empty(&wanted.low, &wanted.high) {
                            case.check(&source, &sst, &wanted, &BTreeSet::new());
                        }
                    }
                }
            }
        }
    }
}

/// In YDB, a tree that was partly in memory once gave bounds that were too wide for groups and history (#1674).
#[test]
fn what_is_in_memory_changes_what_is_asked_for_only_by_itself() {
    let keys = keys();
    let seed = 21;
    let mut rng = StdRng::seed_from_u64(seed);
    for case in cases() {
        let (sst, source) = (case.sst(), Touch::new(&case.built));
        let all: Vec<u64> = case.oracle.all_pages(case.prefer_flat);
        for round in 0..600 {
            let share = rng.random_range(0.0..1.0);
            let resident: BTreeSet<u64> = all.iter().copied().filter(|_| rng.random_bool(share)).collect();
            let (a, b) = (rng.random_range(0..keys.len()), rng.random_range(0..keys.len()));
            let rows = rng.random_range(0..=ROWS as u64);
            let wanted = ReadPlan {
                low: Bound::Included(keys[a.min(b)].as_slice()),
                high: Bound::Included(keys[a.max(b)].as_slice()),
                rows: if round % 3 == 0 { rows / 2..rows + 3 } else { 0..u64::MAX },
                direction: DIRECTIONS[round % 2],
                limits: AtMost::rows(limits()[rng.random_range(0..9)]),
                groups: if rng.random() { case.groups() } else { Groups::MAIN },
                at: Version([u64::MAX, 30, 110][rng.random_range(0..3)]),
                values: true,
            };
            case.check(&source, &sst, &wanted, &resident);
        }
    }
    println!("seed {seed}");
}

/// YDB once did not precharge values that lie outside their pages (#6486). In its second format, it once did not
/// precharge the history of groups.
#[test]
fn values_outside_their_pages_come_too() {
    let mut content = content(2, true);
    for (i, written) in content.rows.values_mut().enumerate().filter(|(i, _)| i % 3 == 0) {
        for (_, kind, value) in written.iter_mut().filter(|(_, kind, _)| *kind == RowKind::Put) {
            assert_eq!(*kind, RowKind::Put);
            *value = vec![b'L'; 2100 + i];
        }
    }
    for (options, height) in shapes() {
        let built = content.build(options);
        assert!(built.meta.value_bytes > 0);
        let oracle = Oracle::new(&built);
        let case = Case { built, oracle, prefer_flat: false, name: format!("{height} levels with large values") };
        assert!(case.has_groups());
        let (sst, source) = (case.sst(), Touch::new(&case.built));
        let keys = keys();
        for at in [30, 110, u64::MAX] {
            for limit in limits() {
                for direction in DIRECTIONS {
                    for values in [false, true] {
                        for groups in [Groups::MAIN, Groups::NONE.with(2), case.groups()] {
                            let wanted = ReadPlan {
                                low: Bound::Included(keys[11].as_slice()),
                                high: Bound::Included(keys[77].as_slice()),
                                direction,
                                limits: AtMost::rows(limit),
                                at: Version(at),
                                values,
                                groups,
                                ..ReadPlan::ALL
                            };
                            case.check(&source, &sst, &wanted, &BTreeSet::new());
                        }
                    }
                }
            }
        }
    }
}

/// In YDB, preloading an index that nobody had pinned could once go on for ever (#5835).
#[test]
fn a_precharge_ends_even_if_nothing_stays_in_memory() {
    use pages::{Admit, Flaky, PageCache, Reason, Session};
    for case in cases() {
        for seed in 0..20 {
            let cache = PageCache::new(4 * 4400, 1, crate::format::validate);
            let mut sst = std::sync::Arc::into_inner(case.built.sst_in(&cache, case.prefer_flat)).expect("it is new");
            sst.prefer_flat = case.prefer_flat;
            let source = Flaky::forgetful(Session::new(&cache, Reason::Precharge, Admit::Keep), seed);
            let wanted = ReadPlan { groups: case.groups(), at: Version(60), ..ReadPlan::ALL };
            let bound = 2 * rounds_at_most(&sst, &wanted);
            charge(&source, &sst, bound, &wanted).expect("nothing is damaged");
            assert_eq!(cache.usage().pinned_bytes, 0, "a precharge gives back what it pinned");
        }
    }
}

#[test]
fn an_empty_file_and_an_empty_range_want_nothing() {
    let built = Content::default().build(tiny());
    let (sst, source) = (built.sst(), Touch::new(&built));
    let found = charge(&source, &sst, 0, &ReadPlan::ALL).expect("nothing is read");
    assert_eq!(found, Pass { overshot: true, is_known: true, ..Pass::default() }, "the next file is asked");
    let built = content(0, false).build(tiny());
    let (sst, source) = (built.sst(), Touch::new(&built));
    let (low, high) = (Bound::Included(&b"b"[..]), Bound::Excluded(&b"a"[..]));
    charge(&source, &sst, 0, &ReadPlan { low, high, ..ReadPlan::ALL }).expect("nothing is read");
    charge(&source, &sst, 0, &ReadPlan { limits: AtMost::rows(0), ..ReadPlan::ALL }).expect("nothing is read");
    assert!(source.asked_rows().is_empty() && source.asked_nodes().is_empty());
}

#[test]
fn range_erases_of_the_keys_come_too() {
    let mut content = content(0, false);
    let key = |i: u8| vec![0, 0, 0, i];
    for i in (0..60).step_by(2) {
        let versions = vec![Version(500)];
        content
            .range_erases
            .push(crate::RangeErase { keys: KeyRange { start: key(i), end: Some(key(i + 1)) }, versions });
    }
    for (options, _) in shapes() {
        let built = content.build(options);
        let (sst, source) = (built.sst(), Touch::new(&built));
        for (low, high) in [(0, 59), (7, 8), (10, 11), (13, 40), (58, 200)] {
            let (low, high) = (key(low), key(high));
            let (low_bound, high_bound) = (Bound::Included(low.as_slice()), Bound::Excluded(high.as_slice()));
            let wanted = ReadPlan { low: low_bound, high: high_bound, ..ReadPlan::ALL };
            source.start(&BTreeSet::new());
            let found = charge(&source, &sst, rounds_at_most(&sst, &wanted), &wanted);
            assert!(!found.expect("nothing is damaged").missing);
            source.forbid_faults();
            for probe in (low[3]..high[3]).map(key) {
                sst.cover(&source, &probe, Version::MAX).expect("no fault");
            }
        }
    }
}
