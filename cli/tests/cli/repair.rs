//! Tests of `larch repair`: what it saves, what it prints, and how it ends.

use crate::session::Session;

#[test]
fn a_damaged_page_is_listed_and_everything_else_is_in_the_new_database() {
    let rows: String = (0..2_000).map(|i| format!("row{i:05}\tvalue {i}\n")).collect();
    let session = Session::with(&["--format", "tsv", "--page", "4KiB"], rows);
    let whole = session.run(&["repair", "db", "whole"]).ok();
    assert!(whole.contains("saved 2,000 rows of 1 table"), "{whole}");
    session.spoil(&format!("db/{}", session.files(".sst")[0]), 4096 + 100);
    let ran = session.run(&["repair", "db", "saved"]);
    let said = String::from_utf8(ran.out).expect("reports are UTF-8");
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(ran.err.contains("the repair could not read"), "{}", ran.err);
    assert!(said.contains("lost: table \"t\": ") && said.contains(" rows from row"), "{said}");
    let ran = session.run(&["repair", "db", "again", "--json"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    let report: serde_json::Value = serde_json::from_slice(&ran.out).expect("it is JSON");
    let number = |value: &serde_json::Value| value.as_u64().expect("it is a number");
    let (saved, lost) = (number(&report["rows"]), number(&report["lost"][0]["rows"]));
    assert!(saved + lost == 2_000 && (1..500).contains(&lost), "{report}");
    assert!(report["lost"][0]["from"].as_str().is_some_and(|key| key.starts_with("row")), "{report}");
    assert_eq!(session.run(&["scan", "saved", "t"]).ok().lines().count() as u64, saved);
    session.run(&["repair", "db", "saved"]).fails(2, &["saved is not empty"]);
}
