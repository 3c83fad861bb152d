//! Wrong arguments are usage errors that say what to write.

use crate::session::Session;

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
    ] {
        session.run(args).fails(2, parts);
    }
    assert!(!session.has("db"));
}

#[test]
fn help_names_every_command_and_exit_code() {
    let help = Session::new().run(&["--help"]).ok();
    for part in
        ["import", "get", "put", "delete", "scan", "tables", "stats", "compact", "check", "dump", "demo", "Exit codes"]
    {
        assert!(help.contains(part), "{part}");
    }
}

#[test]
fn reading_makes_no_database() {
    let session = Session::new();
    for command in ["scan", "get", "delete", "stats", "tables", "compact", "check"] {
        let mut args = vec![command, "db", "t"];
        if matches!(command, "get" | "delete") {
            args.push("k");
        }
        session.run(&args).fails(3, &["db"]);
    }
    assert!(!session.has("db"));
}
