//! Times in the format in which PostgreSQL prints them, and lengths of time as people write them.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark says when it ran on a real machine"
)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment: microseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Timestamp(pub i64);

const DAY_MICROS: i64 = 86_400_000_000;

impl Timestamp {
    /// The current time.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.as_micros() as i64)
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0).max(0).unsigned_abs())
    }

    /// The text `2021-07-30 03:50:20.00427`, in UTC.
    pub fn text(self) -> String {
        let (year, month, day) = date(self.0.div_euclid(DAY_MICROS));
        format!("{year:04}-{month:02}-{day:02} {}", clock(self.0.rem_euclid(DAY_MICROS)))
    }

    /// Parses a day, or a day and a time of it: `2021-07-30`, `2021-07-30 03:50`, `2021-07-30T03:50:20.004Z`. The time is
    /// in UTC. `None` if it is no such text.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_end_matches("UTC").trim_end().trim_end_matches('Z');
        let (day, clock) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i64>().ok())?;
        let mut fields = day.split('-').map(number);
        let (year, month, day) = (fields.next()??, fields.next()??, fields.next()??);
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
        let mut times = clock.split(':').map(number);
        let (hour, minute, second) = (times.next()??, times.next()??, times.next().unwrap_or(Some(0))?);
        number(fraction).filter(|_| fraction.len() <= 9)?;
        let micros = number(&format!("{fraction:0<6}")[..6])?;
        let is_right = year <= 9999 && hour < 24 && minute < 60 && second < 60;
        if !is_right || fields.next().is_some() || times.next().is_some() {
            return None;
        }
        // The days before the year are at most 366 a year, so the day is found from a day that is not after it.
        let first = (year - 1970) * 365 - 200;
        let days = (first..first + 3000).find(|days| date(*days) == (year, month, day))?;
        Some(Self(days * DAY_MICROS + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros))
    }
}

/// Parses `200ns`, `500ms`, `60s`, `5m`, `1h` or `7d`. A number without a unit is in seconds.
pub fn parse_length(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let nanos_of_unit = match &text[digits.len()..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        unit => return Err(format!("`{unit}` is not a unit of time; write 500ms, 60s, 5m, 1h or 7d")),
    };
    let number: f64 = digits.parse().map_err(|_| "a time is a number with ms, s, m, h or d: 500ms, 60s, 5m")?;
    let nanos = number * nanos_of_unit;
    if !(0.0..=9e18).contains(&nanos) {
        return Err("a time is at least 0 and less than 285 years".to_owned());
    }
    Ok(Duration::from_nanos(nanos as u64))
}

/// The text `00:10:00.010691`, or `1 day 02:00:00` if the time is longer than a day.
pub fn interval(time: Duration) -> String {
    let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let clock = clock(micros % DAY_MICROS);
    match micros / DAY_MICROS {
        0 => clock,
        1 => format!("1 day {clock}"),
        days => format!("{days} days {clock}"),
    }
}

/// A time of day as text, without zeros at the end of its fraction.
fn clock(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    match micros % 1_000_000 {
        0 => clock,
        fraction => format!("{clock}.{}", format!("{fraction:06}").trim_end_matches('0')),
    }
}

/// Year, month and day of a day since 1970, in the Gregorian calendar. The algorithm is `civil_from_days` of Howard
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, so that a leap day is the last day of
/// its year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_those_of_postgresql() {
        // SELECT extract(epoch from timestamptz '2021-07-30 03:50:20.00427+00') * 1e6
        assert_eq!(Timestamp(1_627_617_020_004_270).text(), "2021-07-30 03:50:20.00427");
        assert_eq!(Timestamp(0).text(), "1970-01-01 00:00:00");
        assert_eq!(Timestamp(951_782_400_000_000).text(), "2000-02-29 00:00:00");
        assert_eq!(Timestamp(-1_000_000).text(), "1969-12-31 23:59:59");
    }

    #[test]
    fn what_is_printed_is_parsed_and_so_are_shorter_forms() {
        for micros in [0, 1_627_617_020_004_270, 951_782_400_000_000, 253_402_300_799_000_000, 4_102_444_800_000_001] {
            assert_eq!(Timestamp::parse(&Timestamp(micros).text()), Some(Timestamp(micros)));
        }
        let at = |text| Timestamp::parse(text).map(Timestamp::text);
        assert_eq!(at("2024-02-29").as_deref(), Some("2024-02-29 00:00:00"));
        assert_eq!(at("2024-02-29 07:05 UTC").as_deref(), Some("2024-02-29 07:05:00"));
        assert_eq!(at("2024-02-29T07:05:09.5Z").as_deref(), Some("2024-02-29 07:05:09.5"));
        for wrong in
            ["", "monday", "2023-02-29", "2024-13-01", "2024-02-29 24:00", "2024-02-29 07", "2024-02-29 07:05:61"]
        {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn intervals_are_those_of_postgresql() {
        assert_eq!(interval(Duration::from_micros(600_010_691)), "00:10:00.010691");
        assert_eq!(interval(Duration::from_micros(608_574_929)), "00:10:08.574929");
        assert_eq!(interval(Duration::from_secs(93_600)), "1 day 02:00:00");
        assert_eq!(interval(Duration::ZERO), "00:00:00");
    }
}
