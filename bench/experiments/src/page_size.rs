//! `larch bench experiment page-size`: the page sizes that a proposal for OrientDB compares, 4 to 64 KiB, each
//! beside the disk alone. The workloads are a load, 50 % updates, 5 % updates, and reads only, all but the load
//! both cold and cached. The sizes of index nodes and of files are varied separately.

mod data;
mod tables;
#[cfg(test)]
mod tests;

use crate::args::{ExperimentArgs, Scale};
use crate::disk_alone;
use crate::ground::Ground;
use crate::made::Made;
use crate::measured::{self, Cell, FIELD_BYTES, FIELDS, Until};
use crate::outcome::Ending;
use harness::directory::bytes_text;
use harness::{Failure, Opening, Target};
use std::path::Path;
use std::time::Duration;
use suite::stop::Stop;
use ycsb::{Run, Settings};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Bytes of a YCSB key with 20 digits.
const KEY_BYTES: u64 = 24;

/// The sizes of a database's pages, nodes and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    page: u64,
    node: u64,
    /// Bytes of a file of the deepest level.
    file: u64,
}

/// The usual form, from which every other form differs in one size.
const USUAL: Form = Form { page: 16 * KIB, node: 16 * KIB, file: 64 * MIB };

const PAGES: [u64; 5] = [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB];
const NODES: [u64; 3] = [4 * KIB, 16 * KIB, 64 * KIB];
const FILES: [u64; 3] = [16 * MIB, 64 * MIB, 256 * MIB];

impl Form {
    fn of_page(page: u64) -> Self {
        Self { page, ..USUAL }
    }

    fn of_node(node: u64) -> Self {
        Self { node, ..USUAL }
    }

    fn of_file(file: u64) -> Self {
        Self { file, ..USUAL }
    }

    /// All forms.
    fn all() -> Vec<Self> {
        let pages = PAGES.map(Self::of_page).into_iter();
        let nodes = NODES.map(Self::of_node).into_iter().filter(|form| *form != USUAL);
        let files = FILES.map(Self::of_file).into_iter().filter(|form| *form != USUAL);
        pages.chain(nodes).chain(files).collect()
    }

    fn name(self) -> String {
        let [page, node, file] = [self.page, self.node, self.file].map(bytes_text);
        format!("page {page}, node {node}, file {file}")
    }

    /// The name as a directory name.
    fn place(self) -> String {
        self.name().replace([' ', ','], "")
    }
}

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Half,
    Few,
    Reads,
}

const WORKS: [Work; 3] = [Work::Half, Work::Few, Work::Reads];

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Half => "50/50",
            Self::Few => "95/5",
            Self::Reads => "read only",
        }
    }

    /// YCSB's workload with this share of updates.
    fn workload(self) -> &'static str {
        match self {
            Self::Half => "a",
            Self::Few => "b",
            Self::Reads => "c",
        }
    }

    fn settings(self, rows: u64) -> Settings {
        measured::settings(self.workload(), rows, &[("requestdistribution", "uniform")])
    }
}

/// How much of the rows is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// A twentieth: the index and a few rows.
    Cold,
    /// All.
    Cached,
}

const MEMORIES: [Memory; 2] = [Memory::Cold, Memory::Cached];

impl Memory {
    fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Cached => "cached",
        }
    }
}

/// Threads of every workload, each of which waits for its answers. Cold reads are also measured with one thread.
const THREADS: usize = 32;
const DEPTHS: [usize; 2] = [1, THREADS];

/// How much is measured.
struct Size {
    rows: u64,
    /// Rows of a load that is timed.
    load_rows: u64,
    repeats: u64,
    until: Until,
    has_goals: bool,
}

impl Size {
    fn of(scale: Scale) -> Self {
        let (rows, load_rows, repeats, warmup, time, operations) = match scale {
            Scale::Tiny => (2000, 500, 1, 5, 300, 100),
            Scale::Small => (150_000, 50_000, 3, 300, 700, 1_000_000),
            Scale::Medium => (1_000_000, 500_000, 3, 1000, 3000, 10_000_000),
            Scale::Full => (4_000_000, 2_000_000, 5, 2000, 10_000, 100_000_000),
        };
        let [warmup, time] = [warmup, time].map(Duration::from_millis);
        let until = Until { warmup, time, operations };
        Self { rows, load_rows, repeats, until, has_goals: scale != Scale::Tiny }
    }

    /// Bytes of keys and values.
    fn row_bytes(&self) -> u64 {
        self.rows * (KEY_BYTES + FIELDS * FIELD_BYTES)
    }

    fn cache_bytes(&self, memory: Memory) -> u64 {
        match memory {
            // The pages that 32 threads read at once have to fit, too.
            Memory::Cold => (self.row_bytes() / 20).max((4 * MIB).min(self.row_bytes() / 16)),
            Memory::Cached => 2 * self.row_bytes() + 64 * MIB,
        }
    }

    /// Small enough for a run of a few seconds to write several files.
    fn write_buffer_bytes(&self) -> u64 {
        (self.row_bytes() / 16).clamp(MIB, 64 * MIB)
    }

    /// The most disk space that the databases take, with those of the timed loads.
    fn most_bytes(&self) -> u64 {
        let row_bytes = 11 * (KEY_BYTES + FIELDS * FIELD_BYTES) / 10;
        (Form::all().len() as u64 + 1) * self.rows * row_bytes + 6 * self.load_rows * row_bytes + 64 * MIB
    }

    /// The target of a store in `place`.
    fn target(&self, place: &Path, form: Form, memory: Memory, more: &str) -> String {
        // A file of the uppermost level has a fourth of the size of one of the deepest level.
        let (Form { page, node, .. }, file) = (form, form.file / 4);
        let (cache, buffer) = (self.cache_bytes(memory), self.write_buffer_bytes());
        let place = place.display();
        format!("larch:{place}?page={page}&node={node}&file={file}&cache={cache}&write_buffer={buffer}&{more}")
    }
}

/// Runs the experiment.
pub fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    let size = Size::of(args.scale);
    let mut ground = Ground::open("page-size", args, size.most_bytes())?;
    if !measure_all(&mut ground, &size)? {
        return Ok(Ending::Interrupted);
    }
    tables::outcome(&ground, &size).finish("page-size", &ground, args)
}

/// One measurement of each repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Larch {
        form: Form,
        work: Work,
        memory: Memory,
        threads: usize,
    },
    /// Reads of this size, without an engine.
    Disk {
        page: u64,
        threads: usize,
    },
}

impl Subject {
    /// All measurements. Those that are compared with each other follow one another.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for threads in DEPTHS {
            for page in PAGES {
                let (form, work, memory) = (Form::of_page(page), Work::Reads, Memory::Cold);
                all.push(Self::Larch { form, work, memory, threads });
                all.push(Self::Disk { page, threads });
            }
        }
        let threads = THREADS;
        for memory in MEMORIES {
            for work in WORKS {
                let subjects =
                    PAGES.map(|page| Self::Larch { form: Form::of_page(page), work, memory, threads }).into_iter();
                all.extend(subjects.filter(|subject| !all.contains(subject)).collect::<Vec<_>>());
            }
            let apart = NODES.map(Form::of_node).into_iter().chain(FILES.map(Form::of_file));
            for form in apart.filter(|form| *form != USUAL) {
                all.push(Self::Larch { form, work: Work::Reads, memory, threads });
            }
        }
        all
    }

    fn name(self, repeat: u64) -> String {
        match self {
            Self::Larch { form, work, memory, threads } => {
                let (work, memory) = (work.name(), memory.name());
                format!("{work}, {memory}, {threads} threads, {repeat}, {}", form.name())
            }
            Self::Disk { page, threads } => {
                format!("the disk alone, {threads} threads, {repeat}, {}", bytes_text(page))
            }
        }
    }
}

/// Measures the missing cells. Returns false after ^C.
fn measure_all(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    if !data::loads(ground, size)? {
        return Ok(false);
    }
    let subjects = Subject::all();
    let names = (0..size.repeats).flat_map(|repeat| subjects.iter().map(move |subject| subject.name(repeat)));
    let shapes = Form::all().into_iter().map(data::shape_name);
    if names.chain(shapes).all(|name| ground.has(&name)) {
        return Ok(true);
    }
    let Some(made) = data::make(ground, size)? else { return Ok(false) };
    let Some(disk) = disk_alone::make(ground, size.rows)? else { return Ok(false) };
    for (repeat, subject) in (0..size.repeats).flat_map(|repeat| subjects.iter().map(move |one| (repeat, *one))) {
        let name = subject.name(repeat);
        let cell = ground.cell(&name, |stop| {
            let cell = match subject {
                Subject::Larch { form, work, memory, threads } => {
                    let (_, made) = made.iter().find(|(made, _)| *made == form).expect("all forms are made");
                    larch(size, form, made, (work, memory, threads), repeat, stop)?
                }
                Subject::Disk { page, threads } => {
                    let seed = 1000 * repeat + threads as u64;
                    disk_alone::read(disk.place(), size.rows, page, threads, seed, size.until, stop)?
                }
            };
            if !stop.is_pressed() {
                let (rate, bytes) = (cell.per_second(), cell.each(cell.read_bytes));
                suite::say(&format!("{name:78} {rate:>10.0} /s  {bytes:>8.0} B read each"));
            }
            Ok(cell)
        })?;
        if cell.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes one run, on a copy of the database if it writes and on the database itself otherwise.
fn larch(
    size: &Size,
    form: Form,
    made: &Made,
    (work, memory, threads): (Work, Memory, usize),
    repeat: u64,
    stop: &Stop,
) -> Result<Cell, Failure> {
    let copy = if work == Work::Reads { None } else { Some(made.copy()?) };
    let place = copy.as_ref().map_or(made.place(), |copy| copy.place());
    let target = size.target(place, form, memory, if copy.is_none() { "read_only=1" } else { "read_only=0" });
    let settings = work.settings(size.rows);
    let store = (store_larch::SCHEME.open)(&Target::parse(&target)?, &settings.table(), Opening::Existing)?;
    if memory == Memory::Cached {
        data::read_all(&*store, size.rows)?;
    }
    let run = Run::new(&settings, 1000 * repeat + threads as u64);
    let cell = measured::run(&*store, &run, KEY_BYTES, threads, Some(size.until), stop)?;
    store.close()?;
    Ok(cell)
}
