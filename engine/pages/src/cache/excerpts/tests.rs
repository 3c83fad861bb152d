//! What excerpts promise: hot parts outlive their pages, the budget holds, and a look-up never returns the bytes of
//! another part.

use super::*;
use crate::flaky::SplitMix;
use crate::numbered::{Numbered, accept};
use crate::{
    Admit, Compression, Guard, HEADER_BYTES, Packing, PageCache, PageKind, PageLender, PageSource, PagedFile, Reason,
    Session, Stop,
};
use os::sync::Arc;
use os::sync::hazard::Lease;

const BUDGET_BYTES: u64 = 2 << 20;
const PAYLOAD_BYTES: usize = 4 * BLOCK_BYTES - HEADER_BYTES;
const PAGES: usize = 1024;
const PARTS: u32 = 16;
const PART_BYTES: usize = 64;

const CUTTER: Cutter = Cutter { parts: |_| PARTS, cut: cut_part };

fn part_of(page: &[u8], part: u32) -> &[u8] {
    &page[HEADER_BYTES + part as usize * PART_BYTES..][..PART_BYTES]
}

/// The name of a part: the first bytes of the page, which no other page has, and the number of the part.
fn name_of(page: &[u8], part: u32) -> Vec<u8> {
    [&page[HEADER_BYTES..HEADER_BYTES + 8], &part.to_le_bytes()].concat()
}

fn hash_of_name(name: &[u8]) -> u64 {
    name.iter().fold(0, |hash: u64, byte| SplitMix(hash ^ u64::from(*byte)).next())
}

fn cut_part(page: &[u8], part: u32, out: &mut Vec<u8>) -> Option<(usize, u64)> {
    let name = name_of(page, part);
    out.extend_from_slice(&name);
    out.extend_from_slice(part_of(page, part));
    Some((name.len(), hash_of_name(&name)))
}

/// A file whose readers want parts of its pages.
struct Parts {
    cache: Arc<PageCache>,
    numbered: Numbered,
    file: Arc<PagedFile>,
    /// The name of part 0 of each page.
    firsts: Vec<Vec<u8>>,
    reads: u64,
}

impl Parts {
    fn new() -> Self {
        let numbered = Numbered::write(&vec![PageKind::Data; PAGES], PAYLOAD_BYTES, Compression::None, Packing::Block);
        let all = PageCache::new(64 << 20, 8, accept);
        let (file, session) = (numbered.register(&all), Session::new(&all, Reason::Scan, Admit::Keep));
        let first = |number| crate::retry(&session, || Ok(name_of(&numbered.page(&session, &file, number)?, 0)));
        let firsts = (0..PAGES).map(|number| first(number).expect("the disk is whole")).collect();
        let cache = PageCache::new(BUDGET_BYTES, 8, accept).cutting(CUTTER);
        let file = numbered.register(&cache);
        Self { cache, numbered, file, firsts, reads: 0 }
    }

    fn name(&self, page: usize, part: u32) -> Vec<u8> {
        let mut name = self.firsts[page].clone();
        name[8..].copy_from_slice(&part.to_le_bytes());
        name
    }

    /// One step of a look-up of a part: in its page, or else in an excerpt. Returns the content.
    fn step<S: PageLender>(&self, source: &S, page: usize, number: u32) -> Result<Vec<u8>, Stop> {
        let name = self.name(page, number);
        let (kind, at) = self.numbered.pages[page];
        match source.page(self.file.at(&at, kind)) {
            Ok(found) => {
                source.note_part(&found, Part { number, of: PARTS });
                Ok(part_of(&found, number).to_vec())
            }
            Err(Stop::Fault) => {
                let name = ExcerptName { slot: self.file.slot(), name: &name, hash: hash_of_name(&name) };
                let Excerpt { page, content } = source.excerpt(&name, &|_| true).ok_or(Stop::Fault)?;
                Ok(page[content].to_vec())
            }
            Err(stop) => Err(stop),
        }
    }

    /// Looks up a part as a get does: under a guard, and if that does not succeed, with a session.
    fn read(&mut self, page: usize, part: u32) {
        let lent = Lease::with(|lease| {
            let guard = Guard::new(&self.cache, lease)?;
            let content = self.step(&guard, page, part).ok();
            guard.count_hits();
            content
        });
        let content = lent.flatten().unwrap_or_else(|| {
            let session = Session::new(&self.cache, Reason::Point, Admit::Keep);
            let content = crate::retry(&session, || self.step(&session, page, part));
            self.reads += session.page_reads();
            content.expect("the disk is whole")
        });
        let name = self.name(page, part);
        let word = &name[..8];
        assert!(
            content.len() == PART_BYTES && content.chunks(8).all(|chunk| chunk == word),
            "page {page}, part {part}"
        );
        assert!(self.cache.used_bytes() <= BUDGET_BYTES);
    }

    /// Reads `hot` hot parts and twice as many others, a few times. Returns the reads from disk of the last time.
    fn read_hot(&mut self, hot: usize, random: &mut SplitMix) -> u64 {
        let mut reads = 0;
        for _ in 0..12 {
            reads = self.reads;
            for i in 0..hot {
                self.read(i, 5);
                for _ in 0..2 {
                    let number = random.next();
                    self.read(number as usize % PAGES, (number >> 32) as u32 % PARTS);
                }
            }
        }
        self.reads - reads
    }

    fn excerpt_bytes(&self) -> u64 {
        self.cache.excerpts.bytes.load(Ordering::Relaxed)
    }
}

#[test]
fn hot_parts_stay_in_memory_without_their_pages() {
    let seed = 1;
    let mut parts = Parts::new();
    // The pages of the hot parts alone would fill the budget three times.
    let hot = 3 * BUDGET_BYTES as usize / (4 * BLOCK_BYTES);
    let reads = parts.read_hot(hot, &mut SplitMix(seed));
    let others = 2 * hot as u64;
    assert!(reads < others + hot as u64 / 4, "{reads} reads of {others} others and {hot} hot parts, seed {seed}");
    let usage = parts.cache.usage();
    assert!(usage.excerpts_found > 0 && usage.excerpts_kept > 0, "{usage:?}");
    // What readers have found did not pin anything.
    assert_eq!(usage.pinned_bytes, 0, "{usage:?}");
}

#[test]
fn where_all_parts_are_wanted_alike_pages_stay() {
    let seed = 2;
    let (mut parts, mut random) = (Parts::new(), SplitMix(seed));
    for _ in 0..30_000 {
        let number = random.next();
        parts.read(number as usize % PAGES, (number >> 32) as u32 % PARTS);
    }
    let most = BUDGET_BYTES / TRIAL_SHARE + 64 * BLOCK_BYTES as u64;
    assert!(parts.excerpt_bytes() <= most, "{} bytes of excerpts, seed {seed}", parts.excerpt_bytes());
}

#[test]
fn the_table_of_places_does_not_outgrow_the_excerpts() {
    let seed = 3;
    let (mut parts, mut random) = (Parts::new(), SplitMix(seed));
    for hot in [300, 350, 400] {
        parts.read_hot(hot, &mut random);
    }
    let (places, room) = parts.cache.excerpts.places.sizes();
    let in_memory = parts.excerpt_bytes() as usize / (HEAD_BYTES + PART_BYTES + 12 + ENTRY_BYTES);
    assert!(places <= in_memory, "{places} places, and pages for {in_memory}, seed {seed}");
    // A small table has room for a few more.
    assert!(room <= 4 * in_memory + 16 * 28, "room for {room} places of {in_memory}, seed {seed}");
    // Others take the place of the excerpts.
    let session = Session::new(&parts.cache, Reason::Point, Admit::Keep);
    for _ in 0..6 {
        for page in 0..PAGES {
            let read = crate::retry(&session, || parts.numbered.page(&session, &parts.file, page).map(drop));
            read.expect("the disk is whole");
            session.release();
        }
        parts.cache.set_budget(BUDGET_BYTES / 2);
        parts.cache.set_budget(BUDGET_BYTES);
    }
    let (places, room) = parts.cache.excerpts.places.sizes();
    let in_memory = parts.excerpt_bytes() as usize / (HEAD_BYTES + PART_BYTES + 12 + ENTRY_BYTES);
    assert!(places <= in_memory && room <= 4 * in_memory + 16 * 28, "{places} places, room for {room}, seed {seed}");
}

#[test]
fn a_smaller_budget_gets_back_what_was_set_aside() {
    let mut parts = Parts::new();
    parts.read_hot(384, &mut SplitMix(6));
    assert!(parts.cache.excerpts.set_aside_bytes() > 0);
    parts.cache.set_budget(64 << 10);
    assert!(parts.cache.used_bytes() <= 64 << 10, "{:?}", parts.cache.usage());
    parts.read(0, 5);
    parts.read(1, 5);
}

#[test]
fn a_budget_without_end_is_taken() {
    let mut parts = Parts::new();
    parts.read_hot(384, &mut SplitMix(7));
    parts.cache.set_budget(u64::MAX);
    parts.cache.set_budget(BUDGET_BYTES);
    parts.read(0, 5);
}

#[test]
fn a_page_whose_readers_note_no_parts_is_not_cut() {
    let seed = 8;
    let (mut parts, mut random) = (Parts::new(), SplitMix(seed));
    let ranges = Session::new(&parts.cache, Reason::Scan, Admit::Keep);
    for _ in 0..12 {
        for page in 0..48 {
            parts.read(page, 5);
            let read = crate::retry(&ranges, || parts.numbered.page(&ranges, &parts.file, page).map(drop));
            read.expect("the disk is whole");
            ranges.release();
            for _ in 0..8 {
                parts.read(48 + random.next() as usize % (PAGES - 48), 5);
            }
        }
    }
    let session = Session::new(&parts.cache, Reason::Point, Admit::Keep);
    for page in 0..48 {
        let name = parts.name(page, 5);
        let name = ExcerptName { slot: parts.file.slot(), name: &name, hash: hash_of_name(&name) };
        assert!(session.excerpt(&name, &|_| true).is_none(), "page {page}, seed {seed}");
    }
    assert!(parts.cache.usage().excerpts_kept > 0, "pages that only look-ups use are cut, seed {seed}");
}

#[test]
fn the_number_of_a_page_in_memory_is_not_given_again() {
    let mut parts = Parts::new();
    let mut random = SplitMix(9);
    parts.read_hot(384, &mut random);
    let resident = |cache: &PageCache, number: u32| {
        cache.table.frame(&cache.frames, Place { page: number, at: 0 }.key()).is_some()
    };
    let given = parts.cache.excerpts.pages.load(Ordering::Relaxed);
    let first = (0..given).find(|&number| resident(&parts.cache, number)).expect("excerpts are in memory");
    // As after four billion pages.
    parts.cache.excerpts.pages.store(first, Ordering::Relaxed);
    let (number, key) = parts.cache.next_excerpts();
    assert!(number > first && !resident(&parts.cache, number), "{number} after {first}, {key:?}");
    parts.read_hot(384, &mut random);
}

#[test]
fn a_part_with_another_name_or_of_another_file_is_not_found() {
    let mut parts = Parts::new();
    parts.read_hot(384, &mut SplitMix(4));
    let session = Session::new(&parts.cache, Reason::Point, Admit::Keep);
    let found = |slot: u32, name: &[u8], hashed: &[u8]| {
        let name = ExcerptName { slot, name, hash: hash_of_name(hashed) };
        session.excerpt(&name, &|_| true).is_some()
    };
    let names: Vec<Vec<u8>> = (0..384).map(|page| parts.name(page, 5)).collect();
    let kept: Vec<&Vec<u8>> = names.iter().filter(|name| found(parts.file.slot(), name, name)).collect();
    assert!(kept.len() > 100, "{} of 384 hot parts are kept", kept.len());
    for name in kept {
        // These have the hash of the kept part.
        assert!(!found(parts.file.slot(), &name[1..], name));
        assert!(!found(parts.file.slot(), b"", name));
        assert!(!found(parts.file.slot() + 1, name, name));
    }
}

#[test]
fn a_reader_that_the_content_does_not_fit_reads_the_page() {
    let mut parts = Parts::new();
    parts.read_hot(384, &mut SplitMix(5));
    let session = Session::new(&parts.cache, Reason::Point, Admit::Keep);
    let missing = (0..384).find(|&page| !parts.numbered.is_resident(&parts.cache, &parts.file, page));
    let page = missing.expect("the hot pages do not all fit");
    let (kind, at) = parts.numbered.pages[page];
    let name = parts.name(page, 5);
    let name = ExcerptName { slot: parts.file.slot(), name: &name, hash: hash_of_name(&name) };
    assert!(matches!(session.page(parts.file.at(&at, kind)), Err(Stop::Fault)));
    assert!(session.excerpt(&name, &|_| false).is_none());
    session.fetch().expect("the disk is whole");
    assert!(session.page(parts.file.at(&at, kind)).is_ok(), "the page was noted and is there");
}
