//! What every database of TPC-C must do, as a test that is run for each database. The test panics if the database
//! fails it.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]

use crate::check::{After, check};
use crate::database::{Database, Form, Setup};
use crate::import::{Progress, import, parts};
use crate::input::{Drawing, Ticket, Transaction};
use crate::random::Stream;
use crate::rules::{Mode, Rules};
use crate::schema::Table;
use crate::terminal::Terminals;
use harness::{Clock, Flights, Length, Opening, Outcome, Plan, Request, Session};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// The number of warehouses in the test. With two warehouses, some lines and some payments involve both of them.
const WAREHOUSES: u32 = 2;

/// A checksum of the screens of all transactions that the test makes one after the other. Every database must show
/// the same screens, so it is the same for every database.
const SCREENS: u64 = 12_899_003_943_494_959_094;

/// Runs the test on the database that `open` opens. The database must not have been created yet.
pub fn conforms(open: &dyn Fn(&Setup) -> Box<dyn Database>) {
    let setup = |opening| Setup { opening, connections: Some(4) };
    let form = Form { warehouses: WAREHOUSES, seed: 20, loaded: 1_700_000_000_000_000 };
    let database = open(&setup(Opening::OrCreate));
    assert_eq!(database.form().expect("it can be asked"), None, "it was not made yet");
    database.create(&form).expect("it can be made");
    loads(&*database, &form);
    is_consistent(&*database, &form, After::Import);
    database.close().expect("it closes");

    let database = open(&setup(Opening::Existing));
    assert_eq!(database.form().expect("it can be asked"), Some(form), "it keeps what it was made with");
    let screens = one_after_the_other(&*database, &form);
    is_consistent(&*database, &form, After::Run);
    side_by_side(&*database, &form);
    is_consistent(&*database, &form, After::Run);
    database.settle().expect("it settles");
    database.close().expect("it closes");

    let database = open(&setup(Opening::Existing));
    is_consistent(&*database, &form, After::Run);
    database.clean().expect("it can be cleaned");
    assert_eq!(database.form().expect("it can be asked"), None, "nothing is left");
    database.close().expect("it closes");
    assert_eq!(screens, SCREENS, "other screens than those of the other databases");
}

/// Checks that an interrupted import can go on, and that a part that was not finished leaves no rows.
fn loads(database: &dyn Database, form: &Form) {
    let items = parts(form).into_iter().find(|part| part.table == Table::Item).expect("there are items");
    assert!(!database.is_loaded(&items).expect("it can be asked"));
    drop(database.part_loader(&items).expect("it can be loaded"));
    assert!(!database.is_loaded(&items).expect("it can be asked"), "a loader that was dropped has loaded nothing");
    let progress = Progress::default();
    let stopped = import(database, form, 2, &AtomicBool::new(true), &progress).expect_err("it is stopped");
    assert_eq!(stopped.kind, "interrupted");
    for _ in 0..2 {
        let progress = Progress::default();
        import(database, form, 2, &AtomicBool::new(false), &progress).expect("it can be loaded");
        database.make_indexes().expect("indexes can be made, and made twice");
    }
    assert!(database.is_loaded(&items).expect("it can be asked"));
    database.settle().expect("it settles");
}

fn is_consistent(database: &dyn Database, form: &Form, after: After) {
    let view = database.view().expect("it can be read");
    let checked = check(&*view, form, 2, after, &AtomicBool::new(false), &|_| {}).expect("it can be read");
    assert!(checked.is_consistent(), "{:#?}", checked.findings);
    assert!(checked.rows > 1_000_000, "{} rows", checked.rows);
}

/// Makes a transaction and returns its answer. There must be exactly one answer.
fn ask(session: &mut dyn Flights, ticket: &Ticket) -> (Outcome, Vec<u8>) {
    session.start(0, &Request::Transaction(&ticket.to_bytes())).expect("it takes a transaction");
    let mut answer = None;
    while answer.is_none() {
        let mut served = |served: harness::Served<'_>| {
            let outcome = served.result.unwrap_or_else(|failure| panic!("{ticket:?}: {failure}"));
            answer = Some((outcome, served.reply.record().get(0).unwrap_or_default().to_vec()));
        };
        session.wait(None, &mut served).expect("the session stays");
    }
    answer.expect("it was answered")
}

/// Makes transactions, each of which depends on the transactions before it. Returns a sum over their screens.
fn one_after_the_other(database: &dyn Database, form: &Form) -> u64 {
    let Session::Flights(mut session) = database.session(Clock::start()).expect("there is a session") else {
        panic!("a session of TPC-C has transactions under way");
    };
    let (mut sum, mut outcomes) = (Stream::of(0, &[]), BTreeMap::new());
    let mut stream = Stream::of(7, &[]);
    for number in 0..600_u32 {
        let transaction = Transaction::ALL[number as usize % 5];
        let (warehouse, district) = (number % WAREHOUSES + 1, (number / 5 % 10) as u8 + 1);
        let ticket = Ticket { seed: stream.word(), warehouse, district, transaction, is_even: false };
        let (outcome, screen) = ask(&mut *session, &ticket);
        assert!(!screen.is_empty(), "{ticket:?} shows nothing");
        let words: Vec<u64> = screen.iter().map(|byte| u64::from(*byte)).collect();
        sum = Stream::of(sum.word(), &words);
        *outcomes.entry((transaction, outcome == Outcome::Ok)).or_insert(0) += 1;
    }
    let ticket = Ticket {
        seed: rolled_back(form),
        warehouse: 1,
        district: 1,
        transaction: Transaction::NewOrder,
        is_even: false,
    };
    assert_eq!(ask(&mut *session, &ticket).0, Outcome::RolledBack, "an item is missing");
    for transaction in Transaction::ALL {
        assert!(outcomes[&(transaction, true)] >= 110, "{outcomes:?}");
    }
    sum.word()
}

/// Finds a seed whose order must be rolled back.
fn rolled_back(form: &Form) -> u64 {
    let drawing = Drawing::of(form);
    let is_it = |seed: &u64| {
        let ticket =
            Ticket { seed: *seed, warehouse: 1, district: 1, transaction: Transaction::NewOrder, is_even: false };
        let crate::Input::NewOrder(order) = ticket.draw(&drawing, 0) else { return false };
        order.is_rolled_back()
    };
    (0..).find(is_it).expect("one order in a hundred is")
}

/// Runs the terminals of two threads at the same time. The two threads use the same districts.
fn side_by_side(database: &dyn Database, form: &Form) {
    let rules = Rules { mode: Mode::NoWait, drawing: Drawing::of(form) };
    let terminals = Terminals { rules: &rules, warehouses: 1..=WAREHOUSES, seed: 5 };
    let plan = Plan { clients: 20, workers: 2, length: Length::Operations(1000), ..Plan::default() };
    let ran = harness::run(database, &terminals, &plan, &AtomicBool::new(false), &mut |_| {});
    let measured = ran.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(measured.failed, 0, "{:?}", measured.failures);
    assert!(measured.operations >= 1000, "{} transactions", measured.operations);
}
