//! Splits a line of the shell into words, and writes a word so that splitting gives it back. This module knows
//! nothing of commands.
//!
//! The quotes are those of a POSIX shell and of bash: `'…'` as it is, `"…"` with `\"` and `\\`, and `$'…'` with `\t`,
//! `\n`, `\r`, `\\`, `\'` and `\xHH`. An unquoted `|`, `<` or `>` ends the words: what begins there is left to the
//! system's shell.

use std::iter::Peekable;
use std::str::CharIndices;

#[cfg(test)]
mod tests;

/// A word, and the place of its text in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word without its quotes. It is not always UTF-8, because of `\xHH`.
    pub bytes: Vec<u8>,
    /// The offset in the line at which the word begins, with its quotes.
    pub start: usize,
    /// The offset at which it ends.
    pub end: usize,
}

/// A line in its words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Words {
    pub words: Vec<Word>,
    /// The offset of the first unquoted `|`, `<` or `>`.
    pub rest: Option<usize>,
    /// Whether the line ends within quotes or after a backslash.
    pub is_open: bool,
}

/// Splits a line.
pub fn split(line: &str) -> Words {
    let mut found = Words::default();
    let mut chars = line.char_indices().peekable();
    while let Some(&(start, first)) = chars.peek() {
        if first.is_whitespace() {
            chars.next();
        } else if matches!(first, '|' | '<' | '>') {
            found.rest = Some(start);
            break;
        } else {
            let mut bytes = Vec::new();
            found.is_open = !word(&mut chars, &mut bytes);
            let end = chars.peek().map_or(line.len(), |(at, _)| *at);
            found.words.push(Word { bytes, start, end });
        }
    }
    found
}

/// Takes one word, and returns whether its quotes are closed.
fn word(chars: &mut Peekable<CharIndices<'_>>, bytes: &mut Vec<u8>) -> bool {
    while let Some(&(_, next)) = chars.peek() {
        if next.is_whitespace() || matches!(next, '|' | '<' | '>') {
            return true;
        }
        chars.next();
        let is_closed = match next {
            '\'' => until(chars, bytes, '\'', |_, _| None),
            '"' => until(chars, bytes, '"', |next, _| matches!(next, '"' | '\\').then_some(next as u8)),
            '$' if chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                chars.next();
                until(chars, bytes, '\'', escaped)
            }
            '\\' => chars.next().map(|(_, next)| push(next, bytes)).is_some(),
            other => {
                push(other, bytes);
                true
            }
        };
        if !is_closed {
            return false;
        }
    }
    true
}

/// Takes text until the quote `close`, and returns whether it came. `escape` returns the byte that a backslash and the
/// character after it stand for; without such a byte, both are text.
fn until(
    chars: &mut Peekable<CharIndices<'_>>,
    bytes: &mut Vec<u8>,
    close: char,
    escape: impl Fn(char, &mut Peekable<CharIndices<'_>>) -> Option<u8>,
) -> bool {
    while let Some((_, next)) = chars.next() {
        if next == close {
            return true;
        }
        let Some(&(_, after)) = chars.peek().filter(|_| next == '\\') else {
            push(next, bytes);
            continue;
        };
        let mut ahead = chars.clone();
        ahead.next();
        match escape(after, &mut ahead) {
            Some(byte) => {
                bytes.push(byte);
                *chars = ahead;
            }
            None => bytes.push(b'\\'),
        }
    }
    false
}

/// The byte that a backslash and `letter` stand for in `$'…'`. `after` is what comes after the letter.
fn escaped(letter: char, after: &mut Peekable<CharIndices<'_>>) -> Option<u8> {
    match letter {
        't' => Some(b'\t'),
        'n' => Some(b'\n'),
        'r' => Some(b'\r'),
        '\\' | '\'' => Some(letter as u8),
        'x' => {
            let mut digit = || after.next().and_then(|(_, digit)| digit.to_digit(16));
            let (high, low) = (digit()?, digit()?);
            u8::try_from(high * 16 + low).ok()
        }
        _ => None,
    }
}

fn push(character: char, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Writes a word with the quotes that it needs.
pub fn quote(word: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(byte) || !byte.is_ascii();
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && word.iter().all(is_plain) => text.to_owned(),
        Ok(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let mut quoted = String::from("$'");
            for chunk in word.utf8_chunks() {
                for character in chunk.valid().chars() {
                    match character {
                        '\t' => quoted.push_str("\\t"),
                        '\n' => quoted.push_str("\\n"),
                        '\r' => quoted.push_str("\\r"),
                        '\\' | '\'' => quoted.extend(['\\', character]),
                        control if control.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", control as u8)),
                        other => quoted.push(other),
                    }
                }
                for byte in chunk.invalid() {
                    quoted.push_str(&format!("\\x{byte:02x}"));
                }
            }
            quoted + "'"
        }
    }
}
