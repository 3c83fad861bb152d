//! The journal: the sequence of sheets in a store, and the one writer that may add to it. It does not know what the
//! files mean.
//!
//! ```text
//! writer 1    31  32  33  34                            35: there is one already, and it is not mine: I am fenced
//! writer 2                    35 takes over  36  37 …
//! ```
//!
//! Invariants:
//! - A sheet is put only if none exists with its number, and a writer puts sheet n + 1 only after it knows that sheet n
//!   is its own. So all sheets after one that takes over are of that writer, until the next one takes over.
//! - What is synced is in a sheet that is known to be there.
//! - Once a put has failed for good, or has met the sheet of another writer, nothing is put or removed any more: every
//!   later call reports the same error.
//! - Whoever takes over puts sheets ahead of the writer: the first that is there ends the time of that one, which can
//!   put nothing behind it. A guest, who makes a branch, puts sheets ahead of the writer, too; they change nothing but
//!   the list of branches, and the writer goes on after them.
//!
//! Sheets that are of no use are removed, which leaves gaps. Three rules keep that safe, and none of them asks how late
//! it is:
//! - A *fence* stays: the sheet as which a writer before would put its next one, unless it has said that it ended.
//! - Whoever is not the writer looks at the newest sheets again after it has put its own. If it has put them into a
//!   gap, they are not among those that the newest ones follow from: nobody sees what they say, and it begins again.
//! - The newest sheet, and the newest with a table, are never removed.
//!
//! A sheet that is of no use stays for [`KEPT`], or, where the writer ends before, until one has taken over a day
//! later: readers may be reading it. This also bounds how old an answer of a store may be.
//!
//! Thread safe. One put is under way at a time; what is written meanwhile goes with the next one, which is how commits
//! share a sheet. No lock is held while the store is asked, but for that of putting.
mod bringing;
mod files;
mod folding;
mod guests;
mod newest;
mod putting;
mod recent;
mod sheet;
mod sheet_name;
mod state;
mod table;
mod taking;

pub use bringing::LeftFile;
pub use newest::ASKS_AGAIN_AFTER;
pub use putting::KEPT;
#[cfg(fuzzing)]
pub use sheet::check_sheet;
pub use state::{CUTS, Cuts, Journal, Outside};
pub use table::{Branch, PARENTS, Table};

#[cfg(test)]
mod tests;
