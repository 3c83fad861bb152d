//! What a read of main rows takes from outside the main tree: the parts of these rows in other groups, the older
//! versions that are read instead of them, and values that lie outside their pages. This module knows only the
//! pages that are in memory, and skips pages that have been evicted since they were loaded.

use super::asked::Shares;
use super::found::Pass;
use super::plan::ReadPlan;
use super::trees::Trees;
use crate::format::data_page::Layout;
use crate::format::meta::TreeKind;
use crate::format::{PageRows, history_key};
use crate::read::Descent;
use crate::row::{RowKind, Version};
use pages::{Address, PageKind, PageRef, PageSource, Result, Stop};
use std::ops::Range;

/// What a read takes from outside the main tree.
pub(super) struct Versions<'a, 't, 'k, S: ?Sized> {
    trees: &'t mut Trees<'a, S>,
    reading: &'t ReadPlan<'k>,
    shares: &'t mut Shares,
    rows: Range<u64>,
    sum: Pass,
    /// The offset of the last history page whose bytes were subtracted from the share.
    last_page: Option<u64>,
}

impl<'a, 't, 'k, S: PageSource + ?Sized> Versions<'a, 't, 'k, S> {
    pub fn new(
        trees: &'t mut Trees<'a, S>,
        reading: &'t ReadPlan<'k>,
        shares: &'t mut Shares,
        rows: Range<u64>,
    ) -> Self {
        Self { trees, reading, shares, rows, sum: Pass::default(), last_page: None }
    }

    pub fn run(&mut self) -> Result<Pass> {
        if self.reading.is_old(self.trees.sst) {
            self.old()?;
        } else {
            let rows = self.rows.clone();
            self.version(std::slice::from_ref(&rows), TreeKind::Main, TreeKind::Group)?;
        }
        Ok(std::mem::take(&mut self.sum))
    }

    /// Asks for the parts and values of the given rows of one tree.
    fn version(&mut self, rows: &[Range<u64>], main: TreeKind, group_kind: fn(u8) -> TreeKind) -> Result<()> {
        let groups = self.reading.groups;
        for group in groups.beside_main() {
            let kind = group_kind(group as u8);
            for rows in rows {
                let found = self.trees.rows(kind, rows.clone(), self.shares.of(kind))?;
                self.sum.add(&found);
            }
        }
        if !self.reading.reads_values(self.trees.sst) {
            return Ok(());
        }
        let main = groups.contains(0).then_some(main);
        for kind in main.into_iter().chain(groups.beside_main().map(|group| group_kind(group as u8))) {
            for rows in rows {
                self.values(kind, rows.clone())?;
            }
        }
        Ok(())
    }

    /// Asks for the outside values of some rows of one tree. It skips a row whose page is not in memory.
    fn values(&mut self, kind: TreeKind, rows: Range<u64>) -> Result<()> {
        let (sum, share) = (&mut self.sum, &mut self.shares.values);
        let (file, source, asked) = (&self.trees.sst.file, self.trees.source, self.trees.asked);
        self.trees.pages(kind, rows, |found| {
            for address in found.references().flat_map(|reference| reference.chunks()) {
                if !share.take_page(&address) {
                    sum.is_cut = true;
                    break;
                }
                sum.noted |= asked.ahead(source, file.at(&address, PageKind::Value));
            }
            Ok(())
        })
    }

    /// Handles a read at a version before the newest version of the file: only the page of a row shows which
    /// version of the row the read sees.
    fn old(&mut self) -> Result<()> {
        let (mut newest, mut older) = (RowRuns::default(), Vec::new());
        let (sst, at) = (self.trees.sst, self.reading.at);
        self.trees.pages(TreeKind::Main, self.rows.clone(), |found| {
            let layout = Layout::of(found.page);
            for row in found.rows.clone() {
                let record = layout.record(found.page, (row - found.first_row) as usize);
                if sst.version(&record) > at {
                    older.extend(record.has_history.then_some(row));
                } else if record.kind != RowKind::Erase {
                    newest.add(row);
                }
            }
            Ok(())
        })?;
        let mut found = RowRuns::default();
        for row in older {
            if let Some(row) = self.older(row)? {
                found.add(row);
            }
        }
        self.version(&newest.0, TreeKind::Main, TreeKind::Group)?;
        self.version(&found.0, TreeKind::History, TreeKind::GroupHistory)
    }

    /// Finds the version of main row `row` that the read sees, and returns the id of that version in the history.
    /// `None` if there is no such version, or if its id is not known yet.
    fn older(&mut self, row: u64) -> Result<Option<u64>> {
        let (sst, source) = (self.trees.sst, self.trees.source);
        let (Some(history), Some(at)) =
            (sst.descent(TreeKind::History), self.reading.at.0.checked_sub(sst.version_offset))
        else {
            return Ok(None);
        };
        let key = history_key(row, Version(at));
        let address = history.address_of_key(source, &key);
        let Some(page) = self.history_page(&history, address)? else { return Ok(None) };
        let layout = Layout::of(&page);
        let i = layout.search(&page, &key).unwrap_or_else(|i| i);
        let (page, layout, i) = if i < layout.rows() {
            (page, layout, i)
        } else {
            let next = layout.first_row().saturating_add(layout.rows() as u64);
            if next >= history.rows() {
                return Ok(None);
            }
            let address = history.address_of_row(source, next);
            let Some(page) = self.history_page(&history, address)? else { return Ok(None) };
            let layout = Layout::of(&page);
            (page, layout, 0)
        };
        let mut key = [0; 8];
        layout.copy_key(&page, i, &mut key);
        let is_visible = key == row.to_be_bytes() && layout.record(&page, i).kind != RowKind::Erase;
        Ok(is_visible.then(|| layout.first_row() + i as u64))
    }

    /// Returns a page of the history if its address is known and the page is in memory. If only the address is
    /// known, the page is asked for.
    fn history_page(
        &mut self,
        history: &Descent<'_>,
        address: std::result::Result<Address, Stop>,
    ) -> Result<Option<PageRef>> {
        let address = match address {
            Ok(address) => address,
            Err(Stop::Fault) => {
                self.sum.missing = true;
                return Ok(None);
            }
            Err(Stop::Failed(error)) => return Err(*error),
        };
        let source = self.trees.source;
        if self.last_page != Some(address.offset) {
            if !self.shares.history.take_page(&address) {
                self.sum.is_cut = true;
                return Ok(None);
            }
            self.last_page = Some(address.offset);
        }
        let page = history.peek(source, &address);
        if page.is_none() {
            self.sum.noted |= self.trees.asked.ahead(source, history.file().at(&address, history.page_kind()));
        }
        Ok(page)
    }
}

/// Rows as runs of neighbours. The runs are in the order in which they were added, which is ascending or
/// descending.
#[derive(Default)]
struct RowRuns(Vec<Range<u64>>);

impl RowRuns {
    fn add(&mut self, row: u64) {
        match self.0.last_mut() {
            Some(span) if row == span.end => span.end += 1,
            Some(span) if row + 1 == span.start => span.start = row,
            _ => self.0.push(row..row + 1),
        }
    }
}
