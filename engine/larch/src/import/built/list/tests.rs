//! Tests what the list of built files promises: its bytes do not change, and damage is found.

use super::*;
use crate::base::sealed::tests as sealed;
use sst::{KeyBounds, Totals, Tree};

fn file(number: u64, low: &[u8], high: &[u8]) -> BuiltFile {
    let totals = Totals { rows: 3, bytes: 4096, group_bytes: 0, erased: 0 };
    let address = pages::Address { offset: 0, bytes: 4096, crc: 0xddcc_bbaa };
    let root = sst::Root { address, height: 0, index_bytes: 0 };
    let meta = Meta {
        expiry: None,
        file_id: 0x0807_0605_0403_0201,
        file_bytes: 8192,
        main: Some(Tree { totals, data_pages: 1, btree: Some(root), flat: None }),
        history: None.into(),
        range_erases: None.into(),
        filter: None,
        bounds: KeyBounds::cut(low, high),
        oldest: Version(0),
        newest: Version(0),
        value_bytes: 0,
        user_bytes: 9,
        groups: Vec::new(),
        has_origin: true,
        has_samples: false,
        has_zstd: false,
        has_merges: false,
        unknown: sst::format::meta::Unknown::default(),
    };
    BuiltFile { number, checksum: 0x1122_3344_5566_7788, meta }
}

fn list() -> BuiltList {
    let files = vec![file(7, b"a", b"c"), file(3, b"d", b"f")];
    BuiltList { id: 0x0102_0304_0506_0708, compat: "0.2".to_owned(), options: TableOptions::default(), files }
}

#[test]
fn the_bytes_are_those_that_the_format_page_draws() {
    let mut expected = b"LARCHBLT\x01\0\0\0\0\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01".to_vec();
    expected.extend(b"\x030.2");
    let mut bytes = Vec::new();
    list().options.encode(&mut bytes);
    varint::put_bytes(&mut expected, &bytes);
    expected.push(2);
    for BuiltFile { number, meta, .. } in list().files {
        expected.push(number as u8);
        expected.extend(b"\x88\x77\x66\x55\x44\x33\x22\x11");
        bytes.clear();
        meta.encode(&mut bytes);
        varint::put_bytes(&mut expected, &bytes);
    }
    expected.extend(crc_fast::crc32_iscsi(&expected).to_le_bytes());
    assert_eq!(list().encode(), expected);
    assert_eq!(BuiltList::decode(&expected), Ok(list()));
    assert_eq!(list().files[0].name(), "00000007-0.sst");
    assert_eq!((list().rows(), list().bytes()), (6, 16384));
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    sealed::expect_damage_found(&list().encode(), BuiltList::decode);
}

#[test]
fn a_newer_list_is_refused_by_what_is_not_known() {
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        BuiltList::decode(&sealed::changed(list().encode(), change)).map_err(|error| error.to_string())
    };
    assert_eq!(changed(&|bytes| bytes[8] = 2), Err("made by a newer Larch: format version 2".to_owned()));
    assert_eq!(changed(&|bytes| bytes[14] = 1), Err("made by a newer Larch: feature 16".to_owned()));
    assert_eq!(changed(&|bytes| bytes.extend([7, 0])), Err("made by a newer Larch: field 7".to_owned()));
    assert_eq!(changed(&|bytes| bytes.extend([200, 1, 9])), Ok(list()));
    let mut newer = list();
    newer.files[1].meta.unknown.features = 1 << 20;
    let error = BuiltList::decode(&newer.encode()).map_err(|error| error.to_string());
    assert_eq!(error, Err("made by a newer Larch: feature 20".to_owned()));
}

#[test]
fn a_list_that_no_builder_writes_is_refused() {
    let check = |change: &dyn Fn(&mut BuiltList)| {
        let mut list = list();
        change(&mut list);
        assert!(BuiltList::decode(&list.encode()).is_err(), "{list:?}");
    };
    check(&|list| list.files[1].number = 7);
    check(&|list| list.files[1].number = u64::MAX);
    check(&|list| list.files[1].meta.newest = Version(1));
    check(&|list| list.files[1].meta.oldest = Version(1));
    check(&|list| list.files[1].meta.main = None);
    check(&|list| {
        let main = list.files[1].meta.main.as_mut();
        main.expect("it has rows").totals.erased = 1;
    });
    check(&|list| list.files[1].meta.history = list.files[1].meta.main.into());
    check(&|list| list.files[1].meta.bounds = KeyBounds { low: b"zz".to_vec(), high: Some(b"e".to_vec()) });
    check(&|list| list.files[1].meta.file_bytes = u64::MAX - 1);
    check(&|list| list.files.swap(0, 1));
    check(&|list| list.files[1].meta.bounds = KeyBounds::cut(b"b", b"f"));
    check(&|list| list.options.groups = vec!["hot".to_owned(), "cold".to_owned()]);
    let none = BuiltList { files: Vec::new(), ..list() };
    assert_eq!(BuiltList::decode(&none.encode()), Ok(none));
}
