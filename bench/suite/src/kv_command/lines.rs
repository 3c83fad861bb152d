//! What `larch bench kv` prints before and after a run, in scylla-bench's words and order.

use super::unused;
use crate::args::kv::{KvArgs, RetryHandler};
use harness::report::Run;
use harness::{Measure, Times};
use kv::options::go_time;
use kv::{KvScheme, Mode, Options, Restriction, Setup, Workload};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The options as (name, value), in printing order.
pub fn configuration(args: &KvArgs, options: &Options, setup: &Setup, scheme: &KvScheme) -> Vec<(String, String)> {
    let limit = |limit: u64| if limit == 0 { "unlimited".to_owned() } else { limit.to_string() };
    let server = |name: &str, value: String| match unused(scheme, name) {
        Some(why) => format!("{value} (no effect: {why})"),
        None => value,
    };
    let mut all: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, value: String| all.push((name.to_owned(), value));
    put("Mode", options.mode.name().to_owned());
    put("Workload", options.workload.name().to_owned());
    put("Timeout", server("timeout", go_time(setup.timeout)));
    put("Max error number at row", limit(options.error_at_row_limit));
    put("Max error number", limit(options.error_limit));
    put("Retries", String::new());
    put("  number", options.retries.number.to_string());
    put("  min interval", go_time(options.retries.min));
    put("  max interval", go_time(options.retries.max));
    put("  handler", if args.retry_handler == RetryHandler::Sb { "sb" } else { "gocql" }.to_owned());
    let consistency = args.consistency_level.clone().unwrap_or_else(|| "quorum".to_owned());
    put("Consistency level", server("consistency-level", consistency));
    put("Partition count", options.partition_count.to_string());
    if options.partition_offset != 0 {
        put("Partition offset", options.partition_offset.to_string());
    }
    put("Clustering rows", options.clustering_row_count.to_string());
    put("Clustering row size", options.clustering_row_size.to_string());
    put("Rows per request", options.rows_per_request.to_string());
    if options.mode.reads() {
        let is = |restriction: Restriction| (options.restriction == restriction).to_string();
        put("Provide upper bound", is(Restriction::UpperBound));
        put("IN queries", is(Restriction::In));
        let orders = options.select_order_by.iter().map(|order| match order {
            None => "none",
            Some(harness::Order::Ascending) => "asc",
            Some(harness::Order::Descending) => "desc",
        });
        put("Order by", orders.collect::<Vec<_>>().join(","));
        put("No lower bound", is(Restriction::NoLowerBound));
    }
    if options.mode == Mode::Scan {
        put("Ranges", options.range_count.to_string());
    }
    put("Validate data", args.validate_data.to_string());
    put("Page size", server("page-size", setup.page_rows.to_string()));
    put("Concurrency", options.concurrency.to_string());
    put("Threads", setup.threads.to_string());
    put("Connections", server("connection-count", setup.connections.to_string()));
    put("Maximum rate", options.max_rate.map_or("unlimited".to_owned(), |rate| format!("{rate} op/s")));
    let compression = args.client_compression.unwrap_or(true).to_string();
    put("Client compression", server("client-compression", compression));
    if options.workload == Workload::Timeseries {
        put("Start timestamp", options.start_timestamp.to_string());
        put("Write rate", options.rows_a_second_and_partition().to_string());
    }
    all
}

/// The configuration as text.
pub fn block(configuration: &[(String, String)]) -> String {
    let mut text = "Configuration\n".to_owned();
    for (name, value) in configuration {
        text.push_str(&line(name, value));
    }
    text
}

/// Values begin in a fixed column, as after three tabs.
fn line(name: &str, value: &str) -> String {
    let name = format!("{name}:");
    format!("{name:<24} {value}").trim_end().to_owned() + "\n"
}

/// The results as text.
pub fn results(run: &Run, with_times: bool, is_mixed: bool) -> String {
    let measured = &run.measured;
    let sum = Measure::sum(&measured.kinds);
    let seconds = measured.nanos.max(1) as f64 / 1e9;
    let mut text = "\nResults\n".to_owned();
    let mut put = |name: &str, value: String| text.push_str(&short_line(name, &value));
    put("Time (avg)", go_time(Duration::from_nanos(measured.nanos)));
    put("Total ops", measured.operations.to_string());
    put("Total rows", sum.rows.to_string());
    put("Total errors", measured.failed.to_string());
    put("Total retries", measured.retries.to_string());
    put("Total roll-backs", sum.rolled_back.to_string());
    put("Operations/s", format!("{:.3}", measured.operations as f64 / seconds));
    put("Rows/s", format!("{:.3}", sum.rows as f64 / seconds));
    // If the database runs in the client's process, the client's time includes the database's work.
    let client_nanos = measured.cost.client_nanos / measured.operations.max(1);
    put("Client CPU/op", go_time(Duration::from_nanos(client_nanos)));
    if with_times {
        text.push_str(&times("raw latency", &sum.service));
        text.push_str(&times("c-o fixed latency", sum.times()));
        for kind in measured.kinds.iter().filter(|_| is_mixed) {
            let name = kind.name.to_lowercase();
            text.push_str(&times(&format!("raw {name} latency"), &kind.service));
            text.push_str(&times(&format!("c-o fixed {name} latency"), kind.times()));
        }
    }
    if let Some(short) = run.short_window() {
        text.push_str(&format!("{short}\n"));
    }
    if measured.interrupted {
        text.push_str("INTERRUPTED: this is what was measured until then\n");
    }
    text
}

fn short_line(name: &str, value: &str) -> String {
    let name = format!("{name}:");
    format!("{name:<16} {value}\n")
}

/// The times of a table. What is not known, or known of too few requests, is a dash.
fn times(name: &str, times: &Times) -> String {
    let mut text = format!("{name}:\n");
    let mut put = |name: &str, nanos: Option<u64>| {
        let shown = nanos.map_or("-".to_owned(), |nanos| go_time(Duration::from_nanos(nanos)));
        text.push_str(&short_line(&format!("  {name}"), &shown));
    };
    let bound = |nanos| (!times.is_empty()).then_some(nanos);
    put("max", bound(times.max()));
    for (name, quantile) in [("99.9th", 0.999), ("99th", 0.99), ("95th", 0.95), ("90th", 0.9), ("median", 0.5)] {
        put(name, times.known_quantile(quantile));
    }
    put("mean", bound(times.mean() as u64));
    text
}
