//! Reads all rows of a database, to compare databases.

use super::Database;
use std::collections::BTreeMap;

/// The values, by table and key.
pub type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// All rows of all tables.
pub fn rows(db: &Database) -> Rows {
    let mut all = Rows::new();
    for name in db.tables() {
        for row in db.table(&name).expect("it is there").iter() {
            let (key, value) = row.expect("the disk works");
            all.insert((name.clone(), key.to_vec()), value.to_vec());
        }
    }
    all
}
