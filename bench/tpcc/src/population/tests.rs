use super::*;
use std::collections::BTreeSet;

const LOADED: Micros = 1_700_000_000_000_000;

fn population() -> Population {
    Population::new(42, LOADED)
}

/// The share of the rows for which `is` returns true, in thousandths.
fn thousandths(of: u32, is: impl FnMut(&u32) -> bool) -> u32 {
    (1..=of).filter(is).count() as u32 * 1000 / of
}

#[test]
fn items_and_stock_are_as_the_specification_says() {
    let population = population();
    let (mut item, mut stock) = (Item::default(), Stock::default());
    let contains = |text: &Text<50>| text.as_bytes().windows(8).any(|window| window == ORIGINAL);
    let original = thousandths(ITEMS, |number| {
        population.item(*number, &mut item);
        assert!(item.item == *number && (1..=10_000).contains(&item.image) && (100..=10_000).contains(&item.price));
        assert!((14..=24).contains(&item.name.as_bytes().len()) && (26..=50).contains(&item.data.as_bytes().len()));
        contains(&item.data)
    });
    assert!((95..=105).contains(&original), "{original} of 1,000 items");
    let original = thousandths(ITEMS, |number| {
        population.stock(3, *number, &mut stock);
        assert!((stock.warehouse, stock.item) == (3, *number) && (10..=100).contains(&stock.quantity));
        assert!(stock.districts.iter().all(|info| info.as_bytes().len() == 24));
        assert_eq!((stock.sold, stock.orders, stock.remote_orders), (0, 0, 0));
        contains(&stock.data)
    });
    assert!((95..=105).contains(&original), "{original} of 1,000 stocks");
}

#[test]
fn customers_are_as_the_specification_says() {
    let population = population();
    let (mut row, mut payment) = (Customer::default(), History::default());
    let mut names = BTreeSet::new();
    let bad = thousandths(CUSTOMERS, |customer| {
        population.customer(2, 7, *customer, &mut row);
        population.history(2, 7, *customer, &mut payment);
        assert_eq!((row.warehouse, row.district, row.customer), (2, 7, *customer));
        assert_eq!((row.balance, row.paid_in_year, row.payments, row.deliveries), (-1000, 1000, 1, 0));
        assert_eq!((payment.customer, payment.amount, payment.warehouse, payment.district), (*customer, 1000, 2, 7));
        assert!((300..=500).contains(&row.data.as_bytes().len()) && row.discount <= 5000);
        assert!(row.address.zip.as_bytes().ends_with(b"11111") && row.address.zip.as_bytes().len() == 9);
        assert!(row.phone.as_bytes().len() == 16 && row.phone.as_bytes().iter().all(u8::is_ascii_digit));
        if *customer <= 1000 {
            assert_eq!(row.last, last_name(customer - 1));
        }
        names.insert(row.last.as_bytes().to_vec());
        !row.has_good_credit
    });
    assert_eq!(names.len(), 1000);
    assert!((80..=120).contains(&bad), "{bad} of 1,000 customers have bad credit");
}

#[test]
fn orders_are_consistent() {
    let population = population();
    let customers = population.customers_of_orders(1, 10);
    let (mut order, mut line) = (Order::default(), OrderLine::default());
    let (mut made, mut lines, mut undelivered) = (BTreeSet::new(), 0, 0);
    for number in 1..=ORDERS {
        population.order(1, 10, number, &customers, &mut order);
        assert!(made.insert(order.customer) && (1..=CUSTOMERS).contains(&order.customer));
        assert!((5..=15).contains(&order.lines) && order.entered == LOADED);
        let is_new = Population::new_order(&order).is_some();
        undelivered += u32::from(is_new);
        assert_eq!(is_new, order.carrier.is_none());
        for number in 1..=order.lines {
            population.order_line(&order, number, &mut line);
            assert_eq!((line.order, line.line, line.supplied_by), (order.order, number, 1));
            assert_eq!((line.delivered.is_none(), line.amount > 0), (is_new, is_new));
            assert!((1..=ITEMS).contains(&line.item) && line.amount <= 999_999 && line.quantity == 5);
        }
        lines += order.lines;
    }
    assert_eq!(undelivered, 900);
    assert!((29_000..31_000).contains(&lines), "{lines}");
}

#[test]
fn a_row_is_the_same_whenever_it_is_made_and_another_where_the_seed_or_its_place_is() {
    let stock = |population: &Population, warehouse, item| {
        let mut row = Stock::default();
        population.stock(warehouse, item, &mut row);
        row
    };
    let (first, other) = (population(), Population::new(43, LOADED));
    let row = stock(&first, 5, 77);
    stock(&first, 1, 1);
    assert_eq!(row, stock(&first, 5, 77));
    for another in [stock(&first, 6, 77), stock(&first, 5, 78), stock(&other, 5, 77)] {
        assert_ne!(row.districts, another.districts);
    }
    // It does not matter for the result whether the buffer contained another row before.
    let mut used = Stock { sold: 9, ..stock(&first, 9, 9) };
    first.stock(5, 77, &mut used);
    assert_eq!(row, used);
}
