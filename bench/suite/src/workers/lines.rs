//! A connection on which each line is a JSON value. It trusts nothing that arrives: lines have a maximum length,
//! and memory is allocated only for bytes that have arrived.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a connection of the real machine")]

#[cfg(test)]
mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// If the other side receives no bytes for this long, it counts as lost.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// The times of keep-alive messages. Because of these messages, a side notices after some 25 seconds that the
/// other machine does not answer.
const ALIVE_AFTER: Duration = Duration::from_secs(10);
const ALIVE_EVERY: Duration = Duration::from_secs(5);
const ALIVE_TIMES: u32 = 3;
const UNHEARD: Duration = Duration::from_secs(25);

const CHUNK: usize = 16 << 10;

/// One end of a connection.
pub struct Lines {
    stream: TcpStream,
    /// The bytes that have arrived and are not returned yet.
    received: Vec<u8>,
    /// How many of the received bytes are known to contain no end of a line.
    searched: usize,
}

impl Lines {
    /// Reads lines from `stream`.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses to set an option of the connection.
    pub fn new(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
        rustix::net::sockopt::set_tcp_keepidle(&stream, ALIVE_AFTER)?;
        rustix::net::sockopt::set_tcp_keepintvl(&stream, ALIVE_EVERY)?;
        rustix::net::sockopt::set_tcp_keepcnt(&stream, ALIVE_TIMES)?;
        // The system sends no keep-alive messages while sent bytes are not acknowledged. Therefore the time for an
        // acknowledgement is limited as well.
        rustix::net::sockopt::set_tcp_user_timeout(&stream, UNHEARD.as_millis() as u32)?;
        Ok(Self { stream, received: Vec::new(), searched: 0 })
    }

    /// Another handle of the connection, for writing.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot make another handle.
    pub fn writer(&self) -> std::io::Result<Writer> {
        Ok(Writer(self.stream.try_clone()?))
    }

    /// The next value. The line that contains the value must not be longer than `most_bytes`. The call waits for
    /// the whole line, or until `deadline` if there is one.
    ///
    /// # Errors
    ///
    /// Fails if the connection has ended, if the deadline has passed, or if the line is not a value of this type.
    pub fn read<T: DeserializeOwned>(&mut self, most_bytes: usize, deadline: Option<Instant>) -> Result<T, String> {
        loop {
            let fresh = &self.received[self.searched..];
            if let Some(at) = fresh.iter().position(|byte| *byte == b'\n') {
                let end = self.searched + at;
                let rest = self.received.split_off(end + 1);
                let line = std::mem::replace(&mut self.received, rest);
                self.searched = 0;
                if end > most_bytes {
                    return Err(too_long(most_bytes));
                }
                return serde_json::from_slice(&line[..end]).map_err(|_| "it does not speak the protocol".to_owned());
            }
            self.searched = self.received.len();
            if self.searched > most_bytes {
                return Err(too_long(most_bytes));
            }
            self.receive(deadline)?;
        }
    }

    fn receive(&mut self, deadline: Option<Instant>) -> Result<(), String> {
        let patience = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if patience == Some(Duration::ZERO) {
            return Err("it does not answer".to_owned());
        }
        self.stream.set_read_timeout(patience).map_err(|error| error.to_string())?;
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err("the connection has ended".to_owned()),
            Ok(bytes) => {
                self.received.extend_from_slice(&chunk[..bytes]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err("it does not answer".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

fn too_long(most_bytes: usize) -> String {
    format!("it sent a line of more than {most_bytes} bytes")
}

/// A handle of a connection, for writing. When the handle is dropped, the connection ends. This also happens if
/// the owner of the handle panics.
pub struct Writer(TcpStream);

impl Writer {
    /// Writes a value.
    ///
    /// # Errors
    ///
    /// Fails if the connection has ended.
    pub fn write<T: Serialize>(&mut self, value: &T) -> Result<(), String> {
        let mut line = serde_json::to_vec(value).expect("every value can be written");
        line.push(b'\n');
        self.0.write_all(&line).map_err(|error| {
            // After a part of a line, nothing else may be sent.
            self.end();
            error.to_string()
        })
    }

    /// Ends the writing direction. The other side may still send.
    pub fn finish(&self) {
        // The other side may have ended the connection already.
        self.0.shutdown(Shutdown::Write).unwrap_or_default();
    }

    /// Ends the connection. Threads that wait for a line on this connection then get an error.
    pub fn end(&self) {
        self.0.shutdown(Shutdown::Both).unwrap_or_default();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}
