//! A consistent view of a database.

use super::Larch;
use crate::larch::broken;
use ::tpcc::encoding;
use ::tpcc::schema::{Cents, District, Warehouse};
use ::tpcc::transactions::wrong;
use ::tpcc::{ReadRows, Row, Table, TableRow};
use harness::Failure;
use larch::{Readable as _, Selection};
use rows::Tuple as _;
use std::ops::ControlFlow;

/// A snapshot of all tables.
pub struct Snapshot<'l> {
    larch: &'l Larch,
    snapshot: larch::Snapshot,
}

impl<'l> Snapshot<'l> {
    /// The database as it is now.
    pub fn new(larch: &'l Larch) -> Result<Self, Failure> {
        Ok(Self { larch, snapshot: larch.db.snapshot() })
    }
}

impl Snapshot<'_> {
    /// The sum of the year of a warehouse or a district, from the table of counters.
    fn sum(&self, sums: &larch::Table, key: &[u8]) -> Result<Cents, Failure> {
        let sum = self.snapshot.get(sums, key).map_err(broken)?;
        let sum = sum.as_deref().and_then(|sum| sum.try_into().ok()).map(i64::from_le_bytes);
        sum.ok_or_else(|| wrong("a warehouse or a district has no counter"))
    }
}

impl ReadRows for Snapshot<'_> {
    fn read<R: TableRow>(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (of, groups) = (table, encoding::groups(table));
        let (mut row, table) = (R::default(), self.larch.table(of)?);
        if let Table::Warehouse | Table::District = of
            && let Some(sums) = self.larch.sums()?
        {
            let mut range = self.snapshot.range(&table, (warehouse,).range());
            while let Some(found) = range.next_row().map_err(broken)? {
                row.decode(found.key(), [found.value().map_err(broken)?.as_ref()])?;
                let year_to_date = self.sum(&sums, found.key())?;
                match row.as_row() {
                    Row::Warehouse(row) => each(Row::Warehouse(&Warehouse { year_to_date, ..row.clone() }))?,
                    Row::District(row) => each(Row::District(&District { year_to_date, ..row.clone() }))?,
                    row => each(row)?,
                }
            }
            return Ok(());
        }
        if !groups.is_empty() {
            let selection: Selection = table.select(groups).map_err(broken)?;
            let mut range = selection.at(&self.snapshot).map_err(broken)?.range((warehouse,).range());
            while let Some(found) = range.next_row().map_err(broken)? {
                let parts = found.parts().map_err(broken)?;
                row.decode(found.key(), parts.iter().map(|part| &part[..]))?;
                each(row.as_row())?;
            }
            return Ok(());
        }
        let mut range = match warehouse {
            0 => self.snapshot.iter(&table),
            _ => self.snapshot.range(&table, (warehouse,).range()),
        };
        let end = range.for_each_row(|found| {
            let decoded = found.value().map_err(broken).and_then(|value| row.decode(found.key(), [value.as_ref()]));
            match decoded.and_then(|()| each(row.as_row())) {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => ControlFlow::Break(failure),
            }
        });
        match end.map_err(broken)? {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(failure) => Err(failure),
        }
    }
}
