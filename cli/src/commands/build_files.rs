//! `larch build-files`: makes sorted files from the rows of input files, for any database to ingest.

use super::import::{Reading, SortingWork, options, schema};
use crate::args::{BuildFiles, Common};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::input::NOTHING_BUILT;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::schema::Schema;
use crate::size;
use larch::Table;
use larch::bulk::FileBuilder;
use os::Machine;
use serde::Serialize;
use std::path::Path;

/// What was built.
#[derive(Serialize)]
struct Report {
    directory: String,
    #[serde(flatten)]
    work: SortingWork,
}

/// Runs the command.
pub fn run(common: &Common, args: &BuildFiles) -> Result<()> {
    let clock = Machine::real().clock;
    let started = clock.now();
    let like = like(common, args)?;
    let interrupt = Interrupt::caught();
    let mut building: Option<(FileBuilder, Schema)> = None;
    let mut rows_read = 0;
    for file in &args.files {
        let (mut reading, format) = Reading::open(&args.input, file, NOTHING_BUILT)?;
        let ours = schema(&args.input, &reading, format, like.as_ref())?;
        let (files, schema) = match &mut building {
            Some(building) => building,
            None => {
                let mut table = match &like {
                    Some(like) => like.options(),
                    None => options(&args.table_options, &ours)?,
                };
                args.table_options.apply(&mut table)?;
                let files = common.builder(&args.out)?.build_files(table)?;
                building.insert((files, ours.clone()))
            }
        };
        if *schema != ours {
            return Err(CommandFailure::Input(format!(
                "{} would give {ours}, and the input before it {schema}; give inputs of one kind; {NOTHING_BUILT}",
                reading.name
            )));
        }
        rows_read += reading.read(schema, &mut |row| {
            interrupt.check("the building of files")?;
            match &row.parts[..] {
                [value] => files.add(&row.key, value),
                parts => files.add_parts(&row.key, parts),
            }
        })?;
    }
    let (files, schema) = building.expect("the arguments name an input");
    let mut writing = Progress::bytes("writing", 0);
    let done = files.finish(writing.until(&interrupt))?;
    drop(writing);
    let time = clock.now().saturating_sub(started);
    let work = SortingWork::new(rows_read, &done, time);
    let report = Report { directory: args.out.display().to_string(), work };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
        return output.finish();
    }
    output.line(format!("{}: {schema}", report.directory))?;
    output.line(format!(
        "built {} ({}) in {}, {} rows/s",
        size::of(report.work.rows, "row"),
        size::bytes(report.work.bytes),
        size::seconds(time),
        size::count(report.work.rows_per_second)
    ))?;
    report.work.print(&mut output)?;
    output.finish()
}

/// The table that `--like` names, if any.
fn like(common: &Common, args: &BuildFiles) -> Result<Option<Table>> {
    let [dir, table] = &args.like[..] else { return Ok(None) };
    let dir = Path::new(dir);
    let database = database::open_to_copy(dir, common)?;
    database::table(&database, dir, table).map(Some)
}
