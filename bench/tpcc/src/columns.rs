//! The columns of the nine tables in SQL, named as in the specification: their order, how a row becomes values, and how
//! values become a row. This module does not know how a database writes types and values.
//!
//! Money is in cents, rates are in ten-thousandths, and times are in microseconds, so nothing is rounded. Databases
//! decode a row from its beginning, so the columns that transactions read most come first.

use crate::database::Row;
use crate::schema::{
    Address, Customer, District, History, Item, Micros, NewOrder, Order, OrderLine, Stock, Table, Warehouse,
};
use crate::text::Text;

/// What a column holds. Only the kinds that say so have NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of 32 bits.
    Number,
    /// A whole number of 32 bits, or NULL.
    OptionalNumber,
    /// A whole number of 64 bits.
    Long,
    /// A time.
    Time,
    /// A time, or NULL.
    OptionalTime,
    /// A text of at most this many bytes.
    Text(usize),
    /// A text of at most this many bytes, which sorts by its bytes.
    Sorted(usize),
    /// A text of this many bytes.
    Exact(usize),
    /// Whether a customer has good credit: `GC` or `BC` in the specification.
    Credit,
    /// Yes or no.
    Flag,
    /// Distinguishes payments, in databases whose table of payments has a key.
    Unique,
}

/// A column: its name, and what it holds.
pub type Column = (&'static str, Kind);

/// The columns of `table`.
pub fn columns(table: Table) -> &'static [Column] {
    use Kind::{Credit, Exact, Flag, Long, Number, OptionalNumber, OptionalTime, Sorted, Time, Unique};
    match table {
        Table::Warehouse => &[
            ("w_id", Number),
            ("w_tax", Number),
            ("w_ytd", Long),
            ("w_name", Kind::Text(10)),
            ("w_street_1", Kind::Text(20)),
            ("w_street_2", Kind::Text(20)),
            ("w_city", Kind::Text(20)),
            ("w_state", Exact(2)),
            ("w_zip", Exact(9)),
        ],
        Table::District => &[
            ("d_w_id", Number),
            ("d_id", Number),
            ("d_tax", Number),
            ("d_ytd", Long),
            ("d_next_o_id", Number),
            ("d_name", Kind::Text(10)),
            ("d_street_1", Kind::Text(20)),
            ("d_street_2", Kind::Text(20)),
            ("d_city", Kind::Text(20)),
            ("d_state", Exact(2)),
            ("d_zip", Exact(9)),
        ],
        Table::Customer => &[
            ("c_w_id", Number),
            ("c_d_id", Number),
            ("c_id", Number),
            ("c_last", Sorted(16)),
            ("c_first", Sorted(16)),
            ("c_middle", Exact(2)),
            ("c_credit", Credit),
            ("c_discount", Number),
            ("c_balance", Long),
            ("c_ytd_payment", Long),
            ("c_payment_cnt", Number),
            ("c_delivery_cnt", Number),
            ("c_street_1", Kind::Text(20)),
            ("c_street_2", Kind::Text(20)),
            ("c_city", Kind::Text(20)),
            ("c_state", Exact(2)),
            ("c_zip", Exact(9)),
            ("c_phone", Exact(16)),
            ("c_since", Time),
            ("c_credit_lim", Long),
            ("c_data", Kind::Text(500)),
        ],
        Table::History => &[
            ("h_w_id", Number),
            ("h_date", Time),
            ("h_number", Unique),
            ("h_d_id", Number),
            ("h_c_w_id", Number),
            ("h_c_d_id", Number),
            ("h_c_id", Number),
            ("h_amount", Long),
            ("h_data", Kind::Text(24)),
        ],
        Table::NewOrder => &[("no_w_id", Number), ("no_d_id", Number), ("no_o_id", Number)],
        Table::Order => &[
            ("o_w_id", Number),
            ("o_d_id", Number),
            ("o_id", Number),
            ("o_c_id", Number),
            ("o_entry_d", Time),
            ("o_carrier_id", OptionalNumber),
            ("o_ol_cnt", Number),
            ("o_all_local", Flag),
        ],
        Table::OrderLine => &[
            ("ol_w_id", Number),
            ("ol_d_id", Number),
            ("ol_o_id", Number),
            ("ol_number", Number),
            ("ol_i_id", Number),
            ("ol_supply_w_id", Number),
            ("ol_delivery_d", OptionalTime),
            ("ol_quantity", Number),
            ("ol_amount", Long),
            ("ol_dist_info", Exact(24)),
        ],
        Table::Item => &[
            ("i_id", Number),
            ("i_im_id", Number),
            ("i_price", Long),
            ("i_name", Kind::Text(24)),
            ("i_data", Kind::Text(50)),
        ],
        Table::Stock => &[
            ("s_w_id", Number),
            ("s_i_id", Number),
            ("s_quantity", Number),
            ("s_ytd", Long),
            ("s_order_cnt", Number),
            ("s_remote_cnt", Number),
            ("s_dist_01", Exact(24)),
            ("s_dist_02", Exact(24)),
            ("s_dist_03", Exact(24)),
            ("s_dist_04", Exact(24)),
            ("s_dist_05", Exact(24)),
            ("s_dist_06", Exact(24)),
            ("s_dist_07", Exact(24)),
            ("s_dist_08", Exact(24)),
            ("s_dist_09", Exact(24)),
            ("s_dist_10", Exact(24)),
            ("s_data", Kind::Text(50)),
        ],
    }
}

/// How many of a table's first columns are its key. Payments have none in the specification.
pub fn key_columns(table: Table) -> usize {
    match table {
        Table::Warehouse | Table::Item => 1,
        Table::District | Table::Stock => 2,
        Table::Customer | Table::NewOrder | Table::Order => 3,
        Table::OrderLine => 4,
        Table::History => 0,
    }
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'v> {
    Number(u32),
    /// A number that may be negative.
    Signed(i32),
    OptionalNumber(Option<u32>),
    Long(i64),
    Time(Micros),
    OptionalTime(Option<Micros>),
    Text(&'v [u8]),
    Credit(bool),
    Flag(bool),
    Unique(u64),
}

/// Takes the values of rows.
pub trait Sink {
    /// Why a value is not taken.
    type Error;

    /// Takes the next value.
    fn put(&mut self, value: Value<'_>) -> Result<(), Self::Error>;
}

/// Puts the values of `row` in the order of its columns. `unique` distinguishes payments of a warehouse at a time.
#[inline]
pub fn put<S: Sink>(row: Row<'_>, unique: u64, to: &mut S) -> Result<(), S::Error> {
    use Value::{Credit, Flag, Long, Number, OptionalNumber, OptionalTime, Signed, Time, Unique};
    match row {
        Row::Warehouse(row) => {
            let Warehouse { warehouse, name, address, tax, year_to_date } = row;
            all(to, [Number(*warehouse), Number(*tax), Long(*year_to_date), text(name)])?;
            all(to, values_of(address))
        }
        Row::District(row) => {
            all(to, [Number(row.warehouse), Number(row.district), Number(row.tax), Long(row.year_to_date)])?;
            all(to, [Number(row.next_order), text(&row.name)])?;
            all(to, values_of(&row.address))
        }
        Row::Customer(row) => {
            all(to, [Number(row.warehouse), Number(row.district), Number(row.customer)])?;
            all(to, [text(&row.last), text(&row.first), text(&row.middle), Credit(row.has_good_credit)])?;
            all(to, [Number(row.discount), Long(row.balance), Long(row.paid_in_year)])?;
            all(to, [Number(row.payments), Number(row.deliveries)])?;
            all(to, values_of(&row.address))?;
            all(to, [text(&row.phone), Time(row.since), Long(row.credit_limit), text(&row.data)])
        }
        Row::History(row) => {
            all(to, [Number(row.warehouse), Time(row.date), Unique(unique), Number(row.district)])?;
            all(to, [Number(row.customer_warehouse), Number(row.customer_district), Number(row.customer)])?;
            all(to, [Long(row.amount), text(&row.data)])
        }
        Row::NewOrder(row) => all(to, [Number(row.warehouse), Number(row.district), Number(row.order)]),
        Row::Order(row) => {
            all(to, [Number(row.warehouse), Number(row.district), Number(row.order), Number(row.customer)])?;
            all(to, [Time(row.entered), OptionalNumber(row.carrier), Number(row.lines), Flag(row.is_all_local)])
        }
        Row::OrderLine(row) => {
            all(to, [Number(row.warehouse), Number(row.district), Number(row.order), Number(row.line)])?;
            all(to, [Number(row.item), Number(row.supplied_by), OptionalTime(row.delivered)])?;
            all(to, [Number(row.quantity), Long(row.amount), text(&row.district_info)])
        }
        Row::Item(row) => {
            all(to, [Number(row.item), Number(row.image), Long(row.price), text(&row.name), text(&row.data)])
        }
        Row::Stock(row) => {
            all(to, [Number(row.warehouse), Number(row.item), Signed(row.quantity), Long(row.sold.cast_signed())])?;
            all(to, [Number(row.orders), Number(row.remote_orders)])?;
            row.districts.iter().try_for_each(|info| to.put(text(info)))?;
            to.put(text(&row.data))
        }
    }
}

#[inline]
fn all<S: Sink, const N: usize>(to: &mut S, values: [Value<'_>; N]) -> Result<(), S::Error> {
    values.into_iter().try_for_each(|value| to.put(value))
}

#[inline]
fn text<const N: usize>(text: &Text<N>) -> Value<'_> {
    Value::Text(text.as_bytes())
}

fn values_of(address: &Address) -> [Value<'_>; 5] {
    let Address { street_1, street_2, city, state, zip } = address;
    [text(street_1), text(street_2), text(city), text(state), text(zip)]
}

/// Gives the values of a row that was read, one after the other.
pub trait Source {
    /// Why a value is not one of its column.
    type Error;

    /// The next value, a whole number or NULL.
    fn optional(&mut self) -> Result<Option<i64>, Self::Error>;

    /// The next value, a text. `take` is called with it.
    fn text(&mut self, take: impl FnOnce(&[u8]) -> Result<(), &'static str>) -> Result<(), Self::Error>;

    /// The next value, a time or NULL.
    fn optional_time(&mut self) -> Result<Option<Micros>, Self::Error> {
        self.optional()
    }

    /// The next value: whether a customer has good credit.
    fn credit(&mut self) -> Result<bool, Self::Error> {
        self.flag()
    }

    /// Skips the column of the kind [`Kind::Unique`], if the database has it.
    fn skip_unique(&mut self) -> Result<(), Self::Error>;

    /// The error for a value that does not fit its column.
    fn bad(&self, what: &'static str) -> Self::Error;

    /// The next value, a whole number.
    #[inline]
    fn long(&mut self) -> Result<i64, Self::Error> {
        self.optional()?.ok_or_else(|| self.bad("no value in a column that always has one"))
    }

    /// The next value, a whole number within the range of `T`.
    #[inline]
    fn number<T: TryFrom<i64>>(&mut self) -> Result<T, Self::Error> {
        T::try_from(self.long()?).map_err(|_| self.bad("a number that its column cannot have"))
    }

    /// The next value, a whole number of 32 bits or NULL.
    #[inline]
    fn optional_number(&mut self) -> Result<Option<u32>, Self::Error> {
        let number = self.optional()?.map(u32::try_from).transpose();
        number.map_err(|_| self.bad("a number that its column cannot have"))
    }

    /// The next value, yes or no.
    fn flag(&mut self) -> Result<bool, Self::Error> {
        Ok(self.long()? != 0)
    }

    /// The next value, a time.
    fn time(&mut self) -> Result<Micros, Self::Error> {
        self.optional_time()?.ok_or_else(|| self.bad("no value in a column that always has one"))
    }

    /// Sets `text` to the next value.
    #[inline]
    fn set<const N: usize>(&mut self, text: &mut Text<N>) -> Result<(), Self::Error> {
        self.text(|bytes| {
            if bytes.len() > N {
                return Err("a text that is longer than its column");
            }
            text.set(bytes);
            Ok(())
        })
    }

    /// Sets `address` to the next values.
    fn address(&mut self, address: &mut Address) -> Result<(), Self::Error> {
        self.set(&mut address.street_1)?;
        self.set(&mut address.street_2)?;
        self.set(&mut address.city)?;
        self.set(&mut address.state)?;
        self.set(&mut address.zip)
    }
}

/// A row that can be read from the columns of its table.
pub trait Columns: Default {
    /// Overwrites this row with the values.
    fn read<S: Source>(&mut self, from: &mut S) -> Result<(), S::Error>;
}

impl Columns for Warehouse {
    fn read<S: Source>(&mut self, from: &mut S) -> Result<(), S::Error> {
        (self.warehouse, self.tax, self.year_to_date) = (from.number()?, from.number()?, from.long()?);
        from.set(&mut self.name)?;
        from.address(&mut self.address)
    }
}

impl Columns for District {
    fn read<S: Source>(&mut self, from: &mut S) -> Result<(), S::Error> {
        (self.warehouse, self.district) = (from.number()?, from.number()?);
        (self.tax, self.year_to_date, self.next_order) = (from.number()?, from.long()?, from.number()?);
        from.set(&mut self.name)?;
        from.address(&mut self.address)
    }
}

/// The number of a customer's first columns that [`read_account`] reads.
pub const ACCOUNT_COLUMNS: usize = 12;

/// Reads a customer's account, the first columns of the table. The others stay unchanged.
pub fn read_account<S: Source>(row: &mut Customer, from: &mut S) -> Result<(), S::Error> {
    (row.warehouse, row.district, row.customer) = (from.number()?, from.number()?, from.number()?);
    from.set(&mut row.last)?;
    from.set(&mut row.first)?;
    from.set(&mut row.middle)?;
    (row.has_good_credit, row.discount, row.balance) = (from.credit()?, from.number()?, from.long()?);
    (row.paid_in_year, row.payments, row.deliveries) = (from.long()?, from.number()?, from.number()?);
    Ok(())
}

impl Columns for Customer {
    fn read<S: Source>(&mut self, from: &mut S) -> Result<(), S::Error> {
        read_account(self, from)?;
        from.address(&mut self.address)?;
        from.set(&mut self.phone)?;
        (self.since, self.credit_limit) = (from.time()?, from.long()?);
        from.set(&mut self.data)
    }
}

impl Columns for History {
    fn read<S: Source>(&mut self, from: &mut S) -> Result<(), S::Error> {
        (self.warehouse, self.date) = (from.number()?, from.time()?);
        from.skip_unique()?;
        (self.district, self.customer_warehouse) = (from.number()?, from.number()?);
        (self.customer_district, self.customer, self.amount) = (from.number()?, from.number()?, from.long()?);
        from.set(&mut self.data)
    }
}

impl Columns for NewOrder {
    fn read<S: Source>(&mut self, from: &mut S) -> Result<(), S::Error> {
        (self.warehouse, self.district, self.order) = (from.number()?, from.number()?, from.number()?);
        Ok(())
    }
}

impl Columns for Order {
    fn read<S: Source>(&mut self, from: &mut S) -> Result<(), S::Error> {
        (self.warehouse, self.district, self.order) = (from.number()?, from.number()?, from.number()?);
        (self.customer, self.entered, self.carrier) = (from.number()?, from.time()?, from.optional_number()?);
        (self.lines, self.is_all_local) = (from.number()?, from.flag()?);
        Ok(())
    }
}

impl Columns for OrderLine {
    fn read<S: Source>(&mut self, from: &mut S) -> Result<(), S::Error> {
        (self.warehouse, self.district, self.order) = (from.number()?, from.number()?, from.number()?);
        (self.line, self.item, self.supplied_by) = (from.number()?, from.number()?, from.number()?);
        (self.delivered, self.quantity, self.amount) = (from.optional_time()?, from.number()?, from.long()?);
        from.set(&mut self.district_info)
    }
}

impl Columns for Item {
    fn read<S: Source>(&mut self, from: &mut S) -> Result<(), S::Error> {
        (self.item, self.image, self.price) = (from.number()?, from.number()?, from.long()?);
        from.set(&mut self.name)?;
        from.set(&mut self.data)
    }
}

impl Columns for Stock {
    fn read<S: Source>(&mut self, from: &mut S) -> Result<(), S::Error> {
        (self.warehouse, self.item, self.quantity) = (from.number()?, from.number()?, from.number()?);
        self.sold = from.long()?.cast_unsigned();
        (self.orders, self.remote_orders) = (from.number()?, from.number()?);
        self.districts.iter_mut().try_for_each(|info| from.set(info))?;
        from.set(&mut self.data)
    }
}
