//! Decides which session reads a missing page, and brings the page into the cache once it is read. This module does
//! not know how pages are read, or what it costs to keep them.

use super::flight::{Demand, Flight, Landing};
use super::stripe::Stripe;
use super::{FileState, PageCache};
use crate::budget::{Charge, Turn};
use crate::page_key::PageKey;
use crate::{Address, Error, PageHeader, PageRef};
use os::Buffer;
use os::sync::Arc;

impl PageCache {
    /// Looks a page up. If `admit` is set and the page is in flight, the cache will admit the page when it lands.
    pub(crate) fn look(&self, key: PageKey, admit: bool) -> PageLookup {
        match self.find(key, admit) {
            Some(page) => PageLookup::Resident(page),
            None => self.look_in(&self.stripe(key).lock(), key, admit).unwrap_or(PageLookup::Missing),
        }
    }

    fn look_in(&self, stripe: &Stripe, key: PageKey, admit: bool) -> Option<PageLookup> {
        if let Some(frame) = self.table.frame(&self.frames, key) {
            let page = frame.pin();
            if admit {
                page.count_use();
            }
            return Some(PageLookup::Resident(page));
        }
        let flight = stripe.flight(key)?;
        if admit {
            flight.ask_to_admit();
        }
        Some(PageLookup::InFlight(Arc::clone(flight)))
    }

    /// Marks a missing page as being read by the caller, who has reserved the memory for it. `ticket` names the
    /// read.
    pub(crate) fn claim(self: &Arc<Self>, key: PageKey, ticket: u64, admit: bool, demand: Demand) -> PageLookup {
        let mut stripe = self.stripe(key).lock();
        if let Some(known) = self.look_in(&stripe, key, admit) {
            return known;
        }
        let flight = Arc::new(Flight::new(ticket, admit, demand));
        stripe.take_off(key, Arc::clone(&flight));
        drop(stripe);
        PageLookup::Claimed(Claim { cache: Arc::clone(self), key, flight: Some(flight), finders: Finders::Everyone })
    }

    /// Claims a page that the caller reads for its own step alone. If the page exceeds the budget, the caller
    /// passes its `turn`, which is then given back only after the page has landed, even if the caller goes away.
    pub(crate) fn claim_alone(
        self: &Arc<Self>,
        key: PageKey,
        ticket: u64,
        demand: Demand,
        turn: Option<Arc<Turn>>,
    ) -> Claim {
        let flight = Arc::new(Flight::new(ticket, false, demand));
        Claim { cache: Arc::clone(self), key, flight: Some(flight), finders: Finders::OneStep { _turn: turn } }
    }

    /// Makes a page from decoded bytes, which the format layer checks first. `charge` pays for the page. A page
    /// that unpacked to more bytes than were reserved may exceed the budget: a needed page does so if too many
    /// pages are pinned to make room, and a page that is only read ahead if making room would take an eviction.
    pub(crate) fn make_page(
        &self,
        key: PageKey,
        (buffer, header): (Buffer, PageHeader),
        at: Address,
        mut charge: Charge,
        is_needed: bool,
    ) -> Result<Made, String> {
        (self.validate)(header.kind, &buffer[..header.memory_bytes as usize])?;
        let cost = crate::cost::cost_bytes(buffer.capacity() as u64);
        let mut fits = true;
        let more = cost.saturating_sub(charge.bytes());
        if more > 0 && !charge.is_of(&self.budget) {
            charge.grow(more);
        } else if more > 0 {
            let room = if is_needed { self.try_reserve(more) } else { self.budget.try_charge(more).ok() };
            fits = room.is_some();
            // The page is in memory already, and other sessions may be waiting for it.
            charge.join(room.unwrap_or_else(|| self.budget.overdraw(more)));
        }
        let charge = charge.convert_to_page(cost, header.kind);
        let page = PageRef::charged(&self.frames, key, buffer, &header, &at, charge);
        Ok(if fits { Made::Fits(page) } else { Made::Exceeds(page) })
    }
}

/// A page that was read.
pub(crate) enum Made {
    /// The budget had room for all of it.
    Fits(PageRef),
    /// The page unpacked to more bytes than the budget had room for. It stays in memory only as long as a step that
    /// needs it pins it.
    Exceeds(PageRef),
}

/// What the cache knows about a page.
pub(crate) enum PageLookup {
    /// It is in memory.
    Resident(PageRef),
    /// A session reads it.
    InFlight(Arc<Flight>),
    /// The page is not in memory, and no session reads it.
    Missing,
    /// From now on, the caller reads it.
    Claimed(Claim),
}

/// The duty to end a flight, held by the session that reads the page. If the claim is dropped without an outcome,
/// the flight is abandoned: the waiting sessions are woken and ask again.
pub(crate) struct Claim {
    cache: Arc<PageCache>,
    key: PageKey,
    /// `None` once landed.
    flight: Option<Arc<Flight>>,
    /// Declared, and so dropped, after the flight.
    finders: Finders,
}

/// Who can find a page that is being read.
enum Finders {
    /// Every session finds the page in the stripe, and the cache may keep the page.
    Everyone,
    /// Only the step that reads the page finds it. If the page exceeds the budget, the turn is kept here.
    OneStep { _turn: Option<Arc<Turn>> },
}

impl Claim {
    /// The flight.
    pub fn flight(&self) -> &Arc<Flight> {
        self.flight.as_ref().expect("it has not landed")
    }

    /// The cache.
    pub fn cache(&self) -> &Arc<PageCache> {
        &self.cache
    }

    /// Ends the flight with the page or an error. The cache admits the page if a session asked for that, the page
    /// fits, and the file is alive.
    pub fn land(mut self, file: &FileState, outcome: Result<Made, Error>) {
        match outcome {
            Ok(Made::Fits(page)) => self.end(Landing::Arrived(page), Some(file)),
            Ok(Made::Exceeds(page)) if self.flight().is_needed() => self.end(Landing::Arrived(page), None),
            Ok(Made::Exceeds(_)) => self.end(Landing::Abandoned, None),
            Err(error) => self.end(Landing::Failed(error), None),
        }
    }

    fn end(&mut self, landing: Landing, file: Option<&FileState>) {
        let Some(flight) = self.flight.take() else { return };
        if matches!(self.finders, Finders::Everyone) {
            let cache = &self.cache;
            let mut stripe = cache.stripe(self.key).lock();
            stripe.end_flight(self.key);
            let mut is_admitted = false;
            if let (Landing::Arrived(page), Some(file)) = (&landing, file)
                // A file is marked dead first, and then its pages are forgotten, stripe by stripe, each under the
                // stripe's lock. So no page of a dead file slips in later.
                && flight.is_to_be_admitted()
                && !file.is_dead()
            {
                stripe.admit(&cache.table, &cache.frames, self.key, page, flight.is_needed(), file.is_kept());
                is_admitted = true;
            }
            drop(stripe);
            if is_admitted {
                cache.grow(cache.budget.frames());
            }
        }
        flight.land(landing);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.end(Landing::Abandoned, None);
    }
}
