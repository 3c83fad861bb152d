//! What files promise: nothing is opened before it is read, few files stay open, and missing files are reported.

use super::*;
use crate::numbered::{ID, Numbered, PATH, accept};
use crate::{Admit, Compression, Packing, Reason, Resident, Session, retry};
use os::sim::SimDisk;

#[test]
fn registering_opens_nothing_and_few_files_stay_open() {
    let numbered = Numbered::blocks(1);
    let cache = PageCache::new(1 << 20, 3, accept);
    let files: Vec<_> = (0..10).map(|_| numbered.register(&cache)).collect();
    assert_eq!((cache.usage().open_files, numbered.disk.operation_count()), (0, 2), "created and written");
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    for (file, open) in files.iter().zip([1, 2, 3, 3, 3, 3, 3, 3, 3, 3]) {
        retry(&session, || numbered.page(&session, file, 0)).expect("no faults");
        assert_eq!(cache.usage().open_files, open);
    }
    files[9].kill();
    assert_eq!(cache.usage().open_files, 2);
    drop(files);
    assert_eq!(cache.usage().open_files, 0);
}

#[test]
fn a_late_reader_of_a_killed_file_leaves_no_descriptor_behind() {
    let numbered = Numbered::blocks(1);
    let cache = PageCache::new(1 << 20, 3, accept);
    let file = numbered.register(&cache);
    file.kill();
    let session = Session::new(&cache, Reason::Point, Admit::Keep);
    retry(&session, || numbered.page(&session, &file, 0)).expect("a reader with an old view may still read it");
    drop(session);
    drop(file);
    assert_eq!(cache.usage().open_files, 0);
}

#[test]
fn the_file_read_most_stays_open() {
    let numbered = Numbered::blocks(1);
    let pool = OpenFiles::new(2);
    let opened = std::cell::Cell::new(0);
    let get = |handle: &Arc<FileHandle>| {
        pool.get(handle, || {
            opened.set(opened.get() + 1);
            numbered.disk.open(Path::new(PATH), Access::Read)
        })
        .expect("no faults")
    };
    let hot = Arc::<FileHandle>::default();
    for _ in 0..10 {
        get(&hot);
        get(&hot);
        get(&Arc::default());
    }
    assert_eq!((opened.get(), pool.count()), (11, 2));
}

fn why(file: &PagedFile, at: Address) -> String {
    match file.read(&at, PageKind::Data) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{at:?} was read"),
    }
}

#[test]
fn what_is_not_there_is_said_with_its_place() {
    let numbered = Numbered::blocks(2);
    let file = numbered.alone();
    let at = |offset: u64, bytes: u32| Address { offset, bytes, crc: 0 };
    assert_eq!(
        why(&file, at(4096, 8192)),
        "numbered is corrupt: data page at offset 4096: the file ends at 8192, the page at 12288; restore the file \
         from a backup"
    );
    assert!(why(&file, at(1 << 40, 4096)).contains("the file ends at"));
    assert!(why(&file, at(u64::MAX - 63, 64)).contains("its parent gives it 64 bytes"));
    assert!(why(&file, at(63, 64)).contains("its parent gives it 64 bytes"));
    assert!(why(&file, at(0, 0)).contains("its parent gives it 0 bytes"));
    assert!(why(&file, at(0, u32::MAX)).contains("its parent gives it 4294967295 bytes"));
    let missing = PagedFile::alone("missing", ID, SimDisk::new(0));
    assert!(why(&missing, at(0, 4096)).starts_with("cannot open missing: "));
    assert!(missing.len().is_err());
    assert_eq!(file.len().expect("it is there"), 8192);
}

#[test]
fn a_file_that_cannot_be_opened_when_it_is_read_is_named_with_what_was_tried() {
    let numbered = Numbered::blocks(2);
    for count in 1..=2 {
        let cache = PageCache::new(1 << 20, 1, accept);
        let missing = cache.register("missing", ID, Arc::clone(&numbered.disk) as Arc<dyn Disk>);
        let session = Session::new(&cache, Reason::Point, Admit::Keep);
        let outcome = retry(&session, || {
            let pages: Vec<_> = (0..count).map(|number| numbered.page(&session, &missing, number)).collect();
            pages.into_iter().collect::<Result<Vec<_>, _>>()
        });
        match outcome {
            Err(Error::Io { action, file, source }) => {
                assert_eq!(
                    (action, file.as_path(), source.kind()),
                    ("open", Path::new("missing"), io::ErrorKind::NotFound)
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(cache.usage().open_files, 0);
    }
}

#[test]
fn bytes_around_the_cache_are_read_within_the_bound() {
    let numbered = Numbered::blocks(2);
    let cache = PageCache::new(1 << 20, 1, accept);
    let files = [numbered.register(&cache), numbered.register(&cache)];
    let around: Vec<_> = files.iter().map(PagedFile::around_cache).collect();
    assert_eq!(cache.usage().open_files, 0);
    for _ in 0..2 {
        for raw in &around {
            let mut bytes = vec![0; 100];
            assert_eq!(
                (raw.len().expect("no faults"), raw.read_at(&mut bytes, 8192 - 50).expect("no faults")),
                (8192, 50)
            );
            assert_eq!((cache.usage().open_files, numbered.disk.open_handles()), (1, 1));
            assert!(raw.write_at(&bytes, 0).is_err() && raw.append(&bytes).is_err() && raw.set_len(0).is_err());
        }
    }
}

#[test]
fn pages_packed_tight_are_read_with_the_blocks_they_share() {
    let numbered = Numbered::write(&[PageKind::Data; 100], 1000, Compression::None, Packing::Tight);
    let (file, resident) = (numbered.alone(), Resident::new(accept));
    for number in 0..100 {
        let (_, at) = numbered.pages[number];
        let stored = file.read(&at, PageKind::Data).expect("no faults");
        assert!(stored.buffer.len() >= stored.start + at.bytes as usize);
        assert!((at.offset - stored.start as u64).is_multiple_of(4096), "{at:?}");
        numbered.page(&resident, &file, number).expect("no faults");
    }
    assert_eq!((resident.pages_asked(), resident.pages_read()), (100, 100));
}
