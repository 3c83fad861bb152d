//! Predicts from a table's sizes what it takes and what a get costs: number and height of files, bytes of index and
//! filters, reads per get, and memory. It is pure arithmetic on the layout in `docs/format/sst.md`, so it also
//! works for tables that no machine here can hold. `larch plan` prints the prediction, and the experiment `scale`
//! compares it with real tables.
//!
//! It assumes a table that was compacted or imported, so that each row is stored once, in files of one level. All
//! rows have the same size and are read equally often, values are stored in their pages, and pages are not
//! compressed.
//!
//! ```text
//! file      data pages   page       = head + prefix + rows x (key - prefix + value + what a row takes beside)
//!           nodes        node       = head + children x (what a child takes + its separator)
//!                        level i    = level i - 1 / children of a node, up to one root
//!           filter       partitions = rows / (blocks of a page x keys of a block)
//! get       a page of each level of nodes, and a data page, less what is in memory: the upper levels first, beside a small share
//!           for data pages
//! ```

#[cfg(test)]
mod tests;

/// The sizes and settings of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// The number of rows.
    pub rows: u64,
    /// Bytes of a key and its value.
    pub row_bytes: u64,
    /// Bytes of the key.
    pub key_bytes: u64,
    /// Leading bytes of a key that tell it from the key before it. `None`: keys are spread evenly over all strings.
    pub separator_bytes: Option<u64>,
    /// Target size of a data page.
    pub page_bytes: u64,
    /// Target size of a node.
    pub node_bytes: u64,
    /// Size of a file.
    pub file_bytes: u64,
    /// The filter's bits per key.
    pub filter: FilterBits,
    /// Memory for pages.
    pub cache_bytes: u64,
}

/// The filter of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterBits {
    /// No filter.
    None,
    /// About 12 bits a key.
    Twelve,
    /// About 20 bits a key.
    Twenty,
}

impl FilterBits {
    /// Keys per block of the filter.
    fn block_keys(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Twelve => Some(42),
            Self::Twenty => Some(25),
        }
    }
}

impl Default for Sizes {
    /// The settings of a new table, without rows.
    fn default() -> Self {
        Self {
            rows: 0,
            row_bytes: 116,
            key_bytes: 16,
            separator_bytes: None,
            page_bytes: 16 << 10,
            node_bytes: 16 << 10,
            file_bytes: 256 << 20,
            filter: FilterBits::Twelve,
            cache_bytes: 64 << 20,
        }
    }
}

/// The prediction for a table.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Plan {
    /// Bytes of all keys and values.
    pub user_bytes: u64,
    /// The number of files.
    pub files: u64,
    /// Bytes of all files.
    pub file_bytes: u64,
    /// The number of data pages.
    pub data_pages: u64,
    /// Bytes of these pages.
    pub data_bytes: u64,
    /// Nodes between the manifest and a data page, in the tallest file.
    pub height: u64,
    /// Children of a full node.
    pub node_children: u64,
    /// Bytes of all nodes, with those above filters.
    pub index_bytes: u64,
    /// Bytes of filters.
    pub filter_bytes: u64,
    /// Pages that a get of an existing row reads from disk, once the cache is full.
    pub reads_a_get: f64,
    /// Bytes of these pages.
    pub read_bytes_a_get: f64,
    /// The levels from the roots down to the data pages. A get reads one page of each.
    pub levels: Vec<Level>,
    /// Memory for pages.
    pub cache_bytes: u64,
    /// Memory outside the cache: of an open database, and of each file.
    pub outside_bytes: u64,
}

/// The pages of one level, over all files.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Level {
    /// The number of pages.
    pub pages: u64,
    /// Bytes of these pages.
    pub bytes: u64,
    /// The share that is in memory.
    pub in_memory: f64,
}

/// Pages in files begin at multiples of this.
const BLOCK_BYTES: u64 = 4096;
/// The head of a data page: the header, the bytes before the rows, and the end of the last row.
const PAGE_HEAD_BYTES: u64 = 42;
/// Overhead of a row in a page: an offset, a tag and the length of its suffix.
const ROW_BESIDE_BYTES: u64 = 4;
/// The head of a node: the header and the bytes before the children.
const NODE_HEAD_BYTES: u64 = 136;
/// Bytes of a child in a node beside its separator: a checksum, a sixteenth of a sample, and the error of the
/// linear estimate of its rows.
const CHILD_BESIDE_BYTES: f64 = 4.0 + 0.25 + 1.0;
/// More bytes of a child in the last node of a level, whose last page is not full: the error of the estimate of its
/// bytes.
const LAST_BYTES: f64 = 4.0;
/// The bytes of a separator that are stored next to the child.
const HEAD_BYTES: f64 = 4.0;
/// More bytes of a separator where separators differ in length: its length, and where its other bytes are.
const UNEQUAL_BYTES: f64 = 3.0;
/// The head of a filter page.
const FILTER_HEAD_BYTES: u64 = 64;
/// Bytes of a block of a filter.
const FILTER_BLOCK_BYTES: u64 = 64;
/// The largest page of a filter.
const MAX_PARTITION_BYTES: u64 = 64 << 10;
/// The end of a file.
const FOOTER_BYTES: u64 = 4096;
/// Overhead of a page in the cache.
const FRAME_BYTES: u64 = 248;
/// The share of the cache that is reserved for data pages just read (decision 18).
const DATA_SHARE: f64 = 0.05;
/// Bytes that data pages get in the cache on top of that share, which matter in small caches. Measured: 240 to 270
/// KiB in caches of 400 to 768 KiB.
const LEAST_DATA_BYTES: f64 = (256 << 10) as f64;
/// Memory of a file with a path of 50 bytes, without its key bounds.
const FILE_MEMORY_BYTES: u64 = 1096;
/// The longest key bound.
const MAX_BOUND_BYTES: u64 = 64;
/// Memory of an open database without files, outside its cache.
const OPEN_BYTES: u64 = 416;

/// One file.
#[derive(Clone, Debug, Default, PartialEq)]
struct File {
    data_pages: u64,
    data_bytes: u64,
    /// (Nodes, bytes) of each level, from the nodes above data pages up to the root.
    levels: Vec<(u64, u64)>,
    /// Bytes of the nodes above the filter.
    filter_index_bytes: u64,
    filter_bytes: u64,
}

impl File {
    fn bytes(&self) -> u64 {
        let nodes: u64 = self.levels.iter().map(|level| level.1).sum();
        self.data_bytes + nodes + self.filter_index_bytes + self.filter_bytes + FOOTER_BYTES
    }
}

impl Sizes {
    /// Refuses sizes that no table can have.
    ///
    /// # Errors
    ///
    /// Returns a sentence that names the option to change.
    pub fn check(&self) -> Result<(), String> {
        if self.rows == 0 {
            return Err("--rows 0: a table without rows takes nothing; name a number of rows".to_owned());
        }
        if self.key_bytes == 0 || self.key_bytes > self.row_bytes {
            return Err(format!(
                "--key-bytes {}: a row of {} bytes has a key of 1 to {} bytes; change it or --row-bytes",
                self.key_bytes, self.row_bytes, self.row_bytes
            ));
        }
        if self.separator_bytes.is_some_and(|bytes| bytes == 0 || bytes > self.key_bytes) {
            let key = self.key_bytes;
            return Err(format!("--separator-bytes: two keys of {key} bytes are told apart by 1 to {key} of them"));
        }
        if !(256..=1 << 20).contains(&self.page_bytes) || !(256..=256 << 10).contains(&self.node_bytes) {
            return Err(
                "a page has 256 bytes to 1 MiB, and a node 256 bytes to 256 KiB; change --page or --node".to_owned()
            );
        }
        if self.row_bytes - self.key_bytes > self.page_bytes / 4 {
            return Err(format!(
                "--row-bytes {}: values of more than a quarter of a page lie outside of it, which is not planned; name a larger --page",
                self.row_bytes
            ));
        }
        if self.file_bytes < self.page_bytes {
            return Err("--file-bytes: a file has at least a page; name a larger size".to_owned());
        }
        if self.rows.checked_mul(self.row_bytes + 64).is_none_or(|bytes| bytes > 1 << 62) {
            return Err(format!("--rows {}: these rows have more bytes than can be counted; name fewer", self.rows));
        }
        Ok(())
    }

    /// The bytes that the keys of a piece share, if the table is cut into `pieces`.
    fn common_bytes(&self, pieces: f64) -> u64 {
        match self.separator_bytes {
            // Neighbouring keys differ within the last four bytes of the separator, or earlier.
            Some(bytes) => bytes.saturating_sub(HEAD_BYTES as u64).min(self.key_bytes.saturating_sub(1)),
            None => (pieces.max(1.0).log2() / 8.0).floor() as u64,
        }
    }

    /// Rows of a full data page.
    fn page_rows(&self) -> u64 {
        let rows = |prefix: u64| {
            let room = self.page_bytes.saturating_sub(PAGE_HEAD_BYTES + prefix);
            (room / (self.row_bytes - prefix + ROW_BESIDE_BYTES)).max(1)
        };
        let pages = self.rows as f64 / rows(0) as f64;
        rows(self.common_bytes(pages).min(self.key_bytes))
    }

    /// Children of a full node, on a level whose nodes have `pages` children in all.
    fn node_children(&self, pages: f64) -> u64 {
        let room = |child: f64| ((self.node_bytes - NODE_HEAD_BYTES.min(self.node_bytes / 2)) as f64 / child).max(2.0);
        let spread = (self.rows as f64).log2() / 8.0;
        let (separator, unequal) = match self.separator_bytes {
            Some(bytes) => (bytes as f64, 2.0),
            None => (spread.ceil(), UNEQUAL_BYTES),
        };
        let least = CHILD_BESIDE_BYTES + HEAD_BYTES + unequal;
        let shared = match self.separator_bytes {
            Some(_) => 0.0,
            None => self.common_bytes(pages / room(least)) as f64,
        };
        let rest = (separator - shared - HEAD_BYTES).max(0.0);
        room(least + rest) as u64
    }

    /// (Nodes, bytes) of a level above `children` pages, with `full` children in a full node.
    fn level(&self, children: u64, full: u64) -> (u64, u64) {
        let child = (self.node_bytes - NODE_HEAD_BYTES.min(self.node_bytes / 2)) as f64 / full as f64;
        let bytes = |children: u64, child: f64| {
            (NODE_HEAD_BYTES + (children as f64 * child) as u64).min(self.node_bytes).next_multiple_of(BLOCK_BYTES)
        };
        // Nodes are full, except for the last one or two, which get what is left.
        let whole = children.saturating_sub(2 * full).div_ceil(full);
        let left = children - whole * full;
        let whole_bytes = whole * bytes(full, child);
        let last_full =
            ((self.node_bytes - NODE_HEAD_BYTES.min(self.node_bytes / 2)) as f64 / (child + LAST_BYTES)) as u64;
        match left > last_full {
            true => {
                let half = left.div_ceil(2);
                (whole + 2, whole_bytes + bytes(half, child) + bytes(left - half, child + LAST_BYTES))
            }
            false => (whole + 1, whole_bytes + bytes(left, child + LAST_BYTES)),
        }
    }

    /// A file of this many rows.
    fn file(&self, rows: u64) -> File {
        let page_rows = self.page_rows();
        let data_pages = rows.div_ceil(page_rows);
        let last = PAGE_HEAD_BYTES + (rows - (data_pages - 1) * page_rows) * (self.row_bytes + ROW_BESIDE_BYTES);
        let page_bytes = self.page_bytes.next_multiple_of(BLOCK_BYTES);
        let last_bytes = last.min(self.page_bytes).next_multiple_of(BLOCK_BYTES);
        let mut file = File { data_pages, data_bytes: (data_pages - 1) * page_bytes + last_bytes, ..File::default() };
        if data_pages == 1 {
            return file;
        }
        let pages = self.rows as f64 / page_rows as f64;
        let full = self.node_children(pages);
        if let Some(keys) = self.filter.block_keys() {
            let partition_bytes = self.page_bytes.min(MAX_PARTITION_BYTES);
            let blocks = (partition_bytes.saturating_sub(FILTER_HEAD_BYTES) / FILTER_BLOCK_BYTES).max(1);
            let (whole, left) = (rows / (blocks * keys), rows % (blocks * keys));
            let bytes = |blocks: u64| (FILTER_HEAD_BYTES + blocks * FILTER_BLOCK_BYTES).next_multiple_of(BLOCK_BYTES);
            file.filter_bytes = whole * bytes(blocks) + if left > 0 { bytes(left.div_ceil(keys)) } else { 0 };
            let mut children = whole + u64::from(left > 0);
            while children > 1 {
                let (nodes, bytes) = self.level(children, full);
                file.filter_index_bytes += bytes;
                children = nodes;
            }
        }
        let mut children = data_pages;
        while children > 1 {
            let (nodes, bytes) = self.level(children, full);
            file.levels.push((nodes, bytes));
            children = nodes;
        }
        file
    }

    /// Rows of a full file.
    fn file_rows(&self) -> u64 {
        let all = self.file(self.rows);
        let files = all.bytes() as f64 / self.file_bytes as f64;
        ((self.rows as f64 / files.max(f64::MIN_POSITIVE)) as u64).clamp(1, self.rows)
    }

    /// The prediction.
    pub fn plan(&self) -> Plan {
        let file_rows = self.file_rows();
        let files = self.rows.div_ceil(file_rows);
        let (full, last) = (self.file(file_rows), self.file(self.rows - (files - 1) * file_rows));
        let both = |of: &dyn Fn(&File) -> u64| (files - 1) * of(&full) + of(&last);
        let height = if files > 1 { full.levels.len().max(last.levels.len()) } else { last.levels.len() };
        // Files may differ in height: nodes are counted together by their height above data pages.
        let at = |file: &File, level: usize| file.levels.get(level).copied().unwrap_or_default();
        let mut levels: Vec<Level> = (0..height)
            .rev()
            .map(|level| Level {
                pages: both(&|file| at(file, level).0),
                bytes: both(&|file| at(file, level).1),
                in_memory: 0.0,
            })
            .collect();
        let data = Level { pages: both(&|file| file.data_pages), bytes: both(&|file| file.data_bytes), in_memory: 0.0 };
        let tree_bytes: u64 = levels.iter().map(|level| level.bytes).sum();
        levels.push(data);
        fill(&mut levels, self.cache_bytes);
        let missing = |level: &Level| 1.0 - level.in_memory;
        let bytes_a_page = |level: &Level| level.bytes as f64 / level.pages.max(1) as f64;
        Plan {
            user_bytes: self.rows * self.row_bytes,
            files,
            file_bytes: both(&File::bytes),
            data_pages: data.pages,
            data_bytes: data.bytes,
            height: height as u64,
            node_children: self.node_children(data.pages as f64),
            index_bytes: tree_bytes + both(&|file| file.filter_index_bytes),
            filter_bytes: both(&|file| file.filter_bytes),
            reads_a_get: levels.iter().map(missing).sum(),
            read_bytes_a_get: levels.iter().map(|level| missing(level) * bytes_a_page(level)).sum(),
            levels,
            cache_bytes: self.cache_bytes,
            outside_bytes: OPEN_BYTES + files * (FILE_MEMORY_BYTES + 2 * self.key_bytes.min(MAX_BOUND_BYTES)),
        }
    }
}

/// Fills the cache with the pages that are used most often per byte, so with the upper levels first. Data pages,
/// the last level, get what the nodes leave, and at least their reserved share.
fn fill(levels: &mut [Level], cache_bytes: u64) {
    let all = cache_bytes as f64;
    let needed = |level: &Level| ((level.bytes + level.pages * FRAME_BYTES) as f64).max(1.0);
    let Some((data, nodes)) = levels.split_last_mut() else { return };
    let mut room = (all - DATA_SHARE * all - LEAST_DATA_BYTES).max(0.0);
    let mut left = all;
    for level in nodes {
        let taken = needed(level).min(room);
        level.in_memory = taken / needed(level);
        (room, left) = (room - taken, left - taken);
    }
    data.in_memory = (left / needed(data)).min(1.0);
}
