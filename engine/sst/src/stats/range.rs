//! The totals of a range of one tree. They come from index nodes alone. Whole children are added by subtraction.
//! Only the nodes on the ways down to the edges of the range and of the slice are opened. The module reads no data
//! pages: it knows about them only what their parents say.

use super::{Estimate, KeyEdge, RangeTotals, Span, share};
use crate::format::history_key;
use crate::format::meta::{Tree, TreeKind};
use crate::format::node::{IndexNode, Totals};
use crate::read::{Descent, Sst, Subtree};
use crate::row::Version;
use crate::slice::RowRanges;
use pages::{PageRef, PageSource, Stop, together};
use std::ops::{Bound, Range};

impl Sst {
    /// The totals of those rows from `low` to `high` that the table sees. Reads only index nodes: those on the
    /// ways to both ends, and to the edges of the slice between the ends. An end beyond the bounds of the file
    /// needs no nodes. A step.
    ///
    /// The number of rows is uncertain only in the two data pages in which the ends lie.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read, or does not hold what
    /// was written.
    pub fn totals_between<S: PageSource + ?Sized>(
        &self,
        source: &S,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<RangeTotals, Stop> {
        let (Some(span), Some(sum)) =
            (Span::within(low, high, self.bounds()), TreeSums::new(self, source, TreeKind::Main))
        else {
            return Ok(RangeTotals::default());
        };
        sum.of(&self.rows(), span)
    }

    /// The stored bytes that belong to those rows of `rows` that the table sees. The first number is for the main
    /// tree's data pages. Then comes a number for the pages and large values of each column group. The last number
    /// is for the history with all its groups. Reads only index nodes: in each tree, those on the ways to both
    /// ends and to the edges of the slice between the ends. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read, or does not hold what
    /// was written.
    pub fn bytes_by_group<S: PageSource + ?Sized>(&self, source: &S, rows: Range<u64>) -> Result<Vec<Estimate>, Stop> {
        let seen = self.rows().within(rows);
        let groups = self.meta.groups.len();
        let mut bytes = vec![Estimate::default(); groups + 2];
        together(0..groups + 2, |i| {
            bytes[i] = match i {
                0 => match TreeSums::new(self, source, TreeKind::Main) {
                    Some(sum) => sum.of(&seen, Span::default())?.bytes,
                    None => Estimate::default(),
                },
                i if i <= groups => self.group_bytes(source, TreeKind::Group(i as u8), &seen)?,
                _ => self.history_bytes(source, &seen)?,
            };
            Ok(())
        })?;
        Ok(bytes)
    }

    /// The same as [`Sst::bytes_by_group`], but for the rows with keys from `low` to `high`. The result is less
    /// exact in the data pages where the ends lie. A step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is not in memory; [`Stop::Failed`] if a page cannot be read, or does not hold what
    /// was written.
    pub fn bytes_by_group_between<S: PageSource + ?Sized>(
        &self,
        source: &S,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<Vec<Estimate>, Stop> {
        let (Some(span), Some(sum)) =
            (Span::within(low, high, self.bounds()), TreeSums::new(self, source, TreeKind::Main))
        else {
            return Ok(vec![Estimate::default(); self.meta.groups.len() + 2]);
        };
        let (least, most) = sum.rows_of(span)?;
        let (mut at_least, mut at_most) = (Vec::new(), Vec::new());
        together([(least, &mut at_least), (most, &mut at_most)], |(rows, bytes)| {
            *bytes = self.bytes_by_group(source, rows)?;
            Ok(())
        })?;
        Ok(at_least.iter().zip(&at_most).map(|(least, most)| Estimate { low: least.low, high: most.high }).collect())
    }

    /// The bytes that the rows `seen` have in a column group, in pages and in large values.
    fn group_bytes<S: PageSource + ?Sized>(
        &self,
        source: &S,
        kind: TreeKind,
        seen: &RowRanges,
    ) -> Result<Estimate, Stop> {
        let Some(sum) = TreeSums::new(self, source, kind) else { return Ok(Estimate::default()) };
        let RangeTotals { bytes, beside_bytes, .. } = sum.of(seen, Span::default())?;
        Ok(bytes.plus(beside_bytes))
    }

    /// The bytes of the older versions of the main rows `seen`, in all groups.
    fn history_bytes<S: PageSource + ?Sized>(&self, source: &S, seen: &RowRanges) -> Result<Estimate, Stop> {
        let Some(sum) = TreeSums::new(self, source, TreeKind::History) else { return Ok(Estimate::default()) };
        let mut bytes = Estimate::default();
        together(seen.iter(), |range| {
            let [low, high] = [range.start, range.end].map(|row| history_key(row, Version::MAX));
            let edge = |at| Some(KeyEdge { at, is_after: false });
            let span = Span {
                low: edge(low.as_slice()).filter(|_| range.start > 0),
                high: edge(high.as_slice()).filter(|_| range.end < self.meta.rows()),
            };
            let older = sum.of(&(0..sum.tree.totals.rows).into(), span)?;
            bytes += older.bytes.plus(older.beside_bytes);
            if self.meta.groups.is_empty() {
                return Ok(());
            }
            let (least, most) = sum.rows_of(span)?;
            together(1..=self.meta.groups.len(), |group| {
                let kind = TreeKind::GroupHistory(group as u8);
                let low = self.group_bytes(source, kind, &least.clone().into())?.low;
                let high = self.group_bytes(source, kind, &most.clone().into())?.high;
                bytes += Estimate { low, high };
                Ok(())
            })
        })?;
        Ok(bytes)
    }
}

/// Sums over one tree.
pub(super) struct TreeSums<'a, S: ?Sized> {
    pub source: &'a S,
    pub descent: Descent<'a>,
    pub tree: &'a Tree,
}

impl Subtree {
    /// The totals of those rows of the subtree that the table sees. `seen` is the number of these rows. If the
    /// range ends inside the subtree (`is_cut`), some of the rows may lie outside the range.
    pub fn part(&self, seen: u64, is_cut: bool) -> RangeTotals {
        let Totals { rows, bytes, group_bytes, erased } = self.totals();
        let in_proportion = |n: u64| Estimate { low: share(n, seen, rows), high: n - share(n, rows - seen, rows) };
        let whole = RangeTotals {
            rows: Estimate::exact(seen),
            // A damaged file may say that more rows are erased than exist.
            erased: Estimate { low: erased.saturating_sub(rows - seen).min(seen), high: erased.min(seen) },
            bytes: in_proportion(bytes),
            beside_bytes: in_proportion(group_bytes),
        };
        if !is_cut {
            return whole;
        }
        let up_to = |estimate: Estimate| Estimate { low: 0, high: estimate.high };
        RangeTotals {
            rows: up_to(whole.rows),
            erased: up_to(whole.erased),
            bytes: up_to(whole.bytes),
            beside_bytes: up_to(whole.beside_bytes),
        }
    }
}

impl<'a, S: PageSource + ?Sized> TreeSums<'a, S> {
    /// Makes sums over the tree of kind `kind`; `None` if the file has no such tree.
    pub fn new(sst: &'a Sst, source: &'a S, kind: TreeKind) -> Option<Self> {
        Some(Self { source, descent: sst.descent(kind)?, tree: sst.meta.tree(kind)? })
    }

    /// The subtree that is the whole tree.
    pub fn root(&self) -> Subtree {
        self.descent.whole()
    }

    /// Opens the node of `subtree`. This must be a subtree of the same tree.
    pub fn open(&self, subtree: &Subtree) -> Result<PageRef, Stop> {
        self.descent.node_of(self.source, subtree)
    }

    /// The totals of the rows in `seen` that have keys in `span`.
    pub fn of(&self, seen: &RowRanges, span: Span<'_>) -> Result<RangeTotals, Stop> {
        let mut sum = RangeTotals::default();
        self.add(&self.root(), seen, span, &mut sum)?;
        Ok(sum)
    }

    /// Adds the totals of the rows in `subtree` that are in `seen` and have keys in `span`. `span` holds only the
    /// edges that lie in the subtree.
    fn add(&self, subtree: &Subtree, seen: &RowRanges, span: Span<'_>, sum: &mut RangeTotals) -> Result<(), Stop> {
        let is_cut = span.low.is_some() || span.high.is_some();
        let count = seen.count_within(subtree.rows());
        if count == 0 {
            return Ok(());
        }
        if subtree.level == 0 || !is_cut && count == subtree.totals().rows {
            *sum += subtree.part(count, is_cut);
            return Ok(());
        }
        let page = self.open(subtree)?;
        let node = IndexNode::new(&page);
        let near = span.low.map(|edge| EdgeChild::find(&node, edge));
        let far = span.high.map(|edge| EdgeChild::find(&node, edge));
        let first = near.as_ref().map_or(0, |near| near.child);
        let end = far.as_ref().map_or(node.children(), |far| far.child + usize::from(!far.at_its_start));
        if !is_cut {
            // Only children at the edges of `seen` need to be opened.
            return together(0..node.children(), |i| self.add(&subtree.child(&node, i), seen, Span::default(), sum));
        }
        together(first..end, |i| {
            let cuts =
                |edge: &Option<EdgeChild>| edge.as_ref().is_some_and(|edge| edge.child == i && !edge.at_its_start);
            let inner = Span { low: span.low.filter(|_| cuts(&near)), high: span.high.filter(|_| cuts(&far)) };
            self.add(&subtree.child(&node, i), seen, inner, sum)
        })
    }

    /// The ids of the rows with keys in `span`: first the rows that certainly have such keys, then the rows that
    /// may have them.
    fn rows_of(&self, span: Span<'_>) -> Result<(Range<u64>, Range<u64>), Stop> {
        let (mut low, mut high) = (0..0, self.tree.totals.rows..self.tree.totals.rows);
        together([(span.low, &mut low), (span.high, &mut high)], |(edge, rows)| {
            if let Some(edge) = edge {
                *rows = self.rows_before(edge)?;
            }
            Ok(())
        })?;
        Ok((low.end..high.start.max(low.end), low.start..high.end))
    }

    /// How many rows lie before `edge`, as a range from the least possible number to the greatest.
    fn rows_before(&self, edge: KeyEdge<'_>) -> Result<Range<u64>, Stop> {
        let (leaf, is_at_start) = self.leaf(edge)?;
        Ok(if is_at_start { leaf.before.rows..leaf.before.rows } else { leaf.rows() })
    }

    /// The data page in which `edge` lies. The returned flag says whether `edge` is known to be at the start of the
    /// page.
    pub fn leaf(&self, edge: KeyEdge<'_>) -> Result<(Subtree, bool), Stop> {
        let mut here = self.root();
        while here.level > 0 {
            let page = self.open(&here)?;
            let node = IndexNode::new(&page);
            let EdgeChild { child, at_its_start } = EdgeChild::find(&node, edge);
            here = here.child(&node, child);
            if at_its_start {
                return Ok((here, true));
            }
        }
        Ok((here, false))
    }
}

/// Where an edge lies in a node.
struct EdgeChild {
    child: usize,
    /// Whether all keys under the child certainly lie after the edge.
    at_its_start: bool,
}

impl EdgeChild {
    fn find(node: &IndexNode<'_>, edge: KeyEdge<'_>) -> Self {
        let child = node.search(edge.at);
        let mut separator = Vec::new();
        if child > 0 && !edge.is_after {
            node.separator(child - 1, &mut separator);
        }
        Self { child, at_its_start: child > 0 && !edge.is_after && separator == edge.at }
    }
}
