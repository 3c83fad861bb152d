//! Loads one part: imports its rows as SSTs, then notes in the table `tpcc` that the part is loaded. After a crash
//! before that note, the part is loaded again with the same rows.

use super::Larch;
use crate::larch::broken;
use ::tpcc::about;
use ::tpcc::encoding::{self, Encoded};
use ::tpcc::{Loader, Part, Row};
use harness::Failure;
use larch::Table;
use larch::bulk::Import;

/// Imports the rows of one part.
pub struct PartLoader<'l> {
    larch: &'l Larch,
    part: Part,
    import: Import,
    has_groups: bool,
    encoded: Encoded,
}

impl<'l> PartLoader<'l> {
    /// A loader for `part`, whose rows go into `table`.
    pub fn new(larch: &'l Larch, table: Table, part: &Part) -> Result<Self, Failure> {
        let import = table.import().map_err(broken)?;
        let has_groups = !encoding::groups(part.table).is_empty();
        Ok(Self { larch, part: part.clone(), import, has_groups, encoded: Encoded::default() })
    }
}

impl Loader for PartLoader<'_> {
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure> {
        self.encoded.set(row, 0);
        match self.has_groups {
            true => self.import.add_parts(self.encoded.key(), self.encoded.parts()),
            false => self.import.add(self.encoded.key(), &self.encoded.parts()[0]),
        }
        .map_err(broken)
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        self.import.finish(|_| {}).map_err(broken)?;
        self.larch.about.insert(about::part_key(&self.part), b"").map_err(broken)
    }
}
