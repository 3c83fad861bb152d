//! Copies files byte by byte, with a checksum of the whole file, or shares a file by a second name (a hard link)
//! where that is as good as a copy. This module does not know what is in the files.

use crate::base::error::{Error, Result};
use crate::base::watch::Watch;
use crc_fast::{CrcAlgorithm, Digest};
use os::{Access, Buffer, Disk, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// The number of bytes that are read and written at once, a multiple of the block size because of direct reads.
const CHUNK_BYTES: usize = 1 << 20;

/// The length of a whole file, and a checksum of all its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    pub bytes: u64,
    /// A CRC-64/NVME.
    pub checksum: u64,
}

/// Reads a file from start to end, and returns its length and checksum. Calls `tell` with the length of each chunk.
///
/// # Errors
///
/// Fails if the file cannot be read, or if `watch` has ended the work.
pub fn read_file(disk: &dyn Disk, path: &Path, watch: &Watch<'_>, tell: &mut dyn FnMut(u64)) -> Result<Content> {
    let file = disk.open(path, Access::ReadDirect).map_err(|error| Error::io("open", path, error))?;
    read_chunks((&*file, path), u64::MAX, watch, &mut |_, chunk| {
        tell(chunk.len() as u64);
        Ok(())
    })
}

/// Copies the first `bytes` of `from`, or all of it if it is shorter, to a new file `to`, and makes them durable.
/// Calls `tell` with the length of each chunk. After an error, the new file may exist.
///
/// # Errors
///
/// Fails if a file cannot be read or written, or if `watch` has ended the work.
pub fn copy_file(
    from: (&dyn File, &Path),
    bytes: u64,
    disk: &dyn Disk,
    to: &Path,
    watch: &Watch<'_>,
    tell: &mut dyn FnMut(u64),
) -> Result<Content> {
    let copy = disk.open(to, Access::CreateDirect).map_err(|error| Error::io("create", to, error))?;
    let content = read_chunks(from, bytes, watch, &mut |offset, chunk| {
        copy.write_at(chunk, offset).map_err(|error| Error::io("write", to, error))?;
        tell(chunk.len() as u64);
        Ok(())
    })?;
    copy.sync().map_err(|error| Error::io("sync", to, error))?;
    Ok(content)
}

/// Like [`copy_file`], but copies the whole file `from`, which may be on another disk.
///
/// # Errors
///
/// Fails as [`copy_file`] does.
pub fn copy_whole(
    (from_disk, from): (&dyn Disk, &Path),
    (to_disk, to): (&dyn Disk, &Path),
    watch: &Watch<'_>,
    tell: &mut dyn FnMut(u64),
) -> Result<Content> {
    let file = from_disk.open(from, Access::ReadDirect).map_err(|error| Error::io("open", from, error))?;
    copy_file((&*file, from), u64::MAX, to_disk, to, watch, tell)
}

/// Reads the first `bytes` of a file in chunks, and passes each chunk with its offset to `take`.
fn read_chunks(
    (file, path): (&dyn File, &Path),
    bytes: u64,
    watch: &Watch<'_>,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<Content> {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    let mut chunk = Buffer::zeroed(CHUNK_BYTES);
    let mut done = 0;
    // Never ask a store for bytes beyond the end of the file.
    let bytes = bytes.min(file.len().map_err(|error| Error::io("measure", path, error))?);
    while done < bytes {
        watch.check()?;
        let most = (bytes - done).min(CHUNK_BYTES as u64) as usize;
        let read = file.read_at(&mut chunk[..most], done).map_err(|error| Error::io("read", path, error))?;
        if read == 0 {
            break;
        }
        digest.update(&chunk[..read]);
        take(done, &chunk[..read])?;
        done += read as u64;
    }
    Ok(Content { bytes: done, checksum: digest.finalize() })
}

/// Makes `to` a second name of the file `from`, or a copy that shares its blocks (a reflink). Returns false if the
/// file system can do neither.
///
/// # Errors
///
/// Fails if the disk reports another error.
pub fn share_file(disk: &dyn Disk, from: &Path, to: &Path) -> Result<bool> {
    let is_shared = match disk.link(from, to) {
        Err(error) if cannot_share(&error) => disk.copy_sharing(from, to),
        linked => linked,
    };
    match is_shared {
        Ok(()) => Ok(true),
        // The caller will copy the file instead. If the directory does not allow writes, that fails, too, and says
        // so.
        Err(error) if cannot_share(&error) => Ok(false),
        Err(error) => {
            let is_lost = error.kind() == ErrorKind::NotFound && !disk.exists(from).unwrap_or(true);
            Err(Error::io("link", if is_lost { from } else { to }, error))
        }
    }
}

/// Whether the error means that the file cannot get a second name and has to be copied: it may be on another file
/// system, have too many names already, or belong to another user, or the file system may not support second names.
fn cannot_share(error: &io::Error) -> bool {
    use ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), CrossesDevices | PermissionDenied | TooManyLinks | Unsupported)
}
