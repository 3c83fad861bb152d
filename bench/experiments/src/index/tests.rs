#![allow(clippy::disallowed_methods, reason = "databases of real files, never simulated")]

use super::*;
use crate::args::ExperimentArgs;
use kit::Scratch;
use page::Block;

#[test]
fn a_tiny_experiment_reads_less_by_the_tree_where_the_lists_do_not_fit() {
    let scratch = Scratch::new("index");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: false, price: None };
    // Instructions are counted only in the program `larch`, and this is a test program.
    let size = Size { counted_gets: 0, ..Size::of(Scale::Tiny) };
    let mut ground = Ground::with_stop("index", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut ground, &size, None).expect("the disk works"));
    let shape: Shape = ground.known(&data::shape_name(Written::Both)).expect("it was measured");
    assert!(shape.files > 1 && shape.flat_bytes > 0 && shape.btree_bytes > shape.flat_bytes, "{shape:?}");
    let alone: Shape = ground.known(&data::shape_name(Written::Tree)).expect("it was measured");
    assert_eq!(alone.flat_bytes, 0);
    for cache in &CACHES[3..] {
        let [flat, tree, alone] = ARMS.map(|arm| {
            let cell: Cell = ground.known(&reads_name(0, *cache, 1, arm)).expect("it was measured");
            cell.each(cell.read_bytes)
        });
        assert!(tree < flat && alone < flat, "{cache:?}: {flat} by the list, {tree} and {alone} by the tree");
    }
    let outcome = tables::outcome(&ground, &size, None);
    for block in &outcome.blocks {
        let Block::Table(table) = block else { continue };
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
    }
    for name in tpcc::names().iter().skip(1) {
        let ran: crate::terminals::Ran = ground.known(name).expect("it was measured");
        assert!(ran.new_orders > 0 && ran.checked_rows > 500_000, "{name}: {ran:?}");
    }
    for goal in tpcc::goals(&ground, &size) {
        assert!(goal.measured.is_some_and(|measured| goal.bound.is_reached(measured)), "{goal:?}");
    }
    assert_eq!(outcome.finish("index", &ground, &args).expect("there is room"), Ending::Good);
    // A second run creates nothing.
    let mut again = Ground::with_stop("index", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut again, &size, None).expect("the disk works"));
    assert!(!again.data(Written::Both.name()).expect("there is room").exists());
}
