//! Transfers between the accounts of a bank, made by threads or async tasks while the process is killed, the disk
//! fills up, or a sync fails. The test knows nothing of isolation: it checks what the customers of a bank would
//! check.
//!
//! 1. All accounts together always hold the same amount. A reader must see this even while transfers are under way.
//! 2. Each transfer writes a record with its number. An acknowledged transfer must have left its record, a failed
//!    one must not, and one of unknown outcome may have. Each record must have the number of a transfer.
//! 3. Each account holds what the records add up to.
//! 4. Once a full disk has room again, transfers go on without a reopen. If a transfer's sync failed, its outcome is
//!    unknown, and writes are refused until the database is opened again.
//!
//! The threads interleave in an unknown order; the seed decides only what each thread chooses.

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

/// What happened to the transfers.
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
    /// Transfers that took place but were not acknowledged before their process was killed.
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
    /// The disk fills up, and later has room again.
    FullDisk,
    /// A sync fails. Then the database is opened again, perhaps after a power cut.
    FailedSync,
}

impl Disturbance {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kill, Self::FullDisk, Self::FailedSync];
}

/// Makes a new bank and disturbs it `rounds` times. For [`Disturbance::Kill`], another process, which runs
/// `program`, makes the transfers (see [`serve`]).
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
