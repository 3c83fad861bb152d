//! The SQL of the five transactions. Each connection prepares all these statements, and `work` decides which of them
//! go out together.
//!
//! A statement does as much as the server can do without hearing from the client, so a transaction takes one round
//! trip, and only a new order takes two. Values that depend on other values are computed by the statement that
//! writes them. They are correct at every isolation level: even at read committed, a statement that waited for a row
//! sees the row's newest version.
//!
//! ```text
//!                 round trip 1                                        round trip 2
//! new order       BEGIN; district; stock of all lines                 order with lines; COMMIT or ROLLBACK
//! payment         warehouse, district, customer and history
//! order status    BEGIN READ ONLY; customer, order, lines; COMMIT
//! delivery        all ten districts; at read committed after a lock
//! stock level     BEGIN READ ONLY; lines and stock; COMMIT
//! ```
//!
//! With server functions, each transaction is one call in one round trip. A new order adds a second call, which
//! fails if an item is missing: the client still gets the rows of the first call, but the server rolls back what it
//! wrote.
//!
//! In a simulation, the server returns constant rows, of the same number and types as the real ones.

use super::isolation::Isolation;
use super::options::Form;
use crate::postgres::dialect::Dialect;
use crate::postgres::error::SqlState;
use crate::postgres::wire::{Binding, Statement};

/// The SQLSTATE with which the function at the end of a new order fails if an item is missing.
pub const ITEM_IS_MISSING: SqlState = SqlState(*b"TPC01");

/// The kinds of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Begins a transaction.
    Begin,
    /// Begins a transaction that only reads.
    BeginReading,
    /// Commits the transaction.
    Commit,
    /// Rolls the transaction back.
    RollBack,
    /// Takes an order's number from its district.
    District,
    /// Takes the items of an order from the stocks.
    Stock,
    /// Inserts an order with its lines.
    Order,
    /// The function for a new order, except its end.
    NewOrder,
    /// The function that ends a new order, and fails if an item is missing.
    NewOrderEnd,
    /// A payment, with the customer given by number.
    PaymentByNumber,
    /// A payment, with the customer given by name.
    PaymentByName,
    /// The newest order of a customer who is given by number.
    StatusByNumber,
    /// The newest order of a customer who is given by name.
    StatusByName,
    /// Takes the lock that serializes the deliveries of a warehouse.
    DeliveryLock,
    /// Delivers the oldest order of each district.
    Delivery,
    /// Counts the recently ordered items whose stock is low.
    Level,
}

/// The number of kinds.
const KINDS: usize = Kind::Level as usize + 1;

/// A statement before it gets its form.
struct Definition {
    kind: Kind,
    name: &'static str,
    /// The types of its parameters.
    parameters: &'static [&'static str],
    /// The types of its result columns, each with the value that a simulation returns.
    results: &'static [(&'static str, &'static str)],
    sql: String,
    /// A FROM clause that decides how many rows a simulation returns.
    rows: &'static str,
}

/// The statements, by their kinds.
pub struct Statements {
    /// The SQL and the prepared form of each statement. Its name is its index.
    all: Vec<(String, Statement)>,
    by_kind: [Option<usize>; KINDS],
    /// How transactions are sent.
    pub form: Form,
    /// The SQL that creates the functions that the statements call.
    functions: Vec<String>,
}

impl Statements {
    /// The statements for a server.
    pub fn new(dialect: &Dialect, isolation: Isolation, form: Form) -> Self {
        let (mut all, mut by_kind, mut functions) = (Vec::new(), [None; KINDS], Vec::new());
        let mut put = |kind: Kind, sql: String, parameters: usize| {
            let name = all.len().to_string();
            by_kind[kind as usize] = Some(all.len());
            let parameters = u16::try_from(parameters).expect("a statement has a few parameters");
            all.push((sql, Statement::new(&name, parameters)));
        };
        for (kind, sql) in [
            (Kind::Begin, "BEGIN"),
            (Kind::BeginReading, "BEGIN READ ONLY"),
            (Kind::Commit, "COMMIT"),
            (Kind::RollBack, "ROLLBACK"),
        ] {
            put(kind, sql.to_owned(), 0);
        }
        if let (Some(lock), Form::Statements | Form::Functions) = (dialect.delivery_lock(isolation), form) {
            put(Kind::DeliveryLock, lock.to_owned(), 1);
        }
        for definition in definitions() {
            let is_of_function = matches!(definition.kind, Kind::NewOrder | Kind::NewOrderEnd);
            let is_of_statements = matches!(definition.kind, Kind::District | Kind::Stock | Kind::Order);
            let sql = match form {
                Form::Functions if is_of_statements => continue,
                Form::Statements | Form::Constants if is_of_function => continue,
                Form::Statements => definition.sql.clone(),
                Form::Constants => definition.constants(),
                Form::Functions => {
                    functions.push(definition.function());
                    definition.call()
                }
            };
            put(definition.kind, sql, definition.parameters.len());
        }
        Self { all, by_kind, form, functions }
    }

    /// Whether the statements include one of kind `kind`.
    #[inline]
    pub fn has(&self, kind: Kind) -> bool {
        self.by_kind[kind as usize].is_some()
    }

    /// Begins the message of the statement of kind `kind`.
    #[inline]
    pub fn bind<'o>(&self, kind: Kind, out: &'o mut Vec<u8>) -> Binding<'o> {
        let at = self.by_kind[kind as usize].expect("transactions use the statements of their form");
        self.all[at].1.bind(out)
    }

    /// Name and SQL of each statement, for preparing them.
    pub fn all(&self) -> impl Iterator<Item = (String, &str)> {
        self.all.iter().enumerate().map(|(number, (sql, _))| (number.to_string(), sql.as_str()))
    }

    /// The SQL that creates the functions that the statements call.
    pub fn functions(&self) -> &[String] {
        &self.functions
    }
}

impl Definition {
    fn call(&self) -> String {
        let parameters =
            (1..=self.parameters.len()).zip(self.parameters).map(|(number, of)| format!("${number}::{of}"));
        format!("SELECT * FROM {}({})", function_name(self.name), parameters.collect::<Vec<_>>().join(", "))
    }

    fn function(&self) -> String {
        // Result columns must not have the names of table columns, so they are called `r1`, `r2`, ….
        let results = self.results.iter().enumerate().map(|(at, (of, _))| format!("r{} {of}", at + 1));
        let body = match self.kind {
            Kind::NewOrder | Kind::NewOrderEnd => self.sql.clone(),
            _ => format!("BEGIN RETURN QUERY {}; END", self.sql),
        };
        format!(
            "CREATE OR REPLACE FUNCTION {}({}) RETURNS TABLE ({}) LANGUAGE plpgsql AS $function$ {body} $function$",
            function_name(self.name),
            self.parameters.join(", "),
            results.collect::<Vec<_>>().join(", ")
        )
    }

    fn constants(&self) -> String {
        let results = self.results.iter().map(|(of, value)| format!("CAST({value} AS {of})"));
        let mut results = results.collect::<Vec<_>>().join(", ");
        if results.is_empty() {
            "1".clone_into(&mut results);
        }
        // The casts are needed because PostgreSQL cannot infer the type of an unused parameter.
        let given = (1..=self.parameters.len()).zip(self.parameters).map(|(number, of)| format!("${number}::{of}"));
        let given = given.collect::<Vec<_>>().join(", ");
        format!("SELECT {results} FROM (SELECT {given}) AS given{}", self.rows)
    }
}

fn function_name(name: &str) -> String {
    format!("tpcc_{name}")
}

/// The SQL that drops the functions, if they exist.
pub fn remove_functions() -> String {
    let names = definitions()
        .map(|definition| format!("{}({})", function_name(definition.name), definition.parameters.join(", ")));
    names.map(|name| format!("DROP FUNCTION IF EXISTS {name}; ")).into_iter().collect()
}

/// Selects the number of the customer in the middle among those with a last name, sorted by first name, as the
/// specification wants. If two are in the middle, the first of them.
const BY_NAME: &str = "(SELECT (array_agg(c_id ORDER BY c_first, c_id))[((count(*) + 1) >> 1)::int4] FROM customer";

fn payment(who: &str) -> String {
    format!(
        "WITH c AS (UPDATE customer SET c_balance = c_balance - $3, c_ytd_payment = c_ytd_payment + $3, \
         c_payment_cnt = c_payment_cnt + 1, c_data = CASE c_credit WHEN 'GC' THEN c_data ELSE \
         left(c_id::text || ' ' || c_d_id::text || ' ' || c_w_id::text || $8::text || c_data, 500) END \
         WHERE c_w_id = $4 AND c_d_id = $5 AND c_id = {who} \
         RETURNING c_id, c_first, c_last, c_street_1, c_city, c_zip, c_discount, c_balance, \
         c_street_2, c_state, c_middle, c_phone, c_since, c_credit, c_credit_lim, \
         CASE c_credit WHEN 'GC' THEN NULL ELSE left(c_data, 200) END AS seen), \
         d AS (UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
         RETURNING d_name, d_street_1, d_city, d_zip, d_street_2, d_state), \
         w AS (UPDATE warehouse SET w_ytd = w_ytd + $3 WHERE w_id = $1 RETURNING w_name, w_street_1, w_city, w_zip, \
         w_street_2, w_state), \
         h AS (INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         SELECT c_id, $5::int4, $4::int4, $2::int4, $1::int4, $7::timestamptz, $3::int8, w_name || '    ' || d_name \
         FROM c, d, w RETURNING h_c_id) \
         SELECT w_street_1, w_city, w_zip, d_street_1, d_city, d_zip, c_street_1, c_city, c_zip, \
         c_id, c_first, c_last, c_discount, c_balance, seen::text, w_street_2, w_state, d_street_2, d_state, c_street_2, c_state, \
         c_middle, c_phone, c_since, c_credit, c_credit_lim FROM c, d, w"
    )
}

const PAYMENT_RESULTS: &[(&str, &str)] = &[
    ("varchar", "'a street of it'"),
    ("varchar", "'a city of it'"),
    ("bpchar", "'123411111'"),
    ("varchar", "'a street of it'"),
    ("varchar", "'a city of it'"),
    ("bpchar", "'123411111'"),
    ("varchar", "'a street of it'"),
    ("varchar", "'a city of it'"),
    ("bpchar", "'123411111'"),
    ("int4", "1"),
    ("varchar", "'Firstname'"),
    ("varchar", "'BARBARBAR'"),
    ("int4", "500"),
    ("int8", "-1000"),
    ("text", "NULL"),
    // The specification puts the following values on the terminal's screen. Our terminals do not show them.
    ("varchar", "'a street of it'"),
    ("bpchar", "'WA'"),
    ("varchar", "'a street of it'"),
    ("bpchar", "'WA'"),
    ("varchar", "'a street of it'"),
    ("bpchar", "'WA'"),
    ("bpchar", "'OE'"),
    ("bpchar", "'0123456789012345'"),
    ("timestamptz", "now()"),
    ("bpchar", "'GC'"),
    ("int8", "5000000"),
];

fn status(who: &str) -> String {
    format!(
        "SELECT c_id, c_first, c_last, c_balance, o_id, o_carrier_id, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
         ol_delivery_d, c_middle, o_entry_d \
         FROM (SELECT c_id, c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = {who}) AS c \
         CROSS JOIN LATERAL (SELECT o_id, o_carrier_id, o_entry_d FROM orders \
         WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = c.c_id ORDER BY o_id DESC LIMIT 1) AS o \
         JOIN order_line ON ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = o.o_id ORDER BY ol_number"
    )
}

const STATUS_RESULTS: &[(&str, &str)] = &[
    ("int4", "1"),
    ("varchar", "'Firstname'"),
    ("varchar", "'BARBARBAR'"),
    ("int8", "-1000"),
    ("int4", "3001"),
    ("int4", "NULL"),
    ("int4", "4711"),
    ("int4", "1"),
    ("int4", "5"),
    ("int8", "12345"),
    ("timestamptz", "NULL"),
    // As above.
    ("bpchar", "'OE'"),
    ("timestamptz", "now()"),
];

/// The new values of a stock after an order line has taken items from it.
const TAKEN: &str = "s_quantity = s_quantity - l.quantity + CASE WHEN s_quantity >= l.quantity + 10 THEN 0 ELSE 91 END, \
    s_ytd = s_ytd + l.quantity, s_order_cnt = s_order_cnt + 1, \
    s_remote_cnt = s_remote_cnt + CASE WHEN l.w = $1 THEN 0 ELSE 1 END";

/// The district's information in a stock, which has one such text for each district. An order line copies it.
fn district_info(district: &str) -> String {
    let cases: String = (1..=9).map(|number| format!("WHEN {number} THEN s_dist_{number:02} ")).collect();
    format!("CASE {district} {cases}ELSE s_dist_10 END")
}

/// Takes the next order number of a district. Returns it with the taxes of district and warehouse, and the
/// customer's discount, name and credit.
const ENTERED: &str = "UPDATE district SET d_next_o_id = d_next_o_id + 1 FROM warehouse, customer \
    WHERE d_w_id = $1 AND d_id = $2 AND w_id = $1 AND c_w_id = $1 AND c_d_id = $2 AND c_id = $3 \
    RETURNING (d_next_o_id - 1)::int4, d_tax, w_tax, c_discount, c_last, c_credit";

/// The body of the function for a new order, except its end.
fn new_order() -> String {
    let (info, entered) = (district_info("$2"), ENTERED.replace("c_last", "c_last::varchar"));
    format!(
        "DECLARE l record; goods record; info bpchar; BEGIN \
         {entered} INTO r1, r2, r3, r4, r5, r6; \
         INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
         VALUES ($1, $2, r1, $3, $4, NULL, cardinality($6), $5); \
         INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, r1); \
         FOR l IN SELECT * FROM unnest($6, $7, $8) WITH ORDINALITY AS given (w, i, quantity, number) \
         ORDER BY w, i, number LOOP \
         SELECT i_name, i_price, i_data LIKE '%ORIGINAL%' AS is_original INTO goods FROM item WHERE i_id = l.i; \
         IF NOT FOUND THEN PERFORM set_config('tpcc.item_is_missing', 'yes', true); CONTINUE; END IF; \
         UPDATE stock SET {TAKEN} WHERE s_w_id = l.w AND s_i_id = l.i \
         RETURNING s_quantity, goods.is_original AND s_data LIKE '%ORIGINAL%', {info} INTO STRICT r8, r9, info; \
         INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
         ol_quantity, ol_amount, ol_dist_info) \
         VALUES ($1, $2, r1, l.number, l.i, l.w, NULL, l.quantity, l.quantity * goods.i_price, info); \
         r7 := l.number; r10 := goods.i_price; r11 := goods.i_name; RETURN NEXT; \
         END LOOP; END"
    )
}

/// The statements whose SQL depends on the form of transactions.
fn definitions() -> [Definition; 11] {
    let numbered = "$6::int4".to_owned();
    let named = |warehouse: &str, district: &str, name: &str| {
        format!("{BY_NAME} WHERE c_w_id = {warehouse} AND c_d_id = {district} AND c_last = {name})")
    };
    let payment_of = |kind, name, parameters, who: &str| Definition {
        kind,
        name,
        parameters,
        results: PAYMENT_RESULTS,
        sql: payment(who),
        rows: "",
    };
    let status_of = |kind, name, parameters, who: &str| Definition {
        kind,
        name,
        parameters,
        results: STATUS_RESULTS,
        sql: status(who),
        rows: ", generate_series(1, 10)",
    };
    [
        Definition {
            kind: Kind::District,
            name: "district",
            parameters: &["int4", "int4", "int4"],
            results: &[
                ("int4", "3001"),
                ("int4", "1000"),
                ("int4", "1000"),
                ("int4", "500"),
                ("varchar", "'BARBARBAR'"),
                ("bpchar", "'GC'"),
            ],
            sql: ENTERED.to_owned(),
            rows: "",
        },
        Definition {
            kind: Kind::Stock,
            name: "stock",
            parameters: &["int4", "int4", "int4[]", "int4[]", "int4[]"],
            results: &[
                ("int4", "w"),
                ("int4", "i"),
                ("int4", "50"),
                ("bpchar", "'abcdefghijklmnopqrstuvwx'"),
                ("bool", "false"),
                ("int8", "5000"),
                ("varchar", "'the name of an item'"),
            ],
            sql: format!(
                "UPDATE stock SET {TAKEN} FROM unnest($3::int4[], $4::int4[], $5::int4[]) AS l (w, i, quantity) \
                 JOIN item ON i_id = l.i WHERE s_w_id = l.w AND s_i_id = l.i \
                 RETURNING s_w_id, s_i_id, s_quantity, {}, s_data LIKE '%ORIGINAL%' AND i_data LIKE '%ORIGINAL%', \
                 i_price, i_name",
                district_info("$2::int4")
            ),
            // Item numbers above 100000 do not exist: an order with one must be rolled back, in a simulation as
            // well.
            rows: ", unnest($3::int4[], $4::int4[], $5::int4[]) AS l (w, i, quantity) WHERE i <= 100000",
        },
        Definition {
            kind: Kind::Order,
            name: "order",
            parameters: &[
                "int4",
                "int4",
                "int4",
                "int4",
                "timestamptz",
                "int4",
                "int4",
                "int4[]",
                "int4[]",
                "int4[]",
                "int4[]",
                "int8[]",
                "text[]",
            ],
            results: &[],
            sql: "WITH o AS (INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
                  VALUES ($1::int4, $2::int4, $3::int4, $4::int4, $5::timestamptz, NULL, $6::int4, $7::int4) RETURNING o_id), \
                  n AS (INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ($1::int4, $2::int4, $3::int4) RETURNING no_o_id) \
                  INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
                  ol_quantity, ol_amount, ol_dist_info) \
                  SELECT $1::int4, $2::int4, $3::int4, l.number, l.i, l.w, NULL, l.quantity, l.amount, l.info \
                  FROM unnest($8::int4[], $9::int4[], $10::int4[], $11::int4[], $12::int8[], $13::text[]) \
                  AS l (number, i, w, quantity, amount, info)"
                .to_owned(),
            rows: "",
        },
        Definition {
            kind: Kind::NewOrder,
            name: "new_order",
            parameters: &["int4", "int4", "int4", "timestamptz", "int4", "int4[]", "int4[]", "int4[]"],
            results: &[
                ("int4", ""),
                ("int4", ""),
                ("int4", ""),
                ("int4", ""),
                ("varchar", ""),
                ("bpchar", ""),
                ("int4", ""),
                ("int4", ""),
                ("bool", ""),
                ("int8", ""),
                ("varchar", ""),
            ],
            sql: new_order(),
            rows: "",
        },
        Definition {
            kind: Kind::NewOrderEnd,
            name: "new_order_end",
            parameters: &[],
            results: &[("bool", "")],
            sql: format!(
                "BEGIN IF current_setting('tpcc.item_is_missing', true) = 'yes' THEN \
                 RAISE EXCEPTION 'an item is missing' USING ERRCODE = '{ITEM_IS_MISSING}'; END IF; \
                 r1 := true; RETURN NEXT; END"
            ),
            rows: "",
        },
        payment_of(
            Kind::PaymentByNumber,
            "payment_by_number",
            &["int4", "int4", "int8", "int4", "int4", "int4", "timestamptz", "text"],
            &numbered,
        ),
        payment_of(
            Kind::PaymentByName,
            "payment_by_name",
            &["int4", "int4", "int8", "int4", "int4", "text", "timestamptz", "text"],
            &named("$4", "$5", "$6::text"),
        ),
        status_of(Kind::StatusByNumber, "status_by_number", &["int4", "int4", "int4"], "$3::int4"),
        status_of(
            Kind::StatusByName,
            "status_by_name",
            &["int4", "int4", "text"],
            &named("$1", "$2", "$3::text"),
        ),
        Definition {
            kind: Kind::Delivery,
            name: "delivery",
            parameters: &["int4", "int4", "timestamptz"],
            results: &[("int4", "district"), ("int4", "2101")],
            sql: "WITH oldest AS (SELECT district, (SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = district \
                  ORDER BY no_o_id LIMIT 1) AS number FROM generate_series(1, 10) AS districts (district)), \
                  gone AS (DELETE FROM new_order USING oldest WHERE no_w_id = $1 AND no_d_id = district AND no_o_id = number \
                  RETURNING no_d_id, no_o_id), \
                  o AS (UPDATE orders SET o_carrier_id = $2 FROM gone WHERE o_w_id = $1 AND o_d_id = no_d_id AND o_id = no_o_id \
                  RETURNING o_d_id, o_c_id), \
                  l AS (UPDATE order_line SET ol_delivery_d = $3 FROM gone \
                  WHERE ol_w_id = $1 AND ol_d_id = no_d_id AND ol_o_id = no_o_id RETURNING ol_d_id, ol_amount), \
                  s AS (SELECT ol_d_id, sum(ol_amount)::int8 AS amount FROM l GROUP BY ol_d_id), \
                  c AS (UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1 \
                  FROM o JOIN s ON ol_d_id = o_d_id WHERE c_w_id = $1 AND c_d_id = o_d_id AND c_id = o_c_id RETURNING c_d_id) \
                  SELECT no_d_id, no_o_id FROM gone JOIN c ON c_d_id = no_d_id"
                .to_owned(),
            rows: ", generate_series(1, 10) AS districts (district)",
        },
        Definition {
            kind: Kind::Level,
            name: "stock_level",
            parameters: &["int4", "int4", "int4"],
            results: &[("int8", "17")],
            sql: "SELECT count(*) FROM (SELECT DISTINCT ol_i_id FROM district JOIN order_line ON ol_w_id = $1 AND ol_d_id = $2 \
                  AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id WHERE d_w_id = $1 AND d_id = $2) AS sold \
                  JOIN stock ON s_w_id = $1 AND s_i_id = ol_i_id WHERE s_quantity < $3"
                .to_owned(),
            rows: "",
        },
    ]
}
