//! Tests what a log promises about its bytes, on a disk in memory where a test can cut files, change bytes and
//! simulate crashes.

use std::cell::Cell;
use std::io::ErrorKind;
use std::path::Path;

use os::sim::SimDisk;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use os::{Access, Disk};

const PATH: &str = "000007.log";
const LOG_ID: u64 = 0x1122_3344_5566_7788;

thread_local! {
    static FEATURES: Cell<u32> = const { Cell::new(0) };
}

/// The feature bits of new logs in this test.
pub fn features() -> u32 {
    FEATURES.get()
}

/// From now on, new logs in this test have these feature bits.
pub fn set_features(features: u32) {
    FEATURES.set(features);
}

/// Runs a test with full records and with lean ones.
pub fn in_both_forms(test: impl Fn()) {
    for features in [0, LEAN_RECORDS] {
        FEATURES.set(features);
        test();
    }
}

fn header() -> Header {
    let previous = Some(Previous { number: 6, end: KnownEnd::durable(4096) });
    Header { features: features(), ..Header::new(LogKind::WriteAhead, LOG_ID, 7, previous) }
}

fn writer(disk: &SimDisk) -> RecordWriter {
    RecordWriter::create(disk, Path::new(PATH), &header()).expect("the disk works")
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Clean,
    Torn(u64),
    Corrupt(u64),
}

/// Reads the whole file. Returns the payloads and how the file ends. Checks that an error repeats at the next call.
fn read(disk: &SimDisk, known_end: Option<u64>) -> (Vec<Vec<u8>>, End) {
    read_to(disk, known_end.map(KnownEnd::durable))
}

fn read_to(disk: &SimDisk, known_end: Option<KnownEnd>) -> (Vec<Vec<u8>>, End) {
    let offset_of = |error: LogError| match error {
        LogError::Corrupt { offset, .. } => End::Corrupt(offset),
        other => panic!("{other}"),
    };
    let mut reader = match RecordReader::open(disk, Path::new(PATH), LogKind::WriteAhead, known_end) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), offset_of(error)),
    };
    let mut payloads = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => payloads.push(record.payload.to_vec()),
            Ok(None) => {
                assert!(reader.next_record().expect("the end stays").is_none());
                let end = reader.tear().map_or(End::Clean, |tear| End::Torn(tear.offset));
                return (payloads, end);
            }
            Err(error) => {
                let again = reader.next_record().expect_err("an error stays");
                assert_eq!(again.to_string(), error.to_string());
                return (payloads, offset_of(error));
            }
        }
    }
}

fn set_len(disk: &SimDisk, bytes: u64) {
    disk.open(Path::new(PATH), Access::Write).expect("it is there").set_len(bytes).expect("the disk works");
}

fn write_at(disk: &SimDisk, bytes: &[u8], offset: u64) {
    disk.open(Path::new(PATH), Access::Write).expect("it is there").write_at(bytes, offset).expect("the disk works");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn header_and_record_have_the_bytes_of_the_format_page() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk);
    let end = writer.append(&[b"abc", b"defgh"]).expect("the disk works");
    writer.append(&[b"i"]).expect("the disk works");
    let bytes = disk.read_all(Path::new(PATH)).expect("it is there");
    let golden = [
        "4c415243484c4f47", // LARCHLOG
        "01000000",         // format version
        "00000000",         // feature bits
        "8877665544332211", // log id
        "0700000000000000", // number
        "0600000000000000", // previous number
        "0010000000000000", // previous end
        "01000000",         // kind
        "0000000000000000", //
        "18c8827d",         // crc
        "66dce9a7",         // crc
        "08000000",         // payload bytes
        "8877665544332211", // log id
        "4000000000000000", // synced end
        "6162636465666768", // payload
        "ace7b69d",         // crc
        "01000000",         // payload bytes
        "8877665544332211", // log id
        "4000000000000000", // synced end
        "6900000000000000", // payload and padding
    ];
    assert_eq!(hex(&bytes), golden.concat());
    assert_eq!(end, 96);
    assert_eq!(Header::decode(bytes[..HEADER_BYTES].try_into().expect("64 bytes")), Ok(header()));
}

#[test]
fn a_lean_record_has_the_bytes_of_the_format_page() {
    FEATURES.set(LEAN_RECORDS);
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk);
    writer.append(&[b"abc", b"defgh"]).expect("the disk works");
    let end = writer.append(&[&[b'i'; 200]]).expect("the disk works");
    let bytes = disk.read_all(Path::new(PATH)).expect("it is there");
    let golden = [
        "8ead6605",             // seal
        "88776655",             // the lower half of the log id
        "08",                   // payload bytes
        "00",                   // everything before the record is durable
        "61626364656667680000", // payload and padding
        "f1883d25",             // seal
        "88776655",             // the lower half of the log id
        "c801",                 // payload bytes
        "05",                   // the record before it is not durable
        &"69".repeat(200),      // payload
        "00",                   // padding
    ];
    assert_eq!(hex(&bytes[HEADER_BYTES..]), golden.concat());
    assert_eq!((bytes[14], end), (2, 64 + 20 + 212), "bit 17 says so");
    // A seal is the checksum of what follows it, mixed with the upper half of the log id and a fourth of the offset.
    let crc = crc_fast::crc32_iscsi(&bytes[68..84]) ^ (LOG_ID >> 32) as u32 ^ 16;
    assert_eq!(bytes[64..68], crc.to_le_bytes());
}

#[test]
fn records_come_back_whatever_their_length() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let mut writer = writer(&disk);
        let lengths = [0, 1, 7, 8, 9, 1 << 20, (1 << 20) - 24, 3, (3 << 20) + 5, 0, 100];
        let mut ends = vec![HEADER_BYTES as u64];
        for (index, length) in lengths.into_iter().enumerate() {
            let payload = vec![index as u8; length];
            let (left, right) = payload.split_at(length / 3);
            ends.push(writer.append(&[left, &[], right]).expect("the disk works"));
            assert_eq!(writer.end(), ends[index + 1]);
            assert_eq!(writer.file().appended_end(), writer.end());
        }
        let mut reader = RecordReader::open(&*disk, Path::new(PATH), LogKind::WriteAhead, None).expect("it is whole");
        assert_eq!(reader.header(), Some(&header()));
        for (index, length) in lengths.into_iter().enumerate() {
            let record = reader.next_record().expect("it is whole").expect("there are more");
            assert_eq!((record.offset, record.payload.len()), (ends[index], length));
            assert!(record.payload.iter().all(|byte| *byte == index as u8));
            assert_eq!(reader.end(), ends[index + 1]);
        }
        assert!(reader.next_record().expect("it is whole").is_none());
        assert_eq!(reader.tear(), None);
    });
}

#[test]
fn short_reads_do_not_matter() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let mut writer = writer(&disk);
        for index in 0..20u8 {
            writer.append(&[&[index; 100]]).expect("the disk works");
        }
        for nth in 1..4 {
            disk.shorten_read(nth);
            let (payloads, end) = read(&disk, None);
            assert_eq!((payloads.len(), end), (20, End::Clean));
        }
    });
}

/// Writes a log with payloads of 0 to 42 bytes, and syncs it after some of them. Returns the payloads, the offsets of
/// the records, and the greatest synced end in the records.
fn small_log(disk: &SimDisk) -> (Vec<Vec<u8>>, Vec<u64>, u64) {
    let mut writer = writer(disk);
    let (mut payloads, mut offsets, mut proven_end) = (Vec::new(), Vec::new(), 0);
    for index in 0..15u8 {
        let payload: Vec<u8> = (0..index * 3).map(|byte| byte ^ index).collect();
        offsets.push(writer.end());
        proven_end = writer.file().synced_end();
        writer.append(&[&payload]).expect("the disk works");
        payloads.push(payload);
        if index % 4 == 2 {
            assert_eq!(writer.file().sync().expect("the disk works"), writer.end());
        }
    }
    offsets.push(writer.end());
    (payloads, offsets, proven_end)
}

#[test]
fn a_flipped_bit_below_the_synced_end_is_corruption_and_above_it_cuts() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let (payloads, offsets, proven_end) = small_log(&disk);
        assert!(proven_end > offsets[3] && proven_end < offsets[12], "both cases occur");
        let end = *offsets.last().expect("it has records");
        for known_end in [None, Some(end), Some(offsets[8])] {
            let synced_end = known_end.unwrap_or(proven_end);
            let limit = known_end.unwrap_or(end);
            for byte in 0..limit {
                for bit in [0, 3, 7] {
                    let image = disk.image();
                    image.flip_bit(PATH, byte, bit);
                    let expected = match offsets.iter().rposition(|offset| *offset <= byte) {
                        // The changed bit is in the header. The file has records, so the reader must not take this for
                        // an unfinished creation.
                        None => (payloads[..0].to_vec(), End::Corrupt(0)),
                        Some(record) => {
                            let offset = offsets[record];
                            let end = if offset < synced_end { End::Corrupt(offset) } else { End::Torn(offset) };
                            (payloads[..record].to_vec(), end)
                        }
                    };
                    assert_eq!(read(&image, known_end), expected, "byte {byte} bit {bit} known end {known_end:?}");
                }
            }
        }
    });
}

#[test]
fn a_cut_file_is_torn_unless_the_successor_knows_its_end() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let (payloads, offsets, _) = small_log(&disk);
        let end = *offsets.last().expect("it has records");
        for length in 0..=end {
            let image = disk.image();
            set_len(&image, length);
            let (found, outcome) = read(&image, None);
            let whole = offsets.iter().filter(|offset| **offset <= length).count().saturating_sub(1);
            assert_eq!(found, payloads[..whole], "length {length}");
            let expected = if length < HEADER_BYTES as u64 {
                End::Torn(0)
            } else if length == offsets[whole] {
                End::Clean
            } else {
                End::Torn(offsets[whole])
            };
            assert_eq!(outcome, expected, "length {length}");
            if length < end {
                assert_eq!(read(&image, Some(end)), (Vec::new(), End::Corrupt(length)), "length {length}");
            }
        }
    });
}

#[test]
fn nothing_above_the_known_end_is_looked_at() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let (payloads, offsets, _) = small_log(&disk);
        let image = disk.image();
        image.flip_bit(PATH, offsets[10], 1);
        assert_eq!(read(&image, Some(offsets[10])), (payloads[..10].to_vec(), End::Clean));
        // A log cannot have ended inside a record.
        assert_eq!(read(&disk, Some(offsets[10] + 8)), (payloads[..10].to_vec(), End::Corrupt(offsets[10])));
    });
}

#[test]
fn an_end_that_is_not_durable_limits_a_log_and_proves_nothing() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let (payloads, offsets, proven_end) = small_log(&disk);
        let end = |at| Some(KnownEnd { at, is_durable: false });
        let image = disk.read_all(Path::new(PATH)).expect("it is there");
        assert_eq!(read_to(&disk, end(offsets[10])), (payloads[..10].to_vec(), End::Clean));
        // Record 10 starts before the end that the next log states, but ends after it.
        assert_eq!(read_to(&disk, end(offsets[10] + 8)), (payloads[..10].to_vec(), End::Torn(offsets[10])));
        // Bytes before the end that the next log states are missing, but they may never have been written.
        let last = *offsets.last().expect("there are records");
        assert!(last >= proven_end, "the last record was not synced");
        set_len(&disk, last);
        assert_eq!(read_to(&disk, end(image.len() as u64)), (payloads[..offsets.len() - 1].to_vec(), End::Clean));
        let mut reader = RecordReader::open(&*disk, Path::new(PATH), LogKind::WriteAhead, end(image.len() as u64))
            .expect("it is whole");
        while reader.next_record().expect("it is whole").is_some() {}
        assert_eq!((reader.end(), reader.proven_end()), (last, proven_end), "what is missing can be seen");
        // Although the stated end is not durable, a record in the log still proves what was.
        write_at(&disk, b"damage", offsets[0] + 4);
        assert_eq!(read_to(&disk, end(last)), (Vec::new(), End::Corrupt(offsets[0])));
    });
}

#[test]
fn a_log_is_proven_to_be_synced_by_any_record_that_says_so() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let mut writer = writer(&disk);
        let proof = |disk: &SimDisk| {
            let mut reader =
                RecordReader::open(disk, Path::new(PATH), LogKind::WriteAhead, None).expect("its header is whole");
            while reader.next_record().is_ok_and(|record| record.is_some()) {}
            reader.proof_of_sync().expect("the disk works").is_some()
        };
        let first = writer.end();
        writer.append(&[b"one"]).expect("the disk works");
        writer.append(&[b"two"]).expect("the disk works");
        assert!(!proof(&disk), "the header is durable in every log");
        writer.file().sync().expect("the disk works");
        assert!(!proof(&disk), "no record says it yet");
        writer.append(&[b"three"]).expect("the disk works");
        assert!(proof(&disk));
        write_at(&disk, b"damage", first + 4);
        assert!(proof(&disk), "records before the proof do not matter");
    });
}

#[test]
fn zeros_after_the_last_record_are_a_torn_tail() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let (payloads, offsets, _) = small_log(&disk);
        let end = *offsets.last().expect("it has records");
        set_len(&disk, end + (3 << 20));
        assert_eq!(read(&disk, None), (payloads, End::Torn(end)));
    });
}

/// Damages a record of `distance` bytes, and checks that a later record, also of `distance` bytes, proves that it was
/// durable.
fn check_distant_proof(distance: usize) {
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk);
    writer.append(&[b"good"]).expect("the disk works");
    let bad = writer.end();
    writer.append(&[&vec![7; distance]]).expect("the disk works");
    let silent = disk.image();
    silent.flip_bit(PATH, bad + 30, 1);
    assert_eq!(read(&silent, None), (vec![b"good".to_vec()], End::Torn(bad)), "nothing proves it yet");

    writer.file().sync().expect("the disk works");
    let proof = writer.end();
    writer.append(&[&vec![9; distance]]).expect("the disk works");
    let image = disk.image();
    image.flip_bit(PATH, bad + 30, 1);
    assert_eq!(read(&image, None), (vec![b"good".to_vec()], End::Corrupt(bad)), "distance {distance}");
    // The proof is found even if the damage is in the length of the record.
    let image = disk.image();
    image.flip_bit(PATH, bad + 6, 0);
    assert_eq!(read(&image, None), (vec![b"good".to_vec()], End::Corrupt(bad)), "distance {distance}");
    // If the second half of the proving record is missing, it proves nothing.
    set_len(&image, proof + distance as u64 / 2);
    assert_eq!(read(&image, None), (vec![b"good".to_vec()], End::Torn(bad)), "distance {distance}");
}

#[test]
fn proof_is_found_at_any_distance() {
    in_both_forms(|| {
        // The search for a proof starts some bytes after the damaged record, and reads chunks of 1 MiB. At these
        // distances, the proving record straddles the ends of chunks.
        for around in [1 << 20, 2 << 20] {
            for distance in (around - 48..around + 32).step_by(4) {
                check_distant_proof(distance);
            }
        }
        check_distant_proof(100);
    });
}

#[test]
fn a_copy_of_a_record_inside_a_payload_proves_nothing() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let mut writer = writer(&disk);
        let first = writer.end();
        writer.append(&[b"one"]).expect("the disk works");
        writer.file().sync().expect("the disk works");
        let second = writer.end();
        writer.append(&[b"two"]).expect("the disk works");
        let copy = disk.read_all(Path::new(PATH)).expect("it is there")[first as usize..].to_vec();
        let third = writer.end();
        writer.append(&[&copy]).expect("the disk works");
        assert!(third > second);
        disk.flip_bit(PATH, third, 0);
        assert_eq!(read(&disk, None), (vec![b"one".to_vec(), b"two".to_vec()], End::Torn(third)));
    });
}

#[test]
fn a_record_that_claims_more_than_was_written_before_it_is_neither_read_nor_believed() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk);
    writer.append(&[b"good"]).expect("the disk works");
    let liar = writer.end();
    writer.append(&[b"liar"]).expect("the disk works");
    let mut record = disk.read_all(Path::new(PATH)).expect("it is there")[liar as usize..].to_vec();
    record[16..24].copy_from_slice(&(liar + 8).to_le_bytes());
    let crc = crc_fast::crc32_iscsi(&record[4..]);
    record[..4].copy_from_slice(&crc.to_le_bytes());
    write_at(&disk, &record, liar);
    assert_eq!(read(&disk, None), (vec![b"good".to_vec()], End::Torn(liar)));
    disk.flip_bit(PATH, HEADER_BYTES as u64, 0);
    assert_eq!(read(&disk, None), (Vec::new(), End::Torn(HEADER_BYTES as u64)));
}

/// Puts a lean record after a good one, changed by `change`, which is given the head: bytes 0 to 4 are the seal, which
/// is corrected, and the payload is empty.
fn read_changed(change: impl Fn(&mut Vec<u8>)) -> (Vec<Vec<u8>>, End) {
    FEATURES.set(LEAN_RECORDS);
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk);
    writer.append(&[b"good"]).expect("the disk works");
    let (form, offset) = (RecordForm::of(&header()), writer.end());
    let mut record = Vec::new();
    form.encode(&mut record, offset, offset, &[]);
    record.truncate(10);
    change(&mut record);
    record.resize(record.len().next_multiple_of(4), 0);
    form.close(&mut record, offset);
    write_at(&disk, &record, offset);
    read(&disk, None)
}

#[test]
fn a_lean_record_with_numbers_that_are_never_written_is_none() {
    let (good, at) = (vec![b"good".to_vec()], 80);
    let whole = (vec![b"good".to_vec(), Vec::new()], End::Clean);
    assert_eq!(read_changed(|_| {}), whole);
    assert_eq!(read_changed(|record| record[9] = 4), whole, "64 bytes from here to the header");
    let torn = (good, End::Torn(at));
    assert_eq!(read_changed(|record| record[9] = 5), torn, "the header is durable");
    assert_eq!(read_changed(|record| record[9] = 21), torn, "before the file begins");
    let longest = |record: &mut Vec<u8>| record.splice(9.., [0xff; 9].into_iter().chain([1])).for_each(drop);
    assert_eq!(read_changed(longest), torn, "four times this is more than 64 bits");
    let too_long = |record: &mut Vec<u8>| record.splice(9.., [0xff; 11]).for_each(drop);
    assert_eq!(read_changed(too_long), torn);
    let payload = |record: &mut Vec<u8>| record.splice(8.., [0xff, 0xff, 0xff, 0xff, 0x0f, 0]).for_each(drop);
    assert_eq!(read_changed(payload), torn);
}

#[test]
fn a_lean_record_that_has_moved_is_none() {
    FEATURES.set(LEAN_RECORDS);
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk);
    writer.append(&[b"good"]).expect("the disk works");
    let at = writer.end();
    writer.append(&[b"moved"]).expect("the disk works");
    let record = disk.read_all(Path::new(PATH)).expect("it is there")[at as usize..].to_vec();
    for by in [4, 8, 12] {
        let image = disk.image();
        set_len(&image, at);
        write_at(&image, &record, at + by);
        assert_eq!(read(&image, None), (vec![b"good".to_vec()], End::Torn(at)), "by {by}");
        set_len(&image, at);
        let next = Header { number: 8, log_id: LOG_ID ^ 1 << 40, ..header() };
        let mut other = Vec::new();
        RecordForm::of(&next).encode(&mut other, at, at, &[b"other"]);
        write_at(&image, &other, at);
        assert_eq!(read(&image, None), (vec![b"good".to_vec()], End::Torn(at)), "of a log with another id");
    }
}

#[test]
fn records_of_another_log_are_not_read() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let mut writer = writer(&disk);
        writer.append(&[b"mine"]).expect("the disk works");
        let end = writer.end();
        let other = Header { log_id: LOG_ID + (1 << 20), number: 8, previous: None, ..header() };
        let mut theirs = RecordWriter::create(&*disk, Path::new("other.log"), &other).expect("the disk works");
        theirs.append(&[b"older"]).expect("the disk works");
        theirs.file().sync().expect("the disk works");
        theirs.append(&[b"theirs"]).expect("the disk works");
        let bytes = disk.read_all(Path::new("other.log")).expect("it is there");
        write_at(&disk, &bytes[HEADER_BYTES..], end);
        assert_eq!(read(&disk, None), (vec![b"mine".to_vec()], End::Torn(end)));
    });
}

#[test]
fn an_unfinished_creation_is_an_empty_log_unless_the_successor_knows_better() {
    let bytes = header().encode();
    for length in 0..HEADER_BYTES {
        let disk = SimDisk::new(1);
        let file = disk.open(Path::new(PATH), Access::Create).expect("the disk works");
        file.write_at(&bytes[..length], 0).expect("the disk works");
        assert_eq!(read(&disk, None), (Vec::new(), End::Torn(0)), "length {length}");
        assert_eq!(read(&disk, Some(64)), (Vec::new(), End::Corrupt(length as u64)), "length {length}");
        // The length of the file reached the disk before a crash, but the other bytes did not.
        if length <= 60 {
            file.set_len(HEADER_BYTES as u64).expect("the disk works");
            assert_eq!(read(&disk, None), (Vec::new(), End::Torn(0)), "length {length}");
            assert_eq!(read(&disk, Some(64)), (Vec::new(), End::Corrupt(0)), "length {length}");
        }
    }
}

#[test]
fn a_header_that_is_cut_in_zeros_of_its_checksum_is_not_whole() {
    let header = |log_id| Header { log_id, ..header() }.encode();
    let bytes = (1..).map(header).find(|bytes| bytes[HEADER_BYTES - 1] == 0).expect("one in 256 ends with a zero");
    let disk = SimDisk::new(1);
    let file = disk.open(Path::new(PATH), Access::Create).expect("the disk works");
    file.write_at(&bytes[..HEADER_BYTES - 1], 0).expect("the disk works");
    assert_eq!(read(&disk, None), (Vec::new(), End::Torn(0)));
    let end = Some(KnownEnd { at: 64, is_durable: false });
    assert_eq!(read_to(&disk, end), (Vec::new(), End::Corrupt(0)), "it was durable before another log began");
}

/// Opens a file that has only this header. Returns the error, if any.
fn open_error(bytes: &[u8; HEADER_BYTES], kind: LogKind) -> Option<String> {
    let disk = SimDisk::new(1);
    let file = disk.open(Path::new(PATH), Access::Create).expect("the disk works");
    file.write_at(bytes, 0).expect("the disk works");
    RecordReader::open(&*disk, Path::new(PATH), kind, None).err().map(|error| error.to_string())
}

fn with_crc(mut bytes: [u8; HEADER_BYTES]) -> [u8; HEADER_BYTES] {
    let crc = crc_fast::crc32_iscsi(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn what_must_be_understood_is_refused_by_name_and_the_rest_ignored() {
    in_both_forms(|| {
        let feature = |bit: u32| with_crc(Header { features: 1 << bit, ..header() }.encode());
        assert_eq!(open_error(&header().encode(), LogKind::WriteAhead), None);
        for bit in 0..16 {
            assert_eq!(open_error(&feature(bit), LogKind::WriteAhead), None);
        }
        let begin_record = Header { features: BEGIN_RECORD, previous: None, ..header() };
        assert_eq!(open_error(&begin_record.encode(), LogKind::WriteAhead), None);
        let error = open_error(&feature(16), LogKind::WriteAhead).expect("it is refused");
        assert!(error.contains("corrupt at offset 0: the header names a previous log, which"), "{error}");
        for bit in 19..32 {
            let error = open_error(&feature(bit), LogKind::WriteAhead).expect("it is refused");
            assert!(
                error.contains(&format!("made by a newer Larch: feature {bit}; open it")) && error.contains(PATH),
                "{error}"
            );
        }
        let two = with_crc(Header { features: 0x8008_0001, ..header() }.encode());
        let error = open_error(&two, LogKind::WriteAhead).expect("it is refused");
        assert!(error.contains("features 19, 31"), "{error}");

        let mut newer = header().encode();
        newer[8] = 2;
        let error = open_error(&with_crc(newer), LogKind::WriteAhead).expect("it is refused");
        assert!(error.contains("made by a newer Larch: format version 2; open it"), "{error}");

        let error = open_error(&header().encode(), LogKind::Manifest).expect("it is refused");
        assert!(error.contains("the header says WriteAhead, expected Manifest"), "{error}");
    });
}

#[test]
fn errors_name_file_and_place_and_say_what_to_do() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let (_, offsets, _) = small_log(&disk);
        disk.flip_bit(PATH, offsets[1], 0);
        let mut reader =
            RecordReader::open(&*disk, Path::new(PATH), LogKind::WriteAhead, None).expect("the header is whole");
        reader.next_record().expect("the first is whole");
        let error = reader.next_record().expect_err("the second is not").to_string();
        let place = format!("{PATH} is corrupt at offset {}: a record's checksum does not match, but ", offsets[1]);
        assert!(
            error.starts_with(&place) && error.ends_with("was durable; restore the database from a backup"),
            "{error}"
        );

        disk.fail_operation(1, ErrorKind::PermissionDenied);
        let error =
            RecordReader::open(&*disk, Path::new(PATH), LogKind::WriteAhead, None).expect_err("it may not").to_string();
        assert!(error.starts_with(&format!("cannot open {PATH}: ")), "{error}");
    });
}

#[test]
fn a_failed_append_is_cut_back_and_may_be_tried_again() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let mut writer = writer(&disk);
        let end = writer.append(&[b"one"]).expect("the disk works");
        // Leave room for only a part of another record.
        disk.set_capacity(disk.used_bytes() + 20);
        let error = writer.append(&[&[b'2'; 100]]).expect_err("the disk is full").to_string();
        assert!(error.starts_with(&format!("cannot write {PATH}: ")), "{error}");
        assert_eq!((writer.end(), writer.file().appended_end()), (end, end));
        assert_eq!(disk.used_bytes(), end, "what was written of it takes no room");
        assert!(writer.append(&[&[b'2'; 100]]).is_err(), "the disk is still full");
        disk.set_capacity(u64::MAX);
        // The writer tries to cut the file again before the next append, and this fails.
        disk.fail_operation(1, ErrorKind::Other);
        assert!(writer.append(&[b"three"]).is_err());
        writer.append(&[b"three"]).expect("the disk works");
        assert_eq!(read(&disk, None), (vec![b"one".to_vec(), b"three".to_vec()], End::Clean));
    });
}

/// Whichever appends fail, a recovery returns a prefix of the appended records.
#[test]
fn appends_that_fail_leave_nothing_behind_after_any_crash() {
    in_both_forms(|| {
        for seed in 0..300 {
            let mut random = StdRng::seed_from_u64(seed);
            let disk = SimDisk::new(seed);
            let mut writer = writer(&disk);
            let (mut payloads, mut synced) = (Vec::new(), 0);
            for _ in 0..random.random_range(1..30) {
                let payload: Vec<u8> = (0..random.random_range(0..900)).map(|_| random.random()).collect();
                let is_full = random.random_bool(0.3);
                if is_full {
                    disk.set_capacity(disk.used_bytes() + random.random_range(0..500));
                }
                match writer.append(&[&payload]) {
                    Ok(_) => payloads.push(payload),
                    Err(error) => assert!(is_full, "seed {seed}: {error}"),
                }
                disk.set_capacity(u64::MAX);
                if random.random_bool(0.3) {
                    writer.file().sync().expect("the disk works");
                    synced = payloads.len();
                }
            }
            disk.crash();
            let (found, end) = read(&disk, None);
            assert!(!matches!(end, End::Corrupt(_)), "seed {seed}: {end:?}");
            assert!(found.len() >= synced && found == payloads[..found.len()], "seed {seed}: {} records", found.len());
        }
    });
}

#[test]
fn after_a_failed_sync_every_append_and_sync_is_refused() {
    in_both_forms(|| {
        let disk = SimDisk::new(1);
        let mut writer = writer(&disk);
        writer.append(&[b"one"]).expect("the disk works");
        disk.fail_sync(1, ErrorKind::Other);
        let error = writer.file().sync().expect_err("the sync fails").to_string();
        assert_eq!(writer.file().sync().expect_err("it is final").to_string(), error);
        assert_eq!(writer.append(&[b"two"]).expect_err("it is final").to_string(), error);
    });
}

/// Appends and syncs records until a crash at a random operation. Then reads the log twice, because recovery must be
/// repeatable.
fn check_crash(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let disk = SimDisk::new(seed);
    let mut writer = writer(&disk);
    let (mut payloads, mut synced) = (Vec::new(), 0);
    for _ in 0..random.random_range(0..40) {
        let length = if random.random_bool(0.1) { random.random_range(0..6000) } else { random.random_range(0..60) };
        let payload: Vec<u8> = (0..length).map(|_| random.random()).collect();
        writer.append(&[&payload]).expect("the disk works");
        payloads.push(payload);
        if random.random_bool(0.2) {
            writer.file().sync().expect("the disk works");
            synced = payloads.len();
        }
    }
    disk.crash();
    let (found, end) = read(&disk, None);
    assert!(found.len() >= synced && found == payloads[..found.len()], "seed {seed}: {} of {synced}", found.len());
    assert!(!matches!(end, End::Corrupt(_)), "seed {seed}: a crash is not corruption");
    assert_eq!(read(&disk, None), (found, end), "seed {seed}");
}

#[test]
fn after_a_crash_a_prefix_with_everything_synced_is_left() {
    in_both_forms(|| {
        for seed in seeds(400) {
            check_crash(seed);
        }
    });
}

/// A crash during `create` leaves an unfinished creation or an empty log.
#[test]
fn a_crash_while_creating_leaves_no_log_or_an_empty_one() {
    in_both_forms(|| {
        for seed in seeds(100) {
            for operation in 0..5 {
                let disk = SimDisk::new(seed);
                disk.fail_all_after(operation, ErrorKind::Other);
                let created = RecordWriter::create(&*disk, Path::new(PATH), &header());
                disk.crash();
                if disk.exists(Path::new(PATH)).expect("the disk works") {
                    let (found, end) = read(&disk, None);
                    assert!(found.is_empty() && matches!(end, End::Clean | End::Torn(0)), "seed {seed}: {end:?}");
                    assert!(created.is_err() || end == End::Clean, "seed {seed}");
                } else {
                    assert!(created.is_err(), "seed {seed}");
                }
            }
        }
    });
}

/// Changes random bytes at random places. Every read must still return a prefix of the written records, and nothing
/// may panic.
#[test]
fn no_change_of_bytes_yields_a_wrong_payload() {
    in_both_forms(|| {
        for seed in seeds(300) {
            let mut random = StdRng::seed_from_u64(seed);
            let disk = SimDisk::new(seed);
            let (payloads, offsets, _) = small_log(&disk);
            let end = *offsets.last().expect("it has records");
            for _ in 0..random.random_range(1..4) {
                let offset = random.random_range(0..end);
                let length = random.random_range(1..64).min(end - offset);
                let bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
                write_at(&disk, &bytes, offset);
            }
            let (found, _) = read(&disk, None);
            assert!(found.len() <= payloads.len() && found == payloads[..found.len()], "seed {seed}");
        }
    });
}

/// The seeds of a random test. Prints each seed before its run, so after a failure the last printed seed is the
/// failed one. `SEED=n cargo test -p larch-db name_of_test` runs seed `n` alone.
pub(crate) fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let chosen: Option<u64> = std::env::var("SEED").ok().map(|seed| seed.parse().expect("SEED is a number"));
    let range = chosen.map_or(0..count, |seed| seed..seed + 1);
    range.inspect(|seed| println!("seed {seed}; to run it alone: SEED={seed} cargo test"))
}

#[cfg(unix)]
#[test]
#[allow(clippy::disallowed_methods, reason = "what a file takes of a real disk is what is tested")]
fn a_log_gives_the_room_back_that_it_does_not_use() {
    use std::os::unix::fs::MetadataExt;
    const USED: u64 = 1 << 20;
    let directory = tempfile::tempdir().expect("a directory");
    let (disk, path) = (os::Machine::real().disk, directory.path().join("log"));
    let room = || std::fs::metadata(&path).expect("the log is there").blocks() * 512;
    let mut file = EmptyLog::create(&*disk, &path).expect("the disk works");
    file.allocate_ahead(4 * USED);
    // A file system that is nearly full or cannot allocate ahead gives no space.
    assert!(room() == 0 || room() >= 4 * USED, "{}", room());
    let mut writer = file.begin(&header()).expect("the disk works");
    writer.append(&[b"first"]).expect("the disk works");
    writer.trim().expect("the disk works");
    assert!(room() <= USED, "{}", room());
    let end = writer.append(&[b"second"]).expect("the log goes on after it");
    writer.file().sync().expect("the disk works");
    assert_eq!(disk.open(&path, Access::Read).and_then(|file| file.len()).expect("it is there"), end);
    let mut reader =
        RecordReader::open(&*disk, &path, LogKind::WriteAhead, Some(KnownEnd::durable(end))).expect("it is whole");
    let mut payloads = Vec::new();
    while let Some(record) = reader.next_record().expect("it is whole") {
        payloads.push(record.payload.to_vec());
    }
    assert_eq!(payloads, [&b"first"[..], b"second"]);
}
