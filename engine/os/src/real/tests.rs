//! What the real machine promises. The files are in the system's temporary directory.

use super::clock::LONGEST_SPIN;
#[cfg(unix)]
use super::place::Place;
use super::{RealClock, RealDisk, RealRandom};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::{Access, BLOCK_BYTES, Buffer, Clock, Disk, File, Machine, Random};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A new directory, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("larch-os-{test}-{:016x}", RealRandom.next_u64()));
        RealDisk.create_dir(&path).expect("the temporary directory can be written");
        Scratch(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If the test has failed, its own message must not be hidden by a failure to remove the directory.
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{error}");
        }
    }
}

fn open(path: &Path, access: Access) -> Arc<dyn File> {
    RealDisk.open(path, access).expect("the file can be opened")
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill(&mut bytes[..]);
    bytes
}

/// Makes reads whose offsets and lengths are close to the edge of a block, of the file, or of the bounce buffer of an
/// unaligned read.
fn check_reads(file: &dyn File, contents: &[u8]) {
    let len = contents.len();
    let edges = [0, 1, 511, 512, 4095, 4096, 4097, 8192, 1 << 20, (1 << 20) + 1, len - 1, len, len + 1, len + 9000];
    let mut room = Buffer::zeroed((2 << 20) + 2 * BLOCK_BYTES);
    for offset in edges {
        for wanted in [0, 1, 511, 4096, 4097, 8192, 12_288, 1 << 20, (1 << 20) + 4096, 2 << 20] {
            for shift in [0, 1, 512] {
                let buffer = &mut room[shift..shift + wanted];
                buffer.fill(0xee);
                let read = file.read_at(buffer, offset as u64).expect("the file can be read");
                let expected = &contents[offset.min(len)..(offset + wanted).min(len)];
                assert!(buffer[..read] == *expected, "{wanted} bytes at {offset}, buffer shifted by {shift}");
            }
        }
    }
}

#[test]
fn reads_are_right_at_all_alignments_direct_or_not() {
    let scratch = Scratch::new("alignments");
    for len in [1, 4096, 10_000, (2 << 20) + 4096, (2 << 20) + 5000] {
        let contents = bytes(len as u64, len);
        let path = scratch.path(&len.to_string());
        open(&path, Access::Create).append(&contents).expect("there is room");
        for access in [Access::Read, Access::ReadDirect, Access::Write] {
            check_reads(&*open(&path, access), &contents);
        }
    }
}

#[test]
fn a_file_that_cannot_be_direct_is_read_and_written_all_the_same() {
    // If this directory is missing or supports direct I/O, too, this test checks no more than the others.
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let path = memory.join(format!("larch-os-{:016x}", RealRandom.next_u64()));
    let contents = Buffer::copied(&bytes(1, 3 << 20));
    let file = open(&path, Access::CreateDirect);
    let removed = RealDisk.remove(&path);
    file.write_at(&contents, 0).expect("there is room");
    check_reads(&*file, &contents);
    removed.expect("the file was just created");
}

#[test]
fn direct_and_buffered_writes_to_one_file_see_each_other() {
    let seed =
        std::env::var("LARCH_SEED").map_or_else(|_| RealRandom.next_u64(), |seed| seed.parse().expect("a number"));
    println!("LARCH_SEED={seed} runs this again");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let scratch = Scratch::new("mixed");
    let path = scratch.path("f");
    let file = open(&path, Access::CreateDirect);
    let mut contents = Vec::new();
    let noise = Buffer::copied(&bytes(seed, 1 << 16));
    for _ in 0..200 {
        let unit = if rng.random() { BLOCK_BYTES } else { 1 };
        let wanted = rng.random_range(unit..noise.len() / 2) / unit * unit;
        let start = rng.random_range(0..noise.len() / 2) / unit * unit;
        let piece = &noise[start..start + wanted];
        let offset = if rng.random_range(0..4) == 0 {
            file.append(piece).expect("there is room") as usize
        } else {
            let offset = rng.random_range(0..1 << 18) / unit * unit;
            file.write_at(piece, offset as u64).expect("there is room");
            offset
        };
        if contents.len() < offset + wanted {
            contents.resize(offset + wanted, 0);
        }
        contents[offset..offset + wanted].copy_from_slice(piece);
        let mut block = Buffer::zeroed(BLOCK_BYTES);
        let at = rng.random_range(0..=contents.len()) / BLOCK_BYTES * BLOCK_BYTES;
        let read = file.read_at(&mut block, at as u64).expect("the file can be read");
        assert_eq!(block[..read], contents[at..(at + BLOCK_BYTES).min(contents.len())]);
    }
    file.sync().expect("the file can be synced");
    assert_eq!(file.len().expect("the file is open"), contents.len() as u64);
    assert!(RealDisk.read_all(&path).expect("the file is there") == contents);
}

#[test]
fn a_direct_file_is_read_at_any_alignment_after_it_was_removed() {
    let scratch = Scratch::new("removed");
    let path = scratch.path("f");
    open(&path, Access::Create).append(b"still here").expect("there is room");
    let file = open(&path, Access::ReadDirect);
    RealDisk.remove(&path).expect("the file is there");
    let mut bytes = [0; 4];
    assert_eq!(file.read_at(&mut bytes, 6).expect("the file is open"), 4);
    assert_eq!(&bytes, b"here");
}

#[test]
fn appends_of_many_threads_do_not_overlap() {
    let scratch = Scratch::new("appends");
    for access in [Access::Create, Access::CreateDirect] {
        let path = scratch.path(&format!("{access:?}"));
        let file = open(&path, access);
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let file = &file;
                scope.spawn(move || {
                    for _ in 0..50 {
                        file.append(&[thread; 100]).expect("there is room");
                    }
                });
            }
        });
        let contents = RealDisk.read_all(&path).expect("the file is there");
        assert_eq!(contents.len(), 4 * 50 * 100);
        assert!(contents.chunks(100).all(|record| record.iter().all(|byte| *byte == record[0])));
    }
}

#[test]
fn a_taken_name_is_not_created_again() {
    let scratch = Scratch::new("taken");
    for access in [Access::Create, Access::CreateDirect] {
        let path = scratch.path("f");
        open(&path, Access::Create).append(b"mine").expect("there is room");
        let error = RealDisk.open(&path, access).expect_err("the name is taken");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(RealDisk.read_all(&path).expect("the file is there"), b"mine");
        RealDisk.remove(&path).expect("the file is there");
    }
}

#[test]
fn errors_name_the_path_and_keep_their_kind() {
    let scratch = Scratch::new("errors");
    let path = scratch.path("nothing");
    let errors = [
        RealDisk.open(&path, Access::Read).expect_err("nothing to open"),
        RealDisk.open(&path, Access::ReadDirect).expect_err("nothing to open"),
        RealDisk.remove(&path).expect_err("nothing to remove"),
        RealDisk.rename(&path, &scratch.path("to")).expect_err("nothing to rename"),
        RealDisk.list(&path).expect_err("nothing to list"),
        RealDisk.sync_dir(&path).expect_err("nothing to sync"),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(path.to_str().expect("the name is UTF-8")), "{error}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_said_to_be_full() {
    let file = RealDisk.open(Path::new("/dev/full"), Access::Write).expect("the system has the device");
    assert_eq!(file.write_at(b"x", 0).expect_err("the device is always full").kind(), ErrorKind::StorageFull);
}

#[test]
fn a_lock_excludes_until_it_is_dropped() {
    let scratch = Scratch::new("lock");
    let path = scratch.path("LOCK");
    let lock = RealDisk.lock(&path).expect("nobody has it");
    let error = RealDisk.lock(&path).expect_err("it is taken");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.to_string().contains("another process has it open"), "{error}");
    assert!(error.to_string().contains("LOCK"), "{error}");
    drop(lock);
    RealDisk.lock(&path).expect("it was let go");
}

#[test]
#[cfg(unix)]
fn a_lock_file_that_was_removed_before_it_was_locked_is_no_lock() {
    let scratch = Scratch::new("removed-lock");
    let path = scratch.path("LOCK");
    let name = Place::named(&path);
    let is_named = |file: &fs::File| name.is_name_of(file).expect("the directory can be read");
    let opened = name.open_lock().expect("the directory can be written");
    RealDisk.remove(&path).expect("it is there");
    assert!(!is_named(&opened), "the name is gone");
    let lock = RealDisk.lock(&path).expect("nobody has the new file");
    assert!(!is_named(&opened), "the name is that of the new file");
    assert_eq!(RealDisk.lock(&path).expect_err("it is taken").kind(), ErrorKind::WouldBlock);
    drop(lock);
    assert!(is_named(&name.open_lock().expect("it is there")));
}

/// Each thread removes the lock file while it holds the lock, as a process does when its copy of a database fails.
#[test]
#[cfg(unix)]
fn a_lock_whose_file_its_holder_removes_excludes_the_others() {
    let scratch = Scratch::new("lock-by-turns");
    let path = scratch.path("LOCK");
    let (holders, turns) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while turns.load(Ordering::Relaxed) < 2000 {
                    match RealDisk.lock(&path) {
                        Ok(lock) => {
                            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "another thread has the lock, too");
                            turns.fetch_add(1, Ordering::Relaxed);
                            // After the removal, another thread may hold the lock on a new file. So this thread no
                            // longer counts as a holder.
                            holders.fetch_sub(1, Ordering::SeqCst);
                            fs::remove_file(&path).expect("only the holder removes it");
                            drop(lock);
                        }
                        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                    }
                }
            });
        }
    });
}

#[test]
fn directories_list_rename_and_remove() {
    let scratch = Scratch::new("directories");
    let directory = scratch.path("a/b/c");
    RealDisk.create_dir(&directory).expect("parents are created too");
    RealDisk.create_dir(&directory).expect("it exists, which is as good");
    open(&directory.join("z"), Access::Create).append(b"123").expect("there is room");
    open(&directory.join("y"), Access::Create);
    RealDisk.rename(&directory.join("z"), &directory.join("x")).expect("both are in one directory");
    RealDisk.create_dir(&directory.join("w")).expect("the parent exists");
    RealDisk.sync_dir(&directory).expect("the directory exists");
    let listed = RealDisk.list(&directory).expect("the directory exists");
    let listed: Vec<_> = listed.iter().map(|entry| (entry.name.as_str(), entry.bytes)).collect();
    assert_eq!(listed, [("w", 0), ("x", 3), ("y", 0)]);
    assert!(!RealDisk.exists(&directory.join("z")).expect("the directory can be read"));
    assert!(RealDisk.remove_dir(&directory).is_err());
    for name in ["x", "y"] {
        RealDisk.remove(&directory.join(name)).expect("the file is there");
    }
    for name in ["w", ""] {
        RealDisk.remove_dir(&directory.join(name)).expect("the directory is empty");
    }
    assert!(!RealDisk.exists(&directory).expect("the directory can be read"));
}

#[test]
fn the_clock_does_not_go_back() {
    let clock = RealClock::new();
    let before = clock.now();
    clock.sleep(Duration::ZERO);
    assert!(clock.now() >= before);
    assert!(clock.wall() > Duration::from_secs(1_577_836_800), "later than 2020");
}

#[test]
fn a_pause_is_never_shorter_than_it_was_asked_for() {
    let clock = RealClock::new();
    // The first pause spins, the second sleeps.
    for time in [LONGEST_SPIN, LONGEST_SPIN + Duration::from_nanos(1)] {
        let before = clock.now();
        clock.pause(time);
        assert!(clock.now() - before >= time, "{time:?}");
    }
}

#[test]
fn the_real_machine_has_threads() {
    let machine = Machine::real();
    assert!(machine.threads.are_real());
    assert_ne!(machine.random.next_u64(), machine.random.next_u64());
}

#[cfg(target_os = "linux")]
#[test]
fn room_that_is_allocated_ahead_changes_no_length_and_is_given_back_when_the_file_is_cut() {
    use std::os::unix::fs::MetadataExt;
    const ROOM: u64 = 4 << 20;
    let scratch = Scratch::new("ahead");
    let path = scratch.path("f");
    let file = open(&path, Access::Create);
    // On a file system that cannot reserve space, the call does nothing.
    let room = || fs::metadata(&path).expect("the file is there").blocks() * 512;
    file.allocate_ahead(ROOM).expect("there is room");
    assert_eq!(file.len().expect("the file is open"), 0);
    assert!(room() == 0 || room() >= ROOM, "{}", room());
    file.append(b"a record").expect("there is room");
    file.sync().expect("the file can be synced");
    assert_eq!(file.len().expect("the file is open"), 8);
    assert!(RealDisk.read_all(&path).expect("the file is there") == b"a record");
    file.set_len(8).expect("the file can be cut");
    assert!(room() <= 1 << 20, "{}", room());
    assert!(RealDisk.read_all(&path).expect("the file is there") == b"a record");
}

#[test]
fn a_second_name_of_a_symbolic_link_is_one_of_the_file_that_it_leads_to() {
    let scratch = Scratch::new("symbolic");
    let [file, symbolic, second] = ["file", "symbolic", "second"].map(|name| scratch.path(name));
    open(&file, Access::Create).append(b"bytes").expect("there is room");
    std::os::unix::fs::symlink(&file, &symbolic).expect("the name is free");
    RealDisk.link(&symbolic, &second).expect("the name is free");
    RealDisk.remove(&file).expect("it is there");
    assert_eq!(RealDisk.read_all(&second).expect("it has a name of its own"), b"bytes");
    assert!(RealDisk.read_all(&symbolic).is_err());
}

#[test]
fn a_second_name_keeps_the_file_and_a_copy_does_not_change_with_it() {
    let scratch = Scratch::new("links");
    let [one, two, three] = ["one", "two", "three"].map(|name| scratch.path(name));
    open(&one, Access::Create).append(b"bytes").expect("there is room");
    RealDisk.link(&one, &two).expect("the name is free");
    let error = RealDisk.link(&one, &two).expect_err("the name is taken");
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(error.to_string().contains("one"), "{error}");
    let is_copied = match RealDisk.copy_sharing(&one, &three) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(!three.exists(), "nothing is left of what was refused");
            false
        }
    };
    open(&one, Access::Write).write_at(b"B", 0).expect("there is room");
    RealDisk.remove(&one).expect("it is there");
    assert_eq!(RealDisk.read_all(&two).expect("the second name stays"), b"Bytes");
    if is_copied {
        assert_eq!(RealDisk.read_all(&three).expect("it was copied"), b"bytes");
    }
}

#[cfg(unix)]
#[test]
fn a_private_directory_is_its_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new("private");
    let private = scratch.path("parent").join("private");
    for what in ["it is made with its parent", "it is there already"] {
        RealDisk.create_private_dir(&private).expect(what);
        let mode = fs::metadata(&private).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
