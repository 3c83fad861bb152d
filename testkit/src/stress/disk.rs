//! The real disk with random failures injected.

use os::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use os::{Access, DirectoryEntry, Disk, File, Lock, Machine};
use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

/// The text of each injected error has this in it, so that tests recognize the error wherever it is reported.
pub const INJECTED: &str = "(injected)";

/// The disk of the machine, on which some reads, writes and opens fail, at rates that can be set for each of the
/// three.
#[derive(Debug)]
pub struct TroubledDisk {
    real: Arc<dyn Disk>,
    trouble: Arc<Trouble>,
}

/// For each kind of operation, one in this many fails, or none if it is 0.
#[derive(Debug)]
struct Trouble {
    reads: AtomicU32,
    writes: AtomicU32,
    opens: AtomicU32,
    random: AtomicU64,
}

impl Trouble {
    /// Returns a pseudorandom number, different for each call.
    fn draw(&self) -> u64 {
        let mut z = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn strike(&self, one_in: &AtomicU32, kind: ErrorKind, why: &str) -> io::Result<()> {
        let one_in = u64::from(one_in.load(Ordering::Relaxed));
        if one_in > 0 && self.draw().is_multiple_of(one_in) {
            return Err(io::Error::new(kind, format!("{why} {INJECTED}")));
        }
        Ok(())
    }

    fn strike_read(&self) -> io::Result<()> {
        self.strike(&self.reads, ErrorKind::Other, "the disk cannot read this")
    }

    fn strike_write(&self) -> io::Result<()> {
        self.strike(&self.writes, ErrorKind::StorageFull, "no space left on device")
    }

    fn strike_open(&self) -> io::Result<()> {
        self.strike(&self.opens, ErrorKind::Other, "too many open files")
    }
}

impl TroubledDisk {
    /// A disk without trouble.
    pub fn new(seed: u64) -> Self {
        let none = || AtomicU32::new(0);
        let trouble = Trouble { reads: none(), writes: none(), opens: none(), random: AtomicU64::new(seed) };
        Self { real: Machine::real().disk, trouble: Arc::new(trouble) }
    }

    /// From now on, one read in `one_in` fails.
    pub fn fail_reads(&self, one_in: u32) {
        self.trouble.reads.store(one_in, Ordering::Relaxed);
    }

    /// From now on, one write in `one_in` finds the disk full. Syncs still work.
    pub fn fail_writes(&self, one_in: u32) {
        self.trouble.writes.store(one_in, Ordering::Relaxed);
    }

    /// From now on, one open or creation in `one_in` fails because too many files are open.
    pub fn fail_opens(&self, one_in: u32) {
        self.trouble.opens.store(one_in, Ordering::Relaxed);
    }

    /// From now on everything works.
    pub fn works(&self) {
        for one_in in [&self.trouble.reads, &self.trouble.writes, &self.trouble.opens] {
            one_in.store(0, Ordering::Relaxed);
        }
    }
}

impl Disk for TroubledDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        self.trouble.strike_open()?;
        let file = self.real.open(path, access)?;
        // A read through the file's descriptor cannot be made to fail, so only about half of the files hand out
        // their descriptor.
        let gives_descriptor = self.trouble.draw().is_multiple_of(2);
        Ok(Arc::new(TroubledFile { file, trouble: self.trouble.clone(), gives_descriptor }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.trouble.strike_write()?;
        self.real.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.trouble.strike_write()?;
        self.real.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.real.remove(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.real.list(directory)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.real.exists(path)
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        self.real.create_dir(directory)
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        self.real.remove_dir(directory)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.real.sync_dir(directory)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.real.lock(path)
    }

    fn hold(&self, directory: &Path) -> io::Result<Option<Arc<dyn Disk>>> {
        let held = self.real.hold(directory)?;
        Ok(held.map(|real| Arc::new(Self { real, trouble: self.trouble.clone() }) as Arc<dyn Disk>))
    }
}

#[derive(Debug)]
struct TroubledFile {
    file: Arc<dyn File>,
    trouble: Arc<Trouble>,
    gives_descriptor: bool,
}

impl File for TroubledFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.trouble.strike_read()?;
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.trouble.strike_write()?;
        self.file.write_at(bytes, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        if let Err(error) = self.trouble.strike_write() {
            // A full disk takes a part of the bytes.
            let part = self.trouble.draw() as usize % (bytes.len() + 1);
            self.file.append(&bytes[..part])?;
            return Err(error);
        }
        self.file.append(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn allocate_ahead(&self, bytes: u64) -> io::Result<()> {
        if let Err(error) = self.trouble.strike_write() {
            // A full disk has room for a part of the bytes.
            self.file.allocate_ahead(bytes / 2)?;
            return Err(error);
        }
        self.file.allocate_ahead(bytes)
    }

    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor().filter(|_| self.gives_descriptor)
    }
}
