//! Prints how to run a failed seed again.

/// Prints the command that repeats the run if it is dropped by a panic.
#[derive(Debug)]
pub struct Rerun {
    seed: u64,
    arguments: String,
}

impl Rerun {
    /// For a run of `seed` with `steps` steps and `samples` faults of each kind.
    pub fn of(seed: u64, steps: usize, samples: usize) -> Self {
        Self { seed, arguments: format!("--count 1 --steps {steps} --samples {samples}") }
    }

    /// For the transactions of `seed` alone.
    pub fn of_transactions(seed: u64) -> Self {
        Self { seed, arguments: "--transactions 1".to_owned() }
    }

    /// For the transactions of `seed` on `threads` threads, whose interleaving does not follow from the seed.
    pub fn of_threads(seed: u64, threads: usize) -> Self {
        Self { seed, arguments: format!("--transactions 1 --threads {threads}") }
    }
}

impl Drop for Rerun {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, arguments } = self;
            eprintln!("seed {seed} failed; to run it again: cargo x sim {seed} {arguments}");
        }
    }
}
