//! The types of the rows of the nine tables, for code that is the same for all tables.

use crate::columns::Columns;
use crate::database::{Row, View};
use crate::encoding::Decode;
use crate::schema::{Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Table, Warehouse};
use harness::Failure;

/// A row of one of the tables.
pub trait TableRow: Columns + Decode + Default {
    /// The row as one of any table.
    fn as_row(&self) -> Row<'_>;
}

macro_rules! table_rows {
    ($($name:ident),*) => {
        $(impl TableRow for $name {
            #[inline]
            fn as_row(&self) -> Row<'_> {
                Row::$name(self)
            }
        })*
    };
}

table_rows!(Warehouse, District, Customer, History, NewOrder, Order, OrderLine, Item, Stock);

/// Reads the rows of a table as values of its type. What has it is a [`View`].
pub trait ReadRows: Sync {
    /// As [`View::rows`], for the table whose rows are of the type `R`.
    fn read<R: TableRow>(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure>;
}

impl<V: ReadRows> View for V {
    fn rows(
        &self,
        table: Table,
        warehouse: u32,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match table {
            Table::Warehouse => self.read::<Warehouse>(table, warehouse, each),
            Table::District => self.read::<District>(table, warehouse, each),
            Table::Customer => self.read::<Customer>(table, warehouse, each),
            Table::History => self.read::<History>(table, warehouse, each),
            Table::NewOrder => self.read::<NewOrder>(table, warehouse, each),
            Table::Order => self.read::<Order>(table, warehouse, each),
            Table::OrderLine => self.read::<OrderLine>(table, warehouse, each),
            Table::Item => self.read::<Item>(table, 0, each),
            Table::Stock => self.read::<Stock>(table, warehouse, each),
        }
    }
}
