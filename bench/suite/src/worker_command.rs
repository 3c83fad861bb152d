//! `larch bench worker`: waits for coordinators and does shares of their runs, one run at a time. It accepts no
//! task before the other side has proven that it knows the secret.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a process of the real machine")]

use crate::args::tpcc::TpccCommand;
use crate::args::{Measurement, RowsCommand, WorkerArgs};
use crate::ending::Ending;
use crate::stop::{Breaks, Stop};
use crate::workers::Process;
use crate::workers::lines::{Lines, Writer};
use crate::workers::protocol::{Challenge, FIRST_BYTES, Failed, FromCoordinator, FromWorker, Outcome, TASK_BYTES};
use crate::workers::secret::Secret;
use crate::{Stores, kv_command, results, rows_command, say, tpcc_command, ycsb_command};
use clap::Parser;
use harness::report::Environment;
use harness::{Failure, Interval, Share};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Time for a client to prove that it knows the secret. No other client is served meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a waiting worker checks for ^C.
const LOOK: Duration = Duration::from_millis(20);

/// Parses the run that a coordinator asks for.
#[derive(Debug, Parser)]
#[command(name = "larch bench", no_binary_name = true)]
struct Asked {
    #[command(subcommand)]
    what: Measurement,
}

/// Serves coordinators, one after the other.
pub fn run(args: &WorkerArgs, stores: Stores<'_>) -> Result<Ending, Failure> {
    let secret = Secret::find(args.secret_file.as_deref())?;
    let listener = harness::listen("--listen", &args.listen)?;
    let address = listener.local_addr().map_err(|error| Failure::session("worker", error.to_string()))?;
    let breaks = Breaks::catch()?;
    say(&format!("larch: a worker listens at {address}"));
    if !address.ip().is_loopback() {
        say(
            "larch: other machines can connect. Nothing is encrypted: use a network of your own, or loopback and a tunnel",
        );
    }
    loop {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            // The client has already closed the connection: wait for the next one.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(Failure::session("worker", format!("{address}: {error}"))),
        };
        match admit(stream, &secret) {
            Ok((lines, writer)) => {
                say(&format!("larch: a coordinator at {peer}"));
                let stop = breaks.begin();
                let mut has_task = false;
                let ended = work(lines, writer, stores, &stop, &mut has_task);
                let is_over = breaks.end();
                say(&format!("larch: {}", ended.unwrap_or_else(|why| why)));
                match is_over {
                    true => return Ok(Ending::Interrupted),
                    false if args.once && has_task => return Ok(Ending::Good),
                    false => {}
                }
            }
            Err(why) => say(&format!("larch: {peer} is refused: {why}")),
        }
    }
}

/// Makes the other side prove that it knows the secret, and proves it in return.
fn admit(stream: TcpStream, secret: &Secret) -> Result<(Lines, Writer), String> {
    let deadline = Instant::now() + PATIENCE;
    let mut lines = Lines::new(stream).map_err(|error| error.to_string())?;
    let mut writer = lines.writer().map_err(|error| error.to_string())?;
    let challenge = Challenge::new();
    writer.write(&FromWorker::Challenge(challenge.clone()))?;
    let answer = lines.read(FIRST_BYTES, Some(deadline));
    let welcome = answer.and_then(|answer: FromCoordinator| challenge.check(&answer, secret));
    match welcome {
        Ok(welcome) => {
            writer.write(&welcome)?;
            Ok((lines, writer))
        }
        Err(why) => {
            // The coordinator may be gone already, so ignore errors.
            writer.write(&FromWorker::Refused { why: why.clone() }).unwrap_or_default();
            writer.finish();
            Err(why)
        }
    }
}

/// Carries out the coordinator's task, and returns how it ended as text. Sets `has_task` when a task arrives.
fn work(
    mut lines: Lines,
    writer: Writer,
    stores: Stores<'_>,
    stop: &Stop,
    has_task: &mut bool,
) -> Result<String, String> {
    let (args, share) = match lines.read(TASK_BYTES, None)? {
        FromCoordinator::Task { args, share } => (args, share),
        FromCoordinator::Stop => return Ok("the coordinator has ended".to_owned()),
        FromCoordinator::Answer { .. } | FromCoordinator::Go => return Err("it gives no task".to_owned()),
    };
    *has_task = true;
    say(&format!("larch: share {share} of: {}", shown(&args)));
    std::thread::scope(|scope| {
        let (send, go) = channel();
        let listening = scope.spawn(|| listen(lines, stop, send));
        let link = Link { writer: std::cell::RefCell::new(writer), go, stop };
        let ended = asked(&args).and_then(|what| do_share(&what, share, stores, &link));
        let (text, last) = match ended {
            Ok((text, outcome)) => (text, FromWorker::Result(Box::new(outcome))),
            Err(failure) => (failure.text.clone(), FromWorker::Failed(Failed::of(&failure))),
        };
        let said = link.writer.borrow_mut().write(&last);
        // After this, wait until the coordinator has read the last message and closed the connection.
        link.writer.borrow().finish();
        if said.is_err() {
            link.writer.borrow().end();
        }
        listening.join().expect("it does not panic");
        match said {
            Ok(()) => Ok(text),
            Err(why) => Err(format!("the coordinator is lost: {why}; {text}")),
        }
    })
}

/// The arguments without passwords.
fn shown(args: &[String]) -> String {
    args.iter().map(|arg| harness::without_password(arg)).collect::<Vec<_>>().join(" ")
}

/// A short description of this machine.
fn machine() -> String {
    let machine = Environment::gather(results::VERSION, Path::new(".")).machine;
    format!("{} processors, {} {}, larch {}", machine.processors, machine.system, machine.kernel, results::VERSION)
}

/// Relays the coordinator's `Go`. Stops the run on any other message, or when the connection ends.
fn listen(mut lines: Lines, stop: &Stop, go: Sender<()>) {
    loop {
        match lines.read(TASK_BYTES, None) {
            // If the run has already failed, its thread has dropped the receiver, and the send has no effect.
            Ok(FromCoordinator::Go) => go.send(()).unwrap_or_default(),
            Ok(_) | Err(_) => {
                stop.press();
                break;
            }
        }
    }
    drop(go);
    // Read until the coordinator closes the connection, which it does after our result.
    while lines.read::<FromCoordinator>(TASK_BYTES, None).is_ok() {}
}

/// The connection to the coordinator during a run.
struct Link<'l> {
    writer: std::cell::RefCell<Writer>,
    go: Receiver<()>,
    stop: &'l Stop,
}

impl Link<'_> {
    /// Sends a message. If the coordinator is gone, stops the run, because its result cannot be delivered.
    fn say(&self, what: &FromWorker) {
        if self.writer.borrow_mut().write(what).is_err() {
            self.stop.press();
        }
    }

    fn begin(&self) {
        self.say(&FromWorker::Ready);
        loop {
            match self.go.recv_timeout(LOOK) {
                Ok(()) => return self.say(&FromWorker::Begun),
                Err(RecvTimeoutError::Timeout) if !self.stop.is_pressed() => {}
                // Stopped before it began. The run sees this in `stop`.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn watch(&self, interval: &Interval) {
        for late in &interval.told_late {
            self.say(&FromWorker::Late(Box::new(late.clone())));
        }
        self.say(&FromWorker::Progress(Box::new(interval.clone())));
    }
}

fn asked(args: &[String]) -> Result<Measurement, Failure> {
    let asked = Asked::try_parse_from(args).map_err(|error| Failure::session("target", error.to_string()))?;
    Ok(asked.what)
}

/// Does a share of a run. Returns the text to print, and the message for the coordinator.
fn do_share(
    what: &Measurement,
    share: Share,
    stores: Stores<'_>,
    link: &Link<'_>,
) -> Result<(String, Outcome), Failure> {
    let (mut begin, mut watch) = (|| link.begin(), |interval: &Interval| link.watch(interval));
    let process = Process { share, stop: link.stop, metrics: None, begin: &mut begin, watch: &mut watch };
    let ran = match what {
        Measurement::Tpcc(TpccCommand::Run(args)) => tpcc_command::measured(args, stores.tpcc, process)?,
        Measurement::Ycsb(args) => ycsb_command::measured(args, stores.key_value, process)?,
        Measurement::Kv(args) => kv_command::measured(args, stores.partitions, process)?,
        Measurement::Rows(RowsCommand::Run(args)) => {
            let report = rows_command::measured(args, stores.row_access, process)?;
            let text = format!("{} rows in {:.3} s", report.rows(), report.seconds());
            return Ok((text, Outcome::new(&report, link.stop.is_pressed(), machine())));
        }
        _ => return Err(Failure::session("target", "a worker does shares of runs, and this is none")),
    };
    let (operations, nanos) = (ran.run.measured.operations, ran.run.measured.nanos);
    let text = format!("{operations} operations in {:.3} s", nanos as f64 / 1e9);
    let is_early = ran.is_lost || ran.run.measured.interrupted;
    Ok((text, Outcome::new(&ran, is_early, machine())))
}
