//! A dump fails where it cannot go on. What it prints is in the scripts of `crate::tests`.

use super::*;
use crate::build::{BuildOptions, Compression};
use crate::fixture::{Built, Content, PATH, tiny};
use crate::format::meta::IndexKind;
use crate::format::validate;
use pages::{Admit, Loaded, PageCache, Reason, Resident, Session};
use rand::{RngExt, SeedableRng, rngs::StdRng};

fn dumped(built: &Built) -> Result<String> {
    let mut out = Vec::new();
    dump(&built.sst(), &Resident::new(validate), DumpDetail::Rows, &mut out)?;
    Ok(String::from_utf8(out).expect("everything else is escaped"))
}

#[test]
fn a_dump_of_a_damaged_file_names_the_place_and_never_panics() {
    for compression in [Compression::None, Compression::Lz4] {
        let seed = 12;
        let mut rng = StdRng::seed_from_u64(seed);
        let content = Content::random(&mut rng, 30);
        let built = content.build(BuildOptions { index: IndexKind::Both, compression, ..tiny() });
        let whole = dumped(&built).expect("the file is whole");
        let mut failed = 0;
        for _ in 0..500 {
            let (byte, bit) = (rng.random_range(0..built.meta.file_bytes), rng.random_range(0..8));
            built.disk.flip_bit(PATH, byte, bit);
            match dumped(&built) {
                // Value pages are not read, and gaps are nobody's.
                Ok(text) => assert_eq!(text, whole, "seed {seed}, byte {byte} bit {bit}"),
                Err(Error::Corrupt { file, offset, .. }) => {
                    assert_eq!(file, Path::new(PATH));
                    assert!((offset..offset + (16 << 10)).contains(&byte), "seed {seed}: byte {byte}, told {offset}");
                    failed += 1;
                }
                Err(error) => panic!("seed {seed}, byte {byte} bit {bit}: {error}"),
            }
            built.disk.flip_bit(PATH, byte, bit);
        }
        assert!(failed > 100, "{failed} flips were met");
    }
}

#[test]
fn something_else_is_not_taken_for_a_file() {
    use os::{Access, Disk};
    let disk = os::sim::SimDisk::new(1);
    for (name, bytes) in [("empty", vec![]), ("short", vec![7; 100]), ("long", vec![7; 10_000])] {
        let file = disk.open(Path::new(name), Access::Create).expect("the name is free");
        file.append(&bytes).expect("there is room");
        let error = read_footer(&*file, Path::new(name)).expect_err("it is no SST");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_full_output_is_an_error() {
    let built = Content::of_keys(["a", "b"]).build(tiny());
    let mut room = [0; 50];
    let source = Resident::new(validate);
    let error =
        dump(&built.sst(), &source, DumpDetail::Pages, &mut room.as_mut_slice()).expect_err("fifty bytes hold no dump");
    assert!(error.to_string().contains("cannot write output"), "{error}");
}

#[test]
fn a_dump_of_what_is_in_memory_reads_nothing_and_names_the_rest() {
    let mut rng = StdRng::seed_from_u64(3);
    let mut content = Content::random(&mut rng, 40);
    content.groups = 2;
    let built = content.build(tiny());
    let cache = PageCache::new(1 << 20, 2, validate);
    let sst = built.sst_in(&cache, false);
    let text = |sst: &Sst| {
        let mut out = Vec::new();
        dump(sst, &Loaded::new(&cache), DumpDetail::Loaded, &mut out).expect("nothing is read");
        String::from_utf8(out).expect("everything else is escaped")
    };
    let before = built.disk.counts().reads;
    let nothing = text(&sst);
    assert_eq!(nothing.lines().filter(|line| line.ends_with("not in memory")).count(), built.meta.trees().count());
    assert_eq!(built.disk.counts().reads, before);

    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    let key = content.rows.keys().next().expect("it has rows");
    retry(&session, || sst.get(&session, key, crate::Version::MAX)).expect("the disk works");
    let before = built.disk.counts().reads;
    let some = text(&sst);
    let height = built.meta.main.expect("it has rows").btree.expect("it has a tree").height;
    assert_eq!(some.matches("node at").count(), usize::from(height), "the way to one row is in memory");
    assert_eq!(
        some.lines().filter(|line| line.trim_start().starts_with("data page at") && line.contains("rows")).count(),
        1
    );
    assert_eq!(built.disk.counts().reads, before);
}
