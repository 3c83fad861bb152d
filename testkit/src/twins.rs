//! Two databases with the same history and the same files. Where a file has both a B-tree and a flat index, one
//! database reads by the B-tree and the other by the flat index. All their answers must be the same, byte for byte.

use crate::history::reader::{Reader, Seen, Wanted};
use crate::history::{DIRECTORY, History};
use crate::model::KeyRange;
use crate::options::TinyOptions;
use crate::touched::Touched;
use larch::stats::PageKind;
use larch::{Key, Result, Snapshot};
use os::Disk;
use std::path::Path;

/// The number of parts of a history. After each part, everything is read.
const CHAPTERS: usize = 5;

/// What reading one of the two databases cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// The pages that were touched.
    pub touched: Touched,
    /// How often a whole table was read by B-trees in some of its files and by flat indexes in others.
    pub mixed_tables: u64,
}

/// Two histories that take the same steps.
struct Twins {
    tree: History,
    flat: History,
    /// What reading `tree` and `flat` cost, in this order.
    readings: [Reading; 2],
}

/// Runs the history of `seed` on two databases with `options`, and panics if their answers differ. Returns what the
/// reads cost if trees are preferred, and if flat indexes are preferred.
pub fn read_both_ways(seed: u64, steps: usize, options: &TinyOptions) -> [Reading; 2] {
    let of = |prefer_flat_index| History::with_options(seed, TinyOptions { prefer_flat_index, ..options.clone() });
    let mut twins = Twins { tree: of(false), flat: of(true), readings: Default::default() };
    for _ in 0..CHAPTERS {
        for history in [&mut twins.tree, &mut twins.flat] {
            history.run(steps / CHAPTERS / 2).expect("the disk does not fail");
            // After this, most tables have files with the old options and files with new options.
            (0..3).try_for_each(|_| history.alter_table()).expect("the disk does not fail");
            history.go_on(steps / CHAPTERS / 2).expect("the disk does not fail");
        }
        twins.expect_same_files();
        twins.compare().expect("the disk does not fail");
    }
    twins.readings
}

impl Twins {
    fn expect_same_files(&self) {
        let files = |history: &History| {
            let entries = history.disk().list(Path::new(DIRECTORY)).expect("the disk does not fail");
            let ssts = entries.into_iter().filter(|entry| entry.name.ends_with(".sst"));
            ssts.map(|entry| (entry.name, entry.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(files(&self.tree), files(&self.flat), "files, which do not depend on what is read");
    }

    /// Makes the same random choice in both histories.
    fn draw<T: PartialEq + std::fmt::Debug>(&mut self, choice: fn(&mut History) -> T) -> T {
        let drawn = choice(&mut self.tree);
        assert_eq!(choice(&mut self.flat), drawn, "choices of histories in step");
        drawn
    }

    /// Reads every table at every version that can be read.
    fn compare(&mut self) -> Result<()> {
        for name in self.tree.database().tables() {
            let ranges: Vec<KeyRange> = (0..4).map(|_| self.draw(History::range)).collect();
            // Random keys, present or absent, and some that are present.
            let mut keys: Vec<Vec<u8>> = (0..20).map(|_| self.draw(History::key)).collect();
            let newest = self.tree.model().newest();
            keys.extend(self.tree.model().rows(&name, newest).step_by(7).map(|(key, _)| key.to_vec()));
            let asked = Asked { name: &name, ranges: &ranges, keys: &keys };
            let so_far = |history: &History| Touched::so_far(history.database());
            let before = [&self.tree, &self.flat].map(so_far);
            for view in 0..=self.tree.snapshots().len() {
                let [tree, flat] = [&self.tree, &self.flat].map(|history| asked.of(history, view.checked_sub(1)));
                expect_same(&tree?, &flat?);
            }
            let now = [&self.tree, &self.flat].map(so_far);
            for (reading, (now, before)) in self.readings.iter_mut().zip(now.into_iter().zip(before)) {
                let touched = now - before;
                reading.touched += touched;
                let is_mixed = [PageKind::Index, PageKind::Flat].iter().all(|kind| touched.of(*kind).all() > 0);
                reading.mixed_tables += u64::from(is_mixed);
            }
        }
        Ok(())
    }
}

/// The questions that both databases are asked about a table.
struct Asked<'a> {
    name: &'a str,
    ranges: &'a [KeyRange],
    keys: &'a [Vec<u8>],
}

/// A question in words, and the rows that the database answered.
type Answer = (String, Vec<(Vec<u8>, Vec<Vec<u8>>)>);

impl Asked<'_> {
    /// The answers of one database, in all ways of reading rows. It reads at the snapshot with index `view`, or at
    /// the newest version.
    fn of(&self, history: &History, view: Option<usize>) -> Result<Vec<Answer>> {
        let table = history.database().existing_table(self.name)?.expect("the histories are in step");
        let snapshot = view.map(|view| &history.snapshots()[view]);
        let mut answers = Vec::new();
        for wanted in Wanted::each(table.options().groups.len()) {
            let reader = Reader::new(&table, snapshot, wanted.clone());
            let at = snapshot.map(Snapshot::version);
            let mut answer = |how: &str, rows: Result<Vec<(Key, Seen)>>| -> Result<()> {
                let owned = |(key, seen): (Key, Seen)| (key.into(), seen.iter().map(|part| part.to_vec()).collect());
                let rows = rows?.into_iter().map(owned).collect();
                answers.push((format!("{wanted:?} of {:?} at {at:?}, {how}", self.name), rows));
                Ok(())
            };
            answer("all", reader.all().collect())?;
            answer("all backward", reader.all().rev().collect())?;
            for range in self.ranges {
                answer(&format!("{range:?}"), reader.range(range.clone()).collect())?;
                answer(&format!("{range:?} backward"), reader.range(range.clone()).rev().collect())?;
            }
            let found = |key: &Vec<u8>, row: Option<Seen>| row.map(|row| (Key::from(key.as_slice()), row));
            let one_by_one = self.keys.iter().map(|key| Ok(found(key, reader.get(key)?)));
            answer("one by one", one_by_one.filter_map(Result::transpose).collect())?;
            let together = self.keys.iter().zip(reader.multi_get(self.keys)?);
            answer("together", Ok(together.filter_map(|(key, row)| found(key, row)).collect()))?;
        }
        Ok(answers)
    }
}

fn expect_same(tree: &[Answer], flat: &[Answer]) {
    assert_eq!(tree.len(), flat.len(), "answers");
    for ((question, by_tree), (_, by_flat)) in tree.iter().zip(flat) {
        assert!(by_tree == by_flat, "{question}: the tree finds\n{by_tree:?}\nand the flat index\n{by_flat:?}");
    }
}
