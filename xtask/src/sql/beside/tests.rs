//! Tests how options, and what the terminals print, are read.

use super::*;

#[test]
fn options_come_in_pairs() {
    let beside = Beside::new(&["--warehouses", "2", "--mode", "nowait", "--time", "10s"]).expect("they are right");
    assert_eq!((beside.warehouses, beside.mode, beside.time, beside.rounds), (2, "nowait", "10s", 1));
    assert!(Beside::new(&["--warehouses"]).is_err_and(|why| why.contains("--warehouses N")));
    assert!(Beside::new(&["--warehouses", "x"]).is_err());
}

#[test]
fn results_are_read_with_and_without_waits() {
    let waits = "Result: Total\ntpmC: 1257\nEfficiency: 97.75\n";
    assert_eq!(Done::of_text(waits), Some(Done { tpmc: 1257.0, efficiency: Some(97.75) }));
    let none = "tpmC: 50000\nEfficiency: none, since terminals do not wait\n";
    assert_eq!(Done::of_text(none), Some(Done { tpmc: 50_000.0, efficiency: None }));
    assert_eq!(Done::of_text("interrupted"), None);
}
