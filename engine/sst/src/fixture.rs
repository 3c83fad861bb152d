//! Files for tests. This module makes a file on a simulated disk from rows, and every kind of source through which
//! the file can be read. It does not know what is tested.

use crate::KeyRange;
use crate::format::meta::{Meta, PageIndexKind, TreeKind};
use crate::format::node::IndexNode;
use crate::format::validate;
use crate::read::{RangeErase, Sst};
use crate::row::{RowKind, Until, Version};
use crate::write::{BuildOptions, Compression, SstBuilder};
use os::sim::SimDisk;
use os::sync::Arc;
use os::sync::atomic::{AtomicU64, Ordering};
use os::{Access, Disk, File};
use pages::{
    Address, Admit, Flaky, PageCache, PageKind, PageLender, PageRef, PageSource, PagedFile, Reason, Resident, Result,
    Session, Stop, retry,
};
use rand::{RngExt, rngs::StdRng};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Name of the file on its disk.
pub const PATH: &str = "7.sst";
/// The id of the file.
pub const ID: u64 = 0x1a2b_3c4d_5e6f_7081;

/// The version, the kind and the value of a row.
pub type Written = (u64, RowKind, Vec<u8>);

/// What a file holds, as a sorted map.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// Versions of each key, newest first.
    pub rows: BTreeMap<Vec<u8>, Vec<Written>>,
    /// The range erases in order. They do not overlap.
    pub range_erases: Vec<RangeErase>,
    /// The number of column groups beside the main one; see [`part`].
    pub groups: usize,
    /// Where the file says that it comes from. It is empty if the file says nothing.
    pub origin: Vec<u8>,
    /// Whether the file says that it has merges.
    pub notes_merges: bool,
}

/// The part that `written` has in column group `group`. It is made from the value of `written`; in group 0 it is
/// the value itself.
pub fn part((version, kind, value): &Written, group: usize) -> Vec<u8> {
    match group {
        _ if *kind == RowKind::Erase => Vec::new(),
        0 => value.clone(),
        // Some parts are empty, and some are as long as the value, so that large parts lie outside the page.
        1 if version % 7 == 0 => Vec::new(),
        1 => value.iter().rev().copied().collect(),
        _ => format!("part {group} of version {version}").into_bytes().repeat(1 + (*version % 3) as usize),
    }
}

/// The time of the version of a row that is there until a time. All these times are from 1 to [`LAST_UNTIL`].
pub fn until(version: u64) -> Until {
    Until::from_millis(1 + version * 7919 % LAST_UNTIL)
}

/// See [`until`].
pub const LAST_UNTIL: u64 = 1000;

/// A file on a disk of its own.
pub struct Built {
    pub disk: Arc<SimDisk>,
    pub meta: Meta,
    /// The version offset of every [`Sst`] that is made for this file.
    pub version_offset: u64,
}

/// Options with pages and nodes so small that a few dozen rows make a tall tree.
pub fn tiny() -> BuildOptions {
    BuildOptions { page_bytes: 256, node_bytes: 256, max_node_children: 3, max_page_rows: 2, ..BuildOptions::default() }
}

/// Options for every index and every compression, with tall and with flat trees.
pub fn shapes() -> Vec<BuildOptions> {
    let mut shapes = Vec::new();
    for (index, compression, max_node_children, max_page_rows) in [
        (PageIndexKind::Btree, Compression::Lz4, 3, 2),
        (PageIndexKind::Both, Compression::None, 4, 1),
        (PageIndexKind::Flat, Compression::ZSTD, 7, 2),
        (PageIndexKind::Both, Compression::Lz4, 7, 2),
        (PageIndexKind::Btree, Compression::ZSTD, 5, 3),
        (PageIndexKind::Both, Compression::None, 1000, 1000),
    ] {
        shapes.push(BuildOptions { index, compression, max_node_children, max_page_rows, ..tiny() });
    }
    shapes
}

impl Content {
    /// One put for each key, with versions 1, 2, 3 and so on.
    pub fn of_keys<K: Into<Vec<u8>>>(keys: impl IntoIterator<Item = K>) -> Self {
        let mut content = Self::default();
        for (i, key) in keys.into_iter().enumerate() {
            let written = (i as u64 + 1, RowKind::Put, format!("value {i}").into_bytes());
            content.rows.insert(key.into(), vec![written]);
        }
        content
    }

    /// Up to `keys` rows with versions 1 to 100. Some rows are erased, some have older versions, some have large
    /// values, and range erases lie between the rows. The keys are made of few different bytes, so that some keys
    /// are prefixes of others.
    pub fn random(rng: &mut StdRng, keys: usize) -> Self {
        let mut content = Self::default();
        let key = |rng: &mut StdRng| -> Vec<u8> {
            let len = rng.random_range(0..7);
            (0..len).map(|_| [0, 1, b'a', b'b', 0xff][rng.random_range(0..5)]).collect()
        };
        for _ in 0..keys {
            let mut versions: Vec<u64> =
                (0..rng.random_range(1..9_u64).saturating_sub(4).max(1)).map(|_| rng.random_range(1..=100)).collect();
            versions.sort_unstable_by(|a, b| b.cmp(a));
            versions.dedup();
            let written = versions.into_iter().map(|version| match rng.random_range(0..10) {
                0..3 => (version, RowKind::Erase, Vec::new()),
                3 => (version, RowKind::Put, vec![b'L'; rng.random_range(60..9_000)]),
                4 => (version, RowKind::Merge, b"operand".to_vec()),
                5 => (version, RowKind::PutUntil, (0..rng.random_range(0..20)).map(|_| rng.random()).collect()),
                _ => (version, RowKind::Put, (0..rng.random_range(0..20)).map(|_| rng.random()).collect()),
            });
            let written = written.collect();
            content.rows.insert(key(rng), written);
        }
        let mut borders: Vec<Vec<u8>> = (0..rng.random_range(0..16)).map(|_| key(rng)).collect();
        borders.sort_unstable();
        borders.dedup();
        let pairs = borders.as_chunks::<2>().0;
        for (i, [start, end]) in pairs.iter().enumerate() {
            let unbounded = i + 1 == pairs.len() && rng.random();
            let mut versions: Vec<Version> =
                (0..rng.random_range(1..4)).map(|_| Version(rng.random_range(1..=100))).collect();
            versions.sort_unstable_by(|a, b| b.cmp(a));
            versions.dedup();
            content.range_erases.push(RangeErase {
                keys: KeyRange { start: start.clone(), end: (!unbounded).then(|| end.clone()) },
                versions,
            });
        }
        content
    }

    /// What a read at `at` finds.
    pub fn get(&self, key: &[u8], at: u64) -> Option<&Written> {
        self.rows.get(key)?.iter().find(|(version, ..)| *version <= at)
    }

    /// Writes the file.
    pub fn build(&self, options: BuildOptions) -> Built {
        self.build_as(ID, options)
    }

    /// Writes the file with the given id, so that it can be read beside other files.
    pub fn build_as(&self, id: u64, options: BuildOptions) -> Built {
        let options = BuildOptions { groups: self.groups, ..options };
        let disk = SimDisk::new(1);
        let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
        let mut builder = SstBuilder::new(file, PATH.into(), id, options).with_origin(self.origin.clone());
        if self.notes_merges {
            builder.note_merges();
        }
        self.add_to(&mut builder);
        let meta = builder.finish().expect("there is room");
        Built { disk, meta, version_offset: 0 }
    }

    /// Adds everything. Each range erase is added just before the first row whose key is not less than the start
    /// of the erase.
    pub fn add_to(&self, builder: &mut SstBuilder) {
        let mut erases = self.range_erases.iter().peekable();
        let mut add_erases = |builder: &mut SstBuilder, before: Option<&[u8]>| {
            while let Some(RangeErase { keys, versions }) =
                erases.next_if(|erase| before.is_none_or(|key| erase.keys.start.as_slice() <= key))
            {
                builder.add_range_erase(keys, versions).expect("there is room");
            }
        };
        for (key, written) in &self.rows {
            add_erases(builder, Some(key));
            for written in written {
                let parts: Vec<Vec<u8>> = (0..=self.groups).map(|group| part(written, group)).collect();
                let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
                let version = Version(written.0);
                match written.1 {
                    RowKind::PutUntil => builder.add_until(key, version, until(written.0), &parts),
                    kind => builder.add(key, version, kind, &parts),
                }
                .expect("there is room");
            }
        }
        add_erases(builder, None);
    }
}

impl Built {
    /// The whole file.
    pub fn bytes(&self) -> Vec<u8> {
        self.disk.read_all(Path::new(PATH)).expect("no faults")
    }

    /// The file for reading outside pages.
    pub fn raw(&self) -> Arc<dyn File> {
        self.disk.open(Path::new(PATH), Access::Read).expect("the file is there")
    }

    fn sst_of(&self, file: Arc<PagedFile>, prefer_flat: bool) -> Arc<Sst> {
        Arc::new(Sst::new(file, self.meta.clone(), self.version_offset, prefer_flat))
    }

    /// The file outside every cache.
    pub fn sst(&self) -> Arc<Sst> {
        self.sst_of(PagedFile::alone(PATH, self.meta.file_id, Arc::clone(&self.disk) as Arc<dyn Disk>), false)
    }

    /// The file in a cache.
    pub fn sst_in(&self, cache: &Arc<PageCache>, prefer_flat: bool) -> Arc<Sst> {
        self.sst_of(cache.register(PATH, self.meta.file_id, Arc::clone(&self.disk) as Arc<dyn Disk>), prefer_flat)
    }

    /// Runs `read` with each kind of source and each index. What `read` asserts must hold for each of these
    /// sources.
    pub fn on_every_source(&self, mut read: impl FnMut(&Reader<'_>)) {
        for prefer_flat in [false, true] {
            let alone = || {
                self.sst_of(
                    PagedFile::alone(PATH, self.meta.file_id, Arc::clone(&self.disk) as Arc<dyn Disk>),
                    prefer_flat,
                )
            };
            let mut run_counted = |name: &str, sst: Arc<Sst>, rounds_a_page: u64, source: &dyn PageSource| {
                println!("source: {name}, {} index", if prefer_flat { "flat" } else { "B-tree" });
                read(&Reader { sst, source: Rounds::new(source), rounds_a_page });
            };
            let mut run = |name: &str, sst: Arc<Sst>, source: &dyn PageSource| run_counted(name, sst, 1, source);
            run("resident", alone(), &Resident::new(validate));
            let once = Flaky::once(Resident::new(validate));
            run("flaky, each page once a step", alone(), &once);
            assert!(once.refusals() > 0 || self.meta.trees().next().is_none(), "the flaky source was never flaky");
            for seed in 0..3 {
                let name = format!("flaky and forgetful, seed {seed}");
                run(&name, alone(), &Flaky::forgetful(Resident::new(validate), seed));
            }
            for (pages, admit) in [(1000, Admit::Keep), (3, Admit::Keep), (3, Admit::Pass)] {
                let cache = PageCache::new(pages * 4400, 2, validate);
                let session = Session::new(&cache, Reason::Point, admit);
                run(&format!("session, {pages} pages, {admit:?}"), self.sst_in(&cache, prefer_flat), &session);
            }
            let cache = PageCache::new(3 * 4400, 2, validate);
            let session = Session::new(&cache, Reason::Scan, Admit::Keep);
            // If the flaky source refuses a page that the session has, the session has not pinned it, so it may be
            // evicted.
            let sst = self.sst_in(&cache, prefer_flat);
            run_counted("flaky session", sst, 2, &Flaky::forgetful(session, 9));
        }
    }
}

/// A file and a source to read it through.
pub struct Reader<'a> {
    pub sst: Arc<Sst>,
    pub source: Rounds<'a>,
    /// How many rounds of fetching this source needs before it gives a missing page.
    rounds_a_page: u64,
}

impl Reader<'_> {
    /// Runs `step` to its end, which takes at most `rounds` rounds of fetching.
    pub fn step<T>(&self, rounds: u64, mut step: impl FnMut(&Rounds<'_>) -> Result<T, Stop>) -> T {
        let before = self.source.rounds.get();
        let outcome = retry(&self.source, || step(&self.source)).unwrap_or_else(|error| panic!("{error}"));
        let took = self.source.rounds.get() - before;
        let bound = rounds * self.rounds_a_page;
        assert!(took <= bound, "a step took {took} rounds of fetching, its bound is {bound}");
        outcome
    }
}

/// Counts rounds of fetching.
pub struct Rounds<'a> {
    source: &'a dyn PageSource,
    rounds: Cell<u64>,
}

impl<'a> Rounds<'a> {
    pub fn new(source: &'a dyn PageSource) -> Self {
        Self { source, rounds: Cell::new(0) }
    }

    /// Rounds so far.
    pub fn rounds(&self) -> u64 {
        self.rounds.get()
    }
}

impl PageLender for Rounds<'_> {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    pages::pass_on!(source: page, peek, ahead, ahead_if_spare, take_read, release);
}

impl PageSource for Rounds<'_> {
    fn fetch(&self) -> Result<()> {
        self.rounds.set(self.rounds.get() + 1);
        self.source.fetch()
    }

    pages::pass_on!(source: glance, ahead_bytes);
}

/// A node of a file's index.
pub struct SeenNode {
    pub tree: TreeKind,
    pub kind: PageKind,
    pub at: Address,
    /// Nodes above it.
    pub depth: u8,
    pub page: PageRef,
}

impl Built {
    /// Every node of every index, parents before children.
    pub fn nodes(&self) -> Vec<SeenNode> {
        let sst = self.sst();
        let source = Resident::new(validate);
        let mut nodes = Vec::new();
        for (tree, roots) in self.meta.trees() {
            for (kind, root) in [(PageKind::Index, roots.btree), (PageKind::Flat, roots.flat)] {
                let Some(root) = root.filter(|root| root.height > 0) else { continue };
                let mut waiting = vec![(root.address, 0)];
                while let Some((at, depth)) = waiting.pop() {
                    let page = retry(&source, || source.page(sst.file.at(&at, kind))).expect("the file is whole");
                    if depth + 1 < root.height {
                        let node = IndexNode::new(&page);
                        waiting.extend((0..node.children()).rev().map(|i| (node.address(i), depth + 1)));
                    }
                    nodes.push(SeenNode { tree, kind, at, depth, page });
                }
            }
        }
        nodes
    }
}

/// A file that keeps only its length, so that files can be built that do not fit in memory.
#[derive(Debug, Default)]
pub struct NullFile {
    len: AtomicU64,
}

impl File for NullFile {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.len.fetch_max(offset + bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn append(&self, _: &[u8]) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len.load(Ordering::Relaxed))
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn is_direct(&self) -> bool {
        true
    }
}
