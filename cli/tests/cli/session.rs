//! A directory for a single test, and a way to run `larch` in this directory.

use kit::Scratch;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A directory that is removed when its test ends. Commands run in this directory, so `db` is enough to name the
/// database.
pub struct Session {
    dir: Scratch,
}

/// The result of a run.
#[derive(Debug)]
pub struct Ran {
    /// The exit code, or `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: String,
}

impl Session {
    pub fn new() -> Self {
        Self {
            dir: Scratch::new_in(Path::new(env!("CARGO_TARGET_TMPDIR")), "cli").expect("a test can make a directory"),
        }
    }

    /// Makes a session with the rows `rows` in table `t`.
    pub fn with(options: &[&str], rows: impl AsRef<[u8]>) -> Self {
        let session = Self::new();
        session.import(options, rows).ok();
        session
    }

    /// Writes a file in the session's directory.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.dir.join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the directory")).expect("a test can make a directory");
        std::fs::write(path, bytes).expect("a test can write a file");
    }

    /// Flips all bits of one byte in a file.
    pub fn spoil(&self, name: &str, at: usize) {
        let path = self.dir.join(name);
        let mut bytes = std::fs::read(&path).expect("a test can read its files");
        bytes[at] ^= 0xFF;
        std::fs::write(path, bytes).expect("a test can write a file");
    }

    /// The offset at which `text` begins in a file.
    pub fn place_of(&self, name: &str, text: &str) -> usize {
        let bytes = std::fs::read(self.dir.join(name)).expect("a test can read its files");
        bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect("the file has this text")
    }

    /// Whether there is a file or a directory called `name`.
    pub fn has(&self, name: &str) -> bool {
        self.dir.join(name).exists()
    }

    /// The content of a file.
    #[track_caller]
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The path of a file, for code outside of the session.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The names of the files in the session's directory, in sorted order.
    pub fn names(&self) -> Vec<String> {
        self.names_in("")
    }

    /// The names of the files in a directory, in sorted order.
    pub fn names_in(&self, directory: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.join(directory)).expect("a test can list its directory");
        let names = entries.map(|entry| entry.expect("a test can list its directory").file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().expect("names are ASCII")).collect();
        names.sort();
        names
    }

    /// Opens `db` as a program with the library would.
    pub fn database(&self) -> larch::Database {
        larch::Database::open(self.dir.join("db")).expect("a test can open its database")
    }

    /// A command, which the caller may change before it runs.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larch"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().expect("larch was built");
        Ran::new(output)
    }

    /// Runs a command with the bytes `input` on its standard input.
    pub fn run_with(&self, args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        Self::feed(self.command(args), input.as_ref())
    }

    /// Like [`Self::run_with`], but runs the program `starter`, which gets the command as its last arguments and
    /// starts it.
    pub fn run_under(&self, starter: &[&str], args: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let mut command = Command::new(starter[0]);
        command.args(&starter[1..]).arg(env!("CARGO_BIN_EXE_larch")).args(args).current_dir(self.dir.path());
        Self::feed(command, input.as_ref())
    }

    fn feed(mut command: Command, input: &[u8]) -> Ran {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("larch was built");
        let mut stdin = child.stdin.take().expect("it was asked for");
        if let Err(error) = stdin.write_all(input) {
            // A command that refuses its arguments may end without reading its input.
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        }
        drop(stdin);
        Ran::new(child.wait_with_output().expect("it was started"))
    }

    /// Starts a command. The caller writes its input and reads its output while it runs.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command_for_signals(args).spawn().expect("env is there, and larch was built")
    }

    /// Makes a command that ^C can end. The caller may change the command before starting it. The caller then
    /// writes its input and reads its output.
    pub fn command_for_signals(&self, args: &[&str]) -> Command {
        // A script that starts tests in the background makes them ignore ^C. Without `env`, larch would also
        // ignore it.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(env!("CARGO_BIN_EXE_larch")).args(args).current_dir(self.dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The names of the files in `db` that end with `extension`.
    pub fn files(&self, extension: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.dir.join("db")) else { return Vec::new() };
        let names = entries.map(|entry| entry.expect("a test can list its directory").file_name());
        let names = names.map(|name| name.into_string().expect("names are ASCII"));
        let mut names: Vec<String> = names.filter(|name| name.ends_with(extension)).collect();
        names.sort();
        names
    }

    /// Checks `db`. There must be no damage, and every SST in the directory must belong to a table.
    #[track_caller]
    pub fn is_sound(&self) {
        // A process that writes removes the files that a dead process has left.
        self.database().close().expect("a test can close its database");
        self.run(&["check", "db"]).ok();
        // The database is opened read-only, so that no compaction runs between reading the tables and listing the
        // files.
        let database = larch::Database::builder(self.dir.join("db")).read_only(true).open();
        let files = database.expect("a test can open its database").sst_files();
        let known: Vec<String> = files.into_iter().map(|(name, _)| name).collect();
        assert_eq!(known, self.files(".sst"), "tables have other files than the disk");
    }

    /// Imports rows from standard input into table `t` of `db`.
    pub fn import(&self, options: &[&str], rows: impl AsRef<[u8]>) -> Ran {
        let mut args = vec!["import", "db", "t", "-"];
        args.extend_from_slice(options);
        self.run_with(&args, rows)
    }

    /// Scans table `t` of `db`.
    pub fn scan(&self, options: &[&str]) -> String {
        let mut args = vec!["scan", "db", "t"];
        args.extend_from_slice(options);
        self.run(&args).ok()
    }
}

impl Ran {
    pub fn new(output: std::process::Output) -> Self {
        let err = String::from_utf8(output.stderr).expect("messages are UTF-8");
        Self { code: output.status.code(), out: output.stdout, err }
    }

    /// The output of a command, which must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""));
        String::from_utf8(self.out).expect("this output is UTF-8")
    }

    /// Checks that a command failed with exit code `code` and printed nothing to standard output. Its error must
    /// contain all of `parts`.
    #[track_caller]
    pub fn fails(self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.out.is_empty(), "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in {:?}", self.err);
        }
    }
}
