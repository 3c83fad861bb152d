//! Processes of `larch` that end with the test.

use kit::Scratch;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

/// The command `larch` with the arguments `arguments`.
pub fn larch(arguments: &[&str]) -> Command {
    let mut command = Command::new(kit::program::larch("cloud,cluster"));
    command.args(arguments);
    command
}

/// A process that the test has started. It ends when its input is closed, and is killed if the test fails.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a process with its temporary files in `directory`.
    pub fn start(arguments: &[&str], directory: &Path) -> Self {
        let mut command = larch(arguments);
        command.env("TMPDIR", directory);
        command.arg("--stop-with-input").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, input, output }
    }

    /// The next line that the process prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it can be read");
        line.trim_end().to_owned()
    }

    /// Sends the process a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.expect("the program starts").success());
    }

    /// Kills the process.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it ends");
    }

    /// Ends the process, and returns the last output that it printed.
    pub fn stop(mut self) -> String {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        assert!(self.child.wait().expect("it ends").success());
        rest
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // These fail if the process has already ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A scheduler with two executors.
pub struct Cluster {
    scheduler: Process,
    pub executors: [Process; 2],
    pub address: String,
    /// A directory for each executor, removed at the end even if an executor was killed and could not remove its
    /// files.
    scratch: [Scratch; 2],
}

impl Cluster {
    pub fn start() -> Self {
        let scratch = [0, 1].map(|executor| Scratch::new(&format!("ballista-executor-{executor}")));
        let scheduler = ["sql-scheduler", "--listen", "127.0.0.1:0", "--executors", "2"];
        let mut scheduler = Process::start(&scheduler, scratch[0].path());
        let line = scheduler.line();
        let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        let executor = |scratch: &Scratch| {
            Process::start(&["sql-executor", "--scheduler", &address, "--threads", "1"], scratch.path())
        };
        let executors = [executor(&scratch[0]), executor(&scratch[1])];
        assert_eq!(scheduler.line(), "2 executors are ready");
        Self { scheduler, executors, address, scratch }
    }

    /// The directory for the temporary files of an executor.
    pub fn scratch(&self, executor: usize) -> &Path {
        self.scratch[executor].path()
    }

    /// The files with rows that an executor has written for other processes: `DIRECTORY/JOB/STAGE/…`.
    pub fn written(&self, executor: usize) -> Vec<PathBuf> {
        let mut files = Vec::new();
        add_files(self.scratch[executor].path(), &mut files);
        files
    }

    /// A command that asks the executors the statements `sql`, with each scan divided into `threads` parts.
    pub fn command(&self, database: &Path, threads: usize, sql: &str) -> Command {
        let threads = threads.to_string();
        let mut command = larch(&["sql", "--scheduler", &self.address, "--threads", &threads, "--format", "csv"]);
        command.arg(database).arg(sql);
        command
    }

    /// Ends all processes. Returns what each executor has read: partitions, data pages, and pages of groups.
    pub fn stop(self) -> [[u64; 3]; 2] {
        let reads = self.executors.map(|executor| {
            let said = executor.stop();
            let number = |word: &str| {
                let before = said.find(word).map(|at| said[..at].trim_end());
                before.and_then(|text| text.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{said}"))
            };
            if said.is_empty() { [0; 3] } else { [" partitions", " data pages", " pages of groups"].map(number) }
        });
        self.scheduler.stop();
        reads
    }
}

/// Adds the files in a directory and below, where other processes may make and remove files meanwhile.
fn add_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { add_files(&path, files) } else { files.push(path) }
    }
}

/// Runs a command, which must succeed, and returns what it printed.
#[track_caller]
pub fn answer(mut command: Command) -> String {
    answered(&command.output().expect("the program starts"))
}

/// The output of a command, which must have succeeded.
#[track_caller]
pub fn answered(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    let last: Vec<&str> = text.lines().rev().take(4).collect();
    assert!(output.status.success(), "{} after {last:?}", String::from_utf8_lossy(&output.stderr));
    text
}
