//! `larch bench ycsb`: loads a store, runs workloads on it, and prints and writes the results.

mod first;
mod phase;
pub mod rated;
#[cfg(test)]
mod tests;

use crate::args::{Action, Exporter, YcsbArgs};
use crate::ending::{Ending, Ran, say_failures};
use crate::stop::Stop;
use crate::workers::{Process, Workers};
use crate::{metrics, print, results, say, slowed, targets};
use harness::without_password;
use harness::{Failure, Opening, Prometheus, Scheme, Store, Target};
use phase::{Done, Phase, Setup, Work};
use std::path::Path;
use ycsb::{Format, Properties, Settings};

/// Runs the command.
pub fn run(args: &YcsbArgs, schemes: &[Scheme]) -> Result<Ending, Failure> {
    let stop = Stop::catch()?;
    match args.action {
        None => first::run(args, schemes, &stop),
        Some(action) => on_target(action, args, schemes, &stop),
    }
}

/// A failure of the command line's arguments.
fn usage(text: impl Into<String>) -> Failure {
    Failure::session("target", text)
}

fn on_target(action: Action, args: &YcsbArgs, schemes: &[Scheme], stop: &Stop) -> Result<Ending, Failure> {
    let text = args
        .target
        .as_deref()
        .ok_or_else(|| usage("name the store: --target larch:DIR, or see `larch bench targets`"))?;
    let target = Target::parse(text)?;
    let scheme = targets::find_key_value(schemes, &target)?;
    check_options(action, args)?;
    let phases = phases(action, args)?;
    for phase in &phases {
        phase::check(phase, args)?;
    }
    results::check(args, phases[0].settings.output.file.as_ref().map(Path::new))?;
    for warning in &phases[0].settings.warnings {
        say(&format!("larch: {warning}"));
    }
    let workers = Workers::of(&args.processes(), &target)?;
    if action == Action::All && (workers.is_some() || args.together.share.is_some()) {
        return Err(usage("several processes can do a `load` or a `run` together, but not `all`"));
    }
    let metrics = metrics::serve(args.metrics.as_deref())?;
    let mut session =
        Measuring { args, scheme, target, stop, metrics: metrics.as_ref(), store: None, done: Vec::new() };
    let ended = match workers {
        None => session.all(&phases),
        Some(workers) => session.together(&phases[0], &workers),
    };
    let closed = session.store.take().map_or(Ok(()), |store| store.close());
    let told = session.tell(action);
    let ending = ending(&session.done);
    ended.and(closed).and(told)?;
    Ok(ending)
}

/// Does one process's part of a load or a run.
pub fn measured(args: &YcsbArgs, schemes: &[Scheme], process: Process<'_>) -> Result<Ran, Failure> {
    let action = args.action.filter(|action| *action != Action::All);
    let action = action.ok_or_else(|| usage("several processes can do a `load` or a `run` together"))?;
    let target = Target::parse(args.target.as_deref().ok_or_else(|| usage("name the store: --target"))?)?;
    let scheme = targets::find_key_value(schemes, &target)?;
    check_options(action, args)?;
    let phase = phases(action, args)?.remove(0);
    phase::check_together(&phase)?;
    phase::check(&phase, args)?;
    // Only the process with the first share empties the table. It opens the table before the others do.
    let recreate = args.recreate && process.share.is_first();
    let (args, stop) = (&YcsbArgs { recreate, ..args.clone() }, process.stop);
    let mut session = Measuring { args, scheme, target, stop, metrics: None, store: None, done: Vec::new() };
    session.open(&phase, session.opening(&phase, 0))?;
    let store = session.store.as_deref().expect("it was opened");
    let done = phase::run(&phase, store, session.setup(args), process);
    let closed = session.store.take().map_or(Ok(()), |store| store.close());
    let Done { run, is_store_lost, .. } = done?;
    closed?;
    Ok(Ran { run, is_lost: is_store_lost })
}

/// Fails if options do not fit the action.
fn check_options(action: Action, args: &YcsbArgs) -> Result<(), Failure> {
    if action == Action::Run && args.recreate {
        return Err(usage("--recreate empties the table: it goes with load and all"));
    }
    let of_runs = [
        ("--time", args.time.is_some()),
        ("--operations", args.operations.is_some()),
        ("--warmup", !args.warmup.is_zero()),
    ];
    match of_runs.iter().find(|(_, is_given)| *is_given && action == Action::Load) {
        Some((name, _)) => Err(usage(format!("a load ends with its records: leave {name} out, or use run"))),
        None => Ok(()),
    }
}

/// The phases of an action, in their order.
fn phases(action: Action, args: &YcsbArgs) -> Result<Vec<Phase>, Failure> {
    let workload = |name: &str, work| -> Result<Phase, Failure> { phase(name, work, &[name], args) };
    match action {
        Action::All if !args.workload.is_empty() => Err(usage("`all` runs the workloads a to f: leave --workload out")),
        Action::All => [
            ("a", Work::Load),
            ("a", Work::Run),
            ("b", Work::Run),
            ("c", Work::Run),
            ("f", Work::Run),
            ("d", Work::Run),
            ("e", Work::Load),
            ("e", Work::Run),
        ]
        .into_iter()
        .zip(args.seed..)
        .map(|((name, work), seed)| Ok(Phase { seed, ..workload(name, work)? }))
        .collect(),
        Action::Load | Action::Run if args.workload.is_empty() && args.property.is_empty() => {
            Err(usage("name the workload: --workload a, to f, or a file of properties"))
        }
        Action::Load | Action::Run => {
            let work = if action == Action::Load { Work::Load } else { Work::Run };
            let names: Vec<&str> = args.workload.iter().map(String::as_str).collect();
            let name = names.last().map_or("properties", |name| name.rsplit('/').next().unwrap_or(name));
            Ok(vec![phase(name, work, &names, args)?])
        }
    }
}

/// Builds a phase from the workloads `names` and the command line's properties. The last value of a property wins.
fn phase(name: &str, work: Work, names: &[&str], args: &YcsbArgs) -> Result<Phase, Failure> {
    let mut properties = Properties::new();
    for name in names {
        if let Some(built_in) = ycsb::built_in(name) {
            built_in.iter().for_each(|(name, value)| properties.set(name, value));
            continue;
        }
        let bytes =
            read(Path::new(name)).map_err(|why| usage(format!("workload `{name}`: {why}; it is a to f, or a file")))?;
        properties.load(&bytes).map_err(|error| usage(format!("workload {name}: {error}")))?;
    }
    for argument in &args.property {
        properties.set_argument(argument).map_err(|error| usage(format!("-p {argument}: {error}")))?;
    }
    let text = |path: &str| -> Result<String, String> {
        String::from_utf8(read(Path::new(path))?).map_err(|_| format!("{path} is not text"))
    };
    let mut settings = Settings::new(&properties, &text).map_err(|error| usage(error.to_string()))?;
    match args.format {
        None | Some(Exporter::Table) => {}
        Some(Exporter::Text) => settings.output.format = Format::Text,
        Some(Exporter::Json) => settings.output.format = Format::Json,
        Some(Exporter::JsonArray) => settings.output.format = Format::JsonArray,
    }
    if settings.drive.transactions.is_some_and(|transactions| transactions != (work == Work::Run)) {
        settings
            .warnings
            .push(format!("property `dotransactions` has no effect: the command says that this is a {work}"));
    }
    Ok(Phase { name: name.to_owned(), work, settings, properties, seed: args.seed })
}

#[allow(clippy::disallowed_methods, reason = "a file of the user's, never simulated")]
fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// The state while phases run on a target.
struct Measuring<'a> {
    args: &'a YcsbArgs,
    scheme: &'a Scheme,
    target: Target,
    stop: &'a Stop,
    metrics: Option<&'a Prometheus>,
    store: Option<Box<dyn Store>>,
    done: Vec<Done>,
}

impl Measuring<'_> {
    fn all(&mut self, phases: &[Phase]) -> Result<(), Failure> {
        for (number, phase) in phases.iter().enumerate() {
            self.open(phase, self.opening(phase, number))?;
            let done = self.run(phase, self.args)?;
            let is_last = done.run.measured.interrupted || done.run.error.is_some();
            self.done.push(done);
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// How phase `number` opens the table: whether it may create or empty it.
    fn opening(&self, phase: &Phase, number: usize) -> Opening {
        match phase.work {
            Work::Run => Opening::Existing,
            // A later load removes only what the first load of this command inserted.
            Work::Load if number > 0 || self.args.recreate => Opening::Recreate,
            Work::Load => Opening::OrCreate,
        }
    }

    /// Has `workers` run a phase together.
    fn together(&mut self, phase: &Phase, workers: &Workers) -> Result<(), Failure> {
        phase::check_together(phase)?;
        if let Some(metrics) = self.metrics {
            metrics.begin(&phase::title(phase), &self.target.text, &[]);
        }
        let mut watch = phase::watcher(phase, &self.target, self.args, self.metrics)?;
        let ran = workers.run(&crate::workers::args_of_process(), self.stop, &mut watch)?;
        let mut done = phase::done(phase, ran);
        phase::write_logs(&mut done);
        self.done.push(done);
        Ok(())
    }

    /// Runs a phase on the open store.
    fn run(&self, phase: &Phase, args: &YcsbArgs) -> Result<Done, Failure> {
        let store = self.store.as_deref().expect("it was opened");
        let mut watch = phase::watcher(phase, &self.target, args, self.metrics)?;
        let share = args.together.own_share();
        let process = Process { share, stop: self.stop, metrics: self.metrics, begin: &mut || {}, watch: &mut watch };
        let mut done = phase::run(phase, store, self.setup(args), process)?;
        phase::write_logs(&mut done);
        Ok(done)
    }

    /// The target and the options of a phase.
    fn setup<'s>(&'s self, args: &'s YcsbArgs) -> Setup<'s> {
        Setup { target: &self.target, scheme: self.scheme, args }
    }

    /// Opens the store for a phase, unless it is open and the phase needs nothing more.
    fn open(&mut self, phase: &Phase, opening: Opening) -> Result<(), Failure> {
        if self.store.is_some() && opening == Opening::Existing {
            return Ok(());
        }
        if let Some(store) = self.store.take() {
            store.close()?;
        }
        let table = phase.settings.table();
        let store = (self.scheme.open)(&self.target, &table, opening)?;
        // A load with `insertstart` above 0 is a piece of a larger load, and may add to a table that is not empty.
        let is_piece = phase.settings.records.start > 0;
        if opening == Opening::OrCreate && !is_piece && !store.is_empty()? {
            store.close()?;
            return Err(usage(format!(
                "target `{}`: table {} is not empty; --recreate empties it first, and a load whose insertstart is above 0 adds to it",
                without_password(&self.target.text),
                table.name
            )));
        }
        self.store = Some(match self.args.slow_down {
            Some(longer) => slowed::slowed(store, longer),
            None => store,
        });
        Ok(())
    }

    /// Prints and writes the results, if there are any.
    fn tell(&self, action: Action) -> Result<(), Failure> {
        let Some(Done { output, exporter_is_set, .. }) = self.done.first() else { return Ok(()) };
        let exported = || self.done.iter().map(Done::exported).collect::<String>();
        let file = output.file.as_ref().map_or(Ok(()), |path| results::write(Path::new(path), exported().as_bytes()));
        let is_table = match self.args.format {
            _ if output.file.is_some() => true,
            None => !exporter_is_set,
            Some(format) => format == Exporter::Table,
        };
        let mut text = match is_table {
            true => self.done.iter().map(Done::table).collect::<Vec<_>>().join("\n"),
            false => exported(),
        };
        if action == Action::All {
            let lines: Vec<String> = self.done.iter().filter_map(Done::seed_line).collect();
            // The other formats are read by programs, which could not parse these lines: print them to stderr.
            match is_table {
                true => text.push_str(&format!("\n{}\n", lines.join("\n"))),
                false => say(&lines.join("\n")),
            }
        }
        let printed = print(&text);
        let written = results::write_all(self.args, &self.done.iter().map(|done| &done.run).collect::<Vec<_>>());
        printed.and(file).and(written)
    }
}

/// Prints the phases' warnings and failures, and returns how the command ends.
fn ending(done: &[Done]) -> Ending {
    for Done { run, warnings_before, .. } in done {
        for warning in run.warnings.iter().skip(*warnings_before) {
            say(&format!("larch: {}: {warning}", run.name));
        }
        if let Some(error) = &run.error {
            say(&format!("larch: {}: {error}", run.name));
        }
        say_failures(&run.measured, &format!("{}: ", run.name));
    }
    if done.iter().any(|done| done.is_store_lost) {
        Ending::Failed
    } else if done.iter().any(|done| done.run.measured.interrupted) {
        Ending::Interrupted
    } else if done.is_empty() || done.iter().any(Done::is_bad) {
        Ending::Bad
    } else {
        Ending::Good
    }
}
