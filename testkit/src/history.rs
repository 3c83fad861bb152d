//! Random histories of one database on a simulated machine. Their steps are writes, reads, moves of open iterators
//! and cursors, snapshots, names of versions, flushes, compactions, imports, ingested files, creating and dropping tables, closing and
//! opening. Everything that is read is compared with the model.
//!
//! A wrong answer is a panic. An error of the disk is returned to the caller, who goes on with [`History::recover`].
//! Everything follows from one seed.

pub mod moves;
mod past;
pub mod reader;
pub(crate) mod rows;
mod step;

use crate::model::Model;
use crate::options::TinyOptions;
use larch::backup::Backups;
use larch::event::Event;
use larch::{Commit, Database, Error, Key, Result, Snapshot, Table, TableOptions, Value, Version};
use moves::{Move, Moved};
use os::sim::{SimDisk, SimReads};
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use os::{Disk, Machine};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use reader::{Reader, Rows, Seen, Wanted};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// The directory of the database on the simulated disk.
pub const DIRECTORY: &str = "db";
/// Where its backups are kept.
const BACKUPS: &str = "backups";

/// An owned row: key and value.
pub type OwnedRow = (Vec<u8>, Vec<u8>);

/// A database, what it must hold, and what it has promised.
#[derive(Debug)]
pub struct History {
    rng: Xoshiro256PlusPlus,
    disk: Arc<SimDisk>,
    /// Whether the simulated machine holds reads of the disk back until a thread waits for one. They then complete
    /// in random order.
    holds_reads: bool,
    options: TinyOptions,
    model: Model,
    /// The newest commit that must survive a crash of the machine.
    durable: Version,
    /// The newest commit that must still be there when the database is opened again without a crash.
    acknowledged: Version,
    /// Newest commit that must be in files.
    flushed: Version,
    /// A table that was being created or dropped when an error occurred.
    table_in_doubt: Option<String>,
    /// The versions that are kept, by name.
    kept: BTreeMap<String, Version>,
    /// A name that was being given or taken away when an error occurred.
    name_in_doubt: Option<String>,
    /// The options of each table.
    stored: BTreeMap<String, TableOptions>,
    /// A table whose options were being changed when an error occurred, and its new options.
    alter_in_doubt: Option<(String, TableOptions)>,
    /// Makes values unique.
    values: u64,
    /// How many rows with values in several parts were compared so far.
    compared_in_parts: u64,
    /// Makes names of copies unique.
    copies: u64,
    /// See [`History::failed_in_copy`].
    failed_in_copy: bool,
    open: Option<Open>,
}

/// An open database, and the objects that keep it open. The fields are dropped in this order.
#[derive(Debug)]
struct Open {
    /// Submitted commits. A later step may still wait until one of them is durable.
    commits: Vec<Commit>,
    iterators: Vec<OpenRange>,
    cursors: Vec<OpenCursor>,
    snapshots: Vec<Snapshot>,
    tables: BTreeMap<String, Table>,
    db: Database,
}

/// An open iterator, and the rows that it still has to return.
#[derive(Debug)]
struct OpenRange {
    table: String,
    rows: Rows,
    expected: VecDeque<(Vec<u8>, Vec<Vec<u8>>)>,
}

/// A cursor left open.
#[derive(Debug)]
struct OpenCursor {
    table: String,
    moved: Moved,
}

impl History {
    /// An empty disk. All random choices follow from `seed`. No database is opened yet.
    pub fn new(seed: u64) -> Self {
        Self::with_options(seed, TinyOptions::of(seed))
    }

    /// The same as [`History::new`], but the database has the options `options`.
    pub fn with_options(seed: u64, options: TinyOptions) -> Self {
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            disk: SimDisk::new(seed),
            holds_reads: false,
            options,
            model: Model::new(),
            durable: Version(0),
            acknowledged: Version(0),
            flushed: Version(0),
            table_in_doubt: None,
            kept: BTreeMap::new(),
            name_in_doubt: None,
            stored: BTreeMap::new(),
            alter_in_doubt: None,
            values: 0,
            compared_in_parts: 0,
            copies: 0,
            failed_in_copy: false,
            open: None,
        }
    }

    /// The same history on a machine that holds reads of the disk back until a thread waits for one. The seed
    /// decides the order in which they then complete.
    pub fn holding_reads(self) -> Self {
        Self { holds_reads: true, ..self }
    }

    /// The disk, so that a test can make it fail.
    pub fn disk(&self) -> &Arc<SimDisk> {
        &self.disk
    }

    /// The options of the database.
    pub fn options(&self) -> &TinyOptions {
        &self.options
    }

    /// The newest commit that must survive a crash.
    pub fn durable(&self) -> Version {
        self.durable
    }

    /// What the database should hold.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Opens the database, takes `steps` steps, and at the end compares everything.
    pub fn run(&mut self, steps: usize) -> Result<()> {
        if self.open.is_none() {
            self.recover()?;
        }
        self.go_on(steps)
    }

    /// Takes `steps` steps in the open database, and at the end compares everything.
    pub fn go_on(&mut self, steps: usize) -> Result<()> {
        for _ in 0..steps {
            self.step()?;
            self.see_what_is_durable();
        }
        self.compare()
    }

    /// Takes one step in the open database and compares only what this step reads.
    pub fn advance(&mut self) -> Result<()> {
        self.step()?;
        self.see_what_is_durable();
        Ok(())
    }

    /// Asks the database which commits are durable, and notes that these must survive a crash. The durable version
    /// must never go back, and each submitted commit's handle must agree with it.
    fn see_what_is_durable(&mut self) {
        let Open { db, commits, .. } = self.opened();
        let durable = db.durable_version();
        assert!(durable >= self.durable, "{:?} is durable, the database says {durable:?}", self.durable);
        assert!(durable <= db.version(), "{durable:?} is durable, and {:?} is the newest", db.version());
        for commit in commits {
            assert_eq!(commit.is_durable(), commit.version() <= durable, "{commit:?}, and {durable:?} is durable");
        }
        self.durable = durable;
    }

    /// Drops the database without closing it. What was only in memory is lost.
    pub fn abandon(&mut self) {
        self.open = None;
    }

    /// Crashes the machine and starts it again. Some of the bytes that were not synced may have survived.
    pub fn restart(&mut self) {
        self.open = None;
        match self.rng.random_range(0..6) {
            0 => self.disk.crash_keeping_nothing(),
            1 => return self.disk.crash_keeping_everything(),
            _ => self.disk.crash(),
        }
        self.acknowledged = self.durable;
    }

    /// Tries to write, and expects that the database refuses it.
    pub fn expect_writes_stopped(&self) {
        let Open { tables, db, .. } = self.opened();
        if let Some(table) = tables.values().next() {
            let outcome = rows::insert(table, b"k00", b"never seen");
            assert!(matches!(outcome, Err(Error::WritesStopped(_))), "a write after a failed one: {outcome:?}");
        }
        let outcome = db.sync();
        assert!(matches!(outcome, Err(Error::WritesStopped(_))), "a sync after a failed write: {outcome:?}");
    }

    /// How often a row with its value in several parts was compared so far.
    pub fn compared_in_parts(&self) -> u64 {
        self.compared_in_parts
    }

    /// The open database.
    pub fn database(&self) -> &Database {
        &self.opened().db
    }

    /// The open snapshots. The history reads at one of them or at the newest version.
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.opened().snapshots
    }

    /// Whether the database is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Writes all commits to files and closes the database. If the disk has no room for the files, the commits stay
    /// durable in the log.
    pub fn close(&mut self) -> Result<()> {
        let Open { db, .. } = self.open.take().expect("the database is open");
        let beside = db.clone();
        db.close()?;
        match beside.metrics().memtable_bytes {
            0 => self.everything_is_in_files(),
            _ => self.durable = self.acknowledged,
        }
        Ok(())
    }

    /// Whether all acknowledged commits are in SSTs.
    pub fn is_in_files(&self) -> bool {
        self.flushed == self.acknowledged
    }

    fn everything_is_in_files(&mut self) {
        (self.durable, self.flushed) = (self.acknowledged, self.acknowledged);
    }

    fn machine(&mut self) -> Machine {
        let seed = self.rng.random();
        let machine = Machine::simulated_on(self.disk.clone(), seed);
        if self.holds_reads { Machine { reads: SimReads::new(seed), ..machine } } else { machine }
    }

    /// Opens the database after it was closed or abandoned, or after the machine crashed. It must hold a prefix of
    /// the commit order: with every acknowledged commit if the machine did not crash, and with every durable commit
    /// if it did. The model forgets all later commits.
    pub fn recover(&mut self) -> Result<()> {
        self.open = None;
        // If the disk is full, opening the database writes no files: what was in the logs stays in memory.
        let is_in_files = Arc::new(AtomicBool::new(false));
        let seen = is_in_files.clone();
        let hook = move |event: &Event| {
            if let Event::Opened { commits, recovered_files, .. } = event {
                seen.store(*commits == 0 || *recovered_files > 0, Ordering::Relaxed);
            }
        };
        let db = self.options.builder(DIRECTORY).machine(self.machine()).on_event(hook).open()?;
        let recovered = self.agree(&db)?;
        (self.durable, self.acknowledged) = (recovered, recovered);
        if is_in_files.load(Ordering::Relaxed) {
            self.flushed = recovered;
        }
        let tables = self.known_tables(&db)?;
        let (commits, iterators, cursors, snapshots) = Default::default();
        self.open = Some(Open { commits, iterators, cursors, snapshots, tables, db });
        self.expect_no_orphans()?;
        self.compare()
    }

    /// Goes on in the open database after an error that does not stop all writes. The failed operation must have
    /// taken effect as a whole or not at all.
    pub fn resume(&mut self) -> Result<()> {
        let Open { db, snapshots, commits, .. } = self.open.take().expect("the database is open");
        // Without this call, a failed flush would be tried again only after some time.
        db.flush()?;
        self.acknowledged = self.agree(&db)?;
        let tables = self.known_tables(&db)?;
        self.open = Some(Open { commits, iterators: Vec::new(), cursors: Vec::new(), snapshots, tables, db });
        self.compare()
    }

    /// Makes the model forget the commits that the database has lost. None of the lost commits may have been
    /// acknowledged. Finds out how a failed change of tables ended. Returns the newest commit.
    fn agree(&mut self, db: &Database) -> Result<Version> {
        let (there, must_survive, newest) = (db.version(), self.acknowledged, self.model.newest());
        assert!(there >= must_survive, "commits up to {must_survive:?} must survive, {there:?} is the last");
        assert!(there <= newest, "{newest:?} was the last commit, the database says {there:?}");
        if let Some(name) = self.table_in_doubt.take() {
            match db.existing_table(&name)? {
                Some(_) => self.model.create_table(&name),
                None => self.model.drop_table(&name),
            }
        }
        let kept = kept_by(db);
        if let Some(name) = self.name_in_doubt.take() {
            match kept.get(&name) {
                Some(version) => self.kept.insert(name, *version),
                None => self.kept.remove(&name),
            };
        }
        assert_eq!(kept, self.kept, "versions with names");
        self.model.lose_after(there);
        Ok(there)
    }

    /// Returns the tables that the model knows. The database must have all these tables.
    fn known_tables(&mut self, db: &Database) -> Result<BTreeMap<String, Table>> {
        let mut tables = BTreeMap::new();
        for name in self.model.tables() {
            let table = db.existing_table(&name)?.unwrap_or_else(|| panic!("the table {name:?} is lost"));
            if let Some((_, altered)) = self.alter_in_doubt.take_if(|(altered, _)| *altered == name)
                && table.options() == altered
            {
                self.stored.insert(name.clone(), altered);
            }
            tables.insert(name, table);
        }
        Ok(tables)
    }

    /// Checks that the database accounts for all SSTs on the disk.
    fn expect_no_orphans(&mut self) -> Result<()> {
        // The disk may have been told to fail just this operation.
        let Ok(entries) = self.disk.list(Path::new(DIRECTORY)) else { return Ok(()) };
        let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
        let files = names.iter().filter(|name| name.ends_with(".sst")).count() as u64;
        let metrics = self.opened().db.metrics();
        // Beside the files in use, the directory may have files that could not be removed yet, or that a follower
        // still reads.
        let known = metrics.files..=metrics.files + metrics.leftover_files + metrics.held_files;
        assert!(known.contains(&files), "{files} files on the disk and {known:?} known, of {names:?}");
        Ok(())
    }

    fn opened(&self) -> &Open {
        self.open.as_ref().expect("the database is open")
    }

    /// Compares every table in both directions, at every version that is still read. Checks every file.
    pub fn compare(&mut self) -> Result<()> {
        let Open { db, snapshots, tables, iterators, cursors, .. } = self.open.as_mut().expect("the database is open");
        assert_eq!(db.tables(), self.model.tables(), "tables");
        assert_eq!(db.version(), self.model.newest(), "version");
        assert_eq!(kept_by(db), self.kept, "versions with names");
        let mut past = self.kept.keys().map(|name| db.at(&**name)).collect::<Result<Vec<Snapshot>>>()?;
        if let Some(from) = db.retained_from().filter(|from| *from <= self.model.newest()) {
            past.push(db.at(from)?);
            for (name, table) in tables.iter() {
                past::expect_feed(db, &self.model, name, table, from)?;
                past::expect_diff(db, &self.model, name, table, from)?;
            }
        }
        for (name, table) in tables.iter() {
            assert_eq!(table.options(), self.stored[name], "options of {name:?}");
        }
        for snapshot in std::iter::once(None).chain(snapshots.iter().chain(&past).map(Some)) {
            for (name, table) in tables.iter() {
                let groups = self.stored[name].groups.len();
                for wanted in Wanted::each(groups) {
                    let what = || format!("all rows of {name:?} at {snapshot:?}, {wanted:?}");
                    let reader = Reader::new(table, snapshot, wanted.clone());
                    let at = reader.at(db.version());
                    let compared = expect_rows(&what, &reader, reader.all(), self.model.rows(name, at))?;
                    expect_rows(&what, &reader, reader.all().rev(), self.model.rows(name, at).rev())?;
                    self.compared_in_parts += if groups > 1 { compared } else { 0 };
                }
            }
        }
        for OpenRange { table, mut rows, expected } in iterators.drain(..) {
            let what = || format!("the rest of an iterator over {table:?}");
            for (key, parts) in &expected {
                let row = rows.next().transpose()?;
                expect_row(&what, shown(&row), Some((key, parts)));
            }
            expect_row::<Value>(&what, shown(&rows.next().transpose()?), None);
        }
        for OpenCursor { mut moved, .. } in cursors.drain(..) {
            moved.go(&Move::Next)?;
            moved.go(&Move::Prev)?;
            moved.go(&Move::Last)?;
        }
        expect_sound(db)
    }

    /// Opens the database a second time, read-only. This instance must show every commit that is in files, and a
    /// prefix of all commits.
    fn read_only(&mut self) -> Result<()> {
        let db = self.options.builder(DIRECTORY).machine(self.machine()).read_only(true).open()?;
        let at = db.version();
        assert!(at >= self.flushed, "{:?} is in files, a read-only open shows {at:?}", self.flushed);
        self.expect_tables(&db, at, "opened read-only")
    }

    /// Copies the database by a checkpoint or a backup, made either by the open database or by a second, read-only
    /// instance. The copy must be sound and have all commits.
    fn copy(&mut self) -> Result<()> {
        self.copies += 1;
        let (machine, copy) = (self.machine(), format!("copy {}", self.copies));
        let (is_beside, is_backup) = (self.rng.random(), self.rng.random());
        let source = match is_beside {
            true => self.options.builder(DIRECTORY).machine(machine.clone()).read_only(true).open()?,
            false => self.opened().db.clone(),
        };
        let version = if is_backup {
            let backups = Backups::at(BACKUPS).on(&machine);
            source.backup(BACKUPS)?;
            backups.keep(2)?;
            backups.restore(None, &copy, |_| {})?.version
        } else {
            source.checkpoint(&copy)?.version
        };
        drop(source);
        assert_eq!(version, self.model.newest(), "the version of a copy");
        if !is_beside {
            self.durable = version;
        }
        let is_read_only = self.rng.random();
        let outcome = self.expect_copy(&copy, is_read_only, version);
        self.failed_in_copy = outcome.is_err();
        outcome?;
        self.remove_files(&copy);
        Ok(())
    }

    fn expect_copy(&mut self, copy: &str, is_read_only: bool, version: Version) -> Result<()> {
        let db = self.options.builder(copy).machine(self.machine()).read_only(is_read_only).open()?;
        assert_eq!(db.version(), version);
        self.expect_tables(&db, version, "in a copy")?;
        expect_sound(&db)
    }

    /// Whether the last step failed because of a copy that was opened beside the database. Such an error does not
    /// stop the writes of the database itself.
    pub fn failed_in_copy(&self) -> bool {
        self.failed_in_copy
    }

    /// Removes the files of a directory that is no longer needed, to free space.
    fn remove_files(&self, directory: &str) {
        for entry in self.disk.list(Path::new(directory)).unwrap_or_default() {
            self.disk.remove(&Path::new(directory).join(entry.name)).ok();
        }
    }

    /// Compares all tables of `db`, another instance or a copy, with the model: their options, and their rows at
    /// version `at`.
    fn expect_tables(&self, db: &Database, at: Version, place: &str) -> Result<()> {
        assert_eq!(db.tables(), self.model.tables(), "tables {place}");
        // A read-only database does not show what is not in files yet.
        let kept = self.kept.values().filter(|version| **version <= at);
        let past = kept.map(|version| db.at(*version)).collect::<Result<Vec<Snapshot>>>()?;
        for name in self.model.tables() {
            let table = db.table(&name)?;
            assert_eq!(table.options(), self.stored[&name], "options of {name:?} {place}");
            for wanted in Wanted::each(table.options().groups.len()) {
                for snapshot in std::iter::once(None).chain(past.iter().map(Some)) {
                    let reader = Reader::new(&table, snapshot, wanted.clone());
                    let at = reader.at(at);
                    let what = || format!("{name:?} {place} at {at:?}, {wanted:?}");
                    expect_rows(&what, &reader, reader.all(), self.model.rows(&name, at))?;
                }
            }
        }
        Ok(())
    }
}

/// The versions that have names, by name.
fn kept_by(db: &Database) -> BTreeMap<String, Version> {
    db.kept().into_iter().map(|kept| (kept.name, kept.version)).collect()
}

/// Checks that all bytes of the database are as they were written.
fn expect_sound(db: &Database) -> Result<()> {
    match db.check(|_| {})?.problems.into_iter().next() {
        Some(problem) if problem.error.is_corruption() => panic!("check: {problem}"),
        // The disk has failed.
        Some(problem) => Err(problem.error),
        None => Ok(()),
    }
}

/// Checks that `rows` are what `reader` must see if the table has the rows `expected`. Returns the number of rows.
fn expect_rows<'m>(
    what: &dyn Fn() -> String,
    reader: &Reader,
    rows: impl Iterator<Item = Result<(Key, Seen)>>,
    expected: impl Iterator<Item = (&'m [u8], &'m [u8])>,
) -> Result<u64> {
    let mut expected = expected;
    let mut count = 0;
    for row in rows {
        expect_row_of(what, reader, &Some(row?), expected.next());
        count += 1;
    }
    expect_row_of(what, reader, &None, expected.next());
    Ok(count)
}

/// Checks that a row is what `reader` must see if the table has the row `expected`.
fn expect_row_of(
    what: &dyn Fn() -> String,
    reader: &Reader,
    row: &Option<(Key, Seen)>,
    expected: Option<(&[u8], &[u8])>,
) {
    let expected = expected.map(|(key, value)| (key, reader.of(value)));
    expect_row(what, shown(row), expected.as_ref().map(|(key, parts)| (*key, &parts[..])));
}

fn expect_row<V: AsRef<[u8]>>(
    what: &dyn Fn() -> String,
    row: Option<(&[u8], &[Value])>,
    expected: Option<(&[u8], &[V])>,
) {
    let same = match (row, expected) {
        (Some((key, parts)), Some((expected_key, expected))) => {
            key == expected_key && parts.iter().map(|part| &**part).eq(expected.iter().map(AsRef::as_ref))
        }
        (row, expected) => row.is_none() && expected.is_none(),
    };
    assert!(same, "{}: there is {}, expected {}", what(), told(row), told(expected));
}

/// A row to be compared.
fn shown(row: &Option<(Key, Seen)>) -> Option<(&[u8], &[Value])> {
    row.as_ref().map(|(key, parts)| (&**key, &**parts))
}

fn told<V: AsRef<[u8]>>(row: Option<(&[u8], &[V])>) -> String {
    let Some((key, parts)) = row else { return "no row".to_owned() };
    let part = |part: &V| {
        let part = part.as_ref();
        format!("{} ({} bytes)", part[..part.len().min(24)].escape_ascii(), part.len())
    };
    format!("{} = [{}]", key.escape_ascii(), parts.iter().map(part).collect::<Vec<_>>().join(", "))
}
