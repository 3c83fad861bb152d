//! Logs of histograms for `hdrhistogram.fileoutput`. Each metric has a file, which has a line for each interval of
//! the measured window. Values are in microseconds, as in the original. The greatest value of each line is divided
//! by a million, so it is in seconds. Histograms have the encoding V2. The original writes V1. Newer versions of
//! the HdrHistogram tools read both V1 and V2.

use super::lines::{Metric, metrics};
use crate::settings::{MeasurementType, Output};
use harness::{Measured, Times};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use std::time::{Duration, UNIX_EPOCH};

/// The paths and contents of the files that `output` asks for.
pub fn hdr_logs(measured: &Measured, output: &Output) -> Vec<(String, String)> {
    let Some(begin) = output.hdr_path.as_ref().filter(|_| output.measure.is_hdr()) else { return Vec::new() };
    let prefix = if output.measure == MeasurementType::Hdr { "" } else { "Hdr" };
    let log = |metric: &Metric<'_>| {
        let name = format!("{prefix}{}", metric.name);
        let text = log(measured, metric, &name);
        (format!("{begin}{name}.hdr"), text)
    };
    metrics(measured, output).iter().map(log).collect()
}

fn log(measured: &Measured, metric: &Metric<'_>, name: &str) -> String {
    let wrote = "a Vec takes every line, and counts are below 2^63";
    let began = UNIX_EPOCH + Duration::from_millis(measured.began_unix_millis);
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment(&format!("[Logging for: {name}]"))
        .with_start_time(began)
        .with_base_time(began)
        .with_max_value_divisor(1e6);
    let mut writer = builder.begin_log_with(&mut log, &mut serializer).expect(wrote);
    for interval in measured.window() {
        let Some(kind) = interval.kinds.iter().find(|kind| kind.name == metric.kind.name) else { continue };
        let times = metric.times(kind);
        if !times.is_empty() {
            let from = Duration::from_nanos(interval.from_nanos);
            let length = Duration::from_nanos(interval.to_nanos - interval.from_nanos);
            writer.write_histogram(&micros(&times), from, length, None).expect(wrote);
        }
    }
    String::from_utf8(log).expect("made of text")
}

fn micros(times: &Times) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits are allowed");
    for (least, _, count) in times.iter() {
        histogram.record_n(least / 1000, count).expect("a histogram that grows takes every time");
    }
    histogram
}
