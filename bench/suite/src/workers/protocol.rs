//! The messages between coordinator and worker: each is a JSON value on a line.

use super::secret::{Secret, Side, nonce};
use harness::{Failure, Interval, Share};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the protocol, which must be the same on both sides.
pub const PROTOCOL: u32 = 1;

/// The most bytes in a line before the other side has proven that it knows the secret. After the proof, a line of
/// a coordinator may have `TASK_BYTES` bytes.
pub const FIRST_BYTES: usize = 4 << 10;
pub const TASK_BYTES: usize = 1 << 20;
/// The most bytes in a line of a worker after the proof. For each second and kind of request, the result of a long
/// run contains some kilobytes of histograms.
pub const RESULT_BYTES: usize = 64 << 30;

/// A message from a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// The first line.
    Challenge(Challenge),
    /// The answer of a worker that accepts the coordinator: the proof that the worker knows the secret.
    Welcome { proof: String },
    /// The worker refuses to do anything for the coordinator. `why` is the reason.
    Refused { why: String },
    /// The target is open, and all clients have a session.
    Ready,
    /// The clients have begun.
    Begun,
    /// An interval has ended.
    Progress(Box<Interval>),
    /// Measurements that belong to an interval that was already sent, because they came too late for it.
    Late(Box<Interval>),
    /// The run has ended.
    Result(Box<Outcome>),
    /// The worker has no result.
    Failed(Failed),
}

/// A message from a coordinator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromCoordinator {
    /// The answer to the challenge.
    Answer { protocol: u32, nonce: String, proof: String },
    /// The work: the arguments of `larch bench`, and the share of the run.
    Task { args: Vec<String>, share: Share },
    /// The clients may begin.
    Go,
    /// The run must end.
    Stop,
}

/// Asks the process that connects to prove that it knows the secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Challenge {
    /// The worker's version of the protocol, [`PROTOCOL`].
    pub protocol: u32,
    /// A random number that was never drawn before.
    pub nonce: String,
}

/// The result of a share.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The result in the format of its workload.
    result: Value,
    /// Whether the worker ended before its run was complete, because something was lost or the run was interrupted.
    pub is_early: bool,
    /// The machine on which the result was measured.
    pub machine: String,
}

/// Why the worker has no result.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failed {
    /// Whether the arguments are wrong.
    is_usage: bool,
    text: String,
}

impl Outcome {
    /// The message that carries a result.
    pub fn new<R: Serialize>(result: &R, is_early: bool, machine: String) -> Self {
        Self { result: serde_json::to_value(result).expect("every result can be written"), is_early, machine }
    }

    /// The decoded result.
    ///
    /// # Errors
    ///
    /// Fails if the result belongs to another workload.
    pub fn result<R: DeserializeOwned>(self) -> Result<R, String> {
        serde_json::from_value(self.result).map_err(|error| format!("its result is none that is known here: {error}"))
    }
}

impl Failed {
    /// A message with the reason `failure`.
    pub fn of(failure: &Failure) -> Self {
        Self { is_usage: failure.kind == "target", text: failure.text.clone() }
    }

    /// The failure of a worker with the address of this worker.
    pub fn failure(&self, address: &str) -> Failure {
        let kind = if self.is_usage { "target" } else { "worker" };
        Failure::session(kind, format!("worker {address}: {}", self.text))
    }
}

impl Challenge {
    /// A challenge with a new random number.
    pub fn new() -> Self {
        Self { protocol: PROTOCOL, nonce: nonce() }
    }

    /// Returns the coordinator's answer, and a random number. The worker must use this number in its own proof.
    ///
    /// # Errors
    ///
    /// Fails if the worker speaks another version of the protocol.
    pub fn answer(&self, secret: &Secret) -> Result<(FromCoordinator, String), String> {
        check_protocol(self.protocol)?;
        let nonce = nonce();
        let proof = secret.proof(Side::Coordinator, &self.nonce, &nonce);
        Ok((FromCoordinator::Answer { protocol: PROTOCOL, nonce: nonce.clone(), proof }, nonce))
    }

    /// The worker's reply to an answer. The answer must prove that the coordinator knows the secret.
    ///
    /// # Errors
    ///
    /// Fails if it does not prove this.
    pub fn check(&self, answer: &FromCoordinator, secret: &Secret) -> Result<FromWorker, String> {
        let FromCoordinator::Answer { protocol, nonce, proof } = answer else {
            return Err("it does not answer the challenge".to_owned());
        };
        check_protocol(*protocol)?;
        match secret.is_proven(Side::Coordinator, &self.nonce, nonce, proof) {
            true => Ok(FromWorker::Welcome { proof: secret.proof(Side::Worker, &self.nonce, nonce) }),
            false => Err("its secret is another one".to_owned()),
        }
    }
}

fn check_protocol(other: u32) -> Result<(), String> {
    match other == PROTOCOL {
        true => Ok(()),
        false => {
            Err(format!("it speaks version {other} of the protocol, this program version {PROTOCOL}: use one release"))
        }
    }
}
