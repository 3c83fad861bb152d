use super::*;
use crate::population::Population;
use rows::Extractor;

fn population() -> Population {
    Population::new(3, 1_700_000_000_000_000)
}

fn read_back<R: Decode + Default + PartialEq + fmt::Debug>(row: &R, as_row: Row<'_>) -> Encoded {
    let mut encoded = Encoded::default();
    encoded.set(as_row, 77);
    let mut back = R::default();
    back.decode(encoded.key(), encoded.parts().iter().map(Vec::as_slice)).expect("it was encoded");
    assert_eq!(&back, row);
    encoded
}

#[test]
fn rows_come_back_as_they_were() {
    let population = population();
    let mut order = Order::default();
    let customers = population.customers_of_orders(2, 9);
    for number in [7, 2_100, 2_101, 3_000] {
        population.order(2, 9, number, &customers, &mut order);
        read_back(&order, Row::Order(&order));
        let mut line = OrderLine::default();
        population.order_line(&order, 3, &mut line);
        read_back(&line, Row::OrderLine(&line));
    }
    let new = Population::new_order(&order).expect("the last order is not delivered");
    read_back(&new, Row::NewOrder(&new));
    let mut customer = Customer::default();
    population.customer(2, 9, 1234, &mut customer);
    read_back(&customer, Row::Customer(&customer));
    let mut history = History::default();
    population.history(2, 9, 1234, &mut history);
    read_back(&history, Row::History(&history));
    let mut stock = Stock { quantity: -3, ..Stock::default() };
    population.stock(2, 99_999, &mut stock);
    read_back(&stock, Row::Stock(&stock));
    let mut item = Item::default();
    population.item(99_999, &mut item);
    read_back(&item, Row::Item(&item));
    let mut district = District::default();
    population.district(2, 9, &mut district);
    read_back(&district, Row::District(&district));
    let mut warehouse = Warehouse::default();
    population.warehouse(2, &mut warehouse);
    read_back(&warehouse, Row::Warehouse(&warehouse));
}

/// The keys that an index with the declaration `declaration` has for a row.
fn index_keys(declaration: &str, encoded: &Encoded) -> Vec<Vec<u8>> {
    let extractor: Extractor = declaration.parse().expect("it is the text of an extractor");
    let mut keys = Vec::new();
    let part = |number: usize| encoded.parts().get(number).map(Vec::as_slice);
    extractor.index_keys(encoded.key(), &part, &mut |key| keys.push(key.to_vec())).expect("it fits the row");
    keys
}

#[test]
fn indexes_have_the_keys_that_are_searched() {
    let population = population();
    let mut customer = Customer::default();
    population.customer(2, 9, 1234, &mut customer);
    let encoded = read_back(&customer, Row::Customer(&customer));
    let mut wanted = Vec::new();
    name_key(DistrictId { warehouse: 2, district: 9 }, &customer.last, &mut wanted);
    text(&customer.first, &mut wanted);
    assert_eq!(index_keys(CUSTOMERS_BY_NAME, &encoded), [wanted]);

    let mut order = Order::default();
    for number in [7, 3_000] {
        population.order(2, 9, number, &population.customers_of_orders(2, 9), &mut order);
        let mut wanted = Vec::new();
        numbered_key(DistrictId { warehouse: 2, district: 9 }, order.customer, &mut wanted);
        assert_eq!(index_keys(ORDERS_BY_CUSTOMER, &read_back(&order, Row::Order(&order))), [wanted]);
    }
}

#[test]
fn bytes_that_are_no_row_are_refused() {
    let mut stock = Stock::default();
    population().stock(2, 5, &mut stock);
    let encoded = read_back(&stock, Row::Stock(&stock));
    let (key, parts) = (encoded.key(), encoded.parts());
    let mut refused = |key: &[u8], parts: &[&[u8]]| {
        let failure = stock.decode(key, parts.iter().copied()).expect_err("it is no row");
        assert_eq!(failure.kind, "wrong_rows");
    };
    refused(&key[1..], &[&parts[0], &parts[1]]);
    refused(&[key, &[0]].concat(), &[&parts[0], &parts[1]]);
    refused(key, &[]);
    refused(key, &[&parts[0][1..], &parts[1]]);
    refused(key, &[&parts[0], &parts[1][..30]]);
    let long = [[b'x'; 60].as_slice(), &[0, 0], &parts[1]].concat();
    refused(key, &[&parts[0], &long]);
}
