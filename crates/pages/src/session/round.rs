//! One round of fetching: look, reserve, claim, read, wait, in this order. It does not know the step it is for.
//!
//! The order is what keeps sessions from waiting for each other in a circle. All waiting for memory is over before the
//! first page is claimed; all pages claimed have landed before the first page of others is waited for.

use super::{Admit, Request};
use crate::cache::budget::{Charge, Turn};
use crate::cache::flight::{Flight, Landing};
use crate::cache::shard::Key;
use crate::cache::{Claim, Look, Reserved, first_heat};
use crate::file::Stored;
use crate::page::{adopt_page, decode_page};
use crate::{Address, Error, PageCache, PageKind, PageRef, Result};
use os::BLOCK_BYTES;
use os::sync::Arc;

/// Pages that follow each other in a file are read together up to this length, if that is a sixteenth of the budget at
/// most: 1 MiB takes a disk little longer than 64 KiB, and the copies out of it are small beside a read.
const MAX_RUN_BYTES: u64 = 1 << 20;

/// What a round brought.
#[derive(Default)]
pub(super) struct Outcome {
    /// The needed pages, in no order.
    pub needed: Vec<(Key, PageRef)>,
    /// The pages read ahead, each with the time it was asked for, in the order of files and offsets.
    pub ahead: Vec<(Key, u64, PageRef)>,
    /// Whether there was no room for some of the pages that are not needed.
    pub turned_away: bool,
    /// The pages this round read from disk, whatever came of it.
    pub reads: Vec<PageRead>,
    /// Whether the round waited for the disk, reading or for others who read.
    pub waited: bool,
    /// The first error about a needed page.
    pub error: Option<Error>,
}

/// A page read from disk.
#[derive(Clone, Copy, Debug)]
pub struct PageRead {
    /// Id of its file.
    pub file: u64,
    /// Where it lies there.
    pub at: Address,
    /// What it is for.
    pub kind: PageKind,
    /// Whether the step needs it; otherwise it was read ahead.
    pub needed: bool,
    pub(crate) key: Key,
}

/// A page this round reads.
struct Reading<'r, 'c> {
    request: &'r Request,
    charge: Charge,
    /// `None` for a page beyond the budget, which this step shares with nobody.
    claim: Option<Claim<'c>>,
}

/// Brings `requests` (sorted, each page once) into memory, at most `ahead_bytes` of those that are not needed,
/// for which there is room in the order they were asked for. `turn` is the right to exceed the budget if the step has it already, or gets it here.
pub(super) fn run(
    cache: &PageCache,
    admit: Admit,
    requests: &[Request],
    ahead_bytes: u64,
    turn: &mut Option<Turn>,
) -> Outcome {
    let keep = admit == Admit::Keep;
    let mut outcome = Outcome::default();
    let mut awaited: Vec<(Key, Arc<Flight>)> = Vec::new();
    let mut missing: Vec<&Request> = Vec::new();
    for request in requests {
        match cache.look(request.key, keep) {
            Look::Resident(page) if request.needed => outcome.needed.push((request.key, page)),
            Look::InFlight(flight) if request.needed => awaited.push((request.key, flight)),
            Look::Resident(_) | Look::InFlight(_) => {}
            Look::Missing | Look::Claimed(_) => missing.push(request),
        }
    }

    let needed_bytes: u64 =
        missing.iter().filter(|request| request.needed).map(|request| request.at.memory_bytes()).sum();
    let (mut reserved, shared) = match needed_bytes {
        0 => (Charge::none(), true),
        _ => match cache.reserve(needed_bytes, turn) {
            Reserved::Room(charge) => (charge, true),
            Reserved::Overdrawn(charge) => (charge, false),
        },
    };

    let split = |request: &&Request| request.needed.then(|| reserved.split(request.at.memory_bytes()));
    let mut charges: Vec<Option<Charge>> = missing.iter().map(split).collect();
    let mut ahead: Vec<usize> = (0..missing.len()).filter(|&i| !missing[i].needed).collect();
    ahead.sort_unstable_by_key(|&i| missing[i].time);
    let mut ahead_left = if turn.is_some() { 0 } else { ahead_bytes };
    for i in ahead {
        let bytes = missing[i].at.memory_bytes();
        let charge = if bytes <= ahead_left { cache.try_reserve(bytes) } else { None };
        if charge.is_none() {
            outcome.turned_away = true;
            break;
        }
        ahead_left -= bytes;
        charges[i] = charge;
    }

    let mut readings: Vec<Reading> = Vec::new();
    for (request, charge) in missing.into_iter().zip(charges) {
        let Some(charge) = charge else { continue };
        // Others may have brought or claimed it since the first look.
        let known = match shared {
            true => cache.claim(request.key, keep, first_heat(request.kind, request.needed)),
            false => cache.look(request.key, keep),
        };
        match known {
            Look::Claimed(claim) => readings.push(Reading { request, charge, claim: Some(claim) }),
            Look::Missing => readings.push(Reading { request, charge, claim: None }),
            Look::Resident(page) if request.needed => outcome.needed.push((request.key, page)),
            Look::InFlight(flight) if request.needed => awaited.push((request.key, flight)),
            Look::Resident(_) | Look::InFlight(_) => {}
        }
    }
    drop(reserved);
    outcome.waited = !readings.is_empty() || !awaited.is_empty();

    let mut readings = readings.into_iter().peekable();
    while let Some(first) = readings.next() {
        let start = first.request.at.offset;
        let longest = MAX_RUN_BYTES.min(cache.budget().limit() / 16);
        let mut run = vec![first];
        let mut end = run[0].request.at.end();
        while let Some(next) = readings.next_if(|next| {
            let at = next.request.at;
            Arc::ptr_eq(&next.request.file, &run[0].request.file) && at.offset == end && at.end() - start <= longest
        }) {
            end = next.request.at.end();
            run.push(next);
        }
        read_run(cache, run, &mut outcome);
    }

    for (key, flight) in awaited {
        match flight.wait() {
            Landing::Arrived(page) => outcome.needed.push((key, page)),
            Landing::Failed(error) => outcome.fail(error),
            // The step will find it missing and ask again.
            Landing::Abandoned => {}
        }
    }
    outcome
}

/// Reads pages that follow each other: together if there is memory for that, otherwise one by one.
fn read_run(cache: &PageCache, run: Vec<Reading>, outcome: &mut Outcome) {
    let (first, last) = (&run[0].request, &run[run.len() - 1].request);
    let (start, bytes) = (first.at.offset, last.at.end().saturating_sub(first.at.offset));
    if run.len() > 1
        && let Some(_charge) = cache.try_reserve(bytes + 2 * BLOCK_BYTES as u64)
        && let Ok(stored) = first.file.read_range(start, bytes as usize)
        && stored.buffer.len() >= stored.start + bytes as usize
    {
        for reading in run {
            let at = reading.request.at;
            let place = stored.start + (at.offset - start) as usize;
            let bytes = &stored.buffer[place..place + at.bytes as usize];
            land(cache, reading, outcome, |request| {
                decode_page(bytes, request.kind, &at, request.file.id())
                    .map_err(|why| request.file.corrupt(request.kind, at.offset, why))
            });
        }
        return;
    }
    // Also when reading them together failed: an error belongs to the page it is about.
    for reading in run {
        land(cache, reading, outcome, read_page);
    }
}

/// Reads and verifies one page.
fn read_page(request: &Request) -> Result<(os::Buffer, crate::PageHeader)> {
    let Request { file, at, kind, .. } = request;
    let Stored { buffer, start } = file.read(at, *kind)?;
    let page = match start {
        0 => adopt_page(buffer, *kind, at, file.id()),
        _ => decode_page(&buffer[start..start + at.bytes as usize], *kind, at, file.id()),
    };
    page.map_err(|why| file.corrupt(*kind, at.offset, why))
}

/// Ends the flight of one page with what `read` says.
fn land(
    cache: &PageCache,
    Reading { request, charge, claim }: Reading,
    outcome: &mut Outcome,
    read: impl FnOnce(&Request) -> Result<(os::Buffer, crate::PageHeader)>,
) {
    let Request { file, at, kind, needed, key, .. } = request;
    outcome.reads.push(PageRead { file: file.id(), at: *at, kind: *kind, needed: *needed, key: *key });
    let made = read(request).and_then(|page| {
        cache
            .make_page(page, request.at, charge)
            .map_err(|why| request.file.corrupt(request.kind, request.at.offset, why))
    });
    if let Some(claim) = claim {
        claim.land(&request.file, &made);
    }
    match (made, request.needed) {
        (Ok(made), true) => outcome.needed.push((request.key, made.page)),
        (Ok(made), false) if made.fits => outcome.ahead.push((request.key, request.time, made.page)),
        // Nobody needs it yet, and it is beyond the budget.
        (Ok(_), false) => {}
        (Err(error), true) => outcome.fail(error),
        // Whoever needs it later will be told.
        (Err(_), false) => {}
    }
}

impl Outcome {
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}
