//! What each side reads, and how it is shown. No times: those are the machine's.

use super::*;
use crate::sharing::readers::Sharing::{Private, Shared};
use os::sync::atomic::AtomicBool;

/// So many reads of `data` by so many readers.
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
    // A node above the rows, and two levels of them.
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
            // Who waits for the read of another does not read: two a row have become at most one.
            assert!(after.page_reads <= 2000 + after.index_reads, "{after:?}");
        }
    }
}

fn side_of(rows: u64, nanos: u64, counts: Counts, disk_bytes: Option<u64>) -> Side {
    let measured = Measured { operations: rows, nanos, ..Measured::default() };
    let run = Run::new("side", "larch:", &plan(Duration::from_secs(1)), measured);
    Side { run, counts, disk_bytes, ending: Ending::Good }
}

#[test]
fn goals_stand_beside_what_was_measured() {
    let private = Counts { rows: 1000, waits: 2000, index_reads: 1000, data_reads: 1000, page_reads: 2000 };
    let shared = Counts { rows: 2000, waits: 2020, index_reads: 20, data_reads: 500, page_reads: 520 };
    let before = side_of(1000, 1_000_000_000, private, Some(20 << 20));
    let words = |after: &Side| {
        let (text, is_reached) = summary::summary(&Data::partitions(), &before, after);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        (text.lines().map(words).collect::<Vec<_>>(), is_reached)
    };
    let (lines, is_reached) = words(&side_of(2000, 1_000_000_000, shared, None));
    assert!(is_reached);
    assert_eq!(
        lines,
        [
            "",
            "10 partitions before after",
            "rows a second 1,000 2,000 2.00 times; goal: at least 1.7: reached",
            "page reads a row 2.000 0.260 goal: from 2 to 1: reached",
            "of the index 1.000 0.010",
            "of rows 1.000 0.250",
            "waits for the disk a row 2.000 1.010",
            "from the disk a row, says the system 20.5 KiB -",
            "",
        ]
    );
    let (short, is_reached) = words(&side_of(1600, 1_000_000_000, private, None));
    assert!(!is_reached);
    assert!(short[2].ends_with("1.60 times; goal: at least 1.7: falls short"), "{short:?}");
    assert!(short[3].ends_with("goal: from 2 to 1: falls short"), "{short:?}");
    // One of the two is not enough.
    assert!(!words(&side_of(1600, 1_000_000_000, shared, None)).1);
    assert!(!words(&side_of(2000, 1_000_000_000, private, None)).1);
}
