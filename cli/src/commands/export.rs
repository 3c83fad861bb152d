//! `larch export`: writes the rows of a table, or of each table, to a file, and says how to read the file back.

use super::scan::{self, Printing, Work};
use crate::args::{Common, Export, ScanFormat};
use crate::columnar;
use crate::database;
use crate::escape::shown_name;
use crate::failure::{CommandFailure, Result};
use crate::interrupt::Interrupt;
use crate::layout::Layout;
use crate::output::Output;
use crate::portion::{Columns, Keys, Range};
use crate::schema::Format;
use crate::size;
use larch::{Snapshot, Table};
use os::Machine;
use serde::Serialize;
use std::path::Path;

/// What was written to a file.
#[derive(Serialize)]
struct Report<'r> {
    table: &'r str,
    file: String,
    rows: u64,
    bytes: u64,
    seconds: f64,
    /// The command that reads the file back, with `DIR` for the directory of a database; `None` if no command of this
    /// program does.
    back: Option<String>,
}

/// Runs the command.
pub fn run(common: &Common, args: &Export) -> Result<()> {
    let interrupt = Interrupt::caught();
    // Formats that this binary cannot write, and names that say no format, are refused before anything is made.
    match &args.file {
        Some(file) => drop(scan::format(args.format, Some(file))?),
        None => args.format.map_or(Ok(()), columnar::check)?,
    }
    let database = database::open(&args.dir, common)?;
    let tables = database::tables(&database, &args.dir, args.table.as_deref())?;
    let snapshot = database::snapshot(&database, &args.at)?;
    if let Some(directory) = &args.all {
        Machine::real().disk.create_dir(directory).map_err(|error| {
            CommandFailure::Usage(format!("{error}; name a directory that may be made, or one that you may write to"))
        })?;
    }
    let mut output = Output::new();
    for table in &tables {
        let layout = database::layout(table, &args.range.types)?;
        let file = match (&args.file, &args.all) {
            (Some(file), _) => file.clone(),
            (None, Some(directory)) => directory.join(name_of(args, table, &layout)),
            (None, None) => unreachable!("the arguments name a file or a directory"),
        };
        let range = scan::range(&args.range, &layout)?;
        write(args, &snapshot, table, &layout, &file, range, &interrupt, &mut output)?;
    }
    output.finish()
}

/// The name of a table's file in the directory of all files.
fn name_of(args: &Export, table: &Table, layout: &Layout) -> String {
    let format = args.format.unwrap_or(match layout.schema().map(|schema| schema.format) {
        Some(Format::Csv) => ScanFormat::Csv,
        Some(Format::Jsonl) => ScanFormat::Jsonl,
        Some(Format::Tsv) | None => ScanFormat::Tsv,
    });
    // The name of a table may have characters that the name of a file cannot have.
    let is_right = |letter: char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_' | '.');
    let mut name = String::new();
    for (at, letter) in table.name().chars().enumerate() {
        match letter {
            letter if is_right(letter) && !(at == 0 && letter == '.') => name.push(letter),
            letter => letter.to_string().bytes().for_each(|byte| name.push_str(&format!("%{byte:02X}"))),
        }
    }
    let ending = match format {
        ScanFormat::Csv => "csv",
        ScanFormat::Tsv => "tsv",
        ScanFormat::Jsonl => "jsonl",
        ScanFormat::Arrow => "arrow",
        ScanFormat::Parquet => "parquet",
    };
    let compression = args.compress.map(|how| format!(".{}", crate::compressed::Compression::from(how).ending()));
    format!("{name}.{ending}{}", compression.unwrap_or_default())
}

/// Writes a table to its file.
#[expect(clippy::too_many_arguments, reason = "the place and the content of one file")]
fn write(
    args: &Export,
    snapshot: &Snapshot,
    table: &Table,
    layout: &Layout,
    path: &Path,
    range: Option<Range>,
    interrupt: &Interrupt,
    output: &mut Output,
) -> Result<()> {
    let clock = Machine::real().clock;
    let started = clock.now();
    let format = scan::format(args.format, Some(path))?;
    let mut file = Output::to_file(path, args.overwrite)?;
    let printing = Printing { table, layout, columns: Columns::default(), format, names: true };
    let rows = printing.print(snapshot, &Keys::of(range), Some(Work::new(interrupt.clone())), &mut file)?;
    let bytes = file.close()?;
    let time = clock.now().saturating_sub(started);
    let back = back(table, layout, format, path);
    let report = Report {
        table: table.name(),
        file: path.display().to_string(),
        rows,
        bytes,
        seconds: time.as_secs_f64(),
        back,
    };
    if args.json {
        return output.json(&report);
    }
    output.line(format!(
        "table {}: {} in {} ({}) in {}",
        shown_name(report.table),
        size::of(rows, "row"),
        report.file,
        size::bytes(bytes),
        size::seconds(time)
    ))?;
    match &report.back {
        Some(command) => output.line(format!("  back: {command}")),
        None => Ok(()),
    }
}

/// The command that reads a file back into a new table, or into a table of the same kind.
fn back(table: &Table, layout: &Layout, format: ScanFormat, path: &Path) -> Option<String> {
    let format = format.text()?;
    let (name, file) = (shell_word(table.name()), shell_word(&path.to_string_lossy()));
    let formats = [("csv", ScanFormat::Csv), ("tsv", ScanFormat::Tsv), ("jsonl", ScanFormat::Jsonl)];
    let (word, _) = formats.iter().find(|(_, of)| of.text() == Some(format))?;
    let is_named =
        crate::file_name::FileName::of(path).is_ok_and(|said| said.format.and_then(ScanFormat::text) == Some(format));
    let asked = if is_named { String::new() } else { format!(" --format {word}") };
    match layout.schema() {
        Some(schema) if schema.format.to_string() == *word => {
            let options: Vec<String> = schema.import_options().iter().map(|option| shell_word(option)).collect();
            Some(format!("larch import DIR {name} {file}{asked} {}", options.join(" ")))
        }
        Some(_) => Some(format!("larch load DIR {name} {file}{asked}")),
        // Only the program that made such a table can write its rows.
        None if table.options().groups.len() > 1 => None,
        None => {
            let types = layout.tuple().map(|fields| format!(" --key-types {}", shell_word(&fields.to_string())));
            Some(format!("larch load DIR {name} {file}{asked}{}", types.unwrap_or_default()))
        }
    }
}

/// A word in the form in which a shell takes it as one.
fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:,+=@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
