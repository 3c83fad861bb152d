//! Row access by the SLOB method. A session draws random ranges of an indexed number, and reads or updates the rows
//! in these ranges. Rows that are neighbours in the index are scattered over the table. The result is the number of
//! rows per second.
//!
//! This benchmark repeats ybio, which uses PostgreSQL and YugabyteDB with two procedures in PL/pgSQL. The
//! parameters, the printed lines and the columns of the history are the same as in ybio. `docs/benchmarks/rows.md`
//! lists the differences from ybio.
//!
//! This crate knows no database: a database that can be measured is a [`Database`]. From the bottom up: `parameters`
//! has the parameters of ybio's procedures, `batch` decides which rows are inserted together, and `database` is the
//! interface of a database. `history` is the table in which runs are recorded, and `setup` and `run` are the two
//! procedures.

pub mod batch;
pub mod conformance;
pub mod database;
pub mod history;
pub mod parameters;
pub mod run;
pub mod setup;

pub use batch::{Batch, Order, Row};
pub use database::{
    Access, Counted, Database, Inside, Loader, Opening, ReadWay, RowAccessScheme, Seen, SeenInside, Session, Statement,
    TableForm,
};
pub use history::Job;
pub use parameters::{RunParameters, SetupParameters};
