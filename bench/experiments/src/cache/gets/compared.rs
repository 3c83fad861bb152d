//! What caches of pages, caches of rows and Larch's cache did with the same gets, as it is kept, and as a table and a
//! chart.

use super::Streams;
use crate::cache::policies::Kind;
use crate::cache::replay::Tally;
use crate::cache::tables::{Played, mebibytes, percent, share};
use crate::outcome::{Column, chart, table};
use ::pages::policy::Tuning;
use page::{Axis, Block};
use serde::{Deserialize, Serialize};

/// What the columns mean.
pub const LEGEND: &str = "\
Keeps: what a cache of that size keeps, whole pages, or rows without anything else. The last line of a size is Larch's
cache itself, which keeps both: pages, and excerpts, which are copies of hot rows. Answered: of the gets, those that
read no data page, in percent. Excerpts: those that found an excerpt. Reads: pages read for a get, index pages among
them; a cache of rows reads one page for each row that is missing.";

/// The policies that are compared.
const POLICIES: [Kind; 3] = [Kind::Larch(Tuning::DEFAULT), Kind::Lru, Kind::Opt];

/// What the caches did with the gets of one table.
#[derive(Serialize, Deserialize)]
pub struct Compared {
    gets_of: String,
    /// Gets that were counted.
    gets: u64,
    /// Gets before them.
    warm_up_gets: u64,
    /// Different rows that were asked for.
    rows: u64,
    /// Bytes of a row with its key.
    row_bytes: u64,
    /// Different pages that were asked for.
    pages: u64,
    /// The bytes of these pages.
    live_bytes: u64,
    sizes: Vec<Size>,
}

/// What caches of one size did.
#[derive(Serialize, Deserialize)]
struct Size {
    cache_bytes: u64,
    /// Caches of pages.
    pages: Vec<Played>,
    /// Caches of rows.
    rows: Vec<Played>,
    /// Larch's cache itself.
    larch: Counted,
}

/// What Larch's cache did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Pages read: index pages, data pages.
    pub reads: [u64; 2],
    /// Gets that found an excerpt.
    pub excerpts: u64,
}

/// A line of the table.
struct Line<'c> {
    size: &'c Size,
    keeps: &'static str,
    policy: &'c str,
    /// Data pages or rows that were missing.
    missing: u64,
    excerpts: Option<u64>,
    reads: u64,
}

impl Compared {
    /// Replays the gets with caches of each size. `counted` has the sizes, and what Larch's cache did.
    pub fn new(streams: &Streams, counted: &[(u64, Counted)]) -> Self {
        let size = |(cache_bytes, larch): &(u64, Counted)| Size {
            cache_bytes: *cache_bytes,
            pages: POLICIES.map(|kind| Played::of(&streams.pages, kind, *cache_bytes)).into(),
            rows: POLICIES.map(|kind| Played::of(&streams.rows, kind, *cache_bytes)).into(),
            larch: *larch,
        };
        Self {
            gets_of: streams.name.to_owned(),
            gets: streams.gets,
            warm_up_gets: streams.rows.warm_up as u64,
            rows: streams.rows.pages.len() as u64,
            row_bytes: streams.rows.pages[0].bytes.into(),
            pages: streams.pages.pages.len() as u64,
            live_bytes: streams.pages.data_bytes(),
            sizes: counted.iter().map(size).collect(),
        }
    }

    /// Its main figures.
    pub fn line(&self) -> String {
        format!("{} gets of {} rows in {} pages", self.gets, self.rows, self.pages)
    }

    /// Its table, and a chart of the reads.
    pub fn blocks(&self) -> [Block; 2] {
        [self.table(), self.chart()]
    }

    /// Pages read for a get.
    fn each(&self, reads: u64) -> f64 {
        reads as f64 / self.gets as f64
    }

    fn table(&self) -> Block {
        let caption = format!(
            "{}: {} gets after {}, of {} rows of {} bytes with their keys, in {} pages of {}",
            self.gets_of,
            self.gets,
            self.warm_up_gets,
            self.rows,
            self.row_bytes,
            self.pages,
            mebibytes(self.live_bytes),
        );
        let columns: [Column<'_, Line<'_>>; 6] = [
            ("keeps", &|line| line.keeps.to_owned()),
            ("policy", &|line| line.policy.to_owned()),
            ("cache", &|line| share(line.size.cache_bytes, self.live_bytes)),
            ("answered", &|line| percent(100.0 - 100.0 * self.each(line.missing))),
            ("excerpts", &|line| line.excerpts.map_or("-".to_owned(), |found| percent(100.0 * self.each(found)))),
            ("reads", &|line| format!("{:.4}", self.each(line.reads))),
        ];
        table(caption, self.sizes.iter().flat_map(Size::lines), &columns)
    }

    fn chart(&self) -> Block {
        let lines: Vec<Vec<Line<'_>>> = self.sizes.iter().map(|size| size.lines().collect()).collect();
        let place = |line: &Line<'_>| (line.size.cache_bytes as f64 / f64::from(1 << 20), self.each(line.reads));
        let curve = |number: usize| {
            let name = lines.first().map_or_else(String::new, |first| first[number].name());
            (name, lines.iter().map(|lines| place(&lines[number])).collect())
        };
        let axes = (Axis::logarithmic("MiB of cache"), Axis::linear("pages read for a get"));
        chart(self.gets_of.clone(), axes, (0..2 * POLICIES.len() + 1).map(curve))
    }
}

impl Size {
    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let pages = self.pages.iter().map(|played| self.line("pages", played));
        let rows = self.rows.iter().map(|played| self.line("rows", played));
        let Counted { reads, excerpts } = self.larch;
        let larch = Line {
            size: self,
            keeps: "both",
            policy: "Larch",
            missing: reads[1],
            excerpts: Some(excerpts),
            reads: reads.iter().sum(),
        };
        pages.chain(rows).chain([larch])
    }

    fn line<'c>(&'c self, keeps: &'static str, Played { policy, tally }: &'c Played) -> Line<'c> {
        let Tally { reads, points: [needed, hits], .. } = *tally;
        Line { size: self, keeps, policy, missing: needed - hits, excerpts: None, reads: reads.iter().sum() }
    }
}

impl Line<'_> {
    fn name(&self) -> String {
        format!("{}, {}", self.keeps, self.policy)
    }
}
