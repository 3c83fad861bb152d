//! Tests of parsing the output of cassandra-stress, and one short run of the comparison itself.

use super::*;

#[test]
fn both_clients_do_the_same_operations() {
    let options = Options { operations: 2_000, concurrency: 8, repeats: 1 };
    let mut told = 0;
    let comparison = run(&options, |_| told += 1).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((told, comparison.kinds.len()), (7, 4));
    for (name, sides) in &comparison.kinds {
        for run in sides.ours.iter().chain(&sides.theirs) {
            assert!(run.operations == 2_000 && !run.time.is_zero(), "{name}: {run:?}");
        }
        assert!(!sides.ours[0].processor.is_zero(), "{name}");
    }
    assert!(comparison.about.contains("Cassandra 5"), "{}", comparison.about);
}

#[test]
fn the_results_of_cassandra_stress_are_read() {
    let out = "Running WRITE with 16 threads\n\nResults:\n\
               Op rate                   :    2,219 op/s  [WRITE: 2,219 op/s]\n\
               Partition rate            :    2,219 pk/s  [WRITE: 2,219 pk/s]\n\
               Row rate                  :    2,218 row/s [WRITE: 2,218 row/s]\n\
               Total partitions          :     10,000 [WRITE: 10,000]\n\
               Total errors              :          3 [WRITE: 3]\n\nEND\n";
    let done = Done { operations_a_second: 2_219, rows_a_second: 2_218, partitions: 10_000, errors: 3 };
    assert_eq!(Done::of(out), Some(done));
    assert_eq!(Done::of("java.lang.RuntimeException: Failed to execute"), None);
}
