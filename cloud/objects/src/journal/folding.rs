//! Folds small pieces of files: from time to time, a sheet repeats the small pieces of the sheets before it as one
//! piece, so that a reader of many commits has to read only a few sheets (decision 91). Folding reads nothing from
//! the store, because the writer still has the bytes of its latest sheets.
//!
//! ```text
//! sheets    1   2   3  …  63   64                      65  66  …  127   128
//! a file    a | b | c  …  h  | abc…h again, and i      j | k   …   q  | abc…q again, and r
//!           a reader reads sheet 64 only                    a reader reads sheet 128 only
//! ```
//!
//! Folded bytes are folded again only together with at least half as many newer bytes, and no folded piece is
//! longer than [`FOLDED_BYTES`]. So each byte is put again only a few times: at most five times for commits of a
//! hundred bytes. Folding costs no additional request.

use super::state::{Pending, State};
use super::table::Extent;

/// The longest folded piece.
pub const FOLDED_BYTES: u64 = 128 << 10;

/// A piece longer than this that was never folded stays as it is: it is worth a request of its own.
pub const SMALL_BYTES: u64 = 16 << 10;

/// Returns the index of the first of a file's last pieces that are folded together; `None` if folding is not worth
/// it. Extents in sheets after sheet `table` were never folded.
fn first_to_fold(extents: &[Extent], table: u64, is_kept: impl Fn(&Extent) -> bool) -> Option<usize> {
    let (mut first, mut sum) = (extents.len(), 0);
    for (place, extent) in extents.iter().enumerate().rev() {
        let bytes = u64::from(extent.bytes);
        let most = if extent.sheet > table { SMALL_BYTES } else { 2 * sum };
        if bytes > most || sum + bytes > FOLDED_BYTES || !is_kept(extent) {
            break;
        }
        (first, sum) = (place, sum + bytes);
    }
    // A single piece needs no folding.
    (first + 1 < extents.len()).then_some(first)
}

impl State {
    /// Adds the small pieces of files in the last sheets to the next sheet.
    pub(super) fn fold(&mut self) {
        let mut folded = Vec::new();
        for (file, extents) in &self.table.files {
            let end = self.table.len(*file);
            if self.pending.get(file).is_some_and(|pending| pending.from != end) {
                // The next sheet cuts this file, so its last pieces change.
                continue;
            }
            let is_kept = |extent: &Extent| self.recent.bytes_of(extent).is_some();
            if let Some(first) = first_to_fold(extents, self.last_table, is_kept) {
                let bytes: Vec<&[u8]> =
                    extents[first..].iter().filter_map(|extent| self.recent.bytes_of(extent)).collect();
                folded.push((*file, extents[first].from, end, bytes.concat()));
            }
        }
        for (file, from, end, bytes) in folded {
            let pending = self.pending.entry(file).or_insert_with(|| Pending { from: end, bytes: Vec::new() });
            pending.bytes.splice(0..0, bytes);
            pending.from = from;
        }
    }
}
