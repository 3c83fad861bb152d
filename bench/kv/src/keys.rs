//! Which rows an operation is about: the workloads of scylla-bench, and one more.
//!
//! * sequential: all rows, in order. Each client has a stretch of them.
//! * uniform: any row.
//! * zipfian: a few partitions much more often than the others; any of their rows.
//! * timeseries: each partition gets a row at a fixed rate, newer than all before it; readers draw from what has been
//!   written.
//! * scan: the parts of the table.

#[cfg(test)]
mod tests;

use crate::draw::below;
use crate::options::{Distribution, Options, Workload};
use os::sync::Arc;
use ycsb::{Random, Zipfian};

fn below_signed(random: &mut Random, bound: i64) -> i64 {
    below(random, bound.max(1).unsigned_abs()) as i64
}

/// The keys of one client.
#[derive(Debug)]
pub enum Keys {
    /// A stretch of all rows.
    Sequential(Stretch),
    /// Any row.
    Uniform(Shape),
    /// Any row of a partition that is drawn.
    Zipfian(Shape, Favourites),
    /// Rows that a time series gets next.
    Written(Series),
    /// Rows that a time series has.
    Seen(Series, Distribution),
    /// Parts of the table.
    Parts {
        /// The next one.
        next: u32,
        /// The one after the last.
        end: u32,
    },
}

/// All rows.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    first_pk: i64,
    partitions: i64,
    rows_a_partition: i64,
}

/// Partitions by how often they are drawn: number n of them about 1/n as often as the first. They are scattered over
/// all.
#[derive(Clone, Debug)]
pub struct Favourites {
    ranks: Arc<Zipfian>,
    partitions: u64,
    /// It has no divisor with the number of partitions, so that each rank has a partition of its own.
    stride: u64,
}

impl Favourites {
    /// Keys of `partitions` partitions. Any number of partitions takes less than a second.
    pub fn new(partitions: i64) -> Self {
        let count = partitions.unsigned_abs();
        // Near the golden ratio of the range, neighbours in rank lie far apart.
        let golden = (count as f64 * 0.618) as u64;
        let stride = (golden.max(1)..).find(|stride| gcd(*stride, count) == 1).expect("1 more than a multiple is one");
        Self { ranks: Arc::new(Zipfian::new(0, partitions - 1)), partitions: count, stride }
    }

    fn draw(&self, random: &mut Random) -> i64 {
        let rank = self.ranks.next(random).clamp(0, self.partitions as i64 - 1).unsigned_abs();
        (u128::from(rank) * u128::from(self.stride) % u128::from(self.partitions)) as i64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A stretch of all rows, in the order of partitions and rows.
#[derive(Debug)]
pub struct Stretch {
    shape: Shape,
    begin: i64,
    end: i64,
    next: i64,
    /// How often it is gone through after this time; `None`: without end.
    left: Option<u32>,
    /// The partition of the operation at hand.
    partition: i64,
}

/// A time series. Row n of all goes to partition n mod partitions, so that each partition gets its rows at the same
/// rate.
#[derive(Debug)]
pub struct Series {
    shape: Shape,
    /// Nanoseconds since 1970 of the first row of each partition.
    start: i64,
    /// Nanoseconds between two rows of a partition.
    period: i64,
    /// The first row of this client, among those of all.
    first: i64,
    /// The next one.
    next: i64,
    step: i64,
    /// The partition that this client reads next.
    partition: i64,
    /// Partition, generation and position of the row at hand.
    row: (i64, i64, i64),
}

/// What an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A partition.
    Partition(i64),
    /// A part of the table.
    Part(u32),
}

impl Keys {
    /// The keys of client `number` of `clients`. `favourites` are there for [`Workload::Zipfian`], made once for all
    /// clients.
    pub fn new(options: &Options, favourites: Option<&Favourites>, number: usize, clients: usize) -> Self {
        let shape = Shape {
            first_pk: options.partition_offset,
            partitions: options.partition_count,
            rows_a_partition: options.clustering_row_count,
        };
        let (number, clients) = (number as i64, clients as i64);
        match options.workload {
            Workload::Sequential => {
                let rows = shape.partitions * shape.rows_a_partition;
                let share = |number: i64| number * (rows / clients) + number.min(rows % clients);
                let (begin, end) = (share(number), share(number + 1));
                let left = options.iterations.checked_sub(1);
                Self::Sequential(Stretch { shape, begin, end, next: begin, left, partition: 0 })
            }
            Workload::Uniform => Self::Uniform(shape),
            Workload::Zipfian => {
                let favourites = favourites.cloned().unwrap_or_else(|| Favourites::new(shape.partitions));
                Self::Zipfian(shape, favourites)
            }
            Workload::Timeseries => {
                let period = period(options.rows_a_second_and_partition());
                let (start, partition) = (options.start_timestamp, number % shape.partitions);
                let (first, next, step) = (number, number, clients);
                let series = Series { shape, start, period, first, next, step, partition, row: (0, 0, 0) };
                match options.mode.writes() {
                    true => Self::Written(series),
                    false => Self::Seen(series, options.distribution),
                }
            }
            Workload::Scan => {
                let share = |number: i64| (number * i64::from(options.range_count) / clients) as u32;
                Self::Parts { next: share(number), end: share(number + 1) }
            }
        }
    }

    /// Goes on to the next operation. `None`: no more operations come. `now` is the time in nanoseconds since 1970.
    #[inline]
    pub fn next_place(&mut self, random: &mut Random, now: impl FnOnce() -> i64) -> Option<Place> {
        Some(Place::Partition(match self {
            Self::Sequential(stretch) => stretch.next_partition()?,
            Self::Uniform(shape) => shape.first_pk + below_signed(random, shape.partitions),
            Self::Zipfian(shape, favourites) => shape.first_pk + favourites.draw(random),
            Self::Written(series) => series.next_written(),
            Self::Seen(series, distribution) => series.next_seen(*distribution, random, now()),
            Self::Parts { next, end } => {
                if next == end {
                    return None;
                }
                *next += 1;
                return Some(Place::Part(*next - 1));
            }
        }))
    }

    /// The next place for an operation that reads between those that write. In a time series it reads what this client
    /// has written.
    #[inline]
    pub fn next_place_beside(
        &mut self,
        distribution: Distribution,
        random: &mut Random,
        now: impl FnOnce() -> i64,
    ) -> Option<Place> {
        match self {
            Self::Written(series) => Some(Place::Partition(series.next_own(distribution, random))),
            _ => self.next_place(random, now),
        }
    }

    /// A row of the partition of the operation. In a time series it is the same however often it is asked for.
    #[inline]
    pub fn next_row(&mut self, random: &mut Random) -> i64 {
        match self {
            Self::Sequential(stretch) => stretch.next_row(),
            Self::Uniform(shape) | Self::Zipfian(shape, _) => below_signed(random, shape.rows_a_partition),
            Self::Written(series) | Self::Seen(series, _) => series.ck(),
            Self::Parts { .. } => 0,
        }
    }

    /// Whether the operation can have another row.
    #[inline]
    pub fn has_row(&self, taken: usize) -> bool {
        match self {
            Self::Sequential(stretch) => stretch.has_row(),
            Self::Uniform(_) | Self::Zipfian(..) => true,
            Self::Written(_) | Self::Seen(..) => taken == 0,
            Self::Parts { .. } => false,
        }
    }
}

impl Stretch {
    fn next_partition(&mut self) -> Option<i64> {
        if self.next >= self.end {
            if self.begin == self.end || self.left == Some(0) {
                return None;
            }
            self.left = self.left.map(|left| left - 1);
            self.next = self.begin;
        }
        self.partition = self.next / self.shape.rows_a_partition;
        Some(self.shape.first_pk + self.partition)
    }

    fn has_row(&self) -> bool {
        self.next < self.end && self.next / self.shape.rows_a_partition == self.partition
    }

    fn next_row(&mut self) -> i64 {
        let row = self.next % self.shape.rows_a_partition;
        self.next += 1;
        row
    }
}

/// Nanoseconds between two rows of a partition that gets this number a second.
pub fn period(rows_a_second: f64) -> i64 {
    ((1e9 / rows_a_second).round() as i64).max(1)
}

impl Series {
    /// The newest row that has been written to each partition: its number among the rows of the partition.
    fn newest(&self, now: i64) -> i64 {
        (now.saturating_sub(self.start) / self.period).max(0)
    }

    fn pk(&self) -> i64 {
        let (partition, generation, _) = self.row;
        (self.shape.first_pk + partition) << 32 | generation
    }

    /// Newer rows have lesser keys, so that they come first.
    fn ck(&self) -> i64 {
        let (_, generation, position) = self.row;
        -(self.start + self.period * (generation * self.shape.rows_a_partition + position))
    }

    fn next_written(&mut self) -> i64 {
        self.next += self.step;
        self.at(self.next - self.step)
    }

    /// Row `number` of all.
    fn at(&mut self, number: i64) -> i64 {
        let (partition, row) = (number % self.shape.partitions, number / self.shape.partitions);
        self.row = (partition, row / self.shape.rows_a_partition, row % self.shape.rows_a_partition);
        self.pk()
    }

    /// A row that this client has written.
    fn next_own(&mut self, distribution: Distribution, random: &mut Random) -> i64 {
        let written = (self.next - self.first) / self.step;
        let row = distribution.draw(random, written.max(1));
        self.at(self.first + row * self.step)
    }

    /// A row that all writers together have written until now, if they keep their rate.
    fn next_seen(&mut self, distribution: Distribution, random: &mut Random, now: i64) -> i64 {
        let newest = self.newest(now);
        let generation = distribution.draw(random, newest / self.shape.rows_a_partition + 1);
        let rows = (newest - generation * self.shape.rows_a_partition + 1).min(self.shape.rows_a_partition);
        self.row = (self.partition, generation, distribution.draw(random, rows));
        self.partition = (self.partition + self.step) % self.shape.partitions;
        self.pk()
    }
}

impl Distribution {
    /// A number that is at least 0 and less than `bound`.
    fn draw(self, random: &mut Random, bound: i64) -> i64 {
        match self {
            Self::Uniform => below_signed(random, bound),
            // The greatest are the newest and the likeliest: half of a normal distribution, cut at four deviations.
            Self::HalfNormal => {
                let from_top = normal(random).abs().min(4.0) / 4.0;
                ((bound as f64 * (1.0 - from_top)) as i64).min(bound - 1)
            }
        }
    }
}

/// A number of the standard normal distribution, after Box and Muller.
fn normal(random: &mut Random) -> f64 {
    let (radius, angle) = (1.0 - random.double(), random.double());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
