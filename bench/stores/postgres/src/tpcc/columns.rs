//! The columns of the nine tables, named as in the specification, and the binary encoding of their values.
//!
//! Money is in cents (`int8`) and rates are in ten-thousandths (`int4`), so nothing is rounded. COPY, INSERT and
//! SELECT use the same encoding:
//!
//! ```text
//! length  value       of each column, in the order of the table
//! i32                 -1: null
//! ```
//!
//! Values from a database are checked: one that does not fit its column is [`Malformed`].

use crate::wire::{Malformed, Values, put_bytes};
use ::tpcc::schema::{
    Address, Customer, District, History, Item, Micros, NewOrder, Order, OrderLine, Stock, Table, Warehouse,
};
use ::tpcc::{Row, Text};

/// Microseconds from 1970 to 2000, from which PostgreSQL counts its times.
pub const MICROS_2000: Micros = 946_684_800_000_000;

/// The name and the type of a column.
pub type Column = (&'static str, &'static str);

/// Stands in a column's type for the dialect's collation that compares bytes.
pub const BYTES_COLLATION: &str = "{bytes}";

/// The columns of `table`.
pub fn columns(table: Table) -> &'static [Column] {
    match table {
        Table::Warehouse => &[
            ("w_id", "int4 NOT NULL"),
            ("w_name", "varchar(10) NOT NULL"),
            ("w_street_1", "varchar(20) NOT NULL"),
            ("w_street_2", "varchar(20) NOT NULL"),
            ("w_city", "varchar(20) NOT NULL"),
            ("w_state", "char(2) NOT NULL"),
            ("w_zip", "char(9) NOT NULL"),
            ("w_tax", "int4 NOT NULL"),
            ("w_ytd", "int8 NOT NULL"),
        ],
        Table::District => &[
            ("d_w_id", "int4 NOT NULL"),
            ("d_id", "int4 NOT NULL"),
            ("d_name", "varchar(10) NOT NULL"),
            ("d_street_1", "varchar(20) NOT NULL"),
            ("d_street_2", "varchar(20) NOT NULL"),
            ("d_city", "varchar(20) NOT NULL"),
            ("d_state", "char(2) NOT NULL"),
            ("d_zip", "char(9) NOT NULL"),
            ("d_tax", "int4 NOT NULL"),
            ("d_ytd", "int8 NOT NULL"),
            ("d_next_o_id", "int4 NOT NULL"),
        ],
        Table::Customer => &[
            ("c_w_id", "int4 NOT NULL"),
            ("c_d_id", "int4 NOT NULL"),
            ("c_id", "int4 NOT NULL"),
            ("c_first", "varchar(16){bytes} NOT NULL"),
            ("c_middle", "char(2) NOT NULL"),
            ("c_last", "varchar(16){bytes} NOT NULL"),
            ("c_street_1", "varchar(20) NOT NULL"),
            ("c_street_2", "varchar(20) NOT NULL"),
            ("c_city", "varchar(20) NOT NULL"),
            ("c_state", "char(2) NOT NULL"),
            ("c_zip", "char(9) NOT NULL"),
            ("c_phone", "char(16) NOT NULL"),
            ("c_since", "timestamptz NOT NULL"),
            ("c_credit", "char(2) NOT NULL"),
            ("c_credit_lim", "int8 NOT NULL"),
            ("c_discount", "int4 NOT NULL"),
            ("c_balance", "int8 NOT NULL"),
            ("c_ytd_payment", "int8 NOT NULL"),
            ("c_payment_cnt", "int4 NOT NULL"),
            ("c_delivery_cnt", "int4 NOT NULL"),
            ("c_data", "varchar(500) NOT NULL"),
        ],
        Table::History => &[
            ("h_c_id", "int4 NOT NULL"),
            ("h_c_d_id", "int4 NOT NULL"),
            ("h_c_w_id", "int4 NOT NULL"),
            ("h_d_id", "int4 NOT NULL"),
            ("h_w_id", "int4 NOT NULL"),
            ("h_date", "timestamptz NOT NULL"),
            ("h_amount", "int8 NOT NULL"),
            ("h_data", "varchar(24) NOT NULL"),
        ],
        Table::NewOrder => &[("no_w_id", "int4 NOT NULL"), ("no_d_id", "int4 NOT NULL"), ("no_o_id", "int4 NOT NULL")],
        Table::Order => &[
            ("o_w_id", "int4 NOT NULL"),
            ("o_d_id", "int4 NOT NULL"),
            ("o_id", "int4 NOT NULL"),
            ("o_c_id", "int4 NOT NULL"),
            ("o_entry_d", "timestamptz NOT NULL"),
            ("o_carrier_id", "int4"),
            ("o_ol_cnt", "int4 NOT NULL"),
            ("o_all_local", "int4 NOT NULL"),
        ],
        Table::OrderLine => &[
            ("ol_w_id", "int4 NOT NULL"),
            ("ol_d_id", "int4 NOT NULL"),
            ("ol_o_id", "int4 NOT NULL"),
            ("ol_number", "int4 NOT NULL"),
            ("ol_i_id", "int4 NOT NULL"),
            ("ol_supply_w_id", "int4 NOT NULL"),
            ("ol_delivery_d", "timestamptz"),
            ("ol_quantity", "int4 NOT NULL"),
            ("ol_amount", "int8 NOT NULL"),
            ("ol_dist_info", "char(24) NOT NULL"),
        ],
        Table::Item => &[
            ("i_id", "int4 NOT NULL"),
            ("i_im_id", "int4 NOT NULL"),
            ("i_name", "varchar(24) NOT NULL"),
            ("i_price", "int8 NOT NULL"),
            ("i_data", "varchar(50) NOT NULL"),
        ],
        Table::Stock => &[
            ("s_w_id", "int4 NOT NULL"),
            ("s_i_id", "int4 NOT NULL"),
            ("s_quantity", "int4 NOT NULL"),
            ("s_dist_01", "char(24) NOT NULL"),
            ("s_dist_02", "char(24) NOT NULL"),
            ("s_dist_03", "char(24) NOT NULL"),
            ("s_dist_04", "char(24) NOT NULL"),
            ("s_dist_05", "char(24) NOT NULL"),
            ("s_dist_06", "char(24) NOT NULL"),
            ("s_dist_07", "char(24) NOT NULL"),
            ("s_dist_08", "char(24) NOT NULL"),
            ("s_dist_09", "char(24) NOT NULL"),
            ("s_dist_10", "char(24) NOT NULL"),
            ("s_ytd", "int8 NOT NULL"),
            ("s_order_cnt", "int4 NOT NULL"),
            ("s_remote_cnt", "int4 NOT NULL"),
            ("s_data", "varchar(50) NOT NULL"),
        ],
    }
}

/// The names of the columns of `table`, with commas between them.
pub fn names(table: Table) -> String {
    columns(table).iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The columns of the primary key. The table of payments has none.
pub fn key(table: Table) -> Option<&'static str> {
    match table {
        Table::Warehouse => Some("w_id"),
        Table::District => Some("d_w_id, d_id"),
        Table::Customer => Some("c_w_id, c_d_id, c_id"),
        Table::History => None,
        Table::NewOrder => Some("no_w_id, no_d_id, no_o_id"),
        Table::Order => Some("o_w_id, o_d_id, o_id"),
        Table::OrderLine => Some("ol_w_id, ol_d_id, ol_o_id, ol_number"),
        Table::Item => Some("i_id"),
        Table::Stock => Some("s_w_id, s_i_id"),
    }
}

/// Appends the encoded values of a row.
struct Put<'o>(&'o mut Vec<u8>);

impl Put<'_> {
    #[inline]
    fn int(&mut self, value: u32) -> &mut Self {
        put_bytes(self.0, &value.to_be_bytes());
        self
    }

    #[inline]
    fn long(&mut self, value: i64) -> &mut Self {
        put_bytes(self.0, &value.to_be_bytes());
        self
    }

    #[inline]
    fn time(&mut self, value: Micros) -> &mut Self {
        self.long(value - MICROS_2000)
    }

    #[inline]
    fn bytes(&mut self, value: &[u8]) -> &mut Self {
        put_bytes(self.0, value);
        self
    }

    #[inline]
    fn text<const N: usize>(&mut self, value: &Text<N>) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    #[inline]
    fn null(&mut self) -> &mut Self {
        self.0.extend_from_slice(&(-1_i32).to_be_bytes());
        self
    }

    fn address(&mut self, value: &Address) -> &mut Self {
        let Address { street_1, street_2, city, state, zip } = value;
        self.text(street_1).text(street_2).text(city).text(state).text(zip)
    }
}

/// Appends the encoded values of a row to `out`.
pub fn put(row: Row<'_>, out: &mut Vec<u8>) {
    let mut put = Put(out);
    match row {
        Row::Warehouse(row) => {
            put.int(row.warehouse).text(&row.name).address(&row.address).int(row.tax).long(row.year_to_date);
        }
        Row::District(row) => {
            put.int(row.warehouse).int(row.district).text(&row.name).address(&row.address);
            put.int(row.tax).long(row.year_to_date).int(row.next_order);
        }
        Row::Customer(row) => {
            put.int(row.warehouse).int(row.district).int(row.customer);
            put.text(&row.first).text(&row.middle).text(&row.last).address(&row.address);
            put.text(&row.phone).time(row.since).bytes(if row.has_good_credit { b"GC" } else { b"BC" });
            put.long(row.credit_limit).int(row.discount).long(row.balance).long(row.paid_in_year);
            put.int(row.payments).int(row.deliveries).text(&row.data);
        }
        Row::History(row) => {
            put.int(row.customer).int(row.customer_district).int(row.customer_warehouse);
            put.int(row.district).int(row.warehouse).time(row.date).long(row.amount).text(&row.data);
        }
        Row::NewOrder(row) => {
            put.int(row.warehouse).int(row.district).int(row.order);
        }
        Row::Order(row) => {
            put.int(row.warehouse).int(row.district).int(row.order).int(row.customer).time(row.entered);
            match row.carrier {
                Some(carrier) => put.int(carrier),
                None => put.null(),
            };
            put.int(row.lines).int(row.is_all_local.into());
        }
        Row::OrderLine(row) => {
            put.int(row.warehouse).int(row.district).int(row.order).int(row.line).int(row.item).int(row.supplied_by);
            match row.delivered {
                Some(delivered) => put.time(delivered),
                None => put.null(),
            };
            put.int(row.quantity).long(row.amount).text(&row.district_info);
        }
        Row::Item(row) => {
            put.int(row.item).int(row.image).text(&row.name).long(row.price).text(&row.data);
        }
        Row::Stock(row) => {
            put.int(row.warehouse).int(row.item).int(row.quantity.cast_unsigned());
            for info in &row.districts {
                put.text(info);
            }
            put.long(row.sold.cast_signed()).int(row.orders).int(row.remote_orders).text(&row.data);
        }
    }
}

const NULL: Malformed = Malformed("no value in a column that always has one");

/// Takes the next value, an integer. Computed integers have 4 bytes from some servers and 8 bytes from others.
#[inline]
pub fn long(values: &mut Values<'_>) -> Result<i64, Malformed> {
    optional_long(values)?.ok_or(NULL)
}

#[inline]
fn optional_long(values: &mut Values<'_>) -> Result<Option<i64>, Malformed> {
    let Some(bytes) = values.value()? else { return Ok(None) };
    match (<[u8; 4]>::try_from(bytes), <[u8; 8]>::try_from(bytes)) {
        (Ok(bytes), _) => Ok(Some(i32::from_be_bytes(bytes).into())),
        (_, Ok(bytes)) => Ok(Some(i64::from_be_bytes(bytes))),
        _ => Err(Malformed("a number that has neither four nor eight bytes")),
    }
}

/// Takes the next value, an unsigned 32-bit number.
#[inline]
pub fn int(values: &mut Values<'_>) -> Result<u32, Malformed> {
    narrow(long(values)?)
}

fn narrow<T: TryFrom<i64>>(number: i64) -> Result<T, Malformed> {
    T::try_from(number).map_err(|_| Malformed("a number that its column cannot have"))
}

/// Takes the next value, a signed 32-bit number.
#[inline]
pub fn signed_int(values: &mut Values<'_>) -> Result<i32, Malformed> {
    narrow(long(values)?)
}

/// Takes the next value, an unsigned 32-bit number or NULL.
#[inline]
pub fn optional_int(values: &mut Values<'_>) -> Result<Option<u32>, Malformed> {
    optional_long(values)?.map(narrow).transpose()
}

/// Takes the next value, a text.
#[inline]
pub fn bytes<'v>(values: &mut Values<'v>) -> Result<&'v [u8], Malformed> {
    values.value()?.ok_or(NULL)
}

/// Takes the next value, a text of at most `N` bytes.
#[inline]
pub fn text<const N: usize>(values: &mut Values<'_>, text: &mut Text<N>) -> Result<(), Malformed> {
    let bytes = bytes(values)?;
    if bytes.len() > N {
        return Err(Malformed("a text that is longer than its column"));
    }
    text.set(bytes);
    Ok(())
}

fn time(values: &mut Values<'_>) -> Result<Micros, Malformed> {
    Ok(long(values)?.wrapping_add(MICROS_2000))
}

fn address(values: &mut Values<'_>, address: &mut Address) -> Result<(), Malformed> {
    text(values, &mut address.street_1)?;
    text(values, &mut address.street_2)?;
    text(values, &mut address.city)?;
    text(values, &mut address.state)?;
    text(values, &mut address.zip)
}

/// A row that can be decoded from the values of its table.
pub trait Take {
    /// Overwrites this row with the decoded values.
    fn take(&mut self, values: &mut Values<'_>) -> Result<(), Malformed>;
}

impl Take for Warehouse {
    fn take(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        self.warehouse = int(values)?;
        text(values, &mut self.name)?;
        address(values, &mut self.address)?;
        self.tax = int(values)?;
        self.year_to_date = long(values)?;
        Ok(())
    }
}

impl Take for District {
    fn take(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        (self.warehouse, self.district) = (int(values)?, int(values)?);
        text(values, &mut self.name)?;
        address(values, &mut self.address)?;
        self.tax = int(values)?;
        self.year_to_date = long(values)?;
        self.next_order = int(values)?;
        Ok(())
    }
}

impl Take for Customer {
    fn take(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        (self.warehouse, self.district, self.customer) = (int(values)?, int(values)?, int(values)?);
        text(values, &mut self.first)?;
        text(values, &mut self.middle)?;
        text(values, &mut self.last)?;
        address(values, &mut self.address)?;
        text(values, &mut self.phone)?;
        self.since = time(values)?;
        self.has_good_credit = bytes(values)? == b"GC";
        self.credit_limit = long(values)?;
        self.discount = int(values)?;
        (self.balance, self.paid_in_year) = (long(values)?, long(values)?);
        (self.payments, self.deliveries) = (int(values)?, int(values)?);
        text(values, &mut self.data)
    }
}

impl Take for History {
    fn take(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        (self.customer, self.customer_district, self.customer_warehouse) = (int(values)?, int(values)?, int(values)?);
        (self.district, self.warehouse) = (int(values)?, int(values)?);
        self.date = time(values)?;
        self.amount = long(values)?;
        text(values, &mut self.data)
    }
}

impl Take for NewOrder {
    fn take(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        (self.warehouse, self.district, self.order) = (int(values)?, int(values)?, int(values)?);
        Ok(())
    }
}

impl Take for Order {
    fn take(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        (self.warehouse, self.district, self.order) = (int(values)?, int(values)?, int(values)?);
        self.customer = int(values)?;
        self.entered = time(values)?;
        self.carrier = optional_int(values)?;
        self.lines = int(values)?;
        self.is_all_local = int(values)? != 0;
        Ok(())
    }
}

impl Take for OrderLine {
    fn take(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        (self.warehouse, self.district, self.order) = (int(values)?, int(values)?, int(values)?);
        (self.line, self.item, self.supplied_by) = (int(values)?, int(values)?, int(values)?);
        self.delivered = optional_long(values)?.map(|micros| micros.wrapping_add(MICROS_2000));
        self.quantity = int(values)?;
        self.amount = long(values)?;
        text(values, &mut self.district_info)
    }
}

impl Take for Item {
    fn take(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        (self.item, self.image) = (int(values)?, int(values)?);
        text(values, &mut self.name)?;
        self.price = long(values)?;
        text(values, &mut self.data)
    }
}

impl Take for Stock {
    fn take(&mut self, values: &mut Values<'_>) -> Result<(), Malformed> {
        (self.warehouse, self.item) = (int(values)?, int(values)?);
        self.quantity = signed_int(values)?;
        for info in &mut self.districts {
            text(values, info)?;
        }
        self.sold = narrow(long(values)?)?;
        (self.orders, self.remote_orders) = (int(values)?, int(values)?);
        text(values, &mut self.data)
    }
}
