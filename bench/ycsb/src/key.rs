//! Makes the keys of records from their numbers.

#[cfg(test)]
mod tests;

const PREFIX: &[u8; 4] = b"user";
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 1_099_511_628_211;
/// The factor by which four zero bytes multiply the hash.
const FNV_PRIME_4: u64 = FNV_PRIME.wrapping_pow(4);

/// `Utils.fnvhash64`: FNV-1a over the eight bytes of `number`, lowest byte first. The sign of the result is
/// removed.
#[inline]
pub fn fnv(number: i64) -> i64 {
    let mut rest = number.cast_unsigned();
    let mut hash = FNV_OFFSET;
    let take_four = |rest: u64, hash: &mut u64| {
        for byte in 0..4 {
            *hash = (*hash ^ ((rest >> (8 * byte)) & 0xff)).wrapping_mul(FNV_PRIME);
        }
    };
    take_four(rest, &mut hash);
    // The number of a record is nearly always less than 2^32. For such a number, one multiplication replaces four
    // multiplications, each of which would have to wait for the previous one.
    rest >>= 32;
    if rest == 0 {
        hash = hash.wrapping_mul(FNV_PRIME_4);
    } else {
        take_four(rest, &mut hash);
    }
    hash.cast_signed().wrapping_abs()
}

/// How keys are made from numbers: the properties `insertorder` and `zeropadding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyNames {
    /// Whether keys are in the order of the record numbers. Otherwise they are in the order of the numbers' hashes.
    pub ordered: bool,
    /// The least number of digits. Shorter numbers get leading zeros.
    pub zero_padding: usize,
}

impl KeyNames {
    /// The number of bytes in the longest key.
    pub fn max_bytes(&self) -> usize {
        PREFIX.len() + self.zero_padding.max(20)
    }

    /// Replaces `key` by the key of record `number`.
    #[inline]
    pub fn write(&self, number: i64, key: &mut Vec<u8>) {
        let number = if self.ordered { number } else { fnv(number) };
        let mut digits = [0; 20];
        let digits = decimal(number, &mut digits);
        key.clear();
        key.extend_from_slice(PREFIX);
        if digits.len() < self.zero_padding {
            key.resize(PREFIX.len() + self.zero_padding - digits.len(), b'0');
        }
        key.extend_from_slice(digits);
    }
}

impl KeyNames {
    /// Two numbers that order records in the same way as their keys do. The second number is compared only if the
    /// first ones are equal.
    pub fn rank(&self, number: i64) -> (u64, u32) {
        let number = if self.ordered { number } else { fnv(number) };
        // Only one hash has no absolute value. The key for this hash has a minus sign in front, and a minus sign
        // sorts before all digits.
        let number = u64::try_from(number).unwrap_or(0);
        let digits = number.checked_ilog10().map_or(1, |power| power + 1).max(self.zero_padding.min(19) as u32);
        // The key 12 sorts as a text, like 1200…. The key 1 is shorter than the key 10 and sorts before it. No
        // number of 63 bits has more than 19 digits.
        (number * 10_u64.pow(19 - digits), digits)
    }
}

/// Pairs of digits from 00 to 99.
const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[2 * number] = b'0' + (number / 10) as u8;
        pairs[2 * number + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

/// Writes `number` in decimal at the end of `buffer`.
pub(crate) fn decimal(number: i64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = number.unsigned_abs();
    while rest >= 10_000 {
        let four = (rest % 10_000) as usize;
        rest /= 10_000;
        at -= 4;
        buffer[at..at + 2].copy_from_slice(&PAIRS[four / 100 * 2..][..2]);
        buffer[at + 2..at + 4].copy_from_slice(&PAIRS[four % 100 * 2..][..2]);
    }
    let mut rest = rest as usize;
    while rest >= 100 {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[rest % 100 * 2..][..2]);
        rest /= 100;
    }
    if rest >= 10 {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[rest * 2..][..2]);
    } else {
        at -= 1;
        buffer[at] = b'0' + rest as u8;
    }
    if number < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    &buffer[at..]
}
