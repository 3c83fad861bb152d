//! Asking the filter of a file before its rows, and the policy of it. It knows no levels.
//!
//! * A page of the filter is never waited for. It is looked at if it is in memory; if it is not, the key may be there.
//! * The filter is worth a read where keys are often looked for in vain, more than one in eight of the last looks at a part
//!   of the file, and where the pages of rows that this takes do not stay in memory: more of them were read in vain than
//!   there are. Then what is missing of the filter of this part is asked for, once, with the page of rows that is missing and
//!   in the same round. From there what is read in vain is counted anew. So before each page of the filter more pages of rows
//!   are read than it speaks for, and where these all stay in memory it is never read.
//! * If what was asked for is gone before it was of use often enough, four times as much must be read in vain before the next
//!   time: a cache too small for filters reads few.
//! * Where it was asked for it is looked at before the rows. Elsewhere a look-up costs one load more than without a filter,
//!   and the filter is looked at only once a page of rows is missing, when looking costs nothing beside reading.
//!
//! Thread safe: counters are relaxed, and one that is overwritten is an opinion about a look less.

use super::{Descent, LookUp, Row, Sst};
use crate::format::PageRows;
use crate::format::filter::{FilterLayout, hash_key, hash_prefix};
use crate::format::meta::{FilterTree, Tree, TreeKind, successor};
use crate::row::Version;
use os::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use pages::{Address, PageKind, PageSource, Stop};
use std::ops::Bound;

/// Parts of a file that are counted apart: a partition each, and from there on in turn.
const PARTS: usize = 16;

/// Looks that an opinion takes: chance says little of fewer.
const MIN_LOOKS: u8 = 24;
/// Looks that count. When there are as many, the older half counts half, and one page read in vain is forgotten: where some
/// keys are found, the pages that few are read from in vain are warmer for the looks in vain.
const MAX_LOOKS: u8 = 48;
/// Doubt about a filter that was never in memory is 0; of others at least and at most this much. By as many times the
/// least more must be read in vain before it is asked for.
const MIN_DOUBT: u8 = 8;
const MAX_DOUBT: u8 = 128;

/// What became of the last look-ups in a file, by part of it.
#[derive(Debug, Default)]
pub struct FilterUse {
    parts: [AtomicU64; PARTS],
    /// A bit for each part where the filter is looked at first; above them, one for each where the last looks were not all
    /// found.
    summary: AtomicU32,
}

/// The last look-ups in a part.
///
/// ```text
/// looks u8 | of these in vain u8 | doubt u8 | pages that may be asked for u8 | pages of rows read in vain u32
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Looks {
    looks: u8,
    absent: u8,
    doubt: u8,
    left: u8,
    read: u32,
}

/// How large a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Pages of rows, and a quarter more, because rows are not all of one length.
    data_pages: u32,
    /// Pages of the filter, and nodes on the way to one.
    partitions: u8,
    nodes: u8,
}

impl Part {
    /// The largest of a file with this main tree.
    fn of(main: &Tree, filter: &FilterTree, prefer_flat: bool) -> Self {
        let partitions = filter.tree.data_pages.div_ceil(PARTS as u64);
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

    fn is_wanted(self) -> bool {
        self.looks >= MIN_LOOKS && u32::from(self.absent) * 8 > u32::from(self.looks)
    }

    /// Whether the filter is looked at before the rows: it has been in memory, or was asked for.
    fn is_first(self) -> bool {
        self.is_wanted() && self.doubt > 0
    }

    /// Whether a page of the filter may be asked for.
    fn may_ask(self, part: Part) -> bool {
        let times = self.doubt.max(MIN_DOUBT) / MIN_DOUBT;
        self.is_wanted() && (self.left > 0 || self.read > part.data_pages.saturating_mul(times.into()))
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

    /// The key was there. After none in vain there is nothing to compare with.
    fn found(self) -> Self {
        if self.absent == 0 { Self { looks: 0, ..self } } else { self.one_more() }
    }

    /// The rows were looked at in vain.
    fn in_vain(self) -> Self {
        let full = self.looks == self.absent && self.looks >= MIN_LOOKS;
        if full { self } else { Self { absent: self.absent + 1, ..self }.one_more() }
    }

    /// And their page was read for that.
    fn read_in_vain(self) -> Self {
        Self { read: self.read.saturating_add(1), ..self.in_vain() }
    }

    /// The filter denied the key. So it is worth a page, some time.
    fn denied(self) -> Self {
        Self { doubt: self.doubt.saturating_sub(1).max(MIN_DOUBT), ..self.in_vain() }
    }

    /// A page of the filter is asked for, or a node. What must be read in vain for the next ones is four times as much, and
    /// only denials set it back: pages that were read for a few did not pay.
    fn asked(self, part: Part, is_node: bool) -> Self {
        let looks = if self.left > 0 {
            self
        } else {
            let doubt = self.doubt.max(MIN_DOUBT).saturating_mul(4).min(MAX_DOUBT);
            Self { doubt, left: part.partitions.saturating_add(part.nodes), read: 0, ..self }
        };
        let most = if is_node { looks.left } else { looks.left.min(part.partitions) };
        Self { left: most.saturating_sub(1), ..looks }
    }

    /// A node is missing. If all on the way were asked for, one is gone: so would be what is under it.
    fn has_lost_node(self, part: Part) -> bool {
        self.left > 0 && self.left <= part.partitions
    }
}

impl FilterUse {
    fn summary(&self) -> u32 {
        self.summary.load(Ordering::Relaxed)
    }

    fn is_first_anywhere(&self) -> bool {
        self.summary() & 0xffff != 0
    }

    fn of(&self, part: usize) -> Looks {
        Looks::of(self.parts[part].load(Ordering::Relaxed))
    }

    fn count(&self, part: usize, change: impl Fn(Looks) -> Looks) {
        let before = self.of(part);
        let after = change(before);
        if after == before {
            return;
        }
        self.parts[part].store(after.word(), Ordering::Relaxed);
        let bits = |looks: Looks| u32::from(looks.is_first()) | u32::from(looks.absent > 0) << PARTS;
        let (had, has) = (bits(before), bits(after));
        if had & !has != 0 {
            self.summary.fetch_and(!((had & !has) << part), Ordering::Relaxed);
        }
        if has & !had != 0 {
            self.summary.fetch_or((has & !had) << part, Ordering::Relaxed);
        }
    }
}

/// Which part of the file row `row` is in.
fn part_of(filter: &FilterTree, row: u64) -> usize {
    (row / u64::from(filter.partition_rows)) as usize % PARTS
}

/// What the filter says of a key.
enum Said {
    /// It is not in the file; the part it would be in.
    Absent(usize),
    /// It may be.
    Perhaps,
    /// It would say if this page were in memory.
    Missing(Address, PageKind),
}

impl Sst {
    /// As [`Sst::get`], which it spares if the filter is in memory and denies the key. A step; allocates nothing.
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
            LookUp::Absent(first_row, page) => self.count_in_vain(source, part_of(filter, first_row), &page.address()),
            LookUp::Found(row) if self.filter_use.summary() != 0 => {
                self.filter_use.count(part_of(filter, row), Looks::found);
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

    /// Rows in the page at `at`, of this part, were looked at in vain.
    fn count_in_vain<S: PageSource + ?Sized>(&self, source: &S, part: usize, at: &Address) {
        let was_read = source.take_read(self.file.at(at, PageKind::Data));
        self.filter_use.count(part, if was_read { Looks::read_in_vain } else { Looks::in_vain });
    }

    /// Whether the filter is in memory and says that `key` is not in the file.
    fn denies<S: PageSource + ?Sized>(&self, source: &S, filter: &FilterTree, key: &[u8]) -> bool {
        match self.filter_says(source, filter, key, hash_key(key)) {
            Said::Absent(part) => {
                self.filter_use.count(part, Looks::denied);
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
        if layout.may_contain(&page, hash) { Said::Perhaps } else { Said::Absent(part_of(filter, layout.first_row())) }
    }

    /// Asks for the page of the filter that is missing on the way to `place`, if it is wanted there. Only after a fault: it
    /// comes in the same round.
    fn ask_for_filter<S: PageSource + ?Sized>(&self, source: &S, filter: &FilterTree, place: &[u8]) {
        if self.filter_use.summary() == 0 {
            return;
        }
        // Where a key would be, as far as the nodes in memory tell.
        let main = self.meta.main.as_ref().expect("what faulted is there");
        let descent = Descent::new(&self.file, TreeKind::Main, main, self.prefer_flat);
        let Some(row) = descent.peek_first_row(source, place) else { return };
        let part = part_of(filter, row);
        let size = Part::of(main, filter, self.prefer_flat);
        let looks = self.filter_use.of(part);
        if !looks.may_ask(size) {
            return;
        }
        let Said::Missing(at, kind) = self.filter_says(source, filter, place, 0) else { return };
        let is_node = kind != PageKind::Filter;
        if is_node && looks.has_lost_node(size) {
            self.filter_use.count(part, |looks| Looks { left: 0, ..looks });
        } else if source.ahead(self.file.at(&at, kind)) {
            self.filter_use.count(part, |looks| looks.asked(size, is_node));
        }
    }

    /// The prefix of all keys from `low` to `high`, if they have one and the filter those of its length.
    pub fn filtered_prefix<'k>(&self, low: Bound<&'k [u8]>, high: Bound<&[u8]>) -> Option<&'k [u8]> {
        common_prefix(low, high, self.meta.filter.as_ref()?.prefix_bytes.into())
    }

    /// Whether the filter is in memory and says that no key in the file lies between `low` and `high`, because all that do
    /// begin with the same bytes. It knows nothing of range erases.
    pub fn has_none_between<S: PageSource + ?Sized>(&self, source: &S, low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
        let Some((filter, prefix)) = self.meta.filter.as_ref().zip(self.filtered_prefix(low, high)) else {
            return false;
        };
        let Said::Absent(part) = self.filter_says(source, filter, prefix, hash_prefix(prefix)) else { return false };
        self.filter_use.count(part, Looks::denied);
        true
    }

    /// Notes how a seek for keys with `prefix` went, which has come to `row` in the page at `page`, or is beyond the last:
    /// whether it `found` one, or faulted.
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
                Some(page) => self.count_in_vain(source, part_of(filter, row), page),
                None => self.filter_use.count(part_of(filter, row), Looks::in_vain),
            },
            Ok(true) if self.filter_use.summary() != 0 => self.filter_use.count(part_of(filter, row), Looks::found),
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
