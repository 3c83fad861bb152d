//! Judges conditions that involve more than one warehouse. A payment is stored with the warehouse that was paid, but
//! its customer may belong to another warehouse. An order line may be supplied by another warehouse. So each
//! warehouse fills a ledger, and when all have been read, the sum of the ledgers is judged.
//!
//! A ledger has an entry for a customer only if the customer's payments or balance also depend on rows of another
//! warehouse.

use crate::check::findings::Findings;
use crate::check::words::{Dollars, Place, Sum};
use crate::schema::{CUSTOMERS, Cents};
use std::collections::BTreeMap;
use std::fmt;

/// A customer: the number of the home warehouse, and the place of the customer among the customers of this
/// warehouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomerId {
    pub warehouse: u32,
    /// The place, counted from 0, in the order of districts and then of customer numbers.
    pub place: u32,
}

impl fmt::Display for CustomerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (district, customer) = (self.place / CUSTOMERS + 1, self.place % CUSTOMERS + 1);
        write!(out, "customer {customer} of {}", Place::of(self.warehouse, district))
    }
}

/// The part of a customer's balance that must follow from rows of other warehouses.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    /// `C_BALANCE`, or `None` if it follows from the rows of the customer's own warehouse.
    balance: Option<Cents>,
    /// The balance, minus the delivered amounts, plus the payments. When the entries of all warehouses have been
    /// added, this is 0 if condition 10 holds.
    left: Sum,
}

/// How much a warehouse has supplied since the import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// The number of order lines.
    pub lines: u128,
    /// The number of lines that belong to orders of other warehouses.
    pub remote_lines: u128,
    /// The number of items.
    pub quantity: u128,
}

impl Supply {
    /// Adds another supply to this one.
    pub fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.remote_lines += other.remote_lines;
        self.quantity += other.quantity;
    }
}

/// What the rows of some warehouses say about other warehouses.
#[derive(Debug, Default)]
pub struct Ledger {
    rests: BTreeMap<CustomerId, Rest>,
    /// Customers that do not exist, as runs of consecutive places: the first customer of each run, and their number.
    absent: BTreeMap<CustomerId, u32>,
    /// What each warehouse has supplied, according to order lines.
    supplied: BTreeMap<u32, Supply>,
    /// What each warehouse has supplied, according to its stock.
    stocks: BTreeMap<u32, Supply>,
}

impl Ledger {
    /// Adds a customer's payment to a warehouse that is not the customer's own.
    pub fn paid_elsewhere(&mut self, customer: CustomerId, amount: Cents) {
        self.rests.entry(customer).or_default().left += Sum::from(amount);
    }

    /// Adds `left`, the part of a customer's balance that does not follow from the rows of the customer's own
    /// warehouse.
    pub fn left(&mut self, customer: CustomerId, balance: Cents, left: Sum) {
        let rest = self.rests.entry(customer).or_default();
        rest.balance = Some(balance);
        rest.left += left;
    }

    /// Notes that `count` customers do not exist. `first` is the first of these customers.
    pub fn absent(&mut self, first: CustomerId, count: u32) {
        self.absent.insert(first, count);
    }

    /// Adds what a warehouse has supplied, according to order lines.
    pub fn supplied_by(&mut self, warehouse: u32, supply: &Supply) {
        self.supplied.entry(warehouse).or_default().add(supply);
    }

    /// Adds what a warehouse has supplied, according to the rows of its stock.
    pub fn stock_of(&mut self, warehouse: u32, supply: &Supply) {
        self.stocks.entry(warehouse).or_default().add(supply);
    }

    /// Adds the ledger of other warehouses.
    pub fn extend(&mut self, other: Self) {
        for (customer, more) in other.rests {
            let rest = self.rests.entry(customer).or_default();
            rest.balance = rest.balance.or(more.balance);
            rest.left += more.left;
        }
        self.absent.extend(other.absent);
        other.supplied.iter().for_each(|(warehouse, supply)| self.supplied_by(*warehouse, supply));
        other.stocks.iter().for_each(|(warehouse, supply)| self.stock_of(*warehouse, supply));
    }

    /// The findings, after the ledgers of all `warehouses` were added.
    pub fn judged(&self, warehouses: u32) -> Findings {
        let mut findings = Findings::default();
        for (customer, rest) in &self.rests {
            self.judge_customer(*customer, rest, &mut findings);
        }
        for warehouse in 1..=warehouses {
            let supplied = self.supplied.get(&warehouse).copied().unwrap_or_default();
            let stock = self.stocks.get(&warehouse).copied().unwrap_or_default();
            for (column, is, should_be) in [
                ("S_ORDER_CNT", stock.lines, supplied.lines),
                ("S_REMOTE_CNT", stock.remote_lines, supplied.remote_lines),
                ("S_YTD", stock.quantity, supplied.quantity),
            ] {
                if is != should_be {
                    findings.add(
                        warehouse,
                        0,
                        format_args!(
                            "warehouse {warehouse}: {column} of its stock adds up to {is}, \
                             but to {should_be} by the lines that it has supplied since the import"
                        ),
                    );
                }
            }
        }
        findings
    }

    fn judge_customer(&self, customer: CustomerId, rest: &Rest, findings: &mut Findings) {
        let Rest { balance, left } = *rest;
        if self.is_absent(customer) {
            findings.add(
                customer.warehouse,
                0,
                format_args!("other warehouses have payments of {} by {customer}, who is not there", Dollars(left)),
            );
        } else if let Some(balance) = balance
            && left != 0
        {
            let (is, should_be) = (Dollars(balance.into()), Dollars(Sum::from(balance) - left));
            findings.add(
                customer.warehouse,
                10,
                format_args!("{customer}: C_BALANCE is {is}, but delivered lines less payments are {should_be}"),
            );
        } else if left != 0 {
            findings.add(
                customer.warehouse,
                10,
                format_args!(
                    "{customer}: C_BALANCE should be lower by {}, which was paid to other warehouses",
                    Dollars(left)
                ),
            );
        }
    }

    fn is_absent(&self, customer: CustomerId) -> bool {
        let run = self.absent.range(..=customer).next_back();
        run.is_some_and(|(first, count)| first.warehouse == customer.warehouse && customer.place - first.place < *count)
    }
}
