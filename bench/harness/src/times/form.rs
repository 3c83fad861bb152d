//! Times in a result file: the figures that readers want to see, and a histogram for everything else.
//!
//! The histogram has HdrHistogram's own encoding V2, uncompressed and in base64. HdrHistogram's tools read it, too:
//!
//! ```text
//!   cookie 0x1c849313 u32 | length of the counts u32 | 0 u32 | digits 3 u32
//!   lowest 1 u64 | highest u64 | ratio 1.0 f64                                  all big endian, 40 bytes
//!   counts: zigzag LEB128 with 9 bytes at most; n >= 0: the count of the next bucket, n < 0: -n buckets of 0
//! ```
//!
//! The decoder here checks everything, because a file may hold anything.

use super::{GROUP, GROUPS, Times, put};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const COOKIE: u32 = 0x1c84_9313;
const HEADER: usize = 40;

#[derive(Serialize)]
struct Shown {
    count: u64,
    mean_nanos: f64,
    min_nanos: u64,
    p50_nanos: Option<u64>,
    p90_nanos: Option<u64>,
    p95_nanos: Option<u64>,
    p99_nanos: Option<u64>,
    p99_9_nanos: Option<u64>,
    p99_99_nanos: Option<u64>,
    max_nanos: u64,
    histogram: String,
}

#[derive(Deserialize)]
struct Read {
    count: u64,
    #[serde(default)]
    histogram: String,
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Shown {
            count: self.count(),
            // Buckets are at least a nanosecond wide, so less than a tenth of a nanosecond has no meaning.
            mean_nanos: (self.mean() * 10.0).round() / 10.0,
            min_nanos: self.min(),
            p50_nanos: self.known_quantile(0.5),
            p90_nanos: self.known_quantile(0.9),
            p95_nanos: self.known_quantile(0.95),
            p99_nanos: self.known_quantile(0.99),
            p99_9_nanos: self.known_quantile(0.999),
            p99_99_nanos: self.known_quantile(0.9999),
            max_nanos: self.max(),
            histogram: encode(self),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Read::deserialize(deserializer)?;
        let times = match read.histogram.as_str() {
            "" => Times::default(),
            text => {
                let bytes = STANDARD.decode(text).map_err(|error| D::Error::custom(format!("a histogram: {error}")))?;
                decode(&bytes).map_err(|why| D::Error::custom(format!("a histogram {why}")))?
            }
        };
        match times.count() == read.count {
            true => Ok(times),
            false => Err(D::Error::custom(format!(
                "a histogram holds {} times where `count` is {}",
                times.count(),
                read.count
            ))),
        }
    }
}

fn encode(times: &Times) -> String {
    if times.is_empty() {
        return String::new();
    }
    let mut bytes = Vec::new();
    let serialized = V2Serializer::new().serialize(&times.hdr(), &mut bytes);
    serialized.expect("counts are below 2^63, and a Vec takes all");
    STANDARD.encode(bytes)
}

/// Decodes the times. The error says why they cannot be decoded, in words that follow "a histogram".
pub(super) fn decode(bytes: &[u8]) -> Result<Times, &'static str> {
    let (header, mut rest) = bytes.split_at_checked(HEADER).ok_or("ends within its header")?;
    let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_be_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    if word(0) != COOKIE {
        return Err("is not one of version 2, uncompressed");
    }
    if word(4) as usize != rest.len() {
        return Err("is not as long as it says");
    }
    if (word(8), word(12), long(16), long(32)) != (0, 3, 1, 1.0f64.to_bits()) {
        return Err("has other buckets than three digits from 1 ns on");
    }
    let mut times = Times::default();
    let (mut bucket, mut before) = (0usize, 0usize);
    while !rest.is_empty() {
        let number = number(&mut rest).ok_or("ends within a number")?;
        let empty = usize::try_from(number.unsigned_abs()).ok().filter(|_| number < 0);
        if let Some(empty) = empty {
            bucket = bucket.saturating_add(empty);
            continue;
        }
        if bucket >= GROUP * GROUPS {
            return Err("has more buckets than there are");
        }
        let count = number.unsigned_abs();
        if count > 0 {
            times.count = times.count.checked_add(count).ok_or("counts more than can be")?;
            put(&mut times.packed, (bucket - before) as u64);
            put(&mut times.packed, count);
            before = bucket;
        }
        bucket += 1;
    }
    times.packed.shrink_to_fit();
    Ok(times)
}

/// Reads the next number. Each byte holds seven bits of the number, low bits first, but a ninth byte holds eight
/// bits. Then zigzag is undone.
fn number(rest: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for index in 0..9 {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        let whole = index == 8;
        value |= u64::from(if whole { *byte } else { byte & 0x7f }) << (7 * index);
        if whole || byte & 0x80 == 0 {
            break;
        }
    }
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}
