//! Edits: single changes of the file set, and their encoding. This module does not know the file set that they
//! change.
//!
//! ```text
//! edit:  tag u8 | bytes varint | fields, varints unless said otherwise | extension
//!   1 database     id u64
//!   2 epoch        epoch
//!   3 table        table | name, length-prefixed | options, length-prefixed, see TableOptions
//!   4 add file     table | level | number | epoch | version offset | meta, see sst::Meta
//!   5 remove file  table | level | number
//!   6 oldest log   number
//!   7 next number  number
//!   8 last version version
//!   9 drop table   table
//!  10 flushed      version
//!  11 next table   table
//!  12 alter table  table | since | options, length-prefixed
//!  13 share file   table | level | number | to table
//!  14 slice file   table | level | number | sliced u8: 0 all is seen, 1 then
//!                    low bound, length-prefixed | high bound present u8 | high bound, length-prefixed | bytes
//!                    | ranges of rows: count, each rows not seen before it, rows seen
//!  15 move file    table | level | number | to level
//!  16 index        table of its entries | table | flags u8: bit 0 unique, bit 1 ready | name, length-prefixed
//!                    | declaration, length-prefixed | options, length-prefixed
//!                    | field 1: since, the first version at which reads may use the index
//!  17 alter index  table of its entries | table | flags u8: bit 1 ready
//!  18 keep         version | microseconds since 1970 | name, length-prefixed
//!  19 forget       name, length-prefixed
//!  20 retain       from version | kind u8: 0 nothing, 1 versions, 2 time, 3 everything; bit 7: reads must not rely on it
//!                    | how many versions or microseconds
//!  21 time         version | microseconds since 1970
//!  22 retain from  from version | kind u8 | how many versions or microseconds
//!  23 expired      milliseconds since 1970
//!  25 subscription number | kind u8, and then
//!                    0 it ends
//!                    1 it is there: position | microseconds since 1970 | hold u8: 0 sure, 1 not sure, 2 nothing
//!                      | age in microseconds and 1, or 0 for any | bytes and 1, or 0 for any | name, length-prefixed
//!                    2 acknowledged: position
//!                    3 lets go: position
//!  27 retain table table | from version | kind u8, as in 20, or 4 that of the database | how many versions or microseconds
//!  28 table from   table | from version | kind u8 | how many versions or microseconds
//! 128 written for  release, the rest of the edit
//! extension: fields that later releases may add, see sst::format::field
//! ```
//!
//! An edit is encoded as a numbered field. A reader skips an edit with an unknown tag of 128 or more, and refuses
//! one with a lower tag, which the error names. Manifests without the feature
//! [`EDIT_FIELDS`](crate::base::record::EDIT_FIELDS) have the same edits in a shorter form: neither the edits nor
//! the options in them have a length or an extension.
//!
//! A record of the manifest is a sequence of edits that take effect together.

use crate::base::kept::Kept;
use crate::base::options::TableOptions;
use crate::base::record::EDIT_FIELDS;
use crate::base::retention::{Retained, Retention, TableRetained, TableRule};
use crate::base::subscription::{Hold, Limits, Subscriber, SubscriptionId};
use crate::base::table::{IndexInfo, IndexState, TableId};
use crate::manifest::times::VersionTime;
use sst::format::features::Unreadable;
use sst::format::field::{self, Field};
use sst::format::meta::MAX_BOUND_BYTES;
use sst::format::varint;
use sst::{KeyBounds, Meta, RowRanges, Slice, Version};
use std::ops::Range;
use std::time::Duration;

/// A slice has at most this many ranges of rows, to keep the description of a file small in memory.
pub const MAX_RANGES: usize = 8;

/// How the end of an edit is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Edits have no lengths: a reader must know all fields of an edit to find its end.
    Plain,
    /// Each edit is a numbered field with its length.
    Fields,
}

impl Framing {
    /// The framing in a manifest whose header has the feature bits `features`.
    pub fn of(features: u32) -> Self {
        if features & EDIT_FIELDS == 0 { Self::Plain } else { Self::Fields }
    }
}

/// A file that is added to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// The table.
    pub table: TableId,
    /// The level of the file.
    pub level: u8,
    /// The number of the file, which is in its name.
    pub number: u64,
    /// The epoch of the writer that created the file. It is also in the file's name.
    pub epoch: u64,
    /// A reader adds this number to each version in the file.
    pub version_offset: u64,
    /// The description of the file, which is also in its footer.
    pub meta: Meta,
}

/// A change of the file set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "edits are short-lived and few")]
pub enum Edit {
    /// The identity of the database, the first edit of every manifest.
    Database(u64),
    /// A new writer has begun, with this epoch, which is in the names of its files.
    Epoch(u64),
    /// A new table.
    Table {
        /// The id of the table, which is never used again.
        id: TableId,
        /// The name of the table. No other table has this name.
        name: String,
        /// How the table is stored.
        options: TableOptions,
    },
    /// A table gets new options. Its files stay as they are.
    AlterTable {
        /// The table.
        id: TableId,
        /// Files with this number or a greater one were written with these options. Files with smaller numbers may
        /// have been written with other options.
        since: u64,
        /// All options of the table. The column groups never change.
        options: TableOptions,
    },
    /// A table is dropped. Its files leave the file set.
    DropTable(TableId),
    /// A new file of a table.
    AddFile(NewFile),
    /// A file is no longer part of a table.
    RemoveFile {
        /// The table.
        table: TableId,
        /// The level of the file.
        level: u8,
        /// The number of the file.
        number: u64,
    },
    /// One more table sees a file that a table has: the same part of it, in the same level.
    ShareFile {
        /// The table that has the file.
        table: TableId,
        /// The level of the file.
        level: u8,
        /// The number of the file.
        number: u64,
        /// The table that sees the file from now on.
        to: TableId,
    },
    /// A table sees another part of a file from now on.
    SliceFile {
        /// The table.
        table: TableId,
        /// The level of the file.
        level: u8,
        /// The number of the file.
        number: u64,
        /// The part that the table sees; `None` means the whole file.
        slice: Option<Slice>,
    },
    /// A file goes to another level.
    MoveFile {
        /// The table.
        table: TableId,
        /// The level in which the file was until now.
        level: u8,
        /// The number of the file.
        number: u64,
        /// The new level.
        to: u8,
    },
    /// A new index, with a table for its entries.
    Index {
        /// The index.
        info: IndexInfo,
        /// How the entries of the index are stored.
        options: TableOptions,
    },
    /// An index changes its state, or now indexes another table, which has the rows of the old one.
    AlterIndex {
        /// The table with the entries of the index.
        id: TableId,
        /// The table that is indexed.
        table: TableId,
        /// The new state of the index.
        state: IndexState,
    },
    /// A version gets a name, and compactions keep it.
    Keep(Kept),
    /// The version with this name loses its name.
    Forget(String),
    /// How much of the past is kept from now on, and from which version on it is there.
    Retain(Option<Retained>),
    /// The past now begins with this version, if it is kept by this rule and begins earlier.
    RetainFrom {
        /// The rule for which the version was computed.
        retention: Retention,
        /// The version.
        from: Version,
    },
    /// A new subscription, or one that changes as a whole.
    Subscribe(Subscriber),
    /// A subscription ends.
    Unsubscribe(SubscriptionId),
    /// All commits up to the position were acknowledged. Has no effect on a subscription that has ended or is further.
    Acknowledge {
        /// The subscription.
        id: SubscriptionId,
        /// Its new position.
        position: Version,
    },
    /// A subscription lets go of the past, because it is beyond a limit. Has no effect if it is further than the
    /// position.
    LetGo {
        /// The subscription.
        id: SubscriptionId,
        /// Where it was when the limit was compared.
        position: Version,
    },
    /// How much of its past a table keeps from now on, and from which version on it is there.
    RetainTable {
        /// The table.
        table: TableId,
        /// What it keeps.
        retained: TableRetained,
    },
    /// The past of a table now begins with this version, if it is kept by this rule and begins earlier.
    RetainTableFrom {
        /// The table.
        table: TableId,
        /// The rule for which the version was computed.
        retention: Retention,
        /// The version.
        from: Version,
    },
    /// A version was the newest at this time.
    Time(VersionTime),
    /// Rows that had expired at this time, in milliseconds since 1970, may be gone from files. So reads must not use an
    /// earlier time.
    Expired(u64),
    /// The number of the oldest log that is needed. The rows of all older logs are in files.
    OldestLog(u64),
    /// The next free file number: no file has it or a greater one.
    NextNumber(u64),
    /// Every commit up to this version is in files or in logs that are still needed.
    LastVersion(Version),
    /// Every commit up to this version is in files. It is what a database opened read-only shows.
    FlushedVersion(Version),
    /// The next free table id: no table has it or a greater one.
    NextTable(u32),
    /// The oldest release that must be able to read what the writer of this manifest writes.
    WrittenFor(String),
}

impl Edit {
    /// The table that this edit changes, if it changes one.
    pub fn table(&self) -> Option<TableId> {
        match self {
            Self::Table { id, .. } | Self::AlterTable { id, .. } | Self::DropTable(id) => Some(*id),
            Self::Index { info, .. } => Some(info.id),
            Self::AddFile(NewFile { table, .. })
            | Self::RemoveFile { table, .. }
            | Self::ShareFile { to: table, .. }
            | Self::SliceFile { table, .. }
            | Self::MoveFile { table, .. }
            | Self::RetainTable { table, .. }
            | Self::RetainTableFrom { table, .. } => Some(*table),
            _ => None,
        }
    }

    /// The number of the file that this edit adds, if it adds one.
    pub fn added_number(&self) -> Option<u64> {
        match self {
            Self::AddFile(file) => Some(file.number),
            _ => None,
        }
    }

    /// Whether this edit may change which indexes a table has.
    pub fn changes_indexes(&self) -> bool {
        matches!(self, Self::Index { .. } | Self::AlterIndex { .. } | Self::DropTable(_))
    }

    /// Whether this edit removes files or memtables from the newest view, so that they can be freed once no reader
    /// holds an older view.
    pub fn frees(&self) -> bool {
        matches!(self, Self::RemoveFile { .. } | Self::DropTable(_) | Self::OldestLog(_))
    }

    /// Appends this edit in the form of a numbered field.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let tag = self.encode_body(&mut body);
        field::put(out, tag, &body);
    }

    /// Appends the fields of this edit, and returns its tag.
    fn encode_body(&self, out: &mut Vec<u8>) -> u8 {
        let mut put = |tag: u8, values: &[u64]| {
            values.iter().for_each(|&value| varint::put(out, value));
            tag
        };
        let file = |table: &TableId, level: &u8, number: &u64| [u64::from(table.0), u64::from(*level), *number];
        match self {
            Self::Database(id) => {
                out.extend_from_slice(&id.to_le_bytes());
                1
            }
            Self::Epoch(epoch) => put(2, &[*epoch]),
            Self::Table { id, name, options } => {
                put(3, &[id.0.into()]);
                varint::put_bytes(out, name.as_bytes());
                encode_options(out, options);
                3
            }
            Self::AddFile(NewFile { table, level, number, epoch, version_offset, meta }) => {
                put(4, &[table.0.into(), (*level).into(), *number, *epoch, *version_offset]);
                meta.encode(out);
                4
            }
            Self::RemoveFile { table, level, number } => put(5, &file(table, level, number)),
            Self::ShareFile { table, level, number, to } => {
                put(13, &file(table, level, number));
                varint::put(out, to.0.into());
                13
            }
            Self::SliceFile { table, level, number, slice } => {
                put(14, &file(table, level, number));
                encode_slice(out, slice.as_ref());
                14
            }
            Self::MoveFile { table, level, number, to } => {
                put(15, &file(table, level, number));
                varint::put(out, (*to).into());
                15
            }
            Self::Index { info, options } => {
                put(16, &[info.id.0.into(), info.table.0.into()]);
                let unique = if info.is_unique { UNIQUE } else { 0 };
                out.push(unique | ready_flag(info.state));
                varint::put_bytes(out, info.name.as_bytes());
                varint::put_bytes(out, &info.declaration);
                encode_options(out, options);
                if info.since > Version(0) {
                    field::put_number(out, SINCE, info.since.0);
                }
                16
            }
            Self::AlterIndex { id, table, state } => {
                put(17, &[id.0.into(), table.0.into()]);
                out.push(ready_flag(*state));
                17
            }
            Self::OldestLog(number) => put(6, &[*number]),
            Self::NextNumber(number) => put(7, &[*number]),
            Self::LastVersion(version) => put(8, &[version.0]),
            Self::FlushedVersion(version) => put(10, &[version.0]),
            Self::NextTable(id) => put(11, &[(*id).into()]),
            Self::DropTable(table) => put(9, &[table.0.into()]),
            Self::AlterTable { id, since, options } => {
                put(12, &[id.0.into(), *since]);
                encode_options(out, options);
                12
            }
            Self::Keep(kept) => {
                put(18, &[kept.version.0, kept.micros()]);
                varint::put_bytes(out, kept.name.as_bytes());
                18
            }
            Self::Forget(name) => {
                varint::put_bytes(out, name.as_bytes());
                19
            }
            Self::Retain(retained) => {
                let (kind, amount) = retention_code(retained.map_or(Retention::None, |retained| retained.retention));
                put(20, &[retained.map_or(0, |retained| retained.from.0)]);
                out.push(kind | if retained.is_some_and(|retained| !retained.is_sure) { UNSURE } else { 0 });
                varint::put(out, amount);
                20
            }
            Self::RetainFrom { retention, from } => {
                let (kind, amount) = retention_code(*retention);
                put(22, &[from.0]);
                out.push(kind);
                varint::put(out, amount);
                22
            }
            Self::RetainTable { table, retained: TableRetained { rule, from, is_sure } } => {
                let (kind, amount) = match rule {
                    TableRule::OfDatabase => (OF_DATABASE, 0),
                    TableRule::Own(retention) => retention_code(*retention),
                };
                put(27, &[u64::from(table.0), from.0]);
                out.push(kind | if *is_sure { 0 } else { UNSURE });
                varint::put(out, amount);
                27
            }
            Self::RetainTableFrom { table, retention, from } => {
                let (kind, amount) = retention_code(*retention);
                put(28, &[u64::from(table.0), from.0]);
                out.push(kind);
                varint::put(out, amount);
                28
            }
            Self::Expired(millis) => put(23, &[*millis]),
            Self::Unsubscribe(id) => put(25, &[id.0, SUBSCRIPTION_ENDS]),
            Self::Subscribe(subscriber) => {
                let Subscriber { id, name, position, micros, limits, hold } = subscriber;
                put(25, &[id.0, SUBSCRIPTION_IS_THERE, position.0, *micros, hold_code(*hold)]);
                let age = limits.age.map(|age| u64::try_from(age.as_micros()).unwrap_or(u64::MAX));
                for limit in [age, limits.bytes] {
                    varint::put(out, limit.map_or(0, |limit| limit.saturating_add(1)));
                }
                varint::put_bytes(out, name.as_bytes());
                25
            }
            Self::Acknowledge { id, position } => put(25, &[id.0, ACKNOWLEDGED, position.0]),
            Self::LetGo { id, position } => put(25, &[id.0, LETS_GO, position.0]),
            Self::Time(VersionTime { version, micros }) => put(21, &[version.0, *micros]),
            Self::WrittenFor(release) => {
                out.extend_from_slice(release.as_bytes());
                128
            }
        }
    }

    /// Takes one edit off the front of `bytes`. Returns `None` for an edit of a newer release that may be skipped.
    ///
    /// # Errors
    ///
    /// An error if the bytes are no edit, or only a newer release can read it.
    pub fn decode(bytes: &mut &[u8], framing: Framing) -> Result<Option<Self>, Unreadable> {
        if framing == Framing::Plain {
            let (&tag, rest) = bytes.split_first().ok_or_else(malformed)?;
            *bytes = rest;
            let edit = Self::decode_body(tag, bytes, framing)?;
            return edit.map(Some).ok_or_else(|| Unreadable::Newer(format!("edit {tag}")));
        }
        let field = Field::take(bytes).ok_or_else(malformed)?;
        let mut body = field.bytes;
        let Some(edit) = Self::decode_body(field.number, &mut body, framing)? else {
            field.pass_over("edit")?;
            return Ok(None);
        };
        field::pass_over_all(body, &format!("in edit {}, field", field.number))?;
        Ok(Some(edit))
    }

    /// Takes the fields off the front of `bytes`; `None` if the tag is not known.
    fn decode_body(tag: u8, bytes: &mut &[u8], framing: Framing) -> Result<Option<Self>, Unreadable> {
        if !matches!(tag, 1..=15) && (!matches!(tag, 16..=23 | 25 | 27..=28 | 128) || framing == Framing::Plain) {
            return Ok(None);
        }
        let mut why = malformed();
        match Self::decode_fields(tag, bytes, framing, &mut why) {
            Some(edit) => Ok(Some(edit)),
            None => Err(why),
        }
    }

    /// Takes the fields of an edit with a known tag off the front of `bytes`. Returns `None` if they are malformed,
    /// and may then put a more precise reason into `why`.
    fn decode_fields(tag: u8, bytes: &mut &[u8], framing: Framing, why: &mut Unreadable) -> Option<Self> {
        if tag == 1 {
            let (id, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            return Some(Self::Database(u64::from_le_bytes(*id)));
        }
        let mut options = |bytes: &mut &[u8], table: &dyn std::fmt::Display| {
            take_options(bytes, framing).map_err(|wrong| *why = wrong.within(format_args!("table {table}"))).ok()
        };
        let mut number = || varint::take(bytes);
        let level = |level: Option<u64>| {
            level?.try_into().ok().filter(|&level| usize::from(level) < crate::base::table::LEVELS)
        };
        let id = |id: Option<u64>| Some(TableId(id?.try_into().ok()?));
        Some(match tag {
            2 => Self::Epoch(number()?),
            3 => {
                let id = id(number())?;
                let name = take_name(bytes)?;
                let options = options(bytes, &name)?;
                Self::Table { id, name, options }
            }
            4 => {
                let (table, level) = (id(number())?, level(number())?);
                let (file, epoch, version_offset) = (number()?, number()?, number()?);
                let meta =
                    Meta::decode(bytes).map_err(|wrong| *why = wrong.within(format_args!("file {file}"))).ok()?;
                Self::AddFile(NewFile { table, level, number: file, epoch, version_offset, meta })
            }
            5 => {
                let (table, level) = (id(number())?, level(number())?);
                Self::RemoveFile { table, level, number: number()? }
            }
            6 => Self::OldestLog(number()?),
            7 => Self::NextNumber(number()?),
            8 => Self::LastVersion(Version(number()?)),
            9 => Self::DropTable(id(number())?),
            10 => Self::FlushedVersion(Version(number()?)),
            11 => Self::NextTable(number()?.try_into().ok()?),
            12 => {
                let (id, since) = (id(number())?, number()?);
                Self::AlterTable { id, since, options: options(bytes, &id.0)? }
            }
            13 => {
                let (table, level, file) = (id(number())?, level(number())?, number()?);
                Self::ShareFile { table, level, number: file, to: id(number())? }
            }
            14 => {
                let (table, level, number) = (id(number())?, level(number())?, number()?);
                Self::SliceFile { table, level, number, slice: decode_slice(bytes)? }
            }
            15 => {
                let (table, from, file) = (id(number())?, level(number())?, number()?);
                Self::MoveFile { table, level: from, number: file, to: level(number())? }
            }
            16 => {
                let (id, table) = (id(number())?, id(number())?);
                let flags = take_flags(bytes, UNIQUE | READY, why)?;
                let name = take_name(bytes)?;
                let declaration = varint::take_bytes(bytes)?.to_vec();
                let options = take_options(bytes, framing);
                let options = options.map_err(|wrong| *why = wrong.within(format_args!("index {name}"))).ok()?;
                let (is_unique, state) = (flags & UNIQUE != 0, state_of(flags));
                let since = Version(field::take_number(bytes, SINCE)?.unwrap_or(0));
                Self::Index { info: IndexInfo { id, table, name, is_unique, state, since, declaration }, options }
            }
            17 => {
                let (id, table) = (id(number())?, id(number())?);
                Self::AlterIndex { id, table, state: state_of(take_flags(bytes, READY, why)?) }
            }
            18 => {
                let (version, micros) = (Version(number()?), number()?);
                Self::Keep(Kept::new(&take_name(bytes)?, version, micros))
            }
            19 => Self::Forget(take_name(bytes)?),
            20 => {
                let from = Version(number()?);
                let (&kind, rest) = bytes.split_first()?;
                *bytes = rest;
                let (is_sure, kind) = (kind & UNSURE == 0, kind & !UNSURE);
                let retention = retention_of(kind, varint::take(bytes)?, why)?;
                Self::Retain((retention != Retention::None).then_some(Retained { retention, from, is_sure }))
            }
            22 => {
                let from = Version(number()?);
                let (&kind, rest) = bytes.split_first()?;
                *bytes = rest;
                Self::RetainFrom { retention: retention_of(kind, varint::take(bytes)?, why)?, from }
            }
            27 => {
                let (table, from) = (id(number())?, Version(number()?));
                let (&kind, rest) = bytes.split_first()?;
                *bytes = rest;
                let (is_sure, kind, amount) = (kind & UNSURE == 0, kind & !UNSURE, varint::take(bytes)?);
                let rule = match kind {
                    OF_DATABASE => TableRule::OfDatabase,
                    _ => TableRule::Own(retention_of(kind, amount, why)?),
                };
                Self::RetainTable { table, retained: TableRetained { rule, from, is_sure } }
            }
            28 => {
                let (table, from) = (id(number())?, Version(number()?));
                let (&kind, rest) = bytes.split_first()?;
                *bytes = rest;
                Self::RetainTableFrom { table, retention: retention_of(kind, varint::take(bytes)?, why)?, from }
            }
            21 => Self::Time(VersionTime { version: Version(number()?), micros: number()? }),
            23 => Self::Expired(number()?),
            25 => take_subscription(bytes, why)?,
            128 => Self::WrittenFor(String::from_utf8(std::mem::take(bytes).to_vec()).ok()?),
            _ => return None,
        })
    }
}

/// The flags of an index.
const UNIQUE: u8 = 1;
const READY: u8 = 2;

/// The field of an index that says from which version on reads may use it.
const SINCE: u8 = 1;

/// The bit beside the number of a retention if reads must not rely on it.
const UNSURE: u8 = 0x80;

/// Stands for the rule of the database in the edit that gives a table a rule.
const OF_DATABASE: u8 = 4;

/// The number of a retention, and how many versions or microseconds it is about.
fn retention_code(retention: Retention) -> (u8, u64) {
    match retention {
        Retention::None => (0, 0),
        Retention::Versions(versions) => (1, versions),
        Retention::Time(time) => (2, u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        Retention::Everything => (3, 0),
    }
}

/// What [`retention_code`] encodes. An unknown number comes from a newer release.
fn retention_of(kind: u8, amount: u64, why: &mut Unreadable) -> Option<Retention> {
    Some(match kind {
        0 => Retention::None,
        1 => Retention::Versions(amount),
        2 => Retention::Time(Duration::from_micros(amount)),
        3 => Retention::Everything,
        _ => {
            *why = Unreadable::Newer(format!("retention {kind}"));
            return None;
        }
    })
}

/// The kinds of edits of a subscription. They are less than 128, so that a varint is their byte.
const SUBSCRIPTION_ENDS: u64 = 0;
const SUBSCRIPTION_IS_THERE: u64 = 1;
const ACKNOWLEDGED: u64 = 2;
const LETS_GO: u64 = 3;

fn hold_code(hold: Hold) -> u64 {
    match hold {
        Hold::Sure => 0,
        Hold::Unsure => 1,
        Hold::Nothing => 2,
    }
}

/// Takes the fields of an edit of a subscription off the front of `bytes`. An unknown kind comes from a newer release.
fn take_subscription(bytes: &mut &[u8], why: &mut Unreadable) -> Option<Edit> {
    let (id, kind) = (SubscriptionId(varint::take(bytes)?), varint::take(bytes)?);
    let mut newer = |what: &str, number: u64| {
        *why = Unreadable::Newer(format!("{what} {number} of a subscription"));
        None
    };
    Some(match kind {
        SUBSCRIPTION_ENDS => Edit::Unsubscribe(id),
        SUBSCRIPTION_IS_THERE => {
            let (position, micros) = (Version(varint::take(bytes)?), varint::take(bytes)?);
            let hold = match varint::take(bytes)? {
                0 => Hold::Sure,
                1 => Hold::Unsure,
                2 => Hold::Nothing,
                hold => return newer("hold", hold),
            };
            let mut limit = || Some(varint::take(bytes)?.checked_sub(1));
            let (age, most_bytes) = (limit()?, limit()?);
            let limits = Limits { age: age.map(Duration::from_micros), bytes: most_bytes };
            Edit::Subscribe(Subscriber { id, name: take_name(bytes)?, position, micros, limits, hold })
        }
        ACKNOWLEDGED => Edit::Acknowledge { id, position: Version(varint::take(bytes)?) },
        LETS_GO => Edit::LetGo { id, position: Version(varint::take(bytes)?) },
        kind => return newer("change", kind),
    })
}

fn ready_flag(state: IndexState) -> u8 {
    match state {
        IndexState::Building => 0,
        IndexState::Ready => READY,
    }
}

fn state_of(flags: u8) -> IndexState {
    if flags & READY == 0 { IndexState::Building } else { IndexState::Ready }
}

/// Takes flags off the front of `bytes`. An unknown flag comes from a newer release.
fn take_flags(bytes: &mut &[u8], known: u8, why: &mut Unreadable) -> Option<u8> {
    let (&flags, rest) = bytes.split_first()?;
    *bytes = rest;
    if flags & !known != 0 {
        *why = Unreadable::Newer(format!("flags {flags:#x} of an index"));
        return None;
    }
    Some(flags)
}

/// Takes a name with its length off the front of `bytes`.
fn take_name(bytes: &mut &[u8]) -> Option<String> {
    String::from_utf8(varint::take_bytes(bytes)?.to_vec()).ok()
}

fn malformed() -> Unreadable {
    Unreadable::from("an edit does not decode")
}

fn encode_options(out: &mut Vec<u8>, options: &TableOptions) {
    let mut bytes = Vec::new();
    options.encode(&mut bytes);
    varint::put_bytes(out, &bytes);
}

fn take_options(bytes: &mut &[u8], framing: Framing) -> Result<TableOptions, Unreadable> {
    match framing {
        Framing::Plain => TableOptions::decode(bytes),
        Framing::Fields => TableOptions::decode_whole(varint::take_bytes(bytes).ok_or_else(malformed)?),
    }
}

fn encode_slice(out: &mut Vec<u8>, slice: Option<&Slice>) {
    out.push(u8::from(slice.is_some()));
    let Some(Slice { rows, bounds, bytes }) = slice else { return };
    bounds.encode(out);
    varint::put(out, *bytes);
    varint::put(out, rows.iter().count() as u64);
    let mut before = 0;
    for range in rows.iter() {
        varint::put(out, range.start - before);
        varint::put(out, range.end - range.start);
        before = range.end;
    }
}

/// Takes a slice off the front of `bytes`. Returns `None` if it is malformed, and `Some(None)` for the whole file.
fn decode_slice(bytes: &mut &[u8]) -> Option<Option<Slice>> {
    let (&sliced, rest) = bytes.split_first()?;
    *bytes = rest;
    match sliced {
        0 => return Some(None),
        1 => {}
        _ => return None,
    }
    let bounds = KeyBounds::decode(bytes).filter(|bounds| bounds.longest() <= MAX_BOUND_BYTES)?;
    let stored_bytes = varint::take(bytes)?;
    let count = varint::take(bytes)?;
    if count > MAX_RANGES as u64 {
        return None;
    }
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for i in 0..count {
        let (gap, rows) = (varint::take(bytes)?, varint::take(bytes)?);
        if rows == 0 || gap == 0 && i > 0 {
            return None;
        }
        let start = ranges.last().map_or(0, |range| range.end).checked_add(gap)?;
        ranges.push(start..start.checked_add(rows)?);
    }
    Some(Some(Slice { rows: RowRanges::new(ranges), bounds, bytes: stored_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::expiry::Expiry;

    fn slice() -> Slice {
        Slice { rows: RowRanges::new([5..10, 20..1020]), bounds: KeyBounds::cut(b"a", b"c"), bytes: 300 }
    }

    fn index(state: IndexState) -> Edit {
        let (id, table, name, declaration) = (TableId(9), TableId(1), "i".to_owned(), b"d".to_vec());
        let info = IndexInfo { id, table, name, is_unique: true, state, since: Version(0), declaration };
        Edit::Index { info, options: TableOptions::default() }
    }

    /// An index that reads may use from `version` on.
    fn since(version: Version) -> Edit {
        match index(IndexState::Ready) {
            Edit::Index { info, options } => Edit::Index { info: IndexInfo { since: version, ..info }, options },
            other => other,
        }
    }

    fn retain_table(rule: TableRule, is_sure: bool) -> Edit {
        Edit::RetainTable { table: TableId(1), retained: TableRetained { rule, from: Version(300), is_sure } }
    }

    fn retain(retention: Retention) -> Edit {
        Edit::Retain(Some(Retained { retention, from: Version(300), is_sure: true }))
    }

    fn from_hex(text: &str) -> Vec<u8> {
        let hex: String = text.split(' ').collect();
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
    }

    #[test]
    fn a_slice_that_nobody_cut_is_refused() {
        for (why, bytes) in [
            ("no rows in a range", "0e 01 06 18 01 0161 01 0163 00 01 05 00"),
            ("ranges that touch", "0e 01 06 18 01 0161 01 0163 00 02 05 05 00 05"),
            ("more ranges than there can be", "0e 01 06 18 01 0161 01 0163 00 09"),
            ("rows beyond a u64", "0e 01 06 18 01 0161 01 0163 00 01 05 ffffffffffffffffff01"),
            ("half sliced", "0e 01 06 18 02"),
        ] {
            assert!(Edit::decode(&mut &from_hex(bytes)[..], Framing::Plain).is_err(), "{why}");
        }
        let mut bytes = Vec::new();
        let long = KeyBounds { low: vec![b'a'; MAX_BOUND_BYTES + 1], high: None };
        let slice = Some(Slice { bounds: long, ..slice() });
        Edit::SliceFile { table: TableId(1), level: 6, number: 24, slice }.encode(&mut bytes);
        assert!(Edit::decode(&mut bytes.as_slice(), Framing::Fields).is_err(), "a bound that is too long");
    }

    #[test]
    fn edits_keep_the_bytes_of_their_format() {
        let meta = Meta {
            expiry: None,
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
            history: None.into(),
            range_erases: None.into(),
            filter: None,
            bounds: KeyBounds::cut(b"a", b"c"),
            oldest: Version(1),
            newest: Version(300),
            value_bytes: 0,
            user_bytes: 9,
            groups: Vec::new(),
            has_origin: false,
            has_samples: false,
            has_zstd: false,
            has_merges: false,
            unknown: Default::default(),
        };
        let table = TableId(1);
        let options = TableOptions { metadata: b"m".to_vec(), ..TableOptions::default() };
        let groups = vec!["hot".to_owned(), "b.2".to_owned()];
        let filters = crate::base::options::Filters { upper: sst::FilterKind::None, deepest: sst::FilterKind::Bits12 };
        let altered = TableOptions {
            index: sst::PageIndexKind::Both,
            groups,
            filters,
            filter_prefix_bytes: 300,
            ..TableOptions::default()
        };
        let edits = [
            (Edit::Database(2), "01 0200000000000000", "01 08 0200000000000000"),
            (Edit::Epoch(3), "02 03", "02 01 03"),
            (
                Edit::Table { id: table, name: "t".to_owned(), options },
                "03 01 0174 808001 808001 00 00 00 016d 00 06 00",
                "03 12 01 0174 0e 808001 808001 00 00 00 016d 00 06 00",
            ),
            (
                Edit::AddFile(NewFile { table, level: 6, number: 24, epoch: 9, version_offset: 0, meta }),
                "04 01 06 18 09 00 0102030405060708 00000000 8040 01 ac02 00 09 0161 01 0163 \
                 01 03 8020 00 01 01 01 0000000000000000 00100000 aabbccdd 00 00 00 00",
                "04 39 01 06 18 09 00 0102030405060708 00000000 8040 01 ac02 00 09 0161 01 0163 \
                 01 03 8020 00 01 01 01 0000000000000000 00100000 aabbccdd 00 00 00 00",
            ),
            (Edit::RemoveFile { table, level: 0, number: 23 }, "05 01 00 17", "05 03 01 00 17"),
            (Edit::OldestLog(26), "06 1a", "06 01 1a"),
            (Edit::NextNumber(27), "07 1b", "07 01 1b"),
            (Edit::LastVersion(Version(300)), "08 ac02", "08 02 ac02"),
            (Edit::DropTable(table), "09 01", "09 01 01"),
            (Edit::FlushedVersion(Version(300)), "0a ac02", "0a 02 ac02"),
            (Edit::NextTable(2), "0b 02", "0b 01 02"),
            (
                Edit::AlterTable { id: table, since: 300, options: altered },
                "0c 01 ac02 808001 808001 02 00 00 00 02 03686f74 03622e32 04 ac02",
                "0c 1a 01 ac02 16 808001 808001 02 00 00 00 02 03686f74 03622e32 04 ac02",
            ),
            (Edit::ShareFile { table, level: 6, number: 24, to: TableId(2) }, "0d 01 06 18 02", "0d 04 01 06 18 02"),
            (Edit::SliceFile { table, level: 6, number: 24, slice: None }, "0e 01 06 18 00", "0e 04 01 06 18 00"),
            (
                Edit::SliceFile { table, level: 6, number: 24, slice: Some(slice()) },
                "0e 01 06 18 01 0161 01 0163 ac02 02 05 05 0a e807",
                "0e 11 01 06 18 01 0161 01 0163 ac02 02 05 05 0a e807",
            ),
            (Edit::MoveFile { table, level: 0, number: 24, to: 6 }, "0f 01 00 18 06", "0f 04 01 00 18 06"),
        ];
        for (edit, plain, fields) in edits {
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, fields.replace(' ', ""), "{edit:?}");
            let mut plain = &from_hex(plain)[..];
            assert_eq!(Edit::decode(&mut plain, Framing::Plain), Ok(Some(edit)), "as older manifests have it");
            assert!(plain.is_empty());
        }
        let mut bytes = Vec::new();
        Edit::WrittenFor("0.1".to_owned()).encode(&mut bytes);
        assert_eq!(bytes, b"\x80\x030.1");
        let alter = |expiry| Edit::AlterTable {
            id: table,
            since: 0,
            options: TableOptions { expiry, ..TableOptions::default() },
        };
        let (retention, from) = (Retention::Everything, Version(300));
        let subscriber = Subscriber {
            id: SubscriptionId(7),
            name: "a".to_owned(),
            position: Version(300),
            micros: 5,
            limits: Limits::NONE.age(Duration::from_millis(1)),
            hold: Hold::Sure,
        };
        let unsure = Edit::Retain(Some(Retained { retention, from, is_sure: false }));
        for (edit, fields) in [
            (index(IndexState::Ready), "10 15 09 01 03 0169 0164 0d 808001 808001 00 00 00 00 00 06 00"),
            (since(Version(300)), "10 19 09 01 03 0169 0164 0d 808001 808001 00 00 00 00 00 06 00 01 02 ac02"),
            (
                alter(Expiry::After(Duration::from_secs(90))),
                "0c 14 01 00 11 808001 808001 00 00 00 00 00 06 00 01 02 5a00",
            ),
            (alter(Expiry::By(b"d".to_vec())), "0c 13 01 00 10 808001 808001 00 00 00 00 00 06 00 02 01 64"),
            (Edit::AlterIndex { id: TableId(9), table, state: IndexState::Building }, "11 03 09 01 00"),
            (Edit::Keep(Kept::new("a", Version(300), 5)), "12 05 ac02 05 0161"),
            (Edit::Forget("a".to_owned()), "13 02 0161"),
            (Edit::Retain(None), "14 03 00 00 00"),
            (retain(Retention::Versions(5)), "14 04 ac02 01 05"),
            (retain(Retention::Time(Duration::from_micros(300))), "14 05 ac02 02 ac02"),
            (unsure, "14 04 ac02 83 00"),
            (Edit::RetainFrom { retention: Retention::Versions(5), from }, "16 04 ac02 01 05"),
            (Edit::Subscribe(subscriber.clone()), "19 0b 07 01 ac02 05 00 e907 00 0161"),
            (
                Edit::Subscribe(Subscriber { limits: Limits::NONE.bytes(299), hold: Hold::Nothing, ..subscriber }),
                "19 0b 07 01 ac02 05 02 00 ac02 0161",
            ),
            (Edit::Unsubscribe(SubscriptionId(7)), "19 02 07 00"),
            (Edit::Acknowledge { id: SubscriptionId(7), position: Version(300) }, "19 04 07 02 ac02"),
            (Edit::LetGo { id: SubscriptionId(7), position: Version(300) }, "19 04 07 03 ac02"),
            (Edit::Time(VersionTime { version: Version(300), micros: 5 }), "15 03 ac02 05"),
            (retain_table(TableRule::Own(Retention::Versions(5)), true), "1b 05 01 ac02 01 05"),
            (retain_table(TableRule::OfDatabase, false), "1b 05 01 ac02 84 00"),
            (Edit::RetainTableFrom { table, retention: Retention::Versions(5), from }, "1c 05 01 ac02 01 05"),
        ] {
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            assert_eq!(bytes, from_hex(fields), "{edit:?}");
            assert!(Edit::decode(&mut &bytes[..], Framing::Plain).is_err(), "older manifests have none");
        }
    }

    #[test]
    fn a_file_that_only_a_newer_program_reads_is_refused_with_that_word() {
        let meta = Meta {
            expiry: None,
            file_id: 9,
            file_bytes: 8192,
            main: None,
            history: None.into(),
            range_erases: None.into(),
            filter: None,
            bounds: KeyBounds::default(),
            oldest: Version(1),
            newest: Version(2),
            value_bytes: 0,
            user_bytes: 0,
            groups: Vec::new(),
            has_origin: false,
            has_samples: false,
            has_zstd: false,
            has_merges: false,
            unknown: sst::format::meta::Unknown { features: 1 << 20, extension: Vec::new() },
        };
        let mut bytes = Vec::new();
        let (table, level, number) = (TableId(1), 3, 24);
        Edit::AddFile(NewFile { table, level, number, epoch: 1, version_offset: 0, meta }).encode(&mut bytes);
        let newer = Edit::decode(&mut bytes.as_slice(), Framing::Fields);
        assert_eq!(newer, Err(Unreadable::Newer("feature 20 of file 24".to_owned())));
    }

    #[test]
    fn what_a_later_release_adds_is_passed_over_where_it_is_optional_and_refused_by_name_elsewhere() {
        #[track_caller]
        fn check(bytes: &[u8], expected: Result<Option<Edit>, &str>) {
            let mut rest = bytes;
            let expected = expected.map_err(|what| Unreadable::Newer(what.to_owned()));
            assert_eq!(Edit::decode(&mut rest, Framing::Fields), expected);
        }
        check(b"\xc8\x03abc", Ok(None));
        check(b"\x28\x03abc", Err("edit 40"));
        check(b"\x02\x04\x09\x80\x01x", Ok(Some(Edit::Epoch(9))));
        check(b"\x02\x04\x09\x07\x01x", Err("in edit 2, field 7"));
        check(b"\x11\x03\x09\x01\x04", Err("flags 0x4 of an index"));
        check(b"\x14\x03\x09\x04\x00", Err("retention 4"));
        // Options of a table and fields of an edit have separate numbers, so both may use the same one.
        let name = "t".to_owned();
        let edit = Edit::Table { id: TableId(1), name, options: TableOptions::default() };
        let with_option = |number: u8| {
            let (mut options, mut body, mut bytes) = (Vec::new(), vec![1, 1, b't'], Vec::new());
            TableOptions::default().encode(&mut options);
            field::put(&mut options, number, b"new");
            varint::put_bytes(&mut body, &options);
            field::put(&mut bytes, 3, &body);
            bytes
        };
        check(&with_option(130), Ok(Some(edit)));
        check(&with_option(7), Err("option 7 of table t"));
        assert_eq!(Edit::decode(&mut &[40, 3][..], Framing::Plain), Err(Unreadable::Newer("edit 40".to_owned())));
    }

    #[test]
    fn edits_come_back_and_cut_ones_are_refused() {
        let meta = Meta {
            expiry: None,
            file_id: 9,
            file_bytes: 8192,
            main: None,
            history: None.into(),
            range_erases: None.into(),
            filter: None,
            bounds: KeyBounds::cut(b"a", b"b"),
            oldest: Version(1),
            newest: Version(2),
            value_bytes: 0,
            user_bytes: 0,
            groups: Vec::new(),
            has_origin: false,
            has_samples: false,
            has_zstd: false,
            has_merges: false,
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
            Edit::AlterTable { id: table, since: u64::MAX, options: split.clone() },
            Edit::AlterTable {
                id: table,
                since: 0,
                options: TableOptions { expiry: Expiry::By(b"d".to_vec()), ..split },
            },
            Edit::AddFile(NewFile { table, level: 6, number: 300, epoch: 3, version_offset: 12, meta }),
            Edit::RemoveFile { table, level: 0, number: 299 },
            Edit::ShareFile { table, level: 6, number: 300, to: TableId(8) },
            Edit::SliceFile { table, level: 6, number: 300, slice: None },
            Edit::SliceFile { table, level: 6, number: 300, slice: Some(slice()) },
            Edit::SliceFile { table, level: 6, number: 300, slice: Some(Slice { rows: RowRanges::NONE, ..slice() }) },
            Edit::MoveFile { table, level: 6, number: 300, to: 0 },
            Edit::OldestLog(4),
            Edit::NextNumber(301),
            Edit::LastVersion(Version(1 << 40)),
            Edit::FlushedVersion(Version(1 << 39)),
            Edit::NextTable(8),
            index(IndexState::Building),
            Edit::AlterIndex { id: TableId(9), table: TableId(1), state: IndexState::Ready },
            since(Version(1 << 40)),
            Edit::Keep(Kept::new("before the migration", Version(1 << 40), 1 << 50)),
            Edit::Forget("before the migration".to_owned()),
            Edit::Retain(None),
            retain(Retention::Everything),
            Edit::RetainFrom { retention: Retention::Everything, from: Version(1 << 40) },
            Edit::Subscribe(Subscriber {
                id: SubscriptionId(1 << 40),
                name: "mail".to_owned(),
                position: Version(1 << 40),
                micros: 1 << 50,
                limits: Limits::NONE.age(Duration::from_secs(1 << 20)).bytes(1 << 50),
                hold: Hold::Unsure,
            }),
            Edit::Unsubscribe(SubscriptionId(1 << 40)),
            Edit::Acknowledge { id: SubscriptionId(1), position: Version(1 << 40) },
            Edit::LetGo { id: SubscriptionId(1), position: Version(1 << 40) },
            Edit::Time(VersionTime { version: Version(1 << 40), micros: 1 << 50 }),
            retain_table(TableRule::Own(Retention::None), true),
            retain_table(TableRule::OfDatabase, false),
            Edit::RetainTableFrom { table, retention: Retention::Everything, from: Version(1 << 40) },
            Edit::WrittenFor("0.1".to_owned()),
            Edit::DropTable(table),
        ];
        let mut bytes = Vec::new();
        for edit in &edits {
            let start = bytes.len();
            edit.encode(&mut bytes);
            for end in start..bytes.len() {
                assert!(Edit::decode(&mut &bytes[start..end], Framing::Fields).is_err());
            }
        }
        let mut rest = bytes.as_slice();
        for edit in edits {
            assert_eq!(Edit::decode(&mut rest, Framing::Fields), Ok(Some(edit)));
        }
        assert!(rest.is_empty());
    }
}
