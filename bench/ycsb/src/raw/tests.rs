use super::{ClientLines, RawLog};
use crate::kinds;
use crate::properties::Properties;
use crate::settings::{Output, Settings};
use harness::{Kind, Pace, Plan};
use os::sync::{Arc, Mutex};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A file whose content the test can read.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).expect("lines are text")
    }
}

fn output(text: &str) -> Output {
    let mut properties = Properties::new();
    text.split_whitespace().for_each(|pair| properties.set_argument(pair).expect("a property"));
    Settings::new(&properties, &|_| Err("no file".to_owned())).expect("good values").output
}

fn log(page: &Page, properties: &str) -> RawLog {
    RawLog::new("a page", Box::new(page.clone()), &output(properties), &Plan::default())
}

/// The lines, grouped by their first word. In each group, the header comes first.
fn by_name(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut names = BTreeMap::<String, Vec<String>>::new();
    for line in text.lines() {
        let name = line.split([' ', ',']).next().expect("a name");
        names.entry(name.to_owned()).or_default().push(line.to_owned());
    }
    names
}

#[test]
fn lines_are_those_of_the_original() {
    let mut expected = by_name(include_str!("../../vectors/raw-lines.txt"));
    // In the original's file, intended times are twice the other times.
    expected.retain(|name, _| !name.contains("Intended-"));
    let page = Page::default();
    let log = log(&page, "measurementtype=hdrhistogram+raw");
    let mut lines = ClientLines::new(&log.0, 1);
    for (name, of_name) in &expected {
        let kind = kinds::NAMES.iter().position(|kind| name.trim_start_matches("Raw").replace("-FAILED", "") == *kind);
        let kind = Kind(kind.expect("a kind") as u8);
        for line in &of_name[1..] {
            let micros: u64 = line.rsplit(',').next().and_then(|micros| micros.parse().ok()).expect("microseconds");
            lines.push(kind, name.ends_with("-FAILED"), 0, micros * 1000 + 999);
        }
    }
    drop(lines);
    log.finish().expect("it is written");
    assert_eq!(expected.len(), 7);
    assert_eq!(by_name(&page.text()), expected);
}

#[test]
fn a_buffer_that_is_full_is_written_and_no_line_is_lost() {
    let page = Page::default();
    let log = log(&page, "measurementtype=raw");
    let mut lines = ClientLines::new(&log.0, 1);
    let room = lines.bytes.capacity();
    for served in 0..10_000 {
        lines.push(kinds::READ, false, served * 1_000_000, 5000);
    }
    assert_eq!(lines.bytes.capacity(), room);
    assert!(page.text().len() > room / 2, "what was full is written");
    drop(lines);
    let text = page.text();
    let written: Vec<&str> = text.lines().collect();
    assert_eq!(written.len(), 10_001);
    assert_eq!(written[0], "READ latency raw data: op, timestamp(ms), latency(us)");
    assert!(written[1..].iter().enumerate().all(|(at, line)| *line == format!("READ,{at},5")));
}

#[test]
fn a_window_begins_after_the_warm_up() {
    let (warmup, length) = (std::time::Duration::from_nanos(100), std::time::Duration::from_nanos(50));
    let plan = Plan { warmup, length: harness::Length::Time(length), ..Plan::default() };
    let log = RawLog::new("a page", Box::new(Page::default()), &output("measurementtype=raw"), &plan);
    assert_eq!(*log.0.window(1000), 1100..1150);
    assert_eq!(*log.0.window(2000), 1100..1150, "the first request decides");
}

#[test]
fn single_times_are_not_taken_unless_they_are_asked_for() {
    let open = |properties: &str, plan: Plan| RawLog::open(&output(properties), &plan);
    assert!(open("", Plan::default()).expect("good properties").is_none());
    let rate = Plan { pace: Pace::Open { per_second: 1.0 }, ..Plan::default() };
    let error = open("measurementtype=raw measurement.interval=both", rate).err().expect("a rate");
    assert_eq!(
        error.to_string(),
        "property `measurement.interval` is `both` and should be `op` for single times with a rate: they are from when \
         a request was sent"
    );
    let error = open("measurementtype=raw measurement.raw.output_file=/no/such", Plan::default());
    let error = error.err().expect("no directory").to_string();
    assert!(
        error.starts_with("property `measurement.raw.output_file` is `/no/such` and should be a file that"),
        "{error}"
    );
}
