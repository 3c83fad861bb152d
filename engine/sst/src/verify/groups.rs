//! Checks the column groups of a file. It checks their trees, and that no erase has a part in them. It also tells
//! which pages and values of groups the totals of the main tree must count. This module does not know which rows
//! are erases: the checks of the main tree and of the history ask it about each erase.

use super::check::Check;
use super::tree_walk::DataPage;
use super::values::{Values, chunks_of};
use crate::format::PageRows;
use crate::format::group_page::GroupLayout;
use crate::format::meta::{Tree, TreeKind};
use crate::read::RowPlace;
use pages::{Address, PageRef, PageSource, Result, retry};

/// What the rows of a file have in its column groups: the pages of the groups' trees, and the values in value
/// pages.
#[derive(Default)]
pub(super) struct Beside {
    newest: GroupSide,
    older: GroupSide,
}

/// The parts of the newest versions, or the parts of the older versions.
#[derive(Default)]
struct GroupSide {
    events: Events,
    /// The rows that have a part that is not empty.
    filled: RowSet,
}

/// A list of pages and values as they were written. Each entry has two numbers: its stored bytes, and how many
/// rows the tree had when these bytes were written.
#[derive(Default)]
struct Events {
    /// The entries, each with the number of rows first. They are sorted before they are added up.
    due: Vec<(u64, u64)>,
    next: usize,
    counted: u64,
}

impl Beside {
    /// How many bytes of column groups the writer had written when the main tree had `rows` rows and the history
    /// had `older` rows.
    pub fn through(&mut self, rows: u64, older: u64) -> u64 {
        self.newest.events.through(rows) + self.older.events.through(older)
    }

    /// Counts all bytes of column groups. This is called at the end of the file, when the writer had written all
    /// of them.
    pub fn end(&mut self) {
        self.through(u64::MAX, u64::MAX);
    }
}

impl Events {
    fn through(&mut self, rows: u64) -> u64 {
        while let Some((_, bytes)) = self.due.get(self.next).filter(|(from, _)| *from <= rows) {
            self.counted += bytes;
            self.next += 1;
        }
        self.counted
    }
}

/// A set of row ids: one bit for each id up to the greatest id in the set.
#[derive(Default)]
struct RowSet(Vec<u64>);

impl RowSet {
    fn insert(&mut self, row: u64) {
        let word = (row / 64) as usize;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (row % 64);
    }

    fn contains(&self, row: u64) -> bool {
        self.0.get((row / 64) as usize).is_some_and(|word| word >> (row % 64) & 1 != 0)
    }
}

impl<S: PageSource + ?Sized> Check<'_, S> {
    /// Checks all trees of all groups.
    pub(super) fn groups(&mut self) -> Result<Beside> {
        let mut beside = Beside::default();
        for (trees, group) in self.sst.meta.groups.iter().zip(1..) {
            if let Some(tree) = trees.newest {
                self.group(TreeKind::Group(group), tree, &mut beside.newest)?;
            }
            if let Some(tree) = trees.older {
                self.group(TreeKind::GroupHistory(group), tree, &mut beside.older)?;
            }
        }
        beside.newest.events.due.sort_unstable();
        beside.older.events.due.sort_unstable();
        Ok(beside)
    }

    /// Checks that the row at `place` has no part in any group. This row is an erase.
    pub(super) fn no_parts(&self, beside: &Beside, place: RowPlace) -> Result<()> {
        let (side, row, kind): (_, _, fn(u8) -> TreeKind) = match place {
            RowPlace::Newest(row) => (&beside.newest, row, TreeKind::Group),
            RowPlace::Older(row) => (&beside.older, row, TreeKind::GroupHistory),
        };
        if !side.filled.contains(row) {
            return Ok(());
        }
        for group in 1..=self.sst.meta.groups.len() as u8 {
            let descent = self.sst.descent(kind(group)).expect("a part of the row was met, so groups have trees");
            let (page, layout): (PageRef, GroupLayout) = retry(&self.whole, || descent.page_of_row(&self.whole, row))?;
            let part = layout.part(&page, (row - layout.first_row()) as usize);
            if part.bytes > 0 {
                let why = format!("row {row} is an erase and has a part");
                return Err(self.corrupt(page.kind(), page.address().offset, why));
            }
        }
        unreachable!("a part of row {row} was met in a page that has the same checksum now")
    }

    fn group(&mut self, kind: TreeKind, tree: Tree, side: &mut GroupSide) -> Result<()> {
        let mut walk = self.walk(kind, tree, tree.totals.bytes);
        while let Some(DataPage { page, layout, at }) = walk.next::<_, GroupLayout>(self)? {
            let parts = || (0..layout.rows()).map(|i| layout.part(&page, i));
            let chunks: Vec<Address> =
                parts().flat_map(|part| chunks_of(&page[part.at..part.at + part.bytes], part.outside)).collect();
            let mut values = Values::new(&chunks);
            for (part, row) in parts().zip(layout.first_row()..) {
                let stored = &page[part.at..part.at + part.bytes];
                let elsewhere = self.value(&page, stored, part.outside, &mut values)?;
                walk.totals.group_bytes += elsewhere;
                if elsewhere > 0 {
                    side.events.due.push((row + 1, elsewhere));
                }
                if part.bytes > 0 {
                    side.filled.insert(row);
                }
            }
            // The writer closes a page only when it gets the next row, so it has one more row by then.
            side.events.due.push((layout.first_row() + layout.rows() as u64 + 1, at.bytes.into()));
        }
        Ok(())
    }
}
