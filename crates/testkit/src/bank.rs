//! Transfers between the accounts of a bank, made by threads or by async tasks. Meanwhile the process is killed,
//! the disk fills up, or a sync fails. The test knows nothing of isolation: it checks what the customers of a bank
//! would check.
//!
//! 1. All accounts together always hold the same amount. A reader must see this even while transfers are under way.
//! 2. Each transfer writes a record with its number. The record of an acknowledged transfer must exist. A failed
//!    transfer must have left no record. A transfer of unknown outcome may have left one. Each record must have
//!    the number of a transfer.
//! 3. Each account holds the amount that follows from the records.
//! 4. Once a full disk has room again, transfers go on. The database need not be opened again. If the sync of a
//!    transfer failed, the outcome of the transfer is unknown, and writes are refused until the database is opened
//!    again.
//!
//! The threads interleave in an unknown order, so a seed decides only what each thread chooses.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "threads, processes and executors of the real machine are what is tested"
)]

mod clients;
mod kill;
mod ledger;
mod trouble;

pub use clients::Clients;
pub use kill::serve;

use std::ops::AddAssign;
use std::path::Path;

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rounds that passed.
    pub rounds: u64,
    /// Transfers that were acknowledged.
    pub acknowledged: u64,
    /// Transfers that failed and left no trace.
    pub failed: u64,
    /// Transfers of unknown outcome.
    pub unknown: u64,
    /// Transfers that took place, but whose process was killed before it acknowledged them.
    pub unheard: u64,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        let Self { rounds, acknowledged, failed, unknown, unheard } = other;
        self.rounds += rounds;
        self.acknowledged += acknowledged;
        self.failed += failed;
        self.unknown += unknown;
        self.unheard += unheard;
    }
}

/// A way to disturb the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// The process is killed while it makes transfers, or while it opens the database.
    Kill,
    /// The disk fills up, and has room again.
    FullDisk,
    /// A sync fails. Then the database is opened again, perhaps after a power cut.
    FailedSync,
}

impl Disturbance {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kill, Self::FullDisk, Self::FailedSync];
}

/// Makes a new bank and disturbs it `rounds` times. If the process is to be killed, the transfers are made in
/// another process, which runs `program` (see [`serve`]).
///
/// # Panics
///
/// If a promise is broken.
pub fn disturb(disturbance: Disturbance, clients: Clients, rounds: u64, seed: u64, program: &Path) -> Summary {
    println!("bank: {disturbance:?}, {clients:?}, {rounds} rounds, seed {seed}");
    match disturbance {
        Disturbance::Kill => kill::kill(clients, rounds, seed, program),
        Disturbance::FullDisk => trouble::fill_the_disk(clients, rounds, seed),
        Disturbance::FailedSync => trouble::fail_syncs(clients, rounds, seed),
    }
}
