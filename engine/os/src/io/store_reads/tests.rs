//! What reads of objects promise.

use super::StoreReads;
use crate::io::CallerReads;
use crate::sim::{SimClock, SimDisk, SimStore};
use crate::store::RangeDone;
use crate::sync::{Arc, Mutex};
use crate::{Buffer, File, ReadRequest, ReadSource, Reads, Store, StoreObject, StoredObject, Upload, Urgency};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;

/// A store whose ranged reads are held back.
#[derive(Debug, Default)]
struct HeldStore {
    held: Mutex<Vec<Held>>,
}

struct Held {
    range: Range<u64>,
    done: RangeDone,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.range.fmt(f)
    }
}

const OBJECT_BYTES: u64 = 40 << 20;

/// The byte at an offset.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl HeldStore {
    /// Ends the read that began last. Returns false if none is held back.
    fn step(&self) -> bool {
        let Some(Held { range, done }) = self.held.lock().pop() else { return false };
        let bytes: Vec<u8> = (range.start..range.end.min(OBJECT_BYTES)).map(byte).collect();
        // The answer comes in pieces of arbitrary length.
        let pieces: Vec<&[u8]> = bytes.chunks(1 + usize::from(byte(range.start)) * 97).collect();
        done(Ok(&pieces));
        true
    }
}

impl Store for HeldStore {
    fn create(&self, _: &str) -> io::Result<Box<dyn Upload>> {
        Err(ErrorKind::Unsupported.into())
    }
    fn put_if_absent(&self, _: &str, _: &[u8]) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
    fn get(&self, _: &str) -> io::Result<Vec<u8>> {
        Err(ErrorKind::Unsupported.into())
    }
    fn read_at(&self, _: &str, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }
    fn begin_read(&self, _: &str, range: Range<u64>, done: RangeDone) {
        self.held.lock().push(Held { range, done });
    }
    fn len(&self, _: &str) -> io::Result<u64> {
        Ok(OBJECT_BYTES)
    }
    fn remove(&self, _: &str) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
    fn list(&self, _: &str) -> io::Result<Vec<StoredObject>> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// A file that is an object.
#[derive(Debug)]
struct ObjectFile(StoreObject);

impl File for ObjectFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.store.read_at(&self.0.name, buffer, offset)
    }
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
    fn append(&self, _: &[u8]) -> io::Result<u64> {
        Err(ErrorKind::Unsupported.into())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        self.0.store.len(&self.0.name)
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
    fn is_direct(&self) -> bool {
        false
    }
    fn object(&self) -> Option<StoreObject> {
        Some(self.0.clone())
    }
}

fn object(store: Arc<dyn Store>) -> Arc<dyn ReadSource> {
    Arc::new(ObjectFile(StoreObject { store, name: "sst/1".into() }))
}

/// A read that checks the bytes it gets, and then adds its offset to `ended`.
fn read(source: &Arc<dyn ReadSource>, offset: u64, bytes: usize, ended: &Arc<Mutex<Vec<u64>>>) -> ReadRequest {
    let ended = ended.clone();
    ReadRequest {
        source: source.clone(),
        offset,
        buffer: Buffer::zeroed(bytes),
        urgency: Urgency::Needed,
        ticket: offset,
        done: Box::new(move |buffer, outcome| {
            let read = outcome.expect("the store works");
            assert_eq!(read as u64, OBJECT_BYTES.saturating_sub(offset).min(buffer.len() as u64));
            assert!(buffer[..read].iter().zip(offset..).all(|(found, at)| *found == byte(at)), "at {offset}");
            ended.lock().push(offset);
        }),
    }
}

#[test]
fn neighbours_are_one_request_and_each_read_gets_its_bytes() {
    let store = Arc::new(HeldStore::default());
    let reads = StoreReads::new(8, Arc::new(CallerReads), Arc::new(SimClock::new()));
    let source = object(store.clone());
    let ended = Arc::new(Mutex::new(Vec::new()));
    let offsets = [40_960, 0, 8192, 4096, 20 << 20, OBJECT_BYTES - 4096];
    reads.submit(offsets.map(|offset| read(&source, offset, 8192, &ended)).into());
    let mut ranges: Vec<_> = store.held.lock().iter().map(|held| held.range.clone()).collect();
    ranges.sort_by_key(|range| range.start);
    let far = 20 << 20;
    assert_eq!(ranges, [0..49_152, far..far + 8192, OBJECT_BYTES - 4096..OBJECT_BYTES + 4096]);
    while store.step() {}
    let mut ended = ended.lock().clone();
    ended.sort_unstable();
    assert_eq!(ended, [0, 4096, 8192, 40_960, far, OBJECT_BYTES - 4096]);
    assert_eq!((reads.usage().reads, reads.usage().joined), (6, 4));
}

#[test]
fn many_are_under_way_up_to_the_depth_and_all_of_them_end() {
    let store = Arc::new(HeldStore::default());
    let reads = StoreReads::new(16, Arc::new(CallerReads), Arc::new(SimClock::new()));
    let source = object(store.clone());
    let ended = Arc::new(Mutex::new(Vec::new()));
    // These reads are too far from each other to be joined.
    reads.submit((0..100).map(|place| read(&source, place * (200 << 10), 4096, &ended)).collect());
    let mut most = 0;
    loop {
        most = most.max(store.held.lock().len());
        if !store.step() {
            break;
        }
    }
    assert_eq!((most, ended.lock().len()), (16, 100));
}

#[test]
fn reads_that_end_at_once_do_not_recurse() {
    let client = SimStore::new(1, Arc::new(SimClock::new())).client();
    let mut upload = client.create("sst/1").expect("there is no trouble");
    let bytes: Vec<u8> = (0..OBJECT_BYTES).map(byte).collect();
    upload.write(&bytes).and_then(|()| upload.finish()).expect("there is no trouble");
    let reads = StoreReads::new(2, Arc::new(CallerReads), Arc::new(SimClock::new()));
    let source = object(client);
    let ended = Arc::new(Mutex::new(Vec::new()));
    let offsets = (0..100_000).map(|place| place % 200 * (200 << 10));
    reads.submit(offsets.map(|offset| read(&source, offset, 4096, &ended)).collect());
    assert_eq!(ended.lock().len(), 100_000);
}

#[test]
fn files_that_are_no_objects_are_read_by_others() {
    let disk = SimDisk::new(1);
    let file = crate::Disk::open(&*disk, Path::new("f"), crate::Access::Create).expect("the disk is empty");
    file.append(&(0..9000).map(byte).collect::<Vec<u8>>()).expect("there is room");
    let reads = StoreReads::new(4, Arc::new(CallerReads), Arc::new(SimClock::new()));
    let outcome = Arc::new(Mutex::new(None));
    let noted = outcome.clone();
    let request = ReadRequest {
        source: file,
        offset: 4096,
        buffer: Buffer::zeroed(8192),
        urgency: Urgency::Ahead,
        ticket: 1,
        done: Box::new(move |_, read| *noted.lock() = read.ok()),
    };
    reads.submit(vec![request]);
    assert_eq!(*outcome.lock(), Some(9000 - 4096));
}
