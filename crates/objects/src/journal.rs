//! The journal of a database in a store. It consists of sheets: numbered objects that say what was written to
//! files that can grow, and how files are named. One process at a time is the writer, which may put sheets. This
//! module does not know the meaning of the files.
//!
//! ```text
//! writer 1    31  32  33  34                            35: there is one already, and it is not mine: I am fenced
//! writer 2                    35 takes over  36  37 …
//! ```
//!
//! Invariants:
//! - A sheet is put only if no sheet with its number exists. A writer puts sheet n + 1 only after it knows that
//!   sheet n is its own. So all sheets from one takeover to the next belong to one writer.
//! - When a sync has succeeded, the synced bytes are in a sheet that certainly exists.
//! - If a put has failed and is not repeated any more, or if it has met the sheet of another writer, this process
//!   never puts or removes anything again. Every later call returns the same error.
//! - A process that takes over puts sheets with numbers ahead of the writer. The first of these sheets that exists
//!   stops the writer, because the writer can put no sheet with this number or a later one. A *guest* is a process
//!   that makes a branch. It also puts sheets ahead of the writer. But a sheet of a guest only changes the list of
//!   branches, and the writer goes on after it.
//!
//! Sheets that are not needed any more are removed, which leaves gaps. Three rules make this safe, and none of them
//! depends on the time:
//! - A *fence* is a sheet whose number an earlier writer would use for its next sheet, so this writer meets the
//!   fence. A fence is removed only if that writer has said that it puts no more sheets, or if a thousand later
//!   fences exist.
//! - If a process that is not the writer has put sheets, it then looks at the newest sheets again. If its sheets
//!   are in a gap, later sheets exist which do not build on them, and nobody reads its sheets. So it begins again.
//! - The newest sheet and the newest sheet with a table are never removed.
//!
//! A sheet that is no longer needed stays for [`KEPT`], because readers may be reading it. If the writer ends
//! before this time has passed, the sheet stays until some writer takes over a day later. For the same reason, an
//! answer of the store must not be older than a part of this time.
//!
//! Thread safe. Only one put is under way at a time. All bytes that are written during a put are in the next
//! sheet, so many commits share a sheet. While a request to the store is under way, only one lock is held:
//! `putting`.
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
