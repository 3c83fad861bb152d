//! Keeps many requests under way on one session of the driver.
//!
//! Each request is a future. These futures and the driver's tasks run on the session's thread, while it waits.

use crate::cassandra::connection::Connection;
use crate::cassandra::error;
use crate::cassandra::statements::{Prepared, Statements};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use harness::partitions::COUNTERS;
use harness::request::no_transactions;
use harness::{
    Clock, Failure, Flights, Order, Outcome, PartitionRequest, PartitionRows, Reply, Request, Served, Strings,
};
use kv::{Content, Setup};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use scylla::client::session::Session as Driver;
use scylla::response::query_result::QueryRowsResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::Counter;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Runtime;

/// A session of one thread.
pub(crate) struct Session {
    // The first field, so that the futures are dropped before the executor that they run on.
    under_way: FuturesUnordered<Pin<Box<dyn Future<Output = Job>>>>,
    asks: Rc<Asks>,
    timer: Timer,
    depth: usize,
    jobs: Vec<Job>,
    clock: Clock,
    runtime: Runtime,
}

/// State shared by the requests of a session.
struct Asks {
    driver: Driver,
    prepared: Prepared,
    content: Content,
    /// Prepared batches by number of rows. A batch has one statement for each row.
    batches: RefCell<BTreeMap<usize, Rc<Batch>>>,
    clock: Clock,
}

/// A request and then its answer. Jobs are reused.
#[derive(Default)]
struct Job {
    slot: u32,
    asked: Asked,
    pk: i64,
    cks: Vec<i64>,
    values: Strings,
    reply: Reply,
    sent: u64,
    served: u64,
    result: Option<Result<Outcome, Failure>>,
}

/// What a job does with its partition.
#[derive(Clone, Copy, Debug, Default)]
enum Asked {
    /// Not a request on partitions.
    #[default]
    Refused,
    /// A transaction, which this store does not have.
    Transaction,
    Insert,
    Add([i64; COUNTERS]),
    From(i64, i32, Option<Order>),
    First(i32, Option<Order>),
    Between(i64, i64, Option<Order>),
    Of(Option<Order>),
    Scan(i64, i64),
}

impl Job {
    fn take(&mut self, slot: u32, request: &Request<'_>) {
        self.slot = slot;
        self.reply.clear();
        self.cks.clear();
        self.values.clear();
        let Request::Partition(request) = *request else {
            self.asked = match request {
                Request::Transaction(_) => Asked::Transaction,
                _ => Asked::Refused,
            };
            return;
        };
        // The protocol has only 31 bits for a limit.
        let limited = |limit: u64| i32::try_from(limit).unwrap_or(i32::MAX);
        self.asked = match request {
            PartitionRequest::Insert { pk, cks, values } => {
                self.pk = pk;
                self.cks.extend_from_slice(cks);
                values.iter().for_each(|value| self.values.push(value));
                Asked::Insert
            }
            PartitionRequest::Add { pk, ck, by } => {
                self.pk = pk;
                self.cks.push(ck);
                Asked::Add(by)
            }
            PartitionRequest::Scan { part, parts } => {
                let (first, last) = tokens(part, parts);
                Asked::Scan(first, last)
            }
            PartitionRequest::Read { pk, rows, order } => {
                self.pk = pk;
                match rows {
                    PartitionRows::From { ck, limit } => Asked::From(ck, limited(limit), order),
                    PartitionRows::First { limit } => Asked::First(limited(limit), order),
                    PartitionRows::Between { from, to } => Asked::Between(from, to, order),
                    PartitionRows::Of(cks) => {
                        self.cks.extend_from_slice(cks);
                        Asked::Of(order)
                    }
                }
            }
        };
    }
}

/// The first and the last token of a part. Tokens are all signed 64-bit numbers.
fn tokens(part: u32, parts: u32) -> (i64, i64) {
    let begin = |part: u32| ((u128::from(part) << 64) / u128::from(parts)) as i128 + i128::from(i64::MIN);
    (begin(part) as i64, (begin(part + 1) - 1) as i64)
}

impl Asks {
    async fn work(self: Rc<Self>, mut job: Job) -> Job {
        job.sent = self.clock.nanos();
        job.result = Some(self.work_on(&mut job).await);
        job.served = self.clock.nanos();
        job
    }

    async fn work_on(&self, job: &mut Job) -> Result<Outcome, Failure> {
        let Job { asked, pk, cks, values, reply, .. } = job;
        let pk = *pk;
        match *asked {
            Asked::Refused => return Err(Failure::request("partitions_only", "the store has rows in partitions only")),
            Asked::Transaction => return Err(no_transactions()),
            Asked::Insert => self.insert(pk, cks, values).await?,
            Asked::Add(by) => {
                let [a, b, c, d, e] = by.map(Counter);
                self.write((a, b, c, d, e, pk, cks[0])).await?;
            }
            Asked::From(ck, limit, order) => self.read(self.prepared.from.by(order), &(pk, ck, limit), reply).await?,
            Asked::First(limit, order) => self.read(self.prepared.first.by(order), &(pk, limit), reply).await?,
            Asked::Between(from, to, order) => {
                self.read(self.prepared.between.by(order), &(pk, from, to), reply).await?;
            }
            Asked::Of(order) => self.read(self.prepared.of.by(order), &(pk, &*cks), reply).await?,
            Asked::Scan(first, last) => {
                self.scan(&(first, last), reply).await?;
                return Ok(Outcome::Ok);
            }
        }
        let is_write = matches!(asked, Asked::Insert | Asked::Add(_));
        Ok(if is_write || reply.rows() > 0 { Outcome::Ok } else { Outcome::NotFound })
    }

    async fn insert(&self, pk: i64, cks: &[i64], values: &Strings) -> Result<(), Failure> {
        if self.content == Content::Counters {
            return Err(Failure::request("no_values", "the table has counters, and no values"));
        }
        let mut rows = cks.iter().zip(values.iter()).map(|(ck, value)| (pk, *ck, value));
        if let (1, Some(row)) = (cks.len(), rows.next()) {
            return self.write(row).await;
        }
        let batch = self.batch(cks.len());
        let rows: Vec<(i64, i64, &[u8])> = cks.iter().zip(values.iter()).map(|(ck, value)| (pk, *ck, value)).collect();
        self.driver.batch(&batch, &rows).await.map_err(|error| error::request(&error))?;
        Ok(())
    }

    /// A prepared batch of `rows` rows. It can be unlogged, because writes to one partition are atomic anyway.
    fn batch(&self, rows: usize) -> Rc<Batch> {
        let make = || {
            let mut batch = Batch::new(BatchType::Unlogged);
            (0..rows).for_each(|_| batch.append_statement(self.prepared.write.clone()));
            batch.set_is_idempotent(true);
            Rc::new(batch)
        };
        self.batches.borrow_mut().entry(rows).or_insert_with(make).clone()
    }

    async fn write(&self, values: impl SerializeRow) -> Result<(), Failure> {
        let done = self.driver.execute_unpaged(&self.prepared.write, values).await;
        done.map(|_| ()).map_err(|error| error::request(&error))
    }

    async fn read(
        &self,
        statement: &PreparedStatement,
        values: &impl SerializeRow,
        reply: &mut Reply,
    ) -> Result<(), Failure> {
        self.pages(statement, values, |rows| {
            match self.content {
                Content::Values => {
                    for row in rows.rows::<(i64, Option<&[u8]>)>().map_err(error::answer)? {
                        let (ck, value) = row.map_err(error::answer)?;
                        reply.partition_row(ck, value.unwrap_or_default());
                    }
                }
                Content::Counters => {
                    for row in rows.rows::<(i64, C, C, C, C, C)>().map_err(error::answer)? {
                        let (ck, a, b, c, d, e) = row.map_err(error::answer)?;
                        reply.partition_counters(ck, counters([a, b, c, d, e]));
                    }
                }
            }
            Ok(())
        })
        .await
    }

    async fn scan(&self, tokens: &(i64, i64), reply: &mut Reply) -> Result<(), Failure> {
        self.pages(&self.prepared.scan, tokens, |rows| {
            match self.content {
                Content::Values => {
                    for row in rows.rows::<(i64, i64, Option<&[u8]>)>().map_err(error::answer)? {
                        let (pk, ck, value) = row.map_err(error::answer)?;
                        reply.scanned_row(pk, ck, value.unwrap_or_default());
                    }
                }
                Content::Counters => {
                    for row in rows.rows::<(i64, i64, C, C, C, C, C)>().map_err(error::answer)? {
                        let (pk, ck, a, b, c, d, e) = row.map_err(error::answer)?;
                        let value = harness::partitions::counters_value(counters([a, b, c, d, e]));
                        reply.scanned_row(pk, ck, &value);
                    }
                }
            }
            Ok(())
        })
        .await
    }

    /// Runs a paged statement, and calls `take` with one page after another.
    async fn pages(
        &self,
        statement: &PreparedStatement,
        values: &impl SerializeRow,
        mut take: impl FnMut(QueryRowsResult) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut state = PagingState::start();
        loop {
            let asked = self.driver.execute_single_page(statement, values, state).await;
            let (page, rest): (_, PagingStateResponse) = asked.map_err(|error| error::request(&error))?;
            take(page.into_rows_result().map_err(error::answer)?)?;
            match rest.into_paging_control_flow() {
                ControlFlow::Break(()) => return Ok(()),
                ControlFlow::Continue(next) => state = next,
            }
        }
    }
}

/// A counter as it is read: it has no value until something is added to it.
type C = Option<Counter>;

fn counters(read: [C; COUNTERS]) -> [i64; COUNTERS] {
    read.map(|counter| counter.map_or(0, |counter| counter.0))
}

impl Session {
    /// Prepares the statements on `connection` and makes a session of it.
    pub(crate) fn new(
        connection: Connection,
        statements: &Statements,
        setup: &Setup,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let Connection { session: driver, runtime } = connection;
        let prepared =
            runtime.block_on(Prepared::new(&driver, statements, setup)).map_err(|error| error::prepare(&error))?;
        let timer = {
            let _entered = runtime.enter();
            Timer::new().map_err(|error| Failure::session("io", format!("cannot make a timer: {error}")))?
        };
        let asks = Asks { driver, prepared, content: statements.content(), batches: RefCell::default(), clock };
        let (under_way, asks, depth) = (FuturesUnordered::new(), Rc::new(asks), setup.requests_a_session());
        Ok(Self { under_way, asks, timer, depth, jobs: Vec::new(), clock, runtime })
    }
}

impl Flights for Session {
    fn depth(&self) -> usize {
        self.depth
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        let mut job = self.jobs.pop().unwrap_or_default();
        job.take(slot, request);
        self.under_way.push(Box::pin(self.asks.clone().work(job)));
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        let Self { under_way, timer, jobs, clock, runtime, .. } = self;
        let mut take = |mut job: Job| {
            let result = job.result.take().expect("a job that is done has a result");
            served(Served { slot: job.slot, sent: job.sent, served: job.served, result, reply: &job.reply });
            jobs.push(job);
        };
        if under_way.is_empty() && until.is_none() {
            return Ok(());
        }
        runtime.block_on(async {
            let mut count = 0;
            loop {
                // Collects the requests that are answered already, without waiting.
                poll_fn(|context| {
                    while let Poll::Ready(Some(job)) = under_way.poll_next_unpin(context) {
                        take(job);
                        count += 1;
                    }
                    Poll::Ready(())
                })
                .await;
                let left = until.map(|until| until.saturating_sub(clock.nanos()));
                if count > 0 || left == Some(0) {
                    return Ok(());
                }
                if let (Some(until), Some(left)) = (until, left) {
                    timer.set(until, left)?;
                }
                // Waits for one more answer, or for the timer.
                poll_fn(|context| {
                    if let Poll::Ready(Some(job)) = under_way.poll_next_unpin(context) {
                        take(job);
                        count += 1;
                        return Poll::Ready(Ok(()));
                    }
                    if until.is_some() { timer.poll(context) } else { Poll::Pending }
                })
                .await?;
            }
        })
    }
}

/// A timer of the system (timerfd), since the executor's own timers are exact only to a millisecond.
struct Timer {
    /// The timer, wrapped as the receiving end of a pipe: it becomes readable when it goes off.
    timer: Receiver,
    /// When the timer will go off, by the session's clock. It may go off before a wait is over, because setting it
    /// anew for each wait would cost a system call.
    set: Option<u64>,
}

impl Timer {
    fn new() -> std::io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer: Receiver::from_owned_fd_unchecked(timer)?, set: None })
    }

    /// Makes sure that the timer goes off by `until`, which is `left` nanoseconds from now.
    fn set(&mut self, until: u64, left: u64) -> Result<(), Failure> {
        if self.set.is_some_and(|set| set <= until) {
            return Ok(());
        }
        let value = Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).map_err(broken)?;
        self.set = Some(until);
        Ok(())
    }

    /// Ready when the timer has gone off.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        // A read returns eight bytes: how often the timer went off.
        let mut times = [0; 16];
        let Poll::Ready(read) = Pin::new(&mut self.timer).poll_read(context, &mut ReadBuf::new(&mut times)) else {
            return Poll::Pending;
        };
        self.set = None;
        Poll::Ready(read.map_err(broken))
    }
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::session("io", format!("cannot wait for a time: {error}"))
}
