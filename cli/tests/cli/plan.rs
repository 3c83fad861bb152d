//! Tests of `plan`, which predicts the size of a table, and of real tables that are compared with the predictions.

use crate::session::Session;
use serde_json::Value;

/// The prediction for `args`.
fn plan(args: &[&str]) -> Value {
    let told = Session::new().run(&[&["plan", "--json"], args].concat()).ok();
    serde_json::from_str(&told).expect("it is JSON")
}

#[test]
fn a_table_that_no_machine_here_holds_is_planned_without_a_database() {
    let session = Session::new();
    let text = session.run(&["plan", "--rows", "1e11", "--row-bytes", "120", "--cache", "1GiB"]).ok();
    for part in ["rows            100,000,000,000, 10.9 TiB", "levels", "filters", "pages read", "1.0 GiB of cache"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert_eq!(text.lines().count(), 8, "{text}");
    assert_eq!(session.names(), Vec::<String>::new());
}

#[test]
fn a_plan_is_near_the_table_that_it_is_for() {
    // The keys are hashes, and so they are spread evenly.
    let rows: String = (0_u64..20_000)
        .map(|number| format!("{:016x}\t{:0100}\n", number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number))
        .collect();
    let session = Session::with(&["--format", "tsv", "--key", "1"], rows);
    let stats: Value = serde_json::from_str(&session.run(&["stats", "db", "t", "--json"]).ok()).expect("it is JSON");
    let planned = plan(&["--rows", "20000", "--row-bytes", "116"]);
    for (name, of) in [("data_bytes", "data_bytes"), ("filter_bytes", "filter_bytes"), ("file_bytes", "file_bytes")] {
        let (planned, there) = (planned[name].as_f64(), stats[of].as_f64());
        let (planned, there) = planned.zip(there).unwrap_or_else(|| panic!("{name}: {planned:?}, {stats}"));
        assert!((planned / there - 1.0).abs() < 0.1, "{name}: {planned} planned, {there} there");
    }
    assert_eq!(planned["height"], stats["index_height"], "{stats}");
}

#[test]
fn sizes_that_make_no_sense_exit_with_2_and_name_the_option() {
    let session = Session::new();
    for (args, part) in [
        (&["--rows", "0", "--row-bytes", "100"][..], "--rows 0"),
        (&["--rows", "many", "--row-bytes", "100"], "64000000 or 64e6"),
        (&["--rows", "1e99", "--row-bytes", "100"], "64000000 or 64e6"),
        (&["--rows", "1e19", "--row-bytes", "100"], "--rows"),
        (&["--rows", "10"], "--row-bytes"),
        (&["--rows", "10", "--row-bytes", "100", "--key-bytes", "101"], "--key-bytes 101"),
        (&["--rows", "10", "--row-bytes", "1MiB"], "--page"),
        (&["--rows", "10", "--row-bytes", "100", "--node", "1MiB"], "--node"),
        (&["--rows", "10", "--row-bytes", "100", "--filters", "13"], "none, 12 or 20"),
    ] {
        session.run(&[&["plan"], args].concat()).fails(2, &[part]);
    }
}
