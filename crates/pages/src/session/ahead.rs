//! What a session asked for before a step needed it: the hints of the next round, the pages that are being read,
//! and the pages that have arrived but that the cache does not keep. This module does not know how pages are read.
//!
//! * What was asked for first is needed first. So if not all pages have room, the pages that were asked for last are
//!   not read.
//! * Index nodes stay for later steps, because they lead to many pages. If room is needed, the nodes that no step
//!   looked at for a whole round are dropped first.
//! * Other pages are dropped only when the reader seems to have gone elsewhere. The sign for this is that
//!   [`GIVEN_UP_ROUNDS`] rounds had no room for some hints, and that the reader took none of the pages meanwhile.

use super::admit::{Admit, is_node};
use super::request::Request;
use super::round::InFlight;
use crate::PageRef;
use crate::cache::flight::{Flight, Landing};
use crate::page_key::{KeyHash, PageKey};
use os::sync::Arc;
use std::collections::{HashMap, HashSet};

/// How many hints are kept until the next round, each for a different page. It is twice the number of pages of the
/// longest readahead, which is 128 MiB of pages of 4 KiB. If there are more hints, the oldest are forgotten, because
/// the reader has passed their pages by then.
pub const MAX_HINTS: usize = 1 << 16;

/// If this many rounds have no room for some hints, and the reader takes no page meanwhile, the reader counts as
/// gone elsewhere. A step may read several trees and fault on them one by one, which also takes several
/// rounds; but as a rule these are fewer than this number.
pub const GIVEN_UP_ROUNDS: u32 = 4;

/// Hints, pages on their way, and pages that came.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// Hints since the last round, oldest first. Some pages may be in it more than once.
    hints: Vec<Request>,
    /// Pages on their way that the cache will not keep.
    in_flight: HashMap<PageKey, InFlight, KeyHash>,
    /// Pages that came and that the cache does not keep.
    pages: HashMap<PageKey, AheadPage, KeyHash>,
    /// The number of pages that were asked for so far, plus the number of looks at nodes. This serves as a clock.
    clock: u64,
    /// The clock at the end of the last round.
    round_ended: u64,
    /// The number of rounds that had no room for some hints since the reader last took a page.
    rejected_rounds: u32,
}

/// A page kept for later steps.
struct AheadPage {
    /// The time at which the page was asked for or, if a step has looked at the page since, the time of the last
    /// look.
    time: u64,
    /// Whether the page is a node and a step has looked at it.
    was_looked_at: bool,
    page: PageRef,
}

impl ReadAhead {
    /// Whether no page is kept here and no page is on its way.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.in_flight.is_empty()
    }

    /// The next time of the clock.
    #[inline]
    pub fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Notes a hint.
    pub fn hint(&mut self, request: Request) {
        if self.hints.len() == 2 * MAX_HINTS {
            self.forget_old_hints();
        }
        self.hints.push(request);
    }

    /// The oldest hint, if there is one.
    pub fn first_hint(&self) -> Option<&Request> {
        self.hints.first()
    }

    /// The number of hints.
    #[cfg(test)]
    pub fn hints(&self) -> usize {
        self.hints.len()
    }

    /// How many pages came and are kept.
    #[cfg(test)]
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Moves the hints to `requests`.
    pub fn take_hints(&mut self, requests: &mut Vec<Request>) {
        if self.hints.len() > MAX_HINTS {
            self.forget_old_hints();
        }
        requests.append(&mut self.hints);
    }

    /// Leaves the newest [`MAX_HINTS`] hinted pages, each once. The list has room for twice as many hints, so at
    /// least [`MAX_HINTS`] hints come between two calls. So a hint takes constant time on average.
    fn forget_old_hints(&mut self) {
        let mut met = HashSet::with_hasher(KeyHash::default());
        let newest_first = self.hints.drain(..).rev().filter(|hint| met.insert(hint.key));
        let newest: Vec<Request> = newest_first.take(MAX_HINTS).collect();
        self.hints.extend(newest.into_iter().rev());
    }

    /// A page that has arrived. It is left where it is.
    #[inline]
    pub fn page(&self, key: PageKey) -> Option<&PageRef> {
        self.pages.get(&key).map(|ahead| &ahead.page)
    }

    /// A node that has arrived. A step looks at this node now.
    #[inline]
    pub fn node(&mut self, key: PageKey) -> Option<PageRef> {
        let ahead = self.pages.get_mut(&key).filter(|ahead| is_node(ahead.page.kind()))?;
        self.clock += 1;
        (ahead.time, ahead.was_looked_at) = (self.clock, true);
        Some(ahead.page.clone())
    }

    /// Returns a page to the step that needs it. A node stays here for later steps; any other page is taken out.
    #[inline]
    pub fn take(&mut self, key: PageKey) -> Option<PageRef> {
        if let Some(node) = self.node(key) {
            return Some(node);
        }
        let AheadPage { page, .. } = self.pages.remove(&key)?;
        self.rejected_rounds = 0;
        Some(page)
    }

    /// Whether a page is on its way.
    #[inline]
    pub fn is_in_flight(&self, key: PageKey) -> bool {
        self.in_flight.contains_key(&key)
    }

    /// The read of a page that is on its way.
    pub fn flight(&self, key: PageKey) -> Option<Arc<Flight>> {
        self.in_flight.get(&key).map(|ahead| Arc::clone(&ahead.flight))
    }

    /// Pages whose reads have begun.
    pub fn add_flights(&mut self, flights: impl IntoIterator<Item = (PageKey, InFlight)>) {
        self.in_flight.extend(flights);
    }

    /// Takes in all pages that have landed.
    pub fn gather(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let pages = &mut self.pages;
        self.in_flight.retain(|key, ahead| match ahead.flight.landing() {
            None => true,
            Some(landing) => {
                keep_landed(pages, *key, ahead.time, landing);
                false
            }
        });
    }

    /// Takes in one page, if it has landed.
    #[inline]
    pub fn gather_one(&mut self, key: PageKey) {
        if self.in_flight.is_empty() {
            return;
        }
        let Some(landing) = self.in_flight.get(&key).and_then(|ahead| ahead.flight.landing()) else { return };
        let time = self.in_flight.remove(&key).map_or(0, |ahead| ahead.time);
        keep_landed(&mut self.pages, key, time, landing);
    }

    /// Ends a round that brought `needed`. `was_short` says whether the round had too little room for its hints.
    /// Nodes that the cache does not keep are kept here, if `room_bytes` is enough for them and for the pages that
    /// are here already. If `room_bytes` is `None`, other sessions queue for memory, and nothing is kept.
    pub fn end_round(&mut self, needed: &[(PageKey, PageRef)], was_short: bool, admit: Admit, room_bytes: Option<u64>) {
        self.rejected_rounds = self.rejected_rounds.saturating_add(was_short.into());
        if !self.in_flight.is_empty() {
            needed.iter().for_each(|(key, _)| drop(self.in_flight.remove(key)));
        }
        self.gather();
        match room_bytes {
            None => self.pages.clear(),
            Some(room_bytes) => {
                self.keep_nodes(needed, admit);
                self.limit(room_bytes);
            }
        }
        self.round_ended = self.clock;
    }

    fn keep_nodes(&mut self, needed: &[(PageKey, PageRef)], admit: Admit) {
        for (key, page) in needed.iter().filter(|(_, page)| is_node(page.kind()) && !admit.admits(page.kind())) {
            let time = self.tick();
            self.pages.insert(*key, AheadPage { time, was_looked_at: true, page: page.clone() });
        }
    }

    /// Makes room for the pages of `requests` that are not needed, by the rules at the top of the file. All pages
    /// kept here may take `most_bytes`. The result is how many of these bytes the pages of `requests` may take.
    pub fn make_room(&mut self, requests: &[Request], admit: Admit, most_bytes: u64) -> u64 {
        let comes_here = |request: &&Request| !admit.admits(request.kind);
        let stays = |request: &&Request| comes_here(request) && (!request.needed || is_node(request.kind));
        let nodes = |request: &&Request| comes_here(request) && request.needed && is_node(request.kind);
        let bytes_of = |request: &Request| request.memory_bytes();
        let wanted_bytes: u64 = requests.iter().filter(stays).map(bytes_of).sum();
        let is_given_up = self.rejected_rounds >= GIVEN_UP_ROUNDS;
        let round_ended = self.round_ended;
        self.evict(most_bytes.saturating_sub(wanted_bytes), |ahead| {
            let is_old = ahead.was_looked_at && ahead.time <= round_ended;
            (is_old || is_given_up).then_some((!is_old, ahead.time))
        });
        let node_bytes: u64 = requests.iter().filter(nodes).map(bytes_of).sum();
        most_bytes.saturating_sub(self.bytes()).saturating_sub(node_bytes)
    }

    /// Evicts pages until at most `most_bytes` are left: first nodes that were looked at, then the pages that were
    /// asked for last.
    fn limit(&mut self, most_bytes: u64) {
        self.evict(most_bytes, |ahead| {
            Some(if ahead.was_looked_at { (false, ahead.time) } else { (true, u64::MAX - ahead.time) })
        });
    }

    /// Memory of the pages that came and of those on their way.
    fn bytes(&self) -> u64 {
        let in_flight: u64 = self.in_flight.values().map(|ahead| ahead.bytes).sum();
        in_flight + self.pages.values().map(|ahead| ahead.page.cost_bytes()).sum::<u64>()
    }

    /// Evicts pages in the order of their ranks, until at most `most_bytes` are left. A page without a rank stays.
    fn evict<R: Ord>(&mut self, most_bytes: u64, rank: impl Fn(&AheadPage) -> Option<R>) {
        let mut bytes = self.bytes();
        if bytes <= most_bytes {
            return;
        }
        let ranked = self.pages.iter().filter_map(|(key, ahead)| Some((rank(ahead)?, *key)));
        let mut ranked: Vec<(R, PageKey)> = ranked.collect();
        ranked.sort_unstable();
        for (_, key) in ranked {
            if bytes <= most_bytes {
                break;
            }
            let AheadPage { page, .. } = self.pages.remove(&key).expect("the list was made of these pages");
            bytes -= page.cost_bytes();
        }
    }
}

/// Keeps a page that landed. An error is not kept: the step that needs the page reads it again and reports the error.
fn keep_landed(pages: &mut HashMap<PageKey, AheadPage, KeyHash>, key: PageKey, time: u64, landing: Landing) {
    if let Landing::Arrived(page) = landing {
        pages.insert(key, AheadPage { time, was_looked_at: false, page });
    }
}
