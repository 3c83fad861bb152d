//! The journal of a database in a store: a sequence of sheets, which are numbered objects that say what was written
//! to files that can grow, and how files are named. One process at a time is the writer, which may put sheets. This
//! module does not know what the files mean.
//!
//! ```text
//! writer 1    31  32  33  34                            35: there is one already, and it is not mine: I am fenced
//! writer 2                    35 takes over  36  37 …
//! ```
//!
//! Invariants:
//! - A sheet is put only if no sheet with its number exists. A writer puts sheet n + 1 only after it knows that sheet n
//!   is its own. So all sheets from one takeover to the next are by one writer.
//! - When a sync has succeeded, the synced bytes are in a sheet that certainly exists.
//! - After a put has failed for good, or has met the sheet of another writer, this process never puts or removes
//!   anything again. Every later call returns the same error.
//! - A process that takes over puts sheets with numbers ahead of the writer. The first of them stops the writer, which
//!   can put no sheet with this number or a later one. A *guest*, a process that makes a branch, also puts sheets ahead
//!   of the writer. But these only change the list of branches, and the writer goes on after them.
//!
//! Sheets that are no longer needed are removed, which leaves gaps. Three rules make this safe without any assumption
//! about time:
//! - A *fence* is a sheet under the number that an earlier writer would use next, so that this writer meets it. A fence
//!   is removed only if that writer has said that it puts no more sheets, or if a thousand later fences exist.
//! - A process that has put sheets without being the writer then looks at the newest sheets again. If its own are in a
//!   gap, later sheets exist that do not build on them, and nobody reads its sheets. So it starts again.
//! - The newest sheet and the newest sheet with a table are never removed.
//!
//! A sheet that is no longer needed stays for [`KEPT`], because readers may be reading it. If the writer ends
//! before that, the sheet stays until some writer takes over a day later. For the same reason, an answer of the
//! store must not be older than a part of this time.
//!
//! Thread safe. One put is under way at a time. All bytes that are written during a put go to the next sheet, so
//! many commits share a sheet. While a request to the store is under way, only the lock `putting` is held.
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
