//! `larch bench`: what it can measure, and the stores and engines that this binary was built with.

use clap::{Args, Subcommand};
use harness::Scheme;
use kv::KvScheme;
use row_access::RowAccessScheme;
use std::process::ExitCode;
use suite::{KvClientCost, Stores};
use tpcc::TpccScheme;

#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    pub what: Measured,
}

/// What `bench` can measure: stores of any engine, and parts of Larch.
#[derive(Debug, Subcommand)]
pub enum Measured {
    #[command(flatten)]
    Stores(suite::Measurement),
    /// Show how much each policy of the page cache reads, on traces of YCSB
    CacheTrace(cache_trace::CacheTrace),
    /// Repeat experiments that others made on their engines
    #[command(subcommand)]
    Experiment(experiments::Command),
}

/// Stores of keys and values.
const KEY_VALUE: &[Scheme] = &[
    store_larch::SCHEME,
    store_postgres::SCHEME,
    harness::noop::SCHEME,
    #[cfg(feature = "engines-rocksdb")]
    store_rocksdb::SCHEME,
    #[cfg(feature = "engines-fjall")]
    store_fjall::SCHEME,
    #[cfg(feature = "engines-redb")]
    store_redb::SCHEME,
    #[cfg(feature = "engines-lmdb")]
    store_lmdb::SCHEME,
    #[cfg(feature = "engines-sqlite")]
    store_sqlite::SCHEME,
    #[cfg(feature = "engines-cassandra")]
    store_cassandra::SCHEME,
];

/// Databases with row access.
const ROW_ACCESS: &[RowAccessScheme] = &[
    store_larch::ROW_ACCESS,
    store_postgres::ROW_ACCESS,
    #[cfg(feature = "engines-sqlite")]
    store_sqlite::ROW_ACCESS,
];

/// Databases of rows in partitions.
const PARTITIONS: &[KvScheme] = &[
    store_larch::PARTITIONS,
    store_postgres::PARTITIONS,
    kv::noop::SCHEME,
    #[cfg(feature = "engines-cassandra")]
    store_cassandra::PARTITIONS,
];

/// Databases for TPC-C.
const TPCC: &[TpccScheme] = &[
    store_larch::TPCC,
    store_postgres::TPCC,
    store_postgres::TPCC_COCKROACH,
    store_postgres::TPCC_YUGABYTE,
    tpcc::noop::SCHEME,
    #[cfg(feature = "engines-rocksdb")]
    store_rocksdb::TPCC,
    #[cfg(feature = "engines-sqlite")]
    store_sqlite::TPCC,
];

/// The comparison of two clients for Cassandra.
#[cfg(feature = "engines-cassandra")]
const KV_CLIENT_COST: Option<KvClientCost> = Some(store_cassandra::comparison::compare);
#[cfg(not(feature = "engines-cassandra"))]
const KV_CLIENT_COST: Option<KvClientCost> = None;

/// The stores that this binary was built with.
pub const STORES: Stores<'static> = Stores {
    key_value: KEY_VALUE,
    row_access: ROW_ACCESS,
    partitions: PARTITIONS,
    tpcc: TPCC,
    kv_client_cost: KV_CLIENT_COST,
};

/// Runs the command on these stores.
pub fn run(args: Bench, stores: Stores<'_>) -> ExitCode {
    match args.what {
        Measured::Stores(what) => suite::run(&what, stores),
        Measured::CacheTrace(options) => cache_trace::run(&options),
        Measured::Experiment(what) => experiments::run(&what, stores.tpcc),
    }
}
