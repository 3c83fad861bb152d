//! The column families, one for each of the nine tables and two indexes. Keys and values are those of
//! `tpcc::encoding`:
//!
//! ```text
//!   customer, stock      length of the first part (2 bytes, little-endian), first part, second part
//!   the other tables     the only part
//!   an index             nothing: the entry is the key, which ends with the number of the row
//! ```
//!
//! A row of two parts is a single value here. With a column family for each part, a read would need two lookups, and
//! transactions read these tables more often than they write them.

use super::Db;
use ::tpcc::Table;
use ::tpcc::encoding::Encoded;
use ::tpcc::ordered::Index;
use ::tpcc::transactions::wrong;
use harness::Failure;
use rocksdb::BoundColumnFamily;
use std::sync::Arc;

/// The names of all families except the default one.
pub fn names() -> impl Iterator<Item = &'static str> {
    Table::ALL.into_iter().map(Table::name).chain(Index::ALL.map(Index::name))
}

/// A column family of an open database.
pub type Family<'l> = Arc<BoundColumnFamily<'l>>;

/// The family of this name.
pub fn family<'l>(db: &'l Db, name: &str) -> Result<Family<'l>, Failure> {
    db.cf_handle(name).ok_or_else(|| {
        Failure::session(
            "no_table",
            format!("there is no column family {name}: remove the rest with clean, then import"),
        )
    })
}

/// All column families.
pub struct Families<'l> {
    tables: [Family<'l>; 9],
    indexes: [Family<'l>; 2],
}

impl<'l> Families<'l> {
    /// The families of `db`, which must exist already.
    pub fn of(db: &'l Db) -> Result<Self, Failure> {
        let mut tables = Vec::with_capacity(9);
        for table in Table::ALL {
            tables.push(family(db, table.name())?);
        }
        Ok(Self {
            tables: tables.try_into().unwrap_or_else(|_| unreachable!("there are nine")),
            indexes: [family(db, Index::CustomersByName.name())?, family(db, Index::OrdersByCustomer.name())?],
        })
    }

    /// The family of a table.
    pub fn table(&self, table: Table) -> &Family<'l> {
        &self.tables[table as usize]
    }

    /// The family of an index.
    pub fn index(&self, index: Index) -> &Family<'l> {
        &self.indexes[index as usize]
    }
}

/// The value of a row. `joined` is the buffer for a row of two parts.
pub fn value_of<'v>(row: &'v Encoded, joined: &'v mut Vec<u8>) -> &'v [u8] {
    match row.parts() {
        [value] => value,
        parts => {
            joined.clear();
            let len = u16::try_from(parts[0].len()).expect("a first part has some hundred bytes at most");
            joined.extend_from_slice(&len.to_le_bytes());
            parts.iter().for_each(|part| joined.extend_from_slice(part));
            joined
        }
    }
}

/// Splits a value of `table` into its parts.
pub fn parts_of(table: Table, value: &[u8]) -> Result<impl Iterator<Item = &[u8]>, Failure> {
    let (first, second) = match table {
        Table::Customer | Table::Stock => {
            let split = value
                .split_first_chunk()
                .and_then(|(len, parts)| parts.split_at_checked(u16::from_le_bytes(*len).into()));
            let (first, second) = split.ok_or_else(|| wrong(format!("a row of {} is too short", table.name())))?;
            (first, Some(second))
        }
        _ => (value, None),
    };
    Ok(std::iter::once(first).chain(second))
}
