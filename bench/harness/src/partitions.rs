//! Requests for rows that lie in partitions, like the rows of Cassandra. A row has a partition key and a clustering
//! key, which are whole numbers. A partition may have more rows than fit in memory.
//!
//! There are two kinds of tables. A row of the first kind holds one value of bytes. A row of the second kind holds
//! five counters.

use crate::strings::Strings;

/// The number of counters in a row.
pub const COUNTERS: usize = 5;

/// A request for rows in partitions. The client owns the bytes of the request, and they stay valid until the
/// request is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionRequest<'a> {
    /// Writes rows of a partition, and replaces existing ones. All rows go to the store in one request. A store that
    /// has atomic batches writes all of them or none.
    Insert {
        /// The partition.
        pk: i64,
        /// Clustering keys of the rows, at least one. No key occurs twice.
        cks: &'a [i64],
        /// The values of the rows, in the order of `cks`.
        values: &'a Strings,
    },
    /// Reads rows of a partition, or their counters.
    Read {
        /// The partition.
        pk: i64,
        /// Which rows of the partition.
        rows: PartitionRows<'a>,
        /// The order of the rows by clustering key; `None`: any order.
        order: Option<Order>,
    },
    /// Reads all rows of all partitions in one part of the table. Each row lies in exactly one part, and a partition
    /// is never divided.
    Scan {
        /// Which part, from 0.
        part: u32,
        /// The number of parts; at least 1.
        parts: u32,
    },
    /// Adds to the counters of a row. If the row does not exist, its counters begin at 0.
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
    /// The first `limit` rows, in the request's order, whose clustering key is at least `ck`.
    From {
        /// The lower bound.
        ck: i64,
        /// The greatest number of rows.
        limit: u64,
    },
    /// The first `limit` rows in the request's order.
    First {
        /// The greatest number of rows.
        limit: u64,
    },
    /// The rows whose clustering key is at least `from` and less than `to`.
    Between {
        /// The lower bound.
        from: i64,
        /// The upper bound, which is excluded.
        to: i64,
    },
    /// The rows with these clustering keys. A key may occur several times in this list, but its row is returned
    /// once.
    Of(&'a [i64]),
}

/// An order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Clustering keys rise.
    Ascending,
    /// Clustering keys fall.
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

/// The counters in `value`; `None` if `value` does not hold five counters.
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
