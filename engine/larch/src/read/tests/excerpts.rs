//! Tests that gets in a small cache, in which rows stay in memory without their pages, answer as a model does, whatever
//! is written, flushed, compacted and erased meanwhile.

use super::*;

const KEYS: u32 = 20_000;
const HOT: u32 = 400;

fn key(number: u32) -> Vec<u8> {
    format!("key{:08}", number.wrapping_mul(7_919) % KEYS).into_bytes()
}

fn value(number: u32, round: u32) -> Vec<u8> {
    format!("{number} in round {round} {:200}", "").into_bytes()
}

/// A hot key in three of four cases.
fn any_key(rng: &mut StdRng) -> u32 {
    if rng.random_range(0..4) > 0 { rng.random_range(0..HOT) * (KEYS / HOT) } else { rng.random_range(0..KEYS) }
}

#[test]
fn rows_without_their_pages_are_those_of_the_model() {
    let seed = 11;
    let mut rng = StdRng::seed_from_u64(seed);
    let db = open(&SimDisk::new(seed), 1 << 20);
    let table = db.table("rows").expect("the disk works");
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for number in 0..KEYS {
        table.insert(key(number), value(number, 0)).expect("the disk works");
        model.insert(key(number), value(number, 0));
    }
    db.flush().expect("the disk works");
    let found = |db: &Database| db.metrics().cache.excerpts_found;
    let mut found_before_writes = 0;
    for round in 1..9 {
        let (snapshot, old) = (db.snapshot(), model.clone());
        for i in 0..4_000 {
            let number = any_key(&mut rng);
            let wanted = key(number);
            let at = format!("key {number}, step {i} of round {round}, seed {seed}");
            match rng.random_range(0..8) {
                // The first rounds only read, so that there are excerpts.
                0 if round > 3 => {
                    table.insert(&wanted, value(number, round)).expect("the disk works");
                    model.insert(wanted, value(number, round));
                }
                1 if round > 3 && i % 16 == 0 => {
                    table.remove(&wanted).expect("the disk works");
                    model.remove(&wanted);
                }
                2 => {
                    let row = snapshot.get(&table, &wanted).expect("the disk works");
                    assert_eq!(row.as_deref(), old.get(&wanted).map(Vec::as_slice), "{at}");
                }
                3 => {
                    let keys: Vec<Vec<u8>> = (0..8).map(|_| key(any_key(&mut rng))).collect();
                    let rows = table.multi_get(&keys).expect("the disk works");
                    for (key, row) in keys.iter().zip(rows) {
                        assert_eq!(row.as_deref(), model.get(key).map(Vec::as_slice), "{at}");
                    }
                }
                _ => {
                    let row = table.get(&wanted).expect("the disk works");
                    assert_eq!(row.as_deref(), model.get(&wanted).map(Vec::as_slice), "{at}");
                }
            }
        }
        if round == 3 {
            found_before_writes = found(&db);
        }
        if round == 5 {
            let (first, last) = (key(HOT), key(2 * HOT));
            let (first, last) = (first.clone().min(last.clone()), first.max(last));
            table.remove_range(&first[..]..&last[..]).expect("the disk works");
            model.retain(|key, _| !(&first..&last).contains(&key));
        }
        match round % 3 {
            0 => db.flush().expect("the disk works"),
            1 => table.compact().map(drop).expect("the disk works"),
            _ => {}
        }
    }
    assert!(found_before_writes > 100, "{found_before_writes} rows were found without their pages, seed {seed}");
    assert!(found(&db) > found_before_writes, "and later some more, seed {seed}");
}
