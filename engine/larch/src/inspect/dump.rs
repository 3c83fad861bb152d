//! Prints SSTs, logs and manifests as text for people: one file, or all SSTs of a table. This module does not know
//! how an SST is printed.

use crate::base::error::{Error, Result};
use crate::base::expiry::Expiry;
use crate::base::operand;
use crate::base::ops::Op;
use crate::base::options::TableOptions;
use crate::base::record::{LogError, LogKind, RecordReader};
use crate::base::retention::{Retained, TableRetained, TableRule};
use crate::base::subscription::Subscriber;
use crate::base::table::IndexInfo;
use crate::log::LogReader;
use crate::manifest::db_file::sst_name;
use crate::manifest::edit::Framing;
use crate::manifest::origin::FileOrigin;
use crate::manifest::times::VersionTime;
use crate::manifest::{Edit, NewFile, TableFiles, origin};
use crate::view::ahead::near_bytes;
use os::sync::Arc;
use os::{Access, Machine};
use pages::{Admit, Loaded, PageCache, Reason, Session};
use sst::{DumpDetail, Sst};
use std::io::{self, Write};
use std::path::Path;

/// Prints the SST, log or manifest at `path` to `out`, as text for people. The database is not opened, and another
/// process may be writing to the file. Uses at most 32 MiB of memory for pages. For a log or a manifest, only one
/// record at a time is in memory.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// db.table("fruit")?.insert("apple", "red")?;
/// db.flush()?;
/// let mut text = Vec::new();
/// for file in std::fs::read_dir(&directory)?.flatten() {
///     if file.path().extension().is_some_and(|extension| extension == "sst") {
///         larch::check::dump(file.path(), larch::check::DumpDetail::Rows, &mut text)?;
///     }
/// }
/// assert!(String::from_utf8_lossy(&text).contains("apple"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Page`] if the file cannot be read, if `out` cannot be written, or if an SST is damaged; [`Error::Log`]
/// if a log or a manifest is damaged. What was printed before the damage was found is in `out`.
pub fn dump(path: impl AsRef<Path>, detail: DumpDetail, out: &mut dyn Write) -> Result<()> {
    dump_on(&Machine::real(), path.as_ref(), detail, out)
}

/// As [`dump`], but on any machine, for example a simulated one.
///
/// # Errors
///
/// The errors of [`dump`].
pub fn dump_on(machine: &Machine, path: &Path, detail: DumpDetail, out: &mut dyn Write) -> Result<()> {
    let file = machine.disk.open(path, Access::Read).map_err(|error| Error::io("open", path, error))?;
    let mut magic = [0; 8];
    let read = file.read_at(&mut magic, 0).map_err(|error| Error::io("read", path, error))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if &magic[..read] == b"LARCHLOG" || name.ends_with(".log") || name.starts_with("MANIFEST-") {
        let is_manifest = match RecordReader::open(&*machine.disk, path, LogKind::Manifest, None) {
            Ok(reader) => reader.header().is_some(),
            Err(_) => false,
        };
        return if is_manifest { manifest(machine, path, detail, out) } else { log(machine, path, detail, out) };
    }
    let (meta, origin) = sst::read_origin(&*file, path)?;
    if meta.has_origin {
        let FileOrigin { table, name, groups, index_of, is_run, built } = origin::decode(&origin);
        let (id, name) = (table.unwrap_or(0), name.unwrap_or_default());
        let groups = groups.filter(|groups| !groups.is_empty()).map(|groups| format!(" groups {}", groups.join(" ")));
        let of = index_of.map(|table| format!(", an index of table {table}")).unwrap_or_default();
        let run = if is_run { ", of a transaction that had not committed" } else { "" };
        let groups = groups.unwrap_or_default();
        match built {
            Some(built) => line(out, format_args!("built elsewhere as one of files {built:016x}{groups}"))?,
            None => line(out, format_args!("written for table {id} {name:?}{groups}{of}{run}"))?,
        }
    }
    let cache = PageCache::new(CACHE_BYTES, 1, sst::validate);
    let file = cache.register_on(path, meta.file_id, machine);
    let sst = Sst::new(file, meta, 0, false);
    Ok(sst::dump(&sst, &one_time_session(&cache), detail, out)?)
}

/// Memory for pages: enough for the largest uncompressed page, a node of each level of a tree, and the readahead.
const CACHE_BYTES: u64 = 32 << 20;

/// A session that admits no pages to `cache`, and reads ahead as a range does on a fast disk.
fn one_time_session(cache: &Arc<PageCache>) -> Session {
    Session::new(cache, Reason::Check, Admit::Pass).with_ahead_bytes(near_bytes(cache))
}

/// Prints the files of a table, from the newest to the oldest.
///
/// # Errors
///
/// An error if a file cannot be read or is damaged, or if `out` cannot be written.
pub fn dump_table(files: &TableFiles, cache: &Arc<PageCache>, detail: DumpDetail, out: &mut dyn Write) -> Result<()> {
    let groups = &files.info.options.groups;
    if !groups.is_empty() {
        let names: Vec<String> = groups.iter().enumerate().map(|(i, name)| format!("{i} {name}")).collect();
        line(out, format_args!("groups: {}", names.join(", ")))?;
    }
    for (level, file) in files.files() {
        line(out, format_args!("level {level}: {}", sst_name(file.number, file.epoch)))?;
        if file.sst.version_offset > 0 {
            line(out, format_args!("its versions count from {}", file.sst.version_offset))?;
        }
        match detail {
            DumpDetail::Loaded => sst::dump(&file.sst, &Loaded::new(cache), detail, out)?,
            DumpDetail::Pages | DumpDetail::Rows => {
                sst::dump(&file.sst, &one_time_session(cache), detail, out)?;
            }
        }
        line(out, format_args!(""))?;
    }
    Ok(())
}

fn manifest(machine: &Machine, path: &Path, detail: DumpDetail, out: &mut dyn Write) -> Result<()> {
    let mut reader = RecordReader::open(&*machine.disk, path, LogKind::Manifest, None)?;
    let header = *reader.header().expect("the caller saw a header");
    line(out, format_args!("manifest {} id {:016x}", header.number, header.log_id))?;
    let framing = Framing::of(header.features);
    while let Some(record) = reader.next_record()? {
        line(out, format_args!("record at {}: {} bytes", record.offset, record.payload.len()))?;
        let offset = record.offset;
        let mut payload = record.payload;
        while !payload.is_empty() {
            let edit = Edit::decode(&mut payload, framing);
            match edit.map_err(|unreadable| LogError::unreadable(path, offset, unreadable))? {
                Some(edit) => print_edit(&edit, detail, out)?,
                None => line(out, format_args!("  an optional edit of a newer Larch"))?,
            }
        }
    }
    tail(reader.end(), reader.tear().map(|tear| (tear.offset, tear.why)), out)
}

fn print_edit(edit: &Edit, detail: DumpDetail, out: &mut dyn Write) -> Result<()> {
    match edit {
        Edit::Database(id) => line(out, format_args!("  database {id:016x}")),
        Edit::Epoch(epoch) => line(out, format_args!("  epoch {epoch}")),
        Edit::Table { id, name, options } => line(out, format_args!("  table {} {name:?} {}", id.0, shown(options))),
        Edit::AlterTable { id, since, options } => {
            line(out, format_args!("  alter table {} since file {since} {}", id.0, shown(options)))
        }
        Edit::Index { info, options } => {
            let IndexInfo { id, table, name, is_unique, state, since, declaration } = info;
            let unique = if *is_unique { "unique " } else { "" };
            let (id, table, declaration) = (id.0, table.0, declaration.escape_ascii());
            let shown = shown(options);
            let since = if since.0 > 0 { format!(" since {}", since.0) } else { String::new() };
            let index = format_args!("{unique}index {id} {name:?} of table {table} {state:?}{since}");
            line(out, format_args!("  {index} {declaration} {shown}"))
        }
        Edit::AlterIndex { id, table, state } => {
            line(out, format_args!("  alter index {} of table {} {state:?}", id.0, table.0))
        }
        Edit::DropTable(id) => line(out, format_args!("  drop table {}", id.0)),
        Edit::AddFile(NewFile { table, level, number, epoch, version_offset, meta }) => {
            line(
                out,
                format_args!(
                    "  add table {} level {level} file {} rows {} bytes {} index {} versions {}..{} keys {}..{}",
                    table.0,
                    crate::manifest::db_file::sst_name(*number, *epoch),
                    meta.rows(),
                    meta.file_bytes,
                    meta.index_bytes(),
                    meta.oldest.0.saturating_add(*version_offset),
                    meta.newest.0.saturating_add(*version_offset),
                    meta.bounds.low.escape_ascii(),
                    meta.bounds.high.as_deref().unwrap_or(b"(end)").escape_ascii(),
                ),
            )?;
            if detail == DumpDetail::Rows {
                for (kind, tree) in meta.trees() {
                    line(out, format_args!("    {kind}: {tree:?}"))?;
                }
            }
            Ok(())
        }
        Edit::RemoveFile { table, level, number } => {
            line(out, format_args!("  remove table {} level {level} file {number}", table.0))
        }
        Edit::ShareFile { table, level, number, to } => {
            line(out, format_args!("  share table {} level {level} file {number} with table {}", table.0, to.0))
        }
        Edit::SliceFile { table, level, number, slice: None } => {
            line(out, format_args!("  slice table {} level {level} file {number} whole", table.0))
        }
        Edit::SliceFile { table, level, number, slice: Some(slice) } => line(
            out,
            format_args!(
                "  slice table {} level {level} file {number} rows {:?} bytes {} keys {}..{}",
                table.0,
                slice.rows,
                slice.bytes,
                slice.bounds.low.escape_ascii(),
                slice.bounds.high.as_deref().unwrap_or(b"(end)").escape_ascii(),
            ),
        ),
        Edit::MoveFile { table, level, number, to } => {
            line(out, format_args!("  move table {} level {level} file {number} to level {to}", table.0))
        }
        Edit::Keep(kept) => {
            line(out, format_args!("  keep version {} as {:?} since {} us", kept.version.0, kept.name, kept.micros()))
        }
        Edit::Forget(name) => line(out, format_args!("  forget {name:?}")),
        Edit::Retain(None) => line(out, format_args!("  retain nothing")),
        Edit::Retain(Some(Retained { retention, from, is_sure })) => {
            let unsure = if *is_sure { "" } else { ", which reads do not rely on yet" };
            line(out, format_args!("  retain {retention:?} from version {}{unsure}", from.0))
        }
        Edit::RetainFrom { retention, from } => {
            line(out, format_args!("  retain {retention:?}, now from version {}", from.0))
        }
        Edit::RetainTable { table, retained: TableRetained { rule, from, is_sure } } => {
            let unsure = if *is_sure { "" } else { ", which reads do not rely on yet" };
            let rule = match rule {
                TableRule::OfDatabase => "what the database retains".to_owned(),
                TableRule::Own(retention) => format!("{retention:?}"),
            };
            line(out, format_args!("  table {} retains {rule} from version {}{unsure}", table.0, from.0))
        }
        Edit::RetainTableFrom { table, retention, from } => {
            line(out, format_args!("  table {} retains {retention:?}, now from version {}", table.0, from.0))
        }
        Edit::Time(VersionTime { version, micros }) => {
            line(out, format_args!("  time {micros} us version {}", version.0))
        }
        Edit::Subscribe(Subscriber { id, name, position, limits, hold, .. }) => line(
            out,
            format_args!("  subscription {} {name:?} after version {}, {hold:?}, within {limits:?}", id.0, position.0),
        ),
        Edit::Unsubscribe(id) => line(out, format_args!("  subscription {} ends", id.0)),
        Edit::Acknowledge { id, position } => {
            line(out, format_args!("  subscription {} after version {}", id.0, position.0))
        }
        Edit::LetGo { id, position } => {
            line(out, format_args!("  subscription {} lets go, if it is not after version {}", id.0, position.0))
        }
        Edit::Expired(millis) => line(out, format_args!("  expired by {millis} ms")),
        Edit::OldestLog(number) => line(out, format_args!("  oldest log {number}")),
        Edit::NextNumber(number) => line(out, format_args!("  next number {number}")),
        Edit::LastVersion(version) => line(out, format_args!("  last version {}", version.0)),
        Edit::WrittenFor(release) => line(out, format_args!("  written for release {release}")),
        Edit::NextTable(id) => line(out, format_args!("  next table {id}")),
        Edit::FlushedVersion(version) => line(out, format_args!("  flushed version {}", version.0)),
    }
}

fn shown(options: &TableOptions) -> String {
    let TableOptions { page_bytes, node_bytes, index, compression, metadata, groups, filters, .. } = options;
    let metadata = metadata.len();
    let prefix = match options.filter_prefix_bytes {
        0 => String::new(),
        bytes => format!(" with prefixes of {bytes}"),
    };
    let memory = if options.in_memory { " in memory" } else { "" };
    let expiry = match &options.expiry {
        Expiry::Never => String::new(),
        Expiry::After(time) => format!(" expiry after {time:?}"),
        Expiry::By(declaration) => format!(" expiry by {}", declaration.escape_ascii()),
    };
    let text = format!(
        "page {page_bytes} node {node_bytes} index {index:?} compression {compression:?} \
         filters {filters}{prefix}{memory}{expiry} metadata {metadata} bytes"
    );
    if groups.is_empty() { text } else { format!("{text} groups {}", groups.join(" ")) }
}

fn log(machine: &Machine, path: &Path, detail: DumpDetail, out: &mut dyn Write) -> Result<()> {
    let mut reader = LogReader::open(&*machine.disk, path, None)?;
    match reader.header() {
        Some(header) => {
            line(out, format_args!("log {} id {:016x}", header.number, header.log_id))?;
            match reader.previous() {
                Some(previous) => {
                    line(out, format_args!("continues log {}, which ended at {}", previous.number, previous.end.at))?;
                }
                None if !reader.has_begun() => line(out, format_args!("has not begun"))?,
                None => {}
            }
        }
        None => line(out, format_args!("log whose creation was not finished"))?,
    }
    while let Some(commit) = reader.next_commit()? {
        let (offset, version, ops) = (commit.offset, commit.version, commit.ops);
        line(
            out,
            format_args!("commit at {offset}: version {} ops {} bytes {}", version.0, ops.count(), ops.bytes().len()),
        )?;
        if detail == DumpDetail::Rows {
            for (table, op) in ops.iter() {
                print_op(table, &op, out)?;
            }
        }
    }
    tail(reader.end(), reader.tear().map(|tear| (tear.offset, tear.why)), out)
}

fn print_op(table: u32, op: &Op<'_>, out: &mut dyn Write) -> Result<()> {
    const SHOWN: usize = 64;
    match op {
        Op::Put { key, value, until } => {
            let until = until.map_or_else(String::new, |until| format!(" until {} ms", until.millis()));
            let shown = &value[..value.len().min(SHOWN)];
            line(
                out,
                format_args!(
                    "  put table {table} {} = {} ({} bytes){until}",
                    key.escape_ascii(),
                    shown.escape_ascii(),
                    value.len()
                ),
            )
        }
        Op::Merge { key, operand } => {
            let mut steps = String::new();
            operand::describe(operand, |step| steps = format!("{step:?}"));
            line(out, format_args!("  merge table {table} {} by {steps}", key.escape_ascii()))
        }
        Op::Erase { key } => line(out, format_args!("  erase table {table} {}", key.escape_ascii())),
        Op::RangeErase { start, end: [] } => {
            line(out, format_args!("  erase table {table} from {}", start.escape_ascii()))
        }
        Op::RangeErase { start, end } => {
            line(out, format_args!("  erase table {table} from {} to {}", start.escape_ascii(), end.escape_ascii()))
        }
    }
}

fn tail(end: u64, tear: Option<(u64, &'static str)>, out: &mut dyn Write) -> Result<()> {
    match tear {
        Some((offset, why)) => line(out, format_args!("torn at {offset}: {why}")),
        None => line(out, format_args!("end at {end}")),
    }
}

fn line(out: &mut dyn Write, text: std::fmt::Arguments<'_>) -> Result<()> {
    let failed = |error: io::Error| Error::io("write", Path::new("output"), error);
    writeln!(out, "{text}").map_err(failed)
}
