//! Flipped bits in files at rest: an error that names the file, or the right answer; never a panic, never a wrong row.

use crate::history::History;
use larch::os::sim::SimDisk;
use larch::os::sync::Arc;
use larch::os::{Disk, Machine};
use larch::{Database, Error, Version};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::path::Path;

/// Runs the history of `seed`, then flips a bit of a file at rest, `flips` times, each in a copy of the disk.
pub fn flip_bits(seed: u64, steps: usize, flips: usize) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut history = History::new(seed);
    history.run(steps).expect("the disk does not fail");
    if rng.random() {
        history.close().expect("the disk does not fail");
    } else {
        history.abandon();
    }
    let directory = Path::new(crate::history::DIRECTORY);
    let files: Vec<_> = history.disk().list(directory).expect("the disk does not fail");
    let files: Vec<_> = files.into_iter().filter(|file| file.bytes > 0).collect();
    for _ in 0..flips {
        let file = files.choose(&mut rng).expect("a database has files");
        let (byte, bit) = (rng.random_range(0..file.bytes), rng.random_range(0..8));
        let disk = history.disk().image();
        disk.flip_bit(directory.join(&file.name), byte, bit);
        let _flip = Flip(&file.name, byte, bit);
        read_everything(&history, disk, &file.name);
    }
}

fn read_everything(history: &History, disk: Arc<SimDisk>, flipped: &str) {
    let machine = Machine::simulated_on(disk, 0);
    let db = match history.options().builder(crate::history::DIRECTORY).machine(machine).open() {
        Ok(db) => db,
        Err(error) => return expect_named(&error, flipped),
    };
    let version = db.version();
    assert!(version >= history.durable(), "durable commits are missing, {version:?} is the last");
    let mut failed = false;
    for name in history.model().tables().into_iter().filter(|name| history.is_read(name)) {
        if let Err(error) = read_table(history, &db, &name, version) {
            expect_named(&error, flipped);
            failed = true;
        }
    }
    let problems = db.check(&mut |_| {}).expect("a check goes on after a problem").problems;
    for problem in &problems {
        expect_named(&problem.error, flipped);
    }
    assert!(!failed || !problems.is_empty(), "a check finds what reads meet");
    let is_live = |name: &str| name.ends_with(".sst");
    assert!(!is_live(flipped) || !problems.is_empty(), "a check finds any flipped bit of an SST");
}

/// Every row is the right one until there is an error, from either end and by key.
fn read_table(history: &History, db: &Database, name: &str, at: Version) -> Result<(), Error> {
    let table = db.existing_table(name)?.unwrap_or_else(|| panic!("the table {name:?} is lost"));
    let rows: Vec<(&[u8], &[u8])> = history.model().rows(name, at).collect();
    let mut first_error = Ok(());
    for &(key, value) in &rows {
        match table.get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(value), "{}", key.escape_ascii()),
            Err(error) => first_error = first_error.and(Err(error)),
        }
    }
    let mut forward = rows.iter();
    for row in table.iter() {
        let (key, value) = row?;
        assert_eq!(forward.next(), Some(&(&*key, &*value)));
    }
    assert_eq!(forward.next(), None, "a row is missing");
    let mut backward = rows.iter().rev();
    for row in table.iter().rev() {
        let (key, value) = row?;
        assert_eq!(backward.next(), Some(&(&*key, &*value)));
    }
    assert_eq!(backward.next(), None, "a row is missing");
    first_error
}

fn expect_named(error: &Error, flipped: &str) {
    assert!(error.to_string().contains(flipped), "{flipped} is corrupt, and the error is: {error}");
}

/// Says in a panic which bit led to it.
struct Flip<'f>(&'f str, u64, u32);

impl Drop for Flip<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("flipped in {}: byte {}, bit {}", self.0, self.1, self.2);
        }
    }
}
