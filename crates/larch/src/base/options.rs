//! The options of a database, which are chosen when it is opened, and the options of a table, which are chosen when
//! it is created. Options are values. The code that uses them is elsewhere.

use super::error::{Error, Result};
use super::event::{Bytes, EventHook};
use super::extractors::Extractors;
use super::parts::MAX_GROUPS;
use super::release::{Format, Release};
use sst::format::features::Unreadable;
use sst::format::varint;
use sst::{BuildOptions, Compression, FilterKind, PageIndexKind};
use std::fmt;

/// When a commit returns. [`Batch::submit`](crate::Batch::submit) returns before the commit is durable, whatever is
/// chosen here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// When the commit is on stable storage: it survives a power failure. The default.
    #[default]
    Synced,
    /// When the operating system has the commit: it survives the end of the process, but perhaps not a power
    /// failure.
    Buffered,
}

/// What a database that follows a writer in another process shows of the writer's database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// What the writer has put in files. Rows in its memory are not visible.
    Files,
    /// Every commit, some milliseconds after it, and perhaps before it is durable. Rows that the writer has not put
    /// in files yet take as much memory here as in the writer, in addition to the cache: about the write buffer of
    /// the writer. They take as much once more for each moment that a snapshot, a range or a transaction keeps.
    Commits,
}

/// The options of an open database.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for pages: index nodes and data alike, pinned and in flight included. Bytes.
    pub cache_bytes: u64,
    /// Memory for rows not yet in files. Bytes.
    pub write_buffer_bytes: u64,
    /// Memory for builders, compaction and readahead. Bytes.
    pub work_bytes: u64,
    /// When a commit returns, unless the batch chooses otherwise.
    pub durability: Durability,
    /// The largest number of SSTs that are open for reading, kept and in use together.
    pub open_files: usize,
    /// Share of the cache for tables that are to be in memory, in bytes; `None` is a quarter.
    pub in_memory_bytes: Option<u64>,
    /// Disk space kept back so that erases can be written when the disk is full. Bytes.
    pub reserve_bytes: u64,
    /// A manifest may grow by this many bytes and its initial length before a new one is begun.
    pub manifest_slack_bytes: u64,
    /// Whether the addresses of the pages in memory are written down at close, and the pages loaded again after open.
    pub warm_from_last: bool,
    /// Whether a missing database is created.
    pub create: bool,
    /// Whether the database is opened without lock or log replay.
    pub read_only: bool,
    /// Whether and how a database opened read-only follows the process that writes to it.
    pub follow: Option<Follow>,
    /// Whether a follower loads pages of new files before it shows the files.
    pub follow_preloads: bool,
    /// Whether compactions are left to workers in other processes while at least one worker lives.
    pub compaction_workers: bool,
    /// Whether the flat index is read if a file has both kinds of index.
    pub prefer_flat_index: bool,
    /// Whether the thread that polls a future reads a lone page itself.
    pub reads_in_poll: bool,
    /// Shape of the levels.
    pub levels: LevelOptions,
    /// Where events are reported.
    pub events: EventHook,
    /// The extractors that make the keys of indexes.
    pub extractors: Extractors,
    /// Bytes a second that the background scrub reads; 0 for no scrub.
    pub scrub_bytes_per_second: u64,
    /// The oldest release that must be able to read what is written.
    pub compat: Release,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            write_buffer_bytes: 64 << 20,
            work_bytes: 16 << 20,
            durability: Durability::Synced,
            open_files: 512,
            in_memory_bytes: None,
            reserve_bytes: 256 << 10,
            manifest_slack_bytes: 4 << 20,
            warm_from_last: false,
            create: true,
            read_only: false,
            follow: None,
            follow_preloads: true,
            compaction_workers: false,
            prefer_flat_index: false,
            reads_in_poll: false,
            levels: LevelOptions::default(),
            events: EventHook::default(),
            extractors: Extractors::default(),
            scrub_bytes_per_second: 0,
            compat: Release::NEWEST,
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |why: String| Err(Error::BadOptions(why));
        let LevelOptions { level0_files, slow_files, base_bytes, growth, file_bytes } = self.levels;
        if !(1 << 10..=8 << 30).contains(&self.write_buffer_bytes) {
            return bad(format!("a write buffer of {} bytes is not within 1 KiB and 8 GiB", self.write_buffer_bytes));
        }
        if self.follow.is_some() && !self.read_only {
            return bad(
                "a database that follows another process is opened read-only; leave one of the two out".to_owned()
            );
        }
        if level0_files == 0 || slow_files == 0 || base_bytes == 0 || file_bytes == 0 {
            return bad("a number in the shape of the levels is 0; choose at least 1".to_owned());
        }
        if growth < 2 {
            return bad(format!("a level cannot be {growth} times as large as the level above it; choose at least 2"));
        }
        Ok(())
    }
}

/// What a database is opened for, and the options that people choose.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.read_only, self.follow) {
            (false, _) => "for writing",
            (true, None) => "read-only",
            (true, Some(Follow::Files)) => "to follow files",
            (true, Some(Follow::Commits)) => "to follow commits",
        })?;
        write!(f, " with a cache of {}", Bytes(self.cache_bytes))?;
        if self.prefer_flat_index {
            f.write_str(", reading flat indexes")?;
        }
        if self.read_only {
            return Ok(());
        }
        let durability = match self.durability {
            Durability::Synced => "synced",
            Durability::Buffered => "buffered",
        };
        write!(f, ", a write buffer of {}, {durability} commits", Bytes(self.write_buffer_bytes))?;
        if self.compaction_workers {
            f.write_str(", compaction workers")?;
        }
        if self.compat != Release::NEWEST {
            write!(f, ", files for release {}", self.compat)?;
        }
        Ok(())
    }
}

/// Shape of the levels of every table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelOptions {
    /// The number of files in level 0 that starts a compaction. With a larger number, more files are merged at once,
    /// so fewer bytes are written, but every read has to look into each of these files. A third of this number
    /// (four, if this is 4 to 12) is enough in two cases: the table has not been written for some seconds, or it is
    /// read so often that the looks cost more than a compaction.
    pub level0_files: usize,
    /// The number of files in level 0 from which writes are slowed. Writes wait at 48 files, or at twice
    /// `level0_files` if this is more.
    pub slow_files: usize,
    /// About the size of the uppermost level below 0, in bytes. A table with less than twice this number of bytes
    /// has one level below 0.
    pub base_bytes: u64,
    /// How many times as large a level is as the level above it, at most.
    pub growth: u64,
    /// Size of a file in the uppermost level below 0, in bytes. Each deeper level doubles the size, up to four times
    /// this size.
    pub file_bytes: u64,
}

impl Default for LevelOptions {
    fn default() -> Self {
        Self { level0_files: 12, slow_files: 12, base_bytes: 256 << 20, growth: 10, file_bytes: 64 << 20 }
    }
}

/// Which filters the files of a table get.
///
/// For nearly every key that is absent from a file, the filter says that the key is absent, without reading rows.
/// Filters are pages in the cache like other pages. They are read only where reads often look for absent keys, and
/// no read waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filters {
    /// The filter of files with other files below them. Such files lack most keys that are looked for. They are the
    /// files of flushes, and of all compactions except compactions to the deepest level that has files.
    pub upper: FilterKind,
    /// The filter of files with nothing below them, and of imports.
    pub deepest: FilterKind,
}

impl Filters {
    /// The same filter in all files.
    pub fn all(kind: FilterKind) -> Self {
        Self { upper: kind, deepest: kind }
    }
}

impl Default for Filters {
    fn default() -> Self {
        Self { upper: FilterKind::Bits20, deepest: FilterKind::Bits12 }
    }
}

/// Written as one of `none`, `12` and `20`, or as two of them with a comma between them: upper and deepest.
impl fmt::Display for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |kind: FilterKind| match kind {
            FilterKind::None => "none",
            FilterKind::Bits12 => "12",
            FilterKind::Bits20 => "20",
        };
        f.write_str(name(self.upper))?;
        if self.upper == self.deepest { Ok(()) } else { write!(f, ",{}", name(self.deepest)) }
    }
}

/// The longest name of a column group.
const MAX_GROUP_NAME_BYTES: usize = 64;

/// How a table is stored. The options are chosen when the table is created, and can be changed with
/// [`Table::alter`](crate::Table::alter). Files that were written under older options can still be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// Target size of a data page in bytes, 256 to 1 MiB. Default 16 KiB.
    pub page_bytes: u32,
    /// Target size of an index node in bytes, 256 to 256 KiB. Default 16 KiB.
    pub node_bytes: u32,
    /// Which kind of index files get.
    pub index: PageIndexKind,
    /// Whether pages are compressed. LZ4 costs little. Zstd makes files smaller, but reads of pages that are not in
    /// memory slower. Index nodes and filters are never compressed. In memory, pages always take their uncompressed
    /// size.
    pub compression: Compression,
    /// Bytes that the application keeps with the table; the engine does not look at them.
    pub metadata: Vec<u8>,
    /// Names of the column groups into which the values of the table are split, in order. None if values are whole.
    /// There are at most 16 names. Each has 1 to 64 letters, digits, `_`, `-` and `.` of ASCII. They cannot be
    /// changed later.
    pub groups: Vec<String>,
    /// Filters over keys. Default 20 bits a key in upper files, 12 in the deepest.
    pub filters: Filters,
    /// Length of a prefix in bytes: filters hold the prefix of each key as well. If all keys of a range have the
    /// same prefix, the range opens no file without such keys. At most 1,024. The default is 0, which means no
    /// prefix.
    pub filter_prefix_bytes: u16,
    /// Whether the table is to be in memory. Its pages are loaded after open and when files are written. They stay
    /// while the pages of all such tables together are within [their share](crate::Builder::in_memory_bytes) of the
    /// cache. If the table is larger, its index nodes and some of its rows are in memory. Default false.
    pub in_memory: bool,
}

/// Longest prefix in a filter, in bytes.
const MAX_FILTER_PREFIX_BYTES: u16 = 1024;

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            page_bytes: 16 << 10,
            node_bytes: 16 << 10,
            index: PageIndexKind::Btree,
            compression: Compression::None,
            metadata: Vec::new(),
            groups: Vec::new(),
            filters: Filters::default(),
            filter_prefix_bytes: 0,
            in_memory: false,
        }
    }
}

impl TableOptions {
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |why: String| Err(Error::BadOptions(why));
        if !(256..=1 << 20).contains(&self.page_bytes) {
            return bad(format!("a page of {} bytes is not within 256 B and 1 MiB", self.page_bytes));
        }
        if !(256..=256 << 10).contains(&self.node_bytes) {
            return bad(format!("an index node of {} bytes is not within 256 B and 256 KiB", self.node_bytes));
        }
        if self.filter_prefix_bytes > MAX_FILTER_PREFIX_BYTES {
            let bytes = self.filter_prefix_bytes;
            return bad(format!("a prefix of {bytes} bytes in filters is more than {MAX_FILTER_PREFIX_BYTES}"));
        }
        self.compression.check().or_else(bad)?;
        self.check_groups()
    }

    /// Checks the options for a table whose files `release` must be able to read.
    pub(crate) fn check_for(&self, release: Release) -> Result<()> {
        self.check()?;
        match self.compression {
            Compression::Zstd { .. } if !release.reads_zstd() => Err(Error::BadOptions(format!(
                "compat {release}: Larch {release} does not read pages compressed by zstd; choose lz4, or open the database \
                 without compat"
            ))),
            Compression::None | Compression::Lz4 | Compression::Zstd { .. } => Ok(()),
        }
    }

    fn check_groups(&self) -> Result<()> {
        let bad = |why: String| Err(Error::BadOptions(why));
        if self.groups.len() > MAX_GROUPS {
            let count = self.groups.len();
            return bad(format!(
                "{count} column groups are more than {MAX_GROUPS}; put columns that are read together in one group"
            ));
        }
        for (i, name) in self.groups.iter().enumerate() {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            if name.is_empty() || name.len() > MAX_GROUP_NAME_BYTES || !name.bytes().all(is_plain) {
                return bad(format!(
                    "a column group cannot be named {name:?}; write 1 to {MAX_GROUP_NAME_BYTES} letters (a to z), \
                     digits, _, - and ."
                ));
            }
            if self.groups[..i].contains(name) {
                return bad(format!("two column groups are named {name}; give each a name of its own"));
            }
        }
        Ok(())
    }

    /// Whether both options lead to the same files.
    pub(crate) fn writes_like(&self, other: &Self) -> bool {
        *self == Self { metadata: self.metadata.clone(), in_memory: self.in_memory, ..other.clone() }
    }

    /// How to write a file with this filter so that the release `compat` can read it.
    pub(crate) fn build(&self, filter: FilterKind, compat: Release) -> BuildOptions {
        BuildOptions {
            page_bytes: self.page_bytes,
            node_bytes: self.node_bytes,
            index: self.index,
            compression: self.compression,
            groups: self.groups.len().saturating_sub(1),
            filter,
            filter_prefix_bytes: self.filter_prefix_bytes,
            features: compat.features(Format::Sst),
            ..BuildOptions::default()
        }
    }

    /// ```text
    /// page bytes | node bytes | index | compression | 0, ignored | metadata              varints, length-prefixed
    /// group count | names                                                               varint, each length-prefixed
    /// compression: bits 0-3 0 none, 1 LZ4, 2 zstd; the bits from 4 on its level, of zstd alone
    /// filters: bits 0-1 upper, 2-3 deepest; each 0 none, 1 of 12 bits, 2 of 20 bits;
    /// bit 4 whether the table is to be in memory | prefix bytes                                              varints
    /// ```
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let index = match self.index {
            PageIndexKind::Btree => 0,
            PageIndexKind::Flat => 1,
            PageIndexKind::Both => 2,
        };
        let compression = match self.compression {
            Compression::None => 0,
            Compression::Lz4 => 1,
            Compression::Zstd { level } => 2 | u64::from(level) << 4,
        };
        for value in [self.page_bytes.into(), self.node_bytes.into(), index, compression, 0] {
            varint::put(out, value);
        }
        varint::put_bytes(out, &self.metadata);
        varint::put(out, self.groups.len() as u64);
        for name in &self.groups {
            varint::put_bytes(out, name.as_bytes());
        }
        let number =
            |kind: FilterKind| FilterKind::ALL.iter().position(|of| *of == kind).expect("all are listed") as u64;
        varint::put(
            out,
            number(self.filters.upper) | number(self.filters.deepest) << 2 | u64::from(self.in_memory) << 4,
        );
        varint::put(out, self.filter_prefix_bytes.into());
    }

    /// Takes an encoding off the front of `bytes`. The bytes around it have a checksum, so an unknown choice comes
    /// from a newer release.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Result<Self, Unreadable> {
        let malformed = || Unreadable::from("the options do not decode");
        let numbers = take_numbers(bytes).ok_or_else(malformed)?;
        let (metadata, groups) = Self::take_names(bytes).ok_or_else(malformed)?;
        let [page_bytes, node_bytes, index, compression, _] = numbers;
        let [filters, prefix_bytes] = take_numbers(bytes).ok_or_else(malformed)?;
        let newer = |what: &str, number: u64| Unreadable::Newer(format!("{what} {number}"));
        let index = match index {
            0 => PageIndexKind::Btree,
            1 => PageIndexKind::Flat,
            2 => PageIndexKind::Both,
            _ => return Err(newer("index", index)),
        };
        let compression = match compression {
            0 => Compression::None,
            1 => Compression::Lz4,
            _ => zstd(compression).ok_or_else(|| newer("compression", compression))?,
        };
        let filter = |number: u64| FilterKind::ALL.get(number as usize).copied();
        let (upper, deepest) = (filter(filters & 3), filter(filters >> 2 & 3));
        let Some((upper, deepest)) = upper.zip(deepest).filter(|_| filters < 32) else {
            return Err(newer("filter", filters));
        };
        let u32_of = |number: u64| u32::try_from(number).map_err(|_| malformed());
        let options = Self {
            page_bytes: u32_of(page_bytes)?,
            node_bytes: u32_of(node_bytes)?,
            index,
            compression,
            metadata,
            groups,
            filters: Filters { upper, deepest },
            filter_prefix_bytes: prefix_bytes.try_into().map_err(|_| malformed())?,
            in_memory: filters & 16 != 0,
        };
        options.check().map_err(|error| Unreadable::Corrupt(error.to_string()))?;
        Ok(options)
    }

    /// Metadata and names of groups.
    fn take_names(bytes: &mut &[u8]) -> Option<(Vec<u8>, Vec<String>)> {
        let metadata = varint::take_bytes(bytes)?.to_vec();
        let count = usize::try_from(varint::take(bytes)?).ok().filter(|&count| count <= MAX_GROUPS)?;
        let mut name = || String::from_utf8(varint::take_bytes(bytes)?.to_vec()).ok();
        Some((metadata, (0..count).map(|_| name()).collect::<Option<_>>()?))
    }
}

fn take_numbers<const N: usize>(bytes: &mut &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = varint::take(bytes)?;
    }
    Some(numbers)
}

/// The compression by zstd that this number stands for, if one exists.
fn zstd(number: u64) -> Option<Compression> {
    let zstd = Compression::Zstd { level: u8::try_from(number >> 4).ok()? };
    (number & 15 == 2 && zstd.check().is_ok()).then_some(zstd)
}

#[cfg(test)]
mod tests;
