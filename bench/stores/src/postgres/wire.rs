//! The hot part of PostgreSQL's protocol (version 3): this module builds the messages of a prepared statement, and
//! parses the server's messages in the buffer where they arrived. Session start-up and message headers use the crate
//! `postgres-protocol`. It could do all of this, but takes 165 ns for a request where this module takes 18 ns, and
//! allocates for each message that it parses.
//!
//! A message is a tag, a length and a body. The length counts itself and the body, but not the tag. Numbers are
//! big-endian. Bytes from the server are not trusted: a length or count that does not fit its message is
//! [`Malformed`].

use crate::postgres::error::{ServerError, SqlState};
use postgres_protocol::message::backend::Header;

#[cfg(test)]
mod tests;

/// Bytes before the body of a message: tag and length.
const HEADER_BYTES: usize = 5;
/// The longest message of a server, which cannot allocate a longer one.
const MESSAGE_BYTES_MAX: usize = 1 << 30;
/// Room for one receive. The server sends pieces of 8 KiB, so more than that arrives at once only if the server was
/// ahead of us.
const RECEIVE_BYTES: usize = 64 << 10;

/// What was wrong with the server's bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// A message from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The kind of the message.
    pub tag: u8,
    /// The content of the message.
    pub body: &'a [u8],
}

/// Bytes that have arrived and were not parsed yet. The buffer grows to the largest message and is reused.
#[derive(Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// Takes the next message, if all of it has arrived.
    ///
    /// # Errors
    ///
    /// Fails if the length in the message is impossible.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        let Some(bytes) = self.next_bytes()? else { return Ok(None) };
        let message = &self.bytes[self.start..][..bytes];
        self.start += bytes;
        Ok(Some(Frame { tag: message[0], body: &message[HEADER_BYTES..] }))
    }

    /// Whether all of the next message has arrived.
    ///
    /// # Errors
    ///
    /// Fails if the length in the message is impossible.
    pub fn has_next(&self) -> Result<bool, Malformed> {
        Ok(self.next_bytes()?.is_some())
    }

    /// The length of the next message, or `None` if not all of it has arrived.
    #[inline]
    fn next_bytes(&self) -> Result<Option<usize>, Malformed> {
        let waiting = &self.bytes[self.start..self.end];
        const IMPOSSIBLE: Malformed = Malformed("a message of impossible length");
        let Some(header) = Header::parse(waiting).map_err(|_| IMPOSSIBLE)? else { return Ok(None) };
        let bytes = header.len() as usize + 1;
        if bytes > MESSAGE_BYTES_MAX {
            return Err(IMPOSSIBLE);
        }
        Ok((bytes <= waiting.len()).then_some(bytes))
    }

    /// Free room for incoming bytes: enough for one receive, and for the rest of a message that has begun to arrive.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.bytes.len() - self.end < RECEIVE_BYTES / 2 {
            self.make_room();
        }
        &mut self.bytes[self.end..]
    }

    #[cold]
    fn make_room(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let begun = Header::parse(&self.bytes[..self.end]).ok().flatten().map_or(0, |header| header.len() as usize + 1);
        let wanted = begun.min(MESSAGE_BYTES_MAX).max(self.end) + RECEIVE_BYTES;
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
    }

    /// Records that `bytes` bytes of [`Inbox::room`] were filled.
    #[inline]
    pub fn filled(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes.len() - self.end, "no more was received than there was room for");
        self.end += bytes;
    }
}

/// A prepared statement, with the bytes that all its requests have in common.
///
/// A request is a Bind and an Execute. The Bind names the statement, gives the parameter values and asks for binary
/// results; the Execute sets no row limit:
///
/// ```text
/// 'B' length  portal 0  statement 0  1 1 (all parameters are binary)  parameters  {length value}*  1 1 (so are results)
///             ""        name                                          u16          i32
/// 'E' length  portal 0  limit
///             ""        i32: 0
/// ```
#[derive(Debug, Clone)]
pub struct Statement {
    /// The bytes from the name of the portal to the number of parameters.
    begin: Vec<u8>,
    parameters: usize,
}

/// The end of a Bind (the result formats), followed by the Execute.
const BIND_END_AND_EXECUTE: [u8; 14] = [0, 1, 0, 1, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
/// Bytes of [`BIND_END_AND_EXECUTE`] that are part of the Bind.
const BIND_END_BYTES: usize = 4;
/// A Sync: the server commits, sends its answers, and stops skipping requests after an error.
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

impl Statement {
    /// A statement that was prepared under the name `name`.
    pub fn new(name: &str, parameters: u16) -> Self {
        assert!(!name.contains('\0'), "statements are named by us");
        let mut begin = vec![0];
        begin.extend_from_slice(name.as_bytes());
        begin.extend_from_slice(&[0, 0, 1, 0, 1]);
        begin.extend_from_slice(&parameters.to_be_bytes());
        Self { begin, parameters: usize::from(parameters) }
    }

    /// Begins a request at the end of `out`. The caller then gives its values and calls [`Binding::finish`].
    #[inline]
    pub fn bind<'o>(&self, out: &'o mut Vec<u8>) -> Binding<'o> {
        out.extend_from_slice(&[b'B', 0, 0, 0, 0]);
        let length_at = out.len() - 4;
        out.extend_from_slice(&self.begin);
        Binding { out, length_at, missing: self.parameters }
    }
}

/// A request whose parameter values are being added.
#[must_use = "a request without its end is no message"]
pub struct Binding<'o> {
    out: &'o mut Vec<u8>,
    length_at: usize,
    missing: usize,
}

impl Binding<'_> {
    /// Sets the next parameter to these bytes, or to this text in UTF-8.
    #[inline]
    pub fn bytes(&mut self, value: &[u8]) {
        self.missing -= 1;
        put_bytes(self.out, value);
    }

    /// Sets the next parameter to a 64-bit number.
    #[inline]
    pub fn number(&mut self, value: i64) {
        self.bytes(&value.to_be_bytes());
    }

    /// Sets the next parameter to a 32-bit number.
    #[inline]
    pub fn integer(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Sets the next parameter to an array of texts:
    ///
    /// ```text
    /// length  dimensions  has nulls  type of elements  elements  first index  {length value}*
    ///         1           0          25 (text)                   1
    /// ```
    pub fn texts<'v>(&mut self, values: impl ExactSizeIterator<Item = &'v [u8]>) {
        const TEXT_TYPE: u32 = 25;
        self.array(TEXT_TYPE, values);
    }

    /// Sets the next parameter to an array of byte strings.
    pub fn byte_strings<'v>(&mut self, values: impl ExactSizeIterator<Item = &'v [u8]>) {
        const BYTEA_TYPE: u32 = 17;
        self.array(BYTEA_TYPE, values);
    }

    /// Sets the next parameter to an array of 64-bit numbers.
    pub fn numbers(&mut self, values: &[i64]) {
        const BIGINT_TYPE: u32 = 20;
        self.array(BIGINT_TYPE, values.iter().map(|value| value.to_be_bytes()));
    }

    /// Sets the next parameter to an array of 32-bit numbers.
    pub fn integers(&mut self, values: &[i32]) {
        const INTEGER_TYPE: u32 = 23;
        self.array(INTEGER_TYPE, values.iter().map(|value| value.to_be_bytes()));
    }

    fn array<V: AsRef<[u8]>>(&mut self, element_type: u32, values: impl ExactSizeIterator<Item = V>) {
        self.missing -= 1;
        let length_at = self.out.len();
        let count = u32::try_from(values.len()).expect("a request has fewer keys than bytes");
        for word in [0, 1, 0, element_type, count, 1] {
            self.out.extend_from_slice(&word.to_be_bytes());
        }
        for value in values {
            put_bytes(self.out, value.as_ref());
        }
        patch_length(self.out, length_at, length_at + 4);
    }

    /// Sets all remaining parameters and ends the request. In `values`, each is preceded by its length.
    #[inline]
    pub fn finish_with(mut self, values: &[u8]) {
        self.missing = 0;
        self.out.extend_from_slice(values);
        self.finish();
    }

    /// Ends the request, which must have all its values.
    #[inline]
    pub fn finish(self) {
        assert_eq!(self.missing, 0, "a request gives a value to every parameter");
        self.out.extend_from_slice(&BIND_END_AND_EXECUTE);
        let bind_end = self.out.len() - (BIND_END_AND_EXECUTE.len() - BIND_END_BYTES);
        let bytes = u32::try_from(bind_end - self.length_at).expect("requests are far below 4 GiB");
        self.out[self.length_at..][..4].copy_from_slice(&bytes.to_be_bytes());
    }
}

/// Appends a value, preceded by its length.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, value: &[u8]) {
    let bytes = i32::try_from(value.len()).expect("values are far below 2 GiB");
    out.extend_from_slice(&bytes.to_be_bytes());
    out.extend_from_slice(value);
}

/// Writes the number of bytes from offset `from` to the end of `out` into the four bytes at offset `at`.
pub fn patch_length(out: &mut [u8], at: usize, from: usize) {
    let bytes = u32::try_from(out.len() - from).expect("messages are far below 4 GiB");
    out[at..][..4].copy_from_slice(&bytes.to_be_bytes());
}

/// Iterates over the values of a row, in the order of its columns. `None` is NULL.
#[derive(Debug, Clone)]
pub struct Values<'a> {
    rest: &'a [u8],
    left: u16,
}

impl<'a> Values<'a> {
    /// Reads the body of a DataRow.
    ///
    /// # Errors
    ///
    /// Fails if the body is too short for the number of columns.
    #[inline]
    pub fn new(body: &'a [u8]) -> Result<Self, Malformed> {
        let [a, b, rest @ ..] = body else { return Err(Malformed("a row without a number of columns")) };
        Ok(Self { rest, left: u16::from_be_bytes([*a, *b]) })
    }

    /// The next value.
    ///
    /// # Errors
    ///
    /// Fails if the row has no more values, or ends too early.
    #[inline]
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        const SHORT: Malformed = Malformed("a row that ends before its last value");
        if self.left == 0 {
            return Err(Malformed("a row with fewer columns than asked for"));
        }
        self.left -= 1;
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or(SHORT)?;
        self.rest = rest;
        match i32::from_be_bytes(*length) {
            -1 => Ok(None),
            bytes => {
                let bytes = usize::try_from(bytes).map_err(|_| SHORT)?;
                let (value, rest) = rest.split_at_checked(bytes).ok_or(SHORT)?;
                self.rest = rest;
                Ok(Some(value))
            }
        }
    }

    /// How many values are left.
    pub fn left(&self) -> u16 {
        self.left
    }
}

/// The number of rows that a command changed or returned: the last word in the body of a CommandComplete, as in
/// `UPDATE 1` or `INSERT 0 1`. It is 0 if the command counts no rows.
#[inline]
pub fn rows_touched(body: &[u8]) -> u64 {
    let words = body.strip_suffix(&[0]).unwrap_or(body);
    let digits = words.len() - words.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    words[digits..].iter().fold(0_u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

/// Parses the body of an ErrorResponse. Each field begins with a letter and ends with a zero byte; another zero byte
/// ends the body.
pub fn server_error(body: &[u8]) -> ServerError {
    let mut error = ServerError {
        severity: String::new(),
        sqlstate: SqlState::UNKNOWN,
        message: String::new(),
        detail: String::new(),
        hint: String::new(),
    };
    for field in body.split(|byte| *byte == 0) {
        let Some((kind, text)) = field.split_first() else { continue };
        let words = || String::from_utf8_lossy(text).into_owned();
        match kind {
            // The field `S` has the severity in the language of the server's messages. The field `V`, since version
            // 9.6, has it in English.
            b'S' if error.severity.is_empty() => error.severity = words(),
            b'V' => error.severity = words(),
            b'C' => error.sqlstate = text.try_into().map_or(SqlState::UNKNOWN, SqlState),
            b'M' => error.message = words(),
            b'D' => error.detail = words(),
            b'H' => error.hint = words(),
            _ => {}
        }
    }
    error
}
