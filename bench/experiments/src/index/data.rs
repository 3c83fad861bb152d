//! The databases of the experiment: creates them, takes the sizes of their indexes, and times loads, compactions
//! and index builds.

use super::wide::{KEY_BYTES, Wide, WideRows};
use super::{ALL_WRITTEN, Filled, Size, TABLE, Written, open};
use crate::ground::Ground;
use crate::made::{Made, remove};
use crate::measured::{self, Cell};
use harness::{Clock, Failure, Opening};
use larch::Database;
use serde::{Deserialize, Serialize};
use std::path::Path;
use suite::stop::Stop;
use ycsb::Load;

/// The sizes of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    pub rows: u64,
    pub files: u64,
    pub file_bytes: u64,
    pub least_file_bytes: u64,
    pub data_pages: u64,
    pub btree_bytes: u64,
    pub flat_bytes: u64,
    /// Nodes on the way from the manifest to a data page in the tree.
    pub height: u8,
    /// Bytes of the manifest, which is always in memory.
    pub manifest_bytes: u64,
    /// Time to import the rows in key order.
    pub import_nanos: u64,
}

/// The measurements of a load and of what follows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// The load; its `settle_nanos` is the time of the compaction.
    pub load: Cell,
    /// Time to build a secondary index.
    pub index_nanos: u64,
    pub shape: Shape,
}

pub fn load_name(repeat: u64, written: Written) -> String {
    format!("load, {repeat}, {}", written.name())
}

pub fn shape_name(written: Written) -> String {
    format!("data, {}", written.name())
}

/// Times loads of few rows. Returns false after ^C.
pub fn loads(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    for repeat in 0..size.repeats {
        for written in ALL_WRITTEN {
            let place = ground.data("load")?;
            let loaded = ground.cell(&load_name(repeat, written), |stop| {
                remove(&place)?;
                let loaded = load(&place, size, written, repeat, stop);
                remove(&place)?;
                loaded
            })?;
            if loaded.is_none() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Loads rows in random order by single commits, compacts them, and builds a secondary index.
fn load(place: &Path, size: &Size, written: Written, repeat: u64, stop: &Stop) -> Result<Loaded, Failure> {
    let settings = measured::settings("a", size.load_rows, &[]);
    // A large cache: the load in YDB's document was not short of memory.
    let store = open(&size.target(place, written, "cache=256MiB&settle=compact"), &settings, Opening::OrCreate)?;
    let load = Load::new(&settings, repeat);
    let loaded = measured::run(&*store, &Wide::new(&load, size.widening()), KEY_BYTES as u64, 1, None, stop)?;
    if stop.is_pressed() {
        return Ok(Loaded::default());
    }
    let clock = Clock::start();
    let rows = store.build_index()?;
    let index_nanos = clock.nanos();
    let entries = store.check_and_drop_index()?;
    store.close()?;
    if rows != Some(size.load_rows) || entries != size.load_rows {
        let text = format!("{} rows were loaded, {rows:?} indexed, {entries} found in the index", size.load_rows);
        return Err(Failure::session(crate::WRONG, text));
    }
    suite::say(&format!(
        "load of {} rows, {} written: {:.1} s, compaction {:.1} s, index {:.1} s",
        size.load_rows,
        written.name(),
        loaded.nanos as f64 / 1e9,
        loaded.settle_nanos as f64 / 1e9,
        index_nanos as f64 / 1e9
    ));
    Ok(Loaded { load: loaded, index_nanos, shape: shape(place, &[], 0)? })
}

/// Creates both databases. `None` after ^C.
pub fn make(ground: &mut Ground, size: &Size) -> Result<Option<[Filled; 2]>, Failure> {
    let Some(both) = filled(ground, size, Written::Both)? else { return Ok(None) };
    let Some(tree) = filled(ground, size, Written::Tree)? else { return Ok(None) };
    Ok(Some([both, tree]))
}

fn filled(ground: &mut Ground, size: &Size, written: Written) -> Result<Option<Filled>, Failure> {
    let mut import_nanos = 0;
    let made = Made::open(ground, written.name(), |place| {
        suite::say(&format!("{} rows, {} written", size.rows, written.name()));
        let clock = Clock::start();
        let is_whole = fill(place, size, written, &ground.stop)?;
        import_nanos = clock.nanos();
        Ok(is_whole)
    })?;
    let Some(made) = made else { return Ok(None) };
    let file_bytes = made.file_bytes()?;
    let place = made.place().to_owned();
    let shape = ground.cell(&shape_name(written), |_| shape(&place, &file_bytes, import_nanos))?;
    Ok(shape.map(|shape| Filled { made, shape }))
}

/// Imports all rows in key order. Returns false after ^C.
fn fill(place: &Path, size: &Size, written: Written, stop: &Stop) -> Result<bool, Failure> {
    let settings = measured::settings("c", size.rows, &[]);
    let store = open(&size.target(place, written, "cache=64MiB"), &settings, Opening::OrCreate)?;
    let load = Load::new(&settings, 1);
    let mut in_order = load.in_order();
    let rows = store.bulk_load(&mut WideRows::new(&mut in_order, size.widening(), stop))?;
    store.close()?;
    if stop.is_pressed() {
        return Ok(false);
    }
    match rows {
        Some(rows) if rows == size.rows => Ok(true),
        rows => Err(Failure::session(crate::WRONG, format!("{rows:?} of {} rows were written", size.rows))),
    }
}

fn shape(place: &Path, file_bytes: &[u64], import_nanos: u64) -> Result<Shape, Failure> {
    let broken = |error: larch::Error| Failure::session("larch", error.to_string());
    let db = Database::builder(place).read_only(true).open().map_err(broken)?;
    let stats = db.table(TABLE).and_then(|table| table.stats()).map_err(broken)?;
    let manifest = db.metrics().memory().manifest_bytes;
    Ok(Shape {
        rows: stats.rows,
        files: stats.files,
        file_bytes: stats.file_bytes,
        least_file_bytes: file_bytes.iter().copied().min().unwrap_or(0),
        data_pages: stats.data_pages,
        btree_bytes: stats.btree_bytes,
        flat_bytes: stats.flat_bytes,
        height: stats.index_height,
        manifest_bytes: manifest,
        import_nanos,
    })
}
