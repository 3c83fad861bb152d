-- Five of the queries of CH-benCHmark, which asks TPC-C's tables what TPC-H asks: numbers 1, 4, 6, 12 and 18.
--
--     cat queries/tpcc.sql queries/ch.sql | larch sql DIR --file -

-- 1: what was delivered, by the number of the line.
SELECT line, sum(quantity) AS quantity, sum(amount) AS amount, avg(quantity) AS mean_quantity, avg(amount) AS mean_amount,
       count(*) AS lines
FROM order_line WHERE delivered > 0 GROUP BY line ORDER BY line;

-- 4: orders with a line that was delivered after they were entered, by how many lines they have.
SELECT lines, count(*) AS orders FROM orders
WHERE EXISTS (SELECT * FROM order_line
              WHERE order_line.warehouse = orders.warehouse AND order_line.district = orders.district
                AND order_line.number = orders.number AND delivered >= entered)
GROUP BY lines ORDER BY lines;

-- 6: what lines of some size brought.
SELECT sum(amount) AS revenue FROM order_line WHERE delivered > 0 AND quantity BETWEEN 1 AND 100000;

-- 12: orders that the first two carriers took and that others took, by how many lines they have.
SELECT lines, sum(CASE WHEN carrier IN (1, 2) THEN 1 ELSE 0 END) AS first_carriers,
       sum(CASE WHEN carrier IN (1, 2) THEN 0 ELSE 1 END) AS others
FROM orders JOIN order_line ON order_line.warehouse = orders.warehouse AND order_line.district = orders.district
                           AND order_line.number = orders.number
WHERE entered <= delivered GROUP BY lines ORDER BY lines;

-- 18: the most expensive orders, with their customers.
SELECT last, customer.customer, orders.number, entered, lines, sum(amount) AS total
FROM customer
JOIN orders ON orders.warehouse = customer.warehouse AND orders.district = customer.district
           AND orders.customer = customer.customer
JOIN order_line ON order_line.warehouse = orders.warehouse AND order_line.district = orders.district
               AND order_line.number = orders.number
GROUP BY last, customer.customer, customer.warehouse, customer.district, orders.number, entered, lines
HAVING sum(amount) > 20000 ORDER BY total DESC, entered LIMIT 10;
