//! A secret that only the coordinator and its workers know. It is never sent. Each side proves that it has the
//! secret, with a keyed hash (HMAC-SHA256) of two random numbers. Each side has drawn one of these numbers for this
//! connection. The hash also contains a text that differs between the sides, so that neither side can send back
//! what it received.

#![allow(clippy::disallowed_methods, reason = "a file of the user's, never simulated")]

#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use harness::Failure;
use hmac::{Hmac, KeyInit as _, Mac as _};
use os::Machine;
use sha2::Sha256;
use std::fmt;
use std::path::Path;

/// The environment variable that contains the secret if no file is named.
pub const VARIABLE: &str = "LARCH_WORKER_SECRET";

/// Somebody who overhears a proof could find a shorter secret by trying all secrets.
const LEAST_BYTES: usize = 16;

/// A text that only the processes of a run know.
pub struct Secret(Vec<u8>);

/// The side that proves that it knows the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The process that connects and asks for work.
    Coordinator,
    /// The process that works.
    Worker,
}

impl Secret {
    /// Reads the secret from a file, or from [`VARIABLE`] if no file is named. White space before and after the
    /// secret does not count.
    ///
    /// # Errors
    ///
    /// Fails if no secret is given, or if it is too short.
    pub fn find(file: Option<&Path>) -> Result<Self, Failure> {
        let usage = |text: String| Failure::session("target", text);
        let advice = "make one with `openssl rand -hex 32`";
        let (place, text) = match file {
            Some(file) => {
                let read = std::fs::read_to_string(file);
                let text = read.map_err(|error| usage(format!("--secret-file {}: {error}", file.display())))?;
                (format!("--secret-file {}", file.display()), text)
            }
            None => (VARIABLE.to_owned(), std::env::var(VARIABLE).unwrap_or_default()),
        };
        match text.trim() {
            "" if file.is_none() => {
                Err(usage(format!("workers need a secret that all know: --secret-file FILE, or {VARIABLE}; {advice}")))
            }
            secret if secret.len() < LEAST_BYTES => {
                Err(usage(format!("{place}: a secret has at least {LEAST_BYTES} characters; {advice}")))
            }
            secret => Ok(Self(secret.as_bytes().to_vec())),
        }
    }

    fn hash(&self, side: Side, worker_nonce: &str, coordinator_nonce: &str) -> Hmac<Sha256> {
        let mut hash = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of this hash has any length");
        let side = match side {
            Side::Coordinator => "coordinator",
            Side::Worker => "worker",
        };
        for part in ["larch bench worker", side, worker_nonce, coordinator_nonce] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash
    }

    /// The text that proves that `side` knows the secret.
    pub fn proof(&self, side: Side, worker_nonce: &str, coordinator_nonce: &str) -> String {
        STANDARD.encode(self.hash(side, worker_nonce, coordinator_nonce).finalize().into_bytes())
    }

    /// Whether `proof` proves that `side` knows the secret. The check takes the same time for every wrong proof.
    pub fn is_proven(&self, side: Side, worker_nonce: &str, coordinator_nonce: &str, proof: &str) -> bool {
        let bytes = STANDARD.decode(proof).unwrap_or_default();
        self.hash(side, worker_nonce, coordinator_nonce).verify_slice(&bytes).is_ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

/// A random number that was never drawn before.
pub fn nonce() -> String {
    let random = Machine::real().random;
    let bytes: Vec<u8> = (0..4).flat_map(|_| random.next_u64().to_be_bytes()).collect();
    STANDARD.encode(bytes)
}
