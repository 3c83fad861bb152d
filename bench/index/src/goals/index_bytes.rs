//! The size of the index, as a part of the size of the data.

use super::MeasuredGoal;
use crate::file::Lone;
use crate::rows::{KEY_KINDS, Key, value};
use crate::{Result, Size};
use kit::Scratch;
use sst::BuildOptions;

/// Keys have 24 bytes, values have 150 bytes, pages have 16 KiB, and nothing is compressed. Several kinds of keys
/// are measured, and the result is the worst of them.
pub fn measure(scratch: &Scratch, size: Size) -> Result<Vec<MeasuredGoal>> {
    let rows = size.of(2_000_000);
    let mut worst: f64 = 0.0;
    let mut notes = Vec::new();
    for (name, of) in KEY_KINDS {
        let mut keys: Vec<Key> = (0..rows).map(of).collect();
        keys.sort_unstable();
        let rows = keys.iter().zip(0..).map(|(key, number)| (key, value(number)));
        let lone = Lone::build(scratch, &format!("{name}.sst"), BuildOptions::default(), rows)?;
        let tree = lone.main();
        let root = tree.root(false);
        let share = root.index_bytes as f64 / tree.totals.bytes as f64;
        worst = worst.max(share);
        // The number of nodes of the lowest level. The root is one more node. It is shorter than the nodes of the
        // lowest level.
        let nodes = root.index_bytes.div_ceil(16 << 10);
        notes.push(format!(
            "{name}: {:.4} %, {} bytes of index for {} data pages in {} levels, {:.1} bytes a data page, about {} children a node",
            share * 100.0,
            root.index_bytes,
            tree.data_pages,
            root.height,
            root.index_bytes as f64 / tree.data_pages as f64,
            tree.data_pages.div_ceil(nodes)
        ));
    }
    let measured = format!("{:.3} %", worst * 100.0);
    let mut line =
        MeasuredGoal::new("index bytes / data bytes", "<= 0.15 %, totals included", measured, worst <= 0.0015);
    line.notes = notes;
    Ok(vec![line])
}
