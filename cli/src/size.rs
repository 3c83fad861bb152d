//! Reads and prints sizes in the form that people use: it reads `16KiB`, and prints `95.4 MiB` and `1,234,567`. All
//! units are binary.

use larch::Budget;

#[cfg(test)]
mod tests;

const UNITS: [(&str, u32); 4] = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];

/// Parses a size such as `4096`, `4096B`, `16K`, `16KiB`, `64MiB` or `1GiB`. Options of targets of `larch bench`
/// are parsed in the same way.
pub fn parse(text: &str) -> Result<u64, String> {
    kit::size::parse(text)
}

/// The word for a budget that is elastic.
const FREE: &str = "free";

/// Parses the budget of a cache: a size, or `free`.
pub fn parse_budget(text: &str) -> Result<Budget, String> {
    if text == FREE {
        return Ok(Budget::free());
    }
    parse(text)
        .map(Budget::fixed)
        .map_err(|why| format!("{why}; or `{FREE}` for the memory that other programs leave free"))
}

/// Like [`parse`], for settings that the engine stores in 32 bits.
pub fn parse_u32(text: &str) -> Result<u32, String> {
    u32::try_from(parse(text)?).map_err(|_| "a page is smaller than 4GiB".to_string())
}

/// `0 B`, `4.0 KiB`, `95.4 MiB`.
pub fn bytes(count: u64) -> String {
    let Some((name, shift)) = UNITS.iter().rev().find(|(_, shift)| count >> shift > 0) else {
        return format!("{count} B");
    };
    format!("{:.1} {name}iB", count as f64 / (1u64 << shift) as f64)
}

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 row`, `2 rows`.
pub fn of(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `1 index`, `2 indexes`.
pub fn indexes(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "index" } else { "indexes" })
}

/// `no damage`, `1 problem`, `2 problems`.
pub fn damage(problems: usize) -> String {
    if problems == 0 { "no damage".to_owned() } else { of(problems as u64, "problem") }
}

/// `850 ms`, `12.3 s`.
pub fn seconds(time: std::time::Duration) -> String {
    match time.as_micros() {
        micros @ 0..1_000 => format!("{micros} us"),
        micros @ 1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        micros => format!("{:.1} s", micros as f64 / 1e6),
    }
}

/// The number divided by the time in seconds, rounded to a whole number.
pub fn rate(number: u64, time: std::time::Duration) -> u64 {
    (number as f64 / time.as_secs_f64().max(1e-9)) as u64
}
