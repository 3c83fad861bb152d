//! Statistics of a table, as its users ask for them. The work is done in `stats/`.

use super::snapshot::Snapshot;
use super::table::Table;
use crate::bounds::{self, IntoKeyRange};
use crate::core::snapshots::PinnedVersion;
use crate::error::Result;
use crate::read::point::PointRead;
use crate::read::view::TableView;
use crate::read::{Key, Value, ahead};
use crate::stats::shape::Resolution;
use crate::stats::types::RangeStats;
use crate::stats::{estimate, exact, shape};
use os::sync::Arc;
use pages::{Reason, Session, retry};
use sst::KeyRange;
use sst::Readahead;
use sst::stats::{Bucket, CutPoint, Estimate, Histogram, Metric};

/// The statistics of a table, as of now or of a snapshot. Cheap; cloning shares it. Most of it is on [`Table`] too.
///
/// Estimates read index nodes only. What is left of a file's keys at an end of the range is known to a data page, so an
/// estimate is an interval; it holds the truth always. What is known of files that lie in the range as a whole is in the
/// manifest.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// let fruit = db.table("fruit")?;
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
    /// Of the snapshot that is seen; `None`: what there is when it is asked.
    pin: Option<Arc<PinnedVersion>>,
}

impl Statistics {
    /// The same of `snapshot`, which is kept as long as this is.
    pub fn at(&self, snapshot: &Snapshot) -> Result<Self> {
        Ok(Self { pin: Some(snapshot.pin_of(&self.table)?.clone()), ..self.clone() })
    }

    /// Asks what lies in `range`; `otherwise` if no key can.
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
        ahead::readahead(&self.table.core().env.cache)
    }

    /// About how many rows a reader sees in `range`. Reads at most two ways down the index of each file that has an end of
    /// the range in it, and no data page.
    ///
    /// Where one source alone has keys (a file, a level below the first, the memtables), the interval is as wide as what is
    /// not known of the data pages at its ends. Where several have, it reaches from what the largest shows to all of them
    /// together; see [`Statistics::count_exact`].
    pub fn count(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.ask(range, Estimate::default(), estimate::count)
    }

    /// How many rows a reader sees in `range`, exactly. Where one file alone has keys it reads at most two of its data
    /// pages; where several have, or some are hidden by a range erase, it merges their keys.
    pub fn count_exact(&self, range: impl IntoKeyRange) -> Result<u64> {
        self.ask(range, 0, |session, table, span| exact::count(session, table, span, self.readahead()))
    }

    /// About how many bytes `range` takes: in files as in [`RangeStats::file_bytes`], and in memory.
    pub fn size(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.ask(range, Estimate::default(), estimate::size)
    }

    /// What lies in `range`, and where. As cheap as [`Statistics::count`].
    pub fn range_stats(&self, range: impl IntoKeyRange) -> Result<RangeStats> {
        self.ask(range, RangeStats::default(), estimate::range_stats)
    }

    /// How the rows or bytes stored in `range` are spread over its keys. Each bucket's end says how much comes before it.
    ///
    /// What is counted is what is stored: a key that is in several files, or in memory and a file, counts in each, and so
    /// do erases. Of each file only the nodes that matter for the ends of buckets are read.
    pub fn histogram(&self, range: impl IntoKeyRange, metric: Metric, resolution: Resolution) -> Result<Histogram> {
        let total = Estimate::default();
        let buckets = vec![Bucket { end: None, through: total, value: 0 }];
        let nothing = Histogram { metric, resolution: 1, buckets, total, index_pages: 0 };
        self.ask(range, nothing, |session, table, span| shape::histogram(session, table, span, metric, resolution))
    }

    /// Where to cut `range` in `parts` parts of about equal bytes: at most `parts - 1` places within it, ascending. Fewer
    /// where there are too few data pages. A place belongs to the part after it; it need not be a row's key.
    pub fn split_points(&self, range: impl IntoKeyRange, parts: u64) -> Result<Vec<CutPoint>> {
        self.ask(range, Vec::new(), |session, table, span| shape::split_points(session, table, span, parts))
    }

    /// Row `n` of those that a reader sees in `range`, counted from 0; `None` if there are no more than `n`. Passes over
    /// rows by the index where one file alone has keys, and merges keys elsewhere.
    pub fn nth(&self, range: impl IntoKeyRange, n: u64) -> Result<Option<(Key, Value)>> {
        self.table.inner().check_whole()?;
        self.ask(range, None, |session, table, span| {
            let Some(key) = exact::nth_key(session, table, span, n, self.readahead())? else { return Ok(None) };
            let mut read = PointRead::new(table, &key);
            let value = retry(session, || read.get(session, session.cache()))?;
            Ok(value.map(|value| (key.into(), value)))
        })
    }

    /// The key of row `n`, as in [`Statistics::nth`]; of tables with column groups too.
    pub fn nth_key(&self, range: impl IntoKeyRange, n: u64) -> Result<Option<Key>> {
        let nth = |session: &Session, table: TableView<'_>, span: &KeyRange| {
            exact::nth_key(session, table, span, n, self.readahead())
        };
        Ok(self.ask(range, None, nth)?.map(Key::from))
    }

    /// About where row `n` of those that a reader sees in `range` is, from index nodes alone: at or after the first cut
    /// point and before the second, if there are more than `n` rows. `None` on a side: not known better than the range.
    /// There are some 64 points to choose from. Rows in memory are walked for each that is tried.
    pub fn nth_between(&self, range: impl IntoKeyRange, n: u64) -> Result<(Option<CutPoint>, Option<CutPoint>)> {
        self.ask(range, (None, None), |session, table, span| shape::nth_between(session, table, span, n))
    }

    /// Keys of up to `count` rows that a reader sees in `range`, sorted, each once; the same for the same `seed` as long
    /// as nothing changes. Reads about a data page a key, and two for each file with an end of the range in it.
    ///
    /// They are drawn from the rows stored, evenly spread: one by chance from each of `count` equal pieces of all files
    /// and memtables, one after the other. So a key that is stored in several places is likelier to come, and where much
    /// is erased or stored twice fewer than `count` may.
    pub fn sample(&self, range: impl IntoKeyRange, count: u64, seed: u64) -> Result<Vec<Key>> {
        self.ask(range, Vec::new(), |session, table, span| shape::sample(session, table, span, count, seed))
    }
}

impl Table {
    /// The statistics of the table, to be asked as of a snapshot too.
    pub fn statistics(&self) -> Statistics {
        Statistics { table: self.clone(), pin: None }
    }

    /// About how many rows there are in `range`, from index nodes alone: see [`Statistics::count`].
    pub fn count(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.statistics().count(range)
    }

    /// How many rows there are in `range`: see [`Statistics::count_exact`].
    pub fn count_exact(&self, range: impl IntoKeyRange) -> Result<u64> {
        self.statistics().count_exact(range)
    }

    /// About how many bytes `range` takes: see [`Statistics::size`].
    pub fn size(&self, range: impl IntoKeyRange) -> Result<Estimate> {
        self.statistics().size(range)
    }

    /// What lies in `range`, and where: see [`Statistics::range_stats`].
    pub fn range_stats(&self, range: impl IntoKeyRange) -> Result<RangeStats> {
        self.statistics().range_stats(range)
    }

    /// How rows or bytes are spread over the keys of `range`: see [`Statistics::histogram`].
    pub fn histogram(&self, range: impl IntoKeyRange, metric: Metric, resolution: Resolution) -> Result<Histogram> {
        self.statistics().histogram(range, metric, resolution)
    }

    /// Where to cut `range` in parts of about equal bytes: see [`Statistics::split_points`].
    pub fn split_points(&self, range: impl IntoKeyRange, parts: u64) -> Result<Vec<CutPoint>> {
        self.statistics().split_points(range, parts)
    }

    /// Row `n` of `range`, counted from 0: see [`Statistics::nth`].
    pub fn nth(&self, range: impl IntoKeyRange, n: u64) -> Result<Option<(Key, Value)>> {
        self.statistics().nth(range, n)
    }

    /// Keys of some rows of `range`: see [`Statistics::sample`].
    pub fn sample(&self, range: impl IntoKeyRange, count: u64, seed: u64) -> Result<Vec<Key>> {
        self.statistics().sample(range, count, seed)
    }
}
