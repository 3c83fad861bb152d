//! Options of a database, drawn from a seed. Sizes and limits are so small that a few dozen rows make tall trees,
//! many files and many levels.

use larch::options::{Expiry, FilterKind, Filters, LevelOptions, PageIndexKind};
use larch::{Builder, Compression, Database, Durability, TableOptions};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use std::path::Path;

/// The options of a database and of the tables that are created in it.
#[derive(Clone, Debug)]
pub struct TinyOptions {
    /// Pages in memory, in bytes.
    pub cache_bytes: u64,
    /// Rows in memory, in bytes.
    pub write_buffer_bytes: u64,
    /// The durability of commits that do not ask for another.
    pub durability: Durability,
    /// The most SSTs that are open for reading, whether in use or kept open for later.
    pub open_files: usize,
    /// Whether files with both a flat index and a B-tree are read by the flat index.
    pub prefer_flat_index: bool,
    /// Shape of the levels.
    pub levels: LevelOptions,
    /// By how many bytes a manifest may grow before the database begins a new one.
    pub manifest_slack_bytes: u64,
    /// The length of the file that keeps disk space back for erases, in bytes.
    pub reserve_bytes: u64,
    /// Options of tables, from which each new table draws.
    pub tables: Vec<TableOptions>,
    /// The page indexes from which an alter draws.
    pub indexes: Vec<PageIndexKind>,
}

const INDEXES: [PageIndexKind; 3] = [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both];

impl TinyOptions {
    /// The options of `seed`.
    pub fn of(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let rng = &mut rng;
        let tables: Vec<TableOptions> = (0..3).map(|_| table_options(rng)).collect();
        let page_bytes = tables.iter().map(|table| u64::from(table.page_bytes)).max().expect("there are three");
        Self {
            cache_bytes: rng.random_range(3 * page_bytes..=64 << 10),
            write_buffer_bytes: 4 << rng.random_range(10..=14),
            durability: if rng.random() { Durability::Synced } else { Durability::Buffered },
            open_files: rng.random_range(1..=16),
            prefer_flat_index: rng.random(),
            levels: LevelOptions {
                level0_files: rng.random_range(2..=4),
                slow_files: rng.random_range(4..=12),
                base_bytes: 2 << rng.random_range(10..=15),
                growth: rng.random_range(2..=4),
                // If this is less than a block, each file gets a single row.
                file_bytes: 1 << rng.random_range(10..=16),
            },
            manifest_slack_bytes: *[0, 500, 4 << 20].choose(rng).expect("there are three"),
            reserve_bytes: *[0, 4 << 10, 32 << 10].choose(rng).expect("there are three"),
            tables,
            indexes: INDEXES.to_vec(),
        }
    }

    /// The options of `seed` with three caches: the drawn one, the smallest one, and one that has room for all data.
    pub fn with_each_cache(seed: u64) -> [Self; 3] {
        let options = Self::of(seed);
        let page_bytes = options.tables.iter().map(|table| u64::from(table.page_bytes)).max().expect("there are three");
        let least = Self { cache_bytes: 3 * page_bytes, ..options.clone() };
        let ample = Self { cache_bytes: 4 << 20, ..options.clone() };
        [options, least, ample]
    }

    /// The same options, but every file gets both a flat index and a B-tree.
    pub fn with_both_indexes(mut self) -> Self {
        self.indexes = vec![PageIndexKind::Both];
        self.tables.iter_mut().for_each(|table| table.index = PageIndexKind::Both);
        self
    }

    /// A builder for the database in `directory`.
    pub fn builder(&self, directory: impl AsRef<Path>) -> Builder {
        Database::builder(directory)
            .cache_bytes(self.cache_bytes)
            .write_buffer_bytes(self.write_buffer_bytes)
            .durability(self.durability)
            .open_files(self.open_files)
            .prefer_flat_index(self.prefer_flat_index)
            .levels(self.levels)
            .manifest_slack_bytes(self.manifest_slack_bytes)
            .reserve_bytes(self.reserve_bytes)
    }
}

/// Draws the filters of a table, and the length of the key prefixes that also go into the filters.
pub fn filters(rng: &mut Xoshiro256PlusPlus) -> (Filters, u16) {
    let mut kind = || *FilterKind::ALL.choose(rng).expect("there are three");
    let filters = Filters { upper: kind(), deepest: kind() };
    (filters, rng.random_range(0..=3))
}

/// Compression of a table.
pub fn compression(rng: &mut impl Rng) -> Compression {
    // One draw decides both codec and level. Before zstd, its first bit chose between two codecs: a single draw lets
    // each seed keep its other options.
    let bits = rng.random::<u32>();
    match (bits >> 31, bits >> 30 & 1) {
        (1, _) => Compression::None,
        (_, 0) => Compression::Lz4,
        _ => Compression::Zstd { level: 1 + (bits % 5) as u8 },
    }
}

fn table_options(rng: &mut Xoshiro256PlusPlus) -> TableOptions {
    let (filters, filter_prefix_bytes) = filters(rng);
    TableOptions {
        filters,
        filter_prefix_bytes,
        page_bytes: 256 << rng.random_range(0..=4),
        node_bytes: 256 << rng.random_range(0..=4),
        index: *INDEXES.choose(rng).expect("there are three"),
        compression: compression(rng),
        metadata: Vec::new(),
        in_memory: false,
        expiry: Expiry::Never,
        groups: ["a", "b", "c"].map(str::to_owned)[..*[0, 0, 0, 1, 2, 3].choose(rng).expect("there are six")].to_vec(),
    }
}
