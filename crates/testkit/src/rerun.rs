//! Says how to run a failed seed again.

/// While it lives, a panic is followed by the command that repeats it.
#[derive(Debug)]
pub struct Rerun {
    seed: u64,
    steps: usize,
}

impl Rerun {
    /// For the run of `seed` with `steps`.
    pub fn of(seed: u64, steps: usize) -> Self {
        Self { seed, steps }
    }
}

impl Drop for Rerun {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, steps } = self;
            eprintln!("seed {seed} failed; to run it again: cargo x sim {seed} --count 1 --steps {steps}");
        }
    }
}
