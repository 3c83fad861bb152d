//! Tests that the trace has what sessions asked for, in order.

use super::*;
use crate::numbered::{BLOCK_COST, Numbered, accept};
use crate::{Admit, PageCache, PagedFile, Session, retry};
use os::sync::Arc;

/// The noted accesses of a session that reads `pages` in a cache with room for `budget_pages` pages, after asking
/// for page 0 ahead.
fn traced(
    numbered: &Numbered,
    cache: &Arc<PageCache>,
    file: &Arc<PagedFile>,
    admit: Admit,
    pages: &[usize],
) -> Vec<How> {
    let session = Session::new(cache, Reason::Scan, admit);
    cache.trace().start(6);
    numbered.ahead(&session, file, 0);
    for &page in pages {
        retry(&session, || numbered.page(&session, file, page).map(drop)).expect("no faults of the disk");
    }
    let accesses = cache.trace().finish();
    let known: Vec<u32> = (0..numbered.pages.len()).map(|page| numbered.key(file, page).unit as u32).collect();
    assert!(accesses.iter().all(|access| access.file == file.slot() && known.contains(&access.unit)));
    assert!(accesses.iter().all(|access| access.bytes == os::BLOCK_BYTES as u32 && access.reason == Reason::Scan));
    accesses.iter().map(|access| access.how).collect()
}

#[test]
fn accesses_are_taken_down_as_they_were_up_to_the_bound_and_not_once_it_is_over() {
    let numbered = Numbered::blocks(3);
    let cache = PageCache::new(10 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    let first = traced(&numbered, &cache, &file, Admit::Keep, &[1, 0, 1]);
    assert_eq!(first, [How::Ahead, How::Needed, How::Hit, How::Hit]);
    let bounded = traced(&numbered, &cache, &file, Admit::Keep, &[1; 20]);
    assert_eq!(bounded, [How::Hit; 6]);
    assert_eq!(cache.trace().finish(), []);
    assert_eq!(size_of::<TracedAccess>(), 16);
}

#[test]
fn a_session_that_passes_pages_through_leaves_no_trace() {
    let numbered = Numbered::blocks(3);
    let cache = PageCache::new(10 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    assert_eq!(traced(&numbered, &cache, &file, Admit::Pass, &[0, 1, 1]), []);
}

#[test]
fn the_death_of_a_file_is_taken_down() {
    let numbered = Numbered::blocks(3);
    let cache = PageCache::new(10 * BLOCK_COST, 8, accept);
    let file = numbered.register(&cache);
    cache.trace().start(6);
    file.kill();
    let accesses = cache.trace().finish();
    assert_eq!(accesses.iter().map(|access| (access.how, access.file)).collect::<Vec<_>>(), [(How::Dead, file.slot())]);
}
