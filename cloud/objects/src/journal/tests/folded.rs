//! Tests that a journal of many small commits is read with few requests, that a request is repeated if its answer
//! is damaged in transit, and that journals of earlier releases can be read.

use super::{Process, calm, disk, path, read_numbers};
use crate::journal::folding::{FOLDED_BYTES, SMALL_BYTES};
use crate::{KEPT, StoreDisk};
use os::sim::{SimStoreClient, StoreTrouble};
use os::store::RangeDone;
use os::sync::{Arc, Mutex};
use os::{Access, Disk, Store, StoredObject, Upload};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

#[test]
fn thirty_thousand_commits_are_read_with_a_request_for_each_hundred() {
    for bytes in [8, 200] {
        let (store, clock) = calm(bytes as u64);
        let (writer, _) = disk(&store, &clock, 2);
        let lock = writer.lock(&path("LOCK")).expect("nobody else writes");
        let log = writer.open(&path("1.log"), Access::Create).expect("the name is free");
        let mut model = Vec::new();
        for number in 0..30_000_u64 {
            let commit = number.to_le_bytes().repeat(bytes / 8);
            log.append(&commit).and_then(|_| log.sync()).expect("there is no trouble");
            clock.advance(Duration::from_millis(30));
            model.extend(commit);
        }
        std::mem::forget(lock);
        let counts = |what: &dyn Fn()| {
            let before = store.counts();
            what();
            let after = store.counts();
            (after.gets - before.gets, after.lists - before.lists, after.puts - before.puts)
        };
        let (gets, ..) = counts(&|| {
            let (reader, _) = disk(&store, &clock, 5);
            assert!(
                reader.read_all(&path("1.log")).expect("there is no trouble") == model,
                "it reads what was written"
            );
        });
        assert!(gets <= 300, "{gets} gets for 30,000 commits of {bytes} bytes");
        let (gets, lists, puts) = counts(&|| {
            let (next, _) = disk(&store, &clock, 8);
            std::mem::forget(next.lock(&path("LOCK")).expect("it takes over"));
            assert!(next.read_all(&path("1.log")).expect("there is no trouble") == model, "it reads what was written");
        });
        println!("commits of {bytes} bytes: taking over and reading takes {gets} gets, {lists} lists, {puts} puts");
        assert!(gets <= 300 && lists <= 3 && puts <= 4, "{gets} gets, {lists} lists, {puts} puts");
        let sheets = store.names().len();
        assert!(sheets < 30_000 / 5, "{sheets} objects are left: those that were folded are removed");
    }
}

#[test]
fn a_follower_asks_for_each_sheet_once() {
    let (store, clock) = calm(3);
    let (writer, _) = disk(&store, &clock, 2);
    let _lock = writer.lock(&path("LOCK")).expect("nobody else writes");
    let log = writer.open(&path("1.log"), Access::Create).expect("the name is free");
    let (reader, _) = disk(&store, &clock, 5);
    log.append(&[1; 8]).and_then(|_| log.sync()).expect("there is no trouble");
    assert_eq!(reader.read_all(&path("1.log")).expect("there is no trouble").len(), 8);
    let before = store.counts().gets;
    for number in 2..=200 {
        log.append(&[1; 8]).and_then(|_| log.sync()).expect("there is no trouble");
        assert_eq!(reader.read_all(&path("1.log")).expect("there is no trouble").len(), number * 8);
    }
    let gets = store.counts().gets - before;
    assert!(gets <= 200 * 3, "{gets} gets for 200 looks that each find a sheet and that there is no other");
}

/// A process writes pieces of any length to several files, cuts files, and removes names. Then another process
/// reads the files.
#[test]
fn files_that_are_folded_are_as_they_were_written() {
    for seed in 0..200 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (store, clock) = calm(seed);
        let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for epoch in 0..3 {
            let (writer, _) = disk(&store, &clock, seed * 10 + epoch);
            let lock = writer.lock(&path("LOCK")).expect("a store lets others take over");
            for step in 0..rng.random_range(1..150_u64) {
                let name = format!("{}.log", rng.random_range(0..3));
                let access = if model.contains_key(&name) { Access::Write } else { Access::Create };
                let log = writer.open(&path(&name), access).expect("it is there, or the name is free");
                let content = model.entry(name.clone()).or_default();
                match rng.random_range(0..40) {
                    0 => {
                        let len = rng.random_range(0..=content.len());
                        log.set_len(len as u64).expect("there is no trouble");
                        content.truncate(len);
                    }
                    1 => {
                        drop(log);
                        writer.remove(&path(&name)).expect("it is there");
                        model.remove(&name);
                    }
                    kind => {
                        let most = if kind < 4 { 2 * FOLDED_BYTES } else { SMALL_BYTES / 20 };
                        let bytes = vec![step as u8; rng.random_range(1..most) as usize];
                        log.append(&bytes).expect("there is no trouble");
                        content.extend(bytes);
                    }
                }
                writer.journal().sync().expect("there is no trouble");
                if rng.random_range(0..10) == 0 {
                    clock.advance(KEPT);
                }
            }
            let (reader, _) = disk(&store, &clock, seed * 10 + 7);
            for (name, content) in &model {
                for process in [&reader, &writer] {
                    let read = process.read_all(&path(name)).expect("it is there");
                    assert!(read == *content, "seed {seed}, epoch {epoch}: {name} is as it was written");
                }
            }
            if rng.random() { std::mem::forget(lock) } else { drop(lock) }
        }
    }
}

/// A store that truncates the first answers for each object, or changes a byte in them.
#[derive(Debug)]
struct Damaging {
    client: Arc<SimStoreClient>,
    /// How often each name was read.
    reads: Mutex<BTreeMap<String, u32>>,
    times: u32,
}

impl Damaging {
    fn damage(&self, name: &str, bytes: &mut Vec<u8>) {
        let mut reads = self.reads.lock();
        let count = reads.entry(name.to_owned()).or_default();
        *count += 1;
        if *count <= self.times {
            match bytes.len() {
                len if (*count + len as u32).is_multiple_of(2) => bytes.truncate(len / 2),
                len => bytes[len / 2] ^= 1,
            }
        }
    }
}

impl Store for Damaging {
    fn create(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        self.client.create(name)
    }
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.client.put_if_absent(name, bytes)
    }
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = self.client.get(name)?;
        self.damage(name, &mut bytes);
        Ok(bytes)
    }
    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.client.read_at(name, buffer, offset)
    }
    fn begin_read(&self, name: &str, range: Range<u64>, done: RangeDone) {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        match self.client.read_at(name, &mut bytes, range.start) {
            Ok(read) => {
                bytes.truncate(read);
                self.damage(name, &mut bytes);
                done(Ok(&[&bytes]));
            }
            Err(error) => done(Err(error)),
        }
    }
    fn len(&self, name: &str) -> io::Result<u64> {
        self.client.len(name)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.client.remove(name)
    }
    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        self.client.list(folder)
    }
}

#[test]
fn a_sheet_that_was_damaged_on_its_way_is_asked_for_again() {
    let (store, clock) = calm(1);
    let mut writer = Process::new(&store, &clock, 5);
    writer.open().expect("nobody else writes");
    let log = writer.log.clone().expect("it was opened");
    for number in 0..150_u64 {
        log.append(&number.to_le_bytes()).and_then(|_| log.sync()).expect("there is no trouble");
    }
    let numbers: Vec<u64> = (0..150).collect();
    for times in [1, 2, 3] {
        let damaging = Arc::new(Damaging { client: store.client(), reads: Mutex::default(), times });
        let outside = writer.disk.journal().outside.clone();
        let reader = StoreDisk::new(damaging, Path::new("/db"), outside);
        assert_eq!(read_numbers(&*reader).expect("it asks again"), numbers, "damaged {times} times");
    }
    // After the answer to a put is lost, the process finds its own sheet in the store. The first answer with it is
    // damaged, so the process first takes it for another's sheet.
    store.set_trouble(StoreTrouble { lost_responses: 300, ..StoreTrouble::default() });
    let damaging = Arc::new(Damaging { client: store.client(), reads: Mutex::default(), times: 1 });
    let next = StoreDisk::new(damaging, Path::new("/db"), writer.disk.journal().outside.clone());
    let _lock = next.lock(&path("LOCK")).expect("it takes over");
    let log = next.open(&path("00000009.log"), Access::Create).expect("the name is free");
    for number in 0..100_u64 {
        log.append(&number.to_le_bytes()).and_then(|_| log.sync()).expect("it is its own sheet");
    }
}

/// A journal written by the previous release, with sheets of two writers and of a guest, cuts of files, and changed
/// names.
const BEFORE_TERMS: &[u8] = include_bytes!("../testdata/journal-before-terms");

#[test]
fn a_journal_of_the_release_before_is_read_and_taken_over() {
    let (store, clock) = calm(1);
    let mut rest = BEFORE_TERMS;
    let mut text = || {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let (bytes, after) = after.split_at(u32::from_le_bytes(*len) as usize);
        rest = after;
        Some(bytes.to_vec())
    };
    while let (Some(name), Some(bytes)) = (text(), text()) {
        let name = String::from_utf8(name).expect("names are texts");
        store.client().put_if_absent(&name, &bytes).expect("the name is free");
    }
    let log: Vec<u8> = (0..12_u64).flat_map(u64::to_le_bytes).collect();
    let newest: Vec<u8> = (100..105_u64).flat_map(u64::to_le_bytes).collect();
    let files: [(&str, &[u8]); 4] = [
        ("00000002.log", &log),
        ("00000003.log", &newest),
        ("00000004.manifest", &[7; 100]),
        ("CURRENT", b"00000001.manifest"),
    ];
    let check = |disk: &StoreDisk| {
        for (name, content) in files {
            assert_eq!(disk.read_all(&path(name)).expect("it is there"), content, "{name}");
        }
        assert_eq!(disk.list(Path::new("/db")).expect("there is no trouble").len(), files.len());
    };
    let (reader, _) = disk(&store, &clock, 4);
    check(&reader);
    for epoch in 3..5 {
        let (next, _) = disk(&store, &clock, epoch);
        let lock = next.lock(&path("LOCK")).expect("it takes over");
        assert_eq!(lock.holder(), Some(epoch));
        check(&next);
        let branches = next.journal().branches();
        assert_eq!(branches.values().map(|branch| &*branch.prefix).collect::<Vec<_>>(), ["trial"]);
        drop(lock);
        check(&reader);
    }
}
