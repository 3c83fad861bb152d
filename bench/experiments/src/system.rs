//! The system's count of bytes read from disk.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "files of the system, never simulated")]

use std::fs;

/// Bytes that this process has read from disk so far, without reads that the page cache served. `None` if the
/// system does not tell.
pub fn disk_bytes() -> Option<u64> {
    parse(&fs::read_to_string("/proc/self/io").ok()?)
}

fn parse(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.trim().parse().ok()
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
