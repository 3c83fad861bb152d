use super::*;
use kit::Scratch;

#[test]
fn a_tiny_experiment_opens_all_databases_at_once() {
    let scratch = Scratch::new("databases");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: false, price: None };
    let size = Size::of(Scale::Tiny);
    let mut ground = Ground::with_stop("databases", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut ground, &size).expect("the disk works"));
    assert_eq!(ground.cells().len(), size.databases.len());
    let outcome = outcome(&ground, &size);
    let Block::Table(table) = &outcome.blocks[1] else { panic!("it is a table") };
    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{table:?}");
    assert_eq!(outcome.finish("databases", &ground, &args).expect("there is room"), Ending::Good);
}
