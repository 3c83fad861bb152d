//! The connections of a session, and one wait for all of them. This module does not know what is sent or received.
//!
//! A request costs one send and one receive. For several connections, one epoll call waits for all and returns those
//! that are ready. A single connection needs no epoll: its receive itself waits. Only one thread uses a [`Sockets`].

use crate::postgres::connection::Connection;
use crate::postgres::error::Error;
use crate::postgres::moved::Moved;
use harness::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Limit of a waiting receive on a single connection, after which it checks the clock again. The system may exceed
/// it by a clock tick.
const RECEIVE_LIMIT: Duration = Duration::from_millis(10);
/// The most connections that one wait can report.
const EVENTS_MAX: usize = 256;
/// The events to report for each socket: bytes have arrived, or the other end was closed. They are edge-triggered,
/// so the kernel reports each once and need not poll the socket again.
const INTEREST: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);
/// The events of a closed connection.
const CLOSED: epoll::EventFlags = epoll::EventFlags::HUP.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ERR);

/// Connections, numbered from 0.
pub(crate) struct Sockets {
    all: Vec<Socket>,
    /// `None` with a single connection.
    epoll: Option<OwnedFd>,
    /// The events that the last wait reported.
    events: Vec<epoll::Event>,
    /// Index of the next event to handle.
    at: usize,
    /// With a single connection: whether bytes have arrived that [`Sockets::next_arrival`] has not reported yet.
    has_come: bool,
}

struct Socket {
    connection: Connection,
    /// Whether the socket is full and bytes are left to send. If so, waits also watch for room in it.
    is_choked: bool,
}

impl Sockets {
    /// Takes over the connections of a session, at least one.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot set up a wait for the connections.
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

    /// Connection number `index`.
    #[inline]
    pub fn connection(&mut self, index: usize) -> &mut Connection {
        &mut self.all[index].connection
    }

    /// Sends a connection's outbox. If the socket is full, the unsent bytes wait until it has room.
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

    /// Waits for arrivals, for at most `left` if it is given. Afterwards, call [`Sockets::next_arrival`] until it
    /// returns `None`.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is lost.
    pub fn wait(&mut self, left: Option<Duration>) -> Result<(), Error> {
        let Some(epoll) = &self.epoll else { return self.wait_alone(left) };
        let failed = |errno: rustix::io::Errno| self.all[0].connection.lost(&std::io::Error::from(errno).to_string());
        // An epoll wait takes whole milliseconds, so `left` is rounded down. A wait below a millisecond is a `poll`
        // instead.
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

    /// [`Sockets::wait`] for a single connection. It already receives.
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

    /// Returns a connection on which bytes have arrived. They are in its inbox now.
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
            // Later bytes cause a new event, but the end of the connection is reported only once.
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
