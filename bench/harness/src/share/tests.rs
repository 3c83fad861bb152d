use super::{Share, dealt};
use crate::plan::{Length, Pace, Plan};

#[test]
fn shares_are_all_of_a_run_and_no_client_is_in_two() {
    for clients in 1..40 {
        for of in 1..=clients {
            let whole = Plan {
                clients,
                length: Length::Operations(1000),
                pace: Pace::Open { per_second: 600.0 },
                ..Plan::default()
            };
            let (mut next, mut operations, mut rate) = (0, 0, 0.0);
            for number in 0..of {
                let share = Share::new(number, of);
                let stretch = share.stretch(clients);
                assert_eq!(stretch.start, next);
                next = stretch.end;
                let plan = share.plan(&whole).expect("each has a client");
                assert_eq!(plan.clients, stretch.len());
                let Length::Operations(some) = plan.length else { panic!("it is a number of operations") };
                operations += some;
                let Pace::Open { per_second } = plan.pace else { panic!("it is an open loop") };
                rate += per_second;
            }
            assert_eq!((next, operations), (clients, 1000));
            assert!((rate - 600.0_f64).abs() < 1e-6, "{rate}");
        }
    }
    let few = Plan { clients: 2, ..Plan::default() };
    assert!(Share::new(0, 3).plan(&few).is_ok() && Share::new(2, 3).plan(&few).is_err());
}

#[test]
fn things_are_dealt_as_clients_number_them() {
    for (count, among) in [(0_u64, 3_usize), (7, 3), (9, 3), (2, 5), (23, 7)] {
        let each = |at: usize| (0..count).filter(|thing| *thing as usize % among == at).count() as u64;
        for begin in 0..among {
            for end in begin..=among {
                assert_eq!(dealt(count, among, &(begin..end)), (begin..end).map(each).sum::<u64>());
            }
        }
    }
}

#[test]
fn a_share_is_written_as_it_is_read() {
    for text in ["1/1", "2/3", "1000/1000"] {
        assert_eq!(text.parse::<Share>().map(|share| share.to_string()).as_deref(), Ok(text));
    }
    for text in ["", "1", "0/2", "3/2", "1/1001", "a/b", "-1/2", "1/99999999999999999999"] {
        assert!(text.parse::<Share>().is_err(), "{text}");
    }
}
