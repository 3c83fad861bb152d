//! TPC-C: the orders of a company with warehouses. This benchmark follows the specification 5.11 of the
//! Transaction Processing Performance Council.
//!
//! This crate knows no engine. The modules, from the bottom up: `text` is a string with a limited number of bytes,
//! `schema` defines the rows, `random` draws the random numbers of clauses 2.1.5 and 4.3.2, and `population` makes
//! the initial rows of a database. `input` defines what terminals ask for, and `rules` and `terminal` decide when
//! they ask. `transactions` carries out transactions on an engine inside the process; `encoding` makes the keys and
//! values for such an engine, `columns` has the columns of the tables in SQL, `table_row` has the types of the rows,
//! `screen` is what a terminal shows, and `oldest` remembers where to look for orders to deliver. `ordered` makes such
//! an engine of an ordered store with transactions. `in_turn` is the session of a thread on an engine in which a call
//! returns only when its work is done. `database` is the interface of a database. `about` defines how an engine inside
//! the process stores what a database was made with. `import` fills a database, `check` checks that a database is consistent, `live`
//! shows a run while it goes on, and `summary` computes the result of a run. `conformance` is the test that is run
//! for all databases, and `noop` is the database that stores nothing.
//!
//! Money is in cents, and rates are in ten-thousandths, so no amount of money is ever a floating-point number.

#![allow(missing_docs, reason = "columns have the names of the specification")]

pub mod about;
pub mod check;
pub mod columns;
pub mod conformance;
pub mod database;
pub mod encoding;
pub mod figures;
pub mod import;
pub mod in_turn;
pub mod input;
pub mod live;
pub mod noop;
mod oldest;
pub mod ordered;
pub mod population;
pub mod random;
pub mod result_text;
pub mod rules;
pub mod schema;
pub mod screen;
pub mod summary;
pub mod table_row;
pub mod terminal;
pub mod text;
pub mod transactions;

pub use database::{Database, Form, Loader, Part, Row, Setup, TpccScheme, View};
pub use input::{Drawing, Input, Ticket, Transaction};
pub use population::Population;
pub use schema::Table;
pub use table_row::{ReadRows, TableRow};
pub use text::Text;
