//! Tests what a follower shows if it looks and shows files at any point between two steps of the writer.

use crate::base::options::{Durability, Follow, LevelOptions};
use crate::{Database, Readable as _};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Access, Disk as _, Machine};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use sst::Version;
use std::collections::BTreeMap;
use std::io::ErrorKind;

type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn builder(machine: &Machine) -> crate::Builder {
    let levels = LevelOptions { base_bytes: 32 << 10, file_bytes: 8 << 10, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(machine.clone()).levels(levels).durability(Durability::Buffered);
    builder.write_buffer_bytes(8 << 10).cache_bytes(256 << 10).manifest_slack_bytes(2 << 10)
}

/// Does one random step of the writer. Some steps create tables. Imports leave the rows of other tables in memory.
fn write(db: &Database, random: &mut Xoshiro256PlusPlus, rows: &mut Rows) {
    let name = format!("table {}", random.random_range(0..6));
    let table = db.table(&name).expect("the disk works");
    let key = format!("key {:03}", random.random_range(0..200)).into_bytes();
    let value = vec![random.random::<u8>(); random.random_range(0..100)];
    match random.random_range(0..20) {
        0 => db.flush().expect("the disk works"),
        1 => db.compact().expect("the disk works"),
        2..5 => {
            let mut import = table.import().expect("the disk works");
            import.add(&key, &value).expect("the disk works");
            import.finish(|_| {}).expect("the disk works");
            rows.insert((name, key), value);
        }
        _ => {
            table.insert(&key, &value).expect("the disk works");
            rows.insert((name, key), value);
        }
    }
}

/// A writer that has done ten steps, with a follower.
struct Begun {
    random: Xoshiro256PlusPlus,
    disk: Arc<SimDisk>,
    writer: Database,
    follower: Database,
    /// The rows that the writer has now.
    rows: Rows,
}

impl Begun {
    fn of(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (machine, disk) = Machine::simulated(seed);
        let writer = builder(&machine).open().expect("the disk works");
        let mut rows = Rows::new();
        (0..10).for_each(|_| write(&writer, &mut random, &mut rows));
        let follower = builder(&machine).follow(Follow::Commits).open().expect("the disk works");
        Self { random, disk, writer, follower, rows }
    }
}

fn seen(db: &Database) -> (Version, Rows) {
    let snapshot = db.snapshot();
    let mut all = Rows::new();
    for name in db.tables() {
        let table = db.table(&name).expect("it is there");
        for row in snapshot.range(&table, ..) {
            let (key, value) = row.expect("the disk works");
            all.insert((name.clone(), key.to_vec()), value.to_vec());
        }
    }
    (snapshot.version(), all)
}

#[test]
fn whatever_is_looked_at_and_shown_first_a_follower_shows_a_prefix() {
    for seed in 0..300 {
        println!("seed {seed}");
        let Begun { mut random, writer, follower, mut rows, .. } = Begun::of(seed);
        let followed = follower.core().followed.get().expect("it follows");
        let mut history = BTreeMap::from([(writer.version(), rows.clone())]);
        for _ in 0..200 {
            match random.random_range(0..10) {
                0..6 => {
                    write(&writer, &mut random, &mut rows);
                    history.insert(writer.version(), rows.clone());
                }
                6 | 7 => _ = follower.core().look_at_writer(followed).expect("the disk works"),
                8 => follower.core().show_next_files(followed).expect("the disk works"),
                _ => {}
            }
            let (version, rows) = seen(&follower);
            assert!(rows == history[&version], "seed {seed}: version {} is not what it was", version.0);
        }
        assert_eq!(follower.catch_up().expect("the disk works"), writer.version(), "seed {seed}");
        assert!(seen(&follower).1 == rows, "seed {seed}");
    }
}

#[test]
fn whatever_errors_pass_a_follower_shows_a_prefix_and_never_an_older_one() {
    for seed in 0..300 {
        println!("seed {seed}");
        let Begun { mut random, disk, writer, follower, mut rows } = Begun::of(seed);
        let followed = follower.core().followed.get().expect("it follows");
        let mut history = BTreeMap::from([(writer.version(), rows.clone())]);
        let mut newest = Version(0);
        for _ in 0..200 {
            match random.random_range(0..12) {
                0..5 => {
                    write(&writer, &mut random, &mut rows);
                    history.insert(writer.version(), rows.clone());
                }
                5 => {
                    // The disk has too little room for this commit, and a part of it may stay in the log until the
                    // next commit overwrites it.
                    disk.set_capacity(disk.used_bytes() + random.random_range(0..60));
                    let table = writer.table("table 0");
                    let outcome = table.and_then(|table| table.insert("key", vec![7; 200]));
                    disk.set_capacity(u64::MAX);
                    if outcome.is_ok() {
                        rows.insert(("table 0".to_owned(), b"key".to_vec()), vec![7; 200]);
                        history.insert(writer.version(), rows.clone());
                    }
                }
                choice => {
                    disk.fail_looks(random.random_range(2..20), ErrorKind::PermissionDenied);
                    match choice {
                        6..9 => _ = follower.core().look_at_writer(followed).ok(),
                        9 => _ = follower.catch_up().ok(),
                        _ => _ = follower.core().show_next_files(followed).ok(),
                    }
                    disk.clear_faults();
                }
            }
            let (version, seen) = seen(&follower);
            assert!(version >= newest, "seed {seed}: version {} after {}", version.0, newest.0);
            assert!(seen == history[&version], "seed {seed}: version {} is not what it was", version.0);
            newest = version;
        }
        assert_eq!(follower.catch_up().expect("the disk works"), writer.version(), "seed {seed}");
        assert!(seen(&follower).1 == rows, "seed {seed}");
    }
}

#[test]
fn a_commit_that_takes_the_place_of_one_that_was_cut_back_is_seen_at_once() {
    for (bytes, failing) in (0..200).flat_map(|bytes| (2..5).map(move |failing| (bytes, failing))) {
        let (machine, disk) = Machine::simulated(bytes);
        let writer = builder(&machine).open().expect("the disk works");
        let table = writer.table("t").expect("the disk works");
        table.insert("first", "value").expect("the disk works");
        let follower = builder(&machine).follow(Follow::Commits).open().expect("the disk works");
        disk.set_capacity(disk.used_bytes() + bytes);
        // The commit is written only in part, and the writer cannot remove this part before the next commit.
        disk.fail_operation(failing, ErrorKind::Other);
        table.insert("second", vec![7; 300]).expect_err("the disk is full");
        disk.clear_faults();
        follower.catch_up().expect("an unfinished commit is no error");
        disk.set_capacity(u64::MAX);
        table.insert("third", "value").expect("the disk works");
        let seen = follower.catch_up().expect("the disk works");
        assert_eq!(seen, writer.version(), "{bytes} bytes, operation {failing} failed");
    }
}

#[test]
fn a_look_that_fails_and_finds_nothing_new_leaves_nothing_to_show() {
    for what in [Follow::Files, Follow::Commits] {
        let (machine, _) = Machine::simulated(1);
        let writer = builder(&machine).open().expect("the disk works");
        writer.table("t").and_then(|table| table.insert("key", "value")).expect("the disk works");
        writer.flush().expect("the disk works");
        let follower = builder(&machine).follow(what).open().expect("the disk works");
        let followed = follower.core().followed.get().expect("it follows");
        followed.state.lock().is_broken = true;
        follower.catch_up().expect("the disk works");
        let looked = follower.core().look_at_writer(followed).expect("the disk works");
        assert!(!looked.has_files, "the jobs would call each other for ever");
    }
}

/// Errors of a system that lets a process read files but not create any.
const TAKES_NO_FILE: [ErrorKind; 4] =
    [ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied, ErrorKind::StorageFull, ErrorKind::QuotaExceeded];

#[test]
fn a_follower_that_may_write_nothing_reads_files_and_logs() {
    for kind in TAKES_NO_FILE {
        for what in [Follow::Files, Follow::Commits] {
            let (machine, disk) = Machine::simulated(1);
            let writer = builder(&machine).open().expect("the disk works");
            let table = writer.table("t").expect("the disk works");
            table.insert("in a file", "1").and_then(|()| writer.flush()).expect("the disk works");
            table.insert("in a log", "2").expect("the disk works");
            disk.crash_keeping_everything();
            disk.fail_changes(kind);
            let follower = builder(&machine).follow(what).open().expect("it only reads");
            let table = follower.table("t").expect("it is there");
            assert!(table.contains_key("in a file").expect("it is read"), "{kind}");
            assert_eq!(table.contains_key("in a log").expect("it is read"), what == Follow::Commits, "{kind}");
            let followed = follower.core().followed.get().expect("it follows");
            follower.core().look_at_writer(followed).expect("it only reads");
            assert!(!disk.exists("db/followers".as_ref()).expect("it can be looked for"), "{kind}");
        }
    }
}

#[test]
fn a_follower_without_a_lease_shows_what_the_writer_does() {
    let (machine, disk) = Machine::simulated(1);
    let writer = builder(&machine).open().expect("the disk works");
    let table = writer.table("t").expect("the disk works");
    disk.fail_changes(ErrorKind::PermissionDenied);
    let follower = builder(&machine).follow(Follow::Commits).open().expect("it only reads");
    disk.clear_faults();
    for number in 0..200_u32 {
        table.insert(number.to_be_bytes(), vec![0; 200]).expect("the disk works");
        if number % 50 == 0 {
            writer.compact().expect("the disk works");
        }
        disk.fail_changes(ErrorKind::PermissionDenied);
        assert_eq!(follower.catch_up().expect("it only reads"), writer.version());
        assert_eq!(follower.table("t").expect("it is there").iter().count() as u32, number + 1);
        disk.clear_faults();
    }
}

#[test]
fn a_follower_says_of_damaged_logs_what_a_writer_says() {
    let (mut corrupt, mut whole, mut prefixes) = (0, 0, 0);
    for seed in 0..20 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (machine, disk) = Machine::simulated(seed);
        let durability = if random.random() { Durability::Synced } else { Durability::Buffered };
        let writer = builder(&machine).durability(durability).open().expect("the disk works");
        let table = writer.table("t").expect("the disk works");
        // Flushes fail, so no log is removed.
        disk.fail_opens(".sst", ErrorKind::Other);
        let logs = || {
            let listed = disk.list("db".as_ref()).expect("the disk works").into_iter().map(|entry| entry.name);
            let mut logs: Vec<String> = listed.filter(|name| name.ends_with(".log")).collect();
            logs.sort();
            logs
        };
        let mut number = 0_u32;
        while logs().len() < 2 {
            table.insert(number.to_be_bytes(), vec![1; random.random_range(0..500)]).expect("the log works");
            number += 1;
            assert!(number < 1000, "seed {seed}: the log that is full is followed by another");
        }
        table.insert("the last", "row").expect("the log works");
        disk.clear_faults();
        for _ in 0..30 {
            let image = disk.image();
            image.crash_keeping_everything();
            let name = &logs()[random.random_range(0..2)];
            let path = format!("db/{name}");
            let bytes = image.open(path.as_ref(), Access::Read).and_then(|file| file.len()).expect("the disk works");
            if random.random() {
                let file = image.open(path.as_ref(), Access::Write).expect("the disk works");
                file.set_len(random.random_range(0..bytes)).expect("the disk works");
            } else {
                image.flip_bit(&path, random.random_range(0..bytes), random.random_range(0..8));
            }
            let machine = Machine::simulated_on(image, seed);
            let count =
                |db: Database| db.existing_table("t").expect("it is read").map_or(0, |table| table.iter().count());
            let followed = builder(&machine).follow(Follow::Commits).open().map(count);
            let written = builder(&machine).open().map(count);
            match (&followed, &written) {
                (Ok(followed), Ok(written)) if followed == written && *followed == number as usize + 1 => whole += 1,
                (Ok(followed), Ok(written)) if followed == written => prefixes += 1,
                (Err(followed), Err(written)) if followed.is_corruption() && written.is_corruption() => corrupt += 1,
                _ => panic!("seed {seed}, {name}: a follower says {followed:?}, a writer says {written:?}"),
            }
        }
    }
    println!("{whole} whole, {prefixes} cut, {corrupt} corrupt");
    assert!(prefixes > 0 && corrupt > 0);
}
