//! `larch metrics`: prints the counters of the process that writes to a database, or its own if no process publishes
//! them, and says whose they are.

use crate::args::{self, Common};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use larch::stats::WriterMetrics;

/// Whose figures are printed if no process that writes publishes its own.
const NOBODY: &str = "this command, which has opened the database to read it; no process that writes to the database \
                      publishes its own";

/// Runs the command.
pub fn run(common: &Common, args: &args::Metrics) -> Result<()> {
    let (writer, whose, json, prometheus) = match common.builder(&args.dir)?.writer_metrics()? {
        Some(WriterMetrics { process, json, prometheus, .. }) => {
            (process.to_string(), format!("process {process}, which writes to the database"), json, prometheus)
        }
        None => {
            let metrics = database::open(&args.dir, common)?.metrics();
            ("null".to_owned(), NOBODY.to_owned(), metrics.to_json(), metrics.to_prometheus())
        }
    };
    let mut output = Output::new();
    if args.prometheus {
        output.line(format!("# The figures are those of {whose}.\n{}", prometheus.trim_end()))?;
    } else {
        let members = json.trim_end().trim_start_matches('{');
        output.line(format!("{{\n  \"writer\": {writer},\n  \"whose\": \"{whose}\",{members}"))?;
    }
    output.finish()
}
