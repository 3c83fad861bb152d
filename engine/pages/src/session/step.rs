//! State of the step in progress: its misses, its pins, its place in the queue for room, and its turn. A session
//! has it from its first miss on. It does not know how pages are read, or why the step asks for them.

use super::ahead::ReadAhead;
use super::parked::{Parcel, Parked, Unparked};
use super::request::Request;
use super::round::Round;
use crate::budget::Turn;
use crate::page_key::{KeyHash, PageKey};
use crate::{PageCache, PageKind, PageRef};
use os::sync::Arc;
use std::collections::HashSet;

/// The requests of the step in progress, and what it got.
#[derive(Default)]
pub(super) struct StepState {
    /// Misses since the last round.
    pub needed: Vec<Request>,
    /// Pages fetched for this step, sorted by key.
    pub pins: Vec<(PageKey, PageRef)>,
    /// Pages read from disk for this step that [`PageLender::take_read`](crate::PageLender::take_read) has not
    /// reported yet.
    pub read: HashSet<PageKey, KeyHash>,
    /// Requests of a fetch that could not begin yet for lack of room; see
    /// [`Session::poll_fetch`](crate::Session::poll_fetch).
    pub held_up: Vec<Request>,
    /// The step's pins, round and turn, left with the cache while the future waits.
    pub parked: Option<Parked>,
    /// How often other sessions took what the step had parked.
    pub losses: u32,
    /// The number under which the session queues for room, once it had to.
    pub waiter: Option<u64>,
    /// What was asked for ahead. It outlives the step.
    pub read_ahead: ReadAhead,
    /// The right to exceed the budget. The step keeps it from the round that needed it until the step and its reads
    /// have ended.
    pub turn: Option<Arc<Turn>>,
    /// Rounds that had to wait for the disk since the session was opened.
    pub rounds: u64,
    /// Pages that the session read from disk, by kind.
    pub reads: [u64; PageKind::ALL.len()],
}

impl StepState {
    /// Parks the step because its future waits: other sessions may now take its pins, round and turn.
    pub fn park(&mut self, cache: &PageCache, round: Option<Round>) {
        let parcel = Parcel { pins: std::mem::take(&mut self.pins), round, turn: self.turn.take() };
        self.parked = Parked::new(cache, parcel, self.losses);
    }

    /// Takes back what was parked, because the future goes on. If others took it, the step starts anew.
    pub fn unpark(&mut self, cache: &PageCache) -> Unparked {
        let Some(parked) = self.parked.take() else { return Unparked::Whole(None) };
        match parked.take_back(cache) {
            Some(Parcel { pins, round, turn }) => {
                self.pins.extend(pins);
                self.pins.sort_unstable_by_key(|(key, _)| *key);
                self.turn = turn;
                Unparked::Whole(round)
            }
            None => {
                self.losses += 1;
                Unparked::Stripped
            }
        }
    }

    /// Whether the step has pins, or pages read ahead or on their way.
    #[inline]
    pub fn has_pages(&self) -> bool {
        !self.pins.is_empty() || !self.read_ahead.is_empty()
    }

    /// Whether the step has anything to give back or to forget at its end.
    #[inline]
    pub fn has_leftovers(&self) -> bool {
        !self.needed.is_empty()
            || !self.pins.is_empty()
            || !self.held_up.is_empty()
            || !self.read.is_empty()
            || self.parked.is_some()
            || self.waiter.is_some()
            || self.turn.is_some()
            || self.losses > 0
    }

    /// A page that was fetched for this step. A page that was read ahead becomes one.
    #[inline(never)]
    pub fn pinned(&mut self, key: PageKey) -> Option<PageRef> {
        self.read_ahead.gather_one(key);
        match self.pins.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(place) => Some(self.pins[place].1.clone()),
            Err(place) => {
                let page = self.read_ahead.take(key)?;
                self.pins.insert(place, (key, page.clone()));
                Some(page)
            }
        }
    }

    /// A page that was fetched for this step or read ahead. It stays where it is; a node counts as looked at.
    #[inline(never)]
    pub fn looked_at(&mut self, key: PageKey) -> Option<PageRef> {
        self.read_ahead.gather_one(key);
        self.read_ahead.node(key).or_else(|| self.pinned_or_ahead(key).cloned())
    }

    /// Like [`StepState::looked_at`], but a node does not count as looked at.
    #[inline(never)]
    pub fn glanced_at(&mut self, key: PageKey) -> Option<PageRef> {
        self.read_ahead.gather_one(key);
        self.pinned_or_ahead(key).cloned()
    }

    /// A page that was fetched for this step or read ahead. It stays where it is.
    #[inline]
    pub fn pinned_or_ahead(&self, key: PageKey) -> Option<&PageRef> {
        match self.pins.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(place) => Some(&self.pins[place].1),
            Err(_) => self.read_ahead.page(key),
        }
    }

    /// Whether the page was fetched for this step or read ahead, or is on its way.
    pub fn has_or_asked(&self, key: PageKey) -> bool {
        self.pinned_or_ahead(key).is_some() || self.read_ahead.is_in_flight(key)
    }

    /// Everything that was asked for since the last round: each page once, by file and offset.
    pub fn take_requests(&mut self) -> Vec<Request> {
        let mut requests = std::mem::take(&mut self.needed);
        requests.append(&mut self.held_up);
        self.read_ahead.take_hints(&mut requests);
        // Among requests for the same page, one that needs it comes first and survives.
        requests.sort_by_key(|request| (request.key, !request.needed));
        requests.dedup_by_key(|request| request.key);
        requests.retain(|request| self.pinned_or_ahead(request.key).is_none());
        requests
    }
}
