//! One round of fetching: look, reserve, claim, begin to read, and, once all pages have landed, gather them. A
//! round does not know which step it serves.
//!
//! This order keeps sessions from waiting for each other in a circle. All waiting for memory is over before the
//! first page is claimed. The thread that reads a page also ends its flight, without help from the session. So
//! every awaited page arrives even if the session that asked for it does nothing.

use super::admit::Admit;
use super::own_memory::OwnMemory;
use super::request::Request;
use crate::budget::{Charge, Turn};
use crate::cache::claim::{Claim, Made, PageLookup};
use crate::cache::flight::{Arrivals, Demand, Flight, Landing};
use crate::cache::reserve::Reserved;
use crate::file::StoredPage;
use crate::page::{adopt_page, decode_page};
use crate::page_key::PageKey;
use crate::page_read::PageRead;
use crate::{Address, Error, PageCache, PageHeader, PageKind, PageRef, PagedFile, Result};
use os::store::StoreObject;
use os::sync::Arc;
use os::{BLOCK_BYTES, Buffer, ReadRequest, ReadSource, Reads, Urgency};
use std::io;
use std::task::Context;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// How a round is made.
pub(super) struct Manner<'c> {
    pub cache: &'c Arc<PageCache>,
    pub admit: Admit,
    /// The memory that pays for the pages in place of the cache, if the session has its own.
    pub own_memory: Option<&'c OwnMemory>,
    /// Who needs the needed pages: steps of readers, or steps of background work.
    pub demand: Demand,
    /// Room for pages that no step needs yet and that the cache does not keep, in bytes.
    pub ahead_bytes: u64,
    /// Whether the round also waits for pages that no step needs yet.
    pub waits_for_all: bool,
    /// Whether this thread itself reads a page that is the round's only read.
    pub reads_here: bool,
}

impl Manner<'_> {
    /// Whether the cache keeps the requested page.
    fn admits(&self, request: &Request) -> bool {
        self.admit.admits(request.kind)
    }

    /// Reserves memory for the missing pages that are needed, and tells what pays for it. `None` as for
    /// [`Round::begin`].
    fn reserve(
        &self,
        bytes: u64,
        turn: &mut Option<Arc<Turn>>,
        waiter: Option<&RoomWaiter<'_, '_>>,
    ) -> Option<(Charge, Payer)> {
        let reserved = match (self.own_memory, bytes, waiter) {
            (Some(_), 0, _) => return Some((Charge::none(), Payer::OwnMemory)),
            (Some(own_memory), ..) => return Some((own_memory.reserve(bytes), Payer::OwnMemory)),
            (None, 0, _) => return Some((Charge::none(), Payer::Cache)),
            (None, _, Some(RoomWaiter { number, context })) => {
                self.cache.poll_reserve(bytes, turn, *number, context)?
            }
            (None, _, None) => self.cache.reserve(bytes, turn),
        };
        Some(match reserved {
            Reserved::Room(charge) => (charge, Payer::Cache),
            Reserved::Overdrawn(charge) => (charge, Payer::Overdraft),
        })
    }
}

/// A task that may have to wait for room.
pub(super) struct RoomWaiter<'c, 't> {
    /// The number under which the task queues, which is its session's number.
    pub number: u64,
    pub context: &'c Context<'t>,
}

/// A round whose pages are on their way.
#[derive(Default)]
pub(super) struct Round {
    /// Counts the awaited pages.
    pub arrivals: Arc<Arrivals>,
    /// Needed pages that were in memory already.
    here: Vec<(PageKey, PageRef)>,
    /// Needed pages on their way.
    awaited: Vec<Awaited>,
    /// Awaited pages that no step needs yet.
    also: Vec<(Arc<Flight>, Arc<PagedFile>)>,
    /// Reads ahead of pages that the cache does not keep, in the order of files and offsets.
    pub ahead: Vec<(PageKey, InFlight)>,
    /// Whether some of the pages that are not needed yet had no room.
    pub was_short: bool,
    /// The pages that this round reads from disk, whether the reads succeed or not.
    pub reads: Vec<PageRead>,
}

/// A page that is not in memory and that no session reads.
struct MissingPage<'r> {
    request: &'r Request,
    /// Pays for the page's memory, once this is reserved.
    charge: Option<Charge>,
}

/// A needed page on its way.
struct Awaited {
    key: PageKey,
    flight: Arc<Flight>,
    file: Arc<PagedFile>,
    kind: PageKind,
    offset: u64,
    by: ReadBy,
}

/// Which session reads an awaited page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadBy {
    ThisRound,
    /// Another session, or this session in an earlier round.
    Another,
}

/// What pays for the pages that a round reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Payer {
    /// The cache, within its budget. Other sessions find the pages, and the cache may keep them.
    Cache,
    /// The cache, beyond its budget. The pages are private to the step.
    Overdraft,
    /// The session's own memory. The pages are private to the session.
    OwnMemory,
}

/// A page on its way that was asked for ahead.
pub(super) struct InFlight {
    pub flight: Arc<Flight>,
    /// When it was asked for.
    pub time: u64,
    /// The bytes reserved for it.
    pub bytes: u64,
}

impl Round {
    /// Begins to bring `requests` (sorted by key, without duplicates) into memory. Requests that are not needed yet
    /// are served only while they have room, in the order in which they were made. `in_flight` returns the
    /// session's own flight of a page, if it has one. `turn` is the step's right to exceed the budget; the call
    /// takes it if needed.
    ///
    /// With a `waiter`, the result may be `None`: no room is left, nothing was begun, and the task is woken when it
    /// should try again. Without one, the call waits for room.
    pub fn begin(
        manner: &Manner<'_>,
        requests: &[Request],
        in_flight: impl Fn(PageKey) -> Option<Arc<Flight>>,
        turn: &mut Option<Arc<Turn>>,
        waiter: Option<RoomWaiter<'_, '_>>,
    ) -> Option<Self> {
        let mut round = Self::default();
        let mut missing: Vec<MissingPage<'_>> = Vec::new();
        for request in requests {
            match in_flight(request.key) {
                Some(flight) => round.expect(manner, request, flight),
                None => match manner.cache.look(request.key, manner.admits(request)) {
                    PageLookup::Resident(page) => round.found(request, page),
                    PageLookup::InFlight(flight) => round.expect(manner, request, flight),
                    PageLookup::Missing | PageLookup::Claimed(_) => missing.push(MissingPage { request, charge: None }),
                },
            }
        }

        let needed_bytes: u64 =
            missing.iter().map(|page| page.request).filter(|request| request.needed).map(Request::memory_bytes).sum();
        let (mut reserved, payer) = manner.reserve(needed_bytes, turn, waiter.as_ref())?;
        for MissingPage { request, charge } in missing.iter_mut().filter(|page| page.request.needed) {
            *charge = Some(reserved.split(request.memory_bytes()));
        }
        drop(reserved);
        round.reserve_ahead(manner, &mut missing, turn.is_some());

        let mut readings: Vec<PageReading> = Vec::new();
        for MissingPage { request, charge } in missing {
            let Some(charge) = charge else { continue };
            readings.extend(round.claim(manner, request, charge, payer, turn.as_ref()));
        }
        if let Some(budget) = turn.as_ref().and_then(|turn| turn.budget_of_tasks()) {
            round.arrivals = Arc::new(Arrivals::of_holder(budget));
        }
        // A single page is read on this thread, if that is allowed, because this is faster than handing the read to
        // another thread. After that the page has nearly always landed, and the round need not wait.
        let is_single = matches!(&round.awaited[..], [awaited] if awaited.by == ReadBy::ThisRound);
        if manner.reads_here && is_single && readings.len() == 1 {
            readings.drain(..).for_each(|reading| reading.make(manner.cache));
        }
        for flight in
            round.awaited.iter().map(|awaited| &awaited.flight).chain(round.also.iter().map(|(flight, _)| flight))
        {
            flight.await_in(&round.arrivals);
        }
        read(manner.cache, readings);
        Some(round)
    }

    /// Makes this round the reader of a missing page, unless another session has brought or claimed the page since
    /// the first look. `payer` has paid `charge` for it.
    fn claim(
        &mut self,
        manner: &Manner<'_>,
        request: &Request,
        charge: Charge,
        payer: Payer,
        turn: Option<&Arc<Turn>>,
    ) -> Option<PageReading> {
        let (cache, admits) = (manner.cache, manner.admits(request));
        let ticket = cache.new_ticket();
        let demand = if request.needed { manner.demand } else { Demand::None };
        let known = match payer {
            Payer::Cache => cache.claim(request.key, ticket, admits, demand),
            Payer::Overdraft | Payer::OwnMemory => cache.look(request.key, admits),
        };
        let claim = match known {
            PageLookup::Claimed(claim) => claim,
            PageLookup::Missing => cache.claim_alone(request.key, ticket, demand, turn.cloned()),
            PageLookup::Resident(page) => {
                self.found(request, page);
                return None;
            }
            PageLookup::InFlight(flight) => {
                self.expect(manner, request, flight);
                return None;
            }
        };
        let flight = Arc::clone(claim.flight());
        if request.needed {
            self.await_flight(request, flight, ReadBy::ThisRound);
        } else {
            self.await_ahead(manner, request, &flight);
            if !admits {
                self.ahead.push((request.key, InFlight { flight, time: request.time, bytes: charge.bytes() }));
            }
        }
        let &Request { key, at, kind, needed, .. } = request;
        self.reads.push(PageRead { file: request.file.id(), at, kind, needed, key });
        let urgency = match (manner.demand, needed) {
            (Demand::Background, _) => Urgency::Background,
            (Demand::Reader | Demand::None, true) => Urgency::Needed,
            (Demand::Reader | Demand::None, false) => Urgency::Ahead,
        };
        Some(PageReading { key, file: Arc::clone(&request.file), at, kind, urgency, payer, charge, claim })
    }

    fn found(&mut self, request: &Request, page: PageRef) {
        if request.needed {
            self.here.push((request.key, page));
        }
    }

    /// Handles a page that is on its way already: awaits it if it is needed.
    fn expect(&mut self, manner: &Manner<'_>, request: &Request, flight: Arc<Flight>) {
        if request.needed {
            if flight.need(manner.demand) {
                request.file.reads().raise(flight.ticket());
            }
            self.await_flight(request, flight, ReadBy::Another);
        } else {
            self.await_ahead(manner, request, &flight);
        }
    }

    /// Awaits a page that no step needs yet, if the round waits for such pages.
    fn await_ahead(&mut self, manner: &Manner<'_>, request: &Request, flight: &Arc<Flight>) {
        if manner.waits_for_all {
            self.also.push((Arc::clone(flight), Arc::clone(&request.file)));
        }
    }

    fn await_flight(&mut self, request: &Request, flight: Arc<Flight>, by: ReadBy) {
        let Request { key, file, at, kind, .. } = request;
        let awaited = Awaited { key: *key, flight, file: Arc::clone(file), kind: *kind, offset: at.offset, by };
        self.awaited.push(awaited);
    }

    /// Reserves memory for the pages that are not needed yet, in the order in which they were asked for, while room
    /// is left.
    fn reserve_ahead(&mut self, manner: &Manner<'_>, missing: &mut [MissingPage<'_>], is_overdrawn: bool) {
        let mut ahead: Vec<&mut MissingPage<'_>> = missing.iter_mut().filter(|page| !page.request.needed).collect();
        ahead.sort_unstable_by_key(|page| page.request.time);
        let mut left = manner.ahead_bytes;
        for MissingPage { request, charge: paid } in ahead {
            let bytes = request.memory_bytes();
            let waiting = if manner.admit.admits(request.kind) { 0 } else { bytes };
            let charge = match manner.own_memory {
                _ if waiting > left || is_overdrawn => None,
                Some(own_memory) => own_memory.try_reserve(bytes),
                None => manner.cache.try_reserve(bytes),
            };
            if charge.is_none() {
                self.was_short = true;
                break;
            }
            left -= waiting;
            *paid = charge;
        }
    }

    /// Waits until all pages that this round awaits have arrived.
    pub fn wait(&self) {
        let files = || self.awaited.iter().map(|awaited| &awaited.file).chain(self.also.iter().map(|(_, file)| file));
        while !self.arrivals.are_all_here() && files().any(|file| file.reads().drive()) {}
        self.arrivals.wait();
    }

    /// Whether the step has to wait for the disk, for its own reads or those of other sessions.
    pub fn waits(&self) -> bool {
        !self.awaited.is_empty() || !self.also.is_empty()
    }

    /// The needed pages, once all have arrived, and the first error about one of them.
    pub fn gather(self) -> (Vec<(PageKey, PageRef)>, Option<Error>) {
        let (mut pages, mut error) = (self.here, None);
        for Awaited { key, flight, file, kind, offset, by } in self.awaited {
            match flight.landing().expect("all have landed") {
                Landing::Arrived(page) => pages.push((key, page)),
                Landing::Failed(why) => {
                    error.get_or_insert(why);
                }
                // If another session's read was abandoned, the step finds the page missing and asks again. If this
                // round's own read was abandoned, that does not help, so it is an error.
                Landing::Abandoned if by == ReadBy::ThisRound => {
                    error.get_or_insert_with(|| file.corrupt(kind, offset, "checking it panicked"));
                }
                Landing::Abandoned => {}
            }
        }
        (pages, error)
    }
}

/// A page that is about to be read.
struct PageReading {
    key: PageKey,
    file: Arc<PagedFile>,
    at: Address,
    kind: PageKind,
    urgency: Urgency,
    payer: Payer,
    charge: Charge,
    claim: Claim,
}

impl PageReading {
    /// Reads the page on this thread.
    fn make(self, cache: &PageCache) {
        let reads = Arc::clone(self.file.reads());
        reads.make(self.begin(cache));
    }

    /// The read of the blocks around the page.
    fn begin(self, cache: &PageCache) -> ReadRequest {
        let offset = self.at.offset - self.at.offset % BLOCK;
        let start = (self.at.offset - offset) as usize;
        let bytes = (start + self.at.bytes as usize).next_multiple_of(BLOCK_BYTES);
        let source: Arc<dyn ReadSource> = Arc::clone(&self.file) as Arc<dyn ReadSource>;
        let (urgency, ticket) = (self.urgency, self.claim.flight().ticket());
        let buffer = buffer(cache, self.payer, bytes);
        let done = Box::new(move |buffer, outcome| self.land(buffer, start, outcome));
        ReadRequest { source, offset, buffer, urgency, ticket, done }
    }

    /// Ends the flight with what was read. Bytes from a store may be damaged on the way, so a damaged page is first
    /// asked for once more.
    fn land(self, read: Buffer, start: usize, outcome: io::Result<usize>) {
        let page = self.page_of(read, start, outcome);
        let is_damaged = matches!(page, Err(Error::Corrupt { .. }));
        match is_damaged.then(|| self.file.object()).flatten() {
            Some(object) => self.ask_anew(&object, start),
            None => self.end(page),
        }
    }

    /// Asks the store for the blocks around the page once more, and ends the flight with the page or an error.
    fn ask_anew(self, object: &StoreObject, start: usize) {
        let bytes = (start + self.at.bytes as usize).next_multiple_of(BLOCK_BYTES);
        let offset = self.at.offset - start as u64;
        let done = move |read: io::Result<&[&[u8]]>| {
            let mut filled = buffer(self.claim.cache(), self.payer, bytes);
            let outcome = read.map(|pieces| {
                let read = pieces.concat();
                filled[..read.len()].copy_from_slice(&read);
                read.len()
            });
            let page = self.page_of(filled, start, outcome);
            self.end(page);
        };
        object.store.begin_read_anew(&object.name, offset..offset + bytes as u64, Box::new(done));
    }

    /// Decodes the page from the bytes that were read, into a buffer of its own.
    fn page_of(&self, read: Buffer, start: usize, outcome: io::Result<usize>) -> Result<(Buffer, PageHeader)> {
        let Self { file, at, kind, .. } = self;
        let stored = file.stored(read, start, outcome).and_then(|stored| {
            file.check_end(&stored, at.offset - start as u64, at, *kind)?;
            Ok(stored)
        });
        stored.and_then(|StoredPage { buffer: read, start }| {
            let memory = |bytes| buffer(self.claim.cache(), self.payer, bytes);
            let unpacker = self.claim.cache().unpacker();
            match start {
                0 => adopt_page(read, *kind, at, file.id(), unpacker, memory),
                _ => decode_page(&read[start..][..at.bytes as usize], *kind, at, file.id(), unpacker, memory),
            }
            .map_err(|why| file.undecoded(*kind, at.offset, why))
        })
    }

    fn end(self, page: Result<(Buffer, PageHeader)>) {
        let Self { key, file, at, kind, charge, claim, .. } = self;
        let made: Result<Made> = page.and_then(|page| {
            let is_needed = claim.flight().is_needed();
            claim.cache().make_page(key, page, at, charge, is_needed).map_err(|why| file.corrupt(kind, at.offset, why))
        });
        claim.land(file.state(), made);
    }
}

/// Memory for a page: from the cache, or from the heap if the session's own memory pays.
fn buffer(cache: &PageCache, payer: Payer, bytes: usize) -> Buffer {
    match payer {
        Payer::Cache | Payer::Overdraft => cache.buffer(bytes),
        Payer::OwnMemory => Buffer::zeroed(bytes),
    }
}

/// Begins to read pages.
fn read(cache: &PageCache, readings: Vec<PageReading>) {
    let can_wait = |reading: &&PageReading| reading.urgency != Urgency::Needed;
    let waiting = |reading: &PageReading| (Arc::clone(reading.claim.flight()), Arc::clone(reading.file.reads()));
    let waiting: Vec<_> = readings.iter().filter(can_wait).map(waiting).collect();
    let mut reads: Vec<ReadRequest> = Vec::with_capacity(readings.len());
    let mut reader: Option<Arc<dyn Reads>> = None;
    for reading in readings {
        let its = Arc::clone(reading.file.reads());
        let read = reading.begin(cache);
        if let Some(before) = reader.as_ref().filter(|before| !Arc::ptr_eq(before, &its)) {
            before.submit(std::mem::take(&mut reads));
        }
        reader = Some(its);
        reads.push(read);
    }
    if let Some(reader) = reader {
        reader.submit(reads);
    }
    // Another session may have needed one of these pages before the reads were submitted, and so before it could
    // raise them. Such reads are raised here.
    for (flight, reader) in waiting.iter().filter(|(flight, _)| flight.is_urgent()) {
        reader.raise(flight.ticket());
    }
}
