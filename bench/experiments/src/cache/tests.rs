//! Tests the whole experiment on small tables.

#![allow(clippy::disallowed_methods, reason = "files of tests")]

use super::*;
use crate::experiment::run_until;
use crate::experiment::tests::tiny;
use clap::Parser;
use kit::Scratch;
use page::Table;
use policies::Kind;
use recorded::What;
use std::path::Path;
use suite::stop::Stop;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: CacheTrace,
}

fn options(arguments: &[&str]) -> Result<CacheTrace, String> {
    let all = ["cache-trace"].iter().chain(arguments);
    Command::try_parse_from(all).map(|command| command.options).map_err(|error| error.to_string())
}

fn replays(arguments: &[&str]) -> Result<Replays, Failure> {
    Replays::of(&options(arguments).expect("right arguments"))
}

/// A path in `scratch`, as an argument.
fn path_in(scratch: &Scratch, name: &str) -> String {
    scratch.join(name).into_os_string().into_string().expect("names of tests are text")
}

/// The tables of all traces.
fn tables(arguments: &[&str]) -> Vec<Table> {
    let again = options(arguments).expect("right arguments");
    let (scratch, _, outcome) =
        tiny(replays(arguments).expect("it works"), Replays::of(&again).expect("it works a second time"));
    let page = std::fs::read_to_string(scratch.join("out/index.html")).expect("the page is written");
    assert!(page.contains("pages read for an operation"), "the page has charts");
    let table = |block| if let Block::Table(table) = block { Some(table) } else { None };
    outcome.blocks.into_iter().filter_map(table).collect()
}

#[test]
fn every_policy_is_told_of_on_every_trace_and_saved_traces_give_the_same() {
    let scratch = Scratch::new("cache");
    let file = &path_in(&scratch, "saved.trace");
    let recorded = tables(&["--records", "5000", "--save", file]);
    assert_eq!(recorded.len(), COURSES.len() + GETS.len());
    let (traces, gets) = recorded.split_at(COURSES.len());
    for (table, course) in traces.iter().zip(COURSES) {
        assert!(table.caption.starts_with(&format!("{}: ", course.name)), "{}", table.caption);
        for kind in Kind::ALL {
            assert_eq!(table.rows.iter().filter(|row| row[0] == kind.name()).count(), SHARES.len(), "{table:?}");
        }
    }
    for (table, of) in gets.iter().zip(GETS) {
        assert!(table.caption.starts_with(&format!("{}: ", of.name)), "{}", table.caption);
        let lines_of = |keeps| table.rows.iter().filter(|row| row[0] == keeps).count();
        let sizes = lines_of("both");
        assert!(sizes > 0 && [lines_of("pages"), lines_of("rows")] == [3 * sizes; 2], "{table:?}");
    }
    // Gets are not in the file.
    assert_eq!(tables(&["--trace", file]), traces);
    assert_eq!(tables(&["--records", "5000"]), recorded);
    let sized = tables(&["--trace", file, "--cache-sizes", "64KiB,1MiB"]);
    assert!(sized.iter().all(|table| table.rows.len() == 2 * Kind::ALL.len()));
}

#[test]
fn an_interrupted_run_goes_on_and_leaves_all_counts_as_json() {
    let scratch = Scratch::new("cache");
    let arguments = ["--records", "2000", "--cache-sizes", "64KiB", "--out", &path_in(&scratch, "out")];
    let args = options(&arguments).expect("right arguments").experiment();
    let read = |name: &str| std::fs::read_to_string(scratch.join("out").join(name)).expect("it is written");
    assert!(run_until(replays(&arguments).expect("it works"), &args, Stop::never()).expect("it works"));
    let whole = read("result.json");
    let cells = read("cells.jsonl");
    // As if the run had been interrupted in the fourth cell.
    let first: String = cells.lines().take(4).map(|line| format!("{line}\n")).collect();
    std::fs::write(scratch.join("out/cells.jsonl"), first + "{\"cell\":\"cut sho").expect("there is room");
    assert!(run_until(replays(&arguments).expect("it works"), &args, Stop::never()).expect("it goes on"));
    let cells_of = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("it is JSON")["cells"].clone();
    let json = cells_of(&read("result.json"));
    assert_eq!(json, cells_of(&whole));
    let size = &json["C beside a full scan, 2000 records, cache 65536"]["sizes"][0];
    assert_eq!((&size["cache_bytes"], size["policies"].as_array().map(Vec::len)), (&65_536.into(), Some(6)));
    assert!(size["policies"][0]["needed"][1].as_u64().is_some_and(|needed| needed > 0), "{size}");
    let size = &json["Gets of 1 KB, zipfian, 800 rows, cache 65536"]["sizes"][0];
    let count = |of: &serde_json::Value| of.as_u64().expect("it is a count");
    let (opt, larch) = (&size["rows"][2], &size["larch"]);
    assert_eq!((&opt["policy"], count(&opt["points"][0])), (&"OPT".into(), 800), "{size}");
    assert!(count(&larch["reads"][1]) > 0 && count(&larch["excerpts"]) == 0, "{size}");
}

#[test]
fn traces_are_the_same_each_time_and_have_what_their_workloads_do() {
    let record = || record::all(5000);
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
fn traces_of_one_name_are_different_cells() {
    let scratch = Scratch::new("cache");
    let file = &path_in(&scratch, "saved.trace");
    let trace = record::record(&COURSES[2], 1000).expect("it works");
    let mut other = trace.clone();
    other.accesses.swap_remove(0);
    trace_file::save(Path::new(file), &[trace, other]).expect("a new file");
    let names: Vec<String> = replays(&["--trace", file]).expect("it is read").cells();
    assert!(names[0] != names[1] && names.iter().all(|name| name.starts_with("C, zipfian reads, trace ")), "{names:?}");
}

#[test]
fn empty_and_unreadable_traces_are_refused() {
    let scratch = Scratch::new("cache");
    let (file, out) = (&path_in(&scratch, "saved.trace"), &path_in(&scratch, "out"));
    trace_file::save(Path::new(file), &[]).expect("a new file");
    let refused = |path: &str| {
        let args = options(&["--out", out]).expect("right arguments").experiment();
        let run = replays(&["--trace", path]).and_then(|replays| run_until(replays, &args, Stop::never()));
        run.err().map(|failure| (failure.kind, failure.text))
    };
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
    let failure = replays(&["--cache-sizes", "1MiB,100"]).err().expect("100 bytes hold no page");
    assert_eq!(failure.kind, "target");
}
