//! `larch scan`: rows in the order of their keys.

use crate::args::{Common, Scan, ScanFormat};
use crate::database;
use crate::failure::{Failure, Result};
use crate::layout::Layout;
use crate::output::{Output, Printer};
use std::ops::{Bound, Deref};

#[cfg(test)]
mod tests;

/// Runs the command.
pub fn run(common: &Common, args: &Scan) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let table = database::table(&database, &args.dir, &args.table)?;
    let layout = database::layout(&table)?;
    let mut output = Output::new();
    if let Some(range) = range(args, &layout)? {
        let rows = table.range(range);
        let limit = usize::try_from(args.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        if args.reverse {
            print(rows.rev().take(limit), args, &layout, &mut output)?;
        } else {
            print(rows.take(limit), args, &layout, &mut output)?;
        }
    }
    output.finish()
}

fn print<K: Deref<Target = [u8]>, V: Deref<Target = [u8]>>(
    rows: impl Iterator<Item = larch::Result<(K, V)>>,
    args: &Scan,
    layout: &Layout,
    output: &mut Output,
) -> Result<()> {
    let mut printer = Printer::new(layout);
    for row in rows {
        let (key, value) = match row {
            Ok(row) => row,
            Err(error) => {
                // What was read before the damage is good, and may be all that is left.
                output.flush()?;
                return Err(error.into());
            }
        };
        output.write(|line| match (args.keys, args.format) {
            (false, ScanFormat::Tsv) => printer.tsv(&key, &value, line),
            (false, ScanFormat::Jsonl) => printer.json(&key, &value, line),
            (true, ScanFormat::Tsv) => printer.key(&key, line),
            (true, ScanFormat::Jsonl) => printer.key_json(&key, line),
        })?;
    }
    Ok(())
}

/// Keys from the first on, up to the second.
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys that were asked for; `None` if there can be none.
fn range(args: &Scan, layout: &Layout) -> Result<Option<Range>> {
    let bound = |text: &Option<std::ffi::OsString>| {
        text.as_ref().map(|text| layout.bound_from_text(text.as_encoded_bytes())).transpose().map_err(Failure::Usage)
    };
    let (from, to, prefix) = (bound(&args.from)?, bound(&args.to)?, bound(&args.prefix)?);
    let after = prefix.as_deref().and_then(after_prefix);
    let from = from.max(prefix);
    let to = match (to, after) {
        (Some(to), Some(after)) => Some(to.min(after)),
        (to, after) => to.or(after),
    };
    if to.as_ref().is_some_and(|to| from.as_deref().unwrap_or_default() >= to.as_slice()) {
        return Ok(None);
    }
    Ok(Some((from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Excluded))))
}

/// The first bytes after all that start with `prefix`; `None` if nothing comes after them.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let end = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut after = prefix[..=end].to_vec();
    after[end] += 1;
    Some(after)
}
