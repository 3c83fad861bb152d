//! Encodes rows as keys and values of an engine that stores bytes. Keys and values are tuples of the crate `rows`,
//! so keys sort in the order of their fields, and indexes can be declared on fields of keys and values.
//!
//! ```text
//!   table        key                                              value
//!   warehouse    warehouse                                        name, address, tax, year_to_date
//!   district     warehouse, district                              name, address, tax, year_to_date, next_order
//!   customer     warehouse, district, customer                    last, first, middle, has_good_credit, discount, balance,
//!                                                                 paid_in_year, payments, deliveries
//!                                                       part 1:   address, phone, since, credit_limit, data
//!   history      warehouse, district, customer's warehouse and    date, amount, data
//!                district, customer, a number
//!   new_order    warehouse, district, order                       nothing
//!   orders       warehouse, district, order                       customer, entered, carrier, lines, is_all_local
//!   order_line   warehouse, district, order, line                 item, supplied_by, delivered, quantity, amount,
//!                                                                 district_info
//!   item         item                                             image, name, price, data
//!   stock        warehouse, item                                  quantity, sold, orders, remote_orders
//!                                                       part 1:   districts, data
//! ```

use crate::database::Row;
use crate::schema::{
    Address, Customer, DISTRICTS, District, History, Item, NewOrder, Order, OrderLine, Stock, Table, Warehouse,
};
use crate::text::Text;
use crate::transactions::{DistrictId, wrong};
use harness::Failure;
use rows::{DecodeField, Decoder, Mistake, Tuple};
use std::borrow::Cow;
use std::fmt;

#[cfg(test)]
mod tests;

/// The most parts into which a table splits the values of its rows.
pub const PARTS: usize = 2;

/// The names of a table's column groups. The list is empty if the rows of the table are not split into parts.
pub fn groups(table: Table) -> &'static [&'static str] {
    match table {
        Table::Customer => &["account", "profile"],
        Table::Stock => &["quantity", "data"],
        _ => &[],
    }
}

/// How many parts of a row are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// The first part, which is the whole row in tables whose rows are not split.
    First,
    /// All parts.
    All,
}

impl Parts {
    /// The greatest number of parts.
    pub fn most(self) -> usize {
        match self {
            Self::First => 1,
            Self::All => PARTS,
        }
    }
}

/// Declares the index of customers by name. The keys of the index consist of warehouse, district, last name and
/// first name.
pub const CUSTOMERS_BY_NAME: &str = "key.tuple(u32, u8, u32)[0], key.tuple(u32, u8, u32)[1], \
     value.tuple(bytes, bytes, bytes, bool, u32, i64, i64, u32, u32)[0], \
     value.tuple(bytes, bytes, bytes, bool, u32, i64, i64, u32, u32)[1]";

/// Declares the index of orders by customer. The keys of the index consist of warehouse, district and customer.
pub const ORDERS_BY_CUSTOMER: &str = "key.tuple(u32, u8, u32)[0], key.tuple(u32, u8, u32)[1], \
     value.tuple(u32, i64, u8?, u8, bool)[0]";

/// A row as bytes.
#[derive(Clone, Debug, Default)]
pub struct Encoded {
    key: Vec<u8>,
    parts: [Vec<u8>; PARTS],
    count: usize,
}

impl Encoded {
    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The parts of the value.
    pub fn parts(&self) -> &[Vec<u8>] {
        &self.parts[..self.count]
    }

    /// Encodes `row`. `unique` distinguishes a payment from other payments of the same customer.
    pub fn set(&mut self, row: Row<'_>, unique: u64) {
        self.key.clear();
        self.parts.iter_mut().for_each(Vec::clear);
        self.count = 1;
        let Self { key, parts: [first, second], count } = self;
        match row {
            Row::Warehouse(row) => {
                (row.warehouse,).encode(key);
                text(&row.name, first);
                address(&row.address, first);
                (row.tax, row.year_to_date).encode(first);
            }
            Row::District(row) => {
                district_key(DistrictId { warehouse: row.warehouse, district: row.district }, key);
                text(&row.name, first);
                address(&row.address, first);
                (row.tax, row.year_to_date, row.next_order).encode(first);
            }
            Row::Customer(row) => {
                *count = 2;
                let of = DistrictId { warehouse: row.warehouse, district: row.district };
                numbered_key(of, row.customer, key);
                text(&row.last, first);
                text(&row.first, first);
                text(&row.middle, first);
                let Customer { has_good_credit, discount, balance, paid_in_year, payments, deliveries, .. } = *row;
                (has_good_credit, discount, balance, paid_in_year, payments, deliveries).encode(first);
                address(&row.address, second);
                text(&row.phone, second);
                (row.since, row.credit_limit).encode(second);
                text(&row.data, second);
            }
            Row::History(row) => {
                let (at, home) = (row.district as u8, row.customer_district as u8);
                (row.warehouse, at, row.customer_warehouse, home, row.customer, unique).encode(key);
                (row.date, row.amount).encode(first);
                text(&row.data, first);
            }
            Row::NewOrder(row) => {
                let of = DistrictId { warehouse: row.warehouse, district: row.district };
                numbered_key(of, row.order, key);
            }
            Row::Order(row) => {
                let of = DistrictId { warehouse: row.warehouse, district: row.district };
                numbered_key(of, row.order, key);
                let carrier = row.carrier.map(|carrier| carrier as u8);
                (row.customer, row.entered, carrier, row.lines as u8, row.is_all_local).encode(first);
            }
            Row::OrderLine(row) => {
                let of = DistrictId { warehouse: row.warehouse, district: row.district };
                numbered_key(of, row.order, key);
                (row.line as u8,).encode(key);
                (row.item, row.supplied_by, row.delivered, row.quantity as u8, row.amount).encode(first);
                text(&row.district_info, first);
            }
            Row::Item(row) => {
                (row.item,).encode(key);
                (row.image, row.price).encode(first);
                text(&row.name, first);
                text(&row.data, first);
            }
            Row::Stock(row) => {
                *count = 2;
                stock_key(row.warehouse, row.item, key);
                (row.quantity, row.sold, row.orders, row.remote_orders).encode(first);
                row.districts.iter().for_each(|info| text(info, second));
                text(&row.data, second);
            }
        }
    }
}

/// Appends the key of a district.
#[inline]
pub fn district_key(of: DistrictId, key: &mut Vec<u8>) {
    (of.warehouse, of.district as u8).encode(key);
}

/// Appends the key of a customer or an order.
#[inline]
pub fn numbered_key(of: DistrictId, number: u32, key: &mut Vec<u8>) {
    (of.warehouse, of.district as u8, number).encode(key);
}

/// Appends the key of a stock.
#[inline]
pub fn stock_key(warehouse: u32, item: u32, key: &mut Vec<u8>) {
    (warehouse, item).encode(key);
}

/// Appends the common prefix of all keys in [`CUSTOMERS_BY_NAME`] with the last name `last` in the district `of`.
pub fn name_key(of: DistrictId, last: &Text<16>, key: &mut Vec<u8>) {
    district_key(of, key);
    text(last, key);
}

/// Returns the number at the end of `key`: the key of a customer or an order, or an index entry that ends with that
/// key's number.
pub fn number_of(key: &[u8]) -> Result<u32, Failure> {
    let number = key.last_chunk().ok_or_else(|| wrong("a key is too short"))?;
    Ok(u32::from_be_bytes(*number))
}

/// Reusable buffers for encoded rows and keys.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// An encoded row.
    pub encoded: Encoded,
    key: Vec<u8>,
    keys: Vec<Vec<u8>>,
}

impl Scratch {
    /// Makes a key with `fill` and returns it.
    pub fn key(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        self.key.clear();
        fill(&mut self.key);
        &self.key
    }

    /// Makes `count` keys with `fill` and returns them.
    pub fn keys(&mut self, count: usize, mut fill: impl FnMut(usize, &mut Vec<u8>)) -> &[Vec<u8>] {
        self.keys.resize_with(self.keys.len().max(count), Vec::new);
        for (number, key) in self.keys[..count].iter_mut().enumerate() {
            key.clear();
            fill(number, key);
        }
        &self.keys[..count]
    }
}

/// Appends the key of a warehouse. The key of each row of this warehouse begins with these bytes.
#[inline]
pub fn warehouse_key(warehouse: u32, key: &mut Vec<u8>) {
    (warehouse,).encode(key);
}

/// Appends the key of an item.
#[inline]
pub fn item_key(item: u32, key: &mut Vec<u8>) {
    (item,).encode(key);
}

/// Appends a customer's entry in an index by name, for stores that maintain this index themselves. The entry ends
/// with the customer's number.
pub fn name_entry(row: &Customer, entry: &mut Vec<u8>) {
    name_key(DistrictId { warehouse: row.warehouse, district: row.district }, &row.last, entry);
    text(&row.first, entry);
    (row.customer,).encode(entry);
}

/// Appends an order's entry in an index by customer, for stores that maintain this index themselves. The entry ends
/// with the order's number.
pub fn customer_entry(row: &Order, entry: &mut Vec<u8>) {
    numbered_key(DistrictId { warehouse: row.warehouse, district: row.district }, row.customer, entry);
    (row.order,).encode(entry);
}

#[inline]
fn text<const N: usize>(text: &Text<N>, out: &mut Vec<u8>) {
    (text.as_bytes(),).encode(out);
}

fn address(of: &Address, out: &mut Vec<u8>) {
    text(&of.street_1, out);
    text(&of.street_2, out);
    text(&of.city, out);
    text(&of.state, out);
    text(&of.zip, out);
}

/// A row that can be decoded from its bytes.
pub trait Decode: Sized {
    /// Decodes the row with the key `key` and the parts `parts`. Columns of parts that are not given stay
    /// unchanged.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not an encoded row of the type.
    fn decode<'b>(&mut self, key: &'b [u8], parts: impl IntoIterator<Item = &'b [u8]>) -> Result<(), Failure> {
        let mut key = Reader::new(key);
        let read = self.read(&mut key, &mut parts.into_iter().map(Reader::new));
        match read {
            Ok(()) if key.is_at_end() => Ok(()),
            Ok(()) => Err(wrong("a key is longer than TPC-C has it")),
            Err(why) => Err(wrong(format!("a row is not one of TPC-C: {why}"))),
        }
    }

    /// Reads the fields of the key and of the parts.
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow>;
}

/// Why bytes are not an encoded row.
#[derive(Debug)]
pub enum NotARow {
    /// A field has a wrong encoding.
    Field(Mistake),
    /// A text is longer than its column allows.
    LongText,
    /// A part is missing, or has bytes after its last field.
    Part,
}

impl fmt::Display for NotARow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(mistake) => mistake.fmt(out),
            Self::LongText => out.write_str("a text is longer than its column"),
            Self::Part => out.write_str("a part of it is missing, or too long"),
        }
    }
}

/// Reads fields, one after the other.
#[derive(Debug)]
pub struct Reader<'b>(Decoder<'b>);

impl<'b> Reader<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Self(Decoder::new(bytes))
    }

    fn is_at_end(&self) -> bool {
        self.0.rest().is_empty()
    }

    #[inline]
    fn take<F: DecodeField<'b>>(&mut self) -> Result<F, NotARow> {
        F::decode(&mut self.0).map_err(NotARow::Field)
    }

    #[inline]
    fn byte(&mut self) -> Result<u32, NotARow> {
        self.take::<u8>().map(u32::from)
    }

    #[inline]
    fn text<const N: usize>(&mut self, text: &mut Text<N>) -> Result<(), NotARow> {
        let bytes: Cow<'b, [u8]> = self.take()?;
        if bytes.len() > N {
            return Err(NotARow::LongText);
        }
        text.set(&bytes);
        Ok(())
    }

    fn address(&mut self, address: &mut Address) -> Result<(), NotARow> {
        self.text(&mut address.street_1)?;
        self.text(&mut address.street_2)?;
        self.text(&mut address.city)?;
        self.text(&mut address.state)?;
        self.text(&mut address.zip)
    }

    fn end(self) -> Result<(), NotARow> {
        if self.is_at_end() { Ok(()) } else { Err(NotARow::Part) }
    }
}

/// Returns the next part, or an error if it is missing.
fn only<'b>(parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<Reader<'b>, NotARow> {
    parts.next().ok_or(NotARow::Part)
}

impl Decode for Warehouse {
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow> {
        self.warehouse = key.take()?;
        let mut value = only(parts)?;
        value.text(&mut self.name)?;
        value.address(&mut self.address)?;
        (self.tax, self.year_to_date) = (value.take()?, value.take()?);
        value.end()
    }
}

impl Decode for District {
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow> {
        (self.warehouse, self.district) = (key.take()?, key.byte()?);
        let mut value = only(parts)?;
        value.text(&mut self.name)?;
        value.address(&mut self.address)?;
        (self.tax, self.year_to_date, self.next_order) = (value.take()?, value.take()?, value.take()?);
        value.end()
    }
}

impl Decode for Customer {
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow> {
        (self.warehouse, self.district, self.customer) = (key.take()?, key.byte()?, key.take()?);
        let mut account = only(parts)?;
        account.text(&mut self.last)?;
        account.text(&mut self.first)?;
        account.text(&mut self.middle)?;
        (self.has_good_credit, self.discount) = (account.take()?, account.take()?);
        (self.balance, self.paid_in_year) = (account.take()?, account.take()?);
        (self.payments, self.deliveries) = (account.take()?, account.take()?);
        account.end()?;
        let Some(mut profile) = parts.next() else { return Ok(()) };
        profile.address(&mut self.address)?;
        profile.text(&mut self.phone)?;
        (self.since, self.credit_limit) = (profile.take()?, profile.take()?);
        profile.text(&mut self.data)?;
        profile.end()
    }
}

impl Decode for History {
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow> {
        (self.warehouse, self.district) = (key.take()?, key.byte()?);
        (self.customer_warehouse, self.customer_district) = (key.take()?, key.byte()?);
        self.customer = key.take()?;
        key.take::<u64>()?;
        let mut value = only(parts)?;
        (self.date, self.amount) = (value.take()?, value.take()?);
        value.text(&mut self.data)?;
        value.end()
    }
}

impl Decode for NewOrder {
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow> {
        (self.warehouse, self.district, self.order) = (key.take()?, key.byte()?, key.take()?);
        only(parts)?.end()
    }
}

impl Decode for Order {
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow> {
        (self.warehouse, self.district, self.order) = (key.take()?, key.byte()?, key.take()?);
        let mut value = only(parts)?;
        (self.customer, self.entered) = (value.take()?, value.take()?);
        self.carrier = value.take::<Option<u8>>()?.map(u32::from);
        (self.lines, self.is_all_local) = (value.byte()?, value.take()?);
        value.end()
    }
}

impl Decode for OrderLine {
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow> {
        (self.warehouse, self.district, self.order) = (key.take()?, key.byte()?, key.take()?);
        self.line = key.byte()?;
        let mut value = only(parts)?;
        (self.item, self.supplied_by, self.delivered) = (value.take()?, value.take()?, value.take()?);
        (self.quantity, self.amount) = (value.byte()?, value.take()?);
        value.text(&mut self.district_info)?;
        value.end()
    }
}

impl Decode for Item {
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow> {
        self.item = key.take()?;
        let mut value = only(parts)?;
        (self.image, self.price) = (value.take()?, value.take()?);
        value.text(&mut self.name)?;
        value.text(&mut self.data)?;
        value.end()
    }
}

/// The quantity of a stock, for readers that need nothing else of the row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantity(pub i32);

impl Decode for Quantity {
    /// The quantity is the first field of the first part.
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow> {
        key.take::<u32>()?;
        key.take::<u32>()?;
        self.0 = only(parts)?.take()?;
        Ok(())
    }
}

impl Decode for Stock {
    fn read<'b>(&mut self, key: &mut Reader<'b>, parts: &mut impl Iterator<Item = Reader<'b>>) -> Result<(), NotARow> {
        (self.warehouse, self.item) = (key.take()?, key.take()?);
        let mut quantity = only(parts)?;
        (self.quantity, self.sold) = (quantity.take()?, quantity.take()?);
        (self.orders, self.remote_orders) = (quantity.take()?, quantity.take()?);
        quantity.end()?;
        let Some(mut data) = parts.next() else { return Ok(()) };
        for info in &mut self.districts[..DISTRICTS as usize] {
            data.text(info)?;
        }
        data.text(&mut self.data)?;
        data.end()
    }
}
