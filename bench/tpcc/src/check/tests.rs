//! Each test loads a database of two warehouses in memory, changes some of its rows, and compares all findings.

use super::*;
use crate::check::tests::database::Rows;
use crate::database::Row;
use crate::schema::{Customer, Item, NewOrder, Order, Stock, Warehouse};
use std::sync::atomic::AtomicU32;

mod database;

/// The findings about `rows`. Each finding is a line: its condition and then its text.
fn found(rows: &Rows, after: After) -> Vec<String> {
    let stop = AtomicBool::new(false);
    let checked = check(rows, &database::FORM, 2, after, &stop, &|_| ()).expect("it is in memory");
    assert_eq!(checked.warehouses, 2);
    assert_eq!(checked.is_consistent(), checked.findings.is_empty());
    let mut found: Vec<_> =
        checked.findings.iter().map(|finding| format!("{}: {}", finding.condition, finding.text)).collect();
    if checked.more > 0 {
        found.push(format!("and {} more", checked.more));
    }
    found
}

/// Checks the findings after a run, if `change` is applied to a loaded database.
#[track_caller]
fn finds(change: impl FnOnce(&mut Rows), expected: &[impl AsRef<str>]) {
    finds_after(After::Run, change, expected);
}

/// Checks the findings if `change` is applied to a loaded database.
#[track_caller]
fn finds_after(after: After, change: impl FnOnce(&mut Rows), expected: &[impl AsRef<str>]) {
    let mut rows = Rows::loaded();
    change(&mut rows);
    let expected: Vec<_> = expected.iter().map(AsRef::as_ref).collect();
    assert_eq!(found(&rows, after), expected);
}

#[test]
fn a_loaded_database_is_consistent() {
    let (stop, last) = (AtomicBool::new(false), AtomicU32::new(0));
    let rows = Rows::loaded();
    for after in [After::Import, After::Run] {
        let progress = |warehouses| last.store(warehouses, Ordering::Relaxed);
        let checked = check(&rows, &database::FORM, 1, after, &stop, &progress).expect("it is in memory");
        assert!(checked.is_consistent() && checked.more == 0, "{checked:?}");
        assert_eq!((checked.warehouses, last.load(Ordering::Relaxed)), (2, 2));
        let lines = rows.order_lines.iter().map(|lines| lines.len() as u64).sum();
        assert_eq!(checked.rows_by_table, [2, 20, 60_000, 60_000, 18_000, 60_000, lines, 100_000, 200_000]);
        assert_eq!(checked.rows, checked.rows_by_table.iter().sum::<u64>());
    }
}

#[test]
fn a_run_by_hand_is_consistent() {
    let mut rows = Rows::loaded();
    rows.enter(1, 3, 17, &[(5, 1, 4), (6, 2, 7), (5, 1, 1)]);
    rows.enter(2, 10, 3000, &[(100_000, 2, 10)]);
    rows.pay((1, 3), (1, 3, 17), 12_345);
    rows.pay((1, 1), (2, 10, 3000), 100);
    rows.pay((1, 1), (2, 10, 3000), 200);
    rows.pay((2, 5), (1, 10, 1), 500_000);
    // 901 deliveries also deliver order 3001, which was entered after the import.
    for _ in 0..901 {
        rows.deliver(1, 3);
    }
    rows.deliver(2, 10);
    assert_eq!(found(&rows, After::Run), [""; 0]);
    assert!(rows.new_orders[0].iter().all(|row| row.district != 3));
    assert!(!found(&rows, After::Import).is_empty());
}

#[test]
fn sums_of_a_warehouse_are_compared() {
    finds(
        |rows| rows.warehouse(2).year_to_date += 1,
        &[
            "1: warehouse 2: W_YTD is 300000.01, but D_YTD of its districts is 300000.00",
            "8: warehouse 2: W_YTD is 300000.01, but its payments are 300000.00",
        ],
    );
    // `W_YTD` of the warehouse equals the sum of `D_YTD` of its districts, but both differ from the sum of the
    // payments.
    finds(
        |rows| {
            rows.warehouse(1).year_to_date -= 1;
            rows.district(1, 10).year_to_date -= 1;
        },
        &[
            "8: warehouse 1: W_YTD is 299999.99, but its payments are 300000.00",
            "9: district 10 of warehouse 1: D_YTD is 29999.99, but its payments are 30000.00",
        ],
    );
}

#[test]
fn the_next_order_of_a_district_is_compared() {
    finds(
        |rows| rows.district(1, 4).next_order = 3002,
        &[
            "2: district 4 of warehouse 1: D_NEXT_O_ID is 3002, but the newest order is 3000",
            "2: district 4 of warehouse 1: D_NEXT_O_ID is 3002, but the newest new order is 3000",
        ],
    );
    // The last part of condition 2 holds only if there are new orders.
    finds(
        |rows| rows.new_orders(2).retain(|row| (row.district, row.order) != (7, 3000)),
        &[
            "2: district 7 of warehouse 2: D_NEXT_O_ID is 3001, but the newest new order is 2999",
            "11: district 7 of warehouse 2: it has 3000 orders and 899 new orders, \
            but C_DELIVERY_CNT says that 2100 are delivered",
            "5: order 3000 of district 7 of warehouse 2 has no carrier, but is no new order",
        ],
    );
}

#[test]
fn gaps_of_new_orders_are_found() {
    finds(
        |rows| rows.new_orders(1).retain(|row| (row.district, row.order) != (1, 2500)),
        &[
            "3: district 1 of warehouse 1: it has 899 new orders, but from 2101 to 3000 there are 900",
            "11: district 1 of warehouse 1: it has 3000 orders and 899 new orders, \
            but C_DELIVERY_CNT says that 2100 are delivered",
            "5: order 2500 of district 1 of warehouse 1 has no carrier, but is no new order",
        ],
    );
}

#[test]
fn lines_of_orders_are_counted_and_numbered() {
    let lines = Rows::loaded().order(1, 2, 9).lines;
    finds(
        |rows| rows.order(1, 2, 9).lines += 1,
        &[
            &format!(
                "4: district 2 of warehouse 1: O_OL_CNT adds up to {}, but it has {} order lines",
                database::lines(1, 2) + 1,
                database::lines(1, 2)
            ),
            &format!("6: order 9 of district 2 of warehouse 1: O_OL_CNT is {}, but it has {lines} lines", lines + 1),
        ],
    );
    // One order has one line more than it says, and another order has one line less, so that the total is right.
    finds(
        |rows| {
            rows.order(1, 2, 9).lines += 1;
            rows.order(1, 2, 10).lines -= 1;
        },
        &[
            &format!("6: order 9 of district 2 of warehouse 1: O_OL_CNT is {}, but it has {lines} lines", lines + 1),
            &format!(
                "6: order 10 of district 2 of warehouse 1: O_OL_CNT is {}, but it has {} lines",
                Rows::loaded().order(1, 2, 10).lines - 1,
                Rows::loaded().order(1, 2, 10).lines
            ),
        ],
    );
    finds(
        |rows| rows.order_line(2, 1, 1, lines_of(2, 1, 1)).line += 1,
        &[&format!(
            "6: order 1 of district 1 of warehouse 2: its lines are not numbered from 1 to {}",
            lines_of(2, 1, 1)
        )],
    );
    finds(
        |rows| rows.order_line(2, 1, 1, 1).line = 0,
        &[&format!(
            "6: order 1 of district 1 of warehouse 2: its lines are not numbered from 1 to {}",
            lines_of(2, 1, 1)
        )],
    );
}

fn lines_of(warehouse: u32, district: u32, order: u32) -> u32 {
    Rows::loaded().order(warehouse, district, order).lines
}

#[test]
fn carriers_new_orders_and_deliveries_agree() {
    let count = lines_of(1, 1, 7);
    let mut expected = vec!["5: order 7 of district 1 of warehouse 1 has no carrier, but is no new order".to_owned()];
    let lines = (1..=count).map(|line| {
        format!(
            "7: line {line} of order 7 of district 1 of warehouse 1 has a delivery date, but the order has no carrier"
        )
    });
    expected.splice(0..0, lines);
    finds(|rows| rows.order(1, 1, 7).carrier = None, &expected);
    finds(
        |rows| rows.order_line(2, 10, 2100, 3).delivered = None,
        &["7: line 3 of order 2100 of district 10 of warehouse 2 has no delivery date, but the order has a carrier"],
    );
    // The order was delivered, but is still a new order.
    finds(
        |rows| {
            rows.deliver(1, 1);
            rows.new_orders(1).insert(0, NewOrder { warehouse: 1, district: 1, order: 2101 });
        },
        &[
            "11: district 1 of warehouse 1: it has 3000 orders and 900 new orders, \
            but C_DELIVERY_CNT says that 2101 are delivered",
            "5: order 2101 of district 1 of warehouse 1 has a carrier, but is a new order, too",
        ],
    );
}

#[test]
fn payments_are_compared() {
    finds(
        |rows| rows.history(2, 4, 5).amount += 25,
        &[
            "8: warehouse 2: W_YTD is 300000.00, but its payments are 300000.25",
            "9: district 4 of warehouse 2: D_YTD is 30000.00, but its payments are 30000.25",
            "10: customer 5 of district 4 of warehouse 2: C_BALANCE is -10.00, \
            but delivered lines less payments are -10.25",
        ],
    );
    // A payment is stored with another district of the same warehouse.
    finds(
        |rows| rows.history(2, 4, 5).district = 5,
        &[
            "9: district 4 of warehouse 2: D_YTD is 30000.00, but its payments are 29990.00",
            "9: district 5 of warehouse 2: D_YTD is 30000.00, but its payments are 30010.00",
        ],
    );
}

#[test]
fn balances_are_compared() {
    finds(
        |rows| rows.customer(1, 6, 2999).balance = 0,
        &[
            "12: customer 2999 of district 6 of warehouse 1: C_BALANCE is 0.00 and C_YTD_PAYMENT is 10.00, \
            but lines of 0.00 are delivered",
            "10: customer 2999 of district 6 of warehouse 1: C_BALANCE is 0.00, \
            but delivered lines less payments are -10.00",
        ],
    );
    finds(
        |rows| rows.customer(1, 6, 2999).paid_in_year = 0,
        &["12: customer 2999 of district 6 of warehouse 1: C_BALANCE is -10.00 and C_YTD_PAYMENT is 0.00, \
            but lines of 0.00 are delivered"],
    );
    finds(
        |rows| rows.customer(1, 6, 2999).deliveries += 1,
        &["11: district 6 of warehouse 1: it has 3000 orders and 900 new orders, \
            but C_DELIVERY_CNT says that 2101 are delivered"],
    );
    // A line was delivered, but its amount is not in the balance.
    let customer = Rows::loaded().order(1, 6, 1).customer;
    finds(
        |rows| rows.order_line(1, 6, 1, 2).amount = 7,
        &[
            &format!(
                "12: customer {customer} of district 6 of warehouse 1: C_BALANCE is -10.00 \
                and C_YTD_PAYMENT is 10.00, but lines of 0.07 are delivered"
            ),
            &format!(
                "10: customer {customer} of district 6 of warehouse 1: C_BALANCE is -10.00, \
                but delivered lines less payments are -9.93"
            ),
        ],
    );
}

#[test]
fn payments_to_other_warehouses_are_compared() {
    finds(
        |rows| {
            rows.pay((1, 1), (2, 3, 4), 5000);
            rows.customer(2, 3, 4).balance -= 1;
            rows.customer(2, 3, 4).paid_in_year += 1;
        },
        &["10: customer 4 of district 3 of warehouse 2: C_BALANCE is -60.01, \
            but delivered lines less payments are -60.00"],
    );
    // The customer's row does not know of the payment.
    finds(
        |rows| {
            let before = rows.customer(2, 3, 4).clone();
            rows.pay((1, 1), (2, 3, 4), 5000);
            *rows.customer(2, 3, 4) = before;
        },
        &[
            "10: customer 4 of district 3 of warehouse 2: C_BALANCE should be lower by 50.00, which was paid to other warehouses",
        ],
    );
    // The customer does not exist.
    finds(
        |rows| {
            rows.pay((1, 1), (2, 3, 4), 5000);
            rows.customers(2).retain(|row| (row.district, row.customer) != (3, 4));
            let order = rows.orders(2).iter_mut().find(|row| (row.district, row.customer) == (3, 4));
            order.expect("each customer has one").customer = 5;
            rows.histories(2).retain(|row| (row.customer_district, row.customer) != (3, 4));
            rows.warehouse(2).year_to_date -= 1000;
            rows.district(2, 3).year_to_date -= 1000;
        },
        &[
            "0: customer 4 of district 3 of warehouse 2 is not there",
            "0: other warehouses have payments of 50.00 by customer 4 of district 3 of warehouse 2, who is not there",
        ],
    );
}

#[test]
fn payments_and_orders_of_customers_who_are_not_there_are_found() {
    let mut expected = vec!["0: customer 9 of district 8 of warehouse 1 is not there, and 1 after it".to_owned()];
    let here = "district 8 of warehouse 1";
    expected.extend([9, 10].map(|customer| {
        format!("0: {here}: a payment of 10.00 is by customer {customer} of {here}, who is not there")
    }));
    let is_theirs = |row: &&Order| row.district == 8 && (9..=10).contains(&row.customer);
    for Order { order, customer, .. } in Rows::loaded().orders[0].iter().filter(is_theirs) {
        expected.push(format!("0: order {order} of {here} is by customer {customer}, who is not there"));
    }
    assert_eq!(expected.len(), 5);
    finds(|rows| rows.customers(1).retain(|row| row.district != 8 || !(9..=10).contains(&row.customer)), &expected);
    for (warehouse, district, customer) in [(3, 1, 1), (0, 1, 1), (1, 11, 1), (1, 0, 1), (2, 1, 3001), (2, 1, 0)] {
        let mut rows = Rows::loaded();
        let row = rows.history(1, 8, 9);
        (row.customer_warehouse, row.customer_district, row.customer) = (warehouse, district, customer);
        let found = found(&rows, After::Run);
        let from = words::Place::of(warehouse, district);
        let expected = format!("0: {here}: a payment of 10.00 is by customer {customer} of {from}, who is not there");
        assert!(found.contains(&expected), "{found:?}");
    }
}

#[test]
fn orders_have_no_gaps() {
    let mut rows = Rows::loaded();
    rows.orders(1).retain(|row| (row.district, row.order) != (9, 2999));
    let found = found(&rows, After::Run);
    for expected in [
        "0: district 9 of warehouse 1: order 3000 follows order 2998: orders have no gaps",
        "0: new order 2999 of district 9 of warehouse 1 is not among the orders",
        "0: line 1 of order 2999 of district 9 of warehouse 1 is of an order that is not there",
        "11: district 9 of warehouse 1: it has 2999 orders and 900 new orders, \
        but C_DELIVERY_CNT says that 2100 are delivered",
    ] {
        assert!(found.iter().any(|found| found == expected), "{found:?}");
    }
    assert!(found.iter().any(|found| found.starts_with("4: district 9 of warehouse 1: O_OL_CNT adds up to ")));
}

#[test]
fn rows_that_may_not_vanish_are_counted() {
    finds(
        |rows| {
            rows.items().remove(4999);
            rows.items().truncate(99_998);
            rows.stocks(2).remove(0);
        },
        &[
            "0: item 5000 is not there: 2 of 100000 are missing",
            "0: warehouse 2: stock of item 1 is not there: 1 of 100000 are missing",
        ],
    );
    finds(
        |rows| rows.items()[6].price += 1,
        &[&format!(
            "0: item 7 is not as it was loaded: it has price: {}, but price: {} was loaded",
            item(7).price + 1,
            item(7).price
        )],
    );
    finds(
        |rows| {
            rows.districts(2).pop();
            rows.warehouses(1).clear();
        },
        &[
            "0: warehouse 1: it has no row",
            "1: warehouse 2: W_YTD is 300000.00, but D_YTD of its districts is 270000.00",
            "0: district 10 of warehouse 2: it has no row",
        ],
    );
}

fn item(item: u32) -> Item {
    let mut row = Item::default();
    Population::new(database::FORM.seed, database::FORM.loaded).item(item, &mut row);
    row
}

#[test]
fn stock_is_compared_with_the_lines_since_the_import() {
    finds(
        |rows| {
            rows.enter(1, 1, 1, &[(1, 1, 3), (2, 2, 5)]);
            rows.stock(1, 1).sold -= 1;
            rows.stock(1, 9).orders += 1;
            rows.stock(2, 2).remote_orders = 0;
        },
        &[
            "0: warehouse 1: S_ORDER_CNT of its stock adds up to 2, \
            but to 1 by the lines that it has supplied since the import",
            "0: warehouse 1: S_YTD of its stock adds up to 2, \
            but to 3 by the lines that it has supplied since the import",
            "0: warehouse 2: S_REMOTE_CNT of its stock adds up to 0, \
            but to 1 by the lines that it has supplied since the import",
        ],
    );
    finds(
        |rows| rows.order_line(1, 1, 1, 1).supplied_by = 3,
        &["0: line 1 of order 1 of district 1 of warehouse 1 is supplied by warehouse 3, which is not there"],
    );
}

#[test]
fn rows_of_places_that_cannot_be_are_findings() {
    finds(
        |rows| {
            rows.warehouses(1).push(Warehouse { warehouse: 2, ..Default::default() });
            rows.stocks(1).push(Stock { warehouse: 1, item: 100_001, ..Default::default() });
            rows.stocks(1).push(Stock { warehouse: 7, item: 1, ..Default::default() });
            rows.customers(1).push(Customer { warehouse: 1, district: 10, customer: 3001, ..Default::default() });
            rows.customers(1).push(Customer { warehouse: 1, district: 11, customer: 1, ..Default::default() });
            let again = rows.new_orders(1)[0].clone();
            rows.new_orders(1).push(again);
            rows.new_orders(1).push(NewOrder { warehouse: 1, district: 0, order: 1 });
        },
        &[
            "0: warehouse 1: a row of warehouse says that it belongs to warehouse 2",
            "0: stock of item 100001 of warehouse 1: there can be no such number",
            "0: warehouse 1: a row of stock says that it belongs to warehouse 7",
            "0: customer 3001 of district 10 of warehouse 1: there can be no such number",
            "0: warehouse 1: a row of customer has district 11, which cannot be",
            "0: new order 2101 of district 1 of warehouse 1 is there twice or not in the order of the keys",
            "0: warehouse 1: a row of new_order has district 0, which cannot be",
        ],
    );
}

#[test]
fn numbers_beyond_all_bounds_break_nothing() {
    let mut rows = Rows::loaded();
    rows.warehouse(1).year_to_date = i64::MIN;
    rows.district(1, 1).next_order = 0;
    rows.district(1, 2).year_to_date = i64::MAX;
    (rows.customer(1, 1, 1).balance, rows.customer(1, 1, 1).paid_in_year) = (i64::MIN, i64::MIN);
    rows.customer(1, 1, 2).deliveries = u32::MAX;
    rows.history(1, 1, 1).amount = i64::MAX;
    rows.order(1, 10, 3000).order = u32::MAX;
    rows.order(1, 10, 2999).lines = u32::MAX;
    rows.order_line(1, 10, 2998, 1).amount = i64::MIN;
    rows.stock(1, 1).sold = u64::MAX;
    for after in [After::Import, After::Run] {
        assert!(found(&rows, after).len() > 10);
    }
}

#[test]
fn a_warehouse_without_rows_is_a_finding() {
    let mut rows = Rows::loaded();
    rows.clear(2);
    let expected = [
        "0: warehouse 2: stock of item 1 is not there: 100000 of 100000 are missing",
        "0: customer 1 of district 1 of warehouse 2 is not there, and 29999 after it",
        "0: warehouse 2: it has no row",
        "0: district 1 of warehouse 2: it has no row",
        "11: district 1 of warehouse 2: it has 0 orders and 0 new orders, \
        but C_DELIVERY_CNT says that 2100 are delivered",
    ];
    let found_after_run = found(&rows, After::Run);
    assert_eq!(found_after_run[..5], expected);
    assert_eq!(found_after_run.len(), 3 + 2 * 10);
    let found = found(&rows, After::Import);
    assert_eq!(found[found.len() - 3], "0: warehouse 2: it has 0 rows of history, but there must be 30000");
}

#[test]
fn after_an_import_every_row_is_as_it_was_loaded() {
    let lines = lines_of(2, 5, 3000);
    finds_after(
        After::Import,
        |rows| {
            rows.warehouse(2).address.zip.set(b"000011111");
            rows.district(2, 1).tax = 2001;
            rows.stock(2, 3).quantity = 9;
            rows.stock(2, 4).districts[3].set(b"x");
            rows.customer(2, 1, 5).payments = 2;
            rows.history(2, 1, 6).date += 1;
            rows.order(2, 5, 3000).is_all_local = false;
            rows.order_line(2, 5, 3000, lines).delivered = None;
            rows.order_line(2, 5, 3000, lines).item = 0;
        },
        &[
            &format!(
                "0: warehouse 2 is not as it was loaded: it has zip: \"000011111\", but zip: {:?} was loaded",
                Rows::loaded().warehouse(2).address.zip
            ),
            &format!(
                "0: district 1 of warehouse 2 is not as it was loaded: it has tax: 2001, but tax: {} was loaded",
                Rows::loaded().district(2, 1).tax
            ),
            &format!(
                "0: stock of item 3 of warehouse 2 is not as it was loaded: it has quantity: 9, \
                but quantity: {} was loaded",
                Rows::loaded().stock(2, 3).quantity
            ),
            &format!(
                "0: stock of item 4 of warehouse 2 is not as it was loaded: it has \"x\", but {:?} was loaded",
                Rows::loaded().stock(2, 4).districts[3]
            ),
            "0: customer 5 of district 1 of warehouse 2 is not as it was loaded: it has payments: 2, \
            but payments: 1 was loaded",
            "0: the payment of customer 6 to district 1 of warehouse 2 \
            is not as it was loaded: it has date: 1700000000000001, but date: 1700000000000000 was loaded",
            "0: order 3000 of district 5 of warehouse 2 \
            is not as it was loaded: it has is_all_local: false, but is_all_local: true was loaded",
            &format!(
                "0: line {lines} of order 3000 of district 5 of warehouse 2 \
                is not as it was loaded: it has item: 0, but item: {} was loaded",
                Rows::loaded().order_line(2, 5, 3000, lines).item
            ),
        ],
    );
    // After the import, a customer has made a second payment, and an order was entered.
    finds_after(
        After::Import,
        |rows| {
            rows.pay((1, 10), (1, 10, 3000), 1000);
            rows.warehouse(1).year_to_date -= 1000;
            rows.district(1, 10).year_to_date -= 1000;
            *rows.customer(1, 10, 3000) = Rows::loaded().customer(1, 10, 3000).clone();
        },
        &[
            "0: the payment of customer 3000 to district 10 of warehouse 1 is there twice or not in the order of the keys",
            "8: warehouse 1: W_YTD is 300000.00, but its payments are 300010.00",
            "9: district 10 of warehouse 1: D_YTD is 30000.00, but its payments are 30010.00",
            "0: warehouse 1: it has 30001 rows of history, but there must be 30000",
            "10: customer 3000 of district 10 of warehouse 1: C_BALANCE is -10.00, \
            but delivered lines less payments are -20.00",
        ],
    );
    let mut rows = Rows::loaded();
    rows.enter(1, 10, 1, &[(1, 1, 5)]);
    let found = found(&rows, After::Import);
    for expected in [
        "0: order 3001 of district 10 of warehouse 1 is not as it was loaded: an import has none of this number",
        "0: new order 3001 of district 10 of warehouse 1 is not as it was loaded: an import has none of this number",
        "0: line 1 of order 3001 of district 10 of warehouse 1 \
        is not as it was loaded: an import has none of this number",
        "0: warehouse 1: it has 9001 rows of new_order, but there must be 9000",
        "0: warehouse 1: it has 30001 rows of orders, but there must be 30000",
    ] {
        assert!(found.iter().any(|found| found == expected), "{found:?}");
    }
}

#[test]
fn texts_whose_buffers_were_used_before_are_no_difference() {
    finds_after(
        After::Import,
        |rows| {
            let name = &mut rows.warehouse(1).name;
            let before = name.as_bytes().to_vec();
            name.set(b"0123456789");
            name.set(&before);
        },
        &[""; 0],
    );
}

#[test]
fn findings_beyond_the_first_hundred_are_counted() {
    let mut rows = Rows::loaded();
    rows.customers(2).iter_mut().for_each(|row| row.paid_in_year += 1);
    rows.customers(1).iter_mut().take(3).for_each(|row| row.balance += 1);
    let found = found(&rows, After::Run);
    assert_eq!(found.len(), MOST_FINDINGS + 1);
    assert!(found[..3].iter().all(|found| found.starts_with("12: ") && found.contains("of warehouse 1")));
    assert!(found[3..6].iter().all(|found| found.starts_with("10: ") && found.contains("of warehouse 1")));
    assert!(found[6..100].iter().all(|found| found.starts_with("12: ") && found.contains("of warehouse 2")));
    assert_eq!(found[100], format!("and {} more", 30_000 + 6 - 100));
}

#[test]
fn a_check_ends_when_it_is_told_to_stop() {
    /// A view that counts the customer rows of warehouse 2, and sets `stop` after a given number of them.
    struct Stopping<'t> {
        rows: Rows,
        after: u32,
        stop: &'t AtomicBool,
        given: AtomicU32,
    }
    impl View for Stopping<'_> {
        fn rows(
            &self,
            table: Table,
            warehouse: u32,
            each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
        ) -> Result<(), Failure> {
            self.rows.rows(table, warehouse, &mut |row| {
                if (table, warehouse) == (Table::Customer, 2) {
                    let given = self.given.fetch_add(1, Ordering::Relaxed);
                    self.stop.fetch_or(given >= self.after, Ordering::Relaxed);
                }
                each(row)
            })
        }
    }
    for after in [0, 1000, 29_999] {
        let stop = &AtomicBool::new(false);
        let view = Stopping { rows: Rows::loaded(), after, stop, given: AtomicU32::new(0) };
        let failure = check(&view, &database::FORM, 2, After::Run, stop, &|_| ()).expect_err("it was told to stop");
        assert_eq!((failure.kind, view.given.into_inner()), (INTERRUPTED, after + 1));
    }
    let stop = AtomicBool::new(true);
    let failure = check(&Rows::loaded(), &database::FORM, 1, After::Run, &stop, &|_| ()).expect_err("it was told");
    assert_eq!(failure.kind, INTERRUPTED);
}

#[test]
fn a_database_that_fails_is_a_failure() {
    /// A database that fails when the stock of a warehouse other than the first is read.
    struct Broken {
        failure: Option<Failure>,
    }
    impl View for Broken {
        fn rows(
            &self,
            table: Table,
            warehouse: u32,
            each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
        ) -> Result<(), Failure> {
            match (table, warehouse, &self.failure) {
                (Table::Stock, 2, Some(failure)) => Err(failure.clone()),
                (Table::Stock, 2, None) => each(Row::Item(&Item::default())),
                _ => Ok(()),
            }
        }
    }
    let stop = AtomicBool::new(false);
    let failure =
        |failure| check(&Broken { failure }, &database::FORM, 2, After::Run, &stop, &|_| ()).expect_err("it fails");
    assert_eq!(failure(Some(Failure::session("io", "the disk is gone"))).text, "the disk is gone");
    let stray = failure(None);
    assert_eq!(stray.kind, "wrong_rows");
    assert!(stray.text.starts_with("the database was asked for rows of stock and gave Item("), "{stray}");
}
