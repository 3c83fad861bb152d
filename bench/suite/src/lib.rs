//! The command `larch bench`: workloads on stores. The crate opens stores only through the schemes that the binary
//! passes in, which depend on how it was built. The one exception is the comparison with pgbench, which uses PostgreSQL.

pub mod args;
mod client_cost;
mod compare_command;
mod ending;
mod kv_command;
mod live;
mod machine_kind;
mod merge_command;
pub mod metrics;
mod objective;
mod picture_command;
mod rated;
mod regress_command;
mod replay_command;
mod report_command;
pub mod report_page;
pub mod results;
mod rounds;
mod rows_command;
mod search_command;
mod slowed;
pub mod stop;
pub mod targets;
mod tpcc_command;
mod tpcc_runs;
mod trials_command;
mod worker_command;
mod workers;
mod ycsb_command;

pub use args::Measurement;

use ending::Ending;
use harness::{Failure, Scheme};
use std::io::Write as _;
use std::process::ExitCode;

/// The stores that can be opened.
#[derive(Clone, Copy)]
pub struct Stores<'s> {
    /// The schemes of stores with keys and values.
    pub key_value: &'s [Scheme],
    /// The schemes of stores with row access.
    pub row_access: &'s [row_access::RowAccessScheme],
    /// The schemes of stores with rows in partitions.
    pub partitions: &'s [kv::KvScheme],
    /// The schemes on which TPC-C runs.
    pub tpcc: &'s [tpcc::TpccScheme],
    /// Compares the key-value driver with cassandra-stress; `None` if the binary has no Cassandra.
    pub kv_client_cost: Option<KvClientCost>,
}

impl<'s> Stores<'s> {
    /// The names of the row-access, partition and TPC-C schemes.
    fn other_names(&self) -> Vec<&'s str> {
        let rows = self.row_access.iter().map(|scheme| scheme.name);
        let partitions = self.partitions.iter().map(|scheme| scheme.name);
        rows.chain(partitions).chain(self.tpcc.iter().map(|scheme| scheme.name)).collect()
    }
}

/// Compares the processor time of two clients. The first argument asks for a short comparison; the second is called
/// with a message for each run.
pub type KvClientCost = fn(bool, &mut dyn FnMut(&str)) -> Result<kit::client_cost::Comparison, Failure>;

/// Measures `what` on `stores` and returns the exit code: 0 if everything was measured; 1 if a goal was missed,
/// nothing was measured, more than one operation in a hundred failed, or rows were wrong; 2 if the arguments are
/// wrong; 3 if a store failed or the result could not be written; 4 if a comparison cannot tell; 130 after ^C.
pub fn run(what: &Measurement, stores: Stores<'_>) -> ExitCode {
    let schemes = stores.key_value;
    match what {
        Measurement::Targets => ended(print(&targets::list(schemes, &stores.other_names())).map(|()| true)),
        Measurement::Ycsb(args) => exit_code(ycsb_command::run(args, schemes)),
        Measurement::Rows(command) => exit_code(rows_command::run(command, stores.row_access)),
        Measurement::Kv(args) => exit_code(kv_command::run(args, stores.partitions)),
        Measurement::Tpcc(command) => exit_code(tpcc_command::run(command, stores.tpcc)),
        Measurement::Picture(args) => ended(picture_command::run(args).map(|()| true)),
        Measurement::Merge(args) => ended(merge_command::run(args).map(|()| true)),
        Measurement::Worker(args) => exit_code(worker_command::run(args, stores)),
        Measurement::Report(args) => ended(report_command::run(args).map(|()| true)),
        Measurement::Replay(args) => exit_code(replay_command::run(args)),
        Measurement::Compare(args) => exit_code(compare_command::run(args)),
        Measurement::Search(args) => exit_code(search_command::run(args, stores)),
        Measurement::Regress(args) => exit_code(regress_command::run(args)),
        Measurement::CompareTrials(args) => ended(trials_command::run(args)),
        Measurement::Generator(args) => ended(client_cost::generator(args)),
        Measurement::Pgbench(args) => ended(client_cost::pgbench(args)),
        Measurement::KvClientCost(args) => ended(client_cost::kv(args, stores.kv_client_cost)),
    }
}

/// The exit code of a command that returns an [`Ending`].
fn exit_code(done: Result<Ending, Failure>) -> ExitCode {
    done.map_or_else(|failure| ended(Err(failure)), Ending::code)
}

/// The exit code of a command that reached its goals (`true`), missed a goal (`false`) or failed.
pub fn ended(done: Result<bool, Failure>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            say(&format!("larch: {failure}"));
            ExitCode::from(match failure.kind {
                "target" => 2,
                stop::INTERRUPTED => 130,
                _ => 3,
            })
        }
    }
}

/// Prints a line to stderr and ignores errors, so that a closed stderr does not end a measurement. While a view has the
/// screen, the line is kept until the screen is given back.
pub fn say(line: &str) {
    if live::screen::keeps(line) {
        return;
    }
    writeln!(std::io::stderr(), "{line}").unwrap_or_default();
}

/// Prints to standard output. A broken pipe is not a failure.
pub fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(|error| Failure::session("output", format!("cannot write the output: {error}"))),
    }
}
