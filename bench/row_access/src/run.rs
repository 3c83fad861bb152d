//! Runs one session, which accesses random key ranges for a given time.

use crate::database::{Access, Database, Inside, Seen, SeenInside, Session, Statement};
use crate::history::Job;
use crate::parameters::RunParameters;
use harness::{Clock, Failure, Harm, Times};
use hdrhistogram::Histogram;
use kit::time::Timestamp;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ycsb::Random;

#[cfg(test)]
mod tests;

/// How a session is run. Its parameters are in [`RunParameters`].
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Whether the session draws ranges and prints lines in the same way as ybio.
    pub compat: bool,
    /// The seed of the ranges.
    pub seed: u64,
    /// The number of the session. Its ranges depend on it, too.
    pub session: u64,
    /// Whether the session runs inside the database.
    pub in_server: bool,
    /// The shortest time between two printed lines. If it is zero, each batch has a line.
    pub line_every: Duration,
}

/// The result of a session.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The session's row of the history.
    pub job: Job,
    /// The times of batches.
    pub times: Times,
    /// The number of rows that were updated.
    pub updated: u64,
    /// How often a batch was retried because the database asked for it.
    pub repeated: u64,
    /// The number of keys in the drawn ranges that had no row.
    pub missing: u64,
}

impl Default for Accessed {
    fn default() -> Self {
        Self::new()
    }
}

/// The most attempts at a batch that conflicts with other transactions.
const MOST_REPEATS: u64 = 1000;

/// Accesses rows until the time is over or `stop` is set. It accesses at least one batch. `say` receives the lines
/// that ybio prints.
///
/// # Errors
///
/// Returns the errors of the database. If `parameters` ask to count the rows first, also returns an error if the
/// table has fewer rows than `tab_rows`. After an error, the row of the history has no end time.
pub fn run(
    database: &dyn Database,
    parameters: &RunParameters,
    manner: &Manner,
    stop: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<Ran, Failure> {
    run_watched(database, parameters, manner, stop, say, &|_| {})
}

/// A batch that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchDone {
    /// Whether its rows were updated.
    pub is_update: bool,
    /// The number of its rows.
    pub rows: u64,
    /// How long the batch took, in nanoseconds, including the time to draw its range.
    pub nanos: u64,
    /// Whether it was the last batch.
    pub is_last: bool,
}

/// Does the same as [`run`], and calls `each` after every batch. Sessions inside the database do not call `each`.
///
/// # Errors
///
/// Returns the errors of [`run`].
pub fn run_watched(
    database: &dyn Database,
    parameters: &RunParameters,
    manner: &Manner,
    stop: &AtomicBool,
    say: &dyn Fn(&str),
    each: &dyn Fn(BatchDone),
) -> Result<Ran, Failure> {
    let mut job = begun(database, parameters)?;
    let access = Access { table: parameters.table(), prepared: parameters.prepared, index_only: parameters.index_only };
    if manner.in_server {
        return run_inside(database, parameters, &access, job, manner.compat);
    }
    let mut session = database.session(&access)?;
    let mut ran = Accessed::new();
    let (mut line_due, mut updated, mut before) = (0, 0, 0);
    ran.access_for(&mut *session, parameters, manner, stop, &mut |ran, seen, range, now, is_last| {
        each(BatchDone { is_update: ran.updated > updated, rows: seen.rows, nanos: now - before, is_last });
        (updated, before) = (ran.updated, now);
        if now >= line_due || is_last {
            say(&ran.line(&job, seen, range, now, manner.compat));
            line_due = now.saturating_add(nanos(manner.line_every));
        }
    })?;
    drop(session);
    job.end_time = Some(Timestamp::now());
    job.num_batches = Some(ran.batches as i64);
    job.num_rows = Some(ran.rows as i64);
    job.max_scratch = ran.max;
    database.end_job(&job)?;
    Ok(Ran { job, times: ran.times(), updated: ran.updated, repeated: ran.repeated, missing: ran.missing })
}

/// Lets the database run the session. The times of its batches are then not known.
fn run_inside(
    database: &dyn Database,
    parameters: &RunParameters,
    access: &Access,
    job: Job,
    compat: bool,
) -> Result<Ran, Failure> {
    let batch_rows = parameters.batch_rows();
    let inside = Inside {
        access,
        tab_rows: parameters.tab_rows,
        batch_rows,
        pct_update: parameters.pct_update,
        time: parameters.run_duration,
        compat,
    };
    let Some(SeenInside { batches, updated, seen }) = database.run_inside(&inside)? else {
        return Err(Failure::session("target", "--in-server: this database has no procedures"));
    };
    let job = Job {
        end_time: Some(Timestamp::now()),
        num_batches: Some(batches as i64),
        num_rows: Some(seen.rows as i64),
        max_scratch: seen.max,
        ..job
    };
    database.end_job(&job)?;
    let missing = (batches * batch_rows).saturating_sub(seen.rows);
    Ok(Ran { job, times: Times::default(), updated, repeated: 0, missing })
}

/// Writes the session's row of the history, and returns this row.
fn begun(database: &dyn Database, parameters: &RunParameters) -> Result<Job, Failure> {
    let table_name = parameters.table();
    let counted = parameters.initial_count.then(|| database.count(&table_name)).transpose()?;
    if let Some(counted) = counted.filter(|counted| counted.rows < parameters.tab_rows) {
        let (rows, asked) = (counted.rows, parameters.tab_rows);
        let text = format!("table {table_name} has {rows} rows and not {asked}: give tab_rows, or set it up with more");
        return Err(Failure::session("too_few_rows", text));
    }
    let mut job = Job {
        job_id: 0,
        start_time: Timestamp::now(),
        end_time: None,
        num_batches: None,
        num_rows: None,
        pct_update: parameters.pct_update.into(),
        max_scratch: None,
        prepared: parameters.prepared,
        index_only: parameters.index_only,
        tab_rows: parameters.tab_rows as i64,
        batch_size: parameters.batch_size as i64,
        table_name,
        table_rows: counted.map(|counted| counted.rows as i64),
        table_scratch: counted.and_then(|counted| counted.scratch),
        comments: parameters.comments.clone(),
    };
    job.job_id = database.begin_job(&job)?;
    Ok(job)
}

/// A histogram from one nanosecond to an hour, with three digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("an hour is more than a nanosecond")
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

/// Draws ranges of keys.
pub struct Ranges {
    random: Random,
    batch: u64,
    rows: u64,
    compat: bool,
}

impl Ranges {
    /// The ranges of this session.
    pub fn new(parameters: &RunParameters, manner: &Manner) -> Self {
        let random = Random::of_client(manner.seed, manner.session);
        Self { random, batch: parameters.batch_rows(), rows: parameters.tab_rows, compat: manner.compat }
    }

    /// The first and the last key of a range. In ybio, the greatest first key is two less than it could be, so the
    /// last rows are never read.
    pub fn draw(&mut self) -> (i64, i64) {
        let starts = self.rows - self.batch;
        let first = match self.compat {
            false => {
                let random = u128::from(self.random.long().cast_unsigned());
                ((random * u128::from(starts + 1)) >> 64) as i64 + 1
            }
            true => (self.random.double() * (starts as f64 - 1.0) + 1.0).trunc() as i64,
        };
        (first, first + self.batch as i64 - 1)
    }
}

/// What a session has done so far.
#[derive(Clone, Debug)]
pub struct Accessed {
    /// The number of batches.
    pub batches: u64,
    /// The number of rows that were read or updated.
    pub rows: u64,
    /// The number of rows that were updated.
    pub updated: u64,
    /// How often a batch was retried because the database asked for it.
    pub repeated: u64,
    /// The number of keys in the drawn ranges that had no row.
    pub missing: u64,
    /// The greatest [`Seen::max`] of all batches.
    pub max: Option<i64>,
    /// The time from the beginning of the first batch to the end of the last batch.
    pub nanos: u64,
    times: Histogram<u64>,
}

/// Called after each batch with what the session has done so far, what the batch has seen, its range, the
/// nanoseconds since the session began, and whether it was the last batch.
pub type EachBatch<'e> = &'e mut dyn FnMut(&Accessed, Seen, (i64, i64), u64, bool);

impl Accessed {
    /// The state of a session that has done nothing yet.
    pub fn new() -> Self {
        Self { batches: 0, rows: 0, updated: 0, repeated: 0, missing: 0, max: None, nanos: 0, times: histogram() }
    }

    /// The times of batches.
    pub fn times(&self) -> Times {
        Times::from_hdr(&self.times)
    }

    /// Rows per second.
    pub fn rows_per_second(&self) -> f64 {
        self.rows as f64 * 1e9 / self.nanos.max(1) as f64
    }

    /// Accesses ranges until the time of `parameters` is over or `stop` is set. It accesses at least one range.
    ///
    /// # Errors
    ///
    /// Returns the errors of the session.
    pub fn access_for(
        &mut self,
        session: &mut dyn Session,
        parameters: &RunParameters,
        manner: &Manner,
        stop: &AtomicBool,
        each: EachBatch<'_>,
    ) -> Result<(), Failure> {
        let mut ranges = Ranges::new(parameters, manner);
        let (clock, end) = (Clock::start(), nanos(parameters.run_duration));
        loop {
            let (first, last) = ranges.draw();
            let statement = self.next_statement(parameters);
            let begin = clock.nanos();
            let seen = self.access(session, statement, (first, last))?;
            let now = clock.nanos();
            self.times.saturating_record(now - begin);
            self.add(statement, seen, (last - first + 1) as u64);
            self.nanos = now;
            let is_last = now >= end || stop.load(Ordering::Relaxed);
            each(self, seen, (first, last), now, is_last);
            if is_last {
                return Ok(());
            }
        }
    }

    /// The statement for the next batch: an update if the share of updated rows is too small. Half of the next batch
    /// already counts as updated, so that the percentage comes out right over many batches without random numbers.
    fn next_statement(&self, parameters: &RunParameters) -> Statement {
        let batch = parameters.batch_rows() as f64;
        let share = 100.0 * (self.updated as f64 + 0.5 * batch) / (self.rows as f64 + batch);
        match parameters.pct_update {
            100 => Statement::Update,
            percent if share < f64::from(percent) => Statement::Update,
            _ => Statement::Read,
        }
    }

    fn access(
        &mut self,
        session: &mut dyn Session,
        statement: Statement,
        (first, last): (i64, i64),
    ) -> Result<Seen, Failure> {
        for _ in 0..MOST_REPEATS {
            match session.access(statement, first, last) {
                Err(failure) if failure.harm == Harm::Again => self.repeated += 1,
                done => return done,
            }
        }
        let text = format!("a batch met another transaction {MOST_REPEATS} times: run fewer sessions on one table");
        Err(Failure::session("conflict", text))
    }

    fn add(&mut self, statement: Statement, seen: Seen, asked: u64) {
        self.batches += 1;
        self.rows += seen.rows;
        self.missing += asked.saturating_sub(seen.rows);
        self.max = self.max.max(seen.max);
        if statement == Statement::Update {
            self.updated += seen.rows;
        }
    }

    fn line(&self, job: &Job, seen: Seen, (first, last): (i64, i64), now: u64, compat: bool) -> String {
        let rate = self.rows as f64 * 1e9 / now.max(1) as f64;
        let percent = 100.0 * self.updated as f64 / self.rows.max(1) as f64;
        let (from, to) = if compat { (last, first) } else { (first, last) };
        format!(
            "NOTICE:  {rate:>8.0} rows/s on {}, job: {:>6} batch#: {:>5}, total: {:>12} rows read, {percent:>6.1} % updated, \
             last: {} rows between {from:>7} and {to}",
            job.table_name, job.job_id, self.batches, self.rows, seen.rows
        )
    }
}
