//! Answers for [`cloud`](crate::cloud) in a binary that was built without stores.

use crate::failure::{CommandFailure, Result};
use crate::stored::{BranchFound, Branched, Stored};
use larch::machine::Machine;

fn not_built() -> CommandFailure {
    CommandFailure::not_built("a database in a store", "cloud")
}

pub fn machine(_: &str, _: Stored) -> Result<Machine> {
    Err(not_built())
}

pub fn branch(_: &str, _: &str) -> Result<Branched> {
    Err(not_built())
}

pub fn branches(_: &str) -> Result<Vec<BranchFound>> {
    Err(not_built())
}

pub fn drop_database(_: &str) -> Result<(u64, u64)> {
    Err(not_built())
}
