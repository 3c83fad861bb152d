//! Tests of tables, statistics, compactions, checks, dumps and the demo.

use crate::arguments::with_writer;
use crate::session::Session;

#[test]
fn tables_say_what_their_rows_are() {
    let session = Session::with(&["--format", "csv", "--key", "name"], "id,name\n1,x\n");
    session.run(&["put", "db", "raw", "k", "v"]).ok();
    let tables = session.run(&["tables", "db"]).ok();
    assert!(tables.contains("t: csv rows of columns id, name, key name; pages of 16.0 KiB"), "{tables}");
    assert!(tables.contains("raw: raw keys and values; "), "{tables}");
    assert_eq!(session.run(&["tables", "db", "raw"]).ok().lines().count(), 1);
    session.run(&["tables", "db", "other"]).fails(1, &["no table other"]);
}

#[test]
fn stats_count_rows() {
    let session = Session::with(&["--format", "tsv"], "a\t1\nb\t2\n");
    let stats = session.run(&["stats", "db", "t"]).ok();
    assert!(stats.starts_with("table t\n  rows          2, 4 B of keys and values\n"), "{stats}");
    let stats = session.run(&["stats", "db", "--json"]).ok();
    assert!(
        stats.starts_with("{\"table\":\"t\",\"rows\":{\"low\":2,\"high\":2},\"stored_rows\":2,\"erased_rows\":0,"),
        "{stats}"
    );
}

#[test]
fn stats_tell_rows_from_their_versions() {
    let session = Session::new();
    for value in ["1", "2", "3", "4", "5"] {
        session.run(&["put", "db", "t", "k", value]).ok();
    }
    let text = session.run(&["stats", "db", "t"]).ok();
    assert!(text.contains("\n  rows          1 to 5\n  in files      5 versions, "), "{text}");
    assert!(text.contains(", 5 versions\n") && !text.contains(" rows\n"), "{text}");
    session.run(&["delete", "db", "t", "k"]).ok();
    let text = session.run(&["stats", "db", "t"]).ok();
    assert!(text.contains("\n  rows          0 to 5\n  in files      6 versions, "), "{text}");
    let exactly = session.run(&["stats", "db", "t", "--exact"]).ok();
    assert!(exactly.contains("\n  rows          0, counted\n") && exactly.contains(", 6 versions\n"), "{exactly}");
    session.run(&["compact", "db"]).ok();
    session.run(&["put", "db", "t", "k", "6"]).ok();
    let text = session.run(&["stats", "db", "t"]).ok();
    assert!(text.contains("\n  rows          1, "), "{text}");
}

#[test]
fn metrics_are_told_in_the_formats_of_other_programs() {
    let session = Session::with(&["--format", "tsv"], "a\t1\nb\t2\n");
    let json = session.run(&["metrics", "db"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["files"], 1);
    let owners = json["memory_bytes"].as_array().expect("memory has owners");
    let sum: u64 = owners.iter().map(|owner| owner["value"].as_u64().expect("bytes are whole")).sum();
    assert!(sum > 0 && json["memory_sum_bytes"] == sum, "{json}");
    let text = session.run(&["metrics", "db", "--prometheus"]).ok();
    assert!(text.contains("# TYPE larch_files gauge\nlarch_files 1\n"), "{text}");
}

/// What `larch metrics` prints as JSON.
fn metrics(session: &Session) -> serde_json::Value {
    serde_json::from_str(&session.run(&["metrics", "db"]).ok()).expect("it is JSON")
}

/// Waits until a process publishes metrics that are `good`, and returns them.
fn published(session: &Session, good: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    let mut tries = (0..100_000).map(|_| metrics(session));
    let is_good = |metrics: &serde_json::Value| metrics["writer"].is_u64() && good(metrics);
    tries.find(is_good).expect("the writer publishes its metrics once a second")
}

/// The bytes that were written to the log.
fn of_log(metrics: &serde_json::Value) -> u64 {
    metrics["written_bytes"][0]["value"].as_u64().expect("it is a number")
}

#[test]
fn metrics_are_those_of_the_writer_and_say_so() {
    let (session, mut child, stdin) = with_writer();
    // What the writer publishes first may be of the time before its commit.
    let found = published(&session, |metrics| of_log(metrics) > 0);
    assert_eq!(found["writer"], child.id());
    assert_eq!(found["whose"], format!("process {}, which writes to the database", child.id()));
    let text = session.run(&["metrics", "db", "--prometheus"]).ok();
    assert!(text.starts_with(&format!("# The figures are those of process {}, which", child.id())), "{text}");
    assert!(text.contains("larch_written_bytes_total{reason=\"log\"}"), "{text}");
    drop(stdin);
    assert!(child.wait().expect("it was started").success());
    let own = metrics(&session);
    assert!(own["writer"].is_null() && of_log(&own) == 0, "{own}");
    assert!(own["whose"].as_str().expect("text").contains("no process that writes"), "{own}");
    assert!(!session.has("db/metrics"));
    // A killed process leaves its file behind. The next reader finds that no process holds the lock.
    let mut child = session.start(&["load", "db", "t"]);
    published(&session, |_| true);
    child.kill().expect("it runs until it is killed");
    child.wait().expect("it was started");
    assert!(session.has("db/metrics/writer"));
    assert!(metrics(&session)["writer"].is_null());
    assert!(!session.has("db/metrics"));
    session.is_sound();
}

#[test]
fn compacting_keeps_every_row() {
    let session = Session::with(&["--format", "tsv"], "a\t1\nb\t2\n");
    session.run(&["delete", "db", "t", "a"]).ok();
    assert!(session.run(&["compact", "db"]).ok().starts_with("t: "));
    assert!(session.run(&["compact", "db", "t", "--json"]).ok().starts_with("{\"table\":\"t\","));
    assert_eq!(session.scan(&[]), "b\t2\n");
}

#[test]
fn a_clone_has_the_rows_and_goes_its_own_way() {
    let session = Session::with(&["--format", "tsv"], "a\t1\nb\t2\n");
    let cloned = session.run(&["clone", "db", "t", "u"]).ok();
    assert_eq!(cloned, "u: a clone of t, 2 versions in 1 file of 8.0 KiB that both see\n");
    session.run(&["delete", "db", "u", "a"]).ok();
    assert_eq!(session.scan(&[]), "a\t1\nb\t2\n");
    assert_eq!(session.run(&["scan", "db", "u"]).ok(), "b\t2\n");
    assert!(
        session
            .run(&["clone", "db", "t", "v", "--json"])
            .ok()
            .starts_with("{\"table\":\"t\",\"new\":\"v\",\"files\":1,")
    );
    session.run(&["clone", "db", "t", "u"]).fails(2, &["there is a table \"u\" already"]);
    session.run(&["clone", "db", "w", "x"]).fails(1, &["no table w"]);
    session.run(&["clone", "db", "t"]).fails(2, &["<NEW>"]);
    session.run(&["check", "db"]).ok();
}

#[test]
fn rows_split_off_are_in_the_new_table_only() {
    let rows: String = (0..3_000).map(|number| format!("{number:06}\tsome text\n")).collect();
    let session = Session::with(&["--format", "tsv", "--key", "1:int"], &rows);
    let (left, right) = rows.split_at(rows.find("002000").expect("it is there"));
    let split = session.run(&["split-off", "db", "t", "2000", "u"]).ok();
    assert!(split.starts_with("u: split off t, 1,000 versions in 1 file of "), "{split}");
    let numbers = |text: &str| text.lines().map(|line| line[..6].parse::<u32>().expect("a number")).collect::<Vec<_>>();
    let scanned = |table: &str| session.run(&["scan", "db", table, "--keys"]).ok();
    let scanned =
        |table: &str| scanned(table).lines().map(|line| line.parse().expect("a number")).collect::<Vec<u32>>();
    assert_eq!((scanned("t"), scanned("u")), (numbers(left), numbers(right)));
    session.run(&["compact", "db"]).ok();
    assert_eq!((scanned("t"), scanned("u")), (numbers(left), numbers(right)));
    session.run(&["split-off", "db", "t", "5", "u"]).fails(2, &["there is a table \"u\" already"]);
    session.run(&["split-off", "db", "t", "five", "v"]).fails(2, &["five"]);
    session.run(&["check", "db"]).ok();
}

#[test]
fn a_range_is_deleted_in_one_write() {
    let session = Session::with(&["--format", "tsv"], "a\t1\nb\t2\nbc\t3\nc\t4\nd\t5\n");
    session.run(&["delete-range", "db", "t", "--prefix", "b"]).ok();
    assert_eq!(session.scan(&[]), "a\t1\nc\t4\nd\t5\n");
    session.run(&["delete-range", "db", "t", "--from", "d", "--to", "c"]).ok();
    session.run(&["delete-range", "db", "t", "--to", "d"]).ok();
    assert_eq!(session.scan(&[]), "d\t5\n");
    session.run(&["delete-range", "db", "t"]).fails(2, &["--from"]);
    session.run(&["delete-range", "db", "u", "--from", "d"]).fails(1, &["no table u"]);
}

#[test]
fn an_altered_table_is_written_anew_by_compacting() {
    let rows: String = (0..5_000).map(|number| format!("{number:06}\tsome text\n")).collect();
    let session = Session::with(&["--format", "tsv"], &rows);
    assert_eq!(
        session.run(&["alter", "db", "t", "--index", "flat", "--compression", "lz4"]).ok(),
        "t: was pages of 16.0 KiB, nodes of 16.0 KiB, index btree, compression none, filters 20,12\n\
         t: now pages of 16.0 KiB, nodes of 16.0 KiB, index flat, compression lz4, filters 20,12\n"
    );
    let has = |parts: [&str; 2]| {
        let stats = session.run(&["stats", "db", "t", "--json"]).ok();
        assert!(parts.iter().all(|part| stats.contains(part)), "{parts:?}: {stats}");
        assert_eq!(session.scan(&[]), rows);
    };
    has(["\"btree_bytes\":4096,", "\"flat_bytes\":0,"]);
    session.run(&["compact", "db", "t"]).ok();
    has(["\"btree_bytes\":0,", "\"flat_bytes\":4096,"]);

    let report = session.run(&["alter", "db", "t", "--page", "8KiB", "--node", "4KiB", "--json"]).ok();
    let kept = "\"index\":\"flat\",\"compression\":\"lz4\",\"filters\":\"20,12\",\"filter_prefix_bytes\":0,\"in_memory\":false,\"expire\":\"never\"";
    let before = format!("{{\"page_bytes\":16384,\"node_bytes\":16384,{kept}}}");
    let after = format!("{{\"page_bytes\":8192,\"node_bytes\":4096,{kept}}}");
    assert_eq!(report, format!("{{\"table\":\"t\",\"before\":{before},\"after\":{after}}}\n"));
    assert!(session.run(&["tables", "db"]).ok().contains("; pages of 8.0 KiB, nodes of 4.0 KiB, index flat,"));
    assert_eq!(session.scan(&[]), rows);

    let filter_bytes = |expected: &str| {
        let stats = session.run(&["stats", "db", "t", "--json"]).ok();
        assert!(stats.contains(&format!("\"filter_bytes\":{expected},")), "{stats}");
    };
    filter_bytes("8192");
    let report = session.run(&["alter", "db", "t", "--filters", "12,none", "--filter-prefix", "3"]).ok();
    assert!(report.ends_with("index flat, compression lz4, filters 12,none with prefixes of 3 B\n"), "{report}");
    session.run(&["compact", "db", "t"]).ok();
    filter_bytes("0");
    assert_eq!(session.scan(&[]), rows);
    for (compression, shown) in [("zstd", "zstd:3"), ("zstd:19", "zstd:19"), ("none", "none"), ("zstd:1", "zstd:1")] {
        let report = session.run(&["alter", "db", "t", "--compression", compression]).ok();
        assert!(report.contains(&format!(", compression {shown}, filters")), "{report}");
        session.run(&["compact", "db", "t"]).ok();
        assert_eq!(session.scan(&[]), rows);
        session.run(&["check", "db"]).ok();
    }
    let levels = "`zstd:20` is not none, lz4, zstd, or zstd:LEVEL with a level from 1 to 19";
    session.run(&["alter", "db", "t", "--compression", "zstd:20"]).fails(2, &[levels]);
    session.run(&["alter", "db", "t", "--filters", "9"]).fails(2, &["\"9\" is not none, 12 or 20"]);
    let report = session.run(&["alter", "db", "t", "--in-memory", "true"]).ok();
    assert!(report.contains(" with prefixes of 3 B, in memory\n"), "{report}");
    session.run(&["alter", "db", "t", "--in-memory", "false"]).ok();
    session.run(&["alter", "db", "t", "--filter-prefix", "2000"]).fails(2, &["a prefix of 2000 bytes"]);

    session.run(&["alter", "db", "u", "--index", "both"]).fails(1, &["no table u"]);
    session.run(&["alter", "db", "t", "--page", "100"]).fails(2, &["a page of 100 bytes"]);
}

#[test]
fn a_sound_database_is_checked_and_found_so() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    assert!(session.run(&["check", "db"]).ok().starts_with("no damage in "));
    assert!(session.run(&["check", "db", "t", "--json"]).ok().contains("\"problems\":[]"));
    session.run(&["check", "db", "u"]).fails(1, &["no table u"]);
}

#[test]
fn damage_is_found_and_named() {
    let rows: String = (0..5_000).map(|number| format!("{number:06}\tsome text\n")).collect();
    let session = Session::with(&["--format", "tsv"], &rows);
    let file = format!("db/{}", session.files(".sst")[0]);
    session.run_with(&["import", "db", "sound", "-", "--format", "tsv"], &rows).ok();
    session.spoil(&file, 50_000);

    for args in [&["check", "db"][..], &["check", "db", "t"], &["check", "db", "--json"]] {
        let ran = session.run(args);
        let out = String::from_utf8(ran.out).expect("a report is UTF-8");
        assert_eq!(ran.code, Some(1), "{out}");
        assert!(out.contains(&format!("{file} is corrupt: data page at offset ")), "{out}");
        assert!(ran.err.contains("db is damaged; restore"), "{}", ran.err);
    }
    session.run(&["check", "db", "sound"]).ok();

    // The rows before the damage are printed.
    let ran = session.run(&["scan", "db", "t"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.contains(&format!("{file} is corrupt: data page at offset ")), "{}", ran.err);
    assert!(!ran.out.is_empty() && rows.as_bytes().starts_with(&ran.out));
    assert_eq!(session.run(&["get", "db", "t", "000000"]).ok(), "some text\n");
}

#[test]
fn what_is_no_file_of_a_database_is_not_dumped() {
    let session = Session::new();
    session.run(&["dump", "missing.sst"]).fails(3, &["cannot open missing.sst", "check the path"]);
    session.file("letter", "dear");
    session.run(&["dump", "letter"]).fails(2, &["letter is no file to dump", ".sst"]);
}

#[test]
fn a_table_is_dumped_as_far_as_asked() {
    let session = Session::with(&["--format", "tsv"], "a\tone\nb\ttwo\n");
    let brief = session.run(&["dump", "db", "t"]).ok();
    assert!(brief.contains("main: 2 rows") && brief.contains("data page at 0+4096: not in memory"), "{brief}");
    let pages = session.run(&["dump", "db", "t", "--pages"]).ok();
    assert!(pages.contains("rows 0 to 1") && !pages.contains("one"), "{pages}");
    assert!(session.run(&["dump", "db", "t", "--rows"]).ok().contains("put \"one\""));
    session.run(&["dump", "db", "u"]).fails(1, &["no table u"]);
    session.run(&["dump", "db"]).fails(2, &["db is no file to dump", "larch dump DIR TABLE"]);
}

#[test]
fn a_demo_is_made_once_and_read_again() {
    let session = Session::new();
    let made = session.run(&["demo", "--rows", "1000"]).ok();
    for part in [
        "larch-demo",
        "1,000",
        "import",
        "read at random",
        "scan",
        "index reads",
        "reads/row",
        "Every row read was the row written",
    ] {
        assert!(made.contains(part), "{part}: {made}");
    }
    let again = session.run(&["demo", "--rows", "1000", "--json"]).ok();
    assert!(again.contains("\"made\":false"), "{again}");
    session.run(&["demo", "--rows", "2000"]).fails(2, &["is a demo of 1,000 rows", "--recreate"]);
    let remade = session.run(&["demo", "--rows", "2000", "--recreate", "--json"]).ok();
    assert!(remade.contains("\"made\":true"), "{remade}");
    assert_eq!(session.run(&["scan", "larch-demo", "demo"]).ok().lines().count(), 2000);
}

#[test]
fn a_demo_leaves_what_is_not_its_own_alone() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    session.file("notes/letter", "dear");
    for dir in ["db", "notes"] {
        for options in [&["demo", dir][..], &["demo", dir, "--recreate"]] {
            session.run(options).fails(2, &["it is left alone"]);
        }
    }
    assert_eq!(session.scan(&[]), "a\t1\n");
    assert!(session.has("notes/letter"));
}
