//! Requests for rows that lie in partitions, as those of Cassandra do: a row has the key of its partition and a
//! clustering key, both whole numbers, and a partition may have more rows than fit in memory.
//!
//! A table is of one of two kinds. One has rows of one value of bytes, the other has rows of five counters.

use crate::strings::Strings;

/// Counters of a row.
pub const COUNTERS: usize = 5;

/// A request for rows in partitions. The bytes belong to the client and hold until the request is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionRequest<'a> {
    /// Puts rows into a partition, in the place of those that are there. They go to the store together. Where a store
    /// knows such a batch, either all or none of them are written.
    Insert {
        /// The partition.
        pk: i64,
        /// Clustering keys of the rows, at least one, each once.
        cks: &'a [i64],
        /// Their values, in the same order.
        values: &'a Strings,
    },
    /// Rows of a partition, or their counters.
    Read {
        /// The partition.
        pk: i64,
        /// Which of its rows.
        rows: PartitionRows<'a>,
        /// In which order, by clustering key; `None`: in any.
        order: Option<Order>,
    },
    /// All rows of all partitions of one part of the table. Each row lies in one of the parts, and a partition is not
    /// divided.
    Scan {
        /// Which part, from 0.
        part: u32,
        /// The number of parts; at least 1.
        parts: u32,
    },
    /// Adds to the counters of a row. Where no such row exists, they begin at 0.
    Add {
        /// The partition.
        pk: i64,
        /// Clustering key of the row.
        ck: i64,
        /// What is added to each counter.
        by: [i64; COUNTERS],
    },
}

/// Which rows of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionRows<'a> {
    /// Those whose clustering key is at least `ck`, `limit` at most: the first of the order.
    From {
        /// The lower bound.
        ck: i64,
        /// How many at most.
        limit: u64,
    },
    /// The first of the order, `limit` at most.
    First {
        /// How many at most.
        limit: u64,
    },
    /// Those whose clustering key is at least `from` and less than `to`.
    Between {
        /// The lower bound.
        from: i64,
        /// The upper bound, which does not belong to it.
        to: i64,
    },
    /// The rows with these clustering keys. A key may stand there several times, and gives its row once.
    Of(&'a [i64]),
}

/// An order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Clustering keys rise.
    Ascending,
    /// They fall.
    Descending,
}

/// The counters of a row as a [`Reply`](crate::Reply) holds them:
///
/// ```text
///   counter 0 … counter 4     i64, big endian
/// ```
pub fn counters_value(counters: [i64; COUNTERS]) -> [u8; 8 * COUNTERS] {
    let mut value = [0; 8 * COUNTERS];
    for (bytes, counter) in value.chunks_exact_mut(8).zip(counters) {
        bytes.copy_from_slice(&counter.to_be_bytes());
    }
    value
}

/// The counters that are in `value`; `None` if it does not hold five counters.
pub fn counters_of(value: &[u8]) -> Option<[i64; COUNTERS]> {
    if value.len() != 8 * COUNTERS {
        return None;
    }
    let mut counters = [0; COUNTERS];
    for (counter, bytes) in counters.iter_mut().zip(value.chunks_exact(8)) {
        *counter = i64::from_be_bytes(bytes.try_into().expect("chunks of eight bytes"));
    }
    Some(counters)
}
