//! Asks for values that lie outside their pages before a walk reaches their rows. This module knows where the walk
//! is, and those data pages of one tree that are in memory. It waits for nothing. Data pages are asked for by
//! [readahead](super::readahead), which looks further ahead.
//!
//! ```text
//!   passed       asked for, not yet passed        not looked at yet
//!   ──────●═════════════════════════════════●──────────────────────────▶  rows
//!         └─────────── window ──────────────┘
//! ```
//!
//! * The window is measured in the memory that the value pages take. Values of neighbouring rows are neighbours in the
//!   file, so the disk reads a window in a few large reads.
//! * A walk says which values it will load. A walk over keys alone loads no values, so none is asked for.
//! * When a value is missing, or when less than half a window is left, more values are asked for. This ends when
//!   the window is full, or at the first data page that is not in memory.
//! * The window grows like the window of readahead. It is halved when a value that was asked for was evicted
//!   before the walk came to its row. If the walk does not read everything, the window is also halved when the
//!   walk has passed most of the values without loading them.

use super::descent::Descent;
use super::readahead::{FIRST_BYTES, Readahead, next_position};
use super::scan_end::ScanEnd;
use crate::Direction;
use crate::format::meta::TreeKind;
use crate::format::{PageRows, Seen};
use crate::slice::RowRanges;
use pages::{PageKind, PageRef, PageSource};
use std::collections::VecDeque;
use std::ops::Range;

/// The window is halved if the values that were passed without being loaded take this many times the memory of the
/// values that were loaded.
const MOST_UNUSED: u64 = 4;

/// How far a walk has come, and up to which position it has asked for values. Positions count rows from the end of
/// the tree at which the walk begins, so both directions are treated alike.
#[derive(Debug)]
pub(super) struct ValuesAhead {
    readahead: Readahead,
    direction: Direction,
    window_bytes: u64,
    /// `None` until a value was visited, and after a change of direction.
    place: Option<ValuesWindow>,
}

#[derive(Debug)]
struct ValuesWindow {
    /// The row that was visited last.
    here: u64,
    /// All rows before this one were looked at.
    until: u64,
    /// The values of all rows before this one were asked for before the last round of reads, so they should be in
    /// memory.
    came: u64,
    /// The values that were asked for and that the walk has not passed yet. Each entry has the position of the
    /// row, and the memory that its value takes.
    asked: VecDeque<(u64, u64)>,
    /// The memory that these values take.
    asked_bytes: u64,
}

impl ValuesWindow {
    fn at(position: u64) -> Self {
        Self { here: position, until: position, came: position, asked: VecDeque::new(), asked_bytes: 0 }
    }

    /// Moves the walk past `position`. Returns the memory of the values before `position` that were asked for but
    /// not loaded.
    fn advance_to(&mut self, position: u64) -> u64 {
        let mut unused = 0;
        while let Some(&(asked, bytes)) = self.asked.front()
            && asked <= position
        {
            unused += if asked < position { bytes } else { 0 };
            self.asked_bytes -= bytes;
            self.asked.pop_front();
        }
        self.here = position;
        self.until = self.until.max(position + 1);
        unused
    }
}

/// The rows of a tree whose values a walk loads.
pub(super) struct LoadedRows<'a> {
    pub rows: &'a RowRanges,
    pub seen: Seen,
    /// Where the walk ends, if this is known. The end is expressed in rows of the tree `kind`.
    pub edge: Option<&'a ScanEnd>,
    pub kind: TreeKind,
}

impl ValuesAhead {
    pub const NONE: Self =
        Self { readahead: Readahead::NONE, direction: Direction::Forward, window_bytes: 0, place: None };

    pub fn set(&mut self, readahead: Readahead) {
        self.readahead = readahead;
        self.restart();
    }

    pub fn is_none(&self) -> bool {
        self.readahead.is_none()
    }

    /// Notes that the walk has come from the file of `before` to this file.
    pub fn follow(&mut self, before: &Self) {
        self.window_bytes = self.window_bytes.max(before.window_bytes.min(self.readahead.high_bytes()));
    }

    fn restart(&mut self) {
        self.place = None;
        self.window_bytes = self.readahead.start_bytes();
    }

    /// Notes that the walk, which goes in `direction`, will load the value of row `i` of `page`. This value lies
    /// outside the page. Asks for the values of the rows after it.
    pub fn visit<S: PageSource + ?Sized, L: PageRows>(
        &mut self,
        source: &S,
        descent: &Descent<'_>,
        (page, layout, i): (&PageRef, &L, usize),
        direction: Direction,
        loaded: &LoadedRows<'_>,
    ) {
        let row = layout.first_row() + i as u64;
        let position = if direction.is_forward() { row } else { descent.rows().saturating_sub(row + 1) };
        let goes_on = |place: &ValuesWindow| self.direction == direction && position >= place.here;
        if !self.place.as_ref().is_some_and(goes_on) {
            self.direction = direction;
            self.restart();
        }
        let Some(value) = layout.outside(page, i, Seen::All) else { return };
        let place = self.place.get_or_insert_with(|| ValuesWindow::at(position));
        let (mut bytes, mut is_missing, mut is_gone) = (0, false, false);
        for chunk in value.chunks() {
            bytes += chunk.memory_bytes();
            if source.glance(descent.file().at(&chunk, PageKind::Value)).is_none() {
                is_missing = true;
                // The source answers true if it takes the request: then the page was neither in memory nor on its
                // way.
                is_gone |= source.ahead(descent.file().at(&chunk, PageKind::Value));
            }
        }
        let unused = place.advance_to(position);
        let mut grows = is_missing;
        if is_gone && position < place.came {
            grows = false;
            self.window_bytes = (self.window_bytes / 2).max(FIRST_BYTES.min(self.readahead.high_bytes()));
            *place = ValuesWindow::at(position);
            place.advance_to(position);
        } else if unused > bytes.saturating_mul(MOST_UNUSED) && !self.readahead.is_full() {
            self.window_bytes /= 2;
        }
        if is_missing || place.asked_bytes < self.window_bytes / 2 {
            self.fill(source, descent, (page, layout), loaded);
        }
        if is_missing && let Some(place) = &mut self.place {
            place.came = place.until;
            if grows {
                self.window_bytes = self.readahead.after(self.window_bytes);
            }
        }
    }

    /// Asks for the part of the window that was not asked for yet, up to the first data page that is not in
    /// memory. `here` is the page in which the walk is. It is passed along because a source that keeps no pages no
    /// longer has it.
    fn fill<S: PageSource + ?Sized, L: PageRows>(
        &mut self,
        source: &S,
        descent: &Descent<'_>,
        here: (&PageRef, &L),
        LoadedRows { rows, seen, edge, kind }: &LoadedRows<'_>,
    ) {
        let edge = edge.and_then(|edge| edge.row(source, *kind, self.direction));
        let (direction, all, high_bytes) = (self.direction, descent.rows(), self.readahead.high_bytes());
        let Some(place) = &mut self.place else { return };
        let mut open = (here.0.clone(), *here.1);
        // If few of the pages have large values, this counter ends the search.
        let mut looked_bytes = 0;
        while place.asked_bytes < self.window_bytes {
            let Some(next) = next_position(rows, place.until, all, direction) else { return };
            let row = if direction.is_forward() { next } else { all - next - 1 };
            if edge.is_some_and(|edge| if direction.is_forward() { row >= edge } else { row < edge }) {
                return;
            }
            if !rows_of(&open.1).contains(&row) {
                if looked_bytes > high_bytes {
                    return;
                }
                let Some(page) = descent.glance_row(source, row) else { return };
                let layout = L::of(&page);
                if !rows_of(&layout).contains(&row) {
                    // The page is damaged, and its reader will find that out.
                    return;
                }
                looked_bytes += page.address().memory_bytes();
                open = (page, layout);
            }
            let (page, layout) = &open;
            if let Some(value) = layout.outside(page, (row - layout.first_row()) as usize, *seen) {
                let bytes: u64 = value.chunks().map(|chunk| chunk.memory_bytes()).sum();
                if place.asked_bytes + bytes <= self.window_bytes {
                    for chunk in value.chunks() {
                        source.ahead(descent.file().at(&chunk, PageKind::Value));
                    }
                    place.asked.push_back((next, bytes));
                    place.asked_bytes += bytes;
                } else if place.asked_bytes > 0 || self.window_bytes < high_bytes {
                    return;
                }
                // A value that is longer than any window is not asked for ahead. It is read as a whole when it is
                // needed.
            }
            place.until = next + 1;
        }
    }
}

/// The rows of a page.
fn rows_of(layout: &impl PageRows) -> Range<u64> {
    layout.first_row()..layout.first_row() + layout.rows() as u64
}
