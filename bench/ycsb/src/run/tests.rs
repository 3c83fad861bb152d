use super::{Run, RunClient};
use crate::properties::Properties;
use crate::random::Random;
use crate::settings::Settings;
use crate::vectors::{SUM_FACTOR, named};
use harness::{Client, Extra, Failure, Fields, Kind, Next, Outcome, Reply, Request, Share, Workload};
use std::collections::BTreeSet;

fn settings(text: &str) -> Settings {
    let mut properties = Properties::new();
    text.split_whitespace().for_each(|pair| properties.set_argument(pair).expect("a property"));
    Settings::new(&properties, &|_| Err("no file".to_owned())).expect("good values")
}

/// A request in the format of the vectors. Names of fields begin with `prefix`.
fn line(request: &Request<'_>, prefix: &str, of: usize) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("keys are text");
    let field = |field: u32| if of == 1 { "*".to_owned() } else { format!("{prefix}{field}") };
    let fields = |fields: Fields| match fields {
        Fields::All => "*".to_owned(),
        Fields::One(one) => field(one),
    };
    match request {
        Request::Read { key, fields: which } => format!("READ {} {}", text(key), fields(*which)),
        Request::Scan { start, rows, fields: which } => format!("SCAN {} {rows} {}", text(start), fields(*which)),
        Request::Insert { key, .. } => format!("INSERT {} *", text(key)),
        Request::Replace { key, .. } => format!("UPDATE {} *", text(key)),
        Request::Update { key, field: one, .. } => format!("UPDATE {} {}", text(key), field(*one)),
        Request::ReadMany { .. } | Request::Delete { .. } | Request::Partition(_) | Request::Transaction(_) => {
            panic!("the original has no such request")
        }
    }
}

/// Answers `client` with `answer` until its operation is over. The client's notes are passed to `note`.
fn serve(
    client: &mut RunClient,
    mut answer: impl FnMut(Kind, &Request<'_>, &mut Reply) -> Result<Outcome, Failure>,
    mut note: impl FnMut(Kind, Result<Outcome, &'static str>),
) -> Next {
    let mut retries = 0;
    let mut note = |kind, _nanos, result| note(kind, result);
    loop {
        let mut reply = Reply::new();
        let (kind, request) = client.request();
        let result = answer(kind, &request, &mut reply);
        let mut extra = Extra::new(&mut note, &mut retries);
        match client.served(result.as_ref().copied(), &reply, &mut extra) {
            Next::More => {}
            over => return over,
        }
    }
}

#[test]
fn operations_are_those_of_java() {
    for case in named(include_str!("../../vectors/traces.txt"), "trace") {
        let set = case.text("set");
        let settings = settings(&format!("{set} dataintegrity=true"));
        let (prefix, of) = (settings.records.field_prefix.clone(), settings.records.fields as usize);
        let mut client = Run::new(&settings, 0).client(0, 1);
        client.hand.random = Random::with_state(case.get("seed"));
        let mut sum = 0_u64;
        for index in 0..case.get::<usize>("count") {
            assert!(client.begin());
            let mut lines = Vec::new();
            let answer = |_, request: &Request<'_>, _: &mut Reply| {
                lines.push(line(request, &prefix, of));
                Ok(Outcome::Ok)
            };
            serve(&mut client, answer, |_, _| ());
            let lines = lines.join("; ");
            if let Some(expected) = case.lines.get(index) {
                assert_eq!(lines, *expected, "operation {index} of {set}");
            }
            sum = lines.bytes().fold(sum, |sum, byte| sum.wrapping_mul(SUM_FACTOR).wrapping_add(u64::from(byte)));
        }
        assert_eq!(format!("{sum:016x}"), case.text("sum"), "{set}");
    }
}

#[test]
fn values_do_not_change_which_keys_are_drawn() {
    let keys = |more: &str| {
        let workload = Run::new(&settings(&format!("recordcount=1000 requestdistribution=zipfian {more}")), 7);
        let mut client = workload.client(3, 10);
        (0..1000)
            .map(|_| {
                assert!(client.begin());
                line(&client.request().1, "field", 10)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(keys("fieldlength=10"), keys("fieldlength=1000"));
    assert_eq!(keys("fieldlength=10"), keys("dataintegrity=true"));
}

#[test]
fn a_seed_and_a_number_make_the_same_operations() {
    let requests = |seed, number| {
        let mut client = Run::new(&settings("recordcount=1000 updateproportion=1"), seed).client(number, 2);
        (0..100)
            .map(|_| {
                assert!(client.begin());
                format!("{:?}", client.request().1)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(requests(1, 0), requests(1, 0));
    assert_ne!(requests(1, 0), requests(1, 1));
    assert_ne!(requests(1, 0), requests(2, 0));
}

#[test]
fn sequential_clients_share_the_records() {
    let workload =
        Run::new(&settings("recordcount=6 requestdistribution=sequential insertorder=ordered updateproportion=0"), 0);
    let keys = |number| {
        let mut client = workload.client(number, 2);
        (0..4)
            .map(|_| {
                assert!(client.begin());
                line(&client.request().1, "field", 10)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(0), ["READ user0 *", "READ user2 *", "READ user4 *", "READ user0 *"]);
    assert_eq!(keys(1), ["READ user1 *", "READ user3 *", "READ user5 *", "READ user1 *"]);
}

#[test]
fn values_have_the_lengths_that_are_set() {
    let lengths = |more: &str| {
        let set = format!("recordcount=10 readproportion=0 updateproportion=1 writeallfields=true fieldcount=4 {more}");
        let mut client = Run::new(&settings(&set), 0).client(0, 1);
        let mut lengths: Vec<usize> = Vec::new();
        for _ in 0..1000 {
            assert!(client.begin());
            let (_, Request::Replace { record, .. }) = client.request() else { panic!("all fields are written") };
            assert_eq!(record.len(), 4);
            lengths.extend(record.iter().map(<[u8]>::len));
        }
        lengths.sort_unstable();
        (lengths[0], lengths[2000], lengths[3999])
    };
    assert_eq!(lengths("fieldlength=77"), (77, 77, 77));
    let (least, middle, most) = lengths("fieldlength=20 minfieldlength=11 fieldlengthdistribution=uniform");
    assert_eq!((least, most), (11, 20));
    assert!((14..=17).contains(&middle), "{middle}");
    let (least, middle, most) = lengths("fieldlength=20 fieldlengthdistribution=zipfian");
    assert_eq!((least, most), (1, 20));
    assert!(middle <= 5, "the shorter the likelier: {middle}");
}

#[test]
fn a_read_modify_write_is_measured_as_a_whole() {
    let mut client =
        Run::new(&settings("recordcount=10 readproportion=0 readmodifywriteproportion=1 updateproportion=0"), 0)
            .client(0, 1);
    assert!(client.begin());
    let mut kinds = Vec::new();
    let next = serve(
        &mut client,
        |kind, _, _| {
            kinds.push(kind);
            Ok(Outcome::Ok)
        },
        |_, _| panic!("nothing is checked"),
    );
    assert_eq!(
        (kinds.as_slice(), next),
        ([crate::kinds::READ, crate::kinds::UPDATE].as_slice(), Next::DoneAs(Kind(1)))
    );

    for (answer, expected) in [(Ok(Outcome::NotFound), Next::Done), (Err(Failure::request("io", "")), Next::Failed)] {
        assert!(client.begin());
        let mut requests = 0;
        let next = serve(
            &mut client,
            |_, _, _| {
                requests += 1;
                answer.clone()
            },
            |_, _| (),
        );
        assert_eq!((requests, next), (1, expected), "nothing is written where nothing was read");
    }
}

/// The result of a check of `rows`. Each row is given by its key and the value of its only field.
fn checked(rows: &[(&[u8], &[u8])]) -> Vec<Result<Outcome, &'static str>> {
    let set = "recordcount=1 insertorder=ordered dataintegrity=true fieldcount=1 fieldlength=20 updateproportion=0";
    let mut client = Run::new(&settings(set), 0).client(0, 1);
    assert!(client.begin());
    let mut notes = Vec::new();
    serve(
        &mut client,
        |_, request, reply| {
            let Request::Read { fields, .. } = *request else { panic!("a read") };
            for (key, value) in rows {
                reply.row(key, value, 1, fields).expect("one field is any bytes");
            }
            Ok(if rows.is_empty() { Outcome::NotFound } else { Outcome::Ok })
        },
        |kind, result| {
            assert_eq!(kind, crate::kinds::VERIFY);
            notes.push(result);
        },
    );
    notes
}

#[test]
fn what_was_read_is_checked() {
    let mut right = Vec::new();
    crate::value::push_checkable(b"user0", b"field0", 20, &mut right);
    assert_eq!(checked(&[(b"user0", &right)]), [Ok(Outcome::Ok)]);
    assert_eq!(checked(&[]), [Err("ERROR")]);
    assert_eq!(checked(&[(b"user1", &right)]), [Err("UNEXPECTED_STATE")], "another record");
    assert_eq!(checked(&[(b"user0", &right[..19])]), [Err("UNEXPECTED_STATE")], "cut");
    let mut flipped = right.clone();
    flipped[7] ^= 1;
    assert_eq!(checked(&[(b"user0", &flipped)]), [Err("UNEXPECTED_STATE")]);
}

#[test]
fn a_client_asks_only_for_what_was_acknowledged() {
    let set = "recordcount=100 operationcount=10000 insertproportion=0.5 readproportion=0.5 updateproportion=0 \
               insertorder=ordered";
    for keys in ["zipfian", "latest", "exponential", "uniform"] {
        let workload = Run::new(&settings(&format!("{set} requestdistribution={keys}")), 3);
        // One client takes a number and never acknowledges it.
        let mut slow = workload.client(1, 2);
        while {
            assert!(slow.begin());
            !matches!(slow.request().1, Request::Insert { .. })
        } {
            serve(&mut slow, |_, _, _| Ok(Outcome::Ok), |_, _| ());
        }
        let Request::Insert { key, .. } = slow.request().1 else { panic!("it was looked at") };
        let held: i64 = String::from_utf8_lossy(&key[4..]).parse().expect("a number");
        let mut quick = workload.client(0, 2);
        for _ in 0..2000 {
            assert!(quick.begin());
            if let Request::Read { key, .. } = quick.request().1 {
                let number: i64 = String::from_utf8_lossy(&key[4..]).parse().expect("a number");
                assert!(number < held, "{keys}: {number} was asked for, {held} is not there yet");
            }
            serve(&mut quick, |_, _, _| Ok(Outcome::Ok), |_, _| ());
        }
        serve(&mut slow, |_, _, _| Ok(Outcome::Ok), |_, _| ());
        assert!(slow.hand.record() > 0);
    }
}

#[test]
fn processes_of_one_run_insert_other_records_and_ask_for_those_that_are_there() {
    let settings = settings(
        "recordcount=100 operationcount=1000 readproportion=0.5 updateproportion=0 insertproportion=0.5 \
         requestdistribution=latest insertorder=ordered",
    );
    let number = |key: &[u8]| -> u64 {
        let text = String::from_utf8(key.to_vec()).expect("keys are text");
        text.trim_start_matches("user").parse().expect("an ordered key is a number")
    };
    let mut inserted_by_all = BTreeSet::new();
    for process in 0..3 {
        let share = Share::new(process, 3);
        let work = Run::of_share(&settings, 1, share);
        let mut client = share.part(&work, 6).client(1, 2);
        let mut own = BTreeSet::new();
        for _ in 0..200 {
            assert!(client.begin());
            let mut seen = None;
            let answer = |_, request: &Request<'_>, _: &mut Reply| {
                seen = Some(match request {
                    Request::Insert { key, .. } => (true, number(key)),
                    Request::Read { key, .. } => (false, number(key)),
                    _ => panic!("it reads and inserts"),
                });
                Ok(Outcome::Ok)
            };
            serve(&mut client, answer, |_, _| ());
            match seen.expect("it asks") {
                (true, record) => {
                    assert!(record >= 100 && own.insert(record) && inserted_by_all.insert(record), "{record}");
                }
                (false, record) => assert!(record < 100 || own.contains(&record), "{record} is not there"),
            }
        }
        assert!(own.len() > 50);
    }
}
