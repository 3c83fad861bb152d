//! What held-back reads promise.

use crate::sync::{Arc, Mutex};
use crate::{Access, Buffer, Machine, ReadRequest, Reads, Urgency};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

type Told = Arc<Mutex<Vec<(u64, io::Result<usize>)>>>;

/// A machine with a file of 10 pages, and one read for each page.
fn ten(seed: u64) -> (Arc<crate::sim::SimDisk>, Arc<crate::sim::SimReads>, Told) {
    let (machine, disk, reads) = Machine::simulated_with_reads(seed);
    let file = machine.disk.open(Path::new("f"), Access::Create).expect("the disk is empty");
    file.append(&[1; 10 * 4096]).expect("there is room");
    let told = Told::default();
    let batch = (0..10).map(|ticket| {
        let told = told.clone();
        let done = Box::new(move |_: Buffer, outcome| told.lock().push((ticket, outcome)));
        let buffer = Buffer::zeroed(4096);
        ReadRequest { source: file.clone(), offset: ticket * 4096, buffer, urgency: Urgency::Ahead, ticket, done }
    });
    machine.reads.submit(batch.collect());
    (disk, reads, told)
}

fn order(told: &Told) -> Vec<u64> {
    told.lock().iter().map(|(ticket, _)| *ticket).collect()
}

#[test]
fn nothing_happens_before_it_is_driven_and_each_is_told_once() {
    let (disk, reads, told) = ten(0);
    let before = disk.counts().reads;
    assert_eq!((reads.held(), told.lock().len()), (10, 0));
    for driven in 1..=10 {
        assert!(reads.drive());
        assert_eq!((reads.held(), told.lock().len()), (10 - driven, driven));
    }
    assert!(!reads.drive());
    assert_eq!(disk.counts().reads - before, 10);
    assert_eq!(order(&told).into_iter().collect::<BTreeSet<_>>(), (0..10).collect());
}

#[test]
fn the_order_follows_from_the_seed() {
    let of = |seed| {
        let (_, reads, told) = ten(seed);
        reads.finish();
        order(&told)
    };
    assert_eq!(of(1), of(1));
    assert!((0..200).map(of).collect::<BTreeSet<_>>().len() > 190);
}

#[test]
fn raising_is_seen_and_a_chosen_one_is_ended() {
    let (_, reads, told) = ten(0);
    reads.raise(3);
    reads.raise(3);
    reads.raise(77);
    assert_eq!(reads.raised(), [3]);
    assert_eq!(reads.tickets()[3], (3, Urgency::Needed));
    assert_eq!(reads.usage().queued.map(|load| load.reads), [1, 9, 0]);
    assert!(reads.step_ticket(3) && !reads.step_ticket(3));
    assert_eq!(order(&told), [3]);
}

#[test]
fn faults_of_the_disk_reach_who_asked() {
    let (disk, reads, told) = ten(0);
    disk.shorten_read(1);
    disk.fail_operation(2, io::ErrorKind::TimedOut);
    reads.finish();
    let told = told.lock();
    assert!(told[0].1.as_ref().is_ok_and(|&read| read < 4096));
    assert!(told[1].1.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut));
    assert!(told[2..].iter().all(|(_, outcome)| outcome.as_ref().is_ok_and(|&read| read == 4096)));
}
