//! A connection on which each line is a value. It trusts nothing that comes: a line has a greatest length, and memory
//! is allocated only for bytes that have come.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a connection of the real machine")]

#[cfg(test)]
mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// A side that takes nothing for this long is lost.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// A machine that does not answer is noticed after some 25 seconds.
const ALIVE_AFTER: Duration = Duration::from_secs(10);
const ALIVE_EVERY: Duration = Duration::from_secs(5);
const ALIVE_TIMES: u32 = 3;
const UNHEARD: Duration = Duration::from_secs(25);

const CHUNK: usize = 16 << 10;

/// One end of a connection.
pub struct Lines {
    stream: TcpStream,
    /// What has come and was not returned yet.
    received: Vec<u8>,
    /// How much of it has no end of a line.
    searched: usize,
}

impl Lines {
    /// The lines of a connection.
    ///
    /// # Errors
    ///
    /// The system refuses an option.
    pub fn new(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
        rustix::net::sockopt::set_tcp_keepidle(&stream, ALIVE_AFTER)?;
        rustix::net::sockopt::set_tcp_keepintvl(&stream, ALIVE_EVERY)?;
        rustix::net::sockopt::set_tcp_keepcnt(&stream, ALIVE_TIMES)?;
        // The system does not probe a connection while something that was sent is not acknowledged.
        rustix::net::sockopt::set_tcp_user_timeout(&stream, UNHEARD.as_millis() as u32)?;
        Ok(Self { stream, received: Vec::new(), searched: 0 })
    }

    /// Another end for writing.
    ///
    /// # Errors
    ///
    /// The system has no more of them.
    pub fn writer(&self) -> std::io::Result<Writer> {
        Ok(Writer(self.stream.try_clone()?))
    }

    /// The next value, on a line of limited length. The call waits for the line, until `deadline` if one is given.
    ///
    /// # Errors
    ///
    /// The connection has ended, the time is over, or the line is no such value.
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

/// An end for writing. The connection ends with it, also when its owner panics.
pub struct Writer(TcpStream);

impl Writer {
    /// Writes a value.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub fn write<T: Serialize>(&mut self, value: &T) -> Result<(), String> {
        let mut line = serde_json::to_vec(value).expect("every value can be written");
        line.push(b'\n');
        self.0.write_all(&line).map_err(|error| {
            // Nothing may follow a part of a line.
            self.end();
            error.to_string()
        })
    }

    /// Nothing more is written; the other side may still speak.
    pub fn finish(&self) {
        // The other side may have ended it already.
        self.0.shutdown(Shutdown::Write).unwrap_or_default();
    }

    /// Ends the connection, also for threads that wait for a line of it.
    pub fn end(&self) {
        self.0.shutdown(Shutdown::Both).unwrap_or_default();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}
