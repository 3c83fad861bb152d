//! Tests of the built program `larch` from outside, as people use it: arguments go in, text and exit codes come
//! out.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests prepare real files and start the real program"
)]

mod arguments;
mod bench;
mod bench_compare;
mod bench_experiment;
mod bench_files;
mod bench_kv;
mod bench_live;
mod bench_postgres;
mod bench_reports;
mod bench_rows;
mod bench_search;
mod bench_stops;
mod bench_tpcc;
mod bench_workers;
mod built;
mod colours;
mod compaction_worker;
mod copies;
mod count;
mod examples;
mod explain;
mod export;
mod follow;
mod full_disk;
mod groups;
mod import;
mod indexes;
mod inspect;
mod keep;
mod kill;
mod load;
mod options;
mod own_store;
mod past;
mod plan;
mod point;
mod progress;
mod repair;
mod scan;
mod session;
mod settings;
mod shell;
mod statistics;
mod tables;
mod terminal;
mod tuples;
