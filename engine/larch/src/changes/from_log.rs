//! Reads commits from the logs of a database, also while its writer, in this process or another, appends to them.

use super::change::Change;
use super::filter::{Filter, Infos};
use super::from_files::{bad_parts, whole};
use crate::base::error::Result;
use crate::base::ops::{BatchOps, Op};
use crate::base::row_clock::RowClock;
use crate::base::table::TableId;
use crate::core::Core;
use crate::core::log_tail::is_gone;
use crate::core::writer::log_path;
use crate::log::LogReader;
use crate::view::View;
use sst::{KeyRange, Version};

/// A place in the logs.
#[derive(Debug)]
pub struct LogFeed {
    /// The log that is being read.
    number: u64,
    reader: LogReader,
    /// No log with commits after this version is gone, up to where the feed reads. `None` if that is not known.
    whole_from: Option<Version>,
    /// The next commit.
    next: Option<(Version, BatchOps)>,
}

/// What the logs have after a version.
#[derive(Clone, Copy, Debug)]
pub struct Logged {
    /// The version of the next commit; `None` if there is none.
    pub version: Option<Version>,
    /// Whether no version before it, or none at all, was ever in a log that is gone.
    pub is_whole: bool,
}

/// The numbers of the logs whose rows are in the memory of `view`, the oldest first, each with the newest version of its
/// memory set.
fn logs(view: &View) -> impl Iterator<Item = (u64, Version)> {
    let sets = view.memory.iter().rev();
    sets.flat_map(|set| set.older_logs.iter().chain([&set.log]).map(|log| (*log, set.newest())))
}

/// The part of `keys` that `op` erases as a range.
fn erased_within(op: Op<'_>, keys: &KeyRange) -> Option<KeyRange> {
    let Op::RangeErase { start, end } = op else { return None };
    KeyRange::new(start, (!end.is_empty()).then_some(end))?.meet(keys)
}

impl LogFeed {
    /// Opens the log that may have the commit after `found`. `None` if the view has no memory, or if the log was removed
    /// meanwhile.
    pub fn open(core: &Core, view: &View, found: Version) -> Result<Option<Self>> {
        let last = view.memory.first().map(|set| set.log);
        let has_more = |&(number, newest): &(u64, Version)| newest > found || Some(number) == last;
        let Some((number, _)) = logs(view).find(has_more) else { return Ok(None) };
        let log = Self::open_log(core, number)?;
        // If nothing newer went to files, no log with newer commits was removed.
        let whole_from = (view.files.flushed_version <= found).then_some(found);
        Ok(log.map(|log| Self { whole_from, ..log }))
    }

    /// Whether the log was dropped: the writer recovered without it after it had lost commits before it.
    pub fn is_dropped(&self, view: &View) -> bool {
        logs(view).all(|(number, _)| number != self.number) && logs(view).any(|(number, _)| number < self.number)
    }

    fn open_log(core: &Core, number: u64) -> Result<Option<Self>> {
        let path = log_path(&core.env.directory, number);
        match LogReader::open(&*core.env.machine.disk, &path, None) {
            Ok(reader) if reader.has_begun() => Ok(Some(Self { number, reader, whole_from: None, next: None })),
            Ok(_) => Ok(None),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks for the next commit after `found` in the logs of `view`, which must have been made before this call.
    pub fn peek(&mut self, core: &Core, view: &View, found: Version) -> Result<Logged> {
        loop {
            if self.next.as_ref().is_none_or(|(version, _)| *version <= found) {
                self.read_to(found)?;
            }
            let logged = Logged {
                version: self.next.as_ref().map(|(version, _)| *version),
                is_whole: self.whole_from.is_some_and(|from| from <= found),
            };
            // If a later log had begun when the view was made, this one got no commit after that, so it was read to its end.
            let later = logs(view).map(|(number, _)| number).find(|number| *number > self.number);
            let Some(later) = later.filter(|_| logged.version.is_none()) else { return Ok(logged) };
            match Self::open_log(core, later)? {
                Some(next) => {
                    let follows = next.reader.previous().is_some_and(|previous| previous.number == self.number);
                    *self = Self { whole_from: self.whole_from.filter(|_| follows), ..next };
                }
                // Its rows went to files meanwhile.
                None => return Ok(Logged { is_whole: false, ..logged }),
            }
        }
    }

    /// Reads to the commit after `found`, which is then `next`, or to the end.
    fn read_to(&mut self, found: Version) -> Result<()> {
        self.next = None;
        // A look at the length of the file lets the reader read its last part again, so it is not made for each commit.
        for is_second in [false, true] {
            if is_second {
                self.reader.look_again()?;
            }
            while let Some(commit) = self.reader.next_commit()? {
                if commit.version > found {
                    self.next = Some((commit.version, commit.ops.clone()));
                    return Ok(());
                }
                self.whole_from = self.whole_from.or(Some(commit.version));
            }
        }
        Ok(())
    }

    /// Takes the commit that [`LogFeed::peek`] has found: its version and its changes, in order.
    ///
    /// # Errors
    ///
    /// [`Error::BadParts`](crate::Error::BadParts) if the log is damaged. Then the commit is not taken.
    pub fn take(&mut self, tables: &Infos, clock: &RowClock, filter: &Filter<'_>) -> Result<(Version, Vec<Change>)> {
        let (version, ops) = self.next.as_ref().expect("the caller has looked for it");
        let mut changes = Vec::new();
        for (table, op) in ops {
            // The feed has no description of a table that was dropped before its first look, so it leaves the rows out.
            let Some(info) = tables.get(&TableId(table)).filter(|info| filter.has(info)) else { continue };
            let erased = erased_within(op, filter.keys);
            let op = match op {
                // A compaction makes the same of it.
                Op::Put { key, until: Some(until), .. } if clock.has_passed(until) => Op::Erase { key },
                op => op,
            };
            let op = match (op.key(), &erased) {
                (Some(key), _) if filter.keys.contains(key) => op,
                (None, Some(KeyRange { start, end })) => {
                    Op::RangeErase { start, end: end.as_deref().unwrap_or_default() }
                }
                _ => continue,
            };
            changes.push(Change::new(info, *version, op).ok_or_else(|| bad_parts(info, op))?);
        }
        changes.sort_by(|a, b| a.order().cmp(&b.order()));
        let version = *version;
        self.next = None;
        self.whole_from = self.whole_from.or(Some(version));
        Ok((version, whole(changes)))
    }
}
