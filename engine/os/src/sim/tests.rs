//! What the simulated machine promises, and what it does to callers that rely on more.

use super::{DiskCounts, SimClock, SimDisk, SimThreads};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, OnceLock, Weak};
use crate::{Access, Clock, Disk, File, Job, Machine, Polled, Priority, Threads, Worker};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

const SEEDS: u64 = 400;

fn create(disk: &SimDisk, path: &str) -> Arc<dyn File> {
    disk.open(Path::new(path), Access::Create).expect("the name is free")
}

/// A file whose contents and name are durable.
fn create_synced(disk: &SimDisk, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = create(disk, path);
    file.append(bytes).expect("there is room");
    file.sync().expect("no faults");
    sync_names(disk);
    file
}

fn sync_names(disk: &SimDisk) {
    disk.sync_dir(Path::new("")).expect("no faults");
}

fn contents(disk: &SimDisk, path: &str) -> Option<Vec<u8>> {
    disk.exists(Path::new(path)).expect("no faults").then(|| disk.read_all(Path::new(path)).expect("the file exists"))
}

fn kind<T>(result: io::Result<T>) -> ErrorKind {
    result.err().expect("the operation fails").kind()
}

#[test]
fn what_is_synced_survives_every_crash() {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let disk = SimDisk::new(seed);
        let file = create_synced(&disk, "f", &[1; 3000]);
        file.write_at(&[2; 1000], 500).expect("there is room");
        file.sync().expect("no faults");
        let other = create(&disk, "g");
        other.append(&[3; 100]).expect("there is room");
        disk.crash();
        let bytes = contents(&disk, "f").expect("the name was synced");
        assert_eq!(bytes, [vec![1; 500], vec![2; 1000], vec![1; 1500]].concat());
    }
}

#[test]
fn unsynced_writes_survive_in_every_combination() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = SimDisk::new(seed);
        let file = create_synced(&disk, "f", &[0; 3]);
        for at in 0..3 {
            file.write_at(&[1], at).expect("there is room");
        }
        assert_eq!(contents(&disk, "f").expect("it is there"), [1, 1, 1], "before the crash all is seen");
        disk.crash();
        seen.insert(contents(&disk, "f").expect("the name was synced"));
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
}

#[test]
fn an_unsynced_write_may_be_torn_at_a_byte_or_by_sectors() {
    let (mut prefix, mut sectors, mut whole, mut nothing) = (false, false, false, false);
    for seed in 0..SEEDS {
        let disk = SimDisk::new(seed);
        let file = create_synced(&disk, "f", &[]);
        file.append(&[7; 2000]).expect("there is room");
        disk.crash();
        let bytes = contents(&disk, "f").expect("the name was synced");
        let written = bytes.iter().filter(|&&byte| byte == 7).count();
        match (bytes.len(), written) {
            (0, _) => nothing = true,
            (2000, 2000) => whole = true,
            (2000, _) => {
                sectors = true;
                let same = |sector: &[u8]| sector.iter().all(|byte| *byte == sector[0]);
                assert!(bytes.chunks(512).all(same), "sectors are whole, seed {seed}");
            }
            (len, _) => {
                prefix = true;
                assert_eq!(written, len, "seed {seed}");
            }
        }
    }
    assert!(prefix && sectors && whole && nothing);
}

#[test]
fn a_file_without_a_synced_name_may_be_lost_or_kept() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = SimDisk::new(seed);
        let file = create(&disk, "f");
        file.append(b"synced").expect("there is room");
        file.sync().expect("no faults");
        disk.crash();
        seen.insert(contents(&disk, "f"));
    }
    assert_eq!(seen, BTreeSet::from([None, Some(b"synced".to_vec())]));
}

#[test]
fn a_file_removed_but_not_synced_may_come_back() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = SimDisk::new(seed);
        create_synced(&disk, "f", b"old");
        disk.remove(Path::new("f")).expect("the file is there");
        disk.crash();
        seen.insert(contents(&disk, "f"));
    }
    assert_eq!(seen, BTreeSet::from([None, Some(b"old".to_vec())]));
}

#[test]
fn a_rename_gives_the_old_or_the_new_file_and_never_neither() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = SimDisk::new(seed);
        create_synced(&disk, "current", b"old");
        let new = create(&disk, "new");
        new.append(b"new").expect("there is room");
        new.sync().expect("no faults");
        disk.rename(Path::new("new"), Path::new("current")).expect("both are in one directory");
        disk.crash();
        seen.insert((contents(&disk, "current").expect("one of them"), contents(&disk, "new")));
    }
    let (old, new) = (b"old".to_vec(), b"new".to_vec());
    assert_eq!(seen, BTreeSet::from([(old.clone(), None), (old, Some(new.clone())), (new, None)]));
}

#[test]
fn a_second_name_keeps_the_file_and_survives_once_its_directory_is_synced() {
    let (one, two) = (Path::new("a/one"), Path::new("b/two"));
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = SimDisk::new(seed);
        disk.create_dir(Path::new("a")).and_then(|()| disk.create_dir(Path::new("b"))).expect("no faults");
        let file = create(&disk, "a/one");
        file.append(b"bytes").and_then(|_| file.sync()).expect("there is room");
        disk.sync_dir(Path::new("a")).expect("no faults");
        disk.link(one, two).expect("the name is free");
        assert_eq!(kind(disk.link(one, two)), ErrorKind::AlreadyExists);
        assert_eq!(kind(disk.link(Path::new("a/none"), Path::new("b/three"))), ErrorKind::NotFound);
        assert_eq!(disk.used_bytes(), 5, "both names stand for the same bytes");
        if seed % 2 == 0 {
            disk.sync_dir(Path::new("b")).expect("no faults");
            disk.remove(one).and_then(|()| disk.sync_dir(Path::new("a"))).expect("no faults");
            disk.crash();
            assert_eq!((contents(&disk, "a/one"), contents(&disk, "b/two")), (None, Some(b"bytes".to_vec())));
        } else {
            disk.crash();
            assert_eq!(contents(&disk, "a/one"), Some(b"bytes".to_vec()));
            seen.insert(contents(&disk, "b/two").is_some());
        }
    }
    assert_eq!(seen.len(), 2, "a name that was not synced may be there or not");
    let disk = SimDisk::new(0);
    create_synced(&disk, "f", b"bytes");
    disk.fail_links(ErrorKind::CrossesDevices);
    assert_eq!(kind(disk.link(Path::new("f"), Path::new("g"))), ErrorKind::CrossesDevices);
    disk.clear_faults();
    disk.link(Path::new("f"), Path::new("g")).expect("the fault is taken back");
}

#[test]
fn directory_changes_survive_in_order() {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let disk = SimDisk::new(seed);
        for name in ["a", "b", "c"] {
            create(&disk, name);
        }
        disk.crash();
        let there: Vec<_> = ["a", "b", "c"].map(|name| contents(&disk, name).is_some()).to_vec();
        assert!(there.is_sorted_by(|first, second| first >= second), "{there:?}");
    }
}

#[test]
fn a_created_directory_survives_and_a_removed_one_goes_once_synced() {
    let disk = SimDisk::new(0);
    let path = Path::new("/a/b");
    disk.create_dir(path).expect("no faults");
    disk.crash_keeping_nothing();
    assert!(disk.exists(path).expect("no faults"));
    disk.remove_dir(path).expect("it is empty");
    disk.crash_keeping_nothing();
    assert!(disk.exists(path).expect("no faults"), "the removal was not synced");
    disk.remove_dir(path).expect("it is empty");
    disk.create_dir(path).expect("no faults");
    disk.sync_dir(Path::new("/a")).expect("no faults");
    disk.crash_keeping_nothing();
    assert!(disk.exists(path).expect("no faults"), "it was made again");
    disk.remove_dir(path).expect("it is empty");
    disk.sync_dir(Path::new("/a")).expect("no faults");
    disk.crash_keeping_nothing();
    assert!(!disk.exists(path).expect("no faults"));
}

#[test]
fn directed_crashes_keep_nothing_or_everything() {
    for keep in [false, true] {
        let disk = SimDisk::new(0);
        let file = create_synced(&disk, "f", b"old");
        file.write_at(b"newer", 0).expect("there is room");
        file.set_len(4).expect("there is room");
        create(&disk, "g");
        if keep {
            disk.crash_keeping_everything()
        } else {
            disk.crash_keeping_nothing()
        }
        let expected: &[u8] = if keep { b"newe" } else { b"old" };
        assert_eq!(contents(&disk, "f").expect("the name was synced"), expected);
        assert_eq!(contents(&disk, "g").is_some(), keep);
    }
}

#[test]
fn files_and_locks_of_before_a_crash_are_void() {
    let disk = SimDisk::new(0);
    let file = create_synced(&disk, "f", b"bytes");
    let lock = disk.lock(Path::new("LOCK")).expect("nobody has it");
    disk.crash();
    let error = file.read_at(&mut [0], 0).expect_err("the file was opened before");
    assert!(error.to_string().contains("the machine crashed"), "{error}");
    assert!(file.append(b"x").is_err() && file.sync().is_err() && file.len().is_err());
    let again = disk.lock(Path::new("LOCK")).expect("the crash released it");
    drop(lock);
    assert_eq!(kind(disk.lock(Path::new("LOCK"))), ErrorKind::WouldBlock, "the old lock cannot release the new one");
    drop(again);
    drop(file);
    assert_eq!(contents(&disk, "f").expect("the name was synced"), b"bytes");
}

#[test]
fn a_lock_excludes_until_it_is_dropped() {
    let disk = SimDisk::new(0);
    let lock = disk.lock(Path::new("LOCK")).expect("nobody has it");
    let error = disk.lock(Path::new("./LOCK")).expect_err("it is taken");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.to_string().contains("another process has it open"), "{error}");
    disk.lock(Path::new("OTHER")).expect("nobody has the other");
    drop(lock);
    disk.lock(Path::new("LOCK")).expect("it was let go");
}

#[test]
fn a_lock_is_of_a_file_and_not_of_its_name() {
    let disk = SimDisk::new(0);
    let lock = disk.lock(Path::new("LOCK")).expect("nobody has it");
    disk.remove(Path::new("LOCK")).expect("it is there");
    let new = disk.lock(Path::new("LOCK")).expect("nobody has the new file");
    drop(lock);
    assert_eq!(kind(disk.lock(Path::new("LOCK"))), ErrorKind::WouldBlock, "the old lock does not release the new one");
    drop(new);
    disk.lock(Path::new("LOCK")).expect("it was let go");
}

#[test]
fn the_chosen_sync_and_everything_after_it_fails_until_the_crash() {
    let run = |disk: &SimDisk| -> io::Result<()> {
        for name in ["a", "b", "c"] {
            let file = disk.open(Path::new(name), Access::Create)?;
            file.append(name.as_bytes())?;
            file.sync()?;
            disk.sync_dir(Path::new(""))?;
        }
        Ok(())
    };
    let disk = SimDisk::new(0);
    run(&disk).expect("no faults");
    let syncs = disk.sync_count();
    assert_eq!(syncs, 6);
    for n in 1..=syncs {
        let disk = SimDisk::new(n);
        disk.crash_at_sync(n);
        run(&disk).expect_err("the machine crashes");
        assert!(disk.has_crashed());
        assert!(disk.open(Path::new("a"), Access::Read).is_err() && disk.exists(Path::new("a")).is_err());
        disk.crash();
        for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
            let synced_syncs = 2 * (index as u64 + 1);
            if synced_syncs < n {
                assert_eq!(contents(&disk, name).expect("file and name were synced"), name.as_bytes());
            }
        }
    }
}

#[test]
fn an_image_crashes_alone_and_differently_for_every_seed() {
    let disk = SimDisk::new(0);
    let file = create_synced(&disk, "f", b"old");
    file.write_at(b"new", 0).expect("there is room");
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let image = disk.image();
        image.reseed(seed);
        image.crash();
        seen.insert(contents(&image, "f").expect("the name was synced"));
        image.remove(Path::new("f")).expect("the file is there");
    }
    assert!(seen.contains(&b"old"[..]) && seen.contains(&b"new"[..]) && seen.len() > 2, "{seen:?}");
    file.sync().expect("the original goes on");
    disk.crash_keeping_nothing();
    assert_eq!(contents(&disk, "f").expect("the name was synced"), b"new");
}

#[test]
fn one_seed_gives_one_crash() {
    let run = |seed| {
        let disk = SimDisk::new(seed);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for name in ["a", "b", "c", "d"] {
            let file = create(&disk, name);
            for _ in 0..10 {
                let bytes = vec![rng.random(); rng.random_range(0..2000)];
                file.write_at(&bytes, rng.random_range(0..5000)).expect("there is room");
            }
        }
        disk.crash();
        ["a", "b", "c", "d"].map(|name| contents(&disk, name))
    };
    for seed in 0..20 {
        assert!(run(seed) == run(seed), "seed {seed}");
    }
    assert!(run(1) != run(2));
}

#[test]
fn a_full_disk_takes_a_part_fails_and_recovers_with_room() {
    let mut parts = BTreeSet::new();
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let disk = SimDisk::new(seed);
        let file = create(&disk, "f");
        disk.set_capacity(100);
        file.append(&[1; 98]).expect("there is room");
        assert_eq!(kind(file.append(&[2; 4])), ErrorKind::StorageFull);
        let len = file.len().expect("no faults");
        assert!((98..=100).contains(&len));
        parts.insert(len);
        file.write_at(&[3; 98], 0).expect("writing over what is there takes no room");
        assert_eq!(kind(file.set_len(101)), ErrorKind::StorageFull);
        let other = create(&disk, "g");
        disk.remove(Path::new("f")).expect("the file is there");
        assert_eq!(kind(other.append(&[0; 100])), ErrorKind::StorageFull, "the removed file is still open");
        other.set_len(0).expect("cutting takes no room");
        drop(file);
        other.append(&[0; 100]).expect("the removed file is gone");
        assert_eq!(disk.used_bytes(), 100);
        disk.set_capacity(u64::MAX);
        other.append(&[0; 1000]).expect("there is room");
    }
    assert_eq!(parts.len(), 3, "any part may be written");
}

#[test]
fn the_chosen_operation_fails_once_and_names_the_file() {
    let disk = SimDisk::new(0);
    let file = create(&disk, "f");
    disk.fail_operation(3, ErrorKind::TimedOut);
    file.append(b"1").expect("the first");
    file.sync().expect("the second");
    let error = file.append(b"2").expect_err("the third");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().starts_with("cannot write f"), "{error}");
    file.append(b"3").expect("the fourth");
    assert_eq!(contents(&disk, "f").expect("it is there"), b"13");
}

#[test]
fn all_operations_after_the_chosen_one_fail_until_cleared() {
    let disk = SimDisk::new(0);
    let file = create(&disk, "f");
    disk.fail_all_after(1, ErrorKind::TimedOut);
    file.append(b"1").expect("the first");
    for _ in 0..3 {
        assert_eq!(kind(file.append(b"2")), ErrorKind::TimedOut);
        assert_eq!(kind(file.read_at(&mut [0], 0)), ErrorKind::TimedOut);
        assert_eq!(kind(disk.sync_dir(Path::new(""))), ErrorKind::TimedOut);
        assert_eq!(kind(disk.list(Path::new(""))), ErrorKind::TimedOut);
    }
    disk.clear_faults();
    file.append(b"3").expect("the faults are gone");
    assert_eq!(contents(&disk, "f").expect("it is there"), b"13");
}

#[test]
fn a_failed_sync_leaves_writes_for_the_next_unless_told_to_lose_them() {
    let survivors = |lose: bool| -> BTreeSet<Vec<u8>> {
        let survivor = |seed| {
            let disk = SimDisk::new(seed);
            if lose {
                disk.lose_writes_of_failed_syncs();
            }
            let file = create_synced(&disk, "f", b"old");
            file.write_at(b"new", 0).expect("there is room");
            disk.fail_operation(1, ErrorKind::Other);
            file.sync().expect_err("the fault");
            assert_eq!(contents(&disk, "f").expect("it is there"), b"new", "it is still read");
            file.sync().expect("the fault is over");
            // When only the process dies, writes that a failed sync has lost can still be read.
            disk.crash_keeping_everything();
            assert_eq!(contents(&disk, "f").expect("the name was synced"), b"new");
            disk.crash_keeping_nothing();
            contents(&disk, "f").expect("the name was synced")
        };
        (0..20).map(survivor).collect()
    };
    assert_eq!(survivors(false), BTreeSet::from([b"new".to_vec()]));
    assert_eq!(survivors(true), BTreeSet::from([b"new".to_vec(), b"old".to_vec()]));
}

#[test]
fn a_shortened_read_gives_a_part() {
    let disk = SimDisk::new(0);
    let file = create_synced(&disk, "f", b"0123456789");
    disk.shorten_read(2);
    let mut buffer = [0; 10];
    assert_eq!(file.read_at(&mut buffer, 0).expect("no faults"), 10);
    assert!(file.read_at(&mut buffer, 0).expect("no faults") < 10);
    assert_eq!(file.read_at(&mut buffer, 0).expect("no faults"), 10);
}

#[test]
fn a_flipped_bit_stays_flipped() {
    let disk = SimDisk::new(0);
    let file = create_synced(&disk, "f", b"aa");
    file.append(b"aa").expect("there is room");
    disk.flip_bit("f", 1, 1);
    disk.flip_bit("f", 3, 1);
    assert_eq!(contents(&disk, "f").expect("it is there"), b"acac");
    disk.crash_keeping_everything();
    assert_eq!(contents(&disk, "f").expect("it is there"), b"acac");
}

#[test]
fn a_torn_write_is_whole_until_the_crash() {
    let disk = SimDisk::new(0);
    let file = create_synced(&disk, "f", b"");
    file.append(b"first").expect("there is room");
    file.append(b"second").expect("there is room");
    disk.tear_last_write("f", 3);
    assert_eq!(contents(&disk, "f").expect("it is there"), b"firstsecond");
    file.sync().expect("no faults");
    disk.crash_keeping_nothing();
    assert_eq!(contents(&disk, "f").expect("it is there"), b"firstsec");
}

#[test]
fn input_and_output_are_counted_by_file_across_renames() {
    let disk = SimDisk::new(0);
    let file = create_synced(&disk, "f", b"12345");
    create_synced(&disk, "g", b"1");
    file.read_at(&mut [0; 100], 1).expect("no faults");
    disk.rename(Path::new("f"), Path::new("h")).expect("both are in one directory");
    file.read_at(&mut [0; 2], 0).expect("no faults");
    let expected = DiskCounts { reads: 2, read_bytes: 6, writes: 1, write_bytes: 5, syncs: 1 };
    assert_eq!(disk.counts_of("h"), expected);
    assert_eq!((disk.reads_of("h"), disk.reads_of("g")), (2, 0));
    assert_eq!(disk.counts(), DiskCounts { reads: 2, read_bytes: 6, writes: 2, write_bytes: 6, syncs: 4 });
}

#[test]
fn names_follow_the_rules_of_a_file_system() {
    let disk = SimDisk::new(0);
    let at = Path::new;
    assert_eq!(kind(disk.open(at("d/f"), Access::Create)), ErrorKind::NotFound);
    assert_eq!(kind(disk.open(at("f"), Access::Read)), ErrorKind::NotFound);
    disk.create_dir(at("d/e")).expect("parents are created too");
    create(&disk, "d/f").append(b"123").expect("there is room");
    create(&disk, "d/e/deep");
    assert_eq!(kind(disk.open(at("./d//f"), Access::Create)), ErrorKind::AlreadyExists);
    assert_eq!(kind(disk.open(at("d"), Access::Read)), ErrorKind::IsADirectory);
    assert_eq!(kind(disk.create_dir(at("d/f/g"))), ErrorKind::NotADirectory);
    assert_eq!(kind(disk.remove_dir(at("d"))), ErrorKind::DirectoryNotEmpty);
    assert_eq!(kind(disk.rename(at("d/f"), at("f"))), ErrorKind::Unsupported);
    let listed = disk.list(at("d")).expect("the directory exists");
    let listed: Vec<_> = listed.iter().map(|entry| (entry.name.as_str(), entry.bytes)).collect();
    assert_eq!(listed, [("e", 0), ("f", 3)]);
    let file = disk.open(at("d/f"), Access::ReadDirect).expect("the file is there");
    assert!(file.is_direct());
    assert_eq!(kind(file.append(b"x")), ErrorKind::PermissionDenied);
}

#[test]
fn time_moves_by_sleeping_and_advancing_only() {
    let clock = SimClock::new();
    let (now, wall) = (clock.now(), clock.wall());
    assert_eq!(clock.now(), now);
    clock.sleep(Duration::from_millis(3));
    clock.pause(Duration::from_millis(2));
    clock.advance(Duration::from_millis(7));
    assert_eq!(clock.now() - now, Duration::from_millis(12));
    assert_eq!(clock.wall() - wall, Duration::from_millis(12));
}

/// A job that does the waiting work. The first time it is polled, it also wakes and drives its own worker.
#[derive(Default)]
struct Busy {
    waiting: AtomicU64,
    polls: AtomicU64,
    worker: OnceLock<Weak<dyn Worker>>,
}

impl Job for Busy {
    fn poll(&self) -> Polled {
        let polls = self.polls.fetch_add(1, Ordering::Relaxed);
        if let Some(worker) = self.worker.get().and_then(Weak::upgrade)
            && polls == 0
        {
            worker.wake();
            worker.drive();
            assert_eq!(self.polls.load(Ordering::Relaxed), 1, "a poll is not polled from inside");
        }
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return Polled::Idle;
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Polled::Worked
    }
}

fn threads() -> SimThreads {
    SimThreads::new(Arc::new(SimClock::new()))
}

#[test]
fn a_simulated_worker_is_woken_when_the_clock_says_so() {
    let clock = Arc::new(SimClock::new());
    let job = Arc::new(Busy::default());
    let worker = SimThreads::new(clock.clone()).worker(Priority::Normal, job.clone());
    worker.drive();
    worker.wake_after(Duration::from_millis(10));
    let polls_when_driven = || {
        worker.drive();
        job.polls.load(Ordering::Relaxed)
    };
    clock.advance(Duration::from_millis(9));
    assert_eq!(polls_when_driven(), 1, "it is not time yet");
    clock.advance(Duration::from_millis(1));
    assert_eq!(polls_when_driven(), 2);
    clock.advance(Duration::from_secs(1));
    assert_eq!(polls_when_driven(), 2, "it was woken once");
    worker.wake_after(Duration::ZERO);
    worker.stop();
    assert_eq!(polls_when_driven(), 2, "a worker that was stopped polls no more");
}

#[test]
fn a_simulated_worker_polls_until_idle_when_driven_and_woken() {
    let job = Arc::new(Busy::default());
    job.waiting.store(3, Ordering::Relaxed);
    let worker = threads().worker(Priority::Normal, job.clone());
    let polls = || job.polls.load(Ordering::Relaxed);
    assert_eq!(polls(), 0, "nobody drove it");
    worker.drive();
    assert_eq!(polls(), 4, "woken at first: three pieces and finding none");
    worker.drive();
    assert_eq!(polls(), 4, "not woken since");
    worker.wake();
    assert_eq!(polls(), 4, "a wake is only remembered");
    worker.drive();
    assert_eq!(polls(), 5);
}

#[test]
fn a_wake_during_a_poll_causes_another_and_a_drive_during_a_poll_does_nothing() {
    let job = Arc::new(Busy::default());
    let worker: Arc<dyn Worker> = threads().worker(Priority::Normal, job.clone()).into();
    assert!(job.worker.set(Arc::downgrade(&worker)).is_ok());
    worker.drive();
    assert_eq!(job.polls.load(Ordering::Relaxed), 2);
}

#[test]
fn a_simulated_machine_repeats_itself() {
    let numbers = |seed| {
        let (machine, disk) = Machine::simulated(seed);
        machine.disk.create_dir(Path::new("d")).expect("no faults");
        assert!(disk.exists(Path::new("d")).expect("no faults"), "the machine's disk is the one returned");
        assert!(!machine.threads.are_real());
        (machine.random.next_u64(), machine.random.next_u64(), machine.clock.wall())
    };
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
}
