//! Tests that every read of merged rows sees what a model sees that keeps every commit, wherever the rows lie.

use crate::past::Retention;
use crate::rows::Tried;
use crate::{Builder, Database, Error, MergeOp, Readable, Snapshot, Table};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sst::Version;
use std::collections::BTreeMap;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn on(disk: &Arc<SimDisk>, seed: u64) -> Builder {
    let join = |_: &[u8], value: Option<&[u8]>, operand: &[u8]| Ok([value.unwrap_or(b"<"), operand].concat());
    Database::builder("db")
        .machine(Machine::simulated_on(disk.clone(), seed))
        .write_buffer_bytes(64 << 10)
        .cache_bytes(256 << 10)
        .merge_function("join", join)
}

fn apply(value: Option<&Vec<u8>>, op: &MergeOp<'_>) -> Vec<u8> {
    let mut value = value.cloned();
    match *op {
        MergeOp::Add(number) => {
            let before = value.map_or(0, |value| i64::from_le_bytes(value.try_into().expect("counters are apart")));
            before.wrapping_add(number).to_le_bytes().to_vec()
        }
        MergeOp::Append(bytes) => [value.unwrap_or_default().as_slice(), bytes].concat(),
        MergeOp::Max(bytes) => value.filter(|value| value.as_slice() > bytes).unwrap_or_else(|| bytes.to_vec()),
        MergeOp::Call { operand, .. } => [value.as_deref().unwrap_or(b"<"), operand].concat(),
        MergeOp::Or { at, bytes } => {
            let value = value.get_or_insert_default();
            value.resize(value.len().max(at as usize + bytes.len()), 0);
            value[at as usize..].iter_mut().zip(bytes).for_each(|(byte, bits)| *byte |= bits);
            std::mem::take(value)
        }
        MergeOp::Min(_) => unreachable!("it is not tried"),
    }
}

/// A database with a model of all its commits.
struct Model {
    disk: Arc<SimDisk>,
    seed: u64,
    db: Option<Database>,
    random: StdRng,
    rows: Rows,
    past: Vec<(Snapshot, Rows)>,
    retained: BTreeMap<Version, Rows>,
}

/// A write of the model.
enum Write {
    Put(Vec<u8>, Vec<u8>),
    Merge(Vec<u8>, MergeOp<'static>),
    Erase(Vec<u8>),
    EraseRange(Vec<u8>, Vec<u8>),
}

impl Model {
    fn new(seed: u64, retains: bool) -> Self {
        let disk = Machine::simulated(1).1;
        let db = on(&disk, seed).open().expect("the disk works");
        if retains {
            db.retain(Retention::Everything).expect("the disk works");
        }
        let random = StdRng::seed_from_u64(seed);
        let (rows, past, retained) = (Rows::new(), Vec::new(), BTreeMap::new());
        Self { disk, seed, db: Some(db), random, rows, past, retained }
    }

    fn db(&self) -> &Database {
        self.db.as_ref().expect("it is open between two steps")
    }

    fn table(&self) -> Table {
        self.db().table("t").expect("the disk works")
    }

    fn any_key(&mut self) -> Vec<u8> {
        format!("{:02}", self.random.random_range(0..60)).into_bytes()
    }

    /// A write. Each key has operators of its own, so that counters stay counters.
    fn any_write(&mut self) -> Write {
        const LONG: [u8; 5000] = [b'l'; 5000];
        let key = self.any_key();
        let is_counter = key[1].is_multiple_of(3);
        match self.random.random_range(0..20) {
            0..3 if is_counter => Write::Put(key, self.random.random::<i64>().to_le_bytes().to_vec()),
            0..3 => Write::Put(key, vec![self.random.random(); self.random.random_range(0..700)]),
            3 => Write::Erase(key),
            4 => Write::EraseRange(key, self.any_key()),
            _ if is_counter => Write::Merge(key, MergeOp::Add(self.random.random_range(-9..9))),
            5..14 => Write::Merge(key, MergeOp::Append(&LONG[..[1, 10, 100][self.random.random_range(0..3)]])),
            14 => Write::Merge(key, MergeOp::Append(&LONG)),
            15 => Write::Merge(key, MergeOp::Max(b"nnn")),
            16..18 => Write::Merge(key, MergeOp::set_bit(self.random.random_range(0..500))),
            _ => Write::Merge(key, MergeOp::Call { function: "join", operand: b"+1" }),
        }
    }

    fn note(rows: &mut Rows, write: &Write) {
        match write {
            Write::Put(key, value) => drop(rows.insert(key.clone(), value.clone())),
            Write::Merge(key, op) => {
                let value = apply(rows.get(key), op);
                rows.insert(key.clone(), value);
            }
            Write::Erase(key) => drop(rows.remove(key)),
            Write::EraseRange(start, end) => rows.retain(|key, _| !(start <= key && key < end)),
        }
    }

    fn commit(&mut self) {
        let (table, mut rows) = (self.table(), self.rows.clone());
        let writes: Vec<Write> = (0..self.random.random_range(1..6)).map(|_| self.any_write()).collect();
        writes.iter().for_each(|write| Self::note(&mut rows, write));
        match self.random.random_range(0..3) {
            0 => {
                let mut batch = self.db().batch();
                for write in &writes {
                    match write {
                        Write::Put(key, value) => batch.insert(&table, key, value),
                        Write::Merge(key, op) => batch.merge(&table, key, *op),
                        Write::Erase(key) => batch.remove(&table, key),
                        Write::EraseRange(start, end) => batch.remove_range(&table, start.clone()..end.clone()),
                    }
                }
                batch.commit().expect("the disk works");
            }
            1 => {
                let mut tx = self.db().begin().expect("the disk works");
                let (mut seen, mut saved) = (self.rows.clone(), None);
                for write in &writes {
                    match write {
                        Write::Put(key, value) => tx.insert(&table, key, value),
                        Write::Merge(key, op) => tx.merge(&table, key, *op),
                        Write::Erase(key) => tx.remove(&table, key),
                        Write::EraseRange(start, end) => tx.remove_range(&table, start.clone()..end.clone()),
                    }
                    .expect("the disk works");
                    Self::note(&mut seen, write);
                    match self.random.random_range(0..6) {
                        0 => saved = Some((tx.savepoint(), seen.clone())),
                        1 => {
                            if let Some((savepoint, rows)) = saved.take() {
                                tx.rollback_to(&savepoint).expect("the disk works");
                                seen = rows;
                            }
                        }
                        2 => check(&tx, &table, &seen, self.seed),
                        _ => {}
                    }
                }
                check(&tx, &table, &seen, self.seed);
                rows = seen;
                tx.commit().expect("the disk works").expect("no other commits");
            }
            _ => {
                rows = self.rows.clone();
                let write = &writes[0];
                match write {
                    Write::Put(key, value) => table.insert(key, value),
                    Write::Merge(key, op) => table.merge(key, *op),
                    Write::Erase(key) => table.remove(key),
                    Write::EraseRange(start, end) => table.remove_range(start.clone()..end.clone()),
                }
                .expect("the disk works");
                Self::note(&mut rows, write);
            }
        }
        self.rows = rows;
        self.retained.insert(self.db().version(), self.rows.clone());
    }

    fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..80 => self.commit(),
            80..88 => self.db().flush().expect("the disk works"),
            88..91 => self.table().compact().expect("the disk works"),
            91..93 => {
                self.past.clear();
                self.db = None;
                self.db = Some(on(&self.disk, self.seed).open().expect("the disk works"));
            }
            93..96 if self.past.len() < 4 => {
                let snapshot = self.db().snapshot();
                self.past.push((snapshot, self.rows.clone()));
            }
            93..97 if !self.past.is_empty() => {
                let at = self.random.random_range(0..self.past.len());
                self.past.swap_remove(at);
            }
            _ => {
                let table = self.table();
                check(self.db(), &table, &self.rows, self.seed);
                self.past.iter().for_each(|(snapshot, rows)| check(snapshot, &table, rows, self.seed));
            }
        }
    }
}

/// Checks that all ways of reading see `expected`.
fn check(reader: &impl Readable, table: &Table, expected: &Rows, seed: u64) {
    let reader = reader.reader(table).expect("it is there");
    let same = |found: Vec<(Vec<u8>, Vec<u8>)>, what: &str| {
        let expected: Vec<_> = expected.clone().into_iter().collect();
        for (found, expected) in found.iter().zip(&expected) {
            let name = |row: &(Vec<u8>, Vec<u8>)| format!("{} ({} bytes)", row.0.escape_ascii(), row.1.len());
            assert!(found == expected, "seed {seed}, {what}: {} instead of {}", name(found), name(expected));
        }
        assert_eq!(found.len(), expected.len(), "seed {seed}, {what}");
    };
    let owned = |row: crate::Result<(crate::Key, crate::Value)>| {
        let (key, value) = row.expect("it can be read");
        (key.to_vec(), value.to_vec())
    };
    same(reader.iter().map(owned).collect(), "forward");
    let mut back: Vec<_> = reader.iter().rev().map(owned).collect();
    back.reverse();
    same(back, "backward");
    let (mut cursor, mut walked) = (reader.cursor(), Vec::new());
    while cursor.next().expect("it can be read") {
        let value = cursor.value().expect("it is on a row").to_vec();
        walked.push((cursor.key().expect("it is on a row").to_vec(), value));
    }
    same(walked, "cursor");
    let mut batches = Vec::new();
    let mut rows = reader.iter();
    while let Some(row) = rows.next_row().expect("it can be read") {
        batches.push((row.key().to_vec(), row.value().expect("it can be read").to_vec()));
    }
    same(batches, "borrowed");
    let keys: Vec<Vec<u8>> = (0..60).map(|number| format!("{number:02}").into_bytes()).collect();
    let together = reader.multi_get(&keys).expect("it can be read");
    for (key, together) in keys.iter().zip(together) {
        let (expected, name) = (expected.get(key), key.escape_ascii());
        let one = reader.get(key).expect("it can be read");
        assert_eq!(one.as_deref(), expected.map(Vec::as_slice), "seed {seed}, get {name}");
        assert_eq!(together.as_deref(), expected.map(Vec::as_slice), "seed {seed}, multi_get {name}");
        assert_eq!(reader.contains_key(key).expect("it can be read"), expected.is_some(), "seed {seed}, {name}");
        if let Tried::Ready(tried) = reader.try_get(key).expect("it can be read") {
            assert_eq!(tried.as_deref(), expected.map(Vec::as_slice), "seed {seed}, try_get {name}");
        }
    }
}

#[test]
fn all_reads_see_what_a_model_sees() {
    for seed in 0..60 {
        let mut model = Model::new(seed, false);
        for _ in 0..250 {
            model.step();
        }
        let table = model.table();
        check(model.db(), &table, &model.rows, seed);
        model.past.clear();
        table.compact().expect("the disk works");
        check(model.db(), &table, &model.rows, seed);
        let rows = table.count_exact(..).expect("it can be read");
        assert_eq!(rows, model.rows.len() as u64, "seed {seed}");
    }
}

#[test]
fn each_retained_version_its_history_and_its_feed_can_be_read() {
    for seed in 100..130 {
        let mut model = Model::new(seed, true);
        for _ in 0..150 {
            model.step();
        }
        let (db, table) = (model.db(), model.table());
        for (version, rows) in &model.retained {
            let snapshot = db.at(*version).expect("it is retained");
            let found: Rows = snapshot
                .reader(&table)
                .expect("it is there")
                .iter()
                .map(|row| row.expect("it can be read"))
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .collect();
            assert!(found == *rows, "seed {seed}, version {}", version.0);
        }
        for key in ["00", "01", "02", "33"] {
            let history = table.history(key).expect("it can be read");
            for past in history {
                let expected = model.retained.get(&past.version).and_then(|rows| rows.get(key.as_bytes()));
                assert_eq!(past.value(), expected.map(Vec::as_slice), "seed {seed}, {key} at {}", past.version.0);
            }
        }
        follow(&model);
    }
}

/// Checks that the feed leads from nothing to the rows of each version.
fn follow(model: &Model) {
    use crate::past::ChangeKind;
    let (db, seed) = (model.db(), model.seed);
    let mut changes = db.changes(Version(0)).expect("it is retained");
    let mut rows = Rows::new();
    loop {
        let commit = changes.next_commit().expect("it can be read");
        let Some(version) = commit.last().map(|change| change.version()) else { break };
        for change in &commit {
            match change.kind() {
                ChangeKind::Put { key, value, .. } => drop(rows.insert(key.to_vec(), value.whole().to_vec())),
                ChangeKind::Merge { key, op } => {
                    let value = apply(rows.get(key), &op);
                    rows.insert(key.to_vec(), value);
                }
                ChangeKind::Failed { key, why } => panic!("seed {seed}: {} {why}", key.escape_ascii()),
                ChangeKind::Erase { key } => drop(rows.remove(key)),
                ChangeKind::EraseRange { start, end } => {
                    rows.retain(|key, _| key.as_slice() < start || end.is_some_and(|end| key.as_slice() >= end));
                }
            }
        }
        assert!(model.retained.get(&version) == Some(&rows), "seed {seed}: the feed differs at {}", version.0);
    }
    assert!(rows == model.rows, "seed {seed}: the feed ends early");
}

#[test]
fn a_value_that_cannot_be_computed_fails_alone_and_loses_nothing() {
    let disk = Machine::simulated(1).1;
    let without = |seed| Database::builder("db").machine(Machine::simulated_on(disk.clone(), seed)).open();
    let call = |function, operand| MergeOp::Call { function, operand };
    {
        let db =
            on(&disk, 1).merge_function("panics", |_: &[u8], _: Option<&[u8]>, _: &[u8]| panic!("as it is asked to"));
        let db = db.open().expect("the disk works");
        db.retain(Retention::Everything).expect("the disk works");
        let table = db.table("t").expect("the disk works");
        for key in ["a", "b", "c", "d"] {
            table.insert(key, "abc").expect("the disk works");
        }
        table.merge("a", MergeOp::Add(1)).expect("it is not applied yet");
        table.merge("b", call("join", b"+1")).expect("it is registered");
        table.merge("c", call("panics", b"")).expect("a panic is caught");
        for is_flushed in [false, true] {
            if is_flushed {
                table.compact().expect("the disk works");
            }
            let error = |key: &str| table.get(key).expect_err("it cannot be computed").to_string();
            assert!(error("a").contains("row a cannot be applied: its value has 3 bytes"), "{}", error("a"));
            assert!(error("c").contains("its merge function panicked"), "{}", error("c"));
            assert!(matches!(table.multi_get(["a", "b"]), Err(Error::Merge(_))));
            assert!(matches!(table.iter().next(), Some(Err(Error::Merge(_)))));
            assert_eq!(table.get("b").expect("it can be read").as_deref(), Some(&b"abc+1"[..]));
            assert_eq!(table.range("d"..).count(), 1);
        }
        let failed = table.history("a").expect("the others can be read");
        assert_eq!((failed[0].value(), failed[1].value()), (None, Some(&b"abc"[..])));
        assert!(failed[0].failed.as_deref().is_some_and(|why| why.contains("3 bytes")));
        table.insert("a", "new").expect("the disk works");
        assert_eq!(table.get("a").expect("it can be read").as_deref(), Some(&b"new"[..]));
    }
    {
        let db = without(2).expect("it opens without the functions");
        let table = db.table("t").expect("it is there");
        table.merge("b", call("join", b"+2")).expect("it can be written");
        table.compact().expect("files can be merged");
        let error = table.get("b").expect_err("the function is missing").to_string();
        assert!(error.contains("the merge function join is not registered; register it at open"), "{error}");
        let mut feed = db.changes(Version(0)).expect("it is retained");
        let mut failed = 0;
        while let Some(change) = feed.next_change().expect("the feed goes on") {
            failed += usize::from(matches!(change.kind(), crate::past::ChangeKind::Failed { .. }));
        }
        assert!(failed >= 3, "{failed} versions cannot be computed");
    }
    let db = on(&disk, 3).open().expect("the disk works");
    let table = db.table("t").expect("it is there");
    assert_eq!(table.get("b").expect("it can be read").as_deref(), Some(&b"abc+1+2"[..]));
}

#[test]
fn an_older_release_gets_no_merges() {
    use crate::options::Release;
    let disk = Machine::simulated(1).1;
    let old = |seed| on(&disk, seed).compat(Release::V0_1).open();
    {
        let db = old(1).expect("the disk works");
        let table = db.table("t").expect("the disk works");
        let refused = table.merge("a", MergeOp::Add(1)).expect_err("it knows none").to_string();
        assert!(refused.contains("release 0.1 knows no merges"), "{refused}");
    }
    {
        let db = on(&disk, 2).open().expect("the disk works");
        db.table("t").expect("it is there").merge("a", MergeOp::Add(1)).expect("the disk works");
    }
    let refused = old(3).expect_err("its log has a merge").to_string();
    assert!(refused.contains("has merges, which release 0.1 cannot read"), "{refused}");
    let db = on(&disk, 4).open().expect("this release reads it");
    db.flush().expect("the disk works");
    assert_eq!(
        db.table("t").expect("it is there").get("a").expect("it works").as_deref(),
        Some(&1i64.to_le_bytes()[..])
    );
    drop(db);
    let refused = old(5).expect_err("its file has a merge, if it was not computed").to_string();
    assert!(refused.contains("feature 24"), "{refused}");
}

#[test]
fn values_that_merges_make_take_what_they_need_and_are_counted() {
    let db = on(&Machine::simulated(1).1, 1).write_buffer_bytes(64 << 20).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let keys = || (0..1000u32).map(u32::to_be_bytes);
    keys().for_each(|key| table.insert(key, [1; 300]).expect("the disk works"));
    db.flush().expect("the disk works");
    keys().for_each(|key| table.merge(key, MergeOp::Append(&[2; 200])).expect("the disk works"));
    let before = db.metrics().memtable_bytes;
    let values: Vec<_> = keys().map(|key| table.get(key).expect("it can be read").expect("it is there")).collect();
    assert!(values.iter().all(|value| value.len() == 500));
    let bytes = db.metrics().memtable_bytes - before;
    assert!((500 * 1000..600 * 1000).contains(&bytes), "a value takes {} bytes", bytes / 1000);
    drop(values);
    assert_eq!(db.metrics().memtable_bytes, before);
}
