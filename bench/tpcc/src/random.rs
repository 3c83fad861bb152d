//! Random numbers and strings, following clauses 2.1.5, 2.1.6, 4.3.2 and 4.3.3 of TPC-C 5.11.
//!
//! A stream can begin at any place. Each row of a table has its own stream, which depends only on the seed and the
//! row's place. Therefore rows can be made in any order, by any number of threads, and repeatedly.

use crate::text::Text;

#[cfg(test)]
mod tests;

/// 2^64 divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers: SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*,
/// 2014).
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
}

/// The characters of an *a-string*: letters of both cases, and digits.
const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Stream {
    /// The stream of a seed and a place. `place` distinguishes this stream from other streams of the same seed.
    pub fn of(seed: u64, place: &[u64]) -> Self {
        let state = place.iter().fold(mixed(seed ^ GOLDEN), |state, number| mixed(state.wrapping_add(GOLDEN) ^ number));
        Self { state }
    }

    /// A random number of 64 bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mixed(self.state)
    }

    /// A number from `low` to `high`, both included. All numbers are equally likely, with an error of at most one
    /// in 2^32 / (high - low).
    #[inline]
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        let count = u64::from(high - low) + 1;
        low + ((self.word() >> 32).wrapping_mul(count) >> 32) as u32
    }

    /// Returns `true` with the probability 1 / `count`.
    #[inline]
    pub fn one_in(&mut self, count: u32) -> bool {
        self.between(1, count) == 1
    }

    /// `NURand(a, low, high)` with the constant `c` (clause 2.1.6): some numbers are much more likely than others.
    #[inline]
    pub fn skewed(&mut self, skew: Skew, low: u32, high: u32) -> u32 {
        ((self.between(0, skew.a) | self.between(low, high)) + skew.c) % (high - low + 1) + low
    }

    /// An a-string: `shortest` to `longest` letters and digits.
    #[inline]
    pub fn letters<const N: usize>(&mut self, shortest: u32, longest: u32, text: &mut Text<N>) {
        let len = if shortest == longest { longest } else { self.between(shortest, longest) };
        self.fill(text.resized(len as usize));
    }

    /// An n-string, which consists of digits.
    #[inline]
    pub fn digits(&mut self, out: &mut [u8]) {
        let digit = |bits: u64| b'0' + (((bits & 0xffff) * 10) >> 16) as u8;
        for four in out.chunks_mut(4) {
            let mut word = self.word();
            for byte in four {
                *byte = digit(word);
                word >>= 16;
            }
        }
    }

    /// Fills `out` with pairs of letters. Each pair is made from 21 random bits. There are 62^2 pairs, so no pair
    /// is likelier than another pair by more than one part in 545, which is 2^21 / 62^2.
    #[inline]
    fn fill(&mut self, out: &mut [u8]) {
        let mut sixes = out.chunks_exact_mut(6);
        for six in &mut sixes {
            let word = self.word();
            let ([a, b], [c, d], [e, f]) = (pair(word), pair(word >> 21), pair(word >> 42));
            six.copy_from_slice(&[a, b, c, d, e, f]);
        }
        let mut word = self.word();
        for two in sixes.into_remainder().chunks_mut(2) {
            two.copy_from_slice(&pair(word)[..two.len()]);
            word >>= 21;
        }
    }
}

/// The pair of letters that 21 random bits stand for.
#[inline]
fn pair(bits: u64) -> [u8; 2] {
    PAIRS[(((bits & 0x1f_ffff) * PAIRS.len() as u64) >> 21) as usize]
}

/// All pairs of letters.
static PAIRS: [[u8; 2]; 62 * 62] = {
    let mut pairs = [[0; 2]; 62 * 62];
    let mut at = 0;
    while at < pairs.len() {
        pairs[at] = [ALPHANUMERIC[at / 62], ALPHANUMERIC[at % 62]];
        at += 1;
    }
    pairs
};

/// The finalizer of SplitMix64.
#[inline]
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The constants for drawing a skewed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    a: u32,
    c: u32,
}

/// The constants `C` of one database. They are drawn once, from its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// The constants for last names in the initial population.
    pub last_name_loaded: Skew,
    /// The constants for last names that transactions ask for.
    pub last_name: Skew,
    /// The constants for the number of a customer.
    pub customer: Skew,
    /// The constants for the number of an item.
    pub item: Skew,
}

impl Constants {
    /// The constants of a seed.
    pub fn of(seed: u64) -> Self {
        let mut stream = Stream::of(seed, &[u64::from_be_bytes(*b"constant")]);
        let loaded = stream.between(0, 255);
        // Clause 2.1.6.1: the two constants for last names differ by 65 to 119, but not by 96 or 112.
        let run = loop {
            let run = stream.between(0, 255);
            if is_valid_delta(loaded.abs_diff(run)) {
                break run;
            }
        };
        Self {
            last_name_loaded: Skew { a: 255, c: loaded },
            last_name: Skew { a: 255, c: run },
            customer: Skew { a: 1023, c: stream.between(0, 1023) },
            item: Skew { a: 8191, c: stream.between(0, 8191) },
        }
    }
}

impl Constants {
    /// Constants with which each customer and each item is equally likely. All other constants are those of
    /// `self`.
    pub fn even(&self) -> Self {
        Self { customer: Skew { a: 0, ..self.customer }, item: Skew { a: 0, ..self.item }, ..*self }
    }
}

fn is_valid_delta(delta: u32) -> bool {
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}

const SYLLABLES: [&[u8]; 10] =
    [b"BAR", b"OUGHT", b"ABLE", b"PRI", b"PRES", b"ESE", b"ANTI", b"CALLY", b"ATION", b"EING"];

/// The number of bytes in the longest last name.
pub const LAST_NAME_BYTES: usize = 16;

/// The last name with `number`, which is less than 1,000 (clause 4.3.2.3).
pub fn last_name(number: u32) -> Text<LAST_NAME_BYTES> {
    let mut name = [0; LAST_NAME_BYTES];
    let mut len = 0;
    for digit in [number / 100, number / 10 % 10, number % 10] {
        let syllable = SYLLABLES[digit as usize];
        name[len..len + syllable.len()].copy_from_slice(syllable);
        len += syllable.len();
    }
    Text::of(&name[..len])
}

/// A permutation of the numbers below [`Permutation::COUNT`], as a function. It is a Feistel network over 12 bits.
/// If the result is not below the count, the network is applied to the result again (Black and Rogaway, *Ciphers
/// with arbitrary finite domains*, 2002).
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    keys: [u64; 4],
}

impl Permutation {
    /// The number of customers in a district.
    pub const COUNT: u32 = 3000;

    /// The permutation that a stream draws.
    pub fn draw(stream: &mut Stream) -> Self {
        Self { keys: std::array::from_fn(|_| stream.word()) }
    }

    /// The number to which `number` is mapped.
    pub fn of(&self, number: u32) -> u32 {
        let mut number = number;
        loop {
            let (mut left, mut right) = (number >> 6, number & 63);
            for key in self.keys {
                (left, right) = (right, left ^ (mixed(key ^ u64::from(right)) as u32 & 63));
            }
            number = left << 6 | right;
            if number < Self::COUNT {
                return number;
            }
        }
    }
}
