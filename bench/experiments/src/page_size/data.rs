//! The databases of the experiment, and timed loads.

use super::{Form, KEY_BYTES, Memory, Size, Work};
use crate::ground::Ground;
use crate::made::{Made, remove};
use crate::measured::{self, Cell, fill};
use harness::{Clock, Failure, Fields, Opening, Reply, Request, Session, Store, Target};
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
    pub data_pages: u64,
    pub data_bytes: u64,
    pub index_bytes: u64,
    /// Nodes on the way from the manifest to a data page.
    pub height: u8,
}

pub fn load_name(repeat: u64, form: Form) -> String {
    format!("load, {repeat}, {}", form.name())
}

pub fn shape_name(form: Form) -> String {
    format!("data, {}", form.name())
}

/// Times loads of rows in random order. Returns false after ^C.
pub fn loads(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    for (repeat, form) in (0..size.repeats).flat_map(|repeat| Form::all().into_iter().map(move |form| (repeat, form))) {
        let place = ground.data("load")?;
        let loaded = ground.cell(&load_name(repeat, form), |stop| {
            remove(&place)?;
            let loaded = load(&place, size, form, repeat, stop);
            remove(&place)?;
            loaded
        })?;
        if loaded.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn load(place: &Path, size: &Size, form: Form, repeat: u64, stop: &Stop) -> Result<Cell, Failure> {
    let settings = Work::Half.settings(size.load_rows);
    let target = Target::parse(&size.target(place, form, Memory::Cached, "settle=levels"))?;
    let store = (store_larch::SCHEME.open)(&target, &settings.table(), Opening::OrCreate)?;
    let cell = measured::run(&*store, &Load::new(&settings, repeat), KEY_BYTES, 1, None, stop)?;
    if !stop.is_pressed() {
        read_all(&*store, size.load_rows)?;
        suite::say(&format!("load, {}: {:.0} rows/s", form.name(), cell.per_second()));
    }
    store.close()?;
    Ok(cell)
}

/// Creates a database of each form. `None` after ^C.
pub fn make(ground: &mut Ground, size: &Size) -> Result<Option<Vec<(Form, Made)>>, Failure> {
    let mut all = Vec::new();
    for form in Form::all() {
        let made = Made::open(ground, &form.place(), |place| {
            suite::say(&format!("{} rows, {}", size.rows, form.name()));
            let settings = Work::Reads.settings(size.rows);
            fill(&store_larch::SCHEME, &size.target(place, form, Memory::Cold, ""), &settings, size.rows, &ground.stop)
        })?;
        let Some(made) = made else { return Ok(None) };
        let place = made.place().to_owned();
        if ground.cell(&shape_name(form), |_| shape(&place))?.is_none() {
            return Ok(None);
        }
        all.push((form, made));
    }
    Ok(Some(all))
}

/// Reads all rows in order, which fills the cache.
pub fn read_all(store: &dyn Store, rows: u64) -> Result<(), Failure> {
    let Session::Blocking(mut session) = store.session(Clock::start())? else {
        return Err(Failure::session("target", "a session of Larch waits, without the option `flights`"));
    };
    let mut reply = Reply::new();
    session.call(&Request::Scan { start: b"", rows: u64::MAX, fields: Fields::All }, &mut reply)?;
    match reply.rows() {
        found if found == rows => Ok(()),
        found => Err(Failure::session(crate::WRONG, format!("{found} rows were found where there are {rows}"))),
    }
}

fn shape(place: &Path) -> Result<Shape, Failure> {
    let broken = |error: larch::Error| Failure::session("larch", error.to_string());
    let db = Database::builder(place).read_only(true).open().map_err(broken)?;
    let stats = db.table("usertable").and_then(|table| table.stats()).map_err(broken)?;
    Ok(Shape {
        rows: stats.rows,
        files: stats.files,
        file_bytes: stats.file_bytes,
        data_pages: stats.data_pages,
        data_bytes: stats.data_bytes,
        index_bytes: stats.index_bytes,
        height: stats.index_height,
    })
}
