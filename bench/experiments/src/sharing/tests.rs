//! Tests what each side reads, and how the summary shows it. Times depend on the machine and are not checked.

use super::*;
use crate::experiment::tests::{ground, tiny};
use crate::sharing::readers::Sides::{Private, Shared};
use kit::Scratch;
use os::sync::atomic::AtomicBool;

/// The counts of `reads` reads of `data` by `readers` readers.
fn counts(data: &Data, place: &Path, sharing: Sides, readers: usize, reads: u64) -> Counts {
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
    // One level of nodes above the rows, and two.
    for (data, levels) in [(Data::partitions(), 1), (Data { value_bytes: 4000, ..Data::keys(8000) }, 2)] {
        let scratch = Scratch::new("sharing-test");
        let shape = data.load(scratch.path(), &Stop::never()).expect("the disk works");
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

fn side_of(sharing: Sides, rows: u64, nanos: u64, counts: Counts) -> Taken {
    let measured = Measured { operations: rows, nanos, ..Measured::default() };
    let name = format!("10 partitions, {}", sharing.title());
    let run = Run::new(name, "larch:", &plan(Duration::from_secs(1)), measured);
    let million = run.million(None);
    Taken { run, counts, disk_bytes: Some(20 << 20), million }
}

#[test]
fn goals_are_those_of_the_published_gain_and_of_one_page_a_row() {
    let private = Counts { rows: 1000, waits: 2000, index_reads: 1000, data_reads: 1000, page_reads: 2000 };
    let shared = Counts { rows: 2000, waits: 2020, index_reads: 20, data_reads: 500, page_reads: 520 };
    let sharing = Sharing::of(Scale::Tiny, None);
    let reached = |after: (u64, Counts)| {
        let scratch = Scratch::new("sharing");
        let mut ground = ground(&scratch);
        for repeat in 0..sharing.repeats {
            for (side, (rows, counts)) in [(Private, (1000, private)), (Shared, after)] {
                let taken = serde_json::to_value(side_of(side, rows, 1_000_000_000, counts)).expect("names are texts");
                let cell = sharing.cell(repeat, sharing.data[0], side);
                ground.keep(&cell.to_string(), taken).expect("there is room");
            }
        }
        sharing.goals(&ground).iter().map(|goal| goal.is_reached).collect::<Vec<_>>()
    };
    assert_eq!(reached((2000, shared)), [true, true, true]);
    assert_eq!(reached((1600, shared)), [false, true, true]);
    assert_eq!(reached((2000, private)), [true, false, false]);
}

#[test]
fn a_tiny_experiment_measures_every_side_and_keeps_it() {
    let [once, again] = [0, 1].map(|_| Sharing::of(Scale::Tiny, Some(Duration::from_millis(50))));
    let (_, ground, outcome) = tiny(once, again);
    let sharing = Sharing::of(Scale::Tiny, Some(Duration::from_millis(50)));
    let taken: Vec<Taken> = sharing.cells().iter().filter_map(|cell| ground.known(cell)).collect();
    assert_eq!(taken.len() as u64, 2 * 2 * sharing.repeats);
    assert!(taken.iter().all(|taken| taken.run.measured.operations > 0 && taken.counts.rows > 0));
    assert_eq!(outcome.goals.len(), 2 * 3);
}
