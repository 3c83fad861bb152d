//! Reads one warehouse, table by table, and judges it.

use crate::check::accounts::Accounts;
use crate::check::goods;
use crate::check::orders::Orders;
use crate::check::scope::{Outcome, Scope, stray};
use crate::check::tallies::{DistrictRow, Tallies};
use crate::database::Row;
use crate::schema::Table;
use harness::Failure;

/// Reads and judges the warehouse of `scope`.
pub fn read(mut scope: Scope<'_>) -> Result<Outcome, Failure> {
    read_and_judge(&mut scope)?;
    Ok(scope.into_outcome())
}

fn read_and_judge(scope: &mut Scope<'_>) -> Result<(), Failure> {
    let mut tallies = Tallies::new();
    read_warehouse(scope, &mut tallies)?;
    read_districts(scope, &mut tallies)?;
    goods::read_stock(scope)?;
    let mut accounts = Accounts::read(scope, &mut tallies)?;
    accounts.read_payments(scope, &mut tallies)?;
    let mut orders = Orders::read(scope, &mut tallies, &accounts)?;
    orders.read_new(scope, &mut tallies)?;
    orders.read_lines(scope, &mut tallies, &mut accounts)?;
    tallies.judge(scope);
    orders.judge(scope);
    accounts.judge(scope);
    if scope.loaded.is_all() {
        for table in [Table::History, Table::NewOrder, Table::Order] {
            scope.judge_rows(table);
        }
    }
    Ok(())
}

fn read_warehouse(scope: &mut Scope<'_>, tallies: &mut Tallies) -> Result<(), Failure> {
    let mut last = None;
    scope.read(Table::Warehouse, &mut |scope, row| {
        let Row::Warehouse(row) = row else { return Err(stray(Table::Warehouse, &row)) };
        let what = format_args!("warehouse {}", row.warehouse);
        if scope.is_here(Table::Warehouse, row.warehouse) && scope.is_next(&mut last, row.warehouse, what) {
            tallies.year_to_date = Some(row.year_to_date);
            scope.compare(what, scope.loaded.warehouse(row));
        }
        Ok(())
    })
}

fn read_districts(scope: &mut Scope<'_>, tallies: &mut Tallies) -> Result<(), Failure> {
    let mut last = None;
    scope.read(Table::District, &mut |scope, row| {
        let Row::District(row) = row else { return Err(stray(Table::District, &row)) };
        let Some(place) = scope.district(Table::District, row.warehouse, row.district) else { return Ok(()) };
        let name = scope.place(place);
        if scope.is_next(&mut last, row.district, format_args!("{name}")) {
            let (year_to_date, next_order) = (row.year_to_date, row.next_order);
            tallies.districts[place].row = Some(DistrictRow { year_to_date, next_order });
            scope.compare(format_args!("{name}"), scope.loaded.district(row));
        }
        Ok(())
    })
}
