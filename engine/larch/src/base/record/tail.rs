//! Makes the end of a log durable that an earlier process wrote. This has to happen before another log states where
//! this log ends, and before a record is appended to this log. This module does not know what the records mean.

use super::{LogError, Result};
use os::{Access, Disk};
use std::ops::Range;
use std::path::Path;

/// Bytes that [`rewrite_tail`] copies at once.
const REWRITE_BYTES: u64 = 1 << 20;

/// Cuts a log to `tail.end`, and makes what is left of it durable. The tail is rewritten in place, so the call needs
/// no free disk space.
///
/// Nothing proves that the bytes in `tail` are durable. If an earlier process failed to sync them, the system may
/// still show them without ever writing them to disk, and another sync would succeed. So they are written again
/// before the sync.
///
/// # Errors
///
/// Fails if the file cannot be cut, read, written or synced.
pub fn rewrite_tail(disk: &dyn Disk, path: &Path, tail: Range<u64>) -> Result<()> {
    let io = |action| move |error| LogError::io(action, path, error);
    let file = disk.open(path, Access::Write).map_err(io("open"))?;
    file.set_len(tail.end).map_err(io("cut"))?;
    let mut bytes = vec![0; REWRITE_BYTES.min(tail.end - tail.start) as usize];
    let mut at = tail.start;
    while at < tail.end {
        let most = (tail.end - at).min(REWRITE_BYTES) as usize;
        let read = file.read_at(&mut bytes[..most], at).map_err(io("read"))?;
        if read == 0 {
            return Err(LogError::corrupt(path, at, "the file became shorter while it was recovered"));
        }
        file.write_at(&bytes[..read], at).map_err(io("write"))?;
        at += read as u64;
    }
    file.sync().map_err(io("sync"))
}
