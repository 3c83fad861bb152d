//! The column groups of a file: their own trees, and when each of their pages and values began to count in the main
//! tree's totals.

use super::tree_walk::{DataPage, TreeWalk};
use super::{Check, Values, chunks_of};
use crate::format::PageRows;
use crate::format::group_page::GroupLayout;
use crate::format::meta::{Tree, TreeKind};
use pages::{Address, PageSource, Result};

/// Bytes beside the main tree that belong to its rows, in column groups.
#[derive(Default)]
pub(super) struct Beside {
    newest: Events,
    older: Events,
}

/// Bytes, each with the number of rows from which on they are counted.
#[derive(Default)]
pub(super) struct Events {
    /// Sorted before they are counted.
    due: Vec<(u64, u64)>,
    next: usize,
    counted: u64,
}

impl Beside {
    /// Bytes that were written when the main tree had `rows` rows and the history `older`.
    pub fn through(&mut self, rows: u64, older: u64) -> u64 {
        self.newest.through(rows) + self.older.through(older)
    }

    /// The file ends: everything is written.
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

impl<S: PageSource + ?Sized> Check<'_, S> {
    /// All trees of all groups.
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
        beside.newest.due.sort_unstable();
        beside.older.due.sort_unstable();
        Ok(beside)
    }

    fn group(&mut self, kind: TreeKind, tree: Tree, events: &mut Events) -> Result<()> {
        let mut walk = TreeWalk::new(kind, tree);
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
                    events.due.push((row + 1, elsewhere));
                }
            }
            // A page is closed by the row after its last.
            events.due.push((layout.first_row() + layout.rows() as u64 + 1, at.bytes.into()));
        }
        Ok(())
    }
}
