//! Reading a large file from its first row to its last, with nothing of it in memory: rounds of waiting for the disk.

use super::Line;
use crate::file::Lone;
use crate::report::count;
use crate::rows::{sequential_key, stamp, stamp_of, value};
use crate::workplace::Workplace;
use crate::{Result, Size};
use pages::{Admit, PageCache, PageKind, Reason, Session, retry};
use sst::{BuildOptions, Readahead, SstCursor};
use std::time::Instant;

/// What a scan may have in memory ahead of its place.
const AHEAD_BYTES: u64 = 64 << 20;
/// Of keys and values of a row, in a page.
const ROW_BYTES: u64 = 24 + 150;
/// Rounds besides one for each 64 MiB: the way down from the root.
const EXTRA_ROUNDS: u64 = 3;

/// One cursor, one session around the cache.
pub fn measure(workplace: &Workplace, size: Size) -> Result<Vec<Line>> {
    let data_bytes: u64 = if size.quick { 256 << 20 } else { 2 << 30 };
    let rows = data_bytes / ROW_BYTES;
    let lone = Lone::build(
        workplace,
        "file.sst",
        BuildOptions::default(),
        (0..rows).map(|number| (sequential_key(number), value(number))),
    )?;
    let tree = lone.main();
    // Room for what is read ahead and for the copies out of joined reads.
    let cache = PageCache::new(4 * AHEAD_BYTES, 4, sst::validate);
    let sst = lone.open(&cache);
    let session = Session::new(&cache, Reason::Scan, Admit::Pass).with_ahead_bytes(AHEAD_BYTES);
    let mut cursor = SstCursor::new(sst).with_readahead(Readahead::full(AHEAD_BYTES));
    let start = Instant::now();
    let (mut found, mut sum) = (0, 0u64);
    let mut there = retry(&session, || cursor.seek_first(&session))?;
    while there {
        let row = cursor.newest().ok_or("the cursor is at a row")?;
        sum = sum.wrapping_add(stamp(row.value.inline().ok_or("a value of 150 bytes lies in its page")?));
        found += 1;
        there = retry(&session, || cursor.next(&session))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let expected = (0..rows).map(stamp_of).fold(0, u64::wrapping_add);
    if (found, sum) != (rows, expected) {
        return Err(format!("{found} rows of {rows} were read, or others than were written").into());
    }
    let rounds = session.rounds();
    let (index_reads, data_reads) = (session.reads_of(PageKind::Index), session.reads_of(PageKind::Data));
    let index_pages = crate::file::load_nodes(&crate::file::point_session(&cache), cursor.sst(), 1)?;
    let most = data_bytes.div_ceil(AHEAD_BYTES) + EXTRA_ROUNDS;
    let metric = if size.quick { "cold scan of a 256 MB SST" } else { "cold scan of a 2 GB SST" };
    let goal = format!("<= {most} rounds of waiting");
    let reads =
        format!("{index_reads} reads of {index_pages} index pages, {data_reads} of {} data pages", tree.data_pages);
    Ok(vec![
        Line::new(metric, goal, format!("{rounds} rounds"), rounds <= most).note(format!(
            "{} rows, {:.2} s, {:.0} MB/s; readahead of 64 MiB, direct reads",
            count(rows),
            seconds,
            tree.totals.bytes as f64 / 1e6 / seconds
        )),
        Line::new(
            metric,
            "each index page and each data page read once",
            reads,
            index_reads == index_pages && data_reads == tree.data_pages,
        ),
    ])
}
