use super::session::OfTransaction;
use super::{Larch, SCHEME, Tables};
use ::tpcc::conformance::conforms;
use ::tpcc::import::{Progress, import};
use ::tpcc::input::{Payment, Who};
use ::tpcc::ordered::{Kept, Ordered as _, RowsOf};
use ::tpcc::screen::Screen;
use ::tpcc::transactions::Work;
use ::tpcc::{Database as _, Form, Input, Row, Setup, Table, about};
use harness::conformance::Scratch;
use harness::{Opening, Store as _, Target};
use std::sync::atomic::AtomicBool;

#[test]
fn larch_conforms() {
    for options in [
        "?durability=synced&cache=64MiB&write_buffer=4MiB",
        "?durability=buffered&cache=2MiB&write_buffer=2MiB",
        "?durability=buffered&cache=64MiB&write_buffer=2MiB&counters=merge",
    ] {
        let scratch = Scratch::new("larch-tpcc");
        let text = format!("larch:{}{options}", scratch.path().join("db").display());
        let target = Target::parse(&text).expect("it is a target");
        conforms(&|setup| (SCHEME.open)(&target, setup).unwrap_or_else(|failure| panic!("{failure}")));
    }
}

/// Carries out a payment of a customer up to its commit.
fn pay<'t>(larch: &Larch, tables: &'t Tables, customer: u32) -> OfTransaction<'t> {
    let mut kept = Kept::default();
    let tx = larch.db.begin().expect("it is open");
    let mut rows = RowsOf::new(OfTransaction { tx, tables }, &mut kept);
    let payment = Payment {
        warehouse: 1,
        district: 2,
        customer_warehouse: 1,
        customer_district: 3,
        customer: Who::Number(customer),
        amount: 700,
        paid: 5,
        unique: customer.into(),
    };
    Work::default().run(&mut rows, &Input::Payment(payment), &mut Screen::default()).expect("it can be carried out");
    rows.store
}

#[test]
fn payments_in_one_district_do_not_conflict_if_they_add_to_counters() {
    for (counters, other, paid) in [("put", "merge", 700), ("merge", "put", 1400)] {
        let scratch = Scratch::new("larch-tpcc-counters");
        let place = scratch.path().join("db");
        let at = |options: &str, opening| {
            let target = Target::parse(&format!("larch:{}{options}", place.display())).expect("it is a target");
            Larch::open(&target, &Setup { opening, connections: None })
        };
        let larch = at(&format!("?counters={counters}"), Opening::OrCreate).expect("it is new");
        let form = Form { warehouses: 1, seed: 3, loaded: 1 };
        larch.create(&form).expect("it is new");
        import(&larch, &form, 2, &AtomicBool::new(false), &Progress::default()).expect("it can be loaded");
        larch.make_indexes().expect("there is room");
        let tables = larch.tables().expect("they are there");
        let (one, two) = (pay(&larch, &tables, 1), pay(&larch, &tables, 2));
        one.commit().expect("it is the first");
        assert_eq!(two.commit().is_ok(), paid == 1400, "counters={counters}");
        let view = larch.view().expect("it can be read");
        let (mut of_warehouse, mut of_districts) = (0, 0);
        view.rows(Table::Warehouse, 1, &mut |row| {
            if let Row::Warehouse(row) = row {
                of_warehouse += row.year_to_date;
            }
            Ok(())
        })
        .expect("it can be read");
        view.rows(Table::District, 1, &mut |row| {
            if let Row::District(row) = row {
                of_districts += row.year_to_date;
            }
            Ok(())
        })
        .expect("it can be read");
        assert_eq!((of_warehouse, of_districts), (30_000_000 + paid, 30_000_000 + paid), "counters={counters}");
        drop((view, tables));
        Box::new(larch).close().expect("it ends in good order");

        // Without the option, a database stays as it was made. With the other value, it is refused.
        let refused = at(&format!("?counters={other}"), Opening::Existing).err().expect("it was made otherwise");
        assert!(refused.to_string().contains(&format!("was made with counters={counters}")), "{refused}");
        let larch = at("", Opening::Existing).expect("it is there");
        assert_eq!(larch.tables().expect("they are there").sums.is_some(), counters == "merge");
        larch.clean().expect("it was made");
        let names = larch.db.tables();
        Box::new(larch).close().expect("it ends in good order");
        assert_eq!(names, [about::TABLE]);
    }
}

#[test]
fn tables_of_others_are_neither_taken_nor_removed_and_half_a_database_is() {
    let scratch = Scratch::new("larch-tpcc-others");
    let place = scratch.path().join("db");
    let names = || larch::Database::open(&place).expect("it is closed").tables();
    let form = Form { warehouses: 1, seed: 1, loaded: 1 };
    let open = |opening| {
        let target = Target::parse(&format!("larch:{}", place.display())).expect("it is a target");
        (SCHEME.open)(&target, &Setup { opening, connections: None }).unwrap_or_else(|failure| panic!("{failure}"))
    };
    {
        let db = larch::Database::open(&place).expect("a new directory");
        db.table("stock").and_then(|stock| stock.insert("a", "1")).expect("a table");
        db.close().expect("it ends in good order");
    }
    let database = open(Opening::OrCreate);
    assert_eq!(database.create(&form).expect_err("there is a table of this name").kind, "other_tables");
    assert_eq!(database.clean().expect_err("nothing was made").kind, "no_store");
    database.close().expect("it ends in good order");
    assert!(names().contains(&"stock".to_owned()), "{:?}", names());

    // What a crash in the middle of `create` leaves behind: the form and some of the tables.
    {
        let db = larch::Database::open(&place).expect("it is closed");
        db.drop_table("stock").expect("it is there");
        let about = db.table(about::TABLE).expect("a table");
        about.insert(about::form_key(), about::encode_form(&form)).expect("there is room");
        db.table("warehouse").and_then(|table| table.insert("a", "1")).expect("a table");
        db.table("mine").expect("a table");
        db.close().expect("it ends in good order");
    }
    let database = open(Opening::Existing);
    database.clean().expect("what was made is removed");
    database.close().expect("it ends in good order");
    assert_eq!(names(), ["mine", about::TABLE]);
}
