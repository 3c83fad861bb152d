//! A connection to a server. Commands are put into an outbox, go out together, and are answered in their order.

use super::address::Address;
use super::wire::{Answer, Commands, Malformed, Texts};
use harness::Failure;
use rustix::event::{PollFd, PollFlags};
use std::fmt::Display;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// How long a server may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How many bytes are received at once.
const PIECE_BYTES: usize = 64 << 10;

/// An open connection.
pub struct Connection {
    stream: TcpStream,
    /// Who the server is, for messages.
    place: String,
    /// Commands that were not sent yet.
    pub outbox: Commands,
    inbox: Vec<u8>,
    /// Where the first answer in the inbox begins that was not taken yet.
    at: usize,
}

impl Connection {
    /// Connects, proves who we are, and chooses the database.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached or refuses us.
    pub fn open(address: &Address) -> Result<Self, Failure> {
        let place = address.to_string();
        let failed = |error: &dyn Display| {
            Failure::session("connection", format!("Redis at {place} cannot be reached: {error}; is it running?"))
        };
        let mut stream = Err(failed(&"its name has no address"));
        for to in (address.host.as_str(), address.port).to_socket_addrs().map_err(|error| failed(&error))? {
            stream = TcpStream::connect_timeout(&to, CONNECT_LIMIT).map_err(|error| failed(&error));
            if stream.is_ok() {
                break;
            }
        }
        let stream = stream?;
        stream.set_nodelay(true).map_err(|error| failed(&error))?;
        let mut this = Self { stream, place, outbox: Commands::default(), inbox: Vec::new(), at: 0 };
        if let Some(password) = &address.password {
            match &address.user {
                Some(user) => this.done(&[b"AUTH", user.as_bytes(), password.as_bytes()])?,
                None => this.done(&[b"AUTH", password.as_bytes()])?,
            }
        }
        if address.database != 0 {
            this.done(&[b"SELECT", address.database.to_string().as_bytes()])?;
        }
        Ok(this)
    }

    /// Carries out a command alone, and calls `take` with its answer.
    ///
    /// # Errors
    ///
    /// Fails if the server refuses the command, if the connection is lost, or if `take` fails.
    pub fn call<T>(
        &mut self,
        words: &[&[u8]],
        take: impl FnOnce(Answer<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.outbox.command(words);
        self.outbox.take_count();
        self.send()?;
        let mut take = Some(take);
        loop {
            let taken = self.next(|answer, _| match answer {
                Answer::Error(text) => Err(refused(text)),
                answer => take.take().expect("there is one answer")(answer),
            })?;
            match taken {
                Some(taken) => return Ok(taken),
                None => self.receive(None).map(drop)?,
            }
        }
    }

    /// Carries out a command whose answer tells nothing but that it was done.
    ///
    /// # Errors
    ///
    /// As [`Connection::call`].
    pub fn done(&mut self, words: &[&[u8]]) -> Result<(), Failure> {
        self.call(words, |_| Ok(()))
    }

    /// Carries out a command that answers with a number.
    ///
    /// # Errors
    ///
    /// As [`Connection::call`].
    pub fn number(&mut self, words: &[&[u8]]) -> Result<i64, Failure> {
        self.call(words, number)
    }

    /// Sends the outbox.
    ///
    /// # Errors
    ///
    /// Fails if the connection is lost.
    pub fn send(&mut self) -> Result<(), Failure> {
        // The server reads on while it answers, so a full socket becomes free again without our reading.
        let sent = self.stream.write_all(&self.outbox.bytes);
        self.outbox.bytes.clear();
        sent.map_err(|error| self.lost(&error))
    }

    /// Waits for bytes, for at most `left` if it is given, and receives those that are there. Returns whether any
    /// came.
    ///
    /// # Errors
    ///
    /// Fails if the connection is lost.
    pub fn receive(&mut self, left: Option<Duration>) -> Result<bool, Failure> {
        if let Some(left) = left {
            let left = left.try_into().ok();
            match rustix::event::poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], left.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(false),
                Ok(_) => {}
                Err(error) => return Err(self.lost(&error)),
            }
        }
        self.inbox.drain(..std::mem::take(&mut self.at));
        let end = self.inbox.len();
        self.inbox.resize(end + PIECE_BYTES, 0);
        let received = self.stream.read(&mut self.inbox[end..]);
        self.inbox.truncate(end + received.as_ref().copied().unwrap_or(0));
        match received {
            Ok(0) => Err(self.lost(&"the server has closed it")),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(self.lost(&error)),
        }
    }

    /// Calls `take` with the next answer in the inbox, and with the outbox. `None` if no whole answer is there.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are no answer, or if `take` fails.
    #[inline]
    pub fn next<T>(
        &mut self,
        take: impl FnOnce(Answer<'_>, &mut Commands) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        match Answer::read(&self.inbox[self.at..]) {
            Ok(Some((answer, len))) => {
                self.at += len;
                take(answer, &mut self.outbox).map(Some)
            }
            Ok(None) => Ok(None),
            Err(Malformed(what)) => Err(self.lost(&what)),
        }
    }

    #[cold]
    fn lost(&self, why: &dyn Display) -> Failure {
        Failure::session("connection", format!("the connection to Redis at {} is lost: {why}", self.place))
    }
}

/// The failure of a command that the server refuses.
#[cold]
pub fn refused(text: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(text);
    let said = format!("Redis: {text}");
    match text.split(' ').next().unwrap_or_default() {
        "LOADING" | "BUSY" | "TRYAGAIN" | "MASTERDOWN" => Failure::again("busy", said),
        "NOAUTH" | "WRONGPASS" | "NOPERM" => {
            Failure::session("refused", format!("{said}; write redis://user:password@host:port"))
        }
        "OOM" => Failure::session("out_of_memory", format!("{said}; raise maxmemory")),
        "MISCONF" | "READONLY" => Failure::session("read_only", said),
        "MOVED" | "ASK" | "CLUSTERDOWN" => {
            Failure::session("cluster", format!("{said}; name a server that has all keys: clusters are not supported"))
        }
        "WRONGTYPE" => Failure::request("other_data", format!("{said}; name another table or database")),
        _ => Failure::request("redis", said),
    }
}

/// The failure of an answer that the command cannot have.
#[cold]
pub fn unexpected(answer: Answer<'_>) -> Failure {
    Failure::session("protocol", format!("Redis has sent another kind of answer than the command has: {answer:?}"))
}

/// The number that an answer is.
pub fn number(answer: Answer<'_>) -> Result<i64, Failure> {
    match answer {
        Answer::Number(number) => Ok(number),
        other => Err(unexpected(other)),
    }
}

/// The texts that an answer lists.
pub fn list(answer: Answer<'_>) -> Result<Texts<'_>, Failure> {
    match answer {
        Answer::List(texts) => Ok(texts),
        other => Err(unexpected(other)),
    }
}
