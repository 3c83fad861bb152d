//! Loads one part: imports its rows as SSTs, then notes in the table `tpcc` that the part is loaded. After a crash
//! before that note, the part is loaded again with the same rows.

use super::Larch;
use crate::larch::broken;
use ::tpcc::about;
use ::tpcc::encoding::{self, Encoded};
use ::tpcc::schema::{District, Warehouse};
use ::tpcc::{Loader, Part, Row};
use harness::Failure;
use larch::bulk::Import;
use larch::{Batch, Table};

/// Imports the rows of one part.
pub struct PartLoader<'l> {
    larch: &'l Larch,
    part: Part,
    import: Import,
    has_groups: bool,
    encoded: Encoded,
    /// The table of counters, if the database has it.
    sums: Option<Table>,
    /// The counters of the rows, and that the part is loaded.
    notes: Batch,
}

impl<'l> PartLoader<'l> {
    /// A loader for `part`, whose rows go into `table`.
    pub fn new(larch: &'l Larch, table: Table, part: &Part) -> Result<Self, Failure> {
        let import = table.import().map_err(broken)?;
        let has_groups = !encoding::groups(part.table).is_empty();
        let (sums, notes) = (larch.sums()?, larch.db.batch());
        Ok(Self { larch, part: part.clone(), import, has_groups, encoded: Encoded::default(), sums, notes })
    }

    /// Encodes a row. If it has a sum of the year that belongs into the table of counters, puts it there.
    fn encode(&mut self, row: Row<'_>) {
        let Some(sums) = &self.sums else { return self.encoded.set(row, 0) };
        let sum = match row {
            Row::Warehouse(of) => {
                self.encoded.set(Row::Warehouse(&Warehouse { year_to_date: 0, ..of.clone() }), 0);
                of.year_to_date
            }
            Row::District(of) => {
                self.encoded.set(Row::District(&District { year_to_date: 0, ..of.clone() }), 0);
                of.year_to_date
            }
            row => return self.encoded.set(row, 0),
        };
        self.notes.insert(sums, self.encoded.key(), sum.to_le_bytes());
    }
}

impl Loader for PartLoader<'_> {
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure> {
        self.encode(row);
        match self.has_groups {
            true => self.import.add_parts(self.encoded.key(), self.encoded.parts()),
            false => self.import.add(self.encoded.key(), &self.encoded.parts()[0]),
        }
        .map_err(broken)
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        let Self { larch, part, import, mut notes, .. } = *self;
        import.finish(|_| {}).map_err(broken)?;
        notes.insert(&larch.about, about::part_key(&part), b"");
        notes.commit().map(drop).map_err(broken)
    }
}
