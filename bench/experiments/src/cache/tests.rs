//! Tests the whole command on small tables.

#![allow(clippy::disallowed_methods, reason = "files of tests")]

use super::*;
use clap::Parser;
use kit::Scratch;
use recorded::{Trace, What};
use std::path::Path;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: CacheTrace,
}

fn options(arguments: &[&str]) -> Result<CacheTrace, String> {
    let all = ["cache-trace"].iter().chain(arguments);
    Command::try_parse_from(all).map(|command| command.options).map_err(|error| error.to_string())
}

fn reported(arguments: &[&str]) -> Result<String, Failure> {
    report(&options(arguments).expect("right arguments"))
}

/// The path of a file in `scratch`, as an argument.
fn path_in(scratch: &Scratch) -> String {
    scratch.join("saved.trace").into_os_string().into_string().expect("names of tests are text")
}

#[test]
fn every_policy_is_told_of_on_every_trace_and_saved_traces_give_the_same() {
    let scratch = Scratch::new("cache");
    let file = &path_in(&scratch);
    let table = reported(&["--records", "5000", "--save", file]).expect("it works");
    for name in ["A, updates", "C, uniform reads", "E, short scans", "C beside a full scan"] {
        assert!(table.contains(name), "{table}");
    }
    for kind in Kind::ALL {
        assert_eq!(table.matches(&format!("\n{:10} |", kind.name())).count(), 9, "{table}");
    }
    assert_eq!(reported(&["--trace", file]).expect("it was just written"), table);
    let json = reported(&["--trace", file, "--json", "--cache-sizes", "64KiB,1MiB"]).expect("as before");
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let sizes = &json["traces"][8]["sizes"];
    assert_eq!((&sizes[0]["cache_bytes"], &sizes[1]["cache_bytes"]), (&65_536.into(), &1_048_576.into()));
    assert_eq!(sizes[1]["policies"].as_array().map(Vec::len), Some(Kind::ALL.len()));
}

#[test]
fn traces_are_the_same_each_time_and_have_what_their_workloads_do() {
    let record = || record::all(&options(&["--records", "5000"]).expect("right arguments"), &mut |_| {});
    let traces = record().expect("it works");
    assert_eq!(record().expect("it works"), traces);
    let recorded: Vec<Recorded> = traces.iter().map(|trace| Recorded::new(trace).expect("not empty")).collect();
    let has = |name: &str, what| {
        let recorded = recorded.iter().find(|recorded| recorded.name == name).expect("there is such a trace");
        recorded.events.iter().any(|event| event.what == what)
    };
    assert!(has("C beside a full scan", What::Ahead));
    assert!(!has("C, zipfian reads", What::Ahead) && !has("C, zipfian reads", What::Dead));
}

#[test]
fn empty_and_unreadable_traces_are_refused() {
    let scratch = Scratch::new("cache");
    let file = &path_in(&scratch);
    trace_file::save(Path::new(file), &[]).expect("a new file");
    let refused = |path: &str| reported(&["--trace", path]).err().map(|failure| (failure.kind, failure.text));
    let kind = |path: &str| refused(path).map(|(kind, _)| kind);
    assert_eq!(kind(file), Some(crate::NOTHING));
    let nothing = Trace { name: "nothing".to_owned(), operations: 5, accesses: Vec::new() };
    trace_file::save(Path::new(file), &[nothing]).expect("the same file");
    assert_eq!(refused(file), Some((crate::NOTHING, "the trace of nothing is empty".to_owned())));
    std::fs::write(file, "no trace").expect("the same file");
    assert_eq!([kind(file), kind("/no/such/file")], [Some("target"); 2]);
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for wrong in [
        &["--records", "10"][..],
        &["--records", "many"],
        &["--cache-sizes", "big"],
        &["--trace", "t", "--records", "5000"],
        &["--trace", "t", "--save", "u"],
        &["--policy", "lru"],
    ] {
        assert!(options(wrong).is_err(), "{wrong:?}");
    }
    let failure = reported(&["--cache-sizes", "1MiB,100"]).expect_err("100 bytes hold no page");
    assert_eq!(failure.kind, "target");
}
