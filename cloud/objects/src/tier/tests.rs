//! What a tier promises: reads give the bytes of the store, whatever happens to the tier's own files.

use super::{TIER_BLOCK_BYTES, TierOptions, TieredStore};
use os::io::CallerReads;
use os::sim::{SimClock, SimDisk, SimStore, SimThreads, StoreTrouble};
use os::sync::Arc;
use os::{Disk, Store};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::path::Path;

const OBJECT_BYTES: u64 = 300_000;

/// The byte of an object at an offset.
fn byte(object: u64, offset: u64) -> u8 {
    ((offset + object * 1_000_003).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A store with some objects.
fn store() -> (Arc<SimStore>, Arc<dyn Store>, Arc<SimClock>) {
    let clock = Arc::new(SimClock::new());
    let store = SimStore::new(1, clock.clone());
    let client = store.client();
    for object in 0..4 {
        let mut upload = client.create(&format!("sst/{object}.sst")).expect("there is no trouble");
        let bytes: Vec<u8> = (0..OBJECT_BYTES).map(|offset| byte(object, offset)).collect();
        upload.write(&bytes).and_then(|()| upload.finish()).expect("there is no trouble");
    }
    (store, client, clock)
}

fn tier(client: &Arc<dyn Store>, disk: &Arc<SimDisk>, clock: &Arc<SimClock>, budget_bytes: u64) -> TieredStore {
    let options = TierOptions {
        disk: disk.clone(),
        reads: Arc::new(CallerReads),
        threads: Arc::new(SimThreads::new(clock.clone())),
        budget_bytes,
    };
    let tier = TieredStore::open(client.clone(), Path::new("/tier"), options).expect("the disk works");
    tier.bind(17);
    tier
}

/// Reads a range and compares it.
fn check(store: &TieredStore, object: u64, offset: u64, bytes: usize) {
    let mut buffer = vec![0; bytes];
    let read = store.read_at(&format!("sst/{object}.sst"), &mut buffer, offset).expect("the store works");
    assert_eq!(read as u64, (OBJECT_BYTES - offset).min(bytes as u64), "{object} at {offset}");
    assert!(buffer[..read].iter().zip(offset..).all(|(found, at)| *found == byte(object, at)), "{object} at {offset}");
}

#[test]
fn what_was_read_once_is_not_asked_for_again_even_after_a_restart() {
    let (store, client, clock) = store();
    let disk = SimDisk::new(1);
    let near = tier(&client, &disk, &clock, 64 << 20);
    let read = |tier: &TieredStore| {
        (0..4).for_each(|object| (0..OBJECT_BYTES).step_by(50_000).for_each(|at| check(tier, object, at, 60_000)));
    };
    read(&near);
    let asked = store.counts().gets;
    read(&near);
    assert_eq!(store.counts().gets, asked, "all of it is near");
    drop(near);
    disk.crash_keeping_everything();
    let near = tier(&client, &disk, &clock, 64 << 20);
    read(&near);
    assert_eq!(store.counts().gets, asked, "and it stays near");
    assert_eq!(near.counts().damaged, 0);
}

#[test]
fn random_reads_are_right_with_a_small_budget_and_a_disk_that_crashes_and_decays() {
    for seed in 0..150 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (_, client, clock) = store();
        let disk = SimDisk::new(seed);
        let mut near = tier(&client, &disk, &clock, 20 * TIER_BLOCK_BYTES);
        for _ in 0..60 {
            match rng.random_range(0..20) {
                0 => {
                    drop(near);
                    disk.crash();
                    near = tier(&client, &disk, &clock, rng.random_range(5..40) * TIER_BLOCK_BYTES);
                }
                1 => {
                    let blocks = Path::new("/tier/BLOCKS");
                    let bytes = os::Disk::open(&*disk, blocks, os::Access::Read).and_then(|file| file.len());
                    let bytes = bytes.expect("it is there");
                    if bytes > 0 {
                        disk.flip_bit(blocks, rng.random_range(0..bytes), rng.random_range(0..8));
                    }
                }
                _ => {
                    let offset = rng.random_range(0..OBJECT_BYTES);
                    check(&near, rng.random_range(0..4), offset, rng.random_range(1..49_152));
                }
            }
            let counts = near.counts();
            assert!(counts.blocks <= counts.slots, "seed {seed}: {counts:?}");
        }
        assert!(disk.used_bytes() <= 41 * (TIER_BLOCK_BYTES + 32), "seed {seed}: {}", disk.used_bytes());
    }
}

#[test]
fn a_full_disk_makes_the_tier_smaller_and_reads_go_on() {
    let (_, client, clock) = store();
    let disk = SimDisk::new(1);
    let near = tier(&client, &disk, &clock, 64 << 20);
    disk.set_capacity(20 * TIER_BLOCK_BYTES);
    for round in 0..10 {
        (0..4).for_each(|object| (0..OBJECT_BYTES).step_by(30_000).for_each(|at| check(&near, object, at, 10_000)));
        assert!(disk.used_bytes() <= 20 * TIER_BLOCK_BYTES, "round {round}");
    }
    let counts = near.counts();
    assert!(counts.slots < 20 && counts.blocks > 5, "{counts:?}");
    assert!(disk.list(Path::new("/tier")).expect("the disk works").len() == 2);
}

#[test]
fn what_is_used_stays_and_what_is_not_goes() {
    let (store, client, clock) = store();
    let disk = SimDisk::new(1);
    let near = tier(&client, &disk, &clock, 10 * TIER_BLOCK_BYTES);
    let mut asked = 0;
    for at in (0..OBJECT_BYTES).step_by(TIER_BLOCK_BYTES as usize) {
        (1..4).for_each(|object| check(&near, object, at, 100));
        let before = store.counts().gets;
        check(&near, 0, 0, 100);
        asked += store.counts().gets - before;
    }
    assert!(asked <= 2, "the block that is used all the time was asked for {asked} times");
}

#[test]
fn blocks_of_a_database_that_had_the_same_names_are_not_used() {
    let (store, client, clock) = store();
    let disk = SimDisk::new(1);
    let near = tier(&client, &disk, &clock, 64 << 20);
    (0..4).for_each(|object| check(&near, object, 0, 49_152));
    // The database is removed and made again, and object 0 now has the bytes that object 1 had before.
    let bytes = client.get("sst/1.sst").expect("it is there");
    let mut upload = client.create("sst/0.sst").expect("there is no trouble");
    upload.write(&bytes).and_then(|()| upload.finish()).expect("there is no trouble");
    drop(near);
    let near = tier(&client, &disk, &clock, 64 << 20);
    near.bind(18);
    let mut buffer = vec![0; 49_152];
    near.read_at("sst/0.sst", &mut buffer, 0).expect("the store works");
    assert_eq!(buffer, bytes[..49_152]);
    let asked = store.counts().gets;
    near.read_at("sst/0.sst", &mut buffer, 0).expect("the store works");
    assert_eq!((store.counts().gets, &buffer[..]), (asked, &bytes[..49_152]), "its own blocks are near");
    assert_eq!(near.counts().damaged, 0);
}

#[test]
fn nothing_is_kept_before_a_database_is_bound() {
    let (store, client, clock) = store();
    let disk = SimDisk::new(1);
    let near = tier(&client, &disk, &clock, 64 << 20);
    near.bind(0);
    let asked = store.counts().gets;
    (0..3).for_each(|_| check(&near, 0, 0, 10_000));
    assert_eq!((store.counts().gets - asked, near.counts().blocks), (3, 0));
}

#[test]
fn an_answer_asked_for_anew_takes_the_place_of_the_one_that_was_kept() {
    let (store, client, clock) = store();
    let disk = SimDisk::new(1);
    let near = tier(&client, &disk, &clock, 64 << 20);
    store.set_trouble(StoreTrouble { damaged: 1000, ..StoreTrouble::default() });
    let mut buffer = vec![0; 49_152];
    let read = near.read_at("sst/1.sst", &mut buffer, 0).expect("the store answers");
    let is_whole =
        |bytes: &[u8]| bytes.len() == 49_152 && bytes.iter().zip(0..).all(|(&found, at)| found == byte(1, at));
    assert!(!is_whole(&buffer[..read]), "the answer was damaged");
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let done = move |read: std::io::Result<&[&[u8]]>| sender.send(read.expect("the store answers").concat()).expect("");
    near.begin_read_anew("sst/1.sst", 0..49_152, Box::new(done));
    assert!(is_whole(&receiver.recv().expect("the read ends")), "no two answers are damaged in a row");
    let asked = store.counts().gets;
    check(&near, 1, 0, 49_152);
    assert_eq!((store.counts().gets, near.counts().damaged), (asked, 0), "the new answer is near");
}
