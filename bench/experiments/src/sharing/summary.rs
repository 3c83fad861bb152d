//! The tables and goals of both sides, beside the published figures.

use super::data::Data;
use super::readers::Counts;
use super::{READERS, Sharing, Shown, Taken, live};
use crate::figures::shown_middle;
use crate::ground::Ground;
use crate::outcome::{Goal, chart, facts, grid};
use crate::quoted::{self, SCYLLA_TABLES};
use harness::report::text::{bytes, grouped, rate};
use kit::median;
use kit::median::extremes;
use page::{Axis, Block, figure};

/// The published gain in rows per second, which ours must reach.
fn least_gain() -> f64 {
    1.0 + quoted::SCYLLA_GAIN.value() / 100.0
}

/// The most page reads per row with sharing. Without it, a row took two. Index pages are read once for all rows, so
/// they add nearly nothing.
const MOST_READS: f64 = 1.005;

/// Page reads per row with sharing, divided by those without. Must be below 1.
const MOST_OF_BEFORE: f64 = 0.999;

impl Sharing {
    /// Tables and charts.
    pub fn blocks(&self, ground: &Ground) -> Vec<Block> {
        let mut blocks = Vec::new();
        for data in &self.data {
            let pairs = self.pairs(ground, *data);
            let Some(last) = pairs.last() else { continue };
            let rates = [("before", rates(&last[0])), ("after", rates(&last[1]))];
            let each = |taken: &Taken| [Block::Text(taken.run.name.clone()), Block::Code(lines(taken))];
            blocks.extend([
                Block::Heading(data.title()),
                compared(data, &pairs),
                chart(
                    format!("{}: rows a second, the last repeat", data.title()),
                    (Axis::linear("seconds"), Axis::linear("rows a second")),
                    rates,
                ),
                Block::Folded(
                    format!("{}: the last repeat, second by second", data.title()),
                    last.iter().flat_map(each).collect(),
                ),
            ]);
        }
        blocks.extend([
            Block::Heading("Published by ScyllaDB, 2021".to_owned()),
            grid(
                format!("{}, on a laptop; {}", quoted::SCYLLA_COMMANDS[0].text, quoted::SCYLLA_COMMANDS[1].text),
                ["", "before", "after"],
                vec![
                    row(
                        "rows a second, median of the lines",
                        SCYLLA_TABLES.map(|lines| grouped(lines.median_of("rows/s") as u64)),
                    ),
                    row("page reads a row", quoted::SCYLLA_READS.map(|reads| reads.written.to_owned())),
                    row(
                        "median, ms, median of the lines",
                        SCYLLA_TABLES.map(|lines| figure(lines.median_of("median"))),
                    ),
                ],
            ),
            Block::Text("Before:".to_owned()),
            Block::Code(SCYLLA_TABLES[0].text.to_owned()),
            Block::Text("After:".to_owned()),
            Block::Code(SCYLLA_TABLES[1].text.to_owned()),
            self.conditions(ground),
        ]);
        blocks
    }

    fn conditions(&self, ground: &Ground) -> Block {
        let shape = |data: &Data| ground.told::<String>(data.name).unwrap_or_default();
        let data = self.data.iter().map(|data| (data.name, format!("{}: {}", data.title(), shape(data))));
        let more = [
            ("files", "one, so that a reader of its own keeps one file open".to_owned()),
            ("readers", format!("{} threads, closed loop, rows drawn uniformly", grouped(READERS as u64))),
            ("cache before", "1 MiB for each reader; keeps no page".to_owned()),
            ("cache after", "64 MiB for all; keeps nodes and no pages of rows".to_owned()),
            ("durability", "read-only".to_owned()),
            ("reads", "direct, where the file system can".to_owned()),
            ("repeats", format!("{} of {} ms a side, the sides in turn", self.repeats, self.time.as_millis())),
        ];
        facts(&data.chain(more).collect::<Vec<_>>())
    }
}

/// The live table of a side as it was printed.
fn lines(taken: &Taken) -> String {
    let lines = taken.run.measured.window().map(|interval| live::line(interval, Shown::Response));
    std::iter::once(live::head(Shown::Response)).chain(lines).collect()
}

/// The rows a second of each interval.
fn rates(taken: &Taken) -> Vec<(f64, f64)> {
    let rate = |interval: &harness::Interval| {
        let seconds = interval.to_nanos.saturating_sub(interval.from_nanos).max(1) as f64 / 1e9;
        (interval.to_nanos as f64 / 1e9, interval.operations as f64 / seconds)
    };
    taken.run.measured.window().map(rate).collect()
}

/// A figure of a side in each repeat.
fn each(pairs: &[[Taken; 2]], side: usize, of: impl Fn(&Taken) -> f64) -> Vec<f64> {
    pairs.iter().map(|pair| of(&pair[side])).collect()
}

fn a_row(of: fn(&Counts) -> u64) -> impl Fn(&Taken) -> f64 {
    move |side| side.counts.a_row(of(&side.counts))
}

fn compared(data: &Data, pairs: &[[Taken; 2]]) -> Block {
    let per_second = |side: &Taken| side.run.measured.per_second();
    let rates = [0, 1].map(|side| {
        let all = each(pairs, side, per_second);
        let (least, most) = extremes(&all);
        format!("{} ({}-{})", rate(median(&all)), rate(least), rate(most))
    });
    let counted = |name: &str, of: fn(&Counts) -> u64| {
        let cells = [0, 1].map(|side| format!("{:.3}", median(&each(pairs, side, a_row(of)))));
        row(name, cells)
    };
    let from_disk = [0, 1].map(|side| {
        let of = |pair: &[Taken; 2]| Some(pair[side].counts.a_row(pair[side].disk_bytes?));
        let all: Option<Vec<f64>> = pairs.iter().map(of).collect();
        all.map_or("-".to_owned(), |all| bytes(median(&all) as u64))
    });
    let quantile = |quantile: f64| {
        [0, 1].map(|side| {
            let nanos = |side: &Taken| side.run.measured.kinds.first()?.times().known_quantile(quantile);
            shown_middle(pairs, |pair| Some(nanos(&pair[side])? as f64 / 1e6))
        })
    };
    let rows = vec![
        row("rows a second", rates),
        counted("page reads a row", |counts| counts.page_reads),
        counted("  of the index", |counts| counts.index_reads),
        counted("  of rows", |counts| counts.data_reads),
        counted("waits for the disk a row", |counts| counts.waits),
        row("from the disk a row, says the system", from_disk),
        row("median, ms", quantile(0.5)),
        row("99th, ms", quantile(0.99)),
        row("99.9th, ms", quantile(0.999)),
    ];
    grid(format!("{}, median of {} repeats (least-most)", data.title(), pairs.len()), ["", "before", "after"], rows)
}

fn row(name: &str, [before, after]: [String; 2]) -> Vec<String> {
    vec![name.to_owned(), before, after]
}

/// The goals of one data set.
pub fn goals(data: &Data, pairs: &[[Taken; 2]]) -> Vec<Goal> {
    if pairs.is_empty() {
        return Vec::new();
    }
    // Ratios are taken within a repeat, where other load on the machine affects both sides.
    let ratio = |of: &dyn Fn(&Taken) -> f64| {
        Some(median(&pairs.iter().map(|[before, after]| of(after) / of(before)).collect::<Vec<_>>()))
    };
    let reads = a_row(|counts| counts.page_reads);
    let (title, gain) = (data.title(), ratio(&|taken| taken.run.measured.per_second()));
    vec![
        Goal::at_least(least_gain(), format!("{title}: times as many rows a second"), gain),
        Goal::at_most(MOST_READS, format!("{title}: page reads a row"), Some(median(&each(pairs, 1, &reads)))),
        Goal::at_most(MOST_OF_BEFORE, format!("{title}: page reads a row, of those before"), ratio(&reads)),
    ]
}
