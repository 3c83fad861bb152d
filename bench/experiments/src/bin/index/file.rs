//! Builds single SSTs with the engine's own builder, and opens them over a cache of the caller's choice.

use crate::Result;
use kit::Scratch;
use os::sync::Arc;
use os::{Access, Disk, Machine};
use pages::{Admit, PageCache, PageKind, PageLender, Reason, Session, retry};
use sst::format::node::IndexNode;
use sst::{BuildOptions, Meta, RowKind, Sst, SstBuilder, Tree, Version};
use std::path::PathBuf;

/// An SST on disk, not open.
pub struct Lone {
    /// The path of the file.
    pub path: PathBuf,
    /// What a manifest would record about the file.
    pub meta: Meta,
}

impl Lone {
    /// Builds the file `name` from `rows`, whose keys must ascend.
    pub fn build<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        scratch: &Scratch,
        name: &str,
        options: BuildOptions,
        rows: impl Iterator<Item = (K, V)>,
    ) -> Result<Self> {
        let path = scratch.join(name);
        let file = Machine::real().disk.open(&path, Access::CreateDirect)?;
        let mut builder = SstBuilder::new(file, path.clone(), 7, options);
        for (key, value) in rows {
            builder.add(key.as_ref(), Version(1), RowKind::Put, &[value.as_ref()])?;
        }
        Ok(Self { path, meta: builder.finish()? })
    }

    /// Opens the file on `disk`, with its pages in `cache`. Reads nothing yet.
    pub fn open_on(&self, disk: Arc<dyn Disk>, cache: &Arc<PageCache>, prefer_flat: bool) -> Arc<Sst> {
        let file = cache.register(&self.path, self.meta.file_id, disk);
        Arc::new(Sst::new(file, self.meta.clone(), 0, prefer_flat))
    }

    /// [`Lone::open_on`] the real disk, with the B-tree.
    pub fn open(&self, cache: &Arc<PageCache>) -> Arc<Sst> {
        self.open_on(Machine::real().disk, cache, false)
    }

    /// The tree of newest versions.
    pub fn main(&self) -> Tree {
        self.meta.main.expect("the file was built with rows")
    }
}

/// A session for point reads, with normal cache admission.
pub fn point_session(cache: &Arc<PageCache>) -> Session {
    Session::new(cache, Reason::Point, Admit::Keep)
}

/// Loads the nodes of `sst` from the root down to level `lowest_level` into the cache, and returns their number. The
/// leaves of the index are level 1.
pub fn load_nodes(session: &Session, sst: &Sst, lowest_level: u8) -> Result<u64> {
    let root = sst.meta.main.and_then(|tree| tree.btree).ok_or("the file has no B-tree")?;
    let mut level = vec![root.address];
    let mut nodes = 0;
    for height in (lowest_level..=root.height).rev() {
        let mut below = Vec::new();
        for address in &level {
            let page = retry(session, || session.page(sst.file.at(address, PageKind::Index)))?;
            nodes += 1;
            if height > lowest_level {
                let node = IndexNode::new(&page);
                below.extend((0..node.children()).map(|i| node.address(i)));
            }
        }
        level = below;
    }
    Ok(nodes)
}
