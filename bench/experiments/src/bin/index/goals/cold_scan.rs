//! Measures how often a scan of a large, uncached file waits for the disk: forward, backward, and without admission
//! to the cache. Readahead and cache are those of a range over a table with a cache of 1 GiB.

use crate::file::{Lone, load_nodes, point_session};
use crate::rows::{sequential_key, stamp, stamp_of, value};
use crate::{Extent, Result};
use experiments::outcome::Goal;
use harness::report::text::grouped;
use kit::Scratch;
use pages::{Admit, PageCache, PageKind, Reason, Session, retry};
use sst::{BuildOptions, Readahead, SstCursor};
use std::time::Instant;

const CACHE_BYTES: u64 = 1 << 30;
/// The readahead window of a range: at most this, and at most an eighth of the cache.
const WINDOW_BYTES: u64 = 128 << 20;
/// Key and value bytes of a row.
const ROW_BYTES: u64 = 24 + 150;
/// Most rounds for a file of up to 2 GB: one for each full window, one for each doubling before the window is full,
/// and some for the descent.
const MOST_ROUNDS: u64 = 35;

/// Runs each kind of scan with a cursor and a cache of its own.
pub fn measure(scratch: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let data_bytes: u64 = if extent.quick { 256 << 20 } else { 2 << 30 };
    let rows = data_bytes / ROW_BYTES;
    eprintln!("  building a file of {} rows", grouped(rows));
    let lone = Lone::build(
        scratch,
        "file.sst",
        BuildOptions::default(),
        (0..rows).map(|number| (sequential_key(number), value(number))),
    )?;
    let tree = lone.main();
    let expected = (0..rows).map(stamp_of).fold(0, u64::wrapping_add);
    let mut lines = Vec::new();
    for (way, forward, admit) in
        [("", true, Admit::Keep), (", backward", false, Admit::Keep), (", passing the cache by", true, Admit::Pass)]
    {
        eprintln!("  scanning{way}");
        let cache = PageCache::new(CACHE_BYTES, 16, sst::validate);
        let session = Session::new(&cache, Reason::Scan, admit).with_ahead_bytes(WINDOW_BYTES / 4 * 5);
        let mut cursor = SstCursor::new(lone.open(&cache)).with_readahead(Readahead::growing(WINDOW_BYTES));
        let start = Instant::now();
        let (mut found, mut sum) = (0, 0u64);
        let mut there =
            retry(&session, || if forward { cursor.seek_first(&session) } else { cursor.seek_last(&session) })?;
        while there {
            let row = cursor.newest().ok_or("the cursor is at a row")?;
            sum = sum.wrapping_add(stamp(row.value.inline().ok_or("a value of 150 bytes lies in its page")?));
            found += 1;
            there = retry(&session, || if forward { cursor.next(&session) } else { cursor.prev(&session) })?;
        }
        let seconds = start.elapsed().as_secs_f64();
        if (found, sum) != (rows, expected) {
            return Err(format!("{found} rows of {rows} were read, or others than were written").into());
        }
        let rounds = session.rounds();
        let (index_reads, data_reads) = (session.reads_of(PageKind::Index), session.reads_of(PageKind::Data));
        let index_pages = load_nodes(&point_session(&cache), cursor.sst(), 1)?;
        let metric = if extent.quick { "cold scan of a 256 MB SST" } else { "cold scan of a 2 GB SST" };
        let reads =
            format!("{index_reads} reads of {index_pages} index pages, {data_reads} of {} data pages", tree.data_pages);
        lines.push(
            Goal::in_words(
                metric,
                format!("<= {MOST_ROUNDS} rounds of waiting{way}"),
                format!("{rounds} rounds"),
                rounds <= MOST_ROUNDS,
            )
            .note(format!(
                "{} rows, {:.2} s, {:.0} MB/s; windows that grow to 128 MiB, a cache of 1 GiB, direct reads",
                grouped(rows),
                seconds,
                tree.totals.bytes as f64 / 1e6 / seconds
            )),
        );
        lines.push(Goal::in_words(
            metric,
            format!("each index page and each data page read once{way}"),
            reads,
            index_reads == index_pages && data_reads == tree.data_pages,
        ));
    }
    Ok(lines)
}
