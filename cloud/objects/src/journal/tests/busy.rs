//! Tests of other processes while a busy writer puts sheets faster than they can make a request: reading, making a
//! branch and taking over must still come to an end. Other tests let a process pause between any two of its
//! requests, for longer than any time limit of the journal. This must do no harm.

use super::{Process, calm, disk, kind, path, read_numbers};
use crate::journal::sheet::SheetWriter;
use crate::journal::table::CLAIM;
use crate::journal::{Branch, CUTS, Journal};
use crate::{Outside, StoreDisk};
use os::sim::{SimClock, SimRandom, SimStore, SimStoreClient, SimThreads, StoreTrouble};
use os::store::{PutDone, RangeDone};
use os::sync::{Arc, Mutex};
use os::{Access, Disk, File, Store, StoredObject, Upload};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::fmt;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// Plays the other process before each round trip of the client. It gets the number of the round trip, from 1 on.
type Meanwhile = Box<dyn Fn(u64) + Send + Sync>;

/// A store whose client is slower than another process that uses it. Requests that the client has under way
/// together count as one round trip. During such a round trip, the other process also acts before the fifth
/// request.
struct Beside {
    client: Arc<SimStoreClient>,
    meanwhile: Meanwhile,
    state: Mutex<Trips>,
}

#[derive(Default)]
struct Trips {
    count: u64,
    /// The kind and the number of the requests that are under way together.
    under_way: Option<(&'static str, u64)>,
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Beside")
    }
}

impl Beside {
    fn new(store: &Arc<SimStore>, meanwhile: impl Fn(u64) + Send + Sync + 'static) -> Arc<Beside> {
        Arc::new(Beside { client: store.client(), meanwhile: Box::new(meanwhile), state: Mutex::default() })
    }

    fn trips(&self) -> u64 {
        self.state.lock().count
    }

    /// Called before each request. `batch` is the kind of the request if the client may have several of them under
    /// way together, and `None` if it waits for this one before it makes another.
    fn begin(&self, batch: Option<&'static str>) {
        let count = {
            let state = &mut *self.state.lock();
            match (&mut state.under_way, batch) {
                (Some((kind, number)), Some(batch)) if *kind == batch => {
                    *number += 1;
                    if *number != 5 {
                        return;
                    }
                }
                (under_way, batch) => {
                    *under_way = batch.map(|kind| (kind, 1));
                    state.count += 1;
                }
            }
            state.count
        };
        (self.meanwhile)(count);
    }
}

impl Store for Beside {
    fn create(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        self.client.create(name)
    }
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.begin(None);
        self.client.put_if_absent(name, bytes)
    }
    fn begin_put_if_absent(&self, name: &str, bytes: Vec<u8>, done: PutDone) {
        // The probe is not counted, because it is under way together with the list after it.
        if !name.ends_with("probe") {
            self.begin(Some("put"));
        }
        done(self.client.put_if_absent(name, &bytes));
    }
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.begin(None);
        self.client.get(name)
    }
    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.begin(None);
        self.client.read_at(name, buffer, offset)
    }
    fn begin_read(&self, name: &str, range: Range<u64>, done: RangeDone) {
        self.begin(Some("read"));
        self.client.begin_read(name, range, done);
    }
    fn len(&self, name: &str) -> io::Result<u64> {
        self.begin(None);
        self.client.len(name)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.begin(None);
        self.client.remove(name)
    }
    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        self.begin(None);
        self.client.list(folder)
    }
}

fn outside(clock: &Arc<SimClock>, seed: u64) -> Outside {
    Outside {
        clock: clock.clone(),
        random: Arc::new(SimRandom::new(seed)),
        threads: Arc::new(SimThreads::new(clock.clone())),
        who: format!("machine {seed}"),
    }
}

/// A process that uses the store through `beside`, and so is slower than the writer.
fn newcomer(beside: &Arc<Beside>, clock: &Arc<SimClock>, seed: u64) -> Arc<StoreDisk> {
    StoreDisk::new(beside.clone(), Path::new("/db"), outside(clock, seed))
}

/// A writer that commits one number after the other until it finds that another process has taken over.
struct BusyWriter {
    process: Mutex<Process>,
    log: Arc<dyn File>,
    state: Mutex<Busy>,
}

#[derive(Default)]
struct Busy {
    number: u64,
    promised: Vec<u64>,
    error: Option<io::Error>,
}

impl BusyWriter {
    fn new(store: &Arc<SimStore>, clock: &Arc<SimClock>, seed: u64) -> Arc<BusyWriter> {
        let mut process = Process::new(store, clock, seed);
        process.open().expect("nobody else writes");
        let log = process.log.clone().expect("it was opened");
        Arc::new(BusyWriter { process: Mutex::new(process), log, state: Mutex::default() })
    }

    fn commit(&self, times: u64) {
        for _ in 0..times {
            let state = &mut *self.state.lock();
            if state.error.is_some() {
                return;
            }
            state.number += 1;
            let number = state.number;
            match self.log.append(&number.to_le_bytes()).and_then(|_| self.log.sync()) {
                Ok(()) => state.promised.push(number),
                Err(error) => state.error = Some(error),
            }
        }
    }

    fn promised(&self) -> Vec<u64> {
        self.state.lock().promised.clone()
    }
}

/// Each pair has the commits that the writer makes during one request of the other process, and the most round
/// trips that this process may need to stop the writer.
const PACES: [(u64, u64); 6] = [(1, 3), (2, 3), (4, 3), (7, 3), (20, 4), (100, 5)];

#[test]
fn a_newcomer_stops_a_busy_writer_in_three_round_trips_and_loses_nothing() {
    for (commits, most) in PACES {
        let (store, clock) = calm(commits);
        let writer = BusyWriter::new(&store, &clock, 1);
        writer.commit(500);
        let stopped = Arc::new(Mutex::new(0));
        let beside = Beside::new(&store, {
            let (writer, stopped) = (writer.clone(), stopped.clone());
            move |trip| {
                writer.commit(commits);
                let is_stopped = writer.state.lock().error.is_some();
                let first = &mut *stopped.lock();
                if is_stopped && *first == 0 {
                    // The sheet that stopped the writer was put in the round trip before this one.
                    *first = trip - 1;
                }
            }
        });
        let disk = newcomer(&beside, &clock, 2);
        let before = store.counts();
        let _lock = disk.lock(&path("LOCK")).expect("whoever opens it for writing takes it");
        let (trips, stopped) = (beside.trips(), *stopped.lock());
        assert!(stopped > 0 && stopped <= most, "{commits} commits a request: stopped after {stopped} round trips");
        assert!(trips <= most + 4, "{commits} commits a request: {trips} round trips");
        let puts = store.counts().puts - before.puts;
        assert!(puts < 100 + 20 * commits + 600 * u64::from(commits > 50), "{puts} puts");
        let found = read_numbers(&*disk).expect("there is no trouble");
        assert!(
            found == writer.promised(),
            "{commits} commits a request: what was promised is there, and nothing else"
        );
        let error = writer.state.lock().error.take().expect("it was stopped");
        assert_eq!(error.kind(), ErrorKind::StaleNetworkFileHandle);
        assert!(error.to_string().contains("machine 2 has taken over"), "{error}");
    }
}

#[test]
fn a_branch_gets_in_beside_a_busy_writer_which_goes_on() {
    for (commits, most) in PACES {
        let (store, clock) = calm(commits);
        let writer = BusyWriter::new(&store, &clock, 1);
        writer.commit(500);
        let beside = Beside::new(&store, {
            let writer = writer.clone();
            move |_| writer.commit(commits)
        });
        let journal = Journal::new(beside.clone(), outside(&clock, 3), CUTS);
        let branch = Branch { prefix: "trial".to_owned(), sheet: 1, since: 1_700_000_000 };
        let before = writer.promised();
        let table = journal.add_branch(77, &branch).expect("there is no trouble");
        assert!(beside.trips() <= most + 10, "{commits} commits a request: {} round trips", beside.trips());
        let now = writer.promised();
        let bytes = table.names.iter().find(|(name, _)| name.ends_with(".log")).map(|(_, file)| table.len(*file));
        let has = bytes.expect("there is a log") as usize / 8;
        assert!((before.len()..=now.len()).contains(&has), "{has} commits, and {} were there before", before.len());
        let requests = store.counts();
        writer.commit(10);
        let (puts, gets) = (store.counts().puts - requests.puts, store.counts().gets - requests.gets);
        assert!(puts <= 30 && gets <= 200, "{puts} puts and {gets} gets for ten commits that meet the guest");
        assert_eq!(writer.promised().len(), now.len() + 10, "a guest stops nobody");
        assert!(writer.process.lock().disk.journal().branches().contains_key(&77), "the writer has met it");
        let (reader, _) = disk(&store, &clock, 5);
        assert!(read_numbers(&*reader).expect("there is no trouble") == writer.promised(), "all that was promised");
    }
}

#[test]
fn a_reader_beside_a_busy_writer_sees_what_was_there_when_it_began_and_comes_to_an_end() {
    for (commits, _) in PACES {
        let (store, clock) = calm(commits);
        let writer = BusyWriter::new(&store, &clock, 1);
        writer.commit(500);
        let beside = Beside::new(&store, {
            let writer = writer.clone();
            move |_| writer.commit(commits)
        });
        let reader = newcomer(&beside, &clock, 3);
        for _ in 0..5 {
            let (before, trips) = (writer.promised(), beside.trips());
            let numbers = read_numbers(&*reader).expect("there is no trouble");
            let all = writer.promised();
            assert!(numbers.len() >= before.len() && all.starts_with(&numbers), "a prefix that was there");
            let trips = beside.trips() - trips;
            assert!(trips < 30, "{commits} commits a request: {trips} round trips for a list of files and two reads");
        }
    }
}

#[test]
fn a_thread_that_commits_back_to_back_keeps_nobody_out() {
    let threads = os::Machine::real().threads;
    for seed in 0..20 {
        let (store, clock) = calm(seed);
        let writer = BusyWriter::new(&store, &clock, 1);
        let busy = writer.clone();
        threads.hand_over(Box::new(move || {
            while busy.state.lock().error.is_none() {
                busy.commit(1);
            }
        }));
        while writer.promised().len() < 100 {
            std::thread::yield_now();
        }
        let (reader, _) = disk(&store, &clock, 5);
        assert!(read_numbers(&*reader).expect("there is no trouble").len() >= 100, "seed {seed}");
        let journal = Journal::new(store.client(), outside(&clock, 3), CUTS);
        let branch = Branch { prefix: "trial".to_owned(), sheet: 1, since: 1_700_000_000 };
        journal.add_branch(77, &branch).expect("a guest gets in");
        let (next, _) = disk(&store, &clock, 2);
        let _lock = next.lock(&path("LOCK")).expect("whoever opens it for writing takes it");
        while writer.state.lock().error.is_none() {
            std::thread::yield_now();
        }
        let found = read_numbers(&*next).expect("there is no trouble");
        assert!(found == writer.promised(), "seed {seed}: what was promised is there, and nothing else");
        assert!(next.journal().branches().contains_key(&77), "seed {seed}");
    }
}

/// Plays the other processes while a process pauses for days before a request: four writers take over one after the
/// other, and write until all sheets that may be removed are removed.
fn others_write(store: &Arc<SimStore>, clock: &Arc<SimClock>, seed: u64, ends: bool) -> Vec<u64> {
    let mut all = Vec::new();
    for writer in 0..4 {
        let mut process = Process::new(store, clock, seed * 100 + writer);
        process.open().expect("there is no trouble");
        let log = process.log.clone().expect("it was opened");
        for number in 0..200 {
            let number = 1_000_000 + writer * 1000 + number;
            log.append(&number.to_le_bytes()).and_then(|_| log.sync()).expect("nobody else writes");
            clock.advance(Duration::from_secs(1000));
        }
        all = read_numbers(&*process.disk).expect("there is no trouble");
        match ends {
            true => process.lock = None,
            false => std::mem::forget(process.lock.take()),
        }
    }
    all
}

#[test]
fn a_newcomer_that_pauses_for_days_before_any_request_loses_nothing_of_others() {
    let mut paused = 0;
    for trip in 1..12 {
        for ends in [false, true] {
            let (store, clock) = calm(trip);
            let writer = BusyWriter::new(&store, &clock, 1);
            writer.commit(100);
            let written = Arc::new(Mutex::new(writer.promised()));
            let beside = Beside::new(&store, {
                let (store, clock, written) = (store.clone(), clock.clone(), written.clone());
                let is_done = Mutex::new(false);
                move |now| {
                    let is_done = &mut *is_done.lock();
                    if now == trip && !*is_done {
                        *is_done = true;
                        let others = others_write(&store, &clock, 7, ends);
                        *written.lock() = others;
                    }
                }
            });
            let disk = newcomer(&beside, &clock, 2);
            let outcome = disk.lock(&path("LOCK"));
            let found = read_numbers(&*disk);
            paused += u64::from(beside.trips() >= trip);
            let log = outcome.and_then(|lock| {
                let log = disk.open(&path("99999999.log"), Access::Create)?;
                log.append(&u64::to_le_bytes(5_000_000)).and_then(|_| log.sync()).map(|()| (lock, log))
            });
            // If the others took over after the newcomer, it is no longer the writer.
            let written = written.lock().clone();
            let (reader, _) = super::disk(&store, &clock, 5);
            let now = read_numbers(&*reader).expect("there is no trouble");
            match log {
                Ok(_) => {
                    assert!(found.expect("there is no trouble") == written, "trip {trip}: it has read all");
                    assert_eq!(now, [5_000_000], "trip {trip}: what it has promised is there");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::StaleNetworkFileHandle, "trip {trip}: {error}");
                    assert!(now == written, "trip {trip}: it has changed nothing");
                }
            }
        }
    }
    assert!(paused >= 10, "{paused} times it paused");
}

#[test]
fn a_guest_that_pauses_for_days_before_any_request_is_known_or_says_so() {
    for trip in 1..14 {
        let (store, clock) = calm(trip);
        let writer = BusyWriter::new(&store, &clock, 1);
        writer.commit(100);
        let beside = Beside::new(&store, {
            let (store, clock) = (store.clone(), clock.clone());
            let is_done = Mutex::new(false);
            move |now| {
                let is_done = &mut *is_done.lock();
                if now == trip && !*is_done {
                    *is_done = true;
                    others_write(&store, &clock, 7, trip % 2 == 0);
                }
            }
        });
        let journal = Journal::new(beside.clone(), outside(&clock, 3), CUTS);
        let branch = Branch { prefix: "trial".to_owned(), sheet: 1, since: 1_700_000_000 };
        journal.add_branch(77, &branch).expect("there is no trouble");
        let mut next = Process::new(&store, &clock, 9);
        next.open().expect("there is no trouble");
        assert!(next.disk.journal().branches().contains_key(&77), "trip {trip}: the next writer knows it");
    }
}

#[test]
fn a_writer_that_pauses_for_days_meets_its_fence_also_behind_guests() {
    for (guests, ends) in [(0, false), (0, true), (1, false), (3, true)] {
        let (store, clock) = calm(guests);
        let writer = BusyWriter::new(&store, &clock, 1);
        writer.commit(70);
        for guest in 0..guests {
            let journal = Journal::new(store.client(), outside(&clock, 30 + guest), CUTS);
            let branch = Branch { prefix: format!("trial{guest}"), sheet: 1, since: 1_700_000_000 };
            journal.add_branch(guest, &branch).expect("there is no trouble");
        }
        let written = others_write(&store, &clock, 7, ends);
        // A commit does not look at the clock, so the writer does not know that it has paused.
        writer.commit(1);
        let error = writer.state.lock().error.take().expect("another has taken over");
        assert_eq!(error.kind(), ErrorKind::StaleNetworkFileHandle, "{guests} guests: {error}");
        let (reader, _) = disk(&store, &clock, 5);
        assert!(
            read_numbers(&*reader).expect("there is no trouble") == written,
            "{guests} guests: it has changed nothing"
        );
    }
}

#[test]
fn a_newcomer_that_dies_between_its_requests_leaves_a_journal_that_the_next_one_takes() {
    let mut died = 0;
    for requests in 1..60 {
        for seed in 0..6 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed * 1000 + requests);
            let (store, clock) = calm(seed * 1000 + requests);
            let writer = BusyWriter::new(&store, &clock, 1);
            writer.commit(rng.random_range(1..150));
            let beside = Beside::new(&store, {
                let writer = writer.clone();
                move |_| writer.commit(2)
            });
            store.set_trouble(StoreTrouble { late: 300, lost_requests: 100, ..StoreTrouble::default() });
            beside.client.crash_after(requests);
            died += u64::from(newcomer(&beside, &clock, 2).lock(&path("LOCK")).map(std::mem::forget).is_err());
            store.set_trouble(StoreTrouble::default());
            writer.commit(rng.random_range(0..40));
            if rng.random() {
                store.deliver_late();
            }
            let (reader, _) = disk(&store, &clock, 5);
            let promised = writer.promised();
            assert_eq!(
                read_numbers(&*reader).expect("there is no trouble"),
                promised,
                "seed {seed}, {requests} requests"
            );
            // A late request of the dead newcomer may stop the next process, too, so several processes try.
            let mut outcome = Ok(());
            let next = (4..20).find_map(|number| {
                let mut next = Process::new(&store, &clock, number);
                outcome = next.open();
                outcome.is_ok().then_some(next)
            });
            let next = next.unwrap_or_else(|| panic!("seed {seed}, {requests} requests: {outcome:?}"));
            store.deliver_late();
            let found = read_numbers(&*next.disk).expect("there is no trouble");
            assert!(found.starts_with(&promised), "seed {seed}, {requests} requests");
        }
    }
    assert!(died > 30, "{died} died");
}

#[test]
fn a_store_that_ignores_conditions_is_refused_before_anything_is_written() {
    let (store, clock) = calm(1);
    store.set_ignores_conditions(true);
    let (first, _) = disk(&store, &clock, 1);
    let error = first.lock(&path("LOCK")).map(drop).expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("ignores the condition If-None-Match"), "{error}");
    assert!(store.names().iter().all(|name| name == "journal/probe"), "nothing was written: {:?}", store.names());
    // The store ignores the conditions of puts only for the second process.
    store.set_ignores_conditions(false);
    let writer = BusyWriter::new(&store, &clock, 1);
    writer.commit(5);
    store.set_ignores_conditions(true);
    let (second, _) = disk(&store, &clock, 2);
    assert_eq!(kind(second.lock(&path("LOCK")).map(drop)), ErrorKind::Unsupported);
    let journal = Journal::new(store.client(), outside(&clock, 3), CUTS);
    let branch = Branch { prefix: "trial".to_owned(), sheet: 1, since: 1_700_000_000 };
    assert_eq!(kind(journal.add_branch(77, &branch)), ErrorKind::Unsupported);
    store.set_ignores_conditions(false);
    writer.commit(5);
    let (reader, _) = disk(&store, &clock, 5);
    assert_eq!(read_numbers(&*reader).expect("there is no trouble"), (1..=10).collect::<Vec<u64>>());
}

#[test]
fn a_first_sheet_that_another_was_put_over_is_met_at_once() {
    let (store, clock) = calm(1);
    // The store obeys the condition of the probe, but ignores the conditions of all later puts.
    let beside = Beside::new(&store, {
        let store = store.clone();
        move |trip| {
            if trip == 4 {
                store.set_ignores_conditions(true);
                let mut other = SheetWriter::new(1, CLAIM, [1, 2]);
                other.claim(77, 1_700_000_000, "machine 3");
                let put = store.client().put_if_absent("journal/0000000000000001", &other.finish().0);
                put.expect("it is put over");
            }
        }
    });
    let error = newcomer(&beside, &clock, 2).lock(&path("LOCK")).map(drop).expect_err("its sheet is not there");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}
