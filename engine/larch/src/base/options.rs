//! The options of a database, chosen when it is opened, and of a table, chosen when it is created. Options are plain
//! values; other modules act on them.

use super::budget::{Budget, DEFAULT_BYTES};
use super::error::{Error, Result};
use super::event::{Bytes, EventHook};
use super::expiry::{Expiry, ExpiryTimes};
use super::extractors::Extractors;
use super::operand::MergeFunctions;
use super::parts::MAX_GROUPS;
use super::release::{Format, Release};
use sst::format::features::Unreadable;
use sst::format::field::Field;
use sst::format::varint;
use sst::{BuildOptions, Compression, FilterKind, PageIndexKind};
use std::fmt;

/// When a commit returns. [`Batch::submit`](crate::Batch::submit) ignores this option and returns before the commit
/// is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// A commit is on stable storage before the call returns, so it survives a power failure. This is the default.
    #[default]
    Synced,
    /// The operating system has the bytes of a commit before the call returns. The commit survives the end of the
    /// process, but may be lost in a power failure.
    Buffered,
}

/// What a follower shows of the database whose writer runs in another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The rows that the writer has put in files, but not those that are only in its memory.
    Files,
    /// Every commit, some milliseconds later and perhaps before it is durable. The follower also holds the rows that
    /// the writer has not put in files yet, which take about as much memory as the writer's write buffer, in
    /// addition to the cache. If a snapshot, a range or a transaction holds an older moment, the rows of that moment
    /// can take as much memory again.
    Commits,
}

/// The options of an open database.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most memory that pages may take. Includes index nodes, data pages, pinned pages and pages in flight.
    pub cache: Budget,
    /// Memory for rows that are not in files yet, in bytes.
    pub write_buffer_bytes: u64,
    /// Memory for building files, for compactions and for reading ahead, in bytes.
    pub work_bytes: u64,
    /// What a commit waits for before it returns. A batch may choose otherwise for its own commit.
    pub durability: Durability,
    /// The largest number of SSTs that are open for reading, including open files that nothing uses at the moment.
    pub open_files: usize,
    /// Bytes of the cache for tables that stay in memory; `None` means a quarter of the cache.
    pub in_memory_bytes: Option<u64>,
    /// Disk space reserved so that erases can be written when the disk is full, in bytes.
    pub reserve_bytes: u64,
    /// A new manifest is begun when the manifest has grown by its initial length plus this many bytes.
    pub manifest_slack_bytes: u64,
    /// Whether a close saves which pages are in memory, so that the next open can load them again.
    pub warm_from_last: bool,
    /// Whether a missing database is created.
    pub create: bool,
    /// Whether the database is opened for reading only: without taking its lock and without replaying its logs.
    pub read_only: bool,
    /// Whether and how a database that is opened read-only follows the writer in another process.
    pub follow: Option<Follow>,
    /// Whether a follower loads pages of new files before it shows the files.
    pub follow_preloads: bool,
    /// Whether the writer leaves compactions to workers in other processes while a worker lives.
    pub compaction_workers: bool,
    /// Whether the writer publishes its metrics in a file that other processes read.
    pub publish_metrics: bool,
    /// Whether reads use the flat index of a file that has both kinds of index.
    pub prefer_flat_index: bool,
    /// Whether the thread that polls a future reads the page itself if the future needs only one.
    pub reads_in_poll: bool,
    /// Shape of the levels.
    pub levels: LevelOptions,
    /// Where events are reported.
    pub events: EventHook,
    /// The extractors that make the keys of indexes.
    pub extractors: Extractors,
    /// The extractors that compute the times of rows.
    pub expiry_times: ExpiryTimes,
    /// The functions that merges may call.
    pub merge_functions: MergeFunctions,
    /// Bytes that the background scrub reads in a second; 0 means no scrub.
    pub scrub_bytes_per_second: u64,
    /// The oldest release that must be able to read the files that this database writes.
    pub compat: Release,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache: Budget::fixed(DEFAULT_BYTES),
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
            publish_metrics: false,
            prefer_flat_index: false,
            reads_in_poll: false,
            levels: LevelOptions::default(),
            events: EventHook::default(),
            extractors: Extractors::default(),
            expiry_times: ExpiryTimes::default(),
            merge_functions: MergeFunctions::default(),
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

/// Prints whether the database is open for writing or only for reading, and then the main options.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.read_only, self.follow) {
            (false, _) => "for writing",
            (true, None) => "read-only",
            (true, Some(Follow::Files)) => "to follow files",
            (true, Some(Follow::Commits)) => "to follow commits",
        })?;
        write!(f, " with a cache of {}", self.cache)?;
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
    /// The number of files in level 0 that triggers a compaction. With a larger number, more files are merged at once
    /// and fewer bytes are written, but each read has to look into more files. A third of this number (four files if
    /// the number is 4 to 12) suffices if the table has not been written for some seconds, or if reads look into the
    /// files so often that this costs more than a compaction.
    pub level0_files: usize,
    /// Writes are slowed down when level 0 has this many files, and wait when it has 48, or twice `level0_files` if
    /// that is more.
    pub slow_files: usize,
    /// The approximate size of the uppermost level below 0, in bytes. A table smaller than twice this size has only
    /// one level below 0.
    pub base_bytes: u64,
    /// Each level is at most this many times as large as the level above it.
    pub growth: u64,
    /// Bytes of a file in the uppermost level below 0. Doubles with each deeper level, up to four times this.
    pub file_bytes: u64,
}

impl Default for LevelOptions {
    fn default() -> Self {
        Self { level0_files: 12, slow_files: 12, base_bytes: 256 << 20, growth: 10, file_bytes: 64 << 20 }
    }
}

/// Which filters the files of a table get.
///
/// Each file may have a filter, which denies nearly all keys that the file does not have, so that no rows are read
/// for them. Filters are cached pages like others. A filter page is read only where reads often look for absent
/// keys, and no read waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filters {
    /// For a file above the deepest level that has files. Most keys that are looked for are not in such a file.
    /// Flushes write these files, and so do compactions that do not write to the deepest level with files.
    pub upper: FilterKind,
    /// For a file in the deepest level that has files, and for imported files.
    pub deepest: FilterKind,
}

impl Filters {
    /// Filters of the same kind for all files.
    pub fn all(kind: FilterKind) -> Self {
        Self { upper: kind, deepest: kind }
    }
}

impl Default for Filters {
    fn default() -> Self {
        Self { upper: FilterKind::Bits20, deepest: FilterKind::Bits12 }
    }
}

/// Prints each filter as `none`, `12` or `20`: one of them if both are equal, otherwise `upper`, a comma, and
/// `deepest`.
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

/// The longest name of a column group, in bytes.
const MAX_GROUP_NAME_BYTES: usize = 64;

/// How a table is stored. Set when the table is created; [`Table::alter`](crate::Table::alter) can change the
/// options later. Files that were written under older options can still be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// Target size of a data page, in bytes: 256 to 1 MiB. The default is 16 KiB.
    pub page_bytes: u32,
    /// Target size of an index node, in bytes: 256 to 256 KiB. The default is 16 KiB.
    pub node_bytes: u32,
    /// Which kind of index the files get.
    pub index: PageIndexKind,
    /// Whether pages are compressed. LZ4 costs little. Zstd makes files smaller but reads from disk slower. Index
    /// nodes and filters are never compressed, and in memory all pages are uncompressed.
    pub compression: Compression,
    /// Bytes that the application stores with the table; the engine does not interpret them.
    pub metadata: Vec<u8>,
    /// Names of the column groups that values are split into, in order; empty if values are not split. A table has
    /// at most 16 groups. A name has 1 to 64 characters: ASCII letters, digits, `_`, `-` and `.`. Groups cannot be
    /// changed later.
    pub groups: Vec<String>,
    /// Which filters the files get. The default is 20 bits a key in upper files, and 12 in the deepest files.
    pub filters: Filters,
    /// If not 0, filters also hold a prefix of this many bytes of each key that is long enough. A read of a range whose
    /// keys all begin with the same prefix of this length then skips files without such keys. At most 1,024; the
    /// default is 0.
    pub filter_prefix_bytes: u16,
    /// Whether the engine tries to keep the table in memory. Its pages are loaded after an open, and whenever files
    /// are written. All such tables share [a part](crate::Builder::in_memory_bytes) of the cache, and their pages
    /// stay in memory while they fit in it. If a table does not fit, its index nodes and some of its rows are in
    /// memory. The default is false.
    pub in_memory: bool,
    /// Until when a row is there if its write does not say it. The time is given to each row that is written from then
    /// on, whether by an insert, an import or a merge, and stored with it, as by
    /// [`Table::insert_until`](crate::Table::insert_until); rows that are there keep the times that they have. The
    /// default is [`Expiry::Never`].
    pub expiry: Expiry,
}

/// The longest prefix that a filter can hold, in bytes.
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
            expiry: Expiry::Never,
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
        self.expiry.check()?;
        self.check_groups()
    }

    /// Checks the options of a table whose files `release` must be able to read.
    pub(crate) fn check_for(&self, release: Release) -> Result<()> {
        self.check()?;
        self.check_codec()?;
        if self.expiry != Expiry::Never && !release.reads_times() {
            return Err(Error::BadOptions(format!(
                "compat {release}: Larch {release} does not know rows that expire; leave the option expiry out, or open \
                 the database without compat"
            )));
        }
        match self.compression {
            Compression::Zstd { .. } if !release.reads_zstd() => Err(Error::BadOptions(format!(
                "compat {release}: Larch {release} does not read pages compressed by zstd; choose lz4, or open the database \
                 without compat"
            ))),
            Compression::None | Compression::Lz4 | Compression::Zstd { .. } => Ok(()),
        }
    }

    /// Refuses a compression that this program was built without.
    pub(crate) fn check_codec(&self) -> Result<()> {
        match self.compression.missing_feature() {
            None => Ok(()),
            Some(feature) => Err(Error::BadOptions(format!(
                "this program was built without feature {feature} of larch-db, which compression {} needs; build it with that \
                 feature, or choose another compression",
                self.compression
            ))),
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

    /// Whether files written with these options look the same as with `other`.
    pub(crate) fn writes_like(&self, other: &Self) -> bool {
        let (metadata, expiry) = (self.metadata.clone(), self.expiry.clone());
        *self == Self { metadata, expiry, in_memory: self.in_memory, ..other.clone() }
    }

    /// The options for building a file with this filter that `compat` can read.
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
    /// numbered fields, see Expiry
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
        self.expiry.encode(out);
    }

    /// Reads what [`TableOptions::encode`] writes, as [`TableOptions::decode`] does, to the end of `bytes`.
    pub(crate) fn decode_whole(mut bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut options = Self::decode(&mut bytes)?;
        while !bytes.is_empty() {
            let field = Field::take(&mut bytes).ok_or("a field does not decode")?;
            match Expiry::of_field(&field)? {
                Some(expiry) if options.expiry == Expiry::Never => options.expiry = expiry,
                Some(_) => return Err("the options say twice how rows expire".into()),
                None => field.pass_over("option")?,
            }
        }
        options.expiry.check().map_err(|error| Unreadable::Corrupt(error.to_string()))?;
        Ok(options)
    }

    /// Takes encoded options without numbered fields off the front of `bytes`, whose checksum the caller has verified.
    /// An unknown value of an option therefore means that a newer release wrote them.
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
            expiry: Expiry::Never,
        };
        options.check().map_err(|error| Unreadable::Corrupt(error.to_string()))?;
        Ok(options)
    }

    /// Takes the metadata and the names of the column groups off the front of `bytes`.
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

/// The zstd level that `number` encodes, or `None` if it is not a valid one.
fn zstd(number: u64) -> Option<Compression> {
    let zstd = Compression::Zstd { level: u8::try_from(number >> 4).ok()? };
    (number & 15 == 2 && zstd.check().is_ok()).then_some(zstd)
}

#[cfg(test)]
mod tests;
