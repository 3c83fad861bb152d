//! Compares random transactions, which use savepoints, with a sorted map. The rows that they read are in memory, in
//! files, or missing.

use super::*;
use crate::base::record::tests::seeds;
use os::sim::SimDisk;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(rng: &mut StdRng) -> Vec<u8> {
    format!("k{:02}", rng.random_range(0..60)).into_bytes()
}

fn bounds(rng: &mut StdRng) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let mut bound = || match rng.random_range(0..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(key(rng)),
        _ => Bound::Excluded(key(rng)),
    };
    (bound(), bound())
}

fn in_bounds(model: &Model, (low, high): &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Vec<(Vec<u8>, Vec<u8>)> {
    let is_after = |key: &Vec<u8>| match low {
        Bound::Included(low) => key >= low,
        Bound::Excluded(low) => key > low,
        Bound::Unbounded => true,
    };
    let is_before = |key: &Vec<u8>| match high {
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
        Bound::Unbounded => true,
    };
    let rows = model.iter().filter(|(key, _)| is_after(key) && is_before(key));
    rows.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Reads a key in one of the possible ways.
fn read(rng: &mut StdRng, tx: &Transaction, table: &Table, model: &Model) {
    let (key, expected) = {
        let key = key(rng);
        (key.clone(), model.get(&key).cloned())
    };
    let found = match rng.random_range(0..4) {
        0 => tx.get(table, &key).expect("the disk works"),
        1 => smol::block_on(tx.get_async(table, &key)).expect("the disk works"),
        2 => match tx.try_get(table, &key).expect("the disk works") {
            Tried::Ready(found) => found,
            Tried::WouldFault => return,
        },
        _ => tx.multi_get(table, [&key]).expect("the disk works").remove(0),
    };
    assert_eq!(found.as_deref(), expected.as_deref(), "{}", key.escape_ascii());
}

/// Reads a range from both ends.
fn read_range(rng: &mut StdRng, tx: &Transaction, table: &Table, model: &Model) {
    let bounds = bounds(rng);
    let mut expected = in_bounds(model, &bounds).into_iter();
    let mut range = tx.range(table, bounds);
    for _ in 0..rng.random_range(0..80) {
        let is_back = rng.random_range(0..3) == 0;
        let row = if is_back { range.next_back() } else { range.next() };
        let row = row.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).expect("the disk works"));
        assert_eq!(row, if is_back { expected.next_back() } else { expected.next() });
        if row.is_none() {
            break;
        }
    }
}

/// Moves a cursor at random.
fn move_cursor(rng: &mut StdRng, tx: &Transaction, table: &Table, model: &Model) {
    let bounds = bounds(rng);
    let rows = in_bounds(model, &bounds);
    let (mut cursor, mut place) = (tx.cursor_in(table, bounds), 0);
    for _ in 0..rng.random_range(0..30) {
        let key = key(rng);
        let (is_at_row, now) = match rng.random_range(0..8) {
            0 => (cursor.seek(&key), 1 + rows.partition_point(|(row, _)| *row < key)),
            1 => (cursor.seek_back(&key), rows.partition_point(|(row, _)| *row <= key)),
            2..6 => (cursor.next(), (place + 1).min(rows.len() + 1)),
            _ => (cursor.prev(), usize::saturating_sub(place, 1)),
        };
        place = now;
        let expected = place.checked_sub(1).and_then(|at| rows.get(at)).map(|(key, value)| (&key[..], &value[..]));
        assert_eq!(cursor.key_value(), expected);
        assert_eq!(is_at_row.expect("the disk works"), expected.is_some());
    }
}

fn write(rng: &mut StdRng, tx: &mut Transaction, table: &Table, model: &mut Model, step: usize) {
    match rng.random_range(0..10) {
        0 => {
            let bounds = bounds(rng);
            tx.remove_range(table, bounds.clone()).expect("it is taken");
            for (key, _) in in_bounds(model, &bounds) {
                model.remove(&key);
            }
        }
        1..4 => {
            let key = key(rng);
            tx.remove(table, &key).expect("it is taken");
            model.remove(&key);
        }
        _ => {
            let (key, value) = (key(rng), format!("v{step}").repeat(rng.random_range(1..40)).into_bytes());
            tx.insert(table, &key, &value).expect("it is taken");
            model.insert(key, value);
        }
    }
}

/// Does one random transaction. Returns how many of its writes had spilled to files at the end.
fn transact(rng: &mut StdRng, db: &Database, table: &Table, model: &mut Model) -> u64 {
    let mut tx = db.begin().expect("it begins");
    let (mut own, mut savepoints) = (model.clone(), Vec::new());
    let most_steps = if rng.random_range(0..8) == 0 { 300 } else { 60 };
    for step in 0..rng.random_range(1..most_steps) {
        match rng.random_range(0..12) {
            0 => savepoints.push((tx.savepoint(), own.clone())),
            1 if !savepoints.is_empty() => {
                let place = rng.random_range(0..savepoints.len());
                savepoints.truncate(place + 1);
                let (savepoint, then) = &savepoints[place];
                tx.rollback_to(savepoint).expect("it is there");
                own.clone_from(then);
            }
            2..5 => read(rng, &tx, table, &own),
            5 => read_range(rng, &tx, table, &own),
            6 => move_cursor(rng, &tx, table, &own),
            _ => write(rng, &mut tx, table, &mut own, step),
        }
    }
    let in_files = tx.work.writes.in_runs();
    if rng.random_range(0..4) > 0 {
        tx.commit().expect("the disk works").expect("it is alone");
        *model = own;
    }
    in_files
}

#[test]
fn a_transaction_sees_what_a_sorted_map_sees_resident_and_with_faults() {
    let mut in_files = 0;
    for seed in seeds(60) {
        let mut rng = StdRng::seed_from_u64(seed);
        let machine = Machine::simulated_on(SimDisk::new(seed), seed);
        let cache_bytes = if seed % 2 == 0 { 64 << 10 } else { 64 << 20 };
        // With the small write buffer, nearly all writes spill to files before the commit.
        let write_buffer_bytes = if seed % 3 == 0 { 2 << 10 } else { 64 << 20 };
        let builder = Database::builder("db").machine(machine).write_buffer_bytes(write_buffer_bytes);
        let db = builder.cache_bytes(cache_bytes).open().expect("the disk works");
        let options = TableOptions { page_bytes: 256, node_bytes: 256, ..TableOptions::default() };
        let table = db.table_with("t", options).expect("the disk works");
        let mut model = Model::new();
        for _ in 0..30 {
            in_files += transact(&mut rng, &db, &table, &mut model);
            match rng.random_range(0..8) {
                0 => db.flush().expect("the disk works"),
                1 => table.compact().expect("the disk works"),
                _ => {}
            }
            if cache_bytes < 1 << 20 {
                db.set_cache_bytes(64 << 10);
            }
            let rows = table.iter().map(|row| row.expect("the disk works"));
            assert!(rows.map(|(key, value)| (key.to_vec(), value.to_vec())).eq(model.clone()));
        }
    }
    assert!(in_files > 0, "no transaction has moved writes into files");
}
