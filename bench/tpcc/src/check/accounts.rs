//! The customers of a warehouse, what they owe and what they have paid: conditions 10 and 12.

use crate::check::ledger::CustomerId;
use crate::check::scope::{Scope, stray};
use crate::check::tallies::Tallies;
use crate::check::words::{Dollars, Place, Sum};
use crate::database::Row;
use crate::schema::{CUSTOMERS, Cents, Customer, DISTRICTS, History, Table};
use harness::Failure;

/// What is kept for each customer. It takes 64 bytes.
#[derive(Clone, Debug, Default)]
struct Account {
    is_there: bool,
    balance: Cents,
    paid_in_year: Cents,
    delivered: Sum,
    /// The sum of the customer's payments to the warehouse whose rows are being read.
    paid: Sum,
}

/// The customers of a warehouse.
#[derive(Debug)]
pub struct Accounts {
    /// The accounts of all customers, by their place.
    accounts: Vec<Account>,
}

impl Accounts {
    /// Reads the customers.
    pub fn read(scope: &mut Scope<'_>, tallies: &mut Tallies) -> Result<Self, Failure> {
        let mut accounts = vec![Account::default(); Table::Customer.rows() as usize];
        let mut last = None;
        scope.read(Table::Customer, &mut |scope, row| {
            let Row::Customer(row) = row else { return Err(stray(Table::Customer, &row)) };
            let Customer { warehouse, district, customer, .. } = *row;
            let Some(place) = scope.district(Table::Customer, warehouse, district) else { return Ok(()) };
            let what = format_args!("customer {customer} of {}", Place::of(warehouse, district));
            let Some(at) = place_of(district, customer) else {
                scope.find(0, format_args!("{what}: there can be no such number"));
                return Ok(());
            };
            if scope.is_next(&mut last, at, what) {
                accounts[at as usize] = Account {
                    is_there: true,
                    balance: row.balance,
                    paid_in_year: row.paid_in_year,
                    ..Account::default()
                };
                tallies.districts[place].deliveries += u64::from(row.deliveries);
                scope.compare(what, scope.loaded.customer(row));
            }
            Ok(())
        })?;
        let accounts = Self { accounts };
        accounts.judge_absent(scope);
        Ok(accounts)
    }

    /// Reports customers that are missing.
    fn judge_absent(&self, scope: &mut Scope<'_>) {
        let warehouse = scope.warehouse;
        let mut at = 0;
        for run in self.accounts.chunk_by(|one, next| one.is_there == next.is_there) {
            if !run[0].is_there {
                let first = CustomerId { warehouse, place: at };
                let count = run.len();
                scope.ledger.absent(first, count as u32);
                let others = if count == 1 { String::new() } else { format!(", and {} after it", count - 1) };
                scope.find(0, format_args!("{first} is not there{others}"));
            }
            at += run.len() as u32;
        }
    }

    /// Reads the payments to this warehouse.
    pub fn read_payments(&mut self, scope: &mut Scope<'_>, tallies: &mut Tallies) -> Result<(), Failure> {
        let mut last = None;
        scope.read(Table::History, &mut |scope, row| {
            let Row::History(row) = row else { return Err(stray(Table::History, &row)) };
            let Some(place) = scope.district(Table::History, row.warehouse, row.district) else { return Ok(()) };
            tallies.districts[place].paid += Sum::from(row.amount);
            self.pay(scope, row);
            let what = format_args!("the payment of customer {} to {}", row.customer, scope.place(place));
            // Payments are compared with the loaded payments only if no transaction has run since the import.
            // After a run, a customer may have several payments, and the database chooses the keys of payments.
            if scope.loaded.is_all() && scope.is_next(&mut last, (row.district, row.customer), what) {
                scope.compare(what, scope.loaded.history(row));
            }
            Ok(())
        })
    }

    fn pay(&mut self, scope: &mut Scope<'_>, row: &History) {
        let History { customer_warehouse: warehouse, customer_district: district, customer, amount, .. } = *row;
        let place = place_of(district, customer).filter(|_| (1..=scope.warehouses).contains(&warehouse));
        match place {
            Some(place) if warehouse != scope.warehouse => {
                scope.ledger.paid_elsewhere(CustomerId { warehouse, place }, amount);
            }
            Some(place) if self.accounts[place as usize].is_there => {
                self.accounts[place as usize].paid += Sum::from(amount);
            }
            _ => {
                let (to, amount) = (Place::of(row.warehouse, row.district), Dollars(amount.into()));
                let from = Place::of(warehouse, district);
                scope.find(
                    0,
                    format_args!("{to}: a payment of {amount} is by customer {customer} of {from}, who is not there"),
                );
            }
        }
    }

    /// The place of a customer, if the customer exists.
    pub fn find(&self, district: u32, customer: u32) -> Option<u32> {
        place_of(district, customer).filter(|place| self.accounts[*place as usize].is_there)
    }

    /// Notes that an order line was delivered to the customer at `place`.
    pub fn deliver(&mut self, place: u32, amount: Cents) {
        self.accounts[place as usize].delivered += Sum::from(amount);
    }

    /// Judges all customers of a warehouse, as far as the rows of this warehouse make it possible. Everything that
    /// also depends on other warehouses is left to the ledger.
    pub fn judge(&self, scope: &mut Scope<'_>) {
        let warehouse = scope.warehouse;
        for (place, account) in (0..).zip(&self.accounts).filter(|(_, account)| account.is_there) {
            let Account { balance, paid_in_year, delivered, paid, .. } = *account;
            let customer = CustomerId { warehouse, place };
            let left = Sum::from(balance) - delivered + paid;
            if left != 0 {
                scope.ledger.left(customer, balance, left);
            }
            if Sum::from(balance) + Sum::from(paid_in_year) != delivered {
                let (balance, paid) = (Dollars(balance.into()), Dollars(paid_in_year.into()));
                let delivered = Dollars(delivered);
                scope.find(
                    12,
                    format_args!(
                        "{customer}: C_BALANCE is {balance} and C_YTD_PAYMENT is {paid}, \
                         but lines of {delivered} are delivered"
                    ),
                );
            }
        }
    }
}

/// The place of a customer among the customers of a warehouse; `None` if one of the two numbers is too small or
/// too large.
fn place_of(district: u32, customer: u32) -> Option<u32> {
    let is_possible = (1..=DISTRICTS).contains(&district) && (1..=CUSTOMERS).contains(&customer);
    is_possible.then(|| (district - 1) * CUSTOMERS + customer - 1)
}
