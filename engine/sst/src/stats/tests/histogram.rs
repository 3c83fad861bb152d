//! Cut points must be in order. The true amount before each cut point must lie in the cut point's interval. The
//! error of its value may be at most half a resolution, or half of what the data pages around the cut point hold.
//! The tests also check which pages are read to find the cut points.

use super::truth::{Counting, Tree, holds, slice};
use super::{Case, check_cases, open};
use crate::fixture::{Content, Rounds, shapes, tiny};
use crate::format::meta::TreeKind;
use crate::format::node::IndexNode;
use crate::format::validate;
use crate::read::Sst;
use crate::row::RowKind;
use crate::slice::RowRanges;
use crate::stats::{Estimate, Histogram, HistogramSource, MemoryRun, Metric, histogram};
use crate::write::BuildOptions;
use os::Buffer;
use pages::{Error, Flaky, PageAt, PageHeader, PageKind, PageLender, PageRef, PageSource, Resident, Result, Stop};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::ops::{Bound, Range};

/// A source and all that is known of it.
enum Known {
    File {
        sst: Box<Sst>,
        main: Tree,
        edges: u64,
    },
    /// The key and the number of bytes of each row, and the runs of rows that the histogram gets.
    Memory {
        rows: Vec<(Vec<u8>, u64)>,
        runs: Vec<(MemoryRun, Range<usize>)>,
    },
}

impl Known {
    fn file(content: &Content, id: u64, options: BuildOptions, rng: &mut StdRng, sliced: bool) -> Self {
        let built = content.build_as(id, options);
        let mut sst = open(&built, rng.random());
        let main = Tree::of(&sst, TreeKind::Main);
        let edges = if sliced { slice(rng, &mut sst, &main) } else { 0 };
        Self::File { sst: Box::new(sst), main, edges }
    }

    fn memory(rng: &mut StdRng, mut keys: Vec<Vec<u8>>) -> Self {
        keys.sort();
        keys.dedup();
        let rows: Vec<(Vec<u8>, u64)> = keys.into_iter().map(|key| (key, rng.random_range(1..300))).collect();
        let mut runs = Vec::new();
        let mut start = 0;
        while start < rows.len() {
            let end = (start + rng.random_range(1..5)).min(rows.len());
            let run = MemoryRun {
                first_key: rows[start].0.clone(),
                last_key: rows[end - 1].0.clone(),
                rows: (end - start) as u64,
                bytes: rows[start..end].iter().map(|(_, bytes)| bytes).sum(),
            };
            runs.push((run, start..end));
            start = end;
        }
        Self::Memory { rows, runs }
    }

    /// How much of this source lies from `low` to `high`.
    fn between(&self, low: Bound<&[u8]>, high: Bound<&[u8]>, metric: Metric) -> Estimate {
        match self {
            Self::File { sst, main, .. } => {
                let rows = sst.rows().within(main.between(low, high));
                match metric {
                    Metric::Rows => Estimate::exact(rows.count()),
                    Metric::Bytes => {
                        main.share(&rows, |totals| totals.bytes).plus(main.share(&rows, |totals| totals.group_bytes))
                    }
                }
            }
            Self::Memory { rows, .. } => {
                let rows = rows.iter().filter(|(key, _)| std::ops::RangeBounds::contains(&(low, high), key.as_slice()));
                let of = |bytes: u64| if metric == Metric::Rows { 1 } else { bytes };
                Estimate::exact(rows.map(|(_, bytes)| of(*bytes)).sum())
            }
        }
    }

    /// The most that one data page or run of this source holds, among those whose span of keys contains `cut`.
    fn around(&self, cut: &[u8], metric: Metric) -> u64 {
        match self {
            Self::File { sst, main, .. } => {
                let pages = main
                    .pages
                    .iter()
                    .filter(|page| page.low.as_slice() < cut && page.high.as_deref().is_none_or(|high| cut < high));
                pages.map(|page| self.of_page(&sst.rows(), main, page.rows.clone(), metric)).max().unwrap_or(0)
            }
            Self::Memory { runs, .. } => {
                let around =
                    runs.iter().filter(|(run, _)| run.first_key.as_slice() < cut && cut <= run.last_key.as_slice());
                let of = |run: &MemoryRun| if metric == Metric::Rows { run.rows } else { run.bytes };
                around.map(|(run, _)| of(run)).max().unwrap_or(0)
            }
        }
    }

    fn of_page(&self, seen: &RowRanges, main: &Tree, rows: Range<u64>, metric: Metric) -> u64 {
        let rows = seen.within(rows);
        match metric {
            Metric::Rows => rows.count(),
            Metric::Bytes => {
                main.share(&rows, |totals| totals.bytes).high + main.share(&rows, |totals| totals.group_bytes).high
            }
        }
    }

    fn largest(&self, metric: Metric) -> u64 {
        match self {
            Self::File { sst, main, .. } => {
                let pages = main.pages.iter();
                pages.map(|page| self.of_page(&sst.rows(), main, page.rows.clone(), metric)).max().unwrap_or(0)
            }
            Self::Memory { runs, .. } => {
                let of = |run: &MemoryRun| if metric == Metric::Rows { run.rows } else { run.bytes };
                runs.iter().map(|(run, _)| of(run)).max().unwrap_or(0)
            }
        }
    }

    fn has_key(&self, key: &[u8]) -> bool {
        match self {
            Self::File { main, .. } => main.rows.iter().any(|row| row.key == key),
            Self::Memory { rows, .. } => rows.iter().any(|(other, _)| other == key),
        }
    }

    /// The most nodes that may be read: those on the ways to the cuts, to the edges of the slice, and to the ends
    /// of the range.
    fn most_nodes(&self, buckets: u64) -> u64 {
        match self {
            Self::File { sst, edges, .. } => {
                let height = sst.meta.main.map_or(0, |tree| tree.root(sst.prefer_flat).height);
                u64::from(height) * (buckets + edges + 2)
            }
            Self::Memory { .. } => 0,
        }
    }
}

type Key = Bound<Vec<u8>>;

fn key(bound: &Key) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// What is asked.
struct Question<'a> {
    known: &'a [Known],
    low: Key,
    high: Key,
    metric: Metric,
    resolution: u64,
}

impl Question<'_> {
    fn ask<S: PageSource>(&self, source: &S) -> Result<Histogram> {
        let runs: Vec<Vec<MemoryRun>> = self
            .known
            .iter()
            .map(|known| match known {
                Known::File { .. } => Vec::new(),
                Known::Memory { runs, .. } => runs.iter().map(|(run, _)| run.clone()).collect(),
            })
            .collect();
        let sources: Vec<HistogramSource<'_>> = self
            .known
            .iter()
            .zip(&runs)
            .map(|(known, runs)| match known {
                Known::File { sst, .. } => HistogramSource::File(sst),
                Known::Memory { .. } => HistogramSource::Memory(runs),
            })
            .collect();
        histogram(source, &sources, key(&self.low), key(&self.high), self.metric, self.resolution)
    }

    /// How much lies in the range before `end`.
    fn before(&self, end: Option<&[u8]>) -> Estimate {
        let high = match (end, key(&self.high)) {
            (None, high) => high,
            (Some(end), Bound::Included(high)) if high < end => Bound::Included(high),
            (Some(end), Bound::Excluded(high)) if high < end => Bound::Excluded(high),
            (Some(end), _) => Bound::Excluded(end),
        };
        let all = self.known.iter().map(|known| known.between(key(&self.low), high, self.metric));
        all.fold(Estimate::default(), Estimate::plus)
    }

    /// The most that the data pages around `cut` hold together, with one page of each source.
    fn around(&self, cut: &[u8]) -> u64 {
        self.known.iter().map(|known| known.around(cut, self.metric)).sum()
    }

    /// For a low bound, returns the first string in the range. For a high bound, returns the first string after
    /// the range.
    fn place(bound: &Key, is_high: bool) -> Option<Vec<u8>> {
        match bound {
            Bound::Unbounded => None,
            Bound::Included(at) => Some([at.as_slice(), if is_high { &[0] } else { &[] }].concat()),
            Bound::Excluded(at) => Some([at.as_slice(), if is_high { &[] } else { &[0] }].concat()),
        }
    }

    fn check(&self) -> Histogram {
        let source = Counting::new(Resident::new(validate));
        let found = self.ask(&source).unwrap_or_else(|error| panic!("{error}"));
        let (nodes, data) = source.take();
        assert_eq!((data, nodes), (0, found.index_pages), "index pages alone are read, each once");
        let count = found.buckets.len() as u64;
        let bound: u64 = self.known.iter().map(|known| known.most_nodes(count)).sum();
        assert!(nodes <= bound, "{nodes} nodes for {count} buckets, at most {bound}");

        assert!(found.buckets.is_sorted_by(|a, b| a.value < b.value), "values grow: {found:?}");
        let cuts: Vec<_> = found.buckets.iter().filter_map(|bucket| bucket.end.as_ref()).collect();
        assert!(cuts.is_sorted_by(|a, b| a.at < b.at), "cuts grow: {cuts:?}");
        assert_eq!(cuts.len() as u64, count - 1, "only the last bucket has no end");
        // The error may be larger for two more reasons: half of each page in which the range begins or ends, and
        // the rounding of bytes.
        let ends = [Self::place(&self.low, false), Self::place(&self.high, true)];
        let at_ends: u64 = ends.iter().flatten().map(|end| self.around(end)).sum();
        let edges: u64 =
            self.known.iter().map(|known| if let Known::File { edges, .. } = known { 2 * edges } else { 0 }).sum();
        for bucket in &found.buckets {
            let end = bucket.end.as_ref().map(|end| end.at.as_slice());
            let truth = self.before(end);
            assert!(holds(bucket.through, truth), "{truth:?} is not within {:?}", bucket.through);
            assert_eq!(bucket.value, bucket.through.middle());
            let around = end.map_or(0, |end| self.around(end));
            let most = (around.max(self.resolution).saturating_add(at_ends + edges)).div_ceil(2) + 1;
            assert!(bucket.value.abs_diff(truth.low) <= most, "{bucket:?} is more than {most} from {truth:?}");
            if let Some(end) = &bucket.end {
                assert!(
                    !end.is_key || self.known.iter().any(|known| known.has_key(&end.at)),
                    "{end:?} is no row's key"
                );
            }
        }
        let total = found.buckets.last().expect("there is always one");
        assert_eq!((total.through, total.value), (found.total, found.total.middle()));

        // If the pages are too small to matter, a cut lies near each multiple of the resolution.
        let pages: u64 = self.known.iter().map(|known| known.largest(self.metric)).sum();
        if pages <= self.resolution {
            let values: Vec<u64> = std::iter::once(0).chain(found.buckets.iter().map(|bucket| bucket.value)).collect();
            for multiple in (1..=total.value / self.resolution).map(|i| i * self.resolution) {
                let nearest = values.iter().map(|value| value.abs_diff(multiple)).min();
                assert!(nearest.is_some_and(|nearest| nearest <= self.resolution / 2 + 1), "{multiple}: {values:?}");
            }
        }
        found
    }
}

/// How the key ranges of a test's sources overlap.
#[derive(Clone, Copy, Debug)]
enum Overlap {
    Random,
    Disjoint,
    Identical,
}

/// Random rows with keys from `keys`. Some of them have older versions or large values.
fn random_content(rng: &mut StdRng, keys: &[Vec<u8>], groups: usize) -> Content {
    let mut content = Content { groups, ..Content::default() };
    let heavy = rng.random_bool(0.3);
    for key in keys {
        let versions = if rng.random_bool(0.2) { rng.random_range(2..5) } else { 1 };
        let written = (0..versions).rev().map(|version| {
            let kind = if rng.random_bool(0.2) { RowKind::Erase } else { RowKind::Put };
            let bytes = if heavy && rng.random_bool(0.1) { 3000 } else { rng.random_range(0..80) };
            let value = if kind == RowKind::Erase { Vec::new() } else { vec![b'x'; bytes] };
            (version + 1, kind, value)
        });
        content.rows.insert(key.clone(), written.collect());
    }
    content
}

fn random_sources(rng: &mut StdRng, overlap: Overlap) -> Vec<Known> {
    let count = rng.random_range(1..=10);
    let rows = rng.random_range(1..300u32);
    // Some of the numbers are less than the greatest signed number of 8, 16 or 32 bits, and some are greater.
    let number = |rng: &mut StdRng| match rng.random_range(0..4) {
        0 => rng.random::<u32>(),
        1 => rng.random_range(0..=0x1_0000),
        2 => rng.random_range(0x7fff_ff00..=0x8000_00ff),
        _ => rng.random_range(0..=0x100) << 24,
    };
    let same: Vec<Vec<u8>> = (0..rows).map(|_| number(rng).to_be_bytes().to_vec()).collect();
    (0..count)
        .map(|i| {
            let mut keys: Vec<Vec<u8>> = match overlap {
                Overlap::Random => {
                    let (a, b) = (number(rng), number(rng));
                    let within = a.min(b)..=a.max(b);
                    (0..rng.random_range(1..300))
                        .map(|_| rng.random_range(within.clone()).to_be_bytes().to_vec())
                        .collect()
                }
                Overlap::Disjoint => {
                    (0..rows).map(|_| [&[i as u8 * 25], number(rng).to_be_bytes().as_slice()].concat()).collect()
                }
                Overlap::Identical => same.clone(),
            };
            if rng.random_bool(0.2) {
                return Known::memory(rng, keys);
            }
            keys.sort();
            keys.dedup();
            let shape = shapes()[rng.random_range(0..4)];
            let options = BuildOptions {
                max_page_rows: rng.random_range(1..9),
                max_node_children: if shape.max_node_children > 4 { 6 } else { shape.max_node_children },
                ..shape
            };
            let groups = rng.random_range(0..3);
            let content = random_content(rng, &keys, groups);
            let sliced = rng.random_bool(0.4);
            Known::file(&content, i + 1, options, rng, sliced)
        })
        .collect()
}

fn random_bound(rng: &mut StdRng) -> Key {
    let at = match rng.random_range(0..3) {
        0 => vec![rng.random()],
        1 => rng.random::<u32>().to_be_bytes().to_vec(),
        _ => vec![rng.random(), rng.random(), 0, 0, 1],
    };
    match rng.random_range(0..4) {
        0 => Bound::Included(at),
        1 => Bound::Excluded(at),
        _ => Bound::Unbounded,
    }
}

fn check_many(overlap: Overlap, seeds: Range<u64>) {
    for seed in seeds {
        println!("{overlap:?}, seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let known = random_sources(&mut rng, overlap);
        for metric in [Metric::Rows, Metric::Bytes] {
            let mut question =
                Question { known: &known, low: Bound::Unbounded, high: Bound::Unbounded, metric, resolution: 1 };
            let total = question.before(None).high;
            for parts in [1, 2, 3, 10, 33, 100, total, total + 7] {
                question.resolution = (total / parts.max(1)).max(1);
                question.check();
            }
            question.resolution = u64::MAX;
            assert_eq!(question.check().buckets.len(), 1);
            for _ in 0..6 {
                question.resolution = rng.random_range(1..=total.max(1));
                (question.low, question.high) = (random_bound(&mut rng), random_bound(&mut rng));
                question.check();
            }
        }
    }
}

#[test]
fn every_bucket_is_near_the_truth_where_sources_overlap_at_random() {
    check_many(Overlap::Random, 0..150);
}

#[test]
fn every_bucket_is_near_the_truth_where_sources_lie_side_by_side() {
    check_many(Overlap::Disjoint, 1000..1080);
}

#[test]
fn every_bucket_is_near_the_truth_where_sources_have_the_same_keys() {
    check_many(Overlap::Identical, 2000..2080);
}

/// Tests trees of all heights with groups and history, one file at a time. Every cut is at a separator, so all
/// amounts are known exactly.
#[test]
fn one_file_is_cut_between_its_pages() {
    check_cases(3, |Case { built, sst, edges, .. }, _| {
        let mut alone = open(built, sst.prefer_flat);
        alone.slice.clone_from(&sst.slice);
        let main = Tree::of(&alone, TreeKind::Main);
        let known = [Known::File { sst: Box::new(alone), main, edges: *edges }];
        for metric in [Metric::Rows, Metric::Bytes] {
            for resolution in [1, 2, 3, 5, 7, 19, 39, 40, 4096, 9000, 1 << 20] {
                let (low, high) = (Bound::Unbounded, Bound::Unbounded);
                let found = Question { known: &known, low, high, metric, resolution }.check();
                assert!(metric == Metric::Bytes || found.buckets.iter().all(|bucket| bucket.through.is_exact()));
            }
        }
    });
}

/// Tests weights that need all bits of a u64, and sums that do not fit a u64.
#[test]
fn large_numbers_are_compared_whole() {
    let run = |first: u64, rows: u64| MemoryRun {
        first_key: first.to_be_bytes().to_vec(),
        last_key: (first + 1).to_be_bytes().to_vec(),
        rows,
        bytes: rows,
    };
    for unit in [1u64, 1 << 7, 1 << 8, 1 << 15, 1 << 16, 1 << 31, 1 << 32, 1 << 40, 1 << 59] {
        // Keys whose distance is greater than a signed number of any size can hold.
        let starts = [0, 0x7f, 0x81, 0x7fff, 0x8001, 0x7fff_ffff, 0x8000_0001, i64::MAX as u64, u64::MAX - 9];
        let runs: Vec<MemoryRun> = starts.map(|start| run(start, unit)).into();
        let found = histogram(
            &Resident::new(validate),
            &[HistogramSource::Memory(&runs)],
            Bound::Unbounded,
            Bound::Unbounded,
            Metric::Rows,
            unit,
        )
        .expect("no page is read");
        let ends: Vec<Option<Vec<u8>>> =
            found.buckets.iter().map(|bucket| bucket.end.as_ref().map(|end| end.at.clone())).collect();
        let expected: Vec<Option<Vec<u8>>> =
            starts[1..].iter().map(|start| Some(start.to_be_bytes().to_vec())).chain([None]).collect();
        assert_eq!(ends, expected, "unit {unit}");
        assert!(found.buckets.iter().zip(1..).all(|(bucket, i)| bucket.through == Estimate::exact(i * unit)));
        assert!(found.buckets.iter().filter_map(|bucket| bucket.end.as_ref()).all(|end| end.is_key));
    }
    let most: Vec<MemoryRun> = (0..4).map(|i| run(i * 2, u64::MAX)).collect();
    let found = histogram(
        &Resident::new(validate),
        &[HistogramSource::Memory(&most), HistogramSource::Memory(&most)],
        Bound::Unbounded,
        Bound::Unbounded,
        Metric::Bytes,
        1 << 63,
    )
    .expect("no page is read");
    assert_eq!(found.total, Estimate::exact(u64::MAX));
}

/// The bound of a file need not be the key of a row: it may have been shortened, come from a range erase, or be
/// the place where a slice was cut.
#[test]
fn a_bound_is_a_key_only_where_it_is_one_for_certain() {
    let histogram_of = |known: Known, high: Known| {
        let known = [known, high];
        Question { known: &known, low: Bound::Unbounded, high: Bound::Unbounded, metric: Metric::Rows, resolution: 5 }
            .check()
    };
    let rng = &mut StdRng::seed_from_u64(0);
    let low = |rng: &mut StdRng| {
        let content = Content::of_keys((0..5).map(|i| vec![b'a', i]));
        Known::file(&content, 1, tiny(), rng, false)
    };
    for len in [1, 63, 64, 65, 100] {
        let content = Content::of_keys((0..5).map(|i| [vec![b'k'; len], vec![i]].concat()));
        let lower = low(rng);
        let found = histogram_of(lower, Known::file(&content, 2, tiny(), rng, false));
        let cut = found.buckets[0].end.as_ref().expect("there are two buckets");
        assert_eq!(cut.is_key, len < 63, "a key of {} bytes", len + 1);
    }
    let mut content = Content::of_keys((0..5).map(|i| vec![b'k', i]));
    content.range_erases.push(crate::RangeErase {
        keys: crate::KeyRange { start: b"j".to_vec(), end: Some(b"jj".to_vec()) },
        versions: vec![crate::Version(9)],
    });
    let lower = low(rng);
    let found = histogram_of(lower, Known::file(&content, 2, tiny(), rng, false));
    assert!(found.buckets.iter().filter_map(|bucket| bucket.end.as_ref()).all(|end| !end.is_key));
}

#[test]
fn nothing_is_one_empty_bucket() {
    let known = [];
    let ask = |known, low, high| Question { known, low, high, metric: Metric::Rows, resolution: 1 }.check();
    let none = ask(&known, Bound::Unbounded, Bound::Unbounded);
    assert_eq!((none.buckets.len(), none.total), (1, Estimate::default()));
    let content = Content::of_keys([b"a", b"b"]);
    let known = [Known::file(&content, 1, tiny(), &mut StdRng::seed_from_u64(0), false)];
    let (low, high) = (Bound::Excluded(b"b".to_vec()), Bound::Included(b"a".to_vec()));
    assert_eq!(ask(&known, low, high), none);
}

#[test]
fn a_fault_anywhere_changes_no_histogram() {
    for seed in 0..30 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let known = random_sources(&mut rng, Overlap::Random);
        let mut question = Question {
            known: &known,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
            metric: Metric::Bytes,
            resolution: 1,
        };
        question.resolution = (question.before(None).high / 10).max(1);
        let found = question.check();
        let forgetful = Flaky::forgetful(Resident::new(validate), seed);
        assert_eq!(question.ask(&forgetful).expect("nothing is damaged"), found);
        let once = Flaky::once(Resident::new(validate));
        let rounds = Rounds::new(&once);
        assert_eq!(question.ask(&rounds).expect("nothing is damaged"), found);
        let heights = known.iter().filter_map(|known| match known {
            Known::File { sst, .. } => sst.meta.main.map(|tree| u64::from(tree.root(sst.prefer_flat).height)),
            Known::Memory { .. } => None,
        });
        let tallest = heights.max().unwrap_or(0);
        assert!(rounds.rounds() <= 3 * tallest, "{} rounds, {tallest} levels", rounds.rounds());
        assert_eq!(once.refusals(), found.index_pages, "each node is fetched once");
    }
}

/// A page source that changes some bytes of the nodes that it reads. The structure of each changed node is still
/// valid.
struct Forging {
    source: Resident,
    seed: u64,
}

impl PageLender for Forging {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        let page = self.source.page(at)?;
        let mut rng = StdRng::seed_from_u64(self.seed ^ at.address.offset);
        if !matches!(at.kind, PageKind::Index | PageKind::Flat) || rng.random_bool(0.5) {
            return Ok(page);
        }
        for _ in 0..20 {
            let mut buffer = Buffer::zeroed(page.len());
            buffer.copy_from_slice(&page);
            for _ in 0..rng.random_range(1..4) {
                let byte = rng.random_range(16..page.len().min(600));
                buffer[byte] = if rng.random() { rng.random() } else { buffer[byte].wrapping_add(1) };
            }
            if validate(at.kind, &buffer).is_ok() {
                let header = PageHeader::decode(&page).expect("it was read with it");
                assert!(IndexNode::new(&buffer).children() > 0);
                return Ok(PageRef::detached(buffer, &header, at.address));
            }
        }
        Ok(page)
    }

    fn peek(&self, _: PageAt<'_>) -> Option<PageRef> {
        None
    }

    fn ahead(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn ahead_if_spare(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn take_read(&self, _: PageAt<'_>) -> bool {
        false
    }

    fn release(&self) {}
}

impl PageSource for Forging {
    fn glance(&self, at: PageAt<'_>) -> Option<PageRef> {
        self.peek(at)
    }

    fn ahead_bytes(&self) -> u64 {
        0
    }

    fn fetch(&self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn wrong_nodes_are_corrupt_or_do_no_harm() {
    let (mut corrupt, mut known, mut rng) = (0, Vec::new(), StdRng::seed_from_u64(0));
    for seed in 0..1500 {
        // The same sources are used 50 times, each time with other changes.
        if seed % 50 == 0 {
            rng = StdRng::seed_from_u64(seed);
            known = random_sources(&mut rng, Overlap::Random);
        }
        let source = Forging { source: Resident::new(validate), seed };
        let mut see = |outcome: Result<()>| match outcome {
            Ok(()) => {}
            Err(Error::Corrupt { .. }) => corrupt += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        for metric in [Metric::Rows, Metric::Bytes] {
            let (low, high) = (random_bound(&mut rng), random_bound(&mut rng));
            for resolution in [1, 20, 3000] {
                let question = Question { known: &known, low: low.clone(), high: high.clone(), metric, resolution };
                see(question.ask(&source).map(drop));
            }
            for known in &known {
                let Known::File { sst, .. } = known else { continue };
                let (low, high) = (key(&low), key(&high));
                let mut step = |step: &dyn Fn() -> Result<(), Stop>| see(pages::retry(&source, step));
                step(&|| sst.totals_between(&source, low, high).map(drop));
                step(&|| sst.rows_between(&source, low, high).map(drop));
                step(&|| sst.exact_between(&source, low, high).map(drop));
                step(&|| sst.bytes_by_group(&source, 3..20).map(drop));
                step(&|| sst.nth_put(&source, 3, 9).map(drop));
                step(&|| sst.key_of(&source, 0, &mut Vec::new()));
            }
        }
    }
    assert!(corrupt > 1000, "only {corrupt} answers found the damage");
}
