//! Formats amounts and places for findings.

use crate::transactions::DistrictId;
use std::fmt;

/// A sum of cents. A sum of this type cannot overflow, however many rows are added.
pub type Sum = i128;

/// An amount in dollars.
#[derive(Clone, Copy, Debug)]
pub struct Dollars(pub Sum);

impl fmt::Display for Dollars {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let cents = self.0.unsigned_abs();
        write!(out, "{sign}{}.{:02}", cents / 100, cents % 100)
    }
}

/// A district in words.
#[derive(Clone, Copy, Debug)]
pub struct Place(pub DistrictId);

impl Place {
    /// A place: a district of a warehouse.
    pub fn of(warehouse: u32, district: u32) -> Self {
        Self(DistrictId { warehouse, district })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "district {} of warehouse {}", self.0.district, self.0.warehouse)
    }
}
