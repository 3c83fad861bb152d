//! Tests of what `larch bench ycsb` writes: complete files, and output that programs can read.

use crate::bench::{RECORDS, has_seed_lines, oks, runs, ycsb};
use crate::session::Session;
use serde_json::Value;

const RUN: [&str; 7] = ["run", "-P", "a", "--target", "noop:", "--operations", "3000"];

#[test]
fn files_hold_the_whole_result() {
    let session = Session::new();
    let files = ["--out", "r.json", "--csv", "r.csv", "--hdr", "r.hlog", "--threads", "2"];
    ycsb(&session, &[&RUN[..], &files].concat()).ok();
    assert_eq!(session.names(), ["r.csv", "r.hlog", "r.json"]);

    let run = &runs(&session, "r.json")[0];
    assert_eq!(oks(run).iter().map(|(_, count)| count).sum::<u64>(), 3000);
    for (member, part) in [
        ("workload", "requestdistribution"),
        ("settings", "requests are made and forgotten"),
        ("plan", "\"clients\":2"),
        ("measured", "histogram"),
    ] {
        assert!(run[member].to_string().contains(part), "{member}");
    }
    let result: Value = serde_json::from_slice(&session.bytes("r.json")).expect("a result is JSON");
    assert_eq!(result["environment"]["command"][2], "ycsb");

    let csv = String::from_utf8(session.bytes("r.csv")).expect("CSV is text");
    let mut lines = csv.lines();
    let columns = lines.next().expect("the first line names the columns").split(',').count();
    assert!(lines.clone().any(|line| line.contains(",OPERATIONS,")), "{csv}");
    // A note may be quoted.
    assert!(lines.filter(|line| !line.contains('"')).all(|line| line.split(',').count() == columns), "{csv}");

    let log = String::from_utf8(session.bytes("r.hlog")).expect("a log is text");
    assert!(log.contains("\nTag=READ,") && log.contains("\nTag=UPDATE,"), "{log}");
}

#[test]
fn output_in_forms_of_ycsb_can_be_read() {
    let session = Session::new();
    let text = ycsb(&session, &[&RUN[..], &["--format", "text"]].concat()).ok();
    for line in text.lines() {
        let parts: Vec<&str> = line.split(", ").collect();
        assert!(parts.len() == 3 && parts[0].starts_with('[') && parts[2].parse::<f64>().is_ok(), "{line}");
    }
    assert!(text.contains("[READ], 99thPercentileLatency(us), "), "{text}");

    let json = ycsb(&session, &[&RUN[..], &["--format", "json"]].concat()).ok();
    let objects: Vec<Value> =
        serde_json::Deserializer::from_str(&json).into_iter().map(|value| value.expect("an object")).collect();
    let array = ycsb(&session, &[&RUN[..], &["--format", "json-array"]].concat()).ok();
    let array: Vec<Value> = serde_json::from_str(&array).expect("one array");
    let names = |values: &[Value]| values.iter().map(|value| value["measurement"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&objects), names(&array));
    assert_eq!(objects.len(), text.lines().count());
    let operations = |object: &&Value| object["measurement"] == "Operations";
    assert_eq!(array.iter().filter(operations).filter_map(|object| object["value"].as_u64()).sum::<u64>(), 3000);
}

#[test]
fn status_lines_do_not_come_between_what_programs_read() {
    let session = Session::new();
    let args =
        ["bench", "ycsb", "run", "-P", "c", "--target", "noop:", "--time", "1100ms", "-s", "--format", "json-array"];
    let ran = session.run(&[&args[..], &["-p", "status.interval=1"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    serde_json::from_slice::<Vec<Value>>(&ran.out).expect("one array, and nothing else");
    assert!(ran.err.contains(" sec: ") && ran.err.contains("current ops/sec"), "{}", ran.err);
}

#[test]
fn properties_say_how_it_is_told_as_in_the_original() {
    let session = Session::new();
    let exporter = "exporter=site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter";
    let array = ycsb(&session, &[&RUN[..], &["-p", exporter]].concat()).ok();
    serde_json::from_str::<Vec<Value>>(&array).expect("one array");

    let table = ycsb(&session, &[&RUN[..], &["-p", exporter, "-p", "exportfile=e.json"]].concat()).ok();
    assert!(table.starts_with("workload a on noop:"), "{table}");
    serde_json::from_slice::<Vec<Value>>(&session.bytes("e.json")).expect("one array");

    ycsb(&session, &["all", "-p", RECORDS, "--target", "noop:", "-p", "exportfile=e.txt"]).ok();
    let text = String::from_utf8(session.bytes("e.txt")).expect("it is text");
    assert_eq!(text.matches("[OVERALL], Throughput(ops/sec), ").count(), 8, "all phases are there: {text}");
}

#[test]
fn lines_of_published_results_do_not_come_between_json() {
    let session = Session::new();
    let ran = ycsb(&session, &["all", "-p", RECORDS, "--target", "noop:", "--format", "json-array"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let arrays = serde_json::Deserializer::from_slice(&ran.out).into_iter::<Vec<Value>>();
    let arrays: Vec<Vec<Value>> = arrays.map(|array| array.expect("arrays, and nothing else")).collect();
    assert_eq!(arrays.len(), 8);
    has_seed_lines(&ran.err, "abcfde");
}

#[test]
fn what_is_no_file_is_written_to_and_stays_what_it_is() {
    let session = Session::new();
    let pipe = session.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || std::fs::read(pipe).expect("it can be read"))
    };
    ycsb(&session, &[&RUN[..], &["--out", "pipe"]].concat()).ok();
    let result: Value = serde_json::from_slice(&reader.join().expect("the reader reads")).expect("a result is JSON");
    assert_eq!(result["runs"][0]["name"], "workload a");
    assert!(!std::fs::metadata(pipe).expect("it is there").is_file());
    assert_eq!(session.names(), ["pipe"]);
}
