//! Answers questions for which index nodes alone do not suffice: it also reads the data pages at the two ends of a
//! range, or the page of one row. This module knows no versions.

use super::range::TreeSums;
use super::{KeyEdge, Span, share};
use crate::format::PageRows;
use crate::format::data_page::Layout;
use crate::format::meta::TreeKind;
use crate::format::node::{IndexNode, Totals};
use crate::read::{Sst, Subtree};
use crate::row::RowKind;
use crate::slice::RowRanges;
use pages::{PageRef, PageSource, Stop, together};
use std::ops::{Bound, Range};

impl Sst {
    /// The ids of the rows from `low` to `high`, including rows outside the slice. Reads the nodes on the ways to
    /// both ends, and at most two data pages. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read, or does not hold what
    /// was written.
    pub fn rows_between<S: PageSource + ?Sized>(
        &self,
        source: &S,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<Range<u64>, Stop> {
        let (Some(span), Some(sum)) =
            (Span::within(low, high, &self.meta.bounds), TreeSums::new(self, source, TreeKind::Main))
        else {
            return Ok(0..0);
        };
        let (mut start, mut end) = (0, self.meta.rows());
        together([(span.low, &mut start), (span.high, &mut end)], |(edge, row)| {
            if let Some(edge) = edge {
                *row = sum.row_at(edge)?;
            }
            Ok(())
        })?;
        Ok(start..end.max(start))
    }

    /// The totals of those rows from `low` to `high` that the table sees. The numbers of rows and of erased rows
    /// are exact. If only some rows of a page lie in the range, the page's bytes are estimated in proportion to
    /// these rows. Reads the nodes on the ways to both ends, and at most two data pages there. It also reads the
    /// nodes on the ways to those edges of the slice that lie between the ends. The data page at such an edge is
    /// read only if some of its rows are erased. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read, or does not hold what
    /// was written.
    pub fn exact_between<S: PageSource + ?Sized>(
        &self,
        source: &S,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<Totals, Stop> {
        let rows = self.rows_between(source, low, high)?;
        let Some(sum) = TreeSums::new(self, source, TreeKind::Main) else { return Ok(Totals::default()) };
        let mut totals = Totals::default();
        sum.add_exact(&sum.root(), &self.rows().within(rows), &mut totals)?;
        Ok(totals)
    }

    /// Returns the id of row number `n`, counted from 0, among those rows from `from` on that the table sees and
    /// that are not erased. `None` if there are not that many rows. Reads the nodes on the ways to `from`, to the
    /// row that it returns, and to the edges of the slice between them. The data page at the end of such a way is
    /// read only if some of its rows are erased. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read, or does not hold what
    /// was written.
    pub fn nth_put<S: PageSource + ?Sized>(&self, source: &S, from: u64, n: u64) -> Result<Option<u64>, Stop> {
        let Some(sum) = TreeSums::new(self, source, TreeKind::Main) else { return Ok(None) };
        sum.nth(&sum.root(), &self.rows().within(from..u64::MAX), &mut { n })
    }

    /// Appends the key of row `row` to `out`. The row must be in the file. Reads the nodes on the way to the row's
    /// data page, and the page. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read, or does not hold what
    /// was written.
    pub fn key_of<S: PageSource + ?Sized>(&self, source: &S, row: u64, out: &mut Vec<u8>) -> Result<(), Stop> {
        let descent = self.descent(TreeKind::Main).expect("a file with rows has a main tree");
        let (page, layout): (PageRef, Layout) = descent.page_of_row(source, row)?;
        out.extend_from_slice(layout.prefix(&page));
        layout.suffix(&page, (row - layout.first_row()) as usize).append_to(out);
        Ok(())
    }
}

/// A data page.
struct LeafRows {
    page: PageRef,
    layout: Layout,
}

impl LeafRows {
    fn is_put(&self, i: usize) -> bool {
        self.layout.record(&self.page, i).kind != RowKind::Erase
    }

    /// The rows of the page that are in `seen` and not erased.
    fn puts(&self, seen: &RowRanges) -> impl Iterator<Item = u64> {
        let first = self.layout.first_row();
        let seen = seen.within(first..first + self.layout.rows() as u64);
        let rows: Vec<Range<u64>> = seen.iter().collect();
        rows.into_iter().flatten().filter(move |&row| self.is_put((row - first) as usize))
    }
}

impl<S: PageSource + ?Sized> TreeSums<'_, S> {
    /// The id of the first row after `edge`. If no row lies after `edge`, returns the number of rows of the file.
    fn row_at(&self, edge: KeyEdge<'_>) -> Result<u64, Stop> {
        let (leaf, is_at_start) = self.leaf(edge)?;
        if is_at_start {
            return Ok(leaf.before.rows);
        }
        let LeafRows { page, layout } = self.rows(&leaf)?;
        let i = match layout.search(&page, edge.at) {
            Ok(i) => i + usize::from(edge.is_after),
            Err(i) => i,
        };
        Ok(layout.first_row() + i as u64)
    }

    /// The rows of `subtree`, which is a data page.
    fn rows(&self, subtree: &Subtree) -> Result<LeafRows, Stop> {
        let page = self.descent.top_of(self.source, subtree)?;
        let layout = Layout::of(&page);
        self.descent.check_rows(&layout, subtree.rows(), &subtree.address)?;
        Ok(LeafRows { page, layout })
    }

    /// Adds to `sum` the totals of those rows of `subtree` that are in `seen`.
    fn add_exact(&self, subtree: &Subtree, seen: &RowRanges, sum: &mut Totals) -> Result<(), Stop> {
        let count = seen.count_within(subtree.rows());
        let whole = subtree.totals();
        if count == 0 {
            return Ok(());
        }
        if count < whole.rows && subtree.level > 0 {
            let page = self.open(subtree)?;
            let node = IndexNode::new(&page);
            return together(0..node.children(), |i| self.add_exact(&subtree.child(&node, i), seen, sum));
        }
        let erased = match whole.erased {
            erased if count == whole.rows => erased,
            0 => 0,
            erased if erased == whole.rows => count,
            _ => count - self.rows(subtree)?.puts(seen).count() as u64,
        };
        sum.rows += count;
        sum.bytes += share(whole.bytes, count, whole.rows);
        sum.group_bytes += share(whole.group_bytes, count, whole.rows);
        sum.erased += erased;
        Ok(())
    }

    /// Counts the rows of `subtree` that are in `seen` and not erased, and returns the id of the row with number
    /// `left` among them. If there are only `left` such rows or fewer, it subtracts their number from `left`.
    fn nth(&self, subtree: &Subtree, seen: &RowRanges, left: &mut u64) -> Result<Option<u64>, Stop> {
        let count = seen.count_within(subtree.rows());
        let whole = subtree.totals();
        let puts = whole.rows.saturating_sub(whole.erased);
        if count == 0 || puts == 0 {
            return Ok(None);
        }
        if count == whole.rows && puts <= *left {
            *left -= puts;
            return Ok(None);
        }
        if subtree.level > 0 {
            let page = self.open(subtree)?;
            let node = IndexNode::new(&page);
            for i in 0..node.children() {
                if let Some(row) = self.nth(&subtree.child(&node, i), seen, left)? {
                    return Ok(Some(row));
                }
            }
            return Ok(None);
        }
        if whole.erased > 0 {
            let rows = self.rows(subtree)?;
            for row in rows.puts(seen) {
                if *left == 0 {
                    return Ok(Some(row));
                }
                *left -= 1;
            }
            return Ok(None);
        }
        for range in seen.within(subtree.rows()).iter() {
            let rows = range.end - range.start;
            if *left < rows {
                return Ok(Some(range.start + *left));
            }
            *left -= rows;
        }
        Ok(None)
    }
}
