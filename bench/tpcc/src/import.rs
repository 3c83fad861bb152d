//! Fills a database with its first population: part by part, on several threads. Each part takes effect as a whole, so
//! that an import that was interrupted goes on with the parts that are missing.

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

/// A part has about this number of bytes, unless one warehouse has more.
const PART_BYTES: u64 = 256 << 20;

/// The parts of a database, those with the most rows first.
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

/// About how many bytes the rows of a part have.
fn bytes_of(part: &Part) -> u64 {
    let warehouses = u64::from(part.warehouses.end() - part.warehouses.start()) + 1;
    warehouses * u64::from(part.table.rows()) * part.table.row_bytes()
}

/// About how many bytes all rows have.
pub fn bytes_of_all(form: &Form) -> u64 {
    let of_a_warehouse = |table: Table| u64::from(table.rows()) * table.row_bytes();
    let tables = Table::ALL.into_iter().filter(|table| *table != Table::Item);
    let each: u64 = tables.map(of_a_warehouse).sum();
    of_a_warehouse(Table::Item) + u64::from(form.warehouses) * each
}

/// How many parts are loaded, and how many they are in all.
///
/// # Errors
///
/// The errors of the database.
pub fn parts_loaded(database: &dyn Database, form: &Form) -> Result<(usize, usize), Failure> {
    let all = parts(form);
    let mut loaded = 0;
    for part in &all {
        loaded += usize::from(database.is_loaded(part)?);
    }
    Ok((loaded, all.len()))
}

/// About how many bytes the rows have that are not loaded yet.
pub fn bytes_left(database: &dyn Database, form: &Form) -> Result<u64, Failure> {
    let mut left = 0;
    for part in parts(form) {
        if !database.is_loaded(&part)? {
            left += bytes_of(&part);
        }
    }
    Ok(left)
}

/// How far an import is. Threads add to it, and others may look at it.
#[derive(Debug, Default)]
pub struct Progress {
    /// All parts.
    pub parts: AtomicUsize,
    /// Parts that are loaded.
    pub parts_done: AtomicUsize,
    /// Rows that were made.
    pub rows: AtomicU64,
    /// Bytes of these rows: numbers as 4 or 8, texts as they are.
    pub bytes: AtomicU64,
}

/// Loads the parts of `database`, which was made as `form` says, that are not loaded yet. It fails with the kind
/// `interrupted` if `stop` is set meanwhile; what was loaded stays.
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
                // The others need not go on.
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

/// What a part that is being made goes through.
struct Making<'m> {
    loader: &'m mut dyn Loader,
    stop: &'m AtomicBool,
    progress: &'m Progress,
    rows: u64,
    bytes: u64,
}

/// Rows between two looks at the flag.
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

/// Makes the rows of a part, in the order of their keys.
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

/// All districts with the numbers from 1 to `count`.
fn pairs(count: u32) -> impl Iterator<Item = (u32, u32)> {
    (1..=DISTRICTS).flat_map(move |district| (1..=count).map(move |number| (district, number)))
}
