use super::*;

const DRAWS: u32 = 100_000;

fn inputs(transaction: Transaction, warehouses: u32) -> impl Iterator<Item = Input> {
    let drawing = Drawing { constants: Constants::of(5), warehouses };
    (0..DRAWS).map(move |seed| {
        let ticket = Ticket { seed: seed.into(), warehouse: 2, district: 7, transaction, is_even: false };
        let bytes = ticket.to_bytes();
        let ticket = Ticket::from_bytes(&bytes).expect("these are the bytes of a ticket");
        ticket.draw(&drawing, 99)
    })
}

/// The share of `part` in `whole`, in hundredths of a percent.
fn share(part: u32, whole: u32) -> u32 {
    (u64::from(part) * 10_000 / u64::from(whole)) as u32
}

#[test]
fn orders_are_within_the_bounds_of_clause_5_5_1_5() {
    let (mut lines, mut remote, mut rolled_back) = (0, 0, 0);
    for input in inputs(Transaction::NewOrder, 5) {
        let Input::NewOrder(order) = input else { panic!("an order was asked for") };
        assert!((1..=10).contains(&order.district) && (1..=CUSTOMERS).contains(&order.customer));
        lines += order.lines().len() as u32;
        remote += order.lines().iter().filter(|line| line.supplied_by != 2).count() as u32;
        let (last, before) = order.lines().split_last().expect("it has five lines at least");
        rolled_back += u32::from(last.item == NO_ITEM);
        assert!(before.iter().all(|line| (1..=ITEMS).contains(&line.item) && (1..=10).contains(&line.quantity)));
        assert!(order.lines().iter().all(|line| (1..=5).contains(&line.supplied_by)));
    }
    assert!((980..=1020).contains(&share(lines, DRAWS * 10).div_ceil(10)), "{lines} lines");
    assert!((95..=105).contains(&share(remote, lines)), "{remote} of {lines} lines are remote");
    assert!((90..=110).contains(&share(rolled_back, DRAWS)), "{rolled_back} are rolled back");
}

#[test]
fn payments_are_within_the_bounds_of_clause_5_5_1_5() {
    let (mut remote, mut by_name) = (0, 0);
    for input in inputs(Transaction::Payment, 5) {
        let Input::Payment(payment) = input else { panic!("a payment was asked for") };
        assert!((100..=500_000).contains(&payment.amount) && (1..=5).contains(&payment.customer_warehouse));
        remote += u32::from(payment.customer_warehouse != 2);
        by_name += u32::from(payment.customer.is_name());
        assert!(payment.customer_warehouse != 2 || payment.customer_district == payment.district);
    }
    assert!((1400..=1600).contains(&share(remote, DRAWS)), "{remote} are remote");
    assert!((5700..=6300).contains(&share(by_name, DRAWS)), "{by_name} are by last name");
}

#[test]
fn one_warehouse_has_no_other() {
    for input in inputs(Transaction::NewOrder, 1).chain(inputs(Transaction::Payment, 1)) {
        match input {
            Input::NewOrder(order) => assert!(order.is_all_local()),
            Input::Payment(payment) => assert_eq!(payment.customer_warehouse, 2),
            _ => panic!("it was not asked for"),
        }
    }
}

#[test]
fn bytes_that_are_no_ticket_are_refused() {
    let ticket = Ticket { seed: 1, warehouse: 2, district: 3, transaction: Transaction::Delivery, is_even: true };
    let mut bytes = ticket.to_bytes();
    assert_eq!(Ticket::from_bytes(&bytes), Some(ticket));
    assert_eq!(Ticket::from_bytes(&bytes[1..]), None);
    bytes[13] = 5;
    assert_eq!(Ticket::from_bytes(&bytes), None);
}
