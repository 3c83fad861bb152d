//! One session with a server: its socket, its start-up, and statements that wait for their answers. One thread at a
//! time uses it. `flights` uses the same socket and buffers, but keeps many requests under way.

use crate::postgres::address::{Address, Binding, Mode, Place};
use crate::postgres::error::{Error, ServerError, SqlState};
use crate::postgres::moved::Moved;
use crate::postgres::tls::{self, Broken, Tls};
use crate::postgres::wire::{self, Frame, Inbox, Malformed, Values};
use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};
use postgres_protocol::message::{backend, frontend};
use rustix::net::{RecvFlags, SendFlags};
use std::collections::BTreeMap;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// A session with a server.
pub struct Connection {
    socket: OwnedFd,
    /// The TLS session, if the connection is encrypted.
    tls: Option<Box<Tls>>,
    inbox: Inbox,
    /// Bytes to send. The buffer is reused.
    pub(crate) outbox: Vec<u8>,
    /// The server's address, for error messages.
    place: String,
    /// What the server reported about itself: `server_version`, …
    parameters: BTreeMap<String, String>,
}

/// Tag of NegotiateProtocolVersion, a start-up message that `postgres-protocol` does not know.
const NEGOTIATE_PROTOCOL_VERSION_TAG: u8 = b'v';

/// A row of a statement that was sent as text. `None` is NULL.
pub type Row = Vec<Option<String>>;

impl Connection {
    /// Connects and begins a session.
    ///
    /// # Errors
    ///
    /// Returns an error if the session cannot begin: no server, a wrong password, no such database, …
    pub fn open(address: &Address) -> Result<Self, Error> {
        let (first, second) = match (&address.place, address.encryption.mode) {
            (Place::Unix { .. }, _) | (_, Mode::Disable) => (Cover::None, None),
            (_, Mode::Allow) => (Cover::None, Some(Cover::Tls)),
            (_, Mode::Prefer) => (Cover::TlsIfOffered, Some(Cover::None)),
            (_, Mode::Require | Mode::VerifyCa | Mode::VerifyFull) => (Cover::Tls, None),
        };
        match (Self::open_under(address, first), second) {
            (Err(error), Some(second)) if may_be_covered_otherwise(&error) => Self::open_under(address, second),
            (done, _) => done,
        }
    }

    fn open_under(address: &Address, cover: Cover) -> Result<Self, Error> {
        let place = address.place.to_string();
        let timeout = Duration::from_secs(address.connect_timeout_secs);
        let socket = connect(&address.place, timeout).map_err(|source| {
            let advice = connect_advice(&source, &address.place);
            Error::Connect { place: place.clone(), source, advice }
        })?;
        let mut connection =
            Self { socket, tls: None, inbox: Inbox::default(), outbox: Vec::new(), place, parameters: BTreeMap::new() };
        connection.wait_at_most(Some(timeout))?;
        if cover != Cover::None {
            connection.cover(address, cover)?;
        }
        connection.begin(address)?;
        connection.wait_at_most(None)?;
        Ok(connection)
    }

    /// Asks the server for TLS, and starts TLS if the server agrees.
    fn cover(&mut self, address: &Address, cover: Cover) -> Result<(), Error> {
        let place = self.place.clone();
        let failed = |why: String| Error::Tls { place: place.clone(), why };
        self.outbox.extend_from_slice(&tls::REQUEST);
        self.flush()?;
        // Reads exactly one byte: whatever follows it in clear text must not reach the buffers as if it had been
        // encrypted.
        let mut answer = [0];
        let received = loop {
            match rustix::net::recv(&self.socket, &mut answer, RecvFlags::empty()) {
                Ok((received, _)) => break received,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Err(self.lost("it does not answer in time")),
                Err(error) => return Err(self.lost(&io::Error::from(error).to_string())),
            }
        };
        match (received, answer[0]) {
            (0, _) => Err(self.lost("the server closed it")),
            (_, b'S') => {
                let tls = Tls::begin(&self.socket, &address.place, &address.encryption).map_err(failed)?;
                self.tls = Some(Box::new(tls));
                Ok(())
            }
            (_, b'N') if cover == Cover::TlsIfOffered => Ok(()),
            (_, b'N') => Err(failed(
                "the server does not have it (`ssl` is off in its postgresql.conf); turn it on there, or write sslmode=disable"
                    .to_owned(),
            )),
            _ => Err(self.protocol("something else than yes or no when asked for TLS; is it another service?")),
        }
    }

    /// How the session is encrypted.
    pub fn encryption(&self) -> String {
        self.tls.as_ref().map_or_else(|| "none".to_owned(), |tls| tls.about())
    }

    /// A parameter that the server reported at the start, such as `server_version`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Runs SQL statements, separated by semicolons, and returns the rows of all of them.
    ///
    /// # Errors
    ///
    /// Returns the error of the first statement that fails. The server skips the rest and rolls all of them back,
    /// unless they commit by themselves.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, Error> {
        self.put(|out| frontend::query(sql, out))?;
        self.flush()?;
        let mut rows = Vec::new();
        self.until_ready(|frame| {
            if frame.tag == backend::DATA_ROW_TAG {
                let mut values = Values::new(frame.body)?;
                let mut row = Row::new();
                while values.left() > 0 {
                    row.push(values.value()?.map(|text| String::from_utf8_lossy(text).into_owned()));
                }
                rows.push(row);
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Runs a statement that returns one value.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Connection::query`], and an error if no value comes back or it is NULL.
    pub fn value(&mut self, sql: &str) -> Result<String, Error> {
        let first = self.query(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        first.ok_or_else(|| self.protocol(&format!("no value for `{sql}`")))
    }

    /// Prepares statements, given as (name, SQL), in one round trip.
    ///
    /// # Errors
    ///
    /// Returns an error for the first statement that the server refuses. Earlier statements of the call stay
    /// prepared.
    pub fn prepare<'s>(&mut self, statements: impl IntoIterator<Item = (&'s str, &'s str)>) -> Result<(), Error> {
        for (name, sql) in statements {
            self.put(|out| frontend::parse(name, sql, [], out))?;
        }
        self.outbox.extend_from_slice(&wire::SYNC);
        self.flush()?;
        self.until_ready(|_| Ok(()))
    }

    /// Adds a COPY to the outbox without waiting for the server. The caller may send the data and its end at once: a
    /// server that refuses the statement ignores them.
    ///
    /// # Errors
    ///
    /// Returns an error if the statement is too long for a message.
    pub(crate) fn put_query(&mut self, sql: &str) -> Result<(), Error> {
        self.put(|out| frontend::query(sql, out))
    }

    /// Waits for the end of a statement that was sent. Returns the number of rows it touched.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refused the statement.
    pub(crate) fn finish_query(&mut self) -> Result<u64, Error> {
        let mut rows = 0;
        self.until_ready(|frame| {
            if frame.tag == backend::COMMAND_COMPLETE_TAG {
                rows = wire::rows_touched(frame.body);
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Sends everything in the outbox, and waits until the socket has taken it.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is lost.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if let Some(tls) = &mut self.tls {
            tls.put(&self.outbox);
            self.outbox.clear();
            return match tls.send(&self.socket, SendFlags::NOSIGNAL) {
                Ok(_) => Ok(()),
                Err(error) => Err(self.lost_in_send(error)),
            };
        }
        let mut sent = 0;
        while sent < self.outbox.len() {
            match rustix::net::send(&self.socket, &self.outbox[sent..], SendFlags::NOSIGNAL) {
                Ok(bytes) => sent += bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    self.outbox.clear();
                    return Err(self.lost_in_send(error));
                }
            }
        }
        self.outbox.clear();
        Ok(())
    }

    /// Sends as much of the outbox as the socket takes, without waiting.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is lost.
    #[inline]
    pub(crate) fn send(&mut self) -> Result<Moved, Error> {
        if self.tls.is_some() {
            return self.send_encrypted();
        }
        loop {
            match rustix::net::send(&self.socket, &self.outbox, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(bytes) if bytes == self.outbox.len() => {
                    self.outbox.clear();
                    return Ok(Moved::All);
                }
                Ok(bytes) => {
                    self.outbox.drain(..bytes);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(Moved::Part),
                Err(error) => return Err(self.lost_in_send(error)),
            }
        }
    }

    /// Receives bytes into the inbox. Returns [`Moved::All`] if the socket is empty now, [`Moved::Part`] if it may
    /// have more, and `None` if nothing had arrived. With `wait`, first waits for bytes, up to the socket's time
    /// limit.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is lost.
    #[inline]
    pub(crate) fn receive(&mut self, wait: bool) -> Result<Option<Moved>, Error> {
        let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        if let Some(tls) = &mut self.tls {
            return tls.receive(&self.socket, &mut self.inbox, flags).map_err(|broken| match broken {
                Broken::Closed => self.lost("the server closed it"),
                Broken::Why(why) => self.lost(&why),
            });
        }
        loop {
            let room = self.inbox.room();
            let most = room.len();
            match rustix::net::recv(&self.socket, room, flags) {
                Ok((0, _)) => return Err(self.lost("the server closed it")),
                Ok((bytes, _)) => {
                    self.inbox.filled(bytes);
                    return Ok(Some(if bytes < most { Moved::All } else { Moved::Part }));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(self.lost(&io::Error::from(error).to_string())),
            }
        }
    }

    /// [`Connection::send`] with TLS. Bytes that the socket does not take stay in the TLS session.
    fn send_encrypted(&mut self) -> Result<Moved, Error> {
        let tls = self.tls.as_mut().expect("it was asked");
        tls.put(&self.outbox);
        self.outbox.clear();
        match tls.send(&self.socket, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(moved) => Ok(moved),
            Err(error) => Err(self.lost_in_send(error)),
        }
    }

    /// The next message in the inbox. Skips the messages that may come at any time, such as notices.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a valid message.
    #[inline]
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Error> {
        match self.inbox.next_frame() {
            Ok(frame) => Ok(frame),
            Err(Malformed(what)) => Err(Error::Protocol { place: self.place.clone(), what: what.to_owned() }),
        }
    }

    /// Limits how long a receive waits. `None`: no limit.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses to set the limit.
    pub(crate) fn wait_at_most(&self, limit: Option<Duration>) -> Result<(), Error> {
        rustix::net::sockopt::set_socket_timeout(&self.socket, rustix::net::sockopt::Timeout::Recv, limit)
            .map_err(|error| self.lost(&io::Error::from(error).to_string()))
    }

    /// Wraps an error that the server sent.
    #[cold]
    pub(crate) fn refused(&self, error: ServerError) -> Error {
        Error::Refused { place: self.place.clone(), error: Box::new(error) }
    }

    /// The error for bytes that the protocol does not allow at this point of the session.
    #[cold]
    pub(crate) fn protocol(&self, what: &str) -> Error {
        Error::Protocol { place: self.place.clone(), what: what.to_owned() }
    }

    /// The error for a session that has ended.
    #[cold]
    pub(crate) fn lost(&self, why: &str) -> Error {
        Error::Lost { place: self.place.clone(), why: why.to_owned() }
    }

    /// The error for a failed send. If the server sent an error before it closed the connection, that one says more.
    #[cold]
    fn lost_in_send(&mut self, error: rustix::io::Errno) -> Error {
        while let Ok(Some(_)) = self.receive(false) {}
        while let Ok(Some(frame)) = self.inbox.next_frame() {
            if frame.tag == backend::ERROR_RESPONSE_TAG {
                let error = wire::server_error(frame.body);
                return self.refused(error);
            }
        }
        self.lost(&io::Error::from(error).to_string())
    }

    /// Adds a message that `postgres-protocol` builds to the outbox.
    fn put(&mut self, build: impl FnOnce(&mut BytesMut) -> io::Result<()>) -> Result<(), Error> {
        let mut message = BytesMut::new();
        build(&mut message).map_err(|error| self.protocol(&format!("a message cannot be sent: {error}")))?;
        self.outbox.extend_from_slice(&message);
        Ok(())
    }

    /// Waits for the next message.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is lost or the bytes are no message.
    pub(crate) fn wait(&mut self) -> Result<Frame<'_>, Error> {
        // Checks for the message inside the loop but takes it after the loop: returning it from inside would extend
        // its borrow over the whole loop.
        while !self.inbox.has_next().map_err(|Malformed(what)| self.protocol(what))? {
            if self.receive(true)?.is_none() {
                return Err(self.lost("it does not answer in time"));
            }
        }
        let frame = self.inbox.next_frame().ok().flatten();
        Ok(frame.expect("a whole message is here"))
    }

    /// Reads messages until ReadyForQuery, and calls `each` with those that belong to answers.
    fn until_ready(&mut self, mut each: impl FnMut(Frame<'_>) -> Result<(), Malformed>) -> Result<(), Error> {
        let mut failed = None;
        loop {
            let frame = self.wait()?;
            match frame.tag {
                backend::READY_FOR_QUERY_TAG => break,
                backend::ERROR_RESPONSE_TAG => {
                    let error = wire::server_error(frame.body);
                    if error.ends_session() {
                        return Err(self.refused(error));
                    }
                    failed.get_or_insert(error);
                }
                backend::PARAMETER_STATUS_TAG => {
                    let status = parameter_status(frame.body);
                    self.parameters.extend(status);
                }
                _ => {
                    if let Err(Malformed(what)) = each(frame) {
                        return Err(self.protocol(what));
                    }
                }
            }
        }
        failed.map_or(Ok(()), |error| Err(self.refused(error)))
    }

    /// Sends the start-up message, authenticates, and waits until the server is ready.
    fn begin(&mut self, address: &Address) -> Result<(), Error> {
        let who = [("user", address.user.as_str()), ("database", address.database.as_str())];
        let settings = address.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let encoding = [("client_encoding", "UTF8")];
        self.put(|out| frontend::startup_message(who.into_iter().chain(encoding).chain(settings), out))?;
        self.flush()?;
        self.authenticate(address)?;
        self.until_ready(|frame| match frame.tag {
            NEGOTIATE_PROTOCOL_VERSION_TAG => Err(Malformed("it wants an older version of the protocol")),
            _ => Ok(()),
        })
    }

    fn authenticate(&mut self, address: &Address) -> Result<(), Error> {
        let password = address.password.as_deref();
        let mut scram: Option<ScramSha256> = None;
        loop {
            let frame = self.wait()?;
            if frame.tag == backend::ERROR_RESPONSE_TAG {
                let error = wire::server_error(frame.body);
                return Err(self.refused(error));
            }
            if frame.tag == backend::NOTICE_RESPONSE_TAG {
                continue;
            }
            let Some((code, data)) =
                frame.body.split_first_chunk::<4>().filter(|_| frame.tag == backend::AUTHENTICATION_TAG)
            else {
                return Err(self.protocol("something else than the start of a session; is it another service?"));
            };
            let data = data.to_vec();
            let secret = || password.ok_or_else(|| bad_password(address, "it wants a password and none is given"));
            let bad = |error: io::Error| bad_password(address, &format!("authentication failed: {error}"));
            match (u32::from_be_bytes(*code), &mut scram) {
                (0 | 3 | 5, None) if address.encryption.binding == Binding::Require => return Err(unbound(address)),
                (0, _) => return Ok(()),
                (3, _) => {
                    let password = secret()?;
                    self.put(|out| frontend::password_message(password.as_bytes(), out))?;
                }
                (5, _) => {
                    let password = secret()?;
                    let salt = data.try_into().map_err(|_| self.protocol("a salt that is not 4 bytes"))?;
                    let hash = md5_hash(address.user.as_bytes(), password.as_bytes(), salt);
                    self.put(|out| frontend::password_message(hash.as_bytes(), out))?;
                }
                (10, None) => {
                    let has = |method: &str| data.split(|byte| *byte == 0).any(|name| name == method.as_bytes());
                    let end_point = self.tls.as_ref().and_then(|tls| tls.end_point());
                    let (method, binding) = match (end_point, address.encryption.binding) {
                        (Some(end_point), Binding::Prefer | Binding::Require) if has(SCRAM_SHA_256_PLUS) => {
                            (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(end_point))
                        }
                        (_, Binding::Require) => return Err(unbound(address)),
                        // Tells the server that the client supports channel binding but saw no offer of it. If an
                        // attacker has removed the offer on its way, the server refuses the login.
                        (Some(_), Binding::Prefer) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
                        (_, Binding::Prefer | Binding::Disable) => (SCRAM_SHA_256, ChannelBinding::unsupported()),
                    };
                    if !has(method) {
                        return Err(self.unknown_method("SASL without SCRAM-SHA-256"));
                    }
                    let password = secret()?;
                    let begun = ScramSha256::new(password.as_bytes(), binding);
                    self.put(|out| frontend::sasl_initial_response(method, begun.message(), out))?;
                    scram = Some(begun);
                }
                (11, Some(scram)) => {
                    scram.update(&data).map_err(bad)?;
                    self.put(|out| frontend::sasl_response(scram.message(), out))?;
                }
                (12, Some(scram)) => scram.finish(&data).map_err(bad)?,
                (2, _) => return Err(self.unknown_method("Kerberos")),
                (7 | 8, _) => return Err(self.unknown_method("GSSAPI")),
                (9, _) => return Err(self.unknown_method("SSPI")),
                (other, _) => return Err(self.unknown_method(&format!("method {other}"))),
            }
            self.flush()?;
        }
    }

    fn unknown_method(&self, method: &str) -> Error {
        Error::Authentication { place: self.place.clone(), method: method.to_owned() }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Connection {
    /// Tells the server that the session ends, so that it does not log a lost client. Nothing else depends on it.
    fn drop(&mut self) {
        self.outbox.clear();
        let mut message = BytesMut::new();
        frontend::terminate(&mut message);
        if let Some(tls) = &mut self.tls {
            tls.put(&message);
            tls.end();
            if tls.send(&self.socket, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_err() {
                // The server is gone already.
            }
            return;
        }
        if rustix::net::send(&self.socket, &message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_err() {
            // The server is gone already.
        }
    }
}

/// Whether a session's bytes are encrypted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cover {
    /// Clear text.
    None,
    /// TLS if the server has it, otherwise clear text.
    TlsIfOffered,
    /// TLS.
    Tls,
}

/// Whether the other attempt (with TLS after one without, or the reverse) may succeed after this error.
fn may_be_covered_otherwise(error: &Error) -> bool {
    matches!(error, Error::Tls { .. }) || error.sqlstate() == Some(SqlState::INVALID_AUTHORIZATION)
}

/// The error for a server that does not offer the channel binding that the address requires.
fn unbound(address: &Address) -> Error {
    let why = "channel_binding=require needs a server that asks for SCRAM-SHA-256-PLUS, over TLS".to_owned();
    Error::Tls { place: address.place.to_string(), why }
}

fn connect(place: &Place, timeout: Duration) -> io::Result<OwnedFd> {
    match place {
        Place::Unix { .. } => {
            let file = place.socket_file().expect("a Unix socket has a file");
            Ok(UnixStream::connect(file)?.into())
        }
        Place::Tcp { host, port } => {
            let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
            for address in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, timeout) {
                    Ok(stream) => {
                        stream.set_nodelay(true)?;
                        return Ok(stream.into());
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}

fn connect_advice(error: &io::Error, place: &Place) -> &'static str {
    match (error.kind(), place) {
        (io::ErrorKind::NotFound, Place::Unix { .. }) => {
            "there is no such socket: start the server, or give its unix_socket_directories as ?host=/directory"
        }
        (io::ErrorKind::PermissionDenied, _) => "this user may not open the socket",
        (io::ErrorKind::ConnectionRefused, _) => "start the server, or name its port",
        (io::ErrorKind::TimedOut, _) => "name a server that can be reached from here",
        _ => "see whether host and port are right and the server runs",
    }
}

/// The error that a server gives for a wrong password, made by our client.
fn bad_password(address: &Address, message: &str) -> Error {
    let error = ServerError {
        severity: "FATAL".to_owned(),
        sqlstate: SqlState::INVALID_PASSWORD,
        message: message.to_owned(),
        detail: String::new(),
        hint: String::new(),
    };
    Error::Refused { place: address.place.to_string(), error: Box::new(error) }
}

/// Parses the body of a ParameterStatus: `name 0 value 0`.
fn parameter_status(body: &[u8]) -> Option<(String, String)> {
    let mut words = body.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    Some((words.next()?, words.next()?))
}
