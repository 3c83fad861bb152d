//! Draws the rows that an operation works on. The workloads are those of scylla-bench and one more, zipfian.
//!
//! * sequential: all rows, in order. Each client has a range of them.
//! * uniform: any row.
//! * zipfian: any row of a random partition. A few partitions are drawn much more often than the rest.
//! * timeseries: each partition gets rows at a fixed rate, and each row is newer than all rows before it. Readers
//!   draw from the rows that have been written.
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

/// Draws the keys of one client.
#[derive(Debug)]
pub enum Keys {
    /// A range of all rows.
    Sequential(Stretch),
    /// Any row.
    Uniform(Shape),
    /// Any row of a partition that is drawn.
    Zipfian(Shape, Favourites),
    /// The rows that are written to a time series next.
    Written(Series),
    /// The rows that a time series has.
    Seen(Series, Distribution),
    /// Parts of the table.
    Parts {
        /// The next part.
        next: u32,
        /// The part after the last one.
        end: u32,
    },
}

/// The partitions and rows of the table.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    first_pk: i64,
    partitions: i64,
    rows_a_partition: i64,
}

/// Ranks the partitions by how often they are drawn: the partition of rank n is drawn about 1/n as often as the
/// first. Neighbouring ranks are scattered over the table.
#[derive(Clone, Debug)]
pub struct Favourites {
    ranks: Arc<Zipfian>,
    partitions: u64,
    /// Coprime to the number of partitions, so that each rank has its own partition.
    stride: u64,
}

impl Favourites {
    /// Ranks `partitions` partitions. This takes less than a second for any number of them.
    pub fn new(partitions: i64) -> Self {
        let count = partitions.unsigned_abs();
        // A stride near the golden ratio of the range keeps the partitions of neighbouring ranks far apart.
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

/// A range of all rows, in the order of partitions and rows.
#[derive(Debug)]
pub struct Stretch {
    shape: Shape,
    begin: i64,
    end: i64,
    next: i64,
    /// How many passes over the range follow the current one; `None`: without end.
    left: Option<u32>,
    /// The partition of the current operation.
    partition: i64,
}

/// A time series. Row n of all rows goes to partition n mod partitions, so that each partition gets rows at the same
/// rate.
#[derive(Debug)]
pub struct Series {
    shape: Shape,
    /// The time of the first row of each partition, in nanoseconds since 1970.
    start: i64,
    /// Nanoseconds between two rows of a partition.
    period: i64,
    /// The number of this client's first row. The rows of all clients are numbered together.
    first: i64,
    /// The number of its next row.
    next: i64,
    step: i64,
    /// The partition that this client reads next.
    partition: i64,
    /// The partition, generation and position of the current row. When a partition is full, its next generation
    /// begins under another partition key.
    row: (i64, i64, i64),
}

/// The part of the table that an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A partition.
    Partition(i64),
    /// A part of the table.
    Part(u32),
}

impl Keys {
    /// The keys of client `number` of `clients`. For [`Workload::Zipfian`], all clients share `favourites`; without
    /// them, each client makes its own.
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

    /// Goes on to the next operation. `None`: there are no more operations. `now` returns the time in nanoseconds
    /// since 1970.
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

    /// The next place for a read, in a workload that also writes. In a time series, it is a place to which this
    /// client has written.
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

    /// A row in the partition of the operation. In a time series, every call during one operation returns the same
    /// row.
    #[inline]
    pub fn next_row(&mut self, random: &mut Random) -> i64 {
        match self {
            Self::Sequential(stretch) => stretch.next_row(),
            Self::Uniform(shape) | Self::Zipfian(shape, _) => below_signed(random, shape.rows_a_partition),
            Self::Written(series) | Self::Seen(series, _) => series.ck(),
            Self::Parts { .. } => 0,
        }
    }

    /// Whether the operation, which has taken `taken` rows, can take another one.
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

/// The nanoseconds between two rows of a partition that gets `rows_a_second` rows per second.
pub fn period(rows_a_second: f64) -> i64 {
    ((1e9 / rows_a_second).round() as i64).max(1)
}

impl Series {
    /// The number of the newest row of each partition. Each partition numbers its rows from 0.
    fn newest(&self, now: i64) -> i64 {
        (now.saturating_sub(self.start) / self.period).max(0)
    }

    fn pk(&self) -> i64 {
        let (partition, generation, _) = self.row;
        (self.shape.first_pk + partition) << 32 | generation
    }

    /// Newer rows have lower keys, so that newer rows come first.
    fn ck(&self) -> i64 {
        let (_, generation, position) = self.row;
        -(self.start + self.period * (generation * self.shape.rows_a_partition + position))
    }

    fn next_written(&mut self) -> i64 {
        self.next += self.step;
        self.at(self.next - self.step)
    }

    /// Goes to row `number` of all rows.
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

    /// A row that has been written by now, if all writers keep their rate.
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
            // Newer rows have greater numbers and are likelier. The distribution is half of a normal distribution,
            // cut at four deviations.
            Self::HalfNormal => {
                let from_top = normal(random).abs().min(4.0) / 4.0;
                ((bound as f64 * (1.0 - from_top)) as i64).min(bound - 1)
            }
        }
    }
}

/// A number of the standard normal distribution, by the method of Box and Muller.
fn normal(random: &mut Random) -> f64 {
    let (radius, angle) = (1.0 - random.double(), random.double());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
