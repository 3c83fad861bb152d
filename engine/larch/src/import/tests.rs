//! Tests of imports in which keys are added several times, and of imports on a failing disk.

use crate::options::{FilterKind, Filters, LevelOptions};
use crate::{Database, TableOptions};
use os::Machine;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;

/// Imports rows in key order, some keys several times, with values of all lengths, and checks that reads return the
/// last value of each key.
fn check_last_value_counts(seed: u64, groups: &[&str]) {
    println!("seed {seed}, groups {groups:?}");
    let mut random = StdRng::seed_from_u64(seed);
    // The limits are so small that a few rows fill a page, a partition of a filter, or a file, and sometimes one row
    // fills a file.
    let file_bytes = [1 << 10, 16 << 10][random.random_range(0..2)];
    let levels = LevelOptions { base_bytes: 4 * file_bytes, file_bytes, ..LevelOptions::default() };
    let (machine, _) = Machine::simulated(seed);
    let db = Database::builder("db").machine(machine).levels(levels).open().expect("it opens");
    let options = TableOptions {
        page_bytes: 512,
        node_bytes: 512,
        filters: Filters::all(FilterKind::Bits12),
        filter_prefix_bytes: 3,
        groups: groups.iter().map(|name| (*name).to_owned()).collect(),
        ..TableOptions::default()
    };
    let table = db.table_with("t", options).expect("the options are fine");
    let mut import = table.import().expect("the disk works");
    let mut expected = BTreeMap::new();
    for i in 0..random.random_range(1..1500u32) {
        // The first key is empty.
        let key = if i == 0 { Vec::new() } else { format!("{i:05}").into_bytes() };
        for _ in 0..if random.random_bool(0.3) { random.random_range(2..4) } else { 1 } {
            // Some values are stored outside their pages.
            let longest = [3, 60, 300, 3000][random.random_range(0..4)];
            let value = vec![random.random(); random.random_range(0..longest)];
            match groups.len() {
                0 => import.add(&key, &value),
                _ => import.add_parts(&key, &[&value[..], &value[value.len() / 2..]]),
            }
            .expect("the disk works");
            expected.insert(key.clone(), value);
        }
    }
    let report = import.finish(|_| {}).expect("the disk works");
    assert!(report.sorted);
    assert_eq!(report.rows, expected.len() as u64);
    let report = db.check(|_| {}).expect("the disk works");
    assert!(report.problems.is_empty(), "{}", report.problems[0]);
    if groups.is_empty() {
        let rows = table.iter().map(|row| row.expect("the disk works"));
        let rows: Vec<_> = rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert_eq!(rows, expected.clone().into_iter().collect::<Vec<_>>());
    } else {
        for (key, value) in &expected {
            let parts = table.select(groups).expect("they are its groups").get(key).expect("the disk works");
            let parts = parts.expect("it was added");
            assert_eq!((&parts[0][..], &parts[1][..]), (&value[..], &value[value.len() / 2..]));
        }
    }
    let user_bytes: usize = expected.iter().map(|(key, value)| key.len() + value.len()).sum();
    let view = db.core().views.newest();
    let files = view.files.tables[&table.id()].levels.iter().flat_map(|level| level.iter());
    let (empty, full): (Vec<_>, Vec<_>) = files.partition(|file| file.sst.meta.rows() == 0);
    assert!(empty.is_empty(), "{} files of {} have no rows", empty.len(), full.len());
    let counted: u64 = full.iter().map(|file| file.sst.meta.user_bytes).sum();
    assert!(!groups.is_empty() || counted == user_bytes as u64, "{counted} bytes instead of {user_bytes}");
}

#[test]
fn the_last_value_of_a_key_counts_wherever_its_page_ends() {
    for seed in 0..20 {
        check_last_value_counts(seed, &[]);
    }
    for seed in 20..25 {
        check_last_value_counts(seed, &["left", "right"]);
    }
}

#[test]
fn an_import_that_lost_a_row_to_the_disk_does_not_finish() {
    // The first import gets its rows in key order. The second gets them in another order, and has to sort them in
    // runs.
    for step in [1, 7_919] {
        for failed in 1.. {
            let (machine, disk) = Machine::simulated(1);
            let db = Database::builder("db").machine(machine).write_buffer_bytes(32 << 10).open().expect("it opens");
            let table = db.table("t").expect("the disk works");
            let mut import = table.import().expect("the disk works");
            disk.fail_operation(failed, std::io::ErrorKind::StorageFull);
            let mut errors = 0;
            for i in 0..2_000_u32 {
                let key = format!("{:05}", i * step % 10_007);
                errors += u32::from(import.add(key.as_bytes(), &[0; 100]).is_err());
            }
            disk.clear_faults();
            let finished = import.finish(|_| {});
            assert!(
                errors == 0 || finished.is_err(),
                "operation {failed}: {errors} rows were refused, and {finished:?}"
            );
            assert_eq!(table.iter().count(), if finished.is_ok() { 2_000 } else { 0 });
            if errors == 0 {
                assert!(failed > 1, "adding rows writes");
                break;
            }
        }
    }
}
