//! Tests of `stats` for ranges of keys, and of `split`.

use crate::session::Session;
use serde_json::Value;

/// A table of 20,000 rows with numbers as keys, in some 70 data pages.
fn many_rows() -> Session {
    let rows: String = (0..20_000).map(|i| format!("{i}\tthe text of row {i}, which goes on for a while\n")).collect();
    Session::with(&["--format", "tsv", "--key", "1:int"], rows)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

/// Whether the true number lies in the interval.
fn holds(interval: &Value, truth: u64) -> bool {
    let side = |name: &str| interval[name].as_u64().expect("it is a number");
    side("low") <= truth && truth <= side("high")
}

#[test]
fn stats_of_a_range_hold_the_truth_and_count_it_if_asked() {
    let session = many_rows();
    let stats = json(&session.run(&["stats", "db", "t", "--from", "100", "--to", "7100", "--json"]).ok());
    assert!(holds(&stats["rows"], 7_000) && stats["exact_rows"].is_null(), "{stats}");
    assert!(!holds(&stats["rows"], 6_000), "two pages have fewer rows: {stats}");
    let stats = json(&session.run(&["stats", "db", "t", "--from", "100", "--to", "7100", "--exact", "--json"]).ok());
    assert_eq!(stats["exact_rows"], 7_000);
    let text = session.run(&["stats", "db", "t", "--from", "100", "--to", "7100", "--exact"]).ok();
    assert!(text.starts_with("table t\n  rows          7,000, counted\n"), "{text}");
    let text = session.run(&["stats", "db", "t", "--buckets", "4"]).ok();
    assert!(text.starts_with("table t\n  rows          20,000, exactly\n"), "{text}");
    for part in
        ["\n  keys ", "\n  < \"", "\"~ ", "\n  to the end ", " 100 %  ####", "~ stands after a string between two keys"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.lines().filter(|line| line.contains(" %  #")).count(), 4, "{text}");
}

#[test]
fn the_keys_of_buckets_and_parts_are_taken_by_scan() {
    let session = many_rows();
    let all = session.scan(&["--keys"]);
    let stats = session.run(&["stats", "db", "t", "--buckets", "5", "--json"]).ok();
    let split = session.run(&["split", "db", "t", "--parts", "5", "--json"]).ok();
    for parts in [&json(&stats)["buckets"], &json(&split)["parts"]] {
        let parts = parts.as_array().expect("it is a list");
        assert_eq!(parts.len(), 5, "{parts:?}");
        let mut joined = String::new();
        for part in parts {
            let mut args = vec!["--keys"];
            for (name, option) in [("from", "--from"), ("to", "--to")] {
                if let Some(key) = part[name].as_str() {
                    args.extend([option, key]);
                }
            }
            let keys = session.scan(&args);
            let rows = keys.lines().count() as u64;
            assert!(holds(&part["rows"], rows), "{rows} rows are not in {part}");
            assert!(rows.abs_diff(4_000) < 800, "{rows} rows are not about a fifth");
            joined += &keys;
        }
        assert_eq!(joined, all);
    }
    let text = session.run(&["split", "db", "t", "--parts", "5"]).ok();
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(text.starts_with("        rows       bytes  before\n") && text.ends_with("  (the end)\n"), "{text}");
}

#[test]
fn keys_of_several_columns_are_cut_to_text_that_scan_takes() {
    let rows: String = (0..20_000).map(|i| format!("city {}\t{}\tsome text\n", i / 1_000, i % 1_000)).collect();
    let session = Session::with(&["--format", "tsv", "--key", "1,2:int"], rows);
    let split = json(&session.run(&["split", "db", "t", "--parts", "7", "--json"]).ok());
    let parts = split["parts"].as_array().expect("it is a list");
    let to = parts[2]["to"].as_str().expect("there are parts after it");
    let before = session.scan(&["--keys", "--to", to]).lines().count() as u64;
    assert!(before.abs_diff(20_000 * 3 / 7) < 2_000, "{before} rows before {to}");
    assert_eq!(session.scan(&["--keys", "--from", to]).lines().count() as u64, 20_000 - before);
}

#[test]
fn a_small_table_is_one_part() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    let split = session.run(&["split", "db", "t", "--parts", "8"]).ok();
    assert_eq!(split.lines().count(), 2, "{split}");
    assert!(split.lines().nth(1).is_some_and(|line| line.trim_start().starts_with("1 ")), "{split}");
    let text = session.run(&["stats", "db", "t", "--exact"]).ok();
    assert!(text.contains("rows          1, counted\n") && text.contains("to the end "), "{text}");
    let text = session.run(&["stats", "db", "t", "--from", "b", "--to", "a"]).ok();
    assert!(text.contains("rows          0, exactly\n"), "{text}");
    session.run(&["delete", "db", "t", "a"]).ok();
    let text = session.run(&["stats", "db", "t", "--exact"]).ok();
    assert!(text.contains("rows          0, counted\n"), "{text}");
    session.run(&["compact", "db", "t"]).ok();
    let text = session.run(&["stats", "db", "t", "--exact"]).ok();
    assert_eq!(text, "table t\n  rows          0, counted\n  in files      0 B, 0 versions\n");
    let split = session.run(&["split", "db", "t", "--parts", "8", "--json"]).ok();
    assert_eq!(json(&split)["parts"].as_array().map(Vec::len), Some(1), "{split}");
}

#[test]
fn wrong_questions_are_refused() {
    let session = many_rows();
    session.run(&["split", "db", "u", "--parts", "2"]).fails(1, &["no table u"]);
    session.run(&["stats", "db", "u", "--buckets", "2"]).fails(1, &["no table u"]);
    session.run(&["split", "db", "t"]).fails(2, &["--parts <N>"]);
    session.run(&["split", "db", "t", "--parts", "0"]).fails(2, &["0 is not in"]);
    session.run(&["stats", "db", "t", "--buckets", "0"]).fails(2, &["0 is not in"]);
    session.run(&["stats", "db", "t", "--from", "seven"]).fails(2, &["not a whole number"]);
    session.run(&["stats", "db", "--from", "7"]).fails(2, &["<TABLE>"]);
}
