//! What is written is read, and nothing else is.

use super::{Sheet, SheetWriter, decode};
use crate::journal::table::{Change, Extent, Holder, Table};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

fn holder(epoch: u64) -> Holder {
    Holder { epoch, since: 1_700_000_000, who: "machine a, process 7".to_owned() }
}

fn sheet() -> (Vec<u8>, Sheet) {
    let mut table = Table { holder: Some(holder(3)), ..Table::default() };
    table.names.insert("CURRENT".to_owned(), 9);
    table.files.insert(9, vec![Extent { from: 0, sheet: 2, at: 50, bytes: 6 }]);
    table.begins.insert(2, 1_600_000_000);
    let mut writer = SheetWriter::new(7, 4, [11, 12]);
    writer.table(&table);
    writer.begin(&holder(4));
    writer.write(9, 4, b"rest");
    writer.name("a.log", Some(10));
    writer.name("b.log", None);
    let (bytes, changes) = writer.finish();
    (bytes, Sheet { number: 7, epoch: 4, changes })
}

#[test]
fn a_sheet_that_is_written_is_read() {
    let (bytes, sheet) = sheet();
    assert_eq!(decode(&bytes).as_ref(), Ok(&sheet));
    assert!(sheet.has_table());
    let Change::Write { at, bytes: count, .. } = sheet.changes[2] else { panic!("it is a write") };
    assert_eq!(&bytes[at as usize..][..count as usize], b"rest");
    let mut table = Table::default();
    table.apply(7, &sheet.changes).expect("the changes follow each other");
    assert_eq!((table.len(9), table.epoch(), table.names.len()), (8, 4, 2));
    assert_eq!(table.sheets().into_iter().collect::<Vec<_>>(), [2, 7]);
}

#[test]
fn bytes_that_were_changed_are_no_sheet() {
    let (bytes, _) = sheet();
    for seed in 0..2000 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut damaged = bytes.clone();
        if rng.random() {
            let at = rng.random_range(0..damaged.len());
            damaged[at] ^= 1 << rng.random_range(0..8);
        } else {
            damaged.truncate(rng.random_range(0..damaged.len()));
        }
        assert!(decode(&damaged).is_err(), "seed {seed}");
        // With a checksum that is right, what is within is looked at, and nothing panics.
        let end = damaged.len().saturating_sub(4);
        damaged.truncate(end);
        let crc = crc_fast::crc32_iscsi(&damaged);
        damaged.extend(crc.to_le_bytes());
        if let Ok(sheet) = decode(&damaged) {
            Table::default().apply(sheet.number, &sheet.changes).unwrap_or_default();
        }
    }
}
