//! Tests of parsing pgbench's output and computing figures from it, and one short run of the comparison itself.

use super::*;

#[test]
fn both_clients_do_the_same_queries() {
    let options = Options { rows: 1_000, connections: 2, group: 3, run: Duration::from_secs(1), repeats: 1, seed: 1 };
    let mut told = 0;
    let comparison = run(&options, |_| told += 1).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(told, 4);
    for sides in [&comparison.single, &comparison.grouped] {
        for run in sides.ours.iter().chain(&sides.theirs) {
            assert!(run.operations > 100 && !run.processor.is_zero(), "{run:?}");
        }
        assert!(sides.ratio() > 0.0);
    }
    assert!(comparison.about.contains("PostgreSQL"), "{}", comparison.about);
}

#[test]
fn the_output_of_pgbench_is_read() {
    let out = "scaling factor: 1\nnumber of transactions actually processed: 230575\nlatency average = 0.2 ms\n";
    assert_eq!(transactions_of(out), Some(230_575));
    let limited = "number of transactions actually processed: 100/200\n";
    assert_eq!(transactions_of(limited), Some(100));
    assert_eq!(transactions_of("tps = 5"), None);
}

#[test]
fn keys_are_spread_over_all_rows() {
    let mut keys = Keys::new(7, 16);
    let mut seen = [0_u32; 16];
    for _ in 0..16_000 {
        keys.draw();
        let key = std::str::from_utf8(keys.key()).expect("digits");
        seen[key.parse::<usize>().expect("a number")] += 1;
    }
    assert!(seen.iter().all(|count| (800..1_200).contains(count)), "{seen:?}");
}
