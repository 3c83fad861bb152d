//! Makes the rows that are inserted together, in one transaction.

use std::ops::RangeInclusive;

/// The order in which the rows of a batch are inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// In the order in which they are made.
    Made,
    /// By `mykey`.
    Key,
    /// By `scratch`, which is a random number.
    Scratch,
    /// By an expression of SQL. Only a database that understands SQL can order rows in this way.
    Sql(String),
}

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The number by which rows are read. It is indexed.
    pub mykey: i64,
    /// A random number. Updates increase it.
    pub scratch: i64,
}

/// The rows of one transaction. The keys of a batch are `step` apart, so that each batch has keys from all parts of
/// the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The least key.
    pub first: i64,
    /// The distance from one key to the next.
    pub step: i64,
    /// The number of rows.
    pub rows: u64,
    /// The rows' random numbers are at least 0 and less than this.
    pub most_scratch: i64,
    /// The seed of the random numbers.
    pub seed: u64,
}

impl Batch {
    /// Batch `number` of `count` batches. `number` counts from 1. `keys` are the keys of the whole table.
    pub fn new(number: u64, count: u64, keys: &RangeInclusive<i64>, most_scratch: i64, seed: u64) -> Self {
        let first = keys.start() + number as i64 - 1;
        let step = count as i64;
        let rows = if first > *keys.end() { 0 } else { ((keys.end() - first) / step + 1) as u64 };
        Self { first, step, rows, most_scratch, seed }
    }

    /// The keys of the rows, in order.
    pub fn keys(&self) -> impl Iterator<Item = i64> {
        let (first, step) = (self.first, self.step);
        (0..self.rows as i64).map(move |row| first + row * step)
    }

    /// The rows in the given order.
    ///
    /// # Errors
    ///
    /// Returns an error if the order is an expression of SQL.
    pub fn rows(&self, order: &Order) -> Result<Vec<Row>, harness::Failure> {
        let scratch = |key: i64| {
            let random = mixed(self.seed ^ (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            ((u128::from(random) * self.most_scratch.max(1) as u128) >> 64) as i64
        };
        let mut rows: Vec<Row> = self.keys().map(|mykey| Row { mykey, scratch: scratch(mykey) }).collect();
        match order {
            Order::Made | Order::Key => {}
            Order::Scratch => rows.sort_by_key(|row| row.scratch),
            Order::Sql(text) => return Err(no_sql(text)),
        }
        Ok(rows)
    }
}

/// The failure with which a database without SQL refuses to order rows by `expression`.
#[cold]
pub fn no_sql(expression: &str) -> harness::Failure {
    let text = format!("orderby `{expression}` is an expression of SQL: write scratch, mykey or null");
    harness::Failure::session("target", text)
}

/// Appends the filler of row `key` to `text`. The filler has `bytes` digits of base 16.
pub fn push_filler(key: i64, bytes: usize, text: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let end = text.len() + bytes;
    let mut word = key as u64;
    while text.len() < end {
        word = mixed(word.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let left = end - text.len();
        text.extend((0..left.min(16)).map(|digit| DIGITS[(word >> (4 * digit)) as usize & 15]));
    }
}

/// Mixes the bits of `number`, so that different numbers give different results that look random. This is the last
/// step of SplitMix64 (Steele, Lea, Flood 2014).
pub fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_every_key_once() {
        for (rows, count) in [(1, 1), (10, 3), (10, 10), (100, 7), (1000, 1)] {
            let keys = 1..=rows;
            let batches = (1..=count).map(|number| Batch::new(number, count, &keys, 10, 1));
            let mut all: Vec<i64> = batches.flat_map(|batch| batch.keys().collect::<Vec<_>>()).collect();
            all.sort_unstable();
            assert_eq!(all, keys.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_batch_is_sorted_by_its_random_numbers() {
        let batch = Batch::new(2, 4, &(1..=1000), 1000, 7);
        let rows = batch.rows(&Order::Scratch).expect("it is no SQL");
        assert_eq!(rows.len(), 250);
        assert!(rows.is_sorted_by_key(|row| row.scratch) && !rows.is_sorted_by_key(|row| row.mykey));
        assert!(rows.iter().all(|row| (0..1000).contains(&row.scratch)));
        assert!(batch.rows(&Order::Key).expect("it is no SQL").is_sorted_by_key(|row| row.mykey));
        assert!(batch.rows(&Order::Sql("yb_hash_code(mykey)".to_owned())).is_err());
    }

    #[test]
    fn a_filler_has_the_length_that_was_asked_for() {
        for bytes in [0, 1, 15, 16, 17, 400] {
            let mut text = b"before".to_vec();
            push_filler(7, bytes, &mut text);
            assert_eq!(text.len(), 6 + bytes);
            assert!(text[6..].iter().all(u8::is_ascii_hexdigit));
        }
    }
}
