//! Tests the promises of the write-ahead log: commits come in order, and waiters share the syncs that make them
//! durable.

#![allow(clippy::disallowed_methods, reason = "threads that wait for each other are what is tested")]

use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;

use os::sim::SimDisk;
use os::sync::atomic::{AtomicUsize, Ordering};
use os::sync::{Arc, Condvar, Mutex};
use os::{Access, DirectoryEntry, Disk, File, Lock};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sst::Version;

use super::*;
use crate::base::ops::{BatchOps, Op};
use crate::base::record::tests::{features, in_both_forms, seeds, set_features};
use crate::base::record::{
    BEGIN_RECORD, EmptyLog, Header, KnownEnd, LEAN_RECORDS, LogError, LogFile, LogKind, Previous, RecordWriter,
};

const PATH: &str = "000003.log";

fn ops_of(number: u64) -> BatchOps {
    let mut ops = BatchOps::new();
    for index in 0..number % 4 {
        ops.put(index as u32, &number.to_be_bytes(), &vec![index as u8; number as usize % 50]);
    }
    ops
}

/// The header of log `number`, which continues log 2 if it is log 3.
fn header(log_id: u64, number: u64) -> Header {
    let previous = (number == 3).then_some(Previous { number: 2, end: KnownEnd::durable(640) });
    Header { features: features(), ..Header::new(LogKind::WriteAhead, log_id, number, previous) }
}

fn writer(disk: &dyn Disk) -> LogWriter {
    let file = EmptyLog::create(disk, Path::new(PATH)).expect("the disk works");
    LogWriter::begin(file, &header(99, 3)).expect("the disk works")
}

/// Reads the log at [`PATH`], and checks the ops of each version against [`ops_of`]. Returns the versions, and the
/// error if reading ends with one.
fn read(disk: &SimDisk) -> (Vec<u64>, Option<String>) {
    let mut reader = match LogReader::open(disk, Path::new(PATH), None) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    let mut versions = Vec::new();
    loop {
        match reader.next_commit() {
            Ok(Some(commit)) => {
                assert_eq!(commit.ops.bytes(), ops_of(commit.version.0).bytes());
                versions.push(commit.version.0);
            }
            Ok(None) => return (versions, None),
            Err(error) => {
                assert_eq!(reader.next_commit().expect_err("an error stays").to_string(), error.to_string());
                return (versions, Some(error.to_string()));
            }
        }
    }
}

#[test]
fn commits_come_back_in_order_with_their_versions() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let mut writer = writer(&*disk);
        let mut ends = vec![writer.end()];
        for version in [1, 2, 7, 8, 1 << 40] {
            ends.push(writer.append_commit(Version(version), (&ops_of(version)).into()).expect("the disk works"));
            assert_eq!((writer.last(), writer.end()), (Some(Version(version)), ends[ends.len() - 1]));
        }
        assert_eq!(read(&disk), (vec![1, 2, 7, 8, 1 << 40], None));

        let mut reader =
            LogReader::open(&*disk, Path::new(PATH), Some(KnownEnd::durable(writer.end()))).expect("it is whole");
        let header = reader.header().expect("it is whole");
        assert_eq!((header.number, header.previous), (3, Some(Previous { number: 2, end: KnownEnd::durable(640) })));
        for start in &ends[..5] {
            assert_eq!(reader.next_commit().expect("it is whole").expect("there are more").offset, *start);
        }
        assert!(reader.next_commit().expect("it is whole").is_none());
        assert_eq!((reader.end(), reader.last(), reader.tear()), (writer.end(), writer.last(), None));
    });
}

#[test]
fn a_commit_has_the_bytes_of_the_format_page() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&*disk);
    let mut ops = BatchOps::new();
    ops.put(5, b"k", b"v");
    let start = writer.end() as usize;
    writer.append_commit(Version(258), (&ops).into()).expect("the disk works");
    let bytes = disk.read_all(Path::new(PATH)).expect("it is there");
    let golden = [
        b"\x15\x00\x00\x00".as_slice(),                // payload bytes
        b"\x63\x00\x00\x00\x00\x00\x00\x00",           // log id
        b"\x40\x00\x00\x00\x00\x00\x00\x00",           // synced end
        b"\x02\x01\x00\x00\x00\x00\x00\x00",           // version
        b"\x01\x00\x00\x00",                           // op count
        b"\x00\x05\x00\x00\x00\x01k\x01v\x00\x00\x00", // put, table 5, key, value; padding
    ];
    assert_eq!(bytes[start + 4..], golden.concat());
}

#[test]
fn a_lean_commit_has_the_bytes_of_the_format_page() {
    let disk = SimDisk::new(1);
    let file = EmptyLog::create(&*disk, Path::new(PATH)).expect("the disk works");
    let header = Header { features: LEAN_RECORDS, ..header(99, 3) };
    let mut writer = LogWriter::begin(file, &header).expect("the disk works");
    let mut ops = BatchOps::new();
    ops.put(5, b"k", b"v");
    let mut start = writer.end() as usize;
    let firsts = [b"\x82\x02".as_slice(), b"\x07"];
    for (version, first) in [258, 265].into_iter().zip(firsts) {
        let end = writer.append_commit(Version(version), (&ops).into()).expect("the disk works") as usize;
        let bytes = disk.read_all(Path::new(PATH)).expect("it is there");
        let unsynced = [(start as u8 - 64) / 4];
        // The lower half of the log id, payload bytes and a fourth of the unsynced bytes; then what the version is more
        // than the one before, the op count, and the put.
        let payload = [first, b"\x01", b"\x00\x05\x00\x00\x00\x01k\x01v"].concat();
        let golden = [b"\x63\x00\x00\x00".as_slice(), &[payload.len() as u8], &unsynced, &payload].concat();
        assert!(bytes[start + 4..end].starts_with(&golden), "{:x?}", &bytes[start..end]);
        assert!(end - start - golden.len() < 8, "padding");
        start = end;
    }
    let mut reader = LogReader::open(&*disk, Path::new(PATH), None).expect("it is whole");
    for version in [258, 265] {
        assert_eq!(reader.next_commit().expect("it is whole").expect("it is there").version, Version(version));
    }
}

/// The name of the log file that follows the log of [`writer`].
const NEXT: &str = "000004.log";

/// Makes the log that follows the log of `writer`. The log of `writer` has the number 3.
fn follower(disk: &dyn Disk, writer: &LogWriter) -> LogWriter {
    let file = EmptyLog::create(disk, Path::new(NEXT)).expect("the disk works");
    let mut next = LogWriter::prepare(file, header(77, 4)).expect("the disk works");
    next.follow(3, writer.file().clone()).expect("the disk works");
    next
}

#[test]
fn a_log_that_follows_has_the_bytes_of_the_format_page() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&*disk);
    let end = writer.append_commit(Version(1), (&ops_of(1)).into()).expect("the disk works");
    assert_eq!(end, 120);
    drop(follower(&*disk, &writer));
    let bytes = disk.read_all(Path::new(NEXT)).expect("it is there");
    let golden = [
        b"LARCHLOG\x01\x00\x00\x00\x00\x00\x01\x00".as_slice(), // magic, format version, feature bit 16
        b"\x4d\x00\x00\x00\x00\x00\x00\x00",                    // log id
        b"\x04\x00\x00\x00\x00\x00\x00\x00",                    // number
        &[0; 16],                                               // the first record names the previous log
        b"\x01\x00\x00\x00",                                    // write-ahead log
        &[0; 8],
    ];
    assert_eq!(bytes[..60], golden.concat());
    let golden = [
        b"\x10\x00\x00\x00".as_slice(),      // payload bytes
        b"\x4d\x00\x00\x00\x00\x00\x00\x00", // log id
        b"\x40\x00\x00\x00\x00\x00\x00\x00", // synced end
        b"\x03\x00\x00\x00\x00\x00\x00\x00", // previous log's number
        b"\x78\x00\x00\x00\x00\x00\x00\x00", // previous log's end
    ];
    assert_eq!(bytes[68..], golden.concat());
    let reader = LogReader::open(&*disk, Path::new(NEXT), None).expect("it is whole");
    let previous = Previous { number: 3, end: KnownEnd { at: 120, is_durable: false } };
    assert_eq!((reader.has_begun(), reader.previous()), (true, Some(previous)));
}

#[test]
fn a_prepared_log_has_not_begun_until_its_first_record_is_there() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let writer = writer(&*disk);
        drop(follower(&*disk, &writer));
        let file = disk.open(Path::new(NEXT), Access::Write).expect("it is there");
        let whole = disk.read_all(Path::new(NEXT)).expect("it is there").len() as u64;
        for bytes in 64..whole {
            file.set_len(bytes).expect("the disk works");
            let mut reader = LogReader::open(&*disk, Path::new(NEXT), None).expect("it is no damage");
            assert_eq!((reader.has_begun(), reader.previous()), (false, None), "{bytes} bytes");
            assert!(reader.next_commit().expect("it is no damage").is_none());
        }
    });
}

#[test]
fn a_first_record_that_names_no_log_is_corruption() {
    for payload in [&[0; 15][..], &[0; 16], &[1; 17], &[[1, 0, 0, 0, 0, 0, 0, 0], [63, 0, 0, 0, 0, 0, 0, 0]].concat()] {
        for features in [BEGIN_RECORD, BEGIN_RECORD | LEAN_RECORDS] {
            let disk = SimDisk::new(1);
            let header = Header { features, ..Header::new(LogKind::WriteAhead, 5, 3, None) };
            let mut writer = RecordWriter::create(&*disk, Path::new(PATH), &header).expect("the disk works");
            writer.append(&[payload]).expect("the disk works");
            let error = LogReader::open(&*disk, Path::new(PATH), None).expect_err("it is damage").to_string();
            assert!(error.contains("corrupt at offset 64: the first record names no log"), "{error}");
        }
    }
}

/// A sync point for `log`, none of whose commits is durable yet.
fn sync_point(log: &Arc<LogFile>) -> SyncPoint {
    let point = SyncPoint::new(Version(0));
    point.continue_in(log);
    point
}

/// Appends a commit in the same way as a database.
fn append(writer: &mut LogWriter, point: &SyncPoint, version: u64) -> Result<Version, LogError> {
    writer.append_commit(Version(version), (&ops_of(version)).into())?;
    point.note_appended(Version(version));
    Ok(Version(version))
}

#[test]
fn a_sync_of_a_log_makes_the_one_before_durable_first_and_once() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let mut writer = writer(&*disk);
        let end = writer.append_commit(Version(1), (&ops_of(1)).into()).expect("the disk works");
        let mut next = follower(&*disk, &writer);
        assert!(!next.is_begin_durable());
        assert_eq!(writer.file().synced_end(), 64, "nothing was synced for the log that follows");
        let point = sync_point(next.file());
        let before = disk.counts_of(PATH).syncs;
        for version in 2..5 {
            let version = append(&mut next, &point, version).expect("the disk works");
            point.wait(version).expect("the disk works");
        }
        assert_eq!(writer.file().synced_end(), end);
        assert!(next.is_begin_durable());
        assert_eq!(disk.counts_of(PATH).syncs, before + 1);
    });
}

#[test]
fn a_failed_sync_of_the_log_before_refuses_everything() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let mut writer = writer(&*disk);
        writer.append_commit(Version(1), (&ops_of(1)).into()).expect("the disk works");
        let mut next = follower(&*disk, &writer);
        let point = sync_point(next.file());
        let version = append(&mut next, &point, 2).expect("the disk works");
        disk.fail_sync(1, ErrorKind::Other);
        let error = point.wait(version).expect_err("the sync fails").to_string();
        assert!(error.starts_with(&format!("cannot sync {PATH}: ")), "{error}");
        disk.clear_faults();
        assert_eq!(point.wait(version).expect_err("it stays refused").to_string(), error);
        assert_eq!(
            next.append_commit(Version(3), (&ops_of(3)).into()).expect_err("it stays refused").to_string(),
            error
        );
        assert_eq!(next.file().synced_end(), 64, "no record may say that it is durable");
    });
}

/// Writes a log with these payloads. Checks that a reader finds the versions `whole`, and then a corrupt record,
/// for the reason `why`.
fn check_corrupt(payloads: &[&[u8]], whole: &[u64], why: &str) {
    let disk = SimDisk::new(1);
    let header = Header { features: features(), ..Header::new(LogKind::WriteAhead, 5, 3, None) };
    let mut writer = RecordWriter::create(&*disk, Path::new(PATH), &header).expect("the disk works");
    let mut last = 0;
    for payload in payloads {
        last = writer.end();
        writer.append(&[payload]).expect("the disk works");
    }
    let (versions, error) = read(&disk);
    assert_eq!(versions, whole);
    let expected = format!("{PATH} is corrupt at offset {last}: {why}; restore the database from a backup");
    assert_eq!(error.expect("it is corrupt"), expected);
}

#[test]
fn whole_records_that_are_no_commits_are_corruption_even_at_the_end() {
    let commit = |version: u8, rest: &[u8]| [&[version, 0, 0, 0, 0, 0, 0, 0], rest].concat();
    let empty = |version| commit(version, &[0; 4]);
    check_corrupt(&[&empty(4), &empty(4)], &[4], "commit 4 comes after commit 4");
    check_corrupt(&[&empty(4), &empty(8), &empty(7)], &[4, 8], "commit 7 comes after commit 8");
    check_corrupt(&[&empty(4)[..11]], &[], "a record of 11 bytes does not begin as a commit");
    let one_missing = commit(4, &[1, 0, 0, 0]);
    let why = "commit 4: the op at byte 0 of the batch is missing or too many: the count of ops does not match";
    check_corrupt(&[&one_missing], &[], why);
    let unknown = commit(4, &[1, 0, 0, 0, 9, 0, 0, 0, 0, 0]);
    check_corrupt(&[&unknown], &[], "commit 4: the op at byte 0 of the batch has an unknown kind");
}

#[test]
fn whole_lean_records_that_are_no_commits_are_corruption_even_at_the_end() {
    set_features(LEAN_RECORDS);
    check_corrupt(&[&[4, 0], &[0, 0]], &[4], "commit 4 comes after commit 4");
    check_corrupt(&[&[4]], &[], "a record of 1 bytes does not begin as a commit");
    let step = [&[0xff; 9][..], &[1, 0]].concat();
    check_corrupt(&[&[4, 0], &step], &[4], "a record of 11 bytes does not begin as a commit");
    check_corrupt(&[&[4, 0xff, 0xff, 0xff, 0xff, 0x1f]], &[], "a record of 6 bytes does not begin as a commit");
    let why = "commit 4: the op at byte 0 of the batch is missing or too many: the count of ops does not match";
    check_corrupt(&[&[4, 1]], &[], why);
}

#[test]
#[should_panic(expected = "commits are appended in version order")]
fn versions_that_do_not_grow_are_not_written() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&*disk);
    writer.append_commit(Version(2), (&ops_of(2)).into()).expect("the disk works");
    writer.append_commit(Version(2), (&ops_of(2)).into()).expect("it does not get here");
}

#[test]
#[should_panic(expected = "the caller resolves a batch")]
fn a_batch_whose_order_one_version_would_lose_is_not_written() {
    let disk = SimDisk::new(1);
    let mut ops = ops_of(3);
    ops.range_erase(1, b"", b"");
    writer(&*disk).append_commit(Version(2), (&ops).into()).expect("it does not get here");
}

/// Recovery returns a prefix of the commits in commit order. If a wait for a commit has succeeded, the commit is
/// in this prefix.
#[test]
fn recovery_gives_a_prefix_that_contains_every_durable_commit() {
    in_both_forms(|| {
        for seed in seeds(300) {
            let mut random = StdRng::seed_from_u64(seed);
            let disk = SimDisk::new(seed);
            let mut writer = writer(&*disk);
            let point = sync_point(writer.file());
            let (mut version, mut versions, mut durable) = (0, Vec::new(), 0);
            if random.random() {
                disk.crash_at_sync(random.random_range(1..6));
            }
            for _ in 0..random.random_range(0..30) {
                version += random.random_range(1..4);
                if append(&mut writer, &point, version).is_err() {
                    break;
                }
                versions.push(version);
                if random.random_bool(0.3) {
                    // Wait for a random one of the commits, not always for the last.
                    let index = random.random_range(0..versions.len());
                    match point.wait(Version(versions[index])) {
                        Ok(()) => durable = durable.max(index + 1),
                        Err(error) => {
                            assert!(matches!(error, LogError::Io { action: "sync", .. }), "seed {seed}: {error}");
                            break;
                        }
                    }
                }
            }
            disk.crash();
            let (found, error) = read(&disk);
            assert_eq!(error, None, "seed {seed}");
            assert!(
                found.len() >= durable && found == versions[..found.len()],
                "seed {seed}: {found:?} of {versions:?}"
            );
        }
    });
}

#[test]
fn one_sync_covers_everything_appended_before_it() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&*disk);
    let point = sync_point(writer.file());
    point.wait(Version(0)).expect("it is durable");
    let before = disk.counts_of(PATH).syncs;
    for version in 1..=3 {
        append(&mut writer, &point, version).expect("the disk works");
    }
    for version in [1, 3, 2] {
        point.wait(Version(version)).expect("the disk works");
        assert_eq!(point.durable(), Version(3));
        assert_eq!(writer.file().synced_end(), writer.end());
    }
    assert_eq!(disk.counts_of(PATH).syncs, before + 1);
}

#[test]
fn a_failed_sync_refuses_everything_after_it() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&*disk);
    let point = sync_point(writer.file());
    let first = append(&mut writer, &point, 1).expect("the disk works");
    point.wait(first).expect("the disk works");
    let first_end = writer.end();
    assert!(writer.file().check().is_ok());
    let second = append(&mut writer, &point, 2).expect("the disk works");
    disk.fail_operation(1, ErrorKind::Other);
    let error = point.wait(second).expect_err("the sync fails").to_string();
    assert!(error.starts_with(&format!("cannot sync {PATH}: ")), "{error}");
    // Syncs of the disk succeed again, but the log still refuses every write and every wait.
    assert_eq!(point.wait(second).expect_err("it stays refused").to_string(), error);
    assert_eq!(append(&mut writer, &point, 3).expect_err("it stays refused").to_string(), error);
    point.wait(first).expect("it was durable before");
    assert_eq!(writer.file().check().expect_err("it is known").to_string(), error);
    assert_eq!(writer.file().synced_end(), first_end);
}

/// A gate for the syncs of a disk, which wait while it is shut.
#[derive(Debug)]
pub(in crate::log) struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
    /// How many syncs have reached the gate.
    arrived: AtomicUsize,
    fails: bool,
}

#[derive(Debug)]
pub(in crate::log) struct GatedDisk(pub Arc<SimDisk>, pub Arc<Gate>);

#[derive(Debug)]
struct GatedFile(Arc<dyn File>, Arc<Gate>);

impl Gate {
    /// An open gate. With `fails`, a sync that had to wait at the gate fails.
    pub fn new(fails: bool) -> Arc<Self> {
        Arc::new(Self { is_open: Mutex::new(true), changed: Condvar::new(), arrived: AtomicUsize::new(0), fails })
    }

    pub fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }

    pub fn set(&self, is_open: bool) {
        *self.is_open.lock() = is_open;
        self.changed.notify_all();
    }

    fn pass(&self) -> io::Result<()> {
        let mut is_open = self.is_open.lock();
        self.arrived.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_all();
        let must_wait = !*is_open;
        while !*is_open {
            is_open = self.changed.wait(is_open);
        }
        if must_wait && self.fails { Err(io::Error::other("the gate fails")) } else { Ok(()) }
    }

    pub fn wait_for_arrivals(&self, count: usize) {
        let mut is_open = self.is_open.lock();
        while self.arrived.load(Ordering::SeqCst) < count {
            is_open = self.changed.wait(is_open);
        }
    }
}

impl Disk for GatedDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(GatedFile(self.0.open(path, access)?, self.1.clone())))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.link(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.0.list(directory)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }
    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        self.0.create_dir(directory)
    }
    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        self.0.remove_dir(directory)
    }
    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.0.sync_dir(directory)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.0.lock(path)
    }
}

impl File for GatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }
    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        self.0.append(bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.1.pass()?;
        self.0.sync()
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
    fn is_direct(&self) -> bool {
        self.0.is_direct()
    }
}

/// Appends ten more commits while a sync runs, with a thread that waits for each. Returns the outcomes of all
/// eleven commits, and the number of syncs.
fn wait_in_a_crowd(fails: bool) -> (Vec<Result<(), LogError>>, usize) {
    let gate = Gate::new(fails);
    let disk = GatedDisk(SimDisk::new(1), gate.clone());
    let mut writer = writer(&disk);
    let point = sync_point(writer.file());
    let syncs_before = gate.arrived();
    gate.set(false);
    let started = &AtomicUsize::new(0);
    let outcomes = thread::scope(|scope| {
        let point = &point;
        let first = append(&mut writer, point, 1).expect("the disk works");
        let mut waiting = vec![scope.spawn(move || point.wait(first))];
        gate.wait_for_arrivals(syncs_before + 1);
        let versions: Vec<Version> =
            (2..12).map(|version| append(&mut writer, point, version).expect("the disk works")).collect();
        waiting.extend(versions.into_iter().map(|version| {
            scope.spawn(move || {
                started.fetch_add(1, Ordering::SeqCst);
                point.wait(version)
            })
        }));
        // All ten threads are about to wait for their commits. If the gate opens before some of them do, the test
        // proves less, but does not fail.
        while started.load(Ordering::SeqCst) < 10 {
            thread::yield_now();
        }
        gate.set(true);
        waiting.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    if !fails {
        assert_eq!(writer.file().synced_end(), writer.end());
    }
    (outcomes, gate.arrived() - syncs_before)
}

#[test]
fn those_who_come_while_a_sync_runs_share_the_next() {
    for _ in 0..20 {
        let (outcomes, syncs) = wait_in_a_crowd(false);
        assert!(outcomes.iter().all(Result::is_ok));
        assert_eq!(syncs, 2);
    }
}

#[test]
fn a_failed_sync_fails_all_who_wait() {
    for _ in 0..20 {
        let (outcomes, syncs) = wait_in_a_crowd(true);
        assert!(outcomes.iter().all(Result::is_err));
        assert_eq!(syncs, 1);
    }
}

#[test]
fn a_log_read_back_applies_every_kind_of_op() {
    let disk = SimDisk::new(1);
    let mut ops = BatchOps::new();
    ops.range_erase(1, b"a", b"");
    ops.put(1, b"b", b"value");
    ops.erase(2, b"c");
    writer(&*disk).append_commit(Version(9), (&ops).into()).expect("the disk works");
    let mut reader = LogReader::open(&*disk, Path::new(PATH), None).expect("it is whole");
    let commit = reader.next_commit().expect("it is whole").expect("there is one");
    let expected = [
        (1, Op::RangeErase { start: b"a", end: b"" }),
        (1, Op::Put { key: b"b", value: b"value", until: None }),
        (2, Op::Erase { key: b"c" }),
    ];
    assert_eq!(commit.ops.iter().collect::<Vec<_>>(), expected);
}
