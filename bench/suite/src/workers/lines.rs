//! A TCP connection that carries one JSON value per line. Incoming data is not trusted: lines have a maximum
//! length, and memory is allocated only for bytes that have arrived.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a connection of the real machine")]

#[cfg(test)]
mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Timeout of a write, after which the other side counts as lost.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// TCP keep-alive: a dead peer is noticed after some 25 seconds.
const ALIVE_AFTER: Duration = Duration::from_secs(10);
const ALIVE_EVERY: Duration = Duration::from_secs(5);
const ALIVE_TIMES: u32 = 3;
const UNHEARD: Duration = Duration::from_secs(25);

const CHUNK: usize = 16 << 10;

/// One end of a connection.
pub struct Lines {
    stream: TcpStream,
    /// Bytes that have arrived and are not consumed yet.
    received: Vec<u8>,
    /// Length of the prefix of `received` that is known to contain no newline.
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
        // The kernel sends no keep-alives while data is unacknowledged, so limit that time as well.
        rustix::net::sockopt::set_tcp_user_timeout(&stream, UNHEARD.as_millis() as u32)?;
        Ok(Self { stream, received: Vec::new(), searched: 0 })
    }

    /// A second handle of the connection, for writing.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be cloned.
    pub fn writer(&self) -> std::io::Result<Writer> {
        Ok(Writer(self.stream.try_clone()?))
    }

    /// Reads the next value, from a line of at most `most_bytes`. Waits for the whole line, or until `deadline`.
    ///
    /// # Errors
    ///
    /// Fails if the connection has ended, if the deadline has passed, or if the line is too long or not a `T`.
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

/// The writing handle of a connection. Dropping it ends the connection, so a panic of its owner does too.
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
            // Nothing may follow a partial line.
            self.end();
            error.to_string()
        })
    }

    /// Shuts down the writing direction. The other side may still send.
    pub fn finish(&self) {
        // Ignore errors: the other side may have ended the connection already.
        self.0.shutdown(Shutdown::Write).unwrap_or_default();
    }

    /// Ends the connection. Threads that wait for a line on it get an error.
    pub fn end(&self) {
        self.0.shutdown(Shutdown::Both).unwrap_or_default();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}
