//! How often a request is made again, and how long its caller waits in all. It does not know what is asked for.

use crate::counts::Counters;
use crate::failure::kind_of;
use os::store::is_certain;
use os::sync::atomic::Ordering;
use rand::RngExt;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::Instant;

/// How long a caller waits. Between two attempts it waits a random part of a time that doubles, so that many clients whose
/// requests failed at once do not come back at once.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From the first attempt to the last answer.
    pub deadline: Duration,
    /// One attempt, with those that `object_store` makes for it.
    pub attempt: Duration,
    /// The longest wait after the first attempt.
    pub first_wait: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            deadline: Duration::from_secs(60),
            attempt: Duration::from_secs(20),
            first_wait: Duration::from_millis(100),
            longest_wait: Duration::from_secs(5),
        }
    }
}

/// Whether an answer is final: no other attempt can bring another one. `AlreadyExists` is final for whoever asks; who has put
/// it is for the caller to find out.
fn is_final(error: &object_store::Error) -> bool {
    let kind = kind_of(error);
    is_certain(kind) || kind == ErrorKind::AlreadyExists
}

impl Patience {
    /// Makes a request until it succeeds, its answer is final, or the time is up.
    pub async fn ask<T, F>(&self, counters: &Counters, mut request: impl FnMut() -> F) -> object_store::Result<T>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let begin = Instant::now();
        let mut wait = self.first_wait;
        loop {
            let left = self.deadline.saturating_sub(begin.elapsed()).min(self.attempt);
            let error = match tokio::time::timeout(left, request()).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) if is_final(&error) => return Err(error),
                Ok(Err(error)) => error,
                Err(_) => object_store::Error::Generic {
                    store: "object store",
                    source: format!("no answer within {} s", left.as_secs_f32()).into(),
                },
            };
            let pause = wait.mul_f64(rand::rng().random_range(0.0..1.0));
            if begin.elapsed() + pause >= self.deadline {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            wait = (2 * wait).min(self.longest_wait);
            counters.retries.fetch_add(1, Ordering::Relaxed);
        }
    }
}
