//! Tests of `larch bench ycsb` on a PostgreSQL server that is started for them. If PostgreSQL is missing, these
//! tests fail and name the package to install.

use crate::bench::{RECORDS, has_seed_lines, oks, runs, ycsb};
use crate::bench_stops::wait_for;
use crate::session::Session;
use stores::postgres::server::{Server, ServerOptions};

/// A small test would spend most of its time on syncing.
fn server() -> Server {
    let settings = vec![("fsync".to_owned(), "off".to_owned())];
    Server::start(&ServerOptions { settings, ..ServerOptions::default() }).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn postgresql_is_loaded_and_run_on() {
    let session = Session::new();
    let server = server();
    let target = format!("{}&connections=4", server.url("postgres"));
    let on = ["--target", &target, "-p", RECORDS, "--out", "r.json"];

    let none = ycsb(&session, &[&["run", "-P", "a"], &on[..]].concat());
    none.fails(3, &["table `usertable`", "load it first"]);

    let told = ycsb(&session, &[&["load", "-P", "a", "--threads", "3"], &on[..]].concat()).ok();
    assert!(told.contains("engine: PostgreSQL 1") && told.contains("500 operations in"), "{told}");
    let load = &runs(&session, "r.json")[0];
    assert_eq!(load["measured"]["operations"], 500);
    let kinds = load["measured"]["kinds"].as_array().expect("there are kinds");
    let insert = kinds.iter().find(|kind| kind["name"] == "INSERT").expect("rows were inserted");
    assert_eq!(insert["batched"], 500, "rows are copied");
    let count = |sql: &str| server.connect().expect("it runs").value(sql).expect("a number");
    assert_eq!(count("SELECT count(*) FROM usertable"), "500");

    let again = ycsb(&session, &[&["load", "-P", "a"], &on[..]].concat());
    again.fails(2, &["table usertable is not empty", "--recreate"]);

    for workload in ["a", "b", "c", "f", "d", "e"] {
        if workload == "e" {
            // Workload E would insert records that workload D has already inserted, so the table is loaded again.
            ycsb(&session, &[&["load", "-P", "e", "--recreate"], &on[..]].concat()).ok();
        }
        let args = [&["run", "-P", workload, "--operations", "300", "--threads", "4"], &on[..]].concat();
        ycsb(&session, &args).ok();
        let run = &runs(&session, "r.json")[0];
        assert_eq!(
            (&run["measured"]["operations"], &run["measured"]["failed"]),
            (&300.into(), &0.into()),
            "{workload}"
        );
        let kinds: Vec<String> = oks(run).into_iter().map(|(name, _)| name).collect();
        assert_eq!(kinds.iter().any(|kind| kind == "SCAN"), workload == "e", "{workload}: {kinds:?}");
    }
}

#[test]
fn a_run_of_which_half_of_the_operations_failed_ends_with_1() {
    let session = Session::new();
    let server = server();
    let target = server.url("postgres");
    ycsb(&session, &["load", "-P", "a", "-p", RECORDS, "--target", &target]).ok();
    let read_only = format!("{target}&default_transaction_read_only=on");
    let run = ["run", "-P", "a", "-p", RECORDS, "--operations", "200", "--target", &read_only, "--out", "r.json"];
    let ran = ycsb(&session, &run);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains(" operations failed") && ran.err.contains("read_only_sql_transaction"), "{}", ran.err);
    let measured = &runs(&session, "r.json")[0]["measured"];
    assert!(measured["failed"].as_u64() > Some(50), "{measured}");
}

#[test]
fn a_user_who_is_not_there_and_an_address_with_a_password_are_named_as_they_are() {
    let session = Session::new();
    let server = server();
    let url = server.url("postgres");
    let (_, place) = url.split_once('@').expect("it has a user");
    let target = format!("postgres://nobody_of_this_name@{place}");
    let ran = ycsb(&session, &["run", "-P", "c", "-p", RECORDS, "--target", &target]);
    assert!(!ran.err.contains("pg_hba.conf") && !ran.err.contains("TLS is not supported"), "{}", ran.err);
    ran.fails(3, &["does not exist", "make the user with createuser"]);
    for secret in ["se/cret", "se?cret", "s@se/cret", "/secret", "secret#x", "se%cret"] {
        let target = format!("postgres://odd:{secret}@127.0.0.1:1/x");
        for command in [&["ycsb", "run", "-P", "c"][..], &["rows", "run"], &["tpcc", "run"], &["kv", "-mode", "read"]] {
            let ran = session.run(&[&["bench"], command, &["--target", &target]].concat());
            assert!(ran.code != Some(0) && !ran.err.contains("cret"), "{command:?} {secret}: {}", ran.err);
        }
    }
}

#[test]
fn all_of_it_runs_on_postgresql() {
    let session = Session::new();
    let server = server();
    let target = format!("{}&connections=2&pipeline=4&synchronous_commit=off", server.url("postgres"));
    let args = ["all", "-p", RECORDS, "--target", &target, "--threads", "8", "--time", "500ms", "--out", "r.json"];
    let told = ycsb(&session, &args);
    assert_eq!(told.code, Some(0), "{}", told.err);
    let text = String::from_utf8(told.out).expect("tables are UTF-8");
    assert!(text.contains("durability: buffered") && text.contains("synchronous_commit off"), "{text}");
    assert!(text.contains("2 connections with 4 requests each"), "{text}");
    let runs = runs(&session, "r.json");
    assert_eq!(runs.len(), 8);
    assert!(runs.iter().all(|run| run["measured"]["operations"].as_u64().is_some_and(|count| count > 0)));
    has_seed_lines(&text, "abcfde");

    let waits_are_told = |connections: &str, workers: &str| {
        let target = format!("{}&{connections}", server.url("postgres"));
        let args = ["run", "-P", "c", "--threads", "8", "--target", &target, "--workers", workers, "-p", RECORDS];
        let ran = ycsb(&session, &args);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.err.contains("the 8 clients wait for each other") && ran.err.contains("raise `connections`")
    };
    assert!(waits_are_told("connections=1", "1"));
    assert!(waits_are_told("connections=1", "2"));
    assert!(!waits_are_told("connections=8", "1"));
    assert!(!waits_are_told("connections=2&pipeline=2", "2"));
}

#[test]
fn a_server_that_stops_is_told_with_what_was_measured_until_then() {
    let session = Session::new();
    let mut server = server();
    let target = server.url("postgres");
    ycsb(&session, &["load", "-P", "a", "--target", &target]).ok();
    // A load and a run end in the same way.
    let more = ["-p", "table=another", "-p", "recordcount=1000000000"];
    let load = [&["bench", "ycsb", "load", "-P", "a", "--target", &target, "--out", "load.json"], &more[..]].concat();
    let run = ["bench", "ycsb", "run", "-P", "a", "--target", &target, "--out", "run.json", "--time", "10h"];
    let mut loads = session.start(&load);
    let mut runs_on = session.start(&run);
    let rest_of_load = wait_for(&mut loads, "load a ");
    let rest_of_run = wait_for(&mut runs_on, "workload a ");
    server.kill().expect("it runs");
    for (ran, name, file) in
        [(rest_of_load(loads), "load a", "load.json"), (rest_of_run(runs_on), "workload a", "run.json")]
    {
        assert_eq!(ran.code, Some(3), "{}", ran.err);
        assert!(ran.err.contains(&format!("larch: {name}: client 0 lost its session")), "{}", ran.err);
        assert!(String::from_utf8(ran.out).expect("tables are UTF-8").contains("FAILED"));
        let run = &runs(&session, file)[0];
        assert!(run["error"].as_str().is_some_and(|error| error.contains("lost its session")), "{run}");
        assert!(run["measured"]["operations"].as_u64().is_some_and(|count| count > 0), "{run}");
    }

    let refused = ycsb(&session, &["run", "-P", "a", "--target", &target]);
    refused.fails(3, &["cannot connect to PostgreSQL at", "start the server"]);
}
