//! The messages of RESP, the protocol of Redis. This module uses no socket.
//!
//! ```text
//!   command                 *N CRLF, then N times $BYTES CRLF word CRLF
//!   status                  +text CRLF
//!   error                   -text CRLF
//!   number                  :digits CRLF
//!   text, or none           $BYTES CRLF text CRLF, or $-1 CRLF
//!   list, or none           *N CRLF, then N answers, or *-1 CRLF
//! ```

use std::io::Write as _;

#[cfg(test)]
mod tests;

/// The longest text that a server sends: 512 MB.
const LONGEST: usize = 512 << 20;

/// Commands that are to be sent.
#[derive(Debug, Default)]
pub struct Commands {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// How many commands were put since [`Commands::take_count`].
    count: u32,
}

impl Commands {
    /// Begins a command of `words` words. All of them must follow.
    #[inline]
    pub fn begin(&mut self, words: usize) -> &mut Self {
        self.count += 1;
        self.head(b'*', words);
        self
    }

    /// Puts the next word.
    #[inline]
    pub fn word(&mut self, word: &[u8]) -> &mut Self {
        self.words(&[word])
    }

    /// Puts the next word, which consists of these pieces.
    #[inline]
    pub fn words(&mut self, pieces: &[&[u8]]) -> &mut Self {
        self.head(b'$', pieces.iter().map(|piece| piece.len()).sum());
        pieces.iter().for_each(|piece| self.bytes.extend_from_slice(piece));
        self.bytes.extend_from_slice(b"\r\n");
        self
    }

    /// Puts the next word, a number.
    #[inline]
    pub fn number(&mut self, number: i64) -> &mut Self {
        let mut digits = [0; 20];
        let mut rest = &mut digits[..];
        write!(rest, "{number}").expect("twenty digits are enough");
        let len = 20 - rest.len();
        self.word(&digits[..len])
    }

    /// Puts a whole command.
    pub fn command(&mut self, words: &[&[u8]]) {
        self.begin(words.len());
        words.iter().for_each(|word| {
            self.word(word);
        });
    }

    /// How many commands were put since the last call.
    #[inline]
    pub fn take_count(&mut self) -> u32 {
        std::mem::take(&mut self.count)
    }

    #[inline]
    fn head(&mut self, kind: u8, number: usize) {
        self.bytes.push(kind);
        write!(self.bytes, "{number}").expect("memory takes all");
        self.bytes.extend_from_slice(b"\r\n");
    }
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'b> {
    /// `OK` and the like.
    Status(&'b [u8]),
    /// Why the command failed. The first word is the kind of the error.
    Error(&'b [u8]),
    /// A number.
    Number(i64),
    /// A text, or none.
    Text(Option<&'b [u8]>),
    /// The texts of a list; none for a list that is not there.
    List(Texts<'b>),
}

/// The texts of a list, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texts<'b> {
    left: usize,
    rest: &'b [u8],
}

impl<'b> Iterator for Texts<'b> {
    type Item = Option<&'b [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        // `Answer::read` has read the whole list already.
        let (text, bytes) = text(self.rest).ok().flatten()?;
        self.rest = &self.rest[bytes..];
        Some(text)
    }
}

/// Bytes that are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl<'b> Answer<'b> {
    /// Reads the answer at the beginning of `bytes`, and returns it with its length. `None` if it has not arrived as a
    /// whole.
    pub fn read(bytes: &'b [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some(kind) = bytes.first() else { return Ok(None) };
        match kind {
            b'+' => Ok(line(bytes).map(|line| (Self::Status(line), line.len() + 3))),
            b'-' => Ok(line(bytes).map(|line| (Self::Error(line), line.len() + 3))),
            b':' => Ok(number(bytes)?.map(|(number, len)| (Self::Number(number), len))),
            b'$' => Ok(text(bytes)?.map(|(text, len)| (Self::Text(text), len))),
            b'*' => {
                let Some((count, head)) = number(bytes)? else { return Ok(None) };
                let count = usize::try_from(count).unwrap_or(0);
                let mut len = head;
                for _ in 0..count {
                    let Some((_, more)) = text(&bytes[len..])? else { return Ok(None) };
                    len += more;
                }
                Ok(Some((Self::List(Texts { left: count, rest: &bytes[head..len] }), len)))
            }
            _ => Err(Malformed("an answer of an unknown kind")),
        }
    }
}

/// The line at the beginning of `bytes` without the first byte and the end.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    Some(&bytes[1..end])
}

#[inline]
fn number(bytes: &[u8]) -> Result<Option<(i64, usize)>, Malformed> {
    let Some(line) = line(bytes) else { return Ok(None) };
    let number = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
    number.map(|number| Some((number, line.len() + 3))).ok_or(Malformed("a number that is none"))
}

/// The text at the beginning of `bytes`, and its length with all around it.
#[inline]
#[allow(clippy::type_complexity, reason = "an answer, its length, and whether they are there")]
fn text(bytes: &[u8]) -> Result<Option<(Option<&[u8]>, usize)>, Malformed> {
    match bytes.first() {
        None => return Ok(None),
        Some(b'$') => {}
        Some(_) => return Err(Malformed("no text where one is due")),
    }
    let Some((count, head)) = number(bytes)? else { return Ok(None) };
    let Ok(count) = usize::try_from(count) else { return Ok(Some((None, head))) };
    if count > LONGEST {
        return Err(Malformed("a text that is longer than Redis has any"));
    }
    let whole = head + count + 2;
    if bytes.len() < whole {
        return Ok(None);
    }
    match &bytes[head + count..whole] {
        b"\r\n" => Ok(Some((Some(&bytes[head..head + count]), whole))),
        _ => Err(Malformed("a text that is longer than it says")),
    }
}
