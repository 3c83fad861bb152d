//! Tests that a database written for an older release has nothing that this release cannot read.

use super::*;
use crate::base::record::RecordReader;
use crate::manifest::edit::Framing;
use crate::manifest::{Edit, ManifestLog};
use crate::{Compression, Database, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use std::path::{Path, PathBuf};

/// An optional feature that no decoder knows.
pub const LATER: u32 = 1 << 15;

fn open(disk: &Arc<SimDisk>, compat: Option<Release>) -> crate::Result<Database> {
    let builder = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1));
    match compat {
        Some(release) => builder.compat(release).open(),
        None => builder.open(),
    }
}

/// The features of the current manifest, and the release that the manifest says it was written for.
fn manifest(disk: &Arc<SimDisk>) -> (u32, Option<String>) {
    let machine = Machine::simulated_on(disk.clone(), 1);
    let path: PathBuf = ManifestLog::current(&machine, Path::new("db")).expect("it is there");
    let mut reader = RecordReader::open(&*machine.disk, &path, LogKind::Manifest, None).expect("it is whole");
    let features = reader.header().expect("it is whole").features;
    let mut written_for = None;
    while let Some(record) = reader.next_record().expect("it is whole") {
        let mut payload = record.payload;
        while !payload.is_empty() {
            if let Some(Edit::WrittenFor(release)) =
                Edit::decode(&mut payload, Framing::of(features)).expect("it is whole")
            {
                written_for = Some(release);
            }
        }
    }
    (features, written_for)
}

#[test]
fn a_later_feature_is_not_written_under_compat_of_an_older_release() {
    let (_, disk) = Machine::simulated(1);
    drop(open(&disk, Some(Release::Later)).expect("the disk works"));
    assert_eq!(manifest(&disk), (crate::base::record::EDIT_FIELDS | LATER, Some("later".to_owned())));
    for compat in [Some(Release::V0_1), None] {
        drop(open(&disk, compat).expect("the disk works"));
        assert_eq!(
            manifest(&disk),
            (crate::base::record::EDIT_FIELDS, Some(compat.unwrap_or(Release::NEWEST).to_string())),
            "{compat:?}"
        );
    }
    drop(open(&disk, Some(Release::Later)).expect("an open under compat binds no later one"));
    assert_eq!(manifest(&disk).0 & LATER, LATER);
}

#[test]
fn files_have_only_features_that_the_release_reads() {
    let options = TableOptions::default();
    let known = [
        (Release::V0_1, sst::FEATURES & !SST_0_2),
        (Release::V0_2, sst::FEATURES),
        (Release::Later, sst::FEATURES | LATER),
    ];
    for (release, expected) in known {
        let built = options.build(sst::FilterKind::Bits12, release);
        assert_eq!(built.features, expected);
    }
}

#[test]
fn every_feature_that_a_decoder_knows_has_a_release() {
    assert_eq!(Release::NEWEST.features(Format::Sst), sst::FEATURES);
    assert_eq!(Release::NEWEST.features(Format::Manifest), LogKind::Manifest.features());
    assert_eq!(Release::NEWEST.features(Format::Log), LogKind::WriteAhead.features());
    assert_eq!(Release::ALL.last(), Some(&Release::NEWEST));
    assert!(Release::ALL.is_sorted());
}

#[test]
fn a_release_has_a_name_and_others_are_refused_with_the_names_there_are() {
    for release in Release::ALL {
        assert_eq!(release.to_string().parse(), Ok(*release));
    }
    let error = "0.7".parse::<Release>().expect_err("there is none");
    assert_eq!(error, "this release cannot write for a release 0.7; choose from 0.1, 0.2");
}

#[test]
fn tables_are_not_compressed_by_zstd_under_compat_of_a_release_that_does_not_read_it() {
    let zstd = || TableOptions { compression: Compression::ZSTD, ..TableOptions::default() };
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk, Some(Release::V0_1)).expect("the disk works");
    let expected = "the options cannot be used: compat 0.1: Larch 0.1 does not read pages compressed by zstd; choose lz4, or \
                    open the database without compat";
    let refused = db.table_with("t", zstd()).expect_err("0.1 does not read it");
    assert_eq!(refused.to_string(), expected);
    let table = db.table("t").expect("nothing was made by this name");
    let refused = table.alter(|options| options.compression = Compression::ZSTD).expect_err("0.1 does not read it");
    assert_eq!(refused.to_string(), expected);
    assert_eq!(table.options(), TableOptions::default());
    table.insert("k", "v").expect("the disk works");
    drop((table, db));

    // No file of the table has zstd pages yet, but the next one would.
    let db = open(&disk, None).expect("the disk works");
    db.table("t").expect("it is there").alter(|options| *options = zstd()).expect("the disk works");
    drop(db);
    let refused = open(&disk, Some(Release::V0_1)).expect_err("0.1 does not read it");
    let expected = "the options cannot be used: compat 0.1: table t is compressed by zstd, and Larch 0.1 does not read that; \
                    open the database without compat";
    assert_eq!(refused.to_string(), expected);

    // The table is no longer compressed with zstd, but one of its older files is.
    let db = open(&disk, None).expect("the disk works");
    let table = db.table("t").expect("it is there");
    for i in 0..1000u32 {
        table.insert(i.to_be_bytes(), [7; 100]).expect("the disk works");
    }
    db.flush().expect("the disk works");
    table.alter(|options| options.compression = Compression::None).expect("the disk works");
    drop((table, db));
    let refused = open(&disk, Some(Release::V0_1)).expect_err("0.1 does not read it").to_string();
    assert!(refused.contains(" has feature") && refused.contains("22"), "{refused}");
}
