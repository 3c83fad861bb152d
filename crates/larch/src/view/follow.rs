//! Takes rows one after the other without a step. The rows come from the *streaks* of a merge's sources. A streak
//! is the rest of the page in which a source stands, or it consists of copies of the next rows of a memtable. The
//! rows are taken without the lock of the [ends](super::ends). Streaks pin pages, but they keep no file and no
//! memtable. At the version of the range, these rows are also the right rows in every later view.
//!
//! ```text
//!   newest   [ a     d  e        ]               it stands at d, and the runner-up is c, so the
//!            [    b        f   j ]               sources are compared again: c is given next, and
//!   oldest   [       c d   ──────── d is older   then d of the newest. When the last row of a page
//!                                                was passed, the merge goes on.
//! ```
//!
//! One source has the row that comes next. The *runner-up* is the other source with the nearest row. While rows of
//! the first source come before the row of the runner-up, each row costs one comparison. If there is only one
//! source, a row costs no comparison. All keys of the pages begin with the same prefix. Keys are compared by the
//! eight bytes after this prefix. Only if these bytes are equal are whole keys compared.

use super::found::Spot;
use super::merge::{SourceStreak, StreakRows};
use pages::PageRef;
use sst::{Direction, RunEnd, StoredValue, Streak, StreakRow};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow, Range};

/// The next rows at one end of a range.
pub struct Following {
    /// The sources, newest first.
    sources: Vec<Source>,
    direction: Direction,
    /// The generation of the view in which the rows were found. If the number is that of a newer view, the end for
    /// these rows is gone.
    generation: u64,
    /// The length of the prefix with which all keys begin.
    prefix_bytes: usize,
    /// The source whose row comes next.
    now: usize,
    /// The source whose row comes after the next row, or an older source whose row has the same key as the next
    /// row.
    runner_up: Option<usize>,
    state: RowState,
    /// Whether some page has no row left. If so, nobody knows yet which row comes after this page.
    is_over: bool,
    /// The row that was given last: its source, and its place in the page.
    given: Option<(usize, usize)>,
    /// Whether the row that was passed last said nothing about its key. If so, older sources may show the key.
    is_key_open: bool,
}

/// What was done so far with the row that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowState {
    /// The row was read. It is still to be given or skipped.
    Read,
    /// The row decides what the value of its key is. Older sources do not show the key.
    Done,
    /// The row says nothing about its key.
    Skipped,
}

struct Source {
    beside: SourceStreak,
    /// The row at which the source stands. `None` if it has no more rows in its streak.
    row: Option<StreakRow>,
    /// The bytes after the prefix in the key of this row, as a number. The row that comes first in the direction
    /// has the lesser number.
    head: u64,
}

impl Following {
    /// Follows the rows of `streaks`, which were found in the view with the number `generation`. `streaks` must not
    /// be empty.
    pub fn new(streaks: Vec<SourceStreak>, generation: u64) -> Self {
        let direction = streaks[0].rows.direction();
        let shared = |bytes: usize, other: &SourceStreak| {
            let pairs = streaks[0].rows.prefix().iter().zip(other.rows.prefix());
            pairs.take_while(|(a, b)| a == b).count().min(bytes)
        };
        let prefix_bytes = streaks[1..].iter().fold(usize::MAX, shared);
        let sources = streaks.into_iter().map(|beside| Source { beside, row: None, head: 0 }).collect();
        let (now, runner_up, state, is_over, given, is_key_open) = (0, None, RowState::Read, false, None, false);
        let mut rows =
            Self { sources, direction, generation, prefix_bytes, now, runner_up, state, is_over, given, is_key_open };
        (0..rows.sources.len()).for_each(|source| rows.read(source));
        rows.choose();
        rows
    }

    #[inline]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn streaks(&self) -> impl Iterator<Item = &SourceStreak> {
        self.sources.iter().map(|source| &source.beside)
    }

    /// Whether the row that was passed last said nothing about its key. If so, older sources may show the key.
    pub fn is_key_open(&self) -> bool {
        self.is_key_open
    }

    /// How many bytes the pages take in the cache and the copies take in memory.
    pub fn pinned_bytes(&self) -> u64 {
        self.streaks().map(|beside| beside.rows.memory_bytes()).sum()
    }

    /// Notes the generation of the newest view. Returns true if it has changed since the last call.
    #[inline]
    pub fn renew(&mut self, newest: u64) -> bool {
        std::mem::replace(&mut self.generation, newest) != newest
    }

    /// Goes to the next row. It returns to the same row until this row was [given](Self::give). Returns false if
    /// the merge has to find the row. This function and [`Following::row`] are inlined.
    #[inline(always)]
    pub fn next(&mut self) -> bool {
        loop {
            self.pass_done();
            if self.is_over {
                return false;
            }
            match self.sources[self.now].row {
                Some(StreakRow::Shown(..)) => return true,
                Some(StreakRow::Gone) => self.state = RowState::Done,
                Some(StreakRow::Unseen) => self.state = RowState::Skipped,
                Some(StreakRow::Elsewhere) | None => return false,
            }
        }
    }

    /// The row to which [`Following::next`] went. The function is inlined, because each row of a scan goes through
    /// it.
    #[inline(always)]
    pub fn row(&self) -> FollowedRow<'_> {
        let beside_main = match &self.sources[self.now].beside.rows {
            StreakRows::Page(streak) => streak.parts(),
            StreakRows::Copied(_) => &[],
        };
        let (key, spot) = self.main();
        FollowedRow { key, beside_main, spot }
    }

    /// The key of this row, and the place of the part of the row that is in the main group.
    #[inline(always)]
    pub fn main(&self) -> (&[u8], Spot<'_>) {
        let Source { row, beside, .. } = &self.sources[self.now];
        let Some(StreakRow::Shown(start, end)) = *row else { unreachable!("the caller has gone to a row") };
        let spot = match &beside.rows {
            StreakRows::Page(streak) => Spot::InPage(streak.page(), start as usize..end as usize),
            StreakRows::Copied(rows) => Spot::Copied(rows.value(start, end)),
        };
        (beside.rows.key(), spot)
    }

    /// The key of this row.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.sources[self.now].beside.rows.key()
    }

    /// Notes that the row that came next was given.
    #[inline]
    pub fn give(&mut self) {
        self.given = self.sources[self.now].beside.rows.row().map(|row| (self.now, row));
        self.state = RowState::Done;
    }

    /// Calls `take` with the row to which [`Following::next`] went. Then it calls `take` with the following shown
    /// rows of the same page, as long as they come before the nearest row of the other sources. A row counts as
    /// given before `take` is called with it. If `take` breaks, it returns the value with which `take` broke.
    #[inline]
    pub fn run<B>(&mut self, mut take: impl FnMut(FollowedRow<'_>) -> ControlFlow<B>) -> Option<B> {
        // The row must count as given even if `take` panics.
        self.state = RowState::Done;
        let Self { sources, direction, prefix_bytes, now, runner_up, given, .. } = self;
        let nearest = runner_up.map(|other| sources[other].head);
        let Source { beside, row, head } = &mut sources[*now];
        let Some(StreakRow::Shown(start, end)) = *row else { unreachable!("the caller has gone to a row") };
        // If two heads are equal, the other source may have the same key.
        let comes_first = |head: u64| nearest.is_none_or(|nearest| head < nearest);
        let streak = match &mut beside.rows {
            StreakRows::Page(streak) if comes_first(*head) => streak,
            rows => {
                *given = rows.row().map(|row| (*now, row));
                return take(self.row()).break_value();
            }
        };
        let goes_on = |key: &[u8]| nearest.is_none() || comes_first(head_towards(*direction, key, *prefix_bytes));
        let give = |key: &[u8], page: &PageRef, beside_main: &[StoredValue], row: usize, value: Range<usize>| {
            *given = Some((*now, row));
            take(FollowedRow { key, beside_main, spot: Spot::InPage(page, value) })
        };
        match streak.run((start, end), goes_on, give) {
            RunEnd::Given(end) => Some(end),
            RunEnd::Before(next) => {
                (self.state, self.is_key_open) = (RowState::Read, false);
                self.arrive(self.now, next);
                if self.runner_up.is_some() {
                    self.choose();
                }
                None
            }
        }
    }

    /// Gives the row to which [`Following::next`] went, and the rows for which [`Following::run`] would call `take`
    /// after it. It gives at most `most` rows in all. It puts the places of their values in `values`, which must be
    /// empty. If the first row is not in a page, no row is given, and the result is false.
    #[inline]
    pub fn gather(&mut self, most: usize, values: &mut Vec<(u32, u32)>) -> bool {
        let Self { sources, direction, prefix_bytes, now, runner_up, given, .. } = self;
        let (now, nearest) = (*now, runner_up.map(|other| sources[other].head));
        // If rows of several sources alternate, it is seldom worth the time to look at the next row.
        let is_same = given.is_some_and(|(source, _)| source == now);
        let Source { beside, row, head } = &mut sources[now];
        let Some(StreakRow::Shown(start, end)) = *row else { unreachable!("the caller has gone to a row") };
        let StreakRows::Page(streak) = &mut beside.rows else { return false };
        // If two heads are equal, the other source may have the same key.
        let most = if nearest.is_none_or(|nearest| is_same && *head < nearest) { most } else { 1 };
        match nearest {
            None => streak.gather((start, end), most, None::<fn(&[u8]) -> bool>, values),
            Some(nearest) => {
                let comes_first = |key: &[u8]| head_towards(*direction, key, *prefix_bytes) < nearest;
                streak.gather((start, end), most, Some(comes_first), values);
            }
        }
        // The row that counts as given is the last row that was gathered, as if all rows had been taken one by one.
        // A row that was looked at but not taken may have put its key into the streak.
        if most > 1 {
            self.read(now);
        }
        self.give();
        true
    }

    /// The streak of the row that was given last, if this row is in a page. It can be used until the next row is
    /// asked for.
    #[inline]
    pub fn given_streak(&self) -> Option<&Streak> {
        match &self.sources[self.now].beside.rows {
            StreakRows::Page(streak) => Some(streak),
            StreakRows::Copied(_) => None,
        }
    }

    /// Moves `near`, the bound of this end, to the row that was given last.
    pub fn close_in(&self, near: &mut Bound<Vec<u8>>) {
        if self.given.is_none() {
            return;
        }
        let mut key = match std::mem::replace(near, Bound::Unbounded) {
            Bound::Excluded(key) | Bound::Included(key) => key,
            Bound::Unbounded => Vec::new(),
        };
        self.read_given(&mut key);
        *near = Bound::Excluded(key);
    }

    /// Replaces the content of `key` with the key of the row that was given last. Returns false if no row was
    /// given.
    pub fn read_given(&self, key: &mut Vec<u8>) -> bool {
        let Some((source, row)) = self.given else { return false };
        self.sources[source].beside.rows.read_key(row, key);
        true
    }

    /// Reads the row at which `source` stands.
    #[inline]
    fn read(&mut self, source: usize) {
        let row = self.sources[source].beside.rows.read();
        self.arrive(source, row);
    }

    /// Notes that `source` now stands at `next`. `next` was just read.
    #[inline]
    fn arrive(&mut self, source: usize, next: Option<StreakRow>) {
        let is_alone = self.sources.len() == 1;
        let Source { beside: SourceStreak { rows, .. }, row, head } = &mut self.sources[source];
        *row = next;
        if row.is_none() {
            self.is_over |= !rows.is_cut();
        } else if !is_alone {
            *head = head_towards(self.direction, rows.key(), self.prefix_bytes);
        }
    }

    /// Goes past the present row, if it was given or skipped. A given row can be read until this call.
    #[inline]
    pub fn pass_done(&mut self) {
        if self.state == RowState::Read {
            return;
        }
        self.is_key_open = self.state == RowState::Skipped;
        if self.runner_up.is_none() {
            let source = &mut self.sources[self.now];
            source.beside.rows.advance();
            source.row = source.beside.rows.read();
        } else {
            self.pass();
        }
        self.state = RowState::Read;
    }

    /// Goes past the present row if there is a runner-up.
    #[inline(never)]
    fn pass(&mut self) {
        let (now, is_decided) = (self.now, self.state == RowState::Done);
        let is_shared = is_decided && self.runner_up.is_some_and(|other| self.order(now, other) == Ordering::Equal);
        if is_shared {
            // Older sources with the same key also go past this key.
            for older in now + 1..self.sources.len() {
                if self.sources[older].row.is_some() && self.order(older, now) == Ordering::Equal {
                    self.sources[older].beside.rows.advance();
                    self.read(older);
                }
            }
        }
        self.sources[now].beside.rows.advance();
        self.read(now);
        let is_nearest = |other: usize| self.order(now, other) == Ordering::Less;
        if is_shared || self.sources[now].row.is_none() || !self.runner_up.is_some_and(is_nearest) {
            self.choose();
        }
    }

    /// Compares the next rows of the sources `a` and `b` in the direction of the range. The result is `Less` if the
    /// row of `a` comes first.
    #[inline]
    fn order(&self, a: usize, b: usize) -> Ordering {
        let (a, b) = (&self.sources[a], &self.sources[b]);
        a.head.cmp(&b.head).then_with(|| {
            let keys = a.beside.rows.key().cmp(b.beside.rows.key());
            if self.direction == Direction::Forward { keys } else { keys.reverse() }
        })
    }

    /// Compares all sources, and chooses the next source and the runner-up.
    fn choose(&mut self) {
        let (mut now, mut runner_up) = (None, None);
        for source in (0..self.sources.len()).filter(|&source| self.sources[source].row.is_some()) {
            if now.is_none_or(|now| self.order(source, now) == Ordering::Less) {
                runner_up = now.replace(source);
            } else if runner_up.is_none_or(|other| self.order(source, other) == Ordering::Less) {
                runner_up = Some(source);
            }
        }
        // If no source has a row left, any source can be the next one: each says that it has no row.
        self.now = now.unwrap_or(0);
        self.runner_up = runner_up;
    }
}

/// A row in its page, or a copy of a row in memory.
pub struct FollowedRow<'r> {
    pub key: &'r [u8],
    /// If the row is in a page, these are its parts in the wanted groups, without the main group.
    pub beside_main: &'r [StoredValue],
    pub spot: Spot<'r>,
}

/// The [head](head_of) of `key`. If the range goes backward, it is the greatest number minus the head of `key`. So
/// the key that comes first in the direction has the lesser number.
#[inline]
fn head_towards(direction: Direction, key: &[u8], prefix_bytes: usize) -> u64 {
    let head = head_of(key, prefix_bytes);
    if direction == Direction::Forward { head } else { !head }
}

/// The eight bytes of `key` after its first `prefix_bytes`, as a number. Bytes after the end of the key count as
/// zeros. The key must be at least as long as the prefix and begin with it. If two keys have the same prefix and
/// different numbers, the key with the lesser number is the lesser key.
#[inline]
fn head_of(key: &[u8], prefix_bytes: usize) -> u64 {
    let rest = key.len() - prefix_bytes;
    match key.last_chunk::<8>() {
        _ if rest >= 8 => u64::from_be_bytes(*key[prefix_bytes..].first_chunk().expect("eight bytes follow")),
        // The shift removes the bytes before the rest of the key, and fills with zeros.
        Some(_) if rest == 0 => 0,
        Some(end) => u64::from_be_bytes(*end) << (8 * (8 - rest)),
        None => {
            let mut bytes = [0; 8];
            bytes[..rest].copy_from_slice(&key[prefix_bytes..]);
            u64::from_be_bytes(bytes)
        }
    }
}
