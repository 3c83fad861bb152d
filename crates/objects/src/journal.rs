//! The journal: the sequence of sheets in a store, and the one writer that may add to it. This module does not know
//! the meaning of the files.
//!
//! ```text
//! writer 1    31  32  33  34                            35: there is one already, and it is not mine: I am fenced
//! writer 2                    35 takes over  36  37 …
//! ```
//!
//! Invariants:
//! - A sheet is put only if no sheet with its number exists. A writer puts sheet n + 1 only after it knows that
//!   sheet n is its own. So all sheets after a takeover belong to the writer that took over, until the next writer
//!   takes over.
//! - Bytes that were synced are in a sheet that is known to exist.
//! - If a put has failed for good, or has met the sheet of another writer, this process puts and removes nothing
//!   any more: every later call reports the same error.
//! - A process that takes over puts sheets with numbers ahead of the writer. The first of these sheets that exists
//!   ends the time of the writer, because the writer can put no sheet after it. A guest is a process that makes a
//!   branch. It also puts sheets ahead of the writer. But its sheets only change the list of branches, and the
//!   writer goes on after them.
//!
//! Sheets that are not needed any more are removed, which leaves gaps. Three rules make this safe, and none of them
//! depends on the time:
//! - A *fence* is a sheet with the number that an earlier writer would use for its next sheet. Fences stay, unless
//!   that earlier writer has said that it ended.
//! - A process that is not the writer looks at the newest sheets again after it has put its own sheets. If its own
//!   sheets are in a gap, the newest sheets do not follow from them. Then nobody reads its sheets, and it begins
//!   again.
//! - The newest sheet and the newest sheet with a table are never removed.
//!
//! A sheet that is not needed stays for [`KEPT`], because readers may be reading it. If the writer ends before
//! that, the sheet stays longer: until some writer has taken over a day later. This also limits how old an answer
//! of a store may be.
//!
//! Thread safe. Only one put is under way at a time. Bytes that are written meanwhile are in the next put, so
//! commits share a sheet. No lock is held while the store is asked, except the lock of putting.
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
