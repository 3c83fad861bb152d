//! The secret that a coordinator and its workers share. It is never sent. Each side proves that it has the secret
//! by an HMAC-SHA256 of two nonces, one drawn by each side for this connection. The hash includes the name of the
//! side, so that neither can send back the proof that it received.

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

/// The environment variable with the secret, if no file is named.
pub const VARIABLE: &str = "LARCH_WORKER_SECRET";

/// A shorter secret could be found from an overheard proof by brute force.
const LEAST_BYTES: usize = 16;

/// A text that only the processes of a run know.
pub struct Secret(Vec<u8>);

/// The side that proves that it knows the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The process that connects and asks for work.
    Coordinator,
    /// The process that does the work.
    Worker,
}

impl Secret {
    /// Reads the secret from a file, or from [`VARIABLE`] if no file is named. White space around it is ignored.
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

    /// The proof that `side` knows the secret.
    pub fn proof(&self, side: Side, worker_nonce: &str, coordinator_nonce: &str) -> String {
        STANDARD.encode(self.hash(side, worker_nonce, coordinator_nonce).finalize().into_bytes())
    }

    /// Whether `proof` is the proof of `side`. Compares in constant time.
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

/// A random number, used once.
pub fn nonce() -> String {
    let random = Machine::real().random;
    let bytes: Vec<u8> = (0..4).flat_map(|_| random.next_u64().to_be_bytes()).collect();
    STANDARD.encode(bytes)
}
