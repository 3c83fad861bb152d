//! What takes more than one warehouse to judge. A payment lies with the warehouse that was paid, but its customer may
//! live elsewhere; a line of an order may be supplied by another warehouse. Each warehouse that is read has a ledger,
//! and the sum of all is judged.
//!
//! It has an entry for a customer only if payments or the balance need an explanation by another warehouse.

use crate::check::findings::Findings;
use crate::check::words::{Dollars, Place, Sum};
use crate::schema::{CUSTOMERS, Cents};
use std::collections::BTreeMap;
use std::fmt;

/// A customer, by the warehouse and the place in its table of customers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomerId {
    pub warehouse: u32,
    /// From 0, in the order of districts and numbers.
    pub place: u32,
}

impl fmt::Display for CustomerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (district, customer) = (self.place / CUSTOMERS + 1, self.place % CUSTOMERS + 1);
        write!(out, "customer {customer} of {}", Place::of(self.warehouse, district))
    }
}

/// What a balance leaves to explain.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    /// `C_BALANCE`, if the customer's own warehouse left something to explain.
    balance: Option<Cents>,
    /// The balance, less what was delivered, plus what was paid. It is 0 in the end if condition 10 holds.
    left: Sum,
}

/// What a warehouse has supplied after the import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// Lines of orders.
    pub lines: u128,
    /// The lines in orders of other warehouses.
    pub remote_lines: u128,
    /// Items.
    pub quantity: u128,
}

impl Supply {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.remote_lines += other.remote_lines;
        self.quantity += other.quantity;
    }
}

/// What warehouses say about each other.
#[derive(Debug, Default)]
pub struct Ledger {
    rests: BTreeMap<CustomerId, Rest>,
    /// Customers that are not there: the first of a run of them, and how many.
    absent: BTreeMap<CustomerId, u32>,
    /// What lines say that a warehouse has supplied.
    supplied: BTreeMap<u32, Supply>,
    /// What the stock of a warehouse says.
    stocks: BTreeMap<u32, Supply>,
}

impl Ledger {
    /// Takes a payment that lies with another warehouse than the customer.
    pub fn paid_elsewhere(&mut self, customer: CustomerId, amount: Cents) {
        self.rests.entry(customer).or_default().left += Sum::from(amount);
    }

    /// Takes what the rows of a customer's own warehouse leave to explain.
    pub fn left(&mut self, customer: CustomerId, balance: Cents, left: Sum) {
        let rest = self.rests.entry(customer).or_default();
        rest.balance = Some(balance);
        rest.left += left;
    }

    /// `count` customers, of which this is the first, are not there.
    pub fn absent(&mut self, first: CustomerId, count: u32) {
        self.absent.insert(first, count);
    }

    /// Takes lines that a warehouse has supplied.
    pub fn supplied_by(&mut self, warehouse: u32, supply: &Supply) {
        self.supplied.entry(warehouse).or_default().add(supply);
    }

    /// Takes what the stock of a warehouse says.
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

    /// What is wrong, when all of `warehouses` have been added.
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
