//! Tests that tables are made, renamed and dropped, that rows are found by their numbers, and that pages are read
//! into memory.

use crate::session::Session;

fn raw(rows: u32) -> String {
    (0..rows).map(|row| format!("k{row:04}\tvalue of {row}\n")).collect()
}

#[test]
fn a_table_is_made_renamed_and_dropped() {
    let session = Session::new();
    session.run(&["create-table", "db", "t", "--page", "4KiB", "--index", "both"]).ok();
    let told = session.run(&["tables", "db"]).ok();
    assert!(told.starts_with("t: raw keys and values; pages of 4.0 KiB") && told.contains("index both"), "{told}");
    session.run(&["create-table", "db", "t"]).fails(2, &["there is a table \"t\" already"]);
    session.run(&["create-table", "db", "u", "--page", "12"]).fails(2, &["a page of 12 bytes"]);
    assert_eq!(session.run(&["tables", "db"]).ok().lines().count(), 1, "it was not made");

    session.run_with(&["load", "db", "t", "--batch", "100"], raw(300)).ok();
    let told = session.run(&["rename-table", "db", "t", "u"]).ok();
    assert!(told.starts_with("u: until now t, 300 versions in 1 file of "), "{told}");
    session.run(&["scan", "db", "t"]).fails(1, &["db has no table t; it has u"]);
    assert_eq!(session.run(&["scan", "db", "u"]).ok(), raw(300));
    let told = session.run(&["tables", "db"]).ok();
    assert!(told.starts_with("u: ") && told.contains("index both"), "{told}");
    session.is_sound();

    session.run(&["create-table", "db", "v"]).ok();
    session.run(&["rename-table", "db", "u", "v"]).fails(2, &["there is a table \"v\" already"]);
    session.run(&["rename-table", "db", "w", "x"]).fails(1, &["db has no table w; it has u, v"]);
    session.run(&["drop-table", "db", "w"]).fails(1, &["db has no table w; it has u, v"]);
    session.run(&["drop-table", "db", "u"]).ok();
    assert_eq!(session.run(&["tables", "db"]).ok().lines().count(), 1);
    session.is_sound();
}

#[test]
fn rows_have_numbers_in_the_order_of_their_keys() {
    let session =
        Session::with(&["--format", "csv", "--key", "id:int"], "id,name\n9,nine\n7,seven\n-3,less\n12,more\n");
    assert_eq!(session.run(&["nth", "db", "t", "0"]).ok(), "-3\tless\n");
    assert_eq!(session.run(&["nth", "db", "t", "1", "--from", "8"]).ok(), "12\tmore\n");
    assert_eq!(session.run(&["nth", "db", "t", "3", "--keys"]).ok(), "12\n");
    let json = session.run(&["nth", "db", "t", "2", "--format", "jsonl", "--read-index", "flat"]).ok();
    assert_eq!(json, "{\"id\":9,\"name\":\"nine\"}\n");
    session.run(&["nth", "db", "t", "4"]).fails(1, &["table t has no row 4"]);
    session.run(&["nth", "db", "t", "0", "--from", "9", "--to", "8"]).fails(1, &["table t has no row 0"]);
}

#[test]
fn a_sample_has_rows_of_the_range_in_order_and_is_the_same_for_one_seed() {
    let session = Session::new();
    session.run_with(&["load", "db", "t", "--batch", "300"], raw(300)).ok();
    let sample = |args: &[&str]| session.run(&[&["sample", "db", "t"], args].concat()).ok();
    let all = raw(300);
    let some = sample(&["20", "--seed", "1"]);
    assert_eq!(some.lines().count(), 20);
    assert!(some.lines().is_sorted() && some.lines().all(|row| all.contains(row)), "{some}");
    assert_eq!(some, sample(&["20", "--seed", "1"]));
    assert_ne!(some, sample(&["20", "--seed", "2"]));
    assert_eq!(sample(&["1000"]), all);
    let within = sample(&["5", "--from", "k0100", "--to", "k0200", "--keys"]);
    assert!(within.lines().count() == 5 && within.lines().all(|key| key.starts_with("k01")), "{within}");
    assert_eq!(sample(&["5", "--from", "x", "--to", "b"]), "");
}

#[test]
fn a_table_is_brought_to_memory() {
    let session = Session::with(&["--format", "tsv"], raw(3000));
    let told = session.run(&["warm", "db", "t"]).ok();
    assert!(told.starts_with("t: ") && told.ends_with(" read, all of it\n"), "{told}");
    let json = session.run(&["warm", "db", "t", "--from", "k0100", "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert!(json["whole"] == true && json["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{json}");
    session.run(&["warm", "db", "u"]).fails(1, &["db has no table u; it has t"]);
}
