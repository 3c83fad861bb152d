//! Until when a row is there, from a field of the row. This module knows one row at a time, and no table. See
//! `docs/format/extractor.md`.
//!
//! ```text
//! row time:  field [ unit ]
//! unit:      "seconds" | "milliseconds" | "microseconds"        of numbers; milliseconds if it is left out
//! ```

use super::found::Unfit;
use super::{IndexField, Rule};
use crate::field_type::Kind;
use crate::scanner::{BadText, Scanner};
use crate::stored::{self, BadStored};
use crate::value::FieldValue;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Says which field of a row has the time until which the row is there, and what it means. It is parsed from text, and
/// `Display` writes it as text.
///
/// ```
/// use larch_rows::RowTime;
/// use std::time::Duration;
///
/// let expires: RowTime = r#"value.json("$.expires") u64 seconds"#.parse()?;
/// let value = br#"{"name": "Ada", "expires": 1780000000}"#;
/// assert_eq!(expires.until(b"0017", &|_| Some(value)), Ok(Some(Duration::from_secs(1_780_000_000))));
///
/// // A row without the field does not expire.
/// assert_eq!(expires.until(b"0018", &|_| Some(b"{}")), Ok(None));
/// # Ok::<(), larch_rows::BadText>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowTime {
    field: IndexField,
    unit: Unit,
}

/// A row that does not have the time that its declaration says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{declared}`: {what}")]
pub struct BadTime {
    /// The declaration.
    pub declared: String,
    /// What is wrong with the row.
    pub what: String,
}

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    /// A time as text.
    Text,
}

/// The units of numbers, with their names and lengths. The first is that of a number without a unit.
const UNITS: [(&str, Unit, Duration); 3] = [
    ("milliseconds", Unit::Milliseconds, Duration::from_millis(1)),
    ("seconds", Unit::Seconds, Duration::from_secs(1)),
    ("microseconds", Unit::Microseconds, Duration::from_micros(1)),
];

impl RowTime {
    /// The time until which the row is there, since the beginning of 1970; `None` if it does not expire, because it
    /// does not have the field. `part` returns the part of the row's value in the column group with the given number,
    /// or `None` if the table has no such group.
    ///
    /// # Errors
    ///
    /// Fails if the field is no time or has another type than declared, if a required field is missing, or if the field
    /// is in a column group that the table does not have.
    pub fn until<'r>(
        &self,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
    ) -> Result<Option<Duration>, BadTime> {
        let bad = |what| BadTime { declared: self.to_string(), what };
        let bytes = match self.field.source.group() {
            None => key,
            Some(group) => part(group).ok_or_else(|| bad(format!("the table has no column group {group}")))?,
        };
        let mut found = Vec::new();
        self.field.source.find(bytes, self.field.field_type.kind, &mut found);
        let time = found.pop().unwrap_or(Err(Unfit::Missing)).and_then(|value| match &value {
            FieldValue::String(text) if text.is_empty() => Err(Unfit::Missing),
            value => self.time(value).map_err(Unfit::Wrong),
        });
        match (time, self.field.rule) {
            (Ok(time), _) => Ok(Some(time)),
            (Err(Unfit::Wrong(what)), Rule::Plain | Rule::Required) => Err(bad(what)),
            (Err(Unfit::Missing), Rule::Required) => Err(bad("the row does not have it".to_owned())),
            (Err(_), Rule::Plain | Rule::Lenient) => Ok(None),
        }
    }

    /// The time that a value says.
    fn time(&self, value: &FieldValue<'_>) -> Result<Duration, String> {
        let of_unit = |number: u128| {
            let (.., unit) = UNITS.iter().find(|(_, unit, _)| *unit == self.unit).expect("numbers have a unit");
            let nanos = number.checked_mul(unit.as_nanos()).ok_or_else(|| format!("{number} is no time"))?;
            let seconds = u64::try_from(nanos / NANOS).map_err(|_| format!("{number} is no time"))?;
            Ok(Duration::new(seconds, (nanos % NANOS) as u32))
        };
        match value {
            FieldValue::Unsigned(number) => of_unit(*number),
            FieldValue::Signed(number) => {
                of_unit(u128::try_from(*number).map_err(|_| format!("{number} is before 1970"))?)
            }
            FieldValue::String(text) => parse(text).ok_or_else(|| {
                let text = text.escape_default();
                format!("\"{text}\" is no time from 1970 on; write it like 2026-11-29 08:30 or 2026-11-29T08:30:00Z")
            }),
            other => Err(format!("{other} is no time")),
        }
    }

    /// The row time as bytes that can be stored: a version and its text.
    pub fn to_bytes(&self) -> Vec<u8> {
        stored::to_bytes(&self.to_string())
    }

    /// Reads a row time that was stored.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a row time, or if they have a version that this release does not know.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadStored> {
        Ok(stored::text_of(bytes)?.parse()?)
    }
}

const NANOS: u128 = 1_000_000_000;

/// The time that a text says, in UTC if it names no other zone: `2026-11-29`, `2026-11-29 08:30`,
/// `2026-11-29T08:30:00.5Z`, `2026-11-29T08:30:00+01:00`.
fn parse(text: &str) -> Option<Duration> {
    let (day, clock) = match text.split_once(['T', ' ']) {
        Some((day, clock)) => (day, clock),
        None => (text, "00:00"),
    };
    let mut day = day.split('-');
    let (year, month, day_of_month) = (digits(day.next()?, 4)?, digits(day.next()?, 2)?, digits(day.next()?, 2)?);
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day.next().is_some() || !(1..=days_in_month).contains(&day_of_month) {
        return None;
    }
    // Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`: years begin in March, so that a leap
    // day is the last day of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day_of_month - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468;

    let (clock, ahead) = match clock.strip_suffix('Z') {
        Some(clock) => (clock, 0),
        None => match clock.find(['+', '-']) {
            Some(at) => {
                let (hours, minutes) = clock[at + 1..].split_once(':')?;
                let seconds = digits(hours, 2)? * 3600 + digits(minutes, 2)? * 60;
                (&clock[..at], if clock[at..].starts_with('-') { -seconds } else { seconds })
            }
            None => (clock, 0),
        },
    };
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, fraction),
        None => (clock, "0"),
    };
    let mut clock = clock.split(':').map(|number| digits(number, 2));
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next().unwrap_or(Some(0))?);
    if clock.next().is_some() || hour > 23 || minute > 59 || second > 59 || fraction.len() > 9 {
        return None;
    }
    let nanos = digits(&format!("{fraction:0<9}"), 9)?;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - ahead;
    Some(Duration::new(u64::try_from(seconds).ok()?, nanos as u32))
}

/// A number of exactly this many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

impl FromStr for RowTime {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        let mut text = Scanner::new(text);
        let mut before = text.clone();
        let field = IndexField::scan(&mut text)?;
        let kind = field.field_type.kind;
        if field.source.gives_many() {
            return before.fail("a row has one time, so `[*]` cannot be here");
        }
        if field.field_type.is_optional || field.field_type.is_descending {
            return before.fail("a time is neither optional nor in an order; leave `?` and `desc` out");
        }
        let is_whole = kind.is_number() && !matches!(kind, Kind::F32 | Kind::F64);
        if !is_whole && kind != Kind::String {
            return before.fail(format!("a time is a whole number or a string, not {kind}"));
        }
        let named = UNITS.iter().find(|(name, ..)| is_whole && text.takes_word(name));
        let unit = match named {
            _ if !is_whole => Unit::Text,
            Some((_, unit, _)) => *unit,
            None => Unit::Milliseconds,
        };
        text.expect_end()?;
        Ok(Self { field, unit })
    }
}

impl fmt::Display for RowTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.field)?;
        match UNITS[1..].iter().find(|(_, unit, _)| *unit == self.unit) {
            Some((name, ..)) => write!(out, " {name}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(declared: &str, key: &[u8], value: &[u8], expected: Result<Option<f64>, &str>) {
        let time: RowTime = declared.parse().expect("it is a declaration");
        assert_eq!(time.to_string(), declared);
        assert_eq!(RowTime::from_bytes(&time.to_bytes()), Ok(time.clone()));
        let found = time.until(key, &|part| (part == 0).then_some(value)).map_err(|bad| bad.to_string());
        match expected {
            Ok(seconds) => assert_eq!(found, Ok(seconds.map(Duration::from_secs_f64)), "{declared}"),
            Err(why) => {
                let found = found.expect_err(declared);
                assert!(found.contains(why), "{found}");
            }
        }
    }

    #[test]
    fn a_time_is_a_number_of_a_unit_or_a_text() {
        check("value[0..8].le u64", b"", &1500_u64.to_le_bytes(), Ok(Some(1.5)));
        check("value[0..4].be u32 seconds", b"", &[0, 0, 1, 0], Ok(Some(256.0)));
        check("key.text i64 microseconds", b"2500000", b"", Ok(Some(2.5)));
        check(r#"value.json("$.until") u64 seconds"#, b"", br#"{"until": 7}"#, Ok(Some(7.0)));
        check(r#"value.json("$.until") string"#, b"", br#"{"until": "1970-01-02"}"#, Ok(Some(86400.0)));
        check("value.split(',')[1] string", b"", b"a,1970-01-01 00:01", Ok(Some(60.0)));
        check("value.text i64 seconds", b"", b"-1", Err("-1 is before 1970"));
        check("value.text u128 seconds", b"", b"340282366920938463463374607431768211455", Err("is no time"));
        check("value string", b"", b"soon", Err("\"soon\" is no time from 1970 on"));
        check("part(1)[0..8].le u64", b"", b"", Err("the table has no column group 1"));
    }

    #[test]
    fn a_row_without_the_field_does_not_expire_unless_it_is_required() {
        check("value[0..8].le u64", b"", b"1234", Ok(None));
        check("value[0..8].le u64 required", b"", b"1234", Err("the row does not have it"));
        check(r#"value.json("$.until") u64"#, b"", br#"{"until": null}"#, Ok(None));
        check("value.split(',')[1] string", b"", b"a,", Ok(None));
        check("value.split(',')[1] string lenient", b"", b"a,soon", Ok(None));
        check("value.text u64 lenient", b"", b"soon", Ok(None));
    }

    #[test]
    fn what_is_no_time_is_no_declaration() {
        for (text, why) in [
            ("value[0..8]", "a whole number or a string, not bytes[8]"),
            ("value.text f64", "a whole number or a string, not f64"),
            ("value.text u64 desc", "leave `?` and `desc` out"),
            ("value.text u64?", "leave `?` and `desc` out"),
            ("value.split(',')[*] u64", "`[*]` cannot be here"),
            ("value string seconds", "the text should end"),
            ("value.text u64 hours", "the text should end"),
        ] {
            let bad = text.parse::<RowTime>().expect_err(text).to_string();
            assert!(bad.contains(why), "{text}: {bad}");
        }
    }

    #[test]
    fn the_page_of_the_format_shows_declarations() {
        let page = include_str!("../../../../docs/format/extractor.md");
        let (_, after) = page.split_once("## Times of rows").expect("the page is about them");
        let block = after.split("```").nth(3).expect("the second block has examples");
        for line in block.lines().skip(1) {
            let declared: RowTime = line.parse().unwrap_or_else(|bad| panic!("{line}: {bad}"));
            assert_eq!(declared.to_string(), line);
        }
    }

    #[test]
    fn texts_are_times_of_the_calendar() {
        #[track_caller]
        fn check(text: &str, expected: Option<(u64, u32)>) {
            assert_eq!(parse(text), expected.map(|(seconds, nanos)| Duration::new(seconds, nanos)), "{text}");
        }
        check("1970-01-01", Some((0, 0)));
        check("2000-02-29", Some((951_782_400, 0)));
        check("2026-11-29 08:30", Some((1_795_941_000, 0)));
        check("2026-11-29T08:30:15Z", Some((1_795_941_015, 0)));
        check("2026-11-29T08:30:15.25", Some((1_795_941_015, 250_000_000)));
        check("2026-11-29T09:30:00+01:00", Some((1_795_941_000, 0)));
        check("2026-11-29 03:00:00-05:30", Some((1_795_941_000, 0)));
        check("9999-12-31", Some((253_402_214_400, 0)));
        for bad in [
            "",
            "1969-12-31",
            "2026-13-01",
            "2026-02-29",
            "2100-02-29",
            "2026-1-1",
            "2026-11-29 24:00",
            "2026-11-29 8:30",
            "2026-11-29 08:60",
            "2026-11-29 08:30:60",
            "2026-11-29T",
            "2026-11-29 08",
            "2026-11-29-01",
            "+026-11-29",
            "2026-11-29 08:30:00.0123456789",
            "2026-11-29 08:30+1",
            "1970-01-01T00:00+00:01",
            "2026-11-29 08:30:00.x",
        ] {
            check(bad, None);
        }
    }
}
