//! Moves or removes the directory of an open database, or its lock file, and lets another process open a database at
//! the same place.
//!
//! If the directory was moved, the first writer must go on there and lose nothing. If its directory or its lock file
//! was removed, it must not report any later commit as durable. In no case may it change anything in the second
//! writer's database.

use crate::options::TinyOptions;
use larch::{Database, Durability, Error, Follow, Result, Version};
use os::Machine;
use os::sim::SimDisk;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::path::Path;

const HERE: &str = "db";
const THERE: &str = "moved";
const TABLE: &str = "t";

/// What a user may do to the directory of an open database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `mv db moved`.
    Moved,
    /// `rm -r db`.
    Removed,
    /// `rm db/LOCK`: without this file, the next process believes that no process has the database open.
    Unlocked,
}

/// The rows of a database.
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A writer, and what it should hold.
struct Writer {
    db: Database,
    rows: Rows,
}

/// What the first writer saw after the change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// How many commits the first writer reported as durable after the change.
    pub durable_after: u64,
    /// How many calls of the first writer returned an error after the change.
    pub refused: u64,
}

/// Runs two writers on one disk. The directory of the first writer is changed while it is open. Panics if a promise
/// is broken.
pub fn change_directory(seed: u64, change: Change) -> Changes {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let options = TinyOptions { durability: Durability::Synced, ..TinyOptions::of(seed) };
    let disk = SimDisk::new(seed);
    let open = |place: &str, seed| {
        options.builder(place).machine(Machine::simulated_on(disk.clone(), seed)).open().expect("the disk works")
    };
    let mut first = Writer { db: open(HERE, rng.random()), rows: Rows::new() };
    for _ in 0..rng.random_range(1..60) {
        first.write(&mut rng).expect("the disk works");
    }
    let follower = options.builder(HERE).machine(Machine::simulated_on(disk.clone(), rng.random()));
    let follower = follower.follow(Follow::Commits).open().expect("the disk works");
    let mut seen = follower.version();
    match change {
        Change::Moved => disk.move_directory(HERE, THERE),
        Change::Removed => disk.remove_directory(HERE),
        Change::Unlocked => os::Disk::remove(&*disk, &Path::new(HERE).join("LOCK")).expect("it is there"),
    }
    let rows = if change == Change::Unlocked { first.rows.clone() } else { Rows::new() };
    let mut second = Writer { db: open(HERE, rng.random()), rows };
    let mut changes = Changes::default();
    for _ in 0..rng.random_range(1..120) {
        match rng.random_range(0..5) {
            0 | 1 => second.write(&mut rng).expect("nobody else writes where the second one has the lock"),
            2 | 3 => first.write_after(&mut rng, change, &mut changes),
            _ => seen = look(&follower, seen, change),
        }
    }
    second.compare();
    let rows = first.close_after(change, &mut changes);
    drop(follower);
    second.db.close().expect("nobody else writes where the second one has the lock");
    let db = open(HERE, rng.random());
    assert!(db.check(|_| {}).expect("the disk works").problems.is_empty());
    assert!(rows_of(&db).expect("the disk works") == second.rows, "the second database is what its writer left");
    if change == Change::Moved {
        let db = open(THERE, rng.random());
        assert!(db.check(|_| {}).expect("the disk works").problems.is_empty());
        assert!(rows_of(&db).expect("the disk works") == rows, "the moved database is what its writer left");
    }
    changes
}

impl Writer {
    /// Makes a random call, often one that creates, renames and removes files.
    fn write(&mut self, rng: &mut Xoshiro256PlusPlus) -> Result<()> {
        let table = self.db.table(TABLE)?;
        match rng.random_range(0..12) {
            0 => self.db.flush(),
            1 => self.db.compact(),
            2 => {
                let mut import = table.import()?;
                let rows: Rows = (0..20).map(|_| (key(rng), value(rng))).collect();
                rows.iter().try_for_each(|(key, value)| import.add(key, value))?;
                import.finish(|_| {})?;
                self.rows.extend(rows);
                Ok(())
            }
            _ => {
                let (key, value) = (key(rng), value(rng));
                table.insert(&key, &value)?;
                self.rows.insert(key, value);
                Ok(())
            }
        }
    }

    /// Makes a random call after the directory was changed.
    fn write_after(&mut self, rng: &mut Xoshiro256PlusPlus, change: Change, changes: &mut Changes) {
        let durable = self.db.durable_version();
        match self.write(rng) {
            Ok(()) => {}
            Err(error) if change == Change::Moved => panic!("a moved directory is as good as before: {error}"),
            Err(error) => {
                changes.refused += 1;
                assert!(!error.is_corruption(), "nothing is damaged: {error}");
            }
        }
        let more = self.db.durable_version().0 - durable.0;
        changes.durable_after += more;
        assert!(change == Change::Moved || more == 0, "{more} commits are reported as durable, and are nowhere");
    }

    /// Closes the writer's database, and returns the rows that it must have when it is opened again.
    fn close_after(self, change: Change, changes: &mut Changes) -> Rows {
        match self.db.close() {
            Ok(()) => {}
            Err(error) if change == Change::Moved => panic!("a moved directory is as good as before: {error}"),
            Err(_) => changes.refused += 1,
        }
        self.rows
    }

    fn compare(&self) {
        assert!(rows_of(&self.db).expect("the disk works") == self.rows, "a database has what its writer wrote");
    }
}

/// Checks that a follower goes on in the directory that it opened. Returns the version that it shows.
fn look(follower: &Database, seen: Version, change: Change) -> Version {
    match follower.catch_up() {
        Ok(version) => assert!(version >= seen, "a follower shows {version:?} after {seen:?}"),
        // If the lock file was removed, the follower may have seen a commit of the first writer that the second
        // writer does not have.
        Err(Error::FellBehind { .. }) if change != Change::Unlocked => {
            panic!("no other database has come to the place of the one that is followed")
        }
        Err(error) => assert!(change != Change::Moved, "a moved directory is as good as before: {error}"),
    }
    follower.version()
}

fn rows_of(db: &Database) -> Result<Rows> {
    let table = db.table(TABLE)?;
    table.iter().map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

fn key(rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    format!("key {:03}", rng.random_range(0..200)).into_bytes()
}

fn value(rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    vec![rng.random(); rng.random_range(0..60)]
}

/// All of them, one after the other.
pub const CHANGES: [Change; 3] = [Change::Moved, Change::Removed, Change::Unlocked];

/// Runs [`change_directory`] for each change.
pub fn change_directories(seed: u64) {
    CHANGES.iter().for_each(|change| _ = change_directory(seed, *change));
}
