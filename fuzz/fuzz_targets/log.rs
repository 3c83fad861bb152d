//! Reads any bytes as a log. This gives a prefix of what was written, or an error that stays.
#![no_main]

use larch::fuzz::{
    BatchOps, EmptyLog, HEADER_BYTES, KnownEnd, LogKind, LogReader, LogWriter, RECORD_HEADER_BYTES, RecordReader,
};
use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use os::sim::SimDisk;
use os::{Access, Disk};
use sst::Version;
use std::path::Path;

const PATH: &str = "1.log";
const LOG_ID: u64 = 7;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    match input.byte() % 4 {
        0 => drop(read(input.rest(), None)),
        1 => drop(read(&sealed(input), None)),
        2 => {
            let (mut log, versions) = written(&mut input);
            let last = KnownEnd::durable(log.len() as u64);
            assert_eq!(read(&log, None), (versions.clone(), true));
            assert_eq!(read(&log, Some(last)), (versions.clone(), true));
            // The log is cut or changed, and its checksums are not corrected. The commits that are read must be a
            // prefix of those that were written.
            log.truncate(log.len() - input.below(log.len().min(256)));
            input.change(&mut log, 3);
            assert!(versions.starts_with(&read(&log, None).0));
            assert!(versions.starts_with(&read(&log, Some(last)).0));
        }
        _ => {
            let (mut log, _) = written(&mut input);
            input.change(&mut log, 8);
            seal(&mut log);
            let at = input.number().max(HEADER_BYTES as u64);
            read(&log, Some(KnownEnd { at, is_durable: true }));
            read(&log, Some(KnownEnd { at, is_durable: false }));
            read(&log, None);
        }
    }
});

/// Writes commits as the database does. Returns the bytes of the log and the versions of the commits.
fn written(input: &mut Input<'_>) -> (Vec<u8>, Vec<u64>) {
    let disk = SimDisk::new(0);
    let empty = EmptyLog::create(&*disk, Path::new(PATH)).expect("the disk works");
    let mut log = if input.byte() % 2 == 0 {
        LogWriter::begin(empty, LOG_ID, 2, None).expect("the disk works")
    } else {
        let before = EmptyLog::create(&*disk, Path::new("00000001.log")).expect("the disk works");
        let before = LogWriter::begin(before, LOG_ID, 1, None).expect("the disk works");
        let mut log = LogWriter::prepare(empty, LOG_ID, 2).expect("the disk works");
        log.follow(1, before.file().clone()).expect("the disk works");
        log
    };
    let mut versions = Vec::new();
    for version in 1..=input.below(6) as u64 {
        let mut ops = BatchOps::new();
        for _ in 0..input.below(4) {
            ops.put(u32::from(input.byte()), &input.key(), input.bytes(30));
        }
        log.append_commit(Version(version), (&ops).into()).expect("the disk works");
        versions.push(version);
        if input.byte() % 4 == 0 {
            log.file().sync().expect("the disk works");
            log.append_proof().expect("the disk works");
        }
    }
    (disk.read_all(Path::new(PATH)).expect("the disk works"), versions)
}

/// Makes a log whose payloads are the fuzzer's bytes.
fn sealed(mut input: Input<'_>) -> Vec<u8> {
    let (mut log, _) = written(&mut Input::new(&[]));
    while !input.is_empty() {
        let synced_end = input.number();
        let version = input.number();
        let count = u32::from(input.byte() % 8);
        let mut payload = [version.to_le_bytes().as_slice(), &count.to_le_bytes()].concat();
        payload.extend_from_slice(input.bytes(100));
        log.extend_from_slice(&[0; 4]);
        log.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        log.extend_from_slice(&LOG_ID.to_le_bytes());
        log.extend_from_slice(&(if synced_end % 2 == 0 { synced_end } else { 0 }).to_le_bytes());
        log.extend_from_slice(&payload);
        log.resize(log.len().next_multiple_of(8), 0);
    }
    seal(&mut log);
    log
}

/// Corrects the checksums of the header and of all records that can be found.
fn seal(log: &mut [u8]) {
    let Some((header, mut records)) = log.split_at_mut_checked(HEADER_BYTES) else { return };
    let (body, crc) = header.split_last_chunk_mut::<4>().expect("a header is longer");
    crc.copy_from_slice(&crc_fast::crc32_iscsi(body).to_le_bytes());
    while let Some(head) = records.first_chunk::<RECORD_HEADER_BYTES>() {
        let payload_bytes = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let bytes = (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(8);
        let Some((record, rest)) = records.split_at_mut_checked(bytes) else { return };
        let crc = crc_fast::crc32_iscsi(&record[4..]);
        record[..4].copy_from_slice(&crc.to_le_bytes());
        records = rest;
    }
}

/// Reads the log. Returns the versions of the log's commits, and whether the log ended without an error.
fn read(log: &[u8], known_end: Option<KnownEnd>) -> (Vec<u64>, bool) {
    let disk = SimDisk::new(0);
    let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
    file.write_at(log, 0).expect("the disk has room");
    if let Ok(mut records) = RecordReader::open(&*disk, Path::new(PATH), LogKind::WriteAhead, known_end) {
        let mut end = HEADER_BYTES as u64;
        while let Ok(Some(record)) = records.next_record() {
            assert_eq!(record.offset, end);
            end += (RECORD_HEADER_BYTES + record.payload.len()).next_multiple_of(8) as u64;
            assert!(end <= log.len() as u64);
        }
        assert_eq!(records.end(), end);
    }
    let mut versions = Vec::new();
    let Ok(mut commits) = LogReader::open(&*disk, Path::new(PATH), known_end) else { return (versions, false) };
    loop {
        match commits.next_commit() {
            Ok(Some(commit)) => {
                assert_eq!(commit.ops.iter().count(), commit.ops.count() as usize);
                versions.push(commit.version.0);
            }
            Ok(None) => {
                assert!(commits.next_commit().is_ok_and(|commit| commit.is_none()), "an end stays");
                let is_durable = known_end.is_some_and(|end| end.is_durable);
                assert!(!is_durable || commits.tear().is_none(), "nothing is torn below a durable end");
                assert!(versions.is_sorted_by(|a, b| a < b));
                return (versions, true);
            }
            Err(_) => {
                assert!(commits.next_commit().is_err(), "an error stays");
                return (versions, false);
            }
        }
    }
}
