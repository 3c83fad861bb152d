//! `larch dump`: prints a file of a database, or all files of a table, as text.

use crate::args::{Common, Dump};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::output::Output;
use larch::check::DumpDetail;

/// Runs the command.
pub fn run(common: &Common, args: &Dump) -> Result<()> {
    let mut output = Output::new();
    let dumped = match &args.table {
        Some(table) => {
            let database = database::open(&args.path, common)?;
            let detail = match (args.rows, args.pages) {
                (true, _) => DumpDetail::Rows,
                (false, true) => DumpDetail::Pages,
                (false, false) => DumpDetail::Loaded,
            };
            database::table(&database, &args.path, table)?.dump(detail, &mut output)
        }
        None => {
            check_name(args)?;
            let detail = if args.rows { DumpDetail::Rows } else { DumpDetail::Pages };
            larch::check::dump(&args.path, detail, &mut output)
        }
    };
    // What came before an error is printed, too: the damage that causes it is often the reason for the dump.
    output.finish()?;
    Ok(dumped?)
}

fn check_name(args: &Dump) -> Result<()> {
    let name = args.path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".sst") || name.ends_with(".log") || name.starts_with("MANIFEST-") {
        return Ok(());
    }
    Err(CommandFailure::Usage(format!(
        "{} is no file to dump: files of a database end in .sst or .log or begin with MANIFEST-; for a directory say which \
         table, as in larch dump DIR TABLE",
        args.path.display()
    )))
}
