use super::*;
use crate::noop::Noop;

fn form(warehouses: u32) -> Form {
    Form { warehouses, seed: 9, loaded: 1 }
}

#[test]
fn parts_have_each_warehouse_of_each_table_once() {
    for warehouses in [1, 2, 7, 100, 1003] {
        let parts = parts(&form(warehouses));
        for table in Table::ALL {
            let mut of: Vec<u32> =
                parts.iter().filter(|part| part.table == table).flat_map(|part| part.warehouses.clone()).collect();
            of.sort_unstable();
            let wanted: Vec<u32> = if table == Table::Item { vec![0] } else { (1..=warehouses).collect() };
            assert_eq!(of, wanted, "{table:?} of {warehouses}");
        }
    }
}

#[test]
fn what_is_left_is_about_what_is_made() {
    let left = bytes_left(&Noop::default(), &form(3)).expect("nothing can fail");
    let progress = Progress::default();
    import(&Noop::default(), &form(3), 1, &AtomicBool::new(false), &progress).expect("nothing can fail");
    let made = progress.bytes.into_inner();
    assert!(left.abs_diff(made) * 100 < made * 5, "{left} is not {made}");
}

#[test]
fn all_parts_together_have_the_bytes_of_all_rows() {
    for warehouses in [1, 7, 1003] {
        let parts: u64 = parts(&form(warehouses)).iter().map(bytes_of).sum();
        assert_eq!(bytes_of_all(&form(warehouses)), parts, "{warehouses} warehouses");
    }
}

#[test]
fn an_import_makes_all_rows_on_any_number_of_threads() {
    let made = |threads| {
        let (database, progress) = (Noop::default(), Progress::default());
        import(&database, &form(1), threads, &AtomicBool::new(false), &progress).expect("nothing can fail");
        assert_eq!(progress.parts.into_inner(), progress.parts_done.into_inner());
        (progress.rows.into_inner(), progress.bytes.into_inner())
    };
    let (rows, bytes) = made(1);
    assert_eq!(made(3), (rows, bytes));
    // The number of all rows of one warehouse and of the items, without order lines. There are 150,000 to 450,000
    // order lines.
    let others = 100_000 + 1 + 10 + 3 * 30_000 + 9_000 + 100_000;
    assert!((others + 290_000..others + 310_000).contains(&rows), "{rows} rows");
    assert!((70_000_000..90_000_000).contains(&bytes), "{bytes} bytes");
}

#[test]
fn an_import_that_is_stopped_says_so() {
    let (database, progress) = (Noop::default(), Progress::default());
    let failure = import(&database, &form(1), 2, &AtomicBool::new(true), &progress).expect_err("it was stopped");
    assert_eq!(failure.kind, "interrupted");
}
