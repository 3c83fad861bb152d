//! Tests commits with only a log and memtables, without a database.

use super::*;
use crate::base::ops::BatchOps;
use crate::base::record::LEAN_RECORDS;
use crate::conflicts::signature::Signature;
use crate::log::LogReader;
use os::sim::SimDisk;
use std::io::ErrorKind;

const TABLE: TableId = TableId(1);

fn writer(disk: &Arc<SimDisk>) -> Writer {
    let machine = Machine::simulated_on(disk.clone(), 1);
    let sync = Arc::new(SyncPoint::new(Version(4)));
    let of = (&machine, Path::new(""), LEAN_RECORDS);
    Writer::create(of, Arc::new(MemSet::new(7, Arc::default())), None, sync, Version(5)).expect("the disk works")
}

fn put(key: &[u8], value: &[u8]) -> BatchOps {
    let mut ops = BatchOps::new();
    ops.put(TABLE.0, key, value);
    ops
}

/// Commits `ops` in the same way as a database does.
fn commit(writer: &mut Writer, ops: &BatchOps) -> Result<Version, NotAppended> {
    let ops = ops.into();
    let version = writer.append(ops, 100, Signature::ANY)?;
    assert!(writer.memory().used_bytes() >= 100, "memory is reserved until the commit is applied");
    apply(writer.memory(), version, ops, 100);
    Ok(version)
}

/// Reads the log. Returns the version and the key of each put.
fn logged(disk: &Arc<SimDisk>) -> Vec<(u64, Vec<u8>)> {
    let mut reader = LogReader::open(&**disk, &log_path(Path::new(""), 7), None).expect("the log is whole");
    let mut found = Vec::new();
    while let Some(commit) = reader.next_commit().expect("the log is whole") {
        for (_, op) in commit.ops.iter() {
            if let Op::Put { key, .. } = op {
                found.push((commit.version.0, key.to_vec()));
            }
        }
    }
    found
}

#[test]
fn log_and_memory_have_the_same_commits_in_the_order_of_versions() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk);
    assert_eq!(commit(&mut writer, &put(b"b", b"1")).expect("the disk works"), Version(5));
    assert_eq!(commit(&mut writer, &put(b"a", b"2")).expect("the disk works"), Version(6));
    assert_eq!(writer.next_version(), Version(7));
    writer.unsynced().sync().expect("the disk works");
    assert_eq!(logged(&disk), [(5, b"b".to_vec()), (6, b"a".to_vec())]);
    let memtable = writer.memory().table(TABLE).expect("rows were put");
    let rows: Vec<_> = memtable.all_versions().map(|row| (row.key().to_vec(), row.version())).collect();
    assert_eq!(rows, [(b"a".to_vec(), Version(6)), (b"b".to_vec(), Version(5))]);
}

#[test]
fn a_commit_that_the_log_refuses_is_neither_in_memory_nor_takes_a_version() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk);
    disk.fail_all_after(0, ErrorKind::StorageFull);
    assert!(matches!(commit(&mut writer, &put(b"a", b"1")), Err(NotAppended::Refused(_))));
    assert!(writer.memory().is_empty() && writer.next_version() == Version(5));
    disk.clear_faults();
    assert_eq!(commit(&mut writer, &put(b"b", b"2")).expect("the disk works again"), Version(5));
    writer.unsynced().sync().expect("the disk works");
    assert_eq!(logged(&disk), [(5, b"b".to_vec())]);
}

#[test]
fn after_a_failed_sync_no_commit_is_taken() {
    let disk = SimDisk::new(1);
    let mut writer = writer(&disk);
    commit(&mut writer, &put(b"a", b"1")).expect("the disk works");
    disk.fail_all_after(0, ErrorKind::Other);
    writer.unsynced().sync().expect_err("the disk fails");
    disk.clear_faults();
    assert!(matches!(commit(&mut writer, &put(b"b", b"2")), Err(NotAppended::SyncFailed(_))));
    assert_eq!(writer.memory().table(TABLE).expect("one row was put").all_versions().count(), 1);
}
