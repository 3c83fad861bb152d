//! How much memory a cache may take: a number, or what is free. This module does not know how free memory is measured.

use super::event::Bytes;
use pages::Elastic;
use std::fmt;

/// The least size of an elastic budget, if the program does not choose another, and the default of a fixed one.
pub const DEFAULT_BYTES: u64 = 64 << 20;

/// How many bytes the pages of a cache may take.
///
/// A number is exact: `cache_bytes(64 << 20)` means 64 MiB, whatever else happens on the machine.
///
/// [`Budget::free`] is *elastic*: the budget grows while the machine has free memory, and falls when other programs
/// need it. So a program that runs alone uses the memory of the machine, as a program does whose files the operating
/// system caches.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// use larch::Budget;
///
/// let db = larch::Database::builder(&directory).cache_bytes(Budget::free()).open()?;
/// assert!(db.cache().budget_bytes() >= 64 << 20);
///
/// // Between 16 MiB and 8 GiB.
/// let bounded = Budget::free().at_least(16 << 20).at_most(8 << 30);
/// db.set_cache_bytes(bounded);
/// # Ok(())
/// # }
/// ```
///
/// # What an elastic budget leaves to others
///
/// Of the machine's memory, and of the memory of each control group with a limit that the process is in, a headroom
/// always stays free: a twentieth, at least 256 MiB, but at most a quarter. A sixteenth of the cache is left to other
/// elastic caches, also in other processes; all of them get about the same size. Forty times a second, a thread reads
/// what is available (`MemAvailable`, and the limit of the group without what it uses), which costs up to 0.5 % of a
/// processor. Files that the operating system keeps in memory count as available. But if threads wait because files
/// that are in use no longer fit into memory, the cache shrinks (`/proc/pressure/memory`).
///
/// Values that the program holds, and open ranges, keep pages in memory only up to a part of the least size, as if
/// that were the budget.
///
/// Only Linux says what is free. On other systems, the budget is the least size: 64 MiB, or what
/// [`Budget::at_least`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(BudgetKind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BudgetKind {
    Fixed(u64),
    Elastic(Elastic),
}

impl Budget {
    /// Exactly `bytes`.
    pub const fn fixed(bytes: u64) -> Self {
        Self(BudgetKind::Fixed(bytes))
    }

    /// The memory that other programs leave free, and at least 64 MiB.
    pub const fn free() -> Self {
        Self(BudgetKind::Elastic(Elastic { least_bytes: DEFAULT_BYTES, most_bytes: u64::MAX }))
    }

    /// The same, but never less than `bytes`, even if that memory is wanted.
    pub fn at_least(self, bytes: u64) -> Self {
        Self(match self.0 {
            BudgetKind::Fixed(fixed) => BudgetKind::Fixed(fixed.max(bytes)),
            BudgetKind::Elastic(Elastic { most_bytes, .. }) => {
                BudgetKind::Elastic(Elastic { least_bytes: bytes, most_bytes: most_bytes.max(bytes) })
            }
        })
    }

    /// The same, but never more than `bytes`, even if more memory is free.
    pub fn at_most(self, bytes: u64) -> Self {
        Self(match self.0 {
            BudgetKind::Fixed(fixed) => BudgetKind::Fixed(fixed.min(bytes)),
            BudgetKind::Elastic(Elastic { least_bytes, .. }) => {
                BudgetKind::Elastic(Elastic { least_bytes: least_bytes.min(bytes), most_bytes: bytes })
            }
        })
    }

    /// The bytes that the cache may take in any case: the number, or the least size.
    pub const fn least_bytes(self) -> u64 {
        match self.0 {
            BudgetKind::Fixed(bytes) => bytes,
            BudgetKind::Elastic(elastic) => elastic.least_bytes,
        }
    }

    /// The bounds, if the budget is elastic.
    pub(crate) fn elastic(self) -> Option<Elastic> {
        match self.0 {
            BudgetKind::Fixed(_) => None,
            BudgetKind::Elastic(elastic) => Some(elastic),
        }
    }
}

impl From<u64> for Budget {
    fn from(bytes: u64) -> Self {
        Self::fixed(bytes)
    }
}

/// Prints the bytes, or the bounds, as in `64.0 MiB or more while memory is free`.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            BudgetKind::Fixed(bytes) => Bytes(bytes).fmt(f),
            BudgetKind::Elastic(Elastic { least_bytes, most_bytes: u64::MAX }) => {
                write!(f, "{} or more while memory is free", Bytes(least_bytes))
            }
            BudgetKind::Elastic(Elastic { least_bytes, most_bytes }) => {
                write!(f, "{} to {} while memory is free", Bytes(least_bytes), Bytes(most_bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests;
