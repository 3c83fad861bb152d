//! Tests what each side reads, and how the summary shows it. Times depend on the machine and are not checked.

use super::*;
use crate::args::ExperimentArgs;
use crate::sharing::readers::Sharing::{Private, Shared};
use kit::Scratch;
use os::sync::atomic::AtomicBool;

/// The counts of `reads` reads of `data` by `readers` readers.
fn counts(data: &Data, place: &Path, sharing: Sharing, readers: usize, reads: u64) -> Counts {
    let store = Readers::open(place, sharing, readers).expect("it was loaded");
    let plan = Plan { clients: readers, length: Length::Operations(reads), ..Plan::default() };
    let never = AtomicBool::new(false);
    let measured = harness::run(&store, &Reads::new(data, 7), &plan, &never, &mut |_| {}).expect("the disk works");
    assert_eq!((measured.operations, measured.failed), (reads, 0));
    let counts = store.counts();
    assert_eq!((counts.rows, counts.page_reads), (reads, counts.index_reads + counts.data_reads));
    counts
}

#[test]
fn a_private_read_takes_every_page_of_its_way_and_a_shared_one_a_page_of_rows() {
    let never = AtomicBool::new(false);
    // One level of nodes above the rows, and two.
    for (data, levels) in [(Data::partitions(), 1), (Data { value_bytes: 4000, ..Data::keys(8000) }, 2)] {
        let scratch = Scratch::new("sharing-test");
        let shape = data.load(scratch.path(), &never).expect("the disk works");
        assert!(shape.contains(&format!(" under {levels} level")), "{shape}");
        for readers in [1, 8] {
            let before = counts(&data, scratch.path(), Private, readers, 2000);
            let alone = Counts {
                rows: 2000,
                waits: 2000 * (levels + 1),
                index_reads: 2000 * levels,
                data_reads: 2000,
                page_reads: 2000 * (levels + 1),
            };
            assert_eq!(before, alone, "{readers} readers of {}", data.title());

            let after = counts(&data, scratch.path(), Shared, readers, 2000);
            let nodes = if levels == 1 { 1..=1 } else { 2..=20 };
            assert!(nodes.contains(&after.index_reads), "each node once: {after:?}");
            match readers {
                1 => assert_eq!((after.data_reads, after.waits), (2000, 2000 + after.index_reads)),
                _ => assert!(after.data_reads <= 2000 && after.waits <= 2000 + 8 * levels.max(after.index_reads)),
            }
            // A reader that waits for another's read makes none of its own, so at most one read per row is left
            // instead of two.
            assert!(after.page_reads <= 2000 + after.index_reads, "{after:?}");
        }
    }
}

fn side_of(sharing: Sharing, rows: u64, nanos: u64, counts: Counts) -> Side {
    let measured = Measured { operations: rows, nanos, ..Measured::default() };
    let name = format!("10 partitions, {}", sharing.title());
    let run = Run::new(name, "larch:", &plan(Duration::from_secs(1)), measured);
    let million = run.million(None);
    Side { run, counts, disk_bytes: Some(20 << 20), million }
}

#[test]
fn goals_are_those_of_the_published_gain_and_of_one_page_a_row() {
    let private = Counts { rows: 1000, waits: 2000, index_reads: 1000, data_reads: 1000, page_reads: 2000 };
    let shared = Counts { rows: 2000, waits: 2020, index_reads: 20, data_reads: 500, page_reads: 520 };
    let size = Size::of(Scale::Tiny, None);
    let short = |after: (u64, Counts)| {
        let scratch = Scratch::new("sharing");
        let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: true, price: None };
        let mut ground = Ground::with_stop("sharing", &args, 1 << 20, Stop::never()).expect("there is room");
        for repeat in 0..size.repeats {
            for (sharing, (rows, counts)) in [(Private, (1000, private)), (Shared, after)] {
                let side = side_of(sharing, rows, 1_000_000_000, counts);
                let cell = size.cell(repeat, &size.data[0], sharing);
                ground.cell(&cell, |_| Ok(side)).expect("there is room");
            }
        }
        let outcome = summary::outcome(&ground, &size);
        let is_reached = |goal: &crate::outcome::Goal| goal.bound.is_reached(goal.measured.expect("it was measured"));
        outcome.goals.iter().map(is_reached).collect::<Vec<_>>()
    };
    assert_eq!(short((2000, shared)), [true, true, true]);
    assert_eq!(short((1600, shared)), [false, true, true]);
    assert_eq!(short((2000, private)), [true, false, false]);
}

#[test]
fn a_tiny_experiment_measures_every_side_and_keeps_it() {
    let scratch = Scratch::new("sharing");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: false, price: None };
    let size = Size::of(Scale::Tiny, Some(Duration::from_millis(50)));
    let mut ground = Ground::with_stop("sharing", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut ground, &size).expect("the disk works"));
    let sides = all_sides(&ground, &size);
    assert_eq!(sides.len() as u64, 2 * 2 * size.repeats);
    assert!(sides.iter().all(|side| side.run.measured.operations > 0 && side.counts.rows > 0));
    // Another process finds all results.
    drop(ground);
    let mut ground = Ground::with_stop("sharing", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut ground, &size).expect("nothing is left to do"));
    assert_eq!(all_sides(&ground, &size), sides);
    assert_eq!(summary::outcome(&ground, &size).goals.len(), 2 * 3);
}
