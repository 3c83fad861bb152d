//! Finds out for each part of a range which sources of a table have keys there. The range is cut wherever a file or a
//! range erase begins or ends, into pieces called stretches. Within a stretch, the same sources have keys everywhere.
//! This module reads only the pages of range erases.
//!
//! ```text
//! level 0      ├────── f1 ──────┤
//! level 1   ├── f2 ──┤   ├──── f3 ────┤     ├── f4 ──┤
//! erased                          ╳╳╳╳╳╳╳╳╳╳╳╳╳           in the memtable
//! stretches ┆  ┆     ┆   ┆      ┆ ┆    ┆    ┆  ┆     ┆
//! clusters  └──────────────────────────┘    └────────┘     connected by files
//! ```
//!
//! Sources are numbered from the newest to the oldest: 0 is memory, then come the files of level 0, and then the
//! deeper levels. A range erase hides all rows within its keys in sources with greater numbers, and perhaps some in
//! its own source.

use super::memory;
use crate::base::error::Result;
use crate::manifest::DbFile;
use crate::view::TableView;
use crate::view::level::files_between;
use pages::{Session, retry};
use sst::KeyRange;
use sst::{EraseCursor, Version};

/// The most range erases of a source that are examined in one range. If a source has more, every row in the range
/// counts as possibly hidden.
const MAX_ERASES: u64 = 64;

/// The source that consists of all memtables.
pub const MEMORY: usize = 0;

/// A file that may have keys in the range.
#[derive(Debug)]
pub struct Placed<'v> {
    /// The number of the file's source.
    pub source: usize,
    /// The level of the file.
    pub level: usize,
    /// The file.
    pub file: &'v DbFile,
    /// The part of the range in which the file may have keys.
    pub span: KeyRange,
    /// Whether the file may have rows newer than the reader's version.
    pub is_newer: bool,
}

/// Keys that a range erase of a source hides.
#[derive(Debug)]
struct Cover {
    source: usize,
    span: KeyRange,
    is_certain: bool,
}

/// How a reader sees the rows of a file in a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// The reader sees each row whose key no newer source has.
    Clear,
    /// The reader may not see some rows: a range erase may hide them, or they may be too new.
    Doubtful,
}

/// A part of the range in which the same sources have keys everywhere.
#[derive(Debug)]
pub struct Stretch {
    /// The keys.
    pub span: KeyRange,
    /// The files of this stretch, newest first, as indexes into [`Stretches::files`]. Files whose rows are all hidden
    /// are left out.
    pub files: Vec<(usize, Sight)>,
    /// Whether some file is in this stretch and in the one before it.
    is_joined: bool,
}

/// A range of a table, cut into stretches.
#[derive(Debug)]
pub struct Stretches<'v> {
    /// All files that may have keys in the range, hidden or not. Sorted by source, newest first, then by key.
    pub files: Vec<Placed<'v>>,
    /// The stretches of the whole range, in key order and without gaps.
    pub stretches: Vec<Stretch>,
}

impl<'v> Stretches<'v> {
    /// Cuts `span` into stretches.
    pub fn of(session: &Session, table: TableView<'v>, span: &KeyRange) -> Result<Self> {
        let files = files_in(table, span);
        let mut covers = covers_in_memory(memory::erased(table, span));
        for placed in &files {
            covers_of(session, placed, table.at, &mut covers)?;
        }
        let stretches = cut(span, &files, &covers);
        Ok(Self { files, stretches })
    }

    /// The clusters, each as a range of stretches: neighbouring stretches that are joined by files.
    pub fn clusters(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let start = next;
            next = (start + 1..).find(|&i| self.stretches.get(i).is_none_or(|stretch| !stretch.is_joined))?;
            (start < self.stretches.len()).then_some(start..next)
        })
    }
}

/// The files of the table that may have keys in `span`.
pub fn files_in<'v>(table: TableView<'v>, span: &KeyRange) -> Vec<Placed<'v>> {
    let files = table.files;
    let (level0, deeper) = files.levels.split_first().expect("a table has levels");
    let level0 = level0.iter().map(|file| (0, std::slice::from_ref(file)));
    let deeper = (1..).zip(deeper).map(|(level, files)| (level, files.as_slice()));
    let mut found = Vec::new();
    for (source, (level, files)) in (MEMORY + 1..).zip(level0.chain(deeper)) {
        for file in &files[files_between(files, span.low(), span.high())] {
            let Some(span) = file.sst.bounds().to_range().meet(span) else { continue };
            found.push(Placed { source, level, file, span, is_newer: file.age() > table.at.0 });
        }
    }
    found
}

/// The covers of the range erases in memory, which are sorted.
fn covers_in_memory(erased: Vec<KeyRange>) -> Vec<Cover> {
    if erased.len() as u64 <= MAX_ERASES {
        return erased.into_iter().map(|span| Cover { source: MEMORY, span, is_certain: true }).collect();
    }
    let (first, last) = (&erased[0], &erased[erased.len() - 1]);
    let span = KeyRange { start: first.start.clone(), end: last.end.clone() };
    vec![Cover { source: MEMORY, span, is_certain: false }]
}

/// Adds the covers of a file's range erases.
fn covers_of(session: &Session, placed: &Placed<'_>, at: Version, covers: &mut Vec<Cover>) -> Result<()> {
    let mut cursor = EraseCursor::new(placed.file.sst.clone());
    let mut next = retry(session, || cursor.seek(session, &placed.span.start))?;
    let mut count = 0;
    while let Some(erase) = next.filter(|erase| placed.span.ends_after(&erase.keys.start)) {
        if count == MAX_ERASES {
            covers.push(Cover { source: placed.source, span: placed.span.clone(), is_certain: false });
            break;
        }
        count += 1;
        let is_seen = erase.newest(at).is_some();
        if let Some(span) = erase.keys.meet(&placed.span).filter(|_| is_seen) {
            covers.push(Cover { source: placed.source, span, is_certain: true });
        }
        next = retry(session, || cursor.next(session))?;
    }
    Ok(())
}

/// Cuts `span` wherever a file or a cover begins or ends.
fn cut(span: &KeyRange, files: &[Placed<'_>], covers: &[Cover]) -> Vec<Stretch> {
    let spans = || files.iter().map(|placed| &placed.span).chain(covers.iter().map(|cover| &cover.span));
    let mut edges: Vec<&[u8]> = spans().map(|span| span.start.as_slice()).collect();
    edges.extend(spans().filter_map(|span| span.end.as_deref()));
    edges.push(&span.start);
    edges.sort_unstable();
    edges.dedup();
    edges.retain(|edge| span.start.as_slice() <= *edge && span.ends_after(edge));

    // Walks from edge to edge. Files and covers enter in the order of their starts, and stay while they overlap the
    // current stretch.
    let mut files_to_come = by_start(files, |placed| &placed.span);
    let mut covers_to_come = by_start(covers, |cover| &cover.span);
    let (mut files_here, mut covers_here) = (Vec::new(), Vec::new());
    let mut stretches = Vec::with_capacity(edges.len());
    for (i, &start) in edges.iter().enumerate() {
        let end = edges.get(i + 1).map_or_else(|| span.end.clone(), |end| Some(end.to_vec()));
        files_here.retain(|&i: &usize| files[i].span.ends_after(start));
        let is_joined = !files_here.is_empty();
        files_here.extend(std::iter::from_fn(|| files_to_come.next_if(|&i| files[i].span.start.as_slice() <= start)));
        files_here.sort_unstable();
        covers_here.retain(|&i: &usize| covers[i].span.ends_after(start));
        let covers_to_come = &mut covers_to_come;
        covers_here
            .extend(std::iter::from_fn(|| covers_to_come.next_if(|&i| covers[i].span.start.as_slice() <= start)));

        let here = || covers_here.iter().map(|&i| &covers[i]);
        let hidden_after = here().filter(|cover| cover.is_certain).map(|cover| cover.source).min();
        let doubted_from = here().map(|cover| cover.source).min();
        let seen = files_here.iter().filter(|&&i| hidden_after.is_none_or(|hidden| files[i].source <= hidden));
        let with_sight = seen.map(|&i| {
            let doubted = files[i].is_newer || doubted_from.is_some_and(|doubted| doubted <= files[i].source);
            (i, if doubted { Sight::Doubtful } else { Sight::Clear })
        });
        let files = with_sight.collect();
        let span = KeyRange { start: start.to_vec(), end };
        stretches.push(Stretch { span, files, is_joined });
    }
    stretches
}

/// The indexes of the elements of `all`, sorted by start.
fn by_start<'a, T>(
    all: &'a [T],
    span: impl Fn(&'a T) -> &'a KeyRange,
) -> std::iter::Peekable<std::vec::IntoIter<usize>> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&i| &span(&all[i]).start);
    order.into_iter().peekable()
}
