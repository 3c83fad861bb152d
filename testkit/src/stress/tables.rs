//! The tables: three that stay, and others that come and go.

use super::Round;
use larch::options::{FilterKind, Filters, PageIndexKind};
use larch::{Result, Table, TableOptions};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt};

/// The column group of an account that holds its amount. The other group holds bytes that are never read.
pub const AMOUNT: &str = "amount";

/// Tables that come and go.
const NAMES: [&str; 3] = ["passing", "clone", "upper"];

/// The options of a table that stays.
pub fn options(name: &str) -> TableOptions {
    let groups = if name == "accounts" { vec![AMOUNT.to_owned(), "note".to_owned()] } else { Vec::new() };
    TableOptions { page_bytes: 1024, node_bytes: 512, groups, ..TableOptions::default() }
}

/// An amount as an account holds it.
pub fn amount(part: &[u8]) -> u64 {
    u64::from_le_bytes(part.try_into().expect("an amount has 8 bytes"))
}

/// Changes the options of `table`, except its groups.
pub fn alter(table: &Table, rng: &mut impl Rng) -> Result<()> {
    let kinds = [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both];
    let filters = [FilterKind::None, FilterKind::Bits12, FilterKind::Bits20];
    let index = kinds[rng.random_range(0..kinds.len())];
    let filter = filters[rng.random_range(0..filters.len())];
    let (page_bytes, node_bytes) = (256 << rng.random_range(0..=5), 256 << rng.random_range(0..=5));
    let compression = crate::options::compression(rng);
    let in_memory = rng.random_ratio(1, 4);
    table.alter(|options| {
        options.index = index;
        options.filters = Filters::all(filter);
        options.page_bytes = page_bytes;
        options.node_bytes = node_bytes;
        options.compression = compression;
        options.in_memory = in_memory;
    })
}

/// Creates tables, fills them, imports into them, clones, splits and drops them, while other threads write and
/// compact.
pub fn come_and_go(round: &Round, mut rng: Xoshiro256PlusPlus) {
    while round.goes_on() {
        round.expect("pass", pass(round, &mut rng));
        // The tables are dropped even after a failure, so that the next pass can create them again.
        for name in NAMES {
            round.expect("drop", round.db.drop_table(name).map(drop));
        }
    }
}

/// The life of a table.
fn pass(round: &Round, rng: &mut impl Rng) -> Result<()> {
    let db = &round.db;
    // If a table of the last pass still exists, this pass does nothing, and the caller drops the table.
    for name in NAMES {
        if db.existing_table(name)?.is_some() {
            return Ok(());
        }
    }
    let table = db.table_with("passing", options("passing"))?;
    let rows = rng.random_range(1..400u32);
    let key = |row: u32| format!("{row:05}");
    let mut batch = db.batch();
    for row in 0..rows {
        batch.insert(&table, key(row), "written");
    }
    batch.commit()?;
    if rng.random() {
        db.flush()?;
    }
    // Replaces every other row.
    let mut import = table.import()?;
    let ascending = rng.random();
    for i in (0..rows).step_by(2) {
        let row = if ascending { i } else { (rows - 1) / 2 * 2 - i };
        import.add(key(row).as_bytes(), b"imported")?;
    }
    import.finish(|_| {})?;
    let expect = |table: &Table, low: u32, high: u32| -> Result<()> {
        let mut next = low;
        for row in table.iter() {
            let (found, value) = row?;
            assert_eq!(found.escape_ascii().to_string(), key(next), "rows {low}..{high} of {:?}", table.name());
            let expected: &[u8] = if next.is_multiple_of(2) { b"imported" } else { b"written" };
            assert!(value[..] == *expected, "row {next} of {:?} is {}", table.name(), value.escape_ascii());
            next += 1;
        }
        assert_eq!(next, high, "rows {low}..{high} of {:?}", table.name());
        Ok(())
    };
    expect(&table, 0, rows)?;
    let clone = table.clone_as("clone")?;
    let cut = rng.random_range(0..=rows);
    let snapshot = db.snapshot();
    let upper = table.split_off(key(cut), "upper")?;
    expect(&table, 0, cut)?;
    expect(&upper, cut, rows)?;
    expect(&clone, 0, rows)?;
    clone.remove_range(key(cut)..)?;
    expect(&clone, 0, cut)?;
    if rng.random() {
        upper.compact()?;
        expect(&upper, cut, rows)?;
    }
    drop(snapshot);
    let mut open = clone.iter();
    let first = open.next().transpose()?;
    assert_eq!(first.is_some(), cut > 0, "the clone has {cut} rows");
    assert!(db.drop_table("clone")?, "the table is there");
    assert!(db.drop_table("upper")?, "the table is there");
    assert!(db.drop_table("passing")?, "the table is there");
    Ok(())
}
