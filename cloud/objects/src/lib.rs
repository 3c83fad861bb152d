//! A disk whose files are objects of a store, so that the engine runs on object storage as it runs on a disk. All
//! that this crate knows about databases is that files whose names end with `.sst` are written once.
//!
//! ```text
//! sst/00000024-9.sst      a file that is written once: an object
//! journal/0000000000000031   a sheet: what was written to files that grow (logs, the manifest), and their names
//! workers/00000052-9.job     what a writer and compaction workers tell each other: objects that are put whole
//! ```
//!
//! Everything that changes is in one sequence of numbered objects, the journal, whose objects are called sheets. A
//! writer puts its next sheet only if no sheet has that number yet. So if two writers put sheets with the same
//! number, only one succeeds, and the other finds the winner's sheet before it can promise that any of its bytes
//! are durable. `docs/format/store.md` describes the bytes, and decision 74 gives the reasons.

mod again;
mod branches;
mod branching;
mod disk;
mod grown_file;
mod journal;
mod local_logs;
mod object_file;
mod parents;
mod put;
mod removals;
mod tier;
mod wholes;

#[cfg(fuzzing)]
pub use journal::check_sheet;

pub use branches::MADE_WITHIN;
pub use branching::{BranchInfo, BranchReport, DropReport, SstsOf, branch, branches, drop_database};
pub use disk::{Local, StoreDisk};
pub use journal::{ASKS_AGAIN_AFTER, KEPT, Outside};
pub use removals::REMOVED_AFTER;
pub use tier::{TIER_BLOCK_BYTES, TierCounts, TierOptions, TieredStore};
