//! The background scrub: reads every page of every file from disk, even if a copy is in memory, again and again at a
//! given rate, and verifies its checksum. So it finds damage on disk before a read meets it. Pages that name other
//! pages are read once more through the cache, which does not keep them. The scrub does not compare pages with each
//! other; `check` does that.
//!
//! A round of the scrub goes through the files in the order of their numbers, and through all trees of each file. At
//! most one round begins in an hour. The job reads a small piece at a time, and occupies no thread in between.

use crate::core::Core;
use crate::core::background::problem::Problem;
use crate::manifest::DbFile;
use os::sync::atomic::Ordering;
use os::sync::{Arc, Mutex, Weak};
use os::{Buffer, File, Job, Polled};
use pages::page::{Unpacker, decode_page};
use pages::{Address, Admit, PageKind, PageLender, Reason, Session, retry};
use sst::{KeyedSubtree, TreeKind};
use std::time::Duration;

/// A piece of the work ends after this many bytes.
const PIECE_BYTES: u64 = 1 << 20;

/// The shortest time between the beginnings of two rounds.
const ROUND: Duration = Duration::from_secs(3_600);

/// How often the scrub looks for files while the database has none.
const LOOK: Duration = Duration::from_secs(60);

/// How far the scrub of a database has come.
#[derive(Debug, Default)]
struct ScrubProgress {
    /// When the current round began; `None` between two rounds.
    began: Option<Duration>,
    /// When the last round began.
    last_began: Option<Duration>,
    /// The number of the last file that the round has begun.
    last_file: Option<u64>,
    walk: Option<Walk>,
}

/// A walk through the pages of one file.
struct Walk {
    table: String,
    file: Arc<DbFile>,
    raw: Arc<dyn File>,
    /// A stack of the pages that the walk has found and not read yet.
    unread: Vec<UnreadPage>,
}

impl std::fmt::Debug for Walk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk").field("file", &self.file.number).field("unread", &self.unread.len()).finish()
    }
}

/// A page to be read.
enum UnreadPage {
    Subtree(TreeKind, KeyedSubtree),
    /// A chunk of a value outside data pages.
    Value(Address),
}

/// The job that reads the next piece.
#[derive(Debug)]
pub struct ScrubJob {
    core: Weak<Core>,
    progress: Mutex<ScrubProgress>,
}

impl ScrubJob {
    /// A job for the database of `core`.
    pub fn new(core: Weak<Core>) -> Self {
        Self { core, progress: Mutex::default() }
    }
}

impl Job for ScrubJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.core.upgrade() else { return Polled::Idle };
        let rate = core.env.options.scrub_bytes_per_second;
        if rate == 0 || core.background.is_closing() {
            return Polled::Idle;
        }
        let read = piece(&core, &mut self.progress.lock(), PIECE_BYTES.min(rate));
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
    /// How many bytes were read.
    Read(u64),
    /// The round is over, or the database has no files. The job then waits for this time.
    RoundIsOver(Duration),
}

/// Reads pages until it has read `most_bytes` bytes, or until the round is over.
fn piece(core: &Core, progress: &mut ScrubProgress, most_bytes: u64) -> ScrubPiece {
    let damage = &core.background.damage;
    let now = core.env.machine.clock.now();
    if progress.began.is_none() {
        let next = progress.last_began.map_or(now, |last| last + ROUND);
        if next > now {
            return ScrubPiece::RoundIsOver(next - now);
        }
        if next_file(core, None).is_none() {
            return ScrubPiece::RoundIsOver(LOOK);
        }
        (progress.began, progress.last_began, progress.last_file) = (Some(now), Some(now), None);
    }
    let mut bytes = 0;
    while bytes < most_bytes {
        let mut walk = match progress.walk.take() {
            Some(walk) => walk,
            None => match next_file(core, progress.last_file) {
                Some((table, file)) => {
                    progress.last_file = Some(file.number);
                    // The length tells whether the file still exists.
                    match file.sst.file.len() {
                        Ok(_) => begin(table, file),
                        Err(error) => {
                            // A file that a compaction has removed meanwhile is not damage.
                            if !file.sst.file.is_dead() {
                                let problem = Problem { table, file: file.path().to_owned(), error: error.into() };
                                damage.add(&core.env, problem);
                            }
                            continue;
                        }
                    }
                }
                None => {
                    progress.began = None;
                    damage.rounds.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            },
        };
        let Some(page) = walk.unread.pop() else { continue };
        if walk.file.sst.file.is_dead() {
            continue;
        }
        bytes += walk.step(core, page);
        progress.walk = Some(walk);
    }
    damage.bytes.fetch_add(bytes, Ordering::Relaxed);
    ScrubPiece::Read(bytes)
}

/// The file with the next number after `last`, and the name of its table.
fn next_file(core: &Core, last: Option<u64>) -> Option<(String, Arc<DbFile>)> {
    let view = core.views.newest();
    let files = view.files.tables.values().flat_map(|table| table.files().map(move |(_, file)| (table, file)));
    let next = files.filter(|(_, file)| last.is_none_or(|last| file.number > last));
    next.min_by_key(|(_, file)| file.number).map(|(table, file)| (table.info.name.clone(), file.clone()))
}

fn begin(table: String, file: Arc<DbFile>) -> Walk {
    let trees: Vec<TreeKind> = file.sst.meta.trees().map(|(kind, _)| kind).collect();
    let tops = trees.into_iter().filter_map(|kind| Some(UnreadPage::Subtree(kind, file.sst.top(kind)?)));
    let unread = tops.collect();
    let raw = file.sst.file.around_cache();
    Walk { table, file, raw, unread }
}

impl Walk {
    /// Verifies a page, adds the pages below it to the stack, and returns the stored length of the page.
    fn step(&mut self, core: &Core, page: UnreadPage) -> u64 {
        let (at, kind) = match &page {
            UnreadPage::Subtree(_, keyed) => (keyed.subtree.address, keyed.kind),
            UnreadPage::Value(at) => (*at, PageKind::Value),
        };
        if let Err(error) = self.compare(core.env.cache.unpacker(), &at, kind).and_then(|()| self.go_below(core, page))
        {
            let file = self.file.path().to_owned();
            core.background.damage.add(&core.env, Problem { table: self.table.clone(), file, error: error.into() });
        }
        u64::from(at.bytes)
    }

    /// Reads a page from disk, even if a copy is in memory, and verifies it.
    fn compare(&self, unpacker: &Unpacker, at: &Address, kind: PageKind) -> pages::Result<()> {
        let sst = &self.file.sst;
        let start = at.offset / os::BLOCK_BYTES as u64 * os::BLOCK_BYTES as u64;
        let end = at.end().next_multiple_of(os::BLOCK_BYTES as u64);
        let mut blocks = Buffer::zeroed((end - start) as usize);
        let from = (at.offset - start) as usize;
        let verify = |blocks: &Buffer, read: std::io::Result<usize>| {
            let read = read.map_err(|error| pages::Error::io("read", sst.file.path(), error))?;
            let stored = blocks[..read].get(from..from + at.bytes as usize);
            let stored = stored.ok_or_else(|| sst.file.corrupt(kind, at.offset, "the file ends within the page"))?;
            let decoded = decode_page(stored, kind, at, sst.meta.file_id, unpacker, Buffer::zeroed);
            decoded.map(|_| ()).map_err(|why| sst.file.undecoded(kind, at.offset, why))
        };
        let read = self.raw.read_at(&mut blocks, start);
        match verify(&blocks, read) {
            Err(pages::Error::Corrupt { .. }) if let Some(read) = sst.file.read_anew(&mut blocks, start) => {
                verify(&blocks, read)
            }
            verified => verified,
        }
    }

    /// Adds the pages below a node to the stack, or the values outside pages to which the rows of a page refer.
    fn go_below(&mut self, core: &Core, page: UnreadPage) -> pages::Result<()> {
        let UnreadPage::Subtree(tree, keyed) = page else { return Ok(()) };
        // The lowest pages of filters and range erases refer to no other pages.
        if keyed.subtree.level == 0 && matches!(tree, TreeKind::Filter | TreeKind::RangeErases) {
            return Ok(());
        }
        let sst = &self.file.sst;
        let session = Session::new(&core.env.cache, Reason::Check, Admit::Pass);
        let page = retry(&session, || session.page(sst.file.at(&keyed.subtree.address, keyed.kind)))?;
        if keyed.subtree.level == 0 {
            self.unread.extend(sst.values_outside(tree, &page).into_iter().map(UnreadPage::Value));
        } else {
            let below = sst.subtrees_below(tree, &keyed, &page)?;
            self.unread.extend(below.into_iter().rev().map(|keyed| UnreadPage::Subtree(tree, keyed)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
