//! `larch dump`: a file of a database as text.

use crate::args::Dump;
use crate::failure::{Failure, Result};
use crate::output::Output;
use larch::DumpDetail;

/// Runs the command.
pub fn run(args: &Dump) -> Result<()> {
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    if !name.ends_with(".sst") && !name.ends_with(".log") && !name.starts_with("MANIFEST-") {
        return Err(Failure::Usage(format!(
            "{} is no file to dump; those of a database end in .sst or .log or begin with MANIFEST-",
            args.file.display()
        )));
    }
    let detail = if args.rows { DumpDetail::Rows } else { DumpDetail::Pages };
    let mut output = Output::new();
    let dumped = larch::dump(&args.file, detail, &mut output);
    // What was shown before an error is often why one looks.
    output.finish()?;
    Ok(dumped?)
}
