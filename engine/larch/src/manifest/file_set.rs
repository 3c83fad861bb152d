//! The file set: the files of all tables at one moment, as an immutable value. This module does not know how it is
//! stored on disk.
//!
//! Invariants: the files of level 0 are ordered from newest to oldest and may overlap. The files of a deeper level
//! are ordered by key and do not overlap, except that neighbours may share a bound where long bounds were cut. For
//! each key, the versions in a level are newer than the versions in deeper levels.

use super::db_file::{DbFile, FileOpener, sst_name};
use super::edit::{Edit, NewFile};
use super::table_files::TableFiles;
use super::table_pasts::{Past, TablePasts};
use super::tables::Tables;
use super::times::Times;
use crate::base::error::{Error, Result};
use crate::base::expiry::Expiry;
use crate::base::kept::{Kept, MAX_KEPT};
use crate::base::options::TableOptions;
use crate::base::release::{Format, Release};
use crate::base::retention::{Retained, Showing};
use crate::base::subscription::{Hold, MAX_SUBSCRIPTIONS, Subscriber, SubscriptionId};
use crate::base::table::{IndexInfo, IndexState, TableId, TableInfo};
use os::sync::Arc;
use pages::PagedFile;
use rpds::RedBlackTreeMap;
use sst::format::features;
use sst::{Compression, KeyBounds, Slice, Version};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::path::Path;

/// Everything that the manifest describes at one moment.
#[derive(Clone, Debug, Default)]
pub struct FileSet {
    /// The identity of the database.
    pub database: u64,
    /// The epoch of the newest writer.
    pub epoch: u64,
    /// The tables with their files.
    pub tables: Tables,
    /// How many tables besides the first see a file, by its number. Files of only one table are not in this map.
    shared: RedBlackTreeMap<u64, u32, archery::ArcK>,
    /// The number of the oldest log that is still needed.
    pub oldest_log: u64,
    /// The next file number that is free.
    pub next_number: u64,
    /// See [`Edit::LastVersion`].
    pub last_version: Version,
    /// See [`Edit::FlushedVersion`].
    pub flushed_version: Version,
    /// The next free table id.
    pub next_table: u32,
    /// The versions with names, by name.
    kept: RedBlackTreeMap<String, Kept, archery::ArcK>,
    /// What is kept of the past; `None` if nothing is, beside versions with names.
    pub retained: Option<Retained>,
    /// What tables keep of their past that have a rule of their own.
    pub table_pasts: TablePasts,
    /// The subscriptions.
    subscribers: RedBlackTreeMap<SubscriptionId, Subscriber, archery::ArcK>,
    /// When versions were made that are kept.
    pub times: Times,
    /// See [`Edit::Expired`]; 0 if no row had a time.
    pub expired: u64,
    /// See [`Edit::WrittenFor`]; `None` in a manifest of an earlier release, which did not know this edit.
    pub written_for: Option<String>,
}

/// Why an edit cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditRefusal {
    /// The table does not exist. It may have been dropped.
    #[error("table {} is not there", .0.0)]
    NoTable(TableId),
    /// The edit contradicts the file set or itself.
    #[error("{0}")]
    Contradiction(String),
}

impl From<String> for EditRefusal {
    fn from(why: String) -> Self {
        Self::Contradiction(why)
    }
}

impl FileSet {
    /// The file set of a new database.
    pub fn new(database: u64) -> Self {
        Self { database, next_number: 1, ..Self::default() }
    }

    /// Applies `edit`. Adds files that no table sees any more to `removed`, for the caller to discard once the edit
    /// is durable.
    ///
    /// # Errors
    ///
    /// [`EditRefusal::NoTable`] if the table does not exist; [`EditRefusal::Contradiction`] if the edit cannot be
    /// applied for another reason. After an error, part of the edit may have been applied. The greatest possible
    /// file number, table id and version are refused, because none could follow.
    pub fn apply(
        &mut self,
        edit: &Edit,
        opener: &FileOpener,
        removed: &mut Vec<Arc<DbFile>>,
    ) -> Result<(), EditRefusal> {
        match edit {
            Edit::Database(id) => {
                self.database = *id;
                opener.machine.disk.bind(*id);
            }
            Edit::Epoch(epoch) => self.epoch = *epoch,
            Edit::Table { id, name, options } => self.add_table(*id, name, options)?,
            Edit::AlterTable { id, since, options } => self.alter_table(*id, *since, options)?,
            Edit::DropTable(id) => {
                if self.tables.indexes_of(*id).next().is_some() {
                    return Err(format!("table {} is dropped, and it has an index", id.0).into());
                }
                let table = self.tables.remove(id).ok_or(EditRefusal::NoTable(*id))?;
                self.table_pasts.remove(*id);
                self.forget_times();
                table.files().for_each(|(_, file)| self.hide(file, removed));
            }
            Edit::AddFile(new) => self.add_new_file(new, opener)?,
            Edit::RemoveFile { table, level, number } => {
                let file = self.take_file(*table, *level, *number)?;
                self.hide(&file, removed);
            }
            Edit::ShareFile { table, level, number, to } => self.share_file((*table, *level, *number), *to)?,
            Edit::SliceFile { table, level, number, slice } => {
                self.slice_file((*table, *level, *number), slice.as_ref())?;
            }
            Edit::MoveFile { table, level, number, to } => {
                let file = self.take_file(*table, *level, *number)?;
                self.add_file(*table, *to, file)?;
            }
            Edit::Index { info, options } => self.add_index(info, options)?,
            Edit::AlterIndex { id, table, state } => self.alter_index(*id, *table, *state)?,
            Edit::OldestLog(number) => self.oldest_log = *number,
            Edit::NextNumber(number) => {
                self.next_number = self.next_number.max(not_last(*number, u64::MAX, "file number")?);
            }
            Edit::LastVersion(version) => {
                not_last(version.0, u64::MAX, "version")?;
                self.last_version = self.last_version.max(*version);
            }
            Edit::NextTable(id) => self.next_table = self.next_table.max(*id),
            Edit::FlushedVersion(version) => self.flushed_version = self.flushed_version.max(*version),
            Edit::WrittenFor(release) => self.written_for = Some(release.clone()),
            Edit::Retain(retained) => {
                retained.map_or(Ok(()), |retained| not_last(retained.from.0, u64::MAX, "version").map(drop))?;
                self.retained = *retained;
                self.forget_times();
            }
            Edit::RetainFrom { retention, from } => {
                not_last(from.0, u64::MAX, "version")?;
                // The rule may have changed since the version was computed.
                let is_same = |retained: &&mut Retained| retained.is_sure && retained.retention == *retention;
                if let Some(retained) = self.retained.as_mut().filter(is_same) {
                    retained.from = retained.from.max(*from);
                    self.forget_times();
                }
            }
            Edit::RetainTable { table, retained } => {
                not_last(retained.from.0, u64::MAX, "version")?;
                self.table(*table)?;
                self.table_pasts.set(*table, *retained);
                self.forget_times();
            }
            Edit::RetainTableFrom { table, retention, from } => {
                not_last(from.0, u64::MAX, "version")?;
                // The table may have been dropped since the version was computed.
                self.table_pasts.begin(*table, *retention, *from);
                self.forget_times();
            }
            Edit::Subscribe(subscriber) => self.subscribe(subscriber)?,
            Edit::Unsubscribe(id) => {
                if !self.subscribers.remove_mut(id) {
                    return Err(format!("subscription {} is not there", id.0).into());
                }
                self.forget_times();
            }
            Edit::Acknowledge { id, position } => {
                not_last(position.0, u64::MAX, "version")?;
                self.change_subscriber(*id, |subscriber| subscriber.position = subscriber.position.max(*position));
            }
            Edit::LetGo { id, position } => self.change_subscriber(*id, |subscriber| {
                // It may have moved on since the limit was compared.
                if subscriber.position <= *position {
                    subscriber.hold = Hold::Nothing;
                }
            }),
            Edit::Time(moment) => {
                not_last(moment.version.0, u64::MAX, "version")?;
                self.times.add(*moment);
            }
            Edit::Expired(millis) => self.expired = self.expired.max(*millis),
            Edit::Keep(kept) => self.keep(kept)?,
            Edit::Forget(name) => {
                if !self.kept.remove_mut(name) {
                    return Err(format!("no version has the name {name:?}").into());
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, kept: &Kept) -> Result<(), EditRefusal> {
        not_last(kept.version.0, u64::MAX, "version")?;
        if self.kept.contains_key(&kept.name) {
            return Err(format!("two versions have the name {:?}", kept.name).into());
        }
        if self.kept.size() == MAX_KEPT {
            return Err(format!("more than {MAX_KEPT} versions have names").into());
        }
        self.kept.insert_mut(kept.name.clone(), kept.clone());
        Ok(())
    }

    fn subscribe(&mut self, subscriber: &Subscriber) -> Result<(), EditRefusal> {
        not_last(subscriber.position.0, u64::MAX, "version")?;
        // Subscriptions and files take their numbers from one counter. Without this, the number could be given again
        // after the database was opened anew.
        let next_number = not_last(subscriber.id.0.saturating_add(1), u64::MAX, "subscription number")?;
        self.next_number = self.next_number.max(next_number);
        if self.subscriber_named(&subscriber.name).is_some_and(|other| other.id != subscriber.id) {
            return Err(format!("two subscriptions have the name {:?}", subscriber.name).into());
        }
        if let Some(old) = self.subscriber(subscriber.id).filter(|old| old.name != subscriber.name) {
            let (id, old, new) = (subscriber.id.0, &old.name, &subscriber.name);
            return Err(format!("the subscriptions {old:?} and {new:?} have the number {id}").into());
        }
        self.subscribers.insert_mut(subscriber.id, subscriber.clone());
        if self.subscribers.size() > MAX_SUBSCRIPTIONS {
            return Err(format!("there are more than {MAX_SUBSCRIPTIONS} subscriptions").into());
        }
        Ok(())
    }

    /// Changes a subscription, if it is there.
    fn change_subscriber(&mut self, id: SubscriptionId, change: impl FnOnce(&mut Subscriber)) {
        if let Some(mut subscriber) = self.subscribers.get(&id).cloned() {
            change(&mut subscriber);
            self.subscribers.insert_mut(id, subscriber);
            self.forget_times();
        }
    }

    /// The subscription with this number.
    pub fn subscriber(&self, id: SubscriptionId) -> Option<&Subscriber> {
        self.subscribers.get(&id)
    }

    /// The subscription with this name.
    pub fn subscriber_named(&self, name: &str) -> Option<&Subscriber> {
        self.subscribers.values().find(|subscriber| subscriber.name == name)
    }

    /// All subscriptions, by number.
    pub fn subscribers(&self) -> impl ExactSizeIterator<Item = &Subscriber> {
        self.subscribers.values()
    }

    /// The version with this name.
    pub fn kept(&self, name: &str) -> Option<&Kept> {
        self.kept.get(name)
    }

    /// All versions with names, sorted by name.
    pub fn all_kept(&self) -> impl ExactSizeIterator<Item = &Kept> {
        self.kept.values()
    }

    /// The time before which reads must not take rows to be there, in milliseconds since 1970: rows that had expired
    /// then may be gone, and versions were made then.
    pub fn latest_time(&self) -> u64 {
        let made = self.times.iter().next_back().map_or(0, |moment| moment.micros / 1000);
        self.expired.max(made)
    }

    /// Whether some row in a file has a time, or had one.
    pub fn has_times(&self) -> bool {
        let mut tables = self.tables.values();
        self.expired > 0 || tables.any(|table| table.files().any(|(_, file)| file.sst.meta.expiry.is_some()))
    }

    /// Forgets when versions were made that no table keeps, and tables that keep just what the database keeps.
    fn forget_times(&mut self) {
        self.table_pasts.forget_needless(self.retained);
        match self.oldest_past() {
            Some(oldest) => self.times.forget_before(oldest),
            None => self.times = Times::default(),
        }
    }

    /// The oldest version that the rule of the database or of a table keeps; `None` if no rule keeps any.
    pub fn oldest_past(&self) -> Option<Version> {
        let tables = self.table_pasts.iter().filter_map(|(table, _)| self.retained_from_of(table));
        tables.chain(self.retained_from()).min()
    }

    /// The bytes of older rows in files.
    pub fn history_bytes(&self) -> u64 {
        let mut seen = HashSet::new();
        let files = self.tables.values().flat_map(|table| table.files().map(|(_, file)| file));
        let histories = files.filter_map(|file| Some((file.number, file.sst.meta.history.tree()?)));
        let histories = histories.filter(|(number, _)| seen.insert(*number)).map(|(_, tree)| tree);
        histories.map(|tree| tree.totals.bytes + tree.totals.group_bytes).sum()
    }

    /// What the rules keep of the past of the table `id`. An index follows its table.
    pub fn rule_past(&self, id: TableId) -> Option<Past> {
        if self.table_pasts.is_empty() {
            return self.retained.map(Past::from);
        }
        let index = self.tables.get(&id).and_then(|table| table.info.index.as_ref());
        self.table_pasts.past(index.map_or(id, |index| index.table), self.retained)
    }

    /// The version from which on every version of the table `id` is kept, by a rule or for a subscription; `None` if
    /// neither keeps its past.
    pub fn retained_from_of(&self, id: TableId) -> Option<Version> {
        self.held_from(false).into_iter().chain(self.rule_past(id).map(|past| past.from)).min()
    }

    /// Like [`FileSet::retained_from_of`], but the version from which on reads can see every version.
    pub fn readable_from_of(&self, id: TableId) -> Option<Version> {
        let past = self.rule_past(id).filter(|past| past.is_sure).map(|past| past.from);
        self.held_from(true).into_iter().chain(past).min()
    }

    /// Whether all tables keep each version from `version` on, and reads can see them.
    pub fn keeps_all_from(&self, version: Version) -> bool {
        let mut tables = self.table_pasts.iter().map(|(id, _)| self.readable_from_of(id));
        let is_kept = |from: Option<Version>| from.is_some_and(|from| from <= version);
        is_kept(self.readable_from()) && tables.all(is_kept)
    }

    /// The version from which on every version is kept for subscriptions; if `is_sure`, only for those on which reads can
    /// rely.
    fn held_from(&self, is_sure: bool) -> Option<Version> {
        let holds = |subscriber: &&Subscriber| if is_sure { subscriber.hold == Hold::Sure } else { subscriber.holds() };
        self.subscribers.values().filter(holds).map(|subscriber| subscriber.position).min()
    }

    /// The tables that have a rule of their own, and their indexes, each with the version from which on it keeps every
    /// version.
    pub fn own_pasts(&self) -> Vec<(TableId, Option<Version>)> {
        let with_indexes = |id: TableId| {
            std::iter::once(id).chain(self.tables.indexes_of(id).map(|index| index.info.id)).collect::<Vec<_>>()
        };
        let all = self.table_pasts.iter().flat_map(|(id, _)| with_indexes(id));
        all.map(|id| (id, self.retained_from_of(id))).collect()
    }

    /// Which tables show `version`; `None` if none does.
    pub fn showing(&self, version: Version) -> Option<Showing> {
        if self.table_pasts.is_empty() || self.kept.values().any(|kept| kept.version == version) {
            return self.is_kept(version).then_some(Showing::All);
        }
        let own = |shows: bool| {
            let all = self.own_pasts().into_iter().map(|(id, _)| id);
            all.filter(|id| self.readable_from_of(*id).is_some_and(|from| from <= version) == shows).collect::<Vec<_>>()
        };
        if self.is_kept(version) {
            let hidden = own(false);
            let shows = |id: &TableId| !hidden.contains(id);
            return Some(if hidden.is_empty() {
                Showing::All
            } else {
                only(self.tables.keys().copied().filter(shows))
            });
        }
        let shown = own(true);
        (!shown.is_empty()).then(|| only(shown))
    }

    /// The version from which on every version is kept, by the rule or for a subscription; `None` if neither keeps the
    /// past.
    pub fn retained_from(&self) -> Option<Version> {
        self.held_from(false).into_iter().chain(self.retained.map(|retained| retained.from)).min()
    }

    /// The names of versions after `version`.
    pub fn names_after(&self, version: Version) -> Vec<String> {
        let later = self.kept.values().filter(|kept| kept.version > version);
        later.map(|kept| kept.name.clone()).collect()
    }

    /// Gives up what is kept after `newest`, the newest version of a database that is being opened. No compaction of an
    /// earlier process is under way, so reads can rely on what is left.
    pub fn keep_through(&mut self, newest: Version) {
        for name in self.names_after(newest) {
            self.kept.remove_mut(&name);
        }
        if let Some(retained) = &mut self.retained {
            let from = if retained.is_sure { retained.from.min(newest) } else { newest };
            (retained.from, retained.is_sure) = (from, true);
        }
        for mut subscriber in self.subscribers.values().cloned().collect::<Vec<_>>() {
            subscriber.position = match subscriber.hold {
                Hold::Unsure => newest,
                Hold::Sure | Hold::Nothing => subscriber.position.min(newest),
            };
            if subscriber.hold == Hold::Unsure {
                subscriber.hold = Hold::Sure;
            }
            self.subscribers.insert_mut(subscriber.id, subscriber);
        }
        self.table_pasts.keep_through(newest);
    }

    /// Makes `version` the newest version, for a copy. The caller makes sure that reads can see it, and takes away what
    /// the files have of later versions.
    pub fn go_back_to(&mut self, version: Version) {
        // Rows that had expired by the time of a later version may be gone.
        self.expired = if self.has_times() { self.latest_time() } else { self.expired };
        (self.last_version, self.flushed_version) = (version, version);
        self.times.forget_after(version);
        self.keep_through(version);
    }

    /// The version from which on reads can see every version, by the rule or for a subscription; `None` if neither
    /// keeps the past.
    pub fn readable_from(&self) -> Option<Version> {
        let retained = self.retained.filter(|retained| retained.is_sure).map(|retained| retained.from);
        self.held_from(true).into_iter().chain(retained).min()
    }

    /// Whether reads can see `version`, because it has a name or lies in the past that is kept.
    pub fn is_kept(&self, version: Version) -> bool {
        self.readable_from().is_some_and(|from| from <= version)
            || self.kept.values().any(|kept| kept.version == version)
    }

    fn add_table(&mut self, id: TableId, name: &str, options: &TableOptions) -> Result<(), EditRefusal> {
        self.next_table = self.next_table.max(not_last(id.0, u32::MAX, "table id")? + 1);
        let (name, options, since, index) = (name.to_owned(), options.clone(), 0, None);
        let info = Arc::new(TableInfo { id, name, options, since, index });
        if self.tables.contains_key(&id) || self.tables.named(&info.name).is_some() {
            return Err(format!("table {}, {:?}, is created twice", id.0, info.name).into());
        }
        self.tables.insert(TableFiles::new(info));
        Ok(())
    }

    fn alter_table(&mut self, id: TableId, since: u64, options: &TableOptions) -> Result<(), EditRefusal> {
        self.next_number = self.next_number.max(not_last(since, u64::MAX, "file number")?);
        let table = self.table(id)?;
        if table.info.options.groups != options.groups {
            return Err(format!("the groups of table {} change", id.0).into());
        }
        if table.info.options.in_memory != options.in_memory {
            table.files().for_each(|(_, file)| file.sst.file.keep(options.in_memory));
        }
        let (name, index) = (table.info.name.clone(), table.info.index.clone());
        let info = Arc::new(TableInfo { id, name, options: options.clone(), since, index });
        self.change(id, |table| table.info = info)
    }

    fn add_index(&mut self, index: &IndexInfo, options: &TableOptions) -> Result<(), EditRefusal> {
        let id = index.id;
        self.next_table = self.next_table.max(not_last(id.0, u32::MAX, "table id")? + 1);
        if self.tables.contains_key(&id) {
            return Err(format!("index {}, {:?}, has the id of another table", id.0, index.name).into());
        }
        if !options.groups.is_empty() {
            return Err(format!("index {}, {:?}, has column groups", id.0, index.name).into());
        }
        let name = self.index_name(index)?;
        let (options, index) = (options.clone(), Some(Arc::new(index.clone())));
        self.tables.insert(TableFiles::new(Arc::new(TableInfo { id, name, options, since: 0, index })));
        Ok(())
    }

    fn alter_index(&mut self, id: TableId, table: TableId, state: IndexState) -> Result<(), EditRefusal> {
        let info = self.table(id)?.info.clone();
        let Some(index) = &info.index else { return Err(format!("table {} is no index", id.0).into()) };
        let is_done = index.state == IndexState::Building && state == IndexState::Ready;
        let since = if is_done { self.last_version } else { index.since };
        let index = IndexInfo { table, state, since, ..IndexInfo::clone(index) };
        let (name, options, since) = (self.index_name(&index)?, info.options.clone(), info.since);
        let info = Arc::new(TableInfo { id, name, options, since, index: Some(Arc::new(index)) });
        self.change(id, |table| table.info = info)
    }

    /// The name, for messages, of the table with the entries of `index`. Returns an error if the indexed table
    /// cannot have this index.
    fn index_name(&self, index: &IndexInfo) -> Result<String, EditRefusal> {
        let table = &self.table(index.table)?.info;
        if table.index.is_some() {
            return Err(format!("table {} is an index and has index {:?}", table.id.0, index.name).into());
        }
        let mut others = self.tables.indexes_of(table.id).filter(|other| other.info.id != index.id);
        if others.any(|other| other.info.index.as_ref().is_some_and(|other| other.name == index.name)) {
            return Err(format!("table {} has two indexes {:?}", table.name, index.name).into());
        }
        Ok(format!("{} of {}", index.name, table.name))
    }

    fn add_new_file(&mut self, new: &NewFile, opener: &FileOpener) -> Result<(), EditRefusal> {
        let NewFile { table, level, number, epoch, version_offset, meta } = new;
        let next_number = not_last(number.saturating_add(1), u64::MAX, "file number")?;
        self.next_number = self.next_number.max(next_number);
        let newest = meta.newest.0.checked_add(*version_offset);
        let newest = newest.ok_or_else(|| "the versions of a file overflow".to_owned())?;
        not_last(newest, u64::MAX, "version")?;
        let info = &self.table(*table)?.info;
        let (expected, found) = (info.options.groups.len().max(1), 1 + meta.groups.len());
        if found != expected {
            let file = sst_name(*number, *epoch);
            let why = format!("rows of {file} have {found} parts, those of table {} have {expected}", info.name);
            return Err(why.into());
        }
        let in_memory = info.options.in_memory;
        let file = opener.open(*number, *epoch, *version_offset, meta.clone());
        if in_memory {
            file.sst.file.keep(true);
        }
        self.add_file(*table, *level, file)
    }

    /// Lets the table `to` see a file of `table`: the same part of it, in the same level.
    fn share_file(&mut self, (table, level, number): (TableId, u8, u64), to: TableId) -> Result<(), EditRefusal> {
        let file = self.find_file(table, level, number)?.clone();
        let (from, to_table) = (self.table(table)?, self.table(to)?);
        if from.info.options.groups != to_table.info.options.groups {
            return Err(format!("tables {} and {} have other groups, they share no file", table.0, to.0).into());
        }
        if to_table.info.options.in_memory {
            file.sst.file.keep(true);
        }
        let slice = file.sst.slice.as_deref().cloned();
        self.add_file(to, level, Arc::new(file.sliced(slice)))?;
        let others = self.shared.get(&number).map_or(0, |others| *others);
        self.shared.insert_mut(number, others + 1);
        Ok(())
    }

    fn slice_file(
        &mut self,
        (table, level, number): (TableId, u8, u64),
        slice: Option<&Slice>,
    ) -> Result<(), EditRefusal> {
        let file = self.find_file(table, level, number)?;
        if let Some(slice) = slice {
            let rows = file.sst.meta.rows();
            if slice.rows.last().is_some_and(|last| last >= rows) {
                return Err(format!("a slice of file {number} has rows beyond its {rows}").into());
            }
            if slice.bounds.high.as_ref().is_some_and(|high| *high < slice.bounds.low) {
                return Err(format!("a slice of file {number} ends before it begins").into());
            }
        }
        let sliced = Arc::new(file.sliced(slice.cloned()));
        // The bounds of the file, and so its place in the level, may have changed.
        self.take_file(table, level, number)?;
        self.add_file(table, level, sliced)
    }

    /// Returns an error if `release` cannot read an existing file or the options of a table. No later write could
    /// make such a database readable for it.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`], which names the file and its feature, the index, or the table.
    pub fn check_readable_by(&self, release: Release) -> Result<()> {
        if let Some(kept) = self.kept.values().next().filter(|_| !release.reads_kept()) {
            return Err(Error::BadOptions(format!(
                "compat {release}: version {} is kept as {:?}, and Larch {release} does not keep versions; forget it, or open \
                 the database without compat",
                kept.version.0, kept.name
            )));
        }
        if (self.retained.is_some() || !self.table_pasts.is_empty()) && !release.reads_kept() {
            return Err(Error::BadOptions(format!(
                "compat {release}: the database keeps its past, and Larch {release} would drop it; have it keep nothing \
                 and its tables as much as it keeps, or open the database without compat"
            )));
        }
        if let Some(subscriber) = self.subscribers.values().next().filter(|_| !release.reads_kept()) {
            return Err(Error::BadOptions(format!(
                "compat {release}: there is a subscription, {:?}, and Larch {release} would drop what it holds; end \
                 it, or open the database without compat",
                subscriber.name
            )));
        }
        if self.expired > 0 && !release.reads_times() {
            return Err(Error::BadOptions(format!(
                "compat {release}: rows of the database expire, and Larch {release} does not know such rows; open the \
                 database without compat"
            )));
        }
        let gives_times = |table: &&TableFiles| table.info.options.expiry != Expiry::Never;
        if let Some(table) = self.tables.values().find(gives_times).filter(|_| !release.reads_times()) {
            return Err(Error::BadOptions(format!(
                "compat {release}: table {} gives times to its rows (expiry), and Larch {release} does not know such \
                 rows; open the database without compat",
                table.info.name
            )));
        }
        if let Some(index) = self.tables.indexes().next().filter(|_| !release.reads_indexes()) {
            return Err(Error::BadOptions(format!(
                "compat {release}: there is an index, {}, and Larch {release} does not read databases with indexes; open the \
                 database without compat",
                index.info.name
            )));
        }
        let wants_zstd = |table: &&TableFiles| matches!(table.info.options.compression, Compression::Zstd { .. });
        if let Some(table) = self.tables.values().find(wants_zstd).filter(|_| !release.reads_zstd()) {
            return Err(Error::BadOptions(format!(
                "compat {release}: table {} is compressed by zstd, and Larch {release} does not read that; open the database \
                 without compat",
                table.info.name
            )));
        }
        let known = release.features(Format::Sst);
        for (_, file) in self.tables.values().flat_map(|table| table.files()) {
            let unknown = file.sst.meta.features() & features::REQUIRED & !known;
            if unknown != 0 {
                return Err(Error::BadOptions(format!(
                    "compat {release}: {} has {}, which Larch {release} does not read; open the database without compat",
                    sst_name(file.number, file.epoch),
                    features::named(unknown)
                )));
            }
        }
        Ok(())
    }

    /// Refuses a database if a table or one of its files is compressed by a codec that this program was built without.
    ///
    /// A file does not say whether it has pages compressed by LZ4. If the table's compression was changed since,
    /// only the read of such a page reports the missing feature.
    ///
    /// # Errors
    ///
    /// [`Error::BadOptions`], which names the table and the feature.
    pub fn check_codecs(&self) -> Result<()> {
        for table in self.tables.values() {
            let has_zstd = table.files().any(|(_, file)| file.sst.meta.has_zstd);
            let of_files = if has_zstd { Compression::ZSTD } else { Compression::None };
            let missing = [table.info.options.compression, of_files].into_iter().find_map(Compression::missing_feature);
            if let Some(feature) = missing {
                return Err(Error::BadOptions(format!(
                    "table {} is compressed by {feature}, and this program was built without feature {feature} of larch-db; \
                     build it with that feature",
                    table.info.name
                )));
            }
        }
        Ok(())
    }

    /// All files by their numbers, each only once, even if several tables see it.
    pub fn files_by_number(&self) -> HashMap<u64, Arc<DbFile>> {
        let files = self.tables.values().flat_map(|table| table.files());
        files.map(|(_, file)| (file.number, file.clone())).collect()
    }

    /// Whether a table sees the file at `path`.
    pub fn has_file_at(&self, path: &Path) -> bool {
        self.tables.values().flat_map(|table| table.files()).any(|(_, file)| file.path() == path)
    }

    fn table(&self, table: TableId) -> Result<&TableFiles, EditRefusal> {
        self.tables.get(&table).ok_or(EditRefusal::NoTable(table))
    }

    fn find_file(&self, table: TableId, level: u8, number: u64) -> Result<&Arc<DbFile>, EditRefusal> {
        let file = self.table(table)?.levels[usize::from(level)].iter().find(|file| file.number == number);
        file.ok_or_else(|| not_there(table, level, number))
    }

    /// Notes that one table no longer sees `file`, and adds it to `removed` if no other table does.
    fn hide(&mut self, file: &Arc<DbFile>, removed: &mut Vec<Arc<DbFile>>) {
        match self.shared.get(&file.number).copied() {
            None => removed.push(file.clone()),
            Some(1) => {
                self.shared.remove_mut(&file.number);
            }
            Some(others) => {
                self.shared.insert_mut(file.number, others - 1);
            }
        }
    }

    fn change<T>(&mut self, table: TableId, change: impl FnOnce(&mut TableFiles) -> T) -> Result<T, EditRefusal> {
        self.tables.change(&table, change).ok_or(EditRefusal::NoTable(table))
    }

    /// Adds `file` to a level, in the order of ages in level 0 and of keys in other levels.
    ///
    /// # Errors
    ///
    /// An error if the table does not exist, or has the file already.
    pub fn add_file(&mut self, table: TableId, level: u8, file: Arc<DbFile>) -> Result<(), EditRefusal> {
        let place = |other: &Arc<DbFile>| match level {
            // Newest first. The newest version of a file is its age.
            0 => (file.age(), file.number) < (other.age(), other.number),
            _ => by_keys(other) < by_keys(&file),
        };
        self.change(table, |files| {
            let files = files.level_mut(level);
            let at = files.partition_point(place);
            // Two files with the same number would have no order. This compares only the next file, so it does not
            // find every duplicate in the level.
            if files.get(at).is_some_and(|other| other.number == file.number) {
                return Err(format!("file {} is in level {level} of table {} already", file.number, table.0).into());
            }
            files.insert(at, file.clone());
            Ok(())
        })?
    }

    /// Takes a file out of a level of a table. The file stays on the disk.
    ///
    /// # Errors
    ///
    /// An error if the table or the file does not exist.
    pub fn take_file(&mut self, table: TableId, level: u8, number: u64) -> Result<Arc<DbFile>, EditRefusal> {
        self.change(table, |files| {
            let files = files.level_mut(level);
            let at = files.iter().position(|file| file.number == number);
            Ok(files.remove(at.ok_or_else(|| not_there(table, level, number))?))
        })?
    }

    /// The edits that lead from an empty file set to this file set.
    pub fn edits(&self) -> impl Iterator<Item = Edit> {
        let head = [
            Edit::Database(self.database),
            Edit::Epoch(self.epoch),
            Edit::OldestLog(self.oldest_log),
            Edit::NextNumber(self.next_number),
            Edit::LastVersion(self.last_version),
            Edit::FlushedVersion(self.flushed_version),
            Edit::NextTable(self.next_table),
        ];
        let written_for = self.written_for.clone().map(Edit::WrittenFor);
        let kept = self.kept.values().cloned().map(Edit::Keep);
        let expired = (self.expired > 0).then_some(Edit::Expired(self.expired));
        let retained = self.retained.map(|retained| Edit::Retain(Some(retained)));
        let subscribers = self.subscribers.values().cloned().map(Edit::Subscribe);
        let own = |(table, retained)| Edit::RetainTable { table, retained };
        let table_pasts: Vec<Edit> = self.table_pasts.iter().map(own).collect();
        let past = retained.into_iter().chain(subscribers).chain(kept).chain(expired);
        // The table and level of the edit that adds each file. Other tables get the file by edits that share it.
        let mut named: HashMap<*const PagedFile, (TableId, u8)> = HashMap::new();
        let mut slices: Vec<Edit> = Vec::new();
        let mut edits = Vec::new();
        // Indexes come last, because an index of a renamed table may have a smaller id than the table.
        let tables = self.tables.values().filter(|table| table.info.index.is_none());
        for table in tables.chain(self.tables.indexes()) {
            let TableInfo { id, name, options, since, index } = &*table.info;
            edits.push(match index {
                None => Edit::Table { id: *id, name: name.clone(), options: options.clone() },
                Some(index) => Edit::Index { info: IndexInfo::clone(index), options: options.clone() },
            });
            // Without files below `since`, this edit would say nothing.
            if table.files().any(|(_, file)| file.number < *since) {
                edits.push(Edit::AlterTable { id: *id, since: *since, options: options.clone() });
            }
            for (level, file) in table.files() {
                let (level, number, sst) = (level as u8, file.number, &file.sst);
                match named.entry(file.identity()) {
                    Entry::Vacant(place) => {
                        place.insert((*id, level));
                        edits.push(Edit::AddFile(NewFile {
                            table: *id,
                            level,
                            number,
                            epoch: file.epoch,
                            version_offset: sst.version_offset,
                            meta: sst.meta.clone(),
                        }));
                    }
                    Entry::Occupied(place) => {
                        let (table, first) = *place.get();
                        edits.push(Edit::ShareFile { table, level: first, number, to: *id });
                        if level != first {
                            edits.push(Edit::MoveFile { table: *id, level: first, number, to: level });
                        }
                    }
                }
                // Whole files are shared first. The slices are applied at the end.
                if sst.slice.is_some() {
                    slices.push(Edit::SliceFile { table: *id, level, number, slice: sst.slice.as_deref().cloned() });
                }
            }
        }
        // Earlier, each of the other edits about the past would forget moments that a later one keeps.
        let times = self.times.iter().copied().map(Edit::Time);
        head.into_iter().chain(written_for).chain(past).chain(edits).chain(table_pasts).chain(times).chain(slices)
    }
}

/// The order of files in a sorted level: by low bound, then high bound (`None` is the greatest), then number.
fn by_keys(file: &DbFile) -> (&[u8], bool, Option<&[u8]>, u64) {
    let KeyBounds { low, high } = file.sst.bounds();
    (low, high.is_none(), high.as_deref(), file.number)
}

/// A version that these tables alone show.
fn only(tables: impl IntoIterator<Item = TableId>) -> Showing {
    let mut tables: Vec<TableId> = tables.into_iter().collect();
    tables.sort_unstable();
    Showing::Only(Arc::new(tables))
}

fn not_there(table: TableId, level: u8, number: u64) -> EditRefusal {
    format!("file {number} is not in level {level} of table {}", table.0).into()
}

/// Returns `number`, or an error if it is the greatest possible number.
fn not_last<T: PartialEq + Display>(number: T, last: T, what: &str) -> Result<T, String> {
    if number != last { Ok(number) } else { Err(format!("{what} {number} is the last there can be")) }
}

#[cfg(test)]
pub mod tests;
