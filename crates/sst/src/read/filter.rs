//! Asking the filter of a file before its rows, and when that is worth reading it. It knows no levels.
//!
//! * A page of the filter is never waited for. It is asked if it is in memory; if it is not, the key may be there.
//! * The rows of a file lie in [`ZONES`] zones. Each zone counts its last look-ups, how many of them found nothing, and
//!   the pages of rows that were read from disk for those.
//! * The filter of a zone is worth reading if more than one in eight of the last look-ups found nothing, and if more
//!   pages of rows were read for them than the zone has. Where these pages stay in memory they are not read again, so
//!   there the filter is never read.
//! * The filter pages of the zone that are missing are then asked for, each once, in the round that brings a missing
//!   page of rows. The count of pages starts at zero again.
//! * If these filter pages are evicted before they denied enough keys, four times as many pages of rows must be read
//!   before the next time. So a cache that is too small for filters reads few of them.
//! * Where the filter was asked for it is asked before the rows. Elsewhere a look-up costs one load more than without a
//!   filter, and the filter is asked only once a page of rows is missing, when that costs nothing beside reading.
//!
//! Thread safe: counters are relaxed. A lost update only loses one sample.

use super::{Descent, LookUp, Row, Sst};
use crate::format::PageRows;
use crate::format::filter::{FilterLayout, hash_key, hash_prefix};
use crate::format::meta::{FilterTree, Tree, TreeKind};
use crate::key_range::successor;
use crate::row::Version;
use os::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use pages::{Address, PageKind, PageSource, Stop};
use std::ops::Bound;

/// Zones of a file. Partition `i` of the filter belongs to zone `i % ZONES`.
const ZONES: usize = 16;

/// The filter of a zone is judged after this many look-ups: fewer say little.
const MIN_LOOKS: u8 = 24;
/// When this many look-ups are counted, both counts are halved, and one page that was read for nothing is forgotten:
/// where some keys are found, look-ups of absent keys keep the pages of present ones warm.
const MAX_LOOKS: u8 = 48;
/// Doubt about a filter that was never in memory is 0, about others it is between these two. A doubt of n times the
/// least multiplies by n the pages that must be read for nothing before the filter is asked for again.
const MIN_DOUBT: u8 = 8;
const MAX_DOUBT: u8 = 128;

/// What the last look-ups in a file found, by zone.
#[derive(Debug, Default)]
pub struct FilterUse {
    zones: [AtomicU64; ZONES],
    /// A bit for each zone where the filter is asked first; above them, a bit for each where some of the last look-ups
    /// found nothing.
    summary: AtomicU32,
}

/// The last look-ups in a zone.
///
/// ```text
/// look-ups u8 | of these without a row u8 | doubt u8 | pages that may be asked for u8 | pages of rows read for those u32
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Looks {
    looks: u8,
    absent: u8,
    doubt: u8,
    left: u8,
    read: u32,
}

/// How large a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ZoneSize {
    /// Pages of rows, and a quarter more, because rows are not all of one length.
    data_pages: u32,
    /// Pages of the filter, and nodes on the way to one.
    partitions: u8,
    nodes: u8,
}

impl ZoneSize {
    /// The largest of a file with this main tree.
    fn of(main: &Tree, filter: &FilterTree, prefer_flat: bool) -> Self {
        let partitions = filter.tree.data_pages.div_ceil(ZONES as u64);
        let rows = u128::from(partitions) * u128::from(filter.partition_rows);
        let data_pages = u128::from(main.data_pages) * rows.min(main.totals.rows.into()) * 5;
        Self {
            data_pages: data_pages.div_ceil(u128::from(main.totals.rows) * 4).try_into().unwrap_or(u32::MAX),
            partitions: partitions.try_into().unwrap_or(u8::MAX),
            nodes: filter.tree.root(prefer_flat).height,
        }
    }
}

impl Looks {
    fn of(word: u64) -> Self {
        let [looks, absent, doubt, left, read @ ..] = word.to_le_bytes();
        Self { looks, absent, doubt, left, read: u32::from_le_bytes(read) }
    }

    fn word(self) -> u64 {
        u64::from(u32::from_le_bytes([self.looks, self.absent, self.doubt, self.left])) | u64::from(self.read) << 32
    }

    fn is_worth_reading(self) -> bool {
        self.looks >= MIN_LOOKS && u32::from(self.absent) * 8 > u32::from(self.looks)
    }

    /// Whether the filter is looked at before the rows: it has been in memory, or was asked for.
    fn is_first(self) -> bool {
        self.is_worth_reading() && self.doubt > 0
    }

    /// Whether a page of the filter may be asked for.
    fn may_ask(self, size: ZoneSize) -> bool {
        let times = self.doubt.max(MIN_DOUBT) / MIN_DOUBT;
        self.is_worth_reading() && (self.left > 0 || self.read > size.data_pages.saturating_mul(times.into()))
    }

    fn one_more(self) -> Self {
        let looks = self.looks + 1;
        if looks < MAX_LOOKS {
            Self { looks, ..self }
        } else {
            let read = self.read.saturating_sub(1);
            Self { looks: looks / 2, absent: self.absent / 2, read, ..self }
        }
    }

    /// The key was there. As long as every key is, nothing is counted.
    fn found(self) -> Self {
        if self.absent == 0 { Self { looks: 0, ..self } } else { self.one_more() }
    }

    /// The rows do not have the key.
    fn found_none(self) -> Self {
        let full = self.looks == self.absent && self.looks >= MIN_LOOKS;
        if full { self } else { Self { absent: self.absent + 1, ..self }.one_more() }
    }

    /// The rows do not have the key, and their page was read from disk for that.
    fn read_for_none(self) -> Self {
        Self { read: self.read.saturating_add(1), ..self.found_none() }
    }

    /// The filter denied the key, which shows that it is worth its pages.
    fn denied(self) -> Self {
        Self { doubt: self.doubt.saturating_sub(1).max(MIN_DOUBT), ..self.found_none() }
    }

    /// A page of the filter is asked for, or a node. The next ones are asked for after four times as many pages of
    /// rows; only denials bring that number down again.
    fn asked(self, size: ZoneSize, is_node: bool) -> Self {
        let looks = if self.left > 0 {
            self
        } else {
            let doubt = self.doubt.max(MIN_DOUBT).saturating_mul(4).min(MAX_DOUBT);
            Self { doubt, left: size.partitions.saturating_add(size.nodes), read: 0, ..self }
        };
        let most = if is_node { looks.left } else { looks.left.min(size.partitions) };
        Self { left: most.saturating_sub(1), ..looks }
    }

    /// A node is missing. If all on the way were asked for, one was evicted, and pages under it would be evicted too.
    fn has_lost_node(self, size: ZoneSize) -> bool {
        self.left > 0 && self.left <= size.partitions
    }
}

impl FilterUse {
    fn summary(&self) -> u32 {
        self.summary.load(Ordering::Relaxed)
    }

    fn is_first_anywhere(&self) -> bool {
        self.summary() & 0xffff != 0
    }

    fn of(&self, zone: usize) -> Looks {
        Looks::of(self.zones[zone].load(Ordering::Relaxed))
    }

    fn count(&self, zone: usize, change: impl Fn(Looks) -> Looks) {
        let before = self.of(zone);
        let after = change(before);
        if after == before {
            return;
        }
        self.zones[zone].store(after.word(), Ordering::Relaxed);
        let bits = |looks: Looks| u32::from(looks.is_first()) | u32::from(looks.absent > 0) << ZONES;
        let (had, has) = (bits(before), bits(after));
        if had & !has != 0 {
            self.summary.fetch_and(!((had & !has) << zone), Ordering::Relaxed);
        }
        if has & !had != 0 {
            self.summary.fetch_or((has & !had) << zone, Ordering::Relaxed);
        }
    }
}

/// The zone of row `row`.
fn zone_of(filter: &FilterTree, row: u64) -> usize {
    (row / u64::from(filter.partition_rows)) as usize % ZONES
}

/// What the filter says of a key.
enum Said {
    /// It is not in the file; the zone that it would be in.
    Absent(usize),
    /// It may be.
    Perhaps,
    /// It would say if this page were in memory.
    Missing(Address, PageKind),
}

impl Sst {
    /// As [`Sst::get`], which it spares if the filter is in memory and denies the key. A step; allocates nothing.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if one cannot be read, or is not what was written.
    pub fn get_filtered<S: PageSource + ?Sized>(
        &self,
        source: &S,
        key: &[u8],
        at: Version,
    ) -> Result<Option<Row>, Stop> {
        let Some(filter) = &self.meta.filter else { return self.get(source, key, at) };
        let is_first = self.filter_use.is_first_anywhere();
        if is_first && self.denies(source, filter, key) {
            return Ok(None);
        }
        let found = self.find(source, key, at, |look_up| match look_up {
            LookUp::Absent(first_row, page) => self.count_absent(source, zone_of(filter, first_row), &page.address()),
            LookUp::Found(row) if self.filter_use.summary() != 0 => {
                self.filter_use.count(zone_of(filter, row), Looks::found);
            }
            LookUp::Found(_) => {}
        });
        if let Err(Stop::Fault) = found {
            if !is_first && self.denies(source, filter, key) {
                return Ok(None);
            }
            self.ask_for_filter(source, filter, key);
        }
        found
    }

    /// Rows in the page at `at`, of this zone, do not have a key that was looked up.
    fn count_absent<S: PageSource + ?Sized>(&self, source: &S, zone: usize, at: &Address) {
        let was_read = source.take_read(self.file.at(at, PageKind::Data));
        self.filter_use.count(zone, if was_read { Looks::read_for_none } else { Looks::found_none });
    }

    /// Whether the filter is in memory and says that `key` is not in the file.
    fn denies<S: PageSource + ?Sized>(&self, source: &S, filter: &FilterTree, key: &[u8]) -> bool {
        match self.filter_says(source, filter, key, hash_key(key)) {
            Said::Absent(zone) => {
                self.filter_use.count(zone, Looks::denied);
                true
            }
            Said::Perhaps | Said::Missing(..) => false,
        }
    }

    /// What the partition under which `place` lies says of `hash`.
    fn filter_says<S: PageSource + ?Sized>(&self, source: &S, filter: &FilterTree, place: &[u8], hash: u64) -> Said {
        let descent = self.descent(TreeKind::Filter).expect("the caller has its tree");
        let page = match descent.peek_key(source, place) {
            Ok(Some(page)) => page,
            Ok(None) => return Said::Perhaps,
            Err((at, kind)) => return Said::Missing(at, kind),
        };
        let layout = FilterLayout::of(&page);
        if layout.may_contain(&page, hash) { Said::Perhaps } else { Said::Absent(zone_of(filter, layout.first_row())) }
    }

    /// Asks for the page of the filter that is missing on the way to `place`, if it is worth reading there. Only after
    /// a fault: it comes in the same round.
    fn ask_for_filter<S: PageSource + ?Sized>(&self, source: &S, filter: &FilterTree, place: &[u8]) {
        if self.filter_use.summary() == 0 {
            return;
        }
        // Where a key would be, by the nodes in memory.
        let main = self.meta.main.as_ref().expect("what faulted is there");
        let descent = Descent::new(&self.file, TreeKind::Main, main, self.prefer_flat);
        let Some(row) = descent.peek_first_row(source, place) else { return };
        let zone = zone_of(filter, row);
        let size = ZoneSize::of(main, filter, self.prefer_flat);
        let looks = self.filter_use.of(zone);
        if !looks.may_ask(size) {
            return;
        }
        let Said::Missing(at, kind) = self.filter_says(source, filter, place, 0) else { return };
        let is_node = kind != PageKind::Filter;
        if is_node && looks.has_lost_node(size) {
            self.filter_use.count(zone, |looks| Looks { left: 0, ..looks });
        } else if source.ahead(self.file.at(&at, kind)) {
            self.filter_use.count(zone, |looks| looks.asked(size, is_node));
        }
    }

    /// The prefix of all keys from `low` to `high`, if they have one and the filter those of its length.
    pub fn filtered_prefix<'k>(&self, low: Bound<&'k [u8]>, high: Bound<&[u8]>) -> Option<&'k [u8]> {
        common_prefix(low, high, self.meta.filter.as_ref()?.prefix_bytes.into())
    }

    /// Whether the filter is in memory and says that no key in the file lies between `low` and `high`, because all that
    /// do begin with the same bytes. It knows nothing of range erases.
    pub fn has_none_between<S: PageSource + ?Sized>(&self, source: &S, low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
        let Some((filter, prefix)) = self.meta.filter.as_ref().zip(self.filtered_prefix(low, high)) else {
            return false;
        };
        let Said::Absent(zone) = self.filter_says(source, filter, prefix, hash_prefix(prefix)) else { return false };
        self.filter_use.count(zone, Looks::denied);
        true
    }

    /// Notes how a seek for keys with `prefix` went, which has come to `row` in the page at `page`, or is beyond the
    /// last: whether it `found` one, or faulted.
    pub(super) fn note_seek<S: PageSource + ?Sized>(
        &self,
        source: &S,
        prefix: &[u8],
        row: u64,
        page: Option<&Address>,
        found: &Result<bool, Stop>,
    ) {
        let with_these = |filter: &&FilterTree| usize::from(filter.prefix_bytes) == prefix.len();
        let Some(filter) = self.meta.filter.as_ref().filter(with_these) else { return };
        match found {
            Ok(false) => match page {
                Some(page) => self.count_absent(source, zone_of(filter, row), page),
                None => self.filter_use.count(zone_of(filter, row), Looks::found_none),
            },
            Ok(true) if self.filter_use.summary() != 0 => self.filter_use.count(zone_of(filter, row), Looks::found),
            Err(Stop::Fault) => self.ask_for_filter(source, filter, prefix),
            Ok(true) | Err(Stop::Failed(_)) => {}
        }
    }
}

/// The first `bytes` bytes of all keys from `low` to `high`, if they are the same and not none.
fn common_prefix<'k>(low: Bound<&'k [u8]>, high: Bound<&[u8]>, bytes: usize) -> Option<&'k [u8]> {
    let (Bound::Included(first) | Bound::Excluded(first)) = low else { return None };
    let prefix = first.get(..bytes).filter(|prefix| !prefix.is_empty())?;
    // What is at least `prefix` and less than everything after the keys that begin with it begins with it.
    let is_within = match (successor(prefix), high) {
        (None, _) => true,
        (Some(_), Bound::Unbounded) => false,
        (Some(after), Bound::Included(last)) => last < after.as_slice(),
        (Some(after), Bound::Excluded(end)) => end <= after.as_slice(),
    };
    is_within.then_some(prefix)
}

#[cfg(test)]
mod tests;
