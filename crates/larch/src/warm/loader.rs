//! Brings pages to memory a piece at a time: index nodes first, then what lies below them, within bounds. It pins nothing
//! for longer than a piece takes to come.
//!
//! A page that came this way stays as a page does that has proven itself, until it is looked at without a use.

use crate::error::Result;
use crate::manifest::DbFile;
use os::sync::Arc;
use pages::{Address, Admit, PageCache, PageKind, PageRef, PageSource, PagedFile, Reason, Session};
use pages::{retry, together};
use sst::{Branch, KeyRange, Sst, TreeKind};
use std::ops::Range;

/// Pages that are read together, and pinned until all of them are here, in bytes; a sixteenth of a small cache.
const PIECE_BYTES: u64 = 1 << 20;

/// What [`Table::warm`](crate::Table::warm) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warmed {
    /// Memory of the pages that it brought or found, in bytes.
    pub bytes: u64,
    /// Pages read from disk.
    pub page_reads: u64,
    /// Whether all of the range is in memory now; otherwise there was no room for the rest.
    pub is_whole: bool,
}

/// Which pages below a node are wanted.
enum WantedPages<'k> {
    Keys(&'k KeyRange),
    Rows(Range<u64>),
}

impl WantedPages<'_> {
    fn has(&self, branch: &Branch) -> bool {
        match self {
            Self::Keys(keys) => keys.overlaps(&branch.keys),
            Self::Rows(rows) => branch.subtree.rows().start < rows.end && rows.start < branch.subtree.rows().end,
        }
    }
}

/// Which pages of a tree are brought.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TreePart {
    Nodes,
    Data,
}

/// Whoever hears how many bytes are here and says whether to go on.
type Progress<'p> = &'p mut dyn FnMut(u64) -> bool;

/// Brings pages to memory, a piece at a time.
pub struct PageLoader<'p> {
    session: Session,
    piece_bytes: u64,
    /// Memory of pages that it may bring or find, in bytes.
    pub most_bytes: u64,
    /// Memory of the pages brought or found so far.
    pub bytes: u64,
    /// Whether pages were passed over that are too large.
    pub has_passed_over: bool,
    progress: Progress<'p>,
}

impl<'p> PageLoader<'p> {
    /// For at most `most_bytes` of pages; `progress` is told after each piece how many are here.
    pub fn new(cache: &Arc<PageCache>, reason: Reason, most_bytes: u64, progress: Progress<'p>) -> Self {
        Self {
            session: Session::new(cache, reason, Admit::Keep),
            piece_bytes: PIECE_BYTES.min(cache.budget_bytes() / 16),
            most_bytes,
            bytes: 0,
            has_passed_over: false,
            progress,
        }
    }

    /// Lets it bring `more` bytes on top of what it has.
    pub fn allow(&mut self, more_bytes: u64) {
        self.most_bytes = self.bytes + more_bytes;
    }

    /// Brings what of `files` lies within `keys`: nodes of all trees that reads of newest versions go through, then their
    /// data pages. False if it had to stop before the end.
    pub fn files(&mut self, files: &[Arc<DbFile>], keys: &KeyRange) -> Result<bool> {
        for part in [TreePart::Nodes, TreePart::Data] {
            for file in files.iter().filter(|file| file.sst.bounds().meets(keys)) {
                if !self.file(&file.sst, keys, part)? {
                    return Ok(false);
                }
            }
        }
        Ok(!self.has_passed_over)
    }

    fn file(&mut self, sst: &Sst, keys: &KeyRange, part: TreePart) -> Result<bool> {
        let keyed = [TreeKind::RangeErases, TreeKind::Filter, TreeKind::Main];
        for tree in keyed {
            if !self.tree(sst, tree, &WantedPages::Keys(keys), part)? {
                return Ok(false);
            }
        }
        if sst.meta.groups.is_empty() {
            return Ok(true);
        }
        let rows = self.rows(sst, keys)?;
        for group in 1..=sst.meta.groups.len() as u8 {
            if !self.tree(sst, TreeKind::Group(group), &WantedPages::Rows(rows.clone()), part)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Rows of the main tree with keys in `keys`, with others that share pages with them.
    fn rows(&mut self, sst: &Sst, keys: &KeyRange) -> Result<Range<u64>> {
        let Some(top) = sst.top(TreeKind::Main) else { return Ok(0..0) };
        let (mut first, mut last) = (top.clone(), top);
        while first.subtree.level > 0 {
            let below = self.below(sst, TreeKind::Main, &first)?;
            match below.into_iter().find(|branch| keys.overlaps(&branch.keys)) {
                Some(branch) => first = branch,
                None => return Ok(0..0),
            }
        }
        while last.subtree.level > 0 {
            let below = self.below(sst, TreeKind::Main, &last)?;
            match below.into_iter().rfind(|branch| keys.overlaps(&branch.keys)) {
                Some(branch) => last = branch,
                None => return Ok(0..0),
            }
        }
        Ok(first.subtree.rows().start..last.subtree.rows().end)
    }

    fn tree(&mut self, sst: &Sst, tree: TreeKind, wanted: &WantedPages<'_>, part: TreePart) -> Result<bool> {
        let Some(top) = sst.top(tree).filter(|top| wanted.has(top)) else { return Ok(true) };
        // A page of a tree of one page counts as what it is.
        let is_part = (top.subtree.level == 0) == (part == TreePart::Data);
        if is_part && !self.bring(&sst.file, [(top.subtree.address, top.kind)])? {
            return Ok(false);
        }
        self.under(sst, tree, &top, wanted, part)
    }

    /// Brings what lies under `branch`, nodes before what is below them.
    fn under(
        &mut self,
        sst: &Sst,
        tree: TreeKind,
        branch: &Branch,
        wanted: &WantedPages<'_>,
        part: TreePart,
    ) -> Result<bool> {
        let no_nodes_below = branch.subtree.level < 2;
        if branch.subtree.level == 0 || no_nodes_below && part == TreePart::Nodes {
            return Ok(true);
        }
        let mut below = self.below(sst, tree, branch)?;
        below.retain(|branch| wanted.has(branch));
        if no_nodes_below || part == TreePart::Nodes {
            let pages: Vec<(Address, PageKind)> =
                below.iter().map(|branch| (branch.subtree.address, branch.kind)).collect();
            if !self.bring(&sst.file, pages)? {
                return Ok(false);
            }
        }
        for branch in &below {
            if !self.under(sst, tree, branch, wanted, part)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is right below a node, which is brought if it is not here.
    pub fn below(&self, sst: &Sst, tree: TreeKind, branch: &Branch) -> Result<Vec<Branch>> {
        let page = retry(&self.session, || self.session.page(sst.file.at(&branch.subtree.address, branch.kind)))?;
        Ok(sst.branches(tree, branch, &page)?)
    }

    /// Brings pages of `file` in their order, passing over those that are too large for the cache; false if there was no
    /// room for all others, or nobody wants to go on.
    pub fn bring(
        &mut self,
        file: &Arc<PagedFile>,
        pages: impl IntoIterator<Item = (Address, PageKind)>,
    ) -> Result<bool> {
        let mut pages = pages.into_iter().peekable();
        while pages.peek().is_some() {
            let mut piece = Vec::new();
            let (mut piece_bytes, mut stored_bytes) = (0, 0);
            while let Some((at, _)) = pages.peek() {
                let bytes = at.memory_bytes();
                if !piece.is_empty() && piece_bytes + bytes > self.piece_bytes {
                    break;
                }
                piece_bytes += bytes;
                stored_bytes += u64::from(at.bytes);
                piece.extend(pages.next());
            }
            // One page may be more than a piece; more than a quarter of the cache is not worth what goes for it.
            if piece_bytes > self.session.cache().budget_bytes() / 4 {
                self.has_passed_over = true;
                continue;
            }
            // What a packed page takes shows when it is here: the limit is exceeded by what a piece unpacks to at most.
            if self.bytes + stored_bytes > self.most_bytes {
                return Ok(false);
            }
            self.bring_piece(file, &piece)?;
            if !(self.progress)(self.bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn bring_piece(&mut self, file: &Arc<PagedFile>, piece: &[(Address, PageKind)]) -> Result<()> {
        let session = &self.session;
        let mut here: Vec<PageRef> = Vec::with_capacity(piece.len());
        retry(session, || {
            here.clear();
            together(piece, |(at, kind)| {
                here.push(session.page(file.at(at, *kind))?);
                Ok(())
            })
        })?;
        for page in here {
            if file.is_kept() {
                session.cache().keep(&page);
            }
            // What serves many waits longer for its next use.
            session.cache().prove(&page, if page.kind().serves_many() { 2 } else { 0 });
            self.bytes += page.cost_bytes();
        }
        Ok(())
    }

    /// Pages read from disk so far.
    pub fn page_reads(&self) -> u64 {
        self.session.page_reads()
    }
}
