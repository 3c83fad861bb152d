//! What coordinator and worker say to each other: a JSON value on each line.

use super::secret::{Secret, Side, nonce};
use harness::{Failure, Interval, Share};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Both sides must have this one.
pub const PROTOCOL: u32 = 1;

/// The most bytes of a line before the other side has proven that it knows the secret. After the proof, this also
/// bounds what a coordinator says.
pub const FIRST_BYTES: usize = 4 << 10;
pub const TASK_BYTES: usize = 1 << 20;
/// The most bytes of what a worker says after the proof. The result of a long run has some kilobytes of histograms
/// for each second and kind of request.
pub const RESULT_BYTES: usize = 64 << 30;

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// The first line.
    Challenge(Challenge),
    /// It knows the secret, too.
    Welcome { proof: String },
    /// It does nothing for this coordinator.
    Refused { why: String },
    /// The target is open, and all clients have a session.
    Ready,
    /// The clients begin.
    Begun,
    /// An interval has ended.
    Progress(Box<Interval>),
    /// What came late of an interval that was sent before.
    Late(Box<Interval>),
    /// The run has ended.
    Result(Box<Outcome>),
    /// The worker has no result.
    Failed(Failed),
}

/// What a coordinator says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromCoordinator {
    /// Answers the challenge.
    Answer { protocol: u32, nonce: String, proof: String },
    /// What is to be done: the arguments of `larch bench`, and the share of it.
    Task { args: Vec<String>, share: Share },
    /// The clients are to begin.
    Go,
    /// The run is to end.
    Stop,
}

/// Asks who connects to prove that it knows the secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Challenge {
    /// [`PROTOCOL`] of the worker.
    pub protocol: u32,
    /// A number that was never drawn before.
    pub nonce: String,
}

/// The result of a share.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The result, in the form of its workload.
    result: Value,
    /// Whether the worker ended before the run should have: something was lost, or the run was interrupted.
    pub is_early: bool,
    /// What it was measured on.
    pub machine: String,
}

/// Why the worker has no result.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failed {
    /// The arguments are wrong.
    is_usage: bool,
    text: String,
}

impl Outcome {
    /// The message that carries a result.
    pub fn new<R: Serialize>(result: &R, is_early: bool, machine: String) -> Self {
        Self { result: serde_json::to_value(result).expect("every result can be written"), is_early, machine }
    }

    /// The result.
    ///
    /// # Errors
    ///
    /// It is one of another workload.
    pub fn result<R: DeserializeOwned>(self) -> Result<R, String> {
        serde_json::from_value(self.result).map_err(|error| format!("its result is none that is known here: {error}"))
    }
}

impl Failed {
    /// Because of this.
    pub fn of(failure: &Failure) -> Self {
        Self { is_usage: failure.kind == "target", text: failure.text.clone() }
    }

    /// The same, of the worker at `address`.
    pub fn failure(&self, address: &str) -> Failure {
        let kind = if self.is_usage { "target" } else { "worker" };
        Failure::session(kind, format!("worker {address}: {}", self.text))
    }
}

impl Challenge {
    /// A new one.
    pub fn new() -> Self {
        Self { protocol: PROTOCOL, nonce: nonce() }
    }

    /// What a coordinator answers, and what the worker must then prove.
    ///
    /// # Errors
    ///
    /// The worker speaks another protocol.
    pub fn answer(&self, secret: &Secret) -> Result<(FromCoordinator, String), String> {
        check_protocol(self.protocol)?;
        let nonce = nonce();
        let proof = secret.proof(Side::Coordinator, &self.nonce, &nonce);
        Ok((FromCoordinator::Answer { protocol: PROTOCOL, nonce: nonce.clone(), proof }, nonce))
    }

    /// The worker's reply to an answer, which must prove that the coordinator knows the secret.
    ///
    /// # Errors
    ///
    /// It does not.
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
