//! The output of YCSB, made from a measured result.

mod hdr;
mod java;
mod lines;
mod seed_line;
mod status;
#[cfg(test)]
mod tests;

use crate::settings::{Format, Output};
use harness::Measured;
use java::double;
use lines::{ResultLine, Value};
use std::fmt::Write;

pub use hdr::hdr_logs;
pub use seed_line::seed_line;
pub use status::Status;

/// The result as text, in the format that the property `exporter` names.
///
/// As in the original, times are whole microseconds, rounded down. Averages and variances are computed from
/// nanoseconds. There are no lines about garbage collection, because this program has none. There are no lines
/// about the operation `CLEANUP` either. Requests that found no row are counted as `Return=NOT_FOUND`, and their
/// times are among the operation's own times. The original counts such requests under `-FAILED`. The throughput
/// counts only completed operations.
pub fn export(measured: &Measured, output: &Output) -> String {
    let lines = lines::of(measured, output);
    match output.format {
        Format::Text => text(&lines),
        Format::Json => json(&lines, " "),
        Format::JsonArray => format!("[ {} ]", json(&lines, ", ")),
    }
}

fn text(lines: &[ResultLine]) -> String {
    let mut text = String::new();
    for ResultLine { metric, measurement, value } in lines {
        let value = match value {
            Value::Whole(number) => number.to_string(),
            Value::Real(number) => double(*number),
        };
        writeln!(text, "[{metric}], {measurement}, {value}").expect("a string takes everything");
    }
    text
}

/// Objects in the format of Jackson's pretty printer.
fn json(lines: &[ResultLine], between: &str) -> String {
    let object = |ResultLine { metric, measurement, value }: &ResultLine| {
        let value = match value {
            Value::Whole(number) => number.to_string(),
            // JSON has neither infinite numbers nor NaN, so such values are written as texts.
            Value::Real(number) if !number.is_finite() => format!("\"{}\"", double(*number)),
            Value::Real(number) => double(*number),
        };
        format!(
            "{{\n  \"metric\" : {},\n  \"measurement\" : {},\n  \"value\" : {value}\n}}",
            quoted(metric),
            quoted(measurement)
        )
    };
    lines.iter().map(object).collect::<Vec<_>>().join(between)
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => write!(quoted, "\\u{:04x}", u32::from(c)).expect("a string takes everything"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
