//! Walks over several sorted cursors as if they were one. The frontier lies between the keys that this walk has
//! passed and the keys that it has yet to reach.
//!
//! ```text
//!            passed   | next
//!   newest   a   c    | e        f        i
//!            a        |     e    .   g            the nearest key is e; the newest cursor that stands
//!   oldest     b      |     e    f        i       at it is the first one, and three stand at it
//!                     ^ the frontier, in the direction of the walk
//! ```
//!
//! Cursors are moved together: even if the move of one cursor faults, all others that have to move are moved before
//! the fault is returned. When the step runs again after the fault, it does not move those that have arrived. This
//! module does not know the content of rows: a read uses the newest cursor that has a visible version of the key, and
//! a compaction takes all versions from all cursors.

use pages::Stop;
use sst::Direction;

/// A cursor that can be part of a frontier.
pub trait Sorted {
    /// The key at which the cursor stands. `None` if it stands at none.
    fn key(&self) -> Option<&[u8]>;
}

/// Sorted cursors, newest first. Their moves have the type `M`.
#[derive(Debug)]
pub struct Frontier<C, M> {
    direction: Direction,
    sources: Vec<FrontierSource<C, M>>,
    /// Whether every source has arrived.
    has_arrived: bool,
}

#[derive(Debug)]
struct FrontierSource<C, M> {
    cursor: C,
    progress: Progress<M>,
}

/// What a cursor still has to do before its key can be compared.
#[derive(Debug)]
enum Progress<M> {
    Moving(M),
    Arrived,
    /// The cursor has no further key.
    Ended,
}

impl<C: Sorted, M> Frontier<C, M> {
    /// A frontier of `cursors`, newest first. `first` returns the first move of each.
    pub fn new(direction: Direction, cursors: impl IntoIterator<Item = C>, first: impl Fn() -> M) -> Self {
        let source = |cursor| FrontierSource { cursor, progress: Progress::Moving(first()) };
        Self { direction, sources: cursors.into_iter().map(source).collect(), has_arrived: false }
    }

    /// Begins another walk. `first` returns the first move of each cursor.
    pub fn restart(&mut self, first: impl Fn() -> M) {
        self.has_arrived = false;
        self.sources.iter_mut().for_each(|source| source.progress = Progress::Moving(first()));
    }

    /// Whether every source has arrived.
    #[inline]
    pub fn has_arrived(&self) -> bool {
        self.has_arrived
    }

    /// Moves each source that has to move. `go` makes the move and returns whether the cursor has reached a key. All
    /// faults together become one, which is also returned if `is_missing`, because the caller itself misses pages. A
    /// step.
    ///
    /// # Errors
    ///
    /// [`Stop::Fault`] if a page is missing. Before the fault is returned, every source that can move has moved.
    /// Any other stop is returned at once.
    #[inline]
    pub fn arrive(
        &mut self,
        mut is_missing: bool,
        mut go: impl FnMut(&mut C, &M) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        for FrontierSource { cursor, progress } in &mut self.sources {
            let Progress::Moving(to) = progress else { continue };
            match go(cursor, to) {
                Ok(true) => *progress = Progress::Arrived,
                Ok(false) => *progress = Progress::Ended,
                Err(Stop::Fault) => is_missing = true,
                Err(stop) => return Err(stop),
            }
        }
        if is_missing {
            return Err(Stop::Fault);
        }
        self.has_arrived = true;
        Ok(())
    }

    /// The nearest key of all sources, with the newest source that stands at it. All sources must have arrived.
    #[inline]
    pub fn nearest(&self) -> Option<(usize, &[u8])> {
        let mut nearest: Option<(usize, &[u8])> = None;
        for i in 0..self.sources.len() {
            let Some(key) = self.key(i) else { continue };
            let is_nearer = nearest.is_none_or(|(_, nearest)| match self.direction {
                Direction::Forward => key < nearest,
                Direction::Backward => key > nearest,
            });
            if is_nearer {
                nearest = Some((i, key));
            }
        }
        nearest
    }

    /// The key at which source `i` stands, or from which it still has to move. `None` if the source has ended.
    #[inline]
    pub fn key(&self, i: usize) -> Option<&[u8]> {
        let FrontierSource { cursor, progress } = &self.sources[i];
        if matches!(progress, Progress::Ended) { None } else { cursor.key() }
    }

    /// Leaves `key`. For every source that stands at it, `next` returns the move that the source has to make.
    #[inline]
    pub fn leave(&mut self, key: &[u8], mut next: impl FnMut(usize, &mut C) -> M) {
        self.has_arrived = false;
        for (i, FrontierSource { cursor, progress }) in self.sources.iter_mut().enumerate() {
            if matches!(progress, Progress::Arrived) && cursor.key() == Some(key) {
                *progress = Progress::Moving(next(i, cursor));
            }
        }
    }

    /// Lets source `i` move `to` before keys are compared again.
    #[inline]
    pub fn send(&mut self, i: usize, to: M) {
        self.has_arrived = false;
        self.sources[i].progress = Progress::Moving(to);
    }

    /// The move that source `i` still has to make, if any.
    #[inline]
    pub fn moving(&self, i: usize) -> Option<&M> {
        if let Progress::Moving(to) = &self.sources[i].progress { Some(to) } else { None }
    }

    /// The number of sources.
    #[inline]
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Source `i`.
    #[inline]
    pub fn cursor(&self, i: usize) -> &C {
        &self.sources[i].cursor
    }

    /// Source `i`.
    #[inline]
    pub fn cursor_mut(&mut self, i: usize) -> &mut C {
        &mut self.sources[i].cursor
    }

    /// All sources, newest first.
    pub fn cursors(&self) -> impl Iterator<Item = &C> {
        self.sources.iter().map(|source| &source.cursor)
    }

    /// All sources, newest first.
    pub fn cursors_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.sources.iter_mut().map(|source| &mut source.cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cursor over sorted keys. The first try of each move faults.
    struct Keys {
        keys: Vec<&'static [u8]>,
        next: usize,
        is_asked: bool,
    }

    impl Sorted for Keys {
        fn key(&self) -> Option<&[u8]> {
            self.next.checked_sub(1).and_then(|at| self.keys.get(at).copied())
        }
    }

    impl Keys {
        fn step(&mut self) -> Result<bool, Stop> {
            self.is_asked = !self.is_asked;
            if self.is_asked {
                return Err(Stop::Fault);
            }
            self.next += 1;
            Ok(self.next <= self.keys.len())
        }
    }

    /// Walks over `sources`. Returns all keys, each with the sources that have it, and how often the walk faulted.
    fn merged(direction: Direction, sources: &[&[&'static str]]) -> (Vec<(String, Vec<usize>)>, usize) {
        let keys = |keys: &&[&'static str]| {
            let mut keys: Vec<&'static [u8]> = keys.iter().map(|key| key.as_bytes()).collect();
            if direction == Direction::Backward {
                keys.reverse();
            }
            Keys { keys, next: 0, is_asked: false }
        };
        let mut frontier = Frontier::new(direction, sources.iter().map(keys), || ());
        let (mut found, mut rounds) = (Vec::new(), 0);
        loop {
            while frontier.arrive(false, |keys, ()| keys.step()).is_err() {
                rounds += 1;
            }
            let Some((newest, key)) = frontier.nearest() else { return (found, rounds) };
            let key = key.to_vec();
            let at: Vec<usize> = (0..frontier.len()).filter(|&i| frontier.key(i) == Some(&key)).collect();
            assert_eq!(at.first(), Some(&newest));
            frontier.leave(&key, |_, _| ());
            assert!(!frontier.has_arrived());
            found.push((String::from_utf8(key).expect("keys are text"), at));
        }
    }

    fn expected(rows: &[(&str, &[usize])]) -> Vec<(String, Vec<usize>)> {
        rows.iter().map(|(key, at)| ((*key).to_owned(), at.to_vec())).collect()
    }

    #[test]
    fn two_vectors_are_walked_as_one_in_both_directions() {
        let sources: [&[&str]; 2] = [&["a", "c", "d"], &["b", "c", "e"]];
        let all = expected(&[("a", &[0]), ("b", &[1]), ("c", &[0, 1]), ("d", &[0]), ("e", &[1])]);
        assert_eq!(merged(Direction::Forward, &sources).0, all);
        let back: Vec<_> = all.into_iter().rev().collect();
        assert_eq!(merged(Direction::Backward, &sources).0, back);
    }

    #[test]
    fn cursors_that_move_together_fault_together() {
        let same: [&[&str]; 3] = [&["a", "b"], &["a", "b"], &["a", "b"]];
        // The walk faults once on the way to each key, and once on the way past the last one, for all sources
        // together.
        assert_eq!(merged(Direction::Forward, &same).1, 3);
        let apart: [&[&str]; 2] = [&["a", "b"], &["c", "d"]];
        assert_eq!(merged(Direction::Forward, &apart).1, 5);
    }

    #[test]
    fn sources_without_keys_end_at_once() {
        assert_eq!(merged(Direction::Forward, &[&[], &["a"], &[]]).0, expected(&[("a", &[1])]));
        assert!(merged(Direction::Forward, &[]).0.is_empty());
    }
}
