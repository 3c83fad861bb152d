//! Simulates a table under steady random writes, and counts how often a row is rewritten (its write amplification).
//! The key space is cut into cells, and a simulated file has only a number of rows for each cell, so millions of
//! rows cost nothing. Compactions always keep up with the writes.

use super::*;
use crate::files::output::is_long_enough;

const CELLS: usize = 400;
const ROW_BYTES: f64 = 124.0;

/// A table that gets writes of random keys.
struct Model {
    set: FileSet,
    opener: FileOpener,
    options: LevelOptions,
    /// The files by number: the first cell of each, and how many rows it has in this cell and those after it.
    files: HashMap<u64, (usize, Vec<f64>)>,
    last_number: u64,
    /// The number of keys in a cell.
    keys: f64,
    /// Whether every key is written only once.
    is_load: bool,
    flushed_bytes: f64,
    rewritten_bytes: f64,
}

fn bytes(rows: &[f64]) -> f64 {
    rows.iter().sum::<f64>() * ROW_BYTES
}

/// The key at which `cell` begins.
fn border(cell: usize) -> Vec<u8> {
    (cell as u32).to_be_bytes().to_vec()
}

impl Model {
    fn new(keys: f64) -> Self {
        let (set, opener) = empty_table();
        Self {
            set,
            opener,
            options: LevelOptions::default(),
            files: HashMap::new(),
            last_number: 0,
            keys: keys / CELLS as f64,
            is_load: false,
            flushed_bytes: 0.0,
            rewritten_bytes: 0.0,
        }
    }

    fn table(&self) -> &TableFiles {
        &self.set.tables[&TableId(1)]
    }

    fn apply(&mut self, edit: &Edit) {
        self.set.apply(edit, &self.opener, &mut Vec::new()).expect("the model names files that are there");
    }

    fn add(&mut self, level: usize, first: usize, rows: Vec<f64>) {
        self.last_number += 1;
        let last = [border(first + rows.len() - 1), b"~".to_vec()].concat();
        let meta = described(bytes(&rows) as u64, rows.iter().sum::<f64>() as u64, 0, border(first), last);
        self.apply(&added(level as u8, self.last_number, meta));
        self.files.insert(self.last_number, (first, rows));
    }

    /// Flushes `writes` writes of random keys, and compacts until no compaction is due.
    fn write(&mut self, writes: f64) {
        let rows = match self.is_load {
            true => writes / CELLS as f64,
            false => self.keys * (1.0 - (-writes / (self.keys * CELLS as f64)).exp()),
        };
        self.flushed_bytes += rows * ROW_BYTES * CELLS as f64;
        self.add(0, 0, vec![rows; CELLS]);
        self.compact(Level0Use::default());
    }

    fn compact(&mut self, level0: Level0Use) {
        loop {
            match pick(self.table(), &self.options, Version(0), level0, &[]) {
                Pick::Nothing => break,
                Pick::Move { from, to, number, .. } => {
                    self.apply(&Edit::MoveFile { table: TableId(1), level: from as u8, number, to: to as u8 });
                }
                Pick::Merge { inputs, to, .. } => self.merge(&inputs, to),
                Pick::Drop { .. } => unreachable!("no row has a time"),
            }
        }
    }

    fn merge(&mut self, inputs: &[(usize, u64)], to: usize) {
        let (base, _) = targets(self.table(), &self.options);
        let file_bytes = file_bytes(to, base, &self.options);
        let below = self.table().levels[to + 1..].iter().find(|level| !level.is_empty()).cloned().unwrap_or_default();
        let mut rows = vec![0.0; CELLS];
        for &(level, number) in inputs {
            let (first, input) = self.files.remove(&number).expect("it is in the table");
            for (sum, more) in rows[first..].iter_mut().zip(input) {
                // Count a row only once that this input and an earlier one have.
                *sum += if self.is_load { more } else { more - *sum * more / self.keys };
            }
            self.apply(&Edit::RemoveFile { table: TableId(1), level: level as u8, number });
        }
        self.rewritten_bytes += bytes(&rows);
        let mut first = None;
        for cell in 0..=CELLS {
            let Some(from) = first else {
                first = rows.get(cell).filter(|rows| **rows > 0.0).map(|_| cell);
                continue;
            };
            let at_border = below.iter().any(|file| file.sst.bounds().low == border(cell));
            let is_over = rows.get(cell).is_none_or(|rows| *rows == 0.0);
            if is_over || is_long_enough(bytes(&rows[from..cell]) as u64, file_bytes, at_border) {
                self.add(to, from, rows[from..cell].to_vec());
                first = if is_over { None } else { Some(cell) };
            }
        }
    }
}

/// Overwrites a table of `keys` keys steadily, with `writes` rows in each flush. Returns how often a row is
/// rewritten.
fn rewrites(keys: f64, writes: f64) -> f64 {
    let mut model = Model::new(keys);
    let run = |model: &mut Model, times: f64| {
        (model.flushed_bytes, model.rewritten_bytes) = (0.0, 0.0);
        (0..(times * keys / writes) as u64).for_each(|_| model.write(writes));
        model.rewritten_bytes / model.flushed_bytes
    };
    run(&mut model, 4.0);
    run(&mut model, 4.0)
}

#[test]
fn steady_overwrites_rewrite_a_row_a_bounded_number_of_times() {
    // Each case is the number of keys, the number of rows in a flush (18 and 36 MB), and how often compactions may
    // rewrite a row.
    let small = 150_000.0;
    let cases = [
        (1e6, small, 0.7),
        (1e6, 2.0 * small, 0.5),
        (4e6, small, 2.5),
        (4e6, 2.0 * small, 1.2),
        (10e6, small, 3.7),
        (10e6, 2.0 * small, 2.9),
        (30e6, 2.0 * small, 5.2),
    ];
    let found = cases.map(|(keys, writes, _)| rewrites(keys, writes));
    println!("{found:.2?}");
    for ((keys, writes, most), found) in cases.into_iter().zip(found) {
        assert!(found <= most, "{keys} keys, flushes of {writes} rows: {found:.2} times");
    }
}

#[test]
fn a_random_load_rewrites_a_row_a_bounded_number_of_times() {
    // Each case is the number of keys, and how often compactions may rewrite a row until the table is at rest. A
    // flush has 37 MB.
    let cases = [(4e6, 1.0), (10e6, 1.8), (16e6, 2.7)];
    let writes = 300_000.0;
    let load = |keys: f64| {
        let mut model = Model { is_load: true, ..Model::new(keys) };
        (0..(keys / writes) as u64).for_each(|_| model.write(writes));
        model.compact(AT_REST);
        assert!(model.table().levels[0].len() < few_files(&model.options));
        model.rewritten_bytes / model.flushed_bytes
    };
    let found = cases.map(|(keys, _)| load(keys));
    println!("{found:.2?}");
    for ((keys, most), found) in cases.into_iter().zip(found) {
        assert!(found <= most, "{keys} keys: {found:.2} times");
    }
}
