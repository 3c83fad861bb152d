//! The names of a simulated disk: as the process sees them (`live`), as they are on the platter (`durable`), and the
//! changes that have not reached the platter (`unsynced`). This module does not know what a file holds.

use super::content::Spared;
use super::random::Draws;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// A file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(pub(super) u64);

/// Where a name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimNode {
    File(FileId),
    Directory,
}

/// All names, without the roots `/` and the empty path, which always exist.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    live: BTreeMap<PathBuf, SimNode>,
    durable: BTreeMap<PathBuf, SimNode>,
    /// The unsynced changes of each directory, in order.
    unsynced: BTreeMap<PathBuf, Vec<Change>>,
    /// How often `live` was changed.
    changes: u64,
}

#[derive(Clone, Debug)]
enum Change {
    Link(PathBuf, SimNode),
    Unlink(PathBuf),
    Rename { from: PathBuf, to: PathBuf, node: SimNode },
}

impl Names {
    pub(super) fn get(&self, path: &Path) -> Option<SimNode> {
        if is_root(path) { Some(SimNode::Directory) } else { self.live.get(path).copied() }
    }

    /// Names directly in a directory, sorted.
    pub(super) fn within<'a>(&'a self, directory: &'a Path) -> impl Iterator<Item = (&'a Path, SimNode)> {
        self.live.iter().filter(move |(path, _)| parent(path) == directory).map(|(path, node)| (path.as_path(), *node))
    }

    /// Every file that has a name.
    pub(super) fn named(&self) -> BTreeSet<FileId> {
        self.live.values().filter_map(|node| node.file()).collect()
    }

    /// Every file that has a name, or may have one after a crash.
    pub(super) fn reachable(&self) -> BTreeSet<FileId> {
        let changes = self.unsynced.values().flatten().filter_map(|change| match change {
            Change::Link(_, node) | Change::Rename { node, .. } => node.file(),
            Change::Unlink(_) => None,
        });
        let named = self.live.values().chain(self.durable.values()).filter_map(|node| node.file());
        named.chain(changes).collect()
    }

    pub(super) fn link(&mut self, path: &Path, node: SimNode) {
        self.perform(Change::Link(path.to_owned(), node));
    }

    /// Adds a directory, and syncs its parent, so that the name is durable at once.
    pub(super) fn link_directory(&mut self, path: &Path) {
        self.link(path, SimNode::Directory);
        self.sync(parent(path));
    }

    pub(super) fn unlink(&mut self, path: &Path) {
        self.perform(Change::Unlink(path.to_owned()));
    }

    /// Renames a file. Both names are in one directory.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        let node = self.live[from];
        self.perform(Change::Rename { from: from.to_owned(), to: to.to_owned(), node });
    }

    /// A number that changes whenever the set of files with a name changes.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    fn perform(&mut self, change: Change) {
        self.changes += 1;
        change.apply(&mut self.live);
        self.unsynced.entry(parent(change.path()).to_owned()).or_default().push(change);
    }

    /// Whether a file has a name.
    pub(super) fn is_named(&self, file: FileId) -> bool {
        self.live.values().any(|node| node.file() == Some(file))
    }

    /// Moves a directory with everything in it, durably at once.
    pub(super) fn move_tree(&mut self, from: &Path, to: &Path) {
        for names in [&mut self.live, &mut self.durable] {
            *names = std::mem::take(names).into_iter().map(|(path, node)| (moved(&path, from, to), node)).collect();
        }
        let unsynced = std::mem::take(&mut self.unsynced).into_iter();
        self.unsynced = unsynced
            .map(|(directory, changes)| {
                (moved(&directory, from, to), changes.into_iter().map(|change| change.moved(from, to)).collect())
            })
            .collect();
    }

    /// Removes a directory with everything in it, durably at once.
    pub(super) fn remove_tree(&mut self, directory: &Path) {
        self.changes += 1;
        self.live.retain(|path, _| !path.starts_with(directory));
        self.durable.retain(|path, _| !path.starts_with(directory));
        self.unsynced.retain(|path, _| !path.starts_with(directory));
    }

    pub(super) fn sync(&mut self, directory: &Path) {
        for change in self.unsynced.remove(directory).unwrap_or_default() {
            change.apply(&mut self.durable);
        }
    }

    /// Crashes. A prefix of the unsynced changes of each directory survives, because directories are journaled in
    /// order. If a directory is gone, everything in it is gone, too.
    pub(super) fn crash(&mut self, spared: Spared, draws: &mut Draws) {
        for (_, changes) in std::mem::take(&mut self.unsynced) {
            let kept = match spared {
                Spared::Nothing => 0,
                Spared::Everything => changes.len(),
                Spared::Some => draws.below(changes.len() + 1),
            };
            for change in &changes[..kept] {
                change.apply(&mut self.durable);
            }
        }
        // In the map, a parent comes before its children.
        self.changes += 1;
        self.live.clear();
        for (path, node) in &self.durable {
            if self.get(parent(path)) == Some(SimNode::Directory) {
                self.live.insert(path.clone(), *node);
            }
        }
        self.durable.clone_from(&self.live);
    }
}

impl SimNode {
    pub(super) fn file(self) -> Option<FileId> {
        match self {
            SimNode::File(id) => Some(id),
            SimNode::Directory => None,
        }
    }
}

impl Change {
    fn path(&self) -> &Path {
        match self {
            Change::Link(path, _) | Change::Unlink(path) | Change::Rename { to: path, .. } => path,
        }
    }

    fn moved(self, from: &Path, to: &Path) -> Change {
        match self {
            Change::Link(path, node) => Change::Link(moved(&path, from, to), node),
            Change::Unlink(path) => Change::Unlink(moved(&path, from, to)),
            Change::Rename { from: old, to: new, node } => {
                Change::Rename { from: moved(&old, from, to), to: moved(&new, from, to), node }
            }
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, SimNode>) {
        match self {
            Change::Link(path, node) => {
                names.insert(path.clone(), *node);
            }
            Change::Unlink(path) => {
                names.remove(path);
            }
            Change::Rename { from, to, node } => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

/// What `path` becomes when the directory `from` is renamed to `to`.
pub(super) fn moved(path: &Path, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        // `to.join` with an empty path would add a slash at the end of `to`.
        Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
        Ok(rest) => to.join(rest),
        Err(_) => path.to_owned(),
    }
}

/// The normal spelling of a path: without `.`, without doubled slashes, and without a slash at the end.
pub(super) fn normal(path: &Path) -> PathBuf {
    path.components().filter(|component| !matches!(component, Component::CurDir)).collect()
}

/// The directory in which a name lies, which is not a root.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn is_root(path: &Path) -> bool {
    path.parent().is_none()
}
