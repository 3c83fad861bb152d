//! Small databases that contain something of everything that a release can write, each with a list of the rows that
//! a reader must find in it. They test that later releases can read what earlier ones wrote, and that earlier
//! releases can read what later ones write for them.
//!
//! A specimen is a folder with a database and two texts. The database is in the folder `db`. Some of its commits
//! are only in the log. The texts list rows, one row in each line: `rows` has all rows, and `rows-in-files` has the
//! rows that a read-only open of the database shows. The texts are made from the rows that were written, and not
//! from rows that were read back.
//!
//! ```text
//! table TAB key TAB value                    escaped as in Rust; of a long value its length and CRC-32C
//! ```

use larch::options::{FilterKind, Filters, LevelOptions, PageIndexKind, Release};
use larch::{Compression, Database, Snapshot, Table, TableOptions};
use os::Machine;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// ExpectedRows by table and key.
type ExpectedRows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// For a value longer than this, the texts have its length and checksum.
const SHOWN_BYTES: usize = 64;

/// A specimen under construction. Every change is made to the database and to the list of rows that it must show.
struct SpecimenWriter {
    db: Database,
    rows: ExpectedRows,
}

impl SpecimenWriter {
    fn table(&self, name: &str, options: TableOptions) -> larch::Result<Table> {
        // A page has only a few rows, so that every tree has nodes.
        self.db.table_with(name, TableOptions { page_bytes: 512, node_bytes: 512, ..options })
    }

    fn put(&mut self, table: &Table, key: &str, value: &[u8]) -> larch::Result<()> {
        table.insert(key, value)?;
        self.rows.insert((table.name().to_owned(), key.into()), value.to_vec());
        Ok(())
    }

    fn put_parts(&mut self, table: &Table, key: &str, parts: &[&[u8]]) -> larch::Result<()> {
        table.insert_parts(key, parts)?;
        self.rows.insert((table.name().to_owned(), key.into()), joined(parts));
        Ok(())
    }

    fn erase(&mut self, table: &Table, key: &str) -> larch::Result<()> {
        table.remove(key)?;
        self.rows.remove(&(table.name().to_owned(), key.into()));
        Ok(())
    }

    fn erase_range(&mut self, table: &Table, from: &str, to: &str) -> larch::Result<()> {
        table.remove_range(from..to)?;
        let name = table.name();
        let gone =
            |(of, key): &(String, Vec<u8>)| of == name && from.as_bytes() <= &key[..] && &key[..] < to.as_bytes();
        self.rows.retain(|place, _| !gone(place));
        Ok(())
    }

    fn import(&mut self, table: &Table, rows: &[(&str, &[u8])]) -> larch::Result<()> {
        let mut import = table.import()?;
        for (key, value) in rows {
            import.add(key.as_bytes(), value)?;
            self.rows.insert((table.name().to_owned(), key.as_bytes().to_vec()), value.to_vec());
        }
        import.finish(|_| {})?;
        Ok(())
    }

    /// Notes that table `to` now has the rows of `from` for whose keys `goes` is true, and, unless `keeps`, that
    /// `from` no longer has them.
    fn share(&mut self, from: &str, to: &str, keeps: bool, goes: impl Fn(&[u8]) -> bool) {
        let shared: Vec<_> = self
            .rows
            .iter()
            .filter(|((of, key), _)| of == from && goes(key))
            .map(|(place, row)| (place.clone(), row.clone()))
            .collect();
        for ((of, key), value) in shared {
            if !keeps {
                self.rows.remove(&(of, key.clone()));
            }
            self.rows.insert((to.to_owned(), key), value);
        }
    }
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.join(&b'|')
}

fn large(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| seed.wrapping_mul(31).wrapping_add((i / 7) as u8)).collect()
}

/// Writes a specimen to the empty folder `folder`, for readers of `release` and later releases.
pub fn write(machine: &Machine, folder: &Path, release: Release) -> larch::Result<()> {
    let levels = LevelOptions { level0_files: 100, ..LevelOptions::default() };
    let builder = Database::builder(folder.join("db")).machine(machine.clone()).compat(release);
    let db = builder.levels(levels).warm_from_last(true).cache_bytes(1 << 20).open()?;
    let mut of = SpecimenWriter { db, rows: ExpectedRows::new() };
    let usual = TableOptions::default();
    let plain = of.table("plain", TableOptions { filters: Filters::all(FilterKind::Bits20), ..usual.clone() })?;
    let flat = of.table(
        "flat",
        TableOptions { index: PageIndexKind::Flat, filters: Filters::all(FilterKind::None), ..usual.clone() },
    )?;
    let both = of.table(
        "both",
        TableOptions {
            index: PageIndexKind::Both,
            compression: Compression::Lz4,
            filter_prefix_bytes: 3,
            metadata: b"of the application".to_vec(),
            in_memory: true,
            ..usual.clone()
        },
    )?;
    let dense = match release {
        Release::V0_1 => None,
        _ => Some(of.table("dense", TableOptions { compression: Compression::ZSTD, ..usual.clone() })?),
    };
    let groups = vec!["hot".to_owned(), "warm".to_owned(), "cold".to_owned()];
    let grouped = of.table("grouped", TableOptions { groups, ..usual.clone() })?;
    for i in 0..24 {
        let key = format!("row{i:03}");
        let value = format!("value {i} of the first round");
        for table in [&plain, &flat, &both].into_iter().chain(&dense) {
            of.put(table, &key, value.as_bytes())?;
        }
        of.put_parts(&grouped, &key, &[&[b'h'; 5], value.as_bytes(), &large(i, usize::from(i) * 20)])?;
    }
    let before: Snapshot = of.db.snapshot();
    // The snapshot still needs the old versions of these rows, so the flush puts them into the history.
    for i in (0..24).step_by(3) {
        let key = format!("row{i:03}");
        of.put(&plain, &key, b"again")?;
        of.put(&both, &key, &large(i, 700))?;
        of.put_parts(&grouped, &key, &[b"hot", b"", &large(i, 900)])?;
    }
    for table in [&plain, &flat, &both, &grouped] {
        of.erase(table, "row007")?;
        of.erase_range(table, "row010", "row013")?;
    }
    of.put(&plain, "row011", b"after the erase of its range")?;
    of.put(&flat, "large", &large(9, 5_000))?;
    of.db.flush()?;
    drop(before);
    of.import(&flat, &[("imported1", b"one"), ("imported2", &large(4, 300)), ("row001", b"from outside")])?;
    plain.clone_as("clone")?;
    of.share("plain", "clone", true, |_| true);
    plain.split_off("row016", "upper")?;
    of.share("plain", "upper", false, |key| key >= &b"row016"[..]);
    let altered = |options: &mut TableOptions| options.compression = Compression::Lz4;
    flat.alter(altered)?;
    of.table("empty", usual)?;
    of.db.flush()?;
    text(machine, &folder.join("rows-in-files"), &of.rows);
    // What follows is only in the log.
    of.put(&plain, "row002", b"in the log")?;
    of.put(&flat, "logged", &large(5, 200))?;
    of.erase(&both, "row000")?;
    of.erase_range(&both, "row020", "row022")?;
    of.put_parts(&grouped, "row999", &[b"a", b"b", b"c"])?;
    of.db.sync()?;
    text(machine, &folder.join("rows"), &of.rows);
    Ok(())
}

/// Compares the rows in the database of a specimen with the rows in the specimen's text.
///
/// # Panics
///
/// Panics if the rows differ, or if the database or the text cannot be read.
pub fn check(machine: &Machine, folder: &Path, read_only: bool) {
    let database = folder.join("db");
    let db = Database::builder(&database).machine(machine.clone()).create(false).read_only(read_only).open();
    let db = db.unwrap_or_else(|error| panic!("{}: {error}", database.display()));
    let report = db.check(|_| {}).expect("it can be read");
    assert!(report.problems.is_empty(), "{}: {:?}", database.display(), report.problems);
    let name = if read_only { "rows-in-files" } else { "rows" };
    let expected = machine.disk.read_all(&folder.join(name)).expect("it lies beside the database");
    assert_eq!(rows(&db), String::from_utf8_lossy(&expected), "{}", database.display());
}

/// All rows of all tables, in the form that they have in a specimen's text.
///
/// # Panics
///
/// If something cannot be read.
pub fn rows(db: &Database) -> String {
    shown(&read(db))
}

/// All rows of all tables. If a row has parts, they are joined with a `|` between them.
fn read(db: &Database) -> ExpectedRows {
    let mut rows = ExpectedRows::new();
    for name in db.tables() {
        let table = db.existing_table(&name).expect("it can be read").expect("it was listed");
        let groups = table.options().groups;
        if groups.is_empty() {
            for row in table.iter() {
                let (key, value) = row.expect("it can be read");
                rows.insert((name.clone(), key.to_vec()), value.to_vec());
            }
            continue;
        }
        for row in table.select(&groups).expect("it has these groups").iter() {
            let (key, parts) = row.expect("it can be read");
            let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
            rows.insert((name.clone(), key.to_vec()), joined(&parts));
        }
    }
    rows
}

fn shown(rows: &ExpectedRows) -> String {
    let mut text = String::new();
    for ((table, key), value) in rows {
        let shown = match value.len() {
            0..=SHOWN_BYTES => value.escape_ascii().to_string(),
            long => format!("{long} bytes {:08x}", crc_fast::crc32_iscsi(value)),
        };
        writeln!(text, "{table}\t{}\t{shown}", key.escape_ascii()).expect("a string takes all");
    }
    text
}

fn text(machine: &Machine, path: &Path, rows: &ExpectedRows) {
    let file = machine.disk.open(path, os::Access::Create).expect("the folder is empty");
    file.write_at(shown(rows).as_bytes(), 0).expect("there is room");
}
