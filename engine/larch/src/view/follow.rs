//! Gives a range its next rows without a step of the merge. The rows come from *streaks*. A source of the merge has at
//! most one: the rest of the page in which the source stands, or copies of the next rows of a memtable. Rows are given
//! without the lock of the [ends](super::ends). Streaks pin pages, but no files and no memtables: every later view
//! would show the same rows at the range's version.
//!
//! ```text
//!   newest   [ a     d  e        ]               it stands at d, and the runner-up is c, so the
//!            [    b        f   j ]               sources are compared again: c is given next, and
//!   oldest   [       c d   ──────── d is older   then d of the newest. When the last row of a page
//!                                                was passed, the merge goes on.
//! ```
//!
//! One source has the next row. The *runner-up* is the other source with the nearest row. As long as the rows of the
//! first source come before that of the runner-up, each row costs one comparison, or none if there is only one
//! source. All keys of the streaks share a prefix, so two keys are compared by the eight bytes after it, and only if
//! these are equal by the whole keys.

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
    /// The generation of the view in which the rows were found, or of a newer view after [`Following::renew`]. In
    /// that case the place of the merge was dropped.
    generation: u64,
    /// The length of the prefix that all keys share.
    prefix_bytes: usize,
    /// The source whose row comes next.
    now: usize,
    /// The other source with the nearest row. Its row may have the same key as the next row if the source is older.
    runner_up: Option<usize>,
    state: RowState,
    /// Whether a streak has run out of rows although its source may have more. Then only the merge can find the next
    /// row.
    is_over: bool,
    /// The row that was given last: its source, and its place in the page or among the copies.
    given: Option<(usize, usize)>,
    /// Whether the last row that was passed left its key undecided, so that an older source may have a visible row
    /// with it.
    is_key_open: bool,
    spare: SpareKeys,
}

/// Memory for the keys of the next source, and of further ones.
#[derive(Default)]
struct SpareKeys {
    next: Vec<u8>,
    further: Vec<Vec<u8>>,
}

impl SpareKeys {
    #[inline]
    fn take(&mut self) -> Vec<u8> {
        if self.next.capacity() > 0 { std::mem::take(&mut self.next) } else { self.further.pop().unwrap_or_default() }
    }

    #[inline]
    fn give(&mut self, key: Vec<u8>) {
        if self.next.capacity() == 0 {
            self.next = key;
        } else if key.capacity() > 0 {
            self.further.push(key);
        }
    }
}

/// The state of the row that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowState {
    /// Read, but not yet given or skipped.
    Read,
    /// Given, or an erase. Rows of older sources with the same key are passed together with it.
    Done,
    /// Not visible to the reader, so it does not decide about its key.
    Skipped,
}

struct Source {
    beside: SourceStreak,
    /// The row at which the source stands. `None` if the streak has no more rows.
    row: Option<StreakRow>,
    /// The eight bytes after the prefix in the key of this row, as a number. For a backward walk its bits are
    /// inverted, so that the row that comes first always has the smaller number.
    head: u64,
}

impl Source {
    fn new(beside: SourceStreak) -> Self {
        Self { beside, row: None, head: 0 }
    }
}

impl Following {
    /// Follows the rows of `streaks`, which were found in the view with this `generation`. There must be at least
    /// one.
    pub fn new(streaks: Vec<SourceStreak>, generation: u64) -> Self {
        let mut rows = Self::none(streaks[0].rows.direction(), generation, None);
        rows.sources.extend(streaks.into_iter().map(Source::new));
        rows.begin();
        rows
    }

    /// Follows no rows of the view with this `generation`, until streaks are [added](Self::add). It uses the memory of
    /// `spare`, whose rows are no longer followed.
    pub fn none(direction: Direction, generation: u64, spare: Option<Self>) -> Self {
        let (sources, spare) = spare.map_or_else(Default::default, |spare| (spare.sources, spare.spare));
        let (now, runner_up, state, is_over, given, is_key_open) = (0, None, RowState::Read, false, None, false);
        let prefix_bytes = usize::MAX;
        Self { sources, direction, generation, prefix_bytes, now, runner_up, state, is_over, given, is_key_open, spare }
    }

    /// Memory for the keys of a source, which may be empty.
    pub fn take_memory(&mut self) -> Vec<u8> {
        self.spare.take()
    }

    /// Takes back memory that was not used.
    pub fn give_memory(&mut self, key: Vec<u8>) {
        self.spare.give(key);
    }

    /// Adds the rows of an older source, before the first row is followed.
    #[inline]
    pub fn add(&mut self, streak: Streak) {
        let beside = SourceStreak { source: self.sources.len(), rows: StreakRows::Page(streak) };
        self.sources.push(Source::new(beside));
    }

    /// Goes to the first of the rows that were [added](Self::add) and come before `end`. Returns false if there is
    /// none.
    pub fn begin_before(&mut self, end: Bound<&[u8]>) -> bool {
        let Self { sources, spare, .. } = self;
        sources.retain_mut(|Source { beside, .. }| match &mut beside.rows {
            StreakRows::Page(streak) => {
                streak.until(end);
                if streak.is_empty() {
                    spare.give(streak.take_memory());
                }
                !streak.is_empty()
            }
            StreakRows::Copied(_) => unreachable!("only pages are added"),
        });
        let has_rows = !self.sources.is_empty();
        if has_rows {
            self.begin();
        }
        has_rows
    }

    /// Goes to the first row.
    #[inline]
    fn begin(&mut self) {
        let (first, older) = self.sources.split_first().expect("there is a streak");
        let shared = |bytes: usize, other: &Source| {
            let pairs = first.beside.rows.prefix().iter().zip(other.beside.rows.prefix());
            pairs.take_while(|(a, b)| a == b).count().min(bytes)
        };
        self.prefix_bytes = older.iter().fold(usize::MAX, shared);
        (0..self.sources.len()).for_each(|source| self.read(source));
        self.choose();
    }

    /// Stops following and drops the pages of the rows. What is left is memory for [`Following::none`].
    pub fn clear(mut self) -> Self {
        for Source { beside, .. } in self.sources.drain(..) {
            if let StreakRows::Page(mut streak) = beside.rows {
                self.spare.give(streak.take_memory());
            }
        }
        self
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

    /// The pages of the rows.
    pub fn pages(&self) -> impl Iterator<Item = &PageRef> {
        self.streaks().filter_map(|beside| match &beside.rows {
            StreakRows::Page(streak) => Some(streak.page()),
            StreakRows::Copied(_) => None,
        })
    }

    /// Whether the last row that was passed left its key undecided, so that an older source may have a visible row
    /// with it.
    pub fn is_key_open(&self) -> bool {
        self.is_key_open
    }

    /// The bytes that the pages of the streaks take in the cache, plus those of the copies.
    pub fn pinned_bytes(&self) -> u64 {
        self.streaks().map(|beside| beside.rows.memory_bytes()).sum()
    }

    /// Stores the generation of the newest view. Returns whether it has changed.
    #[inline]
    pub fn renew(&mut self, newest: u64) -> bool {
        std::mem::replace(&mut self.generation, newest) != newest
    }

    /// Steps to the next row, or stays at the current row if it was not [given](Self::give) yet. Returns false if
    /// only the merge can find the next row. Inlined, as is [`Following::row`], because each row of a scan goes
    /// through them.
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

    /// The row to which [`Following::next`] stepped.
    #[inline(always)]
    pub fn row(&self) -> FollowedRow<'_> {
        let beside_main = match &self.sources[self.now].beside.rows {
            StreakRows::Page(streak) => streak.parts(),
            StreakRows::Copied(_) => &[],
        };
        let (key, spot) = self.main();
        FollowedRow { key, beside_main, spot }
    }

    /// The key of the row to which [`Following::next`] stepped, and where its main-group part lies.
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

    /// The key at which the next source stands.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.sources[self.now].beside.rows.key()
    }

    /// Called when the row to which [`Following::next`] stepped is given.
    #[inline]
    pub fn give(&mut self) {
        self.given = self.sources[self.now].beside.rows.row().map(|row| (self.now, row));
        self.state = RowState::Done;
    }

    /// Calls `take` with the row to which [`Following::next`] stepped, and then with the next visible rows of the
    /// same page as long as they come before the nearest row of the other sources. A row counts as given before
    /// `take` gets it. Returns the value with which `take` broke, if it did.
    #[inline]
    pub fn run<B>(&mut self, mut take: impl FnMut(FollowedRow<'_>) -> ControlFlow<B>) -> Option<B> {
        // The row must count as given even if `take` panics.
        self.state = RowState::Done;
        let Self { sources, direction, prefix_bytes, now, runner_up, given, .. } = self;
        let nearest = runner_up.map(|other| sources[other].head);
        let Source { beside, row, head } = &mut sources[*now];
        let Some(StreakRow::Shown(start, end)) = *row else { unreachable!("the caller has gone to a row") };
        // If the eight bytes are equal, the runner-up may have the same key, and only whole keys can tell.
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

    /// Gives the same rows as [`Following::run`], but at most `most`, and puts the places of their values in the page
    /// into `values`, which must be empty. If the first row is not in a page, gives no row and returns false.
    #[inline]
    pub fn gather(&mut self, most: usize, values: &mut Vec<(u32, u32)>) -> bool {
        let Self { sources, direction, prefix_bytes, now, runner_up, given, .. } = self;
        let (now, nearest) = (*now, runner_up.map(|other| sources[other].head));
        // If the last row came from another source, the rows of several sources probably alternate. Then looking at
        // the next row of this source usually does not pay.
        let is_same = given.is_some_and(|(source, _)| source == now);
        let Source { beside, row, head } = &mut sources[now];
        let Some(StreakRow::Shown(start, end)) = *row else { unreachable!("the caller has gone to a row") };
        let StreakRows::Page(streak) = &mut beside.rows else { return false };
        // If the eight bytes are equal, the runner-up may have the same key, and only whole keys can tell.
        let most = if nearest.is_none_or(|nearest| is_same && *head < nearest) { most } else { 1 };
        match nearest {
            None => streak.gather((start, end), most, None::<fn(&[u8]) -> bool>, values),
            Some(nearest) => {
                let comes_first = |key: &[u8]| head_towards(*direction, key, *prefix_bytes) < nearest;
                streak.gather((start, end), most, Some(comes_first), values);
            }
        }
        // The last gathered row counts as given, as if the rows had been given one by one. The streak may already
        // have read the key of the row after it, so the last row is read again.
        if most > 1 {
            self.read(now);
        }
        self.give();
        true
    }

    /// The streak of the row that was given last, if this row is in a page. Usable until the next row is requested.
    #[inline]
    pub fn given_streak(&self) -> Option<&Streak> {
        match &self.sources[self.now].beside.rows {
            StreakRows::Page(streak) => Some(streak),
            StreakRows::Copied(_) => None,
        }
    }

    /// Moves `near` to the row that was given last. It is the bound at the end from which the range is read.
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

    /// Replaces `key` with the key of the row that was given last. Returns false if no row was given.
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

    /// Notes that `source` now stands at `next`, which was just read.
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

    /// Passes the current row if its state is `Done` or `Skipped`. Until then, a row that was given stays readable.
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

    /// Passes the current row when there is a runner-up.
    #[inline(never)]
    fn pass(&mut self) {
        let (now, is_decided) = (self.now, self.state == RowState::Done);
        let is_shared = is_decided && self.runner_up.is_some_and(|other| self.order(now, other) == Ordering::Equal);
        if is_shared {
            // Older sources that stand at the same key pass it, too.
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

    /// Compares the rows at which the sources `a` and `b` stand, in the direction of the range. `Less` means that the
    /// row of `a` comes first.
    #[inline]
    fn order(&self, a: usize, b: usize) -> Ordering {
        let (a, b) = (&self.sources[a], &self.sources[b]);
        a.head.cmp(&b.head).then_with(|| {
            let keys = a.beside.rows.key().cmp(b.beside.rows.key());
            if self.direction == Direction::Forward { keys } else { keys.reverse() }
        })
    }

    /// Compares all sources to find the next source and the runner-up.
    fn choose(&mut self) {
        let (mut now, mut runner_up) = (None, None);
        for source in (0..self.sources.len()).filter(|&source| self.sources[source].row.is_some()) {
            if now.is_none_or(|now| self.order(source, now) == Ordering::Less) {
                runner_up = now.replace(source);
            } else if runner_up.is_none_or(|other| self.order(source, other) == Ordering::Less) {
                runner_up = Some(source);
            }
        }
        // If no source has a row left, any source will do as the next one, because each says that it has none.
        self.now = now.unwrap_or(0);
        self.runner_up = runner_up;
    }
}

/// A row in its page, or the copy of a row of a memtable.
pub struct FollowedRow<'r> {
    pub key: &'r [u8],
    /// If the row is in a page: its wanted parts except the one in the main group.
    pub beside_main: &'r [StoredValue],
    pub spot: Spot<'r>,
}

/// The [head](head_of) of `key`, with inverted bits for a backward walk. So the key that comes first in `direction`
/// has the smaller head.
#[inline]
fn head_towards(direction: Direction, key: &[u8], prefix_bytes: usize) -> u64 {
    let head = head_of(key, prefix_bytes);
    if direction == Direction::Forward { head } else { !head }
}

/// The eight bytes of `key` after its first `prefix_bytes`, as a big-endian number, padded with zeros if fewer
/// follow. The key must begin with the prefix. Of two keys with the same prefix and different heads, the one with the
/// smaller head is the smaller key.
#[inline]
fn head_of(key: &[u8], prefix_bytes: usize) -> u64 {
    let rest = key.len() - prefix_bytes;
    match key.last_chunk::<8>() {
        _ if rest >= 8 => u64::from_be_bytes(*key[prefix_bytes..].first_chunk().expect("eight bytes follow")),
        // These are the last eight bytes of the key. The shift drops those of the prefix and appends zeros.
        Some(_) if rest == 0 => 0,
        Some(end) => u64::from_be_bytes(*end) << (8 * (8 - rest)),
        None => {
            let mut bytes = [0; 8];
            bytes[..rest].copy_from_slice(&key[prefix_bytes..]);
            u64::from_be_bytes(bytes)
        }
    }
}
