//! Does random writes of every kind to a table with several indexes, and compares the table with a sorted map.

use super::*;
use crate::base::record::tests::seeds;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The name of each index, and whether it is unique.
const INDEXES: [(&str, bool); 4] = [("words", false), ("first", true), ("length", false), ("key", false)];

fn key(rng: &mut StdRng) -> Vec<u8> {
    format!("k{:02}", rng.random_range(0..40)).into_bytes()
}

fn value(rng: &mut StdRng) -> Vec<u8> {
    let words = rng.random_range(0..4);
    let words: Vec<String> = (0..words).map(|_| format!("w{}", rng.random_range(0..60))).collect();
    let end = if rng.random_range(0..8) == 0 { "x".repeat(rng.random_range(0..3000)) } else { String::new() };
    format!("{} {end}", words.join(" ")).into_bytes()
}

/// Maps the first word of each row, which is unique, to the key of the row.
fn firsts(model: &Model) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let first = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        let keys = Extractor::First.keys(key, value).expect("it fits");
        keys.into_iter().next().map(|first| (first, key.clone()))
    };
    model.iter().filter_map(first).collect()
}

/// Whether all keys of these rows in the unique index differ.
fn is_unique(model: &Model) -> bool {
    let keys = model.iter().filter_map(|(key, value)| Extractor::First.keys(key, value).expect("it fits").pop());
    keys.count() == firsts(model).len()
}

/// Puts the row into the model if the unique index accepts it. Returns whether it does.
fn put(model: &mut Model, key: &[u8], value: &[u8]) -> bool {
    let first = Extractor::First.keys(key, value).expect("it fits").into_iter().next();
    let is_free = first.is_none_or(|first| firsts(model).get(&first).is_none_or(|other| other == key));
    if is_free {
        model.insert(key.to_vec(), value.to_vec());
    }
    is_free
}

fn was_taken(outcome: Result<()>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(Error::Duplicate { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

fn write(rng: &mut StdRng, db: &Database, table: &Table, model: &mut Model) {
    let (key_one, value_one) = (key(rng), value(rng));
    match rng.random_range(0..9) {
        0..=2 => {
            let taken = was_taken(table.insert(&key_one, &value_one));
            assert_eq!(taken, put(model, &key_one, &value_one));
        }
        3 => {
            table.remove(&key_one).expect("it is taken");
            model.remove(&key_one);
        }
        4 => {
            let end = key(rng);
            table.remove_range(&key_one..&end).expect("it is taken");
            model.retain(|key, _| *key < key_one || *key >= end);
        }
        5 => {
            let is_new = !model.contains_key(&key_one);
            let taken = was_taken(table.insert_new(&key_one, &value_one).map(|inserted| assert_eq!(inserted, is_new)));
            assert!(taken || is_new);
            if is_new {
                assert_eq!(taken, put(model, &key_one, &value_one));
            }
        }
        6 => {
            let taken = was_taken(table.fetch_update(&key_one, |_| Some(value_one.clone())).map(drop));
            assert_eq!(taken, put(model, &key_one, &value_one));
        }
        7 => {
            let (mut batch, mut after) = (db.batch(), model.clone());
            for _ in 0..rng.random_range(1..30) {
                let (key, value) = (key(rng), value(rng));
                match rng.random_range(0..6) {
                    0 => {
                        batch.remove(table, &key);
                        after.remove(&key);
                    }
                    1 => {
                        batch.remove_range(table, &key..);
                        after.retain(|other, _| *other < key);
                    }
                    _ => {
                        batch.insert(table, &key, &value);
                        after.insert(key, value);
                    }
                }
            }
            // Whether a batch is accepted depends only on the rows that the table has after it.
            let taken = was_taken(batch.commit().map(drop));
            assert_eq!(taken, is_unique(&after));
            if taken {
                *model = after;
            }
        }
        _ => {
            let mut tx = db.begin().expect("it begins");
            let mut after = model.clone();
            for _ in 0..rng.random_range(1..20) {
                let (key, value) = (key(rng), value(rng));
                if rng.random_range(0..4) == 0 {
                    tx.remove(table, &key).expect("it is taken");
                    after.remove(&key);
                } else {
                    // Before the commit, two rows of the transaction may have the same index key.
                    tx.insert(table, &key, &value).expect("it is taken");
                    after.insert(key, value);
                }
            }
            if rng.random_range(0..3) > 0 {
                let taken = was_taken(tx.commit().map(|outcome| assert!(outcome.is_ok(), "nothing else happens")));
                assert_eq!(taken, is_unique(&after));
                if taken {
                    *model = after;
                }
            }
        }
    }
}

/// Compares every index with the model.
fn compare(rng: &mut StdRng, table: &Table, model: &Model) {
    for (name, _) in INDEXES {
        let index = table.index(name).expect("it is there");
        let extractor = Extractor::of(name.as_bytes()).expect("it is known");
        let mut expected: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (key, value) in model {
            let keys = extractor.keys(key, value).expect("it fits");
            expected.extend(keys.into_iter().map(|index_key| (index_key, key.clone())));
        }
        expected.sort();
        let entries = index.entries(..).map(|entry| entry.expect("the disk works"));
        let found: Vec<_> = entries.map(|entry| (entry.index_key().to_vec(), entry.row_key().to_vec())).collect();
        assert_eq!(found, expected, "index {name}");
        if let Some((some, _)) = expected.get(rng.random_range(0..expected.len().max(1))) {
            let expected =
                expected.iter().filter(|(key, _)| key == some).map(|(_, row)| (row.clone(), model[row].clone()));
            let found = index.get_by(some).expect("the disk works");
            let found: Vec<_> = found.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            assert_eq!(found, expected.collect::<Vec<_>>(), "index {name}");
        }
    }
}

#[test]
fn indexes_agree_with_their_table_after_every_commit() {
    for seed in seeds(6) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (_, disk) = Machine::simulated(seed);
        // In half of the runs the cache is so small that nearly every read has to load its pages.
        let cache_bytes = if seed % 2 == 0 { 64 << 20 } else { 128 << 10 };
        let open =
            || on(&disk, seed).cache_bytes(cache_bytes).write_buffer_bytes(256 << 10).open().expect("the disk works");
        let mut db = open();
        let mut table = db.table("t").expect("it is made");
        let mut model = Model::new();
        for _ in 0..20 {
            let (key, value) = (key(&mut rng), value(&mut rng));
            if put(&mut model, &key, &value) {
                table.insert(&key, &value).expect("it is taken");
            }
        }
        for (name, unique) in INDEXES {
            create(&table, name, name, unique).expect("it is built");
        }
        for step in 0..150 {
            write(&mut rng, &db, &table, &mut model);
            match rng.random_range(0..40) {
                0..4 => db.flush().expect("the disk works"),
                4 => db.compact().expect("the disk works"),
                5 => {
                    drop((table, db));
                    db = open();
                    table = db.table("t").expect("it is there");
                }
                6 => {
                    let now = table.name().to_owned();
                    let new = if now == "t" { "u" } else { "t" };
                    db.rename_table(&now, new).expect("it is there");
                    db.rename_table(new, "t").expect("it is there");
                    table = db.table("t").expect("it is there");
                }
                _ => {}
            }
            if step % 5 == 0 {
                compare(&mut rng, &table, &model);
            }
        }
        compare(&mut rng, &table, &model);
        for (name, _) in INDEXES {
            is_clean(&table.index(name).expect("it is there"));
        }
        assert_eq!(db.core().writes.recent.running(), 0);
        assert_eq!(db.core().writes.reserved.count(), 0);
    }
}
