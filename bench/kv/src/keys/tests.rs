use super::*;
use crate::options::Mode;
use std::collections::BTreeMap;

fn options(mode: Mode, workload: Workload) -> Options {
    Options { partition_count: 7, clustering_row_count: 11, partition_offset: 100, ..Options::new(mode, workload) }
}

fn no_time() -> i64 {
    panic!("this workload does not look at the clock")
}

/// The partition and rows of each operation of a client, until no operation is left.
fn drawn(options: &Options, number: usize, clients: usize, rows_per_request: usize) -> Vec<(i64, Vec<i64>)> {
    let mut keys = Keys::new(options, None, number, clients);
    let mut random = Random::of_client(3, number as u64);
    let mut all = Vec::new();
    while let Some(Place::Partition(pk)) = keys.next_place(&mut random, no_time) {
        let mut rows = Vec::new();
        while rows.len() < rows_per_request && keys.has_row(rows.len()) {
            rows.push(keys.next_row(&mut random));
        }
        all.push((pk, rows));
    }
    all
}

#[test]
fn clients_of_a_sequential_workload_have_each_row_once_between_them() {
    for clients in [1, 3, 16, 77, 100] {
        for rows_per_request in [1, 4, 100] {
            for iterations in [1, 3] {
                let options = Options { iterations, ..options(Mode::Write, Workload::Sequential) };
                let mut counts: BTreeMap<(i64, i64), u32> = BTreeMap::new();
                for number in 0..clients {
                    for (pk, rows) in drawn(&options, number, clients, rows_per_request) {
                        assert!(!rows.is_empty(), "an operation has rows");
                        rows.into_iter().for_each(|ck| *counts.entry((pk, ck)).or_default() += 1);
                    }
                }
                let expected = (100..107).flat_map(|pk| (0..11).map(move |ck| ((pk, ck), iterations)));
                assert_eq!(counts, expected.collect(), "{clients} clients, {rows_per_request} rows a request");
            }
        }
    }
}

#[test]
fn a_sequential_workload_of_no_iterations_goes_on_without_end() {
    let options = Options { iterations: 0, ..options(Mode::Write, Workload::Sequential) };
    let mut keys = Keys::new(&options, None, 0, 1);
    let mut random = Random::of_client(1, 1);
    for row in 0..1000 {
        let place = keys.next_place(&mut random, no_time);
        assert_eq!(place, Some(Place::Partition(100 + row / 11 % 7)));
        assert_eq!(keys.next_row(&mut random), row % 11);
    }
}

#[test]
fn drawn_rows_are_those_that_there_are_and_zipfian_ones_prefer_some_partitions() {
    for (workload, most_at_least, most_at_most) in [(Workload::Uniform, 0, 3000), (Workload::Zipfian, 3000, 7000)] {
        let options = Options { partition_count: 20, ..options(Mode::Read, workload) };
        let mut keys = Keys::new(&options, None, 0, 1);
        let mut random = Random::of_client(1, 1);
        let mut counts = [0; 20];
        for _ in 0..20_000 {
            let Some(Place::Partition(pk)) = keys.next_place(&mut random, no_time) else { panic!("it has no end") };
            counts[(pk - 100) as usize] += 1;
            assert!((0..11).contains(&keys.next_row(&mut random)));
        }
        let most = *counts.iter().max().expect("there are partitions");
        assert!((most_at_least..most_at_most).contains(&most), "{workload:?}: {counts:?}");
    }
}

#[test]
fn each_partition_of_a_time_series_gets_rows_at_the_same_rate_newest_first() {
    let options = Options {
        partition_offset: 0,
        start_timestamp: 1_000_000,
        max_rate: Some(14.0),
        ..options(Mode::Write, Workload::Timeseries)
    };
    let period = 500_000_000;
    for clients in [1, 3, 7] {
        let mut rows: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for number in 0..clients {
            let mut keys = Keys::new(&options, None, number, clients);
            let mut random = Random::of_client(1, 1);
            for _ in 0..7 * 3 * 30 / clients {
                let Some(Place::Partition(pk)) = keys.next_place(&mut random, no_time) else { panic!("no end") };
                assert!(keys.has_row(0) && !keys.has_row(1));
                rows.entry(pk).or_default().push(keys.next_row(&mut random));
            }
        }
        assert_eq!(rows.len(), 7 * 9, "90 rows of each of 7 partitions are 9 generations of 11 rows");
        for (pk, mut cks) in rows {
            cks.sort_unstable_by_key(|ck| -ck);
            let generation = pk & 0xffff_ffff;
            let expected = (0..).map(|position| -(1_000_000 + period * (generation * 11 + position)));
            assert_eq!(cks, expected.take(cks.len()).collect::<Vec<_>>(), "partition {pk:x}");
            assert_eq!(cks.len(), if generation == 8 { 2 } else { 11 });
        }
    }
}

#[test]
fn readers_of_a_time_series_draw_rows_that_have_been_written() {
    for distribution in [Distribution::Uniform, Distribution::HalfNormal] {
        let options = Options {
            partition_offset: 0,
            start_timestamp: 1_000_000,
            write_rate: Some(2.0),
            distribution,
            ..options(Mode::Read, Workload::Timeseries)
        };
        let now = 1_000_000 + 500_000_000 * 24 + 7;
        let mut keys = Keys::new(&options, None, 2, 3);
        let mut random = Random::of_client(1, 1);
        let mut newest = 0;
        for _ in 0..10_000 {
            let Some(Place::Partition(pk)) = keys.next_place(&mut random, || now) else { panic!("it has no end") };
            let (partition, generation) = (pk >> 32, pk & 0xffff_ffff);
            let row = (-keys.next_row(&mut random) - 1_000_000) / 500_000_000;
            assert!((0..7).contains(&partition) && (0..3).contains(&generation), "{pk:x}");
            assert!((generation * 11..(generation + 1) * 11).contains(&row) && row <= 24, "row {row}");
            newest += i32::from(row > 21);
        }
        // The newest generation has three rows. With a uniform distribution, a third of the draws should find these
        // rows. With the other distribution, most draws should find them.
        let expected = if distribution == Distribution::Uniform { 3000..3700 } else { 8000..8400 };
        assert!(expected.contains(&newest), "{distribution:?}: {newest}");
    }
}

#[test]
fn clients_of_a_scan_have_each_part_once_between_them() {
    for (clients, range_count) in [(1, 1), (3, 10), (4, 4), (16, 300)] {
        let options = Options { range_count, ..Options::new(Mode::Scan, Workload::Scan) };
        let mut parts = Vec::new();
        for number in 0..clients {
            let mut keys = Keys::new(&options, None, number, clients);
            while let Some(Place::Part(part)) = keys.next_place(&mut Random::of_client(1, 1), no_time) {
                parts.push(part);
            }
        }
        assert_eq!(parts, (0..range_count).collect::<Vec<_>>(), "{clients} clients");
    }
}

#[test]
fn each_rank_of_a_zipfian_workload_has_a_partition_of_its_own() {
    for partitions in [1, 2, 7, 10, 1000, 4096] {
        let favourites = Favourites::new(partitions);
        let strides = (0..partitions as u64).map(|rank| rank * favourites.stride % partitions as u64);
        assert_eq!(strides.collect::<std::collections::BTreeSet<_>>().len() as i64, partitions);
        let mut random = Random::of_client(1, 1);
        assert!((0..1000).all(|_| (0..partitions).contains(&favourites.draw(&mut random))));
    }
}

#[test]
fn a_zipfian_workload_begins_over_any_number_of_partitions() {
    for partitions in [1 << 62, i64::MAX] {
        let favourites = Favourites::new(partitions);
        let mut random = Random::of_client(1, 1);
        let drawn: Vec<i64> = (0..1000).map(|_| favourites.draw(&mut random)).collect();
        assert!(drawn.iter().all(|partition| (0..partitions).contains(partition)), "{partitions}");
        assert!(drawn.contains(&0), "the first of {partitions} is the likeliest");
    }
}
