//! Flips bits in files while the database is closed. A read must then return the right rows or an error that names
//! the file, and must never return a wrong row or panic.

use crate::history::History;
use crate::history::reader::{Reader, Seen, Wanted};
use larch::{Database, Error, Version};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk, Machine};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::path::Path;

/// Runs the history of `seed`, and then, in `flips` copies of its disk, flips one bit of a file and reads
/// everything.
pub fn flip_bits(seed: u64, steps: usize, flips: usize) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut history = History::new(seed);
    history.run(steps).expect("the disk does not fail");
    if rng.random() {
        history.close().expect("the disk does not fail");
        assert!(history.is_in_files(), "a disk with room takes the files of a close");
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
    for name in history.model().tables() {
        if let Err(error) = read_table(history, &db, &name, version) {
            expect_named(&error, flipped);
            failed = true;
        }
    }
    let problems = db.check(|_| {}).expect("a check goes on after a problem").problems;
    for problem in &problems {
        expect_named(&problem.error, flipped);
    }
    assert!(!failed || !problems.is_empty(), "a check finds what reads meet");
    let is_live = |name: &str| name.ends_with(".sst");
    assert!(!is_live(flipped) || !problems.is_empty(), "a check finds any flipped bit of an SST");
}

/// Reads a table from both ends, by one key and by several, as whole values and in each part. All rows that a read
/// returns before an error must be right.
fn read_table(history: &History, db: &Database, name: &str, at: Version) -> Result<(), Error> {
    let table = db.existing_table(name)?.unwrap_or_else(|| panic!("the table {name:?} is lost"));
    let rows: Vec<(&[u8], &[u8])> = history.model().rows(name, at).collect();
    let wanted = Wanted::each(table.options().groups.len());
    let outcomes = wanted.into_iter().map(|wanted| read_rows(&Reader::new(&table, None, wanted), &rows));
    // All reads are made, even after one has failed.
    outcomes.fold(Ok(()), Result::and)
}

fn read_rows(reader: &Reader, rows: &[(&[u8], &[u8])]) -> Result<(), Error> {
    let expect = |row: Option<(&[u8], &Seen)>, expected: Option<&(&[u8], &[u8])>| {
        let same = match (row, expected) {
            (Some((key, seen)), Some((expected, value))) => key == *expected && reader.shows(seen, value),
            (row, expected) => row.is_none() && expected.is_none(),
        };
        assert!(same, "{:?} is read, expected is {expected:?}", row.map(|(key, seen)| (key, &**seen)));
    };
    let mut outcome = Ok(());
    for row in rows {
        match reader.get(row.0) {
            Ok(found) => expect(found.as_ref().map(|seen| (row.0, seen)), Some(row)),
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    let keys: Vec<Vec<u8>> = rows.iter().map(|(key, _)| key.to_vec()).collect();
    match reader.multi_get(&keys) {
        Ok(found) => {
            assert_eq!(found.len(), rows.len());
            found.iter().zip(rows).for_each(|(seen, row)| expect(seen.as_ref().map(|seen| (row.0, seen)), Some(row)));
        }
        Err(error) => outcome = outcome.and(Err(error)),
    }
    let mut forward = rows.iter();
    for row in reader.all() {
        let (key, seen) = row?;
        expect(Some((&key, &seen)), forward.next());
    }
    expect(None, forward.next());
    let mut backward = rows.iter().rev();
    for row in reader.all().rev() {
        let (key, seen) = row?;
        expect(Some((&key, &seen)), backward.next());
    }
    expect(None, backward.next());
    outcome
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
