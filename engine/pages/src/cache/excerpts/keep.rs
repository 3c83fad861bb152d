//! How a cache keeps excerpts of the pages that it evicts, and finds them.

use super::places::{Place, SLOT};
use super::{
    CUT_BYTES, Cut, ENTRY_BYTES, Excerpt, ExcerptName, Filling, MIN_BUDGET_BYTES, Pays, content_at, cut_excerpts,
    hash_of, part_at,
};
use crate::budget::Charge;
use crate::cache::PageCache;
use crate::frame::{Evicted, Frame, Part, Used};
use crate::page_key::PageKey;
use crate::{Address, Codec, PACK_BYTES, Page, PageHeader, PageKind, PageRef};
use os::Buffer;
use os::sync::atomic::Ordering;

/// The chances that a page of excerpts begins with.
const CHANCES: u8 = 1;

impl PageCache {
    /// The excerpt with this name, if it is in memory and `fits` accepts its content. `find` gives the page with a name
    /// in the cache.
    pub(crate) fn find_excerpt<P: Page>(
        &self,
        name: &ExcerptName<'_>,
        fits: &dyn Fn(&[u8]) -> bool,
        find: impl FnOnce(PageKey) -> Option<P>,
    ) -> Option<Excerpt<P>> {
        // The usual exit of a cache that has room for everything.
        if !self.excerpts.are_wanted() {
            return None;
        }
        let hash = hash_of(name.slot, name.hash);
        let place = self.excerpts.places.find(hash)?;
        let page = find(place.key())?;
        let start = 8 * usize::from(place.at);
        let content = content_at(&page, start, name)?;
        if !fits(&page[content.clone()]) {
            return None;
        }
        self.excerpts.places.count_found(hash);
        page.live().count_use();
        page.live().note_part(part_at(start, page.len()));
        Some(Excerpt { page, content })
    }

    /// Whether the cache cuts pages. If so, readers note from now on which parts of pages they use.
    fn cuts(&self) -> bool {
        let cuts = self.cutter.is_some() && self.budget.limit() >= MIN_BUDGET_BYTES;
        if cuts && !self.excerpts.are_wanted() {
            self.excerpts.are_wanted.0.store(true, Ordering::Relaxed);
        }
        cuts
    }

    /// Cuts out of an unpinned page what its readers wanted, if that is little. The caller holds the lock of the page's
    /// stripe.
    pub(crate) fn cut_out(&self, frame: &Frame, used: Used, is_proven: bool) -> Option<Vec<Cut>> {
        let is_partial = used.is_partial(u32::MAX);
        if !self.cuts() || !(is_proven || is_partial) {
            return None;
        }
        let (page, slot) = (frame.pin(), frame.key().slot);
        if page.kind() != PageKind::Data {
            return None;
        }
        if is_proven {
            self.excerpts.note_uses(slot, used);
        }
        if is_partial { self.cut(&page, slot, used, is_proven) } else { None }
    }

    /// Cuts the used parts out of a page with this slot. `None` if they are not few, if one of them cannot be cut out,
    /// or if excerpts do not pay now.
    fn cut(&self, page: &PageRef, slot: u32, used: Used, is_proven: bool) -> Option<Vec<Cut>> {
        let cutter = self.cutter?;
        if slot == SLOT {
            return cut_excerpts(page, used);
        }
        let is_wanted = is_proven || used.times() > 0;
        let is_kept = match self.excerpts.pay(self.budget.limit()) {
            Pays::Yes => true,
            Pays::Perhaps => is_wanted,
            Pays::No => false,
        };
        let of = (cutter.parts)(page);
        if !is_kept || !used.is_partial(of) || !CUT_BYTES.contains(&page.buffer_bytes()) {
            return None;
        }
        // With their names and places, the parts must take less memory than the page.
        let most = page.len() / 4 * 3;
        let (mut cuts, mut bytes) = (Vec::new(), 0);
        for number in (0..of).filter(|&number| used.has(Part { number, of })) {
            let cut = Cut::of_part(&cutter, page, number, (slot, is_wanted))?;
            bytes += cut.bytes.len() + ENTRY_BYTES;
            if bytes > most {
                return None;
            }
            cuts.push(cut);
        }
        Some(cuts)
    }

    /// Keeps excerpts. If a page for them has to be begun, it takes the memory of a page in `evicted`. Returns the
    /// bytes that it has taken. `may_note` says whether one page may pay for [`Seen`], and is false after that.
    pub(crate) fn keep_cuts(&self, cuts: Vec<Cut>, evicted: &mut Vec<Evicted>, may_note: &mut bool) -> u64 {
        let mut taken = 0;
        let mut take = || {
            let usable = evicted.iter().rposition(|page| page.is_data_of(CUT_BYTES))?;
            let page = evicted.swap_remove(usable);
            taken += page.memory_bytes();
            Some(page.take_memory())
        };
        for cut in cuts {
            if !cut.is_wanted {
                let mut seen = self.excerpts.seen.lock();
                let is_new = !seen.has(cut.hash, cut.bytes.len());
                // Asked under the lock, so what a smaller budget takes out does not come back.
                if self.cuts()
                    && *may_note
                    && seen.needs_charge(self.budget.limit())
                    && let Some((_, charge)) = take()
                {
                    seen.pay(charge);
                    *may_note = false;
                }
                if is_new {
                    continue;
                }
            }
            if !self.has_excerpt(&cut) {
                self.add_excerpt(&cut, &mut take);
            }
        }
        taken
    }

    /// Whether the excerpt is in memory already, because it was kept when its page left before. If so, this is a use of
    /// it.
    fn has_excerpt(&self, cut: &Cut) -> bool {
        let Some(place) = self.excerpts.places.find(cut.hash) else { return false };
        let Some(page) = self.table.find(&self.frames, place.key()) else { return false };
        let start = 8 * usize::from(place.at);
        let is_it = page.get(start..start + cut.bytes.len()) == Some(&cut.bytes);
        if is_it {
            page.live().count_use();
            page.live().note_part(part_at(start, page.len()));
        }
        is_it
    }

    /// Adds an excerpt to the page that is being filled. If there is none with room, `memory` has to give one.
    fn add_excerpt(&self, cut: &Cut, memory: impl FnOnce() -> Option<(Buffer, Charge)>) {
        let full = {
            let mut filling = self.excerpts.filling.lock();
            if filling.as_ref().is_some_and(|filling| filling.has(cut.hash)) {
                return;
            }
            let full = filling.take_if(|filling| !filling.has_room(cut.bytes.len()));
            if filling.is_none() && self.cuts() {
                *filling = memory().map(Filling::new);
            }
            if let Some(filling) = filling.as_mut().filter(|filling| filling.has_room(cut.bytes.len())) {
                filling.add(cut);
                self.excerpts.kept.fetch_add(1, Ordering::Relaxed);
            }
            full
        };
        if let Some(full) = full {
            self.end_excerpts(full);
        }
    }

    /// The number and the name of the next page of excerpts. Numbers come again after four billion pages.
    pub(super) fn next_excerpts(&self) -> (u32, PageKey) {
        loop {
            let number = self.excerpts.pages.fetch_add(1, Ordering::Relaxed);
            let key = Place { page: number, at: 0 }.key();
            if self.table.frame(&self.frames, key).is_none() {
                return (number, key);
            }
        }
    }

    /// Makes a full page with excerpts resident, and its excerpts findable.
    fn end_excerpts(&self, filling: Filling) {
        let Filling { buffer, filled_bytes, excerpts, charge } = filling;
        let (number, key) = self.next_excerpts();
        let (memory_bytes, stored_bytes) = (filled_bytes as u32, buffer.capacity() as u32);
        let header = PageHeader { kind: PageKind::Data, codec: Codec::None, level: 0, memory_bytes, stored_bytes };
        let at = Address { offset: key.unit * PACK_BYTES, bytes: stored_bytes, crc: 0 };
        let page = PageRef::charged(&self.frames, key, buffer, &header, &at, charge);
        self.excerpts.bytes.fetch_add(page.memory_bytes(), Ordering::Relaxed);
        let mut stripe = self.stripe(key).lock();
        stripe.admit(&self.table, &self.frames, key, &page, true, false);
        stripe.prove(self.frames.get(page.number()).expect("the page was just admitted"), CHANCES);
        drop(stripe);
        self.grow(self.budget.frames());
        for (hash, at) in excerpts {
            self.excerpts.places.enter(hash, Place { page: number, at });
        }
        // Until here the page was pinned. So it was not evicted, and no place was entered after it has left.
        drop(page);
    }
}
