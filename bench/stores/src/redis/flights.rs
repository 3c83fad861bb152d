//! A session with many requests under way on one connection. Requests that are started together go out together. A
//! request may take several rounds: what its answers say decides which commands it sends next.

use super::connection::{Connection, refused};
use super::wire::{Answer, Commands};
use harness::{Clock, Failure, Flights, Outcome, Reply, Request, Served};
use std::collections::VecDeque;
use std::time::Duration;

/// Turns requests into commands, and answers into rows.
pub trait Requests {
    /// What is known of a request under way.
    type Task: Default;

    /// Puts the first commands of a request, at least one.
    ///
    /// # Errors
    ///
    /// Fails if the store does not take such requests. Then nothing was put.
    fn begin(&self, request: &Request<'_>, task: &mut Self::Task, out: &mut Commands) -> Result<(), Failure>;

    /// Takes the answer to the next command. With the answer to the last command of a round, it may put the commands
    /// of another round. If it does not, the request is over, and has this outcome.
    ///
    /// # Errors
    ///
    /// Fails if the request has failed. Then nothing was put.
    fn answer(
        &self,
        task: &mut Self::Task,
        answer: Answer<'_>,
        reply: &mut Reply,
        out: &mut Commands,
    ) -> Result<Outcome, Failure>;
}

/// A session.
pub struct Session<'s, R: Requests> {
    requests: &'s R,
    connection: Connection,
    clock: Clock,
    slots: Vec<Slot<R::Task>>,
    /// The rounds that the server has not answered yet, in their order.
    rounds: VecDeque<Round>,
    /// Slots whose first commands were not sent yet.
    unsent: Vec<u32>,
    under_way: usize,
    /// The failure that ended the session, if there was one.
    lost: Option<Failure>,
}

/// A request under way.
struct Slot<T> {
    sent: u64,
    task: T,
    reply: Reply,
    failure: Option<Failure>,
}

/// Commands of a request that were sent together.
struct Round {
    slot: u32,
    /// How many of them were not answered yet.
    left: u32,
}

impl<'s, R: Requests> Session<'s, R> {
    /// A session that has at most `depth` requests under way.
    pub fn new(requests: &'s R, connection: Connection, depth: usize, clock: Clock) -> Self {
        let slot = || Slot { sent: 0, task: R::Task::default(), reply: Reply::new(), failure: None };
        let slots = (0..depth.max(1)).map(|_| slot()).collect();
        let (rounds, unsent) = (VecDeque::new(), Vec::new());
        Self { requests, connection, clock, slots, rounds, unsent, under_way: 0, lost: None }
    }

    fn send(&mut self) -> Result<(), Failure> {
        if self.connection.outbox.bytes.is_empty() {
            return Ok(());
        }
        let now = self.clock.nanos();
        for slot in self.unsent.drain(..) {
            self.slots[slot as usize].sent = now;
        }
        self.connection.send()
    }

    /// Takes the next answer that has arrived. Returns whether there was one.
    fn take(&mut self, now: u64, served: &mut dyn FnMut(Served<'_>)) -> Result<bool, Failure> {
        let Self { requests, connection, slots, rounds, under_way, .. } = self;
        let taken = connection.next(|answer, out| {
            let round = rounds.front_mut().ok_or_else(|| super::connection::unexpected(answer))?;
            round.left -= 1;
            let (number, is_last) = (round.slot, round.left == 0);
            let Slot { sent, task, reply, failure } = &mut slots[number as usize];
            let mut outcome = Outcome::Ok;
            if failure.is_none() {
                let took = match answer {
                    Answer::Error(text) => Err(refused(text)),
                    answer => requests.answer(task, answer, reply, out),
                };
                match took {
                    Ok(answered) => outcome = answered,
                    Err(why) => *failure = Some(why),
                }
            }
            if !is_last {
                return Ok(());
            }
            rounds.pop_front();
            match out.take_count() {
                0 => {
                    *under_way -= 1;
                    let result = failure.take().map_or(Ok(outcome), Err);
                    served(Served { slot: number, sent: *sent, served: now, result, reply });
                }
                left => rounds.push_back(Round { slot: number, left }),
            }
            Ok(())
        })?;
        Ok(taken.is_some())
    }

    fn work(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        let before = self.under_way;
        loop {
            self.send()?;
            if before == 0 && until.is_none() {
                return Ok(());
            }
            let left = until.map(|until| Duration::from_nanos(until.saturating_sub(self.clock.nanos())));
            if self.connection.receive(left)? {
                let now = self.clock.nanos();
                while self.take(now, served)? {}
            }
            if self.under_way < before || left == Some(Duration::ZERO) {
                // The next rounds of other requests need not wait for the next call.
                return self.send();
            }
        }
    }
}

impl<R: Requests> Flights for Session<'_, R> {
    fn depth(&self) -> usize {
        self.slots.len()
    }

    fn start(&mut self, slot: u32, request: &Request<'_>) -> Result<(), Failure> {
        if let Some(failure) = &self.lost {
            return Err(failure.clone());
        }
        let this = &mut self.slots[slot as usize];
        this.reply.clear();
        self.requests.begin(request, &mut this.task, &mut self.connection.outbox)?;
        self.rounds.push_back(Round { slot, left: self.connection.outbox.take_count() });
        self.unsent.push(slot);
        self.under_way += 1;
        Ok(())
    }

    fn wait(&mut self, until: Option<u64>, served: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        if let Some(failure) = &self.lost {
            return Err(failure.clone());
        }
        self.work(until, served).inspect_err(|failure| self.lost = Some(failure.clone()))
    }
}
