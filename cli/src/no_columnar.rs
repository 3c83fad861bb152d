//! Answers for [`columnar`](crate::columnar) in a binary that was built without a query engine.

use crate::args::ScanFormat;
use crate::failure::{CommandFailure, Result};
use crate::layout::Layout;
use crate::output::Output;
use crate::portion::{Columns, Keys};
use larch::{Snapshot, Table};

/// The failure if this binary cannot write files of a format.
pub fn check(format: ScanFormat) -> Result<()> {
    match format {
        ScanFormat::Csv | ScanFormat::Tsv | ScanFormat::Jsonl => Ok(()),
        ScanFormat::Arrow => Err(CommandFailure::not_built("--format arrow", "sql")),
        ScanFormat::Parquet => Err(CommandFailure::not_built("--format parquet", "parquet")),
    }
}

pub fn write(
    _: &Snapshot,
    _: &Table,
    _: &Layout,
    _: &Keys,
    _: &Columns<'_>,
    format: ScanFormat,
    _: &mut Output,
) -> Result<u64> {
    check(format)?;
    unreachable!("text is written elsewhere")
}
