//! A session with many requests under way on one thread. Each request is a future over Larch's async reads, and the
//! session is the executor that polls these futures. A request allocates nothing here: buffers, futures and wakers
//! live in slots and are reused.
//!
//! A write still blocks the thread, as in a blocking session.

use crate::larch::broken;
use harness::request::{no_partitions, no_transactions};
use harness::{Clock, Failure, Fields, Flights, Outcome, Reply, Request, Served, Strings};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A session on `table` with at most `depth` requests under way. Rows have `of` fields.
pub fn session<'s>(table: &'s larch::Table, of: usize, depth: usize, clock: Clock) -> Box<dyn Flights + 's> {
    of_futures(depth, clock, move |job| work(table, of, job))
}

/// A request and its answer. A task moves into the future that carries it out, and the future returns it.
pub trait Task: Default {
    /// Copies a request into the task.
    fn take(&mut self, request: &Request<'_>);

    /// The result and rows of a finished task. May be called once for each request.
    fn answer(&mut self) -> (Result<Outcome, Failure>, &Reply);
}

/// A session with at most `depth` requests under way. `make` turns each request into a future.
pub fn of_futures<'s, T: Task + 's, F: Future<Output = Box<T>> + 's>(
    depth: usize,
    clock: Clock,
    make: impl Fn(Box<T>) -> F + 's,
) -> Box<dyn Flights + 's> {
    Box::new(Session::new(depth, clock, make))
}

/// A request for rows, and its answer.
#[derive(Default)]
struct Job {
    asked: Asked,
    key: Vec<u8>,
    keys: Strings,
    /// The value to write.
    value: Vec<u8>,
    record: Strings,
    scratch: Vec<u8>,
    reply: Reply,
    result: Option<Result<Outcome, Failure>>,
}

#[derive(Clone, Copy, Default)]
enum Asked {
    #[default]
    Nothing,
    Read(Fields),
    ReadMany(Fields),
    Scan(u64, Fields),
    Put,
    Update(u32),
    Delete,
    /// A kind of request that this store does not serve. The function makes the failure to return.
    Refused(fn() -> Failure),
}

impl Task for Job {
    fn answer(&mut self) -> (Result<Outcome, Failure>, &Reply) {
        (self.result.take().expect("a job that is done says what came of it"), &self.reply)
    }

    fn take(&mut self, request: &Request<'_>) {
        self.reply.clear();
        self.key.clear();
        self.value.clear();
        let key = match *request {
            Request::Read { key, fields } => {
                self.asked = Asked::Read(fields);
                key
            }
            Request::ReadMany { keys, fields } => {
                self.asked = Asked::ReadMany(fields);
                self.keys.clear();
                keys.iter().for_each(|key| self.keys.push(key));
                b""
            }
            Request::Scan { start, rows, fields } => {
                self.asked = Asked::Scan(rows, fields);
                start
            }
            Request::Insert { key, record } | Request::Replace { key, record } => {
                self.asked = Asked::Put;
                record.encode(&mut self.value);
                key
            }
            Request::Update { key, field, value } => {
                self.asked = Asked::Update(field);
                self.value.extend_from_slice(value);
                key
            }
            Request::Delete { key } => {
                self.asked = Asked::Delete;
                key
            }
            Request::Partition(_) => {
                self.asked = Asked::Refused(no_partitions);
                b""
            }
            Request::Transaction(_) => {
                self.asked = Asked::Refused(no_transactions);
                b""
            }
        };
        self.key.extend_from_slice(key);
    }
}

async fn work(table: &larch::Table, of: usize, mut job: Box<Job>) -> Box<Job> {
    job.result = Some(do_job(table, of, &mut job).await);
    job
}

async fn do_job(table: &larch::Table, of: usize, job: &mut Job) -> Result<Outcome, Failure> {
    let not_a_row = |error: harness::NotARow| Failure::request("not_a_row", error.to_string());
    match job.asked {
        Asked::Nothing => unreachable!("a job is taken before it is done"),
        Asked::Read(fields) => {
            let Some(value) = table.get_async(&job.key).await.map_err(broken)? else { return Ok(Outcome::NotFound) };
            job.reply.row(&job.key, &value, of, fields).map_err(not_a_row)?;
        }
        Asked::ReadMany(fields) => {
            let values = table.multi_get_async(job.keys.iter()).await.map_err(broken)?;
            for (key, value) in job.keys.iter().zip(&values) {
                if let Some(value) = value {
                    job.reply.row(key, value, of, fields).map_err(not_a_row)?;
                }
            }
        }
        Asked::Scan(rows, fields) => {
            let mut scan = table.scan_async(job.key.as_slice()..).limit(rows);
            while let Some(row) = scan.next().await {
                let (key, value) = row.map_err(broken)?;
                job.reply.row(&key, &value, of, fields).map_err(not_a_row)?;
            }
        }
        Asked::Put => table.insert(&job.key, &job.value).map_err(broken)?,
        Asked::Update(_) if of == 1 => table.insert(&job.key, &job.value).map_err(broken)?,
        Asked::Update(field) => {
            let Some(old) = table.get_async(&job.key).await.map_err(broken)? else { return Ok(Outcome::NotFound) };
            job.record.clear();
            job.record.decode(&old, of).map_err(not_a_row)?;
            job.record.replace(field as usize, &job.value);
            job.scratch.clear();
            job.record.encode(&mut job.scratch);
            table.insert(&job.key, &job.scratch).map_err(broken)?;
        }
        Asked::Delete => table.remove(&job.key).map_err(broken)?,
        Asked::Refused(failure) => return Err(failure()),
    }
    Ok(Outcome::Ok)
}

/// The woken slots, with a condition variable for the session's thread.
#[derive(Default)]
struct Woken {
    slots: Mutex<Vec<u32>>,
    some: Condvar,
}

impl Woken {
    /// Moves the woken slots into `slots`, which must be empty. Waits up to `limit` for the first one.
    fn take(&self, slots: &mut Vec<u32>, limit: Option<Duration>) {
        let mut woken = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        woken = match limit {
            Some(Duration::ZERO) => woken,
            Some(limit) => {
                let waited = self.some.wait_timeout_while(woken, limit, |woken| woken.is_empty());
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.some.wait_while(woken, |woken| woken.is_empty()).unwrap_or_else(PoisonError::into_inner),
        };
        std::mem::swap(&mut *woken, slots);
    }
}

/// Wakes a slot. `is_woken` keeps a slot that is woken several times from entering the list twice.
struct SlotWaker {
    slot: u32,
    is_woken: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, Ordering::AcqRel) {
            return;
        }
        self.woken.slots.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
        self.woken.some.notify_one();
    }
}

struct Slot<F, T> {
    /// The future under way. It is pinned, and its memory is reused for the slot's next request.
    future: Pin<Box<Option<F>>>,
    /// The task, while no future holds it.
    task: Option<Box<T>>,
    sent: u64,
    wakes: Arc<SlotWaker>,
    waker: Waker,
}

struct Session<F, T, M> {
    make: M,
    clock: Clock,
    slots: Vec<Slot<F, T>>,
    /// Slots whose requests were started but not polled yet.
    unsent: Vec<u32>,
    ready: Vec<u32>,
    woken: Arc<Woken>,
    under_way: usize,
}

impl<T: Task, F: Future<Output = Box<T>>, M: Fn(Box<T>) -> F> Session<F, T, M> {
    fn new(depth: usize, clock: Clock, make: M) -> Self {
        let woken = Arc::<Woken>::default();
        let slots = (0..depth as u32).map(|slot| {
            let wakes = Arc::new(SlotWaker { slot, is_woken: AtomicBool::new(false), woken: woken.clone() });
            let waker = Waker::from(wakes.clone());
            Slot { future: Box::pin(None), task: Some(Box::default()), sent: 0, wakes, waker }
        });
        let list = || Vec::with_capacity(depth);
        Self { make, clock, slots: slots.collect(), unsent: list(), ready: list(), woken, under_way: 0 }
    }

    /// Polls the future in `slot`, and returns whether it finished.
    fn poll(&mut self, slot: u32, served: &mut dyn FnMut(Served<'_>)) -> bool {
        let this = &mut self.slots[slot as usize];
        // A late wake may find the slot empty, or already in use for the next request.
        let Some(future) = this.future.as_mut().as_pin_mut() else { return false };
        let Poll::Ready(mut task) = future.poll(&mut Context::from_waker(&this.waker)) else { return false };
        this.future.set(None);
        self.under_way -= 1;
        let served_at = self.clock.nanos();
        let (result, reply) = task.answer();
        served(Served { slot, sent: this.sent, served: served_at, result, reply });
        this.task = Some(task);
        true
    }

    /// Waits up to `limit` for woken slots and polls them. Returns how many requests were answered.
    fn receive(&mut self, limit: Option<Duration>, served: &mut dyn FnMut(Served<'_>)) -> usize {
        let mut ready = std::mem::take(&mut self.ready);
        self.woken.take(&mut ready, limit);
        let mut count = 0;
        for slot in ready.drain(..) {
            self.slots[slot as usize].wakes.is_woken.store(false, Ordering::Release);
            count += usize::from(self.poll(slot, served));
        }
        self.ready = ready;
        count
    }
}

impl<T: Task, F: Future<Output = Box<T>>, M: Fn(Box<T>) -> F> Flights for Session<F, T, M> {
    fn depth(&self) -> usize {
        self.slots.len()
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        let this = &mut self.slots[slot as usize];
        let mut task = this.task.take().expect("nothing is under way in the slot");
        task.take(request);
        this.future.set(Some((self.make)(task)));
        self.unsent.push(slot);
        self.under_way += 1;
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        let mut unsent = std::mem::take(&mut self.unsent);
        let mut count = 0;
        for slot in unsent.drain(..) {
            self.slots[slot as usize].sent = self.clock.nanos();
            count += usize::from(self.poll(slot, served));
        }
        self.unsent = unsent;
        loop {
            let left = until.map(|until| Duration::from_nanos(until.saturating_sub(self.clock.nanos())));
            let has_nothing = self.under_way == 0 && until.is_none();
            let limit = if count > 0 || has_nothing { Some(Duration::ZERO) } else { left };
            count += self.receive(limit, served);
            if count > 0 || has_nothing || left == Some(Duration::ZERO) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
