//! The origin in the footer of an SST: the table that the SST was written for. It lets a repair or a dump work
//! without a manifest. No other code reads it, because an undamaged database has the current names of its tables in
//! its manifest.
//!
//! ```text
//! numbered fields, see sst::format::field:
//!   128 table id   varint
//!   129 name       UTF-8
//!   130 groups     each length-prefixed, in order; left out if the footer has no room for them
//!   131 index of   varint: the rows are entries of an index of this table, and the name is that of the index
//!   132 run        nothing: the rows are of a transaction that has not committed
//!   133 built      u64: the file was built elsewhere, for whichever table takes it in, with the other files of this number.
//!                    Then there is no table id and no name
//! ```

use crate::base::table::{TableId, TableInfo};
use sst::MAX_ORIGIN_BYTES;
use sst::format::field::{self, Field};
use sst::format::varint;

const TABLE: u8 = 128;
const NAME: u8 = 129;
const GROUPS: u8 = 130;
const INDEX_OF: u8 = 131;
const RUN: u8 = 132;
const BUILT: u8 = 133;

/// The table that a file was written for. A field is `None` if the footer does not have it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FileOrigin {
    /// The id of the table.
    pub table: Option<u32>,
    /// The name of the table.
    pub name: Option<String>,
    /// The column groups of the table.
    pub groups: Option<Vec<String>>,
    /// The id of the indexed table, if the rows are entries of an index.
    pub index_of: Option<u32>,
    /// Whether the rows belong to a transaction that has not committed.
    pub is_run: bool,
    /// If the file was built without a database, a number that all files built together share.
    pub built: Option<u64>,
}

/// The origin of files that `database` writes for `table`. `is_run` says that their rows belong to a transaction
/// that has not committed.
pub fn encode(database: u64, table: &TableInfo, is_run: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut id = Vec::new();
    varint::put(&mut id, table.id.0.into());
    match &table.index {
        None if table.id == TableId::ELSEWHERE => field::put(&mut out, BUILT, &database.to_le_bytes()),
        None => {
            field::put(&mut out, TABLE, &id);
            field::put(&mut out, NAME, table.name.as_bytes());
        }
        Some(index) => {
            field::put(&mut out, TABLE, &id);
            let mut of = Vec::new();
            varint::put(&mut of, index.table.0.into());
            field::put(&mut out, INDEX_OF, &of);
            field::put(&mut out, NAME, index.name.as_bytes());
        }
    }
    if is_run {
        field::put(&mut out, RUN, &[]);
    }
    let mut groups = Vec::new();
    table.options.groups.iter().for_each(|name| varint::put_bytes(&mut groups, name.as_bytes()));
    let mut whole = out.clone();
    field::put(&mut whole, GROUPS, &groups);
    // A name has at most 255 bytes, but the names of 16 groups may take 1,040 bytes.
    if whole.len() <= MAX_ORIGIN_BYTES { whole } else { out }
}

/// Decodes the valid fields, and skips all others.
pub fn decode(mut bytes: &[u8]) -> FileOrigin {
    let mut origin = FileOrigin::default();
    while let Some(Field { number, bytes: mut field }) = Field::take(&mut bytes) {
        match number {
            TABLE => origin.table = varint::take(&mut field).and_then(|id| id.try_into().ok()),
            NAME => origin.name = String::from_utf8(field.to_vec()).ok(),
            INDEX_OF => origin.index_of = varint::take(&mut field).and_then(|id| id.try_into().ok()),
            RUN => origin.is_run = true,
            BUILT => origin.built = field.try_into().ok().map(u64::from_le_bytes),
            GROUPS => origin.groups = take_names(field),
            _ => {}
        }
    }
    origin
}

fn take_names(mut bytes: &[u8]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    while !bytes.is_empty() {
        names.push(String::from_utf8(varint::take_bytes(&mut bytes)?.to_vec()).ok()?);
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableOptions;

    #[test]
    fn an_origin_comes_back_and_leaves_out_what_has_no_room() {
        let table = |name: String, groups: Vec<String>| TableInfo {
            id: TableId(300),
            name,
            options: TableOptions { groups, ..TableOptions::default() },
            since: 0,
            index: None,
        };
        let names = |count: usize, bytes: usize| (0..count).map(|i| format!("{i:0bytes$}")).collect::<Vec<_>>();
        for (name, groups, fits, is_run) in [
            ("t".to_owned(), Vec::new(), true, false),
            ("users".to_owned(), names(3, 8), true, true),
            ("n".repeat(255), names(16, 14), true, false),
            ("n".repeat(255), names(16, 64), false, true),
        ] {
            let bytes = encode(9, &table(name.clone(), groups.clone()), is_run);
            assert!(bytes.len() <= MAX_ORIGIN_BYTES);
            let groups = fits.then_some(groups);
            let (table, name) = (Some(300), Some(name));
            let expected = FileOrigin { table, name, groups, index_of: None, is_run, built: None };
            assert_eq!(decode(&bytes), expected);
            for end in 0..bytes.len() {
                decode(&bytes[..end]);
            }
        }
        let built = TableInfo { id: TableId::ELSEWHERE, ..table("anywhere".to_owned(), names(2, 3)) };
        let expected = FileOrigin { groups: Some(names(2, 3)), built: Some(7), ..FileOrigin::default() };
        assert_eq!(decode(&encode(7, &built, false)), expected);
    }
}
