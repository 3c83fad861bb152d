//! A background scrub: every page of every file is read from disk and compared with its checksum, at a stated rate, again
//! and again. Pages in memory are read from disk all the same, so that damage shows before they are needed, and none is
//! brought to memory or kept there but index nodes that are on the way. It does not compare pages with one another; `check`
//! does.
//!
//! A round goes through the files in the order of their numbers, and through the trees of each. A round is begun at most once
//! an hour. Between two pieces of work, which are small, the job is not running and has no thread.

use super::problem::Problem;
use crate::core::Core;
use crate::manifest::DbFile;
use os::sync::atomic::Ordering;
use os::sync::{Arc, Mutex, Weak};
use os::{Buffer, File, Job, Polled};
use pages::page::decode_page;
use pages::{Address, Admit, PageKind, PageSource, Reason, Session, retry};
use sst::{Branch, TreeKind};
use std::time::Duration;

/// Bytes of a piece of work at most, beside its last page.
const PIECE_BYTES: u64 = 1 << 20;

/// From the beginning of a round to that of the next, at least.
const ROUND: Duration = Duration::from_secs(3_600);

/// Between two looks at a database that has no files yet.
const LOOK: Duration = Duration::from_secs(60);

/// Where a scrub is.
#[derive(Debug, Default)]
struct ScrubProgress {
    /// When the round began; `None` between two rounds.
    began: Option<Duration>,
    /// When the last one began.
    last_began: Option<Duration>,
    /// The file that was done last.
    done: Option<u64>,
    walk: Option<Walk>,
}

/// A walk through a file.
struct Walk {
    table: String,
    file: Arc<DbFile>,
    raw: Arc<dyn File>,
    /// What is left, the next last.
    left: Vec<UnreadPage>,
}

impl std::fmt::Debug for Walk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk").field("file", &self.file.number).field("left", &self.left.len()).finish()
    }
}

/// A page to be read.
enum UnreadPage {
    Branch(TreeKind, Branch),
    /// A chunk of a value.
    Value(Address),
}

/// The job that reads the next piece.
#[derive(Debug)]
pub struct ScrubJob {
    core: Weak<Core>,
    place: Mutex<ScrubProgress>,
}

impl ScrubJob {
    /// For this database.
    pub fn new(core: Weak<Core>) -> Self {
        Self { core, place: Mutex::default() }
    }
}

impl Job for ScrubJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.core.upgrade() else { return Polled::Idle };
        let rate = core.env.options.scrub_bytes_per_second;
        if rate == 0 || core.background.is_closing() {
            return Polled::Idle;
        }
        let read = piece(&core, &mut self.place.lock(), PIECE_BYTES.min(rate));
        let wait = match read {
            ScrubPiece::Read(bytes) => {
                Duration::from_nanos((u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64)
            }
            ScrubPiece::RoundIsOver(wait) => wait,
        };
        core.background.wake_scrub_after(wait);
        Polled::Idle
    }
}

enum ScrubPiece {
    /// So many bytes were read.
    Read(u64),
    /// Nothing is to be read before this time has passed.
    RoundIsOver(Duration),
}

/// Reads some pages, until they are `most_bytes` together.
fn piece(core: &Core, place: &mut ScrubProgress, most_bytes: u64) -> ScrubPiece {
    let damage = &core.background.damage;
    let now = core.env.machine.clock.now();
    if place.began.is_none() {
        let next = place.last_began.map_or(now, |last| last + ROUND);
        if next > now {
            return ScrubPiece::RoundIsOver(next - now);
        }
        if next_file(core, None).is_none() {
            return ScrubPiece::RoundIsOver(LOOK);
        }
        (place.began, place.last_began, place.done) = (Some(now), Some(now), None);
    }
    let mut bytes = 0;
    while bytes < most_bytes {
        let mut walk = match place.walk.take() {
            Some(walk) => walk,
            None => match next_file(core, place.done) {
                Some((table, file)) => {
                    place.done = Some(file.number);
                    // Looks whether it is there.
                    match file.sst.file.len() {
                        Ok(_) => begin(table, file),
                        Err(error) => {
                            // One that a compaction has removed meanwhile is none of the database any more.
                            if !file.sst.file.is_dead() {
                                let problem = Problem { table, file: file.path().to_owned(), error: error.into() };
                                damage.add(&core.env, problem);
                            }
                            continue;
                        }
                    }
                }
                None => {
                    place.began = None;
                    damage.rounds.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            },
        };
        let Some(left) = walk.left.pop() else { continue };
        if walk.file.sst.file.is_dead() {
            continue;
        }
        bytes += walk.step(core, left);
        place.walk = Some(walk);
    }
    damage.bytes.fetch_add(bytes, Ordering::Relaxed);
    ScrubPiece::Read(bytes)
}

/// The file with the least number above `done`.
fn next_file(core: &Core, done: Option<u64>) -> Option<(String, Arc<DbFile>)> {
    let view = core.views.newest();
    let files = view.files.tables.values().flat_map(|table| table.files().map(move |(_, file)| (table, file)));
    let next = files.filter(|(_, file)| done.is_none_or(|done| file.number > done));
    next.min_by_key(|(_, file)| file.number).map(|(table, file)| (table.info.name.clone(), file.clone()))
}

fn begin(table: String, file: Arc<DbFile>) -> Walk {
    let trees: Vec<TreeKind> = file.sst.meta.trees().map(|(kind, _)| kind).collect();
    let tops = trees.into_iter().filter_map(|kind| Some(UnreadPage::Branch(kind, file.sst.top(kind)?)));
    let left = tops.collect();
    let raw = file.sst.file.around_cache();
    Walk { table, file, raw, left }
}

impl Walk {
    /// Reads a page and notes what is below it; how many bytes that took.
    fn step(&mut self, core: &Core, left: UnreadPage) -> u64 {
        let (at, kind) = match &left {
            UnreadPage::Branch(_, branch) => (branch.subtree.address, branch.kind),
            UnreadPage::Value(at) => (*at, PageKind::Value),
        };
        if let Err(error) = self.compare(&at, kind).and_then(|()| self.go_below(core, left)) {
            let file = self.file.path().to_owned();
            core.background.damage.add(&core.env, Problem { table: self.table.clone(), file, error: error.into() });
        }
        u64::from(at.bytes)
    }

    /// Reads the page from disk, whatever is in memory.
    fn compare(&self, at: &Address, kind: PageKind) -> pages::Result<()> {
        let sst = &self.file.sst;
        let start = at.offset / os::BLOCK_BYTES as u64 * os::BLOCK_BYTES as u64;
        let end = at.end().next_multiple_of(os::BLOCK_BYTES as u64);
        let mut blocks = Buffer::zeroed((end - start) as usize);
        let read =
            self.raw.read_at(&mut blocks, start).map_err(|error| pages::Error::io("read", sst.file.path(), error))?;
        let from = (at.offset - start) as usize;
        let stored = blocks[..read].get(from..from + at.bytes as usize);
        let stored = stored.ok_or_else(|| sst.file.corrupt(kind, at.offset, "the file ends within the page"))?;
        let decoded = decode_page(stored, kind, at, sst.meta.file_id, Buffer::zeroed);
        decoded.map(|_| ()).map_err(|why| sst.file.corrupt(kind, at.offset, why))
    }

    /// Notes the pages below a node and the values outside a page of rows.
    fn go_below(&mut self, core: &Core, left: UnreadPage) -> pages::Result<()> {
        let UnreadPage::Branch(tree, branch) = left else { return Ok(()) };
        // Filters and range erases refer to nothing.
        if branch.subtree.level == 0 && matches!(tree, TreeKind::Filter | TreeKind::RangeErases) {
            return Ok(());
        }
        let sst = &self.file.sst;
        let session = Session::new(&core.env.cache, Reason::Check, Admit::Pass);
        let page = retry(&session, || session.page(sst.file.at(&branch.subtree.address, branch.kind)))?;
        if branch.subtree.level == 0 {
            self.left.extend(sst.values_outside(tree, &page).into_iter().map(UnreadPage::Value));
        } else {
            let below = sst.branches(tree, &branch, &page)?;
            self.left.extend(below.into_iter().rev().map(|branch| UnreadPage::Branch(tree, branch)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
