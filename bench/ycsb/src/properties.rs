//! Reads names and values in the way of `java.util.Properties`. The module `settings` knows what these names and
//! values mean.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use thiserror::Error;

/// Names with their values. If a name is set several times, the last value counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    values: BTreeMap<String, String>,
}

/// Why bytes are not a property file, or an argument is not a property.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadSyntax {
    /// The characters `\u` are not followed by four hexadecimal digits.
    #[error("line {line}: `\\u` needs four hexadecimal digits")]
    Escape {
        /// The number of the line, counted from 1.
        line: usize,
    },
    /// The argument of `-p` has no equals sign.
    #[error("`{0}` is not `name=value`")]
    NoValue(String),
}

impl Properties {
    /// No properties.
    pub fn new() -> Properties {
        Properties::default()
    }

    /// Sets the property `name` to `value`, in the same way as the argument `-p name=value`.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.values.insert(name.into(), value.into());
    }

    /// Sets a property from an argument `name=value`. The first equals sign separates name and value.
    ///
    /// # Errors
    ///
    /// Returns [`BadSyntax::NoValue`] if there is no equals sign.
    pub fn set_argument(&mut self, argument: &str) -> Result<(), BadSyntax> {
        let (name, value) = argument.split_once('=').ok_or_else(|| BadSyntax::NoValue(argument.to_owned()))?;
        self.set(name, value);
        Ok(())
    }

    /// Sets the properties of a file, and replaces earlier values. As in Java, bytes are Latin-1, and other
    /// characters are written as `\u1234`.
    ///
    /// # Errors
    ///
    /// Returns [`BadSyntax::Escape`] if an escape is wrong.
    pub fn load(&mut self, file: &[u8]) -> Result<(), BadSyntax> {
        for (line, text) in logical_lines(file) {
            let (name, value) = split(&text);
            let bad = |()| BadSyntax::Escape { line };
            self.set(unescaped(name).map_err(bad)?, unescaped(value).map_err(bad)?);
        }
        Ok(())
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// All properties, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

const BLANKS: [char; 3] = [' ', '\t', '\x0c'];

/// The lines that are neither blank nor comments, without leading blanks. A line that ends in an odd number of
/// backslashes is joined with the next line. Each result comes with the number of its first line.
fn logical_lines(file: &[u8]) -> Vec<(usize, String)> {
    let text: String = file.iter().map(|byte| char::from(*byte)).collect();
    let natural = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut logical: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (index, line) in natural.split('\n').enumerate() {
        let line = line.trim_start_matches(BLANKS);
        // Only a line that does not continue the previous line can be a comment.
        if !goes_on && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        let is_open = backslashes % 2 == 1;
        let line = if is_open { &line[..line.len() - 1] } else { line };
        match logical.last_mut() {
            Some((_, before)) if goes_on => before.push_str(line),
            _ => logical.push((index + 1, line.to_owned())),
        }
        goes_on = is_open;
    }
    logical
}

/// Splits a line into name and value. The name ends at the first blank, `=` or `:` without a backslash before it.
fn split(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = line.find(|c: char| {
        let is_end = !is_escaped && (BLANKS.contains(&c) || c == '=' || c == ':');
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    let Some(end) = end else { return (line, "") };
    let rest = line[end..].trim_start_matches(BLANKS);
    let value = rest.strip_prefix(['=', ':']).map_or(rest, |value| value.trim_start_matches(BLANKS));
    (&line[..end], value)
}

fn unescaped(text: &str) -> Result<String, ()> {
    // An escape may be half of a character, so the text is collected as UTF-16.
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next() } else { None };
        let c = match escaped {
            None => c,
            Some('t') => '\t',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('f') => '\x0c',
            Some('u') => {
                let digits = rest.as_str().get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                let digits = digits.ok_or(())?;
                units.push(u16::from_str_radix(digits, 16).expect("four hexadecimal digits"));
                rest = rest.as_str()[4..].chars();
                continue;
            }
            Some(itself) => itself,
        };
        units.extend(c.encode_utf16(&mut [0; 2]).iter());
    }
    Ok(String::from_utf16_lossy(&units))
}
