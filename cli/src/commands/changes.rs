//! `larch changes`: prints what each commit of a database changed, in the order of the commits.

use super::retain::time;
use crate::args::{self, At, ChangeFormat, Common};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::interrupt::Interrupt;
use crate::layout::Layout;
use crate::output::{Output, Printer};
use crate::stdout_file;
use larch::MergeOp;
use larch::past::{Change, ChangeKind, Changes, PastValue};
use larch::{Database, Version};
use std::collections::HashMap;
use std::time::Duration;

/// How long the command waits for more commits before it looks whether it was interrupted.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Runs the command.
pub fn run(common: &Common, args: &args::Changes) -> Result<()> {
    let interrupt = Interrupt::caught();
    if args.before && !matches!(args.format, ChangeFormat::Jsonl) {
        return Err(CommandFailure::Usage("--before needs --format jsonl".to_owned()));
    }
    let (database, subscription, mut changes) = match &args.subscription {
        None => {
            let database = database::open(&args.dir, common)?;
            let changes = database.changes(begin(&database, args)?)?;
            (database, None, changes)
        }
        Some(_) if common.read_only => {
            return Err(CommandFailure::Usage(
                "--subscription moves a position in the database; leave --read-only out".to_owned(),
            ));
        }
        Some(name) => {
            let database = database::open_to_write(&args.dir, common)?;
            let subscription = database.subscription(name)?;
            let changes = subscription.changes()?;
            (database, Some(subscription), changes)
        }
    };
    for name in &args.table {
        let table = database::table(&database, &args.dir, name)?;
        changes = changes.of(&table)?;
    }
    let (format, before) = (args.format, args.before);
    let mut printed = Printed { database: &database, format, before, layouts: HashMap::new() };
    let (mut output, mut commits) = (Output::new(), 0);
    while interrupt.goes_on().is_continue() && args.most.is_none_or(|most| commits < most) {
        match changes.next_change()? {
            Some(change) => {
                printed.print(&change, &mut output)?;
                commits += u64::from(change.is_last());
            }
            None if args.follow => wait(&changes, &mut output)?,
            None => break,
        }
    }
    output.flush()?;
    if let Some(subscription) = subscription {
        // The command has written the output. If the output is a file, the command syncs it before it moves the position:
        // otherwise a power failure could lose commits that the subscription does not give again.
        stdout_file::sync()?;
        subscription.acknowledge(changes.position())?;
        subscription.sync()?;
    }
    if !args.follow {
        interrupt.check("printing changes")?;
    }
    output.finish()
}

fn wait(changes: &Changes, output: &mut Output) -> Result<()> {
    output.flush()?;
    changes.wait(PAUSE)?;
    Ok(())
}

/// The version after which the changes are printed.
fn begin(database: &Database, args: &args::Changes) -> Result<Version> {
    let Some(text) = &args.from else { return Ok(database.retained_from().unwrap_or_else(|| database.version())) };
    match (database.at(text.as_str()), text.parse()) {
        // The number need not be that of a version that can be read.
        (Err(larch::Error::NoSuchKept { .. }), Ok(number)) => Ok(Version(number)),
        _ => Ok(database::snapshot(database, &At { at: Some(text.clone()) })?.version()),
    }
}

struct Printed<'d> {
    database: &'d Database,
    format: ChangeFormat,
    /// Whether rows come with what they were before.
    before: bool,
    /// How keys and rows are printed, by the numbers of the tables.
    layouts: HashMap<u32, Layout>,
}

impl Printed<'_> {
    fn print(&mut self, change: &Change, output: &mut Output) -> Result<()> {
        let number = change.table_number();
        if !self.layouts.contains_key(&number) {
            let table = self.database.existing_table(change.table())?.filter(|table| table.number() == number);
            let layout = match table {
                Some(table) => database::layout(&table, &args::KeyTypes::default())?,
                // It was dropped meanwhile.
                None => Layout::new(None),
            };
            self.layouts.insert(number, layout);
        }
        let layout = &self.layouts[&number];
        match self.format {
            ChangeFormat::Tsv => output.write(|line| tsv(change, layout, line)),
            ChangeFormat::Jsonl => {
                let is_of_range = matches!(change.kind(), ChangeKind::EraseRange { .. });
                let before = match (self.before && !is_of_range).then(|| self.database.before(change)) {
                    // A table takes its past with it.
                    Some(Err(larch::Error::TableDropped(_))) | None => None,
                    Some(before) => Some(before?),
                };
                output.write(|line| jsonl(change, before.as_ref().map(Option::as_ref), layout, line))
            }
        }
    }
}

fn tsv(change: &Change, layout: &Layout, line: &mut Vec<u8>) {
    let mut printer = Printer::new(layout);
    let mut begin = |what: &str| {
        line.extend_from_slice(format!("{}\t", change.version().0).as_bytes());
        crate::escape::escape(change.table().as_bytes(), line);
        line.extend_from_slice(format!("\t{what}\t").as_bytes());
    };
    match change.kind() {
        ChangeKind::Put { key, value, until: None } => {
            begin("put");
            printer.tsv(key, &value, line);
        }
        ChangeKind::Merge { key, op } => {
            begin("merge");
            printer.key(key, line);
            line.truncate(line.trim_ascii_end().len());
            let (how, operand) = described(&op);
            line.extend_from_slice(format!("\t{how}\t").as_bytes());
            crate::escape::escape(&operand, line);
            line.push(b'\n');
        }
        ChangeKind::Failed { key, why } => {
            begin("failed");
            printer.key(key, line);
            line.truncate(line.trim_ascii_end().len());
            line.push(b'\t');
            crate::escape::escape(why.as_bytes(), line);
            line.push(b'\n');
        }
        ChangeKind::Put { key, value, until: Some(until) } => {
            begin("put-until");
            line.extend_from_slice(format!("{}\t", time(until)).as_bytes());
            printer.tsv(key, &value, line);
        }
        ChangeKind::Erase { key } => {
            begin("erase");
            printer.key(key, line);
        }
        ChangeKind::EraseRange { start, end } => {
            begin("erase-range");
            line.extend_from_slice(&layout.text_of_bound(start));
            line.push(b'\t');
            line.extend_from_slice(&end.map(|end| layout.text_of_bound(end)).unwrap_or_default());
            line.push(b'\n');
        }
        other => {
            begin("other");
            line.extend_from_slice(format!("{other:?}\n").as_bytes());
        }
    }
}

/// Writes `change` as a line of JSON, with what its row was before, if that is given.
fn jsonl(change: &Change, before: Option<Option<&PastValue>>, layout: &Layout, line: &mut Vec<u8>) {
    let mut printer = Printer::new(layout);
    let text = |bytes: &[u8]| serde_json::to_string(&String::from_utf8_lossy(bytes)).expect("a text is JSON");
    line.extend_from_slice(format!("{{\"version\":{},\"table\":", change.version().0).as_bytes());
    line.extend_from_slice(text(change.table().as_bytes()).as_bytes());
    let kind = |what: &str, line: &mut Vec<u8>| line.extend_from_slice(format!(",\"change\":\"{what}\"").as_bytes());
    match change.kind() {
        ChangeKind::Put { key, value, until } => {
            kind("put", line);
            if let Some(until) = until {
                line.extend_from_slice(format!(",\"until\":\"{}\"", time(until)).as_bytes());
            }
            line.extend_from_slice(b",\"row\":");
            printer.json(key, &value, line);
            end_value(line);
        }
        ChangeKind::Merge { key, op } => {
            kind("merge", line);
            line.extend_from_slice(b",\"key\":");
            printer.key_json(key, line);
            end_value(line);
            let (how, operand) = described(&op);
            line.extend_from_slice(format!(",\"how\":{},\"operand\":", text(how.as_bytes())).as_bytes());
            line.extend_from_slice(text(&operand).as_bytes());
        }
        ChangeKind::Failed { key, why } => {
            kind("failed", line);
            line.extend_from_slice(b",\"key\":");
            printer.key_json(key, line);
            end_value(line);
            line.extend_from_slice(format!(",\"why\":{}", text(why.as_bytes())).as_bytes());
        }
        ChangeKind::Erase { key } => {
            kind("erase", line);
            line.extend_from_slice(b",\"key\":");
            printer.key_json(key, line);
            end_value(line);
        }
        ChangeKind::EraseRange { start, end } => {
            kind("erase-range", line);
            line.extend_from_slice(format!(",\"from\":{}", text(&layout.text_of_bound(start))).as_bytes());
            if let Some(end) = end {
                line.extend_from_slice(format!(",\"to\":{}", text(&layout.text_of_bound(end))).as_bytes());
            }
        }
        other => kind(&format!("{other:?}").escape_default().to_string(), line),
    }
    match before.map(|before| before.and_then(|before| before.parts.as_ref())) {
        Some(Some(parts)) => {
            line.extend_from_slice(b",\"before\":");
            printer.json(change.key(), parts, line);
            end_value(line);
        }
        Some(None) => line.extend_from_slice(b",\"before\":null"),
        None => {}
    }
    if change.is_last() {
        line.extend_from_slice(b",\"last\":true");
    }
    line.extend_from_slice(b"}\n");
}

/// The name of a merge operator, as an option of `larch merge` where there is one, and its operand.
fn described(op: &MergeOp<'_>) -> (String, Vec<u8>) {
    match *op {
        MergeOp::Add(number) => ("add".to_owned(), number.to_string().into_bytes()),
        MergeOp::Append(bytes) => ("append".to_owned(), bytes.to_vec()),
        MergeOp::Max(bytes) => ("max".to_owned(), bytes.to_vec()),
        MergeOp::Min(bytes) => ("min".to_owned(), bytes.to_vec()),
        MergeOp::Or { at, bytes } => (format!("or at {at}"), bytes.to_vec()),
        MergeOp::Call { function, operand } => (function.to_owned(), operand.to_vec()),
        other => (format!("{other:?}"), Vec::new()),
    }
}

/// Takes away the line end that the printer has put after a value.
fn end_value(line: &mut Vec<u8>) {
    line.truncate(line.trim_ascii_end().len());
}
