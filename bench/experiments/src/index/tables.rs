//! The tables, charts and goals of the experiment, beside the figures of YDB's document.

use super::data::{Loaded, Shape, load_name, shape_name};
use super::instructions::Counted;
use super::tpcc;
use super::wide::KEY_BYTES;
use super::{ALL_WRITTEN, ARMS, Arm, CACHES, DEPTHS, Size, WORKLOADS, Written};
use super::{cache_name, instructions_name, reads_name, ycsb_name};
use crate::args::IndexPart;
use crate::ground::Ground;
use crate::measured::{Cell, PAIRED, kib, middle, ratio, shown};
use crate::outcome::{Goal, Outcome};
use harness::directory::bytes_text;
use kit::goals::Bound;
use kit::median::extremes;
use page::{Axis, Block, Chart, Curve, Table, figure};

/// Access to what was measured.
struct Seen<'a> {
    ground: &'a Ground,
    size: &'a Size,
}

type Cache = (u64, u64);

impl Seen<'_> {
    fn reads(&self, cache: Cache, depth: usize, arm: Arm) -> Vec<Cell> {
        (0..self.size.repeats).filter_map(|repeat| self.ground.known(&reads_name(repeat, cache, depth, arm))).collect()
    }

    fn ycsb(&self, workload: &str, cache: Cache, arm: Arm) -> Vec<Cell> {
        (0..self.size.mixed_repeats)
            .filter_map(|repeat| self.ground.known(&ycsb_name(repeat, workload, cache, arm)))
            .collect()
    }

    fn loads(&self, written: Written) -> Vec<Loaded> {
        (0..self.size.repeats).filter_map(|repeat| self.ground.known(&load_name(repeat, written))).collect()
    }

    fn shape(&self, written: Written) -> Shape {
        self.ground.known(&shape_name(written)).unwrap_or_default()
    }

    fn instructions(&self, arm: Arm) -> Option<f64> {
        self.ground.known::<Counted>(&instructions_name(arm))?.each
    }
}

fn read_each(cell: &Cell) -> f64 {
    cell.each(cell.read_bytes)
}

pub fn outcome(ground: &Ground, size: &Size, only: Option<IndexPart>) -> Outcome {
    let seen = Seen { ground, size };
    let (mut blocks, mut wanted) = (Vec::new(), Vec::new());
    if only != Some(IndexPart::Tpcc) {
        blocks.extend(blocks_of_rows(&seen));
        wanted.extend(goals(&seen));
    }
    if only != Some(IndexPart::Rows) {
        blocks.push(Block::Heading("TPC-C".to_owned()));
        blocks.push(Block::Table(tpcc::table(ground, size)));
        blocks.push(Block::Table(tpcc::published()));
        wanted.extend(tpcc::goals(ground, size));
    }
    Outcome {
        title: "The index: B-tree beside flat lists".to_owned(),
        about: ABOUT.map(str::to_owned).to_vec(),
        blocks,
        goals: if size.has_goals { wanted } else { Vec::new() },
    }
}

fn blocks_of_rows(seen: &Seen<'_>) -> Vec<Block> {
    vec![
        Block::Heading("How it is scaled".to_owned()),
        Block::Table(scale(seen)),
        Block::Heading("Reads of random rows".to_owned()),
        Block::Chart(chart(seen, "Gets a second, 32 under way", "gets a second", DEPTHS[1], Cell::per_second)),
        Block::Chart(chart(seen, "KiB read for a get, one under way", "KiB", DEPTHS[0], |cell| kib(read_each(cell)))),
        Block::Table(reads(seen)),
        Block::Heading("YCSB".to_owned()),
        Block::Table(ycsb(seen)),
        Block::Table(beside(seen)),
        Block::Heading("Load, compaction, index".to_owned()),
        Block::Table(loads(seen)),
        Block::Heading("Memory and instructions".to_owned()),
        Block::Table(memory(seen)),
        Block::Table(instructions(seen)),
        Block::Text(how_counted(seen)),
    ]
}

fn scale(seen: &Seen<'_>) -> Table {
    let row = |written: Written| {
        let shape = seen.shape(written);
        vec![
            match written {
                Written::Both => "both indexes written",
                Written::Tree => "tree alone",
            }
            .to_owned(),
            figure(shape.rows as f64),
            figure(shape.file_bytes as f64 / f64::from(1 << 20)),
            shape.files.to_string(),
            figure(shape.least_file_bytes as f64 / f64::from(1 << 20)),
            figure(shape.data_pages as f64),
            figure(kib(shape.flat_bytes as f64)),
            figure(kib(shape.btree_bytes as f64)),
            shape.height.to_string(),
            figure(shape.import_nanos as f64 / 1e9),
        ]
    };
    let columns = [
        "database",
        "rows",
        "MiB",
        "files",
        "MiB of the least file",
        "data pages",
        "KiB of flat lists",
        "KiB of trees",
    ];
    let more = ["nodes from root to row page", "s to write in order of keys"];
    let caches = CACHES.map(|(times, divisor)| {
        let bytes = seen.shape(Written::Both).flat_bytes * times / divisor;
        format!("{} = {} KiB", cache_name((times, divisor)), figure(kib(bytes as f64)))
    });
    Table {
        caption: format!(
            "Keys of {KEY_BYTES} bytes, of which {} neighbours share the first 184; values of ten fields of 100 bytes; row pages of {}, nodes of \
             {}. Caches, by the bytes of all flat lists: {}. Reads are direct. Log buffered: written with every commit, not synced",
            seen.size.group_rows,
            bytes_text(seen.size.page_bytes),
            bytes_text(seen.size.node_bytes),
            caches.join(", ")
        ),
        columns: columns.into_iter().chain(more).map(str::to_owned).collect(),
        rows: ALL_WRITTEN.map(row).to_vec(),
    }
}

fn chart(seen: &Seen<'_>, title: &str, unit: &str, depth: usize, what: fn(&Cell) -> f64) -> Chart {
    let line = |arm: Arm| Curve {
        name: arm.name().to_owned(),
        points: CACHES
            .iter()
            .rev()
            .filter_map(|cache| Some((cache.0 as f64 / cache.1 as f64, middle(&seen.reads(*cache, depth, arm), what)?)))
            .collect(),
    };
    Chart {
        title: title.to_owned(),
        x: Axis::logarithmic("bytes of the cache for those of all flat lists"),
        y: Axis::logarithmic(unit),
        lines: ARMS.map(line).to_vec(),
        marks: Vec::new(),
    }
}

fn reads(seen: &Seen<'_>) -> Table {
    let mut rows = Vec::new();
    for (cache, depth) in CACHES.into_iter().flat_map(|cache| DEPTHS.map(|depth| (cache, depth))) {
        for arm in ARMS {
            let cells = seen.reads(cache, depth, arm);
            let (least, most) = extremes(&cells.iter().map(Cell::per_second).collect::<Vec<_>>());
            rows.push(vec![
                format!("cache {}, {depth} under way, {}", cache_name(cache), arm.name()),
                format!("{} ({}-{})", shown(middle(&cells, Cell::per_second)), figure(least), figure(most)),
                shown(ratio(&cells, &seen.reads(cache, depth, Arm::Flat), Cell::per_second)),
                shown(middle(&cells, Cell::percentile_99)),
                shown(middle(&cells, |cell| cell.each(cell.page_reads))),
                shown(middle(&cells, |cell| cell.each(cell.index_page_reads))),
                shown(middle(&cells, |cell| kib(read_each(cell)))),
                shown(middle(&cells, |cell| cell.disk_share.unwrap_or(f64::NAN))),
            ]);
        }
    }
    let columns = [
        "",
        "gets/s (least-most)",
        "for flat",
        "99 %, us",
        "pages read a get",
        "index pages a get",
        "KiB read a get",
        "bytes of the disk for those counted",
    ];
    Table {
        caption: format!(
            "Gets of rows drawn alike, each checked; median of {} repeats, in turns; {PAIRED}",
            seen.size.repeats
        ),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

fn ycsb(seen: &Seen<'_>) -> Table {
    let mut rows = Vec::new();
    for (workload, cache) in WORKLOADS.into_iter().flat_map(|name| CACHES.map(|cache| (name, cache))) {
        for arm in ARMS {
            let cells = seen.ycsb(workload, cache, arm);
            let by_time = cells.iter().filter(|cell| cell.ended_by == "time").count();
            rows.push(vec![
                format!("{workload}, cache {}, {}", cache_name(cache), arm.name()),
                shown(middle(&cells, Cell::per_second)),
                shown(ratio(&cells, &seen.ycsb(workload, cache, Arm::Flat), Cell::per_second)),
                shown(middle(&cells, Cell::percentile_99)),
                shown(middle(&cells, |cell| cell.each(cell.page_reads))),
                shown(middle(&cells, |cell| kib(read_each(cell)))),
                shown(middle(&cells, |cell| kib(cell.each(cell.written_bytes)))),
                format!("{by_time} of {}", cells.len()),
            ]);
        }
    }
    let columns = [
        "workload",
        "operations/s",
        "for flat",
        "99 % of the commonest, us",
        "pages read an operation",
        "KiB read an operation",
        "KiB written an operation",
        "ended by time",
    ];
    let until = seen.size.until;
    Table {
        caption: format!(
            "YCSB A to F, 32 requests under way on one thread; each for {} s or {} operations, whichever comes first, after {} s of warm-up, on \
             a copy that begins with the same files; rows that are read alone are checked; median of {}; {PAIRED}",
            until.time.as_secs_f64(),
            figure(until.operations as f64),
            until.warmup.as_secs_f64(),
            seen.size.mixed_repeats
        ),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

/// The document's runs with the largest and the smallest cache, each as four figures: thousands of operations per
/// second by the flat index and by the tree, and the 99th percentile in milliseconds by each.
const PUBLISHED_YCSB: [(&str, [f64; 4], [f64; 4]); 6] = [
    ("a", [354.8, 345.4, 28.479, 133.119], [369.1, 375.7, 158.335, 55.167]),
    ("b", [494.7, 501.3, 22.751, 18.655], [503.5, 500.3, 18.815, 17.599]),
    ("c", [532.5, 548.6, 14.367, 11.159], [527.8, 524.9, 11.335, 11.559]),
    ("f", [260.9, 261.8, 23.839, 19.631], [276.0, 275.4, 32.607, 25.727]),
    ("d", [66.8, 61.9, 577.023, 832.511], [63.6, 62.5, 600.063, 591.359]),
    ("e", [63.6, 65.3, 474.367, 99.007], [65.0, 62.9, 244.735, 85.119]),
];

fn beside(seen: &Seen<'_>) -> Table {
    let row = |(workload, first, last): &(&str, [f64; 4], [f64; 4])| {
        let mut cells = vec![(*workload).to_owned()];
        for [flat, tree, flat_99, tree_99] in [first, last] {
            cells.push(format!("{flat} / {tree}"));
            cells.push(figure(tree / flat));
            cells.push(format!("{flat_99:.1} / {tree_99:.1}"));
        }
        for cache in [CACHES[0], CACHES[3], CACHES[4]] {
            let [flat, tree] = [Arm::Flat, Arm::Tree].map(|arm| seen.ycsb(workload, cache, arm));
            let thousands = |cells: &[Cell]| shown(middle(cells, |cell| cell.per_second() / 1e3));
            let millis = |cells: &[Cell]| shown(middle(cells, |cell| cell.percentile_99() / 1e3));
            cells.push(format!("{} / {}", thousands(&flat), thousands(&tree)));
            cells.push(shown(ratio(&tree, &flat, Cell::per_second)));
            cells.push(format!("{} / {}", millis(&flat), millis(&tree)));
        }
        cells
    };
    let mut columns = vec!["workload".to_owned()];
    for place in ["YDB, March", "YDB, 2 GB cache", "Larch, cache 4x", "Larch, cache 1/4", "Larch, cache 1/16"] {
        columns.extend([format!("{place}: K/s, flat / tree"), "tree for flat".to_owned(), "99 %, ms".to_owned()]);
    }
    Table {
        caption: format!(
            "The document's YCSB (26 March and 4 May 2024, 20 minutes or 600 M operations each, a cluster) beside ours; of ours {PAIRED}"
        ),
        columns,
        rows: PUBLISHED_YCSB.iter().map(row).collect(),
    }
}

fn loads(seen: &Seen<'_>) -> Table {
    let mut rows: Vec<Vec<String>> = ALL_WRITTEN
        .into_iter()
        .map(|written| {
            let cells = seen.loads(written);
            let seconds = |what: fn(&Loaded) -> u64| shown(middle(&cells, |cell| what(cell) as f64 / 1e9));
            vec![
                format!("Larch, {} rows, {} written", figure(seen.size.load_rows as f64), written.name()),
                seconds(|cell| cell.load.nanos),
                seconds(|cell| cell.load.settle_nanos),
                seconds(|cell| cell.index_nanos),
                shown(middle(&cells, |cell| cell.load.each(cell.load.written_bytes))),
                shown(middle(&cells, |cell| kib(cell.shape.flat_bytes as f64))),
                shown(middle(&cells, |cell| kib(cell.shape.btree_bytes as f64))),
            ]
        })
        .collect();
    for (name, load, compaction, index) in [
        ("YDB, 54 GB cache, flat", 1478, 443, 566),
        ("YDB, 54 GB cache, tree", 1431, 455, 534),
        ("YDB, 18 GB cache, flat", 1501, 450, 555),
        ("YDB, 18 GB cache, tree", 1492, 451, 491),
        ("YDB, 2 GB cache, flat", 1526, 434, 546),
        ("YDB, 2 GB cache, tree", 1546, 452, 545),
    ] {
        let numbers = [load, compaction, index].map(|seconds: u32| seconds.to_string());
        rows.push([vec![name.to_owned()], numbers.to_vec(), vec!["-".to_owned(); 3]].concat());
    }
    let columns = [
        "",
        "load, s",
        "compaction, s",
        "secondary index, s",
        "bytes written a row",
        "KiB of flat lists",
        "KiB of trees",
    ];
    Table {
        caption: format!(
            "Rows loaded in a random order by commits, then compacted, then indexed by a part of their values; median of {}. YDB's are TPC-C \
             with 12,000 warehouses",
            seen.size.repeats
        ),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

fn memory(seen: &Seen<'_>) -> Table {
    let mut rows = Vec::new();
    for cache in CACHES {
        for arm in ARMS {
            let cells = seen.reads(cache, DEPTHS[1], arm);
            let shape = seen.shape(arm.written());
            let read = if arm.is_flat() { shape.flat_bytes } else { shape.btree_bytes };
            rows.push(vec![
                format!("cache {}, {}", cache_name(cache), arm.name()),
                figure(kib((shape.flat_bytes + shape.btree_bytes) as f64)),
                figure(kib(read as f64)),
                shown(middle(&cells, |cell| kib(cell.cached_index_bytes as f64))),
                shown(middle(&cells, |cell| kib(cell.memory_bytes as f64))),
                figure(kib(shape.manifest_bytes as f64)),
            ]);
        }
    }
    let columns = [
        "",
        "KiB of indexes in files",
        "KiB of the one that is read",
        "KiB of index in the cache",
        "KiB of all memory",
        "KiB that cannot be evicted",
    ];
    Table {
        caption: "Memory of the table as the database, which has no other, reports it after gets with 32 under way. A list and a node are pages of one cache and are \
                  counted in the same way"
            .to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

fn instructions(seen: &Seen<'_>) -> Table {
    let flat = seen.instructions(Arm::Flat);
    let row = |arm: Arm| {
        let counted: Option<Counted> = seen.ground.known(&instructions_name(arm));
        let each = counted.as_ref().and_then(|counted| counted.each);
        let ratio = each.zip(flat).map(|(each, flat)| each / flat);
        vec![arm.name().to_owned(), each.map_or("not counted".to_owned(), figure), shown(ratio)]
    };
    Table {
        caption: format!(
            "Instructions of a get with a cache of 4x, counted by callgrind in a process of its own over {} gets of rows drawn alike, after \
             the index was brought into memory",
            seen.size.counted_gets
        ),
        columns: ["", "instructions", "for flat"].map(str::to_owned).to_vec(),
        rows: ARMS.map(row).to_vec(),
    }
}

/// Says what is counted, or why nothing was.
fn how_counted(seen: &Seen<'_>) -> String {
    let why = |arm: Arm| seen.ground.known::<Counted>(&instructions_name(arm))?.why_not;
    match ARMS.into_iter().find_map(why) {
        Some(why) => format!("Instructions were not counted: {why}"),
        None => "Counts are those outside the system; the reads from disk of a get are in them with their checks."
            .to_owned(),
    }
}

fn goals(seen: &Seen<'_>) -> Vec<Goal> {
    let both = seen.shape(Written::Both);
    let mut goals = vec![
        Goal {
            what: "MiB of the least file, so that the goals hold".to_owned(),
            bound: Bound::AtLeast(1024.0),
            measured: Some(both.least_file_bytes as f64 / f64::from(1 << 20)),
        },
        Goal {
            what: "MiB of all flat lists, so that the goals hold".to_owned(),
            bound: Bound::AtLeast(32.0),
            measured: Some(both.flat_bytes as f64 / f64::from(1 << 20)),
        },
    ];
    for cache in &CACHES[3..] {
        for arm in [Arm::Tree, Arm::TreeAlone] {
            let [one, many] = DEPTHS.map(|depth| [arm, Arm::Flat].map(|arm| seen.reads(*cache, depth, arm)));
            goals.push(Goal {
                what: format!("cache {}, 32 under way, {}: gets a second for flat", cache_name(*cache), arm.name()),
                bound: Bound::AtLeast(2.0),
                measured: ratio(&many[0], &many[1], Cell::per_second),
            });
            goals.push(Goal {
                what: format!("cache {}, one under way, {}: bytes read a get for flat", cache_name(*cache), arm.name()),
                bound: Bound::AtMost(0.5),
                measured: ratio(&one[0], &one[1], read_each),
            });
        }
    }
    for arm in [Arm::Tree, Arm::TreeAlone] {
        goals.push(Goal {
            what: format!("cache 4x, {}: instructions of a get for flat", arm.name()),
            bound: Bound::AtMost(1.02),
            measured: seen.instructions(arm).zip(seen.instructions(Arm::Flat)).map(|(tree, flat)| tree / flat),
        });
    }
    goals
}

const ABOUT: [&str; 6] = [
    "YDB replaced one flat index for each file by a B-tree, and ran TPC-C and YCSB on a cluster with both, with caches of 54, 18 and 2 GB. A \
     flat list is read whole before the first row of its file; of a tree only the nodes on the way are read.",
    "Scaled: the document has some terabytes on many machines, this has one process and the sizes below. What decides is how much of the \
     lists fits into the cache, so caches are multiples of the bytes of all flat lists, and keys are wide, so that lists are large.",
    "A list has at most 4 MiB; a file with more gets a tree in any case. So a file of 1 GiB with long separators needs large row pages.",
    "Three arms: both indexes are written and the list is read; both are written and the tree is read; only the tree is written. They take \
     turns, and all of it is repeated. Each run that writes begins with a copy of the same files.",
    "Every row that is read alone is compared with what was written, and a row that is missing or wrong ends the experiment. Reads go around \
     the system's cache.",
    "TPC-C runs with caches in the document's proportion to the data, and with two in which its lists do not fit, because rows of 16 KiB pages \
     with short keys have small lists. Each run begins with a copy of the same files, and the twelve conditions are checked after it.",
];
