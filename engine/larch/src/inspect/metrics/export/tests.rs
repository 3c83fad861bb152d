//! Tests what other programs rely on in the exported text.

use super::{Metrics, escaped};
use crate::handle::database::Database;
use os::Machine;
use std::collections::{BTreeMap, BTreeSet};

/// The metrics of a database with rows in memory and in files, after some reads.
fn metrics() -> Metrics {
    let (machine, _) = Machine::simulated(1);
    let db = Database::builder("db").machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    db.flush().expect("the disk works");
    table.insert("b", "2").expect("the disk works");
    for _ in 0..3 {
        assert!(table.get("a").expect("the disk works").is_some());
    }
    db.metrics()
}

/// Returns the values by name and labels, and checks the rules of the format: the HELP and TYPE of a name come
/// before its values, which follow each other; no name comes twice with the same labels; TYPE is `counter` exactly
/// if the name ends with `_total`.
fn samples(text: &str) -> BTreeMap<String, u64> {
    assert!(text.ends_with('\n'));
    let mut samples = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut now = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, _) = help.split_once(' ').expect("a help has a text");
            let expected = if name.ends_with("_total") { "counter" } else { "gauge" };
            assert_eq!(lines.next(), Some(format!("# TYPE {name} {expected}").as_str()));
            assert!(name.starts_with("larch_") && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
            assert!(seen.insert(name.to_owned()), "{name} twice");
            now = name.to_owned();
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect("a sample has a value");
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        assert_eq!(name, now, "{line}");
        assert!(labels.is_empty() || labels.ends_with("\"}"), "{line}");
        let before = samples.insert(sample.to_owned(), value.parse().expect("whole numbers"));
        assert!(before.is_none(), "{sample} twice");
    }
    samples
}

#[test]
fn prometheus_is_told_what_the_fields_say() {
    let metrics = metrics();
    let text = metrics.to_prometheus();
    let samples = samples(&text);
    assert_eq!(samples["larch_memory_bytes{owner=\"memtables\"}"], metrics.memtable_bytes);
    assert_eq!(samples["larch_memory_sum_bytes"], metrics.memory().total_bytes());
    assert_eq!(samples["larch_written_bytes_total{reason=\"log\"}"], metrics.log_bytes);
    assert_eq!(samples["larch_flushes_total"], 1);
    assert_eq!(samples["larch_files"], 1);
    let sum = |of: &str| samples.iter().filter(|(name, _)| name.starts_with(of)).map(|(_, value)| value).sum::<u64>();
    assert_eq!(sum("larch_memory_bytes{"), metrics.memory().total_bytes());
    assert_eq!(sum("larch_page_reads_total{"), metrics.page_reads);
    assert_eq!(sum("larch_page_hits_total{"), metrics.page_hits);
    assert_eq!(sum("larch_cached_bytes{") + metrics.cache.in_flight_bytes, metrics.cache.used_bytes);
    assert!(samples["larch_page_hits_total{reason=\"point\",kind=\"data\"}"] >= 2);
    assert!(samples.contains_key("larch_cached_bytes{kind=\"range_erase\"}"));
}

#[test]
fn json_has_the_same_numbers() {
    let metrics = metrics();
    let json = metrics.to_json();
    // Each bracket is closed by one of the same kind. Names contain no brackets.
    let mut open = Vec::new();
    for byte in json.bytes() {
        match byte {
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => assert_eq!(open.pop(), Some(byte)),
            _ => {}
        }
    }
    assert!(open.is_empty());
    let samples = samples(&metrics.to_prometheus());
    for (name, value) in &samples {
        let name = name.strip_prefix("larch_").expect("all names begin so");
        let line = match name.split_once('{') {
            None => format!("\n  \"{}\": {value}", name.trim_end_matches("_total")),
            Some((_, labels)) => {
                let labels = labels.trim_end_matches('}').replace(',', ", \"").replace('=', "\": ");
                format!("\n    {{\"{labels}, \"value\": {value}}}")
            }
        };
        assert!(json.contains(&line), "{line} in {json}");
    }
    assert_eq!(json.matches(": ").count() - json.matches(": [").count(), {
        let labels: usize = samples.keys().map(|name| name.matches('=').count()).sum();
        labels + samples.len()
    });
}

#[test]
fn labels_are_escaped() {
    assert_eq!(escaped("a \"b\" \\ \n"), "a \\\"b\\\" \\\\ \\n");
}
