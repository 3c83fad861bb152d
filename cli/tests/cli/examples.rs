//! Runs every example of every help text and of every guide as it is written, in a directory that contains the
//! files that it names.
//!
//! An example that measures for seconds or minutes is not run, but the program must be able to parse it. An example
//! that goes on until ^C gets ^C when it has shown that it works. Some examples cannot work in the default build.
//! These are in the list below, each with the reason. If an entry of the list matches no example, the test fails.

use crate::bench_stops::interrupt;
use crate::session::{Ran, Session};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Examples that a test cannot run, because they need something that a test does not have. The first text of an
/// entry is the beginning of the example's line. If this text has `://`, it may stand anywhere in the line. The
/// second text says what the example needs.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo ", "it builds this tree, or runs its tests"),
    ("s3://", "a store: the feature `cloud`, and the tests of cloud/remote"),
    ("larch sql", "a query engine: the feature `sql`"),
    ("export AWS_REGION", "credentials of a store"),
    ("(umask 077; openssl", "only what measures needs the secret"),
    ("ls", "what is in a clone of the tree"),
    ("REWRITE=1 cargo", "tests of the tree"),
    ("git diff", "tests of the tree"),
];

/// The guide whose examples need the feature `sql`. A test of query/datafusion runs them.
const SQL_GUIDE: &str = "docs/guide/sql.md";

/// An example, and the place where it was found.
#[derive(Clone, Debug)]
struct Example {
    /// Where the example was found: the name of a command, such as `import`, or of a file, such as
    /// `guide/command-line.md`.
    place: String,
    line: String,
}

/// The examples in the help of all commands.
fn of_help() -> Vec<Example> {
    fn collect(command: &clap::Command, path: &str, examples: &mut Vec<Example>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let mut lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        while let Some(line) = lines.next().filter(|line| line.starts_with("  ")) {
            examples.push(Example { place: path.to_owned(), line: line.trim().to_owned() });
        }
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            collect(below, format!("{path} {}", below.get_name()).trim(), examples);
        }
    }
    let mut examples = Vec::new();
    let command = larch_cli::command();
    collect(&command, "", &mut examples);
    examples
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is in the tree").to_owned()
}

/// The lines in the guides that a shell can run. They begin with `$ `, and continue on the next line after `|` or
/// within quotes.
fn of_guides() -> Vec<Example> {
    let guides = std::fs::read_dir(root().join("docs/guide")).expect("the tree has guides");
    let mut places: Vec<String> = guides
        .map(|entry| format!("docs/guide/{}", entry.expect("the tree has guides").file_name().to_string_lossy()))
        .chain(["README.md", "CONTRIBUTING.md", "docs/scale.md", "docs/performance.md"].map(str::to_owned))
        .filter(|place| place.ends_with(".md"))
        .collect();
    places.sort();
    let mut examples = Vec::new();
    for place in places {
        let text = std::fs::read_to_string(root().join(&place)).expect("it is in the tree");
        let (mut language, mut open) = (None, String::new());
        for line in text.lines() {
            if let Some(fence) = line.strip_prefix("```") {
                assert!(open.is_empty(), "{place}: a line does not end: {open}");
                language = if language.is_some() { None } else { Some(fence.to_owned()) };
                continue;
            }
            let begins = match language.as_deref() {
                Some("console") => line.strip_prefix("$ "),
                Some("sh") => Some(line),
                _ => continue,
            };
            match begins {
                Some(begin) if open.is_empty() => open = begin.to_owned(),
                _ if !open.is_empty() => open += &format!("\n{line}"),
                // This line is output of an example.
                _ => continue,
            }
            let is_open = open.trim_end().ends_with(['|', '\\']) || open.matches('"').count() % 2 == 1;
            if !is_open {
                examples.push(Example { place: place.clone(), line: std::mem::take(&mut open) });
            }
        }
    }
    examples
}

/// Whether an example measures. If so, the program only has to parse it.
fn measures(line: &str) -> bool {
    line.contains("larch bench ")
}

/// Makes a directory for the examples of a place, with the files that they name.
fn world(place: &str) -> Session {
    let session = Session::new();
    let people: String = (1..=2_100).map(|id| format!("{id},name {id},{},city {}\n", 20 + id, id % 5)).collect();
    session.file("people.csv", format!("id,name,age,city\n{people}"));
    let trips: String = (1..=20).map(|day| format!("Bonn\t2024-05-{day:02}\twalk\n")).collect();
    session.file("trips.tsv", format!("city\tday\tkind\n{trips}"));
    session.file("events.jsonl", "{\"id\":\"e1\",\"address\":{\"street\":\"Main\"}}\n{\"id\":\"e2\",\"n\":2}\n");
    session.file("monday.csv", "id,name,age,city\n1,Ada,36,London\n2,Bob,40,Bonn\n");
    session.file("tuesday.csv", "id,name,age,city\n2,Bob,41,Bonn\n3,Cy,50,Rome\n");
    session.file("offers.csv", "id,name,until\n1,pears,2999-12-31\n2,apples,\n");
    session.file("rows.csv", "91,Ada,36,London\n92,Bob,40,Bonn\n");
    session.file("rows.tsv", "91\tAda\t36\tLondon\n92\tBob\t40\tBonn\n");
    session.file("contents.tsv", "usr/bin/grep\tutils/grep\nusr/bin/gregorio\ttex/texlive\n");
    let cards: String = ["000050", "00232E", "002330", "38BE00", "9C1C00"]
        .map(|id| format!("MA-L,{id},Maker of {id},Street\n"))
        .concat();
    session.file("oui.csv", format!("Registry,Assignment,Organization Name,Organization Address\n{cards}"));
    // Replacements for programs that may not be installed or do not end.
    session.file("stubs/jq", "#!/bin/sh\ncat > /dev/null\n");
    session.file("stubs/tail", "#!/bin/sh\n[ \"$1\" = -f ] && shift && exec cat \"$@\"\nexec /usr/bin/tail \"$@\"\n");
    session.file("stubs/lz4cat", "#!/bin/sh\nexec cat \"$@\"\n");
    // Debian's lists of packages, which are two in the example. The program above reads them.
    session.file("debian_bookworm_main_Contents-all.lz4", "usr/bin/gregorio  tex/texlive\nusr/share/two words   x/y\n");
    session.file("debian_bookworm_main_Contents-amd64.lz4", "usr/bin/grep   utils/grep\n");
    let setup = match place {
        "import" | "plan" | "create-table" | "put" | "demo" => "gzip -k events.jsonl",
        "docs/guide/command-line.md" => {
            "larch demo --rows 1000 && larch import people people people.csv --key id && larch import cards people people.csv --key id:int && \
             larch import people events events.jsonl --key id"
        }
        _ => {
            "larch import db people people.csv --key id:int --groups 'hot:name,age;cold:*' && \
             larch import db trips trips.tsv --header --key city,day && \
             larch import db events events.jsonl --key id && \
             printf 'milk\\tone\\nold1\\tx\\nold2\\tx\\n' | larch load db notes && \
             larch create-table db orders --key-types 'u32, string' && larch put db orders '(17, \"Bonn\")' paid"
        }
    };
    let more = match place {
        "build-files" => "rm -rf db && larch import db people people.csv --key id:int",
        "ingest" => {
            "rm -rf db && larch import db people people.csv --key id:int && larch build-files monday.csv --key id:int --out monday && \
             larch build-files tuesday.csv --like db people --out tuesday && mkdir -p mnt/disk && cp -r monday mnt/disk/shard-1"
        }
        "put" => {
            "cut -d, -f1-3 people.csv > short.csv && larch import db people short.csv --key id:int && \
             larch import db events events.jsonl --key id"
        }
        "create-table" => "true",
        "compaction-worker" => "rm -rf db && larch load db people < rows.tsv",
        "follow" => {
            "printf 'ada\\t36\\n' | larch load db letters && larch rename-table db people old && larch rename-table db letters people"
        }
        "index" | "index create" => {
            "rm -rf db && awk -F, '{ print $0 \",\" (NR == 1 ? \"email\" : $1 \"@here\") }' people.csv > mails.csv && \
             larch import db people mails.csv --key id:int && larch import db events events.jsonl --key id"
        }
        "changes" => "larch retain db --everything && larch put db notes new x",
        "diff" | "revert" => "larch keep db before-the-migration && larch delete-range db people --from 3 --to 5",
        "backup" => "mkdir -p mnt/disk && for i in 1 2 3 4 5 6; do larch backup db mnt/disk/backups; done",
        "docs/guide/command-line.md" => "mkdir -p mnt/disk",
        _ => "true",
    };
    for line in ["chmod +x stubs/*", setup, more] {
        let ran = shell(&session, line);
        assert_eq!(ran.code, Some(0), "{place}: {line}: {}", ran.err);
    }
    session
}

/// Runs a line in a shell.
fn shell(session: &Session, line: &str) -> Ran {
    Ran::new(in_shell(session, line).output().expect("there is a shell"))
}

/// A shell that runs a line in the directory of a session, and that ^C can end. The shell finds the program `larch`
/// and the replacements for other programs.
fn in_shell(session: &Session, line: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_larch")).parent().expect("it is in a directory");
    let path = format!(
        "{}:{}:{}",
        session.path("stubs").display(),
        program.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut command = Command::new("env");
    command
        .args(["--default-signal=INT", "bash", "-o", "pipefail", "-c", line])
        .env("PATH", path)
        .env("HOME", session.path(""))
        .current_dir(session.path(""))
        .stdin(Stdio::null());
    command
}

/// Whether an example goes on until ^C, or until another process has done something.
fn is_endless(line: &str) -> bool {
    let begins = |command: &str| line.starts_with(command);
    begins("larch follow ")
        || begins("larch compaction-worker ")
        || begins("larch changes ") && line.contains(" --follow")
}

/// Starts an example that goes on until ^C, waits until it has shown that it works, and sends ^C.
fn interrupted(session: &Session, line: &str) -> Ran {
    let mut command = in_shell(session, &format!("exec {line}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("there is a shell");
    let mut first = String::new();
    if !line.starts_with("larch compaction-worker ") {
        // What it has shown is what the database has now.
        BufReader::new(child.stdout.take().expect("it was asked for")).read_line(&mut first).expect("it prints text");
    } else {
        let database = line.split(' ').nth(2).expect("it names a database");
        while !is_beating(session, database) && is_running(&mut child) {
            std::thread::yield_now();
        }
    }
    if is_running(&mut child) {
        interrupt(&child);
    }
    let mut ran = Ran::new(child.wait_with_output().expect("it was started"));
    ran.out.splice(0..0, first.into_bytes());
    ran
}

fn is_running(child: &mut Child) -> bool {
    child.try_wait().expect("it was started").is_none()
}

/// Whether a compaction worker has said that it lives.
fn is_beating(session: &Session, database: &str) -> bool {
    let entries = std::fs::read_dir(session.path(database).join("workers"));
    entries.is_ok_and(|mut all| {
        all.any(|entry| entry.is_ok_and(|entry| entry.file_name().as_encoded_bytes().ends_with(b".beat")))
    })
}

/// Parses the arguments of a line as the program would, without running it. Returns the error, if any.
fn understand(line: &str) -> Option<String> {
    // The words of the last command on the line, split as a shell splits them.
    let from = line.find("larch bench ").expect("it measures");
    let until = line[from..].find(" (on one").or(line[from..].find(" (at the")).map_or(line.len(), |at| from + at);
    let output = Command::new("bash").args(["-c", &format!("printf '%s\\0' {}", &line[from..until])]).output();
    let words = String::from_utf8(output.expect("there is a shell").stdout).expect("it is text");
    let words = words.split_terminator('\0').map(std::ffi::OsString::from);
    larch_cli::command().try_get_matches_from(larch_cli::arguments(words)).err().map(|error| error.to_string())
}

#[test]
fn every_example_of_help_and_guides_works() {
    let examples = [of_help(), of_guides()].concat();
    assert!(examples.len() > 100, "{} examples were found", examples.len());
    let (mut used, mut faults, mut run) = (BTreeSet::new(), Vec::new(), 0);
    let mut world_of: Option<(String, Session)> = None;
    for Example { place, line } in &examples {
        if place == SQL_GUIDE {
            continue;
        }
        let reason = NOT_RUN.iter().find(|(part, _)| match part {
            // A URL may be anywhere in the line.
            part if part.contains("://") => line.contains(part),
            part if part.len() == 2 => line == part,
            part => line.starts_with(part),
        });
        if let Some((part, _)) = reason {
            used.insert(*part);
            continue;
        }
        run += 1;
        if measures(line) {
            if let Some(why) = understand(line) {
                faults.push(format!("{place}: {line}\n{why}"));
            }
            continue;
        }
        if world_of.as_ref().is_none_or(|(of, _)| of != place) {
            world_of = Some((place.clone(), world(place)));
        }
        let (_, session) = world_of.as_ref().expect("it was made");
        let here = line
            .replace("/usr/share/ieee-data/", "")
            .replace("/mnt/disk", "mnt/disk")
            .replace("/var/lib/apt/lists", ".");
        let ran = if is_endless(&here) { interrupted(session, &here) } else { shell(session, &here) };
        if ran.code != Some(0) {
            faults.push(format!("{place}: {line}\n  exit code {:?}: {}", ran.code, ran.err));
        }
    }
    let unused: Vec<_> = NOT_RUN.iter().filter(|(part, _)| !used.contains(part)).collect();
    assert!(unused.is_empty(), "no text has these: {unused:?}");
    assert!(faults.is_empty(), "{} of {run} examples do not work:\n{}", faults.len(), faults.join("\n"));
}
