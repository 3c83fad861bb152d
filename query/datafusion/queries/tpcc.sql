-- The tables that `larch bench tpcc import` makes, as bench/tpcc/src/encoding.rs writes them. Money is in cents, times are in
-- microseconds since 1970, rates and discounts in hundredths of a percent.
--
--     larch sql DIR --file queries/tpcc.sql 'SELECT count(*) FROM order_line'

CREATE OR REPLACE EXTERNAL TABLE warehouse STORED AS LARCH LOCATION 'warehouse' OPTIONS ('columns' '
    key.tuple(warehouse u32),
    value.tuple(name string, street_1 string, street_2 string, city string, state string, zip string, tax u32, year_to_date i64)');

CREATE OR REPLACE EXTERNAL TABLE district STORED AS LARCH LOCATION 'district' OPTIONS ('columns' '
    key.tuple(warehouse u32, district u8),
    value.tuple(name string, street_1 string, street_2 string, city string, state string, zip string, tax u32, year_to_date i64,
        next_order u32)');

CREATE OR REPLACE EXTERNAL TABLE customer STORED AS LARCH LOCATION 'customer' OPTIONS ('columns' '
    key.tuple(warehouse u32, district u8, customer u32),
    value.tuple(last string, first string, middle string, has_good_credit bool, discount u32, balance i64, paid_in_year i64,
        payments u32, deliveries u32),
    part(1).tuple(street_1 string, street_2 string, city string, state string, zip string, phone string, since i64,
        credit_limit i64, data string)');

CREATE OR REPLACE EXTERNAL TABLE history STORED AS LARCH LOCATION 'history' OPTIONS ('columns' '
    key.tuple(warehouse u32, district u8, customer_warehouse u32, customer_district u8, customer u32, number u64),
    value.tuple(date i64, amount i64, data string)');

CREATE OR REPLACE EXTERNAL TABLE new_order STORED AS LARCH LOCATION 'new_order' OPTIONS ('columns' '
    key.tuple(warehouse u32, district u8, number u32)');

CREATE OR REPLACE EXTERNAL TABLE orders STORED AS LARCH LOCATION 'orders' OPTIONS ('columns' '
    key.tuple(warehouse u32, district u8, number u32),
    value.tuple(customer u32, entered i64, carrier u8?, lines u8, is_all_local bool)');

CREATE OR REPLACE EXTERNAL TABLE order_line STORED AS LARCH LOCATION 'order_line' OPTIONS ('columns' '
    key.tuple(warehouse u32, district u8, number u32, line u8),
    value.tuple(item u32, supplied_by u32, delivered i64?, quantity u8, amount i64, district_info string)');

CREATE OR REPLACE EXTERNAL TABLE item STORED AS LARCH LOCATION 'item' OPTIONS ('columns' '
    key.tuple(item u32),
    value.tuple(image u32, price i64, name string, data string)');

CREATE OR REPLACE EXTERNAL TABLE stock STORED AS LARCH LOCATION 'stock' OPTIONS ('columns' '
    key.tuple(warehouse u32, item u32),
    value.tuple(quantity i32, sold u64, orders u32, remote_orders u32),
    part(1).tuple(info_1 string, info_2 string, info_3 string, info_4 string, info_5 string, info_6 string, info_7 string,
        info_8 string, info_9 string, info_10 string, data string)');
