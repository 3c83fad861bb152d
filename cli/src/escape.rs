//! Writes text with tabs and line ends on a single line: `\t`, `\n`, `\r` and `\\` stand for the special
//! characters. Nothing else is changed.

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

/// The name of a table in the form in which lists show it. The name of a table from an earlier release may contain
/// control characters, which are escaped here.
pub fn shown_name(name: &str) -> Cow<'_, str> {
    match name.chars().any(char::is_control) {
        true => Cow::Owned(name.escape_debug().to_string()),
        false => Cow::Borrowed(name),
    }
}

/// Appends the bytes that the escaped `text` stands for. Fails if a backslash is not followed by a known character.
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
