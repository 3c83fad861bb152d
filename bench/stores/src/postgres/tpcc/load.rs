//! Loads a part, and notes that it is loaded, in one transaction: by one COPY, or, for comparison, by an INSERT for
//! each row. Dropping a loader closes its connection, and the server rolls back.

use super::columns;
use super::tables::note_part;
use crate::postgres::connection::Connection;
use crate::postgres::error::Error;
use crate::postgres::loader::{HEADER, PIECE_BYTES, begin_data, put_done};
use crate::postgres::wire::{self, SYNC, Statement};
use ::tpcc::{Loader, Part, Row};
use harness::Failure;

/// Rows that are sent before their answers are read. The unread answers, of about 30 bytes each, must fit into the
/// socket's buffer.
const ROWS_UNANSWERED: u32 = 256;

/// Loads a part by COPY.
pub struct Copying {
    connection: Connection,
    part: Part,
    columns: [u8; 2],
    /// Offset in the outbox of the current message's length field.
    length_at: usize,
}

impl Copying {
    /// A loader of `part`.
    pub fn begin(mut connection: Connection, part: &Part) -> Result<Self, Error> {
        connection.query("BEGIN")?;
        let (table, names) = (part.table.name(), columns::names(part.table));
        connection.put_query(&format!("COPY {table} ({names}) FROM STDIN (FORMAT binary)"))?;
        let length_at = begin_data(&mut connection.outbox);
        connection.outbox.extend_from_slice(HEADER);
        let columns = columns::count(part.table).to_be_bytes();
        Ok(Self { connection, part: part.clone(), columns, length_at })
    }

    fn flush(&mut self) -> Result<(), Error> {
        wire::patch_length(&mut self.connection.outbox, self.length_at, self.length_at);
        self.connection.flush()?;
        self.length_at = begin_data(&mut self.connection.outbox);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        let out = &mut self.connection.outbox;
        out.extend_from_slice(&u16::MAX.to_be_bytes());
        wire::patch_length(out, self.length_at, self.length_at);
        put_done(out);
        self.connection.flush()?;
        self.connection.finish_query()?;
        commit(&mut self.connection, &self.part)
    }
}

/// Notes that the part is loaded, and commits the note together with the rows.
fn commit(connection: &mut Connection, part: &Part) -> Result<(), Error> {
    connection.query(&note_part(part))?;
    connection.query("COMMIT").map(drop)
}

impl Loader for Copying {
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure> {
        let out = &mut self.connection.outbox;
        out.extend_from_slice(&self.columns);
        columns::put(row, out);
        if out.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        Ok(self.end()?)
    }
}

/// Loads a part by INSERTs of single rows.
pub struct Inserting {
    connection: Connection,
    part: Part,
    insert: Statement,
    /// Buffer for the values of a row.
    values: Vec<u8>,
    unanswered: u32,
}

impl Inserting {
    /// A loader of `part`.
    pub fn begin(mut connection: Connection, part: &Part) -> Result<Self, Error> {
        let (table, names) = (part.table.name(), columns::names(part.table));
        let count = columns::count(part.table);
        let values = (1..=count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT INTO {table} ({names}) VALUES ({values})");
        connection.prepare([("insert", sql.as_str())])?;
        connection.query("BEGIN")?;
        let insert = Statement::new("insert", count);
        Ok(Self { connection, part: part.clone(), insert, values: Vec::new(), unanswered: 0 })
    }

    fn answered(&mut self) -> Result<(), Error> {
        self.unanswered = 0;
        self.connection.outbox.extend_from_slice(&SYNC);
        self.connection.flush()?;
        self.connection.finish_query().map(drop)
    }
}

impl Loader for Inserting {
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure> {
        self.values.clear();
        columns::put(row, &mut self.values);
        self.insert.bind(&mut self.connection.outbox).finish_with(&self.values);
        self.unanswered += 1;
        if self.unanswered == ROWS_UNANSWERED {
            self.answered()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        self.answered()?;
        Ok(commit(&mut self.connection, &self.part)?)
    }
}
