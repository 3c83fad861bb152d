//! A store in memory for many clients, with the troubles of real stores: responses are lost, requests arrive late or
//! twice, uploads break off, and reads return an older state. One seed decides all this. This module does not know
//! what the objects hold.
//!
//! The store promises the following, and nothing more:
//! - [`Store::put_if_absent`] is atomic for all clients, whatever answer the client gets;
//! - a read of a range finds the object as soon as its upload is finished;
//! - a read of a whole object, its length and a listing are no older than [`StoreTrouble::stale`].

use super::SimClock;
use super::random::Draws;
use crate::Clock;
use crate::store::{RangeDone, Store, StoredObject, Upload};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::time::Duration;

/// For each kind of trouble, how many requests in a thousand have it; and how slow requests are.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreTrouble {
    /// The request is done, but the client gets no answer.
    pub lost_responses: u32,
    /// The request is not done, and the client gets no answer.
    pub lost_requests: u32,
    /// The client gets no answer, and a put is done at some later time.
    pub late: u32,
    /// A put is done twice. The client may get the second response.
    pub duplicates: u32,
    /// The store refuses the request for now.
    pub throttled: u32,
    /// An upload breaks off, and the object never appears.
    pub torn_uploads: u32,
    /// The answer shows the state at an earlier time.
    pub stale_answers: u32,
    /// The bytes of a range are damaged or cut off on their way. The next range that is read is not damaged.
    pub damaged: u32,
    /// How old an answer may be.
    pub stale: Duration,
    /// The longest time that a request takes.
    pub latency: Duration,
}

impl StoreTrouble {
    /// The trouble of `seed`: about half of the kinds never happen, and each of the others has a random rate below `most`.
    pub fn drawn(seed: u64, most: u32, (stale, latency): (Duration, Duration)) -> StoreTrouble {
        let mut draws = Draws::new(seed);
        let mut often = || if draws.coin() { draws.below(most as usize) as u32 } else { 0 };
        StoreTrouble {
            lost_responses: often(),
            lost_requests: often(),
            late: often(),
            duplicates: often(),
            throttled: often(),
            torn_uploads: often(),
            stale_answers: often(),
            damaged: often(),
            stale,
            latency,
        }
    }
}

/// A store in memory.
#[derive(Debug)]
pub struct SimStore {
    clock: Arc<SimClock>,
    state: Mutex<SimStoreState>,
}

#[derive(Debug)]
struct SimStoreState {
    draws: Draws,
    trouble: StoreTrouble,
    /// The history of each name, the newest last.
    objects: BTreeMap<String, Vec<Since>>,
    /// Whether `put_if_absent` replaces existing objects.
    ignores_conditions: bool,
    /// Whether the last read of a range was damaged.
    has_damaged: bool,
    /// Puts that arrive later.
    late: Vec<Put>,
    counts: StoreCounts,
}

/// The object that has a name from a certain time on. `None` if no object has it.
type Since = (Duration, Option<Arc<[u8]>>);

/// A request to put an object.
#[derive(Clone, Debug)]
struct Put {
    name: String,
    bytes: Arc<[u8]>,
    /// Whether the put does nothing if the object exists.
    if_absent: bool,
}

/// Requests so far, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Puts and uploads, also of objects that existed already.
    pub puts: u64,
    /// Reads of a range, of a whole object, or of its length.
    pub gets: u64,
    /// Listings.
    pub lists: u64,
    /// Objects removed.
    pub removes: u64,
    /// Requests that went wrong in any way, and stale or damaged answers.
    pub troubles: u64,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Good,
    LostResponse,
    LostRequest,
    Late,
    Duplicate,
    Throttled,
}

impl SimStore {
    /// An empty store whose trouble follows from `seed`. It has none until [`SimStore::set_trouble`].
    pub fn new(seed: u64, clock: Arc<SimClock>) -> Arc<SimStore> {
        let state = SimStoreState {
            draws: Draws::new(seed),
            trouble: StoreTrouble::default(),
            ignores_conditions: false,
            has_damaged: false,
            objects: BTreeMap::new(),
            late: Vec::new(),
            counts: StoreCounts::default(),
        };
        Arc::new(SimStore { clock, state: Mutex::new(state) })
    }

    /// Sets the trouble from now on.
    pub fn set_trouble(&self, trouble: StoreTrouble) {
        self.state.lock().trouble = trouble;
    }

    /// Makes `put_if_absent` replace existing objects, as behind a proxy that removes the condition from requests.
    pub fn set_ignores_conditions(&self, ignores: bool) {
        self.state.lock().ignores_conditions = ignores;
    }

    /// A new client of the store.
    pub fn client(self: &Arc<SimStore>) -> Arc<SimStoreClient> {
        Arc::new(SimStoreClient { store: Arc::clone(self), left: Arc::new(AtomicU64::new(u64::MAX)) })
    }

    /// Makes all late requests arrive.
    pub fn deliver_late(&self) {
        let now = self.clock.now();
        let state = &mut *self.state.lock();
        for put in std::mem::take(&mut state.late) {
            state.put(&put, now).unwrap_or_default();
        }
    }

    /// The names of all existing objects.
    pub fn names(&self) -> Vec<String> {
        let state = self.state.lock();
        let is_there = |name: &&String| state.newest(name).is_some();
        state.objects.keys().filter(is_there).cloned().collect()
    }

    /// Requests so far.
    pub fn counts(&self) -> StoreCounts {
        self.state.lock().counts
    }

    /// Begins a request: time passes, a late put may arrive, and the seed decides what happens to this request.
    fn begin(&self, count: impl FnOnce(&mut StoreCounts)) -> Fate {
        let state = &mut *self.state.lock();
        count(&mut state.counts);
        if !state.trouble.latency.is_zero() {
            self.clock.advance(state.draws.time_up_to(state.trouble.latency));
        }
        if !state.late.is_empty() && state.draws.below(8) == 0 {
            let arrives = state.draws.below(state.late.len());
            let put = state.late.swap_remove(arrives);
            state.put(&put, self.clock.now()).unwrap_or_default();
        }
        let fate = state.fate();
        state.counts.troubles += u64::from(fate != Fate::Good);
        fate
    }

    /// Does a put once, twice, later or never, and answers it.
    fn make(&self, fate: Fate, put: Put) -> io::Result<()> {
        let now = self.clock.now();
        let state = &mut *self.state.lock();
        match fate {
            Fate::Good => state.put(&put, now),
            Fate::Duplicate => {
                let answers = [state.put(&put, now), state.put(&put, now)];
                let chosen = state.draws.below(2);
                answers.into_iter().nth(chosen).expect("there are two answers")
            }
            Fate::LostResponse => {
                state.put(&put, now).unwrap_or_default();
                Err(lost(&put.name))
            }
            Fate::LostRequest => Err(lost(&put.name)),
            Fate::Late => {
                let name = put.name.clone();
                state.late.push(put);
                Err(lost(&name))
            }
            Fate::Throttled => Err(throttled(&put.name)),
        }
    }

    /// The time whose state an answer shows.
    fn moment(&self) -> Duration {
        let now = self.clock.now();
        let state = &mut *self.state.lock();
        if !state.happens(state.trouble.stale_answers) {
            return now;
        }
        state.counts.troubles += 1;
        now.saturating_sub(state.draws.time_up_to(state.trouble.stale))
    }

    /// The object that had a name at a moment.
    fn at(&self, name: &str, moment: Duration) -> io::Result<Arc<[u8]>> {
        self.state.lock().at(name, moment).ok_or_else(|| missing(name))
    }
}

impl SimStoreState {
    /// Draws whether a trouble happens now, at a rate of `in_a_thousand`.
    fn happens(&mut self, in_a_thousand: u32) -> bool {
        in_a_thousand > 0 && self.draws.below(1000) < in_a_thousand as usize
    }

    fn fate(&mut self) -> Fate {
        let trouble = self.trouble;
        for (often, fate) in [
            (trouble.throttled, Fate::Throttled),
            (trouble.lost_responses, Fate::LostResponse),
            (trouble.lost_requests, Fate::LostRequest),
            (trouble.late, Fate::Late),
            (trouble.duplicates, Fate::Duplicate),
        ] {
            if self.happens(often) {
                return fate;
            }
        }
        Fate::Good
    }

    fn at(&self, name: &str, moment: Duration) -> Option<Arc<[u8]>> {
        let states = self.objects.get(name)?;
        states.iter().rev().find(|(since, _)| *since <= moment)?.1.clone()
    }

    fn newest(&self, name: &str) -> Option<&Arc<[u8]>> {
        self.objects.get(name)?.last()?.1.as_ref()
    }

    fn put(&mut self, put: &Put, now: Duration) -> io::Result<()> {
        if put.if_absent && !self.ignores_conditions && self.newest(&put.name).is_some() {
            return Err(io::Error::new(ErrorKind::AlreadyExists, format!("there is an object {}", put.name)));
        }
        self.set(&put.name, now, Some(Arc::clone(&put.bytes)));
        Ok(())
    }

    /// The damaged bytes that arrive in place of `bytes`, or `None` if `bytes` arrive undamaged.
    fn damaged(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let may_damage = !std::mem::take(&mut self.has_damaged) && !bytes.is_empty();
        if !may_damage || !self.happens(self.trouble.damaged) {
            return None;
        }
        (self.has_damaged, self.counts.troubles) = (true, self.counts.troubles + 1);
        let at = self.draws.below(bytes.len());
        let mut damaged = bytes.to_vec();
        if self.draws.coin() {
            damaged.truncate(at);
        } else {
            damaged[at] ^= 1 << self.draws.below(8);
        }
        Some(damaged)
    }

    fn set(&mut self, name: &str, now: Duration, object: Option<Arc<[u8]>>) {
        self.objects.entry(name.to_owned()).or_default().push((now, object));
    }
}

fn lost(name: &str) -> io::Error {
    io::Error::new(ErrorKind::TimedOut, format!("no answer about object {name}"))
}

fn throttled(name: &str) -> io::Error {
    io::Error::new(ErrorKind::ResourceBusy, format!("the store is too busy for object {name}"))
}

fn missing(name: &str) -> io::Error {
    io::Error::new(ErrorKind::NotFound, format!("there is no object {name}"))
}

/// A client of a simulated store.
#[derive(Debug)]
pub struct SimStoreClient {
    store: Arc<SimStore>,
    /// How many more requests the client can make before it crashes.
    left: Arc<AtomicU64>,
}

/// Counts a request of a client that has `left` requests left.
fn check(left: &AtomicU64) -> io::Result<()> {
    let counted = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    counted.map(drop).map_err(|_| io::Error::new(ErrorKind::BrokenPipe, "the client has crashed"))
}

impl SimStoreClient {
    /// Crashes the client: nothing of it reaches the store any more, except puts that are already late.
    pub fn crash(&self) {
        self.crash_after(0);
    }

    /// As [`SimStoreClient::crash`], but only after the given number of further requests.
    pub fn crash_after(&self, requests: u64) {
        self.left.store(requests, Ordering::Relaxed);
    }

    fn check(&self) -> io::Result<()> {
        check(&self.left)
    }

    /// Begins a request that changes nothing.
    fn begin_look(&self, name: &str, count: impl FnOnce(&mut StoreCounts)) -> io::Result<()> {
        self.check()?;
        match self.store.begin(count) {
            Fate::Good | Fate::Duplicate => Ok(()),
            Fate::Throttled => Err(throttled(name)),
            Fate::LostResponse | Fate::LostRequest | Fate::Late => Err(lost(name)),
        }
    }
}

impl Store for SimStoreClient {
    fn create(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        self.check()?;
        let (store, left) = (Arc::clone(&self.store), Arc::clone(&self.left));
        Ok(Box::new(SimUpload { store, left, name: name.to_owned(), bytes: Vec::new() }))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.check()?;
        let fate = self.store.begin(|counts| counts.puts += 1);
        self.store.make(fate, Put { name: name.to_owned(), bytes: bytes.into(), if_absent: true })
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.begin_look(name, |counts| counts.gets += 1)?;
        Ok(self.store.at(name, self.store.moment())?.to_vec())
    }

    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.begin_look(name, |counts| counts.gets += 1)?;
        let object = self.store.at(name, self.store.clock.now())?;
        let rest = usize::try_from(offset).ok().and_then(|offset| object.get(offset..)).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn begin_read(&self, name: &str, range: Range<u64>, done: RangeDone) {
        let begun = self.begin_look(name, |counts| counts.gets += 1);
        match begun.and_then(|()| self.store.at(name, self.store.clock.now())) {
            Ok(object) => {
                let within = |end: u64| usize::try_from(end).map_or(object.len(), |end| end.min(object.len()));
                let sent = &object[within(range.start)..within(range.end)];
                let arrives = self.store.state.lock().damaged(sent);
                done(Ok(&[arrives.as_deref().unwrap_or(sent)]));
            }
            Err(error) => done(Err(error)),
        }
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.begin_look(name, |counts| counts.gets += 1)?;
        Ok(self.store.at(name, self.store.moment())?.len() as u64)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.check()?;
        let fate = self.store.begin(|counts| counts.removes += 1);
        if !matches!(fate, Fate::Throttled | Fate::LostRequest) {
            let now = self.store.clock.now();
            self.store.state.lock().set(name, now, None);
        }
        match fate {
            Fate::Good | Fate::Duplicate => Ok(()),
            Fate::Throttled => Err(throttled(name)),
            Fate::LostResponse | Fate::LostRequest | Fate::Late => Err(lost(name)),
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        self.begin_look(folder, |counts| counts.lists += 1)?;
        let moment = self.store.moment();
        let state = self.store.state.lock();
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        let listed = state.objects.keys().filter_map(|name| {
            let is_in = name.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('/'));
            let object = state.at(name, moment).filter(|_| is_in)?;
            Some(StoredObject { name: name.clone(), bytes: object.len() as u64 })
        });
        Ok(listed.collect())
    }
}

/// An upload to a simulated store.
#[derive(Debug)]
struct SimUpload {
    store: Arc<SimStore>,
    left: Arc<AtomicU64>,
    name: String,
    bytes: Vec<u8>,
}

impl Upload for SimUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        check(&self.left)?;
        let fate = self.store.begin(|counts| counts.puts += 1);
        let torn = {
            let state = &mut *self.store.state.lock();
            let often = state.trouble.torn_uploads;
            state.happens(often)
        };
        if torn {
            return Err(lost(&self.name));
        }
        self.store.make(fate, Put { name: self.name, bytes: self.bytes.into(), if_absent: false })
    }
}

#[cfg(test)]
mod tests;
