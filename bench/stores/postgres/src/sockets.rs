//! The connections of a session, and one wait for all of them. This module knows no statement and no answer.
//!
//! A request costs a send and a receive. Waiting for many connections is one call, which returns all connections
//! that are ready. A single connection needs no such call, because its receive waits. One thread uses it.

use crate::connection::Connection;
use crate::error::Error;
use crate::moved::Moved;
use harness::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// If a session has only one connection, a receive waits for at most this time before it checks the clock again. The
/// wait may be longer by the time between two ticks of the system's clock.
const RECEIVE_LIMIT: Duration = Duration::from_millis(10);
/// The most connections that one wait can report.
const EVENTS_MAX: usize = 256;
/// The events that we ask for on every socket: bytes have come, or the other end is closed. The kernel reports such
/// an event only once, when it happens. So the kernel need not look at the socket again.
const INTEREST: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);
/// The other end is closed.
const CLOSED: epoll::EventFlags = epoll::EventFlags::HUP.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ERR);

/// Connections, numbered from 0.
pub(crate) struct Sockets {
    all: Vec<Socket>,
    /// `None` with a single connection.
    epoll: Option<OwnedFd>,
    /// What the last wait reported.
    events: Vec<epoll::Event>,
    /// The event that is looked at.
    at: usize,
    /// Whether bytes have arrived on the only connection and were not reported yet.
    has_come: bool,
}

struct Socket {
    connection: Connection,
    /// Whether the socket was full before it took all bytes. If it was full, we have asked the system to report when
    /// the socket has room again.
    is_choked: bool,
}

impl Sockets {
    /// These connections.
    ///
    /// # Errors
    ///
    /// Returns an error if the system gives no means to wait for the connections.
    pub fn new(connections: Vec<Connection>) -> Result<Self, Failure> {
        assert!(!connections.is_empty(), "a session has a connection");
        let epoll = match connections.as_slice() {
            [only] => {
                only.wait_at_most(Some(RECEIVE_LIMIT))?;
                None
            }
            all => Some(wait_for_all(all).map_err(no_epoll)?),
        };
        let events = Vec::with_capacity(EVENTS_MAX.min(connections.len()));
        let all = connections.into_iter().map(|connection| Socket { connection, is_choked: false }).collect();
        Ok(Self { all, epoll, events, at: 0, has_come: false })
    }

    /// The connection of this number.
    #[inline]
    pub fn connection(&mut self, index: usize) -> &mut Connection {
        &mut self.all[index].connection
    }

    /// Sends what is in the outbox of a connection. If a socket has not taken all bytes, bytes that are sent later
    /// wait until the socket takes more.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is lost.
    #[inline]
    pub fn send(&mut self, index: usize) -> Result<(), Error> {
        if self.all[index].is_choked { Ok(()) } else { self.send_more(index) }
    }

    fn send_more(&mut self, index: usize) -> Result<(), Error> {
        let socket = &mut self.all[index];
        let is_choked = socket.connection.send()? == Moved::Part;
        if is_choked != socket.is_choked {
            socket.is_choked = is_choked;
            if let Some(epoll) = &self.epoll {
                let more = if is_choked { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
                epoll::modify(epoll, &socket.connection, epoll::EventData::new_u64(index as u64), INTEREST | more)
                    .map_err(|error| socket.connection.lost(&std::io::Error::from(error).to_string()))?;
            }
        }
        Ok(())
    }

    /// Waits until something comes, or for the time `left`; `None`: without an end. After this call,
    /// [`Sockets::next_arrival`] returns the connections on which something has come. [`Sockets::next_arrival`] must
    /// be called until it returns nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is lost.
    pub fn wait(&mut self, left: Option<Duration>) -> Result<(), Error> {
        let Some(epoll) = &self.epoll else { return self.wait_alone(left) };
        let failed = |errno: rustix::io::Errno| self.all[0].connection.lost(&std::io::Error::from(errno).to_string());
        // The system call that waits for many connections takes whole milliseconds. A more exact wait follows for
        // the rest of the time.
        let mut wait = left.map(|left| timespec(Duration::from_millis(left.as_millis() as u64)));
        if let Some(left) = left.filter(|left| *left < Duration::from_millis(1)) {
            let mut sockets = [PollFd::new(epoll, PollFlags::IN)];
            match rustix::event::poll(&mut sockets, Some(&timespec(left))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
            wait = Some(timespec(Duration::ZERO));
        }
        self.events.clear();
        self.at = 0;
        match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut self.events), wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Does the same as [`Sockets::wait`] for a single connection. It receives at once.
    fn wait_alone(&mut self, left: Option<Duration>) -> Result<(), Error> {
        let socket = &mut self.all[0];
        let may_wait = !socket.is_choked && left.is_none_or(|left| left >= 2 * RECEIVE_LIMIT);
        if !may_wait {
            let out = if socket.is_choked { PollFlags::OUT } else { PollFlags::empty() };
            let mut sockets = [PollFd::new(&socket.connection, PollFlags::IN | out)];
            match rustix::event::poll(&mut sockets, left.map(timespec).as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(socket.connection.lost(&std::io::Error::from(error).to_string())),
            }
            if socket.is_choked {
                self.send_more(0)?;
            }
        }
        self.has_come = self.all[0].connection.receive(may_wait)?.is_some();
        Ok(())
    }

    /// Returns a connection on which bytes have come. These bytes are now in the inbox of the connection.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is lost.
    #[inline]
    pub fn next_arrival(&mut self) -> Result<Option<usize>, Error> {
        if self.epoll.is_none() {
            return Ok(std::mem::take(&mut self.has_come).then_some(0));
        }
        while let Some(event) = self.events.get(self.at).copied() {
            let index = usize::try_from(event.data.u64()).expect("we numbered the connections");
            if self.all[index].is_choked {
                self.send_more(index)?;
            }
            let moved = self.all[index].connection.receive(false)?;
            // The next wait reports what comes later. The end of the connection is reported only once.
            let is_all = moved == Some(Moved::All) && !{ event.flags }.intersects(CLOSED);
            if moved.is_none() || is_all {
                self.at += 1;
            }
            if moved.is_some() {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

fn wait_for_all(connections: &[Connection]) -> rustix::io::Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (index, connection) in connections.iter().enumerate() {
        epoll::add(&epoll, connection, epoll::EventData::new_u64(index as u64), INTEREST)?;
    }
    Ok(epoll)
}

fn no_epoll(error: rustix::io::Errno) -> Failure {
    Failure::session("system", format!("cannot wait for several connections: {}", std::io::Error::from(error)))
}

fn timespec(duration: Duration) -> Timespec {
    duration.try_into().unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}
