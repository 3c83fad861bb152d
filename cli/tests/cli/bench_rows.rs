//! Tests of `larch bench rows`: row access on Larch, called as its users call it.

use crate::bench_stops::{interrupt, wait_for};
use crate::session::{Ran, Session};
use serde_json::Value;

/// The columns of the query with which ybio shows results.
const COLUMNS: &str = "duration riops pct_scratch coverage job_id start_time end_time num_batches num_rows pct_update \
                       max_scratch prepared index_only tab_rows batch_size table_name table_rows table_scratch comments";

fn rows(session: &Session, args: &[&str]) -> Ran {
    session.run(&[&["bench", "rows"], args, &["--target", "larch:db"]].concat())
}

/// The standard output of a command, which must have succeeded. Progress goes to standard error.
#[track_caller]
fn done(ran: Ran) -> String {
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    String::from_utf8(ran.out).expect("tables are UTF-8")
}

/// The cells of the table of results: first the names, then the rows.
fn cells(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|line| line.contains(" | "));
    lines.map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn rows_are_set_up_accessed_told_and_dropped() {
    let session = Session::new();
    let ran =
        rows(&session, &["setup", "call setup(tab_prefix=>'bench',tab_num=>1,tab_rows=>2e3::int,batch_size=>200);"]);
    assert!(ran.err.contains("NOTICE:  Inserting 2000 rows in 10 batches of 200\n"), "{}", ran.err);
    assert!(ran.err.contains("NOTICE:  Table bench0001 Progress:   100.00 % (2000 rows)"), "{}", ran.err);
    done(ran);

    let all = ["--tab_rows", "2000", "--batch-size", "100", "--run_duration", "200ms", "--pct-update", "42"];
    let out = ["--initial_count", "true", "--comments", "first", "--out", "result.json"];
    let ran = rows(&session, &[&["run"], &all[..], &out[..]].concat());
    let first = " rows/s on bench0001, job:      1 batch#:     1, total:          100 rows read,";
    assert!(ran.err.contains(first), "{}", ran.err);
    let text = done(ran);
    assert!(text.contains("rows a second: ") && text.contains("page reads a second: "), "{text}");
    assert!(text.contains("entries of the index") && text.contains("rows of the table"), "{text}");
    let result: Value = serde_json::from_slice(&session.bytes("result.json")).expect("it is JSON");
    let job = &result["sessions"][0]["job"];
    let (read, updated) = (job["num_rows"].as_u64().expect("a number"), result["sessions"][0]["updated"].as_u64());
    let share = updated.expect("a number") as f64 / read as f64;
    assert!(read > 200 && (share - 0.42).abs() < 0.3, "{updated:?} of {read}");
    assert_eq!((job["table_rows"].as_u64(), result["sessions"][0]["missing_rows"].as_u64()), (Some(2000), Some(0)));

    let printed = cells(&done(rows(&session, &["results"])));
    assert_eq!(printed[0], COLUMNS.split_whitespace().collect::<Vec<_>>());
    assert_eq!((printed[1][4].as_str(), printed[1][9].as_str(), printed[1][18].as_str()), ("1", "42", "first"));
    assert!(
        printed[1][2].parse::<u32>().is_ok()
            && printed[1][3].starts_with(['x', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
    );

    assert_eq!(done(rows(&session, &["clean"])), "dropped bench0001\ndropped benchruns\n");
    rows(&session, &["run", "--run-duration", "0"]).fails(3, &["there is no table bench0001"]);
}

#[test]
fn many_sessions_access_many_tables_side_by_side() {
    let session = Session::new();
    done(rows(&session, &["setup", "--tables", "2", "--tab-rows", "1000", "--index_as_pk", "true"]));
    let text = done(rows(
        &session,
        &[
            "run",
            "--tables",
            "2",
            "--sessions",
            "3",
            "--tab-rows",
            "1000",
            "--batch-size",
            "10",
            "--pct-update",
            "50",
            "--run-duration",
            "200ms",
        ],
    ));
    assert!(text.contains(" in 6 sessions\n"), "{text}");
    let printed = cells(&done(rows(&session, &["results"])));
    let tables: Vec<&str> = printed[1..].iter().map(|row| row[15].as_str()).collect();
    assert_eq!(tables.iter().filter(|table| **table == "bench0001").count(), 3, "{tables:?}");
    assert_eq!(tables.iter().filter(|table| **table == "bench0002").count(), 3, "{tables:?}");
}

#[test]
fn a_session_that_was_killed_has_no_end_and_is_on_top() {
    let session = Session::new();
    done(rows(&session, &["setup", "--tab-rows", "1000"]));
    done(rows(&session, &["run", "--tab-rows", "1000", "--batch-size", "10", "--run-duration", "0"]));
    let mut child =
        session.start(&["bench", "rows", "run", "--target", "larch:db", "--tab-rows", "1000", "--run-duration", "1h"]);
    let _rest = wait_for(&mut child, "rows/s");
    let printed = cells(&done(rows(&session, &["results"])));
    assert_eq!((printed.len(), printed[1][6].as_str()), (3, ""), "it goes on: {printed:?}");
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
    let printed = cells(&done(rows(&session, &["results"])));
    assert_eq!((printed[1][0].as_str(), printed[1][4].as_str(), printed[1][6].as_str()), ("", "2", ""), "{printed:?}");
    assert_ne!(printed[2][6], "", "{printed:?}");
}

#[test]
fn an_interrupt_ends_a_session_in_good_order() {
    let session = Session::new();
    done(rows(&session, &["setup", "--tab-rows", "1000"]));
    let mut child =
        session.start(&["bench", "rows", "run", "--target", "larch:db", "--tab-rows", "1000", "--run-duration", "1h"]);
    let rest = wait_for(&mut child, "rows/s");
    interrupt(&child);
    assert_eq!(rest(child).code, Some(130));
    let printed = cells(&done(rows(&session, &["results"])));
    assert_ne!((printed[1][0].as_str(), printed[1][6].as_str()), ("", ""), "{printed:?}");
}

#[test]
fn wrong_parameters_are_named() {
    let session = Session::new();
    for (args, named) in [
        (&["setup", "--tab-rows", "many"][..], "tab_rows"),
        (&["setup", "tab_rows=>"], "tab_rows"),
        (&["setup", "rows=>1"], "there is no parameter rows"),
        (&["run", "pct_update=>101"], "pct_update"),
        (&["setup", "--orderby", "yb_hash_code(mykey)"], "expression of SQL"),
        (&["setup", "--tab-num", "9999", "--tables", "2"], "four digits"),
    ] {
        let ran = rows(&session, args);
        assert!(ran.err.contains(named), "{args:?}: {}", ran.err);
        assert_eq!(ran.code, Some(2), "{args:?}");
    }
    assert!(!session.has("db"), "what is refused makes no database");
    rows(&Session::new(), &["results"]).fails(3, &["set it up first"]);
}
