//! The journal: the sequence of sheets in a store, and the one writer that may add to it. It does not know what the
//! files mean.
//!
//! ```text
//! writer 1    31  32  33  34                            35: there is one already, and it is not mine: I am fenced
//! writer 2                    35 takes over  36  37 …
//! ```
//!
//! Invariants:
//! - A sheet is put only if none exists with its number, and a writer puts sheet n + 1 only after it knows that
//!   sheet n is its own. So all sheets after a takeover are of the writer that took over, until the next one takes
//!   over.
//! - What is synced is in a sheet that is known to be there.
//! - Once a put has failed for good, or has met the sheet of another writer, nothing is put or removed any more: every
//!   later call reports the same error.
//! - Whoever takes over puts sheets ahead of the writer. The first of these that is there ends the time of the
//!   writer, which can put nothing behind it. A guest, who makes a branch, puts sheets ahead of the writer, too.
//!   They change nothing but the list of branches, and the writer goes on after them.
//!
//! Sheets that are of no use are removed, which leaves gaps. Three rules keep that safe, and none of them depends
//! on the time:
//! - A *fence* stays. It is the sheet as which an earlier writer would put its next one, unless that writer has
//!   said that it ended.
//! - Whoever is not the writer looks at the newest sheets again after it has put its own. If its own sheets are in
//!   a gap, the newest ones do not follow from them: then nobody sees what they say, and it begins again.
//! - The newest sheet and the newest sheet with a table are never removed.
//!
//! A sheet that is of no use stays for [`KEPT`], because readers may be reading it. If the writer ends before that,
//! the sheet stays until a writer has taken over a day later. This also bounds how old an answer of a store may be.
//!
//! Thread safe. One put is under way at a time. What is written meanwhile goes with the next put, so commits share
//! a sheet. No lock is held while the store is asked, except the lock of putting.
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
