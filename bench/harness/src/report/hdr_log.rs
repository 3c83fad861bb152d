//! Results as an interval log of HdrHistogram. The tools of HdrHistogram and many other tools can show such a log.
//! The log has a line for each interval of the window and each kind; the tag of the line is the kind. Values are
//! nanoseconds, but the column of greatest values is in milliseconds, as the tools expect.

use super::Run;
use crate::measured::Interval;
use crate::times::Times;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::time::{Duration, UNIX_EPOCH};

/// The log of a run. In an open loop, a kind has response times under its name, and service times under
/// `NAME-service`.
pub fn hdr_log(run: &Run) -> String {
    log_of(run, 1, |interval, line| {
        for kind in &interval.kinds {
            line(&kind.name, kind.times());
            if kind.response.is_some() {
                line(&format!("{}-service", kind.name), &kind.service);
            }
        }
    })
}

/// A log whose values are in units of `unit_nanos`. `each` is called for each interval, and gives the tag and the
/// times of each of its lines.
pub fn log_of(run: &Run, unit_nanos: u64, mut each: impl FnMut(&Interval, &mut dyn FnMut(&str, &Times))) -> String {
    let wrote = "a Vec takes every line, and counts are below 2^63";
    let began = UNIX_EPOCH + Duration::from_millis(run.measured.began_unix_millis);
    let unit = match unit_nanos {
        1 => "nanoseconds",
        1_000 => "microseconds",
        _ => "milliseconds",
    };
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment(&one_line(&format!("{} on {}, times in {unit}", run.name, run.target)))
        .with_start_time(began)
        .with_base_time(began)
        .with_max_value_divisor(1e6 / unit_nanos as f64);
    let mut writer = builder.begin_log_with(&mut log, &mut serializer).expect(wrote);
    for interval in run.measured.window() {
        let from = Duration::from_nanos(interval.from_nanos);
        let length = Duration::from_nanos(interval.to_nanos - interval.from_nanos);
        each(interval, &mut |name, times| {
            if !times.is_empty() {
                let name = name.replace([' ', ',', '\t', '\n', '\r'], "_");
                let histogram = in_units(times, unit_nanos);
                writer.write_histogram(&histogram, from, length, Tag::new(&name)).expect(wrote);
            }
        });
    }
    String::from_utf8(log).expect("made of text")
}

fn in_units(times: &Times, unit_nanos: u64) -> Histogram<u64> {
    if unit_nanos == 1 {
        return times.hdr();
    }
    let mut histogram = Histogram::new(3).expect("three digits are allowed");
    for (least, _, count) in times.iter() {
        histogram.record_n(least / unit_nanos, count).expect("a histogram that grows takes every time");
    }
    histogram
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
