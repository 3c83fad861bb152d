//! Reads through `io_uring`: one thread, the reactor, submits reads to the kernel and waits there until some of them
//! have ended. This module does not know what is read.
//!
//! ```text
//! callers    submit ──► queue ──► (bell, if the reactor sleeps)
//! reactor    ┌─► begin: queue ──► reads under way, submission queue
//!            │   enter the kernel: submit all, sleep until an end or the bell
//!            │   reap: completion queue ──► what ended leaves the reads under way and the queue's count
//!            └── tell, on this thread
//! hands      what the kernel would not do as asked: refused, cut short, not whole blocks; everything once the ring is broken
//! ```
//!
//! Once the ring cannot be entered any more, it is broken for good. From then on other threads, the *hands*, make all
//! reads, and also repeat those that were under way. These get new buffers, because the kernel may still write to the
//! old ones.
//!
//! Only the reactor touches the ring, so the ring needs no lock, and the kernel may defer work on completions until
//! the reactor asks for them. The limits of the queue also bound the ring, so neither of the ring's two queues can
//! overflow.
//!
//! The source of a read stays open while the kernel makes the read. If a source can be opened only after another one
//! is closed, the reactor sets the read aside, begins no other read, and tries again after the next end. It must not
//! simply wait, because reads under way end only when the reactor takes their results from the ring. It does wait if
//! nothing is in the kernel. Reads for the hands have their sources closed, and the hands open them again. So no
//! thread waits for a source that another waiting thread keeps open.
//!
//! The unsafe part: the kernel writes to memory of which it knows only the address. A [`KernelRead`] owns the
//! memory and the file of a read, and stays in its slot of [`KernelReads`] until the kernel has reported the end of
//! the read.

use super::closed::closed;
use super::hands::{Hands, HandsWork};
use crate::io::Usage;
use crate::io::queue::{Begun, Elsewhere, Queue, QueueLimits};
use crate::io::run::{Lengths, ReadRun, RunOutcome, RunPart, is_whole, join, scratch};
use crate::job::Duty;
use crate::sync::{Arc, Mutex};
use crate::{Buffer, OpenSource, ReadRequest, Reads};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

/// The `user_data` of the bell's events. That of a read is its slot.
const BELL: u64 = u64::MAX;

/// Reads through a ring.
pub(super) struct Ring {
    shared: Arc<RingShared>,
    hands: Arc<Hands<RingShared>>,
    /// Counts the reads that callers make themselves.
    elsewhere: Arc<Elsewhere>,
    /// Taken when the ring is dropped.
    reactor: Option<JoinHandle<()>>,
}

struct RingShared {
    state: Mutex<RingState>,
    /// Wakes the reactor.
    bell: OwnedFd,
}

struct RingState {
    queue: Queue<ReadRun>,
    /// Whether the reactor sleeps, or is about to, and must be woken to see a change.
    asleep: bool,
    closed: bool,
    /// Why the ring broke. From then on the hands make all reads.
    broken: Option<String>,
}

/// Submits the entries in the submission queue, and waits for the given number of completions.
type Enter = Box<dyn FnMut(&IoUring, usize) -> io::Result<usize> + Send>;

impl Ring {
    /// Starts the reactor. Fails if the system provides no suitable ring. `by_hands` are the limits once the ring is
    /// broken, and their `depth` is the number of hands.
    pub(super) fn new(limits: QueueLimits, by_hands: QueueLimits) -> io::Result<Ring> {
        Ring::entering(limits, by_hands, Box::new(|ring, ends| ring.submit_and_wait(ends)))
    }

    /// As [`Ring::new`], with another function to enter the ring, for tests.
    pub(super) fn entering(limits: QueueLimits, by_hands: QueueLimits, enter: Enter) -> io::Result<Ring> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
        let queue = Queue::new(limits);
        let elsewhere = queue.elsewhere();
        let state = RingState { queue, asleep: false, closed: false, broken: None };
        let shared = Arc::new(RingShared { state: Mutex::new(state), bell });
        let hands = Arc::new(Hands::new(shared.clone(), by_hands.depth));
        let (send, receive) = sync_channel(1);
        let (its_shared, its_hands) = (shared.clone(), hands.clone());
        let run = move || {
            let _duty = Duty::take();
            // With a single issuer, the ring belongs to the thread that makes it.
            match set_up(limits.depth) {
                Ok(ring) => {
                    send.send(Ok(())).expect("it is waited for");
                    let under_way = KernelReads::new(limits.depth);
                    let scratch = mem::ManuallyDrop::new(scratch());
                    let (shared, hands, ends) = (its_shared, its_hands, Vec::with_capacity(limits.depth));
                    let (late, left) = (None, Vec::new());
                    Reactor {
                        under_way,
                        ring,
                        enter,
                        scratch,
                        shared,
                        hands,
                        by_hands,
                        ends,
                        late,
                        left,
                        broken: None,
                    }
                    .run();
                }
                Err(error) => send.send(Err(error)).expect("it is waited for"),
            }
        };
        let reactor = thread::Builder::new().name("larch-reads".to_owned()).spawn(run)?;
        receive.recv().expect("the thread answers before it ends")?;
        Ok(Ring { shared, hands, elsewhere, reactor: Some(reactor) })
    }
}

/// A ring for `depth` reads. Fails if the ring lacks a needed operation.
fn set_up(depth: usize) -> io::Result<IoUring> {
    // One more entry is for the bell, which wakes the reactor.
    let entries = u32::try_from(depth + 1).expect("depths are small").next_power_of_two();
    // `defer_taskrun` needs kernel 6.1, `coop_taskrun` kernel 5.19. Both let the kernel leave work to the reactor,
    // the first more than the second.
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries)
        .or_else(|_| IoUring::builder().setup_coop_taskrun().build(entries))
        .or_else(|_| IoUring::new(entries))?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let wanted = [opcode::Read::CODE, opcode::Readv::CODE, opcode::PollAdd::CODE];
    if !wanted.into_iter().all(|code| probe.is_supported(code)) || !ring.params().is_feature_nodrop() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this system's is too old"));
    }
    Ok(ring)
}

impl Reads for Ring {
    fn submit(&self, reads: Vec<ReadRequest>) {
        let runs = join(reads);
        let mut state = self.shared.state.lock();
        for run in runs {
            let urgency = run.urgency();
            state.queue.push(run, urgency);
        }
        let (wakes, begun) = (state.wakes(), state.begin_by_hands());
        drop(state);
        self.shared.ring_bell_if(wakes);
        self.hands.give(begun);
    }

    fn raise(&self, ticket: u64) {
        let mut state = self.shared.state.lock();
        let wakes = state.queue.raise(ticket) && state.wakes();
        let begun = state.begin_by_hands();
        drop(state);
        self.shared.ring_bell_if(wakes);
        self.hands.give(begun);
    }

    fn make(&self, read: ReadRequest) {
        self.elsewhere.make(read);
    }

    fn name(&self) -> &'static str {
        if self.shared.state.lock().broken.is_none() { "io_uring" } else { "threads" }
    }

    fn usage(&self) -> Usage {
        self.shared.state.lock().queue.usage()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        let waiting = state.queue.clear();
        let wakes = state.wakes();
        drop(state);
        self.shared.ring_bell_if(wakes);
        for run in waiting {
            run.fail(closed);
        }
        let reactor = self.reactor.take().expect("a ring is dropped once");
        // If the callback of a read drops the ring, this thread may be the reactor, which cannot wait for itself. It
        // then ends once the reads under way have ended.
        if reactor.thread().id() != thread::current().id() {
            // A panic of the reactor was reported when it happened, and the hands make its reads.
            reactor.join().unwrap_or_default();
        }
        self.hands.close();
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = self.shared.state.lock().broken.clone();
        f.debug_struct("Ring")
            .field("hands", &self.hands)
            .field("usage", &self.usage())
            .field("broken", &broken)
            .finish()
    }
}

impl RingState {
    /// Whether the caller has to ring the bell for the reactor to see a change. Returns true only once for each
    /// sleep.
    fn wakes(&mut self) -> bool {
        let wakes = self.asleep && (self.closed || self.queue.has_next());
        self.asleep &= !wakes;
        wakes
    }

    /// The runs that may begin, if the ring is broken and the hands have to make them.
    fn begin_by_hands(&mut self) -> Vec<Begun<ReadRun>> {
        if self.broken.is_none() { Vec::new() } else { std::iter::from_fn(|| self.queue.next()).collect() }
    }
}

impl RingShared {
    fn ring_bell_if(&self, wakes: bool) {
        if wakes {
            let rung = rustix::io::retry_on_intr(|| rustix::io::write(&self.bell, &1u64.to_ne_bytes()));
            rung.expect("a counter of 64 bits does not run over");
        }
    }
}

/// The hands make the runs that the kernel could not make as asked, read by read. Once the ring is broken, they make
/// all runs.
impl HandsWork for RingShared {
    type Job = Begun<ReadRun>;

    fn work(&self, mut begun: Begun<ReadRun>) -> Vec<Begun<ReadRun>> {
        let is_broken = self.state.lock().broken.is_some();
        let outcome = if is_broken { begun.item.read() } else { begun.item.read_each() };
        let mut state = self.state.lock();
        let run = state.queue.over(begun);
        let (wakes, next) = (state.wakes(), state.begin_by_hands());
        drop(state);
        self.ring_bell_if(wakes);
        run.tell(outcome);
        next
    }
}

/// The state of the thread that submits reads to the kernel and waits for their ends.
struct Reactor {
    under_way: KernelReads,
    ring: IoUring,
    enter: Enter,
    /// Memory for the gaps between joined reads, shared by all runs and never read.
    scratch: mem::ManuallyDrop<Buffer>,
    shared: Arc<RingShared>,
    hands: Arc<Hands<RingShared>>,
    /// The limits once the hands make all reads.
    by_hands: QueueLimits,
    ends: Vec<(usize, i32)>,
    /// A begun run whose source could not be opened yet.
    late: Option<Begun<ReadRun>>,
    /// Runs for the hands that the reactor has to make itself, because no thread can be started.
    left: Vec<Begun<ReadRun>>,
    /// Why the ring broke.
    broken: Option<String>,
}

impl Reactor {
    /// The loop of the reactor. It ends when the ring is closed and all reads have ended, or when the ring breaks.
    fn run(mut self) {
        self.hear_bell();
        while self.broken.is_none() && self.begin() {
            if self.broken.is_none() {
                self.enter(1);
            }
            // Results are taken even from a broken ring, so that reads that have ended are not repeated.
            self.reap();
        }
        if self.broken.is_some() {
            return;
        }
        assert!(self.under_way.is_empty(), "what is under way is counted");
        // SAFETY: nothing is under way, so the kernel has no address any more. Nothing uses the scratch after this.
        unsafe { mem::ManuallyDrop::drop(&mut self.scratch) }
    }

    /// Submits the entries in the submission queue, and waits for `ends` completions. Returns false if the ring is
    /// broken.
    fn enter(&mut self, ends: usize) -> bool {
        if let Err(error) = (self.enter)(&self.ring, ends) {
            match Errno::from_io_error(&error) {
                Some(Errno::INTR) => {}
                // The kernel lacks memory or room in a queue, which it may get back when results are taken.
                Some(Errno::AGAIN | Errno::BUSY | Errno::NOMEM) => thread::yield_now(),
                _ => self.broken = Some(error.to_string()),
            }
        }
        self.broken.is_none()
    }

    /// Makes the kernel report every ring of the bell, whose counter is never read. Rings before this call may go
    /// unreported. So either the bell is not rung before this call, or the queue is looked at after it.
    fn hear_bell(&mut self) {
        let poll =
            opcode::PollAdd::new(types::Fd(self.shared.bell.as_raw_fd()), rustix::event::PollFlags::IN.bits() as u32);
        let entry = poll.multi(true).build().user_data(BELL);
        // SAFETY: the entry names no memory. The bell is not closed before the io_uring is, because the reactor
        // keeps `shared` alive.
        unsafe { self.push(&entry) }
        while !self.ring.submission().is_empty() && self.enter(0) {}
    }

    /// Begins all runs that may begin. Returns false if the ring is closed and nothing is under way.
    fn begin(&mut self) -> bool {
        loop {
            // The reactor makes these runs itself once nothing is under way, and begins nothing else before.
            if !self.left.is_empty() {
                if !self.under_way.is_empty() {
                    return true;
                }
                self.hands.work_here(mem::take(&mut self.left));
            }
            let begun = match self.late.take() {
                Some(late) => late,
                None => {
                    let mut state = self.shared.state.lock();
                    match state.queue.next() {
                        Some(begun) => begun,
                        None => {
                            state.asleep = true;
                            return !state.closed || !state.queue.is_quiet();
                        }
                    }
                }
            };
            if !is_whole(&begun.item.first) {
                self.give_away(vec![begun]);
                continue;
            }
            // All reads of a run have one source. Joined reads begin at a block, as the first one does.
            let opened = match begun.item.try_open() {
                Ok(None) if self.under_way.is_empty() => begun.item.open(),
                Ok(None) => {
                    self.late = Some(begun);
                    return true;
                }
                Ok(Some(open)) => Ok(open),
                Err(error) => Err(error),
            };
            // If the source cannot be opened or has no descriptor, the hands make the run.
            let descriptor = |open: &OpenSource| open.file().descriptor().map(|descriptor| descriptor.as_raw_fd());
            let Some((open, descriptor)) = opened.ok().and_then(|open| descriptor(&open).map(|of_it| (open, of_it)))
            else {
                self.give_away(vec![begun]);
                continue;
            };
            let (slot, entry) = self.under_way.add((begun, open), types::Fd(descriptor), &mut self.scratch);
            // SAFETY: the entry names memory of the read in `slot`, the descriptor of its file, and the scratch. The
            // read stays in its slot until its result is taken from the ring, or its memory is leaked. The scratch
            // stays until nothing is under way, or is leaked.
            unsafe { self.push(&entry.user_data(slot as u64)) }
            if self.broken.is_some() {
                return true;
            }
        }
    }

    /// Gives runs to the hands, which may wait for a source. The reactor must not, while it has other sources open.
    fn give_away(&mut self, all: Vec<Begun<ReadRun>>) {
        let left = self.hands.give_away(all);
        self.left.extend(left);
    }

    /// Puts an entry into the submission queue.
    ///
    /// # Safety
    ///
    /// The memory and the files that the entry names stay valid until the result of the entry is taken from the ring,
    /// or forever.
    unsafe fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: promised by the caller.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The submission queue has room for all entries that may be under way. It is full only if the kernel left
            // entries in it at the last call.
            if !self.enter(0) {
                return;
            }
        }
    }

    /// Takes the results from the ring, and calls the callbacks of the reads.
    fn reap(&mut self) {
        let mut bell_is_heard = true;
        for end in self.ring.completion() {
            if end.user_data() == BELL {
                bell_is_heard &= cqueue::more(end.flags());
            } else {
                let slot = usize::try_from(end.user_data()).expect("slots are named by their index");
                self.ends.push((slot, end.result()));
            }
        }
        if !bell_is_heard {
            self.hear_bell();
        }
        if self.ends.is_empty() {
            return;
        }
        let mut well = Vec::with_capacity(self.ends.len());
        let mut odd = Vec::new();
        for (slot, result) in self.ends.drain(..) {
            match self.under_way.land(slot, result) {
                Landed::Well(begun) => well.push(begun),
                Landed::Badly(begun) => odd.push(begun),
            }
        }
        let mut state = self.shared.state.lock();
        state.asleep = false;
        let over: Vec<ReadRun> = well.into_iter().map(|begun| state.queue.over(begun)).collect();
        drop(state);
        self.give_away(odd);
        for run in over {
            run.tell(RunOutcome::Filled);
        }
    }
}

impl Drop for Reactor {
    /// Gives all remaining reads to the hands. After a regular end, none remain.
    fn drop(&mut self) {
        let why = self.broken.take().unwrap_or_else(|| "its thread has panicked".to_owned());
        // These reads count as under way until the hands have made them.
        let mut left = self.under_way.abandon();
        left.extend(self.late.take());
        left.append(&mut self.left);
        let mut state = self.shared.state.lock();
        state.broken = Some(why);
        state.asleep = false;
        state.queue.set_limits(self.by_hands);
        left.extend(state.begin_by_hands());
        drop(state);
        self.hands.give(left);
    }
}

/// Memory for the kernel to read into (`struct iovec`).
#[repr(C)]
struct Vector {
    start: *mut u8,
    bytes: usize,
}

/// A run in the kernel, with all memory whose addresses the kernel has.
struct KernelRead {
    begun: Begun<ReadRun>,
    /// The open source of the reads.
    open: OpenSource,
    lengths: Lengths,
    /// The memory of a run of several reads. The kernel reads this list when it takes the entry.
    vectors: Vec<Vector>,
}

/// How the kernel ended a read.
enum Landed {
    /// All buffers are filled.
    Well(Begun<ReadRun>),
    /// The read failed or was short, so the hands must make the reads of the run one by one.
    Badly(Begun<ReadRun>),
}

/// The reads in the kernel, by slot.
struct KernelReads {
    slots: Vec<Option<KernelRead>>,
    free: Vec<usize>,
}

impl KernelReads {
    fn new(depth: usize) -> KernelReads {
        KernelReads { slots: (0..depth).map(|_| None).collect(), free: (0..depth).rev().collect() }
    }

    fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Puts a run into a slot, and returns the slot and the entry for the kernel. Gaps are read into `scratch`.
    fn add(
        &mut self,
        (mut begun, open): (Begun<ReadRun>, OpenSource),
        descriptor: types::Fd,
        scratch: &mut Buffer,
    ) -> (usize, squeue::Entry) {
        let slot = self.free.pop().expect("the queue begins no more than the depth");
        let lengths = begun.item.extend();
        let mut vectors = Vec::new();
        let run = &mut begun.item;
        let offset = run.first.offset;
        let entry = if run.is_single() {
            let buffer = &mut run.first.buffer;
            let bytes = u32::try_from(buffer.len()).expect("a read is smaller than 4 GiB");
            opcode::Read::new(descriptor, buffer.as_mut_ptr(), bytes).offset(offset).build()
        } else {
            vectors = run.parts().into_iter().map(|part| vector(run, part, scratch)).collect();
            let count = u32::try_from(vectors.len()).expect("a run is short");
            opcode::Readv::new(descriptor, vectors.as_ptr().cast(), count).offset(offset).build()
        };
        self.slots[slot] = Some(KernelRead { begun, open, lengths, vectors });
        (slot, entry)
    }

    /// Takes a run that has ended out of its slot, and closes its source. `result` is the number of bytes read, or a
    /// negative error number.
    fn land(&mut self, slot: usize, result: i32) -> Landed {
        let KernelRead { mut begun, open, lengths, vectors } = self.slots[slot].take().expect("a read ends once");
        self.free.push(slot);
        drop((open, vectors));
        // The file may end within the last block. A single read is complete if it got all bytes that were asked for.
        let read = usize::try_from(result).unwrap_or(0);
        let run = &mut begun.item;
        let filled = if run.is_single() { read >= lengths.of_first() } else { read == run.bytes() };
        if filled {
            run.copy_shared();
        }
        run.shrink(&lengths);
        if filled { Landed::Well(begun) } else { Landed::Badly(begun) }
    }

    /// Takes out all runs, with new buffers, and closes their sources. The old buffers are leaked to the kernel.
    /// Closing the sources does no harm: the ring is not entered any more, and reads that the kernel has taken do not
    /// need their descriptors.
    fn abandon(&mut self) -> Vec<Begun<ReadRun>> {
        let mut all = Vec::new();
        for KernelRead { mut begun, open, lengths, vectors } in self.slots.iter_mut().filter_map(Option::take) {
            begun.item.renew_buffers(&lengths);
            mem::forget(vectors);
            drop(open);
            all.push(begun);
        }
        all
    }
}

/// The memory for a part of a run.
fn vector(run: &mut ReadRun, part: RunPart, scratch: &mut Buffer) -> Vector {
    let slice = match part {
        RunPart::Gap(bytes) => &mut scratch[..bytes],
        RunPart::Read { index, from } => &mut run.get_mut(index).buffer[from..],
    };
    Vector { start: slice.as_mut_ptr(), bytes: slice.len() }
}
