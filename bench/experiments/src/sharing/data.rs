//! The rows of the experiment, and the clients that read them uniformly.

use crate::made::{broken, import};
use harness::report::Pair;
use harness::report::text::{bytes, grouped};
use harness::{Client, Extra, Failure, Fields, Kind, Next, Outcome, Reply, Request, Workload};
use larch::options::LevelOptions;
use larch::{Builder, Database};
use std::path::Path;
use suite::stop::Stop;

/// The table.
pub const TABLE: &str = "rows";

/// A data set. The key of row n is `partition` and n in eleven digits; the value is n, padded.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// A short name, also of the directory.
    pub name: &'static str,
    /// The noun for its rows.
    pub what: &'static str,
    /// The number of rows.
    pub rows: u64,
    /// Bytes of each value.
    pub value_bytes: usize,
}

/// Bytes of a key.
const KEY_BYTES: u64 = 20;

impl Data {
    /// Few long rows, which fill several pages. A read takes a node and a data page.
    pub fn partitions() -> Self {
        Self { name: "partitions", what: "partitions", rows: 10, value_bytes: 4000 }
    }

    /// Many short rows, under a tree of several levels.
    pub fn keys(rows: u64) -> Self {
        Self { name: "keys", what: "keys", rows, value_bytes: 100 }
    }

    /// `10 partitions`.
    pub fn title(&self) -> String {
        format!("{} {}", grouped(self.rows), self.what)
    }

    /// The most disk space that they take.
    pub fn most_bytes(&self) -> u64 {
        // Pages are at least three quarters full. The constant is for the log and other files.
        self.rows * (KEY_BYTES + self.value_bytes as u64 + 16) * 4 / 3 + (64 << 20)
    }

    /// The properties of the workload.
    pub fn properties(&self) -> Vec<Pair> {
        let pair = |name: &str, value: u64| Pair::new(name, value.to_string());
        let counts = [("rows", self.rows), ("key bytes", KEY_BYTES), ("value bytes", self.value_bytes as u64)];
        let mut pairs: Vec<Pair> = counts.map(|(name, value)| pair(name, value)).into();
        pairs.push(Pair::new("distribution", "uniform"));
        pairs
    }

    /// The builder of the database. All rows go into one file, so that each private reader keeps a single file
    /// open.
    pub fn builder(place: &Path) -> Builder {
        Database::builder(place).levels(LevelOptions { file_bytes: 1 << 40, ..LevelOptions::default() })
    }

    /// Imports the rows. Returns a sentence on their pages and levels.
    pub fn load(&self, place: &Path, stop: &Stop) -> Result<String, Failure> {
        let db = Self::builder(place).open().map_err(broken)?;
        let table = db.table(TABLE).map_err(broken)?;
        let row = |number| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            put_key(&mut key, number);
            self.put_value(&mut value, number);
            (key, value)
        };
        import(&table, 0..self.rows, stop, row)?;
        let stats = table.stats().map_err(broken)?;
        if stats.files != 1 || stats.index_height == 0 {
            let text = format!("{} files with {} levels of nodes", stats.files, stats.index_height);
            return Err(Failure::session("shape", format!("one file with an index was wanted, and there are {text}")));
        }
        let shape = format!(
            "{} pages of rows, {} in all, under {} level{} of nodes of {} together",
            grouped(stats.data_pages),
            bytes(stats.data_bytes),
            stats.index_height,
            if stats.index_height == 1 { "" } else { "s" },
            bytes(stats.index_bytes)
        );
        drop(table);
        db.close().map_err(broken)?;
        Ok(shape)
    }

    fn put_value(&self, value: &mut Vec<u8>, number: u64) {
        value.clear();
        value.extend_from_slice(&number.to_le_bytes());
        value.resize(self.value_bytes, number as u8);
    }
}

fn put_key(key: &mut Vec<u8>, number: u64) {
    key.clear();
    key.extend_from_slice(format!("partition{number:011}").as_bytes());
}

/// The workload of the readers: uniformly drawn rows in a closed loop.
pub struct Reads {
    data: Data,
    seed: u64,
}

impl Reads {
    /// `seed` determines the rows.
    pub fn new(data: &Data, seed: u64) -> Self {
        Self { data: *data, seed }
    }
}

impl Workload for Reads {
    type Client = Reader;

    fn kinds(&self) -> &'static [&'static str] {
        &["READ"]
    }

    fn client(&self, number: usize, _: usize) -> Reader {
        Reader {
            data: self.data,
            random: self.seed << 32 | number as u64,
            number: 0,
            key: Vec::new(),
            value: Vec::new(),
        }
    }
}

/// One reader.
pub struct Reader {
    data: Data,
    random: u64,
    number: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Reader {
    /// SplitMix64, by Vigna.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

impl Client for Reader {
    fn begin(&mut self) -> bool {
        self.number = ((u128::from(self.draw()) * u128::from(self.data.rows)) >> 64) as u64;
        put_key(&mut self.key, self.number);
        true
    }

    fn request(&mut self) -> (Kind, Request<'_>) {
        (Kind(0), Request::Read { key: &self.key, fields: Fields::All })
    }

    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, extra: &mut Extra<'_>) -> Next {
        self.data.put_value(&mut self.value, self.number);
        match result {
            Ok(Outcome::Ok) if reply.record().get(0) == Some(&self.value[..]) => Next::Done,
            Ok(Outcome::Ok) => {
                extra.note(Kind(0), 0, Err("another value"));
                Next::Failed
            }
            Ok(_) | Err(_) => Next::Failed,
        }
    }
}
