//! Wide keys for YCSB: a prefix that only neighbouring keys share comes before YCSB's own key. So the separators of
//! an index are long, and a node cannot leave out a common prefix.
//!
//! ```text
//! user00873…                           the key of YCSB: `user` and 20 digits, which are less than 2^63
//! 0001a2f7 | filler | user00873…       the wide one: 8 digits of a group of neighbours, bytes that depend on the group
//! ```
//!
//! Wide keys sort in the order of YCSB's keys.

use super::FILLER_BYTES;
use harness::{Client, Extra, Failure, Kind, Next, Outcome, Reply, Request, Rows, Strings, Wait, Workload};
use suite::stop::Stop;

#[cfg(test)]
mod tests;

/// Bytes of a YCSB key with 20 digits.
const NARROW_BYTES: usize = 24;
/// Bytes of a wide key.
pub const KEY_BYTES: usize = 8 + FILLER_BYTES + NARROW_BYTES;

/// Turns YCSB's keys into wide ones.
#[derive(Clone, Copy, Debug)]
pub struct Widening {
    /// Hashes per group.
    span: u64,
}

impl Widening {
    /// Divides keys into `groups` groups, whose keys share their filler.
    pub fn new(groups: u64) -> Self {
        Self { span: (1 << 63) / groups.max(1) + 1 }
    }

    /// Writes the wide form of `narrow` to `wide`.
    pub fn widen(&self, narrow: &[u8], wide: &mut Vec<u8>) {
        let digits = narrow.strip_prefix(b"user").unwrap_or(narrow);
        let hash = digits
            .iter()
            .fold(0_u64, |hash, digit| hash.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0'))));
        let group = hash / self.span;
        wide.clear();
        push_digits(group << 32, 8, wide);
        let mut left = FILLER_BYTES;
        let mut word = group;
        while left > 0 {
            word = row_access::batch::mixed(word.wrapping_add(1));
            push_digits(word, left.min(16), wide);
            left -= left.min(16);
        }
        wide.extend_from_slice(narrow);
    }
}

/// Appends the first `count` hexadecimal digits of `word`.
fn push_digits(word: u64, count: usize, out: &mut Vec<u8>) {
    out.extend((0..count).map(|at| b"0123456789abcdef"[(word >> (60 - 4 * at)) as usize & 15]));
}

/// A workload with wide keys.
pub struct Wide<'w, W> {
    inner: &'w W,
    widening: Widening,
}

impl<'w, W> Wide<'w, W> {
    pub fn new(inner: &'w W, widening: Widening) -> Self {
        Self { inner, widening }
    }
}

impl<W: Workload> Workload for Wide<'_, W> {
    type Client = WideClient<W::Client>;

    fn kinds(&self) -> &'static [&'static str] {
        self.inner.kinds()
    }

    fn client(&self, number: usize, clients: usize) -> Self::Client {
        WideClient {
            inner: self.inner.client(number, clients),
            widening: self.widening,
            narrow: Vec::new(),
            wide: Vec::new(),
            reply: Reply::new(),
        }
    }
}

/// Widens keys on the way to the store, and narrows them again on the way back.
pub struct WideClient<C> {
    inner: C,
    widening: Widening,
    narrow: Vec<u8>,
    wide: Vec<u8>,
    reply: Reply,
}

impl<C: Client> Client for WideClient<C> {
    fn begin(&mut self) -> bool {
        self.inner.begin()
    }

    fn wait(&mut self) -> Wait {
        self.inner.wait()
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        let (kind, request) = self.inner.request();
        let mut widened = |narrow: &[u8]| {
            self.narrow.clear();
            self.narrow.extend_from_slice(narrow);
            self.widening.widen(narrow, &mut self.wide);
        };
        let request = match request {
            Request::Read { key, fields } => {
                widened(key);
                Request::Read { key: &self.wide, fields }
            }
            Request::Scan { start, rows, fields } => {
                widened(start);
                Request::Scan { start: &self.wide, rows, fields }
            }
            Request::Insert { key, record } => {
                widened(key);
                Request::Insert { key: &self.wide, record }
            }
            Request::Replace { key, record } => {
                widened(key);
                Request::Replace { key: &self.wide, record }
            }
            Request::Update { key, field, value } => {
                widened(key);
                Request::Update { key: &self.wide, field, value }
            }
            Request::Delete { key } => {
                widened(key);
                Request::Delete { key: &self.wide }
            }
            Request::ReadMany { .. } | Request::Partition(_) | Request::Transaction(_) => {
                unreachable!("workloads of YCSB read one key or a range of one table")
            }
        };
        (kind, request)
    }

    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, extra: &mut Extra<'_>) -> Next {
        // Leave a row with an unexpected key as it is, so that the client sees the wrong key.
        if reply.rows() != 1 || reply.key() != self.wide {
            return self.inner.served(result, reply, extra);
        }
        self.reply.clear();
        let copied = self.reply.row_of_fields(&self.narrow, |fields| {
            reply.record().iter().for_each(|field| fields.push(field));
            Ok::<(), Failure>(())
        });
        copied.expect("copies cannot fail");
        self.inner.served(result, &self.reply, extra)
    }
}

/// Rows with wide keys, which end after ^C.
pub struct WideRows<'r, R> {
    inner: &'r mut R,
    widening: Widening,
    stop: &'r Stop,
    narrow: Vec<u8>,
}

impl<'r, R: Rows> WideRows<'r, R> {
    pub fn new(inner: &'r mut R, widening: Widening, stop: &'r Stop) -> Self {
        Self { inner, widening, stop, narrow: Vec::new() }
    }
}

impl<R: Rows> Rows for WideRows<'_, R> {
    fn next_row(&mut self, key: &mut Vec<u8>, record: &mut Strings) -> bool {
        let is_there = !self.stop.is_pressed() && self.inner.next_row(&mut self.narrow, record);
        if is_there {
            self.widening.widen(&self.narrow, key);
        }
        is_there
    }
}
