//! The result of a run of row access: printed as text, written to a file, and merged from several processes.

use crate::args::{FilesArgs, RunArgs};
use crate::{results, say};
use harness::report::figures::PER_SECOND;
use harness::report::{Environment, Figure, Figures, Pair, Run, csv};
use harness::without_password;
use harness::{Change, Cost, Failure, Measure, Measured, Million, Plan, Share, Times};
use row_access::run::Ran;
use row_access::{Job, history};
use serde::{Deserialize, Serialize};
use std::path::Path;

#[cfg(test)]
mod tests;

/// The `format` of a row-access result file.
const FORMAT: &str = "larch-rows-result";
/// The version of that format.
const VERSION: u32 = 1;

/// The result of a run, in the form in which a file stores it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    format: String,
    version: u32,
    environment: Environment,
    target: String,
    settings: Vec<Pair>,
    /// Whether ranges were drawn as ybio draws them.
    compat: bool,
    in_server: bool,
    seed: u64,
    /// This process's share, if several processes made the run together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share: Option<Share>,
    sessions: Vec<SessionReport>,
    /// Rows accessed by all sessions.
    rows: u64,
    /// Seconds from the start of the first session to the end of the last.
    seconds: f64,
    rows_per_second: f64,
    page_reads: Option<u64>,
    page_reads_per_second: Option<f64>,
    /// What an hour of a processor costs.
    price: Option<f64>,
    /// What a million rows cost.
    million: Million,
    /// Processor time and memory of the run. Missing in results of older releases.
    #[serde(default)]
    cost: Cost,
    access_path: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SessionReport {
    job: Job,
    rows_per_second: Option<i64>,
    updated: u64,
    repeated_batches: u64,
    missing_rows: u64,
    batch_micros: BatchTimes,
    /// The times of the single batches. Missing in results of older releases.
    #[serde(default)]
    batches: Times,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct BatchTimes {
    mean: f64,
    /// The percentiles are `None` if there were too few batches for them.
    p50: Option<f64>,
    p99: Option<f64>,
    max: f64,
}

impl SessionReport {
    fn new(ran: &Ran) -> Self {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        Self {
            job: ran.job.clone(),
            rows_per_second: ran.job.riops(),
            updated: ran.updated,
            repeated_batches: ran.repeated,
            missing_rows: ran.missing,
            batch_micros: BatchTimes {
                mean: ran.times.mean() / 1e3,
                p50: ran.times.known_quantile(0.5).map(micros),
                p99: ran.times.known_quantile(0.99).map(micros),
                max: micros(ran.times.max()),
            },
            batches: ran.times.clone(),
        }
    }
}

impl Report {
    /// The report of one process.
    pub fn new(
        args: &RunArgs,
        share: Option<Share>,
        settings: Vec<Pair>,
        ran: &[Ran],
        (page_reads, cost): (Option<u64>, Cost),
        access_path: String,
    ) -> Self {
        let report = Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            environment: Environment::gather(results::VERSION, Path::new(".")),
            target: without_password(&args.at.target),
            settings,
            compat: args.is_compat(),
            in_server: args.in_server,
            seed: args.seed,
            share,
            sessions: ran.iter().map(SessionReport::new).collect(),
            rows: 0,
            seconds: 0.0,
            rows_per_second: 0.0,
            page_reads,
            page_reads_per_second: None,
            price: args.price,
            million: Million::default(),
            cost,
            access_path,
        };
        report.summed()
    }

    /// Computes the report's seconds and rates from its sessions.
    fn summed(self) -> Self {
        let jobs = || self.sessions.iter().map(|session| &session.job);
        let begin = jobs().map(|job| job.start_time).min();
        let end = jobs().filter_map(|job| job.end_time).max();
        let seconds = begin.zip(end).map_or(0.0, |(begin, end)| end.since(begin).as_secs_f64()).max(1e-6);
        Self { seconds, ..self }.rated()
    }

    /// Computes the sum of the sessions' rows, and the rate over the report's seconds.
    fn rated(self) -> Self {
        let seconds = self.seconds;
        let jobs = self.sessions.iter().map(|session| &session.job);
        let rows = jobs.fold(0_u64, |sum, job| sum.saturating_add(job.num_rows.unwrap_or(0).unsigned_abs()));
        Self {
            rows,
            rows_per_second: rows as f64 / seconds,
            page_reads_per_second: self.page_reads.map(|pages| pages as f64 / seconds),
            million: Million::of_cost(rows, &self.cost, self.price),
            ..self
        }
    }

    /// Merges the reports of several processes. `parts` are (name for messages, report). The result has all
    /// sessions. Page reads are not added: the processes use one server, and each report has the server's own
    /// count, so the largest one is taken.
    ///
    /// # Errors
    ///
    /// Fails if `parts` is empty, if reports differ in a setting that must be the same, or if their shares are not
    /// those of one run.
    pub fn merged(parts: &[(String, Self)]) -> Result<Self, String> {
        let [(first_name, first), others @ ..] = parts else {
            return Err("no result is given to merge; name at least one".to_owned());
        };
        let kind = |report: &Self| report.target.split(':').next().unwrap_or_default().to_owned();
        let of_sessions = |report: &Self| {
            let job = report.sessions.first().map(|session| &session.job);
            job.map_or(String::new(), |job| {
                format!("{} rows by {}, {} % updated", job.tab_rows, job.batch_size, job.pct_update)
            })
        };
        for (name, other) in others {
            let differences = [
                ("the kind of target", kind(first), kind(other)),
                ("--compat", first.compat.to_string(), other.compat.to_string()),
                ("--in-server", first.in_server.to_string(), other.in_server.to_string()),
                ("the access", of_sessions(first), of_sessions(other)),
            ];
            if let Some((what, one, two)) = differences.iter().find(|(_, one, two)| one != two) {
                return Err(format!(
                    "{first_name} and {name} are not of one run: {what} is `{one}` in one and `{two}` in the other"
                ));
            }
        }
        let parts_of = parts.iter().map(|(name, report)| (name.as_str(), report.share)).collect::<Vec<_>>();
        harness::report::merge::shares(&parts_of)?.iter().for_each(|warning| say(&format!("larch: {warning}")));
        let all = || parts.iter().map(|(_, report)| report);
        let merged = Self {
            share: None,
            sessions: all().flat_map(|report| report.sessions.iter().cloned()).collect(),
            page_reads: all().filter_map(|report| report.page_reads).max(),
            cost: Cost::merged(&all().map(|report| &report.cost).collect::<Vec<_>>()),
            ..first.clone()
        };
        // Not computed from the sessions' times: the machines' clocks may differ.
        let seconds = all().map(|report| report.seconds).fold(0.0, f64::max);
        Ok(Self { seconds, ..merged }.rated())
    }

    /// Adds settings to the report.
    pub fn with_settings(mut self, settings: Vec<Pair>) -> Self {
        self.settings.extend(settings);
        self
    }

    /// Rows accessed by all sessions.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Seconds from the start of the first session to the end of the last.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The report as the content of a file.
    pub fn json(&self) -> String {
        let mut whole = serde_json::to_value(self).expect("names are texts");
        whole["figures"] = serde_json::to_value(self.run().figures).expect("names are texts");
        serde_json::to_string_pretty(&whole).expect("names are texts")
    }

    /// Writes the report to `files`.
    pub fn write(&self, files: &FilesArgs) -> Result<(), Failure> {
        let out = files.out.as_ref().map_or(Ok(()), |path| results::write(path, self.json().as_bytes()));
        out.and(files.csv.as_ref().map_or(Ok(()), |path| results::write(path, csv::csv([&self.run()]).as_bytes())))
    }

    /// Parses a file's content. `None` if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let report: Self = serde_json::from_str(text).ok()?;
        (report.format == FORMAT && report.version == VERSION).then_some(report)
    }

    fn retries(&self) -> u64 {
        self.sessions.iter().map(|session| session.repeated_batches).sum()
    }

    fn missing_rows(&self) -> u64 {
        self.sessions.iter().map(|session| session.missing_rows).sum()
    }

    /// The report in the form that the results of other workloads have. Its operations are rows, and its requests are
    /// batches.
    pub fn whole(&self) -> harness::report::Report {
        let mut whole = harness::report::Report::new(self.environment.clone());
        whole.runs.push(self.run());
        whole
    }

    /// The run of [`whole`](Self::whole).
    pub fn run(&self) -> Run {
        let batches = Times::sum(self.sessions.iter().map(|session| &session.batches));
        let begin = self.sessions.iter().map(|session| session.job.start_time.0).min().unwrap_or(0);
        let kind = Measure {
            name: "BATCH".to_owned(),
            oks: batches.count(),
            service: batches,
            rows: self.rows,
            retries: self.retries(),
            ..Measure::default()
        };
        let pages = |count| Change { name: "page reads".to_owned(), before: 0, after: count, gauge: false };
        let measured = Measured {
            began_unix_millis: u64::try_from(begin / 1000).unwrap_or(0),
            nanos: (self.seconds * 1e9) as u64,
            clients: self.sessions.len() as u64,
            operations: self.rows,
            retries: kind.retries,
            kinds: vec![kind],
            counters: self.page_reads.map(pages).into_iter().collect(),
            cost: self.cost.clone(),
            ..Measured::default()
        };
        let mut run = Run::new("rows", &self.target, &Plan::default(), measured);
        run.settings.clone_from(&self.settings);
        run.workload =
            vec![Pair::new("compat", self.compat.to_string()), Pair::new("in server", self.in_server.to_string())];
        (run.seed, run.share, run.price) = (self.seed, self.share, self.price);
        run.figures = harness::report::figures::figures(&run);
        run.figures.extend(self.figures());
        run
    }

    /// The figures that only row access has.
    fn figures(&self) -> Vec<Figure> {
        let mut all = Figures::default();
        all.text("rows", "access path", &self.access_path);
        all.counts("rows", [("rows that were not there", self.missing_rows())]);
        all.add("rows", "page reads a second", self.page_reads_per_second, PER_SECOND);
        for session in &self.sessions {
            let of = format!("job {}", session.job.job_id);
            for (name, cell) in history::cells(&session.job) {
                all.text(&of, name, cell.trim());
            }
            let counts = [("retries", session.repeated_batches), ("rolled back", 0), ("failed", 0)];
            all.counts(&of, counts.into_iter().chain([("updated", session.updated)]));
            all.times(&of, "a batch", &session.batches);
        }
        all.0
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.access_path);
        let mut jobs: Vec<Job> = self.sessions.iter().map(|session| session.job.clone()).collect();
        jobs.sort_by_key(|job| std::cmp::Reverse(job.job_id));
        text.push_str(&history::table(&jobs));
        let sessions = self.sessions.len();
        text.push_str(&format!(
            "\nrows a second: {:.0} in {sessions} session{}\n",
            self.rows_per_second,
            if sessions == 1 { "" } else { "s" }
        ));
        text.push_str(&match self.page_reads_per_second {
            Some(pages) => format!("page reads a second: {pages:.0}\n"),
            None => "page reads a second: this database does not count them\n".to_owned(),
        });
        if let Some(million) = self.million.text() {
            text.push_str(&format!("a million rows: {million}\n"));
        }
        for session in self.sessions.iter().filter(|session| session.batch_micros.max > 0.0) {
            let BatchTimes { mean, p50, p99, max } = session.batch_micros;
            let known = |micros: Option<f64>| micros.map_or("-".to_owned(), |micros| format!("{micros:.0} us"));
            text.push_str(&format!(
                "job {}, a batch: mean {mean:.0} us, 50 % within {}, 99 % within {}, longest {max:.0} us\n",
                session.job.job_id,
                known(p50),
                known(p99)
            ));
        }
        let missing = self.missing_rows();
        if missing > 0 {
            let why = match self.compat {
                true => "keys of ybio begin behind the number of batches",
                false => "the table has fewer than tab_rows, or it was set up with --compat",
            };
            text.push_str(&format!("{missing} rows of the ranges were not there: {why}\n"));
        }
        // A batch that fails for good ends the run, and no batch is rolled back on purpose.
        let retries = self.retries();
        text.push_str(&format!(
            "batches: {retries} retries because another session was in the way, 0 rolled back, 0 failed\n"
        ));
        if let Some(short) = self.run().short_window() {
            text.push_str(&format!("{short}\n"));
        }
        if self.compat {
            text.push_str("--compat: the ranges of ybio, which leave out the last rows of the table\n");
        }
        if self.rows == 0 {
            text.push_str("no row was accessed: set the table up first, with as many rows as tab_rows\n");
        }
        text
    }
}
