//! Numbers and times in Java's formats.

/// `Double.toString`.
pub fn double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if number == 0.0 || (1e-3..1e7).contains(&number.abs()) {
        return format!("{number:?}");
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').expect("that is what the format is");
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

/// `DecimalFormat("#.##")`: at most two decimals.
pub fn short(number: f64) -> String {
    if number.is_infinite() {
        return "∞".to_owned();
    }
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `RemainingFormatter`: the larger units of a time, with a blank at the end.
pub fn remaining(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let unit = |count: u64, name: &str| match count {
        0 => String::new(),
        1 => format!("1 {name} "),
        _ => format!("{count} {name}s "),
    };
    let minutes = if days == 0 { unit(minutes, "minute") } else { String::new() };
    let text = unit(days, "day") + &unit(hours, "hour") + &minutes;
    if !text.is_empty() {
        return text;
    }
    // The original prints `2 second`, without an `s`. This function makes the same mistake.
    format!("{seconds} second{} ", if seconds > 2 { "s" } else { "" })
}

/// Year, month, day, hour, minute, second and millisecond in UTC.
pub fn date(unix_millis: u64) -> [u64; 7] {
    let (days, millis) = (unix_millis / 86_400_000, unix_millis % 86_400_000);
    // In this computation a year begins in March, so that the leap day is the last day of the year. An era has 400
    // years.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next_year;
    [year, month, day_of_month, millis / 3_600_000, millis / 60_000 % 60, millis / 1000 % 60, millis % 1000]
}
