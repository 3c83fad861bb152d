//! What a line of the shell asks for: words become the command line of `larch`, with the directory of the database at
//! its place. Nothing is run here.

use super::words;
use crate::args;
use crate::failure::{CommandFailure, Result};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// Commands whose first word is a directory, but not that of the database that the shell is about.
const OF_OTHER_DIRECTORIES: [&str; 3] = ["demo", "man", "shell"];

/// What is left out of the shell: a shell in itself.
const LEFT_OUT: &str = "shell";

/// The first words of statements, without `EXPLAIN`, which is a command, too.
const STATEMENTS: [&str; 7] = ["SELECT", "WITH", "VALUES", "SHOW", "DESCRIBE", "CREATE", "SET"];

const HELP: &str = "
.help COMMAND  show what a command takes
.quit          end, as ^D does

A command ends with | COMMAND, > FILE or < FILE as in the shell of the system. Quotes are '…', \"…\" and $'…' with \\t
for a tab. SQL statements end with a ; and may have many lines. ^C gives up a command, and tab completes.
";

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// An empty line or a comment.
    Nothing,
    /// The end of the shell.
    End,
    /// A text to print.
    Shown(String),
    /// The words make no command. The text says why.
    Refused(String),
    /// A process to run.
    Run {
        program: PathBuf,
        words: Vec<OsString>,
        /// What is left to the system's shell: pipes and files.
        rest: Option<String>,
        /// A statement that later statements need, if it succeeds.
        declares: Option<String>,
    },
}

/// Turns lines into what they ask for.
pub struct Lines {
    program: PathBuf,
    dir: PathBuf,
    /// The commands as the shell takes them.
    commands: clap::Command,
    /// The statements so far that declare tables and views. Every statement is a process of its own, which must know
    /// them.
    declared: String,
}

impl Lines {
    /// Lines about the database in `dir`, whose commands `program` runs.
    pub fn new(program: PathBuf, dir: &Path) -> Self {
        Self { program, dir: dir.to_owned(), commands: commands(), declared: String::new() }
    }

    /// The commands as the shell takes them, without the directory.
    pub fn commands(&self) -> &clap::Command {
        &self.commands
    }

    /// Reads a line, or a statement of several lines.
    ///
    /// # Errors
    ///
    /// Fails if quotes are not closed.
    pub fn read(&self, text: &str) -> Result<Line> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(Line::Nothing);
        }
        if is_statement(text) {
            return Ok(self.statement(text));
        }
        let found = words::split(text);
        if found.is_open {
            return Err(CommandFailure::Usage(
                "a quote is not closed; close it, or write \\' for a quote itself".to_owned(),
            ));
        }
        let words: Vec<OsString> = found.words.into_iter().map(|word| OsString::from_vec(word.bytes)).collect();
        let rest = found.rest.map(|at| text[at..].to_owned());
        let Some(first) = words.first().and_then(|first| first.to_str()) else { return Ok(self.checked(words, rest)) };
        Ok(match first {
            ".quit" | ".exit" | "quit" | "exit" => Line::End,
            ".help" | "help" if words.len() == 1 => Line::Shown(self.help()),
            ".help" | "help" if words[1..] == ["options"] => self.checked(vec!["options".into()], rest),
            ".help" | "help" => {
                let mut words = words;
                words.remove(0);
                words.push("--help".into());
                self.checked(words, rest)
            }
            first if first.starts_with('.') => {
                Line::Refused(format!("larch: {first} is not known here; .help lists commands\n"))
            }
            _ => self.checked(words, rest),
        })
    }

    /// The list of commands.
    fn help(&self) -> String {
        let shown = || self.commands.get_subcommands().filter(|command| !command.is_hide_set());
        let width = shown().map(|command| command.get_name().len()).max().unwrap_or_default();
        let mut help = String::new();
        for command in shown() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            writeln!(help, "{:width$}  {about}", command.get_name()).expect("memory takes every write");
        }
        help + HELP
    }

    /// The command of these words, if they are right.
    fn checked(&self, mut words: Vec<OsString>, rest: Option<String>) -> Line {
        if let Some(at) = place_of_directory(&self.commands, &words) {
            words.insert(at, self.dir.clone().into_os_string());
        }
        let words = args::arguments(words);
        match self.commands.clone().try_get_matches_from(&words) {
            Ok(_) => Line::Run { program: self.program.clone(), words, rest, declares: None },
            Err(error) => {
                // The usage has the names of hidden arguments, too.
                let text = error.render().ansi().to_string().replace(" <DIR>", "").replace(" <PATH>", "");
                if error.use_stderr() { Line::Refused(text) } else { Line::Shown(text) }
            }
        }
    }

    /// Notes that a line has succeeded, for the lines after it.
    pub fn succeeded(&mut self, line: Line) {
        if let Line::Run { declares: Some(text), .. } = line {
            self.declared.push_str(text.trim_end_matches(';'));
            self.declared.push_str("\n;\n");
        }
    }

    /// The process that answers a statement.
    fn statement(&self, text: &str) -> Line {
        let is_declaration = text.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("CREATE"));
        let all = format!("{}{text}", self.declared);
        let words = vec!["sql".into(), self.dir.clone().into_os_string(), all.into()];
        let declares = is_declaration.then(|| text.to_owned());
        Line::Run { program: self.program.clone(), words, rest: None, declares }
    }
}

/// Whether a text is a whole line: every line is, but a statement goes on up to a `;`.
pub fn is_whole(text: &str) -> bool {
    let text = text.trim();
    !is_statement(text) || text.ends_with(';')
}

/// Whether a text is SQL, and not a command.
pub fn is_statement(text: &str) -> bool {
    let is_first = |word: &str| STATEMENTS.iter().any(|first| word.eq_ignore_ascii_case(first));
    let mut words = text.split_whitespace();
    match words.next() {
        Some(word) if word.eq_ignore_ascii_case("EXPLAIN") => words.next().is_some_and(is_first),
        Some(word) => is_first(word),
        None => false,
    }
}

/// The commands without the directory of the database, which the shell puts in.
fn commands() -> clap::Command {
    let command = args::parser().no_binary_name(true).disable_help_subcommand(true).mut_subcommands(|command| {
        if OF_OTHER_DIRECTORIES.contains(&command.get_name()) { command } else { without_directory(command) }
    });
    command.mut_subcommand(LEFT_OUT, |command| command.hide(true))
}

/// Hides the directory, in the examples, too.
fn without_directory(command: clap::Command) -> clap::Command {
    let command = command.mut_subcommands(without_directory);
    let Some(id) = directory_of(&command).map(|arg| arg.get_id().clone()) else { return command };
    let examples = command.get_after_help().map(|help| help.to_string().replace(" db ", " ").replace("larch ", ""));
    let command = command.mut_args(|arg| if arg.get_id() == &id { arg.hide(true) } else { arg });
    match examples {
        Some(examples) => command.after_help(examples),
        None => command,
    }
}

/// The argument of a command that is the directory of a database, if it is the first.
pub fn directory_of(command: &clap::Command) -> Option<&clap::Arg> {
    let is_directory = |arg: &&clap::Arg| matches!(arg.get_id().as_str(), "dir" | "path");
    command.get_positionals().next().filter(is_directory)
}

/// Where the directory is put in between the words, or `None` if the command takes none.
fn place_of_directory(commands: &clap::Command, words: &[OsString]) -> Option<usize> {
    let mut command = commands;
    for (at, word) in words.iter().enumerate() {
        command = command.find_subcommand(word)?;
        if OF_OTHER_DIRECTORIES.contains(&command.get_name()) {
            return None;
        }
        if directory_of(command).is_some() {
            return Some(at + 1);
        }
    }
    None
}
