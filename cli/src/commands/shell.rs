//! `larch shell`: takes commands about one database from a terminal or a pipe, and runs each in a process of its own.
//!
//! Because every command is a process, ^C gives up a command and not the shell, and a read shows everything that was
//! committed before it. Between commands, the shell has neither the lock of a writer nor the lease of a follower, so
//! it never stands in the way of another process.

mod complete;
mod line;
mod words;

use crate::args::{Common, Shell};
use crate::colours;
use crate::database;
use crate::failure::{CommandFailure, Result};
use crate::interrupt;
use crate::size;
use complete::Helper;
use line::{Line, Lines};
use os::Machine;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor};
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The variable that names the file with the history. If it is empty, no history is kept.
const HISTORY: &str = "LARCH_HISTORY";
/// The history has at most this many lines.
const HISTORY_LINES: usize = 10_000;

/// Runs the command.
pub fn run(common: &Common, args: &Shell) -> ExitCode {
    let ended = open(common, args).and_then(|mut lines| {
        let breaks = Breaks::catch();
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            converse(common, args, &mut lines)
        } else {
            run_script(common, &mut lines, &breaks)
        }
    });
    ended.unwrap_or_else(|failure| failure.report())
}

/// Opens the database once, so that a wrong directory is reported before the first command.
fn open(common: &Common, args: &Shell) -> Result<Lines> {
    drop(database::open(&args.dir, common)?);
    let program = env::current_exe().map_err(|error| {
        CommandFailure::Input(format!("cannot find the program that runs commands: {error}; try again"))
    })?;
    Ok(Lines::new(program, &args.dir))
}

/// What ^C does to the shell. The system sends ^C to the shell and to its command together, so the shell decides in
/// the signal's handler: a thread that decided later could find that the command has ended.
#[derive(Debug, Default)]
struct Breaks {
    /// Whether ^C was pressed.
    is_pressed: Arc<AtomicBool>,
    /// Whether ^C ends the process at once.
    ends: Arc<AtomicBool>,
}

impl Breaks {
    /// Catches ^C from now on. If this process cannot catch ^C, it ends together with the command.
    fn catch() -> Self {
        let breaks = Self::default();
        let (is_pressed, ends) = (breaks.is_pressed.clone(), breaks.ends.clone());
        flag::register(SIGINT, is_pressed).ok();
        flag::register_conditional_shutdown(SIGINT, interrupt::EXIT_CODE.into(), ends).ok();
        breaks
    }

    /// Waits for something outside the process. ^C ends the process meanwhile.
    fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.ends.store(true, Ordering::SeqCst);
        if self.is_pressed.load(Ordering::SeqCst) {
            process::exit(interrupt::EXIT_CODE.into());
        }
        let result = wait();
        self.ends.store(false, Ordering::SeqCst);
        result
    }
}

/// Takes lines from a terminal until its end.
fn converse(common: &Common, args: &Shell, lines: &mut Lines) -> Result<ExitCode> {
    let wrong =
        |error: ReadlineError| CommandFailure::Input(format!("the terminal: {error}; try again, or pipe lines in"));
    let config = Config::builder().max_history_size(HISTORY_LINES).map_err(wrong)?;
    let color_mode = if colours::are_shown() { ColorMode::Enabled } else { ColorMode::Disabled };
    let config = config.history_ignore_space(true).completion_type(CompletionType::List).color_mode(color_mode).build();
    let mut editor: Editor<Helper, FileHistory> = Editor::with_config(config).map_err(wrong)?;
    let history = history();
    if let Some(file) = &history {
        // The file is missing until the first line is kept.
        editor.load_history(file).ok();
    }
    println!("larch {}, {}; .help lists commands, ^D ends", env!("CARGO_PKG_VERSION"), about(common, &args.dir)?);
    editor.set_helper(Some(Helper::new(&args.dir, common, lines.commands().clone())));
    let name = args.dir.file_name().unwrap_or(args.dir.as_os_str()).to_string_lossy();
    let prompt = format!("{name}> ");
    loop {
        match editor.readline(&prompt) {
            Ok(text) => {
                editor.add_history_entry(&text).map_err(wrong)?;
                if let Some(file) = &history {
                    // Without the file, the history is that of this shell alone.
                    editor.append_history(file).ok();
                }
                match lines.read(&text) {
                    Ok(Line::End) => break,
                    // A command that fails has said why.
                    Ok(line) => drop(run_line(common, lines, line, Stdio::inherit())?),
                    Err(failure) => drop(failure.report()),
                }
            }
            Err(ReadlineError::Interrupted) => {}
            // The second is a terminal that was closed.
            Err(ReadlineError::Eof | ReadlineError::Io(_)) => break,
            Err(error) => return Err(wrong(error)),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the shell says about the database when it begins.
fn about(common: &Common, dir: &Path) -> Result<String> {
    let tables = database::open(dir, common)?.tables().len();
    Ok(format!("{} with {}", dir.display(), size::of(tables as u64, "table")))
}

/// Runs the lines of standard input up to the first that fails, and returns its exit code. The commands themselves
/// have no input.
fn run_script(common: &Common, lines: &mut Lines, breaks: &Breaks) -> Result<ExitCode> {
    let mut statement = String::new();
    let failed = |number: usize, code: ExitCode| {
        eprintln!("larch: this was line {number}; the lines after it were not run");
        code
    };
    let mut input = io::stdin().lock().lines().enumerate().peekable();
    while let Some((at, text)) = breaks.wait(|| input.next()) {
        statement +=
            &text.map_err(|error| CommandFailure::Input(format!("standard input: {error}; give lines of text")))?;
        if !line::is_whole(&statement) && breaks.wait(|| input.peek().is_some()) {
            statement.push('\n');
            continue;
        }
        match lines.read(&std::mem::take(&mut statement)) {
            Ok(Line::End) => break,
            Ok(line) => match run_line(common, lines, line, Stdio::null())? {
                0 => {}
                code => return Ok(failed(at + 1, ExitCode::from(code))),
            },
            Err(failure) => return Ok(failed(at + 1, failure.report())),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Does what a line asks for, and returns the exit code. The command gets the options of the shell as variables, so it
/// takes those that it knows, and the line can change them.
fn run_line(common: &Common, lines: &mut Lines, line: Line, input: Stdio) -> Result<u8> {
    match &line {
        Line::Nothing | Line::End => Ok(0),
        Line::Shown(text) => {
            anstream::print!("{text}");
            Ok(0)
        }
        Line::Refused(text) => {
            anstream::eprint!("{text}");
            Ok(2)
        }
        Line::Run { program, words, rest, .. } => {
            let mut command = command(program, words, rest.as_deref());
            let ended = command.envs(common.given.iter().cloned()).stdin(input).status();
            let ended = ended.map_err(|error| {
                CommandFailure::Input(format!("cannot start {}: {error}; try again", command.get_program().display()))
            })?;
            if ended.success() {
                lines.succeeded(line);
            }
            let signal = || ended.signal().map_or(1, |signal| 128 + signal);
            Ok(u8::try_from(ended.code().unwrap_or_else(signal)).unwrap_or(u8::MAX))
        }
    }
}

/// The process for a command. `rest` is what stands after its words: pipes and files, which are for the system's shell.
fn command(program: &Path, words: &[OsString], rest: Option<&str>) -> Command {
    let Some(rest) = rest else {
        let mut command = Command::new(program);
        command.args(words);
        return command;
    };
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("\"$0\" \"$@\" {rest}")).arg(program).args(words);
    command
}

/// The file with the history: `LARCH_HISTORY`, or else a file in the directory that the system has for such files.
fn history() -> Option<PathBuf> {
    if let Some(file) = env::var_os(HISTORY) {
        return (!file.is_empty()).then(|| file.into());
    }
    let directory = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    let directory = state.join("larch");
    make_directory(&directory).then(|| directory.join("history"))
}

/// Makes a directory and those in which it lies, and returns whether it is there.
fn make_directory(directory: &Path) -> bool {
    let disk = Machine::real().disk;
    let missing = directory.ancestors().take_while(|parent| !disk.exists(parent).unwrap_or(true));
    let missing: Vec<&Path> = missing.collect();
    missing.iter().rev().all(|parent| disk.create_dir(parent).is_ok())
}
