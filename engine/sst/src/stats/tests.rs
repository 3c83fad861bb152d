//! Every interval must contain the true number, which the tests find row by row. No interval may be wider than the
//! pages at the ends of its range. Only as many pages may be read as the module promises.

mod histogram;
mod truth;

use super::*;
use crate::fixture::{Built, Content, Reader, Rounds, tiny};
use crate::format::meta::{PageIndexKind, TreeKind};
use crate::format::validate;
use crate::read::Sst;
use crate::row::RowKind;
use crate::slice::RowRanges;
use crate::write::BuildOptions;
use pages::{Flaky, PageSource, Resident, Stop, retry};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use truth::{Counting, Row, Tree, holds, slice};

const ROWS: u32 = 40;

/// Keys with gaps. Some of their first bytes are less than 128, and some are not, so a comparison of signed bytes
/// would be noticed. Erased rows lie together: some pages have no erased row, and some pages have only erased
/// rows.
fn content(groups: usize, history: bool) -> Content {
    let mut content = Content { groups, ..Content::default() };
    for i in 0..ROWS {
        let key = [(i / 4 * 0x1900_0000).to_be_bytes(), (i % 4 * 2 + 1).to_be_bytes()].concat();
        let newest = 100 + u64::from(i);
        let written = |version: u64| {
            let kind = if matches!(i % 11, 3..6) && version == newest { RowKind::Erase } else { RowKind::Put };
            let value_bytes = if i % 9 == 4 { 2500 } else { (i % 5) as usize * 9 };
            let value = if kind == RowKind::Erase { Vec::new() } else { vec![b'v'; value_bytes] };
            (version, kind, value)
        };
        let older =
            if history { (0..u64::from(i) % 5).rev().map(|n| written(10 + n * 10)).collect() } else { Vec::new() };
        content.rows.insert(key, std::iter::once(written(newest)).chain(older).collect());
    }
    content
}

/// Build options for trees of no level, of one level and of three levels. Each file has a flat index, too.
fn shapes() -> [(BuildOptions, u8); 3] {
    let shape = |max_page_rows: usize, max_node_children: usize| BuildOptions {
        page_bytes: 4096,
        node_bytes: 4096,
        index: PageIndexKind::Both,
        max_page_rows,
        max_node_children,
        ..tiny()
    };
    [(shape(1000, 1000), 0), (shape(2, 1000), 1), (shape(3, 3), 3)]
}

struct Case {
    sst: Sst,
    main: Tree,
    /// The number of edges of the slice.
    edges: u64,
    height: u64,
    built: Built,
}

fn open(built: &Built, prefer_flat: bool) -> Sst {
    let mut sst = std::sync::Arc::into_inner(built.sst()).expect("it was made just now");
    sst.prefer_flat = prefer_flat;
    sst
}

/// Calls `check` for files of every shape, with and without groups and history. Each file is checked as a whole
/// and in random slices.
fn check_cases(slices: u64, check: impl Fn(&Case, &Counting<Resident>)) {
    for (options, height) in shapes() {
        for (groups, history) in [(0, false), (2, false), (0, true), (2, true)] {
            for prefer_flat in [false, true] {
                for seed in 0..=slices {
                    let built = content(groups, history).build(options);
                    let mut sst = open(&built, prefer_flat);
                    let tree = built.meta.main.expect("it has rows");
                    assert_eq!(tree.btree.expect("both were asked for").height, height);
                    let main = Tree::of(&sst, TreeKind::Main);
                    let mut rng = StdRng::seed_from_u64(seed);
                    let edges = if seed > 0 { slice(&mut rng, &mut sst, &main) } else { 0 };
                    let rows = sst.rows();
                    println!(
                        "height {height}, {groups} groups, history {history}, flat {prefer_flat}, seed {seed}: {rows:?}"
                    );
                    let height = u64::from(tree.root(prefer_flat).height);
                    check(&Case { sst, main, edges, height, built }, &Counting::new(Resident::new(validate)));
                }
            }
        }
    }
}

fn run<S: PageSource, T>(source: &S, step: impl FnMut() -> pages::Result<T, Stop>) -> T {
    retry(source, step).unwrap_or_else(|error| panic!("{error}"))
}

/// Strings at which ranges begin and end in these tests: keys of rows, keys between rows, separators, first halves
/// of keys, a string before all keys, and a string after all keys.
fn keys(main: &Tree) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = vec![Vec::new(), vec![0], vec![0xff; 9]];
    keys.extend(main.pages.iter().map(|page| page.low.clone()));
    for row in &main.rows {
        keys.extend([row.key.clone(), row.key[..4].to_vec(), [&row.key[..7], &[row.key[7] + 1]].concat()]);
    }
    keys.sort();
    keys.dedup();
    keys
}

fn bounds(keys: &[Vec<u8>]) -> Vec<Bound<&[u8]>> {
    let both = keys.iter().flat_map(|key| [Bound::Included(key.as_slice()), Bound::Excluded(key.as_slice())]);
    std::iter::once(Bound::Unbounded).chain(both).collect()
}

/// Pairs of bounds. Only every `step`th pair is returned.
fn ranges<'k>(bounds: &'k [Bound<&'k [u8]>], step: usize) -> impl Iterator<Item = (Bound<&'k [u8]>, Bound<&'k [u8]>)> {
    let pairs = bounds.iter().flat_map(move |&low| bounds.iter().map(move |&high| (low, high)));
    pairs.step_by(step)
}

#[test]
fn every_interval_holds_the_truth_and_no_data_page_is_read() {
    check_cases(6, |Case { sst, main, edges, height, .. }, source| {
        let keys = keys(main);
        let bounds = bounds(&keys);
        for (low, high) in ranges(&bounds, if *edges > 0 { 47 } else { 5 }) {
            let found = run(source, || sst.totals_between(source, low, high));
            let (nodes, data) = source.take();
            let say = format!("{low:?} to {high:?}");
            let rows = main.between(low, high);
            let seen = sst.rows().within(rows);
            assert!(found.rows.contains(seen.count()), "{say}: {} rows are not {:?}", seen.count(), found.rows);
            assert!(found.rows.width() <= 2 * main.page_rows(), "{say}: {:?}", found.rows);
            assert!(found.erased.contains(main.erased(&seen)), "{say}: {:?}", found.erased);
            assert!(found.erased.high <= found.rows.high);
            assert!(holds(found.bytes, main.share(&seen, |totals| totals.bytes)), "{say}: {:?}", found.bytes);
            assert!(holds(found.beside_bytes, main.share(&seen, |totals| totals.group_bytes)), "{say}");
            assert_eq!(data, 0, "{say}: a data page was read");
            assert!(nodes <= height * (2 + edges), "{say}: {nodes} nodes");
        }
    });
}

/// If a range begins and ends at separators, its numbers must be exact, although no data page is read.
#[test]
fn a_range_that_ends_between_pages_is_known() {
    check_cases(0, |Case { sst, main, height, .. }, source| {
        let totals = sst.meta.main.expect("it has rows").totals;
        let all = run(source, || sst.totals_between(source, Bound::Unbounded, Bound::Unbounded));
        let whole = RangeTotals {
            rows: Estimate::exact(totals.rows),
            erased: Estimate::exact(totals.erased),
            bytes: Estimate::exact(totals.bytes),
            beside_bytes: Estimate::exact(totals.group_bytes),
        };
        assert_eq!(all, whole);
        let (first, last) = (&main.rows[0].key, &main.rows[ROWS as usize - 1].key);
        let covered = run(source, || sst.totals_between(source, Bound::Included(first), Bound::Included(last)));
        assert_eq!(covered, whole);
        let beyond = run(source, || sst.totals_between(source, Bound::Excluded(last), Bound::Unbounded));
        assert_eq!(beyond, RangeTotals::default());
        assert_eq!(source.take(), (0, 0), "bounds of the file say it all");
        for (i, a) in main.pages.iter().enumerate().skip(1) {
            for b in &main.pages[i + 1..] {
                let rows = a.rows.start..b.rows.start;
                let (low, high) = (Bound::Included(a.low.as_slice()), Bound::Excluded(b.low.as_slice()));
                let found = run(source, || sst.totals_between(source, low, high));
                assert_eq!(found.rows, Estimate::exact(rows.end - rows.start));
                assert!(found.bytes.is_exact() && found.erased.is_exact() && found.beside_bytes.is_exact());
                assert_eq!(run(source, || sst.rows_between(source, low, high)), rows);
                let (nodes, data) = source.take();
                assert!(nodes <= 2 * height && data == 0);
            }
        }
    });
}

#[test]
fn exact_totals_are_the_truth_with_two_data_pages() {
    check_cases(6, |Case { sst, main, edges, height, .. }, source| {
        let keys = keys(main);
        let bounds = bounds(&keys);
        for (low, high) in ranges(&bounds, if *edges > 0 { 53 } else { 7 }) {
            let say = format!("{low:?} to {high:?}");
            let rows = main.between(low, high);
            let found = run(source, || sst.rows_between(source, low, high));
            assert!(found == rows || found.is_empty() && rows.is_empty(), "{say}: {found:?}, not {rows:?}");
            let (nodes, data) = source.take();
            assert!(nodes <= 2 * height && data <= 2, "{say}: {nodes} nodes, {data} data pages");
            let seen = sst.rows().within(rows);
            let totals = run(source, || sst.exact_between(source, low, high));
            assert_eq!((totals.rows, totals.erased), (seen.count(), main.erased(&seen)), "{say}");
            assert_eq!(totals.bytes, main.share(&seen, |totals| totals.bytes).low, "{say}");
            assert_eq!(totals.group_bytes, main.share(&seen, |totals| totals.group_bytes).low, "{say}");
            let (nodes, data) = source.take();
            assert!(nodes <= height * (2 + edges) && data <= 2 + edges, "{say}: {nodes} nodes, {data} data pages");
        }
    });
}

#[test]
fn the_row_at_a_distance_is_the_one_counted_to() {
    check_cases(12, |Case { sst, main, edges, height, .. }, source| {
        for from in (0..=u64::from(ROWS)).chain([u64::MAX]) {
            let seen = sst.rows().within(from..u64::MAX);
            let puts: Vec<u64> = seen.iter().flatten().filter(|&row| main.rows[row as usize].is_put).collect();
            for n in (0..=puts.len()).chain([usize::MAX]) {
                let found = run(source, || sst.nth_put(source, from, n as u64));
                assert_eq!(found, puts.get(n).copied(), "number {n} from {from}");
                let (nodes, data) = source.take();
                assert!(nodes <= height * (2 + edges) && data <= 2 + edges, "{nodes} nodes, {data} data pages");
            }
        }
    });
}

#[test]
fn a_row_gives_its_key() {
    check_cases(0, |Case { sst, main, height, .. }, source| {
        for (row, Row { key, .. }) in main.rows.iter().enumerate() {
            let mut out = b"before ".to_vec();
            run(source, || sst.key_of(source, row as u64, &mut out));
            assert_eq!(out, [b"before ", key.as_slice()].concat());
            assert_eq!(source.take(), (*height, 1));
        }
    });
}

#[test]
fn bytes_of_each_group_hold_the_truth() {
    check_cases(4, |Case { sst, built, .. }, source| {
        let groups = built.meta.groups.len();
        let kinds = std::iter::once(TreeKind::Main).chain((1..=groups).map(|group| TreeKind::Group(group as u8)));
        let trees: Vec<Tree> = kinds.map(|kind| Tree::of(sst, kind)).collect();
        let kinds = std::iter::once(TreeKind::History);
        let kinds = kinds.chain((1..=groups).map(|group| TreeKind::GroupHistory(group as u8)));
        let older: Vec<Tree> = kinds.map(|kind| Tree::of(sst, kind)).collect();
        // A history row's key begins with the id of the main row that the older version belongs to.
        let row_of = |row: &Row| u64::from_be_bytes(*row.key.first_chunk().expect("a history key has 16 bytes"));
        for start in 0..=u64::from(ROWS) {
            for end in start..=u64::from(ROWS) + 1 {
                let found = run(source, || sst.bytes_by_group(source, start..end));
                let (_, data) = source.take();
                assert_eq!(data, 0, "a data page was read");
                assert_eq!(found.len(), groups + 2);
                let seen = sst.rows().within(start..end);
                assert!(holds(found[0], trees[0].share(&seen, |totals| totals.bytes)));
                for (tree, &found) in trees.iter().zip(&found).skip(1) {
                    let truth =
                        tree.share(&seen, |totals| totals.bytes).plus(tree.share(&seen, |totals| totals.group_bytes));
                    assert!(holds(found, truth), "rows {start}..{end}: {truth:?} is not within {found:?}");
                }
                let mut truth = Estimate::default();
                for range in seen.iter() {
                    let before = |end: u64| older[0].rows.partition_point(|row| row_of(row) < end) as u64;
                    let rows = RowRanges::from(before(range.start)..before(range.end));
                    for tree in &older {
                        truth += tree.share(&rows, |totals| totals.bytes);
                        truth += tree.share(&rows, |totals| totals.group_bytes);
                    }
                }
                assert!(holds(found[groups + 1], truth), "rows {start}..{end}: {truth:?} is not within {found:?}");
            }
        }
        if sst.slice.is_none() {
            let all = run(source, || sst.bytes_by_group(source, 0..u64::MAX));
            let totals = built.meta.main.expect("it has rows").totals;
            assert!(all.iter().all(Estimate::is_exact));
            assert_eq!(all[0].low, totals.bytes);
            let beside: u64 = all[1..].iter().map(|bytes| bytes.low).sum();
            // The rest of the total's group bytes belongs to the main tree's own large values.
            assert!(beside <= totals.group_bytes);
            assert_eq!(source.take(), (0, 0));
        }
    });
}

#[test]
fn a_fault_anywhere_changes_no_answer() {
    for (options, height) in shapes() {
        let built = content(2, true).build(options);
        let mut rng = StdRng::seed_from_u64(u64::from(height));
        let plain = open(&built, false);
        let main = Tree::of(&plain, TreeKind::Main);
        let keys = keys(&main);
        let bounds = bounds(&keys);
        let wanted: Vec<_> = ranges(&bounds, 5003).collect();
        let mut sliced = open(&built, false);
        let edges = slice(&mut rng, &mut sliced, &main);
        // A page source that forgets pages may refuse the pages of a call one after the other, so the call may
        // take this many rounds.
        let answers = |reader: &Reader<'_>| {
            let levels = (u64::from(height) + 1) * (2 + edges);
            let mut sst = open(&built, reader.sst.prefer_flat);
            sst.file = reader.sst.file.clone();
            sst.slice.clone_from(&sliced.slice);
            let mut answers = Vec::new();
            for &(low, high) in &wanted {
                let totals = reader.step(levels, |source| sst.totals_between(source, low, high));
                let rows = reader.step(levels, |source| sst.rows_between(source, low, high));
                let exact = reader.step(levels, |source| sst.exact_between(source, low, high));
                let groups = reader.step(6 * levels, |source| sst.bytes_by_group(source, rows.clone()));
                let nth = reader.step(levels, |source| sst.nth_put(source, rows.start, 3));
                let mut key = Vec::new();
                if let Some(row) = nth {
                    reader.step(levels, |source| sst.key_of(source, row, &mut key));
                }
                answers.push((totals, rows, exact, groups, nth, key));
            }
            answers
        };
        let mut first = [None, None];
        built.on_every_source(|reader| {
            let answers = answers(reader);
            let first = first[usize::from(reader.sst.prefer_flat)].get_or_insert_with(|| answers.clone());
            assert_eq!(*first, answers);
        });
    }
}

#[test]
fn what_is_missing_costs_a_round_a_level() {
    check_cases(4, |Case { sst, main, height, .. }, _| {
        let source = Flaky::once(Resident::new(validate));
        let rounds = |step: &mut dyn FnMut(&Rounds<'_>) -> pages::Result<(), Stop>| {
            let source = Rounds::new(&source);
            run(&source, || step(&source));
            source.rounds()
        };
        let keys = keys(main);
        let bounds = bounds(&keys);
        for (low, high) in ranges(&bounds, 503) {
            assert!(rounds(&mut |source| sst.totals_between(source, low, high).map(drop)) <= *height);
            assert!(rounds(&mut |source| sst.rows_between(source, low, high).map(drop)) <= height + 1);
            assert!(rounds(&mut |source| sst.exact_between(source, low, high).map(drop)) <= 2 * (height + 1));
            let rows = main.between(low, high);
            let tallest = sst.meta.trees().map(|(_, tree)| u64::from(tree.root(sst.prefer_flat).height)).max();
            let took = rounds(&mut |source| sst.bytes_by_group(source, rows.clone()).map(drop));
            assert!(took <= 3 * tallest.unwrap_or(0), "{took} rounds for the bytes of groups");
        }
    });
}

/// Ten files whose keys do not overlap. Each file is asked about the same range. Together, the calls must read no
/// more pages than a count promises.
#[test]
fn a_count_over_files_that_do_not_overlap_reads_their_upper_nodes_alone() {
    let options = BuildOptions { max_page_rows: 5, max_node_children: 4, ..tiny() };
    let files: Vec<Sst> = (0..10u32)
        .map(|file| {
            let keys = (0..200).map(move |i| (file * 1000 + i * 5).to_be_bytes());
            let built = Content::of_keys(keys).build_as(u64::from(file) + 1, options);
            open(&built, false)
        })
        .collect();
    let source = Counting::new(Resident::new(validate));
    let seed = 5;
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..500 {
        let (a, b) = (rng.random_range(0..10_000u32), rng.random_range(0..10_000u32));
        let (low, high) = (a.min(b).to_be_bytes(), a.max(b).to_be_bytes());
        let truth = (0..2000).filter(|i| (a.min(b)..a.max(b)).contains(&(i * 5))).count() as u64;
        let mut count = Estimate::default();
        for sst in &files {
            let (low, high) = (Bound::Included(low.as_slice()), Bound::Excluded(high.as_slice()));
            let found = run(&source, || sst.totals_between(&source, low, high));
            let (nodes, data) = source.take();
            let height = u64::from(sst.meta.main.expect("it has rows").root(false).height);
            assert!(height >= 3 && nodes <= 2 * height && data == 0, "{nodes} nodes, {data} data pages");
            assert!(found.rows.width() <= 2 * 5);
            count += found.rows;
        }
        assert!(count.contains(truth), "{truth} is not within {count:?}");
        assert!(count.width() <= 2 * 5, "only two files are cut");
    }
}

#[test]
fn estimates_end_at_the_largest_number() {
    let most = Estimate { low: u64::MAX - 1, high: u64::MAX };
    assert_eq!(most.plus(most), Estimate::exact(u64::MAX));
    assert_eq!((most.middle(), most.width()), (u64::MAX - 1, 1));
    assert_eq!(Estimate { low: 0, high: u64::MAX }.middle(), u64::MAX / 2);
    assert_eq!(share(u64::MAX, u64::MAX - 1, u64::MAX), u64::MAX - 1);
}
