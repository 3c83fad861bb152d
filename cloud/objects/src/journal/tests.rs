//! Tests what a disk in a store promises: files behave as on any disk, and only one process writes at a time, while
//! the store fails in every way in which a store can fail.

mod busy;
mod folded;

use super::{CUTS, Cuts};
use crate::disk::Nearby;
use crate::wholes::READS_UNDER_WAY;
use crate::{KEPT, Outside, StoreDisk};
use os::sim::{SimClock, SimRandom, SimStore, SimStoreClient, SimThreads, StoreTrouble};
use os::store::RangeDone;
use os::sync::{Arc, Mutex};
use os::{Access, Clock, Disk, File, Lock};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn path(name: &str) -> PathBuf {
    Path::new("/db").join(name)
}

/// The disk and the store client of a machine that uses a store.
fn disk(store: &Arc<SimStore>, clock: &Arc<SimClock>, seed: u64) -> (Arc<StoreDisk>, Arc<SimStoreClient>) {
    let client = store.client();
    let outside = Outside {
        clock: clock.clone(),
        random: Arc::new(SimRandom::new(seed)),
        threads: Arc::new(SimThreads::new(clock.clone())),
        who: format!("machine {seed}"),
    };
    // Depending on the seed, every sheet, every third sheet, or every 64th sheet has a table.
    let cuts = Cuts { tables_every: [1, 3, 64][seed as usize % 3], ..CUTS };
    (StoreDisk::with_cuts(cuts, client.clone(), Path::new("/db"), outside, Nearby::default()), client)
}

fn calm(seed: u64) -> (Arc<SimStore>, Arc<SimClock>) {
    let clock = Arc::new(SimClock::new());
    (SimStore::new(seed, clock.clone()), clock)
}

/// The failures of the store. The random numbers leave out about half of the kinds, and decide how often each of
/// the others happens.
fn trouble(rng: &mut Xoshiro256PlusPlus) -> StoreTrouble {
    StoreTrouble::drawn(rng.random(), 150, (KEPT / 4, Duration::from_millis(200)))
}

fn kind<T>(outcome: io::Result<T>) -> ErrorKind {
    outcome.map(drop).expect_err("this fails").kind()
}

#[test]
fn files_that_grow_are_as_on_a_disk() {
    for seed in 0..300 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (store, clock) = calm(seed);
        let (disk, _) = disk(&store, &clock, seed);
        let _lock = disk.lock(&path("LOCK")).expect("nobody else writes");
        let file = disk.open(&path("a.log"), Access::Create).expect("the name is free");
        assert_eq!(kind(disk.open(&path("a.log"), Access::Create)), ErrorKind::AlreadyExists);
        let mut model: Vec<u8> = Vec::new();
        for step in 0..40 {
            match rng.random_range(0..6) {
                0 | 1 => {
                    let bytes = vec![step; rng.random_range(0..300)];
                    let offset = file.append(&bytes).expect("there is no trouble");
                    assert_eq!(offset, model.len() as u64, "seed {seed}");
                    model.extend(bytes);
                }
                2 => {
                    let bytes = vec![step; rng.random_range(1..300)];
                    let offset = rng.random_range(0..model.len() + 50);
                    file.write_at(&bytes, offset as u64).expect("there is no trouble");
                    model.resize(model.len().max(offset + bytes.len()), 0);
                    model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                }
                3 => {
                    let len = rng.random_range(0..model.len() + 50);
                    file.set_len(len as u64).expect("there is no trouble");
                    model.resize(len, 0);
                }
                _ => file.sync().expect("there is no trouble"),
            }
            assert_eq!(file.len().expect("it is known"), model.len() as u64, "seed {seed}, step {step}");
            assert_eq!(disk.read_all(&path("a.log")).expect("it is there"), model, "seed {seed}, step {step}");
        }
        file.sync().expect("there is no trouble");
        let (other, _) = self::disk(&store, &clock, seed + 1);
        assert_eq!(other.read_all(&path("a.log")).expect("it is there"), model, "seed {seed}");
        assert_eq!(kind(other.open(&path("b.log"), Access::Create)), ErrorKind::PermissionDenied);
    }
}

#[test]
fn names_change_at_a_sync_and_all_at_once() {
    let (store, clock) = calm(1);
    let (disk, _) = disk(&store, &clock, 1);
    let (reader, _) = self::disk(&store, &clock, 2);
    let lock = disk.lock(&path("LOCK")).expect("nobody else writes");
    let new = disk.open(&path("CURRENT.new"), Access::Create).expect("the name is free");
    new.append(b"one").expect("there is no trouble");
    disk.rename(&path("CURRENT.new"), &path("CURRENT")).expect("it is there");
    assert!(!reader.exists(&path("CURRENT")).expect("there is no trouble"), "nothing was synced");
    disk.sync_dir(Path::new("/db")).expect("there is no trouble");
    assert_eq!(reader.read_all(&path("CURRENT")).expect("it is there"), b"one");
    assert!(!reader.exists(&path("CURRENT.new")).expect("there is no trouble"));
    disk.remove(&path("CURRENT")).expect("it is there");
    assert_eq!(kind(disk.remove(&path("CURRENT"))), ErrorKind::NotFound);
    drop(lock);
    assert!(!reader.exists(&path("CURRENT")).expect("the release puts what was changed"));
    assert_eq!(kind(disk.open(&path("x"), Access::Create)), ErrorKind::PermissionDenied);
}

#[test]
fn a_file_keeps_its_bytes_under_another_name_and_is_forgotten_without_one() {
    let (store, clock) = calm(1);
    let (disk, _) = disk(&store, &clock, 3);
    let (reader, _) = self::disk(&store, &clock, 4);
    let _lock = disk.lock(&path("LOCK")).expect("nobody else writes");
    let files = ["a", "c"].map(|name| disk.open(&path(name), Access::Create).expect("the name is free"));
    files
        .iter()
        .zip([b"one", b"two"])
        .for_each(|(file, text)| file.append(text).map(drop).expect("there is no trouble"));
    files[0].sync().expect("there is no trouble");
    disk.rename(&path("c"), &path("d")).expect("it is there");
    disk.rename(&path("a"), &path("c")).expect("it is there");
    disk.rename(&path("c"), &path("b")).expect("it is there");
    disk.sync_dir(Path::new("/db")).expect("there is no trouble");
    assert_eq!(reader.read_all(&path("b")).expect("it is there"), b"one");
    assert_eq!(reader.read_all(&path("d")).expect("it is there"), b"two");
    disk.rename(&path("b"), &path("d")).expect("it is there");
    files[1].append(b"nobody reads this").and_then(|_| files[0].sync()).expect("there is no trouble");
    assert_eq!(reader.read_all(&path("d")).expect("it is there"), b"one");
    let names: Vec<_> = reader.list(Path::new("/db")).expect("there is no trouble");
    assert_eq!(names.len(), 1);
    assert_eq!(disk.journal().files(), 1, "the other file is forgotten");
}

#[test]
fn objects_are_seen_when_they_are_synced() {
    let (store, clock) = calm(1);
    let (disk, client) = disk(&store, &clock, 1);
    let lock = disk.lock(&path("LOCK")).expect("nobody else writes");
    let file = disk.open(&path("1-1.sst"), Access::CreateDirect).expect("the name is free");
    file.write_at(&[7; 5000], 0).expect("there is no trouble");
    assert_eq!(kind(file.write_at(&[7; 10], 0)), ErrorKind::Unsupported);
    assert!(!disk.exists(&path("1-1.sst")).expect("there is no trouble"));
    file.sync().expect("there is no trouble");
    let read = disk.open(&path("1-1.sst"), Access::ReadDirect).expect("nothing is asked");
    let mut bytes = vec![0; 6000];
    assert_eq!((read.read_at(&mut bytes, 100).expect("it is there"), read.len().expect("it is there")), (4900, 5000));
    assert!(read.object().is_some());
    let before = os::Store::list(&*client, "journal").expect("there is no trouble").len();
    disk.sync_dir(Path::new("/db")).expect("there is no trouble");
    assert_eq!(os::Store::list(&*client, "journal").expect("there is no trouble").len(), before, "no sheet was needed");
    let names: Vec<String> =
        disk.list(Path::new("/db")).expect("there is no trouble").into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["1-1.sst"]);
    disk.remove(&path("1-1.sst")).expect("it is there");
    disk.remove(&path("1-1.sst")).expect("it waits already");
    let count = || os::Store::list(&*client, "sst").expect("there is no trouble").len();
    assert_eq!(count(), 1, "followers may read it for a while");
    clock.advance(crate::REMOVED_AFTER);
    disk.remove(&path("1-2.sst")).expect("it waits");
    assert_eq!(count(), 0, "it was due");
    let file = disk.open(&path("1-3.sst"), Access::CreateDirect).expect("the name is free");
    file.write_at(&[7; 5000], 0).and_then(|()| file.sync()).expect("there is no trouble");
    disk.remove(&path("1-3.sst")).expect("it is there");
    clock.advance(crate::REMOVED_AFTER / 2);
    disk.drive();
    assert_eq!(count(), 1, "followers may read it for a while");
    clock.advance(crate::REMOVED_AFTER / 2);
    disk.drive();
    assert_eq!(count(), 0, "a timer removes it, without another removal");
    drop(lock);
    assert_eq!(kind(disk.remove(&path("1-1.sst"))), ErrorKind::PermissionDenied);
}

/// A process that appends numbers to a log of its own.
struct Process {
    disk: Arc<StoreDisk>,
    client: Arc<SimStoreClient>,
    lock: Option<Box<dyn Lock>>,
    log: Option<Arc<dyn File>>,
    /// Numbers that a sync has made durable.
    promised: Vec<u64>,
    unsynced: Vec<u64>,
    has_failed: bool,
}

impl Process {
    fn new(store: &Arc<SimStore>, clock: &Arc<SimClock>, seed: u64) -> Process {
        let (disk, client) = disk(store, clock, seed);
        Process { disk, client, lock: None, log: None, promised: Vec::new(), unsynced: Vec::new(), has_failed: false }
    }

    /// Takes over, and begins a log with the numbers of the newest log.
    fn open(&mut self) -> io::Result<()> {
        let lock = self.disk.lock(&path("LOCK"))?;
        // A later writer has a greater epoch, and so a log with a greater name, as in the engine.
        let name = &format!("{:08}.log", lock.holder().expect("a store has holders"));
        self.lock = Some(lock);
        let found = read_numbers(&*self.disk)?;
        let log = self.disk.open(&path(name), Access::Create)?;
        found.iter().try_for_each(|number| log.append(&number.to_le_bytes()).map(drop))?;
        log.sync()?;
        // The new log has all numbers, so the earlier logs are no longer needed.
        for entry in self.disk.list(Path::new("/db"))? {
            if entry.name.ends_with(".log") && entry.name != *name {
                self.disk.remove(&path(&entry.name))?;
            }
        }
        self.disk.sync_dir(Path::new("/db"))?;
        self.log = Some(log);
        Ok(())
    }
}

/// The numbers in the newest log, the one with the greatest name.
fn read_numbers(disk: &dyn Disk) -> io::Result<Vec<u64>> {
    let entries = disk.list(Path::new("/db"))?;
    let Some(newest) = entries.iter().map(|entry| &entry.name).filter(|name| name.ends_with(".log")).max() else {
        return Ok(Vec::new());
    };
    let bytes = disk.read_all(&path(newest))?;
    Ok(bytes.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().expect("numbers are whole"))).collect())
}

/// Lets processes take over from each other at any moment, while the store fails in many ways and processes die.
fn take_over(seed: u64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (store, clock) = calm(seed);
    store.set_trouble(trouble(&mut rng));
    let mut processes: Vec<Process> = (0..2).map(|number| Process::new(&store, &clock, seed * 100 + number)).collect();
    let mut number: u64 = 0;
    let mut promised: BTreeSet<u64> = BTreeSet::new();
    let mut made_by_epoch: Vec<(u64, u64)> = Vec::new();
    for step in 0..rng.random_range(10..80) {
        let chosen = rng.random_range(0..processes.len());
        match rng.random_range(0..20) {
            0..2 if processes[chosen].lock.is_none() => {
                let process = &mut processes[chosen];
                if process.open().is_err() {
                    (process.lock, process.log) = (None, None);
                }
            }
            2 => {
                // The process dies, and another one takes its place.
                processes[chosen].client.crash();
                let dead =
                    std::mem::replace(&mut processes[chosen], Process::new(&store, &clock, seed * 100 + step + 10));
                drop(dead);
            }
            3 => clock.advance(Duration::from_secs(rng.random_range(0..100))),
            4 => store.deliver_late(),
            _ => {
                let process = &mut processes[chosen];
                let Some(log) = process.log.clone() else { continue };
                if process.has_failed {
                    assert!(log.append(&[0; 8]).and_then(|_| log.sync()).is_err(), "seed {seed}: a failure is final");
                    continue;
                }
                number += 1;
                let epoch = process.lock.as_ref().and_then(|lock| lock.holder()).expect("it has the lock");
                if log.append(&number.to_le_bytes()).is_err() {
                    process.has_failed = true;
                    continue;
                }
                made_by_epoch.push((number, epoch));
                process.unsynced.push(number);
                if rng.random_range(0..3) == 0 {
                    continue;
                }
                if log.sync().is_ok() {
                    promised.extend(process.unsynced.iter().copied());
                    let unsynced = std::mem::take(&mut process.unsynced);
                    process.promised.extend(unsynced);
                } else {
                    process.has_failed = true;
                }
            }
        }
    }
    store.set_trouble(StoreTrouble::default());
    clock.advance(KEPT);
    if rng.random() {
        store.deliver_late();
    }
    let mut last = Process::new(&store, &clock, seed * 100 + 99);
    last.open().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let found = read_numbers(&*last.disk).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let lost: Vec<u64> = promised.iter().copied().filter(|number| !found.contains(number)).collect();
    assert!(lost.is_empty(), "seed {seed}: {lost:?} were promised, of {found:?}");
    assert!(found.is_sorted_by(|a, b| a < b), "seed {seed}: {found:?}");
    // The numbers of each writer are contiguous, because none has written after the next had taken over.
    let epochs: Vec<u64> = found
        .iter()
        .filter_map(|found| made_by_epoch.iter().find(|(number, _)| number == found).map(|(_, epoch)| *epoch))
        .collect();
    assert!(epochs.is_sorted(), "seed {seed}: writers are mixed: {epochs:?}");
    for process in processes.iter().filter(|process| process.log.is_some() && !process.has_failed) {
        let log = process.log.as_ref().expect("it was filtered");
        let error = log.append(&[1; 8]).and_then(|_| log.sync()).expect_err("another has taken over");
        assert_eq!(error.kind(), ErrorKind::StaleNetworkFileHandle, "seed {seed}: {error}");
        assert!(error.to_string().contains("machine"), "it says who has taken over: {error}");
        assert_eq!(kind(process.disk.remove(&path("1-1.sst"))), ErrorKind::StaleNetworkFileHandle);
    }
}

/// `TAKE_OVER_SEED=17` runs only this seed, and `TAKE_OVER_SEEDS=100000` the seeds from 0 to 99,999.
#[test]
fn a_writer_that_takes_over_loses_nothing_and_the_one_before_finds_out() {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("TAKE_OVER_SEED") {
        Some(seed) => take_over(seed),
        None => (0..number("TAKE_OVER_SEEDS").unwrap_or(2000)).for_each(take_over),
    }
}

#[test]
fn sheets_of_no_use_are_removed_and_a_reader_that_slept_finds_the_newest() {
    let (store, clock) = calm(5);
    let (disk, client) = disk(&store, &clock, 1);
    let (reader, _) = self::disk(&store, &clock, 2);
    let _lock = disk.lock(&path("LOCK")).expect("nobody else writes");
    let sheets = || os::Store::list(&*client, "journal").expect("there is no trouble").len();
    let mut most = 0;
    for round in 0..50_u64 {
        let name = format!("{round:08}.log");
        let log = disk.open(&path(&name), Access::Create).expect("the name is free");
        for _ in 0..50 {
            log.append(&round.to_le_bytes()).and_then(|_| log.sync()).expect("there is no trouble");
            clock.advance(Duration::from_secs(1));
        }
        if round > 0 {
            disk.remove(&path(&format!("{:08}.log", round - 1))).expect("it is there");
        }
        most = most.max(sheets());
        if round == 3 {
            assert_eq!(reader.read_all(&path(&name)).expect("it is there").len(), 400);
        }
    }
    assert!(most < 350, "{most} sheets of 2,500 were there at once");
    assert!(clock.now() > Duration::from_secs(2000));
    let numbers = read_numbers(&*reader).expect("it looks at the list");
    assert_eq!(numbers, [49; 50], "the reader slept while the sheets that it had read to were removed");
}

#[test]
fn processes_that_live_for_seconds_leave_no_growing_number_of_sheets() {
    check_short_processes(100, 5, 1);
    check_short_processes(100, 5, 9);
    check_short_processes(20, 400, 1);
}

/// Checks that many short-lived processes leave only few sheets. Each of them syncs `syncs` times, and starts
/// `days` days after the one before.
fn check_short_processes(processes: u64, syncs: usize, days: u64) {
    let (store, clock) = calm(7);
    let client = store.client();
    let sheets = || os::Store::list(&*client, "journal").expect("there is no trouble").len();
    let mut most = 0;
    for process in 0..processes {
        let (disk, _) = disk(&store, &clock, 3 * process + 2);
        let lock = disk.lock(&path("LOCK")).expect("a store lets others take over");
        let list = disk.open(&path("LIST.new"), Access::Create).expect("the name is free");
        for _ in 0..syncs {
            list.append(&process.to_le_bytes()).and_then(|_| list.sync()).expect("there is no trouble");
            clock.advance(KEPT / 2 / syncs as u32);
        }
        disk.rename(&path("LIST.new"), &path("LIST")).expect("it is there");
        disk.sync_dir(Path::new("/db")).expect("there is no trouble");
        drop(lock);
        most = most.max(sheets());
        clock.advance(Duration::from_secs(days * 24 * 3600));
    }
    // Besides the syncs, each process puts one sheet for its takeover and one for the new name of its list.
    let of_each = syncs + 2;
    let all = of_each as u64 * processes;
    assert!(
        most < if syncs > 100 { 4 } else { 12 } * of_each,
        "{most} sheets of {all} were there at once, {days} days apart"
    );
    let (last, _) = disk(&store, &clock, 2);
    assert_eq!(last.read_all(&path("LIST")).expect("it is there"), (processes - 1).to_le_bytes().repeat(syncs));
}

/// A store that reads ranges with threads of its own, and counts the reads that are under way.
#[derive(Debug)]
struct CountedStore {
    client: Arc<SimStoreClient>,
    threads: Arc<dyn os::Threads>,
    /// The reads under way now, and the most so far.
    under_way: Arc<Mutex<(usize, usize)>>,
}

impl os::Store for CountedStore {
    fn create(&self, name: &str) -> io::Result<Box<dyn os::Upload>> {
        self.client.create(name)
    }
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.client.put_if_absent(name, bytes)
    }
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.client.get(name)
    }
    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.client.read_at(name, buffer, offset)
    }
    fn begin_read(&self, name: &str, range: Range<u64>, done: RangeDone) {
        {
            let (now, most) = &mut *self.under_way.lock();
            *now += 1;
            *most = (*now).max(*most);
        }
        let (client, under_way, name) = (self.client.clone(), self.under_way.clone(), name.to_owned());
        self.threads.hand_over(Box::new(move || {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let read = client.read_at(&name, &mut bytes, range.start);
            under_way.lock().0 -= 1;
            match read {
                Ok(read) => done(Ok(&[&bytes[..read]])),
                Err(error) => done(Err(error)),
            }
        }));
    }
    fn len(&self, name: &str) -> io::Result<u64> {
        self.client.len(name)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.client.remove(name)
    }
    fn list(&self, folder: &str) -> io::Result<Vec<os::StoredObject>> {
        self.client.list(folder)
    }
}

#[test]
fn a_log_of_many_sheets_is_read_with_some_reads_under_way() {
    let (store, clock) = calm(7);
    let (writer, client) = disk(&store, &clock, 2);
    let _lock = writer.lock(&path("LOCK")).expect("nobody else writes");
    let log = writer.open(&path("1.log"), Access::Create).expect("the name is free");
    let numbers: Vec<u64> = (1..3000).collect();
    for number in &numbers {
        log.append(&number.to_le_bytes()).and_then(|_| log.sync()).expect("there is no trouble");
    }
    let (under_way, threads) = (Arc::default(), os::Machine::real().threads);
    let counted = Arc::new(CountedStore { client, threads, under_way: Arc::clone(&under_way) });
    let outside = Outside {
        clock: clock.clone(),
        random: Arc::new(SimRandom::new(8)),
        threads: Arc::new(SimThreads::new(clock.clone())),
        who: "a reader".to_owned(),
    };
    let reader = StoreDisk::new(counted, Path::new("/db"), outside);
    assert_eq!(read_numbers(&*reader).expect("there is no trouble"), numbers);
    let (now, most) = *under_way.lock();
    assert_eq!(now, 0);
    assert!(most > 1 && most <= READS_UNDER_WAY, "{most} were under way");
}

/// Each request may take half a minute.
#[test]
fn a_writer_takes_over_from_a_store_of_any_slowness_and_loses_nothing() {
    let mut taken = 0;
    for seed in 0..300 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (store, clock) = calm(seed);
        let mut promised = Vec::new();
        let mut last = None;
        for epoch in 1..6 {
            let latency = KEPT.mul_f64(rng.random_range(0.0..0.5));
            store.set_trouble(StoreTrouble { latency, lost_responses: 50, ..StoreTrouble::default() });
            let mut process = Process::new(&store, &clock, seed * 100 + epoch);
            match process.open() {
                Ok(()) => taken += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::TimedOut, "seed {seed}: {error}");
                    continue;
                }
            }
            for number in 0..rng.random_range(1..5) {
                let number = epoch * 100 + number;
                let log = process.log.as_ref().expect("it was opened");
                if log.append(&u64::to_le_bytes(number)).and_then(|_| log.sync()).is_err() {
                    break;
                }
                promised.push(number);
            }
            last = Some(process);
        }
        store.set_trouble(StoreTrouble::default());
        let found = read_numbers(&*disk(&store, &clock, seed).0).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let lost: Vec<&u64> = promised.iter().filter(|number| !found.contains(number)).collect();
        assert!(lost.is_empty(), "seed {seed}: {lost:?} were promised, of {found:?}");
        drop(last);
    }
    assert!(taken > 1000, "{taken} took over");
}

#[test]
fn a_writer_that_was_idle_for_days_finds_out() {
    let (store, clock) = calm(6);
    let (first, _) = disk(&store, &clock, 1);
    let _lock = first.lock(&path("LOCK")).expect("nobody else writes");
    let log = first.open(&path("1.log"), Access::Create).expect("the name is free");
    log.append(&[1; 8]).and_then(|_| log.sync()).expect("there is no trouble");
    for epoch in 2..6_u64 {
        let (other, _) = disk(&store, &clock, epoch);
        let _lock = other.lock(&path("LOCK")).expect("a store lets others take over");
        let name = format!("{epoch}.log");
        let other_log = other.open(&path(&name), Access::Create).expect("the name is free");
        for _ in 0..200 {
            other_log.append(&[2; 8]).and_then(|_| other_log.sync()).expect("there is no trouble");
            clock.advance(Duration::from_secs(3600));
        }
    }
    log.append(&[1; 8]).expect("it is only written");
    assert_eq!(kind(log.sync()), ErrorKind::StaleNetworkFileHandle);
}
