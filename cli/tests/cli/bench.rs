//! Tests of `larch bench` on Larch and on the store that does nothing.

use crate::session::{Ran, Session};
use serde_json::Value;

/// A small number of records. All other properties of the workload keep their defaults.
pub const RECORDS: &str = "recordcount=500";

/// Runs `larch bench ycsb …` without lines of progress.
pub fn ycsb(session: &Session, args: &[&str]) -> Ran {
    session.run(&[&["bench", "ycsb", "--quiet"], args].concat())
}

/// The runs of a result.
#[track_caller]
pub fn runs(session: &Session, file: &str) -> Vec<Value> {
    let result: Value = serde_json::from_slice(&session.bytes(file)).expect("a result is JSON");
    assert_eq!(result["format"], "larch-bench-result");
    result["runs"].as_array().expect("a result has runs").clone()
}

/// For each kind, the number of requests of a run that succeeded.
pub fn oks(run: &Value) -> Vec<(String, u64)> {
    let kinds = run["measured"]["kinds"].as_array().expect("there are kinds");
    let ok = |kind: &Value| {
        let name = kind["name"].as_str().expect("a kind has a name");
        (name.to_owned(), kind["oks"].as_u64().expect("they are counted"))
    };
    kinds.iter().map(ok).filter(|(_, oks)| *oks > 0).collect()
}

/// Checks the lines for publication. There must be one line for each workload, in the order of `workloads`.
#[track_caller]
pub fn has_seed_lines(text: &str, workloads: &str) {
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" UTC ")).collect();
    assert_eq!(lines.len(), workloads.len(), "{text}");
    for (line, workload) in lines.iter().zip(workloads.chars()) {
        for part in
            [&format!(" workload {workload}: "), " Op/s, latency 99% ", " oks, 0 not_found, 0 errors, ", " ms run time"]
        {
            assert!(line.contains(part), "{part:?} is not in {line:?}");
        }
    }
}

#[test]
fn the_targets_are_listed_with_what_they_take() {
    let list = Session::new().run(&["bench", "targets"]).ok();
    let line = |start: &str| list.lines().find(|line| line.starts_with(start)).expect("it is listed").to_owned();
    for built in ["larch:DIR ", "noop: ", "postgres://"] {
        assert!(line(built).contains(" built "), "{list}");
    }
    for engine in ["rocksdb", "fjall", "redb", "lmdb", "sqlite"] {
        assert!(line(&format!("{engine}:DIR")).ends_with(&format!("cargo x bench --with {engine} …")), "{list}");
    }
    assert!(line("cassandra://").ends_with("cargo x bench --with cassandra …"), "{list}");
    for server in ["cockroach", "yugabyte", "scylla", "ydb"] {
        assert!(line(&format!("{server}://")).contains("not run here"), "{list}");
    }
    for option in ["write_buffer", "durability", "pipeline"] {
        assert!(line("options").contains('?') && list.contains(&format!("\n    {option} ")), "{list}");
    }
}

#[test]
fn wrong_arguments_exit_with_2_and_touch_nothing() {
    let session = Session::new();
    session.file("bad.properties", "readproportion=\\u12\n");
    let load = ["load", "--target", "larch:db", "--workload", "a"];
    let run = ["run", "--target", "larch:db", "--workload", "a"];
    for (first, args, parts) in [
        (&[][..], &["dance"][..], &["invalid value 'dance'", "load, run, all"][..]),
        (&["run"], &["--workload", "a"], &["--target larch:DIR", "larch bench targets"]),
        (&["run"], &["--target", "noop:"], &["--workload a, to f, or a file"]),
        (&["run"], &["--target", "noop:", "--workload", "g"], &["workload `g`", "cannot read g", "a to f, or a file"]),
        (&["run"], &["--target", "db", "--workload", "a"], &["`db`: has no scheme", "larch:DIR"]),
        (&["run"], &["--target", "sled:db", "--workload", "a"], &["no scheme `sled`", "larch bench targets"]),
        (&["run"], &["--target", "redb:db", "--workload", "a"], &["no `redb`", "cargo x bench --with redb"]),
        (&["run"], &["--target", "ydb://h/d", "--workload", "a"], &["`ydb` cannot be measured: no server"]),
        (&["run"], &["--target", "postgres://me:secret@h/d?x", "--workload", "a"], &["`postgres://me:***@h/d?x`"]),
        (&["run"], &["--target", "larch:", "--workload", "a"], &["names no directory", "larch:DIR"]),
        (&["run"], &["--target", "larch:db?cash=1", "--workload", "a"], &["no option `cash`", "there is: cache,"]),
        (&["run"], &["--target", "larch:db?cache=1GB", "--workload", "a"], &["`cache` is `1GB`", "256MiB"]),
        (
            &["run"],
            &["--target", "larch:db?compression=zip", "--workload", "a"],
            &["`zip`", "none, lz4, zstd, or zstd:LEVEL"],
        ),
        (&["all"], &["--target", "larch:db", "--workload", "a"], &["leave --workload out"]),
        (&["load"], &["--target", "larch:db", "-p", "fieldcount=1"], &["`recordcount`", "-p recordcount=1000000"]),
        (
            &["run"],
            &["--target", "larch:db", "-p", RECORDS],
            &["give the length of the run", "--time 60s, --operations N"],
        ),
        (&["run"], &["--target", "noop:", "--workload", "bad.properties"], &["bad.properties: line 1", "four hexa"]),
        (&run, &["--recreate"], &["--recreate empties the table", "load and all"]),
        (&run, &["-p", "readproportion"], &["-p readproportion", "name=value"]),
        (&run, &["-p", "readproportion=much"], &["`readproportion` is `much`", "a number of at least 0"]),
        (&run, &["-p", "requestdistribution=odd"], &["`odd`", "uniform, zipfian, latest, hotspot"]),
        (&run, &["-p", "measurementtype=mean"], &["`measurementtype` is `mean`", "hdrhistogram"]),
        (&run, &["--threads", "0"], &["'0' for '--threads <N>'", "1..=1000000"]),
        (&run, &["--threads", "1000001"], &["'1000001' for '--threads <N>'", "1..=1000000"]),
        (&run, &["--workers", "0"], &["--workers 0: these are 1 to 1024 threads"]),
        (&run, &["--client-threads", "0"], &["'0' for '--client-threads <N>'"]),
        (&run, &["--rate", "0"], &["'0' for '--rate <OPS>'", "above 0: 20000"]),
        (&run, &["--rate", "fast"], &["'fast' for '--rate <OPS>'", "a number of operations a second"]),
        (&run, &["--time", "5 s"], &["'5 s' for '--time <TIME>'", "500ms, 60s, 5m"]),
        (&run, &["--time", "0s"], &["'0s' for '--time <TIME>'", "longer than 0"]),
        (&run, &["--warmup", "soon"], &["'soon' for '--warmup <TIME>'"]),
        (&run, &["--seed", "x"], &["'x' for '--seed <N>'"]),
        (&run, &["--format", "xml"], &["'xml'", "table, text, json, json-array"]),
        (&run, &["--status"], &["'--quiet' cannot be used with '--status'"]),
        (&run, &["--out", "no/r.json"], &["--out: cannot write no/r.json: No such file", "a directory that is there"]),
        (&run, &["--csv", "."], &["--csv: cannot write .: is a directory"]),
        (&run, &["--out", "r", "--hdr", "r"], &["--out and --hdr both name r"]),
        (&run, &["-p", "exportfile=no/e"], &["exportfile: cannot write no/e"]),
        (&run, &["--cache", "1GiB"], &["--cache is no option of `bench`", "larch:DIR?cache=64MiB"]),
        (&load, &["--time", "1s"], &["a load ends with its records: leave --time out"]),
        (&load, &["--operations", "9"], &["leave --operations out"]),
        (&load, &["--warmup", "1s"], &["leave --warmup out"]),
        (&[], &["--target", "larch:db"], &["--target needs an action: larch bench ycsb load, run or all"]),
        (&[], &["--format", "json"], &["--format needs an action"]),
    ] {
        ycsb(&session, &[first, args].concat()).fails(2, parts);
    }
    for comparison in ["peers", "cold"] {
        session.run(&["bench", comparison, "--out", "no/t.md"]).fails(2, &["--out: cannot write no/t.md"]);
    }
    session.run(&["bench"]).fails(2, &["targets", "ycsb", "peers", "Usage: larch bench"]);
    session.run(&["bench", "tpch"]).fails(2, &["unrecognized subcommand 'tpch'"]);
    assert_eq!(session.names(), ["bad.properties"]);
}

#[test]
fn a_hundred_thousand_clients_run_where_they_are_no_threads_and_are_refused_with_the_limit_elsewhere() {
    let session = Session::new();
    let run = ["run", "-P", "c", "-p", RECORDS, "--threads", "100000", "--operations", "200000"];
    ycsb(&session, &[&run[..], &["--target", "noop:", "--out", "r.json"]].concat()).ok();
    let measured = &runs(&session, "r.json")[0]["measured"];
    assert_eq!((&measured["clients"], &measured["operations"]), (&100_000.into(), &200_000.into()));
    assert_eq!(measured["cost"]["client_threads"], 1);
    let refused = ["each client of this store is a thread", "at most 1024 threads: 100000 clients"];
    ycsb(&session, &[&run[..], &["--target", "noop:?flights=0"]].concat()).fails(2, &refused);
}

#[test]
fn the_clients_own_time_is_never_more_than_what_its_threads_used() {
    let session = Session::new();
    ycsb(&session, &["load", "-P", "c", "-p", RECORDS, "--target", "larch:db"]).ok();
    for flights in ["0", "8"] {
        let target = format!("larch:db?flights={flights}");
        let run = ["run", "-P", "c", "-p", RECORDS, "--threads", "4", "--rate", "2000", "--operations", "400"];
        let table = ycsb(&session, &[&run[..], &["--target", &target, "--out", "r.json"]].concat()).ok();
        let run = &runs(&session, "r.json")[0];
        let cost = |name: &str| run["measured"]["cost"][name].as_u64();
        assert!(cost("pausing_nanos") <= cost("client_nanos"), "{run}");
        assert_eq!(cost("depth").is_some(), flights == "8", "{run}");
        let line = table.lines().find(|line| line.contains("are the client's own")).expect("it is told");
        let share = line.split("of which ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a share");
        assert!(share.parse::<u64>().is_ok_and(|share| share <= 100), "{line}");
    }
}

#[test]
fn a_run_with_a_time_and_operations_ends_with_what_is_over_first() {
    let session = Session::new();
    let run = ["run", "-P", "c", "-p", RECORDS, "--target", "noop:", "--out", "r.json"];
    let nanos = || runs(&session, "r.json")[0]["measured"]["nanos"].as_u64().expect("it is told");
    ycsb(&session, &[&run[..], &["--time", "10h", "--operations", "1000"]].concat()).ok();
    assert_eq!(runs(&session, "r.json")[0]["measured"]["operations"], 1000);
    assert!(nanos() < 10 * 3_600 * 1_000_000_000, "{}", nanos());
    ycsb(&session, &[&run[..], &["--time", "100ms", "--operations", "1000000000000"]].concat()).ok();
    assert_eq!(nanos(), 100_000_000);
}

#[test]
fn examples_of_the_help_work() {
    let session = Session::new();
    let help = session.run(&["bench", "ycsb", "--help"]).ok();
    let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  larch bench ycsb ")).collect();
    assert_eq!(examples.len(), 6, "{help}");
    // The examples that need a server or workers are run in other tests.
    let is_alone = |example: &&str| !["postgres:", "--workers"].iter().any(|part| example.contains(part));
    for example in examples.into_iter().filter(is_alone) {
        let small = example.replace("=1000000", "=500").replace(" 10000000", " 500").replace(" 30s", " 200ms");
        let words: Vec<&str> = small.split(' ').collect();
        let told = ycsb(&session, &words).ok();
        assert!(told.contains(" operations in "), "{example}: {told}");
    }
    assert_eq!(runs(&session, "c.json")[0]["name"], "workload c");
}

/// The text of the page `name` in docs/benchmarks.
fn page(name: &str) -> String {
    let path = format!("{}/../docs/benchmarks/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the page is in the tree")
}

#[test]
fn the_pages_name_every_option_and_target() {
    let session = Session::new();
    let help = session.run(&["bench", "ycsb", "-h"]).ok();
    let own = help.split("\nExamples:").next().unwrap_or_default();
    let long = |line: &str| line.split([' ', ',']).find(|word| word.starts_with("--")).map(str::to_owned);
    let options: Vec<String> = own.lines().filter(|line| line.starts_with("  ")).filter_map(long).collect();
    assert!(options.len() > 15, "{own}");
    let ycsb_page = page("ycsb.md");
    for option in options.iter().filter(|option| *option != "--help") {
        assert!(ycsb_page.contains(option.as_str()), "docs/benchmarks/ycsb.md has no {option}");
    }

    let list = session.run(&["bench", "targets"]).ok();
    let targets_page = page("targets.md");
    let (targets, options) = list.split_once("\n\n").expect("targets, then options");
    let schemes = targets.lines().skip(1).filter_map(|line| line.split_once(':')).map(|(scheme, _)| scheme);
    for scheme in schemes {
        let is_there = targets_page.lines().any(|line| line.starts_with("## ") && line.contains(scheme));
        assert!(is_there, "docs/benchmarks/targets.md has no section of {scheme}");
    }
    for option in options.lines().filter_map(|line| line.strip_prefix("    ")).filter_map(|line| line.split(' ').next())
    {
        // `…` stands for the options of another target, which the line names.
        let is_there = ["NAME", "…"].contains(&option) || targets_page.contains(&format!("`{option}`"));
        assert!(is_there, "docs/benchmarks/targets.md has no option `{option}`");
    }
}

#[test]
fn what_is_loaded_is_run_on() {
    let session = Session::new();
    let told = ycsb(&session, &["load", "-P", "a", "-p", RECORDS, "--target", "larch:db", "--threads", "4"]).ok();
    for part in ["load a on larch:db", "500 operations in", "4 clients", "INSERT", "more in the background"] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    // The table that `larch bench ycsb` fills can be read with `larch scan`, like any other table.
    assert_eq!(session.run(&["scan", "db", "usertable", "--keys"]).ok().lines().count(), 500);

    for workload in ["a", "b", "c", "d", "e", "f"] {
        let out = format!("{workload}.json");
        let args = ["run", "-P", workload, "-p", RECORDS, "--target", "larch:db", "--operations", "400", "--out", &out];
        let told = ycsb(&session, &args).ok();
        assert!(told.contains("durability: buffered") && told.contains("cache hits"), "{told}");
        let run = &runs(&session, &out)[0];
        assert_eq!(run["measured"]["operations"], 400, "{workload}");
        assert_eq!(run["plan"]["length"]["operations"], 400);
        assert!(run["noop_nanos"].as_f64().is_some_and(|nanos| nanos > 0.0), "{workload}");
        assert!(run["settings"].to_string().contains("Larch"));
    }
}

#[test]
fn threads_share_the_operations() {
    let session = Session::new();
    let args = ["run", "-P", "a", "--target", "noop:", "--operations", "10001", "--threads", "4", "--out", "r.json"];
    ycsb(&session, &args).ok();
    let run = &runs(&session, "r.json")[0];
    assert_eq!((&run["measured"]["operations"], &run["measured"]["clients"]), (&10001.into(), &4.into()));
}

#[test]
fn a_table_with_rows_is_emptied_only_when_asked() {
    let session = Session::new();
    let load = ["load", "-P", "a", "-p", RECORDS, "--target", "larch:db", "--out", "r.json"];
    ycsb(&session, &load).ok();
    let first = session.bytes("r.json");
    for args in [&load[..], &["all", "-p", RECORDS, "--target", "larch:db", "--out", "r.json"]] {
        ycsb(&session, args).fails(2, &["table usertable is not empty", "--recreate"]);
    }
    assert_eq!(session.bytes("r.json"), first, "nothing was measured, and the result before is gone");
    ycsb(&session, &[&load[..], &["-p", "recordcount=30", "--recreate"]].concat()).ok();
    assert_eq!(session.run(&["scan", "db", "usertable", "--keys"]).ok().lines().count(), 30);
}

#[test]
fn a_table_is_loaded_in_pieces() {
    let session = Session::new();
    let piece = |start: &str, count: &str| {
        let (start, count) = (format!("insertstart={start}"), format!("insertcount={count}"));
        let args = ["load", "-P", "a", "-p", RECORDS, "-p", &start, "-p", &count, "--target", "larch:db"];
        ycsb(&session, &args)
    };
    piece("0", "200").ok();
    piece("200", "300").ok();
    assert_eq!(session.run(&["scan", "db", "usertable", "--keys"]).ok().lines().count(), 500);
    piece("0", "200").fails(2, &["table usertable is not empty", "insertstart"]);
    ycsb(
        &session,
        &["run", "-P", "c", "-p", RECORDS, "--target", "larch:db", "--operations", "500", "--out", "r.json"],
    )
    .ok();
    let read = oks(&runs(&session, "r.json")[0]);
    assert_eq!(read, [("READ".to_owned(), 500)], "every record of both pieces is there");
}

#[test]
fn a_request_for_a_load_that_cannot_be_leaves_the_rows() {
    let session = Session::new();
    let load = ["load", "--target", "larch:db", "--recreate"];
    ycsb(&session, &[&load[..], &["-P", "a", "-p", RECORDS]].concat()).ok();
    ycsb(&session, &[&load[..], &["-p", "fieldcount=10"]].concat()).fails(2, &["recordcount"]);
    ycsb(&session, &[&load[..], &["-P", "a", "--out", "no/r"]].concat()).fails(2, &["--out"]);
    assert_eq!(session.run(&["scan", "db", "usertable", "--keys"]).ok().lines().count(), 500);
}

/// A property file in YCSB's own syntax, as the original reads it.
const FILE: &str = "\
# Half of them scans, of a table with a name of its own
! and another comment
recordcount = 40
operationcount:300
workload=site.ycsb.workloads.CoreWorkload
  readproportion   0.5
table=\\u0074wo\\
   fields
fieldcount=2
scanproportion=0.5
updateproportion=0
maxscanlength=3
requestdistribution=uniform
basicdb.verbose=true
measurement.raw.output_file=/tmp/x
colour=green
";

#[test]
fn property_files_are_read_as_they_are_and_p_goes_over_them() {
    let session = Session::new();
    session.file("my.properties", FILE);
    let about = |ran: Ran| {
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        for part in [
            "property `colour` is unknown",
            "`basicdb.verbose` has no effect: the target `noop:` has no options",
            "`measurement.raw.output_file` needs a `measurementtype` with `raw`",
        ] {
            assert_eq!(ran.err.matches(part).count(), 1, "{part:?} once in {:?}", ran.err);
        }
        assert_eq!(ran.err.lines().count(), 3, "{:?}", ran.err);
    };
    about(ycsb(&session, &["load", "-P", "my.properties", "--target", "larch:db"]));
    assert_eq!(session.run(&["scan", "db", "twofields", "--keys"]).ok().lines().count(), 40);
    let run = ["run", "-P", "my.properties", "--target", "larch:db", "--out", "r.json"];
    about(ycsb(&session, &run));
    let first = &runs(&session, "r.json")[0];
    assert_eq!((&first["name"], &first["measured"]["operations"]), (&"workload my.properties".into(), &300.into()));
    let kinds: Vec<String> = oks(first).into_iter().map(|(name, _)| name).collect();
    assert_eq!(kinds, ["READ", "SCAN"]);
    assert!(first["warnings"].to_string().contains("colour"));

    // Properties of later files replace those of earlier files, and properties after -p replace all of them.
    let more = ["-p", "scanproportion=0", "-p", "operationcount=70", "-p", "operationcount=77"];
    about(ycsb(&session, &[&run[..], &more].concat()));
    let second = &runs(&session, "r.json")[0];
    assert_eq!(oks(second), [("READ".to_owned(), 77)]);
    let both = ["run", "-P", "a", "-P", "my.properties", "-P", "c", "--target", "noop:", "--out", "r.json"];
    about(ycsb(&session, &both));
    assert_eq!(oks(&runs(&session, "r.json")[0]), [("READ".to_owned(), 1000)]);
}

#[test]
fn one_seed_gives_the_same_operations() {
    let session = Session::new();
    let measured = |seed: &str| {
        let args = ["run", "-P", "a", "--target", "noop:", "--operations", "20000", "--seed", seed, "--out", "r.json"];
        ycsb(&session, &args).ok();
        let run = &runs(&session, "r.json")[0];
        assert_eq!(run["seed"].to_string(), seed);
        oks(run)
    };
    let first = measured("7");
    assert_eq!(first.iter().map(|(_, count)| count).sum::<u64>(), 20_000);
    assert_eq!(measured("7"), first);
    assert_ne!(measured("8"), first);
}

#[test]
fn a_rate_is_kept_for_the_time_or_what_is_missing_is_told() {
    let session = Session::new();
    let args = ["run", "-P", "c", "--target", "noop:", "--rate", "10000", "--time", "300ms", "--out", "r.json"];
    ycsb(&session, &args).ok();
    let run = &runs(&session, "r.json")[0];
    assert_eq!(run["plan"]["pace"]["open"]["per_second"], 10_000.0);
    assert_eq!(run["plan"]["length"]["nanos"], 300_000_000);
    let measured = |name: &str| run["measured"][name].as_u64().expect("it is counted");
    assert_eq!(measured("operations") + measured("cut") + measured("unsent"), 3000);
    assert!(run["measured"]["kinds"].to_string().contains("\"response\""), "an open loop tells what users wait");
}

#[test]
fn integrity_of_what_is_read_is_verified() {
    let session = Session::new();
    let properties = ["-P", "a", "-p", RECORDS, "--target", "larch:db"];
    let checked = ["-p", "dataintegrity=true"];
    ycsb(&session, &[&["load"], &properties[..], &checked].concat()).ok();
    let run = [&["run", "--operations", "300", "--out", "r.json"], &properties[..], &checked].concat();
    ycsb(&session, &run).ok();
    let verified = oks(&runs(&session, "r.json")[0]).into_iter().find(|(name, _)| name == "VERIFY");
    assert!(verified.is_some_and(|(_, count)| count > 100));

    // The run must report that rows do not have the expected values.
    ycsb(&session, &[&["load", "--recreate"], &properties[..]].concat()).ok();
    let ran = ycsb(&session, &run);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("rows that were read are not as `dataintegrity` has them"), "{}", ran.err);
}

#[test]
fn a_run_that_meets_no_rows_is_no_result() {
    let session = Session::new();
    ycsb(&session, &["load", "-P", "a", "-p", RECORDS, "--target", "larch:db"]).ok();
    for workload in ["a", "c", "e", "f"] {
        // Inserts are switched off, because workload E would otherwise insert rows and then find them.
        let args = ["run", "-P", workload, "-p", RECORDS, "-p", "insertproportion=0", "--target", "larch:db"];
        session.run(&["delete-range", "db", "usertable", "--prefix", "user"]).ok();
        let ran = ycsb(&session, &args);
        assert_eq!(ran.code, Some(1), "{workload}: {}", ran.err);
        for part in ["no request found a row", "was the table loaded, and with this recordcount"] {
            assert!(ran.err.contains(part), "{workload}: {}", ran.err);
        }
    }

    ycsb(&session, &["load", "-P", "a", "-p", RECORDS, "--target", "larch:db", "--recreate"]).ok();
    let ran = ycsb(&session, &["run", "-P", "c", "-p", "recordcount=5000", "--target", "larch:db"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains(" of 1000 requests found no row"), "{}", ran.err);
    ycsb(&session, &["run", "-P", "c", "--target", "larch:other"])
        .fails(3, &["no table usertable in other", "load it"]);
    let none = ["run", "-P", "c", "-p", "table=none", "--target", "larch:db"];
    ycsb(&session, &none).fails(3, &["no table none in db", "load it first"]);
}

#[test]
fn all_of_it_ends_with_a_line_for_each_workload() {
    let session = Session::new();
    let args =
        ["all", "-p", RECORDS, "--target", "larch:db", "--operations", "200", "--out", "r.json", "--csv", "r.csv"];
    let told = ycsb(&session, &args).ok();
    has_seed_lines(&told, "abcfde");
    assert!(told.contains("zipfian workload a: ") && told.contains("latest workload d: "), "{told}");
    assert!(told.lines().rev().take(6).all(|line| line.contains(" UTC ")), "they come last: {told}");
    let runs = runs(&session, "r.json");
    let names: Vec<&str> = runs.iter().filter_map(|run| run["name"].as_str()).collect();
    let expected =
        ["load a", "workload a", "workload b", "workload c", "workload f", "workload d", "load e", "workload e"];
    assert_eq!(names, expected);
    let seeds: Vec<u64> = runs.iter().filter_map(|run| run["seed"].as_u64()).collect();
    assert_eq!(seeds, [1, 2, 3, 4, 5, 6, 7, 8], "phases that follow each other draw different keys");
}

#[test]
fn the_bare_command_measures_all_and_leaves_nothing_but_the_result() {
    let session = Session::new();
    session.file("tmp/.keep", "");
    let mut command =
        session.command(&["bench", "ycsb", "-q", "-p", "recordcount=2000", "--time", "200ms", "--warmup", "1ms"]);
    let ran = Ran::new(command.env("TMPDIR", session.path("tmp")).output().expect("larch was built"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.starts_with("YCSB on Larch: 2,000 records in "), "{}", ran.err);
    let told = String::from_utf8(ran.out).expect("tables are UTF-8");
    assert!(told.ends_with("all of it: larch-ycsb.json\nas a page: larch-report.html\n"), "{told}");
    let page = String::from_utf8(session.bytes("larch-report.html")).expect("a page is UTF-8");
    assert!(page.contains("c in 512 MiB, READ") && page.ends_with("</html>\n"));
    for phase in
        ["load a", "workload a", "workload b", "workload c", "workload f", "workload d", "load e", "workload e"]
    {
        let line = told.lines().find(|line| line.starts_with(&format!("{phase} ")));
        let line = line.unwrap_or_else(|| panic!("{phase}: {told}"));
        for part in [" of data, ", " in the cache; ", " page reads an operation"] {
            assert!(line.contains(part), "{line}");
        }
    }
    let again = told.lines().find(|line| line.starts_with("workload c in 512 MiB ")).expect("C runs twice");
    assert!(again.contains(" in the cache; "), "{again}");
    assert_eq!(runs(&session, "larch-ycsb.json").len(), 9);
    assert_eq!(session.names(), ["larch-report.html", "larch-ycsb.json", "tmp"]);
    assert_eq!(std::fs::read_dir(session.path("tmp")).expect("it is there").count(), 1);
}
