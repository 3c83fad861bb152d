//! The cache under random schedules: `cargo x shuttle`.
#![cfg(shuttle)]

use larch_pages::{
    Address, Admit, Compression, HEADER_BYTES, Packing, PageCache, PageKind, PageLender, PagedFile, Reason, Result,
    Session, encode_page, retry,
};
use os::sim::{SimDisk, SimReads};
use os::sync::shuttle::{self, thread};
use os::sync::{Arc, Condvar, Mutex};
use os::{Access, BLOCK_BYTES, Disk, Machine};
use std::path::Path;
use std::task::{Context, Poll, Wake, Waker};

const PATH: &str = "numbered";
const ID: u64 = 7;

/// Pages of one block each, filled with their number.
#[derive(Clone)]
struct Numbered {
    disk: Arc<SimDisk>,
    pages: Vec<Address>,
    cache: Arc<PageCache>,
    file: Arc<PagedFile>,
    /// What one page costs in memory.
    cost: u64,
}

impl Numbered {
    /// `pages` pages and a cache that has room for `budget_pages`.
    fn new(pages: u8, budget_pages: u64) -> Self {
        let disk = SimDisk::new(0);
        let file = disk.open(Path::new(PATH), Access::Create).expect("the disk is empty");
        let mut addresses = Vec::new();
        for number in 0..pages {
            let mut page = vec![number; BLOCK_BYTES];
            let offset = u64::from(number) * BLOCK_BYTES as u64;
            addresses.push(encode_page(&mut page, (PageKind::Data, 0), Compression::None, Packing::Block, ID, offset));
            file.append(&page).expect("the disk has room");
        }
        let cost = {
            // A larger budget would begin with a larger table, and each look at it is a step of the schedule.
            let cache = PageCache::new(16 * BLOCK_BYTES as u64, 1, |_, _| Ok(()));
            let file = cache.register(PATH, ID, disk.clone() as Arc<dyn Disk>);
            let session = Session::new(&cache, Reason::Point, Admit::Keep);
            retry(&session, || session.page(file.at(&addresses[0], PageKind::Data))).expect("no faults").cost_bytes()
        };
        let cache = PageCache::new(budget_pages * cost, 1, |_, _| Ok(()));
        let file = cache.register(PATH, ID, disk.clone() as Arc<dyn Disk>);
        Self { disk, pages: addresses, cache, file, cost }
    }

    fn reads(&self) -> u64 {
        self.disk.counts().reads
    }

    /// Runs one step that needs all pages in `numbers` at once.
    fn step(&self, session: &Session, numbers: &[usize]) -> Result<()> {
        retry(session, || {
            let mut pinned = Vec::new();
            for &number in numbers {
                let page = session.page(self.file.at(&self.pages[number], PageKind::Data))?;
                assert!(page[HEADER_BYTES..].iter().all(|&byte| usize::from(byte) == number), "page {number}");
                pinned.push(page);
            }
            Ok(())
        })
    }

    /// Starts a thread that runs `steps`, one after the other.
    fn reader(&self, admit: Admit, steps: Vec<Vec<usize>>) -> thread::JoinHandle<Result<()>> {
        let this = self.clone();
        thread::spawn(move || {
            let session = Session::new(&this.cache, Reason::Point, admit);
            steps.iter().try_for_each(|numbers| this.step(&session, numbers))
        })
    }

    /// Checks what must hold when no session reads.
    fn check_rest(&self) {
        let usage = self.cache.usage();
        assert_eq!((usage.pinned_bytes, usage.in_flight_bytes, usage.queued), (0, 0, 0), "{usage:?}");
        assert_eq!(usage.used_bytes, usage.frames * self.cost, "{usage:?}");
        assert!(usage.used_bytes <= usage.budget_bytes, "{usage:?}");
    }
}

/// Unparks the thread that runs a task.
#[derive(Default)]
struct Alarm {
    rung: Mutex<bool>,
    bell: Condvar,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        *self.rung.lock() = true;
        self.bell.notify_all();
    }
}

impl Alarm {
    fn wait(&self) {
        let mut rung = self.rung.lock();
        while !*rung {
            rung = self.bell.wait(rung);
        }
        *rung = false;
    }
}

/// Pages whose reads are held back. The thread that ends such a read also makes it.
struct Flying {
    numbered: Numbered,
    reads: Arc<SimReads>,
}

impl Flying {
    fn new(pages: u8, budget_pages: u64) -> Self {
        let (mut numbered, reads) = (Numbered::new(pages, budget_pages), SimReads::new(0));
        let machine = Machine { reads: reads.clone(), ..Machine::simulated_on(Arc::clone(&numbered.disk), 0) };
        numbered.file = numbered.cache.register_on(PATH, ID, &machine);
        Self { numbered, reads }
    }

    /// A task that needs all of `numbers`. The task is polled once, and never again while it lives.
    fn parked(&self, numbers: &[usize]) -> Session {
        let Numbered { cache, file, pages, .. } = &self.numbered;
        let mut session = Session::new(cache, Reason::Point, Admit::Keep);
        for &number in numbers {
            session.page(file.at(&pages[number], PageKind::Data)).expect_err("it is not here yet");
        }
        let outcome = session.poll_fetch(&mut Context::from_waker(Waker::noop()));
        assert!(outcome.is_pending(), "its reads are held back");
        session
    }

    /// A task on a thread of its own: runs `steps` one after the other, asks for a page ahead after each step, and
    /// is dropped in the middle of a last step.
    fn task(&self, admit: Admit, steps: Vec<Vec<usize>>) -> thread::JoinHandle<Result<()>> {
        let (this, reads) = (self.numbered.clone(), Arc::clone(&self.reads));
        thread::spawn(move || {
            let mut session = Session::new(&this.cache, Reason::Point, admit);
            let alarm = Arc::<Alarm>::default();
            let waker = Waker::from(Arc::clone(&alarm));
            let mut context = Context::from_waker(&waker);
            let page =
                |session: &Session, number: usize| session.page(this.file.at(&this.pages[number], PageKind::Data));
            for numbers in &steps {
                while numbers.iter().filter(|number| page(&session, **number).is_err()).count() > 0 {
                    let outcome = loop {
                        match session.poll_fetch(&mut context) {
                            Poll::Ready(outcome) => break outcome,
                            Poll::Pending if reads.step() => {}
                            Poll::Pending => alarm.wait(),
                        }
                    };
                    outcome?;
                }
                session.ahead(this.file.at(&this.pages[(numbers[0] + 1) % this.pages.len()], PageKind::Data));
                session.release();
            }
            if page(&session, 0).is_err() {
                if let Poll::Ready(outcome) = session.poll_fetch(&mut context) {
                    outcome?;
                }
            }
            drop(session);
            // The disk ends the reads that the task left behind.
            reads.finish();
            Ok(())
        })
    }
}

fn check_schedules(test: impl Fn() + Send + Sync + Copy + 'static) {
    check_some_schedules(test, 10_000);
}

/// Runs `test` on `schedules` schedules, for tests whose schedules are so long that they can run only a few.
fn check_some_schedules(test: impl Fn() + Send + Sync + Copy + 'static, schedules: usize) {
    shuttle::check_random(test, schedules);
    shuttle::check_pct(test, schedules, 3);
}

#[test]
fn a_missing_page_is_read_once_however_many_ask() {
    check_schedules(|| {
        let numbered = Numbered::new(1, 4);
        let before = numbered.reads();
        let readers: Vec<_> = (0..4).map(|_| numbered.reader(Admit::Keep, vec![vec![0]])).collect();
        readers.into_iter().for_each(|reader| reader.join().expect("no panic").expect("no faults"));
        assert_eq!((numbered.reads() - before, numbered.cache.usage().frames), (1, 1));
        numbered.check_rest();
    });
}

#[test]
fn an_error_reaches_all_who_ask() {
    check_schedules(|| {
        let numbered = Numbered::new(1, 4);
        numbered.disk.flip_bit(PATH, 2000, 1);
        let readers: Vec<_> = (0..3).map(|_| numbered.reader(Admit::Keep, vec![vec![0]])).collect();
        for reader in readers {
            let error = reader.join().expect("no panic").expect_err("the page is damaged");
            assert!(error.to_string().contains("checksum"), "{error}");
        }
        assert_eq!(numbered.cache.usage().used_bytes, 0);
        numbered.disk.flip_bit(PATH, 2000, 1);
        numbered.reader(Admit::Keep, vec![vec![0]]).join().expect("no panic").expect("the page is whole again");
        numbered.check_rest();
    });
}

#[test]
fn three_pages_and_several_threads_make_progress() {
    check_schedules(|| {
        let numbered = Numbered::new(8, 3);
        let steps = |first: usize| (0..2).map(|i| (0..4).map(|page| (first + i + 2 * page) % 8).collect()).collect();
        let readers: Vec<_> =
            (0..4).map(|i| numbered.reader(if i == 3 { Admit::Pass } else { Admit::Keep }, steps(i))).collect();
        readers.into_iter().for_each(|reader| reader.join().expect("no panic").expect("no faults"));
        numbered.check_rest();
    });
}

#[test]
fn a_page_that_is_found_stays_whole_while_others_evict() {
    check_schedules(|| {
        let numbered = Numbered::new(4, 2);
        let readers = [
            numbered.reader(Admit::Keep, vec![vec![0]; 3]),
            numbered.reader(Admit::Keep, vec![vec![1], vec![2], vec![0], vec![3]]),
            numbered.reader(Admit::Pass, vec![vec![2, 0], vec![3]]),
        ];
        let cache = numbered.cache.clone();
        let (one, two) = (numbered.cost, 2 * numbered.cost);
        let budget = thread::spawn(move || [0, one, two].into_iter().for_each(|bytes| cache.set_budget(bytes)));
        readers.into_iter().for_each(|reader| reader.join().expect("no panic").expect("no faults"));
        budget.join().expect("no panic");
        numbered.check_rest();
    });
}

#[test]
fn a_file_that_dies_leaves_no_pages_whoever_reads_it() {
    check_schedules(|| {
        let numbered = Numbered::new(2, 4);
        let readers =
            [numbered.reader(Admit::Keep, vec![vec![0], vec![1]]), numbered.reader(Admit::Keep, vec![vec![0, 1]])];
        numbered.file.kill();
        readers.into_iter().for_each(|reader| reader.join().expect("no panic").expect("a dead file can be read"));
        assert_eq!(numbered.cache.usage().frames, 0);
        numbered.check_rest();
    });
}

#[test]
fn tasks_and_threads_that_have_no_room_make_progress() {
    let test = || {
        let flying = Flying::new(8, 3);
        let steps = |first: usize| (0..2).map(|i| (0..4).map(|page| (first + i + 2 * page) % 8).collect()).collect();
        let readers = [
            flying.task(Admit::Keep, steps(0)),
            flying.task(Admit::Pass, steps(1)),
            flying.numbered.reader(Admit::Keep, steps(2)),
            flying.task(Admit::Keep, vec![vec![1], vec![2]]),
        ];
        readers.into_iter().for_each(|reader| reader.join().expect("no panic").expect("no faults"));
        flying.reads.finish();
        flying.numbered.check_rest();
    };
    check_some_schedules(test, 1000);
}

#[test]
fn a_task_that_is_polled_once_stops_neither_tasks_nor_threads() {
    let test = || {
        let flying = Flying::new(8, 2);
        // One of these tasks has the room, one has the turn, and one queues.
        let parked = [[0, 1], [2, 3], [4, 5]].map(|numbers| flying.parked(&numbers));
        assert_eq!(flying.numbered.cache.usage().queued, 1);
        let readers = [
            flying.task(Admit::Keep, vec![vec![6, 7], vec![0, 2, 4]]),
            flying.task(Admit::Pass, vec![vec![1, 3, 5]]),
            flying.numbered.reader(Admit::Keep, vec![vec![7], vec![2, 6]]),
        ];
        readers.into_iter().for_each(|reader| reader.join().expect("no panic").expect("no faults"));
        drop(parked);
        flying.reads.finish();
        flying.numbered.check_rest();
    };
    check_some_schedules(test, 200);
}
