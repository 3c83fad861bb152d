//! One walk takes rows from streaks where it can. It must give the same rows as a walk that asks for each row by a
//! step.

use super::*;
use crate::slice::{RowRanges, Slice};
use pages::{Resident, retry};
use std::collections::BTreeSet;

type Given = Vec<(Vec<u8>, Vec<u8>)>;

struct Walk<'a> {
    sst: &'a Arc<Sst>,
    source: &'a Resident,
    direction: Direction,
    at: Version,
    /// A range erase over all keys.
    erased: Option<Version>,
    /// Rows that expire at or before this time are gone.
    now: u64,
    far: Bound<&'a [u8]>,
}

impl Walk<'_> {
    fn is_beyond(&self, key: &[u8]) -> bool {
        match (self.far, self.direction) {
            (Bound::Unbounded, _) => false,
            (Bound::Included(far), Direction::Forward) => key > far,
            (Bound::Excluded(far), Direction::Forward) => key >= far,
            (Bound::Included(far), Direction::Backward) => key < far,
            (Bound::Excluded(far), Direction::Backward) => key <= far,
        }
    }

    fn seek_near(&self, cursor: &mut SstCursor) -> bool {
        retry(self.source, || match self.direction {
            Direction::Forward => cursor.seek_first(self.source),
            Direction::Backward => cursor.seek_last(self.source),
        })
        .expect("the disk works")
    }

    fn step(&self, cursor: &mut SstCursor) -> bool {
        retry(self.source, || match self.direction {
            Direction::Forward => cursor.next(self.source),
            Direction::Backward => cursor.prev(self.source),
        })
        .expect("the disk works")
    }

    /// The row at which the cursor stands, if it is visible and has a value.
    fn row(&self, cursor: &SstCursor) -> Option<(Vec<u8>, Vec<u8>)> {
        let row = retry(self.source, || cursor.visible(self.source, self.at)).expect("the disk works")?;
        let value = retry(self.source, || row.value.load(self.source, &self.sst.file)).expect("the disk works");
        let is_erased = self.erased.is_some_and(|erased| row.version < erased);
        let is_put = row.kind == RowKind::Put || row.until().is_some_and(|until| until.millis() > self.now);
        (is_put && !is_erased).then(|| (cursor.key().to_vec(), value.as_bytes().to_vec()))
    }

    fn by_rows(&self) -> Given {
        let mut cursor = SstCursor::new(Arc::clone(self.sst));
        let mut given = Given::new();
        let mut there = self.seek_near(&mut cursor);
        while there && !self.is_beyond(cursor.key()) {
            given.extend(self.row(&cursor));
            there = self.step(&mut cursor);
        }
        given
    }

    /// The walk by streaks. It also returns how many of the rows came from streaks.
    fn by_streaks(&self, rng: &mut StdRng) -> (Given, usize) {
        let mut cursor = SstCursor::new(Arc::clone(self.sst));
        let (mut given, mut followed) = (Given::new(), 0);
        let mut there = self.seek_near(&mut cursor);
        while there && !self.is_beyond(cursor.key()) {
            let start = [StreakStart::At, StreakStart::After][rng.random_range(0..2)];
            let streak = cursor.streak(start, self.direction, (self.at, self.erased), Groups::MAIN);
            if streak.is_none() || start == StreakStart::After {
                given.extend(self.row(&cursor));
            }
            let Some(mut streak) = streak else {
                there = self.step(&mut cursor);
                continue;
            };
            streak.until(self.far);
            streak.at_time(self.now);
            let most = [0, 1, 3, usize::MAX][rng.random_range(0..4)];
            for _ in 0..most {
                let Some(row) = streak.read() else { break };
                let (key, at) = (streak.key().to_vec(), streak.row());
                assert!(streak.read() == Some(row) && streak.key() == key, "it is the same one until it was passed");
                match row {
                    StreakRow::Shown(start, end) => {
                        given.push((key.clone(), streak.page()[start as usize..end as usize].to_vec()));
                        followed += 1;
                    }
                    StreakRow::Gone | StreakRow::Unseen => {}
                    StreakRow::Elsewhere => break,
                }
                streak.advance();
                let mut again = Vec::new();
                streak.read_key(at.expect("it was read"), &mut again);
                assert_eq!(again, key);
            }
            match (streak.has_advanced(), start) {
                (true, _) => cursor.resume(&streak),
                (false, StreakStart::After) => {}
                // The streak gave no row, so the row at which the cursor stands is still to be given.
                (false, StreakStart::At) => given.extend(self.row(&cursor)),
            }
            there = self.step(&mut cursor);
        }
        (given, followed)
    }
}

/// Some of the file's rows, with gaps.
fn slice(sst: &Sst, rng: &mut StdRng) -> Slice {
    let rows = sst.meta.rows();
    let ranges: Vec<_> = (0..rows).filter(|_| rng.random_bool(0.7)).map(|row| row..row + 1).collect();
    Slice { rows: RowRanges::new(ranges), bounds: sst.meta.bounds.clone(), bytes: 1 }
}

#[test]
fn rows_taken_from_their_page_are_those_that_are_asked_for_one_by_one() {
    let (mut followed, mut walked) = (0, 0);
    for seed in 0..60 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let content = Content::random(&mut rng, 60);
        let options = BuildOptions { page_bytes: [256, 1024, 4096][seed as usize % 3], max_page_rows: 1000, ..tiny() };
        let mut built = content.build(options);
        built.version_offset = [0, 1_000][rng.random_range(0..2)];
        let whole = built.sst();
        let sst = if rng.random() { Arc::new(whole.sliced(Some(slice(&whole, &mut rng)))) } else { whole };
        let source = Resident::new(crate::format::validate);
        let moments: BTreeSet<u64> = moments(&content).into_iter().collect();
        for at in moments {
            let at = Version(at.saturating_add(built.version_offset));
            let ends = probes(&content);
            for direction in [Direction::Forward, Direction::Backward] {
                for _ in 0..8 {
                    let end = ends[rng.random_range(0..ends.len())].as_slice();
                    let far = [Bound::Unbounded, Bound::Included(end), Bound::Excluded(end)][rng.random_range(0..3)];
                    let erased = Version(built.version_offset + rng.random_range(0..100));
                    let erased = Some(erased).filter(|&erased| rng.random() && erased <= at);
                    let now = rng.random_range(0..=crate::fixture::LAST_UNTIL + 1);
                    let walk = Walk { sst: &sst, source: &source, direction, at, erased, now, far };
                    let (given, by_streaks) = walk.by_streaks(&mut rng);
                    assert_eq!(given, walk.by_rows(), "{direction:?} at {at:?} to {far:?}");
                    followed += by_streaks;
                    walked += given.len();
                }
            }
        }
    }
    assert!(followed * 10 > walked, "of {walked} rows {followed} came from their page");
}
