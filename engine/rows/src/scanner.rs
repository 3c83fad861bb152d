//! Reads the short texts of this crate from left to right: declarations and keys. This module knows signs, words
//! and quotes, but not what they mean.

use std::fmt::Write as _;

/// A text that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} of the text: {what}")]
pub struct BadText {
    /// The number, from 0, of the first byte of the text that does not fit.
    pub offset: usize,
    /// What is wrong at that byte, or what is expected in its place.
    pub what: String,
}

/// A place in a text. Spaces before a sign or a word are skipped.
#[derive(Clone, Debug)]
pub struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Where the next sign or word begins.
    pub fn offset(&mut self) -> usize {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.at
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Passes over `sign` if it comes next.
    pub fn takes(&mut self, sign: &str) -> bool {
        let at = self.offset();
        let found = self.rest().starts_with(sign);
        self.at = at + if found { sign.len() } else { 0 };
        found
    }

    /// Passes over `sign`, or fails if `sign` does not come next.
    pub fn expect(&mut self, sign: &str) -> Result<(), BadText> {
        if self.takes(sign) { Ok(()) } else { self.fail(format!("`{sign}` is expected")) }
    }

    /// Fails if anything but spaces comes next.
    pub fn expect_end(&mut self) -> Result<(), BadText> {
        self.offset();
        if self.rest().is_empty() { Ok(()) } else { self.fail("the text should end") }
    }

    /// The next word (letters, digits and `_`), without passing over it. It is empty if no word comes next.
    pub fn peek_word(&mut self) -> &'t str {
        self.offset();
        let rest = self.rest();
        &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())]
    }

    /// Passes over `word` if it comes next, as a whole word.
    pub fn takes_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == word;
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// A whole number.
    pub fn number(&mut self) -> Result<usize, BadText> {
        let word = self.peek_word();
        let Ok(number) = word.parse() else { return self.fail("a whole number is expected") };
        self.at += word.len();
        Ok(number)
    }

    /// Everything before the next comma, closing bracket or space.
    pub fn token(&mut self) -> &'t str {
        self.offset();
        let rest = self.rest();
        let token = &rest[..rest.find(|c: char| matches!(c, ',' | ')') || c.is_whitespace()).unwrap_or(rest.len())];
        self.at += token.len();
        token
    }

    /// A text in quotes, with its escapes resolved.
    pub fn literal(&mut self, quote: char) -> Result<String, BadText> {
        let start = self.offset();
        let mut chars = self.rest().char_indices();
        if chars.next().is_none_or(|(_, first)| first != quote) {
            return self.fail(format!("a text in quotes is expected: {quote}…{quote}"));
        }
        let mut content = String::new();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.at = start + at + 1;
                return Ok(content);
            }
            if c != '\\' {
                content.push(c);
                continue;
            }
            let escaped = match chars.next() {
                Some((_, 'n')) => Some('\n'),
                Some((_, 'r')) => Some('\r'),
                Some((_, 't')) => Some('\t'),
                Some((_, 'u')) => {
                    let digits = chars.as_str().strip_prefix('{').and_then(|rest| rest.split_once('}'));
                    let digits = digits.map(|(digits, _)| digits).filter(|digits| digits.len() <= 6);
                    let escaped = digits.and_then(|digits| char::from_u32(u32::from_str_radix(digits, 16).ok()?));
                    // Passes over the digits and both brackets, which have one byte each.
                    digits.map(|digits| chars.nth(digits.len() + 1)).and(escaped)
                }
                Some((_, c)) if c == quote || c == '\\' => Some(c),
                _ => None,
            };
            match escaped {
                Some(c) => content.push(c),
                None => {
                    self.at = start + at;
                    return self.fail(format!(
                        "after `\\` comes one of `n`, `r`, `t`, `u{{…}}`, `\\` and `{quote}`, which ends the text without it"
                    ));
                }
            }
        }
        self.at = self.text.len();
        self.fail(format!("the text in quotes has no end: `{quote}` is expected"))
    }

    /// Bytes in the form `x'00ff'`.
    pub fn hex(&mut self) -> Result<Vec<u8>, BadText> {
        self.expect("x'")?;
        let Some((digits, _)) = self.rest().split_once('\'') else {
            return self.fail("the bytes have no end: `'` is expected");
        };
        let mut bytes = Vec::with_capacity(digits.len() / 2);
        while self.at < self.text.len() && !self.rest().starts_with('\'') {
            let pair = self.rest().get(..2).filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()));
            let Some(byte) = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) else {
                return self.fail("a byte is expected, as two digits from 0 to f");
            };
            bytes.push(byte);
            self.at += 2;
        }
        self.at += 1;
        Ok(bytes)
    }

    /// Fails at this place, with this reason.
    pub fn fail<T>(&mut self, what: impl Into<String>) -> Result<T, BadText> {
        Err(BadText { offset: self.offset(), what: what.into() })
    }
}

/// `content` in quotes. The texts of this crate quote JSON paths, and names of members in such paths, in this way.
pub fn quoted(content: &str, quote: char) -> String {
    let mut text = String::with_capacity(content.len() + 2);
    push_literal(content, quote, &mut text);
    text
}

/// Appends `content` in quotes, as [`Scanner::literal`] reads it.
pub fn push_literal(content: &str, quote: char, text: &mut String) {
    text.push(quote);
    for c in content.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ if c == quote || c == '\\' => text.extend(['\\', c]),
            _ if c.is_control() => write!(text, "\\u{{{:x}}}", u32::from(c)).expect("memory takes every write"),
            _ => text.push(c),
        }
    }
    text.push(quote);
}

/// Appends `bytes` as [`Scanner::hex`] reads them.
pub fn push_hex(bytes: &[u8], text: &mut String) {
    text.push_str("x'");
    for byte in bytes {
        write!(text, "{byte:02x}").expect("memory takes every write");
    }
    text.push('\'');
}
