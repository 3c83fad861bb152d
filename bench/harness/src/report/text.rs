//! Results as text for people: a table of times, and the cost of the run.

use super::Run;
use crate::measured::{Interval, Measure, Measured};
use crate::times::Times;
use std::fmt::Write;

/// A run as text of several lines.
pub fn text(run: &Run) -> String {
    let measured = &run.measured;
    let mut out = format!("{} on {}\n", run.name, run.target);
    let wrote = "a String takes every line";
    let mut settings = String::new();
    for setting in &run.settings {
        write!(settings, "{}{}: {}", if settings.is_empty() { "" } else { "; " }, setting.name, setting.value)
            .expect(wrote);
    }
    if !settings.is_empty() {
        writeln!(out, "  {settings}").expect(wrote);
    }
    if measured.interrupted {
        writeln!(out, "  INTERRUPTED: what follows is what there was until then").expect(wrote);
    }
    if let Some(error) = &run.error {
        writeln!(out, "  FAILED: {error}").expect(wrote);
    }
    writeln!(
        out,
        "  {} operations in {}: {}/s{}, {}",
        grouped(measured.operations),
        nanos(measured.nanos as f64),
        rate(measured.per_second()),
        if measured.failed > 0 { format!(", {} failed", grouped(measured.failed)) } else { String::new() },
        if measured.clients == 1 { "1 client".to_owned() } else { format!("{} clients", measured.clients) },
    )
    .expect(wrote);
    out.push_str(&table(measured));
    for kind in measured.kinds.iter().filter(|kind| kind.batched > 0) {
        writeln!(out, "  {}: {}", kind.name, gathered(kind)).expect(wrote);
    }
    let missing = measured.kinds.iter().map(|kind| kind.not_found).sum();
    let edges = [
        (missing, "requests met no row"),
        (measured.warmed, "began before the window"),
        (measured.cut, "ended after it"),
        (measured.unsent, "should have begun in it and did not"),
        (measured.retries, "retries"),
    ];
    let edges = edges.iter().filter(|(count, _)| *count > 0);
    let edges: Vec<_> = edges.map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
    if !edges.is_empty() {
        writeln!(out, "  {}", edges.join(", ")).expect(wrote);
    }
    for noted in &measured.counts {
        let per_second = noted.value as f64 * 1e9 / measured.nanos.max(1) as f64;
        writeln!(out, "  {}: {}, {}/s", noted.name, grouped(noted.value), rate(per_second)).expect(wrote);
    }
    if let Some(settled) = run.settled_nanos {
        writeln!(out, "  the store worked {} more in the background", nanos(settled as f64)).expect(wrote);
    }
    out.push_str(&cost(run));
    let counters = measured.counters.iter().map(|change| match change.counted() {
        Some(count) => format!("{} {}", grouped(count), change.name),
        None => format!("{} {} now", grouped(change.after), change.name),
    });
    let counters: Vec<_> = counters.collect();
    if !counters.is_empty() {
        writeln!(out, "  store: {}", counters.join(", ")).expect(wrote);
    }
    let again = if measured.has_failed() { "" } else { " of those that were retried" };
    for (kind, first) in &measured.failures {
        writeln!(out, "  first {kind}{again}: {first}").expect(wrote);
    }
    for warning in run.short_window().iter().chain(&run.warnings) {
        writeln!(out, "  WARNING: {warning}").expect(wrote);
    }
    out
}

const COLUMNS: [&str; 11] =
    ["count", "per second", "mean", "p50", "p95", "p99", "p99.9", "max", "retries", "rolled back", "failed"];

/// A line for each kind that had requests. If a kind has response times, they stand before its service times. A
/// quantile from too few times is blank.
fn table(measured: &Measured) -> String {
    let mut lines: Vec<(String, [String; 11])> = vec![(String::new(), COLUMNS.map(str::to_owned))];
    for kind in measured.kinds.iter().filter(|kind| kind.done() + kind.failed_count() + kind.retries > 0) {
        let mut line = |name: String, times: &Times| {
            let per_second = kind.done() as f64 * 1e9 / measured.nanos.max(1) as f64;
            let shown = |figure: f64| if times.is_empty() { "-".to_owned() } else { nanos(figure) };
            let quantile = |quantile| nanos_or_blank(times.known_quantile(quantile));
            lines.push((
                name,
                [
                    grouped(kind.done()),
                    rate(per_second),
                    shown(times.mean()),
                    quantile(0.5),
                    quantile(0.95),
                    quantile(0.99),
                    quantile(0.999),
                    shown(times.max() as f64),
                    grouped(kind.retries),
                    grouped(kind.rolled_back),
                    grouped(kind.failed_count()),
                ],
            ));
        };
        line(kind.name.clone(), kind.times());
        if kind.response.is_some() {
            line("  of it service".to_owned(), &kind.service);
        }
    }
    let first = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let width = |column: usize| lines.iter().map(|(_, cells)| cells[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let mut out = String::new();
    for (name, cells) in &lines {
        write!(out, "    {name:<first$}").expect("a String takes every line");
        for (cell, width) in cells.iter().zip(&widths) {
            write!(out, "  {cell:>width$}").expect("a String takes every line");
        }
        out.push('\n');
    }
    out
}

/// The remark on a kind of which some requests have no times.
pub fn gathered(kind: &Measure) -> String {
    let batched = grouped(kind.batched);
    let times = if kind.times().is_empty() { "there are no times" } else { "the times are those of calls that wrote" };
    format!("{batched} rows were gathered in memory and written with others, so {times}")
}

fn cost(run: &Run) -> String {
    let measured = &run.measured;
    let cost = &measured.cost;
    let each = |nanos_spent: u64| nanos(nanos_spent as f64 / (measured.operations + measured.failed).max(1) as f64);
    let mut out = format!(
        "  processor: {} ({} user, {} system); clients {} an operation",
        nanos(cost.process_nanos() as f64),
        nanos(cost.user_nanos as f64),
        nanos(cost.system_nanos as f64),
        each(cost.client_nanos),
    );
    let wrote = "a String takes every line";
    if let Some(noop) = run.noop_nanos {
        let operations = measured.operations + measured.failed;
        let (own, share) = (cost.own_nanos(noop, operations), cost.own_share(noop, operations));
        write!(out, ", of which {:.0} % ({}) are the client's own", 100.0 * share, nanos(own)).expect(wrote);
    }
    if cost.background_nanos > 0 {
        write!(out, "; background {}", nanos(cost.background_nanos as f64)).expect(wrote);
    }
    let peak = if cost.peak_of_window { "at most" } else { "at most since the start" };
    writeln!(
        out,
        "\n  memory: {} at the end, {} {peak}; context switches: {} to wait, {} forced",
        bytes(cost.resident_bytes),
        bytes(cost.peak_bytes),
        grouped(cost.voluntary_switches),
        grouped(cost.involuntary_switches),
    )
    .expect(wrote);
    if let Some(million) = run.million(run.price).text() {
        writeln!(out, "  a million operations: {million}").expect(wrote);
    }
    out
}

/// An interval in one line, as it is shown while a run goes on. The line has the seconds and the operations per
/// second. For each kind that had requests, the line has the count, the mean, the 99th percentile and the greatest
/// time.
pub fn line(interval: &Interval) -> String {
    let mut out = format!(
        "{:>7.1} s{} {:>10}/s",
        interval.to_nanos as f64 / 1e9,
        if interval.warming { " (warm-up)" } else { "" },
        rate(interval.per_second()),
    );
    let wrote = "a String takes every line";
    for kind in interval.kinds.iter().filter(|kind| kind.done() > 0) {
        let times = kind.times();
        write!(out, "  {} {}", kind.name, grouped(kind.done())).expect(wrote);
        if times.is_empty() {
            continue;
        }
        write!(
            out,
            " (mean {}, p99 {}, max {})",
            nanos(times.mean()),
            nanos_or_blank(times.known_quantile(0.99)),
            nanos(times.max() as f64),
        )
        .expect(wrote);
    }
    if interval.failed > 0 {
        write!(out, "  {} failed", grouped(interval.failed)).expect(wrote);
    }
    if interval.late > 0 {
        write!(out, "  {} threads wait for the store", interval.late).expect(wrote);
    }
    out
}

/// A time for people, with three digits: `950 ns`, `12.3 us`, `4.56 ms`, `60.0 s`.
pub fn nanos(nanos: f64) -> String {
    let (value, unit) = match nanos {
        _ if nanos < 999.5 => return format!("{nanos:.0} ns"),
        _ if nanos < 999.5e3 => (nanos / 1e3, "us"),
        _ if nanos < 999.5e6 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    format!("{} {unit}", three(value))
}

/// A time that may not be known, for people. One that is not known is a dash.
pub fn nanos_or_blank(known: Option<u64>) -> String {
    known.map_or("-".to_owned(), |known| nanos(known as f64))
}

/// Bytes for people: `950 B`, `12.3 KiB`, `4.56 MiB`.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1023.5 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{} {unit}", three(value)) };
        }
        value /= 1024.0;
    }
    format!("{} TiB", three(value))
}

/// A rate for people: `12.3`, `1,234`.
pub fn rate(per_second: f64) -> String {
    if per_second < 99.95 { three(per_second) } else { grouped(per_second.round() as u64) }
}

/// A number with three digits: `1.23`, `12.3`, `1234`.
pub fn three(value: f64) -> String {
    match value {
        _ if value < 9.995 => format!("{value:.2}"),
        _ if value < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A number with a comma after every three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
