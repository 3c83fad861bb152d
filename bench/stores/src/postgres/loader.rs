//! Fills a table by COPY in its binary format.
//!
//! ```text
//! "PGCOPY\n\xff\r\n\0"  flags  length of more header
//!                       u32: 0 u32: 0
//! columns  {length value}*     one line for each row
//! u16      i32
//! -1 (u16)                     the end
//! ```

use crate::postgres::connection::Connection;
use crate::postgres::error::Error;
use crate::postgres::statements::Statements;
use crate::postgres::wire;
use harness::{Blocking, Failure, Outcome, Reply, Request, Rows, Strings};

/// The loader sends a batch once it has this many bytes: enough that sending takes far longer than a round trip, and
/// little compared with a server's memory.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes that [`copy_all`] gathers before each send.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// The header of the data.
pub(crate) const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// A session for loading: it gathers rows into batches and writes each batch in a transaction of its own. While the
/// server works on one batch, the session gathers the next. A batch that cannot be written is lost, although its
/// rows were already reported as done. Retrying one of these rows would not bring back the others, so the session
/// ends with an error.
pub struct Loader {
    connection: Connection,
    copy: String,
    /// Rows gathered in the outbox.
    gathered: u64,
    /// Offset in the outbox of the length field of the gathered message.
    length_at: usize,
    /// Rows in the batch that the server is working on, if any.
    sent: Option<u64>,
}

impl Loader {
    /// A loader for the table of `statements`.
    pub fn new(connection: Connection, statements: &Statements) -> Self {
        Self { connection, copy: statements.copy(), gathered: 0, length_at: 0, sent: None }
    }

    fn gather(&mut self, key: &[u8], record: &Strings) -> Result<(), Error> {
        if self.gathered == 0 {
            self.connection.put_query(&self.copy)?;
            let out = &mut self.connection.outbox;
            self.length_at = begin_data(out);
            out.extend_from_slice(HEADER);
        }
        self.gathered += 1;
        put_row(&mut self.connection.outbox, key, record);
        Ok(())
    }

    /// Waits for the answer to the previous batch, then sends this one.
    fn send(&mut self) -> Result<(), Failure> {
        if self.gathered == 0 {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.gathered);
        let out = &mut self.connection.outbox;
        out.extend_from_slice(&u16::MAX.to_be_bytes());
        wire::patch_length(out, self.length_at, self.length_at);
        put_done(out);
        let before = self.answer();
        match self.connection.flush() {
            Ok(()) => self.sent = Some(rows),
            Err(error) => return Err(not_written(rows, error)),
        }
        before
    }

    /// Waits for the answer to the batch that was sent.
    fn answer(&mut self) -> Result<(), Failure> {
        let Some(rows) = self.sent.take() else { return Ok(()) };
        match self.connection.finish_query() {
            Ok(written) if written == rows => Ok(()),
            Ok(written) => {
                Err(Failure::session("rows_lost", format!("of a batch of {rows} rows the server wrote {written}")))
            }
            Err(error) => Err(not_written(rows, error)),
        }
    }
}

impl Blocking for Loader {
    /// Accepts only inserts. An error may concern the previous batch; it then says how many rows are lost.
    fn call(&mut self, request: &Request<'_>, _: &mut Reply) -> Result<Outcome, Failure> {
        let Request::Insert { key, record } = *request else {
            return Err(Failure::request("not_an_insert", "a session that loads takes inserts only"));
        };
        self.gather(key, record)?;
        if self.connection.outbox.len() >= BATCH_BYTES {
            self.send()?;
        }
        Ok(Outcome::Batched)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let before = self.send();
        let last = self.answer();
        before.and(last)
    }
}

/// Writes all rows in one COPY, and so atomically.
///
/// # Errors
///
/// Returns the error of the server if the server refused the rows.
pub fn copy_all(connection: &mut Connection, statements: &Statements, rows: &mut dyn Rows) -> Result<u64, Error> {
    let (mut key, mut record) = (Vec::new(), Strings::new());
    connection.put_query(&statements.copy())?;
    let mut length_at = begin_data(&mut connection.outbox);
    connection.outbox.extend_from_slice(HEADER);
    while rows.next_row(&mut key, &mut record) {
        put_row(&mut connection.outbox, &key, &record);
        if connection.outbox.len() >= PIECE_BYTES {
            wire::patch_length(&mut connection.outbox, length_at, length_at);
            connection.flush()?;
            length_at = begin_data(&mut connection.outbox);
        }
    }
    connection.outbox.extend_from_slice(&u16::MAX.to_be_bytes());
    wire::patch_length(&mut connection.outbox, length_at, length_at);
    put_done(&mut connection.outbox);
    connection.flush()?;
    connection.finish_query()
}

/// Begins a CopyData message, and returns the offset of its length field. The length includes its own four bytes.
pub(crate) fn begin_data(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
    out.len() - 4
}

/// Ends the data with a CopyDone.
pub(crate) fn put_done(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'c', 0, 0, 0, 4]);
}

fn put_row(out: &mut Vec<u8>, key: &[u8], record: &Strings) {
    let columns = u16::try_from(1 + record.len()).expect("a table has fewer fields than statements may have");
    out.extend_from_slice(&columns.to_be_bytes());
    wire::put_bytes(out, key);
    record.iter().for_each(|value| wire::put_bytes(out, value));
}

fn not_written(rows: u64, error: Error) -> Failure {
    let failure = Failure::from(error);
    Failure::session(failure.kind, format!("a batch of {rows} rows was not written: {}", failure.text))
}
