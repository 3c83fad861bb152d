//! Tests of `larch bench tpcc`: TPC-C on Larch, called as its users call it.

use crate::bench_stops::{interrupt, wait_for};
use crate::session::{Ran, Session};
use serde_json::Value;

const TARGET: &str = "larch:db?cache=64MiB";

fn tpcc(session: &Session, args: &[&str]) -> Ran {
    session.run(&[&["bench", "tpcc"], args].concat())
}

/// The standard output of a command, which must have succeeded. Progress goes to standard error.
#[track_caller]
fn done(ran: Ran) -> String {
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    String::from_utf8(ran.out).expect("results are UTF-8")
}

#[track_caller]
fn is_consistent(session: &Session, options: &[&str]) {
    let told = done(tpcc(session, &[&["check", "--target", TARGET], options].concat()));
    assert!(told.starts_with("all twelve conditions hold: 2 warehouses, "), "{told}");
}

#[test]
fn two_warehouses_are_loaded_run_checked_and_removed() {
    let session = Session::new();
    let told = done(tpcc(&session, &["import", "--target", TARGET, "--warehouses", "2"]));
    for line in ["Loading data done in ", "Compaction done in ", "Built index in "] {
        assert!(told.contains(line), "{told}");
    }
    is_consistent(&session, &["--after-import"]);

    let run = ["run", "--target", TARGET, "--mode", "nowait", "--warmup", "100ms", "--time", "1s", "--threads", "2"];
    let told = done(tpcc(&session, &[&run[..], &["--check", "--out", "r.json"]].concat()));
    let first = "Result: Total\nTime: 1 seconds\nStart measure: ";
    assert!(told.starts_with(first) && told.contains("\nWarehouses: 2\nNew orders: "), "{told}");
    assert!(told.contains("Efficiency: none, since terminals do not wait\n"), "{told}");
    assert!(told.contains("These are no official results of TPC."), "{told}");
    let report: Value = serde_json::from_slice(&session.bytes("r.json")).expect("it is JSON");
    let settings = report["runs"][0]["settings"].as_array().expect("a list");
    let snapshots =
        settings.iter().find(|pair| pair["name"] == "consistent snapshots during the run").expect("it checked");
    assert!(snapshots["value"].as_str().expect("a text").parse::<u64>().expect("a number") > 0, "{snapshots}");
    let measured = &report["runs"][0]["measured"];
    let names: Vec<&str> = measured["kinds"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|kind| kind["name"].as_str().expect("a text"))
        .collect();
    assert_eq!(names, ["NewOrder", "Payment", "OrderStatus", "Delivery", "StockLevel"]);
    let orders = measured["kinds"][0]["oks"].as_u64().expect("a number");
    let lines = measured["counts"][0]["value"].as_u64().expect("a number");
    assert!(orders > 0 && (5 * orders..=15 * (orders + orders / 10 + 10)).contains(&lines), "{orders}, {lines}");
    is_consistent(&session, &[]);
    // The rows have changed. A check that expects the rows as the import has made them must fail.
    let changed = tpcc(&session, &["check", "--target", TARGET, "--after-import", "-q"]);
    assert_eq!(changed.code, Some(1), "{}", changed.err);

    done(session.run(&["bench", "report", "r.json", "--out", "r.html"]));
    let page = String::from_utf8(session.bytes("r.html")).expect("a page is UTF-8");
    assert!(page.contains("NewOrder"), "the page has its transactions");
    let of_tpcc = &report["runs"][0]["tpcc"];
    assert_eq!(of_tpcc["notice"], "These are no official results of TPC.");
    let tpmc = of_tpcc["tpmc"].as_f64().expect("a number");
    assert!(told.contains(&format!("\ntpmC: {tpmc:.0}\n")), "{of_tpcc} {told}");
    assert!(of_tpcc["efficiency"].is_null(), "terminals do not wait: {of_tpcc}");
    assert_eq!(of_tpcc["transactions"][0]["ok"].as_u64(), of_tpcc["new_orders"].as_u64(), "{of_tpcc}");
    let limits = of_tpcc["limits"].as_array().expect("a list");
    assert!(
        limits.iter().any(|limit| limit["name"] == "90 % of Payment within" && limit["holds"] == true),
        "{of_tpcc}"
    );
    for part in ["These are no official results of TPC.", "tpmC", &format!("{tpmc:.0}"), "rolled back", "DOES NOT HOLD"]
    {
        let is_there = page.contains(part) || (part == "DOES NOT HOLD" && page.contains("holds"));
        assert!(is_there, "the page has {part:?}");
    }

    assert_eq!(done(tpcc(&session, &["clean", "--target", TARGET])), "");
    tpcc(&session, &["check", "--target", TARGET]).fails(2, &["use import first"]);
}

#[test]
fn an_import_goes_on_where_it_was_interrupted_and_a_killed_run_leaves_a_consistent_database() {
    let session = Session::new();
    done(tpcc(&session, &["init", "--target", TARGET, "--warehouses", "2"]));
    tpcc(&session, &["init", "--target", TARGET, "--warehouses", "2"])
        .fails(2, &["there is a database of 2 warehouses"]);
    tpcc(&session, &["import", "--target", TARGET, "--warehouses", "3"]).fails(2, &["was made with 2 warehouses"]);
    let mut child = session.start(&["bench", "tpcc", "import", "--target", TARGET]);
    let rest = wait_for(&mut child, "loading: ");
    interrupt(&child);
    let ran = rest(child);
    assert!(matches!(ran.code, Some(130 | 0)), "{}", ran.err);
    done(tpcc(&session, &["import", "--target", TARGET, "-q"]));
    is_consistent(&session, &["--after-import"]);

    let mut child = session.start(&["bench", "tpcc", "run", "--target", TARGET, "--mode", "nowait", "--time", "1h"]);
    let rest = wait_for(&mut child, "  measured ");
    child.kill().expect("it runs");
    rest(child);
    is_consistent(&session, &[]);
}

#[test]
fn ten_thousand_terminals_share_one_connection() {
    let session = Session::new();
    let run = ["run", "--target", "noop:", "--warehouses", "1000", "--connections", "1", "--mode", "nowait"];
    let told = done(tpcc(&session, &[&run[..], &["--warmup", "0s", "--time", "500ms", "-q"]].concat()));
    assert!(told.contains(" 10000 clients"), "{told}");
    assert!(told.contains("Waiting for a connection: "), "{told}");
}

#[test]
fn terminals_that_wait_do_so_and_stop_at_once() {
    let session = Session::new();
    let mut child = session.start(&[
        "bench",
        "tpcc",
        "run",
        "--target",
        "noop:",
        "--warehouses",
        "300",
        "--time",
        "10h",
        "--warmup",
        "0s",
    ]);
    let rest = wait_for(&mut child, "  measured ");
    interrupt(&child);
    let ran = rest(child);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    let told = String::from_utf8(ran.out).expect("results are UTF-8");
    assert!(told.contains("Efficiency: ") && told.contains("Of what the deck allows"), "{told}");
}

#[test]
fn wrong_arguments_are_refused_with_a_way_out() {
    let session = Session::new();
    tpcc(&session, &["import", "--target", "larch:db"]).fails(2, &["--warehouses: say how many"]);
    let many = ["import", "--target", "larch:db", "--warehouses", "10000000"];
    tpcc(&session, &many).fails(3, &["has room for", "make fewer warehouses"]);
    assert!(!session.has("db"), "what is refused makes no database");
    tpcc(&session, &["init", "--target", "larch:db"]).fails(2, &["--warehouses: say how many"]);
    assert!(!session.has("db"), "what is refused makes no database");
    tpcc(&session, &["run", "--target", "noop:"]).fails(2, &["--warehouses: say how many"]);
    let simulate = ["run", "--simulate", "--warehouses", "1", "--target"];
    for target in ["larch:db", "noop:"] {
        let refused = tpcc(&session, &[&simulate[..], &[target]].concat());
        refused.fails(2, &["--simulate: ", target, "only postgres, cockroach, yugabyte"]);
    }
    tpcc(&session, &["run", "--target", "postgres://nobody@127.0.0.1:1/none?isolation=some"])
        .fails(2, &["isolation=some"]);
    tpcc(&session, &["run", "--target", "sqlite:db"]).fails(2, &["cargo x bench --with sqlite"]);
    tpcc(&session, &["run", "--target", "redb:db"]).fails(2, &["no TPC-C on `redb`", "larch, noop, postgres"]);
    tpcc(&session, &["run", "--target", "larch:nowhere"]).fails(3, &["no database in nowhere"]);
    tpcc(&session, &["run", "--target", "larch:db?cache=much"]).fails(2, &["cache"]);
    let more = ["run", "--target", "noop:?counters=merge", "--warehouses", "1"];
    tpcc(&session, &more).fails(2, &["there is no option `counters`"]);
    tpcc(&session, &["run", "--target", "noop:", "--warehouses", "0"]).fails(2, &["warehouses"]);
    assert!(!session.has("nowhere"), "a run makes no database");
}

#[test]
fn what_has_no_rows_is_not_checked() {
    let session = Session::new();
    let nothing = ["`noop:` keeps no rows: there is nothing to check"];
    tpcc(&session, &["check", "--target", "noop:"]).fails(2, &nothing);
    tpcc(&session, &["run", "--target", "noop:", "--warehouses", "1", "--check"]).fails(2, &nothing);
    done(tpcc(&session, &["init", "--target", TARGET, "--warehouses", "1"]));
    let checked = tpcc(&session, &["check", "--target", TARGET]);
    assert!(checked.out.is_empty(), "nothing is found where nothing is: {}", checked.err);
    checked.fails(2, &["nothing is imported yet: use import first"]);
}
