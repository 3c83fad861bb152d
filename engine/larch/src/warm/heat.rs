//! The *heat* of a page tells how much it was used. The outputs of a compaction inherit the heat of its inputs: if
//! pages of the inputs were in memory, the output pages with the same keys are loaded before readers see the new
//! files, index nodes first. This module does not know what a compaction merges.
//!
//! ```text
//!   inputs   [ hot ][     ][  hot   ][ ]          pages in memory and how much they were used, by keys
//!                 ╲              │ ╲
//!   outputs  [    ][  ][    ][    ][    ]         a page of the inputs gives its heat in equal parts to the pages of the
//!     heat     1/2  1/2   0    1/2   1/2          outputs that share keys with it; the hottest pages are loaded
//! ```
//!
//! * The loaded pages may take about as much memory as those of the inputs: all their nodes, and the data pages that
//!   were used since they were loaded. Both numbers are raised by an eighth, because old and new pages do not match
//!   exactly. Data pages that replace unused ones are loaded only while the cache has free room.
//! * Before the install, readers still use the inputs. So all nodes are loaded then, but data pages only while the
//!   cache has free room, or up to a quarter of the cache. At the install the pages of the inputs leave the cache,
//!   and then the other data pages are loaded.
//! * A new page inherits from old pages with the same keys. Pages of rows, filters and range erases have keys. A page
//!   of a column group or of older versions has none, so it gets the keys of the main pages that begin within its
//!   rows. Its rows and theirs do not end at the same row, so its neighbours are loaded, too, while the cache has
//!   free room. Older versions of column groups, values outside pages, and the nodes above these inherit no heat.
//!   They are loaded when a reader asks for them.
//! * Errors in this module are ignored: a compaction must not fail because of a page that no reader needs yet. The
//!   reader that needs it later gets the error.

use super::loader::PageLoader;
use crate::core::Core;
use crate::manifest::{DbFile, Level};
use os::sync::Arc;
use pages::{Address, Loaded, PageKind, PageLender, Reason};
use sst::{KeyRange, KeyedSubtree, TreeKind, next_string};
use std::ops::Range;

/// The trees whose pages have the keys of rows. The main tree comes first, because it tells which keys the rows of a
/// file have.
const KEYED: [TreeKind; 3] = [TreeKind::Main, TreeKind::Filter, TreeKind::RangeErases];

/// The heat of a data page that was not used since it was loaded.
const UNUSED: f32 = 0.25;

/// The keys below a page that was in memory, and how much the page was used.
struct Hot {
    keys: KeyRange,
    heat: f32,
}

/// The pages of one tree of the inputs that were in memory.
#[derive(Default)]
struct TreeHeat {
    /// For each run of inputs, the lowest nodes, sorted by key.
    nodes: Vec<Vec<Hot>>,
    /// For each run of inputs, the data pages, sorted by key.
    data: Vec<Vec<Hot>>,
}

/// The heat of the inputs of a compaction.
#[derive(Default)]
pub struct InputHeat {
    /// The keyed trees, in the order of [`KEYED`].
    trees: [TreeHeat; KEYED.len()],
    /// The pages of older versions.
    history: TreeHeat,
    /// The pages of all column groups except the main group.
    groups: Vec<TreeHeat>,
    /// The most bytes for nodes and other pages that serve many reads.
    index_bytes: u64,
    /// The most bytes for data pages that replace ones that were used since they were loaded.
    data_bytes: u64,
    /// The most bytes for data pages that are loaded only while the cache has free room: those that replace unused
    /// pages, and neighbours in column groups.
    unused_bytes: u64,
}

/// The rows and keys of each data page in the main tree of a file, sorted, as far as the nodes above them are in
/// memory. Empty for a file without column groups and older versions.
#[derive(Default)]
struct RowKeys(Vec<(Range<u64>, KeyRange)>);

impl RowKeys {
    /// The keys of the rows in a page of `tree`, if they are known. A data page of the main tree is added to this
    /// list.
    fn keys_of(&mut self, file: &DbFile, tree: TreeKind, keyed: &KeyedSubtree) -> Option<KeyRange> {
        match tree {
            TreeKind::Main => {
                let meta = &file.sst.meta;
                if keyed.subtree.level == 0 && (!meta.groups.is_empty() || meta.history.get().is_some()) {
                    let rows = keyed.subtree.rows();
                    // Pages usually come in row order, so this usually appends.
                    let at = self.0.partition_point(|(page, _)| page.start < rows.start);
                    self.0.insert(at, (rows, keyed.keys.clone()));
                }
                Some(keyed.keys.clone())
            }
            TreeKind::Group(_) => self.of(&keyed.subtree.rows()),
            TreeKind::History => self.of(&main_rows(&keyed.keys)),
            _ => Some(keyed.keys.clone()),
        }
    }

    /// The keys of the main pages that begin within `rows` or, if none does, of the main page that contains `rows`.
    /// `None` if no such page is known. So two neighbouring pages of a group get the same keys only if one main page
    /// has all their rows.
    fn of(&self, rows: &Range<u64>) -> Option<KeyRange> {
        let from = self.0.partition_point(|(page, _)| page.start < rows.start);
        let to = self.0.partition_point(|(page, _)| page.start < rows.end);
        let pages = match &self.0[from..to] {
            [] => {
                let before = from.checked_sub(1)?;
                self.0.get(before..from).filter(|pages| pages[0].0.end > rows.start)?
            }
            pages => pages,
        };
        let (first, last) = (pages.first()?, pages.last()?);
        Some(KeyRange { start: first.1.start.clone(), end: last.1.end.clone() })
    }
}

/// A page of an output that may be loaded.
struct InheritedPage {
    heat: f32,
    file: usize,
    at: Address,
    kind: PageKind,
}

impl InputHeat {
    /// The heat of `runs`. The files of a run do not overlap. Nothing is read from disk, and no page counts as used
    /// because of this.
    pub fn of(core: &Core, runs: &[Level]) -> Self {
        let mut heat = Self::default();
        let loaded = Loaded::new(&core.env.cache);
        for run in runs {
            // Files from before the table was altered have fewer groups.
            let most_groups = run.iter().max_by_key(|file| file.sst.meta.groups.len());
            let groups = most_groups.into_iter().flat_map(|file| file.sst.meta.group_trees());
            let mut keys: Vec<RowKeys> = run.iter().map(|_| RowKeys::default()).collect();
            for tree in KEYED.into_iter().chain([TreeKind::History]).chain(groups) {
                let (mut nodes, mut data) = (Vec::new(), Vec::new());
                for (file, keys) in run.iter().zip(&mut keys) {
                    heat.gather(core, &loaded, (file, keys), tree, &mut nodes, &mut data);
                }
                let of_tree = heat.tree_mut(tree);
                of_tree.nodes.push(nodes);
                of_tree.data.push(data);
            }
        }
        heat.data_bytes += heat.data_bytes / 8;
        heat.unused_bytes += heat.unused_bytes / 8;
        heat.index_bytes += heat.index_bytes / 8;
        heat
    }

    fn tree_mut(&mut self, tree: TreeKind) -> &mut TreeHeat {
        if let Some(i) = KEYED.iter().position(|keyed| *keyed == tree) {
            return &mut self.trees[i];
        }
        if tree == TreeKind::History {
            return &mut self.history;
        }
        let TreeKind::Group(group) = tree else { unreachable!("pages of {tree:?} inherit nothing") };
        let group = usize::from(group - 1);
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, TreeHeat::default);
        }
        &mut self.groups[group]
    }

    fn gather(
        &mut self,
        core: &Core,
        loaded: &Loaded,
        (file, row_keys): (&DbFile, &mut RowKeys),
        tree: TreeKind,
        nodes: &mut Vec<Hot>,
        data: &mut Vec<Hot>,
    ) {
        let is_by_rows = matches!(tree, TreeKind::Group(_) | TreeKind::History);
        let mut left: Vec<KeyedSubtree> = top_of(file, tree).into_iter().collect();
        while let Some(keyed) = left.pop() {
            let Some(keys) = row_keys.keys_of(file, tree, &keyed) else { continue };
            let Some(page) = loaded.peek(file.sst.file.at(&keyed.subtree.address, keyed.kind)) else { continue };
            // If this page is damaged, its next reader reports that.
            let Ok(below) = file.sst.subtrees_below(tree, &keyed, &page) else { continue };
            left.extend(below.into_iter().rev());
            let heat = core.env.cache.heat_of(&page);
            // A page that has inherited its heat and was not used since has the `chances` `None` or 0.
            let is_unused = heat.uses == 0 && heat.chances.unwrap_or(0) == 0;
            let degrees = heat.degrees();
            let level = keyed.subtree.level;
            let is_data = level == 0 && (is_by_rows || tree == TreeKind::Main);
            *match (is_data, is_unused) {
                (false, _) => &mut self.index_bytes,
                (true, true) => &mut self.unused_bytes,
                (true, false) => &mut self.data_bytes,
            } += page.cost_bytes();
            if is_data && is_by_rows {
                // Reserves the same memory again for a neighbour of this page.
                self.unused_bytes += page.cost_bytes();
            }
            match level {
                0 if is_data && is_unused => data.push(Hot { keys, heat: UNUSED }),
                0 => data.push(Hot { keys, heat: f32::from(degrees.max(1)) }),
                1 => nodes.push(Hot { keys, heat: f32::from(degrees + 1) }),
                _ => {}
            }
        }
    }

    fn is_cold(&self) -> bool {
        self.index_bytes == 0 && self.data_bytes == 0 && self.unused_bytes == 0
    }
}

impl TreeHeat {
    /// Adds to `heats` what each new page inherits from `runs`. `keys` are the keys of consecutive new pages.
    fn add(runs: &[Vec<Hot>], keys: &[KeyRange], heats: &mut [f32]) {
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return };
        for run in runs {
            let ends_before = |hot: &Hot| !hot.keys.ends_after(&first.start);
            let begins_in_time = |hot: &Hot| last.ends_after(&hot.keys.start);
            let start = run.partition_point(ends_before);
            for hot in run[start..].iter().take_while(|hot| begins_in_time(hot)) {
                let from = keys.partition_point(|keys| !keys.ends_after(&hot.keys.start));
                let to = keys.partition_point(|keys| hot.keys.ends_after(&keys.start));
                for heat in heats.get_mut(from..to).unwrap_or_default() {
                    *heat += hot.heat / (to - from) as f32;
                }
            }
        }
    }

    /// The heat that each new page of `level` inherits. `keys` are the keys of consecutive new pages. A new node
    /// inherits from old nodes and from the data pages below them.
    fn of(&self, level: u8, keys: &[KeyRange]) -> Vec<f32> {
        let mut heats = vec![0.0; keys.len()];
        Self::add(&self.data, keys, &mut heats);
        if level > 0 {
            Self::add(&self.nodes, keys, &mut heats);
        }
        heats
    }
}

/// The pages that remain to be loaded after the install of the new files.
pub struct Rest {
    files: Vec<Arc<DbFile>>,
    data: Vec<InheritedPage>,
    data_bytes: u64,
}

/// Loads pages of the `new` files before readers see them, if they inherit heat from `runs`: index pages, and the
/// hottest data pages that there is room for. Returns the data pages to load after the install. Calls `new` only if a
/// page of `runs` has heat. The files of a run do not overlap.
pub fn inherit(core: &Core, runs: Vec<Level>, new: impl FnOnce() -> Vec<Arc<DbFile>>) -> Rest {
    let heat = InputHeat::of(core, &runs);
    // Drops the references to the old files now: a file that was removed from the database is deleted from disk only
    // when nobody refers to it.
    drop(runs);
    let mut rest = Rest { files: Vec::new(), data: Vec::new(), data_bytes: 0 };
    if heat.is_cold() {
        return rest;
    }
    rest.files = new();
    let mut go_on = |_| !core.background.is_closing();
    let mut loader = PageLoader::new(&core.env, Reason::Compaction, heat.most_index_bytes(&rest.files), &mut go_on);
    let Rest { files, data, .. } = &mut rest;
    let mut keys: Vec<RowKeys> = files.iter().map(|_| RowKeys::default()).collect();
    for (tree, of_tree) in KEYED.into_iter().zip(&heat.trees) {
        let pages = load_nodes(&mut loader, (files, &mut keys), tree, of_tree);
        if tree == TreeKind::Main {
            *data = pages;
        } else {
            load(&mut loader, files, pages);
        }
    }
    data.extend(load_nodes(&mut loader, (files, &mut keys), TreeKind::History, &heat.history));
    for (group, of_group) in (1..).zip(&heat.groups) {
        data.extend(load_nodes(&mut loader, (files, &mut keys), TreeKind::Group(group), of_group));
    }
    let (budget_bytes, free_bytes) = (core.env.cache.budget_bytes(), core.env.cache.free_bytes());
    let wanted_bytes = heat.data_bytes + heat.unused_bytes.min(free_bytes.saturating_sub(heat.data_bytes));
    let now_bytes = free_bytes.max(budget_bytes / 4).min(wanted_bytes);
    let now = hottest_first(data, now_bytes);
    let later = data.split_off(now);
    let before_bytes = loader.bytes;
    loader.allow(now_bytes);
    load(&mut loader, files, std::mem::replace(data, later));
    rest.data_bytes = wanted_bytes.saturating_sub(loader.bytes - before_bytes);
    rest
}

impl Rest {
    /// Loads the remaining pages after the install.
    pub fn load(self, core: &Core) {
        let Self { files, mut data, data_bytes } = self;
        let count = hottest_first(&mut data, data_bytes);
        data.truncate(count);
        let mut go_on = |_| !core.background.is_closing();
        let mut loader = PageLoader::new(&core.env, Reason::Compaction, data_bytes, &mut go_on);
        load(&mut loader, &files, data);
    }
}

impl InputHeat {
    /// The most bytes for nodes: what the nodes of the inputs took, plus the nodes on one path from the root of each
    /// tree in each new file.
    fn most_index_bytes(&self, files: &[Arc<DbFile>]) -> u64 {
        let way = |file: &DbFile, tree| {
            file.sst
                .top(tree)
                .map_or(0, |top: KeyedSubtree| 2 * u64::from(top.subtree.level) * top.subtree.address.memory_bytes())
        };
        let trees = |file: &DbFile| KEYED.into_iter().chain([TreeKind::History]).chain(file.sst.meta.group_trees());
        let ways = files.iter().map(|file| trees(file).map(|tree| way(file, tree)).sum::<u64>());
        self.index_bytes + ways.sum::<u64>()
    }
}

/// The rows whose older versions have `keys` in a file's history, where a key begins with the row's number in the
/// main tree. A separator may have only the first bytes of that number.
fn main_rows(keys: &KeyRange) -> Range<u64> {
    let row = |key: &[u8]| {
        let mut number = [0; 8];
        let bytes = key.len().min(number.len());
        number[..bytes].copy_from_slice(&key[..bytes]);
        u64::from_be_bytes(number)
    };
    row(&keys.start)..keys.end.as_ref().map_or(u64::MAX, |end| row(end).saturating_add(1))
}

/// The top page of a tree, with the keys that the tree may have: those within the bounds of its file, or all keys for
/// a history.
fn top_of(file: &DbFile, tree: TreeKind) -> Option<KeyedSubtree> {
    if tree == TreeKind::History {
        return file.sst.top(tree);
    }
    let bounds = file.sst.bounds();
    let end = bounds.high.as_ref().map(|high| next_string(high));
    Some(KeyedSubtree { keys: KeyRange { start: bounds.low.clone(), end }, ..file.sst.top(tree)? })
}

/// Loads the nodes of one tree in all files that have inherited heat, level by level, preferring the hottest nodes of
/// each level. Returns the data pages below the loaded nodes, each with its inherited heat. For the main tree, also
/// stores in `row_keys` which keys the rows of each file have, which the trees of groups need later.
fn load_nodes(
    loader: &mut PageLoader<'_>,
    (files, row_keys): (&[Arc<DbFile>], &mut [RowKeys]),
    tree: TreeKind,
    heat: &TreeHeat,
) -> Vec<InheritedPage> {
    let mut data = Vec::new();
    // The top pages belong to different files and are not consecutive, so the heat of each is computed separately.
    let mut level: Vec<(usize, KeyedSubtree, f32)> = Vec::new();
    for (file, of) in files.iter().enumerate() {
        if let Some(top) = top_of(of, tree)
            && let Some(keys) = row_keys[file].keys_of(of, tree, &top)
        {
            let heat = heat.of(top.subtree.level, &[keys])[0];
            level.push((file, top, heat));
        }
    }
    while !level.is_empty() {
        level.retain(|(.., heat)| *heat > 0.0);
        // Selects the hottest nodes that there is room for, and then loads them in file order.
        level.sort_by(|(.., a), (.., b)| b.total_cmp(a));
        let mut left_bytes = loader.most_bytes.saturating_sub(loader.bytes);
        let mut nodes = Vec::new();
        for (file, keyed, heat) in std::mem::take(&mut level) {
            if keyed.subtree.level == 0 {
                data.push(InheritedPage { heat, file, at: keyed.subtree.address, kind: keyed.kind });
            } else if u64::from(keyed.subtree.address.bytes) <= left_bytes {
                left_bytes -= u64::from(keyed.subtree.address.bytes);
                nodes.push((file, keyed));
            }
        }
        nodes.sort_by_key(|(file, keyed)| (*file, keyed.subtree.address));
        let page = |(file, keyed): &(usize, KeyedSubtree)| InheritedPage {
            heat: 0.0,
            file: *file,
            at: keyed.subtree.address,
            kind: keyed.kind,
        };
        let loaded_count = load(loader, files, nodes.iter().map(page).collect());
        for (file, keyed) in nodes.into_iter().take(loaded_count) {
            let Ok(below) = loader.below(&files[file].sst, tree, &keyed) else { continue };
            let with_keys = |keyed: KeyedSubtree| Some((row_keys[file].keys_of(&files[file], tree, &keyed)?, keyed));
            let (keys, below): (Vec<_>, Vec<_>) = below.into_iter().filter_map(with_keys).unzip();
            let heats = heat.of(keyed.subtree.level - 1, &keys);
            for (keyed, heat) in below.into_iter().zip(heats).filter(|(_, heat)| *heat > 0.0) {
                if keyed.subtree.level == 0 {
                    data.push(InheritedPage { heat, file, at: keyed.subtree.address, kind: keyed.kind });
                } else {
                    level.push((file, keyed, heat));
                }
            }
        }
    }
    data
}

/// Sorts pages by heat, hottest first. Returns how many of the first pages fit in `bytes` stored bytes together.
fn hottest_first(pages: &mut [InheritedPage], bytes: u64) -> usize {
    pages.sort_by(|a, b| b.heat.total_cmp(&a.heat).then((a.file, a.at).cmp(&(b.file, b.at))));
    let mut taken_bytes = 0;
    let fits = |page: &&InheritedPage| {
        taken_bytes += u64::from(page.at.bytes);
        taken_bytes <= bytes
    };
    pages.iter().take_while(fits).count()
}

/// Loads pages in file order until there is no room left or a page cannot be read. Returns how many of `pages` are
/// in files whose pages were all loaded.
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
