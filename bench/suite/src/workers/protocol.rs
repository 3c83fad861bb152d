//! The messages between coordinator and worker: each is a JSON value on a line.

use super::secret::{Secret, Side, nonce};
use harness::{Failure, Interval, Share};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the protocol, which must be the same on both sides.
pub const PROTOCOL: u32 = 1;

/// Maximum length of a line before the other side has proven that it knows the secret, and, in `TASK_BYTES`, of a
/// coordinator's lines after the proof.
pub const FIRST_BYTES: usize = 4 << 10;
pub const TASK_BYTES: usize = 1 << 20;
/// Maximum length of a worker's lines after the proof. The result of a long run has some kilobytes of histograms
/// for each second and kind of request.
pub const RESULT_BYTES: usize = 64 << 30;

/// A message from a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// The first line.
    Challenge(Challenge),
    /// Accepts the coordinator, and proves that the worker knows the secret.
    Welcome { proof: String },
    /// Refuses the coordinator.
    Refused { why: String },
    /// The target is open, and all clients have a session.
    Ready,
    /// The clients have begun.
    Begun,
    /// An interval has ended.
    Progress(Box<Interval>),
    /// Measurements that came too late for their interval, which was already sent.
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

/// Asks the coordinator to prove that it knows the secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Challenge {
    /// The worker's version of the protocol, [`PROTOCOL`].
    pub protocol: u32,
    /// A random number, used once.
    pub nonce: String,
}

/// The result of a share.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The result in the format of its workload.
    result: Value,
    /// Whether the run was cut short: interrupted, or the store or a client thread was lost.
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
    /// Fails if it is not an `R`, the result type of the workload.
    pub fn result<R: DeserializeOwned>(self) -> Result<R, String> {
        serde_json::from_value(self.result).map_err(|error| format!("its result is none that is known here: {error}"))
    }
}

impl Failed {
    /// The message about `failure`.
    pub fn of(failure: &Failure) -> Self {
        Self { is_usage: failure.kind == "target", text: failure.text.clone() }
    }

    /// The failure to report for the worker at `address`.
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

    /// Returns the coordinator's answer, and the nonce in it, which the worker's own proof must use.
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

    /// Checks a coordinator's answer, and returns the worker's welcome.
    ///
    /// # Errors
    ///
    /// Fails if the coordinator speaks another version of the protocol, or does not prove that it knows the secret.
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
