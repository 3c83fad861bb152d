//! The control groups that limit the memory of this process, of version 2 and of version 1. This module does not know
//! the memory of the machine.
//!
//! ```text
//! /proc/self/cgroup    0::/shop/db           version 2: /sys/fs/cgroup/shop/db, and the groups above it
//!                      4:memory:/shop/db     version 1: /sys/fs/cgroup/memory/shop/db, and the groups above it
//! ```
//!
//! In a container, the path may be that of the host, while only the container's own group is mounted. So groups that
//! are not there are passed over, and the last one, at the place of the mount, is always tried.

use super::system_file::text;
use crate::free_memory::ScopeMemory;
use std::path::{Component, Path, PathBuf};

/// The names by which one version of control groups says what is used.
struct GroupFiles {
    /// Where the groups are mounted.
    mount: &'static str,
    /// Files with a limit in bytes. Version 2 holds back a group that exceeds `memory.high`, and ends processes of a
    /// group that exceeds `memory.max`.
    limits: &'static [&'static str],
    /// The file with the bytes in use.
    used: &'static str,
    /// The lines of `memory.stat` about cached files, which the system can free.
    cached: [&'static str; 2],
    /// The lines about those of their bytes that have to be written first.
    unwritten: [&'static str; 2],
}

const VERSION_2: GroupFiles = GroupFiles {
    mount: "sys/fs/cgroup",
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    cached: ["inactive_file", "active_file"],
    unwritten: ["file_dirty", "file_writeback"],
};

const VERSION_1: GroupFiles = GroupFiles {
    mount: "sys/fs/cgroup/memory",
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    cached: ["total_inactive_file", "total_active_file"],
    unwritten: ["total_dirty", "total_writeback"],
};

/// Adds the groups of this process whose limit is less than `machine_bytes`. The files lie under `root`. Returns
/// `None` if the process has no descriptor or no memory left for a file.
pub(super) fn read(root: &Path, machine_bytes: u64, scopes: &mut Vec<ScopeMemory>) -> Option<()> {
    let groups = text(&root.join("proc/self/cgroup"))?;
    for line in groups.lines() {
        let Some((files, path)) = parse_group(line) else { continue };
        for directory in directories(&root.join(files.mount), path) {
            scopes.extend(files.read(&directory, machine_bytes)?);
        }
    }
    Some(())
}

/// A line `number:controllers:path`, if it is about memory.
fn parse_group(line: &str) -> Option<(&'static GroupFiles, &Path)> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    match controllers {
        "" => Some((&VERSION_2, Path::new(path))),
        names if names.split(',').any(|name| name == "memory") => Some((&VERSION_1, Path::new(path))),
        _ => None,
    }
}

/// The directory of the group and of all groups above it.
fn directories(mount: &Path, path: &Path) -> Vec<PathBuf> {
    // Of a group outside of the container, the path begins with `/..`. Only the mount is known then.
    let is_inside = !path.components().any(|part| part == Component::ParentDir);
    let path = path.strip_prefix("/").ok().filter(|_| is_inside).unwrap_or(Path::new(""));
    path.ancestors().map(|group| mount.join(group)).collect()
}

impl GroupFiles {
    /// The group in `directory`, or `Some(None)` if it has no limit below `machine_bytes`. Returns `None` if the process
    /// has no descriptor or no memory left for a file.
    fn read(&self, directory: &Path, machine_bytes: u64) -> Option<Option<ScopeMemory>> {
        let number = |name: &str| Some(text(&directory.join(name))?.trim().parse::<u64>().ok());
        // The word `max` stands for no limit in version 2, and a huge number in version 1.
        let limits = self.limits.iter().map(|name| number(name)).collect::<Option<Vec<_>>>()?;
        let Some(total_bytes) = limits.into_iter().flatten().min().filter(|total| *total < machine_bytes) else {
            return Some(None);
        };
        // If a group has a limit and does not say what it uses, it has nothing free.
        let used_bytes = number(self.used)?.unwrap_or(total_bytes);
        let free_bytes = total_bytes.saturating_sub(used_bytes);
        let stat = text(&directory.join("memory.stat"))?;
        let sum = |names: [&str; 2]| names.iter().filter_map(|name| line_of(&stat, name)).fold(0, u64::saturating_add);
        let cached_bytes = sum(self.cached).saturating_sub(sum(self.unwritten));
        // If the group is above its limit, cached files have to make up for that first.
        let available_bytes = total_bytes.saturating_add(cached_bytes).saturating_sub(used_bytes).min(total_bytes);
        Some(Some(ScopeMemory { total_bytes, available_bytes, free_bytes }))
    }
}

/// The number in the line `name <number>`.
fn line_of(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.trim().parse().ok()
}
