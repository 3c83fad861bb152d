//! Tests that wrong arguments are usage errors, and that the messages say what to write instead.

use crate::session::{Ran, Session};
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin};

#[test]
fn wrong_arguments_exit_with_2() {
    let session = Session::new();
    for (args, parts) in [
        (&["nonsense"][..], &["unrecognized subcommand"][..]),
        (&["scan", "db"], &["<TABLE>"]),
        (&["scan", "db", "t", "--format", "xml"], &["invalid value 'xml'", "csv, tsv, jsonl, arrow, parquet"]),
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
        (
            &["backup", "db", "backups", "--keep", "1", "--at", "10m"],
            &["cannot be used with", "'--keep <N>'", "'--at <NAME|VERSION|TIME>'"],
        ),
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

/// Commands that read table `t` of `db`. A process writes to the database and has a row only in its log. The
/// second field is a part of the command's output that shows this row.
const READERS: [(&[&str], &str); 24] = [
    (&["history", "db", "t", "b"], "put\t2\n"),
    (&["diff", "db", "t", "2"], ""),
    (&["diff", "db", "t", "--with", "db"], ""),
    (&["changes", "db", "--from", "2"], ""),
    (&["replicate", "db", "mirror"], "2 rows copied"),
    (&["count", "db", "t", "--exact"], "2\n"),
    (&["export", "db", "t", "out.tsv", "--overwrite"], "table t: 2 rows in out.tsv"),
    (&["get", "db", "t", "b"], "2\n"),
    (&["scan", "db", "t"], "b\t2\n"),
    (&["nth", "db", "t", "1"], "b\t2\n"),
    (&["sample", "db", "t", "9"], "\n"),
    (&["tables", "db"], "t: "),
    (&["stats", "db", "t", "--exact"], "rows          2, counted\n"),
    (&["stats", "db", "t"], "table t\n"),
    (&["metrics", "db"], "{"),
    (&["explain", "db", "t", "get", "b"], "answer   found, 1 byte of value"),
    (&["explain", "db", "t", "scan"], "answer   2 rows"),
    (&["split", "db", "t", "--parts", "2"], "(the end)"),
    (&["check", "db"], "no damage"),
    (&["index", "check", "db"], ""),
    (&["dump", "db", "t"], ""),
    (&["index", "list", "db"], ""),
    (&["shell", "db"], ""),
    (&["options"], "--cache"),
];

/// Like [`READERS`], for commands that write outside of the database, or go on until they are ended.
const COPIERS: [(&[&str], &str); 4] = [
    (&["follow", "db", "--lines", "1"], "version "),
    (&["checkpoint", "db", "copy"], "copy"),
    (&["checkpoint", "db", "copy at", "--at", "2"], "copy at has version 2"),
    (&["backup", "db", "kept"], "backup 1"),
];

/// The commands that only read, in words such as `index list`: those that take `--follow`.
fn names_of_readers() -> Vec<String> {
    fn collect(command: &clap::Command, path: &str, names: &mut Vec<String>) {
        for below in command.get_subcommands() {
            collect(below, format!("{path} {}", below.get_name()).trim(), names);
        }
        let is_shown = |option: &clap::Arg| option.get_id() == "follow" && !option.is_hide_set();
        if !command.has_subcommands() && command.get_arguments().any(is_shown) {
            names.push(path.to_owned());
        }
    }
    let mut command = larch_cli::command();
    command.build();
    let mut names = Vec::new();
    collect(&command, "", &mut names);
    names
}

/// A database with a row in files, and a process that writes to it. The process has committed a second row, which
/// is in the log, and waits for more rows.
pub fn with_writer() -> (Session, Child, ChildStdin) {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    let mut child = session.start(&["load", "db", "t"]);
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(b"b\t2\n").expect("larch reads");
    let mut stdout = child.stdout.take().expect("it was asked for");
    stdout.read_exact(&mut [0; 2]).expect("larch answers");
    // The process prints more when it ends, so its output must stay open.
    child.stdout = Some(stdout);
    (session, child, stdin)
}

#[test]
fn a_command_that_reads_needs_no_lock_and_sees_what_a_writer_has_committed() {
    let (session, mut child, stdin) = with_writer();
    for (args, part) in READERS.into_iter().chain(COPIERS) {
        let printed = session.run(args).ok();
        assert!(printed.contains(part), "{args:?}: {printed}");
    }
    let all = names_of_readers();
    assert!(all.len() > 10, "{all:?}");
    for name in all.iter().filter(|name| *name != "sql") {
        let is_tried = |args: &[&str]| match name.split_once(' ') {
            Some((first, second)) => args[0] == first && args.contains(&second),
            None => args[0] == name,
        };
        assert!(READERS.iter().any(|(args, _)| is_tried(args)), "nothing tries {name} beside a writer");
    }
    // The copies have the row of the log, too.
    session.run(&["restore", "kept", "again"]).ok();
    for copy in ["copy", "again"] {
        assert_eq!(session.run(&["scan", copy, "t"]).ok(), "a\t1\nb\t2\n", "{copy}");
    }
    assert_eq!(session.scan(&["--read-only"]), "a\t1\n", "what is in files");
    let advice = "commands that only read do not wait";
    session.run(&["put", "db", "t", "c", "3"]).fails(3, &["db is in use by another process", advice]);
    drop(stdin);
    assert!(child.wait().expect("it was started").success());
    assert_eq!(session.scan(&["--read-only"]), "a\t1\nb\t2\n");
}

#[test]
fn what_a_scan_prints_is_loaded_into_the_same_database() {
    let session = Session::new();
    for round in 0..5 {
        let rows: String = (0..2_000).map(|row| format!("old{row}\tx\nnew{row}\tx\n")).collect();
        session.run_with(&["load", "db", "t", "--batch", "500"], rows).ok();
        let pipe = r#""$0" scan db t --prefix old --keys | "$0" load db t --delete --batch 300"#;
        session.run_under(&["sh", "-c", pipe], &[], "").ok();
        let left = session.scan(&["--keys"]);
        assert_eq!((left.lines().count(), left.contains("old")), (2_000, false), "round {round}");
    }
    session.is_sound();
}

#[test]
fn a_database_that_may_not_be_written_is_read() {
    let (session, mut child, _stdin) = with_writer();
    // The process is killed, so the row stays in the log.
    child.kill().expect("it runs until it is killed");
    child.wait().expect("it was started");
    let before = session.names_in("db");
    for (args, part) in READERS {
        // The test needs a file system that is mounted read-only, because on other file systems root may do
        // anything.
        let mount = r#"mount --bind db db && mount -o remount,bind,ro db && exec "$0" "$@""#;
        let ran = session.run_under(&["unshare", "--mount", "--map-root-user", "sh", "-c", mount], args, "");
        if ran.err.starts_with("unshare: ") || ran.err.starts_with("mount: ") {
            println!("this machine allows no mounts: {}", ran.err);
            return;
        }
        let printed = ran.ok();
        assert!(printed.contains(part), "{args:?}: {printed}");
    }
    assert_eq!(session.names_in("db"), before, "nothing is written");
    assert_eq!(session.scan(&[]), "a\t1\nb\t2\n");
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
    session.run(&["sql", "db", "SELECT 1"]).fails(2, &["larch sql is not in this build of larch", "--features sql"]);
    session.run(&["sql", "db"]).fails(2, &["<STATEMENTS>"]);
    session.run(&["sql-scheduler"]).fails(2, &["larch sql-scheduler is not in this build", "--features cluster"]);
    session
        .run(&["sql-executor", "--threads", "2"])
        .fails(2, &["larch sql-executor is not in this build", "--features cluster"]);
}

#[test]
fn a_database_is_made_among_no_other_files() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    session.file("home/notes.txt", "mine");
    session.file("rows.tsv", "a\t1\n");
    for args in [
        &["put", "home", "t", "k", "v"][..],
        &["create-table", "home", "t"],
        &["import", "home", "t", "rows.tsv"],
        &["load", "home", "t"],
    ] {
        session.run(args).fails(2, &["home has no database, and holds other files (notes.txt)"]);
    }
    assert_eq!(session.names_in("home"), ["notes.txt"]);
    // Files of a database whose creation was interrupted do not count as other files.
    session.file("half/MANIFEST-00000001", "");
    session.file("half/LOCK", "");
    session.run(&["put", "half", "t", "k", "v"]).ok();
    std::fs::create_dir(session.path("empty")).expect("a test can make a directory");
    session.run(&["put", "empty", "t", "k", "v"]).ok();
}

#[test]
fn nothing_is_made_within_a_database() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    session.file("rows.tsv", "a\t1\n");
    session.run(&["backup", "db", "kept"]).ok();
    for args in [
        &["checkpoint", "db", "db/copy"][..],
        &["checkpoint", "db", "./db/sub/../copy"],
        &["backup", "db", "db/kept"],
        &["restore", "kept", "db/again"],
        &["restore", "kept", "kept/again"],
        &["build-files", "rows.tsv", "--out", "db/built"],
        &["repair", "db", "db/saved"],
        &["put", "db/inner", "t", "k", "v"],
    ] {
        session.run(args).fails(2, &["lies in", "name a directory outside of it"]);
    }
    let mut inside = session.command(&["checkpoint", ".", "copy"]);
    let ran = Ran::new(inside.current_dir(session.path("db")).output().expect("larch was built"));
    ran.fails(2, &["name a directory outside of it"]);
    // What is left of a damaged database may not be enough to recognize it as a database.
    std::fs::remove_file(session.path("db/CURRENT")).expect("it is there");
    session.run(&["repair", "db", "db/saved"]).fails(2, &["db/saved lies in db"]);
    session.run(&["repair", "db", "saved"]).ok();
}
