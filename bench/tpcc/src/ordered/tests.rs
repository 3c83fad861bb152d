//! TPC-C on a map in memory, which counts what it is asked for.

use super::*;
use crate::database::{Form, Loader, Part};
use crate::import::{Progress, make, parts};
use crate::input::{Drawing, Input, Ticket, Transaction};
use crate::population::Population;
use crate::screen::Screen;
use crate::transactions::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

/// What a store was asked for. Each row of a `get_many` is a get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Asked {
    gets: usize,
    puts: usize,
    deletes: usize,
    ranges: usize,
    entries: usize,
    added: usize,
    depended: usize,
}

#[derive(Default)]
struct Memory {
    tables: [BTreeMap<Vec<u8>, Vec<Vec<u8>>>; 9],
    indexes: [BTreeSet<Vec<u8>>; 2],
    asked: Asked,
}

impl Ordered for &mut Memory {
    type Committed = ();

    fn get<R: Decode>(&mut self, table: Table, parts: Parts, key: &[u8], row: &mut R) -> Result<bool, Failure> {
        self.asked.gets += 1;
        let Some(found) = self.tables[table as usize].get(key) else { return Ok(false) };
        row.decode(key, found.iter().take(parts.most()).map(|part| &part[..]))?;
        Ok(true)
    }

    fn put(&mut self, table: Table, row: &Encoded) -> Result<(), Failure> {
        self.asked.puts += 1;
        self.tables[table as usize].insert(row.key().to_vec(), row.parts().to_vec());
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        self.asked.deletes += 1;
        assert!(self.tables[table as usize].remove(key).is_some(), "a row of {} is removed twice", table.name());
        Ok(())
    }

    fn range(
        &mut self,
        table: Table,
        keys: Range<Vec<u8>>,
        most: u64,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.asked.ranges += 1;
        self.tables[table as usize]
            .range(keys)
            .take(usize::try_from(most).unwrap_or(usize::MAX))
            .try_for_each(|(key, parts)| each(key, &parts[0]))
    }

    fn entries(
        &mut self,
        index: Index,
        prefix: Vec<u8>,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.asked.entries += 1;
        let entries = self.indexes[index as usize].range(prefix.clone()..);
        entries.take_while(|entry| entry.starts_with(&prefix)).try_for_each(|entry| each(entry))
    }

    fn last_entry(&mut self, index: Index, prefix: Vec<u8>) -> Result<Option<u32>, Failure> {
        let mut last = None;
        self.entries(index, prefix, |entry| {
            last = Some(number_of(entry)?);
            Ok(())
        })?;
        Ok(last)
    }

    fn add_entry(&mut self, index: Index, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        self.asked.added += 1;
        assert!(self.indexes[index as usize].insert(key_of(fill)), "an entry is added twice");
        Ok(())
    }

    fn depend_on(&mut self, table: Table, key: &[u8]) -> Result<(), Failure> {
        self.asked.depended += 1;
        assert!(self.tables[table as usize].contains_key(key));
        Ok(())
    }

    fn commit(self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Loads a part into the map.
struct Filling<'m> {
    memory: &'m mut Memory,
    part: &'m Part,
    encoded: Encoded,
    rows: u64,
}

impl Loader for Filling<'_> {
    fn row(&mut self, row: Row<'_>) -> Result<(), Failure> {
        self.rows += 1;
        self.encoded.set(row, self.rows);
        self.memory.tables[self.part.table as usize].insert(self.encoded.key().to_vec(), self.encoded.parts().to_vec());
        match row {
            Row::Customer(row) => self.memory.indexes[Index::CustomersByName as usize]
                .insert(key_of(|key| encoding::name_entry(row, key))),
            Row::Order(row) => {
                self.memory.indexes[Index::OrdersByCustomer as usize].insert(key_of(|key| customer_entry(row, key)))
            }
            _ => true,
        };
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// What `input` should ask for. A delivery delivers `delivered` orders with `lines` lines; a stock level finds `items`
/// different items in the lines that it reads.
fn expected(input: &Input, delivered: usize, lines: usize, items: usize) -> Asked {
    let by_name = |who: &crate::input::Who| usize::from(who.is_name());
    match input {
        Input::NewOrder(input) => {
            let known = input.lines().len() - usize::from(input.is_rolled_back());
            let mut places: Vec<_> = input.lines()[..known].iter().map(|line| (line.supplied_by, line.item)).collect();
            places.sort_unstable();
            places.dedup();
            // Warehouse, district and customer; each line's item and stock. The district, the order twice, the lines,
            // and each stock once.
            Asked {
                gets: 3 + input.lines().len() + known,
                puts: 3 + known + places.len(),
                added: 1,
                ..Asked::default()
            }
        }
        Input::Payment(input) => Asked { gets: 3, puts: 4, entries: by_name(&input.customer), ..Asked::default() },
        Input::OrderStatus(input) => {
            Asked { gets: 2, ranges: 1, entries: 1 + by_name(&input.customer), ..Asked::default() }
        }
        // The order and its customer; the search for the order, and its lines.
        Input::Delivery(_) => Asked {
            gets: 2 * delivered,
            puts: 2 * delivered + lines,
            deletes: delivered,
            ranges: 10 + delivered,
            depended: 10 - delivered,
            ..Asked::default()
        },
        Input::StockLevel(_) => Asked { gets: 1 + items, ranges: 1, ..Asked::default() },
    }
}

#[test]
fn transactions_ask_for_each_row_once() {
    let form = Form { warehouses: 1, seed: 20, loaded: 1_700_000_000_000_000 };
    let (mut memory, progress) = (Memory::default(), Progress::default());
    let population = Population::new(form.seed, form.loaded);
    for part in parts(&form) {
        let mut filling = Filling { memory: &mut memory, part: &part, encoded: Encoded::default(), rows: 0 };
        make(&population, &part, &mut filling, &AtomicBool::new(false), &progress).expect("there is room");
    }
    let (mut work, mut kept, mut screen) = (Work::default(), Kept::default(), Screen::default());
    let drawing = Drawing::of(&form);
    for number in 0..500_u64 {
        let transaction = Transaction::ALL[number as usize % 5];
        let district = (number / 5 % 10) as u8 + 1;
        let ticket = Ticket { seed: number, warehouse: 1, district, transaction, is_even: false };
        let input = ticket.draw(&drawing, form.loaded);
        let items = match &input {
            Input::StockLevel(input) => recent_items(&mut memory, input.district),
            _ => 0,
        };
        let (delivered, lines) = to_deliver(&mut memory);
        memory.asked = Asked::default();
        let mut rows = RowsOf::new(&mut memory, &mut kept);
        work.run(&mut rows, &input, &mut screen).unwrap_or_else(|failure| panic!("{input:?}: {failure}"));
        rows.store.commit().expect("it is a map");
        let asked = memory.asked;
        assert_eq!(asked, expected(&input, delivered, lines, items), "{input:?}");
    }
}

#[test]
fn a_delivery_without_orders_depends_on_the_districts() {
    let form = Form { warehouses: 1, seed: 20, loaded: 1_700_000_000_000_000 };
    let (mut memory, mut kept) = (Memory::default(), Kept::default());
    let population = Population::new(form.seed, form.loaded);
    for part in parts(&form).iter().filter(|part| part.table == Table::District) {
        let mut filling = Filling { memory: &mut memory, part, encoded: Encoded::default(), rows: 0 };
        make(&population, part, &mut filling, &AtomicBool::new(false), &Progress::default()).expect("there is room");
    }
    let ticket = Ticket { seed: 1, warehouse: 1, district: 1, transaction: Transaction::Delivery, is_even: false };
    let input = ticket.draw(&Drawing::of(&form), form.loaded);
    let mut rows = RowsOf::new(&mut memory, &mut kept);
    Work::default().run(&mut rows, &input, &mut Screen::default()).expect("there is nothing to deliver");
    assert_eq!(memory.asked, Asked { ranges: 10, depended: 10, ..Asked::default() });
}

/// The number of different items in the last twenty orders of a district.
fn recent_items(mut memory: &mut Memory, district: u32) -> usize {
    let of = DistrictId { warehouse: 1, district };
    let (mut row, mut line, mut items) = (District::default(), OrderLine::default(), BTreeSet::new());
    let key = key_of(|key| district_key(of, key));
    assert!(memory.get(Table::District, Parts::All, &key, &mut row).expect("it is a map"));
    let item = |key: &[u8], value: &[u8]| {
        line.decode(key, [value])?;
        items.insert(line.item);
        Ok(())
    };
    let keys = orders(of, row.next_order - 20, row.next_order);
    memory.range(Table::OrderLine, keys, u64::MAX, item).expect("it is a map");
    items.len()
}

/// How many orders the next delivery delivers, and how many lines these have.
fn to_deliver(mut memory: &mut Memory) -> (usize, usize) {
    let (mut delivered, mut lines) = (0, 0);
    for district in 1..=10 {
        let of = DistrictId { warehouse: 1, district };
        let mut oldest = None;
        let found = memory.range(Table::NewOrder, orders(of, 0, u32::MAX), 1, |key, _| {
            oldest = Some(number_of(key)?);
            Ok(())
        });
        found.expect("it is a map");
        let Some(order) = oldest else { continue };
        delivered += 1;
        let count = |_: &[u8], _: &[u8]| {
            lines += 1;
            Ok(())
        };
        memory.range(Table::OrderLine, orders(of, order, order + 1), u64::MAX, count).expect("it is a map");
    }
    (delivered, lines)
}
