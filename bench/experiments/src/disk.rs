//! Disk reads and writes as the system counts them: in the same way for every engine, whatever the engine itself
//! reports.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "files of the system, never simulated")]

#[cfg(test)]
mod tests;

use harness::cost::processes::written_bytes;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Reads and writes of one disk since the system started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Completed reads, after the kernel has merged neighbouring ones.
    pub reads: u64,
    /// The bytes that were read.
    pub read_bytes: u64,
    /// The bytes that were written.
    pub written_bytes: u64,
}

impl DiskCounts {
    /// Reads the counters of the disk that holds `path`; `None` if the system does not report them.
    pub fn of(path: &Path) -> Option<Self> {
        let device = fs::metadata(path).ok()?.dev();
        Self::parse(&fs::read_to_string("/proc/diskstats").ok()?, device)
    }

    /// Parses the text of `/proc/diskstats`: major, minor, name, reads, reads merged, sectors read, milliseconds,
    /// writes, writes merged, sectors written, … A sector has 512 bytes there.
    fn parse(text: &str, device: u64) -> Option<Self> {
        // The C library's encoding of a device number.
        let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
        let minor = (device & 0xff) | (device >> 12 & !0xff);
        let line = text.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words.first()?.parse() == Ok(major) && words.get(1)?.parse() == Ok(minor)).then_some(words)
        })?;
        let number = |at: usize| line.get(at)?.parse::<u64>().ok();
        Some(Self { reads: number(3)?, read_bytes: number(5)? * 512, written_bytes: number(9)? * 512 })
    }

    /// The difference to `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }
}

/// Bytes that this process has read from disk so far, without reads that the page cache served; `None` if the system
/// does not report them.
pub fn read_by_this_process() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.trim().parse().ok()
}

/// Bytes that the system has written for this process so far, as [`written_bytes`] counts them; `None` if it does
/// not report them.
pub fn written_by_this_process() -> Option<u64> {
    written_bytes(&fs::read_to_string("/proc/self/io").ok()?)
}

/// Bytes that the system has written for this process since `before` was taken.
pub fn written_since(before: Option<u64>) -> Option<u64> {
    before.zip(written_by_this_process()).map(|(before, after)| after.saturating_sub(before))
}

/// Syncs the files under `folder` and drops them from the page cache.
pub fn forget(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            forget(&entry.path())?;
            continue;
        }
        let file = fs::File::open(entry.path())?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

/// Writes back all dirty pages of the file system that holds `folder`, so that the disk's counters attribute them
/// to the engine that wrote them and not to the next one.
pub fn write_back(folder: &Path) -> Result<(), String> {
    let synced = fs::File::open(folder).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
    synced.map_err(|error| format!("cannot sync the disk of {}: {error}", folder.display()))
}

/// The disk space that the files under `folder` take.
pub fn bytes_under(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => bytes_under(&entry.path()),
        Ok(about) => about.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}
