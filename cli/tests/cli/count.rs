//! Tests of the number of rows in a table and in ranges of its keys.

use crate::session::Session;

#[test]
fn a_count_is_exact_or_an_interval_that_holds_the_exact_number() {
    let rows =
        |numbers: std::ops::Range<u32>| numbers.map(|row| format!("{row:06}\tvalue {row}\n")).collect::<String>();
    let session = Session::with(&["--format", "tsv"], rows(0..20_000));
    let count = |options: &[&str]| session.run(&[&["count", "db", "t"][..], options].concat()).ok();
    assert_eq!(count(&[]), "20000\n");
    assert_eq!(count(&["--exact"]), "20000\n");
    assert_eq!(count(&["--from", "x"]), "0\n");
    assert_eq!(count(&["--from", "2", "--to", "1"]), "0\n");
    assert_eq!(count(&["--prefix", "0100", "--exact"]), "100\n");
    assert_eq!(
        count(&["--prefix", "0100", "--exact", "--json"]),
        "{\"table\":\"t\",\"rows\":{\"low\":100,\"high\":100}}\n"
    );
    // The range begins and ends within a page, so the index knows only bounds.
    let bounds = count(&["--from", "000100", "--to", "010100"]);
    let (low, high) = bounds.trim_end().split_once(" to ").expect("two bounds");
    let [low, high] = [low, high].map(|bound| bound.parse::<u64>().expect("a number"));
    assert!(low < 10_000 && 10_000 < high, "{bounds}");
    // A row that is written again is counted once.
    session.run_with(&["load", "db", "t", "--batch", "100"], rows(0..300)).ok();
    assert_eq!(count(&["--exact"]), "20000\n");
    session.run(&["delete", "db", "t", "000007"]).ok();
    assert_eq!(count(&["--exact"]), "19999\n");

    session.run(&["count", "db", "u"]).fails(1, &["db has no table u; it has t"]);
    session.run(&["count", "none", "t"]).fails(3, &["none has no database"]);
}
