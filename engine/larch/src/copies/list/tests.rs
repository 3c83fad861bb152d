//! Tests that the bytes of a backup's list do not change, and that damage is found.

use super::*;
use crate::base::sealed::tests as sealed;

fn list() -> BackupList {
    let file = |name: &str, lies, bytes| StoredFile {
        name: name.to_owned(),
        lies,
        content: Content { bytes, checksum: 0x1122_3344_5566_7788 },
    };
    BackupList {
        database: 0x0102_0304_0506_0708,
        number: 3,
        version: Version(300),
        time: Duration::from_secs(1_000),
        files: vec![
            file("00000024-9.sst", Lies::With { backup: 2, id: 0xabcd }, 4096),
            file("MANIFEST-00000031", Lies::Alone, 500),
        ],
    }
}

/// The same list, but with its shared file in the directory `files`.
fn list_with_files() -> BackupList {
    let mut list = list();
    list.files[0].lies = Lies::InFiles { id: 0xabcd };
    list
}

#[test]
fn the_bytes_are_those_that_the_format_page_draws() {
    let mut expected = b"LARCHBAK\x01\0\0\0\0\0\x01\0\x08\x07\x06\x05\x04\x03\x02\x01".to_vec();
    expected.extend([3, 0xac, 2, 0xe8, 7, 2]);
    expected.extend(b"\x0e00000024-9.sst\x02\xcd\xab\0\0\0\0\0\0\x02\x80\x20\x88\x77\x66\x55\x44\x33\x22\x11");
    expected.extend(b"\x11MANIFEST-00000031\x00\xf4\x03\x88\x77\x66\x55\x44\x33\x22\x11");
    expected.extend(crc_fast::crc32_iscsi(&expected).to_le_bytes());
    assert_eq!(list().encode(), expected);
    assert_eq!(BackupList::decode(&expected), Ok(list()));
    assert_eq!(list().manifest(), "MANIFEST-00000031");
    assert_eq!(list().files[0].stored_name(), "00000024-9.sst");
}

#[test]
fn a_list_without_the_feature_bit_is_read_as_it_was_written() {
    let mut expected = b"LARCHBAK\x01\0\0\0\0\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01".to_vec();
    expected.extend([3, 0xac, 2, 0xe8, 7, 2]);
    expected.extend(b"\x0e00000024-9.sst\x01\xcd\xab\0\0\0\0\0\0\x80\x20\x88\x77\x66\x55\x44\x33\x22\x11");
    expected.extend(b"\x11MANIFEST-00000031\x00\xf4\x03\x88\x77\x66\x55\x44\x33\x22\x11");
    expected.extend(crc_fast::crc32_iscsi(&expected).to_le_bytes());
    assert_eq!(list_with_files().encode(), expected);
    assert_eq!(BackupList::decode(&expected), Ok(list_with_files()));
    assert_eq!(list_with_files().files[0].stored_name(), "00000024-9-000000000000abcd.sst");
    assert_eq!(list_with_files().files[0].identity(), list().files[0].identity());
}

#[test]
fn a_file_with_another_backup_needs_the_feature_bit() {
    let without = sealed::changed(list().encode(), |bytes| bytes[14] = 0);
    assert!(matches!(BackupList::decode(&without), Err(Unreadable::Corrupt(why)) if why.contains("its head")));
    let beside = sealed::changed(list_with_files().encode(), |bytes| bytes[14] = 1);
    assert_eq!(BackupList::decode(&beside), Ok(list_with_files()), "a bit that is not needed does no harm");
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    sealed::expect_damage_found(&list().encode(), BackupList::decode);
}

#[test]
fn a_newer_list_is_refused_by_what_is_not_known() {
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        BackupList::decode(&sealed::changed(list().encode(), change)).map_err(|error| error.to_string())
    };
    assert_eq!(changed(&|bytes| bytes[8] = 2), Err("made by a newer Larch: format version 2".to_owned()));
    assert_eq!(changed(&|bytes| bytes[14] = 2), Err("made by a newer Larch: feature 17".to_owned()));
    assert_eq!(changed(&|bytes| bytes.extend([7, 0])), Err("made by a newer Larch: field 7".to_owned()));
    assert_eq!(changed(&|bytes| bytes.extend([200, 1, 9])), Ok(list()));
}

#[test]
fn a_name_that_leads_out_of_the_backup_is_refused() {
    for name in ["../00000024-9.sst", "1-/../../x.sst", "/etc/passwd", "CURRENT", "00000001.log", ""] {
        let mut list = list();
        list.files[0].name = name.to_owned();
        assert!(BackupList::decode(&list.encode()).is_err(), "{name:?}");
    }
    let mut none = list();
    none.files.pop();
    assert!(BackupList::decode(&none.encode()).is_err(), "a list has a manifest");
}

#[test]
fn a_list_that_would_overflow_or_names_a_file_twice_is_refused() {
    let check = |change: &dyn Fn(&mut BackupList)| {
        let mut list = list();
        change(&mut list);
        assert!(BackupList::decode(&list.encode()).is_err(), "{list:?}");
    };
    check(&|list| list.number = u64::MAX);
    check(&|list| list.files[0].lies = Lies::With { backup: 4, id: 1 });
    check(&|list| list.files[0].content.bytes = u64::MAX);
    check(&|list| list.files.push(list.files[0].clone()));
    let names = ["24-9.sst", "00000024.sst", "+0000024-9.sst", "00000024-09.sst", "18446744073709551615-9.sst"];
    for name in names {
        check(&|list| list.files[0].name = name.to_owned());
    }
    for name in ["MANIFEST-31", "MANIFEST-18446744073709551615"] {
        check(&|list| list.files[1].name = name.to_owned());
    }
}
