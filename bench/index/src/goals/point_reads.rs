//! Page reads of a cold get, counted by the session that gets.

use super::Line;
use crate::file::{Lone, load_nodes, point_session};
use crate::rows::{random, sequential_key, stamp, stamp_of, value};
use crate::{Result, Size};
use kit::Scratch;
use pages::{PageCache, retry};
use sst::{BuildOptions, Version};

/// Gets that are counted, each with a cache of its own.
const GETS: u64 = 200;

/// One file that holds the key; only its inner nodes in memory, then also the leaf of the index.
pub fn measure(scratch: &Scratch, size: Size) -> Result<Vec<Line>> {
    let rows = size.of(2_000_000);
    let lone = Lone::build(
        scratch,
        "file.sst",
        BuildOptions::default(),
        (0..rows).map(|number| (sequential_key(number), value(number))),
    )?;
    let height = lone.main().root(false).height;
    if height < 2 {
        return Err(format!("an index of {height} levels has no inner nodes").into());
    }
    let reads_with_nodes_from = |lowest_level: u8| -> Result<(u64, u64)> {
        let (mut least, mut most) = (u64::MAX, 0);
        for i in 0..GETS {
            let cache = PageCache::new(64 << 20, 4, sst::validate);
            let sst = lone.open(&cache);
            load_nodes(&point_session(&cache), &sst, lowest_level)?;
            let session = point_session(&cache);
            let number = random(1, i, rows);
            let row = retry(&session, || sst.get(&session, &sequential_key(number), Version::MAX))?;
            if row.and_then(|row| row.value.inline().map(stamp)) != Some(stamp_of(number)) {
                return Err(format!("row {number} was not found as it was written").into());
            }
            (least, most) = (least.min(session.page_reads()), most.max(session.page_reads()));
        }
        Ok((least, most))
    };
    let (_, inner) = reads_with_nodes_from(2)?;
    let (least, most) = reads_with_nodes_from(1)?;
    let metric = "page reads of a cold get, one SST holding the key";
    let shape =
        format!("{} rows, {height} levels of index, {GETS} gets with a new cache each", crate::report::count(rows));
    Ok(vec![
        Line::new(metric, "<= 2 with only inner nodes cached", format!("{inner} at most"), inner <= 2).note(shape),
        Line::new(metric, "exactly 1 with the leaf cached", format!("{least} to {most}"), (least, most) == (1, 1)),
    ])
}
