//! Tests many clients on few threads, with sessions that have many requests under way.

use super::*;

fn shuffling<F: Fn(&[u8]) -> Result<Outcome, Failure> + Send + Sync>(depth: usize, answer: F) -> Shuffling<F> {
    Shuffling { depth, answer }
}

fn fine(_: &[u8]) -> Result<Outcome, Failure> {
    Ok(Outcome::Ok)
}

#[test]
fn exactly_so_many_operations_are_measured_however_few_threads_and_slots() {
    for (clients, workers, depth) in [(1, 1, 1), (10, 1, 3), (10, 3, 64), (100, 2, 8), (2, 5, 1)] {
        let plan = Plan { clients, workers, length: Length::Operations(3000), ..Plan::default() };
        let workload = Reads { each: u64::MAX, requests: 2 };
        let measured = run_quietly(&shuffling(depth, fine), &workload, &plan).expect("runs");
        assert_eq!(measured.operations, 3000, "{plan:?}");
        assert_eq!(measured.kind("READ").expect("reads").oks, 6000, "{plan:?}");
        assert_eq!(measured.kind("WHOLE").expect("whole operations").oks, 3000, "{plan:?}");
        assert_eq!((measured.warmed, measured.cut, measured.unsent), (0, 0, 0), "{plan:?}");
        assert_eq!(measured.cost.client_threads, workers.min(clients) as u64);
    }
}

#[test]
fn clients_do_the_same_on_many_threads_and_on_few() {
    let seen = Mutex::new(Vec::new());
    let note = |key: &[u8]| seen.lock().expect("nobody panics").push(key.to_vec());
    let take = || {
        let mut seen = std::mem::take(&mut *seen.lock().expect("nobody panicked"));
        seen.sort();
        seen
    };
    let workload = Reads { each: 100, requests: 1 };
    let blocking = Answering(|request: &Request<'_>| {
        let Request::Read { key, .. } = request else { panic!("only reads") };
        note(key);
        Ok(Outcome::Ok)
    });
    let flying = shuffling(5, |key: &[u8]| {
        note(key);
        Ok(Outcome::Ok)
    });
    let plan = Plan { clients: 12, ..Plan::default() };
    run_quietly(&blocking, &workload, &plan).expect("runs");
    let expected = take();
    for workers in [1, 2, 5, 12] {
        run_quietly(&flying, &workload, &Plan { workers, ..plan.clone() }).expect("runs");
        assert_eq!(take(), expected, "{workers} threads");
    }
}

#[test]
fn waiting_for_a_slot_counts_where_there_are_not_enough() {
    let workload = Reads { each: 10, requests: 1 };
    let enough = run_quietly(&shuffling(8, fine), &workload, &Plan { clients: 8, ..Plan::default() }).expect("runs");
    assert_eq!(enough.kinds[0].response, None);
    let few = run_quietly(&shuffling(2, fine), &workload, &Plan { clients: 8, ..Plan::default() }).expect("runs");
    let read = few.kind("READ").expect("reads");
    let (response, waited) = (read.response.as_ref(), read.waited.as_ref());
    assert_eq!(response.map(Times::count), Some(80));
    assert_eq!(waited.map(Times::count), Some(80));
    assert!(response.map(Times::mean) > Some(read.service.mean()), "someone has waited");
}

#[test]
fn a_client_that_waits_for_a_new_attempt_holds_up_no_other() {
    let (stop, others) = (AtomicBool::new(false), AtomicU64::new(0));
    let store = shuffling(2, |key: &[u8]| {
        if key == 0u64.to_be_bytes() {
            return Err(Failure::again("conflict", "another was first"));
        }
        // All other clients have to finish, although the clients outnumber the slots.
        stop.store(others.fetch_add(1, Ordering::SeqCst) == 4, Ordering::SeqCst);
        Ok(Outcome::Ok)
    });
    let hour = 3_600_000_000_000;
    let workload = Stubborn { wait_nanos: |number| if number == 0 { 3_600_000_000_000 } else { 0 } };
    let measured = run(&store, &workload, &Plan { clients: 6, ..Plan::default() }, &stop, &mut |_| {}).expect("runs");
    check_sums(&measured);
    assert_eq!((measured.operations, measured.failed, measured.retries), (5, 0, 1));
    assert!(measured.interrupted && measured.nanos < hour);
}

#[test]
fn an_open_loop_sends_each_operation_of_its_schedule() {
    let plan = Plan {
        clients: 50,
        workers: 2,
        pace: Pace::Open { per_second: 10_000.0 },
        length: Length::Operations(2_000),
        ..Plan::default()
    };
    let measured = run_quietly(&shuffling(4, fine), &Reads { each: u64::MAX, requests: 1 }, &plan).expect("runs");
    assert_eq!((measured.operations, measured.unsent), (2_000, 0));
    // Operation 1,999 is due 199.9 ms after the start.
    assert!(measured.nanos >= 199_900_000, "{}", measured.nanos);
    assert_eq!(measured.kinds[0].response.as_ref().map(Times::count), Some(2_000));
}

#[test]
fn a_schedule_that_cannot_be_kept_is_told() {
    // The plan wants a thousand operations a second, and each takes 20 ms.
    let slow = |_: &[u8]| {
        std::thread::park_timeout(Duration::from_millis(20));
        Ok(Outcome::Ok)
    };
    let plan = Plan {
        clients: 4,
        pace: Pace::Open { per_second: 1000.0 },
        length: Length::Time(Duration::from_millis(400)),
        ..Plan::default()
    };
    let workload = Reads { each: u64::MAX, requests: 1 };
    for measured in [
        run_quietly(&shuffling(4, slow), &workload, &plan).expect("runs"),
        run_quietly(&Answering(|_: &Request<'_>| slow(&[])), &workload, &plan).expect("runs"),
    ] {
        assert_eq!(measured.operations + measured.cut + measured.unsent, 400, "{measured:?}");
        assert!(measured.unsent > 200, "{}", measured.unsent);
    }
}

#[test]
fn a_lost_session_names_the_client() {
    let store = shuffling(4, |key: &[u8]| match u64::from_be_bytes(key.try_into().expect("eight bytes")) {
        3 => Err(Failure::session("gone", "the server closed the connection")),
        _ => Ok(Outcome::Ok),
    });
    let plan = Plan { clients: 6, ..Plan::default() };
    let error = run_quietly(&store, &Stubborn { wait_nanos: |_| 0 }, &plan).expect_err("a session is lost");
    assert!(error.to_string().starts_with("client 3 lost its session: the server closed"), "{error}");
}

/// A store that takes no request.
struct Closed;

impl Store for Closed {
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    fn session(&self, clock: Clock) -> Result<Session<'_>, Failure> {
        Ok(Session::Flights(Box::new(Closes(clock))))
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

struct Closes(Clock);

impl Flights for Closes {
    fn depth(&self) -> usize {
        4
    }

    fn start(&mut self, _: u32, _: &Request<'_>) -> Result<(), Failure> {
        Err(Failure::request("closed", "come tomorrow"))
    }

    fn wait(&mut self, until: Option<u64>, _: &mut dyn FnMut(Served<'_>)) -> Result<(), Failure> {
        let left = until.expect("nothing is under way").saturating_sub(self.0.nanos());
        std::thread::park_timeout(Duration::from_nanos(left));
        Ok(())
    }
}

#[test]
fn a_store_that_takes_no_request_keeps_no_run_from_ending() {
    let plan = Plan { clients: 4, length: Length::Time(Duration::from_millis(50)), ..Plan::default() };
    let error = run_quietly(&Closed, &Reads { each: u64::MAX, requests: 1 }, &plan).expect_err("nothing is done");
    assert!(matches!(error, RunError::NothingMeasured { .. }), "{error}");
    let measured = error.partial().expect("failures were counted");
    assert!(measured.failed > 0 && measured.nanos == 50_000_000, "{measured:?}");
}
