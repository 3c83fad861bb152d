//! Tests that an explained read does the same as a plain read: it moves the counters of the cache in the same way,
//! and the explanation agrees with them.

use super::*;
use crate::base::options::{LevelOptions, TableOptions};
use crate::options::PageIndexKind;
use crate::rows::AtMost;
use crate::{Database, Selection, Snapshot, Table};
use os::Machine;
use pages::counters;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const GROUPS: [&str; 3] = ["hot", "warm", "cold"];

fn open(cache_bytes: u64) -> Database {
    let (machine, _) = Machine::simulated(1);
    // Nothing is compacted unless the test asks for it.
    let levels = LevelOptions { level0_files: 100, slow_files: 100, file_bytes: 16 << 10, ..LevelOptions::default() };
    Database::builder("db").machine(machine).levels(levels).cache_bytes(cache_bytes).open().expect("the disk works")
}

fn table(db: &Database, index: PageIndexKind) -> Table {
    let groups = GROUPS.map(str::to_owned).to_vec();
    let options = TableOptions { page_bytes: 512, node_bytes: 512, groups, index, ..TableOptions::default() };
    db.table_with("t", options).expect("the disk works")
}

/// Writes or removes a random row. Some parts are long enough to be stored outside of data pages.
fn write(rng: &mut StdRng, table: &Table) {
    let key = format!("{:04}", 100 + rng.random_range(0..300));
    if rng.random_range(0..8) == 0 {
        return table.remove(key).expect("the disk works");
    }
    let mut part = || vec![b'v'; [0, 5, 60, 3000][rng.random_range(0..4)]];
    table.insert_parts(key, &[part(), part(), part()]).expect("the disk works");
}

/// Fills a table with deep files, some files in level 0, older versions that snapshots see, rows in memory, and, if
/// `range_erases` is true, range erases.
fn fill(seed: u64, db: &Database, table: &Table, range_erases: bool) -> Vec<Snapshot> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut snapshots = Vec::new();
    for (writes, compacts) in [(300, false), (200, true), (60, false), (60, false)] {
        for i in 0..writes {
            write(&mut rng, table);
            if i % 50 == 25 {
                snapshots.push(db.snapshot());
            }
        }
        if range_erases {
            let start = rng.random_range(100..400);
            table.remove_range(format!("{start:04}")..format!("{:04}", start + 10)).expect("the disk works");
        }
        if compacts { table.compact() } else { db.flush() }.expect("the disk works");
    }
    (0..20).for_each(|_| write(&mut rng, table));
    snapshots
}

/// A read that the tests do, plain and explained, in two equal databases.
#[derive(Debug)]
enum Question {
    Get(String),
    Scan { keys: std::ops::Range<String>, limit: Option<u64>, direction: Direction },
}

fn question(rng: &mut StdRng) -> Question {
    let mut key = || format!("{:04}", 80 + rng.random_range(0..340));
    let (a, b) = (key(), key());
    if rng.random_range(0..3) > 0 {
        return Question::Get(a);
    }
    Question::Scan {
        keys: a.clone().min(b.clone())..a.max(b),
        limit: [None, Some(1), Some(7), Some(100)][rng.random_range(0..4)],
        direction: [Direction::Forward, Direction::Backward][rng.random_range(0..2)],
    }
}

/// Does the read. Returns the number of rows and the sum of their bytes.
fn read(selection: &Selection, question: &Question) -> (u64, u64) {
    let bytes = |parts: &[crate::Value]| parts.iter().map(|part| part.len() as u64).sum::<u64>();
    match question {
        Question::Get(key) => match selection.get(key).expect("the disk works") {
            Some(parts) => (1, bytes(&parts)),
            None => (0, 0),
        },
        Question::Scan { keys, limit, direction } => {
            let mut range = selection.range(keys.clone()).limit(limit.unwrap_or(u64::MAX));
            let mut sum = (0, 0);
            loop {
                let row = match direction {
                    Direction::Forward => range.next_row(),
                    Direction::Backward => range.next_row_back(),
                };
                let Some(row) = row.expect("the disk works") else { return sum };
                sum = (sum.0 + 1, sum.1 + bytes(&row.parts().expect("the disk works")));
            }
        }
    }
}

fn explain(selection: &Selection, question: &Question) -> Explanation {
    let explained = match question {
        Question::Get(key) => selection.explain_get(key),
        Question::Scan { keys, limit, direction } => selection.explain_scan(keys.clone(), *limit, *direction),
    };
    explained.expect("the disk works")
}

fn counted(db: &Database, read: impl FnOnce()) -> counters::CounterSnapshot {
    let before = db.metrics().pages;
    read();
    db.metrics().pages.since(&before)
}

/// Adds up the pages of one kind in all files: how many were found in memory, how many were read, and how many
/// bytes were read.
fn explained(explanation: &Explanation, kind: PageKind) -> (u64, u64, u64) {
    let of_kind = explanation.pages().filter(|pages| pages.kind == kind);
    of_kind.fold((0, 0, 0), |sum, pages| {
        (sum.0 + pages.hits, sum.1 + pages.faults + pages.ahead, sum.2 + pages.read_bytes)
    })
}

/// Asks two equal databases the same questions, the first by plain reads, the second by explained ones.
#[track_caller]
fn check(seed: u64, cache_bytes: u64, index: PageIndexKind, range_erases: bool) {
    println!("seed {seed}, cache of {cache_bytes} bytes, {index:?}, range erases: {range_erases}");
    let dbs = [open(cache_bytes), open(cache_bytes)];
    let tables = [&dbs[0], &dbs[1]].map(|db| table(db, index));
    let snapshots = [0, 1].map(|i| fill(seed, &dbs[i], &tables[i], range_erases));
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut without_waiting, mut waited) = (0, 0);
    for _ in 0..300 {
        let groups = [&GROUPS[..0], &GROUPS[..1], &GROUPS[1..], &GROUPS[..]][rng.random_range(0..4)];
        let snapshot = rng.random_range(0..2 * snapshots[0].len());
        let selections = [0, 1].map(|i| {
            let now = tables[i].select(groups).expect("the table has them");
            snapshots[i].get(snapshot).map_or(now.clone(), |snapshot| now.at(snapshot).expect("it is its own"))
        });
        let question = question(&mut rng);
        let (mut answer, mut explanation) = (None, None);
        let by_read = counted(&dbs[0], || answer = Some(read(&selections[0], &question)));
        let by_explain = counted(&dbs[1], || explanation = Some(explain(&selections[1], &question)));
        assert_eq!(by_read, by_explain, "{question:?} of {groups:?}");

        let explanation = explanation.expect("it was explained");
        let rows = match explanation.answer {
            Explained::Found { value_bytes } => (1, value_bytes),
            Explained::Absent | Explained::Erased => (0, 0),
            Explained::Rows { rows, value_bytes } => (rows, value_bytes),
        };
        assert_eq!(Some(rows), answer);
        assert_eq!(explanation.rounds, by_explain.all_rounds());
        for kind in PageKind::ALL {
            let (hits, reads, read_bytes) = explained(&explanation, kind);
            let counted = by_explain.of_kind(kind);
            assert_eq!((reads, read_bytes), (counted.faults, counted.read_bytes), "{question:?} {}", kind.name());
            if explanation.rounds == 0 && !range_erases && matches!(question, Question::Get(_)) {
                assert_eq!(hits, counted.hits, "{question:?} {}", kind.name());
            }
        }
        let given = explanation.visits.len() as u64 + explanation.visits_left_out;
        assert!(given >= explanation.page_hits() && explanation.visits.is_sorted_by_key(|visit| visit.round));
        for level in &explanation.levels {
            let here = explanation.files.iter().filter(|file| file.level == Some(level.level)).count() as u64;
            assert_eq!(level.visited, here);
            assert_eq!(level.files, level.visited + level.outside_bounds + level.not_reached);
        }
        *if explanation.rounds == 0 { &mut without_waiting } else { &mut waited } += 1;
    }
    assert!(without_waiting > 0 && waited > 0, "{without_waiting} {waited}");
}

#[test]
fn an_explained_read_costs_what_the_read_costs_and_says_so() {
    for seed in 0..3 {
        for cache_bytes in [64 << 20, 40 * 4400, 3 * 4400] {
            check(seed, cache_bytes, PageIndexKind::Btree, seed % 2 == 1);
        }
        check(seed, 64 << 20, PageIndexKind::Flat, false);
        check(seed, 8 * 4400, PageIndexKind::Both, true);
    }
}

/// A table of whole values with one file, in its deepest level, which has the even keys from 0100 to 0298.
fn evens(db: &Database) -> Table {
    let table = db.table("t").expect("the disk works");
    (100..300).step_by(2).for_each(|i| table.insert(format!("{i:04}"), "even").expect("the disk works"));
    table.compact().expect("the disk works");
    table
}

fn levels(explanation: &Explanation) -> Vec<[u64; 4]> {
    let levels = explanation.levels.iter();
    levels.map(|level| [level.level as u64, level.visited, level.outside_bounds, level.not_reached]).collect()
}

#[test]
fn a_get_that_memory_answers_visits_no_file() {
    let db = open(64 << 20);
    let table = evens(&db);
    table.insert("0110", "seven").expect("the disk works");
    table.remove("0112").expect("the disk works");
    let found = table.explain_get("0110").expect("the disk works");
    assert_eq!(found.answer, Explained::Found { value_bytes: 5 });
    assert_eq!((found.memtables, found.memory_rows, found.rounds), (1, 1, 0));
    let erased = table.explain_get("0112").expect("the disk works");
    assert_eq!((erased.answer, erased.memtables, erased.memory_rows), (Explained::Erased, 1, 0));
    for explanation in [found, erased] {
        assert!(explanation.files.is_empty() && explanation.visits.is_empty());
        assert_eq!(levels(&explanation), [[6, 0, 0, 1]]);
        assert_eq!(explanation.version, db.snapshot().version());
    }
}

#[test]
fn a_key_outside_all_bounds_visits_no_file() {
    let db = open(64 << 20);
    let table = evens(&db);
    table.insert("0300", "").expect("the disk works");
    db.flush().expect("the disk works");
    for explanation in [
        table.explain_get("0099").expect("the disk works"),
        table.explain_scan("0000".."0099", None, Direction::Forward).expect("the disk works"),
    ] {
        assert_eq!(levels(&explanation), [[0, 0, 1, 0], [6, 0, 1, 0]]);
        assert!(explanation.files.is_empty() && explanation.page_reads() == 0 && explanation.rounds == 0);
    }
}

#[test]
fn files_say_what_their_visit_came_to() {
    let db = open(64 << 20);
    let table = evens(&db);
    let before = db.snapshot();
    for (first, last) in [("0100", "0200"), ("0120", "0140")] {
        table.insert(first, "new").expect("the disk works");
        table.remove(last).expect("the disk works");
        db.flush().expect("the disk works");
    }
    let verdicts = |explanation: &Explanation| -> Vec<(usize, Verdict)> {
        explanation.files.iter().map(|file| (file.level.expect("it is there"), file.verdict)).collect()
    };
    let explain = |key: &str| table.explain_get(key).expect("the disk works");
    let found = explain("0130");
    assert_eq!(verdicts(&found), [(0, Verdict::Nothing), (0, Verdict::Nothing), (6, Verdict::Row)]);
    assert_eq!(explain("0140").answer, Explained::Erased);
    assert_eq!(verdicts(&explain("0140")), [(0, Verdict::Erased)]);
    assert_eq!(levels(&explain("0140")), [[0, 1, 0, 1], [6, 0, 0, 1]]);
    assert_eq!(explain("0131").answer, Explained::Absent);
    assert_eq!(verdicts(&explain("0131")), [(0, Verdict::Nothing), (0, Verdict::Nothing), (6, Verdict::Nothing)]);
    let then = table.at(&before).expect("it is of this database").explain_get("0140").expect("the disk works");
    assert_eq!((then.answer, then.version), (Explained::Found { value_bytes: 4 }, before.version()));
    let scan = table
        .at(&before)
        .expect("it is of this database")
        .explain_scan(.."0104", Some(9), Direction::Backward)
        .expect("the disk works");
    assert_eq!(scan.answer, Explained::Rows { rows: 2, value_bytes: 8 });
    assert!(verdicts(&scan).iter().all(|(_, verdict)| *verdict == Verdict::Walked));

    let text = found.to_string();
    for part in
        ["found, 4 bytes of value, at version", "0 rows of the answer", "level 0  2 files, 2 visited", "the row"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_a_prefetch_brought_is_found_in_memory() {
    let db = open(64 << 20);
    let table = evens(&db);
    table.prefetch(.., AtMost::ALL).expect("the disk works");
    let explanation = table.explain_scan(.., None, Direction::Forward).expect("the disk works");
    assert_eq!((explanation.rounds, explanation.page_reads()), (0, 0));
    assert!(explanation.page_hits() > 0);
    assert_eq!(explanation.answer, Explained::Rows { rows: 100, value_bytes: 400 });
}

#[test]
fn a_table_of_groups_is_explained_through_a_selection() {
    let db = open(64 << 20);
    let table = table(&db, PageIndexKind::Btree);
    assert!(matches!(table.explain_get("k"), Err(crate::Error::Grouped { .. })));
    assert!(table.explain_scan(.., None, Direction::Forward).is_err());
    assert!(table.select(GROUPS).expect("it has them").explain_get("k").is_ok());
}

#[test]
fn a_filter_saves_a_file_when_none_of_its_data_pages_was_asked_for() {
    let some = Touched { hits: 1, ..Touched::default() };
    let none = Touched::default();
    for (filter, data, saved) in [(some, none, true), (some, some, false), (none, some, false), (none, none, false)] {
        let touched = |kind| match kind {
            PageKind::Filter => filter,
            PageKind::Data => data,
            _ => none,
        };
        assert_eq!(saved_by_filter(touched), saved);
    }
}
