//! Processes of `larch`, which end with the test, and what they answer.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The command `larch` with these arguments.
pub fn larch(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larch"));
    command.args(arguments);
    command
}

/// A process that ends with the pipe to its input, also if the test does not come to its end.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = larch(arguments);
        command.arg("--stop-with-input").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, input, output }
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it can be read");
        line.trim_end().to_owned()
    }

    /// Ends it, and gives what it has printed last.
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
        drop(self.input.take());
        // It may have ended before.
        self.child.wait().ok();
    }
}

/// A scheduler with two executors.
pub struct Cluster {
    scheduler: Process,
    executors: [Process; 2],
    pub address: String,
}

impl Cluster {
    pub fn start() -> Self {
        let mut scheduler = Process::start(&["sql-scheduler", "--listen", "127.0.0.1:0", "--executors", "2"]);
        let line = scheduler.line();
        let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
        let executor = || Process::start(&["sql-executor", "--scheduler", &address, "--threads", "1"]);
        let executors = [executor(), executor()];
        assert_eq!(scheduler.line(), "2 executors are ready");
        Self { scheduler, executors, address }
    }

    /// Statements that the executors answer, with scans cut into `threads` parts.
    pub fn command(&self, database: &Path, threads: usize, sql: &str) -> Command {
        let threads = threads.to_string();
        let mut command = larch(&["sql", "--scheduler", &self.address, "--threads", &threads, "--format", "csv"]);
        command.arg(database).arg(sql);
        command
    }

    /// Ends all, and gives what each executor has read: partitions, data pages, pages of groups.
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

/// What a command prints, which ends well.
#[track_caller]
pub fn answer(mut command: Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}
