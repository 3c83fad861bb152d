//! The figures of a run that are compared, each with how sure the run's own intervals make it.

use crate::batch_means::{Uncertainty, uncertainty_of_ratio};
use crate::welch::Figure;
use harness::report::Run;
use harness::{Change, Interval, Measure, Times};

#[cfg(test)]
mod tests;

/// A figure of a run, or of one kind of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Operations, or requests of a kind, a second.
    Throughput,
    /// Mean time of a request.
    Mean,
    /// The time within which a share of the requests was served, in thousandths.
    Quantile(u32),
    /// Processor time of the process for an operation.
    Processor,
    /// A counter of the store, in bytes, for an operation.
    Counted(&'static str),
}

/// The metrics of the whole run.
pub const OF_RUN: [Metric; 4] =
    [Metric::Throughput, Metric::Processor, Metric::Counted("bytes read"), Metric::Counted("bytes written")];

/// The metrics of each kind of request.
pub const OF_KIND: [Metric; 6] = [
    Metric::Throughput,
    Metric::Mean,
    Metric::Quantile(500),
    Metric::Quantile(950),
    Metric::Quantile(990),
    Metric::Quantile(999),
];

/// Requests of a kind that a run needs for its p99 to decide: ten of them are slower than it.
pub const LEAST_REQUESTS: u64 = 1_000;

impl Metric {
    /// What it is called.
    pub fn name(self) -> String {
        match self {
            Self::Throughput => "throughput".to_owned(),
            Self::Mean => "mean".to_owned(),
            Self::Quantile(thousandths) if thousandths.is_multiple_of(10) => format!("p{}", thousandths / 10),
            Self::Quantile(thousandths) => format!("p{}.{}", thousandths / 10, thousandths % 10),
            Self::Processor => "processor time".to_owned(),
            Self::Counted(name) => (*name).to_owned(),
        }
    }

    /// In what it is counted; the two of a whole run that are not a rate are those of an operation.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "1/s",
            Self::Mean | Self::Quantile(_) | Self::Processor => "us",
            Self::Counted(_) => "bytes",
        }
    }

    /// Whether more is better.
    pub fn rises(self) -> bool {
        self == Self::Throughput
    }

    /// Whether it is a figure of few requests, which differs more between runs.
    pub fn is_tail(self) -> bool {
        matches!(self, Self::Quantile(thousandths) if thousandths > 500)
    }

    /// The figure of the whole run, or of requests of `kind`; `None` where the run has none.
    pub fn of(self, run: &Run, kind: Option<&str>) -> Option<Figure> {
        let pieces = Pieces::new(run);
        match kind {
            None => self.of_run(run, &pieces),
            Some(kind) => self.of_kind(run.measured.kind(kind)?, run, &pieces),
        }
    }

    fn of_run(self, run: &Run, pieces: &Pieces<'_>) -> Option<Figure> {
        let measured = &run.measured;
        let operations = (measured.operations + measured.failed) as f64;
        let each = |nanos_or_bytes: u64| nanos_or_bytes as f64 / operations;
        match self {
            Self::Throughput => Some(Figure {
                value: measured.per_second(),
                within: pieces.of(|it| it.operations as f64, length, measured.per_second() / 1e9),
            }),
            // Only the client threads of the process are known for each interval; what is behind them varies alike.
            Self::Processor => Some(Figure {
                value: each(measured.cost.process_nanos()) / 1e3,
                within: pieces.of(
                    |it| it.client_nanos as f64,
                    |it| (it.operations + it.failed) as f64,
                    each(measured.cost.client_nanos),
                ),
            }),
            Self::Counted(name) => {
                let change = measured.counters.iter().find(|change| change.name == name);
                let bytes = change.and_then(Change::counted)?;
                Some(Figure { value: each(bytes), within: None })
            }
            Self::Mean | Self::Quantile(_) => None,
        }
    }

    fn of_kind(self, kind: &Measure, run: &Run, pieces: &Pieces<'_>) -> Option<Figure> {
        let in_piece = |it: &Interval, of: &dyn Fn(&Measure) -> f64| {
            it.kinds.iter().find(|other| other.name == kind.name).map_or(0.0, of)
        };
        if self == Self::Throughput {
            let value = kind.done() as f64 * 1e9 / run.measured.nanos.max(1) as f64;
            let done = |it: &Interval| in_piece(it, &|kind| kind.done() as f64);
            return Some(Figure { value, within: pieces.of(done, length, value / 1e9) });
        }
        let times = kind.times();
        if times.is_empty() {
            return None;
        }
        let count = |it: &Interval| in_piece(it, &|kind| kind.times().count() as f64);
        match self {
            Self::Mean => {
                let sum = |it: &Interval| in_piece(it, &|kind| kind.times().mean() * kind.times().count() as f64);
                Some(Figure { value: times.mean() / 1e3, within: pieces.of(sum, count, times.mean()) })
            }
            Self::Quantile(thousandths) => {
                let share = f64::from(thousandths) / 1e3;
                let value = times.quantile(share);
                let above = |it: &Interval| in_piece(it, &|kind| slower(kind.times(), value) as f64);
                let within = pieces.of(above, count, 1.0).map(|above| of_quantile(times, share, above));
                Some(Figure { value: value as f64 / 1e3, within })
            }
            _ => None,
        }
    }
}

/// How many are longer than `nanos`.
fn slower(times: &Times, nanos: u64) -> u64 {
    times.iter().filter(|(least, ..)| *least > nanos).map(|(_, _, count)| count).sum()
}

/// The share of requests above a quantile is known so well; so well is the quantile known, by the times between the
/// quantiles one standard error away on both sides.
fn of_quantile(times: &Times, share: f64, above: Uncertainty) -> Uncertainty {
    let error = above.variance.sqrt();
    let log = |share: f64| (times.quantile(share).max(1) as f64).ln();
    let half = (log(share + error) - log(share - error)) / 2.0;
    Uncertainty { variance: half.powi(2), ..above }
}

fn length(interval: &Interval) -> f64 {
    (interval.to_nanos - interval.from_nanos) as f64
}

/// The intervals of a window that are not cut short by its end.
struct Pieces<'r>(Vec<&'r Interval>);

impl<'r> Pieces<'r> {
    fn new(run: &'r Run) -> Self {
        let whole = run.plan.interval.as_nanos() as f64 / 2.0;
        Self(run.measured.window().filter(|interval| length(interval) >= whole).collect())
    }

    /// How sure the ratio of two sums over the pieces is, as a part of `figure`.
    fn of(
        &self,
        above: impl Fn(&Interval) -> f64,
        below: impl Fn(&Interval) -> f64,
        figure: f64,
    ) -> Option<Uncertainty> {
        let [above, below] = [self.0.iter().map(|it| above(it)).collect(), self.0.iter().map(|it| below(it)).collect()];
        let (above, below): (Vec<f64>, Vec<f64>) = (above, below);
        let found = uncertainty_of_ratio(&above, &below)?;
        (figure > 0.0).then(|| Uncertainty { variance: found.variance / figure.powi(2), ..found })
    }
}
