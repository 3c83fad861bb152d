use super::*;
use crate::input::Drawing;
use crate::random::Constants;
use crate::rules::Mode;
use harness::Failure;
use std::collections::BTreeMap;

fn rules(mode: Mode) -> Rules {
    Rules { mode, drawing: Drawing { constants: Constants::of(1), warehouses: 3 } }
}

fn ticket_of(terminal: &mut Terminal<'_>) -> Ticket {
    let (kind, request) = terminal.request();
    let Request::Transaction(bytes) = request else { panic!("a terminal asks for transactions") };
    let ticket = Ticket::from_bytes(bytes).expect("it is a ticket");
    assert_eq!(usize::from(kind.0), ticket.transaction as usize);
    ticket
}

/// Passes `result` to the terminal. Returns what the terminal does next, and the number of retries that it counts.
fn serve(terminal: &mut Terminal<'_>, result: Result<Outcome, &Failure>) -> (Next, u64) {
    let (mut retries, mut note) = (0, |_, _, _| {});
    let mut counts = [0; COUNTS.len()];
    let mut extra = Extra::new(&mut note, &mut retries).counting(&mut counts);
    let next = terminal.served(result, &Reply::new(), &mut extra);
    assert_eq!(counts[ATTEMPTS..].iter().sum::<u64>(), retries);
    (next, retries)
}

#[test]
fn each_warehouse_has_a_terminal_for_each_district() {
    let rules = rules(Mode::Spec);
    let terminals = Terminals { rules: &rules, warehouses: 2..=3, seed: 1 };
    let mut homes = BTreeMap::new();
    for number in 0..20 {
        let mut terminal = terminals.client(number, 20);
        assert!(terminal.begin());
        let Ticket { warehouse, district, .. } = ticket_of(&mut terminal);
        *homes.entry((warehouse, district)).or_insert(0) += 1;
        terminal.begin();
        assert_eq!(ticket_of(&mut terminal).district, district, "it stays in its district");
    }
    let wanted: BTreeMap<_, _> =
        (2..=3).flat_map(|warehouse| (1..=10).map(move |district| ((warehouse, district), 1))).collect();
    assert_eq!(homes, wanted);
}

#[test]
fn terminals_ask_for_different_things_and_the_same_again() {
    let rules = rules(Mode::NoWait);
    let asked = |seed, number| {
        let mut terminal = Terminals { rules: &rules, warehouses: 1..=3, seed }.client(number, 30);
        (0..50)
            .map(|_| {
                terminal.begin();
                ticket_of(&mut terminal)
            })
            .collect::<Vec<Ticket>>()
    };
    assert_eq!(asked(1, 4), asked(1, 4));
    assert_ne!(asked(1, 4), asked(2, 4));
    let seeds: Vec<u64> = asked(1, 4).iter().chain(&asked(1, 7)).map(|ticket| ticket.seed).collect();
    assert!(seeds.iter().enumerate().all(|(at, seed)| !seeds[..at].contains(seed)));
}

#[test]
fn a_terminal_thinks_and_keys_in_before_a_transaction() {
    let rules = rules(Mode::Spec);
    let mut terminal = Terminals { rules: &rules, warehouses: 1..=1, seed: 3 }.client(0, 10);
    terminal.begin();
    assert_eq!(terminal.wait().since, Since::Served);
    let mut after_delivery = 0;
    let mut last = ticket_of(&mut terminal).transaction;
    for _ in 0..200 {
        terminal.begin();
        let next = ticket_of(&mut terminal).transaction;
        let wait = terminal.wait();
        assert!(wait.nanos > rules.keying(next), "it thinks, too");
        let is_deferred = last == Transaction::Delivery;
        assert_eq!(wait.since == Since::Due, is_deferred, "only a delivery is deferred");
        after_delivery += u32::from(is_deferred);
        last = next;
    }
    assert!(after_delivery > 0);
}

#[test]
fn a_conflict_is_tried_again_with_the_same_input_and_not_for_ever() {
    let rules = rules(Mode::NoWait);
    let mut terminal = Terminals { rules: &rules, warehouses: 1..=1, seed: 3 }.client(0, 1);
    terminal.begin();
    let conflict = Failure::again("conflict", "another has written it");
    let ticket = ticket_of(&mut terminal);
    let mut retries = 0;
    loop {
        let (next, counted) = serve(&mut terminal, Err(&conflict));
        retries += counted;
        match next {
            Next::Wait(nanos) => assert!(nanos < LAST_BOUND_NANOS),
            next => break assert_eq!(next, Next::Failed),
        }
        assert_eq!(ticket_of(&mut terminal), ticket);
    }
    assert_eq!(retries, u64::from(MOST_ATTEMPTS) - 1);
    terminal.begin();
    ticket_of(&mut terminal);
    assert_eq!(serve(&mut terminal, Err(&Failure::request("io", "broken"))), (Next::Failed, 0));
    terminal.begin();
    ticket_of(&mut terminal);
    assert_eq!(serve(&mut terminal, Ok(Outcome::RolledBack)), (Next::Done, 0), "a roll-back is an end as any other");
}

#[test]
fn terminals_ask_at_the_same_rate_from_the_beginning() {
    let rules = rules(Mode::Spec);
    let terminals = Terminals { rules: &rules, warehouses: 1..=1000, seed: 3 };
    // For each second, the number of transactions that are asked for, if transactions take no time.
    let mut asked = [0_u32; 60];
    for number in 0..10_000 {
        let (mut terminal, mut now) = (terminals.client(number, 10_000), 0);
        while now < 60_000_000_000 {
            terminal.begin();
            now += terminal.wait().nanos;
            if let Some(count) = asked.get_mut((now / 1_000_000_000) as usize) {
                *count += 1;
            }
        }
    }
    // A deck of 23 transactions takes 476 seconds, so 10,000 terminals ask for 483 per second. The standard deviation
    // is less than 22.
    assert!(asked.iter().all(|count| (400..=566).contains(count)), "{asked:?}");
    let all: u32 = asked.iter().sum();
    assert!(all.abs_diff(60 * 483) < 600, "{all}");
}
