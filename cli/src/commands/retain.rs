//! `larch retain`: says how much of its past a database keeps, and changes it.

use crate::args::{self, Common};
use crate::database;
use crate::failure::Result;
use crate::output::Output;
use crate::size;
use kit::time::Timestamp;
use larch::past::Retention;
use larch::{Database, Table};
use serde::Serialize;
use std::time::Duration;

/// How much is retained.
#[derive(Serialize)]
struct Retained {
    /// The table that was asked for; `None` for the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    /// As the option that asks for it.
    rule: String,
    /// The oldest version that can be read.
    from: Option<u64>,
    /// A time in UTC at which that version was the newest; `None` if no time was noted.
    since: Option<String>,
    newest: u64,
    /// The tables that have a rule of their own, with the rule. Empty if one table was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tables: Vec<(String, String)>,
    /// The older versions of rows that lie in files, for versions with names, snapshots and what is retained.
    older_rows: u64,
    /// The bytes of the pages that have them.
    older_bytes: u64,
}

/// Runs the command.
pub fn run(common: &Common, args: &args::Retain) -> Result<()> {
    let mut output = Output::new();
    let retention = match (args.versions, args.time) {
        (Some(versions), _) => Some(Retention::Versions(versions)),
        (_, Some(time)) => Some(Retention::Time(time)),
        _ if args.everything => Some(Retention::Everything),
        _ if args.nothing => Some(Retention::None),
        _ => None,
    };
    let retained = if retention.is_some() || args.as_others {
        let database = database::open_to_write(&args.dir, common)?;
        let table = args.table.as_ref().map(|name| database::table(&database, &args.dir, name)).transpose()?;
        match (&table, retention) {
            (None, Some(retention)) => database.retain(retention)?,
            (Some(table), Some(retention)) => table.retain(retention)?,
            (Some(table), None) => table.retain_as_database()?,
            (None, None) => {}
        }
        let retained = Retained::of(&database, table.as_ref())?;
        drop(table);
        database.close()?;
        retained
    } else {
        let database = database::open(&args.dir, common)?;
        let table = args.table.as_ref().map(|name| database::table(&database, &args.dir, name)).transpose()?;
        Retained::of(&database, table.as_ref())?
    };
    if args.json {
        output.json(&retained)?
    } else {
        output.line(retained.text())?
    }
    output.finish()
}

impl Retained {
    /// What is kept of `table`, or of the database without one.
    fn of(database: &Database, table: Option<&Table>) -> Result<Self> {
        let of_database = database.retention();
        let from = table.map_or_else(|| database.retained_from(), Table::retained_from);
        let rule = match table.and_then(Table::retention).unwrap_or(of_database) {
            Retention::None if from.is_some() => "for subscriptions".to_owned(),
            retention => rule(retention),
        };
        let since = from.and_then(|from| database.time_of(from)).map(time);
        let (mut older_rows, mut older_bytes, mut tables) = (0, 0, Vec::new());
        for name in database.tables() {
            if table.is_some_and(|table| table.name() != name) {
                continue;
            }
            let Some(other) = database.existing_table(&name)? else { continue };
            let stats = other.stats()?;
            older_rows += stats.history_rows;
            older_bytes += stats.history_bytes + stats.group_history_bytes;
            tables.extend(other.retention().filter(|_| table.is_none()).map(|own| (name, self::rule(own))));
        }
        let (from, newest) = (from.map(|from| from.0), database.version().0);
        let table = table.map(|table| table.name().to_owned());
        Ok(Self { table, rule, from, since, newest, tables, older_rows, older_bytes })
    }

    fn text(&self) -> String {
        let Self { table, rule, from, since, newest, tables, older_rows, older_bytes } = self;
        let newest = size::count(*newest);
        let what = match (from, since) {
            (None, _) => format!("{rule}: only version {newest} and versions with names can be read"),
            (Some(from), None) => format!("{rule}: versions {} to {newest}", size::count(*from)),
            (Some(from), Some(since)) => {
                format!("{rule}: versions {} to {newest}, since {since} UTC", size::count(*from))
            }
        };
        let own: String = tables.iter().map(|(name, rule)| format!("\ntable {name}: {rule}")).collect();
        let table = table.as_ref().map_or(String::new(), |name| format!("table {name}: "));
        format!("{table}{what}{own}\n{} in {}", size::of(*older_rows, "older row"), size::bytes(*older_bytes))
    }
}

/// A rule, as the option that asks for it.
fn rule(retention: Retention) -> String {
    match retention {
        Retention::None => "nothing".to_owned(),
        Retention::Versions(versions) => format!("versions {versions}"),
        Retention::Time(time) => format!("time {}", length(time)),
        Retention::Everything => "everything".to_owned(),
        other => format!("{other:?}"),
    }
}

/// A time since 1970, in UTC.
pub fn time(since: Duration) -> String {
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)).text()
}

/// A length of time as the option takes it.
pub fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds, time.subsec_nanos()) {
        (seconds, 0) if seconds > 0 && seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
        (seconds, 0) if seconds > 0 && seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        (seconds, 0) if seconds > 0 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        (seconds, 0) => format!("{seconds}s"),
        _ => format!("{}ns", time.as_nanos()),
    }
}
