//! `larch bench`: what it can measure, and the stores and engines that this binary was built with.

#[cfg(test)]
mod tests;

use clap::{Args, Subcommand};
use std::process::ExitCode;
use suite::{KvClientCost, Stores};

#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    pub what: BenchCommand,
}

/// What `bench` can measure: stores of any engine, and parts of Larch.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    #[command(flatten)]
    Stores(suite::Measurement),
    #[command(flatten)]
    Peers(experiments::PeersCommand),
    /// Show how much each policy of the page cache reads, on traces of YCSB
    CacheTrace(experiments::cache::CacheTrace),
    /// Repeat experiments that others made on their engines
    #[command(subcommand)]
    Experiment(experiments::Command),
}

/// The comparison of two clients for Cassandra.
#[cfg(feature = "engines-cassandra")]
const KV_CLIENT_COST: Option<KvClientCost> = Some(stores::cassandra::comparison::compare);
#[cfg(not(feature = "engines-cassandra"))]
const KV_CLIENT_COST: Option<KvClientCost> = None;

/// The stores that this binary was built with.
pub const STORES: Stores<'static> = Stores {
    key_value: stores::KEY_VALUE,
    row_access: stores::ROW_ACCESS,
    partitions: stores::PARTITIONS,
    tpcc: stores::TPCC,
    kv_client_cost: KV_CLIENT_COST,
};

/// Runs the command on these stores.
pub fn run(args: Bench, stores: Stores<'_>) -> ExitCode {
    match args.what {
        BenchCommand::Stores(what) => suite::run(&what, stores),
        BenchCommand::Peers(what) => experiments::compare(&what, stores.key_value),
        BenchCommand::CacheTrace(options) => experiments::cache::run(&options),
        BenchCommand::Experiment(what) => experiments::run(&what, stores.tpcc),
    }
}
