//! Tests of branches of databases in a store: branches are written to, branched again, taken over, compacted and
//! dropped, while processes die at any request, and the store loses, delays and repeats requests. No needed file may
//! be removed, and no file may stay that nobody needs.

use larch::{Database, Durability};
use objects::{KEPT, MADE_WITHIN, Outside, StoreDisk, branch, branches, drop_database};
use os::sim::{SimClock, SimStore, SimStoreClient, StoreTrouble};
use os::store::FolderStore;
use os::sync::Arc;
use os::{Clock, Machine};
use os::{DirectoryEntry, Store};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;
use testkit::stored::{number_of, on_store, outside, small};

const DIRECTORY: &str = "/db";

/// The rows of a database: a number for each key. The value is this number, repeated several times.
type Rows = BTreeMap<u64, u64>;

/// The store and the databases in it.
struct World {
    rng: Xoshiro256PlusPlus,
    store: Arc<SimStore>,
    clock: Arc<SimClock>,
    seed: u64,
    processes: u64,
    /// The last number that was written.
    number: u64,
    databases: Vec<Db>,
    /// All prefixes that were ever used.
    prefixes: Vec<String>,
    trouble: StoreTrouble,
    counts: Counts,
    /// Branches whose making returned an error, each with the rows that it may have. They may exist, or appear
    /// later.
    begun: BTreeMap<String, Vec<Rows>>,
    tells: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    branches: u64,
    branches_cut: u64,
    drops: u64,
    refusals: u64,
    opens: u64,
    commits: u64,
    files_removed_late: u64,
}

/// A database, and the rows that it may have.
struct Db {
    prefix: String,
    /// The database must have exactly one of these sets of rows. After a commit of unknown outcome, it is more than
    /// one.
    may_have: Vec<Rows>,
    writer: Option<Process>,
    /// Earlier writers, which may not have noticed yet that another process took over.
    fenced: Vec<Process>,
}

struct Process {
    client: Arc<SimStoreClient>,
    machine: Machine,
    db: Option<Database>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.db = None;
    }
}

/// The SSTs of the database on `disk`.
fn ssts_of(machine: &Machine, disk: &Arc<StoreDisk>) -> io::Result<Vec<DirectoryEntry>> {
    let machine = Machine { disk: disk.clone(), ..machine.clone() };
    let db = Database::builder(DIRECTORY).machine(machine).read_only(true).open().map_err(io::Error::other)?;
    Ok(db.sst_files().into_iter().map(|(name, bytes)| DirectoryEntry { name, bytes }).collect())
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let clock = Arc::new(SimClock::new());
        let store = SimStore::new(seed, clock.clone());
        let trouble = match rng.random_range(0..3) {
            0 => StoreTrouble::drawn(rng.random(), 60, (KEPT / 4, Duration::from_millis(100))),
            _ => StoreTrouble::default(),
        };
        store.set_trouble(trouble);
        let first = Db { prefix: "p".to_owned(), may_have: vec![Rows::new()], writer: None, fenced: Vec::new() };
        World {
            rng,
            store,
            clock,
            seed,
            processes: 0,
            number: 0,
            databases: vec![first],
            prefixes: vec!["p".to_owned()],
            trouble,
            counts: Counts::default(),
            begun: BTreeMap::new(),
            tells: false,
        }
    }

    /// A new process that uses the store, and its client of the store.
    fn outside(&mut self) -> (Outside, Arc<SimStoreClient>) {
        self.processes += 1;
        (outside(&self.clock, self.seed * 1000 + self.processes), self.store.client())
    }

    fn process(&mut self, prefix: &str) -> Process {
        self.processes += 1;
        let client = self.store.client();
        let folder = Arc::new(FolderStore::new(client.clone(), prefix));
        let machine = on_store(folder, DIRECTORY, &self.clock, self.seed * 1000 + self.processes);
        Process { client, machine, db: None }
    }

    /// The store and the process for a call that makes or drops a database. The process may die after some requests.
    fn hand(&mut self) -> (Arc<dyn Store>, Outside, Machine, bool) {
        let process = self.process("");
        let (outside, client) = self.outside();
        let dies = self.rng.random_range(0..2) == 0;
        if dies {
            client.crash_after(self.rng.random_range(0..60));
        }
        (Arc::new(FolderStore::new(client, "")), outside, process.machine.clone(), dies)
    }

    /// Prints what happens, if a single seed is run.
    fn say(&self, text: impl FnOnce() -> String) {
        if self.tells {
            println!("{:?} {}", self.clock.now(), text());
        }
    }

    /// Calls `act` while the store works without faults, and so late that no answer of the store shows an old state.
    fn calmly<T>(&mut self, act: impl FnOnce(&mut World) -> T) -> T {
        self.store.set_trouble(StoreTrouble::default());
        self.clock.advance(KEPT / 4);
        let outcome = act(self);
        self.store.set_trouble(self.trouble);
        outcome
    }

    /// Compares the rows of a database with those that it may have. From then on, its rows are known.
    fn compare(&mut self, place: usize, db: &Database, after: &str) {
        let seed = self.seed;
        let rows = rows(db).unwrap_or_else(|error| panic!("seed {seed}, {after}: {error}"));
        let database = &mut self.databases[place];
        let prefix = &database.prefix;
        assert!(
            database.may_have.contains(&rows),
            "seed {seed}, {prefix} {after}: {rows:?}, not {:?}",
            database.may_have
        );
        database.may_have = vec![rows];
    }

    fn open(&mut self, place: usize) {
        let prefix = self.databases[place].prefix.clone();
        let mut process = self.process(&prefix);
        let opened = open(&process.machine, false);
        self.say(|| format!("open {prefix}: {}", said(&opened)));
        let Ok(db) = opened else { return };
        self.counts.opens += 1;
        let before = self.databases[place].writer.take();
        self.databases[place].fenced.extend(before);
        self.calmly(|world| world.compare(place, &db, "opened"));
        process.db = Some(db);
        self.databases[place].writer = Some(process);
    }

    fn commit(&mut self, place: usize) {
        let (key, erases) = (self.rng.random_range(0..40), self.rng.random_range(0..5) == 0);
        let bytes = if self.rng.random_range(0..3) == 0 { self.rng.random_range(0..4000) } else { 100 };
        self.number += 1;
        let number = self.number;
        let database = &mut self.databases[place];
        let Some(db) = database.writer.as_ref().and_then(|writer| writer.db.as_ref()) else { return };
        let outcome = write(db, key, (!erases).then_some(number), bytes);
        let prefix = database.prefix.clone();
        let mut rows = database.may_have.last().expect("there is one").clone();
        match erases {
            true => rows.remove(&key),
            false => rows.insert(key, number),
        };
        match &outcome {
            Ok(()) => {
                database.may_have = vec![rows];
                self.counts.commits += 1;
            }
            Err(_) => {
                database.may_have.push(rows);
                // This writer writes no more.
                let writer = database.writer.take();
                database.fenced.extend(writer);
            }
        }
        self.say(|| format!("commit {number} to {prefix}: {}", said(&outcome)));
    }

    fn branch(&mut self, place: usize) {
        let from = self.databases[place].prefix.clone();
        // Some branches are made at a prefix that was used before.
        let used = self.rng.random_range(0..4) == 0;
        let to = match used {
            true => self.prefixes[self.rng.random_range(0..self.prefixes.len())].clone(),
            false => format!("b/{}", self.prefixes.len()),
        };
        if !self.prefixes.contains(&to) {
            self.prefixes.push(to.clone());
        }
        let was_there = self.databases.iter().any(|database| database.prefix == to);
        let (store, outside, machine, dies) = self.hand();
        let ssts = |disk: &Arc<StoreDisk>| ssts_of(&machine, disk);
        let made = branch(&store, &outside, (&from, &to), Path::new(DIRECTORY), &ssts);
        self.say(|| format!("branch {from} to {to}, dies {dies}: {}", said(&made)));
        let seed = self.seed;
        if let Err(error) = &made
            && !dies
            && self.trouble.latency.is_zero()
        {
            let expected = [ErrorKind::AlreadyExists, ErrorKind::InvalidInput, ErrorKind::NotFound];
            assert!(expected.contains(&error.kind()), "seed {seed}, {from} to {to}: {error}");
        }
        self.counts.branches += u64::from(made.is_ok());
        self.counts.branches_cut += u64::from(made.is_err() && dies);
        assert!(!was_there || made.is_err(), "seed {seed}: there is something at {to}");
        // The call may have returned an error although the branch exists now.
        let may_have = self.databases[place].may_have.clone();
        if !was_there && made.is_err() {
            // The branch's first sheet may arrive later.
            self.begun.entry(to.clone()).or_default().extend(may_have.clone());
        }
        if !was_there && (made.is_ok() || self.is_there(&to)) {
            let may_have = if made.is_ok() { may_have } else { self.begun[&to].clone() };
            self.databases.push(Db { prefix: to, may_have, writer: None, fenced: Vec::new() });
            if made.is_ok() {
                self.look(self.databases.len() - 1, "just branched");
            }
        }
    }

    fn is_there(&mut self, prefix: &str) -> bool {
        self.calmly(|world| {
            let process = world.process(prefix);
            open(&process.machine, true).is_ok()
        })
    }

    /// Reads a database without taking it over.
    fn look(&mut self, place: usize, after: &str) {
        let has_writer = self.databases[place].writer.is_some();
        self.calmly(|world| {
            let prefix = world.databases[place].prefix.clone();
            let process = world.process(&prefix);
            let seed = world.seed;
            let opened = open(&process.machine, true);
            // The database may never have been opened for writing.
            if let Err(larch::Error::NotADatabase(_)) = opened
                && prefix == "p"
            {
                return;
            }
            let db = opened.unwrap_or_else(|error| panic!("seed {seed}, {prefix} {after}: {error}"));
            let report = db.check(|_| {}).unwrap_or_else(|error| panic!("seed {seed}, {prefix}: {error}"));
            assert!(report.problems.is_empty(), "seed {seed}, {prefix} {after}: {:?}", report.problems);
            drop(db);
            // A plain read-only open does not see commits that are only in logs; a follower does.
            if !has_writer {
                return;
            }
            let following =
                Database::builder(DIRECTORY).machine(process.machine.clone()).follow(larch::Follow::Commits);
            let following = following.cache_bytes(1 << 20).open();
            let db = following.unwrap_or_else(|error| panic!("seed {seed}, {prefix} {after}: {error}"));
            let rows = rows(&db).unwrap_or_else(|error| panic!("seed {seed}, {prefix} {after}: {error}"));
            let may_have = &world.databases[place].may_have;
            assert!(may_have.contains(&rows), "seed {seed}, {prefix} {after}: {rows:?}, not {may_have:?}");
        });
    }

    fn drop_one(&mut self, place: usize) {
        let prefix = self.databases[place].prefix.clone();
        let (store, outside, _, dies) = self.hand();
        let dropped = drop_database(&store, &outside, &prefix);
        self.say(|| format!("drop {prefix}, dies {dies}: {}", said(&dropped)));
        let seed = self.seed;
        match &dropped {
            Ok(_) => self.counts.drops += 1,
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => self.counts.refusals += 1,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => {
                assert!(dies || !self.trouble.latency.is_zero(), "seed {seed}, {prefix} dropped: {error}");
            }
        }
        let is_there = self.is_there(&prefix);
        assert!(dropped.is_err() || !is_there, "seed {seed}: {prefix} was dropped");
        if !is_there {
            let database = self.databases.remove(place);
            drop(database);
        }
    }

    fn step(&mut self) {
        if self.databases.is_empty() {
            self.databases.push(Db {
                prefix: format!("p/{}", self.prefixes.len()),
                may_have: vec![Rows::new()],
                writer: None,
                fenced: Vec::new(),
            });
            self.prefixes.push(self.databases[0].prefix.clone());
        }
        let place = self.rng.random_range(0..self.databases.len());
        match self.rng.random_range(0..40) {
            0 => self.open(place),
            1..4 if self.databases[place].writer.is_none() => self.open(place),
            4 => drop(self.databases[place].writer.take()),
            5 => {
                if let Some(writer) = self.databases[place].writer.take() {
                    writer.client.crash();
                }
            }
            6 => {
                if let Some(writer) = &self.databases[place].writer {
                    writer.client.crash_after(self.rng.random_range(0..40));
                }
            }
            7 => drop(self.databases[place].fenced.pop()),
            8 => {
                let seconds = if self.rng.random_range(0..8) == 0 { 7200 } else { self.rng.random_range(0..700) };
                self.clock.advance(Duration::from_secs(seconds));
            }
            9..12 => self.branch(place),
            12 if self.databases.len() > 1 => self.drop_one(place),
            13 => self.look(place, "looked at"),
            14..19 => {
                let fenced = self.rng.random_range(0..5) == 0;
                let database = &self.databases[place];
                let process = if fenced { database.fenced.first() } else { database.writer.as_ref() };
                if let Some(db) = process.and_then(|process| process.db.as_ref()) {
                    // Whatever a fenced writer tries, it fails or changes nothing.
                    let outcome = if self.rng.random() { db.flush() } else { db.compact() };
                    outcome.unwrap_or_default();
                }
            }
            19 => self.store.deliver_late(),
            _ => self.commit(place),
        }
    }

    /// Checks the rows of all databases. Then drops all of them, and checks that nothing is left.
    fn end(mut self) -> Counts {
        let seed = self.seed;
        self.trouble = StoreTrouble::default();
        self.store.set_trouble(self.trouble);
        self.clock.advance(KEPT);
        self.store.deliver_late();
        for place in 0..self.databases.len() {
            self.databases[place].fenced.clear();
            self.databases[place].writer = None;
            let prefix = self.databases[place].prefix.clone();
            let process = self.process(&prefix);
            let db = open(&process.machine, false).unwrap_or_else(|error| panic!("seed {seed}, {prefix}: {error}"));
            self.compare(place, &db, "at the end");
            db.compact().unwrap_or_else(|error| panic!("seed {seed}, {prefix}: {error}"));
            let report = db.check(|_| {}).unwrap_or_else(|error| panic!("seed {seed}, {prefix}: {error}"));
            assert!(report.problems.is_empty(), "seed {seed}, {prefix}: {:?}", report.problems);
        }
        // By now, branches that were begun and never finished count as given up.
        self.clock.advance(MADE_WITHIN);
        for place in 0..self.databases.len() {
            let prefix = self.databases[place].prefix.clone();
            let before = self.ssts_of(&prefix);
            let process = self.process(&prefix);
            let db = open(&process.machine, false).unwrap_or_else(|error| panic!("seed {seed}, {prefix}: {error}"));
            self.compare(place, &db, "opened again");
            let files: Vec<String> = db.sst_files().into_iter().map(|(name, _)| name).collect();
            drop(db);
            let after = self.ssts_of(&prefix);
            self.counts.files_removed_late += (before.len() - after.len()) as u64;
            let (store, outside, ..) = self.calm_hand();
            let needing = branches(&store, &outside, &prefix).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let needed: u64 = needing.iter().filter_map(|branch| branch.files).map(|(files, _)| files).sum();
            let useless = after.iter().filter(|name| !files.contains(name)).count() as u64;
            assert!(useless <= needed, "seed {seed}, {prefix}: {after:?}, and {needing:?} beside {files:?}");
        }
        // Drops the databases in random order. Dropping one that a branch still needs is refused, and tried again
        // later.
        let mut left = std::mem::take(&mut self.prefixes);
        for _ in 0..left.len() + 1 {
            left.retain(|prefix| {
                let (store, outside, ..) = self.calm_hand();
                match drop_database(&store, &outside, prefix) {
                    Ok(_) => false,
                    Err(error) if error.kind() == ErrorKind::NotFound => false,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty, "seed {seed}, {prefix}: {error}");
                        true
                    }
                }
            });
        }
        assert!(left.is_empty(), "seed {seed}: {left:?} cannot be dropped");
        let names = self.store.names();
        assert!(names.iter().all(|name| name.contains("journal/")), "seed {seed}: {names:?}");
        self.counts
    }

    fn calm_hand(&mut self) -> (Arc<dyn Store>, Outside) {
        let (outside, client) = self.outside();
        (Arc::new(FolderStore::new(client, "")), outside)
    }

    /// The names of the SSTs below a prefix.
    fn ssts_of(&self, prefix: &str) -> Vec<String> {
        let folder = format!("{prefix}/sst/");
        self.store.names().iter().filter_map(|name| name.strip_prefix(&folder)).map(str::to_owned).collect()
    }
}

fn open(machine: &Machine, read_only: bool) -> larch::Result<Database> {
    small(machine, DIRECTORY).read_only(read_only).open()
}

fn write(db: &Database, key: u64, number: Option<u64>, bytes: usize) -> larch::Result<()> {
    let table = db.table("t")?;
    let mut batch = db.batch().durability(Durability::Synced);
    match number {
        Some(number) => {
            batch.insert(&table, key.to_be_bytes(), [&number.to_be_bytes()[..], &vec![number as u8; bytes]].concat())
        }
        None => batch.remove(&table, key.to_be_bytes()),
    }
    batch.commit().map(drop)
}

fn rows(db: &Database) -> larch::Result<Rows> {
    let Some(table) = db.existing_table("t")? else { return Ok(Rows::new()) };
    let mut rows = Rows::new();
    for row in table.range(..) {
        let (key, value) = row?;
        let (number, rest) = value.split_first_chunk().expect("a value begins with its number");
        let number = u64::from_be_bytes(*number);
        assert!(rest.iter().all(|byte| *byte == number as u8), "the value of {number}");
        rows.insert(u64::from_be_bytes(key.as_ref().try_into().expect("keys have 8 bytes")), number);
    }
    Ok(rows)
}

fn said<T, E: std::fmt::Display>(outcome: &Result<T, E>) -> String {
    outcome.as_ref().map_or_else(|error| format!("{error:.120}"), |_| "done".to_owned())
}

fn history(seed: u64, tells: bool) -> Counts {
    let mut world = World { tells, ..World::new(seed) };
    for _ in 0..world.rng.random_range(20..150) {
        world.step();
    }
    world.end()
}

/// `BRANCH_SEED=17` runs one seed again, and `BRANCH_SEEDS=5000` runs the first 5,000 seeds.
#[test]
fn branches_keep_what_they_need_and_nothing_else_whatever_happens_in_between() {
    if let Some(seed) = number_of("BRANCH_SEED") {
        println!("{:?}", history(seed, true));
        return;
    }
    let seeds = number_of("BRANCH_SEEDS").unwrap_or(200);
    let mut all = Counts::default();
    for seed in 0..seeds {
        let Counts { branches, branches_cut, drops, refusals, opens, commits, files_removed_late } =
            history(seed, false);
        all.branches += branches;
        all.branches_cut += branches_cut;
        all.drops += drops;
        all.refusals += refusals;
        all.opens += opens;
        all.commits += commits;
        all.files_removed_late += files_removed_late;
    }
    println!("{seeds} seeds: {all:?}");
    assert!(all.branches > seeds && all.branches_cut > seeds / 4 && all.drops > seeds / 4, "{all:?}");
    assert!(all.refusals > seeds / 10 && all.opens > 2 * seeds && all.commits > 5 * seeds, "{all:?}");
}
