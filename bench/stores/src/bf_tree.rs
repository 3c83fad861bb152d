//! Bf-Tree as a store of the benchmarks: a tree of pages whose hot records and recent writes are in small pages in
//! memory.
//!
//! Bf-Tree keeps its pages in a file, but finds them again only by a snapshot. So the store takes a snapshot when it
//! settles and when it closes, and opens the last one. Its log cannot be replayed yet, so it is not used.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark works on the machine's own files")]

#[cfg(test)]
mod tests;

use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField, StorageBackend};
use harness::directory::{bytes_text, failure};
use harness::key_value::encoded;
use harness::version::of_crate;
use harness::{
    Clock, Counter, Directory, Failure, KeyValue, Opening, Records, Rows, Scheme, Session, Setting, Store, StoreUse,
    Strings, Table, Target,
};
use std::path::PathBuf;

/// `bf-tree:DIR`.
pub const SCHEME: Scheme = Scheme {
    name: "bf-tree",
    form: "bf-tree:DIR",
    about: "Bf-Tree, embedded",
    options: &[
        ("cache", "memory for hot records and recent writes, a power of two: 256MiB"),
        ("durability", "buffered: in memory and a file, found again once it settles; nothing else"),
        ("compression", "none"),
        ("page", "bytes of a page, 8KiB or 16KiB, of a new table: 16KiB"),
    ],
    networked: false,
    open,
};

/// The longest key.
const KEY_BYTES: usize = 256;

/// Bf-Tree's smallest record, of a key and a value. A page of 16 KiB allows no smaller one.
const RECORD_BYTES: usize = 4;

/// Follows each value, so that the shortest key with an empty value is a record.
const PADDING: [u8; RECORD_BYTES - 1] = [0; RECORD_BYTES - 1];

/// The last snapshot.
const SNAPSHOT: &str = "rows.snapshot";
/// The file of the pages.
const FILE: &str = "rows.pages";

/// An open tree.
struct Tree {
    tree: BfTree,
    fields: usize,
    cache_bytes: u64,
    page_bytes: u64,
    /// The most bytes of a key with its value.
    record_bytes: usize,
    directory: Directory,
}

fn open(target: &Target, table: &Table, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    let mut options = target.options()?;
    let cache_bytes = options.bytes("cache", 256 << 20)?;
    if !cache_bytes.is_power_of_two() {
        return Err(options.bad("cache", &bytes_text(cache_bytes), "a power of two"));
    }
    options.choice("durability", &[("buffered", ())])?;
    options.choice("compression", &[("none", ())])?;
    let page_bytes = options.bytes("page", 16 << 10)?;
    if ![8 << 10, 16 << 10].contains(&page_bytes) {
        return Err(options.bad("page", &bytes_text(page_bytes), "8KiB or 16KiB"));
    }
    options.finish()?;

    let directory = Directory::open(target, table, opening, &[("page", bytes_text(page_bytes))])?;
    let (snapshot, file) = (directory.data().join(SNAPSHOT), directory.data().join(FILE));
    // Two records fit into a page, with room for its borders.
    let record_bytes = page_bytes as usize / 2 - 2 * KEY_BYTES;
    let refused = |error| Failure::session("bf_tree", format!("Bf-Tree: {error:?}, opening {}", file.display()));
    let tree = if snapshot.exists() {
        // The tree writes into the file that it is opened on.
        std::fs::copy(&snapshot, &file).map_err(|error| failure(&error, "copy", &snapshot))?;
        BfTree::new_from_cpr_snapshot(&file, true, None, Some(cache_bytes as usize), None).map_err(refused)?
    } else {
        let mut config = Config::new(&file, cache_bytes as usize);
        config.storage_backend(StorageBackend::Std).use_snapshot(true);
        config.leaf_page_size(page_bytes as usize).cb_max_key_len(KEY_BYTES);
        config.cb_min_record_size(RECORD_BYTES).cb_max_record_size(record_bytes);
        BfTree::with_config(config, None).map_err(refused)?
    };
    let fields = table.fields.len();
    Ok(Box::new(Tree { tree, fields, cache_bytes, page_bytes, record_bytes, directory }))
}

impl Tree {
    fn pairs(&self) -> Pairs<'_> {
        Pairs { tree: &self.tree, padded: Vec::new(), found: vec![0; self.record_bytes] }
    }

    fn snapshot_path(&self) -> PathBuf {
        self.directory.data().join(SNAPSHOT)
    }
}

impl Store for Tree {
    fn settings(&self) -> Vec<Setting> {
        let version = of_crate(include_str!("../../../Cargo.lock"), "bf-tree");
        let record = bytes_text(self.record_bytes as u64);
        vec![
            Setting::new("engine", format!("Bf-Tree {}", version.unwrap_or("of unknown version"))),
            Setting::new("durability", "buffered: no log; lost with the process since it last settled"),
            Setting::new("cache", bytes_text(self.cache_bytes)),
            Setting::new("compression", "none"),
            Setting::new("page", bytes_text(self.page_bytes)),
            Setting::new("records", format!("{record} at most, with their keys")),
            Setting::new("reads", "through the system's page cache"),
            Setting::new("updates", "a read and a write, of which another thread may write in between"),
        ]
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Blocking(Box::new(Records::new(self.pairs(), self.fields))))
    }

    /// Bf-Tree has no bulk load; inserts in order are its fastest.
    fn bulk_load(&self, rows: &mut dyn Rows) -> Result<Option<u64>, Failure> {
        let (mut key, mut record, mut value) = (Vec::new(), Strings::new(), Vec::new());
        let (mut pairs, mut count) = (self.pairs(), 0);
        while rows.next_row(&mut key, &mut record) {
            pairs.put(&key, encoded(&record, &mut value))?;
            count += 1;
        }
        Ok(Some(count))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        self.pairs().is_empty()
    }

    fn counters(&self) -> Vec<Counter> {
        let bytes = std::fs::metadata(self.directory.data().join(FILE)).map_or(0, |file| file.len());
        vec![Counter::now("file bytes", bytes)]
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    /// Takes a snapshot.
    fn settle(&self) -> Result<(), Failure> {
        self.tree.cpr_snapshot(self.snapshot_path());
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.settle()
    }
}

struct Pairs<'s> {
    tree: &'s BfTree,
    /// Buffer for a value with its padding.
    padded: Vec<u8>,
    /// Buffer for a record that is read.
    found: Vec<u8>,
}

/// The failure for a key that the tree does not take.
#[cold]
fn bad_key(key: &[u8]) -> Failure {
    let text = format!("Bf-Tree: a key has 1 to {KEY_BYTES} bytes, and this one {}", key.len());
    Failure::request("bad_row", text)
}

fn without_padding(value: &[u8]) -> &[u8] {
    &value[..value.len().saturating_sub(PADDING.len())]
}

impl KeyValue for Pairs<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], mut found: impl FnMut(&[u8])) -> Result<bool, Failure> {
        match self.tree.read(key, &mut self.found) {
            LeafReadResult::Found(len) => {
                found(without_padding(&self.found[..len as usize]));
                Ok(true)
            }
            LeafReadResult::NotFound | LeafReadResult::Deleted => Ok(false),
            LeafReadResult::InvalidKey => Err(bad_key(key)),
        }
    }

    fn scan(&mut self, start: &[u8], rows: u64, mut each: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Failure> {
        if rows == 0 {
            return Ok(());
        }
        // No key is less than a zero byte.
        let start = if start.is_empty() { &[0] } else { start };
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let scan = self.tree.scan_with_count(start, rows, ScanReturnField::KeyAndValue);
        let mut scan = scan.map_err(|_| bad_key(start))?;
        while let Some((key, value)) = scan.next(&mut self.found) {
            if !each(&self.found[..key], without_padding(&self.found[key..key + value])) {
                break;
            }
        }
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.padded.clear();
        self.padded.extend_from_slice(value);
        self.padded.extend_from_slice(&PADDING);
        match self.tree.insert(key, &self.padded) {
            LeafInsertResult::Success => Ok(()),
            LeafInsertResult::InvalidKV(why) => Err(Failure::request("bad_row", format!("Bf-Tree: {why}"))),
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Failure> {
        // Whether the row was there, another read would tell.
        self.tree.delete(key);
        Ok(true)
    }
}
