//! `larch follow`: follows a database that another process writes to, and prints a line of numbers each time there
//! is something new.

use crate::args::{self, Common};
use crate::failure::Result;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::size;
use larch::machine::Machine;
use larch::stats::Metrics;
use larch::{Database, Follow, Version};
use serde::Serialize;
use std::time::Duration;

/// The time between two checks for something new.
const PAUSE: Duration = Duration::from_millis(100);

/// What the database shows now.
#[derive(Serialize)]
struct Shown {
    /// The last commit that is shown. All earlier commits are shown, too.
    version: u64,
    tables: usize,
    files: u64,
    /// The total length of the database's files.
    file_bytes: u64,
    /// The memory of rows that are not in files yet.
    memory_bytes: u64,
    /// The memory of cached pages.
    cached_bytes: u64,
    /// Why the writer cannot be followed, or `None` if it can.
    trouble: Option<String>,
}

/// Runs the command.
pub fn run(common: &Common, args: &args::Follow) -> Result<()> {
    let what = if args.files { Follow::Files } else { Follow::Commits };
    let interrupt = Interrupt::caught();
    let database = common.builder(&args.dir)?.create(false).follow(what).open()?;
    let (clock, mut output) = (Machine::real().clock, Output::new());
    let (mut lines, mut last) = (0, None);
    while interrupt.goes_on().is_continue() && args.lines.is_none_or(|most| lines < most) {
        let shown = Shown::of(&database);
        let now = Some((shown.version, shown.files, shown.trouble.is_some()));
        if now == last {
            clock.sleep(PAUSE);
            continue;
        }
        (last, lines) = (now, lines + 1);
        let json = || serde_json::to_string(&shown).expect("it has no maps");
        output.line(if args.json { json() } else { shown.to_string() })?;
        output.flush()?;
    }
    output.finish()
}

impl Shown {
    fn of(database: &Database) -> Self {
        let (Version(version), tables) = (database.version(), database.tables().len());
        let Metrics { files, file_bytes, memtable_bytes, troubles, cache, .. } = database.metrics();
        let trouble = troubles.first().map(|trouble| trouble.cause.to_string());
        Self {
            version,
            tables,
            files,
            file_bytes,
            memory_bytes: memtable_bytes,
            cached_bytes: cache.used_bytes,
            trouble,
        }
    }
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { version, tables, files, .. } = self;
        let (tables, files) = (size::of(*tables as u64, "table"), size::of(*files, "file"));
        let [bytes, memory, cached] = [self.file_bytes, self.memory_bytes, self.cached_bytes].map(size::bytes);
        write!(f, "version {version}: {tables}, {files} of {bytes}; in memory {memory} of rows, {cached} of pages")?;
        self.trouble.as_ref().map_or(Ok(()), |trouble| write!(f, "; cannot follow: {trouble}"))
    }
}
