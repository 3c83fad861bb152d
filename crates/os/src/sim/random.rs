//! Random numbers that follow from a seed. This module does not know what the numbers are used for.

use crate::Random;
use crate::sync::Mutex;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// For the same seed, the numbers are the same in any build and on any platform.
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
