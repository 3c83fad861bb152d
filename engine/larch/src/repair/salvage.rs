//! Reads the rows of one damaged file in key order. A page that cannot be read is added to the losses, and the rows
//! below it are skipped. This module does not know other files.

use super::report::Loss;
use crate::manifest::DbFile;
use os::sync::Arc;
use pages::{Admit, PageCache, PageLender, Reason, Session, retry};
use sst::{Groups, KeyedSubtree, RangeErase, Row, RowKind, Sst, SstCursor, TreeKind, Until, Version};
use std::ops::Range;

/// The newest version of a row in one file, or in the logs.
pub struct SalvagedRow {
    pub key: Vec<u8>,
    pub version: Version,
    pub content: Salvaged,
    /// The time until which the row is there, if it has one.
    pub until: Option<Until>,
}

/// What a version says about its key.
pub enum Salvaged {
    /// The parts of its value.
    Value(Vec<Vec<u8>>),
    /// The operand of a merge.
    Merge(Vec<u8>),
    /// It has no value.
    Erased,
}

/// Iterates over the newest versions of the readable rows of a file.
pub struct Salvage {
    file: Arc<DbFile>,
    sst: Arc<Sst>,
    cache: Arc<PageCache>,
    /// The number of parts of a row.
    groups: usize,
    /// A stack of the subtrees that were not read yet.
    subtrees: Vec<KeyedSubtree>,
    /// A stack of the ranges of row ids that are still to be read in the current data page.
    ranges: Vec<Range<u64>>,
    cursor: Option<SstCursor>,
    /// All rows with smaller row ids were returned or are lost.
    done_rows: u64,
    /// Whether the second of two indexes is used, because a node of the first could not be read.
    is_second_index: bool,
    /// What could not be read.
    pub lost: Vec<Loss>,
}

impl Salvage {
    pub fn new(file: Arc<DbFile>, cache: Arc<PageCache>, groups: usize) -> Self {
        let sst = file.sst.clone();
        let subtrees = sst.top(TreeKind::Main).into_iter().collect();
        let (ranges, lost) = (Vec::new(), Vec::new());
        Self { file, sst, cache, groups, subtrees, ranges, cursor: None, done_rows: 0, is_second_index: false, lost }
    }

    /// A session for one read: after a failed read, a session cannot be used again.
    fn session(&self) -> Session {
        Session::new(&self.cache, Reason::Check, Admit::Keep)
    }

    fn lose(&mut self, keys: (Vec<u8>, Option<Vec<u8>>), rows: u64, error: &pages::Error) {
        let file = self.file.path().to_owned();
        self.lost.push(Loss { file, table: None, keys: Some(keys), rows, why: error.to_string() });
    }

    /// The readable range erases. If some cannot be read, the rows that they hid may become visible again.
    pub fn range_erases(&mut self) -> Vec<RangeErase> {
        let count = self.sst.meta.range_erases.tree().map_or(0, |tree| tree.totals.rows);
        let mut erases = Vec::new();
        let mut failed: Option<(u64, pages::Error)> = None;
        for i in 0..count {
            let session = self.session();
            match retry(&session, || self.sst.nth_range_erase(&session, i)) {
                Ok(erase) => erases.extend(erase.and_then(|erase| self.sst.seen_of(erase))),
                Err(error) => {
                    let (missing, _) = failed.get_or_insert((0, error));
                    *missing += 1;
                }
            }
        }
        if let Some((missing, error)) = failed {
            let bounds = self.sst.bounds();
            let keys = Some((bounds.low.clone(), bounds.high.clone()));
            let why = format!("{missing} range erases, so that what they hid may be back: {error}");
            self.lost.push(Loss { file: self.file.path().to_owned(), table: None, keys, rows: 0, why });
        }
        erases
    }

    /// The next readable row.
    pub fn next(&mut self) -> Option<SalvagedRow> {
        loop {
            if let Some(mut cursor) = self.cursor.take() {
                let session = self.session();
                let moved = match cursor.is_somewhere() {
                    true => retry(&session, || cursor.next(&session)),
                    false => retry(&session, || cursor.seek_first(&session)),
                };
                match moved {
                    Ok(true) => {
                        let found = self.row(&mut cursor);
                        self.cursor = Some(cursor);
                        if found.is_some() {
                            return found;
                        }
                    }
                    Ok(false) => {}
                    // The page was readable a moment ago. If it is not now, the rest of the range is lost.
                    Err(error) => self.lose((cursor.key().to_vec(), None), 0, &error),
                }
                continue;
            }
            if let Some(rows) = self.ranges.pop() {
                self.cursor = Some(SstCursor::within(self.sst.clone(), rows));
                continue;
            }
            let keyed = self.subtrees.pop()?;
            if keyed.subtree.rows().end > self.done_rows {
                self.descend(keyed);
            }
        }
    }

    /// Puts the children of `keyed` on the stack, or the row ranges if `keyed` is a data page.
    fn descend(&mut self, keyed: KeyedSubtree) {
        let session = self.session();
        let page = retry(&session, || session.page(self.sst.file.at(&keyed.subtree.address, keyed.kind)));
        let below = page.and_then(|page| self.sst.subtrees_below(TreeKind::Main, &keyed, &page));
        match below {
            Ok(below) if keyed.subtree.level > 0 => self.subtrees.extend(below.into_iter().rev()),
            Ok(_) => {
                let start = keyed.subtree.rows().start.max(self.done_rows);
                let seen = self.sst.rows();
                let cut = |rows: Range<u64>| rows.start.max(start)..rows.end.min(keyed.subtree.rows().end);
                self.ranges.extend(seen.iter().map(cut).filter(|rows| rows.start < rows.end));
                self.ranges.reverse();
                self.done_rows = keyed.subtree.rows().end;
            }
            Err(error) => {
                let tree = self.sst.meta.main.expect("a subtree belongs to a main tree");
                let has_both = tree.btree.is_some() && tree.flat.is_some();
                if keyed.subtree.level > 0 && has_both && !self.is_second_index {
                    self.is_second_index = true;
                    let prefer_flat = !self.sst.prefer_flat;
                    let slice = self.sst.slice.as_deref().cloned();
                    let other = Sst { prefer_flat, ..self.sst.sliced(slice) };
                    self.sst = Arc::new(other);
                    self.subtrees = self.sst.top(TreeKind::Main).into_iter().collect();
                    return;
                }
                let rows = keyed.subtree.rows().end - keyed.subtree.rows().start.max(self.done_rows);
                self.done_rows = keyed.subtree.rows().end;
                self.lose((keyed.keys.start, keyed.keys.end), rows, &error);
            }
        }
    }

    /// The row at the cursor. `None`, with a loss, if its value cannot be read.
    fn row(&mut self, cursor: &mut SstCursor) -> Option<SalvagedRow> {
        let row = cursor.newest()?;
        let key = cursor.key().to_vec();
        let (version, until) = (row.version, row.until());
        if row.kind == RowKind::Erase {
            return Some(SalvagedRow { key, version, content: Salvaged::Erased, until });
        }
        match self.parts(cursor, &row) {
            Ok(mut parts) if row.kind == RowKind::Merge => {
                let content = Salvaged::Merge(parts.swap_remove(0));
                Some(SalvagedRow { key, version, content, until })
            }
            Ok(parts) => Some(SalvagedRow { key, version, content: Salvaged::Value(parts), until }),
            Err(error) => {
                let mut after = key.clone();
                after.push(0);
                self.lose((key, Some(after)), 1, &error);
                None
            }
        }
    }

    fn parts(&self, cursor: &mut SstCursor, row: &Row) -> pages::Result<Vec<Vec<u8>>> {
        let session = self.session();
        let file = cursor.sst().file.clone();
        let mut beside = Vec::new();
        retry(&session, || {
            beside.clear();
            cursor.parts(&session, Groups::first(self.groups), row.place, &mut beside)
        })?;
        let mut parts = Vec::with_capacity(self.groups);
        for stored in std::iter::once(&row.value).chain(&beside) {
            parts.push(retry(&session, || stored.load(&session, &file))?.as_bytes().to_vec());
        }
        Ok(parts)
    }
}
