//! The steps that a history takes, drawn at random.

use super::moves::{Move, Moved};
use super::reader::{Reader, Wanted};
use super::rows::{batch_erase, batch_insert, build_add, erase, import_add, insert, parts};
use super::{History, Open, OpenCursor, OpenRange, OwnedRow, expect_row, expect_row_of, expect_rows, shown};
use crate::model::{Op, is_empty_range};
use larch::bulk::IngestOptions;
use larch::options::Expiry;
use larch::past::Retention;
use larch::{Commit, Durability, Error, MergeOp, Result, TableOptions, Version};
use os::sync::{Arc, Mutex};
use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Names of versions.
const NAMES: [&str; 3] = ["june", "july", "august"];

const TABLES: [&str; 4] = ["apples", "beans", "cherries", "dates"];

/// The table whose rows get times from its options: they are there for a time that no history reaches.
const GIVES_TIMES: &str = "dates";
const LATE: Duration = Duration::from_secs(1 << 36);

/// An upper bound of the memory that a write of one row takes beside its key and value.
const OP_BYTES: usize = 160;

impl History {
    /// Takes one step.
    pub(super) fn step(&mut self) -> Result<()> {
        self.failed_in_copy = false;
        if self.opened().tables.is_empty() {
            return self.create_table();
        }
        match self.rng.random_range(0..1000) {
            0..430 => self.write_one(),
            430..575 => self.write_batch(),
            575..600 => self.wait_for_commit(),
            600..690 => self.read_point(),
            690..760 => self.read_range(),
            760..783 => self.open_iterator(),
            783..795 => self.open_cursor(),
            795..840 => self.advance_iterator(),
            840..870 => self.move_cursor(),
            870..886 => self.take_snapshot(),
            886..891 => self.keep(),
            891..894 => self.forget(),
            894..897 => self.retain(),
            897..905 => self.drop_snapshot(),
            905..920 => self.flush(),
            920..928 => self.compact(),
            928..935 => self.sync(),
            935..942 => self.import(),
            942..945 => self.ingest(),
            945..953 => self.create_table(),
            953..957 => self.drop_table(),
            957..966 => self.alter_table(),
            966..969 => self.clone_table(),
            969..972 => self.split_table(),
            972..975 => self.read_only(),
            975..977 => self.copy(),
            977..984 => self.compare(),
            984..994 => self.reopen(),
            _ => self.refuse(),
        }
    }

    fn table(&mut self) -> String {
        let names = self.model.tables();
        names.choose(&mut self.rng).expect("there is a table").clone()
    }

    fn op(&mut self) -> Op {
        let table = self.table();
        match self.rng.random_range(0..10) {
            0..2 if self.stored[&table].groups.is_empty() => self.append(table),
            0..6 => Op::Put { table, key: self.key(), value: self.value() },
            6..9 => Op::Erase { table, key: self.key() },
            _ => Op::RangeErase { table, range: self.range() },
        }
    }

    /// An op that makes a value longer, unless it is long already.
    fn append(&mut self, table: String) -> Op {
        let (key, value) = (self.key(), self.value());
        let before = self.model.get(&table, &key, self.model.newest()).map_or(0, <[u8]>::len);
        let most = (self.options.write_buffer_bytes / 64) as usize;
        if before + value.len() > most { Op::Erase { table, key } } else { Op::Append { table, key, value } }
    }

    /// Notes what the database has promised by acknowledging the newest commit.
    fn acknowledge(&mut self, durability: Durability) {
        self.acknowledged = self.model.newest();
        if durability == Durability::Synced {
            self.durable = self.acknowledged;
        }
    }

    fn write_one(&mut self) -> Result<()> {
        let op = self.op();
        if !is_void(&op) {
            self.model.commit(std::slice::from_ref(&op));
        }
        let Open { db, tables, .. } = self.open.as_ref().expect("the database is open");
        match &op {
            Op::Put { table, key, value } => insert(&tables[table], key, value)?,
            Op::Append { table, key, value } => tables[table].merge(key, MergeOp::Append(value))?,
            Op::Erase { table, key } => erase(&tables[table], key)?,
            Op::RangeErase { table, range } => tables[table].remove_range(range.clone())?,
        }
        assert_eq!(db.version(), self.model.newest(), "version after {op:?}");
        if !is_void(&op) {
            self.acknowledge(self.options.durability);
        }
        Ok(())
    }

    fn write_batch(&mut self) -> Result<()> {
        // A batch that is larger than the write buffer goes directly into files.
        let is_large = self.rng.random_range(0..10) == 0;
        let most = self.rng.random_range(0..if is_large { 60 } else { 12 });
        let mut room = if is_large { usize::MAX } else { (self.options.write_buffer_bytes / 2) as usize };
        let mut ops = Vec::new();
        while ops.len() < most {
            let op = self.op();
            let bytes = match &op {
                Op::Put { key, value, .. } | Op::Append { key, value, .. } => OP_BYTES + key.len() + value.len(),
                Op::Erase { key, .. } => OP_BYTES + key.len(),
                Op::RangeErase { range, .. } => OP_BYTES + 2 + bound_bytes(&range.0) + bound_bytes(&range.1),
            };
            let Some(left) = room.checked_sub(bytes) else { break };
            room = left;
            ops.push(op);
        }
        let durability = if self.rng.random() { Durability::Synced } else { Durability::Buffered };
        let is_void = ops.iter().all(is_void);
        if !is_void {
            self.model.commit(&ops);
        }
        let Open { db, tables, .. } = self.open.as_ref().expect("the database is open");
        let mut batch = db.batch().durability(durability);
        for op in &ops {
            match op {
                Op::Put { table, key, value } => batch_insert(&mut batch, &tables[table], key, value),
                Op::Append { table, key, value } => batch.merge(&tables[table], key, MergeOp::Append(value)),
                Op::Erase { table, key } => batch_erase(&mut batch, &tables[table], key),
                Op::RangeErase { table, range } => batch.remove_range(&tables[table], range.clone()),
            }
        }
        assert_eq!(batch.is_empty(), is_void);
        let is_waited_for = self.rng.random();
        let version = if is_waited_for {
            batch.commit()?
        } else {
            let commit = batch.submit()?;
            let version = commit.version();
            self.keep_commit(commit);
            version
        };
        assert_eq!(version, self.model.newest(), "version of {ops:?}");
        self.acknowledge(if is_waited_for { durability } else { Durability::Buffered });
        for op in &ops {
            if let Op::Put { table, key, .. } | Op::Append { table, key, .. } | Op::Erase { table, key } = op {
                let everything = Wanted::everything(self.stored[table].groups.len());
                self.expect_point(&Reader::new(&self.opened().tables[table], None, everything), table, key)?;
            }
        }
        Ok(())
    }

    /// Keeps a commit so that a later step can wait for it, or forgets it.
    fn keep_commit(&mut self, commit: Commit) {
        if self.rng.random_range(0..4) > 0 {
            let Open { commits, .. } = self.open.as_mut().expect("the database is open");
            commits.push(commit);
        }
    }

    /// Waits until a submitted commit is durable: by a blocking call, as a future, or by a callback.
    fn wait_for_commit(&mut self) -> Result<()> {
        let way = self.rng.random_range(0..3);
        let count = self.opened().commits.len();
        let Some(last) = count.checked_sub(1) else { return Ok(()) };
        let i = self.rng.random_range(0..=last);
        let mut commit = self.open.as_mut().expect("the database is open").commits.swap_remove(i);
        let version = commit.version();
        let waited = match way {
            0 => commit.wait()?,
            1 => match Pin::new(&mut commit).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(outcome) => outcome?,
                Poll::Pending => panic!("without threads, a poll syncs"),
            },
            _ => {
                let told = Arc::new(Mutex::new(None));
                let outcome = told.clone();
                commit.on_durable(move |is| *outcome.lock() = Some(is));
                let outcome = told.lock().take();
                outcome.expect("without threads, a callback is called at once")?
            }
        };
        assert_eq!(waited, version, "the version that was waited for");
        self.durable = self.durable.max(version);
        assert!(self.opened().db.durable_version() >= version, "{version:?} was waited for");
        Ok(())
    }

    fn expect_point(&self, reader: &Reader, table: &str, key: &[u8]) -> Result<()> {
        let expected = self.model.get(table, key, reader.at(self.model.newest()));
        let what = || format!("{table:?} read by {reader:?}");
        let row = reader.get(key)?.map(|seen| (key.into(), seen));
        expect_row_of(&what, reader, &row, expected.map(|value| (key, value)));
        assert_eq!(reader.contains_key(key)?, expected.is_some(), "{} contains {}", what(), key.escape_ascii());
        Ok(())
    }

    /// A reader that reads random parts of the rows, at a random version.
    fn reader(&mut self, table: &str) -> Reader {
        let view = self.view();
        let wanted = Wanted::any(&mut self.rng, self.stored[table].groups.len());
        let Open { snapshots, tables, .. } = self.opened();
        Reader::new(&tables[table], view.map(|view| &snapshots[view]), wanted)
    }

    /// The index of a snapshot, or `None` for the newest version. It is an index and not a reference, so that the
    /// history can make more random choices afterwards.
    fn view(&mut self) -> Option<usize> {
        let count = self.opened().snapshots.len();
        self.rng.random_range(0..=count).checked_sub(1)
    }

    /// Reads a row, or several rows together. Some of the keys are absent, and the same key may be asked for twice.
    fn read_point(&mut self) -> Result<()> {
        let name = self.table();
        let reader = self.reader(&name);
        let keys: Vec<Vec<u8>> = (0..self.rng.random_range(1..20)).map(|_| self.key()).collect();
        if self.rng.random() {
            return self.expect_point(&reader, &name, &keys[0]);
        }
        let rows = reader.multi_get(&keys)?;
        assert_eq!(rows.len(), keys.len(), "rows of {name:?} read together");
        let what = || format!("{name:?} of many keys read by {reader:?}");
        for (key, row) in keys.iter().zip(rows) {
            let expected = self.model.get(&name, key, reader.at(self.model.newest()));
            let row = row.map(|seen| (key.as_slice().into(), seen));
            expect_row_of(&what, &reader, &row, expected.map(|value| (key.as_slice(), value)));
        }
        Ok(())
    }

    fn read_range(&mut self) -> Result<()> {
        let (name, bounds, prefix) = (self.table(), self.range(), self.prefix());
        let reader = self.reader(&name);
        let choice = self.rng.random_range(0..6);
        let at = reader.at(self.model.newest());
        let range = || reader.range(bounds.clone());
        let expected = || self.model.range(&name, bounds.clone(), at);
        let what = || format!("{name:?} {bounds:?} read by {reader:?}, read {choice}");
        match choice {
            0 => expect_rows(&what, &reader, range(), expected()).map(drop),
            1 => expect_rows(&what, &reader, range().rev(), expected().rev()).map(drop),
            2 => {
                let starts = |(key, _): &(&[u8], &[u8])| key.starts_with(&prefix);
                let expected = self.model.rows(&name, at).filter(starts);
                let what = || format!("{name:?} with prefix {prefix:?} read by {reader:?}");
                expect_rows(&what, &reader, reader.prefix(&prefix), expected).map(drop)
            }
            3 => {
                let rows = || self.model.rows(&name, at);
                expect_row_of(&what, &reader, &reader.first()?, rows().next());
                expect_row_of(&what, &reader, &reader.last()?, rows().next_back());
                Ok(())
            }
            4 => {
                // Borrowed rows, whose parts are loaded only sometimes.
                let mut range = range();
                let mut expected = expected();
                while let Some(row) = range.next_row()? {
                    let (key, value) = expected.next().unwrap_or_else(|| panic!("{}: too many rows", what()));
                    let parts = reader.of(value);
                    assert_eq!((row.key(), row.part_count()), (key, parts.len()), "{}", what());
                    for (i, part) in parts.iter().enumerate() {
                        assert_eq!(row.part_len(i), part.len() as u64, "{}", what());
                        assert!(row.inline_part(i).is_none_or(|inline| inline == *part), "{}", what());
                        if value.len() % 2 == 0 {
                            assert!(row.part(i)?[..] == **part, "{}", what());
                        }
                    }
                    if value.len() % 3 == 0 {
                        expect_row(&what, Some((key, &row.parts()?)), Some((key, &parts)));
                    }
                }
                assert!(expected.next().is_none(), "{}: too few rows", what());
                Ok(())
            }
            _ => {
                // From both ends in turn.
                let mut range = range();
                let mut expected = expected();
                for turn in 0.. {
                    let (row, expected) = match turn / (1 + at.0 % 3) % 2 {
                        0 => (range.next(), expected.next()),
                        _ => (range.next_back(), expected.next_back()),
                    };
                    let row = row.transpose()?;
                    expect_row_of(&what, &reader, &row, expected);
                    if row.is_none() {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    fn prefix(&mut self) -> Vec<u8> {
        let mut prefix = self.key();
        prefix.truncate(self.rng.random_range(0..=prefix.len()));
        prefix
    }

    fn open_iterator(&mut self) -> Result<()> {
        if self.opened().iterators.len() >= 4 {
            self.open.as_mut().expect("the database is open").iterators.swap_remove(0);
        }
        let (table, bounds) = (self.table(), self.range());
        let reader = self.reader(&table);
        let rows = reader.range(bounds.clone());
        let owned = |value| reader.of(value).into_iter().map(<[u8]>::to_vec).collect();
        let expected = self.model.range(&table, bounds, reader.at(self.model.newest()));
        let expected = expected.map(|(key, value)| (key.to_vec(), owned(value))).collect();
        self.open.as_mut().expect("the database is open").iterators.push(OpenRange { table, rows, expected });
        Ok(())
    }

    /// Moves an iterator, which shows the version at which it was made, whatever has happened since.
    fn advance_iterator(&mut self) -> Result<()> {
        let Open { iterators, .. } = self.open.as_mut().expect("the database is open");
        let Some(i) = iterators.len().checked_sub(1).map(|last| self.rng.random_range(0..=last)) else { return Ok(()) };
        let OpenRange { table, rows, expected } = &mut iterators[i];
        for _ in 0..self.rng.random_range(1..10) {
            let (row, expected) = if self.rng.random_range(0..3) > 0 {
                (rows.next(), expected.pop_front())
            } else {
                (rows.next_back(), expected.pop_back())
            };
            let what = || format!("an open iterator over {table:?}");
            let expected = expected.as_ref().map(|(key, parts)| (&key[..], &parts[..]));
            expect_row(&what, shown(&row.transpose()?), expected);
        }
        Ok(())
    }

    fn open_cursor(&mut self) -> Result<()> {
        if self.opened().cursors.len() >= 3 {
            self.open.as_mut().expect("the database is open").cursors.swap_remove(0);
        }
        let (table, bounds) = (self.table(), self.range());
        let reader = self.reader(&table);
        let expected = self.model.range(&table, bounds.clone(), reader.at(self.model.newest()));
        let moved = Moved::new(&reader, &table, bounds, expected);
        self.open.as_mut().expect("the database is open").cursors.push(OpenCursor { table, moved });
        Ok(())
    }

    /// Moves a cursor, which shows the version at which it was made, whatever has happened since.
    fn move_cursor(&mut self) -> Result<()> {
        let Some(last) = self.opened().cursors.len().checked_sub(1) else { return Ok(()) };
        let i = self.rng.random_range(0..=last);
        for _ in 0..self.rng.random_range(1..12) {
            let key = self.key();
            let (to, tries) = (Move::any(&mut self.rng, key), self.rng.random_range(0..4) == 0);
            let OpenCursor { moved, .. } = &mut self.open.as_mut().expect("the database is open").cursors[i];
            if tries { moved.try_go(&to)? } else { moved.go(&to)? }
        }
        Ok(())
    }

    fn take_snapshot(&mut self) -> Result<()> {
        let kept: Vec<&String> = self.kept.keys().collect();
        let name = if self.rng.random() { kept.choose(&mut self.rng) } else { None };
        let Open { db, snapshots, .. } = self.open.as_mut().expect("the database is open");
        let newest = self.model.newest();
        let retained = db.retained_from().filter(|from| *from <= newest && name.is_none());
        let past = retained.map(|from| Version(self.rng.random_range(from.0..=newest.0)));
        if snapshots.len() < 4 {
            let (snapshot, version) = match (name, past) {
                (Some(&name), _) => (db.at(&**name)?, self.kept[name]),
                (None, Some(version)) => (db.at(version)?, version),
                (None, None) => (db.snapshot(), newest),
            };
            assert_eq!(snapshot.version(), version, "version of a snapshot");
            snapshots.push(snapshot);
        }
        Ok(())
    }

    /// Has the database keep more or less of its past.
    fn retain(&mut self) -> Result<()> {
        let retention = match self.rng.random_range(0..4) {
            0 => Retention::None,
            1 => Retention::Everything,
            _ => Retention::Versions(self.rng.random_range(0..60)),
        };
        let db = &self.opened().db;
        db.retain(retention)?;
        assert_eq!(db.retention(), retention);
        Ok(())
    }

    /// Gives a name to the newest version, or to that of a snapshot.
    fn keep(&mut self) -> Result<()> {
        let name = *NAMES.choose(&mut self.rng).expect("there are names");
        let view = self.view();
        let Open { db, snapshots, .. } = self.opened();
        let (outcome, version) = match view {
            None => (db.keep(name), self.model.newest()),
            Some(view) => (db.keep_at(name, &snapshots[view]), snapshots[view].version()),
        };
        match (outcome, self.kept.get(name).copied()) {
            (Ok(kept), None) => {
                assert_eq!((&*kept.name, kept.version), (name, version), "what was kept");
                self.durable = self.durable.max(version);
                self.kept.insert(kept.name, version);
                Ok(())
            }
            (Err(Error::KeptAlready { version, .. }), Some(kept)) => {
                assert_eq!(version, kept, "the version of {name}");
                Ok(())
            }
            (Err(error), None) => {
                self.name_in_doubt = Some(name.to_owned());
                Err(error)
            }
            (Err(error), Some(_)) => Err(error),
            (Ok(kept), Some(_)) => panic!("{kept:?} has a name that is taken"),
        }
    }

    /// Takes a name away from its version. Snapshots of this version stay.
    fn forget(&mut self) -> Result<()> {
        let name = *NAMES.choose(&mut self.rng).expect("there are names");
        let outcome = self.opened().db.forget(name);
        if outcome.is_err() {
            self.name_in_doubt = Some(name.to_owned());
        }
        assert_eq!(outcome?.map(|kept| kept.version), self.kept.remove(name), "the version of {name}");
        let Open { db, snapshots, .. } = self.opened();
        for snapshot in snapshots {
            assert_eq!(db.at(snapshot.version())?.version(), snapshot.version(), "a snapshot pins its version");
        }
        let found = db.at(name).map(|found| found.version());
        assert!(matches!(found, Err(Error::NoSuchKept { .. })), "{name} is forgotten: {found:?}");
        Ok(())
    }

    fn drop_snapshot(&mut self) -> Result<()> {
        if let Some(view) = self.view() {
            self.open.as_mut().expect("the database is open").snapshots.swap_remove(view);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.opened().db.flush()?;
        self.everything_is_in_files();
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        if self.rng.random() {
            self.opened().db.compact()?;
        } else {
            let table = self.table();
            self.opened().tables[&table].compact()?;
        }
        self.everything_is_in_files();
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.opened().db.sync()?;
        self.durable = self.acknowledged;
        Ok(())
    }

    /// Imports rows, sorted or shuffled, some of them twice. The import may be dropped before its end.
    fn import(&mut self) -> Result<()> {
        let name = self.table();
        let count = self.rng.random_range(0..150);
        let mut rows: Vec<OwnedRow> = (0..count).map(|_| (self.key(), self.value())).collect();
        let in_order = self.rng.random();
        if in_order {
            rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        } else {
            rows.shuffle(&mut self.rng);
        }
        let given_up = self.rng.random_range(0..8) == 0;
        let interrupted = self.rng.random_range(0..=2 * rows.len());
        let mut import = self.opened().tables[&name].import()?;
        for (i, (key, value)) in rows.iter().enumerate() {
            if i == interrupted {
                self.write_one()?;
            }
            import_add(&mut import, &self.opened().tables[&name], key, value)?;
        }
        if given_up {
            return Ok(());
        }
        let last_given: BTreeMap<Vec<u8>, Vec<u8>> = rows.into_iter().collect();
        let put = |(key, value): (&Vec<u8>, &Vec<u8>)| Op::Put {
            table: name.clone(),
            key: key.clone(),
            value: value.clone(),
        };
        if !last_given.is_empty() {
            self.model.commit(&last_given.iter().map(put).collect::<Vec<_>>());
        }
        let report = import.finish(|_| {})?;
        assert_eq!(report.rows, last_given.len() as u64, "rows of an import");
        assert!(report.sorted || !in_order, "an import in order needs no sorting");
        assert_eq!(self.opened().db.version(), self.model.newest(), "version after an import");
        if !last_given.is_empty() {
            self.acknowledge(Durability::Synced);
        }
        Ok(())
    }

    /// Ingests files that were built outside the database, in several directories. The directories have some keys
    /// in common.
    fn ingest(&mut self) -> Result<()> {
        let name = self.table();
        let options = self.opened().tables[&name].options();
        let (mut directories, mut commits) = (Vec::new(), Vec::new());
        for _ in 0..self.rng.random_range(1..4) {
            self.copies += 1;
            let directory = format!("built {}", self.copies);
            let count = self.rng.random_range(0..60);
            let rows: Vec<OwnedRow> = (0..count).map(|_| (self.key(), self.value())).collect();
            let mut files = self.options.builder(&directory).machine(self.machine()).build_files(options.clone())?;
            rows.iter().try_for_each(|(key, value)| build_add(&mut files, options.groups.len(), key, value))?;
            files.finish(|_| {})?;
            directories.push(directory);
            let last_given: BTreeMap<Vec<u8>, Vec<u8>> = rows.into_iter().collect();
            let put = |(key, value)| Op::Put { table: name.clone(), key, value };
            commits.push(last_given.into_iter().map(put).collect::<Vec<_>>());
        }
        commits.retain(|ops| !ops.is_empty());
        commits.iter().for_each(|ops| _ = self.model.commit(ops));
        let options = IngestOptions { verify: self.rng.random(), remove: self.rng.random() };
        let report = self.opened().tables[&name].ingest(&directories, options)?;
        assert_eq!(report.rows, commits.iter().map(|ops| ops.len() as u64).sum::<u64>(), "rows of an ingest");
        assert_eq!(self.opened().db.version(), self.model.newest(), "version after an ingest");
        if !commits.is_empty() {
            self.acknowledge(Durability::Synced);
        }
        directories.iter().for_each(|directory| self.remove_files(directory));
        Ok(())
    }

    fn create_table(&mut self) -> Result<()> {
        let name = TABLES[self.rng.random_range(0..TABLES.len())];
        let mut options = self.options.tables.choose(&mut self.rng).expect("there are some").clone();
        if name == GIVES_TIMES {
            options.expiry = Expiry::After(LATE);
        }
        let is_new = !self.model.tables().iter().any(|table| table == name);
        if is_new {
            self.table_in_doubt = Some(name.to_owned());
            self.model.create_table(name);
            self.stored.insert(name.to_owned(), options.clone());
        }
        let Open { db, tables, .. } = self.open.as_mut().expect("the database is open");
        let table = db.table_with(name, options)?;
        assert_eq!(table.options(), self.stored[name], "options of {name:?}: those asked for, or those it has");
        tables.insert(name.to_owned(), table);
        self.table_in_doubt = None;
        Ok(())
    }

    /// A name that no table has.
    fn free_name(&mut self) -> Option<&'static str> {
        let names = self.model.tables();
        let free: Vec<&str> = TABLES.into_iter().filter(|name| !names.iter().any(|other| other == name)).collect();
        free.choose(&mut self.rng).copied()
    }

    /// Makes a table that shares the files of another table.
    fn clone_table(&mut self) -> Result<()> {
        let (name, Some(new)) = (self.table(), self.free_name()) else { return self.expect_no_clone() };
        self.table_in_doubt = Some(new.to_owned());
        self.model.clone_table(&name, new);
        self.stored.insert(new.to_owned(), self.stored[&name].clone());
        let clone = self.opened().tables[&name].clone_as(new)?;
        self.open.as_mut().expect("the database is open").tables.insert(new.to_owned(), clone);
        self.table_in_doubt = None;
        Ok(())
    }

    /// Makes a new table that takes the rows of another table from some key on.
    fn split_table(&mut self) -> Result<()> {
        let (name, key, Some(new)) = (self.table(), self.key(), self.free_name()) else {
            return self.expect_no_clone();
        };
        self.table_in_doubt = Some(new.to_owned());
        self.model.split_table(&name, &key, new);
        self.stored.insert(new.to_owned(), self.stored[&name].clone());
        let rest = self.opened().tables[&name].split_off(&key, new)?;
        let Open { db, tables, .. } = self.open.as_mut().expect("the database is open");
        tables.insert(new.to_owned(), rest);
        assert_eq!(db.version(), self.model.newest(), "version after a split");
        self.table_in_doubt = None;
        self.acknowledge(Durability::Synced);
        Ok(())
    }

    /// A clone or a split under the name of an existing table must be refused.
    fn expect_no_clone(&mut self) -> Result<()> {
        let (name, taken) = (self.table(), self.table());
        let table = &self.opened().tables[&name];
        for refused in [table.clone_as(&taken), table.split_off("k", &taken)] {
            match refused {
                Err(Error::TableExists(_)) => {}
                Err(error) => return Err(error),
                Ok(_) => panic!("a second table {taken:?}"),
            }
        }
        Ok(())
    }

    fn drop_table(&mut self) -> Result<()> {
        let name = self.table();
        self.table_in_doubt = Some(name.clone());
        let Open { db, tables, iterators, cursors, .. } = self.open.as_mut().expect("the database is open");
        iterators.retain(|iterator| iterator.table != name);
        cursors.retain(|cursor| cursor.table != name);
        let table = tables.remove(&name).expect("the model has it");
        assert!(db.drop_table(&name)?, "the table was there");
        assert!(db.existing_table(&name)?.is_none(), "a dropped table is gone");
        assert!(insert(&table, b"k00", b"lost").is_err(), "a dropped table takes no writes");
        self.model.drop_table(&name);
        self.table_in_doubt = None;
        Ok(())
    }

    /// Changes the index, the compression and the filters of a table by one call. If the machine crashes, either
    /// all of these settings have changed or none of them.
    pub fn alter_table(&mut self) -> Result<()> {
        if self.opened().tables.is_empty() {
            return Ok(());
        }
        let name = self.table();
        let index = *self.options.indexes.choose(&mut self.rng).expect("there is one");
        let compression = crate::options::compression(&mut self.rng);
        let (filters, filter_prefix_bytes) = crate::options::filters(&mut self.rng);
        let altered = TableOptions { index, compression, filters, filter_prefix_bytes, ..self.stored[&name].clone() };
        self.alter_in_doubt = Some((name.clone(), altered.clone()));
        let Open { tables, .. } = self.opened();
        tables[&name].alter(|options| *options = altered.clone())?;
        assert_eq!(tables[&name].options(), altered, "options of {name:?}");
        self.stored.insert(name, altered);
        self.alter_in_doubt = None;
        Ok(())
    }

    /// Closes the database, or only drops it, and opens it again. No acknowledged commit may be missing.
    fn reopen(&mut self) -> Result<()> {
        if self.rng.random() {
            self.close()?;
        } else {
            self.abandon();
        }
        self.recover()
    }

    /// Makes calls that must be refused without any effect, such as a put of a value that is too long.
    fn refuse(&mut self) -> Result<()> {
        let name = self.table();
        let too_long = vec![b'v'; (self.options.write_buffer_bytes / 4) as usize + 1];
        let Open { db, tables, .. } = self.opened();
        let table = &tables[&name];
        assert!(matches!(insert(table, b"k00", &too_long), Err(Error::ValueTooLong { .. })));
        let groups = table.options().groups.len();
        assert!(matches!(table.insert_parts("k00", &parts(b"value", groups.max(1) + 1)), Err(Error::PartCount { .. })));
        assert!(groups < 2 || matches!(table.insert("k00", "value"), Err(Error::Grouped { .. })));
        assert!(matches!(table.remove(vec![0; larch::MAX_KEY_BYTES + 1]), Err(Error::KeyTooLong { .. })));
        let mut batch = db.batch();
        batch_insert(&mut batch, table, b"k00", b"this is fine");
        batch_insert(&mut batch, table, b"k01", &too_long);
        assert!(matches!(batch.commit(), Err(Error::ValueTooLong { .. })));
        let builder = self.options.builder(super::DIRECTORY);
        match builder.machine(self.machine()).open() {
            Err(Error::Locked(_)) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => panic!("a database cannot be opened twice"),
        }
    }
}

fn is_void(op: &Op) -> bool {
    matches!(op, Op::RangeErase { range, .. } if is_empty_range(range))
}

fn bound_bytes(bound: &Bound<Vec<u8>>) -> usize {
    match bound {
        Bound::Unbounded => 0,
        Bound::Included(key) | Bound::Excluded(key) => key.len() + 1,
    }
}
