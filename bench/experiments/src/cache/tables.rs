//! What the policies did with one trace, as it is kept, and as a table and a chart.

use crate::cache::policies::Kind;
use crate::cache::recorded::Recorded;
use crate::cache::replay::{Tally, replay};
use crate::outcome::{Column, chart, table};
use page::{Axis, Block};
use pages::policy::Class;
use serde::{Deserialize, Serialize};

/// What the columns mean.
pub const LEGEND: &str = "\
Of the pages needed, those that had stayed in the cache, in percent: all, index pages, data pages, data pages for reads of one
key. Reads: pages read for an operation. Looks: pages looked at for one that goes.";

/// What all policies did with a trace.
#[derive(Serialize, Deserialize)]
pub struct Replayed {
    trace: String,
    operations: u64,
    events: u64,
    pages: u64,
    /// The peak of the bytes of all living pages.
    live_bytes: u64,
    /// The bytes of index pages among them.
    live_index_bytes: u64,
    sizes: Vec<Size>,
}

/// What all policies did with a cache of one size.
#[derive(Serialize, Deserialize)]
struct Size {
    cache_bytes: u64,
    policies: Vec<Played>,
}

/// What a policy did.
#[derive(Serialize, Deserialize)]
pub struct Played {
    /// Its name.
    pub policy: String,
    /// What was counted.
    #[serde(flatten)]
    pub tally: Tally,
}

impl Played {
    /// Replays a trace with a policy and a cache of `cache_bytes`.
    pub fn of(recorded: &Recorded, kind: Kind, cache_bytes: u64) -> Self {
        Self { policy: kind.name().to_owned(), tally: replay(recorded, kind, cache_bytes) }
    }
}

impl Replayed {
    /// Replays a trace with all policies and these sizes of the cache.
    pub fn of(recorded: &Recorded, sizes: &[u64]) -> Self {
        let size = |cache_bytes: &u64| Size {
            cache_bytes: *cache_bytes,
            policies: Kind::ALL.map(|kind| Played::of(recorded, kind, *cache_bytes)).into(),
        };
        Self {
            trace: recorded.name.clone(),
            operations: recorded.operations,
            events: recorded.events.len() as u64,
            pages: recorded.pages.len() as u64,
            live_bytes: recorded.data_bytes(),
            live_index_bytes: recorded.live_bytes[0],
            sizes: sizes.iter().map(size).collect(),
        }
    }

    /// Its table, and a chart of the reads.
    pub fn blocks(&self) -> [Block; 2] {
        [self.table(), self.chart()]
    }

    /// Pages read for an operation.
    fn reads(&self, tally: &Tally) -> f64 {
        tally.all_reads() as f64 / self.operations as f64
    }

    fn table(&self) -> Block {
        let caption = format!(
            "{}: {} operations, {} events of {} pages, at most {} at a time, of them {} index",
            self.trace,
            self.operations,
            self.events,
            self.pages,
            mebibytes(self.live_bytes),
            mebibytes(self.live_index_bytes)
        );
        let points = |tally: &Tally| match tally.points[0] {
            0 => "-".to_owned(),
            _ => percent(tally.point_hit_percent()),
        };
        let columns: [Column<'_, (&Size, &Played)>; 8] = [
            ("policy", &|(_, played)| played.policy.clone()),
            ("cache", &|(size, _)| share(size.cache_bytes, self.live_bytes)),
            ("all", &|(_, played)| percent(played.tally.hit_percent())),
            ("index", &|(_, played)| percent(played.tally.class_hit_percent(Class::Index))),
            ("data", &|(_, played)| percent(played.tally.class_hit_percent(Class::Data))),
            ("point", &|(_, played)| points(&played.tally)),
            ("reads", &|(_, played)| format!("{:.4}", self.reads(&played.tally))),
            ("looks", &|(_, played)| format!("{:.1}", played.tally.looks_each())),
        ];
        let rows = self.sizes.iter().flat_map(|size| size.policies.iter().map(move |played| (size, played)));
        table(caption, rows, &columns)
    }

    fn chart(&self) -> Block {
        let point = |size: &Size, policy: usize| {
            (size.cache_bytes as f64 / f64::from(1 << 20), self.reads(&size.policies[policy].tally))
        };
        let points = |policy| self.sizes.iter().map(|size| point(size, policy)).collect();
        let lines = Kind::ALL.iter().enumerate().map(|(policy, kind)| (kind.name(), points(policy)));
        let axes = (Axis::logarithmic("MiB of cache"), Axis::linear("pages read for an operation"));
        chart(self.trace.clone(), axes, lines)
    }
}

/// The size of a cache, also as a share of the bytes of the pages.
pub fn share(bytes: u64, live_bytes: u64) -> String {
    format!("{} = {:.1} %", mebibytes(bytes), bytes as f64 * 100.0 / live_bytes as f64)
}

/// A size as text.
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// A percentage as text.
pub fn percent(percent: f64) -> String {
    format!("{percent:.1}")
}
