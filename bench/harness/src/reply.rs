//! The answer of a store to a request.

use crate::partitions::{COUNTERS, counters_value};
use crate::request::Fields;
use crate::strings::{NotARow, Strings};

/// The rows of an answer, filled in by a session. Every row is really copied, because a program that uses the store
/// would have to copy it too. Only the last row stays, unless all rows are [kept](Reply::keeping).
#[derive(Debug, Default)]
pub struct Reply {
    rows: u64,
    bytes: u64,
    key: Vec<u8>,
    record: Strings,
    /// Clustering keys of the rows of a partition. The values of all these rows are in `record`.
    cks: Vec<i64>,
    kept: Option<Vec<(Vec<u8>, Strings)>>,
}

impl Reply {
    /// An empty reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// A reply that keeps every row that it is given. This kind of reply is for tests, because it allocates.
    pub fn keeping() -> Self {
        Self { kept: Some(Vec::new()), ..Self::default() }
    }

    /// Makes it empty for the next request.
    #[inline]
    pub fn clear(&mut self) {
        self.rows = 0;
        self.bytes = 0;
        self.key.clear();
        self.record.clear();
        self.cks.clear();
        if let Some(kept) = &mut self.kept {
            kept.clear();
        }
    }

    /// Takes a row of a key-value store. `value` holds the fields of the row, as [`Strings::encode`] writes them.
    /// The argument `of` is the number of these fields.
    #[inline]
    pub fn row(&mut self, key: &[u8], value: &[u8], of: usize, fields: Fields) -> Result<(), NotARow> {
        self.record.clear();
        match fields {
            Fields::All => self.record.decode(value, of)?,
            Fields::One(field) => self.record.decode_one(value, of, field as usize)?,
        }
        self.end_row(key);
        Ok(())
    }

    /// Takes a row from a store that itself divides rows into fields. `fill` adds the wanted fields, in order.
    #[inline]
    pub fn row_of_fields<E>(&mut self, key: &[u8], fill: impl FnOnce(&mut Strings) -> Result<(), E>) -> Result<(), E> {
        self.record.clear();
        fill(&mut self.record)?;
        self.end_row(key);
        Ok(())
    }

    fn end_row(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.rows += 1;
        self.bytes += (key.len() + self.record.bytes()) as u64;
        if let Some(kept) = &mut self.kept {
            kept.push((self.key.clone(), self.record.clone()));
        }
    }

    /// Takes a row of a partition. If a request reads several rows of a partition, all these rows stay.
    #[inline]
    pub fn partition_row(&mut self, ck: i64, value: &[u8]) {
        self.cks.push(ck);
        self.record.push(value);
        self.rows += 1;
        self.bytes += (size_of_val(&ck) + value.len()) as u64;
    }

    /// Takes the counters of a row of a partition.
    #[inline]
    pub fn partition_counters(&mut self, ck: i64, counters: [i64; COUNTERS]) {
        self.partition_row(ck, &counters_value(counters));
    }

    /// Takes a row of a scan of partitions. The row is copied, and only the last row stays.
    #[inline]
    pub fn scanned_row(&mut self, pk: i64, ck: i64, value: &[u8]) {
        self.cks.clear();
        self.record.clear();
        self.key.clear();
        self.key.extend_from_slice(&pk.to_be_bytes());
        self.partition_row(ck, value);
        self.bytes += size_of_val(&pk) as u64;
    }

    /// The clustering keys and values of the rows of a partition, in the order in which they were given.
    pub fn partition_rows(&self) -> impl ExactSizeIterator<Item = (i64, &[u8])> {
        self.cks.iter().copied().zip(self.record.iter())
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The bytes of the rows: their keys, and the fields that were asked for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Key of the last row; empty if the reply has no rows.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The fields of the last row that were asked for, in order; empty if the reply has no rows.
    pub fn record(&self) -> &Strings {
        &self.record
    }

    /// All rows since [`Reply::clear`], in the order in which they were given. Panics unless [`Reply::keeping`]
    /// made the reply.
    pub fn kept(&self) -> &[(Vec<u8>, Strings)] {
        self.kept.as_deref().expect("a reply that keeps rows")
    }
}
