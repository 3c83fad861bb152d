//! Excerpts of pages: the few bytes of a page that readers want, kept when the page itself makes room for others. Hot
//! rows lie scattered over cold pages, so a page of 16 KiB would often stay in memory for the sake of one row. This
//! module does not know what the bytes mean. They never change, because files do not change (decision 105).
//!
//! ```text
//!   a page was used once ───> its part, if it was seen before ──> a page of excerpts ──> evicted
//!   a page was used again, but mostly unused ──> the used parts ──┘    ↑    └──> the used ones ──┐
//!                                                                      └─────────────────────────┘
//! ```
//!
//! * When the policy looks at a data page and all its uses were about at most three quarters of its parts, these parts
//!   are cut out and the page goes. If readers used more of the page, or did not note what they used, the page stays or
//!   goes as a whole. Pages of excerpts are cut likewise.
//! * Excerpts lie one behind the other in pages of the cache. These have frames, count against the budget and are
//!   evicted by the policy like all others, and they are proven from the start. The memory of a page that was just
//!   evicted becomes the next page of excerpts, so a reader never waits for room for excerpts.
//! * Where all parts are wanted alike, excerpts are a loss. So a small share of the budget is for a trial, and more is
//!   kept only while pages of excerpts are used more often than data pages are.
//! * Each page of excerpts leaves [`ENTRY_BYTES`] of its memory unused for each of its excerpts, which pays for the
//!   hash table of places. The excerpts leave the table with their page.
//! * A page that is being filled cannot be found yet.
//!
//! ```text
//! excerpt: slot u32 | name bytes u32 | content bytes u32 | hash u32 | name | content | zeros up to 8 bytes
//! ```

mod keep;
mod places;
mod seen;

use crate::budget::Charge;
use crate::frame::{Evicted, Part, Used};
use crate::page_key::PageKey;
use os::sync::Mutex;
use os::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use os::{BLOCK_BYTES, Buffer};
use places::{Place, Places, SLOT};
use seen::Seen;
use std::fmt;
use std::ops::{Range, RangeInclusive};

/// Only pages of these lengths are cut, because their memory becomes pages of excerpts.
const CUT_BYTES: RangeInclusive<usize> = 2 * BLOCK_BYTES..=16 * BLOCK_BYTES;

/// The longest excerpt with its name. A page with longer excerpts would hold too few to be better than the pages from
/// which they were cut.
const MOST_BYTES: usize = BLOCK_BYTES;

/// A smaller budget keeps no excerpts: it has room for few pages, and needs them all.
const MIN_BUDGET_BYTES: u64 = 1 << 20;

/// The length of what comes before the name.
const HEAD_BYTES: usize = 16;

/// What a place takes: 13 bytes, in a table whose memory is at least a third full.
const ENTRY_BYTES: usize = 40;

/// The budget divided by this number is for excerpts, whether they are known to pay or not.
const TRIAL_SHARE: u64 = 32;

/// Cuts data pages into parts that readers want one by one. The format layer supplies it.
#[derive(Clone, Copy, Debug)]
pub struct Cutter {
    /// The number of parts of a page.
    pub parts: fn(page: &[u8]) -> u32,
    /// Appends the name of a part to `out`, and then its content. Returns the length of the name and its hash. `None`
    /// if the part cannot be cut out.
    pub cut: CutPart,
}

/// The type of [`Cutter::cut`].
pub type CutPart = fn(page: &[u8], part: u32, out: &mut Vec<u8>) -> Option<(usize, u64)>;

/// The name of an excerpt.
#[derive(Clone, Copy, Debug)]
pub struct ExcerptName<'n> {
    /// The [slot](crate::PagedFile::slot) of the page's file.
    pub slot: u32,
    /// What tells the excerpts of a file apart.
    pub name: &'n [u8],
    /// The hash of `name` that the cutter gives.
    pub hash: u64,
}

/// An excerpt in memory.
#[derive(Debug)]
pub struct Excerpt<P> {
    /// A page that holds a copy of the excerpt. It is not the page that the excerpt comes from.
    pub page: P,
    /// Where the excerpt lies in the page.
    pub content: Range<usize>,
}

/// Whether the page with this name holds excerpts.
pub(super) fn are_in(key: PageKey) -> bool {
    key.slot == SLOT
}

/// A hash of a name and its file. All bits depend on both.
fn hash_of(slot: u32, name_hash: u64) -> u32 {
    let file = u64::from(slot).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let product = u128::from(name_hash ^ file) * 0xD6E8_FEB8_6659_FD93;
    ((product >> 64) as u64 ^ product as u64) as u32
}

/// The excerpts of a cache.
#[derive(Default)]
pub(crate) struct Excerpts {
    /// Whether pages have been evicted, so that it pays to note which parts are used.
    are_wanted: OwnLines<AtomicBool>,
    places: Places,
    /// The page that is being filled.
    filling: Mutex<Option<Filling>>,
    seen: Mutex<Seen>,
    /// How many pages were filled.
    pages: AtomicU32,
    /// The memory of the pages that can be found, in bytes.
    bytes: AtomicU64,
    worth: Worth,
    kept: AtomicU64,
}

/// A value that is hardly ever written, away from those that are.
#[derive(Default)]
#[repr(align(128))]
struct OwnLines<T>(T);

/// How often proven pages are used between two looks of the policy: moving averages, times 256.
#[derive(Default)]
struct Worth {
    data: AtomicU32,
    excerpts: AtomicU32,
}

/// Whether excerpts are kept in place of data pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pays {
    /// Pages of excerpts are used more often than data pages.
    Yes,
    /// The excerpts fill no more than the share for the trial. They are kept, so that their use can be measured.
    Perhaps,
    No,
}

impl Worth {
    fn note(&self, slot: u32, uses: u8) {
        let average = if slot == SLOT { &self.excerpts } else { &self.data };
        let before = average.load(Ordering::Relaxed);
        average.store(before - before / 32 + 8 * u32::from(uses), Ordering::Relaxed);
    }

    fn is_more(&self) -> bool {
        let (data, excerpts) = (self.data.load(Ordering::Relaxed), self.excerpts.load(Ordering::Relaxed));
        u64::from(excerpts) * 4 > u64::from(data) * 5
    }
}

/// An excerpt with its name, not yet in a page.
pub(crate) struct Cut {
    hash: u32,
    bytes: Vec<u8>,
    /// Whether the part was wanted more than once.
    is_wanted: bool,
}

impl Cut {
    fn of_part(cutter: &Cutter, page: &[u8], part: u32, (slot, is_wanted): (u32, bool)) -> Option<Self> {
        let mut bytes = vec![0; HEAD_BYTES];
        let (name_bytes, name_hash) = (cutter.cut)(page, part, &mut bytes)?;
        let hash = hash_of(slot, name_hash);
        let content_bytes = bytes.len() - HEAD_BYTES - name_bytes;
        let words = [slot, name_bytes as u32, content_bytes as u32, hash];
        for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        (bytes.len() <= MOST_BYTES).then_some(Self { hash, bytes, is_wanted })
    }
}

/// A page that is being filled.
struct Filling {
    buffer: Buffer,
    filled_bytes: usize,
    /// The hashes of the excerpts, and where they lie.
    excerpts: Vec<(u32, u16)>,
    /// Pays for the page.
    charge: Charge,
}

impl Filling {
    fn new((mut buffer, charge): (Buffer, Charge)) -> Self {
        buffer.set_len_within_capacity(buffer.capacity());
        Self { buffer, filled_bytes: 0, excerpts: Vec::new(), charge }
    }

    fn has(&self, hash: u32) -> bool {
        self.excerpts.iter().any(|(other, _)| *other == hash)
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.filled_bytes + bytes + ENTRY_BYTES * (self.excerpts.len() + 1) <= self.buffer.len()
    }

    fn add(&mut self, Cut { hash, bytes, .. }: &Cut) {
        let start = self.filled_bytes;
        self.filled_bytes += bytes.len();
        self.buffer[start..self.filled_bytes].copy_from_slice(bytes);
        self.excerpts.push((*hash, (start / 8) as u16));
    }
}

/// The head of an excerpt.
struct Head {
    slot: u32,
    name_bytes: usize,
    content_bytes: usize,
    hash: u32,
}

impl Head {
    /// The head of the excerpt at `start` of `page`, and what follows it. `None` at the end of the page.
    fn at(page: &[u8], start: usize) -> Option<(Self, &[u8])> {
        let (head, rest) = page.get(start..)?.split_first_chunk::<HEAD_BYTES>()?;
        let word = |i: usize| u32::from_le_bytes([head[4 * i], head[4 * i + 1], head[4 * i + 2], head[4 * i + 3]]);
        let (name_bytes, content_bytes) = (word(1) as usize, word(2) as usize);
        Some((Self { slot: word(0), name_bytes, content_bytes, hash: word(3) }, rest))
    }

    /// The length of the whole excerpt.
    fn bytes(&self) -> usize {
        (HEAD_BYTES + self.name_bytes + self.content_bytes).next_multiple_of(8)
    }
}

/// The excerpts of a page of excerpts: where each begins, its hash, and its bytes with the head.
fn excerpts_in(page: &[u8]) -> impl Iterator<Item = (usize, u32, &[u8])> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next;
        let (head, _) = Head::at(page, start)?;
        next = start + head.bytes();
        Some((start, head.hash, page.get(start..next)?))
    })
}

/// The part of a page of excerpts that begins at `offset`, to note its uses.
fn part_at(offset: usize, page_bytes: usize) -> Part {
    Part { number: offset as u32, of: page_bytes as u32 }
}

/// Where the excerpt at `start` of `page` has its content; `None` if another excerpt lies there.
fn content_at(page: &[u8], start: usize, name: &ExcerptName<'_>) -> Option<Range<usize>> {
    let (Head { slot, name_bytes, content_bytes, .. }, rest) = Head::at(page, start)?;
    if slot != name.slot || rest.get(..name_bytes)? != name.name {
        return None;
    }
    let content = start + HEAD_BYTES + name_bytes;
    Some(content..content + content_bytes).filter(|content| content.end <= page.len())
}

/// Cuts the used excerpts out of a page of excerpts, if they take at most seven eighths of it.
fn cut_excerpts(page: &[u8], used: Used) -> Option<Vec<Cut>> {
    let wanted = excerpts_in(page).filter(|(start, ..)| used.has(part_at(*start, page.len())));
    let cuts: Vec<Cut> = wanted.map(|(_, hash, bytes)| Cut { hash, bytes: bytes.to_vec(), is_wanted: true }).collect();
    let bytes: usize = cuts.iter().map(|cut| cut.bytes.len()).sum();
    (8 * bytes <= 7 * page.len()).then_some(cuts)
}

impl Excerpts {
    /// Whether readers should note which parts of a page they use.
    #[inline]
    pub fn are_wanted(&self) -> bool {
        self.are_wanted.0.load(Ordering::Relaxed)
    }

    /// Notes how often a proven page with this slot was used.
    pub fn note_uses(&self, slot: u32, used: Used) {
        // How often a page was used by readers that note no parts is not known.
        if !used.is_of_all() {
            self.worth.note(slot, used.noted().max(used.times()));
        }
    }

    /// Forgets the excerpts of a page that was evicted, if it was a page of excerpts. Until then, their places are of
    /// a page that is not found.
    pub fn leave(&self, page: &Evicted) {
        let key = page.key();
        if !are_in(key) {
            return;
        }
        for (start, hash, _) in excerpts_in(page.bytes()) {
            self.places.leave(hash, Place { page: key.unit as u32, at: (start / 8) as u16 });
        }
        self.bytes.fetch_sub(page.memory_bytes(), Ordering::Relaxed);
    }

    /// Gives back the memory of the hashes that were seen, and of the page that is being filled, if it is too much
    /// for a budget of `budget_bytes`.
    pub fn limit(&self, budget_bytes: u64) {
        let seen = self.seen.lock().limit(budget_bytes);
        let filling = self.filling.lock().take_if(|filling| filling.charge.bytes() > budget_bytes / 64);
        drop((seen, filling));
    }

    fn pay(&self, budget_bytes: u64) -> Pays {
        if self.bytes.load(Ordering::Relaxed) < budget_bytes / TRIAL_SHARE {
            Pays::Perhaps
        } else if self.worth.is_more() {
            Pays::Yes
        } else {
            Pays::No
        }
    }

    /// The charged bytes that are in no page that can be found.
    pub fn set_aside_bytes(&self) -> u64 {
        let filling = self.filling.lock().as_ref().map_or(0, |filling| filling.charge.bytes());
        filling + self.seen.lock().paid_bytes()
    }

    /// How many excerpts were found since the cache was made.
    pub fn found(&self) -> u64 {
        self.places.found()
    }

    /// How many excerpts were kept since the cache was made.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Excerpts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Excerpts").field("found", &self.found()).field("kept", &self.kept()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
