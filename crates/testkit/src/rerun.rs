//! Prints how to run a failed seed again.

/// While it lives, a panic is followed by the command that repeats it.
#[derive(Debug)]
pub struct Rerun {
    seed: u64,
    steps: usize,
    samples: usize,
}

impl Rerun {
    /// For the run of `seed` with `steps`, and with `samples` of each kind of fault.
    pub fn of(seed: u64, steps: usize, samples: usize) -> Self {
        Self { seed, steps, samples }
    }
}

impl Drop for Rerun {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, steps, samples } = self;
            let again = format!("cargo x sim {seed} --count 1 --steps {steps} --samples {samples}");
            eprintln!("seed {seed} failed; to run it again: {again}");
        }
    }
}
