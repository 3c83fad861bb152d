//! Transfers between accounts, by threads or by async tasks, while the process is killed, the disk fills up, or a
//! sync fails. The test knows nothing of isolation: it checks what a user of a bank would check.
//!
//! 1. All accounts together always hold the same amount, also for a reader while transfers are under way.
//! 2. Each transfer writes a record with its number. An acknowledged transfer has its record. A failed transfer has
//!    none. A transfer of unknown outcome may have one. No record has an unknown number.
//! 3. Each account holds what the records say.
//! 4. After the disk was full, transfers go on although the database is not opened again. If the sync of a transfer
//!    failed, its outcome is unknown, and writes are refused until the database is opened again.
//!
//! The interleaving of threads is not known, so a seed decides only what each thread chooses.

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
    /// Transfers that failed, and left nothing.
    pub failed: u64,
    /// Transfers of unknown outcome.
    pub unknown: u64,
    /// Transfers that were found, but whose process was killed before it acknowledged them.
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
    /// The process is killed while it serves, or while it opens the database.
    Kill,
    /// The disk fills up, and has room again.
    FullDisk,
    /// A sync fails. The database is opened again, perhaps after a power cut.
    FailedSync,
}

impl Disturbance {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kill, Self::FullDisk, Self::FailedSync];
}

/// Disturbs a new bank `rounds` times. `program` serves the bank in a process of its own, see [`serve`].
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
