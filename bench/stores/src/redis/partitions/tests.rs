use super::*;
use crate::redis::server::tests::shared;

#[test]
fn redis_conforms() {
    kv::conformance::check(&SCHEME, &shared().target(4));
}

#[test]
fn a_scan_reads_partitions_of_more_rows_than_a_page_has() {
    let target = Target::parse(&shared().target(5)).expect("a good target");
    let setup = Setup { page_rows: 3, ..Setup::default() };
    let database = (SCHEME.open)(&target, &setup).expect("it is made");
    let Session::Flights(mut session) = database.session(Clock::start()).expect("a session") else { panic!() };
    let mut ask = |request: PartitionRequest<'_>| {
        let mut rows = None;
        session.start(0, &Request::Partition(request)).expect("it is taken");
        while rows.is_none() {
            session.wait(None, &mut |served| rows = Some(served.reply.rows())).expect("it is answered");
        }
        rows.expect("it was answered")
    };
    for (pk, rows) in [(-5, 1), (0, 3), (7, 10)] {
        for ck in 0..rows {
            let mut values = harness::Strings::new();
            values.push(b"v");
            ask(PartitionRequest::Insert { pk, cks: &[ck], values: &values });
        }
    }
    for parts in [1, 2, 5] {
        let rows: u64 = (0..parts).map(|part| ask(PartitionRequest::Scan { part, parts })).sum();
        assert_eq!(rows, 14, "{parts} parts");
    }
    drop(session);
    database.drop_table().expect("it is dropped");
}

#[test]
fn a_table_that_was_not_written_or_has_other_rows_is_refused() {
    let target = Target::parse(&shared().target(6)).expect("a good target");
    let open = |opening, content| {
        let opened = (SCHEME.open)(&target, &Setup { opening, content, ..Setup::default() });
        opened.map(|_| ()).map_err(|failure| failure.kind)
    };
    assert_eq!(open(Opening::Existing, Content::Values), Err("no_store"));
    assert_eq!(open(Opening::OrCreate, Content::Values), Ok(()));
    assert_eq!(open(Opening::Existing, Content::Values), Ok(()));
    assert_eq!(open(Opening::OrCreate, Content::Counters), Err("other_data"));
}

#[test]
fn keys_sort_as_their_bytes() {
    let keys = [i64::MIN, -256, -1, 0, 1, 65_536, i64::MAX];
    assert!(keys.map(bytes_of).is_sorted());
    for key in keys {
        assert_eq!(key_of(&bytes_of(key)).expect("eight bytes"), key);
    }
    assert!(key_of(b"short").is_err());
}
