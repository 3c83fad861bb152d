//! A session on a table whose fields are split over column groups, so that a read of one field touches only its
//! group.
//!
//! ```text
//!   fields  0 1 2 | 3 4 5 | 6 7 8 9      of neighbours, in numbers as equal as they can be
//!   part    0     | 1     | 2            each the value of a row of its fields, see Strings::encode
//! ```

use crate::larch::broken;
use harness::request::{no_partitions, no_transactions};
use harness::{Blocking, Failure, Fields, NotARow, Outcome, Reply, Request, Strings};
use larch::{Selection, Table};
use std::ops::Range;

/// Splits a row's fields into the parts of its column groups, and joins them again.
pub struct Parts {
    spans: Vec<Range<usize>>,
    parts: Vec<Vec<u8>>,
    record: Strings,
}

impl Parts {
    /// Splits rows of `fields` fields into `groups` groups.
    pub fn new(fields: usize, groups: usize) -> Self {
        let spans: Vec<_> = (0..groups).map(|group| group * fields / groups..(group + 1) * fields / groups).collect();
        Self { parts: vec![Vec::new(); groups], spans, record: Strings::new() }
    }

    /// Encodes `record` as one part for each group.
    pub fn encode(&mut self, record: &Strings) -> &[Vec<u8>] {
        for (span, part) in self.spans.iter().zip(&mut self.parts) {
            self.record.clear();
            span.clone().filter_map(|field| record.get(field)).for_each(|field| self.record.push(field));
            part.clear();
            self.record.encode(part);
        }
        &self.parts
    }

    /// Appends the fields in `parts` to `record`.
    fn decode<'p>(&self, parts: impl Iterator<Item = &'p [u8]>, record: &mut Strings) -> Result<(), Failure> {
        self.spans.iter().zip(parts).try_for_each(|(span, part)| record.decode(part, span.len())).map_err(not_a_row)
    }

    /// The group of `field`, and its position within that group.
    fn place(&self, field: u32) -> (usize, usize) {
        let field = field as usize;
        let group =
            self.spans.iter().position(|span| span.contains(&field)).expect("a row has the fields of its table");
        (group, field - self.spans[group].start)
    }
}

fn not_a_row(error: NotARow) -> Failure {
    Failure::request("not_a_row", error.to_string())
}

/// One thread's session on such a table.
pub struct Grouped<'s> {
    table: &'s Table,
    all: Selection,
    /// One selection for each group.
    single: Vec<Selection>,
    parts: Parts,
    record: Strings,
}

impl<'s> Grouped<'s> {
    /// A session on `table`, whose rows have `fields` fields.
    pub fn new(table: &'s Table, fields: usize) -> Result<Self, Failure> {
        let groups = table.options().groups;
        let all = table.select(&groups).map_err(broken)?;
        let single = groups.iter().map(|group| table.select([group]).map_err(broken)).collect::<Result<_, _>>()?;
        Ok(Self { table, all, single, parts: Parts::new(fields, groups.len()), record: Strings::new() })
    }

    fn read(&self, key: &[u8], fields: Fields, reply: &mut Reply) -> Result<Outcome, Failure> {
        let selection = match fields {
            Fields::All => &self.all,
            Fields::One(field) => &self.single[self.parts.place(field).0],
        };
        let Some(parts) = selection.get(key).map_err(broken)? else { return Ok(Outcome::NotFound) };
        self.give(key, parts.iter().map(|part| &part[..]), fields, reply)?;
        Ok(Outcome::Ok)
    }

    /// Adds a row to `reply`. `parts` are the parts that were read to get `fields`.
    fn give<'p>(
        &self,
        key: &[u8],
        mut parts: impl Iterator<Item = &'p [u8]>,
        fields: Fields,
        reply: &mut Reply,
    ) -> Result<(), Failure> {
        reply.row_of_fields(key, |record| match fields {
            Fields::All => self.parts.decode(parts, record),
            Fields::One(field) => {
                let (group, place) = self.parts.place(field);
                let part = parts.next().expect("one part was asked for");
                record.decode_one(part, self.parts.spans[group].len(), place).map_err(not_a_row)
            }
        })
    }

    fn scan(&self, start: &[u8], rows: u64, fields: Fields, reply: &mut Reply) -> Result<(), Failure> {
        let selection = match fields {
            Fields::All => &self.all,
            Fields::One(field) => &self.single[self.parts.place(field).0],
        };
        let mut range = selection.range(start..).limit(rows);
        while let Some(row) = range.next_row().map_err(broken)? {
            let parts = row.parts().map_err(broken)?;
            self.give(row.key(), parts.iter().map(|part| &part[..]), fields, reply)?;
        }
        Ok(())
    }

    fn update(&mut self, key: &[u8], field: u32, value: &[u8]) -> Result<Outcome, Failure> {
        let Some(parts) = self.all.get(key).map_err(broken)? else { return Ok(Outcome::NotFound) };
        self.record.clear();
        self.parts.decode(parts.iter().map(|part| &part[..]), &mut self.record)?;
        self.record.replace(field as usize, value);
        self.table.insert_parts(key, self.parts.encode(&self.record)).map_err(broken)?;
        Ok(Outcome::Ok)
    }
}

impl Blocking for Grouped<'_> {
    fn call(&mut self, request: &Request<'_>, reply: &mut Reply) -> Result<Outcome, Failure> {
        match *request {
            Request::Read { key, fields } => return self.read(key, fields, reply),
            Request::ReadMany { keys, fields } => {
                for key in keys.iter() {
                    self.read(key, fields, reply)?;
                }
            }
            Request::Scan { start, rows, fields } => self.scan(start, rows, fields, reply)?,
            Request::Insert { key, record } | Request::Replace { key, record } => {
                self.table.insert_parts(key, self.parts.encode(record)).map_err(broken)?;
            }
            Request::Update { key, field, value } => return self.update(key, field, value),
            Request::Delete { key } => self.table.remove(key).map_err(broken)?,
            Request::Partition(_) => return Err(no_partitions()),
            Request::Transaction(_) => return Err(no_transactions()),
        }
        Ok(Outcome::Ok)
    }
}
