//! What a database knows about a file without reading it: roots, totals, bounds. The entry in the manifest and the
//! footer of the file have the same bytes. So a file can be opened without a manifest. This module reads no page.
//!
//! ```text
//! footer, the last 4096 bytes of a file:
//!    0  magic "LARCHSST"                8
//!    8  format version u32 | features u32
//!   16  file id u64                     seeds every checksum of the file
//!   24  meta bytes u32 | origin bytes u32
//!   32  meta, see `Meta::encode`
//!       origin, where the file has that feature: what its database says of it, for a repair without a manifest
//!       zeros
//! 4092  crc32c u32 of everything before it
//! ```
//!
//! Features say what a reader must know to read the file right; see [`super::features`].

use super::expiry::Expiry;
use super::features::{self, Unreadable};
use super::filter::FilterForm;
use super::node::Totals;
use super::{field, varint};
use crate::KeyRange;
use crate::key_range::{next_string, successor};
use crate::row::{Until, Version};
use os::BLOCK_BYTES;
use pages::Address;

/// The newest format that this code writes, and the only one that it reads.
pub const FORMAT_VERSION: u32 = 1;
/// A flat index lies beside a B-tree. A reader that does not know this bit reads the B-tree.
const FLAT_BESIDE: u32 = 1;
/// The footer says where the file comes from.
pub(crate) const ORIGIN: u32 = 1 << 1;
/// Rows have parts in column groups.
const GROUPS: u32 = 1 << 16;
/// Some tree has a flat index only.
const FLAT_ALONE: u32 = 1 << 17;
/// The file has a filter of fingerprints.
const FUSE_FILTER: u32 = 1 << 18;
/// The file has a filter of blocks.
pub const BLOCK_FILTER: u32 = 1 << 19;
/// Some node of the file has samples: copies of the last head of each block of heads.
pub const NODE_SAMPLES: u32 = 1 << 21;
/// Some page is compressed by zstd.
pub const ZSTD: u32 = 1 << 22;
/// Some row has a time until which it is there.
pub const UNTIL: u32 = 1 << 23;
/// Some row is a merge.
pub const MERGES: u32 = 1 << 24;
/// Every feature bit of files that this code knows.
pub const FEATURES: u32 =
    FLAT_BESIDE | ORIGIN | GROUPS | FLAT_ALONE | FUSE_FILTER | BLOCK_FILTER | NODE_SAMPLES | ZSTD | UNTIL | MERGES;

/// The most column groups beside the main one. For each group, the footer holds two trees of about 100 bytes.
pub const MAX_GROUPS: usize = 15;

const MAGIC: &[u8; 8] = b"LARCHSST";
const META_AT: usize = 32;

/// The longest origin. An origin of this length fits into the footer even if the meta is as large as it can be.
pub const MAX_ORIGIN_BYTES: usize = 512;

/// Longest bound of keys that a meta holds.
pub const MAX_BOUND_BYTES: usize = 64;

/// Which indexes a file has, or is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PageIndexKind {
    /// A tree of nodes, each a page.
    #[default]
    Btree,
    /// One page that lists every data page.
    Flat,
    /// Both.
    Both,
}

impl PageIndexKind {
    /// Whether a B-tree is written.
    pub fn has_btree(self) -> bool {
        self != Self::Flat
    }

    /// Whether a flat index is written.
    pub fn has_flat(self) -> bool {
        self != Self::Btree
    }
}

/// The top of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The page at the top: a node, the flat list, or the only data page.
    pub address: Address,
    /// How many index pages lie on the way to a data page.
    pub height: u8,
    /// Stored bytes of all pages of the index.
    pub index_bytes: u64,
}

/// One sorted sequence of rows in a file, with the indexes that lead to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The totals of what the tree holds.
    pub totals: Totals,
    /// Number of data pages.
    pub data_pages: u64,
    /// The B-tree, if written.
    pub btree: Option<Root>,
    /// The flat list, if written.
    pub flat: Option<Root>,
}

/// A tree that most files do not have. The description of the tree is allocated separately, because the meta of
/// every file stays in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RareTree(Option<Box<Tree>>);

impl RareTree {
    /// The tree, if one exists.
    #[inline]
    pub fn get(&self) -> Option<Tree> {
        self.0.as_deref().copied()
    }

    /// Does the same as [`RareTree::get`], but returns a reference.
    #[inline]
    pub fn tree(&self) -> Option<&Tree> {
        self.0.as_deref()
    }

    /// Does the same as [`RareTree::tree`], but the tree can be changed.
    pub fn tree_mut(&mut self) -> Option<&mut Tree> {
        self.0.as_deref_mut()
    }

    /// Whether it has a tree.
    #[inline]
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Whether it has no tree.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |_| size_of::<Tree>())
    }
}

impl From<Option<Tree>> for RareTree {
    fn from(tree: Option<Tree>) -> Self {
        Self(tree.map(Box::new))
    }
}

impl Tree {
    /// The root from which a reader starts. If the tree has both a B-tree and a flat index, this is the root of
    /// the B-tree or, if `prefer_flat` is set, of the flat index.
    pub fn root(&self, prefer_flat: bool) -> Root {
        let (first, second) = if prefer_flat { (self.flat, self.btree) } else { (self.btree, self.flat) };
        first.or(second).expect("a decoded tree has an index")
    }

    /// Checks that the roots belong to one tree. A root of height 0 is the only data page.
    fn check(&self) -> Result<(), String> {
        for Root { height, .. } in [self.btree, self.flat].into_iter().flatten() {
            if (height == 0) != (self.data_pages == 1) {
                return Err(format!("{} data pages under a root of height {height}", self.data_pages));
            }
        }
        match (self.btree, self.flat) {
            (_, Some(flat)) if flat.height > 1 => Err(format!("a flat list of height {}, it is one page", flat.height)),
            (Some(btree), Some(flat)) if flat.height == 0 && btree != flat => {
                Err("two roots of one page differ".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Stored bytes of its indexes.
    pub fn index_bytes(&self) -> u64 {
        // A decoded meta may say anything. If the sum does not fit a u64, the result is the greatest u64. The
        // result is later compared with the true number, and the difference is found.
        let of = |root: Option<Root>| root.map_or(0, |root| root.index_bytes);
        of(self.btree).saturating_add(of(self.flat))
    }
}

/// The bounds of the keys and range erases of a file, both inclusive. Long keys are cut outward, so the bounds may
/// be a little wider.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KeyBounds {
    /// The low bound, which is not greater than any key.
    pub low: Vec<u8>,
    /// The high bound, which is not less than any key; `None` if no short string is great enough.
    pub high: Option<Vec<u8>>,
}

impl KeyBounds {
    /// How many bytes of memory on the heap this value takes, in addition to its own size.
    pub fn heap_bytes(&self) -> usize {
        self.low.capacity() + self.high.as_ref().map_or(0, Vec::capacity)
    }

    /// Bounds of the keys from `first` to `last`. Each has at most [`MAX_BOUND_BYTES`] bytes.
    pub fn cut(first: &[u8], last: &[u8]) -> Self {
        let low = first[..first.len().min(MAX_BOUND_BYTES)].to_vec();
        let high =
            if last.len() <= MAX_BOUND_BYTES { Some(last.to_vec()) } else { successor(&last[..MAX_BOUND_BYTES]) };
        Self { low, high }
    }

    /// Appends `low bound | high bound present u8 | high bound`. The length of each bound comes before the bound.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put_bytes(out, &self.low);
        out.push(u8::from(self.high.is_some()));
        if let Some(high) = &self.high {
            varint::put_bytes(out, high);
        }
    }

    /// Decodes the bounds at the front of `bytes` and removes them from there; `None` if they are malformed. Does
    /// not check their lengths.
    pub fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let low = varint::take_bytes(bytes)?.to_vec();
        let high = match take_u8(bytes)? {
            0 => None,
            1 => Some(varint::take_bytes(bytes)?.to_vec()),
            _ => return None,
        };
        Some(Self { low, high })
    }

    /// The length of the longer bound.
    pub fn longest(&self) -> usize {
        self.low.len().max(self.high.as_ref().map_or(0, Vec::len))
    }

    /// Whether `key` may lie within the bounds.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.low.as_slice() <= key && self.high.as_deref().is_none_or(|high| key <= high)
    }

    /// Whether some key may lie within both bounds.
    pub fn overlaps(&self, other: &Self) -> bool {
        let starts_in_time = |a: &Self, b: &Self| b.high.as_deref().is_none_or(|high| a.low.as_slice() <= high);
        starts_in_time(self, other) && starts_in_time(other, self)
    }

    /// Whether a file with these bounds can come before a file with the bounds `next` in a sorted level. It can if
    /// the bounds share no key, or if they share one only because keys were cut to the same bytes.
    pub fn is_before(&self, next: &Self) -> bool {
        let is_cut_tie = next.low.len() == MAX_BOUND_BYTES && self.high == successor(&next.low);
        self.high.as_deref().is_some_and(|high| high <= next.low.as_slice()) || is_cut_tie
    }

    /// The range of all strings within the bounds.
    pub fn to_range(&self) -> KeyRange {
        KeyRange { start: self.low.clone(), end: self.high.as_deref().map(next_string) }
    }

    /// Whether some key of `range` may lie within the bounds.
    pub fn meets(&self, range: &KeyRange) -> bool {
        range.ends_after(&self.low) && self.high.as_ref().is_none_or(|high| range.start <= *high)
    }

    /// Whether no key within the bounds lies before `range`.
    pub fn begins_in(&self, range: &KeyRange) -> bool {
        range.start <= self.low
    }

    /// Whether no key within the bounds lies after `range`.
    pub fn ends_in(&self, range: &KeyRange) -> bool {
        range.end.is_none() || self.high.as_ref().is_some_and(|high| range.ends_after(high))
    }

    /// The smallest bounds that contain these bounds and `other`.
    pub fn union(&self, other: &Self) -> Self {
        let high = match (&self.high, &other.high) {
            (Some(a), Some(b)) => Some(a.max(b).clone()),
            _ => None,
        };
        Self { low: self.low.as_slice().min(&other.low).to_vec(), high }
    }
}

/// The trees of a column group that is not the main one. Row `i` of `newest` belongs to row `i` of the main tree,
/// and row `i` of `older` belongs to row `i` of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GroupTrees {
    /// Parts of the newest versions.
    pub newest: Option<Tree>,
    /// Parts of older versions.
    pub older: Option<Tree>,
}

/// The filter of a file: a tree of partitions. Each partition covers consecutive rows of the main tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterTree {
    /// The tree of the partitions. Partitions are found by key like the pages of the main tree. The rows of this
    /// tree are the rows of the main tree.
    pub tree: Tree,
    /// The number of rows of each partition. The last partition has the remaining rows.
    pub partition_rows: u32,
    /// The length of the key prefixes that are also in the filter; 0 if the filter has no prefixes.
    pub prefix_bytes: u16,
    /// The form of the partitions, which depends on the features of the file.
    pub form: FilterForm,
}

impl FilterForm {
    /// The form of a filter in a file with the given features.
    fn of(features: u32) -> Self {
        if features & BLOCK_FILTER != 0 { Self::Blocks } else { Self::Fuse }
    }

    /// The feature of a file whose filter has this form.
    fn feature(self) -> u32 {
        match self {
            Self::Fuse => FUSE_FILTER,
            Self::Blocks => BLOCK_FILTER,
        }
    }
}

impl FilterTree {
    /// Checks that this can be the filter of a file whose main tree is `main`.
    fn check(&self, main: Option<Tree>) -> Result<(), String> {
        let rows = main.map_or(0, |main| main.totals.rows);
        if self.tree.totals.rows != rows {
            return Err(format!("a filter of {} rows stands with {rows}", self.tree.totals.rows));
        }
        let Self { tree, partition_rows, .. } = self;
        if *partition_rows == 0 || rows == 0 || tree.data_pages != rows.div_ceil(u64::from(*partition_rows)) {
            return Err(format!("{rows} rows are not in {} partitions of {partition_rows}", tree.data_pages));
        }
        Ok(())
    }
}

/// Everything that is known about a file without reading it. It takes about 200 bytes, and 200 more bytes for every
/// two column groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The seed of the file's checksums. No other file has the same seed.
    pub file_id: u64,
    /// Length of the file.
    pub file_bytes: u64,
    /// Newest versions of all keys.
    pub main: Option<Tree>,
    /// The older versions. The key of an older version is the row id, ascending, and the version, descending.
    pub history: RareTree,
    /// Range erases, keyed by start.
    pub range_erases: RareTree,
    /// The filter over the main tree's keys.
    pub filter: Option<FilterTree>,
    /// The column groups beside the main one, from group 1 on.
    pub groups: Vec<GroupTrees>,
    /// When rows expire; `None` if no row has a time.
    pub expiry: Option<Box<Expiry>>,
    /// The bounds of rows and range erases.
    pub bounds: KeyBounds,
    /// Oldest version in the file.
    pub oldest: Version,
    /// Newest version in the file.
    pub newest: Version,
    /// Stored bytes of value pages.
    pub value_bytes: u64,
    /// The bytes of all keys and values, as they were given to the builder.
    pub user_bytes: u64,
    /// Whether the footer says where the file comes from.
    pub has_origin: bool,
    /// Whether some node of the file has samples: copies of the last head of each block of heads.
    pub has_samples: bool,
    /// Whether some page is compressed by zstd.
    pub has_zstd: bool,
    /// Whether some row is a merge.
    pub has_merges: bool,
    /// Data that a newer program has added, and that this program need not understand. It is kept unchanged.
    pub unknown: Unknown,
}

/// What a newer program may add to a meta so that older programs can still read the file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Unknown {
    /// Low feature bits.
    pub features: u32,
    /// Numbered fields; see `super::field`.
    pub extension: Vec<u8>,
}

impl Meta {
    /// The trees of the column groups beside the main one.
    pub fn group_trees(&self) -> impl Iterator<Item = TreeKind> + use<> {
        (1..=self.groups.len() as u8).map(TreeKind::Group)
    }

    /// How many bytes of memory on the heap this value takes, in addition to its own size.
    pub fn heap_bytes(&self) -> usize {
        let groups = self.groups.capacity() * size_of::<GroupTrees>();
        let rare = self.history.heap_bytes() + self.range_erases.heap_bytes();
        let expiry = self.expiry.as_ref().map_or(0, |expiry| size_of::<Expiry>() + expiry.heap_bytes());
        groups + rare + expiry + self.bounds.heap_bytes() + self.unknown.extension.capacity()
    }

    /// The bytes of the pages with older versions, of all groups.
    pub fn history_bytes(&self) -> u64 {
        let older = |kind: &TreeKind| matches!(kind, TreeKind::History | TreeKind::GroupHistory(_));
        self.trees().filter(|(kind, _)| older(kind)).map(|(_, tree)| tree.totals.bytes).sum()
    }

    /// The number of rows, without older versions.
    pub fn rows(&self) -> u64 {
        self.main.map_or(0, |tree| tree.totals.rows)
    }

    /// The time from which on no row of the file has a value: every put has a time, and this is the last of them.
    /// `None` if some put has no time, or if the file has no put.
    pub fn expired_from(&self) -> Option<Until> {
        let expiry = self.expiry.as_ref()?;
        let puts = |tree: &Tree| tree.totals.rows.saturating_sub(tree.totals.erased);
        let all = self.main.as_ref().map_or(0, puts) + self.history.tree().map_or(0, puts);
        (all == expiry.rows()).then(|| expiry.latest())
    }

    /// All trees with their names.
    pub fn trees(&self) -> impl Iterator<Item = (TreeKind, Tree)> {
        let keyed = [
            (TreeKind::Main, self.main),
            (TreeKind::History, self.history.get()),
            (TreeKind::RangeErases, self.range_erases.get()),
            (TreeKind::Filter, self.filter.map(|filter| filter.tree)),
        ];
        let groups = self.groups.iter().zip(1..).flat_map(|(trees, group)| {
            [(TreeKind::Group(group), trees.newest), (TreeKind::GroupHistory(group), trees.older)]
        });
        keyed.into_iter().chain(groups).filter_map(|(kind, tree)| tree.map(|tree| (kind, tree)))
    }

    /// A tree, if the file has it.
    #[inline]
    pub fn tree(&self, kind: TreeKind) -> Option<&Tree> {
        let group = |group: u8| self.groups.get(usize::from(group).checked_sub(1)?);
        match kind {
            TreeKind::Main => self.main.as_ref(),
            TreeKind::History => self.history.tree(),
            TreeKind::RangeErases => self.range_erases.tree(),
            TreeKind::Filter => self.filter.as_ref().map(|filter| &filter.tree),
            TreeKind::Group(number) => group(number)?.newest.as_ref(),
            TreeKind::GroupHistory(number) => group(number)?.older.as_ref(),
        }
    }

    /// The feature bits: what a reader must know or may ignore.
    pub fn features(&self) -> u32 {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let flat = |alone: bool| self.trees().any(|(_, tree)| tree.flat.is_some() && tree.btree.is_none() == alone);
        bit(!self.groups.is_empty(), GROUPS)
            | bit(self.has_origin, ORIGIN)
            | bit(self.has_samples, NODE_SAMPLES)
            | bit(self.has_zstd, ZSTD)
            | bit(self.expiry.is_some(), UNTIL)
            | bit(self.has_merges, MERGES)
            | self.filter.map_or(0, |filter| filter.form.feature())
            | bit(flat(true), FLAT_ALONE)
            | bit(flat(false), FLAT_BESIDE)
            | self.unknown.features
    }

    /// Stored bytes of all indexes.
    pub fn index_bytes(&self) -> u64 {
        self.trees().fold(0, |sum, (_, tree)| sum.saturating_add(tree.index_bytes()))
    }

    /// Appends the encoding:
    ///
    /// ```text
    /// file id u64 | features u32
    /// file bytes | oldest | newest | value bytes | user bytes                     varints
    /// low bound | high bound present u8 | high bound                              length-prefixed
    /// trees u8: bit 0 main, 1 history, 2 range erases, 3 filter; then for each:
    ///   rows | bytes | group bytes | erased | data pages                          varints
    ///   roots u8: bit 0 B-tree, 1 flat; then for each: address 16 | height u8 | index bytes varint
    /// where there is a filter: rows of a partition | prefix bytes               varints
    /// column groups beside the main one u8; then for each:
    ///   trees u8: bit 0 newest, 1 older; then for each as above
    /// where the features say that rows have times: when they expire, see `super::expiry`
    /// extension, length-prefixed: numbered fields that later releases may add, see `super::field`
    /// ```
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.file_id.to_le_bytes());
        out.extend_from_slice(&self.features().to_le_bytes());
        for value in [self.file_bytes, self.oldest.0, self.newest.0, self.value_bytes, self.user_bytes] {
            varint::put(out, value);
        }
        self.bounds.encode(out);
        encode_trees(
            out,
            &[self.main, self.history.get(), self.range_erases.get(), self.filter.map(|filter| filter.tree)],
        );
        if let Some(filter) = &self.filter {
            varint::put(out, filter.partition_rows.into());
            varint::put(out, filter.prefix_bytes.into());
        }
        assert!(self.groups.len() <= MAX_GROUPS, "the caller checked the number of groups");
        out.push(self.groups.len() as u8);
        for trees in &self.groups {
            encode_trees(out, &[trees.newest, trees.older]);
        }
        if let Some(expiry) = &self.expiry {
            expiry.encode(out);
        }
        varint::put_bytes(out, &self.unknown.extension);
    }

    /// Decodes the encoding at the front of `bytes`, and removes it from there. The error says what is wrong with
    /// the encoding.
    ///
    /// # Errors
    ///
    /// [`Unreadable::Corrupt`] if the bytes are damaged; [`Unreadable::Newer`] if a newer release is needed.
    pub fn decode(bytes: &mut &[u8]) -> Result<Self, Unreadable> {
        let malformed = || Unreadable::from("the meta does not decode");
        let (head, rest) = bytes.split_first_chunk::<12>().ok_or_else(malformed)?;
        *bytes = rest;
        let (id, features) = head.split_at(8);
        let features = u32::from_le_bytes(features.try_into().expect("four bytes"));
        features::check(features, FEATURES)?;
        let mut meta = Self::decode_fields(bytes, features).ok_or_else(malformed)?;
        meta.file_id = u64::from_le_bytes(id.try_into().expect("eight bytes"));
        meta.unknown.features = features & !FEATURES;
        meta.has_origin = features & ORIGIN != 0;
        meta.has_samples = features & NODE_SAMPLES != 0;
        meta.has_zstd = features & ZSTD != 0;
        meta.has_merges = features & MERGES != 0;
        if meta.features() != features {
            let trees = meta.features();
            return Err(format!("features {features:#x} stand with trees of features {trees:#x}").into());
        }
        meta.check()?;
        field::pass_over_all(&meta.unknown.extension, "field")?;
        Ok(meta)
    }

    /// Checks that the trees and bounds in the meta fit together.
    fn check(&self) -> Result<(), String> {
        if self.bounds.high.as_ref().is_some_and(|high| *high < self.bounds.low) {
            return Err("it ends before it begins".to_owned());
        }
        for (kind, tree) in self.trees() {
            tree.check().map_err(|why| format!("{kind} tree: {why}"))?;
        }
        if let Some(filter) = &self.filter {
            filter.check(self.main)?;
        }
        for (trees, group) in self.groups.iter().zip(1..) {
            let sides = [
                (TreeKind::Group(group), trees.newest, self.main),
                (TreeKind::GroupHistory(group), trees.older, self.history.get()),
            ];
            for (kind, tree, belongs_to) in sides {
                if tree.map(|tree| tree.totals.rows) != belongs_to.map(|tree| tree.totals.rows) {
                    let said = |tree: Option<Tree>| match tree {
                        Some(tree) => format!("{} rows", tree.totals.rows),
                        None => "no tree".to_owned(),
                    };
                    return Err(format!("{kind} has {}, what it belongs to has {}", said(tree), said(belongs_to)));
                }
            }
        }
        let longest = self.bounds.longest();
        if longest > MAX_BOUND_BYTES {
            return Err(format!("a key bound has {longest} bytes, more than {MAX_BOUND_BYTES}"));
        }
        Ok(())
    }

    fn decode_fields(bytes: &mut &[u8], features: u32) -> Option<Self> {
        let mut numbers = [0; 5];
        for number in &mut numbers {
            *number = varint::take(bytes)?;
        }
        let [file_bytes, oldest, newest, value_bytes, user_bytes] = numbers;
        let bounds = KeyBounds::decode(bytes)?;
        let [main, history, range_erases, filter] = decode_trees(bytes)?;
        let filter = match filter {
            None => None,
            Some(tree) => Some(FilterTree {
                tree,
                partition_rows: varint::take(bytes)?.try_into().ok()?,
                prefix_bytes: varint::take(bytes)?.try_into().ok()?,
                form: FilterForm::of(features),
            }),
        };
        let count = usize::from(take_u8(bytes)?);
        if count > MAX_GROUPS {
            return None;
        }
        let mut groups = Vec::with_capacity(count);
        for _ in 0..count {
            let [newest, older] = decode_trees(bytes)?;
            groups.push(GroupTrees { newest, older });
        }
        let expiry = if features & UNTIL != 0 { Some(Box::new(Expiry::decode(bytes)?)) } else { None };
        let extension = varint::take_bytes(bytes)?.to_vec();
        Some(Self {
            file_id: 0,
            file_bytes,
            main,
            history: history.into(),
            range_erases: range_erases.into(),
            filter,
            groups,
            expiry,
            bounds,
            oldest: Version(oldest),
            newest: Version(newest),
            value_bytes,
            user_bytes,
            has_origin: false,
            has_samples: false,
            has_zstd: false,
            has_merges: false,
            unknown: Unknown { features: 0, extension },
        })
    }

    /// The file's last block. `origin` must not be empty if [`Meta::has_origin`] is set, and must be empty if not.
    pub fn footer(&self, origin: &[u8]) -> Vec<u8> {
        assert!(self.has_origin != origin.is_empty() && origin.len() <= MAX_ORIGIN_BYTES, "as the meta says");
        let mut out = Vec::with_capacity(BLOCK_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&self.features().to_le_bytes());
        out.extend_from_slice(&self.file_id.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(origin.len() as u32).to_le_bytes());
        self.encode(&mut out);
        let meta_bytes = (out.len() - META_AT) as u32;
        out[24..28].copy_from_slice(&meta_bytes.to_le_bytes());
        out.extend_from_slice(origin);
        assert!(out.len() <= BLOCK_BYTES - 4, "bounds are cut, so the footer fits its block");
        out.resize(BLOCK_BYTES - 4, 0);
        let crc = crc_fast::crc32_iscsi(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a file's last block.
    ///
    /// # Errors
    ///
    /// [`Unreadable::Corrupt`] if the bytes are damaged; [`Unreadable::Newer`] if a newer release is needed.
    pub fn from_footer(footer: &[u8]) -> Result<Self, Unreadable> {
        Ok(Self::with_origin(footer)?.0)
    }

    /// Like [`Meta::from_footer`], but also returns the file's origin, which is empty if the file does not state
    /// one.
    ///
    /// # Errors
    ///
    /// [`Unreadable::Corrupt`] if the bytes are damaged; [`Unreadable::Newer`] if a newer release is needed.
    pub fn with_origin(footer: &[u8]) -> Result<(Self, &[u8]), Unreadable> {
        let Some((body, crc)) = footer.split_last_chunk::<4>().filter(|(body, _)| body.len() == BLOCK_BYTES - 4) else {
            return Err(format!("a footer has {BLOCK_BYTES} bytes, this one {}", footer.len()).into());
        };
        if &body[..8] != MAGIC {
            return Err("this is not an SST: its last block has no magic".into());
        }
        if crc_fast::crc32_iscsi(body) != u32::from_le_bytes(*crc) {
            return Err("the footer's checksum does not match".into());
        }
        let number = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().expect("four bytes"));
        features::check_version(number(8), FORMAT_VERSION)?;
        // This check comes before the meta is read, because a required feature may have changed the layout of the
        // meta.
        features::check(number(12), FEATURES)?;
        let end = META_AT + number(24) as usize;
        let mut bytes = body.get(META_AT..end).ok_or("the footer's meta is longer than the footer")?;
        let meta = Self::decode(&mut bytes)?;
        if !bytes.is_empty() {
            return Err("the footer's meta is longer than it says".into());
        }
        if meta.features() != number(12) {
            return Err("the footer names two sets of features".into());
        }
        if meta.file_id.to_le_bytes() != body[16..24] {
            return Err("the footer names two file ids".into());
        }
        let origin = if meta.has_origin { number(28) as usize } else { 0 };
        let origin = body.get(end..end + origin).ok_or("the footer's origin is longer than the footer")?;
        Ok((meta, origin))
    }
}

/// A tree of a file, by what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// Newest versions.
    Main,
    /// Older versions.
    History,
    /// Range erases.
    RangeErases,
    /// Partitions of the filter over the main tree's keys.
    Filter,
    /// The parts of a column group. These parts are found by the row ids of the main tree. Groups are numbered
    /// from 1, because group 0 lies in the main tree.
    Group(u8),
    /// The parts of older versions. These parts are found by the row ids of the history.
    GroupHistory(u8),
}

impl TreeKind {
    /// Kind of the tree's data pages.
    pub fn page_kind(self) -> pages::PageKind {
        match self {
            Self::Main => pages::PageKind::Data,
            Self::History => pages::PageKind::History,
            Self::RangeErases => pages::PageKind::RangeErase,
            Self::Filter => pages::PageKind::Filter,
            Self::Group(_) => pages::PageKind::Group,
            Self::GroupHistory(_) => pages::PageKind::GroupHistory,
        }
    }

    /// Whether the pages of the tree are found by row id only.
    pub fn is_by_row(self) -> bool {
        matches!(self, Self::Group(_) | Self::GroupHistory(_))
    }
}

/// Name for people.
impl std::fmt::Display for TreeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Main => f.write_str("main"),
            Self::History => f.write_str("history"),
            Self::RangeErases => f.write_str("range erases"),
            Self::Filter => f.write_str("filter"),
            Self::Group(group) => write!(f, "group {group}"),
            Self::GroupHistory(group) => write!(f, "history of group {group}"),
        }
    }
}

fn take_u8(bytes: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(first)
}

fn encode_trees(out: &mut Vec<u8>, trees: &[Option<Tree>]) {
    out.push(trees.iter().enumerate().map(|(bit, tree)| u8::from(tree.is_some()) << bit).sum());
    for tree in trees.iter().flatten() {
        let Totals { rows, bytes, group_bytes, erased } = tree.totals;
        for value in [rows, bytes, group_bytes, erased, tree.data_pages] {
            varint::put(out, value);
        }
        out.push(u8::from(tree.btree.is_some()) | u8::from(tree.flat.is_some()) << 1);
        for root in [tree.btree, tree.flat].into_iter().flatten() {
            out.extend_from_slice(&root.address.encode());
            out.push(root.height);
            varint::put(out, root.index_bytes);
        }
    }
}

fn decode_trees<const N: usize>(bytes: &mut &[u8]) -> Option<[Option<Tree>; N]> {
    let present = take_u8(bytes)?;
    if present >> N != 0 {
        return None;
    }
    let mut trees = [None; N];
    for (bit, tree) in trees.iter_mut().enumerate() {
        if present & 1 << bit != 0 {
            *tree = Some(decode_tree(bytes)?);
        }
    }
    Some(trees)
}

fn decode_tree(bytes: &mut &[u8]) -> Option<Tree> {
    let mut numbers = [0; 5];
    for number in &mut numbers {
        *number = varint::take(bytes)?;
    }
    let [rows, data_bytes, group_bytes, erased, data_pages] = numbers;
    let roots = take_u8(bytes)?;
    if roots == 0 || roots > 0b11 {
        return None;
    }
    let mut take_root = |bit: u8| {
        if roots & bit == 0 {
            return Some(None);
        }
        let address = Address::decode(bytes)?;
        *bytes = &bytes[Address::ENCODED_BYTES..];
        Some(Some(Root { address, height: take_u8(bytes)?, index_bytes: varint::take(bytes)? }))
    };
    let (btree, flat) = (take_root(1)?, take_root(2)?);
    Some(Tree { totals: Totals { rows, bytes: data_bytes, group_bytes, erased }, data_pages, btree, flat })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> Meta {
        let root = Root { address: Address { offset: 4096, bytes: 16384, crc: 7 }, height: 2, index_bytes: 99 };
        let list = Root { height: 1, ..root };
        let page = Root { height: 0, index_bytes: 0, ..root };
        let totals = Totals { rows: 10, bytes: 20, group_bytes: 30, erased: 4 };
        Meta {
            file_id: 0x0123_4567_89ab_cdef,
            file_bytes: 1 << 33,
            main: Some(Tree { totals, data_pages: 3, btree: Some(root), flat: None }),
            history: RareTree::default(),
            range_erases: Some(Tree { totals, data_pages: 1, btree: Some(page), flat: Some(page) }).into(),
            filter: Some(FilterTree {
                tree: Tree { totals, data_pages: 2, btree: Some(list), flat: None },
                partition_rows: 6,
                prefix_bytes: 300,
                form: FilterForm::Blocks,
            }),
            groups: vec![
                GroupTrees { newest: Some(Tree { totals, data_pages: 2, btree: None, flat: Some(list) }), older: None },
                GroupTrees { newest: Some(Tree { totals, data_pages: 1, btree: Some(page), flat: None }), older: None },
            ],
            expiry: None,
            bounds: KeyBounds::cut(b"a", &[0xff; 100]),
            oldest: Version(3),
            newest: Version(9),
            value_bytes: 5,
            user_bytes: 6,
            has_origin: false,
            has_samples: false,
            has_zstd: false,
            has_merges: false,
            unknown: Unknown { features: 1 << 9, extension: b"\x80\x0ffrom the future".to_vec() },
        }
    }

    #[test]
    fn a_footer_comes_back_and_any_flipped_bit_is_noticed() {
        let mut footer = meta().footer(b"");
        assert_eq!(footer.len(), BLOCK_BYTES);
        assert_eq!(Meta::from_footer(&footer), Ok(meta()));
        for at in 0..footer.len() {
            for bit in 0..8 {
                footer[at] ^= 1 << bit;
                assert!(Meta::from_footer(&footer).is_err(), "byte {at} bit {bit}");
                footer[at] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn an_origin_comes_back_and_one_that_is_too_long_is_refused() {
        let with = Meta { has_origin: true, ..meta() };
        let mut footer = with.footer(b"from here");
        assert_eq!(Meta::with_origin(&footer), Ok((with, &b"from here"[..])));
        assert_eq!(Meta::with_origin(&meta().footer(b"")), Ok((meta(), &b""[..])));
        footer[28..32].copy_from_slice(&u32::MAX.to_le_bytes());
        let end = footer.len() - 4;
        let crc = crc_fast::crc32_iscsi(&footer[..end]);
        footer[end..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Meta::from_footer(&footer), Err("the footer's origin is longer than the footer".into()));
    }

    #[test]
    fn a_cut_meta_is_refused() {
        let mut bytes = Vec::new();
        meta().encode(&mut bytes);
        for len in 0..bytes.len() {
            assert!(Meta::decode(&mut &bytes[..len]).is_err());
        }
    }

    #[test]
    fn features_say_what_a_reader_must_know() {
        assert_eq!(meta().features(), FLAT_BESIDE | GROUPS | FLAT_ALONE | BLOCK_FILTER | 1 << 9);
        let plain = Meta {
            range_erases: RareTree::default(),
            filter: None,
            groups: Vec::new(),
            unknown: Unknown::default(),
            ..meta()
        };
        assert_eq!(plain.features(), 0);
        assert_eq!(Meta { has_zstd: true, has_merges: true, ..plain }.features(), ZSTD | MERGES);
        let newer = Meta { unknown: Unknown { features: 1 << 20, extension: Vec::new() }, ..meta() };
        let mut bytes = Vec::new();
        newer.encode(&mut bytes);
        assert_eq!(Meta::decode(&mut bytes.as_slice()), Err(Unreadable::Newer("feature 20".to_owned())));
        let newer = Meta { unknown: Unknown { features: 0, extension: vec![7, 0] }, ..meta() };
        let mut bytes = Vec::new();
        newer.encode(&mut bytes);
        assert_eq!(Meta::decode(&mut bytes.as_slice()), Err(Unreadable::Newer("field 7".to_owned())));
    }

    /// Checks which error a changed meta gives. The function `change` gets the result of [`meta`] and changes it.
    /// The main tree of this meta has 10 rows in 3 pages, and there are two groups.
    #[track_caller]
    fn check_refused(expected: &str, change: impl FnOnce(&mut Meta)) {
        let mut changed = meta();
        change(&mut changed);
        let mut bytes = Vec::new();
        changed.encode(&mut bytes);
        assert_eq!(Meta::decode(&mut bytes.as_slice()), Err(expected.into()));
    }

    #[test]
    fn groups_have_the_rows_of_the_trees_they_belong_to() {
        let of_rows = |rows: u64, tree: Option<Tree>| {
            let tree = tree.expect("it has one");
            Some(Tree { totals: Totals { rows, ..tree.totals }, ..tree })
        };
        check_refused("group 1 has 11 rows, what it belongs to has 10 rows", |meta| {
            meta.groups[0].newest = of_rows(11, meta.main);
        });
        check_refused("group 2 has no tree, what it belongs to has 10 rows", |meta| meta.groups[1].newest = None);
        check_refused("group 1 has 10 rows, what it belongs to has no tree", |meta| {
            (meta.main, meta.filter) = (None, None);
        });
        check_refused("history of group 2 has 10 rows, what it belongs to has no tree", |meta| {
            meta.groups[1].older = meta.main;
        });
        check_refused("history of group 1 has no tree, what it belongs to has 3 rows", |meta| {
            meta.history = of_rows(3, meta.main).into();
        });
        check_refused("history of group 2 has 4 rows, what it belongs to has 3 rows", |meta| {
            meta.history = of_rows(3, meta.main).into();
            meta.groups[0].older = meta.history.get();
            meta.groups[1].older = of_rows(4, meta.main);
        });
        let older = of_rows(3, meta().main);
        let mut whole = Meta { history: older.into(), ..meta() };
        whole.groups.iter_mut().for_each(|group| group.older = older);
        assert_eq!(Meta::from_footer(&whole.footer(b"")), Ok(whole));
        let nothing = Meta { main: None, filter: None, groups: vec![GroupTrees::default(); 2], ..meta() };
        assert_eq!(Meta::from_footer(&nothing.footer(b"")), Ok(nothing));
    }

    #[test]
    fn a_filter_has_the_rows_of_the_main_tree() {
        fn filter(meta: &mut Meta) -> &mut FilterTree {
            meta.filter.as_mut().expect("it has one")
        }
        check_refused("a filter of 11 rows stands with 10", |meta| filter(meta).tree.totals.rows = 11);
        check_refused("a filter of 10 rows stands with 0", |meta| meta.main = None);
        check_refused("10 rows are not in 2 partitions of 0", |meta| filter(meta).partition_rows = 0);
        check_refused("10 rows are not in 2 partitions of 4", |meta| filter(meta).partition_rows = 4);
        check_refused("10 rows are not in 2 partitions of 10", |meta| filter(meta).partition_rows = 10);
    }

    #[test]
    fn roots_have_heights_that_a_tree_can_have() {
        fn main(meta: &mut Meta) -> &mut Tree {
            meta.main.as_mut().expect("it has rows")
        }
        check_refused("main tree: a flat list of height 2, it is one page", |meta| {
            let tree = main(meta);
            tree.flat = tree.btree;
        });
        check_refused("main tree: 1 data pages under a root of height 2", |meta| main(meta).data_pages = 1);
        check_refused("main tree: 3 data pages under a root of height 0", |meta| {
            main(meta).btree.as_mut().expect("it has a tree").height = 0;
        });
        check_refused("range erases tree: 1 data pages under a root of height 1", |meta| {
            let flat = meta.range_erases.tree_mut().and_then(|tree| tree.flat.as_mut());
            flat.expect("it has both").height = 1;
        });
        check_refused("range erases tree: two roots of one page differ", |meta| {
            let flat = meta.range_erases.tree_mut().and_then(|tree| tree.flat.as_mut());
            flat.expect("it has both").address.crc += 1;
        });
    }

    #[test]
    fn bounds_that_were_not_cut_are_refused() {
        let long = vec![b'b'; MAX_BOUND_BYTES + 1];
        let why = "a key bound has 65 bytes, more than 64";
        check_refused(why, |meta| meta.bounds.low = long.clone());
        check_refused(why, |meta| meta.bounds.high = Some(long.clone()));
    }

    #[test]
    fn the_largest_meta_fits_the_footer() {
        let root = Root { address: Address::default(), height: 9, index_bytes: u64::MAX >> 20 };
        let list = Root { height: 1, ..root };
        let totals = Totals { rows: u64::MAX >> 20, bytes: u64::MAX >> 8, group_bytes: u64::MAX >> 8, erased: 1 << 40 };
        let tree = Some(Tree { totals, data_pages: u64::MAX >> 20, btree: Some(root), flat: Some(list) });
        let groups = vec![GroupTrees { newest: tree, older: tree }; MAX_GROUPS];
        let pages = tree.map(|tree| Tree { data_pages: tree.totals.rows.div_ceil(3), ..tree });
        let filter =
            pages.map(|tree| FilterTree { tree, partition_rows: 3, prefix_bytes: u16::MAX, form: FilterForm::Blocks });
        let largest = Meta {
            main: tree,
            history: tree.into(),
            range_erases: tree.into(),
            filter,
            groups,
            bounds: KeyBounds::cut(&[b'a'; 100], &[b'z'; 100]),
            unknown: Unknown::default(),
            has_origin: true,
            has_samples: true,
            has_zstd: true,
            ..meta()
        };
        let origin = [7; MAX_ORIGIN_BYTES];
        assert_eq!(Meta::with_origin(&largest.footer(&origin)), Ok((largest, &origin[..])));
    }

    #[test]
    fn a_meta_that_says_too_much_can_be_asked() {
        let root = Root { address: Address::default(), height: 0, index_bytes: u64::MAX };
        let tree = Tree { totals: Totals::default(), data_pages: 0, btree: Some(root), flat: Some(root) };
        let meta = Meta { main: Some(tree), history: Some(tree).into(), ..meta() };
        assert_eq!(meta.index_bytes(), u64::MAX);
    }

    #[test]
    fn bounds_are_cut_outward() {
        let (first, last) = ([b'a'; 100], [b'z'; 100]);
        let bounds = KeyBounds::cut(&first, &last);
        assert!(bounds.low.len() <= MAX_BOUND_BYTES && bounds.low.as_slice() <= first.as_slice());
        assert!(bounds.high.as_deref().is_some_and(|high| high.len() <= MAX_BOUND_BYTES && high >= last.as_slice()));
        assert!(bounds.contains(&first) && bounds.contains(&last));
        assert_eq!(KeyBounds::cut(b"", &[0xff; 65]).high, None, "nothing short is greater");
    }
}
