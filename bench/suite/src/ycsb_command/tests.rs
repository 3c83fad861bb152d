#![allow(clippy::disallowed_methods, reason = "files of the machine")]

use super::{Ending, on_target};
use crate::args::{Action, YcsbArgs};
use crate::stop::Stop;
use clap::{Args, Command, FromArgMatches};
use harness::Failure;
use kit::Scratch;
use std::path::Path;

/// Runs a workload of a thousand reads on a store that does nothing.
fn run(properties: &[String]) -> Result<Ending, Failure> {
    let words = "run --target noop: --workload c --operations 1000 --quiet";
    let properties = properties.iter().flat_map(|property| ["-p", property]);
    let words = ["ycsb"].into_iter().chain(words.split(' ')).chain(properties);
    let matches = YcsbArgs::augment_args(Command::new("ycsb")).get_matches_from(words);
    let args = YcsbArgs::from_arg_matches(&matches).expect("they were augmented");
    on_target(Action::Run, &args, &[harness::noop::SCHEME], &Stop::never())
}

fn lines(path: &Path, beginning: &str) -> usize {
    let text = std::fs::read_to_string(path).expect("it was written");
    text.lines().filter(|line| line.starts_with(beginning)).count()
}

#[test]
fn properties_name_the_files_that_are_written() {
    let directory = Scratch::new("suite");
    let place = directory.path().display();
    let ending = run(&[
        "measurementtype=hdrhistogram+raw".to_owned(),
        format!("measurement.raw.output_file={place}/raw.csv"),
        "hdrhistogram.fileoutput=true".to_owned(),
        format!("hdrhistogram.output.path={place}/log-"),
    ]);
    assert_eq!(ending.expect("it is measured"), Ending::Good);
    assert_eq!(lines(&directory.join("raw.csv"), "RawREAD,"), 1000);
    assert_eq!(lines(&directory.join("log-HdrREAD.hdr"), "0.000,"), 1);
}

#[test]
fn a_file_that_cannot_be_written_is_no_good_ending() {
    let full = ["measurementtype=raw".to_owned(), "measurement.raw.output_file=/dev/full".to_owned()];
    assert_eq!(run(&full).expect("it is measured"), Ending::Bad);
    let nowhere = ["measurementtype=raw".to_owned(), "measurement.raw.output_file=/no/such/file".to_owned()];
    assert_eq!(run(&nowhere).expect_err("it is told before a store is touched").kind, "target");
    let nowhere = ["hdrhistogram.fileoutput=true".to_owned(), "hdrhistogram.output.path=/no/such/".to_owned()];
    assert_eq!(run(&nowhere).expect("it is measured"), Ending::Bad);
}

#[test]
fn files_and_page_have_every_number_of_the_texts() {
    let run = crate::results::tests::run("workload a", &["READ", "UPDATE"], &[]);
    crate::results::tests::check(&run, &harness::report::text::text(&run));
    let settings = ycsb::Settings::new(&ycsb::Properties::new(), &|_| Ok(String::new())).expect("all have defaults");
    let exported = ycsb::export(&run.measured, &settings.output);
    // `[READ], AverageLatency(us), 12.5`: the unit comes first there.
    let unit = |line: &str| {
        [("(us)", "us"), ("(ms)", "ms")].iter().find(|(mark, _)| line.contains(mark)).map(|(_, unit)| *unit)
    };
    let line = |line: &str| {
        let (metric, value) = line.rsplit_once(", ")?;
        let is_of_java = ["GC", "Return="].iter().any(|word| metric.contains(word));
        (!is_of_java).then(|| format!("{value} {}\n", unit(metric).unwrap_or_default()))
    };
    crate::results::tests::check(&run, &exported.lines().filter_map(line).collect::<String>());
    let done = super::phase::Done {
        name: "a".to_owned(),
        work: super::phase::Work::Run,
        distribution: "zipfian",
        output: settings.output,
        exporter_is_set: false,
        is_store_lost: false,
        warnings_before: 0,
        run,
    };
    let summary = super::first::summary(&[done]);
    let run = crate::results::tests::run("workload a", &["READ", "UPDATE"], &[]);
    crate::results::tests::check(&run, &summary.lines().skip(1).collect::<Vec<_>>().join("\n"));
}
