//! Tests that a sheet is read as it was written, and that other bytes are refused.

use super::{Sheet, SheetWriter, decode};
use crate::journal::table::{Branch, CLAIM, Change, Extent, GUEST, Holder, PARENTS, Table};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

fn holder(epoch: u64) -> Holder {
    Holder { epoch, since: 1_700_000_000, who: "machine a, process 7".to_owned() }
}

fn sheet() -> (Vec<u8>, Sheet) {
    let mut table = Table { holder: Some(holder(3)), ..Table::default() };
    table.names.insert("CURRENT".to_owned(), 9);
    table.files.insert(9, vec![Extent { from: 0, sheet: 2, at: 50, bytes: 6 }]);
    table.fences.insert(2, 1_600_000_000);
    let mut writer = SheetWriter::new(7, 4, [11, 12]);
    writer.table(&table);
    writer.begin(&holder(4));
    writer.write(9, 4, b"rest");
    writer.name("a.log", Some(10));
    writer.name("b.log", None);
    let (bytes, changes) = writer.finish();
    (bytes, Sheet { number: 7, epoch: 4, changes })
}

fn branch(prefix: &str) -> Branch {
    Branch { prefix: prefix.to_owned(), sheet: 5, since: 1_700_000_000 }
}

#[test]
fn sheets_of_branches_are_read_and_no_older_release_takes_them() {
    let is_new = |bytes: &[u8]| bytes.starts_with(b"LARCHJS2");
    assert!(!is_new(&sheet().0), "what has nothing to do with branches is as before");
    let mut table = Table::default();
    table.names.insert("CURRENT".to_owned(), 9);
    table.branches.insert(77, branch("a b/c"));
    let mut guest = SheetWriter::new(7, GUEST, [1, 2]);
    guest.table(&table);
    guest.branch(78, Some(&branch("d")));
    let (bytes, changes) = guest.finish();
    let sheet = decode(&bytes).expect("it was just written");
    assert!(is_new(&bytes) && sheet.is_of_guest() && sheet.changes == changes);
    table.apply(7, sheet.epoch, &sheet.changes).expect("the changes follow each other");
    assert_eq!(table.branches.into_iter().collect::<Vec<_>>(), [(77, branch("a b/c")), (78, branch("d"))]);
    let with = |change: &dyn Fn(&mut SheetWriter)| {
        let mut writer = SheetWriter::new(7, 4, [1, 2]);
        change(&mut writer);
        let (bytes, changes) = writer.finish();
        assert_eq!(decode(&bytes).map(|sheet| sheet.changes), Ok(changes));
        is_new(&bytes)
    };
    let mut of_branch = Table::default();
    of_branch.names.insert(PARENTS.to_owned(), 9);
    assert!(with(&|writer| writer.branch(78, None)) && with(&|writer| writer.name(PARENTS, Some(9))));
    assert!(with(&|writer| writer.table(&of_branch)) && !with(&|writer| writer.table(&Table::default())));
    let mut guest = SheetWriter::new(7, GUEST, [1, 2]);
    guest.name("CURRENT", None);
    assert!(decode(&guest.finish().0).is_err(), "a guest changes no files");
}

#[test]
fn sheets_of_terms_are_read_and_no_older_release_takes_them() {
    let is_new = |bytes: &[u8]| bytes.starts_with(b"LARCHJS3");
    let mut claim = SheetWriter::new(8, CLAIM, [1, 2]);
    claim.claim(77, 1_700_000_000, "machine b");
    let (bytes, changes) = claim.finish();
    let sheet = decode(&bytes).expect("it was just written");
    assert!(is_new(&bytes) && sheet.takes_over() && !sheet.is_of_guest() && sheet.changes == changes);
    let mut table = Table { holder: Some(holder(3)), ..Table::default() };
    table.last.sheet = 5;
    table.apply(8, sheet.epoch, &sheet.changes).expect("the changes follow each other");
    assert_eq!((table.epoch(), table.term.sheet), (4, 8));
    assert_eq!(
        table.fences.keys().copied().collect::<Vec<_>>(),
        [6, 7, 8],
        "the writer before stands before one of these"
    );
    table.apply(9, sheet.epoch, &sheet.changes).expect("it is said again");
    assert_eq!((table.epoch(), table.term.sheet, table.last.sheet), (4, 8, 9), "it has taken over already");
    let mut writer = SheetWriter::new(10, 4, [1, 2]);
    writer.table(&table);
    writer.end();
    let (bytes, changes) = writer.finish();
    let sheet = decode(&bytes).expect("it was just written");
    assert!(is_new(&bytes) && sheet.changes == changes);
    let mut read = Table::default();
    read.apply(10, 4, &sheet.changes).expect("the changes follow each other");
    table.apply(10, 4, &[Change::End]).expect("it ends");
    assert_eq!(read, table);
    let claim = Change::Claim { id: 78, since: 1_700_000_001, who: String::new() };
    table.apply(11, CLAIM, &[claim]).expect("the changes follow each other");
    assert_eq!((table.epoch(), table.fences.len()), (5, 3), "a writer that has ended meets nothing");
    let mut other = SheetWriter::new(8, CLAIM, [1, 2]);
    other.name("CURRENT", None);
    assert!(decode(&other.finish().0).is_err(), "one that takes over has not read what is before");
}

#[test]
fn a_sheet_that_is_written_is_read() {
    let (bytes, sheet) = sheet();
    assert_eq!(decode(&bytes).as_ref(), Ok(&sheet));
    assert!(sheet.has_table());
    let Change::Write { at, bytes: count, .. } = sheet.changes[2] else { panic!("it is a write") };
    assert_eq!(&bytes[at as usize..][..count as usize], b"rest");
    let mut table = Table::default();
    table.apply(7, sheet.epoch, &sheet.changes).expect("the changes follow each other");
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
        // Damaged bytes with a right checksum are decoded. This must not panic.
        let end = damaged.len().saturating_sub(4);
        damaged.truncate(end);
        let crc = crc_fast::crc32_iscsi(&damaged);
        damaged.extend(crc.to_le_bytes());
        if let Ok(sheet) = decode(&damaged) {
            Table::default().apply(sheet.number, sheet.epoch, &sheet.changes).unwrap_or_default();
        }
    }
}
