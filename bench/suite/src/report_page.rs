//! Results as one page: what was run and how to run it again, throughput and times over time, how times are spread, what the store
//! counted, and what a million operations cost. Several results stand side by side.

use harness::report::{Environment, Report, Run};
use harness::{Change, Measure, Times};
use page::{Axis, Block, Chart, Line, Page, Table, figure};

#[cfg(test)]
mod tests;

/// A run with what tells it from the others on the page.
struct Shown<'r> {
    name: String,
    run: &'r Run,
    /// The number of its result.
    result: usize,
}

/// The page of `reports`, with the names of their files. `price` is what an hour of a processor costs, in any currency.
pub fn page(reports: &[(String, Report)], price: Option<f64>) -> Page {
    let mut page = Page::new("Benchmark result of Larch");
    let shown = runs(reports);
    page.add(Block::Text(format!(
        "{} runs of {} results. Times are those of requests: from the moment at which a request was due in an open loop, and was sent \
         otherwise, until it was served. Warm-up is left out of all but the charts over time.",
        shown.len(),
        reports.len()
    )));
    page.add(Block::Table(summary(&shown)));
    for wrong in shown.iter().flat_map(|one| one.run.warnings.iter().chain(&one.run.error).map(move |text| (one, text)))
    {
        page.add(Block::Text(format!("{}: {}", wrong.0.name, wrong.1)));
    }
    page.add(Block::Heading("Over time".to_owned()));
    page.add(Block::Chart(throughput(&shown)));
    for (title, quantile) in [("Half of the requests within", 0.5), ("99 % of the requests within", 0.99)] {
        page.add(Block::Chart(times_over_time(&shown, title, quantile)));
    }
    page.add(Block::Heading("How times are spread".to_owned()));
    page.add(Block::Chart(distribution(&shown)));
    page.add(Block::Heading("What it cost".to_owned()));
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

fn table(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table { caption: caption.to_owned(), columns: columns.iter().map(|&name| name.to_owned()).collect(), rows }
}

/// Nothing takes no time: of requests that were written with others there are no times.
fn micros(nanos: u64) -> String {
    if nanos == 0 { "-".to_owned() } else { figure(nanos as f64 / 1e3) }
}

/// A row for each kind of request of each run.
fn summary(shown: &[Shown<'_>]) -> Table {
    let mut rows = Vec::new();
    for Shown { name, run, .. } in shown {
        let seconds = run.measured.nanos as f64 / 1e9;
        let total = Measure::sum(&run.measured.kinds);
        let kinds = run.measured.kinds.iter().filter(|kind| kind.oks + kind.not_found + kind.batched > 0);
        for (kind, label) in kinds.map(|kind| (kind, kind.name.as_str())).chain([(&total, "all")]) {
            let times = kind.times();
            let done = kind.oks + kind.not_found + kind.batched;
            let mut row = vec![format!("{name}, {label}"), figure(done as f64 / seconds.max(1e-9))];
            row.extend([0.5, 0.95, 0.99, 0.999].map(|quantile| micros(times.quantile(quantile))));
            row.extend([micros(times.max()), kind.failed_count().to_string(), kind.not_found.to_string()]);
            rows.push(row);
        }
    }
    let columns =
        ["run", "requests/s", "50 %, us", "95 %, us", "99 %, us", "99.9 %, us", "longest, us", "failed", "no row"];
    table("Requests of the window", &columns, rows)
}

/// The window begins at 0; what lies before it has negative times.
fn moments(run: &Run) -> Vec<f64> {
    let warming: u64 = run.measured.intervals.iter().filter(|it| it.warming).map(|it| it.to_nanos).max().unwrap_or(0);
    let place = |interval: &harness::Interval| match interval.warming {
        true => interval.to_nanos as f64 - warming as f64,
        false => interval.to_nanos as f64,
    };
    run.measured.intervals.iter().map(|interval| place(interval) / 1e9).collect()
}

fn over_time(shown: &[Shown<'_>], title: &str, unit: &str, of: impl Fn(&harness::Interval) -> Option<f64>) -> Chart {
    let line = |one: &Shown<'_>| {
        let values = one.run.measured.intervals.iter().map(&of);
        let points = moments(one.run).into_iter().zip(values);
        Line { name: one.name.clone(), points: points.filter_map(|(at, value)| Some((at, value?))).collect() }
    };
    Chart {
        title: title.to_owned(),
        x: Axis::linear("seconds of the window"),
        y: Axis::linear(unit),
        lines: shown.iter().map(line).collect(),
        marks: Vec::new(),
    }
}

fn throughput(shown: &[Shown<'_>]) -> Chart {
    over_time(shown, "Operations a second", "operations/s", |interval| Some(interval.per_second()))
}

fn times_over_time(shown: &[Shown<'_>], title: &str, quantile: f64) -> Chart {
    over_time(shown, title, "us", |interval| {
        let times = Times::sum(interval.kinds.iter().map(Measure::times));
        (!times.is_empty()).then(|| times.quantile(quantile) as f64 / 1e3)
    })
}

/// The parts of requests that are slower: a tenth, a hundredth, …
const DIGITS: u32 = 6;

/// The time within which all but a part of the requests were served, against one divided by this part.
fn distribution(shown: &[Shown<'_>]) -> Chart {
    let line = |one: &Shown<'_>| {
        let times = Times::sum(one.run.measured.kinds.iter().map(Measure::times));
        let steps = (0..=10 * DIGITS).map(|step| 10_f64.powf(f64::from(step) / 10.0));
        // Beyond the number of requests there is nothing to say.
        let known = steps.take_while(|inverse| *inverse <= times.count() as f64);
        let points = known.map(|inverse| (inverse, (times.quantile(1.0 - 1.0 / inverse) as f64 / 1e3).max(1e-3)));
        Line { name: one.name.clone(), points: points.collect() }
    };
    Chart {
        title: "Time within which all but one of so many requests were served".to_owned(),
        x: Axis::logarithmic("one of so many is slower: 100 is 99 %"),
        y: Axis::logarithmic("us"),
        lines: shown.iter().map(line).collect(),
        marks: Vec::new(),
    }
}

/// What a million operations took of processors, and of the disk as far as the store counts it.
fn costs(shown: &[Shown<'_>], price: Option<f64>) -> Table {
    let row = |one: &Shown<'_>| {
        let measured = &one.run.measured;
        let million = measured.operations.max(1) as f64 / 1e6;
        let process = measured.cost.process_nanos() as f64 / 1e9 / million;
        let client = one.run.noop_nanos.map(|nanos| nanos * 1e6 / 1e9);
        let counted =
            |name: &str| measured.counters.iter().find(|change| change.name == name).and_then(Change::counted);
        let mib = |name: &str| {
            counted(name).map_or("-".to_owned(), |bytes| figure(bytes as f64 / million / f64::from(1 << 20)))
        };
        vec![
            one.name.clone(),
            figure(process),
            client.map_or("-".to_owned(), figure),
            mib("bytes read"),
            mib("bytes written"),
            price.map_or("-".to_owned(), |price| figure(process / 3600.0 * price)),
        ]
    };
    let columns = [
        "run",
        "seconds of processors",
        "of these the client alone",
        "MiB read",
        "MiB written",
        "money for processors",
    ];
    table("A million operations, by this process; a server has its own", &columns, shown.iter().map(row).collect())
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
            Some(counted) => figure(counted as f64),
            None => format!("{} in the end", figure(change.after as f64)),
        })
    };
    let rows = names
        .iter()
        .map(|name| std::iter::once((*name).to_owned()).chain(shown.iter().map(|one| value(one, name))).collect());
    let rows = rows.collect();
    let columns = std::iter::once(String::new()).chain(shown.iter().map(|one| one.name.clone())).collect();
    Table { caption: "Counted in the window".to_owned(), columns, rows }
}

fn settings(one: &Shown<'_>) -> Table {
    let plan = serde_json::to_value(&one.run.plan).expect("names are texts");
    let plan = plan.as_object().into_iter().flatten().map(|(name, value)| vec![name.clone(), value.to_string()]);
    let pairs =
        one.run.settings.iter().chain(&one.run.workload).map(|pair| vec![pair.name.clone(), pair.value.clone()]);
    let head = [vec!["target".to_owned(), one.run.target.clone()], vec!["seed".to_owned(), one.run.seed.to_string()]];
    table(&one.name, &["", ""], head.into_iter().chain(pairs).chain(plan).collect())
}

/// What ran, and on what.
pub fn machine(environment: &Environment) -> Table {
    let machine = &environment.machine;
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let commit = environment.commit.clone().unwrap_or_else(|| "unknown".to_owned());
    let build =
        if environment.debug_build { "without optimisation: the times mean nothing" } else { "with optimisation" };
    let rows = [
        ("version", environment.version.clone()),
        ("commit", commit),
        ("build", build.to_owned()),
        ("processor", format!("{} of {}", machine.processors, machine.processor)),
        ("memory", gib(machine.memory_bytes)),
        ("system", format!("{}, kernel {}", machine.system, machine.kernel)),
        ("disk", format!("{}, of which {} are free", gib(machine.disk_bytes), gib(machine.disk_free_bytes))),
        ("load before", format!("{:.2}", machine.load)),
    ];
    Table {
        caption: "The program and the machine".to_owned(),
        columns: vec![String::new(), String::new()],
        rows: rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect(),
    }
}
