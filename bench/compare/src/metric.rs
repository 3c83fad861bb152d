//! The figures of a run that are compared, each with its uncertainty, estimated from the run's intervals.

use crate::batch_means::{Uncertainty, uncertainty_of_ratio};
use crate::welch::Estimate;
use harness::report::Run;
use harness::{Change, Interval, Measure, Times};

#[cfg(test)]
mod tests;

/// A figure of a run, or of one kind of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Operations per second, or requests of a kind per second.
    Throughput,
    /// Mean time of a request.
    Mean,
    /// A quantile of the request times, in thousandths: 990 is the p99.
    Quantile(u32),
    /// Processor time of the process per operation.
    Processor,
    /// A counter of the store per operation, in bytes.
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

/// The p99 of a kind decides if each run has at least this many requests of the kind, so that ten are slower.
pub const LEAST_REQUESTS: u64 = 1_000;

impl Metric {
    /// The name of the metric.
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

    /// The unit of the metric. Processor time and counters are per operation.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "1/s",
            Self::Mean | Self::Quantile(_) | Self::Processor => "us",
            Self::Counted(_) => "bytes",
        }
    }

    /// Whether greater values are better.
    pub fn rises(self) -> bool {
        self == Self::Throughput
    }

    /// Whether the figure depends on few requests, and so varies more between runs.
    pub fn is_tail(self) -> bool {
        matches!(self, Self::Quantile(thousandths) if thousandths > 500)
    }

    /// The figure of the whole run, or of the requests of `kind`; `None` if the run does not have it.
    pub fn of(self, run: &Run, kind: Option<&str>) -> Option<Estimate> {
        let pieces = Pieces::new(run);
        match kind {
            None => self.of_run(run, &pieces),
            Some(kind) => self.of_kind(run.measured.kind(kind)?, run, &pieces),
        }
    }

    fn of_run(self, run: &Run, pieces: &Pieces<'_>) -> Option<Estimate> {
        let measured = &run.measured;
        let operations = (measured.operations + measured.failed) as f64;
        let each = |nanos_or_bytes: u64| nanos_or_bytes as f64 / operations;
        match self {
            Self::Throughput => Some(Estimate {
                value: measured.per_second(),
                within: pieces.of(|it| it.operations as f64, length, measured.per_second() / 1e9),
            }),
            // Intervals record only the client threads' processor time. Assume that the other threads' varies as
            // much.
            Self::Processor => Some(Estimate {
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
                Some(Estimate { value: each(bytes), within: None })
            }
            Self::Mean | Self::Quantile(_) => None,
        }
    }

    fn of_kind(self, kind: &Measure, run: &Run, pieces: &Pieces<'_>) -> Option<Estimate> {
        let in_piece = |it: &Interval, of: &dyn Fn(&Measure) -> f64| {
            it.kinds.iter().find(|other| other.name == kind.name).map_or(0.0, of)
        };
        if self == Self::Throughput {
            let value = kind.done() as f64 * 1e9 / run.measured.nanos.max(1) as f64;
            let done = |it: &Interval| in_piece(it, &|kind| kind.done() as f64);
            return Some(Estimate { value, within: pieces.of(done, length, value / 1e9) });
        }
        let times = kind.times();
        if times.is_empty() {
            return None;
        }
        let count = |it: &Interval| in_piece(it, &|kind| kind.times().count() as f64);
        match self {
            Self::Mean => {
                let sum = |it: &Interval| in_piece(it, &|kind| kind.times().mean() * kind.times().count() as f64);
                Some(Estimate { value: times.mean() / 1e3, within: pieces.of(sum, count, times.mean()) })
            }
            Self::Quantile(thousandths) => {
                let share = f64::from(thousandths) / 1e3;
                let value = times.known_quantile(share)?;
                let above = |it: &Interval| in_piece(it, &|kind| slower(kind.times(), value) as f64);
                let within = pieces.of(above, count, 1.0).map(|above| of_quantile(times, share, above));
                Some(Estimate { value: value as f64 / 1e3, within })
            }
            _ => None,
        }
    }
}

/// The number of times that are longer than `nanos`.
fn slower(times: &Times, nanos: u64) -> u64 {
    times.iter().filter(|(least, ..)| *least > nanos).map(|(_, _, count)| count).sum()
}

/// Converts `above`, the uncertainty of the share of requests slower than a quantile, into the uncertainty of the
/// quantile's time: half the distance between the quantiles one standard error below and above `share`.
fn of_quantile(times: &Times, share: f64, above: Uncertainty) -> Uncertainty {
    let error = above.variance.sqrt();
    let log = |share: f64| (times.quantile(share).max(1) as f64).ln();
    let half = (log(share + error) - log(share - error)) / 2.0;
    Uncertainty { variance: half.powi(2), ..above }
}

fn length(interval: &Interval) -> f64 {
    (interval.to_nanos - interval.from_nanos) as f64
}

/// The intervals of a window, without one that the end of the window cut to less than half.
struct Pieces<'r>(Vec<&'r Interval>);

impl<'r> Pieces<'r> {
    fn new(run: &'r Run) -> Self {
        let whole = run.plan.interval.as_nanos() as f64 / 2.0;
        Self(run.measured.window().filter(|interval| length(interval) >= whole).collect())
    }

    /// The uncertainty of the ratio of two sums over the pieces, relative to `figure`.
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
