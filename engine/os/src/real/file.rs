//! An open file of the system, with positioned reads and writes, through the system's page cache or around it.
//!
//! A direct file has two descriptors. The direct one takes aligned blocks only. An unaligned read copies from an
//! aligned buffer, and an unaligned write goes through the buffered descriptor. A file that is only read opens its
//! buffered descriptor when it is first needed. The system keeps the two coherent: it writes cached pages to the disk
//! before a direct read, and drops them after a direct write. If a file system opens a file for direct I/O but then
//! refuses the I/O (`EINVAL`), the file uses the buffered descriptor from then on.

use super::guard::Guard;
use super::place::Place;
use crate::failure::cannot;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, OnceLock};
use crate::{Access, BLOCK_BYTES, Buffer, File};
use rustix::fs::OFlags;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// `allocate_ahead` does nothing if it is asked for more than one 16th of the free space, so that other files can
/// still grow.
#[cfg(target_os = "linux")]
const AHEAD_PART: u64 = 16;

/// The most memory that an unaligned direct read copies through.
const BOUNCE_BYTES: usize = 1 << 20;
const BLOCK: u64 = BLOCK_BYTES as u64;

/// An open file.
#[derive(Debug)]
pub(super) struct RealFile {
    /// The path at the time of opening, for messages only: the file may have been renamed since.
    path: PathBuf,
    /// A descriptor that takes any offset, length and address. It is set from the start, except in a direct file that
    /// is only read.
    buffered: OnceLock<fs::File>,
    direct: Option<Direct>,
    /// Held by an append while it looks up the end of the file and writes there.
    end: Mutex<()>,
    /// The lock file that must exist after a sync.
    guard: Option<Arc<Guard>>,
}

/// A descriptor that goes around the page cache.
#[derive(Debug)]
struct Direct {
    descriptor: fs::File,
    /// Whether the file system has refused direct I/O on the descriptor. The accesses are relaxed: a thread that sees
    /// the flag too late only tries direct I/O once more, and is refused again.
    refused: AtomicBool,
}

impl RealFile {
    /// Opens or creates a file.
    pub(super) fn open(place: &Place<'_>, access: Access) -> io::Result<RealFile> {
        let file = match access {
            Access::Read => RealFile::read(place),
            Access::ReadDirect => RealFile::read_direct(place),
            Access::Create => RealFile::create(place),
            Access::CreateDirect => RealFile::create_direct(place),
            Access::Write => RealFile::write(place),
        };
        let action = if matches!(access, Access::Create | Access::CreateDirect) { "create" } else { "open" };
        file.map_err(|error| cannot(action, place.path, error))
    }

    /// Opens an existing file for reading through the page cache.
    fn read(place: &Place<'_>) -> io::Result<RealFile> {
        Ok(RealFile::new(place, Some(place.open(OFlags::RDONLY)?), None))
    }

    /// Opens an existing file for reading around the page cache, or through it if the file system has no direct I/O.
    fn read_direct(place: &Place<'_>) -> io::Result<RealFile> {
        match open_around_cache(place, OFlags::RDONLY)? {
            Some(descriptor) => Ok(RealFile::new(place, None, Some(descriptor))),
            None => RealFile::read(place),
        }
    }

    /// Creates a file that is written and read through the page cache.
    fn create(place: &Place<'_>) -> io::Result<RealFile> {
        let descriptor = place.open(OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        Ok(RealFile::new(place, Some(descriptor), None))
    }

    /// Creates a file that is written and read around the page cache, or through it if the file system has no direct
    /// I/O. The creation itself is not direct, because a file system that refuses direct I/O would leave the new file
    /// behind.
    fn create_direct(place: &Place<'_>) -> io::Result<RealFile> {
        let created = place.open(OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        let direct = open_around_cache(place, OFlags::RDWR)?;
        Ok(RealFile::new(place, Some(created), direct))
    }

    /// Opens an existing file for reading and writing through the page cache.
    fn write(place: &Place<'_>) -> io::Result<RealFile> {
        Ok(RealFile::new(place, Some(place.open(OFlags::RDWR)?), None))
    }

    fn new(place: &Place<'_>, buffered: Option<fs::File>, direct: Option<fs::File>) -> RealFile {
        RealFile {
            path: place.path.to_owned(),
            buffered: buffered.map(OnceLock::from).unwrap_or_default(),
            direct: direct.map(|descriptor| Direct { descriptor, refused: AtomicBool::new(false) }),
            end: Mutex::new(()),
            guard: None,
        }
    }

    /// Makes the syncs of the file fail once the lock file that guards its directory is gone.
    pub(super) fn guarded_by(self, guard: Option<Arc<Guard>>) -> RealFile {
        RealFile { guard, ..self }
    }

    /// Either of the two descriptors, for calls that do not access bytes.
    fn descriptor(&self) -> &fs::File {
        match &self.direct {
            Some(direct) => &direct.descriptor,
            None => self.buffered.get().expect("a file that is not direct is opened buffered"),
        }
    }

    fn buffered(&self) -> io::Result<&fs::File> {
        if let Some(file) = self.buffered.get() {
            return Ok(file);
        }
        // The file is opened through its descriptor, not its path, because it may have been renamed or removed since.
        let file = fs::File::open(format!("/proc/self/fd/{}", self.descriptor().as_raw_fd()))?;
        Ok(self.buffered.get_or_init(|| file))
    }

    fn read_through_cache(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let file = self.buffered()?;
        fill(buffer, |rest, done| file.read_at(rest, offset + done as u64))
    }
}

impl Direct {
    fn is_usable(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }

    /// Returns `None` if `done` says that the file system refuses direct I/O, and otherwise `done`.
    fn unless_refused<T>(&self, done: io::Result<T>) -> io::Result<Option<T>> {
        match done {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.refused.store(true, Ordering::Relaxed);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads any range, as [`File::read_at`] does.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if is_aligned(buffer, offset) {
            return self.read_blocks(buffer, offset);
        }
        let mut bounce = Buffer::zeroed(BOUNCE_BYTES.min(buffer.len() + 2 * BLOCK_BYTES));
        let mut done = 0;
        while done < buffer.len() {
            let position = offset + done as u64;
            let skip = (position % BLOCK) as usize;
            let wanted = (skip + buffer.len() - done).next_multiple_of(BLOCK_BYTES).min(bounce.capacity());
            bounce.set_len_within_capacity(wanted);
            let read = self.read_blocks(&mut bounce, position - skip as u64)?;
            let bytes = &bounce[skip.min(read)..read];
            let copied = bytes.len().min(buffer.len() - done);
            buffer[done..done + copied].copy_from_slice(&bytes[..copied]);
            done += copied;
            if read < wanted {
                break;
            }
        }
        Ok(done)
    }

    /// Reads whole blocks into an aligned buffer, and returns the number of bytes, which is less than `buffer.len()`
    /// only at the end of the file.
    fn read_blocks(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            // A short read may end within a block, where the next read cannot begin. So the next read repeats this
            // block. If it returns no further bytes, the file ends in this block.
            let block = done - done % BLOCK_BYTES;
            let read = retried(|| self.descriptor.read_at(&mut buffer[block..], offset + block as u64))?;
            if block + read <= done {
                break;
            }
            done = block + read;
        }
        Ok(done)
    }

    /// Writes whole blocks from an aligned address.
    fn write_blocks(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let written = retried(|| self.descriptor.write_at(&bytes[done..], offset + done as u64))?;
            if written < BLOCK_BYTES {
                return Err(io::ErrorKind::WriteZero.into());
            }
            // A partly written block is written again, because its rest is not aligned.
            done += written - written % BLOCK_BYTES;
        }
        Ok(())
    }
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = || {
            if let Some(direct) = self.direct.as_ref().filter(|direct| direct.is_usable())
                && let Some(read) = direct.unless_refused(direct.read_at(buffer, offset))?
            {
                return Ok(read);
            }
            self.read_through_cache(buffer, offset)
        };
        read().map_err(|error| cannot("read", &self.path, error))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let write = || {
            if let Some(direct) = self.direct.as_ref().filter(|direct| direct.is_usable())
                && is_aligned(bytes, offset)
                && direct.unless_refused(direct.write_blocks(bytes, offset))?.is_some()
            {
                return Ok(());
            }
            // `write_all_at` repeats writes that were interrupted or short.
            self.buffered()?.write_all_at(bytes, offset)
        };
        write().map_err(|error| cannot("write", &self.path, error))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let _end = self.end.lock();
        let offset = self.len()?;
        self.write_at(bytes, offset)?;
        Ok(offset)
    }

    /// Calls `fdatasync`, which makes the length durable, but not times and owners. It covers the whole file,
    /// including bytes that were written through the other descriptor.
    fn sync(&self) -> io::Result<()> {
        let synced = self.descriptor().sync_data();
        let kept = |()| self.guard.as_ref().map_or(Ok(()), |guard| guard.check());
        synced.and_then(kept).map_err(|error| cannot("sync", &self.path, error))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.descriptor().metadata().map_err(|error| cannot("measure", &self.path, error))?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.descriptor().set_len(bytes).map_err(|error| cannot("resize", &self.path, error))
    }

    #[cfg(target_os = "linux")]
    fn allocate_ahead(&self, bytes: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
        use rustix::io::Errno;
        let of_disk =
            fstatvfs(self.descriptor()).map_err(|error| cannot("measure the disk of", &self.path, error.into()))?;
        if of_disk.f_bavail.saturating_mul(of_disk.f_frsize) / AHEAD_PART < bytes {
            return Ok(());
        }
        match fallocate(self.descriptor(), FallocateFlags::KEEP_SIZE, 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
            done => done.map_err(|error| cannot("allocate", &self.path, error.into())),
        }
    }

    #[cfg(target_os = "linux")]
    fn allocate(&self, bytes: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(self.descriptor(), FallocateFlags::empty(), 0, bytes) {
            // The file system cannot reserve space, so zeros are written.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                let end = self.len()?;
                let rest = usize::try_from(bytes.saturating_sub(end)).expect("what is allocated fits in memory");
                self.write_at(&vec![0; rest], end)
            }
            done => done.map_err(|error| cannot("allocate", &self.path, error.into())),
        }
    }

    fn is_direct(&self) -> bool {
        self.direct.as_ref().is_some_and(Direct::is_usable)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.direct {
            Some(direct) if direct.is_usable() => Some(direct.descriptor.as_fd()),
            _ => self.buffered.get().map(AsFd::as_fd),
        }
    }
}

/// Opens a file for direct I/O. `None` if the file system has no direct I/O.
#[cfg(target_os = "linux")]
fn open_around_cache(place: &Place<'_>, flags: OFlags) -> io::Result<Option<fs::File>> {
    match place.open(flags | OFlags::DIRECT) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
        Err(error) => Err(error),
    }
}

/// Other systems have no `O_DIRECT`.
#[cfg(not(target_os = "linux"))]
fn open_around_cache(_place: &Place<'_>, _flags: OFlags) -> io::Result<Option<fs::File>> {
    Ok(None)
}

/// Whether direct I/O can read or write `bytes` at `offset`.
fn is_aligned(bytes: &[u8], offset: u64) -> bool {
    offset.is_multiple_of(BLOCK)
        && bytes.len().is_multiple_of(BLOCK_BYTES)
        && bytes.as_ptr().addr().is_multiple_of(BLOCK_BYTES)
}

/// Calls `read` until the buffer is full or the file ends. Each call gets the rest of the buffer, and the number of
/// bytes that are filled.
fn fill(buffer: &mut [u8], read: impl Fn(&mut [u8], usize) -> io::Result<usize>) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match retried(|| read(&mut buffer[done..], done))? {
            0 => break,
            more => done += more,
        }
    }
    Ok(done)
}

/// Repeats `call` while it is interrupted by signals.
fn retried(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
