//! Finds numbers in texts, with their units, and compares them with figures. Tests use it to prove that a file or a
//! page has every figure that a text has.

use super::{BYTES, Figure, NANOS, PERCENT};

/// A number in a text, as a range: a number with few digits stands for all values that are rounded to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The number as it is written, with its unit.
    pub text: String,
    least: f64,
    most: f64,
    /// The base unit; empty if no known unit follows the number.
    unit: &'static str,
}

/// Units that texts write, each with its base unit and its size in base units.
const UNITS: [(&str, &str, f64); 13] = [
    ("ns", NANOS, 1.0),
    ("us", NANOS, 1e3),
    ("µs", NANOS, 1e3),
    ("ms", NANOS, 1e6),
    ("seconds", NANOS, 1e9),
    ("s", NANOS, 1e9),
    ("B", BYTES, 1.0),
    ("KiB", BYTES, 1024.0),
    ("MiB", BYTES, 1_048_576.0),
    ("GiB", BYTES, 1_073_741_824.0),
    ("TiB", BYTES, 1_099_511_627_776.0),
    ("%", PERCENT, 1.0),
    ("K", "", 1e3),
];

/// The numbers of a text. Digits within a word, such as those of `p99`, are no numbers.
pub fn numbers(text: &str) -> Vec<Number> {
    let mut all = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        if !first.is_ascii_digit() || before.is_alphanumeric() || before == '_' {
            // The point of `p99.9` belongs to the word.
            let in_word = first == '.' && before.is_ascii_digit();
            (before, rest) = (if in_word { before } else { first }, &rest[first.len_utf8()..]);
            continue;
        }
        let (digits, after) = split(rest);
        let (unit, base, size) = unit_of(after);
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let value: f64 = digits.replace(',', "").parse().expect("digits, and at most one point");
        // A whole count is exact, but a rate may be rounded to it. Other numbers are rounded, or cut as YCSB cuts them.
        let away = if decimals == 0 && base.is_empty() { 0.499 } else { 10_f64.powi(-(decimals as i32)) };
        all.push(Number {
            text: format!("{digits}{}", &after[..unit]),
            least: (value - away) * size,
            most: (value + away) * size,
            unit: base,
        });
        (before, rest) = (' ', after);
    }
    all
}

/// Splits off a number: digits, with commas between groups of three, and with decimals.
fn split(text: &str) -> (&str, &str) {
    let digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let mut end = 0;
    while digit(end) || (text[end..].starts_with(',') && (1..=3).all(|more| digit(end + more)) && !digit(end + 4)) {
        end += 1;
    }
    if text[end..].starts_with('.') && digit(end + 1) {
        end += 1;
        while digit(end) {
            end += 1;
        }
    }
    text.split_at(end)
}

/// The length of the unit with which `after` begins, its base unit, and its size.
fn unit_of(after: &str) -> (usize, &'static str, f64) {
    let trimmed = after.trim_start_matches(' ');
    let word: &str = trimmed.split(|letter: char| !letter.is_alphabetic() && letter != '%').next().unwrap_or_default();
    let found = UNITS.iter().find(|(name, ..)| *name == word);
    found.map_or((0, "", 1.0), |(name, base, size)| (after.len() - trimmed.len() + name.len(), base, *size))
}

impl Number {
    fn is(&self, figure: &Figure) -> bool {
        let fits = |value: f64| (self.least..=self.most).contains(&value);
        let same_unit = self.unit.is_empty() || self.unit == figure.unit;
        (same_unit && figure.value.is_some_and(fits)) || numbers(&figure.note).iter().any(|other| self.overlaps(other))
    }

    /// Whether some value is rounded to both numbers.
    fn overlaps(&self, other: &Self) -> bool {
        let same_unit = self.unit.is_empty() || self.unit == other.unit;
        same_unit && self.least <= other.most && other.least <= self.most
    }
}

/// The text without the numbers that are names: `99%:`, `99th`.
pub fn without_labels(text: &str) -> String {
    const LABELS: [&str; 13] = [
        "99.9%:",
        "99%:",
        "95%:",
        "90%:",
        "50%:",
        "99.9th",
        "99th",
        "95th",
        "90th",
        "50 % within",
        "99 % within",
        "90 % of",
        "TPC-C 5.11",
    ];
    LABELS.iter().fold(text.to_owned(), |text, label| text.replace(label, ""))
}

/// The numbers of `text` that no figure has.
pub fn missing(text: &str, figures: &[Figure]) -> Vec<String> {
    let is_missing = |number: &Number| !figures.iter().any(|figure| number.is(figure));
    numbers(text).into_iter().filter(is_missing).map(|number| number.text).collect()
}

/// The numbers of `text` that `other` does not have.
pub fn missing_in_text(text: &str, other: &str) -> Vec<String> {
    let there = numbers(other);
    let is_missing = |number: &Number| !there.iter().any(|other| number.overlaps(other));
    numbers(text).into_iter().filter(is_missing).map(|number| number.text).collect()
}

/// The figures of the table that [`csv`](super::super::csv) has made.
///
/// # Panics
///
/// Panics if `csv` is no such table.
pub fn of_csv(csv: &str) -> Vec<Figure> {
    let mut table = ::csv::Reader::from_reader(csv.as_bytes());
    let heads = table.headers().expect("a table has heads").clone();
    let column = |name: &str| heads.iter().position(|head| head == name).expect("the column is there");
    let (of, name, value) = (column("kind"), column("figure"), column("value"));
    let (unit, note) = (column("unit"), column("note"));
    let lines = table.records().map(|line| line.expect("a line of the table"));
    let figure = |line: ::csv::StringRecord| Figure {
        of: line[of].to_owned(),
        name: line[name].to_owned(),
        value: line[value].parse().ok(),
        unit: UNITS.iter().map(|(_, base, _)| *base).find(|base| *base == &line[unit]).unwrap_or_default(),
        note: line[note].to_owned(),
    };
    lines.map(figure).filter(|figure| !figure.name.is_empty()).collect()
}

/// The figures of a run in the JSON of a result.
///
/// # Panics
///
/// Panics if `run` has no figures.
pub fn of_json(run: &serde_json::Value) -> Vec<Figure> {
    let text = |figure: &serde_json::Value, name: &str| figure[name].as_str().unwrap_or_default().to_owned();
    let figure = |figure: &serde_json::Value| Figure {
        of: text(figure, "of"),
        name: text(figure, "name"),
        value: figure["value"].as_f64(),
        unit: UNITS.iter().map(|(_, base, _)| *base).find(|base| figure["unit"] == *base).unwrap_or_default(),
        note: text(figure, "note"),
    };
    run["figures"].as_array().expect("a run has figures").iter().map(figure).collect()
}
