//! Row access by the SLOB method: rows of a table are read, and some of them updated, by random ranges of a number that
//! has an index, so that a range of the index leads to rows that are scattered over the table. What is measured is rows
//! a second.
//!
//! It repeats ybio, which does this on PostgreSQL and YugabyteDB with two procedures of PL/pgSQL. The parameters, the
//! lines that are printed and the columns of the history are those of ybio. `docs/benchmarks/rows.md` says what is
//! different.
//!
//! It knows no database: one that can be measured is a [`Database`]. From the bottom up: `parameters` are what ybio's
//! procedures take, `batch` says which rows are inserted together, `database` what is asked of a database, `history` is
//! its table of runs, `setup` and `run` are the two procedures.

pub mod batch;
pub mod conformance;
pub mod database;
pub mod history;
pub mod parameters;
pub mod run;
pub mod setup;
pub mod time;

pub use batch::{Batch, Order, Row};
pub use database::{
    Access, Counted, Database, Inside, Loader, Opening, ReadWay, Scheme, Seen, SeenInside, Session, Statement,
    TableForm,
};
pub use history::Job;
pub use parameters::{RunParameters, SetupParameters};
