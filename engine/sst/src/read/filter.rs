//! Asks the filter of a file before its rows. This module does not know when the filter is worth reading: it
//! reports the outcome of look-ups to [`FilterUse`](super::FilterUse), which judges that. It knows no levels.
//!
//! * No look-up waits for a page of the filter. If the page is not in memory, the look-up goes on as if the filter
//!   had said that the key may be in the file.
//! * If the filter is of use, it is asked before the rows. If it is not of use, asking it would only make each
//!   look-up slower by one load from memory. Then it is asked only after a page of rows was found missing: beside
//!   a read from disk, this load costs little.
//! * If the filter is of use, a missing page of it is asked for as long as the cache has unused memory. If the
//!   filter is worth reading, its missing pages are asked for even when the memory is full. They come in the round
//!   that brings a missing page of rows, and each of them is asked for once.

use super::descent::Descent;
use super::filter_use::{Looks, Summary, ZoneSize, zone_of};
use super::row::Row;
use super::sought_key::SoughtKey;
use super::sst::{LookUp, MatchStep, Sst};
use super::ways::Reached;
use crate::format::PageRows;
use crate::format::filter::{FilterLayout, hash_prefix};
use crate::format::meta::{FilterTree, TreeKind};
use crate::key_range::successor;
use crate::row::Version;
use pages::{Address, Page, PageKind, PageLender, PageSource, Stop};
use std::ops::Bound;

/// What the filter says about a key.
enum Said<P> {
    /// The key is not in the file. This partition says so.
    Absent(P),
    /// The key may be in the file.
    Perhaps,
    /// The answer is unknown because this page is not in memory.
    Missing(Address, PageKind),
}

impl Sst {
    /// Like [`Sst::get`], but if the filter is in memory and denies the key, the rows are not read. This is a step. It
    /// allocates nothing.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read or is corrupt.
    #[inline]
    pub fn get_filtered<S: PageLender + ?Sized>(
        &self,
        source: &S,
        key: &SoughtKey<'_>,
        at: Version,
    ) -> Result<Option<Row<S::Page>>, Stop> {
        self.find_filtered(source, key, at, || self.match_key(source, key))
    }

    /// Like [`Sst::get_filtered`], but an earlier call has already gone a part of the way down to the key: the search
    /// goes on from the end of that part.
    ///
    /// # Errors
    ///
    /// As [`Sst::get_filtered`].
    #[inline]
    pub fn get_reached<'k, S: PageSource + ?Sized>(
        &self,
        source: &S,
        key: &SoughtKey<'k>,
        at: Version,
        reached: Reached<'_, 'k>,
    ) -> Result<Option<Row>, Stop> {
        self.find_filtered(source, key, at, || self.match_reached(source, key, reached))
    }

    #[inline]
    fn find_filtered<'k, S: PageLender + ?Sized>(
        &self,
        source: &S,
        key: &SoughtKey<'k>,
        at: Version,
        page: impl FnOnce() -> MatchStep<'k, S::Page>,
    ) -> Result<Option<Row<S::Page>>, Stop> {
        let bytes = key.bytes();
        let Some(filter) = &self.meta.filter else {
            let found = self.find(source, at, page, |_| {});
            return self.or_excerpt(source, key, at, found, |_| {});
        };
        let summary = self.filter_use.summary();
        let is_denied = || self.denies(source, filter, summary, bytes, key.hash());
        if summary.asks_first() && is_denied() {
            return Ok(None);
        }
        let count_found = |row| {
            if !summary.is_all_found() {
                self.filter_use.count(zone_of(filter, row), Looks::found);
            }
        };
        let found = self.find(source, at, page, |look_up| match look_up {
            LookUp::Absent(first_row, page) => self.count_absent(source, zone_of(filter, first_row), &page.address()),
            LookUp::Found(row) => count_found(row),
        });
        let found = self.or_excerpt(source, key, at, found, count_found);
        if let Err(Stop::Fault) = found {
            if !summary.asks_first() && is_denied() {
                return Ok(None);
            }
            if source.fetches() {
                self.ask_for_filter(source, filter, bytes);
            }
        }
        found
    }

    /// Whether the filter is in memory and does not deny the key. If so, the file almost certainly has the key: of
    /// the keys that a file does not have, the filter denies all but a few in a thousand.
    pub fn expects<S: PageLender + ?Sized>(&self, source: &S, key: &SoughtKey<'_>) -> bool {
        let Some(filter) = &self.meta.filter else { return false };
        matches!(self.filter_says(source, filter, key.bytes(), key.hash()), Said::Perhaps)
    }

    /// Counts a look-up that did not find its key: the key would have been in the page at `at`, which belongs to
    /// zone `zone`.
    fn count_absent<S: PageLender + ?Sized>(&self, source: &S, zone: usize, at: &Address) {
        let was_read = source.take_read(self.file.at(at, PageKind::Data));
        self.filter_use.count(zone, if was_read { Looks::read_for_none } else { Looks::found_none });
    }

    /// Whether the filter is in memory and says that `hash` is not in the file. `hash` is the hash of a key or of
    /// a prefix. If the filter has this hash, it is in the partition to which the key `place` leads. If the filter
    /// is of use and a page of it is missing, the call asks for that page, but only into memory that no other page
    /// uses.
    fn denies<S: PageLender + ?Sized>(
        &self,
        source: &S,
        filter: &FilterTree,
        summary: Summary,
        place: &[u8],
        hash: u64,
    ) -> bool {
        match self.filter_says(source, filter, place, hash) {
            Said::Absent(partition) => {
                if !summary.is_all_denied(filter) {
                    let zone = zone_of(filter, FilterLayout::of(&partition).first_row());
                    self.filter_use.count(zone, Looks::denied);
                }
                true
            }
            Said::Missing(at, kind) if summary.asks_first() => {
                source.ahead_if_spare(self.file.at(&at, kind));
                false
            }
            Said::Perhaps | Said::Missing(..) => false,
        }
    }

    /// What the filter says about `hash`. The answer comes from the partition to which the key `place` leads.
    #[inline]
    fn filter_says<S: PageLender + ?Sized>(
        &self,
        source: &S,
        filter: &FilterTree,
        place: &[u8],
        hash: u64,
    ) -> Said<S::Page> {
        let descent = self.descent(TreeKind::Filter).expect("the caller has its tree");
        match descent.peek_key(source, place) {
            Ok(Some(page)) if !filter.form.may_contain(&page, hash) => Said::Absent(page),
            Ok(_) => Said::Perhaps,
            Err((at, kind)) => Said::Missing(at, kind),
        }
    }

    /// Asks for the missing page of the filter on the way to `place`, if the filter is worth memory that other
    /// pages use. It does so only after a fault, because then the page comes in the same round.
    fn ask_for_filter<S: PageLender + ?Sized>(&self, source: &S, filter: &FilterTree, place: &[u8]) {
        if !self.filter_use.summary().asks_first() {
            return;
        }
        // The row at which the key would be, as far as the nodes in memory tell it.
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
            self.filter_use.count(zone, Looks::stops_asking);
        } else if source.ahead(self.file.at(&at, kind)) {
            self.filter_use.count(zone, |looks| looks.asked(size, is_node));
        }
    }

    /// The common prefix of all keys from `low` to `high`, if there is one and the filter has prefixes of its
    /// length.
    pub fn filtered_prefix<'k>(&self, low: Bound<&'k [u8]>, high: Bound<&[u8]>) -> Option<&'k [u8]> {
        common_prefix(low, high, self.meta.filter.as_ref()?.prefix_bytes.into())
    }

    /// Whether the filter is in memory and says that no key in the file lies between `low` and `high`. It can say
    /// so if all keys between them begin with the same bytes. It does not know range erases.
    pub fn has_none_between<S: PageSource + ?Sized>(&self, source: &S, low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
        let Some((filter, prefix)) = self.meta.filter.as_ref().zip(self.filtered_prefix(low, high)) else {
            return false;
        };
        self.denies(source, filter, self.filter_use.summary(), prefix, hash_prefix(prefix))
    }

    /// Notes how a seek for keys with `prefix` went: whether it `found` such a key, or ended with a fault. The
    /// seek has arrived at `row` in the page at `page`, or at the end of the rows.
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
            Ok(true) if self.filter_use.summary().is_all_found() => {}
            Ok(true) => self.filter_use.count(zone_of(filter, row), Looks::found),
            Err(Stop::Fault) => self.ask_for_filter(source, filter, prefix),
            Err(Stop::Failed(_)) => {}
        }
    }
}

/// The first `bytes` bytes of the keys from `low` to `high`, if they are the same in all these keys. `None` if
/// `bytes` is 0.
fn common_prefix<'k>(low: Bound<&'k [u8]>, high: Bound<&[u8]>, bytes: usize) -> Option<&'k [u8]> {
    let (Bound::Included(first) | Bound::Excluded(first)) = low else { return None };
    let prefix = first.get(..bytes).filter(|prefix| !prefix.is_empty())?;
    // All keys of the range must lie between `prefix` and `successor(prefix)`, which is the first string after all
    // keys with this prefix. Then all of them begin with `prefix`.
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
