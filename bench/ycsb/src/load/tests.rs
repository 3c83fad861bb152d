use super::Load;
use crate::properties::Properties;
use crate::settings::Settings;
use harness::{Client, Extra, Failure, Next, Outcome, Reply, Request, Rows, Strings, Workload};

fn load(text: &str) -> Load {
    let mut properties = Properties::new();
    text.split_whitespace().for_each(|pair| properties.set_argument(pair).expect("a property"));
    Load::new(&Settings::new(&properties, &|_| Err("no file".to_owned())).expect("good values"), 5)
}

fn keys(load: &Load, clients: usize) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for number in 0..clients {
        let mut client = load.client(number, clients);
        while client.begin() {
            let (_, Request::Insert { key, record }) = client.request() else { panic!("a load inserts") };
            assert_eq!((record.len(), record.bytes()), (10, 1000));
            keys.push(key.to_vec());
        }
    }
    keys
}

#[test]
fn clients_load_every_record_once() {
    let load = load("recordcount=1000 insertstart=100 insertcount=333 insertorder=ordered zeropadding=4");
    let expected: Vec<Vec<u8>> = (100..433).map(|number| format!("user{number:04}").into_bytes()).collect();
    assert_eq!(keys(&load, 1), expected, "one client loads them in order");
    for clients in [2, 7, 400] {
        let mut keys = keys(&load, clients);
        keys.sort();
        assert_eq!(keys, expected, "{clients} clients");
    }
}

#[test]
fn records_come_in_the_order_of_keys() {
    for set in [
        "recordcount=5000",
        "recordcount=5000 zeropadding=19",
        "recordcount=5000 zeropadding=30",
        "recordcount=2000 insertorder=ordered",
        "recordcount=2000 insertorder=ordered zeropadding=2",
        "recordcount=2000 insertorder=ordered zeropadding=12",
    ] {
        let load = load(set);
        let (mut rows, mut key, mut record) = (load.in_order(), Vec::new(), Strings::new());
        let mut seen = Vec::new();
        while rows.next_row(&mut key, &mut record) {
            assert_eq!(record.len(), 10);
            assert!(seen.last().is_none_or(|before| *before < key), "{set}: {}", String::from_utf8_lossy(&key));
            seen.push(key.clone());
        }
        let mut expected = keys(&load, 1);
        expected.sort();
        assert_eq!(seen, expected, "{set}");
    }
}

#[test]
fn an_insert_that_fails_is_tried_again_as_often_as_is_set() {
    let mut client =
        load("recordcount=2 core_workload_insertion_retry_limit=2 core_workload_insertion_retry_interval=10")
            .client(0, 1);
    let failure = Failure::again("busy", "");
    let mut retries = 0;
    let mut waits = Vec::new();
    for _ in 0..2 {
        assert!(client.begin());
        loop {
            let mut note = |_, _, _| ();
            let mut extra = Extra::new(&mut note, &mut retries);
            match client.served(Err(&failure), &Reply::new(), &mut extra) {
                Next::Wait(nanos) => waits.push(nanos),
                next => break assert_eq!(next, Next::Failed),
            }
        }
    }
    assert_eq!((retries, waits.len()), (4, 4));
    assert!(waits.iter().all(|nanos| (8_000_000_000..12_000_000_000).contains(nanos)), "{waits:?}");
    assert!(waits[0] != waits[1], "they do not come back together");
    assert!(!client.begin());
}

#[test]
fn a_load_says_that_it_went_well() {
    let mut client = load("recordcount=1").client(0, 1);
    assert!(client.begin());
    let (mut note, mut retries) = (|_, _, _| (), 0);
    for outcome in [Outcome::Ok, Outcome::Batched] {
        let next = client.served(Ok(outcome), &Reply::new(), &mut Extra::new(&mut note, &mut retries));
        assert_eq!(next, Next::Done);
    }
}
