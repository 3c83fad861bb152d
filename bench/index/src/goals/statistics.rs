//! What statistics say, held against the truth, and the pages that it takes: counts and sizes of random ranges over files
//! that lie apart, counts over files that overlap, and histograms.
//!
//! Pages are those of a session with a cache of its own for each question, so a page that is needed is a page that is read.
//! Nodes have few children, so that trees are tall.

use super::Line;
use crate::file::{Lone, point_session};
use crate::report::count;
use crate::rows::{mix, random, sequential_key, value};
use crate::statistics::BUCKETS;
use crate::{Result, Size};
use kit::Scratch;
use larch::{Database, Durability, LevelOptions};
use os::sync::Arc;
use pages::{PageCache, PageKind, PageSource, Session, retry};
use sst::format::node::IndexNode;
use sst::stats::{HistogramSource, Metric, histogram};
use sst::{BuildOptions, Sst};
use std::ops::Bound;

const FILES: u64 = 10;
const NODE_CHILDREN: usize = 16;
/// Ranges over files that lie apart.
const RANGES: u64 = 500;
/// Ranges over files that overlap; each is scanned, too.
const SCANNED_RANGES: u64 = 50;
/// Commits of so many rows each.
const BATCH_ROWS: usize = 10_000;

/// All subjects.
pub fn measure(scratch: &Scratch, size: Size) -> Result<Vec<Line>> {
    let rows = size.of(1_000_000);
    eprintln!("  building {FILES} files of {} rows in all, apart and mixed", count(rows));
    let per_file = rows / FILES;
    let apart = build(scratch, "apart", |file| (file * per_file)..(file + 1) * per_file)?;
    let of_file = |file: u64| (0..rows).filter(move |&number| mix(number ^ 0xF11E) % FILES == file);
    let mixed = build(scratch, "mixed", of_file)?;
    let mut lines = ranges_apart(&apart, rows)?;
    lines.extend(ranges_mixed(scratch, size)?);
    eprintln!("  histograms");
    lines.extend(histograms(&apart, rows, "10 files apart")?);
    lines.extend(histograms(&mixed, rows, "10 files that overlap")?);
    Ok(lines)
}

/// The key of row `number`. Between two rows there is one more string, so that ends of ranges are rows' keys or not.
fn row_key(number: u64) -> [u8; 24] {
    sequential_key(number * 2)
}

fn build<I: Iterator<Item = u64>>(scratch: &Scratch, name: &str, rows: impl Fn(u64) -> I) -> Result<Vec<Lone>> {
    let options = BuildOptions { max_node_children: NODE_CHILDREN, ..BuildOptions::default() };
    let one = |file| {
        let rows = rows(file).map(|number| (row_key(number), value(number)));
        Lone::build(scratch, &format!("{name}-{file}.sst"), options, rows)
    };
    (0..FILES).map(one).collect()
}

/// The files over a cache of their own, and who reads them.
fn cold(files: &[Lone]) -> (Vec<Arc<Sst>>, Session) {
    let cache = PageCache::new(64 << 20, FILES as usize, sst::validate);
    let session = point_session(&cache);
    (files.iter().map(|file| file.open(&cache)).collect(), session)
}

/// Ends of the `i`-th range, of which there are two for each row: half of the ranges short, half of any length.
fn ends(i: u64, rows: u64) -> (u64, u64) {
    let one = random(1, i, rows * 2);
    let other = if i.is_multiple_of(2) { random(2, i, rows * 2) } else { one + 1 + random(2, i, 2000) };
    (one.min(other), one.max(other))
}

/// Numbers of rows before end `end`.
fn rows_before(end: u64) -> u64 {
    end.div_ceil(2)
}

/// Rows of the fullest data page.
fn most_rows_of_a_page(file: &Lone) -> Result<u64> {
    let (ssts, session) = cold(std::slice::from_ref(file));
    let root = file.main().btree.ok_or("the file has no B-tree")?;
    let (mut level, mut most, mut before) = (vec![root.address], 0, 0);
    for height in (1..=root.height).rev() {
        let mut below = Vec::new();
        for address in &level {
            let page = retry(&session, || session.page(ssts[0].file.at(address, PageKind::Index)))?;
            let node = IndexNode::new(&page);
            for i in 0..node.children() {
                if height > 1 {
                    below.push(node.address(i));
                } else {
                    most = most.max(node.rows_through(i) - before);
                    before = node.rows_through(i);
                }
            }
        }
        level = below;
    }
    if before != file.main().totals.rows {
        Err("the leaves of the index do not sum up to its rows".into())
    } else {
        Ok(most)
    }
}

/// Pages read that tell rows or values, whatever they are called.
fn pages_beside_index(session: &Session) -> u64 {
    session.page_reads() - session.reads_of(PageKind::Index)
}

/// Each file is asked about each range, by itself and with nothing in memory.
fn ranges_apart(files: &[Lone], rows: u64) -> Result<Vec<Line>> {
    eprintln!("  ranges over files apart");
    let height = files.iter().map(|file| file.main().root(false).height).max().unwrap_or(0);
    let page_rows = files.iter().map(most_rows_of_a_page).collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(0);
    let per_file = rows / FILES;
    let (mut questions, mut index_pages, mut beside, mut exact_data, mut widest, mut over) = (0u64, 0, 0, 0, 0, 0u64);
    let (mut outside, mut wrong) = (0u64, 0u64);
    for i in 0..RANGES {
        let (low, high) = ends(i, rows);
        let keys = (sequential_key(low), sequential_key(high));
        let (low_bound, high_bound) = (Bound::Included(&keys.0[..]), Bound::Excluded(&keys.1[..]));
        for (file, lone) in (0u64..).zip(files) {
            let clip = |end: u64| rows_before(end).clamp(file * per_file, (file + 1) * per_file);
            let truth = clip(high) - clip(low);
            let (ssts, session) = cold(std::slice::from_ref(lone));
            let totals = retry(&session, || ssts[0].totals_between(&session, low_bound, high_bound))?;
            let read = session.reads_of(PageKind::Index);
            index_pages = index_pages.max(read);
            over += u64::from(read > 2 * u64::from(ssts[0].meta.main.map_or(0, |tree| tree.root(false).height)));
            beside += pages_beside_index(&session);
            widest = widest.max(totals.rows.width());
            let (ssts, session) = cold(std::slice::from_ref(lone));
            let exact = retry(&session, || ssts[0].exact_between(&session, low_bound, high_bound))?;
            exact_data = exact_data.max(pages_beside_index(&session));
            wrong += u64::from(exact.rows != truth);
            outside += u64::from(!totals.rows.contains(truth) || !totals.bytes.contains(exact.bytes));
            questions += 1;
        }
    }
    let metric = "count and size of a range, files apart";
    Ok(vec![
        Line::new(
            metric,
            "an interval that holds the truth, 0 data pages, <= 2 x height index pages a file",
            format!("{outside} that do not, {beside} data pages, {index_pages} index pages at most in {height} levels"),
            (outside, beside, over) == (0, 0, 0),
        )
        .note(format!(
            "{RANGES} random ranges, half of them short, over {FILES} files of {} rows each: {} questions of one file, each with \
             nothing in memory",
            count(per_file),
            count(questions)
        )),
        Line::new(
            metric,
            "<= 2 pages of rows wide",
            format!("{widest} rows at most, {page_rows} in the fullest page"),
            widest <= 2 * page_rows,
        ),
        Line::new(
            metric,
            "exact with <= 2 data pages a file",
            format!("{wrong} of {} wrong, {exact_data} data pages at most", count(questions)),
            wrong == 0 && exact_data <= 2,
        ),
    ])
}

/// A table of ten files of level 0, each with a quarter of all keys and some erased: what a count says beside a scan.
fn ranges_mixed(scratch: &Scratch, size: Size) -> Result<Vec<Line>> {
    let rows = size.of(200_000);
    eprintln!("  ranges over files that overlap");
    let directory = scratch.join("database");
    let levels = LevelOptions { level0_files: 1000, slow_files: 1000, ..LevelOptions::default() };
    let database = Database::builder(&directory).durability(Durability::Buffered).levels(levels).open()?;
    let table = database.table("t")?;
    for file in 0..FILES {
        let numbers: Vec<u64> = (0..rows).filter(|&number| mix(number ^ (file << 40)).is_multiple_of(4)).collect();
        for numbers in numbers.chunks(BATCH_ROWS) {
            let mut batch = database.batch();
            for &number in numbers {
                match mix(number ^ (file << 48)) % 8 {
                    0 => batch.remove(&table, row_key(number)),
                    _ => batch.insert(&table, row_key(number), value(number)),
                }
            }
            batch.commit()?;
        }
        database.flush()?;
    }
    let files = table.stats()?.files;
    if files != FILES {
        return Err(format!("{files} files instead of {FILES}").into());
    }
    let (mut outside, mut wrong, mut widest, mut beside) = (0u64, 0u64, 0.0f64, 0);
    for i in 0..SCANNED_RANGES {
        let (low, high) = ends(i, rows);
        let range = || sequential_key(low)..sequential_key(high);
        let before = database.metrics().pages;
        let (counted, sized) = (table.count(range())?, table.size(range())?);
        let pages = database.metrics().pages.since(&before);
        // Also what was found in memory.
        beside += pages.total().faults + pages.total().hits
            - pages.of_kind(PageKind::Index).faults
            - pages.of_kind(PageKind::Index).hits;
        let mut truth = 0;
        let mut scan = table.range(range());
        while scan.next_row()?.is_some() {
            truth += 1;
        }
        outside += u64::from(!counted.contains(truth) || sized.high < sized.low || (truth > 0 && sized.high == 0));
        wrong += u64::from(table.count_exact(range())? != truth);
        widest = widest.max(counted.width() as f64 / truth.max(1000) as f64);
    }
    let metric = "count of a range, files that overlap";
    Ok(vec![
        Line::new(
            metric,
            "an interval that holds the truth, 0 data pages",
            format!("{outside} of {SCANNED_RANGES} that do not, {beside} pages besides index pages"),
            (outside, beside) == (0, 0),
        )
        .note(format!(
            "{} keys, {FILES} files of level 0 with a quarter of them each, one row in eight an erase; truth by a scan; the widest \
             interval is {widest:.1} times the truth, for each of the keys may be in one file or in ten",
            count(rows)
        )),
        Line::new(
            metric,
            "count_exact says what a scan counts",
            format!("{wrong} of {SCANNED_RANGES} wrong"),
            wrong == 0,
        ),
    ])
}

/// Of all rows, and of a dozen ranges of at least a fifth of them. Ranks are known: rows are numbered.
fn histograms(files: &[Lone], rows: u64, layout: &str) -> Result<Vec<Line>> {
    const RANGES: u64 = 12;
    let height = files.iter().map(|file| file.main().root(false).height).max().unwrap_or(0);
    let most_pages = FILES * u64::from(height) * (BUCKETS + 2);
    let (mut index_pages, mut beside, mut outside, mut worst, mut least_buckets) = (0, 0, 0u64, 0.0f64, usize::MAX);
    for i in 0..=RANGES {
        // The first is of everything.
        let low = if i == 0 { 0 } else { random(5, i, rows) };
        let high = if i == 0 { rows * 2 } else { low + rows / 5 * 2 + random(6, i, rows / 2) };
        let first = rows_before(low);
        let truth = rows_before(high).min(rows) - first;
        let resolution = truth.div_ceil(BUCKETS);
        let keys = (sequential_key(low), sequential_key(high));
        let (ssts, session) = cold(files);
        let sources: Vec<HistogramSource<'_>> = ssts.iter().map(|sst| HistogramSource::File(sst)).collect();
        let (low_bound, high_bound) = (Bound::Included(&keys.0[..]), Bound::Excluded(&keys.1[..]));
        let found = histogram(&session, &sources, low_bound, high_bound, Metric::Rows, resolution)?;
        index_pages = index_pages.max(session.reads_of(PageKind::Index));
        beside += pages_beside_index(&session);
        least_buckets = least_buckets.min(found.buckets.len());
        outside += u64::from(!found.total.contains(truth));
        for bucket in &found.buckets {
            let rank = match &bucket.end {
                Some(end) => number_at_or_after(&end.at, rows).clamp(first, first + truth) - first,
                None => truth,
            };
            outside += u64::from(!bucket.through.contains(rank));
            worst = worst.max(bucket.value.abs_diff(rank) as f64 / resolution as f64);
        }
    }
    let metric = "statistics with 10 buckets";
    Ok(vec![
        Line::new(
            metric,
            "0 data pages, index pages <= sources x height x (buckets + 2)",
            format!("{beside} data pages, {index_pages} index pages at most of {most_pages}"),
            beside == 0 && index_pages <= most_pages,
        )
        .note(format!(
            "{layout}, {height} levels of index; all {} rows and {RANGES} ranges, each with nothing in memory; {least_buckets} buckets \
             at least",
            count(rows)
        )),
        Line::new(
            metric,
            "error of a bucket <= half a resolution",
            format!("{worst:.4} of a resolution at worst, {outside} intervals without the truth"),
            worst <= 0.5 && outside == 0,
        )
        .note(layout),
    ])
}

/// The first row whose key is not less than `at`.
fn number_at_or_after(at: &[u8], rows: u64) -> u64 {
    let (mut low, mut high) = (0, rows);
    while low < high {
        let middle = (low + high) / 2;
        if row_key(middle)[..] < *at { low = middle + 1 } else { high = middle }
    }
    low
}
