//! Times in the format in which PostgreSQL prints them.

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
    fn intervals_are_those_of_postgresql() {
        assert_eq!(interval(Duration::from_micros(600_010_691)), "00:10:00.010691");
        assert_eq!(interval(Duration::from_micros(608_574_929)), "00:10:08.574929");
        assert_eq!(interval(Duration::from_secs(93_600)), "1 day 02:00:00");
        assert_eq!(interval(Duration::ZERO), "00:00:00");
    }
}
