//! Completes words of the shell: names of commands, options and their values, tables, indexes, keys and files.

use super::line;
use super::words::{self, quote};
use crate::args::{self, Common, KeyTypes};
use crate::colours::{self, HEADING, HINT};
use crate::database;
use larch::{Database, Table};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use std::borrow::Cow;
use std::ops::Bound;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// At most this many keys are offered.
const MOST_KEYS: usize = 100;
/// Keys are looked for among at most this many rows: keys with the same first letters lie together, except numbers.
const ROWS_LOOKED_AT: u64 = 1_000;

/// What the line editor asks about a line.
pub struct Helper {
    dir: PathBuf,
    common: Common,
    commands: clap::Command,
    files: FilenameCompleter,
}

/// What can stand at the cursor.
#[derive(Debug, PartialEq, Eq)]
enum Slot {
    /// The name of a command, or of a subcommand of the command with these names.
    Command(Vec<String>),
    /// An option of the command with these names.
    Option(Vec<String>),
    /// One of these texts.
    OneOf(Vec<String>),
    Table,
    /// An index of this table.
    Index(String),
    /// A key of this table.
    Key(String),
    File,
    /// Something that is not known here.
    Other,
}

impl Helper {
    /// Completes words about the database in `dir`.
    pub fn new(dir: &Path, common: &Common, mut commands: clap::Command) -> Self {
        commands.build();
        Self { dir: dir.to_owned(), common: common.clone(), commands, files: FilenameCompleter::new() }
    }

    /// The texts that can stand at the end of `line`, and the offset at which they begin. `None` stands for names of
    /// files.
    fn complete_end(&self, line: &str) -> Option<(usize, Vec<Vec<u8>>)> {
        if line::is_statement(line) {
            let is_of_name = |character: char| character.is_alphanumeric() || character == '_';
            let start = line.trim_end_matches(is_of_name).len();
            return Some((start, starting_with(&line.as_bytes()[start..], self.tables())));
        }
        let found = words::split(line);
        if let Some(rest) = found.rest {
            return if line[rest..].contains('|') { Some((line.len(), Vec::new())) } else { None };
        }
        let (before, start, typed) = match found.words.split_last() {
            Some((last, before)) if last.end == line.len() => (before, last.start, last.bytes.clone()),
            _ => (&found.words[..], line.len(), Vec::new()),
        };
        let before: Vec<String> = before.iter().map(|word| String::from_utf8_lossy(&word.bytes).into_owned()).collect();
        let all = match slot(&self.commands, &before, typed.starts_with(b"-")) {
            Slot::Command(path) => self.commands_below(&path),
            Slot::Option(path) => self.options_of(&path),
            Slot::OneOf(values) => values,
            Slot::Table => self.tables(),
            Slot::Index(table) => self.indexes(&table),
            Slot::Key(table) => return Some((start, self.keys(&table, &typed).unwrap_or_default())),
            Slot::File => return None,
            Slot::Other => Vec::new(),
        };
        Some((start, starting_with(&typed, all)))
    }

    fn commands_below(&self, path: &[String]) -> Vec<String> {
        let Some(command) = find(&self.commands, path) else { return Vec::new() };
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let own = [".help", ".quit"].iter().filter(|_| path.is_empty());
        shown.map(|command| command.get_name()).chain(own.copied()).map(str::to_owned).collect()
    }

    fn options_of(&self, path: &[String]) -> Vec<String> {
        let Some(command) = find(&self.commands, path) else { return Vec::new() };
        let shown = command.get_arguments().filter(|option| !option.is_hide_set());
        let common = args::common_options_of(&path.join(" ")).iter().map(|id| format!("--{}", id.replace('_', "-")));
        shown.filter_map(clap::Arg::get_long).map(|long| format!("--{long}")).chain(common).collect()
    }

    /// The database as it is now. If it cannot be opened, nothing is completed; the command itself will say why.
    fn database(&self) -> Option<Database> {
        database::open(&self.dir, &self.common).ok()
    }

    fn tables(&self) -> Vec<String> {
        self.database().map(|database| database.tables()).unwrap_or_default()
    }

    fn table(&self, name: &str) -> Option<(Database, Table)> {
        let database = self.database()?;
        let table = database.existing_table(name).ok()??;
        Some((database, table))
    }

    fn indexes(&self, table: &str) -> Vec<String> {
        self.table(table).and_then(|(_database, table)| table.indexes().ok()).unwrap_or_default()
    }

    /// The keys that begin with `typed`.
    fn keys(&self, table: &str, typed: &[u8]) -> Option<Vec<Vec<u8>>> {
        let (_database, table) = self.table(table)?;
        let layout = database::layout(&table, &KeyTypes::default()).ok()?;
        // The beginning of a tuple is no bound. Then the first rows are looked at.
        let from = layout.bound_from_text(typed).unwrap_or_default();
        let range = (Bound::Included(from), Bound::<Vec<u8>>::Unbounded);
        let mut rows = database::keys(&table).ok()?.range(range).limit(ROWS_LOOKED_AT);
        let (mut texts, mut found) = (Vec::new(), Vec::new());
        while found.len() < MOST_KEYS {
            let Ok(Some(row)) = rows.next_row() else { break };
            let mut text = Vec::new();
            layout.key_text(row.key(), &mut texts, &mut text);
            if text.starts_with(typed) {
                found.push(text);
            }
        }
        Some(found)
    }
}

/// The command with these names.
fn find<'c>(commands: &'c clap::Command, path: &[String]) -> Option<&'c clap::Command> {
    path.iter().try_fold(commands, |command, name| command.find_subcommand(name))
}

fn starting_with(typed: &[u8], all: Vec<String>) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> =
        all.into_iter().map(String::into_bytes).filter(|text| text.starts_with(typed)).collect();
    all.sort();
    all
}

/// What can stand after the words `before`. `is_option` says that the word at the cursor begins with a minus sign.
fn slot(commands: &clap::Command, before: &[String], is_option: bool) -> Slot {
    let (mut command, mut path, mut place) = (commands, Vec::new(), 0);
    let (mut awaited, mut table) = (None, String::new());
    let arguments = |command: &clap::Command| {
        let directory = line::directory_of(command).map(|arg| arg.get_id().clone());
        command.get_positionals().filter(|arg| Some(arg.get_id()) != directory.as_ref()).cloned().collect::<Vec<_>>()
    };
    for word in before {
        if awaited.take().is_some() {
            continue;
        }
        if let Some(long) = word.strip_prefix("--") {
            let option = command.get_arguments().find(|option| option.get_long() == Some(long));
            awaited = option.filter(|option| option.get_action().takes_values());
        } else if let Some(argument) = arguments(command).get(place) {
            if argument.get_id() == "table" {
                table.clone_from(word);
            }
            place += 1;
        } else if let Some(below) = command.find_subcommand(word) {
            (command, place) = (below, 0);
            path.push(word.clone());
        } else {
            return Slot::Other;
        }
    }
    if let Some(option) = awaited {
        return of_argument(option, table);
    }
    if is_option {
        return Slot::Option(path);
    }
    match arguments(command).get(place) {
        Some(argument) => of_argument(argument, table),
        None if command.has_subcommands() => Slot::Command(path),
        None => Slot::Other,
    }
}

/// What an argument or the value of an option can be.
fn of_argument(argument: &clap::Arg, table: String) -> Slot {
    let values = argument.get_possible_values();
    match argument.get_id().as_str() {
        _ if !values.is_empty() => Slot::OneOf(values.iter().map(|value| value.get_name().to_owned()).collect()),
        "table" => Slot::Table,
        "file" | "files" | "dest" | "out" | "dir" => Slot::File,
        "from" if argument.is_positional() => Slot::File,
        "key" | "from" | "to" | "prefix" if !table.is_empty() => Slot::Key(table),
        "by" | "name" if !table.is_empty() => Slot::Index(table),
        _ => Slot::Other,
    }
}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        context: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Some((start, found)) = self.complete_end(&line[..pos]) else {
            return self.files.complete(line, pos, context);
        };
        // The only candidate is the whole word, so the next word follows.
        let end = if found.len() == 1 { " " } else { "" };
        let pair = |text: Vec<u8>| Pair {
            display: String::from_utf8_lossy(&text).into_owned(),
            replacement: quote(&text) + end,
        };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Validator for Helper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if line::is_whole(context.input()) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Helper {
    type Hint = String;

    /// The rest of an earlier line. Without colours it would look like typed text.
    fn hint(&self, line: &str, pos: usize, context: &rustyline::Context<'_>) -> Option<String> {
        if colours::are_shown() { HistoryHinter::new().hint(line, pos, context) } else { None }
    }
}

/// The editor calls this only if output has colours.
impl Highlighter for Helper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        Cow::Owned(format!("{HEADING}{prompt}{HEADING:#}"))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("{HINT}{hint}{HINT:#}"))
    }
}

impl rustyline::Helper for Helper {}
