//! Fills a database with its initial population, part by part, on several threads. Each part takes effect as a
//! whole. Therefore an interrupted import can go on with the parts that are missing.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]

use crate::database::{Database, Form, Loader, Part, Row};
use crate::population::Population;
use crate::schema::{
    CUSTOMERS, Customer, DISTRICTS, District, History, ITEMS, Item, ORDERS, Order, OrderLine, Stock, Table, Warehouse,
};
use harness::{Failure, Harm};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

#[cfg(test)]
mod tests;

/// The approximate number of bytes in a part. A part is larger if a single warehouse has more bytes.
const PART_BYTES: u64 = 256 << 20;

/// The parts of a database. The parts with the most bytes come first.
pub fn parts(form: &Form) -> Vec<Part> {
    let mut parts = vec![Part { table: Table::Item, warehouses: 0..=0 }];
    for table in Table::ALL.into_iter().filter(|table| *table != Table::Item) {
        let bytes = u64::from(table.rows()) * table.row_bytes();
        let together = (PART_BYTES / bytes).clamp(1, form.warehouses.into()) as u32;
        let firsts = (1..=form.warehouses).step_by(together as usize);
        parts.extend(firsts.map(|first| {
            let last = first.saturating_add(together - 1).min(form.warehouses);
            Part { table, warehouses: first..=last }
        }));
    }
    parts.sort_by_key(|part| std::cmp::Reverse(bytes_of(part)));
    parts
}

/// The approximate number of bytes in the rows of a part.
fn bytes_of(part: &Part) -> u64 {
    let warehouses = u64::from(part.warehouses.end() - part.warehouses.start()) + 1;
    warehouses * u64::from(part.table.rows()) * part.table.row_bytes()
}

/// The approximate number of bytes in all rows.
pub fn bytes_of_all(form: &Form) -> u64 {
    let of_a_warehouse = |table: Table| u64::from(table.rows()) * table.row_bytes();
    let tables = Table::ALL.into_iter().filter(|table| *table != Table::Item);
    let each: u64 = tables.map(of_a_warehouse).sum();
    of_a_warehouse(Table::Item) + u64::from(form.warehouses) * each
}

/// The number of loaded parts, and the number of all parts.
///
/// # Errors
///
/// Fails if the database reports an error.
pub fn parts_loaded(database: &dyn Database, form: &Form) -> Result<(usize, usize), Failure> {
    let all = parts(form);
    let mut loaded = 0;
    for part in &all {
        loaded += usize::from(database.is_loaded(part)?);
    }
    Ok((loaded, all.len()))
}

/// The approximate number of bytes in the rows that are not loaded yet.
pub fn bytes_left(database: &dyn Database, form: &Form) -> Result<u64, Failure> {
    let mut left = 0;
    for part in parts(form) {
        if !database.is_loaded(&part)? {
            left += bytes_of(&part);
        }
    }
    Ok(left)
}

/// The progress of an import. The threads that import add to these numbers, and other threads may read them.
#[derive(Debug, Default)]
pub struct Progress {
    /// The number of all parts.
    pub parts: AtomicUsize,
    /// The number of loaded parts.
    pub parts_done: AtomicUsize,
    /// The number of rows that were made.
    pub rows: AtomicU64,
    /// The number of bytes in these rows. A number counts as 4 or 8 bytes, and a text as its length.
    pub bytes: AtomicU64,
}

/// Loads the parts of `database` that are not loaded yet. The database must have been made with `form`. If `stop`
/// is set during the import, the import fails with the kind `interrupted`. Parts that are already loaded stay.
pub fn import(
    database: &dyn Database,
    form: &Form,
    threads: usize,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<(), Failure> {
    let all = parts(form);
    let mut left = Vec::new();
    for part in &all {
        if !database.is_loaded(part)? {
            left.push(part);
        }
    }
    progress.parts.store(all.len(), Ordering::Relaxed);
    progress.parts_done.store(all.len() - left.len(), Ordering::Relaxed);
    let population = Population::new(form.seed, form.loaded);
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        while let Some(part) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
            let loaded = database.part_loader(part).and_then(|mut loader| {
                make(&population, part, &mut *loader, stop, progress)?;
                loader.finish()
            });
            if let Err(failure) = loaded {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                // After a failure, the other threads take no further parts.
                next.store(left.len(), Ordering::Relaxed);
                return;
            }
            progress.parts_done.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, left.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Receives the rows of a part one by one while the part is made.
struct Making<'m> {
    loader: &'m mut dyn Loader,
    stop: &'m AtomicBool,
    progress: &'m Progress,
    rows: u64,
    bytes: u64,
}

/// The number of rows between two checks of the stop flag.
const LOOK_ROWS: u64 = 4096;

impl Making<'_> {
    #[inline]
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure> {
        self.rows += 1;
        self.bytes += row.bytes();
        if self.rows.is_multiple_of(LOOK_ROWS) {
            self.tell();
            if self.stop.load(Ordering::Relaxed) {
                return Err(Failure { kind: "interrupted", text: "interrupted".to_owned(), harm: Harm::Session });
            }
        }
        self.loader.row(row)
    }

    fn tell(&mut self) {
        self.progress.rows.fetch_add(std::mem::take(&mut self.rows), Ordering::Relaxed);
        self.progress.bytes.fetch_add(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }
}

/// Makes the rows of a part, in key order.
pub fn make(
    population: &Population,
    part: &Part,
    loader: &mut dyn Loader,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<(), Failure> {
    let mut to = Making { loader, stop, progress, rows: 0, bytes: 0 };
    for warehouse in part.warehouses.clone() {
        make_of_warehouse(population, part.table, warehouse, &mut to)?;
    }
    to.tell();
    Ok(())
}

fn make_of_warehouse(
    population: &Population,
    table: Table,
    warehouse: u32,
    to: &mut Making<'_>,
) -> Result<(), Failure> {
    match table {
        Table::Warehouse => {
            let mut row = Warehouse::default();
            population.warehouse(warehouse, &mut row);
            to.row(Row::Warehouse(&row))?;
        }
        Table::District => {
            let mut row = District::default();
            for district in 1..=DISTRICTS {
                population.district(warehouse, district, &mut row);
                to.row(Row::District(&row))?;
            }
        }
        Table::Customer => {
            let mut row = Customer::default();
            for (district, customer) in pairs(CUSTOMERS) {
                population.customer(warehouse, district, customer, &mut row);
                to.row(Row::Customer(&row))?;
            }
        }
        Table::History => {
            let mut row = History::default();
            for (district, customer) in pairs(CUSTOMERS) {
                population.history(warehouse, district, customer, &mut row);
                to.row(Row::History(&row))?;
            }
        }
        Table::Order | Table::NewOrder | Table::OrderLine => {
            let (mut order, mut line) = (Order::default(), OrderLine::default());
            for district in 1..=DISTRICTS {
                let customers = population.customers_of_orders(warehouse, district);
                for number in 1..=ORDERS {
                    population.order(warehouse, district, number, &customers, &mut order);
                    match table {
                        Table::Order => to.row(Row::Order(&order))?,
                        Table::NewOrder => {
                            if let Some(row) = Population::new_order(&order) {
                                to.row(Row::NewOrder(&row))?;
                            }
                        }
                        _ => {
                            for number in 1..=order.lines {
                                population.order_line(&order, number, &mut line);
                                to.row(Row::OrderLine(&line))?;
                            }
                        }
                    }
                }
            }
        }
        Table::Item => {
            let mut row = Item::default();
            for item in 1..=ITEMS {
                population.item(item, &mut row);
                to.row(Row::Item(&row))?;
            }
        }
        Table::Stock => {
            let mut row = Stock::default();
            for item in 1..=ITEMS {
                population.stock(warehouse, item, &mut row);
                to.row(Row::Stock(&row))?;
            }
        }
    }
    Ok(())
}

/// All pairs of a district and a number from 1 to `count`.
fn pairs(count: u32) -> impl Iterator<Item = (u32, u32)> {
    (1..=DISTRICTS).flat_map(move |district| (1..=count).map(move |number| (district, number)))
}
