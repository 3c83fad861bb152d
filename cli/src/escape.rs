//! Puts text with tabs and line ends on one line: `\t`, `\n`, `\r` and `\\` stand for these characters, and nothing
//! else is changed.

use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// Appends `field` with its special bytes escaped.
pub fn escape(field: &[u8], line: &mut Vec<u8>) {
    let mut plain = 0;
    for (at, byte) in field.iter().enumerate() {
        let letter = match byte {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\\' => b'\\',
            _ => continue,
        };
        line.extend_from_slice(&field[plain..at]);
        line.extend_from_slice(&[b'\\', letter]);
        plain = at + 1;
    }
    line.extend_from_slice(&field[plain..]);
}

/// The name of a table as a list shows it. One of an earlier release may have control characters, which are escaped.
pub fn shown_name(name: &str) -> Cow<'_, str> {
    match name.chars().any(char::is_control) {
        true => Cow::Owned(name.escape_debug().to_string()),
        false => Cow::Borrowed(name),
    }
}

/// Appends what `text` stands for. Refuses a backslash that escapes nothing known.
pub fn unescape(text: &[u8], field: &mut Vec<u8>) -> Result<(), String> {
    let mut rest = text;
    while let Some(backslash) = rest.iter().position(|byte| *byte == b'\\') {
        field.extend_from_slice(&rest[..backslash]);
        field.push(match rest.get(backslash + 1) {
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b'\\') => b'\\',
            _ => {
                return Err(format!(
                    "{:?} holds a backslash that is none of \\t, \\n, \\r and \\\\; write \\\\ for a backslash",
                    String::from_utf8_lossy(text)
                ));
            }
        });
        rest = &rest[backslash + 2..];
    }
    field.extend_from_slice(rest);
    Ok(())
}
