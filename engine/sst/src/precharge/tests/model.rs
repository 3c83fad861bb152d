//! The oracle: lists of all pages of a file, and a reader that goes through the rows one by one.

use super::super::{AtMost, Direction, ReadPlan};
use super::touch::Touch;
use crate::fixture::Built;
use crate::format::data_page::Layout;
use crate::format::group_page::GroupLayout;
use crate::format::meta::TreeKind;
use crate::format::node::IndexNode;
use crate::format::{OutsideValue, PageRows, history_key, validate};
use crate::read::{Seek, Sst, SstCursor, TreeCursor};
use crate::row::{RowKind, Version};
use os::sync::Arc;
use pages::{Address, PageKind, PageLender, Resident, retry};
use std::collections::BTreeSet;
use std::ops::{Bound, Range};

/// Kinds and offsets of pages.
pub type Pages = BTreeSet<(PageKind, u64)>;

/// A data page as the oracle knows it.
struct Listed {
    offset: u64,
    bytes: u64,
    rows: Range<u64>,
    /// A string that is not greater than any key in the page. It is empty for the first page.
    separator: Vec<u8>,
    /// The offsets of the nodes above the page: first those in the B-tree, then those in the flat index.
    above: [Vec<u64>; 2],
}

/// A row of any tree.
#[derive(Clone)]
struct Listing {
    key: Vec<u8>,
    version: u64,
    erased: bool,
    has_history: bool,
    /// Offsets and bytes of its value pages.
    chunks: Vec<(u64, u64)>,
}

#[derive(Default)]
struct Side {
    pages: Vec<Listed>,
    rows: Vec<Listing>,
}

pub struct Oracle {
    trees: Vec<(TreeKind, Side)>,
}

/// What a reader touches.
#[derive(Default)]
pub struct Read {
    /// Data pages and value pages.
    pub pages: Pages,
    /// Tree and number of each data page.
    pub touched: Vec<(TreeKind, usize)>,
    pub rows: Range<u64>,
    pub items: u64,
    pub overshot: bool,
}

impl Oracle {
    pub fn new(built: &Built) -> Self {
        let (sst, source) = (built.sst(), Resident::new(validate));
        let mut trees = Vec::new();
        for (kind, tree) in built.meta.trees() {
            let mut side = Side::default();
            for (index, node_kind, root) in [(0, PageKind::Index, tree.btree), (1, PageKind::Flat, tree.flat)] {
                let root = root.expect("both were asked for");
                let mut found = Vec::new();
                let page =
                    |at: &Address, kind| retry(&source, || source.page(sst.file.at(at, kind))).expect("it is whole");
                let mut waiting = vec![(root.address, root.height, Vec::new(), Vec::new())];
                while let Some((at, height, separator, above)) = waiting.pop() {
                    if height == 0 {
                        found.push((at, separator, above));
                        continue;
                    }
                    let node_page = page(&at, node_kind);
                    let node = IndexNode::new(&node_page);
                    let above: Vec<u64> = above.into_iter().chain([at.offset]).collect();
                    for i in (0..node.children()).rev() {
                        let mut low = Vec::new();
                        match i {
                            0 => low.clone_from(&separator),
                            _ if node.is_by_row() => {}
                            _ => node.separator(i - 1, &mut low),
                        }
                        waiting.push((node.address(i), height - 1, low, above.clone()));
                    }
                }
                if index == 1 {
                    for (listed, (at, _, above)) in side.pages.iter_mut().zip(found) {
                        assert_eq!(listed.offset, at.offset);
                        listed.above[1] = above;
                    }
                    continue;
                }
                for (at, separator, above) in found {
                    let data = page(&at, kind.page_kind());
                    let first = side.rows.len() as u64;
                    if kind.is_by_row() {
                        let layout = GroupLayout::of(&data);
                        for i in 0..layout.rows() {
                            let part = layout.part(&data, i);
                            let chunks = chunks(&data[part.at..part.at + part.bytes], part.outside);
                            let (key, version) = (Vec::new(), 0);
                            side.rows.push(Listing { key, version, erased: false, has_history: false, chunks });
                        }
                    } else {
                        let layout = Layout::of(&data);
                        for i in 0..layout.rows() {
                            let mut key = Vec::new();
                            let record = layout.read_row(&data, i, &mut key);
                            let stored = &data[record.value_at..record.value_at + record.value_bytes];
                            side.rows.push(Listing {
                                key,
                                version: record.version.0,
                                erased: record.kind == RowKind::Erase,
                                has_history: record.has_history,
                                chunks: chunks(stored, record.outside),
                            });
                        }
                    }
                    let rows = first..side.rows.len() as u64;
                    let (offset, bytes) = (at.offset, at.bytes.into());
                    side.pages.push(Listed { offset, bytes, rows, separator, above: [above, Vec::new()] });
                }
            }
            trees.push((kind, side));
        }
        Self { trees }
    }

    fn side(&self, kind: TreeKind) -> &Side {
        &self.trees.iter().find(|(other, _)| *other == kind).expect("the file has it").1
    }

    /// All pages of the file except value pages, with the nodes of the index that is read.
    pub fn all_pages(&self, flat: bool) -> Vec<u64> {
        let pages = self.trees.iter().flat_map(|(_, side)| &side.pages);
        let mut all: Vec<u64> =
            pages.flat_map(|page| page.above[usize::from(flat)].iter().copied().chain([page.offset])).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The nodes on the way to the pages in `touched`, and the roots of their trees.
    pub fn nodes_above(&self, flat: bool, touched: &[(TreeKind, usize)]) -> BTreeSet<u64> {
        touched
            .iter()
            .flat_map(|(tree, i)| self.side(*tree).pages[*i].above[usize::from(flat)].iter().copied())
            .collect()
    }

    /// What a reader of `wanted` touches.
    pub fn read(&self, wanted: &ReadPlan<'_>) -> Read {
        let main = self.side(TreeKind::Main);
        // For a read at a version before the newest one, only the pages themselves say which of their rows exist.
        // So for such a read, all rows count against the limit.
        let is_old = main.rows.iter().any(|row| row.version > wanted.at.0);
        let count = main.rows.len() as u64;
        let within = wanted.rows.start.min(count)..wanted.rows.end.min(count);
        let mut read = Read::default();
        if within.is_empty() || wanted.limits.rows == 0 {
            read.overshot = within.is_empty();
            return read;
        }
        let forward = wanted.direction == Direction::Forward;
        // The side where the read looks for its first row. A row need not be there.
        let near = if forward { &wanted.low } else { &wanted.high };
        let first_page = main.page_of_row(within.start);
        let last_page = main.page_of_row(within.end - 1);
        let near_page = match near {
            Bound::Unbounded if forward => first_page,
            Bound::Unbounded => last_page,
            Bound::Included(key) | Bound::Excluded(key) => main.page_of_key(key).clamp(first_page, last_page),
        };
        let mut touched = vec![near_page];
        let starts = |row: &u64| match wanted.low {
            Bound::Unbounded => true,
            Bound::Included(low) => main.rows[*row as usize].key.as_slice() >= low,
            Bound::Excluded(low) => main.rows[*row as usize].key.as_slice() > low,
        };
        let ends = |row: &u64| match wanted.high {
            Bound::Unbounded => true,
            Bound::Included(high) => main.rows[*row as usize].key.as_slice() <= high,
            Bound::Excluded(high) => main.rows[*row as usize].key.as_slice() < high,
        };
        let mut order: Vec<u64> = within.clone().collect();
        if !forward {
            order.reverse();
        }
        let begun = |row: &u64| if forward { starts(row) } else { ends(row) };
        let goes_on = |row: &u64| if forward { ends(row) } else { starts(row) };
        let mut rows: Vec<u64> = Vec::new();
        let mut overshot = true;
        for row in order.into_iter().skip_while(|row| !begun(row)) {
            touched.push(main.page_of_row(row));
            if !goes_on(&row) {
                overshot = false;
                break;
            }
            rows.push(row);
            read.items += u64::from(is_old || !main.rows[row as usize].erased);
            if read.items == wanted.limits.rows {
                overshot = false;
                break;
            }
        }
        touched.dedup();
        let fits = main.within_bytes(&touched, wanted.limits);
        let cut = fits < touched.len();
        touched.truncate(fits);
        rows.retain(|row| touched.contains(&main.page_of_row(*row)));
        read.overshot = overshot && !cut;
        read.rows = rows.iter().min().copied().unwrap_or(0)..rows.iter().max().map_or(0, |row| row + 1);
        let mut add = |kind: TreeKind, pages: &[usize]| {
            for &i in pages {
                read.pages.insert((kind.page_kind(), self.side(kind).pages[i].offset));
                read.touched.push((kind, i));
            }
        };
        add(TreeKind::Main, &touched);
        let groups: Vec<u8> = wanted.groups.beside_main().map(|group| group as u8).collect();
        let mut values: Vec<(TreeKind, u64)> = Vec::new();
        // If the newest versions of all rows are read, only the pages themselves say which of their rows are
        // erased.
        let is_read = |row: &u64| {
            let listing = &main.rows[*row as usize];
            listing.version <= wanted.at.0 && !(is_old && listing.erased)
        };
        let newest: Vec<u64> = rows.iter().copied().filter(is_read).collect();
        for &group in &groups {
            let side = self.side(TreeKind::Group(group));
            let mut pages: Vec<usize> = newest.iter().map(|row| side.page_of_row(*row)).collect();
            pages.dedup();
            pages.truncate(side.within_bytes(&pages, wanted.limits));
            add(TreeKind::Group(group), &pages);
            values.extend(newest.iter().map(|row| (TreeKind::Group(group), *row)));
        }
        for &row in &rows {
            let listing = &main.rows[row as usize];
            if listing.version <= wanted.at.0 {
                if wanted.groups.contains(0) {
                    values.push((TreeKind::Main, row));
                }
            } else if listing.has_history {
                let history = self.side(TreeKind::History);
                let key = history_key(row, wanted.at);
                let page = history.page_of_key(&key);
                add(TreeKind::History, &[page]);
                let found = history.rows.iter().position(|older| older.key.as_slice() >= key.as_slice());
                if let Some(found) = found {
                    add(TreeKind::History, &[history.page_of_row(found as u64)]);
                    if history.rows[found].key[..8] == key[..8] && !history.rows[found].erased {
                        for &group in &groups {
                            let kind = TreeKind::GroupHistory(group);
                            add(kind, &[self.side(kind).page_of_row(found as u64)]);
                            values.push((kind, found as u64));
                        }
                        if wanted.groups.contains(0) {
                            values.push((TreeKind::History, found as u64));
                        }
                    }
                }
                continue;
            }
        }
        if wanted.values {
            for (kind, row) in values {
                let chunks = &self.side(kind).rows[row as usize].chunks;
                read.pages.extend(chunks.iter().map(|(offset, _)| (PageKind::Value, *offset)));
            }
        }
        read
    }
}

fn chunks(stored: &[u8], outside: bool) -> Vec<(u64, u64)> {
    if !outside {
        return Vec::new();
    }
    let reference = OutsideValue::new(stored).expect("it is whole");
    reference.chunks().map(|at| (at.offset, u64::from(at.bytes))).collect()
}

impl Side {
    fn page_of_row(&self, row: u64) -> usize {
        self.pages.partition_point(|page| page.rows.end <= row)
    }

    fn page_of_key(&self, key: &[u8]) -> usize {
        self.pages.iter().rposition(|page| page.separator.as_slice() <= key).expect("the first separator is empty")
    }

    /// How many of the pages fit the limit if they are read in the order given. The first page does not count
    /// against the limit.
    fn within_bytes(&self, pages: &[usize], limits: AtMost) -> usize {
        let mut bytes = 0u64;
        let more = pages.iter().skip(1).take_while(|&&i| {
            bytes += self.pages[i].bytes;
            bytes <= limits.bytes
        });
        pages.len().min(1) + more.count()
    }
}

/// Reads `wanted` with the same cursors as all other reads.
pub fn read(sst: &Arc<Sst>, source: &Touch, wanted: &ReadPlan<'_>) {
    let Some(tree) = sst.meta.main else { return };
    if wanted.limits.rows == 0 || wanted.rows.is_empty() {
        return;
    }
    let mut bounded = TreeCursor::new(&sst.file, TreeKind::Main, tree, sst.prefer_flat, wanted.rows.clone());
    let mut rows = SstCursor::new(sst.clone());
    let forward = wanted.direction == Direction::Forward;
    let start = if forward { wanted.low } else { wanted.high };
    let mut there = match (start, forward) {
        (Bound::Unbounded, true) => bounded.seek_first(source),
        (Bound::Unbounded, false) => bounded.seek_last(source),
        (Bound::Included(key), true) => bounded.seek(source, key, Seek::Lower),
        (Bound::Excluded(key), true) => bounded.seek(source, key, Seek::Upper),
        (Bound::Included(key), false) => bounded.seek_back(source, key, Seek::Lower),
        (Bound::Excluded(key), false) => bounded.seek_back(source, key, Seek::Upper),
    }
    .expect("no fault");
    let is_old = wanted.at < sst.meta.newest;
    let (mut items, mut key, mut parts) = (0, Vec::new(), Vec::new());
    while there {
        let record = bounded.read(&mut key).expect("it is somewhere");
        let goes_on = match (if forward { wanted.high } else { wanted.low }, forward) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(far), true) => key.as_slice() <= far,
            (Bound::Excluded(far), true) => key.as_slice() < far,
            (Bound::Included(far), false) => key.as_slice() >= far,
            (Bound::Excluded(far), false) => key.as_slice() > far,
        };
        if !goes_on {
            break;
        }
        assert!(rows.seek(source, &key, Seek::Exact).expect("no fault"));
        let visible = rows.visible(source, Version(wanted.at.0)).expect("no fault");
        if let Some(row) = visible.filter(|row| row.kind != RowKind::Erase) {
            parts.clear();
            rows.parts(source, wanted.groups, row.place, &mut parts).expect("no fault");
            if wanted.values {
                parts.extend(wanted.groups.contains(0).then(|| row.value.clone()));
                for part in &parts {
                    part.load(source, &sst.file).expect("no fault");
                }
            }
        }
        items += u64::from(is_old || record.kind != RowKind::Erase);
        if items == wanted.limits.rows {
            break;
        }
        there = if forward { bounded.next(source) } else { bounded.prev(source) }.expect("no fault");
    }
}
