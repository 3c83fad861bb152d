//! For tests: a file of numbered pages on a simulated disk, and a disk that reports its reads.

use crate::flaky::SplitMix;
use crate::page_key::PageKey;
use crate::{
    Address, Compression, HEADER_BYTES, Packing, PageCache, PageKind, PageRef, PageSource, PagedFile, Result, Stop,
    encode_page,
};
use os::sim::{SimDisk, SimReads};
use os::sync::{Arc, Condvar, Mutex};
use os::{Access, DirectoryEntry, Disk, File, Lock, Machine, Reads};
use std::fmt;
use std::io;
use std::path::Path;

/// Name of the file.
pub const PATH: &str = "numbered";

/// Id of the file.
pub const ID: u64 = 0x5EED_CAFE;

/// The payload that fills a page of one block.
pub const BLOCK_PAYLOAD: usize = os::BLOCK_BYTES - HEADER_BYTES;

/// What a page of one block costs in memory.
pub const BLOCK_COST: u64 = os::BLOCK_BYTES as u64 + crate::cost::FRAME_BYTES;

/// A file of numbered pages.
pub struct Numbered {
    pub disk: Arc<SimDisk>,
    pub pages: Vec<(PageKind, Address)>,
    payload_bytes: usize,
}

impl Numbered {
    /// Data pages of one block each.
    pub fn blocks(count: usize) -> Self {
        Self::of_kinds(&vec![PageKind::Data; count])
    }

    /// Pages of one block each, of these kinds.
    pub fn of_kinds(kinds: &[PageKind]) -> Self {
        Self::write(kinds, BLOCK_PAYLOAD, Compression::None, Packing::Block)
    }

    /// Pages of the given kinds, one after the other.
    pub fn write(kinds: &[PageKind], payload_bytes: usize, compression: Compression, packing: Packing) -> Self {
        let disk = SimDisk::new(0);
        let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
        let mut pages = Vec::new();
        let mut offset = 0;
        for (number, kind) in kinds.iter().enumerate() {
            let mut page = vec![0; HEADER_BYTES];
            page.extend(payload(number, payload_bytes));
            let at = encode_page(&mut page, (*kind, 0), compression, packing, ID, offset);
            assert_eq!(file.append(&page).expect("the disk has room"), offset);
            offset = at.end();
            pages.push((*kind, at));
        }
        Self { disk, pages, payload_bytes }
    }

    /// The file in a cache.
    pub fn register(&self, cache: &Arc<PageCache>) -> Arc<PagedFile> {
        cache.register(PATH, ID, Arc::clone(&self.disk) as Arc<dyn Disk>)
    }

    /// The file in a cache. Its reads are held back until the test ends them.
    pub fn register_held(&self, cache: &Arc<PageCache>, reads: &Arc<SimReads>) -> Arc<PagedFile> {
        self.register_reading(cache, reads.clone())
    }

    /// The file in a cache. `reads` makes its reads.
    pub fn register_reading(&self, cache: &Arc<PageCache>, reads: Arc<dyn Reads>) -> Arc<PagedFile> {
        let machine = Machine { reads, ..Machine::simulated_on(Arc::clone(&self.disk), 0) };
        cache.register_on(PATH, ID, &machine)
    }

    /// The file outside every cache.
    pub fn alone(&self) -> Arc<PagedFile> {
        PagedFile::alone(PATH, ID, Arc::clone(&self.disk) as Arc<dyn Disk>)
    }

    /// Asks for a page and checks the bytes.
    pub fn page(&self, source: &impl PageSource, file: &Arc<PagedFile>, number: usize) -> Result<PageRef, Stop> {
        let (kind, at) = self.pages[number];
        let page = source.page(file.at(&at, kind))?;
        self.check(number, &page[HEADER_BYTES..]);
        Ok(page)
    }

    /// Peeks at a page and checks the bytes.
    pub fn peek(&self, source: &impl PageSource, file: &Arc<PagedFile>, number: usize) -> Option<PageRef> {
        let (kind, at) = self.pages[number];
        let page = source.peek(file.at(&at, kind))?;
        self.check(number, &page[HEADER_BYTES..]);
        Some(page)
    }

    /// Checks the payload of a page.
    pub fn check(&self, number: usize, found: &[u8]) {
        assert!(*found == payload(number, self.payload_bytes), "page {number} has the wrong bytes");
    }

    /// Asks for a page ahead, and returns whether the page was noted.
    pub fn ahead(&self, source: &impl PageSource, file: &Arc<PagedFile>, number: usize) -> bool {
        let (kind, at) = self.pages[number];
        source.ahead(file.at(&at, kind))
    }

    /// Whether a page is in the cache's memory.
    pub fn is_resident(&self, cache: &PageCache, file: &PagedFile, number: usize) -> bool {
        cache.find(self.key(file, number), false).is_some()
    }

    /// The cache's key of a page.
    pub fn key(&self, file: &PagedFile, number: usize) -> PageKey {
        PageKey::new(file.slot(), &self.pages[number].1)
    }
}

/// Bytes that compress well. All of them depend on the page's number, so two pages differ in more than one place.
fn payload(number: usize, bytes: usize) -> Vec<u8> {
    let word = SplitMix(number as u64).next().to_le_bytes();
    word.iter().copied().cycle().take(bytes).collect()
}

/// Accepts every page: the numbered pages have no structure to check.
pub fn accept(_: PageKind, _: &[u8]) -> Result<(), String> {
    Ok(())
}

/// A function that is called before each read.
type Hook = Arc<dyn Fn() + Send + Sync>;

/// Passes reads on to a simulated disk, but reports each read first.
struct Watched<T: ?Sized> {
    watched: Arc<T>,
    before_read: Hook,
}

/// A disk that calls `before_read` before each read.
pub fn watched(disk: &Arc<SimDisk>, before_read: impl Fn() + Send + Sync + 'static) -> Arc<dyn Disk> {
    Arc::new(Watched { watched: Arc::clone(disk), before_read: Arc::new(before_read) })
}

impl<T: ?Sized> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

const READS_ONLY: &str = "a source of pages opens and reads files and does nothing else";

impl Disk for Watched<SimDisk> {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let watched = self.watched.open(path, access)?;
        Ok(Arc::new(Watched { watched, before_read: Arc::clone(&self.before_read) }))
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        unreachable!("{READS_ONLY}")
    }
    fn link(&self, _: &Path, _: &Path) -> io::Result<()> {
        unreachable!("{READS_ONLY}")
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        unreachable!("{READS_ONLY}")
    }
    fn list(&self, _: &Path) -> io::Result<Vec<DirectoryEntry>> {
        unreachable!("{READS_ONLY}")
    }
    fn exists(&self, _: &Path) -> io::Result<bool> {
        unreachable!("{READS_ONLY}")
    }
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        unreachable!("{READS_ONLY}")
    }
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        unreachable!("{READS_ONLY}")
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        unreachable!("{READS_ONLY}")
    }
    fn lock(&self, _: &Path) -> io::Result<Box<dyn Lock>> {
        unreachable!("{READS_ONLY}")
    }
}

impl File for Watched<dyn File> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (self.before_read)();
        self.watched.read_at(buffer, offset)
    }
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        unreachable!("{READS_ONLY}")
    }
    fn append(&self, _: &[u8]) -> io::Result<u64> {
        unreachable!("{READS_ONLY}")
    }
    fn sync(&self) -> io::Result<()> {
        unreachable!("{READS_ONLY}")
    }
    fn len(&self) -> io::Result<u64> {
        self.watched.len()
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        unreachable!("{READS_ONLY}")
    }
    fn is_direct(&self) -> bool {
        false
    }
}

/// A gate at which threads wait until it is opened.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Waits for the gate to be open.
    pub fn pass(&self) {
        let mut open = self.open.lock();
        while !*open {
            open = self.opened.wait(open);
        }
    }

    /// Opens the gate, which then stays open.
    pub fn open(&self) {
        *self.open.lock() = true;
        self.opened.notify_all();
    }
}

/// Gives way to other threads until `condition` holds.
pub fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}
