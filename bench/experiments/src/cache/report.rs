//! The results of the policies, as a table and as JSON.

use crate::cache::policies::Kind;
use crate::cache::recorded::Recorded;
use crate::cache::replay::Tally;
use pages::policy::Class;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The results of all policies with one cache size.
#[derive(Debug)]
pub struct Column {
    /// The cache size in bytes.
    pub budget: u64,
    /// The results of each policy.
    pub tallies: Vec<(Kind, Tally)>,
}

/// The results that are printed at the end.
#[derive(Default)]
pub struct Report {
    table: String,
    traces: Vec<Value>,
}

impl Report {
    /// Adds the results of one trace.
    pub fn add(&mut self, recorded: &Recorded, columns: &[Column]) {
        self.add_to_table(recorded, columns);
        self.traces.push(object(recorded, columns));
    }

    /// The report as a table.
    pub fn table(self) -> String {
        self.table
            + "Of the pages needed, those that had stayed in the cache, in percent: all, index pages, data\n\
               pages, data pages for reads of one key.\n\
               Reads: pages read for an operation. Looks: pages looked at for one that goes, in the largest cache.\n"
    }

    /// The report as JSON.
    pub fn json(self) -> String {
        let text = serde_json::to_string_pretty(&json!({ "traces": self.traces }));
        text.expect("names and numbers can be written") + "\n"
    }

    fn add_to_table(&mut self, recorded: &Recorded, columns: &[Column]) {
        let text = &mut self.table;
        let all_bytes = recorded.data_bytes();
        put(
            text,
            format_args!(
                "{}: {} operations, {} events of {} pages, at most {} at a time, of them {} index\n",
                recorded.name,
                recorded.operations,
                recorded.events.len(),
                recorded.pages.len(),
                mebibytes(all_bytes),
                mebibytes(recorded.live_bytes[0]),
            ),
        );
        put(text, format_args!("{:10}", ""));
        for column in columns {
            let share = column.budget as f64 * 100.0 / all_bytes as f64;
            let title = format!("{} = {share:.1} %", mebibytes(column.budget));
            put(text, format_args!(" | {title:^32}"));
        }
        put(text, format_args!(" |\n{:10}", ""));
        for _ in columns {
            put(text, format_args!(" | {:>5} {:>5} {:>5} {:>5} {:>8}", "all", "index", "data", "point", "reads"));
        }
        put(text, format_args!(" | {:>5}\n", "looks"));
        for row in 0..Kind::ALL.len() {
            put(text, format_args!("{:10}", Kind::ALL[row].name()));
            for column in columns {
                let (_, tally) = &column.tallies[row];
                let (all, index, data) =
                    (tally.hit_percent(), tally.class_hit_percent(Class::Index), tally.class_hit_percent(Class::Data));
                let point = match tally.points[0] {
                    0 => "-".to_owned(),
                    _ => format!("{:.1}", tally.point_hit_percent()),
                };
                let reads = tally.all_reads() as f64 / recorded.operations as f64;
                put(text, format_args!(" | {all:>5.1} {index:>5.1} {data:>5.1} {point:>5} {reads:>8.4}"));
            }
            let looks = columns.last().map_or(0.0, |column| column.tallies[row].1.looks_each());
            put(text, format_args!(" | {looks:>5.1}\n"));
        }
        text.push('\n');
    }
}

fn object(recorded: &Recorded, columns: &[Column]) -> Value {
    let policy = |(kind, tally): &(Kind, Tally)| {
        json!({
            "policy": kind.name(),
            "needed": { "index": tally.needed[0], "data": tally.needed[1] },
            "hits": { "index": tally.hits[0], "data": tally.hits[1] },
            "points": { "needed": tally.points[0], "hits": tally.points[1] },
            "reads": { "index": tally.reads[0], "data": tally.reads[1] },
            "read_bytes": tally.read_bytes,
            "looks": tally.looks,
            "evicted": tally.evicted,
        })
    };
    let size = |column: &Column| {
        let policies: Vec<Value> = column.tallies.iter().map(policy).collect();
        json!({ "cache_bytes": column.budget, "policies": policies })
    };
    json!({
        "trace": recorded.name,
        "operations": recorded.operations,
        "events": recorded.events.len(),
        "pages": recorded.pages.len(),
        "live_bytes": recorded.data_bytes(),
        "live_index_bytes": recorded.live_bytes[0],
        "sizes": columns.iter().map(size).collect::<Vec<Value>>(),
    })
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes all");
}
