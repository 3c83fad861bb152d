use super::*;
use crate::experiment::tests::tiny;
use crate::made::Shape;
use crate::ycsb_run::YcsbRun;

#[test]
fn a_tiny_experiment_reads_less_by_the_tree_where_the_lists_do_not_fit() {
    // Instructions are counted only in the program `larch`, and this is a test program.
    let index = || Index { extent: Extent { counted_gets: 0, ..Extent::of(Scale::Tiny) }, only: None };
    let (_, ground, _) = tiny(index(), index());
    let shape: Shape = ground.told(Written::Both.name()).expect("it was built");
    assert!(shape.files > 1 && shape.flat_bytes > 0 && shape.btree_bytes > shape.flat_bytes, "{shape:?}");
    let alone: Shape = ground.told(Written::Tree.name()).expect("it was built");
    assert_eq!(alone.flat_bytes, 0);
    for cache in CACHES[3..].iter().copied() {
        let [flat, tree, alone] = ARMS.map(|arm| {
            let run: YcsbRun = ground.known(Cell::Reads(0, cache, 1, arm)).expect("it was measured");
            run.each(run.read_bytes)
        });
        assert!(tree < flat && alone < flat, "{cache:?}: {flat} by the list, {tree} and {alone} by the tree");
    }
    for cell in tpcc::cells() {
        let ran: TpccRun = ground.known(cell).expect("it was measured");
        assert!(ran.new_orders > 0 && ran.checked_rows > 500_000, "{cell}: {ran:?}");
    }
    for goal in index().extent.tpcc_goals(&ground) {
        assert!(goal.is_reached, "{goal:?}");
    }
}
