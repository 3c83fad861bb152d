//! Random transactions are as isolated as they asked to be. `cargo x sim --transactions N [--threads N]` runs more
//! seeds.

use testkit::transactions::{Summary, on_threads, simulate};

#[test]
fn transactions_that_interleave_on_a_disk_with_faults_are_isolated() {
    let mut all = Summary::default();
    (0..24).for_each(|seed| all += simulate(seed));
    println!("{all}");
    let (ends, lost) = (all.ends, all.lost);
    let met = [ends.committed, ends.conflicted, ends.too_old, ends.unknown, ends.failed, all.beside, lost];
    assert!(met.iter().all(|count| *count > 0), "everything happens: {all:?}");
    assert!(all.skews > 0, "snapshot isolation has write skew: {all:?}");
}

#[test]
fn transactions_on_threads_are_isolated() {
    let mut all = Summary::default();
    (0..2).for_each(|seed| all += on_threads(seed, 4));
    println!("{all}");
    assert!(all.ends.committed > 0 && all.ends.conflicted > 0, "transactions meet: {all:?}");
}
