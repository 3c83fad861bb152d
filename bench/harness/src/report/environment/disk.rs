//! The file system and the disk below a folder, as Linux reports them. What Linux does not report is empty.

#![allow(clippy::disallowed_methods, reason = "the machine is asked what it is")]

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// `ext4`, `xfs`, `tmpfs`, …
    pub kind: String,
    /// The options with which it is mounted: `rw,relatime,discard`.
    pub options: String,
}

/// A disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Its name in the system: `nvme0n1`. The name is empty if the file system is on no disk, or on several disks.
    pub name: String,
    /// The maker's name for the disk; empty for most virtual disks.
    pub model: String,
    /// Whether its platters turn. `None`: the system does not report it.
    pub rotational: Option<bool>,
    /// The kernel's scheduler for its requests: `none`, `mq-deadline`, …
    pub scheduler: String,
}

/// The number of a device, in the form of `/sys/dev/block`: `259:1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device(pub String);

/// The file system that holds `place`, and its device, from the lines of `/proc/self/mountinfo`.
pub fn mounted(mounts: &str, place: &Path) -> Option<(FileSystem, Device)> {
    let place = std::fs::canonicalize(place).ok()?;
    // A later mount covers an earlier one at the same place.
    let found = mounts.lines().filter_map(Mount::parsed).filter(|mount| place.starts_with(&mount.place));
    let mount = found.max_by_key(|mount| mount.place.components().count())?;
    Some((FileSystem { kind: mount.kind, options: mount.options }, mount.device))
}

/// A line of `/proc/self/mountinfo`.
struct Mount {
    place: PathBuf,
    kind: String,
    options: String,
    device: Device,
}

impl Mount {
    /// Parses a line of the form `id parent major:minor root place options [more …] - kind source options`.
    fn parsed(line: &str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let system: Vec<&str> = system.split(' ').collect();
        let mut options: Vec<&str> = Vec::new();
        for option in mount.get(5)?.split(',').chain(system.get(2)?.split(',')) {
            if !options.contains(&option) {
                options.push(option);
            }
        }
        Some(Self {
            place: PathBuf::from(unescaped(mount.get(4)?)),
            kind: (*system.first()?).to_owned(),
            options: options.join(","),
            device: Device((*mount.get(2)?).to_owned()),
        })
    }
}

/// In `/proc/self/mountinfo`, spaces and some other characters are written like `\\040`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'\\' && after.len() >= 3)
            .then(|| std::str::from_utf8(&after[..3]).ok().and_then(|digits| u8::from_str_radix(digits, 8).ok()))
            .flatten();
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Disk {
    /// The disk `device`, or the disk of which `device` is a part.
    pub fn of(device: &Device) -> Self {
        let folder = Path::new("/sys/dev/block").join(&device.0);
        let folder = (!device.0.is_empty()).then(|| std::fs::canonicalize(folder).ok()).flatten();
        folder.map(|folder| Self::in_folder(&folder)).unwrap_or_default()
    }

    /// Reads a disk from its folder in `/sys`, or from the folder of one of its partitions.
    fn in_folder(folder: &Path) -> Self {
        let folder = match folder.join("partition").exists() {
            true => folder.parent().unwrap_or(folder),
            false => folder,
        };
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default().trim().to_owned();
        Self {
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            model: text("device/model"),
            rotational: match text("queue/rotational").as_str() {
                "1" => Some(true),
                "0" => Some(false),
                _ => None,
            },
            scheduler: chosen(&text("queue/scheduler")),
        }
    }

    /// The disk in words: `nvme0n1, Model, does not rotate, scheduler none`. Empty if nothing is known.
    pub fn text(&self) -> String {
        let rotation = match self.rotational {
            Some(true) => "rotates",
            Some(false) => "does not rotate",
            None => "",
        };
        let scheduler = match self.scheduler.as_str() {
            "" => String::new(),
            name => format!("scheduler {name}"),
        };
        let parts = [self.name.as_str(), self.model.as_str(), rotation, scheduler.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// The word in brackets, for example `madvise` in `always [madvise] never`. If no word is in brackets, returns the
/// whole text.
pub fn chosen(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text.trim(), |(word, _)| word).to_owned()
}
