//! The work that goes on beside transactions: conditional writes without a transaction, imports, rows that fill the
//! write buffer, flushes and compactions. Its writes become part of the history. Errors of the disk do not end it.

use crate::history::rows::{batch_insert, import_add};
use crate::isolation::engine::{BALLAST, EngineStore, TABLES};
use crate::isolation::player::Tally;
use crate::isolation::transaction::{Isolation, Mark, Operation, Outcome, Place, Transaction};
use larch::transaction::Expected;
use larch::{Batch, Durability, Error, Result, Version};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Keys of plans lie between these.
const KEYS: std::ops::RangeInclusive<u8> = b'a'..=b'h';

/// The length of a row that fills the write buffer.
const BALLAST_BYTES: usize = 600;

/// The work beside the transactions on a store.
pub struct Beside<'s> {
    store: &'s EngineStore,
    tally: &'s Tally,
    rng: Xoshiro256PlusPlus,
    /// Whether no other thread commits, so that the newest version of the database is that of the last write.
    is_alone: bool,
}

/// The outcome of a conditional write: its version, or `None` if its condition was false and it wrote nothing.
type Written = Result<Option<Version>>;

impl<'s> Beside<'s> {
    /// For work between the steps of transactions, on their thread.
    pub fn alone(store: &'s EngineStore, tally: &'s Tally, seed: u64) -> Self {
        Self { store, tally, rng: Xoshiro256PlusPlus::seed_from_u64(seed), is_alone: true }
    }

    /// For work while other threads commit.
    pub fn among_threads(store: &'s EngineStore, tally: &'s Tally, seed: u64) -> Self {
        Self { is_alone: false, ..Self::alone(store, tally, seed) }
    }

    /// Does one random piece of work.
    pub fn happen(&mut self, history: &mut Vec<Transaction>) {
        let choice = self.rng.random_range(0..25);
        match choice {
            24 if self.is_alone && self.store.has_indexes() => self.index(history),
            0..10 if self.is_alone => self.write_one(history),
            0..8 => self.write_if(history),
            8..10 => self.write_batch(history),
            10..13 => self.write_if(history),
            13..15 => self.write_batch(history),
            15..20 => self.write_ballast(history),
            20 if self.is_alone => self.import(history),
            _ => self.maintain(),
        }
    }

    fn place(&mut self) -> Place {
        Place { table: self.rng.random_range(0..TABLES), key: self.key() }
    }

    fn key(&mut self) -> Vec<u8> {
        vec![self.rng.random_range(KEYS)]
    }

    /// Makes a write, and adds to the history a transaction with the same effect.
    fn write(
        &mut self,
        history: &mut Vec<Transaction>,
        durability: Durability,
        write: impl FnOnce(&EngineStore, &mut Vec<Operation>) -> Written,
    ) {
        let (began, before) = (self.tally.event(), self.store.database().version());
        let mut operations = Vec::new();
        let (snapshot, outcome) = match write(self.store, &mut operations) {
            Ok(None) => return,
            Ok(Some(version)) => {
                assert!(!self.is_alone || version.0 == before.0 + 1, "the version after {before:?} is {version:?}");
                self.store.acknowledge(version, durability);
                // The condition was checked against all commits before this write, so its snapshot is the version
                // before its own.
                (Version(version.0 - 1), Outcome::Committed(Some(version)))
            }
            Err(Error::OutcomeUnknown { .. }) => (before, Outcome::Unknown),
            Err(error) => {
                assert!(!error.is_corruption(), "a fault is not corruption: {error}");
                return;
            }
        };
        history.push(Transaction {
            id: self.tally.transaction(),
            isolation: Isolation::Serializable,
            snapshot,
            operations,
            outcome,
            began: Some(began),
            acknowledged: (outcome != Outcome::Unknown).then(|| self.tally.event()),
        });
    }

    /// Makes a conditional write by one call, in the table without column groups.
    fn write_one(&mut self, history: &mut Vec<Transaction>) {
        let place = Place { table: 0, key: self.key() };
        let (mark, choice) = (self.tally.mark(), self.rng.random_range(0..3));
        self.write(history, self.store.durability(), |store, operations| {
            let (table, key, value) = (store.table(0), &place.key, store.value(mark));
            let newest = || Some(store.database().version());
            let mut saw = |saw: Option<Mark>| operations.push(Operation::Read { place: place.clone(), saw });
            match choice {
                0 if table.contains_key(key)? => match table.insert_new(key, value) {
                    // The write would have changed no row, so it is left out of the history. The commit that it read
                    // may be lost.
                    Err(Error::OutcomeUnknown { .. }) => Ok(None),
                    is_new => is_new.map(|is_new| {
                        assert!(!is_new, "the key has a value");
                        None
                    }),
                },
                0 => {
                    saw(None);
                    operations.push(Operation::Put { place: place.clone(), mark });
                    assert!(table.insert_new(key, value)?, "the key has no value");
                    Ok(newest())
                }
                1 => {
                    let now = table.get(key)?;
                    saw(now.as_ref().map(|now| store.mark_of(now)));
                    let erases = mark.0.is_multiple_of(4);
                    operations.push(put_or_erase(&place, (!erases).then_some(mark)));
                    let swapped = table.compare_and_swap(key, now.as_deref(), (!erases).then_some(value))?;
                    assert!(swapped.is_ok(), "the key has what it had");
                    Ok(newest())
                }
                _ => {
                    let erases = mark.0.is_multiple_of(4);
                    let mut was = None;
                    let outcome = table.fetch_update(key, |now| {
                        was = now.map(|now| store.mark_of(now));
                        (!erases).then(|| value.clone())
                    });
                    saw(was);
                    operations.push(put_or_erase(&place, (!erases).then_some(mark)));
                    let before = outcome?;
                    assert_eq!(before.map(|before| store.mark_of(&before)), was, "what an update was given");
                    Ok(if erases && was.is_none() { None } else { newest() })
                }
            }
        });
    }

    /// Commits a batch that takes effect only if some keys still have the values that they had.
    fn write_if(&mut self, history: &mut Vec<Transaction>) {
        let (durability, places) = (self.durability(), [self.place(), self.place(), self.place()]);
        let (marks, by_version) = ([self.tally.mark(), self.tally.mark()], self.rng.random());
        self.write(history, durability, |store, operations| {
            let mut batch = store.database().batch().durability(durability);
            // The batch only reads the first key, reads and writes the second one, and only writes the third one.
            for place in &places[..2] {
                let saw = expect(store, &mut batch, place, by_version)?;
                operations.push(Operation::Read { place: place.clone(), saw });
            }
            put_all(store, &mut batch, operations, places[1..].iter().zip(marks));
            Ok(batch.commit_if()?.ok())
        });
    }

    fn write_batch(&mut self, history: &mut Vec<Transaction>) {
        let (durability, places) = (self.durability(), [self.place(), self.place()]);
        let marks = [self.tally.mark(), self.tally.mark()];
        self.write(history, durability, |store, operations| {
            let mut batch = store.database().batch().durability(durability);
            put_all(store, &mut batch, operations, places.iter().zip(marks));
            batch.commit().map(Some)
        });
    }

    fn write_ballast(&mut self, history: &mut Vec<Transaction>) {
        let (key, mark) = (self.rng.random::<[u8; 2]>(), self.tally.mark());
        self.write(history, Durability::Buffered, |store, operations| {
            operations.push(Operation::Put { place: Place { table: BALLAST, key: key.to_vec() }, mark });
            let mut batch = store.database().batch().durability(Durability::Buffered);
            batch.insert(store.table(BALLAST), key, [b'b'; BALLAST_BYTES]);
            batch.commit().map(Some)
        });
    }

    fn import(&mut self, history: &mut Vec<Transaction>) {
        let (mut place, mark) = (self.place(), self.tally.mark());
        if self.store.has_indexes() {
            // Table 0 takes no import.
            place.table = 1;
        }
        self.write(history, Durability::Synced, |store, operations| {
            let table = store.table(place.table);
            operations.push(Operation::Put { place: place.clone(), mark });
            let mut import = table.import()?;
            import_add(&mut import, table, &place.key, &store.value(mark))?;
            import.finish(|_| {})?;
            Ok(Some(store.database().version()))
        });
    }

    /// Drops or creates an index, which makes commits that change no row.
    fn index(&mut self, history: &mut Vec<Transaction>) {
        let before = self.store.database().version();
        let outcome = self.store.drop_or_create_index();
        let newest = self.store.database().version();
        let mut seen: Vec<Outcome> =
            (before.0 + 1..=newest.0).map(|version| Outcome::Committed(Some(Version(version)))).collect();
        match outcome {
            Ok(()) => self.store.acknowledge(newest, Durability::Synced),
            Err(Error::OutcomeUnknown { .. }) => seen.push(Outcome::Unknown),
            Err(error) => assert!(!error.is_corruption(), "a fault is not corruption: {error}"),
        }
        history.extend(seen.into_iter().map(|outcome| Transaction {
            id: self.tally.transaction(),
            isolation: Isolation::Serializable,
            snapshot: before,
            operations: Vec::new(),
            outcome,
            began: None,
            acknowledged: None,
        }));
    }

    fn maintain(&mut self) {
        let db = self.store.database();
        let newest = db.version();
        let outcome = match self.rng.random_range(0..6) {
            0 | 1 => db.flush(),
            2 => db.compact(),
            3 => return drop(db.compact_due()),
            4 => self.store.table(self.rng.random_range(0..TABLES)).compact(),
            _ => db.sync(),
        };
        if outcome.is_ok() {
            self.store.acknowledge(newest, Durability::Synced);
        }
    }

    fn durability(&mut self) -> Durability {
        if self.rng.random() { Durability::Synced } else { Durability::Buffered }
    }
}

fn put_or_erase(place: &Place, mark: Option<Mark>) -> Operation {
    match mark {
        Some(mark) => Operation::Put { place: place.clone(), mark },
        None => Operation::Erase { place: place.clone() },
    }
}

/// Makes a batch depend on the current value of a key, and returns the mark of this value.
fn expect(store: &EngineStore, batch: &mut Batch, place: &Place, by_version: bool) -> Result<Option<Mark>> {
    let (table, has_groups) = (store.table(place.table), place.table == 1);
    loop {
        let version = table.version_of(&place.key)?;
        let saw = store.get(place)?;
        // Another thread has written the key since its version was read.
        if table.version_of(&place.key)? != version {
            continue;
        }
        let expected = match (saw, version) {
            (Some(_), Some(version)) if by_version || has_groups => Expected::Version(version),
            (Some(mark), _) => Expected::Value(store.value(mark)),
            (None, _) => Expected::Absent,
        };
        batch.expect(table, &place.key, expected);
        return Ok(saw);
    }
}

fn put_all<'p>(
    store: &EngineStore,
    batch: &mut Batch,
    operations: &mut Vec<Operation>,
    rows: impl Iterator<Item = (&'p Place, Mark)>,
) {
    for (place, mark) in rows {
        batch_insert(batch, store.table(place.table), &place.key, &store.value(mark));
        operations.push(Operation::Put { place: place.clone(), mark });
    }
}
