use super::*;
use std::time::Duration;

fn open(clients: usize, per_second: f64, ramp: Duration) -> Timeline {
    let plan = Plan { clients, pace: Pace::Open { per_second }, ramp, ..Plan::default() };
    Timeline::new(&plan, 1_000)
}

#[test]
fn the_clients_of_an_open_loop_share_one_even_schedule() {
    for (clients, rate) in [(1, 1000.0), (3, 1000.0), (7, 333.3), (2, 0.5), (128, 1e6)] {
        let timeline = open(clients, rate, Duration::ZERO);
        let mut times = Vec::new();
        for client in 0..clients {
            let mut schedule = timeline.schedule(client).expect("an open loop");
            times.extend((0..100).map(|_| schedule.next()));
        }
        times.sort_unstable();
        let exact = |n: usize| 1_000 + (n as u128 * 1_000_000_000_000_000 / (rate * 1e6) as u128) as u64;
        let expected: Vec<u64> = (0..100 * clients).map(exact).collect();
        assert_eq!(times, expected, "{clients} clients, {rate} a second");
    }
}

#[test]
fn a_schedule_does_not_drift() {
    // At three operations a second, the distance between operations is not a whole number of nanoseconds.
    let mut schedule = open(1, 3.0, Duration::ZERO).schedule(0).expect("an open loop");
    let last = (0..=3 * 86_400).map(|_| schedule.next()).last();
    assert_eq!(last, Some(1_000 + 86_400 * 1_000_000_000));
}

#[test]
fn clients_that_begin_later_have_the_later_part_of_the_schedule() {
    let timeline = open(4, 100.0, Duration::from_secs(1));
    for client in 0..4 {
        let begins = timeline.ramp(client);
        assert_eq!(begins, 1_000 + client as u64 * 250_000_000);
        let first = timeline.schedule(client).expect("an open loop").next();
        let turn = 4 * 10_000_000;
        assert!((begins..begins + turn).contains(&first), "client {client} begins at {begins}, first at {first}");
        assert_eq!((first - 1_000) / 10_000_000 % 4, client as u64, "its own turns");
    }
}

#[test]
fn what_is_left_of_a_schedule_is_counted_as_going_through_it_would() {
    for (clients, rate) in [(1, 1000.0), (3, 777.7), (5, 1e9 / 7.0)] {
        for client in 0..clients {
            let mut schedule = open(clients, rate, Duration::ZERO).schedule(client).expect("an open loop");
            for _ in 0..client {
                schedule.next();
            }
            let times: Vec<u64> = (0..200).scan(schedule.clone(), |schedule, _| Some(schedule.next())).collect();
            let edges = times.iter().flat_map(|time| [time - 1, *time, time + 1]);
            let edges: Vec<u64> = edges.filter(|edge| *edge < times[199]).step_by(17).chain([0]).collect();
            for from in &edges {
                for to in &edges {
                    let counted = times.iter().filter(|time| (from..to).contains(time)).count() as u64;
                    assert_eq!(schedule.left_between(*from, *to), counted, "{clients} clients, {from} to {to}");
                }
            }
        }
    }
}

#[test]
fn every_time_lies_in_the_interval_of_its_bounds() {
    for (ramp, warmup, length) in [(0, 0, 1000), (0, 250, 1000), (100, 150, 1050), (70, 0, 99)] {
        let millis = Duration::from_millis;
        let plan = Plan {
            ramp: millis(ramp),
            warmup: millis(warmup),
            length: Length::Time(millis(length)),
            interval: millis(100),
            ..Plan::default()
        };
        let timeline = Timeline::new(&plan, 12_345);
        let mut number = 0;
        let mut at = timeline.origin;
        while at < timeline.end {
            let (from, to, warming) = timeline.bounds(number);
            assert_eq!(from, at, "no gap before interval {number} of {plan:?}");
            assert_eq!(warming, to <= timeline.start, "interval {number} of {plan:?}");
            assert_eq!((timeline.interval(from), timeline.interval(to - 1)), (number, number), "{plan:?}");
            (number, at) = (number + 1, to);
        }
        assert_eq!(at, timeline.end, "{plan:?}");
        assert_eq!(timeline.end - timeline.start, length * 1_000_000);
    }
}

#[test]
fn a_limit_ends_what_has_no_end_of_its_own() {
    let end = |length, limit: Option<u64>| {
        let limit = limit.map(Duration::from_secs);
        let timeline = Timeline::new(&Plan { length, limit, ..Plan::default() }, 0);
        timeline.end
    };
    let seconds = 1_000_000_000;
    assert_eq!(end(Length::All, None), u64::MAX);
    assert_eq!(end(Length::All, Some(5)), 5 * seconds);
    assert_eq!(end(Length::Operations(7), Some(5)), 5 * seconds);
    assert_eq!(end(Length::Time(Duration::from_secs(3)), Some(5)), 3 * seconds);
    assert_eq!(end(Length::Time(Duration::from_secs(9)), Some(5)), 5 * seconds);
}

#[test]
fn a_thread_with_a_slack_wakes_up_at_its_multiples() {
    let timeline = |slack| Timeline::new(&Plan { slack: Duration::from_nanos(slack), ..Plan::default() }, 3);
    for (slack, at, wakes) in [
        (0, 1_234, 1_234),
        (0, u64::MAX, u64::MAX),
        (100, 1_200, 1_200),
        (100, 1_201, 1_300),
        (100, 1_299, 1_300),
        (100, 0, 0),
        (100, u64::MAX, u64::MAX),
    ] {
        assert_eq!(timeline(slack).wake(at), wakes, "{at} with a slack of {slack}");
    }
}
