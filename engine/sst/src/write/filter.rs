//! Builds the filter of a file as its keys arrive: their hashes wait until there are enough for a partition. This
//! module knows no values and no versions.
//!
//! Closed partitions wait in memory and are written together, in the same way as closed leaf nodes. So pages of
//! rows lie next to each other. In a file with fewer than about 800,000 keys, the filter lies at the end.

use super::file_writer::FileWriter;
use super::options::BuildOptions;
use super::tree::{ClosingPage, TreeBuilder};
use crate::format::filter::{self, FilterForm, FilterKind, hash_key, hash_prefix};
use crate::format::key;
use crate::format::meta::{BLOCK_FILTER, FilterTree, TreeKind};
use pages::Result;

/// When closed partitions of this many bytes wait, they are written as one extent.
const EXTENT_BYTES: usize = 1 << 20;

/// The filter being built.
#[derive(Debug)]
pub struct FilterRows {
    kind: FilterKind,
    prefix_bytes: u16,
    partition_rows: u32,
    /// The hashes of the keys in the open partition and of these keys' prefixes. Each hash is there at least once.
    hashes: Vec<u64>,
    /// The length of `hashes` before the last row was added.
    before_last: usize,
    /// The number of rows in the open partition.
    open_rows: u32,
    /// The number of rows before the open partition.
    rows: u64,
    /// The separator before the open partition.
    separator: Vec<u8>,
    closed: Vec<Closed>,
    /// The bytes of the closed partitions that wait, and of the separators before them.
    closed_bytes: usize,
    tree: TreeBuilder,
}

/// A partition that waits for its extent.
#[derive(Debug)]
struct Closed {
    page: Vec<u8>,
    /// The separator before the partition.
    separator: Vec<u8>,
    /// The number of rows of the file up to and including the last row of this partition.
    rows: u64,
}

impl FilterRows {
    /// A builder of the filter that `options` ask for; `None` if they ask for no filter. The answer is also `None`
    /// if the oldest release that must be able to read the file does not know this form of filter.
    pub fn new(options: &BuildOptions) -> Option<Self> {
        if options.filter == FilterKind::None || options.features & BLOCK_FILTER == 0 {
            return None;
        }
        Some(Self {
            kind: options.filter,
            prefix_bytes: options.filter_prefix_bytes,
            partition_rows: filter::partition_rows(options.filter, options.page_bytes)
                .min(options.max_page_rows.try_into().unwrap_or(u32::MAX)),
            hashes: Vec::new(),
            before_last: 0,
            open_rows: 0,
            rows: 0,
            separator: Vec::new(),
            closed: Vec::new(),
            closed_bytes: 0,
            tree: TreeBuilder::new(TreeKind::Filter, options),
        })
    }

    /// The index over the closed partitions.
    pub fn tree(&self) -> &TreeBuilder {
        &self.tree
    }

    /// How many bytes the closed partitions and nodes that still wait will add to the file. The separators that
    /// wait with them are included.
    pub fn waiting_bytes(&self) -> u64 {
        self.closed_bytes as u64 + self.tree.waiting_bytes()
    }

    /// The memory that the hashes and the waiting partitions take.
    pub fn memory_bytes(&self) -> usize {
        let closed = self.closed.iter().map(|partition| partition.page.capacity() + partition.separator.capacity());
        self.hashes.capacity() * size_of::<u64>()
            + closed.sum::<usize>()
            + self.closed.capacity() * size_of::<Closed>()
            + self.tree.memory_bytes()
    }

    /// Whether no partition is closed yet.
    pub fn is_open(&self) -> bool {
        self.rows == 0
    }

    /// Adds the key of the next row. `last` returns the key of the previous row. It is not called for the first
    /// row.
    ///
    /// Prefixes do not decide where a partition ends. Still, a search for a prefix leads to the first partition
    /// that has keys with this prefix. Proof: let P be a prefix of `prefix_bytes` bytes and k the first key that
    /// begins with P.
    ///
    /// * Every separator after k's partition is greater than the last key of that partition. So each of these
    ///   separators is greater than k, and greater than P.
    /// * The separator before k's partition is less than P or equal to P. First case: k is the first key of the
    ///   partition. Then the separator is the shortest prefix of k that the previous key does not have. The
    ///   previous key does not begin with P. So the separator is a prefix of P, or P itself. Second case: k is not
    ///   the first key of the partition. The partition's first key is less than k and does not begin with P. So
    ///   this key is less than P, and the separator is not greater than this key.
    #[inline]
    pub fn add<'k>(
        &mut self,
        writer: &mut FileWriter,
        options: &BuildOptions,
        last: impl Fn() -> &'k [u8],
        key: &[u8],
    ) -> Result<()> {
        if self.open_rows == self.partition_rows {
            self.close_before(writer, options, last(), key)?;
        }
        self.before_last = self.hashes.len();
        self.hashes.push(hash_key(key));
        let prefix_bytes = usize::from(self.prefix_bytes);
        if prefix_bytes > 0
            && let Some(prefix) = key.get(..prefix_bytes)
            && (self.open_rows == 0 || last().get(..prefix_bytes) != Some(prefix))
        {
            self.hashes.push(hash_prefix(prefix));
        }
        self.open_rows += 1;
        Ok(())
    }

    /// Removes the key of the last row. It can then be added again.
    pub fn take_back(&mut self) {
        self.hashes.truncate(self.before_last);
        self.open_rows -= 1;
    }

    #[cold]
    fn close_before(&mut self, writer: &mut FileWriter, options: &BuildOptions, last: &[u8], key: &[u8]) -> Result<()> {
        self.close(writer, options)?;
        self.separator = key::separator(last, key).to_vec();
        Ok(())
    }

    fn close(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<()> {
        let mut page = Vec::new();
        filter::build(self.kind, (self.rows, self.open_rows), &self.hashes, &mut page);
        self.hashes.clear();
        self.rows += u64::from(std::mem::take(&mut self.open_rows));
        self.closed_bytes += page.len() + self.separator.len();
        self.closed.push(Closed { page, separator: std::mem::take(&mut self.separator), rows: self.rows });
        if self.closed_bytes < EXTENT_BYTES { Ok(()) } else { self.write_extent(writer, options) }
    }

    fn write_extent(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<()> {
        self.closed_bytes = 0;
        for Closed { mut page, separator, rows } in std::mem::take(&mut self.closed) {
            let rows = ClosingPage { rows, erased: 0, elsewhere: 0 };
            self.tree.add_page(writer, options, &mut page, &separator, rows)?;
        }
        Ok(())
    }

    /// Writes all that is left of the filter, and its index; `None` if there are no keys.
    pub fn finish(&mut self, writer: &mut FileWriter, options: &BuildOptions) -> Result<Option<FilterTree>> {
        if self.open_rows > 0 {
            self.close(writer, options)?;
        }
        self.write_extent(writer, options)?;
        let (partition_rows, prefix_bytes) = (self.partition_rows, self.prefix_bytes);
        let tree = self.tree.finish(writer, options)?;
        Ok(tree.map(|tree| FilterTree { tree, partition_rows, prefix_bytes, form: FilterForm::Blocks }))
    }
}
