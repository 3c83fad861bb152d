//! The closed loop over sessions that block.

use super::*;

#[test]
fn exactly_so_many_operations_are_measured_however_many_clients() {
    for clients in [1, 3, 7] {
        let plan = Plan { clients, length: Length::Operations(1000), ..Plan::default() };
        let measured = run_quietly(&Noop::waiting(), &Reads { each: u64::MAX, requests: 1 }, &plan).expect("runs");
        assert_eq!(measured.operations, 1000, "{clients} clients");
        let read = measured.kind("READ").expect("reads");
        assert_eq!((read.oks, read.service.count()), (1000, 1000), "{clients} clients");
        assert_eq!((measured.failed, measured.warmed, measured.cut), (0, 0, 0), "{clients} clients");
    }
}

#[test]
fn a_load_ends_when_no_client_has_an_operation_left() {
    let plan = Plan { clients: 3, ..Plan::default() };
    let measured = run_quietly(&Noop::waiting(), &Reads { each: 50, requests: 2 }, &plan).expect("runs");
    assert_eq!(measured.operations, 150);
    assert_eq!(measured.kind("READ").expect("reads").oks, 300);
    assert_eq!(measured.kind("WHOLE").expect("whole operations").service.count(), 150);
}

#[test]
fn clients_do_the_same_whatever_the_store_does() {
    let operations_of = |fail_every: u64| {
        let seen = Mutex::new(Vec::new());
        let store = Answering(|request: &Request<'_>| {
            let Request::Read { key, .. } = request else { panic!("only reads") };
            let mut seen = seen.lock().expect("nobody panics");
            seen.push(key.to_vec());
            match (seen.len() as u64).is_multiple_of(fail_every) {
                true => Err(Failure::request("now_and_then", "it is told to")),
                false => Ok(Outcome::Ok),
            }
        });
        let plan = Plan { clients: 4, ..Plan::default() };
        run_quietly(&store, &Reads { each: 100, requests: 1 }, &plan).expect("runs");
        let mut seen = seen.into_inner().expect("nobody panicked");
        seen.sort();
        seen
    };
    assert_eq!(operations_of(u64::MAX), operations_of(3));
}
