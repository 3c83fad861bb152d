//! Parses the sizes that people write in options.

/// Parses a number of bytes, as in every option of `larch`. It is a number, perhaps with a binary unit: `4096`,
/// `4096B`, `16K`, `16KiB`, `64MiB`, `1GiB`, `2TiB`. Case does not matter.
///
/// # Errors
///
/// The text is no size. The error says how to write a size.
pub fn parse(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 4] = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let explain =
        |why: &str| format!("{why}; write a whole number of bytes or a binary unit: 4096, 16KiB, 64MiB, 1GiB, 2TiB");
    if number.is_empty() {
        return Err(explain("a size starts with a digit"));
    }
    let unit = unit.trim_start().to_ascii_uppercase();
    let shift = match unit.as_str() {
        "" | "B" => 0,
        other => match UNITS.iter().find(|(name, _)| other == *name || other == format!("{name}IB")) {
            Some((_, shift)) => *shift,
            None => return Err(explain(&format!("`{unit}` is not a unit of size"))),
        },
    };
    number.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)).ok_or_else(|| explain("the size is too large"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_binary() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("16K", 16 << 10),
            ("16KiB", 16 << 10),
            ("16kib", 16 << 10),
            ("64MiB", 64 << 20),
            ("64 MiB", 64 << 20),
            ("1GiB", 1 << 30),
            ("2T", 2 << 40),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_bad_size_says_what_to_write() {
        for (text, part) in [
            ("", "starts with a digit"),
            ("MiB", "starts with a digit"),
            ("-1", "starts with a digit"),
            ("1.5GiB", "`.5GIB` is not a unit"),
            ("64MB", "`MB` is not a unit"),
            ("99999999999999999999", "too large"),
            ("99999999999T", "too large"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
            assert!(error.contains("64MiB"), "{text}: {error}");
        }
    }
}
