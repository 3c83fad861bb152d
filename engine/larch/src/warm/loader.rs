//! Loads pages into the cache, a piece at a time, up to a byte limit. A loader loads index nodes first, then the
//! pages below them, and pins a page only until its whole piece has arrived. This module does not know which pages
//! are worth loading.
//!
//! At first the cache treats a loaded page as proven, as if readers had already used it. The page stays until the
//! eviction policy finds that no reader has.

use crate::base::error::Result;
use crate::core::environment::Environment;
use crate::manifest::DbFile;
use crate::view::ahead;
use os::sync::Arc;
use pages::{Address, Admit, Loaded, PageKind, PageLender, PageRef, PagedFile, Reason, Session};
use pages::{retry, together};
use sst::{KeyRange, KeyedSubtree, Sst, TreeKind};
use std::ops::Range;

/// The most bytes of a piece, the pages that are read together and pinned until all of them have arrived. In a small
/// cache, a piece has only a sixteenth of the budget. If reads take long, it has more, up to an eighth of the budget,
/// because the loader waits once for each piece.
const PIECE_BYTES: u64 = 1 << 20;

/// Which pages below a node are wanted.
enum WantedPages<'k> {
    Keys(&'k KeyRange),
    Rows(Range<u64>),
}

impl WantedPages<'_> {
    fn has(&self, keyed: &KeyedSubtree) -> bool {
        match self {
            Self::Keys(keys) => keys.overlaps(&keyed.keys),
            Self::Rows(rows) => keyed.subtree.rows().start < rows.end && rows.start < keyed.subtree.rows().end,
        }
    }
}

/// Which pages of a tree are loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TreePart {
    Nodes,
    Data,
}

/// Called with the bytes of all pages that the loader has loaded or found in memory so far. Returns whether to go on.
type Progress<'p> = &'p mut dyn FnMut(u64) -> bool;

/// Loads pages into the cache, a piece at a time.
pub struct PageLoader<'p> {
    session: Session,
    loaded: Loaded,
    piece_bytes: u64,
    /// The most bytes of pages that this loader loads or finds in memory.
    pub most_bytes: u64,
    /// The bytes of the pages that this loader has loaded or found in memory so far.
    pub bytes: u64,
    /// Whether this loader has skipped pages that are too large for the cache.
    pub has_skipped: bool,
    progress: Progress<'p>,
}

impl<'p> PageLoader<'p> {
    /// A loader for at most `most_bytes` of pages, which calls `progress` after each piece.
    pub fn new(env: &Environment, reason: Reason, most_bytes: u64, progress: Progress<'p>) -> Self {
        let (cache, budget_bytes) = (&env.cache, env.cache.budget_bytes());
        let near_bytes = PIECE_BYTES.min(budget_bytes / 16);
        Self {
            session: Session::new(cache, reason, Admit::Keep),
            loaded: Loaded::new(cache),
            piece_bytes: ahead::widened(env.machine.reads.latency(), near_bytes, budget_bytes / 8),
            most_bytes,
            bytes: 0,
            has_skipped: false,
            progress,
        }
    }

    /// Sets the limit to `more_bytes` beyond what was loaded so far.
    pub fn allow(&mut self, more_bytes: u64) {
        self.most_bytes = self.bytes + more_bytes;
    }

    /// Loads the pages of `files` within `keys`, first the nodes and then the data pages, of all trees that reads of
    /// newest versions use. Returns false if some pages had to be left out.
    ///
    /// # Errors
    ///
    /// [`Error::Page`](crate::Error::Page) if a page cannot be read.
    pub fn files(&mut self, files: &[Arc<DbFile>], keys: &KeyRange) -> Result<bool> {
        for part in [TreePart::Nodes, TreePart::Data] {
            for file in files.iter().filter(|file| file.sst.bounds().meets(keys)) {
                if !self.file(&file.sst, keys, part)? {
                    return Ok(false);
                }
            }
        }
        Ok(!self.has_skipped)
    }

    /// Loads only the nodes, as the first half of [`PageLoader::files`] does.
    ///
    /// # Errors
    ///
    /// [`Error::Page`](crate::Error::Page) if a node cannot be read.
    pub fn nodes(&mut self, files: &[Arc<DbFile>], keys: &KeyRange) -> Result<bool> {
        for file in files {
            if !self.file(&file.sst, keys, TreePart::Nodes)? {
                return Ok(false);
            }
        }
        Ok(true)
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

    /// The rows of the main tree within `keys`, rounded out to whole pages.
    fn rows(&mut self, sst: &Sst, keys: &KeyRange) -> Result<Range<u64>> {
        let Some(top) = sst.top(TreeKind::Main) else { return Ok(0..0) };
        let (mut first, mut last) = (top.clone(), top);
        while first.subtree.level > 0 {
            let below = self.below(sst, TreeKind::Main, &first)?;
            match below.into_iter().find(|keyed| keys.overlaps(&keyed.keys)) {
                Some(keyed) => first = keyed,
                None => return Ok(0..0),
            }
        }
        while last.subtree.level > 0 {
            let below = self.below(sst, TreeKind::Main, &last)?;
            match below.into_iter().rfind(|keyed| keys.overlaps(&keyed.keys)) {
                Some(keyed) => last = keyed,
                None => return Ok(0..0),
            }
        }
        Ok(first.subtree.rows().start..last.subtree.rows().end)
    }

    fn tree(&mut self, sst: &Sst, tree: TreeKind, wanted: &WantedPages<'_>, part: TreePart) -> Result<bool> {
        let Some(top) = sst.top(tree).filter(|top| wanted.has(top)) else { return Ok(true) };
        // The top of a tree may be a data page, which is then the whole tree.
        let is_part = (top.subtree.level == 0) == (part == TreePart::Data);
        if is_part && !self.load(&sst.file, [(top.subtree.address, top.kind)])? {
            return Ok(false);
        }
        self.under(sst, tree, &top, wanted, part)
    }

    /// Loads the pages under `keyed`, each node before the pages below it.
    fn under(
        &mut self,
        sst: &Sst,
        tree: TreeKind,
        keyed: &KeyedSubtree,
        wanted: &WantedPages<'_>,
        part: TreePart,
    ) -> Result<bool> {
        let no_nodes_below = keyed.subtree.level < 2;
        if keyed.subtree.level == 0 || no_nodes_below && part == TreePart::Nodes {
            return Ok(true);
        }
        let mut below = self.below(sst, tree, keyed)?;
        below.retain(|keyed| wanted.has(keyed));
        if no_nodes_below || part == TreePart::Nodes {
            let pages: Vec<(Address, PageKind)> =
                below.iter().map(|keyed| (keyed.subtree.address, keyed.kind)).collect();
            if !self.load(&sst.file, pages)? {
                return Ok(false);
            }
        }
        for keyed in &below {
            if !self.under(sst, tree, keyed, wanted, part)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The children of a node, which is loaded if it is not in memory. If it is in memory, it does not count as used.
    ///
    /// # Errors
    ///
    /// [`Error::Page`](crate::Error::Page) if the node cannot be read.
    pub fn below(&self, sst: &Sst, tree: TreeKind, keyed: &KeyedSubtree) -> Result<Vec<KeyedSubtree>> {
        let at = sst.file.at(&keyed.subtree.address, keyed.kind);
        let page = match self.loaded.peek(at) {
            Some(page) => page,
            None => retry(&self.session, || self.session.page(at))?,
        };
        Ok(sst.subtrees_below(tree, keyed, &page)?)
    }

    /// Loads pages of `file` in the given order. Skips pages that are too large for the cache. Returns false if
    /// another page had no room, or if `progress` has stopped the loader.
    ///
    /// # Errors
    ///
    /// [`Error::Page`](crate::Error::Page) if a page cannot be read.
    pub fn load(
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
            // A single page may be larger than a piece should be. But a page of more than a quarter of the cache is
            // not worth loading, because too many others would be evicted.
            if piece_bytes > self.session.cache().budget_bytes() / 4 {
                self.has_skipped = true;
                continue;
            }
            // The memory of a compressed page is known only after it is loaded. So the limit may be exceeded, but
            // only by the pages of one piece.
            if self.bytes + stored_bytes > self.most_bytes {
                return Ok(false);
            }
            self.load_piece(file, &piece)?;
            if !(self.progress)(self.bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn load_piece(&mut self, file: &Arc<PagedFile>, piece: &[(Address, PageKind)]) -> Result<()> {
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
            // Pages that serve many reads survive longer in the cache, even if no reader uses them.
            session.cache().prove(&page, if page.kind().serves_many() { 3 } else { 0 });
            self.bytes += page.cost_bytes();
        }
        Ok(())
    }

    /// The number of pages that this loader has read from disk.
    pub fn page_reads(&self) -> u64 {
        self.session.page_reads()
    }
}
