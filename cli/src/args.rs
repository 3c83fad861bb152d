//! The command line: every command and option, with its help.

use crate::colours::{self, ColourArg};
use crate::compressed;
use crate::expiring::{self, ExpireBy};
use crate::failure::{CommandFailure, Result};
use crate::places;
use crate::schema::groups::GroupSpec;
use crate::schema::{Format, IndexColumn, KeySpec};
use crate::settings;
use crate::size;
use crate::stored::Stored;
use ::rows::Declaration;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgGroup, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use larch::options::{Expiry, FilterKind, Filters, PageIndexKind, Release};
use larch::{Budget, Compression, Database, Durability, TableOptions};
use os::Machine;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Headings of the help.
const COMMON: &str = "Common options";
const NEW_TABLE: &str = "Options of a new table";

const EXAMPLES: &str = "\
Examples:
  larch import db people people.csv --key id:int
  larch get db people 7
  larch scan db people --from 7 --limit 10 --format jsonl
  larch stats db

`larch help COMMAND` explains a command, and `larch help options` the options that many commands take.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  larch import db people people.csv --key id:int
  larch import db trips trips.tsv --header --key city,day
  larch import db staff people.csv --key id:int --groups 'hot:name,age;cold:*'
  larch import db letters events.jsonl.gz --key id
  zcat events.jsonl.gz | larch import db events - --format jsonl --key id";

const BUILD_EXAMPLES: &str = "\
Examples:
  larch build-files monday.csv --key id:int --out monday
  larch build-files monday.csv tuesday.csv --like db people --out shard
  larch ingest db people monday shard";

const INGEST_EXAMPLES: &str = "\
Examples:
  larch ingest db people monday tuesday
  larch ingest db people /mnt/disk/shard-* --verify --move";

const KEEP_EXAMPLES: &str = "\
Examples:
  larch keep db before-the-migration
  larch get db people 7 --at before-the-migration
  larch scan db people --at before-the-migration --format jsonl
  larch forget db before-the-migration";

const RETAIN_EXAMPLES: &str = "\
Examples:
  larch retain db --time 7d
  larch retain db
  larch retain db --table orders --everything
  larch history db people 7";

const CHANGES_EXAMPLES: &str = "\
Examples:
  larch changes db --format jsonl
  larch changes db --table notes --follow";

const SUBSCRIBE_EXAMPLES: &str = "\
Examples:
  larch subscribe db mail --age 7d --bytes 10GiB
  larch changes db --subscription mail --format jsonl
  larch subscriptions db
  larch unsubscribe db mail";

const DIFF_EXAMPLES: &str = "\
Examples:
  larch diff db people before-the-migration
  larch diff db people before-the-migration --from 1 --to 9 --json
  larch checkpoint db copy --at before-the-migration && larch diff copy people --with db";

const REVERT_EXAMPLES: &str = "\
Examples:
  larch revert db people before-the-migration --from 1 --to 9
  larch revert db people before-the-migration";

const REPLICATE_EXAMPLES: &str = "\
Examples:
  larch replicate db copy
  larch replicate db copy --json";

const GET_EXAMPLES: &str = "\
Examples:
  larch get db people 7 --json
  larch get db trips $'Bonn\\t2024-05-01'
  larch get db orders '(17, \"Bonn\")'";

const PUT_EXAMPLES: &str = "\
Examples:
  larch put db notes milk 'two litres'
  larch put db people 7 $'Ada\\t36'
  larch put db events e7 '{\"n\": 1}'";

const MERGE_EXAMPLES: &str = "\
Examples:
  larch merge db visits /home --add 1
  larch merge db notes milk --append ', and butter'
  larch merge db profiles ada --json-patch '{\"age\": 37, \"town\": null}'";

const LOAD_EXAMPLES: &str = "\
Examples:
  printf 'milk\\ttwo litres\\n' | larch load db notes
  tail -f events.jsonl | larch load db events --batch 100 > safe
  larch scan db notes --format jsonl | larch load copy notes --format jsonl
  larch scan db notes --prefix old --keys | larch load db notes --delete";

const SCAN_EXAMPLES: &str = "\
Examples:
  larch scan db people --from 7 --to 20
  larch scan db trips --prefix Bo --reverse --limit 10
  larch scan db orders --prefix '(17, \"Bo\"..)' --key-types 'u32, string'
  larch scan db people --groups hot
  larch scan db people --limit 1000 --out first.csv.gz
  larch scan db people --format jsonl | jq .name";

const EXPORT_EXAMPLES: &str = "\
Examples:
  larch export db people all.csv
  larch export db people some.jsonl.gz --from 7 --to 2000
  larch export db --all files --compress zst";

const COUNT_EXAMPLES: &str = "\
Examples:
  larch count db people
  larch count db people --from 7 --to 2000 --exact
  larch count db trips --prefix Bo --exact --json";

const SQL_EXAMPLES: &str = "\
Examples:
  larch sql db 'SELECT count(*) FROM people'
  larch sql db 'SELECT city, avg(age) FROM people WHERE id BETWEEN 7 AND 2000 GROUP BY city' --format csv
  larch sql db --file tables.sql 'SELECT name FROM orders WHERE warehouse = 17 LIMIT 10'";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  larch explain db people get 7
  larch explain db people scan --from 7 --limit 10
  larch explain db people scan --reverse --limit 10 --groups hot --json";

const STATS_EXAMPLES: &str = "\
Examples:
  larch stats db
  larch stats db people --from 7 --to 2000 --exact
  larch stats db people --buckets 20";

const SPLIT_EXAMPLES: &str = "\
Examples:
  larch split db people --parts 8
  larch split db people --parts 8 --json | jq -r '.parts[].to'";

const DELETE_RANGE_EXAMPLES: &str = "\
Examples:
  larch delete-range db people --from 7 --to 20
  larch delete-range db trips --prefix Bonn";

const SPLIT_OFF_EXAMPLES: &str = "\
Examples:
  larch split db people --parts 2
  larch split-off db people 500 people2";

const REPAIR_EXAMPLES: &str = "\
Examples:
  larch repair db saved && mv db damaged && mv saved db
  larch repair db saved --json | jq .lost";

const CHECKPOINT_EXAMPLES: &str = "\
Examples:
  larch checkpoint db copy && larch scan copy people";

const BRANCH_EXAMPLES: &str = "\
Examples:
  larch branch s3://bucket/production s3://bucket/trial
  larch branches s3://bucket/production
  larch drop-database s3://bucket/trial";

const BACKUP_EXAMPLES: &str = "\
Examples:
  larch backup db /mnt/disk/backups --keep 30
  larch backups /mnt/disk/backups
  larch verify-backup /mnt/disk/backups
  larch restore /mnt/disk/backups db2 --backup 7";

const NTH_EXAMPLES: &str = "\
Examples:
  larch nth db people 1000
  larch nth db trips 0 --prefix Bonn --format jsonl";

const SAMPLE_EXAMPLES: &str = "\
Examples:
  larch sample db people 10
  larch sample db people 1000 --from 7 --seed 1 --format jsonl";

const WARM_EXAMPLES: &str = "\
Examples:
  larch warm db people --cache 256MiB
  larch warm db trips --prefix Bonn";

const INDEX_EXAMPLES: &str = "\
Examples:
  larch index create db people by_city 'city, age:int desc'
  larch index create db people by_email email --unique
  larch index create db events by_street 'value.json(\"$.address.street\") string'
  larch scan db people --by by_city --prefix '(\"Bonn\")'
  larch index check db people
  larch index drop db people by_city";

const CREATE_INDEX_EXAMPLES: &str = "\
Examples:
  larch index create db people by_city city
  larch index create db people by_age 'age:int desc, city'
  larch index create db people by_email email --unique
  larch index create db events by_street 'value.json(\"$.address.street\") string'";

const CREATE_INDEX_HELP: &str = "\
Columns:
  columns:      column { ',' column }                        city, age:int desc
  column:       ( name | number from 1 ) [ ':int' | ':num' ] [ 'desc' ]

  In JSON lines, a name is that of a member of the object. :int orders a column as whole numbers of 64 bits, :num as
  decimal numbers, and every other column is a text. A text that begins with key, value or part is a declaration; name
  such a column with --columns.

Declarations, for raw tables and for what lies deeper in JSON lines:
  declaration:  field { ',' field }
  field:        source [ type ] [ 'required' | 'lenient' ]
  source:       ( 'key' | 'value' | 'part(' group ')' ) [ place ]
  place:        '[' [ start ] '..' [ end ] ']' [ reading ] | reading
                | '.split(' separator ')[' number ']'          value.split(',')[2] u32
                | '.json(' path ')'                            value.json(\"$.a.b[0]\") string
                | '.tuple(' types ')[' number ']'              key.tuple(u32, string)[1]
  reading:      '.le' | '.be' | '.text'                        value[0..4].le u32
  type:         [ kind ] [ '?' ] [ 'desc' ]
  kind:         bool, u8 to u128, i8 to i128, f32, f64, string, bytes, bytes[N]

  Places and numbers count from 0. [*] in place of a number makes a key for each piece or element. A row that lacks a
  field is left out; with ? the field is none, and with required the write fails. docs/format/extractor.md has all
  of it.

Examples:
  larch index create db people by_city city
  larch index create db people by_age 'age:int desc, city'
  larch index create db people by_email email --unique
  larch index create db events by_street 'value.json(\"$.address.street\") string'";

const FOLLOW_EXAMPLES: &str = "\
Examples:
  larch follow db
  larch follow db --json --lines 10
  larch get db people ada --follow";

const COMPACTION_WORKER_EXAMPLES: &str = "\
Examples:
  larch compaction-worker db
  larch load db people --compaction-workers < rows.tsv
  larch compaction-worker db --json --cache 16MiB";

const PLAN_EXAMPLES: &str = "\
Examples:
  larch plan --rows 1e9 --row-bytes 120
  larch plan --rows 1e11 --row-bytes 120 --key-bytes 20 --cache 1GiB
  larch plan --rows 64000000 --row-bytes 1KiB --key-bytes 64 --separator-bytes 40 --json";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  larch completions bash > larch.bash && source larch.bash
  larch completions zsh > _larch";

const MAN_EXAMPLES: &str = "\
Examples:
  mkdir man1 && larch man man1";

const SHELL_EXAMPLES: &str = "\
Examples:
  larch shell db
  larch db
  echo 'scan people --limit 3' | larch shell db";

const OPTIONS_EXAMPLES: &str = "\
Examples:
  larch help options
  LARCH_CACHE=256MiB larch options";

/// The command that a directory in place of a command stands for.
const SHELL: &str = "shell";

/// The command that describes the common options.
const OPTIONS: &str = "options";

/// The option that says when output has colours.
const COLOUR: &str = "color";

const CREATE_TABLE_EXAMPLES: &str = "\
Examples:
  larch create-table db notes
  larch create-table db letters --page 4KiB --index both
  larch create-table db orders --key-types 'u32, string desc, u64?'";

const ALTER_EXAMPLES: &str = "\
Examples:
  larch alter db people --compression lz4
  larch alter db people --index flat --page 32KiB && larch compact db people
  larch alter db people --filters 20,none
  larch alter db orders --key-types 'u32, string desc, u64?'";

/// Import, read, write, inspect and check a Larch database.
///
/// Exit codes: 0 done; 1 no such row, table or backup, or `check` or `verify-backup` found damage; 2 wrong arguments; 3
/// something failed; 4 `repair` could not read everything; 130 given up by ^C.
#[derive(Debug, Parser)]
#[command(name = "larch", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the command line of this process, with the settings of its variables and its file. If the command line is
    /// wrong, the process ends.
    ///
    /// # Errors
    ///
    /// Fails if a variable or the file has a wrong value.
    pub fn of_process() -> Result<Self> {
        let mut words = arguments(std::env::args_os());
        colours::choose(colour_of(&words));
        if words.get(1).is_some_and(|word| word == "help") && words.get(2).is_some_and(|word| word == OPTIONS) {
            words.remove(1);
        }
        let matches = parser().try_get_matches_from(&words).or_else(|error| {
            let Some(at) = directory_for_a_shell(&error, &words) else { return Err(error) };
            words.insert(at, SHELL.into());
            parser().try_get_matches_from(&words)
        });
        let matches = matches.unwrap_or_else(|error| error.exit());
        let (mut names, mut at) = (Vec::new(), &matches);
        while let Some((name, below)) = at.subcommand() {
            names.push(name);
            at = below;
        }
        let name = names.join(" ");
        let is_given = |option: &str| matches.value_source(option) == Some(ValueSource::CommandLine);
        // `bench rows` has an option `--compat` of its own.
        #[cfg(feature = "bench")]
        let is_ybio =
            Self::from_arg_matches(&matches).is_ok_and(|cli| cli.common.compat.as_deref() == Some(suite::args::YBIO));
        #[cfg(not(feature = "bench"))]
        let is_ybio = false;
        let refused = COMMON_OPTIONS.iter().filter(|option| !common_options_of(&name).contains(option));
        let refused = refused.filter(|option| !(**option == "follow" && FOLLOWING.contains(&&name[..])));
        if let Some(option) = refused.filter(|option| is_given(option)).find(|option| **option != "compat" || !is_ybio)
        {
            parser().error(ErrorKind::ArgumentConflict, refusal(&name, option)).exit();
        }
        if names.first().is_some_and(|first| WITHOUT_SETTINGS.contains(first)) {
            return Ok(Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()));
        }
        let mut more = Vec::new();
        let (mut of_tables, settable) = (Vec::new(), settable());
        for setting in settings::read(&settable)? {
            let option = settable.iter().find(|option| option.get_long() == Some(&setting.option));
            let option = option.expect("only these options are read");
            let id = option.get_id().as_str();
            if !option.is_global_set() {
                of_tables.extend(setting.word(option)?.map(|word| (setting, word)));
                continue;
            }
            let is_taken = id == COLOUR || common_options_of(&name).contains(&id);
            // `--follow` on the command line counts more than a setting that it contradicts.
            let is_contradicted = id == "read_only" && is_given("follow");
            if is_taken && !is_given(id) && !is_contradicted {
                more.extend(setting.word(option)?);
            }
        }
        words.splice(1..1, more);
        let again = parser().try_get_matches_from(&words).unwrap_or_else(|error| error.exit());
        let mut cli = Self::from_arg_matches(&again).unwrap_or_else(|error| error.exit());
        colours::choose(cli.common.color);
        cli.common.given = given(&matches);
        if let Some(table) = cli.command.new_table() {
            let words = words_of_new_table(of_tables, table.says_expiry());
            let defaults = TableDefaults::try_parse_from(words).unwrap_or_else(|error| error.exit());
            table.defaults = Some(Box::new(defaults.args));
        }
        Ok(cli)
    }
}

/// The first names of commands that read no settings: they print what other programs read.
const WITHOUT_SETTINGS: [&str; 3] = ["bench", "completions", "man"];

/// The options of a new table that settings give.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct TableDefaults {
    #[command(flatten)]
    args: TableArgs,
}

/// The words of the settings of a new table. Of the two options that say until when its rows are there, only one
/// counts: a variable counts before the file, and the command line, if it `is_said` there, before both.
fn words_of_new_table(given: Vec<(settings::Setting, OsString)>, is_said: bool) -> Vec<OsString> {
    let says_expiry = |setting: &settings::Setting| ["expire-after", "expire-by"].contains(&&*setting.option);
    let is_variable = |setting: &settings::Setting| matches!(setting.origin, settings::Origin::Variable(_));
    let variable_says = given.iter().any(|(setting, _)| says_expiry(setting) && is_variable(setting));
    let counts =
        |setting: &settings::Setting| !says_expiry(setting) || !is_said && (is_variable(setting) || !variable_says);
    given.into_iter().filter(|(setting, _)| counts(setting)).map(|(_, word)| word).collect()
}

/// The options that a variable or a file can set: those that many commands take, and those of new tables. `--follow` is
/// the default, so it is none of them.
pub fn settable() -> Vec<clap::Arg> {
    let command = Cli::command();
    let common = command.get_arguments().filter(|option| option.is_global_set() && option.get_id() != "follow");
    let makes_tables = command.find_subcommand("create-table").expect("there is such a command");
    let of_tables = makes_tables.get_arguments().filter(|option| option.get_help_heading() == Some(NEW_TABLE));
    common.chain(of_tables).cloned().collect()
}

/// The common options on a command line, each as the variable that would set it, with its value.
fn given(matches: &clap::ArgMatches) -> Vec<(String, OsString)> {
    let of_command_line = |option: &clap::Arg| {
        option.is_global_set() && matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let options = settable().into_iter().filter(of_command_line);
    let pair = |option: clap::Arg| {
        let value = matches.get_raw(option.get_id().as_str())?.next().map(ToOwned::to_owned);
        let value = if option.get_action().takes_values() { value? } else { "true".into() };
        Some((settings::variable(option.get_long()?), value))
    };
    options.filter_map(pair).collect()
}

/// When the words of a command line ask for colours, before they are parsed: the parser prints with colours itself.
fn colour_of(words: &[OsString]) -> ColourArg {
    let mut found = std::env::var(settings::variable(COLOUR)).unwrap_or_default();
    let mut words = words.iter().filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        match word.strip_prefix("--color") {
            Some("") => found = words.next().unwrap_or_default().to_owned(),
            Some(value) => found = value.trim_start_matches('=').to_owned(),
            None => {}
        }
    }
    // A wrong value is reported by the parser.
    ColourArg::from_str(&found, false).unwrap_or_default()
}

/// The number of the word that is a directory in place of a command. `error` says why the words make no command.
fn directory_for_a_shell(error: &clap::Error, words: &[OsString]) -> Option<usize> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let at = words.iter().position(|other| **other == **word)?;
    let is_command = |word: &OsString| Cli::command().find_subcommand(word).is_some();
    let (is_first, place) = (!words[1..at].iter().any(is_command), Path::new(word));
    (is_first && (places::is_url(place) || Machine::real().disk.list(place).is_ok())).then_some(at)
}

/// The words of a command line in the form that [`command`] parses.
pub fn arguments(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    #[cfg(feature = "bench")]
    return suite::args::kv::two_minus_signs(words);
    #[cfg(not(feature = "bench"))]
    words.into_iter().collect()
}

/// The command line: every command with its options. An option in `Common` can stand before a command or after it.
/// Such an option is described at the commands that it affects, and all other commands refuse it.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let common: Vec<clap::Arg> = command.get_arguments().filter(|option| option.is_global_set()).cloned().collect();
    hide_what_is_refused(command, "", &common)
}

/// Like [`command`], with a help that people read: in place of the common options, the help of a command has one line
/// that names them.
pub fn parser() -> clap::Command {
    let hidden = |option: clap::Arg| if option.is_global_set() { option.hide(true) } else { option };
    name_common_options(Cli::command().mut_args(hidden), "")
}

/// Puts the names of the common options that a subcommand takes before its examples.
fn name_common_options(command: clap::Command, path: &str) -> clap::Command {
    command.mut_subcommands(|command| {
        let path = format!("{path} {}", command.get_name()).trim_start().to_owned();
        let command = name_common_options(command, &path);
        let taken = common_options_of(&path);
        if taken.is_empty() || command.has_subcommands() {
            return command;
        }
        let names = taken.iter().map(|option| format!("--{}", option.replace('_', "-")));
        let names = names.collect::<Vec<_>>().join(", ");
        let line = format!("Common options: {names} (see `larch help {OPTIONS}`)");
        let before = |examples: &clap::builder::StyledStr| format!("{line}\n\n{examples}");
        let short = command.get_after_help().map_or_else(|| line.clone(), before);
        // Some commands have more to say in the long form.
        match command.get_after_long_help().map(before) {
            Some(long) => command.after_help(short).after_long_help(long),
            None => command.after_help(short),
        }
    })
}

/// Removes from the help of each subcommand the options in `common` that this subcommand refuses. `path` is the
/// name of the whole command.
fn hide_what_is_refused(command: clap::Command, path: &str, common: &[clap::Arg]) -> clap::Command {
    command.mut_subcommands(|command| {
        let path = format!("{path} {}", command.get_name()).trim_start().to_owned();
        let taken = common_options_of(&path);
        let own: Vec<clap::Id> = command.get_arguments().map(|option| option.get_id().clone()).collect();
        let is_refused = |option: &&clap::Arg| {
            let id = option.get_id();
            id != COLOUR && !taken.contains(&id.as_str()) && !own.contains(id)
        };
        let hidden: Vec<clap::Arg> = common.iter().filter(is_refused).map(|option| option.clone().hide(true)).collect();
        hide_what_is_refused(command.args(hidden), &path, common)
    })
}

/// Commands with an option `--follow` of their own.
const FOLLOWING: [&str; 2] = ["changes", "replicate"];

/// The names of all options in [`Common`] but [`COLOUR`], which all commands take.
const COMMON_OPTIONS: [&str; 9] = [
    "cache",
    "write_buffer",
    "durability",
    "read_index",
    "read_only",
    "follow",
    "compaction_workers",
    "verbose",
    "compat",
];

/// Which of the options in [`Common`] affect a command. For a command with subcommands, these are the options of
/// all its subcommands.
pub fn common_options_of(command: &str) -> &'static [&'static str] {
    match command {
        "get" | "scan" | "export" | "count" | "nth" | "sample" | "tables" | "stats" | "metrics" | "explain"
        | "explain get" | "explain scan" | "split" | "check" | "dump" | "sql" | "index check" | "index list"
        | "history" => &["cache", "read_index", "read_only", "follow", "verbose"],
        "put" | "merge" | "load" | "delete" | "delete-range" | "import" | "ingest" | "warm" | "create-table"
        | "drop-table" | "rename-table" | "revert" | "compact" | "alter" | "clone" | "split-off" | "demo"
        | "index create" | "index drop" => {
            &["cache", "write_buffer", "durability", "read_index", "compaction_workers", "verbose", "compat"]
        }
        "index" => &COMMON_OPTIONS,
        // These commands open no database, or they open one but change nothing in it and write elsewhere.
        "build-files" => &["write_buffer", "compat"],
        "checkpoint" | "backup" => &["cache", "verbose"],
        "follow" => &["cache", "verbose"],
        "changes" => &["cache", "read_index", "read_only", "verbose"],
        "compaction-worker" => &["cache"],
        "sql-scheduler" | "sql-executor" => &["cache", "read_index", "verbose"],
        "plan" => &["cache", "write_buffer"],
        // They pass all of them on to their commands, or describe them.
        "shell" | "options" => &COMMON_OPTIONS,
        // The commands for backups, stores and damaged databases. The command `bench` also belongs to this arm,
        // because its targets have options of their own.
        _ => &[],
    }
}

/// The error message if a command does not take an option.
fn refusal(command: &str, option: &str) -> String {
    let option = option.replace('_', "-");
    match (command, &option[..]) {
        (name, _) if name.starts_with("bench") => {
            format!("--{option} is no option of `bench`: make it an option of the target, as in larch:DIR?cache=64MiB")
        }
        (name, "read-only" | "follow") if common_options_of(name).contains(&"durability") => {
            format!("`{command}` changes the database; leave --{option} out")
        }
        (_, "write-buffer" | "durability" | "compaction-workers" | "compat") => {
            format!("`{command}` writes no rows to a database; leave --{option} out")
        }
        _ => format!("--{option} changes nothing of what `{command}` does; leave it out"),
    }
}

/// How a database is opened. [`common_options_of`] says which of these options a command takes.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Memory for pages: a size, or `free` for what other programs leave free, at least 64MiB
    #[arg(long, global = true, help_heading = COMMON, value_name = "SIZE", default_value = "free", value_parser = size::parse_budget)]
    pub cache: Budget,
    /// Memory for rows that are not in files yet
    #[arg(long, global = true, help_heading = COMMON, value_name = "SIZE", default_value = "64MiB", value_parser = size::parse)]
    pub write_buffer: u64,
    /// When a change counts as done: on the disk, or with the operating system
    #[arg(long, global = true, help_heading = COMMON, value_name = "LEVEL", default_value = "synced")]
    pub durability: DurabilityArg,
    /// Index to read if a table has both (made with --index both)
    #[arg(long, global = true, help_heading = COMMON, value_name = "KIND", default_value = "btree")]
    pub read_index: ReadIndexArg,
    /// Show only what is in files, without the commits that a writing process has only in its log
    #[arg(long, global = true, help_heading = COMMON)]
    pub read_only: bool,
    /// Show all commits of a process that writes to the database. While this command reads a file, that process
    /// keeps the file. All commands that read do so unless --read-only is given
    #[arg(long, global = true, help_heading = COMMON, conflicts_with = "read_only")]
    pub follow: bool,
    /// Leave compactions to processes with `larch compaction-worker`, as long as one lives
    #[arg(long, global = true, help_heading = COMMON)]
    pub compaction_workers: bool,
    /// Print on standard error what the engine does: flushes, compactions, waits, errors, recovery
    #[arg(short, long, global = true, help_heading = COMMON)]
    pub verbose: bool,
    /// Write only what this release of Larch can read, to be able to go back to it
    // The field is a text because `bench rows` also has an option `--compat`, and clap requires the same type for
    // both.
    #[arg(long, global = true, help_heading = COMMON, value_name = "RELEASE", value_parser = release)]
    compat: Option<String>,
    /// When output has colours: auto is on a terminal, unless the variable NO_COLOR is set
    #[arg(long, global = true, help_heading = COMMON, value_name = "WHEN", default_value = "auto")]
    pub color: ColourArg,
    /// The options that the command line gives, each as the variable that would set it, with its value.
    #[arg(skip)]
    pub given: Vec<(String, OsString)>,
}

/// The text of a release.
fn release(text: &str) -> Result<String, String> {
    text.parse::<Release>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl Common {
    /// A builder with these options.
    ///
    /// # Errors
    ///
    /// Fails if `dir` names a place in a store that cannot be used.
    pub fn builder(&self, dir: &Path) -> Result<larch::Builder> {
        let durability = match self.durability {
            DurabilityArg::Synced => Durability::Synced,
            DurabilityArg::Buffered => Durability::Buffered,
        };
        let builder = Database::builder(dir)
            .compat(self.compat.as_ref().map_or(Release::NEWEST, |text| text.parse().expect("it was checked")))
            .cache_bytes(self.cache)
            .write_buffer_bytes(self.write_buffer)
            .compaction_workers(self.compaction_workers)
            .publish_metrics(true)
            .prefer_flat_index(self.read_index == ReadIndexArg::Flat)
            .durability(durability)
            .extractors(extractors::of)
            .expiry_times(extractors::time_of)
            .merge_function(JSON_PATCH, ::rows::merge_patch);
        let builder = match places::machine(dir, Stored::Database)? {
            // A store always has room, so nothing is reserved.
            Some(machine) => builder.machine(machine).reserve_bytes(0),
            None => builder,
        };
        Ok(if self.verbose { builder.on_event(|event| eprintln!("larch: {event}")) } else { builder })
    }
}

/// Which of the two indexes of a table is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadIndexArg {
    /// The tree of nodes
    Btree,
    /// The page that lists every data page
    Flat,
}

/// See [`Durability`].
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DurabilityArg {
    /// A change is on the disk when it is acknowledged
    Synced,
    /// A change is with the operating system when it is acknowledged: safe from a crash of this process, not of the
    /// machine
    Buffered,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Put the rows of a file in a table, all of them or none
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(Import),
    /// Put the rows of files in sorted files that any database can take in, on any machine
    ///
    /// No database is needed or made. The directory with the sorted files also contains a list of the files and
    /// their checksums. The directory can be copied to the machine of the database.
    #[command(after_help = BUILD_EXAMPLES)]
    BuildFiles(BuildFiles),
    /// Take files that `build-files` has made into a table, all of them or none
    ///
    /// No row is read. If the file system can give a file a second name, the database gets the files by second
    /// names; otherwise they are copied. Because no row is read, a damaged page is taken in as well, unless --verify
    /// is given. If the table has a row with the same key as a new row, the new row replaces it. If two directories
    /// have rows with the same key, the row of the directory that is named last replaces the other.
    #[command(after_help = INGEST_EXAMPLES)]
    Ingest(Ingest),
    /// Print the row with a key
    #[command(after_help = GET_EXAMPLES)]
    Get(Get),
    /// Write one row, in place of an existing one with its key
    ///
    /// If the database or the table does not exist, the command makes it. The new table has raw keys and values.
    #[command(after_help = PUT_EXAMPLES)]
    Put(Put),
    /// Change the value of a key in a raw table, without reading it
    ///
    /// The change is applied when the value is read, or before that when files are merged. A key without a value counts
    /// as 0, as no bytes, or as an empty JSON object. If the change does not fit the value, reads of the key fail until
    /// it is put or deleted. If the database or the table does not exist, the command makes it.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(Merge),
    /// Write or remove rows from the standard input as they come, and print the key of each once it is safe
    ///
    /// For a raw table, each line is a key and a value with a tab between them. A backslash, tab, LF or CR in them
    /// is written \\, \t, \n or \r. For other tables, the lines are rows in the format that was imported, without
    /// a header. With --delete, each line is a key in the form that `get` takes. With --format, the lines are rows
    /// or keys as `scan` prints them with the same --format. If a row cannot be read, the command ends. The rows
    /// before it stay.
    #[command(after_help = LOAD_EXAMPLES)]
    Load(Load),
    /// Remove the row with a key
    Delete(Delete),
    /// Remove all rows with keys in a range, in one write whatever their number
    #[command(after_help = DELETE_RANGE_EXAMPLES)]
    DeleteRange(DeleteRange),
    /// Print rows in the order of their keys
    #[command(after_help = SCAN_EXAMPLES)]
    Scan(Scan),
    /// Write the rows of a table, or of all tables, to files
    ///
    /// The command prints for each file how to read it back. A file gets its name when it is complete, so a command
    /// that fails leaves no file. In a table of TSV, the first line has the names of the columns if the table has
    /// names, so that `import --header` finds them; `scan` does not print them.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(Export),
    /// Print how many rows a table or a range of its keys has
    ///
    /// The number comes from the indexes, and no page of data is read. If the indexes do not know it exactly, the
    /// command prints the least and the greatest number that are possible, as in `970 to 1012`. With --exact, it reads
    /// the pages for which the indexes are not exact, and prints one number.
    #[command(after_help = COUNT_EXAMPLES)]
    Count(Count),
    /// Print the row with a number, counted from 0 in the order of keys
    ///
    /// The number is exact. If only one file has keys in the range, a few pages are read whatever the number is.
    /// If several files have keys in the range, the keys of these files are merged up to the row.
    #[command(after_help = NTH_EXAMPLES)]
    Nth(Nth),
    /// Print rows chosen at random, in the order of their keys
    ///
    /// The stored rows are cut into as many equal pieces as rows are asked for, and one row is drawn from each
    /// piece. If many rows are erased or stored twice, fewer rows are printed. It reads about one page of data for
    /// each row.
    #[command(after_help = SAMPLE_EXAMPLES)]
    Sample(Sample),
    /// Read the pages of a table or of a range of its keys, so that they are in memory when it is opened next
    ///
    /// The command reads at most half as many bytes as --cache says. When a command closes a database, it stores a
    /// list of the pages that are in memory. A program can load these pages when it opens the database again.
    #[command(after_help = WARM_EXAMPLES)]
    Warm(Warm),
    /// List tables and what their rows are made of
    Tables(Inspect),
    /// Make a table of raw keys and values; the database too, if it is not there
    ///
    /// `import` makes tables of columns itself.
    #[command(after_help = CREATE_TABLE_EXAMPLES)]
    CreateTable(CreateTable),
    /// Remove a table with all its rows
    DropTable(DropTable),
    /// Give a table another name, in one step
    ///
    /// No row is copied. Rows that are only in memory are written to a file first.
    RenameTable(RenameTable),
    /// Answer questions in SQL, with a query engine that only another build of this command has
    ///
    /// The statements can use all tables of the database. If a table does not declare its columns, `CREATE EXTERNAL
    /// TABLE` declares them, see docs/guide/sql.md. All statements see the same rows: those that a process that writes
    /// has committed, or with --read-only or --scheduler those that are in files.
    #[command(after_help = SQL_EXAMPLES)]
    Sql(Sql),
    /// Cut the queries of `larch sql --scheduler` into tasks for executors, see docs/guide/sql.md
    SqlScheduler(SqlScheduler),
    /// Run tasks of queries: open the databases that they name, and read their ranges of keys
    ///
    /// When the executor ends, it prints what it has read.
    SqlExecutor(SqlExecutor),
    /// Show how many rows, bytes and files a table has
    ///
    /// The number of rows comes from the indexes, and no page of data is read. Therefore the command prints a
    /// lower and an upper bound for the number of rows. The files contain versions of rows. A row that was
    /// written again or deleted has several versions until files are merged. With one of --from, --to, --buckets
    /// and --exact, the command shows how much a range of keys contains, and how the rows and bytes are spread
    /// over the range.
    #[command(after_help = STATS_EXAMPLES)]
    Stats(Stats),
    /// Print the counters of the process that writes to a database, as JSON: memory by owner, pages read, files
    ///
    /// `larch` and `larch bench` publish their counters once a second while they write; a program does so with
    /// Builder::publish_metrics. If no process does, the command opens the database to read it, and prints the
    /// counters of its own reads. The members `writer` and `whose` say whose the counters are.
    Metrics(Metrics),
    /// Say where to cut a table in parts of about equal size
    ///
    /// For each part, it prints the key before which the part stops, in the form that `scan` takes with --from
    /// and --to. The numbers of rows and bytes in a part are estimates from the indexes. A table that has too few
    /// pages for this many parts is divided into fewer parts.
    #[command(after_help = SPLIT_EXAMPLES)]
    Split(Split),
    /// Do a read and print what it took: files and levels visited, pages by kind, bytes, rounds of waiting
    ///
    /// The cache is empty when the read begins, so the command shows the cost of the read when nothing is in
    /// memory.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Merge files, so that reads have fewer files to look at
    Compact(Inspect),
    /// Change how a table is kept in the files that are written from here on, or how its keys are shown
    ///
    /// Existing files stay as they are and can be read. Compactions rewrite them over time. `larch compact`
    /// rewrites all of them at once.
    #[command(after_help = ALTER_EXAMPLES)]
    Alter(Alter),
    /// Make a second table with the rows of a first, without copying them
    ///
    /// At first, both tables see the same files. Later changes of one table are not visible in the other table. The
    /// space of a row is freed when both tables have removed the row.
    Clone(CloneTable),
    /// Move the rows from a key on to a new table, without copying them
    ///
    /// Either all of them are moved or, if the command fails, none. `larch split` prints keys that divide a table
    /// into parts of about equal size.
    #[command(after_help = SPLIT_OFF_EXAMPLES)]
    SplitOff(SplitOff),
    /// Find rows by other keys than their own
    ///
    /// An index is made of columns, or of what a declaration says. Every write to the table updates the index.
    #[command(after_help = INDEX_EXAMPLES)]
    Index(Index),
    /// Read everything and verify it
    Check(Inspect),
    /// Save what can be read of a damaged database in a new one, and list what was lost
    ///
    /// Nothing is written to the damaged database, and no other process may have it open. If there is no manifest,
    /// files are recognized by their contents.
    #[command(after_help = REPAIR_EXAMPLES)]
    Repair(Repair),
    /// Make a copy of a database as it is now, which shares files with it; another process may write meanwhile
    ///
    /// The copy is a database of its own. It has every commit that existed when the command began. If the file
    /// system can give a file a second name, the copy's files are second names of the files in DIR. Otherwise they
    /// are copies.
    #[command(after_help = CHECKPOINT_EXAMPLES)]
    Checkpoint(Checkpoint),
    /// Add a backup of a database to a directory of backups; another process may write meanwhile
    ///
    /// It copies only files that no earlier backup has copied. Each backup has a number and can be restored by
    /// itself.
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(Backup),
    /// List the backups in a directory
    Backups(InspectBackups),
    /// Keep the rows as they are now under a name, to read them later with --at
    ///
    /// No row is copied. Rows that are changed or removed from now on take space until `forget` takes the name away.
    /// A table that is dropped takes its past with it.
    #[command(after_help = KEEP_EXAMPLES)]
    Keep(Keep),
    /// List the versions that `keep` has kept
    Kept(InspectKept),
    /// Take a name away that `keep` has given, so that what only it shows is dropped
    Forget(Keep),
    /// Retain the past from now on, so that --at shows each version in it; without an option, say what is retained
    ///
    /// Rows that are changed or removed take space as long as they are retained. Reads of the newest rows never meet them.
    #[command(after_help = RETAIN_EXAMPLES)]
    Retain(Retain),
    /// Subscribe to the changes from now on: a named position, from which on the past is kept
    ///
    /// `changes --subscription` prints what came since, and moves the position on. If there is a subscription of this
    /// name, it stays where it is and gets these limits. Beyond its limits it keeps nothing more.
    #[command(after_help = SUBSCRIBE_EXAMPLES)]
    Subscribe(Subscribe),
    /// List the subscriptions, the one that is furthest behind first
    Subscriptions(InspectSubscriptions),
    /// End a subscription, so that the past that only it keeps is dropped
    Unsubscribe(Unsubscribe),
    /// Print the values that a row had, the newest first, with their versions and times
    ///
    /// These are the values that the versions with names, those that are retained, and the newest one show.
    History(History),
    /// Print what each commit changed, in the order of the commits; another process may write meanwhile
    ///
    /// Each commit comes whole and once. To go on later, say the last version that was printed to --from. Commits
    /// before the last flush are there only if the past is retained, or by a subscription.
    #[command(after_help = CHANGES_EXAMPLES)]
    Changes(Changes),
    /// Print the rows in which two versions of a table differ: those of the first with -, those of the second with +
    ///
    /// It reads only files with rows that were written between the two versions.
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(Diff),
    /// Make the rows of a table, or of a range of it, again what they were, in one commit
    ///
    /// Only rows that have changed since are written. The rows of now can be kept, or retained, before.
    #[command(after_help = REVERT_EXAMPLES)]
    Revert(Revert),
    /// Bring another database up to date with the commits of this one; another process may write to this one meanwhile
    ///
    /// A table is copied when it is seen for the first time, also after it was renamed, cloned or split. From then on, the
    /// commits that came since are taken, whole and in order, and the other database notes how far it has come. It must
    /// have no other writer. It gets no indexes.
    #[command(after_help = REPLICATE_EXAMPLES)]
    Replicate(Replicate),
    /// Make a database from a backup, as it was when the backup was made
    Restore(Restore),
    /// Read every byte of all backups in a directory, and say what is missing or damaged
    VerifyBackup(InspectBackups),
    /// Branch a database in a store: make a second one that shares its files; another process may write meanwhile
    ///
    /// The branch has every commit that was durable in the store when the command began. From then on, both
    /// databases can be written to. Only the manifest and the logs are copied. A branch that no process writes to
    /// serves as a checkpoint.
    #[command(after_help = BRANCH_EXAMPLES)]
    Branch(Branch),
    /// List the branches of a database in a store that may need files of it
    Branches(InspectBranches),
    /// Remove a database in a store, with all its files; refused while branches need them
    ///
    /// If a process still writes to the database, this process gets an error at its next write.
    DropDatabase(DropDatabase),
    /// Follow a database that another process writes to, and print a line each time it shows more, until ^C
    ///
    /// Every reading command with --follow sees the same: every commit of the writer, some milliseconds after the
    /// commit.
    #[command(after_help = FOLLOW_EXAMPLES)]
    Follow(Follow),
    /// Do compactions for the process that writes to a database, until ^C
    ///
    /// The writer must be started with --compaction-workers. For each compaction, a line says what was done. A
    /// worker may end or be killed at any time. If a worker ends during a compaction, the writer does the
    /// compaction itself, or leaves it to another worker.
    #[command(after_help = COMPACTION_WORKER_EXAMPLES)]
    CompactionWorker(CompactionWorker),
    /// Show a file of a database as text (an SST, a log or a manifest), or all SSTs of a table
    Dump(Dump),
    /// Make a database of a million rows, read it back and say what that took
    ///
    /// Without --cache, its cache is 64MiB, so that not all rows fit into it.
    Demo(Demo),
    /// Predict how much room a table of a given size takes, and what a get from it costs
    ///
    /// Nothing is created or read. The command computes its results without a table. `larch bench experiment
    /// scale` compares these results with real tables. The prediction assumes that the table was compacted or
    /// imported, that values lie in their pages, and that all rows are read equally often. Without --cache, it is for
    /// a cache of 64MiB.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Plan),
    /// Take commands about a database from a terminal or a pipe; `larch DIR` is short for it
    ///
    /// In the shell, commands are written without the directory, as in `get people 7`. `.help` lists them. On a
    /// terminal, the tab key completes commands, options, tables, indexes and keys, and ^C gives up a command. The
    /// lines are kept in the file that LARCH_HISTORY names, or else in ~/.local/state/larch/history, except lines that
    /// begin with a space. From a pipe, lines are run one by one, and the first that fails gives the exit code.
    #[command(after_help = SHELL_EXAMPLES)]
    Shell(Shell),
    /// Describe the common options, and show their values and where these come from
    ///
    /// A value comes from the command line, or else from a variable such as LARCH_CACHE, or else from a file, or else
    /// it is the default. The file is ~/.config/larch/config, or the one that LARCH_CONFIG names. Its lines are as
    /// `cache = 256MiB`.
    #[command(after_help = OPTIONS_EXAMPLES)]
    Options,
    /// Print what lets a shell complete commands and options
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(Completions),
    /// Write manual pages, one for each command
    #[command(after_help = MAN_EXAMPLES)]
    Man(Man),
    /// Measure Larch and other stores
    Bench(Bench),
}

impl Command {
    /// The options of the table that the command makes, if it makes one and has such options.
    fn new_table(&mut self) -> Option<&mut TableArgs> {
        match self {
            Self::Import(args) => Some(&mut args.table_options),
            Self::BuildFiles(args) => Some(&mut args.table_options),
            Self::CreateTable(args) => Some(&mut args.table_options),
            _ => None,
        }
    }
}

#[cfg(feature = "bench")]
pub use crate::bench::Bench;

/// The words after `larch bench` in a binary that cannot measure. They are not read.
#[cfg(not(feature = "bench"))]
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Bench {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Index {
    #[command(subcommand)]
    pub what: IndexCommand,
}

/// What can be done with indexes.
#[derive(Debug, Subcommand)]
pub enum IndexCommand {
    /// Make an index of the rows of a table
    ///
    /// A row that lacks a column of the index is left out. If a row does not fit the index, or if two rows would have
    /// the same key in a unique index, the index is not made.
    #[command(after_help = CREATE_INDEX_EXAMPLES, after_long_help = CREATE_INDEX_HELP)]
    Create(CreateIndex),
    /// Remove an index; the rows stay
    Drop(DropIndex),
    /// Compare indexes with their tables
    Check(CheckIndex),
    /// List indexes with their declarations
    List(Inspect),
}

#[derive(Debug, Args)]
pub struct CreateIndex {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// Name of the index
    pub name: String,
    /// What its keys are made of: columns, as 'city, age:int desc', or a declaration, see below
    #[arg(required_unless_present = "columns", conflicts_with = "columns")]
    pub declaration: Option<String>,
    /// Columns that make up its keys, also if their names begin like a declaration
    #[arg(long, value_name = "COLUMN[,COLUMN…]", value_delimiter = ',')]
    pub columns: Vec<IndexColumn>,
    /// Refuse two rows with the same key in the index
    #[arg(long)]
    pub unique: bool,
}

#[derive(Debug, Args)]
pub struct DropIndex {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// Name of the index
    pub name: String,
}

#[derive(Debug, Args)]
pub struct CheckIndex {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table; all of them if left out
    pub table: Option<String>,
    /// Name of the index; all of them if left out
    pub name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// How the rows of an answer are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QueryFormat {
    /// A table with lines around its cells, once all rows are there
    Table,
    /// Comma-separated values with a header
    Csv,
    /// A JSON object on each line
    Jsonl,
}

#[derive(Debug, Args)]
pub struct Sql {
    /// Directory of the database
    pub dir: PathBuf,
    /// Statements, with a ; between them; after those of --file
    #[arg(required_unless_present = "file")]
    pub statements: Option<String>,
    /// Read statements from a file, or from the standard input if it is -
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub at: At,
    /// How rows are printed
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: QueryFormat,
    /// Memory for the work of the query engine, beside that of the database
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size::parse)]
    pub memory: u64,
    /// How many threads work on a query [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Have the executors of this `sql-scheduler` answer; they find the database under the same DIR
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "at")]
    pub scheduler: Option<String>,
}

#[derive(Debug, Args)]
pub struct SqlScheduler {
    /// Address and port at which it takes queries and executors; port 0 is any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:50050")]
    pub listen: SocketAddr,
    /// Say on the standard output when it has this many executors
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub executors: usize,
    /// End when the standard input does
    #[arg(long)]
    pub stop_with_input: bool,
}

#[derive(Debug, Args)]
pub struct SqlExecutor {
    /// The scheduler that it works for
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050")]
    pub scheduler: String,
    /// Address at which the other processes find this one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub listen: IpAddr,
    /// Port for rows; the next one is for tasks [default: two free ones]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..65535))]
    pub port: Option<u16>,
    /// How many partitions it works on at a time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Memory for the work of the query engine, beside that of databases
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size::parse)]
    pub memory: u64,
    /// End when the standard input does
    #[arg(long)]
    pub stop_with_input: bool,
}

#[derive(Debug, Args)]
pub struct Repair {
    /// Directory of the damaged database
    pub dir: PathBuf,
    /// Directory of the new one, which does not exist yet or is empty
    pub new: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Checkpoint {
    /// Directory of the database
    pub dir: PathBuf,
    /// Directory of the copy, which does not exist yet or is empty
    #[arg(value_parser = local)]
    pub dest: PathBuf,
    /// Copy the database as it was: the name that `keep` gave to a version, the number of a version that is kept, a
    /// time, or how long ago; files with newer rows are written again
    #[arg(long, value_name = "NAME|VERSION|TIME")]
    pub at: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Branch {
    /// URL of the database
    pub dir: PathBuf,
    /// URL of the branch, in the same bucket, where no database is yet
    pub new: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct InspectBranches {
    /// URL of the database
    pub dir: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DropDatabase {
    /// URL of the database
    pub dir: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Backup {
    /// Directory of the database
    pub dir: PathBuf,
    /// Directory of its backups, or a URL in a store; made if it does not exist
    pub dest: PathBuf,
    /// Then remove all backups but the newest N, which have the greatest numbers, and the files that only they have
    #[arg(long, value_name = "N", conflicts_with = "at", value_parser = clap::value_parser!(u64).range(1..))]
    pub keep: Option<u64>,
    /// Back up the database as it was: a name, a version or a time as for --at of `checkpoint`; the backup is the
    /// newest one by number, so `restore` takes it unless --backup names another
    #[arg(long, value_name = "NAME|VERSION|TIME")]
    pub at: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Keep {
    /// Directory of the database
    pub dir: PathBuf,
    /// Name of the version
    pub name: String,
}

#[derive(Debug, Args)]
pub struct Retain {
    /// Directory of the database
    pub dir: PathBuf,
    /// Keep the rows of each of this many versions before the newest
    #[arg(long, value_name = "N", group = "how_much")]
    pub versions: Option<u64>,
    /// Keep the rows of each version within this time, such as 12h or 7d
    #[arg(long, value_name = "TIME", group = "how_much", value_parser = kit::time::parse_length)]
    pub time: Option<Duration>,
    /// Keep all rows of each version from now on
    #[arg(long, group = "how_much")]
    pub everything: bool,
    /// Keep nothing but versions with names
    #[arg(long, group = "how_much")]
    pub nothing: bool,
    /// Change or show what is kept of this table and its indexes, whatever is kept of the others
    #[arg(long, value_name = "TABLE")]
    pub table: Option<String>,
    /// Keep as much of the table as of the others
    #[arg(long, group = "how_much", requires = "table")]
    pub as_others: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct History {
    #[command(flatten)]
    pub row: Row,
    /// Print as JSON, an object for each version
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// The rows before: a name, a version or a time as for --at; with --with or --with-table, it may be left out, and
    /// the newest rows are meant
    #[arg(value_name = "NAME|VERSION|TIME", required_unless_present_any = ["with", "with_table"])]
    pub before: Option<String>,
    /// The rows after, in the same form [default: the newest]
    #[arg(value_name = "AFTER")]
    pub after: Option<String>,
    /// The rows after are those of the database in this directory, such as a checkpoint or a branch; a file that the
    /// two share is not read unless only one of them shows its newer rows
    #[arg(long, value_name = "OTHER")]
    pub with: Option<PathBuf>,
    /// The rows after are those of this table, such as a clone
    #[arg(long, value_name = "TABLE")]
    pub with_table: Option<String>,
    #[command(flatten)]
    pub range: KeyRange,
    /// Print as JSON, an object for each row that differs
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Revert {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// The rows that the table gets again: a name, a version or a time as for --at
    #[arg(value_name = "NAME|VERSION|TIME")]
    pub when: String,
    #[command(flatten)]
    pub range: KeyRange,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// How changes are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChangeFormat {
    /// Version, table, put or erase or erase-range, and then the row, its key, or the first key of the range and the first
    /// key after it, with a tab between them
    Tsv,
    /// A JSON object a line; the last change of a commit says so
    Jsonl,
}

#[derive(Debug, Args)]
pub struct Changes {
    /// Directory of the database
    pub dir: PathBuf,
    /// Print the commits after this one: a version, the name or the time of one as for --at [default: the oldest that
    /// is retained]
    #[arg(long, value_name = "VERSION")]
    pub from: Option<String>,
    /// Print what came after the position of this subscription, and then move it on; no other process may write
    /// meanwhile
    ///
    /// The position moves once all is written: in a file, it is synced before; a pipe counts as read as soon as it has
    /// taken the text. So `| head` loses what it does not print, up to the size of a pipe; --most ends after whole
    /// commits. If the reader of a pipe ends earlier, the position stays.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "follow"])]
    pub subscription: Option<String>,
    /// Print only changes of this table; may be given more than once
    #[arg(long, value_name = "TABLE")]
    pub table: Vec<String>,
    /// Go on when more is committed, until ^C
    #[arg(long)]
    pub follow: bool,
    /// End after this many commits
    #[arg(long, value_name = "N")]
    pub most: Option<u64>,
    /// How changes are printed
    #[arg(long, default_value = "tsv")]
    pub format: ChangeFormat,
    /// With each row, print what it was before the commit, as far back as the past is retained; only as JSON lines
    #[arg(long)]
    pub before: bool,
}

#[derive(Debug, Args)]
pub struct Replicate {
    /// Directory of the database whose commits are taken
    pub from: PathBuf,
    /// Directory of the database that takes them; made if it does not exist
    pub to: PathBuf,
    /// Go on when more is committed, until ^C
    #[arg(long)]
    pub follow: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Subscribe {
    /// Directory of the database
    pub dir: PathBuf,
    /// Name of the subscription
    pub name: String,
    /// Let go of the past once a commit that was not read is so old, such as 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = kit::time::parse_length)]
    pub age: Option<Duration>,
    /// Let go of the past once older versions of rows take so much space
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub bytes: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Unsubscribe {
    /// Directory of the database
    pub dir: PathBuf,
    /// Name of the subscription
    pub name: String,
}

#[derive(Debug, Args)]
pub struct InspectSubscriptions {
    /// Directory of the database
    pub dir: PathBuf,
    /// Print as JSON, an object for each subscription
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct InspectKept {
    /// Directory of the database
    pub dir: PathBuf,
    /// Print as JSON, an object for each version
    #[arg(long)]
    pub json: bool,
}

/// The version that is read.
#[derive(Clone, Debug, Args)]
pub struct At {
    /// Read the rows as they were: the name that `keep` gave them, the number of a version that is kept, a time such as
    /// 2026-11-29 or "2026-11-29 08:30" in UTC, or how long ago, such as 10m or 7d; while another process writes, times
    /// since its last flush are not known
    #[arg(long, value_name = "NAME|VERSION|TIME")]
    pub at: Option<String>,
}

#[derive(Debug, Args)]
pub struct InspectBackups {
    /// Directory of backups, or a URL in a store
    pub dest: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Restore {
    /// Directory of backups, or a URL in a store
    pub dest: PathBuf,
    /// Directory of the database, or a URL in a store, which does not exist yet or is empty
    pub dir: PathBuf,
    /// Number of the backup [default: the newest, which has the greatest number, also if it was made with --at and is
    /// of an older version]
    #[arg(long, value_name = "N")]
    pub backup: Option<u64>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// A directory for checkpoints or for built files. A path that looks like the URL of a store is refused, so that
/// later releases can accept such URLs.
fn local(text: &str) -> Result<PathBuf, String> {
    if places::is_url(Path::new(text)) {
        return Err(format!(
            "checkpoints and built files lie in directories; name one (write ./{text} if it is one). In a store, larch branch makes \
             what a checkpoint is, and larch restore makes a database of a backup"
        ));
    }
    Ok(PathBuf::from(text))
}

#[derive(Debug, Args)]
pub struct Import {
    /// Directory of the database; made if it does not exist
    pub dir: PathBuf,
    /// Table; made if it does not exist, and made again if it has no rows
    pub table: String,
    /// File to read, or - for the standard input; it may be compressed (.gz, .zst)
    pub file: PathBuf,
    #[command(flatten)]
    pub input: InputArgs,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    // This field must be the last one, because its help heading applies to all options that come after it.
    #[command(flatten, next_help_heading = NEW_TABLE)]
    pub table_options: TableArgs,
}

#[derive(Debug, Args)]
pub struct BuildFiles {
    /// Files to read, or - for the standard input; if rows have the same key, the last one stays
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Directory for the files, which does not exist yet or is empty
    #[arg(long, value_name = "DIR", value_parser = local)]
    pub out: PathBuf,
    /// Build for this table: with rows of its kind, stored as it stores them
    #[arg(long, num_args = 2, value_names = ["DB", "TABLE"])]
    pub like: Vec<String>,
    #[command(flatten)]
    pub input: InputArgs,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    // This field must be the last one, because its help heading applies to all options that come after it.
    #[command(flatten, next_help_heading = NEW_TABLE)]
    pub table_options: TableArgs,
}

#[derive(Debug, Args)]
pub struct Ingest {
    /// Directory of the database; made if it does not exist
    pub dir: PathBuf,
    /// Table; made as the files were built if it does not exist, and made again if it has no rows
    pub table: String,
    /// Directories of built files; if several have a key, the last of them counts
    #[arg(required = true, value_name = "BUILT", value_parser = local)]
    pub from: Vec<PathBuf>,
    /// Read every byte of the files and check it first
    #[arg(long)]
    pub verify: bool,
    /// Remove the directories once the table has the files
    #[arg(long = "move")]
    pub remove: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// How the rows of an input are read.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// What the file is; guessed from its name if that ends in .csv, .tsv or .jsonl, with .gz or .zst behind it or not
    #[arg(long)]
    pub format: Option<Format>,
    /// The first row names the columns (the default for CSV)
    #[arg(long, overrides_with = "no_header")]
    pub header: bool,
    /// The first row is a row like others (the default for TSV)
    #[arg(long, overrides_with = "header")]
    pub no_header: bool,
    /// Columns that make up the key, by name or number from 1 [default: the first, or the table's]
    ///
    /// NAME:int orders a column as whole numbers of 64 bits, and NAME:num orders it as decimal numbers with the
    /// precision of a double. All other columns are in byte order. If several rows have the same key, the last one
    /// stays. In columns with :int or :num, 7 and 007 are the same number.
    #[arg(long, value_name = "COLUMN[,COLUMN…]", value_delimiter = ',')]
    pub key: Vec<KeySpec>,
    /// Groups of columns beside the key that are stored apart, so that a read of some groups reads nothing of the
    /// others [default: none, or the table's]
    ///
    /// A group is written NAME:COLUMN,COLUMN…, with columns as in --key. NAME:* is the group of all columns that
    /// no other group names. If no group is written NAME:*, the groups must name every column that is not in the
    /// key. Separate groups with a ; or give --groups several times.
    #[arg(long, value_name = "GROUP[;GROUP…]", value_delimiter = ';')]
    pub groups: Vec<GroupSpec>,
}

/// How a table is kept in files.
#[derive(Debug, Args)]
pub struct TableArgs {
    /// Size of a data page
    #[arg(long, value_name = "SIZE", value_parser = size::parse_u32)]
    pub page: Option<u32>,
    /// Size of an index node
    #[arg(long, value_name = "SIZE", value_parser = size::parse_u32)]
    pub node: Option<u32>,
    /// Kind of index
    #[arg(long, value_name = "KIND")]
    pub index: Option<IndexArg>,
    /// Compression of pages: none, lz4, or zstd for smaller files that take longer to read; zstd:LEVEL with a level
    /// from 1 to 19 looks longer for what repeats, zstd alone is zstd:3
    #[arg(long, value_name = "METHOD[:LEVEL]")]
    pub compression: Option<Compression>,
    /// Filters, which save most reads of absent keys: none, 12 or 20 bits a key; or two with a comma between them, for
    /// upper files and for the deepest
    #[arg(long, value_name = "BITS[,BITS]", value_parser = filters)]
    pub filters: Option<Filters>,
    /// Also put the first N bytes of keys in filters, so that a scan of keys that begin with the same N bytes opens
    /// no file without such keys; 0 for none
    #[arg(long, value_name = "N")]
    pub filter_prefix: Option<u16>,
    /// Whether to keep the table in memory: its pages are loaded and stay, up to a quarter of the cache
    #[arg(long, value_name = "BOOL")]
    pub in_memory: Option<bool>,
    /// Let rows expire after this time: 10m, 12h or 7d, or never
    ///
    /// It counts from the write of a row, and holds for rows that are written from then on without --ttl and --until.
    #[arg(long, value_name = "TIME", value_parser = expiring::after)]
    pub expire_after: Option<Expiry>,
    /// Let each row expire at the time in this column; a row without it stays
    ///
    /// The column has texts like 2026-11-29 or 2026-11-29 08:30, in UTC if they name no other zone. COLUMN:seconds,
    /// COLUMN:milliseconds and COLUMN:microseconds are numbers since 1970. In a raw table, a declaration says where the
    /// time is, as 'value[0..8].le u64 seconds', see docs/format/extractor.md. It holds for rows that are written from
    /// then on.
    #[arg(long, value_name = "COLUMN[:UNIT]", conflicts_with = "expire_after")]
    pub expire_by: Option<ExpireBy>,
    /// The options of a new table that variables and a file give.
    #[arg(skip)]
    pub defaults: Option<Box<TableArgs>>,
}

/// Parses the value of `--filters`, in the form in which [`Filters`] are printed.
fn filters(text: &str) -> std::result::Result<Filters, String> {
    let kind = |text: &str| match text {
        "none" => Ok(FilterKind::None),
        "12" => Ok(FilterKind::Bits12),
        "20" => Ok(FilterKind::Bits20),
        other => Err(format!("{other:?} is not none, 12 or 20")),
    };
    match text.split_once(',') {
        None => Ok(Filters::all(kind(text)?)),
        Some((upper, deepest)) => Ok(Filters { upper: kind(upper)?, deepest: kind(deepest)? }),
    }
}

impl TableArgs {
    /// Changes the options of a new table: those that were given, and those that variables and a file give.
    pub fn apply_to_new(&self, options: &mut TableOptions) -> Result<()> {
        if let Some(defaults) = &self.defaults {
            defaults.apply(options)?;
        }
        self.apply(options)
    }

    /// Whether an option says until when rows are there.
    fn says_expiry(&self) -> bool {
        self.expire_after.is_some() || self.expire_by.is_some()
    }

    /// Changes the options that were given, and leaves all other options as they are.
    ///
    /// # Errors
    ///
    /// Fails if rows of the table do not have the column of `--expire-by`. Then no option is changed.
    pub fn apply(&self, options: &mut TableOptions) -> Result<()> {
        if let Some(by) = &self.expire_by {
            let wrong = |why| CommandFailure::Usage(format!("--expire-by: {why}"));
            options.expiry = by.expiry(options).map_err(wrong)?;
        }
        if let Some(expiry) = &self.expire_after {
            options.expiry = expiry.clone();
        }
        if let Some(bytes) = self.page {
            options.page_bytes = bytes;
        }
        if let Some(bytes) = self.node {
            options.node_bytes = bytes;
        }
        if let Some(index) = self.index {
            options.index = index.into();
        }
        if let Some(compression) = self.compression {
            options.compression = compression;
        }
        if let Some(filters) = self.filters {
            options.filters = filters;
        }
        if let Some(bytes) = self.filter_prefix {
            options.filter_prefix_bytes = bytes;
        }
        if let Some(in_memory) = self.in_memory {
            options.in_memory = in_memory;
        }
        Ok(())
    }
}

/// See [`PageIndexKind`].
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum IndexArg {
    /// A tree of nodes, read as needed
    Btree,
    /// One page that lists every data page
    Flat,
    /// Both of them
    Both,
}

impl From<IndexArg> for PageIndexKind {
    fn from(arg: IndexArg) -> Self {
        match arg {
            IndexArg::Btree => Self::Btree,
            IndexArg::Flat => Self::Flat,
            IndexArg::Both => Self::Both,
        }
    }
}

/// The types of the fields in a raw table's keys, if these keys are tuples.
#[derive(Debug, Default, Args)]
pub struct KeyTypes {
    /// Types of the fields of a raw table's keys, as 'u32, string desc', see docs/format/tuple.md; keys are written as
    /// (17, "Bonn") then [default: those that the table was made with]
    #[arg(long, value_name = "TYPES")]
    pub key_types: Option<Declaration>,
}

impl KeyTypes {
    /// The metadata for a new table whose keys have the types in `key_types`.
    pub fn to_metadata(&self) -> Vec<u8> {
        self.key_types.as_ref().map(Declaration::to_bytes).unwrap_or_default()
    }
}

/// A table and one of its keys.
#[derive(Debug, Args)]
pub struct Row {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// Key as `scan --keys` prints it: a tab between several columns, a tuple as (17, "Bonn"); a backslash is written
    /// \\, but not in keys of TSV
    #[arg(allow_negative_numbers = true)]
    pub key: OsString,
    #[command(flatten)]
    pub types: KeyTypes,
}

#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    pub row: Row,
    #[command(flatten)]
    pub at: At,
    /// Print the whole row, as scan prints it in this format
    #[arg(long)]
    pub format: Option<ScanFormat>,
    /// Print the whole row as a JSON object, as --format jsonl does
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Print only columns of these groups, and read only those [default: all]
    #[arg(long, value_name = "GROUP[,GROUP…]", value_delimiter = ',')]
    pub groups: Vec<String>,
    /// Print until when the row is there, in UTC, in place of the row; or never if it does not expire
    #[arg(long, conflicts_with_all = ["format", "groups"])]
    pub until: bool,
}

/// A time in UTC, since the beginning of 1970.
fn parse_time(text: &str) -> Result<Duration, String> {
    let time = kit::time::Timestamp::parse(text).and_then(|time| u64::try_from(time.0).ok());
    time.map(Duration::from_micros)
        .ok_or_else(|| "it is no time: write it like 2026-11-29 or 2026-11-29 08:30".to_owned())
}

#[derive(Debug, Args)]
pub struct Put {
    #[command(flatten)]
    pub row: Row,
    /// The rest of the row, as `get` prints it: a tab between columns, a JSON object if rows are JSON, or the bytes of
    /// the value if the table is raw
    #[arg(allow_negative_numbers = true)]
    pub value: Option<OsString>,
    /// Let the row expire after this time: 10m, 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = kit::time::parse_length)]
    pub ttl: Option<Duration>,
    /// Let the row expire at this time: 2026-11-29 or "2026-11-29 08:30" in UTC
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "ttl")]
    pub until: Option<Duration>,
}

/// The name of the function that applies JSON merge patches.
pub const JSON_PATCH: &str = "json-merge-patch";

#[derive(Debug, Args)]
pub struct Merge {
    #[command(flatten)]
    pub row: Row,
    #[command(flatten)]
    pub how: How,
}

/// How a value is changed.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct How {
    /// Add to a counter of eight bytes, the lowest first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub add: Option<i64>,
    /// Append bytes, written as the value of a raw row
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub append: Option<OsString>,
    /// Keep the greater of the value and these bytes
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub max: Option<OsString>,
    /// Keep the lesser of the value and these bytes
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub min: Option<OsString>,
    /// Set a bit, counted from the lowest of the first byte
    #[arg(long, value_name = "N")]
    pub set_bit: Option<u32>,
    /// Apply a JSON merge patch (RFC 7396)
    #[arg(long, value_name = "JSON")]
    pub json_patch: Option<String>,
}

#[derive(Debug, Args)]
pub struct Load {
    /// Directory of the database; made if it does not exist
    pub dir: PathBuf,
    /// Table; made if it does not exist, of raw keys and values
    pub table: String,
    /// File to read, or - for the standard input; it may be compressed (.gz, .zst)
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Remove the rows with the keys that come, one on each line; an absent key is no error
    #[arg(long)]
    pub delete: bool,
    /// Take rows, or with --delete keys, as scan prints them with this --format [default: what the name of the file
    /// says; without one, rows of the kind that was imported, and keys and rows of raw tables as tsv]
    #[arg(long)]
    pub format: Option<TextFormat>,
    /// Rows in each commit; the last may have fewer
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: u64,
    #[command(flatten)]
    pub types: KeyTypes,
}

#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    pub row: Row,
}

/// Which keys are read.
#[derive(Debug, Args)]
pub struct KeyRange {
    /// First key; the last of several columns, or of the fields of a tuple, may be left out
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub from: Option<OsString>,
    /// Key to stop before
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub to: Option<OsString>,
    /// Keys that start with this. A tab after a column says that the column is complete. In a tuple, (17) has whole
    /// fields, and in (17, "Bo"..) the last field goes on
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub prefix: Option<OsString>,
    #[command(flatten)]
    pub types: KeyTypes,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("keys").args(["from", "to", "prefix"]).required(true).multiple(true))]
pub struct DeleteRange {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    #[command(flatten)]
    pub range: KeyRange,
}

#[derive(Debug, Args)]
pub struct SplitOff {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// First key that goes to the new table; the last of several columns may be left out
    #[arg(allow_hyphen_values = true)]
    pub key: OsString,
    /// Name of the new table
    pub new: String,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub types: KeyTypes,
}

#[derive(Debug, Args)]
pub struct Scan {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// Rows in the order of this index; --from, --to and --prefix are keys of the index then, as '("Bonn", 7)'
    #[arg(long, value_name = "INDEX")]
    pub by: Option<String>,
    #[command(flatten)]
    pub range: KeyRange,
    #[command(flatten)]
    pub at: At,
    /// Begin at the end
    #[arg(long)]
    pub reverse: bool,
    /// Print at most this many rows
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub shown: Shown,
    /// Print to a new file, whose name says the format and the compression, as in rows.csv or rows.jsonl.gz
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "out")]
    pub overwrite: bool,
}

#[derive(Debug, Args)]
pub struct Export {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    #[arg(required_unless_present = "all", conflicts_with = "all", requires = "file")]
    pub table: Option<String>,
    /// New file, whose name says the format and the compression, as in people.csv or people.jsonl.gz
    pub file: Option<PathBuf>,
    /// Write each table to a file of its own in this directory, which is made if it does not exist
    #[arg(long, value_name = "OUT", conflicts_with_all = ["from", "to", "prefix", "key_types"])]
    pub all: Option<PathBuf>,
    /// What the files are [default: what the name of the file says; with --all, the format that the table was imported
    /// from, or tsv]
    #[arg(long)]
    pub format: Option<ScanFormat>,
    /// Compress the files
    #[arg(long, value_name = "HOW", requires = "all")]
    pub compress: Option<CompressArg>,
    #[command(flatten)]
    pub range: KeyRange,
    #[command(flatten)]
    pub at: At,
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    /// Print the report as JSON, an object for each table
    #[arg(long)]
    pub json: bool,
}

/// See [`compressed::Compression`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompressArg {
    /// With gzip; the names end in .gz
    Gz,
    /// With Zstandard; the names end in .zst
    Zst,
}

impl From<CompressArg> for compressed::Compression {
    fn from(arg: CompressArg) -> Self {
        match arg {
            CompressArg::Gz => Self::Gzip,
            CompressArg::Zst => Self::Zstd,
        }
    }
}

#[derive(Debug, Args)]
pub struct Count {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    #[command(flatten)]
    pub range: KeyRange,
    #[command(flatten)]
    pub at: At,
    /// Count rows one by one where the indexes give no exact number
    #[arg(long)]
    pub exact: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// What is printed about rows.
#[derive(Debug, Args)]
pub struct Shown {
    /// Print keys only
    #[arg(long)]
    pub keys: bool,
    /// Print only the key and columns of these groups, and read only those [default: all]
    #[arg(long, value_name = "GROUP[,GROUP…]", value_delimiter = ',')]
    pub groups: Vec<String>,
    /// How to print [default: tsv]
    #[arg(long)]
    pub format: Option<ScanFormat>,
}

#[derive(Debug, Args)]
pub struct Nth {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// Number of the row, from 0: of the table, or of the range of keys
    #[arg(value_name = "N")]
    pub number: u64,
    #[command(flatten)]
    pub range: KeyRange,
    #[command(flatten)]
    pub at: At,
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Debug, Args)]
pub struct Sample {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// How many rows, at most
    #[arg(value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub rows: u64,
    /// Seed that decides which rows [default: other rows each time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub range: KeyRange,
    #[command(flatten)]
    pub at: At,
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Debug, Args)]
pub struct Follow {
    /// Directory of the database
    pub dir: PathBuf,
    /// Follow new files only, and not the commits in the logs
    #[arg(long)]
    pub files: bool,
    /// End after this many lines
    #[arg(long, value_name = "N")]
    pub lines: Option<u64>,
    /// Print as JSON, an object a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CompactionWorker {
    /// Directory of the database
    pub dir: PathBuf,
    /// End after this many compactions
    #[arg(long, value_name = "N")]
    pub jobs: Option<u64>,
    /// Print as JSON, an object a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Warm {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    #[command(flatten)]
    pub range: KeyRange,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CreateTable {
    /// Directory of the database; made if it does not exist
    pub dir: PathBuf,
    /// Name of the table
    pub table: String,
    #[command(flatten)]
    pub types: KeyTypes,
    // This field must be the last one, because its help heading applies to all options that come after it.
    #[command(flatten, next_help_heading = NEW_TABLE)]
    pub table_options: TableArgs,
}

#[derive(Debug, Args)]
pub struct DropTable {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
}

#[derive(Debug, Args)]
pub struct RenameTable {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// Its new name
    pub new: String,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScanFormat {
    /// Comma-separated values with quotes (RFC 4180), after a header if the table has names of columns. Rows of a raw
    /// table have the columns key and value, and JSON lines have those of the key and value, the object
    Csv,
    /// Columns with a tab between them, or the key and the value of a raw table; a backslash, tab, LF or CR in them is
    /// written \\, \t, \n or \r, but not in tables of TSV, whose columns have neither tabs nor line ends
    Tsv,
    /// A JSON object on each line. Columns that the key orders as numbers, and the fields of a tuple, are numbers
    Jsonl,
    /// An Arrow file with typed columns, those of `larch sql`; needs the feature `sql`
    Arrow,
    /// A Parquet file with the same columns; needs the feature `parquet`
    Parquet,
}

/// The formats of [`ScanFormat`] that are text, which `load` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// Comma-separated values, with a header if the table has names of columns or is raw
    Csv,
    /// Columns with a tab between them, or the key and the value of a raw table
    Tsv,
    /// A JSON object on each line
    Jsonl,
}

impl ScanFormat {
    /// The format of text, or `None` if the format is not text.
    pub fn text(self) -> Option<TextFormat> {
        match self {
            Self::Csv => Some(TextFormat::Csv),
            Self::Tsv => Some(TextFormat::Tsv),
            Self::Jsonl => Some(TextFormat::Jsonl),
            Self::Arrow | Self::Parquet => None,
        }
    }
}

#[derive(Debug, Args)]
pub struct Shell {
    /// Directory of the database
    pub dir: PathBuf,
}

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct Man {
    /// An existing directory for the pages
    pub dir: PathBuf,
}

#[derive(Debug, Args)]
pub struct Plan {
    /// Rows of the table: 64000000 or 64e6
    #[arg(long, value_name = "NUMBER", value_parser = rows_of_a_plan)]
    pub rows: u64,
    /// Bytes of a row, its key and its value
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub row_bytes: u64,
    /// Bytes of a key [default: 16B]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub key_bytes: Option<u64>,
    /// First bytes of a key that tell it from the key before it [default: those of evenly spread keys, such as
    /// hashes]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub separator_bytes: Option<u64>,
    /// Size of a data page
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "16KiB")]
    pub page: u64,
    /// Size of an index node
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "16KiB")]
    pub node: u64,
    /// Size of a file in the deepest level
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "256MiB")]
    pub file_bytes: u64,
    /// Filters of the files: none, 12 or 20 bits a key
    #[arg(long, value_name = "BITS", value_parser = filters, default_value = "12")]
    pub filters: Filters,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// Parses a number of rows such as `64000000` or `64e6`.
fn rows_of_a_plan(text: &str) -> std::result::Result<u64, String> {
    let whole = || text.parse::<u64>().ok();
    let power = || {
        let (number, power) = text.split_once(['e', 'E'])?;
        number.parse::<u64>().ok()?.checked_mul(10_u64.checked_pow(power.parse().ok()?)?)
    };
    whole().or_else(power).ok_or_else(|| "write a whole number of rows: 64000000 or 64e6".to_owned())
}

#[derive(Debug, Args)]
pub struct Explain {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    #[command(subcommand)]
    pub read: ExplainedRead,
}

/// A read to explain.
#[derive(Debug, Subcommand)]
pub enum ExplainedRead {
    /// Explain reading the row with a key
    Get(ExplainedGet),
    /// Explain reading rows in the order of their keys
    Scan(ExplainedScan),
}

#[derive(Debug, Args)]
pub struct ExplainedGet {
    /// Key as `scan --keys` prints it: a tab between several columns, a tuple as (17, "Bonn"); a backslash is written
    /// \\, but not in keys of TSV
    #[arg(allow_negative_numbers = true)]
    pub key: OsString,
    #[command(flatten)]
    pub types: KeyTypes,
    #[command(flatten)]
    pub how: ExplainedHow,
}

#[derive(Debug, Args)]
pub struct ExplainedScan {
    /// Read the rows in the order of this index. In this case, --from, --to and --prefix are keys of the index.
    /// All groups are read
    #[arg(long, value_name = "INDEX", conflicts_with = "groups")]
    pub by: Option<String>,
    #[command(flatten)]
    pub range: KeyRange,
    /// Begin at the end
    #[arg(long)]
    pub reverse: bool,
    /// Read at most this many rows
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub how: ExplainedHow,
}

/// The options that all subcommands of `explain` have.
#[derive(Debug, Args)]
pub struct ExplainedHow {
    /// Read only these groups [default: all]
    #[arg(long, value_name = "GROUP[,GROUP…]", value_delimiter = ',')]
    pub groups: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Inspect {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table; all of them if left out
    pub table: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Stats {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table; all of them if left out
    pub table: Option<String>,
    /// First key to count
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, requires = "table")]
    pub from: Option<OsString>,
    /// Key to stop before
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, requires = "table")]
    pub to: Option<OsString>,
    /// Show how bytes and rows are spread over about this many ranges of keys
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub buckets: Option<u64>,
    /// Count rows one by one where the indexes give no exact number
    #[arg(long)]
    pub exact: bool,
    #[command(flatten)]
    pub types: KeyTypes,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Metrics {
    /// Directory of the database
    pub dir: PathBuf,
    /// Print in the text format of Prometheus
    #[arg(long)]
    pub prometheus: bool,
}

impl Stats {
    /// Whether the command is about a range of keys.
    pub fn is_of_range(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.buckets.is_some() || self.exact
    }
}

#[derive(Debug, Args)]
pub struct Split {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// How many parts, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub parts: u64,
    /// First key of the first part
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub from: Option<OsString>,
    /// Key that the last part stops before
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub to: Option<OsString>,
    #[command(flatten)]
    pub types: KeyTypes,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").args(["page", "node", "index", "compression", "filters", "filter_prefix", "in_memory", "expire_after", "expire_by", "key_types"]).required(true).multiple(true))]
pub struct Alter {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    #[command(flatten)]
    pub types: KeyTypes,
    #[command(flatten)]
    pub table_options: TableArgs,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CloneTable {
    /// Directory of the database
    pub dir: PathBuf,
    /// Table
    pub table: String,
    /// Name of the second table
    pub new: String,
    /// Clone the table as it was: a name, a version or a time as for --at of `get`; files with newer rows are written
    /// again
    #[arg(long, value_name = "NAME|VERSION|TIME")]
    pub at: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Dump {
    /// File of a database, or its directory
    pub path: PathBuf,
    /// Table whose files are printed, if a directory is given
    pub table: Option<String>,
    /// Print rows too; without this option, a table shows only what is known without reading its files
    #[arg(long)]
    pub rows: bool,
    /// Print all pages of a table, without their rows
    #[arg(long, conflicts_with = "rows")]
    pub pages: bool,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Directory of the database; it stays there afterwards
    #[arg(default_value = "larch-demo")]
    pub dir: PathBuf,
    /// How many rows, each with a 24-byte key and a 100-byte value
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: u64,
    /// Replace a demo that exists
    #[arg(long)]
    pub recreate: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}
