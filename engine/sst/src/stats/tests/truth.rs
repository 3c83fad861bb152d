//! The truth about a file, found row by row, and a page source that counts the pages that it is asked for.

use crate::KeyBounds;
use crate::format::data_page::Layout;
use crate::format::group_page::GroupLayout;
use crate::format::meta::TreeKind;
use crate::format::node::{IndexNode, Totals};
use crate::format::{PageRows, validate};
use crate::read::Sst;
use crate::row::RowKind;
use crate::slice::{RowRanges, Slice};
use crate::stats::Estimate;
use pages::{Address, PageAt, PageKind, PageLender, PageRef, PageSource, Resident, Result, Stop, retry};
use rand::{RngExt, rngs::StdRng};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::{Bound, Range};

/// A data page and the separators around it.
pub struct DataPage {
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
    pub rows: Range<u64>,
    pub totals: Totals,
}

#[derive(Clone)]
pub struct Row {
    pub key: Vec<u8>,
    pub is_put: bool,
}

/// One tree of a file in lists.
#[derive(Default)]
pub struct Tree {
    pub pages: Vec<DataPage>,
    pub rows: Vec<Row>,
}

impl Tree {
    pub fn of(sst: &Sst, kind: TreeKind) -> Self {
        let Some(tree) = sst.meta.tree(kind) else { return Self::default() };
        let (source, root) = (Resident::new(validate), tree.root(sst.prefer_flat));
        let node_kind = if tree.flat == Some(root) { PageKind::Flat } else { PageKind::Index };
        let page = |at: &Address, kind| retry(&source, || source.page(sst.file.at(at, kind))).expect("it is whole");
        let mut found = Self::default();
        let mut before = Totals::default();
        let mut waiting = vec![(root.address, root.height, Vec::new(), None::<Vec<u8>>, tree.totals)];
        while let Some((at, height, low, high, through)) = waiting.pop() {
            if height > 0 {
                let node_page = page(&at, node_kind);
                let node = IndexNode::new(&node_page);
                for i in (0..node.children()).rev() {
                    let separator = |i: usize| {
                        let mut separator = Vec::new();
                        if !kind.is_by_row() {
                            node.separator(i, &mut separator);
                        }
                        separator
                    };
                    let start = if i == 0 { low.clone() } else { separator(i - 1) };
                    let end = if i + 1 == node.children() { high.clone() } else { Some(separator(i)) };
                    waiting.push((node.address(i), height - 1, start, end, node.child(i).totals));
                }
                continue;
            }
            let totals = Totals {
                rows: through.rows - before.rows,
                bytes: through.bytes - before.bytes,
                group_bytes: through.group_bytes - before.group_bytes,
                erased: through.erased - before.erased,
            };
            assert_eq!(totals.bytes, u64::from(at.bytes));
            let data = page(&at, kind.page_kind());
            if kind.is_by_row() {
                assert_eq!(GroupLayout::of(&data).rows() as u64, totals.rows);
                let row = Row { key: Vec::new(), is_put: true };
                found.rows.extend(std::iter::repeat_n(row, totals.rows as usize));
            } else {
                let layout = Layout::of(&data);
                for i in 0..layout.rows() {
                    let mut key = Vec::new();
                    let is_put = layout.read_row(&data, i, &mut key).kind != RowKind::Erase;
                    found.rows.push(Row { key, is_put });
                }
            }
            found.pages.push(DataPage { low, high, rows: before.rows..through.rows, totals });
            before = through;
        }
        found
    }

    /// The most rows that a page has.
    pub fn page_rows(&self) -> u64 {
        self.pages.iter().map(|page| page.totals.rows).max().unwrap_or(0)
    }

    /// Ids of the rows in the range.
    pub fn between(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Range<u64> {
        let is_before = |key: &[u8]| match low {
            Bound::Unbounded => false,
            Bound::Included(low) => key < low,
            Bound::Excluded(low) => key <= low,
        };
        let is_within = |key: &[u8]| match high {
            Bound::Unbounded => true,
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
        };
        let start = self.rows.partition_point(|row| is_before(&row.key)) as u64;
        let end = self.rows.partition_point(|row| is_within(&row.key)) as u64;
        start..end.max(start)
    }

    pub fn erased(&self, rows: &RowRanges) -> u64 {
        rows.iter().flatten().filter(|&row| !self.rows[row as usize].is_put).count() as u64
    }

    /// How much of the pages' totals belongs to `rows`. The function `of` names the total, and each page's total
    /// is divided evenly among its rows. For each page, `low` is rounded down and `high` is rounded up.
    pub fn share(&self, rows: &RowRanges, of: impl Fn(&Totals) -> u64) -> Estimate {
        let mut sum = Estimate::default();
        for page in &self.pages {
            let (all, part) = (page.totals.rows, rows.count_within(page.rows.clone()));
            let product = of(&page.totals) * part;
            sum += Estimate { low: product / all, high: product.div_ceil(all) };
        }
        sum
    }
}

/// Whether an interval holds another.
pub fn holds(outer: Estimate, inner: Estimate) -> bool {
    outer.low <= inner.low && inner.high <= outer.high
}

/// Makes a slice of some random rows of a file, in up to three ranges. Returns the number of edges.
pub fn slice(rng: &mut StdRng, sst: &mut Sst, main: &Tree) -> u64 {
    let all = sst.meta.rows();
    if all == 0 {
        return 0;
    }
    let mut edges: Vec<u64> = (0..2 * rng.random_range(1..=3)).map(|_| rng.random_range(0..=all)).collect();
    edges.sort_unstable();
    let mut ranges: Vec<Range<u64>> = edges.as_chunks::<2>().0.iter().map(|&[start, end]| start..end).collect();
    ranges.retain(|range| !range.is_empty());
    ranges.dedup_by(|next, last| {
        next.start <= last.end && {
            last.end = next.end;
            true
        }
    });
    let rows = RowRanges::new(ranges.iter().cloned());
    let key = |row: u64| main.rows[row as usize].key.as_slice();
    let mut bounds = match (rows.first(), rows.last()) {
        (Some(first), Some(last)) => KeyBounds::cut(key(first), key(last)),
        _ => KeyBounds::default(),
    };
    // If the slice ends before the last row of the file, its high bound may also be the key of the first row after
    // it.
    if let Some(last) = rows.last()
        && last + 1 < all
        && rng.random()
    {
        bounds.high = KeyBounds::cut(&[], key(last + 1)).high;
    }
    sst.slice = Some(Box::new(Slice { rows, bounds, bytes: 0 }));
    2 * ranges.len() as u64
}

/// Counts the pages that it is asked for. A page that is asked for twice counts once.
pub struct Counting<S> {
    pub source: S,
    asked: RefCell<BTreeSet<(bool, u64, u64)>>,
}

impl<S: PageSource> Counting<S> {
    pub fn new(source: S) -> Self {
        Self { source, asked: RefCell::default() }
    }

    /// The number of nodes and the number of other pages since the last call.
    pub fn take(&self) -> (u64, u64) {
        let asked = std::mem::take(&mut *self.asked.borrow_mut());
        let nodes = asked.iter().filter(|(is_node, ..)| *is_node).count() as u64;
        (nodes, asked.len() as u64 - nodes)
    }
}

impl<S: PageSource> PageLender for Counting<S> {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    fn page(&self, at: PageAt<'_>) -> Result<PageRef, Stop> {
        let is_node = matches!(at.kind, PageKind::Index | PageKind::Flat);
        self.asked.borrow_mut().insert((is_node, at.file.id(), at.address.offset));
        self.source.page(at)
    }

    pages::pass_on!(source: peek, ahead, ahead_if_spare, take_read, release);
}

impl<S: PageSource> PageSource for Counting<S> {
    pages::pass_on!(source: glance, ahead_bytes, fetch);
}
