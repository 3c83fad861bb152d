//! What a follower shows when its looks and its shows of files come in any order between the steps of the writer.

use crate::options::{Durability, Follow, LevelOptions};
use crate::{Database, Readable as _};
use os::Machine;
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

/// One step of the writer. Tables are made on the way, and imports leave rows of other tables in memory.
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
            import.finish(&mut |_, _| {}).expect("the disk works");
            rows.insert((name, key), value);
        }
        _ => {
            table.insert(&key, &value).expect("the disk works");
            rows.insert((name, key), value);
        }
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
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (machine, _) = Machine::simulated(seed);
        let writer = builder(&machine).open().expect("the disk works");
        let mut rows = Rows::new();
        (0..10).for_each(|_| write(&writer, &mut random, &mut rows));
        let follower = builder(&machine).follow(Follow::Commits).open().expect("the disk works");
        let following = follower.core().following.get().expect("it follows");
        let mut history = BTreeMap::from([(writer.version(), rows.clone())]);
        for _ in 0..200 {
            match random.random_range(0..10) {
                0..6 => {
                    write(&writer, &mut random, &mut rows);
                    history.insert(writer.version(), rows.clone());
                }
                6 | 7 => _ = follower.core().look_at_writer(following).expect("the disk works"),
                8 => follower.core().show_next_files(following).expect("the disk works"),
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
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (machine, disk) = Machine::simulated(seed);
        let writer = builder(&machine).open().expect("the disk works");
        let mut rows = Rows::new();
        (0..10).for_each(|_| write(&writer, &mut random, &mut rows));
        let follower = builder(&machine).follow(Follow::Commits).open().expect("the disk works");
        let following = follower.core().following.get().expect("it follows");
        let mut history = BTreeMap::from([(writer.version(), rows.clone())]);
        let mut newest = Version(0);
        for _ in 0..200 {
            match random.random_range(0..12) {
                0..5 => {
                    write(&writer, &mut random, &mut rows);
                    history.insert(writer.version(), rows.clone());
                }
                5 => {
                    // A part of the commit may be in the log, until the next commit takes its place.
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
                        6..9 => _ = follower.core().look_at_writer(following).ok(),
                        9 => _ = follower.catch_up().ok(),
                        _ => _ = follower.core().show_next_files(following).ok(),
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
        // The writer cannot cut back the part of the commit that is there before the next one.
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
        let following = follower.core().following.get().expect("it follows");
        following.state.lock().is_broken = true;
        follower.catch_up().expect("the disk works");
        let looked = follower.core().look_at_writer(following).expect("the disk works");
        assert!(!looked.has_files, "the jobs would call each other for ever");
    }
}
