//! `larch backup` makes a backup, and `larch backups` lists the backups that exist.

use crate::args::{Backup, Common, InspectBackups};
use crate::database;
use crate::failure::Result;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::places;
use crate::progress::Progress;
use crate::size;
use crate::stored::Stored;
use kit::time::Timestamp;
use larch::backup::{BackupInfo, Backups};
use os::Machine;
use serde::Serialize;
use std::path::Path;

/// What the backup consists of, and what it has added to the directory.
#[derive(Serialize)]
struct Report {
    backup: u64,
    version: u64,
    files: u64,
    bytes: u64,
    new_files: u64,
    new_bytes: u64,
    rewritten_bytes: u64,
    left_out_indexes: u64,
    /// The numbers of the backups that were removed.
    removed: Vec<u64>,
    seconds: f64,
}

/// Opens the backups at the place `dest`, which is a directory or a store.
pub fn backups_at(dest: &Path) -> Result<Backups> {
    let backups = Backups::at(dest);
    Ok(match places::machine(dest, Stored::Backups)? {
        Some(machine) => backups.on(&machine),
        None => backups,
    })
}

/// Runs `larch backup`.
pub fn run(common: &Common, args: &Backup) -> Result<()> {
    let database = database::open_to_copy(&args.dir, common)?;
    let clock = Machine::real().clock;
    let started = clock.now();
    let mut progress = Progress::bytes("copying", 0);
    let interrupt = Interrupt::caught();
    let backups = backups_at(&args.dest)?;
    let made = match &args.at {
        None => database.backup_to(&backups, progress.until(&interrupt)),
        Some(when) => database::as_of(when, |when| database.backup_at(&backups, when, progress.until(&interrupt))),
    };
    drop(progress);
    let made = made?;
    let removed = args.keep.map_or(Ok(Vec::new()), |count| backups.keep(count))?;
    let time = clock.now().saturating_sub(started);
    let report = Report {
        backup: made.number,
        version: made.version.0,
        files: made.files,
        bytes: made.bytes,
        new_files: made.new_files,
        new_bytes: made.new_bytes,
        rewritten_bytes: made.rewritten_bytes,
        left_out_indexes: made.left_out_indexes,
        removed,
        seconds: time.as_secs_f64(),
    };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
        return output.finish();
    }
    output.line(format!(
        "backup {} has version {}: {} of {}, {} of {} new, in {}",
        report.backup,
        size::count(report.version),
        size::of(report.files, "file"),
        size::bytes(report.bytes),
        size::count(report.new_files),
        size::bytes(report.new_bytes),
        size::seconds(time)
    ))?;
    if args.at.is_some() {
        output.line(format!(
            "{} written again, because files have newer rows, too; {} made later left out",
            size::bytes(report.rewritten_bytes),
            size::indexes(report.left_out_indexes)
        ))?;
    }
    for number in &report.removed {
        output.line(format!("backup {number} was removed"))?;
    }
    output.finish()
}

/// A backup that exists.
#[derive(Serialize)]
struct Listed {
    backup: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<String>,
    version: u64,
    /// The time in UTC.
    time: String,
    files: u64,
    bytes: u64,
}

/// Runs `larch backups`.
pub fn list(args: &InspectBackups) -> Result<()> {
    let mut output = Output::new();
    for BackupInfo { number, version, time, files, bytes, damage, .. } in backups_at(&args.dest)?.list()? {
        let time = Timestamp(i64::try_from(time.as_micros()).unwrap_or(i64::MAX)).text();
        let listed = Listed { backup: number, damage, version: version.0, time, files, bytes };
        if args.json { output.json(&listed)? } else { output.line(text(&listed))? }
    }
    output.finish()
}

fn text(listed: &Listed) -> String {
    match &listed.damage {
        Some(why) => format!("backup {}: {why}", listed.backup),
        None => format!(
            "backup {}, {} UTC, version {}: {} of {}",
            listed.backup,
            listed.time,
            size::count(listed.version),
            size::of(listed.files, "file"),
            size::bytes(listed.bytes)
        ),
    }
}
