//! What reads of the real machine promise, however they are made. The files are in the system's temporary directory.

use super::{ReadsChoice, RealReads, VARIABLE, limits};
use crate::real::{RealDisk, RealRandom};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex};
use crate::{Access, Buffer, Disk, File, Random, ReadRequest, Reads, Urgency};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::thread;

/// A file of random bytes, removed when dropped.
struct Scratch {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Scratch {
    fn new(seed: u64, len: usize) -> Scratch {
        let path = std::env::temp_dir().join(format!("larch-os-reads-{:016x}", RealRandom.next_u64()));
        let mut bytes = vec![0; len];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill(&mut bytes[..]);
        let file = RealDisk.open(&path, Access::Create).expect("the temporary directory can be written");
        file.append(&bytes).expect("there is room");
        Scratch { path, bytes }
    }

    fn open(&self, access: Access) -> Arc<dyn File> {
        RealDisk.open(&self.path, access).expect("the file is there")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If the test has failed, its own message must not be hidden by a failure to remove the file.
        if let Err(error) = RealDisk.remove(&self.path) {
            eprintln!("{error}");
        }
    }
}

/// The ends of reads, with their tickets.
#[derive(Default)]
struct Ends {
    ends: Mutex<Vec<(u64, Buffer, io::Result<usize>)>>,
    changed: Condvar,
}

impl Ends {
    /// A read that reports its end to `self`.
    fn read(
        self: &Arc<Self>,
        file: &Arc<dyn File>,
        offset: usize,
        bytes: usize,
        urgency: Urgency,
        ticket: u64,
    ) -> ReadRequest {
        let ends = self.clone();
        let done = move |buffer, outcome| {
            ends.ends.lock().push((ticket, buffer, outcome));
            ends.changed.notify_all();
        };
        let (offset, buffer) = (offset as u64, Buffer::zeroed(bytes));
        ReadRequest { source: file.clone(), offset, buffer, urgency, ticket, done: Box::new(done) }
    }

    /// Waits until `count` reads have ended, and takes their results.
    fn take(&self, count: usize) -> Vec<(u64, Buffer, io::Result<usize>)> {
        let mut ends = self.ends.lock();
        while ends.len() < count {
            ends = self.changed.wait(ends);
        }
        std::mem::take(&mut *ends)
    }
}

/// All engines of this system whose `submit` does not wait for the reads.
fn engines() -> Vec<Arc<RealReads>> {
    let ring = RealReads::alone(ReadsChoice::Ring);
    let mut engines = vec![Arc::new(RealReads::alone(ReadsChoice::Threads))];
    if ring.name() == "io_uring" {
        engines.push(Arc::new(ring));
    } else {
        println!("this system forbids io_uring: what is promised of it was not looked at");
        let ends = Arc::new(Ends::default());
        ring.submit(vec![ends.read(&Gate::open(), 0, 1, Urgency::Needed, 0)]);
        let (_, _, outcome) = ends.take(1).remove(0);
        let error = outcome.expect_err("it cannot read");
        assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("io_uring"), "{error}");
    }
    engines
}

/// A file whose reads wait until a gate is open, and then return bytes that are all 7.
#[derive(Debug)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    /// A descriptor that the file passes off as its own, although nothing can be read from it.
    misleading: Option<std::fs::File>,
}

impl Gate {
    fn new(is_open: bool) -> Arc<Gate> {
        Arc::new(Gate { is_open: Mutex::new(is_open), opened: Condvar::new(), misleading: None })
    }

    fn open() -> Arc<dyn File> {
        Gate::new(true)
    }

    fn misleading() -> Arc<dyn File> {
        let directory = std::fs::File::open(std::env::temp_dir()).expect("a directory can be opened");
        Arc::new(Gate { is_open: Mutex::new(true), opened: Condvar::new(), misleading: Some(directory) })
    }

    fn let_pass(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }
}

impl File for Gate {
    fn read_at(&self, buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        let mut is_open = self.is_open.lock();
        while !*is_open {
            is_open = self.opened.wait(is_open);
        }
        buffer.fill(7);
        Ok(buffer.len())
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn append(&self, _bytes: &[u8]) -> io::Result<u64> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn is_direct(&self) -> bool {
        true
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.misleading.as_ref().map(AsFd::as_fd)
    }
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

#[test]
fn reads_give_what_the_file_has_at_every_offset_and_length() {
    let scratch = Scratch::new(1, (1 << 20) + 5000);
    let len = scratch.bytes.len();
    for reads in engines().into_iter().chain([Arc::new(RealReads::alone(ReadsChoice::Caller))]) {
        for access in [Access::Read, Access::ReadDirect] {
            let file = scratch.open(access);
            let ends = Arc::new(Ends::default());
            let edges = [0, 1, 4095, 4096, 8192, 12_288, 65_536, 1 << 20, (1 << 20) + 4096, len, len + 5000];
            let lengths = [0, 1, 4096, 5000, 16_384, 1 << 20, (1 << 20) + 8192];
            let asked: Vec<_> = edges.iter().flat_map(|&edge| lengths.map(|bytes| (edge, bytes))).collect();
            for urgency in Urgency::ALL {
                let batch = asked.iter().enumerate();
                let batch = batch.map(|(ticket, &(at, bytes))| ends.read(&file, at, bytes, urgency, ticket as u64));
                reads.submit(batch.collect());
                let mut told = vec![false; asked.len()];
                for (ticket, buffer, outcome) in ends.take(asked.len()) {
                    let (at, bytes) = asked[ticket as usize];
                    let expected = &scratch.bytes[at.min(len)..(at + bytes).min(len)];
                    let read = outcome.expect("the file can be read");
                    assert_eq!(buffer.len(), bytes);
                    assert!(buffer[..read] == *expected, "{bytes} at {at} by {} {access:?}", reads.name());
                    assert!(!std::mem::replace(&mut told[ticket as usize], true), "told once");
                }
            }
            let usage = reads.usage();
            assert_eq!((usage.under_way, usage.queued), Default::default());
        }
    }
}

#[test]
fn an_engine_reads_from_its_first_moment_on() {
    for kind in engines().iter().map(|reads| reads.name()) {
        for _ in 0..300 {
            let reads = RealReads::alone(if kind == "threads" { ReadsChoice::Threads } else { ReadsChoice::Ring });
            let ends = Arc::new(Ends::default());
            for ticket in 0..2 {
                reads.submit(vec![ends.read(&Gate::open(), 0, 4096, Urgency::Needed, ticket)]);
                assert_eq!(ends.take(1)[0].0, ticket);
            }
        }
    }
}

#[test]
fn many_threads_with_many_reads_each_get_what_they_asked_for() {
    let scratch = Scratch::new(2, 16 * MIB + 1000);
    let pages = scratch.bytes.len() / (16 * KIB);
    for reads in engines() {
        let file = scratch.open(Access::ReadDirect);
        thread::scope(|scope| {
            for seed in 0..8 {
                let (reads, file, scratch) = (&reads, &file, &scratch);
                scope.spawn(move || {
                    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
                    let ends = Arc::new(Ends::default());
                    let (mut asked, mut told) = (0, 0);
                    while told < 1250 {
                        let more = rng.random_range(1..=16).min(1250 - asked).min(32 - (asked - told));
                        let batch = (0..more).map(|_| {
                            let page = rng.random_range(0..pages);
                            let urgency = Urgency::ALL[rng.random_range(0..3)];
                            ends.read(file, page * 16 * KIB, 16 * KIB, urgency, page as u64)
                        });
                        reads.submit(batch.collect());
                        asked += more;
                        reads.raise(rng.random_range(0..pages) as u64);
                        for (page, buffer, outcome) in ends.take(1) {
                            assert_eq!(outcome.expect("the file can be read"), 16 * KIB);
                            let start = usize::try_from(page).expect("pages are few") * 16 * KIB;
                            assert!(buffer[..] == scratch.bytes[start..start + 16 * KIB], "page {page}");
                            told += 1;
                        }
                    }
                });
            }
        });
        assert_eq!(reads.usage().reads, 10_000);
        assert_eq!((reads.usage().under_way, reads.usage().queued), Default::default());
    }
}

#[test]
fn neighbours_are_read_as_one_and_each_is_told_of_its_own() {
    let scratch = Scratch::new(3, MIB);
    for reads in engines() {
        for access in [Access::Read, Access::ReadDirect] {
            let file = scratch.open(access);
            let ends = Arc::new(Ends::default());
            // The second read is a neighbour of the first, the third shares a block with the second, the fourth
            // follows after a gap, and the fifth is too far away.
            let places = [(0, 16_384), (16_384, 5000), (20_480, 8192), (36_864, 4096), (524_288, 4096)];
            let before = reads.usage().joined;
            let batch = places.iter().map(|&(at, bytes)| ends.read(&file, at, bytes, Urgency::Ahead, at as u64));
            reads.submit(batch.collect());
            for (at, buffer, outcome) in ends.take(places.len()) {
                let at = usize::try_from(at).expect("the file is short");
                let (_, bytes) = places.into_iter().find(|place| place.0 == at).expect("it was asked for");
                assert_eq!((outcome.expect("the file can be read"), buffer.len()), (bytes, bytes));
                assert!(buffer[..] == scratch.bytes[at..at + bytes], "{bytes} at {at}");
            }
            assert_eq!(reads.usage().joined - before, 4);
        }
    }
}

#[test]
fn a_file_that_was_cut_gives_fewer_bytes_to_those_it_concerns() {
    let scratch = Scratch::new(4, 64 * KIB);
    let kept = 20 * KIB + 100;
    scratch.open(Access::Write).set_len(kept as u64).expect("a file can be cut");
    for reads in engines() {
        for access in [Access::Read, Access::ReadDirect] {
            let file = scratch.open(access);
            let ends = Arc::new(Ends::default());
            let batch = (0..4).map(|page| ends.read(&file, page * 16 * KIB, 16 * KIB, Urgency::Needed, page as u64));
            reads.submit(batch.collect());
            let mut told = ends.take(4);
            told.sort_by_key(|end| end.0);
            let counts: Vec<_> = told.iter().map(|end| end.2.as_ref().ok().copied()).collect();
            assert_eq!(counts, [Some(16 * KIB), Some(4 * KIB + 100), Some(0), Some(0)], "{}", reads.name());
            assert!(told[1].1[..4 * KIB + 100] == scratch.bytes[16 * KIB..kept]);
        }
    }
}

#[test]
fn what_the_system_refuses_is_asked_of_the_file() {
    for reads in engines() {
        let ends = Arc::new(Ends::default());
        let file = Gate::misleading();
        reads.submit((0..10).map(|page| ends.read(&file, page * 8192, 4096, Urgency::Needed, 0)).collect());
        for (_, buffer, outcome) in ends.take(10) {
            assert_eq!(outcome.expect("the file can be read"), 4096);
            assert!(buffer.iter().all(|&byte| byte == 7));
        }
    }
}

#[test]
fn an_error_names_the_file() {
    for reads in engines() {
        let ends = Arc::new(Ends::default());
        let directory = std::env::temp_dir();
        let file = RealDisk.open(&directory, Access::Read).expect("a directory can be opened for reading");
        reads.submit(vec![ends.read(&file, 0, 4096, Urgency::Needed, 0)]);
        let error = ends.take(1).remove(0).2.expect_err("a directory cannot be read");
        assert!(error.to_string().contains(&*directory.to_string_lossy()), "{error}");
    }
}

#[test]
fn background_reads_stay_within_their_bytes() {
    let scratch = Scratch::new(5, 16 * MIB);
    for reads in engines() {
        let file = scratch.open(Access::ReadDirect);
        let most = Arc::new(AtomicUsize::new(0));
        let ends = Arc::new(Ends::default());
        let batch = (0..16 * MIB / (64 * KIB)).map(|piece| {
            let mut read = ends.read(&file, piece * 64 * KIB, 48 * KIB, Urgency::Background, piece as u64);
            let (engine, most, done) = (Arc::downgrade(&reads), most.clone(), read.done);
            read.done = Box::new(move |buffer, outcome| {
                if let Some(reads) = engine.upgrade() {
                    most.fetch_max(reads.usage().under_way[Urgency::Background as usize].bytes, Ordering::Relaxed);
                }
                done(buffer, outcome);
            });
            read
        });
        reads.submit(batch.collect());
        let seen = reads.usage();
        most.fetch_max(seen.under_way[Urgency::Background as usize].bytes, Ordering::Relaxed);
        ends.take(256).into_iter().for_each(|end| assert_eq!(end.2.expect("the file can be read"), 48 * KIB));
        let most = most.load(Ordering::Relaxed);
        let bound = limits(32).bytes[Urgency::Background as usize];
        assert!((MIB..=bound).contains(&most), "{most} bytes under way by {}, of {bound}", reads.name());
    }
}

/// Fills the limit of background reads with reads that wait at a gate, and then queues one more read with the given
/// ticket.
fn fill_background(reads: &RealReads, ends: &Arc<Ends>, gate: &Arc<Gate>, last: &Arc<dyn File>, ticket: u64) -> usize {
    let closed: Arc<dyn File> = gate.clone();
    let count = limits(32).bytes[Urgency::Background as usize] / (512 * KIB);
    reads.submit((0..count).map(|_| ends.read(&closed, 0, 512 * KIB, Urgency::Background, u64::MAX)).collect());
    reads.submit(vec![ends.read(last, 0, 4096, Urgency::Background, ticket)]);
    // Another thread may begin these reads, so this thread waits until they have begun.
    while reads.usage().under_way[Urgency::Background as usize].reads < count {
        thread::yield_now();
    }
    assert_eq!(reads.usage().queued[Urgency::Background as usize].reads, 1);
    count
}

#[test]
fn a_raised_read_does_not_wait_for_its_former_equals() {
    for reads in engines() {
        let (gate, ends) = (Gate::new(false), Arc::new(Ends::default()));
        let count = fill_background(&reads, &ends, &gate, &Gate::open(), 5);
        reads.raise(5);
        let ended = ends.take(1);
        assert_eq!(ended[0].0, 5);
        gate.let_pass();
        assert_eq!(ends.take(count).len(), count);
    }
}

#[test]
fn reads_that_are_needed_pass_background_reads_that_fill_their_bound() {
    for reads in engines() {
        let (gate, ends) = (Gate::new(false), Arc::new(Ends::default()));
        let count = fill_background(&reads, &ends, &gate, &Gate::open(), 5);
        let open = Gate::open();
        for ticket in 10..20 {
            reads.submit(vec![ends.read(&open, 0, 4096, Urgency::Needed, ticket)]);
            assert_eq!(ends.take(1)[0].0, ticket);
        }
        gate.let_pass();
        assert_eq!(ends.take(count + 1).len(), count + 1);
    }
}

#[test]
fn closing_waits_for_what_is_under_way_and_tells_the_rest() {
    for reads in engines() {
        let (gate, ends) = (Gate::new(false), Arc::new(Ends::default()));
        let count = fill_background(&reads, &ends, &gate, &Gate::open(), 5);
        let closing = thread::spawn(move || drop(reads));
        let ended = ends.take(1).remove(0);
        assert_eq!(ended.0, 5, "not begun, so told at once");
        assert!(ended.2.expect_err("it was not read").to_string().contains("closed"));
        gate.let_pass();
        closing.join().expect("closing succeeds");
        let ended = ends.take(count);
        assert!(ended.len() == count && ended.iter().all(|end| end.2.is_ok()));
    }
}

#[test]
fn who_is_told_of_a_read_may_drop_the_last_of_its_engine() {
    let scratch = Scratch::new(6, MIB);
    for reads in engines() {
        for file in [scratch.open(Access::ReadDirect), Gate::open()] {
            let ends = Arc::new(Ends::default());
            let name = reads.name();
            let reads = RealReads::alone(if name == "threads" { ReadsChoice::Threads } else { ReadsChoice::Ring });
            let engine = Arc::new(Mutex::new(Some(Arc::new(reads))));
            let batch = (0..64).map(|piece| {
                let mut read = ends.read(&file, piece * 16 * KIB, 4096, Urgency::Needed, 0);
                let (engine, done) = (engine.clone(), read.done);
                read.done = Box::new(move |buffer, outcome| {
                    let last = engine.lock().take();
                    drop(last);
                    done(buffer, outcome);
                });
                read
            });
            let batch = batch.collect();
            let submitter = engine.lock().clone().expect("nobody was told yet");
            submitter.submit(batch);
            drop(submitter);
            assert_eq!(ends.take(64).len(), 64);
        }
    }
}

#[test]
fn a_panic_of_who_is_told_concerns_nobody_else() {
    let scratch = Scratch::new(7, MIB);
    for reads in engines() {
        for file in [scratch.open(Access::ReadDirect), Gate::open()] {
            let ends = Arc::new(Ends::default());
            let batch = (0..64).map(|piece| {
                let mut read = ends.read(&file, piece * 16 * KIB, 4096, Urgency::Needed, 0);
                if piece % 8 == 3 {
                    read.done = Box::new(|_, _| panic!("on purpose: who is told of a read panics"));
                }
                read
            });
            reads.submit(batch.collect());
            assert_eq!(ends.take(56).len(), 56);
        }
    }
}

#[test]
fn who_is_told_of_a_read_may_ask_for_the_next() {
    let scratch = Scratch::new(8, MIB);
    /// Reads the file from `page` on, each page in the callback of the one before.
    fn step(reads: &Arc<RealReads>, file: &Arc<dyn File>, ends: &Arc<Ends>, page: usize) {
        let mut read = ends.read(file, page * 16 * KIB, 16 * KIB, Urgency::Needed, page as u64);
        let (engine, file, ends, done) = (Arc::downgrade(reads), file.clone(), ends.clone(), read.done);
        read.done = Box::new(move |buffer, outcome| {
            done(buffer, outcome);
            if let Some(reads) = engine.upgrade().filter(|_| page < 63) {
                step(&reads, &file, &ends, page + 1);
            }
        });
        reads.submit(vec![read]);
    }
    for reads in engines() {
        let (file, ends) = (scratch.open(Access::ReadDirect), Arc::new(Ends::default()));
        step(&reads, &file, &ends, 0);
        for (page, buffer, _) in ends.take(64) {
            let start = usize::try_from(page).expect("pages are few") * 16 * KIB;
            assert!(buffer[..] == scratch.bytes[start..start + 16 * KIB], "page {page}");
        }
    }
}

#[test]
fn threads_read_where_the_system_forbids_io_uring() {
    let forbidden = || Err(io::Error::new(ErrorKind::PermissionDenied, "forbidden here"));
    assert_eq!(ReadsChoice::Best.engine(forbidden).name(), "threads");
    let refusal = ReadsChoice::Ring.engine(forbidden);
    let ends = Arc::new(Ends::default());
    refusal.submit((0..3).map(|ticket| ends.read(&Gate::open(), 0, 4096, Urgency::Needed, ticket)).collect());
    for (_, _, outcome) in ends.take(3) {
        let error = outcome.expect_err("who insists on io_uring is told");
        assert_eq!(
            error.to_string(),
            format!("cannot read through io_uring, which {VARIABLE} asks for: forbidden here")
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn threads_go_on_where_io_uring_breaks_down_and_each_read_is_answered_once() {
    use super::{POOL_DEPTH, RING_DEPTH, ring::Ring};
    const COUNT: u64 = 48;
    let scratch = Scratch::new(9, 4 * MIB);
    let file = scratch.open(Access::ReadDirect);
    // The ring breaks at call number `last` of `enter`, before or after the kernel has taken what was submitted.
    for (last, takes) in (1..=8).flat_map(|last| [(last, false), (last, true)]) {
        let mut calls = 0;
        let enter = move |ring: &io_uring::IoUring, ends| {
            calls += 1;
            if calls < last {
                return ring.submit_and_wait(ends);
            }
            if takes && calls == last {
                ring.submit()?;
            }
            Err(rustix::io::Errno::BADF.into())
        };
        let Ok(reads) = Ring::entering(limits(RING_DEPTH), limits(POOL_DEPTH), Box::new(enter)) else {
            println!("this system forbids io_uring: what is promised of it was not looked at");
            return;
        };
        let (ends, gate) = (Arc::new(Ends::default()), Gate::open());
        let mut random = Xoshiro256PlusPlus::seed_from_u64(last);
        let mut batches = 0;
        while batches < 3 || reads.name() != "threads" {
            batches += 1;
            assert!(batches < 100, "it has not broken: {reads:?}");
            let places: Vec<usize> = (0..COUNT).map(|_| random.random_range(0..250) * 16 * KIB).collect();
            let batch = places.iter().zip(0..).map(|(&at, ticket)| {
                let urgency = Urgency::ALL[random.random_range(0..3)];
                let file = if ticket % 8 == 0 { &gate } else { &file };
                ends.read(file, at, 10_000, urgency, ticket)
            });
            reads.submit(batch.collect());
            reads.raise(COUNT / 2);
            let mut told = ends.take(COUNT as usize);
            told.sort_by_key(|end| end.0);
            for ((ticket, buffer, outcome), (at, expected)) in told.into_iter().zip(places.into_iter().zip(0..)) {
                assert_eq!((ticket, outcome.expect("threads read it")), (expected, 10_000), "{last} {takes}");
                let is = if ticket % 8 == 0 { &[7; 10_000][..] } else { &scratch.bytes[at..at + 10_000] };
                assert!(buffer[..] == *is, "{last} {takes}: {ticket}");
            }
        }
        let usage = reads.usage();
        assert_eq!((usage.under_way, usage.queued), Default::default());
        assert_eq!(usage.reads, batches * COUNT);
        drop(reads);
        assert!(ends.take(0).is_empty(), "nobody is told twice");
    }
}

#[test]
fn the_variable_says_how_to_read_or_what_it_may_say() {
    let parse = |value| ReadsChoice::parse(Some(OsStr::new(value)));
    assert_eq!(ReadsChoice::parse(None), Ok(ReadsChoice::Best));
    assert_eq!(parse("io_uring"), Ok(ReadsChoice::Ring));
    assert_eq!(parse("threads"), Ok(ReadsChoice::Threads));
    assert_eq!(parse("caller"), Ok(ReadsChoice::Caller));
    for wrong in ["", "uring", "IO_URING"] {
        let why = parse(wrong).expect_err("it is none of them");
        assert_eq!(why, format!("LARCH_READS={wrong} is not a way to read: io_uring, threads or caller"));
    }
}

#[test]
fn a_process_has_one_engine_while_somebody_uses_it() {
    let (first, second, idle) = (RealReads::new(), RealReads::new(), RealReads::new());
    assert_eq!(idle.usage(), Default::default());
    let engine = |reads: &RealReads| reads.engine.get().cloned();
    let ends = Arc::new(Ends::default());
    for reads in [&first, &second] {
        reads.submit(vec![ends.read(&Gate::open(), 0, 4096, Urgency::Needed, 0)]);
    }
    ends.take(2);
    let (a, b) = (engine(&first).expect("it read"), engine(&second).expect("it read"));
    assert!(Arc::ptr_eq(&a, &b));
    assert!(engine(&idle).is_none(), "nothing was started for who does not read");
    let weak = Arc::downgrade(&a);
    drop((a, b, first, idle));
    assert!(weak.upgrade().is_some());
    drop(second);
    assert!(weak.upgrade().is_none());
}
