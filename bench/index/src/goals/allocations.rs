//! Heap allocations of reads of what is in memory, counted by the allocator of this program.

use super::Line;
use crate::file::{Lone, point_session};
use crate::rows::{key, random, sequential_key, stamp, stamp_of, value};
use crate::{Result, Size};
use kit::Scratch;
use kit::allocations::Thread;
use larch::Database;
use os::sync::Arc;
use pages::{PageCache, retry};
use sst::{BuildOptions, GroupCursor, SstCursor, Version};

const ROWS: u64 = 100_000;
const GETS: u64 = 1000;

/// Gets of a table and of a file, and what it takes to make cursors.
pub fn measure(scratch: &Scratch, _: Size) -> Result<Vec<Line>> {
    let database = Database::open(scratch.join("database"))?;
    let table = database.table("t")?;
    let mut import = table.import()?;
    for number in 0..ROWS {
        import.add(&key(number), &value(number))?;
    }
    import.finish(&mut |_, _| {})?;
    let get_all = || -> Result<()> {
        for i in 0..GETS {
            let number = random(1, i, ROWS);
            let value = table.get(key(number))?.ok_or("a row is gone")?;
            if stamp(&value) != stamp_of(number) {
                return Err("a row has another value".into());
            }
        }
        Ok(())
    };
    let (outcome, cold) = Thread::during(get_all);
    outcome?;
    let (outcome, of_table) = Thread::during(get_all);
    outcome?;
    let (range, of_range) = Thread::during(|| table.range(..));
    drop(range);

    let rows = (0..ROWS).map(|number| (sequential_key(number), value(number)));
    let lone = Lone::build(scratch, "file.sst", BuildOptions { groups: 0, ..BuildOptions::default() }, rows)?;
    let cache = PageCache::new(64 << 20, 4, sst::validate);
    let sst = lone.open(&cache);
    let session = point_session(&cache);
    let get_all = || -> Result<()> {
        for i in 0..GETS {
            let key = sequential_key(random(1, i, ROWS));
            retry(&session, || sst.get(&session, &key, Version::MAX))?.ok_or("a row is gone")?;
        }
        Ok(())
    };
    get_all()?;
    let (outcome, of_file) = Thread::during(get_all);
    outcome?;
    let ((), of_cursors) = Thread::during(|| {
        drop(SstCursor::new(Arc::clone(&sst)));
        drop(GroupCursor::new(Arc::clone(&sst), 1));
    });
    if cold.count == 0 {
        return Err("the allocator counted nothing of a cold read".into());
    }
    let [cold, of_table, of_file, of_range, of_cursors] =
        [cold, of_table, of_file, of_range, of_cursors].map(|allocated| allocated.count);
    let metric = "heap allocations";
    Ok(vec![
        Line::new(metric, "0 for a cached get", format!("{}", of_table + of_file), of_table + of_file == 0)
            .note(format!("{GETS} gets of a table and {GETS} of a file; while the table was cold they were {cold}")),
        Line::new(metric, "0 to create a cursor", of_cursors.to_string(), of_cursors == 0).note(format!(
            "a cursor over a file and one over a column group of it; a range of the public interface, which merges such \
             cursors, takes {of_range}"
        )),
    ])
}
