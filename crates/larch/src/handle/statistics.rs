//! Statistics of a table, as its users ask for them. `stats/` does the work.

use super::snapshot::Snapshot;
use super::table::Table;
use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::core::snapshots::PinnedVersion;
use crate::stats::shape::Resolution;
use crate::stats::types::RangeStats;
use crate::stats::{estimate, exact, shape};
use crate::view::point::PointRead;
use crate::view::value::{Key, Value};
use crate::view::{TableView, ahead};
use os::sync::Arc;
use pages::{Reason, Session, retry};
use sst::KeyRange;
use sst::Readahead;
use sst::stats::{Bucket, CutPoint, Estimate, Histogram, Metric};

/// The statistics of a table, as of now or of a snapshot. Made by [`Table::statistics`]; cloning is cheap. [`Table`]
/// has the most common ones, too.
///
/// Estimates read index nodes and no data pages. Only a data page knows which of its rows lie before an end of the
/// range, so an estimate is an interval, which always contains the true number. What the manifest says is enough for
/// files that lie in the range as a whole.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let fruit = db.table("fruit")?;
/// for name in ["apple", "banana", "cherry"] {
///     fruit.insert(name, b"ripe")?;
/// }
/// let before = db.snapshot();
/// fruit.remove("banana")?;
/// assert!(fruit.count("a".."c")?.contains(1));
/// assert_eq!(fruit.count_exact("a".."c")?, 1);
/// assert_eq!(fruit.statistics().at(&before)?.count_exact("a".."c")?, 2);
/// assert_eq!(fruit.nth(.., 1)?.expect("two are left").0[..], *b"cherry");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Statistics {
    table: Table,
    /// Keeps the version of the snapshot. `None`: each question sees the newest version.
    pin: Option<Arc<PinnedVersion>>,
}

impl Statistics {
    /// The same statistics as of `snapshot`, which is kept as long as the result lives.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the snapshot is of another database than the table.
    pub fn at(&self, snapshot: &Snapshot) -> Result<Self> {
        Ok(Self { pin: Some(snapshot.pin_of(&self.table)?.clone()), ..self.clone() })
    }

    /// Asks what lies in `range`; the answer is `otherwise` if no key can be in it.
    fn ask<T>(
        &self,
        range: impl IntoKeyRange,
        otherwise: T,
        ask: impl Fn(&Session, TableView<'_>, &KeyRange) -> Result<T>,
    ) -> Result<T> {
        let span = bounds::keys(&range);
        let found = self.table.reader_at(self.pin.as_ref()).look(|table| {
            let session = self.table.inner().session(Reason::Statistics);
            span.as_ref().map(|span| ask(&session, table, span)).transpose()
        })?;
        Ok(found.unwrap_or(otherwise))
    }

    fn readahead(&self) -> Readahead {
        let env = &self.table.core().env;
        ahead::readahead(&env.cache, &*env.machine.reads)
    }

    /// About how many rows a reader sees in `range`. It reads the way down the index to each end of the range, in each
    /// file that has this end within it, and no data page.
    ///
    /// Where only one source has keys (a file, a level below the first, or the memtables), the interval is as wide as
    /// what is not known of the data pages at its ends. Where several sources have keys, it reaches from the rows of
    /// the largest one to the rows of all of them together. [`Statistics::count_exact`] is for an exact number.
    ///
    /// # Errors
    ///
    /// * [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped after this handle was made.
    /// * [`Error::Page`](crate::Error::Page) if a page cannot be read, or if its bytes are not those that were written.
    /// * [`Error::Log`](crate::Error::Log) and [`Error::Outdated`](crate::Error::Outdated) only in a database that was
    ///   opened [read-only](crate::Builder::read_only), while a writer replaces its files.
    pub fn count(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.ask(range, Estimate::default(), estimate::count)
    }

    /// How many rows a reader sees in `range`, exactly. Where only one file has keys, it reads at most two of its data
    /// pages. Where several files have keys, or range erases hide some rows, it merges their keys, which reads all data
    /// pages there.
    ///
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn count_exact(&self, range: impl IntoKeyRange) -> Result<u64> {
        self.ask(range, 0, |session, table, span| exact::count(session, table, span, self.readahead()))
    }

    /// About how many bytes `range` takes: in files as in [`RangeStats::file_bytes`], and in memory.
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn size(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.ask(range, Estimate::default(), estimate::size)
    }

    /// What lies in `range`, and where. It is as cheap as [`Statistics::count`].
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn range_stats(&self, range: impl IntoKeyRange) -> Result<RangeStats> {
        self.ask(range, RangeStats::default(), estimate::range_stats)
    }

    /// How the rows or bytes that are stored in `range` are spread over its keys. The end of each bucket says how much
    /// comes before it.
    ///
    /// Stored rows are counted: a key that is in several files, or in memory and in a file, counts in each, and so do
    /// erases. In each file only the nodes that matter for the ends of buckets are read. There are at most 65,536
    /// buckets if their number is given.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::{Metric, Resolution};
    ///
    /// for number in 0..1000_u32 {
    ///     fruit.insert(number.to_be_bytes(), b"ripe")?;
    /// }
    /// let histogram = fruit.histogram(.., Metric::Rows, Resolution::Buckets(10))?;
    /// assert!(histogram.total.contains(1000));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn histogram(&self, range: impl IntoKeyRange, metric: Metric, resolution: Resolution) -> Result<Histogram> {
        let total = Estimate::default();
        let buckets = vec![Bucket { end: None, through: total, value: 0 }];
        let nothing = Histogram { metric, resolution: 1, buckets, total, index_pages: 0 };
        self.ask(range, nothing, |session, table, span| shape::histogram(session, table, span, metric, resolution))
    }

    /// Where to cut `range` into `parts` parts of about equal bytes: at most `parts - 1` cut points within it, in
    /// ascending order. There are fewer if there are too few data pages. A cut point belongs to the part after it, and
    /// need not be the key of a row.
    ///
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn split_points(&self, range: impl IntoKeyRange, parts: u64) -> Result<Vec<CutPoint>> {
        self.ask(range, Vec::new(), |session, table, span| shape::split_points(session, table, span, parts))
    }

    /// Row `n` of the rows that a reader sees in `range`, counted from 0; `None` if there are not that many. Where only
    /// one file has keys, the index says which page has the row. Elsewhere keys are merged.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`](crate::Error::Grouped) if the values of the table are split into several column groups;
    /// otherwise as [`Statistics::count`].
    pub fn nth(&self, range: impl IntoKeyRange, n: u64) -> Result<Option<(Key, Value)>> {
        self.table.inner().check_whole()?;
        self.ask(range, None, |session, table, span| {
            let Some(key) = exact::nth_key(session, table, span, n, self.readahead())? else { return Ok(None) };
            let mut read = PointRead::new(table, &key);
            let value = retry(session, || read.get(session, session.cache()))?;
            Ok(value.map(|value| (key.into(), value)))
        })
    }

    /// The key of row `n`, as in [`Statistics::nth`]. It works for tables with column groups, too.
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn nth_key(&self, range: impl IntoKeyRange, n: u64) -> Result<Option<Key>> {
        let nth = |session: &Session, table: TableView<'_>, span: &KeyRange| {
            exact::nth_key(session, table, span, n, self.readahead())
        };
        Ok(self.ask(range, None, nth)?.map(Key::from))
    }

    /// About where row `n` of the rows that a reader sees in `range` is, from index nodes alone: if there are more than
    /// `n` rows, it is at or after the first cut point and before the second. `None` on a side: the end of the range is
    /// the best bound that is known. About 64 points are tried, and for each of them the rows in memory are walked.
    ///
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn nth_between(&self, range: impl IntoKeyRange, n: u64) -> Result<(Option<CutPoint>, Option<CutPoint>)> {
        self.ask(range, (None, None), |session, table, span| shape::nth_between(session, table, span, n))
    }

    /// Keys of up to `count` rows that a reader sees in `range`, sorted, each key once. The result is the same for the
    /// same `seed` as long as nothing changes. It reads about one data page for each key, and two for each file that
    /// has an end of the range within it.
    ///
    /// The stored rows of all files and memtables are cut into `count` equal pieces, and one row is drawn at random
    /// from each piece. So a key that is stored in several places is drawn more often, and there may be fewer than
    /// `count` keys where many rows are erased or stored twice.
    ///
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn sample(&self, range: impl IntoKeyRange, count: u64, seed: u64) -> Result<Vec<Key>> {
        self.ask(range, Vec::new(), |session, table, span| shape::sample(session, table, span, count, seed))
    }
}

impl Table {
    /// The statistics of the table. They can be asked as of a snapshot, too: see [`Statistics::at`].
    pub fn statistics(&self) -> Statistics {
        Statistics { table: self.clone(), pin: None }
    }

    /// About how many rows there are in `range`, from index nodes alone: see [`Statistics::count`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// for name in ["apple", "banana", "cherry"] {
    ///     fruit.insert(name, b"ripe")?;
    /// }
    /// let estimate = fruit.count("a".."c")?;
    /// assert!(estimate.low <= 2 && 2 <= estimate.high);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn count(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.statistics().count(range)
    }

    /// How many rows there are in `range`, exactly: see [`Statistics::count_exact`].
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn count_exact(&self, range: impl IntoKeyRange) -> Result<u64> {
        self.statistics().count_exact(range)
    }

    /// About how many bytes `range` takes: see [`Statistics::size`].
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn size(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.statistics().size(range)
    }

    /// What lies in `range`, and where: see [`Statistics::range_stats`].
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn range_stats(&self, range: impl IntoKeyRange) -> Result<RangeStats> {
        self.statistics().range_stats(range)
    }

    /// How rows or bytes are spread over the keys of `range`: see [`Statistics::histogram`].
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn histogram(&self, range: impl IntoKeyRange, metric: Metric, resolution: Resolution) -> Result<Histogram> {
        self.statistics().histogram(range, metric, resolution)
    }

    /// Where to cut `range` into parts of about equal bytes: see [`Statistics::split_points`].
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn split_points(&self, range: impl IntoKeyRange, parts: u64) -> Result<Vec<CutPoint>> {
        self.statistics().split_points(range, parts)
    }

    /// Row `n` of `range`, counted from 0: see [`Statistics::nth`].
    ///
    /// # Errors
    ///
    /// As [`Statistics::nth`].
    pub fn nth(&self, range: impl IntoKeyRange, n: u64) -> Result<Option<(Key, Value)>> {
        self.statistics().nth(range, n)
    }

    /// Keys of some rows of `range`: see [`Statistics::sample`].
    ///
    /// # Errors
    ///
    /// As [`Statistics::count`].
    pub fn sample(&self, range: impl IntoKeyRange, count: u64, seed: u64) -> Result<Vec<Key>> {
        self.statistics().sample(range, count, seed)
    }
}
