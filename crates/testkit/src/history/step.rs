//! The steps a history is made of.

use super::rows::{batch_insert, import_add, insert, parts};
use super::{History, Open, OpenRange, OwnedRow, expect_row, expect_rows, range_of};
use crate::model::{Op, is_empty_range};
use larch::{Compression, Durability, Error, IndexKind, Readable, Result, Snapshot, TableOptions};
use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use std::collections::BTreeMap;
use std::ops::Bound;

const TABLES: [&str; 4] = ["apples", "beans", "cherries", "dates"];

/// Bytes an op takes in memory besides key and value, at most.
const OP_BYTES: usize = 160;

impl History {
    /// Takes one step.
    pub(super) fn step(&mut self) -> Result<()> {
        if self.opened().tables.is_empty() {
            return self.create_table();
        }
        match self.rng.random_range(0..1000) {
            0..430 => self.write_one(),
            430..600 => self.write_batch(),
            600..690 => self.read_point(),
            690..760 => self.read_range(),
            760..790 => self.open_iterator(),
            790..870 => self.advance_iterator(),
            870..890 => self.take_snapshot(),
            890..905 => self.drop_snapshot(),
            905..920 => self.flush(),
            920..928 => self.compact(),
            928..935 => self.sync(),
            935..945 => self.import(),
            945..953 => self.create_table(),
            953..957 => self.drop_table(),
            957..967 => self.alter_table(),
            967..972 => self.read_only(),
            972..980 => self.compare(),
            980..990 => self.reopen(),
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
            0..6 => Op::Put { table, key: self.key(), value: self.value() },
            6..9 => Op::Erase { table, key: self.key() },
            _ => Op::RangeErase { table, range: self.range() },
        }
    }

    /// After a commit was acknowledged.
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
            Op::Erase { table, key } => tables[table].remove(key)?,
            Op::RangeErase { table, range } => tables[table].remove_range(range.clone())?,
        }
        assert_eq!(db.version(), self.model.newest(), "version after {op:?}");
        if !is_void(&op) {
            self.acknowledge(self.options.durability);
        }
        Ok(())
    }

    fn write_batch(&mut self) -> Result<()> {
        let most = self.rng.random_range(0..12);
        let mut room = (self.options.write_buffer_bytes / 2) as usize;
        let mut ops = Vec::new();
        while ops.len() < most {
            let op = self.op();
            let bytes = match &op {
                Op::Put { key, value, .. } => OP_BYTES + key.len() + value.len(),
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
                Op::Erase { table, key } => batch.remove(&tables[table], key),
                Op::RangeErase { table, range } => batch.remove_range(&tables[table], range.clone()),
            }
        }
        assert_eq!(batch.is_empty(), is_void);
        let version = batch.commit()?;
        assert_eq!(version, self.model.newest(), "version of {ops:?}");
        if !is_void {
            self.acknowledge(durability);
        }
        for op in &ops {
            if let Op::Put { table, key, .. } | Op::Erase { table, key } = op {
                self.expect_point(None, table, key)?;
            }
        }
        Ok(())
    }

    fn expect_point(&self, snapshot: Option<&Snapshot>, table: &str, key: &[u8]) -> Result<()> {
        if !self.is_read(table) {
            return Ok(());
        }
        let Open { db, tables, .. } = self.opened();
        let at = snapshot.map_or(self.model.newest(), Snapshot::version);
        let expected = self.model.get(table, key, at);
        let value = match snapshot {
            Some(snapshot) => snapshot.get(&tables[table], key)?,
            None => tables[table].get(key)?,
        };
        let what = || format!("{table:?} at {at:?}");
        expect_row(&what, value.as_deref().map(|value| (key, value)), expected.map(|value| (key, value)));
        let there = match snapshot {
            Some(snapshot) => snapshot.contains_key(&tables[table], key)?,
            None => db.contains_key(&tables[table], key)?,
        };
        assert_eq!(there, expected.is_some(), "{} contains {}", what(), key.escape_ascii());
        Ok(())
    }

    /// A snapshot, or now. By index, so that the history can be asked for more choices.
    fn view(&mut self) -> Option<usize> {
        let count = self.opened().snapshots.len();
        self.rng.random_range(0..=count).checked_sub(1)
    }

    fn read_point(&mut self) -> Result<()> {
        let (view, table, key) = (self.view(), self.table(), self.key());
        let others: Vec<Vec<u8>> = (0..self.rng.random_range(0..12)).map(|_| self.key()).collect();
        let snapshot = view.map(|view| &self.opened().snapshots[view]);
        self.expect_point(snapshot, &table, &key)?;
        self.expect_points(snapshot, &table, &others)
    }

    fn expect_points(&self, snapshot: Option<&Snapshot>, table: &str, keys: &[Vec<u8>]) -> Result<()> {
        if !self.is_read(table) {
            return Ok(());
        }
        let Open { tables, .. } = self.opened();
        let at = snapshot.map_or(self.model.newest(), Snapshot::version);
        let values = match snapshot {
            Some(snapshot) => snapshot.multi_get(&tables[table], keys)?,
            None => tables[table].multi_get(keys)?,
        };
        assert_eq!(values.len(), keys.len());
        for (key, value) in keys.iter().zip(&values) {
            let what = || format!("{table:?} at {at:?}, with others");
            let expected = self.model.get(table, key, at).map(|value| (&key[..], value));
            expect_row(&what, value.as_deref().map(|value| (&key[..], value)), expected);
        }
        Ok(())
    }

    fn read_range(&mut self) -> Result<()> {
        let (view, name, bounds, prefix) = (self.view(), self.table(), self.range(), self.prefix());
        let choice = self.rng.random_range(0..6);
        if !self.is_read(&name) {
            return Ok(());
        }
        let snapshot = view.map(|view| &self.opened().snapshots[view]);
        let table = &self.opened().tables[&name];
        let at = snapshot.map_or(self.model.newest(), Snapshot::version);
        let range = || range_of(snapshot, table, bounds.clone());
        let expected = || self.model.range(&name, bounds.clone(), at);
        let what = || format!("{name:?} {bounds:?} at {at:?}, read {choice}");
        match choice {
            0 => expect_rows(&what, range(), expected()),
            1 => expect_rows(&what, range().rev(), expected().rev()),
            2 => {
                let starts = |(key, _): &(&[u8], &[u8])| key.starts_with(&prefix);
                let expected = self.model.rows(&name, self.model.newest()).filter(starts);
                expect_rows(&|| format!("{name:?} with prefix {prefix:?}"), table.prefix(&prefix), expected)
            }
            3 => {
                let rows = || self.model.rows(&name, self.model.newest());
                let (first, last) = (table.first_key_value()?, table.last_key_value()?);
                expect_row(&what, first.as_ref().map(|(key, value)| (&**key, &**value)), rows().next());
                expect_row(&what, last.as_ref().map(|(key, value)| (&**key, &**value)), rows().next_back());
                Ok(())
            }
            4 => {
                // Borrowed rows, values not always loaded.
                let mut range = range();
                let mut expected = expected();
                while let Some(row) = range.next_row()? {
                    let (key, value) = expected.next().unwrap_or_else(|| panic!("{}: too many rows", what()));
                    assert_eq!((row.key(), row.value_len()), (key, value.len() as u64), "{}", what());
                    assert!(row.inline_value().is_none_or(|inline| inline == value), "{}", what());
                    if value.len() % 2 == 0 {
                        assert!(row.value()?[..] == *value, "{}", what());
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
                    expect_row(&what, row.as_ref().map(|(key, value)| (&**key, &**value)), expected);
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
        let (view, table, bounds) = (self.view(), self.table(), self.range());
        if !self.is_read(&table) {
            return Ok(());
        }
        let snapshot = view.map(|view| &self.opened().snapshots[view]);
        let at = snapshot.map_or(self.model.newest(), Snapshot::version);
        let range = range_of(snapshot, &self.opened().tables[&table], bounds.clone());
        let expected =
            self.model.range(&table, bounds, at).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        self.open.as_mut().expect("the database is open").iterators.push(OpenRange { table, range, expected });
        Ok(())
    }

    /// An iterator shows its own version, whatever happened since it was made.
    fn advance_iterator(&mut self) -> Result<()> {
        let Open { iterators, .. } = self.open.as_mut().expect("the database is open");
        let Some(i) = iterators.len().checked_sub(1).map(|last| self.rng.random_range(0..=last)) else { return Ok(()) };
        let OpenRange { table, range, expected } = &mut iterators[i];
        for _ in 0..self.rng.random_range(1..10) {
            let (row, expected): (_, Option<OwnedRow>) = if self.rng.random_range(0..3) > 0 {
                (range.next(), expected.pop_front())
            } else {
                (range.next_back(), expected.pop_back())
            };
            let row = row.transpose()?;
            expect_row(
                &|| format!("an open iterator over {table:?}"),
                row.as_ref().map(|(key, value)| (&**key, &**value)),
                expected.as_ref().map(|(key, value)| (key.as_slice(), value.as_slice())),
            );
        }
        Ok(())
    }

    fn take_snapshot(&mut self) -> Result<()> {
        let Open { db, snapshots, .. } = self.open.as_mut().expect("the database is open");
        if snapshots.len() < 4 {
            let snapshot = db.snapshot();
            assert_eq!(snapshot.version(), self.model.newest(), "version of a snapshot");
            snapshots.push(snapshot);
        }
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

    /// Rows in order, or in no order and with some twice; perhaps given up before the end.
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
        let report = import.finish(&mut |_, _| {})?;
        assert_eq!(report.rows, last_given.len() as u64, "rows of an import");
        assert!(report.sorted || !in_order, "an import in order needs no sorting");
        assert_eq!(self.opened().db.version(), self.model.newest(), "version after an import");
        if !last_given.is_empty() {
            self.acknowledge(Durability::Synced);
        }
        Ok(())
    }

    fn create_table(&mut self) -> Result<()> {
        let name = TABLES[self.rng.random_range(0..TABLES.len())];
        let options = self.options.tables.choose(&mut self.rng).expect("there are some").clone();
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

    fn drop_table(&mut self) -> Result<()> {
        let name = self.table();
        self.table_in_doubt = Some(name.clone());
        let Open { db, tables, iterators, .. } = self.open.as_mut().expect("the database is open");
        iterators.retain(|iterator| iterator.table != name);
        let table = tables.remove(&name).expect("the model has it");
        assert!(db.drop_table(&name)?, "the table was there");
        assert!(db.existing_table(&name)?.is_none(), "a dropped table is gone");
        assert!(insert(&table, b"k00", b"lost").is_err(), "a dropped table takes no writes");
        self.model.drop_table(&name);
        self.table_in_doubt = None;
        Ok(())
    }

    /// Another index and compression, whichever files there are. A crash leaves both as they were or both changed.
    fn alter_table(&mut self) -> Result<()> {
        let name = self.table();
        let indexes = [IndexKind::Btree, IndexKind::Flat, IndexKind::Both];
        let index = *indexes.choose(&mut self.rng).expect("there are three");
        let compression = if self.rng.random() { Compression::None } else { Compression::Lz4 };
        let altered = TableOptions { index, compression, ..self.stored[&name].clone() };
        self.alter_in_doubt = Some((name.clone(), altered.clone()));
        let Open { tables, .. } = self.opened();
        tables[&name].alter(|options| (options.index, options.compression) = (index, compression))?;
        assert_eq!(tables[&name].options(), altered, "options of {name:?}");
        self.stored.insert(name, altered);
        self.alter_in_doubt = None;
        Ok(())
    }

    /// Closed or only let go, nothing acknowledged is missing.
    fn reopen(&mut self) -> Result<()> {
        if self.rng.random() {
            self.close()?;
        } else {
            self.abandon();
        }
        self.recover()
    }

    /// What is not allowed is refused and has no effect.
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
        for i in 0..3 {
            batch_insert(&mut batch, table, format!("k{i:02}").as_bytes(), &too_long[1..]);
        }
        assert!(matches!(batch.commit(), Err(Error::BatchTooLarge { .. })));
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
