//! One change of the file set, and its bytes.
//!
//! ```text
//! edit:  tag u8 | fields, varints unless said otherwise
//!   1 database     id u64
//!   2 epoch        epoch
//!   3 table        table | name, length-prefixed | options, see TableOptions
//!   4 add file     table | level | number | epoch | version offset | meta, see sst::Meta
//!   5 remove file  table | level | number
//!   6 oldest log   number
//!   7 next number  number
//!   8 last version version
//!   9 drop table   table
//!  10 flushed      version
//!  11 next table   table
//!  12 alter table  table | since | options
//! ```
//!
//! A record of the manifest is a sequence of edits that take effect together.

use super::TableId;
use crate::options::TableOptions;
use sst::format::varint;
use sst::{Meta, Version};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "edits are short-lived and few")]
pub enum Edit {
    /// Identity of the database, first in every manifest.
    Database(u64),
    /// A new writer: edits and file names carry it from here on.
    Epoch(u64),
    /// A table is there.
    Table {
        /// Never reused.
        id: TableId,
        /// Unique among the tables there are.
        name: String,
        /// As it is stored; `AlterTable` may follow.
        options: TableOptions,
    },
    /// A table is stored otherwise from here on. Its files stay as they are.
    AlterTable {
        /// Which one.
        id: TableId,
        /// Files with smaller numbers may have been written under other options.
        since: u64,
        /// All of them; the groups are those there were.
        options: TableOptions,
    },
    /// A table is no more. Its files are removed by the same record.
    DropTable(TableId),
    /// A file is part of a table.
    AddFile {
        /// Whose it is.
        table: TableId,
        /// Where it stands.
        level: u8,
        /// Its name, with the epoch.
        number: u64,
        /// The writer that made it.
        epoch: u64,
        /// Added to the versions in the file.
        version_offset: u64,
        /// What is known of it.
        meta: Meta,
    },
    /// A file is not part of a table any more.
    RemoveFile {
        /// Whose it was.
        table: TableId,
        /// Where it stood.
        level: u8,
        /// Its number.
        number: u64,
    },
    /// Logs with smaller numbers are in files.
    OldestLog(u64),
    /// Numbers from here on are free.
    NextNumber(u64),
    /// Every commit up to here is in files or in logs not older than the oldest.
    LastVersion(Version),
    /// Every commit up to here is in files: what a database opened read-only shows.
    FlushedVersion(Version),
    /// Table ids from here on are free.
    NextTable(u32),
}

impl Edit {
    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Database(id) => {
                out.push(1);
                out.extend_from_slice(&id.to_le_bytes());
            }
            Self::Epoch(epoch) => put(out, 2, &[*epoch]),
            Self::Table { id, name, options } => {
                put(out, 3, &[id.0.into()]);
                varint::put_bytes(out, name.as_bytes());
                options.encode(out);
            }
            Self::AddFile { table, level, number, epoch, version_offset, meta } => {
                put(out, 4, &[table.0.into(), (*level).into(), *number, *epoch, *version_offset]);
                meta.encode(out);
            }
            Self::RemoveFile { table, level, number } => put(out, 5, &[table.0.into(), (*level).into(), *number]),
            Self::OldestLog(number) => put(out, 6, &[*number]),
            Self::NextNumber(number) => put(out, 7, &[*number]),
            Self::LastVersion(version) => put(out, 8, &[version.0]),
            Self::FlushedVersion(version) => put(out, 10, &[version.0]),
            Self::NextTable(id) => put(out, 11, &[(*id).into()]),
            Self::DropTable(table) => put(out, 9, &[table.0.into()]),
            Self::AlterTable { id, since, options } => {
                put(out, 12, &[id.0.into(), *since]);
                options.encode(out);
            }
        }
    }

    /// Takes an edit off the front of `bytes`, or says what is wrong with it.
    pub fn decode(bytes: &mut &[u8]) -> Result<Self, String> {
        let mut why = "an edit does not decode".to_owned();
        Self::decode_fields(bytes, &mut why).ok_or(why)
    }

    fn decode_fields(bytes: &mut &[u8], why: &mut String) -> Option<Self> {
        let (&tag, rest) = bytes.split_first()?;
        *bytes = rest;
        if tag == 1 {
            let (id, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            return Some(Self::Database(u64::from_le_bytes(*id)));
        }
        let mut number = || varint::take(bytes);
        Some(match tag {
            2 => Self::Epoch(number()?),
            3 => {
                let id = TableId(number()?.try_into().ok()?);
                let name = String::from_utf8(varint::take_bytes(bytes)?.to_vec()).ok()?;
                Self::Table { id, name, options: TableOptions::decode(bytes)? }
            }
            4 => {
                let table = TableId(number()?.try_into().ok()?);
                let level = number()?.try_into().ok().filter(|&level| usize::from(level) < super::LEVELS)?;
                let (file, epoch, version_offset) = (number()?, number()?, number()?);
                let meta = Meta::decode(bytes).map_err(|wrong| *why = format!("file {file}: {wrong}")).ok()?;
                Self::AddFile { table, level, number: file, epoch, version_offset, meta }
            }
            5 => {
                let table = TableId(number()?.try_into().ok()?);
                let level = number()?.try_into().ok().filter(|&level| usize::from(level) < super::LEVELS)?;
                Self::RemoveFile { table, level, number: number()? }
            }
            6 => Self::OldestLog(number()?),
            7 => Self::NextNumber(number()?),
            8 => Self::LastVersion(Version(number()?)),
            9 => Self::DropTable(TableId(number()?.try_into().ok()?)),
            10 => Self::FlushedVersion(Version(number()?)),
            11 => Self::NextTable(number()?.try_into().ok()?),
            12 => {
                let (id, since) = (TableId(number()?.try_into().ok()?), number()?);
                Self::AlterTable { id, since, options: TableOptions::decode(bytes)? }
            }
            _ => return None,
        })
    }
}

fn put(out: &mut Vec<u8>, tag: u8, values: &[u64]) {
    out.push(tag);
    for &value in values {
        varint::put(out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sst::KeyBounds;

    #[test]
    fn edits_keep_the_bytes_of_their_format() {
        let meta = Meta {
            file_id: 0x0807_0605_0403_0201,
            file_bytes: 8192,
            main: Some(sst::Tree {
                totals: sst::Totals { rows: 3, bytes: 4096, group_bytes: 0, erased: 1 },
                data_pages: 1,
                btree: Some(sst::Root {
                    address: pages::Address { offset: 0, bytes: 4096, crc: 0xddcc_bbaa },
                    height: 0,
                    index_bytes: 0,
                }),
                flat: None,
            }),
            history: None,
            range_erases: None,
            bounds: KeyBounds::cut(b"a", b"c"),
            oldest: Version(1),
            newest: Version(300),
            value_bytes: 0,
            user_bytes: 9,
            groups: Vec::new(),
            unknown: Default::default(),
        };
        let table = TableId(1);
        let options = TableOptions { metadata: b"m".to_vec(), ..TableOptions::default() };
        let groups = vec!["hot".to_owned(), "b.2".to_owned()];
        let altered = TableOptions { index: sst::IndexKind::Both, groups, ..TableOptions::default() };
        let edits = [
            (Edit::Database(2), "01 0200000000000000"),
            (Edit::Epoch(3), "02 03"),
            (Edit::Table { id: table, name: "t".to_owned(), options }, "03 01 0174 808001 808001 00 00 00 016d 00"),
            (
                Edit::AddFile { table, level: 6, number: 24, epoch: 9, version_offset: 0, meta },
                "04 01 06 18 09 00 0102030405060708 00000000 8040 01 ac02 00 09 0161 01 0163 \
                 01 03 8020 00 01 01 01 0000000000000000 00100000 aabbccdd 00 00 00 00",
            ),
            (Edit::RemoveFile { table, level: 0, number: 23 }, "05 01 00 17"),
            (Edit::OldestLog(26), "06 1a"),
            (Edit::NextNumber(27), "07 1b"),
            (Edit::LastVersion(Version(300)), "08 ac02"),
            (Edit::DropTable(table), "09 01"),
            (Edit::FlushedVersion(Version(300)), "0a ac02"),
            (Edit::NextTable(2), "0b 02"),
            (
                Edit::AlterTable { id: table, since: 300, options: altered },
                "0c 01 ac02 808001 808001 02 00 00 00 02 03686f74 03622e32",
            ),
        ];
        for (edit, expected) in edits {
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected.replace(' ', ""), "{edit:?}");
        }
    }

    #[test]
    fn a_file_that_only_a_newer_program_reads_is_refused_with_that_word() {
        let meta = Meta {
            file_id: 9,
            file_bytes: 8192,
            main: None,
            history: None,
            range_erases: None,
            bounds: KeyBounds::default(),
            oldest: Version(1),
            newest: Version(2),
            value_bytes: 0,
            user_bytes: 0,
            groups: Vec::new(),
            unknown: sst::format::meta::Unknown { features: 1 << 20, extension: Vec::new() },
        };
        let mut bytes = Vec::new();
        let (table, level, number) = (TableId(1), 3, 24);
        Edit::AddFile { table, level, number, epoch: 1, version_offset: 0, meta }.encode(&mut bytes);
        let why = Edit::decode(&mut bytes.as_slice()).expect_err("nobody knows this feature");
        assert_eq!(why, "file 24: features 0x100000 are unknown; use a newer program");
    }

    #[test]
    fn edits_come_back_and_cut_ones_are_refused() {
        let meta = Meta {
            file_id: 9,
            file_bytes: 8192,
            main: None,
            history: None,
            range_erases: None,
            bounds: KeyBounds::cut(b"a", b"b"),
            oldest: Version(1),
            newest: Version(2),
            value_bytes: 0,
            user_bytes: 0,
            groups: Vec::new(),
            unknown: Default::default(),
        };
        let table = TableId(7);
        let groups = vec!["hot".to_owned(), "cold".to_owned()];
        let split = TableOptions { groups, metadata: vec![0xff; 3], ..TableOptions::default() };
        let edits = [
            Edit::Database(u64::MAX),
            Edit::Epoch(3),
            Edit::Table { id: table, name: "users".to_owned(), options: TableOptions::default() },
            Edit::Table { id: table, name: "people".to_owned(), options: split.clone() },
            Edit::AlterTable { id: table, since: u64::MAX, options: split },
            Edit::AddFile { table, level: 6, number: 300, epoch: 3, version_offset: 12, meta },
            Edit::RemoveFile { table, level: 0, number: 299 },
            Edit::OldestLog(4),
            Edit::NextNumber(301),
            Edit::LastVersion(Version(1 << 40)),
            Edit::FlushedVersion(Version(1 << 39)),
            Edit::NextTable(8),
            Edit::DropTable(table),
        ];
        let mut bytes = Vec::new();
        for edit in &edits {
            let start = bytes.len();
            edit.encode(&mut bytes);
            for end in start..bytes.len() {
                assert!(Edit::decode(&mut &bytes[start..end]).is_err());
            }
        }
        let mut rest = bytes.as_slice();
        for edit in edits {
            assert_eq!(Edit::decode(&mut rest), Ok(edit));
        }
        assert!(rest.is_empty());
    }
}
