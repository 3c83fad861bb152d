//! Judges when the filter of a file is worth reading, by what the last look-ups in the file found. This module
//! knows no keys and reads no pages.
//!
//! * The rows of a file lie in [`ZONES`] zones. For each zone, this module counts three things: the last look-ups,
//!   those of them that found nothing, and the pages of rows that were read from disk for look-ups that found
//!   nothing.
//! * The filter is *of use* in a zone if more than one in eight of the last look-ups found nothing. If the filter
//!   is of use in some zone, it is asked before the rows, as far as it is in memory. Missing pages of it are read
//!   into unused memory, if there is any.
//! * If the cache is full, the filter must also be worth reading. It is worth reading in a zone where it is of
//!   use, once enough pages of rows were read for look-ups that found nothing. Enough means more pages than the
//!   zone has, or more than [`READS_FOR_A_PAGE`] for each page of the filter. If the pages of rows stay in memory,
//!   they are not read again, so the count does not grow.
//! * When the missing filter pages of the zone are asked for, the count of pages read for nothing starts at zero
//!   again.
//! * The cache may evict these filter pages before they have denied enough keys. Then four times as many pages of
//!   rows must be read for nothing before the filter is asked for again. So a cache that is too small for filters
//!   seldom reads them.
//!
//! Thread safe: counters are relaxed. A lost update loses only one sample.

use crate::format::meta::{FilterTree, Tree};
use os::sync::atomic::{AtomicU64, Ordering};

/// The number of zones of a file. Partition `i` of the filter belongs to zone `i % ZONES`.
const ZONES: usize = 16;

/// The filter of a zone is judged only after this many look-ups: fewer say little.
const MIN_LOOKS: u8 = 24;
/// When this many look-ups are counted, the number of look-ups and the number of those that found nothing are
/// halved. In addition, one page that was read for nothing is no longer counted: if some look-ups find their keys,
/// the pages that are read for absent keys are of use for present keys, too.
const MAX_LOOKS: u8 = 48;
/// In a zone with more pages of rows than this, a page of a filter is worth reading once this many of them were
/// read for nothing. If rows are long, a page of the filter stands for hundreds of pages of rows. Reading them all,
/// only to learn whether they stay in memory, would cost more than the page of the filter ever can.
const READS_FOR_A_PAGE: u32 = 32;
/// The doubt about a filter is 0 until `Looks::asked` counts a request for it, and then stays between these two
/// values. A doubt of n times the least value multiplies by n how many pages must be read for nothing before the
/// filter is asked for again.
const MIN_DOUBT: u8 = 8;
const MAX_DOUBT: u8 = 128;

/// What the last look-ups in a file found, by zone.
#[derive(Debug, Default)]
pub struct FilterUse {
    zones: [AtomicU64; ZONES],
    summary: AtomicU64,
}

/// What a look-up must know about the zones, without reading their counters.
///
/// ```text
/// bits  0-15   zones where the filter is of use
/// bits 16-31   zones where some of the last look-ups found nothing
/// bits 32-47   zones where one more key that the filter denies changes nothing
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary(u64);

impl Summary {
    fn of(looks: Looks, zone: usize) -> Self {
        let bits = u64::from(looks.is_filter_of_use())
            | u64::from(looks.absent > 0) << ZONES
            | u64::from(looks.denied() == looks) << (2 * ZONES);
        Self(bits << zone)
    }

    /// The bits of one zone.
    fn of_zone(self, zone: usize) -> Self {
        Self(self.0 & (1 | 1 << ZONES | 1 << (2 * ZONES)) << zone)
    }

    /// Whether the outcome "found" changes no count: as long as every key is found, nothing is counted.
    #[inline]
    pub fn is_all_found(self) -> bool {
        self.0 >> ZONES & 0xffff == 0
    }

    /// Whether the filter is asked before the rows.
    #[inline]
    pub fn asks_first(self) -> bool {
        self.0 & 0xffff != 0
    }

    /// Whether one more denied key changes no count, in whichever zone of `filter` the key lies.
    #[inline]
    pub fn is_all_denied(self, filter: &FilterTree) -> bool {
        let zones = (1 << filter.tree.data_pages.min(ZONES as u64)) - 1;
        self.0 >> (2 * ZONES) & zones == zones
    }
}

/// The last look-ups in a zone.
///
/// ```text
/// look-ups u8 | of these without a row u8 | doubt u8 | pages that may be asked for u8 | pages of rows read for those u32
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Looks {
    looks: u8,
    absent: u8,
    doubt: u8,
    left: u8,
    read: u32,
}

/// The size of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneSize {
    /// The number of pages of rows in the zone, plus a quarter because rows differ in length.
    data_pages: u32,
    /// The number of pages of the filter, and the number of nodes on the way to one of them.
    partitions: u8,
    nodes: u8,
}

impl ZoneSize {
    /// The size of the largest zone of a file with this main tree.
    pub fn of(main: &Tree, filter: &FilterTree, prefer_flat: bool) -> Self {
        let partitions = filter.tree.data_pages.div_ceil(ZONES as u64);
        let rows = u128::from(partitions) * u128::from(filter.partition_rows);
        let data_pages = u128::from(main.data_pages) * rows.min(main.totals.rows.into()) * 5;
        Self {
            data_pages: data_pages.div_ceil(u128::from(main.totals.rows) * 4).try_into().unwrap_or(u32::MAX),
            partitions: partitions.try_into().unwrap_or(u8::MAX),
            nodes: filter.tree.root(prefer_flat).height,
        }
    }

    /// How many pages of rows must be read for nothing before the filter is read, if there is no doubt about the
    /// filter.
    fn reads_for_filter(self) -> u32 {
        let filter_pages = u32::from(self.partitions) + u32::from(self.nodes);
        self.data_pages.min(READS_FOR_A_PAGE * filter_pages)
    }
}

impl Looks {
    pub fn of(word: u64) -> Self {
        let [looks, absent, doubt, left, read @ ..] = word.to_le_bytes();
        Self { looks, absent, doubt, left, read: u32::from_le_bytes(read) }
    }

    pub fn word(self) -> u64 {
        u64::from(u32::from_le_bytes([self.looks, self.absent, self.doubt, self.left])) | u64::from(self.read) << 32
    }

    /// Whether enough look-ups find nothing, so that asking the filter for each key costs less than it saves.
    pub fn is_filter_of_use(self) -> bool {
        self.looks >= MIN_LOOKS && u32::from(self.absent) * 8 > u32::from(self.looks)
    }

    /// Whether a page of the filter may be asked for even if it takes memory from other pages.
    pub fn may_ask(self, size: ZoneSize) -> bool {
        let times = self.doubt.max(MIN_DOUBT) / MIN_DOUBT;
        let enough = size.reads_for_filter().saturating_mul(times.into());
        self.is_filter_of_use() && (self.left > 0 || self.read > enough)
    }

    pub fn one_more(self) -> Self {
        let looks = self.looks + 1;
        if looks < MAX_LOOKS {
            Self { looks, ..self }
        } else {
            let read = self.read.saturating_sub(1);
            Self { looks: looks / 2, absent: self.absent / 2, read, ..self }
        }
    }

    /// Notes that the rows have the key. As long as every look-up finds its key, nothing is counted.
    pub fn found(self) -> Self {
        if self.absent == 0 { Self { looks: 0, ..self } } else { self.one_more() }
    }

    /// Notes that the rows do not have the key.
    pub fn found_none(self) -> Self {
        let full = self.looks == self.absent && self.looks >= MIN_LOOKS;
        if full { self } else { Self { absent: self.absent + 1, ..self }.one_more() }
    }

    /// Notes that the rows do not have the key, and that their page was read from disk to find that out.
    pub fn read_for_none(self) -> Self {
        Self { read: self.read.saturating_add(1), ..self.found_none() }
    }

    /// Notes that the filter has denied the key. This lowers the doubt whether the filter is worth the memory of
    /// its pages.
    pub fn denied(self) -> Self {
        Self { doubt: self.doubt.min(self.doubt.saturating_sub(1).max(MIN_DOUBT)), ..self.found_none() }
    }

    /// Notes that a partition of the filter or a node above partitions is asked for. Before such pages are asked
    /// for again, four times as many pages of rows must be read for nothing. Only denials reduce that number
    /// again.
    pub fn asked(self, size: ZoneSize, is_node: bool) -> Self {
        let looks = if self.left > 0 {
            self
        } else {
            let doubt = self.doubt.max(MIN_DOUBT).saturating_mul(4).min(MAX_DOUBT);
            Self { doubt, left: size.partitions.saturating_add(size.nodes), read: 0, ..self }
        };
        let most = if is_node { looks.left } else { looks.left.min(size.partitions) };
        Self { left: most.saturating_sub(1), ..looks }
    }

    /// Stops asking for filter pages until enough pages of rows have again been read for nothing.
    pub fn stops_asking(self) -> Self {
        Self { left: 0, ..self }
    }

    /// Whether a node of the filter that is missing now was evicted: this is so if all nodes on the way were asked
    /// for already. In this case, the cache would evict the pages under the node, too.
    pub fn has_lost_node(self, size: ZoneSize) -> bool {
        self.left > 0 && self.left <= size.partitions
    }
}

impl FilterUse {
    #[inline]
    pub(super) fn summary(&self) -> Summary {
        Summary(self.summary.load(Ordering::Relaxed))
    }

    pub(super) fn of(&self, zone: usize) -> Looks {
        Looks::of(self.zones[zone].load(Ordering::Relaxed))
    }

    pub(super) fn count(&self, zone: usize, change: impl Fn(Looks) -> Looks) {
        let before = self.of(zone);
        let after = change(before);
        if after != before {
            self.zones[zone].store(after.word(), Ordering::Relaxed);
        }
        // The new state is compared with the summary itself, and not with the state before. If two threads count
        // at the same time, they may leave a wrong summary. Then the next thread that counts corrects it.
        let (Summary(had), Summary(has)) = (self.summary().of_zone(zone), Summary::of(after, zone));
        if had & !has != 0 {
            self.summary.fetch_and(!(had & !has), Ordering::Relaxed);
        }
        if has & !had != 0 {
            self.summary.fetch_or(has & !had, Ordering::Relaxed);
        }
    }
}

/// The zone of row `row`.
pub(super) fn zone_of(filter: &FilterTree, row: u64) -> usize {
    (row / u64::from(filter.partition_rows)) as usize % ZONES
}

#[cfg(test)]
mod tests;
