//! Tests of the past: what is retained, what a row was, what each commit changed, and databases that take commits from
//! another one.

use crate::bench_stops::interrupt;
use crate::follow::{Writer, key};
use crate::session::Session;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;

#[test]
fn what_is_retained_is_read_by_version_and_by_time() {
    let session = Session::new();
    session.run(&["put", "db", "t", "a", "1"]).ok();
    session.run(&["retain", "db"]).ok();
    let told = session.run(&["retain", "db"]).ok();
    assert_eq!(told, "nothing: only version 1 and versions with names can be read\n0 older rows in 0 B\n");
    let told = session.run(&["retain", "db", "--time", "7d"]).ok();
    assert!(
        told.starts_with("time 7d: versions 1 to 1, since 20") && told.ends_with(" UTC\n0 older rows in 0 B\n"),
        "{told}"
    );
    session.run(&["put", "db", "t", "a", "2"]).ok();
    session.run(&["delete", "db", "t", "a"]).ok();
    session.run(&["compact", "db"]).ok();
    let at = |when: &str| session.run(&["get", "db", "t", "a", "--at", when]);
    assert_eq!((at("1").ok(), at("2").ok()), ("1\n".to_owned(), "2\n".to_owned()));
    at("3").fails(1, &["table t has no row with key a"]);
    at("0s").fails(1, &["table t has no row with key a"]);
    at("2020-01-01").fails(3, &["is before the past that is kept"]);
    at("2020-01-01 25:00").fails(1, &["no version is kept as \"2020-01-01 25:00\""]);
    let told = session.run(&["retain", "db", "--json"]).ok();
    assert!(
        told.starts_with("{\"rule\":\"time 7d\",\"from\":1,\"since\":\"20")
            && told.contains("\"newest\":3,\"older_rows\":2,"),
        "{told}"
    );
    assert!(session.run(&["retain", "db", "--versions", "5"]).ok().starts_with("versions 5: versions 1 to 3"));
    session.run(&["retain", "db", "--nothing"]).ok();
    at("1").fails(1, &["version 1 is not kept"]);
    session.run(&["retain", "db", "--versions", "5", "--nothing"]).fails(2, &["cannot be used with"]);
    session.is_sound();
}

#[test]
fn the_history_of_a_row_is_printed_as_the_row_is() {
    let session = Session::with(&["--format", "csv", "--header"], "id,name\n7,ada\n");
    session.run(&["retain", "db", "--everything"]).ok();
    session.run(&["put", "db", "t", "7", "alan"]).ok();
    session.run(&["delete", "db", "t", "7"]).ok();
    let lines = session.run(&["history", "db", "t", "7"]).ok();
    let lines: Vec<Vec<&str>> = lines.lines().map(|line| line.split('\t').collect()).collect();
    let shown: Vec<(&str, &[&str])> = lines.iter().map(|line| (line[0], &line[2..])).collect();
    assert!(matches!(shown[..], [(_, ["erase"]), (_, ["put", "alan"]), (_, ["put", "ada"])]), "{shown:?}");
    let json = session.run(&["history", "db", "t", "7", "--json"]).ok();
    let rows: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&rows[0]["row"], &rows[1]["row"]["name"]), (&serde_json::Value::Null, &"alan".into()));
    session.run(&["history", "db", "t", "8"]).fails(1, &["no row with key 8, now or in the past that is retained"]);
}

#[test]
fn changes_are_printed_in_the_order_of_commits_from_logs_and_from_files() {
    let session = Session::new();
    session.run(&["put", "db", "t", "a", "1"]).ok();
    session.run(&["retain", "db", "--everything"]).ok();
    session.run_with(&["load", "db", "t", "--batch", "2"], "b\t2\nc\t\n").ok();
    session.run(&["delete", "db", "t", "b"]).ok();
    session.run(&["delete-range", "db", "t", "--from", "a", "--to", "b"]).ok();
    session.run(&["put", "db", "a table", "x", "tab\there"]).ok();
    let lines = "2\tt\tput\tb\t2\n2\tt\tput\tc\t\n3\tt\terase\tb\n4\tt\terase-range\ta\tb\n";
    for _ in 0..2 {
        let all = session.run(&["changes", "db"]).ok();
        assert_eq!(all, format!("{lines}5\ta table\tput\tx\ttab\\there\n"));
        assert_eq!(session.run(&["changes", "db", "--table", "t"]).ok(), lines);
        assert_eq!(session.run(&["changes", "db", "--from", "2", "--most", "1"]).ok(), "3\tt\terase\tb\n");
        let json = session.run(&["changes", "db", "--format", "jsonl"]).ok();
        let lines: Vec<&str> = json.lines().collect();
        assert_eq!(lines[0], r#"{"version":2,"table":"t","change":"put","row":{"key":"b","value":"2"}}"#);
        assert_eq!(lines[1], r#"{"version":2,"table":"t","change":"put","row":{"key":"c","value":""},"last":true}"#);
        assert_eq!(lines[2], r#"{"version":3,"table":"t","change":"erase","key":"b","last":true}"#);
        assert_eq!(lines[3], r#"{"version":4,"table":"t","change":"erase-range","from":"a","to":"b","last":true}"#);
        session.run(&["compact", "db"]).ok();
    }
    session.run(&["changes", "db", "--from", "0"]).fails(1, &["the changes after version 0 were not kept"]);
    session.run(&["changes", "db", "--from", "99"]).fails(1, &["version 99 is not kept, and the newest one is 5"]);
    session.run(&["changes", "db", "--table", "u"]).fails(1, &["db has no table u"]);
}

#[test]
fn a_copy_of_a_version_differs_from_its_database_by_what_came_later() {
    let session = Session::new();
    session.run_with(&["load", "db", "t"], "a\t1\nb\t2\nc\t3\n").ok();
    session.run(&["keep", "db", "then"]).ok();
    session.run(&["put", "db", "t", "a", "9"]).ok();
    session.run(&["delete", "db", "t", "b"]).ok();
    let said = session.run(&["checkpoint", "db", "copy", "--at", "then"]).ok();
    assert!(said.contains("copy has version 3") && said.contains("0 indexes made later left out"), "{said}");
    assert_eq!(session.run(&["scan", "copy", "t"]).ok(), "a\t1\nb\t2\nc\t3\n");
    assert_eq!(session.run(&["diff", "copy", "t", "--with", "db"]).ok(), "-\ta\t1\n+\ta\t9\n-\tb\t2\n");
    assert_eq!(session.run(&["diff", "db", "t", "then", "--with", "copy"]).ok(), "");
    session.run(&["clone", "db", "t", "trial"]).ok();
    session.run(&["put", "db", "trial", "z", "0"]).ok();
    assert_eq!(session.run(&["diff", "db", "t", "--with-table", "trial"]).ok(), "+\tz\t0\n");
    session.run(&["clone", "db", "t", "of then", "--at", "then"]).ok();
    assert_eq!(session.run(&["diff", "db", "of then", "--with", "copy", "--with-table", "t"]).ok(), "");
    let said = session.run(&["backup", "db", "kept", "--at", "then"]).ok();
    assert!(said.contains("backup 1 has version 3") && said.contains("0 indexes made later left out"), "{said}");
    session.run(&["restore", "kept", "again"]).ok();
    assert_eq!(session.run(&["diff", "copy", "t", "--with", "again"]).ok(), "");
    session.run(&["checkpoint", "db", "other", "--at", "1999-01-01"]).fails(3, &["keeps no past"]);
    session.run(&["checkpoint", "db", "other", "--at", "77"]).fails(1, &["version 77 is not kept"]);
    session.run(&["diff", "db", "t"]).fails(2, &["NAME|VERSION|TIME"]);
}

#[test]
fn a_subscription_prints_each_commit_once_and_keeps_those_that_were_not_printed() {
    let session = Session::new();
    session.run(&["put", "db", "t", "a", "1"]).ok();
    let told = session.run(&["subscribe", "db", "mail", "--age", "7d", "--bytes", "1GiB"]).ok();
    assert!(told.starts_with("mail: after version 1, 0 versions behind, within 7d and 1.0 GiB, since "), "{told}");
    let changes = |more: &[&str]| session.run(&[&["changes", "db", "--subscription", "mail"], more].concat()).ok();
    assert_eq!(changes(&[]), "");
    for value in ["2", "3", "4"] {
        session.run(&["put", "db", "t", "a", value]).ok();
        session.run(&["compact", "db"]).ok();
    }
    let told = session.run(&["subscriptions", "db"]).ok();
    assert!(told.starts_with("mail: after version 1, 3 versions behind, "), "{told}");
    let stats = session.run(&["stats", "db"]).ok();
    assert!(stats.contains("subscriptions\n  mail: after version 1, "), "{stats}");
    assert_eq!(changes(&["--most", "2"]), "2\tt\tput\ta\t2\n3\tt\tput\ta\t3\n");
    assert_eq!(changes(&["--table", "t"]), "4\tt\tput\ta\t4\n");
    assert_eq!(changes(&[]), "");
    // A file is synced before the position moves.
    session.run(&["put", "db", "t", "a", "5"]).ok();
    let mut to_file = session.command(&["changes", "db", "--subscription", "mail"]);
    to_file.stdout(std::fs::File::create(session.path("changes")).expect("the disk has room"));
    assert!(to_file.status().expect("larch was built").success());
    let text = std::fs::read_to_string(session.path("changes")).expect("it was written");
    assert_eq!(text, "5\tt\tput\ta\t5\n");
    let json = session.run(&["subscriptions", "db", "--json"]).ok();
    assert!(json.starts_with(r#"{"name":"mail","position":5,"behind":0,"since":""#), "{json}");
    let line = ["changes", "db", "--subscription", "post"];
    session.run(&line).fails(1, &["no subscription has the name \"post\"; choose from mail"]);
    session.run(&["changes", "db", "--subscription", "mail", "--read-only"]).fails(2, &["leave --read-only out"]);
    session.run(&["changes", "db", "--subscription", "mail", "--follow"]).fails(2, &["cannot be used with"]);
    session.run(&["subscribe", "db", ""]).fails(2, &["a subscription cannot be named \"\""]);
    session.run(&["unsubscribe", "db", "post"]).fails(1, &["no subscription has the name \"post\""]);
    session.run(&["unsubscribe", "db", "mail"]).ok();
    assert_eq!(session.run(&["subscriptions", "db"]).ok(), "");
    session.is_sound();
}

#[test]
fn a_diff_shows_what_changed_and_a_revert_takes_it_back() {
    let session = Session::new();
    session.run_with(&["load", "db", "t"], "a\t1\nb\t2\nc\t3\n").ok();
    session.run(&["keep", "db", "then"]).ok();
    session.run(&["put", "db", "t", "a", "9"]).ok();
    session.run(&["put", "db", "t", "d", "4"]).ok();
    session.run(&["delete-range", "db", "t", "--from", "b", "--to", "c"]).ok();
    let diff = |args: &[&str]| session.run(&[&["diff", "db", "t"], args].concat()).ok();
    let lines = "-\ta\t1\n+\ta\t9\n-\tb\t2\n+\td\t4\n";
    for _ in 0..2 {
        assert_eq!(diff(&["then"]), lines);
        assert_eq!(diff(&["then", "--from", "b"]), "-\tb\t2\n+\td\t4\n");
        assert_eq!(diff(&["then", "then"]), "");
        let json = diff(&["then", "--json", "--prefix", "a"]);
        assert_eq!(
            json,
            "{\"key\":\"a\",\"before\":{\"key\":\"a\",\"value\":\"1\"},\"after\":{\"key\":\"a\",\"value\":\"9\"}}\n"
        );
        session.run(&["compact", "db"]).ok();
    }
    session.run(&["keep", "db", "now"]).ok();
    assert_eq!(diff(&["now", "then"]).lines().count(), 4);
    assert!(session.run(&["revert", "db", "t", "then", "--to", "b"]).ok().starts_with("1 row changed: version "));
    assert_eq!(diff(&["then"]), "-\tb\t2\n+\td\t4\n");
    session.run(&["revert", "db", "t", "then"]).ok();
    assert_eq!(session.run(&["scan", "db", "t"]).ok(), "a\t1\nb\t2\nc\t3\n");
    assert!(session.run(&["revert", "db", "t", "then", "--json"]).ok().starts_with("{\"table\":\"t\",\"rows\":0,"));
    session.run(&["revert", "db", "t", "nobody"]).fails(1, &["no version is kept as \"nobody\""]);
    session.is_sound();
}

#[test]
fn changes_come_while_another_process_writes() {
    let session = Session::new();
    session.run(&["put", "db", "t", "a", "1"]).ok();
    session.run(&["retain", "db", "--everything"]).ok();
    let mut following = session.start(&["changes", "db", "--follow", "--most", "200"]);
    let mut writer = Writer::start(&session);
    (0..200).for_each(|number| writer.write(number));
    let lines = BufReader::new(following.stdout.take().expect("it was asked for")).lines();
    for (number, line) in lines.enumerate() {
        let line = line.expect("it is text");
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(fields[..4], [&(number + 2).to_string()[..], "t", "put", &key(number as u64)], "{line}");
    }
    assert!(following.wait().expect("it was started").success());
    writer.end();
}

#[test]
fn a_replica_takes_each_commit_once_whatever_ends_the_command() {
    let session = Session::new();
    session.run_with(&["load", "db", "t", "--batch", "2"], "a\t1\nb\t2\n").ok();
    let told = session.run(&["replicate", "db", "copy"]).ok();
    assert!(told.starts_with("2 rows copied, then 0 commits with 0 changes: up to date with version"), "{told}");
    session.run(&["retain", "db", "--everything"]).ok();
    let mut writer = Writer::start(&session);
    let mut next = 0;
    for round in 0..6 {
        let mut following = session.start(&["replicate", "db", "copy", "--follow"]);
        for _ in 0..100 {
            writer.write(next);
            next += 1;
        }
        if round % 2 == 0 {
            following.kill().expect("it runs until it is killed");
            following.wait().expect("it was started");
        } else {
            interrupt(&following);
            let status = following.wait().expect("it was started");
            // It may not have come to catch ^C.
            assert!(status.success() || status.signal() == Some(2), "{status}");
        }
    }
    writer.end();
    let told = session.run(&["replicate", "db", "copy", "--json"]).ok();
    assert!(told.starts_with("{\"rows\":0,"), "{told}");
    // A table with a new name is a new table, and a table that was dropped goes.
    session.run(&["put", "db", "u", "k", "v"]).ok();
    session.run(&["replicate", "db", "copy"]).ok();
    session.run(&["rename-table", "db", "u", "w"]).ok();
    session.run(&["put", "db", "w", "l", "v"]).ok();
    session.run(&["replicate", "db", "copy"]).ok();
    assert_eq!(session.run(&["scan", "copy", "w"]).ok(), "k\tv\nl\tv\n");
    session.run(&["scan", "copy", "u"]).fails(1, &["copy has no table u"]);
    assert_eq!(session.run(&["scan", "copy", "t"]).ok(), session.run(&["scan", "db", "t"]).ok());
    session.run(&["delete-range", "db", "t", "--from", "a"]).ok();
    session.run(&["replicate", "db", "copy"]).ok();
    assert_eq!(session.run(&["count", "copy", "t", "--exact"]).ok(), "600\n");
    session.run(&["put", "other", "t", "a", "1"]).ok();
    session.run(&["replicate", "other", "copy"]).fails(2, &["copy was replicated from another database"]);
    session.run(&["replicate", "db", "other"]).fails(2, &["other has tables that are not from it"]);
}
