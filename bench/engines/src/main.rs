//! The command `larch` together with the other engines that it was built with. It is used to measure them.

use harness::Scheme;
use std::process::ExitCode;

/// One for each feature.
const ENGINES: &[Scheme] = &[
    #[cfg(feature = "rocksdb")]
    store_rocksdb::SCHEME,
    #[cfg(feature = "fjall")]
    store_fjall::SCHEME,
    #[cfg(feature = "redb")]
    store_redb::SCHEME,
    #[cfg(feature = "lmdb")]
    store_lmdb::SCHEME,
    #[cfg(feature = "sqlite")]
    store_sqlite::SCHEME,
    #[cfg(feature = "cassandra")]
    store_cassandra::SCHEME,
];

/// The engines whose rows can be accessed.
const ROW_ACCESS: &[row_access::RowAccessScheme] = &[
    #[cfg(feature = "sqlite")]
    store_sqlite::ROW_ACCESS,
];

/// The engines that have rows in partitions.
const PARTITIONS: &[kv::KvScheme] = &[
    #[cfg(feature = "cassandra")]
    store_cassandra::PARTITIONS,
];

/// The engines on which TPC-C runs.
const TPCC: &[tpcc::TpccScheme] = &[
    #[cfg(feature = "rocksdb")]
    store_rocksdb::TPCC,
    #[cfg(feature = "sqlite")]
    store_sqlite::TPCC,
];

/// The comparison of two clients for Cassandra.
#[cfg(feature = "cassandra")]
const KV_CLIENT_COST: Option<larch_cli::KvClientCost> = Some(store_cassandra::comparison::compare);
#[cfg(not(feature = "cassandra"))]
const KV_CLIENT_COST: Option<larch_cli::KvClientCost> = None;

fn main() -> ExitCode {
    let schemes: Vec<Scheme> = larch_cli::SCHEMES.into_iter().chain(ENGINES.iter().copied()).collect();
    let row_access: Vec<row_access::RowAccessScheme> =
        larch_cli::ROW_ACCESS.into_iter().chain(ROW_ACCESS.iter().copied()).collect();
    let partitions: Vec<kv::KvScheme> = larch_cli::PARTITIONS.into_iter().chain(PARTITIONS.iter().copied()).collect();
    let tpcc: Vec<tpcc::TpccScheme> = larch_cli::TPCC.into_iter().chain(TPCC.iter().copied()).collect();
    let stores = larch_cli::Stores {
        key_value: &schemes,
        row_access: &row_access,
        partitions: &partitions,
        tpcc: &tpcc,
        kv_client_cost: KV_CLIENT_COST,
    };
    larch_cli::main(stores)
}
