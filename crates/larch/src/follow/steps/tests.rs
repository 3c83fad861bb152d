//! What a follower shows when its looks and its shows of files come in any order between the steps of the writer.

use crate::options::{Durability, Follow, LevelOptions};
use crate::{Database, Readable as _};
use os::Machine;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use sst::Version;
use std::collections::BTreeMap;

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
