//! The HTML page of `larch bench report`: what was run and how to run it again, throughput and latency over time,
//! the distribution of latencies, the store's counters, and the cost of a million operations. Several results are
//! shown side by side, with their differences first.

use crate::tpcc_runs::with_figures;
use harness::report::million::{Counts, money};
use harness::report::text::{bytes, grouped, nanos, nanos_or_blank, rate};
use harness::report::{Environment, Figure, Report, Run};
use harness::{Measure, Million, Times};
use page::{Axis, Block, Chart, Curve, Page, Table};

pub mod differences;
#[cfg(test)]
mod tests;
mod timeline;
mod together;
mod tpcc;

/// A run and its name on the page.
struct Shown<'r> {
    name: String,
    run: &'r Run,
    /// The index of the result that contains the run.
    result: usize,
}

/// The number of charts that the page shows before its first table.
const PICTURES: usize = 2;

/// Makes the page of `reports`, given as (file name, report). `price` is what a processor hour costs, in any
/// currency.
pub fn page(reports: &[(String, Report)], price: Option<f64>) -> Page {
    let mut page = Page::new("Benchmark result of Larch");
    let shown = runs(reports);
    page.add(Block::Text(format!(
        "{} of {}. Times are those of requests: from the moment at which a request was due in an open loop, and was sent otherwise, until \
         it was served. Warm-up is left out of all but the charts over time.",
        counted(shown.len(), "run"),
        counted(reports.len(), "result")
    )));
    if let Some(table) = differences::table(reports).filter(|_| reports.len() > 1) {
        page.add(Block::Heading("How the results differ".to_owned()));
        if differences::machines(reports) > 1 {
            page.add(Block::Text(
                "The results are of different machines: a difference of their times is one of the machines, too."
                    .to_owned(),
            ));
        }
        page.add(Block::Table(table));
    }
    page.add(Block::Heading("What was measured".to_owned()));
    // The picture comes before the table. A load lasts as long as its rows, so it is not on the axis of the runs.
    let (loads, runs): (Vec<&Shown<'_>>, Vec<&Shown<'_>>) = shown.iter().partition(|one| one.run.plan.loading);
    let pictured = if runs.is_empty() { &loads } else { &runs };
    let mut charts = timeline::charts(pictured).into_iter();
    charts.by_ref().take(PICTURES).for_each(|chart| page.add(chart));
    tpcc::blocks(&shown).into_iter().for_each(|block| page.add(block));
    page.add(Block::Table(summary(&shown)));
    for one in &shown {
        let told = one.run.short_window().into_iter().chain(one.run.warnings.clone()).chain(one.run.error.clone());
        told.for_each(|text| page.add(Block::Text(format!("{}: {text}", one.name))));
    }
    for one in shown.iter().filter(|one| one.run.measured.interrupted) {
        page.add(Block::Text(format!("{} was interrupted: what stands here is what there was until then.", one.name)));
    }
    page.add(Block::Heading("How times are spread".to_owned()));
    page.add(Block::Chart(distribution(pictured)));
    page.add(Block::Heading("Over time".to_owned()));
    charts.for_each(|chart| page.add(chart));
    if !runs.is_empty() {
        timeline::of_loads(&loads).into_iter().for_each(|chart| page.add(chart));
    }
    timeline::by_the_clock(&shown).into_iter().for_each(|chart| page.add(chart));
    page.add(Block::Table(timeline::phases(&shown)));
    page.add(Block::Heading("What it cost".to_owned()));
    page.add(Block::Text(COST.to_owned()));
    page.add(Block::Table(costs(&shown, price)));
    page.add(Block::Heading("What the stores counted".to_owned()));
    page.add(Block::Table(counters(&shown)));
    page.add(Block::Heading("What was run".to_owned()));
    for (number, (file, report)) in reports.iter().enumerate() {
        page.add(Block::Text(file.clone()));
        page.add(Block::Code(report.environment.command.join(" ")));
        page.add(Block::Table(machine(&report.environment)));
        for one in shown.iter().filter(|one| one.result == number) {
            page.add(Block::Folded(format!("Settings of {}", one.name), vec![Block::Table(settings(one))]));
            page.add(all_figures(&one.name, &with_figures(one.run).figures));
        }
    }
    page
}

fn runs(reports: &[(String, Report)]) -> Vec<Shown<'_>> {
    let several = reports.len() > 1;
    let all = reports.iter().enumerate();
    let runs = all.flat_map(|(result, (file, report))| report.runs.iter().map(move |run| (result, file, run)));
    runs.map(|(result, file, run)| {
        let name = if several { format!("{}: {}", file, run.name) } else { run.name.clone() };
        Shown { name, run, result }
    })
    .collect()
}

/// `1 run`, `3 runs`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn table(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table { caption: caption.to_owned(), columns: columns.iter().map(|&name| name.to_owned()).collect(), rows }
}

/// A row for each kind of request in each run. Runs that were made together also get rows for their sum.
fn summary(shown: &[Shown<'_>]) -> Table {
    let row = |name: &str, kind: &Measure, per_second: f64| {
        let times = kind.times();
        let mut row = vec![format!("{name}, {}", kind.name), rate(per_second)];
        row.extend([0.5, 0.95, 0.99, 0.999].map(|quantile| nanos_or_blank(times.known_quantile(quantile))));
        row.push(nanos_or_blank((!times.is_empty()).then(|| times.max())));
        let counts = [kind.retries, kind.rolled_back, kind.failed_count(), kind.not_found];
        row.extend(counts.map(grouped));
        row
    };
    let mut rows = Vec::new();
    for Shown { name, run, .. } in shown {
        let seconds = run.measured.nanos as f64 / 1e9;
        let all = Measure { name: "all".to_owned(), ..Measure::sum(&run.measured.kinds) };
        let kinds = run.measured.kinds.iter().filter(|kind| kind.done() > 0);
        rows.extend(kinds.chain([&all]).map(|kind| row(name, kind, kind.done() as f64 / seconds.max(1e-9))));
    }
    for group in together::groups(shown) {
        let kinds = group.kinds();
        let kinds = kinds.iter().filter(|(kind, _)| kind.done() > 0);
        rows.extend(kinds.map(|(kind, rate)| row(&group.name(), kind, *rate)));
    }
    let times = ["requests/s", "50 %", "95 %", "99 %", "99.9 %", "longest"];
    let columns = [&["run"][..], &times, &["retries", "rolled back", "failed", "no row"]].concat();
    table("Requests of the window; a dash: too few requests to say", &columns, rows)
}

/// All figures of a run, folded.
pub fn all_figures(name: &str, figures: &[Figure]) -> Block {
    let row = |figure: &Figure| vec![format!("{}: {}", figure.of, figure.name), figure.shown()];
    let caption = format!("All figures of {name}");
    let rows = figures.iter().map(row).collect();
    Block::Folded(caption.clone(), vec![Block::Table(table(&caption, &["figure", "value"], rows))])
}

/// The chart of latencies goes down to the slowest request in 10^`DIGITS`.
const DIGITS: u32 = 6;

/// The distribution of latencies: for each n on the horizontal axis, the time within which all but one of n
/// requests were served. n = 100 is the 99th percentile.
fn distribution(shown: &[&Shown<'_>]) -> Chart {
    let line = |one: &&Shown<'_>| {
        let times = Times::sum(one.run.measured.kinds.iter().map(Measure::times));
        let steps = (0..=10 * DIGITS).map(|step| 10_f64.powf(f64::from(step) / 10.0));
        let known = |inverse: f64| Some((inverse, (times.known_quantile(1.0 - 1.0 / inverse)? as f64 / 1e3).max(1e-3)));
        Curve { name: one.name.clone(), points: steps.map_while(known).collect() }
    };
    Chart {
        title: "Time within which all but one of n requests were served".to_owned(),
        x: Axis::logarithmic("one of n is slower: 100 is 99 %"),
        y: Axis::logarithmic("us"),
        lines: shown.iter().map(line).collect(),
        marks: Vec::new(),
    }
}

/// The text above the table of costs.
pub const COST: &str = "Processor time of client and store for a million operations. Of a store in the process of the client, the client's \
                    part is what the same requests cost on a store that does nothing. Of a server, it is known where its processes are \
                    on the machine of the client. Bytes are those that the store counts for its log and files, or else those that the \
                    system counts for its processes: of what they write, what they gave to calls of write, but never more than what became \
                    dirty in memory. Beside them is what the disks of the machine read and wrote for all programs.";

/// What a million operations cost. A given `price` replaces the one in the results.
fn costs(shown: &[Shown<'_>], price: Option<f64>) -> Table {
    let cost = |one: &Shown<'_>| (one.name.clone(), one.run.million(price.or(one.run.price)));
    cost_table("run", &shown.iter().map(cost).collect::<Vec<_>>())
}

/// The table of named costs. `what` heads the column of names.
pub fn cost_table(what: &str, costs: &[(String, Million)]) -> Table {
    let has_money = costs.iter().any(|(_, million)| million.money.is_some());
    let row = |(name, million): &(String, Million)| {
        let known = |value: Option<f64>, text: &dyn Fn(f64) -> String| value.map_or("-".to_owned(), text);
        let seconds = [million.client_cpu_seconds, million.store_cpu_seconds, million.cpu_seconds];
        let sizes =
            [million.read_bytes, million.written_bytes, million.device_read_bytes, million.device_written_bytes];
        let mut cells = vec![name.clone()];
        cells.extend(seconds.map(|seconds| known(seconds, &|seconds| nanos(seconds * 1e9))));
        cells.extend(sizes.map(|size| known(size, &|size| bytes(size as u64))));
        cells.push(million.written_by.map_or("-", Counts::word).to_owned());
        cells.extend(has_money.then(|| known(million.money, &money)));
        cells
    };
    let rows = costs.iter().map(row).collect();
    let mut columns = vec![
        what,
        "processor, client",
        "store",
        "together",
        "read",
        "written",
        "disks read",
        "disks wrote",
        "counted by",
    ];
    columns.extend(has_money.then_some("money for processors"));
    table("A million operations; a dash: not known", &columns, rows)
}

fn counters(shown: &[Shown<'_>]) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for change in shown.iter().flat_map(|one| &one.run.measured.counters) {
        if !names.contains(&change.name.as_str()) {
            names.push(&change.name);
        }
    }
    let value = |one: &Shown<'_>, name: &str| {
        let change = one.run.measured.counters.iter().find(|change| change.name == name);
        change.map_or(String::new(), |change| match change.counted() {
            Some(counted) => counter(name, counted),
            None => format!("{} in the end", counter(name, change.after)),
        })
    };
    let rows = names
        .iter()
        .map(|name| std::iter::once((*name).to_owned()).chain(shown.iter().map(|one| value(one, name))).collect());
    let rows = rows.collect();
    let columns = std::iter::once(String::new()).chain(shown.iter().map(|one| one.name.clone())).collect();
    Table { caption: "Counted in the window".to_owned(), columns, rows }
}

/// The value of a counter of a store. Counters of bytes say so in their names.
fn counter(name: &str, value: u64) -> String {
    if name.contains("bytes") { bytes(value) } else { grouped(value) }
}

fn settings(one: &Shown<'_>) -> Table {
    let plan = serde_json::to_value(&one.run.plan).expect("names are texts");
    let plan = plan.as_object().into_iter().flatten().map(|(name, value)| vec![name.clone(), value.to_string()]);
    let pairs =
        one.run.settings.iter().chain(&one.run.workload).map(|pair| vec![pair.name.clone(), pair.value.clone()]);
    let head = [vec!["target".to_owned(), one.run.target.clone()], vec!["seed".to_owned(), one.run.seed.to_string()]];
    table(&one.name, &["", ""], head.into_iter().chain(pairs).chain(plan).collect())
}

/// The table about the machine, and about the program that ran on it.
pub fn machine(environment: &Environment) -> Table {
    let rows = machine_rows(environment).into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    table("The program and the machine", &["", ""], rows)
}

/// The (name, value) rows of the machine table.
fn machine_rows(environment: &Environment) -> Vec<(&'static str, String)> {
    let machine = &environment.machine;
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let told = |text: &str| if text.is_empty() { "not told by the system".to_owned() } else { text.to_owned() };
    let build =
        if environment.debug_build { "without optimisation: the times mean nothing" } else { "with optimisation" };
    let memory = match machine.memory_limit_bytes {
        Some(limit) => format!("{}, of which {} may be used", gib(machine.memory_bytes), gib(limit)),
        None => gib(machine.memory_bytes),
    };
    let file_system = match machine.file_system.options.as_str() {
        "" => told(&machine.file_system.kind),
        options => format!("{} ({})", machine.file_system.kind, options.replace(',', ", ")),
    };
    vec![
        ("version", environment.version.clone()),
        ("commit", environment.commit.clone().unwrap_or_else(|| "unknown".to_owned())),
        ("build", build.to_owned()),
        ("processor", format!("{} of {}", machine.processors, told(&machine.processor))),
        ("governor", told(&machine.governor)),
        ("memory", memory),
        ("huge pages", told(&machine.huge_pages)),
        ("system", machine.system.clone()),
        ("kernel", told(&machine.kernel)),
        ("file system", file_system),
        ("disk", format!("{} with {}", told(&machine.disk.text()), gib(machine.disk_bytes))),
        ("free on the disk", gib(machine.disk_free_bytes)),
        ("load before", format!("{:.2}", machine.load)),
    ]
}
