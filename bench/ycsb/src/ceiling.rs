//! Measures the limit of the clients: how many operations they make per second of one processor, without a store and
//! without the harness.

use harness::{Client, Extra, Outcome, Reply, Request};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

/// What a client did without a store and without the harness.
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    /// The number of operations.
    pub operations: u64,
    /// The bytes of all values that the client wrote.
    pub value_bytes: u64,
    /// The processor time that the client used.
    pub processor: Duration,
}

impl Ceiling {
    /// Lets `client` work on the calling thread until it has used `processor`, or until it has no operation left.
    /// Every request is answered at once, and the answer is empty.
    pub fn of(client: &mut impl Client, processor: Duration) -> Ceiling {
        let (mut note, mut retries) = (|_, _, _| (), 0);
        let mut extra = Extra::new(&mut note, &mut retries);
        let reply = Reply::new();
        let start = thread_time();
        let mut ceiling = Ceiling { operations: 0, value_bytes: 0, processor: Duration::ZERO };
        loop {
            // The clock is read after every 10,000 operations, so the cost of reading it is negligible.
            for _ in 0..10_000 {
                if !client.begin() {
                    ceiling.processor = thread_time() - start;
                    return ceiling;
                }
                ceiling.operations += 1;
                loop {
                    let (kind, request) = client.request();
                    black_box((kind, &request));
                    ceiling.value_bytes += match request {
                        Request::Insert { record, .. } | Request::Replace { record, .. } => record.bytes() as u64,
                        Request::Update { value, .. } => value.len() as u64,
                        _ => 0,
                    };
                    if client.served(Ok(Outcome::Ok), &reply, &mut extra) != harness::Next::More {
                        break;
                    }
                }
            }
            ceiling.processor = thread_time() - start;
            if ceiling.processor >= processor {
                return ceiling;
            }
        }
    }

    /// Operations per second of processor time.
    pub fn operations_per_second(&self) -> f64 {
        self.operations as f64 / self.processor.as_secs_f64()
    }

    /// The bytes of values per second of processor time.
    pub fn value_bytes_per_second(&self) -> f64 {
        self.value_bytes as f64 / self.processor.as_secs_f64()
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("less than a second"))
}
