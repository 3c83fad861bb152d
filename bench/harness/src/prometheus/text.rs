//! The watched counts in the text format of Prometheus 0.0.4. Names begin with `larch_bench_`.

use super::{BOUNDS_NANOS, Kind, Watched};
use std::fmt::{Arguments, Write as _};

/// The text of all counts.
pub(super) fn text(watched: &Watched) -> String {
    let mut out = Text(String::new());
    if !watched.run.is_empty() {
        out.head("run_info", "gauge", "The run that goes on.");
        out.line("run_info", &[("run", &watched.run), ("target", &watched.target)], format_args!("1"));
        out.head("warming", "gauge", "Whether the run does not count yet.");
        out.line("warming", &[], format_args!("{}", u8::from(watched.warming)));
    }
    for (name, help, value) in [
        ("operations_total", "Operations that were done, with those of the warm-up.", watched.operations),
        ("failed_operations_total", "Operations that failed.", watched.failed),
        ("retries_total", "New attempts of requests.", watched.retries),
    ] {
        out.head(name, "counter", help);
        out.line(name, &[], format_args!("{value}"));
    }
    out.head("client_cpu_seconds_total", "counter", "Processor time of the client threads.");
    out.line("client_cpu_seconds_total", &[], format_args!("{}", watched.client_nanos as f64 / 1e9));
    requests(watched, &mut out);
    for (name, value) in &watched.counters {
        let (kind, end) = if watched.gauges.contains(name) { ("gauge", "") } else { ("counter", "_total") };
        let family = format!("store_{}{end}", as_name(name));
        out.head(&family, kind, &format!("The store's count of: {name}."));
        out.line(&family, &[], format_args!("{value}"));
    }
    out.0
}

fn requests(watched: &Watched, out: &mut Text) {
    type Count = fn(&Kind) -> u64;
    let counts: [(&str, &str, Count); 7] = [
        ("requests_done_total", "Requests that were done.", |kind| kind.oks),
        ("requests_not_found_total", "Requests that met no row.", |kind| kind.not_found),
        ("requests_batched_total", "Requests that were gathered, to be written with others.", |kind| kind.batched),
        ("requests_rolled_back_total", "Transactions that their input rolls back.", |kind| kind.rolled_back),
        ("requests_retried_total", "Failed requests that were made again.", |kind| kind.retries),
        ("rows_read_total", "Rows that were read.", |kind| kind.rows),
        ("bytes_read_total", "Bytes of those rows that were asked for, with their keys.", |kind| kind.bytes),
    ];
    for (name, help, of) in counts {
        out.head(name, "counter", help);
        for (kind, counted) in &watched.kinds {
            out.line(name, &[("kind", kind)], format_args!("{}", of(counted)));
        }
    }
    out.head(
        "requests_failed_total",
        "counter",
        "Requests that failed, by kind of failure, with those that were made again.",
    );
    for (kind, counted) in &watched.kinds {
        for (failure, count) in &counted.failures {
            out.line("requests_failed_total", &[("kind", kind), ("failure", failure)], format_args!("{count}"));
        }
    }
    let name = "request_seconds";
    out.head(
        name,
        "histogram",
        "From when a request was due in an open loop, and sent otherwise, until it was served.",
    );
    for (kind, counted) in &watched.kinds {
        let mut sum = 0;
        for (bound, count) in BOUNDS_NANOS.iter().zip(counted.times) {
            sum += count;
            let bound = (*bound as f64 / 1e9).to_string();
            out.line("request_seconds_bucket", &[("kind", kind), ("le", &bound)], format_args!("{sum}"));
        }
        sum += counted.times[BOUNDS_NANOS.len()];
        out.line("request_seconds_bucket", &[("kind", kind), ("le", "+Inf")], format_args!("{sum}"));
        out.line("request_seconds_sum", &[("kind", kind)], format_args!("{}", counted.nanos / 1e9));
        out.line("request_seconds_count", &[("kind", kind)], format_args!("{sum}"));
    }
}

/// `text` as a part of a name: `page reads` becomes `page_reads`.
fn as_name(text: &str) -> String {
    text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' }).collect()
}

struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.push(format_args!("# HELP larch_bench_{name} {help}\n# TYPE larch_bench_{name} {kind}\n"));
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: Arguments<'_>) {
        self.push(format_args!("larch_bench_{name}"));
        for (at, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            self.push(format_args!("{}{label}=\"{text}\"", if at == 0 { '{' } else { ',' }));
        }
        self.push(format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
    }

    fn push(&mut self, text: Arguments<'_>) {
        self.0.write_fmt(text).expect("a String takes all");
    }
}
