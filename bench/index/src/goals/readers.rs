//! Many readers that miss one page at the same time: how often it is read.
//!
//! The disk answers a read of the page no sooner than all readers have had time to miss it, and counts.

use super::Line;
use crate::file::{Lone, load_nodes, point_session};
use crate::rows::{sequential_key, stamp, stamp_of, value};
use crate::{Result, Size};
use kit::Scratch;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use os::{Access, Clock, Disk, Entry, File, Lock, Machine};
use pages::{PageCache, retry};
use sst::{BuildOptions, Version};
use std::io;
use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

/// Readers at once.
const READERS: [usize; 4] = [1, 10, 100, 1000];

/// One page, threads that come through a barrier together.
pub fn measure(scratch: &Scratch, _: Size) -> Result<Vec<Line>> {
    let rows = (0..100_000).map(|number| (sequential_key(number), value(number)));
    let lone = Lone::build(scratch, "file.sst", BuildOptions::default(), rows)?;
    let mut most = 0;
    let mut notes = Vec::new();
    for readers in READERS {
        let disk = Arc::new(SlowDisk::default());
        let cache = PageCache::new(64 << 20, 4, sst::validate);
        let sst = lone.open_on(disk.clone(), &cache, false);
        load_nodes(&point_session(&cache), &sst, 1)?;
        disk.0.is_slow.store(true, Ordering::SeqCst);
        let before = disk.0.reads.load(Ordering::SeqCst);
        let barrier = Barrier::new(readers);
        let get = || -> std::result::Result<u64, String> {
            let session = point_session(&cache);
            barrier.wait();
            let row = retry(&session, || sst.get(&session, &sequential_key(77_777), Version::MAX));
            let row = row.map_err(|error| error.to_string())?.ok_or("the row is gone")?;
            match row.value.inline().map(stamp) == Some(stamp_of(77_777)) {
                true => Ok(session.rounds()),
                false => Err("the row has another value".into()),
            }
        };
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..readers).map(|_| scope.spawn(get)).collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let mut waited = 0;
        for outcome in outcomes {
            waited += outcome.map_err(|_| "a reader panicked")??;
        }
        let reads = disk.0.reads.load(Ordering::SeqCst) - before;
        most = most.max(reads);
        notes.push(format!("{readers} readers, of whom {waited} missed the page and waited: {reads} read"));
        if reads == 0 || waited < readers as u64 {
            return Err(
                format!("{waited} of {readers} readers missed the page, {reads} reads: nothing was shown").into()
            );
        }
    }
    let mut line =
        Line::new("N readers missing one page", "1 read, N up to 1,000", format!("{most} at most"), most == 1);
    line.notes = notes;
    Ok(vec![line])
}

/// The real disk, counting reads, and slow when told.
#[derive(Debug, Default)]
struct SlowDisk(Arc<Reads>);

#[derive(Debug, Default)]
struct Reads {
    is_slow: AtomicBool,
    reads: AtomicU64,
}

#[derive(Debug)]
struct SlowFile {
    file: Arc<dyn File>,
    reads: Arc<Reads>,
}

/// Time for a thousand threads to come through a barrier and miss a page.
const SLOW: Duration = Duration::from_millis(500);

impl File for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.reads.fetch_add(1, Ordering::SeqCst);
        if self.reads.is_slow.load(Ordering::SeqCst) {
            os::real::RealClock::new().sleep(SLOW);
        }
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
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

    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }
}

impl Disk for SlowDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let file = Machine::real().disk.open(path, access)?;
        Ok(Arc::new(SlowFile { file, reads: self.0.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Machine::real().disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Machine::real().disk.remove(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        Machine::real().disk.list(directory)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Machine::real().disk.exists(path)
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        Machine::real().disk.create_dir(directory)
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        Machine::real().disk.remove_dir(directory)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        Machine::real().disk.sync_dir(directory)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Machine::real().disk.lock(path)
    }
}
