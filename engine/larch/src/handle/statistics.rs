//! The statistics that a [`Reader`] offers: counts, sizes, histograms, samples. `sizes/` computes them.

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

/// Statistics of a table, as it is now or in a snapshot. A transaction that asks for a statistic depends on all
/// rows of the range, as if it had read them. Statistics do not count the transaction's own writes: once it has
/// written to a table, they fail with [`Error::OwnWrites`](crate::Error::OwnWrites).
///
/// An estimate reads only index nodes, no data pages. Nodes do not say how many rows of a data page are in a range
/// that begins or ends inside the page, so an estimate has a lower and an upper bound, and the true number always
/// lies between them. For a file that lies in the range as a whole, the manifest has the numbers.
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
    /// Calls `ask` with the keys of `range`, or returns `otherwise` if no key can be in the range.
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

    /// Makes the transaction, if there is one, depend on all rows in `range`. Fails if it has written to the table.
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

    /// Estimates how many rows the reader sees in `range`. In each file that contains an end of the range, this
    /// reads the index nodes on the path to that end, and no data page.
    ///
    /// Each file of level 0, each deeper level, and the memtables are sources of rows. If only one source has keys
    /// in the range, the bounds of the estimate differ by at most the rows of the data pages in which the range
    /// begins and ends. Otherwise, the lower bound is that of the source with the most rows, and the upper bound is
    /// the sum over all sources. [`Reader::count_exact`] returns the exact number.
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
    /// * [`Error::Page`](crate::Error::Page) if a page cannot be read or is corrupt.
    /// * [`Error::OwnWrites`](crate::Error::OwnWrites) in a transaction that has written to the table.
    /// * [`Error::Log`](crate::Error::Log) or [`Error::Outdated`](crate::Error::Outdated) if the database is
    ///   [read-only](crate::Builder::read_only) and a writer replaces its files.
    pub fn count(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.ask(range, Estimate::default(), estimate::count)
    }

    /// The exact number of rows that the reader sees in `range`. Where only one file has keys, this reads at most
    /// two data pages of the file. Where the keys of several files overlap, or range erases hide rows, it merges
    /// the keys, which reads all data pages there.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn count_exact(&self, range: impl IntoKeyRange) -> Result<u64> {
        self.ask(range, 0, |session, table, span| exact::count(session, table, span, self.readahead()))
    }

    /// The exact number of rows in the table: [`Reader::count_exact`] of all keys. Unlike the length of a
    /// collection in memory, this may take long. [`Reader::count`] is fast.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn len(&self) -> Result<u64> {
        self.count_exact(..)
    }

    /// Estimates how many bytes `range` takes in memory and in files, see [`RangeStats::file_bytes`].
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn size(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.ask(range, Estimate::default(), estimate::size)
    }

    /// Estimates the rows and bytes in `range`, and how they are divided among files and memory. As cheap as
    /// [`Reader::count`].
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn range_stats(&self, range: impl IntoKeyRange) -> Result<RangeStats> {
        self.ask(range, RangeStats::default(), estimate::range_stats)
    }

    /// Shows how the stored rows or bytes in `range` are spread over the keys. The range is divided into up to
    /// 65,536 buckets. For each bucket, the histogram says how many rows or bytes of the range lie before its end.
    ///
    /// Stored rows are counted: a key may have a row in several files, or in memory and in a file, and all of them
    /// count, as do erases. Only the index nodes that lead to the ends of buckets are read.
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

    /// Points that divide `range` into `parts` parts of about equal bytes: at most `parts - 1` cut points within
    /// the range, in ascending order, and fewer if the range has too few data pages. The key of a cut point is in
    /// the part after it, and need not be the key of a row.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn split_points(&self, range: impl IntoKeyRange, parts: u64) -> Result<Vec<CutPoint>> {
        self.ask(range, Vec::new(), |session, table, span| shape::split_points(session, table, span, parts))
    }

    /// Row `n` of the rows that the reader sees in `range`, counted from 0, or `None` if the range has fewer rows.
    /// Where only one file has keys, its index says in which page the row is. Elsewhere, the keys are merged.
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

    /// The key of the row that [`Reader::nth`] returns. Works for tables with column groups, too.
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

    /// Estimates where row `n` of the rows that the reader sees in `range` is, from index nodes alone. The row, if
    /// the range has it, is at or after the first cut point and before the second. `None` means that no better
    /// bound than the start or the end of the range is known. The call tries about 64 points, and goes through the
    /// rows in memory for each.
    ///
    /// # Errors
    ///
    /// Fails as [`Reader::count`] does.
    pub fn nth_between(&self, range: impl IntoKeyRange, n: u64) -> Result<(Option<CutPoint>, Option<CutPoint>)> {
        self.ask(range, (None, None), |session, table, span| shape::nth_between(session, table, span, n))
    }

    /// The keys of a random sample of up to `count` rows that the reader sees in `range`, sorted and without
    /// duplicates. The same `seed` gives the same sample as long as nothing changes. The call reads about one data
    /// page for each key, and two data pages of each file that contains an end of the range.
    ///
    /// All stored rows, in files and in memory, are divided into `count` pieces of equal length, and one random row
    /// is taken from each. So a key that is stored in several places is more likely to be sampled. If many rows are
    /// erased or stored twice, the sample may have fewer than `count` keys.
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
