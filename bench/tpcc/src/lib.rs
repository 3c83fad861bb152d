//! TPC-C: orders of a company with warehouses, as the specification 5.11 of the Transaction Processing Performance
//! Council has them.
//!
//! It knows no engine. From the bottom up: `text` is a string of a bounded number of bytes, `schema` are the rows,
//! `random` are the random numbers of clauses 2.1.5 and 4.3.2, `population` makes the rows that a database begins with.
//! `input` is what terminals ask for, `rules` and `terminal` when they do. `transactions` carries it out on an engine
//! within the process, whose keys and values `encoding` makes, and `screen` is what comes of it; `oldest` remembers
//! where such an engine has to look for orders to deliver. `in_turn` is a thread of an engine whose calls wait.
//! `database` is what is asked of a database, `about` how an engine within the process keeps what it was made with.
//! `import` fills a database, `check` tells whether it is consistent, `live` what happens in a run, and `summary` what
//! it came to. `conformance` is the test that all databases run, and `noop` the database that keeps nothing.
//!
//! Money is in cents, and rates are in ten-thousandths: no figure passes through floating point.

#![allow(missing_docs, reason = "columns have the names of the specification")]

pub mod about;
pub mod check;
pub mod conformance;
pub mod database;
pub mod encoding;
pub mod figures;
pub mod import;
pub mod in_turn;
pub mod input;
pub mod live;
pub mod noop;
pub mod oldest;
pub mod population;
pub mod random;
pub mod result_text;
pub mod rules;
pub mod schema;
pub mod screen;
pub mod summary;
pub mod terminal;
pub mod text;
pub mod transactions;

pub use database::{Database, Form, Loader, Part, Row, Scheme, Setup, View};
pub use input::{Drawing, Input, Ticket, Transaction};
pub use population::Population;
pub use schema::Table;
pub use text::Text;
