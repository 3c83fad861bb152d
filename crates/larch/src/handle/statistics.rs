//! Statistics of a table, as programs ask for them. The code in `sizes/` computes them.

use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::{Error, Result};
use crate::read::{Content, Reader, content_of};
use crate::sizes::shape::Resolution;
use crate::sizes::types::RangeStats;
use crate::sizes::{estimate, exact, shape};
use crate::view::point::PointRead;
use crate::view::value::Key;
use crate::view::{TableView, ahead};
use pages::{Reason, Session, retry};
use sst::KeyRange;
use sst::Readahead;
use sst::stats::{Bucket, CutPoint, Estimate, Histogram, Metric};

/// Statistics of a table, as it is now or in a snapshot. If a transaction asks for a statistic, it then depends on
/// all rows of the range, as if it had read them. A statistic does not include rows that the transaction itself
/// has written. So if the transaction has written to the table, statistics of this table fail with
/// [`Error::OwnWrites`](crate::Error::OwnWrites).
///
/// An estimate reads only index nodes and no data pages. If the range begins or ends inside a data page, the nodes
/// do not say how many rows of this page are in the range. So an estimate has a least and a greatest number, and
/// the true number always lies between them. For a file that lies in the range as a whole, the manifest has these
/// numbers.
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
/// assert_eq!(fruit.at(&before)?.count_exact("a".."c")?, 2);
/// assert_eq!(fruit.nth(.., 1)?.expect("two are left").0[..], *b"cherry");
/// # Ok(())
/// # }
/// ```
impl<V: Content> Reader<'_, V> {
    /// Calls `ask` with the keys of `range`. If no key can be in the range, returns `otherwise` without calling
    /// it.
    fn ask<T>(
        &self,
        range: impl IntoKeyRange,
        otherwise: T,
        ask: impl Fn(&Session, TableView<'_>, &KeyRange) -> Result<T>,
    ) -> Result<T> {
        let span = bounds::keys(&range);
        self.note_counted(&bounds::owned(&range))?;
        let found = self.look(|table| {
            let session = self.handle().session(Reason::Statistics);
            span.as_ref().map(|span| ask(&session, table, span)).transpose()
        })?;
        Ok(found.unwrap_or(otherwise))
    }

    /// Notes that a transaction depends on all rows in a range. Fails if the transaction has written to the table.
    fn note_counted(&self, range: &bounds::Owned) -> Result<()> {
        let Some(work) = self.work() else { return Ok(()) };
        let (own, read) = work.read_range(self.handle().id(), range);
        if let Some(read) = read {
            read.close(None);
        }
        match own {
            Some(_) => Err(Error::OwnWrites(self.handle().identity.name.clone())),
            None => Ok(()),
        }
    }

    fn readahead(&self) -> Readahead {
        let env = &self.handle().core().env;
        ahead::readahead(&env.cache, &*env.machine.reads)
    }

    /// Estimates how many rows a reader sees in `range`. If an end of the range is inside a file, the nodes on the
    /// way down to this end are read. No data page is read.
    ///
    /// An estimate has a least and a greatest number. Rows come from several sources: each file of level 0, each
    /// deeper level, and the memtables. If only one source has keys in the range, the two numbers differ by at
    /// most the rows of the data pages in which the range begins and ends. If several sources have keys in the
    /// range, the least number is that of the source with the most rows, and the greatest is the sum of all
    /// sources. [`Reader::count_exact`] returns the exact number.
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
    /// * [`Error::TableDropped`](crate::Error::TableDropped) if the table was dropped after this handle was made.
    /// * [`Error::Page`](crate::Error::Page) if a page cannot be read, or has other bytes than were written.
    /// * [`Error::Log`](crate::Error::Log) and [`Error::Outdated`](crate::Error::Outdated), but only in a
    ///   [read-only](crate::Builder::read_only) database, while a writer replaces its files.
    pub fn count(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.ask(range, Estimate::default(), estimate::count)
    }

    /// The exact number of rows that a reader sees in `range`. In a part of the range in which only one file has
    /// keys, this reads at most two data pages of the file. In a part in which several files have keys, or range
    /// erases hide rows, the keys are merged. The merge reads all data pages of this part.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn count_exact(&self, range: impl IntoKeyRange) -> Result<u64> {
        self.ask(range, 0, |session, table, span| exact::count(session, table, span, self.readahead()))
    }

    /// The exact number of rows that a reader sees in the table. This is [`Reader::count_exact`] for all keys. So,
    /// unlike the length of a collection in memory, the call may take long. [`Reader::count`] is fast.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn len(&self) -> Result<u64> {
        self.count_exact(..)
    }

    /// Estimates how many bytes `range` takes, in memory and in files. [`RangeStats::file_bytes`] explains what is
    /// counted in files.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn size(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.ask(range, Estimate::default(), estimate::size)
    }

    /// Estimates what lies in `range`, and how it is divided among files and memory. This is as cheap as
    /// [`Reader::count`].
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn range_stats(&self, range: impl IntoKeyRange) -> Result<RangeStats> {
        self.ask(range, RangeStats::default(), estimate::range_stats)
    }

    /// How the rows or bytes that are stored in `range` are spread over the keys. The range is divided into
    /// buckets. For each bucket, the histogram says how many rows or bytes of the range lie before the end of the
    /// bucket.
    ///
    /// The histogram counts stored rows. A key may have a row in several files, or in memory and in a file. All
    /// these rows are counted. Erases are also counted. In each file, only the index nodes are read that lead to
    /// the ends of buckets. The caller may choose up to 65,536 buckets.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// use larch::stats::{Metric, Resolution};
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
    /// Fails as [`Reader::count`] does.
    pub fn histogram(&self, range: impl IntoKeyRange, metric: Metric, resolution: Resolution) -> Result<Histogram> {
        let total = Estimate::default();
        let buckets = vec![Bucket { end: None, through: total, value: 0 }];
        let nothing = Histogram { metric, resolution: 1, buckets, total, index_pages: 0 };
        self.ask(range, nothing, |session, table, span| shape::histogram(session, table, span, metric, resolution))
    }

    /// Points that divide `range` into `parts` parts with about equally many bytes. The result has at most
    /// `parts - 1` cut points, all within the range, in ascending order. If the range has too few data pages, the
    /// result has fewer cut points. The key of a cut point belongs to the part after the point. It need not be the
    /// key of a row.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn split_points(&self, range: impl IntoKeyRange, parts: u64) -> Result<Vec<CutPoint>> {
        self.ask(range, Vec::new(), |session, table, span| shape::split_points(session, table, span, parts))
    }

    /// Row `n` of all rows that a reader sees in `range`, counted from 0. Returns `None` if the range has no such
    /// row. In a part of the range in which only one file has keys, the index of the file says in which page the
    /// row is. In other parts, the keys are merged.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`](crate::Error::Grouped) if the values of the table are split into several column groups;
    /// otherwise fails as [`Reader::count`] does.
    pub fn nth(&self, range: impl IntoKeyRange, n: u64) -> Result<Option<(Key, V)>> {
        V::check(self.handle())?;
        self.ask(range, None, |session, table, span| {
            let Some(key) = exact::nth_key(session, table, span, n, self.readahead())? else { return Ok(None) };
            let mut read = PointRead::new(table, &key);
            let value = retry(session, || content_of(&mut read, session, session.cache(), self.wanted()))?;
            Ok(value.map(|value| (key.into(), value)))
        })
    }

    /// The key of the row that [`Reader::nth`] returns. This also works for tables with column groups.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn nth_key(&self, range: impl IntoKeyRange, n: u64) -> Result<Option<Key>> {
        let nth = |session: &Session, table: TableView<'_>, span: &KeyRange| {
            exact::nth_key(session, table, span, n, self.readahead())
        };
        Ok(self.ask(range, None, nth)?.map(Key::from))
    }

    /// Estimates where row `n` of all rows that a reader sees in `range` is. This reads only index nodes. If the
    /// range has a row `n`, this row is at or after the first cut point, and before the second one. If the first
    /// point is `None`, no better bound than the start of the range is known; if the second is `None`, no better
    /// bound than its end. The call tries about 64 points. For each point, it goes through the rows in memory.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn nth_between(&self, range: impl IntoKeyRange, n: u64) -> Result<(Option<CutPoint>, Option<CutPoint>)> {
        self.ask(range, (None, None), |session, table, span| shape::nth_between(session, table, span, n))
    }

    /// The keys of a random sample of up to `count` rows that a reader sees in `range`. The keys are sorted, and
    /// each key comes once. As long as nothing changes, the same `seed` gives the same sample. The call reads about
    /// one data page for each key. In addition, the call reads two data pages of each file that contains an end of
    /// the range.
    ///
    /// All stored rows, in files and in memory, are divided into `count` pieces of equal length, and one random
    /// row is taken from each piece. So a key that is stored in several places is more likely to be in the sample.
    /// If many rows are erased or stored twice, the sample may have fewer than `count` keys.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn sample(&self, range: impl IntoKeyRange, count: u64, seed: u64) -> Result<Vec<Key>> {
        self.ask(range, Vec::new(), |session, table, span| shape::sample(session, table, span, count, seed))
    }
}

#[cfg(test)]
mod tests;
