//! A history whose database has followers. Followers meet occasional errors when they look at the disk. The writer
//! meets full disks and other errors, crashes, and opens the database again.
//!
//! Whatever errors occur, a follower shows all commits up to some version and no later one, and this version never
//! decreases. A snapshot always shows what it showed at first. Once the errors have passed, the follower shows
//! everything.

use crate::faults::{expect_to_go_on, is_final};
use crate::history::reader::{Reader, Wanted};
use crate::history::{DIRECTORY, History};
use larch::{Database, Error, Follow, Result, Snapshot, Version};
use os::Machine;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// Followers at a time.
const FOLLOWERS: usize = 3;

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// How often the state of a follower was compared with the model.
    pub states: u64,
    /// How many calls on followers returned an error.
    pub errors: u64,
    /// How many steps of the writer returned an error.
    pub failed_steps: u64,
}

/// A follower, and what it has shown.
struct Follower {
    db: Database,
    what: Follow,
    newest: Version,
    kept: Option<(Snapshot, Rows)>,
}

/// The rows of each table that can be compared with the model, by the name of the table.
type Rows = BTreeMap<String, Vec<(Vec<u8>, Vec<Vec<u8>>)>>;

/// The history, and what is known about it in addition to its model.
struct World {
    rng: Xoshiro256PlusPlus,
    history: History,
    /// For each table name, the version at which a table of this name was last created or dropped. Such a change has
    /// no version of its own, so a follower at this version or an earlier one may or may not show it.
    changed: BTreeMap<String, Version>,
    followers: Vec<Follower>,
    counts: Followed,
}

/// Runs the history of `seed` with followers beside it.
pub fn follow_through_errors(seed: u64, steps: usize) -> Followed {
    let history = History::new(seed);
    let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut world =
        World { rng, history, changed: BTreeMap::new(), followers: Vec::new(), counts: Followed::default() };
    world.history.recover().expect("the disk does not fail");
    for _ in 0..steps {
        world.write();
        if world.rng.random_range(0..3) == 0 {
            world.follow();
        }
    }
    world.finish();
    world.counts
}

impl World {
    /// Makes the writer take a step, with or without a fault of the disk.
    fn write(&mut self) {
        let before = self.history.model().tables();
        let disk = self.history.disk().clone();
        match self.rng.random_range(0..40) {
            0 => disk.set_capacity(disk.used_bytes() + self.rng.random_range(0..2 << 10)),
            1 => disk.fail_operation(self.rng.random_range(1..6), ErrorKind::Other),
            2 => self.crash(),
            _ => {}
        }
        if let Err(error) = self.history.advance() {
            self.counts.failed_steps += 1;
            assert!(!error.is_corruption(), "a fault is not corruption: {error}");
            disk.set_capacity(u64::MAX);
            disk.clear_faults();
            let is_usable = self.history.is_open() && !is_final(&error);
            let resumed = is_usable.then(|| self.history.resume());
            let goes_on = matches!(resumed, Some(Ok(())));
            expect_to_go_on(resumed.unwrap_or(Ok(())));
            if !goes_on {
                self.history.recover().expect("the fault has passed");
            }
        }
        disk.set_capacity(u64::MAX);
        disk.clear_faults();
        self.note_tables(&before);
    }

    /// Crashes the machine, and with it the followers.
    fn crash(&mut self) {
        self.followers.clear();
        self.history.restart();
        self.history.recover().expect("no fault is left after a crash");
    }

    fn note_tables(&mut self, before: &[String]) {
        let now = self.history.model().tables();
        let at = self.history.database().version();
        for name in
            before.iter().filter(|name| !now.contains(name)).chain(now.iter().filter(|name| !before.contains(name)))
        {
            self.changed.insert(name.clone(), at);
        }
    }

    /// Makes a follower take a step, with or without a fault of the disk.
    fn follow(&mut self) {
        let disk = self.history.disk().clone();
        let choice = self.rng.random_range(0..12);
        if self.rng.random_range(0..3) > 0 {
            let kind = if self.rng.random() { ErrorKind::Other } else { ErrorKind::PermissionDenied };
            disk.fail_looks(self.rng.random_range(1..24), kind);
        }
        if self.followers.len() < FOLLOWERS && (choice == 0 || self.followers.is_empty()) {
            let what = if self.rng.random_range(0..4) > 0 { Follow::Commits } else { Follow::Files };
            let opened = self.open(what);
            match opened {
                Ok(db) => self.followers.push(Follower { db, what, newest: Version(0), kept: None }),
                Err(error) => self.note(&error),
            }
        }
        if let Some(last) = self.followers.len().checked_sub(1) {
            let at = self.rng.random_range(0..=last);
            match choice {
                1 => drop(self.followers.swap_remove(at)),
                _ => {
                    if let Err(error) = self.followers[at].db.catch_up() {
                        self.note(&error);
                    }
                    disk.clear_faults();
                    self.compare(at);
                }
            }
        }
        disk.clear_faults();
    }

    fn open(&mut self, what: Follow) -> Result<Database> {
        let machine = Machine::simulated_on(self.history.disk().clone(), self.rng.random());
        self.history.options().builder(DIRECTORY).machine(machine).follow(what).open()
    }

    fn note(&mut self, error: &Error) {
        self.counts.errors += 1;
        assert!(!matches!(error, Error::FellBehind { .. }), "nothing was lost: {error}");
    }

    /// Compares the model with what a follower shows.
    fn compare(&mut self, at: usize) {
        let keeps = self.rng.random_range(0..4);
        let Follower { db, newest, kept, .. } = &mut self.followers[at];
        let snapshot = db.snapshot();
        let version = snapshot.version();
        assert!(version >= *newest, "a follower shows version {} after {}", version.0, newest.0);
        *newest = version;
        let is_known = |name: &str| self.changed.get(name).is_none_or(|changed| *changed < version);
        let rows = rows_of(db, &snapshot, &is_known).expect("the disk works");
        for name in self.history.model().tables().iter().filter(|name| is_known(name)) {
            let seen = rows.get(name).unwrap_or_else(|| panic!("the table {name:?} is missing at {version:?}"));
            let table = db.table(name).expect("the follower has it");
            let reader = Reader::new(&table, Some(&snapshot), Wanted::everything(table.options().groups.len()));
            let expected = self.history.model().rows(name, version);
            let expected: Vec<_> = expected.map(|(key, value)| (key.to_vec(), owned(&reader, value))).collect();
            assert!(*seen == expected, "{name:?} at {version:?}: {} rows for {}", seen.len(), expected.len());
        }
        self.counts.states += 1;
        match (keeps, &kept) {
            (0, _) => *kept = Some((snapshot, rows)),
            (1, Some((snapshot, before))) => {
                // A snapshot of a version that has got a name meanwhile sees the tables that the follower shows now.
                let is_old = |name: &str| self.changed.get(name).is_none_or(|changed| *changed < snapshot.version());
                let still = |name: &str| is_known(name) && is_old(name) && before.contains_key(name);
                match rows_of(db, snapshot, &still) {
                    // A drop has no version, so only tables that still exist are compared.
                    Ok(now) => now
                        .iter()
                        .for_each(|(name, rows)| assert!(*rows == before[name], "a snapshot of {name:?} changed")),
                    Err(error) => panic!("a snapshot of a follower keeps its files: {error}"),
                }
            }
            _ => {}
        }
    }

    /// Checks that each follower shows everything once no more errors occur.
    fn finish(&mut self) {
        self.history.compare().expect("the disk works");
        for at in 0..self.followers.len() {
            let version = self.followers[at].db.catch_up().expect("the disk works");
            if self.followers[at].what == Follow::Commits {
                assert_eq!(version, self.history.model().newest(), "a follower of commits shows all of them");
            }
            self.compare(at);
        }
        self.followers.clear();
    }
}

fn owned(reader: &Reader, value: &[u8]) -> Vec<Vec<u8>> {
    reader.of(value).into_iter().map(<[u8]>::to_vec).collect()
}

/// The rows that `snapshot` shows of each table of `db` whose name is `known`.
fn rows_of(db: &Database, snapshot: &Snapshot, known: &dyn Fn(&str) -> bool) -> Result<Rows> {
    let mut all = Rows::new();
    for name in db.tables().into_iter().filter(|name| known(name)) {
        let table = db.table(&name)?;
        let reader = Reader::new(&table, Some(snapshot), Wanted::everything(table.options().groups.len()));
        let rows = reader
            .all()
            .map(|row| row.map(|(key, seen)| (key.to_vec(), seen.iter().map(|part| part.to_vec()).collect())));
        match rows.collect::<Result<Vec<_>>>() {
            Ok(rows) => _ = all.insert(name, rows),
            // The snapshot is older than the table.
            Err(Error::TableDropped(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}
