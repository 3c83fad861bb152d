//! Tests of TPC-C on a real server.

use super::*;
use crate::postgres::server::tests::shared;
use ::tpcc::check::{After, check};
use ::tpcc::conformance::conforms;
use ::tpcc::import::{Progress, import};
use ::tpcc::{Drawing, Input, Ticket, Transaction};
use harness::{Flights, Harm, Opening, Outcome, Request};
use std::sync::atomic::AtomicBool;

/// Opens a session of the superuser in a database.
fn connection(database: &str) -> Connection {
    let address =
        crate::postgres::Address::parse(&shared().url(database), |_| None).expect("our own address is a good one");
    Connection::open(&address).expect("it runs")
}

/// Creates an empty database on the shared server, and returns it as a target with `options`.
fn fresh(name: &str, options: &str) -> Target {
    connection("postgres").query(&format!("CREATE DATABASE {name}")).expect("the superuser may");
    let url = format!("{}&synchronous_commit=off{options}", shared().url(name));
    Target::parse(&url).expect("it is a target")
}

const SETUP: Setup = Setup { opening: Opening::OrCreate, connections: Some(2) };
const FORM: Form = Form { warehouses: 1, seed: 20, loaded: 1_700_000_000_000_000 };

fn opened(target: &Target) -> Box<dyn ::tpcc::Database> {
    (POSTGRES.open)(target, &SETUP).unwrap_or_else(|failure| panic!("{failure}"))
}

fn kind_of<T>(result: Result<T, Failure>) -> &'static str {
    result.err().expect("it fails").kind
}

/// Whether a table is there.
fn has_table(database: &str, name: &str) -> bool {
    is_true(&mut connection(database), &tables::is_there(name)).expect("it can be asked")
}

#[test]
fn it_conforms_at_every_isolation_level_in_both_forms_and_however_it_was_loaded() {
    for (name, options) in [
        ("tpcc_serializable", ""),
        ("tpcc_repeatable", "&isolation=repeatable_read&load=insert"),
        ("tpcc_committed", "&isolation=read_committed"),
        ("tpcc_functions", "&functions=1"),
        ("tpcc_functions_committed", "&functions=1&isolation=read_committed"),
    ] {
        let target = fresh(name, options);
        conforms(&|setup| (POSTGRES.open)(&target, setup).unwrap_or_else(|failure| panic!("{options}: {failure}")));
        for table in tables::all_names() {
            assert!(!has_table(name, table), "{options}: clean has left {table}");
        }
    }
}

fn ticket(transaction: Transaction, seed: u64) -> Ticket {
    Ticket { seed, warehouse: 1, district: 1, transaction, is_even: false }
}

fn start(session: &mut dyn Flights, ticket: &Ticket) {
    session.start(0, &Request::Transaction(&ticket.to_bytes())).expect("it takes a transaction");
}

/// Waits for the session's only answer. Returns its result and the terminal's screen.
fn answer(session: &mut dyn Flights) -> (Result<Outcome, Failure>, Vec<u8>) {
    let mut answer = None;
    while answer.is_none() {
        let mut served = |served: harness::Served<'_>| {
            let screen = served.reply.record().get(0).unwrap_or_default().to_vec();
            answer = Some((served.result, screen));
        };
        session.wait(None, &mut served).expect("the session stays");
    }
    answer.expect("it was answered")
}

fn session(database: &dyn ::tpcc::Database) -> Box<dyn Flights + '_> {
    let Session::Flights(session) = database.session(Clock::start()).expect("there is a session") else {
        panic!("a session of TPC-C has transactions under way");
    };
    session
}

#[test]
fn a_transaction_that_conflicts_changes_nothing_and_may_be_tried_again() {
    let name = "tpcc_conflicts";
    let database = opened(&fresh(name, ""));
    database.create(&FORM).expect("it can be made");
    import(&*database, &FORM, 2, &AtomicBool::new(false), &Progress::default()).expect("it can be loaded");
    database.make_indexes().expect("there are rows");
    database.settle().expect("it settles");
    let mut session = session(&*database);
    let (mut other, mut observer) = (connection(name), connection(name));
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    // A payment waits for the lock in its only statement. An order has begun a transaction before it waits.
    for (transaction, rows) in [
        (Transaction::Payment, "UPDATE warehouse SET w_tax = w_tax"),
        (Transaction::NewOrder, "UPDATE district SET d_tax = d_tax"),
        (Transaction::Delivery, "UPDATE orders SET o_carrier_id = o_carrier_id WHERE o_id = 2101"),
    ] {
        other.query(&format!("BEGIN; {rows}")).expect("it is SQL");
        let ticket = ticket(transaction, 1);
        start(&mut *session, &ticket);
        session.wait(Some(0), &mut |_| panic!("it waits for the other")).expect("the session stays");
        while observer.value(waits).expect("it is counted") == "0" {}
        other.query("COMMIT").expect("it is SQL");
        let (result, screen) = answer(&mut *session);
        let failure = result.expect_err("the other was first");
        assert_eq!((failure.kind, failure.harm), ("serialization_failure", Harm::Again), "{transaction:?}");
        assert!(screen.is_empty(), "what failed shows nothing");
        start(&mut *session, &ticket);
        let (result, screen) = answer(&mut *session);
        assert_eq!(result.expect("nothing is in its way"), Outcome::Ok);
        assert!(!screen.is_empty());
    }
    drop(session);
    let view = database.view().expect("it can be read");
    let checked = check(&*view, &FORM, 2, After::Run, &AtomicBool::new(false), &|_| {}).expect("it can be read");
    assert!(checked.is_consistent(), "{:#?}", checked.findings);
}

#[test]
fn a_simulation_answers_all_transactions_without_tables() {
    let name = "tpcc_simulated";
    let simulate = POSTGRES.simulate.expect("there is one");
    let database = simulate(&fresh(name, ""), &SETUP).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(database.form().expect("it can be asked"), None);
    database.create(&FORM).expect("it can be made");
    assert!(database.settings().iter().any(|setting| setting.value.contains("simulated")), "a result says so");
    let mut session = session(&*database);
    let drawing = Drawing::of(&FORM);
    let mut rolled_back = 0;
    for seed in 0..500 {
        let ticket = ticket(Transaction::ALL[seed as usize % 5], seed);
        start(&mut *session, &ticket);
        let (result, screen) = answer(&mut *session);
        let is_missing = match ticket.draw(&drawing, 0) {
            Input::NewOrder(order) => order.is_rolled_back(),
            _ => false,
        };
        rolled_back += u32::from(is_missing);
        let expected = if is_missing { Outcome::RolledBack } else { Outcome::Ok };
        assert_eq!(result.unwrap_or_else(|failure| panic!("{ticket:?}: {failure}")), expected, "{ticket:?}");
        assert!(!screen.is_empty(), "{ticket:?} shows nothing");
    }
    assert!(rolled_back > 0, "some orders are rolled back");
    assert_eq!(kind_of(database.view()), "simulated");
    for table in tables::all_names() {
        assert!(!has_table(name, table), "it has made {table}");
    }
}

#[test]
fn tables_of_others_stay_and_those_of_ours_are_removed_after_a_crash_too() {
    let name = "tpcc_foreign";
    let database = opened(&fresh(name, ""));
    let mut other = connection(name);
    for table in ["stock", tables::PARTS] {
        other.query(&format!("CREATE TABLE {table} (theirs int)")).expect("it is SQL");
        assert_eq!(kind_of(database.create(&FORM)), "other_tables");
        assert_eq!(kind_of(database.clean()), "no_store");
        assert!(has_table(name, table) && !has_table(name, tables::ABOUT));
        other.query(&format!("DROP TABLE {table}")).expect("it is SQL");
    }
    other.query(&format!("CREATE TABLE {} (theirs int)", tables::ABOUT)).expect("it is SQL");
    assert_eq!(kind_of(database.clean()), "undefined_column");
    other.query(&format!("DROP TABLE {}", tables::ABOUT)).expect("it is SQL");

    database.create(&FORM).expect("nothing is in its way");
    assert_eq!(kind_of(database.create(&FORM)), "other_tables");
    // An interrupted `clean` leaves some of the tables.
    other.query("DROP TABLE warehouse; DROP TABLE stock").expect("it is SQL");
    assert_eq!(database.form().expect("it can be asked"), Some(FORM));
    database.clean().expect("what is left can be removed");
    for table in tables::all_names() {
        assert!(!has_table(name, table), "clean has left {table}");
    }
}

#[test]
fn a_target_says_how_and_nothing_that_does_not_hold() {
    let options = |text: &str| {
        let target = Target::parse(text).expect("it is a target");
        Options::of(&target, &dialect::COCKROACH, |name| (name == "USER").then(|| "ann".to_owned()))
    };
    let plain = options("cockroach://h/d").expect("it is a good one");
    assert_eq!(plain.address.place.to_string(), "h:26257");
    assert_eq!(
        (plain.isolation.sql(), plain.load, plain.form),
        ("serializable", Load::Copy, options::Form::Statements)
    );
    let all = options("cockroach://h:1/d?isolation=read_committed&load=insert&functions=1&work_mem=1MB");
    let all = all.expect("it is a good one");
    assert_eq!((all.isolation.sql(), all.load, all.form), ("read committed", Load::Insert, options::Form::Functions));
    assert_eq!(all.address.settings.last(), Some(&("work_mem".to_owned(), "1MB".to_owned())));
    let settings = all.for_transactions.settings;
    assert!(settings.contains(&("default_transaction_isolation".to_owned(), "read committed".to_owned())));
    assert!(settings.contains(&("work_mem".to_owned(), "1MB".to_owned())));
    assert!(!settings.iter().any(|(name, _)| name == "isolation"), "the server does not know it");
    for (text, why) in [
        ("isolation=strict", "none of serializable, repeatable_read, read_committed"),
        ("load=tape", "none of copy, insert"),
        ("functions=yes", "none of 0, 1"),
        ("pipeline=2", "one transaction at a time"),
        ("counters=merge", "an option of larch: alone"),
        ("default_transaction_isolation=serializable", "say isolation="),
    ] {
        let failure = options(&format!("cockroach://h/d?{text}")).expect_err("it is refused");
        assert!(failure.text.contains(why), "{text}: {failure}");
    }
}
