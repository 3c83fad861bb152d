//! Reads any bytes as a log. This gives a prefix of what was written, or an error that stays.
#![no_main]

use larch::fuzz::{
    BatchOps, EmptyLog, HEADER_BYTES, Header, KnownEnd, LEAN_RECORDS, LogKind, LogReader, LogWriter, RecordForm,
    RecordReader,
};
use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use os::sim::SimDisk;
use os::{Access, Disk};
use sst::Version;
use std::path::Path;

const PATH: &str = "1.log";
/// Both halves count: a lean record has one of them, and its seal the other.
const LOG_ID: u64 = 0x0102_0304_0506_0709;

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

/// The header of a log whose records are lean or not.
fn header(number: u64, features: u32) -> Header {
    Header { features, ..Header::new(LogKind::WriteAhead, LOG_ID, number, None) }
}

/// Writes commits as the database does. Returns the bytes of the log and the versions of the commits.
fn written(input: &mut Input<'_>) -> (Vec<u8>, Vec<u64>) {
    let disk = SimDisk::new(0);
    let empty = EmptyLog::create(&*disk, Path::new(PATH)).expect("the disk works");
    let how = input.byte();
    let features = if how & 2 == 0 { LEAN_RECORDS } else { 0 };
    let mut log = if how & 1 == 0 {
        LogWriter::begin(empty, &header(2, features)).expect("the disk works")
    } else {
        let before = EmptyLog::create(&*disk, Path::new("00000001.log")).expect("the disk works");
        let before = LogWriter::begin(before, &header(1, features)).expect("the disk works");
        let mut log = LogWriter::prepare(empty, header(2, features)).expect("the disk works");
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
    let how = [input.byte() & 2, 0];
    let (mut log, _) = written(&mut Input::new(&how));
    let form = form_of(&log).expect("the log was just written");
    let mut record = Vec::new();
    while !input.is_empty() {
        let (offset, synced_end) = (log.len() as u64, input.number());
        let least = if how[0] == 0 { HEADER_BYTES as u64 } else { 0 };
        let synced_end = if synced_end % 2 == 0 { synced_end.clamp(least, offset) } else { least };
        // A lean commit begins with two numbers of variable length. Many of these bytes are such numbers.
        let count = u32::from(input.byte() % 8);
        let number = input.number().to_le_bytes();
        let start = if how[0] == 0 { number[..2].to_vec() } else { [&number[..], &count.to_le_bytes()].concat() };
        form.encode(&mut record, offset, synced_end, &[&start, input.bytes(100)]);
        log.extend_from_slice(&record);
    }
    log
}

/// The form of a log's records; `None` if its header has no known kind of record.
fn form_of(log: &[u8]) -> Option<RecordForm> {
    let disk = SimDisk::new(0);
    let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
    file.write_at(log, 0).expect("the disk has room");
    let reader = RecordReader::open(&*disk, Path::new(PATH), LogKind::WriteAhead, None).ok()?;
    reader.header().map(RecordForm::of)
}

/// Corrects the checksums of the header and of all records that can be found.
fn seal(log: &mut [u8]) {
    let Some((header, _)) = log.split_at_mut_checked(HEADER_BYTES) else { return };
    let (body, crc) = header.split_last_chunk_mut::<4>().expect("a header is longer");
    crc.copy_from_slice(&crc_fast::crc32_iscsi(body).to_le_bytes());
    let Some(form) = form_of(log) else { return };
    let (mut offset, end) = (HEADER_BYTES as u64, log.len() as u64);
    while let Ok(head) = form.decode(&log[offset as usize..], offset, end) {
        let next = offset + head.record_bytes;
        form.close(&mut log[offset as usize..next as usize], offset);
        offset = next;
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
            let (offset, payload_bytes) = (record.offset, record.payload.len() as u64);
            assert_eq!(offset, end);
            end = records.end();
            assert!(end - offset > payload_bytes && end <= log.len() as u64);
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
