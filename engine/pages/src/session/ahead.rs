//! What a session asked for before a step needed it: the hints of the next round, the pages on their way, and the
//! pages that have arrived but that the cache does not keep. This module does not know how pages are read.
//!
//! * What was asked for first is needed first. So if room is short, the pages that were asked for last are not
//!   read.
//! * Index nodes stay for later steps, because they lead to many pages. To make room, nodes that no step looked at
//!   for a whole round are dropped first.
//! * Other pages are dropped only if the reader seems to have moved elsewhere: [`GIVEN_UP_ROUNDS`] rounds had no
//!   room for some hints, and the reader took none of the pages meanwhile.

use super::admit::{Admit, is_node};
use super::request::Request;
use super::round::InFlight;
use crate::PageRef;
use crate::cache::flight::{Flight, Landing};
use crate::page_key::{KeyHash, PageKey};
use os::sync::Arc;
use std::collections::{HashMap, HashSet};

/// How many hints for different pages are kept until the next round: twice the longest readahead, which is 128 MiB
/// of pages of 4 KiB. Beyond that, the oldest hints are forgotten, because the reader has passed their pages by
/// then.
pub const MAX_HINTS: usize = 1 << 16;

/// After this many rounds without room for some hints, and without a page taken by the reader, the reader counts as
/// gone elsewhere. A step that reads several trees and faults on them one by one also takes several rounds, but
/// rarely this many.
pub const GIVEN_UP_ROUNDS: u32 = 4;

/// Hints, pages on their way, and pages that have arrived.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// Hints since the last round, oldest first. A page may be in it more than once.
    hints: Vec<Request>,
    /// Pages on their way that the cache will not keep.
    in_flight: HashMap<PageKey, InFlight, KeyHash>,
    /// Pages that have arrived and that the cache does not keep.
    pages: HashMap<PageKey, AheadPage, KeyHash>,
    /// Counts requests for pages and looks at nodes; serves as a clock.
    clock: u64,
    /// The clock at the end of the last round.
    round_ended: u64,
    /// Rounds without room for some hints, since the reader last took a page.
    rejected_rounds: u32,
}

/// A page kept for later steps.
struct AheadPage {
    /// When the page was asked for or, if a step has looked at it since, the time of the last look.
    time: u64,
    /// Whether the page is a node and a step has looked at it.
    was_looked_at: bool,
    page: PageRef,
}

impl ReadAhead {
    /// Whether no page has arrived or is on its way.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.in_flight.is_empty()
    }

    /// The next tick of the clock.
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

    /// How many pages have arrived.
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

    /// Keeps the newest [`MAX_HINTS`] hinted pages, each once. The list holds twice as many, so at least
    /// [`MAX_HINTS`] hints come between two calls, and a hint costs constant time on average.
    fn forget_old_hints(&mut self) {
        let mut met = HashSet::with_hasher(KeyHash::default());
        let newest_first = self.hints.drain(..).rev().filter(|hint| met.insert(hint.key));
        let newest: Vec<Request> = newest_first.take(MAX_HINTS).collect();
        self.hints.extend(newest.into_iter().rev());
    }

    /// A page that has arrived. It stays here.
    #[inline]
    pub fn page(&self, key: PageKey) -> Option<&PageRef> {
        self.pages.get(&key).map(|ahead| &ahead.page)
    }

    /// A node that has arrived, at which a step looks now.
    #[inline]
    pub fn node(&mut self, key: PageKey) -> Option<PageRef> {
        let ahead = self.pages.get_mut(&key).filter(|ahead| is_node(ahead.page.kind()))?;
        self.clock += 1;
        (ahead.time, ahead.was_looked_at) = (self.clock, true);
        Some(ahead.page.clone())
    }

    /// Hands a page to the step that needs it. A node also stays here for later steps; any other page leaves.
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

    /// The flight of a page that is on its way.
    pub fn flight(&self, key: PageKey) -> Option<Arc<Flight>> {
        self.in_flight.get(&key).map(|ahead| Arc::clone(&ahead.flight))
    }

    /// Adds pages whose reads have begun.
    pub fn add_flights(&mut self, flights: impl IntoIterator<Item = (PageKey, InFlight)>) {
        self.in_flight.extend(flights);
    }

    /// Collects all pages that have landed.
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

    /// Collects one page, if it has landed.
    #[inline]
    pub fn gather_one(&mut self, key: PageKey) {
        if self.in_flight.is_empty() {
            return;
        }
        let Some(landing) = self.in_flight.get(&key).and_then(|ahead| ahead.flight.landing()) else { return };
        let time = self.in_flight.remove(&key).map_or(0, |ahead| ahead.time);
        keep_landed(&mut self.pages, key, time, landing);
    }

    /// Ends a round that brought `needed`. `was_short` says whether the round lacked room for some hints. Needed
    /// nodes that the cache does not keep are kept here, and then pages are evicted until all fit into
    /// `room_bytes`. `None` means that other sessions queue for memory, so nothing is kept.
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

    /// Makes room for the pages of `requests`, by the rules at the top of the file. All pages here may take
    /// `most_bytes`. Returns how many of these bytes are left for pages that are not needed yet.
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

    /// Evicts pages until at most `most_bytes` are left: first nodes that were looked at, oldest look first; then
    /// the pages that were asked for last.
    fn limit(&mut self, most_bytes: u64) {
        self.evict(most_bytes, |ahead| {
            Some(if ahead.was_looked_at { (false, ahead.time) } else { (true, u64::MAX - ahead.time) })
        });
    }

    /// Memory of the pages that have arrived or are on their way.
    fn bytes(&self) -> u64 {
        let in_flight: u64 = self.in_flight.values().map(|ahead| ahead.bytes).sum();
        in_flight + self.pages.values().map(|ahead| ahead.page.cost_bytes()).sum::<u64>()
    }

    /// Evicts pages in the order of their ranks until at most `most_bytes` are left. Pages without a rank stay.
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

/// Keeps a page that landed. Errors are not kept: the step that needs the page reads it again and reports the
/// error.
fn keep_landed(pages: &mut HashMap<PageKey, AheadPage, KeyHash>, key: PageKey, time: u64, landing: Landing) {
    if let Landing::Arrived(page) = landing {
        pages.insert(key, AheadPage { time, was_looked_at: false, page });
    }
}
