//! Runs a short series of operations on a database on a simulated machine, and compares the database with a model,
//! which keeps the rows of every version in sorted maps.
#![no_main]

use larch::options::{FilterKind, Filters, LevelOptions, PageIndexKind};
use larch::{Compression, Database, Durability, Readable, Result, Snapshot, Table, TableOptions};
use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use std::collections::BTreeMap;
use std::ops::Bound;

const TABLES: [&str; 2] = ["a", "b"];

/// The rows of both tables.
type State = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

/// The fields are declared in the order in which they have to be dropped.
struct Open {
    snapshots: Vec<Snapshot>,
    tables: [Table; 2],
    db: Database,
}

struct History {
    disk: Arc<SimDisk>,
    options: TableOptions,
    cache_bytes: u64,
    /// The state after each commit, in order. The first state is the empty database.
    states: Vec<State>,
    /// The number of commits that must survive a crash.
    durable: usize,
    runs: u64,
    open: Option<Open>,
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let shape = input.byte();
    let options = TableOptions {
        in_memory: false,
        page_bytes: 256,
        node_bytes: if shape & 8 == 0 { 1024 } else { 256 },
        index: [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both, PageIndexKind::Btree]
            [usize::from(shape & 3)],
        compression: match (shape & 4, shape & 64) {
            (0, _) => Compression::None,
            (_, 0) => Compression::Lz4,
            _ => Compression::ZSTD,
        },
        metadata: Vec::new(),
        groups: Vec::new(),
        filters: if shape & 128 == 0 { Filters::all(FilterKind::None) } else { Filters::default() },
        filter_prefix_bytes: u16::from(shape >> 5 & 3),
        ..TableOptions::default()
    };
    let mut history = History {
        disk: SimDisk::new(u64::from(input.byte())),
        options,
        cache_bytes: if shape & 16 == 0 { 1 << 16 } else { 0 },
        states: vec![State::default()],
        durable: 0,
        runs: 0,
        open: None,
    };
    history.reopen();
    for _ in 0..200 {
        if input.is_empty() {
            break;
        }
        history.step(&mut input).expect("the disk does not fail");
    }
    history.check_all();
    history.crash(false);
    history.check_all();
    let report = history.db().check(|_| {}).expect("the disk does not fail");
    assert!(report.problems.is_empty(), "{report:?}");
});

impl History {
    fn db(&self) -> &Database {
        &self.open.as_ref().expect("the database is open").db
    }

    fn tables(&self) -> &[Table; 2] {
        &self.open.as_ref().expect("the database is open").tables
    }

    fn newest(&self) -> &State {
        self.states.last().expect("there is the empty state")
    }

    fn step(&mut self, input: &mut Input<'_>) -> Result<()> {
        match input.byte() % 16 {
            0..4 => {
                let (table, key, value) = (input.below(2), input.key(), value(input));
                self.tables()[table].insert(&key, &value)?;
                self.commit(true, |state| drop(state[table].insert(key, value)));
            }
            4 => {
                let (table, key) = (input.below(2), input.key());
                self.tables()[table].remove(&key)?;
                self.commit(true, |state| drop(state[table].remove(&key)));
            }
            5 => {
                let (table, start, end) = (input.below(2), input.key(), end(input));
                let range = (Bound::Included(start.clone()), end.clone().map_or(Bound::Unbounded, Bound::Excluded));
                self.tables()[table].remove_range(range)?;
                // An erase of an empty range makes no commit.
                if end.as_ref().is_none_or(|end| start < *end) {
                    self.commit(true, |state| erase(&mut state[table], &start, end.as_deref()));
                }
            }
            6 | 7 => self.batch(input)?,
            8 => self.db().flush()?,
            9 => self.db().compact()?,
            10 => {
                self.db().sync()?;
                self.durable = self.states.len() - 1;
            }
            11 => {
                let open = self.open.as_mut().expect("the database is open");
                if open.snapshots.len() == 3 {
                    open.snapshots.remove(0);
                }
                open.snapshots.push(open.db.snapshot());
            }
            12 => self.check_view(input.below(4)),
            13 => {
                let (table, key) = (input.below(2), input.key());
                let found = self.tables()[table].get(&key)?;
                assert_eq!(found.as_deref(), self.newest()[table].get(&key).map(Vec::as_slice));
            }
            14 => {
                // After a drop or a close of the database, all commits are durable.
                let open = self.open.take().expect("the database is open");
                let Open { snapshots, tables, db } = open;
                drop((snapshots, tables));
                if input.byte() % 2 == 0 {
                    db.close()?
                } else {
                    drop(db)
                }
                self.durable = self.states.len() - 1;
                self.reopen();
            }
            _ => self.crash(input.byte() % 2 == 0),
        }
        Ok(())
    }

    fn batch(&mut self, input: &mut Input<'_>) -> Result<()> {
        let durability = if input.byte() % 2 == 0 { Durability::Synced } else { Durability::Buffered };
        let mut batch = self.db().batch().durability(durability);
        let mut state = self.newest().clone();
        for _ in 0..input.below(6) {
            let (kind, table, key) = (input.byte(), input.below(2), input.key());
            let handle = &self.tables()[table];
            match kind % 4 {
                0 | 1 => {
                    let value = value(input);
                    batch.insert(handle, &key, &value);
                    state[table].insert(key, value);
                }
                2 => {
                    batch.remove(handle, &key);
                    state[table].remove(&key);
                }
                _ => {
                    let end = end(input);
                    let bound = end.clone().map_or(Bound::Unbounded, Bound::Excluded);
                    batch.remove_range(handle, (Bound::Included(key.clone()), bound));
                    erase(&mut state[table], &key, end.as_deref());
                }
            }
        }
        let is_empty = batch.is_empty();
        let version = batch.commit()?;
        if !is_empty {
            self.commit(durability == Durability::Synced, |newest| *newest = state);
        }
        assert_eq!(version.0, self.states.len() as u64 - 1);
        Ok(())
    }

    /// Notes that the database has made a commit, and makes the same change to the model by calling `change`.
    fn commit(&mut self, is_synced: bool, change: impl FnOnce(&mut State)) {
        let mut state = self.newest().clone();
        change(&mut state);
        self.states.push(state);
        assert_eq!(self.db().version().0, self.states.len() as u64 - 1, "one version for every commit");
        if is_synced {
            self.durable = self.states.len() - 1;
        }
    }

    /// Crashes the machine. The disk keeps either none or some of the bytes that were not durable.
    fn crash(&mut self, keeping_nothing: bool) {
        if keeping_nothing {
            self.disk.crash_keeping_nothing();
        } else {
            self.disk.crash();
        }
        self.open = None;
        self.reopen();
    }

    /// Opens the database. The database must hold the first commits up to some number, and all durable commits must
    /// be among them.
    fn reopen(&mut self) {
        self.runs += 1;
        let db = Database::builder("db")
            .cache_bytes(self.cache_bytes)
            .write_buffer_bytes(4 << 10)
            .open_files(2)
            .levels(LevelOptions {
                level0_files: 2,
                slow_files: 4,
                base_bytes: 4 << 10,
                growth: 2,
                file_bytes: 2 << 10,
            })
            .machine(Machine::simulated_on(self.disk.clone(), self.runs))
            .open()
            .expect("a database opens after a crash");
        let commits = db.version().0 as usize;
        assert!((self.durable..self.states.len()).contains(&commits), "{commits} commits, {} durable", self.durable);
        self.states.truncate(commits + 1);
        let tables = TABLES.map(|name| db.table_with(name, self.options.clone()).expect("the disk does not fail"));
        self.open = Some(Open { snapshots: Vec::new(), tables, db });
        // The commits that were found after the crash are durable from now on.
        self.durable = commits;
        self.check_view(0);
    }

    fn check_all(&self) {
        (0..4).for_each(|view| self.check_view(view));
    }

    /// Compares all rows of a view with the model, forward and backward. View 0 is now, the others are snapshots.
    fn check_view(&self, view: usize) {
        let open = self.open.as_ref().expect("the database is open");
        let snapshot = view.checked_sub(1).and_then(|i| open.snapshots.get(i));
        let version = snapshot.map_or(open.db.version(), Snapshot::version);
        for (table, expected) in open.tables.iter().zip(&self.states[version.0 as usize]) {
            let range = || match snapshot {
                Some(snapshot) => snapshot.range(table, ..),
                None => open.db.range(table, ..),
            };
            let row = |row: Result<(larch::Key, larch::Value)>| {
                let (key, value) = row.expect("the disk does not fail");
                (key.to_vec(), value.to_vec())
            };
            let expected = || expected.iter().map(|(key, value)| (key.clone(), value.clone()));
            assert!(range().map(row).eq(expected()), "{} at {version:?}", table.name());
            assert!(range().rev().map(row).eq(expected().rev()), "{} at {version:?}, backward", table.name());
        }
    }
}

/// The length is mostly small. Sometimes the value is larger than a quarter of a page: such values have pages of
/// their own.
fn value(input: &mut Input<'_>) -> Vec<u8> {
    let length = input.byte();
    vec![length; if length < 0xe0 { usize::from(length % 16) } else { usize::from(length) * 3 }]
}

fn end(input: &mut Input<'_>) -> Option<Vec<u8>> {
    (input.byte() % 4 > 0).then(|| input.key())
}

fn erase(table: &mut BTreeMap<Vec<u8>, Vec<u8>>, start: &[u8], end: Option<&[u8]>) {
    table.retain(|key, _| key.as_slice() < start || end.is_some_and(|end| key.as_slice() >= end));
}
