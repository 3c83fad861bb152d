//! Random numbers that follow from a seed. It does not know what they are used for.

use crate::Random;
use crate::sync::Mutex;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// The same numbers for the same seed, in any build and on any platform.
#[derive(Debug)]
pub struct SimRandom(Mutex<Xoshiro256PlusPlus>);

impl SimRandom {
    /// The numbers of `seed`.
    pub fn new(seed: u64) -> SimRandom {
        SimRandom(Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed)))
    }
}

impl Random for SimRandom {
    fn next_u64(&self) -> u64 {
        self.0.lock().next_u64()
    }
}
