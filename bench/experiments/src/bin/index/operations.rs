//! The operations that are measured: single moves and short reads, with everything in memory.
//!
//! Operations on one file bypass the database. Operations over several files go through it, and it merges them.

use crate::data::{DataSet, Opened, Shape};
use crate::instructions::Counter;
use crate::measure::{Timed, in_turns};
use crate::rows::{Key, Probe, key, probes, stamp, stamp_of};
use crate::statistics;
use crate::{Extent, Result};
use kit::callgrind::counted_region;
use kit::{Scratch, callgrind};
use pages::retry;
use serde::{Deserialize, Serialize};
use sst::format::node::{Child, IndexNode, NodeBuilder, Totals};
use sst::{AtMost, Seek, SstCursor, TreeCursor, TreeKind};
use std::hint::black_box;

/// What to do for each probe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Nothing: shows how much of each time is spent on fetching the input.
    Nothing,
    /// Seeks a cursor to a row of its file by row id.
    SeekRow,
    /// Seeks a cursor to a row of its file by key.
    SeekKey,
    /// Gets a row by key, from all files that may have it.
    Get,
    /// Reads the older version of a row with a cursor on its file.
    GetOlder,
    /// Moves a range over all files to the next row.
    Next,
    /// Moves a range over all files to the previous row.
    Prev,
    /// Reads this many rows from a key on, over all files.
    Read(u64),
    /// Walks the index ahead of a read of this many rows from a key on.
    Precharge(u64),
    /// Estimates the rows and bytes of a range, over all files.
    Count,
    /// Counts the rows of a range exactly, over all files.
    CountExact,
    /// Makes a histogram of all rows of all files.
    Histogram,
}

/// All operations, in the order of the report.
const ALL: [Operation; 16] = [
    Operation::Nothing,
    Operation::SeekRow,
    Operation::SeekKey,
    Operation::Get,
    Operation::GetOlder,
    Operation::Next,
    Operation::Prev,
    Operation::Read(1),
    Operation::Read(50),
    Operation::Read(1000),
    Operation::Precharge(1),
    Operation::Precharge(50),
    Operation::Precharge(1000),
    Operation::Count,
    Operation::CountExact,
    Operation::Histogram,
];

/// What was measured on one data set.
#[derive(Serialize, Deserialize)]
pub struct Parts {
    /// The shape of the data.
    #[serde(flatten)]
    pub shape: Shape,
    /// The sizes of the data and of both indexes.
    pub sizes: String,
    /// How instructions were counted.
    pub counted: String,
    /// The operations.
    pub parts: Vec<Part>,
}

/// A row of the report.
#[derive(Serialize, Deserialize)]
pub struct Part {
    /// The name of the operation.
    pub operation: String,
    /// The cost with the B-tree.
    pub btree: Cost,
    /// The cost with the flat index, for the same data pages and in the same turns.
    pub flat: Cost,
}

/// The cost of an operation.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    /// Time.
    pub time: Timed,
    /// Instructions, if they can be counted.
    pub instructions: Option<f64>,
}

impl Operation {
    /// The name in the report.
    pub fn name(self) -> String {
        match self {
            Self::Nothing => "nothing".into(),
            Self::SeekRow => "seek by row id, one file".into(),
            Self::SeekKey => "seek by key, one file".into(),
            Self::Get => "get".into(),
            Self::GetOlder => "get an older version, one file".into(),
            Self::Next => "next".into(),
            Self::Prev => "prev".into(),
            Self::Read(rows) => format!("read {rows}"),
            Self::Precharge(rows) => format!("precharge {rows}"),
            Self::Count => "count and size of a range".into(),
            Self::CountExact => "count of a range, exact".into(),
            Self::Histogram => format!("histogram of {} buckets", statistics::BUCKETS),
        }
    }

    fn is_in(self, data: &Opened) -> bool {
        self != Self::GetOlder || data.shape.history
    }

    /// The number of probes for counting instructions: few, because valgrind interprets the program, but enough for
    /// a mean.
    fn counted_probes(self) -> usize {
        match self {
            Self::Read(1000) | Self::Precharge(1000) | Self::Histogram => 20,
            Self::Read(50) | Self::Precharge(50) | Self::Count | Self::CountExact => 100,
            _ => 500,
        }
    }

    fn probes(self, data: &Opened, seed: u64, count: usize) -> Vec<Probe> {
        let mut probes = probes(seed, count, data.shape.rows);
        if self == Self::GetOlder {
            for probe in &mut probes {
                while !data.has_older(probe.number) {
                    probe.number = (probe.number + 1) % data.shape.rows;
                }
                probe.key = key(probe.number);
            }
        }
        probes
    }
}

/// Runs operations on one opened data set.
struct Runner<'d> {
    data: &'d Opened,
    rows: Vec<TreeCursor>,
    cursors: Vec<SstCursor>,
    older: Vec<sst::Version>,
}

impl<'d> Runner<'d> {
    fn new(data: &'d Opened) -> Self {
        let main = |sst: &sst::Sst| sst.meta.main.expect("every file has rows");
        let row_cursor = |sst: &os::sync::Arc<sst::Sst>| {
            TreeCursor::new(&sst.file, TreeKind::Main, main(sst), sst.prefer_flat, 0..u64::MAX)
        };
        let older =
            if data.shape.history { (0..data.shape.files).map(|file| data.older_of(file)).collect() } else { vec![] };
        Self {
            data,
            rows: data.files.iter().map(row_cursor).collect(),
            cursors: data.files.iter().map(|sst| SstCursor::new(sst.clone())).collect(),
            older,
        }
    }

    /// Does the operation for each of `probes`. Returns a sum over what was read, of stamps for rows.
    fn run(&mut self, operation: Operation, probes: &[Probe]) -> Result<u64> {
        let data = self.data;
        let session = &data.session;
        let mut sum = 0u64;
        let mut add = |stamp: u64| sum = sum.wrapping_add(stamp);
        match operation {
            Operation::Nothing => {
                for probe in probes {
                    add(black_box(probe).number | 1);
                }
            }
            Operation::SeekRow => {
                for probe in probes {
                    let file = data.shape.file_of(probe.number) as usize;
                    let cursor = &mut self.rows[file];
                    let row = probe.number % data.files[file].meta.rows();
                    cursor.clear();
                    if !retry(session, || cursor.seek_row(session, row))? {
                        return Err(format!("row {row} was not found").into());
                    }
                    add(cursor.row().unwrap_or(0) + 1);
                }
            }
            Operation::SeekKey => {
                for probe in probes {
                    let cursor = &mut self.cursors[data.shape.file_of(probe.number) as usize];
                    if !retry(session, || cursor.seek(session, &probe.key, Seek::Lower))? || cursor.key() != probe.key {
                        return Err(format!("the key of row {} was not found", probe.number).into());
                    }
                    add(stamp(cursor.key()));
                }
            }
            Operation::Get => {
                for probe in probes {
                    let parts = data.rows.get(probe.key)?.ok_or("a row is gone")?;
                    add(stamp(&parts[0]));
                }
            }
            Operation::GetOlder => {
                for probe in probes {
                    let at = self.older[data.shape.file_of(probe.number) as usize];
                    let row = retry(session, || data.file_of(probe.number).get(session, &probe.key, at))?;
                    let row = row.ok_or("an older version is gone")?;
                    let found = stamp(row.value.inline().ok_or("a value of 150 bytes lies in its page")?);
                    if found != stamp_of(!probe.number) {
                        return Err("another version was read than the older one".into());
                    }
                    add(found);
                }
            }
            Operation::Next | Operation::Prev => {
                let mut at: Option<larch::rows::PartRange> = None;
                for probe in probes {
                    loop {
                        let range = at.get_or_insert_with(|| match operation {
                            Operation::Next => data.rows.range(probe.key..),
                            _ => data.rows.range(..=probe.key),
                        });
                        let row = match operation {
                            Operation::Next => range.next_row()?,
                            _ => range.next_row_back()?,
                        };
                        if let Some(row) = row {
                            add(stamp(row.inline_part(0).ok_or("a value of 150 bytes lies in its page")?));
                            break;
                        }
                        at = None;
                    }
                }
            }
            Operation::Read(count) => {
                for probe in probes {
                    let mut range = data.rows.range(probe.key..).limit(count);
                    while let Some(row) = range.next_row()? {
                        add(stamp(row.inline_part(0).ok_or("a value of 150 bytes lies in its page")?));
                    }
                }
            }
            Operation::Precharge(count) => {
                for probe in probes {
                    let prefetched = data.rows.prefetch(probe.key.., AtMost::rows(count))?;
                    add(prefetched.page_reads + 1);
                }
            }
            Operation::Count => add(statistics::count(data, probes)?),
            Operation::CountExact => add(statistics::exact(data, probes)?),
            Operation::Histogram => add(statistics::histograms(data, probes)?),
        }
        Ok(sum)
    }
}

/// Measures times and instructions of all operations that `data` allows.
pub fn measure(data: &DataSet, counter: &Counter, scratch: &Scratch, extent: Extent) -> Result<Parts> {
    let (btree, flat) = (data.open(false)?, data.open(true)?);
    for opened in [&btree, &flat] {
        opened.warm()?;
    }
    let operations: Vec<Operation> = ALL.into_iter().filter(|operation| operation.is_in(&btree)).collect();
    let instructions = match counter {
        Counter::Hardware(counter) => {
            let mut counts = Vec::new();
            for opened in [&btree, &flat] {
                let mut runner = Runner::new(opened);
                for &operation in &operations {
                    let probes = operation.probes(opened, 1, operation.counted_probes());
                    runner.run(operation, &probes)?;
                    counts.push(counter.count(|| runner.run(operation, &probes))?);
                }
            }
            Some(counts)
        }
        Counter::Valgrind => {
            let counts = callgrind::count(&["--count".as_ref(), data.directory().as_os_str()], scratch)?;
            if counts.len() != 2 * operations.len() {
                return Err(format!("{} operations were counted, not {}", counts.len(), 2 * operations.len()).into());
            }
            Some(counts)
        }
        Counter::None(_) => None,
    };
    // Instructions of one operation, without those of the loop (which `Nothing` measures).
    let instructions_of = |side: usize, i: usize| {
        let counts = instructions.as_ref()?;
        let at = |i: usize| counts[side * operations.len() + i] as f64 / operations[i].counted_probes() as f64;
        Some((at(i) - at(0)).max(0.0))
    };
    let mut parts = Vec::new();
    for (i, &operation) in operations.iter().enumerate().skip(1) {
        let inputs = |seed, count| operation.probes(&btree, seed, count);
        let (mut by_btree, mut by_flat) = (Runner::new(&btree), Runner::new(&flat));
        let mut first = |probes: &[Probe]| by_btree.run(operation, probes);
        let mut second = |probes: &[Probe]| by_flat.run(operation, probes);
        let timed = in_turns(extent.effort(), &inputs, &mut [&mut first, &mut second])?;
        let cost = |side: usize| Cost { time: timed[side], instructions: instructions_of(side, i) };
        parts.push(Part { operation: operation.name(), btree: cost(0), flat: cost(1) });
    }
    let ((levels, tree, rows), (_, list, _)) = (btree.index(), flat.index());
    let [tree, rows, list] = [tree, rows, list].map(|bytes| bytes as f64 / f64::from(1 << 20));
    let sizes = format!("{rows:.0} MiB of data, index {tree:.2} MiB in {levels} levels, flat list {list:.2} MiB");
    Ok(Parts { shape: data.shape, sizes, counted: counter.to_string(), parts })
}

/// Runs each operation once to warm up, and once in the region that valgrind counts, in the order of [`measure`].
pub fn run_all_for_counting(data: &DataSet) -> Result<()> {
    for prefer_flat in [false, true] {
        let opened = data.open(prefer_flat)?;
        let mut runner = Runner::new(&opened);
        for operation in ALL.into_iter().filter(|operation| operation.is_in(&opened)) {
            let probes = operation.probes(&opened, 1, operation.counted_probes());
            runner.run(operation, &probes)?;
            let mut outcome = Ok(0);
            counted_region(&mut || outcome = runner.run(operation, &probes));
            if outcome? == 0 {
                return Err("nothing was counted".into());
            }
        }
    }
    Ok(())
}

/// The cost of a search among the separators of a node.
#[derive(Serialize, Deserialize)]
pub struct NodeSearch {
    /// The kind of keys.
    pub keys: String,
    /// Children of a node.
    pub children: usize,
    /// Bytes of a node.
    pub bytes: usize,
    /// The cost of a search.
    pub cost: Cost,
}

/// Measures searches in 32 nodes of 16 KiB, which fit into L2.
pub fn measure_nodes(counter: &Counter, extent: Extent) -> Result<Vec<NodeSearch>> {
    let mut searches = Vec::new();
    for (keys, of) in crate::rows::KEY_KINDS {
        const NODES: usize = 32;
        let nodes: Vec<(Vec<u8>, Vec<Key>)> = (0..NODES as u64).map(|node| full_node(node, of)).collect();
        let bytes = nodes[0].0.len();
        let children = IndexNode::new(&nodes[0].0).children();
        let inputs = |seed: u64, count: usize| -> Vec<(usize, Key)> {
            let pick = |i: u64| {
                let node = crate::rows::random(seed, i * 2, NODES as u64) as usize;
                let separators = &nodes[node].1;
                (node, separators[crate::rows::random(seed, i * 2 + 1, separators.len() as u64) as usize])
            };
            (0..count as u64).map(pick).collect()
        };
        let mut search = |probes: &[(usize, Key)]| {
            let found = |(node, key): &(usize, Key)| IndexNode::new(&nodes[*node].0).search(key) as u64;
            Ok(probes.iter().map(found).sum())
        };
        let time = in_turns(extent.effort(), &inputs, &mut [&mut search])?[0];
        let instructions = match counter {
            Counter::Hardware(counter) => {
                let probes = inputs(1, 1000);
                Some(counter.count(|| search(&probes))? as f64 / 1000.0)
            }
            Counter::Valgrind | Counter::None(_) => None,
        };
        searches.push(NodeSearch { keys: keys.to_owned(), children, bytes, cost: Cost { time, instructions } });
    }
    Ok(searches)
}

/// Builds a node of at most 16 KiB with as many children as fit. Returns it with its separators.
fn full_node(node: u64, of: fn(u64) -> Key) -> (Vec<u8>, Vec<Key>) {
    const NODE_BYTES: usize = 16 << 10;
    // A data page of 16 KiB holds 90 rows. Its separator is the shortest string between its first row and the row
    // before.
    let mut keys: Vec<Key> = (0..120_000).map(|i| of(node << 32 | i)).collect();
    keys.sort_unstable();
    let mut builder = NodeBuilder::default();
    let mut separators = Vec::new();
    for (i, pair) in keys.windows(91).step_by(90).enumerate() {
        let [last, first] = [pair[89], pair[90]];
        let separator = sst::format::key::separator(&last, &first);
        let rows = (i as u64 + 1) * 90;
        let totals = Totals { rows, bytes: rows << 14, group_bytes: 0, erased: 0 };
        let address =
            pages::Address { offset: (i as u64) << 14, bytes: 16 << 10, crc: crate::rows::mix(i as u64) as u32 };
        builder.add(separator, Child { address, totals });
        if builder.bytes(builder.children()) > NODE_BYTES {
            break;
        }
        separators.push(first);
    }
    let (mut page, mut separator) = (Vec::new(), Vec::new());
    builder.finish(builder.children() - 1, &mut page, &mut separator);
    sst::format::node::validate(&page).expect("a node is built as it is read");
    (page, separators)
}
