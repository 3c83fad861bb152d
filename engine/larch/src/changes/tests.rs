//! Tests the feed against a model that keeps every commit, and at the moments at which it could lose or repeat one.

#![allow(clippy::disallowed_methods, reason = "a thread that waits for another one is what is tested")]

use super::*;
use crate::base::error::Error;
use crate::past::Retention;
use crate::{Builder, Database, Durability, Follow, Table};
use os::Machine;
use os::sim::SimDisk;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn on(disk: &Arc<SimDisk>, seed: u64) -> Builder {
    Database::builder("db").machine(Machine::simulated_on(disk.clone(), seed)).write_buffer_bytes(64 << 10)
}

fn new_disk() -> Arc<SimDisk> {
    Machine::simulated(1).1
}

/// What a commit wrote: the rows after it, and the puts in it.
#[derive(Clone, Debug, Default)]
struct Written {
    rows: Rows,
    puts: Rows,
}

/// A database with a model of all its commits.
struct Model {
    disk: Arc<SimDisk>,
    seed: u64,
    db: Option<Database>,
    random: StdRng,
    commits: BTreeMap<Version, Written>,
    names: Vec<String>,
}

/// Checks that both are equal, and names the rows that are not.
fn check_same(found: &Rows, expected: &Rows, about: &str) {
    let differ = |(at, _): &(&(String, Vec<u8>), &Vec<u8>)| found.get(*at) != expected.get(*at);
    let names: Vec<String> = found
        .iter()
        .chain(expected)
        .filter(differ)
        .map(|((table, key), _)| {
            let at = (table.clone(), key.clone());
            let value = |rows: &Rows| rows.get(&at).map(|value| (value.len(), value.first().copied()));
            format!("{table} {} {:?} {:?}", key.escape_ascii(), value(found), value(expected))
        })
        .collect();
    assert!(names.is_empty(), "{about}: {names:?}");
}

impl Model {
    fn new(seed: u64) -> Self {
        let (disk, random) = (new_disk(), StdRng::seed_from_u64(seed));
        let db = Some(on(&disk, seed).open().expect("the disk works"));
        let names = vec!["a".to_owned(), "b".to_owned()];
        let mut model = Self { disk, seed, db, random, commits: BTreeMap::new(), names };
        model.db().retain(Retention::Everything).expect("the disk works");
        model.note(Rows::new(), |_| {});
        model
    }

    fn db(&self) -> &Database {
        self.db.as_ref().expect("it is open between two steps")
    }

    fn table(&self, name: &str) -> Table {
        self.db().table(name).expect("the disk works")
    }

    fn any_name(&mut self) -> String {
        let at = self.random.random_range(0..self.names.len());
        self.names[at].clone()
    }

    fn any_key(&mut self) -> Vec<u8> {
        format!("{:03}", self.random.random_range(0..200)).into_bytes()
    }

    /// Notes what the newest version shows.
    fn note(&mut self, puts: Rows, change: impl FnOnce(&mut Rows)) {
        let mut rows = self.commits.last_key_value().map_or_else(Rows::new, |(_, written)| written.rows.clone());
        change(&mut rows);
        // A batch without operations makes no version.
        self.commits.entry(self.db().version()).or_insert(Written { rows, puts });
    }

    fn step(&mut self, may_crash: bool) {
        let name = self.any_name();
        // Tables have versions of their own.
        let table = self.table(&name);
        match self.random.random_range(0..100) {
            0..60 => {
                let mut batch = self.db().batch();
                let (mut puts, mut rows) = (Rows::new(), self.commits.last_key_value().expect("noted").1.rows.clone());
                for _ in 0..self.random.random_range(1..5) {
                    let (name, key) = (self.any_name(), self.any_key());
                    let table = self.table(&name);
                    let here = (name.clone(), key.clone());
                    match self.random.random_range(0..10) {
                        0..7 => {
                            let value = vec![self.random.random(); self.random.random_range(0..90)];
                            batch.insert(&table, &key, &value);
                            puts.insert(here.clone(), value.clone());
                            rows.insert(here, value);
                        }
                        7..9 => {
                            batch.remove(&table, &key);
                            puts.remove(&here);
                            rows.remove(&here);
                        }
                        _ => {
                            let end = self.any_key();
                            batch.remove_range(&table, key.clone()..end.clone());
                            let is_erased =
                                |(at, found): &(String, Vec<u8>)| *at == name && key <= *found && *found < end;
                            puts.retain(|at, _| !is_erased(at));
                            rows.retain(|at, _| !is_erased(at));
                        }
                    }
                }
                batch.commit().expect("the disk works");
                self.note(puts, |all| *all = rows);
            }
            60..64 => {
                let mut import = table.import().expect("the disk works");
                let mut puts = Rows::new();
                for number in 0..self.random.random_range(1..60) {
                    let (key, value) = (format!("{number:03}").into_bytes(), b"imported".repeat(number % 9));
                    import.add(&key, &value).expect("the disk works");
                    puts.insert((name.clone(), key), value);
                }
                import.finish(|_| ()).expect("the disk works");
                self.note(puts.clone(), |all| all.extend(puts));
            }
            64..66 => {
                let name = format!("table {}", self.names.len());
                self.table(&name);
                self.names.push(name);
            }
            66..76 => self.db().flush().expect("the disk works"),
            76..82 => self.db().compact().expect("the disk works"),
            82..88 => self.db().compact_due().expect("the disk works"),
            88..92 if may_crash => {
                drop(table);
                self.db = None;
                self.disk.crash();
                self.seed += 1000;
                self.db = Some(on(&self.disk, self.seed).open().expect("the disk works"));
            }
            _ => {}
        }
    }

    /// Checks what `feed` gives, from the rows that it had before. Returns the rows after it.
    fn follow(&self, feed: &mut Changes, mut rows: Rows, is_wanted: impl Fn(&str, &[u8]) -> bool) -> Rows {
        let wanted = |all: &Rows| -> Rows {
            let wanted = all.iter().filter(|((table, key), _)| is_wanted(table, key));
            wanted.map(|(at, value)| (at.clone(), value.clone())).collect()
        };
        let mut expected = feed.position();
        let check_to = |rows: &Rows, from: Version, to: Version| {
            for (version, written) in
                self.commits.range((std::ops::Bound::Excluded(from), std::ops::Bound::Included(to)))
            {
                check_same(rows, &wanted(&written.rows), &format!("seed {}: after version {}", self.seed, version.0));
                assert!(wanted(&written.puts).is_empty(), "seed {}: version {} is missing", self.seed, version.0);
            }
        };
        let mut last = None;
        let mut puts = Rows::new();
        while let Some(change) = feed.next_change().expect("the disk works") {
            let version = change.version();
            if last.is_none() {
                check_to(&rows, expected, Version(version.0 - 1));
            }
            assert!(version > expected && last.is_none_or(|last| last == version), "seed {}: {change:?}", self.seed);
            last = Some(version);
            match change.kind() {
                ChangeKind::Put { key, value, .. } => {
                    assert!(is_wanted(change.table(), key), "seed {}: {change:?}", self.seed);
                    let at = (change.table().to_owned(), key.to_vec());
                    assert_eq!(puts.insert(at.clone(), value.whole().to_vec()), None, "seed {}: twice", self.seed);
                    rows.insert(at, value.whole().to_vec());
                }
                ChangeKind::Merge { .. } | ChangeKind::Failed { .. } => unreachable!("the model merges nothing"),
                ChangeKind::Erase { key } => {
                    assert!(is_wanted(change.table(), key), "seed {}: {change:?}", self.seed);
                    rows.remove(&(change.table().to_owned(), key.to_vec()));
                }
                ChangeKind::EraseRange { start, end } => {
                    let is_erased = |key: &[u8]| start <= key && end.is_none_or(|end| key < end);
                    assert!(puts.is_empty() || puts.keys().all(|(table, _)| table != change.table()));
                    rows.retain(|(table, key), _| table != change.table() || !is_erased(key));
                }
            }
            if change.is_last() {
                let written = &self.commits[&version];
                check_same(&rows, &wanted(&written.rows), &format!("seed {}: version {}", self.seed, version.0));
                check_same(&puts, &wanted(&written.puts), &format!("seed {}: puts of {}", self.seed, version.0));
                assert_eq!(feed.position(), version);
                (expected, last) = (version, None);
                puts.clear();
            }
        }
        assert_eq!(last, None, "seed {}: the commit {expected:?} has no last change", self.seed);
        check_to(&rows, expected, feed.position());
        assert_eq!(feed.position(), self.db().version(), "seed {}", self.seed);
        rows
    }
}

fn run(seed: u64, steps: u32) {
    let mut model = Model::new(seed);
    let (mut position, mut rows, mut live) = (Version(0), Rows::new(), None);
    for _ in 0..steps {
        // A feed holds its database open.
        model.step(live.is_none());
        if model.random.random_bool(0.3) {
            // A feed goes on while its database is open, and begins where it was afterwards.
            let mut feed: Changes = match live.take() {
                Some((feed, seed)) if seed == model.seed => feed,
                _ => model.db().changes(position).expect("there is such a version"),
            };
            rows = model.follow(&mut feed, rows, |_, _| true);
            position = feed.position();
            if model.random.random_bool(0.7) {
                live = Some((feed, model.seed));
            }
        }
        if live.as_ref().is_some_and(|_| model.random.random_bool(0.2)) {
            live = None;
        }
        if model.random.random_bool(0.1) {
            let at = model.random.random_range(0..model.commits.len());
            let (after, written) =
                model.commits.iter().nth(at).map(|(after, written)| (*after, written.clone())).expect("it is one");
            let mut feed = model.db().changes(after).expect("there is such a version");
            model.follow(&mut feed, written.rows.clone(), |_, _| true);
            let (low, high) = (b"050".as_slice(), b"120".as_slice());
            let is_wanted = |table: &str, key: &[u8]| table == "a" && low <= key && key < high;
            let feed = model.db().changes(after).expect("there is such a version");
            let mut feed = feed.of(&model.table("a")).expect("it is of the database").within(low..high);
            let had = written.rows.into_iter().filter(|((table, key), _)| is_wanted(table, key)).collect();
            model.follow(&mut feed, had, is_wanted);
        }
    }
}

#[test]
fn a_feed_gives_every_commit_whole_and_once() {
    for seed in 0..40 {
        run(seed, 150);
    }
}

#[test]
fn a_feed_gives_what_is_durable_and_makes_it_so_when_it_waits() {
    let disk = new_disk();
    let db = on(&disk, 1).durability(Durability::Buffered).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut feed = db.changes(db.version()).expect("there is such a version");
    table.insert("a", "1").expect("it is taken");
    assert!(
        feed.next_change().expect("the disk works").is_none(),
        "a crash could still give its version to another commit"
    );
    assert!(feed.wait(Duration::from_secs(60)).expect("the disk works"));
    assert_eq!(feed.next_commit().expect("the disk works").len(), 1);
    assert_eq!(feed.position(), db.version());
    assert!(!feed.wait(Duration::ZERO).expect("the disk works"));
}

#[test]
fn without_a_past_a_feed_lives_as_long_as_logs_do_and_says_when_commits_are_gone() {
    let disk = new_disk();
    let db = on(&disk, 1).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let begin = db.version();
    let mut feed = db.changes(begin).expect("there is such a version");
    for value in ["1", "2", "3"] {
        table.insert("a", value).expect("it is taken");
    }
    assert_eq!(feed.next_commit().expect("the disk works").len(), 1);
    db.flush().expect("the disk works");
    // The log that the feed reads was removed, but the feed still has it.
    table.insert("a", "4").expect("it is taken");
    for value in ["2", "3", "4"] {
        let commit = feed.next_commit().expect("the disk works");
        assert!(matches!(commit[0].kind(), ChangeKind::Put { value: found, .. } if found.whole() == value.as_bytes()));
    }
    assert!(feed.next_commit().expect("the disk works").is_empty());
    let mut late = db.changes(begin).expect("there is such a version");
    let error = late.next_change().expect_err("they were merged away");
    assert!(matches!(error, Error::ChangesGone { after, oldest: None } if after == begin), "{error}");
    db.retain(Retention::Versions(100)).expect("the disk works");
    let error = late.next_change().expect_err("they are still gone");
    assert!(matches!(error, Error::ChangesGone { oldest: Some(_), .. }), "{error}");
    let future = db.changes(Version(db.version().0 + 1)).expect_err("there is none yet");
    assert!(matches!(future, Error::NotKept { .. }));
}

#[test]
fn a_follower_gives_the_commits_of_its_writer() {
    for follow in [Follow::Commits, Follow::Files] {
        let disk = new_disk();
        let db = on(&disk, 1).open().expect("the disk works");
        db.retain(Retention::Everything).expect("the disk works");
        let table = db.table("t").expect("the disk works");
        let follower = on(&disk, 2).read_only(true).follow(follow).open().expect("the disk works");
        let mut feed = follower.changes(Version(0)).expect("there is such a version");
        let mut given = 0;
        for number in 0..300 {
            table.insert(format!("{:02}", number % 40), number.to_string()).expect("it is taken");
            if number % 37 == 0 {
                db.flush().expect("the disk works");
            }
            if number % 50 == 0 {
                db.compact().expect("the disk works");
            }
            if number % 7 == 0 || number == 299 {
                follower.catch_up().expect("the disk works");
                while let [change] = &*feed.next_commit().expect("the disk works") {
                    let ChangeKind::Put { value, .. } = change.kind() else { panic!("{change:?}") };
                    assert_eq!(value.whole(), given.to_string().as_bytes(), "{follow:?}");
                    given += 1;
                }
            }
        }
        db.flush().expect("the disk works");
        follower.catch_up().expect("the disk works");
        while let [_] = &*feed.next_commit().expect("the disk works") {
            given += 1;
        }
        assert_eq!(given, 300, "{follow:?}");
    }
}

#[test]
fn a_commit_larger_than_a_window_comes_in_order_and_ends_once() {
    let disk = new_disk();
    let db = on(&disk, 1).open().expect("the disk works");
    db.retain(Retention::Everything).expect("the disk works");
    let tables = ["t", "u"].map(|name| db.table(name).expect("the disk works"));
    let mut batch = db.batch();
    for number in 0..2000 {
        batch.insert(&tables[number % 2], format!("{number:05}"), "some value");
    }
    batch.remove_range(&tables[0], "00010".."00020");
    let version = batch.commit().expect("the disk works");
    tables[0].insert("after", "it").expect("it is taken");
    for _ in 0..2 {
        let mut feed = db.changes(Version(0)).expect("there is such a version");
        let commit = feed.next_commit().expect("the disk works");
        assert_eq!(commit.iter().filter(|change| matches!(change.kind(), ChangeKind::Put { .. })).count(), 1995);
        assert!(commit.is_sorted_by(|a, b| a.order() < b.order()));
        assert!(commit.iter().all(|change| change.version() == version));
        assert_eq!(feed.next_commit().expect("the disk works").len(), 1);
        // The second time it comes from files.
        db.compact().expect("the disk works");
    }
}

#[test]
fn a_wait_for_a_version_ends_when_another_thread_commits_it_or_in_time() {
    let db = Database::in_memory().expect("there is memory");
    let table = db.table("t").expect("there is memory");
    let next = Version(db.version().0 + 1);
    assert!(!db.wait_for(next, Duration::from_millis(1)).expect("it is open"));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| db.wait_for(next, Duration::from_secs(600)));
        table.insert("a", "1").expect("it is taken");
        assert!(waiter.join().expect("no panic").expect("it is open"));
    });
    assert!(db.wait_for(next, Duration::ZERO).expect("it is open"));
}

#[test]
fn the_history_of_a_row_has_what_kept_versions_show() {
    let disk = new_disk();
    let db = on(&disk, 1).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let values = |table: &Table| -> Vec<(u64, Option<String>)> {
        let past = table.history("a").expect("the disk works").into_iter();
        past.map(|past| (past.version.0, past.value().map(|value| String::from_utf8_lossy(value).into_owned())))
            .collect()
    };
    let some = |version, value: &str| (version, Some(value.to_owned()));
    for value in ["1", "2", "3"] {
        table.insert("a", value).expect("it is taken");
        if value == "2" {
            db.keep("two").expect("the disk works");
        }
    }
    for _ in 0..2 {
        assert_eq!(values(&table), [some(3, "3"), some(2, "2")], "in memory and in files alike");
        db.compact().expect("the disk works");
    }
    db.retain(Retention::Everything).expect("the disk works");
    table.insert("a", "4").expect("it is taken");
    table.remove_range(..).expect("it is taken");
    let mut batch = db.batch();
    batch.remove_range(&table, ..);
    batch.insert(&table, "a", "6");
    batch.commit().expect("the disk works");
    for _ in 0..2 {
        assert_eq!(values(&table), [some(6, "6"), (5, None), some(4, "4"), some(3, "3"), some(2, "2")]);
        db.compact().expect("the disk works");
    }
    assert!(table.history("b").expect("the disk works").is_empty());
}

#[test]
fn a_feed_gives_the_commits_of_a_table_that_it_saw_before_it_was_renamed_or_dropped() {
    let disk = new_disk();
    let db = on(&disk, 1).open().expect("the disk works");
    let [a, b] = ["a", "b"].map(|name| db.table(name).expect("the disk works"));
    let mut feed = db.changes(db.version()).expect("there is such a version");
    let mut batch = db.batch();
    batch.insert(&a, "1", "");
    batch.insert(&b, "1", "");
    batch.commit().expect("the disk works");
    assert_eq!(feed.next_commit().expect("the disk works").len(), 2);
    let mut batch = db.batch();
    batch.insert(&a, "2", "");
    batch.insert(&b, "2", "");
    batch.commit().expect("the disk works");
    let (first, second) = (a.number(), b.number());
    drop((a, b));
    db.rename_table("a", "c").expect("the disk works");
    db.drop_table("b").expect("the disk works");
    let commit = feed.next_commit().expect("the log is still open");
    let tables: Vec<(u32, &str)> = commit.iter().map(|change| (change.table_number(), change.table())).collect();
    assert_eq!(tables, [(first, "a"), (second, "b")]);
}

#[test]
fn work_on_indexes_between_two_commits_needs_no_past() {
    let disk = new_disk();
    let db = on(&disk, 1).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut feed = db.changes(db.version()).expect("there is such a version");
    for number in 0..20 {
        table.insert(number.to_string(), "value").expect("it is taken");
        assert_eq!(feed.next_commit().expect("nothing is gone").len(), 1);
        let index = table.index_by("by", |_, value, emit| emit(value)).expect("the disk works");
        assert_eq!(index.get_by("value").expect("the disk works").len(), 1);
        table.insert(number.to_string(), "other").expect("it is taken");
        assert_eq!(feed.next_commit().expect("nothing is gone").len(), 1, "entries of an index are no changes");
        table.drop_index("by").expect("the disk works");
    }
}
