//! The parameters of ybio's two procedures, with their names, defaults and spelling: `tab_rows=>1e6::int`.

use crate::batch::Order;
use crate::database::TableForm;
use harness::Failure;
use std::ops::RangeInclusive;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Parameters of `setup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupParameters {
    /// The prefix of the table's name.
    pub tab_prefix: String,
    /// The number in the name of the table.
    pub tab_num: u32,
    /// The number of rows in the table.
    pub tab_rows: u64,
    /// The number of rows that are inserted together.
    pub batch_size: u64,
    /// The number of tablets of the table; 0 means the database's own default.
    pub tab_tablets: u32,
    /// The number of tablets of the index; 0 means the database's own default.
    pub ind_tablets: u32,
    /// Whether `mykey` is the primary key.
    pub index_as_pk: bool,
    /// The number of bytes in each row's filler.
    pub filler: u32,
    /// Whether an existing table is dropped.
    pub recreate: bool,
    /// The order of the rows of a batch.
    pub orderby: Order,
}

impl Default for SetupParameters {
    fn default() -> Self {
        Self {
            tab_prefix: "bench".to_owned(),
            tab_num: 1,
            tab_rows: 1_000_000,
            batch_size: 1000,
            tab_tablets: 0,
            ind_tablets: 0,
            index_as_pk: false,
            filler: 1,
            recreate: true,
            orderby: Order::Scratch,
        }
    }
}

/// Parameters of `runit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunParameters {
    /// The prefix of the table's name.
    pub tab_prefix: String,
    /// The number in the name of the table.
    pub tab_num: u32,
    /// The number of rows among which ranges are drawn.
    pub tab_rows: u64,
    /// The number of rows that are accessed together.
    pub batch_size: u64,
    /// After this time, no batch begins.
    pub run_duration: Duration,
    /// The percentage of rows that are updated.
    pub pct_update: u32,
    /// Whether statements are prepared.
    pub prepared: bool,
    /// Whether only the index is read.
    pub index_only: bool,
    /// Whether the rows of the table are counted first.
    pub initial_count: bool,
    /// A note for the history.
    pub comments: Option<String>,
}

impl Default for RunParameters {
    fn default() -> Self {
        Self {
            tab_prefix: "bench".to_owned(),
            tab_num: 1,
            tab_rows: 1_000_000,
            batch_size: 10_000,
            run_duration: Duration::from_secs(60),
            pct_update: 0,
            prepared: true,
            index_only: false,
            initial_count: false,
            comments: None,
        }
    }
}

impl SetupParameters {
    /// The names of all parameters.
    pub const NAMES: &[&str] = &[
        "tab_prefix",
        "tab_num",
        "tab_rows",
        "batch_size",
        "tab_tablets",
        "ind_tablets",
        "index_as_pk",
        "filler",
        "recreate",
        "orderby",
    ];

    /// Sets parameter `name` to the value that `text` describes.
    ///
    /// # Errors
    ///
    /// Returns an error if no such parameter exists, or if the parameter cannot have this value.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let value = Value { name, text };
        match name {
            "tab_prefix" => self.tab_prefix = value.prefix()?,
            "tab_num" => self.tab_num = value.count(0, MOST_TABLES)? as u32,
            "tab_rows" => self.tab_rows = value.count(1, MOST_ROWS)?,
            "batch_size" => self.batch_size = value.count(1, MOST_ROWS)?,
            "tab_tablets" => self.tab_tablets = value.count(0, MOST_TABLETS)? as u32,
            "ind_tablets" => self.ind_tablets = value.count(0, MOST_TABLETS)? as u32,
            "index_as_pk" => self.index_as_pk = value.truth()?,
            "filler" => self.filler = value.count(0, MOST_FILLER)? as u32,
            "recreate" => self.recreate = value.truth()?,
            "orderby" => {
                self.orderby = match value.string().as_deref() {
                    None => Order::Made,
                    Some("scratch") => Order::Scratch,
                    Some("mykey") => Order::Key,
                    Some(sql) => Order::Sql(sql.to_owned()),
                }
            }
            _ => return Err(unknown(name, Self::NAMES)),
        }
        Ok(())
    }

    /// The table to make.
    pub fn form(&self) -> TableForm {
        TableForm {
            name: table_name(&self.tab_prefix, self.tab_num),
            tablets: self.tab_tablets,
            index_tablets: self.ind_tablets,
            index_as_pk: self.index_as_pk,
            filler: self.filler,
            rows: self.tab_rows,
        }
    }

    /// The number of batches.
    pub fn batches(&self) -> u64 {
        self.tab_rows.div_ceil(self.batch_size)
    }

    /// The keys of all rows. In ybio, every batch is full, and the keys begin at the number of batches plus 1. With
    /// `compat`, rows get the same keys as in ybio.
    pub fn keys(&self, compat: bool) -> RangeInclusive<i64> {
        let batches = self.batches() as i64;
        match compat {
            false => 1..=self.tab_rows as i64,
            true => batches + 1..=batches + batches * self.batch_size as i64,
        }
    }
}

impl RunParameters {
    /// The names of all parameters.
    pub const NAMES: &[&str] = &[
        "tab_prefix",
        "tab_num",
        "tab_rows",
        "batch_size",
        "run_duration",
        "pct_update",
        "prepared",
        "index_only",
        "initial_count",
        "comments",
    ];

    /// Sets parameter `name` to the value that `text` describes.
    ///
    /// # Errors
    ///
    /// Returns an error if no such parameter exists, or if the parameter cannot have this value.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let value = Value { name, text };
        match name {
            "tab_prefix" => self.tab_prefix = value.prefix()?,
            "tab_num" => self.tab_num = value.count(0, MOST_TABLES)? as u32,
            "tab_rows" => self.tab_rows = value.count(1, MOST_ROWS)?,
            "batch_size" => self.batch_size = value.count(1, MOST_ROWS)?,
            "run_duration" => self.run_duration = value.time()?,
            "pct_update" => self.pct_update = value.count(0, 100)? as u32,
            "prepared" => self.prepared = value.truth()?,
            "index_only" => self.index_only = value.truth()?,
            "initial_count" => self.initial_count = value.truth()?,
            "comments" => self.comments = value.string(),
            _ => return Err(unknown(name, Self::NAMES)),
        }
        Ok(())
    }

    /// The table whose rows are accessed.
    pub fn table(&self) -> String {
        table_name(&self.tab_prefix, self.tab_num)
    }

    /// The number of rows in a batch, which is at most the number of rows in the table.
    pub fn batch_rows(&self) -> u64 {
        self.batch_size.min(self.tab_rows)
    }
}

/// The number in the name of a table has at most four digits.
const MOST_TABLES: u64 = 9999;
const MOST_ROWS: u64 = 1 << 40;
const MOST_TABLETS: u64 = 10_000;
/// The greatest length that PostgreSQL allows for `char(n)`.
const MOST_FILLER: u64 = 10_485_760;

/// The name of a table: `bench0001`.
pub fn table_name(prefix: &str, number: u32) -> String {
    format!("{prefix}{number:04}")
}

/// Splits an argument in ybio's spelling into pairs of a name and a value: `tab_rows=>1e6::int`, several of these
/// separated by commas, or a whole `call setup(tab_num=>1,tab_rows=>1e6::int);`.
///
/// # Errors
///
/// Returns an error if the argument has another form.
pub fn pairs(argument: &str) -> Result<Vec<(String, String)>, Failure> {
    let bad = |what: &str| usage(format!("`{argument}`: {what}; write tab_rows=>1e6, or --tab-rows 1e6"));
    let mut text = argument.trim().trim_end_matches(';').trim_end();
    if let Some(call) = text.get(..4).filter(|word| word.eq_ignore_ascii_case("call")).map(|_| text[4..].trim_start()) {
        let inner = call.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        text = inner.ok_or_else(|| bad("a call has its parameters in parentheses"))?;
    }
    let mut pairs = Vec::new();
    for pair in split(text) {
        let (name, value) = pair.split_once("=>").ok_or_else(|| bad("a parameter is NAME=>VALUE"))?;
        pairs.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(pairs)
}

/// Splits `text` at the commas that are neither in quotes nor in parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut depth, mut is_quoted) = (Vec::new(), 0, 0_u32, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\'' => is_quoted = !is_quoted,
            b'(' if !is_quoted => depth += 1,
            b')' if !is_quoted => depth = depth.saturating_sub(1),
            b',' if !is_quoted && depth == 0 => {
                pieces.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// The text of a parameter's value.
struct Value<'a> {
    name: &'a str,
    text: &'a str,
}

impl Value<'_> {
    fn bad(&self, allowed: &str) -> Failure {
        usage(format!("parameter {} is `{}` and should be {allowed}", self.name, self.text))
    }

    /// The text without quotes and without the type of its cast; `None` for `null`.
    fn string(&self) -> Option<String> {
        let text = self.text.trim();
        if let Some(rest) = text.strip_prefix('\'') {
            let end = rest.rfind('\'').unwrap_or(rest.len());
            return Some(rest[..end].replace("''", "'"));
        }
        let text = text.rsplit_once("::").map_or(text, |(text, _)| text.trim());
        (!text.eq_ignore_ascii_case("null")).then(|| text.to_owned())
    }

    /// A number such as `1000000`, `1e6`, `1e6::int` or `1_000_000`.
    fn count(&self, least: u64, most: u64) -> Result<u64, Failure> {
        let text = self.string().unwrap_or_default().replace('_', "");
        let number = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0);
        let number = number.filter(|number| (least as f64..=most as f64).contains(number));
        number
            .map(|number| number as u64)
            .ok_or_else(|| self.bad(&format!("a whole number from {least} to {most}, such as 1000 or 1e3")))
    }

    fn truth(&self) -> Result<bool, Failure> {
        match self.string().unwrap_or_default().to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "on" | "1" => Ok(true),
            "false" | "f" | "no" | "off" | "0" => Ok(false),
            _ => Err(self.bad("true or false")),
        }
    }

    /// The prefix of a name. It must not need quotes in SQL.
    fn prefix(&self) -> Result<String, Failure> {
        let text = self.string().unwrap_or_default();
        let is_name = text.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            && text.len() <= 40;
        if is_name { Ok(text) } else { Err(self.bad("at most 40 small letters, digits and _, a letter first")) }
    }

    /// A time such as `60s`, `5m`, `00:01:00`, `1 minutes` or `interval '1 minutes'`.
    fn time(&self) -> Result<Duration, Failure> {
        let allowed = "a time: 60s, 5m, '1 minutes', 00:01:00";
        let text = self.text.trim();
        let text = text.get(..8).filter(|word| word.eq_ignore_ascii_case("interval")).map_or(text, |_| &text[8..]);
        let text = Value { name: self.name, text }.string().unwrap_or_default();
        let seconds = if text.contains(':') { seconds_of_clock(&text) } else { seconds_of_units(&text) };
        let seconds = seconds.filter(|seconds| (0.0..=1e7).contains(seconds));
        seconds.map(Duration::from_secs_f64).ok_or_else(|| self.bad(allowed))
    }
}

fn seconds_of_clock(text: &str) -> Option<f64> {
    let parts: Vec<f64> = text.split(':').map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
    match parts[..] {
        [hours, minutes] => Some(hours * 3600.0 + minutes * 60.0),
        [hours, minutes, seconds] => Some(hours * 3600.0 + minutes * 60.0 + seconds),
        _ => None,
    }
}

/// Parses one or more numbers, each with a unit after it (seconds if it has none), and returns their sum in seconds.
fn seconds_of_units(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut seconds = None;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" | "millisecond" | "milliseconds" => 1e-3,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "day" | "days" => 86_400.0,
            _ => return None,
        };
        rest = rest[letters..].trim_start();
        seconds = Some(seconds.unwrap_or(0.0) + number * unit);
    }
    seconds
}

fn unknown(name: &str, names: &[&str]) -> Failure {
    usage(format!("there is no parameter {name}; there is: {}", names.join(", ")))
}

fn usage(text: String) -> Failure {
    Failure::session("target", text)
}
