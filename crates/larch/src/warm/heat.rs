//! The outputs of a compaction inherit the heat of its inputs: if pages of the inputs were in memory, the pages of the outputs
//! with the same keys are loaded, index nodes first, before readers see the new files. It does not know what a compaction
//! merges.
//!
//! ```text
//!   inputs   [ hot ][     ][  hot   ][ ]          pages in memory and how much they were used, by keys
//!                 ╲              │ ╲
//!   outputs  [    ][  ][    ][    ][    ]         a page of the inputs gives its heat in equal parts to the pages of the
//!     heat     1/2  1/2   0    1/2   1/2          outputs that share keys with it; the hottest pages are loaded
//! ```
//!
//! * The loaded pages take about as much memory as those of the inputs did: data pages that were used since they were loaded,
//!   all nodes, and an eighth more of both, because pages do not match exactly.
//! * All nodes are loaded before the install, and data pages too while the cache has free room, or else up to a quarter of the
//!   cache: until the install readers use the inputs, whose pages leave the cache then. Other data pages are loaded after it.
//! * It follows the keys of rows, which filters and range erases have too. Older versions, parts of column groups, values
//!   outside pages, and the nodes above them are loaded when a reader asks for them.
//! * An error in here is ignored, because a compaction must not fail over a page that is only loaded early. The reader that
//!   needs the page meets the error and reports it.

use super::loader::PageLoader;
use crate::core::Core;
use crate::manifest::DbFile;
use crate::manifest::{Level, NewFile};
use os::sync::Arc;
use pages::{Address, Loaded, PageKind, PageSource, Reason};
use sst::{Branch, KeyRange, TreeKind};

/// The trees whose pages are found by keys of rows.
const KEYED: [TreeKind; 3] = [TreeKind::Main, TreeKind::Filter, TreeKind::RangeErases];

/// Keys under a page in memory, and how much it was used.
struct Hot {
    keys: KeyRange,
    heat: f32,
}

/// The pages of one tree of the inputs that were in memory.
#[derive(Default)]
struct TreeHeat {
    /// The lowest nodes, for each run of inputs, sorted by keys.
    nodes: Vec<Vec<Hot>>,
    /// The data pages, for each run of inputs, sorted by keys.
    data: Vec<Vec<Hot>>,
}

/// The heat of the inputs of a compaction.
pub struct InputHeat {
    /// In the order of [`KEYED`].
    trees: [TreeHeat; KEYED.len()],
    /// Memory for nodes, and for other pages that serve many reads, in bytes.
    index_bytes: u64,
    /// Memory for data pages, in bytes.
    data_bytes: u64,
}

/// A page of an output that may be loaded.
struct InheritedPage {
    heat: f32,
    file: usize,
    at: Address,
    kind: PageKind,
}

impl InputHeat {
    /// The heat of `runs`, each of files that do not overlap. It reads nothing from disk, and does not count as a use of the
    /// pages.
    pub fn of(core: &Core, runs: &[Level]) -> Self {
        let mut heat = Self { trees: Default::default(), index_bytes: 0, data_bytes: 0 };
        let loaded = Loaded::new(&core.env.cache);
        for (i, tree) in KEYED.into_iter().enumerate() {
            for run in runs {
                let (mut nodes, mut data) = (Vec::new(), Vec::new());
                for file in run.iter() {
                    heat.gather(core, &loaded, file, tree, &mut nodes, &mut data);
                }
                heat.trees[i].nodes.push(nodes);
                heat.trees[i].data.push(data);
            }
        }
        heat.data_bytes += heat.data_bytes / 8;
        heat.index_bytes += heat.index_bytes / 8;
        heat
    }

    fn gather(
        &mut self,
        core: &Core,
        loaded: &Loaded,
        file: &DbFile,
        tree: TreeKind,
        nodes: &mut Vec<Hot>,
        data: &mut Vec<Hot>,
    ) {
        let mut left: Vec<Branch> = file.sst.top(tree).into_iter().collect();
        while let Some(branch) = left.pop() {
            let Some(page) = loaded.peek(file.sst.file.at(&branch.subtree.address, branch.kind)) else { continue };
            // If the page is damaged, its next reader reports it.
            let Ok(below) = file.sst.branches(tree, &branch, &page) else { continue };
            left.extend(below.into_iter().rev());
            let degrees = core.env.cache.heat_of(&page).degrees();
            let Branch { keys, subtree, .. } = branch;
            if subtree.level > 0 || tree != TreeKind::Main {
                self.index_bytes += page.cost_bytes();
            }
            match subtree.level {
                0 if tree == TreeKind::Main && degrees == 0 => {}
                0 => {
                    if tree == TreeKind::Main {
                        self.data_bytes += page.cost_bytes();
                    }
                    data.push(Hot { keys, heat: f32::from(degrees.max(1)) });
                }
                1 => nodes.push(Hot { keys, heat: f32::from(degrees + 1) }),
                _ => {}
            }
        }
    }

    fn is_cold(&self) -> bool {
        self.index_bytes == 0 && self.data_bytes == 0
    }
}

impl TreeHeat {
    /// Adds to `heats` what `branches`, which lie one after the other, inherit from `runs`.
    fn add(runs: &[Vec<Hot>], branches: &[Branch], heats: &mut [f32]) {
        let (Some(first), Some(last)) = (branches.first(), branches.last()) else { return };
        for run in runs {
            let ends_before = |hot: &Hot| !hot.keys.ends_after(&first.keys.start);
            let begins_in_time = |hot: &Hot| last.keys.ends_after(&hot.keys.start);
            let start = run.partition_point(ends_before);
            for hot in run[start..].iter().take_while(|hot| begins_in_time(hot)) {
                let from = branches.partition_point(|branch| !branch.keys.ends_after(&hot.keys.start));
                let to = branches.partition_point(|branch| hot.keys.ends_after(&branch.keys.start));
                for heat in heats.get_mut(from..to).unwrap_or_default() {
                    *heat += hot.heat / (to - from) as f32;
                }
            }
        }
    }

    /// What each of `branches`, which lie one after the other, inherits. A node inherits from nodes and from the data below it.
    fn of(&self, branches: &[Branch]) -> Vec<f32> {
        let mut heats = vec![0.0; branches.len()];
        Self::add(&self.data, branches, &mut heats);
        if branches.first().is_some_and(|branch| branch.subtree.level > 0) {
            Self::add(&self.nodes, branches, &mut heats);
        }
        heats
    }
}

/// What is loaded after the install of the new files.
pub struct Rest {
    files: Vec<Arc<DbFile>>,
    data: Vec<InheritedPage>,
    data_bytes: u64,
}

/// Loads pages of the `new` files that inherit heat from `runs`. The files of one run do not overlap. The new files are
/// opened early. Index pages, and the hottest data pages that have room, are loaded before the install. Returns the data
/// pages that are to be loaded after it.
pub fn inherit(core: &Core, runs: Vec<Level>, new: &[NewFile]) -> Rest {
    let heat = InputHeat::of(core, &runs);
    // A file that was removed leaves the disk when the last reference to it is dropped.
    drop(runs);
    let mut rest = Rest { files: Vec::new(), data: Vec::new(), data_bytes: 0 };
    if heat.is_cold() {
        return rest;
    }
    for new in new {
        let file = core.env.opener.open_early(new);
        file.sst.file.keep(core.views.table_info(new.table).is_some_and(|info| info.options.in_memory));
        rest.files.push(file);
    }
    let mut go_on = |_| !core.background.is_closing();
    let mut loader =
        PageLoader::new(&core.env.cache, Reason::Compaction, heat.most_index_bytes(&rest.files), &mut go_on);
    let Rest { files, data, .. } = &mut rest;
    for (i, tree) in KEYED.into_iter().enumerate() {
        let pages = load_nodes(&mut loader, files, tree, &heat.trees[i]);
        if tree == TreeKind::Main {
            *data = pages;
        } else {
            load(&mut loader, files, pages);
        }
    }
    let budget_bytes = core.env.cache.budget_bytes();
    let room_bytes = budget_bytes.saturating_sub(core.env.cache.used_bytes()).max(budget_bytes / 4);
    let now_bytes = room_bytes.min(heat.data_bytes);
    let now = hottest_first(data, now_bytes);
    let later = data.split_off(now);
    let before_bytes = loader.bytes;
    loader.allow(now_bytes);
    load(&mut loader, files, std::mem::replace(data, later));
    rest.data_bytes = heat.data_bytes.saturating_sub(loader.bytes - before_bytes);
    rest
}

impl Rest {
    /// Loads the rest, after the install.
    pub fn load(self, core: &Core) {
        let Self { files, mut data, data_bytes } = self;
        let count = hottest_first(&mut data, data_bytes);
        data.truncate(count);
        let mut go_on = |_| !core.background.is_closing();
        let mut loader = PageLoader::new(&core.env.cache, Reason::Compaction, data_bytes, &mut go_on);
        load(&mut loader, &files, data);
    }
}

impl InputHeat {
    /// Most memory for nodes, in bytes: what the inputs had, and for each file one path down each tree.
    fn most_index_bytes(&self, files: &[Arc<DbFile>]) -> u64 {
        let way = |file: &Arc<DbFile>, tree| {
            file.sst
                .top(tree)
                .map_or(0, |top: Branch| 2 * u64::from(top.subtree.level) * top.subtree.address.memory_bytes())
        };
        let ways: u64 = files.iter().flat_map(|file| KEYED.map(|tree| way(file, tree))).sum();
        self.index_bytes + ways
    }
}

/// Loads the nodes of a tree of all files that have inherited something, level by level, the hottest of a level first. Returns
/// the data pages below the nodes that were loaded, with the heat that they inherit.
fn load_nodes(
    loader: &mut PageLoader<'_>,
    files: &[Arc<DbFile>],
    tree: TreeKind,
    heat: &TreeHeat,
) -> Vec<InheritedPage> {
    let mut data = Vec::new();
    // The tops of the trees are of different files, so each inherits alone.
    let mut level: Vec<(usize, Branch, f32)> = Vec::new();
    for (file, of) in files.iter().enumerate() {
        if let Some(top) = of.sst.top(tree) {
            let keys = KeyRange { start: of.sst.bounds().low.clone(), end: None };
            let top = Branch { keys, ..top };
            let heat = heat.of(std::slice::from_ref(&top))[0];
            level.push((file, top, heat));
        }
    }
    while !level.is_empty() {
        level.retain(|(.., heat)| *heat > 0.0);
        // It takes the hottest nodes that there is room for, and loads them in the order in which they lie in the files.
        level.sort_by(|(.., a), (.., b)| b.total_cmp(a));
        let mut left_bytes = loader.most_bytes.saturating_sub(loader.bytes);
        let mut nodes = Vec::new();
        for (file, branch, heat) in std::mem::take(&mut level) {
            if branch.subtree.level == 0 {
                data.push(InheritedPage { heat, file, at: branch.subtree.address, kind: branch.kind });
            } else if u64::from(branch.subtree.address.bytes) <= left_bytes {
                left_bytes -= u64::from(branch.subtree.address.bytes);
                nodes.push((file, branch));
            }
        }
        nodes.sort_by_key(|(file, branch)| (*file, branch.subtree.address));
        let page = |(file, branch): &(usize, Branch)| InheritedPage {
            heat: 0.0,
            file: *file,
            at: branch.subtree.address,
            kind: branch.kind,
        };
        let loaded_count = load(loader, files, nodes.iter().map(page).collect());
        for (file, branch) in nodes.into_iter().take(loaded_count) {
            let Ok(below) = loader.below(&files[file].sst, tree, &branch) else { continue };
            let heats = heat.of(&below);
            for (branch, heat) in below.into_iter().zip(heats).filter(|(_, heat)| *heat > 0.0) {
                if branch.subtree.level == 0 {
                    data.push(InheritedPage { heat, file, at: branch.subtree.address, kind: branch.kind });
                } else {
                    level.push((file, branch, heat));
                }
            }
        }
    }
    data
}

/// Sorts pages by their heat, hottest first, and returns how many from the front have at most `bytes` together as stored.
fn hottest_first(pages: &mut [InheritedPage], bytes: u64) -> usize {
    pages.sort_by(|a, b| b.heat.total_cmp(&a.heat).then((a.file, a.at).cmp(&(b.file, b.at))));
    let mut taken_bytes = 0;
    let fits = |page: &&InheritedPage| {
        taken_bytes += u64::from(page.at.bytes);
        taken_bytes <= bytes
    };
    pages.iter().take_while(fits).count()
}

/// Loads pages in the order in which they lie in the files, and stops when there is no more room. Returns how many pages of
/// the files that were finished.
fn load(loader: &mut PageLoader<'_>, files: &[Arc<DbFile>], mut pages: Vec<InheritedPage>) -> usize {
    pages.sort_by_key(|page| (page.file, page.at));
    let mut loaded_count = 0;
    for of_file in pages.chunk_by(|a, b| a.file == b.file) {
        let file = &files[of_file[0].file].sst.file;
        let found = loader.load(file, of_file.iter().map(|page| (page.at, page.kind)));
        if !matches!(found, Ok(true)) {
            break;
        }
        loaded_count += of_file.len();
    }
    loaded_count
}
