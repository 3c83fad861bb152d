//! Tests that neither a request nor a TPC-C transaction allocates, from its start until its answer.

#![allow(clippy::disallowed_types, reason = "the requests are real")]

use harness::{Clock, Fields, Opening, Request, Session, Store, Strings, Table, Target};
use kit::allocations::{Counting, Thread};
use stores::postgres::server::{Server, ServerOptions};
use stores::postgres::store::Postgres;
use tpcc::{Form, Setup, Ticket, Transaction};

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

fn server() -> Server {
    let settings = vec![("fsync".to_owned(), "off".to_owned())];
    Server::start(&ServerOptions { settings, ..ServerOptions::default() }).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn requests_allocate_nothing() {
    let server = server();
    for (connections, pipeline) in [(1, 1), (3, 1), (2, 8)] {
        let url = format!("{}&connections={connections}&pipeline={pipeline}", server.url("postgres"));
        let address = stores::postgres::Address::from_environment(&url).expect("a good address");
        let table = Table::numbered("usertable", "field", 3);
        let store = Postgres::open(address, &table, Opening::Recreate).expect("the server runs");
        let Session::Flights(mut session) = store.session(Clock::start()).expect("the server runs") else {
            panic!("it has flights")
        };
        let mut record = Strings::new();
        (0..3).for_each(|_| record.push(&[b'v'; 100]));
        let mut keys = Strings::new();
        (0..20_u8).for_each(|key| keys.push(&[b'a' + key]));
        let mut free: Vec<u32> = (0..session.depth() as u32).collect();
        let mut round = |requests: usize| {
            for number in 0..requests {
                let key = keys.get(number % 20).expect("there are twenty");
                let fields = Fields::One(number as u32 % 3);
                let request = match number / 20 % 6 {
                    0 => Request::Insert { key, record: &record },
                    1 => Request::Read { key, fields: Fields::All },
                    2 => Request::Scan { start: key, rows: 10, fields },
                    3 => Request::ReadMany { keys: &keys, fields },
                    4 => Request::Update { key, field: 1, value: key },
                    _ => Request::Delete { key },
                };
                // Later requests use the same keys, perhaps over another connection, and must not run at the same
                // time. So this waits for all slots.
                let wanted = if number % 20 == 0 { session.depth() } else { 1 };
                while free.len() < wanted {
                    let waited = session.wait(None, &mut |served| {
                        assert!(served.result.is_ok(), "{served:?}");
                        free.push(served.slot);
                    });
                    waited.expect("the session lives");
                }
                let slot = free.pop().expect("one is free");
                session.start(slot, &request).expect("the session lives");
            }
        };
        round(2_400);
        let before = Thread::so_far().count;
        round(2_400);
        assert_eq!(Thread::so_far().count - before, 0, "{connections} connections, {pipeline} requests on each");
    }
}

#[test]
fn transactions_of_tpcc_allocate_nothing() {
    let server = server();
    for connections in [1, 3] {
        let target = Target::parse(&server.url("postgres")).expect("it is a target");
        let setup = Setup { opening: Opening::Existing, connections: Some(connections) };
        let simulate = stores::postgres::TPCC.simulate.expect("there is one");
        let database = simulate(&target, &setup).unwrap_or_else(|failure| panic!("{failure}"));
        database.create(&Form { warehouses: 2, seed: 1, loaded: 0 }).expect("it makes nothing");
        let Session::Flights(mut session) = database.session(Clock::start()).expect("the server runs") else {
            panic!("it has flights")
        };
        let mut free: Vec<u32> = (0..connections as u32).collect();
        let mut round = |seeds: std::ops::Range<u64>| {
            for seed in seeds {
                let transaction = Transaction::ALL[seed as usize % 5];
                let ticket = Ticket { seed, warehouse: 1, district: 1, transaction, is_even: false };
                while free.is_empty() {
                    let waited = session.wait(None, &mut |served| {
                        assert!(served.result.is_ok(), "{served:?}");
                        free.push(served.slot);
                    });
                    waited.expect("the session lives");
                }
                let slot = free.pop().expect("one is free");
                session.start(slot, &Request::Transaction(&ticket.to_bytes())).expect("the session lives");
            }
        };
        round(0..1_000);
        let before = Thread::so_far().count;
        round(1_000..2_000);
        assert_eq!(Thread::so_far().count - before, 0, "{connections} connections");
    }
}
