//! `larch bench tpcc`: creates, loads, runs, checks and removes a TPC-C database.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "an import is timed by the machine's clock")]

mod checking;
#[cfg(test)]
mod tests;

use self::checking::Checks;
use crate::args::tpcc::{CheckArgs, FormArgs, ImportArgs, InitArgs, TpccCommand, TpccRunArgs, TpccTargetArgs};
use crate::ending::{Ended, Ending, Ran, failed_much, joined};
use crate::live::Live;
use crate::live::view::Head;
use crate::stop::{INTERRUPTED, Stop};
use crate::targets::{self, Task};
use crate::tpcc_runs::{NAME, SIMULATED, TPMC, summary};
use crate::workers::{Process, Workers};
use crate::{metrics, print, results, say};
use harness::report::text::{bytes, grouped};
use harness::report::{self, Pair, text};
use harness::{Failure, Interval, Length, Opening, Plan, Share, Target};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tpcc::check::{self, After};
use tpcc::import::{self, Progress};
use tpcc::live;
use tpcc::rules::{Mode, Rules};
use tpcc::terminal::Terminals;
use tpcc::transactions::now;
use tpcc::{Database, Drawing, Form, Setup, TpccScheme};

fn usage(text: impl Into<String>) -> Failure {
    Failure::session("target", text)
}

/// Runs the command.
pub fn run(command: &TpccCommand, schemes: &[TpccScheme]) -> Result<Ending, Failure> {
    match command {
        TpccCommand::Init(args) => init(args, schemes),
        TpccCommand::Import(args) => import(args, schemes),
        TpccCommand::Run(args) => run_terminals(args, schemes),
        TpccCommand::Check(args) => check(args, schemes),
        TpccCommand::Clean(args) => clean(args, schemes),
    }
}

/// An open database.
struct Open {
    database: Box<dyn Database>,
    /// Whether the database keeps nothing, so that each process has to create it again.
    keeps_nothing: bool,
    /// The directory of the database, if it has one.
    place: Option<PathBuf>,
}

/// Parses the target and finds its scheme.
fn find<'s>(schemes: &'s [TpccScheme], args: &TpccTargetArgs) -> Result<(Target, &'s TpccScheme), Failure> {
    let target = Target::parse(&args.target)?;
    let scheme = targets::find(schemes, |scheme| scheme.name, Task::Tpcc, &target)?;
    Ok((target, scheme))
}

fn open(schemes: &[TpccScheme], args: &TpccTargetArgs, setup: &Setup) -> Result<Open, Failure> {
    let (target, scheme) = find(schemes, args)?;
    let keeps_nothing = scheme.name == tpcc::noop::SCHEME.name;
    let place = if keeps_nothing { None } else { target.directory().ok().map(Path::to_owned) };
    Ok(Open { database: (scheme.open)(&target, setup)?, keeps_nothing, place: place.filter(|place| place.is_dir()) })
}

/// Opens a simulation of a database: the same round trips to the server, which returns constant rows.
fn open_simulated(schemes: &[TpccScheme], args: &TpccTargetArgs, setup: &Setup) -> Result<Open, Failure> {
    let (target, scheme) = find(schemes, args)?;
    let simulate = scheme.simulate.ok_or_else(|| {
        let with: Vec<&str> = schemes.iter().filter(|one| one.simulate.is_some()).map(|one| one.name).collect();
        usage(format!(
            "--simulate: `{}` has no round trips to a server; only {} can be simulated",
            target.shown(),
            with.join(", ")
        ))
    })?;
    Ok(Open { database: simulate(&target, setup)?, keeps_nothing: true, place: None })
}

/// Closes the database after work that returned `done`. A failure of the work takes precedence over one of the
/// close.
fn closed<T>(open: Open, done: Result<T, Failure>) -> Result<T, Failure> {
    let closed = open.database.close();
    let done = done?;
    closed.map(|()| done)
}

fn setup(opening: Opening) -> Setup {
    Setup { opening, connections: None }
}

/// The form of a new database: warehouses, seed and load time.
fn new_form(args: &FormArgs) -> Result<Form, Failure> {
    let warehouses = args.warehouses.ok_or_else(|| usage("--warehouses: say how many there are to be"))?;
    Ok(Form { warehouses, seed: args.seed, loaded: now() })
}

/// Creates the tables.
fn make(database: &dyn Database, args: &FormArgs) -> Result<Form, Failure> {
    let form = new_form(args)?;
    database.create(&form)?;
    Ok(form)
}

/// The directory in which an embedded database would be created; `None` if it exists already. Checking the
/// arguments before such a database is opened leaves no files behind when they are refused.
fn new_place(target: &Target, scheme: &TpccScheme) -> Option<PathBuf> {
    if scheme.name == tpcc::noop::SCHEME.name || target.place.starts_with("//") {
        return None;
    }
    let place = target.directory().ok()?;
    let is_there = std::fs::read_dir(place).map_or_else(|_| place.exists(), |mut entries| entries.next().is_some());
    (!is_there).then(|| place.to_owned())
}

/// Fails if `--warehouses` differs from the existing database.
fn check_form(form: &Form, args: &FormArgs) -> Result<(), Failure> {
    if args.warehouses.is_some_and(|warehouses| warehouses != form.warehouses) {
        let text = format!(
            "the database was made with {} warehouses: leave --warehouses out, or remove it with clean",
            form.warehouses
        );
        return Err(usage(text));
    }
    Ok(())
}

fn init(args: &InitArgs, schemes: &[TpccScheme]) -> Result<Ending, Failure> {
    let (target, scheme) = find(schemes, &args.at)?;
    if new_place(&target, scheme).is_some() {
        new_form(&args.form)?;
    }
    let open = open(schemes, &args.at, &setup(Opening::OrCreate))?;
    let made = match open.database.form() {
        Ok(Some(form)) => Err(usage(format!(
            "there is a database of {} warehouses already: remove it with clean, or import into it",
            form.warehouses
        ))),
        Ok(None) => make(&*open.database, &args.form),
        Err(failure) => Err(failure),
    };
    closed(open, made).map(|_| Ending::Good)
}

fn threads(asked: Option<u32>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |threads| threads as usize)
}

fn import(args: &ImportArgs, schemes: &[TpccScheme]) -> Result<Ending, Failure> {
    let stop = Stop::catch()?;
    let (target, scheme) = find(schemes, &args.at)?;
    if let Some(place) = new_place(&target, scheme) {
        check_room(import::bytes_of_all(&new_form(&args.form)?), &place)?;
    }
    let open = open(schemes, &args.at, &setup(Opening::OrCreate))?;
    let done = load(&open, args, &stop);
    match closed(open, done) {
        Err(failure) if failure.kind == INTERRUPTED => Ok(Ending::Interrupted),
        done => done.map(|()| Ending::Good),
    }
}

fn load(open: &Open, args: &ImportArgs, stop: &Stop) -> Result<(), Failure> {
    let database = &*open.database;
    let form = match database.form()? {
        Some(form) => {
            check_form(&form, &args.form)?;
            if let Some(place) = &open.place {
                check_room(import::bytes_left(database, &form)?, place)?;
            }
            form
        }
        None => {
            if let Some(place) = &open.place {
                check_room(import::bytes_of_all(&new_form(&args.form)?), place)?;
            }
            make(database, &args.form)?
        }
    };
    let (progress, begin) = (Progress::default(), Instant::now());
    let imported = beside_lines(
        args.quiet,
        || import::import(database, &form, threads(args.threads), stop.flag(), &progress),
        || {
            let done = progress.parts_done.load(Ordering::Relaxed);
            let all = progress.parts.load(Ordering::Relaxed);
            let made = progress.bytes.load(Ordering::Relaxed);
            let rate = made as f64 / begin.elapsed().as_secs_f64().max(1e-9);
            let rows = grouped(progress.rows.load(Ordering::Relaxed));
            format!("loading: {done} of {all} parts, {rows} rows, {} ({}/s)", bytes(made), bytes(rate as u64))
        },
    );
    imported?;
    let go_on = || match stop.is_pressed() {
        false => Ok(()),
        true => Err(Failure::session(INTERRUPTED, "interrupted: import goes on with what is missing")),
    };
    let seconds = |begin: Instant| begin.elapsed().as_secs_f64();
    let (made, took) = (progress.bytes.into_inner(), seconds(begin));
    print(&format!(
        "Loading data done in {took:.1} seconds: {} rows, {} ({}/s), {:.1} warehouses/s\n",
        grouped(progress.rows.into_inner()),
        bytes(made),
        bytes((made as f64 / took.max(1e-9)) as u64),
        f64::from(form.warehouses) / took.max(1e-9)
    ))?;
    go_on()?;
    let begin = Instant::now();
    database.settle()?;
    print(&format!("Compaction done in {:.1} seconds\n", seconds(begin)))?;
    go_on()?;
    let begin = Instant::now();
    database.make_indexes()?;
    go_on()?;
    database.settle()?;
    print(&format!("Built index in {:.1} seconds\n", seconds(begin)))
}

/// Fails if the disk of `place`, which need not exist yet, lacks room for `bytes` of rows and an eighth more: files
/// are a little larger than their rows, and the indexes are built after them.
fn check_room(bytes: u64, place: &Path) -> Result<(), Failure> {
    let advice = "make fewer warehouses, or name a directory on another disk";
    let there = place.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."));
    kit::scratch::check_room(there, bytes + bytes / 8, advice).map_err(|text| Failure::session("full_disk", text))
}

/// The delay before the first progress line, and the time between later ones.
const FIRST_LINE: Duration = Duration::from_millis(100);
const LINES: Duration = Duration::from_secs(1);

/// Runs `work`, and prints `line()` regularly until it is done.
fn beside_lines<T>(quiet: bool, work: impl FnOnce() -> T, line: impl Fn() -> String + Sync) -> T {
    if quiet {
        return work();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let printing = scope.spawn(|| {
            let mut pause = FIRST_LINE;
            loop {
                std::thread::park_timeout(pause);
                pause = LINES;
                if done.load(Ordering::Relaxed) {
                    return;
                }
                say(&line());
            }
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        printing.thread().unpark();
        worked
    })
}

fn clean(args: &TpccTargetArgs, schemes: &[TpccScheme]) -> Result<Ending, Failure> {
    let open = open(schemes, args, &setup(Opening::Existing))?;
    let cleaned = open.database.clean();
    closed(open, cleaned).map(|()| Ending::Good)
}

/// Refuses a check of a store that keeps no rows.
fn check_kept(args: &TpccTargetArgs, schemes: &[TpccScheme]) -> Result<(), Failure> {
    let (target, scheme) = find(schemes, args)?;
    match scheme.name == tpcc::noop::SCHEME.name {
        true => Err(usage(format!("`{}` keeps no rows: there is nothing to check", target.shown()))),
        false => Ok(()),
    }
}

fn check(args: &CheckArgs, schemes: &[TpccScheme]) -> Result<Ending, Failure> {
    check_kept(&args.at, schemes)?;
    let stop = Stop::catch()?;
    let open = open(schemes, &args.at, &setup(Opening::Existing))?;
    let checked = check_all(&*open.database, args, &stop);
    match closed(open, checked) {
        Err(failure) if failure.kind == INTERRUPTED => Ok(Ending::Interrupted),
        done => done,
    }
}

fn check_all(database: &dyn Database, args: &CheckArgs, stop: &Stop) -> Result<Ending, Failure> {
    let form = database.form()?.ok_or_else(not_made)?;
    match import::parts_loaded(database, &form)? {
        (0, _) => return Err(usage("nothing is imported yet: use import first")),
        (loaded, all) if loaded < all => {
            let text = format!("{loaded} of {all} parts are imported: use import, which goes on with the others");
            return Err(usage(text));
        }
        _ => {}
    }
    let (view, begin) = (database.view()?, Instant::now());
    let after = if args.after_import { After::Import } else { After::Run };
    let done = std::sync::atomic::AtomicU32::new(0);
    let checked = beside_lines(
        args.quiet,
        || {
            let progress = |warehouses| done.store(warehouses, Ordering::Relaxed);
            check::check(&*view, &form, threads(args.threads), after, stop.flag(), &progress)
        },
        || format!("checking: {} of {} warehouses", done.load(Ordering::Relaxed), form.warehouses),
    )?;
    print(&checking::shown(&checked, begin.elapsed()))?;
    Ok(if checked.findings.is_empty() { Ending::Good } else { Ending::Bad })
}

#[cold]
fn not_made() -> Failure {
    usage("there is no database of TPC-C: use import first")
}

/// How late waiting terminals may be served, so that one wake-up of a thread serves many of them.
const SLACK: Duration = Duration::from_micros(800);

fn run_terminals(args: &TpccRunArgs, schemes: &[TpccScheme]) -> Result<Ending, Failure> {
    results::check_all(args.files.named())?;
    if args.check {
        check_kept(&args.at, schemes)?;
        if args.simulate {
            return Err(usage("--simulate changes no rows: there is nothing to check, leave --check out"));
        }
    }
    let workers = Workers::of(&args.together, &Target::parse(&args.at.target)?)?;
    let stop = Stop::catch()?;
    let metrics = metrics::serve(args.metrics.as_deref())?;
    let mut has_head = args.quiet;
    let mut view: Option<Live> = None;
    let mut watch = |interval: &Interval| {
        if let Some(metrics) = &metrics {
            metrics.add(interval);
        }
        let view = view.get_or_insert_with(|| {
            // Without --warehouses, the database says how many terminals it has, and the view leaves their number out.
            let plan = plan(args, Mode::from(args.mode), args.warehouses.unwrap_or_default());
            let head = Head { known_by: Some(TPMC), ..Head::of_plan(name(args), &args.at.target, &plan) };
            Live::new(head, !args.quiet && !args.plain)
        });
        if view.add(interval) {
            return;
        }
        if !std::mem::replace(&mut has_head, true) {
            say(&live::head());
        }
        if !args.quiet {
            say(&live::line(interval));
        }
    };
    let ran = match workers {
        None => {
            let (begin, share) = (&mut || {}, args.together.own_share());
            measured(
                args,
                schemes,
                Process { share, stop: &stop, metrics: metrics.as_ref(), begin, watch: &mut watch },
            )?
        }
        Some(workers) => {
            if let Some(metrics) = &metrics {
                metrics.begin(&name(args), &args.at.target, &[]);
            }
            let mut told = crate::workers::args_of_process();
            if args.seed.is_none() {
                told.push(format!("--seed={}", new_seed()));
            }
            workers.run(&told, &stop, &mut watch)?
        }
    };
    drop(view);
    let printed = print(&format!("{}\n{}", summary(&ran.run).unwrap_or_default(), text::text(&ran.run)));
    let written = results::write_files(&args.files, &[&ran.run]);
    ran.say_what_failed();
    printed.and(written)?;
    Ok(ran.ending())
}

/// Opens the database and runs the terminals of one process.
pub fn measured(args: &TpccRunArgs, schemes: &[TpccScheme], process: Process<'_>) -> Result<Ran, Failure> {
    let connections = args.connections.map(|all| all.div_ceil(args.threads) as usize);
    let setup = Setup { opening: Opening::Existing, connections };
    let open = match args.simulate {
        true => open_simulated(schemes, &args.at, &setup)?,
        false => open(schemes, &args.at, &setup)?,
    };
    let ended = measure(&open, args, process);
    closed(open, ended)
}

/// A different seed for each run: two runs on one database must not enter the same payments.
fn new_seed() -> u64 {
    now().cast_unsigned()
}

fn name(args: &TpccRunArgs) -> String {
    let simulated = if args.simulate { SIMULATED } else { "" };
    format!("{NAME}{simulated}{}", Mode::from(args.mode).name())
}

fn plan(args: &TpccRunArgs, mode: Mode, warehouses: u32) -> Plan {
    let warmup = args.warmup.unwrap_or(Duration::from_secs(if mode.waits() { 30 } else { 2 }));
    Plan {
        clients: args.terminals.map_or(warehouses as usize * 10, |terminals| terminals as usize),
        workers: args.threads as usize,
        warmup,
        length: Length::Time(args.time),
        interval: args.interval,
        slack: if mode.waits() { SLACK } else { Duration::ZERO },
        ..Plan::default()
    }
}

fn measure(open: &Open, args: &TpccRunArgs, process: Process<'_>) -> Result<Ran, Failure> {
    let database = &*open.database;
    if open.keeps_nothing {
        let warehouses = args.warehouses.ok_or_else(|| usage("--warehouses: say how many there are to be"))?;
        database.create(&Form { warehouses, seed: 1, loaded: now() })?;
    }
    let form = database.form()?.ok_or_else(not_made)?;
    let warehouses = args.warehouses.unwrap_or(form.warehouses);
    if warehouses > form.warehouses {
        return Err(usage(format!("--warehouses {warehouses}: the database has {}", form.warehouses)));
    }
    let mode = Mode::from(args.mode);
    let rules = Rules { mode, drawing: Drawing::of(&form) };
    let seed = args.seed.unwrap_or_else(new_seed);
    let whole = plan(args, mode, warehouses);
    let share = process.share;
    let (own, plan) = share_of(share, warehouses, &whole)?;
    let terminals = Terminals { rules: &rules, warehouses: own.clone(), seed };
    let name = name(args);
    if let Some(metrics) = process.metrics {
        metrics.begin(&name, &args.at.target, &database.counters());
    }
    let Process { stop, begin, watch, .. } = process;
    let mut run = |begin: &mut dyn FnMut()| harness::run_from(database, &terminals, &plan, stop.flag(), begin, watch);
    // Only the process with the first share checks the database, and it checks all warehouses.
    let checks_here = args.check && share.is_first();
    let (ended, checks) = match checks_here {
        true => checking::beside(database, &form, stop.flag(), begin, run),
        false => (run(begin), Checks::default()),
    };
    let Ended { measured, error, is_lost } = Ended::of(ended)?;
    let mut run = report::Run::new(name, &args.at.target, &plan, measured);
    run.settings = database.settings().into_iter().map(Pair::from).collect();
    run.workload = vec![
        Pair::new("mode", mode.name()),
        Pair::new("warehouses", warehouses.to_string()),
        Pair::new("warehouses of the database", form.warehouses.to_string()),
        Pair::new("terminals", whole.clients.to_string()),
        Pair::new("seed of the database", form.seed.to_string()),
    ];
    if checks_here {
        run.settings.push(Pair::new("consistent snapshots during the run", checks.passed.to_string()));
    }
    run.seed = seed;
    run.price = args.price;
    run.warnings = mode.deviations().into_iter().map(str::to_owned).collect();
    if args.simulate {
        run.warnings.push("simulated: the server gave constant rows and changed nothing".to_owned());
    }
    run.error = joined([error.or_else(|| failed_much(&run.measured)), checks.wrong]);
    if !share.is_whole() {
        run.share = Some(share);
        let text = format!("{} to {}", own.start(), own.end());
        run.settings.push(Pair::new(format!("warehouses of share {share}"), text));
    }
    Ok(Ran { run, is_lost })
}

/// The warehouses of a share, and the plan for their terminals. A warehouse has the same number of terminals as if
/// one process ran them all.
fn share_of(share: Share, warehouses: u32, whole: &Plan) -> Result<(RangeInclusive<u32>, Plan), Failure> {
    let own = share.stretch(warehouses as usize);
    let clients = harness::share::dealt(whole.clients as u64, warehouses as usize, &own) as usize;
    if own.is_empty() || clients == 0 {
        let text = format!(
            "{warehouses} warehouses with {} terminals cannot be shared among {} processes: each needs one of its own",
            whole.clients,
            share.of()
        );
        return Err(usage(text));
    }
    Ok((own.start as u32 + 1..=own.end as u32, Plan { clients, ..whole.clone() }))
}
