//! The parent's side of the child processes, one per engine. Only one of them runs at a time; the others are
//! stopped, so that their background work does not disturb the measurement.

#![allow(clippy::disallowed_methods, reason = "starts processes; never simulated")]

use super::memory_limit::MemoryLimit;
use super::orders::{Answer, Order, Sample};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A child process that holds one engine.
pub struct Peer {
    name: String,
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// What its database holds, by [`Peer::bring`]; empty if that is not known.
    state: String,
    /// Kept for as long as the process lives.
    _limit: Option<MemoryLimit>,
}

impl Peer {
    /// Starts this program again as a peer with the store `target`, under the memory limit `limit`, and stops it.
    pub fn start(name: &str, target: &str, limit: Option<MemoryLimit>) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let mut child = Command::new(program)
            .args(["bench", "peer", target])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start a process for {name}: {error}"))?;
        if let Some(limit) = &limit {
            limit.admit(child.id())?;
        }
        let orders = child.stdin.take().expect("it was piped");
        let answers = BufReader::new(child.stdout.take().expect("it was piped"));
        let mut peer = Self { name: name.to_owned(), child, orders, answers, state: String::new(), _limit: limit };
        // Wait for its first answer: by then it has arranged to die with this process. Stopped earlier, it might
        // outlive us.
        peer.answer()??;
        peer.signal(Signal::STOP)?;
        Ok(peer)
    }

    /// Continues the peer until it has carried out `order`, and stops it again.
    pub fn obey(&mut self, order: &Order) -> Result<Sample, String> {
        self.signal(Signal::CONT)?;
        let mut line = serde_json::to_string(order).expect("orders are plain data");
        line.push('\n');
        self.orders
            .write_all(line.as_bytes())
            .map_err(|error| format!("{}: its process has ended: {error}", self.name))?;
        let answer = self.answer()?;
        // Stop it even if the order failed: its background work would disturb the other peers.
        self.signal(Signal::STOP)?;
        answer.map_err(|why| format!("{}: {why}", self.name))
    }

    /// Does `make`, unless it was done before and nothing else since.
    pub fn bring(&mut self, state: &str, make: impl FnOnce(&mut Self) -> Result<(), String>) -> Result<(), String> {
        if self.state != state {
            make(self)?;
            state.clone_into(&mut self.state);
        }
        Ok(())
    }

    /// Opens an empty table and fills it. The answer has the settings of the store.
    pub fn filled_anew(&mut self, fill: &Order, state: &str) -> Result<Sample, String> {
        self.state.clear();
        self.obey(&Order::Open { anew: true })?;
        let sample = self.obey(fill)?;
        state.clone_into(&mut self.state);
        Ok(sample)
    }

    /// Reads the next answer.
    fn answer(&mut self) -> Result<Answer, String> {
        let ended = |why: String| format!("{}: {why}", self.name);
        let mut answer = String::new();
        let read = self.answers.read_line(&mut answer).map_err(|error| ended(error.to_string()))?;
        if read == 0 {
            let how = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(format!("{}: its process ended without an answer: {how}", self.name));
        }
        serde_json::from_str(&answer).map_err(|error| ended(format!("cannot read its answer `{answer}`: {error}")))
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        let process = Pid::from_child(&self.child);
        kill_process(process, signal).map_err(|error| format!("{}: cannot signal its process: {error}", self.name))
    }
}

/// The processes of one stage of a comparison.
#[derive(Default)]
pub struct Herd {
    stage: String,
    peers: Vec<(&'static str, Result<Peer, String>)>,
}

impl Herd {
    /// The process of `engine` in `stage`. When another stage begins, the processes of the one before are ended, and
    /// `start` starts those of the new one.
    pub fn peer(
        &mut self,
        stage: &str,
        engine: &str,
        start: impl FnOnce() -> Vec<(&'static str, Result<Peer, String>)>,
    ) -> Result<&mut Peer, String> {
        if self.stage != stage {
            self.peers.clear();
            self.peers = start();
            stage.clone_into(&mut self.stage);
        }
        let peer = self.peers.iter_mut().find(|(name, _)| *name == engine);
        let (_, peer) = peer.ok_or_else(|| format!("{engine} does not take part in {stage}"))?;
        peer.as_mut().map_err(|why| why.clone())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // These fail if the process has already ended, which is fine.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
