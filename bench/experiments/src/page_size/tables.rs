//! The tables, charts and goals of the experiment, beside the figures of the proposal.

use super::{
    Cell, DEPTHS, FILES, Form, KEY_BYTES, MEMORIES, Memory, NODES, PAGES, PageSize, Subject, THREADS, WORKS, Work,
};
use crate::figures::{PAIRED, kib, mib, middle, ratio, shown, shown_middle};
use crate::ground::Ground;
use crate::made::Shape;
use crate::outcome::{Goal, chart, grid, table};
use crate::quoted::{self, OrientDb};
use crate::ycsb_run::{FIELD_BYTES, FIELDS, Kind, YcsbRun};
use harness::directory::bytes_text;
use page::{Axis, Block, figure};

/// Access to what was measured.
struct Seen<'a> {
    ground: &'a Ground,
    size: &'a PageSize,
}

impl Seen<'_> {
    fn runs(&self, subject: Subject) -> Vec<YcsbRun> {
        self.ground.all(self.size.repeats, |repeat| Cell(repeat, subject))
    }

    fn larch(&self, form: Form, work: Work, memory: Memory, threads: usize) -> Vec<YcsbRun> {
        self.runs(Subject::Larch { form, work, memory, threads })
    }

    fn disk(&self, page: u64, threads: usize) -> Vec<YcsbRun> {
        self.runs(Subject::Disk { page, threads })
    }

    fn loads(&self, form: Form) -> Vec<YcsbRun> {
        self.runs(Subject::Load(form))
    }
}

/// The page sizes that the proposal compares.
const OURS: u64 = PAGES[2];
const WITH: u64 = PAGES[4];

fn kib_each(run: &YcsbRun) -> f64 {
    kib(read_each(run))
}

fn read_each(run: &YcsbRun) -> f64 {
    run.each(run.read_bytes)
}

fn pages_each(run: &YcsbRun) -> f64 {
    run.each(run.page_reads)
}

pub fn blocks(size: &PageSize, ground: &Ground) -> Vec<Block> {
    let seen = Seen { ground, size };
    let mut blocks = vec![
        Block::Heading("How it is scaled".to_owned()),
        scale(&seen),
        Block::Heading("Which size wins on this disk".to_owned()),
    ];
    blocks.extend(DEPTHS.into_iter().filter_map(|threads| winner(&seen, threads)).map(Block::Text));
    blocks.extend([
        lines(&seen),
        beside_disk(&seen),
        Block::Heading("The document's figures beside ours".to_owned()),
        beside(&seen),
        Block::Heading("By the size of pages".to_owned()),
        loads(&seen, "pages", &PAGES.map(Form::of_page)),
    ]);
    blocks.extend(MEMORIES.into_iter().flat_map(|memory| WORKS.map(|work| works(&seen, work, memory))));
    for (what, forms) in [("index nodes", NODES.map(Form::of_node)), ("files", FILES.map(Form::of_file))] {
        blocks.extend([
            Block::Heading(format!("By the size of {what}")),
            loads(&seen, what, &forms),
            reads_apart(&seen, what, &forms),
        ]);
    }
    blocks
}

fn scale(seen: &Seen<'_>) -> Block {
    let [cold, cached] = MEMORIES.map(|memory| figure(kib(seen.size.cache_bytes(memory) as f64)));
    let until = seen.size.until;
    let caption = format!(
        "Rows of {FIELDS} fields of {FIELD_BYTES} bytes and keys of {KEY_BYTES}. Cache: {cold} KiB cold, {cached} KiB cached. Write \
         buffer {} KiB. Reads are direct. Log buffered: written with every commit, not synced. Each run ends after {} s or {} \
         operations, whichever comes first, after {} s of warm-up",
        figure(kib(seen.size.write_buffer_bytes() as f64)),
        until.time.as_secs_f64(),
        figure(until.operations as f64),
        until.warmup.as_secs_f64(),
    );
    let shapes =
        Form::all().into_iter().map(|form| (form, seen.ground.told::<Shape>(&form.place()).unwrap_or_default()));
    table(
        caption,
        shapes,
        &[
            ("", &|(form, _)| form.name()),
            ("rows", &|(_, shape)| figure(shape.rows as f64)),
            ("MiB of files", &|(_, shape)| figure(mib(shape.file_bytes as f64))),
            ("files", &|(_, shape)| shape.files.to_string()),
            ("row pages", &|(_, shape)| figure(shape.data_pages as f64)),
            ("KiB of a row page", &|(_, shape)| figure(kib(shape.data_bytes as f64 / shape.data_pages.max(1) as f64))),
            ("KiB of index", &|(_, shape)| figure(kib(shape.index_bytes as f64))),
            ("nodes from root to row page", &|(_, shape)| shape.height.to_string()),
        ],
    )
}

/// Cold reads.
fn cold(seen: &Seen<'_>, page: u64, threads: usize) -> Vec<YcsbRun> {
    seen.larch(Form::of_page(page), Work::Reads, Memory::Cold, threads)
}

/// The rate of cold gets with pages of this size, divided by that with 64 KiB pages.
fn gain(seen: &Seen<'_>, page: u64, threads: usize) -> Option<f64> {
    ratio(&cold(seen, page, threads), &cold(seen, WITH, threads), YcsbRun::per_second)
}

fn disk_gain(seen: &Seen<'_>, page: u64, threads: usize) -> Option<f64> {
    ratio(&seen.disk(page, threads), &seen.disk(WITH, threads), YcsbRun::per_second)
}

/// Says which page size gave the most cold gets, and how much of this the disk alone explains.
fn winner(seen: &Seen<'_>, threads: usize) -> Option<String> {
    let rates = PAGES.map(|page| (page, middle(&cold(seen, page, threads), YcsbRun::per_second)));
    let (best, rate) =
        rates.into_iter().filter_map(|(page, rate)| Some((page, rate?))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let disk = |page| middle(&seen.disk(page, threads), YcsbRun::per_second);
    let (small, large) = (disk(PAGES[0])?, disk(WITH)?);
    let factor = small / large;
    let limited = match factor {
        // The sizes differ by a factor of 16.
        8.0.. => {
            "bytes decide on this disk: a read of 64 KiB takes many times as long as one of 4 KiB, so that small pages gain"
        }
        2.0.. => {
            "both the number of reads and their bytes cost this disk time, so that small pages gain less than they save bytes"
        }
        _ => {
            "the number of reads decides on this disk: a read of 64 KiB takes less than twice as long as one of 4 KiB, so that small pages gain far less than they save bytes"
        }
    };
    let pages = |page| middle(&cold(seen, page, threads), pages_each);
    let mut text = format!(
        "Cold reads with {threads} under way: pages of {} win with {} gets/s, {} times those of 64 KiB. The disk alone gives {} reads/s of 4 \
         KiB and {} of 64 KiB ({} MiB/s), {} times as many: {limited}.",
        bytes_text(best),
        figure(rate),
        shown(gain(seen, best, threads)),
        figure(small),
        figure(large),
        figure(mib(large * WITH as f64)),
        figure(factor)
    );
    if best != PAGES[0] {
        text.push_str(&format!(
            " Pages of 4 KiB do not win: a get reads {} pages there, index nodes among them, and {} with pages of {}.",
            shown(pages(PAGES[0])),
            shown(pages(best)),
            bytes_text(best)
        ));
    }
    Some(text)
}

fn lines(seen: &Seen<'_>) -> Block {
    let points = |of: &dyn Fn(u64) -> Vec<YcsbRun>| {
        let point = |page: &u64| Some((kib(*page as f64), middle(&of(*page), YcsbRun::per_second)?));
        PAGES.iter().filter_map(point).collect()
    };
    let both = |threads| {
        let larch = points(&|page| cold(seen, page, threads));
        let disk = points(&|page| seen.disk(page, threads));
        [(format!("Larch, {threads}"), larch), (format!("the disk alone, {threads}"), disk)]
    };
    let axes = (Axis::logarithmic("KiB of a page"), Axis::logarithmic("reads a second"));
    chart("Reads a second by the size of a page, by reads under way", axes, DEPTHS.into_iter().flat_map(both))
}

fn beside_disk(seen: &Seen<'_>) -> Block {
    let gains = |page, threads| gain(seen, page, threads).zip(disk_gain(seen, page, threads));
    let larch =
        |(threads, page): &(usize, u64), what: fn(&YcsbRun) -> f64| shown_middle(&cold(seen, *page, *threads), what);
    let disk = |(threads, page): &(usize, u64), what: &dyn Fn(&YcsbRun) -> f64| {
        shown_middle(&seen.disk(*page, *threads), what)
    };
    table(
        format!(
            "Cold reads beside the disk alone: direct reads of random blocks of one file with the same threads and requests; median of {} \
             repeats, in turns; {PAIRED}",
            seen.size.repeats
        ),
        DEPTHS.into_iter().flat_map(|threads| PAGES.map(|page| (threads, page))),
        &[
            ("page", &|(threads, page)| format!("{}, {threads} under way", bytes_text(*page))),
            ("disk alone, reads/s", &|at| disk(at, &YcsbRun::per_second)),
            ("MiB/s", &|at| disk(at, &|run| mib(run.per_second() * at.1 as f64))),
            ("times 64 KiB", &|(threads, page)| shown(disk_gain(seen, *page, *threads))),
            ("Larch cold, gets/s", &|at| larch(at, YcsbRun::per_second)),
            ("times 64 KiB", &|(threads, page)| shown(gain(seen, *page, *threads))),
            ("Larch's gain for the disk's", &|(threads, page)| {
                shown(gains(*page, *threads).map(|(ours, alone)| ours / alone))
            }),
            ("pages read a get", &|at| larch(at, pages_each)),
            ("KiB read a get", &|at| larch(at, kib_each)),
            ("bytes of the disk for those counted", &|(threads, page)| {
                shown_middle(&cold(seen, *page, *threads), |run| run.disk_share)
            }),
        ],
    )
}

/// The proposal's figures: the workload, which is `None` for the load, the kind of requests, and their figures.
const PUBLISHED: [(Option<Work>, &str, OrientDb); 6] = [
    (None, "INSERT", quoted::ORIENTDB_INSERTS),
    (Some(Work::Half), "READ", quoted::ORIENTDB_HALF_READS),
    (Some(Work::Half), "UPDATE", quoted::ORIENTDB_HALF_UPDATES),
    (Some(Work::Few), "READ", quoted::ORIENTDB_FEW_READS),
    (Some(Work::Few), "UPDATE", quoted::ORIENTDB_FEW_UPDATES),
    (Some(Work::Reads), "READ", quoted::ORIENTDB_READS),
];

/// The figures of one kind, in the order of [`quoted::OrientDbSide::all`].
fn five(cells: &[YcsbRun], kind: &str) -> [Option<f64>; 5] {
    let of = |what: fn(&Kind) -> Option<f64>| middle(cells, |cell| cell.kind(kind).and_then(what));
    [
        of(|kind| Some(kind.average)),
        of(|kind| Some(kind.least)),
        of(|kind| kind.percentile_95),
        of(|kind| kind.percentile_99),
        middle(cells, |cell| cell.kind_per_second(kind)),
    ]
}

fn beside(seen: &Seen<'_>) -> Block {
    let mut rows = Vec::new();
    let numbers = |five: [Option<f64>; 5]| five.map(shown).join(" / ");
    // The gain is the factor by which a time is shorter, or a rate greater.
    let gains = |large: [Option<f64>; 5], small: [Option<f64>; 5]| {
        let gain = |at: usize| {
            let pair = large[at].zip(small[at]);
            shown(pair.map(|(large, small)| if at == 4 { small / large } else { large / small }))
        };
        format!("{} / {} / {}", gain(4), gain(0), gain(3))
    };
    for (work, kind, quoted) in PUBLISHED {
        let [large, small] = [quoted.large, quoted.small].map(|side| side.all().map(|quote| Some(quote?.value())));
        let name = work.map_or("load", Work::name);
        rows.push(vec![format!("OrientDB, {name}, {kind}"), numbers(large), numbers(small), gains(large, small)]);
        let sides: Vec<(String, [Vec<YcsbRun>; 2])> = match work {
            None => vec![("Larch, load".to_owned(), [WITH, OURS].map(|page| seen.loads(Form::of_page(page))))],
            Some(work) => MEMORIES
                .into_iter()
                .map(|memory| {
                    let cells = [WITH, OURS].map(|page| seen.larch(Form::of_page(page), work, memory, THREADS));
                    (format!("Larch {}, {name}", memory.name()), cells)
                })
                .collect(),
        };
        for (name, cells) in sides {
            let [large, small] = cells.map(|cells| five(&cells, kind));
            rows.push(vec![format!("{name}, {kind}"), numbers(large), numbers(small), gains(large, small)]);
        }
    }
    let columns = [
        "",
        "64 KiB: average / least / 95 % / 99 %, us / a second",
        "16 KiB: the same",
        "gain of 16 KiB: rate / average / 99 %",
    ];
    let [large, small] = quoted::ORIENTDB_LOADS.map(|[hours, minutes]| format!("{} {}", hours.text(), minutes.text()));
    let caption = format!(
        "OrientDB's proposal (OEP 9, 2016: 64 KiB and 16 KiB; load of {large} and {small}, {} faster) beside ours",
        quoted::ORIENTDB_LOAD_GAIN.text()
    );
    grid(caption, columns, rows)
}

/// A row of the table for one form: the kinds of requests, rates and bytes.
fn row(name: String, cells: &[YcsbRun], large: &[YcsbRun], kinds: &[&str]) -> Vec<String> {
    let mut row = vec![name];
    for kind in kinds {
        row.extend(five(cells, kind).map(shown));
    }
    row.extend([
        shown_middle(cells, YcsbRun::per_second),
        shown(ratio(cells, large, YcsbRun::per_second)),
        // Inverted: the factor by which times are shorter.
        shown(ratio(large, cells, YcsbRun::percentile_99)),
        shown_middle(cells, pages_each),
        shown_middle(cells, kib_each),
        shown_middle(cells, |cell| kib(cell.each(cell.written_bytes))),
        shown_middle(cells, YcsbRun::amplification),
    ]);
    row
}

fn columns(first: &str, kinds: &[&str], against: &str) -> Vec<String> {
    let mut columns = vec![first.to_owned()];
    for kind in kinds {
        let kind = kind.to_lowercase();
        columns.extend(
            ["average, us", "least, us", "95 %, us", "99 %, us", "a second"].map(|what| format!("{kind}: {what}")),
        );
    }
    columns.extend(["operations/s".to_owned(), format!("times {against}"), format!("99 % shorter than {against}")]);
    let each = ["pages read each", "KiB read each", "KiB written each", "bytes for each asked for"];
    columns.extend(each.map(str::to_owned));
    columns
}

fn works(seen: &Seen<'_>, work: Work, memory: Memory) -> Block {
    let kinds: &[&str] = if work == Work::Reads { &["READ"] } else { &["READ", "UPDATE"] };
    let of = |page| seen.larch(Form::of_page(page), work, memory, THREADS);
    let (work, memory, repeats) = (work.name(), memory.name(), seen.size.repeats);
    grid(
        format!("{work}, {memory}, {THREADS} threads, by the size of pages; median of {repeats}; {PAIRED}"),
        columns("page", kinds, "64 KiB"),
        PAGES.map(|page| row(bytes_text(page), &of(page), &of(WITH), kinds)).to_vec(),
    )
}

/// Loads of forms that differ in one size, compared with the last form.
fn loads(seen: &Seen<'_>, what: &str, forms: &[Form]) -> Block {
    let last = *forms.last().expect("there are sizes");
    let rows = forms.iter().map(|form| row(form.name(), &seen.loads(*form), &seen.loads(last), &["INSERT"]));
    let caption = format!(
        "Load of {} rows in a random order, a commit each, by one thread, by the size of {what}; bytes until compactions are done; median \
         of {}; {PAIRED}",
        figure(seen.size.load_rows as f64),
        seen.size.repeats
    );
    grid(caption, columns("", &["INSERT"], "the last"), rows.collect())
}

/// Cold and cached reads of forms that differ in one size.
fn reads_apart(seen: &Seen<'_>, what: &str, forms: &[Form]) -> Block {
    let last = *forms.last().expect("there are sizes");
    let mut rows = Vec::new();
    for (memory, form) in MEMORIES.into_iter().flat_map(|memory| forms.iter().map(move |form| (memory, *form))) {
        let [runs, last] = [form, last].map(|form| seen.larch(form, Work::Reads, memory, THREADS));
        rows.push(row(format!("{}, {}", memory.name(), form.name()), &runs, &last, &["READ"]));
    }
    let caption =
        format!("Read only, {THREADS} threads, by the size of {what}; median of {}; {PAIRED}", seen.size.repeats);
    grid(caption, columns("", &["READ"], "the last"), rows)
}

pub fn goals(size: &PageSize, ground: &Ground) -> Vec<Goal> {
    let seen = &Seen { ground, size };
    let mut goals = Vec::new();
    for threads in DEPTHS {
        let gains = gain(seen, OURS, threads).zip(disk_gain(seen, OURS, threads));
        let what = format!("read only, cold, {threads} under way: gain of 16 for 64 KiB, for that of the disk alone");
        goals.push(Goal::at_least(0.95, what, gains.map(|(ours, disk)| ours / disk)));
        // A 64 KiB page has four times the bytes of a 16 KiB page, so a get should read four times as much.
        let bytes = ratio(&cold(seen, WITH, threads), &cold(seen, OURS, threads), read_each).map(|times| times / 4.0);
        let what =
            format!("read only, cold, {threads} under way: bytes a get of 64 for 16 KiB, for the pages' ratio of 4");
        goals.extend([Goal::at_least(0.95, what.clone(), bytes), Goal::at_most(1.05, what, bytes)]);
    }
    let (four, eight) = (cold(seen, PAGES[0], THREADS), cold(seen, PAGES[1], THREADS));
    for (what, measured) in [
        ("page reads of a get", ratio(&four, &eight, pages_each)),
        ("bytes read of a get", ratio(&four, &eight, read_each)),
        ("time of a get", ratio(&eight, &four, YcsbRun::per_second)),
    ] {
        let what = format!("read only, cold, rows of 1 KB: {what} with pages of 4 for 8 KiB");
        goals.push(Goal::at_most(1.5, what, measured));
    }
    goals
}
