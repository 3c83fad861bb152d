//! Tests picks for concurrent compactions, which begin and end in any order: their claims never overlap, and no row
//! ever gets below an older row of the same key. The files are simulated: the key space is cut into cells, and a
//! file has only a version for each cell.

use super::*;
use crate::levels::claim::Claim;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const CELLS: usize = 64;
const BYTES: u64 = 1 << 20;

/// The content of a simulated file: for each cell, the version of its row, or 0 if it has none.
type Cells = Vec<u64>;

struct Beside {
    set: FileSet,
    opener: FileOpener,
    options: LevelOptions,
    files: HashMap<u64, Cells>,
    last_number: u64,
    last_version: u64,
    under_way: Vec<(Pick, Claim)>,
    most_beside: usize,
}

fn key(cell: usize) -> Vec<u8> {
    vec![cell as u8]
}

impl Beside {
    fn new() -> Self {
        let (set, opener) = empty_table();
        let options = LevelOptions {
            level0_files: 4,
            base_bytes: BYTES,
            growth: 4,
            file_bytes: BYTES,
            ..LevelOptions::default()
        };
        let (files, under_way) = (HashMap::new(), Vec::new());
        Self { set, opener, options, files, last_number: 0, last_version: 0, under_way, most_beside: 0 }
    }

    fn table(&self) -> &TableFiles {
        &self.set.tables[&TableId(1)]
    }

    fn apply(&mut self, edit: &Edit) {
        self.set.apply(edit, &self.opener, &mut Vec::new()).expect("each file is taken by one compaction");
    }

    fn add(&mut self, level: usize, cells: Cells) {
        let Some(first) = cells.iter().position(|version| *version > 0) else { return };
        let last = cells.iter().rposition(|version| *version > 0).expect("there is a first");
        let rows = cells.iter().filter(|version| **version > 0).count() as u64;
        self.last_number += 1;
        let meta = described(rows * BYTES / 4, rows, 0, key(first), key(last));
        self.apply(&added(level as u8, self.last_number, meta));
        self.files.insert(self.last_number, cells);
    }

    fn flush(&mut self, random: &mut StdRng) {
        self.last_version += 1;
        let (first, count) = (random.random_range(0..CELLS), random.random_range(1..=CELLS));
        let last = if random.random() { CELLS } else { (first + count / 4 + 1).min(CELLS) };
        let (first, version) = (if last == CELLS { 0 } else { first }, self.last_version);
        let mut cell = |i| if (first..last).contains(&i) && random.random_range(0..3) > 0 { version } else { 0 };
        let cells = (0..CELLS).map(&mut cell).collect();
        self.add(0, cells);
    }

    /// Begins the compaction that the picker picks next, if it picks one.
    fn begin(&mut self) {
        let claims: Vec<Claim> = self.under_way.iter().map(|(_, claim)| claim.clone()).collect();
        let pick = pick(self.table(), &self.options, Version(0), Level0Use::default(), &claims);
        let Some(claim) = pick.claim(self.table()) else { return };
        assert!(claims.iter().all(|other| !other.meets(&claim)), "{claim:?} meets one of {claims:?}");
        self.under_way.push((pick, claim));
        self.most_beside = self.most_beside.max(self.under_way.len());
    }

    /// Ends one of the compactions under way.
    fn end(&mut self, which: usize) {
        let (pick, _) = self.under_way.swap_remove(which);
        match pick {
            Pick::Nothing => {}
            Pick::Move { from, to, number, .. } => {
                self.apply(&Edit::MoveFile { table: TableId(1), level: from as u8, number, to: to as u8 });
            }
            Pick::Drop { .. } => unreachable!("no row has a time"),
            Pick::Merge { inputs, to, .. } => {
                let mut merged = vec![0; CELLS];
                for (level, number) in inputs {
                    self.apply(&Edit::RemoveFile { table: TableId(1), level: level as u8, number });
                    let cells = self.files.remove(&number).expect("it is an input of one compaction");
                    merged.iter_mut().zip(cells).for_each(|(newest, version)| *newest = version.max(*newest));
                }
                for (i, piece) in merged.chunks(4).enumerate() {
                    let mut cells = vec![0; CELLS];
                    cells[4 * i..4 * i + piece.len()].copy_from_slice(piece);
                    self.add(to, cells);
                }
            }
        }
        self.check();
    }

    /// Checks that upper levels, and newer files of level 0, have newer versions of each cell, and that no two
    /// files of a deeper level overlap.
    fn check(&self) {
        let table = self.table();
        for cell in 0..CELLS {
            let versions = table.files().map(|(_, file)| self.files[&file.number][cell]).filter(|version| *version > 0);
            let versions: Vec<u64> = versions.collect();
            assert!(versions.is_sorted_by(|newer, older| newer > older), "cell {cell} has {versions:?}");
        }
        for level in &table.levels[1..] {
            assert!(level.windows(2).all(|pair| !pair[0].sst.bounds().overlaps(pair[1].sst.bounds())));
        }
    }
}

#[test]
fn compactions_beside_each_other_never_meet_and_keep_the_order_of_versions() {
    let mut most_beside = 0;
    for seed in 0..20 {
        let random = &mut StdRng::seed_from_u64(seed);
        let mut model = Beside::new();
        for _ in 0..400 {
            match random.random_range(0..4) {
                0 => model.flush(random),
                1 | 2 => model.begin(),
                _ if model.under_way.is_empty() => {}
                _ => model.end(random.random_range(0..model.under_way.len())),
            }
        }
        most_beside = most_beside.max(model.most_beside);
        // End all compactions under way, so that no pick has to wait for another compaction.
        while !model.under_way.is_empty() {
            model.end(0);
        }
        for _ in 0..10_000 {
            model.begin();
            if model.under_way.is_empty() {
                break;
            }
            model.end(0);
        }
        assert!(model.under_way.is_empty(), "compactions end (seed {seed})");
        assert!(model.table().levels[0].len() < 4, "level 0 is in shape (seed {seed})");
    }
    assert!(most_beside >= 3, "at most {most_beside} ran beside each other");
}
