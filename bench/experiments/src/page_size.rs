//! `larch bench experiment page-size`: the page sizes that a proposal for OrientDB compares, 4 to 64 KiB, each
//! beside the disk alone. The workloads are a load, 50 % updates, 5 % updates, and reads only, all but the load
//! both cold and cached. The sizes of index nodes and of files are varied separately.

mod tables;
#[cfg(test)]
mod tests;

use crate::args::Scale;
use crate::disk_alone;
use crate::experiment::{About, Experiment, Kept};
use crate::ground::Ground;
use crate::made::{Made, Shape, remove};
use crate::outcome::Goal;
use crate::quoted;
use crate::ycsb_run::{self, FIELD_BYTES, FIELDS, Until, YcsbRun, fill};
use harness::directory::bytes_text;
use harness::{Clock, Failure, Fields, Opening, Reply, Request, Session, Store, Target};
use page::Block;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use suite::stop::Stop;
use ycsb::{Load, Run, Settings};

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
        ycsb_run::settings(self.workload(), rows, &[("requestdistribution", "uniform")])
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

/// The experiment, and how much it measures.
pub struct PageSize {
    rows: u64,
    /// Rows of a load that is timed.
    load_rows: u64,
    repeats: u64,
    until: Until,
    has_goals: bool,
}

impl PageSize {
    /// The experiment at `scale`.
    pub fn of(scale: Scale) -> Self {
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

    /// The target of a store in `place`.
    fn target(&self, place: &Path, form: Form, memory: Memory, more: &str) -> String {
        // A file of the uppermost level has a fourth of the size of one of the deepest level.
        let (Form { page, node, .. }, file) = (form, form.file / 4);
        let (cache, buffer) = (self.cache_bytes(memory), self.write_buffer_bytes());
        let place = place.display();
        format!("larch:{place}?page={page}&node={node}&file={file}&cache={cache}&write_buffer={buffer}&{more}")
    }
}

/// What is measured in each repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// A load of rows in random order.
    Load(Form),
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
    /// All measurements but loads. Those that are compared with each other follow one another.
    fn runs() -> Vec<Self> {
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
}

/// A subject in one repeat.
#[derive(Clone, Copy)]
pub struct Cell(u64, Subject);

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(repeat, subject) = *self;
        match subject {
            Subject::Load(form) => write!(out, "load, {repeat}, {}", form.name()),
            Subject::Larch { form, work, memory, threads } => {
                let (work, memory) = (work.name(), memory.name());
                write!(out, "{work}, {memory}, {threads} threads, {repeat}, {}", form.name())
            }
            Subject::Disk { page, threads } => {
                write!(out, "the disk alone, {threads} threads, {repeat}, {}", bytes_text(page))
            }
        }
    }
}

impl Experiment for PageSize {
    const ABOUT: About = About {
        name: "page-size",
        title: "The size of pages",
        text: &[
            "OrientDB proposed pages of 16 KiB instead of 64 KiB (OEP 9) and measured YCSB with both: a load, half updates, one update in twenty, \
             and reads alone. Here are five sizes, and the size of index nodes and of files apart.",
            quoted::ORIENTDB.text,
            "Here the rows are fewer and the cache is in proportion. Cold means that a twentieth of the rows fits into the cache, which the index and few rows take; cached, that all of \
             them are in it before.",
            "Rows are drawn alike, because a disk is to be seen and not what a cache knows. Each request is a thread's that waits for it, in Larch and \
             on the disk alone. All sizes take turns, and all of it is repeated. A run that writes begins with a copy of the same files.",
            "Bytes for each asked for are those read from files and written to them (log, flushes and compactions until the store is at rest), for each \
             byte of rows returned or written. An update of a field reads and writes its row.",
            "Every row that is read is compared with what was written; a row that is missing or wrong ends the experiment.",
        ],
    };

    type Cell = Cell;

    fn most_bytes(&self) -> u64 {
        let row_bytes = 11 * (KEY_BYTES + FIELDS * FIELD_BYTES) / 10;
        // With the timed loads.
        (Form::all().len() as u64 + 1) * self.rows * row_bytes + 6 * self.load_rows * row_bytes + 64 * MIB
    }

    fn cells(&self) -> Vec<Cell> {
        let all = |subjects: Vec<Subject>| {
            (0..self.repeats).flat_map(move |repeat| subjects.clone().into_iter().map(move |one| Cell(repeat, one)))
        };
        let loads = Form::all().into_iter().map(Subject::Load).collect();
        all(loads).chain(all(Subject::runs())).collect()
    }

    fn prepare(&mut self, cell: &Cell, ground: &mut Ground) -> Result<(), Failure> {
        match cell.1 {
            Subject::Load(_) => Ok(()),
            Subject::Larch { form, .. } => self.made(form, ground).map(drop),
            Subject::Disk { .. } => disk_alone::make(ground, self.rows).map(drop),
        }
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Kept, Failure> {
        let Cell(repeat, subject) = *cell;
        let run = match subject {
            Subject::Load(form) => {
                let place = ground.data("load")?;
                remove(&place)?;
                let loaded = self.load(&place, form, repeat, &ground.stop);
                remove(&place)?;
                loaded?
            }
            Subject::Larch { form, work, memory, threads } => {
                let made = self.made(form, ground)?;
                self.larch(form, &made, (work, memory, threads), repeat, &ground.stop)?
            }
            Subject::Disk { page, threads } => {
                let disk = disk_alone::make(ground, self.rows)?;
                let seed = 1000 * repeat + threads as u64;
                disk_alone::read(disk.place(), self.rows, page, threads, seed, self.until, &ground.stop)?
            }
        };
        let (rate, bytes) = (run.per_second(), run.each(run.read_bytes));
        Ok(Kept::new(&run, format!("{rate:>10.0} /s  {bytes:>8.0} B read each")))
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        Ok(tables::blocks(self, ground))
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        if self.has_goals { tables::goals(self, ground) } else { Vec::new() }
    }
}

impl PageSize {
    /// The database of `form`.
    fn made(&self, form: Form, ground: &mut Ground) -> Result<Made, Failure> {
        let build = |place: &Path, stop: &Stop| {
            suite::say(&format!("{} rows, {}", self.rows, form.name()));
            let (target, settings) = (self.target(place, form, Memory::Cold, ""), Work::Reads.settings(self.rows));
            fill(&stores::larch::SCHEME, &target, &settings, self.rows, stop)?;
            Shape::read(place, "usertable")
        };
        Ok(ground.built(&form.place(), build)?.0)
    }

    fn load(&self, place: &Path, form: Form, repeat: u64, stop: &Stop) -> Result<YcsbRun, Failure> {
        let settings = Work::Half.settings(self.load_rows);
        let target = Target::parse(&self.target(place, form, Memory::Cached, "settle=levels"))?;
        let store = (stores::larch::SCHEME.open)(&target, &settings.table(), Opening::OrCreate)?;
        let run = ycsb_run::run(&*store, &Load::new(&settings, repeat), KEY_BYTES, 1, None, stop)?;
        read_all(&*store, self.load_rows)?;
        store.close()?;
        Ok(run)
    }

    /// Makes one run, on a copy of the database if it writes and on the database itself otherwise.
    fn larch(
        &self,
        form: Form,
        made: &Made,
        (work, memory, threads): (Work, Memory, usize),
        repeat: u64,
        stop: &Stop,
    ) -> Result<YcsbRun, Failure> {
        let copy = if work == Work::Reads { None } else { Some(made.copy()?) };
        let place = copy.as_ref().map_or(made.place(), |copy| copy.place());
        let target = self.target(place, form, memory, if copy.is_none() { "read_only=1" } else { "read_only=0" });
        let settings = work.settings(self.rows);
        let store = (stores::larch::SCHEME.open)(&Target::parse(&target)?, &settings.table(), Opening::Existing)?;
        if memory == Memory::Cached {
            read_all(&*store, self.rows)?;
        }
        let run = Run::new(&settings, 1000 * repeat + threads as u64);
        let run = ycsb_run::run(&*store, &run, KEY_BYTES, threads, Some(self.until), stop)?;
        store.close()?;
        Ok(run)
    }
}

/// Reads all rows in order, which fills the cache.
fn read_all(store: &dyn Store, rows: u64) -> Result<(), Failure> {
    let Session::Blocking(mut session) = store.session(Clock::start())? else {
        return Err(Failure::session("target", "a session of Larch waits, without the option `flights`"));
    };
    let mut reply = Reply::new();
    session.call(&Request::Scan { start: b"", rows: u64::MAX, fields: Fields::All }, &mut reply)?;
    match reply.rows() {
        found if found == rows => Ok(()),
        found => Err(Failure::session(crate::WRONG, format!("{found} rows were found where there are {rows}"))),
    }
}
