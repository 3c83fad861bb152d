//! The stores that the benchmarks run on: Larch, PostgreSQL, Redis, and each other engine whose feature is on.
//!
//! Each module makes one engine a store of the harness, and of those workloads that run on it. The modules do not know
//! each other.

#[cfg(feature = "bf-tree")]
pub mod bf_tree;
#[cfg(feature = "cassandra")]
pub mod cassandra;
#[cfg(feature = "fjall")]
pub mod fjall;
pub mod larch;
#[cfg(feature = "lmdb")]
pub mod lmdb;
pub mod postgres;
#[cfg(feature = "redb")]
pub mod redb;
pub mod redis;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "surrealkv")]
pub mod surrealkv;

use harness::Scheme;
use kv::KvScheme;
use row_access::RowAccessScheme;
use tpcc::TpccScheme;

/// The stores of keys and values.
pub const KEY_VALUE: &[Scheme] = &[
    larch::SCHEME,
    postgres::SCHEME,
    postgres::COCKROACH,
    postgres::YUGABYTE,
    redis::SCHEME,
    harness::noop::SCHEME,
    #[cfg(feature = "rocksdb")]
    rocksdb::SCHEME,
    #[cfg(feature = "fjall")]
    fjall::SCHEME,
    #[cfg(feature = "redb")]
    redb::SCHEME,
    #[cfg(feature = "lmdb")]
    lmdb::SCHEME,
    #[cfg(feature = "sqlite")]
    sqlite::SCHEME,
    #[cfg(feature = "surrealkv")]
    surrealkv::SCHEME,
    #[cfg(feature = "bf-tree")]
    bf_tree::SCHEME,
    #[cfg(feature = "cassandra")]
    cassandra::SCHEME,
];

/// The databases with row access.
pub const ROW_ACCESS: &[RowAccessScheme] = &[
    larch::ROW_ACCESS,
    postgres::ROW_ACCESS,
    postgres::ROW_ACCESS_COCKROACH,
    postgres::ROW_ACCESS_YUGABYTE,
    #[cfg(feature = "sqlite")]
    sqlite::ROW_ACCESS,
];

/// The databases of rows in partitions.
pub const PARTITIONS: &[KvScheme] = &[
    larch::PARTITIONS,
    postgres::PARTITIONS,
    postgres::PARTITIONS_COCKROACH,
    postgres::PARTITIONS_YUGABYTE,
    redis::PARTITIONS,
    kv::noop::SCHEME,
    #[cfg(feature = "cassandra")]
    cassandra::PARTITIONS,
];

/// The databases for TPC-C.
pub const TPCC: &[TpccScheme] = &[
    larch::TPCC,
    postgres::TPCC,
    postgres::TPCC_COCKROACH,
    postgres::TPCC_YUGABYTE,
    tpcc::noop::SCHEME,
    #[cfg(feature = "rocksdb")]
    rocksdb::TPCC,
    #[cfg(feature = "sqlite")]
    sqlite::TPCC,
];
