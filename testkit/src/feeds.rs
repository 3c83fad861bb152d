//! Follows very many commits by feeds of changes, on a simulated machine that crashes, flushes, compacts and removes
//! logs all the time, and compares what they give with a plan: `cargo x feed`.
//!
//! What a commit writes follows from its version, the seed, and how often the database was opened. So the plan of ten
//! million commits takes no memory. Every commit puts at least one row, so a feed must give every version.
//!
//! * One feed reads from the first commit to the last. It goes on after each crash where it was.
//! * Others begin at a random version, with the rows that [`Database::at`] shows there.
//! * A subscription holds the past for all of them, lags, and is acknowledged now and then.

use larch::past::{Change, ChangeKind, Changes, Limits, Retention};
use larch::{Database, Durability, Readable, Table, Version};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const TABLES: [&str; 3] = ["a", "b", "c"];

/// How many keys a table has.
const KEYS: u16 = 200;

/// How many commits before the newest a feed can begin.
const LAG: u64 = 20_000;

/// The most commits that a feed from a random version reads.
const MOST_BESIDE: u64 = 3_000;

/// A key: the number of the table, and that of the row.
type Key = (usize, u16);

type Rows = BTreeMap<Key, Vec<u8>>;

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Commits that were made, also those that a crash took back.
    pub commits: u64,
    /// Commits that the first feed has given.
    pub followed: u64,
    /// Feeds from a random version, and the commits that they have given.
    pub beside: (u64, u64),
    /// Crashes, and commits that they took back.
    pub crashes: (u64, u64),
    /// Closes without a crash.
    pub closes: u64,
    /// Flushes that were asked for; others come by themselves.
    pub flushes: u64,
    /// Compactions that were asked for; others come by themselves.
    pub compactions: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commits, followed, beside, crashes, closes, flushes, compactions } = self;
        write!(
            f,
            "{commits} commits, {followed} followed, {} feeds from random versions gave {}, {} crashes took {} back, \
             {closes} closes, {flushes} flushes, {compactions} compactions",
            beside.0, beside.1, crashes.0, crashes.1
        )
    }
}

/// What a commit writes. No two of these have a key in common.
#[derive(Debug, Default)]
struct Planned {
    puts: Rows,
    erases: BTreeSet<Key>,
    range: Option<(usize, u16, u16)>,
    is_import: bool,
}

/// What all commits write.
struct Plan {
    seed: u64,
    /// The first version of each life of the database, in ascending order.
    lives: Vec<u64>,
}

impl Plan {
    fn commit(&self, version: u64) -> Planned {
        let life = self.lives.partition_point(|first| *first <= version) as u64;
        let mut random = StdRng::seed_from_u64(self.seed ^ version.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (life << 48));
        let value = |random: &mut StdRng| {
            let mut value = format!("{life}.{version}.").into_bytes();
            value.resize(value.len() + random.random_range(0..30), b'x');
            value
        };
        let mut planned = Planned { is_import: random.random_ratio(1, 500), ..Planned::default() };
        if planned.is_import {
            let table = random.random_range(0..TABLES.len());
            for key in (0..KEYS).step_by(random.random_range(3..30)) {
                planned.puts.insert((table, key), value(&mut random));
            }
            return planned;
        }
        if random.random_ratio(1, 20) {
            let from = random.random_range(0..KEYS - 10);
            planned.range = Some((random.random_range(0..TABLES.len()), from, from + random.random_range(1..10)));
        }
        // A range has less than ten keys, so a key outside of it is soon found.
        while planned.puts.is_empty() || random.random_bool(0.6) {
            let key = (random.random_range(0..TABLES.len()), random.random_range(0..KEYS));
            if planned.range.is_some_and(|range| covers(range, key)) || planned.erases.contains(&key) {
                continue;
            }
            if random.random_bool(0.7) {
                planned.puts.insert(key, value(&mut random));
            } else if !planned.puts.contains_key(&key) {
                planned.erases.insert(key);
            }
        }
        planned
    }
}

fn covers((table, from, to): (usize, u16, u16), key: Key) -> bool {
    key.0 == table && (from..to).contains(&key.1)
}

fn name_of(key: u16) -> String {
    format!("{key:03}")
}

fn key_of(change: &Change, bytes: &[u8]) -> Key {
    let table = TABLES.iter().position(|name| *name == change.table()).expect("it is one of the tables");
    let number = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
    (table, number.unwrap_or_else(|| panic!("{change:?}")))
}

/// Someone who applies the changes of a feed.
struct Reader {
    position: u64,
    expected: Rows,
    found: Rows,
}

impl Reader {
    /// Reads at most `most` commits, and checks each. Returns how many there were.
    fn follow(&mut self, plan: &Plan, changes: &mut Changes, most: u64) -> u64 {
        let what = |version: u64| format!("seed {}, version {version}", plan.seed);
        for count in 0..most {
            let commit = changes.next_commit().unwrap_or_else(|error| panic!("{}: {error}", what(self.position)));
            let Some(first) = commit.first() else { return count };
            let version = first.version().0;
            assert_eq!(version, self.position + 1, "{}: a commit is missing or is given again", what(version));
            self.position = version;
            assert_eq!(changes.position().0, version, "{}", what(version));
            let planned = plan.commit(version);
            self.check(&commit, &planned, &what(version));
        }
        most
    }

    fn check(&mut self, commit: &[Change], planned: &Planned, what: &str) {
        let mut puts = 0;
        for change in commit {
            match change.kind() {
                ChangeKind::Put { key, value, until: None } => {
                    let key = key_of(change, key);
                    assert_eq!(planned.puts.get(&key).map(Vec::as_slice), Some(value.whole()), "{what}: {change:?}");
                    self.found.insert(key, value.whole().to_vec());
                    puts += 1;
                }
                ChangeKind::Erase { key } => {
                    let key = key_of(change, key);
                    assert!(planned.erases.contains(&key), "{what}: {change:?}");
                    self.found.remove(&key);
                }
                ChangeKind::EraseRange { start, end: Some(end) } => {
                    let ((table, from), (_, to)) = (key_of(change, start), key_of(change, end));
                    let is_within = |range: (usize, u16, u16)| range.0 == table && range.1 <= from && to <= range.2;
                    assert!(planned.range.is_some_and(is_within), "{what}: {change:?}");
                    self.found.retain(|key, _| !covers((table, from, to), *key));
                }
                other => panic!("{what}: {other:?}"),
            }
        }
        assert_eq!(puts, planned.puts.len(), "{what}: a put is missing or is given twice");
        self.expected.extend(planned.puts.iter().map(|(key, value)| (*key, value.clone())));
        planned.erases.iter().for_each(|key| drop(self.expected.remove(key)));
        if let Some(range) = planned.range {
            self.expected.retain(|key, _| !covers(range, *key));
        }
        let ranged = planned.range.into_iter().flat_map(|(table, from, to)| (from..to).map(move |key| (table, key)));
        // An erase of a key without a value may be missing, but not one of a key with a value.
        for key in planned.puts.keys().chain(&planned.erases).copied().chain(ranged) {
            assert_eq!(self.found.get(&key), self.expected.get(&key), "{what}: {key:?} after it");
        }
    }
}

/// The database of a run.
struct Run {
    disk: Arc<SimDisk>,
    plan: Plan,
    random: StdRng,
    open: Option<(Database, Vec<Table>)>,
    counts: Counts,
}

impl Run {
    fn db(&self) -> &Database {
        &self.open.as_ref().expect("it is open between two steps").0
    }

    fn newest(&self) -> u64 {
        self.db().version().0
    }

    fn open(&mut self) {
        let machine = Machine::simulated_on(self.disk.clone(), self.random.random());
        let durability = if self.plan.seed.is_multiple_of(2) { Durability::Buffered } else { Durability::Synced };
        let builder = Database::builder("db").machine(machine).durability(durability).write_buffer_bytes(64 << 10);
        let db = builder.open().expect("the disk works");
        let tables = TABLES.iter().map(|name| db.table(name).expect("the disk works")).collect();
        self.open = Some((db, tables));
    }

    fn commit(&mut self) {
        let version = self.newest() + 1;
        let planned = self.plan.commit(version);
        let (db, tables) = self.open.as_ref().expect("it is open between two steps");
        if planned.is_import {
            let table = planned.puts.keys().next().expect("an import has rows").0;
            let mut import = tables[table].import().expect("the disk works");
            for ((_, key), value) in &planned.puts {
                import.add(name_of(*key).as_bytes(), value).expect("the disk works");
            }
            import.finish(|_| ()).expect("the disk works");
        } else {
            let mut batch = db.batch();
            for ((table, key), value) in &planned.puts {
                batch.insert(&tables[*table], name_of(*key), value);
            }
            planned.erases.iter().for_each(|(table, key)| batch.remove(&tables[*table], name_of(*key)));
            if let Some((table, from, to)) = planned.range {
                batch.remove_range(&tables[table], name_of(from)..name_of(to));
            }
            batch.commit().expect("the disk works");
        }
        assert_eq!(self.newest(), version, "seed {}", self.plan.seed);
        self.counts.commits += 1;
    }

    /// Closes the database, or has it crash, and opens it again.
    fn end_life(&mut self, crashes: bool, reader: &Reader) {
        let before = self.newest();
        if crashes {
            match self.random.random_bool(0.5) {
                true => self.disk.crash(),
                false => self.disk.crash_keeping_nothing(),
            }
            self.counts.crashes.0 += 1;
        } else {
            self.counts.closes += 1;
        }
        self.open = None;
        self.open();
        let newest = self.newest();
        assert!(newest >= reader.position, "seed {}: a feed has given {}", self.plan.seed, reader.position);
        self.counts.crashes.1 += before - newest;
        self.plan.lives.push(newest + 1);
    }

    fn beside(&mut self) {
        let (db, tables) = self.open.as_ref().expect("it is open between two steps");
        let from = db.subscription("slow").and_then(|slow| slow.position()).expect("it is there").0;
        let from = self.random.random_range(from..=self.newest());
        let then = db.at(Version(from)).unwrap_or_else(|error| panic!("seed {}: {error}", self.plan.seed));
        let mut rows = Rows::new();
        for (number, table) in tables.iter().enumerate() {
            for row in then.range(table, ..) {
                let (key, value) = row.expect("the disk works");
                let key = std::str::from_utf8(&key).expect("keys are numbers").parse().expect("keys are numbers");
                rows.insert((number, key), value.to_vec());
            }
        }
        let mut reader = Reader { position: from, expected: rows.clone(), found: rows };
        let mut changes = db.changes(Version(from)).expect("there is such a version");
        let count = reader.follow(&self.plan, &mut changes, MOST_BESIDE);
        self.counts.beside.0 += 1;
        self.counts.beside.1 += count;
    }
}

/// Makes `commits` commits, and follows them. Calls `progress` now and then.
///
/// # Panics
///
/// If a feed does not give what was committed. The message has the seed.
pub fn follow(seed: u64, commits: u64, mut progress: impl FnMut(&Counts)) -> Counts {
    let mut run = Run {
        disk: Machine::simulated(seed).1,
        plan: Plan { seed, lives: Vec::new() },
        random: StdRng::seed_from_u64(seed),
        open: None,
        counts: Counts::default(),
    };
    run.open();
    run.db().retain(Retention::Versions(1_000)).expect("the disk works");
    run.db().subscribe("slow", Limits::NONE).expect("the disk works");
    run.db().sync().expect("the disk works");
    run.plan.lives.push(run.newest() + 1);
    let mut reader = Reader { position: run.newest(), expected: Rows::new(), found: Rows::new() };
    let mut live: Option<Changes> = None;
    while run.counts.commits < commits {
        run.commit();
        match run.random.random_range(0..100_000) {
            0..20 => {
                run.db().flush().expect("the disk works");
                run.counts.flushes += 1;
            }
            20..25 => {
                run.db().compact().expect("the disk works");
                run.counts.compactions += 1;
            }
            25..40 => run.db().compact_due().expect("the disk works"),
            40..70 => {
                // A feed holds its database open.
                live = None;
                run.end_life(true, &reader);
            }
            70..80 => {
                live = None;
                run.end_life(false, &reader);
            }
            80..100 => run.beside(),
            100..120 => {
                let slow = run.db().subscription("slow").expect("it is there");
                let (from, newest) = (slow.position().expect("it is there").0, run.newest());
                // The first feed goes on after a crash, so the past must be held for it, too.
                let most = newest.saturating_sub(LAG).max(from).min(reader.position);
                if most > from {
                    let version = run.random.random_range(from..=most);
                    slow.acknowledge(Version(version)).expect("it is there");
                }
            }
            120..170 => run.db().sync().expect("the disk works"),
            170..500 => {
                let mut changes = match live.take() {
                    Some(changes) => changes,
                    None => run.db().changes(Version(reader.position)).expect("there is such a version"),
                };
                let most = run.random.random_range(1..10_000);
                run.counts.followed += reader.follow(&run.plan, &mut changes, most);
                live = run.random.random_bool(0.7).then_some(changes);
            }
            _ => {}
        }
        if run.counts.commits.is_multiple_of(100_000) {
            progress(&run.counts);
        }
    }
    run.db().sync().expect("the disk works");
    let mut changes = run.db().changes(Version(reader.position)).expect("there is such a version");
    run.counts.followed += reader.follow(&run.plan, &mut changes, u64::MAX);
    assert_eq!(reader.position, run.newest(), "seed {seed}: the last commits are missing");
    assert_eq!(reader.found, reader.expected, "seed {seed}");
    run.counts
}
