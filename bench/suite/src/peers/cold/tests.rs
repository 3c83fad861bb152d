use super::ground::ENGINES;
use super::{beside, callers, gets, scan};
use crate::peers::table::Table;

/// Checks that every engine in a goal has a column, and that every row has a figure for Larch.
fn check(table: &mut Table, engines: &[&str]) {
    assert_eq!(table.engines, engines);
    // If every row has figures of all engines, every goal can be checked.
    for row in &mut table.rows {
        row.figures = vec![vec![1.0]; engines.len()];
    }
    assert_eq!(table.unmeasured(), Vec::<String>::new());
    assert!(!table.verdicts().is_empty());
}

#[test]
fn every_goal_has_its_other_side_in_its_table() {
    let names: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
    check(&mut gets::table(&ENGINES, "fio 16K"), &names);
    check(&mut gets::table(&ENGINES, "disk 16K"), &names);
    check(&mut callers::table("disk 16K"), &["larch 16K", "disk 16K"]);
    check(&mut scan::table(), &["larch 16K", "fio"]);
    check(&mut beside::table(), &["larch 16K"]);
}

#[test]
fn engines_that_share_a_database_come_after_its_owner() {
    for (at, engine) in ENGINES.iter().enumerate() {
        if let Some(owner) = engine.of {
            assert!(ENGINES[..at].iter().any(|known| known.name == owner && known.of.is_none()), "{engine:?}");
        }
    }
}
