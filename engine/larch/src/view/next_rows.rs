//! Finds the next rows of a table without a merge, with the pages that a lender has at hand: the rest of the page in
//! which each file has its next row. They are given one after the other by a [`Following`], as
//! are those that a merge has found. This module does not know who reads.
//!
//! ```text
//!                 near                 end
//!   memtable       |                    m        a key in memory ends the rows of all files
//!   level 0        | a     d    e    g  | p  ]   the rest of the page in which its next row lies
//!   level 1        |                    |    [   the next file of this level begins here, which ends the rows, too
//!   level 2        |    b  c    f       | n  ]
//! ```
//!
//! It keeps nothing but these pages: no file, no memtable, no cursor. Where this is not enough, only a merge can tell:
//! if a page is missing, if a range erase may lie over the rows, if the next row is in memory or its content in
//! another page, and if filters may leave out files.

use super::TableView;
use super::cover::comes_before;
use super::follow::Following;
use crate::manifest::db_file::DbFile;
use os::sync::Arc;
use pages::PageLender;
use sst::{Direction, RestOfPage};
use std::ops::Bound;

/// What was found out about the next rows.
pub enum NextRows {
    /// The next rows. Perhaps none of them is shown.
    Rows(Following),
    /// There is no row before the far end. The value is memory for the next look.
    Nothing(Following),
    /// Only a merge can find the next row. The value is memory for the next look.
    Unknown(Following),
}

/// Looks for the next rows of `table` from `near` to before `far`, without the own writes of a transaction. They are
/// followed in the memory of `spare`.
pub fn next_rows<S: PageLender + ?Sized>(
    source: &S,
    table: TableView<'_>,
    (near, far): (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
    spare: Option<Following>,
) -> NextRows {
    let rows = Following::none(direction, table.view.generation, spare);
    let mut look = Look { source, table, near, far, direction, rows, end: None };
    if look.run().is_none() {
        return NextRows::Unknown(look.rows.clear());
    }
    let Look { mut rows, end, .. } = look;
    let has_rows = rows.begin_before(end.map_or(far, Bound::Excluded));
    match (has_rows, end) {
        (true, _) => NextRows::Rows(rows),
        (false, None) => NextRows::Nothing(rows),
        (false, Some(_)) => NextRows::Unknown(rows),
    }
}

/// A look for the next rows.
struct Look<'l, S: ?Sized> {
    source: &'l S,
    table: TableView<'l>,
    near: Bound<&'l [u8]>,
    far: Bound<&'l [u8]>,
    direction: Direction,
    rows: Following,
    /// The nearest key before the far end at which another source may have a row. The rows must end before it.
    end: Option<&'l [u8]>,
}

impl<'l, S: PageLender + ?Sized> Look<'l, S> {
    /// Asks all sources. `None` if one of them cannot tell.
    fn run(&mut self) -> Option<()> {
        for memtable in self.table.memtables() {
            if memtable.has_range_erases() {
                return None;
            }
            if let Some(key) = memtable.next_key(self.near, self.direction, self.table.at) {
                self.end_before(key);
            }
        }
        let (level0, deeper) = self.table.files.levels.split_first()?;
        for file in level0.iter() {
            self.ask(std::slice::from_ref(file))?;
        }
        deeper.iter().filter(|level| !level.is_empty()).try_for_each(|level| self.ask(level))
    }

    /// Asks the files of a sorted level. `None` if they cannot tell.
    fn ask(&mut self, files: &'l [Arc<DbFile>]) -> Option<()> {
        let (near, direction) = (self.near, self.direction);
        // Files whose keys all lie before `near` are passed by.
        let mut left = match direction {
            Direction::Forward => &files[files.partition_point(|file| ends_before(file, near))..],
            Direction::Backward => &files[..files.partition_point(|file| !begins_after(file, near))],
        };
        let Some(file) = take_next(&mut left, direction) else { return Some(()) };
        if edge_of(file, direction).is_some_and(|key| !comes_before(key, &self.far, direction)) {
            return Some(());
        }
        if let Some(key) = edge_of(file, direction)
            && let Bound::Included(near) | Bound::Excluded(near) = near
            && comes_before(near, &Bound::Excluded(key), direction)
        {
            self.end_before(key);
            return Some(());
        }
        let (low, high) = direction.near_far((near, self.far));
        if file.sst.may_erase_between(low, high) || file.sst.filtered_prefix(low, high).is_some() {
            return None;
        }
        let mut key = self.rows.take_memory();
        let rest = file.sst.rest_of_page(self.source, near, direction, self.table.at, &mut key);
        self.rows.give_memory(key);
        match rest {
            RestOfPage::Unknown => return None,
            RestOfPage::Rows(mut rows) => {
                if file.sst.meta.expiry.is_some() {
                    rows.at_time(self.table.view.rules.clock.now());
                }
                self.rows.add(rows);
            }
            // The bounds of a file may be wider than its keys.
            RestOfPage::Nothing => {
                if let Some(file) = take_next(&mut left, direction) {
                    self.end_before(edge_of(file, direction)?);
                }
            }
        }
        Some(())
    }

    /// Notes that a source may have a row at `key`, and that its next row does not come before that.
    fn end_before(&mut self, key: &'l [u8]) {
        let is_nearer = self.end.is_none_or(|end| comes_before(key, &Bound::Excluded(end), self.direction));
        if is_nearer && comes_before(key, &self.far, self.direction) {
            self.end = Some(key);
        }
    }
}

/// Takes the file of a sorted level that a walk in `direction` reaches first.
fn take_next<'l>(files: &mut &'l [Arc<DbFile>], direction: Direction) -> Option<&'l DbFile> {
    let (file, rest) = match direction {
        Direction::Forward => files.split_first()?,
        Direction::Backward => files.split_last()?,
    };
    *files = rest;
    Some(file)
}

/// The key at which a walk in `direction` may meet the first row of `file`. `None` if there is no such bound.
fn edge_of(file: &DbFile, direction: Direction) -> Option<&[u8]> {
    match direction {
        Direction::Forward => Some(&file.sst.bounds().low),
        Direction::Backward => file.sst.bounds().high.as_deref(),
    }
}

/// Whether all keys of `file` come before `low`, the start of a forward walk.
fn ends_before(file: &DbFile, low: Bound<&[u8]>) -> bool {
    match (file.sst.bounds().high.as_deref(), low) {
        (None, _) | (_, Bound::Unbounded) => false,
        (Some(last), Bound::Included(low)) => last < low,
        (Some(last), Bound::Excluded(low)) => last <= low,
    }
}

/// Whether all keys of `file` come after `high`, the start of a backward walk.
fn begins_after(file: &DbFile, high: Bound<&[u8]>) -> bool {
    match (file.sst.bounds().low.as_slice(), high) {
        (_, Bound::Unbounded) => false,
        (first, Bound::Included(high)) => first > high,
        (first, Bound::Excluded(high)) => first >= high,
    }
}
