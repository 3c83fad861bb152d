//! A bank loses no money and no acknowledged transfer. `cargo x bank` runs more rounds.

use std::path::Path;
use testkit::bank::{Clients, Disturbance, Summary, disturb};

fn check(disturbance: Disturbance) -> Summary {
    let program = Path::new(env!("CARGO_BIN_EXE_bank"));
    let mut all = Summary::default();
    for (seed, clients) in (0..).zip(Clients::ALL) {
        all += disturb(disturbance, clients, 3, seed, program);
    }
    println!("{all:?}");
    all
}

#[test]
fn a_process_that_is_killed_loses_no_acknowledged_transfer() {
    assert!(check(Disturbance::Kill).acknowledged > 0);
}

#[test]
fn transfers_go_on_after_a_full_disk_without_opening_the_database_again() {
    let Summary { acknowledged, failed, unknown, .. } = check(Disturbance::FullDisk);
    assert!(acknowledged > 0 && failed > 0 && unknown == 0);
}

#[test]
fn a_transfer_whose_sync_failed_is_of_unknown_outcome() {
    assert!(check(Disturbance::FailedSync).unknown > 0);
}
