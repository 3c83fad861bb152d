//! Tests of whole runs: the harness drives the clients on a store that keeps everything in memory.

#![allow(clippy::disallowed_methods, reason = "files of the machine")]

use crate::{Load, Properties, RawLog, Run, Settings, built_in, export};
use harness::{
    Clock, Counter, Failure, KeyValue, Measured, Plan, Records, Session, Setting, Store, StoreUse, Workload, run,
};
use kit::Scratch;
use os::sync::Mutex;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Rows by key.
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Default)]
struct Memory {
    fields: usize,
    rows: Mutex<Map>,
    /// One put in this number fails. If it is 0, no put fails.
    put_fails: u64,
    puts: AtomicU64,
}

impl KeyValue for &Memory {
    fn get(&mut self, key: &[u8], mut found: impl FnMut(&[u8])) -> Result<bool, Failure> {
        Ok(self.rows.lock().get(key).map(|value| found(value)).is_some())
    }

    fn scan(&mut self, start: &[u8], rows: u64, mut each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure> {
        let map = self.rows.lock();
        for (key, value) in map.range(start.to_vec()..).take(rows as usize) {
            if !each(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let put = self.puts.fetch_add(1, Ordering::Relaxed) + 1;
        if self.put_fails > 0 && put.is_multiple_of(self.put_fails) {
            return Err(Failure::again("busy", "the store is busy"));
        }
        self.rows.lock().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure> {
        Ok(self.rows.lock().remove(key).is_some())
    }
}

impl Store for Memory {
    fn settings(&self) -> Vec<Setting> {
        vec![Setting::new("engine", "a map")]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Records::new(self, self.fields))))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.rows.lock().is_empty())
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

fn settings(workload: &str, more: &str) -> Settings {
    let mut properties = if workload.is_empty() { Properties::new() } else { built_in(workload).expect("built in") };
    more.split_whitespace().for_each(|pair| properties.set_argument(pair).expect("a property"));
    Settings::new(&properties, &|_| Err("no file".to_owned())).expect("good values")
}

fn drive<W: Workload>(store: &Memory, workload: &W, settings: &Settings, loading: bool) -> Measured {
    let stop = AtomicBool::new(false);
    run(store, workload, &settings.plan(loading), &stop, &mut |_| ()).expect("it is measured")
}

fn loaded(settings: &Settings) -> Memory {
    let store = Memory { fields: settings.records.fields as usize, ..Memory::default() };
    let load = drive(&store, &Load::new(settings, 1), settings, true);
    assert_eq!((load.operations, load.failed), (settings.records.span as u64, 0));
    store
}

/// Returns the content of a file, and removes the file.
fn take(file: &Path) -> String {
    let text = std::fs::read_to_string(file).expect("it was written");
    std::fs::remove_file(file).expect("it is there");
    text
}

#[test]
fn every_record_of_every_workload_is_found_and_right() {
    for (workload, threads) in [("a", 1), ("b", 3), ("c", 2), ("d", 4), ("e", 4), ("f", 3), ("d", 1)] {
        let more = format!(
            "recordcount=500 operationcount=5000 threadcount={threads} fieldcount=3 fieldlength=40 dataintegrity=true"
        );
        let settings = settings(workload, &more);
        let store = loaded(&settings);
        let measured = drive(&store, &Run::new(&settings, 1), &settings, false);
        assert_eq!((measured.operations, measured.failed), (5000, 0), "workload {workload}");
        let not_found: u64 = measured.kinds.iter().map(|kind| kind.not_found).sum();
        assert_eq!(not_found, 0, "workload {workload}");
        let count = |name| measured.kind(name).map_or(0, |kind| kind.service.count());
        let verify = measured.kind("VERIFY").expect("a kind");
        assert_eq!((verify.oks, verify.failed_count()), (count("READ"), 0), "workload {workload}");
        if workload == "f" {
            assert_eq!(count("READ"), 5000);
            assert_eq!(count("UPDATE"), count("READ-MODIFY-WRITE"));
            assert!((2300..2700).contains(&count("UPDATE")), "{}", count("UPDATE"));
        }
        let inserted = count("INSERT") as usize;
        assert_eq!(store.rows.lock().len(), 500 + inserted, "each insert is another record");
        assert_eq!(inserted > 0, matches!(workload, "d" | "e"));
    }
}

#[test]
fn a_value_that_is_not_what_it_should_be_is_counted() {
    let settings = settings("c", "recordcount=10 operationcount=100 fieldcount=1 dataintegrity=true");
    let store = loaded(&settings);
    store.rows.lock().values_mut().for_each(|value| value[0] ^= 1);
    let measured = drive(&store, &Run::new(&settings, 1), &settings, false);
    let verify = measured.kind("VERIFY").expect("a kind");
    assert_eq!((verify.oks, verify.failures.get("UNEXPECTED_STATE")), (0, Some(&100)));
    let text = export(&measured, &settings.output);
    assert!(text.contains("[VERIFY], Return=UNEXPECTED_STATE, 100\n"), "{text}");
    assert!(!text.contains("VERIFY-FAILED"), "{text}");
}

#[test]
fn a_record_that_is_missing_is_counted() {
    let settings = settings("c", "recordcount=10 operationcount=100 fieldcount=1");
    let store = loaded(&settings);
    store.rows.lock().clear();
    let measured = drive(&store, &Run::new(&settings, 1), &settings, false);
    let text = export(&measured, &settings.output);
    assert!(text.contains("[READ], Return=NOT_FOUND, 100\n"), "{text}");
}

#[test]
fn an_insert_that_fails_is_made_again() {
    let more = "recordcount=100 fieldcount=1 core_workload_insertion_retry_limit=1 \
                core_workload_insertion_retry_interval=0";
    let settings = settings("", more);
    let store = Memory { fields: 1, put_fails: 10, ..Memory::default() };
    let measured = drive(&store, &Load::new(&settings, 1), &settings, true);
    assert_eq!((measured.operations, measured.failed, measured.retries), (100, 0, 11));
    assert_eq!(store.rows.lock().len(), 100);
    let text = export(&measured, &settings.output);
    assert!(
        text.contains("[INSERT], Return=OK, 100\n[INSERT], Return=BUSY, 11\n[INSERT-FAILED], Operations, 11\n"),
        "{text}"
    );
}

#[test]
fn one_client_writes_the_same_whatever_the_time() {
    let settings = settings("d", "recordcount=200 operationcount=3000 fieldcount=2");
    let rows = || {
        let store = loaded(&settings);
        drive(&store, &Run::new(&settings, 9), &settings, false);
        store.rows.into_inner()
    };
    assert_eq!(rows(), rows());
}

/// The headers, and the times of single requests, grouped by the words with which their lines begin. Each line is
/// checked, too.
fn single_times(text: &str) -> (Vec<&str>, BTreeMap<&str, Vec<u64>>) {
    let (mut headers, mut times) = (Vec::new(), BTreeMap::<_, Vec<u64>>::new());
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(" latency raw data: op, timestamp(ms), latency(us)") {
            headers.push(name);
            continue;
        }
        let parts: Vec<&str> = line.split(',').collect();
        let [name, millis, micros] = parts[..] else { panic!("no line of a single time: {line}") };
        assert!(headers.contains(&name), "{name} comes before its header");
        assert_eq!(millis.len(), 13, "milliseconds since 1970: {line}");
        times.entry(name).or_default().push(micros.parse().expect("microseconds"));
    }
    (headers, times)
}

#[test]
fn every_single_time_is_written() {
    let scratch = Scratch::new("ycsb");
    let file = scratch.join("every.csv");
    for (workload, more) in [("f", "threadcount=3"), ("d", "threadcount=2 target=100000")] {
        let more = format!(
            "{more} recordcount=100 operationcount=9000 fieldcount=1 fieldlength=40 dataintegrity=true \
             measurementtype=hdrhistogram+raw measurement.raw.output_file={}",
            file.display()
        );
        let settings = settings(workload, &more);
        let store = loaded(&settings);
        let plan = settings.plan(false);
        let log = RawLog::open(&settings.output, &plan).expect("a file").expect("it is asked for");
        let ended = log.run(&store, &Run::new(&settings, 1), &plan, &AtomicBool::new(false), &mut |_| ());
        let measured = ended.expect("it is measured");
        log.finish().expect("it is written");
        assert_eq!(measured.operations, 9000);
        let text = take(&file);
        let (headers, times) = single_times(&text);
        let summary = export(&measured, &settings.output);
        let kinds = measured.kinds.iter().filter(|kind| !kind.service.is_empty());
        for kind in kinds.clone() {
            let name = format!("Raw{}", kind.name);
            let mut micros = times[&name[..]].clone();
            let line = format!("[{name}], Total Operations, {}\n", micros.len());
            assert!(summary.contains(&line), "{line}{summary}");
            // For each request, the harness reads its clock before and after the store reads the store's clock.
            // Therefore the store's times are not longer than the harness's.
            micros.sort_unstable();
            let median = micros[micros.len() / 2];
            assert!(median <= kind.service.quantile(0.55) / 1000 + 1, "{name}: {median}");
        }
        assert_eq!(headers.len(), kinds.count());
        assert_eq!(headers.len(), times.len());
    }
}

#[test]
fn single_times_of_warm_up_are_left_out() {
    let scratch = Scratch::new("ycsb");
    let file = scratch.join("warm.csv");
    let more = format!(
        "recordcount=10 fieldcount=1 operationcount=100 measurementtype=raw measurement.raw.output_file={}",
        file.display()
    );
    let settings = settings("c", &more);
    let store = loaded(&settings);
    let plan = Plan { warmup: Duration::from_millis(20), ..settings.plan(false) };
    let log = RawLog::open(&settings.output, &plan).expect("a file").expect("it is asked for");
    let ended = log.run(&store, &Run::new(&settings, 1), &plan, &AtomicBool::new(false), &mut |_| ());
    let measured = ended.expect("it is measured");
    log.finish().expect("it is written");
    assert_eq!(measured.operations, 100);
    let text = take(&file);
    let written = single_times(&text).1.get("READ").map_or(0, Vec::len);
    // In 20 ms there are many thousands of requests. One request of the single client may lie across the edge of
    // the window. In this case, the harness may count that the request began before the window, while the store
    // counts that it was sent within the window.
    assert!(written <= 101, "{written}");
}

#[test]
fn single_times_of_requests_that_fail_are_apart() {
    let scratch = Scratch::new("ycsb");
    let file = scratch.join("failed.csv");
    let more = format!(
        "recordcount=100 fieldcount=1 core_workload_insertion_retry_limit=1 core_workload_insertion_retry_interval=0 \
         measurementtype=raw measurement.interval=both measurement.raw.output_file={}",
        file.display()
    );
    let settings = settings("", &more);
    let store = Memory { fields: 1, put_fails: 10, ..Memory::default() };
    let plan = settings.plan(true);
    let log = RawLog::open(&settings.output, &plan).expect("a file").expect("it is asked for");
    let ended = log.run(&store, &Load::new(&settings, 1), &plan, &AtomicBool::new(false), &mut |_| ());
    assert_eq!(ended.expect("it is measured").retries, 11);
    log.finish().expect("it is written");
    let text = take(&file);
    let (headers, times) = single_times(&text);
    assert_eq!(headers, ["INSERT", "Intended-INSERT", "INSERT-FAILED"]);
    assert_eq!(times["INSERT"].len(), 100);
    assert_eq!(times["INSERT"], times["Intended-INSERT"]);
    assert_eq!(times["INSERT-FAILED"].len(), 11);
}

#[test]
fn a_disk_that_is_full_is_told_of() {
    let more = "recordcount=10 fieldcount=1 operationcount=20000 measurementtype=raw \
                measurement.raw.output_file=/dev/full";
    let settings = settings("c", more);
    let store = loaded(&settings);
    let plan = settings.plan(false);
    let log = RawLog::open(&settings.output, &plan).expect("a file").expect("it is asked for");
    let ended = log.run(&store, &Run::new(&settings, 1), &plan, &AtomicBool::new(false), &mut |_| ());
    assert_eq!(ended.expect("it is measured").operations, 20_000);
    let error = log.finish().expect_err("the disk is full").to_string();
    assert!(error.starts_with("cannot write single times to /dev/full: No space left"), "{error}");
}
