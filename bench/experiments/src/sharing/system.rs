//! What the system says: bytes from disk, room on a disk.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "files of the system, never simulated")]

use harness::Failure;
use std::fs;
use std::path::Path;

/// Bytes that this process had from disks so far, not from memory of the system; `None` where that is not told.
pub fn disk_bytes() -> Option<u64> {
    parse(&fs::read_to_string("/proc/self/io").ok()?)
}

fn parse(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.trim().parse().ok()
}

/// Complains if the disk of `place` has no room for `needed` bytes.
pub fn check_room(place: &Path, needed: u64) -> Result<(), Failure> {
    let about = rustix::fs::statvfs(place).map_err(|error| {
        Failure::session("target", format!("{}: {error}; name a directory with --dir", place.display()))
    })?;
    let room = about.f_bavail * about.f_frsize;
    if room >= needed {
        return Ok(());
    }
    let text = format!(
        "{} has room for {} MiB and this takes up to {} MiB: name a directory with more by --dir, or a smaller --scale",
        place.display(),
        room >> 20,
        needed >> 20
    );
    Err(Failure::session("target", text))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn bytes_of_the_disk_are_told_apart_from_bytes_read() {
        let text = "rchar: 324\nwchar: 0\nsyscr: 8\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 0\n";
        assert_eq!(parse(text), Some(4096));
        assert_eq!(parse("rchar: 324\n"), None);
    }
}
