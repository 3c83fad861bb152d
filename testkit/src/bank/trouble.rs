//! A bank on a simulated disk with real threads. The disk fills up and then has room again, or a sync fails.

use super::Summary;
use super::clients::{Clients, Heard, Office, audit};
use super::ledger::Ledger;
use crate::history::DIRECTORY;
use larch::{Builder, Database, Durability};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::io::ErrorKind;
use std::thread::{self, JoinHandle};

/// A full disk gets room again after this many failed transfers, and fills up again after this many acknowledged
/// ones.
const ENOUGH: u64 = 40;

fn builder(disk: &Arc<SimDisk>) -> Builder {
    Database::builder(DIRECTORY).machine(Machine { disk: disk.clone(), ..Machine::real() })
}

fn summary(rounds: u64, heard: &Heard) -> Summary {
    let Heard { acknowledged, failed, unknown } = heard;
    let count = |numbers: &std::collections::BTreeSet<_>| numbers.len() as u64;
    let (acknowledged, failed, unknown) = (count(acknowledged), count(failed), count(unknown));
    Summary { rounds, acknowledged, failed, unknown, unheard: 0 }
}

/// Makes transfers on a thread of its own.
fn serve(office: &Arc<Office>, clients: Clients, rng: &mut Xoshiro256PlusPlus) -> JoinHandle<()> {
    let (office, mut rng) = (office.clone(), Xoshiro256PlusPlus::seed_from_u64(rng.random()));
    thread::spawn(move || office.serve(clients, &mut rng))
}

/// Fills the disk and gives it room again, `rounds` times. The bank stays open all the time.
pub fn fill_the_disk(clients: Clients, rounds: u64, seed: u64) -> Summary {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let disk = SimDisk::new(seed);
    let office = Office::new(Ledger::open(builder(&disk)).expect("the disk has room"), None, 0, drop);
    let serving = serve(&office, clients, &mut rng);
    let wait_for = |is_enough: &dyn Fn((u64, u64)) -> bool| {
        while !is_enough(office.counts()) && !office.is_closed() && !serving.is_finished() {
            thread::yield_now();
        }
    };
    for _ in 0..rounds {
        let (before, _) = office.counts();
        wait_for(&|(acknowledged, _)| acknowledged >= before + ENOUGH);
        disk.set_capacity(disk.used_bytes() + rng.random_range(0..256 << 10));
        let (_, before) = office.counts();
        wait_for(&|(_, failed)| failed >= before + ENOUGH);
        office.ledger().expect_total().expect("reads go on");
        disk.set_capacity(u64::MAX);
    }
    let (before, _) = office.counts();
    wait_for(&|(acknowledged, _)| acknowledged >= before + ENOUGH);
    office.close();
    serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let heard = office.heard();
    assert!(heard.unknown.is_empty(), "no sync failed, so every outcome is known: {:?}", heard.unknown);
    // Audits the open database, and then the database after it was opened again.
    audit(office.ledger(), &heard);
    drop(Arc::into_inner(office).expect("every client has ended"));
    audit(&Ledger::open(builder(&disk)).expect("the disk has room"), &heard);
    summary(rounds, &heard)
}

/// Makes a sync fail, `rounds` times. After each failed sync, the database is opened again.
pub fn fail_syncs(clients: Clients, rounds: u64, seed: u64) -> Summary {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let disk = SimDisk::new(seed);
    let mut all = Heard::default();
    let mut first = 0;
    for round in 0..rounds {
        let office =
            Office::new(Ledger::open(builder(&disk)).expect("the disk works"), Some(Durability::Synced), first, drop);
        if rng.random() {
            disk.lose_writes_of_failed_syncs();
        }
        let serving = serve(&office, clients, &mut rng);
        // The serving thread ends when the bank refuses writes. After a failed sync of a file that can be written
        // again, the bank still accepts writes, and the thread goes on.
        let mut failed = 0;
        while !serving.is_finished() {
            if disk.sync_count() >= failed {
                let later = rng.random_range(1..100);
                failed = disk.sync_count() + later;
                disk.fail_sync(later, ErrorKind::Other);
            }
            thread::yield_now();
        }
        serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let Heard { acknowledged, failed, unknown } = office.heard();
        assert!(!unknown.is_empty() || !failed.is_empty(), "a sync failed in round {round}, and nobody heard of it");
        all.acknowledged.extend(&acknowledged);
        all.failed.extend(&failed);
        all.unknown.extend(&unknown);
        let newest = [&acknowledged, &failed, &unknown].into_iter().filter_map(|numbers| numbers.last()).max();
        first = newest.map_or(first, |newest| newest + 1);
        drop(Arc::into_inner(office).expect("every client has ended"));
        disk.clear_faults();
        if rng.random() {
            disk.crash();
        }
        audit(&Ledger::open(builder(&disk)).expect("the disk works again"), &all);
    }
    summary(rounds, &all)
}
