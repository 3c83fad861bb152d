//! Statistics of a table, as its users ask for them. `sizes/` does the work.

use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::{Error, Result};
use crate::read::{Content, Reader};
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

/// Statistics of a table, as of now or of a snapshot. In a transaction a statistic counts as a read of its range. It
/// does not count rows that the transaction has written itself. So after the first write to the table it is refused
/// with [`Error::OwnWrites`](crate::Error::OwnWrites).
///
/// Estimates read index nodes and no data pages. Only a data page knows which of its rows lie before an end of the
/// range. So an estimate is an interval, which always contains the true number. For a file that lies in the range as
/// a whole, the manifest has all that is needed.
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
    /// Asks what lies in `range`. If no key can be in the range, the answer is `otherwise`.
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

    /// Notes that a transaction depends on the rows in a range. Refuses to count if the transaction has written to
    /// the table.
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

    /// About how many rows a reader sees in `range`. In each file that has an end of the range within it, it reads
    /// the way down the index to this end. It reads no data page.
    ///
    /// If only one source has keys (a file, a level below the first, or the memtables), the interval is as wide as
    /// the number of rows that are not known in the data pages at its ends. If several sources have keys, it reaches
    /// from the number of rows in the largest source to the number of rows in all sources together.
    /// [`Reader::count_exact`] gives an exact number.
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
    /// * [`Error::Page`](crate::Error::Page) if a page cannot be read, or if its bytes are not those that were written.
    /// * [`Error::Log`](crate::Error::Log) and [`Error::Outdated`](crate::Error::Outdated) only in a database that was
    ///   opened [read-only](crate::Builder::read_only), while a writer replaces its files.
    pub fn count(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.ask(range, Estimate::default(), estimate::count)
    }

    /// How many rows a reader sees in `range`, exactly. Where only one file has keys, it reads at most two data
    /// pages of this file. Where several files have keys, or range erases hide some rows, it merges the keys. For
    /// this it reads all data pages there.
    ///
    /// # Errors
    ///
    /// As [`Reader::count`].
    pub fn count_exact(&self, range: impl IntoKeyRange) -> Result<u64> {
        self.ask(range, 0, |session, table, span| exact::count(session, table, span, self.readahead()))
    }

    /// How many rows a reader sees, exactly. It is [`Reader::count_exact`] of all keys, and costs as much, unlike
    /// the length of a collection in memory. [`Reader::count`] is fast.
    ///
    /// # Errors
    ///
    /// As [`Reader::count`].
    pub fn len(&self) -> Result<u64> {
        self.count_exact(..)
    }

    /// About how many bytes `range` takes, in memory and in files. For files see [`RangeStats::file_bytes`].
    ///
    /// # Errors
    ///
    /// As [`Reader::count`].
    pub fn size(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.ask(range, Estimate::default(), estimate::size)
    }

    /// What lies in `range`, and where. It is as cheap as [`Reader::count`].
    ///
    /// # Errors
    ///
    /// As [`Reader::count`].
    pub fn range_stats(&self, range: impl IntoKeyRange) -> Result<RangeStats> {
        self.ask(range, RangeStats::default(), estimate::range_stats)
    }

    /// How the rows or bytes that are stored in `range` are spread over its keys. The end of each bucket says how
    /// much comes before this end.
    ///
    /// Stored rows are counted: a key that is in several files, or in memory and in a file, counts in each of these
    /// places. Erases count, too. In each file only the nodes that matter for the ends of buckets are read. If the
    /// caller gives the number of buckets, it is at most 65,536.
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
    /// As [`Reader::count`].
    pub fn histogram(&self, range: impl IntoKeyRange, metric: Metric, resolution: Resolution) -> Result<Histogram> {
        let total = Estimate::default();
        let buckets = vec![Bucket { end: None, through: total, value: 0 }];
        let nothing = Histogram { metric, resolution: 1, buckets, total, index_pages: 0 };
        self.ask(range, nothing, |session, table, span| shape::histogram(session, table, span, metric, resolution))
    }

    /// Where to cut `range` into `parts` parts of about equal bytes: at most `parts - 1` cut points within the
    /// range, in ascending order. If the range has too few data pages, there are fewer cut points. A cut point
    /// belongs to the part after it, and need not be the key of a row.
    ///
    /// # Errors
    ///
    /// As [`Reader::count`].
    pub fn split_points(&self, range: impl IntoKeyRange, parts: u64) -> Result<Vec<CutPoint>> {
        self.ask(range, Vec::new(), |session, table, span| shape::split_points(session, table, span, parts))
    }

    /// Row `n` of the rows that a reader sees in `range`, counted from 0. `None` if the range has fewer rows. Where
    /// only one file has keys, the index says which page has the row. Elsewhere keys are merged.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`](crate::Error::Grouped) if the values of the table are split into several column groups;
    /// otherwise as [`Reader::count`].
    pub fn nth(&self, range: impl IntoKeyRange, n: u64) -> Result<Option<(Key, V)>> {
        V::check(self.handle())?;
        self.ask(range, None, |session, table, span| {
            let Some(key) = exact::nth_key(session, table, span, n, self.readahead())? else { return Ok(None) };
            let mut read = PointRead::new(table, &key);
            let value = retry(session, || V::get(&mut read, session, session.cache(), self.wanted()))?;
            Ok(value.map(|value| (key.into(), value)))
        })
    }

    /// The key of row `n`, as in [`Reader::nth`]. It works for tables with column groups, too.
    ///
    /// # Errors
    ///
    /// As [`Reader::count`].
    pub fn nth_key(&self, range: impl IntoKeyRange, n: u64) -> Result<Option<Key>> {
        let nth = |session: &Session, table: TableView<'_>, span: &KeyRange| {
            exact::nth_key(session, table, span, n, self.readahead())
        };
        Ok(self.ask(range, None, nth)?.map(Key::from))
    }

    /// About where row `n` of the rows that a reader sees in `range` is. It reads index nodes only. If the range has
    /// more than `n` rows, row `n` is at or after the first cut point and before the second cut point. `None` on a
    /// side means that no better bound is known than the end of the range. About 64 points are tried, and for each
    /// point the rows in memory are walked.
    ///
    /// # Errors
    ///
    /// As [`Reader::count`].
    pub fn nth_between(&self, range: impl IntoKeyRange, n: u64) -> Result<(Option<CutPoint>, Option<CutPoint>)> {
        self.ask(range, (None, None), |session, table, span| shape::nth_between(session, table, span, n))
    }

    /// Keys of up to `count` rows that a reader sees in `range`, sorted, each key once. The result is the same for
    /// the same `seed` as long as nothing changes. It reads about one data page for each key. It also reads two data
    /// pages for each file that has an end of the range within it.
    ///
    /// The stored rows of all files and memtables are cut into `count` equal pieces, and one row is drawn at random
    /// from each piece. So a key that is stored in several places is drawn more often, and there may be fewer than
    /// `count` keys where many rows are erased or stored twice.
    ///
    /// # Errors
    ///
    /// As [`Reader::count`].
    pub fn sample(&self, range: impl IntoKeyRange, count: u64, seed: u64) -> Result<Vec<Key>> {
        self.ask(range, Vec::new(), |session, table, span| shape::sample(session, table, span, count, seed))
    }
}

#[cfg(test)]
mod tests;
