//! Asking the filter of a file before its rows, and the policy of it. It knows no levels.
//!
//! * A page of the filter is never waited for. It is looked at if it is in memory; if it is not, the key may be there.
//! * The filter is asked where keys are often looked for in vain: more than one in eight of the last looks at a part of the
//!   file. Elsewhere a look-up costs one load more than without a filter, and the filter is asked only once a page of rows
//!   is missing, when looking costs nothing beside reading.
//! * Where it is asked and not in memory it is asked for, with the page of rows that is missing and in the same round. As
//!   long as no page is missing, nothing would be gained. If pages that were asked for are gone before they were of use often
//!   enough, twice as many looks pass before the next time: a cache too small for filters reads few.
//!
//! Thread safe: counters are relaxed, and one that is overwritten is an opinion about a look less.

use super::{Row, Sst};
use crate::format::PageRows;
use crate::format::filter::{FilterLayout, hash_key, hash_prefix};
use crate::format::meta::{FilterTree, TreeKind, successor};
use crate::row::Version;
use os::sync::atomic::{AtomicU32, Ordering};
use pages::{Address, PageKind, PageSource, Stop};
use std::ops::Bound;

/// Parts of a file that are counted apart: a partition each, and from there on in turn.
const PARTS: usize = 16;

/// Looks that an opinion takes: chance says little of fewer.
const MIN_LOOKS: u8 = 24;
/// Looks that count. When there are as many, the older half counts half.
const MAX_LOOKS: u8 = 48;
/// Looks in vain before the filter is asked for again, at first and at most.
const MIN_WAIT: u8 = 8;
const MAX_WAIT: u8 = 128;

/// What became of the last look-ups in a file, by part of it.
#[derive(Debug, Default)]
pub struct FilterUse {
    parts: [AtomicU32; PARTS],
    /// A bit for each part where the filter is wanted; above them, one for each where the last looks were not all found.
    summary: AtomicU32,
}

/// The last look-ups in a part.
///
/// ```text
/// looks u8 | of these in vain u8 | looks in vain to wait before asking for pages u8 | how many were waited for last u8
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Looks {
    looks: u8,
    absent: u8,
    wait: u8,
    waited: u8,
}

impl Looks {
    fn of(word: u32) -> Self {
        let [looks, absent, wait, waited] = word.to_le_bytes();
        Self { looks, absent, wait, waited }
    }

    fn word(self) -> u32 {
        u32::from_le_bytes([self.looks, self.absent, self.wait, self.waited])
    }

    fn is_wanted(self) -> bool {
        self.looks >= MIN_LOOKS && u32::from(self.absent) * 8 > u32::from(self.looks)
    }

    /// Whether pages of the filter may be asked for.
    fn may_ask(self) -> bool {
        self.is_wanted() && self.wait == 0
    }

    fn one_more(self) -> Self {
        let looks = self.looks + 1;
        if looks < MAX_LOOKS {
            Self { looks, ..self }
        } else {
            Self { looks: looks / 2, absent: self.absent / 2, ..self }
        }
    }

    /// The key was there. After none in vain there is nothing to compare with.
    fn found(self) -> Self {
        if self.absent == 0 { Self { looks: 0, ..self } } else { self.one_more() }
    }

    /// The rows were looked at in vain.
    fn in_vain(self) -> Self {
        let full = self.looks == self.absent && self.looks >= MIN_LOOKS;
        let waits = Self { wait: self.wait.saturating_sub(1), ..self };
        if full { waits } else { Self { absent: waits.absent + 1, ..waits }.one_more() }
    }

    /// The filter denied the key. So it is worth a page, some time.
    fn denied(self) -> Self {
        Self { waited: self.waited.saturating_sub(1), ..self.in_vain() }
    }

    /// Pages of the filter are asked for. What is waited for next doubles, and only as many denials set it back: a page that
    /// was read for fewer did not pay.
    fn asked(self) -> Self {
        let waited = self.waited.saturating_mul(2).clamp(MIN_WAIT, MAX_WAIT);
        Self { wait: waited, waited, ..self }
    }
}

impl FilterUse {
    fn summary(&self) -> u32 {
        self.summary.load(Ordering::Relaxed)
    }

    fn wants_any(&self) -> bool {
        self.summary() & 0xffff != 0
    }

    fn of(&self, part: usize) -> Looks {
        Looks::of(self.parts[part].load(Ordering::Relaxed))
    }

    fn count(&self, part: usize, change: fn(Looks) -> Looks) {
        let before = self.of(part);
        let after = change(before);
        if after == before {
            return;
        }
        self.parts[part].store(after.word(), Ordering::Relaxed);
        let bits = |looks: Looks| u32::from(looks.is_wanted()) | u32::from(looks.absent > 0) << PARTS;
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
        let is_wanted = self.filter_use.wants_any();
        if is_wanted && self.denies(source, filter, key) {
            return Ok(None);
        }
        let found = self.get_counted(source, filter, key, at);
        if let Err(Stop::Fault) = found {
            if !is_wanted && self.denies(source, filter, key) {
                return Ok(None);
            }
            self.ask_for_filter(source, filter, key);
        }
        found
    }

    /// As [`Sst::get`], counting what came of it.
    fn get_counted<S: PageSource + ?Sized>(
        &self,
        source: &S,
        filter: &FilterTree,
        key: &[u8],
        at: Version,
    ) -> Result<Option<Row>, Stop> {
        let Some(descent) = self.descent(TreeKind::Main) else { return Ok(None) };
        let (page, layout) = descent.page_of_key(source, key)?;
        let Ok(i) = layout.search(&page, key) else {
            self.filter_use.count(part_of(filter, layout.first_row()), Looks::in_vain);
            return Ok(None);
        };
        let row = self.visible(source, &page, &layout, i, at)?;
        if self.filter_use.summary() != 0 {
            self.filter_use.count(part_of(filter, layout.first_row() + i as u64), Looks::found);
        }
        Ok(row)
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
        if !self.filter_use.wants_any() {
            return;
        }
        // Where a key would be, as far as the nodes in memory tell.
        let main = self.descent(TreeKind::Main).expect("what faulted is there");
        let Some(row) = main.peek_first_row(source, place) else { return };
        let part = part_of(filter, row);
        if self.filter_use.of(part).may_ask()
            && let Said::Missing(at, kind) = self.filter_says(source, filter, place, 0)
            && source.ahead(&self.file, &at, kind)
        {
            self.filter_use.count(part, Looks::asked);
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

    /// Notes how a seek for keys with `prefix` went, which has come to `row`: whether it `found` one, or faulted.
    pub(super) fn note_seek<S: PageSource + ?Sized>(
        &self,
        source: &S,
        prefix: &[u8],
        row: u64,
        found: &Result<bool, Stop>,
    ) {
        let with_these = |filter: &&FilterTree| usize::from(filter.prefix_bytes) == prefix.len();
        let Some(filter) = self.meta.filter.as_ref().filter(with_these) else { return };
        match found {
            Ok(false) => self.filter_use.count(part_of(filter, row), Looks::in_vain),
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
