//! `larch replicate`: brings another database up to date with the commits of a database. How far it has come is a row of
//! the other database, which is written in the same commits as the rows. So a commit is taken once, whatever ends the
//! command. The first database should sync its commits: what a power failure takes back there stays in the second one.

use super::changes::PAUSE;
use crate::args::{self, Common};
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::size;
use larch::options::Expiry;
use larch::past::{Change, ChangeKind};
use larch::{Batch, Database, Readable, Snapshot, Table, TableOptions, Version};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::time::Duration;

/// The table of the second database that says how far it has come. Its keys begin with the number of the first database.
/// The row with this number alone has the last version that was taken. With the number of a table, it has the version
/// from which on changes of this table are taken, and the name of the table.
const POSITIONS: &str = "replicated from";

/// Commits are taken together until they have this many changes.
const TOGETHER: usize = 1000;

/// What was taken.
#[derive(Default, Serialize)]
struct Report {
    /// Rows that were copied the first time.
    rows: u64,
    commits: u64,
    changes: u64,
    /// The version of the first database that the second one has now.
    version: u64,
}

/// Runs the command.
pub fn run(common: &Common, args: &args::Replicate) -> Result<()> {
    let interrupt = Interrupt::caught();
    let from = database::open(&args.from, common)?;
    let to = database::open_or_create(&args.to, common)?;
    let positions = match to.existing_table(POSITIONS)? {
        Some(positions) => positions,
        None if to.tables().is_empty() => to.table(POSITIONS)?,
        None => return Err(refused(args, "has tables that are not from it")),
    };
    let mut replica = Replica { from: &from, to: &to, positions, tables: HashMap::new(), report: Report::default() };
    let done = replica.run(args, &interrupt);
    let report = std::mem::take(&mut replica.report);
    drop(replica);
    to.close()?;
    done?;
    let mut output = Output::new();
    if args.json {
        output.json(&report)?
    } else {
        output.line(report.text())?
    }
    output.finish()
}

struct Replica<'d> {
    from: &'d Database,
    to: &'d Database,
    positions: Table,
    /// The tables that were copied, by their numbers in the first database.
    tables: HashMap<u32, Copied>,
    report: Report,
}

/// A table that was copied.
struct Copied {
    table: Table,
    /// The version whose rows were copied. Older changes are in them.
    since: Version,
}

impl Replica<'_> {
    /// The key of the position.
    fn key(&self) -> String {
        format!("{:016x}", self.from.id())
    }

    /// The key of the row for a table.
    fn key_of(&self, number: u32) -> String {
        format!("{} {number:08x}", self.key())
    }

    fn run(&mut self, args: &args::Replicate, interrupt: &Interrupt) -> Result<()> {
        let position = match self.positions.get(self.key())? {
            None if self.positions.is_empty()? => {
                let version = self.from.version();
                self.positions.insert(self.key(), version.0.to_string())?;
                version
            }
            None => return Err(refused(args, "was replicated from another database")),
            Some(position) => Version(number(&position).ok_or_else(|| refused(args, "has a damaged position"))?),
        };
        self.load_tables(args)?;
        self.copy_tables(interrupt)?;
        // Older changes are in the copies.
        let since = self.tables.values().map(|copied| copied.since).min().unwrap_or(position);
        let begin = position.max(since);
        self.report.version = begin.0;
        let mut changes = self.from.changes(begin).map_err(|error| match error {
            larch::Error::NotKept { .. } => refused(args, "has commits that it does not have, as if it was set back"),
            error => error.into(),
        })?;
        let mut next = Vec::new();
        while interrupt.goes_on().is_continue() {
            let mut batch = self.to.batch().own_times();
            let (mut count, mut commits, mut position) = (0, 0, changes.position());
            while count < TOGETHER {
                if next.is_empty() {
                    next = changes.next_commit().map_err(|error| gone(args, error))?;
                }
                let is_new = |change: &Change| !self.tables.contains_key(&change.table_number());
                if count > 0 && next.iter().any(is_new) {
                    // Tables are copied between two batches.
                    break;
                }
                position = changes.position();
                if next.is_empty() {
                    break;
                }
                if next.iter().any(is_new) {
                    self.copy_tables(interrupt)?;
                }
                count += next.len();
                commits += 1;
                std::mem::take(&mut next).iter().try_for_each(|change| self.take(&mut batch, change))?;
            }
            if position.0 > self.report.version {
                batch.insert(&self.positions, self.key(), position.0.to_string());
                batch.commit()?;
                self.report.commits += commits;
                self.report.changes += count as u64;
                self.report.version = position.0;
            }
            // New tables need not have changes: a clone has old rows.
            if self.copy_tables(interrupt)? || commits > 0 {
                continue;
            }
            if !args.follow {
                return Ok(());
            }
            changes.wait(PAUSE)?;
        }
        if args.follow { Ok(()) } else { Ok(interrupt.check("the replication")?) }
    }

    /// Reads which tables were copied. Removes what an earlier run has left unfinished.
    fn load_tables(&mut self, args: &args::Replicate) -> Result<()> {
        let mut named = HashSet::from([POSITIONS.to_owned()]);
        for row in self.positions.range(format!("{} ", self.key())..format!("{}!", self.key())) {
            let (key, value) = row?;
            let damaged = || refused(args, "has a damaged position");
            let of = std::str::from_utf8(&key).ok().and_then(|key| u32::from_str_radix(&key[17..], 16).ok());
            let value = std::str::from_utf8(&value).ok().and_then(|value| value.split_once(' '));
            let (of, (since, name)) = of.zip(value).ok_or_else(damaged)?;
            let since = Version(number(since.as_bytes()).ok_or_else(damaged)?);
            match self.to.existing_table(name)? {
                Some(table) => {
                    named.insert(name.to_owned());
                    self.tables.insert(of, Copied { table, since });
                }
                None => self.positions.remove(&key)?,
            }
        }
        for name in self.to.tables().into_iter().filter(|name| !named.contains(name)) {
            self.to.drop_table(&name)?;
        }
        Ok(())
    }

    /// Copies the tables that were not copied yet, and drops those that the first database has no more. Returns whether it
    /// has copied one.
    fn copy_tables(&mut self, interrupt: &Interrupt) -> Result<bool> {
        let mut has_copied = false;
        let tables = self.from.tables().into_iter().map(|name| self.from.existing_table(&name));
        let tables: Vec<Table> = tables.filter_map(Result::transpose).collect::<larch::Result<_>>()?;
        let gone: Vec<u32> =
            self.tables.keys().copied().filter(|of| tables.iter().all(|table| table.number() != *of)).collect();
        for of in gone {
            // If this ends between the two, the next run removes the table.
            self.positions.remove(self.key_of(of))?;
            if let Some(copied) = self.tables.remove(&of) {
                self.to.drop_table(copied.table.name())?;
            }
        }
        for source in tables {
            if self.tables.contains_key(&source.number()) || source.name() == POSITIONS {
                continue;
            }
            // A copy that was not finished, or a table whose name was given to another one, begins anew.
            self.to.drop_table(source.name())?;
            let options = source.options();
            let table = self.to.table_with(source.name(), TableOptions { expiry: Expiry::Never, ..options.clone() })?;
            let snapshot = self.from.snapshot();
            self.report.rows += copy(&snapshot, (self.from, &source), (self.to, &table), interrupt)?;
            // The rows have the times that they have in the first database.
            table.alter(|altered| altered.expiry = options.expiry)?;
            let since = snapshot.version();
            self.positions.insert(self.key_of(source.number()), format!("{} {}", since.0, source.name()))?;
            self.tables.insert(source.number(), Copied { table, since });
            has_copied = true;
        }
        Ok(has_copied)
    }

    fn take(&self, batch: &mut Batch, change: &Change) -> Result<()> {
        // A table that was dropped meanwhile is not copied.
        let Some(Copied { table, since }) = self.tables.get(&change.table_number()) else { return Ok(()) };
        if change.version() <= *since {
            return Ok(());
        }
        match change.kind() {
            ChangeKind::Put { key, value, until: None } => batch.insert_parts(table, key, &value),
            ChangeKind::Put { key, value, until: Some(until) } => batch.insert_parts_until(table, key, &value, until),
            ChangeKind::Merge { key, op } => batch.merge(table, key, op),
            ChangeKind::Erase { key } => batch.remove(table, key),
            ChangeKind::EraseRange { start, end: Some(end) } => batch.remove_range(table, start..end),
            ChangeKind::EraseRange { start, end: None } => batch.remove_range(table, start..),
            ChangeKind::Failed { why, .. } => {
                return Err(CommandFailure::Input(format!("this change cannot be replicated: {why}")));
            }
            other => return Err(CommandFailure::Input(format!("this release cannot replicate the change {other:?}"))),
        }
        Ok(())
    }
}

/// A number in a row of the positions.
fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A batch of rows that expire is committed when it has this many.
const EXPIRING_ROWS: usize = 256;

/// The parts of a value, and the time until which it is there.
type TimedParts = (Vec<Vec<u8>>, Option<Duration>);

/// Copies the rows of a table, and returns their number.
fn copy(
    snapshot: &Snapshot,
    (from, source): (&Database, &Table),
    (to, target): (&Database, &Table),
    interrupt: &Interrupt,
) -> Result<u64> {
    let mut import = target.import()?;
    let mut rows = 0;
    // An import takes no rows that expire. They are written beside it, many at a time.
    let (may_expire, mut expiring) = (from.may_expire(), to.batch());
    let groups = source.options().groups;
    // The values with times of a table with column groups.
    let selection = (!groups.is_empty()).then(|| source.select(&groups)).transpose()?;
    let (whole, selected) =
        (source.at(snapshot)?, selection.as_ref().map(|selection| selection.at(snapshot)).transpose()?);
    let timed = |key: &[u8]| -> larch::Result<Option<TimedParts>> {
        let Some(selected) = &selected else {
            return Ok(whole.get_until(key)?.map(|(value, until)| (vec![value.to_vec()], until)));
        };
        let found = selected.get_until(key)?;
        Ok(found.map(|(parts, until)| (parts.iter().map(|part| part.to_vec()).collect(), until)))
    };
    let mut add = |key: &[u8], parts: &[&[u8]]| {
        rows += 1;
        // A row may have expired since it was read, or a part of it that others were merged into.
        match if may_expire { timed(key)? } else { None } {
            Some((parts, Some(until))) => {
                expiring.insert_parts_until(target, key, &parts, until);
                if expiring.len() == EXPIRING_ROWS {
                    std::mem::replace(&mut expiring, to.batch()).commit()?;
                }
            }
            Some((parts, None)) => import.add_parts(key, &parts)?,
            None if may_expire => {}
            None => import.add_parts(key, parts)?,
        }
        match interrupt.goes_on() {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(larch::Error::Cancelled("the copy")),
        }
    };
    if groups.is_empty() {
        for row in snapshot.range(source, ..) {
            let (key, value) = row?;
            add(&key, &[&value])?;
        }
    } else {
        for row in snapshot.select(&source.select(&groups)?)?.range(..) {
            let (key, parts) = row?;
            let parts: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
            add(&key, &parts)?;
        }
    }
    import.finish(|_| interrupt.goes_on())?;
    expiring.commit()?;
    Ok(rows)
}

/// Says what to do if the changes that the second database lacks are gone.
fn gone(args: &args::Replicate, error: larch::Error) -> CommandFailure {
    match error {
        larch::Error::ChangesGone { .. } => refused(
            args,
            &format!(
                "cannot be brought up to date ({error}), so retain more of it, as with larch retain, and begin again:"
            ),
        ),
        error => error.into(),
    }
}

fn refused(args: &args::Replicate, why: &str) -> CommandFailure {
    CommandFailure::Usage(format!(
        "{} {why}; name a directory that is not there yet, to which all rows of {} are copied",
        args.to.display(),
        args.from.display()
    ))
}

impl Report {
    fn text(&self) -> String {
        let Self { rows, commits, changes, version } = self;
        let copied = if *rows > 0 { format!("{} copied, then ", size::of(*rows, "row")) } else { String::new() };
        format!(
            "{copied}{} with {}: up to date with version {}",
            size::of(*commits, "commit"),
            size::of(*changes, "change"),
            size::count(*version)
        )
    }
}
