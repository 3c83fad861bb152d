//! Wrong arguments are usage errors that say what to write.

use crate::session::Session;
use std::io::{Read as _, Write as _};

#[test]
fn wrong_arguments_exit_with_2() {
    let session = Session::new();
    for (args, parts) in [
        (&["nonsense"][..], &["unrecognized subcommand"][..]),
        (&["scan", "db"], &["<TABLE>"]),
        (&["scan", "db", "t", "--format", "csv"], &["invalid value 'csv'", "tsv, jsonl"]),
        (&["scan", "db", "t", "--cache", "64MB"], &["`MB` is not a unit of size", "64MiB"]),
        (&["scan", "db", "t", "--limit", "many"], &["invalid value 'many'"]),
        (&["scan", "db", "t", "--durability", "never"], &["synced, buffered"]),
        (&["import", "db", "t", "rows.dat"], &["what is rows.dat?", "--format csv"]),
        (&["import", "db", "t", "rows.jsonl", "--header"], &["leave --header out"]),
        (&["import", "db", "t", "rows.tsv", "--key", "a,"], &["a key column is a name or a number"]),
        (&["put", "db", "t", "k", "v", "--read-only"], &["leave --read-only out"]),
        (&["demo", "--rows", "0"], &["0 is not in"]),
        (&["load", "db", "t", "--batch", "0"], &["0 is not in"]),
        (&["explain", "db", "t"], &["requires a subcommand", "get, scan"]),
        (&["explain", "db", "t", "get"], &["<KEY>"]),
        (&["explain", "db", "t", "get", "k", "--limit", "1"], &["unexpected argument '--limit'"]),
        (&["explain", "db", "t", "scan", "--limit", "many"], &["invalid value 'many'"]),
        (&["alter", "db", "t"], &["--page <SIZE>", "--compression <METHOD[:LEVEL]>"]),
        (&["alter", "db", "t", "--index", "hash"], &["btree, flat, both"]),
        (
            &["get", "db", "t", "k", "--read-index", "both"],
            &["invalid value 'both' for '--read-index <KIND>'", "btree, flat"],
        ),
        (&["nth", "db", "t", "-1"], &["unexpected argument '-1'"]),
        (&["nth", "db", "t", "first"], &["invalid value 'first' for '<N>'"]),
        (&["sample", "db", "t", "0"], &["0 is not in 1..=10000000"]),
        (&["sample", "db", "t", "5", "--seed", "x"], &["invalid value 'x' for '--seed <N>'"]),
        (&["create-table", "db"], &["<TABLE>"]),
        (&["rename-table", "db", "t"], &["<NEW>"]),
        (&["warm", "db", "t", "--read-only"], &["leave --read-only out"]),
        (&["alter", "db", "t", "--index", "flat", "--read-only"], &["leave --read-only out"]),
        (&["dump", "rows.tsv"], &["rows.tsv is no file to dump"]),
    ] {
        session.run(args).fails(2, parts);
    }
    assert!(!session.has("db"));
}

#[test]
fn help_names_every_command_and_exit_code() {
    let help = Session::new().run(&["--help"]).ok();
    for part in [
        "import",
        "get",
        "put",
        "load",
        "delete",
        "scan",
        "tables",
        "stats",
        "metrics",
        "explain",
        "split",
        "compact",
        "alter",
        "check",
        "dump",
        "demo",
        "bench",
        "Exit codes",
    ] {
        assert!(help.contains(part), "{part}");
    }
}

#[test]
fn what_the_engine_refuses_of_the_arguments_exits_with_2_too() {
    let session = Session::new();
    session.run(&["put", "db", "", "k", "v"]).fails(2, &["a table cannot be named \"\""]);
    session.run(&["put", "db", "t", &"k".repeat(70_000), "v"]).fails(2, &["use a shorter key"]);
    session.run(&["put", "db", "t", "k", "v", "--write-buffer", "4"]).fails(2, &["a write buffer of 4 bytes"]);
    let long = "v".repeat(300);
    session.run(&["put", "db", "t", "k", &long, "--write-buffer", "1KiB"]).fails(2, &["enlarge the write buffer"]);
    session.file("rows.tsv", "a\t1\n");
    session.run(&["import", "db", "t", "rows.tsv", "--page", "100"]).fails(2, &["a page of 100 bytes"]);
}

#[test]
fn a_database_in_use_says_how_to_read_it() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    let mut child = session.start(&["load", "db", "t"]);
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(b"b\t2\n").expect("larch reads");
    let mut stdout = child.stdout.take().expect("it was asked for");
    stdout.read_exact(&mut [0; 2]).expect("larch answers");
    session.run(&["scan", "db", "t"]).fails(3, &["db is in use by another process", "--read-only"]);
    assert_eq!(session.scan(&["--read-only"]), "a\t1\n");
    drop(stdin);
    assert!(child.wait().expect("it was started").success());
    assert_eq!(session.scan(&["--read-only"]), "a\t1\nb\t2\n");
}

#[test]
fn reading_makes_no_database() {
    let session = Session::new();
    for command in ["scan", "get", "delete", "stats", "tables", "compact", "check"] {
        let mut args = vec![command, "db", "t"];
        if matches!(command, "get" | "delete") {
            args.push("k");
        }
        session.run(&args).fails(3, &["db has no database", "larch import"]);
    }
    session.run(&["metrics", "db"]).fails(3, &["db has no database", "larch import"]);
    session.run(&["alter", "db", "t", "--index", "flat"]).fails(3, &["db has no database", "larch import"]);
    assert!(!session.has("db"));
}

#[test]
fn a_binary_without_a_query_engine_says_how_to_get_one() {
    let session = Session::new();
    session.run(&["put", "db", "t", "k", "v"]).ok();
    session.run(&["sql", "db", "SELECT 1"]).fails(2, &["this binary has no query engine", "cargo x sql DIR"]);
    session.run(&["sql", "db"]).fails(2, &["<STATEMENTS>"]);
    session.run(&["sql-scheduler"]).fails(2, &["this binary answers no queries of others", "cargo x sql --ballista"]);
    session.run(&["sql-executor", "--threads", "2"]).fails(2, &["cargo x sql --ballista"]);
}
